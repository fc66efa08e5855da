//! Which names stand in conditions: a server may take from one a type that it has to infer, or lose one where what follows in
//! a branch is inferred never to return.
//!
//! Nothing is read of what a condition says; a name that stands in one is one of which nothing is known.

use std::collections::BTreeSet;

use tree_sitter::Node;

use super::reader::{Reader, is_constant};
use crate::python::syntax::{children, text_of};

/// The places where names are bound that stand in conditions.
#[derive(Debug, Default)]
pub(super) struct Narrowing {
    /// By themselves.
    whole: BTreeSet<usize>,
    /// Before a dot or a bracket, on one side of a comparison: what is found there may tell which of several types the name
    /// has.
    parts: BTreeSet<usize>,
    /// The same, where the other side is a constant.
    constant_parts: BTreeSet<usize>,
    /// The attributes that do, of whatever they are.
    attributes: BTreeSet<String>,
}

impl Narrowing {
    /// Reads the conditions of a text.
    pub(super) fn read(reader: &Reader<'_>, root: Node<'_>) -> Self {
        let mut found = Self::default();
        // What is called to make a name that may stand in a condition, and where that is bound.
        let mut makers: Vec<(usize, Node<'_>)> = Vec::new();
        let mut stack = vec![(root, false)];
        loop {
            found.look(reader, &mut stack, &mut makers);
            // A condition on such a name is one on what the call was given.
            let (stand, others) = makers.into_iter().partition(|(name, _)| found.whole.contains(name));
            makers = others;
            let stand: Vec<(usize, Node<'_>)> = stand;
            if stand.is_empty() {
                return found;
            }
            stack.extend(stand.into_iter().flat_map(|(_, call)| arguments(call)).map(|given| (given, true)));
        }
    }

    fn look<'t>(
        &mut self,
        reader: &Reader<'_>,
        stack: &mut Vec<(Node<'t>, bool)>,
        makers: &mut Vec<(usize, Node<'t>)>,
    ) {
        let found = self;
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
                        Some(object) if in_condition => match compared(node) {
                            Compared::No => {}
                            Compared::ToConstant => found.constant_parts.extend(bound(reader, object)),
                            Compared::ToSomething => found.parts.extend(bound(reader, object)),
                        },
                        _ => {}
                    }
                }
                "assignment" | "named_expression" => {
                    let is = |field: &str| node.child_by_field_name(field);
                    let name = is("left").or_else(|| is("name")).filter(|name| name.kind() == "identifier");
                    let mut value = is("right").or_else(|| is("value"));
                    while value.is_some_and(|value| value.kind() == "parenthesized_expression") {
                        value = value.and_then(|value| children(value).find(|part| part.kind() != "comment"));
                    }
                    let call = value.filter(|value| value.kind() == "call");
                    makers.extend(name.zip(call).map(|(name, call)| (name.start_byte(), call)));
                    let is_asked = node.kind() == "named_expression";
                    stack.extend(children(node).map(|child| (child, in_condition || is_asked)));
                }
                "call" if is_check(node, reader.text) => {
                    // Of what something may be an instance is not asked.
                    let first = arguments(node).next();
                    stack.extend(first.map(|first| (first, true)));
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
        self.has_part_of_self(token) || self.constant_parts.contains(&token.start_byte())
    }

    /// The same of a method's first parameter: what a part of it is equal to tells nothing of its type.
    pub(super) fn has_part_of_self(&self, token: Node<'_>) -> bool {
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
        "conditional_expression" => {
            children(node).filter(|part| part.kind() != "comment").nth(1) == Some(child)
        }
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
        "attribute" => compared(around) != Compared::No,
        "subscript" if is("value") => compared(around) != Compared::No,
        _ => true,
    }
}

/// What a comparison may tell of the type of what it looks at a part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Compared {
    No,
    ToConstant,
    ToSomething,
}

/// What something is compared with, or matched. What is only greater, less or in something is of the same type as before.
fn compared(node: Node<'_>) -> Compared {
    let mut node = node;
    while let Some(outer) = node.parent().filter(|outer| outer.kind() == "parenthesized_expression") {
        node = outer;
    }
    let Some(around) = node.parent() else { return Compared::No };
    match around.kind() {
        "comparison_operator" => {
            let mut cursor = around.walk();
            let mut operators = around.children(&mut cursor).filter(|part| !part.is_named());
            if operators.all(|part| part.kind().starts_with(['<', '>']) || part.kind().ends_with("in")) {
                Compared::No
            } else if children(around).all(|part| part == node || is_constant(part)) {
                Compared::ToConstant
            } else {
                Compared::ToSomething
            }
        }
        "match_statement" | "tuple" | "expression_list" | "named_expression" => Compared::ToSomething,
        _ => Compared::No,
    }
}

/// What a call is given, without comments.
fn arguments(call: Node<'_>) -> impl Iterator<Item = Node<'_>> {
    let given = call.child_by_field_name("arguments");
    given.into_iter().flat_map(children).filter(|part| part.kind() != "comment")
}

/// Whether a call is one of `isinstance` or `issubclass`.
fn is_check(call: Node<'_>, text: &str) -> bool {
    let function = call.child_by_field_name("function");
    function.is_some_and(|function| matches!(text_of(function, text), "isinstance" | "issubclass"))
}
