//! Traces on disk: operations written so that none mixes with another, and read so that memory is bounded by the largest.
//!
//! The format is [`crate::model::trace`]. [`machine`] takes the machine's folders out of what is written; [`writer`]
//! appends whole operations under a lock; [`reader`] gives them one by one, and finds what was damaged.

pub mod compare;
mod directory;
pub mod event;
mod lines;
pub mod machine;
pub mod operation;
pub mod reader;
#[cfg(test)]
mod tests;
pub mod writer;
