//! Results that are kept between runs: a folder of files, each named by what it is the result of.
//!
//! Any number of processes read and write it at once, and any of them may be killed: a file appears whole or not at all, and
//! one that is damaged is no file. The folder stays below a size; what was not used for the longest time goes first.

use std::fs;
use std::io::{self, BufWriter, Seek as _, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use sha2::{Digest as _, Sha256};

use crate::digest::Digest;
use crate::path::AbsPath;

/// The first line of every file, before the digest of the rest. Version 1.
const MAGIC: &str = "lanser-kept 1 ";

/// How often the size is looked at: at one of so many files written.
const LOOKED_AT: u8 = 32;

/// How old the mark of a file's last use may be before it is renewed.
const MARK: Duration = Duration::from_secs(3600);

/// How old a file must be that a killed writer left behind.
const LEFT_BEHIND: Duration = Duration::from_secs(60);

/// How much is written at a time, in bytes.
const CHUNK: usize = 64 << 10;

/// A folder of results.
#[derive(Debug, Clone)]
pub struct Kept {
    folder: AbsPath,
    /// The most bytes.
    limit: u64,
}

/// What a folder of results holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Holding {
    /// Whole files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Files that are not what was written. They are ignored when they are asked for.
    pub damaged: u64,
}

impl Kept {
    /// Results in `folder`, which need not exist, up to `limit` bytes.
    #[must_use]
    pub const fn new(folder: AbsPath, limit: u64) -> Self {
        Self { folder, limit }
    }

    /// Whether there may be a result for anything below this group.
    #[must_use]
    pub fn has_group(&self, group: &Digest) -> bool {
        self.group(group).is_dir()
    }

    /// Whether there is a result of `key`, be it damaged.
    #[must_use]
    pub fn has(&self, group: &Digest, key: &Digest) -> bool {
        self.group(group).join(key.to_hex()).is_file()
    }

    /// The result of `key`.
    #[must_use]
    pub fn get(&self, group: &Digest, key: &Digest) -> Option<Vec<u8>> {
        let path = self.group(group).join(key.to_hex());
        let bytes = whole(&path)?;
        let now = SystemTime::now();
        let marked = fs::metadata(&path).and_then(|metadata| metadata.modified()).ok();
        if marked.is_none_or(|marked| now.duration_since(marked).is_ok_and(|age| age > MARK)) {
            // Whoever cannot mark it reads it all the same.
            let _ = fs::File::open(&path).and_then(|file| file.set_modified(now));
        }
        Some(bytes)
    }

    /// Keeps the result of `key`, which `tell` writes. Failure, also of `tell`, is no error: the next run works it out again.
    pub fn put(&self, group: &Digest, key: &Digest, tell: impl FnOnce(&mut dyn Write) -> io::Result<()>) {
        let folder = self.group(group);
        let path = folder.join(key.to_hex());
        let write = || -> io::Result<()> {
            crate::path::private::make(&folder)?;
            sweep(&folder);
            let mut file = tempfile::Builder::new().prefix(".new-").tempfile_in(&folder)?;
            // The digest is known when all is written.
            let heading = |digest: Digest| format!("{MAGIC}{}\n", digest.to_hex());
            file.write_all(heading(Digest::from_bytes([0; 32])).as_bytes())?;
            let mut summed =
                BufWriter::with_capacity(CHUNK, Summed { file: file.as_file_mut(), sum: Sha256::new() });
            tell(&mut summed)?;
            summed.flush()?;
            let sum = summed.into_inner().map_err(io::IntoInnerError::into_error)?.sum;
            file.seek(SeekFrom::Start(0))?;
            file.write_all(heading(Digest::from_bytes(sum.finalize().into())).as_bytes())?;
            file.persist(&path).map_err(|error| error.error)?;
            Ok(())
        };
        match write() {
            Ok(()) if key.as_bytes()[0].is_multiple_of(LOOKED_AT) => self.make_room(),
            Ok(()) => {}
            // A group of nothing would say that there is something. Only an empty folder goes.
            Err(_) => drop(fs::remove_dir(&folder)),
        }
    }

    /// Looks into every file.
    #[must_use]
    pub fn verify(&self) -> Holding {
        let mut holding = Holding::default();
        for (path, _, bytes) in self.all() {
            if whole(&path).is_some() {
                holding.files += 1;
                holding.bytes += bytes;
            } else {
                holding.damaged += 1;
            }
        }
        holding
    }

    fn group(&self, group: &Digest) -> PathBuf {
        let name = group.to_hex();
        self.folder.as_path().join(&name[..2]).join(&name[2..40])
    }

    /// Every result with the time of its last use and its size.
    fn all(&self) -> Vec<(PathBuf, SystemTime, u64)> {
        let below = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten();
        let mut found = Vec::new();
        for group in below(self.folder.as_path()).flat_map(|outer| below(&outer.path())) {
            sweep(&group.path());
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

    /// Removes what was not used for the longest time, down to nine tenths of the limit.
    fn make_room(&self) {
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
            // Only an empty folder goes.
            let _ = path.parent().map(fs::remove_dir);
        }
    }
}

/// A file that knows the sum of what is written to it.
struct Summed<'f> {
    file: &'f mut fs::File,
    sum: Sha256,
}

