//! The files whose diagnostics an edit can affect.

use std::collections::BTreeSet;

use crate::edit::EditPlan;
use crate::orchestrator::ask::RequestContext;
use crate::orchestrator::blocking;
use crate::orchestrator::failure::Failure;
use crate::path::AbsPath;
use crate::resolve::hierarchy::imports_any;
use crate::workspace::files::DiskFiles;
use crate::workspace::parallel::parallel_map;

/// How many files to compare besides the edited ones. The server checks each of them twice.
const MAX_OTHER_FILES: usize = 120;

/// How many levels of importers to follow, through packages that re-export names.
const MAX_IMPORT_DEPTH: usize = 3;

/// The files whose diagnostics are compared.
pub(in crate::orchestrator) struct AffectedFiles {
    /// The edited Python files, under their new names, then the others; each group in order.
    pub(in crate::orchestrator) files: Vec<AbsPath>,
    /// How many more files could be affected.
    pub(in crate::orchestrator) left_out: usize,
}

/// The files that an edit can affect: the edited ones, those that import an edited one, those that contain one of the
/// words. If there are too many, they are taken in this order: importers that contain the first word, other
/// importers, other files.
pub(in crate::orchestrator) async fn affected(
    cx: &RequestContext<'_>,
    plan: &EditPlan,
    words: &[&str],
) -> Result<AffectedFiles, Failure> {
    let inputs = cx.state.inputs.clone();
    let root = inputs.snapshot.root();
    let edited: Vec<AbsPath> = plan
        .changes()
        .iter()
        .filter(|change| change.path.is_python() && change.after.is_some())
        .map(|change| root.join(change.path.as_str()))
        .collect();
    let touched: Vec<AbsPath> =
        plan.paths().filter(|path| path.is_python()).map(|path| root.join(path.as_str())).collect();
    let threads = cx.settings.threads;
    let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
    let (inputs, tape) = (inputs.clone(), cx.state.tape.clone());
    let all = blocking(move || {
        let files = DiskFiles::on(tape.clone());
        let snapshot = &inputs.snapshot;
        let with = |word: &str| {
            snapshot
                .files_with_word(word, threads, &tape)
                .into_iter()
                .map(|path| snapshot.absolute(&path))
                .collect::<Vec<_>>()
        };
        let containing: Vec<Vec<AbsPath>> = words.iter().map(|word| with(word)).collect();
        let mut importers: Vec<AbsPath> = Vec::new();
        let mut known: BTreeSet<AbsPath> = touched.iter().cloned().collect();
        let mut modules = touched;
        for _ in 0..MAX_IMPORT_DEPTH {
            let mut candidates = BTreeSet::new();
            for module in &modules {
                let name = inputs.roots.name_of(module).unwrap_or_default();
                candidates.extend(with(name.rsplit('.').next().unwrap_or_default()));
            }
            let candidates: Vec<AbsPath> =
                candidates.into_iter().filter(|path| !known.contains(path)).collect();
            let imports =
                parallel_map(&candidates, threads, |path| imports_any(&files, &inputs.roots, path, &modules));
            let found: Vec<AbsPath> = candidates
                .into_iter()
                .zip(imports)
                .filter(|(_, imports)| *imports)
                .map(|(path, _)| path)
                .collect();
            known.extend(found.iter().cloned());
            importers.extend(found.iter().cloned());
            // A package re-exports what it imports.
            modules = found.into_iter().filter(|path| path.file_name().starts_with("__init__.py")).collect();
            if modules.is_empty() || importers.len() > 4 * MAX_OTHER_FILES {
                break;
            }
        }
        rank(importers, containing)
    });
    let mut seen: BTreeSet<AbsPath> = plan.paths().map(|path| root.join(path.as_str())).collect();
    let others: Vec<AbsPath> = all.await?.into_iter().filter(|path| seen.insert(path.clone())).collect();
    let left_out = others.len().saturating_sub(MAX_OTHER_FILES);
    let mut others: Vec<AbsPath> = others.into_iter().take(MAX_OTHER_FILES).collect();
    others.sort();
    Ok(AffectedFiles { files: edited.into_iter().chain(others).collect(), left_out })
}

/// Sorts files by importance: importers first, among them those with the first word, then files with earlier words.
fn rank(importers: Vec<AbsPath>, containing: Vec<Vec<AbsPath>>) -> Vec<AbsPath> {
    let first: BTreeSet<&AbsPath> = containing.first().into_iter().flatten().collect();
    let (mut order, others): (Vec<AbsPath>, Vec<AbsPath>) =
        importers.into_iter().partition(|path| first.contains(path));
    order.extend(others);
    order.extend(containing.iter().flatten().cloned());
    let mut seen = BTreeSet::new();
    order.retain(|path| seen.insert(path.clone()));
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn importers_come_first() {
        let at = |names: &str| -> Vec<AbsPath> {
            names.split_whitespace().map(|name| AbsPath::new(format!("/w/{name}")).unwrap()).collect()
        };
        let ranked = rank(at("a m z"), vec![at("b m y z"), at("a c m")]);
        assert_eq!(ranked, at("m z a b y c"));
    }
}
