//! Which folder keeps the journals of a workspace: git's, so that they go where the worktree goes and nobody sees them, or the
//! user's own where there is no git or its folder may not be written.

use rustix::fs::{Access, access};

use crate::digest::Digest;
use crate::path::AbsPath;
use crate::workspace::git::Worktree;

/// The folders of journals of a workspace.
#[derive(Debug, Clone)]
pub(super) struct Home {
    root: AbsPath,
    git: Option<Worktree>,
    in_git: Option<AbsPath>,
    in_state: AbsPath,
    git_first: bool,
    /// The workspace below the worktree.
    prefix: String,
}

impl Home {
    pub(super) fn of(root: &AbsPath, state: &AbsPath) -> Self {
        let git = Worktree::around(root);
        let in_git = git.as_ref().map(|git| git.git.join("lanser"));
        let writable = |path: &AbsPath| access(path.as_path(), Access::WRITE_OK).is_ok();
        let git_first = git.as_ref().zip(in_git.as_ref()).is_some_and(|(git, place)| {
            if place.as_path().exists() { writable(place) } else { writable(&git.git) }
        });
        let key = Digest::of(root.as_str().as_bytes()).to_hex();
        let in_state = state.join("transactions").join(&key[..16]);
        let prefix = git.as_ref().and_then(|git| root.strip_prefix(&git.top)).unwrap_or_default().to_owned();
        Self { root: root.clone(), git, in_git, in_state, git_first, prefix }
    }

    /// Git's folder.
    pub(super) fn git(&self) -> Option<&AbsPath> {
        self.git.as_ref().map(|git| &git.git)
    }

    /// The folder that has the lock.
    pub(super) fn primary(&self) -> &AbsPath {
        self.in_git.as_ref().filter(|_| self.git_first).unwrap_or(&self.in_state)
    }

    /// Whether only the user can have made that folder.
    pub(super) const fn is_private(&self) -> bool {
        !self.git_first
    }

    /// Every folder that may have journals, and whether only the user can have made it.
    pub(super) fn places(&self) -> impl Iterator<Item = (&AbsPath, bool)> {
        self.in_git.iter().map(|place| (place, false)).chain([(&self.in_state, true)])
    }

    /// The folder for a new journal. One that names what is outside does not belong where it could be copied from.
    pub(super) fn for_journal(&self, outside: bool) -> (&AbsPath, bool) {
        if outside { (&self.in_state, true) } else { (self.primary(), self.is_private()) }
    }

    /// The workspace below the worktree, empty for all of it.
    pub(super) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The workspace that a journal is about.
    pub(super) fn workspace(&self, prefix: &str) -> AbsPath {
        match &self.git {
            Some(git) if prefix != self.prefix => git.top.join(prefix),
            _ => self.root.clone(),
        }
    }
}
