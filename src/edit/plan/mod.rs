//! From an edit to what every file would hold.
//!
//! A [`Planner`] is a workspace in thought: operations are made to it one after the other, in the order in which the edit
//! names them, on the contents that the [`Base`] gives. What came of it is a [`Plan`]: for each file what it holds now and
//! what it will hold. Nothing that is planned depends on anything but the edit and these contents.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::encode::{EncodeError, encode};
use super::patch::{Conflict, FilePatch, Operation, apply};
use super::target::{TargetError, of_path, of_uri};
use super::text::{TextEditError, spliced, splices};
use crate::model::edits::{DocumentChange, FileOperation, OperationOptions, TextEdit, WorkspaceEdit};
use crate::path::{AbsPath, WorkspacePath};
use crate::text::{ColumnUnit, Range, decode_source};

/// What a file holds before the edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Original {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Whether it is executable.
    pub executable: bool,
}

/// Where contents come from.
pub trait Base {
    /// The file that a path leads to, links followed.
    ///
    /// # Errors
    /// Why it is none that may be edited: a link leads out of the workspace.
    fn resolve(&self, path: &WorkspacePath) -> Result<WorkspacePath, String>;

    /// What a file holds; `None` when there is none.
    ///
    /// # Errors
    /// Why it cannot be read.
    fn file(&self, path: &WorkspacePath) -> Result<Option<Arc<Original>>, String>;

    /// Whether it is a folder.
    fn is_folder(&self, path: &WorkspacePath) -> bool;
}

/// Why an edit cannot be planned.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// It names a file that may not be edited.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// A link leads out.
    #[error("{path}: {reason}")]
    Link {
        /// The file as the edit names it.
        path: WorkspacePath,
        /// Where it leads.
        reason: String,
    },
    /// Two edits of one file want the same stretch.
    #[error("two edits of {path} overlap")]
    Overlap {
        /// The file.
        path: WorkspacePath,
        /// The one that begins first.
        first: Range,
        /// The other.
        second: Range,
    },
    /// The file has no such range.
    #[error("{path} has no range {}:{} to {}:{}", range.start.line + 1, range.start.column + 1, range.end.line + 1, range.end.column + 1)]
    NoSuchRange {
        /// The file.
        path: WorkspacePath,
        /// The range.
        range: Range,
    },
    /// A file that is to be edited, renamed or deleted is not there.
    #[error("there is no file {0}")]
    Missing(WorkspacePath),
    /// A file that is to be created is there.
    #[error("{0} exists already")]
    Exists(WorkspacePath),
    /// A file cannot be read.
    #[error("{path} cannot be read: {reason}")]
    Unreadable {
        /// The file.
        path: WorkspacePath,
        /// Why.
        reason: String,
    },
    /// A text cannot be written.
    #[error("{path} cannot be written: {reason}")]
    Unwritable {
        /// The file.
        path: WorkspacePath,
        /// Why.
        reason: EncodeError,
    },
    /// Nothing of a file would change but whether it is executable.
    #[error("only whether {path} is executable would change, and that is not edited")]
    OnlyMode {
        /// The file.
        path: WorkspacePath,
        /// Whether it would be.
        executable: bool,
    },
    /// A folder is named where a file should be.
    #[error("{0} is a folder, and only files are edited")]
    Folder(WorkspacePath),
    /// Hunks of a diff do not fit.
    #[error("{} hunk{} of the diff do{} not fit {path}", conflicts.len(), if conflicts.len() == 1 { "" } else { "s" }, if conflicts.len() == 1 { "es" } else { "" })]
    Conflict {
        /// The file.
        path: WorkspacePath,
        /// The hunks.
        conflicts: Vec<Conflict>,
    },
}

/// What happens to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// The file, under its new name when it gets one.
    pub path: WorkspacePath,
    /// Its old name, when it gets a new one.
    pub from: Option<WorkspacePath>,
    /// What it holds now; `None` for a new file.
    pub before: Option<Arc<Original>>,
    /// What it will hold; `None` for one that goes.
    pub after: Option<Vec<u8>>,
    /// Whether it will be executable.
    executable: bool,
}

impl FileChange {
    /// A file that comes or goes.
    #[must_use]
    pub const fn of_one(path: WorkspacePath, before: Option<Arc<Original>>, after: Option<Vec<u8>>) -> Self {
        Self { path, from: None, before, after, executable: false }
    }

