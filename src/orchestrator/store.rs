//! The local store of bundles: what was answered here lately, by `bundleId`, for `show` and `--prev`.

use std::io::{self, Write};

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
    let tell = |out: &mut dyn Write| serde_json::to_writer(Limited { out, left: LONGEST }, bundle);
    if kept.has(&id, &id) || tell(&mut io::sink()).is_err() {
        return;
    }
    kept.put(&id, &id, |out| Ok(tell(out)?));
}

/// A writer that takes so many bytes and no more.
struct Limited<'o> {
    out: &'o mut dyn Write,
    left: usize,
}

impl Write for Limited<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.left = self.left.checked_sub(bytes.len()).ok_or(io::ErrorKind::FileTooLarge)?;
        self.out.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// A bundle that was answered here. Blocking.
#[must_use]
pub fn stored_bundle(cache: &AbsPath, id: &Digest) -> Option<Bundle> {
    let bytes = kept(cache).get(id, id)?;
    let bundle: Bundle = serde_json::from_slice(&bytes).ok()?;
    (bundle_id(&bundle).ok()? == *id).then_some(bundle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_reached_and_not_passed() {
        let mut out = Vec::new();
        let mut limited = Limited { out: &mut out, left: 5 };
        limited.write_all(b"abc").unwrap();
        assert_eq!(limited.write(b"def").unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(out, b"abc");
        let mut limited = Limited { out: &mut out, left: 2 };
        limited.write_all(b"de").unwrap();
        limited.flush().unwrap();
        assert_eq!(out, b"abcde");
    }
}
