//! Finds an old name in files other than Python: documentation, configuration. These are listed and never edited.

use std::collections::BTreeSet;

use crate::edit::target::of_uri;
use crate::engine::blocking::blocking;
use crate::engine::failure::Failure;
use crate::engine::request_state::RequestState;
use crate::engine::settings::Settings;
use crate::model::edits::{DocumentChange, TextEdit, WorkspaceEdit};
use crate::model::facts::{Occurrence, Residue};
use crate::path::{DocUri, WorkspacePath};
use crate::tape::IoKind;
use crate::workspace::text_search::find_in_text_files;

/// The kind of such an occurrence.
const KIND: &str = "document";

/// How many to list.
const MAX_LISTED: usize = 20;

/// The lines, counted from 1, that an edit changes in files other than Python.
fn edited_lines(state: &RequestState, edit: &WorkspaceEdit) -> BTreeSet<(WorkspacePath, usize)> {
    let root = state.inputs.snapshot.root();
    let mut lines = BTreeSet::new();
    let mut add = |uri: &str, edits: &[TextEdit]| {
        if let Some(path) = of_uri(root, uri).ok().filter(|path| !path.is_python()) {
            lines.extend(edits.iter().map(|edit| (path.clone(), edit.range.start.line as usize + 1)));
        }
    };
    for change in edit.document_changes.iter().flatten() {
        if let DocumentChange::Edit(edit) = change {
            add(&edit.text_document.uri, &edit.edits);
        }
    }
    edit.changes.iter().for_each(|(uri, edits)| add(uri, edits));
    lines
}

/// Removes the occurrences in other files.
pub(super) fn remove_documents(residue: &mut Residue) {
    residue.count -= residue.kinds.remove(KIND).unwrap_or_default();
    residue.items.retain(|item| item.kind != KIND);
}

/// Adds the occurrences in other files to those in Python files.
pub(super) async fn add_documents(
    settings: &Settings,
    state: &RequestState,
    residue: &mut Residue,
    name: &str,
    edit: &WorkspaceEdit,
) -> Result<(), Failure> {
    let (root, word) = (settings.root.clone(), name.to_owned());
    let tape = state.tape.clone();
    let find = move || {
        tape.query(IoKind::Index, &("document", &word), || find_in_text_files(&root, &word), Vec::new)
    };
    let mut found = blocking(find).await?;
    let edited = edited_lines(state, edit);
    // Scripts are searched as code.
    let code = state.inputs.snapshot.files();
    found.retain(|(path, line, _)| !code.contains_key(path) && !edited.contains(&(path.clone(), *line)));
    if found.is_empty() {
        return Ok(());
    }
    let count = u32::try_from(found.len()).unwrap_or(u32::MAX);
    residue.count += count;
    let kind = residue.kinds.entry(KIND.to_owned()).or_default();
    let listed = MAX_LISTED.saturating_sub(*kind as usize);
    *kind += count;
    for (path, line, column) in found.into_iter().take(listed) {
        let at = format!("{}@L{line}:C{column}", DocUri::Workspace(path));
        residue.items.push(Occurrence { at, kind: KIND.to_owned(), preview: None });
    }
    Ok(())
}
