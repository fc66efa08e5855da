//! `diag`: the server's diagnostics, file by file, and those of the analyzers of `--with`.
//!
//! Diagnostics are pulled, not pushed. The pull for a file that is not open returns an empty full report, whatever
//! the file contains, so each file is opened, pulled and closed again. This adds no memory beyond the server's.

use std::collections::BTreeMap;

use super::analyze::{self, AnalysisTarget};
use super::context::{HandlerOutput, RequestContext};
use super::failure::Failure;
use super::locations::LocationBuilder;
use super::reward::{self, BaseDiagnostics, DiagnosticsByFile};
use crate::bundle::order::sort;
use crate::bundle::page::page;
use crate::lsp::{self, DiagnosticTag};
use crate::model::analyzer::{AnalysisScope, DiagnosticSource, SourceReport};
use crate::model::facts::{
    BaseComparison, Counts, Diagnostic, Diagnostics, Facts, FileCounts, NotChecked, Provenance, Related,
    Verdict,
};
use crate::model::request::Severity;
use crate::path::{AbsPath, DocUri, WorkspacePath};
use crate::reward::MeasuredDiagnostics;
use crate::reward::fingerprint::{self, FileFingerprint};
use crate::text::decode::SourceEncoding;
use crate::workspace::files::Files as _;

/// How many files are open and pulled concurrently. More than one keeps the server busy while responses are in
/// transit.
const CONCURRENT_PULLS: usize = 4;

/// Answers `diagnostics`.
pub(super) async fn diagnostics(cx: &RequestContext<'_>) -> Result<HandlerOutput, Failure> {
    let capabilities = cx.require("diagnostic", cx.server.client.capabilities().diagnostic)?;
    let files = cx.state.request_files(cx.request)?;
    let least = cx.request.options.severity.unwrap_or(Severity::Information);
    // First of all, because a base that does not exist should be reported at once.
    let base = match cx.request.options.new {
        true => Some(reward::base_diagnostics(cx, &files).await?),
        false => None,
    };
    let mut tally = DiagnosticTally::default();
    for (number, window) in files.chunks(CONCURRENT_PULLS).enumerate() {
        cx.settings.progress.step(&format!("checked {} of {} files", number * CONCURRENT_PULLS, files.len()));
        check(cx, window, &mut tally).await?;
    }
    let sources = add_analyses(cx, &mut tally).await?;
    let DiagnosticTally { mut found, not_checked, checked } = tally;
    reward::name_symbols(cx, &mut found);
    cx.measured(MeasuredDiagnostics {
        after: reward::named_scope(cx, &found),
        ..MeasuredDiagnostics::default()
    });
    let mut items: Vec<Diagnostic> = found.into_values().flatten().collect();
    sort(&mut items);
    let base = base.map(|base| retain_new(&mut items, &base));
    if let Some(part) = cx.state.selected_part(cx.locations.server_unit) {
        items.retain(|item| part.overlaps(&item.range));
    }
    // By file, of files that have any.
    let mut counts: BTreeMap<DocUri, Counts> = BTreeMap::new();
    for item in &items {
        counts.entry(item.uri.clone()).or_default().add(item.severity);
    }
    items.retain(|item| item.severity >= least);
    let mut total = Counts::default();
    for counts in counts.values() {
        total.error += counts.error;
        total.warning += counts.warning;
        total.information += counts.information;
        total.hint += counts.hint;
    }
    let options = &cx.request.options;
    let (items, limits) = page(items, options.limit, options.cursor.as_deref())?;
    let mut facts = Facts::new(if sources.is_empty() { Provenance::Lsp } else { Provenance::CompilerLsp });
    facts.diagnostics = Some(Diagnostics {
        items,
        counts: total,
        base,
        verdict: options.fail_on.map(|severity| {
            // An unchecked file may have errors.
            let all_checked = not_checked.is_empty() && sources.iter().all(|source| source.complete);
            let passes = !total.any_from(severity) && all_checked;
            if passes { Verdict::Pass } else { Verdict::Fail }
        }),
        files_checked: checked,
        files: counts.into_iter().map(|(uri, counts)| FileCounts { uri, counts }).collect(),
        not_checked,
        sources,
    });
    Ok(HandlerOutput { facts, limits: Some(limits), capabilities, refactored: None, error: None })
}

/// Keeps the diagnostics that the base does not have.
fn retain_new(items: &mut Vec<Diagnostic>, base: &BaseDiagnostics) -> BaseComparison {
    items.retain(|item| item.severity > Severity::Hint);
    let now: Vec<FileFingerprint> = items.iter().map(fingerprint::of_diagnostic).collect();
    let mut pairing = fingerprint::pair_strictly(&base.entries, &now);
    let messages: Vec<&str> = items.iter().map(|item| item.message.as_str()).collect();
    fingerprint::pair_renamed(&mut pairing, &base.entries, &now, &messages);
    let (mut fixed, mut kept) = (Counts::default(), Counts::default());
    for &at in &pairing.gone {
        fixed.add(base.entries[at].1.severity);
    }
    let mut is_new = vec![false; items.len()];
    for &at in &pairing.new {
        is_new[at] = true;
    }
    let mut flags = is_new.into_iter();
    items.retain(|item| {
        let is_new = flags.next().unwrap_or_default();
        if !is_new {
            kept.add(item.severity);
        }
        is_new
    });
    BaseComparison { commit: base.commit.clone(), fixed, kept, caveat: base.caveat.clone() }
}

