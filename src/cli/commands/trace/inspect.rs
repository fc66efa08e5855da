//! `trace list` and `trace show`.

use clap::Args;

use super::{
    OperationFilter, TraceFileArg, name, no_match, open, show_progress, trace_error, warn_if_truncated,
};
use crate::cli::context::CliContext;
use crate::cli::exit::ProgramExit;
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::model::trace::{Event, EventBody, OperationSummary, RecordedBundle};
use crate::tape::MessageSender;
use crate::text::plural;

use crate::trace::operation::TracedOperation;

/// How many characters of a question, an answer or a message are shown.
const SHOWN_CHARS: usize = 160;

/// The kinds of events, in the order in which an operation has them.
const KINDS: [&str; 15] = [
    "header",
    "workspace",
    "blob",
    "request",
    "file",
    "index",
    "history",
    "contents",
    "guard",
    "transaction",
    "frame",
    "fault",
    "bundle",
    "step",
    "end",
];

/// Arguments of `trace list`.
#[derive(Debug, Clone, Args)]
pub(crate) struct TraceListArgs {
    #[command(flatten)]
    pub(super) trace: TraceFileArg,
    #[command(flatten)]
    filter: OperationFilter,
}

/// Arguments of `trace show`.
#[derive(Debug, Clone, Args)]
pub(crate) struct TraceShowArgs {
    #[command(flatten)]
    pub(super) trace: TraceFileArg,
    #[command(flatten)]
    filter: OperationFilter,
    /// Only events of this kind
    #[arg(long, value_name = "KIND", value_parser = KINDS)]
    kind: Option<String>,
}

/// Runs `trace list`: with `--json`, one line of JSON per operation. An empty list is not an error, but is noted on standard
/// error.
pub(super) fn list(args: &TraceListArgs, context: &mut CliContext) -> Result<ProgramExit, ErrorBody> {
    let progress = context.printer.streaming_progress();
    let file = args.trace.get(context)?;
    let mut reader = open(context, &file)?;
    let (mut count, mut listed) = (0, 0_u64);
    while let Some(operation) = reader.next_operation().map_err(|error| trace_error(&file, &error))? {
        count += 1;
        show_progress(&progress, &reader, count);
        if !args.filter.matches(&operation) {
            continue;
        }
        if is_limit_reached(context, &file, listed) {
            return Ok(ProgramExit::Ok);
        }
        listed += 1;
        let summary = summary(&operation);
        let exit = if context.json() {
            context.printer.json_payload(&summary)
        } else {
            context.printer.payload(&text(&summary))
        };
        if !matches!(exit, ProgramExit::Ok) {
            return Ok(exit);
        }
    }
    progress.clear();
    warn_if_truncated(context, &file, &reader);
    if listed == 0 {
        let operations = plural(count, "operation");
        context.printer.complain(&format!("{file}: none of its {operations} matches the filter"));
    }
    Ok(ProgramExit::Ok)
}

/// Whether `--limit` operations are printed already; if so, notes on standard error that there are more.
fn is_limit_reached(context: &CliContext, file: &str, listed: u64) -> bool {
    let Some(limit) = context.global.limit.filter(|limit| listed >= u64::from(*limit)) else { return false };
    let operations = plural(limit, "operation");
    context.printer.complain(&format!("{file}: more than {operations}; raise --limit to see the rest"));
    true
}

fn summary(operation: &TracedOperation) -> OperationSummary {
    let request = operation.request.as_ref();
    let bundle = operation.bundle.as_ref();
    OperationSummary {
        op: operation.op,
        cmd: match &operation.step {
            Some(_) => Some("step".to_owned()),
            None => request.map(|request| request.cmd.as_str().to_owned()),
        },
        selector: request.and_then(|request| request.selector.as_ref()).map(ToString::to_string),
        status: bundle.and_then(RecordedBundle::status),
        exit_code: bundle.and_then(RecordedBundle::exit_code),
        bundle_id: bundle.and_then(RecordedBundle::bundle_id),
        frames: operation.frames.len() as u64,
        events: operation.events,
        bytes: operation.bytes,
    }
}

fn text(summary: &OperationSummary) -> String {
    let id = summary.bundle_id.map_or_else(String::new, |id| id.to_hex()[..12].to_owned());
    format!(
        "{:>6}  {:<15} {:<8} {:>3}  {id}  {}, {}, {}  {}\n",
        summary.op,
        summary.cmd.as_deref().unwrap_or("-"),
        summary.status.map_or("-", name),
        summary.exit_code.unwrap_or_default(),
        plural(summary.frames, "frame"),
        plural(summary.events, "event"),
        plural(summary.bytes, "byte"),
        summary.selector.as_deref().unwrap_or_default(),
    )
}

