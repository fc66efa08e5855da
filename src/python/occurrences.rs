//! Finds every occurrence of a name in a text: as an identifier, as an attribute, in strings and in comments.
//!
//! A server's references are checked against them: an occurrence that the server did not report is shown to the caller.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tree_sitter::{Node, Tree};

use super::lexical::{self, TextSpan};
use super::outline::Span;
use super::{syntax, walk};
use crate::digest::Digest;
use crate::text::names::is_in_name;

/// The kind of an occurrence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum OccurrenceKind {
    /// An identifier token that is neither of the next two.
    Identifier,
    /// The name after a dot, or of a keyword in a pattern.
    Attribute,
    /// The name of a keyword argument in a call.
    Keyword,
    /// A string that is an entry of `__all__`.
    Exported,
    /// A whole word in another string.
    String,
    /// A whole word in a comment.
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

    /// Whether the name is an identifier token, which a server could resolve.
    #[must_use]
    pub const fn is_token(self) -> bool {
        matches!(self, Self::Identifier | Self::Attribute | Self::Keyword)
    }
}

/// One occurrence.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TextOccurrence {
    /// The offset of the name.
    pub start: usize,
    /// The offset after the name.
    pub end: usize,
    /// The kind.
    pub kind: OccurrenceKind,
}

impl TextOccurrence {
    /// The bytes of the name.
    #[must_use]
    pub fn span(&self) -> Span {
        self.start..self.end
    }
}

/// The limit of the cache, in bytes. The spans of a text take about as much memory as the text.
const CACHE_LIMIT_BYTES: usize = 6 << 20;

/// The spans of the texts that were read last.
static CACHE: Mutex<NameSpanCache> = Mutex::new(NameSpanCache { texts: BTreeMap::new(), size: 0, clock: 0 });

/// All spans of a text in which a name can occur.
#[derive(Debug, Default, Clone)]
struct NameSpans {
    /// The identifier tokens, in order.
    tokens: Vec<PackedSpan>,
    /// The comments, and the strings between their quotes.
    others: Vec<PackedSpan>,
}

/// A span and the kind of a name in it.
#[derive(Debug, Clone, Copy)]
struct PackedSpan {
    start: u32,
    /// The length in bytes times [`KIND_COUNT`], plus the number of the kind: packed, because there are millions of spans. Files
    /// are read up to [`MAX_FILE_BYTES`](crate::workspace::files::MAX_FILE_BYTES), so that the product fits.
    length_and_kind: u32,
}

/// The kinds, in the order of their numbers.
const KINDS: [OccurrenceKind; 6] = [
    OccurrenceKind::Identifier,
    OccurrenceKind::Attribute,
    OccurrenceKind::Keyword,
    OccurrenceKind::Exported,
    OccurrenceKind::String,
    OccurrenceKind::Comment,
];
const KIND_COUNT: u32 = KINDS.len() as u32;

/// An LRU cache of the spans of texts.
struct NameSpanCache {
    /// The spans of each text, with the time of the last use.
    texts: BTreeMap<Digest, (Arc<NameSpans>, u64)>,
    /// The memory of all entries, in bytes.
    size: usize,
    /// A logical clock that advances with each access.
    clock: u64,
}

/// The occurrences of an identifier in a text whose digest is given, in order. The text is parsed only if it contains the name and
/// is not in the cache.
#[must_use]
pub fn occurrences(text: &str, digest: Digest, name: &str) -> Vec<TextOccurrence> {
    occurrences_by(text, digest, name, NameSpans::of)
}

/// Like [`occurrences`]; if the text is parsed, its tree is cached, because it is needed again.
#[must_use]
pub fn occurrences_keeping_tree(text: &str, digest: Digest, name: &str) -> Vec<TextOccurrence> {
    occurrences_by(text, digest, name, |text| NameSpans::of_tree(&syntax::parse(text), text).clone())
}

/// The occurrences of a name at the given candidates (see [`candidates`]), if all are in comments, or in strings that hold more than
/// the name; `None` if the text has to be parsed to know.
#[must_use]
pub fn plain_text(text: &str, name: &str, candidates: &[usize]) -> Option<Vec<TextOccurrence>> {
    lexed(text, name, candidates, |_, _| None)
}

