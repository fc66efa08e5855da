//! Finds the expression that a diagnostic is about, and what the statement does with it.

use std::collections::BTreeSet;
use std::ops::Range;

use tree_sitter::Node;

use crate::python::syntax::{parse_now, preorder};

/// The kind of failure that a diagnostic reports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum FailureKind {
    /// A missing attribute.
    Attribute,
    /// An undefined or possibly unbound name.
    Name,
    /// A call or one of its arguments.
    Call,
    /// A value of the wrong type.
    Value,
    /// An operator with its operands.
    Operation,
    /// Anything else.
    #[default]
    Other,
}

/// How many parents of an expression are searched for its call.
const MAX_PARENTS: usize = 200;

/// The expression that fails.
#[derive(Debug, Clone, Default)]
pub(super) struct FailingExpression {
    /// The kind of failure.
    pub(super) kind: FailureKind,
    /// The name that fails: the attribute, or the undefined name.
    pub(super) name: String,
    /// The object of the attribute, or of the method that is called: the last name of the expression before the dot.
    pub(super) object: String,
    /// The function that is called.
    pub(super) callee: String,
    /// The names in the arguments of that call.
    pub(super) handed: BTreeSet<String>,
    /// The names in the failing expression; of an attribute, with those of its object.
    pub(super) names: BTreeSet<String>,
    /// Whether the failing expression contains a call.
    pub(super) calls: bool,
    /// Whether the attribute is called.
    pub(super) is_called: bool,
    /// Whether it is an argument of the call, and not the call.
    pub(super) is_argument: bool,
    /// Whether it is an argument that the function does not take.
    pub(super) is_superfluous: bool,
    /// Whether what is called cannot be called.
    pub(super) is_value: bool,
    /// Whether it fails because a value may be `None`.
    pub(super) is_optional: bool,
    /// Whether it fails because of the type of a value that may have several.
    pub(super) is_union: bool,
    /// Whether it has too many or too few parts to be unpacked.
    pub(super) is_size: bool,
    /// The attributes that are taken of the failing attribute.
    pub(super) chain: BTreeSet<String>,
}

/// The failing expression at a span of a text, by the rule and the message of its diagnostic.
pub(super) fn at(text: &str, span: Range<usize>, (rule, message): (Option<&str>, &str)) -> FailingExpression {
    let tree = parse_now(text);
    let end = span.end.min(text.len());
    let Some(node) = tree.root_node().descendant_for_byte_range(span.start.min(end), end) else {
        return FailingExpression::default();
    };
    let of = |node: Node<'_>| text.get(node.byte_range()).unwrap_or_default().to_owned();
    let mut failing = FailingExpression {
        kind: kind(rule, node),
        is_optional: rule.is_some_and(|rule| rule.starts_with("reportOptional"))
            || message.contains("\"None\""),
        is_union: message.contains(" | "),
        is_size: message.contains("size mismatch"),
        ..FailingExpression::default()
    };
    preorder(node, |inner| {
        if inner.kind() == "identifier" {
            failing.names.insert(of(inner));
        }
        failing.calls |= inner.kind() == "call";
        true
    });
    if matches!(failing.kind, FailureKind::Attribute | FailureKind::Name) {
        failing.name = last_name(text, node);
        let attribute = if node.kind() == "attribute" { Some(node) } else { node.parent() };
        let object = attribute
            .filter(|node| node.kind() == "attribute")
            .and_then(|node| node.child_by_field_name("object"));
        match object {
            Some(object) => {
                failing.object = last_name(text, object);
                failing.names.extend(identifiers(text, object));
            }
            None if failing.kind == FailureKind::Attribute => failing.kind = FailureKind::Other,
            None => {}
        }
        failing.chain = chain(text, attribute);
    }
    if let Some(call) = call_of(node, failing.kind) {
        failing.callee =
            call.child_by_field_name("function").map(|node| last_name(text, node)).unwrap_or_default();
        failing.is_called = failing.kind == FailureKind::Attribute;
        if failing.kind == FailureKind::Call {
            failing.object = call
                .child_by_field_name("function")
                .and_then(|function| function.child_by_field_name("object"))
                .map(|object| last_name(text, object))
                .unwrap_or_default();
        }
        if let Some(arguments) = call.child_by_field_name("arguments") {
            failing.handed = identifiers(text, arguments);
            failing.is_argument = arguments.byte_range().contains(&node.start_byte());
        }
        if let Some(keyword) = node.parent().filter(|parent| parent.kind() == "keyword_argument") {
            failing.names = keyword
                .child_by_field_name("value")
                .map_or_else(BTreeSet::new, |value| identifiers(text, value));
        }
        failing.is_superfluous = message.starts_with("No parameter named")
            || message.starts_with("Expected ") && message.contains("positional argument");
        failing.is_value = message.contains("is not callable");
    }
    failing
}

/// The identifiers in an expression.
fn identifiers(text: &str, node: Node<'_>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    preorder(node, |inner| {
        if inner.kind() == "identifier" {
            found.insert(text.get(inner.byte_range()).unwrap_or_default().to_owned());
        }
        true
    });
    found
}

