//! Determines which scope binds a name, and what a new name would collide with, hide, or be hidden by.
//!
//! It implements Python's rules (reference, "Resolution of names") over syntax: modules, classes, functions, lambdas and
//! comprehensions; `global` and `nonlocal`; the names of a class are not visible in its functions. Names after a dot and
//! the names of keyword arguments do not belong to a scope and are ignored.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use tree_sitter::{Node, Tree};

use super::outline::Span;
use super::syntax::{children, parse, preorder, text_of};

/// The kind of a scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScopeKind {
    /// The file.
    Module,
    /// The body of a class.
    Class,
    /// A function or a lambda.
    Function,
    /// A comprehension.
    Comprehension,
}

#[derive(Debug)]
struct LexicalScope {
    kind: ScopeKind,
    parent: Option<usize>,
    /// The body of a class.
    body: Option<Span>,
    /// The names that the scope declares `global` (true) or `nonlocal` (false).
    declared_outer: BTreeMap<String, bool>,
    /// The names for which it has a binding use, those that it declares otherwise included.
    bound: BTreeSet<String>,
}

/// Uses that bind, by the name and the scope that they bind it in, as positions in [`Scopes::uses`].
type BindingsByHome = BTreeMap<(String, usize), Vec<usize>>;

/// One use of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameUse {
    /// The token.
    pub span: Span,
    /// The name.
    pub name: String,
    /// Whether the use binds the name.
    pub binds: bool,
    scope: usize,
}

/// The scopes of one text, and the uses of some names in them.
#[derive(Debug)]
pub struct Scopes {
    scopes: Vec<LexicalScope>,
    /// In source order.
    uses: Vec<NameUse>,
    by_home: OnceLock<BindingsByHome>,
}

/// A conflict of a new name with an existing one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collision {
    /// The conflicting token.
    pub span: Span,
    /// The kind of the conflict.
    pub kind: CollisionKind,
}

/// The kind of a conflict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CollisionKind {
    /// The scope already binds the new name.
    Bound,
    /// A scope in between binds the new name, so that a renamed use would refer to that binding.
    Hidden,
    /// A use of the new name refers to a binding in an outer scope, and would refer to the renamed one.
    Captured,
}

impl Scopes {
    /// The scopes of a text, with the uses of these names.
    #[must_use]
    pub fn of(text: &str, names: &[&str]) -> Self {
        Self::read(&parse(text), text, Some(names))
    }

    /// The scopes of a text, with the uses of all names.
    pub(super) fn of_all(tree: &Tree, text: &str) -> Self {
        Self::read(tree, text, None)
    }

    fn read(tree: &Tree, text: &str, names: Option<&[&str]>) -> Self {
        let module = LexicalScope {
            kind: ScopeKind::Module,
            parent: None,
            body: None,
            declared_outer: BTreeMap::new(),
            bound: BTreeSet::new(),
        };
        let found = Self { scopes: vec![module], uses: Vec::new(), by_home: OnceLock::new() };
        let mut reader = ScopeReader { text, names, found };
        reader.read(tree.root_node());
        let mut found = reader.found;
        found.uses.sort_by_key(|name| (name.span.start, !name.binds));
        found.uses.dedup_by_key(|name| name.span.start);
        for used in found.uses.iter().filter(|used| used.binds) {
            found.scopes[used.scope].bound.insert(used.name.clone());
        }
        found
    }

    /// The use whose token begins at an offset.
    #[must_use]
    pub fn at(&self, offset: usize) -> Option<&NameUse> {
        let at = self.uses.binary_search_by_key(&offset, |name| name.span.start).ok()?;
        self.uses.get(at)
    }

