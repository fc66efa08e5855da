//! `rename`: gives a symbol another name everywhere, checked before it is written.
//!
//! The server proposes the edit without checking it: Pyright renames to a keyword, to a name that exists, and a
//! method without its overrides. So everything that can be checked is checked here.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::CheckedEdit;
use super::checks::Checks;
use super::collision::{self, Renaming};
use super::dependents::affected;
use super::speculate::{self, Comparison, EditOverlay};
use super::{
    guards, mangling, names, overrides, planning, prepare, rename_completeness, residue, round_trip,
};
use crate::edit::EditPlan;
use crate::edit::target::of_uri;
use crate::edit::text::{Splice, splices};
use crate::lsp::{Listing, LspLocation};
use crate::model::edits::{
    CheckName, DiagnosticsDelta, DocumentChange, TextDocumentEdit, TextEdit, VersionedDocument, WorkspaceEdit,
};
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::model::facts::{CompletenessStatus, Facts, Provenance, UseProvenance};
use crate::orchestrator::ask::{HandlerOutput, RequestContext};
use crate::orchestrator::completeness;
use crate::orchestrator::failure::Failure;
use crate::orchestrator::navigation::{no_result, position};
use crate::orchestrator::occurrences::{self, Explained, Named};
use crate::orchestrator::request_state::RequestTarget;
use crate::path::{AbsPath, FileUri};
use crate::text::Range;
use crate::workspace::files::{Document, Files as _};

/// Answers `rename`.
pub(in crate::orchestrator) async fn rename(cx: &RequestContext<'_>) -> Result<HandlerOutput, Failure> {
    let capabilities = prepare::capabilities(cx)?;
    let subject = cx.state.target()?;
    let new = cx.request.new_name.as_deref().unwrap_or_default();
    let old = name(cx, subject)?;
    if new == old || new.is_empty() {
        let message = if new.is_empty() {
            "the new name is empty".to_owned()
        } else {
            format!("the name is `{old}` already")
        };
        return Err(Failure::reported(ErrorBody::new(ErrorSymbol::Usage, message).hint("give another name")));
    }
    let mut checks = Checks::new(cx.request);
    check_target(&mut checks, subject);
    let (uses, offset) = subject.reference_position();
    let mut searched =
        completeness::open_files_with_names(cx, &[old, new], &[&subject.document.path, &uses.path])?;
    if prepare::offered(cx, subject).await?.is_some() {
        checks.pass(CheckName::PrepareRename, "the server accepts a rename here");
    } else {
        let what = format!(
            "the server does not accept a rename here: `{old}` is not defined in the workspace, or is not a name"
        );
        checks.fail(CheckName::PrepareRename, what, Vec::new());
    }
    let requests = cx.requests();
    let at = uses.lines.position(&uses.text, offset, cx.locations.server_unit);
    let references = requests.references(&uses.path, at, true).await?;
    cx.require_fresh_outside_workspace(references.items.iter().map(|place| &place.path))?;
    let definition = definition(cx, subject, old).await?;
    if references.items.is_empty() {
        return Err(no_result(cx, subject));
    }
    let edit = requests.rename(&uses.path, at, new).await?;
    let named = Named { name: old, document: &subject.document, offset: subject.offset };
    let explained = Box::pin(occurrences::explain(cx, named, &mut searched, references.clone())).await?;
    let certain = references_to_rename(&explained);
    let (edit, added) = match edit {
        Some(edit) => {
            let (edit, added) = with_references(cx, edit, &certain, old, new)?;
            (Some(edit), added)
        }
        None => (None, 0),
    };
    let splices = match &edit {
        Some(edit) => splices_by_file(cx, edit)?,
        None => BTreeMap::new(),
    };
    let renaming = Renaming { old, new, definition, splices: &splices };
    let mangled_places = mangling::mangled_differently(cx, &renaming);
    names::check(&mut checks, new, renaming.class().is_some(), mangled_places);
    let around = collision::around_definition(cx, &renaming);
    collision::check(cx, &mut checks, &renaming, &around);
    overrides::check(cx, &mut checks, &renaming, &around);
    let edited = edited_locations(cx, &splices);
    let found = completeness::occurrences(cx, &searched, old).await?;
    let unclaimed = completeness::unclaimed(cx, &found, edited.iter());
    let (verdict, open) = rename_completeness::verdict(cx, &renaming, &searched, explained);
    check_completeness(&mut checks, &references, &verdict, added, open);
    let mut facts = Facts::new(Provenance::Lsp);
    facts.completeness = Some(verdict);
    let mut residue = completeness::residue(cx, &unclaimed);
    residue::add_documents(cx, &mut residue, old).await?;
    let plan = match &edit {
        Some(edit) => planning::plan(cx, &mut checks, cx.locations.server_unit, &|planner| {
            planner.workspace_edit(edit)
        })?,
        None => None,
    };
    let mut diagnostics = None;
    if let Some(plan) = plan.as_ref().filter(|plan| !plan.changes().is_empty()) {
        guards::check_files(cx, &mut checks, plan).await?;
        let requested = (uses, offset);
        diagnostics =
            Some(check_with_server(cx, &mut checks, plan, &renaming, requested, &references.items).await?);
    }
    let writes = cx.request.writes();
    let error = checks.error().filter(|_| writes || plan.is_none());
    let plan = plan.unwrap_or_default();
    let mut edits = planning::describe(cx, edit, &plan);
    edits.safety = checks.into_sorted();
    edits.residue = Some(residue);
    edits.diagnostics = diagnostics;
    Ok(HandlerOutput {
        facts,
        limits: None,
        capabilities,
        refactored: Some(CheckedEdit { edits, error, plan }),
        error: None,
    })
}

