//! Prints a list of changes as a unified diff in git's format, which `git apply` accepts.
//!
//! Lines end at `\n` only, as in git, although Python also ends a line at a lone `\r`. If a hunk has bytes that are not
//! UTF-8, the change is printed as a binary patch, because a bundle is JSON and a patch has to be exact.

use std::fmt::Write as _;

use similar::{Algorithm, DiffOp, capture_diff_slices, group_diff_ops};

use super::binary;
use super::plan::{EditPlan, PlannedChange};
use super::quote::quote;

/// The number of context lines around a hunk.
const CONTEXT_LINES: usize = 3;

/// The diff of one change, with the numbers of inserted and deleted lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preview {
    /// The diff of the file.
    pub diff: String,
    /// The number of inserted lines.
    pub insertions: u32,
    /// The number of deleted lines.
    pub deletions: u32,
}

/// The diff of the whole plan, in the order of its changes.
#[must_use]
pub fn diff(plan: &EditPlan) -> String {
    plan.changes().iter().map(|change| preview(change).diff).collect()
}

/// The diff of one file.
#[must_use]
pub fn preview(change: &PlannedChange) -> Preview {
    let (old_name, new_name) = (change.from.as_ref().unwrap_or(&change.path), &change.path);
    let (a, b) = (quote(&format!("a/{old_name}")), quote(&format!("b/{new_name}")));
    let nothing: &[u8] = &[];
    let before = change.before.as_ref().map_or(nothing, |original| &original.bytes);
    let after = change.after.as_deref().unwrap_or(nothing);
    let (old_mode, mode) = change.modes();
    let mut diff = format!("diff --git {a} {b}\n");
    match (&change.before, &change.after, &change.from) {
        (None, ..) => {
            let _ = writeln!(diff, "new file mode {mode}");
        }
        (_, None, _) => {
            let _ = writeln!(diff, "deleted file mode {mode}");
        }
        _ if old_mode != mode => {
            let _ = writeln!(diff, "old mode {old_mode}\nnew mode {mode}");
        }
        _ => {}
    }
    if let (Some(_), Some(_), Some(from)) = (&change.before, &change.after, &change.from) {
        // The similarity is informative; git does not check it.
        let percent = if before == after { 100 } else { similarity(before, after) };
        let _ = writeln!(
            diff,
            "similarity index {percent}%\nrename from {}\nrename to {}",
            quote(from.as_str()),
            quote(new_name.as_str())
        );
    }
    let body = body(before, after);
    let DiffBody { hunks, insertions, deletions } = body;
    let index = |diff: &mut String| {
        let old = binary::blob_id(change.before.as_ref().map(|original| original.bytes.as_slice()));
        let new = binary::blob_id(change.after.as_deref());
        let tail = if change.before.is_some() && change.after.is_some() && old_mode == mode {
            format!(" {mode}")
        } else {
            String::new()
        };
        let _ = writeln!(diff, "index {old}..{new}{tail}");
    };
    match String::from_utf8(hunks) {
        Ok(hunks) if !hunks.contains('\0') => {
            if hunks.is_empty() {
                if change.before.is_none() || change.after.is_none() {
                    index(&mut diff);
                }
            } else {
                let none = "/dev/null".to_owned();
                let old = if change.before.is_none() { &none } else { &a };
                let new = if change.after.is_none() { &none } else { &b };
                // Like git, a name with a space is followed by a tab, which separates it from a date.
                let tab = |name: &str| if name.contains(' ') && !name.starts_with('"') { "\t" } else { "" };
                let _ = writeln!(diff, "--- {old}{}\n+++ {new}{}", tab(old), tab(new));
                diff.push_str(&hunks);
            }
        }
        _ => {
            index(&mut diff);
            diff.push_str(&binary::patch(before, after));
        }
    }
    Preview { diff, insertions, deletions }
}

struct DiffBody {
    hunks: Vec<u8>,
    insertions: u32,
    deletions: u32,
}

