//! Builds the outline of a file in one walk over its statements.
//!
//! The walk uses an explicit stack, so that deeply nested source cannot overflow the call stack. Expressions are visited
//! only where they can contain a definition (`:=` outside of functions).

mod binding;
mod imports;

use std::collections::{BTreeMap, BTreeSet};

use tree_sitter::{Node, Tree, TreeCursor};

use super::outline::{
    Branch, BranchKind, Definition, DefinitionKind, Outline, Span, VariableValue, is_accessor_role,
};
use super::syntax::{dotted, preorder, preorder_with_parents, text_of, unwrapped};
use binding::BindingDetails;

/// The outline of the statements that the parser recognized.
pub(super) fn outline(tree: &Tree, text: &str) -> Outline {
    let root = tree.root_node();
    let mut builder = OutlineBuilder::new(text);
    builder.outline.has_error = root.has_error();
    builder.outline.doc = builder.docstring(root);
    builder.stack.push((root, WalkContext::default()));
    while let Some((node, context)) = builder.stack.pop() {
        builder.statement(node, context);
    }
    in_source_order(builder.outline)
}

/// Sorts by position: the names that `except` clauses bind are added before the blocks above them are walked.
fn in_source_order(mut outline: Outline) -> Outline {
    if !outline.definitions.is_sorted_by_key(|definition| definition.name_span.start) {
        let mut order: Vec<usize> = (0..outline.definitions.len()).collect();
        order.sort_by_key(|&index| outline.definitions[index].name_span.start);
        let mut new_index = vec![0; order.len()];
        for (new, &old) in order.iter().enumerate() {
            new_index[old] = new;
        }
        let renumber = |parent: Option<usize>| parent.map(|old| new_index[old]);
        for definition in &mut outline.definitions {
            definition.parent = renumber(definition.parent);
        }
        for import in &mut outline.imports {
            import.parent = renumber(import.parent);
        }
        outline.definitions.sort_by_key(|definition| definition.name_span.start);
    }
    outline.imports.sort_by_key(|import| import.bound_span.start);
    outline
}

/// The truth of a condition that the server takes as constant.
fn fixed_truth(condition: Node<'_>, text: &str) -> Option<bool> {
    let condition = unwrapped(condition);
    match condition.kind() {
        "true" => Some(true),
        "false" => Some(false),
        "not_operator" => {
            let negated = unwrapped(condition.child_by_field_name("argument")?);
            let name = dotted(negated, text)?;
            (name.rsplit('.').next() == Some("TYPE_CHECKING")).then_some(false)
        }
        _ => (dotted(condition, text)?.rsplit('.').next() == Some("TYPE_CHECKING")).then_some(true),
    }
}

/// The kind of block around a statement.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum BlockKind {
    #[default]
    Module,
    Class,
    /// A function directly in a class.
    Method,
    Function,
}

#[derive(Debug, Clone, Copy, Default)]
struct WalkContext {
    parent: Option<usize>,
    scope: BlockKind,
    branch: Option<usize>,
    in_error: bool,
}

struct OutlineBuilder<'t> {
    text: &'t str,
    outline: Outline,
    stack: Vec<(Node<'t>, WalkContext)>,
    cursor: Option<TreeCursor<'t>>,
    /// The names that each function declares `global`.
    globals: BTreeMap<usize, BTreeSet<String>>,
    /// The name of the first parameter of each method.
    receivers: BTreeMap<usize, String>,
}

impl<'t> OutlineBuilder<'t> {
    fn new(text: &'t str) -> Self {
        Self {
            text,
            outline: Outline::default(),
            stack: Vec::new(),
            cursor: None,
            globals: BTreeMap::new(),
            receivers: BTreeMap::new(),
        }
    }

