//! The parser, and small readings of syntax nodes that several modules need.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use tree_sitter::{Node, Parser, Tree, TreeCursor};

use crate::digest::Digest;

/// How much text the remembered trees are of, in bytes: one question comes back to a tree or two, and what later ones need is
/// remembered apart (see [`super::remembered`]). A tree takes some 30 times its text, in small pieces that keep the memory
/// around them from the system.
static REMEMBERED: AtomicUsize = AtomicUsize::new(1 << 17);

/// Has the trees of so many bytes of text remembered, if it were fewer: for whoever does nothing but ask about files.
pub(super) fn remember(bytes: usize) {
    REMEMBERED.fetch_max(bytes, Ordering::Relaxed);
}

/// Keeps the latest trees only, of so many bytes of text.
pub(super) fn forget(beyond: usize) {
    let mut trees = TREES.0.lock().unwrap_or_else(PoisonError::into_inner);
    let mut all = trees.iter().map(|(.., length)| length).sum::<usize>();
    while all > beyond {
        all -= trees.pop_front().map_or(all, |(.., length)| length);
    }
}

/// Only texts of this length and more are worth remembering, in bytes.
const WORTH_IT: usize = 256;

/// More texts than this are not remembered: they are looked through one by one.
const MOST: usize = 1024;

/// What was made of the texts that were used last, the latest last, and how long the texts are.
pub(super) struct Latest<T>(Mutex<VecDeque<(Digest, T, usize)>>);

static TREES: Latest<Tree> = Latest::new();

impl<T: Clone> Latest<T> {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(VecDeque::new()))
    }

    /// What was made of this text, or what `make` makes of it.
    pub(super) fn get(&self, text: &str, make: impl FnOnce() -> T) -> T {
        if text.len() < WORTH_IT {
            return make();
        }
        let digest = Digest::of(text.as_bytes());
        let latest = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = {
            let mut latest = latest();
            let at = latest.iter().position(|(of, ..)| *of == digest);
            at.and_then(|at| latest.remove(at))
        };
        let made = known.map_or_else(make, |(_, made, _)| made);
        let mut latest = latest();
        // Somebody else may have made it meanwhile.
        latest.retain(|(of, ..)| *of != digest);
        latest.push_back((digest, made.clone(), text.len()));
        let mut all = latest.iter().map(|(.., length)| length).sum::<usize>();
        while latest.len() > MOST || (latest.len() > 1 && all > REMEMBERED.load(Ordering::Relaxed)) {
            all -= latest.pop_front().map_or(0, |(.., length)| length);
        }
        made
    }
}

/// The syntax tree of a Python text. Never fails: an error is a node in the tree.
#[must_use]
pub(super) fn parse(text: &str) -> Tree {
    TREES.get(text, || parse_now(text))
}

/// The same for a text that will hardly be asked about again.
#[must_use]
pub(super) fn parse_now(text: &str) -> Tree {
    thread_local! {
        /// A parser keeps memory for the next text.
        static PARSER: RefCell<Parser> = RefCell::new({
            let mut parser = Parser::new();
            parser
                .set_language(&tree_sitter_python::LANGUAGE.into())
                .expect("because the grammar's version is one that this library reads; a test parses");
            parser
        });
    }
    PARSER.with_borrow_mut(|parser| {
        parser.parse(text, None).expect("because a language is set and no cancellation is")
    })
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

/// The named nodes directly below a node.
pub(super) fn children<'t>(node: Node<'t>) -> impl Iterator<Item = Node<'t>> {
    (0..node.named_child_count()).filter_map(move |index| node.named_child(u32::try_from(index).ok()?))
}

/// The text of a `dotted_name`, white space left out.
pub(super) fn dotted_name(node: Node<'_>, text: &str) -> String {
    children(node).map(|part| text_of(part, text)).collect::<Vec<_>>().join(".")
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

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn the_latest_texts_are_remembered_and_no_more() {
        let (latest, made) = (Latest::new(), Cell::new(0));
        let text = |number: usize| format!("# {number:0300}\n");
        let get = |text: &str| {
            latest.get(text, || {
                made.set(made.get() + 1);
                text.len()
            })
        };
        for number in [0, 1, 0, 1] {
            assert_eq!(get(&text(number)), 303);
        }
        assert_eq!(made.get(), 2);
        // What is used again stays, and what was not is forgotten when there are too many.
        for number in 2..=MOST {
            get(&text(number));
            get(&text(0));
        }
        assert_eq!(made.get(), MOST + 1);
        get(&text(0));
        assert_eq!(made.get(), MOST + 1);
        get(&text(1));
        assert_eq!(made.get(), MOST + 2, "it was forgotten");
        get("x = 1\n");
        get("x = 1\n");
        assert_eq!(made.get(), MOST + 4, "what is short is not worth it");
    }
}
