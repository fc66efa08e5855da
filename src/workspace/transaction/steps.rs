//! The steps of a transaction on disk. The process may be killed after any of them.
//!
//! Forward: temporary files are written next to their targets under names from the journal, and then each replaces its
//! target. The two are exchanged, so that the replaced file still exists and can be checked before it is removed.
//!
//! Rollback depends only on the files that are on disk, so it is the same after an error, after a dropped value, and in
//! the next process after a kill.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};

use super::error::TransactionError;
use super::file_image::{Content, FileImage, apply_metadata, read_entry};
use super::journal::{Journal, JournalEntry};
use super::store::{JournalStore, WorkspaceLock};
use super::sys::{PRIVATE, Sys};
use super::tree::{RealPath, Tree, syncs_whole_file_systems};
use crate::path::WorkspacePath;

/// A transaction whose journal is open.
#[derive(Debug)]
pub(super) struct OpenTransaction {
    pub(super) tree: Tree,
    pub(super) store: JournalStore,
    pub(super) journal: Journal,
    /// Held until the transaction ends.
    pub(super) lock: WorkspaceLock,
}

/// For `map_err` of an operation on the file of an entry.
fn refused(doing: &'static str, entry: &JournalEntry) -> impl FnOnce(io::Error) -> TransactionError {
    TransactionError::refused(doing, &entry.path)
}

impl OpenTransaction {
    /// The folders that contain the files of the entries.
    fn folders(&self) -> BTreeSet<RealPath> {
        self.journal.entries.iter().filter_map(|entry| entry.real_path.parent()).collect()
    }

    /// Writes the temporary files and flushes them to disk. `contents` are the new bytes of the entries, in the same
    /// order.
    pub(super) fn stage(&self, contents: &[Vec<u8>]) -> Result<(), TransactionError> {
        for (folder, mode) in &self.journal.new_folders {
            let made = self.tree.make_folder(folder, *mode);
            made.map_err(TransactionError::refused("create the folder", folder))?;
        }
        let sync_whole = syncs_whole_file_systems(self.journal.entries.len());
        for (entry, bytes) in self.journal.entries.iter().zip(contents) {
            if let Some(image) = &entry.after {
                let folder =
                    self.tree.folder_of(&entry.real_path).map_err(refused("open the folder of", entry))?;
                let made =
                    create_entry(&self.tree.sys, folder.as_fd(), &entry.temp, image, bytes, !sync_whole);
                made.map_err(refused("write", entry))?;
            }
        }
        if sync_whole {
            let synced = self.tree.sync_file_systems(&self.folders());
            synced.map_err(TransactionError::refused("write", "the files to the disk"))?;
        }
        Ok(())
    }

    /// Moves every new file into place.
    pub(super) fn apply(&self) -> Result<(), TransactionError> {
        for entry in &self.journal.entries {
            let folder =
                self.tree.folder_of(&entry.real_path).map_err(refused("open the folder of", entry))?;
            self.put_in_place(entry, folder.as_fd())?;
        }
        self.sync_folders()
    }

    fn sync_folders(&self) -> Result<(), TransactionError> {
        let made = self.journal.new_folders.iter().filter_map(|(folder, _)| folder.parent());
        let folders = self.folders().into_iter().chain(made).collect();
        let synced = self.tree.sync_folders(&folders);
        synced.map_err(TransactionError::refused("write", "the folders to the disk"))
    }

    /// Moves one new file into place, unless the current file is not the expected one.
    fn put_in_place(&self, entry: &JournalEntry, folder: BorrowedFd<'_>) -> Result<(), TransactionError> {
        let sys = &self.tree.sys;
        let (name, temp) = (entry.real_path.name(), entry.temp.as_str());
        let changed = || TransactionError::Changed { path: entry.path.clone() };
        let is_before = |name: &str| -> Result<bool, TransactionError> {
            let found = read_entry(sys, folder, name).map_err(refused("read", entry))?;
            Ok(JournalEntry::matches(entry.before.as_ref(), found.as_ref().map(|found| &found.content)))
        };
        match (&entry.before, &entry.after) {
            (None, _) => sys.rename_new(folder, temp, name).map_err(|error| match error.kind() {
                io::ErrorKind::AlreadyExists => TransactionError::Exists { path: entry.path.clone() },
                _ => refused("create", entry)(error),
            }),
            (Some(_), Some(_)) => {
                if sys.exchange(folder, temp, name).map_err(changed_or_refused("replace", entry))? {
                    if is_before(temp)? {
                        return Ok(());
                    }
                    // Another program changed the file first: its version is restored.
                    sys.exchange(folder, temp, name).map_err(refused("replace", entry))?;
                    return Err(changed());
                }
                if !is_before(name)? {
                    return Err(changed());
                }
                sys.rename(folder, temp, name).map_err(refused("replace", entry))
            }
            (Some(_), None) => {
                sys.rename(folder, name, temp).map_err(changed_or_refused("remove", entry))?;
                if is_before(temp)? {
                    return Ok(());
                }
                sys.rename_new(folder, temp, name).map_err(refused("put back", entry))?;
                Err(changed())
            }
        }
    }

    /// Restores the old files and removes all traces. Returns the files that are neither old nor new: other programs
    /// changed them since, and they are not touched.
    pub(super) fn roll_back(&self) -> Result<Vec<WorkspacePath>, TransactionError> {
        let mut foreign = Vec::new();
        for entry in &self.journal.entries {
            if !self.roll_back_entry(entry)? {
                foreign.push(entry.path.clone());
            }
        }
        // A new folder into which another program wrote stays.
        let new_folders = self.journal.new_folders.iter().map(|(folder, _)| folder);
        let removed = self.tree.remove_empty(new_folders);
        let mut folders = removed.map_err(TransactionError::refused("remove", "the new folders"))?;
        folders.extend(self.folders());
        let synced = self.tree.sync_folders(&folders);
        synced.map_err(TransactionError::refused("write", "the folders to the disk"))?;
        self.store.discard_open().map_err(TransactionError::refused("remove", "the journal"))?;
        Ok(foreign)
    }

