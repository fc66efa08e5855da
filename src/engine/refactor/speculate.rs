//! The diagnostics after an edit, without writing it: the edited texts are shown to the server as open documents.
//!
//! A server that was shown other imports or other files is not used again afterwards: a reset does not undo what it learned about
//! them, in which order.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::checks::Checks;
use super::dependents::{AffectedFiles, EditKind, affected};
use super::diagnostic_changes::DiagnosticChanges;
use super::{copy, unchanged};
use crate::bundle::order::sort;
use crate::edit::EditPlan;
use crate::engine::context::RequestContext;
use crate::engine::diagnose;
use crate::engine::failure::Failure;
use crate::engine::locations::LocationBuilder;
use crate::engine::reward::{self, DiagnosticsByFile, EditMeasurement};
use crate::lsp::{LspError, Profile};
use crate::model::analyzer::{AnalyzerKind, DiagnosticSource, SourceReport};
use crate::model::edits::{CheckName, DiagnosticsDelta, UnaffectedFiles};
use crate::model::facts::Diagnostic;
use crate::model::request::{Command, Severity};
use crate::path::{AbsPath, DocUri};
use crate::python::outline::Outline;
use crate::reward::MeasuredDiagnostics;
use crate::reward::judge::RepairedPlace;
use crate::workspace::file_tree::FileTree;
use crate::workspace::files::{DiskFiles, Document, FileKind, Files, ReadError};
use crate::workspace::scripts::is_code;

/// How many files to open and check at a time.
const MAX_OPEN_FILES: usize = 4;

/// In how many files new diagnostics are confirmed: each of them is checked two more times.
const MAX_CONFIRMED_FILES: usize = 24;

/// How many of the files that cannot be affected are listed.
const MAX_UNAFFECTED_LISTED: usize = 20;

/// The files as they are after the edit.
pub(in crate::engine) struct EditOverlay<'d> {
    disk: &'d DiskFiles,
    /// The edited files; `None` for deleted ones.
    files: BTreeMap<AbsPath, Option<Arc<Document>>>,
}

impl<'d> EditOverlay<'d> {
    pub(in crate::engine) fn new(cx: &'d RequestContext<'_>, plan: &EditPlan) -> Self {
        let root = cx.state.inputs.snapshot.root();
        let mut files = BTreeMap::new();
        for change in plan.changes() {
            if let Some(from) = &change.from {
                files.insert(root.join(from.as_str()), None);
            }
            let path = root.join(change.path.as_str());
            let document =
                change.after.as_ref().map(|after| Arc::new(Document::new(path.clone(), after.clone())));
            if let Some(after) = &change.after {
                let others = cx.state.other_names(&path);
                files.extend(
                    others
                        .into_iter()
                        .map(|other| (other.clone(), Some(Arc::new(Document::new(other, after.clone()))))),
                );
            }
            files.insert(path, document);
        }
        Self { disk: &cx.state.files, files }
    }

    /// The edited Python documents; `None` for deleted ones.
    fn python(&self) -> impl Iterator<Item = (&AbsPath, Option<&Arc<Document>>)> {
        self.files
            .iter()
            .filter(|(path, document)| {
                let text = document.as_ref().map_or("", |document| &document.text);
                is_code(path.as_str(), text.as_bytes())
            })
            .map(|(path, document)| (path, document.as_ref()))
    }
}

impl Files for EditOverlay<'_> {
    fn read(&self, path: &AbsPath) -> Result<Arc<Document>, ReadError> {
        match self.files.get(path) {
            Some(Some(document)) => Ok(document.clone()),
            Some(None) => Err(ReadError::Missing { path: path.clone() }),
            None => self.disk.read(path),
        }
    }

    fn kind(&self, path: &AbsPath) -> FileKind {
        match self.files.get(path) {
            Some(Some(_)) => FileKind::File,
            Some(None) => FileKind::Missing,
            None => self.disk.kind(path),
        }
    }

    fn list(&self, folder: &AbsPath) -> Vec<String> {
        self.disk.list(folder)
    }

    fn canonical(&self, path: &AbsPath) -> AbsPath {
        self.disk.canonical(path)
    }
}

/// The diagnostics of the edited texts.
pub(in crate::engine) struct EditedDiagnostics {
    pub(in crate::engine) found: DiagnosticsByFile,
    /// The diagnostics of the files with new suppressions, after removing those.
    pub(in crate::engine) bare: DiagnosticsByFile,
}

