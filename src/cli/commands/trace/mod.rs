//! `trace list|show|replay`: the operations recorded by `--trace-file`.

mod inspect;
mod replay;
mod steps;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};

use crate::cli::context::CliContext;
use crate::cli::exit::ProgramExit;
use crate::cli::output::TerminalProgress;
use crate::model::bundle::Status;
use crate::model::error::{ErrorBody, ErrorData, ErrorSymbol};
use crate::model::request::Command;
use crate::model::trace::RecordedBundle;
use crate::text::{plural, shell_argument};

use crate::trace::operation::TracedOperation;
use crate::trace::reader::{TraceError, TraceReader};

/// The verbs of `trace`.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum TraceSubcommand {
    /// List the operations of a trace
    List(inspect::TraceListArgs),
    /// Show the events of operations
    Show(inspect::TraceShowArgs),
    /// Recompute the bundles of a trace, without a server or workspace
    Replay(replay::ReplayArgs),
}

impl TraceSubcommand {
    /// Whether the trace is given by `--trace-file`, which for other verbs is the trace to write.
    pub(crate) const fn reads_trace_file(&self) -> bool {
        let trace = match self {
            Self::List(args) => &args.trace,
            Self::Show(args) => &args.trace,
            Self::Replay(args) => &args.trace,
        };
        trace.file.is_none()
    }
}

/// The trace to read.
#[derive(Debug, Clone, Args)]
pub(crate) struct TraceFileArg {
    /// Trace file; `--trace-file FILE` is the same
    file: Option<String>,
}

impl TraceFileArg {
    /// The file.
    ///
    /// # Errors
    /// If none is given on the command line. `LANSER_TRACE_FILE` names the trace that commands write.
    fn get(&self, context: &CliContext) -> Result<String, ErrorBody> {
        let by_option =
            context.global.trace_file.as_ref().filter(|_| !context.from_env.contains("trace-file"));
        self.file.as_ref().or(by_option).cloned().ok_or_else(|| {
            ErrorBody::new(ErrorSymbol::Usage, "no trace is given")
                .hint("name the file: `lanser trace replay FILE` or `lanser trace replay --trace-file FILE`")
        })
    }
}

/// Selects operations.
#[derive(Debug, Clone, Args)]
pub(crate) struct OperationFilter {
    /// Only this operation, counted from 1
    #[arg(long, value_name = "N")]
    pub(crate) op: Option<u64>,
    /// Only this command
    #[arg(long, value_name = "NAME", value_parser = commands())]
    pub(crate) cmd: Option<Command>,
    /// Only operations whose selector contains this text
    #[arg(long, value_name = "TEXT")]
    pub(crate) selector: Option<String>,
    /// Only operations that ended with this exit code
    #[arg(long, value_name = "CODE")]
    pub(crate) exit_code: Option<u8>,
    /// Only operations with this status
    #[arg(long, value_name = "STATUS", value_parser = statuses())]
    pub(crate) status: Option<Status>,
}

/// Parses commands by their long names as in requests, and by the verbs of the command line.
fn commands() -> impl TypedValueParser<Value = Command> {
    let values = Command::ALL.map(|command| PossibleValue::new(command.as_str()).aliases(command.verbs()));
    PossibleValuesParser::new(values)
        .map(|name| Command::parse(&name).expect("clap accepts only these names"))
}

fn statuses() -> impl TypedValueParser<Value = Status> {
    let all = [Status::Ok, Status::Partial, Status::Error];
    PossibleValuesParser::new(all.map(name)).map(move |text| {
        all.into_iter().find(|status| name(*status) == text).expect("clap accepts only these")
    })
}

