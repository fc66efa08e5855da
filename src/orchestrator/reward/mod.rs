//! The reward's part of the work: measuring what [`crate::reward`] judges, and scoring heads against a base.

mod bench;
mod measure;
mod score;
mod source;

pub(super) use measure::{
    Found, Shown, configuration_changed, hidden_by, listed, of_edit, taken_away, types_lost, without,
};
pub use score::{Scored, Source, score};
