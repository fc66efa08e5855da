//! A Python text as the guards see it: definitions, statements as lists of tokens, comments, annotations.
//!
//! Made by one walk over the syntax tree, which is then dropped. Comments are no tokens and a text is one, so that code that
//! was commented out or wrapped in quotes is gone.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use tree_sitter::{Node, Parser, TreeCursor};

/// How deep blocks may be nested before the rest is left out. Python itself ends at 100.
const DEEPEST: usize = 120;

/// A Python text.
#[derive(Debug, Default)]
pub struct Code {
    /// Whether the parser found an error.
    pub has_error: bool,
    /// Functions and classes.
    pub symbols: Vec<Symbol>,
    /// Statements, and the heads of those that have a block.
    pub statements: Vec<Statement>,
    /// Comments with their text.
    pub comments: Vec<(Range<usize>, String)>,
    /// How often each name that launders a type, or runs or looks up code by a text, stands in the code.
    pub escapes: Escapes,
    /// What is annotated, and what could be: by definition and name.
    pub slots: BTreeMap<(String, String), Option<String>>,
}

/// A function or a class.
#[derive(Debug, Clone)]
pub struct Symbol {
    /// Dotted, from the module on.
    pub name: String,
    /// Whether it is a class.
    pub is_class: bool,
    /// All of it, decorators included.
    pub span: Range<usize>,
    /// Whether its body does nothing.
    pub is_empty: bool,
    /// Whether nothing is expected of its body: abstract, overloaded, in a protocol.
    pub is_declaration: bool,
    /// The last names of its decorators with their places.
    pub decorators: Vec<(String, Range<usize>)>,
}

/// A statement, or the head of one that has a block.
#[derive(Debug, Clone)]
pub struct Statement {
    /// Where it is, without its block.
    pub span: Range<usize>,
    /// The definition that it stands in.
    pub symbol: String,
    /// Its tokens; a text is one, whatever it says.
    pub tokens: Vec<String>,
    /// The identifiers that it uses: not those that it assigns or annotates with.
    pub uses: BTreeSet<String>,
    /// Every identifier in it.
    pub names: BTreeSet<String>,
    /// What kind of node it is.
    pub kind: String,
    /// Whether it does nothing: `pass`, `...`, a text, a constant, a `raise`, a `return` without anything to work out.
    pub is_empty: bool,
    /// Whether it stands below `if TYPE_CHECKING`.
    pub is_typing_only: bool,
}

impl Statement {
    /// The names that it calls.
    pub(super) fn verbs(&self) -> Vec<&str> {
        let pairs = self.tokens.windows(2).filter(|pair| pair[1] == "(" && self.names.contains(&pair[0]));
        pairs.map(|pair| pair[0].as_str()).collect()
    }
}

/// How often what could hide a type stands in the code.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Escapes {
    /// `Any`, `cast`, type guards, and whatever else gives a type without a reason.
    pub casts: u32,
    /// `exec`, `getattr` and the like.
    pub dynamic: u32,
}

const TYPING: [&str; 4] = ["typing", "typing_extensions", "_typeshed", "t"];
const CASTS: [&str; 10] = [
    "Any",
    "cast",
    "TypeGuard",
    "TypeIs",
    "Incomplete",
    "Unknown",
    "MaybeNone",
    "Unused",
    "type_check_only",
    "dataclass_transform",
];
/// Names that are nothing else wherever they come from.
const PLAIN_CASTS: [&str; 5] = ["Any", "TypeGuard", "TypeIs", "Incomplete", "MaybeNone"];
const DYNAMIC: [&str; 27] = [
    "exec",
    "eval",
    "compile",
    "__import__",
    "getattr",
    "setattr",
    "delattr",
    "globals",
    "locals",
    "vars",
    "import_module",
    "attrgetter",
    "methodcaller",
    "itemgetter",
    "SimpleNamespace",
    "Mock",
    "MagicMock",
    "AsyncMock",
    "NonCallableMock",
    "PropertyMock",
    "create_autospec",
    "run_module",
    "run_path",
    "runsource",
    "runcode",
    "execfile",
    "literal_eval",
];
const DYNAMIC_ATTRIBUTES: [&str; 14] = [
    "__dict__",
    "__getattribute__",
    "__getattr__",
    "__setattr__",
    "__delattr__",
    "__builtins__",
    "__globals__",
    "__code__",
    "__class__",
    "__subclasses__",
    "__import__",
    "__mro__",
    "__func__",
    "__wrapped__",
];
const DYNAMIC_DEFINITIONS: [&str; 3] = ["__getattr__", "__getattribute__", "__class_getitem__"];
const CLAUSES: [&str; 7] = [
    "elif_clause",
    "else_clause",
    "except_clause",
    "except_group_clause",
    "finally_clause",
    "case_clause",
    "block",
];

