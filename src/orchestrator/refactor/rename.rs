//! `rename`: another name for a symbol, everywhere, proved before it is made.
//!
//! The server proposes the edit. It does not say when it is wrong: Pyright renames to a keyword, onto a name that exists, and a
//! method without its overrides. So everything that can be known is checked here.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Refactored;
use super::checks::Checks;
use super::collision::{self, Renaming};
use super::dependents::affected;
use super::speculate::{self, Comparison, Overlay};
use super::{guards, names, overrides, planned, prepare, private, residue, round_trip, unproved};
use crate::edit::Plan;
use crate::edit::target::of_uri;
use crate::edit::text::{Splice, splices};
use crate::lsp::{Listing, Place};
use crate::model::edits::{
    CheckName, DiagnosticsDelta, DocumentChange, TextDocumentEdit, TextEdit, VersionedDocument, WorkspaceEdit,
};
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::model::facts::{CompletenessStatus, Facts, Provenance, UseProvenance};
use crate::orchestrator::ask::{Answer, Asking};
use crate::orchestrator::completeness;
use crate::orchestrator::failure::Failure;
use crate::orchestrator::occurrences::{self, Explained, Named};
use crate::orchestrator::query::{nothing_there, position};
use crate::orchestrator::state::Subject;
use crate::path::{AbsPath, FileUri};
use crate::text::Range;
use crate::workspace::files::{Document, Files as _};

/// Answers `rename`.
pub(in crate::orchestrator) async fn rename(asking: &Asking<'_>) -> Result<Answer, Failure> {
    let capabilities = prepare::capabilities(asking)?;
    let subject = asking.state.subject()?;
    let new = asking.request.new_name.as_deref().unwrap_or_default();
    let old = name(asking, subject)?;
    if new == old || new.is_empty() {
        let message = if new.is_empty() {
            "the new name is empty".to_owned()
        } else {
            format!("its name is `{old}` already")
        };
        return Err(Failure::told(ErrorBody::new(ErrorSymbol::Usage, message).hint("give another name")));
    }
    let mut checks = Checks::new(asking.request);
    target(&mut checks, subject);
    let (uses, offset) = subject.asked_for_uses();
    let mut searched = completeness::make_known(asking, &[old, new], &[&subject.document.path, &uses.path])?;
    if prepare::offered(asking, subject).await?.is_some() {
        checks.pass(CheckName::PrepareRename, "the server accepts a rename here");
    } else {
        let what = format!("the server renames nothing here: `{old}` is not the workspace's own, or no name");
        checks.fail(CheckName::PrepareRename, what, Vec::new());
    }
    let questions = asking.questions();
    let at = uses.lines.position(&uses.text, offset, asking.places.server_unit);
    let references = questions.references(&uses.path, at, true).await?;
    asking.require_clean(references.items.iter().map(|place| &place.path))?;
    let definition = definition(asking, subject, old).await?;
    if references.items.is_empty() {
        return Err(nothing_there(asking, subject));
    }
    let edit = questions.rename(&uses.path, at, new).await?;
    let named = Named { name: old, document: &subject.document, offset: subject.offset };
    let explained = Box::pin(occurrences::explain(asking, named, &mut searched, references.clone())).await?;
    let certain = certain(&explained);
    let (edit, added) = match edit {
        Some(edit) => {
            let (edit, added) = with_references(asking, edit, &certain, old, new)?;
            (Some(edit), added)
        }
        None => (None, 0),
    };
    let splices = match &edit {
        Some(edit) => by_file(asking, edit)?,
        None => BTreeMap::new(),
    };
    let renaming = Renaming { old, new, definition, splices: &splices };
    let strangers = private::strangers(asking, &renaming);
    names::check(&mut checks, new, renaming.class().is_some(), strangers);
    let around = collision::around_definition(asking, &renaming);
    collision::check(asking, &mut checks, &renaming, &around);
    overrides::check(asking, &mut checks, &renaming, &around);
    let claimed = claimed(asking, &splices);
    let found = completeness::occurrences(asking, &searched, old).await?;
    let unclaimed = completeness::unclaimed(asking, &found, claimed.iter());
    let (verdict, open) = unproved::verdict(asking, &renaming, &searched, explained);
    complete(&mut checks, &references, &verdict, added, open);
    let mut facts = Facts::new(Provenance::Lsp);
    facts.completeness = Some(verdict);
    let mut residue = completeness::residue(asking, &unclaimed);
    residue::add_documents(asking, &mut residue, old).await?;
    let plan = match &edit {
        Some(edit) => planned::plan(asking, &mut checks, asking.places.server_unit, &|planner| {
            planner.workspace_edit(edit)
        })?,
        None => None,
    };
    let mut diagnostics = None;
    if let Some(plan) = plan.as_ref().filter(|plan| !plan.changes().is_empty()) {
        guards::files(asking, &mut checks, plan).await?;
        let asked = (uses, offset);
        diagnostics = Some(verified(asking, &mut checks, plan, &renaming, asked, &references.items).await?);
    }
    let writes = asking.request.writes();
    let error = checks.error().filter(|_| writes || plan.is_none());
    let plan = plan.unwrap_or_default();
    let mut edits = planned::told(asking, edit, &plan);
    edits.safety = checks.into_made();
    edits.residue = Some(residue);
    edits.diagnostics = diagnostics;
    Ok(Answer {
        facts,
        limits: None,
        capabilities,
        refactored: Some(Refactored { edits, error, plan }),
        error: None,
    })
}

