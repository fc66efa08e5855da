//! The documents that are open on the server, with their versions.
//!
//! For an open document the server uses the text that it was sent, not the file. Changes are sent as whole texts: a
//! server gains nothing from a diff, and a wrong one would go unnoticed.

use std::collections::BTreeMap;
use std::sync::Arc;

use lsp_types::notification::{
    DidChangeTextDocument, DidChangeWatchedFiles, DidCloseTextDocument, DidOpenTextDocument,
    Notification as _,
};
use lsp_types::{
    DidChangeTextDocumentParams, DidChangeWatchedFilesParams, DidCloseTextDocumentParams,
    DidOpenTextDocumentParams, FileChangeType, FileEvent, TextDocumentContentChangeEvent, TextDocumentItem,
    VersionedTextDocumentIdentifier,
};

use super::jsonrpc::Params;
use super::wire;
use crate::path::AbsPath;

/// How a file on disk changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangeKind {
    /// It was created.
    Created,
    /// Its content changed.
    Changed,
    /// It was deleted.
    Deleted,
}

/// A change of a file on disk.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileChange {
    /// The file.
    pub path: AbsPath,
    /// How it changed.
    pub kind: ChangeKind,
}

impl FileChange {
    /// Whether it makes the server enumerate its source files again.
    pub(super) fn affects_enumeration(&self) -> bool {
        let is_python = [".py", ".pyi"].into_iter().any(|suffix| self.path.as_str().ends_with(suffix));
        is_python && self.kind != ChangeKind::Changed
    }
}

/// The open documents.
#[derive(Debug, Default)]
pub(super) struct Documents {
    versions: BTreeMap<AbsPath, i32>,
}

/// The method and parameters of a notification.
pub(super) type OutgoingNotification = (&'static str, Params);

/// A text that may be shared with other owners.
pub type SharedText = Arc<dyn AsRef<str> + Send + Sync>;

impl Documents {
    /// Sets the text of a document; opens it if necessary.
    pub(super) fn open(&mut self, path: &AbsPath, text: SharedText) -> OutgoingNotification {
        if let Some(notification) = self.change(path, text.clone()) {
            return notification;
        }
        self.versions.insert(path.clone(), 1);
        let path = path.clone();
        let params = move || {
            let (language, text) = ("python".to_owned(), (*text).as_ref().to_owned());
            let text_document = TextDocumentItem::new(wire::uri(&path), language, 1, text);
            wire::value(DidOpenTextDocumentParams { text_document })
        };
        (DidOpenTextDocument::METHOD, Params::Lazy(Arc::new(params)))
    }

    /// Changes the text of an open document; `None` if it is not open.
    pub(super) fn change(&mut self, path: &AbsPath, text: SharedText) -> Option<OutgoingNotification> {
        let version = self.versions.get_mut(path)?;
        *version += 1;
        let (path, version) = (path.clone(), *version);
        let params = move || {
            let text = (*text).as_ref().to_owned();
            wire::value(DidChangeTextDocumentParams {
                text_document: VersionedTextDocumentIdentifier::new(wire::uri(&path), version),
                content_changes: vec![TextDocumentContentChangeEvent {
                    range: None,
                    range_length: None,
                    text,
                }],
            })
        };
        Some((DidChangeTextDocument::METHOD, Params::Lazy(Arc::new(params))))
    }

    /// Closes a document; `None` if it is not open.
    pub(super) fn close(&mut self, path: &AbsPath) -> Option<OutgoingNotification> {
        self.versions.remove(path)?;
        let text_document = wire::document(path);
        Some(wire::notification::<DidCloseTextDocument>(DidCloseTextDocumentParams { text_document }))
    }

    pub(super) fn paths(&self) -> Vec<AbsPath> {
        self.versions.keys().cloned().collect()
    }
}

/// The notification about changed files on disk.
pub(super) fn watched_files_changed(changes: &[FileChange]) -> OutgoingNotification {
    let event = |change: &FileChange| {
        let kind = match change.kind {
            ChangeKind::Created => FileChangeType::CREATED,
            ChangeKind::Changed => FileChangeType::CHANGED,
            ChangeKind::Deleted => FileChangeType::DELETED,
        };
        FileEvent::new(wire::uri(&change.path), kind)
    };
    let changes = changes.iter().map(event).collect();
    wire::notification::<DidChangeWatchedFiles>(DidChangeWatchedFilesParams { changes })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn text(text: &'static str) -> SharedText {
        Arc::new(text)
    }

    fn at(path: &str) -> AbsPath {
        AbsPath::new(path).unwrap()
    }

    #[test]
    fn versions_rise_while_a_document_is_open() {
        let mut documents = Documents::default();
        let path = at("/w/a b.py");
        assert_eq!(documents.change(&path, text("x")), None);
        assert_eq!(
            documents.open(&path, text("x")),
            (
                "textDocument/didOpen",
                json!({"textDocument": {
                    "uri": "file:///w/a%20b.py", "languageId": "python", "version": 1, "text": "x",
                }})
                .into()
            )
        );
        let changed = |version: i32, text: &str| {
            let document = json!({"uri": "file:///w/a%20b.py", "version": version});
            let params = json!({"textDocument": document, "contentChanges": [{"text": text}]});
            ("textDocument/didChange", Params::Value(params))
        };
        assert_eq!(documents.change(&path, text("y")), Some(changed(2, "y")));
        assert_eq!(documents.open(&path, text("z")), changed(3, "z"));
        assert_eq!(documents.paths(), vec![path.clone()]);
        assert_eq!(documents.close(&path).unwrap().0, "textDocument/didClose");
        assert_eq!(documents.close(&path), None);
        assert!(documents.paths().is_empty());
    }

    #[test]
    fn created_and_deleted_files_affect_enumeration() {
        let change = |path: &str, kind| FileChange { path: at(path), kind };
        assert!(change("/w/a.py", ChangeKind::Created).affects_enumeration());
        assert!(change("/w/a.pyi", ChangeKind::Deleted).affects_enumeration());
        assert!(!change("/w/a.py", ChangeKind::Changed).affects_enumeration());
        assert!(!change("/w/a.txt", ChangeKind::Created).affects_enumeration());
        let (_, params) = watched_files_changed(&[change("/w/a.py", ChangeKind::Deleted)]);
        assert_eq!(*params.value(), json!({"changes": [{"uri": "file:///w/a.py", "type": 3}]}));
    }
}
