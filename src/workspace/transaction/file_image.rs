//! The image of a file: its content by digest, or a link's target, and its metadata (mode, owner, extended attributes).

use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::MetadataExt as _;

use rustix::fs::FileType;
use serde::{Deserialize, Serialize};

use super::sys::Sys;
use crate::digest::Digest;

/// The state of a file before or after a transaction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileImage {
    pub(super) content: Content,
    /// `None` for the system's defaults of new files.
    #[serde(rename = "meta")]
    pub(super) metadata: Option<FileMetadata>,
    /// Whether a new file with default metadata is executable.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) executable: bool,
}

/// The content of a directory entry, without metadata.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Content {
    /// A regular file with these bytes.
    File { digest: Digest, length: u64 },
    /// A symbolic link with this target path.
    Link { target: Vec<u8> },
    /// A folder, a device or a pipe, which transactions do not handle.
    Other,
}

/// The metadata of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileMetadata {
    /// The permission bits, 0o7777.
    pub(super) mode: u32,
    pub(super) owner: u32,
    pub(super) group: u32,
    /// Extended attributes, including the access control list.
    pub(super) attributes: Vec<(Vec<u8>, Vec<u8>)>,
}

/// A directory entry that was read.
#[derive(Debug, Clone)]
pub(super) struct FoundEntry {
    pub(super) content: Content,
    /// The bytes of a file; empty for a link.
    pub(super) bytes: Vec<u8>,
}

impl Content {
    pub(super) fn of(bytes: &[u8]) -> Self {
        Self::File { digest: Digest::of(bytes), length: bytes.len() as u64 }
    }
}

/// Reads a directory entry; `None` when it does not exist.
pub(super) fn read_entry(sys: &Sys, folder: BorrowedFd<'_>, name: &str) -> io::Result<Option<FoundEntry>> {
    let Some(stat) = sys.stat(folder, name)? else { return Ok(None) };
    match stat.kind {
        FileType::RegularFile => {
            let file = sys.open(folder, name)?;
            let bytes = sys.read(&file)?;
            Ok(Some(FoundEntry { content: Content::of(&bytes), bytes }))
        }
        FileType::Symlink => {
            let target = sys.read_link(folder, name)?;
            Ok(Some(FoundEntry { content: Content::Link { target }, bytes: Vec::new() }))
        }
        _ => Ok(Some(FoundEntry { content: Content::Other, bytes: Vec::new() })),
    }
}

/// Reads the metadata of a regular file.
pub(super) fn read_metadata(sys: &Sys, folder: BorrowedFd<'_>, name: &str) -> io::Result<FileMetadata> {
    let file = sys.open(folder, name)?;
    let metadata = file.metadata()?;
    Ok(FileMetadata {
        mode: metadata.mode() & 0o7777,
        owner: metadata.uid(),
        group: metadata.gid(),
        attributes: sys.attributes(&file)?,
    })
}

/// The extended attribute that has the access control list of a file on Linux. Other systems do not have it.
const ACL_ATTRIBUTE: &[u8] = b"system.posix_acl_access";

/// Gives a new file the metadata of another: the owner and attributes as far as the system permits, the mode always.
pub(super) fn apply_metadata(sys: &Sys, file: &File, metadata: &FileMetadata) -> io::Result<()> {
    let own = file.metadata()?;
    let mut mode = metadata.mode;
    if (own.uid(), own.gid()) != (metadata.owner, metadata.group)
        && sys.chown(file, Some(metadata.owner), Some(metadata.group)).is_err()
        && (own.gid() == metadata.group
            || sys.chown(file, None, Some(metadata.group)).is_err()
            || own.uid() != metadata.owner)
    {
        // Without the set-user-id bits: another user's program must not run as this user.
        mode &= 0o777;
    }
    // A folder may have a default access control list, which new files inherit but the old file does not have.
    if !metadata.attributes.iter().any(|(name, _)| name == ACL_ATTRIBUTE) {
        let _ = sys.remove_attribute(file, ACL_ATTRIBUTE);
    }
    // Setting an access control list changes the mode, so the mode is set last.
    for (name, value) in &metadata.attributes {
        match sys.set_attribute(file, name, value) {
            Ok(()) => {}
            Err(error) if is_disk_failure(&error) => return Err(error),
            // Some attributes, such as security labels, can be set only by the system.
            Err(_) => {}
        }
    }
    sys.chmod(file, mode)
}

/// Whether setting an attribute failed because of a full or broken disk, and not because the system does not permit it.
fn is_disk_failure(error: &io::Error) -> bool {
    use io::ErrorKind::{QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | ReadOnlyFilesystem)
        || error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error())
}
