//! The contents that earlier bundles were made from, by their digest, so that a selector with `sha256:…` can be mapped to
//! the present.
//!
//! One file for each content, named by its digest, written beside its place and renamed into it: two writers of one content
//! write the same bytes, and one that is killed leaves at most a temporary file. What is read is checked against its name.
//! The store is bounded: past [`MAX_BYTES`] what was used longest ago goes, down to three quarters of it.

use std::io::Write as _;
use std::path::PathBuf;
use std::time::SystemTime;

use crate::digest::Digest;
use crate::path::AbsPath;

/// The most bytes that are kept.
pub const MAX_BYTES: u64 = 256 * 1024 * 1024;
/// Longer contents are not kept.
const MAX_CONTENT: usize = 4 * 1024 * 1024;
/// A temporary file that is older was left by a writer that is no more.
const STALE: std::time::Duration = std::time::Duration::from_secs(3600);

/// The store.
#[derive(Debug, Clone)]
pub struct Contents {
    folder: AbsPath,
    limit: u64,
}

impl Contents {
    /// The store in a cache folder.
    #[must_use]
    pub fn new(cache: &AbsPath) -> Self {
        Self { folder: cache.join("contents"), limit: MAX_BYTES }
    }

    /// A store that keeps another number of bytes.
    #[must_use]
    pub fn with_limit(mut self, limit: u64) -> Self {
        self.limit = limit;
        self
    }

    fn place(&self, digest: &Digest) -> AbsPath {
        let hex = digest.to_hex();
        self.folder.join(&format!("{}/{}", &hex[..2], &hex[2..]))
    }

    /// A content; `None` when it is not there or damaged.
    #[must_use]
    pub fn get(&self, digest: &Digest) -> Option<Vec<u8>> {
        let bytes = std::fs::read(self.place(digest).as_path()).ok()?;
        (Digest::of(&bytes) == *digest).then_some(bytes)
    }

    /// Keeps the bytes of a file whose digest is known, unless they are another content by now. Failure is no error.
    pub fn keep_file(&self, digest: &Digest, path: &AbsPath) {
        let place = self.place(digest);
        if place.as_path().exists() {
            touch(&place);
            return;
        }
        if let Ok(bytes) = super::files::read_bytes(path)
            && bytes.len() <= MAX_CONTENT
            && Digest::of(&bytes) == *digest
        {
            // Without it a later selector cannot be mapped, and says so.
            let _ = self.write(&place, &bytes);
        }
    }

    fn write(&self, place: &AbsPath, bytes: &[u8]) -> std::io::Result<()> {
        let folder = place.parent();
        crate::path::private::make(folder.as_path())?;
        let mut file = tempfile::NamedTempFile::new_in(folder.as_path())?;
        file.write_all(bytes)?;
        file.persist(place.as_path()).map_err(|error| error.error)?;
        // Looking at everything costs as much as a small request, so it is done now and then.
        if self.limit < MAX_BYTES || place.as_str().as_bytes().last().is_some_and(|c| *c == b'0') {
            self.shrink();
        }
        Ok(())
    }

    /// Makes room when the bound is passed.
    fn shrink(&self) {
        let now = SystemTime::now();
        let mut known: Vec<(SystemTime, u64, PathBuf)> = Vec::new();
        let folders = std::fs::read_dir(self.folder.as_path()).into_iter().flatten().flatten();
        for folder in folders {
            for entry in std::fs::read_dir(folder.path()).into_iter().flatten().flatten() {
                let Ok(metadata) = entry.metadata() else { continue };
                let time = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                let is_content = entry.file_name().len() == 62;
                if !is_content {
                    if now.duration_since(time).is_ok_and(|age| age > STALE) {
                        let _ = std::fs::remove_file(entry.path());
                    }
                    continue;
                }
                known.push((time, metadata.len(), entry.path()));
            }
        }
        let mut total: u64 = known.iter().map(|(_, size, _)| size).sum();
        if total <= self.limit {
            return;
        }
        known.sort();
        for (_, size, path) in known {
            if total <= self.limit / 4 * 3 {
                break;
            }
            if std::fs::remove_file(path).is_ok() {
                total -= size;
            }
        }
    }
}

/// Says that a content is still in use.
fn touch(place: &AbsPath) {
    if let Ok(file) = std::fs::File::options().append(true).open(place.as_path()) {
        let _ = file.set_modified(SystemTime::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store() -> (tempfile::TempDir, Contents, AbsPath) {
        let folder = tempfile::tempdir().unwrap();
        let root = AbsPath::new(folder.path()).unwrap();
        let contents = Contents::new(&root);
        (folder, contents, root)
    }

    fn keep(contents: &Contents, root: &AbsPath, bytes: &[u8]) -> Digest {
        let path = root.join("a.py");
        std::fs::write(path.as_path(), bytes).unwrap();
        let digest = Digest::of(bytes);
        contents.keep_file(&digest, &path);
        digest
    }

    #[test]
    fn what_was_kept_is_there_and_what_was_damaged_is_not() {
        let (_folder, contents, root) = store();
        let digest = keep(&contents, &root, b"x = 1\n");
        assert_eq!(contents.get(&digest).as_deref(), Some(&b"x = 1\n"[..]));
        assert_eq!(contents.get(&Digest::of(b"y")), None);
        std::fs::write(contents.place(&digest).as_path(), "x = 2\n").unwrap();
        assert_eq!(contents.get(&digest), None);
    }

    #[test]
    fn a_file_that_changed_meanwhile_is_not_kept_under_the_old_name() {
        let (_folder, contents, root) = store();
        let path = root.join("a.py");
        std::fs::write(path.as_path(), "new").unwrap();
        contents.keep_file(&Digest::of(b"old"), &path);
        assert_eq!(contents.get(&Digest::of(b"old")), None);
    }

    #[test]
    fn the_store_is_bounded_and_keeps_what_was_used_last() {
        let (_folder, contents, root) = store();
        let contents = contents.with_limit(1000);
        let old = |age: u64, digest: &Digest| {
            let file = std::fs::File::options().append(true).open(contents.place(digest).as_path()).unwrap();
            file.set_modified(SystemTime::now() - std::time::Duration::from_secs(age)).unwrap();
        };
        let digests: Vec<Digest> = (0..9_u8)
            .map(|n| {
                let digest = keep(&contents, &root, &[n; 100]);
                old(100 - u64::from(n), &digest);
                digest
            })
            .collect();
        assert!(digests.iter().all(|digest| contents.get(digest).is_some()));
        keep(&contents, &root, &[0; 100]);
        keep(&contents, &root, &[200; 250]);
        assert!(contents.get(&digests[0]).is_some(), "it was used again");
        assert!(contents.get(&digests[1]).is_none());
        assert!(contents.get(&digests[8]).is_some());
    }

    #[test]
    fn writers_of_one_content_do_not_disturb_each_other() {
        let (_folder, contents, root) = store();
        let bytes = vec![b'a'; 100_000];
        let path = root.join("a.py");
        std::fs::write(path.as_path(), &bytes).unwrap();
        let digest = Digest::of(&bytes);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    contents.keep_file(&digest, &path);
                    assert!(contents.get(&digest).is_some());
                });
            }
        });
    }
}
