//! Compares warm answers with cold ones: changes a copy of a folder at random, and after each change sends the same request to an
//! engine that runs all the time and to a new one.
//!
//! `cargo run --release --features tools --example differential -- [--steps N] [--seed S] [--server-command SCRIPT] FOLDER…`
//!
//! With `--batch` nothing is changed: `--steps` read-only requests of every kind go to `lanser batch` at several concurrencies, and
//! every tenth also to a separate engine (`--questions N`: every N-th). One of the batches is recorded, and replayed after
//! the copy was deleted.
//!
//! With `--agree ty`, definitions and references are put to that server, too.
//!
//! Both bundles must have the same `bundleId`. With `--binary`, both sides are whole `lanser` processes, the warm ones using the
//! session of the copy; otherwise both run in this process. The folder itself is not changed; the copy is a git repository, so that
//! whole revisions can be switched. Exit code 1 when a pair differs.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the report is what this program is for")]

mod batch;
mod mutations;
mod sides;
#[path = "../support/mod.rs"]
mod support;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lanser::internal::engine::{Progress, Settings};
use lanser::internal::path::AbsPath;
use lanser::internal::text::ColumnUnit;
use lanser::internal::workspace::snapshot::ChangeDetection;
use lanser::model::request::{Command, Direction, Options, Request, TypeDirection};
use lanser::model::server::ServerKind;
use lanser::selector;
use mutations::{Mutator, Random};
use sides::Sides;

const USAGE: &str = "usage: differential [--steps N] [--questions N] [--seed S] [--keep] [--binary] [--batch] [-v] [--stop] [--agree SERVER] [--server-command SCRIPT] FOLDER…";

struct Args {
    steps: usize,
    /// How many requests are sent after each change, one after the other.
    questions: usize,
    seed: u64,
    /// Whether the warm side uses the memo.
    keep: bool,
    /// Whether both sides are processes.
    binary: bool,
    /// Whether batches are compared.
    batch: bool,
    /// Whether every step is printed.
    verbose: bool,
    /// Whether to stop at the first difference and keep the copy.
    stop: bool,
    /// The other server that definitions and references are put to.
    agree: Option<ServerKind>,
    script: Option<PathBuf>,
    folders: Vec<PathBuf>,
}

/// Ignores progress messages.
struct Silent;

impl Progress for Silent {
    fn step(&self, _: &str) {}
    fn notify(&self, _: &str) {}
    fn done(&self) {}
}

fn main() -> ExitCode {
    match run() {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn args() -> Result<Args, String> {
    let mut args = Args {
        steps: 100,
        questions: 1,
        seed: 1,
        keep: false,
        binary: false,
        batch: false,
        verbose: false,
        stop: false,
        agree: None,
        script: None,
        folders: Vec::new(),
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} needs a value\n{USAGE}"));
        match word.as_str() {
            "--steps" => args.steps = value()?.parse().map_err(|_| USAGE.to_owned())?,
            "--questions" => args.questions = value()?.parse().map_err(|_| USAGE.to_owned())?,
            "--seed" => args.seed = value()?.parse().map_err(|_| USAGE.to_owned())?,
            "--keep" => args.keep = true,
            "--binary" => args.binary = true,
            "--batch" => {
                args.batch = true;
                args.questions = 10;
            }
            "-v" => args.verbose = true,
            "--stop" => args.stop = true,
            "--agree" => args.agree = Some(ServerKind::parse(&value()?).ok_or(USAGE)?),
            "--server-command" => args.script = Some(value()?.into()),
            other if other.starts_with('-') => return Err(USAGE.to_owned()),
            folder => args.folders.push(folder.into()),
        }
    }
    if args.folders.is_empty() { Err(USAGE.to_owned()) } else { Ok(args) }
}

fn run() -> Result<usize, String> {
    let args = args()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let mut different = 0;
    for folder in &args.folders {
        different += runtime.block_on(differences(&args, folder))?;
    }
    Ok(different)
}

async fn differences(args: &Args, folder: &Path) -> Result<usize, String> {
    let scratch = tempfile::tempdir().map_err(|error| error.to_string())?;
    let copy = scratch.path().join("w");
    let mut random = Random(args.seed);
    let mut mutator = Mutator::new(folder, &copy, &mut random)?;
    let settings = settings(args, &copy, scratch.path())?;
    if args.batch {
        let mut requests = Vec::new();
        for _ in 0..args.steps {
            requests.push(question(args, &copy, None, &ALL, &mut random)?);
        }
        return batch::differences(&settings, &requests, args.questions).await;
    }
    let sides = match args.binary {
        true => Sides::processes(settings, args.keep)?,
        false => Sides::here(settings, args.keep),
    };
    let (mut different, mut sources, mut times) = (0, BTreeMap::new(), (Vec::new(), Vec::new()));
    let mut before: Vec<Request> = Vec::new();
    'steps: for step in 0..args.steps {
        let what = mutator.mutate(&mut random)?;
        let mut asked = Vec::new();
        for _ in 0..args.questions {
            // Requests from before the change are repeated.
            let request = match before.len() {
                some if some > 0 && random.below(3) == 0 => before[random.below(some)].clone(),
                _ => question(args, &copy, mutator.last_touched(), &WEIGHTED, &mut random)?,
            };
            let began = Instant::now();
            let warmly = sides.warm(&request).await?;
            let took = began.elapsed();
            times.0.push(took);
            let again = sides.warm(&request).await?;
            if again.id != warmly.id {
                different += 1;
                println!("DIFFERENT when repeated at step {step} ({what}): {}", words(&request));
                println!("  first {}\n  again {}", warmly.told, again.told);
            }
            before.push(request.clone());
            asked.push((request, warmly, took));
        }
        for (request, warmly, took_warmly) in asked {
            let began = Instant::now();
            let coldly = sides.cold(&request).await?;
            times.1.push(began.elapsed());
            *sources.entry(warmly.served_from.clone()).or_insert(0) += 1;
            if args.verbose {
                let took = times.1.last().copied().unwrap_or_default().as_millis();
                println!(
                    "{step}: {what}: {}: {} {} / {} ms",
                    words(&request),
                    warmly.served_from,
                    took_warmly.as_millis(),
                    took
                );
            }
            if warmly.id != coldly.id {
                different += 1;
                println!("DIFFERENT at step {step} ({what}): {}", words(&request));
                println!("  warm {}\n  cold {}", warmly.told, coldly.told);
                if args.stop {
                    println!("the copy is {}", scratch.keep().display());
                    break 'steps;
                }
            }
        }
    }
    sides.close().await;
    let median = |times: &mut Vec<Duration>| {
        times.sort();
        times.get(times.len() / 2).copied().unwrap_or_default().as_millis()
    };
    println!(
        "{}: {different} of {} differ (seed {}); warm {} ms, cold {} ms at the median; {sources:?}",
        folder.display(),
        args.steps * args.questions,
        args.seed,
        median(&mut times.0),
        median(&mut times.1),
    );
    Ok(different)
}

