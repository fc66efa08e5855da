//! Applies the hunks of a diff to a content.
//!
//! Like `git apply`: every line of a hunk has to match exactly; a hunk that shifted is searched for, the nearest position
//! first. A hunk that fits nowhere, or whose header has no or wrong numbers, is placed by its lines alone, if there is exactly
//! one place: first as it is, then without regard to white space at the ends of its context lines, then without up to
//! [`MAX_FUZZ`] context lines at each end, like `patch`. [`PatchedContent::notes`] says so.

use super::parse::{FilePatch, Hunk, HunkLine};
use crate::edit::preview::lines;

/// How many context lines at each end of a hunk may differ.
const MAX_FUZZ: usize = 2;

/// The most comparisons of lines to find where a hunk that does not apply fits best.
const MAX_COMPARISONS: usize = 20_000_000;

/// A hunk that does not apply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The 1-based line of the diff where the hunk starts.
    pub line: usize,
    /// The first line of the file that it changes, 1-based: where most of its lines fit.
    pub at: usize,
    /// The lines that the hunk expects.
    pub expected: String,
    /// The lines that the hunk would write.
    pub wanted: String,
    /// The lines that the file has there.
    pub found: String,
    /// The first line that differs there; `None` if the hunk has none, or fits in several places.
    pub difference: Option<LineDifference>,
}

/// A line that a hunk expects and the file does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineDifference {
    /// The line of the file, 1-based.
    pub at: usize,
    /// What the hunk expects.
    pub expected: String,
    /// What the file has; empty at its end.
    pub found: String,
}

/// A content after a diff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchedContent {
    /// The new content.
    pub content: Vec<u8>,
    /// How hunks were placed that do not apply as they are.
    pub notes: Vec<String>,
}

/// Applies a diff.
///
/// # Errors
/// Every hunk that does not apply.
pub fn apply(content: &[u8], patch: &FilePatch) -> Result<PatchedContent, Vec<Conflict>> {
    let old = lines(content);
    if let Some(patch) = with_line_ends_of(&old, patch) {
        let mut patched = apply_lines(content, &old, &patch)?;
        patched.notes.push("the diff was read with the line ends of the file, which has others".to_owned());
        return Ok(patched);
    }
    apply_lines(content, &old, patch)
}

/// The diff with the line ends of the file, if each has only one kind and they differ: editors and mail change those of a diff.
fn with_line_ends_of(old: &[&[u8]], patch: &FilePatch) -> Option<FilePatch> {
    let is_crlf = |line: &[u8]| line.ends_with(b"\r\n");
    let is_lf = |line: &[u8]| line.ends_with(b"\n") && !line.ends_with(b"\r\n");
    let ended = || old.iter().filter(|line| line.ends_with(b"\n"));
    let of_diff = || patch.hunks.iter().flat_map(|hunk| &hunk.lines).map(HunkLine::bytes);
    ended().next()?;
    let to_crlf = ended().all(|line| is_crlf(line)) && !of_diff().any(is_crlf);
    let to_lf = ended().all(|line| is_lf(line)) && !of_diff().any(is_lf);
    let convert = |line: &[u8]| -> Vec<u8> {
        match line.strip_suffix(b"\n") {
            Some(text) if to_crlf => [text, b"\r\n"].concat(),
            Some(text) => [text.strip_suffix(b"\r").unwrap_or(text), b"\n"].concat(),
            None => line.to_vec(),
        }
    };
    (to_crlf != to_lf).then(|| {
        let mut patch = patch.clone();
        for line in patch.hunks.iter_mut().flat_map(|hunk| &mut hunk.lines) {
            *line = match line {
                HunkLine::Context(line) => HunkLine::Context(convert(line)),
                HunkLine::Removed(line) => HunkLine::Removed(convert(line)),
                HunkLine::Added(line) => HunkLine::Added(convert(line)),
            };
        }
        patch
    })
}

