//! `server list|which|install`: the supported language servers.

use std::fmt::Write as _;

use clap::{Args, Subcommand};
use serde::Serialize;

use crate::cli::context::CliContext;
use crate::cli::exit::ProgramExit;
use crate::cli::output::Style;
use crate::engine::{self, tell_progress, toolchain_request};
use crate::model::error::{ErrorBody, ErrorData, ErrorSymbol};
use crate::model::server::ServerKind;
use crate::toolchain::{
    self, CandidateStatus, FoundServer, InstallableAnalyzer, ServerSource, Unavailable, default_server,
    default_version, supported_versions,
};

/// The verbs of `server`.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum ServerSubcommand {
    /// List the supported servers and analyzers, and where they are installed
    List,
    /// Show the server that would be started
    Which,
    /// Install a server or an analyzer into lanser's cache
    Install(InstallArgs),
}

/// Arguments of `server install`.
#[derive(Debug, Clone, Args)]
pub(crate) struct InstallArgs {
    /// `pyright`, `basedpyright` or `ty`, optionally with `@VERSION`; or an analyzer: `ruff`, `mypy`
    ///
    /// By default, the server of --server is installed.
    pub(crate) name: Option<String>,
}

/// Runs a verb of `server`.
pub(crate) fn run(command: ServerSubcommand, context: &mut CliContext) -> ProgramExit {
    match command {
        ServerSubcommand::List => list(context),
        ServerSubcommand::Which => which(context),
        ServerSubcommand::Install(args) => {
            if let Some(analyzer) = args.name.as_deref().and_then(InstallableAnalyzer::parse) {
                return install_analyzer(analyzer, context);
            }
            if args.name.is_some() {
                context.global.server = args.name;
            }
            install(context)
        }
    }
}

/// One line of `server list`.
#[derive(Debug, Serialize)]
struct ListedServer {
    name: &'static str,
    version: String,
    default: bool,
    found: Option<String>,
    place: Option<String>,
}

fn list(context: &mut CliContext) -> ProgramExit {
    let settings = match context.settings() {
        Ok(settings) => settings,
        Err(error) => return context.fail(error),
    };
    let default = default_server(context.env.exe.as_ref());
    let mut listed = Vec::new();
    for kind in ServerKind::ALL {
        for version in supported_versions(kind) {
            let mut request = toolchain_request(&context.engine_settings(&settings));
            request.kind = kind;
            request.version = Some((*version).to_owned());
            request.command = None;
            let found = toolchain::find(&request).ok();
            listed.push(ListedServer {
                name: kind.as_str(),
                version: (*version).to_owned(),
                default: *version == default_version(kind) && kind == default,
                found: found.as_ref().map(|found| found.source.to_string()),
                place: found.map(|found| found.program.main_file().to_string()),
            });
        }
    }
    for analyzer in InstallableAnalyzer::ALL {
        let found = engine::find_analyzer(&context.engine_settings(&settings), analyzer).ok();
        listed.push(ListedServer {
            name: analyzer.name(),
            version: analyzer.version().to_owned(),
            default: false,
            found: found.as_ref().map(|_| ServerSource::Cache.to_string()),
            place: found.map(|found| found.path.to_string()),
        });
    }
    if context.json() {
        return context.printer.json_payload(&listed);
    }
    let mut text = String::new();
    for server in &listed {
        let mark = if server.default { " (default)" } else { "" };
        let place = match (&server.found, &server.place) {
            (Some(source), Some(place)) => format!("{source}: {place}"),
            _ if InstallableAnalyzer::parse(server.name).is_some() => {
                format!("not installed; run `lanser server install {}`", server.name)
            }
            _ => format!("not installed; run `lanser server install {}@{}`", server.name, server.version),
        };
        let _ = writeln!(text, "{} {}{mark}  {}", server.name, server.version, Style::Quiet.paint(place));
    }
    context.printer.payload(&text)
}

fn which(context: &mut CliContext) -> ProgramExit {
    let settings = match context.settings() {
        Ok(settings) => settings,
        Err(error) => return context.fail(error),
    };
    let inventory = toolchain::inventory(&toolchain_request(&context.engine_settings(&settings)));
    match inventory.chosen {
        Ok(found) => print_found(context, &found),
        Err(error) => context.fail(unavailable(&error)),
    }
}

fn install(context: &mut CliContext) -> ProgramExit {
    let settings = match context.settings() {
        Ok(settings) => settings,
        Err(error) => return context.fail(error),
    };
    let settings = context.engine_settings(&settings);
    let progress = settings.progress.clone();
    let installed =
        toolchain::install(&toolchain_request(&settings), &mut |event| tell_progress(&*progress, &event));
    match installed {
        Ok(found) => print_found(context, &found),
        Err(error) => context.fail(unavailable(&error)),
    }
}

fn install_analyzer(analyzer: InstallableAnalyzer, context: &mut CliContext) -> ProgramExit {
    let settings = match context.settings() {
        Ok(settings) => settings,
        Err(error) => return context.fail(error),
    };
    match engine::install_analyzer(&context.engine_settings(&settings), analyzer) {
        Ok(found) if context.json() => context.printer.json_payload(&ListedServer {
            name: analyzer.name(),
            version: analyzer.version().to_owned(),
            default: false,
            found: Some(ServerSource::Cache.to_string()),
            place: Some(found.path.to_string()),
        }),
        Ok(found) => context.printer.payload(&format!(
            "{} {} ({})\n  {}\n",
            analyzer.name(),
            analyzer.version(),
            ServerSource::Cache,
            found.path
        )),
        Err(error) => context.fail(error),
    }
}

/// The JSON output of `server which` and `server install`.
#[derive(Debug, Serialize)]
struct ChosenServer<'f> {
    name: &'static str,
    version: &'f str,
    source: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<&'f str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    node_version: Option<&'f str>,
    /// The program, or the script that node runs.
    script: &'f str,
}

fn print_found(context: &CliContext, found: &FoundServer) -> ProgramExit {
    if context.json() {
        return context.printer.json_payload(&ChosenServer {
            name: found.kind.as_str(),
            version: &found.version,
            source: found.source.as_str(),
            node: found.program.node().map(|(node, _)| node.as_str()),
            node_version: found.program.node().map(|(_, version)| version),
            script: found.program.main_file().as_str(),
        });
    }
    let node = found.program.node();
    let node = node.map_or_else(String::new, |(node, version)| format!("  node {version} at {node}\n"));
    let main = found.program.main_file();
    context.printer.payload(&format!("{} {} ({})\n  {main}\n{node}", found.kind, found.version, found.source))
}

/// The error for a missing server. Unlike in bundles it contains local paths, since `server` and `doctor` are about this
/// machine.
pub(super) fn unavailable(error: &Unavailable) -> ErrorBody {
    ErrorBody::new(ErrorSymbol::LsUnavailable, error.what.clone())
        .hint(error.hint.clone())
        .data(ErrorData::Tried { attempts: error.tried.iter().map(ToString::to_string).collect() })
}

/// The status of a candidate as text.
pub(super) fn candidate_status(status: &CandidateStatus) -> String {
    match status {
        CandidateStatus::Chosen => "chosen".to_owned(),
        CandidateStatus::Available => "available".to_owned(),
        CandidateStatus::Damaged(why) => format!("DAMAGED: {why}"),
        CandidateStatus::Rejected(why) => format!("not used: {why}"),
    }
}
