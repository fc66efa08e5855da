//! Assignments and other targets: which names they bind, and in which scope.

use tree_sitter::Node;

use super::super::outline::{Definition, DefinitionKind, VariableValue};
use super::super::syntax::{dotted, preorder, text_of, unwrapped};
use super::{BlockKind, OutlineBuilder, WalkContext};

/// What an assignment or other target tells about the names that it binds.
#[derive(Debug, Clone, Default)]
pub(super) struct BindingDetails {
    kind: Option<DefinitionKind>,
    /// `None` if what is bound is a part of a value, or not written.
    value: Option<VariableValue>,
}

impl BindingDetails {
    pub(super) fn of_kind(kind: DefinitionKind) -> Self {
        Self { kind: Some(kind), value: None }
    }
}

impl<'t> OutlineBuilder<'t> {
    pub(super) fn expression_statement(&mut self, node: Node<'t>, context: WalkContext) {
        for child in self.children(node) {
            match child.kind() {
                "assignment" => self.assignment(child, context),
                "augmented_assignment" => {
                    // It changes a variable and does not define one, but `__all__ += …` counts.
                    if self.assigns_exports(child, context) {
                        self.extend_exports(child.child_by_field_name("right"), true);
                    }
                    self.walrus(child, context);
                }
                "call" => {
                    self.exports_call(child, context);
                    self.walrus(child, context);
                }
                "ERROR" => self.stack.push((child, WalkContext { in_error: true, ..context })),
                _ => self.walrus(child, context),
            }
        }
    }

    fn assignment(&mut self, node: Node<'t>, context: WalkContext) {
        let mut targets = Vec::new();
        let mut annotation = None;
        let mut at = node;
        // `a = b = value` is nested to the right.
        let value = loop {
            targets.extend(at.child_by_field_name("left"));
            annotation = annotation.or_else(|| at.child_by_field_name("type"));
            match at.child_by_field_name("right") {
                Some(right) if right.kind() == "assignment" => at = right,
                value => break value,
            }
        };
        if self.assigns_exports(node, context) {
            self.extend_exports(value, false);
        }
        let mut binding = BindingDetails::default();
        if let Some(value) = value {
            binding.value = Some(bound_value(value, self.text));
            if value.kind() == "call"
                && let Some(name) = value.child_by_field_name("function").and_then(|f| dotted(f, self.text))
                && matches!(last_part(&name), "TypeVar" | "ParamSpec" | "TypeVarTuple")
            {
                binding.kind = Some(DefinitionKind::TypeVariable);
            }
        }
        if let Some(name) = annotation.and_then(|annotation| dotted(annotation, self.text))
            && last_part(&name) == "TypeAlias"
        {
            binding.kind = Some(DefinitionKind::TypeAlias);
        }
        for target in targets {
            let single = matches!(target.kind(), "identifier" | "attribute");
            let binding = if single { binding.clone() } else { BindingDetails::default() };
            self.bind(target, &binding, context);
        }
        if let Some(value) = value {
            self.walrus(value, context);
        }
    }

    /// Adds a definition for every name and attribute of a target, which may be a tuple or a list of targets.
    pub(super) fn bind(&mut self, target: Node<'t>, binding: &BindingDetails, context: WalkContext) {
        preorder(target, |part| match part.kind() {
            "identifier" => {
                self.bind_name(part, binding, context);
                false
            }
            "attribute" => {
                self.bind_attribute(part, binding, context);
                false
            }
            "subscript" | "call" | "lambda" | "string" | "type" => false,
            _ => true,
        });
    }

    fn bind_name(&mut self, name: Node<'t>, binding: &BindingDetails, context: WalkContext) {
        let text = text_of(name, self.text);
        if text.is_empty() {
            return;
        }
        match context.scope {
            BlockKind::Module => self.define(name, DefinitionKind::Variable, binding, context),
            BlockKind::Class => {
                let is_enum = context.parent.is_some_and(|class| {
                    self.outline.definitions[class].bases.iter().any(|base| is_enumeration(last_part(base)))
                });
                let private = text.starts_with('_');
                let kind =
                    if is_enum && !private { DefinitionKind::EnumMember } else { DefinitionKind::Field };
                self.define(name, kind, binding, context);
            }
            BlockKind::Method | BlockKind::Function => {
                let home = self.home(text, context);
                if home.parent.is_none() {
                    self.define(name, DefinitionKind::Variable, binding, home);
                }
            }
        }
    }

