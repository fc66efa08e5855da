//! What would be, or was, written.
//!
//! [`WorkspaceEdit`] is LSP's own form, so that what one tool proposes another can apply: `lanser apply` reads what
//! `edits.workspaceEdit` says. In a bundle its URIs are portable and its columns count `environment.positionEncoding`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::facts::{Counts, Diagnostic, Residue};
use crate::digest::Digest;
use crate::path::DocUri;
use crate::text::{Position, Range};

/// What would be, or was, written.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Edits {
    /// The edit as LSP has it; `null` for one that came as a diff.
    pub workspace_edit: Option<WorkspaceEdit>,
    /// The same as a unified diff in git's format, relative to the workspace.
    pub diff: String,
    /// Every file that is written, in the order of their paths.
    pub files: Vec<EditedFile>,
    /// Every check that was made, in a fixed order.
    pub safety: Vec<Check>,
    /// What the edit does to the diagnostics; absent where they were not compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diagnostics: Option<DiagnosticsDelta>,
    /// `rename`: where the old name also stands and stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub residue: Option<Residue>,
    /// What was written under which name; `null` when nothing was.
    pub transaction: Option<Transaction>,
}

/// A file that is written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EditedFile {
    /// The file, under its new name when it has one.
    pub uri: DocUri,
    /// What happens to it.
    pub change: ChangeKind,
    /// Its old name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<DocUri>,
    /// How many lines come.
    pub insertions: u32,
    /// How many lines go.
    pub deletions: u32,
    /// The digest of what it holds now; absent for a new file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Digest>,
    /// The digest of what it will hold; absent for one that goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Digest>,
}

/// What happens to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ChangeKind {
    /// It gets another content.
    Modify,
    /// It is new.
    Create,
    /// It goes.
    Delete,
    /// It gets another name, and perhaps another content.
    Rename,
}

/// A check that was made before anything is written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// Which check.
    pub name: CheckName,
    /// Whether it found nothing wrong.
    pub passed: bool,
    /// Whether the caller gave it up, so that it stops nothing.
    #[serde(default, skip_serializing_if = "is_false")]
    pub overridden: bool,
    /// What it looked at, or found wrong.
    pub detail: String,
    /// The places that it found wrong, as selectors; the first of them when there are many.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<String>,
}

impl Check {
    /// Whether it stops the edit.
    #[must_use]
    pub const fn stops(&self) -> bool {
        !self.passed && !self.overridden
    }
}

/// The checks, in the order in which they are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum CheckName {
    /// The selector means one place, without a guess.
    Target,
    /// The server accepts a rename there.
    PrepareRename,
    /// The new name is an identifier and no keyword.
    Identifier,
    /// The new name means nothing to Python itself: it hides no builtin, is no soft keyword and no `__x__`, and no class spells it
    /// otherwise.
    Shadowing,
    /// The new name is free in every scope that is touched.
    Collision,
    /// No class around has the old name too, nor Python itself.
    Overrides,
    /// Every use was found.
    Completeness,
    /// Every file lies in the workspace.
    Jail,
    /// `--allow` and `--deny` let every file pass.
    Filters,
    /// No two edits of one file overlap.
    Overlap,
    /// The edit can be made to what the files hold.
    Content,
    /// The files have no uncommitted changes.
    Git,
    /// No diagnostic is new.
    Diagnostics,
    /// The references of the new name are those of the old one, moved.
    RoundTrip,
}

impl CheckName {
    /// Every check.
    pub const ALL: [Self; 14] = [
        Self::Target,
        Self::PrepareRename,
        Self::Identifier,
        Self::Shadowing,
        Self::Collision,
        Self::Overrides,
        Self::Completeness,
        Self::Jail,
        Self::Filters,
        Self::Overlap,
        Self::Content,
        Self::Git,
        Self::Diagnostics,
        Self::RoundTrip,
    ];

    /// The name in bundles.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Target => "target",
            Self::PrepareRename => "prepareRename",
            Self::Identifier => "identifier",
            Self::Shadowing => "shadowing",
            Self::Collision => "collision",
            Self::Overrides => "overrides",
            Self::Completeness => "completeness",
            Self::Jail => "jail",
            Self::Filters => "filters",
            Self::Overlap => "overlap",
            Self::Content => "content",
            Self::Git => "git",
            Self::Diagnostics => "diagnostics",
            Self::RoundTrip => "roundTrip",
        }
    }

    /// The option that gives the check up; `None` for those without which there is no edit.
    #[must_use]
    pub const fn given_up_by(self) -> Option<&'static str> {
        match self {
            Self::Target => Some("--deny-apply-on-ambiguous=false"),
            Self::PrepareRename => Some("--allow-unprepared"),
            Self::Identifier => Some("--allow-invalid-name"),
            Self::Shadowing => Some("--allow-shadowing"),
            Self::Collision => Some("--allow-collision"),
            Self::Overrides => Some("--allow-broken-overrides"),
            Self::Completeness => Some("--allow-incomplete"),
            Self::Git => Some("--allow-dirty"),
            Self::Diagnostics => Some("--allow-new-diagnostics"),
            Self::RoundTrip => Some("--allow-changed-references"),
            Self::Jail | Self::Filters | Self::Overlap | Self::Content => None,
        }
    }
}

