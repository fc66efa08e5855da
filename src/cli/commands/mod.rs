//! The verbs. Each file has the arguments of its verbs and runs them; [`run`] dispatches. Those that make one request about a
//! workspace are in [`request`].

pub(crate) mod actions;
pub(crate) mod apply;
pub(crate) mod batch;
pub(crate) mod calls;
pub(crate) mod completions;
pub(crate) mod diag;
pub(crate) mod doctor;
pub(crate) mod locate;
pub(crate) mod lsp;
pub(crate) mod mcp;
pub(crate) mod navigate;
pub(crate) mod rename;
pub(crate) mod request;
pub(crate) mod reward;
pub(crate) mod schema;
pub(crate) mod score;
pub(crate) mod server;
pub(crate) mod session;
mod shard;
pub(crate) mod show;
pub(crate) mod skill;
pub(crate) mod symbols;
pub(crate) mod trace;
pub(crate) mod trust;
pub(crate) mod types;
pub(crate) mod undo;

use clap::{CommandFactory as _, Subcommand};

use super::context::CliContext;
use super::exit::ProgramExit;
use crate::model::error::{ErrorBody, ErrorSymbol};
pub(crate) use request::RequestVerb;

/// The verbs.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Verb {
    #[command(flatten)]
    Request(RequestVerb),
    /// Answer many requests, read and written as JSON Lines
    Batch(batch::BatchArgs),
    /// Answer editors and agents as a language server
    Lsp(lsp::LspArgs),
    /// Offer the commands as tools of an MCP server
    Mcp(mcp::McpArgs),
    /// Compute the rewards of steps from stored bundles
    Reward(reward::RewardArgs),
    /// Score code changes by the diagnostics that they fix or hide
    Score(score::ScoreArgs),
    /// Show a stored bundle
    Show(show::ShowArgs),
    /// Show the server, Python and settings in use, and problems
    Doctor(doctor::DoctorArgs),
    /// List, find or install language servers and analyzers
    #[command(subcommand)]
    Server(server::ServerSubcommand),
    /// Start, show or stop background sessions
    ///
    /// A session keeps the server of a workspace running, so that requests are answered quickly.
    #[command(subcommand)]
    Session(session::SessionSubcommand),
    /// Manage the repositories whose programs may be run
    #[command(subcommand)]
    Trust(trust::TrustSubcommand),
    /// Install the instructions for agents
    ///
    /// A skill (agentskills.io) tells an agent when to use which command. For Claude Code, a hook answers text searches for
    /// symbols with the command that finds them; it runs nothing of the workspace.
    #[command(subcommand)]
    Skill(skill::SkillSubcommand),
    /// Print the JSON schemas, or validate files
    #[command(subcommand)]
    Schema(schema::SchemaSubcommand),
    /// List, show or replay recorded requests
    #[command(subcommand)]
    Trace(trace::TraceSubcommand),
    /// Print shell completions, or write man pages
    Completions(completions::CompletionsArgs),
    /// The options of every command
    #[command(hide = true, disable_help_flag = true, help_template = "{all-args}")]
    Options {
        /// Hides the option `--help` of the program, which would be listed otherwise.
        #[arg(long, hide = true, action = clap::ArgAction::Help)]
        help: Option<bool>,
    },
}

impl Verb {
    /// Whether the answer is a bundle, as opposed to another document.
    pub(crate) const fn answers_with_a_bundle(&self) -> bool {
        match self {
            Self::Request(_) | Self::Batch(_) | Self::Show(_) => true,
            Self::Lsp(_) | Self::Mcp(_) | Self::Reward(_) | Self::Score(_) | Self::Trace(_) => false,
            Self::Doctor(_) | Self::Server(_) | Self::Session(_) => false,
            Self::Trust(_)
            | Self::Skill(_)
            | Self::Schema(_)
            | Self::Completions(_)
            | Self::Options { .. } => false,
        }
    }
}

