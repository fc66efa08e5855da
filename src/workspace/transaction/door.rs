//! The door to the file system: every system call of a transaction, by folder descriptor and name.
//!
//! A path is opened from its base one folder at a time and never through a link, so that nothing that is swapped in between
//! leads a write elsewhere: by `openat2` where the system has it, else step by step. Tests stand in the door (`Watch`) and
//! make any call fail, or the process end there.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

#[cfg(test)]
use std::sync::Arc;

/// The permissions of what only its owner may read.
pub(super) const PRIVATE: u32 = 0o600;

/// Who is told of each system call before it is made, and may make it fail.
#[cfg(test)]
pub(super) trait Watch: Send + Sync {
    fn before(&self, call: &'static str, name: &str) -> io::Result<()>;
}

/// What is under a name, as numbers of one width on every system.
#[derive(Debug, Clone, Copy)]
pub(super) struct Status {
    pub(super) kind: FileType,
    /// The permission bits, 0o7777.
    pub(super) mode: u32,
    /// Device and number.
    pub(super) inode: (u64, u64),
    pub(super) links: u64,
    /// In bytes.
    pub(super) size: u64,
}

impl Status {
    #[allow(clippy::unnecessary_cast, reason = "the widths differ between systems")]
    fn of(stat: &rustix::fs::Stat) -> Self {
        Self {
            kind: FileType::from_raw_mode(stat.st_mode),
            mode: stat.st_mode as u32 & 0o7777,
            inode: (stat.st_dev as u64, stat.st_ino as u64),
            links: stat.st_nlink as u64,
            size: stat.st_size as u64,
        }
    }
}

/// The way to the file system.
#[derive(Clone, Default)]
pub(super) struct Door {
    #[cfg(test)]
    pub(super) watch: Option<Arc<dyn Watch>>,
}

impl std::fmt::Debug for Door {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Door")
    }
}

impl Door {
    #[cfg(test)]
    fn pass(&self, call: &'static str, name: &str) -> io::Result<()> {
        self.watch.as_ref().map_or(Ok(()), |watch| watch.before(call, name))
    }

    #[cfg(not(test))]
    #[inline]
    const fn pass(&self, _call: &'static str, _name: &str) -> io::Result<()> {
        Ok(())
    }

    /// A folder by its absolute path, links followed: where paths begin.
    pub(super) fn base(&self, path: &Path) -> io::Result<OwnedFd> {
        self.pass("open", &path.to_string_lossy())?;
        Ok(rustix::fs::open(path, FOLDER, Mode::empty())?)
    }

