//! A snapshot: every Python file of the workspace by path and content digest, taken in a few milliseconds.
//!
//! A scan calls `stat` on every file and reads only the files whose size, modification time, change time or inode
//! differ from the last scan. A file that was changed within two seconds of the last scan is read again, because equal
//! times prove nothing then (git's "racy" rule). `ChangeDetection::Content` reads every file.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::sync::Arc;

use super::cache_file::{FieldReader, FieldWriter, load, store};
use super::code_folders::SkippedFolders;
use super::files::read_bytes;
use super::parallel::parallel_map;
use super::scripts::is_script;
use super::walk::{LINK_ARROW, Stat, WorkspaceWalk};
use super::word_index::{FilesByContent, WordIndex};
use crate::digest::Digest;
use crate::path::{AbsPath, WorkspacePath};
use crate::tape::{IoKind, Tape};
use crate::text::{SourceEncoding, decode_source};

const MAGIC: [u8; 8] = *b"lnsrst09";

/// The cache holds data of at most this many workspaces. That of django's 2,800 files takes 4 MB.
const MAX_CACHED_WORKSPACES: usize = 128;

/// How a scan detects changed files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ChangeDetection {
    /// By `stat`: equal size, times and inode mean equal content, except within the racy window.
    #[default]
    Stat,
    /// By content: every file is read.
    Content,
}

/// The Python files of a workspace at one moment.
#[derive(Debug)]
pub struct Snapshot {
    root: AbsPath,
    /// The content digest by path; `None` where the file could not be read.
    files: BTreeMap<WorkspacePath, Option<Digest>>,
    /// Files in an encoding other than UTF-8. A server decodes them wrongly.
    not_utf8: BTreeSet<WorkspacePath>,
    unreadable: BTreeSet<String>,
    /// What else affects import resolution; see [`WorkspaceWalk::import_layout`].
    import_layout: BTreeSet<String>,
    /// The `stat` of each file. It differs after every write, also when the content stays the same.
    stats: BTreeMap<WorkspacePath, Stat>,
    index: WordIndex,
    /// The cache's folder for this workspace.
    cache_folder: Option<AbsPath>,
}

/// What an earlier scan recorded about a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct KnownFile {
    stat: Stat,
    digest: Digest,
    /// Whether the file changed so shortly before its `stat` that a later change may not be visible in it.
    racy: bool,
    /// Whether the file is in an encoding other than UTF-8.
    not_utf8: bool,
    /// Whether it is a Python file: it has the suffix of one, or is a script.
    is_source: bool,
}

/// What a scan reads of a file.
#[derive(Debug, Clone, Copy)]
struct ReadFile {
    digest: Digest,
    not_utf8: bool,
    is_source: bool,
}

/// What one scan records for the next.
#[derive(Debug, Default)]
struct ScanRecords {
    walk: WorkspaceWalk,
    files: BTreeMap<WorkspacePath, KnownFile>,
}

impl ScanRecords {
    /// The Python files.
    fn sources(&self) -> impl Iterator<Item = (&WorkspacePath, &KnownFile)> {
        self.files.iter().filter(|(_, known)| known.is_source)
    }

    /// Whether the scan of another process could start from either of the two.
    fn is_equivalent(&self, other: &Self) -> bool {
        self.files == other.files && self.walk.is_equivalent(&other.walk)
    }
}

/// Takes snapshots of one workspace, each starting from the records of the last.
#[derive(Debug)]
pub struct SnapshotScanner {
    root: AbsPath,
    /// The cache's folder for this workspace.
    cache_folder: Option<AbsPath>,
    detection: ChangeDetection,
    skipped: SkippedFolders,
    threads: usize,
    /// The records of the last scan; `None` before the first scan.
    known: Option<ScanRecords>,
    last: Option<Arc<Snapshot>>,
}

impl SnapshotScanner {
    /// A scanner that has not scanned yet. `cache` is the folder in which scanners leave their records for other
    /// processes.
    #[must_use]
    pub fn new(root: &AbsPath, cache: Option<&AbsPath>, detection: ChangeDetection, threads: usize) -> Self {
        let cache_folder = cache.map(|cache| cache.join(&format!("workspaces/{}", short_id(root))));
        let skipped = SkippedFolders::default();
        Self { root: root.clone(), cache_folder, detection, skipped, threads, known: None, last: None }
    }