impl Verb {
    /// The value of `--format`.
    pub(crate) fn format(&self) -> Option<&str> {
        match self {
            Self::Request(verb) => verb.format(),
            _ => None,
        }
    }

    /// For a verb that cannot be traced: its name, and a hint what to do instead.
    const fn untraceable(&self) -> Option<(&'static str, &'static str)> {
        const SAME: &str = "its output depends only on the given bundles; keep them to reproduce it";
        const STATES: &str = "its output depends only on the base and the heads; keep them to reproduce it";
        const NOTHING: &str = "omit --trace-file";
        match self {
            Self::Request(_) | Self::Batch(_) => None,
            Self::Reward(_) => Some(("reward", SAME)),
            Self::Show(_) => Some(("show", SAME)),
            Self::Score(_) => Some(("score", STATES)),
            Self::Lsp(_) => Some(("lsp", NOTHING)),
            Self::Mcp(_) => Some(("mcp", NOTHING)),
            Self::Doctor(_) => Some(("doctor", NOTHING)),
            Self::Server(_) => Some(("server", NOTHING)),
            Self::Session(_) => Some(("session", NOTHING)),
            Self::Trust(_) => Some(("trust", NOTHING)),
            Self::Skill(_) => Some(("skill", NOTHING)),
            Self::Schema(_) => Some(("schema", NOTHING)),
            // Its `--trace-file` is the trace that it reads.
            Self::Trace(command) if command.reads_trace_file() => None,
            Self::Trace(_) => Some(("trace", NOTHING)),
            Self::Completions(_) => Some(("completions", NOTHING)),
            Self::Options { .. } => Some(("options", NOTHING)),
        }
    }
}

/// Reports that a verb cannot be traced although `--trace-file` is set. If set on the command line, this is an error, so that
/// the user does not expect a trace. If set in the environment, it applies to other commands too, and only the verbs that
/// report on code print a warning.
fn check_traceable(verb: &Verb, context: &CliContext) -> Result<(), ErrorBody> {
    let Some((name, hint)) = verb.untraceable().filter(|_| context.global.trace_file.is_some()) else {
        return Ok(());
    };
    if !context.from_env.contains("trace-file") {
        let message =
            format!("--trace-file does not apply to `{name}`, which makes no request about a workspace");
        return Err(ErrorBody::new(ErrorSymbol::Usage, message).hint(hint));
    }
    if matches!(verb, Verb::Reward(_) | Verb::Show(_) | Verb::Score(_)) {
        context.printer.complain(&format!("`{name}` is not recorded in LANSER_TRACE_FILE: {hint}"));
    }
    Ok(())
}

/// Runs a verb.
pub(crate) fn run(verb: Verb, context: &mut CliContext) -> ProgramExit {
    if let Err(error) = check_traceable(&verb, context) {
        return context.fail(error);
    }
    match verb {
        Verb::Request(verb) => context.run_request(|context, settings| verb.request(context, settings)),
        Verb::Batch(args) => batch::run(&args, context),
        Verb::Lsp(args) => lsp::run(&args, context),
        Verb::Mcp(_) => mcp::run(context),
        Verb::Reward(args) => reward::run(&args, context),
        Verb::Score(args) => score::run(&args, context),
        Verb::Show(args) => show::run(&args, context),
        Verb::Doctor(args) => doctor::run(&args, context),
        Verb::Server(command) => server::run(command, context),
        Verb::Session(command) => session::run(&command, context),
        Verb::Trust(command) => trust::run(&command, context),
        Verb::Skill(command) => skill::run(&command, context),
        Verb::Schema(command) => schema::run(command, context),
        Verb::Trace(command) => trace::run(&command, context),
        Verb::Completions(args) => completions::run(&args, context),
        Verb::Options { .. } => {
            let mut command = crate::cli::Cli::command();
            command.build();
            let options = command.find_subcommand_mut("options").map(clap::Command::render_long_help);
            context.printer.payload(&options.unwrap_or_default().to_string())
        }
    }
}