fn settings(args: &Args, copy: &Path, scratch: &Path) -> Result<Settings, String> {
    let absolute = |path: &Path| AbsPath::new(path).map_err(|error| error.to_string());
    let environment: BTreeMap<String, String> = std::env::vars().collect();
    let script =
        args.script.as_ref().map(std::fs::canonicalize).transpose().map_err(|error| error.to_string())?;
    let home = environment.get("HOME").cloned().unwrap_or_default();
    let cache =
        environment.get("LANSER_CACHE_DIR").cloned().unwrap_or_else(|| format!("{home}/.cache/lanser"));
    let copy = std::fs::canonicalize(copy).map_err(|error| error.to_string())?;
    Ok(Settings {
        trace: None,
        root: absolute(&copy)?,
        copy_of: None,
        environment_of: None,
        server: ServerKind::Pyright,
        server_version: None,
        server_command: script.as_deref().map(absolute).transpose()?,
        python: None,
        timeout: Duration::from_secs(300),
        offline: false,
        trust_workspace: false,
        trust: ChangeDetection::Stat,
        cache: absolute(Path::new(&cache))?,
        keep: false,
        temp: absolute(scratch)?,
        guard: None,
        session_memory: 4 << 30,
        search_path: std::env::split_paths(environment.get("PATH").map_or("", String::as_str)).collect(),
        environment,
        verbose: false,
        threads: std::thread::available_parallelism().map_or(1, usize::from).min(8),
        progress: Arc::new(Silent),
    })
}

/// The commands sent after a change; more frequent ones are listed repeatedly.
const WEIGHTED: [Command; 10] = [
    Command::Definition,
    Command::Definition,
    Command::Hover,
    Command::Hover,
    Command::References,
    Command::References,
    Command::TypeDefinition,
    Command::Calls,
    Command::Diagnostics,
    Command::Symbols,
];

/// All read-only commands about a position.
const ALL: [Command; 14] = [
    Command::Definition,
    Command::Definition,
    Command::Declaration,
    Command::TypeDefinition,
    Command::Implementation,
    Command::References,
    Command::Hover,
    Command::Symbols,
    Command::Calls,
    Command::TypeHierarchy,
    Command::Diagnostics,
    Command::Locate,
    Command::PrepareRename,
    Command::Actions,
];

/// A request about an identifier; every second time in a file that was just changed.
fn question(
    args: &Args,
    root: &Path,
    touched: Option<&Path>,
    kinds: &[Command],
    random: &mut Random,
) -> Result<Request, String> {
    let sources = support::positions::sources(root);
    loop {
        let near = touched.filter(|_| random.below(2) == 0);
        let number = near
            .and_then(|path| sources.iter().position(|source| source.path == path))
            .unwrap_or_else(|| random.below(sources.len()));
        let places = support::positions::places(number, &sources[number]);
        if places.is_empty() {
            continue;
        }
        let place = &places[random.below(places.len())];
        let cmd = kinds[random.below(kinds.len())];
        let uses = matches!(cmd, Command::References | Command::Calls);
        if uses && support::positions::with_word(&sources, &place.word).len() > 150 {
            continue;
        }
        let text = support::program::selector(&sources[number].relative, place.line, place.scalar);
        let selector = selector::parse(&text, ColumnUnit::Codepoint).map_err(|error| error.to_string())?;
        let direction = (cmd == Command::Calls).then_some(Direction::Incoming);
        let down = random.below(2) == 0;
        let types = (cmd == Command::TypeHierarchy).then_some(if down {
            TypeDirection::Subtypes
        } else {
            TypeDirection::Supertypes
        });
        // Compared with the latest commit of the copy.
        let new = cmd == Command::Diagnostics && random.below(2) == 0;
        let agree = args.agree.filter(|_| cmd.takes_second_opinion());
        let options = Options { direction, types, new, agree, ..Options::default() };
        return Ok(Request::new(cmd, Some(selector.into()), None, options));
    }
}

fn words(request: &Request) -> String {
    let selector = request.selector.as_ref().map(ToString::to_string).unwrap_or_default();
    format!("{} {selector}", request.cmd.as_str())
}
