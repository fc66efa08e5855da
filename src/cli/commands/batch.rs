//! `batch`: many requests over one stream.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use clap::Args;
use tokio::sync::mpsc;

use crate::cli::context::{Context, runtime, stopped};
use crate::cli::exit::Exit;
use crate::cli::output::Printer;
use crate::cli::rewards::Steps;
use crate::cli::settings::Settings;
use crate::cli::signals::interrupted;
use crate::model::bundle::Bundle;
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::model::request::{Command, Options, Request, Scope};
use crate::orchestrator::batch::{self, Ended, Source, Terms};
use crate::orchestrator::stall::Heart;
use crate::orchestrator::{self, Orchestrator, Progress};
use crate::text::ColumnUnit;
use crate::workspace::files::canonical;

/// How many answers may wait to be written.
const UNWRITTEN: usize = 64;

/// How long the answers may take to be written that are left when the batch is interrupted.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Arguments of `batch`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
A line is {\"id\", \"timeout\", \"cmd\", \"selector\", \"newName\", \"options\"} with the long name of a command, as in a
bundle's `request`; the selector is a text or its JSON form, with paths relative to the workspace. `id` (a text or a whole
number) comes back as `meta.volatile.id`, the line's number as `meta.volatile.line`; `timeout` is in seconds and counts from
when the request is begun. {\"cancel\": id} gives up what came before under that name. `lanser schema export --only batch`
prints the schema.

With --prev last each answer is a step from the answer to the line before, and answers come in the order of the lines.

Answers are always JSON Lines. A line that cannot be read is answered with an error and does not stop the rest. What
writes runs alone and in its turn. --index-io, --scope, --limit and configuration count where a line says nothing.

Exit codes: 0 when every line was answered, whatever the answers say; 73 when interrupted; 71 when the stream could not be
read or written to its end.

Example:
  echo '{\"id\":1,\"cmd\":\"definition\",\"selector\":\"py://flask#Flask.route\"}' | lanser batch")]
pub(crate) struct BatchArgs {
    /// File of requests, one a line; `-` for standard input, whose end ends the batch
    #[arg(long = "in", value_name = "FILE", default_value = "-")]
    pub(crate) input: String,

    /// File for the bundles, one a line; `-` for standard output
    #[arg(long, value_name = "FILE", default_value = "-")]
    pub(crate) out: String,

    /// Give the answers in the order of the lines instead of each as it is ready
    #[arg(long)]
    pub(crate) ordered: bool,

    /// How many requests are asked at a time
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) concurrency: u16,
}

/// Answers the requests.
pub(crate) fn run(args: &BatchArgs, context: &mut Context) -> Exit {
    let opened = context.settings().and_then(|settings| context.record(settings)).and_then(|settings| {
        let (stream, steps) = (input(args, context)?, Steps::new(context, &settings)?);
        Ok((settings, stream, output(args, context)?, steps))
    });
    let (settings, stream, out, steps) = match opened {
        Ok(opened) => opened,
        Err(error) => return context.fail(error),
    };
    let runtime = match runtime() {
        Ok(runtime) => runtime,
        Err(error) => return context.fail(error),
    };
    let progress = context.printer.progress();
    let (answers, written) = mpsc::channel(UNWRITTEN);
    let (printer, ordered) = (context.printer.clone(), args.ordered || steps.is_run());
    let writer = Writer { printer, out, progress: progress.clone(), steps };
    let writer = std::thread::spawn(move || writer.write(written));
    let of_orchestrator = orchestrator::Settings {
        progress: Arc::new(Events(progress)),
        ..context.orchestrator_settings(&settings)
    };
    let most = context.global.limit;
    let completing = Box::new(move |request: &Request| completed(request, most, &settings));
    let source = Source { stream, completing };
    let terms = Terms { concurrency: args.concurrency.into(), ordered };
    let heart = Heart::default();
    let (own, limit) = (context.printer.clone(), of_orchestrator.timeout);
    heart.guard(limit, interrupted, move |why| {
        // What is answered is written; the rest is lost.
        let error = stopped(why, limit);
        own.complain(&format!("error: {}: {}", error.symbol.as_str(), error.message));
        error.symbol.code()
    });
    let ended = runtime.block_on(async {
        heart.beat();
        let orchestrator = Orchestrator::for_many(of_orchestrator);
        let ended = batch::run(&orchestrator, terms, source, answers, interrupted()).await;
        orchestrator.close().await;
        ended
    });
    heart.end();
    // A read of standard input, or a look at the workspace that nobody waits for, must not hold the end up.
    runtime.shutdown_background();
    exit(ended, writer, context)
}

