//! Percent-encoding for `file:` URIs and for selectors.

use std::fmt::Write as _;

/// Encodes everything but `A-Z a-z 0-9 - . _ ~ /`, like vscode-uri and so Pyright.
pub(super) fn encode_uri_path(path: &str) -> String {
    encode(path, |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte))
}

/// Encodes only the special characters of the selector grammar: `#`, `?`, `%`, `"`, white space and controls.
#[must_use]
pub fn encode_portable(path: &str) -> String {
    encode(path, |byte| !matches!(byte, b'#' | b'?' | b'%' | b'"' | 0..=b' ' | 0x7f))
}

/// Like [`encode_portable`], and encodes the bytes in `also` too.
#[must_use]
pub fn encode_portable_and(text: &str, also: &[u8]) -> String {
    encode(text, |byte| !matches!(byte, b'#' | b'?' | b'%' | b'"' | 0..=b' ' | 0x7f) && !also.contains(&byte))
}

fn encode(text: &str, keep: impl Fn(u8) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        let mut buffer = [0; 4];
        for &byte in c.encode_utf8(&mut buffer).as_bytes() {
            if !keep(byte) {
                let _ = write!(out, "%{byte:02X}");
            } else if byte.is_ascii() {
                out.push(char::from(byte));
            } else {
                out.push(c);
                break;
            }
        }
    }
    out
}

/// Decodes every `%XX`; `None` if a `%` is not followed by two hexadecimal digits or the result is not UTF-8.
#[must_use]
pub fn decode(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let mut digit = || bytes.next().and_then(|digit| char::from(digit).to_digit(16));
            let (high, low) = (digit()?, digit()?);
            out.push(u8::try_from(high * 16 + low).ok()?);
        } else {
            out.push(byte);
        }
    }
    String::from_utf8(out).ok()
}
