//! From what a server said of files to what a reward is made of.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use crate::digest::Digest;
use crate::edit::Plan;
use crate::model::facts::Diagnostic;
use crate::model::request::Severity;
use crate::model::reward::RewardScope;
use crate::orchestrator::ask::Asking;
use crate::orchestrator::failure::Failure;
use crate::orchestrator::ground::Ground;
use crate::path::{AbsPath, DocUri};
use crate::reward::code::Code;
use crate::reward::environment_pin::{self, Changed};
use crate::reward::judge::{FileView, Judged, Sides, judge};
use crate::reward::types::Probe;
use crate::reward::{fingerprint, scope_pin, suppressions};
use crate::text::{ColumnUnit, LineIndex};
use crate::workspace::files::{Document, Files};

/// Diagnostics by file, hints included.
pub(in crate::orchestrator) type Found = BTreeMap<AbsPath, Vec<Diagnostic>>;

/// What a server was shown and said of an edit.
pub(in crate::orchestrator) struct Shown<'s> {
    /// The files as they are, and as they would be.
    pub(in crate::orchestrator) disk: &'s dyn Files,
    pub(in crate::orchestrator) overlay: &'s dyn Files,
    /// What it finds in them.
    pub(in crate::orchestrator) before: &'s Found,
    pub(in crate::orchestrator) after: &'s Found,
    /// What it finds after when nothing is hidden that was not hidden before.
    pub(in crate::orchestrator) bare: &'s Found,
    /// How many configuration files are others.
    pub(in crate::orchestrator) config_changed: u32,
}

/// Judges an edit: of files of one ground, which is also where they are looked at afterwards, or of another one.
pub(in crate::orchestrator) fn of_edit(
    (base, head): (&Ground, &Ground),
    unit: ColumnUnit,
    shown: &Shown<'_>,
) -> Judged {
    let read = |files: &dyn Files, found: &Found| -> BTreeMap<AbsPath, Arc<Document>> {
        found.keys().filter_map(|path| Some((path.clone(), files.read(path).ok()?))).collect()
    };
    let (old, new) = (read(shown.disk, shown.before), read(shown.overlay, shown.after));
    let mut sides = Sides { config_changed: shown.config_changed, unit, ..Sides::default() };
    for (path, document) in &old {
        let uri = base.paths.uri(path);
        let name = uri.to_string();
        let seen = scope_pin::is_checked_name(&name);
        let found = shown.before.get(path).map_or(&[][..], Vec::as_slice);
        sides.base.insert(name, (uri, FileView { document, found, bare: None, seen }));
    }
    for (path, document) in &new {
        let uri = head.paths.uri(path);
        let name = uri.to_string();
        let included = uri.workspace_path().is_some_and(|path| head.included.includes(path));
        let seen = scope_pin::is_checked_name(&name) && (included || sides.base.contains_key(&name));
        let found = shown.after.get(path).map_or(&[][..], Vec::as_slice);
        let bare = shown.bare.get(path).map(Vec::as_slice);
        sides.head.insert(name, (uri, FileView { document, found, bare, seen }));
    }
    judge(&sides)
}

/// What the edited texts hide that was not hidden before, by file.
pub(in crate::orchestrator) fn hidden_by<'d>(
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

/// A document without what it hides.
pub(in crate::orchestrator) fn without(document: &Document, spans: &[Range<usize>]) -> Document {
    with_text(document, suppressions::blanked(&document.text, spans))
}

/// How many types an edit makes the server forget, which is shown the edited files.
pub(in crate::orchestrator) async fn types_lost(
    asking: &Asking<'_>,
    before: &[Arc<Document>],
    after: &[Arc<Document>],
) -> Result<u32, Failure> {
    let bases: Vec<&str> = before.iter().map(|document| document.text.as_str()).collect();
    let mut lost = 0;
    for document in after {
        if before.iter().any(|other| other.path == document.path && other.digest == document.digest) {
            continue;
        }
        let Some(probe) = Probe::of(&bases, &document.text) else { continue };
        let asked = Arc::new(with_text(document, probe.text.clone()));
        asking.server.open(&asked)?;
        let told = asking.questions().diagnostics(&document.path).await?;
        asking.server.open(document)?;
        let unit = asking.places.server_unit;
        let answers = told.items.iter().filter_map(|item| {
            Some((asked.lines.offset(&asked.text, item.range.start, unit)?, item.message.as_str()))
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

/// What is recorded of files that were only asked about.
pub(in crate::orchestrator) fn listed(asking: &Asking<'_>, found: &Found) -> RewardScope {
    let files = found.iter().map(|(path, found)| {
        let told = found.iter().any(|item| item.severity > Severity::Hint);
        let document = asking.state.files.read(path).ok().filter(|_| told);
        let code = document.as_ref().map(|document| Code::parse(&document.text));
        let symbol = |item: &Diagnostic| {
            let (document, code) = document.as_ref().zip(code.as_ref())?;
            let at = document.lines.offset(&document.text, item.range.start, asking.places.server_unit)?;
            Some(code.symbol_at(at).to_owned())
        };
        let all = found.iter().map(|item| (item, symbol(item).unwrap_or_default())).collect();
        (asking.places.paths.uri(path), all)
    });
    fingerprint::scope(files)
}

/// How many files that a plan changes say how the server looks at the code.
pub(in crate::orchestrator) fn configuration_changed(ground: &Ground, plan: &Plan) -> u32 {
    let mut files = Changed::new();
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
    changed(ground, &files)
}

/// The same for files that are known otherwise.
pub(in crate::orchestrator) fn changed(ground: &Ground, files: &Changed<'_>) -> u32 {
    let configuration: Vec<&str> = ground.config.files.keys().map(String::as_str).collect();
    let stubs = ground.config.stub_path.as_ref().map(|folder| ground.paths.uri(folder));
    let stubs = stubs.as_ref().and_then(DocUri::workspace_path).map_or("typings", |path| path.as_str());
    environment_pin::changed(files, &configuration, stubs)
}

/// The files that a plan takes away, as far as they are there.
pub(in crate::orchestrator) fn taken_away(asking: &Asking<'_>, plan: &Plan) -> BTreeSet<AbsPath> {
    let root = asking.state.ground.snapshot.root();
    let gone = plan.changes().iter().filter_map(|change| match (&change.from, &change.after) {
        (Some(from), _) => Some(from),
        (None, None) => Some(&change.path),
        (None, Some(_)) => None,
    });
    gone.filter(|path| path.is_python()).map(|path| root.join(path.as_str())).collect()
}
