//! Edits as values: from what a server or a caller proposes to what every file would hold, and back to a text that people
//! and git can read.
//!
//! [`target`] reads the name of a file and refuses what leaves the workspace; [`text`] makes edits to a text and [`encode`]
//! turns it into bytes again; [`patch`] reads unified diffs; [`plan`] puts all of it together into one list of changes
//! against known contents; [`preview`] writes that list as a diff.
//!
//! Deliberately absent: the disk. What files hold comes in through [`plan::Base`], and nothing is written here.

pub mod binary;
pub mod encode;
pub mod patch;
pub mod plan;
pub mod preview;
pub mod quote;
pub mod target;
pub mod text;

pub use plan::{Base, FileChange, Original, Plan, PlanError, Planner};
