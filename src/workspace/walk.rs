//! Lists the Python files of a workspace, and the files without a suffix, which may be Python scripts.
//!
//! The walk ignores the server's `include` and `exclude` and git's ignore rules, because completeness must not depend
//! on them. It skips only folders that tools fill; see [`super::code_folders`]. Symbolic links to folders outside the workspace are
//! followed, each target once and in path order, so that a loop ends and the result does not depend on thread timing.
//!
//! A rescan calls `stat` on every known folder and file, but reads only the folders that changed: creating, removing or
//! renaming an entry changes the times of its folder. Times close to the time of the walk prove nothing (git's "racy"
//! rule), and folder times are trusted only on file systems that are known to update them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use super::cache_file::{FieldReader, FieldWriter};
use super::code_folders::{CodeFolders, ENVIRONMENT_FILE, SkippedFolders, is_skipped, is_skipped_in};
use super::files::canonical;
use super::parallel::parallel_map;
use super::scripts::{MAX_MAYBE_SCRIPTS, folder_of, folders_of_data, may_be_script};
use crate::path::{AbsPath, WorkspacePath, is_python};

/// Times within this many nanoseconds of the walk that recorded them are not trusted. The coarsest file systems have a
/// resolution of two seconds.
pub(super) const RACY_WINDOW_NANOS: i64 = 2_000_000_000;

/// The metadata of a file that shows whether it was written.
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

    /// Whether the file changed so shortly before the walk that a later change might not be visible in its times.
    /// `began` is the start of the walk, in nanoseconds since 1970.
    pub(super) fn is_racy(&self, began: i64) -> bool {
        self.mtime.max(self.ctime) > began - RACY_WINDOW_NANOS
    }

    pub(super) fn write(&self, writer: &mut FieldWriter) {
        writer.u64(self.size);
        writer.i64(self.mtime);
        writer.i64(self.ctime);
        writer.u64(self.inode);
    }

    pub(super) fn restore(reader: &mut FieldReader<'_>) -> Option<Self> {
        Some(Self { size: reader.u64()?, mtime: reader.i64()?, ctime: reader.i64()?, inode: reader.u64()? })
    }
}

/// The files of a workspace, by folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkspaceWalk {
    /// By path relative to the root.
    folders: BTreeMap<String, Arc<WalkedFolder>>,
    /// The resolved targets of symbolic links to folders.
    links: BTreeMap<String, AbsPath>,
    /// The skipped folders that were read.
    code: CodeFolders,
    /// Whether every reached folder is in `folders`; [`WorkspaceWalk::write`] omits some.
    is_complete: bool,
}

/// The content of one folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct WalkedFolder {
    /// The folder's `stat`, taken just before it was read; `None` when it would not show a later change.
    stat: Option<FolderStat>,
    /// The Python files that are not links, and those that may be scripts; `None` where `stat` failed.
    files: Vec<(WorkspacePath, Option<Stat>)>,
    links: Vec<SymbolicLink>,
    /// Its subfolders, except those that are skipped by their names.
    below: Vec<String>,
    /// Compiled modules and `py.typed`.
    other: Vec<String>,
    /// Its entries whose name is not UTF-8 or whose type is unknown.
    unreadable: Vec<String>,
    kind: FolderKind,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum FolderKind {
    #[default]
    Read,
    /// A virtual environment. What tools put into it does not belong to the workspace.
    Environment,
    Unreadable,
}

/// The metadata of a folder that shows whether its entries changed. A different device means that another file system
/// was mounted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FolderStat {
    device: u64,
    inode: u64,
    mtime: i64,
    ctime: i64,
}

/// Between the path of a symbolic link and its target, in [`WorkspaceWalk::import_layout`].
pub(super) const LINK_ARROW: &str = " -> ";

/// A symbolic link.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct SymbolicLink {
    path: String,
    /// The path that it contains.
    target: String,
    resolves_to: LinkTarget,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum LinkTarget {
    Folder,
    Python(Stat),
    Other,
}

