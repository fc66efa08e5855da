//! Warns about unresolved imports in the files that an answer is about: whatever comes from them has no type.

use std::collections::{BTreeMap, BTreeSet};

use super::request_state::{RequestState, SelectorOutcome};
use crate::model::facts::Facts;
use crate::path::AbsPath;
use crate::python::outline::{BranchKind, Imported, Outline};
use crate::python::stdlib::is_stdlib;
use crate::workspace::files::Files as _;

/// At most this many files are searched.
const MAX_FILES: usize = 200;

/// At most this many modules are named.
const MAX_NAMED: usize = 5;

/// A warning about unresolved imports of the target's file and of the files with unresolved occurrences.
pub(super) fn warning(state: &RequestState, facts: &Facts) -> Option<String> {
    let mut files: BTreeSet<AbsPath> = BTreeSet::new();
    let open = facts.completeness.iter().flat_map(|verdict| &verdict.unresolved.items);
    files.extend(open.filter_map(|item| state.inputs.paths.absolute(&item.uri)).take(MAX_FILES));
    if let Some(SelectorOutcome::Found(target)) = &state.resolved {
        files.insert(target.document.path.clone());
    }
    let mut missing: BTreeMap<String, usize> = BTreeMap::new();
    for path in files.iter().filter(|path| state.is_in_workspace(path)) {
        let Ok(document) = state.files.read(path) else { continue };
        let outline = Outline::parse(&document.text);
        let mut found = BTreeSet::new();
        for import in &outline.imports {
            // An import in a `try` statement may fail by design.
            let may_fail = outline
                .branch_chain(import.branch)
                .any(|branch| matches!(branch.kind, BranchKind::Try | BranchKind::Except));
            if may_fail || import.level > 0 {
                continue;
            }
            let name = match import.what {
                Imported::Top => import.module.split('.').next().unwrap_or_default(),
                _ => &import.module,
            };
            let is_found = |name: &str| state.inputs.roots.import(&state.files, name, path).is_some();
            if !is_stdlib(name) && !is_found(name) {
                // What is missing of a package that is there is a part of it.
                let top = name.split('.').next().unwrap_or_default();
                found.insert(if is_found(top) { name } else { top }.to_owned());
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
    let named: Vec<String> = missing.into_keys().take(MAX_NAMED).collect();
    let more = if count > MAX_NAMED { format!(" and {} more", count - MAX_NAMED) } else { String::new() };
    let hint = if state.inputs.environment.python.as_ref().is_some_and(|python| python.venv) {
        ""
    } else {
        " (no virtual environment is used; name one with --python or LANSER_PYTHON)"
    };
    Some(format!("imports cannot be resolved: {}{more}{hint}", named.join(", ")))
}