/// The references that must be renamed with the symbol: not the calls that only reach it by dynamic dispatch, and not
/// the fixtures that pytest passes by name, whose uses would have to be renamed too.
fn references_to_rename(explained: &Explained) -> Vec<LspLocation> {
    let other = [Some(UseProvenance::Dispatch), Some(UseProvenance::FixtureRequest)];
    let certain = explained.references.iter().filter(|(_, evidence)| !other.contains(&evidence.provenance));
    certain.map(|(place, _)| place.clone()).collect()
}

/// The current name.
fn name<'s>(cx: &RequestContext<'_>, subject: &'s RequestTarget) -> Result<&'s str, Failure> {
    let is_module = subject.definition.as_ref().is_some_and(|(_, kind)| *kind == "module");
    match subject.name() {
        Some(name) if !is_module => Ok(name),
        _ if is_module => Err(modules_unsupported(cx)),
        _ => Err(no_result(cx, subject)),
    }
}

fn modules_unsupported(cx: &RequestContext<'_>) -> Failure {
    let message = format!("{} does not support renaming modules", cx.settings.server);
    let hint = "move the file with `git mv` and update its imports; `lanser refs` finds them and `lanser check` tests the edit";
    Failure::reported(ErrorBody::new(ErrorSymbol::UnsupportedCap, message).hint(hint))
}

/// Records whether the selector resolved to one target with certainty.
pub(super) fn check_target(checks: &mut Checks<'_>, subject: &RequestTarget) {
    if subject.evidence.certified {
        checks.pass(CheckName::Target, "the selector means one place");
    } else {
        let why = format!(
            "the selector may mean another place (score {:.2}): {}",
            subject.evidence.score, subject.evidence.reason
        );
        checks.fail(CheckName::Target, why, Vec::new());
    }
}

fn check_completeness(
    checks: &mut Checks<'_>,
    references: &Listing<LspLocation>,
    verdict: &crate::model::facts::Completeness,
    added: usize,
    unresolved: Vec<String>,
) {
    let count = verdict.explained.map_or(references.items.len(), |counts| counts.reference as usize);
    match (&verdict.status, &verdict.reason) {
        (CompletenessStatus::Complete, _) if references.skipped == 0 => {
            let files = planning::files(verdict.files_searched as usize);
            let more = match added {
                0 => String::new(),
                added => format!("; {added} that the server does not rename"),
            };
            let detail = format!(
                "{}, complete; the name occurs in {files}{more}",
                crate::text::plural(count, "reference")
            );
            checks.pass(CheckName::Completeness, detail);
        }
        (_, reason) => {
            let reason = reason.as_deref().unwrap_or("some references are not in local files");
            checks.fail(
                CheckName::Completeness,
                format!("{}, not complete: {reason}", crate::text::plural(count, "reference")),
                unresolved,
            );
        }
    }
}

/// Where the server reports the definition of the name, if that is in the workspace; else the request's target.
async fn definition(
    cx: &RequestContext<'_>,
    subject: &RequestTarget,
    old: &str,
) -> Result<(Arc<Document>, usize), Failure> {
    let requests = cx.requests();
    let found = requests.definition(&subject.document.path, position(cx, subject)).await?;
    let is_file = |place: &LspLocation| place.range == Range::default();
    if !found.items.is_empty() && found.items.iter().all(is_file) {
        return Err(modules_unsupported(cx));
    }
    for place in found.items.iter().filter(|place| cx.state.is_in_workspace(&place.path)) {
        let Ok(document) = cx.state.files.read(&place.path) else { continue };
        let offset = document.lines.offset(&document.text, place.range.start, cx.locations.server_unit);
        if let Some(offset) = offset.filter(|at| document.text[*at..].starts_with(old)) {
            return Ok((document, offset));
        }
    }
    Ok((subject.document.clone(), subject.offset))
}

