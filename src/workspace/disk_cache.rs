//! A cache of results on disk, bounded by size: one file per result, named by its key, in one folder per group of keys.
//!
//! Any number of processes may read and write it concurrently, and any of them may be killed: a file appears complete
//! or not at all, and a damaged file counts as missing. When the cache exceeds its limit, the least recently used
//! results are removed.

use std::fs;
use std::io::{self, BufWriter, Seek as _, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use sha2::{Digest as _, Sha256};

use crate::digest::Digest;
use crate::path::AbsPath;

/// The first line of every file, before the digest of the rest. Version 1.
const MAGIC: &str = "lanser-kept 1 ";

/// The cache's size is checked on one in this many writes.
const SIZE_CHECK_EVERY: u8 = 32;

/// A read updates a file's modification time, which marks its last use, at most this often.
const USE_MARK_INTERVAL: Duration = Duration::from_secs(3600);

/// An older temporary file was left by a killed process.
const STALE_AFTER: Duration = Duration::from_secs(60);

/// The size of the write buffer.
const BUFFER_BYTES: usize = 64 << 10;

/// A cache of results in a folder.
#[derive(Debug, Clone)]
pub struct DiskCache {
    folder: AbsPath,
    /// The size limit, in bytes.
    limit: u64,
}

/// What a cache holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DiskCacheStats {
    /// The number of intact files.
    pub files: u64,
    /// The size of the intact files, in bytes.
    pub bytes: u64,
    /// The number of damaged files. A lookup treats them as missing.
    pub damaged: u64,
}

impl DiskCache {
    /// A cache in `folder`, which need not exist, of up to `limit` bytes.
    #[must_use]
    pub const fn new(folder: AbsPath, limit: u64) -> Self {
        Self { folder, limit }
    }

    /// Whether the cache may hold a result of this group.
    #[must_use]
    pub fn has_group(&self, group: &Digest) -> bool {
        self.group_folder(group).is_dir()
    }

    /// Whether the cache has a file for `key`, which may be damaged.
    #[must_use]
    pub fn has(&self, group: &Digest, key: &Digest) -> bool {
        self.group_folder(group).join(key.to_hex()).is_file()
    }

    /// The result of `key`; `None` when it is missing or damaged.
    #[must_use]
    pub fn get(&self, group: &Digest, key: &Digest) -> Option<Vec<u8>> {
        let path = self.group_folder(group).join(key.to_hex());
        let bytes = read_valid(&path)?;
        let now = SystemTime::now();
        let last_use = fs::metadata(&path).and_then(|metadata| metadata.modified()).ok();
        if last_use
            .is_none_or(|last_use| now.duration_since(last_use).is_ok_and(|age| age > USE_MARK_INTERVAL))
        {
            // A file that cannot be marked is still usable.
            let _ = fs::File::open(&path).and_then(|file| file.set_modified(now));
        }
        Some(bytes)
    }

    /// Stores the result of `key`, which `write_result` writes. Errors, also of `write_result`, are ignored: the next
    /// run computes the result again.
    pub fn put(
        &self,
        group: &Digest,
        key: &Digest,
        write_result: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) {
        let folder = self.group_folder(group);
        let path = folder.join(key.to_hex());
        let write = || -> io::Result<()> {
            crate::path::private::create(&folder)?;
            remove_stale(&folder);
            let mut file = tempfile::Builder::new().prefix(".new-").tempfile_in(&folder)?;
            // The digest is filled in at the end.
            let header = |digest: Digest| format!("{MAGIC}{}\n", digest.to_hex());
            file.write_all(header(Digest::from_bytes([0; 32])).as_bytes())?;
            let mut writer = BufWriter::with_capacity(
                BUFFER_BYTES,
                DigestWriter { file: file.as_file_mut(), digest: Sha256::new() },
            );
            write_result(&mut writer)?;
            writer.flush()?;
            let digest = writer.into_inner().map_err(io::IntoInnerError::into_error)?.digest;
            file.seek(SeekFrom::Start(0))?;
            file.write_all(header(Digest::from_bytes(digest.finalize().into())).as_bytes())?;
            file.persist(&path).map_err(|error| error.error)?;
            Ok(())
        };
        match write() {
            Ok(()) if key.as_bytes()[0].is_multiple_of(SIZE_CHECK_EVERY) => self.evict(),
            Ok(()) => {}
            // `has_group` must not be true for an empty group. `remove_dir` removes only an empty folder.
            Err(_) => drop(fs::remove_dir(&folder)),
        }
    }

