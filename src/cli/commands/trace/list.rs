//! `trace list`, `trace show`.

use clap::Args;

use super::{Filter, name, nothing, open, tell_progress, tell_truncation, told};
use crate::cli::context::Context;
use crate::cli::exit::Exit;
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::model::trace::{Body, Event, Summary};
use crate::tape::Side;
use crate::trace::event::line;
use crate::trace::operation::Operation;

/// How much of a question, an answer or a message is shown in text.
const SHOWN: usize = 160;

/// The kinds of events, in the order in which they stand in an operation.
const KINDS: [&str; 14] = [
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
    "end",
];

/// Arguments of `trace list`.
#[derive(Debug, Clone, Args)]
pub(crate) struct ListArgs {
    /// The trace
    file: String,
    #[command(flatten)]
    filter: Filter,
}

/// Arguments of `trace show`.
#[derive(Debug, Clone, Args)]
pub(crate) struct ShowArgs {
    /// The trace
    file: String,
    #[command(flatten)]
    filter: Filter,
    /// Only events of this kind
    #[arg(long, value_name = "KIND", value_parser = KINDS)]
    kind: Option<String>,
}

/// Runs `trace list`: with `--json`, a line of JSON for each operation. A list of nothing is a list, and said to be one on
/// standard error.
pub(super) fn list(args: &ListArgs, context: &mut Context) -> Result<Exit, ErrorBody> {
    let progress = context.printer.progress();
    let mut reader = open(context, &args.file)?;
    let (mut count, mut listed) = (0, 0_u64);
    while let Some(operation) = reader.next_operation().map_err(|error| told(&args.file, &error))? {
        count += 1;
        tell_progress(&progress, &reader, count);
        if !args.filter.takes(&operation) {
            continue;
        }
        if is_cut(context, &args.file, listed) {
            return Ok(Exit::Ok);
        }
        listed += 1;
        let summary = summary(&operation);
        let exit = if context.json() {
            context.printer.json_payload(&summary)
        } else {
            context.printer.payload(&text(&summary))
        };
        if !matches!(exit, Exit::Ok) {
            return Ok(exit);
        }
    }
    progress.clear();
    tell_truncation(context, &args.file, &reader);
    if listed == 0 {
        context.printer.complain(&format!("{}: none of its {count} operations is meant", args.file));
    }
    Ok(Exit::Ok)
}

/// Whether there are more operations than `--limit` asks for; then standard error says so.
fn is_cut(context: &Context, file: &str, listed: u64) -> bool {
    let Some(limit) = context.global.limit.filter(|limit| listed >= u64::from(*limit)) else { return false };
    context.printer.progress().clear();
    context
        .printer
        .complain(&format!("{file}: there are more than {limit} operations; the limit is that of --limit"));
    true
}

fn summary(operation: &Operation) -> Summary {
    let request = operation.request.as_ref();
    let bundle = operation.bundle.as_ref();
    Summary {
        op: operation.op,
        cmd: request.map(|request| request.cmd.as_str().to_owned()),
        selector: request.and_then(|request| request.selector.as_ref()).map(ToString::to_string),
        status: bundle.map(|bundle| bundle.status),
        exit_code: bundle.map(|bundle| bundle.meta.exit_code),
        bundle_id: bundle.map(|bundle| bundle.bundle_id),
        frames: operation.frames.len() as u64,
        events: operation.events,
        bytes: operation.bytes,
    }
}

fn text(summary: &Summary) -> String {
    let id = summary.bundle_id.map_or_else(String::new, |id| id.to_hex()[..12].to_owned());
    format!(
        "{:>6}  {:<15} {:<8} {:>3}  {id}  {} frames, {} events, {} bytes  {}\n",
        summary.op,
        summary.cmd.as_deref().unwrap_or("-"),
        summary.status.map_or("-", name),
        summary.exit_code.unwrap_or_default(),
        summary.frames,
        summary.events,
        summary.bytes,
        summary.selector.as_deref().unwrap_or_default(),
    )
}

