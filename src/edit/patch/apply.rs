//! Making the hunks of a diff to a content.
//!
//! As `git apply` does: every line of a hunk has to be there, letter by letter; a hunk whose place has shifted is looked for,
//! the nearest place first. Nothing is guessed beyond that.

use super::parse::{FilePatch, Hunk};
use crate::edit::preview::lines;

/// A hunk that fits nowhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// Where in the diff the hunk begins, 1-based.
    pub line: usize,
    /// The first line of the file that it is about, 1-based.
    pub at: usize,
    /// The lines that the hunk expects.
    pub expected: String,
    /// The lines that the hunk wants there.
    pub wanted: String,
    /// The lines that stand there.
    pub found: String,
}

/// The content after.
///
/// # Errors
/// Every hunk that fits nowhere.
pub fn apply(content: &[u8], patch: &FilePatch) -> Result<Vec<u8>, Vec<Conflict>> {
    let old = lines(content);
    let mut out: Vec<u8> = Vec::with_capacity(content.len());
    let mut conflicts = Vec::new();
    let (mut done, mut shift) = (0_usize, 0_isize);
    for hunk in &patch.hunks {
        let expected: Vec<&[u8]> = hunk.before().collect();
        let stated = if expected.is_empty() { hunk.old_start } else { hunk.old_start.saturating_sub(1) };
        let wanted = stated.saturating_add_signed(shift);
        match place(&old, &expected, wanted, done) {
            Some(at) => {
                shift = at.cast_signed() - stated.cast_signed();
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

/// Where `expected` stands, nearest to `wanted`, not before `from`.
fn place(old: &[&[u8]], expected: &[&[u8]], wanted: usize, from: usize) -> Option<usize> {
    let last = old.len().checked_sub(expected.len())?;
    if expected.is_empty() {
        // Nothing says where, but the number.
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

    fn made(content: &str, diff: &str) -> Result<String, Vec<Conflict>> {
        let file = parse(diff.as_bytes()).unwrap().remove(0);
        apply(content.as_bytes(), &file).map(|bytes| String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn hunks_are_found_where_they_shifted_to() {
        let diff = "--- a\n+++ a\n@@ -2,2 +2,2 @@\n b\n-c\n+C\n";
        assert_eq!(made("a\nb\nc\n", diff).unwrap(), "a\nb\nC\n");
        assert_eq!(made("0\n0\na\nb\nc\n", diff).unwrap(), "0\n0\na\nb\nC\n");
        let conflicts = made("a\nB\nc\n", diff).unwrap_err();
        assert_eq!((conflicts[0].at, conflicts[0].found.as_str()), (2, "B\nc\n"));
    }

    #[test]
    fn the_end_of_the_last_line_counts() {
        let diff =
            "--- a\n+++ a\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n";
        assert_eq!(made("a", diff).unwrap(), "b");
        assert!(made("a\n", diff).is_err());
        let ends = "--- a\n+++ a\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n";
        assert_eq!(made("a", ends).unwrap(), "a\n");
    }

    #[test]
    fn nothing_becomes_something() {
        assert_eq!(made("", "--- a\n+++ a\n@@ -0,0 +1,2 @@\n+a\n+b\n").unwrap(), "a\nb\n");
        assert_eq!(made("a\nb\n", "--- a\n+++ a\n@@ -1,0 +2 @@\n+x\n").unwrap(), "a\nx\nb\n");
        assert!(made("a\r\n", "--- a\n+++ a\n@@ -1 +1 @@\n-a\n+b\n").is_err());
    }
}
