//! The steps of a transaction on the disk, each of which can be the last.
//!
//! Forward: temporary files are made beside their targets under names that the journal knows, and then each takes its
//! target's place: by exchange, so that what was there is at hand and can be looked at before it is let go. Backward looks at
//! what is there now and nothing else, so that it is the same for an error, for a value that was dropped, and for the next
//! process after a kill.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};

use super::door::{Door, PRIVATE};
use super::error::TransactionError;
use super::image::{Content, Image, dress, look};
use super::journal::{Entry, Journal};
use super::store::{Lock, Store};
use super::tree::{Spot, Tree, syncs_at_once};
use crate::path::WorkspacePath;

/// An open transaction.
#[derive(Debug)]
pub(super) struct Work {
    pub(super) tree: Tree,
    pub(super) store: Store,
    pub(super) journal: Journal,
    /// Held until all is done.
    pub(super) lock: Lock,
}

/// For `map_err` of what was done to an entry.
fn refused(doing: &'static str, entry: &Entry) -> impl FnOnce(io::Error) -> TransactionError {
    TransactionError::refused(doing, &entry.path)
}

impl Work {
    /// The folders that hold the entries.
    fn folders(&self) -> BTreeSet<Spot> {
        self.journal.entries.iter().filter_map(|entry| entry.spot.parent()).collect()
    }

    /// Makes the temporary files, on the disk when this returns. `contents` are the new bytes of the entries, in their order.
    pub(super) fn stage(&self, contents: &[Vec<u8>]) -> Result<(), TransactionError> {
        for (folder, mode) in &self.journal.made {
            let made = self.tree.make_folder(folder, *mode);
            made.map_err(TransactionError::refused("make the folder", folder))?;
        }
        let at_once = syncs_at_once(self.journal.entries.len());
        for (entry, bytes) in self.journal.entries.iter().zip(contents) {
            if let Some(image) = &entry.after {
                let folder =
                    self.tree.folder_of(&entry.spot).map_err(refused("open the folder of", entry))?;
                let made = make(&self.tree.door, folder.as_fd(), &entry.temp, image, bytes, !at_once);
                made.map_err(refused("write", entry))?;
            }
        }
        if at_once {
            let synced = self.tree.sync_file_systems(&self.folders());
            synced.map_err(TransactionError::refused("write", "the files to the disk"))?;
        }
        Ok(())
    }

    /// Puts every new state in its place.
    pub(super) fn apply(&self) -> Result<(), TransactionError> {
        for entry in &self.journal.entries {
            let folder = self.tree.folder_of(&entry.spot).map_err(refused("open the folder of", entry))?;
            self.put(entry, folder.as_fd())?;
        }
        self.sync_folders()
    }

    fn sync_folders(&self) -> Result<(), TransactionError> {
        let made = self.journal.made.iter().filter_map(|(folder, _)| folder.parent());
        let folders = self.folders().into_iter().chain(made).collect();
        let synced = self.tree.sync_folders(&folders);
        synced.map_err(TransactionError::refused("write", "the folders to the disk"))
    }

    /// Puts one new state in its place, unless what is there is not what it was made for.
    fn put(&self, entry: &Entry, folder: BorrowedFd<'_>) -> Result<(), TransactionError> {
        let door = &self.tree.door;
        let (name, temp) = (entry.spot.name(), entry.temp.as_str());
        let changed = || TransactionError::Changed { path: entry.path.clone() };
        let is_before = |name: &str| -> Result<bool, TransactionError> {
            let seen = look(door, folder, name).map_err(refused("read", entry))?;
            Ok(Entry::holds(entry.before.as_ref(), seen.as_ref().map(|seen| &seen.content)))
        };
        match (&entry.before, &entry.after) {
            (None, _) => door.rename_new(folder, temp, name).map_err(|error| match error.kind() {
                io::ErrorKind::AlreadyExists => TransactionError::Exists { path: entry.path.clone() },
                _ => refused("make", entry)(error),
            }),
            (Some(_), Some(_)) => {
                if door.exchange(folder, temp, name).map_err(gone_or("replace", entry))? {
                    if is_before(temp)? {
                        return Ok(());
                    }
                    // Somebody was faster: theirs goes back to its place.
                    door.exchange(folder, temp, name).map_err(refused("replace", entry))?;
                    return Err(changed());
                }
                if !is_before(name)? {
                    return Err(changed());
                }
                door.rename(folder, temp, name).map_err(refused("replace", entry))
            }
            (Some(_), None) => {
                door.rename(folder, name, temp).map_err(gone_or("remove", entry))?;
                if is_before(temp)? {
                    return Ok(());
                }
                door.rename_new(folder, temp, name).map_err(refused("put back", entry))?;
                Err(changed())
            }
        }
    }

    /// Takes back whatever was done, and leaves no trace. Returns the files that are neither old nor new: somebody else's
    /// since, and left as they are.
    pub(super) fn roll_back(&self) -> Result<Vec<WorkspacePath>, TransactionError> {
        let mut foreign = Vec::new();
        for entry in &self.journal.entries {
            if !self.take_back(entry)? {
                foreign.push(entry.path.clone());
            }
        }
        // What the transaction made and somebody filled stays.
        let made = self.journal.made.iter().map(|(folder, _)| folder);
        let removed = self.tree.remove_empty(made);
        let mut folders = removed.map_err(TransactionError::refused("remove", "the new folders"))?;
        folders.extend(self.folders());
        let synced = self.tree.sync_folders(&folders);
        synced.map_err(TransactionError::refused("write", "the folders to the disk"))?;
        self.store.abandon().map_err(TransactionError::refused("remove", "the journal"))?;
        Ok(foreign)
    }

