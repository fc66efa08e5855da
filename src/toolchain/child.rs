//! Short-lived child processes: `node` to query its version, and the installers.
//!
//! They stay in the process group of lanser, so that Ctrl-C at the terminal ends them too.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Read};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How many of the last lines of stdout and of stderr are kept, each separately so that a long stdout does not displace the
/// error.
const TAIL_LINES: usize = 8;
/// The longest line of output that is kept.
const LINE_LIMIT_BYTES: u64 = 2_000;
/// How long to wait for the output of an exited child: a grandchild may hold the pipes open.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(500);

/// The command of a child process.
pub(super) struct ChildCommand<'r> {
    /// The path of the program; PATH is not searched.
    pub(super) program: &'r Path,
    pub(super) arguments: &'r [&'r str],
    /// Its working folder.
    pub(super) folder: &'r Path,
    /// Its whole environment.
    pub(super) environment: &'r [(OsString, OsString)],
    /// The child is killed after this time.
    pub(super) timeout: Duration,
}

/// Why a child process failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum ChildError {
    #[error("cannot be started: {0}")]
    Start(std::io::Error),
    #[error("{status}{}", indented(tail))]
    Failed { status: ExitStatus, tail: Vec<String> },
    #[error("did not finish within {} s and was killed{}", timeout.as_secs(), indented(tail))]
    TimedOut { timeout: Duration, tail: Vec<String> },
}

fn indented(tail: &[String]) -> String {
    tail.iter().map(|line| format!("\n    {line}")).collect()
}

/// Runs a child until it exits, and returns the last lines of its stdout.
pub(super) fn run(run: &ChildCommand<'_>) -> Result<Vec<String>, ChildError> {
    let mut child = Command::new(run.program)
        .args(run.arguments)
        .current_dir(run.folder)
        .env_clear()
        .envs(run.environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(ChildError::Start)?;
    let (out, err) = (OutputTail::default(), OutputTail::default());
    let readers = [
        child.stdout.take().map(|pipe| read_lines(pipe, out.clone())),
        child.stderr.take().map(|pipe| read_lines(pipe, err.clone())),
    ];
    let started = Instant::now();
    let mut pause = Duration::from_millis(2);
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break Some(status),
            Ok(None) if started.elapsed() < run.timeout => {
                thread::sleep(pause);
                pause = (pause * 3 / 2).min(Duration::from_millis(100));
            }
            Ok(None) | Err(_) => {
                // Fails only if it has just exited.
                let _ = child.kill();
                let _ = child.wait();
                break None;
            }
        }
    };
    let exited = Instant::now();
    while readers.iter().flatten().any(|reader| !reader.is_finished()) && exited.elapsed() < DRAIN_TIMEOUT {
        thread::sleep(Duration::from_millis(1));
    }
    let tail = || [out.lines(), err.lines()].concat();
    match status {
        Some(status) if status.success() => Ok(out.lines()),
        Some(status) => Err(ChildError::Failed { status, tail: tail() }),
        None => Err(ChildError::TimedOut { timeout: run.timeout, tail: tail() }),
    }
}

/// The last lines of one stream.
#[derive(Clone, Default)]
struct OutputTail(Arc<Mutex<VecDeque<String>>>);

impl OutputTail {
    fn push(&self, line: String) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == TAIL_LINES {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

/// Reads a pipe to its end, so that the child never blocks on it.
fn read_lines(pipe: impl Read + Send + 'static, tail: OutputTail) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        let mut pipe = BufReader::new(pipe);
        let mut line = Vec::new();
        loop {
            line.clear();
            match pipe.by_ref().take(LINE_LIMIT_BYTES).read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) => {
                    let text = String::from_utf8_lossy(&line);
                    let text = text.trim_end();
                    if !text.is_empty() {
                        tail.push(text.to_owned());
                    }
                }
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str, timeout: Duration) -> Result<Vec<String>, ChildError> {
        run(&ChildCommand {
            program: Path::new("/bin/sh"),
            arguments: &["-c", script],
            folder: Path::new("/"),
            environment: &[("PATH".into(), "/usr/bin:/bin".into()), ("A".into(), "1".into())],
            timeout,
        })
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn output_and_environment() {
        assert_eq!(sh("echo a$A$HOME; echo b >&2; echo c", LONG).unwrap(), ["a1", "c"]);
    }

    #[test]
    fn a_failure_has_the_last_lines_of_both_streams() {
        let error =
            sh("i=0; while [ $i -lt 5000 ]; do echo $i; i=$((i+1)); done; echo why >&2; exit 3", LONG);
        let text = error.unwrap_err().to_string();
        assert!(text.starts_with("exit status: 3\n"), "{text}");
        assert!(text.contains("why") && text.contains("4999") && !text.contains("\n    1000\n"), "{text}");
    }

    #[test]
    fn a_hanging_child_is_killed_and_its_pipes_are_not_waited_for() {
        let started = Instant::now();
        let error = sh("echo begun; sleep 30 & wait", Duration::from_millis(300)).unwrap_err();
        assert!(matches!(error, ChildError::TimedOut { .. }), "{error}");
        assert!(error.to_string().contains("begun"), "{error}");
        assert!(started.elapsed() < Duration::from_secs(20));
    }

    #[test]
    fn a_missing_program_cannot_be_started() {
        let missing = ChildCommand {
            program: Path::new("/nowhere/at/all"),
            arguments: &[],
            folder: Path::new("/"),
            environment: &[],
            timeout: LONG,
        };
        assert!(matches!(run(&missing), Err(ChildError::Start(_))));
    }
}
