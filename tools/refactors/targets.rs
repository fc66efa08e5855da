//! Chooses the names to rename: of each kind those that most files mention.

use std::collections::{BTreeMap, BTreeSet};

use lanser::internal::path::AbsPath;
use lanser::internal::python::roles::keywords_of;
use lanser::internal::relocate::index::Index;
use lanser::internal::tape::Tape;
use lanser::internal::text::{ColumnUnit, LineIndex};
use lanser::internal::workspace::files::read_text;
use lanser::internal::workspace::snapshot::{ChangeDetection, Snapshot};

/// A name to be renamed.
pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) kind: &'static str,
    pub(crate) selector: String,
    /// The number of files that mention the name.
    pub(crate) files: usize,
}

/// The names of a folder that at most `up_to` files mention, equally many of each kind.
pub(crate) fn targets(root: &AbsPath, names: usize, up_to: usize) -> Vec<Target> {
    let snapshot = Snapshot::take(root, None, ChangeDetection::Stat, 2);
    let index = Index::of(&snapshot, 2);
    let mut mentioned: BTreeMap<String, usize> = BTreeMap::new();
    let mut by_kind: BTreeMap<&'static str, Vec<Target>> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for (path, entry) in index.iter() {
        let name = entry.name();
        let kind = entry.kind.as_str();
        let is_test = path.as_str().contains("test") || name.starts_with("test");
        if is_test || name.starts_with("__") || kind == "module" || kind == "import" {
            continue;
        }
        let files = *mentioned
            .entry(name.to_owned())
            .or_insert_with(|| snapshot.files_with_word(name, 2, &Tape::off()).len());
        if files < 2 || !seen.insert((kind, name.to_owned())) {
            continue;
        }
        let Some(text) = read_text(&snapshot.absolute(path)) else { continue };
        let lines = LineIndex::new(&text);
        let mut add = |name: &str, kind, offset: usize, files| {
            let (line, column) = lines.display(&text, offset, ColumnUnit::Codepoint);
            let selector = format!("{path}:{line}:{column}");
            by_kind.entry(kind).or_default().push(Target { name: name.to_owned(), kind, selector, files });
        };
        add(name, kind, entry.offset as usize, files);
        // Outlines do not contain parameters, so they are taken from the functions in them.
        for (name, span) in keywords_of(&text, entry.offset as usize).unwrap_or_default() {
            let is_new = !matches!(name.as_str(), "self" | "cls") && seen.insert(("parameter", name.clone()));
            if is_new {
                let files = snapshot.files_with_word(&name, 2, &Tape::off()).len();
                add(&name, "parameter", span.start, files);
            }
        }
    }
    for list in by_kind.values_mut() {
        list.retain(|target| target.files <= up_to);
        list.sort_by(|a, b| b.files.cmp(&a.files).then_with(|| a.selector.cmp(&b.selector)));
    }
    // One of each kind in turn, until there are enough.
    let mut queues: Vec<_> = by_kind.into_values().map(Vec::into_iter).collect();
    let mut chosen = Vec::new();
    while chosen.len() < names {
        let before = chosen.len();
        for queue in &mut queues {
            chosen.extend(queue.next());
        }
        if chosen.len() == before {
            break;
        }
    }
    chosen.truncate(names);
    chosen
}
