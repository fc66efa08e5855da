//! Git around the workspace: where it is, which files are dirty, merging three ways.

mod place;

pub use place::Worktree;
