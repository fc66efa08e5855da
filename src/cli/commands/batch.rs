//! `batch`: many requests read from one stream.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use clap::Args;
use tokio::sync::mpsc;

use super::score;
use super::shard::Shard;
use crate::cli::context::{CliContext, runtime, stopped};
use crate::cli::exit::ProgramExit;
use crate::cli::output::{Printer, TerminalProgress};
use crate::cli::output_file;
use crate::cli::rewards::{self, StepRewards};
use crate::cli::settings::CliSettings;
use crate::cli::signals::interrupted;
use crate::engine::{self, AbsolutePaths, Engine, Progress, ScoreLimits, StateSource};
use crate::model::analyzer::AnalyzerKind;
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::model::request::{Command, Options, Request, Scope};
use crate::model::reward::Preset;
use crate::reward::{RewardFormula, default_weights};
use crate::serve::batch::{self, BatchAnswer, BatchEnd, BatchInput, BatchOptions, LineDefaults};
use crate::serve::watchdog::Watchdog;
use crate::text::{ColumnUnit, plural};

use crate::workspace::files::canonical;

/// How many bundles may wait to be written.
const OUTPUT_QUEUE_LIMIT: usize = 64;

/// After an interruption, how long to wait until the remaining bundles are written.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// Arguments of `batch`.
#[derive(Debug, Clone, Args)]
#[command(after_long_help = "\
A line is {\"id\", \"timeout\", \"cmd\", \"selector\", \"newName\", \"options\"} with the name of a command: \
a verb, or its long name as in a bundle's `request`. The selector is a string or its JSON form, with paths relative to the workspace. `id` (a string or an integer) is \
returned as `meta.volatile.id`, the line number as `meta.volatile.line`. `timeout` is in seconds from the start of the request. \
{\"cmd\": \"score\", \"base\", \"head\"} is answered with the episode of `lanser score`; a head is {\"diff\": TEXT}, \
{\"files\": {PATH: TEXT or null}} or {\"state\": NAME}. {\"cancel\": id} cancels earlier requests with that id. `lanser schema export --only batch` prints the schema.

The output is always JSON Lines. An invalid line is answered with an error bundle and does not stop the batch. Requests that \
write run alone, in the order of the lines. --index-io, --scope, --limit and the configuration are the defaults for options \
that a line does not set. With --prev last, each bundle is a step from the bundle of the line before, and bundles are printed \
in the order of the lines.

Exit codes: 0 every line was answered, even if with an error; 71 the input or output failed; 73 interrupted.

Example:
  echo '{\"cmd\":\"definition\",\"selector\":\"py://flask#Flask.route\"}' | lanser batch")]
pub(crate) struct BatchArgs {
    /// File with the requests, one per line; `-` for standard input
    #[arg(long = "in", value_name = "FILE", default_value = "-")]
    pub(crate) input: String,

    /// File for the bundles, one per line; `-` for standard output
    #[arg(long, value_name = "FILE", default_value = "-")]
    pub(crate) out: String,

    /// Print the bundles in the order of the requests
    #[arg(long)]
    pub(crate) ordered: bool,

    /// Number of requests to answer concurrently
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) concurrency: u16,

    /// Answer only the lines of part I of N, counted from 0
    ///
    /// The part depends on the content of the line alone, so that N jobs that read the same file answer each line once. Requests
    /// that write are refused.
    #[arg(long, value_name = "I/N")]
    pub(crate) shard: Option<Shard>,

    /// Leave out `meta.volatile`, except for the `id`
    ///
    /// Equal requests about equal inputs then give equal lines, which `sort -u` merges.
    #[arg(long)]
    pub(crate) no_volatile: bool,

    /// Number of servers that score heads concurrently [default: one per processor, as far as memory allows]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) workers: Option<u16>,

    /// Memory in MiB for the servers that score heads [default: half of what is available]
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(1..=1 << 24))]
    pub(crate) memory: Option<u64>,
}