/// Like [`plain_text`], but every token of code counts as an identifier, and every string as text: for a symbol that cannot be used in
/// this text. `None` if the text has to be parsed to know which of them are tokens.
#[must_use]
pub fn tokens_and_text(text: &str, name: &str, candidates: &[usize]) -> Option<Vec<TextOccurrence>> {
    // Words that the grammar takes for a part of a statement in some places.
    const NOT_ALWAYS_NAMES: [&str; 8] = ["match", "case", "type", "_", "print", "exec", "async", "await"];
    if NOT_ALWAYS_NAMES.contains(&name) || text.contains("__all__") {
        return None;
    }
    lexed(text, name, candidates, |around, span| match around {
        Some(TextSpan::String(_)) => Some(OccurrenceKind::String),
        None if !is_part_of_token(text, &span) => Some(OccurrenceKind::Identifier),
        _ => None,
    })
}

/// The occurrences of a name at the candidates by Python's lexical rules. `decide` says what is in code, in a formatted string, or
/// all that a string holds; `None` if the text has to be parsed to know.
fn lexed(
    text: &str,
    name: &str,
    candidates: &[usize],
    decide: impl Fn(Option<&TextSpan>, Span) -> Option<OccurrenceKind>,
) -> Option<Vec<TextOccurrence>> {
    let spans = lexical::text_spans(text)?;
    let mut found = Vec::new();
    // The occurrences in the last comment or string, which may have many.
    let mut words: (Span, Vec<TextOccurrence>) = (0..0, Vec::new());
    for &at in candidates {
        let span = at..at + name.len();
        let next = spans.partition_point(|one| one.span().end <= at);
        let around = spans.get(next).filter(|one| one.span().start <= at);
        let kind = match around {
            Some(TextSpan::Comment(_)) => OccurrenceKind::Comment,
            Some(TextSpan::String(_)) if !is_quoted(text, &span) => OccurrenceKind::String,
            _ => decide(around, span.clone())?,
        };
        match around {
            None => found.push(TextOccurrence { start: span.start, end: span.end, kind }),
            Some(around) => {
                if words.0 != *around.span() {
                    words = (around.span().clone(), Vec::new());
                    push_words(&mut words.1, text, around.span().clone(), name, kind);
                }
                if let Ok(word) = words.1.binary_search_by_key(&at, |word| word.start) {
                    found.push(TextOccurrence { kind, ..words.1[word].clone() });
                }
            }
        }
    }
    Some(found)
}

/// Whether a span may be only a part of a token: of a longer name, or as the prefix of a string (`f""`), or the end of a number (`1.j`).
fn is_part_of_token(text: &str, span: &Span) -> bool {
    let (before, after) = (&text[..span.start], &text[span.end..]);
    before.ends_with(is_in_name)
        || after.starts_with(|c: char| is_in_name(c) || c == '"' || c == '\'')
        || before.strip_suffix('.').is_some_and(|before| before.ends_with(|c: char| c.is_ascii_digit()))
}

/// Whether a span is all that is between two quotes.
#[must_use]
pub fn is_quoted(text: &str, span: &Span) -> bool {
    let is_quote = |c: char| c == '\'' || c == '"';
    text.get(..span.start).is_some_and(|before| before.ends_with(is_quote))
        && text.get(span.end..).is_some_and(|after| after.starts_with(is_quote))
}

/// Where a name may occur in a text: every occurrence begins at one of these offsets. Needs no parsing.
pub fn candidates<'t>(text: &'t str, name: &'t str) -> impl Iterator<Item = usize> + 't {
    let is_letter = |byte: Option<&u8>| byte.is_some_and(|byte| *byte == b'_' || byte.is_ascii_alphabetic());
    let bytes = text.as_bytes();
    text.match_indices(name).map(|(at, _)| at).filter(move |&at| {
        // In `\nname` the `n` belongs to the escape sequence.
        let is_escape = at >= 2 && bytes[at - 2] == b'\\';
        let before = at.checked_sub(1).and_then(|at| bytes.get(at));
        (is_escape || !is_letter(before)) && !is_letter(bytes.get(at + name.len()))
    })
}

