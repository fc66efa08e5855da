//! Reading what a file tells of its names.

use std::collections::{BTreeMap, BTreeSet};

use tree_sitter::{Node, Tree};

use super::classes;
use super::facts::{Bound, Claim, Facts, Given, INFERRED, Origin, Reference, Role, Set, hash_of};
use super::narrowing::Narrowing;
use crate::python::outline::Span;
use crate::python::scopes::{Bindings, Scopes};
use crate::python::syntax::{self, children, text_of};

/// Reads a text, which may be that of a stub.
pub(super) fn read(text: &str, is_stub: bool) -> Facts {
    let tree = syntax::parse_now(text);
    if tree.root_node().has_error() {
        return Facts::default();
    }
    let scopes = Scopes::of_all(&tree, text);
    let mut reader = Reader {
        tree: &tree,
        text,
        is_stub,
        bindings: scopes.bindings_of_all(),
        stars: Vec::new(),
        class_at: BTreeMap::new(),
        set: BTreeMap::new(),
        type_parameters: BTreeSet::new(),
        narrowing: Narrowing::default(),
    };
    let classes = reader.look_around();
    let mut sets = Sets::default();
    let (mut hanging, mut decorated) = (Vec::new(), Vec::new());
    syntax::preorder(tree.root_node(), |node| {
        let mut hangs = |token: Option<Node<'_>>, claims: Option<Vec<Claim>>| {
            let start = token.and_then(|token| u32::try_from(token.start_byte()).ok());
            hanging.extend(start.map(|start| (start, sets.number(claims))));
        };
        match node.kind() {
            "attribute" => {
                let object = node.child_by_field_name("object");
                let claims = object.and_then(|object| reader.object(object));
                hangs(node.child_by_field_name("attribute"), claims);
            }
            "keyword_argument" => {
                let claims = called(node).and_then(|function| reader.claims(function, Role::Called));
                hangs(node.child_by_field_name("name"), claims);
            }
            // Which members of a class they are.
            "keyword_pattern" => hangs(children(node).find(|part| part.kind() == "identifier"), None),
            // The modules of an import are files; elsewhere it is an attribute.
            "dotted_name" => {
                let claims = is_module(node).then(Vec::new);
                children(node).skip(1).for_each(|token| hangs(Some(token), claims.clone()));
            }
            "decorated_definition" if !is_stub => {
                let definition = node.child_by_field_name("definition");
                let function = definition.filter(|definition| definition.kind() == "function_definition");
                let name = function.and_then(|function| function.child_by_field_name("name"));
                let start = name.and_then(|name| u32::try_from(name.start_byte()).ok());
                decorated.extend(start.map(|start| (start, sets.number(reader.decorators(node)))));
            }
            _ => {}
        }
        true
    });
    decorated.retain(|(_, number)| *number != 0);
    // An attribute comes before what is in its object.
    hanging.sort_unstable();
    let top = reader.top();
    let mut elsewhere: Vec<u64> = reader.bindings.elsewhere().map(hash_of).collect();
    elsewhere.sort_unstable();
    let set = reader.set.iter().map(|(name, places)| (hash_of(name), reader.only_set(places))).collect();
    let classes = classes.into_iter().map(|class| classes::read(&reader, class)).collect();
    Facts {
        hanging: Some(hanging),
        decorated,
        claims: sets.all,
        classes,
        set,
        elsewhere,
        top,
        stars: reader.stars,
    }
}

/// Sets of claims, each once.
struct Sets {
    all: Vec<Vec<Claim>>,
    known: BTreeMap<Vec<Claim>, u32>,
}

impl Default for Sets {
    fn default() -> Self {
        Self { all: vec![Vec::new()], known: BTreeMap::from([(Vec::new(), 0)]) }
    }
}

impl Sets {
    fn number(&mut self, claims: Option<Vec<Claim>>) -> u32 {
        let Some(mut claims) = claims else { return INFERRED };
        claims.sort_unstable();
        claims.dedup();
        if let Some(number) = self.known.get(&claims) {
            return *number;
        }
        let number = u32::try_from(self.all.len()).unwrap_or(INFERRED);
        self.all.push(claims.clone());
        self.known.insert(claims, number);
        number
    }
}