impl WorkspaceWalk {
    /// Walks the workspace of `self` again on `threads` threads. After a default walk, everything is read. The flag in
    /// the result says whether nothing changed. `began` is the current time, in nanoseconds since 1970.
    #[must_use]
    pub fn rescan(
        &self,
        root: &AbsPath,
        skipped: SkippedFolders,
        threads: usize,
        began: i64,
    ) -> (Self, bool) {
        let code = CodeFolders::of(root, skipped, &self.code, began);
        let same_code = code == self.code;
        // What is tracked decides which folders are below another.
        let known: Vec<_> = self.folders.iter().filter(|_| same_code).collect();
        let checked = parallel_map(&known, threads, |(path, folder)| check(root, path, folder));
        let mut same = self.is_complete && same_code;
        let mut unchanged = BTreeMap::new();
        for ((path, folder), checked) in known.into_iter().zip(checked) {
            same &= matches!(checked, FolderCheck::Same);
            match checked {
                FolderCheck::Same => drop(unchanged.insert(path.as_str(), folder.clone())),
                FolderCheck::Files(folder) => drop(unchanged.insert(path, Arc::new(folder))),
                FolderCheck::Other => {}
            }
        }
        // `read` reads the links again, so their kinds may differ from the followed ones.
        same &= self.folder_links().into_iter().eq(self.links.keys().map(String::as_str));
        if same && self.links.iter().all(|(link, target)| canonical(&root.join(link)) == *target) {
            return (Self { code, ..self.clone() }, true);
        }
        let now = Self::read_reachable(FolderReader {
            root,
            code,
            threads,
            began,
            unchanged,
            trusted_devices: Mutex::default(),
        });
        let same = now == *self;
        (now, same)
    }

    /// The links to folders that are not skipped.
    fn folder_links(&self) -> BTreeSet<&str> {
        self.folders.iter().flat_map(|(path, folder)| folder.links_to_folders(path)).collect()
    }

    /// Everything that is reachable from the root.
    fn read_reachable(reader: FolderReader<'_>) -> Self {
        let root = reader.root;
        let real_root = canonical(root);
        let mut walk = Self::default();
        // The resolved targets that were walked, with the paths by which they were reached.
        let mut walked = vec![(real_root.clone(), String::new())];
        walk.folders.extend(reader.read_tree(vec![String::new()]));
        let mut links: VecDeque<String> = walk.folder_links().into_iter().map(str::to_owned).collect();
        while let Some(link) = links.pop_front() {
            let target = canonical(&root.join(&link));
            let contains_root = real_root.strip_prefix(&target).is_some();
            // What is in a folder that is skipped is read through the link, since Python imports it.
            let is_walked = walked.iter().any(|(real, path)| {
                target.strip_prefix(real).is_some_and(|rest| walk.folders.contains_key(&below(path, rest)))
            });
            walk.links.insert(link.clone(), target.clone());
            if !contains_root && !is_walked {
                let part: BTreeMap<_, _> = reader.read_tree(vec![link.clone()]).into_iter().collect();
                let found = part.iter().flat_map(|(path, folder)| folder.links_to_folders(path));
                links.extend(found.map(str::to_owned));
                walk.folders.extend(part);
                walked.push((target, link));
            }
        }
        walk.is_complete = true;
        walk.code = reader.code;
        walk
    }

    /// Whether every reached folder is known.
    pub(super) const fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Every Python file, and every file that may be a script; `None` where `stat` failed.
    #[must_use]
    pub fn files(&self) -> BTreeMap<WorkspacePath, Option<Stat>> {
        let linked = self.folders.values().flat_map(|folder| &folder.links).filter_map(|link| {
            let LinkTarget::Python(stat) = link.resolves_to else { return None };
            Some((WorkspacePath::new(&link.path)?, Some(stat)))
        });
        let mut files: BTreeMap<_, _> =
            self.folders.values().flat_map(|folder| folder.files.iter().cloned()).chain(linked).collect();
        let data = folders_of_data(files.keys());
        files.retain(|path, _| path.is_python() || !data.contains(folder_of(path)));
        files
    }

