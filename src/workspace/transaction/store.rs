//! Where journals are kept, and the lock.
//!
//! One folder for one git worktree, or for one workspace without git. The name of a journal's folder says how far its
//! transaction came, so that each step is one rename:
//!
//! | name | state | what the next command does |
//! |---|---|---|
//! | `new` | being written; nothing was done | removes it |
//! | `open` | files may be changed | takes it back |
//! | `closing` | decided; traces may be left | clears up |
//! | `00000012-<id>` | done: a line of the operation log | |
//! | `gone` | given up | removes it |
//!
//! The folder is its owner's alone: a pre-image may come from a file that others may not read.

use std::fs::{File, TryLockError};
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::time::{Duration, Instant};

use super::door::{Door, PRIVATE};
use super::error::TransactionError;
use super::image::Content;
use super::journal::{Entry, Journal, damaged};
use crate::path::AbsPath;

const LOCK: &str = "lock";
const NEW: &str = "new";
const OPEN: &str = "open";
const CLOSING: &str = "closing";
const GONE: &str = "gone";
const JOURNAL: &str = "journal";
const BEFORE: &str = "before";

/// How many transactions are remembered.
const MAX_KEPT: usize = 100;
/// How many bytes of pre-images are kept.
const MAX_KEPT_BYTES: u64 = 256 * 1024 * 1024;

/// How often a lock is tried.
const TRY_EVERY: Duration = Duration::from_millis(20);

/// How far a transaction that was found came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// It may have changed files, and is to be taken back.
    Open,
    /// It is decided.
    Closing,
}

impl Progress {
    const fn folder(self) -> &'static str {
        match self {
            Self::Open => OPEN,
            Self::Closing => CLOSING,
        }
    }
}

/// The folder of journals.
#[derive(Debug)]
pub(super) struct Store {
    door: Door,
    place: AbsPath,
    folder: OwnedFd,
}

/// The right to change the workspace; it ends with this value, or with the process.
#[derive(Debug)]
pub(super) struct Lock {
    file: File,
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing would do, but for a child that this process is just starting and that has not closed its copy yet.
        let _ = self.file.unlock();
    }
}

/// A line of the operation log.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Kept {
    pub(super) number: u32,
    pub(super) id: String,
}

impl Kept {
    fn folder(&self) -> String {
        format!("{:08}-{}", self.number, self.id)
    }

    fn parse(name: &str) -> Option<Self> {
        let (number, id) = name.split_once('-').filter(|(number, _)| number.len() == 8)?;
        let plain = !id.is_empty() && id.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
        Some(Self { number: number.parse().ok().filter(|_| plain)?, id: id.to_owned() })
    }
}

impl Store {
    /// Whether a transaction was interrupted, or is under way: two looks at the disk.
    pub(super) fn is_busy(place: &AbsPath) -> bool {
        [OPEN, CLOSING].into_iter().any(|name| place.join(name).as_path().symlink_metadata().is_ok())
    }

    /// The folder, if it is there.
    pub(super) fn find(door: &Door, place: &AbsPath) -> Result<Option<Self>, TransactionError> {
        match place.as_path().symlink_metadata() {
            Ok(metadata) if metadata.is_dir() => {
                // What a journal says is done to files.
                if metadata.uid() != rustix::process::geteuid().as_raw() || metadata.mode() & 0o022 != 0 {
                    return Err(damaged(place)("others can write to the folder of journals".to_owned()));
                }
            }
            Ok(_) => return Err(damaged(place)("it is no folder".to_owned())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(TransactionError::refused("look at", place)(error)),
        }
        let folder = door.base(place.as_path()).map_err(TransactionError::refused("open", place))?;
        Ok(Some(Self { door: door.clone(), place: place.clone(), folder }))
    }

    /// The folder, made where there is none.
    pub(super) fn make(door: &Door, place: &AbsPath) -> Result<Self, TransactionError> {
        let cannot = || TransactionError::refused("make", place);
        if let Some(found) = Self::find(door, place)? {
            return Ok(found);
        }
        let mut missing = Vec::new();
        let mut at = place.clone();
        while !at.as_path().exists() {
            missing.push(at.file_name().to_owned());
            at = at.parent();
        }
        let mut folder = door.base(at.as_path()).map_err(cannot())?;
        for name in missing.iter().rev() {
            match door.make_folder(folder.as_fd(), name, 0o700) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(cannot()(error)),
                _ => {}
            }
            door.sync(&folder).map_err(cannot())?;
            folder = door.folder(folder.as_fd(), name).map_err(cannot())?;
        }
        Ok(Self { door: door.clone(), place: place.clone(), folder })
    }

