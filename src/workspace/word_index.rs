//! Which file contents contain which words, cached by content digest between runs.
//!
//! Only hashes of words are stored: a collision makes one more file a candidate, and candidates are read anyway.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::cache_file::{FieldReader, FieldWriter, load, store};
use super::parallel::parallel_map;
use crate::digest::Digest;
use crate::path::{AbsPath, WorkspacePath};
use crate::text::words::{word_hash, words};

const MAGIC: [u8; 8] = *b"lnsrwd02";

/// The index is saved only when it has more new contents than this.
const SAVE_THRESHOLD: usize = 8;

/// The hashes of the words of one content. Invariant: ascending, no duplicates.
type WordSet = Box<[u64]>;

/// The words of a UTF-8 source text.
fn word_set(bytes: &[u8]) -> WordSet {
    let mut all: Vec<u64> = words(bytes).map(word_hash).collect();
    all.sort_unstable();
    all.dedup();
    // A copy, because the vector has capacity for every repetition of a word.
    all.as_slice().into()
}

/// The words of several contents, by digest.
type WordSets = BTreeMap<Digest, Arc<WordSet>>;

/// The files of a snapshot by their content.
pub(super) type FilesByContent = BTreeMap<Digest, Vec<WorkspacePath>>;

/// After this many searches a table of all words pays: to make it takes as long as a hundred searches without it.
const SEARCHES_WITHOUT_TABLE: usize = 64;

/// The words of every content of a snapshot, read when they are first needed.
#[derive(Debug)]
pub(super) struct WordIndex {
    /// The index's cache file.
    path: Option<AbsPath>,
    files: FilesByContent,
    /// The words of contents that an earlier snapshot's index had read.
    carried: WordSets,
    /// The words of all contents, once they were needed.
    all: Mutex<Option<AllWords>>,
    /// How many contents were read that are not in the cache file.
    new_contents: AtomicUsize,
}

/// The words of all contents.
#[derive(Debug)]
struct AllWords {
    sets: WordSets,
    searches: usize,
    table: Option<WordTable>,
}

/// The contents that have a word, by the word.
#[derive(Debug)]
struct WordTable {
    /// Ascending.
    contents: Vec<Digest>,
    /// The hashes of all words, ascending, with where their part of `positions` begins.
    words: Vec<(u64, u32)>,
    /// Positions in `contents`.
    positions: Vec<u32>,
}

impl WordTable {
    /// `None` if there are too many.
    fn new(sets: &WordSets) -> Option<Self> {
        let mut all: Vec<(u64, u32)> = Vec::with_capacity(sets.values().map(|set| set.len()).sum());
        for (position, set) in sets.values().enumerate() {
            let position = u32::try_from(position).ok()?;
            all.extend(set.iter().map(|&word| (word, position)));
        }
        all.sort_unstable();
        let mut words: Vec<(u64, u32)> = Vec::new();
        for (at, (word, _)) in all.iter().enumerate() {
            if words.last().is_none_or(|(last, _)| last != word) {
                words.push((*word, u32::try_from(at).ok()?));
            }
        }
        let positions = all.into_iter().map(|(_, position)| position).collect();
        Some(Self { contents: sets.keys().copied().collect(), words, positions })
    }

    fn contents_with(&self, word: u64) -> impl Iterator<Item = &Digest> {
        let found = self.words.binary_search_by_key(&word, |(known, _)| *known);
        let start = |at: usize| self.words.get(at).map_or(self.positions.len(), |(_, start)| *start as usize);
        let part = found.map_or(0..0, |at| start(at)..start(at + 1));
        self.positions[part].iter().map(|position| &self.contents[*position as usize])
    }
}

impl WordIndex {
    pub(super) fn new(path: Option<AbsPath>, files: FilesByContent) -> Self {
        let new_contents = AtomicUsize::new(0);
        Self { path, files, carried: WordSets::new(), all: Mutex::default(), new_contents }
    }

    /// The index of a later snapshot, with the known words of the contents that remain.
    pub(super) fn followed_by(&self, files: FilesByContent) -> Self {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let known = all.as_ref().map_or(&self.carried, |all| &all.sets).iter();
        let carried = known
            .filter(|(digest, _)| files.contains_key(digest))
            .map(|(digest, set)| (*digest, set.clone()));
        let carried = carried.collect();
        let new_contents = AtomicUsize::new(self.new_contents.load(Ordering::Relaxed));
        Self { path: self.path.clone(), files, carried, all: Mutex::default(), new_contents }
    }

