//! Measures the cost of a warm answer above its lower bound, and of an answer from the memo above the scan.
//!
//! `cargo build --release && cargo run --release --features tools --example warm -- [--server ty] FOLDER…`
//!
//! In one run and in turn, so that other load on the machine affects all alike, for each request: the *scan* (a bare parallel walk
//! with a `stat` of each Python file), the *raw* answer of a warm minimal client that has the needed files open and has sent this
//! request before, and whole `lanser` processes: *warm* (session, `--no-cache`), whose requests the running server answers each
//! time, and *memo* (with and without a session). Only *cold* processes run separately, because they are slow. Differences are medians of the
//! differences within a turn. Before that, the *first* time of both: with other names for each command, and the minimal client keeps
//! the types that it inferred for those before.
//!
//! In addition: `--version`, and the session's memory after all requests and its processor time while idle.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the report is what this program is for")]

mod scan;
mod session;
#[path = "../support/mod.rs"]
mod support;
mod table;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use session::{AnswerPath, Sessions};
use support::positions::{Place, Source};
use support::program::Lanser;
use support::raw::{Raw, RawOptions};
use table::{Row, held, median};

/// Runs of `--version`.
const QUICK_RUNS: usize = 20;

/// Target for `--version`, in milliseconds.
const VERSION_TARGET_MILLISECONDS: f64 = 5.0;

const USAGE: &str =
    "usage: warm [--positions N] [--rounds N] [--cold N] [--files MOST] [--commands def,hover,refs]
            [--server NAME] [--server-command SCRIPT] [--python EXE] FOLDER…";

/// The command-line arguments.
struct Args {
    positions: usize,
    rounds: usize,
    /// How many requests are sent to cold processes too.
    cold: usize,
    /// References are requested only for names that occur in at most this many files.
    files: usize,
    commands: Vec<String>,
    script: Option<PathBuf>,
    python: String,
    server: String,
    folders: Vec<PathBuf>,
}

/// One folder, the minimal client and the sessions.
struct Folder<'a> {
    root: &'a Path,
    sources: &'a [Source],
    raw: Raw,
    /// The files that the minimal client has open.
    open: BTreeSet<&'a Path>,
    sessions: Sessions<'a>,
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<(), String> {
    let args = args()?;
    let (program, scratch) = support::program::beside_example()?;
    let script = match &args.script {
        Some(script) => absolute(script)?,
        None => support::program::found_script(&program, &args.server)?,
    };
    let [python, prefix, _] = support::program::interpreter(&args.python)?;
    let temporary = scratch.join(format!("warm-{}", std::process::id()));
    let raw = RawOptions {
        script: script.clone(),
        python: if args.server == "ty" { prefix } else { python.clone() },
        scratch: temporary.clone(),
        pulls: false,
    };
    let lanser =
        Lanser { program, cache: temporary.join("cache"), python, script, server: args.server.clone() };
    let measured = measured(&args, &lanser, &raw);
    let _ = fs::remove_dir_all(temporary);
    let rows = measured?;
    println!("\nAsked for the first time, in ms:\n{}", table::first(&rows));
    println!("Medians, in ms:\n{}", table::table(&rows, 0.5));
    println!(
        "Lower quartiles, where the machine was busy with other things least:\n{}",
        table::table(&rows, 0.25)
    );
    for row in &rows {
        println!("{}", row.verdicts());
    }
    Ok(())
}

fn measured(args: &Args, lanser: &Lanser, raw: &RawOptions) -> Result<Vec<Row>, String> {
    let times = version(&lanser.program)?;
    let least = times.iter().copied().fold(f64::INFINITY, f64::min);
    let middle = median(times);
    let verdict = held(middle, VERSION_TARGET_MILLISECONDS);
    println!("lanser --version: median {middle:.1} ms of {QUICK_RUNS}, least {least:.1}, {verdict}");
    let mut rows = Vec::new();
    for root in &args.folders {
        let root = absolute(root)?;
        let sources = support::positions::sources(&root);
        let files = scan::scan(&root);
        println!(
            "\n{}: {files} files, seed {:#x}, load average {}",
            root.display(),
            support::positions::SEED,
            load()
        );
        let mut server = Raw::spawn(raw, &root)?;
        server.barrier()?;
        let mut folder = Folder {
            root: &root,
            sources: &sources,
            raw: server,
            open: BTreeSet::new(),
            sessions: Sessions::new(lanser)?,
        };
        // More than needed, because some names occur in too many files for a request of a few seconds.
        let places = support::positions::chosen(&sources, args.positions * 10);
        for (number, command) in args.commands.iter().enumerate() {
            let fits = |place: &&Place| {
                command != "refs" || support::positions::with_word(&sources, &place.word).len() <= args.files
            };
            let fitting: Vec<&Place> = places.iter().filter(fits).collect();
            let step = (fitting.len() / args.positions).clamp(1, 5);
            let asked: Vec<&Place> =
                fitting.into_iter().skip(number).step_by(step).take(args.positions).collect();
            let before = Instant::now();
            let row = folder.measure(command, &asked, args)?;
            let took = before.elapsed().as_secs();
            println!("{} positions, {took} s, load average {}", asked.len(), load());
            println!("{}", table::table(std::slice::from_ref(&row), 0.5));
            rows.push(row);
        }
        let Folder { raw, sessions, .. } = folder;
        drop(raw);
        println!("{}", sessions.idle()?);
    }
    Ok(rows)
}

