//! How much text an agent's shell can take.
//!
//! Widely used harnesses keep the first and last few thousand characters and drop the middle, so lanser never prints so
//! much by itself: at most [`MAX_LINES`] lines and [`MAX_BYTES`] bytes, unless `--limit` asks for more.

/// Lines of a default answer, the one that says what was left out included.
const MAX_LINES: usize = 40;

/// Bytes of a default answer.
const MAX_BYTES: usize = 4000;

/// Room kept for the last line.
const LAST_LINE: usize = 300;

/// Blocks of lines that are printed whole or not at all.
#[derive(Debug)]
pub(super) struct Budget {
    limited: bool,
    lines: usize,
    /// Bytes that are shown: colours do not count, because they are not there in a pipe.
    bytes: usize,
    text: String,
    /// Lines and bytes that are kept for what is said after the blocks.
    kept: (usize, usize),
}

impl Budget {
    /// An empty answer. Without `limited` everything fits.
    pub(super) const fn new(limited: bool) -> Self {
        Self { limited, lines: 0, bytes: 0, text: String::new(), kept: (1, LAST_LINE) }
    }

    /// Keeps room for a summary that is said after the blocks, beside the one for the last line.
    pub(super) fn keep_room_for(&mut self, summary: &str) {
        self.kept.0 += summary.lines().count();
        self.kept.1 += summary.len() + 1;
    }

    /// Adds a block when it fits; the first always does, cut to what fits.
    pub(super) fn push(&mut self, block: &str) -> bool {
        let lines = block.lines().count();
        let bytes = shown(block);
        let (kept_lines, kept_bytes) = self.kept;
        let fits =
            self.lines + lines + kept_lines <= MAX_LINES && self.bytes + bytes + kept_bytes <= MAX_BYTES;
        if self.limited && !fits {
            if !self.text.is_empty() {
                return false;
            }
            for line in block.lines().take(MAX_LINES.saturating_sub(kept_lines)) {
                if self.bytes + shown(line) + kept_bytes > MAX_BYTES {
                    break;
                }
                self.bytes += shown(line) + 1;
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

    /// Adds the last line, for which room was kept.
    pub(super) fn last(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// The text.
    pub(super) fn finish(self) -> String {
        self.text
    }
}

fn shown(text: &str) -> usize {
    anstream::adapter::strip_str(text).map(str::len).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_more_than_the_budget() {
        for block in ["x\n", "a long line of source that is repeated again and again to fill the room\n"] {
            let mut budget = Budget::new(true);
            budget.keep_room_for("a summary\nof two lines");
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