/// Shows the server the edited texts. A deleted file is shown as empty, since a document cannot be shown as missing.
pub(super) fn show(cx: &RequestContext<'_>, overlay: &EditOverlay<'_>) -> Result<(), Failure> {
    if !show_overlay(cx, overlay)? {
        cx.server.retire();
    }
    Ok(())
}

/// Like [`show`]; returns whether every file has the same imports as before.
pub(in crate::engine) fn show_overlay(
    cx: &RequestContext<'_>,
    overlay: &EditOverlay<'_>,
) -> Result<bool, Failure> {
    cx.server.mark_speculative();
    let mut imports_stay = true;
    for (path, document) in overlay.python() {
        let before = cx.state.files.read(path).ok();
        imports_stay &= match (&before, document) {
            (Some(before), Some(after)) => imports(&before.text) == imports(&after.text),
            _ => false,
        };
        match document {
            Some(document) => cx.server.open(document)?,
            None => cx.server.open(&Arc::new(Document::new(path.clone(), Vec::new())))?,
        }
    }
    Ok(imports_stay)
}

/// The modules that a text imports, in order.
fn imports(text: &str) -> Vec<(usize, String)> {
    let outline = Outline::parse(text);
    outline.imports.iter().map(|import| (import.level, import.module.clone())).collect()
}

/// Shows the server the files as they are on disk.
pub(in crate::engine) fn hide_overlay(
    cx: &RequestContext<'_>,
    overlay: &EditOverlay<'_>,
) -> Result<(), Failure> {
    for (path, _) in overlay.python() {
        match cx.state.files.read(path) {
            Ok(document) => cx.server.open(&document)?,
            Err(_) => cx.server.release(path)?,
        }
    }
    Ok(())
}

/// An edit whose diagnostics are compared.
pub(in crate::engine) struct Comparison<'c> {
    pub(in crate::engine) plan: &'c EditPlan,
    pub(in crate::engine) overlay: &'c EditOverlay<'c>,
    pub(in crate::engine) affected: &'c AffectedFiles,
    /// Names that occur in messages, each with the one that it becomes.
    pub(in crate::engine) renamed: &'c [(String, String)],
    /// Whether to report resolved diagnostics: then every file is checked before and after.
    pub(in crate::engine) wants_resolved: bool,
}

/// The diagnostics of the affected files while the server is shown the edited texts.
pub(in crate::engine) async fn diagnostics_after(
    cx: &RequestContext<'_>,
    comparison: &Comparison<'_>,
) -> Result<EditedDiagnostics, Failure> {
    let shown = shown(cx, comparison);
    let found = diagnostics(cx, comparison.overlay, &shown, comparison.affected.files.iter()).await?;
    let bare = bare(cx, comparison.overlay, &shown).await?;
    Ok(EditedDiagnostics { found, bare })
}

/// Builds locations in the edited texts.
const fn shown<'c>(cx: &'c RequestContext<'_>, comparison: &'c Comparison<'_>) -> LocationBuilder<'c> {
    LocationBuilder {
        state: cx.state,
        files: comparison.overlay,
        paths: cx.locations.paths,
        server_unit: cx.locations.server_unit,
        io_unit: cx.locations.io_unit,
        dual: None,
    }
}

/// The suppressions that an edit adds.
fn added_suppressions(
    cx: &RequestContext<'_>,
    overlay: &EditOverlay<'_>,
) -> Vec<(Arc<Document>, Vec<std::ops::Range<usize>>)> {
    let before = overlay.python().filter_map(|(path, _)| cx.state.files.read(path).ok());
    let after = overlay.python().filter_map(|(_, document)| document);
    reward::added_suppressions(before, after)
}

/// The diagnostics of edited files without the suppressions that the edit adds.
pub(in crate::engine) async fn bare(
    cx: &RequestContext<'_>,
    overlay: &EditOverlay<'_>,
    shown: &LocationBuilder<'_>,
) -> Result<DiagnosticsByFile, Failure> {
    diagnostics_without(cx, shown, &added_suppressions(cx, overlay)).await
}