    fn children(&mut self, node: Node<'t>) -> Vec<Node<'t>> {
        let mut cursor = self.cursor.take().unwrap_or_else(|| node.walk());
        let children = node.named_children(&mut cursor).collect();
        self.cursor = Some(cursor);
        children
    }

    fn push_children(&mut self, node: Node<'t>, context: WalkContext) {
        let children = self.children(node);
        self.stack.extend(children.into_iter().rev().map(|child| (child, context)));
    }

    fn statement(&mut self, node: Node<'t>, context: WalkContext) {
        match node.kind() {
            "module" | "block" => self.push_children(node, context),
            "ERROR" => self.push_children(node, WalkContext { in_error: true, ..context }),
            "comment" => {}
            "decorated_definition" => self.decorated(node, context),
            "class_definition" => self.class(node, Vec::new(), context),
            "function_definition" => self.function(node, Vec::new(), context),
            "if_statement" => self.if_statement(node, context),
            "try_statement" => self.try_statement(node, context),
            "for_statement" | "while_statement" => self.loop_statement(node, context),
            "with_statement" => self.with_statement(node, context),
            "match_statement" => self.match_statement(node, context),
            "expression_statement" => self.expression_statement(node, context),
            "type_alias_statement" => {
                let name = node.child_by_field_name("left").map(unwrapped);
                let name = name.map(|name| match name.kind() {
                    "generic_type" => name.named_child(0).unwrap_or(name),
                    _ => name,
                });
                if let Some(name) = name {
                    self.bind(name, &BindingDetails::of_kind(DefinitionKind::TypeAlias), context);
                }
            }
            "import_statement" | "import_from_statement" => self.import(node, context),
            "global_statement" => {
                if let Some(function) = context.parent {
                    let names: Vec<_> = self
                        .children(node)
                        .into_iter()
                        .map(|name| text_of(name, self.text).to_owned())
                        .collect();
                    self.globals.entry(function).or_default().extend(names);
                }
            }
            _ => self.walrus(node, context),
        }
    }

    fn branch(&mut self, context: WalkContext, kind: BranchKind, head: Node<'t>) -> WalkContext {
        let head = self.head(head);
        self.outline.branches.push(Branch { parent: context.branch, kind, head });
        WalkContext { branch: Some(self.outline.branches.len() - 1), ..context }
    }

    /// The span of a clause up to its colon.
    fn head(&self, clause: Node<'t>) -> Span {
        let mut cursor = clause.walk();
        let colon = clause.children(&mut cursor).find(|child| child.kind() == ":");
        clause.start_byte()..colon.map_or(clause.end_byte(), |colon| colon.start_byte())
    }

    fn if_statement(&mut self, node: Node<'t>, context: WalkContext) {
        let mut tasks = Vec::new();
        // `Some(true)` if an earlier arm is always taken, `Some(false)` if all earlier arms are never taken.
        let mut before = Some(false);
        let mut arms = vec![node];
        arms.extend(
            self.children(node).into_iter().filter(|n| matches!(n.kind(), "elif_clause" | "else_clause")),
        );
        for arm in arms {
            let condition = arm.child_by_field_name("condition");
            let truth = match condition {
                Some(condition) => fixed_truth(condition, self.text),
                None => Some(true),
            };
            let runs = match (before, truth) {
                (Some(true), _) | (_, Some(false)) => Some(false),
                (Some(false), Some(true)) => Some(true),
                _ => None,
            };
            before = match (before, truth) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (before, Some(false)) => before,
                _ => None,
            };
            let kind = if arm == node { BranchKind::If(runs) } else { BranchKind::Else(runs) };
            let inside = self.branch(context, kind, arm);
            if let Some(condition) = condition {
                self.walrus(condition, context);
            }
            let block = arm.child_by_field_name("consequence").or_else(|| arm.child_by_field_name("body"));
            tasks.extend(block.map(|block| (block, inside)));
        }
        self.stack.extend(tasks.into_iter().rev());
        self.errors_of(node, context);
    }

    /// Queues the error nodes directly inside a compound statement; its other children are queued by field.
    fn errors_of(&mut self, node: Node<'t>, context: WalkContext) {
        if node.has_error() {
            let errors = self.children(node).into_iter().filter(|child| child.is_error());
            let tasks: Vec<_> = errors.map(|error| (error, context)).collect();
            self.stack.extend(tasks);
        }
    }

    fn try_statement(&mut self, node: Node<'t>, context: WalkContext) {
        let mut tasks = Vec::new();
        for child in self.children(node) {
            match child.kind() {
                "block" => tasks.push((child, self.branch(context, BranchKind::Try, node))),
                "else_clause" | "finally_clause" | "except_clause" | "except_group_clause" => {
                    let kind = match child.kind() {
                        "else_clause" => BranchKind::Try,
                        "finally_clause" => BranchKind::Always,
                        _ => BranchKind::Except,
                    };
                    let inside = self.branch(context, kind, child);
                    for part in self.children(child) {
                        match part.kind() {
                            "block" => tasks.push((part, inside)),
                            "as_pattern" => self.as_pattern(part, inside),
                            _ => {}
                        }
                    }
                    if let Some(alias) = child.child_by_field_name("alias") {
                        self.bind(alias, &BindingDetails::default(), inside);
                    }
                }
                _ => {}
            }
        }
        self.stack.extend(tasks.into_iter().rev());
        self.errors_of(node, context);
    }

