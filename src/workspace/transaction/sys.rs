//! Every system call of a transaction, by folder descriptor and name.
//!
//! A path is opened from its base one folder at a time and never through a symbolic link, so that a link that is
//! swapped in at any time cannot redirect a write. `openat2` does that where the system has it; otherwise each folder
//! is opened in turn. Tests use a `SyscallHook` to make any call fail, or to end the process before it.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

#[cfg(test)]
use std::sync::Arc;

/// The mode of files that only their owner may read.
pub(super) const PRIVATE: u32 = 0o600;

/// Called before each system call; an error makes the call fail.
#[cfg(test)]
pub(super) trait SyscallHook: Send + Sync {
    fn before(&self, call: &'static str, name: &str) -> io::Result<()>;
}

/// The `stat` of a directory entry, with the same integer widths on every system.
#[derive(Debug, Clone, Copy)]
pub(super) struct EntryStat {
    pub(super) kind: FileType,
    /// The permission bits, 0o7777.
    pub(super) mode: u32,
    /// The device number and the inode number.
    pub(super) inode: (u64, u64),
    pub(super) links: u64,
    /// In bytes.
    pub(super) size: u64,
}

impl EntryStat {
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

/// The system calls, with a hook in tests.
#[derive(Clone, Default)]
pub(super) struct Sys {
    #[cfg(test)]
    pub(super) hook: Option<Arc<dyn SyscallHook>>,
}

impl std::fmt::Debug for Sys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Door")
    }
}

impl Sys {
    #[cfg(test)]
    fn intercept(&self, call: &'static str, name: &str) -> io::Result<()> {
        self.hook.as_ref().map_or(Ok(()), |hook| hook.before(call, name))
    }

    #[cfg(not(test))]
    #[inline]
    const fn intercept(&self, _call: &'static str, _name: &str) -> io::Result<()> {
        Ok(())
    }

    /// Opens a folder by its absolute path, following links. Other paths are relative to such a folder.
    pub(super) fn open_base(&self, path: &Path) -> io::Result<OwnedFd> {
        self.intercept("open", &path.to_string_lossy())?;
        Ok(rustix::fs::open(path, FOLDER, Mode::empty())?)
    }

