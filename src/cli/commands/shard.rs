//! `--shard I/N`: the part of a batch that one of N jobs answers.
//!
//! Which shard a line is in depends on its content alone, so that every job of an array reads the same file and no line is
//! answered twice. The number is the first eight bytes, big-endian, of the SHA-256 of the line without surrounding ASCII
//! whitespace, modulo N.

use std::io::{self, BufRead as _, BufReader, Read};
use std::str::FromStr;

use crate::digest::Digest;
use crate::text::bounded_lines::MAX_LINE_BYTES;

/// One of several parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shard {
    index: u64,
    count: u64,
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text.split_once('/').and_then(|(index, count)| {
            let count = count.parse().ok().filter(|count| (1..=1_000_000).contains(count))?;
            Some(Self { index: index.parse().ok().filter(|index| *index < count)?, count })
        });
        numbers.ok_or_else(|| "expected I/N with I from 0 to N-1".to_owned())
    }
}

impl Shard {
    fn contains(self, line: &[u8]) -> bool {
        let digest = Digest::of(line.trim_ascii());
        let mut number = [0; 8];
        number.copy_from_slice(&digest.as_bytes()[..8]);
        u64::from_be_bytes(number) % self.count == self.index
    }

    /// The lines of a stream that are in this shard. The others are empty, so that line numbers stay what they are.
    pub(crate) fn of(self, stream: Box<dyn Read + Send>) -> Box<dyn Read + Send> {
        Box::new(ShardReader {
            shard: self,
            stream: BufReader::new(stream),
            line: Vec::new(),
            returned: 0,
            is_continued: false,
        })
    }
}

/// Reads the lines of one shard.
struct ShardReader<R> {
    shard: Shard,
    stream: BufReader<R>,
    /// The line, or part of one, that is returned at the moment.
    line: Vec<u8>,
    /// How much of it was returned.
    returned: usize,
    /// Whether the next bytes continue a line that is too long to be a request.
    is_continued: bool,
}

impl<R: Read> ShardReader<R> {
    /// Reads the next line, or the next part of one that is too long. Returns whether there is one.
    fn advance(&mut self) -> io::Result<bool> {
        self.line.clear();
        self.returned = 0;
        // A line that is too long goes through whole in every shard: the batch reports it, each time in the same words.
        let limit = MAX_LINE_BYTES as u64 + 1;
        if self.stream.by_ref().take(limit).read_until(b'\n', &mut self.line)? == 0 {
            return Ok(false);
        }
        let is_whole = !self.is_continued && (self.line.len() as u64) < limit;
        self.is_continued = !self.line.ends_with(b"\n");
        if is_whole && !self.shard.contains(&self.line) {
            self.line.clear();
            self.line.push(b'\n');
        }
        Ok(true)
    }
}

impl<R: Read> Read for ShardReader<R> {
    /// Returns no more than one line at a time, so that a line that is complete is never held back.
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if self.returned == self.line.len() && !self.advance()? {
            return Ok(0);
        }
        let length = (&self.line[self.returned..]).read(to)?;
        self.returned += length;
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_of(shard: &str, text: &str) -> Vec<String> {
        let shard: Shard = shard.parse().unwrap();
        let mut read = String::new();
        shard.of(Box::new(io::Cursor::new(text.to_owned()))).read_to_string(&mut read).unwrap();
        read.split('\n').map(str::to_owned).collect()
    }

    #[test]
    fn shards_are_numbered_from_zero() {
        assert_eq!("2/3".parse(), Ok(Shard { index: 2, count: 3 }));
        for wrong in ["3/3", "-1/3", "1", "1/0", "/", "0/1000001", "a/b"] {
            assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn each_line_is_in_one_shard_at_its_number() {
        let text: String = (0..200).map(|number| format!("{{\"id\":{number}}}\n")).collect();
        let whole: Vec<&str> = text.split('\n').collect();
        let shards: Vec<Vec<String>> = (0..7).map(|index| lines_of(&format!("{index}/7"), &text)).collect();
        for (number, line) in whole.iter().enumerate() {
            let found: Vec<&String> =
                shards.iter().map(|lines| &lines[number]).filter(|line| !line.is_empty()).collect();
            assert_eq!(found, if line.is_empty() { vec![] } else { vec![line] });
        }
        assert!(shards.iter().all(|lines| lines.iter().filter(|line| !line.is_empty()).count() > 10));
    }

    /// The numbers are part of the interface: `int(hashlib.sha256(line.strip()).hexdigest()[:16], 16) % N`.
    #[test]
    fn the_shard_depends_on_the_content_alone() {
        for (line, shard) in [("{\"id\":1}", "4/5"), ("  {\"id\":1}\r", "4/5"), ("{\"id\":2}", "1/5")] {
            assert_eq!(lines_of(shard, line), [line]);
        }
    }

    #[test]
    fn a_line_that_is_too_long_is_in_every_shard() {
        let long = "x".repeat(2 * MAX_LINE_BYTES);
        for shard in ["0/2", "1/2"] {
            let lines = lines_of(shard, &format!("{long}\n{{}}\n"));
            assert_eq!(lines[0].len(), long.len());
            assert_eq!(lines.len(), 3);
        }
    }
}
