//! The documents that a client has open. Their text is the client's, whatever is on the disk.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::engine::UnsavedTexts;
use crate::path::{AbsPath, WorkspacePath};
use crate::text::decode_source;
use crate::workspace::files::read_bytes;

/// An open document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ClientDocument {
    pub(super) version: i32,
    pub(super) text: Arc<str>,
}

/// The open documents at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct OpenDocuments(BTreeMap<AbsPath, ClientDocument>);

impl OpenDocuments {
    pub(super) fn set(&mut self, path: AbsPath, document: ClientDocument) {
        self.0.insert(path, document);
    }

    pub(super) fn close(&mut self, path: &AbsPath) {
        self.0.remove(path);
    }

    pub(super) fn get(&self, path: &AbsPath) -> Option<&ClientDocument> {
        self.0.get(path)
    }

    /// The texts of Python files of the workspace that differ from what is on the disk. Blocking.
    pub(super) fn unsaved(&self, root: &AbsPath) -> UnsavedTexts {
        let inside = |path: &AbsPath| path.strip_prefix(root).and_then(WorkspacePath::new);
        self.0
            .iter()
            .filter_map(|(path, open)| Some((path, inside(path).filter(WorkspacePath::is_python)?, open)))
            .filter(|(path, _, open)| !is_saved(path, &open.text))
            .map(|(_, inside, open)| (inside, open.text.clone()))
            .collect()
    }
}

/// Whether a file has this text. Clients do not show a byte order mark.
pub(super) fn is_saved(path: &AbsPath, text: &str) -> bool {
    let Ok(bytes) = read_bytes(path) else { return false };
    let saved = decode_source(bytes).text;
    saved == text || saved.strip_prefix('\u{feff}') == Some(text)
}
