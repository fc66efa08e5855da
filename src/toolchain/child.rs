//! Short-lived child processes: node asked for its version, and the installers.
//!
//! They stay in the caller's process group, so that a Ctrl-C at the terminal ends them too.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Read};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How many last lines of stdout and of stderr are kept. Apart, so that a chatty stdout does not push the error out.
const TAIL_LINES: usize = 8;
/// The longest line of output that is kept, in bytes.
const LINE_LIMIT: u64 = 2_000;
/// How long the output of an ended child is waited for: a grandchild may hold the pipes open.
const DRAIN: Duration = Duration::from_millis(500);

/// What a child is to run with.
pub(super) struct Run<'r> {
    /// The program, found already: PATH is not searched.
    pub(super) program: &'r Path,
    pub(super) arguments: &'r [&'r str],
    /// Its working folder.
    pub(super) folder: &'r Path,
    /// Its whole environment.
    pub(super) environment: &'r [(OsString, OsString)],
    /// After this long it is killed.
    pub(super) deadline: Duration,
}

/// Why a child did not succeed.
#[derive(Debug, thiserror::Error)]
pub(super) enum ChildError {
    #[error("cannot be started: {0}")]
    Start(std::io::Error),
    #[error("{status}{}", indented(tail))]
    Failed { status: ExitStatus, tail: Vec<String> },
    #[error("did not end within {} s and was killed{}", deadline.as_secs(), indented(tail))]
    TimedOut { deadline: Duration, tail: Vec<String> },
}

fn indented(tail: &[String]) -> String {
    tail.iter().map(|line| format!("\n    {line}")).collect()
}

/// Runs a child to its end, and returns the last lines that it wrote to stdout.
pub(super) fn run(run: &Run<'_>) -> Result<Vec<String>, ChildError> {
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
    let (out, err) = (Tail::default(), Tail::default());
    let readers = [
        child.stdout.take().map(|pipe| read_lines(pipe, out.clone())),
        child.stderr.take().map(|pipe| read_lines(pipe, err.clone())),
    ];
    let started = Instant::now();
    let mut pause = Duration::from_millis(2);
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break Some(status),
            Ok(None) if started.elapsed() < run.deadline => {
                thread::sleep(pause);
                pause = (pause * 3 / 2).min(Duration::from_millis(100));
            }
            Ok(None) | Err(_) => {
                // Fails only if it has just ended.
                let _ = child.kill();
                let _ = child.wait();
                break None;
            }
        }
    };
    let ended = Instant::now();
    while readers.iter().flatten().any(|reader| !reader.is_finished()) && ended.elapsed() < DRAIN {
        thread::sleep(Duration::from_millis(1));
    }
    let tail = || [out.lines(), err.lines()].concat();
    match status {
        Some(status) if status.success() => Ok(out.lines()),
        Some(status) => Err(ChildError::Failed { status, tail: tail() }),
        None => Err(ChildError::TimedOut { deadline: run.deadline, tail: tail() }),
    }
}

/// The last lines of one stream.
#[derive(Clone, Default)]
struct Tail(Arc<Mutex<VecDeque<String>>>);

impl Tail {
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
fn read_lines(pipe: impl Read + Send + 'static, tail: Tail) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        let mut pipe = BufReader::new(pipe);
        let mut line = Vec::new();
        loop {
            line.clear();
            match pipe.by_ref().take(LINE_LIMIT).read_until(b'\n', &mut line) {
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

    fn sh(script: &str, deadline: Duration) -> Result<Vec<String>, ChildError> {
        run(&Run {
            program: Path::new("/bin/sh"),
            arguments: &["-c", script],
            folder: Path::new("/"),
            environment: &[("PATH".into(), "/usr/bin:/bin".into()), ("A".into(), "1".into())],
            deadline,
        })
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn output_and_environment() {
        assert_eq!(sh("echo a$A$HOME; echo b >&2; echo c", LONG).unwrap(), ["a1", "c"]);
    }

    #[test]
    fn a_failure_carries_the_last_lines_of_both_streams() {
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
    fn a_program_that_is_not_there() {
        let missing = Run {
            program: Path::new("/nowhere/at/all"),
            arguments: &[],
            folder: Path::new("/"),
            environment: &[],
            deadline: LONG,
        };
        assert!(matches!(run(&missing), Err(ChildError::Start(_))));
    }
}
