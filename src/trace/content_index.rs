//! Index of the blobs and workspaces in a trace, readable from its end.
//!
//! Appending needs to know what the file already holds without reading all of it. So the `end` event of operation *n* names
//! the blobs and workspaces of the last *s* operations, where *s* is the largest power of two that divides *n*, and the
//! offset of the `end` before those. Followed back from the last `end`, a few of them name everything (a binary counter):
//! each digest is named about as often as the number of operations has binary digits.

use crate::digest::Digest;

/// The chain of `end` events that together name all contents, each covering more operations than the next.
#[derive(Debug, Default)]
pub(super) struct ContentIndex(Vec<IndexRow>);

/// One `end` event of the chain.
#[derive(Debug, PartialEq, Eq)]
struct IndexRow {
    /// How many operations it covers.
    span: u64,
    /// The offset of its line.
    at: u64,
    contents: Vec<Digest>,
}

/// The index part of an `end` event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EndEntry {
    /// The offset of the `end` before the operations whose contents are named.
    pub(super) back: Option<u64>,
    pub(super) contents: Vec<Digest>,
}

/// How many operations the `end` of operation `op` covers.
pub(super) const fn span(op: u64) -> u64 {
    1 << op.trailing_zeros()
}

impl ContentIndex {
    /// The entry for the next operation, which has the contents `own`.
    pub(super) fn entry_for_next(&self, own: Vec<Digest>) -> EndEntry {
        let (unchanged, contents) = self.merged(own);
        EndEntry { back: unchanged.checked_sub(1).map(|last| self.0[last].at), contents }
    }

    /// Adds the next operation, whose `end` is at offset `at`.
    pub(super) fn push(&mut self, own: Vec<Digest>, at: u64) {
        let before: u64 = self.0.iter().map(|row| row.span).sum();
        let (unchanged, contents) = self.merged(own);
        self.0.truncate(unchanged);
        self.0.push(IndexRow { span: span(before + 1), at, contents });
    }

    /// How many rows stay unchanged, and the contents of the others merged with those of one more operation.
    fn merged(&self, own: Vec<Digest>) -> (usize, Vec<Digest>) {
        let (mut unchanged, mut span, mut contents) = (self.0.len(), 1, own);
        while let Some(row) =
            unchanged.checked_sub(1).map(|last| &self.0[last]).filter(|row| row.span == span)
        {
            contents.extend(&row.contents);
            span *= 2;
            unchanged -= 1;
        }
        (unchanged, contents)
    }

    /// The index from the chain of `end` events, the last first: operation number, offset of the line, contents.
    pub(super) fn of(ends: impl IntoIterator<Item = (u64, u64, Vec<Digest>)>) -> Self {
        let mut rows: Vec<IndexRow> =
            ends.into_iter().map(|(op, at, contents)| IndexRow { span: span(op), at, contents }).collect();
        rows.reverse();
        Self(rows)
    }

    /// All named contents.
    pub(super) fn contents(&self) -> impl Iterator<Item = &Digest> {
        self.0.iter().flat_map(|row| &row.contents)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn every_content_is_reachable_from_any_end_in_few_steps() {
        let digest = |op: u64| Digest::of(&op.to_le_bytes());
        let (mut index, mut ends) = (ContentIndex::default(), BTreeMap::new());
        let mut named = 0;
        for op in 1..=300 {
            let entry = index.entry_for_next(vec![digest(op)]);
            named += entry.contents.len();
            index.push(vec![digest(op)], op * 10);
            ends.insert(op * 10, (op, entry));
            // Follow the chain back, as a writer does when it opens the file.
            let (mut at, mut steps) = (Some(op * 10), Vec::new());
            while let Some(offset) = at {
                let (op, EndEntry { back, contents }) = &ends[&offset];
                steps.push((*op, offset, contents.clone()));
                at = *back;
            }
            assert!(steps.len() <= 9, "{op}: {} steps", steps.len());
            let found = ContentIndex::of(steps);
            assert_eq!(found.0, index.0);
            let mut all: Vec<Digest> = found.contents().copied().collect();
            all.sort_unstable();
            let mut expected: Vec<Digest> = (1..=op).map(digest).collect();
            expected.sort_unstable();
            assert_eq!(all, expected);
        }
        assert!(named < 300 * 9, "{named} names for 300 contents");
    }
}
