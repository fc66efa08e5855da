//! What a name holds: a file's or a link's content by digest, and what else belongs to a file: mode, owner, attributes.

use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::MetadataExt as _;

use rustix::fs::FileType;
use serde::{Deserialize, Serialize};

use super::door::Door;
use crate::digest::Digest;

/// A content, and what belongs to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Image {
    pub(super) content: Content,
    /// `None` for what the system gives to new files.
    pub(super) meta: Option<Meta>,
    /// Whether such a new file is executable.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) executable: bool,
}

/// What a name holds, without what belongs to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Content {
    /// A regular file with these bytes.
    File { digest: Digest, length: u64 },
    /// A symbolic link with this text.
    Link { target: Vec<u8> },
    /// A folder, a device, a pipe: nothing that lanser handles.
    Other,
}

/// What belongs to a file besides its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Meta {
    /// The permission bits, 0o7777.
    pub(super) mode: u32,
    pub(super) owner: u32,
    pub(super) group: u32,
    /// Extended attributes; the access control list is one.
    pub(super) attributes: Vec<(Vec<u8>, Vec<u8>)>,
}

/// What was found under a name.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub(super) content: Content,
    /// The bytes of a file; nothing for a link.
    pub(super) bytes: Vec<u8>,
}

impl Content {
    pub(super) fn of(bytes: &[u8]) -> Self {
        Self::File { digest: Digest::of(bytes), length: bytes.len() as u64 }
    }
}

/// Looks at a name and reads what is there; `None` when there is nothing.
pub(super) fn look(door: &Door, folder: BorrowedFd<'_>, name: &str) -> io::Result<Option<Seen>> {
    let Some(stat) = door.stat(folder, name)? else { return Ok(None) };
    match stat.kind {
        FileType::RegularFile => {
            let file = door.open(folder, name)?;
            let bytes = door.read(&file)?;
            Ok(Some(Seen { content: Content::of(&bytes), bytes }))
        }
        FileType::Symlink => {
            let target = door.read_link(folder, name)?;
            Ok(Some(Seen { content: Content::Link { target }, bytes: Vec::new() }))
        }
        _ => Ok(Some(Seen { content: Content::Other, bytes: Vec::new() })),
    }
}

/// What belongs to a regular file.
pub(super) fn meta(door: &Door, folder: BorrowedFd<'_>, name: &str) -> io::Result<Meta> {
    let file = door.open(folder, name)?;
    let metadata = file.metadata()?;
    Ok(Meta {
        mode: metadata.mode() & 0o7777,
        owner: metadata.uid(),
        group: metadata.gid(),
        attributes: door.attributes(&file)?,
    })
}

/// Linux keeps the access control list of a file under this name; elsewhere there is nothing under it.
const ACCESS_LIST: &[u8] = b"system.posix_acl_access";

/// Gives a new file what belonged to another: owner and attributes as far as the system allows it, the mode always.
pub(super) fn dress(door: &Door, file: &File, meta: &Meta) -> io::Result<()> {
    let own = file.metadata()?;
    let mut mode = meta.mode;
    if (own.uid(), own.gid()) != (meta.owner, meta.group)
        && door.chown(file, Some(meta.owner), Some(meta.group)).is_err()
        && (own.gid() == meta.group
            || door.chown(file, None, Some(meta.group)).is_err()
            || own.uid() != meta.owner)
    {
        // Somebody else's program must not run as this user.
        mode &= 0o777;
    }
    // A folder may give new files an access control list that the old file does not have.
    if !meta.attributes.iter().any(|(name, _)| name == ACCESS_LIST) {
        let _ = door.remove_attribute(file, ACCESS_LIST);
    }
    // An access control list says the mode anew, so it goes first.
    for (name, value) in &meta.attributes {
        match door.set_attribute(file, name, value) {
            Ok(()) => {}
            Err(error) if matters(&error) => return Err(error),
            // Labels of the system's own are not a user's to give.
            Err(_) => {}
        }
    }
    door.chmod(file, mode)
}

/// Whether an attribute was lost for want of room or to a broken disk, not because the system does not let it be given.
fn matters(error: &io::Error) -> bool {
    use io::ErrorKind::{QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | ReadOnlyFilesystem)
        || error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error())
}