    /// The path with every link resolved.
    pub(super) fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
        self.pass("realpath", &path.to_string_lossy())?;
        std::fs::canonicalize(path)
    }

    /// A folder below `base`, no component of which is a link; `path` may be empty.
    pub(super) fn folder(&self, base: BorrowedFd<'_>, path: &str) -> io::Result<OwnedFd> {
        self.pass("openat2", path)?;
        let path = if path.is_empty() { "." } else { path };
        #[cfg(target_os = "linux")]
        if let Some(opened) = beneath(base, path) {
            return Ok(opened?);
        }
        Ok(step_by_step(base, path)?)
    }

    /// What a name is, a link not followed; `None` when there is nothing.
    pub(super) fn stat(&self, folder: BorrowedFd<'_>, name: &str) -> io::Result<Option<Status>> {
        self.pass("fstatat", name)?;
        match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(Status::of(&stat))),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The device that an open folder is on.
    pub(super) fn device(&self, folder: &OwnedFd) -> io::Result<u64> {
        self.pass("fstat", "")?;
        Ok(Status::of(&rustix::fs::fstat(folder)?).inode.0)
    }

    /// Opens a file for reading, which is no link and does not make wait.
    pub(super) fn open(&self, folder: BorrowedFd<'_>, name: &str) -> io::Result<File> {
        self.pass("openat", name)?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(folder, name, flags, Mode::empty())?.into())
    }

    /// Reads the rest of a file.
    pub(super) fn read(&self, file: &File) -> io::Result<Vec<u8>> {
        self.pass("read", "")?;
        let mut bytes = Vec::new();
        { file }.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Reads a part of a file.
    pub(super) fn read_at(&self, file: &File, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        self.pass("pread", "")?;
        let mut bytes = vec![0; length];
        std::os::unix::fs::FileExt::read_exact_at(file, &mut bytes, offset)?;
        Ok(bytes)
    }

    /// Makes a file, which must not exist; the umask applies to `mode`.
    pub(super) fn create(&self, folder: BorrowedFd<'_>, name: &str, mode: u32) -> io::Result<File> {
        self.pass("creat", name)?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(folder, name, flags, Mode::from_raw_mode(mode as _))?.into())
    }

    pub(super) fn write(&self, file: &File, bytes: &[u8]) -> io::Result<()> {
        self.pass("write", "")?;
        { file }.write_all(bytes)
    }

    /// Makes sure that a file or folder is on the disk.
    pub(super) fn sync(&self, file: impl AsFd) -> io::Result<()> {
        self.pass("fsync", "")?;
        #[cfg(target_vendor = "apple")]
        match rustix::fs::fcntl_fullfsync(&file) {
            Ok(()) => return Ok(()),
            // A file system that has only the weaker one.
            Err(_) => {}
        }
        Ok(rustix::fs::fsync(file)?)
    }

    /// Makes sure that a whole file system is on the disk; false where there is no such call.
    pub(super) fn sync_all(&self, on: impl AsFd) -> io::Result<bool> {
        self.pass("syncfs", "")?;
        #[cfg(target_os = "linux")]
        rustix::fs::syncfs(on)?;
        #[cfg(not(target_os = "linux"))]
        let _ = on;
        Ok(cfg!(target_os = "linux"))
    }

    pub(super) fn chmod(&self, file: &File, mode: u32) -> io::Result<()> {
        self.pass("fchmod", "")?;
        Ok(rustix::fs::fchmod(file, Mode::from_raw_mode(mode as _))?)
    }

    pub(super) fn chown(&self, file: &File, owner: Option<u32>, group: Option<u32>) -> io::Result<()> {
        self.pass("fchown", "")?;
        let owner = owner.map(rustix::fs::Uid::from_raw);
        Ok(rustix::fs::fchown(file, owner, group.map(rustix::fs::Gid::from_raw))?)
    }

    /// The extended attributes, among them the access control list; empty where there are none or cannot be any.
    pub(super) fn attributes(&self, file: &File) -> io::Result<Vec<(Vec<u8>, Vec<u8>)>> {
        self.pass("fgetxattr", "")?;
        let mut names = vec![0; 64 * 1024];
        let length = match rustix::fs::flistxattr(file, &mut names[..]) {
            Ok(length) => length,
            Err(Errno::NOTSUP) => 0,
            Err(error) => return Err(error.into()),
        };
        let mut found = Vec::new();
        for name in names[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
            let Ok(c_name) = CString::new(name) else { continue };
            let mut value = vec![0; 64 * 1024];
            // One that cannot be read cannot be carried over either.
            if let Ok(length) = rustix::fs::fgetxattr(file, c_name.as_c_str(), &mut value[..]) {
                value.truncate(length);
                found.push((name.to_vec(), value));
            }
        }
        Ok(found)
    }

    pub(super) fn set_attribute(&self, file: &File, name: &[u8], value: &[u8]) -> io::Result<()> {
        self.pass("fsetxattr", "")?;
        let name = CString::new(name)?;
        Ok(rustix::fs::fsetxattr(file, name.as_c_str(), value, rustix::fs::XattrFlags::empty())?)
    }

    pub(super) fn remove_attribute(&self, file: &File, name: &[u8]) -> io::Result<()> {
        self.pass("fremovexattr", "")?;
        Ok(rustix::fs::fremovexattr(file, CString::new(name)?.as_c_str())?)
    }

    pub(super) fn read_link(&self, folder: BorrowedFd<'_>, name: &str) -> io::Result<Vec<u8>> {
        self.pass("readlinkat", name)?;
        Ok(rustix::fs::readlinkat(folder, name, Vec::new())?.into_bytes())
    }

    pub(super) fn link_to(&self, folder: BorrowedFd<'_>, name: &str, target: &[u8]) -> io::Result<()> {
        self.pass("symlinkat", name)?;
        Ok(rustix::fs::symlinkat(CString::new(target)?.as_c_str(), folder, name)?)
    }

    /// Renames within a folder over whatever is there.
    pub(super) fn rename(&self, folder: BorrowedFd<'_>, from: &str, to: &str) -> io::Result<()> {
        self.pass("renameat", to)?;
        Ok(rustix::fs::renameat(folder, from, folder, to)?)
    }

    /// Renames within a folder unless there is something.
    pub(super) fn rename_new(&self, folder: BorrowedFd<'_>, from: &str, to: &str) -> io::Result<()> {
        if self.rename_with(folder, from, to, RenameFlags::NOREPLACE)? {
            return Ok(());
        }
        // A link is as atomic, and fails as well when the name is taken.
        self.pass("linkat", to)?;
        rustix::fs::linkat(folder, from, folder, to, AtFlags::empty())?;
        self.unlink(folder, from)
    }

    /// Exchanges two names of a folder; false when the file system cannot.
    pub(super) fn exchange(&self, folder: BorrowedFd<'_>, one: &str, other: &str) -> io::Result<bool> {
        self.rename_with(folder, one, other, RenameFlags::EXCHANGE)
    }

    /// Whether the file system could.
    fn rename_with(
        &self,
        folder: BorrowedFd<'_>,
        from: &str,
        to: &str,
        flags: RenameFlags,
    ) -> io::Result<bool> {
        let call = if flags == RenameFlags::EXCHANGE { "renameat2 exchange" } else { "renameat2 noreplace" };
        let renamed = self
            .pass(call, to)
            .and_then(|()| Ok(rustix::fs::renameat_with(folder, from, folder, to, flags)?));
        let unsupported = [Errno::INVAL, Errno::NOSYS, Errno::NOTSUP].map(Errno::raw_os_error);
        match renamed {
            Err(error) if error.raw_os_error().is_some_and(|number| unsupported.contains(&number)) => {
                Ok(false)
            }
            renamed => renamed.map(|()| true),
        }
    }

    /// Removes a file; nothing is wrong when there is none.
    pub(super) fn unlink(&self, folder: BorrowedFd<'_>, name: &str) -> io::Result<()> {
        self.pass("unlinkat", name)?;
        match rustix::fs::unlinkat(folder, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    pub(super) fn make_folder(&self, folder: BorrowedFd<'_>, name: &str, mode: u32) -> io::Result<()> {
        self.pass("mkdirat", name)?;
        Ok(rustix::fs::mkdirat(folder, name, Mode::from_raw_mode(mode as _))?)
    }

    /// Removes a folder if it is empty; whether it is gone.
    pub(super) fn remove_folder(&self, folder: BorrowedFd<'_>, name: &str) -> io::Result<bool> {
        self.pass("rmdir", name)?;
        match rustix::fs::unlinkat(folder, name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => Ok(true),
            Err(Errno::NOTEMPTY | Errno::EXIST | Errno::BUSY | Errno::NOTDIR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// The names in a folder, sorted; those that are not UTF-8 are left out.
    pub(super) fn list(&self, folder: BorrowedFd<'_>) -> io::Result<Vec<String>> {
        self.pass("getdents", "")?;
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::read_from(folder)? {
            let entry = entry?;
            if let Ok(name) = entry.file_name().to_str()
                && !matches!(name, "." | "..")
            {
                names.push(name.to_owned());
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Whether this process may write to a name, which is no link.
    pub(super) fn may_write(&self, folder: BorrowedFd<'_>, name: &str) -> io::Result<bool> {
        self.pass("faccessat", name)?;
        let asked = rustix::fs::accessat(folder, name, rustix::fs::Access::WRITE_OK, AtFlags::EACCESS);
        match asked {
            Ok(()) => Ok(true),
            Err(Errno::ACCESS | Errno::PERM) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// A folder below `base`, opened from one to the next.
fn step_by_step(base: BorrowedFd<'_>, path: &str) -> Result<OwnedFd, Errno> {
    let mut at = rustix::fs::openat(base, ".", FOLDER, Mode::empty())?;
    for name in path.split('/') {
        if name == ".." {
            return Err(Errno::XDEV);
        }
        at = rustix::fs::openat(&at, name, FOLDER | OFlags::NOFOLLOW, Mode::empty())?;
    }
    Ok(at)
}

/// A folder by `openat2`; `None` where the system has none, or a sandbox forbids it.
#[cfg(target_os = "linux")]
fn beneath(base: BorrowedFd<'_>, path: &str) -> Option<Result<OwnedFd, Errno>> {
    use rustix::fs::ResolveFlags;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    for _ in 0..16 {
        match rustix::fs::openat2(base, path, FOLDER, Mode::empty(), resolve) {
            Err(Errno::NOSYS | Errno::PERM) => return None,
            // A rename somewhere made the kernel unsure.
            Err(Errno::AGAIN) => {}
            opened => return Some(opened),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_folder_is_opened_through_a_link_or_above_its_base_either_way() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("base/a/b")).unwrap();
        std::fs::create_dir(folder.path().join("outside")).unwrap();
        for (name, target) in [("base/out", "../outside"), ("base/in", "a"), ("base/a/up", "..")] {
            std::os::unix::fs::symlink(target, folder.path().join(name)).unwrap();
        }
        let base = Door::default().base(&folder.path().join("base")).unwrap();
        let base = base.as_fd();
        let kind = |error: Errno| io::Error::from(error).kind();
        for path in ["out", "in", "in/b", "a/up", "a/up/a", "..", "../outside", "a/../.."] {
            assert!(step_by_step(base, path).is_err(), "{path}");
            assert!(Door::default().folder(base, path).is_err(), "{path}");
        }
        for path in ["a", "a/b", "."] {
            assert!(step_by_step(base, path).is_ok() && Door::default().folder(base, path).is_ok(), "{path}");
        }
        assert_eq!(step_by_step(base, "a/c").map_err(kind).unwrap_err(), io::ErrorKind::NotFound);
        assert_eq!(Door::default().folder(base, "a/c").unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
