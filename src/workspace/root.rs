//! Where a workspace begins.

use super::files::canonical;
use crate::path::AbsPath;

/// A folder that has one of these is the root of a workspace.
const MARKERS: [&str; 7] =
    ["lanser.toml", "pyrightconfig.json", "pyproject.toml", "setup.py", "setup.cfg", ".git", ".hg"];

/// The nearest folder from `start` upwards that has a marker; `start` itself when there is none.
///
/// Links are resolved, so that one folder has one name.
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
