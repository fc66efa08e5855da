//! How an edit changes diagnostics: a comparison as a multiset of file, rule, severity and message, so that those that only moved do
//! not count as new.

use std::collections::BTreeMap;

use super::speculate::Comparison;
use crate::edit::EditPlan;
use crate::engine::context::RequestContext;
use crate::engine::reward::DiagnosticsByFile;
use crate::model::analyzer::DiagnosticSource;
use crate::model::facts::{Counts, Diagnostic};
use crate::model::request::Severity;
use crate::path::{AbsPath, DocUri};
use crate::text::lines_without_notes;
use crate::text::names::replace_word;

/// How the diagnostics above the severity of hints change. Hints only gray code out.
#[derive(Default)]
pub(super) struct DiagnosticChanges {
    pub(super) introduced: Vec<Diagnostic>,
    pub(super) resolved: Vec<Diagnostic>,
    pub(super) unchanged: Counts,
}

impl DiagnosticChanges {
    /// Compares the files that remain; those that the edit moves remain under their new names.
    pub(super) fn of(
        cx: &RequestContext<'_>,
        comparison: &Comparison<'_>,
        before: DiagnosticsByFile,
        after: DiagnosticsByFile,
        is_removed: impl Fn(&AbsPath) -> bool,
    ) -> Self {
        let moved = moved_uris(comparison.plan);
        let is_gone = |path: &AbsPath| is_removed(path) && !moved.contains_key(&cx.locations.paths.uri(path));
        // A message may contain the old name before and the new one after, or the old name both times, for another symbol.
        let key = |found: &Diagnostic| {
            let renamed = comparison.renamed.iter();
            let message = lines_without_notes(&found.message).collect::<Vec<_>>().join("\n");
            let message = renamed.fold(message, |message, (old, new)| replace_word(&message, old, new));
            let uri = moved.get(&found.uri).unwrap_or(&found.uri).clone();
            let source = found.source.filter(|source| *source != DiagnosticSource::Lsp);
            (uri, source, found.rule.clone(), found.severity, message)
        };
        let mut old: BTreeMap<DiagnosticKey, Vec<Diagnostic>> = BTreeMap::new();
        for found in without_hints(before, is_gone) {
            old.entry(key(&found)).or_default().push(found);
        }
        for list in old.values_mut() {
            list.reverse();
        }
        let mut changes = Self::default();
        for found in without_hints(after, &is_removed) {
            match old.get_mut(&key(&found)).and_then(Vec::pop) {
                Some(_) => changes.unchanged.add(found.severity),
                None => changes.introduced.push(found),
            }
        }
        changes.resolved = old.into_values().flatten().collect();
        changes
    }
}

/// What makes two diagnostics the same before and after an edit.
type DiagnosticKey = (DocUri, Option<DiagnosticSource>, Option<String>, Severity, String);

/// The files that the edit moves, with their new names.
fn moved_uris(plan: &EditPlan) -> BTreeMap<DocUri, DocUri> {
    let moved = plan.changes().iter().filter_map(|change| {
        Some((DocUri::Workspace(change.from.clone()?), DocUri::Workspace(change.path.clone())))
    });
    moved.collect()
}

/// The diagnostics above the severity of hints, of the files that remain.
fn without_hints(
    found: DiagnosticsByFile,
    is_gone: impl Fn(&AbsPath) -> bool,
) -> impl Iterator<Item = Diagnostic> {
    let remaining = found.into_iter().filter(move |(path, _)| !is_gone(path));
    remaining.flat_map(|(_, found)| found).filter(|found| found.severity > Severity::Hint)
}
