//! Unified diffs: [`parse()`] reads them, [`apply()`] applies them to contents.

mod apply;
mod parse;

pub use apply::{Applied, Conflict, LineDifference, apply};
pub use parse::{FilePatch, Hunk, HunkLine, PatchError, PatchOperation, parse};
