//! Feeds random and mutated input to every parser of untrusted input, for a given time.
//!
//! `cargo run --profile measure --features tools --example fuzz -- [--seconds N] [--seed N] [--target NAME]… [FOLDER…]`
//!
//! The targets are the selector parser, relocation, LSP frames, JSON, traces, patches, transaction journals and virtual
//! environments; each runs for that long. The `.py`, `.json`, `.jsonl` and `.diff` files of the folders are mutated. A panic ends the
//! program; an input that takes longer than five seconds, or more than 500 MB of memory, is a failure.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the report is what this program is for")]

mod inputs;
mod targets;

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
        let (began, mut random) = (Instant::now(), Random(seed));
        let (mut runs, mut slowest) = (0_u64, Duration::ZERO);
        while began.elapsed() < Duration::from_secs(seconds) {
            let at = random.0;
            let start = Instant::now();
            feed(&mut random, &seeds);
            runs += 1;
            slowest = slowest.max(start.elapsed());
            if start.elapsed() > INPUT_TIMEOUT {
                eprintln!("{name}: the input of seed {at} took {:?}", start.elapsed());
                return ExitCode::FAILURE;
            }
        }
        let peak = peak_memory();
        println!("{name}: {runs} inputs in {seconds} s, the slowest {slowest:?}, at most {} MB", peak >> 20);
        if peak > MEMORY_LIMIT_BYTES {
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
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