    /// The tokens within a span that bind a name of a module, a class or a function. The targets of comprehensions are left
    /// out, and so are names of scopes that begin after the first binding, such as the parameters of a lambda.
    pub(super) fn bound_within(&self, span: &Span) -> Vec<Span> {
        let is_within = |used: &&NameUse| span.start <= used.span.start && used.span.end <= span.end;
        let is_statement = |used: &&NameUse| self.scopes[used.scope].kind != ScopeKind::Comprehension;
        let bound: Vec<&NameUse> =
            self.uses.iter().filter(|used| used.binds).filter(is_within).filter(is_statement).collect();
        let first = bound.first().map(|used| used.scope);
        bound.into_iter().filter(|used| Some(used.scope) == first).map(|used| used.span.clone()).collect()
    }

    /// Whether the name whose token begins at an offset refers to a binding of the module.
    #[must_use]
    pub fn is_bound_by_module(&self, offset: usize) -> bool {
        self.at(offset).is_some_and(|name| self.binding_scope(&name.name, name.scope) == Some(0))
    }

    /// The kind of the scope that binds the name whose token begins at an offset; that of the module if none does, and `None` when no
    /// name of a scope begins there.
    #[must_use]
    pub fn home(&self, offset: usize) -> Option<ScopeKind> {
        let name = self.at(offset)?;
        Some(self.scopes[self.binding_scope(&name.name, name.scope).unwrap_or(0)].kind)
    }

    /// The tokens that bind the name whose token begins at an offset: empty when the file does not bind it, `None` when no name
    /// begins there.
    #[must_use]
    pub fn bound_by(&self, offset: usize) -> Option<Vec<Span>> {
        let name = self.at(offset)?;
        let Some(home) = self.binding_scope(&name.name, name.scope) else { return Some(Vec::new()) };
        Some(self.bindings(&name.name, home).map(|binding| binding.span.clone()).collect())
    }

    /// The conflicts when the tokens that begin at these offsets are renamed, in source order, without duplicates.
    #[must_use]
    pub fn collisions(&self, renamed: &[usize], new: &str) -> Vec<Collision> {
        let mut found = Vec::new();
        let mut homes = Vec::new();
        let renamed: BTreeSet<usize> = renamed.iter().copied().collect();
        let is_renamed = |name: &NameUse| renamed.contains(&name.span.start);
        for token in self.uses.iter().filter(|name| is_renamed(name)) {
            // A name without a binding in the file comes from `import *` or is a builtin: from outside the module.
            let home = self.binding_scope(&token.name, token.scope).unwrap_or(0);
            if !homes.contains(&home) {
                homes.push(home);
            }
            if let Some(nearer) = self.binding_scope(new, token.scope).filter(|nearer| *nearer != home)
                && self.is_inside(nearer, home)
                && let Some(binding) = self.bindings(new, nearer).find(|name| !is_renamed(name))
            {
                found.push(Collision { span: binding.span.clone(), kind: CollisionKind::Hidden });
            }
        }
        for &home in &homes {
            for binding in self.bindings(new, home).filter(|name| !is_renamed(name)) {
                found.push(Collision { span: binding.span.clone(), kind: CollisionKind::Bound });
            }
        }
        for other in self.uses.iter().filter(|name| name.name == new && !is_renamed(name)) {
            let now = self.binding_scope(new, other.scope);
            let captured = |home: &&usize| {
                now != Some(**home)
                    && self.is_visible(other.scope, **home, new)
                    && now.is_none_or(|now| self.is_inside(**home, now))
            };
            if homes.iter().any(|home| captured(&home)) {
                found.push(Collision { span: other.span.clone(), kind: CollisionKind::Captured });
            }
        }
        found.sort_by_key(|collision| (collision.span.start, collision.kind));
        found.dedup_by_key(|collision| collision.span.start);
        found
    }

