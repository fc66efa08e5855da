//! Which names are renamed: of each kind those that most files mention.

use std::collections::{BTreeMap, BTreeSet};

use lanser::path::AbsPath;
use lanser::resolve::index::Index;
use lanser::tape::Tape;
use lanser::text::{ColumnUnit, LineIndex};
use lanser::workspace::files::read_text;
use lanser::workspace::snapshot::{Snapshot, Trust};

/// A name to be renamed.
pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) kind: &'static str,
    pub(crate) selector: String,
    /// How many files mention the name.
    pub(crate) files: usize,
}

/// The names of a folder, as many of each kind.
pub(crate) fn targets(root: &AbsPath, names: usize) -> Vec<Target> {
    let snapshot = Snapshot::take(root, None, Trust::Stat, 2);
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
        let (line, column) =
            LineIndex::new(&text).display(&text, entry.offset as usize, ColumnUnit::Codepoint);
        let selector = format!("{path}:{line}:{column}");
        by_kind.entry(kind).or_default().push(Target { name: name.to_owned(), kind, selector, files });
    }
    for list in by_kind.values_mut() {
        list.sort_by(|a, b| b.files.cmp(&a.files).then_with(|| a.selector.cmp(&b.selector)));
    }
    // One of each kind after the other, until there are enough.
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
