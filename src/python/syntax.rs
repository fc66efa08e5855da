//! The parser, its cache of trees, and helpers for syntax nodes.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use tree_sitter::{Node, Parser, Tree, TreeCursor};

use crate::digest::Digest;

/// The limit of the texts whose trees are cached, in bytes. One request uses a tree or two repeatedly; what later requests need
/// is cached separately (see [`super::digest_cache`]). A tree takes some 30 times the memory of its text, in small
/// allocations that keep the pages around them from being returned to the system.
static CACHE_LIMIT_BYTES: AtomicUsize = AtomicUsize::new(1 << 17);

/// Raises the limit of the cached trees to those of `bytes` of text, if it is lower: for operations that only query files.
pub(super) fn raise_cache_limit(bytes: usize) {
    CACHE_LIMIT_BYTES.fetch_max(bytes, Ordering::Relaxed);
}

/// Drops the least recently used trees until the texts of the others have at most `bytes`.
pub(super) fn shrink_cache(bytes: usize) {
    let mut trees = TREE_CACHE.0.lock().unwrap_or_else(PoisonError::into_inner);
    let mut total = trees.iter().map(|(.., length)| length).sum::<usize>();
    while total > bytes {
        total -= trees.pop_front().map_or(total, |(.., length)| length);
    }
}

/// The length from which a text is worth caching, in bytes.
const MIN_TEXT_BYTES: usize = 256;

/// The most texts that one cache holds: they are searched linearly.
const MAX_TEXTS: usize = 1024;

/// An LRU cache of values that are computed from a text: digest, value and length of the text, least recently used first.
pub(super) struct TextCache<T>(Mutex<VecDeque<(Digest, T, usize)>>);

static TREE_CACHE: TextCache<Tree> = TextCache::new();

impl<T: Clone> TextCache<T> {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(VecDeque::new()))
    }

    /// The cached value for this text, or what `make` returns.
    pub(super) fn get(&self, text: &str, make: impl FnOnce() -> T) -> T {
        if text.len() < MIN_TEXT_BYTES {
            return make();
        }
        let digest = Digest::of(text.as_bytes());
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = {
            let mut entries = lock();
            let at = entries.iter().position(|(of, ..)| *of == digest);
            at.and_then(|at| entries.remove(at))
        };
        let value = known.map_or_else(make, |(_, value, _)| value);
        let mut entries = lock();
        // Another thread may have inserted it meanwhile.
        entries.retain(|(of, ..)| *of != digest);
        entries.push_back((digest, value.clone(), text.len()));
        let mut total = entries.iter().map(|(.., length)| length).sum::<usize>();
        while entries.len() > MAX_TEXTS
            || (entries.len() > 1 && total > CACHE_LIMIT_BYTES.load(Ordering::Relaxed))
        {
            total -= entries.pop_front().map_or(0, |(.., length)| length);
        }
        value
    }
}

/// The syntax tree of a Python text. Never fails: an error is a node in the tree.
#[must_use]
pub(super) fn parse(text: &str) -> Tree {
    TREE_CACHE.get(text, || parse_now(text))
}

/// Parses without the cache: for a text that is hardly needed again.
#[must_use]
pub(crate) fn parse_now(text: &str) -> Tree {
    thread_local! {
        /// Reused, because a parser keeps its buffers for the next text.
        static PARSER: RefCell<Parser> = RefCell::new({
            let mut parser = Parser::new();
            parser
                .set_language(&tree_sitter_python::LANGUAGE.into())
                .expect("because the grammar's version is one that this library reads; a test parses");
            parser
        });
    }
    let joined = without_empty_continuations(text);
    PARSER.with_borrow_mut(|parser| {
        parser
            .parse(joined.as_deref().unwrap_or(text), None)
            .expect("because a language is set and no cancellation is")
    })
}

/// Whether the last line before an offset is code that ends with a backslash. A line with `#` may be a comment.
fn continues_code(before: &str) -> bool {
    let line = before.trim_end_matches(['\r', '\n']);
    let line = &line[line.rfind('\n').map_or(0, |end| end + 1)..];
    line.strip_suffix('\\').is_some_and(|code| !code.trim().is_empty() && !code.contains('#'))
}

/// How many lines with nothing but a backslash may follow each other before they are blanked.
const MAX_EMPTY_CONTINUATIONS: usize = 64;

/// The text with long runs of lines that are only continued as spaces, which mean the same after code that continues: the grammar's
/// scanner reads such a run again at each of its lines. `None` if there is none. Other runs stay: at the start of a statement spaces
/// are its indentation, and a comment does not continue.
fn without_empty_continuations(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    // The end of a line with nothing but a backslash.
    let end_of_empty = |start: usize| {
        let blank = bytes[start..].iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\x0c')).count();
        let at = start + blank;
        let ends = [&b"\\\n"[..], b"\\\r\n"];
        ends.iter().find(|end| bytes[at..].starts_with(end)).map(|end| at + end.len())
    };
    let mut blanked: Option<Vec<u8>> = None;
    let mut at = 0;
    while let Some(line) =
        bytes[at..].windows(2).position(|two| two == b"\n\\" || two == b"\n " || two == b"\n\t")
    {
        let start = at + line + 1;
        let (mut end, mut lines) = (start, 0);
        while let Some(next) = end_of_empty(end) {
            (end, lines) = (next, lines + 1);
        }
        if lines > MAX_EMPTY_CONTINUATIONS && continues_code(&text[..start]) {
            blanked.get_or_insert_with(|| bytes.to_vec())[start..end].fill(b' ');
        }
        at = end.max(start);
    }
    blanked.and_then(|bytes| String::from_utf8(bytes).ok())
}