    /// Folders that could not be read, and names that are not UTF-8.
    #[must_use]
    pub fn unreadable(&self) -> BTreeSet<String> {
        let unreadable = self.folders.iter().filter(|(_, folder)| folder.kind == FolderKind::Unreadable);
        let names = self.folders.values().flat_map(|folder| folder.unreadable.iter().cloned());
        let indexes = self.code.unreadable().cloned();
        names.chain(unreadable.map(|(path, _)| path.clone())).chain(indexes).collect()
    }

    /// What else affects import resolution: folders without Python files, symbolic links with their targets, compiled
    /// modules, `py.typed`.
    #[must_use]
    pub fn import_layout(&self) -> BTreeSet<String> {
        let mut shape = BTreeSet::new();
        let is_code = |folder: &WalkedFolder| match folder.kind {
            FolderKind::Read => true,
            FolderKind::Environment => !folder.files.is_empty(),
            FolderKind::Unreadable => false,
        };
        for (path, folder) in self.folders.iter().filter(|(_, folder)| is_code(folder)) {
            let is_module = |(path, _): &(WorkspacePath, Option<Stat>)| path.is_python();
            if !folder.files.iter().any(is_module) && !folder.links.iter().any(SymbolicLink::is_module) {
                shape.insert(format!("{path}/"));
            }
            shape.extend(folder.other.iter().cloned());
            shape.extend(folder.links.iter().map(|link| format!("{}{LINK_ARROW}{}", link.path, link.target)));
        }
        shape
    }

    /// The folders whose recorded times will show a change.
    fn settled(&self) -> impl Iterator<Item = (&String, &WalkedFolder, FolderStat)> {
        self.folders.iter().filter_map(|(path, folder)| Some((path, &**folder, folder.stat?)))
    }

    /// Whether another process could rescan from either of the two.
    pub(super) fn is_equivalent(&self, other: &Self) -> bool {
        self.links == other.links && self.settled().eq(other.settled())
    }

