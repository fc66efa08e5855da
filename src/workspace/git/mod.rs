//! The git repository around the workspace: finding it, finding dirty files, and merging three ways.

pub(in crate::workspace) mod index;
pub mod merge;
pub mod program;
pub mod state;
pub(in crate::workspace) mod tree_size;
mod worktree;

pub(in crate::workspace) use worktree::git_folder;
pub use worktree::{Worktree, has_entry, has_names_of_git_folder, is_git_folder};

use git2::{Blob, ObjectType, Oid, Repository};

use crate::workspace::files::MAX_FILE_BYTES;

/// A blob; `None` if there is none, or if it is larger than [`MAX_FILE_BYTES`]. The size is taken from the object's header: 13 MB
/// of compressed zeros are 13 GB in memory.
#[must_use]
pub fn find_blob(repository: &Repository, id: Oid) -> Option<Blob<'_>> {
    let (bytes, kind) = repository.odb().ok()?.read_header(id).ok()?;
    (kind == ObjectType::Blob && bytes as u64 <= MAX_FILE_BYTES).then(|| repository.find_blob(id).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blob_beyond_the_limit_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let repository = Repository::init_bare(folder.path()).unwrap();
        let limit = usize::try_from(MAX_FILE_BYTES).unwrap();
        let [fits, is_too_large] = [limit, limit + 1].map(|bytes| repository.blob(&vec![0; bytes]).unwrap());
        assert_eq!(find_blob(&repository, fits).unwrap().size(), limit);
        assert!(find_blob(&repository, is_too_large).is_none());
        let tree = repository.treebuilder(None).unwrap().write().unwrap();
        assert!(find_blob(&repository, tree).is_none());
    }
}
