//! Git around the workspace: where it is, which files are dirty, merging three ways.

pub mod merge;
mod place;
pub mod program;
pub mod state;

pub use place::Worktree;
