//! Which Python files a workspace has.
//!
//! What a server's configuration includes or excludes, and what git ignores, plays no part: completeness must not hang
//! on it. Left out are only folders that never hold the workspace's own code: names that begin with a dot,
//! `node_modules`, `__pycache__`, and virtual environments (a `pyvenv.cfg` inside). Links to folders are followed when
//! they lead out of the workspace, each place once, in the order of their paths, so that a loop ends and the result does
//! not depend on which thread came first.
//!
//! A walk that follows another asks about every folder and every file, but reads only the folders that changed: what comes,
//! goes or is renamed changes the times of the folder that it is in. Times near the walk's own prove nothing (git's "racy"
//! rule), and are believed only where the file system is known to keep them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use super::cache_file::{Reader, Writer};
use super::files::canonical;
use super::parallel::parallel_map;
use crate::path::{AbsPath, WorkspacePath};

/// Times this near to the walk that recorded them are not trusted; the coarsest file systems count in two seconds.
pub(super) const RACY_NANOS: i64 = 2_000_000_000;

/// What the file system says of a file without its being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
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
        Self {
            size: metadata.len(),
            mtime: metadata.mtime().saturating_mul(1_000_000_000).saturating_add(metadata.mtime_nsec()),
            ctime: metadata.ctime().saturating_mul(1_000_000_000).saturating_add(metadata.ctime_nsec()),
            inode: metadata.ino(),
        }
    }

    /// Whether it was taken so near to a change that it may stand for what was there before. `began` is the time when the
    /// walk began, in nanoseconds since 1970.
    pub(super) fn is_racy(&self, began: i64) -> bool {
        self.mtime.max(self.ctime) > began - RACY_NANOS
    }
}

/// The files of a workspace, by the folders that they are in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Walk {
    /// By path relative to the root.
    folders: BTreeMap<String, Arc<Folder>>,
    /// Links to folders, and where they lead.
    links: BTreeMap<String, AbsPath>,
    /// Whether every folder that is reached is there: [`Walk::write`] leaves some out.
    is_whole: bool,
}

/// What one folder holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Folder {
    /// Of the folder itself, just before it was read; `None` when that proves nothing.
    stat: Option<FolderStat>,
    /// The Python files that are no links; `None` where the file system would not say anything about it.
    files: Vec<(WorkspacePath, Option<Stat>)>,
    links: Vec<Link>,
    /// The folders in it that are to be read.
    below: Vec<String>,
    /// Compiled modules and `py.typed`.
    other: Vec<String>,
    /// Names in it that are not UTF-8.
    unreadable: Vec<String>,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Read,
    /// A virtual environment, whose content is not the workspace's.
    Environment,
    Unreadable,
}

/// A folder at one moment. Another device is another file system mounted there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FolderStat {
    device: u64,
    inode: u64,
    mtime: i64,
    ctime: i64,
}

/// A symbolic link.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Link {
    path: String,
    /// Its text.
    target: String,
    leads_to: Target,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Target {
    Folder,
    Python(Stat),
    Other,
}

impl Walk {
    /// Walks a workspace on `threads` threads, after the walk `self` of the same one; after an empty one, everything is
    /// read. Tells also whether nothing is different. `began` is now, in nanoseconds since 1970.
    #[must_use]
    pub fn again(&self, root: &AbsPath, threads: usize, began: i64) -> (Self, bool) {
        let known: Vec<_> = self.folders.iter().collect();
        let checked = parallel_map(&known, threads, |(path, folder)| check(root, path, folder));
        let mut same = self.is_whole;
        let mut unchanged = BTreeMap::new();
        for ((path, folder), checked) in known.into_iter().zip(checked) {
            same &= matches!(checked, Checked::Same);
            match checked {
                Checked::Same => drop(unchanged.insert(path.as_str(), folder.clone())),
                Checked::Files(folder) => drop(unchanged.insert(path, Arc::new(folder))),
                Checked::Other => {}
            }
        }
        // A link may have been read again since the links were followed.
        same &= self.folder_links().into_iter().eq(self.links.keys().map(String::as_str));
        if same && self.links.iter().all(|(link, target)| canonical(&root.join(link)) == *target) {
            return (self.clone(), true);
        }
        let now = Self::reached(&Reading { root, threads, began, unchanged, trusted: Mutex::default() });
        let same = now == *self;
        (now, same)
    }

