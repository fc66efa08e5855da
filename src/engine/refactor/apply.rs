//! `apply` and `check`: run the checks on an edit from the caller. `apply` reports what would be written, `check` the
//! effect on the diagnostics.

use super::CheckedEdit;
use super::checks::Checks;
use super::dependents::EditKind;
use super::guards;
use super::input::{self, ParsedEdit};
use super::rename_edit::splices_by_file;
use super::{planning, speculate, three_way};
use crate::edit::{EditPlan, PlannedChange, Planner};
use crate::engine::context::{HandlerOutput, RequestContext};
use crate::engine::failure::Failure;
use crate::model::edits::{DiagnosticsDelta, WorkspaceEdit};
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::model::facts::{Facts, Provenance, Verdict};
use crate::model::request::{Command, Strategy};
use crate::python::call_forms::{call_forms, fits};
use crate::selector::name::is_identifier;
use crate::text::decode_source;
use crate::workspace::files::Files as _;

/// At most so many functions with changed parameters are named.
const MAX_SIGNATURES: usize = 5;

/// Answers `apply` and `check`.
pub(in crate::engine) async fn apply(cx: &RequestContext<'_>) -> Result<HandlerOutput, Failure> {
    let capabilities = cx.require("diagnostic", cx.server.client.capabilities().diagnostic)?;
    let request = cx.request;
    let given = request.options.edit.as_ref().ok_or_else(|| {
        let error = ErrorBody::new(ErrorSymbol::Usage, "no edit was given");
        Failure::reported(error.hint("give a WorkspaceEdit as JSON or a unified diff"))
    })?;
    let ParsedEdit { edit, patches, unit, known, failed, new_name } =
        input::parse_edit(given, cx.locations.server_unit).map_err(Failure::reported)?;
    let mut checks = Checks::new(request, cx.settings);
    input::carry_over_failures(&mut checks, failed);
    let add_edit = |planner: &mut Planner<'_>| match &edit {
        Some(edit) => planner.workspace_edit(edit),
        None => planner.patches(&patches),
    };
    let plan = if request.options.guards.strategy == Strategy::ThreeWay {
        three_way::plan(cx, &mut checks, unit, &known, &add_edit)?
    } else {
        let plan = planning::plan(cx, &mut checks, unit, &add_edit)?;
        if let Some(plan) = &plan {
            input::check_known(cx, &mut checks, plan, &known);
        }
        plan
    };
    let mut facts = Facts::new(Provenance::Lsp);
    let is_rename = new_name.is_some();
    let renamed = edit.as_ref().map_or_else(Vec::new, |edit| renamed_names(cx, edit, new_name));
    let plan = plan.map(|mut plan| {
        // A rename looks for the uses itself.
        if !is_rename {
            plan.notes.extend(changed_signatures(cx, &plan));
        }
        plan
    });
    let (delta, refactored) = run_checks(cx, checks, edit, plan, &renamed).await?;
    if request.cmd == Command::Check
        && let Some(delta) = &delta
    {
        facts.verdict = request.options.fail_on.map(|least| {
            let fails = delta.introduced.iter().any(|found| found.severity >= least);
            if fails { Verdict::Fail } else { Verdict::Pass }
        });
    }
    Ok(HandlerOutput { facts, limits: None, capabilities, refactored: Some(refactored), error: None })
}

/// Runs the checks that all planned edits have in common, and builds the result.
pub(super) async fn run_checks(
    cx: &RequestContext<'_>,
    mut checks: Checks<'_>,
    edit: Option<WorkspaceEdit>,
    plan: Option<EditPlan>,
    renamed: &[(String, String)],
) -> Result<(Option<DiagnosticsDelta>, CheckedEdit), Failure> {
    let mut delta = None;
    if let Some(plan) = &plan {
        if cx.request.cmd != Command::Check {
            guards::check_files(cx.settings, cx.state, cx.request, &mut checks, plan).await?;
        }
        delta = Some(speculate::check(cx, &mut checks, plan, EditKind::Any, renamed).await?);
    }
    let has_plan = plan.is_some();
    let mut refactored = CheckedEdit::new(cx, edit, plan.unwrap_or_default(), checks, delta.clone());
    if cx.request.cmd == Command::Check && has_plan {
        // `check` reports the effect of any edit that can be applied.
        refactored.error = None;
    }
    Ok((delta, refactored))
}

