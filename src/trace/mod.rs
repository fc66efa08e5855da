//! Traces on disk. Operations are written so that concurrent writers never interleave, and read one at a time so that memory is
//! bounded by the largest operation.
//!
//! The format is [`crate::model::trace`]. [`path_redactor`] replaces local folders in everything that is written; [`writer`]
//! appends whole operations under a lock, with a [`content_index`] in each `end` event; [`reader`] returns the operations in
//! order and reports damage; [`compare`] finds where a replay differs from its record.

pub mod compare;
mod content_index;
pub mod event;
mod lines;
pub mod operation;
pub mod path_redactor;
pub mod reader;
#[cfg(test)]
mod tests;
pub mod writer;
