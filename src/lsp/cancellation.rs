//! Cancellation by file, which Pyright and its forks notice while they are busy.
//!
//! Such a server is started with `--cancellationReceive=file:<name>` and checks during its work for the file
//! `<temp>/python-languageserver-cancellation/<name>/cancellation-<id>.tmp`. A `$/cancelRequest` alone is read only
//! after the work: the references of a class that sympy uses 5,631 times were abandoned 0.3 s after the file
//! appeared, and answered in full after 8.8 s without the option (measured on 1.1.414). With the option a background
//! thread answers pulls for diagnostics, which does not work everywhere: see
//! [`Profile::pulls_when_cancellable`](super::profile::Profile::pulls_when_cancellable).

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use crate::path::AbsPath;

/// The parent of all such folders; the server's code fixes the name.
const PARENT_NAME: &str = "python-languageserver-cancellation";

/// The folder that one server checks. Dropping it removes it with its content.
#[derive(Debug)]
pub struct CancellationFolder {
    name: String,
    /// The server's own temporary folder, which contains `path`.
    outer: PathBuf,
    path: PathBuf,
}

impl CancellationFolder {
    /// Creates a folder with a new name in `temp_dir`; the server's own temporary folder is then [`Self::temp_dir`].
    ///
    /// # Errors
    /// When the folder cannot be created.
    pub fn create(temp_dir: &AbsPath) -> io::Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
        let name = format!("lanser-{}-{nanos:x}-{count}", std::process::id());
        sweep(temp_dir.as_path());
        // Users of one machine share `/tmp`: the folder is closed to others, and its name does not collide with theirs.
        let outer = temp_dir.as_path().join(&name);
        fs::DirBuilder::new().mode(0o700).create(&outer)?;
        let this = Self { path: outer.join(PARENT_NAME).join(&name), outer, name };
        fs::create_dir_all(&this.path)?;
        Ok(this)
    }

    /// The temporary folder for the server (`TMPDIR`).
    #[must_use]
    pub fn temp_dir(&self) -> &Path {
        &self.outer
    }

    /// The folder's name, for the server's command line.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Makes the server cancel the request. Errors are ignored: the request then runs to its end.
    pub(super) fn cancel(&self, id: i64) {
        let _ = fs::write(self.file(id), b"");
    }

    /// Removes the file of a request that was answered.
    pub(super) fn remove_request(&self, id: i64) {
        let _ = fs::remove_file(self.file(id));
    }

    /// Removes the folder with its content, even if `self` is still shared.
    pub(super) fn remove(&self) {
        let _ = fs::remove_dir_all(&self.outer);
    }

    fn file(&self, id: i64) -> PathBuf {
        self.path.join(format!("cancellation-{id}.tmp"))
    }
}

/// Removes the folders of dead processes: a killed process cannot do it itself.
fn sweep(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        // With three parts: `lanser-1000` is the runtime folder of user 1000, where its sessions are found.
        let pid = name.to_str().and_then(|name| {
            let parts: Vec<&str> = name.strip_prefix("lanser-")?.split('-').collect();
            let [pid, _, _] = parts[..] else { return None };
            pid.parse().ok()
        });
        let gone = pid.and_then(Pid::from_raw).is_some_and(|pid| test_kill_process(pid) == Err(Errno::SRCH));
        if gone {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

impl Drop for CancellationFolder {
    fn drop(&mut self) {
        self.remove();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_the_folder_are_created_and_removed() {
        let temp = tempfile::tempdir().unwrap();
        let at = AbsPath::new(temp.path()).unwrap();
        let (folder, other) =
            (CancellationFolder::create(&at).unwrap(), CancellationFolder::create(&at).unwrap());
        assert_ne!(folder.name(), other.name());
        let path = folder.temp_dir().join(PARENT_NAME).join(folder.name());
        folder.cancel(7);
        assert!(path.join("cancellation-7.tmp").is_file());
        folder.remove_request(7);
        assert_eq!(fs::read_dir(&path).unwrap().count(), 0);
        folder.cancel(8);
        drop(folder);
        assert!(!path.exists());
        assert!(other.temp_dir().join(PARENT_NAME).join(other.name()).is_dir());
        drop(other);
        assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 0);
    }

    #[test]
    fn sweep_removes_only_folders_of_dead_processes() {
        let temp = tempfile::tempdir().unwrap();
        let own = std::process::id();
        for name in
            [&format!("lanser-{own}-1-0"), "lanser-99999999-1-0", "lanser-99999999", "lanser-99999999-1"]
        {
            fs::create_dir(temp.path().join(name)).unwrap();
        }
        sweep(temp.path());
        let mut left: Vec<_> =
            fs::read_dir(temp.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, [format!("lanser-{own}-1-0").as_str(), "lanser-99999999", "lanser-99999999-1"]);
    }
}
