//! Edits as text: the diff, the checks that failed, and the command to run next.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::budget::Budget;
use super::screen::escape_for_terminal;
use super::text::{Links, compiler_location, diagnostic};
use super::{Printer, Style};
use crate::model::bundle::Bundle;
use crate::model::edits::{Check, CheckName, DiagnosticsDelta, Edits, FileChangeKind, TransactionState};
use crate::model::request::Command;
use crate::text::plural;

/// How many locations of a failed check are shown.
const SHOWN_LOCATIONS: usize = 5;

/// How many files are named whose diff is not shown.
const SHOWN_FILES: usize = 5;

/// More lines than any diff that is read.
const ALL_LINES: usize = 100_000;

/// How many places are shown that the caller has to decide about.
const SHOWN_DECISIONS: usize = 20;

/// How many remaining mentions of the old name are shown.
const SHOWN_RESIDUE: usize = 8;

/// Prints edits, applied or only planned.
pub(super) fn print(printer: &Printer, bundle: &Bundle, edits: &Edits, budget: &mut Budget) {
    let cmd = bundle.request.as_ref().map(|request| request.cmd);
    match (&edits.transaction, cmd) {
        (Some(_), _) => written(printer, edits, budget),
        (None, Some(Command::Check)) => verdict(printer, bundle, edits, budget),
        (None, cmd) => preview(printer, cmd, edits, budget),
    }
}

fn written(printer: &Printer, edits: &Edits, budget: &mut Budget) {
    let Some(transaction) = &edits.transaction else { return };
    let summary = match transaction.state {
        TransactionState::Applied => {
            let files = plural(transaction.files, "file");
            format!(
                "{}wrote {files}, transaction {}\n{}to undo: {}",
                notes(edits),
                transaction.id,
                residue(edits),
                (printer.command_form)(&printer.with_workspace(&format!("lanser undo {}", transaction.id)))
            )
        }
        TransactionState::Undone | TransactionState::Damaged => {
            let what = transaction.what.as_deref().unwrap_or_default();
            format!("{what}: {}", plural(transaction.files, "file"))
        }
    };
    budget.reserve(&summary);
    let mut shown = 0;
    for file in &edits.files {
        if !budget.push(&file_line(file)) {
            break;
        }
        shown += 1;
    }
    if shown < edits.files.len() {
        let more = plural(edits.files.len() - shown, "more file");
        budget.last(&Style::Quiet.paint(format!("and {more}")));
    }
    budget.last(&summary);
}

fn file_line(file: &crate::model::edits::EditedFile) -> String {
    let sign = match file.change {
        FileChangeKind::Modify => 'M',
        FileChangeKind::Create => 'A',
        FileChangeKind::Delete => 'D',
        FileChangeKind::Rename => 'R',
    };
    let from = file.from.as_ref().map(|from| format!("{from} -> ")).unwrap_or_default();
    format!("{sign} {from}{} +{} -{}\n", Style::Path.paint(&file.uri), file.insertions, file.deletions)
}

fn preview(printer: &Printer, cmd: Option<Command>, edits: &Edits, budget: &mut Budget) {
    if edits.files.is_empty() {
        budget.last("nothing to edit");
        return;
    }
    let mut summary = notes(edits) + &totals(edits);
    if let Some(delta) = &edits.diagnostics {
        // Diagnostics that a rename resolves are not searched for.
        let _ = write!(summary, "; {}", diagnostics_delta(delta, cmd != Some(Command::Rename)));
    }
    let failed = edits.safety.iter().filter(|check| !check.passed).count();
    let passed = edits.safety.len() - failed;
    let _ = write!(summary, "\nchecks{}: {passed} passed, {failed} failed\n", printer.scope());
    summary.push_str(&residue(edits));
    // The error reports what failed and what to do about it.
    if !edits.safety.iter().any(Check::stops) {
        summary.push_str(&checks(edits, ""));
        let _ = write!(summary, "to apply: {}", printer.next_command(&[("--apply", "")]));
    }
    budget.reserve(&summary);
    let mut shown = 0;
    let mut hidden_hunks = 0;
    // A truncated diff is not a valid patch, so only whole files are shown, except that of a long first file the first hunks are.
    let files = per_file(&edits.diff);
    for file in &files {
        let text = colored(file);
        if shown == 0 && !budget.fits(&text) {
            let hunks = per_hunk(file);
            let fit =
                hunks.iter().take_while(|hunk| budget.fits(&colored(hunk)) && budget.push(&colored(hunk)));
            hidden_hunks = hunks.len() - fit.count();
            if hidden_hunks == hunks.len() {
                budget.push(&colored(hunks[0]));
            }
            shown = 1;
            break;
        }
        if !budget.push(&text) {
            break;
        }
        shown += 1;
    }
    if hidden_hunks > 0 {
        let file = edits.files.first().map(|file| file.uri.to_string()).unwrap_or_default();
        let more = match files.len() - shown {
            0 => String::new(),
            files => format!(" and {}", plural(files, "more file")),
        };
        budget.last(&format!("the diff of {file} goes on{more}: {}", printer.whole(ALL_LINES)));
    } else if shown < files.len() {
        let hidden: Vec<String> = edits.files.iter().skip(shown).map(|file| file.uri.to_string()).collect();
        let count = plural(files.len() - shown, "more file");
        let more = match edits.files.len() == files.len() && hidden.len() <= SHOWN_FILES {
            true => format!("{count} ({})", hidden.join(", ")),
            false => count,
        };
        budget.last(&format!("{more}: {}", printer.whole(ALL_LINES)));
    }
    budget.last(summary.trim_end());
}