    /// Reads every file and checks its digest.
    #[must_use]
    pub fn verify(&self) -> DiskCacheStats {
        let mut stats = DiskCacheStats::default();
        for (path, _, bytes) in self.all() {
            if read_valid(&path).is_some() {
                stats.files += 1;
                stats.bytes += bytes;
            } else {
                stats.damaged += 1;
            }
        }
        stats
    }

    fn group_folder(&self, group: &Digest) -> PathBuf {
        let name = group.to_hex();
        self.folder.as_path().join(&name[..2]).join(&name[2..40])
    }

    /// Every file with the time of its last use and its size.
    fn all(&self) -> Vec<(PathBuf, SystemTime, u64)> {
        let below = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten();
        let mut found = Vec::new();
        for group in below(self.folder.as_path()).flat_map(|outer| below(&outer.path())) {
            remove_stale(&group.path());
            for file in below(&group.path()) {
                let Ok(metadata) = file.metadata() else { continue };
                let used = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                if file.file_name().to_string_lossy().starts_with('.') {
                    continue;
                }
                found.push((file.path(), used, metadata.len()));
            }
        }
        found
    }

    /// Removes the least recently used results until the cache is at nine tenths of its limit.
    fn evict(&self) {
        let mut all = self.all();
        let mut size: u64 = all.iter().map(|(_, _, bytes)| bytes).sum();
        if size <= self.limit {
            return;
        }
        all.sort_by(|(a_path, a, _), (b_path, b, _)| (a, a_path).cmp(&(b, b_path)));
        for (path, _, bytes) in all {
            if size <= self.limit / 10 * 9 {
                return;
            }
            if fs::remove_file(&path).is_ok() {
                size -= bytes;
            }
            // Removes only an empty folder.
            let _ = path.parent().map(fs::remove_dir);
        }
    }
}

/// Writes to a file and hashes what it writes.
struct DigestWriter<'f> {
    file: &'f mut fs::File,
    digest: Sha256,
}

impl Write for DigestWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.digest.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Removes the temporary files that killed processes left in a folder.
fn remove_stale(folder: &Path) {
    for file in fs::read_dir(folder).into_iter().flatten().flatten() {
        let old = || {
            file.metadata()
                .and_then(|metadata| metadata.modified())
                .is_ok_and(|written| written.elapsed().is_ok_and(|age| age > STALE_AFTER))
        };
        if file.file_name().to_string_lossy().starts_with('.') && old() {
            let _ = fs::remove_file(file.path());
        }
    }
}