    /// The tokens that are one variable with some of these tokens, and none of them: bindings, uses, and the names of `global` and
    /// `nonlocal`.
    pub fn left_behind(&self, tokens: &[usize]) -> impl Iterator<Item = &NameUse> {
        let tokens: BTreeSet<usize> = tokens.iter().copied().collect();
        let (own, others): (Vec<_>, Vec<_>) =
            self.uses.iter().partition(|token| tokens.contains(&token.span.start));
        // The body of a class may use the module's name before it binds its own.
        let variable = |token: &NameUse| {
            let scope = self.binding_scope(&token.name, token.scope)?;
            (self.scopes[scope].kind != ScopeKind::Class).then(|| (scope, token.name.clone()))
        };
        let variables: BTreeSet<_> = own.into_iter().filter_map(variable).collect();
        others.into_iter().filter(move |token| variable(token).is_some_and(|one| variables.contains(&one)))
    }

    /// The scope whose binding a name in `scope` refers to.
    fn binding_scope(&self, name: &str, scope: usize) -> Option<usize> {
        let mut at = Some(scope);
        while let Some(index) = at {
            let here = &self.scopes[index];
            if let Some(is_global) = here.declared_outer.get(name) {
                if *is_global {
                    return Some(0);
                }
            } else if (index == scope || here.kind != ScopeKind::Class) && self.binds(name, index) {
                return Some(index);
            }
            at = here.parent;
        }
        None
    }

    /// Whether a binding of a name in scope `home` is visible in `scope`.
    fn is_visible(&self, scope: usize, home: usize, name: &str) -> bool {
        let mut at = Some(scope);
        while let Some(index) = at {
            if index == home {
                return scope == home || self.scopes[home].kind != ScopeKind::Class;
            }
            // `global` skips all scopes in between.
            if self.scopes[index].declared_outer.get(name) == Some(&true) {
                return home == 0;
            }
            at = self.scopes[index].parent;
        }
        false
    }

    fn is_inside(&self, inner: usize, outer: usize) -> bool {
        let mut at = self.scopes[inner].parent;
        while let Some(index) = at {
            if index == outer {
                return true;
            }
            at = self.scopes[index].parent;
        }
        false
    }

    fn binds(&self, name: &str, scope: usize) -> bool {
        self.scopes[scope].bound.contains(name)
    }

    /// The tokens that bind a name of a scope, including those in other scopes that declare it `global` or `nonlocal`.
    fn bindings<'s>(&'s self, name: &str, scope: usize) -> impl Iterator<Item = &'s NameUse> {
        let by_home = self.by_home.get_or_init(|| self.bindings_by_home());
        by_home.get(&(name.to_owned(), scope)).into_iter().flatten().map(|at| &self.uses[*at])
    }

    fn bindings_by_home(&self) -> BindingsByHome {
        let mut found = BindingsByHome::new();
        for (at, used) in self.uses.iter().enumerate().filter(|(_, used)| used.binds) {
            let home = match self.scopes[used.scope].declared_outer.get(&used.name) {
                Some(true) => Some(0),
                Some(false) => self.binding_scope(&used.name, used.scope),
                None => Some(used.scope),
            };
            if let Some(home) = home {
                found.entry((used.name.clone(), home)).or_default().push(at);
            }
        }
        found
    }
}

struct ScopeReader<'r> {
    text: &'r str,
    /// The names to collect; `None` for all.
    names: Option<&'r [&'r str]>,
    found: Scopes,
}