impl Code {
    /// Reads a text.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut parser = Parser::new();
        parser
            .set_language(&tree_sitter_python::LANGUAGE.into())
            .expect("because the grammar's version is one that this library reads; a test parses");
        let tree = parser.parse(text, None).expect("because a language is set and no cancellation is");
        let root = tree.root_node();
        let mut reader = Reader { text, code: Self::default(), aliases: BTreeMap::new() };
        reader.code.has_error = root.has_error();
        reader.imports(root);
        let place = Place { symbol: "", depth: 0, typing_only: false, declares: false };
        reader.block(root, &place);
        reader.leaves(root);
        reader.code
    }

    /// The definition that a place stands in; empty for the module.
    #[must_use]
    pub fn symbol_at(&self, offset: usize) -> &str {
        let around = self.symbols.iter().filter(|symbol| symbol.span.contains(&offset));
        around.max_by_key(|symbol| symbol.name.len()).map_or("", |symbol| &symbol.name)
    }

    /// The statement at a place, or the last one before it.
    #[must_use]
    pub fn statement_at(&self, offset: usize) -> Option<&Statement> {
        let holding = self.statements.iter().filter(|statement| statement.span.contains(&offset));
        holding
            .min_by_key(|statement| statement.span.len())
            .or_else(|| self.statements.iter().rfind(|statement| statement.span.start <= offset))
    }

    /// Whether a function or class of this name is there.
    #[must_use]
    pub fn has_symbol(&self, name: &str) -> bool {
        self.symbols.iter().any(|symbol| symbol.name == name)
    }
}

#[derive(Clone, Copy)]
struct Place<'p> {
    symbol: &'p str,
    depth: usize,
    typing_only: bool,
    /// Whether functions here need no body.
    declares: bool,
}

struct Reader<'t> {
    text: &'t str,
    code: Code,
    /// What imported names stand for.
    aliases: BTreeMap<&'t str, &'t str>,
}

fn children<'t>(node: Node<'t>) -> Vec<Node<'t>> {
    let mut cursor = node.walk();
    node.children(&mut cursor).collect()
}

/// Visits a node and all below it in source order; `enter` says whether to go below a node.
fn preorder<'t>(node: Node<'t>, mut enter: impl FnMut(Node<'t>) -> bool) {
    let mut cursor: TreeCursor<'t> = node.walk();
    loop {
        if enter(cursor.node()) && cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return;
            }
        }
    }
}

