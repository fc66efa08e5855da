//! Which files of the installed packages and of the server's stubs write a name. An index of their words is made once for each state of
//! the packages, and cached in parts, of which a search reads those of its names. Without the cache it is made once for each state of
//! the workspace.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use crate::digest::Digest;
use crate::path::{AbsPath, is_python};
use crate::text::words::{word_hash, words};
use crate::workspace::disk_cache::DiskCache;
use crate::workspace::files::canonical;
use crate::workspace::parallel::parallel_map;

/// The maximum size of the cache, in bytes. The index of 17 000 files takes 25 MB.
const MAX_BYTES: u64 = 128 << 20;

/// With more files in a folder of packages, it is not searched.
const MAX_FILES: usize = 100_000;

/// With fewer files in a folder, they are read each time: an index would be many small files.
const MIN_FILES: usize = 100;

/// How many parts the index has.
const PARTS: u64 = 256;

/// The number of a file in the index.
type FileNumber = u32;

/// Stands for every word of a file that cannot be read. If it is the hash of a word, one more file is read.
const ANY_WORD: u64 = u64::MAX;

/// The installed files and their words.
#[derive(Debug)]
pub(super) struct InstalledWords {
    /// `None` if not all files can be searched.
    folders: Option<Vec<FolderWords>>,
}

/// A folder of packages and the words of its files. Each has its own index: those of the packages serve whichever server is asked.
#[derive(Debug)]
struct FolderWords {
    folder: AbsPath,
    /// The digest of the state of all packages.
    group: Digest,
    store: Option<DiskCache>,
    threads: usize,
    /// With fewer files no index is stored.
    min_files: usize,
    /// What was read because the cache did not have it; `None` in it if there are too many files.
    read: OnceLock<Option<Vec<FileWords>>>,
}

/// The sorted hashes of the words of a file; `None` if it cannot be read, so that it is not known to lack any.
type FileWords = (AbsPath, Option<Vec<u64>>);

impl InstalledWords {
    /// The words in folders of packages, whose state has the digest `group`; `None` if not all of them are known. `cache` is the
    /// folder of all caches.
    pub(super) fn new(
        folders: Option<Vec<AbsPath>>,
        group: Digest,
        cache: Option<&AbsPath>,
        threads: usize,
    ) -> Self {
        let store = cache.map(|cache| DiskCache::new(cache.join("installed"), MAX_BYTES));
        let words = |folder| FolderWords {
            folder,
            group,
            store: store.clone(),
            threads,
            min_files: MIN_FILES,
            read: OnceLock::new(),
        };
        Self { folders: folders.map(|folders| outermost(folders).into_iter().map(words).collect()) }
    }

    /// The files in which one of the names is written, sorted. `None` if not all files can be searched.
    pub(super) fn files_with(&self, names: &[&str]) -> Option<Vec<AbsPath>> {
        // Names beyond ASCII can be written in several ways.
        let folders = self.folders.as_ref().filter(|_| names.iter().all(|name| name.is_ascii()))?;
        let hashes: Vec<u64> = names.iter().map(|name| word_hash(name.as_bytes())).collect();
        let mut files = BTreeSet::new();
        for folder in folders {
            files.extend(folder.files_with(&hashes)?);
        }
        Some(files.into_iter().collect())
    }
}

/// Folders without those that are within others, or are others by another path.
fn outermost(folders: Vec<AbsPath>) -> Vec<AbsPath> {
    let real: Vec<AbsPath> = folders.iter().map(canonical).collect();
    let is_within = |own: usize, other: usize| {
        real[own].strip_prefix(&real[other]).is_some() && (real[own] != real[other] || other < own)
    };
    let kept = folders.into_iter().enumerate();
    kept.filter(|(own, _)| !(0..real.len()).any(|other| other != *own && is_within(*own, other)))
        .map(|(_, folder)| folder)
        .collect()
}

impl FolderWords {
    /// The files with one of the words, given by their hashes. `None` if there are too many files.
    fn files_with(&self, hashes: &[u64]) -> Option<Vec<AbsPath>> {
        // What can be cached, and what is evicted when, does not change the answer.
        if self.read.get().is_none()
            && let Some(cached) = self.store.as_ref().and_then(|store| self.cached(store, hashes))
        {
            return cached;
        }
        let all = self.read.get_or_init(|| self.read()).as_ref()?;
        let has = |words: &Option<Vec<u64>>| {
            words.as_ref().is_none_or(|all| hashes.iter().any(|hash| all.binary_search(hash).is_ok()))
        };
        Some(all.iter().filter(|(_, words)| has(words)).map(|(path, _)| path.clone()).collect())
    }

