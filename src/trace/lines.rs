//! Lines of a trace, read without trusting that they end.

use std::io::{self, BufRead, Read as _};

/// The most bytes of a line: the longest file that lanser reads, every byte of it escaped, fits. Its newline is not counted.
pub(super) const MAX_LINE: usize = 512 << 20;

/// What stands at a place of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Line {
    /// A line of so many bytes, its newline counted.
    Whole(usize),
    /// So many bytes, and then the end of the file.
    CutOff(usize),
    /// More than `limit` bytes without a newline.
    TooLong,
}

/// Reads a line into `text`, its newline left out.
pub(super) fn next(reader: &mut impl BufRead, limit: usize, text: &mut Vec<u8>) -> io::Result<Line> {
    text.clear();
    let count = reader.take(limit as u64 + 1).read_until(b'\n', text)?;
    if text.last() == Some(&b'\n') {
        text.pop();
        return Ok(Line::Whole(count));
    }
    Ok(if count > limit { Line::TooLong } else { Line::CutOff(count) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_cut_off_and_too_long() {
        let mut text = Vec::new();
        let mut reader = &b"abc\n\nabcd\nabcde\nab"[..];
        let mut read = |limit| next(&mut reader, limit, &mut text).unwrap();
        assert_eq!(read(4), Line::Whole(4));
        assert_eq!(read(4), Line::Whole(1));
        assert_eq!(read(4), Line::Whole(5));
        assert_eq!(read(4), Line::TooLong);
        assert_eq!(read(4), Line::Whole(1));
        assert_eq!(read(4), Line::CutOff(2));
        assert_eq!(read(4), Line::CutOff(0));
    }
}
