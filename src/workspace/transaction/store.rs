//! The folder of journals, and its lock.
//!
//! There is one such folder for each git worktree, or for each workspace outside of git. The name of a journal's folder
//! shows the state of its transaction, so each transition is one rename:
//!
//! | name | state | action of the next command |
//! |---|---|---|
//! | `new` | the journal is being written; no file was changed | removes it |
//! | `open` | files may have been changed | rolls back |
//! | `closing` | committed; temporary files may remain | cleans up |
//! | `00000012-<id>` | closed: an entry of the operation log | |
//! | `gone` | discarded | removes it |
//!
//! Only the owner may read the folder, because a pre-image may come from a file that others may not read.

use std::fs::{File, TryLockError};
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::time::{Duration, Instant};

use super::error::TransactionError;
use super::file_image::Content;
use super::journal::{Journal, JournalEntry, damaged};
use super::sys::{PRIVATE, Sys};
use crate::path::AbsPath;

const LOCK: &str = "lock";
const NEW: &str = "new";
const OPEN: &str = "open";
const CLOSING: &str = "closing";
const DISCARDED: &str = "gone";
const JOURNAL: &str = "journal";
const PRE_IMAGES: &str = "before";

/// The operation log has at most this many transactions.
const MAX_LOG_ENTRIES: usize = 100;
/// The operation log has at most this many bytes of pre-images.
const MAX_PRE_IMAGE_BYTES: u64 = 256 * 1024 * 1024;

/// The interval between attempts to take the lock.
const LOCK_RETRY_INTERVAL: Duration = Duration::from_millis(20);

/// The state of an interrupted transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JournalState {
    /// It may have changed files, and has to be rolled back.
    Open,
    /// It is committed, and has to be cleaned up.
    Closing,
}

impl JournalState {
    const fn folder(self) -> &'static str {
        match self {
            Self::Open => OPEN,
            Self::Closing => CLOSING,
        }
    }
}

/// An opened folder of journals.
#[derive(Debug)]
pub(super) struct JournalStore {
    sys: Sys,
    path: AbsPath,
    folder: OwnedFd,
}

/// The lock for changing the workspace. It is released when this value is dropped or the process ends.
#[derive(Debug)]
pub(super) struct WorkspaceLock {
    file: File,
}

impl Drop for WorkspaceLock {
    fn drop(&mut self) {
        // Closing the file is not enough: a child process that is just being started may not have closed its copy yet.
        let _ = self.file.unlock();
    }
}

/// A closed journal: an entry of the operation log.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ClosedJournal {
    pub(super) number: u32,
    pub(super) id: String,
}

impl ClosedJournal {
    fn folder(&self) -> String {
        format!("{:08}-{}", self.number, self.id)
    }

    fn parse(name: &str) -> Option<Self> {
        let (number, id) = name.split_once('-').filter(|(number, _)| number.len() == 8)?;
        let is_valid = !id.is_empty() && id.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
        Some(Self { number: number.parse().ok().filter(|_| is_valid)?, id: id.to_owned() })
    }
}

impl JournalStore {
    /// Whether a transaction was interrupted or is running. Takes two `lstat` calls.
    pub(super) fn is_busy(path: &AbsPath) -> bool {
        [OPEN, CLOSING].into_iter().any(|name| path.join(name).as_path().symlink_metadata().is_ok())
    }

    /// Opens the folder; `None` when it does not exist.
    pub(super) fn find(sys: &Sys, path: &AbsPath) -> Result<Option<Self>, TransactionError> {
        match path.as_path().symlink_metadata() {
            Ok(metadata) if metadata.is_dir() => {
                // Recovery executes what a journal says, so only the user may write it.
                if metadata.uid() != rustix::process::geteuid().as_raw() || metadata.mode() & 0o022 != 0 {
                    return Err(damaged(path)("other users can write to the folder of journals".to_owned()));
                }
            }
            Ok(_) => return Err(damaged(path)("it is not a folder".to_owned())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(TransactionError::refused("inspect", path)(error)),
        }
        let folder = sys.open_base(path.as_path()).map_err(TransactionError::refused("open", path))?;
        Ok(Some(Self { sys: sys.clone(), path: path.clone(), folder }))
    }

    /// Opens the folder, and creates it if it does not exist.
    pub(super) fn create(sys: &Sys, path: &AbsPath) -> Result<Self, TransactionError> {
        let cannot = || TransactionError::refused("create", path);
        if let Some(found) = Self::find(sys, path)? {
            return Ok(found);
        }
        let mut missing = Vec::new();
        let mut at = path.clone();
        while !at.as_path().exists() {
            missing.push(at.file_name().to_owned());
            at = at.parent();
        }
        let mut folder = sys.open_base(at.as_path()).map_err(cannot())?;
        for name in missing.iter().rev() {
            match sys.create_folder(folder.as_fd(), name, 0o700) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(cannot()(error)),
                _ => {}
            }
            sys.sync(&folder).map_err(cannot())?;
            folder = sys.open_folder(folder.as_fd(), name).map_err(cannot())?;
        }
        Ok(Self { sys: sys.clone(), path: path.clone(), folder })
    }

