//! Access to file contents.
//!
//! Everything that reads source (name resolution, the completeness check, opening documents) goes through the trait
//! [`Files`]. [`DiskFiles`] reads each file once and caches it, so that a request sees one state of the disk and can
//! list the files that its response depends on. [`MemoryFiles`] holds texts in memory.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::path::AbsPath;
use crate::tape::{IoKind, Tape};
use crate::text::{LineIndex, SourceEncoding, decode_source};

/// Larger files are not read: no source file is that large, and a server could not handle it.
pub const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// Larger source files are not analyzed. A syntax tree takes up to 500 times the memory of its text (measured on nested
/// f-strings; 20 to 40 times on ordinary code). The largest published generated modules have about 6 MB.
const MAX_SOURCE_BYTES: usize = 16 << 20;

/// A source file with a longer line is not analyzed: very many tokens on one line take the most memory.
const MAX_LINE_BYTES: usize = 4 << 20;

/// A source file in which more lines begin a definition is not analyzed.
const MAX_DEFINITIONS: usize = 200_000;

/// A source file, decoded.
#[derive(Debug, Clone)]
pub struct Document {
    /// Its path.
    pub path: AbsPath,
    /// Its text, including a byte order mark.
    pub text: String,
    /// The encoding that the bytes were decoded with.
    pub encoding: SourceEncoding,
    /// The digest of the bytes.
    pub digest: Digest,
    /// The index of its lines.
    pub lines: LineIndex,
}

impl Document {
    /// Decodes the bytes of a file.
    #[must_use]
    pub fn new(path: AbsPath, bytes: Vec<u8>) -> Self {
        let digest = Digest::of(&bytes);
        let decoded = decode_source(bytes);
        let lines = LineIndex::new(&decoded.text);
        Self { path, text: decoded.text, encoding: decoded.encoding, digest, lines }
    }
}

impl AsRef<str> for Document {
    fn as_ref(&self) -> &str {
        &self.text
    }
}

/// What a path refers to, following symbolic links.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// Nothing, something that is neither, or a loop of symbolic links.
    Missing,
}

/// Why a file could not be read.
#[derive(Debug, Clone, Serialize, Deserialize, thiserror::Error)]
pub enum ReadError {
    /// The file does not exist.
    #[error("there is no file {path}")]
    Missing {
        /// The requested path.
        path: AbsPath,
    },
    /// The operating system refused.
    #[error("cannot read {path}: {reason}")]
    Refused {
        /// The requested path.
        path: AbsPath,
        /// Its error message, without the error number, which differs between systems.
        reason: String,
    },
    /// The file is too large.
    #[error("{path} has {bytes} bytes, more than the {limit} that lanser reads")]
    TooLarge {
        /// The requested path.
        path: AbsPath,
        /// Its size in bytes.
        bytes: u64,
        /// The limit in bytes.
        #[serde(rename = "most")]
        limit: u64,
    },
    /// A line is longer than [`MAX_LINE_BYTES`].
    #[error("line {line} of {path} has {bytes} bytes, more than the {MAX_LINE_BYTES} that lanser analyzes")]
    LongLine {
        /// The requested path.
        path: AbsPath,
        /// The number of the line, 1-based.
        line: usize,
        /// Its length in bytes.
        bytes: usize,
    },
    /// The file has more than [`MAX_DEFINITIONS`] definitions.
    #[error("{path} has {count} definitions, more than the {MAX_DEFINITIONS} that lanser analyzes")]
    ManyDefinitions {
        /// The requested path.
        path: AbsPath,
        /// The number of lines that begin a definition.
        count: usize,
    },
}

/// A source of file contents.
pub trait Files: Send + Sync {
    /// Reads a file. All calls with the same path return the same document.
    ///
    /// # Errors
    /// See [`ReadError`].
    fn read(&self, path: &AbsPath) -> Result<Arc<Document>, ReadError>;

    /// What a path refers to, following symbolic links.
    fn kind(&self, path: &AbsPath) -> FileKind;

    /// The names in a folder, sorted; empty when the folder cannot be read. Names that are not UTF-8 are omitted.
    fn list(&self, folder: &AbsPath) -> Vec<String>;

    /// The path with all symbolic links resolved; the path itself when it does not exist.
    fn canonical(&self, path: &AbsPath) -> AbsPath;
}

type ReadResult = Result<Arc<Document>, ReadError>;

/// The cached outcome of reading a file.
#[derive(Debug)]
struct CachedRead {
    /// The digest of the bytes, also of a file beyond the analysis limits; `None` when the file could not be read.
    digest: Option<Digest>,
    result: ReadResult,
}

