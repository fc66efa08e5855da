//! The edit of a rename: what the server proposes, the references that it leaves out, and what the caller adds.

use std::collections::BTreeMap;

use super::collision::Renaming;
use super::decisions::OpenPlace;
use crate::edit::target::of_uri;
use crate::edit::text::{Splice, splices};
use crate::engine::context::RequestContext;
use crate::lsp::LspLocation;
use crate::model::edits::{DocumentChange, TextDocumentEdit, TextEdit, VersionedDocument, WorkspaceEdit};
use crate::path::{AbsPath, FileUri};
use crate::workspace::files::Files as _;

/// Adds the references that the server left out of its edit: Pyright reports references in every file that it was
/// shown, and renames only in those that its configuration includes. Returns how many were added.
pub(super) fn with_references(
    cx: &RequestContext<'_>,
    edit: WorkspaceEdit,
    references: &[LspLocation],
    old: &str,
    new: &str,
) -> (WorkspaceEdit, usize) {
    let splices = splices_by_file(cx, &edit);
    let mut missing: BTreeMap<AbsPath, Vec<TextEdit>> = BTreeMap::new();
    for place in references.iter().filter(|place| cx.state.is_in_workspace(&place.path)) {
        let Ok(document) = cx.state.files.read(&place.path) else { continue };
        let offset = |position| document.lines.offset(&document.text, position, cx.locations.server_unit);
        let Some((start, end)) = offset(place.range.start).zip(offset(place.range.end)) else { continue };
        let has = |splice: &Splice| splice.span.start < end.max(start + 1) && start < splice.span.end;
        let known = splices.get(&place.path).is_some_and(|splices| splices.iter().any(has));
        if !known && document.text.get(start..end) == Some(old) {
            let range = place.range.into();
            let edits = missing.entry(place.path.clone()).or_default();
            let edit = TextEdit { range, new_text: new.to_owned(), annotation_id: None };
            if !edits.contains(&edit) {
                edits.push(edit);
            }
        }
    }
    let added = missing.values().map(Vec::len).sum();
    (with_edits(edit, missing), added)
}

/// Adds open places that the caller wants to be renamed.
pub(super) fn with_places(
    cx: &RequestContext<'_>,
    edit: WorkspaceEdit,
    places: &[OpenPlace],
    renaming: &Renaming<'_>,
) -> WorkspaceEdit {
    let mut more: BTreeMap<AbsPath, Vec<TextEdit>> = BTreeMap::new();
    let places = places.iter().filter(|place| !renaming.is_edited(&place.document.path, place.span.start));
    for OpenPlace { document, span, new_text, .. } in places {
        let range = document.lines.range(&document.text, span.clone(), cx.locations.server_unit).into();
        let is_plain = document.text[span.clone()] == *renaming.old;
        let new_text = match new_text {
            Some(text) => text.clone(),
            None if is_plain => renaming.new.to_owned(),
            None => renaming.mangled()[1].clone(),
        };
        let edits = more.entry(document.path.clone()).or_default();
        edits.push(TextEdit { range, new_text, annotation_id: None });
    }
    with_edits(edit, more)
}

/// Adds text edits.
pub(super) fn with_edits(mut edit: WorkspaceEdit, more: BTreeMap<AbsPath, Vec<TextEdit>>) -> WorkspaceEdit {
    for (path, edits) in more {
        let uri = FileUri::from_path(&path).as_str().to_owned();
        match &mut edit.document_changes {
            Some(changes) => {
                let text_document = VersionedDocument { uri, version: None };
                changes.push(DocumentChange::Edit(TextDocumentEdit { text_document, edits }));
            }
            None => edit.changes.entry(uri).or_default().extend(edits),
        }
    }
    edit
}

/// The edits by file, for files in the workspace.
pub(super) fn splices_by_file(
    cx: &RequestContext<'_>,
    edit: &WorkspaceEdit,
) -> BTreeMap<AbsPath, Vec<Splice>> {
    let root = cx.state.inputs.snapshot.root();
    let mut edits: BTreeMap<AbsPath, Vec<TextEdit>> = BTreeMap::new();
    let mut add = |uri: &str, of: &[TextEdit]| {
        if let Ok(path) = of_uri(root, uri) {
            edits.entry(root.join(path.as_str())).or_default().extend(of.iter().cloned());
        }
    };
    match &edit.document_changes {
        Some(changes) => changes.iter().for_each(|change| {
            if let DocumentChange::Edit(edit) = change {
                add(&edit.text_document.uri, &edit.edits);
            }
        }),
        None => edit.changes.iter().for_each(|(uri, edits)| add(uri, edits)),
    }
    let mut found = BTreeMap::new();
    for (path, edits) in edits {
        if let Ok(document) = cx.state.files.read(&path)
            && let Ok(splices) = splices(&document.text, &edits, cx.locations.server_unit)
        {
            found.insert(path, splices);
        }
    }
    found
}

/// The locations that the edit renames.
pub(super) fn edited_locations(
    cx: &RequestContext<'_>,
    splices: &BTreeMap<AbsPath, Vec<Splice>>,
) -> Vec<LspLocation> {
    let mut places = Vec::new();
    for (path, splices) in splices {
        let Ok(document) = cx.state.files.read(path) else { continue };
        places.extend(splices.iter().map(|splice| LspLocation {
            path: path.clone(),
            range: document.lines.range(&document.text, splice.span.clone(), cx.locations.server_unit),
        }));
    }
    places
}
