//! `doctor`: the server, Python and settings in use, where each setting came from, and problems.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use clap::Args;
use serde::Serialize;

use super::server::{candidate_status, unavailable};
use crate::cli::context::CliContext;
use crate::cli::exit::ProgramExit;
use crate::cli::output::Style;
use crate::engine::{self, toolchain_request};
use crate::text::plural;
use crate::toolchain::{self, default_version, supported_versions};

use crate::workspace::snapshot::Snapshot;

/// Arguments of `doctor`.
#[derive(Debug, Clone, Args)]
pub(crate) struct DoctorArgs {
    /// Also verify all cached bundles, and count the damaged ones
    #[arg(long)]
    pub(crate) cache: bool,
}

/// The JSON output of `doctor`.
#[derive(Debug, Serialize)]
struct DoctorReport {
    lanser: &'static str,
    workspace: String,
    python_files: usize,
    unreadable: Vec<String>,
    cache: String,
    /// With `--cache`.
    #[serde(skip_serializing_if = "Option::is_none")]
    memo: Option<MemoReport>,
    settings: BTreeMap<&'static str, SettingReport>,
    server: Option<DoctorServer>,
    supported: Vec<String>,
    places: Vec<CandidateReport>,
    nodes: Vec<CandidateReport>,
    /// The programs of `--with`.
    analyzers: Vec<engine::AnalyzerReport>,
    python: Option<engine::PythonReport>,
    configuration: engine::ConfigurationReport,
    problems: Vec<String>,
}

/// The content of the memo.
#[derive(Debug, Serialize)]
struct MemoReport {
    answers: u64,
    bytes: u64,
    damaged: u64,
}

#[derive(Debug, Serialize)]
struct SettingReport {
    value: String,
    origin: String,
}

#[derive(Debug, Serialize)]
struct DoctorServer {
    name: &'static str,
    version: String,
    source: &'static str,
    script: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    node_version: Option<String>,
}

#[derive(Debug, Serialize)]
struct CandidateReport {
    what: String,
    place: String,
    verdict: String,
}

/// Prints the report. Exit code 0 if requests can be answered, 66 without a server.
pub(crate) fn run(args: &DoctorArgs, context: &mut CliContext) -> ProgramExit {
    let settings = match context.settings() {
        Ok(settings) => settings,
        Err(error) => return context.fail(error),
    };
    let engine_settings = context.engine_settings(&settings);
    let inventory = toolchain::inventory(&toolchain_request(&engine_settings));
    let snapshot = Snapshot::take(&settings.root, None, engine_settings.trust, engine_settings.threads);
    let mut problems = Vec::new();
    let mut exit = ProgramExit::Ok;
    if let Err(error) = &inventory.chosen {
        let body = unavailable(error);
        problems.push(format!("{}; {}", body.message, body.hint.unwrap_or_default()));
        exit = ProgramExit::Failed(body.symbol);
    }
    let (python, of_python) = engine::python_report(&engine_settings);
    problems.extend(of_python);
    let configuration = engine::configuration_report(&engine_settings);
    problems.extend(configuration.problems.iter().cloned());
    let memo = args.cache.then(|| {
        let memo = engine::verify_memo(&engine_settings);
        MemoReport { answers: memo.files, bytes: memo.bytes, damaged: memo.damaged }
    });
    let report = DoctorReport {
        lanser: env!("CARGO_PKG_VERSION"),
        workspace: settings.root.to_string(),
        python_files: snapshot.files().len(),
        unreadable: unreadable(&snapshot),
        cache: settings.cache.to_string(),
        memo,
        settings: settings
            .origins
            .iter()
            .map(|(name, found)| {
                (*name, SettingReport { value: found.value.clone(), origin: found.origin.clone() })
            })
            .collect(),
        server: inventory.chosen.as_ref().ok().map(|found| DoctorServer {
            name: found.kind.as_str(),
            version: found.version.clone(),
            source: found.source.as_str(),
            script: found.program.main_file().to_string(),
            node: found.program.node().map(|(node, _)| node.to_string()),
            node_version: found.program.node().map(|(_, version)| version.to_owned()),
        }),
        supported: supported_versions(settings.server)
            .iter()
            .map(|version| {
                let mark = if *version == default_version(settings.server) { " (default)" } else { "" };
                format!("{} {version}{mark}", settings.server)
            })
            .collect(),
        places: inventory
            .servers
            .iter()
            .map(|candidate| CandidateReport {
                what: candidate.package.as_ref().map_or_else(
                    || "nothing".to_owned(),
                    |package| format!("{} {}", package.kind, package.version),
                ),
                place: format!("{}: {}", candidate.source, candidate.location),
                verdict: candidate_status(&candidate.status),
            })
            .collect(),
        nodes: inventory
            .nodes
            .iter()
            .map(|candidate| CandidateReport {
                what: candidate
                    .node
                    .as_ref()
                    .map_or_else(|| "nothing".to_owned(), |node| format!("node {}", node.version)),
                place: candidate.location.clone(),
                verdict: candidate_status(&candidate.status),
            })
            .collect(),
        analyzers: engine::analyzer_report(&engine_settings),
        python,
        configuration,
        problems,
    };
    let printed = if context.json() {
        context.printer.json_payload(&report)
    } else {
        context.printer.payload(&text(&report))
    };
    if printed == ProgramExit::Ok { exit } else { printed }
}

fn unreadable(snapshot: &Snapshot) -> Vec<String> {
    let files =
        snapshot.files().iter().filter(|(_, digest)| digest.is_none()).map(|(path, _)| path.to_string());
    files.chain(snapshot.unreadable().iter().cloned()).collect()
}

fn text(report: &DoctorReport) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: &str| {
        let _ = writeln!(text, "{} {value}", Style::Path.paint(format!("{name:<14}")));
    };
    line("lanser", report.lanser);
    line("workspace", &format!("{} ({})", report.workspace, plural(report.python_files, "Python file")));
    line("cache", &report.cache);
    if let Some(MemoReport { answers, bytes, damaged }) = &report.memo {
        let note = if *damaged > 0 { " (ignored, and replaced at the next such request)" } else { "" };
        let (answers, bytes) = (plural(*answers, "answer"), plural(*bytes, "byte"));
        line("memo", &format!("{answers}, {bytes}, {damaged} damaged{note}"));
    }
    for path in &report.unreadable {
        line("unreadable", path);
    }
    match &report.server {
        Some(server) => {
            line(
                "server",
                &format!("{} {} ({}: {})", server.name, server.version, server.source, server.script),
            );
            if let (Some(node), Some(version)) = (&server.node, &server.node_version) {
                line("node", &format!("{version} ({node})"));
            }
        }
        None => line("server", "none"),
    }
    line("supported", &report.supported.join(", "));
    for candidate in report.places.iter().chain(&report.nodes) {
        line("candidate", &format!("{}, {}: {}", candidate.place, candidate.what, candidate.verdict));
    }
    for analyzer in &report.analyzers {
        line("analyzer", &format!("{}: {}", analyzer.name, analyzer.found));
    }
    match &report.python {
        Some(python) => line("python", &format!("{} ({})", python.version, python.exe)),
        None => line("python", "none"),
    }
    for file in &report.configuration.files {
        line("configuration", file);
    }
    for (name, setting) in &report.settings {
        line(name, &format!("{} ({})", setting.value, setting.origin));
    }
    for problem in &report.problems {
        line("problem", problem);
    }
    text
}
