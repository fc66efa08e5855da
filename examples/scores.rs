//! What it costs to score a head, against a bare client that has the same server check the same files again.
//!
//! `cargo build --release && cargo run --release --example scores -- [--heads N] [--server-command SCRIPT] --python EXE FOLDER FILE…`
//!
//! Each head gives one of the FILEs (in turn) another line. Lanser scores all of them in one call; from that the time of a call
//! with one head is taken off. The bare client changes the same file to the same text in its own server and pulls the
//! diagnostics of the same files, which lanser's `check` tells.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the report is what this program is for")]

#[path = "compare/raw.rs"]
#[allow(dead_code, reason = "the example `compare` asks more of it")]
mod raw;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use raw::{Raw, RawOptions};
use serde_json::Value;

const USAGE: &str = "usage: scores [--heads N] --server-command SCRIPT --python EXE FOLDER FILE…";

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
    let (mut heads, mut script, mut python, mut places) = (100, None, None, Vec::new());
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(USAGE.to_owned());
        match word.as_str() {
            "--heads" => heads = value()?.parse().map_err(|_| USAGE.to_owned())?,
            "--server-command" => script = Some(value()?),
            "--python" => python = Some(value()?),
            word if word.starts_with("--") => return Err(USAGE.to_owned()),
            place => places.push(place.to_owned()),
        }
    }
    let (Some(script), Some(python)) = (script, python) else { return Err(USAGE.to_owned()) };
    let [folder, files @ ..] = places.as_slice() else { return Err(USAGE.to_owned()) };
    if files.is_empty() {
        return Err(USAGE.to_owned());
    }
    let folder = std::fs::canonicalize(folder).map_err(|error| error.to_string())?;
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let lanser = own.ancestors().nth(2).ok_or("this program is nowhere")?.join("lanser");
    let scratch = tempfile::tempdir().map_err(|error| error.to_string())?;
    let call = |words: &[&str]| -> Result<(String, Duration), String> {
        let began = Instant::now();
        let mut command = Command::new(&lanser);
        command.args(words).args(["--json", "--no-session", "--no-cache", "--python", &python]);
        command.args(["--server-command", &script, "-C"]).arg(&folder);
        let output = command.output().map_err(|error| format!("lanser: {error}"))?;
        Ok((String::from_utf8_lossy(&output.stdout).into_owned(), began.elapsed()))
    };
    let mut made = Vec::new();
    for number in 0..heads {
        let file = &files[number % files.len()];
        let text = std::fs::read_to_string(folder.join(file)).map_err(|error| format!("{file}: {error}"))?;
        let last = text.lines().count();
        let diff = format!(
            "--- a/{file}\n+++ b/{file}\n@@ -{last},1 +{last},2 @@\n {}\n+NUMBER_{number} = len({number})\n",
            text.lines().last().unwrap_or_default()
        );
        let path = scratch.path().join(format!("{number}.diff"));
        std::fs::write(&path, &diff).map_err(|error| error.to_string())?;
        made.push((folder.join(file), format!("{text}NUMBER_{number} = len({number})\n"), path));
    }
    let mut scopes = Vec::new();
    for (.., diff) in made.iter().take(files.len()) {
        let told: Value =
            serde_json::from_str(&call(&["check", text(diff)])?.0).map_err(|error| error.to_string())?;
        let scope = &told["processReward"]["state"]["scope"];
        let all = scope["files"].as_array().into_iter().flatten().map(|file| &file["uri"]);
        let all = all.chain(scope["clean"].as_array().into_iter().flatten());
        scopes.push(all.filter_map(|uri| Some(folder.join(uri.as_str()?))).collect::<Vec<PathBuf>>());
    }
    let args = |count: usize| -> Vec<&str> {
        let heads = made.iter().take(count).flat_map(|(.., diff)| ["--head", text(diff)]);
        ["score", "--base", "WORKTREE"].into_iter().chain(heads).collect()
    };
    let first = args(files.len());
    let (_, once) = call(&first)?;
    let (told, all) = call(&args(heads))?;
    let rewards = told.lines().filter(|line| line.contains("\"reward\":-0.5")).count();
    let each = all.saturating_sub(once).as_secs_f64() * 1e3 / (heads - files.len()).max(1) as f64;
    let bare = bare(&made, &scopes, &folder, &script, &python, scratch.path())?;
    let files: usize = (0..heads).map(|at| scopes[at % scopes.len()].len()).sum();
    println!(
        "| heads | files each | lanser, ms each | bare re-check, ms each | ratio | whole call, s |\n|---|---|---|---|---|---|"
    );
    println!(
        "| {heads} | {:.1} | {each:.0} | {bare:.0} | {:.2} | {:.1} |",
        files as f64 / heads as f64,
        each / bare,
        all.as_secs_f64()
    );
    if rewards == heads { Ok(()) } else { Err(format!("{rewards} of {heads} heads were worth -0.5")) }
}

/// The mean time in milliseconds in which a bare server checks the same files again.
fn bare(
    made: &[(PathBuf, String, PathBuf)],
    scopes: &[Vec<PathBuf>],
    folder: &Path,
    script: &str,
    python: &str,
    scratch: &Path,
) -> Result<f64, String> {
    let options = RawOptions { script: script.into(), python: python.into(), scratch: scratch.to_owned() };
    let mut server = Raw::spawn(&options, folder)?;
    server.barrier()?;
    let mut all: Vec<PathBuf> = scopes.concat();
    all.sort();
    all.dedup();
    let read = |path: &PathBuf| std::fs::read_to_string(path).map_err(|error| error.to_string());
    for path in &all {
        server.open(path, &read(path)?)?;
    }
    server.pull(&all)?;
    let (mut version, mut time) = (1, Duration::ZERO);
    for (number, (path, text, _)) in made.iter().enumerate() {
        let original = read(path)?;
        version += 2;
        let began = Instant::now();
        server.change(path, text, version)?;
        server.pull(&scopes[number % scopes.len()])?;
        if number >= scopes.len() {
            time += began.elapsed();
        }
        server.change(path, &original, version + 1)?;
    }
    Ok(time.as_secs_f64() * 1e3 / (made.len() - scopes.len()).max(1) as f64)
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap_or_default()
}
