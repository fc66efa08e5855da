//! Prints the result table and the differences.

use std::fmt::Write as _;

use super::reply::Reply;

/// How many items of each side of a difference are printed.
const MAX_SHOWN_ITEMS: usize = 12;

/// The counts of one command in one folder.
#[derive(Debug, Clone, Default)]
pub(crate) struct Row {
    /// The folder's name.
    pub(crate) folder: String,
    /// The command.
    pub(crate) command: String,
    /// The number of requests.
    pub(crate) asked: usize,
    /// Equal answers.
    pub(crate) equal: usize,
    /// Of those: empty ones.
    pub(crate) nothing: usize,
    /// Of those: errors of both.
    pub(crate) failing: usize,
    /// Of those: equal only to a fresh raw server.
    pub(crate) fresh: usize,
    /// Different answers.
    pub(crate) different: usize,
    /// Different in a source that has a stub, where lanser queries the stub.
    pub(crate) stub: usize,
    /// Failures of lanser.
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
pub(crate) fn difference(title: &str, raw: &Reply, lanser: &Reply) -> String {
    let mut out = format!("{title}\n");
    if let (Reply::Items(raw), Reply::Items(lanser)) = (raw, lanser) {
        let _ = writeln!(out, "  raw {} items, lanser {} items", raw.len(), lanser.len());
        for (name, one, other) in [("raw only", raw, lanser), ("lanser only", lanser, raw)] {
            let own: Vec<_> = one.difference(other).collect();
            for item in own.iter().take(MAX_SHOWN_ITEMS) {
                let _ = writeln!(out, "  {name}: {}", item.replace('\n', "\n      "));
            }
            if own.len() > MAX_SHOWN_ITEMS {
                let _ = writeln!(out, "  {name}: … {} more", own.len() - MAX_SHOWN_ITEMS);
            }
        }
        return out;
    }
    for (name, said) in [("raw", raw), ("lanser", lanser)] {
        let text = match said {
            Reply::Items(items) => {
                let some: Vec<_> = items.iter().take(MAX_SHOWN_ITEMS).map(String::as_str).collect();
                format!("{} items:\n    {}", items.len(), some.join("\n    "))
            }
            Reply::Nothing => "nothing".to_owned(),
            Reply::Failed(reason) => format!("failed: {reason}"),
        };
        let _ = writeln!(out, "  {name}: {text}");
    }
    out
}
