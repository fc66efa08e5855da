//! The identifier tokens and the definitions of one file, for resolving positions.

use std::sync::Arc;

use super::digest_cache::{DigestCache, MemorySize};
use super::outline::{Outline, Span};
use super::syntax;
use crate::workspace::files::Document;

/// The files that were parsed last.
static CACHE: DigestCache<ParsedFile> = DigestCache::new();

/// The identifiers and the definitions of one text.
#[derive(Debug, Clone)]
pub(super) struct ParsedFile {
    /// The byte ranges of the identifiers, in order and not empty. 32 bits are enough: larger files are not read.
    identifiers: Vec<(u32, u32)>,
    /// The definitions.
    pub(super) outline: Arc<Outline>,
}

impl ParsedFile {
    /// Parses a document, or takes it from the cache.
    pub(super) fn of(document: &Document) -> Arc<Self> {
        CACHE.get(document.digest, || Self::new(&document.text))
    }

    /// Parses a text.
    pub(super) fn new(text: &str) -> Self {
        let tree = syntax::parse(text);
        let mut identifiers = Vec::new();
        // Comparing numeric kinds is several times as fast as comparing their names.
        let identifier = tree.language().id_for_node_kind("identifier", true);
        syntax::preorder(tree.root_node(), |node| {
            if node.kind_id() == identifier && node.start_byte() < node.end_byte() {
                let at = |byte: usize| u32::try_from(byte).unwrap_or(u32::MAX);
                identifiers.push((at(node.start_byte()), at(node.end_byte())));
            }
            true
        });
        Self { identifiers, outline: Outline::parse(text) }
    }

    /// The identifier that contains an offset, or else ends at it. An identifier that begins at the offset is preferred to one
    /// that ends there.
    pub(super) fn identifier_at(&self, offset: usize) -> Option<Span> {
        // Only the first identifier that ends after the offset can contain it; the one before may end at it.
        let next = self.identifiers.partition_point(|(_, end)| *end as usize <= offset);
        let containing = self.identifiers.get(next).filter(|(start, _)| *start as usize <= offset);
        let ending = || self.identifiers.get(next.checked_sub(1)?).filter(|(_, end)| *end as usize == offset);
        containing.or_else(ending).map(span)
    }

    /// The identifiers that lie within a span.
    pub(super) fn identifiers_in(&self, within: &Span) -> impl Iterator<Item = Span> {
        let next = self.identifiers.partition_point(|(start, _)| (*start as usize) < within.start);
        self.identifiers[next..].iter().map(span).take_while(|found| found.end <= within.end)
    }

    /// The first identifier that lies within a span.
    pub(super) fn first_identifier(&self, within: &Span) -> Option<Span> {
        let next = self.identifiers.partition_point(|(start, _)| (*start as usize) < within.start);
        self.identifiers.get(next).map(span).filter(|found| found.end <= within.end)
    }
}

impl MemorySize for ParsedFile {
    fn memory_bytes(&self) -> usize {
        // The outline is kept as long as this is, whatever its own cache drops.
        size_of::<Self>() + self.identifiers.len() * size_of::<(u32, u32)>() + self.outline.memory_bytes()
    }
}

/// Parses a document into the cache.
pub fn parse_ahead(document: &Document) {
    drop(ParsedFile::of(document));
}

/// The longest signature that is shown, in bytes.
const MAX_SIGNATURE_BYTES: usize = 4000;

/// The definition whose name token begins at an offset, as it is written: from `def` or `class` to the colon; for another name
/// its line. `None` at the beginning of a file, which stands for the module.
#[must_use]
pub fn signature_at(document: &Document, offset: usize) -> Option<String> {
    let (text, parsed) = (&document.text, ParsedFile::of(document));
    let definition =
        parsed.outline.definitions.iter().find(|definition| definition.name_span.start == offset);
    let written = match definition.and_then(|definition| definition.signature.clone()) {
        Some(signature) => text.get(signature)?.trim_end().trim_end_matches(':'),
        None if offset == 0 && definition.is_none() => return None,
        None => {
            let start = text.get(..offset)?.rfind(['\n', '\r']).map_or(0, |at| at + 1);
            text[start..].split(['\n', '\r']).next().unwrap_or_default().trim()
        }
    };
    let end = written.floor_char_boundary(MAX_SIGNATURE_BYTES);
    (!written.is_empty()).then(|| written[..end].to_owned())
}

fn span((start, end): &(u32, u32)) -> Span {
    *start as usize..*end as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::AbsPath;

    #[test]
    fn identifiers_in_and_at_an_offset() {
        let parsed = ParsedFile::new("ab.c = f'{d}' # e\n");
        let at = |offset| parsed.identifier_at(offset);
        assert_eq!([at(0), at(1), at(2)], [Some(0..2), Some(0..2), Some(0..2)]);
        assert_eq!([at(3), at(4), at(5)], [Some(3..4), Some(3..4), None]);
        assert_eq!([at(9), at(10), at(11), at(12)], [None, Some(10..11), Some(10..11), None]);
        assert_eq!([at(16), at(17), at(99)], [None, None, None]);
        assert_eq!(ParsedFile::new("").identifier_at(0), None);
    }

    #[test]
    fn signatures_are_quoted() {
        let text = "import re\nclass C(Base,\n        kind=1):\n    size: int = 3  # of it\n    @cached\n    async def f(self) -> None: ...\n";
        let signature = |word: &str| {
            let path = AbsPath::new("/w/a.py").unwrap();
            let document = Document::new(path, text.as_bytes().to_vec());
            signature_at(&document, text.find(word).unwrap())
        };
        assert_eq!(signature("C(Base").unwrap(), "class C(Base,\n        kind=1)");
        assert_eq!(signature("size").unwrap(), "size: int = 3  # of it");
        assert_eq!(signature("f(self").unwrap(), "async def f(self) -> None");
        assert_eq!(signature("import"), None);
    }

    #[test]
    fn the_first_identifier_lies_entirely_within_the_span() {
        let parsed = ParsedFile::new("abc = (1 + xyz)\n");
        assert_eq!(parsed.first_identifier(&(0..16)), Some(0..3));
        assert_eq!(parsed.first_identifier(&(1..16)), Some(11..14));
        assert_eq!(parsed.first_identifier(&(1..13)), None);
        assert_eq!(parsed.first_identifier(&(14..16)), None);
    }
}
