//! Quotes file names in a diff like git (`core.quotePath`): plain if possible, else in double quotes with C escapes and three
//! octal digits for every other byte.

/// Quotes a name if git would.
#[must_use]
pub fn quote(name: &str) -> String {
    let plain = |byte: u8| (0x20..0x7f).contains(&byte) && byte != b'"' && byte != b'\\';
    if name.bytes().all(plain) {
        return name.to_owned();
    }
    let mut out = String::from("\"");
    for byte in name.bytes() {
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\t' => out.push_str("\\t"),
            b'\r' => out.push_str("\\r"),
            byte if plain(byte) => out.push(char::from(byte)),
            byte => {
                let digits = [byte >> 6, byte >> 3 & 7, byte & 7].map(|digit| char::from(b'0' + digit));
                out.push('\\');
                out.extend(digits);
            }
        }
    }
    out.push('"');
    out
}

/// Unquotes the name at the start of a text and returns it with the rest after the closing quote; `None` if it is not
/// well-formed.
#[must_use]
pub fn unquote(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut rest = text.strip_prefix(b"\"")?;
    let mut out = Vec::new();
    loop {
        match rest {
            [b'"', after @ ..] => return Some((out, after)),
            [b'\\', digits @ ..] if matches!(digits, [b'0'..=b'3', b'0'..=b'7', b'0'..=b'7', ..]) => {
                out.push((digits[0] - b'0') << 6 | (digits[1] - b'0') << 3 | (digits[2] - b'0'));
                rest = &digits[3..];
            }
            [b'\\', escape, after @ ..] => {
                out.push(match escape {
                    b'a' => 7,
                    b'b' => 8,
                    b't' => b'\t',
                    b'n' => b'\n',
                    b'v' => 11,
                    b'f' => 12,
                    b'r' => b'\r',
                    b'"' | b'\\' => *escape,
                    _ => return None,
                });
                rest = after;
            }
            [byte, after @ ..] => {
                out.push(*byte);
                rest = after;
            }
            [] => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_quoted_like_git() {
        assert_eq!(quote("a b.py"), "a b.py");
        assert_eq!(quote("ü\t\"\\"), "\"\\303\\274\\t\\\"\\\\\"");
    }

    proptest! {
        #[test]
        fn unquoting_is_the_inverse(name in "\\PC{1,20}|[\\x01-\\x20\"\\\\]{1,9}") {
            let written = quote(&name);
            if written.starts_with('"') {
                prop_assert_eq!(unquote(written.as_bytes()), Some((name.into_bytes(), &b""[..])));
            } else {
                prop_assert_eq!(written, name);
            }
        }
    }
}
