//! Short-lived child processes: `node` to query its version, and the installers.
//!
//! They stay in the process group of lanser, so that Ctrl-C at the terminal ends them too.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::time::Duration;

use crate::process;

/// How many of the last lines of stdout and of stderr are kept, each separately so that a long stdout does not displace the
/// error.
const TAIL_LINES: usize = 8;
/// How much of stdout and of stderr is kept.
const OUTPUT_LIMIT_BYTES: usize = 64 << 10;
/// The longest line of output that is shown.
const LINE_LIMIT_CHARS: usize = 2_000;

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
    let mut command = Command::new(run.program);
    command.args(run.arguments).current_dir(run.folder).env_clear();
    command.envs(run.environment.iter().map(|(name, value)| (name, value)));
    let found = process::output(&mut command, Vec::new(), run.timeout, OUTPUT_LIMIT_BYTES)
        .map_err(ChildError::Start)?;
    let out = last_lines(&found.stdout);
    let tail = || [out.clone(), last_lines(&found.stderr)].concat();
    match found.status {
        Some(status) if status.success() => Ok(out),
        Some(status) => Err(ChildError::Failed { status, tail: tail() }),
        None => Err(ChildError::TimedOut { timeout: run.timeout, tail: tail() }),
    }
}

fn last_lines(output: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(output);
    let lines = text.lines().map(str::trim_end).filter(|line| !line.is_empty());
    let mut last: Vec<String> =
        lines.rev().take(TAIL_LINES).map(|line| line.chars().take(LINE_LIMIT_CHARS).collect()).collect();
    last.reverse();
    last
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

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
