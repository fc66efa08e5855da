//! Remembers which node says what about itself: asking costs a start of node, some 40 ms of every cold answer.
//!
//! A small JSON file in the cache, keyed by the program's real path, size and time of change. Losing it, or an entry to
//! a concurrent writer, costs one more question; a damaged one is ignored and replaced.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::path::AbsPath;

use super::follow::is_executable;
use super::node::Node;

/// Counted up when the meaning of an entry changes.
const FORMAT: u32 = 1;

pub(super) struct NodeVersions {
    file: AbsPath,
}

#[derive(Default, Serialize, Deserialize)]
struct Memory {
    format: u32,
    /// By the program's real path.
    nodes: BTreeMap<String, Entry>,
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    /// In bytes.
    size: u64,
    /// Seconds and nanoseconds of the last change of content, and of the inode.
    changed: [i64; 4],
    version: String,
    program: String,
}

impl NodeVersions {
    pub(super) fn new(cache: &AbsPath) -> Self {
        Self { file: cache.join("node-versions.json") }
    }

    /// What is remembered about a program, or else what `ask` says, which is remembered if it may be.
    pub(super) fn get_or_ask(
        &self,
        path: &Path,
        ask: impl FnOnce() -> Result<Node, String>,
    ) -> Result<Node, String> {
        let Some((key, size, changed)) = identity(path) else { return ask() };
        if let Some(entry) = self.read().nodes.get(&key)
            && (entry.size, entry.changed) == (size, changed)
            && let Ok(program) = AbsPath::new(&entry.program)
            && is_executable(program.as_path())
        {
            return Ok(Node { path: program, version: entry.version.clone() });
        }
        let node = ask()?;
        let program = node.path.as_str().to_owned();
        self.remember(key, Entry { size, changed, version: node.version.clone(), program });
        Ok(node)
    }

    fn read(&self) -> Memory {
        let text = fs::read(self.file.as_path()).unwrap_or_default();
        let memory: Memory = serde_json::from_slice(&text).unwrap_or_default();
        if memory.format == FORMAT { memory } else { Memory::default() }
    }

    /// Best effort: a cache folder that cannot be written costs time, and nothing else.
    fn remember(&self, key: String, entry: Entry) {
        let mut memory = self.read();
        memory.format = FORMAT;
        memory.nodes.retain(|path, _| Path::new(path).exists());
        memory.nodes.insert(key, entry);
        let folder = self.file.parent();
        let write = || -> std::io::Result<()> {
            crate::path::private::make(folder.as_path())?;
            let mut staged = tempfile::NamedTempFile::new_in(folder.as_path())?;
            staged.write_all(&serde_json::to_vec(&memory)?)?;
            staged.persist(self.file.as_path())?;
            Ok(())
        };
        let _ = write();
    }
}

/// The key and the state of a program, if what it says depends on nothing else: a version manager's shim (a script, or
/// a program of another name) answers as it is configured.
fn identity(path: &Path) -> Option<(String, u64, [i64; 4])> {
    let real: PathBuf = path.canonicalize().ok()?;
    if !real.file_name()?.to_str()?.starts_with("node") {
        return None;
    }
    let mut file = File::open(&real).ok()?;
    let mut magic = [0; 2];
    file.read_exact(&mut magic).ok()?;
    if &magic == b"#!" {
        return None;
    }
    let data = file.metadata().ok()?;
    let changed = [data.mtime(), data.mtime_nsec(), data.ctime(), data.ctime_nsec()];
    Some((real.to_str()?.to_owned(), data.size(), changed))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::toolchain::fake;

    struct Bench {
        _folder: tempfile::TempDir,
        memory: NodeVersions,
        node: PathBuf,
        asked: Cell<u32>,
    }

    impl Bench {
        fn new(name: &str, content: &str) -> Self {
            let folder = tempfile::tempdir().unwrap();
            let node = folder.path().join(name);
            fake::script(&node, content);
            let memory = NodeVersions::new(&AbsPath::new(folder.path().join("cache/deep")).unwrap());
            Self { _folder: folder, memory, node, asked: Cell::new(0) }
        }

        fn get(&self) -> String {
            let ask = || {
                self.asked.set(self.asked.get() + 1);
                let path = AbsPath::new(&self.node).unwrap();
                Ok(Node { path, version: format!("20.0.{}", self.asked.get()) })
            };
            self.memory.get_or_ask(&self.node, ask).unwrap().version
        }
    }

    #[test]
    fn asked_once_and_again_when_the_program_changes() {
        let bench = Bench::new("node", "\u{7f}ELF");
        assert_eq!([bench.get(), bench.get()], ["20.0.1", "20.0.1"]);
        fake::script(&bench.node, "\u{7f}ELF other");
        assert_eq!([bench.get(), bench.get()], ["20.0.2", "20.0.2"]);
    }

    #[test]
    fn damage_is_ignored_and_mended() {
        let bench = Bench::new("node", "\u{7f}ELF");
        bench.get();
        for damage in ["", "{", "[]", "{\"format\":99,\"nodes\":{}}", "\u{0}\u{0}"] {
            fs::write(bench.memory.file.as_path(), damage).unwrap();
            let asked = bench.asked.get();
            bench.get();
            bench.get();
            assert_eq!(bench.asked.get(), asked + 1, "{damage:?}");
        }
    }

    #[test]
    fn shims_are_asked_every_time() {
        for bench in [Bench::new("node", "#!/bin/sh\n"), Bench::new("volta-shim", "\u{7f}ELF")] {
            assert_eq!([bench.get(), bench.get()], ["20.0.1", "20.0.2"]);
        }
    }
}
