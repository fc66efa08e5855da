//! Measures how well the score of an edit predicts the outcome of tests, with seeded mutants of packages and scripted edits.
//!
//! `cargo build --release && cargo run --release --features tools --example reward_experiment -- --python EXE [--starts N] [--seed S] [--server-command SCRIPT] FOLDER…`
//!
//! Each FOLDER is a package with `src` and `tests`, whose tests pass under EXE. A start is the package with two mutants of one
//! family in one file, which its tests detect. Each start gets five edits: both repaired (correct), one repaired (partial), a
//! comment (noise), a comment that suppresses diagnostics at both places (suppression), and empty bodies for the functions around
//! both (stub). Whether an edit is good is decided by the package's own tests, run on each. Printed for each family is the AUC of
//! the score against that, raw and guarded, with the share of starts in which the checker sees the mutants at all.
//!
//! Four scores are compared: the raw formula; the nine rules of the guarded formula alone; with what became of the failing
//! expressions; and with the types that the server reveals, which is what `lanser score` prints. The parts are taken from one
//! episode, so all four are about the same measurements.
//!
//! With `--edits FILE…` instead of folders, sets of edits as in `fixtures/reward` are scored, and what each score pays is
//! printed by the kind of edit.
//!
//! The edits are scripted, not made by a model. Checkers see these mutants far more often than natural bugs.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the report is what this program is for")]

mod ablation;
mod edits;
mod mutants;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use ablation::Scores;
use mutants::{Family, Mutant, Random};
use serde_json::Value;

const USAGE: &str = "usage: reward_experiment --python EXE [--starts N] [--seed S] [--server-command SCRIPT] FOLDER… | --edits FILE…";

/// The edits of each start.
const EDITS: [&str; 5] = ["correct", "partial", "noise", "suppression", "stub"];

/// How many candidates are tried for a start before a family is abandoned.
const MAX_TRIES: usize = 400;

struct Experiment {
    lanser: PathBuf,
    python: Option<PathBuf>,
    script: Option<String>,
    temporary: tempfile::TempDir,
}

/// An edited start with its measurements.
struct EditedStart {
    family: Family,
    end: &'static str,
    good: bool,
    scores: Scores,
    /// Whether the checker saw the mutants.
    visible: bool,
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
    let (mut starts, mut seed, mut python, mut script, mut folders) = (10, 1, None, None, Vec::new());
    let mut sets = false;
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(USAGE.to_owned());
        match word.as_str() {
            "--starts" => starts = value()?.parse().map_err(|_| USAGE.to_owned())?,
            "--seed" => seed = value()?.parse().map_err(|_| USAGE.to_owned())?,
            "--python" => python = Some(PathBuf::from(value()?)),
            "--edits" => sets = true,
            "--server-command" => script = Some(value()?),
            word if word.starts_with("--") => return Err(USAGE.to_owned()),
            folder => folders.push(PathBuf::from(folder)),
        }
    }
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let lanser = own.ancestors().nth(2).ok_or("this program is nowhere")?.join("lanser");
    let temporary = tempfile::tempdir().map_err(|error| error.to_string())?;
    if folders.is_empty() || (python.is_none() && !sets) {
        return Err(USAGE.to_owned());
    }
    let world = Experiment { lanser, python, script, temporary };
    if sets {
        return edits::run(&world, &folders);
    }
    let mut all = Vec::new();
    for (number, folder) in folders.iter().enumerate() {
        for family in Family::ALL {
            let mut random = Random::new(seed + 1000 * number as u64 + family as u64);
            all.extend(world.family(folder, family, starts, &mut random)?);
        }
    }
    report(&all);
    Ok(())
}

impl Experiment {
    /// Starts of one family in a package, each with all edits.
    fn family(
        &self,
        folder: &Path,
        family: Family,
        starts: usize,
        random: &mut Random,
    ) -> Result<Vec<EditedStart>, String> {
        let base = self.copy(folder, "start")?;
        if !self.passes(&base)? {
            return Err(format!("the tests of {} do not pass as they are", folder.display()));
        }
        let sources = mutants::sources(&base.join("src"))?;
        let (mut ended, mut found, mut tries) = (Vec::new(), 0, 0);
        while found < starts && tries < MAX_TRIES {
            tries += 1;
            let (path, text) = &sources[random.below(sources.len())];
            let Some((first, second)) = mutants::pair(text, family, random) else { continue };
            let (broken, half) = (mutants::apply(text, &[&first, &second]), mutants::apply(text, &[&second]));
            fs::write(path, &broken).map_err(|error| error.to_string())?;
            if !self.passes(&base)? {
                found += 1;
                eprintln!(
                    "{} {family:?} {found}: lines {} and {}",
                    folder.display(),
                    first.line + 1,
                    second.line + 1
                );
                ended.extend(self.ends(&base, path, text, &broken, &half, [&first, &second], family)?);
            }
            fs::write(path, text).map_err(|error| error.to_string())?;
        }
        Ok(ended)
    }

    #[expect(clippy::too_many_arguments, reason = "a start is all of these")]
    fn ends(
        &self,
        base: &Path,
        path: &Path,
        text: &str,
        broken: &str,
        half: &str,
        mutants: [&Mutant; 2],
        family: Family,
    ) -> Result<Vec<EditedStart>, String> {
        let inside = path.strip_prefix(base).map_err(|error| error.to_string())?.to_owned();
        let texts = [
            text.to_owned(),
            half.to_owned(),
            format!("{broken}\n# looked at\n"),
            mutants::hidden(broken, mutants),
            mutants::stubbed(broken, mutants),
        ];
        let mut heads = Vec::new();
        for (end, text) in EDITS.iter().zip(&texts) {
            let head = self.copy(base, end)?;
            fs::write(head.join(&inside), text).map_err(|error| error.to_string())?;
            heads.push(head);
        }
        let scores = self.scores(base, &heads)?;
        let visible = scores[0].raw != 0.0;
        let mut ended = Vec::new();
        for (at, end) in EDITS.into_iter().enumerate() {
            let good = self.passes(&heads[at])?;
            ended.push(EditedStart { family, end, good, scores: scores[at], visible });
        }
        Ok(ended)
    }

