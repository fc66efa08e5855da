//! Reads lines of a trace with a length limit, and recognizes a last line without a newline.

use std::io::{self, BufRead, Read as _};

/// The longest line in bytes, without its newline: enough for the largest file that lanser reads with every byte escaped.
pub(super) const MAX_LINE_BYTES: usize = 512 << 20;

/// The outcome of reading one line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineRead {
    /// A line of this many bytes, including its newline.
    Whole(usize),
    /// This many bytes, then the end of the file.
    CutOff(usize),
    /// More than `limit` bytes without a newline.
    TooLong,
}

/// Reads a line into `text`, without its newline.
pub(super) fn read_line(reader: &mut impl BufRead, limit: usize, text: &mut Vec<u8>) -> io::Result<LineRead> {
    text.clear();
    let count = reader.take(limit as u64 + 1).read_until(b'\n', text)?;
    if text.last() == Some(&b'\n') {
        text.pop();
        return Ok(LineRead::Whole(count));
    }
    Ok(if count > limit { LineRead::TooLong } else { LineRead::CutOff(count) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_cut_off_and_too_long() {
        let mut text = Vec::new();
        let mut reader = &b"abc\n\nabcd\nabcde\nab"[..];
        let mut read = |limit| read_line(&mut reader, limit, &mut text).unwrap();
        assert_eq!(read(4), LineRead::Whole(4));
        assert_eq!(read(4), LineRead::Whole(1));
        assert_eq!(read(4), LineRead::Whole(5));
        assert_eq!(read(4), LineRead::TooLong);
        assert_eq!(read(4), LineRead::Whole(1));
        assert_eq!(read(4), LineRead::CutOff(2));
        assert_eq!(read(4), LineRead::CutOff(0));
    }
}
