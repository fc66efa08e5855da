//! Temporary folders for states of the code. One that a killed process left is removed by the next run.
//!
//! Whoever makes a folder holds a lock in it for as long as he lives; the kernel takes it away with the process. A folder whose lock
//! is free has no owner any more.

use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use crate::path::AbsPath;

/// How the folders' names begin.
const PREFIX: &str = "lanser-score-";

/// The owner's lock. It gets this name only once it is held.
const LOCK: &str = "lock";

/// Where the code is.
const CODE: &str = "code";

/// A folder without a lock was just made, or left just then; past this age nobody is about to lock it.
const UNLOCKED: Duration = Duration::from_secs(3600);

/// A folder that is removed with everything in it.
pub(super) struct Folder {
    place: tempfile::TempDir,
    /// Held while this lives.
    _lock: File,
}

impl Folder {
    /// A new folder in the one for temporary files. Blocking.
    ///
    /// # Errors
    /// When none can be made.
    pub(super) fn new(temp: &AbsPath) -> io::Result<Self> {
        let place = tempfile::Builder::new().prefix(PREFIX).tempdir_in(temp.as_path())?;
        let early = place.path().join("lock.new");
        let lock = File::create(&early)?;
        lock.lock()?;
        std::fs::rename(early, place.path().join(LOCK))?;
        std::fs::create_dir(place.path().join(CODE))?;
        Ok(Self { place, _lock: lock })
    }

    /// Where the code goes.
    pub(super) fn code(&self) -> io::Result<AbsPath> {
        AbsPath::new(self.place.path().join(CODE)).map_err(|_| io::ErrorKind::InvalidInput.into())
    }
}

/// Removes the folders of this user that nobody owns any more. What cannot be removed stays. Blocking.
pub(super) fn sweep(temp: &AbsPath) {
    for entry in std::fs::read_dir(temp.as_path()).into_iter().flatten().flatten() {
        if entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX)) {
            remove_if_left(&entry.path());
        }
    }
}

fn remove_if_left(folder: &Path) {
    // Of the entry itself: a link to somebody's folder is no folder of ours.
    let Ok(metadata) = std::fs::symlink_metadata(folder) else { return };
    if !metadata.is_dir() || metadata.uid() != rustix::process::geteuid().as_raw() {
        return;
    }
    let left = match File::open(folder.join(LOCK)) {
        // Held until the folder is gone, so that only one of many that sweep removes it.
        Ok(lock) => match lock.try_lock() {
            Ok(()) => Some(lock),
            Err(TryLockError::WouldBlock | TryLockError::Error(_)) => return,
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(_) => return,
    };
    let age = metadata.modified().ok().and_then(|time| time.elapsed().ok()).unwrap_or_default();
    if left.is_some() || age > UNLOCKED {
        let _ = std::fs::remove_dir_all(folder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_an_owner_or_is_not_ours_stays() {
        let temp = tempfile::tempdir().unwrap();
        let at = AbsPath::new(temp.path()).unwrap();
        let owned = Folder::new(&at).unwrap();
        let left = temp.path().join("lanser-score-left");
        let folder = |name: &str| {
            let folder = temp.path().join(name);
            std::fs::create_dir_all(folder.join("code/deep")).unwrap();
            folder
        };
        folder("lanser-score-left");
        File::create(left.join(LOCK)).unwrap();
        let (young, other, old) =
            (folder("lanser-score-young"), folder("another"), folder("lanser-score-old"));
        let hours = std::time::SystemTime::now() - UNLOCKED * 2;
        File::open(&old).unwrap().set_modified(hours).unwrap();
        std::os::unix::fs::symlink(&other, temp.path().join("lanser-score-link")).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let mine = Folder::new(&at).unwrap();
                    sweep(&at);
                    assert!(mine.code().unwrap().as_path().is_dir());
                });
            }
        });
        assert!(owned.code().unwrap().as_path().is_dir());
        assert_eq!([&left, &young, &other, &old].map(|path| path.exists()), [false, true, true, false]);
        let link = temp.path().join("lanser-score-link");
        assert!(link.symlink_metadata().is_ok() && other.join("code/deep").exists());
        drop(owned);
        assert_eq!(std::fs::read_dir(temp.path()).unwrap().count(), 3);
    }
}
