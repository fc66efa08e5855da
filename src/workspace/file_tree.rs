//! The files of one state of a workspace, in memory, as far as a language server reads them: sources, markers and
//! configuration.
//!
//! A tree is read from a folder or from a git revision, can be changed in memory, and can be written to another folder
//! for analysis, so that its origin stays untouched.

use std::collections::BTreeMap;
use std::fs::{DirEntry, Metadata};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::code_folders::{CodeFolders, ENVIRONMENT_FILE, SkippedFolders, is_skipped, is_skipped_in};
use super::files::read_bytes;
use super::history::{HistoryError, RevisionFiles, ignore_filter};
use super::scripts::{
    MAX_MAYBE_SCRIPTS, folder_of, folders_of_data, is_script, is_script_content, may_be_script,
};
use crate::path::{AbsPath, WorkspacePath};
use crate::tape::Tape;

/// The content of a file; `None` when the file does not exist.
type FileContent<'t> = Option<&'t Arc<Vec<u8>>>;

/// The files that differ between two trees, with their contents in both.
pub type TreeDiff<'t> = BTreeMap<&'t WorkspacePath, (FileContent<'t>, FileContent<'t>)>;

/// The files of one state of a workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileTree {
    /// The content of each file.
    pub files: BTreeMap<WorkspacePath, Arc<Vec<u8>>>,
}

impl FileTree {
    /// Reads a folder. Folders that tools fill are omitted: hidden ones, installed packages, and virtual environments.
    #[must_use]
    pub fn of_folder(root: &AbsPath) -> Self {
        Self::read(root, &CodeFolders::None)
    }

    /// Reads a folder as a snapshot of it has it: also the omitted folders in which git tracks code.
    #[must_use]
    pub fn of_checkout(root: &AbsPath) -> Self {
        Self::read(root, &CodeFolders::of(root, SkippedFolders::ReadTracked, &CodeFolders::None, 0))
    }

    fn read(root: &AbsPath, code: &CodeFolders) -> Self {
        let mut tree = Self::default();
        let mut folders = vec![(String::new(), false)];
        while let Some((folder, is_inside_skipped)) = folders.pop() {
            let here = if folder.is_empty() { root.clone() } else { root.join(&folder) };
            let is_environment = !folder.is_empty() && here.join(ENVIRONMENT_FILE).as_path().exists();
            let mut maybe_scripts = Vec::new();
            for entry in std::fs::read_dir(here.as_path()).into_iter().flatten().flatten() {
                let Ok(name) = entry.file_name().into_string() else { continue };
                let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
                // A symbolic link to a folder is not followed: it could lead to a loop.
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    let is_omitted = match code {
                        CodeFolders::None => {
                            is_omitted(&name) || root.join(&path).join(ENVIRONMENT_FILE).as_path().exists()
                        }
                        _ => is_skipped_in(&name, is_environment),
                    };
                    let skipped = is_inside_skipped || is_omitted;
                    if !skipped || code.has(&path) {
                        folders.push((path, skipped));
                    }
                } else if entry.file_type().is_ok_and(|kind| kind.is_symlink()) {
                    // A revision does not have the content of a link's target either.
                } else if may_be_script(&name) {
                    maybe_scripts.push(entry);
                } else if let Some(path) = WorkspacePath::new(&path).filter(is_input_name)
                    && let Ok(bytes) = read_bytes(&root.join(path.as_str()))
                {
                    tree.files.insert(path, Arc::new(bytes));
                }
            }
            if maybe_scripts.len() <= MAX_MAYBE_SCRIPTS {
                tree.files.extend(maybe_scripts.iter().filter_map(|entry| read_script(root, &here, entry)));
            }
        }
        tree
    }

    /// Reads a working tree: a folder without the files that git ignores.
    #[must_use]
    pub fn of_worktree(root: &AbsPath) -> Self {
        let mut tree = Self::of_folder(root);
        if let Some(is_ignored) = ignore_filter(root) {
            tree.files.retain(|path, _| !is_ignored(path));
        }
        tree
    }

    /// The files without those in folders that [`FileTree::of_folder`] omits by their names, so that states with and without a
    /// repository compare.
    #[must_use]
    pub fn without_omitted(mut self) -> Self {
        self.files.retain(|path, _| !is_in_omitted_folder(path));
        self
    }

    /// Reads the workspace at `root` at a git revision. git tracks all of it.
    ///
    /// # Errors
    /// When the revision does not exist or the repository cannot be read.
    pub fn of_revision(root: &AbsPath, revision: &str) -> Result<Self, HistoryError> {
        let revision = RevisionFiles::at(root, revision, &Tape::off())?;
        let may_be_input = |path: &WorkspacePath| is_input_name(path) || may_be_script(path.as_str());
        let files = revision.files(may_be_input);
        let data = folders_of_data(files.keys());
        let files = files.into_iter().filter(|(path, bytes)| {
            is_input_name(path) || is_script_content(bytes) && !data.contains(folder_of(path))
        });
        Ok(Self { files: files.map(|(path, bytes)| (path, Arc::new(bytes))).collect() })
    }

    /// Adds the files of a working tree that no revision of its repository has: those that git ignores, such as generated
    /// ones, and those of nested repositories, such as submodules.
    pub fn add_ignored(&mut self, root: &AbsPath) {
        let Some(is_ignored) = ignore_filter(root) else { return };
        let mut nested: BTreeMap<String, bool> = BTreeMap::new();
        let mut is_nested = |path: &WorkspacePath| {
            let folders = path.as_str().match_indices('/').map(|(end, _)| &path.as_str()[..end]);
            folders.into_iter().any(|folder| {
                *nested
                    .entry(folder.to_owned())
                    .or_insert_with(|| root.join(folder).join(".git").as_path().exists())
            })
        };
        for (path, bytes) in Self::of_folder(root).files {
            if is_ignored(&path) || is_nested(&path) {
                self.files.entry(path).or_insert(bytes);
            }
        }
    }

    /// The files that differ in another tree, with their contents in both.
    #[must_use]
    pub fn difference<'t>(&'t self, other: &'t Self) -> TreeDiff<'t> {
        let paths = self.files.keys().chain(other.files.keys());
        let both = paths.map(|path| (path, (self.files.get(path), other.files.get(path))));
        both.filter(|(_, (own, others))| own != others).collect()
    }

    /// Writes the files to an empty folder, within a time limit: a folder named by mistake, such as `/`, may hold more than
    /// anybody wants copied, and a thread that writes cannot be stopped from outside.
    ///
    /// # Errors
    /// When a file cannot be written, or not in time.
    pub fn write_to(&self, folder: &AbsPath, limit: Duration) -> std::io::Result<()> {
        let began = Instant::now();
        for (path, bytes) in &self.files {
            if began.elapsed() > limit {
                let seconds = limit.as_secs();
                let message = format!("its {} files were not written within {seconds} s", self.files.len());
                return Err(std::io::Error::new(std::io::ErrorKind::TimedOut, message));
            }
            let path = folder.join(path.as_str());
            std::fs::create_dir_all(path.parent().as_path())?;
            std::fs::write(path.as_path(), bytes.as_slice())?;
        }
        Ok(())
    }
}

