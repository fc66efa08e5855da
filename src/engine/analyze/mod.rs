//! Analyzers: programs besides the language server that find diagnostics in files.
//!
//! Each is one [`Analyzer`]: what it is, how it is called, and how its output is read. They only read files, and execute
//! no code of the project, unless the workspace is trusted. A run is recorded as its findings, so that a replay needs
//! none of the programs.

mod compile;
mod config;
mod finding;
mod interpreter;
mod mypy;
mod process;
mod report;
mod ruff;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::blocking::blocking;
use super::context::RequestContext;
use super::failure::Failure;
use super::inputs::Inputs;
use super::settings::Settings;
use crate::bundle::portable::PathMap;
use crate::digest::Digest;
use crate::model::analyzer::{AnalysisScope, AnalyzerKind, SourceReport};
use crate::model::error::{ErrorBody, ErrorData, ErrorSymbol};
use crate::model::request::Request;
use crate::path::{AbsPath, WorkspacePath};
use crate::tape::{IoKind, Tape};
use crate::workspace::python::PythonEnvironment;
pub(super) use finding::{Finding, diagnostic};
use process::{ToolCommand, ToolOutput};
pub use report::{AnalyzerReport, analyzer_report, find_analyzer, install_analyzer};

/// How often a program that dies of a file is started again for the others.
const MAX_RESTARTS: usize = 16;

/// A program that finds diagnostics in files of a workspace.
trait Analyzer: Send + Sync {
    /// The program, and what its findings depend on besides the files.
    fn identity(&self) -> &ToolIdentity;

    /// The commands that analyze the files; for the `whole` workspace, the analyzer's configuration may select other ones.
    fn commands(&self, files: &[WorkspacePath], whole: bool) -> Vec<ToolCommand>;

    /// Reads the output of a command. An error says why it is not valid.
    fn parse(&self, command: &ToolCommand, output: &ToolOutput) -> Result<ParsedOutput, String>;
}

/// The program of an analyzer, and what its findings depend on besides the files.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ToolIdentity {
    name: &'static str,
    version: String,
    /// The digest of the configuration files and of the options that lanser passes.
    config_digest: Digest,
    /// Where the program is, for `doctor`.
    place: AbsPath,
    /// Whether its findings follow from the inputs of the answer: it is one of the pinned programs (two of the user may report
    /// the same version), and its configuration names no files that are no inputs.
    is_reproducible: bool,
}

/// What an output says.
#[derive(Debug, Default)]
struct ParsedOutput {
    findings: Vec<Finding>,
    scope: Option<AnalysisScope>,
    /// Why the analysis is not complete.
    reason: Option<String>,
    /// The files that the program did not reach.
    rest: Vec<WorkspacePath>,
    /// The options of the configuration that lead out of the workspace: the program did not run.
    outside: Vec<String>,
}

/// A state of the workspace on disk that is to be analyzed.
#[derive(Clone)]
pub(super) struct AnalysisTarget {
    pub(super) settings: Arc<Settings>,
    /// The environment of the code.
    pub(super) python: Option<PythonEnvironment>,
    /// The folder with the files.
    pub(super) root: AbsPath,
    /// The files, sorted.
    pub(super) files: Vec<WorkspacePath>,
    /// Whether these are all files of the workspace.
    pub(super) whole: bool,
}

impl AnalysisTarget {
    /// Files of the workspace of a request, as they are on disk.
    pub(super) fn of(cx: &RequestContext<'_>, files: Vec<WorkspacePath>, whole: bool) -> Self {
        let inputs = &cx.state.inputs;
        Self {
            settings: Arc::new(cx.settings.clone()),
            python: inputs.tools.python.clone(),
            root: inputs.snapshot.root().clone(),
            files,
            whole,
        }
    }
}

/// The findings of one analyzer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Analysis {
    pub(super) report: SourceReport,
    pub(super) findings: Vec<Finding>,
}

/// Runs analyzers on files, one after the other, or replays their runs. `query` identifies the state of the files on the
/// tape, where a request analyzes several.
pub(super) async fn run(
    kinds: &[AnalyzerKind],
    target: &AnalysisTarget,
    tape: &Tape,
    query: &str,
) -> Result<Vec<Analysis>, Failure> {
    let mut all = Vec::new();
    for kind in kinds {
        let query = (query, kind, target.whole, &target.files);
        let unrecorded =
            || Err(ErrorBody::new(ErrorSymbol::ReplayMismatch, "the trace has no such analysis"));
        let outcome: Result<Analysis, ErrorBody> = if tape.is_replaying() {
            tape.query(IoKind::Analyzer, &query, unrecorded, unrecorded)
        } else {
            target.settings.progress.step(&format!("{kind} works on it"));
            let paths = PathMap::new().workspace(target.root.clone());
            let outcome = run_one(*kind, target).await.map_err(|failure| failure.into_body(&paths));
            tape.query(IoKind::Analyzer, &query, || outcome.clone(), unrecorded)
        };
        all.push(outcome.map_err(Failure::reported)?);
    }
    Ok(all)
}