/// Runs `trace show`: with `--json`, prints the events as recorded.
pub(super) fn show(args: &TraceShowArgs, context: &mut CliContext) -> Result<ProgramExit, ErrorBody> {
    let progress = context.printer.streaming_progress();
    let file = args.trace.get(context)?;
    let mut reader = open(context, &file)?;
    reader.keep_events();
    let (mut count, mut any, mut listed) = (0, false, 0);
    while let Some(operation) = reader.next_operation().map_err(|error| trace_error(&file, &error))? {
        count += 1;
        show_progress(&progress, &reader, count);
        let is_match = args.filter.matches(&operation);
        if is_match && is_limit_reached(context, &file, listed) {
            return Ok(ProgramExit::Ok);
        }
        listed += u64::from(is_match);
        for (event, line) in reader.take_events().into_iter().filter(|_| is_match) {
            if args.kind.as_ref().is_some_and(|kind| kind != kind_of(&event.body)) {
                continue;
            }
            any = true;
            let text = if context.json() { format!("{line}\n") } else { event_text(&event) };
            let exit = context.printer.payload(&text);
            if !matches!(exit, ProgramExit::Ok) {
                return Ok(exit);
            }
        }
        if args.filter.op == Some(count) {
            break;
        }
    }
    progress.clear();
    warn_if_truncated(context, &file, &reader);
    if any {
        return Ok(ProgramExit::Ok);
    }
    Err(match &args.kind {
        Some(kind) if listed > 0 => {
            let what = if args.filter.op.is_some() { "that operation has" } else { "those operations have" };
            ErrorBody::new(ErrorSymbol::NotFound, format!("{what} no {kind} event in {file}"))
                .hint("omit --kind to see all events")
        }
        _ => no_match(&file, &args.filter, count),
    })
}

const fn kind_of(body: &EventBody) -> &'static str {
    match body {
        EventBody::Header { .. } => "header",
        EventBody::Workspace(_) => "workspace",
        EventBody::Blob { .. } => "blob",
        EventBody::Request { .. } => "request",
        EventBody::File(_) => "file",
        EventBody::Index(_) => "index",
        EventBody::History(_) => "history",
        EventBody::Contents(_) => "contents",
        EventBody::Guard(_) => "guard",
        EventBody::Transaction(_) => "transaction",
        EventBody::Analyzer(_) => "analyzer",
        EventBody::Frame { .. } => "frame",
        EventBody::Fault { .. } => "fault",
        EventBody::Bundle { .. } => "bundle",
        EventBody::Step(_) => "step",
        EventBody::End { .. } => "end",
    }
}

fn event_text(event: &Event) -> String {
    let what = match &event.body {
        EventBody::Header { version, lanser, argv, .. } => {
            format!("format {version}, lanser {lanser}: {}", argv.join(" "))
        }
        EventBody::Workspace(workspace) => {
            format!("{}, {}", plural(workspace.files.len(), "file"), workspace.digest)
        }
        EventBody::Blob { digest, text, hex } => {
            let bytes =
                text.as_ref().map_or_else(|| hex.as_ref().map_or(0, |hex| hex.len() / 2), String::len);
            format!("{digest}, {}", plural(bytes, "byte"))
        }
        EventBody::Request { request, .. } => {
            let selector = request.selector.as_ref().map(ToString::to_string).unwrap_or_default();
            format!("{} {selector}", request.cmd.as_str())
        }
        EventBody::File(call)
        | EventBody::Index(call)
        | EventBody::History(call)
        | EventBody::Contents(call)
        | EventBody::Guard(call)
        | EventBody::Transaction(call)
        | EventBody::Analyzer(call) => {
            format!("{} → {}", truncate(&call.question.to_string()), truncate(&call.answer.to_string()))
        }
        EventBody::Frame { from, message } => {
            let arrow = if *from == MessageSender::Client { "→ server" } else { "← server" };
            format!("{arrow} {}", truncate(&message.to_string()))
        }
        EventBody::Fault { error, .. } => format!("{}: {}", error.symbol.as_str(), error.message),
        EventBody::Step(step) => {
            let r = step.reward.r.map_or_else(|| "none".to_owned(), |r| r.get().to_string());
            format!("to the bundle of operation {}: {} {r}", step.bundle, step.reward.version.as_str())
        }
        EventBody::Bundle { bundle } => {
            let id = bundle.bundle_id().map_or_else(String::new, |id| id.to_string());
            let format = match bundle.other_version() {
                Some(version) => format!(", bundle format {version}"),
                None => String::new(),
            };
            format!("{} {id}{format}", bundle.status().map_or("-", name))
        }
        EventBody::End { events, .. } => plural(*events, "event"),
    };
    format!("{}.{:<4} {:<11} {what}\n", event.op, event.seq, kind_of(&event.body))
}

fn truncate(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