fn occurrences_by(
    text: &str,
    digest: Digest,
    name: &str,
    read: impl Fn(&str) -> NameSpans,
) -> Vec<TextOccurrence> {
    if name.is_empty() || !text.contains(name) {
        return Vec::new();
    }
    let cache = || CACHE.lock().unwrap_or_else(PoisonError::into_inner);
    let known = cache().get(digest);
    let spans = known.unwrap_or_else(|| {
        let spans = Arc::new(read(text));
        cache().insert(digest, spans.clone());
        spans
    });
    spans.occurrences(text, name)
}

/// The length from which texts are parsed one at a time: a tree takes some 30 times the memory of its text, and the process keeps
/// its peak memory.
const LARGE_TEXT_BYTES: usize = 64 << 10;

/// Held while a large text is parsed.
static LARGE_TEXT_LOCK: Mutex<()> = Mutex::new(());

impl NameSpans {
    /// The spans of a text. Returns a clone, because the original was allocated between the nodes of the tree and would fragment
    /// their memory.
    fn of(text: &str) -> Self {
        Self::read(text).clone()
    }

    fn read(text: &str) -> Self {
        let large = (text.len() >= LARGE_TEXT_BYTES).then_some(&LARGE_TEXT_LOCK);
        let _guard = large.map(|lock| lock.lock().unwrap_or_else(PoisonError::into_inner));
        if large.is_some() {
            syntax::shrink_cache(LARGE_TEXT_BYTES);
        }
        Self::of_tree(&syntax::parse_now(text), text)
    }

    fn of_tree(tree: &Tree, text: &str) -> Self {
        let mut spans = Self::default();
        let mut cursor = tree.walk();
        // The nodes around, with their kinds: `Node::parent` walks down from the root.
        let mut above: Vec<(Node<'_>, &str)> = Vec::new();
        loop {
            let node = cursor.node();
            let around = |depth: usize| above.len().checked_sub(depth).and_then(|at| above.get(at));
            let parent = around(1).map_or("", |(_, kind)| kind);
            let is_attribute_in_pattern = || {
                around(1).is_some_and(|(dotted, _)| dotted.start_byte() != node.start_byte())
                    && around(2).is_some_and(|(_, kind)| matches!(*kind, "case_pattern" | "class_pattern"))
            };
            let visit_children = match node.kind() {
                "identifier" => {
                    let kind = match (parent, cursor.field_name()) {
                        ("attribute", Some("attribute")) => OccurrenceKind::Attribute,
                        ("keyword_argument", Some("name")) => OccurrenceKind::Keyword,
                        // `case C(x=1)` reads `.x`.
                        ("keyword_pattern", _) => OccurrenceKind::Attribute,
                        // `case a.X` and `case a.X()`, too.
                        ("dotted_name", _) if is_attribute_in_pattern() => OccurrenceKind::Attribute,
                        _ => OccurrenceKind::Identifier,
                    };
                    spans.tokens.push(PackedSpan::new(node.byte_range(), kind));
                    false
                }
                "comment" => {
                    spans.others.push(PackedSpan::new(node.byte_range(), OccurrenceKind::Comment));
                    false
                }
                "string_content" => {
                    spans.others.push(PackedSpan::new(node.byte_range(), OccurrenceKind::String));
                    false
                }
                _ => true,
            };
            if visit_children && cursor.goto_first_child() {
                above.push((node, node.kind()));
                continue;
            }
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() {
                    spans.mark_exports(tree, text);
                    return spans;
                }
                above.pop();
            }
        }
    }

    /// Changes the kind of strings that are entries of `__all__`.
    fn mark_exports(&mut self, tree: &Tree, text: &str) {
        if !text.contains("__all__") {
            return;
        }
        let exports = walk::outline(tree, text).exports.unwrap_or_default();
        let entries: Vec<_> = exports.names.iter().map(|entry| entry.span.clone()).collect();
        for string in self.others.iter_mut().filter(|other| other.kind() == OccurrenceKind::String) {
            let Span { start, end } = string.span();
            if entries.iter().any(|entry| entry.start <= start && end <= entry.end) {
                *string = PackedSpan::new(start..end, OccurrenceKind::Exported);
            }
        }
    }