impl<'a> Folder<'a> {
    /// Sends every request to all in turn; which one goes first changes from turn to turn.
    fn measure(&mut self, command: &str, places: &[&Place], args: &Args) -> Result<Row, String> {
        let name = self.root.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let mut row = Row { folder: name, command: command.to_owned(), ..Row::default() };
        // The warm processes have sent the request before, and the memo has its answer.
        for (number, place) in places.iter().enumerate() {
            let scan = timed(|| scan::scan(self.root));
            let (raw, run) = if number % 2 == 0 {
                (self.bare(command, place)?, self.whole(command, place, AnswerPath::Warm)?)
            } else {
                let run = self.whole(command, place, AnswerPath::Warm)?;
                (self.bare(command, place)?, run)
            };
            // The very first request starts the session.
            if run.served_from == "warm_server" {
                row.first.scan.push(scan);
                row.first.raw.push(raw);
                row.first.warm.push(run.took);
            }
            self.whole(command, place, AnswerPath::Memo)?;
        }
        for turn in 0..args.rounds * places.len() {
            let place = places[turn % places.len()];
            for step in 0..5 {
                match (turn + step) % 5 {
                    0 => row.scan.push(timed(|| scan::scan(self.root))),
                    1 => {
                        let took = self.bare(command, place)?;
                        row.raw.push(took);
                    }
                    2 => self.record_time(&mut row, command, place, AnswerPath::Warm)?,
                    3 => self.record_time(&mut row, command, place, AnswerPath::Memo)?,
                    _ => self.record_time(&mut row, command, place, AnswerPath::MemoAlone)?,
                }
            }
        }
        for place in places.iter().take(args.cold) {
            self.record_time(&mut row, command, place, AnswerPath::Cold)?;
        }
        Ok(row)
    }

    /// The minimal client: milliseconds of the request alone, with the needed files open.
    fn bare(&mut self, command: &str, place: &Place) -> Result<f64, String> {
        let source = &self.sources[place.file];
        let needed: Vec<&'a Source> = match command {
            "refs" => support::positions::with_word(self.sources, &place.word),
            _ => vec![source],
        };
        for source in needed {
            if self.open.insert(&source.path) {
                self.raw.open(&source.path, &source.text)?;
            }
        }
        let method = match command {
            "hover" => "textDocument/hover",
            "refs" => "textDocument/references",
            _ => "textDocument/definition",
        };
        let mut answer = Ok(serde_json::Value::Null);
        let took = timed(|| answer = self.raw.ask(method, &source.path, [place.line, place.utf16]));
        answer.map(|_| took)
    }

    /// Runs a whole process and records its time.
    fn record_time(
        &self,
        row: &mut Row,
        command: &str,
        place: &Place,
        path: AnswerPath,
    ) -> Result<(), String> {
        let run = self.whole(command, place, path)?;
        let (times, served_from) = match path {
            AnswerPath::Warm => (&mut row.warm, "warm_server"),
            AnswerPath::Memo => (&mut row.memo, "memo"),
            AnswerPath::MemoAlone => (&mut row.memo_alone, "memo"),
            AnswerPath::Cold => (&mut row.cold, "server"),
        };
        times.push(run.took);
        if run.served_from != served_from {
            *row.astray.entry((served_from, run.served_from)).or_default() += 1;
        }
        Ok(())
    }

    fn whole(&self, command: &str, place: &Place, path: AnswerPath) -> Result<session::Run, String> {
        let selector =
            support::program::selector(&self.sources[place.file].relative, place.line, place.scalar);
        self.sessions.ask(self.root, &[command, &selector], path)
    }
}

/// Milliseconds of each `--version` after the first.
fn version(program: &Path) -> Result<Vec<f64>, String> {
    let mut times = Vec::new();
    for run in 0..=QUICK_RUNS {
        let mut command = Command::new(program);
        command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null());
        let mut status = None;
        let took = timed(|| status = command.status().ok());
        if !status.is_some_and(|status| status.success()) {
            return Err("`lanser --version` does not work".to_owned());
        }
        if run > 0 {
            times.push(took);
        }
    }
    Ok(times)
}

/// The milliseconds that a call takes.
fn timed<T>(what: impl FnOnce() -> T) -> f64 {
    let begun = Instant::now();
    let _ = std::hint::black_box(what());
    begun.elapsed().as_secs_f64() * 1000.0
}

/// The load average of the last minute.
fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next().unwrap_or("unknown").to_owned()
}

fn args() -> Result<Args, String> {
    let mut args = Args {
        positions: 20,
        rounds: 1,
        cold: 2,
        files: 200,
        commands: ["def", "hover", "refs"].map(str::to_owned).to_vec(),
        script: None,
        python: "python3".to_owned(),
        server: "pyright".to_owned(),
        folders: Vec::new(),
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} needs a value\n{USAGE}"));
        let number = |text: String| text.parse().map_err(|_| format!("{text:?} is no number"));
        match word.as_str() {
            "--positions" => args.positions = number(value()?)?,
            "--rounds" => args.rounds = number(value()?)?,
            "--cold" => args.cold = number(value()?)?,
            "--files" => args.files = number(value()?)?,
            "--commands" => args.commands = value()?.split(',').map(str::to_owned).collect(),
            "--server-command" => args.script = Some(value()?.into()),
            "--python" => args.python = value()?,
            "--server" => args.server = value()?,
            option if option.starts_with('-') => return Err(format!("{option} is unknown\n{USAGE}")),
            folder => args.folders.push(folder.into()),
        }
    }
    let known = ["def", "hover", "refs"];
    if let Some(other) = args.commands.iter().find(|command| !known.contains(&command.as_str())) {
        return Err(format!("{other:?} is not measured\n{USAGE}"));
    }
    if args.folders.is_empty() || args.positions == 0 || args.rounds == 0 {
        return Err(USAGE.to_owned());
    }
    Ok(args)
}

fn absolute(path: &Path) -> Result<PathBuf, String> {
    fs::canonicalize(path).map_err(|error| format!("{}: {error}", path.display()))
}