fn apply_lines(content: &[u8], old: &[&[u8]], patch: &FilePatch) -> Result<PatchedContent, Vec<Conflict>> {
    let mut out: Vec<u8> = Vec::with_capacity(content.len());
    let mut conflicts = Vec::new();
    let mut notes = Vec::new();
    let (mut done, mut shift) = (0_usize, 0_isize);
    for hunk in &patch.hunks {
        let expected: Vec<&[u8]> = hunk.before().collect();
        // A number beyond the end of the file means its end.
        let declared = hunk
            .old_start
            .map(|start| start.saturating_sub(usize::from(!expected.is_empty())).min(old.len()));
        let wanted = declared.map(|declared| declared.saturating_add_signed(shift).min(old.len()));
        let exact = wanted.filter(|_| !hunk.is_recounted);
        let placed = match exact.and_then(|wanted| find_position(old, &expected, wanted, done)) {
            Some(at) => Some(Placement { at, skipped: (0, 0), how: None }),
            None => place(old, hunk, wanted, done),
        };
        // A last line without a line end has to be the last one of the file.
        let ends = |placed: &Placement| {
            hunk.after().last().is_none_or(|line| line.ends_with(b"\n"))
                || placed.at + expected.len() >= old.len()
        };
        let Some(Placement { at, skipped: (above, below), how }) = placed.filter(ends) else {
            conflicts.push(conflict(hunk, old, &expected, wanted));
            continue;
        };
        if let Some(declared) = declared {
            shift = at.cast_signed() - declared.cast_signed() - above.cast_signed();
        }
        notes.extend(how.map(|how| format!("the hunk in line {} of the diff {how}", hunk.line)));
        old[done..at].iter().for_each(|line| out.extend(*line));
        done = write_hunk(&mut out, hunk, old, at, above, below);
    }
    old[done..].iter().for_each(|line| out.extend(*line));
    if conflicts.is_empty() { Ok(PatchedContent { content: out, notes }) } else { Err(conflicts) }
}

/// Where a hunk goes.
struct Placement {
    /// The line of the file, counted from 0.
    at: usize,
    /// How many of its first and last context lines do not count.
    skipped: (usize, usize),
    /// What was needed to place it; `None` if it applies as it is.
    how: Option<&'static str>,
}

/// Writes a hunk at a place, and returns the line of the file after it. Context is kept as the file has it.
fn write_hunk(out: &mut Vec<u8>, hunk: &Hunk, old: &[&[u8]], at: usize, above: usize, below: usize) -> usize {
    let mut here = at;
    let used = &hunk.lines[above..hunk.lines.len() - below];
    for line in used {
        match line {
            HunkLine::Added(line) => out.extend(line),
            HunkLine::Removed(_) => here += 1,
            HunkLine::Context(_) => {
                out.extend(old[here]);
                here += 1;
            }
        }
    }
    here
}

/// The only place where the lines of a hunk fit, more and more leniently.
fn place(old: &[&[u8]], hunk: &Hunk, wanted: Option<usize>, from: usize) -> Option<Placement> {
    let is_context = |line: &&HunkLine| matches!(line, HunkLine::Context(_));
    let leading = hunk.lines.iter().take_while(is_context).count();
    let trailing = hunk.lines.iter().rev().take_while(is_context).count();
    let expected = |above: usize, below: usize| -> Vec<&HunkLine> {
        let used = &hunk.lines[above..hunk.lines.len() - below];
        used.iter().filter(|line| !matches!(line, HunkLine::Added(_))).collect()
    };
    let all = expected(0, 0);
    if all.is_empty() {
        // Nothing but added lines: a new content, or the end of the file.
        return old.is_empty().then_some(Placement { at: 0, skipped: (0, 0), how: None });
    }
    let recounted = "was placed by its lines, since the numbers in its header are missing or wrong";
    if hunk.is_recounted {
        let found = positions(old, &all, from, true);
        // The numbers may be right about the place, though not about the length.
        if let Some(at) = wanted.filter(|at| found.contains(at)).or(only(&found)) {
            return Some(Placement { at, skipped: (0, 0), how: Some(recounted) });
        }
        if found.len() > 1 {
            return None;
        }
    }
    if let Some(at) = only(&positions(old, &all, from, false)) {
        let how = Some("was placed although white space at the end of context lines differs");
        return Some(Placement { at, skipped: (0, 0), how });
    }
    for fuzz in 1..=MAX_FUZZ {
        let above = leading.min(fuzz);
        // A hunk may have nothing but context.
        let below = trailing.min(fuzz).min(hunk.lines.len() - above);
        let some = expected(above, below);
        // One line alone, or without context, is too little to show the place.
        let has_context = some.iter().any(|line| matches!(line, HunkLine::Context(_)));
        if (above, below) == (0, 0) || some.len() < 2 || !has_context {
            return None;
        }
        let found = positions(old, &some, from, false);
        if let Some(at) = only(&found) {
            let how = Some("was placed although context lines at its ends differ");
            return Some(Placement { at, skipped: (above, below), how });
        }
        if found.len() > 1 {
            return None;
        }
    }
    None
}

