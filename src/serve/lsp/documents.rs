//! The documents that a client has open. Their text is the client's, whatever is on the disk.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr as _;
use std::sync::Arc;

use lsp_types::Uri;

use crate::engine::UnsavedTexts;
use crate::path::{AbsPath, FileUri, WorkspacePath};
use crate::text::{ColumnUnit, LineIndex, Position, decode_source};
use crate::workspace::files::{canonical, read_bytes};
use crate::workspace::scripts::{is_code, may_be_code};

/// An open document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ClientDocument {
    /// As the client spells it.
    pub(super) uri: Uri,
    pub(super) version: i32,
    pub(super) text: Arc<str>,
}

impl ClientDocument {
    /// Applies a change: another text, or, although the server asks for whole texts, another part of it. A position
    /// beyond the end is the end, as in the protocol.
    pub(super) fn change(&mut self, change: lsp_types::TextDocumentContentChangeEvent, unit: ColumnUnit) {
        let Some(range) = change.range else {
            self.text = change.text.into();
            return;
        };
        let lines = LineIndex::new(&self.text);
        let offset = |at: lsp_types::Position| {
            let at = Position::new(at.line, at.character);
            lines.offset(&self.text, at, unit).unwrap_or(self.text.len())
        };
        let start = offset(range.start);
        let end = offset(range.end).max(start);
        self.text = [&self.text[..start], &change.text, &self.text[end..]].concat().into();
    }
}

/// How a client spells paths. It may have reached the workspace, or a document, through symbolic links; the engine knows the
/// workspace by its real path.
#[derive(Debug, Clone)]
pub(super) struct ClientPaths {
    /// The real path of the workspace.
    root: AbsPath,
    /// The folder that the client named, and its real path, if they differ.
    folder: Option<(AbsPath, AbsPath)>,
}

impl ClientPaths {
    /// Of the folder that a client named. Blocking.
    pub(super) fn new(root: &AbsPath, folder: Option<AbsPath>) -> Self {
        let folder = folder.map(|folder| (canonical(&folder), folder));
        let folder = folder.filter(|(real, spelled)| real != spelled).map(|(real, spelled)| (spelled, real));
        Self { root: root.clone(), folder }
    }

    /// The path by which the engine knows a document; its own where it is in no workspace. Blocking.
    pub(super) fn real(&self, path: &AbsPath) -> AbsPath {
        if path.strip_prefix(&self.root).is_some() {
            return path.clone();
        }
        if let Some((spelled, real)) = &self.folder
            && let Some(inside) = path.strip_prefix(spelled)
        {
            return real.join(inside);
        }
        // A new document is not on the disk, its folder is.
        let in_real_folder =
            || path.as_str().rsplit_once('/').map(|(_, name)| canonical(&path.parent()).join(name));
        [Some(canonical(path)), in_real_folder()]
            .into_iter()
            .flatten()
            .find(|real| real.strip_prefix(&self.root).is_some())
            .unwrap_or_else(|| path.clone())
    }

    /// The URI of a path as the client spells it.
    pub(super) fn uri(&self, path: &AbsPath, open: &OpenDocuments) -> Option<Uri> {
        if let Some(document) = open.get(path) {
            return Some(document.uri.clone());
        }
        let spelled =
            self.folder.as_ref().and_then(|(spelled, real)| Some(spelled.join(path.strip_prefix(real)?)));
        Uri::from_str(FileUri::from_path(spelled.as_ref().unwrap_or(path)).as_str()).ok()
    }
}

/// The open documents at one moment, by their URIs, with the paths by which the engine knows them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct OpenDocuments(BTreeMap<String, (AbsPath, ClientDocument)>);

impl OpenDocuments {
    pub(super) fn set(&mut self, path: AbsPath, document: ClientDocument) {
        self.0.insert(document.uri.as_str().to_owned(), (path, document));
    }

    /// A document, as its client spells it.
    pub(super) fn as_spelled(&self, uri: &Uri) -> Option<&ClientDocument> {
        self.0.get(uri.as_str()).map(|(_, document)| document)
    }

    pub(super) fn close(&mut self, uri: &Uri) {
        self.0.remove(uri.as_str());
    }

    /// The document that has a path; the first by its URI if a client has opened it under several.
    pub(super) fn get(&self, path: &AbsPath) -> Option<&ClientDocument> {
        self.of(path).next()
    }

    /// The documents that have a path, by their URIs: a client may reach a file through symbolic links.
    pub(super) fn of(&self, path: &AbsPath) -> impl Iterator<Item = &ClientDocument> {
        self.iter().filter(move |(known, _)| *known == path).map(|(_, document)| document)
    }

    /// A file that is open with two texts.
    pub(super) fn with_two_texts(&self) -> Option<&AbsPath> {
        let has_another = |(path, document): &(&AbsPath, &ClientDocument)| {
            self.get(path).is_some_and(|first| first.text != document.text)
        };
        self.iter().find(has_another).map(|(path, _)| path)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&AbsPath, &ClientDocument)> {
        self.0.values().map(|(path, document)| (path, document))
    }

    /// The texts of Python files of the workspace that differ from what is on the disk. Blocking.
    pub(super) fn unsaved(&self, root: &AbsPath) -> UnsavedTexts {
        let inside = |path: &AbsPath| path.strip_prefix(root).and_then(WorkspacePath::new);
        let is_code = |path: &WorkspacePath, text: &str| {
            // It may be a script on the disk only.
            let was_code =
                || read_bytes(&root.join(path.as_str())).is_ok_and(|saved| is_code(path.as_str(), &saved));
            may_be_code(path) && (is_code(path.as_str(), text.as_bytes()) || was_code())
        };
        self.iter()
            .filter_map(|(path, open)| {
                Some((path, inside(path).filter(|path| is_code(path, &open.text))?, open))
            })
            .filter(|(path, _, open)| saved_as(path, &open.text).is_none())
            .map(|(_, inside, open)| (inside, open.text.clone()))
            .collect()
    }

    /// The saved documents whose client does not show their byte order mark, and counts columns without it. Blocking.
    pub(super) fn without_mark(&self) -> BTreeSet<AbsPath> {
        let is_without = |(path, open): &(&AbsPath, &ClientDocument)| {
            saved_as(path, &open.text) == Some(SavedText::WithMark)
        };
        self.iter().filter(is_without).map(|(path, _)| path.clone()).collect()
    }
}

/// How the text of a document is on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SavedText {
    Same,
    /// With a byte order mark before it.
    WithMark,
}

/// How a file has this text; `None` if it has another one.
fn saved_as(path: &AbsPath, text: &str) -> Option<SavedText> {
    let saved = decode_source(read_bytes(path).ok()?).text;
    if saved == text {
        return Some(SavedText::Same);
    }
    (saved.strip_prefix('\u{feff}') == Some(text)).then_some(SavedText::WithMark)
}

/// The columns that a byte order mark takes.
pub(super) const fn width_of_mark(unit: ColumnUnit) -> u32 {
    match unit {
        ColumnUnit::Utf8 => 3,
        _ => 1,
    }
}
