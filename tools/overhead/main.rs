//! Measures the overhead of lanser over its server: the same cold requests, alternately sent by a minimal correct client and by a
//! whole `lanser` process without a session and without a memo. Its other caches of the workspace are warm, with `--no-index` empty.
//!
//! `cargo build --release && cargo run --release --features tools --example overhead -- [--server ty] FOLDER…`
//!
//! The minimal client starts the server, searches the files that contain the name (for references) while the server starts, waits
//! until the server has enumerated its source files, opens the found files, sends the request, and kills the server. In addition,
//! for each folder: `locate` with a cached index, `--version`, and the peak of lanser's own memory.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the report is what this program is for")]

#[path = "../support/mod.rs"]
mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use support::positions::{Place, Source};
use support::program::Lanser;
use support::raw::{Raw, RawOptions};

/// Runs of each command that needs no server.
const QUICK_RUNS: usize = 20;

/// Target for a cold answer: at most this many times the minimal client's time, plus this many milliseconds.
const TARGET: (f64, f64) = (1.05, 30.0);

/// The same for ty, whose own share is so small that the rest counts; for references and for all else.
const TY_TARGETS: [(f64, f64); 2] = [(1.3, 60.0), (1.3, 40.0)];

const USAGE: &str = "usage: overhead [--positions N] [--rounds N] [--files MOST] [--commands def,hover,refs]
                [--names A,B,…] [--symbol SELECTOR]
                [--no-index] [--server NAME] [--server-command SCRIPT] [--python EXE] FOLDER…";

/// The command-line arguments.
struct Args {
    positions: usize,
    rounds: usize,
    /// References are requested only for names that occur in at most this many files.
    files: usize,
    commands: Vec<String>,
    /// The requests are about the first definitions of these names instead of random places.
    names: Vec<String>,
    /// Whether lanser knows nothing of the workspace from earlier processes.
    no_index: bool,
    symbol: Option<String>,
    script: Option<PathBuf>,
    python: String,
    server: String,
    folders: Vec<PathBuf>,
}

/// One folder and the settings for its measurement.
struct Folder<'a> {
    root: &'a Path,
    sources: &'a [Source],
    raw: &'a RawOptions,
    lanser: &'a Lanser,
    no_index: bool,
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
    let temporary = scratch.join(format!("overhead-{}", std::process::id()));
    let raw = RawOptions {
        script: script.clone(),
        python: if args.server == "ty" { prefix } else { python.clone() },
        scratch: temporary.clone(),
        pulls: false,
    };
    let lanser =
        Lanser { program, cache: scratch.join("cache"), python, script, server: args.server.clone() };
    let version = quick(|| {
        let mut command = Command::new(&lanser.program);
        command.arg("--version");
        command
    })?;
    println!("lanser --version: {}, load average {}", spread(version), load());
    for root in &args.folders {
        let root = absolute(root)?;
        let sources = support::positions::sources(&root);
        println!("\n{}: {} files, seed {:#x}", root.display(), sources.len(), support::positions::SEED);
        let folder =
            Folder { root: &root, sources: &sources, raw: &raw, lanser: &lanser, no_index: args.no_index };
        // More than needed, because some names occur in too many files for a request of a few seconds.
        let places = support::positions::chosen(&sources, args.positions * 10);
        for command in &args.commands {
            let fits = |place: &&Place| {
                command != "refs" || support::positions::with_word(&sources, &place.word).len() <= args.files
            };
            let named = support::positions::defined(&sources, &args.names);
            let asked: Vec<&Place> = match args.names.is_empty() {
                true => places.iter().filter(fits).step_by(5).take(args.positions).collect(),
                false => named.iter().collect(),
            };
            folder.alternate(command, &asked, args.rounds)?;
        }
        if let Some(place) = places.first() {
            let selector = folder.selector(place);
            let locate = quick(|| lanser.alone(&root, &["locate", &selector]))?;
            println!("locate, index cached: {}, load average {}", spread(locate), load());
        }
        folder.memory(args.symbol.as_deref())?;
    }
    let _ = fs::remove_dir_all(temporary);
    Ok(())
}

