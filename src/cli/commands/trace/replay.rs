//! `trace replay`: recomputes the bundles of a trace and compares them with the recorded ones.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

use clap::Args;
use serde::Serialize;
use tokio::runtime::Runtime;

use super::steps::{ReplayedStep, Steps};
use super::{OperationFilter, TraceFileArg, no_match, open, show_progress, trace_error, warn_if_truncated};
use crate::cli::context::{CliContext, runtime};
use crate::cli::exit::ProgramExit;
use crate::cli::rewards;
use crate::cli::settings::CliSettings;
use crate::digest::Digest;
use crate::engine;
use crate::engine::traced::{CurrentWorkspace, RecordedInputsCache, ReplayResult, replay as replayed};
use crate::model::BUNDLE_VERSION;
use crate::model::bundle::Bundle;
use crate::model::error::{ErrorBody, ErrorData, ErrorSymbol};
use crate::model::reward::{Preset, ProcessReward};
use crate::model::trace::{RecordedBundle, RecordedStep};
use crate::reward::{RewardFormula, is_fault, recomputed};
use crate::text::plural;
use crate::trace::compare::{difference, nearest_frame, recorded_difference};
use crate::trace::operation::TracedOperation;
use crate::trace::reader::{TraceBlobs, TraceError};
use crate::workspace::snapshot::ChangeDetection;

/// Arguments of `trace replay`.
#[derive(Debug, Clone, Args)]
pub(crate) struct ReplayArgs {
    #[command(flatten)]
    pub(super) trace: TraceFileArg,
    #[command(flatten)]
    filter: OperationFilter,
    /// Compare the bundles with the recorded ones; print only a summary
    #[arg(long)]
    verify: bool,
    /// Also check that this folder equals the recorded workspace
    ///
    /// Compares the Python files, the configuration and the Python environment.
    #[arg(long, value_name = "DIR")]
    against: Option<String>,
}

/// The JSON output of `trace replay --verify`.
#[derive(Debug, Serialize)]
struct VerifySummary {
    operations: u64,
    verified: u64,
    /// Steps whose reward was recomputed.
    steps: u64,
    truncated: bool,
    /// Of the verified operations, those that were recorded in another format of bundles, by its version. Absent when empty.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    other_formats: BTreeMap<String, u64>,
}

/// Runs `trace replay`. Without `--verify`, prints each bundle as a line of JSON.
pub(super) fn replay(args: &ReplayArgs, context: &mut CliContext) -> Result<ProgramExit, ErrorBody> {
    let file = args.trace.get(context)?;
    let printer = &context.printer;
    let progress = if args.verify { printer.progress() } else { printer.streaming_progress() };
    let mut reader = open(context, &file)?;
    let mut run = ReplayRun::new(args, &file, reader.store(), context)?;
    while let Some(operation) = reader.next_operation().map_err(|error| trace_error(&file, &error))? {
        if operation.step.is_none() {
            run.operations += 1;
            show_progress(&progress, &reader, run.operations);
        }
        match run.replay(operation)? {
            ControlFlow::Continue(()) => {}
            ControlFlow::Break(ProgramExit::Ok) => break,
            ControlFlow::Break(exit) => return Ok(exit),
        }
    }
    progress.clear();
    warn_if_truncated(context, &file, &reader);
    run.finish(&file, reader.truncated().is_some())
}

/// What has been replayed of a trace.
struct ReplayRun<'r> {
    args: &'r ReplayArgs,
    context: &'r CliContext,
    runtime: Runtime,
    began: Instant,
    store: Arc<TraceBlobs>,
    inputs: RecordedInputsCache,
    against: Option<WorkspaceComparison<'r>>,
    rewards: Rewards,
    /// The operations that the filter selects and whose steps are to come.
    awaited: BTreeSet<u64>,
    operations: u64,
    verified: u64,
    steps: u64,
    other_formats: BTreeMap<String, u64>,
}

