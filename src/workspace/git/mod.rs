//! The git repository around the workspace: finding it, finding dirty files, and merging three ways.

pub mod merge;
pub mod program;
pub mod state;
mod worktree;

pub use worktree::{Worktree, is_git_folder};
