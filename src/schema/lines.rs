//! Validates JSON LineResults, one line at a time.
//!
//! Memory is bounded by the maximum length of a line, whatever the length of the file. An invalid or longer line is
//! reported, and the next one is read.

use std::io::{self, BufRead};

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::SchemaKind;
use super::problem::Problems;
use super::validate::validate;
use crate::text::BoundedLines;
use crate::text::bounded_lines::MAX_LINE_BYTES;

/// The result of one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineResult {
    /// The number of the line, counted from 1; blank lines are counted too.
    pub number: usize,
    /// The problems of the line, if any, with positions in the file.
    pub verdict: Result<(), Problems>,
}

/// Validates every line that is not blank as a document of one kind; without a kind, as a bundle if it has a
/// `bundleId`, else as a line of a batch.
///
/// The iterator ends after the first error of `reader`.
pub fn validate_lines<R: BufRead>(kind: impl Into<Option<SchemaKind>>, reader: R) -> LineResults<R> {
    LineResults { kind: kind.into(), lines: BoundedLines::new(reader, MAX_LINE_BYTES), failed: false }
}

/// The results of the lines of a reader; see [`validate_lines`].
#[derive(Debug)]
pub struct LineResults<R> {
    kind: Option<SchemaKind>,
    lines: BoundedLines<R>,
    failed: bool,
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
            let verdict = if is_short_enough {
                validate(self.kind.unwrap_or_else(|| kind_of(line)), line)
            } else {
                Err(Problems::whole(format!("the line is longer than {MAX_LINE_BYTES} bytes")))
            };
            return Some(Ok(LineResult {
                number: self.number(),
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

/// Guesses the kind of a line.
fn kind_of(line: &[u8]) -> SchemaKind {
    #[derive(Deserialize)]
    struct BundleMarker {
        #[serde(rename = "bundleId")]
        _bundle_id: IgnoredAny,
    }
    if serde_json::from_slice::<BundleMarker>(line).is_ok() { SchemaKind::Bundle } else { SchemaKind::Batch }
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
