//! Which documents are open on the server, and in which version.
//!
//! For an open document the server believes what it was told and not the disk. Changes are sent as whole texts: a
//! server gains nothing from our difference, and a wrong one would be silent.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::jsonrpc::Params;
use crate::path::{AbsPath, FileUri};

/// What happened to a file on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangeKind {
    /// It is new.
    Created,
    /// Its content is another.
    Changed,
    /// It is gone.
    Deleted,
}

/// A file that is not what it was when the server last looked.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileChange {
    /// Which file.
    pub path: AbsPath,
    /// What happened to it.
    pub kind: ChangeKind,
}

impl FileChange {
    /// Whether the server has to enumerate its source files anew.
    pub(super) fn is_enumerated(&self) -> bool {
        let is_python = [".py", ".pyi"].into_iter().any(|suffix| self.path.as_str().ends_with(suffix));
        is_python && self.kind != ChangeKind::Changed
    }
}

/// The open documents.
#[derive(Debug, Default)]
pub(super) struct Documents {
    versions: BTreeMap<AbsPath, i32>,
}

/// A notification: its method and its parameters.
pub(super) type Note = (&'static str, Params);

/// A text, whoever holds it.
pub type Text = Arc<dyn AsRef<str> + Send + Sync>;

impl Documents {
    /// Makes `text` what the server believes of the document, which is opened if it is not.
    pub(super) fn open(&mut self, path: &AbsPath, text: Text) -> Note {
        if let Some(note) = self.change(path, text.clone()) {
            return note;
        }
        self.versions.insert(path.clone(), 1);
        let uri = FileUri::from_path(path);
        let made = move || {
            let text = (*text).as_ref();
            let document = json!({"uri": uri.as_str(), "languageId": "python", "version": 1, "text": text});
            json!({"textDocument": document})
        };
        ("textDocument/didOpen", Params::Made(Arc::new(made)))
    }

    /// A new text for an open document; `None` when it is not open.
    pub(super) fn change(&mut self, path: &AbsPath, text: Text) -> Option<Note> {
        let version = self.versions.get_mut(path)?;
        *version += 1;
        let document = json!({"uri": FileUri::from_path(path).as_str(), "version": *version});
        let made = move || json!({"textDocument": document, "contentChanges": [{"text": (*text).as_ref()}]});
        Some(("textDocument/didChange", Params::Made(Arc::new(made))))
    }

    /// Closes a document; `None` when it is not open.
    pub(super) fn close(&mut self, path: &AbsPath) -> Option<Note> {
        self.versions.remove(path)?;
        Some(("textDocument/didClose", json!({"textDocument": identifier(path)}).into()))
    }

    pub(super) fn paths(&self) -> Vec<AbsPath> {
        self.versions.keys().cloned().collect()
    }
}

/// A `TextDocumentIdentifier`.
pub(super) fn identifier(path: &AbsPath) -> Value {
    json!({"uri": FileUri::from_path(path).as_str()})
}

/// The notification of changes on disk.
pub(super) fn watched(changes: &[FileChange]) -> Note {
    let event = |change: &FileChange| {
        let kind = match change.kind {
            ChangeKind::Created => 1,
            ChangeKind::Changed => 2,
            ChangeKind::Deleted => 3,
        };
        json!({"uri": FileUri::from_path(&change.path).as_str(), "type": kind})
    };
    let events: Value = changes.iter().map(event).collect();
    ("workspace/didChangeWatchedFiles", json!({"changes": events}).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &'static str) -> Text {
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
    fn files_that_come_or_go_are_enumerated() {
        let change = |path: &str, kind| FileChange { path: at(path), kind };
        assert!(change("/w/a.py", ChangeKind::Created).is_enumerated());
        assert!(change("/w/a.pyi", ChangeKind::Deleted).is_enumerated());
        assert!(!change("/w/a.py", ChangeKind::Changed).is_enumerated());
        assert!(!change("/w/a.txt", ChangeKind::Created).is_enumerated());
        let (_, params) = watched(&[change("/w/a.py", ChangeKind::Deleted)]);
        assert_eq!(*params.value(), json!({"changes": [{"uri": "file:///w/a.py", "type": 3}]}));
    }
}