fn only(found: &[usize]) -> Option<usize> {
    match found {
        [only] => Some(*only),
        _ => None,
    }
}

/// The places where lines fit, two at most besides the first. `exact`: also white space at the ends of context lines.
fn positions(old: &[&[u8]], expected: &[&HunkLine], from: usize, exact: bool) -> Vec<usize> {
    let fits = |line: &HunkLine, found: &[u8]| match line {
        HunkLine::Removed(line) => line == found,
        HunkLine::Context(line) if exact => line == found,
        HunkLine::Context(line) => line.trim_ascii_end() == found.trim_ascii_end(),
        HunkLine::Added(_) => false,
    };
    let Some(last) = old.len().checked_sub(expected.len()) else { return Vec::new() };
    let all = |at: &usize| expected.iter().zip(&old[*at..]).all(|(line, found)| fits(line, found));
    (from..=last).filter(all).collect()
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

fn conflict(hunk: &Hunk, old: &[&[u8]], expected: &[&[u8]], wanted: Option<usize>) -> Conflict {
    let text = |lines: &[&[u8]]| String::from_utf8_lossy(&lines.concat()).into_owned();
    let start = best_position(old, expected, wanted).min(old.len());
    let end = (start + expected.len()).min(old.len());
    let new: Vec<&[u8]> = hunk.after().collect();
    let there = |index: usize| old.get(start + index).copied().unwrap_or_default();
    let differs = expected.iter().enumerate().find(|(index, line)| there(*index) != **line);
    Conflict {
        line: hunk.line,
        at: start + 1,
        expected: text(expected),
        wanted: text(&new),
        found: text(&old[start..end]),
        difference: differs.map(|(index, line)| LineDifference {
            at: start + index + 1,
            expected: text(&[line]),
            found: text(&[there(index)]),
        }),
    }
}

/// Where most lines fit; of several places the one that is nearest to `wanted`, which is also the answer if none fits or the
/// search would take too long.
fn best_position(old: &[&[u8]], expected: &[&[u8]], wanted: Option<usize>) -> usize {
    let fallback = wanted.unwrap_or_default();
    if expected.is_empty() || old.len().saturating_mul(expected.len()) > MAX_COMPARISONS {
        return fallback;
    }
    let fitting = |at: usize| expected.iter().zip(&old[at..]).filter(|(line, found)| line == found).count();
    let score = |at: &usize| (fitting(*at), std::cmp::Reverse(at.abs_diff(fallback)));
    let best = (0..old.len()).max_by_key(score);
    best.filter(|at| fitting(*at) > 0).unwrap_or(fallback)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edit::patch::parse;

    fn applied(content: &str, diff: &str) -> Result<String, Vec<Conflict>> {
        let file = parse(diff.as_bytes()).unwrap().remove(0);
        apply(content.as_bytes(), &file).map(|applied| String::from_utf8(applied.content).unwrap())
    }

    #[test]
    fn a_hunk_of_context_alone_changes_nothing_or_does_not_fit() {
        let diff = "--- a/f\n+++ b/f\n@@ -1 +1 @@\n one\n";
        assert_eq!(applied("one\n", diff).unwrap(), "one\n");
        assert!(applied("two\n", diff).is_err());
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
    }

    #[test]
    fn the_line_ends_are_those_of_the_file() {
        let diff = "--- a\n+++ a\n@@ -1,2 +1,3 @@\n a\n-b\n+B\n+c\n";
        assert_eq!(applied("a\r\nb\r\n", diff).unwrap(), "a\r\nB\r\nc\r\n");
        let added = "--- a\n+++ a\n@@ -1,2 +1,3 @@\n a\n+x\n b\n";
        assert_eq!(applied("a\r\nb", added).unwrap(), "a\r\nx\r\nb", "the last line has no end");
        assert_eq!(applied("a\r\nb\r\n", added).unwrap(), "a\r\nx\r\nb\r\n");
        let crlf = "--- a\n+++ a\n@@ -1 +1 @@\n-a\r\n+b\r\n";
        assert_eq!(applied("a\n", crlf).unwrap(), "b\n");
        // A diff that changes line ends, and a file that has both kinds.
        let changes = "--- a\n+++ a\n@@ -1 +1 @@\n-a\r\n+a\n";
        assert_eq!(applied("a\r\n", changes).unwrap(), "a\n");
        assert!(applied("a\r\nb\n", "--- a\n+++ a\n@@ -1,2 +1,2 @@\n-a\n+A\n b\n").is_err());
    }

    /// The content and the number of notes.
    fn lenient(content: &str, hunks: &str) -> Result<(String, usize), Box<Conflict>> {
        let file = parse(format!("--- a\n+++ a\n{hunks}").as_bytes()).unwrap().remove(0);
        let applied =
            apply(content.as_bytes(), &file).map_err(|mut conflicts| Box::new(conflicts.remove(0)))?;
        Ok((String::from_utf8(applied.content).unwrap(), applied.notes.len()))
    }

    #[test]
    fn hunks_without_numbers_are_placed_where_they_fit() {
        let content = "a\nb\nc\na\nd\n";
        assert_eq!(lenient(content, "@@\n-b\n+B\n c\n").unwrap(), ("a\nB\nc\na\nd\n".to_owned(), 1));
        assert_eq!(lenient(content, "@@\n a\n-d\n@@\n-b\n").unwrap_err().line, 6, "hunks are in order");
        // `a` is in two places: only the number can decide.
        assert!(lenient(content, "@@\n-a\n+A\n").is_err());
        assert_eq!(lenient(content, "@@ -4,7 +4,7 @@\n-a\n+A\n").unwrap().0, "a\nb\nc\nA\nd\n");
        assert_eq!(lenient("", "@@\n+x\n").unwrap().0, "x\n");
        assert!(lenient(content, "@@\n+x\n").is_err(), "nothing shows the place");
    }

    #[test]
    fn context_that_differs_is_skipped_where_the_place_is_unique() {
        let content = "def f():\n    a = 1\n    b = 2\n    return a\n";
        // The first and the last line are not what the file has; the file's lines stay.
        let hunk = "@@ -1,4 +1,4 @@\n def g():\n     a = 1\n-    b = 2\n+    b = 3\n     return b\n";
        assert_eq!(lenient(content, hunk).unwrap(), (content.replace("b = 2", "b = 3"), 1));
        let blank = "@@ -1,3 +1,3 @@\n def f():  \n     a = 1\n-    b = 2\n+    b = 3\n";
        assert_eq!(lenient(content, blank).unwrap(), (content.replace("b = 2", "b = 3"), 1));
        // A removed line has to be there exactly.
        let wrong = "@@ -2,2 +2,2 @@\n     a = 1\n-    b = 9\n+    b = 3\n";
        let conflict = lenient(content, wrong).unwrap_err();
        let difference = conflict.difference.unwrap();
        assert_eq!((difference.at, difference.expected.as_str()), (3, "    b = 9\n"));
        assert_eq!(difference.found, "    b = 2\n");
        // Two places fit without the context.
        let twice = "x\nb\ny\nb\n";
        assert!(lenient(twice, "@@ -9,2 +9,2 @@\n z\n-b\n+B\n").is_err());
    }

    #[test]
    fn the_best_place_is_shown() {
        let content: String = (0..50).map(|line| format!("line {line}\n")).collect();
        let hunk = "@@ -3,3 +3,3 @@\n line 30\n-line 31x\n+line 31y\n line 32\n";
        let conflict = lenient(&content, hunk).unwrap_err();
        assert_eq!(conflict.at, 31);
        assert_eq!(conflict.difference.unwrap().found, "line 31\n");
    }
}
