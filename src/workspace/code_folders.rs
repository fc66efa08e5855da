//! Which folders may hold the workspace's own code.
//!
//! Folders that tools fill are skipped: hidden ones, `node_modules`, `__pycache__`, and what an environment has. Their names prove
//! little, since anybody can write a `pyvenv.cfg` or a hidden folder: where git tracks code in one, it is read like the others.

use std::collections::BTreeSet;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::cache_file::{FieldReader, FieldWriter};
use super::files::{canonical, read_bytes};
use super::git::index::read_index;
use super::git::{Worktree, git_folder};
use super::scripts::may_be_script;
use super::walk::Stat;
use crate::path::{AbsPath, is_environment_folder, is_python};

/// At most this many indexes are read.
const MAX_FILES: usize = 1_000;

/// The file that makes a folder a virtual environment.
pub(super) const ENVIRONMENT_FILE: &str = "pyvenv.cfg";

/// Whether tools fill a folder of this name.
pub(crate) fn is_skipped(name: &str) -> bool {
    name.starts_with('.') || name == "node_modules" || name == "__pycache__"
}

/// Whether a folder is skipped by its name and the one that it is in.
pub(super) fn is_skipped_in(name: &str, is_environment: bool) -> bool {
    is_skipped(name) || is_environment && is_environment_folder(name)
}

/// Which of the skipped folders are read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SkippedFolders {
    /// None.
    #[default]
    Skip,
    /// Those in which git tracks code.
    ReadTracked,
    /// All: of a copy of a workspace, which has only the files that were chosen.
    Read,
}

/// The skipped folders that are read.
#[derive(Debug, Clone, Default)]
pub(super) enum CodeFolders {
    #[default]
    None,
    Tracked(Arc<TrackedFolders>),
    All,
}

/// The skipped folders in which git tracks code.
#[derive(Debug, Default)]
pub(super) struct TrackedFolders {
    /// Relative to the workspace, with those around them that are inside of a skipped one.
    folders: BTreeSet<String>,
    /// The files by which they are known: git's index, those of submodules, and what is beside them.
    known_by: Vec<(PathBuf, Option<Stat>)>,
    /// Indexes that could not be read, so that there may be more folders.
    unreadable: BTreeSet<String>,
}

impl PartialEq for CodeFolders {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::None, Self::None) | (Self::All, Self::All) => true,
            (Self::Tracked(own), Self::Tracked(others)) => {
                own.folders == others.folders && own.unreadable == others.unreadable
            }
            _ => false,
        }
    }
}

impl Eq for CodeFolders {}

impl CodeFolders {
    /// Those of the workspace at `root`. `known` are those of an earlier walk, which hold while git's index is the same; `began` is
    /// the current time, in nanoseconds since 1970.
    pub(super) fn of(root: &AbsPath, skipped: SkippedFolders, known: &Self, began: i64) -> Self {
        match (skipped, known) {
            (SkippedFolders::Skip, _) => Self::None,
            (SkippedFolders::Read, _) => Self::All,
            (SkippedFolders::ReadTracked, Self::Tracked(known)) if known.is_current(root, began) => {
                Self::Tracked(known.clone())
            }
            (SkippedFolders::ReadTracked, _) => Self::Tracked(Arc::new(TrackedFolders::read(root))),
        }
    }

    /// Whether a skipped folder is read.
    pub(super) fn has(&self, path: &str) -> bool {
        match self {
            Self::None => false,
            Self::Tracked(tracked) => tracked.folders.contains(path),
            Self::All => true,
        }
    }

    /// The indexes of git that could not be read.
    pub(super) fn unreadable(&self) -> impl Iterator<Item = &String> {
        let tracked = match self {
            Self::Tracked(tracked) => Some(tracked),
            Self::None | Self::All => None,
        };
        tracked.into_iter().flat_map(|tracked| &tracked.unreadable)
    }

    pub(super) fn write(&self, writer: &mut FieldWriter) {
        let Self::Tracked(tracked) = self else { return writer.u64(0) };
        writer.u64(1);
        for list in [&tracked.folders, &tracked.unreadable] {
            writer.u64(list.len() as u64);
            list.iter().for_each(|text| writer.text(text));
        }
        writer.u64(tracked.known_by.len() as u64);
        for (path, stat) in &tracked.known_by {
            // A path that is not UTF-8 is another one when it is read, so that the index is read again.
            writer.text(&path.to_string_lossy());
            writer.u64(u64::from(stat.is_some()));
            if let Some(stat) = stat {
                stat.write(writer);
            }
        }
    }

    pub(super) fn restore(reader: &mut FieldReader<'_>) -> Option<Self> {
        if reader.u64()? == 0 {
            return Some(Self::None);
        }
        let mut texts = || {
            let count = reader.u64()?;
            (0..count).map(|_| reader.text().map(str::to_owned)).collect::<Option<BTreeSet<String>>>()
        };
        let (folders, unreadable) = (texts()?, texts()?);
        let count = reader.u64()?;
        let file = |_| {
            let path = PathBuf::from(reader.text()?);
            let stat = if reader.u64()? == 0 { None } else { Some(Stat::restore(reader)?) };
            Some((path, stat))
        };
        let known_by = (0..count).map(file).collect::<Option<_>>()?;
        Some(Self::Tracked(Arc::new(TrackedFolders { folders, known_by, unreadable })))
    }
}