/// The digest of the programs and configurations that the answer to a request depends on; `None` if one is missing, or its
/// identity is not known. Blocking.
pub(super) fn digest(settings: &Settings, request: &Request, inputs: &Inputs) -> Option<Digest> {
    let files: Vec<WorkspacePath> = inputs.snapshot.files().keys().cloned().collect();
    let mut fields = Vec::new();
    for kind in &request.options.with {
        let python = inputs.tools.python.as_ref();
        let analyzer = find(*kind, settings, python, &settings.root, &files, false).ok()?;
        let identity = analyzer.identity();
        if !identity.is_reproducible {
            return None;
        }
        fields.push(format!("{kind} {} {}", identity.name, identity.version).into_bytes());
        fields.push(identity.config_digest.as_bytes().to_vec());
    }
    Some(Digest::of_fields(fields.iter().map(Vec::as_slice)))
}

/// Finds an analyzer, and reads its configuration for these files. If there is none, installs it if `install`. Blocking.
fn find(
    kind: AnalyzerKind,
    settings: &Settings,
    python: Option<&PythonEnvironment>,
    root: &AbsPath,
    files: &[WorkspacePath],
    install: bool,
) -> Result<Box<dyn Analyzer>, Failure> {
    Ok(match kind {
        AnalyzerKind::Compile => Box::new(compile::Compile::find(settings, python)?),
        AnalyzerKind::Ruff => Box::new(ruff::Ruff::find(settings, python, root, files, install)?),
        AnalyzerKind::Mypy => Box::new(mypy::Mypy::find(settings, python, root, install)?),
    })
}

async fn run_one(kind: AnalyzerKind, target: &AnalysisTarget) -> Result<Analysis, Failure> {
    let found = |install| {
        let AnalysisTarget { settings, python, root, files, .. } = target.clone();
        blocking(move || find(kind, &settings, python.as_ref(), &root, &files, install))
    };
    let analyzer = found(true).await??;
    let settings = &target.settings;
    let deadline = Instant::now() + settings.timeout;
    let wanted: BTreeSet<&WorkspacePath> = target.files.iter().collect();
    let mut commands = analyzer.commands(&target.files, target.whole);
    let (mut findings, mut scope, mut reasons, mut restarts) = (Vec::new(), None, Vec::new(), 0);
    while let Some(command) = commands.pop() {
        let output = process::run(kind, &command, &target.root, settings, deadline).await?;
        let parsed =
            analyzer.parse(&command, &output).map_err(|why| crash(kind, &why, &output, &target.root))?;
        if let Some(option) = parsed.outside.first() {
            return Err(config::outside(&format!("{option} of {kind}'s configuration"), "names"));
        }
        findings.extend(parsed.findings.into_iter().filter(|finding| wanted.contains(&finding.path)));
        scope = scope.or(parsed.scope);
        reasons.extend(parsed.reason);
        if !parsed.rest.is_empty() {
            restarts += 1;
            if restarts > MAX_RESTARTS {
                return Err(crash(kind, "it ended too often before it was finished", &output, &target.root));
            }
            commands.extend(analyzer.commands(&parsed.rest, false));
        }
    }
    let identity = analyzer.identity();
    // The configuration was read before; the program has read it since.
    if found(false).await??.identity() != identity {
        return Err(Failure::Changed(format!("the configuration of {kind}")));
    }
    let paths = PathMap::new().workspace(target.root.clone());
    for finding in &mut findings {
        finding.message = paths.text(&finding.message);
    }
    findings.sort();
    reasons.sort();
    let reason = (!reasons.is_empty()).then(|| paths.text(&reasons.join("; ")));
    let report = SourceReport {
        source: kind.into(),
        tool: identity.name.to_owned(),
        version: identity.version.clone(),
        config_digest: identity.config_digest,
        scope: scope.unwrap_or(AnalysisScope::Requested),
        complete: reason.is_none(),
        reason,
    };
    Ok(Analysis { report, findings })
}

/// The failure of a program whose output is not valid.
fn crash(kind: AnalyzerKind, why: &str, output: &ToolOutput, root: &AbsPath) -> Failure {
    let paths = PathMap::new().workspace(root.clone());
    let lines = output.stderr.lines().map(|line| paths.text(line)).collect();
    let message = format!("{kind} failed: {}", paths.text(why));
    let error = ErrorBody::new(ErrorSymbol::LsCrash, message);
    let hint = format!("run {kind} alone to see what is wrong; without `--with {kind}` the rest is answered");
    Failure::reported(error.hint(hint).data(ErrorData::Stderr { lines }))
}