impl<'r> ScopeReader<'r> {
    /// Reads the tree with an explicit stack, because generated files nest deeply.
    fn read(&mut self, root: Node<'r>) {
        let mut stack = vec![(root, 0)];
        while let Some((node, scope)) = stack.pop() {
            match node.kind() {
                "function_definition" | "lambda" => self.function(node, scope, &mut stack),
                "class_definition" => {
                    self.bind(node.child_by_field_name("name"), scope);
                    let inner = self.enter(ScopeKind::Class, scope);
                    self.found.scopes[inner].body =
                        node.child_by_field_name("body").map(|body| body.byte_range());
                    for child in children(node) {
                        let is = |field| node.child_by_field_name(field) == Some(child);
                        if is("body") {
                            stack.push((child, inner));
                        } else if !is("name") {
                            stack.push((child, scope));
                        }
                    }
                }
                "list_comprehension"
                | "set_comprehension"
                | "dictionary_comprehension"
                | "generator_expression" => {
                    let inner = self.enter(ScopeKind::Comprehension, scope);
                    stack.extend(children(node).map(|child| (child, inner)));
                    // The first iterable is evaluated in the enclosing scope.
                    let first = children(node).find(|child| child.kind() == "for_in_clause");
                    if let Some(first) = first {
                        stack.retain(|(child, _)| *child != first);
                        stack.extend(children(first).map(|part| {
                            let is_right = first.child_by_field_name("right") == Some(part);
                            (part, if is_right { scope } else { inner })
                        }));
                        if let Some(target) = first.child_by_field_name("left") {
                            self.target(target, inner, false);
                        }
                    }
                }
                "global_statement" | "nonlocal_statement" => {
                    let is_global = node.kind() == "global_statement";
                    for name in children(node).filter(|child| child.kind() == "identifier") {
                        let text = text_of(name, self.text).to_owned();
                        self.found.scopes[scope].declared_outer.insert(text, is_global);
                        self.push(name, scope, false);
                    }
                }
                "import_statement" | "import_from_statement" | "future_import_statement" => {
                    self.import(node, scope);
                }
                "attribute" => stack.extend(node.child_by_field_name("object").map(|object| (object, scope))),
                "keyword_argument" => {
                    stack.extend(node.child_by_field_name("value").map(|value| (value, scope)));
                }
                "identifier" => self.push(node, scope, false),
                _ => {
                    let target = match node.kind() {
                        "assignment"
                        | "augmented_assignment"
                        | "for_statement"
                        | "for_in_clause"
                        | "type_alias_statement" => node.child_by_field_name("left"),
                        "named_expression" => node.child_by_field_name("name"),
                        // In a `case` the grammar gives the name no field.
                        "as_pattern" => node
                            .child_by_field_name("alias")
                            .or_else(|| children(node).last().filter(|last| last.kind() == "identifier")),
                        "delete_statement" => node.named_child(0),
                        _ => None,
                    };
                    if let Some(target) = target {
                        self.target(target, scope, node.kind() == "named_expression");
                    }
                    if matches!(node.kind(), "case_pattern" | "splat_pattern" | "keyword_pattern") {
                        // A plain name in a pattern is bound; a dotted one is a use.
                        for name in children(node)
                            .filter(|child| matches!(child.kind(), "dotted_name" | "identifier"))
                        {
                            let is_keyword =
                                node.kind() == "keyword_pattern" && node.named_child(0) == Some(name);
                            if name.named_child_count() <= 1 && !is_keyword {
                                self.bind(name.named_child(0).or(Some(name)), scope);
                            }
                        }
                    }
                    stack.extend(children(node).map(|child| (child, scope)));
                }
            }
        }
    }

