//! The files that an edit can have consequences in.

use std::collections::BTreeSet;

use crate::edit::Plan;
use crate::orchestrator::ask::Asking;
use crate::orchestrator::blocking;
use crate::orchestrator::failure::Failure;
use crate::path::AbsPath;
use crate::resolve::hierarchy::imports_any;
use crate::workspace::parallel::parallel_map;

/// The most files that are compared besides the edited ones. Each of them is checked by the server twice.
const MOST: usize = 120;

/// How often importers of importers are looked for, through packages that hand names on.
const ROUNDS: usize = 3;

/// Files of which the diagnostics are compared.
pub(in crate::orchestrator) struct Affected {
    /// The edited files that are Python, under the names that they will have, and the others; each part in order.
    pub(in crate::orchestrator) files: Vec<AbsPath>,
    /// How many more there are.
    pub(in crate::orchestrator) left_out: usize,
}

/// The files that an edit can have consequences in: the edited ones, those in which one of the words stands, those that import
/// an edited one.
pub(in crate::orchestrator) async fn affected(
    asking: &Asking<'_>,
    plan: &Plan,
    words: &[&str],
) -> Result<Affected, Failure> {
    let ground = asking.state.ground.clone();
    let root = ground.snapshot.root();
    let edited: Vec<AbsPath> = plan
        .changes()
        .iter()
        .filter(|change| change.path.is_python() && change.after.is_some())
        .map(|change| root.join(change.path.as_str()))
        .collect();
    let touched: Vec<AbsPath> =
        plan.paths().filter(|path| path.is_python()).map(|path| root.join(path.as_str())).collect();
    let threads = asking.settings.threads;
    let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
    let ground = ground.clone();
    let all = blocking(move || {
        let files = crate::workspace::files::DiskFiles::new();
        let snapshot = &ground.snapshot;
        let with = |word: &str| {
            snapshot
                .files_with_word(word, threads)
                .into_iter()
                .map(|path| snapshot.absolute(&path))
                .collect::<Vec<_>>()
        };
        let mut order: Vec<AbsPath> = Vec::new();
        if let Some(first) = words.first() {
            order.extend(with(first));
        }
        let mut known: BTreeSet<AbsPath> = touched.iter().cloned().collect();
        let mut modules = touched;
        for _ in 0..ROUNDS {
            let mut candidates = BTreeSet::new();
            for module in &modules {
                let name = ground.roots.name_of(module).unwrap_or_default();
                candidates.extend(with(name.rsplit('.').next().unwrap_or_default()));
            }
            let candidates: Vec<AbsPath> =
                candidates.into_iter().filter(|path| !known.contains(path)).collect();
            let imports =
                parallel_map(&candidates, threads, |path| imports_any(&files, &ground.roots, path, &modules));
            let found: Vec<AbsPath> = candidates
                .into_iter()
                .zip(imports)
                .filter(|(_, imports)| *imports)
                .map(|(path, _)| path)
                .collect();
            known.extend(found.iter().cloned());
            order.extend(found.iter().cloned());
            // A package hands on what it imports.
            modules = found.into_iter().filter(|path| path.file_name().starts_with("__init__.py")).collect();
            if modules.is_empty() || order.len() > 4 * MOST {
                break;
            }
        }
        for word in words.iter().skip(1) {
            order.extend(with(word));
        }
        order
    });
    let mut seen: BTreeSet<AbsPath> = plan.paths().map(|path| root.join(path.as_str())).collect();
    let others: Vec<AbsPath> = all.await?.into_iter().filter(|path| seen.insert(path.clone())).collect();
    let left_out = others.len().saturating_sub(MOST);
    let mut others: Vec<AbsPath> = others.into_iter().take(MOST).collect();
    others.sort();
    Ok(Affected { files: edited.into_iter().chain(others).collect(), left_out })
}