    /// git's modes of the file before and after; where it does not exist, the other one.
    #[must_use]
    pub fn modes(&self) -> (&'static str, &'static str) {
        let mode = |executable| if executable { "100755" } else { "100644" };
        let before = self.before.as_ref().map_or(self.executable, |original| original.executable);
        let after = if self.after.is_some() { self.executable } else { before };
        (mode(before), mode(after))
    }

    /// Whether the file is to be executable, where that is new.
    #[must_use]
    pub fn new_mode(&self) -> Option<bool> {
        let was = self.before.as_ref().is_some_and(|original| original.executable);
        (self.after.is_some() && was != self.executable).then_some(self.executable)
    }

    /// The same file with other contents.
    #[must_use]
    pub fn between(&self, before: Arc<Original>, after: Vec<u8>) -> Self {
        Self { before: Some(before), after: Some(after), ..self.clone() }
    }

    /// The text that a language server is to be shown; `None` when the file goes.
    #[must_use]
    pub fn text(&self) -> Option<String> {
        Some(decode_source(self.after.clone()?).text)
    }
}

/// What happens to every file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// Invariant: by path, each path once, none that stays as it is.
    changes: Vec<FileChange>,
}

impl Plan {
    /// A plan of these changes, each of another file.
    #[must_use]
    pub fn of(mut changes: Vec<FileChange>) -> Self {
        changes.sort_by(|a, b| a.path.cmp(&b.path));
        changes.dedup_by(|a, b| a.path == b.path);
        Self { changes }
    }

    /// The changes, in the order of their paths.
    #[must_use]
    pub fn changes(&self) -> &[FileChange] {
        &self.changes
    }

    /// Every path that is written, made or removed.
    pub fn paths(&self) -> impl Iterator<Item = &WorkspacePath> {
        self.changes.iter().flat_map(|change| std::iter::once(&change.path).chain(&change.from))
    }

    /// Whether files only get other contents.
    #[must_use]
    pub fn only_modifies(&self) -> bool {
        self.changes
            .iter()
            .all(|change| change.from.is_none() && change.before.is_some() && change.after.is_some())
    }
}

/// A file in thought.
#[derive(Debug, Clone)]
struct State {
    bytes: Option<Vec<u8>>,
    executable: bool,
    /// The file of the base whose content it has.
    origin: Option<WorkspacePath>,
}

/// A workspace in thought.
pub struct Planner<'b> {
    root: &'b AbsPath,
    base: &'b dyn Base,
    /// What the columns of edits count.
    unit: ColumnUnit,
    states: BTreeMap<WorkspacePath, State>,
}

impl<'b> Planner<'b> {
    /// A workspace as it is. Columns of edits count `unit`.
    #[must_use]
    pub fn new(root: &'b AbsPath, base: &'b dyn Base, unit: ColumnUnit) -> Self {
        Self { root, base, unit, states: BTreeMap::new() }
    }

    /// Makes an LSP edit.
    ///
    /// # Errors
    /// See [`PlanError`].
    pub fn workspace_edit(&mut self, edit: &WorkspaceEdit) -> Result<(), PlanError> {
        let Some(changes) = &edit.document_changes else {
            // Two spellings of one file are one file.
            let mut by_file: BTreeMap<WorkspacePath, Vec<TextEdit>> = BTreeMap::new();
            for (uri, edits) in &edit.changes {
                by_file.entry(self.target(uri)?).or_default().extend(edits.iter().cloned());
            }
            return by_file.iter().try_for_each(|(path, edits)| self.text_edits(path, edits));
        };
        // Edits of one document may come in parts; what stands between them decides whether they are of one text.
        let mut pending: BTreeMap<WorkspacePath, Vec<TextEdit>> = BTreeMap::new();
        for change in changes {
            match change {
                DocumentChange::Edit(edit) => {
                    let path = self.target(&edit.text_document.uri)?;
                    pending.entry(path).or_default().extend(edit.edits.iter().cloned());
                }
                DocumentChange::Operation(operation) => {
                    for (path, edits) in std::mem::take(&mut pending) {
                        self.text_edits(&path, &edits)?;
                    }
                    self.operation(operation)?;
                }
            }
        }
        pending.iter().try_for_each(|(path, edits)| self.text_edits(path, edits))
    }

