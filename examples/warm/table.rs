//! The table, and what is promised of its numbers.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// What a warm definition or hover may take beyond the bare answer and the scan, in milliseconds.
const WARM: f64 = 6.0;
/// What warm references may take beyond 1.1 times the bare answer and the scan.
const WARM_REFS: f64 = 10.0;
/// What an answer of the memo may take beyond the scan.
const MEMO: f64 = 6.0;

/// The times of one command in one folder, in milliseconds. Those of one question, asked one after the other, have one index;
/// only `cold` is apart.
#[derive(Debug, Clone, Default)]
pub(crate) struct Row {
    /// The folder's name.
    pub(crate) folder: String,
    /// The command.
    pub(crate) command: String,
    /// What was asked for the first time.
    pub(crate) first: First,
    /// The bare walk.
    pub(crate) scan: Vec<f64>,
    /// The bare client's answers.
    pub(crate) raw: Vec<f64>,
    /// Whole processes, answered by the session.
    pub(crate) warm: Vec<f64>,
    /// Whole processes, answered by the memo while the session runs.
    pub(crate) memo: Vec<f64>,
    /// Whole processes, answered by the memo without a session.
    pub(crate) memo_alone: Vec<f64>,
    /// Whole processes without session and memo.
    pub(crate) cold: Vec<f64>,
    /// How many answers did not come from where they were to come from: what was asked for, and what came. The memo does
    /// not keep that there is nothing, and some questions have a server started for them alone.
    pub(crate) astray: BTreeMap<(&'static str, String), usize>,
}

/// The times of questions that neither the bare client nor the session was asked before, in milliseconds. Those of one
/// question have one index.
#[derive(Debug, Clone, Default)]
pub(crate) struct First {
    /// The bare walk.
    pub(crate) scan: Vec<f64>,
    /// The bare client's answers.
    pub(crate) raw: Vec<f64>,
    /// Whole processes, answered by the session.
    pub(crate) warm: Vec<f64>,
}

impl First {
    fn cells(&self, row: &Row) -> Vec<String> {
        let floors = self.raw.iter().zip(&self.scan).map(|(raw, scan)| raw + scan);
        let beyond: Vec<f64> = self.warm.iter().zip(floors).map(|(time, floor)| time - floor).collect();
        let mean = |times: &[f64]| one(times.iter().sum::<f64>() / times.len() as f64);
        vec![
            row.folder.clone(),
            row.command.clone(),
            self.warm.len().to_string(),
            one(median(self.scan.clone())),
            one(median(self.raw.clone())),
            one(median(self.warm.clone())),
            signed(median(beyond)),
            mean(&self.raw),
            mean(&self.warm),
        ]
    }
}

impl Row {
    /// The quantile of what the times of `of` take beyond `ratio` times the bare answer and the scan beside each of them.
    fn beyond(&self, of: &[f64], ratio: f64, part: f64) -> f64 {
        let floors = self.raw.iter().zip(&self.scan).map(|(raw, scan)| raw.mul_add(ratio, *scan));
        quantile(of.iter().zip(floors).map(|(time, floor)| time - floor).collect(), part)
    }

    fn cells(&self, part: f64) -> Vec<String> {
        let middle = |times: &[f64]| one(quantile(times.to_vec(), part));
        vec![
            self.folder.clone(),
            self.command.clone(),
            self.warm.len().to_string(),
            middle(&self.scan),
            middle(&self.raw),
            middle(&self.warm),
            signed(self.beyond(&self.warm, 1.0, part)),
            if self.is_refs() { signed(self.beyond(&self.warm, 1.1, part)) } else { String::new() },
            middle(&self.memo),
            signed(self.beyond(&self.memo, 0.0, part)),
            middle(&self.memo_alone),
            signed(self.beyond(&self.memo_alone, 0.0, part)),
            middle(&self.cold),
        ]
    }

    fn is_refs(&self) -> bool {
        self.command == "refs"
    }

    /// What was promised of this command, and whether it is so.
    pub(crate) fn verdicts(&self) -> String {
        let (ratio, bound) = if self.is_refs() { (1.1, WARM_REFS) } else { (1.0, WARM) };
        let whole = median(self.warm.clone());
        let floor = median(self.raw.clone()).mul_add(ratio, median(self.scan.clone()));
        let warm = self.beyond(&self.warm, ratio, 0.5);
        let scan = median(self.scan.clone());
        let mut out = format!(
            "{} {}: warm is {} ({} of the medians), {}",
            self.folder,
            self.command,
            signed(warm),
            signed(whole - floor),
            held(warm, bound)
        );
        for (name, times) in [("memo", &self.memo), ("memo without session", &self.memo_alone)] {
            let beyond = self.beyond(times, 0.0, 0.5);
            let medians = signed(median(times.clone()) - scan);
            let _ = write!(out, "; {name} {} ({medians}), {}", signed(beyond), held(beyond, MEMO));
        }
        for ((road, other), count) in &self.astray {
            let _ = write!(out, "; {count} × {other} instead of {road}");
        }
        out
    }
}

/// Whether a time is within its bound, in words.
pub(crate) fn held(time: f64, bound: f64) -> String {
    if time <= bound { format!("within {bound} ms") } else { format!("PAST {bound} ms") }
}

/// The rows as a table: of every column this quantile, 0.5 for the medians.
pub(crate) fn table(rows: &[Row], part: f64) -> String {
    let heads = [
        "folder",
        "command",
        "pairs",
        "scan",
        "raw",
        "warm",
        "− raw − scan",
        "− 1.1·raw − scan",
        "memo",
        "− scan",
        "memo, no session",
        "− scan",
        "cold",
    ];
    laid_out(&heads, rows.iter().map(|row| row.cells(part)))
}

/// The questions that were asked for the first time, as a table of medians and means.
pub(crate) fn first(rows: &[Row]) -> String {
    let heads =
        ["folder", "command", "questions", "scan", "raw", "warm", "− raw − scan", "raw, mean", "warm, mean"];
    laid_out(&heads, rows.iter().map(|row| row.first.cells(row)))
}

fn laid_out(heads: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut lines = vec![heads.iter().map(|&head| head.to_owned()).collect::<Vec<_>>()];
    lines.push(heads.iter().map(|head| "-".repeat(head.chars().count())).collect());
    lines.extend(rows);
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..heads.len()).map(width).collect();
    let mut out = String::new();
    for line in &lines {
        let padded: Vec<_> = line.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        let _ = writeln!(out, "| {} |", padded.join(" | "));
    }
    out
}

/// The median; NaN of nothing.
pub(crate) fn median(values: Vec<f64>) -> f64 {
    quantile(values, 0.5)
}

/// The value below which a part of the values lies, between its two neighbours in proportion; NaN of nothing.
fn quantile(mut values: Vec<f64>, part: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let Some(last) = values.len().checked_sub(1) else { return f64::NAN };
    let at = part * last as f64;
    let below = at.floor();
    let index = below as usize;
    let above = values[(index + 1).min(last)];
    (above - values[index]).mul_add(at - below, values[index])
}

fn one(time: f64) -> String {
    format!("{time:.1}")
}

fn signed(time: f64) -> String {
    format!("{time:+.1}")
}
