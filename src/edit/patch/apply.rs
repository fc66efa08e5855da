//! Applies the hunks of a diff to a content.
//!
//! Like `git apply`: every line of a hunk has to match exactly; a hunk that shifted is searched for, the nearest position
//! first. There is no fuzzy matching.

use super::parse::{FilePatch, Hunk};
use crate::edit::preview::lines;

/// A hunk that does not apply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The 1-based line of the diff where the hunk starts.
    pub line: usize,
    /// The first line of the file that it changes, 1-based.
    pub at: usize,
    /// The lines that the hunk expects.
    pub expected: String,
    /// The lines that the hunk would write.
    pub wanted: String,
    /// The lines that the file has there.
    pub found: String,
}

/// Applies a diff and returns the new content.
///
/// # Errors
/// Every hunk that does not apply.
pub fn apply(content: &[u8], patch: &FilePatch) -> Result<Vec<u8>, Vec<Conflict>> {
    let old = lines(content);
    let mut out: Vec<u8> = Vec::with_capacity(content.len());
    let mut conflicts = Vec::new();
    let (mut done, mut shift) = (0_usize, 0_isize);
    for hunk in &patch.hunks {
        let expected: Vec<&[u8]> = hunk.before().collect();
        let declared = if expected.is_empty() { hunk.old_start } else { hunk.old_start.saturating_sub(1) };
        let wanted = declared.saturating_add_signed(shift);
        match find_position(&old, &expected, wanted, done) {
            Some(at) => {
                shift = at.cast_signed() - declared.cast_signed();
                old[done..at].iter().for_each(|line| out.extend(*line));
                hunk.after().for_each(|line| out.extend(line));
                done = at + expected.len();
            }
            None => conflicts.push(conflict(hunk, &old, &expected, wanted)),
        }
    }
    old[done..].iter().for_each(|line| out.extend(*line));
    if conflicts.is_empty() { Ok(out) } else { Err(conflicts) }
}

/// The position of `expected` that is nearest to `wanted` and not before `from`.
fn find_position(old: &[&[u8]], expected: &[&[u8]], wanted: usize, from: usize) -> Option<usize> {
    let last = old.len().checked_sub(expected.len())?;
    if expected.is_empty() {
        // Without context the line number is the only evidence.
        return (wanted >= from && wanted <= last).then_some(wanted);
    }
    let fits = |at: &usize| *at >= from && *at <= last && old[*at..*at + expected.len()] == *expected;
    let far = wanted.max(last);
    (0..=far).find_map(|distance| {
        let before = wanted.checked_sub(distance).filter(fits);
        before.or_else(|| Some(wanted + distance).filter(fits))
    })
}

fn conflict(hunk: &Hunk, old: &[&[u8]], expected: &[&[u8]], wanted: usize) -> Conflict {
    let text = |lines: &[&[u8]]| String::from_utf8_lossy(&lines.concat()).into_owned();
    let start = wanted.min(old.len());
    let end = (start + expected.len()).min(old.len());
    let new: Vec<&[u8]> = hunk.after().collect();
    Conflict {
        line: hunk.line,
        at: wanted + 1,
        expected: text(expected),
        wanted: text(&new),
        found: text(&old[start..end]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edit::patch::parse;

    fn applied(content: &str, diff: &str) -> Result<String, Vec<Conflict>> {
        let file = parse(diff.as_bytes()).unwrap().remove(0);
        apply(content.as_bytes(), &file).map(|bytes| String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn shifted_hunks_are_found() {
        let diff = "--- a\n+++ a\n@@ -2,2 +2,2 @@\n b\n-c\n+C\n";
        assert_eq!(applied("a\nb\nc\n", diff).unwrap(), "a\nb\nC\n");
        assert_eq!(applied("0\n0\na\nb\nc\n", diff).unwrap(), "0\n0\na\nb\nC\n");
        let conflicts = applied("a\nB\nc\n", diff).unwrap_err();
        assert_eq!((conflicts[0].at, conflicts[0].found.as_str()), (2, "B\nc\n"));
    }

    #[test]
    fn the_end_of_the_last_line_counts() {
        let diff =
            "--- a\n+++ a\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n";
        assert_eq!(applied("a", diff).unwrap(), "b");
        assert!(applied("a\n", diff).is_err());
        let ends = "--- a\n+++ a\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n";
        assert_eq!(applied("a", ends).unwrap(), "a\n");
    }

    #[test]
    fn inserts_into_empty_ranges() {
        assert_eq!(applied("", "--- a\n+++ a\n@@ -0,0 +1,2 @@\n+a\n+b\n").unwrap(), "a\nb\n");
        assert_eq!(applied("a\nb\n", "--- a\n+++ a\n@@ -1,0 +2 @@\n+x\n").unwrap(), "a\nx\nb\n");
        assert!(applied("a\r\n", "--- a\n+++ a\n@@ -1 +1 @@\n-a\n+b\n").is_err());
    }
}