/// Answers the requests.
pub(crate) fn run(args: &BatchArgs, context: &mut CliContext) -> ProgramExit {
    let opened = context.settings().and_then(|settings| context.record(settings)).and_then(|settings| {
        let (stream, steps) = (input(args, context)?, StepRewards::new(context, &settings)?);
        if args.shard.is_some() && steps.is_run() {
            let message = "--prev last needs all lines, and --shard leaves some out";
            return Err(ErrorBody::new(ErrorSymbol::Usage, message)
                .hint("compute the rewards afterwards with `lanser reward --run`"));
        }
        let stream = match args.shard {
            Some(shard) => shard.of(stream),
            None => stream,
        };
        Ok((settings, stream, output(args, context)?, steps))
    });
    let (settings, stream, out, steps) = match opened {
        Ok(opened) => opened,
        Err(error) => return context.fail(error),
    };
    let defaults = match Defaults::new(args, context, &settings) {
        Ok(defaults) => Box::new(defaults),
        Err(error) => return context.fail(error),
    };
    let runtime = match runtime() {
        Ok(runtime) => runtime,
        Err(error) => return context.fail(error),
    };
    let progress = match args.out == "-" {
        true => context.printer.streaming_progress(),
        false => context.printer.progress(),
    };
    let (answers, to_write) = mpsc::channel(OUTPUT_QUEUE_LIMIT);
    let (printer, ordered) = (context.printer.clone(), args.ordered || steps.is_run());
    let absolute = settings.absolute.then(|| AbsolutePaths::of(&context.engine_settings(&settings)));
    let no_volatile = args.no_volatile;
    let writer = BundleWriter { printer, out, progress: progress.clone(), steps, absolute, no_volatile };
    let writer = std::thread::spawn(move || writer.write(to_write));
    let engine_settings =
        engine::Settings { progress: Arc::new(MessagesOnly(progress)), ..context.engine_settings(&settings) };
    let scoring = scoring_limits(args);
    let source = BatchInput { stream, defaults };
    let terms = BatchOptions { concurrency: args.concurrency.into(), ordered, scoring };
    let watchdog = Watchdog::default();
    let (printer, timeout) = (context.printer.clone(), engine_settings.timeout);
    watchdog.exit_on_stall(timeout, interrupted, move |why| {
        // Bundles that are not written yet are lost.
        let error = stopped(why, timeout);
        printer.complain(&format!("error: {}: {}", error.symbol.as_str(), error.message));
        error.symbol.code()
    });
    let ended = runtime.block_on(async {
        watchdog.start_heartbeat();
        let engine = Engine::for_many(engine_settings);
        let ended = batch::run(&engine, terms, source, answers, interrupted()).await;
        engine.close().await;
        ended
    });
    watchdog.disarm();
    // A pending read of standard input or scan of the workspace must not delay the exit.
    runtime.shutdown_background();
    exit(ended, writer, context)
}

/// The exit status, once everything is written.
fn exit(
    ended: io::Result<BatchEnd>,
    writer: JoinHandle<io::Result<()>>,
    context: &CliContext,
) -> ProgramExit {
    let cannot = |what: &str, error: &io::Error| {
        context.printer.complain(&format!("error: cannot {what}: {error}"));
        ProgramExit::Failed(ErrorSymbol::FsPermissions)
    };
    let ended = match ended {
        // The reader of the output may have stopped reading, which would block the writer forever.
        Ok(BatchEnd::Interrupted) => {
            let began = Instant::now();
            while !writer.is_finished() && began.elapsed() < FLUSH_TIMEOUT {
                std::thread::sleep(Duration::from_millis(5));
            }
            return ProgramExit::Failed(ErrorSymbol::RequestCancelled);
        }
        ended => ended,
    };
    match (ended, writer.join()) {
        (_, Ok(Err(error))) if error.kind() == io::ErrorKind::BrokenPipe => ProgramExit::ClosedPipe,
        (_, Ok(Err(error))) => cannot("write the answers", &error),
        (_, Err(_)) => cannot("write the answers", &io::Error::other("internal error")),
        (Ok(BatchEnd::InputFailed(error)) | Err(error), _) => cannot("read the requests", &error),
        (Ok(_), Ok(Ok(()))) => ProgramExit::Ok,
    }
}

fn input(args: &BatchArgs, context: &CliContext) -> Result<Box<dyn Read + Send>, ErrorBody> {
    if args.input == "-" {
        return Ok(Box::new(io::stdin()));
    }
    let path = context.env.absolute(&args.input);
    let file = File::open(path.as_path()).map_err(|error| {
        ErrorBody::new(ErrorSymbol::NotFound, format!("cannot read {path}: {error}"))
            .hint("pass a file with requests to --in, or `-` for standard input")
    })?;
    Ok(Box::new(file))
}

fn output(args: &BatchArgs, context: &CliContext) -> Result<Box<dyn Write + Send>, ErrorBody> {
    if args.out == "-" {
        return Ok(Box::new(BufWriter::new(io::stdout())));
    }
    let path = context.env.absolute(&args.out);
    if args.input != "-" && canonical(&path) == canonical(&context.env.absolute(&args.input)) {
        let message = format!("--in and --out are the same file: {path}");
        return Err(ErrorBody::new(ErrorSymbol::Usage, message).hint("pass another file to --out"));
    }
    let file = output_file::create(&path).map_err(|error| {
        if error.kind() == io::ErrorKind::NotFound {
            let message = format!("cannot write {path}: no such folder: {}", path.parent());
            return ErrorBody::new(ErrorSymbol::NotFound, message).hint("create the folder first");
        }
        ErrorBody::new(ErrorSymbol::FsPermissions, format!("cannot write {path}: {error}"))
            .hint("pass a writable file to --out")
    })?;
    Ok(Box::new(BufWriter::new(file)))
}

