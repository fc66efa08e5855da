//! `rename`: gives a symbol another name everywhere, checked before it is written.
//!
//! The server proposes the edit without checking it: Pyright renames to a keyword, to a name that exists, and a
//! method without its overrides. So everything that can be checked is checked here.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::CheckedEdit;
use super::checks::{CheckFailure, Checks};
use super::collision::{self, Renaming};
use super::decisions::{DecidedPlaces, OpenPlace, decide};
use super::dependents::{EditKind, affected};
use super::exports::{ReorderedExports, keep_order, remove_within, with_entry_points, with_name_arguments};
use super::fallbacks::with_aliases;
use super::family::{DefinitionSite, around_all, family};
use super::module::rename_module;
use super::rename_completeness::{open_places, open_places_of_local, reasons};
use super::rename_edit::{edited_locations, splices_by_file, with_places, with_references};
use super::round_trip::RoundTrip;
use super::speculate::{self, Comparison, EditOverlay};
use super::stand_ins::StandIns;
use super::{guards, mangling, names, nominal, overrides, planning, prepare, residue};
use crate::edit::EditPlan;
use crate::edit::text::Splice;
use crate::engine::agreement::{self, Disputes};
use crate::engine::completeness::{self, UsedIn};
use crate::engine::context::{HandlerOutput, RequestContext};
use crate::engine::failure::Failure;
use crate::engine::occurrences::{self, Evidence, Explained, Named, offset_of};
use crate::engine::positions::{by_name, no_result, position};
use crate::engine::references::claimed as claimed_references;
use crate::engine::request_state::RequestTarget;
use crate::lsp::{Listing, LspLocation};
use crate::model::edits::{CheckName, DiagnosticsDelta};
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::model::facts::{Agreement, Completeness, CompletenessStatus, Facts, Provenance, UseProvenance};
use crate::model::request::CheckScope;
use crate::path::AbsPath;
use crate::python::classes::Classes;
use crate::python::local_variable::code_of_local_variable;
use crate::relocate::locate::ResolvedVia;
use crate::text::Range;
use crate::workspace::files::{Document, Files as _};