/// What an edit does to the diagnostics.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DiagnosticsDelta {
    /// Those that the edit brings, where they would stand.
    pub introduced: Vec<Diagnostic>,
    /// Those that it ends, where they stand; of a rename these are not looked for.
    pub resolved: Vec<Diagnostic>,
    /// How many are there with the edit and without.
    pub unchanged: Counts,
    /// The edited files among those that were compared, and those that import them.
    pub files_checked: u32,
    /// Files that could hold consequences and were not compared, because there are too many.
    pub files_left_out: u32,
}

/// What was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Transaction {
    /// By what it is taken back: `lanser undo ID`.
    pub id: String,
    /// Whether it stands.
    pub state: TransactionState,
    /// What it did, in a line; of a damaged one, what is wrong with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub what: Option<String>,
    /// How many files it wrote.
    pub files: u32,
}

/// Whether a transaction stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TransactionState {
    /// It was written.
    Applied,
    /// It was written and taken back.
    Undone,
    /// It was written, and its journal cannot be read: it cannot be taken back.
    Damaged,
}

/// LSP's `WorkspaceEdit`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceEdit {
    /// Edits by document. Not looked at where `documentChanges` is there.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "or_null")]
    pub changes: BTreeMap<String, Vec<TextEdit>>,
    /// Edits and operations on files, in the order in which they are made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document_changes: Option<Vec<DocumentChange>>,
    /// What the annotations of edits mean.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "or_null")]
    pub change_annotations: BTreeMap<String, ChangeAnnotation>,
}

impl WorkspaceEdit {
    /// The same with other URIs.
    #[must_use]
    pub fn with_uris(mut self, mut named: impl FnMut(&str) -> String) -> Self {
        self.changes = self.changes.into_iter().map(|(uri, edits)| (named(&uri), edits)).collect();
        for change in self.document_changes.iter_mut().flatten() {
            match change {
                DocumentChange::Edit(edit) => edit.text_document.uri = named(&edit.text_document.uri),
                DocumentChange::Operation(
                    FileOperation::Create { uri, .. } | FileOperation::Delete { uri, .. },
                ) => *uri = named(uri),
                DocumentChange::Operation(FileOperation::Rename { old_uri, new_uri, .. }) => {
                    *old_uri = named(old_uri);
                    *new_uri = named(new_uri);
                }
            }
        }
        self
    }
}

/// An edit of one document, or an operation on a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, try_from = "WireChange")]
pub enum DocumentChange {
    /// An operation on a file.
    Operation(FileOperation),
    /// Edits of one document.
    Edit(TextDocumentEdit),
}

/// Edits of one document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TextDocumentEdit {
    /// Which document.
    pub text_document: VersionedDocument,
    /// What is done to it. All positions are those of the document before.
    pub edits: Vec<TextEdit>,
}

/// A document in a version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VersionedDocument {
    /// Its URI.
    pub uri: String,
    /// The version that was open; `null` for what is on disk.
    #[serde(default)]
    pub version: Option<u32>,
}

/// An operation on a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub enum FileOperation {
    /// A new, empty file.
    Create {
        /// Its URI.
        uri: String,
        /// What to do when it exists.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        options: Option<OperationOptions>,
        /// Why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        annotation_id: Option<String>,
    },
    /// A file or folder under another name.
    Rename {
        /// The old name.
        old_uri: String,
        /// The new name.
        new_uri: String,
        /// What to do when it exists.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        options: Option<OperationOptions>,
        /// Why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        annotation_id: Option<String>,
    },
    /// A file or folder goes.
    Delete {
        /// Its URI.
        uri: String,
        /// What to do when it does not exist, and whether folders may go.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        options: Option<OperationOptions>,
        /// Why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        annotation_id: Option<String>,
    },
}

/// What an operation does when things are not as expected.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OperationOptions {
    /// Create, rename: replace what is there. Wins over `ignoreIfExists`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overwrite: Option<bool>,
    /// Create, rename: do nothing when there is something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignore_if_exists: Option<bool>,
    /// Delete: a folder with what is in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recursive: Option<bool>,
    /// Delete: do nothing when there is nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignore_if_not_exists: Option<bool>,
}

