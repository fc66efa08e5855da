//! A snapshot: every Python file of the workspace by path and content digest, taken in a few milliseconds.
//!
//! A scan asks the file system about every file and reads only those whose answer changed since the last scan (size,
//! modification and change time, inode). Equal times prove nothing near the last scan's own time, so a file that was
//! changed within two seconds of it is read again (git's "racy" rule). `Trust::Content` reads everything.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::sync::Arc;

use super::cache_file::{Reader, Writer, load, store};
use super::files::read_bytes;
use super::parallel::parallel_map;
use super::walk::{Stat, Walk};
use super::word_index::{WordIndex, WordSet, word_set};
use crate::digest::Digest;
use crate::path::{AbsPath, WorkspacePath};
use crate::tape::{Door, Tape};
use crate::text::{SourceEncoding, decode_source};

const MAGIC: [u8; 8] = *b"lnsrst03";

/// How many workspaces the cache remembers; django's 2,800 files take 4 MB.
const MAX_WORKSPACES: usize = 128;

/// What a scan believes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Trust {
    /// Equal size, times and inode mean equal content, outside the racy window.
    #[default]
    Stat,
    /// Nothing: every file is read.
    Content,
}

/// The Python files of a workspace at one moment.
#[derive(Debug)]
pub struct Snapshot {
    root: AbsPath,
    /// Path and content digest; `None` where the file could not be read.
    files: BTreeMap<WorkspacePath, Option<Digest>>,
    /// Files in another encoding than UTF-8, which a server does not read by itself.
    encoded: BTreeSet<WorkspacePath>,
    unreadable: BTreeSet<String>,
    /// What else decides where an import leads; see [`Walk::shape`].
    shape: BTreeSet<String>,
    /// As the file system describes each file: another one where it was written, also with the content that it had.
    stats: BTreeMap<WorkspacePath, Stat>,
    index: WordIndex,
    /// The workspace's folder in the cache.
    place: Option<AbsPath>,
}

/// What was recorded of a file at an earlier scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Known {
    stat: Stat,
    digest: Digest,
    /// Whether the stat was taken so near to the file's change that it may be of the content before.
    racy: bool,
    /// Whether a coding comment names another encoding than UTF-8.
    encoded: bool,
}

/// What is kept from one scan to the next.
#[derive(Debug, Default)]
struct Records {
    walk: Walk,
    files: BTreeMap<WorkspacePath, Known>,
}

impl Records {
    /// Whether the next scan of another process could begin with one as well as with the other.
    fn serve_like(&self, other: &Self) -> bool {
        self.files == other.files && self.walk.serves_like(&other.walk)
    }
}

/// Scans one workspace, and remembers what it saw for the next scan.
#[derive(Debug)]
pub struct Scanner {
    root: AbsPath,
    /// The folder of the cache that is this workspace's.
    place: Option<AbsPath>,
    trust: Trust,
    threads: usize,
    /// What the scans before saw and recorded; `None` before the first.
    known: Option<Records>,
    last: Option<Arc<Snapshot>>,
}

impl Scanner {
    /// A scanner that has seen nothing itself. `cache` is the folder where what is learned is kept for other scanners.
    #[must_use]
    pub fn new(root: &AbsPath, cache: Option<&AbsPath>, trust: Trust, threads: usize) -> Self {
        let place = cache.map(|cache| cache.join(&format!("workspaces/{}", short_id(root))));
        Self { root: root.clone(), place, trust, threads, known: None, last: None }
    }

