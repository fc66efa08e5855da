//! Which folders may hold the workspace's own code.
//!
//! Folders that tools fill are skipped: hidden ones, `node_modules`, `__pycache__`, and what an environment has. Their names prove
//! little, since anybody can write a `pyvenv.cfg` or a hidden folder: where git tracks code in one, it is read like the others.

use std::collections::BTreeSet;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::cache_file::{FieldReader, FieldWriter};
use super::files::read_bytes;
use super::git::Worktree;
use super::git::index::visit_files;
use super::scripts::may_be_script;
use super::walk::Stat;
use crate::path::{AbsPath, is_environment_folder, is_python};

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

/// The folders in which git tracks code, relative to the workspace, with those around them.
#[derive(Debug, Default)]
pub(super) struct TrackedFolders {
    folders: BTreeSet<String>,
    /// git's index, by which they are known.
    index: Option<(PathBuf, Stat)>,
}

impl PartialEq for CodeFolders {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::None, Self::None) | (Self::All, Self::All) => true,
            (Self::Tracked(own), Self::Tracked(others)) => own.folders == others.folders,
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
            (SkippedFolders::ReadTracked, Self::Tracked(known)) if known.is_current(began) => {
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

    pub(super) fn write(&self, writer: &mut FieldWriter) {
        let Self::Tracked(tracked) = self else { return writer.u64(0) };
        writer.u64(1);
        writer.u64(tracked.folders.len() as u64);
        tracked.folders.iter().for_each(|folder| writer.text(folder));
        let index = tracked.index.as_ref().and_then(|(path, stat)| Some((path.to_str()?, stat)));
        writer.u64(u64::from(index.is_some()));
        if let Some((path, stat)) = index {
            writer.text(path);
            stat.write(writer);
        }
    }

    pub(super) fn restore(reader: &mut FieldReader<'_>) -> Option<Self> {
        if reader.u64()? == 0 {
            return Some(Self::None);
        }
        let count = reader.u64()?;
        let folders = (0..count).map(|_| reader.text().map(str::to_owned)).collect::<Option<_>>()?;
        let index = match reader.u64()? {
            0 => None,
            _ => Some((PathBuf::from(reader.text()?), Stat::restore(reader)?)),
        };
        Some(Self::Tracked(Arc::new(TrackedFolders { folders, index })))
    }
}

impl TrackedFolders {
    /// Reads git's index, without the repository's configuration: a pipe in its place would never end. Without an index, nothing is
    /// tracked.
    fn read(root: &AbsPath) -> Self {
        let Some(worktree) = Worktree::around(root) else { return Self::default() };
        let path = worktree.git.join("index");
        let known = stat_of(path.as_path()).map(|stat| (path.as_path().to_owned(), stat));
        let inside = root.strip_prefix(&worktree.top).unwrap_or_default();
        let prefix = if inside.is_empty() { String::new() } else { format!("{inside}/") };
        let mut folders = BTreeSet::new();
        let mut add = |path: &str| {
            let Some((folder, name)) = path.strip_prefix(&prefix).and_then(|path| path.rsplit_once('/'))
            else {
                return;
            };
            if is_python(name) || may_be_script(name) && !folder.split('/').any(|name| name == "node_modules")
            {
                add_with_parents(&mut folders, folder);
            }
        };
        if let Ok(bytes) = read_bytes(&path) {
            visit_files(&bytes, &mut add);
        }
        Self { folders, index: known }
    }

    fn is_current(&self, began: i64) -> bool {
        self.index
            .as_ref()
            .is_some_and(|(path, stat)| !stat.is_racy(began) && stat_of(path).as_ref() == Some(stat))
    }
}

/// The `stat` of a regular file.
fn stat_of(path: &Path) -> Option<Stat> {
    let metadata = std::fs::metadata(path).ok().filter(Metadata::is_file)?;
    Some(Stat::of(&metadata))
}

fn add_with_parents(folders: &mut BTreeSet<String>, folder: &str) {
    let mut end = folder.len();
    while folders.insert(folder[..end].to_owned()) {
        match folder[..end].rfind('/') {
            Some(parent) => end = parent,
            None => return,
        }
    }
}
