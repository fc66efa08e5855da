//! Imports that cannot be resolved in the files that an answer is about: what comes from them has no type.

use std::collections::{BTreeMap, BTreeSet};

use super::state::{Outcomes, State};
use crate::model::facts::Facts;
use crate::path::AbsPath;
use crate::resolve::outline::{BranchKind, Imported, Outline};
use crate::workspace::files::Files as _;

/// The most files that are looked at.
const MAX_FILES: usize = 200;

/// The most modules that are named.
const NAMED: usize = 5;

/// A warning about the imports of the file that was asked about and of those with unresolved occurrences.
pub(super) fn unresolved(state: &State, facts: &Facts) -> Option<String> {
    let mut files: BTreeSet<AbsPath> = BTreeSet::new();
    let open = facts.completeness.iter().flat_map(|verdict| &verdict.unresolved.items);
    files.extend(open.filter_map(|item| state.ground.paths.absolute(&item.uri)).take(MAX_FILES));
    if let Some(Outcomes::Found(subject)) = &state.resolved {
        files.insert(subject.document.path.clone());
    }
    let mut missing: BTreeMap<String, usize> = BTreeMap::new();
    for path in files.iter().filter(|path| state.is_in_workspace(path)) {
        let Ok(document) = state.files.read(path) else { continue };
        let outline = Outline::parse(&document.text);
        let mut found = BTreeSet::new();
        for import in &outline.imports {
            // What is tried may be missing.
            let is_tried = outline
                .branch_chain(import.branch)
                .any(|branch| matches!(branch.kind, BranchKind::Try | BranchKind::Except));
            if is_tried || import.level > 0 {
                continue;
            }
            let name = match import.what {
                Imported::Top => import.module.split('.').next().unwrap_or_default(),
                _ => &import.module,
            };
            if state.ground.roots.import(&state.files, name, path).is_none() {
                found.insert(name.split('.').next().unwrap_or_default().to_owned());
            }
        }
        for name in found {
            *missing.entry(name).or_default() += 1;
        }
    }
    if missing.is_empty() {
        return None;
    }
    let count = missing.len();
    let named: Vec<String> = missing.into_keys().take(NAMED).collect();
    let more = if count > NAMED { format!(" and {} more", count - NAMED) } else { String::new() };
    let hint = if state.ground.environment.python.as_ref().is_some_and(|python| python.venv) {
        ""
    } else {
        " (no virtual environment is used; name one with --python)"
    };
    Some(format!("imports cannot be resolved: {}{more}{hint}", named.join(", ")))
}
