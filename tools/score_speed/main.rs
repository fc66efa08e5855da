//! Measures the time to score a head, compared with the time that the server alone needs to check the same files again.
//!
//! `cargo build --release && cargo run --release --features tools --example score_speed -- [--heads N] [--server-command SCRIPT]
//! [--python EXE] FOLDER…`
//!
//! A head is a seeded edit of one file: a misspelled name, a comment, or a function with a mistake. All are scored against the
//! unchanged folder by one warm server, through the library. In between, head by head, a minimal client sends the same changed text
//! to its own server and pulls the diagnostics of the same files, which are open and were checked before; then it reverts the
//! change. The files are determined by `check` beforehand. Printed: median and mean of both, and their ratios.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the report is what this program is for")]

mod heads;
#[path = "../support/mod.rs"]
mod support;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use heads::Head;
use lanser::Workspace;
use lanser::internal::engine::{ScoreHead, StateSource};
use lanser::internal::path::AbsPath;
use lanser::internal::reward::RewardFormula;
use lanser::internal::reward::episode::Episode;
use lanser::model::reward::Preset;
use support::raw::{Raw, RawOptions};

const USAGE: &str = "usage: score_speed [--heads N] [--python EXE] [--server-command SCRIPT] FOLDER…";

/// Target for the ratio of the means.
const TARGET_RATIO: f64 = 2.0;

struct Args {
    heads: usize,
    python: String,
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
    let mut args = Args { heads: 100, python: "python3".to_owned(), script: None, folders: Vec::new() };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} needs a value\n{USAGE}"));
        match word.as_str() {
            "--heads" => args.heads = value()?.parse().map_err(|_| USAGE.to_owned())?,
            "--python" => args.python = value()?,
            "--server-command" => args.script = Some(value()?.into()),
            option if option.starts_with('-') => return Err(format!("{option} is unknown\n{USAGE}")),
            folder => args.folders.push(folder.into()),
        }
    }
    if args.folders.is_empty() || args.heads == 0 { Err(USAGE.to_owned()) } else { Ok(args) }
}

fn run() -> Result<bool, String> {
    let args = args()?;
    let (program, scratch) = support::program::beside_example()?;
    let script = match &args.script {
        Some(script) => fs::canonicalize(script).map_err(|error| format!("{}: {error}", script.display()))?,
        None => support::program::found_script(&program, "pyright")?,
    };
    let [python, _, _] = support::program::interpreter(&args.python)?;
    let scratch = scratch.join(format!("score-speed-{}", std::process::id()));
    let raw = RawOptions { script, python, scratch: scratch.clone(), pulls: true };
    let mut held = true;
    for folder in &args.folders {
        let root = fs::canonicalize(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        held &= measured(&raw, &root, &heads::of(&root, args.heads))?;
    }
    let _ = fs::remove_dir_all(scratch);
    Ok(held)
}

/// Measures one folder; returns whether the target is met.
fn measured(options: &RawOptions, root: &Path, heads: &[Head]) -> Result<bool, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let opened = Workspace::options(root)
        .python(&options.python)
        .server_command(&options.script)
        .cache(options.scratch.join("cache"));
    let workspace = opened.open().map_err(|error| error.to_string())?;
    let scopes = runtime.block_on(scopes(&workspace, root, heads))?;
    let mut bare = Bare::start(options, root, &scopes)?;
    let (mut raw_ms, mut ms, mut same, mut comparable) = (Vec::new(), Vec::new(), 0, 0);
    let base = StateSource::Worktree(AbsPath::new(root).map_err(|error| error.to_string())?);
    // The first head is the base itself: it waits until the server runs.
    let mut sources = vec![ScoreHead { name: "the base".to_owned(), source: base.clone() }];
    sources.extend(heads.iter().map(|head| ScoreHead {
        name: head.name.clone(),
        source: StateSource::Edit(head.diff.clone().into_bytes()),
    }));
    let mut failure = None;
    let mut begun = Instant::now();
    let mut told = 0;
    let tell = |episode: Episode| {
        let took = milliseconds(begun);
        if told == 0 {
            println!("{}: base and server {took:.0} ms", root.display());
        } else if failure.is_none() {
            ms.push(took);
            match bare.check(&heads[told - 1], &scopes[told - 1]) {
                Ok((took, weight)) => {
                    raw_ms.push(took);
                    // Outstanding diagnostics were not found by the server.
                    if episode.outstanding.is_empty() && episode.files == scopes[told - 1].len() {
                        comparable += 1;
                        let found = episode.steps[0].cur.map(|cur| cur.get());
                        same += usize::from(found.is_some_and(|found| (found - weight).abs() < 1e-6));
                    }
                }
                Err(error) => failure = Some(error),
            }
        }
        told += 1;
        begun = Instant::now();
    };
    let terms = RewardFormula::of(Preset::Guarded);
    runtime.block_on(workspace.score(&base, &sources, &terms, tell)).map_err(|error| error.message)?;
    if let Some(error) = failure {
        return Err(error);
    }
    let files = scopes.iter().map(Vec::len).sum::<usize>() / scopes.len().max(1);
    println!(
        "{} heads of one file, on average {files} files checked; the same diagnostics in {same} of {comparable}; seed {:#x}",
        heads.len(),
        support::positions::SEED
    );
    let ratio = mean(&ms) / mean(&raw_ms);
    for (name, all) in [("lanser score", &ms), ("bare server ", &raw_ms)] {
        println!("{name}: median {:.0} ms, mean {:.0} ms a head", median(all), mean(all));
    }
    println!(
        "ratio of the medians {:.2}, of the means {ratio:.2} ({} {TARGET_RATIO})\n",
        median(&ms) / median(&raw_ms),
        if ratio <= TARGET_RATIO { "at most" } else { "MORE THAN" }
    );
    Ok(ratio <= TARGET_RATIO && same == comparable)
}