impl Write for Summed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.sum.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Removes what killed writers left in a folder.
fn sweep(folder: &Path) {
    for file in fs::read_dir(folder).into_iter().flatten().flatten() {
        let old = || {
            file.metadata()
                .and_then(|metadata| metadata.modified())
                .is_ok_and(|written| written.elapsed().is_ok_and(|age| age > LEFT_BEHIND))
        };
        if file.file_name().to_string_lossy().starts_with('.') && old() {
            let _ = fs::remove_file(file.path());
        }
    }
}

/// The content of a file, if it is what was written.
fn whole(path: &Path) -> Option<Vec<u8>> {
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

    fn folder(limit: u64) -> (tempfile::TempDir, Kept) {
        let folder = tempfile::tempdir().unwrap();
        let kept = Kept::new(AbsPath::new(folder.path()).unwrap().join("memo"), limit);
        (folder, kept)
    }

    fn put(kept: &Kept, group: &Digest, key: &Digest, bytes: &[u8]) {
        kept.put(group, key, |out| out.write_all(bytes));
    }

    fn digest(number: u32) -> Digest {
        Digest::of(&number.to_le_bytes())
    }

    #[test]
    fn what_was_put_is_got_and_nothing_else() {
        let (_folder, kept) = folder(1 << 20);
        let (group, key) = (digest(1), digest(2));
        assert!(!kept.has_group(&group));
        assert_eq!(kept.get(&group, &key), None);
        put(&kept, &group, &key, b"one");
        assert!(kept.has_group(&group));
        assert_eq!(kept.get(&group, &key).unwrap(), b"one");
        put(&kept, &group, &key, b"two");
        assert_eq!(kept.get(&group, &key).unwrap(), b"two");
        assert_eq!(kept.get(&group, &digest(3)), None);
        assert_eq!(kept.verify(), Holding { files: 1, bytes: 82, damaged: 0 });
    }

    #[test]
    fn what_is_not_told_to_its_end_is_not_kept() {
        let (_folder, kept) = folder(1 << 20);
        let (group, key) = (digest(1), digest(2));
        let long = vec![7; 3 * CHUNK + 5];
        put(&kept, &group, &key, &long);
        kept.put(&group, &key, |out| {
            out.write_all(&long)?;
            Err(io::Error::other("no more"))
        });
        assert_eq!(kept.get(&group, &key).unwrap(), long);
        kept.put(&group, &digest(3), |_| Err(io::Error::other("nothing")));
        assert_eq!(kept.get(&group, &digest(3)), None);
        assert!(kept.has(&group, &key) && !kept.has(&group, &digest(3)));
        kept.put(&digest(4), &key, |_| Err(io::Error::other("nothing")));
        assert!(!kept.has_group(&digest(4)), "there is nothing in it");
        assert_eq!(fs::read_dir(kept.group(&group)).unwrap().count(), 1, "nothing else is left");
    }

    #[test]
    fn any_damage_is_seen_and_mended_by_the_next_writer() {
        let (_folder, kept) = folder(1 << 20);
        let (group, key) = (digest(1), digest(2));
        put(&kept, &group, &key, b"some result");
        let path = kept.group(&group).join(key.to_hex());
        let good = fs::read(&path).unwrap();
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1;
            fs::write(&path, &bad).unwrap();
            assert_eq!(kept.get(&group, &key), None, "byte {at}");
            fs::write(&path, &good[..at]).unwrap();
            assert_eq!(kept.get(&group, &key), None, "cut at {at}");
        }
        assert_eq!(kept.verify().damaged, 1);
        put(&kept, &group, &key, b"some result");
        assert_eq!(kept.get(&group, &key).unwrap(), b"some result");
    }

    #[test]
    fn the_folder_stays_below_its_limit_and_the_used_stay() {
        let (_folder, kept) = folder(20_000);
        let used = digest(1000);
        put(&kept, &used, &used, &[7; 500]);
        for number in 0..400 {
            put(&kept, &digest(number), &digest(number), &[0; 500]);
            let path = kept.group(&used).join(used.to_hex());
            fs::File::open(path).unwrap().set_modified(SystemTime::now()).unwrap();
        }
        kept.make_room();
        let holding = kept.verify();
        assert!(holding.bytes <= 20_000 && holding.files > 10, "{holding:?}");
        assert!(kept.get(&used, &used).is_some());
    }

    #[test]
    fn writers_at_once_and_what_a_killed_one_left() {
        let (_folder, kept) = folder(1 << 20);
        let (group, key) = (digest(1), digest(2));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..100 {
                        put(&kept, &group, &key, b"the same");
                        assert_eq!(kept.get(&group, &key).unwrap(), b"the same");
                    }
                });
            }
        });
        let left = kept.group(&group).join(".new-x");
        fs::write(&left, "half").unwrap();
        fs::File::open(&left).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
        assert_eq!(kept.verify().files, 1);
        assert!(!left.exists());
    }
}