/// Notes about functions that the edit removes, or whose parameters it changes so that calls may no longer fit: diagnostics only show
/// calls of which the type checker knows the function.
fn changed_signatures(cx: &RequestContext<'_>, plan: &EditPlan) -> Vec<String> {
    let forms = |bytes: Option<&[u8]>| {
        bytes.map(|bytes| call_forms(&decode_source(bytes.to_vec()).text)).unwrap_or_default()
    };
    let is_python = |change: &&PlannedChange| change.path.as_str().ends_with(".py");
    let files: Vec<_> = plan
        .changes()
        .iter()
        .filter(is_python)
        .map(|change| {
            let before = forms(change.before.as_ref().map(|before| &*before.bytes));
            (change, before, forms(change.after.as_deref()))
        })
        .collect();
    let mut changed = Vec::new();
    for (change, before, after) in &files {
        for (name, old) in before {
            // It may move to another file of the edit.
            let moved = || {
                files
                    .iter()
                    .find_map(|(_, before, after)| after.get(name).filter(|_| !before.contains_key(name)))
            };
            let new = after.get(name).or_else(moved);
            let what = match new {
                Some(new) if old == new || old.iter().all(|old| new.iter().any(|new| fits(old, new))) => {
                    continue;
                }
                Some(_) => "its parameters change",
                None => "it is removed",
            };
            let path = change.from.as_ref().unwrap_or(&change.path);
            let module = cx.state.inputs.roots.name_of_any(&cx.state.inputs.snapshot.absolute(path));
            changed
                .push((module.map_or_else(|| name.clone(), |module| format!("py://{module}#{name}")), what));
        }
    }
    let more = changed.len().saturating_sub(MAX_SIGNATURES);
    let note = |(name, what): (String, &str)| {
        format!(
            "{name}: {what}; calls through objects of unknown types are not checked; in the state before the edit, `lanser calls {name}` lists them"
        )
    };
    let mut notes: Vec<String> = changed.into_iter().take(MAX_SIGNATURES).map(note).collect();
    if more > 0 {
        notes.push(format!("{more} more functions are removed, or their parameters change"));
    }
    notes
}

/// The names that a rename replaces, each with the new one: a message that quotes the new name is not new.
fn renamed_names(
    cx: &RequestContext<'_>,
    edit: &WorkspaceEdit,
    new_name: Option<(Option<String>, String)>,
) -> Vec<(String, String)> {
    let last = |name: &str| name.rsplit('.').next().unwrap_or_default().to_owned();
    match new_name {
        Some((Some(old), new)) => {
            let leaf = (last(&old), last(&new));
            vec![(old, new), leaf]
        }
        Some((None, new)) => {
            replaced_names(cx, edit).into_iter().find(|(_, to)| *to == new).into_iter().collect()
        }
        // Without a request, only if the edit does nothing else.
        None => match replaced_names(cx, edit).as_slice() {
            [only] => vec![only.clone()],
            _ => Vec::new(),
        },
    }
}

/// What an edit replaces by what, in names; empty if it replaces anything else.
fn replaced_names(cx: &RequestContext<'_>, edit: &WorkspaceEdit) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for (path, splices) in splices_by_file(cx, edit) {
        let Ok(document) = cx.state.files.read(&path) else { return Vec::new() };
        for splice in splices {
            let Some(old) = document.text.get(splice.span) else { return Vec::new() };
            let pair = (old.to_owned(), splice.text);
            let is_name = is_identifier(&pair.0) && is_identifier(&pair.1);
            if is_name && !found.contains(&pair) {
                found.push(pair);
            } else if !is_name && !pair.0.starts_with(['\'', '"']) {
                return Vec::new();
            }
        }
    }
    found
}