/// Files on disk, each read once, or their record on a replaying tape.
#[derive(Debug, Default)]
pub struct DiskFiles {
    reads: Mutex<BTreeMap<AbsPath, CachedRead>>,
    /// What paths referred to when they were first looked at.
    kinds: Mutex<BTreeMap<AbsPath, FileKind>>,
    tape: Tape,
}

impl DiskFiles {
    /// A reader with an empty cache.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A reader that records to, or replays from, a tape.
    #[must_use]
    pub fn on(tape: Tape) -> Self {
        Self { tape, ..Self::default() }
    }

    /// The bytes of a file, from the tape when it replays.
    fn bytes(&self, path: &AbsPath) -> Result<Vec<u8>, ReadError> {
        if self.tape.is_off() {
            return read_bytes(path);
        }
        let missing = || ReadError::Missing { path: path.clone() };
        let read = || read_bytes(path).map(|bytes| self.tape.record_blob(bytes));
        let digest = self.tape.query(IoKind::File, &("read", path), read, || Err(missing()))?;
        self.tape.blob(&digest).map(|bytes| bytes.to_vec()).ok_or_else(missing)
    }

    /// The files read so far with the digests of their contents; `None` where reading failed.
    #[must_use]
    pub fn used(&self) -> BTreeMap<AbsPath, Option<Digest>> {
        let reads = self.reads.lock().unwrap_or_else(PoisonError::into_inner);
        reads.iter().map(|(path, read)| (path.clone(), read.digest)).collect()
    }

    /// Whether a file that was read still has the same content, or still cannot be read.
    #[must_use]
    pub fn is_unchanged(&self, path: &AbsPath) -> bool {
        let reads = self.reads.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(digest) = reads.get(path).map(|read| read.digest) else { return true };
        drop(reads);
        read_bytes(path).ok().map(|bytes| Digest::of(&bytes)) == digest
    }
}

impl Files for DiskFiles {
    fn read(&self, path: &AbsPath) -> ReadResult {
        if let Some(read) = self.reads.lock().unwrap_or_else(PoisonError::into_inner).get(path) {
            return read.result.clone();
        }
        let new = match self.bytes(path) {
            Err(error) => CachedRead { digest: None, result: Err(error) },
            Ok(bytes) => match check_limits(path, &bytes) {
                Err(error) => CachedRead { digest: Some(Digest::of(&bytes)), result: Err(error) },
                Ok(()) => {
                    let document = Document::new(path.clone(), bytes);
                    CachedRead { digest: Some(document.digest), result: Ok(Arc::new(document)) }
                }
            },
        };
        let mut reads = self.reads.lock().unwrap_or_else(PoisonError::into_inner);
        reads.entry(path.clone()).or_insert(new).result.clone()
    }

    fn kind(&self, path: &AbsPath) -> FileKind {
        if let Some(known) = self.kinds.lock().unwrap_or_else(PoisonError::into_inner).get(path) {
            return *known;
        }
        let kind = || match std::fs::metadata(path.as_path()) {
            Ok(metadata) if metadata.is_dir() => FileKind::Folder,
            Ok(metadata) if metadata.is_file() => FileKind::File,
            _ => FileKind::Missing,
        };
        let kind = self.tape.query(IoKind::File, &("kind", path), kind, || FileKind::Missing);
        self.kinds.lock().unwrap_or_else(PoisonError::into_inner).insert(path.clone(), kind);
        kind
    }

    fn list(&self, folder: &AbsPath) -> Vec<String> {
        let list = || {
            let Ok(entries) = std::fs::read_dir(folder.as_path()) else { return Vec::new() };
            let mut names: Vec<String> =
                entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
            names.sort_unstable();
            names
        };
        self.tape.query(IoKind::File, &("list", folder), list, Vec::new)
    }

    fn canonical(&self, path: &AbsPath) -> AbsPath {
        self.tape.query(IoKind::File, &("canonical", path), || canonical(path), || path.clone())
    }
}

/// The path with all symbolic links resolved; the path itself when it does not exist.
#[must_use]
pub fn canonical(path: &AbsPath) -> AbsPath {
    std::fs::canonicalize(path.as_path())
        .ok()
        .and_then(|real| AbsPath::new(real).ok())
        .unwrap_or_else(|| path.clone())
}

