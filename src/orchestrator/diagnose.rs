//! `diag`: the server's diagnostics, file by file, and those of the analyzers of `--with`.
//!
//! Diagnostics are pulled, not pushed. The pull for a file that is not open returns an empty full report, whatever
//! the file contains, so each file is opened, pulled and closed again. This adds no memory beyond the server's.

use std::collections::BTreeMap;

use super::analyze::{self, AnalysisTarget};
use super::ask::{HandlerOutput, RequestContext};
use super::failure::Failure;
use super::locations::LocationBuilder;
use super::reward::{self, DiagnosticsByFile};
use crate::bundle::order::sort;
use crate::bundle::page::page;
use crate::lsp::{self, DiagnosticTag};
use crate::model::analyzer::{AnalysisScope, DiagnosticSource, SourceReport};
use crate::model::facts::{
    Counts, Diagnostic, Diagnostics, Facts, FileCounts, NotChecked, Provenance, Related, Verdict,
};
use crate::model::request::Severity;
use crate::path::{AbsPath, DocUri, WorkspacePath};
use crate::reward::MeasuredDiagnostics;
use crate::workspace::files::Files as _;

/// How many files are open and pulled concurrently. More than one keeps the server busy while responses are in
/// transit.
const CONCURRENT_PULLS: usize = 4;

/// Answers `diagnostics`.
pub(super) async fn diagnostics(cx: &RequestContext<'_>) -> Result<HandlerOutput, Failure> {
    let capabilities = cx.require("diagnostic", cx.server.client.capabilities().diagnostic)?;
    let files = cx.state.request_files(cx.request)?;
    let least = cx.request.options.severity.unwrap_or(Severity::Information);
    let mut tally = DiagnosticTally {
        least,
        items: Vec::new(),
        counts: BTreeMap::new(),
        not_checked: Vec::new(),
        checked: 0,
        found: DiagnosticsByFile::new(),
    };
    for (number, window) in files.chunks(CONCURRENT_PULLS).enumerate() {
        cx.settings.progress.step(&format!("checked {} of {} files", number * CONCURRENT_PULLS, files.len()));
        check(cx, window, &mut tally).await?;
    }
    let sources = add_analyses(cx, &mut tally).await?;
    let DiagnosticTally { mut items, counts, not_checked, checked, found, .. } = tally;
    cx.measured(MeasuredDiagnostics {
        after: reward::measured_scope(cx, &found),
        ..MeasuredDiagnostics::default()
    });
    sort(&mut items);
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

/// The diagnostics found so far.
struct DiagnosticTally {
    least: Severity,
    items: Vec<Diagnostic>,
    /// By file, of files that have any.
    counts: BTreeMap<DocUri, Counts>,
    not_checked: Vec<NotChecked>,
    checked: u32,
    /// All diagnostics by file, for the reward.
    found: DiagnosticsByFile,
}

impl DiagnosticTally {
    fn add(&mut self, path: &AbsPath, item: Diagnostic) {
        self.counts.entry(item.uri.clone()).or_default().add(item.severity);
        self.found.entry(path.clone()).or_default().push(item.clone());
        if item.severity >= self.least {
            self.items.push(item);
        }
    }
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
                tally.add(&path, item);
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
                let stays_open = cx.is_open(path);
                cx.server.open(&document)?;
                pulls.push((path, stays_open, cx.requests().diagnostics(path)));
            }
            Err(error) => tally.not_checked.push(NotChecked {
                uri: cx.locations.paths.uri(path),
                reason: cx.locations.paths.text(&error.to_string()),
            }),
        }
    }
    for (path, stays_open, pull) in pulls {
        let found = pull.await?;
        tally.checked += 1;
        tally.found.entry(path.clone()).or_default();
        let source = (!cx.request.options.with.is_empty()).then_some(DiagnosticSource::Lsp);
        for item in &found.items {
            tally.add(path, Diagnostic { source, ..diagnostic(cx.locations, path, item) });
        }
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
