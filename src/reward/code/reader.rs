//! The walk over the syntax tree: definitions, statements, annotations.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use tree_sitter::Node;

use super::escapes::DYNAMIC_DEFINITIONS;
use super::{BoundValue, Code, CodeSymbol, NameBinding, Statement, inside};
use crate::python::syntax::{children, preorder};
use crate::text::names::names_of;

/// Nesting limit for blocks; deeper ones are skipped. Python itself stops at 100.
const MAX_BLOCK_DEPTH: usize = 120;
const CLAUSES: [&str; 7] = [
    "elif_clause",
    "else_clause",
    "except_clause",
    "except_group_clause",
    "finally_clause",
    "case_clause",
    "block",
];

#[derive(Clone, Copy)]
struct ReaderContext<'p> {
    symbol: &'p str,
    depth: usize,
    typing_only: bool,
    /// Whether functions here need no body.
    declares: bool,
}

/// Builds a [`Code`] while walking over a tree.
pub(super) struct CodeReader<'t> {
    text: &'t str,
    pub(super) code: Code,
    /// Original names by import alias.
    pub(super) aliases: BTreeMap<&'t str, &'t str>,
}

impl<'t> CodeReader<'t> {
    /// A reader for a text.
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, code: Code::default(), aliases: BTreeMap::new() }
    }

    /// Reads the whole tree.
    pub(super) fn read(mut self, root: Node<'_>) -> Code {
        self.code.has_error = root.has_error();
        self.imports(root);
        let context = ReaderContext { symbol: "", depth: 0, typing_only: false, declares: false };
        self.block(root, &context);
        self.leaves(root);
        self.code
    }

    /// The text of a node.
    pub(super) fn of(&self, node: Node<'_>) -> &'t str {
        self.text.get(node.byte_range()).unwrap_or_default()
    }

    /// Collects the import aliases of the whole file.
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
        // Aliases are resolved by one step only.
        self.aliases = found.into_iter().collect();
    }

    fn block(&mut self, block: Node<'_>, context: &ReaderContext<'_>) {
        if context.depth > MAX_BLOCK_DEPTH {
            return;
        }
        for node in children(block) {
            self.statement(node, context);
        }
    }

    fn statement(&mut self, node: Node<'_>, context: &ReaderContext<'_>) {
        match node.kind() {
            "comment" => {}
            "decorated_definition" => {
                let decorators: Vec<Node<'_>> =
                    children(node).filter(|child| child.kind() == "decorator").collect();
                if let Some(definition) = node.child_by_field_name("definition") {
                    self.definition(definition, &decorators, node.byte_range(), context);
                }
            }
            "function_definition" | "class_definition" => {
                self.definition(node, &[], node.byte_range(), context);
            }
            _ => self.plain(node, context),
        }
    }

    fn definition(
        &mut self,
        node: Node<'_>,
        decorators: &[Node<'_>],
        span: Range<usize>,
        context: &ReaderContext<'_>,
    ) {
        let name = node.child_by_field_name("name").map_or("", |name| self.of(name));
        let whole =
            if context.symbol.is_empty() { name.to_owned() } else { format!("{}.{name}", context.symbol) };
        let is_class = node.kind() == "class_definition";
        let body = node.child_by_field_name("body");
        let decorators: Vec<(String, Range<usize>)> =
            decorators.iter().map(|decorator| (self.last_name(*decorator), decorator.byte_range())).collect();
        let declared = |name: &str| matches!(name, "abstractmethod" | "overload" | "abstractproperty");
        let bases = node.child_by_field_name("superclasses").map_or("", |bases| self.of(bases));
        let declares = is_class && ["Protocol", "ABC"].iter().any(|base| bases.contains(base));
        let is_declaration = context.declares || decorators.iter().any(|(name, _)| declared(name));
        let is_empty = body.is_some_and(|body| self.does_nothing(body));
        if DYNAMIC_DEFINITIONS.contains(&name) {
            self.code.escapes.dynamic += 1;
        }
        self.head(node, &whole, context);
        for (decorator, at) in &decorators {
            let tokens = vec!["@".to_owned(), decorator.clone()];
            let names = BTreeSet::from([decorator.clone()]);
            self.code.statements.push(Statement {
                span: at.clone(),
                whole: at.clone(),
                symbol: whole.clone(),
                tokens,
                uses: names.clone(),
                executable: None,
                literals: String::new(),
                names,
                kind: "decorator".to_owned(),
                is_bare: false,
                is_empty: false,
                is_typing_only: context.typing_only,
            });
        }
        if !is_class {
            self.parameters(node, &whole);
        }
        self.code.symbols.push(CodeSymbol {
            name: whole.clone(),
            is_class,
            bases: names_of(bases).map(str::to_owned).collect(),
            parents: self.parents(node),
            span,
            is_empty,
            is_declaration,
            decorators,
        });
        if let Some(body) = body {
            let inner = ReaderContext { symbol: &whole, depth: context.depth + 1, declares, ..*context };
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

    /// The last names of the base classes of a class, without subscripts and keywords.
    fn parents(&self, node: Node<'_>) -> BTreeSet<String> {
        let bases = node.child_by_field_name("superclasses").into_iter().flat_map(children);
        let named = bases.filter_map(|base| {
            let base = if base.kind() == "subscript" { base.child_by_field_name("value")? } else { base };
            match base.kind() {
                "identifier" => Some(self.of(base).to_owned()),
                "attribute" => base.child_by_field_name("attribute").map(|name| self.of(name).to_owned()),
                _ => None,
            }
        });
        named.collect()
    }

    fn last_name(&self, decorator: Node<'_>) -> String {
        let text = self.of(decorator).trim_start_matches('@').split('(').next().unwrap_or_default();
        let last = text.rsplit('.').next().unwrap_or_default().trim();
        self.aliases.get(last).copied().unwrap_or(last).to_owned()
    }

    /// Whether a block does nothing.
    fn does_nothing(&self, block: Node<'_>) -> bool {
        let inner: Vec<Node<'_>> = children(block).filter(|node| node.kind() != "comment").collect();
        inner.iter().all(|node| self.is_empty(*node))
    }

    /// Whether a statement does nothing.
    fn is_empty(&self, node: Node<'_>) -> bool {
        match node.kind() {
            "pass_statement" | "raise_statement" | "continue_statement" | "break_statement" => true,
            "global_statement" | "nonlocal_statement" => true,
            // `del` of an item or attribute is an effect, `del` of a name is not.
            "delete_statement" => !self.of(node).contains('['),
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

    /// A statement other than a definition, with its nested blocks.
    fn plain(&mut self, node: Node<'_>, context: &ReaderContext<'_>) {
        self.head(node, context.symbol, context);
        self.annotation(node, context);
        let condition = node.child_by_field_name("condition").map_or("", |node| self.of(node));
        let typing_only =
            context.typing_only || (node.kind() == "if_statement" && condition.contains("TYPE_CHECKING"));
        for child in children(node) {
            if CLAUSES.contains(&child.kind()) {
                let other = child.kind() != "block";
                let inner = ReaderContext { depth: context.depth + 1, typing_only, ..*context };
                if other {
                    self.clause(child, &inner);
                } else {
                    self.block(child, &inner);
                }
            }
        }
    }

    /// A clause such as `elif`: a header and a block.
    fn clause(&mut self, node: Node<'_>, context: &ReaderContext<'_>) {
        if context.depth > MAX_BLOCK_DEPTH {
            return;
        }
        self.head(node, context.symbol, context);
        for child in children(node) {
            match child.kind() {
                "block" => self.block(child, context),
                kind if CLAUSES.contains(&kind) => {
                    self.clause(child, &ReaderContext { depth: context.depth + 1, ..*context });
                }
                _ => {}
            }
        }
    }

    /// The annotation of a variable, or its absence, and the value that it is bound to.
    fn annotation(&mut self, node: Node<'_>, context: &ReaderContext<'_>) {
        let Some(assignment) = node.named_child(0).filter(|node| node.kind() == "assignment") else { return };
        let Some(left) = assignment.child_by_field_name("left") else { return };
        self.binding(assignment, left, context);
        let annotation = assignment.child_by_field_name("type").map(|node| self.of(node).to_owned());
        let slot = (context.symbol.to_owned(), self.of(left).split_whitespace().collect::<String>());
        let known = self.code.slots.entry(slot).or_default();
        if known.is_none() {
            *known = annotation;
        }
    }

    /// The value that a name or an attribute of `self` is bound to.
    fn binding(&mut self, assignment: Node<'_>, left: Node<'_>, context: &ReaderContext<'_>) {
        let (name, of_self) = match left.kind() {
            "identifier" => (self.of(left), false),
            "attribute" => {
                let part = |field: &str| left.child_by_field_name(field).map_or("", |node| self.of(node));
                if !matches!(part("object"), "self" | "cls") {
                    return;
                }
                (part("attribute"), true)
            }
            _ => return,
        };
        let right = assignment.child_by_field_name("right").map(inside);
        let value = right.map_or(BoundValue::Declared, |right| match right.kind() {
            "list" | "dictionary" if right.named_child_count() == 0 => BoundValue::Empty,
            "assignment" => BoundValue::Made,
            _ if is_constant(right) => BoundValue::Constant,
            _ => BoundValue::Made,
        });
        let mut tokens = Vec::new();
        if let Some(right) = right {
            preorder(right, |inner| {
                let is_text = inner.kind() == "string";
                if is_text || inner.child_count() == 0 {
                    tokens.push(if is_text { "\"\"".to_owned() } else { self.of(inner).to_owned() });
                }
                !is_text
            });
        }
        let binding = NameBinding {
            name: name.to_owned(),
            symbol: context.symbol.to_owned(),
            of_self,
            is_annotated: assignment.child_by_field_name("type").is_some(),
            value,
            tokens,
        };
        self.code.bindings.push(binding);
    }

    /// Records a statement without its blocks.
    fn head(&mut self, node: Node<'_>, symbol: &str, context: &ReaderContext<'_>) {
        let mut statement = Statement {
            span: node.start_byte()..node.start_byte(),
            whole: node.byte_range(),
            symbol: symbol.to_owned(),
            tokens: Vec::new(),
            executable: None,
            literals: String::new(),
            uses: BTreeSet::new(),
            names: BTreeSet::new(),
            kind: node.kind().to_owned(),
            is_bare: node.kind() == "expression_statement"
                && node.named_child(0).is_some_and(|inner| {
                    !matches!(inner.kind(), "assignment" | "augmented_assignment" | "yield" | "await")
                }),
            is_empty: self.is_empty(node),
            is_typing_only: context.typing_only,
        };
        let assignment =
            node.named_child(0).filter(|inner| matches!(inner.kind(), "assignment" | "augmented_assignment"));
        let left = assignment
            .filter(|inner| inner.kind() == "assignment")
            .and_then(|inner| inner.child_by_field_name("left"))
            .filter(|left| left.kind() == "identifier");
        let kind = assignment.and_then(|inner| inner.child_by_field_name("type"));
        let is_aside = |at: &Node<'_>| {
            [left, kind].into_iter().flatten().any(|aside| aside.byte_range().contains(&at.start_byte()))
        };
        let mut end = statement.span.end;
        let (mut annotations, mut annotated) = (Vec::new(), 0);
        preorder(node, |inner| {
            let kind = inner.kind();
            if kind == "type" && inner.start_byte() >= annotated {
                annotated = inner.end_byte();
            }
            let before = statement.tokens.len();
            if inner.id() != node.id() && CLAUSES.contains(&kind) || kind == "comment" {
                return false;
            }
            if kind == "string" {
                statement.tokens.push("\"\"".to_owned());
                if inner.start_byte() >= annotated {
                    statement.literals.push_str(self.of(inner));
                }
            } else if kind == "string_content" || kind == "string_start" || kind == "string_end" {
                // Interpolations of an f-string are code, the literal parts are not.
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
            if inner.start_byte() < annotated {
                annotations.extend(before..statement.tokens.len());
            }
            end = end.max(if inner.child_count() == 0 { inner.end_byte() } else { end });
            true
        });
        statement.span.end = end;
        if !annotations.is_empty() {
            let executed =
                statement.tokens.iter().enumerate().filter(|(at, _)| annotations.binary_search(at).is_err());
            let executed = executed.filter(|(_, token)| !matches!(token.as_str(), ":" | "->"));
            statement.executable = Some(executed.map(|(_, token)| token.clone()).collect());
        }
        self.code.statements.push(statement);
    }
}

/// Whether an expression statement has no effect: it contains no call, `await` or assignment.
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

/// Whether an expression is a constant.
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
