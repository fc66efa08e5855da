//! The files that an edit can have consequences in.

use std::collections::BTreeSet;

use crate::edit::Plan;
use crate::orchestrator::ask::Asking;
use crate::orchestrator::blocking;
use crate::orchestrator::failure::Failure;
use crate::path::AbsPath;
use crate::resolve::hierarchy::imports_any;
use crate::workspace::files::DiskFiles;
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

/// The files that an edit can have consequences in: the edited ones, those that import an edited one, those in which one of the
/// words stands. In this order they count when there are too many: of those that import, first those with the first word.
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
    let (ground, tape) = (ground.clone(), asking.state.tape.clone());
    let all = blocking(move || {
        let files = DiskFiles::on(tape.clone());
        let snapshot = &ground.snapshot;
        let with = |word: &str| {
            snapshot
                .files_with_word(word, threads, &tape)
                .into_iter()
                .map(|path| snapshot.absolute(&path))
                .collect::<Vec<_>>()
        };
        let holders: Vec<Vec<AbsPath>> = words.iter().map(|word| with(word)).collect();
        let mut importers: Vec<AbsPath> = Vec::new();
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
            importers.extend(found.iter().cloned());
            // A package hands on what it imports.
            modules = found.into_iter().filter(|path| path.file_name().starts_with("__init__.py")).collect();
            if modules.is_empty() || importers.len() > 4 * MOST {
                break;
            }
        }
        ranked(importers, holders)
    });
    let mut seen: BTreeSet<AbsPath> = plan.paths().map(|path| root.join(path.as_str())).collect();
    let others: Vec<AbsPath> = all.await?.into_iter().filter(|path| seen.insert(path.clone())).collect();
    let left_out = others.len().saturating_sub(MOST);
    let mut others: Vec<AbsPath> = others.into_iter().take(MOST).collect();
    others.sort();
    Ok(Affected { files: edited.into_iter().chain(others).collect(), left_out })
}

/// Files in the order in which they count: importers before others, and those that hold an earlier word first.
fn ranked(importers: Vec<AbsPath>, holders: Vec<Vec<AbsPath>>) -> Vec<AbsPath> {
    let first: BTreeSet<&AbsPath> = holders.first().into_iter().flatten().collect();
    let (mut order, others): (Vec<AbsPath>, Vec<AbsPath>) =
        importers.into_iter().partition(|path| first.contains(path));
    order.extend(others);
    order.extend(holders.iter().flatten().cloned());
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
        let ranked = ranked(at("a m z"), vec![at("b m y z"), at("a c m")]);
        assert_eq!(ranked, at("m z a b y c"));
    }
}