fn body(before: &[u8], after: &[u8]) -> DiffBody {
    let (old, new) = (lines(before), lines(after));
    let ops = operations(&old, &new);
    let mut body = DiffBody { hunks: Vec::new(), insertions: 0, deletions: 0 };
    for group in group_diff_ops(ops, CONTEXT_LINES) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        let span = |start: usize, end: usize| {
            let length = end - start;
            // An empty range has the number of the line before it.
            let start = if length == 0 { start } else { start + 1 };
            if length == 1 { start.to_string() } else { format!("{start},{length}") }
        };
        let olds = span(first.old_range().start, last.old_range().end);
        let news = span(first.new_range().start, last.new_range().end);
        body.hunks.extend(format!("@@ -{olds} +{news} @@\n").bytes());
        for op in group {
            let (olds, news) = (&old[op.old_range()], &new[op.new_range()]);
            match op {
                DiffOp::Equal { .. } => olds.iter().for_each(|line| push(&mut body.hunks, b' ', line)),
                _ => {
                    body.deletions += u32::try_from(olds.len()).unwrap_or(u32::MAX);
                    body.insertions += u32::try_from(news.len()).unwrap_or(u32::MAX);
                    olds.iter().for_each(|line| push(&mut body.hunks, b'-', line));
                    news.iter().for_each(|line| push(&mut body.hunks, b'+', line));
                }
            }
        }
    }
    body
}

fn push(out: &mut Vec<u8>, sign: u8, line: &[u8]) {
    out.push(sign);
    out.extend(line);
    if !line.ends_with(b"\n") {
        out.extend(b"\n\\ No newline at end of file\n");
    }
}

/// The line diff. The common prefix and suffix are excluded from the search, which is then fast for local edits.
fn operations(old: &[&[u8]], new: &[&[u8]]) -> Vec<DiffOp> {
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let most = old.len().min(new.len()) - head;
    let tail = old.iter().rev().zip(new.iter().rev()).take(most).take_while(|(a, b)| a == b).count();
    let (old_end, new_end) = (old.len() - tail, new.len() - tail);
    let mut ops = Vec::new();
    if head > 0 {
        ops.push(DiffOp::Equal { old_index: 0, new_index: 0, len: head });
    }
    let inner = capture_diff_slices(Algorithm::Myers, &old[head..old_end], &new[head..new_end]);
    ops.extend(inner.into_iter().map(|op| match op {
        DiffOp::Equal { old_index, new_index, len } => {
            DiffOp::Equal { old_index: old_index + head, new_index: new_index + head, len }
        }
        DiffOp::Delete { old_index, old_len, new_index } => {
            DiffOp::Delete { old_index: old_index + head, old_len, new_index: new_index + head }
        }
        DiffOp::Insert { old_index, new_index, new_len } => {
            DiffOp::Insert { old_index: old_index + head, new_index: new_index + head, new_len }
        }
        DiffOp::Replace { old_index, old_len, new_index, new_len } => {
            DiffOp::Replace { old_index: old_index + head, old_len, new_index: new_index + head, new_len }
        }
    }));
    if tail > 0 {
        ops.push(DiffOp::Equal { old_index: old_end, new_index: new_end, len: tail });
    }
    ops
}

/// The lines of a content with their line ends.
pub(super) fn lines(content: &[u8]) -> Vec<&[u8]> {
    content.split_inclusive(|&byte| byte == b'\n').collect()
}

/// The percentage of equal lines, at most 99.
fn similarity(before: &[u8], after: &[u8]) -> usize {
    let (old, new) = (lines(before), lines(after));
    let ops = operations(&old, &new);
    let same: usize = ops.iter().map(|op| if let DiffOp::Equal { len, .. } = op { *len } else { 0 }).sum();
    (200 * same).checked_div(old.len() + new.len()).unwrap_or(0).min(99)
}