/// Answers `rename`.
pub(in crate::engine) async fn rename(cx: &RequestContext<'_>) -> Result<HandlerOutput, Failure> {
    let capabilities = prepare::capabilities(cx)?;
    let new = cx.request.new_name.as_deref().unwrap_or_default();
    if let Some(module) = &cx.request.options.module {
        return rename_module(cx, module, new).await;
    }
    let subject = cx.state.target()?;
    let old = name(cx, subject)?;
    if new == old || new.is_empty() {
        let message = if new.is_empty() {
            "the new name is empty".to_owned()
        } else {
            format!("the name is `{old}` already")
        };
        return Err(Failure::reported(ErrorBody::new(ErrorSymbol::Usage, message).hint("give another name")));
    }
    let mut checks = Checks::new(cx.request, cx.settings);
    if is_reassigned(subject) {
        checks.pass(CheckName::Target, format!("the selector means one symbol: {}", subject.evidence.reason));
    } else {
        check_target(&mut checks, subject);
    }
    let (uses, offset) = subject.reference_position();
    let local = code_of_local_variable(&uses.text, offset);
    let used_in = if local.is_some() { UsedIn::OwnFile } else { UsedIn::AnyFile };
    let mut searched =
        completeness::open_files_with_names(cx, &[old, new], &[&subject.document.path, &uses.path], used_in)?;
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
    let references = claimed_references(cx, subject, used_in).await?;
    cx.require_fresh_outside_workspace(references.items.iter().map(|place| &place.path))?;
    let definition = definition(cx, subject, old).await?;
    if references.items.is_empty() {
        return Err(no_result(cx, subject));
    }
    // All references of a local variable are renamed; Pyright would search all files for others.
    let is_proposed = !used_in.is_asked_for_highlights(cx);
    let proposed = if is_proposed { requests.rename(&uses.path, at, new).await? } else { None };
    let mut family = match cx.request.options.family {
        true => family(cx, &definition, old),
        false => Vec::new(),
    };
    let stand_ins = StandIns::find(cx, &definition, &family, old)?;
    family.extend(stand_ins.included.iter().cloned());
    let named = Named { name: old, document: &subject.document, offset: subject.offset, family: &family };
    let explaining = Box::pin(occurrences::explain(cx, named, &mut searched, references.clone()));
    let (mut explained, opinion) = tokio::try_join!(explaining, agreement::ask(cx, &family))?;
    // Where else the name is written does not matter, if the server agrees with the syntax.
    let local = local.filter(|_| explained.is_local_variable);
    let disputes = opinion.map(|opinion| agreement::merge(cx, &mut explained, &opinion));
    explained.unresolved.retain(|one| one.token.text() == old);
    // A variable that may hold the symbol keeps its own name.
    let unresolved = explained.unresolved.len();
    explained.unresolved.retain(|one| !one.is_variable());
    explained.other += unresolved - explained.unresolved.len();
    let certain = references_to_rename(cx, &explained).await?;
    let mut proposed = proposed.unwrap_or_default();
    for place in &explained.refuted {
        remove_within(&mut proposed, cx, &place.path, place.range);
    }
    let (edit, added) = with_references(cx, proposed, &certain, old, new);
    let added = if is_proposed { added } else { 0 };
    let edit = with_name_arguments(cx, edit, std::iter::once(&definition).chain(&family), old, new);
    let before_decisions = splices_by_file(cx, &edit);
    let (definition, splices) = (definition.clone(), &before_decisions);
    let renaming = Renaming { old, new, definition, family: &family, splices, bound: &[] };
    let open = match &local {
        Some(code) => open_places_of_local(cx, &renaming, &explained, code),
        None => open_places(cx, &renaming, &explained, &stand_ins.all),
    };
    let mut facts = Facts::new(Provenance::Lsp);
    let verdict = facts.completeness.insert(completeness::verdict(cx, &searched, &explained));
    if !open.is_empty() && verdict.status != CompletenessStatus::Unknown {
        verdict.status = CompletenessStatus::Partial;
        verdict.reason = Some(reasons(&open));
    }
    let undecided: BTreeSet<LspLocation> = open
        .iter()
        .map(|place| LspLocation {
            path: place.document.path.clone(),
            range: place.document.lines.range(
                &place.document.text,
                place.span.clone(),
                cx.locations.server_unit,
            ),
        })
        .collect();
    let decided = decide(cx, open, &certain)?;
    let edit = with_places(cx, edit, &decided.included, &renaming);
    let edit = with_entry_points(cx, edit, &renaming);
    let (edit, mut reordered) = keep_order(cx, edit, old, new);
    let (edit, aliased) = with_aliases(cx, edit, &renaming);
    reordered.extend(aliased);
    let splices = splices_by_file(cx, &edit);
    let renaming = Renaming { splices: &splices, ..renaming };
    let bound = renaming.find_bound(cx);
    let renaming = Renaming { bound: &bound, ..renaming };
    check_completeness(cx, &mut checks, verdict, &references, &decided, added);
    if let Some(disputes) = &disputes {
        check_agreement(cx, &mut checks, &explained, disputes);
    }
    let mangled_places = mangling::mangled_differently(cx, &renaming);
    names::check(&mut checks, new, renaming.class().is_some(), mangled_places);
    let around = around_all(cx, renaming.renamed(), &[old, new]);
    collision::check(cx, &mut checks, &renaming, &around, &undecided);
    overrides::check(cx, &mut checks, &renaming, &around);
    let edited = edited_locations(cx, &splices);
    let found = completeness::occurrences(cx, &searched, old).await?;
    let mut unclaimed = completeness::unclaimed(cx, &found, edited.iter());
    // A token that is proven to be another symbol does not matter to the caller.
    unclaimed.retain(|one| {
        let is_replaced =
            |splice: &Splice| splice.span.start <= one.span.start && one.span.end <= splice.span.end;
        let is_edited = splices.get(&one.document.path).is_some_and(|of| of.iter().any(is_replaced));
        let may_mean_it = match &local {
            Some(code) => one.document.path == uses.path && code.contains(&one.span.start),
            None => true,
        };
        may_mean_it && !is_edited && (!one.kind.is_token() || undecided.contains(&one.place(cx)))
    });
    let mut residue = completeness::residue(cx, &unclaimed);
    if used_in == UsedIn::AnyFile {
        residue::add_documents(cx.settings, cx.state, &mut residue, old, &edit).await?;
    }
    let plan =
        planning::plan(cx, &mut checks, cx.locations.server_unit, &|planner| planner.workspace_edit(&edit))?;
    let is_empty = plan.as_ref().is_some_and(|plan| plan.changes().is_empty());
    if is_empty {
        let count = crate::text::plural(references.items.len(), "reference");
        let detail =
            format!("no file of the workspace has any of the {count}, so there is nothing to rename");
        checks.replace(CheckName::PrepareRename, detail, Vec::new(), CheckFailure::default());
    }
    let planned = plan.unwrap_or_default();
    guards::check_files(cx.settings, cx.state, cx.request, &mut checks, &planned).await?;
    let mut diagnostics = None;
    if !planned.changes().is_empty() {
        let names = [old, new];
        let is_certain = explained.cut.is_none() && cx.request.options.check == CheckScope::Affected;
        let below = match is_certain && !explained.is_by_name {
            true => nominal::files_of_subclasses(cx, &renaming, &around).await?,
            false => None,
        };
        let calling = match is_certain && local.is_none() && !has_special_form(names) {
            true => nominal::files_of_calls(cx, &renaming).await?,
            false => None,
        };
        let kind = match &below {
            _ if is_certain && local.is_some() => EditKind::RenamesLocal,
            _ if let Some(calling) = &calling => EditKind::RenamesParameter(calling),
            _ if is_certain && explained.is_by_name && !has_special_form(names) => {
                EditKind::RenamesGlobal { names, may_match: nominal::may_match_module(cx, names).await? }
            }
            Some(below) => EditKind::RenamesNominal(names, below),
            None => EditKind::Renames(names),
        };
        let server_check = ServerCheck {
            renaming: &renaming,
            definitions: std::iter::once((uses.clone(), offset)).chain(family.iter().cloned()).collect(),
            references: claimed(&explained, &references),
            reordered,
            kind,
        };
        diagnostics = Some(server_check.run(cx, &mut checks, &planned).await?);
    }
    let mut refactored = CheckedEdit::new(cx, Some(edit), planned, checks, diagnostics);
    refactored.edits.residue = Some(residue);
    Ok(HandlerOutput { facts, limits: None, capabilities, refactored: Some(refactored), error: None })
}