/// What the edit's diagnostics do not show, and how hunks of a diff were placed, one line each.
fn notes(edits: &Edits) -> String {
    let note = |note: &String| format!("{} {note}\n", Style::Warning.paint("note:"));
    edits.notes.iter().map(note).collect()
}

fn totals(edits: &Edits) -> String {
    let sum = |count: fn(&crate::model::edits::EditedFile) -> u32| edits.files.iter().map(count).sum::<u32>();
    let files = plural(edits.files.len(), "file");
    format!("{files}, +{} -{} lines", sum(|file| file.insertions), sum(|file| file.deletions))
}

fn diagnostics_delta(delta: &DiagnosticsDelta, with_resolved: bool) -> String {
    let unchanged = delta.unchanged.error + delta.unchanged.warning + delta.unchanged.information;
    let mut text = format!("new diagnostics: {}", delta.introduced.len());
    if with_resolved {
        let _ = write!(text, ", resolved: {}", delta.resolved.len());
    }
    let _ = write!(text, ", unchanged: {unchanged}");
    if delta.files_left_out > 0 {
        let compared = plural(delta.files_checked, "file");
        let _ = write!(text, "; {compared} compared, {} left out", delta.files_left_out);
    }
    text
}

/// The failed checks, one line each, with their locations. `said` is the message of the error, which need not be repeated:
/// its check comes first.
pub(super) fn checks(edits: &Edits, said: &str) -> String {
    let mut text = String::new();
    let is_said = |check: &&Check| said.contains(&check.detail);
    let (first, others): (Vec<_>, Vec<_>) =
        edits.safety.iter().filter(|check| !check.passed).partition(is_said);
    for check in first.into_iter().chain(others) {
        if !is_said(&check) {
            let word = if check.overridden { "overridden" } else { "FAILED" };
            let name = check.name.as_str();
            let _ = writeln!(text, "{} {name}: {}", Style::Warning.paint(word), check.detail);
        }
        let lines: Vec<String> = match (&edits.diagnostics, check.name) {
            (Some(delta), CheckName::Diagnostics) => {
                delta.introduced.iter().map(|found| diagnostic(Links::none(), found)).collect()
            }
            _ => located(check),
        };
        let shown = if check.previews.is_empty() { SHOWN_LOCATIONS } else { SHOWN_DECISIONS };
        for line in lines.iter().take(shown) {
            let _ = writeln!(text, "  {}", line.trim_end().replace('\n', "\n  "));
        }
        if lines.len() > shown {
            let files = by_file(check.places.get(shown..).unwrap_or_default());
            let _ = writeln!(text, "  and {} more{files}; JSON lists all", lines.len() - shown);
        }
    }
    text
}

/// The locations of a check, with their source lines where it has them.
fn located(check: &Check) -> Vec<String> {
    let lines = check.previews.iter().map(|line| format!(": {}", escape_for_terminal(line.trim())));
    let lines = lines.chain(std::iter::repeat(String::new()));
    check.places.iter().zip(lines).map(|(at, line)| format!("{}{line}", compiler_location(at))).collect()
}

/// How many of the places are in which file, such as ` (a.py 3, b.py 1)`, the files with the most first.
fn by_file(places: &[String]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for place in places {
        *counts.entry(place.rsplit_once('@').map_or(place.as_str(), |(file, _)| file)).or_default() += 1;
    }
    let mut counts: Vec<(&str, usize)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let named: Vec<String> =
        counts.iter().take(SHOWN_FILES).map(|(file, count)| format!("{file} {count}")).collect();
    let more = counts.len().saturating_sub(SHOWN_FILES);
    match (named.is_empty(), more) {
        (true, _) => String::new(),
        (false, 0) => format!(" ({})", named.join(", ")),
        (false, _) => format!(" ({}, {})", named.join(", "), plural(more, "more file")),
    }
}

