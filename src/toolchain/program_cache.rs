//! Caches facts about programs that take time to determine: the version of each node, which takes 40 ms of every cold request,
//! and the digest of a server that is one program.
//!
//! A small JSON file in lanser's cache, keyed by the real path, size and times of the program. If the file, or an entry
//! overwritten by a concurrent process, is lost, the fact is determined again. A damaged file is ignored and replaced.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::marker::PhantomData;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::path::AbsPath;

/// Incremented when the meaning of an entry changes.
const FORMAT: u32 = 2;

/// One cache file, with one fact of type `T` for each program.
pub(super) struct ProgramCache<T> {
    file: AbsPath,
    fact: PhantomData<T>,
}

#[derive(Serialize, Deserialize)]
struct CachedPrograms<T> {
    format: u32,
    /// By the real path of the program.
    programs: BTreeMap<String, CachedProgram<T>>,
}

#[derive(Serialize, Deserialize)]
struct CachedProgram<T> {
    /// In bytes.
    size: u64,
    /// `mtime` and `ctime`, each in seconds and nanoseconds.
    changed: [i64; 4],
    fact: T,
}

impl<T: Clone + Serialize + DeserializeOwned> ProgramCache<T> {
    /// The cache in a file of lanser's cache folder.
    pub(super) fn new(cache: &AbsPath, name: &str) -> Self {
        Self { file: cache.join(name), fact: PhantomData }
    }

    /// The cached fact about a program if it `is_valid`, or else the result of `query`, which is cached if possible.
    pub(super) fn get_or_query<E>(
        &self,
        path: &Path,
        is_valid: impl Fn(&T) -> bool,
        query: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        let Some((key, size, changed)) = identity(path) else { return query() };
        if let Some(entry) = self.read().programs.remove(&key)
            && (entry.size, entry.changed) == (size, changed)
            && is_valid(&entry.fact)
        {
            return Ok(entry.fact);
        }
        let fact = query()?;
        self.insert(key, CachedProgram { size, changed, fact: fact.clone() });
        Ok(fact)
    }

    fn read(&self) -> CachedPrograms<T> {
        let text = fs::read(self.file.as_path()).unwrap_or_default();
        let cached = serde_json::from_slice(&text).ok();
        let cached = cached.filter(|cached: &CachedPrograms<T>| cached.format == FORMAT);
        cached.unwrap_or(CachedPrograms { format: FORMAT, programs: BTreeMap::new() })
    }

    /// Best effort: if the cache folder cannot be written, only time is lost.
    fn insert(&self, key: String, entry: CachedProgram<T>) {
        let mut cached = self.read();
        cached.programs.retain(|path, _| Path::new(path).exists());
        cached.programs.insert(key, entry);
        let folder = self.file.parent();
        let write = || -> std::io::Result<()> {
            crate::path::private::create(folder.as_path())?;
            let mut staged = tempfile::NamedTempFile::new_in(folder.as_path())?;
            staged.write_all(&serde_json::to_vec(&cached)?)?;
            staged.persist(self.file.as_path())?;
            Ok(())
        };
        let _ = write();
    }
}

/// The key, size and times of a program.
fn identity(path: &Path) -> Option<(String, u64, [i64; 4])> {
    let real = path.canonicalize().ok()?;
    let data = fs::metadata(&real).ok()?;
    let changed = [data.mtime(), data.mtime_nsec(), data.ctime(), data.ctime_nsec()];
    Some((real.to_str()?.to_owned(), data.size(), changed))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::path::PathBuf;

    use super::*;
    use crate::toolchain::fixtures;

    struct ProgramFixture {
        _folder: tempfile::TempDir,
        cache: ProgramCache<String>,
        program: PathBuf,
        queries: Cell<u32>,
    }

    impl ProgramFixture {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let program = folder.path().join("program");
            fixtures::script(&program, "one");
            let cache = ProgramCache::new(&AbsPath::new(folder.path().join("cache/deep")).unwrap(), "c.json");
            Self { _folder: folder, cache, program, queries: Cell::new(0) }
        }

        fn get(&self, is_valid: bool) -> String {
            let query = || {
                self.queries.set(self.queries.get() + 1);
                Ok::<_, ()>(format!("20.0.{}", self.queries.get()))
            };
            self.cache.get_or_query(&self.program, |_| is_valid, query).unwrap()
        }
    }

    #[test]
    fn queried_once_and_again_when_the_program_changes() {
        let fixture = ProgramFixture::new();
        assert_eq!([fixture.get(true), fixture.get(true)], ["20.0.1", "20.0.1"]);
        fixtures::script(&fixture.program, "another");
        assert_eq!([fixture.get(true), fixture.get(true)], ["20.0.2", "20.0.2"]);
        assert_eq!(fixture.get(false), "20.0.3");
    }

    #[test]
    fn a_damaged_file_is_ignored_and_replaced() {
        let fixture = ProgramFixture::new();
        fixture.get(true);
        for damage in ["", "{", "[]", "{\"format\":99,\"programs\":{}}", "\u{0}\u{0}"] {
            fs::write(fixture.cache.file.as_path(), damage).unwrap();
            let queries = fixture.queries.get();
            fixture.get(true);
            fixture.get(true);
            assert_eq!(fixture.queries.get(), queries + 1, "{damage:?}");
        }
    }
}
