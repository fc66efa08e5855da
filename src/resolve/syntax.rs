//! The parser, and small readings of syntax nodes that several modules need.

use tree_sitter::{Node, Parser, Tree, TreeCursor};

/// The syntax tree of a Python text. Never fails: an error is a node in the tree.
#[must_use]
pub(super) fn parse(text: &str) -> Tree {
    let mut parser = Parser::new();
    parser
        .set_language(&tree_sitter_python::LANGUAGE.into())
        .expect("because the grammar's version is one that this library reads; a test parses");
    parser.parse(text, None).expect("because a language is set and no cancellation is")
}

/// The text of a node.
pub(super) fn text_of<'t>(node: Node<'_>, text: &'t str) -> &'t str {
    // An error may end inside a character.
    text.get(node.byte_range()).unwrap_or_default()
}

/// The dotted name that an expression is, white space left out: `a . b` is `a.b`. Parentheses are looked through.
pub(super) fn dotted(node: Node<'_>, text: &str) -> Option<String> {
    let mut node = unwrapped(node);
    let mut parts = Vec::new();
    loop {
        match node.kind() {
            "identifier" => {
                parts.push(text_of(node, text));
                parts.reverse();
                return Some(parts.join("."));
            }
            "attribute" => {
                parts.push(text_of(node.child_by_field_name("attribute")?, text));
                node = unwrapped(node.child_by_field_name("object")?);
            }
            _ => return None,
        }
    }
}

/// What stands inside of parentheses.
pub(super) fn unwrapped(mut node: Node<'_>) -> Node<'_> {
    while node.kind() == "parenthesized_expression" || node.kind() == "type" {
        match node.named_child(0) {
            Some(inner) if node.named_child_count() == 1 => node = inner,
            _ => break,
        }
    }
    node
}

/// Visits a node and all below it in source order, without recursion; `enter` says whether to go below a node.
pub(super) fn preorder<'t>(node: Node<'t>, mut enter: impl FnMut(Node<'t>) -> bool) {
    let mut cursor: TreeCursor<'t> = node.walk();
    loop {
        if enter(cursor.node()) && cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return;
            }
        }
    }
}
