//! The folder in which sessions are found: for each, a socket `<key>.sock` and a folder `<key>-<nonce>`.
//!
//! Sockets are created and removed under a lock (`flock`) on the runtime folder itself, so that no lock file can be
//! left behind. The session's folder holds the file `lock`, on which the session has a POSIX lock while it lives: the
//! kernel reports the holder, and releases the lock when the process ends. Beside it is `temp`, the session's folder
//! for temporary files.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, fcntl_lock};
use rustix::process::{Flock, FlockType, Pid, fcntl_getlk, geteuid};
use serde::{Deserialize, Serialize};
use tokio::net::UnixStream;

use super::key::SessionKey;
use crate::path::AbsPath;

/// The interval between attempts to lock the folder.
const LOCK_RETRY_INTERVAL: Duration = Duration::from_millis(2);

/// The user's runtime folder.
#[derive(Debug, Clone)]
pub struct RuntimeDir {
    folder: AbsPath,
}

/// Why the runtime folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeDirError {
    /// The operating system refused an operation.
    #[error("{folder}: {error}")]
    Io {
        /// The folder.
        folder: AbsPath,
        /// The error of the operating system.
        error: io::Error,
    },
    /// The folder belongs to another user or is accessible to others, or it is a link.
    #[error("{folder} is not a folder that belongs to this user and is closed to all others")]
    Unsafe {
        /// The folder.
        folder: AbsPath,
    },
}

/// The lock on the runtime folder, released when dropped.
#[derive(Debug)]
pub(super) struct RuntimeDirLock {
    _folder: File,
}

/// What a session writes into its lock file, for clients that it does not answer. The process id is the holder of the
/// lock.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct PidFile {
    pub(super) workspace: String,
    pub(super) supervisor: Option<u32>,
}

/// A session that is alive, according to its folder.
#[derive(Debug, Clone)]
pub(super) struct LiveSession {
    pub(super) key: SessionKey,
    /// `None` when it runs in another container.
    pub(super) pid: Option<u32>,
    pub(super) pid_file: PidFile,
}

/// The lock that a session holds while it is alive, released when dropped.
#[derive(Debug)]
pub(super) struct SessionLock {
    file: File,
}

impl RuntimeDir {
    /// `lanser` in `$XDG_RUNTIME_DIR` if that folder belongs to this user, else a folder in `temp`. After `sudo` the
    /// variable may still name another user's folder, and that user would find files there that belong to root.
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

    /// A runtime folder with a known path, as a session gets it on its command line.
    pub(super) const fn from_folder(folder: AbsPath) -> Self {
        Self { folder }
    }

    pub(super) const fn folder(&self) -> &AbsPath {
        &self.folder
    }

    /// Checks that the folder exists, belongs to this user, and is closed to others. `create`: creates it if it is
    /// missing.
    pub(super) fn check(&self, create: bool) -> Result<(), RuntimeDirError> {
        let failed = |error| RuntimeDirError::Io { folder: self.folder.clone(), error };
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
            false => Err(RuntimeDirError::Unsafe { folder: self.folder.clone() }),
        }
    }

    pub(super) fn socket(&self, key: &SessionKey) -> AbsPath {
        self.folder.join(&format!("{}.sock", key.as_str()))
    }

    pub(super) fn session_dir(&self, key: &SessionKey, nonce: &str) -> AbsPath {
        self.folder.join(&format!("{}-{nonce}", key.as_str()))
    }

    /// Locks the folder; `None` after the time limit.
    pub(super) async fn lock(&self, within: Duration) -> Option<RuntimeDirLock> {
        let folder = File::open(self.folder.as_path()).ok()?;
        let began = Instant::now();
        loop {
            match folder.try_lock() {
                Ok(()) => return Some(RuntimeDirLock { _folder: folder }),
                Err(TryLockError::WouldBlock) if began.elapsed() < within => {
                    tokio::time::sleep(LOCK_RETRY_INTERVAL).await;
                }
                Err(_) => return None,
            }
        }
    }

    /// Locks the folder without a time limit: the lock is held only briefly, unless its holder is stopped.
    pub(super) fn lock_blocking(&self) -> io::Result<RuntimeDirLock> {
        let folder = File::open(self.folder.as_path())?;
        folder.lock()?;
        Ok(RuntimeDirLock { _folder: folder })
    }

    /// Removes the files of dead sessions that could not clean up; returns the keys of sessions that listen.
    pub(super) async fn sweep(&self, _lock: &RuntimeDirLock) -> Vec<SessionKey> {
        let mut listening = Vec::new();
        for name in self.names() {
            let path = self.folder.join(&name);
            if let Some(key) = name.strip_suffix(".sock").and_then(SessionKey::parse) {
                match UnixStream::connect(path.as_path()).await {
                    Err(error) if is_no_listener(&error) => drop(fs::remove_file(path.as_path())),
                    _ => listening.push(key),
                }
            } else if name.split_once('-').is_some_and(|(key, _)| SessionKey::parse(key).is_some())
                && holder(&path).is_none()
            {
                let _ = fs::remove_dir_all(path.as_path());
            }
        }
        listening
    }

    /// The sessions that are alive, whether they listen or not.
    pub(super) fn live(&self) -> Vec<LiveSession> {
        let live = |name: String| {
            let key = SessionKey::parse(name.split_once('-')?.0)?;
            let session_dir = self.folder.join(&name);
            let pid = holder(&session_dir)?;
            let pid_file = fs::read(session_dir.join("lock").as_path()).ok();
            let pid_file =
                pid_file.and_then(|pid_file| serde_json::from_slice(&pid_file).ok()).unwrap_or_default();
            Some(LiveSession {
                key,
                pid: pid.map(|pid| pid.as_raw_nonzero().get().cast_unsigned()),
                pid_file,
            })
        };
        self.names().into_iter().filter_map(live).collect()
    }

    /// The names of the folder's entries, sorted.
    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.as_path()).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }
}

