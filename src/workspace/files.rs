//! The door to file contents.
//!
//! [`Files`] has two real implementations: [`DiskFiles`] reads each file once and remembers what it read, so that one
//! request sees one state of the disk and knows afterwards what its answer rests on; [`MemoryFiles`] holds texts.
//! Everything that reads source (name resolution, the completeness check, opening documents) goes through it.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::path::AbsPath;
use crate::tape::{Door, Tape};
use crate::text::{LineIndex, SourceEncoding, decode_source};

/// Files beyond this size are not read: no source file is that long, and a server would be lost in it.
pub const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// Longer source files are not analyzed, in bytes. A syntax tree takes up to 500 times its text (measured on nested f-strings;
/// 20 to 40 times on ordinary code), and the largest generated modules that are published have some 6 MB.
const MAX_SOURCE_BYTES: usize = 16 << 20;

/// A source file with a longer line is not analyzed, in bytes: tokens without end on one line are what takes the most memory.
const MAX_LINE_BYTES: usize = 4 << 20;

/// A source file with more lines that begin a definition is not analyzed.
const MAX_DEFINITIONS: usize = 200_000;

/// One source file as it was when it was read.
#[derive(Debug)]
pub struct Document {
    /// Where it is.
    pub path: AbsPath,
    /// Its text, a byte order mark included.
    pub text: String,
    /// How the bytes were read.
    pub encoding: SourceEncoding,
    /// The digest of the bytes.
    pub digest: Digest,
    /// Where its lines begin.
    pub lines: LineIndex,
}

impl Document {
    /// A document from the bytes of a file.
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

/// What a path leads to, links followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// Nothing, something that is neither, or a loop of links.
    Missing,
}

/// Why a file could not be read.
#[derive(Debug, Clone, Serialize, Deserialize, thiserror::Error)]
pub enum ReadError {
    /// There is no file.
    #[error("there is no file {path}")]
    Missing {
        /// The path asked for.
        path: AbsPath,
    },
    /// The operating system refused.
    #[error("cannot read {path}: {reason}")]
    Refused {
        /// The path asked for.
        path: AbsPath,
        /// Its words, without the number, which differs between systems.
        reason: String,
    },
    /// It is larger than a file may be.
    #[error("{path} has {bytes} bytes, more than the {most} that lanser reads")]
    TooLarge {
        /// The path asked for.
        path: AbsPath,
        /// Its size.
        bytes: u64,
        /// How large it may be.
        most: u64,
    },
    /// A line of it is longer than [`MAX_LINE_BYTES`].
    #[error("line {line} of {path} has {bytes} bytes, more than the {MAX_LINE_BYTES} that lanser analyzes")]
    LongLine {
        /// The path asked for.
        path: AbsPath,
        /// Which line, 1-based.
        line: usize,
        /// Its length.
        bytes: usize,
    },
    /// It has more than [`MAX_DEFINITIONS`].
    #[error("{path} has {count} definitions, more than the {MAX_DEFINITIONS} that lanser analyzes")]
    ManyDefinitions {
        /// The path asked for.
        path: AbsPath,
        /// How many lines begin one.
        count: usize,
    },
}

/// Where file contents come from.
pub trait Files: Send + Sync {
    /// Reads a file. Two calls give the same document.
    ///
    /// # Errors
    /// See [`ReadError`].
    fn read(&self, path: &AbsPath) -> Result<Arc<Document>, ReadError>;

    /// What a path leads to.
    fn kind(&self, path: &AbsPath) -> FileKind;

    /// The names in a folder, sorted; empty when it cannot be read. Names that are not UTF-8 are left out.
    fn list(&self, folder: &AbsPath) -> Vec<String>;

    /// The path with every link resolved; the path itself when it leads nowhere.
    fn canonical(&self, path: &AbsPath) -> AbsPath;
}

type Reading = Result<Arc<Document>, ReadError>;

/// What came of reading a file.
#[derive(Debug)]
struct Read {
    /// The digest of its bytes, also where those are not analyzed; `None` when it could not be read.
    digest: Option<Digest>,
    reading: Reading,
}

/// The disk, each file read once; or what a tape says of it.
#[derive(Debug, Default)]
pub struct DiskFiles {
    read: Mutex<BTreeMap<AbsPath, Read>>,
    tape: Tape,
}

impl DiskFiles {
    /// A reader that has read nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A reader whose questions pass through a tape.
    #[must_use]
    pub fn on(tape: Tape) -> Self {
        Self { tape, ..Self::default() }
    }

    /// The bytes of a file, as a tape has them.
    fn bytes(&self, path: &AbsPath) -> Result<Vec<u8>, ReadError> {
        if self.tape.is_off() {
            return read_bytes(path);
        }
        let missing = || ReadError::Missing { path: path.clone() };
        let read = || read_bytes(path).map(|bytes| self.tape.keep(bytes));
        let digest = self.tape.ask(Door::File, &("read", path), read, || Err(missing()))?;
        self.tape.blob(&digest).map(|bytes| bytes.to_vec()).ok_or_else(missing)
    }