    /// Takes one entry back; false when its file is somebody else's now.
    fn take_back(&self, entry: &Entry) -> Result<bool, TransactionError> {
        let door = &self.tree.door;
        let (name, temp) = (entry.spot.name(), entry.temp.as_str());
        let cannot = || refused("restore", entry);
        let Some(folder) = self.tree.folder_if_any(&entry.spot).map_err(cannot())? else {
            return match &entry.before {
                // The folder was to be made, and was not.
                None => Ok(true),
                // Somebody removed it, with the old file or the new one in it.
                Some(_) => Ok(false),
            };
        };
        let folder = folder.as_fd();
        let look = |name: &str| -> Result<Option<Content>, TransactionError> {
            Ok(look(door, folder, name).map_err(cannot())?.map(|seen| seen.content))
        };
        let holds =
            |image: &Option<Image>, seen: &Option<Content>| Entry::holds(image.as_ref(), seen.as_ref());
        let restored = entry.second_temp();
        door.unlink(folder, &restored).map_err(cannot())?;
        let now = look(name)?;
        let untouched = holds(&entry.before, &now);
        if untouched || !holds(&entry.after, &now) {
            door.unlink(folder, temp).map_err(cannot())?;
            return Ok(untouched);
        }
        let Some(before) = &entry.before else {
            // Under the other name it can be looked at again without anybody else's file being lost.
            door.unlink(folder, temp).map_err(cannot())?;
            door.rename(folder, name, temp).map_err(cannot())?;
            if !holds(&entry.after, &look(temp)?) {
                door.rename_new(folder, temp, name).map_err(cannot())?;
                return Ok(false);
            }
            door.unlink(folder, temp).map_err(cannot())?;
            return Ok(true);
        };
        let aside = look(temp)?;
        // What lies aside and is not the old state was put there by an exchange that met somebody else's file.
        let foreign = aside.is_some() && !holds(&entry.before, &aside);
        let back = if aside.is_some() {
            temp
        } else {
            let bytes = self.store.pre_image(entry, None)?;
            make(door, folder, &restored, before, &bytes, true).map_err(cannot())?;
            &restored
        };
        if now.is_none() {
            door.rename_new(folder, back, name).map_err(cannot())?;
        } else if !door.exchange(folder, back, name).map_err(cannot())? {
            door.rename(folder, back, name).map_err(cannot())?;
        } else if holds(&entry.after, &look(back)?) {
            door.unlink(folder, back).map_err(cannot())?;
        } else {
            // Somebody wrote it between the look and the exchange.
            door.exchange(folder, back, name).map_err(cannot())?;
            door.unlink(folder, back).map_err(cannot())?;
            return Ok(false);
        }
        Ok(!foreign)
    }

    /// Clears up after the decision, and makes it a line of the log.
    pub(super) fn finish(&self) -> Result<(), TransactionError> {
        let door = &self.tree.door;
        for entry in self.journal.entries.iter().filter(|entry| entry.before.is_some()) {
            let cannot = || refused("clear up beside", entry);
            if let Some(folder) = self.tree.folder_if_any(&entry.spot).map_err(cannot())? {
                door.unlink(folder.as_fd(), &entry.temp).map_err(cannot())?;
            }
        }
        let may_go = self.journal.may_go.iter().map(|(folder, _)| folder);
        let removed = self.tree.remove_empty(may_go);
        let mut folders = removed.map_err(TransactionError::refused("remove", "emptied folders"))?;
        folders.extend(self.folders());
        let synced = self.tree.sync_folders(&folders);
        synced.map_err(TransactionError::refused("write", "the folders to the disk"))?;
        self.store.close(&self.journal).map_err(TransactionError::refused("close", "the journal"))
    }
}

/// Makes a new file or link.
fn make(
    door: &Door,
    folder: BorrowedFd<'_>,
    name: &str,
    image: &Image,
    bytes: &[u8],
    sync: bool,
) -> io::Result<()> {
    if let Content::Link { target } = &image.content {
        return door.link_to(folder, name, target);
    }
    // Until it has its owner and mode, nobody else may read it.
    let mode = match (&image.meta, image.executable) {
        (Some(_), _) => PRIVATE,
        (None, true) => 0o777,
        (None, false) => 0o666,
    };
    let file = door.create(folder, name, mode)?;
    if !bytes.is_empty() {
        door.write(&file, bytes)?;
    }
    if let Some(meta) = &image.meta {
        dress(door, &file, meta)?;
    }
    if sync {
        door.sync(&file)?;
    }
    Ok(())
}

/// For `map_err` of a rename: what is not there any more was changed.
fn gone_or(doing: &'static str, entry: &Entry) -> impl FnOnce(io::Error) -> TransactionError {
    let path = entry.path.clone();
    move |error| match error.kind() {
        io::ErrorKind::NotFound => TransactionError::Changed { path },
        _ => TransactionError::refused(doing, &path)(error),
    }
}
