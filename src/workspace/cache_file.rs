//! Small binary cache files.
//!
//! A file is written to a temporary file in the same folder and renamed into place. It is read whole, and ignored when
//! its magic number or its checksum is wrong. Losing a cache file is harmless; using a damaged one would not be.

use std::io::Write as _;

use crate::digest::Digest;
use crate::path::AbsPath;

/// Writes a magic number, the payload's checksum, and the payload. Errors are ignored: the next run computes the
/// payload again.
pub(super) fn store(path: &AbsPath, magic: [u8; 8], payload: &[u8]) {
    let folder = path.parent();
    let write = || -> std::io::Result<()> {
        crate::path::private::create(folder.as_path())?;
        let mut file = tempfile::NamedTempFile::new_in(folder.as_path())?;
        file.write_all(&magic)?;
        file.write_all(&checksum(payload).to_le_bytes())?;
        file.write_all(payload)?;
        file.persist(path.as_path()).map_err(|error| error.error)?;
        Ok(())
    };
    let _ = write();
}

/// Reads a payload that [`store`] wrote; `None` when the file is missing, damaged, or has another magic number.
pub(super) fn load(path: &AbsPath, magic: [u8; 8]) -> Option<Vec<u8>> {
    let mut bytes = std::fs::read(path.as_path()).ok()?;
    let payload = bytes.strip_prefix(&magic)?;
    let (sum, payload) = payload.split_at_checked(8)?;
    if sum != checksum(payload).to_le_bytes() {
        return None;
    }
    // In place: a copy would take as much memory again.
    bytes.drain(..16);
    Some(bytes)
}

/// A cheap checksum against truncation and bit rot, not against an attacker: only the user can write to the folder.
fn checksum(payload: &[u8]) -> u64 {
    let mut sum = payload.len() as u64;
    for chunk in payload.chunks(8) {
        let mut eight_bytes = [0; 8];
        eight_bytes[..chunk.len()].copy_from_slice(chunk);
        sum = (sum.rotate_left(5) ^ u64::from_le_bytes(eight_bytes)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
    sum
}

/// Writes fields in sequence.
#[derive(Debug, Default)]
pub(crate) struct FieldWriter(pub(crate) Vec<u8>);

impl FieldWriter {
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

/// Reads fields in sequence. Each method returns `None` when the bytes do not hold such a field.
#[derive(Debug)]
pub(crate) struct FieldReader<'b>(pub(crate) &'b [u8]);

impl<'b> FieldReader<'b> {
    pub(crate) fn bytes(&mut self, count: usize) -> Option<&'b [u8]> {
        let (head, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(head)
    }

    fn eight_bytes(&mut self) -> Option<[u8; 8]> {
        self.bytes(8)?.try_into().ok()
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.eight_bytes().map(u64::from_le_bytes)
    }

    pub(crate) fn i64(&mut self) -> Option<i64> {
        self.eight_bytes().map(i64::from_le_bytes)
    }

    pub(crate) fn digest(&mut self) -> Option<Digest> {
        self.bytes(32)?.try_into().ok().map(Digest::from_bytes)
    }

    pub(crate) fn text(&mut self) -> Option<&'b str> {
        let length = usize::try_from(self.u64()?).ok()?;
        std::str::from_utf8(self.bytes(length)?).ok()
    }
}
