//! Folders that only the user can write to. Their contents are trusted and executed.

use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::Path;

/// Creates a folder and its missing parents with mode 0700. An existing folder is not changed.
///
/// # Errors
/// If a folder cannot be created.
pub fn create(folder: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Whether only the user and root can write to a folder, following links. A missing folder is trusted, because it is empty.
#[must_use]
pub fn is_trusted(folder: &Path) -> bool {
    let Ok(metadata) = std::fs::metadata(folder) else {
        // The target of a dangling link may be created later.
        return folder.symlink_metadata().is_err();
    };
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    is_trusted_mode((metadata.uid(), metadata.gid(), metadata.mode()), user, group) && metadata.is_dir()
}

/// Whether the owner and the mode of a folder exclude other writers. Many systems give each user a private group that may
/// write to the user's files, so that group is allowed.
const fn is_trusted_mode((owner, group, mode): (u32, u32, u32), user: u32, own_group: u32) -> bool {
    let by_group = mode & 0o020 != 0 && group != own_group;
    (owner == user || owner == 0) && mode & 0o002 == 0 && !by_group
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn folders_that_others_can_write_to_are_not_trusted() {
        let cases = [
            ((7, 7, 0o700), true),
            ((7, 7, 0o755), true),
            ((7, 7, 0o775), true),
            ((7, 9, 0o775), false),
            ((7, 7, 0o777), false),
            ((0, 0, 0o755), true),
            ((8, 7, 0o700), false),
        ];
        for (of, expected) in cases {
            assert_eq!(is_trusted_mode(of, 7, 7), expected, "{of:?}");
        }
        assert!(!is_trusted_mode((7, 7, 0o700), 0, 0), "root does not trust the folder of a user");
    }

    #[test]
    fn folders_are_created_for_their_owner_only() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("a/b");
        assert!(is_trusted(&deep));
        create(&deep).unwrap();
        for path in [folder.path().join("a"), deep.clone()] {
            assert_eq!(std::fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o700);
        }
        create(&deep).unwrap();
        assert!(is_trusted(&deep));
        std::fs::set_permissions(&deep, std::fs::Permissions::from_mode(0o777)).unwrap();
        assert!(!is_trusted(&deep));
        std::os::unix::fs::symlink("nowhere", folder.path().join("link")).unwrap();
        assert!(!is_trusted(&folder.path().join("link")));
        std::fs::write(folder.path().join("file"), "").unwrap();
        assert!(!is_trusted(&folder.path().join("file")));
    }
}
