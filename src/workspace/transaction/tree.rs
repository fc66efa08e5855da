//! Access to the workspace's folders by file descriptor.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::sys::Sys;
use crate::path::AbsPath;

/// Above this number of files or folders, whole file systems are flushed instead of each file or folder.
const SYNC_EACH_LIMIT: usize = 32;

/// A path with all symbolic links resolved, below the workspace or below `/`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct RealPath {
    /// Whether it is outside the workspace and relative to `/`.
    pub(super) outside: bool,
    /// A relative path with `/` as separator, without `.` and `..`.
    pub(super) path: String,
}

impl RealPath {
    pub(super) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    /// The parent folder; `None` for the empty path.
    pub(super) fn parent(&self) -> Option<Self> {
        if self.path.is_empty() {
            return None;
        }
        let path = self.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        Some(Self { outside: self.outside, path: path.to_owned() })
    }

    fn folder_path(&self) -> &str {
        self.path.rsplit_once('/').map_or("", |(folder, _)| folder)
    }
}

impl std::fmt::Display for RealPath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.outside {
            f.write_str("/")?;
        }
        f.write_str(if self.path.is_empty() { "." } else { &self.path })
    }
}

/// The workspace's root folder and `/`, opened.
#[derive(Debug)]
pub(super) struct Tree {
    pub(super) sys: Sys,
    root: OwnedFd,
    top: OwnedFd,
}

impl Tree {
    pub(super) fn open(sys: &Sys, root: &AbsPath) -> io::Result<Self> {
        let top = sys.open_base(Path::new("/"))?;
        Ok(Self { sys: sys.clone(), root: sys.open_base(root.as_path())?, top })
    }

    /// The tree whose root is the folder `prefix` below `top`. The prefix must not contain links.
    pub(super) fn beneath(sys: &Sys, top: &AbsPath, prefix: &str) -> io::Result<Self> {
        let root = sys.open_folder(sys.open_base(top.as_path())?.as_fd(), prefix)?;
        Ok(Self { sys: sys.clone(), root, top: sys.open_base(Path::new("/"))? })
    }

    fn base(&self, outside: bool) -> &OwnedFd {
        if outside { &self.top } else { &self.root }
    }

    /// Opens a folder; `None` when it does not exist.
    fn open_folder(&self, folder: &RealPath) -> io::Result<Option<OwnedFd>> {
        match self.sys.open_folder(self.base(folder.outside).as_fd(), &folder.path) {
            Ok(folder) => Ok(Some(folder)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Opens the folder that contains a path.
    pub(super) fn folder_of(&self, real_path: &RealPath) -> io::Result<OwnedFd> {
        self.sys.open_folder(self.base(real_path.outside).as_fd(), real_path.folder_path())
    }

    /// Opens the folder that contains a path; `None` when it does not exist.
    pub(super) fn folder_if_exists(&self, real_path: &RealPath) -> io::Result<Option<OwnedFd>> {
        real_path.parent().map_or(Ok(None), |folder| self.open_folder(&folder))
    }

    /// The missing folders above a path, outermost first.
    pub(super) fn missing_above(&self, real_path: &RealPath) -> io::Result<Vec<RealPath>> {
        let mut missing = Vec::new();
        let mut at = real_path.parent();
        while let Some(folder) = at.filter(|folder| !folder.path.is_empty()) {
            if self.open_folder(&folder)?.is_some() {
                break;
            }
            at = folder.parent();
            missing.push(folder);
        }
        missing.reverse();
        Ok(missing)
    }

    /// Creates one folder; an existing one is not an error.
    pub(super) fn make_folder(&self, folder: &RealPath, mode: Option<u32>) -> io::Result<()> {
        let above = self.folder_of(folder)?;
        match self.sys.create_folder(above.as_fd(), folder.name(), 0o777) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
            made => made?,
        }
        if let Some(mode) = mode {
            let made = self.sys.open_folder(above.as_fd(), folder.name())?;
            self.sys.chmod(&made.into(), mode)?;
        }
        Ok(())
    }

    /// Removes the empty folders among `folders`, deepest first. Returns the folders in which an entry was removed.
    pub(super) fn remove_empty<'s>(
        &self,
        folders: impl IntoIterator<Item = &'s RealPath>,
    ) -> io::Result<BTreeSet<RealPath>> {
        let mut folders: Vec<&RealPath> =
            folders.into_iter().filter(|folder| !folder.path.is_empty()).collect();
        folders.sort_by_key(|folder| std::cmp::Reverse(folder.path.matches('/').count()));
        let mut touched = BTreeSet::new();
        for folder in folders {
            if let Some(above) = self.folder_if_exists(folder)?
                && self.sys.remove_folder(above.as_fd(), folder.name())?
            {
                touched.remove(folder);
                touched.extend(folder.parent());
            }
        }
        Ok(touched)
    }

    /// Flushes changes of folders to disk. For a removed folder, its parent has to be passed.
    ///
    /// Above [`SYNC_EACH_LIMIT`], whole file systems are flushed instead, where the system has a call for it. That
    /// takes a fraction of the time, and flushes the files in those folders as well.
    pub(super) fn sync_folders(&self, folders: &BTreeSet<RealPath>) -> io::Result<()> {
        let sync_whole = syncs_whole_file_systems(folders.len());
        let mut devices = BTreeSet::new();
        for folder in folders {
            let Some(opened) = self.open_folder(folder)? else { continue };
            if !sync_whole {
                self.sys.sync(&opened)?;
            } else if devices.insert(self.sys.device(&opened)?) {
                self.sys.sync_file_system(&opened)?;
            }
        }
        Ok(())
    }

    /// Flushes every file system that contains one of the folders.
    pub(super) fn sync_file_systems(&self, folders: &BTreeSet<RealPath>) -> io::Result<()> {
        let mut devices = BTreeSet::new();
        for folder in folders {
            if let Some(opened) = self.open_folder(folder)?
                && devices.insert(self.sys.device(&opened)?)
            {
                self.sys.sync_file_system(&opened)?;
            }
        }
        Ok(())
    }
}

/// Whether this many files or folders are better flushed as whole file systems.
pub(super) const fn syncs_whole_file_systems(count: usize) -> bool {
    cfg!(target_os = "linux") && count > SYNC_EACH_LIMIT
}
