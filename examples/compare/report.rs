//! The table, and the differences in full.

use std::fmt::Write as _;

use super::said::Said;

/// The most items of one difference that are shown, on each side.
const SHOWN_ITEMS: usize = 12;

/// The counts of one command in one folder.
#[derive(Debug, Clone, Default)]
pub(crate) struct Row {
    /// The folder's name.
    pub(crate) folder: String,
    /// The command.
    pub(crate) command: String,
    /// Questions.
    pub(crate) asked: usize,
    /// Answers that are the same.
    pub(crate) equal: usize,
    /// Of those: nothing to say.
    pub(crate) nothing: usize,
    /// Of those: the server has only an error, and lanser one too.
    pub(crate) failing: usize,
    /// Of those: the same only once a fresh raw server was asked.
    pub(crate) fresh: usize,
    /// Answers that are not the same.
    pub(crate) different: usize,
    /// Different, in a source that has a stub beside it, where lanser asks at the stub.
    pub(crate) stub: usize,
    /// Errors of lanser that are no answer.
    pub(crate) errors: usize,
}

/// The rows as a table.
pub(crate) fn table(rows: &[Row]) -> String {
    let heads = [
        "folder",
        "command",
        "asked",
        "equal",
        "(nothing there)",
        "(error)",
        "(fresh raw)",
        "different",
        "at a stub",
        "errors",
    ];
    let cells = |row: &Row| {
        let numbers =
            [row.asked, row.equal, row.nothing, row.failing, row.fresh, row.different, row.stub, row.errors]
                .map(|n| n.to_string());
        [row.folder.clone(), row.command.clone()].into_iter().chain(numbers).collect::<Vec<_>>()
    };
    let mut lines =
        vec![heads.map(str::to_owned).to_vec(), heads.map(|head| "-".repeat(head.len())).to_vec()];
    lines.extend(rows.iter().map(cells));
    let widths: Vec<usize> = (0..heads.len())
        .map(|column| lines.iter().map(|line| line[column].len()).max().unwrap_or_default())
        .collect();
    let mut out = String::new();
    for line in lines {
        let padded = line.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        let _ = writeln!(out, "| {} |", padded.collect::<Vec<_>>().join(" | "));
    }
    out
}

/// One difference in full.
pub(crate) fn difference(title: &str, raw: &Said, lanser: &Said) -> String {
    let mut out = format!("{title}\n");
    if let (Said::Items(raw), Said::Items(lanser)) = (raw, lanser) {
        let _ = writeln!(out, "  raw {} items, lanser {} items", raw.len(), lanser.len());
        for (name, one, other) in [("raw only", raw, lanser), ("lanser only", lanser, raw)] {
            let own: Vec<_> = one.difference(other).collect();
            for item in own.iter().take(SHOWN_ITEMS) {
                let _ = writeln!(out, "  {name}: {}", item.replace('\n', "\n      "));
            }
            if own.len() > SHOWN_ITEMS {
                let _ = writeln!(out, "  {name}: … {} more", own.len() - SHOWN_ITEMS);
            }
        }
        return out;
    }
    for (name, said) in [("raw", raw), ("lanser", lanser)] {
        let text = match said {
            Said::Items(items) => {
                let some: Vec<_> = items.iter().take(SHOWN_ITEMS).map(String::as_str).collect();
                format!("{} items:\n    {}", items.len(), some.join("\n    "))
            }
            Said::Nothing => "nothing".to_owned(),
            Said::Failed(reason) => format!("failed: {reason}"),
        };
        let _ = writeln!(out, "  {name}: {text}");
    }
    out
}
