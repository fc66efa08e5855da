//! What the server would find wrong after an edit, without making it: the edited texts are shown to it as open documents.
//!
//! Diagnostics are compared as a multiset of file, rule, severity and message, so that what only moved is not new. A server
//! that was shown another set of imports or other files is not asked again afterwards: what it learned of them, in which
//! order, it cannot forget.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::checks::Checks;
use super::dependents::Affected;
use crate::bundle::order::sort;
use crate::edit::Plan;
use crate::model::edits::{CheckName, DiagnosticsDelta};
use crate::model::facts::Diagnostic;
use crate::model::request::Severity;
use crate::orchestrator::ask::Asking;
use crate::orchestrator::diagnose;
use crate::orchestrator::failure::Failure;
use crate::orchestrator::places::Places;
use crate::path::{AbsPath, DocUri};
use crate::resolve::outline::Outline;
use crate::workspace::files::{DiskFiles, Document, FileKind, Files, ReadError};

/// How many files are open and asked about at a time.
const WINDOW: usize = 4;

/// The files as they would be.
pub(super) struct Overlay<'d> {
    disk: &'d DiskFiles,
    /// What would be another content; nothing for a file that goes.
    over: BTreeMap<AbsPath, Option<Arc<Document>>>,
}

impl<'d> Overlay<'d> {
    pub(super) fn new(asking: &'d Asking<'_>, plan: &Plan) -> Self {
        let root = asking.state.ground.snapshot.root();
        let mut over = BTreeMap::new();
        for change in plan.changes() {
            if let Some(from) = &change.from {
                over.insert(root.join(from.as_str()), None);
            }
            let path = root.join(change.path.as_str());
            let document =
                change.after.as_ref().map(|after| Arc::new(Document::new(path.clone(), after.clone())));
            over.insert(path, document);
        }
        Self { disk: &asking.state.files, over }
    }

    /// The Python documents that would be other ones, with what they would be.
    fn python(&self) -> impl Iterator<Item = (&AbsPath, Option<&Arc<Document>>)> {
        let is_python = |path: &AbsPath| path.as_str().ends_with(".py") || path.as_str().ends_with(".pyi");
        self.over
            .iter()
            .filter(move |(path, _)| is_python(path))
            .map(|(path, document)| (path, document.as_ref()))
    }
}