    /// Resolves all symbolic links in a path.
    pub(super) fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
        self.intercept("realpath", &path.to_string_lossy())?;
        std::fs::canonicalize(path)
    }

    /// Opens a folder below `base` without following links; `path` may be empty.
    pub(super) fn open_folder(&self, base: BorrowedFd<'_>, path: &str) -> io::Result<OwnedFd> {
        self.intercept("openat2", path)?;
        let path = if path.is_empty() { "." } else { path };
        #[cfg(target_os = "linux")]
        if let Some(opened) = open_by_openat2(base, path) {
            return Ok(opened?);
        }
        Ok(open_by_components(base, path)?)
    }

    /// The `stat` of a name, without following a link; `None` when it does not exist.
    pub(super) fn stat(&self, folder: BorrowedFd<'_>, name: &str) -> io::Result<Option<EntryStat>> {
        self.intercept("fstatat", name)?;
        match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(EntryStat::of(&stat))),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The device that an open folder is on.
    pub(super) fn device(&self, folder: &OwnedFd) -> io::Result<u64> {
        self.intercept("fstat", "")?;
        Ok(EntryStat::of(&rustix::fs::fstat(folder)?).inode.0)
    }

    /// Opens a file for reading, without following a link and without blocking.
    pub(super) fn open(&self, folder: BorrowedFd<'_>, name: &str) -> io::Result<File> {
        self.intercept("openat", name)?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(folder, name, flags, Mode::empty())?.into())
    }

    /// Reads the rest of a file.
    pub(super) fn read(&self, file: &File) -> io::Result<Vec<u8>> {
        self.intercept("read", "")?;
        let mut bytes = Vec::new();
        { file }.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Reads a part of a file.
    pub(super) fn read_at(&self, file: &File, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        self.intercept("pread", "")?;
        let mut bytes = vec![0; length];
        std::os::unix::fs::FileExt::read_exact_at(file, &mut bytes, offset)?;
        Ok(bytes)
    }

    /// Creates a file, which must not exist. The umask applies to `mode`.
    pub(super) fn create(&self, folder: BorrowedFd<'_>, name: &str, mode: u32) -> io::Result<File> {
        self.intercept("creat", name)?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(folder, name, flags, Mode::from_raw_mode(mode as _))?.into())
    }

    pub(super) fn write(&self, file: &File, bytes: &[u8]) -> io::Result<()> {
        self.intercept("write", "")?;
        { file }.write_all(bytes)
    }

    /// Flushes a file or folder to disk.
    pub(super) fn sync(&self, file: impl AsFd) -> io::Result<()> {
        self.intercept("fsync", "")?;
        #[cfg(target_vendor = "apple")]
        match rustix::fs::fcntl_fullfsync(&file) {
            Ok(()) => return Ok(()),
            // The file system supports only the weaker `fsync`.
            Err(_) => {}
        }
        Ok(rustix::fs::fsync(file)?)
    }

    /// Flushes a whole file system to disk. Returns false on systems without such a call.
    pub(super) fn sync_file_system(&self, on: impl AsFd) -> io::Result<bool> {
        self.intercept("syncfs", "")?;
        #[cfg(target_os = "linux")]
        rustix::fs::syncfs(on)?;
        #[cfg(not(target_os = "linux"))]
        let _ = on;
        Ok(cfg!(target_os = "linux"))
    }

    pub(super) fn chmod(&self, file: &File, mode: u32) -> io::Result<()> {
        self.intercept("fchmod", "")?;
        Ok(rustix::fs::fchmod(file, Mode::from_raw_mode(mode as _))?)
    }

    pub(super) fn chown(&self, file: &File, owner: Option<u32>, group: Option<u32>) -> io::Result<()> {
        self.intercept("fchown", "")?;
        let owner = owner.map(rustix::fs::Uid::from_raw);
        Ok(rustix::fs::fchown(file, owner, group.map(rustix::fs::Gid::from_raw))?)
    }

    /// The extended attributes, including the access control list; empty where the file system does not support them.
    pub(super) fn attributes(&self, file: &File) -> io::Result<Vec<(Vec<u8>, Vec<u8>)>> {
        self.intercept("fgetxattr", "")?;
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
            // An attribute that cannot be read cannot be preserved either.
            if let Ok(length) = rustix::fs::fgetxattr(file, c_name.as_c_str(), &mut value[..]) {
                value.truncate(length);
                found.push((name.to_vec(), value));
            }
        }
        Ok(found)
    }

    pub(super) fn set_attribute(&self, file: &File, name: &[u8], value: &[u8]) -> io::Result<()> {
        self.intercept("fsetxattr", "")?;
        let name = CString::new(name)?;
        Ok(rustix::fs::fsetxattr(file, name.as_c_str(), value, rustix::fs::XattrFlags::empty())?)
    }

    pub(super) fn remove_attribute(&self, file: &File, name: &[u8]) -> io::Result<()> {
        self.intercept("fremovexattr", "")?;
        Ok(rustix::fs::fremovexattr(file, CString::new(name)?.as_c_str())?)
    }

    pub(super) fn read_link(&self, folder: BorrowedFd<'_>, name: &str) -> io::Result<Vec<u8>> {
        self.intercept("readlinkat", name)?;
        Ok(rustix::fs::readlinkat(folder, name, Vec::new())?.into_bytes())
    }

    pub(super) fn create_symlink(&self, folder: BorrowedFd<'_>, name: &str, target: &[u8]) -> io::Result<()> {
        self.intercept("symlinkat", name)?;
        Ok(rustix::fs::symlinkat(CString::new(target)?.as_c_str(), folder, name)?)
    }

    /// Renames within a folder, replacing an existing file.
    pub(super) fn rename(&self, folder: BorrowedFd<'_>, from: &str, to: &str) -> io::Result<()> {
        self.intercept("renameat", to)?;
        Ok(rustix::fs::renameat(folder, from, folder, to)?)
    }

    /// Renames within a folder; fails when the new name exists.
    pub(super) fn rename_new(&self, folder: BorrowedFd<'_>, from: &str, to: &str) -> io::Result<()> {
        if self.rename_with(folder, from, to, RenameFlags::NOREPLACE)? {
            return Ok(());
        }
        // Creating a hard link is also atomic, and also fails when the name exists.
        self.intercept("linkat", to)?;
        rustix::fs::linkat(folder, from, folder, to, AtFlags::empty())?;
        self.unlink(folder, from)
    }

    /// Exchanges two names in a folder. Returns false when the file system does not support it.
    pub(super) fn exchange(&self, folder: BorrowedFd<'_>, one: &str, other: &str) -> io::Result<bool> {
        self.rename_with(folder, one, other, RenameFlags::EXCHANGE)
    }

    /// Returns false when the file system does not support the flags.
    fn rename_with(
        &self,
        folder: BorrowedFd<'_>,
        from: &str,
        to: &str,
        flags: RenameFlags,
    ) -> io::Result<bool> {
        let call = if flags == RenameFlags::EXCHANGE { "renameat2 exchange" } else { "renameat2 noreplace" };
        let renamed = self
            .intercept(call, to)
            .and_then(|()| Ok(rustix::fs::renameat_with(folder, from, folder, to, flags)?));
        let unsupported = [Errno::INVAL, Errno::NOSYS, Errno::NOTSUP].map(Errno::raw_os_error);
        match renamed {
            Err(error) if error.raw_os_error().is_some_and(|number| unsupported.contains(&number)) => {
                Ok(false)
            }
            renamed => renamed.map(|()| true),
        }
    }

    /// Removes a file; a missing file is not an error.
    pub(super) fn unlink(&self, folder: BorrowedFd<'_>, name: &str) -> io::Result<()> {
        self.intercept("unlinkat", name)?;
        match rustix::fs::unlinkat(folder, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    pub(super) fn create_folder(&self, folder: BorrowedFd<'_>, name: &str, mode: u32) -> io::Result<()> {
        self.intercept("mkdirat", name)?;
        Ok(rustix::fs::mkdirat(folder, name, Mode::from_raw_mode(mode as _))?)
    }

    /// Removes a folder if it is empty. Returns whether the folder no longer exists.
    pub(super) fn remove_folder(&self, folder: BorrowedFd<'_>, name: &str) -> io::Result<bool> {
        self.intercept("rmdir", name)?;
        match rustix::fs::unlinkat(folder, name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => Ok(true),
            Err(Errno::NOTEMPTY | Errno::EXIST | Errno::BUSY | Errno::NOTDIR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// The names in a folder, sorted. Names that are not UTF-8 are omitted.
    pub(super) fn list(&self, folder: BorrowedFd<'_>) -> io::Result<Vec<String>> {
        self.intercept("getdents", "")?;
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

    /// Whether this process may write to a file, which must not be a link.
    pub(super) fn may_write(&self, folder: BorrowedFd<'_>, name: &str) -> io::Result<bool> {
        self.intercept("faccessat", name)?;
        let access = rustix::fs::accessat(folder, name, rustix::fs::Access::WRITE_OK, AtFlags::EACCESS);
        match access {
            Ok(()) => Ok(true),
            Err(Errno::ACCESS | Errno::PERM) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Opens a folder below `base` by opening each component in turn.
fn open_by_components(base: BorrowedFd<'_>, path: &str) -> Result<OwnedFd, Errno> {
    let mut at = rustix::fs::openat(base, ".", FOLDER, Mode::empty())?;
    for name in path.split('/') {
        if name == ".." {
            return Err(Errno::XDEV);
        }
        at = rustix::fs::openat(&at, name, FOLDER | OFlags::NOFOLLOW, Mode::empty())?;
    }
    Ok(at)
}

/// Opens a folder below `base` with `openat2`; `None` where the system does not have it or a sandbox forbids it.
#[cfg(target_os = "linux")]
fn open_by_openat2(base: BorrowedFd<'_>, path: &str) -> Option<Result<OwnedFd, Errno>> {
    use rustix::fs::ResolveFlags;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    for _ in 0..16 {
        match rustix::fs::openat2(base, path, FOLDER, Mode::empty(), resolve) {
            Err(Errno::NOSYS | Errno::PERM) => return None,
            // A concurrent rename interfered with the lookup.
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
    fn a_folder_is_never_opened_through_a_link_or_above_its_base() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("base/a/b")).unwrap();
        std::fs::create_dir(folder.path().join("outside")).unwrap();
        for (name, target) in [("base/out", "../outside"), ("base/in", "a"), ("base/a/up", "..")] {
            std::os::unix::fs::symlink(target, folder.path().join(name)).unwrap();
        }
        let base = Sys::default().open_base(&folder.path().join("base")).unwrap();
        let base = base.as_fd();
        let kind = |error: Errno| io::Error::from(error).kind();
        for path in ["out", "in", "in/b", "a/up", "a/up/a", "..", "../outside", "a/../.."] {
            assert!(open_by_components(base, path).is_err(), "{path}");
            assert!(Sys::default().open_folder(base, path).is_err(), "{path}");
        }
        for path in ["a", "a/b", "."] {
            assert!(
                open_by_components(base, path).is_ok() && Sys::default().open_folder(base, path).is_ok(),
                "{path}"
            );
        }
        assert_eq!(open_by_components(base, "a/c").map_err(kind).unwrap_err(), io::ErrorKind::NotFound);
        assert_eq!(Sys::default().open_folder(base, "a/c").unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