    /// The links that lead to folders which may be the workspace's.
    fn folder_links(&self) -> BTreeSet<&str> {
        let links = self.folders.values().flat_map(|folder| &folder.links);
        links
            .filter(|link| link.leads_to == Target::Folder && !is_skipped(name_of(&link.path)))
            .map(|link| link.path.as_str())
            .collect()
    }

    /// Everything that is reached from the root.
    fn reached(reading: &Reading<'_>) -> Self {
        let root = reading.root;
        let real_root = canonical(root);
        let mut walk = Self::default();
        let mut visited = BTreeSet::new();
        let mut next = vec![String::new()];
        while !next.is_empty() {
            let part = reading.tree(std::mem::take(&mut next));
            let links = part.iter().flat_map(|(_, folder)| &folder.links);
            let links: BTreeSet<_> = links
                .filter(|link| link.leads_to == Target::Folder && !is_skipped(name_of(&link.path)))
                .map(|link| link.path.clone())
                .collect();
            walk.folders.extend(part);
            for link in links {
                let target = canonical(&root.join(&link));
                let inside = target.strip_prefix(&real_root).is_some();
                let around = real_root.strip_prefix(&target).is_some();
                let again = visited.iter().any(|seen| target.strip_prefix(seen).is_some());
                walk.links.insert(link.clone(), target.clone());
                if !inside && !around && !again {
                    visited.insert(target);
                    next.push(link);
                }
            }
        }
        walk.is_whole = true;
        walk
    }

    /// Every Python file; `None` where the file system would not say anything about it.
    #[must_use]
    pub fn files(&self) -> BTreeMap<WorkspacePath, Option<Stat>> {
        let linked = self.folders.values().flat_map(|folder| &folder.links).filter_map(|link| {
            let Target::Python(stat) = link.leads_to else { return None };
            Some((WorkspacePath::new(&link.path)?, Some(stat)))
        });
        self.folders.values().flat_map(|folder| folder.files.iter().cloned()).chain(linked).collect()
    }

    /// Folders that could not be read, and names that are not UTF-8.
    #[must_use]
    pub fn unreadable(&self) -> BTreeSet<String> {
        let unreadable = self.folders.iter().filter(|(_, folder)| folder.kind == Kind::Unreadable);
        let names = self.folders.values().flat_map(|folder| folder.unreadable.iter().cloned());
        names.chain(unreadable.map(|(path, _)| path.clone())).collect()
    }

    /// What else decides where an import leads: folders without Python files, links with their targets, compiled modules,
    /// `py.typed`.
    #[must_use]
    pub fn shape(&self) -> BTreeSet<String> {
        let mut shape = BTreeSet::new();
        for (path, folder) in self.folders.iter().filter(|(_, folder)| folder.kind == Kind::Read) {
            let is_python = |link: &Link| matches!(link.leads_to, Target::Python(_));
            if folder.files.is_empty() && !folder.links.iter().any(is_python) {
                shape.insert(format!("{path}/"));
            }
            shape.extend(folder.other.iter().cloned());
            shape.extend(folder.links.iter().map(|link| format!("{} -> {}", link.path, link.target)));
        }
        shape
    }

    /// The folders whose times tell when they change.
    fn settled(&self) -> impl Iterator<Item = (&String, &Folder, FolderStat)> {
        self.folders.iter().filter_map(|(path, folder)| Some((path, &**folder, folder.stat?)))
    }

