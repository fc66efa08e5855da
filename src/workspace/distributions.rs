//! Identifies the installed distributions of a site-packages folder by their RECORD files.
//!
//! A RECORD lists each installed file with its hash (PyPA, "Recording installed projects"), so a digest of the RECORD
//! covers the content of all files. Lines that differ between two installations of the same distribution are omitted:
//! scripts, which contain the interpreter's path, compiled files, and what an editable install writes about its origin.

use std::collections::BTreeMap;
use std::sync::PoisonError;

use serde::{Deserialize, Serialize};

use super::files::{Files, read_bytes};
use super::python::{EnvironmentCache, stamp_of, write_atomically};
use crate::digest::Digest;
use crate::path::AbsPath;

/// The version of the cache file's format. A file with another version counts as empty.
const FORMAT: u32 = 1;

/// By distribution folder, the stamp of its RECORD and the digest of the RECORD's portable lines.
pub(super) type RecordDigests = BTreeMap<String, (String, Digest)>;

#[derive(Default, Serialize, Deserialize)]
struct CachedRecords {
    format: u32,
    records: RecordDigests,
}

/// One line for each distribution, sorted: its name and version, and the digest of its RECORD.
pub(super) fn identities(
    files: &dyn Files,
    site_packages: &AbsPath,
    cache: &EnvironmentCache,
) -> Vec<String> {
    let names = files.list(site_packages);
    let names = names.into_iter().filter(|name| name.ends_with(".dist-info") || name.ends_with(".egg-info"));
    let file = cache.folder.as_ref().map(|folder| {
        let key = Digest::of(site_packages.as_str().as_bytes()).to_hex();
        folder.join(&format!("python/records-{}.json", &key[..32]))
    });
    let mut all = cache.records.lock().unwrap_or_else(PoisonError::into_inner);
    let known =
        all.remove(site_packages).or_else(|| Some(read_cached(file.as_ref()?)?.records)).unwrap_or_default();
    let mut current = BTreeMap::new();
    let mut lines = Vec::new();
    for name in names {
        let metadata_files = ["RECORD", "PKG-INFO"].map(|file| site_packages.join(&format!("{name}/{file}")));
        let stamps = metadata_files.map(|path| (stamp_of(&path), path));
        let Some((stamp, path)) = stamps.into_iter().find(|(stamp, _)| !stamp.is_empty()) else {
            lines.push(name);
            continue;
        };
        let digest = match known.get(&name) {
            Some((known_stamp, digest)) if *known_stamp == stamp => *digest,
            _ => digest_of_record(&read_bytes(&path).unwrap_or_default()),
        };
        lines.push(format!("{name} {digest}"));
        current.insert(name, (stamp, digest));
    }
    if let Some(file) = file
        && current != known
        && let Ok(text) = serde_json::to_vec(&CachedRecords { format: FORMAT, records: current.clone() })
    {
        // Errors are ignored: without the cache file, the next process reads the RECORDs again.
        let _ = write_atomically(&file, &text);
    }
    all.insert(site_packages.clone(), current);
    lines
}

fn read_cached(file: &AbsPath) -> Option<CachedRecords> {
    let cached: CachedRecords = serde_json::from_slice(&read_bytes(file).ok()?).ok()?;
    (cached.format == FORMAT).then_some(cached)
}

/// The digest of the lines that do not depend on where the distribution is installed, sorted.
fn digest_of_record(bytes: &[u8]) -> Digest {
    let text = String::from_utf8_lossy(bytes);
    let mut lines: Vec<&str> = text.lines().filter(|line| is_portable(line)).collect();
    lines.sort_unstable();
    Digest::of_fields(lines.into_iter().map(str::as_bytes))
}

fn is_portable(line: &str) -> bool {
    let path = line.split(',').next().unwrap_or_default();
    let about_installation =
        ["direct_url.json", "RECORD", "INSTALLER", "REQUESTED"].iter().any(|name| path.ends_with(name));
    let outside = path.starts_with("../") || path.starts_with('/');
    let compiled = path.ends_with(".pyc") || path.ends_with(".pth") || path.contains("__editable__");
    !(about_installation || outside || compiled)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::files::DiskFiles;

    #[test]
    fn a_cached_digest_changes_with_its_record() {
        let folder = tempfile::tempdir().unwrap();
        let root = AbsPath::new(folder.path()).unwrap();
        let (packages, cache) = (root.join("site-packages"), root.join("cache"));
        let info = packages.join("a-1.dist-info");
        std::fs::create_dir_all(info.as_path()).unwrap();
        let lines = |cache: Option<&AbsPath>| {
            identities(&DiskFiles::new(), &packages, &EnvironmentCache::new(cache.cloned()))
        };
        let in_memory = EnvironmentCache::default();
        assert_eq!(lines(Some(&cache)), ["a-1.dist-info"]);
        for content in ["a.py,sha256=1,1\n", "a.py,sha256=1,1\nb.py,sha256=2,1\n", "a.py,sha256=33,1\n"] {
            std::fs::write(info.join("RECORD").as_path(), content).unwrap();
            let uncached = lines(None);
            assert_eq!(lines(Some(&cache)), uncached, "{content}");
            assert_eq!(lines(Some(&cache)), uncached, "{content}");
            assert_eq!(identities(&DiskFiles::new(), &packages, &in_memory), uncached, "{content}");
        }
    }
}
