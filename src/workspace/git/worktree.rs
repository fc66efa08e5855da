//! Finds a worktree and its git folder in the way git does, without running git.

use std::path::Path;

use crate::path::AbsPath;

/// A worktree and its git folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worktree {
    /// The folder that holds `.git`.
    pub top: AbsPath,
    /// The worktree's git folder: `.git`, or the folder that the file `.git` points to.
    pub git: AbsPath,
}

impl Worktree {
    /// The innermost worktree around a folder.
    #[must_use]
    pub fn around(folder: &AbsPath) -> Option<Self> {
        let mut top = folder.clone();
        loop {
            if let Some(git) = git_folder(&top) {
                return Some(Self { top, git });
            }
            let parent = top.parent();
            if parent == top {
                return None;
            }
            top = parent;
        }
    }
}

/// Whether git takes a folder for a git folder, whatever its name is: a repository without a worktree, the common folder of linked
/// worktrees (which needs no `HEAD`), one of their own folders (which `commondir` marks), or what a `.git` file elsewhere points to.
#[must_use]
pub fn is_git_folder(folder: &AbsPath) -> bool {
    let is_common = || {
        has_entry(folder, "objects") && has_entry(folder, "refs") && folder.join("config").as_path().is_file()
    };
    has_names_of_git_folder(|name| has_entry(folder, name)) || is_common()
}

/// Whether a folder with these entries is one (see [`is_git_folder`]), without the common folder that needs no `HEAD`.
pub fn has_names_of_git_folder(has: impl Fn(&str) -> bool) -> bool {
    has("HEAD") && (has("commondir") || has("objects") && has("refs"))
}

/// Whether a folder has an entry of this name, of whatever kind.
#[must_use]
pub fn has_entry(folder: &AbsPath, name: &str) -> bool {
    folder.join(name).as_path().symlink_metadata().is_ok()
}

/// A larger `.git` file is ignored.
const MAX_GITFILE_BYTES: u64 = 64 << 10;

/// The git folder of the worktree at `top`; `None` when `top` is not a worktree.
pub(in crate::workspace) fn git_folder(top: &AbsPath) -> Option<AbsPath> {
    let entry = top.join(".git");
    let metadata = std::fs::metadata(entry.as_path()).ok()?;
    let git = if metadata.is_dir() {
        entry
    } else {
        // Opening a pipe would block.
        if !metadata.is_file() || metadata.len() > MAX_GITFILE_BYTES {
            return None;
        }
        let text = std::fs::read_to_string(entry.as_path()).ok()?;
        top.join(text.strip_prefix("gitdir: ")?.trim_end_matches(['\n', '\r']))
    };
    let git = AbsPath::new(std::fs::canonicalize(git.as_path()).ok()?).ok()?;
    // Roughly git's own test for a git folder.
    Path::new(git.join("HEAD").as_str()).symlink_metadata().ok().map(|_| git)
}