    fn function(&mut self, node: Node<'r>, scope: usize, stack: &mut Vec<(Node<'r>, usize)>) {
        self.bind(node.child_by_field_name("name"), scope);
        let inner = self.enter(ScopeKind::Function, scope);
        for child in children(node) {
            let is = |field| node.child_by_field_name(field) == Some(child);
            if is("body") {
                stack.push((child, inner));
            } else if is("parameters") {
                for parameter in children(child) {
                    let named = parameter.child_by_field_name("name");
                    match parameter.kind() {
                        "identifier" => self.bind(Some(parameter), inner),
                        "typed_parameter" | "list_splat_pattern" | "dictionary_splat_pattern" => {
                            // `*args: int` is a typed parameter with a pattern in it.
                            let first = parameter.named_child(0);
                            let name = first
                                .filter(|first| first.kind() != "identifier")
                                .and_then(|first| first.named_child(0));
                            self.bind(name.or(first), inner);
                        }
                        _ => self.bind(named, inner),
                    }
                    for field in ["type", "value"] {
                        stack.extend(parameter.child_by_field_name(field).map(|part| (part, scope)));
                    }
                }
            } else if !is("name") {
                stack.push((child, scope));
            }
        }
    }

    /// Binds every plain name of a target; names in subscripts and before dots are uses.
    fn target(&mut self, target: Node<'r>, scope: usize, is_walrus: bool) {
        let mut scope = scope;
        // `:=` in a comprehension binds in the enclosing scope.
        while is_walrus && self.found.scopes[scope].kind == ScopeKind::Comprehension {
            scope = self.found.scopes[scope].parent.unwrap_or(0);
        }
        let mut names = Vec::new();
        preorder(target, |part| match part.kind() {
            "identifier" => {
                names.push(part);
                false
            }
            "attribute" | "subscript" | "call" => false,
            _ => true,
        });
        for name in names {
            self.bind(Some(name), scope);
        }
    }

    fn import(&mut self, node: Node<'r>, scope: usize) {
        let from = node.child_by_field_name("module_name");
        for child in children(node).filter(|child| Some(*child) != from) {
            match child.kind() {
                "aliased_import" => self.bind(child.child_by_field_name("alias"), scope),
                // `import a.b` binds `a`, `from m import a` binds `a`.
                "dotted_name" => self.bind(child.named_child(0), scope),
                _ => {}
            }
        }
    }

    fn enter(&mut self, kind: ScopeKind, parent: usize) -> usize {
        self.found.scopes.push(LexicalScope {
            kind,
            parent: Some(parent),
            body: None,
            declared_outer: BTreeMap::new(),
            bound: BTreeSet::new(),
        });
        self.found.scopes.len() - 1
    }

    fn bind(&mut self, name: Option<Node<'r>>, scope: usize) {
        if let Some(name) = name {
            self.push(name, scope, true);
        }
    }

    fn push(&mut self, node: Node<'r>, scope: usize, binds: bool) {
        let name = text_of(node, self.text);
        if self.names.is_none_or(|names| names.contains(&name)) {
            self.found.uses.push(NameUse { span: node.byte_range(), name: name.to_owned(), binds, scope });
        }
    }
}

