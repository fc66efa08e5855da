//! The local store of recent bundles, by `bundleId`, for `show` and `--prev`.

use std::io::{self, Write};

use crate::bundle::seal::bundle_id;
use crate::digest::Digest;
use crate::model::bundle::Bundle;
use crate::path::AbsPath;
use crate::reward::verify;
use crate::workspace::disk_cache::DiskCache;

/// The maximum size of the store, in bytes.
const MAX_BYTES: u64 = 256 << 20;

/// Longer bundles are not stored. A caller that wants that much output keeps it.
const MAX_BUNDLE_BYTES: usize = 8 << 20;

fn disk_cache(cache: &AbsPath) -> DiskCache {
    DiskCache::new(cache.join("bundles"), MAX_BYTES)
}

/// Stores a bundle. Errors are ignored. Blocking.
pub(super) fn store(cache: &AbsPath, bundle: &Bundle) {
    let (disk_cache, id) = (disk_cache(cache), bundle.bundle_id);
    let write = |out: &mut dyn Write| {
        serde_json::to_writer(SizeLimitedWriter { out, left: MAX_BUNDLE_BYTES }, bundle)
    };
    if disk_cache.has(&id, &id) || write(&mut io::sink()).is_err() {
        return;
    }
    disk_cache.put(&id, &id, |out| Ok(write(out)?));
}

/// A writer that fails after a number of bytes.
struct SizeLimitedWriter<'o> {
    out: &'o mut dyn Write,
    left: usize,
}

impl Write for SizeLimitedWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.left = self.left.checked_sub(bytes.len()).ok_or(io::ErrorKind::FileTooLarge)?;
        self.out.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Returns a stored bundle. Blocking.
#[must_use]
pub fn stored_bundle(cache: &AbsPath, id: &Digest) -> Option<Bundle> {
    let bytes = disk_cache(cache).get(id, id)?;
    let bundle: Bundle = serde_json::from_slice(&bytes).ok()?;
    (bundle_id(&bundle).ok()? == *id && verify(&bundle).is_ok()).then_some(bundle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_up_to_the_limit() {
        let mut out = Vec::new();
        let mut limited = SizeLimitedWriter { out: &mut out, left: 5 };
        limited.write_all(b"abc").unwrap();
        assert_eq!(limited.write(b"def").unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(out, b"abc");
        let mut limited = SizeLimitedWriter { out: &mut out, left: 2 };
        limited.write_all(b"de").unwrap();
        limited.flush().unwrap();
        assert_eq!(out, b"abcde");
    }
}
