//! Records operations, and replays their bundles from the record alone.
//!
//! A replay runs the same code as a live answer. This module only provides what replaces the workspace and the server
//! ([`replay()`]), and writes what is recorded of them ([`record`]).

mod compare;
mod library;
pub(super) mod record;
mod recorded_inputs;
mod replay;

pub use compare::{CurrentWorkspace, WorkspaceDifference};
pub use library::{Replay, ReplayedOperation};
pub use replay::{RecordedInputsCache, ReplayResult, replay};
