//! The files of one state of a workspace, as far as a language server reads them: sources, markers and configuration, in memory.
//!
//! A state comes from a folder or from a revision, is changed in thought, and can be laid out in another folder, so that it can
//! be looked at without touching where it came from.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::files::read_bytes;
use super::history::{HistoryError, Past, ignored};
use crate::path::{AbsPath, WorkspacePath};
use crate::tape::Tape;

/// What a file holds in a state; nothing where there is none.
type Held<'t> = Option<&'t Arc<Vec<u8>>>;

/// What files hold in one state and in another.
pub type Difference<'t> = BTreeMap<&'t WorkspacePath, (Held<'t>, Held<'t>)>;

/// The files of one state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileTree {
    /// What every file holds.
    pub files: BTreeMap<WorkspacePath, Arc<Vec<u8>>>,
}

impl FileTree {
    /// The state of a folder. What a server does not look into is left out: folders whose name begins with a dot, installed
    /// packages, virtual environments.
    #[must_use]
    pub fn of_folder(root: &AbsPath) -> Self {
        let mut tree = Self::default();
        let mut folders = vec![String::new()];
        while let Some(folder) = folders.pop() {
            let here = if folder.is_empty() { root.clone() } else { root.join(&folder) };
            for entry in std::fs::read_dir(here.as_path()).into_iter().flatten().flatten() {
                let Ok(name) = entry.file_name().into_string() else { continue };
                let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
                // A link to a folder could lead round in circles.
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    let environment = root.join(&path).join("pyvenv.cfg").as_path().exists();
                    if !is_skipped(&name) && !environment {
                        folders.push(path);
                    }
                } else if entry.file_type().is_ok_and(|kind| kind.is_symlink()) {
                    // Neither does a revision have what a link leads to.
                } else if let Some(path) = WorkspacePath::new(&path).filter(is_read)
                    && let Ok(bytes) = read_bytes(&root.join(path.as_str()))
                {
                    tree.files.insert(path, Arc::new(bytes));
                }
            }
        }
        tree
    }

    /// The state of a working tree: a folder without what git ignores there.
    #[must_use]
    pub fn of_worktree(root: &AbsPath) -> Self {
        let mut tree = Self::of_folder(root);
        if let Some(ignores) = ignored(root) {
            tree.files.retain(|path, _| !ignores(path));
        }
        tree
    }

    /// The state of the workspace at `root` at a revision.
    ///
    /// # Errors
    /// When there is no such revision.
    pub fn of_revision(root: &AbsPath, revision: &str) -> Result<Self, HistoryError> {
        let past = Past::at(root, revision, &Tape::off())?;
        let kept = |path: &WorkspacePath| is_read(path) && !path.as_str().split('/').any(is_skipped);
        let files = past.files(kept).into_iter().map(|(path, bytes)| (path, Arc::new(bytes)));
        Ok(Self { files: files.collect() })
    }

    /// What differs in another state: what each file holds here and there.
    #[must_use]
    pub fn difference<'t>(&'t self, other: &'t Self) -> Difference<'t> {
        let paths = self.files.keys().chain(other.files.keys());
        let both = paths.map(|path| (path, (self.files.get(path), other.files.get(path))));
        both.filter(|(_, (here, there))| here != there).collect()
    }

    /// Lays the files out in an empty folder.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn write_to(&self, folder: &AbsPath) -> std::io::Result<()> {
        for (path, bytes) in &self.files {
            let place = folder.join(path.as_str());
            std::fs::create_dir_all(place.parent().as_path())?;
            std::fs::write(place.as_path(), bytes.as_slice())?;
        }
        Ok(())
    }
}

/// Whether a server may read a file of this name: a source, a marker, or configuration.
#[must_use]
pub fn is_read(path: &WorkspacePath) -> bool {
    let name = path.as_str().rsplit('/').next().unwrap_or_default();
    path.is_python() || name == "py.typed" || name.ends_with(".toml") || name.ends_with(".json")
}

fn is_skipped(name: &str) -> bool {
    name.starts_with('.') || matches!(name, "node_modules" | "__pycache__" | "site-packages")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_read_changed_and_laid_out() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        for path in [
            "a.py",
            "p/b.pyi",
            "p/py.typed",
            "pyrightconfig.json",
            ".git/x.py",
            "v/pyvenv.cfg",
            "v/lib/c.py",
            "d.txt",
        ] {
            write(path, path);
        }
        let tree = FileTree::of_folder(&AbsPath::new(folder.path()).unwrap());
        let names: Vec<&str> = tree.files.keys().map(WorkspacePath::as_str).collect();
        assert_eq!(names, ["a.py", "p/b.pyi", "p/py.typed", "pyrightconfig.json"]);
        let other = tempfile::tempdir().unwrap();
        let other = AbsPath::new(other.path()).unwrap();
        tree.write_to(&other).unwrap();
        let mut copy = FileTree::of_folder(&other);
        assert_eq!(copy, tree);
        copy.files.remove(&WorkspacePath::new("a.py").unwrap());
        assert_eq!(tree.difference(&copy).len(), 1);
        std::fs::remove_dir_all(other.as_path()).unwrap();
    }

    #[test]
    fn a_working_tree_is_what_a_revision_could_have() {
        let folder = tempfile::tempdir().unwrap();
        let root = AbsPath::new(folder.path()).unwrap();
        let write = |path: &str, text: &str| std::fs::write(root.join(path).as_path(), text).unwrap();
        git2::Repository::init(folder.path()).unwrap();
        write(".gitignore", "made.py\n");
        write("made.py", "x = 1\n");
        write("new.py", "y = 1\n");
        std::os::unix::fs::symlink("new.py", root.join("link.py").as_path()).unwrap();
        let names = |tree: FileTree| tree.files.keys().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(names(FileTree::of_worktree(&root)), ["new.py"]);
        assert_eq!(names(FileTree::of_folder(&root)), ["made.py", "new.py"]);
    }
}