impl SessionLock {
    /// Creates a session's folder and locks it. Call it with the runtime folder locked, so that the session's folder
    /// is never seen unlocked, and once per process, because closing a second handle would release the lock.
    pub(super) fn create(session_dir: &AbsPath, _lock: &RuntimeDirLock) -> io::Result<Self> {
        for folder in [session_dir.clone(), session_dir.join("temp")] {
            DirBuilder::new().mode(0o700).create(folder.as_path())?;
        }
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(session_dir.join("lock").as_path())?;
        fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Self { file })
    }

    /// Writes the content of the lock file.
    pub(super) fn write_pid_file(&mut self, pid_file: &PidFile) -> io::Result<()> {
        self.file.write_all(&serde_json::to_vec(pid_file)?)
    }
}

/// The holder of the lock in a session's folder: `None` if unlocked, `Some(None)` if its process id is not visible
/// here.
#[expect(clippy::option_option, reason = "a holder in another container has no number here")]
fn holder(session_dir: &AbsPath) -> Option<Option<Pid>> {
    let file = OpenOptions::new().read(true).write(true).open(session_dir.join("lock").as_path()).ok()?;
    let lock = fcntl_getlk(&file, &Flock::from(FlockType::WriteLock)).ok()?;
    lock.map(|lock| lock.pid)
}

/// Whether a connect failed because no process listens.
pub(super) fn is_no_listener(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound)
}

/// Whether a file with this owner and mode belongs to user `own` and is closed to others.
const fn is_private(owner: u32, mode: u32, own: u32) -> bool {
    owner == own && mode & 0o077 == 0 && mode & 0o700 == 0o700
}

/// Whether the peer of a connection is this user.
pub(super) fn is_same_user(stream: &UnixStream) -> bool {
    stream.peer_cred().is_ok_and(|peer| is_same_uid(peer.uid(), geteuid().as_raw()))
}

/// Root is refused, too: a session answers from its own user's view of the files.
const fn is_same_uid(peer: u32, own: u32) -> bool {
    peer == own
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn runtime_dir() -> (tempfile::TempDir, RuntimeDir) {
        let folder = tempfile::tempdir().unwrap();
        let at = AbsPath::new(folder.path()).unwrap();
        (folder, RuntimeDir::new(Some(&at), &at))
    }

    #[test]
    fn only_a_private_folder_is_accepted() {
        let (keep, runtime_dir) = runtime_dir();
        assert!(runtime_dir.check(false).is_err());
        runtime_dir.check(true).unwrap();
        runtime_dir.check(false).unwrap();
        for mode in [0o750, 0o701, 0o777, 0o500] {
            fs::set_permissions(runtime_dir.folder.as_path(), fs::Permissions::from_mode(mode)).unwrap();
            assert!(matches!(runtime_dir.check(true), Err(RuntimeDirError::Unsafe { .. })), "{mode:o}");
        }
        fs::remove_dir(runtime_dir.folder.as_path()).unwrap();
        let elsewhere = keep.path().join("elsewhere");
        DirBuilder::new().mode(0o700).create(&elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, runtime_dir.folder.as_path()).unwrap();
        assert!(matches!(runtime_dir.check(true), Err(RuntimeDirError::Unsafe { .. })), "a link");
        fs::remove_file(runtime_dir.folder.as_path()).unwrap();
        fs::write(runtime_dir.folder.as_path(), "").unwrap();
        assert!(matches!(runtime_dir.check(true), Err(RuntimeDirError::Unsafe { .. })), "a file");
    }

    #[test]
    fn other_users_are_rejected() {
        assert!(is_private(1000, 0o40_700, 1000));
        assert!(!is_private(1001, 0o40_700, 1000) && !is_private(0, 0o40_700, 1000));
        assert!(is_same_uid(1000, 1000) && !is_same_uid(0, 1000) && !is_same_uid(1000, 0));
    }

    #[tokio::test]
    async fn sweep_removes_what_dead_sessions_left() {
        let (_keep, runtime_dir) = runtime_dir();
        runtime_dir.check(true).unwrap();
        let [dead, listening, foreign] =
            ["0", "1", "2"].map(|digit| SessionKey::parse(&digit.repeat(20)).unwrap());
        drop(std::os::unix::net::UnixListener::bind(runtime_dir.socket(&dead).as_path()).unwrap());
        let _listener =
            std::os::unix::net::UnixListener::bind(runtime_dir.socket(&listening).as_path()).unwrap();
        fs::create_dir(runtime_dir.session_dir(&dead, "x").as_path()).unwrap();
        fs::write(runtime_dir.session_dir(&dead, "x").join("lock").as_path(), "").unwrap();
        fs::create_dir(runtime_dir.session_dir(&foreign, "y").as_path()).unwrap();
        fs::write(runtime_dir.folder.join("note").as_path(), "").unwrap();
        let lock = runtime_dir.lock(Duration::from_secs(1)).await.unwrap();
        assert!(runtime_dir.lock(Duration::from_millis(20)).await.is_none(), "one at a time");
        assert_eq!(runtime_dir.sweep(&lock).await, std::slice::from_ref(&listening));
        assert_eq!(runtime_dir.names(), [format!("{}.sock", listening.as_str()), "note".to_owned()]);
    }
}
