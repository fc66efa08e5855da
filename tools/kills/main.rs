//! Kills sessions, supervisors, servers and callers at random times, with the real server.
//!
//! `cargo build --release && cargo run --release --features tools --example kills -- [--calls N] [--seed S] [--server-command SCRIPT] FOLDER`
//!
//! Three callers run at a time. A caller that is not killed must return the right answer, as given before by a process without a
//! session, or a documented error; and a minute after the last call no process, socket or temporary file may remain. Exit code 1
//! when anything is wrong.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the report is what this program is for")]

#[path = "../support/mod.rs"]
mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use support::program::Lanser;

const USAGE: &str = "usage: kills [--calls N] [--seed S] [--server-command SCRIPT] [--python EXE] FOLDER";

/// The number of concurrent callers.
const CALLERS: usize = 3;

/// The idle timeout of the sessions, in seconds.
const IDLE_TIMEOUT_SECONDS: &str = "20";

/// Time limit for the cleanup after the last call.
const CLEANUP_TIMEOUT: Duration = Duration::from_secs(60);

/// The exit codes that a killed server or session may cause.
const ALLOWED_CODES: [i32; 4] = [64, 65, 66, 74];

struct Harness {
    lanser: Lanser,
    root: PathBuf,
    /// The folder for all temporary files; it is in the environment of every process that the harness starts.
    temporary: tempfile::TempDir,
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

fn run() -> Result<usize, String> {
    let (mut calls, mut seed, mut script, mut python, mut folder) =
        (500, 1_u64, None, "python3".to_owned(), None);
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| USAGE.to_owned());
        match word.as_str() {
            "--calls" => calls = value()?.parse().map_err(|_| USAGE.to_owned())?,
            "--seed" => seed = value()?.parse().map_err(|_| USAGE.to_owned())?,
            "--server-command" => script = Some(PathBuf::from(value()?)),
            "--python" => python = value()?,
            other if other.starts_with('-') => return Err(USAGE.to_owned()),
            path => folder = Some(path.to_owned()),
        }
    }
    let absolute =
        |path: &Path| fs::canonicalize(path).map_err(|error| format!("{}: {error}", path.display()));
    let root = absolute(Path::new(&folder.ok_or(USAGE)?))?;
    let (program, _) = support::program::beside_example()?;
    let script = script
        .map_or_else(|| support::program::found_script(&program, "pyright"), |script| absolute(&script))?;
    let [python, _, _] = support::program::interpreter(&python)?;
    let temporary = tempfile::tempdir().map_err(|error| error.to_string())?;
    for folder in ["run", "tmp", "cache"] {
        fs::create_dir(temporary.path().join(folder)).map_err(|error| error.to_string())?;
    }
    let lanser = Lanser {
        program,
        cache: temporary.path().join("cache"),
        python,
        script,
        server: "pyright".to_owned(),
    };
    Harness { lanser, root, temporary }.kill(calls, seed)
}

