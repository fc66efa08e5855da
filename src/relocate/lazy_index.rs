//! The definitions of a workspace, as far as they were needed.
//!
//! Every definition in an answer has an id that is unique in the workspace. To know the id of one, it is enough to read its file
//! and the files in which its name is written, so that the first question does not wait until thousands of files are parsed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::index::{Index, IndexEntry, entries, entry_at, id_among};
use crate::digest::Digest;
use crate::path::WorkspacePath;
use crate::selector::SymbolId;
use crate::workspace::parallel::parallel_map;
use crate::workspace::snapshot::Snapshot;

/// A file with its definitions.
type FileEntries<'s> = (&'s WorkspacePath, Arc<Vec<IndexEntry>>);

/// The most files that are parsed one by one. When more are needed, the whole index is read, which is cached between runs.
const MAX_SINGLE_FILES: usize = 128;

/// An index that begins with single files.
#[derive(Debug, Default)]
pub struct LazyIndex {
    /// The definitions of all files, once they were needed.
    whole: OnceLock<Index>,
    /// The definitions of single files, by content.
    files: Mutex<BTreeMap<Digest, Arc<Vec<IndexEntry>>>>,
}

impl LazyIndex {
    /// The definitions of all files.
    pub fn whole(&self, snapshot: &Snapshot, threads: usize) -> &Index {
        self.whole.get_or_init(|| Index::of(snapshot, threads))
    }

    /// The definitions of one file that meet a condition.
    #[must_use]
    pub fn in_file(
        &self,
        path: &WorkspacePath,
        (snapshot, threads): (&Snapshot, usize),
        is_match: impl Fn(&IndexEntry) -> bool,
    ) -> Vec<IndexEntry> {
        self.with_file(path, (snapshot, threads), |entries| {
            entries.iter().filter(|entry| is_match(entry)).cloned().collect()
        })
    }

    /// The entry of the definition whose name begins at an offset of a file; for a repeated assignment to a variable, the
    /// entry of the first.
    #[must_use]
    pub fn entry(
        &self,
        path: &WorkspacePath,
        (snapshot, threads): (&Snapshot, usize),
        offset: usize,
        chain: &str,
    ) -> Option<IndexEntry> {
        self.with_file(path, (snapshot, threads), |entries| entry_at(entries, offset, chain).cloned())
    }

    /// The id of a definition, unique in the workspace.
    #[must_use]
    pub fn id(
        &self,
        path: &WorkspacePath,
        entry: &IndexEntry,
        (snapshot, threads): (&Snapshot, usize),
    ) -> SymbolId {
        if self.whole.get().is_none() {
            let with_name = snapshot.find_word(entry.name(), threads);
            let with_name: Vec<&WorkspacePath> = with_name.iter().collect();
            if let Some(files) = self.parsed(snapshot, &with_name, threads) {
                let others = files.iter().flat_map(|(path, entries)| entries.iter().map(move |e| (*path, e)));
                return id_among(path, entry, others);
            }
        }
        self.whole(snapshot, threads).id(path, entry)
    }

    fn with_file<R>(
        &self,
        path: &WorkspacePath,
        (snapshot, threads): (&Snapshot, usize),
        read: impl FnOnce(&[IndexEntry]) -> R,
    ) -> R {
        let single = || self.parsed(snapshot, &[path], threads)?.pop();
        match self.whole.get().is_none().then(single).flatten() {
            Some((_, entries)) => read(&entries),
            None => read(self.whole(snapshot, threads).file(path)),
        }
    }

    /// Some files with their definitions; `None` when more than a few would be parsed in all.
    fn parsed<'s>(
        &self,
        snapshot: &Snapshot,
        paths: &[&'s WorkspacePath],
        threads: usize,
    ) -> Option<Vec<FileEntries<'s>>> {
        let digest = |path: &WorkspacePath| snapshot.files().get(path).copied().flatten();
        let mut known = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let mut missing: BTreeMap<Digest, &WorkspacePath> = BTreeMap::new();
        for path in paths {
            missing.extend(
                digest(path).filter(|digest| !known.contains_key(digest)).map(|digest| (digest, *path)),
            );
        }
        if known.len() + missing.len() > MAX_SINGLE_FILES {
            return None;
        }
        let missing: Vec<(Digest, &WorkspacePath)> = missing.into_iter().collect();
        let parsed = parallel_map(&missing, threads, |(digest, path)| {
            // Of a file that changes while it is read no definition is known.
            Arc::new(snapshot.text_of(path, *digest).map(|text| entries(&text)).unwrap_or_default())
        });
        known.extend(missing.iter().map(|(digest, _)| *digest).zip(parsed));
        let entries = |path: &WorkspacePath| digest(path).and_then(|digest| known.get(&digest).cloned());
        Some(paths.iter().map(|path| (*path, entries(path).unwrap_or_default())).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::AbsPath;
    use crate::workspace::snapshot::ChangeDetection;

    /// Checks that single files and the whole index give each definition the same id, in any order of questions.
    fn check(texts: &[(String, &str)]) {
        let folder = tempfile::tempdir().unwrap();
        let root = AbsPath::new(folder.path()).unwrap();
        for (name, text) in texts {
            std::fs::write(root.join(name).as_path(), text).unwrap();
        }
        let snapshot = Snapshot::take(&root, None, ChangeDetection::Content, 1);
        let (whole, shared) = (Index::of(&snapshot, 1), LazyIndex::default());
        assert!(whole.iter().count() > texts.len());
        for (path, entry) in whole.iter() {
            let expected = whole.id(path, entry);
            for index in [&shared, &LazyIndex::default()] {
                let found = index.entry(path, (&snapshot, 1), entry.offset as usize, &entry.chain).unwrap();
                assert_eq!((&found, index.id(path, &found, (&snapshot, 1))), (entry, expected.clone()));
            }
        }
    }

    #[test]
    fn single_files_give_the_same_ids_as_the_whole_index() {
        let twice = "class A:\n    def f(self): pass\n    ä = 1\ndef f(): pass\nif a:\n    def f(): pass\n";
        let other = "def ff(): return f\nx: A = 1_000\nfor x in 1if 0 else(): pass\ndef \\\n  g(): '''f'''\n";
        check(&[("a.py".to_owned(), twice), ("b.py".to_owned(), twice), ("c.py".to_owned(), other)]);
    }

    #[test]
    fn a_name_in_many_files_needs_the_whole_index() {
        let many =
            (0..=MAX_SINGLE_FILES).map(|number| (format!("m{number}.py"), "def f(): pass\ndef g(): f()\n"));
        // Equal contents are read once.
        check(&many.clone().collect::<Vec<_>>());
        let texts: Vec<(String, String)> =
            many.enumerate().map(|(number, (name, text))| (name, format!("{text}x{number} = 1\n"))).collect();
        check(&texts.iter().map(|(name, text)| (name.clone(), text.as_str())).collect::<Vec<_>>());
    }
}