/// What is called with a keyword argument. The keyword arguments of a class belong to what its bases say.
fn called(argument: Node<'_>) -> Option<Node<'_>> {
    let call = argument.parent()?.parent().filter(|call| call.kind() == "call")?;
    call.child_by_field_name("function")
}

/// A text while it is read.
pub(super) struct Reader<'r> {
    tree: &'r Tree,
    pub(super) text: &'r str,
    pub(super) is_stub: bool,
    bindings: Bindings<'r>,
    /// The modules of the file's `import *`.
    stars: Vec<Origin>,
    /// The classes by the offset of their names.
    class_at: BTreeMap<usize, u32>,
    /// The attributes that something is assigned to, of whatever it is, and where.
    set: BTreeMap<&'r str, Vec<Node<'r>>>,
    /// The names of type parameters, wherever they are.
    type_parameters: BTreeSet<&'r str>,
    narrowing: Narrowing,
}

impl<'r> Reader<'r> {
    /// Notes what has to be known before anything can be told. The classes, in source order.
    fn look_around(&mut self) -> Vec<Node<'r>> {
        let mut classes = Vec::new();
        let root = self.tree.root_node();
        syntax::preorder(root, |node| {
            match node.kind() {
                "wildcard_import" => {
                    let module = node.parent().and_then(|statement| module_of(statement, self.text));
                    self.stars.extend(module);
                }
                "class_definition" => {
                    let number = u32::try_from(classes.len()).unwrap_or(u32::MAX);
                    let name = node.child_by_field_name("name");
                    self.class_at.extend(name.map(|name| (name.start_byte(), number)));
                    classes.push(node);
                }
                "assignment" | "augmented_assignment" | "for_statement" | "for_in_clause" => {
                    self.set_in(node.child_by_field_name("left"));
                }
                "as_pattern_target" | "delete_statement" => self.set_in(Some(node)),
                "identifier" if is_type_parameter(node) => {
                    self.type_parameters.insert(text_of(node, self.text));
                }
                _ => {}
            }
            true
        });
        self.narrowing = Narrowing::read(self, root);
        classes
    }

    fn set_in(&mut self, target: Option<Node<'r>>) {
        let Some(target) = target else { return };
        syntax::preorder(target, |part| {
            if part.kind() == "attribute"
                && let Some(name) = part.child_by_field_name("attribute")
            {
                self.set.entry(text_of(name, self.text)).or_default().push(part);
            }
            !matches!(part.kind(), "attribute" | "subscript" | "call")
        });
    }

    /// What the names of the module are bound to.
    fn top(&self) -> BTreeMap<String, Vec<Bound>> {
        let mut top = BTreeMap::new();
        for (name, spans) in self.bindings.of_module() {
            let tokens = spans.and_then(|spans| spans.iter().map(|span| self.token(span)).collect());
            top.insert(name.to_owned(), self.bound_by(tokens, |_, _| None));
        }
        top
    }

    /// What all the tokens that bind a name bind it to, or what `else` says.
    pub(super) fn bound_by(
        &self,
        tokens: Option<Vec<Node<'r>>>,
        or: impl Fn(&Self, Node<'r>) -> Option<Bound>,
    ) -> Vec<Bound> {
        let known = tokens.filter(|tokens| tokens.len() == 1 || self.is_stub);
        let bound = |token| match self.bound(token) {
            Bound::Unknown => or(self, token).unwrap_or(Bound::Unknown),
            bound => bound,
        };
        known.map_or_else(|| vec![Bound::Unknown], |tokens| tokens.into_iter().map(bound).collect())
    }

    /// What a name of a class is another name of.
    pub(super) fn alias(&self, token: Node<'r>) -> Option<Bound> {
        let assignment = token.parent().filter(|parent| parent.kind() == "assignment")?;
        let value = self.plain_value(assignment, token)?;
        let is_name = matches!(value.kind(), "identifier" | "attribute");
        let mut named = self.references(value).filter(|_| is_name)?.into_iter();
        named.next().filter(|_| named.next().is_none()).map(Bound::Alias)
    }

    /// What is assigned to the attributes of a name, where that is one place, in a method, and on what the method is called on.
    fn only_set(&self, places: &[Node<'r>]) -> Option<Box<Set>> {
        let [place] = places else { return None };
        let assignment = place.parent().filter(|parent| parent.kind() == "assignment")?;
        let object = place.child_by_field_name("object").filter(|object| object.kind() == "identifier")?;
        // One whose decorators have to be looked at may be given no object.
        let (class, _) = self.around_method(object).filter(|(_, binders)| binders.is_empty())?;
        let bound = match self.assigned(assignment, *place)? {
            Reference::Made(class, Given::Nothing) => Bound::Made(*class, Given::Nothing),
            Reference::Display => Bound::Display,
            _ => return None,
        };
        Some(Box::new(Set { class, bound }))
    }

    fn bound(&self, token: Node<'r>) -> Bound {
        match self.bound_reference(token) {
            Some(Reference::Class(number)) => Bound::Class(number),
            Some(Reference::Function) => Bound::Function,
            Some(Reference::Import(origin)) => Bound::Import(origin),
            Some(Reference::Made(class, given)) => Bound::Made(*class, given),
            Some(Reference::Display) => Bound::Display,
            _ if self.is_stub && is_annotated(token) => Bound::Typed,
            _ => Bound::Unknown,
        }
    }

    fn token(&self, span: &std::ops::Range<usize>) -> Option<Node<'r>> {
        self.tree.root_node().descendant_for_byte_range(span.start, span.end)
    }

    /// The tokens that bind a name, as it is seen from where it stands.
    pub(super) fn tokens(&self, name: Node<'_>) -> Option<Vec<Node<'r>>> {
        self.bindings.of(name.start_byte())?.iter().map(|span| self.token(span)).collect()
    }

    /// The names that are bound in the scope of a class's body, and the tokens that do it.
    pub(super) fn bound_in(&self, body: Node<'_>) -> Vec<(&'r str, Option<Vec<Node<'r>>>)> {
        let tokens = |spans: &[&Span]| spans.iter().map(|span| self.token(span)).collect();
        let bound = self.bindings.of_class(&body.byte_range());
        bound.into_iter().map(|(name, spans)| (name, tokens(spans))).collect()
    }

    /// What makes that the type of an attribute's object is declared; `None` where it is not.
    fn object(&self, object: Node<'r>) -> Option<Vec<Claim>> {
        match object.kind() {
            "string" | "concatenated_string" | "integer" | "float" => Some(Vec::new()),
            // What follows the class around the method.
            "call" => {
                let function = object.child_by_field_name("function")?;
                let is_bare = object.child_by_field_name("arguments")?.named_child_count() == 0;
                let is_super = function.kind() == "identifier" && text_of(function, self.text) == "super";
                let is_builtin = |reference: &Reference| matches!(reference, Reference::Builtin);
                let follows = is_bare && is_super && self.references(function)?.iter().any(is_builtin);
                let mut around = std::iter::successors(object.parent(), Node::parent);
                let class = around.find(|node| node.kind() == "class_definition").filter(|_| follows);
                Some(vec![(Reference::Around(self.class(class?)?, Vec::new()), Role::Object)])
            }
            "identifier" => match self.around_method(object) {
                Some((class, binders)) => Some(vec![(Reference::Around(class, binders), Role::Object)]),
                None => self.claims(object, Role::Object),
            },
            "attribute" => self.claims(object, Role::Object),
            _ => None,
        }
    }

    /// What makes that something that is referred to is declared.
    fn claims(&self, expression: Node<'r>, role: Role) -> Option<Vec<Claim>> {
        let references = self.references(expression)?;
        let needs_proof = |reference: &Reference| {
            !matches!(reference, Reference::Function | Reference::Builtin | Reference::Display)
        };
        Some(references.into_iter().filter(needs_proof).map(|reference| (reference, role)).collect())
    }

    /// What makes that what decorators make of a function is declared.
    fn decorators(&self, decorated: Node<'r>) -> Option<Vec<Claim>> {
        let mut claims = Vec::new();
        for decorator in children(decorated).filter(|part| part.kind() == "decorator") {
            let made = children(decorator).find(|part| part.kind() != "comment")?;
            let last = text_of(made.child_by_field_name("attribute").unwrap_or(made), self.text);
            // It may be told in place of a function that became it.
            (last != "overload").then_some(())?;
            // `@x.setter` is a builtin's, however `x` came to be.
            if made.kind() != "attribute" || !matches!(last, "setter" | "getter" | "deleter") {
                let function = made.child_by_field_name("function").unwrap_or(made);
                claims.extend(self.claims(function, Role::Decorator)?);
                // The decorators of the file itself are no stub's.
                (!self.references(function)?.contains(&Reference::Function)).then_some(())?;
            }
        }
        Some(claims)
    }

    /// What a name or a dotted name may refer to, all of it; `None` where that is not known.
    pub(super) fn references(&self, expression: Node<'_>) -> Option<Vec<Reference>> {
        /// How many names a dotted one may have.
        const MOST: usize = 8;
        let mut names = Vec::new();
        let mut at = expression;
        while at.kind() == "attribute" {
            let name = text_of(at.child_by_field_name("attribute")?, self.text);
            // What was assigned to it here is what it is from then on.
            (!self.narrowing.tests(name) && names.len() < MOST).then_some(())?;
            names.push(name);
            at = at.child_by_field_name("object")?;
        }
        (at.kind() == "identifier").then_some(())?;
        if names.is_empty() {
            return self.named(at);
        }
        names.reverse();
        let around = self.around_method(at).map(|(class, binders)| Reference::Around(class, binders));
        // What is set on the class around is asked of the class.
        let others = &names[usize::from(around.is_some())..];
        (!others.iter().any(|name| self.set.contains_key(name))).then_some(())?;
        let path = || names.iter().map(|name| (*name).to_owned());
        let of = around.map_or_else(|| self.named(at), |around| Some(vec![around]))?;
        let of = of.into_iter().map(|reference| match reference {
            Reference::Import(mut origin) => {
                origin.names.extend(path());
                Some(Reference::Import(origin))
            }
            Reference::Class(_) | Reference::Around(..) | Reference::Made(..) => {
                Some(Reference::Path(Box::new(reference), path().collect()))
            }
            _ => None,
        });
        of.collect()
    }

    /// What a name may refer to. Which of several places binds it, and whether the one in a branch does, may hang on what is
    /// inferred never to return.
    fn named(&self, name: Node<'_>) -> Option<Vec<Reference>> {
        let word = text_of(name, self.text);
        let tokens = self.tokens(name)?;
        let mut found: Vec<Reference> = match tokens[..] {
            [] if word.starts_with("__") || self.type_parameters.contains(word) => return None,
            [] => vec![Reference::Builtin],
            [token] => vec![self.bound_reference(token).filter(|reference| {
                let may_be_instance = matches!(reference, Reference::Made(..) | Reference::Import(_));
                !(self.narrowing.has(token) || may_be_instance && self.narrowing.has_part(token))
            })?],
            _ if self.is_stub => {
                tokens.into_iter().map(|token| self.bound_reference(token)).collect::<Option<_>>()?
            }
            _ => return None,
        };
        if !self.stars.is_empty() {
            found.push(Reference::Star(word.to_owned()));
        }
        Some(found)
    }

    /// The number of a class.
    fn class(&self, definition: Node<'_>) -> Option<u32> {
        self.class_at.get(&definition.child_by_field_name("name")?.start_byte()).copied()
    }

    /// What a token binds its name to, where that is a class, a function, an import or an instance.
    fn bound_reference(&self, token: Node<'r>) -> Option<Reference> {
        let parent = token.parent()?;
        match parent.kind() {
            "class_definition" | "function_definition" => {
                let outer = parent.parent()?;
                let is_decorated = outer.kind() == "decorated_definition";
                let statement = if is_decorated { outer } else { parent };
                let is_its = parent.child_by_field_name("name") == Some(token) && self.is_sure(statement);
                is_its.then_some(())?;
                if parent.kind() == "class_definition" {
                    return self.class(parent).map(Reference::Class);
                }
                // A decorator makes anything of what it is given; in a stub it is one that is declared.
                (self.is_stub || !is_decorated).then_some(Reference::Function)
            }
            "assignment" => self.assigned(parent, token),
            _ => self.imported(token).map(Reference::Import),
        }
    }

    /// Whether a statement is run whenever what is around it is.
    fn is_sure(&self, statement: Node<'_>) -> bool {
        // The branches of a stub are decided by versions.
        self.is_stub
            || statement.parent().is_some_and(|around| match around.kind() {
                "module" => true,
                "block" => around
                    .parent()
                    .is_some_and(|outer| matches!(outer.kind(), "function_definition" | "class_definition")),
                _ => false,
            })
    }

    /// The only value that an assignment surely gives a name or an attribute, whose type is not written beside it.
    fn plain_value(&self, assignment: Node<'r>, target: Node<'r>) -> Option<Node<'r>> {
        let is_plain = assignment.child_by_field_name("left") == Some(target)
            && assignment.child_by_field_name("type").is_none();
        let value = assignment.child_by_field_name("right").filter(|_| is_plain)?;
        let statement = assignment.parent()?;
        let after = self.text[assignment.end_byte()..].lines().next().unwrap_or_default();
        (self.is_sure(statement) && !after.contains("type:")).then_some(value)
    }

    /// What an assignment gives a name or an attribute, where that is a display or an instance.
    fn assigned(&self, assignment: Node<'r>, target: Node<'r>) -> Option<Reference> {
        let value = self.plain_value(assignment, target)?;
        match value.kind() {
            "call" => self.made(value),
            "string" | "integer" | "float" => Some(Reference::Display),
            "list" | "set" => children(value).all(is_constant).then_some(Reference::Display),
            "dictionary" => {
                let is_pair = |pair: Node<'_>| pair.kind() == "pair" && children(pair).all(is_constant);
                children(value).all(is_pair).then_some(Reference::Display)
            }
            _ => None,
        }
    }

    /// What a call makes, where what is called is neither made by a call nor bound by itself.
    fn made(&self, call: Node<'r>) -> Option<Reference> {
        let function = call.child_by_field_name("function")?;
        let first =
            std::iter::successors(Some(function), |node| node.child_by_field_name("object")).last()?;
        let is_statement =
            |token: &Node<'_>| token.parent().is_some_and(|parent| parent.kind() == "assignment");
        (!self.tokens(first)?.iter().any(is_statement)).then_some(())?;
        let mut called = self.references(function)?.into_iter();
        let only = called.next().filter(|_| called.next().is_none())?;
        let given = call.child_by_field_name("arguments")?;
        let given = if given.named_child_count() == 0 { Given::Nothing } else { Given::Something };
        if only == Reference::Builtin {
            let makes_empty = matches!(text_of(function, self.text), "list" | "dict" | "set");
            return (makes_empty && given == Given::Nothing).then_some(Reference::Display);
        }
        Some(Reference::Made(Box::new(only), given))
    }

    /// The class around a method, where a name is that of the method's first parameter.
    fn around_method(&self, name: Node<'_>) -> Option<(u32, Vec<Reference>)> {
        let tokens = self.tokens(name)?;
        let [token] = tokens[..] else { return None };
        let list = token.parent().filter(|list| list.kind() == "parameters")?;
        let function = list.parent()?;
        let is_first = children(list).find(|part| part.kind() != "comment") == Some(token);
        let body = function.child_by_field_name("body")?;
        let first = children(body).find(|part| part.kind() != "comment")?;
        let head = self.text.get(list.end_byte()..first.start_byte())?;
        let is_bound = is_first && !self.narrowing.has_part_of_self(token) && !head.contains("type:");
        let decorated = function.parent().filter(|outer| outer.kind() == "decorated_definition");
        let decorators = decorated.into_iter().flat_map(children).filter(|part| part.kind() == "decorator");
        // A static method has no object of its own; what else decorators make plays no part inside.
        let mut binders = Vec::new();
        for decorator in decorators {
            (is_bound && !text_of(decorator, self.text).contains("static")).then_some(())?;
            let made = children(decorator).find(|part| part.kind() != "comment")?;
            let last = made.child_by_field_name("attribute").map(|last| text_of(last, self.text));
            if !matches!(last, Some("setter" | "getter" | "deleter")) {
                let binder = self.references(made.child_by_field_name("function").unwrap_or(made))?;
                let needs_proof =
                    |binder: &Reference| !matches!(binder, Reference::Builtin | Reference::Function);
                binders.extend(binder.into_iter().filter(needs_proof));
            }
        }
        is_bound.then_some(())?;
        let mut around = std::iter::successors(function.parent(), Node::parent);
        let around = around
            .find(|node| matches!(node.kind(), "function_definition" | "lambda" | "class_definition"))?;
        Some((self.class(around)?, binders))
    }

    /// What a token that binds a name imports.
    fn imported(&self, token: Node<'_>) -> Option<Origin> {
        let dotted = |node| syntax::dotted_name(node, self.text);
        let name = token.parent()?;
        let (whole, is_alias) = match name.kind() {
            "aliased_import" => (name.child_by_field_name("name")?, true),
            "dotted_name" => (name, false),
            _ => return None,
        };
        let mut around = std::iter::successors(token.parent(), Node::parent).take(3);
        let statement = around.find(|node| node.kind().starts_with("import_"))?;
        self.is_sure(statement).then_some(())?;
        if statement.kind() == "import_statement" {
            // `import a.b` binds `a`.
            let module = if is_alias { dotted(whole) } else { text_of(token, self.text).to_owned() };
            return Some(Origin { level: 0, module, names: Vec::new() });
        }
        let module = module_of(statement, self.text)?;
        Some(Origin { names: vec![dotted(whole)], ..module })
    }
}