/// Reads a whole regular file.
///
/// # Errors
/// See [`ReadError`].
pub fn read_bytes(path: &AbsPath) -> Result<Vec<u8>, ReadError> {
    let refused = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => {
            ReadError::Missing { path: path.clone() }
        }
        kind => ReadError::Refused { path: path.clone(), reason: kind.to_string() },
    };
    let metadata = std::fs::metadata(path.as_path()).map_err(refused)?;
    if !metadata.is_file() {
        return Err(ReadError::Refused { path: path.clone(), reason: "not a regular file".to_owned() });
    }
    if metadata.len() > MAX_FILE_BYTES {
        return Err(ReadError::TooLarge { path: path.clone(), bytes: metadata.len(), limit: MAX_FILE_BYTES });
    }
    // The size in the metadata may be wrong: files in `/proc` have size 0, and a file may grow.
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or(0) + 1);
    let file = open(path).map_err(refused)?.ok_or_else(|| ReadError::Refused {
        path: path.clone(),
        reason: "it is the system's, and no file on a disk".to_owned(),
    })?;
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(refused)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        let bytes = bytes.len() as u64;
        return Err(ReadError::TooLarge { path: path.clone(), bytes, limit: MAX_FILE_BYTES });
    }
    Ok(bytes)
}

/// Opens a file to read it; `None` for one of the kernel's. Never waits for one who writes.
///
/// # Errors
/// When the system refuses it.
pub(super) fn open(path: &AbsPath) -> std::io::Result<Option<std::fs::File>> {
    // Files of `/proc`, such as `kmsg`, would block although they are regular files.
    let non_blocking = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = std::fs::OpenOptions::new().read(true).custom_flags(non_blocking).open(path.as_path())?;
    Ok(Some(file).filter(|file| !is_of_the_system(file)))
}

/// Whether an open file is one of the kernel's: a link of a checkout to `/proc/self/environ` would show the environment variables.
#[cfg(target_os = "linux")]
fn is_of_the_system(file: &std::fs::File) -> bool {
    // Magic numbers from linux/magic.h.
    const PROC: u64 = 0x9fa0;
    const SYSFS: u64 = 0x6265_6572;
    rustix::fs::fstatfs(file).is_ok_and(|stat| {
        let kind = u64::try_from(stat.f_type).unwrap_or_default();
        [PROC, SYSFS].contains(&kind)
    })
}

/// Other systems have no such files.
#[cfg(not(target_os = "linux"))]
const fn is_of_the_system(_: &std::fs::File) -> bool {
    false
}

/// Refuses a source file that would take too much time or memory to analyze.
///
/// # Errors
/// Which limit it exceeds.
pub fn check_limits(path: &AbsPath, bytes: &[u8]) -> Result<(), ReadError> {
    /// The length of the shortest line that begins a definition, `def f():`.
    const MIN_DEFINITION_BYTES: usize = 8;
    if bytes.len() > MAX_SOURCE_BYTES {
        let limit = MAX_SOURCE_BYTES as u64;
        return Err(ReadError::TooLarge { path: path.clone(), bytes: bytes.len() as u64, limit });
    }
    let lines = || bytes.split(|byte| *byte == b'\n');
    if bytes.len() > MAX_LINE_BYTES
        && let Some((line, text)) = (1..).zip(lines()).find(|(_, text)| text.len() > MAX_LINE_BYTES)
    {
        return Err(ReadError::LongLine { path: path.clone(), line, bytes: text.len() });
    }
    if bytes.len() > MAX_DEFINITIONS * MIN_DEFINITION_BYTES {
        let begins_definition = |line: &&[u8]| {
            let line = line.trim_ascii_start();
            [&b"def "[..], b"class ", b"async def "].iter().any(|keyword| line.starts_with(keyword))
        };
        let count = lines().filter(begins_definition).count();
        if count > MAX_DEFINITIONS {
            return Err(ReadError::ManyDefinitions { path: path.clone(), count });
        }
    }
    Ok(())
}

/// The text of a file; `None` when it cannot be read.
#[must_use]
pub fn read_text(path: &AbsPath) -> Option<String> {
    read_bytes(path).ok().map(|bytes| decode_source(bytes).text)
}

/// Files that exist only in memory.
#[derive(Debug, Default)]
pub struct MemoryFiles {
    documents: BTreeMap<AbsPath, Arc<Document>>,
}

impl MemoryFiles {
    /// Files with the given absolute paths and contents.
    ///
    /// # Panics
    /// When a path is not absolute.
    #[must_use]
    pub fn new<'f>(files: impl IntoIterator<Item = (&'f str, &'f str)>) -> Self {
        let documents = files.into_iter().map(|(path, text)| {
            let path = AbsPath::new(Path::new(path)).expect("a memory file has an absolute path");
            (path.clone(), Arc::new(Document::new(path, text.as_bytes().to_vec())))
        });
        Self { documents: documents.collect() }
    }
}

