//! The folder for the journals of a workspace. It is in the user's state folder.
//!
//! Journals are not in git's folder, although they would move with the worktree there: a repository may come from
//! anywhere, with a prepared `.git`, and recovery executes what a journal says.

use crate::digest::Digest;
use crate::path::AbsPath;
use crate::workspace::git::Worktree;

/// The folder for the journals of a workspace. All workspaces in a git worktree share it and its lock.
#[derive(Debug, Clone)]
pub(super) struct JournalDir {
    git: Option<Worktree>,
    /// The top folder of the worktree; the workspace when it is not in one.
    top: AbsPath,
    path: AbsPath,
    /// The workspace's path below `top`.
    prefix: String,
}

impl JournalDir {
    pub(super) fn of(root: &AbsPath, state: &AbsPath) -> Self {
        let git = Worktree::around(root);
        let top = git.as_ref().map_or(root, |git| &git.top).clone();
        let key = Digest::of(top.as_str().as_bytes()).to_hex();
        let path = state.join("transactions").join(&key[..16]);
        let prefix = root.strip_prefix(&top).unwrap_or_default().to_owned();
        Self { git, top, path, prefix }
    }

    /// Git's folder.
    pub(super) fn git(&self) -> Option<&AbsPath> {
        self.git.as_ref().map(|git| &git.git)
    }

    /// The folder whose files the journals describe.
    pub(super) const fn top(&self) -> &AbsPath {
        &self.top
    }

    /// The folder that contains the journals and the lock.
    pub(super) const fn path(&self) -> &AbsPath {
        &self.path
    }

    /// The workspace's path below [`Self::top`]; empty when they are the same.
    pub(super) fn prefix(&self) -> &str {
        &self.prefix
    }
}
