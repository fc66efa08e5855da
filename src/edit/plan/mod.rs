//! Plans an edit: computes the new content of every file.
//!
//! A [`Planner`] applies the operations of an edit in memory, one after the other in the order of the edit, to the contents
//! that a [`Base`] returns. The result is a [`EditPlan`]: the current and the new content of each changed file. A plan depends
//! only on the edit and these contents.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::encode::{EncodeError, encode};
use super::patch::{Conflict, FilePatch, PatchOperation, apply};
use super::target::{TargetError, of_path, of_uri};
use super::text::{TextEditError, apply_splices, splices};
use crate::model::edits::{DocumentChange, FileOperation, OperationOptions, TextEdit, WorkspaceEdit};
use crate::path::{AbsPath, WorkspacePath};
use crate::text::{ColumnUnit, Range, decode_source};

/// The content of a file before the edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Original {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Whether it is executable.
    pub executable: bool,
}

/// The files that an edit is planned against.
pub trait Base {
    /// Resolves the symbolic links of a path.
    ///
    /// # Errors
    /// The reason why the file must not be edited: a link leads out of the workspace.
    fn resolve(&self, path: &WorkspacePath) -> Result<WorkspacePath, String>;

    /// The content of a file; `None` if it does not exist.
    ///
    /// # Errors
    /// The reason why it cannot be read.
    fn file(&self, path: &WorkspacePath) -> Result<Option<Arc<Original>>, String>;

    /// Whether a path is a folder.
    fn is_folder(&self, path: &WorkspacePath) -> bool;
}

/// Why an edit cannot be planned.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// It names a file that must not be edited.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// A link leads out of the workspace.
    #[error("{path}: {reason}")]
    Link {
        /// The file as the edit names it.
        path: WorkspacePath,
        /// The target of the link.
        reason: String,
    },
    /// Two edits of one file overlap.
    #[error("two edits of {path} overlap")]
    Overlap {
        /// The file.
        path: WorkspacePath,
        /// The one that starts first.
        first: Range,
        /// The other.
        second: Range,
    },
    /// The file has no such range.
    #[error("{path} has no range {}:{} to {}:{}", range.start.line.saturating_add(1), range.start.column.saturating_add(1), range.end.line.saturating_add(1), range.end.column.saturating_add(1))]
    NoSuchRange {
        /// The file.
        path: WorkspacePath,
        /// The range.
        range: Range,
    },
    /// A file that is to be edited, renamed or deleted does not exist.
    #[error("the file {0} does not exist")]
    Missing(WorkspacePath),
    /// A file that is to be created exists.
    #[error("{0} already exists")]
    Exists(WorkspacePath),
    /// A rename changes only the case of a path, where the file system ignores case.
    #[error("{from} and {to} are the same file, because the file system ignores case")]
    CaseOnly {
        /// The old path.
        from: WorkspacePath,
        /// The new path.
        to: WorkspacePath,
    },
    /// A file cannot be read.
    #[error("{path} cannot be read: {reason}")]
    Unreadable {
        /// The file.
        path: WorkspacePath,
        /// The reason.
        reason: String,
    },
    /// A text cannot be encoded.
    #[error("{path} cannot be written: {reason}")]
    Unwritable {
        /// The file.
        path: WorkspacePath,
        /// The reason.
        reason: EncodeError,
    },
    /// Only the executable bit of a file would change.
    #[error("the edit changes only the executable bit of {path}, which is not supported")]
    OnlyMode {
        /// The file.
        path: WorkspacePath,
        /// Whether it would be executable.
        executable: bool,
    },
    /// A folder is named instead of a file.
    #[error("{0} is a folder, and only files can be edited")]
    Folder(WorkspacePath),
    /// Hunks of a diff do not apply.
    #[error("{} hunk{} of the diff do{} not apply to {path}", conflicts.len(), if conflicts.len() == 1 { "" } else { "s" }, if conflicts.len() == 1 { "es" } else { "" })]
    Conflict {
        /// The file.
        path: WorkspacePath,
        /// The hunks that do not apply.
        conflicts: Vec<Conflict>,
    },
}

/// The change of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedChange {
    /// The path of the file, after a rename the new one.
    pub path: WorkspacePath,
    /// The old path of a renamed file.
    pub from: Option<WorkspacePath>,
    /// The current content; `None` for a new file.
    pub before: Option<Arc<Original>>,
    /// The new content; `None` for a deleted file.
    pub after: Option<Vec<u8>>,
    /// Whether it will be executable.
    executable: bool,
}