    /// Restores the file of one entry. Returns false when another program changed the file.
    fn roll_back_entry(&self, entry: &JournalEntry) -> Result<bool, TransactionError> {
        let sys = &self.tree.sys;
        let (name, temp) = (entry.real_path.name(), entry.temp.as_str());
        let cannot = || refused("restore", entry);
        let Some(folder) = self.tree.folder_if_exists(&entry.real_path).map_err(cannot())? else {
            return match &entry.before {
                // The folder was not yet created.
                None => Ok(true),
                // Another program removed the folder, with the old or the new file in it.
                Some(_) => Ok(false),
            };
        };
        let folder = folder.as_fd();
        let read_entry = |name: &str| -> Result<Option<Content>, TransactionError> {
            Ok(read_entry(sys, folder, name).map_err(cannot())?.map(|found| found.content))
        };
        let matches = |image: &Option<FileImage>, found: &Option<Content>| {
            JournalEntry::matches(image.as_ref(), found.as_ref())
        };
        let restored = entry.restore_temp();
        sys.unlink(folder, &restored).map_err(cannot())?;
        let now = read_entry(name)?;
        let untouched = matches(&entry.before, &now);
        if untouched || !matches(&entry.after, &now) {
            sys.unlink(folder, temp).map_err(cannot())?;
            return Ok(untouched);
        }
        let Some(before) = &entry.before else {
            // The file is checked again under its temporary name, so that another program's file cannot be lost.
            sys.unlink(folder, temp).map_err(cannot())?;
            sys.rename(folder, name, temp).map_err(cannot())?;
            if !matches(&entry.after, &read_entry(temp)?) {
                sys.rename_new(folder, temp, name).map_err(cannot())?;
                return Ok(false);
            }
            sys.unlink(folder, temp).map_err(cannot())?;
            return Ok(true);
        };
        let aside = read_entry(temp)?;
        // If the temporary file is not the old one, an exchange moved another program's file there.
        let foreign = aside.is_some() && !matches(&entry.before, &aside);
        let back = if aside.is_some() {
            temp
        } else {
            let bytes = self.store.pre_image(entry, None)?;
            create_entry(sys, folder, &restored, before, &bytes, true).map_err(cannot())?;
            &restored
        };
        if now.is_none() {
            sys.rename_new(folder, back, name).map_err(cannot())?;
        } else if !sys.exchange(folder, back, name).map_err(cannot())? {
            sys.rename(folder, back, name).map_err(cannot())?;
        } else if matches(&entry.after, &read_entry(back)?) {
            sys.unlink(folder, back).map_err(cannot())?;
        } else {
            // Another program wrote the file between the check and the exchange.
            sys.exchange(folder, back, name).map_err(cannot())?;
            sys.unlink(folder, back).map_err(cannot())?;
            return Ok(false);
        }
        Ok(!foreign)
    }

    /// Cleans up after the commit, and closes the journal, which becomes an entry of the operation log.
    pub(super) fn finish(&self) -> Result<(), TransactionError> {
        let sys = &self.tree.sys;
        for entry in self.journal.entries.iter().filter(|entry| entry.before.is_some()) {
            let cannot = || refused("clean up next to", entry);
            if let Some(folder) = self.tree.folder_if_exists(&entry.real_path).map_err(cannot())? {
                sys.unlink(folder.as_fd(), &entry.temp).map_err(cannot())?;
            }
        }
        let removable_folders = self.journal.removable_folders.iter().map(|(folder, _)| folder);
        let removed = self.tree.remove_empty(removable_folders);
        let mut folders = removed.map_err(TransactionError::refused("remove", "empty folders"))?;
        folders.extend(self.folders());
        let synced = self.tree.sync_folders(&folders);
        synced.map_err(TransactionError::refused("write", "the folders to the disk"))?;
        self.store.close(&self.journal).map_err(TransactionError::refused("close", "the journal"))
    }
}

/// Creates a file or link.
fn create_entry(
    sys: &Sys,
    folder: BorrowedFd<'_>,
    name: &str,
    image: &FileImage,
    bytes: &[u8],
    sync: bool,
) -> io::Result<()> {
    if let Content::Link { target } = &image.content {
        return sys.create_symlink(folder, name, target);
    }
    // Until the file has its owner and mode, only this user may read it.
    let mode = match (&image.metadata, image.executable) {
        (Some(_), _) => PRIVATE,
        (None, true) => 0o777,
        (None, false) => 0o666,
    };
    let file = sys.create(folder, name, mode)?;
    if !bytes.is_empty() {
        sys.write(&file, bytes)?;
    }
    if let Some(metadata) = &image.metadata {
        apply_metadata(sys, &file, metadata)?;
    }
    if sync {
        sys.sync(&file)?;
    }
    Ok(())
}

/// For `map_err` of a rename: a missing file counts as changed.
fn changed_or_refused(
    doing: &'static str,
    entry: &JournalEntry,
) -> impl FnOnce(io::Error) -> TransactionError {
    let path = entry.path.clone();
    move |error| match error.kind() {
        io::ErrorKind::NotFound => TransactionError::Changed { path },
        _ => TransactionError::refused(doing, &path)(error),
    }
}