impl Harness {
    fn kill(&self, calls: usize, mut seed: u64) -> Result<usize, String> {
        let mut random = move |below: usize| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            usize::try_from(seed % below as u64).unwrap_or_default()
        };
        let sources = support::positions::sources(&self.root);
        let asked: Vec<Vec<String>> = support::positions::chosen(&sources, 6)
            .iter()
            .zip(["hover", "def", "refs"].iter().cycle())
            .map(|(place, verb)| {
                let relative = &sources[place.file].relative;
                vec![(*verb).to_owned(), support::program::selector(relative, place.line, place.scalar)]
            })
            .collect();
        let right: Vec<_> = asked
            .iter()
            .map(|words| self.finish(self.start(words, false)?))
            .collect::<Result<_, String>>()?;
        let (mut wrong, mut killed, mut outcomes) = (0, BTreeMap::new(), BTreeMap::new());
        for round in 0..calls.div_ceil(CALLERS) {
            let numbers: Vec<usize> = (0..CALLERS).map(|_| random(asked.len())).collect();
            let mut callers = numbers
                .iter()
                .map(|number| self.start(&asked[*number], true))
                .collect::<Result<Vec<_>, _>>()?;
            std::thread::sleep(Duration::from_millis(random(1500) as u64));
            let victims = self.processes();
            let kind = ["session", "supervisor", "server", "caller"][random(4)];
            let of_kind: Vec<u32> =
                victims.iter().filter(|(_, of)| *of == kind).map(|(pid, _)| *pid).collect();
            let victim = if of_kind.is_empty() { None } else { Some(of_kind[random(of_kind.len())]) };
            if let Some(victim) = victim {
                *killed.entry(kind).or_insert(0) += 1;
                let _ = Command::new("kill").args(["-KILL", &victim.to_string()]).status();
            }
            for (number, caller) in numbers.into_iter().zip(callers.drain(..)) {
                let is_victim = victim == Some(caller.id());
                let (code, id) = self.finish(caller)?;
                let outcome = match code {
                    None if is_victim => "killed",
                    code if (code, &id) == (right[number].0, &right[number].1) => "right",
                    Some(code) if ALLOWED_CODES.contains(&code) => "documented error",
                    _ => {
                        wrong += 1;
                        println!(
                            "WRONG in round {round}: {:?} after a killed {kind}: exit {code:?}, {id}",
                            asked[number]
                        );
                        "wrong"
                    }
                };
                *outcomes.entry(outcome).or_insert(0) += 1;
            }
        }
        println!("calls: {outcomes:?}; killed: {killed:?}");
        let began = Instant::now();
        loop {
            let (processes, files) = (self.processes(), self.files());
            if processes.is_empty() && files.is_empty() {
                println!("nothing is left {} s after the last call", began.elapsed().as_secs());
                return Ok(wrong);
            }
            if began.elapsed() > CLEANUP_TIMEOUT {
                println!("LEFT after {} s: {processes:?} {files:?}", CLEANUP_TIMEOUT.as_secs());
                return Ok(wrong + 1);
            }
            std::thread::sleep(Duration::from_millis(500));
        }
    }

    fn start(&self, words: &[String], session: bool) -> Result<Child, String> {
        let words: Vec<&str> = words.iter().map(String::as_str).chain(["--no-cache"]).collect();
        let mut command = self.lanser.command(&self.root, &words);
        command
            .env("XDG_RUNTIME_DIR", self.temporary.path().join("run"))
            .env("TMPDIR", self.temporary.path().join("tmp"))
            .env("LANSER_SESSION", if session { "on" } else { "off" })
            .env("LANSER_SESSION_IDLE", IDLE_TIMEOUT_SECONDS)
            .stderr(Stdio::null());
        command.spawn().map_err(|error| format!("lanser: {error}"))
    }

    /// The exit code and the id of the bundle.
    fn finish(&self, caller: Child) -> Result<(Option<i32>, String), String> {
        let output = caller.wait_with_output().map_err(|error| error.to_string())?;
        let bundle: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        Ok((output.status.code(), bundle["bundleId"].as_str().unwrap_or("no bundle").to_owned()))
    }

    /// Every process whose environment or command line contains the folder, with its kind.
    fn processes(&self) -> Vec<(u32, &'static str)> {
        let ours = self.temporary.path().as_os_str().as_encoded_bytes();
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let mut found = Vec::new();
        for pid in pids {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let names = |bytes: &[u8]| bytes.windows(ours.len()).any(|window| window == ours);
            if !names(&environment) && !names(&words) {
                continue;
            }
            let words = String::from_utf8_lossy(&words).replace('\0', " ");
            let kind = match () {
                () if words.contains("__session") && words.contains("proper") => "session",
                () if words.contains("__session") => "supervisor",
                () if words.contains("langserver") && !words.contains("--server-command") => "server",
                () if words.contains("--no-cache") => "caller",
                () => "other",
            };
            found.push((pid, kind));
        }
        found
    }

    /// The files in the runtime folder and the temporary folder.
    fn files(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut folders = vec![self.temporary.path().join("run/lanser"), self.temporary.path().join("tmp")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                found.push(entry.path());
                if entry.path().is_dir() {
                    folders.push(entry.path());
                }
            }
        }
        found
    }
}
