//! Where sessions are found: a folder of the user's own, with a socket `<key>.sock` and a folder `<key>-<nonce>` for each.
//!
//! The folder itself is the lock under which sockets come and go (`flock`), so that no lock file is ever left. In a
//! session's own folder is the file `lock`, on which the session holds a POSIX lock as long as it lives: the kernel tells
//! who holds it, and forgets it with the process. Beside it is `temp`, the session's folder for temporary files.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, fcntl_lock};
use rustix::process::{Flock, FlockType, Pid, fcntl_getlk, geteuid};
use serde::{Deserialize, Serialize};
use tokio::net::UnixStream;

use super::key::Key;
use crate::path::AbsPath;

/// How often the lock of the folder is tried.
const RETRY: Duration = Duration::from_millis(2);

/// The user's runtime folder.
#[derive(Debug, Clone)]
pub struct Place {
    folder: AbsPath,
}

/// Why the runtime folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// The operating system refuses.
    #[error("{folder}: {error}")]
    Io {
        /// The folder.
        folder: AbsPath,
        /// What it says.
        error: io::Error,
    },
    /// Somebody else owns it or may enter it, or it is a link.
    #[error("{folder} is not a folder that belongs to this user and is closed to all others")]
    Unsafe {
        /// The folder.
        folder: AbsPath,
    },
}

/// The lock of the folder, held until it is dropped.
#[derive(Debug)]
pub(super) struct FolderLock {
    _folder: File,
}

/// What a session writes into its lock file, for whom it does not answer.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Card {
    pub(super) workspace: String,
    pub(super) supervisor: Option<u32>,
}

/// A session that lives, as its folder tells.
#[derive(Debug, Clone)]
pub(super) struct Live {
    pub(super) key: Key,
    /// `None` in another container than this one.
    pub(super) pid: Option<u32>,
    pub(super) card: Card,
}

/// The lock that says that a session lives, held until it is dropped.
#[derive(Debug)]
pub(super) struct LifeLock {
    file: File,
}

impl Place {
    /// `lanser` in `$XDG_RUNTIME_DIR` when that is this user's, else a folder in that for temporary files. After `sudo` the
    /// variable may still name another user's, who would find a folder there that is not his.
    #[must_use]
    pub fn new(runtime: Option<&AbsPath>, temp: &AbsPath) -> Self {
        let is_own = |folder: &&AbsPath| {
            let found = fs::metadata(folder.as_path());
            found.is_ok_and(|found| found.is_dir() && found.uid() == geteuid().as_raw())
        };
        let folder = match runtime.filter(is_own) {
            Some(runtime) => runtime.join("lanser"),
            None => temp.join(&format!("lanser-{}", geteuid().as_raw())),
        };
        Self { folder }
    }

    /// The folder as a session is told it.
    pub(super) const fn at(folder: AbsPath) -> Self {
        Self { folder }
    }

    pub(super) const fn folder(&self) -> &AbsPath {
        &self.folder
    }

    /// Makes sure that the folder is there (when `create` says so), is ours, and is closed to everybody else.
    pub(super) fn check(&self, create: bool) -> Result<(), PlaceError> {
        let failed = |error| PlaceError::Io { folder: self.folder.clone(), error };
        let mut found = fs::symlink_metadata(self.folder.as_path());
        if create && found.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            match DirBuilder::new().mode(0o700).create(self.folder.as_path()) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(failed(error)),
                _ => found = fs::symlink_metadata(self.folder.as_path()),
            }
        }
        let found = found.map_err(failed)?;
        match found.is_dir() && is_private(found.uid(), found.mode(), geteuid().as_raw()) {
            true => Ok(()),
            false => Err(PlaceError::Unsafe { folder: self.folder.clone() }),
        }
    }

    pub(super) fn socket(&self, key: &Key) -> AbsPath {
        self.folder.join(&format!("{}.sock", key.as_str()))
    }

    pub(super) fn home(&self, key: &Key, nonce: &str) -> AbsPath {
        self.folder.join(&format!("{}-{nonce}", key.as_str()))
    }

    /// Locks the folder; `None` when somebody holds it for too long.
    pub(super) async fn lock(&self, within: Duration) -> Option<FolderLock> {
        let folder = File::open(self.folder.as_path()).ok()?;
        let began = Instant::now();
        loop {
            match folder.try_lock() {
                Ok(()) => return Some(FolderLock { _folder: folder }),
                Err(TryLockError::WouldBlock) if began.elapsed() < within => tokio::time::sleep(RETRY).await,
                Err(_) => return None,
            }
        }
    }

    /// Locks the folder, however long that takes: nobody holds it for long, unless stopped.
    pub(super) fn lock_blocking(&self) -> io::Result<FolderLock> {
        let folder = File::open(self.folder.as_path())?;
        folder.lock()?;
        Ok(FolderLock { _folder: folder })
    }

    /// Removes what sessions left that could not clean up, and gives the keys of those that listen.
    pub(super) async fn sweep(&self, _lock: &FolderLock) -> Vec<Key> {
        let mut listening = Vec::new();
        for name in self.names() {
            let path = self.folder.join(&name);
            if let Some(key) = name.strip_suffix(".sock").and_then(Key::parse) {
                match UnixStream::connect(path.as_path()).await {
                    Err(error) if is_nobody(&error) => drop(fs::remove_file(path.as_path())),
                    _ => listening.push(key),
                }
            } else if name.split_once('-').is_some_and(|(key, _)| Key::parse(key).is_some())
                && holder(&path).is_none()
            {
                let _ = fs::remove_dir_all(path.as_path());
            }
        }
        listening
    }

    /// The sessions that live, whether they listen or not.
    pub(super) fn live(&self) -> Vec<Live> {
        let live = |name: String| {
            let key = Key::parse(name.split_once('-')?.0)?;
            let home = self.folder.join(&name);
            let pid = holder(&home)?;
            let card = fs::read(home.join("lock").as_path()).ok();
            let card = card.and_then(|card| serde_json::from_slice(&card).ok()).unwrap_or_default();
            Some(Live { key, pid: pid.map(|pid| pid.as_raw_nonzero().get().cast_unsigned()), card })
        };
        self.names().into_iter().filter_map(live).collect()
    }

    /// The names in the folder, in order.
    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.as_path()).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }
}

