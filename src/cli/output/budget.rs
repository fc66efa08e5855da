//! The size limit of printed answers.
//!
//! Widely used agent harnesses keep the first and last few thousand characters of a command's output and drop the middle.
//! So lanser prints at most [`MAX_LINES`] lines and [`MAX_BYTES`] bytes, unless `--limit` asks for more.

/// Lines of a default answer, including the last line, which says what was left out.
const MAX_LINES: usize = 40;

/// Bytes of a default answer.
const MAX_BYTES: usize = 4000;

/// Bytes reserved for the last line.
const LAST_LINE_BYTES: usize = 300;

/// Collects blocks of lines, each of which is printed whole or not at all.
#[derive(Debug)]
pub(super) struct Budget {
    limited: bool,
    lines: usize,
    /// Visible bytes: colors do not count, because a pipe does not get them.
    bytes: usize,
    text: String,
    /// Lines and bytes reserved for what follows the blocks.
    reserved: (usize, usize),
}

impl Budget {
    /// An empty answer. Without `limited` everything fits.
    pub(super) const fn new(limited: bool) -> Self {
        Self { limited, lines: 0, bytes: 0, text: String::new(), reserved: (1, LAST_LINE_BYTES) }
    }

    /// Reserves room for a summary or an error after the blocks, in addition to the last line.
    pub(super) fn reserve(&mut self, summary: &str) {
        self.reserved.0 += summary.lines().count();
        self.reserved.1 += visible_len(summary) + 1;
    }

    /// Whether a block fits.
    pub(super) fn fits(&self, block: &str) -> bool {
        let (lines, bytes) = self.reserved;
        let lines = self.lines + block.lines().count() + lines;
        !self.limited || lines <= MAX_LINES && self.bytes + visible_len(block) + bytes <= MAX_BYTES
    }

    /// Adds a block if it fits and returns whether it did. The first block is always added, cut to what fits.
    pub(super) fn push(&mut self, block: &str) -> bool {
        let lines = block.lines().count();
        let bytes = visible_len(block);
        let (reserved_lines, reserved_bytes) = self.reserved;
        if !self.fits(block) {
            if !self.text.is_empty() {
                return false;
            }
            for line in block.lines().take(MAX_LINES.saturating_sub(reserved_lines)) {
                if self.bytes + visible_len(line) + reserved_bytes > MAX_BYTES {
                    break;
                }
                self.bytes += visible_len(line) + 1;
                self.text.push_str(line);
                self.text.push('\n');
            }
            self.lines = MAX_LINES;
            return true;
        }
        self.lines += lines;
        self.bytes += bytes + 1;
        self.text.push_str(block);
        if !block.ends_with('\n') {
            self.text.push('\n');
        }
        true
    }

    /// Adds a summary or the last line, for which room is reserved.
    pub(super) fn last(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// The text.
    pub(super) fn finish(self) -> String {
        self.text
    }
}

fn visible_len(text: &str) -> usize {
    anstream::adapter::strip_str(text).map(str::len).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_more_than_the_budget() {
        for block in ["x\n", "a long line of source that is repeated again and again to fill the room\n"] {
            let mut budget = Budget::new(true);
            budget.reserve("a summary\nof two lines");

            while budget.push(block) {}
            budget.last("a summary\nof two lines");
            budget.last("and the last line");
            let text = budget.finish();
            assert!(text.lines().count() <= MAX_LINES && text.len() <= MAX_BYTES);
        }
        let mut budget = Budget::new(true);
        assert!(budget.push(&"one block\n".repeat(1000)));
        assert!(!budget.push("x"));
        let mut budget = Budget::new(false);
        assert!((0..1000).all(|_| budget.push("x\n")));
    }
}
