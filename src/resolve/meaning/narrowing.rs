//! Which names stand in conditions: a server may take from one a type that it has to infer, or lose one where what follows in
//! a branch is inferred never to return.
//!
//! Nothing is read of what a condition says; a name that stands in one is one of which nothing is known.

use std::collections::BTreeSet;

use tree_sitter::Node;

use super::reader::Reader;
use crate::resolve::syntax::{children, text_of};

/// The places where names are bound that stand in conditions.
#[derive(Debug, Default)]
pub(super) struct Narrowing {
    /// By themselves.
    whole: BTreeSet<usize>,
    /// Before a dot or a bracket, on one side of a comparison: what is found there may tell which of several types the name
    /// has.
    parts: BTreeSet<usize>,
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

/// Whether something is one side of a comparison, or what is matched. What is only greater or less is of the same type as
/// before.
fn is_compared(node: Node<'_>) -> bool {
    let around = std::iter::successors(node.parent(), Node::parent);
    let mut around = around.skip_while(|node| node.kind() == "parenthesized_expression");
    around.next().is_some_and(|around| match around.kind() {
        "comparison_operator" => {
            let mut cursor = around.walk();
            let mut operators = around.children(&mut cursor).filter(|part| !part.is_named());
            !operators.all(|operator| operator.kind().starts_with(['<', '>']))
        }
        kind => matches!(kind, "match_statement" | "tuple" | "expression_list" | "named_expression"),
    })
}

/// Whether a call is one of `isinstance` or `issubclass`.
fn is_check(call: Node<'_>, text: &str) -> bool {
    let function = call.child_by_field_name("function");
    function.is_some_and(|function| matches!(text_of(function, text), "isinstance" | "issubclass"))
}
