//! What the server would find wrong after an edit, without making it: the edited texts are shown to it as open documents.
//!
//! Diagnostics are compared as a multiset of file, rule, severity and message, so that what only moved is not new. A server
//! that was shown another set of imports or other files is not asked again afterwards: what it learned of them, in which
//! order, it cannot forget.

use std::collections::{BTreeMap, BTreeSet};
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
use crate::orchestrator::reward::{self, Found, Shown};
use crate::path::{AbsPath, DocUri};
use crate::resolve::outline::Outline;
use crate::reward::Measured;
use crate::workspace::files::{DiskFiles, Document, FileKind, Files, ReadError};

/// How many files are open and asked about at a time.
const WINDOW: usize = 4;

/// The files as they would be.
pub(in crate::orchestrator) struct Overlay<'d> {
    disk: &'d DiskFiles,
    /// What would be another content; nothing for a file that goes.
    over: BTreeMap<AbsPath, Option<Arc<Document>>>,
}

impl<'d> Overlay<'d> {
    pub(in crate::orchestrator) fn new(asking: &'d Asking<'_>, plan: &Plan) -> Self {
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

/// What the server says of the edited texts.
pub(in crate::orchestrator) struct After {
    pub(in crate::orchestrator) found: Found,
    /// The same for files that hide more than before, with that taken away.
    pub(in crate::orchestrator) bare: Found,
}

/// Shows the server the edited texts. What goes is shown empty, since no document can be shown as gone.
pub(super) fn show(asking: &Asking<'_>, overlay: &Overlay<'_>) -> Result<(), Failure> {
    if !present(asking, overlay)? {
        asking.server.retire();
    }
    Ok(())
}

/// The same, telling whether every file imports what it imported.
pub(in crate::orchestrator) fn present(asking: &Asking<'_>, overlay: &Overlay<'_>) -> Result<bool, Failure> {
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
            None => asking.server.open(&Arc::new(Document::new(path.clone(), Vec::new())))?,
        }
    }
    Ok(imports_stay)
}

/// Which modules a text imports, in order.
fn imports(text: &str) -> Vec<(usize, String)> {
    let outline = Outline::parse(text);
    outline.imports.into_iter().map(|import| (import.level, import.module)).collect()
}

/// Shows the server the files as they are.
pub(in crate::orchestrator) fn hide(asking: &Asking<'_>, overlay: &Overlay<'_>) -> Result<(), Failure> {
    for (path, _) in overlay.python() {
        match asking.state.files.read(path) {
            Ok(document) => asking.server.open(&document)?,
            Err(_) => asking.server.release(path)?,
        }
    }
    Ok(())
}

/// What is compared.
pub(in crate::orchestrator) struct Comparison<'c> {
    pub(in crate::orchestrator) plan: &'c Plan,
    pub(in crate::orchestrator) overlay: &'c Overlay<'c>,
    pub(in crate::orchestrator) affected: &'c Affected,
    /// The old name and the new one, which messages tell too.
    pub(in crate::orchestrator) renamed: Option<(&'c str, &'c str)>,
    /// Whether it is told what the edit ends: then every file is asked about on both sides.
    pub(in crate::orchestrator) wants_resolved: bool,
}

/// What the server finds wrong in the affected files while it is shown the edited texts.
pub(in crate::orchestrator) async fn after(
    asking: &Asking<'_>,
    comparison: &Comparison<'_>,
) -> Result<After, Failure> {
    let shown = Places {
        state: asking.state,
        files: comparison.overlay,
        paths: asking.places.paths,
        server_unit: asking.places.server_unit,
        io_unit: asking.places.io_unit,
        dual: None,
    };
    let found = diagnostics(asking, comparison.overlay, &shown, comparison.affected.files.iter()).await?;
    let bare = bare(asking, comparison.overlay, &shown).await?;
    Ok(After { found, bare })
}

