//! Writes git's binary patches, for contents that a text diff in JSON cannot represent: bytes that are not UTF-8.
//!
//! A whole content is written as `literal`: a zlib stream in git's base 85. The stream is stored, not compressed, because
//! such files are rare and small, and a compressor's output may differ between versions. Binary patches are never read.

use std::fmt::Write as _;

use sha1::{Digest as _, Sha1};

/// The most bytes in one stored deflate block.
const MAX_BLOCK_BYTES: usize = 0xffff;

/// The most bytes in one line of a binary patch.
const MAX_LINE_BYTES: usize = 52;

const DIGITS: &[u8; 85] =
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";

/// The object id of a blob, as in the index line of a binary patch; zeros for no file.
#[must_use]
pub fn blob_id(content: Option<&[u8]>) -> String {
    let Some(content) = content else { return "0".repeat(40) };
    let mut hasher = Sha1::new();
    hasher.update(format!("blob {}\0", content.len()));
    hasher.update(content);
    hasher.finalize().iter().fold(String::new(), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

/// The body of a binary patch between two contents.
#[must_use]
pub fn patch(before: &[u8], after: &[u8]) -> String {
    let mut out = String::from("GIT binary patch\n");
    for content in [after, before] {
        let _ = writeln!(out, "literal {}", content.len());
        for chunk in store_uncompressed(content).chunks(MAX_LINE_BYTES) {
            let length = u8::try_from(chunk.len()).unwrap_or(0);
            let sign = if length <= 26 { b'A' + length - 1 } else { b'a' + length - 27 };
            out.push(char::from(sign));
            for group in chunk.chunks(4) {
                let mut word = [0; 4];
                word[..group.len()].copy_from_slice(group);
                let mut number = u32::from_be_bytes(word);
                let mut digits = [0; 5];
                for digit in digits.iter_mut().rev() {
                    *digit = DIGITS[(number % 85) as usize];
                    number /= 85;
                }
                out.extend(digits.map(char::from));
            }
            out.push('\n');
        }
        out.push('\n');
    }
    out
}

/// A zlib stream with the uncompressed content.
fn store_uncompressed(content: &[u8]) -> Vec<u8> {
    let mut out = vec![0x78, 0x01];
    let mut blocks = content.chunks(MAX_BLOCK_BYTES).peekable();
    if blocks.peek().is_none() {
        out.extend([1, 0, 0, 0xff, 0xff]);
    }
    while let Some(block) = blocks.next() {
        let length = u16::try_from(block.len()).unwrap_or(u16::MAX);
        out.push(u8::from(blocks.peek().is_none()));
        out.extend(length.to_le_bytes());
        out.extend((!length).to_le_bytes());
        out.extend(block);
    }
    let (mut a, mut b) = (1_u32, 0_u32);
    for &byte in content {
        a = (a + u32::from(byte)) % 65_521;
        b = (b + a) % 65_521;
    }
    out.extend((b << 16 | a).to_be_bytes());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blob_ids_are_those_of_git() {
        assert_eq!(blob_id(Some(b"")), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
        assert_eq!(blob_id(Some(b"hello\n")), "ce013625030ba8dba906f756967f9e9ca394464a");
        assert_eq!(blob_id(None).len(), 40);
    }

    #[test]
    fn lines_have_whole_groups() {
        let text = patch(&[0xff; 70_000], b"\xe9");
        assert!(text.starts_with("GIT binary patch\nliteral 1\n"));
        for line in text.lines().filter(|line| !line.contains(' ') && !line.is_empty()) {
            assert_eq!((line.len() - 1) % 5, 0);
        }
    }
}
