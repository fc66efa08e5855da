//! Unified diffs: reading them ([`parse()`]) and making them to contents ([`apply()`]).

mod apply;
mod parse;

pub use apply::{Conflict, apply};
pub use parse::{FilePatch, Hunk, HunkLine, Operation, PatchError, parse};
