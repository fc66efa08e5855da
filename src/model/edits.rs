//! Edits that are planned or written.
//!
//! [`WorkspaceEdit`] has LSP's own form, so that edits can be exchanged with other tools: `lanser apply` accepts what
//! `edits.workspaceEdit` contains. In a bundle its URIs are portable and its columns are in
//! `environment.positionEncoding`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::analyzer::SourceReport;
use super::facts::{Counts, Diagnostic, Residue};
use crate::digest::Digest;
use crate::path::DocUri;
use crate::text::{Position, Range};

/// An edit that was planned, or written.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Edits {
    /// The edit as an LSP `WorkspaceEdit`; `null` for an edit that was given as a diff.
    #[serde(rename = "workspaceEdit")]
    pub workspace_edit: Option<WorkspaceEdit>,
    /// The edit as a unified diff in git's format, with paths relative to the workspace.
    pub diff: String,
    /// Every file that the edit writes, sorted by path.
    pub files: Vec<EditedFile>,
    /// Functions that an edit removes, or whose parameters it changes so that calls may no longer fit; and how hunks of a diff were placed
    /// that do not apply as they are: recounted, or with context that differs. Absent when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Every check that was made, in a fixed order.
    pub safety: Vec<Check>,
    /// How the edit changes the diagnostics; absent when they were not compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diagnostics: Option<DiagnosticsDelta>,
    /// `rename`: occurrences of the old name that the rename leaves; absent for other commands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub residue: Option<Residue>,
    /// The transaction that wrote the edit; `null` when nothing was written.
    pub transaction: Option<Transaction>,
}

/// A file that an edit writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EditedFile {
    /// The file, by its new name if it is renamed.
    pub uri: DocUri,
    /// What happens to the file.
    pub change: FileChangeKind,
    /// The old name; absent unless the file is renamed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<DocUri>,
    /// The number of lines added.
    pub insertions: u32,
    /// The number of lines removed.
    pub deletions: u32,
    /// The digest of the current content; absent for a new file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Digest>,
    /// The digest of the content after the edit; absent for a deleted file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Digest>,
}

/// What happens to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FileChangeKind {
    /// Its content changes.
    Modify,
    /// It is created.
    Create,
    /// It is deleted.
    Delete,
    /// It is renamed, and its content may change.
    Rename,
}

/// A safety check of an edit, made before anything is written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// The condition that was checked.
    pub name: CheckName,
    /// Whether the condition holds.
    pub passed: bool,
    /// Whether the check failed and the caller chose to apply the edit anyway. Absent when false.
    #[serde(default, skip_serializing_if = "is_false")]
    pub overridden: bool,
    /// What was checked, or what is wrong, as text.
    pub detail: String,
    /// Selectors of the locations that fail the check, or only the first of them when there are many. Absent when
    /// empty.
    #[serde(default, rename = "locations", skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<String>,
    /// `completeness`: the source lines of `locations`, in the same order. Absent when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub previews: Vec<String>,
    /// `completeness`: what the caller decided about unresolved places, sorted by location. Absent when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<PlaceDecision>,
}

/// What the caller decided about an unresolved place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlaceDecision {
    /// A selector of the place.
    pub at: String,
    /// The decision.
    pub decision: Decision,
}

/// A decision about an unresolved place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    /// It is renamed.
    Include,
    /// It is something else and keeps its name.
    Exclude,
}

impl Check {
    /// Whether the check prevents the edit.
    #[must_use]
    pub const fn stops(&self) -> bool {
        !self.passed && !self.overridden
    }
}