    /// The same, that reads some of the folders that are skipped otherwise.
    #[must_use]
    pub fn reading(mut self, skipped: SkippedFolders) -> Self {
        self.skipped = skipped;
        self
    }

    /// Scans the workspace. Returns the last snapshot itself when nothing changed.
    pub fn scan(&mut self) -> Arc<Snapshot> {
        let began = now_nanos();
        let known = self.known.take().unwrap_or_else(|| {
            self.cache_folder
                .as_ref()
                .and_then(|cache_folder| load_known(&cache_folder.join("files"), &self.root))
                .unwrap_or_default()
        });
        let by_stat = self.detection == ChangeDetection::Stat;
        let (walk, same) = match by_stat {
            true => known.walk.rescan(&self.root, self.skipped, self.threads, began),
            false => WorkspaceWalk::default().rescan(&self.root, self.skipped, self.threads, began),
        };
        // The common case: nothing changed.
        if let Some(last) = &self.last
            && same
            && by_stat
            && known.sources().count() == last.files.len()
            && !known.files.values().any(|known| known.racy)
        {
            self.known = Some(known);
            return last.clone();
        }
        let (mut files, mut records, mut unknown) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
        let mut not_utf8_files = BTreeSet::new();
        for (path, stat) in walk.files() {
            match (stat, known.files.get(&path)) {
                (Some(stat), Some(old)) if old.stat == stat && !old.racy && by_stat => {
                    if old.not_utf8 {
                        not_utf8_files.insert(path.clone());
                    }
                    if old.is_source {
                        files.insert(path.clone(), Some(old.digest));
                    }
                    records.insert(path, *old);
                }
                (stat, _) => unknown.push((path, stat)),
            }
        }
        let read = parallel_map(&unknown, self.threads, |(path, stat)| {
            let full_path = self.root.join(path.as_str());
            let is_script = || stat.is_some_and(|stat| is_script(&full_path, stat.size));
            if !path.is_python() && !is_script() {
                return Some(ReadFile { digest: Digest::of(b""), not_utf8: false, is_source: false });
            }
            let bytes = read_bytes(&full_path).ok()?;
            let digest = Digest::of(&bytes);
            let unchanged = known.files.get(path).filter(|old| old.digest == digest);
            let not_utf8 = match (unchanged, &self.last) {
                (Some(old), Some(_)) => old.not_utf8,
                _ => !is_utf8(bytes),
            };
            Some(ReadFile { digest, not_utf8, is_source: true })
        });
        for ((path, stat), content) in unknown.into_iter().zip(read) {
            if let Some(ReadFile { digest, not_utf8, is_source }) = content {
                if let Some(stat) = stat {
                    let racy = stat.is_racy(began);
                    records.insert(path.clone(), KnownFile { stat, digest, racy, not_utf8, is_source });
                }
                if not_utf8 {
                    not_utf8_files.insert(path.clone());
                }
            }
            if content.is_none_or(|content| content.is_source) {
                files.insert(path, content.map(|content| content.digest));
            }
        }
        let unreadable = walk.unreadable();
        let records = ScanRecords { walk, files: records };
        if let Some(cache_folder) = self.cache_folder.as_ref().filter(|_| !records.is_equivalent(&known)) {
            if !cache_folder.as_path().exists() {
                evict_oldest(&cache_folder.parent());
            }
            store_known(&cache_folder.join("files"), &records);
        }
        let snapshot = self.snapshot(files, not_utf8_files, unreadable, &records);
        self.known = Some(records);
        if let Some(last) = &self.last
            && last.files == snapshot.files
            && last.not_utf8 == snapshot.not_utf8
            && last.unreadable == snapshot.unreadable
            && last.import_layout == snapshot.import_layout
            && last.stats == snapshot.stats
        {
            return last.clone();
        }
        let snapshot = Arc::new(snapshot);
        self.last = Some(snapshot.clone());
        snapshot
    }

