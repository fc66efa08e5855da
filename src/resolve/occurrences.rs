//! Where a name stands in a text: as an identifier, an attribute, in strings and in comments.
//!
//! This is what a server's answer is held against: an occurrence that the server did not claim is shown to the caller.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tree_sitter::Tree;

use super::outline::Span;
use super::{syntax, walk};
use crate::digest::Digest;

/// What an occurrence of a name is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum OccurrenceKind {
    /// An identifier token that is none of the next two.
    Identifier,
    /// The name after a dot, or of a keyword in a pattern.
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

/// How much is remembered of texts, in bytes: about what they take themselves.
const REMEMBERED: usize = 6 << 20;

/// The texts that were read last.
static LATEST: Mutex<Latest> = Mutex::new(Latest { texts: BTreeMap::new(), size: 0, turn: 0 });

/// Where in a text names can stand, whatever the name.
#[derive(Debug, Default, Clone)]
struct Anatomy {
    /// Every identifier token, in order.
    tokens: Vec<Stretch>,
    /// Comments, and strings between their quotes.
    others: Vec<Stretch>,
}

/// A stretch of a text and what a name is that stands there.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    start: u32,
    /// Its length in bytes times [`COUNT`], and the kind's number: there are millions of stretches. Files that are read have
    /// [`MAX_FILE_BYTES`](crate::workspace::files::MAX_FILE_BYTES) at most, which leaves room.
    length_and_kind: u32,
}

/// Every kind, in the order of their numbers.
const KINDS: [OccurrenceKind; 6] = [
    OccurrenceKind::Identifier,
    OccurrenceKind::Attribute,
    OccurrenceKind::Keyword,
    OccurrenceKind::Exported,
    OccurrenceKind::String,
    OccurrenceKind::Comment,
];
const COUNT: u32 = KINDS.len() as u32;

/// What was learned of the texts that were read last, each with the turn of its last use.
struct Latest {
    texts: BTreeMap<Digest, (Arc<Anatomy>, u64)>,
    /// Of all of them, in bytes.
    size: usize,
    turn: u64,
}

/// Every occurrence of an identifier in a text whose digest is given, in order. Reads only a text that has the name at all,
/// and one that was read lately not again.
#[must_use]
pub fn occurrences(text: &str, digest: Digest, name: &str) -> Vec<Occurrence> {
    if name.is_empty() || !text.contains(name) {
        return Vec::new();
    }
    let latest = || LATEST.lock().unwrap_or_else(PoisonError::into_inner);
    let known = latest().get(digest);
    let anatomy = known.unwrap_or_else(|| {
        let anatomy = Arc::new(Anatomy::of(text));
        latest().insert(digest, anatomy.clone());
        anatomy
    });
    anatomy.occurrences(text, name)
}

/// From this length on, in bytes, texts are read one after the other: a tree takes some 30 times its text, and what a session
/// needed at a time it keeps.
const LARGE: usize = 64 << 10;

/// Whoever reads a large text.
static READING_LARGE: Mutex<()> = Mutex::new(());

impl Anatomy {
    /// Reads a text. What is kept is a copy: the original lies between the pieces of the tree, whose memory could hardly be
    /// used again.
    fn of(text: &str) -> Self {
        Self::read(text).clone()
    }

    fn read(text: &str) -> Self {
        let large = (text.len() >= LARGE).then_some(&READING_LARGE);
        let _turn = large.map(|turn| turn.lock().unwrap_or_else(PoisonError::into_inner));
        if large.is_some() {
            syntax::forget(LARGE);
        }
        let tree = syntax::parse_now(text);
        let mut anatomy = Self::default();
        let mut cursor = tree.walk();
        let mut above: Vec<&str> = Vec::new();
        loop {
            let (node, parent) = (cursor.node(), above.last().copied().unwrap_or_default());
            let goes_below = match node.kind() {
                "identifier" => {
                    let kind = match (parent, cursor.field_name()) {
                        ("attribute", Some("attribute")) => OccurrenceKind::Attribute,
                        ("keyword_argument", Some("name")) => OccurrenceKind::Keyword,
                        // `case C(x=1)` reads `.x`.
                        ("keyword_pattern", _) => OccurrenceKind::Attribute,
                        _ => OccurrenceKind::Identifier,
                    };
                    anatomy.tokens.push(Stretch::new(node.byte_range(), kind));
                    false
                }
                "comment" => {
                    anatomy.others.push(Stretch::new(node.byte_range(), OccurrenceKind::Comment));
                    false
                }
                "string_content" => {
                    anatomy.others.push(Stretch::new(node.byte_range(), OccurrenceKind::String));
                    false
                }
                _ => true,
            };
            if goes_below && cursor.goto_first_child() {
                above.push(node.kind());
                continue;
            }
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() {
                    anatomy.mark_exports(&tree, text);
                    return anatomy;
                }
                above.pop();
            }
        }
    }

    /// Strings that are entries of `__all__` become what they are.
    fn mark_exports(&mut self, tree: &Tree, text: &str) {
        if !text.contains("__all__") {
            return;
        }
        let exports = walk::outline(tree, text).exports.unwrap_or_default();
        let entries: Vec<_> = exports.names.iter().map(|entry| entry.span.clone()).collect();
        for stretch in self.others.iter_mut().filter(|stretch| stretch.kind() == OccurrenceKind::String) {
            let Span { start, end } = stretch.span();
            if entries.iter().any(|entry| entry.start <= start && end <= entry.end) {
                *stretch = Stretch::new(start..end, OccurrenceKind::Exported);
            }
        }
    }

    fn occurrences(&self, text: &str, name: &str) -> Vec<Occurrence> {
        let mut found = Vec::new();
        for token in &self.tokens {
            let Span { start, end } = token.span();
            if end - start == name.len() && text.get(start..end) == Some(name) {
                found.push(Occurrence { start, end, kind: token.kind() });
            }
        }
        for stretch in &self.others {
            push_words(&mut found, text, stretch.span(), name, stretch.kind());
        }
        found.sort();
        found.dedup();
        found
    }

    /// How much memory it takes, in bytes.
    const fn size(&self) -> usize {
        (self.tokens.capacity() + self.others.capacity()) * size_of::<Stretch>() + size_of::<Self>()
    }
}