impl<'t> Reader<'t> {
    fn of(&self, node: Node<'_>) -> &'t str {
        self.text.get(node.byte_range()).unwrap_or_default()
    }

    /// What imported names stand for, wherever the import stands.
    fn imports(&mut self, root: Node<'_>) {
        let mut found = Vec::new();
        preorder(root, |node| {
            if node.kind() == "aliased_import"
                && let (Some(name), Some(alias)) =
                    (node.child_by_field_name("name"), node.child_by_field_name("alias"))
            {
                found.push((self.of(alias), self.of(name)));
            }
            true
        });
        // An alias may be made of an alias' name, but not of an alias.
        self.aliases = found.into_iter().collect();
    }

    fn block(&mut self, block: Node<'_>, place: &Place<'_>) {
        if place.depth > DEEPEST {
            return;
        }
        for node in children(block) {
            self.statement(node, place);
        }
    }

    fn statement(&mut self, node: Node<'_>, place: &Place<'_>) {
        match node.kind() {
            "comment" => {}
            "decorated_definition" => {
                let decorators: Vec<Node<'_>> =
                    children(node).into_iter().filter(|child| child.kind() == "decorator").collect();
                if let Some(definition) = node.child_by_field_name("definition") {
                    self.definition(definition, &decorators, node.byte_range(), place);
                }
            }
            "function_definition" | "class_definition" => {
                self.definition(node, &[], node.byte_range(), place);
            }
            _ if node.is_named() => self.plain(node, place),
            _ => {}
        }
    }

    fn definition(&mut self, node: Node<'_>, decorators: &[Node<'_>], span: Range<usize>, place: &Place<'_>) {
        let name = node.child_by_field_name("name").map_or("", |name| self.of(name));
        let whole =
            if place.symbol.is_empty() { name.to_owned() } else { format!("{}.{name}", place.symbol) };
        let is_class = node.kind() == "class_definition";
        let body = node.child_by_field_name("body");
        let decorators: Vec<(String, Range<usize>)> =
            decorators.iter().map(|decorator| (self.last_name(*decorator), decorator.byte_range())).collect();
        let declared = |name: &str| matches!(name, "abstractmethod" | "overload" | "abstractproperty");
        let bases = node.child_by_field_name("superclasses").map_or("", |bases| self.of(bases));
        let declares = is_class && ["Protocol", "ABC"].iter().any(|base| bases.contains(base));
        let is_declaration = place.declares || decorators.iter().any(|(name, _)| declared(name));
        let is_empty = body.is_some_and(|body| self.does_nothing(body));
        if DYNAMIC_DEFINITIONS.contains(&name) {
            self.code.escapes.dynamic += 1;
        }
        self.head(node, &whole, place);
        for (decorator, at) in &decorators {
            let tokens = vec!["@".to_owned(), decorator.clone()];
            let names = BTreeSet::from([decorator.clone()]);
            self.code.statements.push(Statement {
                span: at.clone(),
                symbol: whole.clone(),
                tokens,
                uses: names.clone(),
                names,
                kind: "decorator".to_owned(),
                is_empty: false,
                is_typing_only: place.typing_only,
            });
        }
        if !is_class {
            self.parameters(node, &whole);
        }
        self.code.symbols.push(Symbol {
            name: whole.clone(),
            is_class,
            span,
            is_empty,
            is_declaration,
            decorators,
        });
        if let Some(body) = body {
            let inner = Place { symbol: &whole, depth: place.depth + 1, declares, ..*place };
            self.block(body, &inner);
        }
    }

    /// The annotations of a function.
    fn parameters(&mut self, node: Node<'_>, name: &str) {
        let returned = node.child_by_field_name("return_type").map(|node| self.of(node).to_owned());
        self.code.slots.insert((name.to_owned(), "return".to_owned()), returned);
        let Some(parameters) = node.child_by_field_name("parameters") else { return };
        for parameter in children(parameters) {
            let annotation = parameter.child_by_field_name("type").map(|node| self.of(node).to_owned());
            let inner = match parameter.kind() {
                "identifier" | "list_splat_pattern" | "dictionary_splat_pattern" => Some(parameter),
                "typed_parameter" => parameter.named_child(0),
                "default_parameter" | "typed_default_parameter" => parameter.child_by_field_name("name"),
                _ => None,
            };
            if let Some(inner) = inner {
                let slot = (name.to_owned(), format!("({}", self.of(inner)));
                self.code.slots.insert(slot, annotation);
            }
        }
    }

    fn last_name(&self, decorator: Node<'_>) -> String {
        let text = self.of(decorator).trim_start_matches('@').split('(').next().unwrap_or_default();
        let last = text.rsplit('.').next().unwrap_or_default().trim();
        self.aliases.get(last).copied().unwrap_or(last).to_owned()
    }

    /// Whether a block does nothing.
    fn does_nothing(&self, block: Node<'_>) -> bool {
        let inner: Vec<Node<'_>> =
            children(block).into_iter().filter(|node| node.is_named() && node.kind() != "comment").collect();
        inner.iter().all(|node| self.is_empty(*node))
    }

