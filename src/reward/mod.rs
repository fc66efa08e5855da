//! What a step is worth: pure functions over bundles, diagnostics and texts. No file is read here and no server asked.
//!
//! [`formula`] is the arithmetic; [`state`] reads a bundle's state and compares two; [`fingerprint`] says what a diagnostic is
//! wherever it stands. The guards are about an edit whose texts are known before and after ([`judge`]): each kind of
//! pretended repair has a module of its own, all of them read the texts through [`code`].

pub mod code;
pub mod earlier;
pub mod environment_pin;
pub mod episode;
mod failing;
pub mod fingerprint;
pub mod formula;
pub mod integrity;
pub mod judge;
mod made_up;
pub mod reachability;
pub mod run;
pub mod saturation;
pub mod scope_pin;
pub mod state;
mod succession;
pub mod suppressions;
pub mod syntax;
#[cfg(test)]
mod testing;
pub mod types;
pub mod visibility;

pub use formula::{Numbers, Outcome, default_weights, step};
pub use state::{Measured, Terms, Unmeasured, is_fault, of_bundle, recomputed, supplemented, unmeasured};
