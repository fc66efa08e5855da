//! Line starts, and the conversion between byte offsets, server positions and the lines and columns shown to people.
//!
//! Line ends are `\n`, `\r\n` and a lone `\r`, as in LSP 3.17 ("Text Documents"); form feed, NEL and U+2028 are
//! ordinary characters. In server positions a byte order mark counts as one column on line 0 (measured on Pyright
//! 1.1.414, opened or not). In positions for people it does not count, because their editors hide it.

use super::{ColumnUnit, Position, Range};

const BOM: char = '\u{feff}';

/// The line starts of one text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineIndex {
    /// Byte offset of each line's first byte. Invariant: not empty, strictly ascending, starts with 0. 32 bits save memory,
    /// because a session holds the lines of a whole workspace. No file that is read has 4 GiB; text beyond that belongs to
    /// the last line.
    starts: Vec<u32>,
    len: usize,
    has_bom: bool,
    /// In ASCII text all units are equal and columns need no scan of the line: generated files have lines of megabytes.
    is_ascii: bool,
}

impl LineIndex {
    /// Indexes the line starts of `text`.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let bytes = text.as_bytes();
        // Counting first is cheap; growing the vector temporarily takes up to three times the memory.
        let mut starts = Vec::with_capacity(1 + bytes.iter().filter(|&&byte| byte == b'\n').count());
        starts.push(0);
        for (i, &byte) in (0_u32..u32::MAX).zip(bytes) {
            if byte == b'\n' || (byte == b'\r' && bytes.get(i as usize + 1) != Some(&b'\n')) {
                starts.push(i + 1);
            }
        }
        Self { starts, len: bytes.len(), has_bom: text.starts_with(BOM), is_ascii: text.is_ascii() }
    }

    /// The number of lines; a text that ends with a line end has an empty last line.
    #[must_use]
    pub fn line_count(&self) -> usize {
        self.starts.len()
    }

    /// The byte range of a 0-based line without its line end; `None` past the last line.
    #[must_use]
    pub fn line_span(&self, text: &str, line: u32) -> Option<std::ops::Range<usize>> {
        let line = usize::try_from(line).ok()?;
        let start = *self.starts.get(line)? as usize;
        let end = self.starts.get(line + 1).map_or(self.len, |next| *next as usize);
        let body = text[start..end].trim_end_matches(['\r', '\n']).len();
        Some(start..start + body)
    }

    /// The text of a 0-based line without its line end and without a byte order mark.
    #[must_use]
    pub fn line_text<'t>(&self, text: &'t str, line: u32) -> Option<&'t str> {
        let span = self.line_span(text, line)?;
        Some(text[span].trim_start_matches(BOM))
    }

    /// The position of a byte offset. An offset past the end counts as the end, one inside a character as its start.
    #[must_use]
    pub fn position(&self, text: &str, offset: usize, unit: ColumnUnit) -> Position {
        let mut offset = offset.min(self.len);
        while !text.is_char_boundary(offset) {
            offset -= 1;
        }
        let line = self.starts.partition_point(|&start| start as usize <= offset) - 1;
        let start = self.starts[line] as usize;
        let column = if self.is_ascii {
            u32::try_from(offset - start).unwrap_or(u32::MAX)
        } else {
            width(&text.as_bytes()[start..offset], unit)
        };
        Position::new(u32::try_from(line).unwrap_or(u32::MAX), column)
    }

    /// The range of a byte span.
    #[must_use]
    pub fn range(&self, text: &str, span: std::ops::Range<usize>, unit: ColumnUnit) -> Range {
        Range::new(self.position(text, span.start, unit), self.position(text, span.end, unit))
    }

    /// The byte offset of a position. A column past the line's end counts as its end (LSP 3.17), a column inside a
    /// character as the character's start; a line past the last is `None`.
    #[must_use]
    pub fn offset(&self, text: &str, position: Position, unit: ColumnUnit) -> Option<usize> {
        let span = self.line_span(text, position.line)?;
        if self.is_ascii {
            return Some(span.end.min(span.start + position.column as usize));
        }
        let mut left = position.column;
        let mut offset = span.start;
        for c in text[span.clone()].chars() {
            let width = unit.width(c);
            if left < width {
                break;
            }
            left -= width;
            offset += c.len_utf8();
        }
        Some(offset)
    }

    /// The 1-based line and column shown to people for a byte offset.
    #[must_use]
    pub fn display(&self, text: &str, offset: usize, unit: ColumnUnit) -> (u32, u32) {
        let position = self.position(text, offset, unit);
        let hidden = self.bom_width(position.line, unit).min(position.column);
        (position.line + 1, position.column - hidden + 1)
    }

    /// The byte offset of a 1-based line and column as shown to people; `None` if the line or column does not exist.
    /// The column after the line's last character exists.
    #[must_use]
    pub fn from_display(&self, text: &str, line: u32, column: u32, unit: ColumnUnit) -> Option<usize> {
        let line = line.checked_sub(1)?;
        let wanted = column.checked_sub(1)? + self.bom_width(line, unit);
        let span = self.line_span(text, line)?;
        if wanted > self.position(text, span.end, unit).column {
            return None;
        }
        self.offset(text, Position::new(line, wanted), unit)
    }

    fn bom_width(&self, line: u32, unit: ColumnUnit) -> u32 {
        if self.has_bom && line == 0 { unit.width(BOM) } else { 0 }
    }
}

