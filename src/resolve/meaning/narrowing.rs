//! Which names stand in conditions: a server may take from one a type that it has to infer, or lose one where what follows in
//! a branch is inferred never to return.
//!
//! Nothing is read of what a condition says; a name that stands in one is one of which nothing is known.

use std::collections::BTreeSet;

use tree_sitter::Node;

use super::reader::{Reader, is_constant};
use crate::resolve::syntax::{children, text_of};

/// The places where names are bound that stand in conditions.
#[derive(Debug, Default)]
pub(super) struct Narrowing {
    /// By themselves.
    whole: BTreeSet<usize>,
    /// Before a dot or a bracket, on one side of a comparison: what is found there may tell which of several types the name
    /// has.
    parts: BTreeSet<usize>,
    /// The attributes that do, of whatever they are.
    attributes: BTreeSet<String>,
}

impl Narrowing {
    /// Reads the conditions of a text.
    pub(super) fn read(reader: &Reader<'_>, root: Node<'_>) -> Self {
        let mut found = Self::default();
        let mut stack = vec![(root, false)];
        while let Some((node, in_condition)) = stack.pop() {
            match node.kind() {
                "identifier" => {
                    if in_condition {
                        found.whole.extend(bound(reader, node));
                    }
                }
                "attribute" | "subscript" => {
                    let is_attribute = node.kind() == "attribute";
                    if in_condition && is_attribute && is_operand(node) {
                        let name = node.child_by_field_name("attribute");
                        found.attributes.extend(name.map(|name| text_of(name, reader.text).to_owned()));
                    }
                    let object = node.child_by_field_name(if is_attribute { "object" } else { "value" });
                    // A name after a dot is nobody's.
                    let rest = children(node).filter(|child| !is_attribute && Some(*child) != object);
                    stack.extend(rest.map(|child| (child, in_condition)));
                    match object {
                        Some(object) if object.kind() != "identifier" => stack.push((object, in_condition)),
                        Some(object) if in_condition && is_compared(node) => {
                            found.parts.extend(bound(reader, object));
                        }
                        _ => {}
                    }
                }
                "call" if is_check(node, reader.text) => {
                    let given = node.child_by_field_name("arguments");
                    // Of what something may be an instance is not asked.
                    stack.extend(given.and_then(|given| given.named_child(0)).map(|first| (first, true)));
                }
                "keyword_argument" => {
                    stack.extend(node.child_by_field_name("value").map(|value| (value, in_condition)));
                }
                _ => {
                    for child in children(node) {
                        stack.push((child, in_condition || is_condition(node, child)));
                    }
                }
            }
        }
        found
    }

    /// Whether a name stands in a condition that is bound here.
    pub(super) fn has(&self, token: Node<'_>) -> bool {
        self.whole.contains(&token.start_byte())
    }

    /// Whether an attribute of this name, or a part of it, stands in a condition.
    pub(super) fn tests(&self, attribute: &str) -> bool {
        self.attributes.contains(attribute)
    }

    /// The same, or a part of it does.
    pub(super) fn has_part(&self, token: Node<'_>) -> bool {
        self.has(token) || self.parts.contains(&token.start_byte())
    }
}

/// Where a name is bound.
fn bound(reader: &Reader<'_>, name: Node<'_>) -> Vec<usize> {
    reader.tokens(name).unwrap_or_default().iter().map(Node::start_byte).collect()
}

/// Whether a child of a node is a condition, or decides what another one is worth.
fn is_condition(node: Node<'_>, child: Node<'_>) -> bool {
    match node.kind() {
        "if_statement" | "elif_clause" | "while_statement" => {
            node.child_by_field_name("condition") == Some(child)
        }
        "conditional_expression" => node.named_child(1) == Some(child),
        "match_statement" => child.kind() != "block",
        "assert_statement"
        | "if_clause"
        | "boolean_operator"
        | "not_operator"
        | "comparison_operator"
        | "named_expression"
        | "case_clause" => child.kind() != "block",
        _ => false,
    }
}

/// Whether an attribute is looked at for what it is: it is not only called, nor only something of it looked at.
fn is_operand(node: Node<'_>) -> bool {
    let Some(around) = node.parent() else { return true };
    let is = |field| around.child_by_field_name(field) == Some(node);
    match around.kind() {
        "call" => !is("function"),
        "attribute" => is_compared(around),
        "subscript" if is("value") => is_compared(around),
        _ => true,
    }
}

/// Whether something is one side of a comparison, or what is matched. What is only greater, less or in something is of the same
/// type as before; where it is compared with a constant, only what is declared of it tells.
fn is_compared(node: Node<'_>) -> bool {
    let mut node = node;
    while let Some(outer) = node.parent().filter(|outer| outer.kind() == "parenthesized_expression") {
        node = outer;
    }
    node.parent().is_some_and(|around| match around.kind() {
        "comparison_operator" => {
            let mut cursor = around.walk();
            let mut parts = around.children(&mut cursor);
            let only_keeps = parts.all(|part| {
                part.is_named() || part.kind().starts_with(['<', '>']) || part.kind().ends_with("in")
            });
            !(only_keeps || children(around).all(|part| part == node || is_constant(part)))
        }
        kind => matches!(kind, "match_statement" | "tuple" | "expression_list" | "named_expression"),
    })
}

/// Whether a call is one of `isinstance` or `issubclass`.
fn is_check(call: Node<'_>, text: &str) -> bool {
    let function = call.child_by_field_name("function");
    function.is_some_and(|function| matches!(text_of(function, text), "isinstance" | "issubclass"))
}