    /// Scans now. When nothing is different, this is the snapshot of the last time.
    pub fn scan(&mut self) -> Arc<Snapshot> {
        let began = now_nanos();
        let known = self.known.take().unwrap_or_else(|| {
            self.place
                .as_ref()
                .and_then(|place| load_known(&place.join("files"), &self.root))
                .unwrap_or_default()
        });
        let trusted = self.trust == Trust::Stat;
        let (walk, same) = match trusted {
            true => known.walk.again(&self.root, self.threads, began),
            false => Walk::default().again(&self.root, self.threads, began),
        };
        // What nearly every scan finds.
        if let Some(last) = &self.last
            && same
            && trusted
            && known.files.len() == last.files.len()
            && !known.files.values().any(|known| known.racy)
        {
            self.known = Some(known);
            return last.clone();
        }
        let (mut files, mut records, mut unknown) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
        let mut encoded_files = BTreeSet::new();
        for (path, stat) in walk.files() {
            match (stat, known.files.get(&path)) {
                (Some(stat), Some(old)) if old.stat == stat && !old.racy && trusted => {
                    if old.encoded {
                        encoded_files.insert(path.clone());
                    }
                    files.insert(path.clone(), Some(old.digest));
                    records.insert(path, *old);
                }
                (stat, _) => unknown.push((path, stat)),
            }
        }
        let read = parallel_map(&unknown, self.threads, |(path, _)| {
            let bytes = read_bytes(&self.root.join(path.as_str())).ok()?;
            let digest = Digest::of(&bytes);
            let as_before = known.files.get(path).filter(|old| old.digest == digest);
            if let (Some(old), Some(_)) = (as_before, &self.last) {
                return Some((digest, old.encoded, None));
            }
            let source = decode_source(bytes);
            let encoded = matches!(source.encoding, SourceEncoding::Latin1 | SourceEncoding::Declared(_));
            Some((digest, encoded, Some(word_set(source.text.as_bytes()))))
        });
        let mut fresh: BTreeMap<Digest, Arc<WordSet>> = BTreeMap::new();
        for ((path, stat), content) in unknown.into_iter().zip(read) {
            let digest = content.as_ref().map(|(digest, _, _)| *digest);
            if let Some((digest, encoded, words)) = content {
                if let Some(stat) = stat {
                    records.insert(path.clone(), Known { stat, digest, racy: stat.is_racy(began), encoded });
                }
                if encoded {
                    encoded_files.insert(path.clone());
                }
                fresh.extend(words.map(|words| (digest, Arc::new(words))));
            }
            files.insert(path, digest);
        }
        let (unreadable, shape) = (walk.unreadable(), walk.shape());
        let stats = records.iter().map(|(path, known)| (path.clone(), known.stat)).collect();
        let records = Records { walk, files: records };
        if let Some(place) = self.place.as_ref().filter(|_| !records.serve_like(&known)) {
            if !place.as_path().exists() {
                prune(&place.parent());
            }
            store_known(&place.join("files"), &records);
        }
        self.known = Some(records);
        if let Some(last) = &self.last
            && last.files == files
            && last.encoded == encoded_files
            && last.unreadable == unreadable
            && last.shape == shape
            && last.stats == stats
        {
            return last.clone();
        }
        let digests = files.values().flatten().copied().collect();
        let index = match &self.last {
            Some(last) => last.index.followed_by(digests, fresh),
            None => WordIndex::new(self.place.as_ref().map(|place| place.join("words")), digests, fresh),
        };
        let snapshot = Arc::new(Snapshot {
            root: self.root.clone(),
            files,
            encoded: encoded_files,
            unreadable,
            shape,
            stats,
            index,
            place: self.place.clone(),
        });
        self.last = Some(snapshot.clone());
        snapshot
    }
}

/// A digest over paths and contents; `None` for a file that cannot be read.
#[must_use]
pub fn digest_of(files: &BTreeMap<WorkspacePath, Option<Digest>>) -> Digest {
    let missing = Digest::from_bytes([0; 32]);
    Digest::of_fields(files.iter().flat_map(|(path, digest)| {
        let content = digest.as_ref().unwrap_or(&missing);
        [path.as_str().as_bytes(), &content.as_bytes()[..]]
    }))
}

impl Snapshot {
    /// Scans a workspace once. `cache` is the folder where what was learned is kept for the next scan.
    #[must_use]
    pub fn take(root: &AbsPath, cache: Option<&AbsPath>, trust: Trust, threads: usize) -> Arc<Self> {
        Scanner::new(root, cache, trust, threads).scan()
    }