    /// Whether the next walk of another process could begin with one as well as with the other.
    pub(super) fn serves_like(&self, other: &Self) -> bool {
        self.links == other.links && self.settled().eq(other.settled())
    }

    /// Writes what the next walk of another process can begin with, but for what is known of the files.
    pub(super) fn write(&self, writer: &mut Writer) {
        writer.u64(self.links.len() as u64);
        for (link, target) in &self.links {
            writer.text(link);
            writer.text(target.as_str());
        }
        let settled = self.settled().count();
        writer.u64(u64::from(self.is_whole && settled == self.folders.len()));
        writer.u64(settled as u64);
        for (path, folder, stat) in self.settled() {
            writer.text(path);
            writer.u64(stat.device);
            writer.u64(stat.inode);
            writer.i64(stat.mtime);
            writer.i64(stat.ctime);
            writer.u64(u64::from(folder.kind == Kind::Environment));
            let files: Vec<_> = folder.files.iter().map(|(path, _)| path.as_str()).collect();
            let links: Vec<_> = folder.links.iter().map(|link| link.path.as_str()).collect();
            for names in [&files, &links] {
                write_names(writer, names);
            }
            for names in [&folder.below, &folder.other, &folder.unreadable] {
                write_names(writer, names);
            }
        }
    }

    /// Reads what [`Walk::write`] wrote; `stats` are the files'. What is known of links is asked of the file system again.
    pub(super) fn read(
        reader: &mut Reader<'_>,
        root: &AbsPath,
        stats: impl Fn(&WorkspacePath) -> Option<Stat>,
    ) -> Option<Self> {
        let mut links = BTreeMap::new();
        for _ in 0..reader.u64()? {
            links.insert(reader.text()?.to_owned(), AbsPath::new(reader.text()?).ok()?);
        }
        let is_whole = reader.u64()? != 0;
        let mut folders = BTreeMap::new();
        for _ in 0..reader.u64()? {
            let path = reader.text()?.to_owned();
            let (device, inode) = (reader.u64()?, reader.u64()?);
            let stat = Some(FolderStat { device, inode, mtime: reader.i64()?, ctime: reader.i64()? });
            let kind = if reader.u64()? == 0 { Kind::Read } else { Kind::Environment };
            let mut names = || read_names(reader, &path);
            let files = names()?.into_iter().map(|path| {
                let path = WorkspacePath::new(&path)?;
                let stat = stats(&path);
                Some((path, stat))
            });
            let files = files.collect::<Option<Vec<_>>>()?;
            let links = names()?.into_iter().map(|path| Link::read(root, path)).collect();
            let (below, other, unreadable) = (names()?, names()?, names()?);
            folders.insert(path, Arc::new(Folder { stat, files, links, below, other, unreadable, kind }));
        }
        Some(Self { folders, links, is_whole })
    }
}

fn write_names(writer: &mut Writer, paths: &[impl AsRef<str>]) {
    writer.u64(paths.len() as u64);
    for path in paths {
        writer.text(name_of(path.as_ref()));
    }
}

fn read_names(reader: &mut Reader<'_>, folder: &str) -> Option<Vec<String>> {
    let count = reader.u64()?;
    (0..count).map(|_| Some(inside(folder, reader.text()?))).collect()
}

/// What became of a folder that was read before.
enum Checked {
    Same,
    /// What the file system says of its files is different, but not which they are.
    Files(Folder),
    /// It has to be read again, or is gone.
    Other,
}

