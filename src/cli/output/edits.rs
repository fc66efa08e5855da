//! Edits as text: the diff, what is wrong with it, and the command that comes next.

use std::fmt::Write as _;

use super::budget::Budget;
use super::human::{Links, diagnostic, number, spot};
use super::screen::harmless;
use super::{Printer, Style};
use crate::model::bundle::Bundle;
use crate::model::edits::{ChangeKind, Check, DiagnosticsDelta, Edits, TransactionState};
use crate::model::request::Command;

/// How many places of a failed check are shown.
const PLACES: usize = 5;

/// How many places where the old name stays are shown.
const RESIDUE: usize = 8;

/// Prints edits: those that were made, or those that would be.
pub(super) fn print(printer: &Printer, bundle: &Bundle, edits: &Edits, budget: &mut Budget) {
    let cmd = bundle.request.as_ref().map(|request| request.cmd);
    match (&edits.transaction, cmd) {
        (Some(_), _) => written(edits, budget),
        (None, Some(Command::Check)) => verdict(bundle, edits, budget),
        (None, cmd) => preview(printer, cmd, edits, budget),
    }
}

fn written(edits: &Edits, budget: &mut Budget) {
    let Some(transaction) = &edits.transaction else { return };
    let summary = match transaction.state {
        TransactionState::Applied => {
            let files = number(transaction.files, "file");
            format!(
                "wrote {files}, transaction {0}\n{1}to take it back: lanser undo {0}",
                transaction.id,
                residue(edits)
            )
        }
        TransactionState::Undone | TransactionState::Damaged => {
            let what = transaction.what.as_deref().unwrap_or_default();
            format!("{what}: {}", number(transaction.files, "file"))
        }
    };
    budget.keep_room_for(&summary);
    let mut shown = 0;
    for file in &edits.files {
        if !budget.push(&file_line(file)) {
            break;
        }
        shown += 1;
    }
    if shown < edits.files.len() {
        budget.last(&Style::Quiet.paint(format!("and {} more files", edits.files.len() - shown)));
    }
    budget.last(&summary);
}

fn file_line(file: &crate::model::edits::EditedFile) -> String {
    let sign = match file.change {
        ChangeKind::Modify => 'M',
        ChangeKind::Create => 'A',
        ChangeKind::Delete => 'D',
        ChangeKind::Rename => 'R',
    };
    let from = file.from.as_ref().map(|from| format!("{from} -> ")).unwrap_or_default();
    format!("{sign} {from}{} +{} -{}\n", Style::Path.paint(&file.uri), file.insertions, file.deletions)
}

fn preview(printer: &Printer, cmd: Option<Command>, edits: &Edits, budget: &mut Budget) {
    if edits.files.is_empty() {
        budget.last("nothing to edit");
        return;
    }
    let mut summary = totals(edits);
    if let Some(delta) = &edits.diagnostics {
        // What a rename ends, nobody looked for.
        let _ = write!(summary, "; {}", told(delta, cmd != Some(Command::Rename)));
    }
    let failed: Vec<&Check> = edits.safety.iter().filter(|check| !check.passed).collect();
    let passed = edits.safety.len() - failed.len();
    let _ = write!(summary, "\nchecks: {passed} passed, {} failed\n", failed.len());
    summary.push_str(&checks(&edits.safety));
    summary.push_str(&residue(edits));
    let next = printer.next_command(&[("--dry-run", "")]).replace(" --dry-run ''", "");
    let ways: Vec<&str> = edits
        .safety
        .iter()
        .filter(|check| check.stops())
        .filter_map(|check| check.name.given_up_by())
        .collect();
    let impossible = edits.safety.iter().any(|check| check.stops() && check.name.given_up_by().is_none());
    if !impossible {
        let more = if ways.is_empty() { String::new() } else { format!(" {}", ways.join(" ")) };
        let word = if ways.is_empty() { "to write it" } else { "to write it all the same" };
        let _ = write!(summary, "{word}: {}", Style::Hint.paint(format!("{next} --apply{more}")));
    }
    budget.keep_room_for(&summary);
    let mut shown = 0;
    // A cut diff is no patch: what is shown is whole files, and the first at least in part.
    let files = per_file(&edits.diff);
    for file in &files {
        if !budget.push(&coloured(file)) {
            break;
        }
        shown += 1;
    }
    if shown < files.len() {
        let all = printer.next_command(&[("--limit", "100000")]);
        budget.last(&format!("{} more files: {}", files.len() - shown, Style::Hint.paint(all)));
    }
    budget.last(summary.trim_end());
}

