//! The workspace's folders by descriptor.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::door::Door;
use crate::path::AbsPath;

/// From how many files or folders on a whole file system is told to write, instead of each.
const MANY: usize = 32;

/// The place of a file, all links resolved: below the workspace, or below `/`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Spot {
    /// Whether it is outside the workspace.
    pub(super) outside: bool,
    /// Relative, `/` as separator, no `.` nor `..`.
    pub(super) path: String,
}

impl Spot {
    pub(super) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    /// The folder above; `None` above the top.
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

impl std::fmt::Display for Spot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.outside {
            f.write_str("/")?;
        }
        f.write_str(if self.path.is_empty() { "." } else { &self.path })
    }
}

/// The tree, opened at its root.
#[derive(Debug)]
pub(super) struct Tree {
    pub(super) door: Door,
    root: OwnedFd,
    top: OwnedFd,
}

impl Tree {
    pub(super) fn open(door: &Door, root: &AbsPath) -> io::Result<Self> {
        let top = door.base(Path::new("/"))?;
        Ok(Self { door: door.clone(), root: door.base(root.as_path())?, top })
    }

    /// The tree whose root is a folder below `top`, none of whose components is a link.
    pub(super) fn beneath(door: &Door, top: &AbsPath, prefix: &str) -> io::Result<Self> {
        let root = door.folder(door.base(top.as_path())?.as_fd(), prefix)?;
        Ok(Self { door: door.clone(), root, top: door.base(Path::new("/"))? })
    }

    fn base(&self, outside: bool) -> &OwnedFd {
        if outside { &self.top } else { &self.root }
    }

    /// A folder; `None` when it is gone.
    fn folder(&self, folder: &Spot) -> io::Result<Option<OwnedFd>> {
        match self.door.folder(self.base(folder.outside).as_fd(), &folder.path) {
            Ok(folder) => Ok(Some(folder)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The folder that holds a spot's name.
    pub(super) fn folder_of(&self, spot: &Spot) -> io::Result<OwnedFd> {
        self.door.folder(self.base(spot.outside).as_fd(), spot.folder_path())
    }

    /// The folder that holds a spot's name; `None` when it is gone.
    pub(super) fn folder_if_any(&self, spot: &Spot) -> io::Result<Option<OwnedFd>> {
        spot.parent().map_or(Ok(None), |folder| self.folder(&folder))
    }

    /// The folders above a spot that are missing, the outermost first.
    pub(super) fn missing_above(&self, spot: &Spot) -> io::Result<Vec<Spot>> {
        let mut missing = Vec::new();
        let mut at = spot.parent();
        while let Some(folder) = at.filter(|folder| !folder.path.is_empty()) {
            if self.folder(&folder)?.is_some() {
                break;
            }
            at = folder.parent();
            missing.push(folder);
        }
        missing.reverse();
        Ok(missing)
    }

    /// Makes one folder; nothing is wrong when it is there.
    pub(super) fn make_folder(&self, folder: &Spot, mode: Option<u32>) -> io::Result<()> {
        let above = self.folder_of(folder)?;
        match self.door.make_folder(above.as_fd(), folder.name(), 0o777) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
            made => made?,
        }
        if let Some(mode) = mode {
            let made = self.door.folder(above.as_fd(), folder.name())?;
            self.door.chmod(&made.into(), mode)?;
        }
        Ok(())
    }

    /// Removes those of the folders that are empty, the deepest first. Returns the folders in which something went.
    pub(super) fn remove_empty<'s>(
        &self,
        folders: impl IntoIterator<Item = &'s Spot>,
    ) -> io::Result<BTreeSet<Spot>> {
        let mut folders: Vec<&Spot> = folders.into_iter().filter(|folder| !folder.path.is_empty()).collect();
        folders.sort_by_key(|folder| std::cmp::Reverse(folder.path.matches('/').count()));
        let mut touched = BTreeSet::new();
        for folder in folders {
            if let Some(above) = self.folder_if_any(folder)?
                && self.door.remove_folder(above.as_fd(), folder.name())?
            {
                touched.remove(folder);
                touched.extend(folder.parent());
            }
        }
        Ok(touched)
    }

    /// Makes sure that what was done in folders is on the disk; of a folder that is gone, the one above it has to be told.
    ///
    /// From [`MANY`] on, the whole file system is told once where there is such a call: it costs a fraction, and covers the
    /// files in those folders as well.
    pub(super) fn sync_folders(&self, folders: &BTreeSet<Spot>) -> io::Result<()> {
        let at_once = syncs_at_once(folders.len());
        let mut devices = BTreeSet::new();
        for folder in folders {
            let Some(opened) = self.folder(folder)? else { continue };
            if !at_once {
                self.door.sync(&opened)?;
            } else if devices.insert(self.door.device(&opened)?) {
                self.door.sync_all(&opened)?;
            }
        }
        Ok(())
    }

    /// Tells every file system that holds one of the folders to write all.
    pub(super) fn sync_file_systems(&self, folders: &BTreeSet<Spot>) -> io::Result<()> {
        let mut devices = BTreeSet::new();
        for folder in folders {
            if let Some(opened) = self.folder(folder)?
                && devices.insert(self.door.device(&opened)?)
            {
                self.door.sync_all(&opened)?;
            }
        }
        Ok(())
    }
}

/// Whether so many files or folders are better written all at once.
pub(super) const fn syncs_at_once(count: usize) -> bool {
    cfg!(target_os = "linux") && count > MANY
}
