//! Measures what [`crate::reward`] judges: collects a server's diagnostics before and after an edit.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use crate::digest::Digest;
use crate::edit::EditPlan;
use crate::engine::context::RequestContext;
use crate::engine::failure::Failure;
use crate::engine::inputs::Inputs;
use crate::model::analyzer::AnalyzerKind;
use crate::model::facts::Diagnostic;
use crate::model::request::Severity;
use crate::model::reward::RewardScope;
use crate::path::{AbsPath, DocUri};
use crate::reward::code::Code;
use crate::reward::environment_pin::{self, ContentChanges};
use crate::reward::judge::{EditSides, FileView, JudgedEdit, RepairedPlace, judge};
use crate::reward::types::Probe;
use crate::reward::{fingerprint, scope_pin, suppressions};
use crate::text::{ColumnUnit, LineIndex};
use crate::workspace::files::{Document, Files};
use crate::workspace::scripts::may_be_code;

/// Diagnostics by file, hints included.
pub(in crate::engine) type DiagnosticsByFile = BTreeMap<AbsPath, Vec<Diagnostic>>;

/// The texts of an edit, and the server's diagnostics for them.
pub(in crate::engine) struct EditMeasurement<'s> {
    /// The files before and after the edit.
    pub(in crate::engine) disk: &'s dyn Files,
    pub(in crate::engine) overlay: &'s dyn Files,
    /// The diagnostics in them.
    pub(in crate::engine) before: &'s DiagnosticsByFile,
    pub(in crate::engine) after: &'s DiagnosticsByFile,
    /// The diagnostics after the edit, without the suppressions that it adds.
    pub(in crate::engine) bare: &'s DiagnosticsByFile,
    /// The number of changed configuration files.
    pub(in crate::engine) config_changed: u32,
}

/// Judges an edit. `base` and `head` are the inputs before and after it; they are the same if the edit was applied in
/// memory.
pub(in crate::engine) fn judge_edit(
    (base, head): (&Inputs, &Inputs),
    unit: ColumnUnit,
    measurement: &EditMeasurement<'_>,
) -> JudgedEdit {
    let read = |files: &dyn Files, found: &DiagnosticsByFile| -> BTreeMap<AbsPath, Arc<Document>> {
        found.keys().filter_map(|path| Some((path.clone(), files.read(path).ok()?))).collect()
    };
    let (old, new) =
        (read(measurement.disk, measurement.before), read(measurement.overlay, measurement.after));
    let mut sides = EditSides { config_changed: measurement.config_changed, unit, ..EditSides::default() };
    for (path, document) in &old {
        let uri = base.paths.uri(path);
        let name = uri.to_string();
        let seen = scope_pin::is_checked_name(&name);
        let found = measurement.before.get(path).map_or(&[][..], Vec::as_slice);
        sides.base.insert(name, (uri, FileView { document, found, bare: None, seen }));
    }
    for (path, document) in &new {
        let uri = head.paths.uri(path);
        let name = uri.to_string();
        let included = uri.workspace_path().is_some_and(|path| head.included.includes(path));
        let seen = scope_pin::is_checked_name(&name) && (included || sides.base.contains_key(&name));
        let found = measurement.after.get(path).map_or(&[][..], Vec::as_slice);
        let bare = measurement.bare.get(path).map(Vec::as_slice);
        sides.head.insert(name, (uri, FileView { document, found, bare, seen }));
    }
    judge(&sides)
}

/// The suppressions that the edited texts add, by file.
pub(in crate::engine) fn added_suppressions<'d>(
    before: impl IntoIterator<Item = Arc<Document>>,
    after: impl IntoIterator<Item = &'d Arc<Document>>,
) -> Vec<(Arc<Document>, Vec<Range<usize>>)> {
    let before: Vec<Arc<Document>> = before.into_iter().collect();
    let after: Vec<&Arc<Document>> = after.into_iter().collect();
    let texts = after.iter().map(|document| (document.path.as_str(), document.text.as_str()));
    let hidden = suppressions::added(before.iter().map(|document| document.text.as_str()), texts);
    let with = after.into_iter().filter_map(|document| {
        hidden.get(document.path.as_str()).map(|spans| (document.clone(), spans.clone()))
    });
    with.collect()
}

/// A document without the given suppressions.
pub(in crate::engine) fn without_spans(document: &Document, spans: &[Range<usize>]) -> Document {
    with_text(document, suppressions::blanked(&document.text, spans))
}