/// The diagnostics of documents without some spans of them: the suppressions that an edit adds.
pub(in crate::engine) async fn diagnostics_without(
    cx: &RequestContext<'_>,
    shown: &LocationBuilder<'_>,
    hidden: &[(Arc<Document>, Vec<std::ops::Range<usize>>)],
) -> Result<DiagnosticsByFile, Failure> {
    let mut found = DiagnosticsByFile::new();
    for (document, spans) in hidden {
        cx.server.open(&Arc::new(reward::without_spans(document, spans)))?;
        let response = cx.requests().diagnostics(&document.path).await?;
        let items = response.items.iter().map(|item| diagnose::diagnostic(shown, &document.path, item));
        found.insert(document.path.clone(), items.collect());
        cx.server.open(document)?;
    }
    Ok(found)
}

/// Adds the findings of analyzers to the diagnostics after an edit. `tree` has the files after it.
pub(in crate::engine) async fn add_analyses_after(
    cx: &RequestContext<'_>,
    with: &[AnalyzerKind],
    comparison: &Comparison<'_>,
    tree: &Arc<FileTree>,
    after: &mut EditedDiagnostics,
) -> Result<Vec<SourceReport>, Failure> {
    if with.is_empty() {
        return Ok(Vec::new());
    }
    let shown = shown(cx, comparison);
    let there: Vec<AbsPath> = after.found.keys().cloned().collect();
    let sources = reward::add_in_tree(cx, with, tree, &there, ("after", &shown), &mut after.found).await?;
    let hidden = added_suppressions(cx, comparison.overlay);
    let bare = &mut after.bare;
    reward::add_without_suppressions(cx, with, tree, &hidden, &shown, bare).await?;
    Ok(sources)
}

/// How many expressions lose their types by the edit. The server must have been shown the edited texts.
pub(in crate::engine) async fn types_lost(
    cx: &RequestContext<'_>,
    overlay: &EditOverlay<'_>,
    repaired: &[RepairedPlace],
) -> Result<u32, Failure> {
    let before: Vec<Arc<Document>> =
        overlay.python().filter_map(|(path, _)| cx.state.files.read(path).ok()).collect();
    let after: Vec<Arc<Document>> = overlay.python().filter_map(|(_, document)| document.cloned()).collect();
    reward::types_lost(cx, &before, &after, repaired).await
}

/// Records how an edit of any kind changes the diagnostics. Afterwards the server is shown the files as they are on disk.
pub(super) async fn check(
    cx: &RequestContext<'_>,
    checks: &mut Checks<'_>,
    plan: &EditPlan,
    kind: EditKind<'_>,
    renamed: &[(String, String)],
) -> Result<DiagnosticsDelta, Failure> {
    let overlay = EditOverlay::new(cx, plan);
    let affected = affected(cx, plan, kind).await?;
    let wants_resolved = cx.request.cmd != Command::Rename;
    let comparison = Comparison { plan, overlay: &overlay, affected: &affected, renamed, wants_resolved };
    let mut after = if copy::moves_files(plan) {
        copy::diagnostics(cx, &comparison).await?
    } else {
        show(cx, &overlay)?;
        let after = diagnostics_after(cx, &comparison).await?;
        hide_overlay(cx, &overlay)?;
        after
    };
    let with = &cx.request.options.with;
    let is_needed = !with.is_empty() && !cx.state.tape.is_replaying();
    let tree = if is_needed { copy::tree_after(cx, plan).await? } else { Arc::default() };
    let sources = add_analyses_after(cx, with, &comparison, &tree, &mut after).await?;
    let delta = compare(cx, &comparison, after).await?;
    let delta = DiagnosticsDelta { sources, ..delta };
    record(checks, &delta, affected.left_out);
    Ok(delta)
}

