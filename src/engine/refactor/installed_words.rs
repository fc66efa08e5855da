//! Which files of the installed packages and of the server's stubs write a name. An index of their words is made once for each state of
//! the packages, and cached in parts, of which a search reads those of its names.

use std::collections::BTreeSet;

use crate::digest::Digest;
use crate::engine::inputs::Inputs;
use crate::path::AbsPath;
use crate::text::words::{word_hash, words};
use crate::workspace::disk_cache::DiskCache;
use crate::workspace::files::canonical;
use crate::workspace::parallel::parallel_map;

/// The maximum size of the cache, in bytes. The index of 17 000 files takes 25 MB.
const MAX_BYTES: u64 = 128 << 20;

/// With more files in the installed packages, they are not searched.
const MAX_FILES: usize = 100_000;

/// How many parts the index has.
const PARTS: u64 = 256;

/// The number of a file in the index.
type FileNumber = u32;

/// Stands for every word of a file that cannot be read. If it is the hash of a word, one more file is read.
const ANY_WORD: u64 = u64::MAX;

/// The cache of the index, in the folder of all caches.
pub(super) fn store(cache: &AbsPath) -> DiskCache {
    DiskCache::new(cache.join("installed"), MAX_BYTES)
}

/// The installed files in which one of the names is written, sorted. `None` if not all files can be searched.
pub(super) fn installed_with(
    inputs: &Inputs,
    names: &[String],
    store: Option<&DiskCache>,
    threads: usize,
) -> Option<Vec<AbsPath>> {
    // Names beyond ASCII can be written in several ways.
    let folders = inputs.installed_folders().filter(|_| names.iter().all(|name| name.is_ascii()))?;
    let Some(store) = store else {
        let files = python_files(&folders)?;
        let has = parallel_map(&files, threads, |path| {
            let is_one = |word: &[u8]| names.iter().any(|name| name.as_bytes() == word);
            // What cannot be read is not known to lack the names.
            std::fs::read(path.as_path()).map_or(true, |bytes| words(&bytes).any(is_one))
        });
        return Some(files.into_iter().zip(has).filter(|(_, has)| *has).map(|(path, _)| path).collect());
    };
    let index = WordsOfPackages { store, group: inputs.packages_digest(), folders: &folders, threads };
    index.files_with(names)
}

/// The index of the packages in one state.
struct WordsOfPackages<'s> {
    store: &'s DiskCache,
    group: Digest,
    folders: &'s [AbsPath],
    threads: usize,
}

