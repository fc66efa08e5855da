//! Edits that are checked before they are written: rename, code actions, any edit that the caller supplies, and the
//! effect of an edit on the diagnostics.
//!
//! Everything here only plans. The server proposes an edit or the caller supplies one; [`planning`] applies it in
//! memory to the contents of the files; the checks find what is wrong with it, each with a name and all of them
//! recorded ([`checks`]); [`speculate`] shows the server the edited texts as open documents, and compares diagnostics
//! and references. Nothing on disk is touched: only [`mod@commit`] writes, after the inputs were verified to be
//! unchanged.

mod actions;
mod apply;
mod base;
mod built_names;
mod checks;
mod collision;
mod commit;
mod computed;
mod copy;
mod decisions;
mod dependents;
mod diagnostic_changes;
mod early;
mod exports;
mod fallbacks;
mod family;
mod filters;
mod guards;
pub(super) mod input;
mod mangling;
mod module;
mod names;
mod next_command;
mod nominal;
mod overrides;
mod own_name;
mod planning;
mod prepare;
mod recall;
mod rename;
mod rename_completeness;
mod rename_edit;
mod residue;
mod round_trip;
mod speculate;
mod spelled;
mod stand_ins;
mod three_way;
mod unchanged;

pub(super) use actions::actions;
pub(super) use apply::apply;
pub use commit::write_files;
pub(super) use commit::{commit, recover, undo};
pub(super) use dependents::{EditKind, affected};
pub(super) use early::refusal;
pub(super) use prepare::prepare;
pub(super) use recall::{has_plan, planning_request, recall};
pub(super) use rename::rename;
pub(super) use speculate::{
    Comparison, EditOverlay, EditedDiagnostics, add_analyses_after, diagnostics, diagnostics_after,
    diagnostics_without, hide_overlay, show_overlay, types_lost,
};

use crate::edit::EditPlan;
use crate::engine::context::{CheckedEdit, RequestContext};
use crate::model::edits::{DiagnosticsDelta, WorkspaceEdit};
use checks::Checks;

impl CheckedEdit {
    /// An edit after all of its checks.
    fn new(
        cx: &RequestContext<'_>,
        edit: Option<WorkspaceEdit>,
        plan: EditPlan,
        checks: Checks<'_>,
        diagnostics: Option<DiagnosticsDelta>,
    ) -> Self {
        let error = checks.error();
        let mut edits = planning::describe(cx, edit, &plan);
        edits.safety = checks.into_sorted();
        edits.diagnostics = diagnostics;
        Self { edits, error, plan }
    }
}
