//! Caches definitions of single tokens for as long as the inputs are the same: the second question about
//! a common name asks for none of them again.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::lsp::{Listing, LspLocation};
use crate::path::AbsPath;

/// The most tokens whose definitions are cached: about 20 MB.
const MAX_TOKENS: usize = 100_000;

/// Definitions by file and byte offset of the token.
#[derive(Debug, Default)]
pub(super) struct DefinitionCache {
    found: Mutex<BTreeMap<AbsPath, BTreeMap<usize, Listing<LspLocation>>>>,
    count: std::sync::atomic::AtomicUsize,
}

impl DefinitionCache {
    /// The definitions of a token, if they are cached.
    pub(super) fn get(&self, path: &AbsPath, offset: usize) -> Option<Listing<LspLocation>> {
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.get(path)?.get(&offset).cloned()
    }

    /// Caches the definitions of a token, unless there are too many already.
    pub(super) fn put(&self, path: &AbsPath, offset: usize, listing: &Listing<LspLocation>) {
        use std::sync::atomic::Ordering;
        if self.count.load(Ordering::Relaxed) >= MAX_TOKENS {
            return;
        }
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let of_file = found.entry(path.clone()).or_default();
        if of_file.insert(offset, listing.clone()).is_none() {
            self.count.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_asked_is_known() {
        let cache = DefinitionCache::default();
        let path = AbsPath::new("/w/a.py").unwrap();
        assert_eq!(cache.get(&path, 3), None);
        let listing = Listing { items: Vec::new(), skipped: 1 };
        cache.put(&path, 3, &listing);
        assert_eq!(cache.get(&path, 3), Some(listing));
        assert_eq!(cache.get(&path, 4), None);
    }
}
