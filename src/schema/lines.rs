//! Judging JSON Lines, one line at a time.
//!
//! Memory is bounded by the longest line that is allowed, whatever the length of the file; a line that is damaged, or
//! longer, is reported and the next one read.

use std::io::{self, BufRead};

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::Kind;
use super::problem::Problems;
use super::validate::validate;
use crate::text::BoundedLines;
use crate::text::bounded_lines::MAX_LINE;

/// The verdict on one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The number of the line, counted from 1; blank lines are counted too.
    pub number: usize,
    /// What is wrong with it, if anything. Positions are those in the file.
    pub verdict: Result<(), Problems>,
}

/// Judges every line that is not blank as a document of one kind; without one as a bundle when it has a `bundleId`, else as
/// a line of a batch.
///
/// The iterator ends after the first error of `reader`.
pub fn validate_lines<R: BufRead>(kind: impl Into<Option<Kind>>, reader: R) -> Lines<R> {
    Lines { kind: kind.into(), lines: BoundedLines::new(reader, MAX_LINE), failed: false }
}

/// The verdicts on the lines of a reader; see [`validate_lines`].
#[derive(Debug)]
pub struct Lines<R> {
    kind: Option<Kind>,
    lines: BoundedLines<R>,
    failed: bool,
}

impl<R: BufRead> Iterator for Lines<R> {
    type Item = io::Result<Line>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.failed {
            let fits = match self.lines.advance() {
                Ok(fits) => fits?,
                Err(error) => {
                    self.failed = true;
                    return Some(Err(error));
                }
            };
            let line = self.lines.line();
            if fits && line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let verdict = if fits {
                validate(self.kind.unwrap_or_else(|| kind_of(line)), line)
            } else {
                Err(Problems::whole(format!("the line is longer than {MAX_LINE} bytes")))
            };
            return Some(Ok(Line {
                number: self.number(),
                verdict: verdict.map_err(|found| self.placed(found)),
            }));
        }
        None
    }
}

impl<R: BufRead> Lines<R> {
    fn number(&self) -> usize {
        usize::try_from(self.lines.number()).unwrap_or(usize::MAX)
    }

    /// A line is one line of the file, and so is every position in it.
    fn placed(&self, mut problems: Problems) -> Problems {
        for problem in &mut problems.listed {
            problem.position = Some((self.number(), problem.position.map_or(1, |(_, column)| column)));
        }
        problems
    }
}

/// What a line probably is.
fn kind_of(line: &[u8]) -> Kind {
    #[derive(Deserialize)]
    struct Sign {
        #[serde(rename = "bundleId")]
        _bundle_id: IgnoredAny,
    }
    if serde_json::from_slice::<Sign>(line).is_ok() { Kind::Bundle } else { Kind::Batch }
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Cursor, Read};

    use super::*;

    const GOOD: &str = r#"{"kind":"cursor","uri":"a.py","line":1,"col":1}"#;

    fn verdicts(text: &str, capacity: usize) -> Vec<(usize, Option<String>)> {
        validate_lines(Kind::Selector, BufReader::with_capacity(capacity, Cursor::new(text)))
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
        struct Broken;
        impl Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::ErrorKind::PermissionDenied.into())
            }
        }
        let mut lines =
            validate_lines(Kind::Selector, BufReader::new(Cursor::new(format!("{GOOD}\n")).chain(Broken)));
        assert!(lines.next().is_some_and(|line| line.is_ok_and(|line| line.verdict.is_ok())));
        assert!(lines.next().is_some_and(|line| line.is_err()));
        assert!(lines.next().is_none());
    }
}