/// Looks at a folder that was read before, and at everything in it.
fn check(root: &AbsPath, path: &str, folder: &Folder) -> Checked {
    let mut place = format!("{root}/{path}");
    let now = std::fs::metadata(&place).ok().map(|metadata| FolderStat::of(&metadata));
    if folder.stat.is_none() || folder.stat != now {
        return Checked::Other;
    }
    let mut changed: Option<Folder> = None;
    for (at, (file, before)) in folder.files.iter().enumerate() {
        place.truncate(root.as_str().len() + 1);
        place.push_str(file.as_str());
        let now = std::fs::symlink_metadata(&place).ok();
        if now.as_ref().is_some_and(|metadata| !metadata.is_file()) {
            return Checked::Other;
        }
        let now = now.as_ref().map(Stat::of);
        if now != *before {
            changed.get_or_insert_with(|| folder.clone()).files[at].1 = now;
        }
    }
    for (at, link) in folder.links.iter().enumerate() {
        let now = Link::read(root, link.path.clone());
        if now != *link {
            changed.get_or_insert_with(|| folder.clone()).links[at] = now;
        }
    }
    changed.map_or(Checked::Same, Checked::Files)
}

impl FolderStat {
    fn of(metadata: &Metadata) -> Self {
        let Stat { mtime, ctime, inode, .. } = Stat::of(metadata);
        Self { device: metadata.dev(), inode, mtime, ctime }
    }
}

impl Link {
    fn read(root: &AbsPath, path: String) -> Self {
        let place = root.join(&path);
        let target = std::fs::read_link(place.as_path()).unwrap_or_default().display().to_string();
        let leads_to = match std::fs::metadata(place.as_path()) {
            Ok(metadata) if metadata.is_dir() => Target::Folder,
            Ok(metadata) if metadata.is_file() && is_python(&path) => Target::Python(Stat::of(&metadata)),
            _ => Target::Other,
        };
        Self { path, target, leads_to }
    }
}

/// What is needed to read folders.
struct Reading<'a> {
    root: &'a AbsPath,
    threads: usize,
    /// When the walk began, in nanoseconds since 1970.
    began: i64,
    /// Folders that need not be read.
    unchanged: BTreeMap<&'a str, Arc<Folder>>,
    /// Whether the times of a device's folders tell of what comes and goes in them.
    trusted: Mutex<BTreeMap<u64, bool>>,
}

/// Folders still to be read and the number of threads that are reading one.
struct Queue {
    folders: Vec<String>,
    busy: usize,
}