/// The safety checks, in the order of `edits.safety`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum CheckName {
    /// The selector resolves to one location with certainty.
    Target,
    /// The server's `prepareRename` accepts the location.
    PrepareRename,
    /// The new name is an identifier and not a keyword.
    Identifier,
    /// The new name has no meaning of its own in Python: it shadows no builtin, is neither a soft keyword nor a dunder
    /// name, and is not mangled in a class.
    Shadowing,
    /// The new name is unused in every scope that the edit touches.
    Collision,
    /// No related class, and not Python itself, also defines the old name.
    Overrides,
    /// Every reference was found.
    Completeness,
    /// With `agree`: the two servers do not contradict each other.
    Agreement,
    /// Every file is inside the workspace.
    Jail,
    /// The path filters `--allow` and `--deny` permit every file.
    Filters,
    /// No two edits of one file overlap.
    Overlap,
    /// The edit fits the current content of the files.
    Content,
    /// The files have no uncommitted changes.
    Git,
    /// The edit introduces no diagnostics.
    Diagnostics,
    /// After the edit, the references of the new name are those that the old name had.
    RoundTrip,
}

impl CheckName {
    /// Every check.
    pub const ALL: [Self; 15] = [
        Self::Target,
        Self::PrepareRename,
        Self::Identifier,
        Self::Shadowing,
        Self::Collision,
        Self::Overrides,
        Self::Completeness,
        Self::Agreement,
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
            Self::Agreement => "agreement",
            Self::Jail => "jail",
            Self::Filters => "filters",
            Self::Overlap => "overlap",
            Self::Content => "content",
            Self::Git => "git",
            Self::Diagnostics => "diagnostics",
            Self::RoundTrip => "roundTrip",
        }
    }

    /// The option that overrides the check; `None` if it cannot be overridden.
    #[must_use]
    pub const fn override_option(self) -> Option<&'static str> {
        match self {
            Self::Target => Some("--deny-apply-on-ambiguous=false"),
            Self::PrepareRename => Some("--allow-unprepared"),
            Self::Identifier => Some("--allow-invalid-name"),
            Self::Shadowing => Some("--allow-shadowing"),
            Self::Collision => Some("--allow-collision"),
            Self::Overrides => Some("--allow-broken-overrides"),
            Self::Completeness => Some("--allow-incomplete"),
            Self::Agreement => Some("--allow-disagreement"),
            Self::Git => Some("--allow-dirty"),
            Self::Diagnostics => Some("--allow-new-diagnostics"),
            Self::RoundTrip => Some("--allow-changed-references"),
            Self::Jail | Self::Filters | Self::Overlap | Self::Content => None,
        }
    }
}

/// How an edit changes the diagnostics.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DiagnosticsDelta {
    /// Diagnostics that the edit introduces, at their locations after the edit.
    pub introduced: Vec<Diagnostic>,
    /// Diagnostics that the edit resolves, at their locations before the edit. Always empty for a rename, which does
    /// not look for them.
    pub resolved: Vec<Diagnostic>,
    /// The number of diagnostics that are the same with and without the edit, by severity.
    pub unchanged: Counts,
    /// The number of files compared: edited files, and files that import them.
    pub files_checked: u32,
    /// The number of files that the edit could affect and that were not compared, because there are too many.
    pub files_left_out: u32,
    /// `rename`: files that import an edited module and that were not compared, because the renamed symbol cannot matter to
    /// them; absent when there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unaffected: Option<UnaffectedFiles>,
    /// The analyzers besides the language server, and what they analyzed after the edit; absent when there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<SourceReport>,
}

/// Files whose diagnostics a rename cannot change: neither name is written in them, and they import an edited module neither with
/// `*` nor as an object that they pass on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UnaffectedFiles {
    /// How many there are.
    pub count: u32,
    /// The first of them, sorted by path.
    pub files: Vec<DocUri>,
}

/// A transaction: an edit that was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Transaction {
    /// The ID, for `lanser undo ID`.
    pub id: String,
    /// Whether the edit is applied, undone, or cannot be undone.
    pub state: TransactionState,
    /// The command that made the edit, in one line; for a damaged transaction, what is wrong with it. Absent when it is
    /// not known.
    #[serde(default, rename = "summary", skip_serializing_if = "Option::is_none")]
    pub what: Option<String>,
    /// The number of paths that changed: two for a file that moved.
    pub files: u32,
}