    /// A snapshot that was recorded. What was not is nowhere in it: its words are on the recording's tape.
    #[must_use]
    pub fn recorded(
        root: AbsPath,
        files: BTreeMap<WorkspacePath, Option<Digest>>,
        encoded: BTreeSet<WorkspacePath>,
        unreadable: BTreeSet<String>,
    ) -> Arc<Self> {
        let (shape, stats, index) =
            (BTreeSet::new(), BTreeMap::new(), WordIndex::new(None, BTreeSet::new(), BTreeMap::new()));
        Arc::new(Self { root, files, encoded, unreadable, shape, stats, index, place: None })
    }

    /// The workspace's root.
    #[must_use]
    pub const fn root(&self) -> &AbsPath {
        &self.root
    }

    /// Every Python file with the digest of its content; `None` where it could not be read.
    #[must_use]
    pub const fn files(&self) -> &BTreeMap<WorkspacePath, Option<Digest>> {
        &self.files
    }

    /// Files whose coding comment names another encoding than UTF-8. A server that reads them from disk reads them wrongly.
    #[must_use]
    pub const fn encoded(&self) -> &BTreeSet<WorkspacePath> {
        &self.encoded
    }

    /// Folders that could not be read and names that are not UTF-8.
    #[must_use]
    pub const fn unreadable(&self) -> &BTreeSet<String> {
        &self.unreadable
    }

    /// What else decides where an import leads: folders without Python files, links with their targets, compiled modules.
    #[must_use]
    pub const fn shape(&self) -> &BTreeSet<String> {
        &self.shape
    }

    /// Whether nothing was written since, not even with the content that it had.
    #[must_use]
    pub fn is_untouched(&self, later: &Self) -> bool {
        self.stats == later.stats
    }

    /// The files that have another content, or were written with the content that they had.
    pub fn touched<'s>(&'s self, later: &'s Self) -> impl Iterator<Item = &'s WorkspacePath> {
        later
            .files
            .iter()
            .filter(|(path, digest)| {
                self.files.get(*path) != Some(digest) || self.stats.get(*path) != later.stats.get(*path)
            })
            .map(|(path, _)| path)
    }

    /// Where a file of the workspace is.
    #[must_use]
    pub fn absolute(&self, path: &WorkspacePath) -> AbsPath {
        self.root.join(path.as_str())
    }

    /// A digest over every path and content.
    #[must_use]
    pub fn digest(&self) -> Digest {
        digest_of(&self.files)
    }

    /// The readable files in which `word` stands, anywhere, as a whole word; as a tape has them.
    #[must_use]
    pub fn files_with_word(&self, word: &str, threads: usize, tape: &Tape) -> Vec<WorkspacePath> {
        tape.ask(Door::Index, &("word", word), || self.find_word(word, threads), Vec::new)
    }

    fn find_word(&self, word: &str, threads: usize) -> Vec<WorkspacePath> {
        let having = self.index.digests_with(word, threads, |digest| {
            let path = self.files.iter().find(|(_, of)| of.as_ref() == Some(digest)).map(|(path, _)| path)?;
            // The file may be another one by now.
            let bytes = read_bytes(&self.absolute(path)).ok().filter(|bytes| Digest::of(bytes) == *digest)?;
            Some(decode_source(bytes).text)
        });
        let has = |digest: &Option<Digest>| digest.is_some_and(|digest| having.contains(&digest));
        self.files.iter().filter(|(_, digest)| has(digest)).map(|(path, _)| path.clone()).collect()
    }

    /// Writes what this scan learned of words for the next one, when it was much.
    pub fn keep_index(&self) {
        self.index.keep();
    }

    /// What was kept under a name beside what the scan itself keeps; `None` when it is not there, of another version, or
    /// damaged.
    #[must_use]
    pub fn kept(&self, name: &str, magic: [u8; 8]) -> Option<Vec<u8>> {
        load(&self.place.as_ref()?.join(name), magic)
    }

