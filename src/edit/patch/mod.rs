//! Unified diffs: [`parse()`] reads them, [`apply()`] applies them to contents.

mod apply;
mod parse;

pub use apply::{Conflict, LineDifference, PatchedContent, apply};
pub use parse::{FilePatch, Hunk, HunkLine, PatchError, PatchOperation, parse};