impl Files for MemoryFiles {
    fn read(&self, path: &AbsPath) -> ReadResult {
        self.documents.get(path).cloned().ok_or_else(|| ReadError::Missing { path: path.clone() })
    }

    fn kind(&self, path: &AbsPath) -> FileKind {
        if self.documents.contains_key(path) {
            FileKind::File
        } else if self
            .documents
            .keys()
            .any(|file| file.strip_prefix(path).is_some_and(|rest| !rest.is_empty()))
        {
            FileKind::Folder
        } else {
            FileKind::Missing
        }
    }

    fn list(&self, folder: &AbsPath) -> Vec<String> {
        let below = self.documents.keys().filter_map(|file| file.strip_prefix(folder));
        let mut names: Vec<String> = below
            .filter_map(|rest| rest.split('/').next())
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    fn canonical(&self, path: &AbsPath) -> AbsPath {
        path.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only root may open it; for others this tests the refusal.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_regular_file_that_blocks_is_refused() {
        let (sender, answer) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let _ = sender.send(read_bytes(&AbsPath::new("/proc/kmsg").unwrap()));
        });
        let environment = read_bytes(&AbsPath::new("/proc/self/environ").unwrap());
        assert!(matches!(environment, Err(ReadError::Refused { .. } | ReadError::Missing { .. })));
        let read = answer.recv_timeout(std::time::Duration::from_secs(60)).expect("it must not block");
        assert!(matches!(read, Err(ReadError::Refused { .. } | ReadError::Missing { .. })), "{read:?}");
    }

    #[test]
    fn each_analysis_limit_has_its_own_message() {
        let temp = tempfile::tempdir().unwrap();
        let read = |text: String| {
            let path = AbsPath::new(temp.path().canonicalize().unwrap().join("a.py")).unwrap();
            std::fs::write(path.as_path(), text).unwrap();
            let files = DiskFiles::new();
            let error = files.read(&path).unwrap_err().to_string().replace(path.as_str(), "a.py");
            assert!(files.is_unchanged(&path), "a response without the file stays valid");
            error
        };
        let line = "x".repeat(MAX_LINE_BYTES);
        assert_eq!(
            read(format!("\r\n{line}\n{line}x\n")),
            "line 3 of a.py has 4194305 bytes, more than the 4194304 that lanser analyzes"
        );
        assert_eq!(
            read(
                "  async def f(): ...\n".repeat(MAX_DEFINITIONS / 2) + &"class A:\n".repeat(MAX_DEFINITIONS)
            ),
            "a.py has 300000 definitions, more than the 200000 that lanser analyzes"
        );
        assert_eq!(
            read(format!("{line}\n").repeat(4)),
            "a.py has 16777220 bytes, more than the 16777216 that lanser reads"
        );
    }

    #[test]
    fn a_reader_returns_its_first_read_and_detects_a_change() {
        let folder = tempfile::tempdir().unwrap();
        let root = AbsPath::new(folder.path()).unwrap();
        let path = root.join("a.py");
        std::fs::write(path.as_path(), "x = 1\n").unwrap();
        let files = DiskFiles::new();
        assert_eq!(files.read(&path).unwrap().text, "x = 1\n");
        assert!(matches!(files.read(&root.join("b.py")), Err(ReadError::Missing { .. })));
        assert!(files.is_unchanged(&path) && files.is_unchanged(&root.join("b.py")));
        std::fs::write(path.as_path(), "x = 2\n").unwrap();
        assert_eq!(files.read(&path).unwrap().text, "x = 1\n");
        assert!(!files.is_unchanged(&path));
    }

    #[test]
    fn a_file_that_appears_is_a_change() {
        let folder = tempfile::tempdir().unwrap();
        let path = AbsPath::new(folder.path()).unwrap().join("a.py");
        let files = DiskFiles::new();
        assert!(files.read(&path).is_err());
        std::fs::write(path.as_path(), "").unwrap();
        assert!(!files.is_unchanged(&path));
    }

    #[test]
    fn folders_of_memory_files() {
        let files = MemoryFiles::new([("/w/a/b.py", ""), ("/w/c.py", "")]);
        let at = |path: &str| AbsPath::new(path).unwrap();
        assert_eq!(files.list(&at("/w")), ["a", "c.py"]);
        assert_eq!(files.kind(&at("/w/a")), FileKind::Folder);
        assert_eq!(files.kind(&at("/w/c.py")), FileKind::File);
        assert_eq!(files.kind(&at("/w/d")), FileKind::Missing);
    }
}