    /// Writes what another process needs to rescan, except the `stat`s of the files.
    pub(super) fn write(&self, writer: &mut FieldWriter) {
        self.code.write(writer);
        writer.u64(self.links.len() as u64);
        for (link, target) in &self.links {
            writer.text(link);
            writer.text(target.as_str());
        }
        let settled = self.settled().count();
        writer.u64(u64::from(self.is_complete && settled == self.folders.len()));
        writer.u64(settled as u64);
        for (path, folder, stat) in self.settled() {
            writer.text(path);
            writer.u64(stat.device);
            writer.u64(stat.inode);
            writer.i64(stat.mtime);
            writer.i64(stat.ctime);
            writer.u64(u64::from(folder.kind == FolderKind::Environment));
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

    /// Reads what [`WorkspaceWalk::write`] wrote. `stats` returns the recorded `stat` of a file. Links are read from
    /// the file system.
    pub(super) fn read(
        reader: &mut FieldReader<'_>,
        root: &AbsPath,
        stats: impl Fn(&WorkspacePath) -> Option<Stat>,
    ) -> Option<Self> {
        let code = CodeFolders::restore(reader)?;
        let mut links = BTreeMap::new();
        for _ in 0..reader.u64()? {
            links.insert(reader.text()?.to_owned(), AbsPath::new(reader.text()?).ok()?);
        }
        let is_complete = reader.u64()? != 0;
        let mut folders = BTreeMap::new();
        for _ in 0..reader.u64()? {
            let path = reader.text()?.to_owned();
            let (device, inode) = (reader.u64()?, reader.u64()?);
            let stat = Some(FolderStat { device, inode, mtime: reader.i64()?, ctime: reader.i64()? });
            let kind = if reader.u64()? == 0 { FolderKind::Read } else { FolderKind::Environment };
            let mut names = || read_names(reader, &path);
            let files = names()?.into_iter().map(|path| {
                let path = WorkspacePath::new(&path)?;
                let stat = stats(&path);
                Some((path, stat))
            });
            let files = files.collect::<Option<Vec<_>>>()?;
            let links = names()?.into_iter().map(|path| SymbolicLink::read(root, path)).collect();
            let (below, other, unreadable) = (names()?, names()?, names()?);
            folders
                .insert(path, Arc::new(WalkedFolder { stat, files, links, below, other, unreadable, kind }));
        }
        Some(Self { folders, links, code, is_complete })
    }
}

impl WalkedFolder {
    /// The links to folders that are not skipped. `path` is that of this folder.
    fn links_to_folders(&self, path: &str) -> impl Iterator<Item = &str> {
        let is_environment = self.is_environment(path);
        let links = self.links.iter().filter(|link| link.resolves_to == LinkTarget::Folder);
        links.map(|link| link.path.as_str()).filter(move |link| !is_skipped_in(name_of(link), is_environment))
    }

    /// Whether tools fill folders in it. The workspace itself is never skipped.
    fn is_environment(&self, path: &str) -> bool {
        self.kind == FolderKind::Environment && !path.is_empty()
    }
}

fn write_names(writer: &mut FieldWriter, paths: &[impl AsRef<str>]) {
    writer.u64(paths.len() as u64);
    for path in paths {
        writer.text(name_of(path.as_ref()));
    }
}

fn read_names(reader: &mut FieldReader<'_>, folder: &str) -> Option<Vec<String>> {
    let count = reader.u64()?;
    (0..count).map(|_| Some(inside(folder, reader.text()?))).collect()
}

/// How a folder compares with an earlier read.
enum FolderCheck {
    Same,
    /// Files were written or links changed, but the entries are the same.
    Files(WalkedFolder),
    /// The folder has to be read again, or is gone.
    Other,
}

/// Checks a folder that was read before, and its files and links, by `stat`.
fn check(root: &AbsPath, path: &str, folder: &WalkedFolder) -> FolderCheck {
    let mut full_path = format!("{root}/{path}");
    let now = std::fs::metadata(&full_path).ok().map(|metadata| FolderStat::of(&metadata));
    if folder.stat.is_none() || folder.stat != now {
        return FolderCheck::Other;
    }
    let mut changed: Option<WalkedFolder> = None;
    for (at, (file, before)) in folder.files.iter().enumerate() {
        full_path.truncate(root.as_str().len() + 1);
        full_path.push_str(file.as_str());
        let now = std::fs::symlink_metadata(&full_path).ok();
        if now.as_ref().is_some_and(|metadata| !metadata.is_file()) {
            return FolderCheck::Other;
        }
        let now = now.as_ref().map(Stat::of);
        if now != *before {
            changed.get_or_insert_with(|| folder.clone()).files[at].1 = now;
        }
    }
    for (at, link) in folder.links.iter().enumerate() {
        let now = SymbolicLink::read(root, link.path.clone());
        if now != *link {
            changed.get_or_insert_with(|| folder.clone()).links[at] = now;
        }
    }
    changed.map_or(FolderCheck::Same, FolderCheck::Files)
}

impl FolderStat {
    fn of(metadata: &Metadata) -> Self {
        let Stat { mtime, ctime, inode, .. } = Stat::of(metadata);
        Self { device: metadata.dev(), inode, mtime, ctime }
    }
}

impl SymbolicLink {
    fn read(root: &AbsPath, path: String) -> Self {
        let full_path = root.join(&path);
        let target = std::fs::read_link(full_path.as_path()).unwrap_or_default().display().to_string();
        let resolves_to = match std::fs::metadata(full_path.as_path()) {
            Ok(metadata) if metadata.is_dir() => LinkTarget::Folder,
            Ok(metadata) if metadata.is_file() && (is_python(&path) || may_be_script(&path)) => {
                LinkTarget::Python(Stat::of(&metadata))
            }
            _ => LinkTarget::Other,
        };
        Self { path, target, resolves_to }
    }

    fn is_module(&self) -> bool {
        matches!(self.resolves_to, LinkTarget::Python(_)) && is_python(&self.path)
    }
}

/// Reads folders on several threads.
struct FolderReader<'a> {
    root: &'a AbsPath,
    code: CodeFolders,
    threads: usize,
    /// The start of the walk, in nanoseconds since 1970.
    began: i64,
    /// Folders that need not be read again.
    unchanged: BTreeMap<&'a str, Arc<WalkedFolder>>,
    /// By device, whether [`updates_folder_times`] holds for its file system.
    trusted_devices: Mutex<BTreeMap<u64, bool>>,
}

/// The folders to be read, with whether they are inside of a skipped one, and the number of threads that are reading one.
struct FolderQueue {
    folders: Vec<(String, bool)>,
    busy: usize,
}

impl FolderReader<'_> {
    /// Reads these folders and all folders below them.
    fn read_tree(&self, folders: Vec<String>) -> Vec<(String, Arc<WalkedFolder>)> {
        let folders = folders.into_iter().map(|path| (path, false)).collect();
        let queue = Mutex::new(FolderQueue { folders, busy: 0 });
        let wake = Condvar::new();
        let work = || {
            let mut found = Vec::new();
            let mut state = queue.lock().unwrap_or_else(PoisonError::into_inner);
            loop {
                if let Some((path, is_inside_skipped)) = state.folders.pop() {
                    state.busy += 1;
                    drop(state);
                    let known = self.unchanged.get(path.as_str()).cloned();
                    let folder = known.unwrap_or_else(|| Arc::new(self.read_folder(&path)));
                    let is_environment = folder.is_environment(&path);
                    let below = folder.below.iter().filter_map(|inner| {
                        let skipped = is_inside_skipped || is_skipped_in(name_of(inner), is_environment);
                        (!skipped || self.code.has(inner)).then(|| (inner.clone(), skipped))
                    });
                    let below: Vec<_> = below.collect();
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
            let workers: Vec<_> = (1..self.threads).map(|_| scope.spawn(work)).collect();
            let mut all = work();
            for worker in workers {
                all.extend(worker.join().expect("the walk does not panic"));
            }
            all
        })
    }

    fn read_folder(&self, path: &str) -> WalkedFolder {
        let full_path = self.root.join(path);
        // Taken before the entries are read, so that a concurrent change is visible in a later `stat`.
        let stat = self.stat(&full_path);
        let unreadable = WalkedFolder { kind: FolderKind::Unreadable, ..WalkedFolder::default() };
        let Ok(entries) = std::fs::read_dir(full_path.as_path()) else { return unreadable };
        let mut folder = WalkedFolder { stat, ..WalkedFolder::default() };
        for entry in entries {
            // An incomplete listing counts as unreadable: any entry may be missing.
            let Ok(entry) = entry else { return unreadable };
            let name = match entry.file_name().into_string() {
                Ok(name) => name,
                Err(name) => {
                    folder.unreadable.push(inside(path, &name.to_string_lossy()));
                    continue;
                }
            };
            if name == ENVIRONMENT_FILE {
                folder.kind = FolderKind::Environment;
            }
            let inner = inside(path, &name);
            let Ok(kind) = entry.file_type() else {
                // Without a `stat`, the next walk reads the folder again and may learn the type.
                folder.stat = None;
                folder.unreadable.push(inner);
                continue;
            };
            if kind.is_dir() {
                if !is_skipped(&name) || self.code.has(&inner) {
                    folder.below.push(inner);
                }
            } else if kind.is_symlink() {
                folder.links.push(SymbolicLink::read(self.root, inner));
            } else if kind.is_file() && (is_python(&name) || may_be_script(&name)) {
                let stat = entry.metadata().ok().as_ref().map(Stat::of);
                folder.files.extend(WorkspacePath::new(&inner).map(|file| (file, stat)));
            } else if name == "py.typed" || name.ends_with(".so") || name.ends_with(".pyd") {
                folder.other.push(inner);
            }
        }
        // File systems may list entries in any order.
        folder.files.sort();
        let may_be_scripts = folder.files.iter().filter(|(path, _)| !path.is_python()).count();
        if may_be_scripts > MAX_MAYBE_SCRIPTS {
            folder.files.retain(|(path, _)| path.is_python());
        }
        folder.links.sort();
        folder.below.sort();
        folder.other.sort();
        folder.unreadable.sort();
        folder
    }

    /// The `stat` of a folder; `None` when it would not show a later change.
    fn stat(&self, folder: &AbsPath) -> Option<FolderStat> {
        let metadata = std::fs::metadata(folder.as_path()).ok()?;
        let mut trusted = self.trusted_devices.lock().unwrap_or_else(PoisonError::into_inner);
        let trusted = *trusted.entry(metadata.dev()).or_insert_with(|| updates_folder_times(folder));
        (trusted && !Stat::of(&metadata).is_racy(self.began)).then(|| FolderStat::of(&metadata))
    }
}

/// Whether a folder's times change whenever an entry is created, removed or renamed. That is known of these local file
/// systems, but not of network file systems and those shared by a virtual machine's host, which may cache times.
#[cfg(target_os = "linux")]
fn updates_folder_times(folder: &AbsPath) -> bool {
    // Magic numbers from linux/magic.h; `EXT` is that of ext2, ext3 and ext4.
    const EXT: u64 = 0xef53;
    const XFS: u64 = 0x5846_5342;
    const BTRFS: u64 = 0x9123_683e;
    const F2FS: u64 = 0xf2f5_2010;
    const ZFS: u64 = 0x2fc1_2fc1;
    const BCACHEFS: u64 = 0xca45_1a4e;
    const TMPFS: u64 = 0x0102_1994;
    const OVERLAYFS: u64 = 0x794c_7630;
    let Ok(stat) = rustix::fs::statfs(folder.as_path()) else { return false };
    let kind = u64::try_from(stat.f_type).unwrap_or_default();
    [EXT, XFS, BTRFS, F2FS, ZFS, BCACHEFS, TMPFS, OVERLAYFS].contains(&(kind & 0xffff_ffff))
}

/// Not tested on other systems.
#[cfg(not(target_os = "linux"))]
const fn updates_folder_times(_: &AbsPath) -> bool {
    false
}

/// The path of an entry of a folder, both relative to the root.
/// The path of what is in a folder, or of the folder itself.
fn below(folder: &str, rest: &str) -> String {
    if rest.is_empty() { folder.to_owned() } else { inside(folder, rest) }
}

fn inside(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

fn name_of(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
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
            "venv/own.py",
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
            let (walk, _) = WorkspaceWalk::default().rescan(&root, SkippedFolders::Skip, threads, i64::MAX);
            let files = walk.files();
            let names: Vec<_> = files.keys().map(WorkspacePath::as_str).collect();
            let expected =
                ["a.py", "a1/o.py", "link.py", "pkg/b.pyi", "pkg/sub/c d#.py", "venv/own.py", "x.py/d.py"];
            assert_eq!(names, expected);
            assert!(walk.unreadable().is_empty());
            let links = walk.import_layout().iter().filter(|line| line.contains(" -> ")).count();
            assert_eq!(links, 6, "{:?}", walk.import_layout());
        }
    }

