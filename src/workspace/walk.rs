//! Which Python files a workspace has.
//!
//! What a server's configuration includes or excludes, and what git ignores, plays no part: completeness must not hang
//! on it. Left out are only folders that never hold the workspace's own code: names that begin with a dot,
//! `node_modules`, `__pycache__`, and virtual environments (a `pyvenv.cfg` inside). Links to folders are followed when
//! they lead out of the workspace, each place once, in the order of their paths, so that a loop ends and the result does
//! not depend on which thread came first.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::fs::Metadata;
use std::sync::{Condvar, Mutex, PoisonError};

use super::files::canonical;
use crate::path::{AbsPath, WorkspacePath};

/// What the file system says of a file without its being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// Size in bytes.
    pub size: u64,
    /// Modification time, nanoseconds since 1970.
    pub mtime: i64,
    /// Change time of the inode, nanoseconds since 1970.
    pub ctime: i64,
    /// The inode's number.
    pub inode: u64,
}

impl Stat {
    pub(super) fn of(metadata: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt as _;
        Self {
            size: metadata.len(),
            mtime: metadata.mtime().saturating_mul(1_000_000_000).saturating_add(metadata.mtime_nsec()),
            ctime: metadata.ctime().saturating_mul(1_000_000_000).saturating_add(metadata.ctime_nsec()),
            inode: metadata.ino(),
        }
    }
}

/// The files of a walk.
#[derive(Debug, Default)]
pub struct Walk {
    /// Every Python file; `None` where the file system would not say anything about it.
    pub files: BTreeMap<WorkspacePath, Option<Stat>>,
    /// Folders that could not be read, and names that are not UTF-8.
    pub unreadable: BTreeSet<String>,
    /// What else decides where an import leads: folders without Python files, links with their targets, compiled modules,
    /// `py.typed`.
    pub shape: BTreeSet<String>,
}

/// Walks a workspace on `threads` threads.
#[must_use]
pub fn walk(root: &AbsPath, threads: usize) -> Walk {
    let real_root = canonical(root);
    let mut found = Found::default();
    let mut visited = BTreeSet::new();
    let mut next = vec![String::new()];
    while !next.is_empty() {
        let part = walk_tree(root, std::mem::take(&mut next), threads);
        let links = part.links.clone();
        found.merge(part);
        for link in links {
            let target = canonical(&root.join(&link));
            let inside = target.strip_prefix(&real_root).is_some();
            let around = real_root.strip_prefix(&target).is_some();
            let again = visited.iter().any(|seen| target.strip_prefix(seen).is_some());
            if !inside && !around && !again {
                visited.insert(target);
                next.push(link);
            }
        }
    }
    Walk { files: found.files, unreadable: found.unreadable, shape: found.shape }
}

/// What one thread, or all of them, found.
#[derive(Debug, Default)]
struct Found {
    files: BTreeMap<WorkspacePath, Option<Stat>>,
    unreadable: BTreeSet<String>,
    /// Links to folders, relative to the root.
    links: BTreeSet<String>,
    /// See [`Walk::shape`].
    shape: BTreeSet<String>,
}

impl Found {
    fn merge(&mut self, other: Self) {
        self.files.extend(other.files);
        self.unreadable.extend(other.unreadable);
        self.links.extend(other.links);
        self.shape.extend(other.shape);
    }
}

/// Folders still to be read and the number of threads that are reading one.
struct Queue {
    folders: Vec<String>,
    busy: usize,
}