impl PlannedChange {
    /// A change without a rename; the file is not executable afterwards.
    #[must_use]
    pub const fn of_one(path: WorkspacePath, before: Option<Arc<Original>>, after: Option<Vec<u8>>) -> Self {
        Self { path, from: None, before, after, executable: false }
    }

    /// git's modes of the file before and after; for a created or deleted file both are the same.
    #[must_use]
    pub fn modes(&self) -> (&'static str, &'static str) {
        let mode = |executable| if executable { "100755" } else { "100644" };
        let before = self.before.as_ref().map_or(self.executable, |original| original.executable);
        let after = if self.after.is_some() { self.executable } else { before };
        (mode(before), mode(after))
    }

    /// Whether the file becomes executable or stops being so; `None` if that does not change.
    #[must_use]
    pub fn new_mode(&self) -> Option<bool> {
        let was = self.before.as_ref().is_some_and(|original| original.executable);
        (self.after.is_some() && was != self.executable).then_some(self.executable)
    }

    /// The change of the same file with other contents.
    #[must_use]
    pub fn between(&self, before: Arc<Original>, after: Vec<u8>) -> Self {
        Self { before: Some(before), after: Some(after), ..self.clone() }
    }

    /// The new text for a language server; `None` if the file is deleted.
    #[must_use]
    pub fn text(&self) -> Option<String> {
        Some(decode_source(self.after.clone()?).text)
    }
}

/// The changes of all files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EditPlan {
    /// Invariant: sorted by path, each path once, no unchanged file.
    changes: Vec<PlannedChange>,
    /// How hunks of a diff were placed that do not apply as they are.
    pub notes: Vec<String>,
}

impl EditPlan {
    /// A plan of these changes; of several changes of one file one is kept.
    #[must_use]
    pub fn of(mut changes: Vec<PlannedChange>) -> Self {
        changes.sort_by(|a, b| a.path.cmp(&b.path));
        changes.dedup_by(|a, b| a.path == b.path);
        Self { changes, notes: Vec::new() }
    }

    /// The changes, sorted by path.
    #[must_use]
    pub fn changes(&self) -> &[PlannedChange] {
        &self.changes
    }

    /// Every path that is written, created or removed.
    pub fn paths(&self) -> impl Iterator<Item = &WorkspacePath> {
        self.changes.iter().flat_map(|change| std::iter::once(&change.path).chain(&change.from))
    }

    /// Whether no file is created, deleted or renamed.
    #[must_use]
    pub fn only_modifies(&self) -> bool {
        self.changes
            .iter()
            .all(|change| change.from.is_none() && change.before.is_some() && change.after.is_some())
    }
}

/// The planned state of a file.
#[derive(Debug, Clone)]
struct PlannedFile {
    bytes: Option<Vec<u8>>,
    executable: bool,
    /// The file of the base that it was renamed from, or itself.
    origin: Option<WorkspacePath>,
}

/// Applies edits in memory.
pub struct Planner<'b> {
    root: &'b AbsPath,
    base: &'b dyn Base,
    /// The unit of columns in edits.
    unit: ColumnUnit,
    states: BTreeMap<WorkspacePath, PlannedFile>,
    /// How hunks were placed that do not apply as they are.
    notes: Vec<String>,
}

impl<'b> Planner<'b> {
    /// A planner without changes. Columns of edits count in `unit`.
    #[must_use]
    pub fn new(root: &'b AbsPath, base: &'b dyn Base, unit: ColumnUnit) -> Self {
        Self { root, base, unit, states: BTreeMap::new(), notes: Vec::new() }
    }

    /// Applies an LSP edit.
    ///
    /// # Errors
    /// See [`PlanError`].
    pub fn workspace_edit(&mut self, edit: &WorkspaceEdit) -> Result<(), PlanError> {
        let Some(changes) = &edit.document_changes else {
            let mut by_file = EditsByFile::new();
            for (uri, edits) in &edit.changes {
                add_edits(&mut by_file, self.target(uri)?, uri, edits);
            }
            return by_file.iter().try_for_each(|(path, (_, edits))| self.text_edits(path, edits));
        };
        // Edits of one document may be split. All edits between two file operations refer to the same text.
        let mut pending = EditsByFile::new();
        for change in changes {
            match change {
                DocumentChange::Edit(edit) => {
                    let path = self.target(&edit.text_document.uri)?;
                    add_edits(&mut pending, path, &edit.text_document.uri, &edit.edits);
                }
                DocumentChange::Operation(operation) => {
                    for (path, (_, edits)) in std::mem::take(&mut pending) {
                        self.text_edits(&path, &edits)?;
                    }
                    self.operation(operation)?;
                }
            }
        }
        pending.iter().try_for_each(|(path, (_, edits))| self.text_edits(path, edits))
    }