/// Adds the references that the server left out of its edit: Pyright reports references in every file that it was
/// shown, and renames only in those that its configuration includes. Returns how many were added.
fn with_references(
    cx: &RequestContext<'_>,
    mut edit: WorkspaceEdit,
    references: &[LspLocation],
    old: &str,
    new: &str,
) -> Result<(WorkspaceEdit, usize), Failure> {
    let splices = splices_by_file(cx, &edit)?;
    let mut missing: BTreeMap<AbsPath, Vec<TextEdit>> = BTreeMap::new();
    for place in references.iter().filter(|place| cx.state.is_in_workspace(&place.path)) {
        let Ok(document) = cx.state.files.read(&place.path) else { continue };
        let offset = |position| document.lines.offset(&document.text, position, cx.locations.server_unit);
        let Some((start, end)) = offset(place.range.start).zip(offset(place.range.end)) else { continue };
        let has = |splice: &Splice| splice.span.start < end.max(start + 1) && start < splice.span.end;
        let known = splices.get(&place.path).is_some_and(|splices| splices.iter().any(has));
        if !known && document.text.get(start..end) == Some(old) {
            let range = place.range.into();
            let edits = missing.entry(place.path.clone()).or_default();
            let edit = TextEdit { range, new_text: new.to_owned(), annotation_id: None };
            if !edits.contains(&edit) {
                edits.push(edit);
            }
        }
    }
    let added = missing.values().map(Vec::len).sum();
    for (path, edits) in missing {
        let uri = FileUri::from_path(&path).as_str().to_owned();
        match &mut edit.document_changes {
            Some(changes) => {
                let text_document = VersionedDocument { uri, version: None };
                changes.push(DocumentChange::Edit(TextDocumentEdit { text_document, edits }));
            }
            None => edit.changes.entry(uri).or_default().extend(edits),
        }
    }
    Ok((edit, added))
}

/// The edits by file, for files in the workspace.
fn splices_by_file(
    cx: &RequestContext<'_>,
    edit: &WorkspaceEdit,
) -> Result<BTreeMap<AbsPath, Vec<Splice>>, Failure> {
    let root = cx.state.inputs.snapshot.root();
    let mut edits: BTreeMap<AbsPath, Vec<TextEdit>> = BTreeMap::new();
    let mut add = |uri: &str, of: &[TextEdit]| {
        if let Ok(path) = of_uri(root, uri) {
            edits.entry(root.join(path.as_str())).or_default().extend(of.iter().cloned());
        }
    };
    match &edit.document_changes {
        Some(changes) => changes.iter().for_each(|change| {
            if let DocumentChange::Edit(edit) = change {
                add(&edit.text_document.uri, &edit.edits);
            }
        }),
        None => edit.changes.iter().for_each(|(uri, edits)| add(uri, edits)),
    }
    let mut found = BTreeMap::new();
    for (path, edits) in edits {
        if let Ok(document) = cx.state.files.read(&path)
            && let Ok(splices) = splices(&document.text, &edits, cx.locations.server_unit)
        {
            found.insert(path, splices);
        }
    }
    Ok(found)
}

/// The locations that the edit renames.
fn edited_locations(cx: &RequestContext<'_>, splices: &BTreeMap<AbsPath, Vec<Splice>>) -> Vec<LspLocation> {
    let mut places = Vec::new();
    for (path, splices) in splices {
        let Ok(document) = cx.state.files.read(path) else { continue };
        places.extend(splices.iter().map(|splice| LspLocation {
            path: path.clone(),
            range: document.lines.range(&document.text, splice.span.clone(), cx.locations.server_unit),
        }));
    }
    places
}

/// Shows the server the edited texts and records whether there are new diagnostics, and whether the references are
/// the same.
async fn check_with_server(
    cx: &RequestContext<'_>,
    checks: &mut Checks<'_>,
    plan: &EditPlan,
    renaming: &Renaming<'_>,
    requested: (&Arc<Document>, usize),
    references: &[LspLocation],
) -> Result<DiagnosticsDelta, Failure> {
    let overlay = EditOverlay::new(cx, plan);
    let affected = affected(cx, plan, &[renaming.old, renaming.new]).await?;
    let comparison = Comparison {
        plan,
        overlay: &overlay,
        affected: &affected,
        renamed: Some((renaming.old, renaming.new)),
        wants_resolved: false,
    };
    speculate::show(cx, &overlay)?;
    round_trip::check(cx, checks, &overlay, renaming.splices, requested, references).await?;
    let after = speculate::diagnostics_after(cx, &comparison).await?;
    speculate::hide_overlay(cx, &overlay)?;
    let delta = speculate::compare(cx, &comparison, after).await?;
    speculate::record(checks, &delta);
    Ok(delta)
}
