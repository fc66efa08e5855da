//! Whole `lanser` processes with a session of their own, and what that session costs while nobody asks.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use super::lanser::Lanser;

/// For how long the idle session is watched.
const WATCHED: Duration = Duration::from_secs(5);

/// How long the session may first end what it began for the last question.
const SETTLED: Duration = Duration::from_secs(2);

/// After how many seconds a session leaves by itself, should this program be killed.
const ABANDONED: &str = "300";

/// Milliseconds of a tick in `/proc/PID/stat`: `USER_HZ` is 100 wherever Linux runs.
const TICK: u64 = 10;

/// How a question is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// Of the session, with `--no-cache`.
    Warm,
    /// With the memo, the session running.
    Memo,
    /// With the memo and `LANSER_SESSION=off`.
    MemoAlone,
    /// With `--no-cache` and `LANSER_SESSION=off`.
    Cold,
}

/// The program with a runtime folder that nobody else has. Dropped, it ends the sessions there.
#[derive(Debug)]
pub(crate) struct Sessions<'a> {
    lanser: &'a Lanser,
    runtime: TempDir,
}

/// A whole process.
#[derive(Debug)]
pub(crate) struct Run {
    /// Milliseconds from before it was started until its output was read and it was gone.
    pub(crate) took: f64,
    /// Where the answer came from, as its bundle says.
    pub(crate) road: String,
}

impl<'a> Sessions<'a> {
    /// A runtime folder without a session. It is a short path, because those of sockets are bounded.
    pub(crate) fn new(lanser: &'a Lanser) -> Result<Self, String> {
        let runtime = tempfile::tempdir().map_err(|error| format!("there is no runtime folder: {error}"))?;
        Ok(Self { lanser, runtime })
    }

    /// Asks a question in a process of its own.
    pub(crate) fn ask(&self, root: &Path, words: &[&str], way: Way) -> Result<Run, String> {
        let mut command = self.lanser.command(root, words);
        let session = if matches!(way, Way::Warm | Way::Memo) { "on" } else { "off" };
        command
            .env("XDG_RUNTIME_DIR", self.runtime.path())
            .env("LANSER_SESSION", session)
            .env("LANSER_SESSION_IDLE", ABANDONED);
        if matches!(way, Way::Warm | Way::Cold) {
            command.arg("--no-cache");
        }
        let begun = Instant::now();
        let output = command.output().map_err(|error| format!("lanser: {error}"))?;
        let took = begun.elapsed().as_secs_f64() * 1000.0;
        let bundle: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let road = bundle["meta"]["volatile"]["served_from"].as_str().unwrap_or("unknown").to_owned();
        match output.status.code() {
            Some(0 | 3) => Ok(Run { took, road }),
            code => {
                let said = String::from_utf8_lossy(&output.stderr).into_owned();
                Err(format!("lanser {}: exit {code:?}: {} {said}", words.join(" "), bundle["error"]))
            }
        }
    }

    /// What the sessions use of the machine, as lines for the report: memory now, and processor time while idle.
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
        std::thread::sleep(SETTLED);
        let used = |pid: Option<u64>| pid.map(|pid| (ticks(pid), switches(pid)));
        let before: Vec<_> = processes.iter().map(|(_, pid)| used(*pid)).collect();
        std::thread::sleep(WATCHED);
        for ((name, pid), before) in processes.iter().zip(before) {
            let (Some(pid), Some((ticks_before, switches_before))) = (*pid, before) else {
                lines.push(format!("  {name}: unknown"));
                continue;
            };
            lines.push(format!(
                "  {name} {pid}: {:.1} MB (peak {:.1}), in {} idle seconds {} ms of processor time, woken {} times",
                kilobytes(pid, "VmRSS:") as f64 / 1024.0,
                kilobytes(pid, "VmHWM:") as f64 / 1024.0,
                WATCHED.as_secs(),
                ticks(pid).saturating_sub(ticks_before) * TICK,
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

/// Processor time used so far, user and system, in ticks; 0 for a process that is gone.
fn ticks(pid: u64) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The program's name may hold spaces and parentheses; after it comes the third field.
    let fields = text.rsplit_once(')').map_or("", |(_, fields)| fields);
    fields.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum()
}

/// How often the threads of a process have waited for something and been woken.
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