impl TrackedFolders {
    /// Reads git's index and those of the submodules, without the repository's configuration: a pipe in its place would never end.
    /// Without an index, nothing is tracked.
    fn read(root: &AbsPath) -> Self {
        let mut tracked = Self::default();
        let Some(worktree) = Worktree::around(root) else { return tracked };
        let inside = root.strip_prefix(&worktree.top).unwrap_or_default();
        let prefix = if inside.is_empty() { String::new() } else { format!("{inside}/") };
        let mut submodules =
            tracked.read_index(&worktree, |path| path.strip_prefix(&prefix).map(str::to_owned));
        let real_root = canonical(root);
        let mut read = BTreeSet::from([canonical(&worktree.git)]);
        while let Some(inside) = submodules.pop() {
            let top = root.join(&inside);
            if tracked.known_by.len() > MAX_FILES {
                tracked.unreadable.insert(inside);
                continue;
            }
            // Git enters no submodule through a link.
            let is_own = canonical(&top) == real_root.join(&inside);
            match is_own.then(|| git_folder(&top)).flatten() {
                // No two worktrees have one index.
                Some(git) if !read.insert(canonical(&git)) => drop(tracked.unreadable.insert(inside)),
                Some(git) => submodules.extend(
                    tracked.read_index(&Worktree { top, git }, |path| Some(format!("{inside}/{path}"))),
                ),
                // It may be checked out later, or the link be replaced.
                None => drop(tracked.note(top.join(".git").as_path())),
            }
        }
        tracked
    }

    /// Reads one index. `in_workspace` makes a path of the workspace from one of the index. Returns the submodules.
    fn read_index(
        &mut self,
        worktree: &Worktree,
        in_workspace: impl Fn(&str) -> Option<String>,
    ) -> Vec<String> {
        let path_of = |path: &[u8]| in_workspace(&String::from_utf8_lossy(path));
        let is_wanted = |path: &[u8]| path_of(path).is_some_and(|path| is_code_in_skipped(&path));
        let mut submodules = Vec::new();
        let mut file = Some("index".to_owned());
        while let Some(name) = file.take() {
            let path = worktree.git.join(&name);
            let is_there = self.note(path.as_path());
            let read = read_bytes(&path).ok().and_then(|bytes| read_index(&bytes, is_wanted));
            match read {
                Some(index) => {
                    for file in index.files.iter().filter_map(|file| path_of(file)) {
                        self.add(&file);
                    }
                    submodules.extend(index.submodules.iter().filter_map(|path| path_of(path)));
                    // One that refers to another one is damaged.
                    file = index.shared.filter(|_| name == "index");
                }
                None if is_there || name != "index" => drop(self.unreadable.insert(format!(".git/{name}"))),
                None => {}
            }
        }
        submodules
    }

    /// Notes the state of a file; returns whether there is one, of whatever kind.
    fn note(&mut self, path: &Path) -> bool {
        self.known_by.push((path.to_owned(), stat_of(path)));
        path.symlink_metadata().is_ok()
    }

    /// Adds the folders around a file that are skipped otherwise.
    fn add(&mut self, file: &str) {
        let mut skipped = false;
        let mut start = 0;
        for (end, _) in file.match_indices('/') {
            skipped |= may_be_skipped(&file[start..end]);
            if skipped {
                self.folders.insert(file[..end].to_owned());
            }
            start = end + 1;
        }
    }

    fn is_current(&self, root: &AbsPath, began: i64) -> bool {
        let index = Worktree::around(root).map(|worktree| worktree.git.join("index"));
        let known = self.known_by.first().map(|(path, _)| path.as_path());
        let is_same = |(path, stat): &(PathBuf, Option<Stat>)| {
            !stat.is_some_and(|stat| stat.is_racy(began)) && stat_of(path) == *stat
        };
        known == index.as_ref().map(AbsPath::as_path) && self.known_by.iter().all(is_same)
    }
}

/// Whether a folder of this name is skipped, or is in an environment.
fn may_be_skipped(name: &str) -> bool {
    is_skipped_in(name, true)
}

/// Whether a file may be code, in a folder that may be skipped. Packages of Node.js have many files without a suffix.
fn is_code_in_skipped(path: &str) -> bool {
    let Some((folders, name)) = path.rsplit_once('/') else { return false };
    let is_of_node = || folders.split('/').any(|folder| folder == "node_modules");
    // A sparse index names a folder, with a slash at its end, in place of what is in it.
    let may_be_code = || name.is_empty() || is_python(name) || may_be_script(name) && !is_of_node();
    folders.split('/').any(may_be_skipped) && may_be_code()
}

/// The `stat` of a regular file.
fn stat_of(path: &Path) -> Option<Stat> {
    let metadata = std::fs::metadata(path).ok().filter(Metadata::is_file)?;
    Some(Stat::of(&metadata))
}