/// Compares with the diagnostics of the files as they are on disk, which the server must have been shown.
pub(super) async fn compare(
    cx: &RequestContext<'_>,
    comparison: &Comparison<'_>,
    after: EditedDiagnostics,
) -> Result<DiagnosticsDelta, Failure> {
    let EditedDiagnostics { found: mut after, bare } = after;
    let failed = comparison.affected.files.iter().filter(|path| !after.contains_key(*path)).count();
    let left_out = comparison.affected.left_out + failed;
    let has_problem = |found: &Vec<Diagnostic>| found.iter().any(|item| item.severity > Severity::Hint);
    let is_compared =
        |path: &&AbsPath| comparison.wants_resolved || after.get(*path).is_some_and(has_problem);
    let known: Vec<&AbsPath> = comparison.affected.files.iter().filter(is_compared).collect();
    // Only the compared files count in the measurement.
    let compared: Vec<AbsPath> = known.iter().map(|path| (*path).clone()).collect();
    let removed = reward::removed_files(cx, comparison.plan);
    let existing =
        known.into_iter().chain(&removed).filter(|path| cx.state.files.kind(path) == FileKind::File);
    let existing: Vec<&AbsPath> = existing.collect();
    let mut before = unchanged::diagnostics(cx, existing.iter().copied()).await?;
    let existing: Vec<AbsPath> = existing.into_iter().cloned().collect();
    reward::add_on_disk(cx, &cx.request.options.with, &existing, &mut before).await?;
    after.retain(|path, _| compared.contains(path));
    let shown = EditMeasurement {
        disk: &cx.state.files,
        overlay: comparison.overlay,
        before: &before,
        after: &after,
        bare: &bare,
        config_changed: reward::configuration_changed(
            &cx.state.inputs,
            comparison.plan,
            &cx.request.options.with,
        ),
    };
    let ground = &*cx.state.inputs;
    let mut judged = reward::judge_edit((ground, ground), cx.locations.server_unit, &shown);
    if judged.is_gain() {
        show_overlay(cx, comparison.overlay)?;
        judged.integrity.types_erased += types_lost(cx, comparison.overlay, &judged.repaired).await?;
        hide_overlay(cx, comparison.overlay)?;
    }
    cx.measured(MeasuredDiagnostics {
        before: Some(judged.before),
        after: judged.after,
        integrity: judged.integrity,
    });
    let is_gone = |path: &AbsPath| removed.contains(path);
    let mut changes = DiagnosticChanges::of(cx, comparison, before, after, is_gone);
    if !changes.introduced.is_empty() {
        changes.introduced = confirmed(cx, comparison, changes.introduced).await?;
    }
    let mut delta = DiagnosticsDelta {
        files_checked: u32::try_from(comparison.affected.files.len() - failed).unwrap_or(u32::MAX),
        files_left_out: u32::try_from(left_out).unwrap_or(u32::MAX),
        unaffected: unaffected(cx, &comparison.affected.unaffected),
        introduced: changes.introduced,
        unchanged: changes.unchanged,
        ..DiagnosticsDelta::default()
    };
    if comparison.wants_resolved {
        delta.resolved = changes.resolved;
    }
    sort(&mut delta.introduced);
    sort(&mut delta.resolved);
    Ok(delta)
}

/// The new diagnostics that are also new where each of their files is the first that a server without inferred types is asked
/// about, before and after the edit. Pyright reports others depending on the files that it checked before (seen with 1.1.414: a
/// variable in a loop is "unbound", or not). Those of further files are kept as they are.
async fn confirmed(
    cx: &RequestContext<'_>,
    comparison: &Comparison<'_>,
    introduced: Vec<Diagnostic>,
) -> Result<Vec<Diagnostic>, Failure> {
    let (of_server, mut confirmed): (Vec<_>, Vec<_>) = introduced
        .into_iter()
        .partition(|found| found.source.is_none_or(|source| source == DiagnosticSource::Lsp));
    if Profile::of(cx.settings.server).is_order_independent {
        confirmed.extend(of_server);
        return Ok(confirmed);
    }
    let uris: BTreeSet<&DocUri> = of_server.iter().map(|found| &found.uri).collect();
    let files = comparison.affected.files.iter().filter(|path| uris.contains(&cx.locations.paths.uri(path)));
    let files: Vec<&AbsPath> = files.take(MAX_CONFIRMED_FILES).collect();
    let mut in_copy = match copy::moves_files(comparison.plan) {
        true => Some(copy::diagnostics_alone(cx, comparison, &files).await?),
        false => None,
    };
    let mut proven = BTreeSet::new();
    for path in files {
        cx.server.client.reset_inferred_types()?;
        let disk = path_before(cx, comparison.plan, path);
        let before = diagnostics(cx, &cx.state.files, cx.locations, std::iter::once(&disk)).await?;
        let after = match &mut in_copy {
            Some(found) => found.remove_entry(path).into_iter().collect(),
            None => after_alone(cx, comparison, path).await?,
        };
        // A server that failed proves nothing.
        if before.contains_key(&disk) && after.contains_key(path) {
            let changes = DiagnosticChanges::of(cx, comparison, before, after, |_| false);
            confirmed.extend(changes.introduced);
            proven.insert(cx.locations.paths.uri(path));
        }
    }
    confirmed.extend(of_server.into_iter().filter(|found| !proven.contains(&found.uri)));
    Ok(confirmed)
}