impl<'r> ReplayRun<'r> {
    fn new(
        args: &'r ReplayArgs,
        file: &str,
        store: Arc<TraceBlobs>,
        context: &'r CliContext,
    ) -> Result<Self, ErrorBody> {
        Ok(Self {
            args,
            context,
            runtime: runtime()?,
            began: Instant::now(),
            store,
            inputs: RecordedInputsCache::default(),
            against: args.against.as_deref().map(WorkspaceComparison::new),
            rewards: Rewards::of(args, file, context)?,
            awaited: BTreeSet::new(),
            operations: 0,
            verified: 0,
            steps: 0,
            other_formats: BTreeMap::new(),
        })
    }

    /// Replays an operation or a step. Breaks when there is nothing more to do, or the output is closed.
    fn replay(&mut self, operation: TracedOperation) -> Result<ControlFlow<ProgramExit>, ErrorBody> {
        let (op, selected) = (operation.op, self.args.filter.op);
        let (printed, is_last) = match &operation.step {
            Some(recorded) => (self.step(op, recorded)?, selected == Some(recorded.bundle)),
            None => (self.operation(operation)?, selected == Some(op)),
        };
        Ok(match printed {
            None => ControlFlow::Continue(()),
            Some(ProgramExit::Ok) if !is_last => ControlFlow::Continue(()),
            Some(exit) => ControlFlow::Break(exit),
        })
    }

    /// Verifies or prints the bundle of a step; `None` if it is not selected.
    fn step(&mut self, op: u64, recorded: &RecordedStep) -> Result<Option<ProgramExit>, ErrorBody> {
        let Some(step) = self.rewards.steps.take(op, recorded) else { return Ok(None) };
        if !self.awaited.remove(&recorded.bundle) {
            return Ok(None);
        }
        self.steps += 1;
        if self.args.verify {
            check_step(op, recorded, &step.bundle)?;
            return Ok(Some(ProgramExit::Ok));
        }
        Ok(Some(self.context.printer.json_line(&self.rewards.of_step(step, recorded))))
    }

    /// Verifies or prints the bundle of an operation; `None` if it is not selected, or belongs to a step.
    fn operation(&mut self, operation: TracedOperation) -> Result<Option<ProgramExit>, ErrorBody> {
        let op = operation.op;
        if !self.args.filter.matches(&operation) {
            if let Some(RecordedBundle::Current(bundle)) =
                operation.bundle.filter(|_| self.rewards.steps.needs(op))
            {
                self.rewards.steps.hold(op, *bundle);
            }
            return Ok(None);
        }
        self.verified += 1;
        if let Some(against) = &mut self.against {
            against.check(&operation, &self.store, self.context, &self.runtime)?;
        }
        let recorded = RecordedOperation::of(&operation);
        let made = self.runtime.block_on(replayed(operation, &self.store, &mut self.inputs));
        recorded.check(&made, self.args.verify)?;
        if let Some(version) = recorded.bundle.as_ref().and_then(RecordedBundle::other_version) {
            *self.other_formats.entry(version.to_owned()).or_default() += 1;
        }
        if self.rewards.steps.needs(op) {
            self.rewards.steps.hold(op, made.bundle.clone());
        }
        if self.rewards.steps.is_stepped(op) {
            self.awaited.insert(op);
            return Ok(None);
        }
        Ok(Some(match self.args.verify {
            true => ProgramExit::Ok,
            false => self.context.printer.json_line(&self.rewards.of_bundle(made.bundle)),
        }))
    }

    /// The exit code, and with `--verify` the summary.
    fn finish(self, file: &str, truncated: bool) -> Result<ProgramExit, ErrorBody> {
        if self.verified == 0 && !(truncated && self.operations == 0) {
            return Err(no_match(file, &self.args.filter, self.operations));
        }
        if !self.args.verify {
            return Ok(ProgramExit::Ok);
        }
        // A truncated trace is not verified, even if all intact operations are; --op verifies one intact operation.
        let is_incomplete = truncated && self.args.filter.op.is_none();
        let seconds = self.began.elapsed().as_secs_f64();
        let summary = VerifySummary {
            operations: self.operations,
            verified: self.verified,
            steps: self.steps,
            truncated,
            other_formats: self.other_formats,
        };
        let printer = &self.context.printer;
        let printed = match self.context.json() {
            true => printer.json_payload(&summary),
            false => printer.payload(&summary.text(seconds, is_incomplete)),
        };
        Ok(match is_incomplete {
            true if printed == ProgramExit::Ok => ProgramExit::Failed(ErrorSymbol::ReplayMismatch),
            _ => printed,
        })
    }
}

