//! The code that a bundle tells of, found again. Bundles hold no code, but the digest of it: the working tree may still be that, or
//! become that when the bundle's own edit is taken back, or a recent revision is.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use super::source::edited;
use crate::digest::Digest;
use crate::model::bundle::Bundle;
use crate::model::edits::EditedFile;
use crate::orchestrator::Settings;
use crate::orchestrator::failure::Failure;
use crate::orchestrator::ground::{Ground, Surveyor};
use crate::path::{AbsPath, DocUri, WorkspacePath};
use crate::workspace::history::recent;
use crate::workspace::snapshot::digest_of;
use crate::workspace::tree::FileTree;

/// How many revisions are looked at.
const MOST: usize = 200;

type Digests = BTreeMap<WorkspacePath, Option<Digest>>;

/// Finds the code of bundles.
#[derive(Clone)]
pub(super) struct Origins {
    ground: Arc<Ground>,
    root: AbsPath,
}

/// Whether a state is that before a bundle's edit, or after it.
enum Fit {
    Before,
    After,
}

impl Origins {
    /// Looks at the workspace as it is.
    pub(super) async fn new(settings: &Settings) -> Result<Self, Failure> {
        let settings = Arc::new(settings.clone());
        let ground = Surveyor::new(&settings, false).since(Instant::now(), &settings, None).await?;
        Ok(Self { ground, root: settings.root.clone() })
    }

    /// The files of the state that a bundle leads to: what it was asked about, with its own edit made; of a working tree also what git
    /// ignores, when that is wanted. Blocking.
    ///
    /// # Errors
    /// Why nobody knows them.
    pub(super) fn tree(&self, bundle: &Bundle, ignored: bool) -> Result<FileTree, String> {
        let Some(environment) = &bundle.environment else {
            return Err("it looked at no code".to_owned());
        };
        let wanted = environment.workspace.digest;
        let edits = bundle.edits.as_ref();
        let files = edits.map(|edits| edits.files.as_slice()).unwrap_or_default();
        let fit = |digests: &Digests| {
            if self.ground.digest_with(digest_of(digests)) == wanted {
                return Some(Fit::Before);
            }
            let before = taken_back(digests, files)?;
            (self.ground.digest_with(digest_of(&before)) == wanted).then_some(Fit::After)
        };
        let mut found = fit(self.ground.snapshot.files()).map(|fit| (None, fit));
        if found.is_none() {
            recent(&self.root, MOST, |name, digests| {
                found = fit(&digests).map(|fit| (Some(name.to_owned()), fit));
                found.is_none()
            });
        }
        let Some((revision, fit)) = found else {
            return Err(format!(
                "its code is neither in the working tree any more nor in the last {MOST} revisions, or the packages are others"
            ));
        };
        let tree = match revision {
            None if ignored => FileTree::of_folder(&self.root),
            None => FileTree::of_worktree(&self.root),
            Some(name) => FileTree::of_revision(&self.root, &name).map_err(|error| error.to_string())?,
        };
        match fit {
            Fit::Before if !files.is_empty() => {
                let content = serde_json::to_vec(bundle).map_err(|error| error.to_string())?;
                edited(&tree, &self.root, &content)
                    .map_err(|why| format!("its edit cannot be made again: {why}"))
            }
            Fit::Before | Fit::After => Ok(tree),
        }
    }
}

/// Digests as they were before an edit; `None` when they are not those after it.
fn taken_back(digests: &Digests, edited: &[EditedFile]) -> Option<Digests> {
    let path = |uri: &DocUri| uri.workspace_path().filter(|path| path.is_python()).cloned();
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
    fn an_edit_is_taken_back() {
        let path = |name: &str| WorkspacePath::new(name).unwrap();
        let digest = |text: &str| Some(Digest::of(text.as_bytes()));
        let file = |json: serde_json::Value| serde_json::from_value::<EditedFile>(json).unwrap();
        let (old, new) = (digest("old"), digest("new"));
        let moved =
            file(serde_json::json!({"uri": "b.py", "change": "rename", "from": "a.py", "insertions": 1,
            "deletions": 1, "before": old, "after": new}));
        let after = Digests::from([(path("b.py"), new), (path("c.py"), old)]);
        let before = Digests::from([(path("a.py"), old), (path("c.py"), old)]);
        assert_eq!(taken_back(&after, std::slice::from_ref(&moved)), Some(before.clone()));
        assert_eq!(taken_back(&before, &[moved]), None);
        assert_eq!(taken_back(&before, &[]), None);
    }
}