/// Whether a name with two leading underscores is involved: a module's `__getattr__` or `__all__` is for its importers, and a parameter
/// `__x` cannot be passed by name, so that the names in overrides may differ. Such a rename changes what the program means in
/// files that have neither name.
fn has_special_form(names: [&str; 2]) -> bool {
    names.iter().any(|name| name.starts_with("__"))
}

/// The references that must be renamed with the symbol: not the calls that only reach it by dynamic dispatch. A fixture is
/// requested by the name of a parameter, which is renamed in its function.
async fn references_to_rename(
    cx: &RequestContext<'_>,
    explained: &Explained,
) -> Result<Vec<LspLocation>, Failure> {
    let mut certain: BTreeSet<LspLocation> = BTreeSet::new();
    for (place, evidence) in &explained.references {
        match evidence.provenance {
            Some(UseProvenance::Dispatch) => {}
            Some(UseProvenance::FixtureRequest) => {
                certain.insert(place.clone());
                certain.extend(cx.requests().references(&place.path, place.range.start, true).await?.items);
            }
            _ => drop(certain.insert(place.clone())),
        }
    }
    Ok(certain.into_iter().collect())
}

/// What the server claims for the definitions that are renamed.
fn claimed(explained: &Explained, references: &Listing<LspLocation>) -> BTreeSet<LspLocation> {
    let by_server = explained.references.iter().filter(|(_, evidence)| **evidence == Evidence::SERVER);
    let all = by_server.map(|(place, _)| place).chain(&references.items);
    all.filter(|place| !explained.refuted.contains(*place)).cloned().collect()
}

/// The current name.
fn name<'s>(cx: &RequestContext<'_>, subject: &'s RequestTarget) -> Result<&'s str, Failure> {
    let is_module = subject.definition.as_ref().is_some_and(|(_, kind)| *kind == "module");
    match subject.name() {
        Some(name) if !is_module => Ok(name),
        _ if is_module => Err(modules_by_name(cx, &subject.document.path)),
        _ => Err(no_result(cx, subject)),
    }
}

/// A module is renamed by its name: a token of an import may bind the module under another one.
fn modules_by_name(cx: &RequestContext<'_>, file: &AbsPath) -> Failure {
    let name = cx.state.inputs.roots.name_of(file).unwrap_or_default();
    let message = format!("`{name}` is a module");
    let command = format!("lanser rename py://{name} NEW_NAME");
    let hint = format!("to rename it and everything that imports it: {command}");
    Failure::reported(ErrorBody::new(ErrorSymbol::UnsupportedCap, message).hint(hint))
}

/// Whether the selector names a variable that is assigned in several places: all of them are renamed.
fn is_reassigned(subject: &RequestTarget) -> bool {
    let evidence = &subject.evidence;
    !evidence.certified && evidence.via == ResolvedVia::Name && evidence.margin >= 1.0
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
    cx: &RequestContext<'_>,
    checks: &mut Checks<'_>,
    verdict: &Completeness,
    references: &Listing<LspLocation>,
    decided: &DecidedPlaces,
    added: usize,
) {
    let count = verdict.explained.map_or(references.items.len(), |counts| counts.reference as usize);
    let references_found = crate::text::plural(count, "reference");
    let is_searched = verdict.status != CompletenessStatus::Unknown && references.skipped == 0;
    let passed = is_searched && decided.open.is_empty();
    let detail = if passed {
        let files = planning::files(verdict.files_searched as usize);
        let more = match added {
            0 => String::new(),
            added => format!("; {added} that the server does not rename"),
        };
        format!("{references_found}, complete; the name occurs in {files}{more}{}", decided.summary())
    } else {
        let reason = match (is_searched, &verdict.reason) {
            (true, _) => reasons(&decided.open),
            (false, Some(reason)) => reason.clone(),
            (false, None) => "some references are not in local files".to_owned(),
        };
        format!("{references_found}, not complete: {reason}")
    };
    if !decided.open.is_empty() && !decided.open.iter().any(OpenPlace::can_be_renamed) {
        checks.offer_exclude();
    }
    checks.completeness(passed, detail, decided.listed(cx), decided.decisions.clone());
}