impl OperationFilter {
    /// Whether an operation is selected.
    fn matches(&self, operation: &TracedOperation) -> bool {
        let request = operation.request.as_ref();
        let bundle = operation.bundle.as_ref();
        let selector = || request.and_then(|request| request.selector.as_ref()).map(ToString::to_string);
        self.op.is_none_or(|op| op == operation.op)
            && self.cmd.is_none_or(|cmd| request.is_some_and(|request| request.cmd == cmd))
            && self
                .selector
                .as_ref()
                .is_none_or(|text| selector().is_some_and(|all| all.contains(text.as_str())))
            && self.exit_code.is_none_or(|code| bundle.and_then(RecordedBundle::exit_code) == Some(code))
            && self.status.is_none_or(|status| bundle.and_then(RecordedBundle::status) == Some(status))
    }
}

/// The name of a status.
const fn name(status: Status) -> &'static str {
    match status {
        Status::Ok => "ok",
        Status::Partial => "partial",
        Status::Error => "error",
    }
}

/// Runs a verb of `trace`.
pub(crate) fn run(command: &TraceSubcommand, context: &mut CliContext) -> ProgramExit {
    let done = match command {
        TraceSubcommand::List(args) => inspect::list(args, context),
        TraceSubcommand::Show(args) => inspect::show(args, context),
        TraceSubcommand::Replay(args) => replay::replay(args, context),
    };
    done.unwrap_or_else(|error| context.fail(error))
}

/// Opens a trace.
fn open(context: &CliContext, file: &str) -> Result<TraceReader, ErrorBody> {
    let path = context.env.cwd.join(file);
    TraceReader::open(&path).map_err(|error| trace_error(file, &error))
}

/// The error body for a trace that cannot be read.
fn trace_error(file: &str, error: &TraceError) -> ErrorBody {
    match error {
        TraceError::Io(reason) if reason.kind() == std::io::ErrorKind::NotFound => {
            ErrorBody::new(ErrorSymbol::NotFound, format!("no such trace: {file}"))
                .hint("`--trace-file FILE` records a trace")
        }
        TraceError::Io(reason) => {
            ErrorBody::new(ErrorSymbol::FsPermissions, format!("cannot read the trace {file}: {reason}"))
        }
        TraceError::Foreign(why) => ErrorBody::new(ErrorSymbol::ReplayMismatch, format!("{file}: {why}"))
            .hint("replay it with the version of lanser that recorded it, or record it again"),
        TraceError::Damaged { op, seq, .. } => {
            let data = ErrorData::Mismatch { op: *op, event: Some(*seq), field: None };
            ErrorBody::new(ErrorSymbol::ReplayMismatch, format!("{file}: {error}"))
                .hint("the operations before it can be replayed one by one with --op")
                .data(data)
        }
    }
}

/// Warns on standard error if a trace is truncated.
fn warn_if_truncated(context: &CliContext, file: &str, reader: &TraceReader) {
    if let Some(message) = truncation(file, reader) {
        context.printer.complain(&message);
    }
}

/// The warning about a truncated trace; `None` if it is not truncated.
fn truncation(file: &str, reader: &TraceReader) -> Option<String> {
    let line = reader.truncated()?;
    Some(format!(
        "{file} is truncated at line {line}, in the middle of an operation: the recording process was stopped; the operations before \
         it are intact"
    ))
}

/// The error if no operation matches the filter.
fn no_match(file: &str, filter: &OperationFilter, operations: u64) -> ErrorBody {
    // With --op, reading stops at that operation, and the total is unknown.
    let is_whole = filter.op.is_none_or(|op| op > operations);
    let count =
        if is_whole { format!("it has {}; ", plural(operations, "operation")) } else { String::new() };
    ErrorBody::new(ErrorSymbol::NotFound, format!("no operation in {file} matches the filter"))
        .hint(format!("{count}`lanser trace list {}` lists them", shell_argument(file)))
}

/// Shows how much of a trace has been read.
fn show_progress(progress: &TerminalProgress, reader: &TraceReader, operations: u64) {
    let (read, total) = reader.progress();
    let percent = read.saturating_mul(100).checked_div(total).unwrap_or(100);
    progress.step(&format!("{}, {percent} % of the trace", plural(operations, "operation")));
}