    /// Applies a unified diff.
    ///
    /// # Errors
    /// See [`PlanError`].
    pub fn patches(&mut self, patches: &[FilePatch]) -> Result<(), PlanError> {
        for patch in patches {
            let old = self.resolved(of_path(self.root, &patch.old)?)?;
            let new = if patch.new == patch.old {
                old.clone()
            } else {
                self.resolved(of_path(self.root, &patch.new)?)?
            };
            let is_new = patch.operation == PatchOperation::Create;
            let from = if is_new { None } else { Some(self.existing(&old)?) };
            if matches!(
                patch.operation,
                PatchOperation::Create | PatchOperation::Rename | PatchOperation::Copy
            ) && self.content(&new)?.is_some()
            {
                return Err(self.taken(Some(&old), new));
            }
            let before = from.as_ref().and_then(|state| state.bytes.clone()).unwrap_or_default();
            let applied = apply(&before, patch)
                .map_err(|conflicts| PlanError::Conflict { path: old.clone(), conflicts })?;
            let after = applied.content;
            self.notes.extend(applied.notes);
            let executable =
                patch.executable.or(from.as_ref().map(|state| state.executable)).unwrap_or(false);
            if matches!(patch.operation, PatchOperation::Rename | PatchOperation::Delete) {
                self.states.insert(old.clone(), PlannedFile { bytes: None, executable: false, origin: None });
            }
            if patch.operation == PatchOperation::Delete {
                // A diff that deletes a file has to contain its whole content.
                if !after.is_empty() {
                    let found = String::from_utf8_lossy(&after).into_owned();
                    let conflict = Conflict {
                        line: patch.line,
                        at: 1,
                        expected: String::new(),
                        wanted: String::new(),
                        found,
                        difference: None,
                    };
                    return Err(PlanError::Conflict { path: old, conflicts: vec![conflict] });
                }
            } else {
                let origin = if patch.operation == PatchOperation::Copy {
                    None
                } else {
                    from.and_then(|state| state.origin)
                };
                self.states.insert(new, PlannedFile { bytes: Some(after), executable, origin });
            }
        }
        Ok(())
    }

    /// The plan with all changes.
    ///
    /// # Errors
    /// If a file of the base cannot be read, or only its mode changes.
    pub fn plan(self) -> Result<EditPlan, PlanError> {
        let mut changes = BTreeMap::new();
        let mut moved = Vec::new();
        for (path, state) in &self.states {
            let before = self.base_file(path)?;
            let origin = state.origin.as_ref().filter(|origin| *origin != path);
            // A file counts as new, not renamed, if its old path still exists or was already renamed to another file.
            let from = origin.filter(|origin| {
                let gone = self.states.get(*origin).is_some_and(|state| state.bytes.is_none());
                before.is_none() && gone && state.bytes.is_some() && !moved.contains(*origin)
            });
            if before.as_ref().map(|original| &original.bytes) == state.bytes.as_ref() {
                if before.as_ref().is_some_and(|original| original.executable != state.executable) {
                    return Err(PlanError::OnlyMode { path: path.clone(), executable: state.executable });
                }
                continue;
            }
            let from = from.cloned();
            let before = match &from {
                Some(from) => {
                    moved.push(from.clone());
                    self.base_file(from)?
                }
                None => before,
            };
            let change = PlannedChange {
                path: path.clone(),
                from,
                before,
                after: state.bytes.clone(),
                executable: state.executable,
            };
            changes.insert(path.clone(), change);
        }
        for from in moved {
            changes.remove(&from);
        }
        Ok(EditPlan { changes: changes.into_values().collect(), notes: self.notes })
    }

    fn target(&self, uri: &str) -> Result<WorkspacePath, PlanError> {
        let path = of_uri(self.root, uri)?;
        if uri.ends_with('/') {
            return Err(PlanError::Folder(path));
        }
        self.resolved(path)
    }

    fn resolved(&self, path: WorkspacePath) -> Result<WorkspacePath, PlanError> {
        self.base.resolve(&path).map_err(|reason| PlanError::Link { path, reason })
    }

    fn base_file(&self, path: &WorkspacePath) -> Result<Option<Arc<Original>>, PlanError> {
        if self.base.is_folder(path) {
            return Err(PlanError::Folder(path.clone()));
        }
        self.base.file(path).map_err(|reason| PlanError::Unreadable { path: path.clone(), reason })
    }

    /// The current planned state of a file.
    fn state(&self, path: &WorkspacePath) -> Result<PlannedFile, PlanError> {
        if let Some(state) = self.states.get(path) {
            return Ok(state.clone());
        }
        let original = self.base_file(path)?;
        let executable = original.as_ref().is_some_and(|original| original.executable);
        let origin = original.is_some().then(|| path.clone());
        Ok(PlannedFile { bytes: original.map(|original| original.bytes.clone()), executable, origin })
    }