/// Runs `trace show`: with `--json` the events as they are recorded.
pub(super) fn show(args: &ShowArgs, context: &mut Context) -> Result<Exit, ErrorBody> {
    let progress = context.printer.progress();
    let mut reader = open(context, &args.file)?;
    reader.keep_events();
    let (mut count, mut any, mut listed) = (0, false, 0);
    while let Some(operation) = reader.next_operation().map_err(|error| told(&args.file, &error))? {
        count += 1;
        tell_progress(&progress, &reader, count);
        let takes = args.filter.takes(&operation);
        if takes && is_cut(context, &args.file, listed) {
            return Ok(Exit::Ok);
        }
        listed += u64::from(takes);
        for event in reader.take_events().into_iter().filter(|_| takes) {
            if args.kind.as_ref().is_some_and(|kind| kind != kind_of(&event.body)) {
                continue;
            }
            any = true;
            let text = if context.json() { format!("{}\n", line(&event)) } else { shown(&event) };
            let exit = context.printer.payload(&text);
            if !matches!(exit, Exit::Ok) {
                return Ok(exit);
            }
        }
        if args.filter.op == Some(count) {
            break;
        }
    }
    progress.clear();
    tell_truncation(context, &args.file, &reader);
    if any {
        return Ok(Exit::Ok);
    }
    Err(match &args.kind {
        Some(kind) if listed > 0 => {
            let what = if args.filter.op.is_some() { "that operation has" } else { "those operations have" };
            ErrorBody::new(ErrorSymbol::NotFound, format!("{what} no {kind} in {}", args.file))
                .hint("without --kind all parts are shown")
        }
        _ => nothing(&args.file, &args.filter, count),
    })
}

const fn kind_of(body: &Body) -> &'static str {
    match body {
        Body::Header { .. } => "header",
        Body::Workspace(_) => "workspace",
        Body::Blob { .. } => "blob",
        Body::Request { .. } => "request",
        Body::File(_) => "file",
        Body::Index(_) => "index",
        Body::History(_) => "history",
        Body::Contents(_) => "contents",
        Body::Guard(_) => "guard",
        Body::Transaction(_) => "transaction",
        Body::Frame { .. } => "frame",
        Body::Fault { .. } => "fault",
        Body::Bundle { .. } => "bundle",
        Body::End { .. } => "end",
    }
}

fn shown(event: &Event) -> String {
    let what = match &event.body {
        Body::Header { version, lanser, argv, .. } => {
            format!("format {version}, lanser {lanser}: {}", argv.join(" "))
        }
        Body::Workspace(workspace) => format!("{} files, {}", workspace.files.len(), workspace.digest),
        Body::Blob { digest, text, hex } => {
            let bytes =
                text.as_ref().map_or_else(|| hex.as_ref().map_or(0, |hex| hex.len() / 2), String::len);
            format!("{digest}, {bytes} bytes")
        }
        Body::Request { request, .. } => {
            let selector = request.selector.as_ref().map(ToString::to_string).unwrap_or_default();
            format!("{} {selector}", request.cmd.as_str())
        }
        Body::File(asked)
        | Body::Index(asked)
        | Body::History(asked)
        | Body::Contents(asked)
        | Body::Guard(asked)
        | Body::Transaction(asked) => {
            format!("{} → {}", cut(&asked.question.to_string()), cut(&asked.answer.to_string()))
        }
        Body::Frame { from, message } => {
            let arrow = if *from == Side::Client { "→ server" } else { "← server" };
            format!("{arrow} {}", cut(&message.to_string()))
        }
        Body::Fault { error, .. } => format!("{}: {}", error.symbol.as_str(), error.message),
        Body::Bundle { bundle } => format!("{} {}", name(bundle.status), bundle.bundle_id),
        Body::End { events, .. } => format!("{events} events"),
    };
    format!("{}.{:<4} {:<11} {what}\n", event.op, event.seq, kind_of(&event.body))
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