    fn loop_statement(&mut self, node: Node<'t>, context: WalkContext) {
        let inside = self.branch(context, BranchKind::Loop, node);
        for field in ["condition", "right"] {
            if let Some(expression) = node.child_by_field_name(field) {
                self.walrus(expression, context);
            }
        }
        if let Some(target) = node.child_by_field_name("left") {
            self.bind(target, &BindingDetails::default(), context);
        }
        if let Some(otherwise) = node.child_by_field_name("alternative")
            && let Some(block) = otherwise.child_by_field_name("body")
        {
            self.stack.push((block, inside));
        }
        self.stack.extend(node.child_by_field_name("body").map(|block| (block, inside)));
        self.errors_of(node, context);
    }

    fn with_statement(&mut self, node: Node<'t>, context: WalkContext) {
        let inside = self.branch(context, BranchKind::Always, node);
        if let Some(clause) = self.children(node).into_iter().find(|child| child.kind() == "with_clause") {
            preorder(clause, |part| match part.kind() {
                "as_pattern" => {
                    self.as_pattern(part, context);
                    true
                }
                "call" | "lambda" | "block" => false,
                _ => true,
            });
            self.walrus(clause, context);
        }
        self.stack.extend(node.child_by_field_name("body").map(|block| (block, inside)));
        self.errors_of(node, context);
    }

    fn as_pattern(&mut self, node: Node<'t>, context: WalkContext) {
        if let Some(target) = node.child_by_field_name("alias").and_then(|alias| alias.named_child(0)) {
            self.bind(target, &BindingDetails::default(), context);
        }
    }

    fn match_statement(&mut self, node: Node<'t>, context: WalkContext) {
        let mut tasks = Vec::new();
        let cases = node.child_by_field_name("body").map(|body| self.children(body)).unwrap_or_default();
        for case in cases.into_iter().filter(|case| case.kind() == "case_clause") {
            let inside = self.branch(context, BranchKind::Case, case);
            for pattern in self.children(case).into_iter().filter(|part| part.kind() == "case_pattern") {
                self.captures(pattern, inside);
            }
            tasks.extend(case.child_by_field_name("consequence").map(|block| (block, inside)));
        }
        self.stack.extend(tasks.into_iter().rev());
        self.errors_of(node, context);
    }

    /// The names that a pattern binds: bare names, `as name`, `*rest`; not classes, keywords or dotted values.
    fn captures(&mut self, pattern: Node<'t>, context: WalkContext) {
        preorder_with_parents(pattern, |part, parent| {
            let parent = parent.map_or("", |parent| parent.kind());
            match part.kind() {
                "dotted_name" => {
                    if part.named_child_count() == 1
                        && parent != "class_pattern"
                        && let Some(name) = part.named_child(0)
                    {
                        self.bind(name, &BindingDetails::default(), context);
                    }
                    false
                }
                "identifier" => {
                    if matches!(parent, "as_pattern" | "splat_pattern") {
                        self.bind(part, &BindingDetails::default(), context);
                    }
                    false
                }
                _ => true,
            }
        });
    }

    fn decorated(&mut self, node: Node<'t>, context: WalkContext) {
        let decorators = self.children(node).into_iter().filter(|child| child.kind() == "decorator");
        let names = decorators.collect::<Vec<_>>().into_iter().map(|decorator| {
            let expression = decorator.named_child(0);
            let called = expression.and_then(|expression| expression.child_by_field_name("function"));
            called.or(expression).and_then(|name| dotted(name, self.text)).unwrap_or_default()
        });
        let names: Vec<String> = names.collect();
        let Some(definition) = node.child_by_field_name("definition") else { return };
        match definition.kind() {
            "class_definition" => self.class(definition, names, context),
            _ => self.function(definition, names, context),
        }
    }

    fn class(&mut self, node: Node<'t>, decorators: Vec<String>, context: WalkContext) {
        let (mut bases, mut other_bases) = (Vec::new(), Vec::new());
        let mut metaclass = None;
        if let Some(arguments) = node.child_by_field_name("superclasses") {
            for base in self.children(arguments) {
                if base.kind() == "keyword_argument" {
                    let name = base.child_by_field_name("name").map(|name| text_of(name, self.text));
                    if name == Some("metaclass") {
                        metaclass =
                            base.child_by_field_name("value").and_then(|value| dotted(value, self.text));
                    }
                    continue;
                }
                let base = unwrapped(base);
                let base = match base.kind() {
                    "subscript" => base.child_by_field_name("value").unwrap_or(base),
                    _ => base,
                };
                match dotted(base, self.text) {
                    Some(name) => bases.push(name),
                    None if base.kind() == "comment" => {}
                    None => other_bases.push(base.byte_range()),
                }
            }
        }
        let Some(index) = self.compound(node, DefinitionKind::Class, decorators, context) else { return };
        self.outline.definitions[index].bases = bases;
        self.outline.definitions[index].other_bases = other_bases;
        self.outline.definitions[index].metaclass = metaclass;
        let inside = WalkContext { parent: Some(index), scope: BlockKind::Class, branch: None, ..context };
        self.stack.extend(node.child_by_field_name("body").map(|body| (body, inside)));
        self.errors_of(node, context);
    }