    /// The files with one of the words as the cache has them; `None` if a part that is needed is not cached.
    #[expect(clippy::option_option, reason = "not known, known to be too many, known")]
    fn cached(&self, store: &DiskCache, hashes: &[u64]) -> Option<Option<Vec<AbsPath>>> {
        let numbers: Option<Vec<_>> = hashes.iter().map(|hash| self.numbers(store, *hash)).collect();
        let Some(numbers) = numbers else { return (self.files(store) == Some(None)).then_some(None) };
        let numbers: BTreeSet<FileNumber> = numbers.into_iter().flatten().collect();
        if numbers.is_empty() {
            return Some(Some(Vec::new()));
        }
        let files = self.files(store)??;
        let path = |number: FileNumber| AbsPath::new(files.get(number as usize)?).ok();
        Some(Some(numbers.into_iter().map(path).collect::<Option<_>>()?))
    }

    fn key(&self, part: &str) -> Digest {
        Digest::of_fields([part, self.folder.as_str()].map(str::as_bytes))
    }

    /// The searched files; `Some(None)` if there are too many.
    #[expect(clippy::option_option, reason = "not known, known to be too many, known")]
    fn files(&self, store: &DiskCache) -> Option<Option<Vec<String>>> {
        serde_json::from_slice(&store.get(&self.group, &self.key("files"))?).ok()
    }

    /// The files with a word, and those that could not be read. `None` if that part of the index is not cached.
    fn numbers(&self, store: &DiskCache, hash: u64) -> Option<Vec<FileNumber>> {
        let part = store.get(&self.group, &self.key(&(hash % PARTS).to_string()))?;
        let pairs = part.chunks_exact(size_of::<u64>() + size_of::<FileNumber>()).map(|pair| {
            let (hash, number) = pair.split_at(size_of::<u64>());
            Some((
                u64::from_le_bytes(hash.try_into().ok()?),
                FileNumber::from_le_bytes(number.try_into().ok()?),
            ))
        });
        let pairs: Option<Vec<(u64, FileNumber)>> = pairs.collect();
        Some(
            pairs?
                .into_iter()
                .filter(|(of, _)| *of == hash || *of == ANY_WORD)
                .map(|(_, number)| number)
                .collect(),
        )
    }

    /// Reads all files, and stores the index. `None` if there are too many files.
    fn read(&self) -> Option<Vec<FileWords>> {
        let put = |part: &str, bytes: &[u8]| {
            if let Some(store) = &self.store {
                store.put(&self.group, &self.key(part), |out| out.write_all(bytes));
            }
        };
        let Some(files) = python_files(&self.folder) else {
            put("files", b"null");
            return None;
        };
        let sets = parallel_map(&files, self.threads, |path| {
            let Ok(bytes) = std::fs::read(path.as_path()) else { return None };
            let mut all: Vec<u64> = words(&bytes).map(word_hash).collect();
            all.sort_unstable();
            all.dedup();
            Some(all)
        });
        if self.store.is_some() && files.len() >= self.min_files {
            let paths: Vec<&str> = files.iter().map(AbsPath::as_str).collect();
            put("files", &serde_json::to_vec(&paths).ok()?);
            for (number, part) in parts_of(&sets).iter().enumerate() {
                put(&number.to_string(), part);
            }
        }
        Some(files.into_iter().zip(sets).collect())
    }
}

/// The parts of the index: the hashes with the numbers of the files that have them.
fn parts_of(sets: &[Option<Vec<u64>>]) -> Vec<Vec<u8>> {
    let mut parts = vec![Vec::new(); PARTS as usize];
    for (number, set) in (0..=FileNumber::MAX).zip(sets) {
        let mut add = |part: u64, hash: u64| {
            let part: &mut Vec<u8> = &mut parts[part as usize];
            part.extend(hash.to_le_bytes());
            part.extend(number.to_le_bytes());
        };
        match set {
            Some(hashes) => hashes.iter().for_each(|hash| add(hash % PARTS, *hash)),
            None => (0..PARTS).for_each(|part| add(part, ANY_WORD)),
        }
    }
    parts
}