/// The state of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TransactionState {
    /// The edit was written.
    Applied,
    /// The edit was written and undone.
    Undone,
    /// The edit was written, and its journal cannot be read: it cannot be undone.
    Damaged,
}

/// LSP's `WorkspaceEdit`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceEdit {
    /// Edits by document URI. Ignored if `documentChanges` is present; absent when empty.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "or_null")]
    pub changes: BTreeMap<String, Vec<TextEdit>>,
    /// Text edits and file operations, in the order in which they are applied; absent when `changes` is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document_changes: Option<Vec<DocumentChange>>,
    /// Descriptions of edits, by the ID that `annotationId` refers to. Absent when empty.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "or_null")]
    pub change_annotations: BTreeMap<String, ChangeAnnotation>,
}

impl WorkspaceEdit {
    /// Maps every URI.
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

    /// The same edit with one list of text edits for each document between two file operations: all of them mean the text before the
    /// first, but clients apply a second list to what the first has left.
    #[must_use]
    pub fn merged(mut self) -> Self {
        let Some(changes) = self.document_changes.take() else { return self };
        let mut merged: Vec<DocumentChange> = Vec::new();
        let mut since_operation = 0;
        for change in changes {
            let DocumentChange::Edit(edit) = change else {
                merged.push(change);
                since_operation = merged.len();
                continue;
            };
            let same = merged[since_operation..].iter_mut().find_map(|earlier| match earlier {
                DocumentChange::Edit(one) if one.text_document.uri == edit.text_document.uri => Some(one),
                _ => None,
            });
            match same {
                Some(earlier) => earlier.edits.extend(edit.edits),
                None => merged.push(DocumentChange::Edit(edit)),
            }
        }
        merged.retain(|change| !matches!(change, DocumentChange::Edit(edit) if edit.edits.is_empty()));
        self.document_changes = Some(merged);
        self
    }
}

/// Text edits of one document, or an operation on a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, try_from = "WireChange")]
pub enum DocumentChange {
    /// An operation on a file.
    Operation(FileOperation),
    /// Edits of one document.
    Edit(TextDocumentEdit),
}

/// Text edits of one document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TextDocumentEdit {
    /// The document.
    pub text_document: VersionedDocument,
    /// The edits. All positions refer to the document before any of them.
    pub edits: Vec<TextEdit>,
}

/// A document at a version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VersionedDocument {
    /// The document's URI.
    pub uri: String,
    /// The version of the open document that the edit is for; `null` for the file on disk.
    #[serde(default)]
    pub version: Option<u32>,
}

/// An operation on a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub enum FileOperation {
    /// Creates an empty file.
    Create {
        /// The file's URI.
        uri: String,
        /// What to do if the file exists; absent for the default.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        options: Option<OperationOptions>,
        /// The ID of an annotation in `changeAnnotations`; absent if there is none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        annotation_id: Option<String>,
    },
    /// Renames a file or folder.
    Rename {
        /// The old URI.
        old_uri: String,
        /// The new URI.
        new_uri: String,
        /// What to do if the new name exists; absent for the default.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        options: Option<OperationOptions>,
        /// The ID of an annotation in `changeAnnotations`; absent if there is none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        annotation_id: Option<String>,
    },
    /// Deletes a file or folder.
    Delete {
        /// The URI.
        uri: String,
        /// What to do if it does not exist, and whether folders may be deleted; absent for the default.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        options: Option<OperationOptions>,
        /// The ID of an annotation in `changeAnnotations`; absent if there is none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        annotation_id: Option<String>,
    },
}

/// Options of a file operation. An absent member means `false`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OperationOptions {
    /// Create, rename: replace an existing file. Takes precedence over `ignoreIfExists`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overwrite: Option<bool>,
    /// Create, rename: do nothing if the file exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignore_if_exists: Option<bool>,
    /// Delete: delete a folder with its content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recursive: Option<bool>,
    /// Delete: do nothing if the file does not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignore_if_not_exists: Option<bool>,
}