    fn occurrences(&self, text: &str, name: &str) -> Vec<TextOccurrence> {
        let mut found = Vec::new();
        for token in &self.tokens {
            let Span { start, end } = token.span();
            if end - start == name.len() && text.get(start..end) == Some(name) {
                found.push(TextOccurrence { start, end, kind: token.kind() });
            }
        }
        for other in &self.others {
            push_words(&mut found, text, other.span(), name, other.kind());
        }
        found.sort();
        found.dedup();
        found
    }

    /// The memory in bytes.
    const fn size(&self) -> usize {
        (self.tokens.capacity() + self.others.capacity()) * size_of::<PackedSpan>() + size_of::<Self>()
    }
}

impl PackedSpan {
    fn new(span: Span, kind: OccurrenceKind) -> Self {
        let to_u32 = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let length = to_u32(span.len()).min(u32::MAX / KIND_COUNT - 1);
        Self { start: to_u32(span.start), length_and_kind: length * KIND_COUNT + kind as u32 }
    }

    const fn span(&self) -> Span {
        let start = self.start as usize;
        start..start + (self.length_and_kind / KIND_COUNT) as usize
    }

    const fn kind(&self) -> OccurrenceKind {
        KINDS[(self.length_and_kind % KIND_COUNT) as usize]
    }
}

impl NameSpanCache {
    fn get(&mut self, digest: Digest) -> Option<Arc<NameSpans>> {
        self.clock += 1;
        let (spans, last_use) = self.texts.get_mut(&digest)?;
        *last_use = self.clock;
        Some(spans.clone())
    }

    /// Adds an entry, and drops the least recently used ones beyond the limit.
    fn insert(&mut self, digest: Digest, spans: Arc<NameSpans>) {
        self.clock += 1;
        self.size += spans.size();
        if let Some((old, _)) = self.texts.insert(digest, (spans, self.clock)) {
            self.size -= old.size();
        }
        while self.size > CACHE_LIMIT_BYTES {
            let oldest =
                self.texts.iter().min_by_key(|(_, (_, last_use))| *last_use).map(|(digest, _)| *digest);
            let Some((dropped, _)) = oldest.and_then(|digest| self.texts.remove(&digest)) else { break };
            self.size -= dropped.size();
        }
    }
}