impl WordsOfPackages<'_> {
    fn files_with(&self, names: &[String]) -> Option<Vec<AbsPath>> {
        let hashes: Vec<u64> = names.iter().map(|name| word_hash(name.as_bytes())).collect();
        // What can be cached, and what is evicted when, does not change the answer.
        self.cached(&hashes).unwrap_or_else(|| self.build(&hashes))
    }

    /// The files with one of the words as the cache has them; `None` if a part that is needed is not cached.
    #[expect(clippy::option_option, reason = "not known, known to be too many, known")]
    fn cached(&self, hashes: &[u64]) -> Option<Option<Vec<AbsPath>>> {
        let numbers: Option<Vec<_>> = hashes.iter().map(|hash| self.numbers(*hash)).collect();
        let Some(numbers) = numbers else { return (self.files() == Some(None)).then_some(None) };
        let numbers: BTreeSet<FileNumber> = numbers.into_iter().flatten().collect();
        if numbers.is_empty() {
            return Some(Some(Vec::new()));
        }
        let files = self.files()??;
        let path = |number: FileNumber| AbsPath::new(files.get(number as usize)?).ok();
        Some(Some(numbers.into_iter().map(path).collect::<Option<_>>()?))
    }

    fn key(&self, part: &str) -> Digest {
        let folders = self.folders.iter().map(AbsPath::as_str);
        Digest::of_fields(std::iter::once(part).chain(folders).map(str::as_bytes))
    }

    /// The searched files; `Some(None)` if there are too many.
    #[expect(clippy::option_option, reason = "not known, known to be too many, known")]
    fn files(&self) -> Option<Option<Vec<String>>> {
        serde_json::from_slice(&self.store.get(&self.group, &self.key("files"))?).ok()
    }

    /// The files with a word, and those that could not be read. `None` if that part of the index is not cached.
    fn numbers(&self, hash: u64) -> Option<Vec<FileNumber>> {
        let part = self.store.get(&self.group, &self.key(&(hash % PARTS).to_string()))?;
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

    /// Makes the index, and returns the files with one of the words. `None` if there are too many files.
    fn build(&self, hashes: &[u64]) -> Option<Vec<AbsPath>> {
        let put = |part: &str, bytes: &[u8]| {
            self.store.put(&self.group, &self.key(part), |out| out.write_all(bytes));
        };
        let Some(files) = python_files(self.folders) else {
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
        // What cannot be read is not known to lack the words.
        let has = |set: &Option<Vec<u64>>| {
            set.as_ref().is_none_or(|all| hashes.iter().any(|hash| all.binary_search(hash).is_ok()))
        };
        let found =
            files.iter().zip(&sets).filter(|(_, set)| has(set)).map(|(path, _)| path.clone()).collect();
        let mut parts = vec![Vec::new(); PARTS as usize];
        for (number, set) in sets.into_iter().enumerate() {
            let number = FileNumber::try_from(number).ok()?;
            let mut add = |part: u64, hash: u64| {
                let part: &mut Vec<u8> = &mut parts[part as usize];
                part.extend(hash.to_le_bytes());
                part.extend(number.to_le_bytes());
            };
            match set {
                Some(hashes) => hashes.into_iter().for_each(|hash| add(hash % PARTS, hash)),
                None => (0..PARTS).for_each(|part| add(part, ANY_WORD)),
            }
        }
        let paths: Vec<&str> = files.iter().map(AbsPath::as_str).collect();
        put("files", &serde_json::to_vec(&paths).ok()?);
        for (number, part) in parts.iter().enumerate() {
            put(&number.to_string(), part);
        }
        Some(found)
    }
}

/// The Python files below folders, each once, with links followed. `None` if there are too many, or a folder cannot be listed.
fn python_files(folders: &[AbsPath]) -> Option<Vec<AbsPath>> {
    let mut pending = folders.to_vec();
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
            let is_python = path.as_str().ends_with(".py") || path.as_str().ends_with(".pyi");
            // A link that leads nowhere is no file.
            match std::fs::metadata(path.as_path()) {
                Ok(metadata) if metadata.is_dir() => pending.push(path),
                Ok(_) if is_python => drop(files.insert(path)),
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
        let store = store(&root.join("cache"));
        let folders = [root.join("packages")];
        let index = WordsOfPackages { store: &store, group: Digest::of(b"1"), folders: &folders, threads: 1 };
        let found = |names: &[&str]| -> Vec<String> {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            let found = index.files_with(&names).unwrap();
            found.iter().map(|path| path.strip_prefix(&folders[0]).unwrap().to_owned()).collect()
        };
        assert_eq!(found(&["one"]), ["a.py", "d.py"]);
        // What is cached serves, until the packages have another digest.
        std::fs::write(root.join("packages/e.py").as_path(), "two").unwrap();
        assert_eq!(found(&["two", "x"]), ["a.py", "d.py", "sub/b.pyi"]);
        assert_eq!(found(&["absent"]), [""; 0]);
        let later = WordsOfPackages { group: Digest::of(b"2"), ..index };
        assert_eq!(later.files_with(&["two".to_owned()]).unwrap().len(), 3);
        // The list of files alone may be evicted.
        let list = later.key("files").to_hex();
        let outer = std::fs::read_dir(root.join("cache/installed").as_path()).unwrap();
        let groups = outer.flat_map(|outer| std::fs::read_dir(outer.unwrap().path()).unwrap());
        let removed =
            groups.filter(|group| std::fs::remove_file(group.as_ref().unwrap().path().join(&list)).is_ok());
        assert_eq!(removed.count(), 2, "of both states");
        assert_eq!(later.files_with(&["two".to_owned()]).unwrap().len(), 3);
        // Nothing can be stored below a file.
        let nowhere = DiskCache::new(root.join("packages/c.txt"), MAX_BYTES);
        let unstored = WordsOfPackages { store: &nowhere, ..later };
        assert_eq!(unstored.files_with(&["two".to_owned()]).unwrap().len(), 3);
        // A part that is gone is made again.
        for group in std::fs::read_dir(root.join("cache/installed").as_path()).unwrap() {
            std::fs::remove_dir_all(group.unwrap().path()).unwrap();
        }
        assert_eq!(later.files_with(&["two".to_owned()]).unwrap().len(), 3);
    }

    #[test]
    #[cfg(unix)]
    fn a_file_that_cannot_be_read_may_have_any_name() {
        let folder = tempfile::tempdir().unwrap();
        let root = AbsPath::new(folder.path()).unwrap();
        // Not a file that can be read, for any user.
        std::fs::create_dir(root.join("p").as_path()).unwrap();
        std::os::unix::net::UnixListener::bind(root.join("p/socket.py").as_path()).unwrap();
        let store = store(&root.join("cache"));
        let folders = [root.join("p")];
        let index = WordsOfPackages { store: &store, group: Digest::of(b"1"), folders: &folders, threads: 1 };
        assert_eq!(index.files_with(&["one".to_owned()]).unwrap().len(), 1);
    }
}
