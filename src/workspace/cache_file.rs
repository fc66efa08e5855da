//! Small binary files in lanser's cache: written whole beside their place and renamed into it, read whole, and ignored
//! when anything about them is wrong. A cache can be lost at any time; it can never be believed by mistake.

use std::io::Write as _;

use crate::digest::Digest;
use crate::path::AbsPath;

/// Writes `payload` under a magic word and its digest. Failure is no error: the next run just pays again.
pub(super) fn store(path: &AbsPath, magic: [u8; 8], payload: &[u8]) {
    let folder = path.parent();
    let write = || -> std::io::Result<()> {
        crate::path::private::make(folder.as_path())?;
        let mut file = tempfile::NamedTempFile::new_in(folder.as_path())?;
        file.write_all(&magic)?;
        file.write_all(&checksum(payload).to_le_bytes())?;
        file.write_all(payload)?;
        file.persist(path.as_path()).map_err(|error| error.error)?;
        Ok(())
    };
    let _ = write();
}

/// Reads what [`store`] wrote; `None` when it is missing, of another version, or damaged.
pub(super) fn load(path: &AbsPath, magic: [u8; 8]) -> Option<Vec<u8>> {
    let mut bytes = std::fs::read(path.as_path()).ok()?;
    let payload = bytes.strip_prefix(&magic)?;
    let (sum, payload) = payload.split_at_checked(8)?;
    if sum != checksum(payload).to_le_bytes() {
        return None;
    }
    Some(bytes.split_off(16))
}

/// A cheap sum against truncation and bit rot, not against an adversary: the folder is the user's own.
fn checksum(payload: &[u8]) -> u64 {
    let mut sum = payload.len() as u64;
    for chunk in payload.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        sum = (sum.rotate_left(5) ^ u64::from_le_bytes(word)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
    sum
}

/// Writes fields one after the other.
#[derive(Debug, Default)]
pub(crate) struct Writer(pub(crate) Vec<u8>);

impl Writer {
    pub(crate) fn u64(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn i64(&mut self, value: i64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn digest(&mut self, digest: &Digest) {
        self.0.extend_from_slice(digest.as_bytes());
    }

    pub(crate) fn text(&mut self, text: &str) {
        self.u64(text.len() as u64);
        self.0.extend_from_slice(text.as_bytes());
    }
}

/// Reads fields one after the other; `None` at the first that is not there.
#[derive(Debug)]
pub(crate) struct Reader<'b>(pub(crate) &'b [u8]);

impl<'b> Reader<'b> {
    pub(crate) fn bytes(&mut self, count: usize) -> Option<&'b [u8]> {
        let (head, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(head)
    }

    fn word(&mut self) -> Option<[u8; 8]> {
        self.bytes(8)?.try_into().ok()
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.word().map(u64::from_le_bytes)
    }

    pub(crate) fn i64(&mut self) -> Option<i64> {
        self.word().map(i64::from_le_bytes)
    }

    pub(crate) fn digest(&mut self) -> Option<Digest> {
        self.bytes(32)?.try_into().ok().map(Digest::from_bytes)
    }

    pub(crate) fn text(&mut self) -> Option<&'b str> {
        let length = usize::try_from(self.u64()?).ok()?;
        std::str::from_utf8(self.bytes(length)?).ok()
    }
}