    /// Whether a statement does nothing.
    fn is_empty(&self, node: Node<'_>) -> bool {
        match node.kind() {
            "pass_statement" | "raise_statement" | "continue_statement" | "break_statement" => true,
            "delete_statement" | "global_statement" | "nonlocal_statement" => true,
            "return_statement" => node.named_child(0).is_none_or(is_constant),
            "expression_statement" => {
                let words = self.of(node).split_whitespace().collect::<String>();
                node.named_child(0).is_none_or(|inner| is_constant(inner) || does_nothing(inner))
                    || ["sys.exit(", "exit(", "quit(", "os._exit(", "os.abort("]
                        .iter()
                        .any(|call| words.starts_with(call))
            }
            "assert_statement" => node.named_child(0).is_some_and(is_constant),
            _ => false,
        }
    }

    /// A statement that is no definition, and what is below it.
    fn plain(&mut self, node: Node<'_>, place: &Place<'_>) {
        self.head(node, place.symbol, place);
        self.annotation(node, place);
        let condition = node.child_by_field_name("condition").map_or("", |node| self.of(node));
        let typing_only =
            place.typing_only || (node.kind() == "if_statement" && condition.contains("TYPE_CHECKING"));
        for child in children(node) {
            if CLAUSES.contains(&child.kind()) {
                let other = child.kind() != "block";
                let inner = Place {
                    depth: place.depth + 1,
                    typing_only: if other { place.typing_only } else { typing_only },
                    ..*place
                };
                if other {
                    self.clause(child, &inner);
                } else {
                    self.block(child, &inner);
                }
            }
        }
    }

    /// A clause such as `elif`: a head and a block.
    fn clause(&mut self, node: Node<'_>, place: &Place<'_>) {
        if place.depth > DEEPEST {
            return;
        }
        self.head(node, place.symbol, place);
        for child in children(node) {
            match child.kind() {
                "block" => self.block(child, place),
                kind if CLAUSES.contains(&kind) => {
                    self.clause(child, &Place { depth: place.depth + 1, ..*place });
                }
                _ => {}
            }
        }
    }

    /// The annotation of a variable, or that it has none.
    fn annotation(&mut self, node: Node<'_>, place: &Place<'_>) {
        let Some(assignment) = node.named_child(0).filter(|node| node.kind() == "assignment") else { return };
        let Some(left) = assignment.child_by_field_name("left") else { return };
        let annotation = assignment.child_by_field_name("type").map(|node| self.of(node).to_owned());
        let slot = (place.symbol.to_owned(), self.of(left).split_whitespace().collect::<String>());
        let known = self.code.slots.entry(slot).or_default();
        if known.is_none() {
            *known = annotation;
        }
    }

