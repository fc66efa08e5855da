//! `trace list|show|replay`: what `--trace-file` recorded.

mod list;
mod replay;

use clap::{Args, Subcommand};

use crate::cli::context::Context;
use crate::cli::exit::Exit;
use crate::cli::output::Progress;
use crate::model::bundle::Status;
use crate::model::error::{ErrorBody, ErrorData, ErrorSymbol};
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
    /// Only this command, by its long name: `definition`, `references`
    #[arg(long, value_name = "NAME")]
    pub(crate) cmd: Option<String>,
    /// Only operations whose selector holds this text
    #[arg(long, value_name = "TEXT")]
    pub(crate) selector: Option<String>,
    /// Only operations that ended with this exit code
    #[arg(long, value_name = "CODE")]
    pub(crate) exit_code: Option<u8>,
    /// Only operations with this status: `ok`, `partial`, `error`
    #[arg(long, value_name = "STATUS")]
    pub(crate) status: Option<String>,
}

impl Filter {
    /// Whether an operation is meant.
    fn takes(&self, operation: &Operation) -> bool {
        let request = operation.request.as_ref();
        let bundle = operation.bundle.as_ref();
        let selector = || request.and_then(|request| request.selector.as_ref()).map(ToString::to_string);
        self.op.is_none_or(|op| op == operation.op)
            && self.cmd.as_ref().is_none_or(|cmd| request.is_some_and(|request| request.cmd.as_str() == cmd))
            && self
                .selector
                .as_ref()
                .is_none_or(|text| selector().is_some_and(|all| all.contains(text.as_str())))
            && self.exit_code.is_none_or(|code| bundle.is_some_and(|bundle| bundle.meta.exit_code == code))
            && self
                .status
                .as_ref()
                .is_none_or(|status| bundle.is_some_and(|bundle| name(bundle.status) == status))
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
    if let Some(line) = reader.truncated() {
        context.printer.complain(&format!(
            "{file} breaks off at line {line}, in the middle of an operation: its recorder was stopped; what came before is whole"
        ));
    }
}

/// Tells how much of a trace was read, for a person who waits.
fn tell_progress(progress: &Progress, reader: &Reader, operations: u64) {
    let (read, whole) = reader.progress();
    let percent = read.saturating_mul(100).checked_div(whole).unwrap_or(100);
    progress.step(&format!("{operations} operations, {percent} % of the trace"));
}
