//! Which contents a trace holds, found from its end.
//!
//! Whoever appends has to know what the file holds already, and must not read it whole for that. So the `end` of operation
//! *n* names the blobs and workspaces of the last *s* operations, where *s* is the largest power of two that divides *n*, and
//! the place of the `end` before those. From the last `end` back, a few of them name everything, and each content is named
//! about as often as the number of operations has binary digits.

use crate::digest::Digest;

/// What the ends name that together name everything, each of more operations than the next.
#[derive(Debug, Default)]
pub(super) struct Directory(Vec<Row>);

/// What one end names.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    /// Of how many operations.
    span: u64,
    /// Where its line begins.
    at: u64,
    contents: Vec<Digest>,
}

/// What the end of the next operation has to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// Where the line begins of the end before the operations whose contents are named.
    pub(super) back: Option<u64>,
    pub(super) contents: Vec<Digest>,
}

/// Of how many operations the end of one names the contents.
pub(super) const fn span(op: u64) -> u64 {
    1 << op.trailing_zeros()
}

impl Directory {
    /// What the end of the next operation says, which has these contents.
    pub(super) fn next(&self, own: Vec<Digest>) -> Entry {
        let (kept, contents) = self.merged(own);
        Entry { back: kept.checked_sub(1).map(|last| self.0[last].at), contents }
    }

    /// The end of the next operation stands at a place.
    pub(super) fn push(&mut self, own: Vec<Digest>, at: u64) {
        let before: u64 = self.0.iter().map(|row| row.span).sum();
        let (kept, contents) = self.merged(own);
        self.0.truncate(kept);
        self.0.push(Row { span: span(before + 1), at, contents });
    }

    /// How many rows stay as they are, and what the others come to with the contents of one more operation.
    fn merged(&self, own: Vec<Digest>) -> (usize, Vec<Digest>) {
        let (mut kept, mut span, mut contents) = (self.0.len(), 1, own);
        while let Some(row) = kept.checked_sub(1).map(|last| &self.0[last]).filter(|row| row.span == span) {
            contents.extend(&row.contents);
            span *= 2;
            kept -= 1;
        }
        (kept, contents)
    }

    /// A directory out of what ends say, the last first: the number of the operation, where its line begins, the contents.
    pub(super) fn of(ends: impl IntoIterator<Item = (u64, u64, Vec<Digest>)>) -> Self {
        let mut rows: Vec<Row> =
            ends.into_iter().map(|(op, at, contents)| Row { span: span(op), at, contents }).collect();
        rows.reverse();
        Self(rows)
    }

    /// Every content.
    pub(super) fn contents(&self) -> impl Iterator<Item = &Digest> {
        self.0.iter().flat_map(|row| &row.contents)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn from_any_end_everything_is_found_in_few_steps() {
        let digest = |op: u64| Digest::of(&op.to_le_bytes());
        let (mut directory, mut ends) = (Directory::default(), BTreeMap::new());
        let mut named = 0;
        for op in 1..=300 {
            let entry = directory.next(vec![digest(op)]);
            named += entry.contents.len();
            directory.push(vec![digest(op)], op * 10);
            ends.insert(op * 10, (op, entry));
            // As whoever opens the file goes.
            let (mut at, mut steps) = (Some(op * 10), Vec::new());
            while let Some(place) = at {
                let (op, Entry { back, contents }) = &ends[&place];
                steps.push((*op, place, contents.clone()));
                at = *back;
            }
            assert!(steps.len() <= 9, "{op}: {} steps", steps.len());
            let found = Directory::of(steps);
            assert_eq!(found.0, directory.0);
            let mut all: Vec<Digest> = found.contents().copied().collect();
            all.sort_unstable();
            let mut expected: Vec<Digest> = (1..=op).map(digest).collect();
            expected.sort_unstable();
            assert_eq!(all, expected);
        }
        assert!(named < 300 * 9, "{named} names for 300 contents");
    }
}