    /// Keeps something under a name for the next run. Failure is no error: the next run just pays again.
    pub fn keep(&self, name: &str, magic: [u8; 8], payload: &[u8]) {
        if let Some(place) = &self.place {
            store(&place.join(name), magic, payload);
        }
    }

    /// The first path, in order, that differs between two snapshots.
    #[must_use]
    pub fn first_difference(&self, other: &Self) -> Option<WorkspacePath> {
        let mine = self
            .files
            .iter()
            .filter(|(path, digest)| other.files.get(path) != Some(digest))
            .map(|(path, _)| path);
        let theirs = other.files.keys().filter(|path| !self.files.contains_key(path));
        mine.chain(theirs).min().cloned()
    }
}

/// Makes room for one more workspace: those that were looked at longest ago are forgotten. Rollouts make workspaces by the
/// thousand, each under a path of its own.
fn prune(folder: &AbsPath) {
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
    for (_, path) in known.iter().take((known.len() + 1).saturating_sub(MAX_WORKSPACES)) {
        let _ = std::fs::remove_dir_all(path);
    }
}

/// A name for the workspace's folder in the cache.
fn short_id(root: &AbsPath) -> String {
    Digest::of(root.as_str().as_bytes()).to_hex()[..24].to_owned()
}

fn now_nanos() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

fn load_known(path: &AbsPath, root: &AbsPath) -> Option<Records> {
    let payload = load(path, MAGIC)?;
    let mut reader = Reader(&payload);
    let mut files = BTreeMap::new();
    for _ in 0..reader.u64()? {
        let path = WorkspacePath::new(reader.text()?)?;
        let stat =
            Stat { size: reader.u64()?, mtime: reader.i64()?, ctime: reader.i64()?, inode: reader.u64()? };
        let (racy, encoded) = (reader.u64()? != 0, reader.u64()? != 0);
        files.insert(path, Known { stat, digest: reader.digest()?, racy, encoded });
    }
    let walk = Walk::read(&mut reader, root, |path| files.get(path).map(|known| known.stat))?;
    Some(Records { walk, files })
}

