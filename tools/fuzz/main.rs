//! Feeds random and mutated input to every parser of untrusted input, for a given processor time.
//!
//! `cargo run --profile measure --features tools --example fuzz -- [--seconds N] [--seed N] [--target NAME]… [FOLDER…]`
//!
//! The targets are everything that reads what an untrusted checkout, server or caller wrote: see [`targets::TARGETS`]. Each runs for
//! that long. The `.py`, `.json`, `.jsonl` and `.diff` files of the folders are mutated. A panic, an input that takes longer than five
//! seconds, and more than 500 MB of memory are failures; the message names the seed that repeats the input.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the report is what this program is for")]

mod inputs;
mod targets;

use std::panic::AssertUnwindSafe;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use targets::{Seeds, TARGETS};

const INPUT_TIMEOUT: Duration = Duration::from_secs(5);
const MEMORY_LIMIT_BYTES: u64 = 500 << 20;

struct Random(u64);

impl Random {
    fn below(&mut self, count: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % count.max(1) as u64).unwrap_or_default()
    }

    fn pick<'p>(&mut self, list: &[&'p str]) -> &'p str {
        list[self.below(list.len())]
    }
}

fn main() -> ExitCode {
    let (mut seconds, mut seed, mut chosen, mut seeds) = (60, 1, Vec::new(), Seeds::default());
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut number = || args.next().and_then(|text| text.parse().ok()).unwrap_or_default();
        match arg.as_str() {
            "--seconds" => seconds = number(),
            "--seed" => seed = number(),
            "--target" => chosen.extend(args.next()),
            folder => collect(std::path::Path::new(folder), &mut seeds),
        }
    }
    let targets: Vec<_> = TARGETS
        .iter()
        .filter(|(name, _)| chosen.is_empty() || chosen.iter().any(|chosen| chosen == name))
        .collect();
    if targets.is_empty() {
        eprintln!("there is no such target; there are {}", TARGETS.map(|(name, _)| name).join(", "));
        return ExitCode::from(2);
    }
    for (name, feed) in targets {
        let mut random = Random(seed);
        let (mut runs, mut slowest) = (0_u64, Duration::ZERO);
        let mut clock = CpuClock::new();
        while clock.total() < Duration::from_secs(seconds) {
            let at = random.0;
            let start = Instant::now();
            if std::panic::catch_unwind(AssertUnwindSafe(|| feed(&mut random, &seeds))).is_err() {
                eprintln!("{name}: the input of --seed {at} failed");
                return ExitCode::FAILURE;
            }
            runs += 1;
            let spent = clock.spent_since(start);
            slowest = slowest.max(spent);
            if spent > INPUT_TIMEOUT {
                eprintln!("{name}: the input of --seed {at} took {spent:?}");
                return ExitCode::FAILURE;
            }
        }
        let peak = peak_memory();
        println!(
            "{name}: {runs} inputs in {seconds} s of processor time, the slowest {slowest:?}, at most {} MB",
            peak >> 20
        );
        if peak > MEMORY_LIMIT_BYTES {
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// Measures the time that inputs take: the time on the clock, and for the longer ones the processor time, so that a machine that
/// does other work does not make an input slow.
struct CpuClock {
    /// When the clock was made, in both times.
    began: (Instant, Option<Duration>),
    /// The processor time at an instant that is at most [`Self::PRECISION`] before the current input.
    used: Option<Duration>,
    at: Instant,
}

impl CpuClock {
    const PRECISION: Duration = Duration::from_millis(100);

    fn new() -> Self {
        let (at, used) = (Instant::now(), cpu_time());
        Self { began: (at, used), used, at }
    }

    /// The processor time since the clock was made, up to [`Self::PRECISION`]; the time on the clock if that is not known.
    fn total(&self) -> Duration {
        match (self.began.1, self.used) {
            (Some(before), Some(now)) => now.saturating_sub(before),
            _ => self.began.0.elapsed(),
        }
    }

    /// The time that an input took which began at `start` and has just ended.
    fn spent_since(&mut self, start: Instant) -> Duration {
        let spent = start.elapsed();
        if self.at.elapsed() < Self::PRECISION {
            return spent;
        }
        let before = self.used;
        (self.at, self.used) = (Instant::now(), cpu_time());
        match (before, self.used) {
            (Some(before), Some(now)) => spent.min(now.saturating_sub(before)),
            _ => spent,
        }
    }
}

/// The processor time of the main thread, where the operating system reports it.
fn cpu_time() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/self/schedstat").ok()?;
    text.split(' ').next()?.parse().ok().map(Duration::from_nanos)
}

fn collect(folder: &std::path::Path, seeds: &mut Seeds) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let list = match path.extension().and_then(|extension| extension.to_str()) {
            _ if path.is_dir() => {
                collect(&path, seeds);
                continue;
            }
            Some("py") => &mut seeds.sources,
            Some("json") => &mut seeds.json,
            Some("jsonl") => &mut seeds.lines,
            Some("diff" | "patch") => &mut seeds.diffs,
            _ => continue,
        };
        list.extend(std::fs::read_to_string(path));
    }
}

/// The peak memory of this process in bytes, where the operating system reports it.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kilobytes.unwrap_or_default() << 10
}
