//! The verbs: one file each, arguments beside what is done with them. Dispatch is a flat match.

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
pub(crate) mod show;
pub(crate) mod symbols;
pub(crate) mod trace;
pub(crate) mod trust;
pub(crate) mod undo;

use clap::Subcommand;

use super::context::Context;
use super::exit::Exit;
use crate::model::error::{ErrorBody, ErrorSymbol};

/// The verbs.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Command {
    /// Show where a name is defined
    #[command(visible_alias = "definition")]
    Def(navigate::NavigateArgs),
    /// Show where a name is declared, stubs before sources
    #[command(visible_alias = "declaration")]
    Decl(navigate::NavigateArgs),
    /// Show where the type of an expression is defined
    #[command(visible_alias = "type-definition")]
    Typedef(navigate::NavigateArgs),
    /// Show what implements a method or class
    #[command(visible_alias = "implementation")]
    Impl(navigate::NavigateArgs),
    /// Show every use of a symbol
    #[command(visible_alias = "references")]
    Refs(navigate::RefsArgs),
    /// Show signature and documentation
    Hover(navigate::NavigateArgs),
    /// Show the outline of files, or search names over the workspace
    Symbols(symbols::SymbolsArgs),
    /// Show who calls a function, or what it calls
    Calls(calls::CallsArgs),
    /// Show what the server finds wrong
    #[command(visible_alias = "diagnostics")]
    Diag(diag::DiagArgs),
    /// Show where a selector is now; no server is started
    Locate(locate::LocateArgs),
    /// Say whether a name can be renamed
    PrepareRename(rename::PrepareRenameArgs),
    /// Rename a symbol everywhere, proved before it is written
    Rename(rename::RenameArgs),
    /// List what the server proposes to do at a place, show or do one of it
    Actions(actions::ActionsArgs),
    /// Apply a WorkspaceEdit or a unified diff, proved before it is written
    Apply(apply::ApplyArgs),
    /// Tell which diagnostics an edit brings and which it ends; nothing is written
    Check(apply::CheckArgs),
    /// Take back what was written, or list it
    Undo(undo::UndoArgs),
    /// Answer many requests: JSON Lines in, one bundle a line out, each as it is ready
    Batch(batch::BatchArgs),
    /// Tell what steps are worth, from stored bundles alone
    Reward(reward::RewardArgs),
    /// Score edits against a state of the code: what they repair, and what they only hide
    Score(score::ScoreArgs),
    /// Show a bundle that was answered before
    Show(show::ShowArgs),
    /// Show what lanser would use here, and why
    Doctor(doctor::DoctorArgs),
    /// List, find and install language servers
    #[command(subcommand)]
    Server(server::ServerCommand),
    /// Start, show and stop background sessions, which keep a server warm for the next question
    #[command(subcommand)]
    Session(session::SessionCommand),
    /// Say which repositories may have their programs run
    #[command(subcommand)]
    Trust(trust::TrustCommand),
    /// Print the JSON schemas, or check files against them
    #[command(subcommand)]
    Schema(schema::SchemaCommand),
    /// List, show and replay what `--trace-file` recorded
    #[command(subcommand)]
    Trace(trace::TraceCommand),
    /// Print shell completions, or write man pages
    Completions(completions::CompletionsArgs),
}

impl Command {
    /// Whether the answer is a bundle, and no document of its own.
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
            Self::Trust(_) | Self::Schema(_) | Self::Completions(_) => false,
        }
    }
}

impl Command {
    /// Its name and what to do instead, for a command that cannot be recorded.
    const fn unrecorded(&self) -> Option<(&'static str, &'static str)> {
        const SAME: &str =
            "it is made of the bundles alone that are named: whoever keeps those gets the same again";
        const STATES: &str = "what it scores are whole states of the code: whoever keeps base and heads gets the same score again";
        const NOTHING: &str = "leave --trace-file out";
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
            Self::Schema(_) => Some(("schema", NOTHING)),
            Self::Trace(_) => Some(("trace", NOTHING)),
            Self::Completions(_) => Some(("completions", NOTHING)),
        }
    }
}

/// Says that a command is not recorded although that was asked for. Typed, it is refused, so that nobody relies on a record
/// that is not there; from the environment it is meant for other commands too, and only what tells something of code says so.
fn see_that_it_is_recorded(command: &Command, context: &Context) -> Result<(), ErrorBody> {
    let Some((name, instead)) = command.unrecorded().filter(|_| context.global.trace_file.is_some()) else {
        return Ok(());
    };
    if !context.from_env.contains("trace-file") {
        let message = format!("--trace-file records questions about a workspace, and `{name}` asks none");
        return Err(ErrorBody::new(ErrorSymbol::Usage, message).hint(instead));
    }
    if matches!(command, Command::Reward(_) | Command::Show(_) | Command::Score(_)) {
        context.printer.complain(&format!("`{name}` is not recorded into LANSER_TRACE_FILE: {instead}"));
    }
    Ok(())
}

/// Runs a verb.
pub(crate) fn run(command: Command, context: &mut Context) -> Exit {
    if let Err(error) = see_that_it_is_recorded(&command, context) {
        return context.fail(error);
    }
    use crate::model::request::Command as Question;
    match command {
        Command::Def(args) => navigate::run(Question::Definition, &args, context),
        Command::Decl(args) => navigate::run(Question::Declaration, &args, context),
        Command::Typedef(args) => navigate::run(Question::TypeDefinition, &args, context),
        Command::Impl(args) => navigate::run(Question::Implementation, &args, context),
        Command::Refs(args) => navigate::run_refs(&args, context),
        Command::Hover(args) => navigate::run(Question::Hover, &args, context),
        Command::Symbols(args) => symbols::run(&args, context),
        Command::Calls(args) => calls::run(&args, context),
        Command::Diag(args) => diag::run(&args, context),
        Command::Locate(args) => locate::run(&args, context),
        Command::PrepareRename(args) => rename::prepare(&args, context),
        Command::Rename(args) => rename::run(&args, context),
        Command::Actions(args) => actions::run(&args, context),
        Command::Apply(args) => apply::run(&args, context),
        Command::Check(args) => apply::check(&args, context),
        Command::Undo(args) => undo::run(&args, context),
        Command::Batch(args) => batch::run(&args, context),
        Command::Reward(args) => reward::run(&args, context),
        Command::Score(args) => score::run(&args, context),
        Command::Show(args) => show::run(&args, context),
        Command::Doctor(args) => doctor::run(&args, context),
        Command::Server(command) => server::run(command, context),
        Command::Session(command) => session::run(&command, context),
        Command::Trust(command) => trust::run(&command, context),
        Command::Schema(command) => schema::run(command, context),
        Command::Trace(command) => trace::run(&command, context),
        Command::Completions(args) => completions::run(&args, context),
    }
}
