//! Measures how many definitions per second `lanser batch` returns, compared with a minimal client that pipelines as many requests
//! to its own server.
//!
//! `cargo build --release && cargo run --release --features tools --example throughput -- [--positions N] [--concurrency N] [--rounds N]
//! [--plain] [--server NAME] [--server-command SCRIPT] FOLDER…`
//!
//! Both are warm: they have answered as many requests about other positions, and no memo is used. The positions are random
//! identifiers; with `--plain` only plain names, without attributes and keyword arguments, whose definition depends on types that
//! have to be inferred anew. Both answer in turn, in one run, all rounds with the same positions. Printed for each folder: answers
//! per second of both in each round, and the ratio of the medians.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the report is what this program is for")]

#[path = "../support/mod.rs"]
mod support;

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, ExitCode, Stdio};
use std::time::Instant;

use support::positions::{Place, Source};
use support::program::Lanser;
use support::raw::{Raw, RawOptions};

const USAGE: &str =
    "usage: throughput [--positions N] [--concurrency N] [--rounds N] [--plain] [--python EXE]
            [--server NAME] [--server-command SCRIPT] FOLDER…";

/// Target for the ratio.
const TARGET_RATIO: f64 = 0.9;

struct Args {
    positions: usize,
    concurrency: usize,
    rounds: usize,
    plain: bool,
    python: String,
    server: String,
    script: Option<PathBuf>,
    folders: Vec<PathBuf>,
}

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn args() -> Result<Args, String> {
    let mut args = Args {
        positions: 500,
        concurrency: 16,
        rounds: 5,
        plain: false,
        python: "python3".to_owned(),
        server: "pyright".to_owned(),
        script: None,
        folders: Vec::new(),
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} needs a value\n{USAGE}"));
        let number = |text: String| text.parse().map_err(|_| format!("{text:?} is no number"));
        match word.as_str() {
            "--positions" => args.positions = number(value()?)?,
            "--concurrency" => args.concurrency = number(value()?)?,
            "--rounds" => args.rounds = number(value()?)?,
            "--plain" => args.plain = true,
            "--python" => args.python = value()?,
            "--server" => args.server = value()?,
            "--server-command" => args.script = Some(value()?.into()),
            option if option.starts_with('-') => return Err(format!("{option} is unknown\n{USAGE}")),
            folder => args.folders.push(folder.into()),
        }
    }
    if args.folders.is_empty() || args.positions == 0 || args.rounds == 0 {
        return Err(USAGE.to_owned());
    }
    Ok(args)
}

fn run() -> Result<bool, String> {
    let args = args()?;
    let (program, scratch) = support::program::beside_example()?;
    let script = match &args.script {
        Some(script) => fs::canonicalize(script).map_err(|error| format!("{}: {error}", script.display()))?,
        None => support::program::found_script(&program, &args.server)?,
    };
    let [python, prefix, _] = support::program::interpreter(&args.python)?;
    let temporary = scratch.join(format!("throughput-{}", std::process::id()));
    let raw = RawOptions {
        script: script.clone(),
        python: if args.server == "ty" { prefix } else { python.clone() },
        scratch: temporary.clone(),
        pulls: false,
    };
    let lanser =
        Lanser { program, cache: temporary.join("cache"), python, script, server: args.server.clone() };
    let mut held = true;
    for folder in &args.folders {
        held &= measured(&args, &lanser, &raw, folder)?;
    }
    let _ = fs::remove_dir_all(temporary);
    Ok(held)
}

