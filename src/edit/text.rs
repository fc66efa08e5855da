//! Edits of one text.
//!
//! Every range is one of the text before. Edits may touch but not overlap; several inserts at one place keep their order,
//! and inserts may precede one replacement of what begins there (LSP 3.17, "TextEdit[]").

use std::ops::Range as Span;

use crate::model::edits::TextEdit;
use crate::text::{ColumnUnit, LineIndex, Range};

/// Why edits cannot be made to a text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TextEditError {
    /// Two edits want the same stretch.
    #[error("two edits overlap")]
    Overlap {
        /// The one that begins first.
        first: Range,
        /// The other.
        second: Range,
    },
    /// A range ends before it begins, or begins past the last line.
    #[error("the text has no such range")]
    NoSuchRange(Range),
}

/// A stretch of a text in bytes, and what replaces it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Splice {
    /// The stretch of the text before.
    pub span: Span<usize>,
    /// What stands there then.
    pub text: String,
}

/// Edits in the order of their places, not overlapping.
///
/// # Errors
/// See [`TextEditError`].
pub fn splices(text: &str, edits: &[TextEdit], unit: ColumnUnit) -> Result<Vec<Splice>, TextEditError> {
    let lines = LineIndex::new(text);
    // The line end that all lines have; a text that mixes them keeps what the edit says.
    let crlf = text.contains("\r\n") && !text.replace("\r\n", "").contains(['\r', '\n']);
    let mut found = Vec::with_capacity(edits.len());
    for edit in edits {
        let range = Range::from(edit.range);
        let offset = |position: crate::text::Position| {
            // The line after the last is where a text ends whose last line has no end.
            let past = position.line as usize == lines.line_count() && position.column == 0;
            lines.offset(text, position, unit).or_else(|| past.then_some(text.len()))
        };
        let span = offset(range.start).zip(offset(range.end)).filter(|(start, end)| start <= end);
        let (start, end) = span.ok_or(TextEditError::NoSuchRange(range))?;
        let new = if crlf && edit.new_text.contains('\n') {
            edit.new_text.replace("\r\n", "\n").replace('\n', "\r\n")
        } else {
            edit.new_text.clone()
        };
        found.push((start..end, new, range));
    }
    // A stable sort: inserts at one place keep their order, and stand before a replacement there.
    found.sort_by_key(|(span, ..)| (span.start, span.end));
    for pair in found.windows(2) {
        let [(first, _, a), (second, _, b)] = pair else { continue };
        if second.start < first.end || (first == second && !first.is_empty()) {
            return Err(TextEditError::Overlap { first: *a, second: *b });
        }
    }
    Ok(found.into_iter().map(|(span, text, _)| Splice { span, text }).collect())
}

/// The text with every splice made.
#[must_use]
pub fn spliced(text: &str, splices: &[Splice]) -> String {
    let grown = splices.iter().map(|splice| splice.text.len()).sum::<usize>();
    let mut out = String::with_capacity(text.len() + grown);
    let mut at = 0;
    for splice in splices {
        out.push_str(&text[at..splice.span.start]);
        out.push_str(&splice.text);
        at = splice.span.end;
    }
    out.push_str(&text[at..]);
    out
}

/// Where an offset of the text before is in the text after. Inside of a replaced stretch it is the stretch's start.
#[must_use]
pub fn moved(splices: &[Splice], offset: usize) -> usize {
    let mut now = offset;
    for splice in splices {
        if splice.span.end <= offset && splice.span.start < offset {
            now = now + splice.text.len() - splice.span.len();
        } else if splice.span.is_empty() && splice.span.start == offset {
            // What is inserted at a place stands before it.
            now += splice.text.len();
        } else if splice.span.start < offset {
            now -= offset - splice.span.start;
        } else {
            break;
        }
    }
    now
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::edits::LspRange;
    use crate::text::Position;

    fn edit(start: (u32, u32), end: (u32, u32), new: &str) -> TextEdit {
        let range = Range::new(Position::new(start.0, start.1), Position::new(end.0, end.1));
        TextEdit { range: LspRange::from(range), new_text: new.to_owned(), annotation_id: None }
    }

    fn made(text: &str, edits: &[TextEdit]) -> Result<String, TextEditError> {
        splices(text, edits, ColumnUnit::Utf16).map(|splices| spliced(text, &splices))
    }

    #[test]
    fn order_is_that_of_the_text() {
        let edits = [
            edit((1, 0), (1, 1), "B"),
            edit((0, 1), (0, 1), "1"),
            edit((0, 1), (0, 1), "2"),
            edit((0, 1), (0, 2), "X"),
        ];
        assert_eq!(made("ab\nc\n", &edits).unwrap(), "a12X\nB\n");
    }

    #[test]
    fn overlaps_name_both_places() {
        let error = made("abcdef", &[edit((0, 2), (0, 5), ""), edit((0, 0), (0, 3), "")]).unwrap_err();
        let TextEditError::Overlap { first, second } = error else { panic!("{error}") };
        assert_eq!((first.start.column, second.start.column), (0, 2));
        assert!(made("abc", &[edit((0, 0), (0, 1), "x"), edit((0, 0), (0, 1), "x")]).is_err());
        assert_eq!(made("abc", &[edit((0, 0), (0, 1), "x"), edit((0, 1), (0, 2), "y")]).unwrap(), "xyc");
        // An insert inside of a replaced stretch.
        assert!(made("abc", &[edit((0, 0), (0, 2), "x"), edit((0, 1), (0, 1), "y")]).is_err());
    }

    #[test]
    fn ranges_that_are_not_there() {
        assert!(made("a\n", &[edit((3, 0), (3, 0), "x")]).is_err());
        assert!(made("ab", &[edit((0, 2), (0, 1), "x")]).is_err());
        assert_eq!(made("ab", &[edit((1, 0), (1, 0), "x")]).unwrap(), "abx");
        assert_eq!(made("ab", &[edit((0, 1), (0, 99), "x")]).unwrap(), "ax");
    }

    #[test]
    fn line_ends_are_those_of_the_file() {
        assert_eq!(made("a\r\nb\r\n", &[edit((1, 0), (1, 0), "x\ny\r\n")]).unwrap(), "a\r\nx\r\ny\r\nb\r\n");
        assert_eq!(made("a\r\nb\n", &[edit((1, 0), (1, 0), "x\n")]).unwrap(), "a\r\nx\nb\n");
    }

    #[test]
    fn columns_count_the_unit() {
        assert_eq!(made("'😀'+a", &[edit((0, 5), (0, 6), "b")]).unwrap(), "'😀'+b");
        assert_eq!(made("\u{feff}a", &[edit((0, 1), (0, 2), "b")]).unwrap(), "\u{feff}b");
    }

    proptest! {
        /// What is outside of the edits stays, and is found where `moved` says.
        #[test]
        fn the_rest_stays(text in "[a-c\n]{0,30}", cuts in prop::collection::vec((0usize..30, 0usize..4, "[X-Z]{0,3}"), 0..5)) {
            let mut splices: Vec<Splice> = Vec::new();
            let mut from = 0;
            for (gap, length, new) in cuts {
                let start = from + gap % 7;
                let end = start + length;
                if end > text.len() { break; }
                splices.push(Splice { span: start..end, text: new });
                from = end + 1;
            }
            let now = spliced(&text, &splices);
            for (offset, c) in text.char_indices() {
                let edited = splices.iter().any(|splice| splice.span.contains(&offset));
                if !edited {
                    let at = moved(&splices, offset);
                    prop_assert_eq!(now[at..].chars().next(), Some(c));
                }
            }
        }
    }
}
