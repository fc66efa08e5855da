//! Assignments and other targets: which names they bind, and in which scope.

use tree_sitter::Node;

use super::super::outline::{Definition, DefinitionKind};
use super::super::syntax::{dotted, preorder, text_of};
use super::{Context, Scope, Walk};

/// How a name is bound, beyond the fact that it is.
#[derive(Debug, Clone, Default)]
pub(super) struct Binding {
    kind: Option<DefinitionKind>,
    alias_of: Option<String>,
}

impl Binding {
    pub(super) fn of_kind(kind: DefinitionKind) -> Self {
        Self { kind: Some(kind), alias_of: None }
    }
}

impl<'t> Walk<'t> {
    pub(super) fn expression_statement(&mut self, node: Node<'t>, context: Context) {
        for child in self.children(node) {
            match child.kind() {
                "assignment" => self.assignment(child, context),
                "augmented_assignment" => {
                    // Changes a variable, does not define one; `__all__ += …` is read all the same.
                    if self.assigns_exports(child, context) {
                        self.extend_exports(child.child_by_field_name("right"), true);
                    }
                    self.walrus(child, context);
                }
                "call" => {
                    self.exports_call(child, context);
                    self.walrus(child, context);
                }
                "ERROR" => self.stack.push((child, Context { in_error: true, ..context })),
                _ => self.walrus(child, context),
            }
        }
    }

    fn assignment(&mut self, node: Node<'t>, context: Context) {
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
        let mut binding = Binding::default();
        if let Some(value) = value {
            binding.alias_of = dotted(generic(value), self.text);
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
            let binding = if single { binding.clone() } else { Binding::default() };
            self.bind(target, &binding, context);
        }
        if let Some(value) = value {
            self.walrus(value, context);
        }
    }

    /// Binds every name and attribute of a target, which may be a tuple or a list of targets.
    pub(super) fn bind(&mut self, target: Node<'t>, binding: &Binding, context: Context) {
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

    fn bind_name(&mut self, name: Node<'t>, binding: &Binding, context: Context) {
        let text = text_of(name, self.text);
        if text.is_empty() {
            return;
        }
        match context.scope {
            Scope::Module => self.define(name, DefinitionKind::Variable, binding, context),
            Scope::Class => {
                let is_enum = context.parent.is_some_and(|class| {
                    self.outline.definitions[class].bases.iter().any(|base| is_enumeration(last_part(base)))
                });
                let private = text.starts_with('_');
                let kind =
                    if is_enum && !private { DefinitionKind::EnumMember } else { DefinitionKind::Field };
                self.define(name, kind, binding, context);
            }
            Scope::Method | Scope::Function => {
                let function = context.parent.unwrap_or_default();
                if self.globals.get(&function).is_some_and(|names| names.contains(text)) {
                    // A branch of the function says nothing about the module.
                    let module = Context { parent: None, branch: None, ..context };
                    self.define(name, DefinitionKind::Variable, binding, module);
                }
            }
        }
    }

    /// `self.x` in a method is an attribute of the class around it.
    fn bind_attribute(&mut self, attribute: Node<'t>, binding: &Binding, context: Context) {
        if context.scope != Scope::Method {
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
            let class = Context { parent: self.outline.definitions[method].parent, branch: None, ..context };
            let binding = Binding { kind: None, ..binding.clone() };
            self.define(name, DefinitionKind::Attribute, &binding, class);
        }
    }

    fn define(&mut self, name: Node<'t>, kind: DefinitionKind, binding: &Binding, context: Context) {
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
            alias_of: binding.alias_of.clone(),
            branch: context.branch,
            has_error: context.in_error,
        });
    }

    /// The names that `:=` binds in an expression of a module, a class or a function with globals.
    pub(super) fn walrus(&mut self, expression: Node<'t>, context: Context) {
        let in_function = matches!(context.scope, Scope::Method | Scope::Function);
        let no_globals = context.parent.is_none_or(|function| !self.globals.contains_key(&function));
        if (in_function && no_globals) || !text_of(expression, self.text).contains(":=") {
            return;
        }
        preorder(expression, |part| match part.kind() {
            "named_expression" => {
                if let Some(name) = part.child_by_field_name("name") {
                    self.bind_name(name, &Binding::default(), context);
                }
                true
            }
            "lambda" => false,
            _ => true,
        });
    }

    fn assigns_exports(&self, node: Node<'t>, context: Context) -> bool {
        let target = node.child_by_field_name("left");
        context.scope == Scope::Module
            && target.is_some_and(|target| {
                target.kind() == "identifier" && text_of(target, self.text) == "__all__"
            })
    }
}

fn last_part(dotted: &str) -> &str {
    dotted.rsplit('.').next().unwrap_or_default()
}

/// The bases of the standard library, and the names that projects give to their own bases.
fn is_enumeration(base: &str) -> bool {
    base.ends_with("Enum") || matches!(base, "Flag" | "IntFlag" | "EnumType") || base.ends_with("Choices")
}

/// What an expression is an alias of: `C` for `C[int]`. An item that is looked up by a constant is another object.
fn generic(value: Node<'_>) -> Node<'_> {
    let subscripted = value.child_by_field_name("value").filter(|_| value.kind() == "subscript");
    let key = value.child_by_field_name("subscript");
    let is_constant =
        key.is_some_and(|key| matches!(key.kind(), "string" | "integer" | "unary_operator" | "slice"));
    subscripted.filter(|_| !is_constant).unwrap_or(value)
}
