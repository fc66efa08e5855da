//! Identifier-like words of a source text, found without parsing.
//!
//! A superset of the identifier tokens. Words in strings and comments are included, because a forward reference in a string
//! (`x: "Model"`) is a reference. Tree-sitter classifies a word later, only in the files that contain it.

/// What a byte can be in a word.
#[derive(Clone, Copy)]
enum ByteClass {
    /// No part of one.
    Other,
    /// A part of one, except its first.
    Digit,
    /// Any part of one.
    Letter,
}

/// The class of each byte.
const CLASSES: [ByteClass; 256] = {
    let mut classes = [ByteClass::Other; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = match byte as u8 {
            b'0'..=b'9' => ByteClass::Digit,
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | 0x80.. => ByteClass::Letter,
            _ => ByteClass::Other,
        };
        byte += 1;
    }
    classes
};

/// The words of a text; see [`words`].
struct Words<'t> {
    bytes: &'t [u8],
    at: usize,
}

/// The maximal runs of ASCII letters, digits, `_` and non-ASCII bytes, without leading digits.
///
/// A leading byte order mark is skipped: it would become part of the first word.
pub fn words(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    Words { bytes: bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes), at: 0 }
}

impl<'t> Iterator for Words<'t> {
    type Item = &'t [u8];

    // Plain loops: all bytes of all packages pass here, and without optimization adapters take ten times as long.
    fn next(&mut self) -> Option<&'t [u8]> {
        let (bytes, mut at) = (self.bytes, self.at);
        while at < bytes.len() && !matches!(CLASSES[bytes[at] as usize], ByteClass::Letter) {
            at += 1;
        }
        let start = at;
        while at < bytes.len() && !matches!(CLASSES[bytes[at] as usize], ByteClass::Other) {
            at += 1;
        }
        self.at = at;
        (start < at).then(|| &bytes[start..at])
    }
}

/// A 64-bit hash of a word, the same on every machine and in every version (FNV-1a with a final mix).
#[must_use]
pub fn word_hash(word: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for &byte in word {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    // FNV mixes its last bytes badly; two rounds of xor and multiply spread them.
    hash = (hash ^ (hash >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    hash ^ (hash >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_everywhere() {
        let text = "\u{feff}x1 = 'a.b' # c_d\n1e5 0xff ünïcode";
        let found: Vec<_> =
            words(text.as_bytes()).map(|word| String::from_utf8_lossy(word).into_owned()).collect();
        assert_eq!(found, ["x1", "a", "b", "c_d", "e5", "xff", "ünïcode"]);
    }
}
