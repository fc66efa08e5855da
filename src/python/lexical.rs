//! Finds the comments and strings of a text by Python's lexical rules, without parsing it: a name in them is no use of a symbol.

use super::outline::Span;

/// A part of a text that is no code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TextSpan {
    /// A comment, with its `#`.
    Comment(Span),
    /// What is between the quotes of a string.
    String(Span),
    /// A formatted string, which may contain code.
    Formatted(Span),
}

impl TextSpan {
    /// The bytes.
    pub(super) const fn span(&self) -> &Span {
        match self {
            Self::Comment(span) | Self::String(span) | Self::Formatted(span) => span,
        }
    }
}

/// The comments and strings of a text, in order; `None` where a string does not end.
pub(super) fn text_spans(text: &str) -> Option<Vec<TextSpan>> {
    let lexer = TextSpanLexer { bytes: text.as_bytes() };
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(byte) = lexer.byte(at) {
        match byte {
            b'#' => {
                let end = lexer.end_of_line(at);
                found.push(TextSpan::Comment(at..end));
                at = end;
            }
            b'"' | b'\'' => {
                let inside = lexer.string(at, false)?;
                at = inside.end + inside.quotes;
                found.push(TextSpan::String(inside.start..inside.end));
            }
            _ if is_word(byte) => {
                let end = lexer.end_of_word(at);
                at = end;
                if is_formatted_prefix(&lexer.bytes[..end]) && matches!(lexer.byte(end), Some(b'"' | b'\'')) {
                    let inside = lexer.string(end, true)?;
                    at = inside.end + inside.quotes;
                    found.push(TextSpan::Formatted(end..at));
                }
            }
            _ => at += 1,
        }
    }
    Some(found)
}

/// Whether the word with which a text ends makes the string after it a formatted one.
fn is_formatted_prefix(before: &[u8]) -> bool {
    let start = before.iter().rposition(|byte| !is_word(*byte)).map_or(0, |at| at + 1);
    let word = before[start..].to_ascii_lowercase();
    matches!(word.as_slice(), b"f" | b"fr" | b"rf" | b"t" | b"tr" | b"rt")
}

/// Whether a byte can be a part of a name or a number.
const fn is_word(byte: u8) -> bool {
    byte == b'_' || byte.is_ascii_alphanumeric() || !byte.is_ascii()
}

/// What is between the quotes of a string.
struct Inside {
    start: usize,
    end: usize,
    /// The number of quotes on each side.
    quotes: usize,
}

struct TextSpanLexer<'t> {
    bytes: &'t [u8],
}

impl TextSpanLexer<'_> {
    fn byte(&self, at: usize) -> Option<u8> {
        self.bytes.get(at).copied()
    }

    fn end_of_line(&self, from: usize) -> usize {
        let rest = &self.bytes[from..];
        rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')).map_or(self.bytes.len(), |at| from + at)
    }

    fn end_of_word(&self, from: usize) -> usize {
        self.bytes[from..].iter().position(|byte| !is_word(*byte)).map_or(self.bytes.len(), |at| from + at)
    }

    /// The string whose first quote is at an offset.
    fn string(&self, from: usize, is_formatted: bool) -> Option<Inside> {
        let quote = self.byte(from)?;
        let is_triple = self.byte(from + 1) == Some(quote) && self.byte(from + 2) == Some(quote);
        let quotes = if is_triple { 3 } else { 1 };
        let start = from + quotes;
        let mut at = start;
        loop {
            let ends = |at: usize| (0..quotes).all(|more| self.byte(at + more) == Some(quote));
            match self.byte(at)? {
                b'\\' => {
                    // A brace after a backslash begins a field nevertheless.
                    let is_brace = is_formatted && matches!(self.byte(at + 1), Some(b'{' | b'}'));
                    let is_line_end = self.byte(at + 1) == Some(b'\r') && self.byte(at + 2) == Some(b'\n');
                    at += if is_brace { 1 } else { 2 + usize::from(is_line_end) };
                }
                b'\n' | b'\r' if !is_triple => return None,
                byte if byte == quote && ends(at) => return Some(Inside { start, end: at, quotes }),
                b'{' if is_formatted && self.byte(at + 1) == Some(b'{') => at += 2,
                b'{' if is_formatted => at = self.field(at + 1)?,
                _ => at += 1,
            }
        }
    }

    /// The end of a replacement field whose expression begins at an offset.
    fn field(&self, from: usize) -> Option<usize> {
        let mut depth = 0_usize;
        let mut at = from;
        loop {
            match self.byte(at)? {
                b'}' if depth == 0 => return Some(at + 1),
                b':' if depth == 0 => return self.format(at + 1),
                b'(' | b'[' | b'{' => {
                    depth += 1;
                    at += 1;
                }
                b')' | b']' | b'}' => {
                    depth = depth.checked_sub(1)?;
                    at += 1;
                }
                b'#' => return None,
                b'"' | b'\'' => {
                    let inside = self.string(at, is_formatted_prefix(&self.bytes[..at]))?;
                    at = inside.end + inside.quotes;
                }
                _ => at += 1,
            }
        }
    }

    /// The end of a replacement field whose format begins at an offset.
    fn format(&self, from: usize) -> Option<usize> {
        let mut at = from;
        loop {
            match self.byte(at)? {
                b'}' => return Some(at + 1),
                b'{' => at = self.field(at + 1)?,
                b'"' | b'\'' | b'\n' | b'\r' | b'\\' => return None,
                _ => at += 1,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(text: &str) -> Option<Vec<String>> {
        let found = text_spans(text)?;
        Some(found.iter().map(|one| format!("{one:?} {}", &text[one.span().clone()])).collect())
    }

    fn texts(text: &str) -> Option<Vec<&str>> {
        Some(text_spans(text)?.iter().map(|one| &text[one.span().clone()]).collect())
    }

    #[test]
    fn comments_and_strings() {
        assert_eq!(
            spans("a = 'b' # c 'd'\nf'{e}'\n").unwrap(),
            ["String(5..6) b", "Comment(8..15) # c 'd'", "Formatted(17..22) '{e}'"]
        );
        for (text, expected) in [
            ("'''a\n'b' ''' + \"\"", vec!["a\n'b' ", ""]),
            (r#"r'\' ' "\\" b"\"" print"x""#, vec![r"\' ", r"\\", r#"\""#, "x"]),
            ("'a\\\nb' x '#'", vec!["a\\\nb", "#"]),
            ("f'{a[\"b\"]:{c}} {{' 'd'", vec!["'{a[\"b\"]:{c}} {{'", "d"]),
            ("f'{a['b']}' rf'\\{c}' 'd'", vec!["'{a['b']}'", "'\\{c}'", "d"]),
            ("f'''{f\"{x!r:>{y}}\" # z\n}'''", vec![]),
            ("f'\\N{DASH}' if'x'", vec!["'\\N{DASH}'", "x"]),
        ] {
            match expected.as_slice() {
                [] => assert_eq!(texts(text), None, "{text}"),
                _ => assert_eq!(texts(text).unwrap(), expected, "{text}"),
            }
        }
        for text in ["'a\n'", "'''a", "f'{a", "f'{a)}'", "'a\\"] {
            assert_eq!(texts(text), None, "{text}");
        }
    }
}