    fn content(&self, path: &WorkspacePath) -> Result<Option<Vec<u8>>, PlanError> {
        Ok(self.state(path)?.bytes)
    }

    fn existing(&self, path: &WorkspacePath) -> Result<PlannedFile, PlanError> {
        let state = self.state(path)?;
        if state.bytes.is_none() { Err(PlanError::Missing(path.clone())) } else { Ok(state) }
    }

    fn text_edits(&mut self, path: &WorkspacePath, edits: &[TextEdit]) -> Result<(), PlanError> {
        let state = self.existing(path)?;
        let bytes = state.bytes.clone().unwrap_or_default();
        let decoded = decode_source(bytes.clone());
        let splices = splices(&decoded.text, edits, self.unit).map_err(|error| match error {
            TextEditError::Overlap { first, second } => {
                PlanError::Overlap { path: path.clone(), first, second }
            }
            TextEditError::NoSuchRange(range) => PlanError::NoSuchRange { path: path.clone(), range },
        })?;
        let after = apply_splices(&decoded.text, &splices);
        let after = encode(&bytes, &decoded.text, &after, decoded.encoding)
            .map_err(|reason| PlanError::Unwritable { path: path.clone(), reason })?;
        self.states.insert(path.clone(), PlannedFile { bytes: Some(after), ..state });
        Ok(())
    }

    fn operation(&mut self, operation: &FileOperation) -> Result<(), PlanError> {
        let gone = || PlannedFile { bytes: None, executable: false, origin: None };
        match operation {
            FileOperation::Create { uri, options, .. } => {
                let path = self.target(uri)?;
                if self.is_free(None, &path, *options)? {
                    // An overwritten file keeps its mode.
                    let executable = self.state(&path)?.executable;
                    self.states
                        .insert(path, PlannedFile { bytes: Some(Vec::new()), executable, origin: None });
                }
            }
            FileOperation::Rename { old_uri, new_uri, options, .. } => {
                let (old, new) = (self.target(old_uri)?, self.target(new_uri)?);
                let state = self.existing(&old)?;
                if old != new && self.is_free(Some(&old), &new, *options)? {
                    self.states.insert(old, gone());
                    self.states.insert(new, state);
                }
            }
            FileOperation::Delete { uri, options, .. } => {
                let path = self.target(uri)?;
                let lenient = options.and_then(|options| options.ignore_if_not_exists).unwrap_or(false);
                if self.content(&path)?.is_some() || !lenient {
                    self.existing(&path)?;
                    self.states.insert(path, gone());
                }
            }
        }
        Ok(())
    }

    /// Why nothing can be created at a path, which exists: it is another file, or the one that is to be renamed.
    fn taken(&self, from: Option<&WorkspacePath>, to: WorkspacePath) -> PlanError {
        let is_same = |from: &&WorkspacePath| {
            from.as_str().to_lowercase() == to.as_str().to_lowercase()
                && self.content(from).ok().flatten() == self.content(&to).ok().flatten()
        };
        match from.filter(is_same) {
            Some(from) => PlanError::CaseOnly { from: from.clone(), to },
            None => PlanError::Exists(to),
        }
    }

    /// Whether a file is to be created here: it does not exist, or it is to be overwritten. `from` is the file that is to be
    /// renamed.
    fn is_free(
        &self,
        from: Option<&WorkspacePath>,
        path: &WorkspacePath,
        options: Option<OperationOptions>,
    ) -> Result<bool, PlanError> {
        let options = options.unwrap_or_default();
        if self.content(path)?.is_none() || options.overwrite == Some(true) {
            Ok(true)
        } else if options.ignore_if_exists == Some(true) {
            Ok(false)
        } else {
            Err(self.taken(from, path.clone()))
        }
    }
}

/// The edits of each file, with the URI under which the first of them came.
type EditsByFile = BTreeMap<WorkspacePath, (String, Vec<TextEdit>)>;

/// Adds the edits of a file. Several URIs can name one, as by a link: what is edited under one is not edited again under another.
fn add_edits(by_file: &mut EditsByFile, path: WorkspacePath, uri: &str, edits: &[TextEdit]) {
    let (first, known) = by_file.entry(path).or_insert_with(|| (uri.to_owned(), Vec::new()));
    let is_another = first != uri;
    let new: Vec<TextEdit> =
        edits.iter().filter(|edit| !(is_another && known.contains(edit))).cloned().collect();
    known.extend(new);
}

#[cfg(test)]
mod tests;
