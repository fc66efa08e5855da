//! Identifier-like words of a source text, found without parsing.
//!
//! A superset of the identifier tokens. Words in strings and comments are included, because a forward reference in a string
//! (`x: "Model"`) is a reference. Tree-sitter classifies a word later, only in the files that contain it.

/// The maximal runs of ASCII letters, digits, `_` and non-ASCII bytes, without leading digits.
///
/// A leading byte order mark is skipped: it would become part of the first word.
pub fn words(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes
        .strip_prefix(b"\xef\xbb\xbf")
        .unwrap_or(bytes)
        .split(|&byte| !(byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80))
        .map(|run| {
            let digits = run.iter().take_while(|byte| byte.is_ascii_digit()).count();
            &run[digits..]
        })
        .filter(|word| !word.is_empty())
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
