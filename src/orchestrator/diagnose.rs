//! `diag`: what the server finds wrong, file by file.
//!
//! Diagnostics are pulled, never waited for: a pull of a file that is not open is an empty full report, whatever the file
//! holds, so each file is opened, asked about and closed again. Memory is bounded by the server's own.

use std::collections::BTreeMap;

use super::ask::{Answer, Asking};
use super::failure::Failure;
use super::places::Places;
use super::reward::{self, Found};
use crate::bundle::order::sort;
use crate::bundle::page::page;
use crate::lsp::{self, DiagnosticTag};
use crate::model::facts::{
    Counts, Diagnostic, Diagnostics, Facts, FileCounts, NotChecked, Provenance, Related, Verdict,
};
use crate::model::request::Severity;
use crate::path::{AbsPath, DocUri};
use crate::reward::Measured;
use crate::workspace::files::Files as _;

/// How many files are open and asked about at a time. More than one keeps the server busy while answers travel.
const WINDOW: usize = 4;

/// Answers `diagnostics`.
pub(super) async fn diagnostics(asking: &Asking<'_>) -> Result<Answer, Failure> {
    let capabilities = asking.require("diagnostic", asking.server.client.capabilities().diagnostic)?;
    let files = asking.state.request_files(asking.request)?;
    let least = asking.request.options.severity.unwrap_or(Severity::Information);
    let mut tally = Tally {
        least,
        items: Vec::new(),
        counts: BTreeMap::new(),
        not_checked: Vec::new(),
        checked: 0,
        found: Found::new(),
    };
    for (number, window) in files.chunks(WINDOW).enumerate() {
        asking.settings.progress.step(&format!("checked {} of {} files", number * WINDOW, files.len()));
        check(asking, window, &mut tally).await?;
    }
    let Tally { mut items, counts, not_checked, checked, found, .. } = tally;
    asking.measured(Measured { after: reward::listed(asking, &found), ..Measured::default() });
    sort(&mut items);
    let mut total = Counts::default();
    for counts in counts.values() {
        total.error += counts.error;
        total.warning += counts.warning;
        total.information += counts.information;
        total.hint += counts.hint;
    }
    let options = &asking.request.options;
    let (items, limits) = page(items, options.limit, options.cursor.as_deref())?;
    let mut facts = Facts::new(Provenance::Lsp);
    facts.diagnostics = Some(Diagnostics {
        items,
        counts: total,
        verdict: options.fail_on.map(|severity| {
            // Nobody knows what a file has that was not checked.
            let passes = !total.any_from(severity) && not_checked.is_empty();
            if passes { Verdict::Pass } else { Verdict::Fail }
        }),
        files_checked: checked,
        files: counts.into_iter().map(|(uri, counts)| FileCounts { uri, counts }).collect(),
        not_checked,
    });
    Ok(Answer { facts, limits: Some(limits), capabilities, refactored: None, error: None })
}

/// What was found so far.
struct Tally {
    least: Severity,
    items: Vec<Diagnostic>,
    /// Of files that have any.
    counts: BTreeMap<DocUri, Counts>,
    not_checked: Vec<NotChecked>,
    checked: u32,
    /// All of them by file, for the reward.
    found: Found,
}

async fn check(asking: &Asking<'_>, files: &[AbsPath], tally: &mut Tally) -> Result<(), Failure> {
    let mut pulls = Vec::new();
    for path in files {
        match asking.state.files.read(path) {
            Ok(document) => {
                let for_long = asking.is_open(path);
                asking.server.open(&document)?;
                pulls.push((path, for_long, asking.questions().diagnostics(path)));
            }
            Err(error) => tally.not_checked.push(NotChecked {
                uri: asking.places.paths.uri(path),
                reason: asking.places.paths.text(&error.to_string()),
            }),
        }
    }
    for (path, for_long, pull) in pulls {
        let found = pull.await?;
        tally.checked += 1;
        let all = tally.found.entry(path.clone()).or_default();
        for item in &found.items {
            let item = diagnostic(asking.places, path, item);
            all.push(item.clone());
            tally.counts.entry(item.uri.clone()).or_default().add(item.severity);
            if item.severity >= tally.least {
                tally.items.push(item);
            }
        }
        if !for_long {
            asking.server.release(path)?;
        }
    }
    Ok(())
}

pub(super) fn diagnostic(places: &Places<'_>, path: &AbsPath, found: &lsp::Diagnostic) -> Diagnostic {
    let (uri, at, preview) = places.describe(path, found.range);
    let text = |text: &str| places.paths.text(text);
    Diagnostic {
        uri,
        range: found.range,
        at,
        severity: match found.severity {
            lsp::Severity::Error => Severity::Error,
            lsp::Severity::Warning => Severity::Warning,
            lsp::Severity::Information => Severity::Information,
            lsp::Severity::Hint => Severity::Hint,
        },
        rule: found.code.clone(),
        message: text(&found.message),
        tags: found
            .tags
            .iter()
            .map(|tag| match tag {
                DiagnosticTag::Unnecessary => "unnecessary".to_owned(),
                DiagnosticTag::Deprecated => "deprecated".to_owned(),
            })
            .collect(),
        related: found
            .related
            .iter()
            .map(|related| Related {
                location: places.location(&related.place),
                message: text(&related.message),
            })
            .collect(),
        preview,
    }
}
