//! What names are compared with, for a comparison may tell a server a type that it has to infer.
//!
//! The forms are those that Pyright's documentation lists under "type narrowing" for a name as a whole; a function of the
//! workspace that is declared to return `TypeIs` or `TypeGuard` is not among them.

use std::collections::BTreeMap;

use tree_sitter::Node;

use super::reader::Reader;
use crate::resolve::syntax::{children, dotted, text_of};

/// What dotted names are compared with, by where the first name of them is bound and how they are written. `None` is
/// something that is no name.
#[derive(Default)]
pub(super) struct Narrowing<'r>(BTreeMap<(usize, String), Vec<Option<Node<'r>>>>);

impl<'r> Narrowing<'r> {
    /// Notes what a node compares.
    pub(super) fn note(&mut self, reader: &Reader<'r>, node: Node<'r>) {
        match node.kind() {
            "call" => {
                let Some((first, classes)) = checked(node, reader.text) else { return };
                if classes.kind() == "tuple" {
                    children(classes).for_each(|class| self.narrow(reader, first, Some(class)));
                } else {
                    self.narrow(reader, first, Some(classes));
                }
            }
            "comparison_operator" => {
                let operands: Vec<Node<'r>> = children(node).collect();
                for (at, operand) in operands.iter().enumerate() {
                    let others = operands.iter().enumerate().filter(|(other, _)| *other != at);
                    for (_, other) in others.filter(|(_, other)| !is_harmless(reader, **other)) {
                        self.narrow(reader, typed(*operand, reader.text).unwrap_or(*operand), Some(*other));
                    }
                }
            }
            "match_statement" => {
                let mut cursor = node.walk();
                let subjects: Vec<_> = node.children_by_field_name("subject", &mut cursor).collect();
                subjects.into_iter().for_each(|subject| self.narrow(reader, subject, None));
            }
            _ => {}
        }
    }

    fn narrow(&mut self, reader: &Reader<'r>, name: Node<'r>, by: Option<Node<'r>>) {
        if let Some(key) = key(reader, name) {
            self.0.entry(key).or_default().push(by);
        }
    }

    /// What a dotted name is compared with.
    pub(super) fn of(&self, reader: &Reader<'r>, name: Node<'r>) -> &[Option<Node<'r>>] {
        if self.0.is_empty() {
            return &[];
        }
        key(reader, name).and_then(|key| self.0.get(&key)).map_or(&[], Vec::as_slice)
    }
}

/// By what a dotted name is known.
fn key(reader: &Reader<'_>, name: Node<'_>) -> Option<(usize, String)> {
    let written = dotted(name, reader.text)?;
    let first = std::iter::successors(Some(name), |node| node.named_child(0)).last()?;
    let bound = reader.tokens(first)?.first().map_or(usize::MAX, Node::start_byte);
    Some((bound, written))
}

/// What a call of `isinstance` or `issubclass` asks of what.
fn checked<'r>(call: Node<'r>, text: &str) -> Option<(Node<'r>, Node<'r>)> {
    let function = call.child_by_field_name("function")?;
    matches!(text_of(function, text), "isinstance" | "issubclass").then_some(())?;
    let given = call.child_by_field_name("arguments")?;
    Some((given.named_child(0)?, given.named_child(1)?))
}

/// Of what an expression is the type: `a` for `type(a)`.
fn typed<'r>(expression: Node<'r>, text: &str) -> Option<Node<'r>> {
    let is_call = expression.kind() == "call";
    let function = is_call.then(|| expression.child_by_field_name("function"))??;
    (text_of(function, text) == "type")
        .then(|| expression.child_by_field_name("arguments")?.named_child(0))?
}

/// Whether comparing with something tells no type that has to be inferred.
fn is_harmless(reader: &Reader<'_>, other: Node<'_>) -> bool {
    match other.kind() {
        "none"
        | "true"
        | "false"
        | "integer"
        | "float"
        | "string"
        | "concatenated_string"
        | "ellipsis"
        | "unary_operator" => true,
        "tuple" | "list" | "set" => children(other).all(|part| is_harmless(reader, part)),
        "identifier" => reader.is_parameter(other),
        // `type(a) is type(b)` tells nothing of `a`.
        "call" => typed(other, reader.text).is_some_and(|of| is_harmless(reader, of)),
        _ => false,
    }
}