/// The diagnostics of a file after an edit that leaves files where they are, without types that were inferred before.
async fn after_alone(
    cx: &RequestContext<'_>,
    comparison: &Comparison<'_>,
    path: &AbsPath,
) -> Result<DiagnosticsByFile, Failure> {
    show(cx, comparison.overlay)?;
    cx.server.client.reset_inferred_types()?;
    let paths = std::iter::once(path);
    let after = diagnostics(cx, comparison.overlay, &shown(cx, comparison), paths).await?;
    hide_overlay(cx, comparison.overlay)?;
    Ok(after)
}

/// Where the file is before an edit.
fn path_before(cx: &RequestContext<'_>, plan: &EditPlan, path: &AbsPath) -> AbsPath {
    let snapshot = &cx.state.inputs.snapshot;
    let moved = plan.changes().iter().find(|change| snapshot.absolute(&change.path) == *path);
    let from = moved.and_then(|change| change.from.as_ref());
    from.map_or_else(|| path.clone(), |from| snapshot.absolute(from))
}

fn unaffected(cx: &RequestContext<'_>, files: &[AbsPath]) -> Option<UnaffectedFiles> {
    let uris = files.iter().take(MAX_UNAFFECTED_LISTED).map(|path| cx.locations.paths.uri(path));
    (!files.is_empty()).then(|| UnaffectedFiles {
        count: u32::try_from(files.len()).unwrap_or(u32::MAX),
        files: uris.collect(),
    })
}

/// Records whether there are new diagnostics. A rename with more affected files than are compared (`unchecked`) does not pass: the
/// caller can have all of them compared.
pub(super) fn record(checks: &mut Checks<'_>, delta: &DiagnosticsDelta, unchecked: usize) {
    let left_out = match delta.files_left_out {
        0 => String::new(),
        more => format!("; {} that could be affected not compared", crate::text::plural(more, "more file")),
    };
    let unaffected = match &delta.unaffected {
        None => String::new(),
        Some(files) => format!("; {} cannot be affected", crate::text::plural(files.count, "importing file")),
    };
    let compared =
        format!("{} compared{left_out}{unaffected}", super::planning::files(delta.files_checked as usize));
    if delta.introduced.is_empty() {
        let detail = format!("no new diagnostic; {compared}");
        if unchecked > 0 && checks.offer_all_importers() {
            checks.fail(CheckName::Diagnostics, detail, Vec::new());
        } else {
            checks.pass(CheckName::Diagnostics, detail);
        }
    } else {
        let places = delta.introduced.iter().map(|found| found.at.clone()).collect();
        let first = &delta.introduced[0].message.lines().next().unwrap_or_default().to_owned();
        let detail =
            format!("new diagnostics: {}, the first is: {first}; {compared}", delta.introduced.len());
        checks.fail(CheckName::Diagnostics, detail, places);
    }
}

pub(in crate::engine) async fn diagnostics<'p>(
    cx: &RequestContext<'_>,
    files: &dyn Files,
    places: &LocationBuilder<'_>,
    paths: impl Iterator<Item = &'p AbsPath>,
) -> Result<DiagnosticsByFile, Failure> {
    let paths: Vec<&AbsPath> = paths.collect();
    let mut all = BTreeMap::new();
    for (number, window) in paths.chunks(MAX_OPEN_FILES).enumerate() {
        cx.settings.progress.step(&format!("checked {} of {} files", number * MAX_OPEN_FILES, paths.len()));
        let mut pulls = Vec::new();
        for path in window {
            let Ok(document) = files.read(path) else { continue };
            let was_open = cx.is_open(path);
            cx.server.open(&document)?;
            pulls.push((*path, was_open, cx.requests().diagnostics(path)));
        }
        for (path, was_open, pull) in pulls {
            // A file that the server fails on is left out, and counted as such.
            match pull.await {
                Ok(found) => {
                    let converted = found.items.iter().map(|item| diagnose::diagnostic(places, path, item));
                    all.insert(path.clone(), converted.collect());
                }
                Err(LspError::Server { .. }) => {}
                Err(failure) => return Err(failure.into()),
            }
            if !was_open {
                cx.server.release(path)?;
            }
        }
    }
    Ok(all)
}