/// What the servers that score heads may use: by default half of the memory that is available.
fn scoring_limits(args: &BatchArgs) -> ScoreLimits {
    let memory = args.memory.map(|mebibytes| mebibytes << 20);
    let memory = memory.or_else(|| available_memory().map(|bytes| bytes / 2)).unwrap_or_default();
    ScoreLimits { workers: args.workers.map_or_else(engine::processors, usize::from), memory }
}

/// The memory that programs can use without swapping, in bytes, if the operating system reports it.
fn available_memory() -> Option<u64> {
    let report = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = report.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

/// What the command line and the configuration set for lines that do not.
struct Defaults {
    context: CliContext,
    settings: CliSettings,
    scoring: RewardFormula,
    /// Whether the lines are those of a shard.
    is_part: bool,
}

impl Defaults {
    fn new(args: &BatchArgs, context: &CliContext, settings: &CliSettings) -> Result<Self, ErrorBody> {
        let scoring = rewards::terms(context, Preset::Guarded)?;
        let is_part = args.shard.is_some();
        Ok(Self { context: context.clone(), settings: settings.clone(), scoring, is_part })
    }
}

impl LineDefaults for Defaults {
    fn options(&self, request: &Request) -> Result<Options, ErrorBody> {
        if self.is_part && request.writes() {
            let message = "a request that writes cannot be part of a shard";
            return Err(ErrorBody::new(ErrorSymbol::Usage, message)
                .hint("requests that write run in the order of the lines: run them without --shard"));
        }
        let settings = &self.settings;
        let mut options = request.options.clone();
        if options.index_io == ColumnUnit::default() {
            options.index_io = settings.index_io;
        }
        if options.scope == Scope::default() {
            options.scope = settings.scope;
        }
        options.limit = options.limit.or(self.context.global.limit);
        if options.with.is_empty() && matches!(request.cmd, Command::Diagnostics | Command::Check) {
            options.with.clone_from(&settings.with);
        }
        if request.cmd.takes_second_opinion() && options.module.is_none() {
            options.agree = options.agree.or(settings.agree);
        }
        if request.cmd.edits() || request.cmd == Command::Undo {
            options.guards = settings.policies.apply_to(&options.guards, &settings.root)?;
        }
        Ok(options)
    }

    fn state(&self, name: &str) -> Result<StateSource, ErrorBody> {
        score::source(name, &self.context, &self.settings)
    }

    fn formula(&self, preset: Option<Preset>) -> RewardFormula {
        match preset {
            Some(preset) if preset != self.scoring.preset => {
                RewardFormula { preset, weights: default_weights(preset) }
            }
            _ => self.scoring,
        }
    }

    fn analyzers(&self, mut named: Vec<AnalyzerKind>) -> Vec<AnalyzerKind> {
        if named.is_empty() {
            return self.settings.with.clone();
        }
        named.sort();
        named.dedup();
        named
    }
}

/// Writes the bundles.
struct BundleWriter {
    printer: Printer,
    out: Box<dyn Write + Send>,
    progress: Arc<TerminalProgress>,
    steps: StepRewards,
    absolute: Option<AbsolutePaths>,
    no_volatile: bool,
}

impl BundleWriter {
    /// Writes until the channel closes. Flushes whenever no further bundle is waiting, so that no reader waits for one.
    fn write(mut self, mut answers: mpsc::Receiver<BatchAnswer>) -> io::Result<()> {
        let mut count = 0_u64;
        while let Some(mut answer) = answers.blocking_recv() {
            if let BatchAnswer::Bundle(bundle) = &mut answer {
                self.steps.reward(bundle)?;
            }
            if self.no_volatile {
                answer.remove_volatile();
            }
            let line = match &mut answer {
                BatchAnswer::Bundle(bundle) => {
                    if let Some(paths) = &self.absolute {
                        paths.add_to(bundle);
                    }
                    self.printer.line(&**bundle)?
                }
                BatchAnswer::Episode(scored) => self.printer.line(&**scored)?,
            };
            self.out.write_all(&line)?;
            if answers.is_empty() {
                self.out.flush()?;
            }
            count += 1;
            self.progress.step(&format!("{} answered", plural(count, "request")));
        }
        self.progress.clear();
        self.out.flush()
    }
}

/// Prints messages, but not the steps of single requests.
struct MessagesOnly(Arc<TerminalProgress>);

impl Progress for MessagesOnly {
    fn step(&self, _text: &str) {}

    fn notify(&self, text: &str) {
        self.0.print_message(text);
    }

    fn done(&self) {}
}
