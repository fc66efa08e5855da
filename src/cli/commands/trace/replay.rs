//! `trace replay`: the bundles of a trace made again, and compared.

use std::sync::Arc;
use std::time::Instant;

use clap::Args;
use serde::Serialize;

use super::{Filter, open, tell_progress, tell_truncation, told};
use crate::cli::context::{Context, runtime};
use crate::cli::exit::Exit;
use crate::model::error::{ErrorBody, ErrorData, ErrorSymbol};
use crate::orchestrator::traced::{Grounds, Replayed, replay as replayed};
use crate::trace::compare::{difference, nearest_frame};
use crate::trace::operation::Operation;
use crate::trace::reader::Store;
use crate::workspace::snapshot::{Snapshot, Trust};

/// Arguments of `trace replay`.
#[derive(Debug, Clone, Args)]
pub(crate) struct ReplayArgs {
    /// The trace
    file: String,
    #[command(flatten)]
    filter: Filter,
    /// Compare each bundle, byte for byte, with the recorded one; print a summary instead of the bundles
    #[arg(long)]
    verify: bool,
    /// Also check that this folder holds the files on which was answered
    #[arg(long, value_name = "DIR")]
    against: Option<String>,
}

/// What `trace replay --verify` says.
#[derive(Debug, Serialize)]
struct Verified {
    operations: u64,
    verified: u64,
    truncated: bool,
}

/// Runs `trace replay`. Without `--verify` each bundle is a line of JSON.
pub(super) fn replay(args: &ReplayArgs, context: &mut Context) -> Result<Exit, ErrorBody> {
    let progress = context.printer.progress();
    let mut reader = open(context, &args.file)?;
    let (runtime, began) = (runtime()?, Instant::now());
    let against = args.against.as_ref().map(|folder| {
        Snapshot::take(
            &crate::workspace::files::canonical(&context.env.cwd.join(folder)),
            None,
            Trust::Content,
            2,
        )
    });
    let (store, mut grounds) = (reader.store(), Grounds::default());
    let (mut count, mut done) = (0, 0);
    while let Some(operation) = reader.next_operation().map_err(|error| told(&args.file, &error))? {
        count += 1;
        tell_progress(&progress, &reader, count);
        if !args.filter.takes(&operation) {
            continue;
        }
        done += 1;
        if let Some(live) = &against {
            compare_files(&operation, &store, live, args.against.as_deref().unwrap_or_default())?;
        }
        let recorded = Recorded::of(&operation);
        let made = runtime.block_on(replayed(operation, &store, &mut grounds));
        recorded.check(&made, args.verify)?;
        if !args.verify {
            let exit = context.printer.json_line(&made.bundle);
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
    if done == 0 {
        let message = format!("{} has no such operation", args.file);
        return Err(ErrorBody::new(ErrorSymbol::NotFound, message).hint(format!("it has {count} in all")));
    }
    if !args.verify {
        return Ok(Exit::Ok);
    }
    let verified = Verified { operations: count, verified: done, truncated: reader.truncated().is_some() };
    Ok(if context.json() {
        context.printer.json_payload(&verified)
    } else {
        let word = if done == 1 { "operation" } else { "operations" };
        let rate = f64::from(u32::try_from(done).unwrap_or(u32::MAX)) / began.elapsed().as_secs_f64();
        let text = format!("{done} {word} replayed, every bundle as recorded; {rate:.0} a second\n");
        context.printer.payload(&text)
    })
}

/// What a replay is compared with.
struct Recorded {
    op: u64,
    bundle: Option<serde_json::Value>,
    /// The number of the bundle's event.
    event: u64,
    frames: Vec<(u64, crate::tape::Side, serde_json::Value)>,
}

impl Recorded {
    fn of(operation: &Operation) -> Self {
        Self {
            op: operation.op,
            bundle: operation.bundle.as_ref().and_then(|bundle| serde_json::to_value(bundle).ok()),
            event: operation.events.saturating_sub(1),
            frames: operation.frames.clone(),
        }
    }

    /// Whether the replay asked only what was recorded and, if that is wanted, came to the same bundle.
    fn check(&self, made: &Replayed, verify: bool) -> Result<(), ErrorBody> {
        if let Some(lost) = &made.lost {
            let near = nearest_frame(&self.frames, &lost.door, &lost.question);
            let (event, field) = near.map_or((None, None), |(event, field)| (Some(event), Some(field)));
            let place = match (&event, &field) {
                (Some(event), Some(field)) => format!("; event {event} has another {field}"),
                _ => String::new(),
            };
            return Err(mismatch(
                self.op,
                event,
                field,
                &format!("it asks {} {}, which was not recorded{place}", lost.door, cut(&lost.question)),
            ));
        }
        if !verify {
            return Ok(());
        }
        let made = serde_json::to_value(&made.bundle).ok();
        let (Some(recorded), Some(made)) = (&self.bundle, &made) else {
            return Err(mismatch(self.op, None, None, "it has no bundle"));
        };
        match difference(recorded, made) {
            None => Ok(()),
            Some(field) => {
                let what = format!("event {}: the bundle has another {field}", self.event);
                Err(mismatch(self.op, Some(self.event), Some(field), &what))
            }
        }
    }
}

fn mismatch(op: u64, event: Option<u64>, field: Option<String>, what: &str) -> ErrorBody {
    ErrorBody::new(ErrorSymbol::ReplayMismatch, format!("operation {op}: {what}"))
        .hint(format!("`lanser trace show FILE --op {op}` shows what was recorded"))
        .data(ErrorData::Mismatch { op, event, field })
}

fn cut(text: &str) -> String {
    text.chars().take(200).collect()
}

/// Whether a folder holds the files on which an operation was answered.
fn compare_files(
    operation: &Operation,
    store: &Arc<Store>,
    live: &Snapshot,
    folder: &str,
) -> Result<(), ErrorBody> {
    let Some(recorded) = operation.workspace.and_then(|id| store.workspace(&id)) else { return Ok(()) };
    let mut paths: Vec<_> = recorded.files.keys().chain(live.files().keys()).collect();
    paths.sort();
    let differs = paths.into_iter().find(|path| recorded.files.get(*path) != live.files().get(*path));
    let Some(path) = differs else { return Ok(()) };
    let message = match (recorded.files.contains_key(path), live.files().contains_key(path)) {
        (true, true) => format!("{path} has another content in {folder}"),
        (true, false) => format!("{path} is not in {folder}"),
        _ => format!("{path} is in {folder} and was not recorded"),
    };
    Err(mismatch(operation.op, None, Some(format!("$.files[\"{path}\"]")), &message))
}