/// The text of a node.
pub(super) fn text_of<'t>(node: Node<'_>, text: &'t str) -> &'t str {
    // An error may end inside a character.
    text.get(node.byte_range()).unwrap_or_default()
}

/// The dotted name of an expression that is one, without white space (`a . b` is `a.b`) and parentheses.
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

/// The expression inside parentheses or a `type` node; any other node itself.
pub(super) fn unwrapped(mut node: Node<'_>) -> Node<'_> {
    while node.kind() == "parenthesized_expression" || node.kind() == "type" {
        match node.named_child(0) {
            Some(inner) if node.named_child_count() == 1 => node = inner,
            _ => break,
        }
    }
    node
}

/// The named children of a node. By a cursor: reaching a child by its index takes as many steps as there are children before it.
pub(crate) fn children<'t>(node: Node<'t>) -> impl Iterator<Item = Node<'t>> {
    let mut cursor = node.walk();
    let mut is_at_child = cursor.goto_first_child();
    std::iter::from_fn(move || {
        while is_at_child {
            let child = cursor.node();
            is_at_child = cursor.goto_next_sibling();
            if child.is_named() {
                return Some(child);
            }
        }
        None
    })
}

/// The text of a `dotted_name`, without white space.
pub(super) fn dotted_name(node: Node<'_>, text: &str) -> String {
    children(node).map(|part| text_of(part, text)).collect::<Vec<_>>().join(".")
}

/// Visits a node and its descendants in source order, without recursion; `enter` returns whether to visit the children of a node.
pub(crate) fn preorder<'t>(node: Node<'t>, mut enter: impl FnMut(Node<'t>) -> bool) {
    preorder_with_parents(node, |node, _| enter(node));
}

/// Like [`preorder`], with the parent of each node. (`Node::parent` walks down from the root.)
pub(crate) fn preorder_with_parents<'t>(
    node: Node<'t>,
    mut enter: impl FnMut(Node<'t>, Option<Node<'t>>) -> bool,
) {
    let mut cursor: TreeCursor<'t> = node.walk();
    let mut around: Vec<Node<'t>> = Vec::new();
    loop {
        let here = cursor.node();
        if enter(here, around.last().copied()) && cursor.goto_first_child() {
            around.push(here);
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return;
            }
            around.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn long_runs_of_continued_lines_are_parsed_as_spaces() {
        for line in ["\\\n", "  \\\r\n", "\t\\\n"] {
            let text = format!("x = 1 +\\\n{}f\n", line.repeat(30_000));
            let tree = parse_now(&text);
            assert!(!tree.root_node().has_error(), "{line:?}");
            let at = text.len() - 2;
            let name = tree.root_node().descendant_for_byte_range(at, at + 1).unwrap();
            assert_eq!((name.kind(), name.byte_range()), ("identifier", at..at + 1), "{line:?}");
        }
        let run = "\\\n".repeat(100);
        for text in [
            "x = 1 +\\\n\\\nf\n".to_owned(),
            "def f():\n    pass\n".to_owned(),
            format!("# \\\n{run}x = 1\n"),
            format!("{run}x = 1\n"),
            format!("class A:\n    def m(self): ...\n{run}    def n(self): ...\n"),
        ] {
            assert_eq!(without_empty_continuations(&text), None, "{text:?}");
        }
    }

    #[test]
    fn only_the_latest_texts_are_cached() {
        let (cache, made) = (TextCache::new(), Cell::new(0));
        let text = |number: usize| format!("# {number:0300}\n");
        let get = |text: &str| {
            cache.get(text, || {
                made.set(made.get() + 1);
                text.len()
            })
        };
        for number in [0, 1, 0, 1] {
            assert_eq!(get(&text(number)), 303);
        }
        assert_eq!(made.get(), 2);
        // A text that is used again stays cached; the least recently used ones are dropped.
        for number in 2..=MAX_TEXTS {
            get(&text(number));
            get(&text(0));
        }
        assert_eq!(made.get(), MAX_TEXTS + 1);
        get(&text(0));
        assert_eq!(made.get(), MAX_TEXTS + 1);
        get(&text(1));
        assert_eq!(made.get(), MAX_TEXTS + 2, "it was dropped");
        get("x = 1\n");
        get("x = 1\n");
        assert_eq!(made.get(), MAX_TEXTS + 4, "short texts are not cached");
    }
}