    /// `self.x` in a method is an attribute of the class around it.
    fn bind_attribute(&mut self, attribute: Node<'t>, binding: &BindingDetails, context: WalkContext) {
        if context.scope != BlockKind::Method {
            return;
        }
        let (Some(object), Some(name), Some(method)) = (
            attribute.child_by_field_name("object"),
            attribute.child_by_field_name("attribute"),
            context.parent,
        ) else {
            return;
        };
        // The grammar reads `*self.x = …` as an attribute of `*self`.
        let object = match object.kind() {
            "list_splat_pattern" | "list_splat" => object.named_child(0).unwrap_or(object),
            _ => object,
        };
        let receiver = self.receivers.get(&method).map(String::as_str);
        if object.kind() == "identifier" && receiver == Some(text_of(object, self.text)) {
            let class =
                WalkContext { parent: self.outline.definitions[method].parent, branch: None, ..context };
            let binding = BindingDetails { kind: None, ..binding.clone() };
            self.define(name, DefinitionKind::Attribute, &binding, class);
        }
    }

    fn define(
        &mut self,
        name: Node<'t>,
        kind: DefinitionKind,
        binding: &BindingDetails,
        context: WalkContext,
    ) {
        self.outline.definitions.push(Definition {
            name: text_of(name, self.text).to_owned(),
            parent: context.parent,
            kind: binding.kind.unwrap_or(kind),
            name_span: name.byte_range(),
            span: name.byte_range(),
            signature: None,
            body: None,
            doc: None,
            decorators: Vec::new(),
            bases: Vec::new(),
            other_bases: Vec::new(),
            metaclass: None,
            value: binding.value.clone().unwrap_or_else(|| VariableValue::computed(name.byte_range())),
            branch: context.branch,
            has_error: context.in_error,
        });
    }

    /// The names that `:=` binds in an expression of a module, a class or a function with globals.
    pub(super) fn walrus(&mut self, expression: Node<'t>, context: WalkContext) {
        let in_function = matches!(context.scope, BlockKind::Method | BlockKind::Function);
        let no_globals = context.parent.is_none_or(|function| !self.globals.contains_key(&function));
        if (in_function && no_globals) || !text_of(expression, self.text).contains(":=") {
            return;
        }
        preorder(expression, |part| match part.kind() {
            "named_expression" => {
                if let Some(name) = part.child_by_field_name("name") {
                    let value = part.child_by_field_name("value");
                    let value = value.map(|value| bound_value(value, self.text));
                    self.bind_name(name, &BindingDetails { kind: None, value }, context);
                }
                true
            }
            "lambda" => false,
            _ => true,
        });
    }

    fn assigns_exports(&self, node: Node<'t>, context: WalkContext) -> bool {
        let target = node.child_by_field_name("left");
        context.scope == BlockKind::Module
            && target.is_some_and(|target| {
                target.kind() == "identifier" && text_of(target, self.text) == "__all__"
            })
    }
}

fn last_part(dotted: &str) -> &str {
    dotted.rsplit('.').next().unwrap_or_default()
}

/// Whether a base class is an enumeration, by its name: those of the standard library, and common names in projects.
fn is_enumeration(base: &str) -> bool {
    base.ends_with("Enum") || matches!(base, "Flag" | "IntFlag" | "EnumType") || base.ends_with("Choices")
}

/// The expression without its type arguments: `C` for `C[int]`. A subscript with a constant is an item and not a generic type.
fn generic(value: Node<'_>) -> Node<'_> {
    let subscripted = value.child_by_field_name("value").filter(|_| value.kind() == "subscript");
    let key = value.child_by_field_name("subscript");
    let is_constant =
        key.is_some_and(|key| matches!(key.kind(), "string" | "integer" | "unary_operator" | "slice"));
    subscripted.filter(|_| !is_constant).unwrap_or(value)
}

/// Whether a name is written in an expression.
fn has_names(expression: Node<'_>) -> bool {
    let mut found = false;
    preorder(expression, |node| {
        found |= node.kind() == "identifier";
        !found
    });
    found
}

/// What a name is bound to by an assignment of this expression.
fn bound_value(expression: Node<'_>, text: &str) -> VariableValue {
    let mut value = VariableValue::default();
    let mut pending = vec![expression];
    while let Some(expression) = pending.pop() {
        let expression = unwrapped(expression);
        let child = |index| expression.named_child(index);
        match expression.kind() {
            "conditional_expression" => pending.extend(child(2).into_iter().chain(child(0))),
            "boolean_operator" => pending.extend(child(1).into_iter().chain(child(0))),
            "named_expression" => pending.extend(expression.child_by_field_name("value")),
            // These are no classes.
            "none"
            | "true"
            | "false"
            | "ellipsis"
            | "string"
            | "concatenated_string"
            | "integer"
            | "float"
            | "set"
            | "lambda"
            | "comparison_operator"
            | "not_operator"
            | "set_comprehension"
            | "generator_expression" => {}
            // Their items can be: `class A(BASES["a"])`.
            "list" | "tuple" if !has_names(expression) => {}
            _ => match dotted(generic(expression), text) {
                Some(name) => value.names.push(name),
                None => value.computed = Some(expression.byte_range()),
            },
        }
    }
    value
}