/// A stretch of text and what replaces it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TextEdit {
    /// The stretch.
    pub range: LspRange,
    /// What stands there then.
    pub new_text: String,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotation_id: Option<String>,
}

/// What an annotation says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChangeAnnotation {
    /// For people.
    pub label: String,
    /// Whether somebody has to agree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needs_confirmation: Option<bool>,
    /// More for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// A range as LSP writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LspRange {
    /// The first position.
    pub start: LspPosition,
    /// The position after the last.
    pub end: LspPosition,
}

/// A position as LSP writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LspPosition {
    /// 0-based.
    pub line: u32,
    /// 0-based, in the negotiated unit.
    pub character: u32,
}

impl From<LspRange> for Range {
    fn from(range: LspRange) -> Self {
        let position = |at: LspPosition| Position::new(at.line, at.character);
        Self::new(position(range.start), position(range.end))
    }
}

impl From<Range> for LspRange {
    fn from(range: Range) -> Self {
        let position = |at: Position| LspPosition { line: at.line, character: at.column };
        Self { start: position(range.start), end: position(range.end) }
    }
}

/// Every member that a document change can have: which of them are there says what it is.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct WireChange {
    kind: Option<String>,
    uri: Option<String>,
    old_uri: Option<String>,
    new_uri: Option<String>,
    options: Option<OperationOptions>,
    annotation_id: Option<String>,
    text_document: Option<VersionedDocument>,
    edits: Option<Vec<TextEdit>>,
}

impl TryFrom<WireChange> for DocumentChange {
    type Error = String;

    fn try_from(wire: WireChange) -> Result<Self, String> {
        let WireChange { kind, uri, old_uri, new_uri, options, annotation_id, text_document, edits } = wire;
        let need = |member: Option<String>, name: &str| {
            member.ok_or_else(|| format!("an operation on a file has no `{name}`"))
        };
        let operation = match kind.as_deref() {
            Some("create") => FileOperation::Create { uri: need(uri, "uri")?, options, annotation_id },
            Some("delete") => FileOperation::Delete { uri: need(uri, "uri")?, options, annotation_id },
            Some("rename") => FileOperation::Rename {
                old_uri: need(old_uri, "oldUri")?,
                new_uri: need(new_uri, "newUri")?,
                options,
                annotation_id,
            },
            Some(other) => return Err(format!("{other:?} is no operation on a file")),
            None => {
                let (text_document, edits) = text_document.zip(edits).ok_or_else(|| {
                    "a document change has neither `kind` nor `textDocument` with `edits`".to_owned()
                })?;
                return Ok(Self::Edit(TextDocumentEdit { text_document, edits }));
            }
        };
        Ok(Self::Operation(operation))
    }
}

fn or_null<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Option::<T>::deserialize(deserializer).map(Option::unwrap_or_default)
}

const fn is_false(value: &bool) -> bool {
    !*value
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both widely used decoders lose `annotationId`, because they read a plain edit first.
    #[test]
    fn everything_survives_a_round_trip() {
        let text = r#"{"changes":{"file:///w/a.py":[{"range":{"start":{"line":0,"character":1},"end":{"line":0,"character":2}},"newText":"x"}]},"documentChanges":[{"kind":"create","uri":"b.py","options":{"overwrite":true},"annotationId":"n"},{"kind":"rename","oldUri":"b.py","newUri":"c.py"},{"kind":"delete","uri":"d.py","options":{"recursive":true,"ignoreIfNotExists":true}},{"textDocument":{"uri":"a.py","version":3},"edits":[{"range":{"start":{"line":1,"character":0},"end":{"line":1,"character":0}},"newText":"","annotationId":"n"}]}],"changeAnnotations":{"n":{"label":"l","needsConfirmation":true}}}"#;
        let edit: WorkspaceEdit = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&edit).unwrap(), text);
        let renamed = edit.with_uris(|uri| format!("<{uri}>"));
        let told = serde_json::to_string(&renamed).unwrap();
        assert_eq!(told.matches('<').count(), 6);
    }

    #[test]
    fn what_is_no_edit_says_why() {
        let read = |text: &str| serde_json::from_str::<WorkspaceEdit>(text).unwrap_err().to_string();
        assert!(read(r#"{"documentChanges":[{"kind":"move","uri":"a"}]}"#).contains("\"move\""));
        assert!(read(r#"{"documentChanges":[{"kind":"rename","oldUri":"a"}]}"#).contains("`newUri`"));
        assert!(read(r#"{"documentChanges":[{}]}"#).contains("neither"));
        assert!(serde_json::from_str::<WorkspaceEdit>(r#"{"changes":null}"#).is_ok());
    }
}