/// Adds the occurrences of `name` as a whole word in a span.
fn push_words(found: &mut Vec<TextOccurrence>, text: &str, span: Span, name: &str, kind: OccurrenceKind) {
    let Some(part) = text.get(span.clone()) else { return };
    for (at, _) in part.match_indices(name) {
        let before = part[..at].chars().next_back();
        let after = part[at + name.len()..].chars().next();
        // In `\nname` the `n` belongs to the escape sequence.
        let mut last_two = part[..at].chars().rev().take(2);
        let is_escape =
            last_two.next().is_some_and(|c| c.is_ascii_alphabetic()) && last_two.next() == Some('\\');
        if (is_escape || !before.is_some_and(is_in_name)) && !after.is_some_and(is_in_name) {
            let start = span.start + at;
            found.push(TextOccurrence { start, end: start + name.len(), kind });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn occurrences(text: &str, name: &str) -> Vec<TextOccurrence> {
        super::occurrences(text, Digest::of(text.as_bytes()), name)
    }

    #[test]
    fn candidates_cover_every_occurrence() {
        let text = "name = 1\nx.name, name2, _name, 2name\nf(name=name)  # name\n\
                    '\\name', '\\\\name', 'éname', \"x.name\", f'{name}name'\n__all__ = ['name']\nnaméname\n";
        for name in ["name", "n", "x", "é", "name2"] {
            let candidates: Vec<usize> = candidates(text, name).collect();
            let found = occurrences(text, name);
            assert!(
                found.iter().all(|one| candidates.contains(&one.start)),
                "{name}: {found:?}, {candidates:?}"
            );
        }
        assert!(occurrences(text, "name").len() > 8);
        assert_eq!(candidates("rename names x.name", "name").collect::<Vec<_>>(), [15]);
    }

    #[test]
    fn plain_text_is_what_the_parser_takes_for_it() {
        let text = "def name(): # name\n    'a name'\n    x = ['name', b'a\\name', f'{name}']\n";
        let all: Vec<usize> = candidates(text, "name").collect();
        let parsed = occurrences(text, "name");
        assert_eq!(all.len(), 6);
        let mut plain = Vec::new();
        for at in all {
            if let Some(found) = plain_text(text, "name", &[at]) {
                assert!(found.iter().all(|one| parsed.contains(one)), "{found:?}, {parsed:?}");
                plain.extend(found.into_iter().map(|one| one.kind));
            }
        }
        use OccurrenceKind::{Comment, String};
        assert_eq!(plain, [Comment, String, String]);
    }

    #[test]
    fn tokens_and_text_are_those_of_the_parser() {
        let text = "def f(name): # name\n    'a name'\n    x.name = f(name='name', y=b'\\name')\n    names, 2, nameé\n";
        let all: Vec<usize> = candidates(text, "name").collect();
        let kinds = |found: Vec<TextOccurrence>| -> Vec<(usize, bool)> {
            found.into_iter().map(|one| (one.start, one.kind.is_token())).collect()
        };
        // `nameé` is another name, which only the parser is asked about.
        assert_eq!(tokens_and_text(text, "name", &all), None);
        let all = &all[..all.len() - 1];
        assert_eq!(kinds(tokens_and_text(text, "name", all).unwrap()), kinds(occurrences(text, "name")));
        assert_eq!(tokens_and_text("f'{name}'", "name", &[3]), None);
        assert_eq!(tokens_and_text("__all__ = ['name']", "name", &[12]), None);
        assert_eq!(tokens_and_text("match = 1", "match", &[0]), None);
        // Prefixes of strings, and ends of numbers.
        assert_eq!(tokens_and_text("f''", "f", &[0]), None);
        assert_eq!(tokens_and_text("1.j", "j", &[2]), None);
        // No name, but what matches anything.
        assert_eq!(tokens_and_text("match x:\n    case _: pass\n", "_", &[18]), None);
    }

    #[test]
    fn plain_text_of_real_files() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("python/lanser");
        let mut texts = 0;
        for file in std::fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "py") {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            for name in ["a", "str", "bundle", "None", "the", "of", "n", "s"] {
                let parsed = occurrences(&text, name);
                for at in candidates(&text, name) {
                    let Some(found) = plain_text(&text, name, &[at]) else { continue };
                    let expected: Vec<_> = parsed.iter().filter(|one| one.start == at).cloned().collect();
                    assert_eq!(found, expected, "{} at {at}", path.display());
                    texts += found.len();
                }
            }
        }
        assert!(texts > 100, "{texts}");
    }

    #[test]
    fn the_cache_is_bounded() {
        let mut cache = NameSpanCache { texts: BTreeMap::new(), size: 0, clock: 0 };
        let span = PackedSpan::new(0..1, OccurrenceKind::Comment);
        let most = CACHE_LIMIT_BYTES / 10 / size_of::<PackedSpan>();
        let spans = || Arc::new(NameSpans { tokens: vec![span; most], others: Vec::new() });
        for number in 0..40_u8 {
            cache.insert(Digest::of(&[number]), spans());
            assert!(cache.get(Digest::of(&[0])).is_some(), "it is used all the time");
            assert!(cache.size <= CACHE_LIMIT_BYTES);
            assert_eq!(cache.size, cache.texts.values().map(|(spans, _)| spans.size()).sum::<usize>());
        }
        assert!(cache.get(Digest::of(&[39])).is_some() && cache.get(Digest::of(&[1])).is_none());
        cache.insert(Digest::of(&[39]), spans());
        assert_eq!(cache.texts.len(), 9);
    }

    #[test]
    fn packed_spans_round_trip() {
        let longest = usize::try_from(crate::workspace::files::MAX_FILE_BYTES).unwrap();
        for kind in KINDS {
            for span in [0..0, 0..longest, longest - 3..longest] {
                let packed = PackedSpan::new(span.clone(), kind);
                assert_eq!((packed.span(), packed.kind()), (span, kind));
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
        assert_eq!(found, [K::Identifier, K::Attribute, K::Identifier, K::Identifier, K::Attribute]);
    }

    proptest::proptest! {
        /// In any text, tokens are whole words and in order.
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