fn totals(edits: &Edits) -> String {
    let sum = |count: fn(&crate::model::edits::EditedFile) -> u32| edits.files.iter().map(count).sum::<u32>();
    let files = number(u32::try_from(edits.files.len()).unwrap_or(u32::MAX), "file");
    format!("{files}, +{} -{} lines", sum(|file| file.insertions), sum(|file| file.deletions))
}

fn told(delta: &DiagnosticsDelta, with_resolved: bool) -> String {
    let there = delta.unchanged.error + delta.unchanged.warning + delta.unchanged.information;
    let mut text = format!("new diagnostics: {}", delta.introduced.len());
    if with_resolved {
        let _ = write!(text, ", resolved: {}", delta.resolved.len());
    }
    let _ = write!(text, ", already there: {there}");
    if delta.files_left_out > 0 {
        let compared = number(delta.files_checked, "file");
        let _ = write!(text, "; {compared} compared, {} left out", delta.files_left_out);
    }
    text
}

/// What is wrong, one line for each check, with places.
pub(super) fn checks(safety: &[Check]) -> String {
    let mut text = String::new();
    for check in safety.iter().filter(|check| !check.passed) {
        let word = if check.overridden { "given up" } else { "FAILED" };
        let _ = writeln!(text, "{} {}: {}", Style::Warning.paint(word), check.name.as_str(), check.detail);
        for place in check.places.iter().take(PLACES) {
            let _ = writeln!(text, "  {}", spot(place));
        }
        if check.places.len() > PLACES {
            let _ = writeln!(text, "  and {} more", check.places.len() - PLACES);
        }
    }
    text
}

/// Where the old name stays.
fn residue(edits: &Edits) -> String {
    let Some(residue) = edits.residue.as_ref().filter(|residue| residue.count > 0) else {
        return String::new();
    };
    let kinds: Vec<String> = residue.kinds.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    let mut text =
        format!("the old name stays in {} ({}):\n", number(residue.count, "place"), kinds.join(", "));
    for item in residue.items.iter().take(RESIDUE) {
        let _ = writeln!(text, "  {}  {}", spot(&item.at), item.kind);
    }
    let shown = residue.items.len().min(RESIDUE);
    if (residue.count as usize) > shown {
        let _ = writeln!(text, "  and {} more", residue.count as usize - shown);
    }
    text
}

fn verdict(bundle: &Bundle, edits: &Edits, budget: &mut Budget) {
    let links = Links::of(bundle);
    let delta = edits.diagnostics.clone().unwrap_or_default();
    let mut summary = format!("{}; {}", totals(edits), told(&delta, true));
    if delta.files_left_out == 0 {
        let _ = write!(summary, "; {} compared", number(delta.files_checked, "file"));
    }
    budget.keep_room_for(&summary);
    let lists = [("new", &delta.introduced), ("resolved", &delta.resolved)];
    let mut left = 0;
    for (word, list) in lists {
        for item in list {
            let fits = left == 0 && budget.push(&format!("{word}: {}", diagnostic(links, item)));
            left += usize::from(!fits);
        }
    }
    if left > 0 {
        budget.last(&format!("{left} more: --limit 100000 shows them"));
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

/// The diff as the screen shows it; into a pipe it is the edit, byte for byte.
fn coloured(diff: &str) -> String {
    let diff = harmless(diff);
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
    fn parts_are_the_whole() {
        let diff = "diff --git a/a b/a\n+x\n+diff --git y\ndiff --git a/b b/b\n-x\n";
        assert_eq!(per_file(diff).len(), 2);
        assert_eq!(per_file(diff).concat(), diff);
        assert!(per_file("").is_empty());
    }
}