/// Measures one folder; returns whether the target is met.
fn measured(args: &Args, lanser: &Lanser, raw: &RawOptions, folder: &Path) -> Result<bool, String> {
    let root = fs::canonicalize(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let sources = support::positions::sources(&root);
    let fits = |place: &Place| !args.plain || is_plain(&sources[place.file].text, place);
    let more = if args.plain { 8 } else { 2 };
    let places: Vec<Place> = support::positions::chosen(&sources, args.positions * more)
        .into_iter()
        .filter(fits)
        .take(args.positions * 2)
        .collect();
    let step = |first: usize| -> Vec<&Place> { places.iter().skip(first).step_by(2).collect() };
    let (others, asked) = (step(0), step(1));
    let mut bare = Raw::spawn(raw, &root)?;
    bare.barrier()?;
    let mut batch = Batch::start(lanser, &root, args.concurrency)?;
    let mut bare_answers = |places: &[&Place]| -> Result<(f64, usize), String> {
        let places: Vec<_> = places
            .iter()
            .map(|place| (sources[place.file].path.as_path(), [place.line, place.utf16]))
            .collect();
        let begun = Instant::now();
        let answers = bare.ask_all("textDocument/definition", &places, args.concurrency)?;
        let rate = per_second(places.len(), begun);
        Ok((
            rate,
            answers.iter().filter(|answer| answer.as_array().is_some_and(|all| !all.is_empty())).count(),
        ))
    };
    bare_answers(&others)?;
    batch.answers(&sources, &others)?;
    let (mut bare_rates, mut rates) = (Vec::new(), Vec::new());
    println!(
        "{}: {} definitions, {} at a time, seed {:#x}",
        root.display(),
        asked.len(),
        args.concurrency,
        support::positions::SEED
    );
    for round in 0..args.rounds {
        let (bare_rate, bare_found) = bare_answers(&asked)?;
        let (rate, found) = batch.answers(&sources, &asked)?;
        println!(
            "round {round}: bare {bare_rate:.0}/s ({bare_found} found), batch {rate:.0}/s ({found} ok), ratio {:.2}",
            rate / bare_rate
        );
        bare_rates.push(bare_rate);
        rates.push(rate);
    }
    batch.end()?;
    let ratio = median(rates) / median(bare_rates);
    let held = ratio >= TARGET_RATIO;
    println!(
        "ratio of the medians: {ratio:.2} ({} {TARGET_RATIO})\n",
        if held { "at least" } else { "LESS THAN" }
    );
    Ok(held)
}

/// Whether a name is neither an attribute nor a keyword argument.
fn is_plain(text: &str, place: &Place) -> bool {
    let Some(line) = text.lines().nth(place.line as usize) else { return false };
    let before: String = line.chars().take(place.scalar as usize).collect();
    let after: String = line.chars().skip(place.scalar as usize + place.word.chars().count()).collect();
    let after = after.trim_start();
    !before.trim_end().ends_with('.') && (!after.starts_with('=') || after.starts_with("=="))
}

fn per_second(count: usize, begun: Instant) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX)) / begun.elapsed().as_secs_f64()
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

/// A running `lanser batch` process.
struct Batch {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Batch {
    fn start(lanser: &Lanser, root: &Path, concurrency: usize) -> Result<Self, String> {
        let words = ["batch", "--no-cache", "--concurrency", &concurrency.to_string()];
        let mut command = lanser.command(root, &words);
        command.stdin(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().map_err(|error| format!("lanser: {error}"))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("lanser has no pipes".to_owned());
        };
        Ok(Self { child, input, output: BufReader::new(output) })
    }

    /// Sends requests about all positions at once; returns answers per second, and the number of definitions.
    fn answers(&mut self, sources: &[Source], places: &[&Place]) -> Result<(f64, usize), String> {
        let mut lines = String::new();
        for (number, place) in places.iter().enumerate() {
            let selector =
                support::program::selector(&sources[place.file].relative, place.line, place.scalar);
            let request = serde_json::json!({"id": number, "cmd": "definition", "selector": selector});
            lines.push_str(&request.to_string());
            lines.push('\n');
        }
        let begun = Instant::now();
        let (input, output) = (&mut self.input, &mut self.output);
        let answers = std::thread::scope(|scope| {
            let writing = scope.spawn(|| input.write_all(lines.as_bytes()).and_then(|()| input.flush()));
            let mut answers = Vec::new();
            for _ in places {
                let mut line = String::new();
                output.read_line(&mut line).map_err(|error| format!("lanser batch: {error}"))?;
                answers.push(line);
            }
            writing
                .join()
                .map_err(|_| "the writer failed")?
                .map_err(|error| format!("lanser batch: {error}"))?;
            Ok::<_, String>(answers)
        })?;
        let rate = per_second(places.len(), begun);
        Ok((rate, answers.iter().filter(|answer| answer.contains("\"status\":\"ok\"")).count()))
    }

    fn end(self) -> Result<(), String> {
        let Self { mut child, input, .. } = self;
        drop(input);
        let status = child.wait().map_err(|error| error.to_string())?;
        if status.success() { Ok(()) } else { Err(format!("lanser batch ended with {status}")) }
    }
}
