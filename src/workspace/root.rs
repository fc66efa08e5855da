//! Finds the root folder of a workspace.

use super::files::canonical;
use crate::path::AbsPath;

/// A folder that contains one of these is a workspace root.
const MARKERS: [&str; 7] =
    ["lanser.toml", "pyrightconfig.json", "pyproject.toml", "setup.py", "setup.cfg", ".git", ".hg"];

/// The nearest folder at or above `start` that contains a marker; `start` itself when no folder does.
///
/// Symbolic links are resolved, so that a folder has only one path.
#[must_use]
pub fn discover(start: &AbsPath) -> AbsPath {
    let start = canonical(start);
    let mut folder = start.clone();
    loop {
        if MARKERS.iter().any(|marker| folder.join(marker).as_path().exists()) {
            return folder;
        }
        let parent = folder.parent();
        if parent == folder {
            return start;
        }
        folder = parent;
    }
}

/// Whether a folder is the top of the file system and has no marker of a workspace.
#[must_use]
pub fn is_unmarked_disk(folder: &AbsPath) -> bool {
    folder.parent() == *folder && !MARKERS.iter().any(|marker| folder.join(marker).as_path().exists())
}

/// Whether a folder is all of the file system, or the kernel's. A checkout may name such a folder as a search path, and to walk it
/// takes minutes or never ends.
#[must_use]
pub fn is_of_system(folder: &AbsPath) -> bool {
    let folder = canonical(folder);
    let is_below = |top: &str| folder.as_str() == top || folder.as_str().starts_with(&format!("{top}/"));
    // The one in memory is like any other.
    folder.parent() == folder || !is_below("/dev/shm") && ["/proc", "/sys", "/dev"].into_iter().any(is_below)
}

/// The outermost git worktree around the workspace, or the workspace itself outside of git. Its content is as
/// trustworthy as the workspace: it has the same author, submodules and their superprojects included.
///
/// A worktree that contains the user's `home` folder does not count: some users keep their settings in git.
#[must_use]
pub fn checkout(root: &AbsPath, home: Option<&AbsPath>) -> AbsPath {
    let home = home.map(canonical);
    let mut checkout = root.clone();
    let mut folder = root.clone();
    loop {
        let holds_home = home.as_ref().is_some_and(|home| home.strip_prefix(&folder).is_some());
        if !holds_home && folder.join(".git").as_path().symlink_metadata().is_ok() {
            checkout = folder.clone();
        }
        let parent = folder.parent();
        if parent == folder {
            return checkout;
        }
        folder = parent;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn folders_of_the_system() {
        for (folder, expected) in [
            ("/", true),
            ("/proc", true),
            ("/proc/self/root/proc", true),
            ("/usr", false),
            ("/process", false),
            ("/dev", true),
            ("/dev/shm/work", false),
        ] {
            assert_eq!(is_of_system(&AbsPath::new(folder).unwrap()), expected, "{folder}");
        }
    }

    #[test]
    fn the_nearest_marker_wins() {
        let folder = tempfile::tempdir().unwrap();
        let top = canonical(&AbsPath::new(folder.path()).unwrap());
        let deep = top.join("a/b/c");
        std::fs::create_dir_all(deep.as_path()).unwrap();
        assert_eq!(discover(&deep), deep);
        std::fs::create_dir(top.join(".git").as_path()).unwrap();
        assert_eq!(discover(&deep), top);
        std::fs::write(top.join("a/pyproject.toml").as_path(), "").unwrap();
        assert_eq!(discover(&deep), top.join("a"));
    }

    #[test]
    fn checkout_is_the_outermost_worktree_that_does_not_contain_home() {
        let folder = tempfile::tempdir().unwrap();
        let home = canonical(&AbsPath::new(folder.path()).unwrap());
        let root = home.join("src/outer/inner/pkg");
        std::fs::create_dir_all(root.as_path()).unwrap();
        assert_eq!(checkout(&root, Some(&home)), root);
        for path in ["src/outer/inner/.git", "src/outer/.git", ".git"] {
            std::fs::write(home.join(path).as_path(), "").unwrap();
        }
        assert_eq!(checkout(&root, Some(&home)), home.join("src/outer"));
        assert_eq!(checkout(&root, None), home);
    }
}