/// What the server finds in edited files when it is shown them without what they hide and did not hide before.
pub(in crate::orchestrator) async fn bare(
    asking: &Asking<'_>,
    overlay: &Overlay<'_>,
    shown: &Places<'_>,
) -> Result<Found, Failure> {
    let before = overlay.python().filter_map(|(path, _)| asking.state.files.read(path).ok());
    let after = overlay.python().filter_map(|(_, document)| document);
    let hidden = reward::hidden_by(before, after);
    let mut found = Found::new();
    for (document, spans) in &hidden {
        asking.server.open(&Arc::new(reward::without(document, spans)))?;
        let pull = asking.questions().diagnostics(&document.path);
        let told = pull.await?;
        let items = told.items.iter().map(|item| diagnose::diagnostic(shown, &document.path, item));
        found.insert(document.path.clone(), items.collect());
        asking.server.open(document)?;
    }
    Ok(found)
}

/// How many types the edit makes the server forget, while it is shown the edited texts.
pub(in crate::orchestrator) async fn types_lost(
    asking: &Asking<'_>,
    overlay: &Overlay<'_>,
) -> Result<u32, Failure> {
    let before: Vec<Arc<Document>> =
        overlay.python().filter_map(|(path, _)| asking.state.files.read(path).ok()).collect();
    let after: Vec<Arc<Document>> = overlay.python().filter_map(|(_, document)| document.cloned()).collect();
    reward::types_lost(asking, &before, &after).await
}

/// Compares with what it finds wrong now that it is shown the files as they are.
pub(super) async fn compare(
    asking: &Asking<'_>,
    comparison: &Comparison<'_>,
    after: After,
) -> Result<DiagnosticsDelta, Failure> {
    let After { found: mut after, bare } = after;
    let complains = |found: &Vec<Diagnostic>| found.iter().any(|item| item.severity > Severity::Hint);
    let matters = |path: &&AbsPath| comparison.wants_resolved || after.get(*path).is_some_and(complains);
    let known: Vec<&AbsPath> = comparison.affected.files.iter().filter(matters).collect();
    // What is not compared is no part of what is measured.
    let compared: Vec<AbsPath> = known.iter().map(|path| (*path).clone()).collect();
    let gone = reward::taken_away(asking, comparison.plan);
    let there = known.into_iter().chain(&gone).filter(|path| asking.state.files.kind(path) == FileKind::File);
    let before = diagnostics(asking, &asking.state.files, asking.places, there).await?;
    after.retain(|path, _| compared.contains(path));
    let shown = Shown {
        disk: &asking.state.files,
        overlay: comparison.overlay,
        before: &before,
        after: &after,
        bare: &bare,
        config_changed: reward::configuration_changed(&asking.state.ground, comparison.plan),
    };
    let ground = &*asking.state.ground;
    let mut judged = reward::of_edit((ground, ground), asking.places.server_unit, &shown);
    if judged.is_gain() {
        present(asking, comparison.overlay)?;
        judged.integrity.any_casts_added += types_lost(asking, comparison.overlay).await?;
        hide(asking, comparison.overlay)?;
    }
    asking.measured(Measured {
        before: Some(judged.before),
        after: judged.after,
        integrity: judged.integrity,
    });
    let before = without_hints(before, &gone);
    let after = without_hints(after, &gone);
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

/// The diagnostics that are complaints, of the files that stay. What is greyed out is none.
fn without_hints(found: Found, gone: &BTreeSet<AbsPath>) -> Found {
    let stays = found.into_iter().filter(|(path, _)| !gone.contains(path));
    let told =
        |found: Vec<Diagnostic>| found.into_iter().filter(|item| item.severity > Severity::Hint).collect();
    stays.map(|(path, found)| (path, told(found))).collect()
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

pub(in crate::orchestrator) async fn diagnostics<'p>(
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
            let told = found.items.iter().map(|item| diagnose::diagnostic(places, path, item));
            all.insert(path.clone(), told.collect());
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
