//! The parser, and small readings of syntax nodes that several modules need.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use tree_sitter::{Node, Parser, Tree, TreeCursor};

use crate::digest::Digest;

/// How much text the remembered trees are of, in bytes: a session is asked about few files at a time. A tree takes some 10
/// times its text.
const REMEMBERED: usize = 1 << 20;

/// Only texts of this length and more are worth remembering, in bytes.
const WORTH_IT: usize = 4 << 10;

/// The trees of the texts that were used last, the latest last, and how long the texts are.
static LATEST: Mutex<VecDeque<(Digest, Tree, usize)>> = Mutex::new(VecDeque::new());

/// The syntax tree of a Python text. Never fails: an error is a node in the tree.
#[must_use]
pub(super) fn parse(text: &str) -> Tree {
    if text.len() < WORTH_IT {
        return parse_now(text);
    }
    let digest = Digest::of(text.as_bytes());
    let latest = || LATEST.lock().unwrap_or_else(PoisonError::into_inner);
    let known = {
        let mut latest = latest();
        let at = latest.iter().position(|(of, ..)| *of == digest);
        at.and_then(|at| latest.remove(at))
    };
    let tree = known.map_or_else(|| parse_now(text), |(_, tree, _)| tree);
    let mut latest = latest();
    latest.push_back((digest, tree.clone(), text.len()));
    while latest.len() > 1 && latest.iter().map(|(.., length)| length).sum::<usize>() > REMEMBERED {
        latest.pop_front();
    }
    tree
}

/// The same for a text that will hardly be asked about again.
#[must_use]
pub(super) fn parse_now(text: &str) -> Tree {
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