    /// Makes a unified diff.
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
            let is_new = patch.operation == Operation::Create;
            let from = if is_new { None } else { Some(self.existing(&old)?) };
            if matches!(patch.operation, Operation::Create | Operation::Rename | Operation::Copy)
                && self.content(&new)?.is_some()
            {
                return Err(PlanError::Exists(new));
            }
            let before = from.as_ref().and_then(|state| state.bytes.clone()).unwrap_or_default();
            let after = apply(&before, patch)
                .map_err(|conflicts| PlanError::Conflict { path: old.clone(), conflicts })?;
            let executable =
                patch.executable.or(from.as_ref().map(|state| state.executable)).unwrap_or(false);
            if matches!(patch.operation, Operation::Rename | Operation::Delete) {
                self.states.insert(old.clone(), State { bytes: None, executable: false, origin: None });
            }
            if patch.operation == Operation::Delete {
                // What a diff deletes it has to know whole.
                if !after.is_empty() {
                    let found = String::from_utf8_lossy(&after).into_owned();
                    let conflict = Conflict {
                        line: patch.line,
                        at: 1,
                        expected: String::new(),
                        wanted: String::new(),
                        found,
                    };
                    return Err(PlanError::Conflict { path: old, conflicts: vec![conflict] });
                }
            } else {
                let origin = if patch.operation == Operation::Copy {
                    None
                } else {
                    from.and_then(|state| state.origin)
                };
                self.states.insert(new, State { bytes: Some(after), executable, origin });
            }
        }
        Ok(())
    }

    /// What came of it.
    ///
    /// # Errors
    /// When a file that was made cannot be read.
    pub fn plan(self) -> Result<Plan, PlanError> {
        let mut changes = BTreeMap::new();
        let mut moved = Vec::new();
        for (path, state) in &self.states {
            let before = self.base_file(path)?;
            let origin = state.origin.as_ref().filter(|origin| *origin != path);
            // A file whose old name stays, or goes to another file, is a new one.
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
            let change = FileChange {
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
        Ok(Plan { changes: changes.into_values().collect() })
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

    /// A file as it is by now.
    fn state(&self, path: &WorkspacePath) -> Result<State, PlanError> {
        if let Some(state) = self.states.get(path) {
            return Ok(state.clone());
        }
        let original = self.base_file(path)?;
        let executable = original.as_ref().is_some_and(|original| original.executable);
        let origin = original.is_some().then(|| path.clone());
        Ok(State { bytes: original.map(|original| original.bytes.clone()), executable, origin })
    }

    fn content(&self, path: &WorkspacePath) -> Result<Option<Vec<u8>>, PlanError> {
        Ok(self.state(path)?.bytes)
    }

    fn existing(&self, path: &WorkspacePath) -> Result<State, PlanError> {
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
        let after = spliced(&decoded.text, &splices);
        let after = encode(&bytes, &decoded.text, &after, decoded.encoding)
            .map_err(|reason| PlanError::Unwritable { path: path.clone(), reason })?;
        self.states.insert(path.clone(), State { bytes: Some(after), ..state });
        Ok(())
    }

    fn operation(&mut self, operation: &FileOperation) -> Result<(), PlanError> {
        let gone = || State { bytes: None, executable: false, origin: None };
        match operation {
            FileOperation::Create { uri, options, .. } => {
                let path = self.target(uri)?;
                if self.is_free(&path, *options)? {
                    // What is overwritten keeps what else belongs to it.
                    let executable = self.state(&path)?.executable;
                    self.states.insert(path, State { bytes: Some(Vec::new()), executable, origin: None });
                }
            }
            FileOperation::Rename { old_uri, new_uri, options, .. } => {
                let (old, new) = (self.target(old_uri)?, self.target(new_uri)?);
                let state = self.existing(&old)?;
                if old != new && self.is_free(&new, *options)? {
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

    /// Whether a file is to be made here: there is none, or it is to be replaced.
    fn is_free(&self, path: &WorkspacePath, options: Option<OperationOptions>) -> Result<bool, PlanError> {
        let options = options.unwrap_or_default();
        if self.content(path)?.is_none() || options.overwrite == Some(true) {
            Ok(true)
        } else if options.ignore_if_exists == Some(true) {
            Ok(false)
        } else {
            Err(PlanError::Exists(path.clone()))
        }
    }
}

#[cfg(test)]
mod tests;