    /// The last snapshot of another process, without looking at the files: the next scan returns it if nothing has changed. `None`
    /// if there is none whose files a scan would not read again.
    pub fn presume(&mut self) -> Option<Arc<Snapshot>> {
        if self.detection != ChangeDetection::Stat || self.known.is_some() {
            return None;
        }
        let known = load_known(&self.cache_folder.as_ref()?.join("files"), &self.root)?;
        let is_settled = known.walk.is_complete()
            && known.walk.files().len() == known.files.len()
            && !known.files.values().any(|known| known.racy);
        if is_settled {
            let files = known.sources().map(|(path, known)| (path.clone(), Some(known.digest))).collect();
            let not_utf8 = known.files.iter().filter(|(_, known)| known.not_utf8);
            let not_utf8 = not_utf8.map(|(path, _)| path.clone()).collect();
            let unreadable = known.walk.unreadable();
            self.last = Some(Arc::new(self.snapshot(files, not_utf8, unreadable, &known)));
        }
        self.known = Some(known);
        self.last.clone()
    }

    fn snapshot(
        &self,
        files: BTreeMap<WorkspacePath, Option<Digest>>,
        not_utf8: BTreeSet<WorkspacePath>,
        unreadable: BTreeSet<String>,
        records: &ScanRecords,
    ) -> Snapshot {
        let mut by_content = FilesByContent::new();
        for (path, digest) in &files {
            if let Some(digest) = digest {
                by_content.entry(*digest).or_default().push(path.clone());
            }
        }
        let index = match &self.last {
            Some(last) => last.index.followed_by(by_content),
            None => {
                let path = self.cache_folder.as_ref().map(|cache_folder| cache_folder.join("words"));
                WordIndex::new(path, by_content)
            }
        };
        Snapshot {
            root: self.root.clone(),
            files,
            not_utf8,
            unreadable,
            import_layout: records.walk.import_layout(),
            stats: records.sources().map(|(path, known)| (path.clone(), known.stat)).collect(),
            index,
            cache_folder: self.cache_folder.clone(),
        }
    }
}

/// Whether a server that takes a file for UTF-8 decodes these bytes rightly.
fn is_utf8(bytes: Vec<u8>) -> bool {
    matches!(decode_source(bytes).encoding, SourceEncoding::Utf8 | SourceEncoding::Lossy)
}

/// A digest over paths and content digests. A `None` digest, of an unreadable file, counts as zeros.
#[must_use]
pub fn digest_of(files: &BTreeMap<WorkspacePath, Option<Digest>>) -> Digest {
    let missing = Digest::from_bytes([0; 32]);
    Digest::of_fields(files.iter().flat_map(|(path, digest)| {
        let content = digest.as_ref().unwrap_or(&missing);
        [path.as_str().as_bytes(), &content.as_bytes()[..]]
    }))
}

impl Snapshot {
    /// Scans a workspace once. `cache` is the folder in which the scan leaves its records for the next one.
    #[must_use]
    pub fn take(
        root: &AbsPath,
        cache: Option<&AbsPath>,
        detection: ChangeDetection,
        threads: usize,
    ) -> Arc<Self> {
        SnapshotScanner::new(root, cache, detection, threads).scan()
    }

    /// A snapshot from a trace. It has only what was recorded; the lookups of words are on the tape.
    #[must_use]
    pub fn recorded(
        root: AbsPath,
        files: BTreeMap<WorkspacePath, Option<Digest>>,
        not_utf8: BTreeSet<WorkspacePath>,
        unreadable: BTreeSet<String>,
    ) -> Arc<Self> {
        let (import_layout, stats, index) =
            (BTreeSet::new(), BTreeMap::new(), WordIndex::new(None, FilesByContent::new()));
        Arc::new(Self { root, files, not_utf8, unreadable, import_layout, stats, index, cache_folder: None })
    }

    /// The symbolic links that are not below a folder that is skipped.
    pub fn links(&self) -> impl Iterator<Item = &str> {
        self.import_layout.iter().filter_map(|line| Some(line.split_once(LINK_ARROW)?.0))
    }

    /// Whether a path, relative to the root, is a symbolic link.
    #[must_use]
    pub fn is_link(&self, path: &str) -> bool {
        let line = format!("{path}{LINK_ARROW}");
        self.import_layout.range(line.clone()..).next().is_some_and(|first| first.starts_with(&line))
    }

    /// The workspace's root.
    #[must_use]
    pub const fn root(&self) -> &AbsPath {
        &self.root
    }

    /// Every Python file with its content digest; `None` where the file could not be read.
    #[must_use]
    pub const fn files(&self) -> &BTreeMap<WorkspacePath, Option<Digest>> {
        &self.files
    }