impl VerifySummary {
    fn text(&self, seconds: f64, is_incomplete: bool) -> String {
        let operations = plural(self.verified, "operation");
        let rate = f64::from(u32::try_from(self.verified).unwrap_or(u32::MAX)) / seconds;
        let rest = if is_incomplete { "; the rest is truncated and not verified" } else { "" };
        let what = match self.steps {
            0 => "every bundle as recorded".to_owned(),
            steps => format!("every bundle and the rewards of {} as recorded", plural(steps, "step")),
        };
        let mut text = format!("{operations} replayed, {what}; {rate:.0} per second{rest}\n");
        for (version, count) in &self.other_formats {
            let recorded = plural(*count, "operation");
            let _ = writeln!(
                text,
                "{recorded} recorded in bundle format {version}; this lanser writes {BUNDLE_VERSION}: the recorded members were compared"
            );
        }
        text
    }
}

/// The rewards of the printed bundles.
struct Rewards {
    steps: Steps,
    /// The formula that the caller asked for in place of the recorded one.
    formula: Option<RewardFormula>,
    /// Whether each bundle is a step from the bundle before.
    is_run: bool,
    last: Option<Bundle>,
}

impl Rewards {
    fn of(args: &ReplayArgs, file: &str, context: &CliContext) -> Result<Self, ErrorBody> {
        let path = context.env.cwd.join(file);
        let unreadable = |error| trace_error(file, &TraceError::Io(error));
        let steps = Steps::of(&path).map_err(unreadable)?;
        let global = &context.global;
        let is_asked = global.reward.is_some() || global.weights.is_some();
        let usage = |message: &str, hint: &str| Err(ErrorBody::new(ErrorSymbol::Usage, message).hint(hint));
        if args.verify && (is_asked || global.prev.is_some()) {
            return usage(
                "--verify compares with the recorded rewards",
                "omit --verify to compute other rewards, or omit --reward, --weights and --prev",
            );
        }
        if global.prev.as_deref().is_some_and(|prev| prev != rewards::LAST) {
            return usage("a replay has no other bundles to start from", "use --prev last, or omit --prev");
        }
        let is_run = global.prev.is_some();
        let formula = (is_asked || is_run).then(|| rewards::terms(context, Preset::default())).transpose()?;
        Ok(Self { steps, formula, is_run, last: None })
    }

    /// A bundle whose recorded reward is that of a step.
    fn of_step(&mut self, mut step: ReplayedStep, recorded: &RecordedStep) -> Bundle {
        if self.is_run {
            return self.of_bundle(step.bundle);
        }
        if let Some(formula) = &self.formula {
            step.reward_by(recorded, formula);
        }
        step.bundle
    }

    /// A bundle whose recorded reward is its own.
    fn of_bundle(&mut self, mut bundle: Bundle) -> Bundle {
        let Some(formula) = &self.formula else { return bundle };
        bundle.process_reward = Some(recomputed(&bundle, self.last.as_ref(), formula));
        if self.is_run && !is_fault(&bundle) {
            self.last = Some(bundle.clone());
        }
        bundle
    }
}

/// Checks that the recomputed reward of a step is the recorded one.
fn check_step(op: u64, recorded: &RecordedStep, bundle: &Bundle) -> Result<(), ErrorBody> {
    let json = |reward: Option<&ProcessReward>| serde_json::to_value(reward).unwrap_or_default();
    let field = difference(&json(Some(&recorded.reward)), &json(bundle.process_reward.as_ref()));
    field.map_or(Ok(()), |field| {
        let what = format!("the step to the bundle of operation {} has another {field}", recorded.bundle);
        Err(mismatch(op, Some(2), Some(field), &what))
    })
}

/// A recorded operation that a replay is compared with.
struct RecordedOperation {
    op: u64,
    bundle: Option<RecordedBundle>,
    /// The number of the bundle's event.
    event: u64,
    frames: Vec<(u64, crate::tape::MessageSender, serde_json::Value)>,
}

impl RecordedOperation {
    fn of(operation: &TracedOperation) -> Self {
        Self {
            op: operation.op,
            bundle: operation.bundle.clone(),
            event: operation.events.saturating_sub(1),
            frames: operation.frames.clone(),
        }
    }