/// Whether a server or an analyzer may read a file: a source, a script, a marker, or configuration.
#[must_use]
pub fn is_server_input(path: &WorkspacePath, content: &[u8]) -> bool {
    is_input_name(path) || may_be_script(path.as_str()) && is_script_content(content)
}

/// A file of a folder, if it is a script.
fn read_script(root: &AbsPath, folder: &AbsPath, entry: &DirEntry) -> Option<(WorkspacePath, Arc<Vec<u8>>)> {
    let path = folder.join(entry.file_name().to_str()?);
    let size = entry.metadata().ok().filter(Metadata::is_file)?.len();
    let bytes = is_script(&path, size).then(|| read_bytes(&path).ok()).flatten()?;
    Some((WorkspacePath::new(path.strip_prefix(root)?)?, Arc::new(bytes)))
}

fn is_input_name(path: &WorkspacePath) -> bool {
    let name = path.as_str().rsplit('/').next().unwrap_or_default();
    const CONFIGURATION: [&str; 4] = [".toml", ".json", ".ini", ".cfg"];
    path.is_python() || name == "py.typed" || CONFIGURATION.iter().any(|end| name.ends_with(end))
}

fn is_in_omitted_folder(path: &WorkspacePath) -> bool {
    path.as_str().rsplit_once('/').is_some_and(|(folders, _)| folders.split('/').any(is_omitted))
}

fn is_omitted(name: &str) -> bool {
    is_skipped(name) || name == "site-packages"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_is_read_changed_and_written() {
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
            "v/own.py",
            "d.txt",
        ] {
            write(path, path);
        }
        let tree = FileTree::of_folder(&AbsPath::new(folder.path()).unwrap());
        let names: Vec<&str> = tree.files.keys().map(WorkspacePath::as_str).collect();
        assert_eq!(names, ["a.py", "p/b.pyi", "p/py.typed", "pyrightconfig.json"]);
        let other = tempfile::tempdir().unwrap();
        let other = AbsPath::new(other.path()).unwrap();
        tree.write_to(&other, Duration::MAX).unwrap();
        assert!(tree.write_to(&other, Duration::ZERO).is_err());
        let mut copy = FileTree::of_folder(&other);
        assert_eq!(copy, tree);
        copy.files.remove(&WorkspacePath::new("a.py").unwrap());
        assert_eq!(tree.difference(&copy).len(), 1);
        std::fs::remove_dir_all(other.as_path()).unwrap();
    }

    #[test]
    fn a_working_tree_has_only_what_git_could_commit() {
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
        std::fs::create_dir(root.join("sub").as_path()).unwrap();
        git2::Repository::init(root.join("sub").as_path()).unwrap();
        write("sub/own.py", "z = 1\n");
        let mut tree = FileTree::default();
        tree.add_ignored(&root);
        assert_eq!(names(tree), ["made.py", "sub/own.py"]);
    }
}
