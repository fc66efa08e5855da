//! Loads what a caller names as a base or a head: a revision, a folder, the working tree, a diff.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::bundle_states::BundleStates;
use crate::edit::{Base, EditPlan, Original, Planner};
use crate::engine::refactor::input::{ParsedEdit, parse_edit};
use crate::model::bundle::Bundle;
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::model::request::EditInput;
use crate::path::{AbsPath, WorkspacePath};
use crate::tape::Tape;
use crate::text::ColumnUnit;
use crate::workspace::file_tree::{FileTree, is_server_input};
use crate::workspace::history::RevisionFiles;

/// A state of the workspace, as the caller names it.
#[derive(Debug, Clone)]
pub enum StateSource {
    /// A revision of the repository around the workspace.
    Revision(String),
    /// A folder with the layout of the workspace.
    Folder(AbsPath),
    /// The working tree, without the files that git ignores, as in a revision.
    Worktree(AbsPath),
    /// An edit of the base: a unified diff, a `WorkspaceEdit`, or a bundle with edits.
    Edit(Vec<u8>),
    /// The state that a bundle leads to: the code that it was computed from, with its own edit applied. As a head, a
    /// bundle with edits is an edit of the base.
    Bundle(Box<Bundle>),
    /// The base with these contents of files; `None` deletes a file.
    Contents(BTreeMap<String, Option<String>>),
    /// A state that could not be loaded.
    Missing(Box<ErrorBody>),
}

/// Why a state cannot be loaded.
pub(super) enum SourceError {
    /// The state does not exist or cannot be read.
    NotLoaded(ErrorBody),
    /// The edit does not apply to the base.
    DoesNotApply(String),
}

/// Where states are searched.
#[derive(Clone)]
pub(super) struct SourceContext {
    /// The workspace.
    pub(super) root: AbsPath,
    /// Finds the code of bundles, if any are named.
    pub(super) bundle_states: Option<BundleStates>,
}

/// Whether the repository around a workspace has a revision of this name.
#[must_use]
pub fn is_revision(root: &AbsPath, name: &str) -> bool {
    RevisionFiles::at(root, name, &Tape::off()).is_ok()
}

impl StateSource {
    /// The files of the state. Blocking.
    pub(super) fn tree(
        &self,
        context: &SourceContext,
        base: Option<&FileTree>,
    ) -> Result<FileTree, SourceError> {
        let root = &context.root;
        match self {
            Self::Missing(error) => Err(SourceError::NotLoaded((**error).clone())),
            Self::Bundle(bundle) => match base {
                Some(base) if bundle.edits.is_some() => {
                    let content = serde_json::to_vec(bundle).unwrap_or_default();
                    apply_edit(base, root, &content).map_err(SourceError::DoesNotApply)
                }
                _ => {
                    let unknown = || Err("it was not searched for".to_owned());
                    let found = context
                        .bundle_states
                        .as_ref()
                        .map_or_else(unknown, |bundle_states| bundle_states.tree(bundle, false));
                    found.map_err(|why| {
                        let message = format!("the state of the bundle {} is not known: {why}", bundle.bundle_id);
                        SourceError::NotLoaded(ErrorBody::new(ErrorSymbol::VersionSkew, message).hint(
                            "name the revision that it was computed from as rev:NAME, or compare the recorded bundles with `lanser reward`",
                        ))
                    })
                }
            },
            Self::Folder(folder) => Ok(FileTree::of_folder(folder)),
            Self::Worktree(folder) => Ok(FileTree::of_worktree(folder)),
            Self::Revision(revision) => {
                FileTree::of_revision(root, revision).map(FileTree::without_omitted).map_err(|error| {
                    let hint = "name a revision, a folder, a bundle, a file with a diff, or WORKTREE";
                    SourceError::NotLoaded(
                        ErrorBody::new(ErrorSymbol::NotFound, error.to_string()).hint(hint),
                    )
                })
            }
            Self::Edit(content) => {
                let base = base.ok_or_else(edit_as_base)?;
                apply_edit(base, root, content).map_err(SourceError::DoesNotApply)
            }
            Self::Contents(contents) => {
                let mut tree = base.ok_or_else(edit_as_base)?.clone();
                for (name, content) in contents {
                    let invalid =
                        || SourceError::DoesNotApply(format!("{name:?} is not a path in the workspace"));
                    let path = WorkspacePath::new(name).ok_or_else(invalid)?;
                    match content {
                        // Files that no server reads are not part of the state.
                        Some(text) if is_server_input(&path, text.as_bytes()) => {
                            tree.files.insert(path, Arc::new(text.clone().into_bytes()));
                        }
                        _ => {
                            tree.files.remove(&path);
                        }
                    }
                }
                Ok(tree)
            }
        }
    }
}

fn edit_as_base() -> SourceError {
    let error = ErrorBody::new(ErrorSymbol::Usage, "an edit cannot be the base");
    SourceError::NotLoaded(error.hint("name a revision, a folder, a bundle or WORKTREE"))
}

/// The base with an edit applied.
pub(super) fn apply_edit(base: &FileTree, root: &AbsPath, content: &[u8]) -> Result<FileTree, String> {
    let ParsedEdit { edit, patches, unit, .. } =
        parse_edit(&EditInput::new(content.to_vec()), ColumnUnit::Utf16).map_err(|error| error.message)?;
    let files = TreeBase(base);
    let mut planner = Planner::new(root, &files, unit);
    let made = match &edit {
        Some(edit) => planner.workspace_edit(edit),
        None => planner.patches(&patches),
    };
    let plan: EditPlan = made.and_then(|()| planner.plan()).map_err(|error| error.to_string())?;
    let mut tree = base.clone();
    for change in plan.changes() {
        if let Some(from) = &change.from {
            tree.files.remove(from);
        }
        match &change.after {
            // Files that no server reads are not part of the state, even if they were before.
            Some(after) if is_server_input(&change.path, after) => {
                tree.files.insert(change.path.clone(), Arc::new(after.clone()));
            }
            _ => {
                tree.files.remove(&change.path);
            }
        }
    }
    Ok(tree)
}

/// The files of a state as the base of an edit.
struct TreeBase<'t>(&'t FileTree);

impl Base for TreeBase<'_> {
    fn resolve(&self, path: &WorkspacePath) -> Result<WorkspacePath, String> {
        Ok(path.clone())
    }

    fn file(&self, path: &WorkspacePath) -> Result<Option<Arc<Original>>, String> {
        let bytes = self.0.files.get(path);
        Ok(bytes.map(|bytes| Arc::new(Original { bytes: bytes.to_vec(), executable: false })))
    }

    fn is_folder(&self, path: &WorkspacePath) -> bool {
        let below = format!("{path}/");
        self.0.files.keys().any(|file| file.as_str().starts_with(&below))
    }
}
