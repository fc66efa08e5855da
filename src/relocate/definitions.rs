//! Queries of the workspace's index of definitions, for name resolution and relocation.
//!
//! Each method is one query, which the operation's tape records with its result. The index itself is not accessible
//! elsewhere.

use super::MissingDefinition;
use super::index::{Index, IndexEntry};
use super::lazy_index::LazyIndex;
use crate::path::WorkspacePath;
use crate::python::not_found::dissimilarity;
use crate::selector::SymbolId;
use crate::tape::{IoKind, Tape};
use crate::workspace::snapshot::Snapshot;

/// A definition with its file.
pub type IndexedDefinition = (WorkspacePath, IndexEntry);

/// The definitions of a workspace. The index is built at the first query.
#[derive(Debug, Clone, Copy)]
pub struct Definitions<'d> {
    /// The index, as far as it was needed.
    pub index: &'d LazyIndex,
    /// The workspace's files.
    pub snapshot: &'d Snapshot,
    /// The number of threads that read files.
    pub threads: usize,
    /// The tape that records and replays the queries.
    pub tape: &'d Tape,
}

impl Definitions<'_> {
    fn index(&self) -> &Index {
        self.index.whole(self.snapshot, self.threads)
    }

    /// Reads what the first id of a definition needs, before it is asked for.
    pub fn prepare(&self) {
        self.snapshot.find_word("", self.threads);
    }

    /// What single files are read from.
    const fn source(&self) -> (&Snapshot, usize) {
        (self.snapshot, self.threads)
    }

    /// The entry of the definition whose name begins at an offset of a file; for a repeated assignment to a variable, the
    /// entry of the first.
    #[must_use]
    pub fn entry(&self, path: &WorkspacePath, offset: usize, chain: &str) -> Option<IndexEntry> {
        let find = || self.index.entry(path, self.source(), offset, chain);
        self.tape.query(IoKind::Index, &("entry", path, offset, chain), find, || None)
    }

    /// The id of a definition, unique in the workspace.
    #[must_use]
    pub fn id(&self, path: &WorkspacePath, entry: &IndexEntry) -> SymbolId {
        let find = || self.index.id(path, entry, self.source());
        self.tape.query(IoKind::Index, &("id", path, entry.offset), find, || entry.id(None))
    }

    /// The definitions of a file with this chain of names.
    #[must_use]
    pub fn in_file(&self, path: &WorkspacePath, chain: &str) -> Vec<IndexEntry> {
        let find = || self.index.in_file(path, self.source(), |entry| entry.chain == chain);
        self.tape.query(IoKind::Index, &("names", path, chain), find, Vec::new)
    }

    /// The definitions with this chain of names, in order.
    #[must_use]
    pub fn with_chain(&self, chain: &str) -> Vec<IndexedDefinition> {
        self.matching(&("chain", chain), |entry| entry.chain == chain)
    }

    /// The definitions with this last name, in order.
    #[must_use]
    pub fn named(&self, name: &str) -> Vec<IndexedDefinition> {
        self.matching(&("name", name), |entry| entry.name() == name)
    }

    /// The definitions whose bodies have at least `size` tokens and a similarity of at least `percent` to that of an id.
    #[must_use]
    pub fn similar(&self, id: &SymbolId, percent: u32, size: u32) -> Vec<IndexedDefinition> {
        let min_similarity = f64::from(percent) / 100.0;
        let is_similar =
            |entry: &IndexEntry| entry.size >= size && entry.sketch.similarity(id.sketch) >= min_similarity;
        self.matching(&("alike", id, percent, size), is_similar)
    }

    /// The files with a definition like one of `wanted`, the likeliest first.
    #[must_use]
    pub fn likely_files(&self, wanted: &[MissingDefinition]) -> Vec<WorkspacePath> {
        let find = || self.index().likely_files(wanted).into_iter().cloned().collect();
        self.tape.query(IoKind::Index, &("likely", wanted), find, Vec::new)
    }

    /// At most `count` definitions whose names are similar to a chain of names, the most similar first.
    #[must_use]
    pub fn like(&self, chain: &str, count: usize) -> Vec<IndexedDefinition> {
        let last = chain.rsplit('.').next().unwrap_or_default();
        let score = |entry: &IndexEntry| {
            let by_last = dissimilarity(last, entry.name()).map(|score| score + 1);
            dissimilarity(chain, &entry.chain).into_iter().chain(by_last).min()
        };
        let find = || {
            let scored = self.index().iter().filter_map(|(path, entry)| Some((score(entry)?, path, entry)));
            let mut scored: Vec<_> = scored.collect();
            scored.sort_by_key(|(score, path, entry)| (*score, *path, entry.offset));
            scored.dedup_by_key(|(_, path, entry)| (*path, entry.chain.as_str()));
            let best = scored.into_iter().take(count);
            best.map(|(_, path, entry)| (path.clone(), entry.clone())).collect()
        };
        self.tape.query(IoKind::Index, &("like", chain, count), find, Vec::new)
    }

    fn matching(
        &self,
        query: &impl serde::Serialize,
        is_match: impl Fn(&IndexEntry) -> bool,
    ) -> Vec<IndexedDefinition> {
        let find = || {
            let all = self.index().iter().filter(|(_, entry)| is_match(entry));
            all.map(|(path, entry)| (path.clone(), entry.clone())).collect()
        };
        self.tape.query(IoKind::Index, query, find, Vec::new)
    }
}