    /// What was read so far: path and digest of content, `None` where reading failed.
    #[must_use]
    pub fn used(&self) -> BTreeMap<AbsPath, Option<Digest>> {
        let read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        read.iter().map(|(path, read)| (path.clone(), read.digest)).collect()
    }

    /// Whether a file that was read still has the content that it had, or still cannot be read.
    #[must_use]
    pub fn is_unchanged(&self, path: &AbsPath) -> bool {
        let read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(then) = read.get(path).map(|read| read.digest) else { return true };
        drop(read);
        read_bytes(path).ok().map(|bytes| Digest::of(&bytes)) == then
    }
}

impl Files for DiskFiles {
    fn read(&self, path: &AbsPath) -> Reading {
        if let Some(read) = self.read.lock().unwrap_or_else(PoisonError::into_inner).get(path) {
            return read.reading.clone();
        }
        let new = match self.bytes(path) {
            Err(error) => Read { digest: None, reading: Err(error) },
            Ok(bytes) => match limits(path, &bytes) {
                Err(error) => Read { digest: Some(Digest::of(&bytes)), reading: Err(error) },
                Ok(()) => {
                    let document = Document::new(path.clone(), bytes);
                    Read { digest: Some(document.digest), reading: Ok(Arc::new(document)) }
                }
            },
        };
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        read.entry(path.clone()).or_insert(new).reading.clone()
    }

    fn kind(&self, path: &AbsPath) -> FileKind {
        let kind = || match std::fs::metadata(path.as_path()) {
            Ok(metadata) if metadata.is_dir() => FileKind::Folder,
            Ok(metadata) if metadata.is_file() => FileKind::File,
            _ => FileKind::Missing,
        };
        self.tape.ask(Door::File, &("kind", path), kind, || FileKind::Missing)
    }

    fn list(&self, folder: &AbsPath) -> Vec<String> {
        let list = || {
            let Ok(entries) = std::fs::read_dir(folder.as_path()) else { return Vec::new() };
            let mut names: Vec<String> =
                entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
            names.sort_unstable();
            names
        };
        self.tape.ask(Door::File, &("list", folder), list, Vec::new)
    }

    fn canonical(&self, path: &AbsPath) -> AbsPath {
        self.tape.ask(Door::File, &("canonical", path), || canonical(path), || path.clone())
    }
}

/// The path with every link resolved; the path itself when it leads nowhere.
#[must_use]
pub fn canonical(path: &AbsPath) -> AbsPath {
    std::fs::canonicalize(path.as_path())
        .ok()
        .and_then(|real| AbsPath::new(real).ok())
        .unwrap_or_else(|| path.clone())
}

/// Reads a regular file whole.
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
        return Err(ReadError::TooLarge { path: path.clone(), bytes: metadata.len(), most: MAX_FILE_BYTES });
    }
    // What the metadata says need not hold: files of `/proc` say 0, and a file may grow.
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or(0) + 1);
    let file = std::fs::File::open(path.as_path()).map_err(refused)?;
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(refused)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        let bytes = bytes.len() as u64;
        return Err(ReadError::TooLarge { path: path.clone(), bytes, most: MAX_FILE_BYTES });
    }
    Ok(bytes)
}

/// Refuses a source file that would take too much time or memory to analyze.
fn limits(path: &AbsPath, bytes: &[u8]) -> Result<(), ReadError> {
    /// The length of the shortest line that begins a definition, `def f():`, in bytes.
    const SHORTEST: usize = 8;
    if bytes.len() > MAX_SOURCE_BYTES {
        let most = MAX_SOURCE_BYTES as u64;
        return Err(ReadError::TooLarge { path: path.clone(), bytes: bytes.len() as u64, most });
    }
    let lines = || bytes.split(|byte| *byte == b'\n');
    if bytes.len() > MAX_LINE_BYTES
        && let Some((line, text)) = (1..).zip(lines()).find(|(_, text)| text.len() > MAX_LINE_BYTES)
    {
        return Err(ReadError::LongLine { path: path.clone(), line, bytes: text.len() });
    }
    if bytes.len() > MAX_DEFINITIONS * SHORTEST {
        let begins = |line: &&[u8]| {
            let line = line.trim_ascii_start();
            [&b"def "[..], b"class ", b"async def "].iter().any(|word| line.starts_with(word))
        };
        let count = lines().filter(begins).count();
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
    fn read(&self, path: &AbsPath) -> Reading {
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

    #[test]
    fn what_would_take_too_long_is_refused_with_its_own_words() {
        let temp = tempfile::tempdir().unwrap();
        let read = |text: String| {
            let path = AbsPath::new(temp.path().canonicalize().unwrap().join("a.py")).unwrap();
            std::fs::write(path.as_path(), text).unwrap();
            let files = DiskFiles::new();
            let error = files.read(&path).unwrap_err().to_string().replace(path.as_str(), "a.py");
            assert!(files.is_unchanged(&path), "an answer without it can stand");
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
    fn one_request_sees_one_state_and_notices_another() {
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
    fn a_file_that_appears_is_a_change_too() {
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