/// The attributes that are taken of an attribute, and of what it returns.
fn chain(text: &str, attribute: Option<Node<'_>>) -> BTreeSet<String> {
    let (mut found, mut at) = (BTreeSet::new(), attribute);
    while let Some(node) = at {
        at = node.parent().filter(|parent| match parent.kind() {
            "attribute" => true,
            "call" => parent.child_by_field_name("function").is_some_and(|inner| inner.id() == node.id()),
            _ => false,
        });
        let name = at.and_then(|parent| parent.child_by_field_name("attribute"));
        found.extend(name.map(|name| text.get(name.byte_range()).unwrap_or_default().to_owned()));
    }
    found
}

fn kind(rule: Option<&str>, node: Node<'_>) -> FailureKind {
    match rule.unwrap_or_default() {
        "reportAttributeAccessIssue"
        | "reportOptionalMemberAccess"
        | "reportFunctionMemberAccess"
        | "reportUnknownMemberType" => FailureKind::Attribute,
        "reportUndefinedVariable"
        | "reportUnboundVariable"
        | "reportPossiblyUnbound"
        | "reportPossiblyUnboundVariable" => FailureKind::Name,
        "reportCallIssue" | "reportArgumentType" | "reportOptionalCall" => FailureKind::Call,
        "reportReturnType" | "reportAssignmentType" => FailureKind::Value,
        "reportOperatorIssue"
        | "reportOptionalOperand"
        | "reportIndexIssue"
        | "reportOptionalSubscript"
        | "reportOptionalIterable"
        | "reportOptionalContextManager"
        | "reportTypedDictNotRequiredAccess" => FailureKind::Operation,
        _ if matches!(node.kind(), "subscript" | "binary_operator" | "comparison_operator") => {
            FailureKind::Operation
        }
        _ => FailureKind::Other,
    }
}

/// The call that fails, or whose function or argument fails.
fn call_of(node: Node<'_>, kind: FailureKind) -> Option<Node<'_>> {
    let mut at = node;
    // Finding a parent takes longer the deeper the node is.
    for _ in 0..MAX_PARENTS {
        let is_function = |parent: Node<'_>| {
            parent
                .child_by_field_name("function")
                .is_some_and(|function| function.byte_range() == at.byte_range())
        };
        if at.kind() == "call" && kind != FailureKind::Attribute {
            return Some(at);
        }
        let parent = at.parent()?;
        match parent.kind() {
            "call" if kind != FailureKind::Attribute || is_function(parent) => return Some(parent),
            "attribute" if kind == FailureKind::Attribute && at.id() != node.id() => return None,
            "argument_list" if kind == FailureKind::Attribute => return None,
            kind if kind.ends_with("_statement") || kind == "block" => return None,
            _ => at = parent,
        }
    }
    None
}

/// The last component of a dotted expression.
fn last_name(text: &str, mut node: Node<'_>) -> String {
    loop {
        let inner = match node.kind() {
            "attribute" => node.child_by_field_name("attribute"),
            "call" => node.child_by_field_name("function"),
            "subscript" => node.child_by_field_name("value"),
            "parenthesized_expression" | "await" => node.named_child(0),
            _ => None,
        };
        let Some(inner) = inner else { break };
        node = inner;
    }
    let mut found = "";
    preorder(node, |inner| {
        if inner.kind() == "identifier" {
            found = text.get(inner.byte_range()).unwrap_or_default();
        }
        true
    });
    found.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, part: &str, rule: &str) -> FailingExpression {
        let start = text.find(part).unwrap();
        at(text, start..start + part.len(), (Some(rule), ""))
    }

    #[test]
    fn the_failing_expression_is_found() {
        let attribute = of("return self.home.city.title(x, 1)\n", "title", "reportAttributeAccessIssue");
        assert_eq!((attribute.name.as_str(), attribute.object.as_str()), ("title", "city"));
        assert_eq!((attribute.callee.as_str(), attribute.handed.len()), ("title", 1));
        let inner = of("return f(self.home.city)\n", "city", "reportOptionalMemberAccess");
        assert_eq!((inner.object.as_str(), inner.callee.as_str()), ("home", ""));
        let argument = of("y = a.scale('2', list(b))\n", "'2'", "reportArgumentType");
        assert_eq!((argument.callee.as_str(), argument.calls), ("scale", false));
        let call = of("y = repeat('=')\n", "repeat('=')", "reportCallIssue");
        assert_eq!((call.callee.as_str(), call.calls), ("repeat", true));
        let name = of("return totl + 2\n", "totl", "reportUndefinedVariable");
        assert_eq!((name.name.as_str(), name.kind), ("totl", FailureKind::Name));
    }

    #[test]
    fn deep_nesting_is_bounded() {
        let many = 50_000;
        let text = format!("x = {}a{}.b\n", "(".repeat(many), ")".repeat(many));
        let found = of(&text, "b", "reportAttributeAccessIssue");
        assert_eq!((found.name.as_str(), found.object.as_str()), ("b", "a"));
        let text = format!("x = b{}\n", " + a".repeat(many));
        assert_eq!(of(&text, "b", "reportUndefinedVariable").callee, "");
    }
}
