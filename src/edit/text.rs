//! Applies edits to one text.
//!
//! All ranges refer to the original text. Edits may be adjacent but must not overlap; several inserts at one position keep
//! their order, and inserts may precede one replacement that starts there (LSP 3.17, "TextEdit[]").

use std::ops::Range as Span;

use crate::model::edits::TextEdit;
use crate::text::{ColumnUnit, LineIndex, Range};

/// Why edits cannot be applied to a text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TextEditError {
    /// Two edits overlap.
    #[error("two edits overlap")]
    Overlap {
        /// The one that starts first.
        first: Range,
        /// The other.
        second: Range,
    },
    /// A range ends before it starts, or starts past the last line.
    #[error("the text has no such range")]
    NoSuchRange(Range),
}

/// A byte span of a text and its replacement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Splice {
    /// The span of the original text.
    pub span: Span<usize>,
    /// The replacement.
    pub text: String,
}

/// Converts edits to splices, sorted by position and not overlapping.
///
/// # Errors
/// See [`TextEditError`].
pub fn splices(text: &str, edits: &[TextEdit], unit: ColumnUnit) -> Result<Vec<Splice>, TextEditError> {
    let lines = LineIndex::new(text);
    // In a text where every line ends with CRLF, new lines do too; in a text with mixed line ends the edit is kept as it is.
    let crlf = text.contains("\r\n") && !text.replace("\r\n", "").contains(['\r', '\n']);
    let mut found = Vec::with_capacity(edits.len());
    for edit in edits {
        let range = Range::from(edit.range);
        let offset = |position: crate::text::Position| {
            // The start of the line after the last one is the end of a text without a final line end.
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
    // A stable sort: inserts at one position keep their order and precede a replacement there.
    found.sort_by_key(|(span, ..)| (span.start, span.end));
    for pair in found.windows(2) {
        let [(first, _, a), (second, _, b)] = pair else { continue };
        if second.start < first.end || (first == second && !first.is_empty()) {
            return Err(TextEditError::Overlap { first: *a, second: *b });
        }
    }
    Ok(found.into_iter().map(|(span, text, _)| Splice { span, text }).collect())
}

/// Applies splices to a text.
#[must_use]
pub fn apply_splices(text: &str, splices: &[Splice]) -> String {
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

/// Maps an offset of the original text to the edited text. An offset inside a replaced span maps to the start of the span.
#[must_use]
pub fn map_offset(splices: &[Splice], offset: usize) -> usize {
    let mut now = offset;
    for splice in splices {
        if splice.span.end <= offset && splice.span.start < offset {
            now = now + splice.text.len() - splice.span.len();
        } else if splice.span.is_empty() && splice.span.start == offset {
            // Text that is inserted at the offset comes before it.
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

    fn edited(text: &str, edits: &[TextEdit]) -> Result<String, TextEditError> {
        splices(text, edits, ColumnUnit::Utf16).map(|splices| apply_splices(text, &splices))
    }

    #[test]
    fn edits_are_applied_in_the_order_of_the_text() {
        let edits = [
            edit((1, 0), (1, 1), "B"),
            edit((0, 1), (0, 1), "1"),
            edit((0, 1), (0, 1), "2"),
            edit((0, 1), (0, 2), "X"),
        ];
        assert_eq!(edited("ab\nc\n", &edits).unwrap(), "a12X\nB\n");
    }

    #[test]
    fn an_overlap_names_both_ranges() {
        let error = edited("abcdef", &[edit((0, 2), (0, 5), ""), edit((0, 0), (0, 3), "")]).unwrap_err();
        let TextEditError::Overlap { first, second } = error else { panic!("{error}") };
        assert_eq!((first.start.column, second.start.column), (0, 2));
        assert!(edited("abc", &[edit((0, 0), (0, 1), "x"), edit((0, 0), (0, 1), "x")]).is_err());
        assert_eq!(edited("abc", &[edit((0, 0), (0, 1), "x"), edit((0, 1), (0, 2), "y")]).unwrap(), "xyc");
        // An insert inside a replaced span.
        assert!(edited("abc", &[edit((0, 0), (0, 2), "x"), edit((0, 1), (0, 1), "y")]).is_err());
    }

    #[test]
    fn ranges_past_the_end() {
        assert!(edited("a\n", &[edit((3, 0), (3, 0), "x")]).is_err());
        assert!(edited("ab", &[edit((0, 2), (0, 1), "x")]).is_err());
        assert_eq!(edited("ab", &[edit((1, 0), (1, 0), "x")]).unwrap(), "abx");
        assert_eq!(edited("ab", &[edit((0, 1), (0, 99), "x")]).unwrap(), "ax");
    }

    #[test]
    fn line_ends_are_those_of_the_file() {
        assert_eq!(
            edited("a\r\nb\r\n", &[edit((1, 0), (1, 0), "x\ny\r\n")]).unwrap(),
            "a\r\nx\r\ny\r\nb\r\n"
        );
        assert_eq!(edited("a\r\nb\n", &[edit((1, 0), (1, 0), "x\n")]).unwrap(), "a\r\nx\nb\n");
    }

    #[test]
    fn columns_count_the_unit() {
        assert_eq!(edited("'😀'+a", &[edit((0, 5), (0, 6), "b")]).unwrap(), "'😀'+b");
        assert_eq!(edited("\u{feff}a", &[edit((0, 1), (0, 2), "b")]).unwrap(), "\u{feff}b");
    }

    proptest! {
        /// Text outside the edits is unchanged, at the offset that `map_offset` returns.
        #[test]
        fn unedited_text_is_unchanged(text in "[a-c\n]{0,30}", cuts in prop::collection::vec((0usize..30, 0usize..4, "[X-Z]{0,3}"), 0..5)) {
            let mut splices: Vec<Splice> = Vec::new();
            let mut from = 0;
            for (gap, length, new) in cuts {
                let start = from + gap % 7;
                let end = start + length;
                if end > text.len() { break; }
                splices.push(Splice { span: start..end, text: new });
                from = end + 1;
            }
            let now = apply_splices(&text, &splices);
            for (offset, c) in text.char_indices() {
                let edited = splices.iter().any(|splice| splice.span.contains(&offset));
                if !edited {
                    let at = map_offset(&splices, offset);
                    prop_assert_eq!(now[at..].chars().next(), Some(c));
                }
            }
        }
    }
}