/// The Python files below a folder, each once, with links followed. `None` if there are too many, or a folder cannot be listed.
fn python_files(folder: &AbsPath) -> Option<Vec<AbsPath>> {
    let mut pending = vec![folder.clone()];
    let (mut seen, mut files) = (BTreeSet::new(), BTreeSet::new());
    while let Some(folder) = pending.pop() {
        if !seen.insert(canonical(&folder)) {
            continue;
        }
        let entries = match std::fs::read_dir(folder.as_path()) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            entries => entries.ok()?,
        };
        for entry in entries {
            let path = AbsPath::new(entry.ok()?.path().to_str()?).ok()?;
            // A link that leads nowhere is no file.
            match std::fs::metadata(path.as_path()) {
                Ok(metadata) if metadata.is_dir() => pending.push(path),
                Ok(_) if is_python(path.as_str()) => drop(files.insert(path)),
                _ => {}
            }
        }
        if files.len() > MAX_FILES {
            return None;
        }
    }
    Some(files.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words of what is in a folder, with a digest of its state.
    fn words_in(folder: &AbsPath, state: &str, cache: Option<&AbsPath>) -> InstalledWords {
        let store = cache.map(|cache| DiskCache::new(cache.clone(), MAX_BYTES));
        let (folder, group) = (folder.clone(), Digest::of(state.as_bytes()));
        InstalledWords {
            folders: Some(vec![FolderWords {
                folder,
                group,
                store,
                threads: 1,
                min_files: 1,
                read: OnceLock::new(),
            }]),
        }
    }

    #[test]
    fn the_index_finds_what_a_search_of_all_files_finds() {
        let folder = tempfile::tempdir().unwrap();
        let root = AbsPath::new(folder.path()).unwrap();
        for (name, text) in [
            ("a.py", "x = one\n"),
            ("sub/b.pyi", "def two(): ...\n"),
            ("c.txt", "one"),
            ("d.py", "'one.two'"),
        ] {
            let path = root.join("packages").join(name);
            std::fs::create_dir_all(path.parent().as_path()).unwrap();
            std::fs::write(path.as_path(), text).unwrap();
        }
        let (packages, cache) = (root.join("packages"), root.join("cache"));
        let words = |state: &str| words_in(&packages, state, Some(&cache));
        let found = |names: &[&str]| -> Vec<String> {
            let found = words("1").files_with(names).unwrap();
            found.iter().map(|path| path.strip_prefix(&packages).unwrap().to_owned()).collect()
        };
        assert_eq!(found(&["one"]), ["a.py", "d.py"]);
        // What is cached serves, until the packages have another digest.
        std::fs::write(root.join("packages/e.py").as_path(), "two").unwrap();
        assert_eq!(found(&["two", "x"]), ["a.py", "d.py", "sub/b.pyi"]);
        assert_eq!(found(&["absent"]), [""; 0]);
        assert_eq!(words("2").files_with(&["two"]).unwrap().len(), 3);
        // The list of files alone may be evicted.
        let list = words("2").folders.unwrap()[0].key("files").to_hex();
        let listed = |folder: &std::path::Path| -> Vec<std::path::PathBuf> {
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
        };
        let groups = || listed(cache.as_path()).into_iter().flat_map(|outer| listed(&outer));
        let removed = groups().filter(|group| std::fs::remove_file(group.join(&list)).is_ok());
        assert_eq!(removed.count(), 2, "of both states");
        assert_eq!(words("2").files_with(&["two"]).unwrap().len(), 3);
        // A part that is gone is made again.
        groups().for_each(|group| std::fs::remove_dir_all(group).unwrap());
        assert_eq!(words("2").files_with(&["two"]).unwrap().len(), 3);
        // Without a cache, and with one that cannot be written below a file, all files are read once.
        for cache in [None, Some(root.join("packages/c.txt"))] {
            let words = words_in(&packages, "2", cache.as_ref());
            assert_eq!(words.files_with(&["two"]).unwrap().len(), 3);
            std::fs::write(root.join("packages/e.py").as_path(), "").unwrap();
            assert_eq!(words.files_with(&["two"]).unwrap().len(), 3);
            std::fs::write(root.join("packages/e.py").as_path(), "two").unwrap();
        }
    }

    #[test]
    #[cfg(unix)]
    fn each_folder_is_searched_once() {
        let folder = tempfile::tempdir().unwrap();
        let root = AbsPath::new(folder.path()).unwrap();
        std::fs::create_dir_all(root.join("lib/own").as_path()).unwrap();
        std::fs::create_dir(root.join("library").as_path()).unwrap();
        std::os::unix::fs::symlink("lib", root.join("lib64").as_path()).unwrap();
        let folders = ["lib/own", "lib64", "library", "lib", "library"].map(|name| root.join(name));
        assert_eq!(outermost(folders.to_vec()), ["lib64", "library"].map(|name| root.join(name)));
    }

    #[test]
    #[cfg(unix)]
    fn a_file_that_cannot_be_read_may_have_any_name() {
        let folder = tempfile::tempdir().unwrap();
        let root = AbsPath::new(folder.path()).unwrap();
        // Not a file that can be read, for any user.
        std::fs::create_dir(root.join("p").as_path()).unwrap();
        std::os::unix::net::UnixListener::bind(root.join("p/socket.py").as_path()).unwrap();
        for cache in [None, Some(root.join("cache"))] {
            let words = || words_in(&root.join("p"), "1", cache.as_ref());
            assert_eq!(words().files_with(&["one"]).unwrap().len(), 1);
            assert_eq!(words().files_with(&["one"]).unwrap().len(), 1);
        }
    }
}
