//! Folders of the user's own: what is in them is believed, and run.

use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::Path;

/// Makes a folder, and those above it that are missing, closed to everybody else. One that is there stays as it is.
///
/// # Errors
/// When it cannot be made.
pub fn make(folder: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Whether nobody but the user (and root, who can do everything) can have put something into a folder, links followed.
/// One that is not there has nothing in it.
#[must_use]
pub fn is_own(folder: &Path) -> bool {
    let Ok(metadata) = std::fs::metadata(folder) else {
        // A link that leads nowhere may lead somewhere soon.
        return folder.symlink_metadata().is_err();
    };
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    may_be_believed((metadata.uid(), metadata.gid(), metadata.mode()), user, group) && metadata.is_dir()
}

/// Many systems give each user a group of his own, which then may write to what he makes.
const fn may_be_believed((owner, group, mode): (u32, u32, u32), user: u32, own_group: u32) -> bool {
    let by_group = mode & 0o020 != 0 && group != own_group;
    (owner == user || owner == 0) && mode & 0o002 == 0 && !by_group
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn what_others_can_write_to_is_not_ones_own() {
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
            assert_eq!(may_be_believed(of, 7, 7), expected, "{of:?}");
        }
        assert!(!may_be_believed((7, 7, 0o700), 0, 0), "root does not run what a user keeps");
    }

    #[test]
    fn folders_are_made_for_their_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("a/b");
        assert!(is_own(&deep));
        make(&deep).unwrap();
        for path in [folder.path().join("a"), deep.clone()] {
            assert_eq!(std::fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o700);
        }
        make(&deep).unwrap();
        assert!(is_own(&deep));
        std::fs::set_permissions(&deep, std::fs::Permissions::from_mode(0o777)).unwrap();
        assert!(!is_own(&deep));
        std::os::unix::fs::symlink("nowhere", folder.path().join("link")).unwrap();
        assert!(!is_own(&folder.path().join("link")));
        std::fs::write(folder.path().join("file"), "").unwrap();
        assert!(!is_own(&folder.path().join("file")));
    }
}
