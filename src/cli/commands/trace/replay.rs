//! `trace replay`: the bundles of a trace made again, and compared.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use clap::Args;
use serde::Serialize;
use tokio::runtime::Runtime;

use super::{Filter, nothing, open, tell_progress, tell_truncation, told};
use crate::cli::context::{Context, runtime};
use crate::cli::exit::Exit;
use crate::cli::settings::Settings;
use crate::digest::Digest;
use crate::model::error::{ErrorBody, ErrorData, ErrorSymbol};
use crate::orchestrator;
use crate::orchestrator::traced::{Grounds, Live, Replayed, replay as replayed};
use crate::trace::compare::{difference, nearest_frame};
use crate::trace::operation::Operation;
use crate::trace::reader::Store;
use crate::workspace::snapshot::Trust;

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
    /// Also check that this folder is the workspace on which was answered: Python files, configuration, Python environment
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
    let mut against = args.against.as_deref().map(Against::new);
    let (store, mut grounds) = (reader.store(), Grounds::default());
    let (mut count, mut done) = (0, 0);
    while let Some(operation) = reader.next_operation().map_err(|error| told(&args.file, &error))? {
        count += 1;
        tell_progress(&progress, &reader, count);
        if !args.filter.takes(&operation) {
            continue;
        }
        done += 1;
        if let Some(against) = &mut against {
            against.check(&operation, &store, context, &runtime)?;
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
    let truncated = reader.truncated().is_some();
    // What breaks off is no proof, be what came before as it may; one operation is whole or not.
    let broken_off = truncated && args.filter.op.is_none();
    let exit = if args.verify && broken_off { Exit::Failed(ErrorSymbol::ReplayMismatch) } else { Exit::Ok };
    if done == 0 && !(truncated && count == 0) {
        return Err(nothing(&args.file, &args.filter, count));
    }
    if !args.verify {
        return Ok(exit);
    }
    let verified = Verified { operations: count, verified: done, truncated };
    let printed = if context.json() {
        context.printer.json_payload(&verified)
    } else {
        let word = if done == 1 { "operation" } else { "operations" };
        let rate = f64::from(u32::try_from(done).unwrap_or(u32::MAX)) / began.elapsed().as_secs_f64();
        let rest = if broken_off { "; the rest is cut off and not verified" } else { "" };
        let text = format!("{done} {word} replayed, every bundle as recorded; {rate:.0} a second{rest}\n");
        context.printer.payload(&text)
    };
    Ok(if matches!(printed, Exit::Ok) { exit } else { printed })
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

/// How many differences are told in words.
const TOLD: usize = 20;

/// A folder that recorded workspaces are held against. How it is looked at depends on the server that was asked.
struct Against<'a> {
    folder: &'a str,
    live: BTreeMap<&'static str, Live>,
    /// The workspaces that are the same.
    same: BTreeSet<Digest>,
}

impl<'a> Against<'a> {
    const fn new(folder: &'a str) -> Self {
        Self { folder, live: BTreeMap::new(), same: BTreeSet::new() }
    }

    /// Whether the folder is what an operation was answered on.
    fn check(
        &mut self,
        operation: &Operation,
        store: &Store,
        context: &Context,
        runtime: &Runtime,
    ) -> Result<(), ErrorBody> {
        let (Some(id), Some(server)) = (operation.workspace, operation.server) else { return Ok(()) };
        if self.same.contains(&id) {
            return Ok(());
        }
        let Some(recorded) = store.workspace(&id) else { return Ok(()) };
        let live = match self.live.entry(server.as_str()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(vacant) => {
                let mut global = context.global.clone();
                global.workspace = Some(self.folder.to_owned());
                if !context.env.cwd.join(self.folder).as_path().is_dir() {
                    let message = format!("--against: {} is no folder", self.folder);
                    return Err(ErrorBody::new(ErrorSymbol::Usage, message)
                        .hint("name the folder that the trace was recorded on, or a copy of it"));
                }
                let settings = Settings::new(&global, &context.from_env, &context.env)?;
                // Nothing is installed, nothing is remembered: what the folder holds is looked at.
                let settings = orchestrator::Settings {
                    server,
                    offline: true,
                    keep: false,
                    trust: Trust::Content,
                    trace: None,
                    ..context.orchestrator_settings(&settings)
                };
                vacant.insert(runtime.block_on(Live::survey(settings))?)
            }
        };
        let differences = live.differences(&recorded);
        let Some(first) = differences.first() else {
            self.same.insert(id);
            return Ok(());
        };
        let mut told: Vec<&str> = differences.iter().take(TOLD).map(|one| one.what.as_str()).collect();
        let more = format!("and {} more", differences.len().saturating_sub(TOLD));
        if differences.len() > TOLD {
            told.push(&more);
        }
        let message = format!("{} is not what was recorded: {}", self.folder, told.join("; "));
        Err(mismatch(operation.op, None, Some(first.field.clone()), &message))
    }
}
