//! What a caller names as a base or a head: a revision, a folder, the working tree, a diff.

use std::sync::Arc;

use super::origin::Origins;
use crate::edit::{Base, Original, Plan, Planner};
use crate::model::bundle::Bundle;
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::model::request::EditInput;
use crate::orchestrator::refactor::input::{Input, read};
use crate::path::{AbsPath, WorkspacePath};
use crate::tape::Tape;
use crate::text::ColumnUnit;
use crate::workspace::history::Past;
use crate::workspace::tree::{FileTree, is_read};

/// A state of the workspace as it is named.
#[derive(Debug, Clone)]
pub enum Source {
    /// A revision of the repository around the workspace.
    Revision(String),
    /// A folder that is laid out as the workspace is.
    Folder(AbsPath),
    /// The working tree as it is: what git ignores is no part of it, as it is none of a revision.
    Worktree(AbsPath),
    /// An edit of the base: a unified diff, a `WorkspaceEdit`, or a bundle with edits.
    Edit(Vec<u8>),
    /// What a bundle leads to: what it was asked about, with its own edit made. As a head, one with edits is an edit of the base.
    Bundle(Box<Bundle>),
    /// What was named could not be had.
    Missing(Box<ErrorBody>),
}

/// Why there is no such state.
pub(super) enum Wrong {
    /// It cannot be had.
    Named(ErrorBody),
    /// The edit does not fit the base.
    Unfit(String),
}

/// What sources are looked for in.
#[derive(Clone)]
pub(super) struct Places {
    /// The workspace.
    pub(super) root: AbsPath,
    /// The code of bundles, where some are named.
    pub(super) origins: Option<Origins>,
}

/// Whether the repository around a workspace has a revision of this name.
#[must_use]
pub fn is_revision(root: &AbsPath, name: &str) -> bool {
    Past::at(root, name, &Tape::off()).is_ok()
}

impl Source {
    /// The files of the state. Blocking.
    pub(super) fn tree(&self, places: &Places, base: Option<&FileTree>) -> Result<FileTree, Wrong> {
        let root = &places.root;
        match self {
            Self::Missing(error) => Err(Wrong::Named((**error).clone())),
            Self::Bundle(bundle) => match base {
                Some(base) if bundle.edits.is_some() => {
                    let content = serde_json::to_vec(bundle).unwrap_or_default();
                    edited(base, root, &content).map_err(Wrong::Unfit)
                }
                _ => {
                    let unknown = || Err("nobody looked for it".to_owned());
                    let found =
                        places.origins.as_ref().map_or_else(unknown, |origins| origins.tree(bundle, false));
                    found.map_err(|why| {
                        let message = format!("the state of the bundle {} is not known: {why}", bundle.bundle_id);
                        Wrong::Named(ErrorBody::new(ErrorSymbol::VersionSkew, message).hint(
                            "name the revision that it was made from as rev:NAME; `lanser reward` compares what bundles recorded",
                        ))
                    })
                }
            },
            Self::Folder(folder) => Ok(FileTree::of_folder(folder)),
            Self::Worktree(folder) => Ok(FileTree::of_worktree(folder)),
            Self::Revision(revision) => FileTree::of_revision(root, revision).map_err(|error| {
                let hint = "name a revision, a folder, a bundle, a file with a diff, or WORKTREE";
                Wrong::Named(ErrorBody::new(ErrorSymbol::NotFound, error.to_string()).hint(hint))
            }),
            Self::Edit(content) => {
                let Some(base) = base else {
                    let error = ErrorBody::new(ErrorSymbol::Usage, "an edit is no base");
                    return Err(Wrong::Named(error.hint("name a revision, a folder, a bundle or WORKTREE")));
                };
                edited(base, root, content).map_err(Wrong::Unfit)
            }
        }
    }
}

/// A base with an edit made to it.
pub(super) fn edited(base: &FileTree, root: &AbsPath, content: &[u8]) -> Result<FileTree, String> {
    let Input { edit, patches, unit, .. } =
        read(&EditInput::new(content.to_vec()), ColumnUnit::Utf16).map_err(|error| error.message)?;
    let files = InMemory(base);
    let mut planner = Planner::new(root, &files, unit);
    let made = match &edit {
        Some(edit) => planner.workspace_edit(edit),
        None => planner.patches(&patches),
    };
    let plan: Plan = made.and_then(|()| planner.plan()).map_err(|error| error.to_string())?;
    let mut tree = base.clone();
    for change in plan.changes() {
        if let Some(from) = &change.from {
            tree.files.remove(from);
        }
        match &change.after {
            // What no server reads is no part of the state, whatever it was before.
            Some(after) if is_read(&change.path) => {
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
struct InMemory<'t>(&'t FileTree);

impl Base for InMemory<'_> {
    fn resolve(&self, path: &WorkspacePath) -> Result<WorkspacePath, String> {
        Ok(path.clone())
    }

    fn file(&self, path: &WorkspacePath) -> Result<Option<Arc<Original>>, String> {
        let held = self.0.files.get(path);
        Ok(held.map(|bytes| Arc::new(Original { bytes: bytes.to_vec(), executable: false })))
    }

    fn is_folder(&self, path: &WorkspacePath) -> bool {
        let below = format!("{path}/");
        self.0.files.keys().any(|file| file.as_str().starts_with(&below))
    }
}