/// Whether a variable's type is written beside it.
fn is_annotated(token: Node<'_>) -> bool {
    token.parent().is_some_and(|parent| {
        parent.kind() == "assignment"
            && parent.child_by_field_name("left") == Some(token)
            && parent.child_by_field_name("type").is_some()
    })
}

/// The module that `from … import` takes names from.
fn module_of(statement: Node<'_>, text: &str) -> Option<Origin> {
    let dotted = |node| syntax::dotted_name(node, text);
    let from = statement.child_by_field_name("module_name")?;
    let (level, module) = match from.kind() {
        "relative_import" => {
            let dots = children(from).find(|part| part.kind() == "import_prefix")?;
            let named = children(from).find(|part| part.kind() == "dotted_name");
            let level = text_of(dots, text).bytes().filter(|byte| *byte == b'.').count();
            (level, named.map(dotted).unwrap_or_default())
        }
        _ => (0, dotted(from)),
    };
    Some(Origin { level, module, names: Vec::new() })
}

/// Whether a dotted name is that of a module in an import.
fn is_module(dotted: Node<'_>) -> bool {
    let mut around = std::iter::successors(dotted.parent(), Node::parent);
    let around = around.find(|node| !matches!(node.kind(), "aliased_import" | "relative_import"));
    around.is_some_and(|statement| statement.kind().starts_with("import_"))
}

/// Whether an identifier names a type parameter: `T` in `def f[T: A]()`.
fn is_type_parameter(name: Node<'_>) -> bool {
    let mut around = std::iter::successors(name.parent(), Node::parent).take(6);
    around.any(|node| {
        let owner = node.parent().filter(|_| node.kind() == "type_parameter");
        owner.is_some_and(|owner| {
            matches!(owner.kind(), "function_definition" | "class_definition" | "type_alias_statement")
        })
    })
}

/// Whether an expression is written out.
pub(super) fn is_constant(expression: Node<'_>) -> bool {
    matches!(expression.kind(), "none" | "true" | "false" | "integer" | "float" | "string")
}
