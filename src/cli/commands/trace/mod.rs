//! `trace list|show|replay`: what `--trace-file` recorded.

mod list;
mod replay;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};

use crate::cli::context::Context;
use crate::cli::exit::Exit;
use crate::cli::output::Progress;
use crate::model::bundle::Status;
use crate::model::error::{ErrorBody, ErrorData, ErrorSymbol};
use crate::model::request::Command;
use crate::trace::operation::Operation;
use crate::trace::reader::{Reader, TraceError};

/// The verbs of `trace`.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum TraceCommand {
    /// List the operations of a trace, a line each
    List(list::ListArgs),
    /// Show the events of a trace's operations
    Show(list::ShowArgs),
    /// Make the bundles of a trace again, with no server and no workspace
    Replay(replay::ReplayArgs),
}

/// Which operations are meant.
#[derive(Debug, Clone, Args)]
pub(crate) struct Filter {
    /// Only this operation, counted from 1
    #[arg(long, value_name = "N")]
    pub(crate) op: Option<u64>,
    /// Only this command
    #[arg(long, value_name = "NAME", value_parser = commands())]
    pub(crate) cmd: Option<Command>,
    /// Only operations whose selector holds this text
    #[arg(long, value_name = "TEXT")]
    pub(crate) selector: Option<String>,
    /// Only operations that ended with this exit code
    #[arg(long, value_name = "CODE")]
    pub(crate) exit_code: Option<u8>,
    /// Only operations with this status
    #[arg(long, value_name = "STATUS", value_parser = statuses())]
    pub(crate) status: Option<Status>,
}

/// The commands by the long names that requests have, and by the verbs of the command line.
fn commands() -> impl TypedValueParser<Value = Command> {
    let values = Command::ALL.map(|command| PossibleValue::new(command.as_str()).aliases(verbs(command)));
    PossibleValuesParser::new(values).map(|name| {
        let is_meant = |command: &Command| command.as_str() == name || verbs(*command).contains(&&*name);
        Command::ALL.into_iter().find(is_meant).expect("the name is a possible one")
    })
}

/// What a command is called on the command line, where that is not its long name.
const fn verbs(command: Command) -> &'static [&'static str] {
    match command {
        Command::Definition => &["def"],
        Command::Declaration => &["decl"],
        Command::TypeDefinition => &["typedef", "type-definition"],
        Command::Implementation => &["impl"],
        Command::References => &["refs"],
        Command::Diagnostics => &["diag"],
        Command::PrepareRename => &["prepare-rename"],
        Command::Hover | Command::Symbols | Command::Calls | Command::Locate => &[],
        Command::Rename | Command::Actions | Command::Apply | Command::Check | Command::Undo => &[],
    }
}

fn statuses() -> impl TypedValueParser<Value = Status> {
    let all = [Status::Ok, Status::Partial, Status::Error];
    PossibleValuesParser::new(all.map(name))
        .map(move |text| all.into_iter().find(|status| name(*status) == text).expect("it is a possible one"))
}

impl Filter {
    /// Whether an operation is meant.
    fn takes(&self, operation: &Operation) -> bool {
        let request = operation.request.as_ref();
        let bundle = operation.bundle.as_ref();
        let selector = || request.and_then(|request| request.selector.as_ref()).map(ToString::to_string);
        self.op.is_none_or(|op| op == operation.op)
            && self.cmd.is_none_or(|cmd| request.is_some_and(|request| request.cmd == cmd))
            && self
                .selector
                .as_ref()
                .is_none_or(|text| selector().is_some_and(|all| all.contains(text.as_str())))
            && self.exit_code.is_none_or(|code| bundle.is_some_and(|bundle| bundle.meta.exit_code == code))
            && self.status.is_none_or(|status| bundle.is_some_and(|bundle| bundle.status == status))
    }
}

/// The one word for a status.
const fn name(status: Status) -> &'static str {
    match status {
        Status::Ok => "ok",
        Status::Partial => "partial",
        Status::Error => "error",
    }
}

/// Runs a verb of `trace`.
pub(crate) fn run(command: &TraceCommand, context: &mut Context) -> Exit {
    let done = match command {
        TraceCommand::List(args) => list::list(args, context),
        TraceCommand::Show(args) => list::show(args, context),
        TraceCommand::Replay(args) => replay::replay(args, context),
    };
    done.unwrap_or_else(|error| context.fail(error))
}

/// Opens a trace.
fn open(context: &Context, file: &str) -> Result<Reader, ErrorBody> {
    let path = context.env.cwd.join(file);
    Reader::open(&path).map_err(|error| told(file, &error))
}

/// Why a trace cannot be read on.
fn told(file: &str, error: &TraceError) -> ErrorBody {
    match error {
        TraceError::Io(reason) if reason.kind() == std::io::ErrorKind::NotFound => {
            ErrorBody::new(ErrorSymbol::NotFound, format!("there is no trace {file}"))
                .hint("a trace is recorded with `--trace-file FILE`")
        }
        TraceError::Io(reason) => {
            ErrorBody::new(ErrorSymbol::FsPermissions, format!("cannot read the trace {file}: {reason}"))
        }
        TraceError::Foreign(why) => ErrorBody::new(ErrorSymbol::ReplayMismatch, format!("{file}: {why}"))
            .hint("replay it with the lanser that recorded it, or record it again"),
        TraceError::Damaged { op, seq, .. } => {
            let data = ErrorData::Mismatch { op: *op, event: Some(*seq), field: None };
            ErrorBody::new(ErrorSymbol::ReplayMismatch, format!("{file}: {error}"))
                .hint("what comes before it can be replayed one by one with --op")
                .data(data)
        }
    }
}

/// Tells on standard error that a trace breaks off.
fn tell_truncation(context: &Context, file: &str, reader: &Reader) {
    if let Some(why) = truncation(file, reader) {
        context.printer.complain(&why);
    }
}

/// Where a trace breaks off, if it does.
fn truncation(file: &str, reader: &Reader) -> Option<String> {
    let line = reader.truncated()?;
    Some(format!(
        "{file} breaks off at line {line}, in the middle of an operation: its recorder was stopped; what came before is whole"
    ))
}

/// Nothing of what was read of a trace is meant.
fn nothing(file: &str, filter: &Filter, operations: u64) -> ErrorBody {
    // Behind the one that was asked for nothing is read.
    let is_whole = filter.op.is_none_or(|op| op > operations);
    let count = if is_whole { format!("it has {operations} operations; ") } else { String::new() };
    ErrorBody::new(ErrorSymbol::NotFound, format!("nothing in {file} is what was asked for"))
        .hint(format!("{count}`lanser trace list {file}` lists them"))
}

/// Tells how much of a trace was read, for a person who waits.
fn tell_progress(progress: &Progress, reader: &Reader, operations: u64) {
    let (read, whole) = reader.progress();
    let percent = read.saturating_mul(100).checked_div(whole).unwrap_or(100);
    progress.step(&format!("{operations} operations, {percent} % of the trace"));
}