/// The number of expressions that lose their types by an edit: in its new code, and where an expression no longer fails. The
/// server is shown the edited files.
pub(in crate::engine) async fn types_lost(
    cx: &RequestContext<'_>,
    before: &[Arc<Document>],
    after: &[Arc<Document>],
    repaired: &[RepairedPlace],
) -> Result<u32, Failure> {
    let bases: Vec<&str> = before.iter().map(|document| document.text.as_str()).collect();
    let is_changed = |document: &Document| {
        !before.iter().any(|other| other.path == document.path && other.digest == document.digest)
    };
    let mut documents: BTreeMap<&AbsPath, &Document> =
        after.iter().filter(|document| is_changed(document)).map(|one| (&one.path, &**one)).collect();
    documents.extend(repaired.iter().map(|place| (&place.document.path, &place.document)));
    let mut lost = 0;
    for (path, document) in documents {
        let places: Vec<&RepairedPlace> =
            repaired.iter().filter(|place| place.document.path == *path).collect();
        let is_edited = after.iter().any(|other| other.path == *path);
        let bases = if is_edited { bases.clone() } else { vec![document.text.as_str()] };
        let Some(probe) = Probe::of(&bases, &document.text, &places) else { continue };
        let probed = Arc::new(with_text(document, probe.text.clone()));
        cx.server.open(&probed)?;
        let response = cx.requests().diagnostics(path).await?;
        cx.server.open(&Arc::new(document.clone()))?;
        let unit = cx.locations.server_unit;
        let answers = response.items.iter().filter_map(|item| {
            Some((probed.lines.offset(&probed.text, item.range.start, unit)?, item.message.as_str()))
        });
        lost += probe.lost(answers);
    }
    Ok(u32::try_from(lost).unwrap_or(u32::MAX))
}

fn with_text(document: &Document, text: String) -> Document {
    Document {
        path: document.path.clone(),
        encoding: document.encoding,
        digest: Digest::of(text.as_bytes()),
        lines: LineIndex::new(&text),
        text,
    }
}

/// The reward scope of files that were only measured, not edited.
pub(in crate::engine) fn measured_scope(
    cx: &RequestContext<'_>,
    mut found: DiagnosticsByFile,
) -> RewardScope {
    name_symbols(cx, &mut found);
    named_scope(cx, &found)
}

/// Sets the `symbol` of diagnostics other than hints.
pub(in crate::engine) fn name_symbols(cx: &RequestContext<'_>, found: &mut DiagnosticsByFile) {
    for (path, found) in found {
        let mut findings = found.iter_mut().filter(|item| item.severity > Severity::Hint).peekable();
        if findings.peek().is_none() {
            continue;
        }
        let Ok(document) = cx.state.files.read(path) else { continue };
        let code = Code::of(&document.text);
        for item in findings {
            let at = document.lines.offset(&document.text, item.range.start, cx.locations.server_unit);
            let symbol = at.map(|at| code.symbol_at(at)).filter(|symbol| !symbol.is_empty());
            item.symbol = symbol.map(str::to_owned);
        }
    }
}

/// The reward scope of files whose diagnostics have their symbols.
pub(in crate::engine) fn named_scope(cx: &RequestContext<'_>, found: &DiagnosticsByFile) -> RewardScope {
    fingerprint::scope(found.iter().map(|(path, found)| {
        let all = found.iter().map(|item| (item, item.symbol.clone().unwrap_or_default())).collect();
        (cx.locations.paths.uri(path), all)
    }))
}

/// The number of files changed by a plan that configure how the server analyzes the code.
pub(in crate::engine) fn configuration_changed(
    inputs: &Inputs,
    plan: &EditPlan,
    with: &[AnalyzerKind],
) -> u32 {
    let mut files = ContentChanges::new();
    for change in plan.changes() {
        let before = change.before.as_ref().map(|original| original.bytes.as_slice());
        match &change.from {
            Some(from) => {
                files.insert(from.as_str(), (before, None));
                files.insert(change.path.as_str(), (None, change.after.as_deref()));
            }
            None => {
                files.insert(change.path.as_str(), (before, change.after.as_deref()));
            }
        }
    }
    changed(inputs, &files, with)
}

/// Like [`configuration_changed`], for a set of changed files.
pub(in crate::engine) fn changed(inputs: &Inputs, files: &ContentChanges<'_>, with: &[AnalyzerKind]) -> u32 {
    let configuration: Vec<&str> = inputs.config.files.keys().map(String::as_str).collect();
    let stubs = inputs.config.stub_path.as_ref().map(|folder| inputs.paths.uri(folder));
    let stubs = stubs.as_ref().and_then(DocUri::workspace_path).map_or("typings", |path| path.as_str());
    environment_pin::changed(files, &configuration, stubs, with)
}

/// The existing files that a plan removes.
pub(in crate::engine) fn removed_files(cx: &RequestContext<'_>, plan: &EditPlan) -> BTreeSet<AbsPath> {
    let root = cx.state.inputs.snapshot.root();
    let gone = plan.changes().iter().filter_map(|change| match (&change.from, &change.after) {
        (Some(from), _) => Some(from),
        (None, None) => Some(&change.path),
        (None, Some(_)) => None,
    });
    gone.filter(|path| may_be_code(path)).map(|path| root.join(path.as_str())).collect()
}