    /// A copy of a package in the temporary folder.
    fn copy(&self, folder: &Path, name: &str) -> Result<PathBuf, String> {
        let place = self.temporary.path().join(name);
        let _ = fs::remove_dir_all(&place);
        let done = Command::new("cp").arg("-r").arg(folder).arg(&place).status();
        done.is_ok_and(|status| status.success()).then_some(place).ok_or_else(|| "cp failed".to_owned())
    }

    /// Whether a package's own tests pass.
    fn passes(&self, folder: &Path) -> Result<bool, String> {
        let python = self.python.as_deref().ok_or(USAGE)?;
        let status = Command::new("timeout")
            .arg("60")
            .arg(python)
            .args(["-B", "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "tests"])
            .current_dir(folder)
            .env("PYTHONPATH", "src")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        status.map(|status| status.success()).map_err(|error| format!("the tests cannot be run: {error}"))
    }

    /// All scores of heads; a missing score counts as 0.
    fn scores(&self, base: &Path, heads: &[PathBuf]) -> Result<Vec<Scores>, String> {
        let raw = self.episodes(base, heads, "rl-csf-v1")?;
        let guarded = self.episodes(base, heads, "rl-csf-guarded-v1")?;
        Ok(raw.iter().zip(&guarded).map(|(raw, guarded)| Scores::of(raw, guarded)).collect())
    }

    /// The episodes of heads.
    fn episodes(&self, base: &Path, heads: &[PathBuf], preset: &str) -> Result<Vec<Value>, String> {
        let mut command = Command::new(&self.lanser);
        command.args([
            "score",
            "--json",
            "--no-session",
            "--no-cache",
            "--base",
            "WORKTREE",
            "--preset",
            preset,
        ]);
        if let Some(python) = &self.python {
            command.arg("--python").arg(python);
        }
        command.arg("-C").arg(base);
        if let Some(script) = &self.script {
            command.args(["--server-command", script]);
        }
        for head in heads {
            command.arg("--head").arg(head);
        }
        let output = command.output().map_err(|error| format!("lanser: {error}"))?;
        let lines = String::from_utf8_lossy(&output.stdout).into_owned();
        let episodes: Option<Vec<Value>> =
            lines.lines().map(|line| serde_json::from_str(line).ok()).collect();
        let episodes = episodes.filter(|episodes| episodes.len() == heads.len());
        episodes.ok_or_else(|| {
            format!("lanser printed no scores: {lines} {}", String::from_utf8_lossy(&output.stderr))
        })
    }
}

/// The probability that a good edit scores higher than a bad one, ties counted half. `None` unless there are both.
fn auc(ends: &[&EditedStart], score: impl Fn(&EditedStart) -> f64) -> Option<f64> {
    let (good, bad): (Vec<&&EditedStart>, Vec<&&EditedStart>) = ends.iter().partition(|end| end.good);
    let mut sum = 0.0;
    for one in &good {
        for other in &bad {
            let (a, b) = (score(one), score(other));
            sum += if a > b {
                1.0
            } else if a == b {
                0.5
            } else {
                0.0
            };
        }
    }
    let pairs = good.len() * bad.len();
    (pairs > 0).then(|| sum / pairs as f64)
}

fn report(all: &[EditedStart]) {
    let told = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.2}"));
    println!("| family | starts | seen by the checker | AUC {} |", Scores::NAMES.join(" | AUC "));
    println!("|---|---|---|{}", "---|".repeat(Scores::NAMES.len()));
    for family in Family::ALL {
        let ends: Vec<&EditedStart> = all.iter().filter(|end| end.family == family).collect();
        let corrects: Vec<&&EditedStart> = ends.iter().filter(|end| end.end == "correct").collect();
        let seen = corrects.iter().filter(|end| end.visible).count();
        let areas: Vec<String> =
            (0..Scores::NAMES.len()).map(|at| told(auc(&ends, |end| end.scores.all()[at]))).collect();
        println!("| {} | {} | {seen} | {} |", family.name(), corrects.len(), areas.join(" | "));
    }
    let names = Scores::NAMES.map(|name| format!("{name}: mean, paid"));
    println!("\n| end | number | tests pass | {} |", names.join(" | "));
    println!("|---|---|---|{}", "---|".repeat(names.len()));
    let mut by_end: BTreeMap<&str, Vec<&EditedStart>> = BTreeMap::new();
    for end in all {
        by_end.entry(end.end).or_default().push(end);
    }
    for end in EDITS {
        let Some(ends) = by_end.get(end) else { continue };
        let cells: Vec<String> = (0..Scores::NAMES.len())
            .map(|at| {
                let scores = || ends.iter().map(|end| end.scores.all()[at]);
                let mean = scores().sum::<f64>() / ends.len() as f64;
                format!("{mean:.2}, {}", scores().filter(|score| *score > 0.0).count())
            })
            .collect();
        let good = ends.iter().filter(|end| end.good).count();
        println!("| {end} | {} | {good} | {} |", ends.len(), cells.join(" | "));
    }
}