    fn refused(&self, doing: &'static str, name: &str) -> impl FnOnce(io::Error) -> TransactionError {
        TransactionError::refused(doing, self.path.join(name))
    }

    /// Takes the lock, waiting up to `lock_timeout`.
    pub(super) fn lock(&self, lock_timeout: Duration) -> Result<WorkspaceLock, TransactionError> {
        let path = self.path.join(LOCK);
        let began = Instant::now();
        match self.sys.create(self.folder.as_fd(), LOCK, PRIVATE) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(self.refused("create", LOCK)(error));
            }
            _ => {}
        }
        let mut options = File::options();
        options.read(true).write(true);
        let file = options.open(path.as_path()).map_err(self.refused("open", LOCK))?;
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if began.elapsed() < lock_timeout => {
                    std::thread::sleep(LOCK_RETRY_INTERVAL);
                }
                Err(TryLockError::WouldBlock) => {
                    let holder = std::fs::read_to_string(path.as_path()).unwrap_or_default();
                    return Err(TransactionError::Busy { pid: holder.trim().parse().ok() });
                }
                Err(TryLockError::Error(error)) => return Err(self.refused("lock", LOCK)(error)),
            }
        }
        // The process id is only for the error message of waiting processes.
        let _ = file.set_len(0).and_then(|()| {
            std::os::unix::fs::FileExt::write_all_at(&file, std::process::id().to_string().as_bytes(), 0)
        });
        Ok(WorkspaceLock { file })
    }

    /// Writes a journal and its pre-images. When this returns, the journal is open.
    pub(super) fn begin(
        &self,
        journal: &Journal,
        pre_images: &[&[u8]],
        _lock: &WorkspaceLock,
    ) -> Result<(), TransactionError> {
        self.remove(DISCARDED)?;
        self.remove(NEW)?;
        let begun = self.write(journal, pre_images).and_then(|()| {
            self.sys.rename(self.folder.as_fd(), NEW, OPEN)?;
            self.sys.sync(&self.folder)
        });
        begun.map_err(|error| {
            // Whether or not the rename succeeded, the workspace is unchanged.
            let _ = self.discard(OPEN);
            let _ = self.remove(NEW);
            self.refused("write", JOURNAL)(error)
        })
    }

    fn write(&self, journal: &Journal, pre_images: &[&[u8]]) -> io::Result<()> {
        let sys = &self.sys;
        sys.create_folder(self.folder.as_fd(), NEW, 0o700)?;
        let folder = sys.open_folder(self.folder.as_fd(), NEW)?;
        let before = sys.create(folder.as_fd(), PRE_IMAGES, PRIVATE)?;
        if pre_images.iter().any(|bytes| !bytes.is_empty()) {
            sys.write(&before, &pre_images.concat())?;
        }
        sys.sync(&before)?;
        let file = sys.create(folder.as_fd(), JOURNAL, PRIVATE)?;
        sys.write(&file, &journal.to_bytes())?;
        sys.sync(&file)?;
        sys.sync(&folder)
    }

    /// Commits the open transaction. This is the point of no return.
    pub(super) fn commit(&self) -> io::Result<()> {
        self.sys.rename(self.folder.as_fd(), OPEN, CLOSING)?;
        // If this fails, a power cut may still undo the commit, but then the whole transaction is rolled back.
        let _ = self.sys.sync(&self.folder);
        Ok(())
    }

    /// Closes the journal of a committed transaction, which becomes an entry of the operation log.
    pub(super) fn close(&self, journal: &Journal) -> io::Result<()> {
        let number = self.closed_journals_io()?.last().map_or(1, |last| last.number + 1);
        let closed = ClosedJournal { number, id: journal.id.clone() };
        self.sys.rename(self.folder.as_fd(), CLOSING, &closed.folder())?;
        self.sys.sync(&self.folder)?;
        // If this fails, the next transaction trims the log.
        let _ = self.trim(MAX_LOG_ENTRIES, MAX_PRE_IMAGE_BYTES);
        Ok(())
    }

    /// Removes the oldest entries of the log that exceed a limit. The newest always stays.
    pub(super) fn trim(&self, count: usize, bytes: u64) -> io::Result<()> {
        let closed_journals = self.closed_journals_io()?;
        let mut total = 0;
        for (index, closed) in closed_journals.iter().rev().enumerate() {
            let folder = self.sys.open_folder(self.folder.as_fd(), &closed.folder())?;
            let size = self.sys.stat(folder.as_fd(), PRE_IMAGES)?.map_or(0, |stat| stat.size);
            total += size;
            if index > 0 && (index >= count || total > bytes) {
                self.discard(&closed.folder())?;
            }
        }
        Ok(())
    }

    /// Discards the open journal, after a rollback.
    pub(super) fn discard_open(&self) -> io::Result<()> {
        self.discard(OPEN)
    }

    /// Discards a journal's folder: one rename makes it invalid, and then it is removed.
    fn discard(&self, name: &str) -> io::Result<()> {
        self.remove_io(DISCARDED)?;
        match self.sys.rename(self.folder.as_fd(), name, DISCARDED) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            renamed => renamed?,
        }
        self.sys.sync(&self.folder)?;
        // If this fails, the next command removes it.
        let _ = self.remove_io(DISCARDED);
        Ok(())
    }

    fn remove(&self, name: &'static str) -> Result<(), TransactionError> {
        self.remove_io(name).map_err(self.refused("remove", name))
    }

    fn remove_io(&self, name: &str) -> io::Result<()> {
        let folder = match self.sys.open_folder(self.folder.as_fd(), name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            folder => folder?,
        };
        for file in [JOURNAL, PRE_IMAGES] {
            self.sys.unlink(folder.as_fd(), file)?;
        }
        self.sys.remove_folder(self.folder.as_fd(), name)?;
        Ok(())
    }

    /// The interrupted transaction, if there is one. The lock proves that it is not running.
    pub(super) fn interrupted(
        &self,
        _lock: &WorkspaceLock,
    ) -> Result<Option<(JournalState, Journal)>, TransactionError> {
        for progress in [JournalState::Closing, JournalState::Open] {
            let name = progress.folder();
            let found = self.sys.stat(self.folder.as_fd(), name);
            if found.map_err(self.refused("inspect", name))?.is_some() {
                return Ok(Some((progress, self.read(name)?)));
            }
        }
        Ok(None)
    }

    /// The closed journals, oldest first.
    pub(super) fn closed_journals(&self) -> Result<Vec<ClosedJournal>, TransactionError> {
        self.closed_journals_io().map_err(self.refused("list", ""))
    }

    fn closed_journals_io(&self) -> io::Result<Vec<ClosedJournal>> {
        // A new descriptor, because listing a folder moves the descriptor's position.
        let folder = self.sys.open_folder(self.folder.as_fd(), "")?;
        let names = self.sys.list(folder.as_fd())?;
        let mut closed_journals: Vec<ClosedJournal> =
            names.iter().filter_map(|name| ClosedJournal::parse(name)).collect();
        closed_journals.sort();
        Ok(closed_journals)
    }

    /// Reads a closed journal.
    pub(super) fn journal(&self, closed: &ClosedJournal) -> Result<Journal, TransactionError> {
        self.read(&closed.folder())
    }

    fn read(&self, name: &str) -> Result<Journal, TransactionError> {
        let read = || {
            let folder = self.sys.open_folder(self.folder.as_fd(), name)?;
            self.sys.read(&self.sys.open(folder.as_fd(), JOURNAL)?)
        };
        let bytes = read().map_err(self.refused("read", name))?;
        Journal::from_bytes(&bytes).map_err(damaged(self.path.join(name)))
    }

    /// The pre-image of an entry's file, from the open journal or a closed one.
    pub(super) fn pre_image(
        &self,
        entry: &JournalEntry,
        closed: Option<&ClosedJournal>,
    ) -> Result<Vec<u8>, TransactionError> {
        let name = closed.map_or_else(|| OPEN.to_owned(), ClosedJournal::folder);
        let read = || {
            let folder = self.sys.open_folder(self.folder.as_fd(), &name)?;
            let file = self.sys.open(folder.as_fd(), PRE_IMAGES)?;
            let end = entry.offset.checked_add(entry.pre_image_length());
            if end.is_none_or(|end| file.metadata().map_or(0, |metadata| metadata.len()) < end) {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let length = usize::try_from(entry.pre_image_length()).map_err(io::Error::other)?;
            self.sys.read_at(&file, entry.offset, length)
        };
        let bytes = read().map_err(self.refused("read", &name))?;
        match entry.before.as_ref().map(|image| &image.content) {
            Some(content @ Content::File { .. }) if *content != Content::of(&bytes) => {
                Err(damaged(self.path.join(&name))(format!(
                    "the pre-image of {} does not match its digest",
                    entry.path
                )))
            }
            _ => Ok(bytes),
        }
    }
}
