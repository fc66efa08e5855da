//! Plans from the memo: an edit that was planned for the same inputs is not planned again. What does not depend on the inputs is
//! checked again: git, the file system, and documents.

use super::base::Disk;
use super::checks::Checks;
use super::{early, guards, residue};
use crate::bundle::seal::BundleDraft;
use crate::edit::{EditPlan, Planner};
use crate::engine::completeness::UsedIn;
use crate::engine::context::Attempt;
use crate::engine::failure::Failure;
use crate::engine::request_state::RequestState;
use crate::engine::settings::Settings;
use crate::model::bundle::Bundle;
use crate::model::edits::{Check, CheckName};
use crate::model::facts::CompletenessStatus;
use crate::model::request::{Command, DirtyPolicy, Request, Strategy};
use crate::reward::measured_for;
use crate::text::ColumnUnit;

/// The request under which a plan is cached: the same for a preview and for `--apply`, with or without uncommitted changes;
/// `None` if plans of this request are not cached.
pub(in crate::engine) fn planning_request(request: &Request) -> Option<Request> {
    let options = &request.options;
    let is_plan = match request.cmd {
        // The inputs do not include a package's files other than Python.
        Command::Rename => options.module.is_none(),
        Command::Actions => options.run.is_some(),
        _ => false,
    };
    // A merge depends on the last commit.
    (is_plan && options.guards.strategy == Strategy::Rename).then(|| {
        let mut planning = request.clone();
        planning.options.apply = false;
        planning.options.guards.dirty = DirtyPolicy::None;
        planning
    })
}

/// Whether a bundle has a plan that serves other requests: nothing but git stops it.
pub(in crate::engine) fn has_plan(bundle: &Bundle) -> bool {
    let Some(edits) = &bundle.edits else { return false };
    edits.transaction.is_none()
        && !edits.files.is_empty()
        && edits.safety.iter().filter(|check| check.stops()).all(|check| check.name == CheckName::Git)
        && (bundle.error.is_none() || edits.safety.iter().any(Check::stops))
}

/// The answer to a request from a plan of the memo; `None` if the plan cannot be used any more.
pub(in crate::engine) async fn recall(
    request: &Request,
    state: &RequestState,
    settings: &Settings,
    bundle: Bundle,
) -> Result<Option<Attempt>, Failure> {
    if let Some(refused) = early::refusal(request, state, settings).await? {
        return Ok(Some(refused));
    }
    let Some(plan) = planned_again(request, state, &bundle) else { return Ok(None) };
    let measured = measured_for(&bundle);
    let mut draft = BundleDraft::from(bundle);
    let verdict = draft.facts.as_ref().and_then(|facts| facts.completeness.as_ref());
    draft.partial = verdict.is_some_and(|verdict| verdict.status != CompletenessStatus::Complete);
    let Some(edits) = &mut draft.edits else { return Ok(None) };
    let known = std::mem::take(&mut edits.safety);
    let mut checks =
        Checks::with(request, settings, known.into_iter().filter(|check| check.name != CheckName::Git));
    guards::check_files(settings, state, request, &mut checks, &plan).await?;
    draft.error = checks.error();
    edits.safety = checks.into_sorted();
    if let (Some(residue), Ok(target)) = (&mut edits.residue, state.target())
        && let Some(old) = target.name()
        && UsedIn::of(target) == UsedIn::AnyFile
    {
        residue::remove_documents(residue);
        let edit = edits.workspace_edit.clone().unwrap_or_default();
        residue::add_documents(settings, state, residue, old, &edit).await?;
    }
    draft.request = Some(request.clone());
    Ok(Some(Attempt { draft, dual: Vec::new(), plan: Some(plan), measured }))
}

/// Applies the edit of a bundle to the files as they are. `None` if that does not give what the bundle says.
fn planned_again(request: &Request, state: &RequestState, bundle: &Bundle) -> Option<EditPlan> {
    let edits = bundle.edits.as_ref()?;
    let unit = ColumnUnit::parse(&bundle.environment.as_ref()?.position_encoding)?;
    let disk = Disk::new(state, request.options.guards.outside);
    let mut planner = Planner::new(state.inputs.snapshot.root(), &disk, unit);
    planner.workspace_edit(edits.workspace_edit.as_ref()?).ok()?;
    let plan = planner.plan().ok()?;
    let digests = |plan: &EditPlan| -> Vec<_> {
        let changes = plan.changes().iter();
        changes.map(|change| change.after.as_deref().map(crate::digest::Digest::of)).collect()
    };
    let is_same = digests(&plan) == edits.files.iter().map(|file| file.after).collect::<Vec<_>>();
    is_same.then_some(plan)
}