/// Where the old name is still mentioned, but for the places of a check that stops the edit: the error lists those.
fn residue(edits: &Edits) -> String {
    let Some(residue) = edits.residue.as_ref().filter(|residue| residue.count > 0) else {
        return String::new();
    };
    let stopping: Vec<&Check> = edits.safety.iter().filter(|check| check.stops()).collect();
    let listed: BTreeSet<&String> = stopping.iter().flat_map(|check| &check.places).collect();
    let others: Vec<_> = residue.items.iter().filter(|item| !listed.contains(&item.at)).collect();
    let all = residue.count as usize;
    let listed = match all == residue.items.len() {
        true => all - others.len(),
        // Only the first ones are known. What is unresolved remains; places of other checks need not.
        false => {
            let unresolved = stopping.iter().filter(|check| check.name == CheckName::Completeness);
            unresolved.map(|check| check.places.len()).sum::<usize>().min(all - others.len())
        }
    };
    let count = all - listed;
    let what = match (count, listed) {
        (0, _) => return String::new(),
        (_, 0) => {
            let kinds = residue.kinds.iter().map(|(kind, count)| plural(*count, kind_noun(kind)));
            format!("{} ({})", plural(count, "place"), kinds.collect::<Vec<_>>().join(", "))
        }
        _ => plural(count, "other place"),
    };
    let mut text = format!("the old name remains in {what}:\n");
    for item in others.iter().take(SHOWN_RESIDUE) {
        let line = item.preview.as_ref().map(|line| format!(": {}", escape_for_terminal(line.trim())));
        let line = line.unwrap_or_default();
        let _ = writeln!(text, "  {}  {}{line}", compiler_location(&item.at), item.kind);
    }
    let shown = others.len().min(SHOWN_RESIDUE);
    if count > shown {
        let _ = writeln!(text, "  and {} more", count - shown);
    }
    text
}

/// The noun for a kind of occurrence.
fn kind_noun(kind: &str) -> &str {
    match kind {
        "exported" => "exported name",
        "keyword" => "keyword argument",
        kind => kind,
    }
}

fn verdict(printer: &Printer, bundle: &Bundle, edits: &Edits, budget: &mut Budget) {
    let links = Links::of(bundle);
    let delta = edits.diagnostics.clone().unwrap_or_default();
    let mut summary = format!("{}; {}", totals(edits), diagnostics_delta(&delta, true));
    if delta.files_left_out == 0 {
        let _ = write!(summary, "; {} compared", plural(delta.files_checked, "file"));
    }
    if !delta.introduced.is_empty() {
        summary.push_str("; lines are those after the edit");
    }
    let notes = notes(edits);
    budget.reserve(&format!("{notes}{summary}"));
    let lists = [("new", &delta.introduced), ("resolved", &delta.resolved)];
    let mut left = 0;
    for (word, list) in lists {
        for item in list {
            let fits = left == 0 && budget.push(&format!("{word}: {}", diagnostic(links, item)));
            left += usize::from(!fits);
        }
    }
    if left > 0 {
        budget.last(&format!("{left} more: {}", printer.whole(ALL_LINES)));
    }
    if !notes.is_empty() {
        budget.last(notes.trim_end());
    }
    budget.last(&Style::Quiet.paint(summary));
}

/// A diff in parts, one for each file.
fn per_file(diff: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = diff;
    while let Some(at) = rest.get(1..).and_then(|rest| rest.find("\ndiff --git ")) {
        parts.push(&rest[..at + 2]);
        rest = &rest[at + 2..];
    }
    if !rest.is_empty() {
        parts.push(rest);
    }
    parts
}

/// The diff of one file in parts, one for each hunk; the first with the head.
fn per_hunk(file: &str) -> Vec<&str> {
    let starts: Vec<usize> = file.match_indices("\n@@ ").map(|(at, _)| at + 1).skip(1).collect();
    let ends = starts.iter().copied().chain([file.len()]);
    let starts = std::iter::once(0).chain(starts.iter().copied());
    starts.zip(ends).map(|(start, end)| &file[start..end]).collect()
}

/// The diff, colored for a terminal. In a pipe it is the exact patch, byte for byte.
fn colored(diff: &str) -> String {
    let diff = escape_for_terminal(diff);
    let mut text = String::new();
    for line in diff.split_inclusive('\n') {
        let bare = line.strip_suffix('\n').unwrap_or(line);
        match bare.as_bytes().first() {
            Some(b'+') if !bare.starts_with("+++ ") => text.push_str(&Style::Hint.paint(bare)),
            Some(b'-') if !bare.starts_with("--- ") => text.push_str(&Style::Removed.paint(bare)),
            _ => text.push_str(bare),
        }
        if bare.len() < line.len() {
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_concatenate_to_the_diff() {
        let diff = "diff --git a/a b/a\n+x\n+diff --git y\ndiff --git a/b b/b\n-x\n";
        assert_eq!(per_file(diff).len(), 2);
        assert_eq!(per_file(diff).concat(), diff);
        let file = "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n+y\n@@ -9 +9 @@\n-x\n+y\n";
        assert_eq!(per_hunk(file).len(), 2);
        assert_eq!(per_hunk(file).concat(), file);
        assert_eq!(per_hunk("diff --git a/a b/a\n"), ["diff --git a/a b/a\n"]);
        assert!(per_file("").is_empty());
    }

    #[test]
    fn places_beyond_the_shown_ones_are_counted_by_file() {
        let places = |text: &str| by_file(&text.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(places(""), "");
        assert_eq!(places("a.py@L1:C1 b.py@L2:C1 b.py@L3:C1"), " (b.py 2, a.py 1)");
        let many = "a@L1:C1 b@L1:C1 c@L1:C1 d@L1:C1 e@L1:C1 f@L1:C1 f@L2:C1 g";
        assert_eq!(places(many), " (f 2, a 1, b 1, c 1, d 1, 2 more files)");
    }
}