impl Folder<'_> {
    /// Sends every request to both in turn; the one that goes first changes from pair to pair.
    fn alternate(&self, command: &str, places: &[&Place], rounds: usize) -> Result<(), String> {
        let before = load();
        let (mut bare, mut whole, mut more, mut barriers) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        if let Some(place) = places.first() {
            // Now the caches of the system and of lanser are warm.
            self.whole(command, place)?;
            self.bare(command, place)?;
        }
        for pair in 0..rounds * places.len() {
            let place = places[pair % places.len()];
            let ((of_bare, barrier), of_whole) = if pair % 2 == 0 {
                let of_bare = self.bare(command, place)?;
                (of_bare, self.whole(command, place)?)
            } else {
                let of_whole = self.whole(command, place)?;
                (self.bare(command, place)?, of_whole)
            };
            more.push(of_whole - of_bare);
            bare.push(of_bare);
            whole.push(of_whole);
            barriers.push(barrier);
        }
        let pairs = more.len();
        let (bare, whole, more) = (median(bare), median(whole), median(more));
        let (times, plus) = match self.raw.is_ty() {
            true => TY_TARGETS[usize::from(command != "refs")],
            false => TARGET,
        };
        let (verdict, bound) =
            (if whole <= bare * times + plus { "within" } else { "PAST" }, format!("{times} × + {plus} ms"));
        println!(
            "{command:5} {pairs} pairs: bare {bare:.0} ms (barrier at {:.0}), lanser {whole:.0} ms, ratio {:.3}, \
             difference {:+.0} ms, of pairs {more:+.0} ms, {verdict} {bound}, load average {before} to {}",
            median(barriers),
            whole / bare,
            whole - bare,
            load()
        );
        Ok(())
    }

    /// The minimal client: milliseconds until the server is killed, and until it had enumerated its files.
    fn bare(&self, command: &str, place: &Place) -> Result<(f64, f64), String> {
        let begun = Instant::now();
        let path = &self.sources[place.file].path;
        let mut server = Raw::spawn(self.raw, self.root)?;
        let found;
        let needed: Vec<&Source> = if command == "refs" && !self.raw.is_ty() {
            found = support::positions::sources(self.root);
            support::positions::with_word(&found, &place.word)
        } else {
            vec![&self.sources[place.file]]
        };
        server.barrier()?;
        let barrier = milliseconds(begun.elapsed());
        for source in needed {
            server.open(&source.path, &source.text)?;
        }
        let method = match command {
            "hover" => "textDocument/hover",
            "refs" => "textDocument/references",
            _ => "textDocument/definition",
        };
        server.ask(method, path, [place.line, place.utf16])?;
        drop(server);
        Ok((milliseconds(begun.elapsed()), barrier))
    }

    /// The whole `lanser` process: milliseconds.
    fn whole(&self, command: &str, place: &Place) -> Result<f64, String> {
        let selector = self.selector(place);
        let caches: &[&str] = if self.no_index { &["memo", "workspaces"] } else { &["memo"] };
        for cache in caches {
            let _ = fs::remove_dir_all(self.lanser.cache.join(cache));
        }
        let begun = Instant::now();
        let (bundle, code) = self.lanser.bundle(self.root, &[command, &selector])?;
        let took = milliseconds(begun.elapsed());
        match code {
            Some(0 | 3) if bundle["meta"]["volatile"]["served_from"] != "server" => {
                Err(format!("lanser {command} {selector}: the answer is not the server's"))
            }
            Some(0 | 3) => Ok(took),
            code => Err(format!("lanser {command} {selector}: exit {code:?}: {}", bundle["error"])),
        }
    }

    /// The peak of lanser's own memory, without the server, for the references of a symbol: the given one, or the name that occurs in
    /// most files, for which most documents are read and sent.
    fn memory(&self, symbol: Option<&str>) -> Result<(), String> {
        let selector = match symbol {
            Some(symbol) => symbol.to_owned(),
            None => self.widest().map(|place| self.selector(&place)).ok_or("there is no identifier")?,
        };
        let mut command = self.lanser.alone(self.root, &["refs", &selector]);
        let mut child = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("lanser: {error}"))?;
        let status = format!("/proc/{}/status", child.id());
        let mut peak = 0;
        let code = loop {
            peak = peak.max(fs::read_to_string(&status).ok().and_then(|text| high_water(&text)).unwrap_or(0));
            match child.try_wait().map_err(|error| format!("lanser: {error}"))? {
                Some(code) => break code,
                None => std::thread::sleep(Duration::from_millis(2)),
            }
        };
        println!("peak memory of lanser itself, refs {selector}: {:.1} MB ({code})", peak as f64 / 1024.0);
        Ok(())
    }

    fn widest(&self) -> Option<Place> {
        let mut first: BTreeMap<String, (usize, Place)> = BTreeMap::new();
        for (file, source) in self.sources.iter().enumerate() {
            let mut seen = std::collections::BTreeSet::new();
            for place in support::positions::places(file, source) {
                if seen.insert(place.word.clone()) {
                    first.entry(place.word.clone()).or_insert((0, place)).0 += 1;
                }
            }
        }
        first.into_values().max_by_key(|(files, _)| *files).map(|(_, place)| place)
    }

    fn selector(&self, place: &Place) -> String {
        support::program::selector(&self.sources[place.file].relative, place.line, place.scalar)
    }
}

