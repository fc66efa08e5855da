//! What name resolution and relocation ask the workspace's index of definitions.
//!
//! Each method is one question, which an operation's tape records with its answer; nobody else holds the index itself.

use std::sync::OnceLock;

use super::index::{Entry, Index};
use super::relocate::Wanted;
use crate::path::WorkspacePath;
use crate::selector::SymbolId;
use crate::tape::{Door, Tape};
use crate::workspace::snapshot::Snapshot;

/// A definition with its file.
pub type Definition = (WorkspacePath, Entry);

/// The definitions of a workspace, looked at when they are asked for.
#[derive(Debug, Clone, Copy)]
pub struct Definitions<'d> {
    /// Where the index is kept once it was made.
    pub index: &'d OnceLock<Index>,
    /// The workspace's files.
    pub snapshot: &'d Snapshot,
    /// How many threads may read.
    pub threads: usize,
    /// What the questions pass through.
    pub tape: &'d Tape,
}

impl Definitions<'_> {
    fn index(&self) -> &Index {
        self.index.get_or_init(|| Index::of(self.snapshot, self.threads))
    }

    /// The entry of a definition whose name begins at a byte of a file; for a further assignment to a variable, the entry
    /// of the first.
    #[must_use]
    pub fn entry(&self, path: &WorkspacePath, offset: usize, chain: &str) -> Option<Entry> {
        let find = || self.index().entry(path, offset, chain).cloned();
        self.tape.ask(Door::Index, &("entry", path, offset, chain), find, || None)
    }

    /// The identity of a definition, unlike that of every other definition of the workspace.
    #[must_use]
    pub fn id(&self, path: &WorkspacePath, entry: &Entry) -> SymbolId {
        let find = || self.index().id(path, entry);
        self.tape.ask(Door::Index, &("id", path, entry.offset), find, || entry.id(None))
    }

    /// The definitions of a file with these names.
    #[must_use]
    pub fn in_file(&self, path: &WorkspacePath, chain: &str) -> Vec<Entry> {
        let find = || self.index().file(path).iter().filter(|entry| entry.chain == chain).cloned().collect();
        self.tape.ask(Door::Index, &("names", path, chain), find, Vec::new)
    }

    /// The definitions with these names, from the module down, in order.
    #[must_use]
    pub fn with_chain(&self, chain: &str) -> Vec<Definition> {
        self.those(&("chain", chain), |entry| entry.chain == chain)
    }

    /// The definitions with this last name, in order.
    #[must_use]
    pub fn named(&self, name: &str) -> Vec<Definition> {
        self.those(&("name", name), |entry| entry.name() == name)
    }

    /// The definitions whose bodies have at least `size` tokens and are at least `percent` like the one of an id.
    #[must_use]
    pub fn alike(&self, id: &SymbolId, percent: u32, size: u32) -> Vec<Definition> {
        let least = f64::from(percent) / 100.0;
        let is_alike = |entry: &Entry| entry.size >= size && entry.sketch.similarity(id.sketch) >= least;
        self.those(&("alike", id, percent, size), is_alike)
    }

    /// The files that define something like one of `wanted`, the likeliest first.
    #[must_use]
    pub fn likely(&self, wanted: &[Wanted]) -> Vec<WorkspacePath> {
        let find = || self.index().likely(wanted).into_iter().cloned().collect();
        self.tape.ask(Door::Index, &("likely", wanted), find, Vec::new)
    }

    fn those(&self, question: &impl serde::Serialize, is_it: impl Fn(&Entry) -> bool) -> Vec<Definition> {
        let find = || {
            let all = self.index().iter().filter(|(_, entry)| is_it(entry));
            all.map(|(path, entry)| (path.clone(), entry.clone())).collect()
        };
        self.tape.ask(Door::Index, question, find, Vec::new)
    }
}
