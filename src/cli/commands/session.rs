//! `session start|status|stop`: the background processes that keep servers running.

use std::fmt::Write as _;

use clap::{Args, Subcommand};
use serde::Serialize;

use crate::cli::context::{CliContext, runtime};
use crate::cli::exit::ProgramExit;
use crate::cli::output::Style;
use crate::cli::settings::CliSettings;
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::serve::session::{self, SessionError, SessionInfo, SessionStatus};
use crate::text::plural;

/// The verbs of `session`.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum SessionSubcommand {
    /// Start a session and its server for the workspace
    ///
    /// Without this the first request starts them.
    Start,
    /// Show the sessions of the workspace and their servers
    Status(SessionScopeArgs),
    /// Stop the sessions of the workspace, and wait until they have exited
    Stop(SessionScopeArgs),
}

/// Arguments of `session status` and `session stop`.
#[derive(Debug, Clone, Args)]
pub(crate) struct SessionScopeArgs {
    /// Include the sessions of all workspaces of this user
    #[arg(long)]
    pub(crate) all: bool,
}

/// Runs a verb of `session`.
pub(crate) fn run(command: &SessionSubcommand, context: &mut CliContext) -> ProgramExit {
    let done = context.settings().and_then(|settings| match command {
        SessionSubcommand::Start => start(context, &settings),
        SessionSubcommand::Status(args) => status(context, &settings, args),
        SessionSubcommand::Stop(args) => stop(context, &settings, args),
    });
    done.unwrap_or_else(|error| context.fail(error))
}

/// The JSON output of `session start`.
#[derive(Debug, Serialize)]
struct StartedSession<'a> {
    workspace: &'a str,
    pid: u32,
}

fn start(context: &CliContext, settings: &CliSettings) -> Result<ProgramExit, ErrorBody> {
    if !settings.session {
        let why = settings.origins.get("session").map_or("", |setting| &setting.origin);
        let message = format!("sessions are disabled ({why})");
        return Err(ErrorBody::new(ErrorSymbol::Usage, message).hint("set LANSER_SESSION=on to enable them"));
    }
    let to_body = |error: SessionError| {
        let symbol = match &error {
            SessionError::RuntimeDir(_) => ErrorSymbol::FsPermissions,
            _ => ErrorSymbol::LsUnavailable,
        };
        ErrorBody::new(symbol, error.to_string()).hint(
            "requests also work without a session; `lanser session status --all` lists the running sessions",
        )
    };
    let mut caller = context.caller(settings, true).map_err(to_body)?;
    let runtime = runtime()?;
    let pid = runtime.block_on(caller.connect_session()).map_err(to_body)?;
    let started = StartedSession { workspace: settings.root.as_str(), pid };
    Ok(match context.json() {
        true => context.printer.json_payload(&started),
        false => context.printer.payload(&format!("session {pid} for {}\n", settings.root)),
    })
}

/// One line of `session status` and `session stop`.
#[derive(Debug, Serialize)]
struct SessionLine {
    workspace: String,
    pid: Option<u32>,
    supervisor: Option<u32>,
    /// The status that the session reports; `null` if it does not respond.
    status: Option<SessionStatus>,
}

impl SessionLine {
    fn new(seen: &SessionInfo) -> Self {
        Self {
            workspace: seen.workspace.clone(),
            pid: seen.pid,
            supervisor: seen.supervisor,
            status: seen.status.clone(),
        }
    }
}

fn seen(
    context: &CliContext,
    settings: &CliSettings,
    args: &SessionScopeArgs,
) -> Result<Vec<SessionInfo>, ErrorBody> {
    let place = context.env.sessions();
    let workspace = (!args.all).then_some(&settings.root);
    runtime()?.block_on(session::list(&place, workspace)).map_err(|error| {
        ErrorBody::new(ErrorSymbol::FsPermissions, error.to_string())
            .hint("remove it, or make it a folder that you own, with mode 700")
    })
}

fn status(
    context: &CliContext,
    settings: &CliSettings,
    args: &SessionScopeArgs,
) -> Result<ProgramExit, ErrorBody> {
    let lines: Vec<SessionLine> = seen(context, settings, args)?.iter().map(SessionLine::new).collect();
    if context.json() {
        return Ok(context.printer.json_payload(&lines));
    }
    let mut text = String::new();
    for line in &lines {
        let _ = writeln!(text, "{}", status_text(line));
        for server in line.status.iter().flat_map(|status| &status.report.servers) {
            let memory = server
                .memory_bytes
                .map_or_else(String::new, |bytes| format!(", {} MiB", bytes.div_ceil(1 << 20)));
            let _ = writeln!(
                text,
                "  {} {}: pid {}{memory}, {}",
                server.name,
                server.version,
                server.pid,
                plural(server.documents, "open document")
            );
        }
    }
    if lines.is_empty() {
        text = none(settings, args);
    }
    Ok(context.printer.payload(&text))
}

fn stop(
    context: &CliContext,
    settings: &CliSettings,
    args: &SessionScopeArgs,
) -> Result<ProgramExit, ErrorBody> {
    let place = context.env.sessions();
    let seen = seen(context, settings, args)?;
    let runtime = runtime()?;
    let (mut stopped, mut left) = (Vec::new(), Vec::new());
    for seen in &seen {
        let gone = runtime.block_on(session::stop(&place, seen));
        if gone { &mut stopped } else { &mut left }.push(SessionLine::new(seen));
    }
    if let Some(line) = left.first() {
        let pid = line.pid.map_or_else(|| "of another container".to_owned(), |pid| pid.to_string());
        let message = format!("the session {pid} for {} does not stop", line.workspace);
        return Err(ErrorBody::new(ErrorSymbol::FsPermissions, message).hint("kill the process by its id"));
    }
    if context.json() {
        return Ok(context.printer.json_payload(&stopped));
    }
    let mut text = String::new();
    for line in &stopped {
        let pid = line.pid.map_or_else(String::new, |pid| format!(" {pid}"));
        let _ = writeln!(text, "stopped session{pid} for {}", line.workspace);
    }
    if stopped.is_empty() {
        text = none(settings, args);
    }
    Ok(context.printer.payload(&text))
}

fn none(settings: &CliSettings, args: &SessionScopeArgs) -> String {
    match args.all {
        true => "no sessions\n".to_owned(),
        false => format!("no session for {}\n", settings.root),
    }
}

fn status_text(line: &SessionLine) -> String {
    let workspace = if line.workspace.is_empty() { "(no workspace yet)" } else { &line.workspace };
    let pid = line.pid.map_or_else(|| "in another container".to_owned(), |pid| format!("pid {pid}"));
    let status = match &line.status {
        None => "does not respond".to_owned(),
        Some(status) => {
            let now = match status.active_requests {
                0 => format!("idle for {}", duration_text(status.idle)),
                count => format!("answering {}", plural(count, "request")),
            };
            let answered = plural(status.answered, "request");
            format!("up for {}, {now}, {answered} answered", duration_text(status.age))
        }
    };
    let options = line.status.iter().flat_map(|status| &status.options);
    let options: String = options.map(|option| format!(" {option}")).collect();
    let options = if options.is_empty() { options } else { format!(" (for{options})") };
    format!("{} {pid}{options}, {status}", Style::Path.paint(workspace))
}

/// A duration in its two largest units.
fn duration_text(seconds: u64) -> String {
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match (hours, minutes) {
        (0, 0) => format!("{seconds} s"),
        (0, _) => format!("{minutes} min {seconds} s"),
        _ => format!("{hours} h {minutes} min"),
    }
}