fn store_known(path: &AbsPath, known: &Records) {
    let mut writer = Writer::default();
    writer.u64(known.files.len() as u64);
    for (path, Known { stat, digest, racy, encoded }) in &known.files {
        writer.text(path.as_str());
        writer.u64(stat.size);
        writer.i64(stat.mtime);
        writer.i64(stat.ctime);
        writer.u64(stat.inode);
        writer.u64(u64::from(*racy));
        writer.u64(u64::from(*encoded));
        writer.digest(digest);
    }
    known.walk.write(&mut writer);
    store(path, MAGIC, &writer.0);
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    struct Folder {
        _folder: tempfile::TempDir,
        root: AbsPath,
        cache: AbsPath,
    }

    impl Folder {
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
            let snapshot = Snapshot::take(&self.root, Some(&self.cache), Trust::Stat, 2);
            snapshot.keep_index();
            snapshot
        }

        fn with_word(&self, word: &str) -> Vec<String> {
            self.take().find_word(word, 2).iter().map(ToString::to_string).collect()
        }
    }

    #[test]
    fn digest_is_of_content_and_path_only() {
        let (a, b) =
            (Folder::new(&[("a.py", "x"), ("b.py", "y")]), Folder::new(&[("b.py", "y"), ("a.py", "x")]));
        assert_eq!(a.take().digest(), b.take().digest());
        b.write("b.py", "z");
        assert_ne!(a.take().digest(), b.take().digest());
    }

    #[test]
    fn a_change_of_equal_length_at_once_is_seen() {
        let folder = Folder::new(&[("a.py", "one")]);
        for text in ["two", "six", "ten", "one"] {
            let before = folder.take();
            folder.write("a.py", text);
            assert!(before.first_difference(&folder.take()).is_some(), "{text}");
        }
    }

    #[test]
    fn a_scanner_sees_what_a_new_one_sees() {
        let folder = Folder::new(&[("a.py", "spam"), ("b/c.py", "egg")]);
        for cache in [None, Some(&folder.cache)] {
            let mut scanner = Scanner::new(&folder.root, cache, Trust::Stat, 2);
            let first = scanner.scan();
            assert!(Arc::ptr_eq(&first, &scanner.scan()), "nothing changed");
            folder.write("a.py", "egg spam");
            folder.write("d.py", "ham");
            fs::remove_file(folder.root.join("b/c.py").as_path()).unwrap();
            let second = scanner.scan();
            let fresh = Snapshot::take(&folder.root, None, Trust::Content, 1);
            assert_eq!(second.files(), fresh.files());
            for word in ["spam", "egg", "ham"] {
                assert_eq!(second.find_word(word, 2), fresh.find_word(word, 1), "{word}");
            }
            // Written with the content that it had: a server may have read what was there in between.
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
    fn words_are_found_with_and_without_a_cache() {
        let folder = Folder::new(&[("a.py", "def spam(): pass"), ("b.py", "# spam"), ("c.py", "spammer")]);
        assert_eq!(folder.with_word("spam"), ["a.py", "b.py"]);
        assert_eq!(folder.with_word("spam"), ["a.py", "b.py"]);
        folder.write("c.py", "spam");
        folder.write("b.py", "");
        assert_eq!(folder.with_word("spam"), ["a.py", "c.py"]);
    }

    #[test]
    fn the_cache_remembers_a_bounded_number_of_workspaces() {
        let folder = Folder::new(&[("a.py", "spam")]);
        let workspaces = folder.cache.join("workspaces");
        for number in 0..MAX_WORKSPACES + 20 {
            fs::create_dir_all(workspaces.join(&format!("{number:03}")).as_path()).unwrap();
            let _ = fs::write(workspaces.join(&format!("{number:03}/files")).as_path(), "");
        }
        folder.take();
        let left = fs::read_dir(workspaces.as_path()).unwrap().count();
        assert_eq!(left, MAX_WORKSPACES);
        assert!(workspaces.join(&short_id(&folder.root)).as_path().exists());
    }

    #[test]
    fn words_of_another_encoding() {
        let folder = Folder::new(&[("a.py", "caf\u{e9} = 1")]);
        let latin1 = b"# coding: latin-1\ncaf\xe9\n";
        fs::write(folder.root.join("b.py").as_path(), latin1).unwrap();
        for _ in 0..2 {
            assert_eq!(folder.with_word("caf\u{e9}"), ["a.py", "b.py"]);
            let encoded: Vec<_> = folder.take().encoded().iter().map(ToString::to_string).collect();
            assert_eq!(encoded, ["b.py"]);
        }
    }

    #[test]
    fn what_is_kept_before_anybody_asked_is_not_taken_for_all() {
        let folder = Folder::new(&[("a.py", "spam")]);
        let mut scanner = Scanner::new(&folder.root, Some(&folder.cache), Trust::Stat, 2);
        drop(scanner.scan());
        // Another process that knows the file by its times, of whose words nothing is kept, and many that it reads anew.
        let files = folder.cache.join(&format!("workspaces/{}/files", short_id(&folder.root)));
        let mut known = load_known(&files, &folder.root).unwrap();
        for known in known.files.values_mut() {
            known.racy = false;
        }
        store_known(&files, &known);
        for number in 0..20 {
            folder.write(&format!("{number}.py"), &format!("x{number}"));
        }
        let snapshot = Snapshot::take(&folder.root, Some(&folder.cache), Trust::Stat, 2);
        snapshot.keep_index();
        let having: Vec<_> = snapshot.find_word("spam", 2).iter().map(ToString::to_string).collect();
        assert_eq!(having, ["a.py"]);
    }

    #[test]
    fn a_damaged_cache_is_ignored() {
        let folder = Folder::new(&[("a.py", "spam"), ("b.py", "egg")]);
        // Enough for the index to be kept.
        for number in 0..10 {
            folder.write(&format!("{number}.py"), &format!("x{number}"));
        }
        let digest = folder.take().digest();
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
}
