//! Edits that are proved before they are made: rename, code actions, any edit that somebody brings, and what an edit does
//! to the diagnostics.
//!
//! Everything here only plans. The server proposes or the caller brings an edit; [`planned`] makes it to the contents of the
//! ground; the checks say what is wrong with it, each by name and all of them recorded ([`checks`]); [`speculate`] shows the
//! server what the files would hold, as open documents, and compares what it finds wrong and what it takes for references.
//! Nothing on disk is touched: what is written, is written by [`mod@commit`] after the ground was proved to be the same.

mod actions;
mod apply;
mod base;
mod checks;
mod collision;
mod commit;
mod dependents;
mod filters;
mod fixtures;
mod guards;
pub(super) mod input;
mod names;
mod overrides;
mod planned;
mod prepare;
mod private;
mod rename;
mod residue;
mod round_trip;
mod speculate;
mod three_way;
mod unproved;

pub(super) use actions::actions;
pub(super) use apply::apply;
pub(super) use commit::{commit, recover, undo};
pub(super) use dependents::affected;
pub(super) use prepare::prepare;
pub(super) use rename::rename;
pub(super) use speculate::{After, Comparison, Overlay, after, diagnostics, hide, present, types_lost};

use crate::edit::Plan;
use crate::model::edits::Edits;
use crate::model::error::ErrorBody;

/// An edit that was planned and checked.
pub(super) struct Refactored {
    /// What the bundle says of it.
    pub(super) edits: Edits,
    /// Why it is not to be made.
    pub(super) error: Option<ErrorBody>,
    /// What every file would hold.
    pub(super) plan: Plan,
}