    #[test]
    fn what_is_skipped_is_read_through_links() {
        let (folder, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let at = |path: &str| folder.path().join(path);
        fs::create_dir_all(at(".hid/.deep")).unwrap();
        fs::create_dir_all(outside.path().join("env/lib/foo")).unwrap();
        fs::write(at(".hid/.deep/a.py"), "").unwrap();
        fs::write(outside.path().join("env/pyvenv.cfg"), "").unwrap();
        fs::write(outside.path().join("env/lib/foo/b.py"), "").unwrap();
        symlink(outside.path(), at("all")).unwrap();
        symlink(outside.path().join("env/lib/foo"), at("foo")).unwrap();
        symlink(at(".hid"), at("hid")).unwrap();
        symlink(at(".hid/.deep"), at(".hid/deep")).unwrap();
        symlink(at(".hid"), at(".hid/.deep/loop")).unwrap();
        fs::create_dir(at("data")).unwrap();
        for number in 0..=MAX_MAYBE_SCRIPTS {
            symlink(at("pkg"), at(&format!("data/{number}"))).unwrap();
        }
        fs::write(at("pkg"), "").unwrap();
        let root = AbsPath::new(folder.path()).unwrap();
        let rescan = |walk: &WorkspaceWalk| walk.rescan(&root, SkippedFolders::Skip, 2, i64::MAX);
        let (walk, _) = rescan(&WorkspaceWalk::default());
        let names = |walk: &WorkspaceWalk| {
            walk.files().keys().map(|path| path.as_str().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(names(&walk), ["foo/b.py", "hid/deep/a.py", "pkg"]);
        assert_eq!(names(&rescan(&walk).0), names(&walk));
    }

    /// Makes one change in a folder or in one outside of it, chosen by a number.
    fn change_something(root: &std::path::Path, outside: &std::path::Path, number: u64) {
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
        // A change that fails is skipped.
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
    fn a_rescan_equals_a_first_walk() {
        let [folder, outside] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let root = AbsPath::new(folder.path()).unwrap();
        // So late that no time is racy: this tests whether the times show every change.
        let late = i64::MAX;
        let (mut walk, _) = WorkspaceWalk::default().rescan(&root, SkippedFolders::Skip, 2, late);
        let mut number: u64 = 0x9e37_79b9;
        let mut differed = 0;
        for step in 0..400 {
            number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            change_something(folder.path(), outside.path(), number >> 33);
            // Longer than a clock tick of file systems.
            std::thread::sleep(std::time::Duration::from_millis(12));
            let (now, same) = walk.rescan(&root, SkippedFolders::Skip, 2, late);
            let (first, _) = WorkspaceWalk::default().rescan(&root, SkippedFolders::Skip, 1, late);
            assert_eq!(now, first, "after step {step}");
            assert_eq!(same, walk.is_complete && now == walk, "after step {step}");
            differed += usize::from(!same);
            let mut writer = FieldWriter::default();
            now.write(&mut writer);
            let files = now.files();
            let read = WorkspaceWalk::read(&mut FieldReader(&writer.0), &root, |path| {
                files.get(path).copied().flatten()
            })
            .unwrap();
            assert!(read.is_equivalent(&now));
            walk = if step % 2 == 0 { now } else { read };
            // A folder that was changed just before is not written.
            if step % 5 == 0 && walk.folders.len() > 1 {
                walk.folders.pop_last();
                walk.is_complete = false;
            }
        }
        assert!(differed > 100, "{differed}");
    }

    #[test]
    fn times_close_to_the_walk_are_not_trusted() {
        let folder = tempfile::tempdir().unwrap();
        let root = AbsPath::new(folder.path()).unwrap();
        fs::create_dir(folder.path().join("p")).unwrap();
        let (walk, _) = WorkspaceWalk::default().rescan(&root, SkippedFolders::Skip, 1, 0);
        assert_eq!(walk.settled().count(), 0);
        let (walk, _) = WorkspaceWalk::default().rescan(&root, SkippedFolders::Skip, 1, i64::MAX);
        assert_eq!(walk.settled().count(), if updates_folder_times(&root) { 2 } else { 0 });
    }

    /// As in a process that starts from another process's records.
    #[test]
    fn a_link_whose_target_becomes_a_folder_outside_is_followed() {
        let [folder, outside] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let root = AbsPath::new(folder.path()).unwrap();
        symlink(outside.path().join("later"), folder.path().join("link")).unwrap();
        let (walk, _) = WorkspaceWalk::default().rescan(&root, SkippedFolders::Skip, 1, i64::MAX);
        let mut writer = FieldWriter::default();
        walk.write(&mut writer);
        fs::create_dir(outside.path().join("later")).unwrap();
        fs::write(outside.path().join("later/a.py"), "").unwrap();
        let read = WorkspaceWalk::read(&mut FieldReader(&writer.0), &root, |_| None).unwrap();
        let (now, same) = read.rescan(&root, SkippedFolders::Skip, 1, i64::MAX);
        assert!(!same);
        assert_eq!(now.files().keys().map(WorkspacePath::as_str).collect::<Vec<_>>(), ["link/a.py"]);
    }
}