    fn function(&mut self, node: Node<'t>, decorators: Vec<String>, context: WalkContext) {
        let is_property = decorators.iter().any(|decorator| {
            let last = decorator.rsplit('.').next().unwrap_or_default();
            last.ends_with("property") || (decorator.contains('.') && is_accessor_role(last))
        });
        let kind = match context.scope {
            BlockKind::Class if is_property => DefinitionKind::Property,
            BlockKind::Class => DefinitionKind::Method,
            _ => DefinitionKind::Function,
        };
        let is_static = decorators.iter().any(|decorator| decorator == "staticmethod");
        let Some(index) = self.compound(node, kind, decorators, context) else { return };
        let scope = if context.scope == BlockKind::Class { BlockKind::Method } else { BlockKind::Function };
        if scope == BlockKind::Method
            && !is_static
            && let Some(receiver) = self.receiver(node)
        {
            self.receivers.insert(index, receiver);
        }
        let inside = WalkContext { parent: Some(index), scope, branch: None, ..context };
        self.stack.extend(node.child_by_field_name("body").map(|body| (body, inside)));
        self.errors_of(node, context);
    }

    fn receiver(&self, function: Node<'t>) -> Option<String> {
        let first = function.child_by_field_name("parameters")?.named_child(0)?;
        let name = match first.kind() {
            "typed_parameter" => first.named_child(0)?,
            _ => first,
        };
        (name.kind() == "identifier").then(|| text_of(name, self.text).to_owned())
    }

    /// Where a name is defined: in the module if the function around it declares it `global`.
    fn home(&self, name: &str, context: WalkContext) -> WalkContext {
        let is_in_function = matches!(context.scope, BlockKind::Method | BlockKind::Function);
        let globals =
            context.parent.filter(|_| is_in_function).and_then(|function| self.globals.get(&function));
        match globals.is_some_and(|names| names.contains(name)) {
            // Branches of the function are not branches of the module.
            true => WalkContext { parent: None, branch: None, ..context },
            false => context,
        }
    }

    /// Adds the definition of a `class` or `def` statement.
    fn compound(
        &mut self,
        node: Node<'t>,
        kind: DefinitionKind,
        decorators: Vec<String>,
        context: WalkContext,
    ) -> Option<usize> {
        let name = node.child_by_field_name("name").filter(|name| !name.is_missing())?;
        let body = node.child_by_field_name("body");
        let colon = {
            let mut cursor = node.walk();
            node.children(&mut cursor).filter(|child| child.kind() == ":").last()
        };
        let signature_end = colon.map_or(name.end_byte(), |colon| colon.end_byte());
        let context = self.home(text_of(name, self.text), context);
        self.outline.definitions.push(Definition {
            name: text_of(name, self.text).to_owned(),
            parent: context.parent,
            kind,
            name_span: name.byte_range(),
            span: node.byte_range(),
            signature: Some(node.start_byte()..signature_end),
            body: body.map(|body| body.byte_range()).filter(|body| !body.is_empty()),
            doc: body.and_then(|body| self.docstring(body)),
            decorators,
            bases: Vec::new(),
            other_bases: Vec::new(),
            metaclass: None,
            value: VariableValue::default(),
            branch: context.branch,
            has_error: context.in_error || node.has_error(),
        });
        Some(self.outline.definitions.len() - 1)
    }

    /// The string literal that a block begins with.
    fn docstring(&self, block: Node<'t>) -> Option<Span> {
        let mut cursor = block.walk();
        let first = block.named_children(&mut cursor).find(|child| child.kind() != "comment")?;
        let literal = first.named_child(0).filter(|_| first.kind() == "expression_statement")?;
        if first.named_child_count() != 1 || !matches!(literal.kind(), "string" | "concatenated_string") {
            return None;
        }
        let start = self.text.as_bytes().get(literal.start_byte())?;
        (!matches!(start, b'f' | b'F' | b'b' | b'B')).then(|| literal.byte_range())
    }
}
