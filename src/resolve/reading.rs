//! What a line and a column are looked up in: where the identifiers of a file are, and its definitions.

use std::sync::Arc;

use super::outline::{Outline, Span};
use super::remembered::{Remembered, Weigh};
use super::syntax;
use crate::workspace::files::Document;

/// What was read last.
static LATEST: Remembered<Reading> = Remembered::new();

/// The identifiers and the definitions of one text.
#[derive(Debug, Clone)]
pub(super) struct Reading {
    /// Where identifiers begin and end, in bytes and in order. None is empty. No file that is read has 4 GiB.
    identifiers: Vec<(u32, u32)>,
    /// The definitions.
    pub(super) outline: Outline,
}

impl Reading {
    /// Reads a document, or remembers it.
    pub(super) fn of(document: &Document) -> Arc<Self> {
        LATEST.get(document.digest, || Self::new(&document.text))
    }

    /// Reads a text.
    pub(super) fn new(text: &str) -> Self {
        let tree = syntax::parse(text);
        let mut identifiers = Vec::new();
        // Numbers are compared for every node, names would take several times as long.
        let identifier = tree.language().id_for_node_kind("identifier", true);
        syntax::preorder(tree.root_node(), |node| {
            if node.kind_id() == identifier && node.start_byte() < node.end_byte() {
                let at = |byte: usize| u32::try_from(byte).unwrap_or(u32::MAX);
                identifiers.push((at(node.start_byte()), at(node.end_byte())));
            }
            true
        });
        Self { identifiers, outline: Outline::of_tree(&tree, text) }
    }

    /// The identifier that contains an offset, or else ends at it. The one that begins here goes before the one that ends
    /// here: `a|b` cannot be, but `a.|b` is `b`.
    pub(super) fn identifier_at(&self, offset: usize) -> Option<Span> {
        // The first that ends behind the offset is the only one that can contain it; the one before may end at it.
        let next = self.identifiers.partition_point(|(_, end)| *end as usize <= offset);
        let containing = self.identifiers.get(next).filter(|(start, _)| *start as usize <= offset);
        let ending = || self.identifiers.get(next.checked_sub(1)?).filter(|(_, end)| *end as usize == offset);
        containing.or_else(ending).map(span)
    }

    /// The first identifier that lies in a stretch.
    pub(super) fn first_identifier(&self, stretch: &Span) -> Option<Span> {
        let next = self.identifiers.partition_point(|(start, _)| (*start as usize) < stretch.start);
        self.identifiers.get(next).map(span).filter(|found| found.end <= stretch.end)
    }
}

impl Weigh for Reading {
    fn weight(&self) -> usize {
        /// What a definition takes beside the spans: its name, its decorators, its bases.
        const TEXTS: usize = 64;
        let definition = size_of::<super::outline::Definition>() + TEXTS;
        size_of::<Self>()
            + self.identifiers.len() * size_of::<(u32, u32)>()
            + self.outline.definitions.len() * definition
    }
}

fn span((start, end): &(u32, u32)) -> Span {
    *start as usize..*end as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_in_and_at_an_offset() {
        let reading = Reading::new("ab.c = f'{d}' # e\n");
        let at = |offset| reading.identifier_at(offset);
        assert_eq!([at(0), at(1), at(2)], [Some(0..2), Some(0..2), Some(0..2)]);
        assert_eq!([at(3), at(4), at(5)], [Some(3..4), Some(3..4), None]);
        assert_eq!([at(9), at(10), at(11), at(12)], [None, Some(10..11), Some(10..11), None]);
        assert_eq!([at(16), at(17), at(99)], [None, None, None]);
        assert_eq!(Reading::new("").identifier_at(0), None);
    }

    #[test]
    fn the_first_identifier_of_a_stretch_lies_in_it_whole() {
        let reading = Reading::new("abc = (1 + xyz)\n");
        assert_eq!(reading.first_identifier(&(0..16)), Some(0..3));
        assert_eq!(reading.first_identifier(&(1..16)), Some(11..14));
        assert_eq!(reading.first_identifier(&(1..13)), None);
        assert_eq!(reading.first_identifier(&(14..16)), None);
    }
}
