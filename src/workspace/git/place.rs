//! Finding git's folder, as git does it, without asking git.

use std::path::Path;

use crate::path::AbsPath;

/// A worktree and its git folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worktree {
    /// The folder that holds `.git`.
    pub top: AbsPath,
    /// The worktree's own git folder: `.git`, or where the file `.git` points.
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
            let above = top.parent();
            if above == top {
                return None;
            }
            top = above;
        }
    }
}

/// More bytes than this name no folder.
const MOST: u64 = 64 << 10;

/// The git folder of a worktree whose top is `top`, if it is one.
pub(super) fn git_folder(top: &AbsPath) -> Option<AbsPath> {
    let entry = top.join(".git");
    let metadata = std::fs::metadata(entry.as_path()).ok()?;
    let git = if metadata.is_dir() {
        entry
    } else {
        // A pipe would be waited for.
        if !metadata.is_file() || metadata.len() > MOST {
            return None;
        }
        let text = std::fs::read_to_string(entry.as_path()).ok()?;
        top.join(text.strip_prefix("gitdir: ")?.trim_end_matches(['\n', '\r']))
    };
    let git = AbsPath::new(std::fs::canonicalize(git.as_path()).ok()?).ok()?;
    // What git itself asks of a git folder, more or less.
    Path::new(git.join("HEAD").as_str()).symlink_metadata().ok().map(|_| git)
}
