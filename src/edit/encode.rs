//! Encodes a source text in the encoding that its file declares.

use encoding_rs::Encoding;

use crate::text::SourceEncoding;

/// Why a text cannot be encoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// The file has bytes that are invalid in its encoding.
    #[error("the file has bytes that are invalid in its encoding, so it cannot be written back")]
    Lossy,
    /// The encoding has no bytes for a character.
    #[error("its encoding {encoding} cannot represent the character {character:?}")]
    Character {
        /// The encoding.
        encoding: String,
        /// The first character that cannot be encoded.
        character: char,
    },
    /// Decoding and encoding the file gives other bytes, so unedited text would change.
    #[error("decoding and encoding it as {0} does not reproduce its bytes")]
    Unstable(String),
}

/// Encodes `after`, the edited form of the text `before` that was decoded from `original`.
///
/// # Errors
/// See [`EncodeError`].
pub fn encode(
    original: &[u8],
    before: &str,
    after: &str,
    encoding: SourceEncoding,
) -> Result<Vec<u8>, EncodeError> {
    match encoding {
        SourceEncoding::Utf8 => Ok(after.as_bytes().to_vec()),
        SourceEncoding::Lossy | SourceEncoding::Unknown => Err(EncodeError::Lossy),
        SourceEncoding::Latin1 => after
            .chars()
            .map(|character| {
                u8::try_from(character)
                    .map_err(|_| EncodeError::Character { encoding: "iso-8859-1".to_owned(), character })
            })
            .collect(),
        SourceEncoding::Declared(encoding) => {
            let name = || encoding.name().to_ascii_lowercase();
            if bytes(encoding, before).as_deref() != Some(original) {
                return Err(EncodeError::Unstable(name()));
            }
            bytes(encoding, after).ok_or_else(|| {
                let lacks = |c: &char| bytes(encoding, c.encode_utf8(&mut [0; 4])).is_none();
                let character = after.chars().find(lacks).unwrap_or('\u{fffd}');
                EncodeError::Character { encoding: name(), character }
            })
        }
    }
}

fn bytes(encoding: &'static Encoding, text: &str) -> Option<Vec<u8>> {
    let (bytes, used, unmappable) = encoding.encode(text);
    // `encoding_rs` encodes UTF-16 labels as UTF-8, which would not be decoded as UTF-16.
    (!unmappable && used == encoding).then(|| bytes.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::decode_source;

    fn check(original: &[u8], edit: impl Fn(&str) -> String) -> Result<Vec<u8>, EncodeError> {
        let decoded = decode_source(original.to_vec());
        encode(original, &decoded.text, &edit(&decoded.text), decoded.encoding)
    }

    #[test]
    fn unedited_text_keeps_its_bytes() {
        for original in [
            &b"\xef\xbb\xbfold = 1\r\n"[..],
            b"# coding: latin-1\n\xe9 = old\n",
            b"# coding: euc_jp\nold = '\xa4\xa2'\n",
            b"# coding: cp1252\nold = '\x80'",
        ] {
            let written = check(original, |text| text.replace("old", "newer")).unwrap();
            let at = original.windows(3).position(|window| window == b"old").unwrap();
            let expected = [&original[..at], b"newer", &original[at + 3..]].concat();
            assert_eq!(written, expected);
        }
    }

    #[test]
    fn characters_outside_the_encoding_are_rejected() {
        let error = check(b"# coding: latin-1\nold\n", |text| text.replace("old", "中")).unwrap_err();
        assert_eq!(error, EncodeError::Character { encoding: "iso-8859-1".to_owned(), character: '中' });
        assert!(check(b"# coding: cp1252\nold\n", |text| text.replace("old", "中")).is_err());
        assert_eq!(check(b"a\xff", str::to_owned), Err(EncodeError::Lossy));
    }
}
