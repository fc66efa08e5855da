//! What a line and a column are looked up in: where the identifiers of a file are, and its definitions.
//!
//! Parsing takes most of the time that a cursor costs, and one file is asked about many times. A tree is some ten times
//! its text; what a cursor needs of it is about as long as the text. So that is kept, of the files that were asked about
//! last, by content.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::outline::{Outline, Span};
use super::receiver::Meanings;
use super::syntax;
use crate::digest::Digest;
use crate::workspace::files::Document;

/// How much is remembered, in bytes as [`Reading::weight`] counts them.
static REMEMBERED: AtomicUsize = AtomicUsize::new(12 << 20);

/// Has so much remembered, if it were less.
pub(super) fn remember(bytes: usize) {
    REMEMBERED.fetch_max(bytes, Ordering::Relaxed);
}

/// How many files are remembered at most: they are searched one after the other.
const MOST: usize = 1024;

/// What was read last, the latest last.
static LATEST: Mutex<VecDeque<(Digest, Arc<Reading>)>> = Mutex::new(VecDeque::new());

/// The identifiers and the definitions of one text.
#[derive(Debug)]
pub(super) struct Reading {
    /// Where identifiers begin and end, in bytes and in order. None is empty. No file that is read has 4 GiB.
    identifiers: Vec<(u32, u32)>,
    /// The definitions.
    pub(super) outline: Outline,
    /// Its attributes and keyword arguments, once somebody asks for one.
    meanings: OnceLock<Meanings>,
}

impl Reading {
    /// Reads a document, or remembers it.
    pub(super) fn of(document: &Document) -> Arc<Self> {
        let latest = || LATEST.lock().unwrap_or_else(PoisonError::into_inner);
        let known = {
            let mut latest = latest();
            let at = latest.iter().rposition(|(digest, _)| *digest == document.digest);
            at.and_then(|at| latest.remove(at))
        };
        let (digest, reading) =
            known.unwrap_or_else(|| (document.digest, Arc::new(Self::new(&document.text))));
        let mut latest = latest();
        // Somebody else may have read it meanwhile.
        latest.retain(|(other, _)| *other != digest);
        latest.push_back((digest, reading.clone()));
        let mut weight: usize = latest.iter().map(|(_, reading)| reading.weight()).sum();
        while latest.len() > MOST || (latest.len() > 1 && weight > REMEMBERED.load(Ordering::Relaxed)) {
            let Some((_, gone)) = latest.pop_front() else { break };
            weight -= gone.weight();
        }
        reading
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
        Self { identifiers, outline: Outline::of_tree(&tree, text), meanings: OnceLock::new() }
    }

    /// About how many bytes it takes.
    fn weight(&self) -> usize {
        /// What a definition takes beside the spans: its name, its decorators, its bases.
        const TEXTS: usize = 64;
        let definition = size_of::<super::outline::Definition>() + TEXTS;
        size_of::<Self>()
            + self.identifiers.len() * size_of::<(u32, u32)>()
            + self.outline.definitions.len() * definition
            + self.meanings.get().map_or(0, Meanings::weight)
    }

    /// The attributes and the keyword arguments of the text that was read.
    pub(super) fn meanings(&self, text: &str) -> &Meanings {
        self.meanings.get_or_init(|| Meanings::read(text))
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

fn span((start, end): &(u32, u32)) -> Span {
    *start as usize..*end as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::AbsPath;

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

    #[test]
    fn what_is_remembered_is_by_content_and_bounded() {
        let document = |number: usize, text: String| {
            Document::new(AbsPath::new(format!("/w/{number}.py")).unwrap(), text.into_bytes())
        };
        let first = Reading::of(&document(0, "remembered = 1\n".to_owned()));
        let same = Reading::of(&document(1, "remembered = 1\n".to_owned()));
        assert!(Arc::ptr_eq(&first, &same), "another place, the same content");
        for number in 0..8 {
            drop(Reading::of(&document(number, format!("a{number} = b\n").repeat(20_000))));
        }
        let latest = LATEST.lock().unwrap();
        let weight: usize = latest.iter().map(|(_, reading)| reading.weight()).sum();
        assert!(weight <= REMEMBERED.load(Ordering::Relaxed) || latest.len() == 1, "{weight}");
    }
}
