//! The measurements for rewards: collects what [`crate::reward`] judges, and scores heads against a base.

mod analyzed;
mod base_diagnostics;
mod bundle_states;
mod editable_installs;
mod measure;
mod score;
mod scorer;
mod scratch_folder;
mod scratch_workspace;
mod service;
mod source;
mod supplement;

pub(super) use analyzed::{add_in_tree, add_on_disk, add_without_suppressions};
pub(super) use base_diagnostics::{BaseDiagnostics, base_diagnostics};
pub(super) use measure::{
    DiagnosticsByFile, EditMeasurement, added_suppressions, configuration_changed, judge_edit, name_symbols,
    named_scope, removed_files, types_lost, without_spans,
};
pub use score::score;
pub use scorer::ScoreHead;
pub(super) use scratch_folder::{ScratchFolder, cannot_copy};
pub(super) use scratch_workspace::ScratchWorkspace;
pub use service::{ScoreLimits, ScoreService};
pub use source::{StateSource, is_revision};
pub use supplement::supplement;