/// The references that have to be renamed with the symbol: not the calls that only reach it when the program runs, and not
/// what pytest passes by name, whose uses would have to be renamed too.
fn certain(explained: &Explained) -> Vec<Place> {
    let other = [Some(UseProvenance::Dispatch), Some(UseProvenance::FixtureRequest)];
    let certain = explained.references.iter().filter(|(_, evidence)| !other.contains(&evidence.provenance));
    certain.map(|(place, _)| place.clone()).collect()
}

/// The name that is to be renamed.
fn name<'s>(asking: &Asking<'_>, subject: &'s Subject) -> Result<&'s str, Failure> {
    let is_module = subject.definition.as_ref().is_some_and(|(_, kind)| *kind == "module");
    match subject.name() {
        Some(name) if !is_module => Ok(name),
        _ if is_module => Err(no_modules(asking)),
        _ => Err(nothing_there(asking, subject)),
    }
}

fn no_modules(asking: &Asking<'_>) -> Failure {
    let message = format!("{} renames no modules", asking.settings.server);
    let hint = "move the file with `git mv` and mend its imports: `lanser refs` and `lanser check` help";
    Failure::told(ErrorBody::new(ErrorSymbol::UnsupportedCap, message).hint(hint))
}

/// Whether the selector means one place without a guess.
pub(super) fn target(checks: &mut Checks<'_>, subject: &Subject) {
    if subject.evidence.certified {
        checks.pass(CheckName::Target, "the selector means one place");
    } else {
        let why = format!(
            "the selector means this place perhaps ({:.2}): {}",
            subject.evidence.score, subject.evidence.reason
        );
        checks.fail(CheckName::Target, why, Vec::new());
    }
}

fn complete(
    checks: &mut Checks<'_>,
    references: &Listing<Place>,
    verdict: &crate::model::facts::Completeness,
    added: usize,
    unproved: Vec<String>,
) {
    let count = references.items.len();
    match (&verdict.status, &verdict.reason) {
        (CompletenessStatus::Complete, _) if references.skipped == 0 => {
            let files = planned::files(verdict.files_searched as usize);
            let more = match added {
                0 => String::new(),
                added => format!("; {added} in files that the server's configuration leaves out"),
            };
            let detail = format!("{count} references, complete; {files} hold the name{more}");
            checks.pass(CheckName::Completeness, detail);
        }
        (_, reason) => {
            let reason = reason.as_deref().unwrap_or("some references are in no file of this machine");
            checks.fail(
                CheckName::Completeness,
                format!("{count} references, not complete: {reason}"),
                unproved,
            );
        }
    }
}

