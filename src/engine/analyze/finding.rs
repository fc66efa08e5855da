//! A finding of an analyzer, and the diagnostic for it.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::engine::locations::{LocationBuilder, preview};
use crate::model::analyzer::DiagnosticSource;
use crate::model::facts::Diagnostic;
use crate::model::request::Severity;
use crate::path::{AbsPath, WorkspacePath};
use crate::text::ColumnUnit;
use crate::workspace::files::Document;

/// A finding of an analyzer.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(in crate::engine) struct Finding {
    pub(in crate::engine) path: WorkspacePath,
    pub(in crate::engine) place: Place,
    pub(in crate::engine) severity: Severity,
    pub(in crate::engine) code: Option<String>,
    pub(in crate::engine) message: String,
}

/// Where a finding is. Lines and columns are counted from 1; a byte order mark is not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(in crate::engine) enum Place {
    /// A whole line.
    Line(i64),
    /// From a line and column to another, in columns of this unit.
    Span([i64; 2], [i64; 2], SpanUnit),
}

/// A unit of columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(in crate::engine) enum SpanUnit {
    /// Characters.
    #[serde(rename = "codepoint")]
    Character,
    /// Bytes of UTF-8.
    #[serde(rename = "utf-8")]
    Byte,
    /// Characters, less one for each further byte of a character in UTF-8: what mypy 2.4.1 prints with its native parser,
    /// which converts bytes to characters twice.
    #[serde(rename = "mypy-native")]
    MypyNative,
}

/// The byte offset in a line of a [`SpanUnit::MypyNative`] column, counted from 0. Several places have the same column; the one
/// where a token begins (or ends) is meant.
fn mypy_native_offset(line: &str, column: i64, is_end: bool) -> usize {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let is_border = |at: usize| {
        let (before, after) = (line[..at].chars().next_back(), line[at..].chars().next());
        let token = if is_end { before } else { after };
        token.is_some_and(|c| !c.is_whitespace())
            && !(before.is_some_and(is_word) && after.is_some_and(is_word))
    };
    let mut printed = 0;
    let mut found = None;
    let ends = line.chars().map(|c| (c.len_utf8(), 2 - c.len_utf8() as i64)).chain([(0, 0)]);
    let mut at = 0;
    for (bytes, step) in ends {
        if printed == column {
            if is_border(at) {
                return at;
            }
            found = found.or(Some(at));
        }
        printed += step;
        at += bytes;
    }
    found.unwrap_or(if column <= 0 { 0 } else { line.len() })
}

impl Place {
    /// The bytes of the place. What does not exist in the document is moved to the nearest place that does.
    fn span(self, document: &Document) -> Range<usize> {
        let (text, lines) = (&document.text, &document.lines);
        let nearest = |line: i64| u32::try_from(line.clamp(1, lines.line_count() as i64)).unwrap_or(1);
        let line_span = |line: u32| lines.line_span(text, line - 1).unwrap_or(text.len()..text.len());
        match self {
            Self::Line(line) => {
                let span = line_span(nearest(line));
                let code = text[span.clone()].trim_start_matches(['\u{feff}', ' ', '\t', '\u{c}']);
                span.end - code.len()..span.end
            }
            Self::Span(start, end, unit) => {
                let offset = |[line, column]: [i64; 2], is_end: bool| {
                    let there = nearest(line);
                    if line > i64::from(there) {
                        return text.len();
                    }
                    let unit = match unit {
                        SpanUnit::Character => ColumnUnit::Codepoint,
                        SpanUnit::Byte => ColumnUnit::Utf8,
                        SpanUnit::MypyNative => {
                            let span = line_span(there);
                            let code = text[span.clone()].trim_start_matches('\u{feff}');
                            return span.end - code.len() + mypy_native_offset(code, column - 1, is_end);
                        }
                    };
                    let column = u32::try_from(column.max(1)).unwrap_or(u32::MAX);
                    lines.from_display(text, there, column, unit).unwrap_or(line_span(there).end)
                };
                let start = offset(start, false);
                start..offset(end, true).max(start)
            }
        }
    }
}

/// The diagnostic for a finding; `None` if its file cannot be read.
pub(in crate::engine) fn diagnostic(
    locations: &LocationBuilder<'_>,
    path: &AbsPath,
    source: DiagnosticSource,
    finding: &Finding,
) -> Option<Diagnostic> {
    let document = locations.files.read(path).ok()?;
    let (uri, range, at) = locations.span(&document, finding.place.span(&document));
    Some(Diagnostic {
        uri,
        range,
        at,
        source: Some(source),
        severity: finding.severity,
        rule: finding.code.clone(),
        message: locations.paths.text(&finding.message),
        symbol: None,
        tags: Vec::new(),
        related: Vec::new(),
        preview: preview(&document, range.start.line),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_at(text: &str, place: Place) -> String {
        let path = AbsPath::new("/w/a.py").unwrap();
        let document = Document::new(path, text.as_bytes().to_vec());
        document.text[place.span(&document)].to_owned()
    }

    #[test]
    fn columns_count_characters_or_bytes() {
        let text = "\u{feff}s = '😀é'; name\n";
        let at = |from, to, unit| text_at(text, Place::Span([1, from], [1, to], unit));
        assert_eq!(at(11, 15, SpanUnit::Character), "name");
        assert_eq!(at(15, 19, SpanUnit::Byte), "name");
    }

    /// As mypy 2.4.1 prints them (measured).
    #[test]
    fn columns_of_the_native_parser_of_mypy() {
        let at = |line: i64, from: i64, to: i64| {
            let text = "label = 'é😀'; wrong: int = 'a'\nx: int = 'é' + 1\nf('é')\ny = é + 1\n";
            text_at(text, Place::Span([line, from + 1], [line, to + 1], SpanUnit::MypyNative))
        };
        assert_eq!(at(1, 23, 26), "'a'");
        assert_eq!(at(2, 14, 15), "1");
        assert_eq!(at(3, 2, 4), "'é'");
        assert_eq!(at(4, 4, 4), "é");
        assert_eq!(at(4, -1, -1), "");
        assert_eq!(at(4, 4, 99), "é + 1");
    }

    #[test]
    fn places_outside_of_the_file_are_moved_into_it() {
        let text = "a = 1\n    b\n";
        let span = |from, to| text_at(text, Place::Span(from, to, SpanUnit::Character));
        assert_eq!(span([-1, -1], [-1, 0]), "");
        assert_eq!(span([1, 5], [9, 9]), "1\n    b\n");
        assert_eq!(span([1, 5], [1, 99]), "1");
        assert_eq!(span([1, 5], [1, 2]), "");
        assert_eq!(text_at(text, Place::Line(2)), "b");
        assert_eq!(text_at(text, Place::Line(99)), "");
    }
}
