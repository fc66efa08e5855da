//! Which contents hold which words, kept by content digest between runs.
//!
//! Only hashes of words are kept: a collision makes one more file a candidate, and candidates are read anyway.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::cache_file::{Reader, Writer, load, store};
use super::parallel::parallel_map;
use crate::digest::Digest;
use crate::path::AbsPath;
use crate::text::words::{word_hash, words};

const MAGIC: [u8; 8] = *b"lnsrwd02";

/// So few contents are not worth writing the whole index again.
const FEW: usize = 8;

/// The hashes of the words of one content. Invariant: ascending, no duplicates.
pub(super) type WordSet = Box<[u64]>;

/// The words of some source in UTF-8.
pub(super) fn word_set(bytes: &[u8]) -> WordSet {
    let mut all: Vec<u64> = words(bytes).map(word_hash).collect();
    all.sort_unstable();
    all.dedup();
    // A copy: there was room for every word as often as it stands there.
    all.as_slice().into()
}

/// The words of contents.
pub(super) type Sets = BTreeMap<Digest, Arc<WordSet>>;

/// The words of every content of a snapshot.
#[derive(Debug)]
pub(super) struct WordIndex {
    place: Option<AbsPath>,
    /// The contents of the snapshot.
    digests: BTreeSet<Digest>,
    /// The words of contents that the scan read anyway.
    fresh: Sets,
    /// The words of all contents, once somebody asked.
    all: Mutex<Option<Sets>>,
    /// How many contents were read that no cache knows.
    learned: AtomicUsize,
}

impl WordIndex {
    pub(super) fn new(place: Option<AbsPath>, digests: BTreeSet<Digest>, fresh: Sets) -> Self {
        let learned = AtomicUsize::new(fresh.len());
        Self { place, digests, fresh, all: Mutex::new(None), learned }
    }

    /// The index of a later snapshot: what this one knows of the contents that are still there, and what is fresh.
    pub(super) fn followed_by(&self, digests: BTreeSet<Digest>, fresh: Sets) -> Self {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let known = all.as_ref().unwrap_or(&self.fresh).iter();
        let learned = AtomicUsize::new(self.learned.load(Ordering::Relaxed) + fresh.len());
        let mut fresh: Sets = fresh;
        fresh.extend(
            known.filter(|(digest, _)| digests.contains(digest)).map(|(digest, set)| (*digest, set.clone())),
        );
        Self { place: self.place.clone(), digests, fresh, all: Mutex::new(None), learned }
    }

    /// The contents that hold `word`. `read` gives the text of a content that no cache knows.
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
            self.learned.fetch_add(missing.len(), Ordering::Relaxed);
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

    /// Writes the index when more was learned than the next process learns in a moment.
    pub(super) fn keep(&self) {
        let Some(place) = self.place.as_ref().filter(|_| self.learned.load(Ordering::Relaxed) > FEW) else {
            return;
        };
        self.learned.store(0, Ordering::Relaxed);
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        // Before somebody asked, it need not be of all contents: for the next process it is good, but not for an answer.
        let known = all.as_ref().map_or_else(|| Cow::Owned(self.known()), Cow::Borrowed);
        let mut writer = Writer::default();
        writer.u64(known.len() as u64);
        for (digest, set) in known.iter() {
            writer.digest(digest);
            writer.u64(set.len() as u64);
            set.iter().for_each(|&hash| writer.u64(hash));
        }
        store(place, MAGIC, &writer.0);
    }

    /// What the cache knows of this snapshot's contents, and what the scan read.
    fn known(&self) -> Sets {
        if self.digests.iter().all(|digest| self.fresh.contains_key(digest)) {
            return self.fresh.clone();
        }
        let mut known = self.place.as_ref().and_then(load_sets).unwrap_or_default();
        known.retain(|digest, _| self.digests.contains(digest));
        known.extend(self.fresh.iter().map(|(digest, set)| (*digest, set.clone())));
        known
    }
}

fn load_sets(place: &AbsPath) -> Option<Sets> {
    let payload = load(place, MAGIC)?;
    let mut reader = Reader(&payload);
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
