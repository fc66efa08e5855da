//! Which file contents contain which words, cached by content digest between runs.
//!
//! Only hashes of words are stored: a collision makes one more file a candidate, and candidates are read anyway.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::cache_file::{FieldReader, FieldWriter, load, store};
use super::parallel::parallel_map;
use crate::digest::Digest;
use crate::path::AbsPath;
use crate::text::words::{word_hash, words};

const MAGIC: [u8; 8] = *b"lnsrwd02";

/// The index is saved only when it has more new contents than this.
const SAVE_THRESHOLD: usize = 8;

/// The hashes of the words of one content. Invariant: ascending, no duplicates.
pub(super) type WordSet = Box<[u64]>;

/// The words of a UTF-8 source text.
pub(super) fn word_set(bytes: &[u8]) -> WordSet {
    let mut all: Vec<u64> = words(bytes).map(word_hash).collect();
    all.sort_unstable();
    all.dedup();
    // A copy, because the vector has capacity for every repetition of a word.
    all.as_slice().into()
}

/// The words of several contents, by digest.
pub(super) type WordSets = BTreeMap<Digest, Arc<WordSet>>;

/// The words of every content of a snapshot, read when they are first needed.
#[derive(Debug)]
pub(super) struct WordIndex {
    /// The index's cache file.
    path: Option<AbsPath>,
    /// The contents of the snapshot.
    digests: BTreeSet<Digest>,
    /// The words of contents that an earlier snapshot's index had read.
    carried: WordSets,
    /// The words of all contents, once they were needed.
    all: Mutex<Option<WordSets>>,
    /// How many contents were read that are not in the cache file.
    new_contents: AtomicUsize,
}

impl WordIndex {
    pub(super) fn new(path: Option<AbsPath>, digests: BTreeSet<Digest>) -> Self {
        Self {
            path,
            digests,
            carried: WordSets::new(),
            all: Mutex::default(),
            new_contents: AtomicUsize::new(0),
        }
    }

    /// The index of a later snapshot, with the known words of the contents that remain.
    pub(super) fn followed_by(&self, digests: BTreeSet<Digest>) -> Self {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let known = all.as_ref().unwrap_or(&self.carried).iter();
        let carried =
            known.filter(|(digest, _)| digests.contains(digest)).map(|(digest, set)| (*digest, set.clone()));
        let carried = carried.collect();
        let new_contents = AtomicUsize::new(self.new_contents.load(Ordering::Relaxed));
        Self { path: self.path.clone(), digests, carried, all: Mutex::default(), new_contents }
    }

    /// The contents that contain `word`. `read` returns the text of a content that is not in the cache.
    pub(super) fn digests_with(
        &self,
        word: &str,
        threads: usize,
        read: impl Fn(&Digest) -> Option<String> + Sync,
    ) -> BTreeSet<Digest> {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let all = all.get_or_insert_with(|| {
            let mut all = self.known();
            let missing: Vec<Digest> =
                self.digests.iter().filter(|digest| !all.contains_key(digest)).copied().collect();
            self.new_contents.fetch_add(missing.len(), Ordering::Relaxed);
            let sets =
                parallel_map(&missing, threads, |digest| read(digest).map(|text| word_set(text.as_bytes())));
            all.extend(
                missing.into_iter().zip(sets).filter_map(|(digest, set)| Some((digest, Arc::new(set?)))),
            );
            all
        });
        let hash = word_hash(word.as_bytes());
        all.iter().filter(|(_, set)| set.binary_search(&hash).is_ok()).map(|(digest, _)| *digest).collect()
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
        let known = all.as_ref().map_or_else(|| Cow::Owned(self.known()), Cow::Borrowed);
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
        if self.digests.iter().all(|digest| self.carried.contains_key(digest)) {
            return self.carried.clone();
        }
        let mut known = self.path.as_ref().and_then(load_sets).unwrap_or_default();
        known.retain(|digest, _| self.digests.contains(digest));
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
