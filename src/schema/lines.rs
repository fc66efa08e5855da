//! Validates JSON LineResults, one line at a time.
//!
//! Memory is bounded by the maximum length of a line, whatever the length of the file. An invalid or longer line is
//! reported, and the next one is read.

use std::io::{self, BufRead};

use serde::Deserialize;

use super::SchemaKind;
use super::history::{VersionReader, check_line, reader_of};
use super::problem::Problems;
use super::recognize::recognize;
use super::validate::{Validity, validate};
use crate::model::trace::TRACE_FORMAT;
use crate::text::BoundedLines;
use crate::text::bounded_lines::MAX_LINE_BYTES;

/// The result of one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineResult {
    /// The number of the line, counted from 1; blank lines are counted too.
    pub number: usize,
    /// The kind that the line was validated as.
    pub kind: SchemaKind,
    /// The problems of the line, if any, with positions in the file.
    pub verdict: Result<Validity, Problems>,
}

/// Validates every line that is not blank as a document of one kind; without a kind, as the kind that it is recognized as, or
/// else as a line of a batch.
///
/// Of the lines of a trace whose header has an earlier major version, the checksum is verified. Of a trace of an unknown
/// version, only the first line is a result. The iterator ends after the first error of `reader`.
pub fn validate_lines<R: BufRead>(kind: impl Into<Option<SchemaKind>>, reader: R) -> LineResults<R> {
    LineResults {
        kind: kind.into(),
        lines: BoundedLines::new(reader, MAX_LINE_BYTES),
        trace: VersionReader::Types,
        failed: false,
    }
}

/// The results of the lines of a reader; see [`validate_lines`].
#[derive(Debug)]
pub struct LineResults<R> {
    kind: Option<SchemaKind>,
    lines: BoundedLines<R>,
    /// What reads the events of the trace, which only its headers tell.
    trace: VersionReader,
    failed: bool,
}

/// What reads the events after the header of a trace; `None` if the line is not a header.
fn reader_after(line: &[u8]) -> Option<VersionReader> {
    #[derive(Deserialize)]
    struct Header {
        format: String,
        version: String,
    }
    let header: Header = serde_json::from_slice(line).ok()?;
    (header.format == TRACE_FORMAT).then(|| reader_of(SchemaKind::Trace, &header.version))
}

impl<R: BufRead> Iterator for LineResults<R> {
    type Item = io::Result<LineResult>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.failed {
            let is_short_enough = match self.lines.advance() {
                Ok(is_short_enough) => is_short_enough?,
                Err(error) => {
                    self.failed = true;
                    return Some(Err(error));
                }
            };
            let line = self.lines.line();
            if is_short_enough && line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let kind = match self.kind {
                Some(kind) => kind,
                None => match recognize(line) {
                    Some(SchemaKind::Request) | None => SchemaKind::Batch,
                    Some(kind) => kind,
                },
            };
            let before = self.trace;
            if kind == SchemaKind::Trace {
                self.trace = reader_after(line).unwrap_or(before);
                if before == VersionReader::None && self.trace == VersionReader::None {
                    continue;
                }
            }
            let verdict = match (self.trace, kind) {
                _ if !is_short_enough => {
                    Err(Problems::whole(format!("the line is longer than {MAX_LINE_BYTES} bytes")))
                }
                (VersionReader::Checksum, SchemaKind::Trace) => check_line(line).map(|()| Validity::Checksum),
                _ => validate(kind, line),
            };
            return Some(Ok(LineResult {
                number: self.number(),
                kind,
                verdict: verdict.map_err(|found| self.with_line_number(found)),
            }));
        }
        None
    }
}

impl<R: BufRead> LineResults<R> {
    fn number(&self) -> usize {
        usize::try_from(self.lines.number()).unwrap_or(usize::MAX)
    }

    /// Sets the line number of every problem: a document is one line of the file.
    fn with_line_number(&self, mut problems: Problems) -> Problems {
        for problem in &mut problems.listed {
            problem.position = Some((self.number(), problem.position.map_or(1, |(_, column)| column)));
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Cursor, Read};

    use super::*;

    const GOOD: &str = r#"{"kind":"cursor","uri":"a.py","line":1,"col":1}"#;

    fn verdicts(text: &str, capacity: usize) -> Vec<(usize, Option<String>)> {
        validate_lines(SchemaKind::Selector, BufReader::with_capacity(capacity, Cursor::new(text)))
            .map(|line| {
                let line = line.unwrap();
                (line.number, line.verdict.err().map(|problems| problems.to_string()))
            })
            .collect()
    }

    #[test]
    fn a_damaged_line_does_not_stop_the_rest() {
        let text = format!("{GOOD}\n\n \t\r\n{{\"kind\":\n{GOOD}\r\n\u{feff}{GOOD}\n{GOOD}");
        for capacity in [1, 7, 8192] {
            let verdicts = verdicts(&text, capacity);
            let numbers: Vec<_> =
                verdicts.iter().map(|(number, problem)| (*number, problem.is_none())).collect();
            assert_eq!(numbers, [(1, true), (4, false), (5, true), (6, false), (7, true)]);
            assert_eq!(
                verdicts[1].1.as_deref(),
                Some("$.kind (line 4, column 8): EOF while parsing a value"),
                "the position is the one in the file"
            );
        }
    }

    #[test]
    fn an_unreadable_file_is_an_error_once() {
        struct BrokenReader;
        impl Read for BrokenReader {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::ErrorKind::PermissionDenied.into())
            }
        }
        let mut lines = validate_lines(
            SchemaKind::Selector,
            BufReader::new(Cursor::new(format!("{GOOD}\n")).chain(BrokenReader)),
        );
        assert!(lines.next().is_some_and(|line| line.is_ok_and(|line| line.verdict.is_ok())));
        assert!(lines.next().is_some_and(|line| line.is_err()));
        assert!(lines.next().is_none());
    }
}
