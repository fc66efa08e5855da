//! Which folder keeps the journals of a workspace: one in the user's own state folder.
//!
//! Not git's folder, although journals would go with a moved worktree then: a repository may come from anywhere, with a
//! `.git` that somebody else filled, and what a journal says is done to files.

use crate::digest::Digest;
use crate::path::AbsPath;
use crate::workspace::git::Worktree;

/// The folder of journals of a workspace. Workspaces in one git worktree share it, and its lock.
#[derive(Debug, Clone)]
pub(super) struct Home {
    git: Option<Worktree>,
    /// The worktree's top; without git the workspace.
    top: AbsPath,
    place: AbsPath,
    /// The workspace below the worktree.
    prefix: String,
}

impl Home {
    pub(super) fn of(root: &AbsPath, state: &AbsPath) -> Self {
        let git = Worktree::around(root);
        let top = git.as_ref().map_or(root, |git| &git.top).clone();
        let key = Digest::of(top.as_str().as_bytes()).to_hex();
        let place = state.join("transactions").join(&key[..16]);
        let prefix = root.strip_prefix(&top).unwrap_or_default().to_owned();
        Self { git, top, place, prefix }
    }

    /// Git's folder.
    pub(super) fn git(&self) -> Option<&AbsPath> {
        self.git.as_ref().map(|git| &git.git)
    }

    /// The folder that journals are about.
    pub(super) const fn top(&self) -> &AbsPath {
        &self.top
    }

    /// The folder that has the journals and the lock.
    pub(super) const fn place(&self) -> &AbsPath {
        &self.place
    }

    /// The workspace below [`Self::top`], empty for all of it.
    pub(super) fn prefix(&self) -> &str {
        &self.prefix
    }
}
