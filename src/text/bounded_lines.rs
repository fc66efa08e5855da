//! Reads lines of an untrusted stream, in memory that is bounded by the longest line that is allowed.

use std::io::{self, BufRead, Read as _};

/// The longest line of requests, selectors and other small documents, without its newline.
pub const MAX_LINE_BYTES: usize = 64 << 20;

/// A line that exceeds its limit by this factor is taken to be endless, like that of `/dev/zero`.
const ENDLESS_FACTOR: u64 = 16;

/// The capacity of the line buffer that is retained for the next line.
const RETAINED_CAPACITY_BYTES: usize = 1 << 20;

/// Reads lines. A line that exceeds the limit is skipped without being stored.
#[derive(Debug)]
pub struct BoundedLines<R> {
    reader: R,
    /// The longest line, in bytes.
    limit: usize,
    number: u64,
    line: Vec<u8>,
    /// Whether an endless line was found: nothing after it is read.
    is_endless: bool,
}

impl<R: BufRead> BoundedLines<R> {
    /// The lines of `reader`, each of at most `limit` bytes.
    pub const fn new(reader: R, limit: usize) -> Self {
        Self { reader, limit, number: 0, line: Vec::new(), is_endless: false }
    }

    /// Reads the next line and returns whether it fits the limit; `None` at the end. Nothing is read after a line that is
    /// longer than 16 times the limit.
    ///
    /// # Errors
    /// If the stream cannot be read.
    pub fn advance(&mut self) -> io::Result<Option<bool>> {
        self.line.clear();
        self.line.shrink_to(RETAINED_CAPACITY_BYTES);
        let limit = self.limit as u64;
        if self.is_endless || self.reader.by_ref().take(limit + 1).read_until(b'\n', &mut self.line)? == 0 {
            return Ok(None);
        }
        self.number += 1;
        if self.line.pop_if(|last| *last == b'\n').is_some() || self.line.len() <= self.limit {
            return Ok(Some(true));
        }
        self.line = Vec::new();
        let mut rest = self.reader.by_ref().take(limit.saturating_mul(ENDLESS_FACTOR));
        rest.skip_until(b'\n')?;
        self.is_endless = rest.limit() == 0;
        Ok(Some(false))
    }

    /// The line that was read last, without its newline; empty if it exceeded the limit.
    pub fn line(&self) -> &[u8] {
        &self.line
    }

    /// The 1-based number of that line.
    pub const fn number(&self) -> u64 {
        self.number
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    fn read(text: &[u8], limit: usize, capacity: usize) -> Vec<(u64, Option<String>)> {
        let mut lines = BoundedLines::new(BufReader::with_capacity(capacity, text), limit);
        let mut all = Vec::new();
        while let Some(fits) = lines.advance().unwrap() {
            let text = String::from_utf8(lines.line().to_vec()).unwrap();
            all.push((lines.number(), fits.then_some(text)));
        }
        assert!(lines.advance().unwrap().is_none(), "the end stays the end");
        all
    }

    #[test]
    fn lines_do_not_depend_on_the_buffer_size() {
        let some = |text: &str| Some(text.to_owned());
        for capacity in [1, 2, 3, 100] {
            let all = read(b"abcd\n\nabcde\nab\r\n\nx", 4, capacity);
            let expected = [
                (1, some("abcd")),
                (2, some("")),
                (3, None),
                (4, some("ab\r")),
                (5, some("")),
                (6, some("x")),
            ];
            assert_eq!(all, expected);
            assert_eq!(read(b"", 4, capacity), []);
            assert_eq!(read(b"\n", 4, capacity), [(1, some(""))]);
        }
    }

    #[test]
    fn an_endless_line_ends_the_input_and_uses_no_memory() {
        let mut lines = BoundedLines::new(BufReader::new(io::repeat(b'x').chain(&b"\nlast\n"[..])), 10_000);
        assert_eq!(lines.advance().unwrap(), Some(false));
        assert!(lines.line.capacity() < 10_000);
        assert_eq!(lines.advance().unwrap(), None);
    }
}