impl Files for Overlay<'_> {
    fn read(&self, path: &AbsPath) -> Result<Arc<Document>, ReadError> {
        match self.over.get(path) {
            Some(Some(document)) => Ok(document.clone()),
            Some(None) => Err(ReadError::Missing { path: path.clone() }),
            None => self.disk.read(path),
        }
    }

    fn kind(&self, path: &AbsPath) -> FileKind {
        match self.over.get(path) {
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

/// Shows the server the edited texts. What goes is shown empty, since no document can be shown as gone.
pub(super) fn show(asking: &Asking<'_>, overlay: &Overlay<'_>) -> Result<(), Failure> {
    asking.server.speculates();
    let mut imports_stay = true;
    for (path, document) in overlay.python() {
        let before = asking.state.files.read(path).ok();
        imports_stay &= match (&before, document) {
            (Some(before), Some(after)) => imports(&before.text) == imports(&after.text),
            _ => false,
        };
        match document {
            Some(document) => asking.server.open(document)?,
            None => asking.server.open(&Document::new(path.clone(), Vec::new()))?,
        }
    }
    if !imports_stay {
        asking.server.retire();
    }
    Ok(())
}

/// Which modules a text imports, in order.
fn imports(text: &str) -> Vec<(usize, String)> {
    let outline = Outline::parse(text);
    outline.imports.into_iter().map(|import| (import.level, import.module)).collect()
}

/// Shows the server the files as they are.
pub(super) fn hide(asking: &Asking<'_>, overlay: &Overlay<'_>) -> Result<(), Failure> {
    for (path, _) in overlay.python() {
        match asking.state.files.read(path) {
            Ok(document) => asking.server.open(&document)?,
            Err(_) => asking.server.release(path)?,
        }
    }
    Ok(())
}

/// What is compared.
pub(super) struct Comparison<'c> {
    pub(super) overlay: &'c Overlay<'c>,
    pub(super) affected: &'c Affected,
    /// The old name and the new one, which messages tell too.
    pub(super) renamed: Option<(&'c str, &'c str)>,
    /// Whether it is told what the edit ends: then every file is asked about on both sides.
    pub(super) wants_resolved: bool,
}

type Found = BTreeMap<AbsPath, Vec<Diagnostic>>;

/// What the server finds wrong in the affected files while it is shown the edited texts.
pub(super) async fn after(asking: &Asking<'_>, comparison: &Comparison<'_>) -> Result<Found, Failure> {
    let shown = Places {
        state: asking.state,
        files: comparison.overlay,
        paths: asking.places.paths,
        server_unit: asking.places.server_unit,
        io_unit: asking.places.io_unit,
        dual: None,
    };
    diagnostics(asking, comparison.overlay, &shown, comparison.affected.files.iter()).await
}

/// Compares with what it finds wrong now that it is shown the files as they are.
pub(super) async fn compare(
    asking: &Asking<'_>,
    comparison: &Comparison<'_>,
    after: Found,
) -> Result<DiagnosticsDelta, Failure> {
    let known = comparison.affected.files.iter().filter(|path| {
        let matters = comparison.wants_resolved || after.get(*path).is_some_and(|found| !found.is_empty());
        matters && asking.state.files.kind(path) == FileKind::File
    });
    let before = diagnostics(asking, &asking.state.files, asking.places, known).await?;
    let mut delta = DiagnosticsDelta {
        files_checked: u32::try_from(comparison.affected.files.len()).unwrap_or(u32::MAX),
        files_left_out: u32::try_from(comparison.affected.left_out).unwrap_or(u32::MAX),
        ..DiagnosticsDelta::default()
    };
    // A message may tell the old name before and the new one after, or the old one both times, of something else.
    let key = |found: &Diagnostic| {
        let message = match comparison.renamed {
            Some((old, new)) => replace_word(&found.message, old, new),
            None => found.message.clone(),
        };
        (found.uri.clone(), found.rule.clone(), found.severity, message)
    };
    let mut old: BTreeMap<(DocUri, Option<String>, Severity, String), Vec<Diagnostic>> = BTreeMap::new();
    for found in before.into_values().flatten() {
        old.entry(key(&found)).or_default().push(found);
    }
    for list in old.values_mut() {
        list.reverse();
    }
    for found in after.into_values().flatten() {
        match old.get_mut(&key(&found)).and_then(Vec::pop) {
            Some(_) => delta.unchanged.add(found.severity),
            None => delta.introduced.push(found),
        }
    }
    if comparison.wants_resolved {
        delta.resolved = old.into_values().flatten().collect();
    }
    sort(&mut delta.introduced);
    sort(&mut delta.resolved);
    Ok(delta)
}

/// Records whether a diagnostic is new.
pub(super) fn record(checks: &mut Checks<'_>, delta: &DiagnosticsDelta) {
    let left_out = match delta.files_left_out {
        0 => String::new(),
        more => format!(", {more} more files that could be affected were not"),
    };
    let compared = format!("{} compared{left_out}", super::planned::files(delta.files_checked as usize));
    if delta.introduced.is_empty() {
        checks.pass(CheckName::Diagnostics, format!("no new diagnostic; {compared}"));
    } else {
        let places = delta.introduced.iter().map(|found| found.at.clone()).collect();
        let first = &delta.introduced[0].message.lines().next().unwrap_or_default().to_owned();
        let detail =
            format!("new diagnostics: {}, the first is: {first}; {compared}", delta.introduced.len());
        checks.fail(CheckName::Diagnostics, detail, places);
    }
}

async fn diagnostics<'p>(
    asking: &Asking<'_>,
    files: &dyn Files,
    places: &Places<'_>,
    paths: impl Iterator<Item = &'p AbsPath>,
) -> Result<Found, Failure> {
    let paths: Vec<&AbsPath> = paths.collect();
    let mut all = BTreeMap::new();
    for (number, window) in paths.chunks(WINDOW).enumerate() {
        asking.settings.progress.step(&format!("checked {} of {} files", number * WINDOW, paths.len()));
        let mut pulls = Vec::new();
        for path in window {
            let Ok(document) = files.read(path) else { continue };
            let for_long = asking.is_open(path);
            asking.server.open(&document)?;
            pulls.push((*path, for_long, asking.questions().diagnostics(path)));
        }
        for (path, for_long, pull) in pulls {
            let found = pull.await?;
            // What is greyed out is no complaint.
            let told = found.items.iter().map(|item| diagnose::diagnostic(places, path, item));
            all.insert(path.clone(), told.filter(|item| item.severity > Severity::Hint).collect());
            if !for_long {
                asking.server.release(path)?;
            }
        }
    }
    Ok(all)
}

/// A text in which a name is another one wherever it stands as a whole word.
fn replace_word(text: &str, old: &str, new: &str) -> String {
    let is_word = |c: char| c == '_' || unicode_ident::is_xid_continue(c);
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for (at, _) in text.match_indices(old) {
        let before = text[..at].chars().next_back();
        let after = text[at + old.len()..].chars().next();
        if at >= from && !before.is_some_and(is_word) && !after.is_some_and(is_word) {
            out.push_str(&text[from..at]);
            out.push_str(new);
            from = at + old.len();
        }
    }
    out.push_str(&text[from..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_words_are_replaced() {
        assert_eq!(replace_word("\"get\" of get_x, get", "get", "fetch"), "\"fetch\" of get_x, fetch");
        assert_eq!(replace_word("aa", "a", "b"), "aa");
    }
}
