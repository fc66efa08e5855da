//! Edits as values: turns a proposed edit into the new contents of all files, and these into a diff.
//!
//! [`target`] reads file names and rejects those outside the workspace; [`text`] applies edits to a text and [`encode`]
//! encodes the result; [`patch`] reads and applies unified diffs; [`plan`] combines these into one list of changes against
//! known contents; [`preview`] prints that list as a diff.
//!
//! The disk is not accessed here: contents are read through [`plan::Base`], and nothing is written.

pub mod binary;
pub mod encode;
pub mod patch;
pub mod plan;
pub mod preview;
pub mod quote;
pub mod target;
pub mod text;

pub use plan::{Base, EditPlan, Original, PlanError, PlannedChange, Planner};