/// The number of units of a UTF-8 text, counted over its bytes for speed: lines of megabytes are measured repeatedly.
fn width(text: &[u8], unit: ColumnUnit) -> u32 {
    let count = |counts: fn(u8) -> bool| text.iter().filter(|&&byte| counts(byte)).count();
    let first = |byte: u8| byte & 0xc0 != 0x80;
    let units = match unit {
        ColumnUnit::Utf8 => text.len(),
        ColumnUnit::Codepoint => count(first),
        ColumnUnit::Utf16 => count(first) + count(|byte| byte >= 0xf0),
    };
    u32::try_from(units).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const UNITS: [ColumnUnit; 3] = [ColumnUnit::Utf8, ColumnUnit::Utf16, ColumnUnit::Codepoint];

    #[test]
    fn line_ends_are_the_three_of_lsp() {
        let text = "a\nb\r\nc\rd\u{c}e\u{85}f\u{2028}g";
        let index = LineIndex::new(text);
        let lines: Vec<_> = (0..).map_while(|line| index.line_text(text, line)).collect();
        assert_eq!(lines, ["a", "b", "c", "d\u{c}e\u{85}f\u{2028}g"]);
    }

    #[test]
    fn columns_of_an_astral_character() {
        let text = "x = '😀' + name";
        let index = LineIndex::new(text);
        let offset = text.find("name").unwrap();
        let columns = UNITS.map(|unit| index.position(text, offset, unit).column);
        assert_eq!(columns, [13, 11, 10]);
    }

    #[test]
    fn a_byte_order_mark_is_a_column_for_the_server_but_not_for_people() {
        let text = "\u{feff}name = 1\nname\n";
        let index = LineIndex::new(text);
        let first = index.from_display(text, 1, 1, ColumnUnit::Codepoint).unwrap();
        assert_eq!(&text[first..first + 4], "name");
        assert_eq!(index.position(text, first, ColumnUnit::Utf16), Position::new(0, 1));
        assert_eq!(index.display(text, first, ColumnUnit::Utf8), (1, 1));
        assert_eq!(index.position(text, text.rfind("name").unwrap(), ColumnUnit::Utf16), Position::new(1, 0));
    }

    #[test]
    fn positions_that_do_not_exist() {
        let text = "ab\n";
        let index = LineIndex::new(text);
        assert_eq!(index.from_display(text, 1, 4, ColumnUnit::Codepoint), None);
        assert_eq!(index.from_display(text, 3, 1, ColumnUnit::Codepoint), None);
        assert_eq!(index.from_display(text, 0, 1, ColumnUnit::Codepoint), None);
        assert_eq!(index.from_display(text, 2, 1, ColumnUnit::Codepoint), Some(3));
        assert_eq!(index.offset(text, Position::new(0, 99), ColumnUnit::Utf16), Some(2));
    }

    /// A reference implementation that counts character by character.
    fn naive(text: &str, offset: usize, unit: ColumnUnit) -> Position {
        let (mut line, mut column) = (0, 0);
        let mut chars = text.char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            if at >= offset {
                break;
            }
            let crlf = c == '\r' && chars.peek().is_some_and(|(_, next)| *next == '\n');
            if c == '\n' || (c == '\r' && !crlf) {
                (line, column) = (line + 1, 0);
            } else {
                column += unit.width(c);
            }
        }
        Position::new(line, column)
    }

    proptest! {
        #[test]
        fn offsets_and_positions_are_inverse(text in "[ab\\t\\r\\n]{0,40}|[a\u{e9}\u{4e2d}\u{1f600}\u{301}\t\r\n\u{feff}]{0,60}") {
            let index = LineIndex::new(&text);
            for (offset, _) in text.char_indices().chain([(text.len(), ' ')]) {
                for unit in UNITS {
                    let position = index.position(&text, offset, unit);
                    prop_assert_eq!(position, naive(&text, offset, unit));
                    let back = index.offset(&text, position, unit).unwrap();
                    // The offset between `\r` and `\n` has the same position as the one before `\r`.
                    prop_assert!(back == offset || (text[back..].starts_with("\r\n") && offset == back + 1));
                    if back == offset {
                        let (line, column) = index.display(&text, offset, unit);
                        let there = index.from_display(&text, line, column, unit);
                        let before_bom = offset == 0 && text.starts_with(BOM);
                        prop_assert!(there == Some(offset) || before_bom);
                    }
                }
            }
        }
    }
}