/// The diagnostics found so far.
#[derive(Default)]
struct DiagnosticTally {
    /// All diagnostics by file.
    found: DiagnosticsByFile,
    not_checked: Vec<NotChecked>,
    checked: u32,
}

/// Adds the findings of the requested analyzers, and returns what each source analyzed; nothing without analyzers.
async fn add_analyses(
    cx: &RequestContext<'_>,
    tally: &mut DiagnosticTally,
) -> Result<Vec<SourceReport>, Failure> {
    let options = &cx.request.options;
    if options.with.is_empty() {
        return Ok(Vec::new());
    }
    let root = cx.state.inputs.snapshot.root();
    let inside = |path: &AbsPath| path.strip_prefix(root).and_then(WorkspacePath::new);
    let whole = options.paths.is_empty() && cx.request.selector.is_none();
    let target = AnalysisTarget::of(cx, tally.found.keys().filter_map(inside).collect(), whole);
    let mut sources = vec![server_report(cx, &tally.not_checked)];
    for analysis in analyze::run(&options.with, &target, &cx.state.tape, "files").await? {
        for finding in &analysis.findings {
            let path = root.join(finding.path.as_str());
            let item = analyze::diagnostic(cx.locations, &path, analysis.report.source, finding);
            if let Some(item) = item {
                tally.found.entry(path.clone()).or_default().push(item);
            }
        }
        sources.push(analysis.report);
    }
    Ok(sources)
}

/// What the server analyzed.
fn server_report(cx: &RequestContext<'_>, not_checked: &[NotChecked]) -> SourceReport {
    let tool = cx.server.tool(cx.settings.server);
    SourceReport {
        source: DiagnosticSource::Lsp,
        tool: tool.name.as_str().to_owned(),
        version: tool.version,
        config_digest: cx.state.inputs.environment.config_digest,
        scope: AnalysisScope::Requested,
        complete: not_checked.is_empty(),
        reason: (!not_checked.is_empty()).then(|| crate::text::plural(not_checked.len(), "unchecked file")),
    }
}

async fn check(
    cx: &RequestContext<'_>,
    files: &[AbsPath],
    tally: &mut DiagnosticTally,
) -> Result<(), Failure> {
    let mut pulls = Vec::new();
    for path in files {
        match cx.state.files.read(path) {
            Ok(document) => {
                let is_read = document.encoding != SourceEncoding::Lossy;
                if !is_read {
                    // The server reads other characters in their place; Python does not.
                    tally.not_checked.push(NotChecked {
                        uri: cx.locations.paths.uri(path),
                        reason: "Python cannot read it: it has bytes that are invalid in its encoding"
                            .to_owned(),
                    });
                }
                let stays_open = cx.is_open(path);
                cx.server.open(&document)?;
                pulls.push((path, is_read, stays_open, cx.requests().diagnostics(path)));
            }
            Err(error) => tally.not_checked.push(NotChecked {
                uri: cx.locations.paths.uri(path),
                reason: cx.locations.paths.text(&error.to_string()),
            }),
        }
    }
    for (path, is_read, stays_open, pull) in pulls {
        let found = pull.await?;
        tally.checked += u32::from(is_read);
        let source = (!cx.request.options.with.is_empty()).then_some(DiagnosticSource::Lsp);
        let all = tally.found.entry(path.clone()).or_default();
        let items = found.items.iter().map(|item| diagnostic(cx.locations, path, item));
        all.extend(items.map(|item| Diagnostic { source, ..item }));
        if !stays_open {
            cx.server.release(path)?;
        }
    }
    Ok(())
}

pub(super) fn diagnostic(
    locations: &LocationBuilder<'_>,
    path: &AbsPath,
    found: &lsp::LspDiagnostic,
) -> Diagnostic {
    let (uri, at, preview) = locations.describe(path, found.range);
    let text = |text: &str| locations.paths.text(text);
    Diagnostic {
        uri,
        range: found.range,
        at,
        source: None,
        severity: match found.severity {
            lsp::LspSeverity::Error => Severity::Error,
            lsp::LspSeverity::Warning => Severity::Warning,
            lsp::LspSeverity::Information => Severity::Information,
            lsp::LspSeverity::Hint => Severity::Hint,
        },
        rule: found.code.clone(),
        message: text(&found.message),
        symbol: None,
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
                location: locations.location(&related.place),
                message: text(&related.message),
            })
            .collect(),
        preview,
    }
}
