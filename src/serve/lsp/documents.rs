//! The documents that a client has open. Their text is the client's, whatever is on the disk.

use std::collections::BTreeMap;
use std::str::FromStr as _;
use std::sync::Arc;

use lsp_types::Uri;

use crate::engine::UnsavedTexts;
use crate::path::{AbsPath, FileUri, WorkspacePath};
use crate::text::decode_source;
use crate::workspace::files::{canonical, read_bytes};

/// An open document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ClientDocument {
    /// As the client spells it.
    pub(super) uri: Uri,
    pub(super) version: i32,
    pub(super) text: Arc<str>,
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

/// The open documents at one moment, by the paths by which the engine knows them.
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

    pub(super) fn paths(&self) -> impl Iterator<Item = &AbsPath> {
        self.0.keys()
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

/// Whether a file has this text. A client that does not show a byte order mark has another text, with other columns.
pub(super) fn is_saved(path: &AbsPath, text: &str) -> bool {
    read_bytes(path).is_ok_and(|bytes| decode_source(bytes).text == text)
}