    /// Records a statement without its blocks.
    fn head(&mut self, node: Node<'_>, symbol: &str, place: &Place<'_>) {
        let mut statement = Statement {
            span: node.start_byte()..node.start_byte(),
            symbol: symbol.to_owned(),
            tokens: Vec::new(),
            uses: BTreeSet::new(),
            names: BTreeSet::new(),
            kind: node.kind().to_owned(),
            is_empty: self.is_empty(node),
            is_typing_only: place.typing_only,
        };
        let assignment =
            node.named_child(0).filter(|inner| matches!(inner.kind(), "assignment" | "augmented_assignment"));
        let left = assignment
            .and_then(|inner| inner.child_by_field_name("left"))
            .filter(|left| left.kind() == "identifier");
        let kind = assignment.and_then(|inner| inner.child_by_field_name("type"));
        let is_aside = |at: &Node<'_>| {
            [left, kind].into_iter().flatten().any(|aside| aside.byte_range().contains(&at.start_byte()))
        };
        let mut end = statement.span.end;
        preorder(node, |inner| {
            let kind = inner.kind();
            if inner.id() != node.id() && CLAUSES.contains(&kind) || kind == "comment" {
                return false;
            }
            if kind == "string" {
                statement.tokens.push("\"\"".to_owned());
            } else if kind == "string_content" || kind == "string_start" || kind == "string_end" {
                // What is put into a text is code, the text is none.
            } else if inner.child_count() == 0 {
                let token = self.of(inner);
                if kind == "identifier" {
                    statement.names.insert(token.to_owned());
                    if !is_aside(&inner) {
                        statement.uses.insert(token.to_owned());
                    }
                }
                if !token.is_empty() && !token.chars().all(char::is_whitespace) {
                    statement.tokens.push(token.to_owned());
                }
            }
            end = end.max(if inner.child_count() == 0 { inner.end_byte() } else { end });
            true
        });
        statement.span.end = end;
        self.code.statements.push(statement);
    }

    /// Comments, and names that hide types.
    fn leaves(&mut self, root: Node<'_>) {
        let mut escapes = self.code.escapes;
        let mut comments = Vec::new();
        preorder(root, |node| {
            match node.kind() {
                "comment" => {
                    let comment = self.of(node);
                    escapes.casts += u32::from(self.is_vague_type(comment));
                    comments.push((node.byte_range(), comment.to_owned()));
                }
                // What is imported is not used yet.
                "import_statement" | "import_from_statement" => return false,
                "identifier" => {
                    let name = self.of(node);
                    let meant =
                        self.aliases.get(name).map_or(name, |name| name.rsplit('.').next().unwrap_or(name));
                    self.escape(node, meant, &mut escapes);
                }
                "call" => {
                    // A lambda's parameters have no types when it is called where it stands.
                    let function = node.child_by_field_name("function");
                    let bare = function.map(inside);
                    escapes.dynamic += u32::from(bare.is_some_and(|node| node.kind() == "lambda"));
                    // What went through a text has no type any more.
                    let called = function.map_or("", |function| self.of(function));
                    let inner = node.child_by_field_name("arguments").map_or("", |inner| self.of(inner));
                    escapes.dynamic += u32::from(called.ends_with("loads") && inner.contains("dumps("));
                }
                "assignment" => {
                    // A function under a name, without types.
                    let lambda =
                        node.child_by_field_name("right").map(inside).filter(|node| node.kind() == "lambda");
                    let takes =
                        lambda.is_some_and(|lambda| lambda.child_by_field_name("parameters").is_some());
                    escapes.dynamic += u32::from(takes && node.child_by_field_name("type").is_none());
                }
                _ => {}
            }
            true
        });
        self.code.escapes = escapes;
        self.code.comments = comments;
    }

    /// Whether a comment annotates something with `Any`.
    fn is_vague_type(&self, comment: &str) -> bool {
        let Some((_, kind)) = comment.split_once("type:") else { return false };
        let is_word = |c: char| c == '_' || unicode_ident::is_xid_continue(c);
        kind.split(|c| !is_word(c)).any(|word| {
            let meant = self.aliases.get(word).map_or(word, |name| name.rsplit('.').next().unwrap_or(name));
            PLAIN_CASTS.contains(&meant) || meant == "object"
        })
    }

    fn escape(&self, node: Node<'_>, name: &str, escapes: &mut Escapes) {
        let parent = node.parent();
        let attribute = parent.filter(|parent| {
            parent.kind() == "attribute"
                && parent.child_by_field_name("attribute").is_some_and(|inner| inner.id() == node.id())
        });
        if let Some(attribute) = attribute {
            let object = attribute.child_by_field_name("object").map_or("", |object| self.of(object));
            let object = self.aliases.get(object).copied().unwrap_or(object);
            let typing = TYPING.contains(&object);
            let builtin = matches!(
                object,
                "builtins" | "operator" | "importlib" | "mock" | "unittest.mock" | "types" | "runpy" | "code"
            );
            escapes.casts += u32::from(PLAIN_CASTS.contains(&name) || (typing && CASTS.contains(&name)));
            escapes.dynamic += u32::from(
                DYNAMIC_ATTRIBUTES.contains(&name)
                    || (builtin && DYNAMIC.contains(&name))
                    || name == "import_module",
            );
            return;
        }
        // The name of a keyword argument, of a parameter or of a definition says nothing.
        let is_label = parent.is_some_and(|parent| {
            let is =
                |field: &str| parent.child_by_field_name(field).is_some_and(|inner| inner.id() == node.id());
            match parent.kind() {
                "keyword_argument" | "function_definition" | "class_definition" | "default_parameter" => {
                    is("name")
                }
                "parameters" | "typed_parameter" => true,
                _ => false,
            }
        });
        if !is_label {
            escapes.casts += u32::from(CASTS.contains(&name));
            escapes.dynamic += u32::from(DYNAMIC.contains(&name) || name == "__builtins__");
        }
    }
}

