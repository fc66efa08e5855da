//! Reading what a file tells of its names.

use std::collections::{BTreeMap, BTreeSet};

use tree_sitter::{Node, Tree};

use super::classes;
use super::facts::{Bound, Claim, Facts, INFERRED, Origin, Reference, Role};
use super::narrowing::Narrowing;
use crate::resolve::scopes::{Bindings, Scopes};
use crate::resolve::syntax::{self, children, text_of};

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
        set: BTreeSet::new(),
        narrowing: Narrowing::default(),
    };
    let classes = reader.look_around();
    let mut sets = Sets::default();
    let mut hanging = Vec::new();
    // What only others refer to has no names that somebody asks for here.
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
                let claims = called(node).and_then(|function| reader.claims(function, &Role::Called));
                hangs(node.child_by_field_name("name"), claims);
            }
            // Which members of a class they are; which of a module's files.
            "keyword_pattern" => hangs(node.named_child(0), None),
            "dotted_name" => children(node).skip(1).for_each(|token| hangs(Some(token), None)),
            _ => {}
        }
        true
    });
    // An attribute comes before what is in its object.
    hanging.sort_unstable();
    let top = reader.top();
    let classes = classes.into_iter().map(|class| classes::read(&reader, class)).collect();
    Facts { hanging: Some(hanging), claims: sets.all, classes, top, stars: reader.stars }
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
    /// The attributes that something is assigned to, of whatever it is.
    set: BTreeSet<&'r str>,
    narrowing: Narrowing<'r>,
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
                _ => {}
            }
            true
        });
        let mut narrowing = Narrowing::default();
        syntax::preorder(root, |node| {
            narrowing.note(self, node);
            true
        });
        self.narrowing = narrowing;
        classes
    }

    fn set_in(&mut self, target: Option<Node<'r>>) {
        let Some(target) = target else { return };
        syntax::preorder(target, |part| {
            if part.kind() == "attribute" {
                let name = part.child_by_field_name("attribute");
                self.set.extend(name.map(|name| text_of(name, self.text)));
            }
            !matches!(part.kind(), "attribute" | "subscript" | "call")
        });
    }

    /// What the names of the module are bound to. What is known of none binds anything.
    fn top(&self) -> BTreeMap<String, Vec<Bound>> {
        let mut top = BTreeMap::new();
        for (name, spans) in self.bindings.of_module() {
            let tokens = spans.map(|spans| spans.iter().filter_map(|span| self.token(span)));
            let bound = tokens.map(|tokens| tokens.map(|token| self.bound(token)).collect());
            top.insert(name.to_owned(), bound.unwrap_or_else(|| vec![Bound::Unknown]));
        }
        top
    }

    fn bound(&self, token: Node<'r>) -> Bound {
        match self.bound_reference(token) {
            Some(Reference::Class(number)) => Bound::Class(number),
            Some(Reference::Function) => Bound::Function,
            Some(Reference::Import(origin)) => Bound::Import(origin),
            Some(Reference::Made(class, is_bare)) => Bound::Made(*class, is_bare),
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
                Some(vec![(Reference::Around(self.class(class?)?), Role::Object)])
            }
            "identifier" => {
                let parameter = self.tokens(object).filter(|tokens| tokens.len() == 1);
                match parameter.and_then(|tokens| self.parameter(tokens[0])) {
                    Some(mut claims) => {
                        claims.extend(self.narrowed(object)?);
                        Some(claims)
                    }
                    None => self.claims(object, &Role::Object),
                }
            }
            "attribute" => self.claims(object, &Role::Object),
            _ => None,
        }
    }

    /// What makes that something that is referred to is declared.
    fn claims(&self, expression: Node<'r>, role: &Role) -> Option<Vec<Claim>> {
        let mut claims: Vec<Claim> =
            self.references(expression)?.into_iter().map(|reference| (reference, role.clone())).collect();
        claims.extend(self.narrowed(expression)?);
        claims.retain(|(reference, _)| !matches!(reference, Reference::Function | Reference::Builtin));
        Some(claims)
    }

    /// What makes that what a name is compared with does not make its type one that is inferred.
    fn narrowed(&self, expression: Node<'r>) -> Option<Vec<Claim>> {
        let mut claims = Vec::new();
        for by in self.narrowing.of(self, expression) {
            for reference in self.references((*by)?)? {
                claims.push((reference, Role::Object));
            }
        }
        claims.retain(|(reference, _)| !matches!(reference, Reference::Function | Reference::Builtin));
        Some(claims)
    }

    /// What a name or a dotted name may refer to, all of it; `None` where that is not known.
    pub(super) fn references(&self, expression: Node<'_>) -> Option<Vec<Reference>> {
        match expression.kind() {
            "identifier" => {
                let tokens = self.tokens(expression)?;
                let is_free = tokens.is_empty().then_some(Some(Reference::Builtin));
                let name = || text_of(expression, self.text).to_owned();
                let star = (!self.stars.is_empty()).then(|| Some(Reference::Star(name())));
                let bound = tokens.into_iter().map(|token| self.bound_reference(token));
                bound.chain(is_free).chain(star).collect()
            }
            "attribute" => {
                let name = text_of(expression.child_by_field_name("attribute")?, self.text);
                let of = self.references(expression.child_by_field_name("object")?)?;
                // What was assigned to it here is what it is from then on.
                (!self.set.contains(name)).then_some(())?;
                let of = of.into_iter().map(|reference| match reference {
                    Reference::Import(mut origin) => {
                        origin.names.push(name.to_owned());
                        Some(Reference::Import(origin))
                    }
                    _ => None,
                });
                of.collect()
            }
            _ => None,
        }
    }

    /// The number of a class.
    fn class(&self, definition: Node<'_>) -> Option<u32> {
        self.class_at.get(&definition.child_by_field_name("name")?.start_byte()).copied()
    }

    /// What a token binds its name to, where that is a class, a function or an import.
    fn bound_reference(&self, token: Node<'r>) -> Option<Reference> {
        let parent = token.parent()?;
        match parent.kind() {
            "class_definition" | "function_definition" => {
                (parent.child_by_field_name("name") == Some(token)).then_some(())?;
                if parent.kind() == "class_definition" {
                    return self.class(parent).map(Reference::Class);
                }
                // A decorator makes anything of what it is given; in a stub it is one that is declared.
                let is_decorated =
                    parent.parent().is_some_and(|outer| outer.kind() == "decorated_definition");
                (self.is_stub || !is_decorated).then_some(Reference::Function)
            }
            "assignment" => self.made(parent, token),
            _ => imported(token, self.text).map(Reference::Import),
        }
    }

    /// The instance that an assignment binds a name to, where what is called is neither made by a call nor bound by itself.
    fn made(&self, assignment: Node<'r>, name: Node<'r>) -> Option<Reference> {
        let is_plain = assignment.child_by_field_name("left") == Some(name)
            && assignment.child_by_field_name("type").is_none();
        let call =
            assignment.child_by_field_name("right").filter(|right| is_plain && right.kind() == "call")?;
        let function = call.child_by_field_name("function")?;
        let first =
            std::iter::successors(Some(function), |node| node.child_by_field_name("object")).last()?;
        let is_statement =
            |token: &Node<'_>| token.parent().is_some_and(|parent| parent.kind() == "assignment");
        (!self.tokens(first)?.iter().any(is_statement)).then_some(())?;
        let mut called = self.references(function)?.into_iter();
        let only = called.next().filter(|_| called.next().is_none())?;
        let given = call.child_by_field_name("arguments")?;
        Some(Reference::Made(Box::new(only), given.named_child_count() == 0))
    }

    /// What makes that the type of a parameter is declared; `None` where it is none whose type is.
    fn parameter(&self, token: Node<'r>) -> Option<Vec<Claim>> {
        let parameter = parameter_of(token)?;
        is_typed(parameter).then_some(())?;
        if let Some(annotation) = parameter.child_by_field_name("type") {
            return self.annotation(annotation);
        }
        let list = parameter.parent()?;
        let function = list.parent()?;
        let Some(class) = class_around(function) else { return Some(Vec::new()) };
        let class = Reference::Around(self.class(class)?);
        let is_first = children(list).next() == Some(parameter);
        let mut claims = vec![(class.clone(), Role::Object)];
        if !is_first || is_static(function, self.text) {
            let method = text_of(function.child_by_field_name("name")?, self.text);
            claims.push((class, Role::Parameter(method.to_owned())));
        }
        Some(claims)
    }

    /// What makes that everything that an annotation names is declared.
    fn annotation(&self, annotation: Node<'r>) -> Option<Vec<Claim>> {
        let mut claims = Some(Vec::new());
        syntax::preorder(annotation, |part| match part.kind() {
            "identifier" | "attribute" => {
                let more = self.references(part);
                claims = claims.take().zip(more).map(|(mut claims, more)| {
                    claims.extend(more.into_iter().map(|reference| (reference, Role::Object)));
                    claims
                });
                false
            }
            "type" | "generic_type" | "type_parameter" | "union_type" | "subscript" | "binary_operator"
            | "list" | "none" | "ellipsis" | "|" | "[" | "]" | "," => true,
            _ => {
                claims = None;
                false
            }
        });
        claims.map(|mut claims| {
            claims.retain(|(reference, _)| !matches!(reference, Reference::Builtin));
            claims
        })
    }

    /// Whether a name is that of a parameter whose type nothing has to be inferred for.
    pub(super) fn is_parameter(&self, name: Node<'_>) -> bool {
        let tokens = self.tokens(name).unwrap_or_default();
        tokens.len() == 1 && parameter_of(tokens[0]).is_some_and(is_typed)
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

/// What a token that binds a name imports.
fn imported(token: Node<'_>, text: &str) -> Option<Origin> {
    let dotted = |node| syntax::dotted_name(node, text);
    let name = token.parent()?;
    let (whole, is_alias) = match name.kind() {
        "aliased_import" => (name.child_by_field_name("name")?, true),
        "dotted_name" => (name, false),
        _ => return None,
    };
    let mut around = std::iter::successors(token.parent(), Node::parent).take(3);
    let statement = around.find(|node| node.kind().starts_with("import_"))?;
    if statement.kind() == "import_statement" {
        // `import a.b` binds `a`.
        let module = if is_alias { dotted(whole) } else { text_of(token, text).to_owned() };
        return Some(Origin { level: 0, module, names: Vec::new() });
    }
    let module = module_of(statement, text)?;
    Some(Origin { names: vec![dotted(whole)], ..module })
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

/// The parameter of a `def` that a token names.
fn parameter_of(token: Node<'_>) -> Option<Node<'_>> {
    let parent = token.parent()?;
    let parameter = if parent.kind() == "parameters" { token } else { parent };
    (parameter.parent()?.kind() == "parameters").then_some(parameter)
}

/// Whether nothing has to be inferred for the type of a parameter, as far as its function tells: an annotated one, one that
/// may be anything, or one with a constant for a default.
pub(super) fn is_typed(parameter: Node<'_>) -> bool {
    /// Defaults that are of one type.
    const CONSTANTS: [&str; 6] = ["none", "true", "false", "integer", "float", "string"];
    match parameter.kind() {
        "identifier" => true,
        // `*a: B` is a tuple of them.
        "typed_parameter" => parameter.named_child(0).is_some_and(|name| name.kind() == "identifier"),
        "typed_default_parameter" => true,
        "default_parameter" => {
            parameter.child_by_field_name("value").is_some_and(|default| CONSTANTS.contains(&default.kind()))
        }
        _ => false,
    }
}

/// The class of whose body a function is a statement.
fn class_around(function: Node<'_>) -> Option<Node<'_>> {
    let mut around = std::iter::successors(function.parent(), Node::parent);
    around
        .find(|node| {
            !matches!(
                node.kind(),
                "block"
                    | "decorated_definition"
                    | "if_statement"
                    | "else_clause"
                    | "elif_clause"
                    | "try_statement"
                    | "except_clause"
                    | "finally_clause"
                    | "with_statement"
                    | "for_statement"
                    | "while_statement"
            )
        })
        .filter(|node| node.kind() == "class_definition")
}

fn is_static(function: Node<'_>, text: &str) -> bool {
    let decorated = function.parent().filter(|outer| outer.kind() == "decorated_definition");
    decorated.is_some_and(|outer| {
        children(outer).any(|part| part.kind() == "decorator" && text_of(part, text).contains("staticmethod"))
    })
}
