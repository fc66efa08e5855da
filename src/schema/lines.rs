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

/// The most bytes of a line, its newline not counted.
pub const MAX_LINE: usize = 64 << 20;

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
    Lines { kind: kind.into(), reader, limit: MAX_LINE, number: 0, buffer: Vec::new(), ended: false }
}

/// The verdicts on the lines of a reader; see [`validate_lines`].
#[derive(Debug)]
pub struct Lines<R> {
    kind: Option<Kind>,
    reader: R,
    limit: usize,
    number: usize,
    buffer: Vec<u8>,
    ended: bool,
}

impl<R: BufRead> Iterator for Lines<R> {
    type Item = io::Result<Line>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.ended {
            let fits = match self.read() {
                Ok(Some(fits)) => fits,
                Ok(None) => break,
                Err(error) => {
                    self.ended = true;
                    return Some(Err(error));
                }
            };
            if fits && self.buffer.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let verdict = if fits {
                validate(self.kind.unwrap_or_else(|| kind_of(&self.buffer)), &self.buffer)
            } else {
                Err(Problems::whole(format!("the line is longer than {} bytes", self.limit)))
            };
            return Some(Ok(Line {
                number: self.number,
                verdict: verdict.map_err(|found| self.placed(found)),
            }));
        }
        None
    }
}

impl<R: BufRead> Lines<R> {
    /// Reads the next line into the buffer and says whether it fits; `None` at the end.
    fn read(&mut self) -> io::Result<Option<bool>> {
        self.buffer.clear();
        let (mut fits, mut any) = (true, false);
        loop {
            let part = match self.reader.fill_buf() {
                Ok(part) => part,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if part.is_empty() {
                self.ended = true;
                self.number += usize::from(any);
                return Ok(any.then_some(fits));
            }
            any = true;
            let newline = part.iter().position(|&byte| byte == b'\n');
            let content = &part[..newline.unwrap_or(part.len())];
            fits = fits && self.buffer.len() + content.len() <= self.limit;
            if fits {
                self.buffer.extend_from_slice(content);
            }
            let consumed = newline.map_or(part.len(), |at| at + 1);
            self.reader.consume(consumed);
            if newline.is_some() {
                self.number += 1;
                return Ok(Some(fits));
            }
        }
    }

    /// A line is one line of the file, and so is every position in it.
    fn placed(&self, mut problems: Problems) -> Problems {
        for problem in &mut problems.listed {
            problem.position = Some((self.number, problem.position.map_or(1, |(_, column)| column)));
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

    fn verdicts(text: &str, limit: usize, capacity: usize) -> Vec<(usize, Option<String>)> {
        let mut lines = validate_lines(Kind::Selector, BufReader::with_capacity(capacity, Cursor::new(text)));
        lines.limit = limit;
        lines
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
            let verdicts = verdicts(&text, MAX_LINE, capacity);
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
    fn a_long_line_is_not_kept() {
        let text = format!("{}\n{GOOD}\n{}", "x".repeat(10_000), " ".repeat(10_000));
        let mut lines = validate_lines(Kind::Selector, BufReader::with_capacity(16, Cursor::new(text)));
        lines.limit = GOOD.len();
        let verdicts: Vec<_> = lines.by_ref().map(|line| line.unwrap().verdict.is_ok()).collect();
        assert_eq!(verdicts, [false, true, false]);
        assert!(lines.buffer.capacity() < 1000, "what does not fit is dropped as it comes");
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