impl Reading<'_> {
    /// These folders and all below them.
    fn tree(&self, folders: Vec<String>) -> Vec<(String, Arc<Folder>)> {
        let queue = Mutex::new(Queue { folders, busy: 0 });
        let wake = Condvar::new();
        let work = || {
            let mut found = Vec::new();
            let mut state = queue.lock().unwrap_or_else(PoisonError::into_inner);
            loop {
                if let Some(path) = state.folders.pop() {
                    state.busy += 1;
                    drop(state);
                    let known = self.unchanged.get(path.as_str()).cloned();
                    let folder = known.unwrap_or_else(|| Arc::new(self.folder(&path)));
                    let below = folder.below.clone();
                    found.push((path, folder));
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
        std::thread::scope(|scope| {
            let helpers: Vec<_> = (1..self.threads).map(|_| scope.spawn(work)).collect();
            let mut all = work();
            for helper in helpers {
                all.extend(helper.join().expect("the walk does not panic"));
            }
            all
        })
    }

    fn folder(&self, path: &str) -> Folder {
        let place = self.root.join(path);
        // Before its entries: what comes meanwhile changes it.
        let stat = self.stat(&place);
        let unreadable = Folder { kind: Kind::Unreadable, ..Folder::default() };
        let Ok(entries) = std::fs::read_dir(place.as_path()) else { return unreadable };
        let mut folder = Folder { stat, ..Folder::default() };
        for entry in entries {
            // Half a folder is none: what was not told may be anything.
            let Ok(entry) = entry else { return unreadable };
            let name = match entry.file_name().into_string() {
                Ok(name) => name,
                Err(name) => {
                    folder.unreadable.push(inside(path, &name.to_string_lossy()));
                    continue;
                }
            };
            if name == "pyvenv.cfg" && !path.is_empty() {
                return Folder { stat, kind: Kind::Environment, ..Folder::default() };
            }
            let inner = inside(path, &name);
            let Ok(kind) = entry.file_type() else {
                // Next time it may be told.
                folder.stat = None;
                folder.unreadable.push(inner);
                continue;
            };
            if kind.is_dir() {
                if !is_skipped(&name) {
                    folder.below.push(inner);
                }
            } else if kind.is_symlink() {
                folder.links.push(Link::read(self.root, inner));
            } else if kind.is_file() && is_python(&name) {
                let stat = entry.metadata().ok().as_ref().map(Stat::of);
                folder.files.extend(WorkspacePath::new(&inner).map(|file| (file, stat)));
            } else if name == "py.typed" || name.ends_with(".so") || name.ends_with(".pyd") {
                folder.other.push(inner);
            }
        }
        // A file system may tell them in another order the next time.
        folder.files.sort();
        folder.links.sort();
        folder.below.sort();
        folder.other.sort();
        folder.unreadable.sort();
        folder
    }

    /// What the file system says of a folder, if that will show whether it has changed.
    fn stat(&self, place: &AbsPath) -> Option<FolderStat> {
        let metadata = std::fs::metadata(place.as_path()).ok()?;
        let mut trusted = self.trusted.lock().unwrap_or_else(PoisonError::into_inner);
        let trusted = *trusted.entry(metadata.dev()).or_insert_with(|| keeps_folder_times(place));
        (trusted && !Stat::of(&metadata).is_racy(self.began)).then(|| FolderStat::of(&metadata))
    }
}

/// Whether a folder's times change whenever an entry comes, goes or is renamed: known of these local file systems, and not
/// of those that come over a network or from a host, which may keep times of their own for a while.
#[cfg(target_os = "linux")]
fn keeps_folder_times(place: &AbsPath) -> bool {
    // From linux/magic.h; the first is that of ext2, ext3 and ext4.
    const EXT: u64 = 0xef53;
    const XFS: u64 = 0x5846_5342;
    const BTRFS: u64 = 0x9123_683e;
    const F2FS: u64 = 0xf2f5_2010;
    const ZFS: u64 = 0x2fc1_2fc1;
    const BCACHEFS: u64 = 0xca45_1a4e;
    const TMPFS: u64 = 0x0102_1994;
    const OVERLAYFS: u64 = 0x794c_7630;
    let Ok(stat) = rustix::fs::statfs(place.as_path()) else { return false };
    let kind = u64::try_from(stat.f_type).unwrap_or_default();
    [EXT, XFS, BTRFS, F2FS, ZFS, BCACHEFS, TMPFS, OVERLAYFS].contains(&(kind & 0xffff_ffff))
}

/// Elsewhere nobody has tried.
#[cfg(not(target_os = "linux"))]
const fn keeps_folder_times(_: &AbsPath) -> bool {
    false
}

/// The path of what is in a folder, both relative to the root.
fn inside(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

fn name_of(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

fn is_python(name: &str) -> bool {
    name.ends_with(".py") || name.ends_with(".pyi")
}

/// Whether a folder of this name never holds the workspace's own code.
pub(crate) fn is_skipped(name: &str) -> bool {
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
            let (walk, _) = Walk::default().again(&root, threads, i64::MAX);
            let files = walk.files();
            let names: Vec<_> = files.keys().map(WorkspacePath::as_str).collect();
            assert_eq!(names, ["a.py", "a1/o.py", "link.py", "pkg/b.pyi", "pkg/sub/c d#.py", "x.py/d.py"]);
            assert!(walk.unreadable().is_empty());
            let links = walk.shape().iter().filter(|line| line.contains(" -> ")).count();
            assert_eq!(links, 6, "{:?}", walk.shape());
        }
    }

    /// One thing that happens to a folder or to one outside, chosen by a number.
    fn happen(root: &std::path::Path, outside: &std::path::Path, number: u64) {
        let names = [
            "a.py",
            "b.py",
            "c.txt",
            "p",
            "q",
            "p/a.py",
            "p/r",
            "p/r/b.pyi",
            "q/x.so",
            "q/pyvenv.cfg",
            "l.py",
            "p/l",
        ];
        let at = |number: u64| root.join(names[usize::try_from(number).unwrap() % names.len()]);
        let (mut one, mut other) = (at(number / 8), at(number / 128));
        let out = ["o", "o/a.py", "o.py"].map(|name| outside.join(name));
        let out = out[usize::try_from(number / 4096).unwrap() % 3].clone();
        match number / 65536 % 4 {
            0 => one = out,
            1 => other = out,
            _ => {}
        }
        // Whatever cannot be done is left undone.
        drop(match number % 8 {
            0 | 1 => fs::write(one, "x"),
            2 => fs::create_dir_all(one),
            3 => fs::remove_file(one),
            4 => fs::remove_dir_all(one),
            5 => fs::rename(one, other),
            6 => symlink(other, one),
            _ => fs::hard_link(one, other),
        });
    }

    #[test]
    fn a_walk_after_another_sees_what_a_first_one_sees() {
        let [folder, outside] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let root = AbsPath::new(folder.path()).unwrap();
        // So late that nothing is racy: what is tried here is whether the times tell.
        let late = i64::MAX;
        let (mut walk, _) = Walk::default().again(&root, 2, late);
        let mut number: u64 = 0x9e37_79b9;
        let mut differed = 0;
        for step in 0..400 {
            number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            happen(folder.path(), outside.path(), number >> 33);
            // Longer than the clock of file systems ticks.
            std::thread::sleep(std::time::Duration::from_millis(12));
            let (now, same) = walk.again(&root, 2, late);
            let (first, _) = Walk::default().again(&root, 1, late);
            assert_eq!(now, first, "after step {step}");
            assert_eq!(same, walk.is_whole && now == walk, "after step {step}");
            differed += usize::from(!same);
            let mut writer = Writer::default();
            now.write(&mut writer);
            let files = now.files();
            let read =
                Walk::read(&mut Reader(&writer.0), &root, |path| files.get(path).copied().flatten()).unwrap();
            assert!(read.serves_like(&now));
            walk = if step % 2 == 0 { now } else { read };
            // What was changed moments before is not written.
            if step % 5 == 0 && walk.folders.len() > 1 {
                walk.folders.pop_last();
                walk.is_whole = false;
            }
        }
        assert!(differed > 100, "{differed}");
    }

    #[test]
    fn times_near_the_walk_prove_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let root = AbsPath::new(folder.path()).unwrap();
        fs::create_dir(folder.path().join("p")).unwrap();
        let (walk, _) = Walk::default().again(&root, 1, 0);
        assert_eq!(walk.settled().count(), 0);
        let (walk, _) = Walk::default().again(&root, 1, i64::MAX);
        assert_eq!(walk.settled().count(), if keeps_folder_times(&root) { 2 } else { 0 });
    }

    /// As in a run that begins with what another one kept.
    #[test]
    fn a_link_that_comes_to_lead_to_a_folder_outside() {
        let [folder, outside] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let root = AbsPath::new(folder.path()).unwrap();
        symlink(outside.path().join("later"), folder.path().join("link")).unwrap();
        let (walk, _) = Walk::default().again(&root, 1, i64::MAX);
        let mut writer = Writer::default();
        walk.write(&mut writer);
        fs::create_dir(outside.path().join("later")).unwrap();
        fs::write(outside.path().join("later/a.py"), "").unwrap();
        let read = Walk::read(&mut Reader(&writer.0), &root, |_| None).unwrap();
        let (now, same) = read.again(&root, 1, i64::MAX);
        assert!(!same);
        assert_eq!(now.files().keys().map(WorkspacePath::as_str).collect::<Vec<_>>(), ["link/a.py"]);
    }
}
