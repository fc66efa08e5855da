//! Old states of the workspace out of git: the files of a revision, and where they went since.
//!
//! Read with libgit2, which writes nothing here and runs no filter and no hook. What it refuses (another object format, a
//! repository that belongs to somebody else) is told, not worked around.

use std::cell::RefCell;
use std::collections::BTreeMap;

use git2::{Delta, DiffFindOptions, DiffOptions, ObjectType, Repository, Tree};

use super::files::{MAX_FILE_BYTES, canonical};
use crate::path::{AbsPath, WorkspacePath};

/// Why a revision cannot be had.
#[derive(Debug, Clone, thiserror::Error)]
pub enum HistoryError {
    /// There is no repository around the workspace, or none that can be read.
    #[error("the workspace is in no git repository that can be read: {0}")]
    NoRepository(String),
    /// The repository has no such revision.
    #[error("git knows no revision {revision}: {reason}")]
    NoRevision {
        /// What was asked for.
        revision: String,
        /// The words of git.
        reason: String,
    },
}

/// The state of the workspace at a revision.
pub struct Past {
    repository: Repository,
    tree: git2::Oid,
    /// The workspace's folder in the repository, with a slash at its end unless it is empty.
    prefix: String,
    renames: RefCell<Option<BTreeMap<WorkspacePath, WorkspacePath>>>,
}

impl Past {
    /// The state of the workspace at `root` at a revision.
    ///
    /// # Errors
    /// See [`HistoryError`].
    pub fn at(root: &AbsPath, revision: &str) -> Result<Self, HistoryError> {
        let no_repository = |error: git2::Error| HistoryError::NoRepository(error.message().to_owned());
        let repository = Repository::discover(root.as_path()).map_err(no_repository)?;
        let folder = repository.workdir().and_then(|folder| AbsPath::new(folder).ok());
        let folder = folder.ok_or_else(|| HistoryError::NoRepository("it has no working tree".to_owned()))?;
        let inside = canonical(root);
        let prefix = inside.strip_prefix(&canonical(&folder)).unwrap_or_default();
        let prefix = if prefix.is_empty() { String::new() } else { format!("{prefix}/") };
        let tree = {
            let found = repository.revparse_single(revision).and_then(|object| object.peel(ObjectType::Tree));
            let no_revision = |error: git2::Error| HistoryError::NoRevision {
                revision: revision.to_owned(),
                reason: error.message().to_owned(),
            };
            found.map_err(no_revision)?.id()
        };
        Ok(Self { repository, tree, prefix, renames: RefCell::new(None) })
    }