/// Records whether the two servers agree: they contradict each other about no place, and both know a reference, if there is one.
fn check_agreement(
    cx: &RequestContext<'_>,
    checks: &mut Checks<'_>,
    explained: &Explained,
    disputes: &Disputes,
) {
    let counts = explained.compared.unwrap_or_default();
    let (main, other) = (cx.settings.server, cx.request.options.agree.unwrap_or_default());
    if disputes.places.is_empty() {
        let both = crate::text::plural(counts.both as usize, "reference");
        let only = [(counts.main, main), (counts.other, other)];
        let only = only.iter().filter(|(count, _)| *count > 0);
        let only: Vec<String> =
            only.map(|(count, server)| format!(", {count} that only {server} knows")).collect();
        let detail = format!("{both} for {main} and {other}{}", only.concat());
        // That the other server contradicts nothing is no agreement if it knows nothing.
        let classes = Classes::new(&cx.state.files, &cx.state.inputs.roots);
        let is_definition = |place: &LspLocation| {
            let found = offset_of(cx, place);
            found.is_some_and(|(document, offset)| classes.defined_at(&document.path, offset).is_some())
        };
        let has_use = |of: Agreement| {
            explained.agreement.iter().any(|(place, agreement)| *agreement == of && !is_definition(place))
        };
        if !has_use(Agreement::Both) && has_use(main.into()) {
            let detail = format!("{other} knows none of the references: {detail}");
            checks.fail(CheckName::Agreement, detail, Vec::new());
        } else {
            checks.pass(CheckName::Agreement, detail);
        }
        return;
    }
    let places = disputes.places.iter().map(|place| cx.locations.describe(&place.path, place.range).1);
    let places: Vec<String> = places.collect();
    let count = crate::text::plural(places.len(), "place");
    let first = disputes.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    checks.fail(CheckName::Agreement, format!("{main} and {other} disagree about {count}{first}"), places);
}

/// Where the server reports the definition of the name, if that is in the workspace; else the request's target.
async fn definition(
    cx: &RequestContext<'_>,
    subject: &RequestTarget,
    old: &str,
) -> Result<(Arc<Document>, usize), Failure> {
    let requests = cx.requests();
    let found = requests.definition(&subject.document.path, position(cx, subject)).await?;
    let found = by_name(cx, found);
    let is_file = |place: &LspLocation| place.range == Range::default();
    if !found.items.is_empty() && found.items.iter().all(is_file) {
        return Err(modules_by_name(cx, &found.items[0].path));
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

/// The checks for which the server is shown the edited texts.
struct ServerCheck<'c> {
    renaming: &'c Renaming<'c>,
    /// The definitions whose references are compared, each at a place that the server accepts.
    definitions: Vec<DefinitionSite>,
    /// What the server claims for them before the edit.
    references: BTreeSet<LspLocation>,
    reordered: Vec<ReorderedExports>,
    kind: EditKind<'c>,
}

impl ServerCheck<'_> {
    /// Records whether there are new diagnostics, and whether the references are the same.
    async fn run(
        self,
        cx: &RequestContext<'_>,
        checks: &mut Checks<'_>,
        plan: &EditPlan,
    ) -> Result<DiagnosticsDelta, Failure> {
        let overlay = EditOverlay::new(cx, plan);
        let affected = affected(cx, plan, self.kind).await?;
        // A message quotes a private name as it is outside of its class, too.
        let [old, new] = self.renaming.mangled();
        let renamed = [(self.renaming.old.to_owned(), self.renaming.new.to_owned()), (old, new)];
        let comparison = Comparison {
            plan,
            overlay: &overlay,
            affected: &affected,
            renamed: &renamed,
            wants_resolved: false,
        };
        speculate::show(cx, &overlay)?;
        let round_trip = RoundTrip {
            splices: self.renaming.splices,
            definitions: &self.definitions,
            references: &self.references,
            reordered: &self.reordered,
        };
        round_trip.check(cx, checks, &overlay).await?;
        let after = speculate::diagnostics_after(cx, &comparison).await?;
        speculate::hide_overlay(cx, &overlay)?;
        let delta = speculate::compare(cx, &comparison, after).await?;
        speculate::record(checks, &delta, affected.left_out);
        Ok(delta)
    }
}
