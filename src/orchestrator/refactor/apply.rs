//! `apply` and `check`: an edit that the caller brings, through the same guards; told as what would be written, or as what it
//! does to the diagnostics.

use super::Refactored;
use super::checks::Checks;
use super::dependents::affected;
use super::guards;
use super::input::{self, Input};
use super::speculate::{self, Comparison, Overlay};
use super::{planned, three_way};
use crate::edit::{Plan, Planner};
use crate::model::edits::{CheckName, DiagnosticsDelta, WorkspaceEdit};
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::model::facts::{Facts, Provenance, Verdict};
use crate::model::request::{Command, Strategy};
use crate::orchestrator::ask::{Answer, Asking};
use crate::orchestrator::failure::Failure;

/// Answers `apply` and `check`.
pub(in crate::orchestrator) async fn apply(asking: &Asking<'_>) -> Result<Answer, Failure> {
    let capabilities = asking.require("diagnostic", asking.server.client.capabilities().diagnostic)?;
    let request = asking.request;
    let given = request.options.edit.as_ref().ok_or_else(|| {
        let error = ErrorBody::new(ErrorSymbol::Usage, "there is no edit");
        Failure::told(error.hint("give a WorkspaceEdit as JSON or a unified diff"))
    })?;
    let Input { edit, patches, unit, known, failed } =
        input::read(given, asking.places.server_unit).map_err(Failure::told)?;
    let mut checks = Checks::new(request);
    input::carry(&mut checks, failed);
    let make = |planner: &mut Planner<'_>| match &edit {
        Some(edit) => planner.workspace_edit(edit),
        None => planner.patches(&patches),
    };
    let plan = if request.options.guards.strategy == Strategy::ThreeWay {
        three_way::plan(asking, &mut checks, unit, &known, &make)?
    } else {
        let plan = planned::plan(asking, &mut checks, unit, &make)?;
        if let Some(plan) = &plan {
            input::check_known(asking, &mut checks, plan, &known);
        }
        plan
    };
    let mut facts = Facts::new(Provenance::Lsp);
    let (delta, refactored) = checked(asking, checks, edit, plan).await?;
    if request.cmd == Command::Check
        && let Some(delta) = &delta
    {
        facts.verdict = request.options.fail_on.map(|least| {
            let fails = delta.introduced.iter().any(|found| found.severity >= least);
            if fails { Verdict::Fail } else { Verdict::Pass }
        });
    }
    Ok(Answer { facts, limits: None, capabilities, refactored: Some(refactored), error: None })
}

/// Makes the checks that every planned edit has in common, and puts together what is told of it.
pub(super) async fn checked(
    asking: &Asking<'_>,
    mut checks: Checks<'_>,
    edit: Option<WorkspaceEdit>,
    plan: Option<Plan>,
) -> Result<(Option<DiagnosticsDelta>, Refactored), Failure> {
    let mut delta = None;
    if let Some(plan) = &plan {
        if asking.request.cmd != Command::Check {
            guards::files(asking, &mut checks, plan).await?;
        }
        let overlay = Overlay::new(asking, plan);
        let affected = affected(asking, plan, &[]).await?;
        let comparison =
            Comparison { plan, overlay: &overlay, affected: &affected, renamed: None, wants_resolved: true };
        speculate::show(asking, &overlay)?;
        let after = speculate::after(asking, &comparison).await?;
        speculate::hide(asking, &overlay)?;
        let found = speculate::compare(asking, &comparison, after).await?;
        speculate::record(&mut checks, &found);
        if !plan.only_modifies() && checks.failed(CheckName::Diagnostics) {
            checks.note(CheckName::Diagnostics, "; files that come or go are not on disk yet, and imports of them are judged as if they had not");
        }
        delta = Some(found);
    }
    let error = checks.error().filter(|_| asking.request.writes() || plan.is_none());
    let plan = plan.unwrap_or_default();
    let mut edits = planned::told(asking, edit, &plan);
    edits.safety = checks.into_made();
    edits.diagnostics = delta.clone();
    Ok((delta, Refactored { edits, error, plan }))
}
