//! Successive states of the workspace's files, from git or from the operation log.

use crate::digest::Digest;
use crate::path::WorkspacePath;

/// The identity of a content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ContentId {
    /// A blob in git.
    Blob(git2::Oid),
    /// A content by its digest.
    Digest(Digest),
}

/// A Python file that differs between a state and the one before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedFile {
    /// Its path.
    pub path: WorkspacePath,
    /// Its content before; `None` if it did not exist.
    pub before: Option<ContentId>,
    /// Its content after; `None` if it was removed.
    pub after: Option<ContentId>,
}

/// Successive states, the oldest first.
pub trait States {
    /// The ID of the commit or transaction that made a state.
    fn id(&self, at: usize) -> String;

    /// The later contents of a file that exists in the state `from`, each with the first state that has it, up to the
    /// state that lacks the file.
    fn versions(&self, path: &WorkspacePath, from: usize) -> Vec<(usize, Option<ContentId>)>;

    /// A content; `None` if it is too large or cannot be read.
    fn content(&self, id: ContentId) -> Option<Vec<u8>>;

    /// The Python files that differ between a state and the one before it, sorted by path. `None` if there are too many,
    /// or if they cannot be read.
    fn changes(&self, at: usize) -> Option<Vec<ChangedFile>>;
}
