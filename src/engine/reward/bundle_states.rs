//! Finds the code that a bundle was computed from. Bundles contain only its digest, not the code. It may still be in
//! the working tree, or be the working tree without the bundle's own edit, or be a recent revision.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use super::source::apply_edit;
use crate::digest::Digest;
use crate::engine::failure::Failure;
use crate::engine::inputs::{InputScanner, Inputs};
use crate::engine::settings::Settings;
use crate::model::bundle::Bundle;
use crate::model::edits::EditedFile;
use crate::path::{AbsPath, DocUri, WorkspacePath};
use crate::workspace::file_tree::FileTree;
use crate::workspace::history::visit_recent;
use crate::workspace::snapshot::digest_of;

/// The number of revisions that are searched.
const MAX_REVISIONS: usize = 200;

type Digests = BTreeMap<WorkspacePath, Option<Digest>>;

/// Finds the code of bundles.
#[derive(Clone)]
pub(super) struct BundleStates {
    inputs: Arc<Inputs>,
    root: AbsPath,
}

/// Whether a state is the one before a bundle's edit, or after it.
enum EditSide {
    Before,
    After,
}

impl BundleStates {
    /// Scans the workspace.
    pub(super) async fn scan(settings: &Settings) -> Result<Self, Failure> {
        let settings = Arc::new(settings.clone());
        let inputs = InputScanner::new(&settings, false).scan_since(Instant::now(), &settings, None).await?;
        Ok(Self::new(&settings, inputs))
    }

    /// Searches the workspace that these inputs are of.
    pub(super) fn new(settings: &Settings, inputs: Arc<Inputs>) -> Self {
        Self { inputs, root: settings.root.clone() }
    }

    /// The files of the state that a bundle leads to: the code that it was computed from, with its own edit applied.
    /// If `ignored`, files that git ignores are included from a working tree. Blocking.
    ///
    /// # Errors
    /// The reason why the state cannot be found.
    pub(super) fn tree(&self, bundle: &Bundle, ignored: bool) -> Result<FileTree, String> {
        let Some(environment) = &bundle.environment else {
            return Err("it was not computed from code".to_owned());
        };
        let wanted = environment.workspace.digest;
        let edits = bundle.edits.as_ref();
        let files = edits.map(|edits| edits.files.as_slice()).unwrap_or_default();
        let edit_side = |digests: &Digests| {
            if self.inputs.digest_with(digest_of(digests)) == wanted {
                return Some(EditSide::Before);
            }
            let before = before_edit(digests, files)?;
            (self.inputs.digest_with(digest_of(&before)) == wanted).then_some(EditSide::After)
        };
        let mut found = edit_side(self.inputs.snapshot.files()).map(|edit_side| (None, edit_side));
        if found.is_none() {
            visit_recent(&self.root, MAX_REVISIONS, |name, digests| {
                found = edit_side(&digests).map(|edit_side| (Some(name.to_owned()), edit_side));
                found.is_none()
            });
        }
        let Some((revision, edit_side)) = found else {
            return Err(format!(
                "its code is not in the working tree and not in the last {MAX_REVISIONS} revisions, or the installed packages differ"
            ));
        };
        let tree = match revision {
            None if ignored => FileTree::of_folder(&self.root),
            None => FileTree::of_worktree(&self.root),
            Some(name) => {
                FileTree::of_revision(&self.root, &name).map_err(|error| error.to_string())?.without_omitted()
            }
        };
        match edit_side {
            EditSide::Before if !files.is_empty() => {
                let content = serde_json::to_vec(bundle).map_err(|error| error.to_string())?;
                apply_edit(&tree, &self.root, &content)
                    .map_err(|why| format!("its edit cannot be applied again: {why}"))
            }
            EditSide::Before | EditSide::After => Ok(tree),
        }
    }
}

/// Digests as they were before an edit; `None` if they are not those after it.
fn before_edit(digests: &Digests, edited: &[EditedFile]) -> Option<Digests> {
    // The digests are those of Python files, some of which are scripts without a suffix.
    let is_code = |path: &&WorkspacePath| path.is_python() || digests.contains_key(*path);
    let path = |uri: &DocUri| uri.workspace_path().filter(is_code).cloned();
    let mut before = digests.clone();
    for file in edited {
        let Some(now) = path(&file.uri) else { continue };
        if digests.get(&now).copied().flatten() != file.after {
            return None;
        }
        before.remove(&now);
    }
    for file in edited {
        let then = path(file.from.as_ref().unwrap_or(&file.uri));
        if let (Some(then), Some(digest)) = (then, file.before) {
            before.insert(then, Some(digest));
        }
    }
    (!edited.is_empty()).then_some(before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_before_an_edit() {
        let path = |name: &str| WorkspacePath::new(name).unwrap();
        let digest = |text: &str| Some(Digest::of(text.as_bytes()));
        let file = |json: serde_json::Value| serde_json::from_value::<EditedFile>(json).unwrap();
        let (old, new) = (digest("old"), digest("new"));
        let moved =
            file(serde_json::json!({"uri": "b.py", "change": "rename", "from": "a.py", "insertions": 1,
            "deletions": 1, "before": old, "after": new}));
        let after = Digests::from([(path("b.py"), new), (path("c.py"), old)]);
        let before = Digests::from([(path("a.py"), old), (path("c.py"), old)]);
        assert_eq!(before_edit(&after, std::slice::from_ref(&moved)), Some(before.clone()));
        assert_eq!(before_edit(&before, &[moved]), None);
        assert_eq!(before_edit(&before, &[]), None);
    }
}
