//! Temporary folders for states of the code. A folder that a killed process left behind is removed by the next run.
//!
//! The process that creates a folder holds a lock in it; the kernel releases the lock when the process ends. So a
//! folder whose lock is free has no owner.

use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::engine::blocking::blocking;
use crate::engine::failure::Failure;
use crate::engine::settings::Settings;
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::path::AbsPath;
use crate::workspace::file_tree::FileTree;
use crate::workspace::files::canonical;

/// The prefix of the folders' names.
const PREFIX: &str = "lanser-score-";

/// The owner's lock file. It gets this name only after it was locked.
const LOCK_NAME: &str = "lock";

/// The subfolder for the code.
const CODE_NAME: &str = "code";

/// A folder without a lock file was just created, or its owner was killed at that moment. Past this age no process is
/// about to lock it.
const MAX_UNLOCKED_AGE: Duration = Duration::from_secs(3600);

/// A temporary folder that is deleted on drop.
pub(in crate::engine) struct ScratchFolder {
    folder: tempfile::TempDir,
    /// Held for the lifetime of the folder.
    _lock: File,
}

impl ScratchFolder {
    /// Creates a folder in `temp`. Blocking.
    ///
    /// # Errors
    /// If it cannot be created.
    fn new(temp: &AbsPath) -> io::Result<Self> {
        // The code may be private, and the folder for temporary files is shared.
        let private = std::fs::Permissions::from_mode(0o700);
        let folder =
            tempfile::Builder::new().prefix(PREFIX).permissions(private).tempdir_in(temp.as_path())?;
        let unlocked_name = folder.path().join("lock.new");
        let lock = File::create(&unlocked_name)?;
        lock.lock()?;
        std::fs::rename(unlocked_name, folder.path().join(LOCK_NAME))?;
        std::fs::create_dir(folder.path().join(CODE_NAME))?;
        Ok(Self { folder, _lock: lock })
    }

    /// Writes a state of the code to a new folder, and returns it with the canonical path of the code. Folders that killed
    /// processes left behind are removed first. `what` names the state in the error: `the workspace`.
    ///
    /// # Errors
    /// If the state cannot be written, or not within the time limit.
    pub(in crate::engine) async fn with_copy(
        settings: &Settings,
        tree: &Arc<FileTree>,
        what: &str,
    ) -> Result<(Self, AbsPath), Failure> {
        let (temp, tree, limit) = (settings.temp.clone(), tree.clone(), settings.timeout);
        let written = blocking(move || {
            remove_abandoned(&temp);
            let folder = Self::new(&temp)?;
            let root = canonical(&folder.code()?);
            tree.write_to(&root, limit)?;
            Ok((folder, root))
        });
        written.await?.map_err(|error| Failure::reported(cannot_copy(what, &error)))
    }

    /// The subfolder for the code.
    fn code(&self) -> io::Result<AbsPath> {
        AbsPath::new(self.folder.path().join(CODE_NAME)).map_err(|_| io::ErrorKind::InvalidInput.into())
    }
}

/// The error for a temporary copy that cannot be written.
pub(in crate::engine) fn cannot_copy(what: &str, error: &io::Error) -> ErrorBody {
    let hint = match error.kind() {
        io::ErrorKind::TimedOut => "--timeout gives more time",
        _ => "set TMPDIR to a folder with enough space",
    };
    let message = format!("cannot write a temporary copy of {what}: {error}");
    ErrorBody::new(ErrorSymbol::FsPermissions, message).hint(hint)
}

/// Removes the abandoned folders of this user. Errors are ignored. Blocking.
fn remove_abandoned(temp: &AbsPath) {
    for entry in std::fs::read_dir(temp.as_path()).into_iter().flatten().flatten() {
        if entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX)) {
            remove_if_abandoned(&entry.path());
        }
    }
}

fn remove_if_abandoned(folder: &Path) {
    // The metadata of the entry itself: a symbolic link to a folder is not removed.
    let Ok(metadata) = std::fs::symlink_metadata(folder) else { return };
    if !metadata.is_dir() || metadata.uid() != rustix::process::geteuid().as_raw() {
        return;
    }
    let abandoned = match File::open(folder.join(LOCK_NAME)) {
        // Held until the folder is removed, so that only one of several concurrent sweeps removes it.
        Ok(lock) => match lock.try_lock() {
            Ok(()) => Some(lock),
            Err(TryLockError::WouldBlock | TryLockError::Error(_)) => return,
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(_) => return,
    };
    let age = metadata.modified().ok().and_then(|time| time.elapsed().ok()).unwrap_or_default();
    if abandoned.is_some() || age > MAX_UNLOCKED_AGE {
        let _ = std::fs::remove_dir_all(folder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owned_and_foreign_folders_are_not_removed() {
        let temp = tempfile::tempdir().unwrap();
        let at = AbsPath::new(temp.path()).unwrap();
        let owned = ScratchFolder::new(&at).unwrap();
        assert_eq!(std::fs::metadata(owned.folder.path()).unwrap().mode() & 0o777, 0o700);
        let abandoned = temp.path().join("lanser-score-left");
        let folder = |name: &str| {
            let folder = temp.path().join(name);
            std::fs::create_dir_all(folder.join("code/deep")).unwrap();
            folder
        };
        folder("lanser-score-left");
        File::create(abandoned.join(LOCK_NAME)).unwrap();
        let (young, other, old) =
            (folder("lanser-score-young"), folder("another"), folder("lanser-score-old"));
        let hours = std::time::SystemTime::now() - MAX_UNLOCKED_AGE * 2;
        File::open(&old).unwrap().set_modified(hours).unwrap();
        std::os::unix::fs::symlink(&other, temp.path().join("lanser-score-link")).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let mine = ScratchFolder::new(&at).unwrap();
                    remove_abandoned(&at);
                    assert!(mine.code().unwrap().as_path().is_dir());
                });
            }
        });
        assert!(owned.code().unwrap().as_path().is_dir());
        assert_eq!([&abandoned, &young, &other, &old].map(|path| path.exists()), [false, true, true, false]);
        let link = temp.path().join("lanser-score-link");
        assert!(link.symlink_metadata().is_ok() && other.join("code/deep").exists());
        drop(owned);
        assert_eq!(std::fs::read_dir(temp.path()).unwrap().count(), 3);
    }
}