fn walk_tree(root: &AbsPath, folders: Vec<String>, threads: usize) -> Found {
    let queue = Mutex::new(Queue { folders, busy: 0 });
    let wake = Condvar::new();
    let work = || {
        let mut found = Found::default();
        let mut state = queue.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(folder) = state.folders.pop() {
                state.busy += 1;
                drop(state);
                let below = read_folder(root, &folder, &mut found);
                state = queue.lock().unwrap_or_else(PoisonError::into_inner);
                state.busy -= 1;
                state.folders.extend(below);
                wake.notify_all();
            } else if state.busy == 0 {
                return found;
            } else {
                state = wake.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
    };
    let mut all = Found::default();
    std::thread::scope(|scope| {
        let helpers: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        all.merge(work());
        for helper in helpers {
            all.merge(helper.join().expect("the walk does not panic"));
        }
    });
    all
}

/// Reads one folder and returns the folders below it that are to be read.
fn read_folder(root: &AbsPath, folder: &str, found: &mut Found) -> Vec<String> {
    let path = root.join(folder);
    let Ok(entries) = std::fs::read_dir(path.as_path()) else {
        found.unreadable.insert(folder.to_owned());
        return Vec::new();
    };
    let relative = |name: &str| if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") };
    let mut below = Vec::new();
    let mut files = Vec::new();
    let mut links = Vec::new();
    let mut shape = Vec::new();
    for entry in entries.flatten() {
        let name = match entry.file_name().into_string() {
            Ok(name) => name,
            Err(name) => {
                found.unreadable.insert(relative(&name.to_string_lossy()));
                continue;
            }
        };
        if name == "pyvenv.cfg" && !folder.is_empty() {
            return Vec::new();
        }
        let Ok(kind) = entry.file_type() else { continue };
        let is_python = name.ends_with(".py") || name.ends_with(".pyi");
        if kind.is_dir() {
            if !is_skipped(&name) {
                below.push(relative(&name));
            }
        } else if kind.is_symlink() {
            let target = std::fs::read_link(entry.path()).unwrap_or_default();
            shape.push(format!("{} -> {}", relative(&name), target.display()));
            match std::fs::metadata(entry.path()) {
                Ok(target) if target.is_dir() && !is_skipped(&name) => links.push(relative(&name)),
                Ok(target) if target.is_file() && is_python => {
                    files.push((relative(&name), Some(Stat::of(&target))));
                }
                _ => {}
            }
        } else if kind.is_file() && is_python {
            files.push((relative(&name), entry.metadata().ok().as_ref().map(Stat::of)));
        } else if name == "py.typed" || name.ends_with(".so") || name.ends_with(".pyd") {
            shape.push(relative(&name));
        }
    }
    if files.is_empty() {
        shape.push(format!("{folder}/"));
    }
    found.shape.extend(shape);
    found.links.extend(links);
    found.files.extend(files.into_iter().filter_map(|(path, stat)| Some((WorkspacePath::new(&path)?, stat))));
    below
}

fn is_skipped(name: &str) -> bool {
    name.starts_with('.') || name == "node_modules" || name == "__pycache__"
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn the_files_of_a_workspace() {
        let folder = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        for path in ["pkg/sub", "x.py", ".git", "venv/lib", "node_modules", "pkg/__pycache__"] {
            fs::create_dir_all(at(path)).unwrap();
        }
        for path in [
            "a.py",
            "pkg/b.pyi",
            "pkg/sub/c d#.py",
            "x.py/d.py",
            ".git/e.py",
            "venv/pyvenv.cfg",
            "venv/lib/f.py",
            "node_modules/g.py",
            "pkg/__pycache__/h.py",
            "pkg/i.txt",
        ] {
            fs::write(at(path), "").unwrap();
        }
        fs::write(outside.path().join("o.py"), "").unwrap();
        symlink(at("pkg"), at("pkg/sub/loop")).unwrap();
        symlink(folder.path(), at("whole")).unwrap();
        symlink(outside.path(), at("z1")).unwrap();
        symlink(outside.path(), at("a1")).unwrap();
        symlink(at("a.py"), at("link.py")).unwrap();
        symlink(at("nowhere"), at("dangling.py")).unwrap();
        let root = AbsPath::new(folder.path()).unwrap();
        for threads in [1, 2, 7] {
            let walk = walk(&root, threads);
            let names: Vec<_> = walk.files.keys().map(WorkspacePath::as_str).collect();
            assert_eq!(names, ["a.py", "a1/o.py", "link.py", "pkg/b.pyi", "pkg/sub/c d#.py", "x.py/d.py"]);
            assert!(walk.unreadable.is_empty());
            let links = walk.shape.iter().filter(|line| line.contains(" -> ")).count();
            assert_eq!(links, 6, "{:?}", walk.shape);
        }
    }
}
