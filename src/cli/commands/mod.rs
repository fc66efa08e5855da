//! The verbs. Each file has the arguments of its verbs and runs them; [`run`] dispatches.

pub(crate) mod actions;
pub(crate) mod apply;
pub(crate) mod batch;
pub(crate) mod calls;
pub(crate) mod completions;
pub(crate) mod diag;
pub(crate) mod doctor;
pub(crate) mod locate;
pub(crate) mod navigate;
pub(crate) mod rename;
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
pub(crate) mod undo;

use clap::{CommandFactory as _, Subcommand};

use super::context::CliContext;
use super::exit::ProgramExit;
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::model::request::Command;

/// The verbs.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Verb {
    /// Show the definition of a symbol
    #[command(visible_alias = "definition")]
    Def(navigate::NavigateArgs),
    /// Show the declaration of a symbol
    ///
    /// Prefers stubs to sources.
    #[command(visible_alias = "declaration")]
    Decl(navigate::NavigateArgs),
    /// Show the definition of the type
    #[command(visible_alias = "type-definition")]
    Typedef(navigate::NavigateArgs),
    /// Show the implementations of a symbol
    #[command(visible_alias = "implementation")]
    Impl(navigate::NavigateArgs),
    /// Show all references to a symbol
    #[command(visible_alias = "references")]
    Refs(navigate::RefsArgs),
    /// Show the signature and documentation of a symbol
    Hover(navigate::NavigateArgs),
    /// Show the outline of files, or search symbols in the workspace
    Symbols(symbols::SymbolsArgs),
    /// Show the callers or callees of a function
    Calls(calls::CallsArgs),
    /// Show diagnostics
    #[command(visible_alias = "diagnostics")]
    Diag(diag::DiagArgs),
    /// Resolve a selector, without a server
    Locate(locate::LocateArgs),
    /// Check whether a symbol can be renamed
    PrepareRename(rename::PrepareRenameArgs),
    /// Rename a symbol or module, with safety checks
    #[command(visible_alias = "move")]
    Rename(rename::RenameArgs),
    /// List, preview or apply the code actions at a location
    Actions(actions::ActionsArgs),
    /// Apply a WorkspaceEdit or a unified diff, with safety checks
    Apply(apply::ApplyArgs),
    /// Show the diagnostics that an edit introduces and resolves
    ///
    /// Writes nothing.
    Check(apply::CheckArgs),
    /// Undo an applied edit, or list applied edits
    Undo(undo::UndoArgs),
    /// Answer many requests, read and written as JSON Lines
    Batch(batch::BatchArgs),
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
    Options,
}

impl Verb {
    /// Whether the answer is a bundle, as opposed to another document.
    pub(crate) const fn answers_with_a_bundle(&self) -> bool {
        match self {
            Self::Def(_)
            | Self::Decl(_)
            | Self::Typedef(_)
            | Self::Impl(_)
            | Self::Refs(_)
            | Self::Hover(_) => true,
            Self::Symbols(_) | Self::Calls(_) | Self::Diag(_) | Self::Locate(_) => true,
            Self::PrepareRename(_) | Self::Rename(_) | Self::Actions(_) => true,
            Self::Apply(_) | Self::Check(_) | Self::Undo(_) => true,
            Self::Batch(_) | Self::Show(_) => true,
            Self::Reward(_) | Self::Score(_) | Self::Trace(_) => false,
            Self::Doctor(_) | Self::Server(_) | Self::Session(_) => false,
            Self::Trust(_) | Self::Skill(_) | Self::Schema(_) | Self::Completions(_) | Self::Options => false,
        }
    }
}

impl Verb {
    /// The value of `--format`.
    pub(crate) fn format(&self) -> Option<&str> {
        match self {
            Self::Diag(args) => args.format.as_deref(),
            Self::Calls(args) => args.format.as_deref(),
            _ => None,
        }
    }

    /// For a verb that cannot be traced: its name, and a hint what to do instead.
    const fn untraceable(&self) -> Option<(&'static str, &'static str)> {
        const SAME: &str = "its output depends only on the given bundles; keep them to reproduce it";
        const STATES: &str = "its output depends only on the base and the heads; keep them to reproduce it";
        const NOTHING: &str = "omit --trace-file";
        match self {
            Self::Def(_) | Self::Decl(_) | Self::Typedef(_) | Self::Impl(_) | Self::Refs(_) => None,
            Self::Hover(_) | Self::Symbols(_) | Self::Calls(_) | Self::Diag(_) | Self::Locate(_) => None,
            Self::PrepareRename(_) | Self::Rename(_) | Self::Actions(_) => None,
            Self::Apply(_) | Self::Check(_) | Self::Undo(_) | Self::Batch(_) => None,
            Self::Reward(_) => Some(("reward", SAME)),
            Self::Show(_) => Some(("show", SAME)),
            Self::Score(_) => Some(("score", STATES)),
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
            Self::Options => Some(("options", NOTHING)),
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
        Verb::Def(args) => navigate::run(Command::Definition, &args, context),
        Verb::Decl(args) => navigate::run(Command::Declaration, &args, context),
        Verb::Typedef(args) => navigate::run(Command::TypeDefinition, &args, context),
        Verb::Impl(args) => navigate::run(Command::Implementation, &args, context),
        Verb::Refs(args) => navigate::run_refs(&args, context),
        Verb::Hover(args) => navigate::run(Command::Hover, &args, context),
        Verb::Symbols(args) => symbols::run(&args, context),
        Verb::Calls(args) => calls::run(&args, context),
        Verb::Diag(args) => diag::run(&args, context),
        Verb::Locate(args) => locate::run(&args, context),
        Verb::PrepareRename(args) => rename::prepare(&args, context),
        Verb::Rename(args) => rename::run(&args, context),
        Verb::Actions(args) => actions::run(&args, context),
        Verb::Apply(args) => apply::run(&args, context),
        Verb::Check(args) => apply::check(&args, context),
        Verb::Undo(args) => undo::run(&args, context),
        Verb::Batch(args) => batch::run(&args, context),
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
        Verb::Options => {
            let mut command = crate::cli::Cli::command();
            command.build();
            let options = command.find_subcommand_mut("options").map(clap::Command::render_long_help);
            context.printer.payload(&options.unwrap_or_default().to_string())
        }
    }
}
