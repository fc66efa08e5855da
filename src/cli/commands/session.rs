//! `session start|status|stop`: the background processes that keep servers warm.

use std::fmt::Write as _;

use clap::{Args, Subcommand};
use serde::Serialize;

use crate::cli::context::{Context, runtime};
use crate::cli::exit::Exit;
use crate::cli::output::Style;
use crate::cli::settings::Settings;
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::orchestrator::session::{self, Seen, Status, Trouble};

/// The verbs of `session`.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum SessionCommand {
    /// Start the workspace's session, which begins to start its server, before the first question does
    Start,
    /// Show the workspace's sessions and their servers
    Status(WhoseArgs),
    /// End the workspace's sessions, and wait until they are gone
    Stop(WhoseArgs),
}

/// Arguments of `session status` and `session stop`.
#[derive(Debug, Clone, Args)]
pub(crate) struct WhoseArgs {
    /// All sessions of this user, whatever their workspace
    #[arg(long)]
    pub(crate) all: bool,
}

/// Runs a verb of `session`.
pub(crate) fn run(command: &SessionCommand, context: &mut Context) -> Exit {
    let done = context.settings().and_then(|settings| match command {
        SessionCommand::Start => start(context, &settings),
        SessionCommand::Status(args) => status(context, &settings, args),
        SessionCommand::Stop(args) => stop(context, &settings, args),
    });
    done.unwrap_or_else(|error| context.fail(error))
}

/// What `session start` says.
#[derive(Debug, Serialize)]
struct Started<'a> {
    workspace: &'a str,
    pid: u32,
}

fn start(context: &Context, settings: &Settings) -> Result<Exit, ErrorBody> {
    if !settings.session {
        let why = settings.origins.get("session").map_or("", |setting| &setting.origin);
        let message = format!("sessions are off here ({why})");
        return Err(ErrorBody::new(ErrorSymbol::Usage, message).hint("LANSER_SESSION=on switches them on"));
    }
    let trouble = |trouble: Trouble| {
        let symbol = match &trouble {
            Trouble::Place(_) => ErrorSymbol::FsPermissions,
            _ => ErrorSymbol::LsUnavailable,
        };
        ErrorBody::new(symbol, trouble.to_string())
            .hint("questions are answered without a session; `lanser session status --all` shows those that there are")
    };
    let mut caller = context.caller(settings, true).map_err(trouble)?;
    let runtime = runtime()?;
    let pid = runtime.block_on(caller.greet()).map_err(trouble)?;
    let started = Started { workspace: settings.root.as_str(), pid };
    Ok(match context.json() {
        true => context.printer.json_payload(&started),
        false => context.printer.payload(&format!("session {pid} for {}\n", settings.root)),
    })
}

/// One line of `session status` and `session stop`.
#[derive(Debug, Serialize)]
struct Line {
    workspace: String,
    pid: Option<u32>,
    supervisor: Option<u32>,
    /// What the session says of itself; `null` when it does not answer.
    status: Option<Status>,
}

impl Line {
    fn new(seen: &Seen) -> Self {
        Self {
            workspace: seen.workspace.clone(),
            pid: seen.pid,
            supervisor: seen.supervisor,
            status: seen.status.clone(),
        }
    }
}

fn seen(context: &Context, settings: &Settings, args: &WhoseArgs) -> Result<Vec<Seen>, ErrorBody> {
    let place = context.env.sessions();
    let workspace = (!args.all).then_some(&settings.root);
    runtime()?.block_on(session::list(&place, workspace)).map_err(|error| {
        ErrorBody::new(ErrorSymbol::FsPermissions, error.to_string())
            .hint("remove it, or make it a folder of your own with mode 700")
    })
}

fn status(context: &Context, settings: &Settings, args: &WhoseArgs) -> Result<Exit, ErrorBody> {
    let lines: Vec<Line> = seen(context, settings, args)?.iter().map(Line::new).collect();
    if context.json() {
        return Ok(context.printer.json_payload(&lines));
    }
    let mut text = String::new();
    for line in &lines {
        let _ = writeln!(text, "{}", told(line));
        for server in line.status.iter().flat_map(|status| &status.report.servers) {
            let memory = server
                .memory_bytes
                .map_or_else(String::new, |bytes| format!(", {} MiB", bytes.div_ceil(1 << 20)));
            let _ = writeln!(
                text,
                "  {} {}: pid {}{memory}, {} documents open",
                server.name, server.version, server.pid, server.documents
            );
        }
    }
    if lines.is_empty() {
        text = none(settings, args);
    }
    Ok(context.printer.payload(&text))
}

fn stop(context: &Context, settings: &Settings, args: &WhoseArgs) -> Result<Exit, ErrorBody> {
    let place = context.env.sessions();
    let seen = seen(context, settings, args)?;
    let runtime = runtime()?;
    let (mut stopped, mut left) = (Vec::new(), Vec::new());
    for seen in &seen {
        let gone = runtime.block_on(session::stop(&place, seen));
        if gone { &mut stopped } else { &mut left }.push(Line::new(seen));
    }
    if let Some(line) = left.first() {
        let pid = line.pid.map_or_else(|| "of another container".to_owned(), |pid| pid.to_string());
        let message = format!("the session {pid} for {} does not end", line.workspace);
        return Err(ErrorBody::new(ErrorSymbol::FsPermissions, message).hint("end the process by its id"));
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

fn none(settings: &Settings, args: &WhoseArgs) -> String {
    match args.all {
        true => "no sessions\n".to_owned(),
        false => format!("no session for {}\n", settings.root),
    }
}

fn told(line: &Line) -> String {
    let workspace = if line.workspace.is_empty() { "(nobody has asked yet)" } else { &line.workspace };
    let pid = line.pid.map_or_else(|| "in another container".to_owned(), |pid| format!("pid {pid}"));
    let status = match &line.status {
        None => "does not answer".to_owned(),
        Some(status) => {
            let now = match status.asking {
                0 => format!("idle for {}", span(status.idle)),
                asking => format!("answering {asking}"),
            };
            format!("up for {}, {now}, {} answered", span(status.age), status.answered)
        }
    };
    let options = line.status.iter().flat_map(|status| &status.options);
    let options: String = options.map(|option| format!(" {option}")).collect();
    let options = if options.is_empty() { options } else { format!(" (for{options})") };
    format!("{} {pid}{options}, {status}", Style::Path.paint(workspace))
}

/// Seconds as people say them.
fn span(seconds: u64) -> String {
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match (hours, minutes) {
        (0, 0) => format!("{seconds} s"),
        (0, _) => format!("{minutes} min {seconds} s"),
        _ => format!("{hours} h {minutes} min"),
    }
}
