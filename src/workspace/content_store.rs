//! The file contents that earlier bundles were made from, by digest. A selector with a `sha256:…` revision needs them
//! to be relocated to the current files.
//!
//! Each content is one file, named by its digest. It is written to a temporary file and renamed into place, so two
//! processes may store the same content at once, and a killed one leaves at most a temporary file. Contents are checked
//! against their name when they are read. When the store exceeds [`MAX_BYTES`], the least recently used contents are
//! removed until three quarters are left.

use std::io::Write as _;
use std::path::PathBuf;
use std::time::SystemTime;

use crate::digest::Digest;
use crate::path::AbsPath;

/// The size limit of the store.
pub const MAX_BYTES: u64 = 256 * 1024 * 1024;
/// Larger contents are not stored.
const MAX_CONTENT_BYTES: usize = 4 * 1024 * 1024;
/// An older temporary file was left by a killed process.
const STALE_AFTER: std::time::Duration = std::time::Duration::from_secs(3600);

/// A folder of file contents, named by digest.
#[derive(Debug, Clone)]
pub struct ContentStore {
    folder: AbsPath,
    limit: u64,
}

impl ContentStore {
    /// The store in a cache folder.
    #[must_use]
    pub fn new(cache: &AbsPath) -> Self {
        Self { folder: cache.join("contents"), limit: MAX_BYTES }
    }

    /// Changes the size limit, in bytes.
    #[must_use]
    pub fn with_limit(mut self, limit: u64) -> Self {
        self.limit = limit;
        self
    }

    fn path_of(&self, digest: &Digest) -> AbsPath {
        let hex = digest.to_hex();
        self.folder.join(&format!("{}/{}", &hex[..2], &hex[2..]))
    }

    /// The content with this digest; `None` when it is missing or damaged.
    #[must_use]
    pub fn get(&self, digest: &Digest) -> Option<Vec<u8>> {
        let bytes = std::fs::read(self.path_of(digest).as_path()).ok()?;
        (Digest::of(&bytes) == *digest).then_some(bytes)
    }

    /// Stores the content of a file that had this digest, unless the file has changed since. Errors are ignored.
    pub fn store_file(&self, digest: &Digest, path: &AbsPath) {
        let stored = self.path_of(digest);
        if stored.as_path().exists() {
            mark_used(&stored);
            return;
        }
        if let Ok(bytes) = super::files::read_bytes(path)
            && bytes.len() <= MAX_CONTENT_BYTES
            && Digest::of(&bytes) == *digest
        {
            // Without the content, a later selector cannot be relocated, which is reported then.
            let _ = self.write(&stored, &bytes);
        }
    }

    fn write(&self, path: &AbsPath, bytes: &[u8]) -> std::io::Result<()> {
        let folder = path.parent();
        crate::path::private::create(folder.as_path())?;
        let mut file = tempfile::NamedTempFile::new_in(folder.as_path())?;
        file.write_all(bytes)?;
        file.persist(path.as_path()).map_err(|error| error.error)?;
        // Listing the store takes as long as a small request, so only one write in 16 does it.
        if self.limit < MAX_BYTES || path.as_str().as_bytes().last().is_some_and(|c| *c == b'0') {
            self.evict();
        }
        Ok(())
    }

    /// Removes the least recently used contents when the store exceeds its limit.
    fn evict(&self) {
        let now = SystemTime::now();
        let mut contents: Vec<(SystemTime, u64, PathBuf)> = Vec::new();
        let folders = std::fs::read_dir(self.folder.as_path()).into_iter().flatten().flatten();
        for folder in folders {
            for entry in std::fs::read_dir(folder.path()).into_iter().flatten().flatten() {
                let Ok(metadata) = entry.metadata() else { continue };
                let time = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                let is_content = entry.file_name().len() == 62;
                if !is_content {
                    if now.duration_since(time).is_ok_and(|age| age > STALE_AFTER) {
                        let _ = std::fs::remove_file(entry.path());
                    }
                    continue;
                }
                contents.push((time, metadata.len(), entry.path()));
            }
        }
        let mut total: u64 = contents.iter().map(|(_, size, _)| size).sum();
        if total <= self.limit {
            return;
        }
        contents.sort();
        for (_, size, path) in contents {
            if total <= self.limit / 4 * 3 {
                break;
            }
            if std::fs::remove_file(path).is_ok() {
                total -= size;
            }
        }
    }
}

/// Records the use of a content in its modification time.
fn mark_used(path: &AbsPath) {
    if let Ok(file) = std::fs::File::options().append(true).open(path.as_path()) {
        let _ = file.set_modified(SystemTime::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store() -> (tempfile::TempDir, ContentStore, AbsPath) {
        let folder = tempfile::tempdir().unwrap();
        let root = AbsPath::new(folder.path()).unwrap();
        let contents = ContentStore::new(&root);
        (folder, contents, root)
    }

    fn store_content(contents: &ContentStore, root: &AbsPath, bytes: &[u8]) -> Digest {
        let path = root.join("a.py");
        std::fs::write(path.as_path(), bytes).unwrap();
        let digest = Digest::of(bytes);
        contents.store_file(&digest, &path);
        digest
    }

    #[test]
    fn stored_contents_are_found_and_damaged_ones_are_not() {
        let (_folder, contents, root) = store();
        let digest = store_content(&contents, &root, b"x = 1\n");
        assert_eq!(contents.get(&digest).as_deref(), Some(&b"x = 1\n"[..]));
        assert_eq!(contents.get(&Digest::of(b"y")), None);
        std::fs::write(contents.path_of(&digest).as_path(), "x = 2\n").unwrap();
        assert_eq!(contents.get(&digest), None);
    }

    #[test]
    fn a_file_that_changed_is_not_stored_under_its_old_digest() {
        let (_folder, contents, root) = store();
        let path = root.join("a.py");
        std::fs::write(path.as_path(), "new").unwrap();
        contents.store_file(&Digest::of(b"old"), &path);
        assert_eq!(contents.get(&Digest::of(b"old")), None);
    }

    #[test]
    fn the_least_recently_used_contents_are_evicted() {
        let (_folder, contents, root) = store();
        let contents = contents.with_limit(1000);
        let old = |age: u64, digest: &Digest| {
            let file =
                std::fs::File::options().append(true).open(contents.path_of(digest).as_path()).unwrap();
            file.set_modified(SystemTime::now() - std::time::Duration::from_secs(age)).unwrap();
        };
        let digests: Vec<Digest> = (0..9_u8)
            .map(|n| {
                let digest = store_content(&contents, &root, &[n; 100]);
                old(100 - u64::from(n), &digest);
                digest
            })
            .collect();
        assert!(digests.iter().all(|digest| contents.get(digest).is_some()));
        store_content(&contents, &root, &[0; 100]);
        store_content(&contents, &root, &[200; 250]);
        assert!(contents.get(&digests[0]).is_some(), "it was used again");
        assert!(contents.get(&digests[1]).is_none());
        assert!(contents.get(&digests[8]).is_some());
    }

    #[test]
    fn concurrent_writers_of_the_same_content_succeed() {
        let (_folder, contents, root) = store();
        let bytes = vec![b'a'; 100_000];
        let path = root.join("a.py");
        std::fs::write(path.as_path(), &bytes).unwrap();
        let digest = Digest::of(&bytes);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    contents.store_file(&digest, &path);
                    assert!(contents.get(&digest).is_some());
                });
            }
        });
    }
}