/// What stands inside of parentheses.
fn inside(mut node: Node<'_>) -> Node<'_> {
    while node.kind() == "parenthesized_expression" {
        match node.named_child(0) {
            Some(inner) => node = inner,
            None => break,
        }
    }
    node
}

/// Whether an expression that stands alone has no effect: nothing is called in it, awaited or assigned.
fn does_nothing(node: Node<'_>) -> bool {
    let mut nothing = true;
    preorder(node, |inner| {
        nothing &= !matches!(
            inner.kind(),
            "call" | "await" | "yield" | "assignment" | "augmented_assignment" | "named_expression"
        );
        nothing
    });
    nothing
}

/// Whether an expression is worked out without anything.
fn is_constant(node: Node<'_>) -> bool {
    let mut constant = true;
    preorder(node, |inner| {
        constant &= !matches!(
            inner.kind(),
            "identifier"
                | "call"
                | "await"
                | "yield"
                | "assignment"
                | "augmented_assignment"
                | "named_expression"
        );
        constant
    });
    constant
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_and_definitions() {
        let code = Code::parse(
            "import os\nclass A:\n    def f(self, x: int) -> str:\n        # c\n        if x:\n            return g(x)\n        return ''\n",
        );
        assert!(!code.has_error);
        let names: Vec<&str> = code.symbols.iter().map(|symbol| symbol.name.as_str()).collect();
        assert_eq!(names, ["A", "A.f"]);
        let tokens: Vec<String> =
            code.statements.iter().map(|statement| statement.tokens.join(" ")).collect();
        assert_eq!(
            tokens,
            [
                "import os",
                "class A :",
                "def f ( self , x : int ) - > str :".replace("- >", "->").as_str(),
                "if x :",
                "return g ( x )",
                "return \"\""
            ]
        );
        assert_eq!(code.slots[&("A.f".to_owned(), "return".to_owned())].as_deref(), Some("str"));
        assert_eq!(code.slots[&("A.f".to_owned(), "(self".to_owned())], None);
        assert_eq!(code.symbol_at(40), "A.f");
        assert_eq!(code.comments.len(), 1);
    }

    #[test]
    fn wrapped_code_is_no_code() {
        let code = Code::parse("def f():\n    \"\"\"\n    g(1)\n    \"\"\"\n");
        assert!(code.symbols[0].is_empty);
        assert!(code.statements.iter().all(|statement| !statement.names.contains("g")));
        assert!(!Code::parse("def f():\n    return g\n").symbols[0].is_empty);
    }

    #[test]
    fn escapes_are_counted_under_any_name() {
        let count = |text: &str| {
            let escapes = Code::parse(text).escapes;
            (escapes.casts, escapes.dynamic)
        };
        assert_eq!(count("from typing import Any\n"), (0, 0));
        assert_eq!(count("from typing import Any as T\nx: T = 1\n"), (1, 0));
        assert_eq!(count("import typing as ty\nx = ty.cast(ty.Any, 1)\n"), (2, 0));
        assert_eq!(count("x = frame.cast('int')\n"), (0, 0));
        assert_eq!(count("getattr(x, 'y')\nx.__dict__['y']\nexec('')\n"), (0, 3));
        assert_eq!(count("def __getattr__(name): ...\n"), (0, 1));
        assert_eq!(count("(lambda x: x.y)(z)\n"), (0, 1));
        assert_eq!(count("f(eval=1)\n"), (0, 0));
        assert_eq!(count("x = []  # type: list[Any]\n"), (1, 0));
        assert_eq!(count("from builtins import getattr as g\ng(x, 'y')\n"), (0, 1));
    }
}