/// Times a command that needs no server: milliseconds of each run after the first.
fn quick(make: impl Fn() -> Command) -> Result<Vec<f64>, String> {
    let mut times = Vec::new();
    for run in 0..=QUICK_RUNS {
        let begun = Instant::now();
        let status = make().stdout(Stdio::null()).stderr(Stdio::null()).status();
        let took = milliseconds(begun.elapsed());
        match status {
            Ok(status) if status.success() => {}
            Ok(status) => return Err(format!("lanser ended with {status}")),
            Err(error) => return Err(format!("lanser: {error}")),
        }
        if run > 0 {
            times.push(took);
        }
    }
    Ok(times)
}

fn spread(times: Vec<f64>) -> String {
    let least = times.iter().copied().fold(f64::INFINITY, f64::min);
    let most = times.iter().copied().fold(0.0, f64::max);
    format!("median {:.1} ms of {QUICK_RUNS} ({least:.1} to {most:.1})", median(times))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        count if count % 2 == 1 => values[count / 2],
        count => (values[count / 2 - 1] + values[count / 2]) / 2.0,
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// The peak of the resident set, in kilobytes.
fn high_water(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// The load average of the last minute.
fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next().unwrap_or("unknown").to_owned()
}

fn args() -> Result<Args, String> {
    let mut args = Args {
        positions: 5,
        rounds: 3,
        files: 200,
        commands: ["def", "hover", "refs"].map(str::to_owned).to_vec(),
        names: Vec::new(),
        no_index: false,
        symbol: None,
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
            "--files" => args.files = number(value()?)?,
            "--commands" => args.commands = value()?.split(',').map(str::to_owned).collect(),
            "--names" => args.names = value()?.split(',').map(str::to_owned).collect(),
            "--no-index" => args.no_index = true,
            "--symbol" => args.symbol = Some(value()?),
            "--server-command" => args.script = Some(value()?.into()),
            "--python" => args.python = value()?,
            "--server" => args.server = value()?,
            option if option.starts_with('-') => return Err(format!("{option} is unknown\n{USAGE}")),
            folder => args.folders.push(folder.into()),
        }
    }
    if args.folders.is_empty() {
        return Err(USAGE.to_owned());
    }
    Ok(args)
}

fn absolute(path: &Path) -> Result<PathBuf, String> {
    fs::canonicalize(path).map_err(|error| format!("{}: {error}", path.display()))
}
