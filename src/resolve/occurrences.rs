//! Where a name stands in a text: as an identifier, an attribute, in strings and in comments.
//!
//! This is what a server's answer is held against: an occurrence that the server did not claim is shown to the caller.

use std::collections::BTreeMap;

use super::outline::Span;
use super::{syntax, walk};

/// What an occurrence of a name is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum OccurrenceKind {
    /// An identifier token that is none of the next two.
    Identifier,
    /// The name after a dot.
    Attribute,
    /// The name of a keyword argument in a call.
    Keyword,
    /// A string that is an entry of `__all__`.
    Exported,
    /// A whole word inside of another string.
    String,
    /// A whole word inside of a comment.
    Comment,
}

impl OccurrenceKind {
    /// The name in bundles.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Identifier => "identifier",
            Self::Attribute => "attribute",
            Self::Keyword => "keyword",
            Self::Exported => "exported",
            Self::String => "string",
            Self::Comment => "comment",
        }
    }

    /// Whether the name is a token of its own, which a server could resolve.
    #[must_use]
    pub const fn is_token(self) -> bool {
        matches!(self, Self::Identifier | Self::Attribute | Self::Keyword)
    }
}

/// One occurrence.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Occurrence {
    /// The bytes of the name.
    pub start: usize,
    /// The byte after its last.
    pub end: usize,
    /// What it is.
    pub kind: OccurrenceKind,
}

impl Occurrence {
    /// The bytes of the name.
    #[must_use]
    pub fn span(&self) -> Span {
        self.start..self.end
    }
}

/// Every occurrence of an identifier in a text, in order. Parses only when the text contains the name at all.
#[must_use]
pub fn occurrences(text: &str, name: &str) -> Vec<Occurrence> {
    if name.is_empty() || !text.contains(name) {
        return Vec::new();
    }
    let tree = syntax::parse_now(text);
    let exports = walk::outline(&tree, text).exports.unwrap_or_default();
    let is_exported =
        |at: usize| exports.names.iter().any(|entry| entry.span.start <= at && at < entry.span.end);
    let mut found = Vec::new();
    // Where the tokens are that a node above gives a meaning to; a node is met before what is below it.
    let mut special: BTreeMap<usize, OccurrenceKind> = BTreeMap::new();
    syntax::preorder(tree.root_node(), |node| {
        let span = node.byte_range();
        // Most of the tree does not contain the name, and searching is much faster than walking.
        if node.child_count() > 0 && span.len() < 4096 && !syntax::text_of(node, text).contains(name) {
            return false;
        }
        let mut mark = |field, kind| {
            special.extend(node.child_by_field_name(field).map(|token| (token.start_byte(), kind)));
        };
        match node.kind() {
            "attribute" => mark("attribute", OccurrenceKind::Attribute),
            "keyword_argument" => mark("name", OccurrenceKind::Keyword),
            "identifier" if syntax::text_of(node, text) == name => {
                let kind = special.get(&span.start).copied().unwrap_or(OccurrenceKind::Identifier);
                found.push(Occurrence { start: span.start, end: span.end, kind });
            }
            "comment" => push_words(&mut found, text, span, name, |_| OccurrenceKind::Comment),
            "string_content" => {
                let kind =
                    |at| if is_exported(at) { OccurrenceKind::Exported } else { OccurrenceKind::String };
                push_words(&mut found, text, span, name, kind);
                return false;
            }
            _ => {}
        }
        true
    });
    found.sort();
    found.dedup();
    found
}

/// Adds the places where `name` stands as a whole word.
fn push_words(
    found: &mut Vec<Occurrence>,
    text: &str,
    span: Span,
    name: &str,
    kind: impl Fn(usize) -> OccurrenceKind,
) {
    let Some(stretch) = text.get(span.clone()) else { return };
    let is_word = |c: char| c == '_' || unicode_ident::is_xid_continue(c);
    for (at, _) in stretch.match_indices(name) {
        let before = stretch[..at].chars().next_back();
        let after = stretch[at + name.len()..].chars().next();
        // In `\nname` the letter belongs to the escape and not to the word.
        let mut last_two = stretch[..at].chars().rev().take(2);
        let is_escape =
            last_two.next().is_some_and(|c| c.is_ascii_alphabetic()) && last_two.next() == Some('\\');
        if (is_escape || !before.is_some_and(is_word)) && !after.is_some_and(is_word) {
            let start = span.start + at;
            found.push(Occurrence { start, end: start + name.len(), kind: kind(start) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds() {
        let text = "import f\n__all__ = ['f', \"g\"]\ndef f(f=1): # f, of f_\n    x.f(f=f'{f} f {x!r}', g='a\\nf-off', h=x.f.f)\n    '''f\n    '''; print(rf'{x:{f}}')\n";
        let found: Vec<_> = occurrences(text, "f")
            .into_iter()
            .map(|o| {
                assert_eq!(&text[o.span()], "f");
                (text[..o.start].matches('\n').count() + 1, o.kind)
            })
            .collect();
        use OccurrenceKind as K;
        assert_eq!(
            found,
            [
                (1, K::Identifier),
                (2, K::Exported),
                (3, K::Identifier),
                (3, K::Identifier),
                (3, K::Comment),
                (4, K::Attribute),
                (4, K::Keyword),
                (4, K::Identifier),
                (4, K::String),
                (4, K::String),
                (4, K::Attribute),
                (4, K::Attribute),
                (5, K::String),
                (6, K::Identifier),
            ]
        );
        assert_eq!(occurrences(text, "nothing"), []);
    }

    proptest::proptest! {
        /// Whatever the text, tokens are whole words and in order.
        #[test]
        fn whole_words_in_order(text in "[ab_ .()=,'\"#\n{}f]{0,80}") {
            let found = occurrences(&text, "ab");
            let mut last = 0;
            for one in &found {
                proptest::prop_assert_eq!(&text[one.span()], "ab");
                proptest::prop_assert!(one.start >= last);
                last = one.end;
                if one.kind.is_token() {
                    let is_word = |c: char| c == '_' || c.is_alphanumeric();
                    proptest::prop_assert!(!text[..one.start].ends_with(is_word) && !text[one.end..].starts_with(is_word));
                }
            }
        }
    }
}
