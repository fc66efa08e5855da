//! Caches the version of each node: determining it starts node, which takes some 40 ms of every cold request.
//!
//! A small JSON file in lanser's cache, keyed by the real path, size and modification time of the program. If the file, or
//! an entry overwritten by a concurrent process, is lost, node is started again. A damaged file is ignored and replaced.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::path::AbsPath;

use super::follow::is_executable;
use super::node::Node;

/// Incremented when the meaning of an entry changes.
const FORMAT: u32 = 1;

/// The cache file.
pub(super) struct NodeVersionCache {
    file: AbsPath,
}

#[derive(Default, Serialize, Deserialize)]
struct CachedVersions {
    format: u32,
    /// By the real path of the program.
    nodes: BTreeMap<String, CachedVersion>,
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
struct CachedVersion {
    /// In bytes.
    size: u64,
    /// `mtime` and `ctime`, each in seconds and nanoseconds.
    changed: [i64; 4],
    version: String,
    program: String,
}

impl NodeVersionCache {
    pub(super) fn new(cache: &AbsPath) -> Self {
        Self { file: cache.join("node-versions.json") }
    }

    /// The cached version of a program, or else the result of `query`, which is cached if possible.
    pub(super) fn get_or_query(
        &self,
        path: &Path,
        query: impl FnOnce() -> Result<Node, String>,
    ) -> Result<Node, String> {
        let Some((key, size, changed)) = identity(path) else { return query() };
        if let Some(entry) = self.read().nodes.get(&key)
            && (entry.size, entry.changed) == (size, changed)
            && let Ok(program) = AbsPath::new(&entry.program)
            && is_executable(program.as_path())
        {
            return Ok(Node { path: program, version: entry.version.clone() });
        }
        let node = query()?;
        let program = node.path.as_str().to_owned();
        self.insert(key, CachedVersion { size, changed, version: node.version.clone(), program });
        Ok(node)
    }

    fn read(&self) -> CachedVersions {
        let text = fs::read(self.file.as_path()).unwrap_or_default();
        let versions: CachedVersions = serde_json::from_slice(&text).unwrap_or_default();
        if versions.format == FORMAT { versions } else { CachedVersions::default() }
    }

    /// Best effort: if the cache folder cannot be written, only time is lost.
    fn insert(&self, key: String, entry: CachedVersion) {
        let mut versions = self.read();
        versions.format = FORMAT;
        versions.nodes.retain(|path, _| Path::new(path).exists());
        versions.nodes.insert(key, entry);
        let folder = self.file.parent();
        let write = || -> std::io::Result<()> {
            crate::path::private::create(folder.as_path())?;
            let mut staged = tempfile::NamedTempFile::new_in(folder.as_path())?;
            staged.write_all(&serde_json::to_vec(&versions)?)?;
            staged.persist(self.file.as_path())?;
            Ok(())
        };
        let _ = write();
    }
}

/// The key, size and times of a program; `None` for a version manager's shim (a script, or a program of another name), whose
/// version depends on its configuration.
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
    use crate::toolchain::fixtures;

    struct NodeFixture {
        _folder: tempfile::TempDir,
        cache: NodeVersionCache,
        node: PathBuf,
        queries: Cell<u32>,
    }

    impl NodeFixture {
        fn new(name: &str, content: &str) -> Self {
            let folder = tempfile::tempdir().unwrap();
            let node = folder.path().join(name);
            fixtures::script(&node, content);
            let cache = NodeVersionCache::new(&AbsPath::new(folder.path().join("cache/deep")).unwrap());
            Self { _folder: folder, cache, node, queries: Cell::new(0) }
        }

        fn get(&self) -> String {
            let query = || {
                self.queries.set(self.queries.get() + 1);
                let path = AbsPath::new(&self.node).unwrap();
                Ok(Node { path, version: format!("20.0.{}", self.queries.get()) })
            };
            self.cache.get_or_query(&self.node, query).unwrap().version
        }
    }

    #[test]
    fn queried_once_and_again_when_the_program_changes() {
        let fixture = NodeFixture::new("node", "\u{7f}ELF");
        assert_eq!([fixture.get(), fixture.get()], ["20.0.1", "20.0.1"]);
        fixtures::script(&fixture.node, "\u{7f}ELF other");
        assert_eq!([fixture.get(), fixture.get()], ["20.0.2", "20.0.2"]);
    }

    #[test]
    fn a_damaged_file_is_ignored_and_replaced() {
        let fixture = NodeFixture::new("node", "\u{7f}ELF");
        fixture.get();
        for damage in ["", "{", "[]", "{\"format\":99,\"nodes\":{}}", "\u{0}\u{0}"] {
            fs::write(fixture.cache.file.as_path(), damage).unwrap();
            let queries = fixture.queries.get();
            fixture.get();
            fixture.get();
            assert_eq!(fixture.queries.get(), queries + 1, "{damage:?}");
        }
    }

    #[test]
    fn shims_are_queried_every_time() {
        for fixture in [NodeFixture::new("node", "#!/bin/sh\n"), NodeFixture::new("volta-shim", "\u{7f}ELF")]
        {
            assert_eq!([fixture.get(), fixture.get()], ["20.0.1", "20.0.2"]);
        }
    }
}
