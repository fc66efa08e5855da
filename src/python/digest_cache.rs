//! A cache of values that are computed from a file's content, keyed by the content's digest.
//!
//! Parsing takes most of the time of a request, and one file is requested many times. A syntax tree takes some ten times the
//! memory of its text; what a request needs from it takes about as much as the text. So the latter is cached.

use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use quick_cache::Weighter;
use quick_cache::unsync::Cache;

use crate::digest::Digest;

/// The limit of each cache, in bytes as [`MemorySize::memory_bytes`] counts them: what is read of all files of a workspace of the size
/// of django fits in.
const CACHE_LIMIT_BYTES: u64 = 32 << 20;

/// What an entry takes besides its value, so that there are not too many empty ones.
const ENTRY_BYTES: u64 = 256;

/// How many files fill a cache, roughly.
const EXPECTED_FILES: usize = 2048;

/// A value whose memory use can be estimated.
pub(crate) trait MemorySize {
    /// The approximate number of bytes.
    fn memory_bytes(&self) -> usize;
}

/// A cache that keeps what is used again: going through all files of a large workspace does not empty it.
pub(crate) struct DigestCache<T>(LazyLock<Mutex<Cache<Digest, Arc<T>, Bytes>>>);

#[derive(Clone)]
struct Bytes;

impl<T: MemorySize> Weighter<Digest, Arc<T>> for Bytes {
    fn weight(&self, _: &Digest, value: &Arc<T>) -> u64 {
        value.memory_bytes() as u64 + ENTRY_BYTES
    }
}

impl<T: MemorySize + Clone> DigestCache<T> {
    pub(crate) const fn new() -> Self {
        Self(LazyLock::new(|| Mutex::new(Cache::with_weighter(EXPECTED_FILES, CACHE_LIMIT_BYTES, Bytes))))
    }

    /// The cached value for this content, or what `make` returns.
    pub(crate) fn get(&self, of: Digest, make: impl FnOnce() -> T) -> Arc<T> {
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(value) = lock().get(&of) {
            return value.clone();
        }
        let value = make();
        // A clone, because the original was allocated between the nodes of a tree and would fragment their memory.
        let value = Arc::new(value.clone());
        lock().insert(of, value.clone());
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl MemorySize for Vec<u8> {
        fn memory_bytes(&self) -> usize {
            self.len()
        }
    }

    #[test]
    fn values_are_cached_by_content_within_the_limit() {
        let cache = DigestCache::new();
        let of = |number: usize| Digest::of(number.to_string().as_bytes());
        let first = cache.get(of(0), || vec![0; 1 << 10]);
        assert!(Arc::ptr_eq(&first, &cache.get(of(0), || unreachable!("it is cached"))));
        for number in 1..80 {
            drop(cache.get(of(number), || vec![0; 1 << 20]));
        }
        assert!(cache.0.lock().unwrap().weight() <= CACHE_LIMIT_BYTES);
        // What is used again outlives a scan.
        for number in 100..180 {
            drop(cache.get(of(0), || vec![0; 1 << 10]));
            drop(cache.get(of(number), || vec![0; 1 << 20]));
        }
        assert!(Arc::ptr_eq(
            &cache.get(of(0), || vec![1]),
            &cache.get(of(0), || unreachable!("it is cached"))
        ));
    }
}
