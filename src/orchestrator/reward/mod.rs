//! The reward's part of the work: measuring what [`crate::reward`] judges, and scoring heads against a base.

mod bench;
mod editable;
mod folder;
mod measure;
mod origin;
mod score;
mod source;
mod supplement;

pub(super) use measure::{
    Found, Shown, configuration_changed, hidden_by, listed, of_edit, taken_away, types_lost, without,
};
pub use score::{Scored, Source, is_revision, score};
pub use supplement::supplement;