/// Where the name is defined in the workspace, as the server says; else where it was asked about.
async fn definition(
    asking: &Asking<'_>,
    subject: &Subject,
    old: &str,
) -> Result<(Arc<Document>, usize), Failure> {
    let questions = asking.questions();
    let found = questions.definition(&subject.document.path, position(asking, subject)).await?;
    let is_file = |place: &Place| place.range == Range::default();
    if !found.items.is_empty() && found.items.iter().all(is_file) {
        return Err(no_modules(asking));
    }
    for place in found.items.iter().filter(|place| asking.state.is_in_workspace(&place.path)) {
        let Ok(document) = asking.state.files.read(&place.path) else { continue };
        let offset = document.lines.offset(&document.text, place.range.start, asking.places.server_unit);
        if let Some(offset) = offset.filter(|at| document.text[*at..].starts_with(old)) {
            return Ok((document, offset));
        }
    }
    Ok((subject.document.clone(), subject.offset))
}

/// The edit with what the server left out: Pyright tells references in every file that it was shown, and renames only in those
/// that its configuration includes. Gives how many were added.
fn with_references(
    asking: &Asking<'_>,
    mut edit: WorkspaceEdit,
    references: &[Place],
    old: &str,
    new: &str,
) -> Result<(WorkspaceEdit, usize), Failure> {
    let splices = by_file(asking, &edit)?;
    let mut missing: BTreeMap<AbsPath, Vec<TextEdit>> = BTreeMap::new();
    for place in references.iter().filter(|place| asking.state.is_in_workspace(&place.path)) {
        let Ok(document) = asking.state.files.read(&place.path) else { continue };
        let offset = |position| document.lines.offset(&document.text, position, asking.places.server_unit);
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

/// The edits of each file of the workspace.
fn by_file(asking: &Asking<'_>, edit: &WorkspaceEdit) -> Result<BTreeMap<AbsPath, Vec<Splice>>, Failure> {
    let root = asking.state.ground.snapshot.root();
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
        if let Ok(document) = asking.state.files.read(&path)
            && let Ok(splices) = splices(&document.text, &edits, asking.places.server_unit)
        {
            found.insert(path, splices);
        }
    }
    Ok(found)
}

/// The places that the edit renames.
fn claimed(asking: &Asking<'_>, splices: &BTreeMap<AbsPath, Vec<Splice>>) -> Vec<Place> {
    let mut places = Vec::new();
    for (path, splices) in splices {
        let Ok(document) = asking.state.files.read(path) else { continue };
        places.extend(splices.iter().map(|splice| Place {
            path: path.clone(),
            range: document.lines.range(&document.text, splice.span.clone(), asking.places.server_unit),
        }));
    }
    places
}

/// Shows the server the edited texts: no new diagnostic, and the references are those that were there.
async fn verified(
    asking: &Asking<'_>,
    checks: &mut Checks<'_>,
    plan: &Plan,
    renaming: &Renaming<'_>,
    asked: (&Arc<Document>, usize),
    references: &[Place],
) -> Result<DiagnosticsDelta, Failure> {
    let overlay = Overlay::new(asking, plan);
    let affected = affected(asking, plan, &[renaming.old, renaming.new]).await?;
    let comparison = Comparison {
        plan,
        overlay: &overlay,
        affected: &affected,
        renamed: Some((renaming.old, renaming.new)),
        wants_resolved: false,
    };
    speculate::show(asking, &overlay)?;
    round_trip::check(asking, checks, &overlay, renaming.splices, asked, references).await?;
    let after = speculate::after(asking, &comparison).await?;
    speculate::hide(asking, &overlay)?;
    let delta = speculate::compare(asking, &comparison, after).await?;
    speculate::record(checks, &delta);
    Ok(delta)
}