    /// The files that contain `word`, ascending. `read` returns the text of a content that is not in the cache.
    pub(super) fn files_with(
        &self,
        word: &str,
        threads: usize,
        read: impl Fn(&WorkspacePath, Digest) -> Option<String> + Sync,
    ) -> Vec<WorkspacePath> {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let all = all.get_or_insert_with(|| {
            let mut sets = self.known();
            let missing: Vec<(Digest, &WorkspacePath)> = self
                .files
                .iter()
                .filter(|(digest, _)| !sets.contains_key(digest))
                .filter_map(|(digest, paths)| Some((*digest, paths.first()?)))
                .collect();
            self.new_contents.fetch_add(missing.len(), Ordering::Relaxed);
            let found = parallel_map(&missing, threads, |(digest, path)| {
                read(path, *digest).map(|text| word_set(text.as_bytes()))
            });
            let found = missing.iter().zip(found);
            sets.extend(found.filter_map(|((digest, _), set)| Some((*digest, Arc::new(set?)))));
            AllWords { sets, searches: 0, table: None }
        });
        all.searches += 1;
        if all.searches > SEARCHES_WITHOUT_TABLE && all.table.is_none() {
            all.table = WordTable::new(&all.sets);
        }
        let hash = word_hash(word.as_bytes());
        let files_of = |digest: &Digest| self.files.get(digest).into_iter().flatten().cloned();
        let mut files: Vec<WorkspacePath> = match &all.table {
            Some(table) => table.contents_with(hash).flat_map(files_of).collect(),
            None => {
                let with_word = all.sets.iter().filter(|(_, set)| set.binary_search(&hash).is_ok());
                with_word.flat_map(|(digest, _)| files_of(digest)).collect()
            }
        };
        files.sort_unstable();
        files
    }

    /// Writes the index to its cache file when it has more than [`SAVE_THRESHOLD`] new contents.
    pub(super) fn save(&self) {
        let Some(path) =
            self.path.as_ref().filter(|_| self.new_contents.load(Ordering::Relaxed) > SAVE_THRESHOLD)
        else {
            return;
        };
        self.new_contents.store(0, Ordering::Relaxed);
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        // Without a lookup so far, the known words may not cover all contents. That is enough for the cache file, not
        // for a lookup.
        let known = all.as_ref().map_or_else(|| Cow::Owned(self.known()), |all| Cow::Borrowed(&all.sets));
        let mut writer = FieldWriter::default();
        writer.u64(known.len() as u64);
        for (digest, set) in known.iter() {
            writer.digest(digest);
            writer.u64(set.len() as u64);
            set.iter().for_each(|&hash| writer.u64(hash));
        }
        store(path, MAGIC, &writer.0);
    }

    /// The words of this snapshot's contents as far as the cache file and earlier snapshots have them.
    fn known(&self) -> WordSets {
        if self.files.keys().all(|digest| self.carried.contains_key(digest)) {
            return self.carried.clone();
        }
        let mut known = self.path.as_ref().and_then(load_sets).unwrap_or_default();
        known.retain(|digest, _| self.files.contains_key(digest));
        known.extend(self.carried.iter().map(|(digest, set)| (*digest, set.clone())));
        known
    }
}

fn load_sets(path: &AbsPath) -> Option<WordSets> {
    let payload = load(path, MAGIC)?;
    let mut reader = FieldReader(&payload);
    let count = reader.u64()?;
    let mut sets = BTreeMap::new();
    for _ in 0..count {
        let digest = reader.digest()?;
        let length = usize::try_from(reader.u64()?).ok()?.checked_mul(8)?;
        let set = reader.bytes(length)?.chunks_exact(8).map(|word| word.try_into().map(u64::from_le_bytes));
        sets.insert(digest, Arc::new(set.collect::<Result<_, _>>().ok()?));
    }
    Some(sets)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_table_finds_what_the_sets_have(texts in proptest::collection::vec("([a-e]{1,2} ){0,6}", 0..12)) {
            let mut files = FilesByContent::new();
            for (number, text) in texts.iter().enumerate() {
                let path = WorkspacePath::new(&format!("m{number}.py")).expect("a path");
                files.entry(Digest::of(text.as_bytes())).or_default().push(path);
            }
            let text_of = |path: &WorkspacePath| {
                texts[path.as_str()[1..].trim_end_matches(".py").parse::<usize>().expect("a number")].clone()
            };
            let index = WordIndex::new(None, files);
            let search = |word: &str| index.files_with(word, 1, |path, _| Some(text_of(path)));
            let all_words = ["a", "b", "e", "ab", "ee", "zz"];
            let before = all_words.map(search);
            for _ in 0..SEARCHES_WITHOUT_TABLE {
                search("a");
            }
            prop_assert!(index.all.lock().expect("no panic").as_ref().is_some_and(|all| all.table.is_some()));
            prop_assert_eq!(&before, &all_words.map(search));
            for (word, found) in all_words.iter().zip(before) {
                let mut expected: Vec<WorkspacePath> = index.files.values().flatten().cloned().collect();
                expected.retain(|path| text_of(path).split(' ').any(|known| known == *word));
                expected.sort();
                prop_assert_eq!(found, expected);
            }
        }
    }
}