/// Replaces a range of a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TextEdit {
    /// The range to replace.
    pub range: LspRange,
    /// The replacement.
    pub new_text: String,
    /// The ID of an annotation in `changeAnnotations`; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotation_id: Option<String>,
}

/// A description of edits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChangeAnnotation {
    /// A short description for the user.
    pub label: String,
    /// Whether the user has to confirm the edit; absent means `false`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needs_confirmation: Option<bool>,
    /// A longer description for the user; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// A range in LSP's form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LspRange {
    /// The first position.
    pub start: LspPosition,
    /// The position after the last character.
    pub end: LspPosition,
}

/// A position in LSP's form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LspPosition {
    /// The line, 0-based.
    pub line: u32,
    /// The column, 0-based, in the negotiated position encoding.
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

/// Every member that a document change can have; the members that are present determine its kind.
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
            member.ok_or_else(|| format!("a file operation has no `{name}`"))
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
            Some(other) => return Err(format!("unknown file operation {other:?}")),
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

    #[test]
    fn a_document_is_edited_once_between_two_operations() {
        let edit = |uri: &str, texts: &[&str]| {
            let range = LspRange::from(Range::default());
            let edits = texts.iter().map(|text| TextEdit {
                range,
                new_text: (*text).to_owned(),
                annotation_id: None,
            });
            let text_document = VersionedDocument { uri: uri.to_owned(), version: None };
            DocumentChange::Edit(TextDocumentEdit { text_document, edits: edits.collect() })
        };
        let moved = DocumentChange::Operation(FileOperation::Rename {
            old_uri: "a".to_owned(),
            new_uri: "c".to_owned(),
            options: None,
            annotation_id: None,
        });
        let changes = |changes| WorkspaceEdit { document_changes: Some(changes), ..WorkspaceEdit::default() };
        let split = changes(vec![
            edit("a", &["1"]),
            edit("b", &["2"]),
            edit("a", &["3"]),
            edit("d", &[]),
            moved.clone(),
            edit("b", &["4"]),
        ]);
        let merged = changes(vec![edit("a", &["1", "3"]), edit("b", &["2"]), moved, edit("b", &["4"])]);
        assert_eq!(split.merged(), merged);
        assert_eq!(WorkspaceEdit::default().merged(), WorkspaceEdit::default());
    }

    /// Two widely used decoders lose `annotationId`, because they try a plain edit first.
    #[test]
    fn everything_survives_a_round_trip() {
        let text = r#"{"changes":{"file:///w/a.py":[{"range":{"start":{"line":0,"character":1},"end":{"line":0,"character":2}},"newText":"x"}]},"documentChanges":[{"kind":"create","uri":"b.py","options":{"overwrite":true},"annotationId":"n"},{"kind":"rename","oldUri":"b.py","newUri":"c.py"},{"kind":"delete","uri":"d.py","options":{"recursive":true,"ignoreIfNotExists":true}},{"textDocument":{"uri":"a.py","version":3},"edits":[{"range":{"start":{"line":1,"character":0},"end":{"line":1,"character":0}},"newText":"","annotationId":"n"}]}],"changeAnnotations":{"n":{"label":"l","needsConfirmation":true}}}"#;
        let edit: WorkspaceEdit = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&edit).unwrap(), text);
        let renamed = edit.with_uris(|uri| format!("<{uri}>"));
        let json = serde_json::to_string(&renamed).unwrap();
        assert_eq!(json.matches('<').count(), 6);
    }

    #[test]
    fn errors_name_the_invalid_member() {
        let read = |text: &str| serde_json::from_str::<WorkspaceEdit>(text).unwrap_err().to_string();
        assert!(read(r#"{"documentChanges":[{"kind":"move","uri":"a"}]}"#).contains("\"move\""));
        assert!(read(r#"{"documentChanges":[{"kind":"rename","oldUri":"a"}]}"#).contains("`newUri`"));
        assert!(read(r#"{"documentChanges":[{}]}"#).contains("neither"));
        assert!(serde_json::from_str::<WorkspaceEdit>(r#"{"changes":null}"#).is_ok());
    }
}
