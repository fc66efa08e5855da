//! How many files a revision has, before it is read: one that holds the same folder many times over has more than fit in memory.

use std::collections::BTreeMap;

use git2::{ObjectType, Oid, Repository};

/// The most files and folders of a revision that is read.
pub(in crate::workspace) const MAX_TREE_ENTRIES: u64 = 1_000_000;

/// How deep folders may be nested; paths of 4,096 bytes have no more.
const MAX_DEPTH: usize = 2048;

/// The numbers of entries of trees of one repository. Each folder is read once, however often it occurs.
#[derive(Default)]
pub(in crate::workspace) struct TreeSizes(BTreeMap<Oid, u64>);

/// A folder that is being counted, with the folders in it that are not counted yet.
struct OpenFolder {
    id: Oid,
    entries: u64,
    folders: Vec<Oid>,
}

impl OpenFolder {
    /// A folder that is not there counts as empty, as where it is read.
    fn of(repository: &Repository, id: Oid) -> Self {
        let Ok(tree) = repository.find_tree(id) else { return Self { id, entries: 0, folders: Vec::new() } };
        let folders = tree.iter().filter(|entry| entry.kind() == Some(ObjectType::Tree));
        Self { id, entries: tree.len() as u64, folders: folders.map(|entry| entry.id()).collect() }
    }
}

impl TreeSizes {
    /// Whether a tree has at most [`MAX_TREE_ENTRIES`].
    pub(in crate::workspace) fn is_readable(&mut self, repository: &Repository, tree: Oid) -> bool {
        self.count(repository, tree).is_some_and(|entries| entries <= MAX_TREE_ENTRIES)
    }

    /// The number of entries; `None` if folders are nested too deep.
    fn count(&mut self, repository: &Repository, root: Oid) -> Option<u64> {
        if let Some(entries) = self.0.get(&root) {
            return Some(*entries);
        }
        let mut around = vec![OpenFolder::of(repository, root)];
        loop {
            let depth = around.len();
            let Some(folder) = around.last_mut() else { break };
            match folder.folders.pop() {
                Some(id) => match self.0.get(&id) {
                    Some(entries) => folder.entries = folder.entries.saturating_add(*entries),
                    None if depth >= MAX_DEPTH => return None,
                    None => {
                        // Looked at again when its entries are known.
                        folder.folders.push(id);
                        around.push(OpenFolder::of(repository, id));
                    }
                },
                None => {
                    self.0.insert(folder.id, folder.entries);
                    around.pop();
                }
            }
        }
        self.0.get(&root).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_that_occur_many_times_count_each_time() {
        let folder = tempfile::tempdir().unwrap();
        let repository = Repository::init(folder.path()).unwrap();
        let tree_of = |entries: &[(&str, Oid, i32)]| {
            let mut builder = repository.treebuilder(None).unwrap();
            for (name, id, mode) in entries {
                builder.insert(name, *id, *mode).unwrap();
            }
            builder.write().unwrap()
        };
        let blob = repository.blob(b"x = 1\n").unwrap();
        let mut tree = tree_of(&[("a.py", blob, 0o100_644)]);
        for level in 1..=24 {
            tree = tree_of(&[("a", tree, 0o040_000), ("b", tree, 0o040_000)]);
            // 2 + 4 + … folders, and a file in each of the last ones.
            assert_eq!(
                TreeSizes::default().count(&repository, tree),
                Some((2 << level) - 2 + (1 << level)),
                "{level}"
            );
        }
        assert!(!TreeSizes::default().is_readable(&repository, tree));
        let mut tree = tree_of(&[("a.py", blob, 0o100_644)]);
        for _ in 0..MAX_DEPTH {
            tree = tree_of(&[("a", tree, 0o040_000)]);
        }
        assert_eq!(TreeSizes::default().count(&repository, tree), None);
        assert!(!TreeSizes::default().is_readable(&repository, tree));
    }
}
