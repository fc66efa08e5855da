//! What fails in a statement: the expression that a diagnostic is about, and what is done there.

use std::collections::BTreeSet;
use std::ops::Range;

use tree_sitter::Node;

use super::code::{preorder, tree};

/// What a diagnostic is about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Kind {
    /// An attribute that is not there.
    Attribute,
    /// A name that is not there, or perhaps not.
    Name,
    /// A call, or what is handed to it.
    Call,
    /// A value that is of another type than what takes it.
    Value,
    /// An operator with its operands.
    Operation,
    /// Anything else.
    #[default]
    Other,
}

/// How far around an expression its call is looked for.
const DEEPEST: usize = 200;

/// The expression that fails.
#[derive(Debug, Clone, Default)]
pub(super) struct Failing {
    /// What it is about.
    pub(super) kind: Kind,
    /// The name that fails: of the attribute, or of what is not defined.
    pub(super) name: String,
    /// What the attribute is asked of: the last name of the expression before the dot.
    pub(super) object: String,
    /// What is called there.
    pub(super) callee: String,
    /// The names that are handed to that call.
    pub(super) handed: BTreeSet<String>,
    /// The names in what fails.
    pub(super) names: BTreeSet<String>,
    /// Whether something is called in what fails.
    pub(super) calls: bool,
}

/// What fails at a place of a text.
pub(super) fn at(text: &str, span: Range<usize>, rule: Option<&str>) -> Failing {
    let tree = tree(text);
    let end = span.end.min(text.len());
    let Some(node) = tree.root_node().descendant_for_byte_range(span.start.min(end), end) else {
        return Failing::default();
    };
    let of = |node: Node<'_>| text.get(node.byte_range()).unwrap_or_default().to_owned();
    let mut failing = Failing { kind: kind(rule), ..Failing::default() };
    preorder(node, |inner| {
        if inner.kind() == "identifier" {
            failing.names.insert(of(inner));
        }
        failing.calls |= inner.kind() == "call";
        true
    });
    if matches!(failing.kind, Kind::Attribute | Kind::Name) {
        failing.name = last_name(text, node);
        let attribute = if node.kind() == "attribute" { Some(node) } else { node.parent() };
        let object = attribute
            .filter(|node| node.kind() == "attribute")
            .and_then(|node| node.child_by_field_name("object"));
        match object {
            Some(object) => failing.object = last_name(text, object),
            None if failing.kind == Kind::Attribute => failing.kind = Kind::Other,
            None => {}
        }
    }
    if let Some(call) = call_of(node, failing.kind) {
        failing.callee =
            call.child_by_field_name("function").map(|node| last_name(text, node)).unwrap_or_default();
        if let Some(arguments) = call.child_by_field_name("arguments") {
            preorder(arguments, |inner| {
                if inner.kind() == "identifier" {
                    failing.handed.insert(of(inner));
                }
                true
            });
        }
    }
    failing
}

fn kind(rule: Option<&str>) -> Kind {
    match rule.unwrap_or_default() {
        "reportAttributeAccessIssue"
        | "reportOptionalMemberAccess"
        | "reportFunctionMemberAccess"
        | "reportUnknownMemberType" => Kind::Attribute,
        "reportUndefinedVariable"
        | "reportUnboundVariable"
        | "reportPossiblyUnbound"
        | "reportPossiblyUnboundVariable" => Kind::Name,
        "reportCallIssue" | "reportArgumentType" | "reportOptionalCall" => Kind::Call,
        "reportReturnType" | "reportAssignmentType" => Kind::Value,
        "reportOperatorIssue"
        | "reportOptionalOperand"
        | "reportIndexIssue"
        | "reportOptionalSubscript"
        | "reportOptionalIterable"
        | "reportOptionalContextManager"
        | "reportTypedDictNotRequiredAccess" => Kind::Operation,
        _ => Kind::Other,
    }
}

/// The call that fails, or that what fails is the function of or is handed to.
fn call_of(node: Node<'_>, kind: Kind) -> Option<Node<'_>> {
    let mut at = node;
    // To find what is around something takes longer the deeper it is.
    for _ in 0..DEEPEST {
        let is_function = |parent: Node<'_>| {
            parent
                .child_by_field_name("function")
                .is_some_and(|function| function.byte_range() == at.byte_range())
        };
        if at.kind() == "call" && kind != Kind::Attribute {
            return Some(at);
        }
        let parent = at.parent()?;
        match parent.kind() {
            "call" if kind != Kind::Attribute || is_function(parent) => return Some(parent),
            "attribute" if kind == Kind::Attribute && at.id() != node.id() => return None,
            "argument_list" if kind == Kind::Attribute => return None,
            kind if kind.ends_with("_statement") || kind == "block" => return None,
            _ => at = parent,
        }
    }
    None
}

/// The last name of an expression that names something.
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

    fn of(text: &str, part: &str, rule: &str) -> Failing {
        let start = text.find(part).unwrap();
        at(text, start..start + part.len(), Some(rule))
    }

    #[test]
    fn what_fails_is_found() {
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
        assert_eq!((name.name.as_str(), name.kind), ("totl", Kind::Name));
    }

    #[test]
    fn what_is_nested_deep_is_found_without_end() {
        let many = 50_000;
        let text = format!("x = {}a{}.b\n", "(".repeat(many), ")".repeat(many));
        let found = of(&text, "b", "reportAttributeAccessIssue");
        assert_eq!((found.name.as_str(), found.object.as_str()), ("b", "a"));
        let text = format!("x = b{}\n", " + a".repeat(many));
        assert_eq!(of(&text, "b", "reportUndefinedVariable").callee, "");
    }
}
