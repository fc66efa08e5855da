//! Whole `lanser` processes with a private session, and the cost of that session while idle.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::program::Lanser;

/// How long the idle session is observed.
const IDLE_OBSERVATION: Duration = Duration::from_secs(5);

/// Pause before the observation, so that the session can finish its work for the last request.
const SETTLE_TIME: Duration = Duration::from_secs(2);

/// The idle timeout of the session in seconds, in case this program is killed.
const IDLE_TIMEOUT_SECONDS: &str = "300";

/// Milliseconds per tick in `/proc/PID/stat`: `USER_HZ` is 100 wherever Linux runs.
const TICK_MILLISECONDS: u64 = 10;

/// The path that answers a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnswerPath {
    /// The session, with `--no-cache`.
    Warm,
    /// The memo, with a running session.
    Memo,
    /// The memo, with `LANSER_SESSION=off`.
    MemoAlone,
    /// A cold process, with `--no-cache` and `LANSER_SESSION=off`.
    Cold,
}

/// The program with a private runtime folder. Dropping it ends the sessions there.
#[derive(Debug)]
pub(crate) struct Sessions<'a> {
    lanser: &'a Lanser,
    runtime: TempDir,
}

/// The result of a process.
#[derive(Debug)]
pub(crate) struct Run {
    /// Milliseconds from its start until its output was read and it had ended.
    pub(crate) took: f64,
    /// Where the answer came from, according to its bundle.
    pub(crate) served_from: String,
}

impl<'a> Sessions<'a> {
    /// An empty runtime folder with a short path, because the length of socket paths is limited.
    pub(crate) fn new(lanser: &'a Lanser) -> Result<Self, String> {
        let runtime = tempfile::tempdir().map_err(|error| format!("there is no runtime folder: {error}"))?;
        Ok(Self { lanser, runtime })
    }

    /// Sends a request in a separate process.
    pub(crate) fn ask(&self, root: &Path, words: &[&str], path: AnswerPath) -> Result<Run, String> {
        let mut command = self.lanser.command(root, words);
        let session = if matches!(path, AnswerPath::Warm | AnswerPath::Memo) { "on" } else { "off" };
        command
            .env("XDG_RUNTIME_DIR", self.runtime.path())
            .env("LANSER_SESSION", session)
            .env("LANSER_SESSION_IDLE", IDLE_TIMEOUT_SECONDS);
        if matches!(path, AnswerPath::Warm | AnswerPath::Cold) {
            command.arg("--no-cache");
        }
        let begun = Instant::now();
        let output = command.output().map_err(|error| format!("lanser: {error}"))?;
        let took = begun.elapsed().as_secs_f64() * 1000.0;
        let bundle: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let served_from = bundle["meta"]["volatile"]["served_from"].as_str().unwrap_or("unknown").to_owned();
        match output.status.code() {
            Some(0 | 3) => Ok(Run { took, served_from }),
            code => {
                let said = String::from_utf8_lossy(&output.stderr).into_owned();
                Err(format!("lanser {}: exit {code:?}: {} {said}", words.join(" "), bundle["error"]))
            }
        }
    }

    /// The resource use of the sessions, as lines for the report: current memory, and processor time while idle.
    pub(crate) fn idle(&self) -> Result<String, String> {
        let output = self.verb("status").output().map_err(|error| format!("lanser: {error}"))?;
        let seen: Value =
            serde_json::from_slice(&output.stdout).map_err(|error| format!("`session status`: {error}"))?;
        let mut processes = Vec::new();
        let mut lines = Vec::new();
        for session in seen.as_array().into_iter().flatten() {
            let status = &session["status"];
            processes.push(("session".to_owned(), session["pid"].as_u64()));
            processes.push(("supervisor".to_owned(), session["supervisor"].as_u64()));
            for server in status["servers"].as_array().into_iter().flatten() {
                let name = format!("server ({} documents)", server["documents"]);
                processes.push((name, server["pid"].as_u64()));
            }
            lines.push(format!("session after {} answers:", status["answered"]));
        }
        if processes.is_empty() {
            return Err("there is no session after all those questions".to_owned());
        }
        std::thread::sleep(SETTLE_TIME);
        let used = |pid: Option<u64>| pid.map(|pid| (ticks(pid), switches(pid)));
        let before: Vec<_> = processes.iter().map(|(_, pid)| used(*pid)).collect();
        std::thread::sleep(IDLE_OBSERVATION);
        for ((name, pid), before) in processes.iter().zip(before) {
            let (Some(pid), Some((ticks_before, switches_before))) = (*pid, before) else {
                lines.push(format!("  {name}: unknown"));
                continue;
            };
            lines.push(format!(
                "  {name} {pid}: {:.1} MB (peak {:.1}), in {} idle seconds {} ms of processor time, woken {} times",
                kilobytes(pid, "VmRSS:") as f64 / 1024.0,
                kilobytes(pid, "VmHWM:") as f64 / 1024.0,
                IDLE_OBSERVATION.as_secs(),
                ticks(pid).saturating_sub(ticks_before) * TICK_MILLISECONDS,
                switches(pid).saturating_sub(switches_before),
            ));
        }
        Ok(lines.join("\n"))
    }

    fn verb(&self, verb: &str) -> Command {
        let mut command = Command::new(&self.lanser.program);
        command
            .args(["session", verb, "--all", "--json"])
            .env("XDG_RUNTIME_DIR", self.runtime.path())
            .env("LANSER_CACHE_DIR", &self.lanser.cache)
            .stdin(Stdio::null());
        command
    }
}

impl Drop for Sessions<'_> {
    fn drop(&mut self) {
        match self.verb("stop").output() {
            Ok(output) if output.status.success() => {}
            Ok(output) => {
                eprintln!("`session stop`: {}: {}", output.status, String::from_utf8_lossy(&output.stderr));
            }
            Err(error) => eprintln!("`session stop`: {error}"),
        }
    }
}

/// Processor time used so far, user and system, in ticks; 0 for a process that has ended.
fn ticks(pid: u64) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The program's name may contain spaces and parentheses; the third field follows it.
    let fields = text.rsplit_once(')').map_or("", |(_, fields)| fields);
    fields.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum()
}

/// The number of voluntary context switches of a process: how often its threads waited for something.
fn switches(pid: u64) -> u64 {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let status = |thread: fs::DirEntry| fs::read_to_string(thread.path().join("status")).unwrap_or_default();
    threads.map(|thread| number(&status(thread), "voluntary_ctxt_switches:")).sum()
}

fn kilobytes(pid: u64, name: &str) -> u64 {
    number(&fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default(), name)
}

fn number(status: &str, name: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    line.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or_default()
}
