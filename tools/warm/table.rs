//! The result table, and the targets for its numbers.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Target for a warm definition or hover above the raw answer and the scan, in milliseconds.
const WARM_TARGET: f64 = 6.0;
/// Target for warm references above 1.1 times the raw answer and the scan, in milliseconds.
const WARM_REFS_TARGET: f64 = 10.0;
/// Target for an answer from the memo above the scan, in milliseconds.
const MEMO_TARGET: f64 = 6.0;

/// The times of one command in one folder, in milliseconds. Times of one request in the same turn have the same index, except those
/// of `cold`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Row {
    /// The folder's name.
    pub(crate) folder: String,
    /// The command.
    pub(crate) command: String,
    /// The first-time requests.
    pub(crate) first: First,
    /// The bare walk.
    pub(crate) scan: Vec<f64>,
    /// The answers of the minimal client.
    pub(crate) raw: Vec<f64>,
    /// Whole processes, answered by the session.
    pub(crate) warm: Vec<f64>,
    /// Whole processes, answered from the memo while the session runs.
    pub(crate) memo: Vec<f64>,
    /// Whole processes, answered from the memo without a session.
    pub(crate) memo_alone: Vec<f64>,
    /// Whole processes without session and memo.
    pub(crate) cold: Vec<f64>,
    /// The number of answers that came from another source than requested, by requested and actual source. The memo does not store
    /// empty answers, and some requests start a separate server.
    pub(crate) astray: BTreeMap<(&'static str, String), usize>,
}

/// The times of requests that neither the minimal client nor the session has seen before, in milliseconds. Times of one request have
/// the same index.
#[derive(Debug, Clone, Default)]
pub(crate) struct First {
    /// The bare walk.
    pub(crate) scan: Vec<f64>,
    /// The answers of the minimal client.
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
    /// The quantile of the differences between the times of `of` and `ratio` times the raw answer plus the scan of the same turn.
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

    /// The targets for this command, and whether they are met.
    pub(crate) fn verdicts(&self) -> String {
        let (ratio, bound) = if self.is_refs() { (1.1, WARM_REFS_TARGET) } else { (1.0, WARM_TARGET) };
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
            let _ = write!(out, "; {name} {} ({medians}), {}", signed(beyond), held(beyond, MEMO_TARGET));
        }
        for ((served_from, other), count) in &self.astray {
            let _ = write!(out, "; {count} × {other} instead of {served_from}");
        }
        out
    }
}

/// Whether a time is within its bound, as text.
pub(crate) fn held(time: f64, bound: f64) -> String {
    if time <= bound { format!("within {bound} ms") } else { format!("PAST {bound} ms") }
}

/// The rows as a table with this quantile of every column, 0.5 for the medians.
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

/// The first-time requests, as a table of medians and means.
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

/// The median; NaN for no values.
pub(crate) fn median(values: Vec<f64>) -> f64 {
    quantile(values, 0.5)
}

/// The value below which a part of the values lies, interpolated between its neighbors; NaN for no values.
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