    fn refused(&self, doing: &'static str, name: &str) -> impl FnOnce(io::Error) -> TransactionError {
        TransactionError::refused(doing, self.place.join(name))
    }

    /// Waits for the lock, as long as `patience`.
    pub(super) fn lock(&self, patience: Duration) -> Result<Lock, TransactionError> {
        let path = self.place.join(LOCK);
        let began = Instant::now();
        match self.door.create(self.folder.as_fd(), LOCK, PRIVATE) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(self.refused("make", LOCK)(error));
            }
            _ => {}
        }
        let mut options = File::options();
        options.read(true).write(true);
        let file = options.open(path.as_path()).map_err(self.refused("open", LOCK))?;
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if began.elapsed() < patience => std::thread::sleep(TRY_EVERY),
                Err(TryLockError::WouldBlock) => {
                    let words = std::fs::read_to_string(path.as_path()).unwrap_or_default();
                    return Err(TransactionError::Busy { pid: words.trim().parse().ok() });
                }
                Err(TryLockError::Error(error)) => return Err(self.refused("lock", LOCK)(error)),
            }
        }
        // Only for the message of those who wait.
        let _ = file.set_len(0).and_then(|()| {
            std::os::unix::fs::FileExt::write_all_at(&file, std::process::id().to_string().as_bytes(), 0)
        });
        Ok(Lock { file })
    }

    /// Writes a journal and its pre-images; from the end of this on it is open.
    pub(super) fn begin(
        &self,
        journal: &Journal,
        pre_images: &[&[u8]],
        _lock: &Lock,
    ) -> Result<(), TransactionError> {
        self.remove(GONE)?;
        self.remove(NEW)?;
        let begun = self.write(journal, pre_images).and_then(|()| {
            self.door.rename(self.folder.as_fd(), NEW, OPEN)?;
            self.door.sync(&self.folder)
        });
        begun.map_err(|error| {
            // Whether the rename was made or not, nothing in the workspace was touched.
            let _ = self.give_up(OPEN);
            let _ = self.remove(NEW);
            self.refused("write", JOURNAL)(error)
        })
    }

    fn write(&self, journal: &Journal, pre_images: &[&[u8]]) -> io::Result<()> {
        let door = &self.door;
        door.make_folder(self.folder.as_fd(), NEW, 0o700)?;
        let folder = door.folder(self.folder.as_fd(), NEW)?;
        let before = door.create(folder.as_fd(), BEFORE, PRIVATE)?;
        if pre_images.iter().any(|bytes| !bytes.is_empty()) {
            door.write(&before, &pre_images.concat())?;
        }
        door.sync(&before)?;
        let file = door.create(folder.as_fd(), JOURNAL, PRIVATE)?;
        door.write(&file, &journal.to_bytes())?;
        door.sync(&file)?;
        door.sync(&folder)
    }

    /// The point of no return: what is open is decided.
    pub(super) fn commit(&self) -> io::Result<()> {
        self.door.rename(self.folder.as_fd(), OPEN, CLOSING)?;
        // If this fails, a power cut may still take all of it back; all of it.
        let _ = self.door.sync(&self.folder);
        Ok(())
    }

    /// What is decided and cleared up becomes a line of the log.
    pub(super) fn close(&self, journal: &Journal) -> io::Result<()> {
        let number = self.kept_io()?.last().map_or(1, |last| last.number + 1);
        let kept = Kept { number, id: journal.id.clone() };
        self.door.rename(self.folder.as_fd(), CLOSING, &kept.folder())?;
        self.door.sync(&self.folder)?;
        // The log is bounded by the next one otherwise.
        let _ = self.forget(MAX_KEPT, MAX_KEPT_BYTES);
        Ok(())
    }

    /// Removes the oldest lines of the log past a bound. The newest stays.
    pub(super) fn forget(&self, count: usize, bytes: u64) -> io::Result<()> {
        let kept = self.kept_io()?;
        let mut total = 0;
        for (index, line) in kept.iter().rev().enumerate() {
            let folder = self.door.folder(self.folder.as_fd(), &line.folder())?;
            let size = self.door.stat(folder.as_fd(), BEFORE)?.map_or(0, |stat| stat.size);
            total += size;
            if index > 0 && (index >= count || total > bytes) {
                self.give_up(&line.folder())?;
            }
        }
        Ok(())
    }

    /// What was taken back is no transaction any more.
    pub(super) fn abandon(&self) -> io::Result<()> {
        self.give_up(OPEN)
    }

    /// Moves a folder of a journal out of sight at once and then removes it.
    fn give_up(&self, name: &str) -> io::Result<()> {
        self.remove_io(GONE)?;
        match self.door.rename(self.folder.as_fd(), name, GONE) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            renamed => renamed?,
        }
        self.door.sync(&self.folder)?;
        // What stays is removed by the next one.
        let _ = self.remove_io(GONE);
        Ok(())
    }

    fn remove(&self, name: &'static str) -> Result<(), TransactionError> {
        self.remove_io(name).map_err(self.refused("remove", name))
    }

    fn remove_io(&self, name: &str) -> io::Result<()> {
        let folder = match self.door.folder(self.folder.as_fd(), name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            folder => folder?,
        };
        for file in [JOURNAL, BEFORE] {
            self.door.unlink(folder.as_fd(), file)?;
        }
        self.door.remove_folder(self.folder.as_fd(), name)?;
        Ok(())
    }

    /// The transaction that was interrupted; the lock says that it is not under way.
    pub(super) fn interrupted(&self, _lock: &Lock) -> Result<Option<(Progress, Journal)>, TransactionError> {
        for progress in [Progress::Closing, Progress::Open] {
            let name = progress.folder();
            let found = self.door.stat(self.folder.as_fd(), name);
            if found.map_err(self.refused("look at", name))?.is_some() {
                return Ok(Some((progress, self.read(name)?)));
            }
        }
        Ok(None)
    }

    /// The log, the oldest first.
    pub(super) fn kept(&self) -> Result<Vec<Kept>, TransactionError> {
        self.kept_io().map_err(self.refused("list", ""))
    }

    fn kept_io(&self) -> io::Result<Vec<Kept>> {
        // Another descriptor: reading a folder moves it on.
        let folder = self.door.folder(self.folder.as_fd(), "")?;
        let names = self.door.list(folder.as_fd())?;
        let mut kept: Vec<Kept> = names.iter().filter_map(|name| Kept::parse(name)).collect();
        kept.sort();
        Ok(kept)
    }

    /// The journal of a line of the log.
    pub(super) fn journal(&self, kept: &Kept) -> Result<Journal, TransactionError> {
        self.read(&kept.folder())
    }

    fn read(&self, name: &str) -> Result<Journal, TransactionError> {
        let read = || {
            let folder = self.door.folder(self.folder.as_fd(), name)?;
            self.door.read(&self.door.open(folder.as_fd(), JOURNAL)?)
        };
        let bytes = read().map_err(self.refused("read", name))?;
        Journal::from_bytes(&bytes).map_err(damaged(self.place.join(name)))
    }

    /// The bytes that an entry's file had, out of the open transaction or a line of the log.
    pub(super) fn pre_image(&self, entry: &Entry, of: Option<&Kept>) -> Result<Vec<u8>, TransactionError> {
        let name = of.map_or_else(|| OPEN.to_owned(), Kept::folder);
        let read = || {
            let folder = self.door.folder(self.folder.as_fd(), &name)?;
            let file = self.door.open(folder.as_fd(), BEFORE)?;
            let end = entry.offset.checked_add(entry.pre_image_length());
            if end.is_none_or(|end| file.metadata().map_or(0, |metadata| metadata.len()) < end) {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let length = usize::try_from(entry.pre_image_length()).map_err(io::Error::other)?;
            self.door.read_at(&file, entry.offset, length)
        };
        let bytes = read().map_err(self.refused("read", &name))?;
        match entry.before.as_ref().map(|image| &image.content) {
            Some(content @ Content::File { .. }) if *content != Content::of(&bytes) => {
                Err(damaged(self.place.join(&name))(format!("the pre-image of {} is another", entry.path)))
            }
            _ => Ok(bytes),
        }
    }
}