    /// Files in an encoding other than UTF-8, or one that is not known. A server that reads them from disk decodes them wrongly.
    #[must_use]
    pub const fn not_utf8(&self) -> &BTreeSet<WorkspacePath> {
        &self.not_utf8
    }

    /// Folders that could not be read, and names that are not UTF-8.
    #[must_use]
    pub const fn unreadable(&self) -> &BTreeSet<String> {
        &self.unreadable
    }

    /// What else affects import resolution: folders without Python files, symbolic links with their targets, compiled
    /// modules.
    #[must_use]
    pub const fn import_layout(&self) -> &BTreeSet<String> {
        &self.import_layout
    }

    /// Whether no file was written between the two snapshots, not even with the same content.
    #[must_use]
    pub fn is_untouched(&self, later: &Self) -> bool {
        self.stats == later.stats
    }

    /// The files that were written between the two snapshots, also with the same content.
    pub fn touched<'s>(&'s self, later: &'s Self) -> impl Iterator<Item = &'s WorkspacePath> {
        later
            .files
            .iter()
            .filter(|(path, digest)| {
                self.files.get(*path) != Some(digest) || self.stats.get(*path) != later.stats.get(*path)
            })
            .map(|(path, _)| path)
    }

    /// The absolute path of a file in the workspace.
    #[must_use]
    pub fn absolute(&self, path: &WorkspacePath) -> AbsPath {
        self.root.join(path.as_str())
    }

    /// A digest over every path and content.
    #[must_use]
    pub fn digest(&self) -> Digest {
        digest_of(&self.files)
    }

    /// The readable files that contain `word` as a whole word, anywhere; from the tape when it replays.
    #[must_use]
    pub fn files_with_word(&self, word: &str, threads: usize, tape: &Tape) -> Vec<WorkspacePath> {
        tape.query(IoKind::Index, &("word", word), || self.find_word(word, threads), Vec::new)
    }

    /// The readable files that contain `word` as a whole word, for a query that is on the tape as a whole.
    pub(crate) fn find_word(&self, word: &str, threads: usize) -> Vec<WorkspacePath> {
        self.index.files_with(word, threads, |path, digest| self.text_of(path, digest))
    }

    /// The text of a file that had this digest when it was scanned; `None` if it cannot be read, or has changed since.
    #[must_use]
    pub fn text_of(&self, path: &WorkspacePath, digest: Digest) -> Option<String> {
        let bytes = read_bytes(&self.absolute(path)).ok().filter(|bytes| Digest::of(bytes) == digest)?;
        Some(decode_source(bytes).text)
    }

    /// Saves the word index for the next process, when enough of it is new.
    pub fn save_index(&self) {
        self.index.save();
    }

    /// The data that another module cached for this workspace under `name`; `None` when it is missing, damaged, or has
    /// another magic number.
    #[must_use]
    pub fn load_cached(&self, name: &str, magic: [u8; 8]) -> Option<Vec<u8>> {
        load(&self.cache_folder.as_ref()?.join(name), magic)
    }

    /// Caches data for this workspace under `name`. Errors are ignored: the next run computes the data again.
    pub fn store_cached(&self, name: &str, magic: [u8; 8], payload: &[u8]) {
        if let Some(cache_folder) = &self.cache_folder {
            store(&cache_folder.join(name), magic, payload);
        }
    }

    /// The first path, in order, that differs between two snapshots.
    #[must_use]
    pub fn first_difference(&self, other: &Self) -> Option<WorkspacePath> {
        let own = self
            .files
            .iter()
            .filter(|(path, digest)| other.files.get(path) != Some(digest))
            .map(|(path, _)| path);
        let only_other = other.files.keys().filter(|path| !self.files.contains_key(path));
        own.chain(only_other).min().cloned()
    }
}

/// Makes room for one more workspace by removing the least recently scanned ones. Reinforcement-learning rollouts create
/// thousands of workspaces, each under a different path.
fn evict_oldest(folder: &AbsPath) {
    let Ok(entries) = std::fs::read_dir(folder.as_path()) else { return };
    let mut known: Vec<_> = entries
        .flatten()
        .map(|entry| {
            (
                entry.path().join("files").metadata().and_then(|metadata| metadata.modified()).ok(),
                entry.path(),
            )
        })
        .collect();
    known.sort();
    for (_, path) in known.iter().take((known.len() + 1).saturating_sub(MAX_CACHED_WORKSPACES)) {
        let _ = std::fs::remove_dir_all(path);
    }
}