impl Stretch {
    fn new(span: Span, kind: OccurrenceKind) -> Self {
        let short = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let length = short(span.len()).min(u32::MAX / COUNT - 1);
        Self { start: short(span.start), length_and_kind: length * COUNT + kind as u32 }
    }

    const fn span(&self) -> Span {
        let start = self.start as usize;
        start..start + (self.length_and_kind / COUNT) as usize
    }

    const fn kind(&self) -> OccurrenceKind {
        KINDS[(self.length_and_kind % COUNT) as usize]
    }
}

impl Latest {
    fn get(&mut self, digest: Digest) -> Option<Arc<Anatomy>> {
        self.turn += 1;
        let (anatomy, turn) = self.texts.get_mut(&digest)?;
        *turn = self.turn;
        Some(anatomy.clone())
    }

    /// Remembers one more; those that were not used for longest make room.
    fn insert(&mut self, digest: Digest, anatomy: Arc<Anatomy>) {
        self.turn += 1;
        self.size += anatomy.size();
        if let Some((old, _)) = self.texts.insert(digest, (anatomy, self.turn)) {
            self.size -= old.size();
        }
        while self.size > REMEMBERED {
            let oldest = self.texts.iter().min_by_key(|(_, (_, turn))| *turn).map(|(digest, _)| *digest);
            let Some((gone, _)) = oldest.and_then(|digest| self.texts.remove(&digest)) else { break };
            self.size -= gone.size();
        }
    }
}

/// Adds the places where `name` stands as a whole word.
fn push_words(found: &mut Vec<Occurrence>, text: &str, span: Span, name: &str, kind: OccurrenceKind) {
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
            found.push(Occurrence { start, end: start + name.len(), kind });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn occurrences(text: &str, name: &str) -> Vec<Occurrence> {
        super::occurrences(text, Digest::of(text.as_bytes()), name)
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut latest = Latest { texts: BTreeMap::new(), size: 0, turn: 0 };
        let stretch = Stretch::new(0..1, OccurrenceKind::Comment);
        let most = REMEMBERED / 10 / size_of::<Stretch>();
        let anatomy = || Arc::new(Anatomy { tokens: vec![stretch; most], others: Vec::new() });
        for number in 0..40_u8 {
            latest.insert(Digest::of(&[number]), anatomy());
            assert!(latest.get(Digest::of(&[0])).is_some(), "it is used all the time");
            assert!(latest.size <= REMEMBERED);
            assert_eq!(latest.size, latest.texts.values().map(|(anatomy, _)| anatomy.size()).sum::<usize>());
        }
        assert!(latest.get(Digest::of(&[39])).is_some() && latest.get(Digest::of(&[1])).is_none());
        latest.insert(Digest::of(&[39]), anatomy());
        assert_eq!(latest.texts.len(), 9);
    }

    #[test]
    fn a_stretch_is_what_it_was_made_of() {
        let longest = usize::try_from(crate::workspace::files::MAX_FILE_BYTES).unwrap();
        for kind in KINDS {
            for span in [0..0, 0..longest, longest - 3..longest] {
                let stretch = Stretch::new(span.clone(), kind);
                assert_eq!((stretch.span(), stretch.kind()), (span, kind));
            }
        }
    }

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
        let text = "match x:\n  case f(f=f): pass\n  case f.f: pass\n";
        let found: Vec<_> = occurrences(text, "f").into_iter().map(|found| found.kind).collect();
        assert_eq!(found, [K::Identifier, K::Attribute, K::Identifier, K::Identifier, K::Identifier]);
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
