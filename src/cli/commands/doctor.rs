//! `doctor`: what lanser would use here, where each value came from, and what is wrong.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use clap::Args;
use serde::Serialize;

use super::server::{standing, unavailable};
use crate::cli::context::Context;
use crate::cli::exit::Exit;
use crate::cli::output::Style;
use crate::orchestrator::{self, toolchain_request};
use crate::toolchain::{self, default_version, supported_versions};
use crate::workspace::snapshot::Snapshot;

/// Arguments of `doctor`.
#[derive(Debug, Clone, Args)]
pub(crate) struct DoctorArgs {
    /// Read every answer that the memo keeps, and say how many are damaged
    #[arg(long)]
    pub(crate) cache: bool,
}

/// Everything that `doctor` says.
#[derive(Debug, Serialize)]
struct Report {
    lanser: &'static str,
    workspace: String,
    python_files: usize,
    unreadable: Vec<String>,
    cache: String,
    /// With `--cache`.
    #[serde(skip_serializing_if = "Option::is_none")]
    memo: Option<Memo>,
    settings: BTreeMap<&'static str, Value>,
    server: Option<Server>,
    supported: Vec<String>,
    places: Vec<Line>,
    nodes: Vec<Line>,
    python: Option<orchestrator::PythonReport>,
    configuration: orchestrator::ConfigurationReport,
    problems: Vec<String>,
}

/// What the memo holds.
#[derive(Debug, Serialize)]
struct Memo {
    answers: u64,
    bytes: u64,
    damaged: u64,
}

#[derive(Debug, Serialize)]
struct Value {
    value: String,
    origin: String,
}

#[derive(Debug, Serialize)]
struct Server {
    name: &'static str,
    version: String,
    source: &'static str,
    script: String,
    node: String,
    node_version: String,
}

#[derive(Debug, Serialize)]
struct Line {
    what: String,
    place: String,
    verdict: String,
}

/// Prints the report. Exit code 0 when questions can be answered, 66 when there is no server.
pub(crate) fn run(args: &DoctorArgs, context: &mut Context) -> Exit {
    let settings = match context.settings() {
        Ok(settings) => settings,
        Err(error) => return context.fail(error),
    };
    let asked = context.orchestrator_settings(&settings);
    let inventory = toolchain::inventory(&toolchain_request(&asked));
    let snapshot = Snapshot::take(&settings.root, None, asked.trust, asked.threads);
    let mut problems = Vec::new();
    let mut exit = Exit::Ok;
    if let Err(error) = &inventory.chosen {
        let body = unavailable(error);
        problems.push(format!("{}; {}", body.message, body.hint.unwrap_or_default()));
        exit = Exit::Failed(body.symbol);
    }
    let (python, of_python) = orchestrator::python_report(&asked);
    problems.extend(of_python);
    let configuration = orchestrator::configuration_report(&asked);
    problems.extend(configuration.problems.iter().cloned());
    let memo = args.cache.then(|| {
        let held = orchestrator::verify_memo(&asked);
        Memo { answers: held.files, bytes: held.bytes, damaged: held.damaged }
    });
    let report = Report {
        lanser: env!("CARGO_PKG_VERSION"),
        workspace: settings.root.to_string(),
        python_files: snapshot.files().len(),
        unreadable: unreadable(&snapshot),
        cache: settings.cache.to_string(),
        memo,
        settings: settings
            .origins
            .iter()
            .map(|(name, found)| (*name, Value { value: found.value.clone(), origin: found.origin.clone() }))
            .collect(),
        server: inventory.chosen.as_ref().ok().map(|found| Server {
            name: found.kind.as_str(),
            version: found.version.clone(),
            source: found.source.as_str(),
            script: found.script.to_string(),
            node: found.node.to_string(),
            node_version: found.node_version.clone(),
        }),
        supported: supported_versions(settings.server)
            .iter()
            .map(|version| {
                let mark = if *version == default_version(settings.server) { " (default)" } else { "" };
                format!("{} {version}{mark}", settings.server)
            })
            .collect(),
        places: inventory
            .places
            .iter()
            .map(|place| Line {
                what: place.package.as_ref().map_or_else(
                    || "nothing".to_owned(),
                    |package| format!("{} {}", package.kind, package.version),
                ),
                place: format!("{}: {}", place.source, place.place),
                verdict: standing(&place.standing),
            })
            .collect(),
        nodes: inventory
            .nodes
            .iter()
            .map(|place| Line {
                what: place
                    .node
                    .as_ref()
                    .map_or_else(|| "nothing".to_owned(), |node| format!("node {}", node.version)),
                place: place.place.clone(),
                verdict: standing(&place.standing),
            })
            .collect(),
        python,
        configuration,
        problems,
    };
    let printed = if context.json() {
        context.printer.json_payload(&report)
    } else {
        context.printer.payload(&text(&report))
    };
    if printed == Exit::Ok { exit } else { printed }
}

fn unreadable(snapshot: &Snapshot) -> Vec<String> {
    let files =
        snapshot.files().iter().filter(|(_, digest)| digest.is_none()).map(|(path, _)| path.to_string());
    files.chain(snapshot.unreadable().iter().cloned()).collect()
}

fn text(report: &Report) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: &str| {
        let _ = writeln!(text, "{} {value}", Style::Path.paint(format!("{name:<14}")));
    };
    line("lanser", report.lanser);
    line("workspace", &format!("{} ({} Python files)", report.workspace, report.python_files));
    line("cache", &report.cache);
    if let Some(Memo { answers, bytes, damaged }) = &report.memo {
        let what = if *damaged > 0 { " (passed by, and written anew when it is asked again)" } else { "" };
        line("memo", &format!("{answers} answers, {bytes} bytes, {damaged} damaged{what}"));
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
            line("node", &format!("{} ({})", server.node_version, server.node));
        }
        None => line("server", "none"),
    }
    line("supported", &report.supported.join(", "));
    for place in report.places.iter().chain(&report.nodes) {
        line("looked at", &format!("{}, {}: {}", place.place, place.what, place.verdict));
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