/// The files that are checked for each head, as recorded in the bundles of `check`.
async fn scopes(workspace: &Workspace, root: &Path, heads: &[Head]) -> Result<Vec<Vec<PathBuf>>, String> {
    let mut scopes = Vec::new();
    for head in heads {
        let bundle = workspace.check(head.diff.clone().into_bytes()).await;
        let scope = bundle.process_reward.and_then(|reward| reward.state.scope);
        let Some(scope) = scope else {
            let error = bundle.error.map(|error| error.message).unwrap_or_default();
            return Err(format!("{} cannot be checked: {error}", head.name));
        };
        let uris = scope.files.iter().map(|file| &file.uri).chain(&scope.clean);
        let inside = uris.filter_map(|uri| Some(root.join(uri.workspace_path()?.as_str())));
        scopes.push(inside.collect::<BTreeSet<_>>().into_iter().collect());
    }
    Ok(scopes)
}

/// The minimal client with its server.
struct Bare {
    server: Raw,
    version: usize,
}

impl Bare {
    /// Starts a server, opens every file that will be requested, and has each checked once.
    fn start(options: &RawOptions, root: &Path, scopes: &[Vec<PathBuf>]) -> Result<Self, String> {
        let mut server = Raw::spawn(options, root)?;
        server.barrier()?;
        let all: BTreeSet<&PathBuf> = scopes.iter().flatten().collect();
        let all: Vec<PathBuf> = all.into_iter().cloned().collect();
        for path in &all {
            let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
            server.open(path, &text)?;
        }
        server.pull_all(&all)?;
        Ok(Self { server, version: 1 })
    }

    /// Sends a head and pulls the diagnostics of files; returns the time and the weight of the diagnostics.
    fn check(&mut self, head: &Head, files: &[PathBuf]) -> Result<(f64, f64), String> {
        let begun = Instant::now();
        self.version += 2;
        self.server.change(&head.path, self.version, &head.after)?;
        let reports = self.server.pull_all(files)?;
        self.server.change(&head.path, self.version + 1, &head.before)?;
        let took = milliseconds(begun);
        let items = reports.iter().filter_map(|report| report["items"].as_array()).flatten();
        let weight = items.map(|item| match item["severity"].as_u64() {
            Some(1) | None => 1.0,
            Some(2) => 0.2,
            _ => 0.0,
        });
        Ok((took, weight.sum()))
    }
}

fn milliseconds(begun: Instant) -> f64 {
    begun.elapsed().as_secs_f64() * 1000.0
}

fn mean(all: &[f64]) -> f64 {
    all.iter().sum::<f64>() / f64::from(u32::try_from(all.len()).unwrap_or(u32::MAX))
}

fn median(all: &[f64]) -> f64 {
    let mut all = all.to_vec();
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}