/// How the program ends.
fn exit(ended: io::Result<Ended>, writer: JoinHandle<io::Result<()>>, context: &Context) -> Exit {
    let cannot = |what: &str, error: &io::Error| {
        context.printer.complain(&format!("error: cannot {what}: {error}"));
        Exit::Failed(ErrorSymbol::FsPermissions)
    };
    let ended = match ended {
        // Whoever reads the answers may have stopped reading.
        Ok(Ended::Interrupted) => {
            let began = Instant::now();
            while !writer.is_finished() && began.elapsed() < LAST_WORDS {
                std::thread::sleep(Duration::from_millis(5));
            }
            return Exit::Failed(ErrorSymbol::RequestCancelled);
        }
        ended => ended,
    };
    match (ended, writer.join()) {
        (_, Ok(Err(error))) if error.kind() == io::ErrorKind::BrokenPipe => Exit::ClosedPipe,
        (_, Ok(Err(error))) => cannot("write the answers", &error),
        (_, Err(_)) => cannot("write the answers", &io::Error::other("a defect of lanser's own")),
        (Ok(Ended::Broken(error)) | Err(error), _) => cannot("read the requests", &error),
        (Ok(_), Ok(Ok(()))) => Exit::Ok,
    }
}

fn input(args: &BatchArgs, context: &Context) -> Result<Box<dyn Read + Send>, ErrorBody> {
    if args.input == "-" {
        return Ok(Box::new(io::stdin()));
    }
    let path = context.env.absolute(&args.input);
    let file = File::open(path.as_path()).map_err(|error| {
        ErrorBody::new(ErrorSymbol::NotFound, format!("cannot read {path}: {error}"))
            .hint("give a file of requests to --in, or `-` for standard input")
    })?;
    Ok(Box::new(file))
}

fn output(args: &BatchArgs, context: &Context) -> Result<Box<dyn Write + Send>, ErrorBody> {
    if args.out == "-" {
        return Ok(Box::new(BufWriter::new(io::stdout())));
    }
    let path = context.env.absolute(&args.out);
    if args.input != "-" && canonical(&path) == canonical(&context.env.absolute(&args.input)) {
        let message = format!("{path} is the file of requests");
        return Err(ErrorBody::new(ErrorSymbol::Usage, message).hint("give another file to --out"));
    }
    let file = File::create(path.as_path()).map_err(|error| {
        if error.kind() == io::ErrorKind::NotFound {
            let message = format!("cannot write {path}: there is no folder {}", path.parent());
            return ErrorBody::new(ErrorSymbol::NotFound, message).hint("make the folder first");
        }
        ErrorBody::new(ErrorSymbol::FsPermissions, format!("cannot write {path}: {error}"))
            .hint("give a file that can be written to --out")
    })?;
    Ok(Box::new(BufWriter::new(file)))
}

/// The options of a request with what the command line and the configuration say of all.
fn completed(request: &Request, limit: Option<u32>, settings: &Settings) -> Result<Options, ErrorBody> {
    let mut options = request.options.clone();
    if options.index_io == ColumnUnit::default() {
        options.index_io = settings.index_io;
    }
    if options.scope == Scope::default() {
        options.scope = settings.scope;
    }
    options.limit = options.limit.or(limit);
    if request.cmd.edits() || request.cmd == Command::Undo {
        options.guards = settings.policies.over(&options.guards, &settings.root)?;
    }
    Ok(options)
}

/// Writes the answers.
struct Writer {
    printer: Printer,
    out: Box<dyn Write + Send>,
    progress: Arc<crate::cli::output::Progress>,
    steps: Steps,
}

impl Writer {
    /// Until there are no more. Whoever waits for an answer has it as soon as no other is there to be written with it.
    fn write(mut self, mut answers: mpsc::Receiver<Bundle>) -> io::Result<()> {
        let mut count = 0_u64;
        while let Some(mut bundle) = answers.blocking_recv() {
            self.steps.reward(&mut bundle);
            self.out.write_all(&self.printer.line(&bundle)?)?;
            if answers.is_empty() {
                self.out.flush()?;
            }
            count += 1;
            self.progress.step(&format!("{count} answered"));
        }
        self.progress.clear();
        self.out.flush()
    }
}

/// Passes on what is worth knowing also later.
struct Events(Arc<crate::cli::output::Progress>);

impl Progress for Events {
    fn step(&self, _text: &str) {}

    fn say(&self, text: &str) {
        self.0.say(text);
    }

    fn done(&self) {}
}
