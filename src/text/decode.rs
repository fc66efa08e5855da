//! Decodes the bytes of a Python source file to text according to PEP 263: a UTF-8 byte order mark, else a coding
//! comment in the first two lines, else UTF-8.
//!
//! A byte order mark stays in the text as U+FEFF, because servers count it. Bytes that are invalid in the declared encoding
//! become U+FFFD, one for each maximal invalid sequence (WHATWG; Node, and so Pyright, does the same), and the encoding is
//! [`SourceEncoding::Lossy`]: such a text can be queried but must not be written back.

use encoding_rs::Encoding;

/// How a source file's bytes were decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceEncoding {
    /// UTF-8, with or without a byte order mark.
    Utf8,
    /// ISO 8859-1, where every byte is the scalar value of the same number.
    Latin1,
    /// Another encoding from a coding comment, in which every byte is valid.
    Declared(&'static Encoding),
    /// Invalid bytes were replaced.
    Lossy,
    /// The coding comment names an encoding that is not known here, so that Python may read another text: `unicode_escape`, `utf-7`. It
    /// was read as UTF-8, and must not be written back.
    Unknown,
}

/// A decoded source file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decoded {
    /// The text, a byte order mark included.
    pub text: String,
    /// How it was decoded.
    pub encoding: SourceEncoding,
}

/// Decodes Python source.
#[must_use]
pub fn decode_source(bytes: Vec<u8>) -> Decoded {
    match declared_encoding(&bytes).as_deref() {
        None | Some("utf-8") => decode_utf8(bytes),
        Some("iso-8859-1") => Decoded {
            text: bytes.iter().map(|&byte| char::from(byte)).collect(),
            encoding: SourceEncoding::Latin1,
        },
        Some(label) => match Encoding::for_label_no_replacement(label.as_bytes()) {
            Some(encoding) => {
                let (text, malformed) = encoding.decode_without_bom_handling(&bytes);
                let read = if malformed { SourceEncoding::Lossy } else { SourceEncoding::Declared(encoding) };
                Decoded { text: text.into_owned(), encoding: read }
            }
            None => Decoded {
                text: String::from_utf8_lossy(&bytes).into_owned(),
                encoding: SourceEncoding::Unknown,
            },
        },
    }
}

fn decode_utf8(bytes: Vec<u8>) -> Decoded {
    match String::from_utf8(bytes) {
        Ok(text) => Decoded { text, encoding: SourceEncoding::Utf8 },
        Err(error) => Decoded {
            text: String::from_utf8_lossy(error.as_bytes()).into_owned(),
            encoding: SourceEncoding::Lossy,
        },
    }
}

/// The encoding that a coding comment names, as a WHATWG label; UTF-8 and ISO 8859-1 have one spelling each.
fn declared_encoding(bytes: &[u8]) -> Option<String> {
    if bytes.starts_with(b"\xef\xbb\xbf") {
        return None;
    }
    let mut lines = bytes.split(|&byte| byte == b'\n');
    let first = lines.next()?;
    let name = coding_comment(first).or_else(|| {
        // PEP 263: the second line counts only when the first is blank or a comment.
        let blank = first.iter().all(u8::is_ascii_whitespace);
        let comment = first.trim_ascii_start().starts_with(b"#");
        if blank || comment { coding_comment(lines.next()?) } else { None }
    })?;
    Some(normalize_encoding_name(&name))
}

/// Matches `^[ \t\f]*#.*?coding[:=][ \t]*([-_.a-zA-Z0-9]+)`, the regular expression of PEP 263.
fn coding_comment(line: &[u8]) -> Option<String> {
    let comment = line.trim_ascii_start().strip_prefix(b"#")?;
    let mut rest = comment;
    while let Some(at) = rest.windows(6).position(|window| window == b"coding") {
        rest = &rest[at + 6..];
        if let [b':' | b'=', tail @ ..] = rest {
            let name: Vec<u8> = tail
                .trim_ascii_start()
                .iter()
                .copied()
                .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
                .collect();
            if !name.is_empty() {
                return String::from_utf8(name).ok();
            }
        }
    }
    None
}

/// Normalizes an encoding name like Python, and maps it to the WHATWG label where the two differ.
fn normalize_encoding_name(name: &str) -> String {
    let name = name.to_ascii_lowercase().replace('_', "-");
    let is = |stem: &str| name == stem || name.starts_with(&format!("{stem}-"));
    if is("utf-8") || name == "utf8" || name == "u8" || name == "ascii" || name == "us-ascii" {
        "utf-8".to_owned()
    } else if is("latin-1")
        || is("iso-8859-1")
        || is("iso-latin-1")
        || name == "latin1"
        || name == "l1"
        || name == "8859"
    {
        "iso-8859-1".to_owned()
    } else if let Some(number) = name.strip_prefix("cp125") {
        format!("windows-125{number}")
    } else if name == "euc-jis-2004" || name == "eucjp" || name == "ujis" {
        "euc-jp".to_owned()
    } else if name == "sjis" || name == "cp932" || name == "ms932" {
        "shift-jis".to_owned()
    } else {
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &[u8], text: &str, encoding: SourceEncoding) {
        assert_eq!(decode_source(bytes.to_vec()), Decoded { text: text.to_owned(), encoding });
    }

    #[test]
    fn coding_comments() {
        check(b"x = 1\n", "x = 1\n", SourceEncoding::Utf8);
        check(
            b"# -*- coding: latin-1 -*-\n\xe9\n",
            "# -*- coding: latin-1 -*-\n\u{e9}\n",
            SourceEncoding::Latin1,
        );
        check(
            b"#!/bin/sh\n# vim: fileencoding=iso_8859_1\n\x80",
            "#!/bin/sh\n# vim: fileencoding=iso_8859_1\n\u{80}",
            SourceEncoding::Latin1,
        );
        check(
            b"# coding: cp1252\n\x80",
            "# coding: cp1252\n\u{20ac}",
            SourceEncoding::Declared(encoding_rs::WINDOWS_1252),
        );
        check(
            b"# coding: euc_jp\n\xa4\xa2",
            "# coding: euc_jp\n\u{3042}",
            SourceEncoding::Declared(encoding_rs::EUC_JP),
        );
    }

    #[test]
    fn a_coding_comment_after_code_is_ignored() {
        check(
            b"x = 1\n# coding: latin-1\n\xc3\xa9",
            "x = 1\n# coding: latin-1\n\u{e9}",
            SourceEncoding::Utf8,
        );
    }

    #[test]
    fn invalid_bytes_and_unknown_encodings_are_marked() {
        check(b"a\xffb", "a\u{fffd}b", SourceEncoding::Lossy);
        check(b"# coding: klingon\n\xff", "# coding: klingon\n\u{fffd}", SourceEncoding::Unknown);
        check(b"# coding: utf-7\n+AGY-()", "# coding: utf-7\n+AGY-()", SourceEncoding::Unknown);
    }

    #[test]
    fn a_byte_order_mark_stays() {
        check(b"\xef\xbb\xbfx", "\u{feff}x", SourceEncoding::Utf8);
    }
}