    /// Checks that the replay needed only recorded data and, with `verify`, that its bundle is the recorded one.
    fn check(&self, made: &ReplayResult, verify: bool) -> Result<(), ErrorBody> {
        if let Some(lost) = &made.unrecorded {
            let near = nearest_frame(&self.frames, &lost.kind, &lost.query);
            let (event, field) = near.map_or((None, None), |(event, field)| (Some(event), Some(field)));
            let place = match (&event, &field) {
                (Some(event), Some(field)) => format!("; event {event} has another {field}"),
                _ => String::new(),
            };
            let what = match self.bundle.as_ref().and_then(RecordedBundle::other_version) {
                Some(version) => format!(
                    "it was recorded in bundle format {version}; for {BUNDLE_VERSION}, this lanser reads {} {}, which was not \
                     recorded{place}",
                    lost.kind,
                    truncate(&lost.query)
                ),
                None => {
                    format!("it reads {} {}, which was not recorded{place}", lost.kind, truncate(&lost.query))
                }
            };
            return Err(mismatch(self.op, event, field, &what));
        }
        if !verify {
            return Ok(());
        }
        let replayed = serde_json::to_value(&made.bundle).ok();
        let recorded = self.bundle.as_ref().and_then(|bundle| serde_json::to_value(bundle).ok());
        let (Some(bundle), Some(recorded), Some(replayed)) = (&self.bundle, recorded, replayed) else {
            return Err(mismatch(self.op, None, None, "it has no bundle"));
        };
        let (difference, format) = match bundle.other_version() {
            None => (difference(&recorded, &replayed), String::new()),
            Some(version) => (
                recorded_difference(&recorded, &replayed),
                format!(
                    " (recorded in bundle format {version}; this lanser writes {BUNDLE_VERSION}; only recorded members are compared)"
                ),
            ),
        };
        match difference {
            None => Ok(()),
            Some(field) => {
                let what = format!("event {}: the bundle has another {field}{format}", self.event);
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

fn truncate(text: &str) -> String {
    text.chars().take(200).collect()
}

/// How many differences the error message lists.
const SHOWN_DIFFERENCES: usize = 20;

/// A folder that recorded workspaces are compared with. It is scanned once per server, since servers are configured
/// differently.
struct WorkspaceComparison<'a> {
    folder: &'a str,
    live: BTreeMap<&'static str, CurrentWorkspace>,
    /// The recorded workspaces that equal the folder.
    same: BTreeSet<Digest>,
}

impl<'a> WorkspaceComparison<'a> {
    const fn new(folder: &'a str) -> Self {
        Self { folder, live: BTreeMap::new(), same: BTreeSet::new() }
    }

    /// Checks that the folder equals the workspace of an operation.
    fn check(
        &mut self,
        operation: &TracedOperation,
        store: &TraceBlobs,
        context: &CliContext,
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
                    let message = format!("--against: {} is not a folder", self.folder);
                    return Err(ErrorBody::new(ErrorSymbol::Usage, message)
                        .hint("give the workspace that the trace was recorded in, or a copy of it"));
                }
                let settings = CliSettings::new(&global, &context.from_env, &context.env)?;
                // Compare the actual content of the folder: no installation, no caches.
                let settings = engine::Settings {
                    server,
                    offline: true,
                    keep: false,
                    trust: ChangeDetection::Content,
                    trace: None,
                    ..context.engine_settings(&settings)
                };
                vacant.insert(runtime.block_on(CurrentWorkspace::scan(settings))?)
            }
        };
        let differences = live.differences(&recorded);
        let Some(first) = differences.first() else {
            self.same.insert(id);
            return Ok(());
        };
        let mut shown: Vec<&str> =
            differences.iter().take(SHOWN_DIFFERENCES).map(|one| one.what.as_str()).collect();
        let more = format!("and {} more", differences.len().saturating_sub(SHOWN_DIFFERENCES));
        if differences.len() > SHOWN_DIFFERENCES {
            shown.push(&more);
        }
        let message = format!("{} differs from the recorded workspace: {}", self.folder, shown.join("; "));
        Err(mismatch(operation.op, None, Some(first.field.clone()), &message))
    }
}