/// The name of the workspace's folder in the cache.
fn short_id(root: &AbsPath) -> String {
    Digest::of(root.as_str().as_bytes()).to_hex()[..24].to_owned()
}

fn now_nanos() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

fn load_known(path: &AbsPath, root: &AbsPath) -> Option<ScanRecords> {
    let payload = load(path, MAGIC)?;
    let mut reader = FieldReader(&payload);
    let count = reader.u64()?;
    let files = (0..count).map(|_| {
        let path = WorkspacePath::new(reader.text()?)?;
        let stat = Stat::restore(&mut reader)?;
        let (racy, not_utf8, is_source) = (reader.u64()? != 0, reader.u64()? != 0, reader.u64()? != 0);
        Some((path, KnownFile { stat, digest: reader.digest()?, racy, not_utf8, is_source }))
    });
    // At once, which is faster than one by one when they are in order.
    let files = files.collect::<Option<BTreeMap<_, _>>>()?;
    let walk = WorkspaceWalk::read(&mut reader, root, |path| files.get(path).map(|known| known.stat))?;
    Some(ScanRecords { walk, files })
}

fn store_known(path: &AbsPath, known: &ScanRecords) {
    let mut writer = FieldWriter::default();
    writer.u64(known.files.len() as u64);
    for (path, KnownFile { stat, digest, racy, not_utf8, is_source }) in &known.files {
        writer.text(path.as_str());
        stat.write(&mut writer);
        writer.u64(u64::from(*racy));
        writer.u64(u64::from(*not_utf8));
        writer.u64(u64::from(*is_source));
        writer.digest(digest);
    }
    known.walk.write(&mut writer);
    store(path, MAGIC, &writer.0);
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::scripts::MAX_MAYBE_SCRIPTS;
    use super::*;

    fn path(text: &str) -> WorkspacePath {
        WorkspacePath::new(text).unwrap()
    }

    struct TestWorkspace {
        _folder: tempfile::TempDir,
        root: AbsPath,
        cache: AbsPath,
    }

    impl TestWorkspace {
        fn new(files: &[(&str, &str)]) -> Self {
            let folder = tempfile::tempdir().unwrap();
            let top = AbsPath::new(folder.path()).unwrap();
            let this = Self { _folder: folder, root: top.join("w"), cache: top.join("cache") };
            for (path, text) in files {
                this.write(path, text);
            }
            this
        }

        fn write(&self, path: &str, text: &str) {
            let path = self.root.join(path);
            fs::create_dir_all(path.parent().as_path()).unwrap();
            fs::write(path.as_path(), text).unwrap();
        }

        fn take(&self) -> Arc<Snapshot> {
            let snapshot = Snapshot::take(&self.root, Some(&self.cache), ChangeDetection::Stat, 2);
            snapshot.save_index();
            snapshot
        }

        fn with_word(&self, word: &str) -> Vec<String> {
            self.take().find_word(word, 2).iter().map(ToString::to_string).collect()
        }
    }

    #[test]
    fn digest_is_of_content_and_path_only() {
        let (a, b) = (
            TestWorkspace::new(&[("a.py", "x"), ("b.py", "y")]),
            TestWorkspace::new(&[("b.py", "y"), ("a.py", "x")]),
        );
        assert_eq!(a.take().digest(), b.take().digest());
        b.write("b.py", "z");
        assert_ne!(a.take().digest(), b.take().digest());
    }

    #[test]
    fn a_change_of_equal_length_right_after_a_scan_is_detected() {
        let folder = TestWorkspace::new(&[("a.py", "one")]);
        for text in ["two", "six", "ten", "one"] {
            let before = folder.take();
            folder.write("a.py", text);
            assert!(before.first_difference(&folder.take()).is_some(), "{text}");
        }
    }

    #[test]
    fn an_incremental_scan_equals_a_fresh_one() {
        let folder = TestWorkspace::new(&[("a.py", "spam"), ("b/c.py", "egg")]);
        for cache in [None, Some(&folder.cache)] {
            let mut scanner = SnapshotScanner::new(&folder.root, cache, ChangeDetection::Stat, 2);
            let first = scanner.scan();
            assert!(Arc::ptr_eq(&first, &scanner.scan()), "nothing changed");
            folder.write("a.py", "egg spam");
            folder.write("d.py", "ham");
            fs::remove_file(folder.root.join("b/c.py").as_path()).unwrap();
            let second = scanner.scan();
            let fresh = Snapshot::take(&folder.root, None, ChangeDetection::Content, 1);
            assert_eq!(second.files(), fresh.files());
            for word in ["spam", "egg", "ham"] {
                assert_eq!(second.find_word(word, 2), fresh.find_word(word, 1), "{word}");
            }
            // Written with the same content: a server may have read other content in between.
            folder.write("d.py", "ham");
            let third = scanner.scan();
            assert_eq!(second.digest(), third.digest());
            let touched: Vec<_> = second.touched(&third).map(WorkspacePath::as_str).collect();
            assert_eq!(touched, if second.is_untouched(&third) { vec![] } else { vec!["d.py"] });
            folder.write("a.py", "spam");
            folder.write("b/c.py", "egg");
            fs::remove_file(folder.root.join("d.py").as_path()).unwrap();
            assert_eq!(scanner.scan().digest(), first.digest());
        }
    }

    #[test]
    fn scripts_have_no_suffix_and_say_that_they_are_python() {
        let folder = TestWorkspace::new(&[
            ("bin/run", "#!/usr/bin/env python3\nx = 1\n"),
            ("bin/run.txt", "#!/usr/bin/env python3\n"),
            ("LICENSE", "python\n"),
            ("a.py", "x"),
        ]);
        let scripts = |snapshot: &Snapshot| {
            let scripts = snapshot.files().keys().filter(|path| !path.is_python());
            scripts.map(ToString::to_string).collect::<Vec<_>>().join(" ")
        };
        let mut scanner = SnapshotScanner::new(&folder.root, Some(&folder.cache), ChangeDetection::Stat, 2);
        let first = scanner.scan();
        assert_eq!((scripts(&first).as_str(), first.files().len()), ("bin/run", 2));
        assert!(Arc::ptr_eq(&first, &scanner.scan()), "nothing changed");
        folder.write("LICENSE", "#!/usr/bin/python\n");
        assert_eq!(scripts(&scanner.scan()), "LICENSE bin/run");
        folder.write("bin/run", "#!/usr/bin/env python3\nx = 2\n");
        assert_ne!(scanner.scan().files()[&path("bin/run")], first.files()[&path("bin/run")]);
        folder.write("bin/run", "#!/bin/sh\n");
        assert_eq!(scripts(&scanner.scan()), "LICENSE");
        assert_eq!(
            scripts(&Snapshot::take(&folder.root, Some(&folder.cache), ChangeDetection::Stat, 1)),
            "LICENSE"
        );
        // Data has no suffix, either.
        for number in 0..=MAX_MAYBE_SCRIPTS {
            folder.write(&format!("bin/{number}"), "#!/usr/bin/python\n");
        }
        assert_eq!(scripts(&scanner.scan()), "LICENSE");
    }

    #[test]
    fn words_are_found_with_and_without_a_cache() {
        let folder =
            TestWorkspace::new(&[("a.py", "def spam(): pass"), ("b.py", "# spam"), ("c.py", "spammer")]);
        assert_eq!(folder.with_word("spam"), ["a.py", "b.py"]);
        assert_eq!(folder.with_word("spam"), ["a.py", "b.py"]);
        folder.write("c.py", "spam");
        folder.write("b.py", "");
        assert_eq!(folder.with_word("spam"), ["a.py", "c.py"]);
    }

    #[test]
    fn the_cache_holds_a_bounded_number_of_workspaces() {
        let folder = TestWorkspace::new(&[("a.py", "spam")]);
        let workspaces = folder.cache.join("workspaces");
        for number in 0..MAX_CACHED_WORKSPACES + 20 {
            fs::create_dir_all(workspaces.join(&format!("{number:03}")).as_path()).unwrap();
            let _ = fs::write(workspaces.join(&format!("{number:03}/files")).as_path(), "");
        }
        folder.take();
        let left = fs::read_dir(workspaces.as_path()).unwrap().count();
        assert_eq!(left, MAX_CACHED_WORKSPACES);
        assert!(workspaces.join(&short_id(&folder.root)).as_path().exists());
    }

    #[test]
    fn words_in_another_encoding_are_found() {
        let folder = TestWorkspace::new(&[("a.py", "caf\u{e9} = 1")]);
        let latin1 = b"# coding: latin-1\ncaf\xe9\n";
        fs::write(folder.root.join("b.py").as_path(), latin1).unwrap();
        for _ in 0..2 {
            assert_eq!(folder.with_word("caf\u{e9}"), ["a.py", "b.py"]);
            let not_utf8: Vec<_> = folder.take().not_utf8().iter().map(ToString::to_string).collect();
            assert_eq!(not_utf8, ["b.py"]);
        }
    }

    #[test]
    fn an_index_saved_before_any_lookup_is_not_taken_for_complete() {
        let folder = TestWorkspace::new(&[("a.py", "spam")]);
        let mut scanner = SnapshotScanner::new(&folder.root, Some(&folder.cache), ChangeDetection::Stat, 2);
        drop(scanner.scan());
        // Another process knows this file by its `stat`, without its words in the cache, and reads many other files.
        let files = folder.cache.join(&format!("workspaces/{}/files", short_id(&folder.root)));
        let mut known = load_known(&files, &folder.root).unwrap();
        for known in known.files.values_mut() {
            known.racy = false;
        }
        store_known(&files, &known);
        for number in 0..20 {
            folder.write(&format!("{number}.py"), &format!("x{number}"));
        }
        let snapshot = Snapshot::take(&folder.root, Some(&folder.cache), ChangeDetection::Stat, 2);
        snapshot.save_index();
        let found: Vec<_> = snapshot.find_word("spam", 2).iter().map(ToString::to_string).collect();
        assert_eq!(found, ["a.py"]);
    }

    #[test]
    fn a_damaged_cache_is_ignored() {
        let folder = TestWorkspace::new(&[("a.py", "spam"), ("b.py", "egg")]);
        // Enough files for the index to be saved.
        for number in 0..10 {
            folder.write(&format!("{number}.py"), &format!("x{number}"));
        }
        let snapshot = folder.take();
        assert_eq!(snapshot.find_word("spam", 2).len(), 1);
        snapshot.save_index();
        let digest = snapshot.digest();
        for name in ["files", "words"] {
            let path = folder.cache.join(&format!("workspaces/{}/{name}", short_id(&folder.root)));
            let bytes = fs::read(path.as_path()).unwrap();
            for at in (0..bytes.len()).step_by(7) {
                let mut damaged = bytes.clone();
                damaged[at] ^= 0x55;
                fs::write(path.as_path(), &damaged).unwrap();
                assert_eq!(folder.take().digest(), digest);
                assert_eq!(folder.with_word("spam"), ["a.py"]);
                fs::write(path.as_path(), &bytes[..at]).unwrap();
                assert_eq!(folder.with_word("spam"), ["a.py"]);
            }
        }
    }

    #[test]
    fn the_last_scan_of_another_process_is_presumed_and_confirmed() {
        let workspace = TestWorkspace::new(&[("a.py", "alpha = 1\n"), ("p/b.py", "beta = 2\n")]);
        let scanner = || {
            let (root, cache) = (&workspace.root, Some(&workspace.cache));
            SnapshotScanner::new(root, cache, ChangeDetection::Stat, 2)
        };
        assert!(scanner().presume().is_none(), "there was no scan");
        let first = workspace.take();
        assert!(scanner().presume().is_none(), "what was just written may be written again at the same time");
        std::thread::sleep(std::time::Duration::from_millis(2_100));
        workspace.take();
        let mut unchanged = scanner();
        let presumed = unchanged.presume().unwrap();
        assert_eq!((presumed.files(), presumed.import_layout()), (first.files(), first.import_layout()));
        assert_eq!(presumed.files_with_word("beta", 2, &Tape::off()).len(), 1);
        assert!(Arc::ptr_eq(&unchanged.scan(), &presumed));
        assert!(unchanged.presume().is_none(), "this process has scanned");
        let mut changed = scanner();
        let presumed = changed.presume().unwrap();
        workspace.write("p/b.py", "gamma = 2\n");
        let now = changed.scan();
        assert!(!Arc::ptr_eq(&now, &presumed));
        assert_eq!(now.first_difference(&presumed).unwrap().as_str(), "p/b.py");
        assert_eq!(now.files_with_word("gamma", 2, &Tape::off()).len(), 1);
    }
}
