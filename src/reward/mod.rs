//! Rewards: pure functions over bundles, diagnostics and texts. No file is read and no server is called here.
//!
//! [`formula`] is the arithmetic. [`state`] extracts the state of a bundle and compares two; [`run`] does that for a sequence
//! of bundles, and [`episode`] for one head against one base. [`fingerprint`] identifies a diagnostic independent of its
//! position. The guards work on an edit whose texts are known before and after ([`judge`]): each kind of pretended repair has
//! a module, and all of them read the texts through [`code`].

pub mod code;
mod declared;
pub mod environment_pin;
pub mod episode;
mod failing;
mod fate;
pub mod fingerprint;
pub mod formula;
pub mod integrity;
pub mod judge;
mod lost;
pub mod numbers;
pub mod reachability;
pub mod run;
pub mod saturation;
pub mod scope_delta;
pub mod scope_pin;
pub mod state;
pub mod suppressions;
pub mod syntax;
#[cfg(test)]
mod testing;
pub mod types;
mod usage;
pub mod visibility;

pub use formula::{StateValues, StepReward, default_weights, step};
pub use state::{
    MeasuredDiagnostics, RewardFormula, UnmeasuredFiles, is_fault, measured_digest, measured_for, of_bundle,
    recomputed, supplemented, unmeasured, unmeasured_files, verify,
};