impl LifeLock {
    /// Makes a session's folder `home` and holds its lock. To be called under the folder's lock, so that nobody sees the
    /// one without the other; and once in a process, because closing a second handle would give the lock up.
    pub(super) fn create(home: &AbsPath, _lock: &FolderLock) -> io::Result<Self> {
        for folder in [home.clone(), home.join("temp")] {
            DirBuilder::new().mode(0o700).create(folder.as_path())?;
        }
        let file =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(home.join("lock").as_path())?;
        fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Self { file })
    }

    /// Writes the card.
    pub(super) fn tell(&mut self, card: &Card) -> io::Result<()> {
        self.file.write_all(&serde_json::to_vec(card)?)
    }
}

/// Who holds the lock of a session's folder: nobody, or a process that has a number here or has none.
#[expect(clippy::option_option, reason = "a holder in another container has no number here")]
fn holder(home: &AbsPath) -> Option<Option<Pid>> {
    let file = OpenOptions::new().read(true).write(true).open(home.join("lock").as_path()).ok()?;
    let held = fcntl_getlk(&file, &Flock::from(FlockType::WriteLock)).ok()?;
    held.map(|lock| lock.pid)
}

/// Whether a failed connect means that nobody listens.
pub(super) fn is_nobody(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound)
}

/// Whether something with this owner and mode belongs to user `own` and to nobody else.
const fn is_private(owner: u32, mode: u32, own: u32) -> bool {
    owner == own && mode & 0o077 == 0 && mode & 0o700 == 0o700
}

/// Whether the other end of a connection is this user.
pub(super) fn is_own(stream: &UnixStream) -> bool {
    stream.peer_cred().is_ok_and(|peer| is_same_user(peer.uid(), geteuid().as_raw()))
}

/// Not even root may ask another user's session: what it answers is that user's view.
const fn is_same_user(peer: u32, own: u32) -> bool {
    peer == own
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn place() -> (tempfile::TempDir, Place) {
        let folder = tempfile::tempdir().unwrap();
        let at = AbsPath::new(folder.path()).unwrap();
        (folder, Place::new(Some(&at), &at))
    }

    #[test]
    fn only_a_folder_of_ones_own() {
        let (keep, place) = place();
        assert!(place.check(false).is_err());
        place.check(true).unwrap();
        place.check(false).unwrap();
        for mode in [0o750, 0o701, 0o777, 0o500] {
            fs::set_permissions(place.folder.as_path(), fs::Permissions::from_mode(mode)).unwrap();
            assert!(matches!(place.check(true), Err(PlaceError::Unsafe { .. })), "{mode:o}");
        }
        fs::remove_dir(place.folder.as_path()).unwrap();
        let elsewhere = keep.path().join("elsewhere");
        DirBuilder::new().mode(0o700).create(&elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, place.folder.as_path()).unwrap();
        assert!(matches!(place.check(true), Err(PlaceError::Unsafe { .. })), "a link");
        fs::remove_file(place.folder.as_path()).unwrap();
        fs::write(place.folder.as_path(), "").unwrap();
        assert!(matches!(place.check(true), Err(PlaceError::Unsafe { .. })), "a file");
    }

    #[test]
    fn other_users_are_others() {
        assert!(is_private(1000, 0o40_700, 1000));
        assert!(!is_private(1001, 0o40_700, 1000) && !is_private(0, 0o40_700, 1000));
        assert!(is_same_user(1000, 1000) && !is_same_user(0, 1000) && !is_same_user(1000, 0));
    }

    #[tokio::test]
    async fn what_the_dead_left_is_swept_and_the_living_stay() {
        let (_keep, place) = place();
        place.check(true).unwrap();
        let [dead, listening, foreign] = ["0", "1", "2"].map(|digit| Key::parse(&digit.repeat(20)).unwrap());
        drop(std::os::unix::net::UnixListener::bind(place.socket(&dead).as_path()).unwrap());
        let _listener = std::os::unix::net::UnixListener::bind(place.socket(&listening).as_path()).unwrap();
        fs::create_dir(place.home(&dead, "x").as_path()).unwrap();
        fs::write(place.home(&dead, "x").join("lock").as_path(), "").unwrap();
        fs::create_dir(place.home(&foreign, "y").as_path()).unwrap();
        fs::write(place.folder.join("note").as_path(), "").unwrap();
        let lock = place.lock(Duration::from_secs(1)).await.unwrap();
        assert!(place.lock(Duration::from_millis(20)).await.is_none(), "one at a time");
        assert_eq!(place.sweep(&lock).await, std::slice::from_ref(&listening));
        assert_eq!(place.names(), [format!("{}.sock", listening.as_str()), "note".to_owned()]);
    }
}