    fn tree(&self) -> Option<Tree<'_>> {
        self.repository.find_tree(self.tree).ok()
    }

    /// The content of a file; `None` when there was no such file.
    #[must_use]
    pub fn read(&self, path: &WorkspacePath) -> Option<Vec<u8>> {
        let entry = self.tree()?.get_path(format!("{}{path}", self.prefix).as_ref()).ok()?;
        let blob = self.repository.find_blob(entry.id()).ok()?;
        (blob.size() as u64 <= MAX_FILE_BYTES).then(|| blob.content().to_vec())
    }

    /// Whether a path was a file, a folder, or nothing (`None`).
    #[must_use]
    pub fn is_folder(&self, path: &str) -> Option<bool> {
        if path.is_empty() && self.prefix.is_empty() {
            return Some(true);
        }
        let whole = format!("{}{path}", self.prefix);
        let entry = self.tree()?.get_path(whole.trim_end_matches('/').as_ref()).ok()?;
        match entry.kind() {
            Some(ObjectType::Tree) => Some(true),
            Some(ObjectType::Blob) => Some(false),
            _ => None,
        }
    }

    /// The names in a folder, sorted.
    #[must_use]
    pub fn list(&self, path: &str) -> Vec<String> {
        let whole = format!("{}{path}", self.prefix);
        let whole = whole.trim_end_matches('/');
        let root = self.tree();
        let folder = if whole.is_empty() {
            root
        } else {
            let entry = root.as_ref().and_then(|tree| tree.get_path(whole.as_ref()).ok());
            entry.and_then(|entry| self.repository.find_tree(entry.id()).ok())
        };
        let Some(folder) = folder else { return Vec::new() };
        let mut names: Vec<String> =
            folder.iter().filter_map(|entry| entry.name().ok().map(str::to_owned)).collect();
        names.sort_unstable();
        names
    }

    /// Every Python file.
    #[must_use]
    pub fn python_files(&self) -> Vec<WorkspacePath> {
        let mut found = Vec::new();
        let mut folders = vec![String::new()];
        while let Some(folder) = folders.pop() {
            for name in self.list(&folder) {
                let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
                match (self.is_folder(&path), WorkspacePath::new(&path)) {
                    (Some(true), _) => folders.push(path),
                    (Some(false), Some(path)) if path.is_python() => found.push(path),
                    _ => {}
                }
            }
        }
        found.sort();
        found
    }

    /// The present path of a file that git takes to have been renamed since.
    #[must_use]
    pub fn renamed(&self, path: &WorkspacePath) -> Option<WorkspacePath> {
        let mut renames = self.renames.borrow_mut();
        renames.get_or_insert_with(|| self.find_renames().unwrap_or_default()).get(path).cloned()
    }

    fn find_renames(&self) -> Result<BTreeMap<WorkspacePath, WorkspacePath>, git2::Error> {
        let tree = self.repository.find_tree(self.tree)?;
        let mut options = DiffOptions::new();
        options.include_untracked(true).recurse_untracked_dirs(true).skip_binary_check(true);
        options.pathspec(format!("{}*.py", self.prefix)).pathspec(format!("{}*.pyi", self.prefix));
        let mut diff = self.repository.diff_tree_to_workdir_with_index(Some(&tree), Some(&mut options))?;
        let mut find = DiffFindOptions::new();
        find.renames(true).for_untracked(true).rename_limit(2000);
        diff.find_similar(Some(&mut find))?;
        let local = |path: Option<&std::path::Path>| {
            path?.to_str()?.strip_prefix(&self.prefix).and_then(WorkspacePath::new)
        };
        let renamed = diff.deltas().filter(|delta| delta.status() == Delta::Renamed);
        Ok(renamed
            .filter_map(|delta| Some((local(delta.old_file().path())?, local(delta.new_file().path())?)))
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commit(repository: &Repository, message: &str) -> String {
        let mut index = repository.index().unwrap();
        index.add_all(["*"], git2::IndexAddOption::DEFAULT, None).unwrap();
        index.write().unwrap();
        let tree = repository.find_tree(index.write_tree().unwrap()).unwrap();
        let signature = git2::Signature::new("a", "a@b", &git2::Time::new(0, 0)).unwrap();
        let parent = repository.head().ok().and_then(|head| head.peel_to_commit().ok());
        let parents: Vec<_> = parent.iter().collect();
        let id = repository.commit(Some("HEAD"), &signature, &signature, message, &tree, &parents).unwrap();
        id.to_string()
    }

    #[test]
    fn files_of_a_revision_and_where_they_went() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        let repository = Repository::init(folder.path()).unwrap();
        std::fs::create_dir_all(at("ws/pkg")).unwrap();
        let text: String = (0..30).map(|n| format!("def f{n}(): return {n}\n")).collect();
        std::fs::write(at("ws/pkg/a.py"), &text).unwrap();
        std::fs::write(at("ws/b.py"), "x = 1\n").unwrap();
        let first = commit(&repository, "one");
        std::fs::remove_file(at("ws/pkg/a.py")).unwrap();
        std::fs::write(at("ws/c.py"), format!("import os\n{text}")).unwrap();
        std::fs::write(at("ws/b.py"), "x = 2\n").unwrap();
        let root = AbsPath::new(at("ws")).unwrap();
        let path = |path: &str| WorkspacePath::new(path).unwrap();
        let past = Past::at(&root, "HEAD").unwrap();
        assert_eq!(past.read(&path("pkg/a.py")).as_deref(), Some(text.as_bytes()));
        assert_eq!(past.read(&path("b.py")).as_deref(), Some(&b"x = 1\n"[..]));
        assert_eq!(past.read(&path("c.py")), None);
        assert_eq!(past.python_files(), [path("b.py"), path("pkg/a.py")]);
        assert_eq!(
            (past.list(""), past.list("pkg")),
            (vec!["b.py".to_owned(), "pkg".to_owned()], vec!["a.py".to_owned()])
        );
        assert_eq!(
            (past.is_folder("pkg"), past.is_folder("b.py"), past.is_folder("d")),
            (Some(true), Some(false), None)
        );
        assert_eq!(past.renamed(&path("pkg/a.py")), Some(path("c.py")));
        assert_eq!(past.renamed(&path("b.py")), None);
        assert!(Past::at(&root, &first[..8]).is_ok());
        assert!(matches!(Past::at(&root, "nowhere"), Err(HistoryError::NoRevision { .. })));
    }

    #[test]
    fn no_repository() {
        let folder = tempfile::tempdir().unwrap();
        let root = AbsPath::new(folder.path()).unwrap();
        assert!(matches!(Past::at(&root, "HEAD"), Err(HistoryError::NoRepository(_))));
    }
}