/// The result in a file; `None` when the file is missing or damaged.
fn read_valid(path: &Path) -> Option<Vec<u8>> {
    let mut bytes = fs::read(path).ok()?;
    let rest = bytes.strip_prefix(MAGIC.as_bytes())?;
    let (digest, rest) = rest.split_at_checked(64)?;
    let rest = rest.strip_prefix(b"\n")?;
    if digest != Digest::of(rest).to_hex().as_bytes() {
        return None;
    }
    bytes.drain(..MAGIC.len() + 65);
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(limit: u64) -> (tempfile::TempDir, DiskCache) {
        let folder = tempfile::tempdir().unwrap();
        let cache = DiskCache::new(AbsPath::new(folder.path()).unwrap().join("memo"), limit);
        (folder, cache)
    }

    fn put(cache: &DiskCache, group: &Digest, key: &Digest, bytes: &[u8]) {
        cache.put(group, key, |out| out.write_all(bytes));
    }

    fn digest(number: u32) -> Digest {
        Digest::of(&number.to_le_bytes())
    }

    #[test]
    fn only_stored_results_are_found() {
        let (_folder, cache) = cache(1 << 20);
        let (group, key) = (digest(1), digest(2));
        assert!(!cache.has_group(&group));
        assert_eq!(cache.get(&group, &key), None);
        put(&cache, &group, &key, b"one");
        assert!(cache.has_group(&group));
        assert_eq!(cache.get(&group, &key).unwrap(), b"one");
        put(&cache, &group, &key, b"two");
        assert_eq!(cache.get(&group, &key).unwrap(), b"two");
        assert_eq!(cache.get(&group, &digest(3)), None);
        assert_eq!(cache.verify(), DiskCacheStats { files: 1, bytes: 82, damaged: 0 });
    }

    #[test]
    fn a_result_whose_writer_fails_is_not_stored() {
        let (_folder, cache) = cache(1 << 20);
        let (group, key) = (digest(1), digest(2));
        let long = vec![7; 3 * BUFFER_BYTES + 5];
        put(&cache, &group, &key, &long);
        cache.put(&group, &key, |out| {
            out.write_all(&long)?;
            Err(io::Error::other("no more"))
        });
        assert_eq!(cache.get(&group, &key).unwrap(), long);
        cache.put(&group, &digest(3), |_| Err(io::Error::other("nothing")));
        assert_eq!(cache.get(&group, &digest(3)), None);
        assert!(cache.has(&group, &key) && !cache.has(&group, &digest(3)));
        cache.put(&digest(4), &key, |_| Err(io::Error::other("nothing")));
        assert!(!cache.has_group(&digest(4)), "the group is empty");
        assert_eq!(fs::read_dir(cache.group_folder(&group)).unwrap().count(), 1, "no temporary file is left");
    }

    #[test]
    fn any_damage_is_detected_and_repaired_by_the_next_write() {
        let (_folder, cache) = cache(1 << 20);
        let (group, key) = (digest(1), digest(2));
        put(&cache, &group, &key, b"some result");
        let path = cache.group_folder(&group).join(key.to_hex());
        let good = fs::read(&path).unwrap();
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1;
            fs::write(&path, &bad).unwrap();
            assert_eq!(cache.get(&group, &key), None, "byte {at}");
            fs::write(&path, &good[..at]).unwrap();
            assert_eq!(cache.get(&group, &key), None, "cut at {at}");
        }
        assert_eq!(cache.verify().damaged, 1);
        put(&cache, &group, &key, b"some result");
        assert_eq!(cache.get(&group, &key).unwrap(), b"some result");
    }

    #[test]
    fn the_least_recently_used_results_are_evicted() {
        let (_folder, cache) = cache(20_000);
        let used = digest(1000);
        put(&cache, &used, &used, &[7; 500]);
        for number in 0..400 {
            put(&cache, &digest(number), &digest(number), &[0; 500]);
            let path = cache.group_folder(&used).join(used.to_hex());
            fs::File::open(path).unwrap().set_modified(SystemTime::now()).unwrap();
        }
        cache.evict();
        let stats = cache.verify();
        assert!(stats.bytes <= 20_000 && stats.files > 10, "{stats:?}");
        assert!(cache.get(&used, &used).is_some());
    }

    #[test]
    fn concurrent_writers_and_a_killed_one() {
        let (_folder, cache) = cache(1 << 20);
        let (group, key) = (digest(1), digest(2));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..100 {
                        put(&cache, &group, &key, b"the same");
                        assert_eq!(cache.get(&group, &key).unwrap(), b"the same");
                    }
                });
            }
        });
        let left = cache.group_folder(&group).join(".new-x");
        fs::write(&left, "half").unwrap();
        fs::File::open(&left).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
        assert_eq!(cache.verify().files, 1);
        assert!(!left.exists());
    }
}
