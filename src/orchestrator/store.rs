//! The local store of bundles: what was answered here lately, by `bundleId`, for `show` and `--prev`.

use crate::bundle::seal::bundle_id;
use crate::digest::Digest;
use crate::model::bundle::Bundle;
use crate::path::AbsPath;
use crate::workspace::kept::Kept;

/// The most bytes that the store takes.
const LIMIT: u64 = 256 << 20;

/// A longer bundle is not stored: whoever asks for so much keeps it.
const LONGEST: usize = 8 << 20;

fn kept(cache: &AbsPath) -> Kept {
    Kept::new(cache.join("bundles"), LIMIT)
}

/// Keeps a bundle. Blocking. Failure is no error.
pub(super) fn store(cache: &AbsPath, bundle: &Bundle) {
    let (kept, id) = (kept(cache), bundle.bundle_id);
    if kept.has_group(&id) {
        return;
    }
    if let Ok(bytes) = serde_json::to_vec(bundle)
        && bytes.len() <= LONGEST
    {
        kept.put(&id, &id, &bytes);
    }
}

/// A bundle that was answered here. Blocking.
#[must_use]
pub fn stored_bundle(cache: &AbsPath, id: &Digest) -> Option<Bundle> {
    let bytes = kept(cache).get(id, id)?;
    let bundle: Bundle = serde_json::from_slice(&bytes).ok()?;
    (bundle_id(&bundle).ok()? == *id).then_some(bundle)
}
