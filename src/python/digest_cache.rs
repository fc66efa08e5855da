//! An LRU cache of values that are computed from a file's content, keyed by the content's digest.
//!
//! Parsing takes most of the time of a request, and one file is requested many times. A syntax tree takes some ten times the
//! memory of its text; what a request needs from it takes about as much as the text. So the latter is cached.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::digest::Digest;

/// The limit of each cache, in bytes as [`MemorySize::memory_bytes`] counts them.
static CACHE_LIMIT_BYTES: AtomicUsize = AtomicUsize::new(4 << 20);

/// Raises the limit of each cache, if it is lower.
pub(super) fn raise_cache_limit(bytes: usize) {
    CACHE_LIMIT_BYTES.fetch_max(bytes, Ordering::Relaxed);
}

/// The most files that one cache holds: they are searched linearly.
const MAX_FILES: usize = 2048;

/// A value whose memory use can be estimated.
pub(super) trait MemorySize {
    /// The approximate number of bytes.
    fn memory_bytes(&self) -> usize;
}

/// The digest, value and size of each entry, least recently used first.
pub(super) struct DigestCache<T>(Mutex<VecDeque<(Digest, Arc<T>, usize)>>);

impl<T: MemorySize + Clone> DigestCache<T> {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(VecDeque::new()))
    }

    /// The cached value for this content, or what `make` returns.
    pub(super) fn get(&self, of: Digest, make: impl FnOnce() -> T) -> Arc<T> {
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = {
            let mut entries = lock();
            let at = entries.iter().rposition(|(digest, ..)| *digest == of);
            at.and_then(|at| entries.remove(at))
        };
        let (digest, value, bytes) = known.unwrap_or_else(|| {
            let value = make();
            let bytes = value.memory_bytes();
            // A clone, because the original was allocated between the nodes of a tree and would fragment their memory.
            (of, Arc::new(value.clone()), bytes)
        });
        let mut entries = lock();
        // Another thread may have inserted it meanwhile.
        entries.retain(|(other, ..)| *other != digest);
        entries.push_back((digest, value.clone(), bytes));
        let mut total: usize = entries.iter().map(|(.., bytes)| bytes).sum();
        while entries.len() > MAX_FILES
            || (entries.len() > 1 && total > CACHE_LIMIT_BYTES.load(Ordering::Relaxed))
        {
            let Some((.., dropped)) = entries.pop_front() else { break };
            total -= dropped;
        }
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
        let first = cache.get(of(0), || vec![0; 1 << 20]);
        assert!(Arc::ptr_eq(&first, &cache.get(of(0), || unreachable!("it is cached"))));
        for number in 1..80 {
            drop(cache.get(of(number), || vec![0; 1 << 20]));
        }
        let entries = cache.0.lock().unwrap();
        let bytes: usize = entries.iter().map(|(_, value, _)| value.memory_bytes()).sum();
        assert!(bytes <= CACHE_LIMIT_BYTES.load(Ordering::Relaxed), "{bytes}");
        assert!(entries.iter().any(|(digest, ..)| *digest == of(79)), "the latest is cached");
        assert!(entries.iter().all(|(digest, ..)| *digest != of(0)), "the first is not");
    }
}