/// The names of the other keyword arguments in the call with the keyword argument whose name begins at an offset.
#[must_use]
pub fn sibling_keywords(text: &str, offset: usize) -> Option<Vec<(String, Span)>> {
    let tree = parse(text);
    let token = tree.root_node().descendant_for_byte_range(offset, offset + 1)?;
    let keyword = token.parent().filter(|parent| {
        parent.kind() == "keyword_argument" && parent.child_by_field_name("name") == Some(token)
    })?;
    let names = children(keyword.parent()?)
        .filter(|other| other.kind() == "keyword_argument" && *other != keyword)
        .filter_map(|other| other.child_by_field_name("name"))
        .map(|name| (text_of(name, text).to_owned(), name.byte_range()));
    Some(names.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines (1-based) and kinds of the conflicts when every `old` token of the given lines is renamed to `new`.
    fn check(text: &str, lines: &[usize]) -> Vec<(usize, CollisionKind)> {
        let line = |offset: usize| text[..offset].matches('\n').count() + 1;
        let tokens: Vec<usize> =
            text.match_indices("old").map(|(at, _)| at).filter(|at| lines.contains(&line(*at))).collect();
        let found = Scopes::of(text, &["old", "new"]).collisions(&tokens, "new");
        found.into_iter().map(|collision| (line(collision.span.start), collision.kind)).collect()
    }

    use CollisionKind::{Bound, Captured, Hidden};

    #[test]
    fn a_free_name_is_free() {
        assert_eq!(check("def old(): pass\nold()\nx.new\nf(new=1)\n'new'\n", &[1, 2]), []);
        // Another function's local has nothing to do with it.
        assert_eq!(check("def old(): pass\ndef f():\n  new = 1\n  return new\nold()\n", &[1, 5]), []);
        // A method is not visible in the other methods of the class.
        assert_eq!(check("new = 1\nclass C:\n  def old(self): pass\n  def m(self): return new\n", &[3]), []);
    }

    #[test]
    fn bound_in_the_same_scope() {
        for other in [
            "new = 1",
            "def new(): pass",
            "class new: pass",
            "import new",
            "import a as new",
            "from a import new",
            "for new in x: pass",
            "with a as new: pass",
            "match a:\n  case B() as new: pass",
            "try: pass\nexcept E as new: pass",
            "(new := 1)",
            "new += 1",
            "a, (b, *new) = x",
            "[new for b in x if (new := b)]",
            "def f():\n  global new\n  new = 1",
            "del new",
            "match x:\n  case [new]: pass",
            "new: int",
        ] {
            let text = format!("old = 1\n{other}\n");
            assert!(check(&text, &[1]).iter().any(|(_, kind)| *kind == Bound), "{other}");
        }
        assert_eq!(check("class C:\n  def old(self): pass\n  new = 1\n", &[2]), [(3, Bound)]);
        assert_eq!(check("def f(old, new): return old\n", &[1]), [(1, Bound)]);
        assert_eq!(check("def f(old, *new: int, k=1): return old\n", &[1]), [(1, Bound)]);
        assert_eq!(check("lambda old, new=1: old\n", &[1]), [(1, Bound)]);
    }

    #[test]
    fn hidden_by_a_scope_in_between() {
        assert_eq!(check("old = 1\ndef f(new):\n  return old\n", &[1, 3]), [(2, Hidden)]);
        assert_eq!(check("old = 1\n[old for new in x]\n", &[1, 2]), [(2, Hidden)]);
        assert_eq!(check("old = 1\nclass C:\n  new = 2\n  x = old\n", &[1, 4]), [(3, Hidden)]);
        // The function does not see the class's name.
        assert_eq!(check("old = 1\nclass C:\n  new = 2\n  def m(self): return old\n", &[1, 4]), []);
    }

    #[test]
    fn captures_names_of_outer_scopes() {
        assert_eq!(check("old = 1\nprint(new)\n", &[1]), [(2, Captured)]);
        assert_eq!(check("new = 1\ndef f(old):\n  return new\n", &[2]), [(3, Captured)]);
        assert_eq!(check("new = 1\ndef f():\n  old = 2\n  def g(): return new\n", &[3]), [(4, Captured)]);
        assert_eq!(check("new = 1\ndef f():\n  old = 2\ndef g(): return new\n", &[3]), []);
        assert_eq!(
            check("new = 1\ndef f():\n  old = 2\n  def g():\n    global new\n    return new\n", &[3]),
            []
        );
    }

    #[test]
    fn names_of_the_module_and_others() {
        let text = "import old\ndef f(old): old.x\ndef g(): old.x\n";
        let scopes = Scopes::of(text, &["old"]);
        let at: Vec<usize> = text.match_indices("old").map(|(at, _)| at).collect();
        let of_module: Vec<bool> = at.into_iter().map(|at| scopes.is_bound_by_module(at)).collect();
        assert_eq!(of_module, [true, false, false, true]);
    }

    #[test]
    fn an_alias_does_not_bind_the_imported_name() {
        assert_eq!(check("from m import old as x\nnew = x\n", &[1]), []);
        assert_eq!(check("from m import old\nnew = old\n", &[1, 2]), [(2, Bound)]);
    }

    #[test]
    fn keyword_arguments_of_one_call() {
        let text = "f(old=1, new=g(old=2))";
        assert_eq!(sibling_keywords(text, 2).unwrap()[0].0, "new");
        assert!(sibling_keywords(text, 15).unwrap().is_empty());
        assert!(sibling_keywords(text, 0).is_none());
    }
}
