//! Runs the program of an analyzer: bounded in time and in the size of its output, and killed with its children when the
//! request ends.

use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use process_wrap::tokio::{CommandWrap, KillOnDrop, ProcessGroup};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;

use crate::engine::failure::Failure;
use crate::engine::settings::Settings;
use crate::model::analyzer::AnalyzerKind;
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::path::{AbsPath, WorkspacePath};
use crate::process::guard::guarded;

/// The size of an output above which a program is stopped.
const MAX_OUTPUT_BYTES: u64 = 256 << 20;

/// How much of standard error is kept, in bytes and lines.
const STDERR_BYTES: usize = 8 << 10;
const STDERR_LINES: usize = 12;

/// A command of an analyzer.
#[derive(Debug, Clone)]
pub(super) struct ToolCommand {
    pub(super) program: AbsPath,
    pub(super) arguments: Vec<String>,
    /// What is written to its standard input.
    pub(super) input: Vec<u8>,
    /// The files that it analyzes.
    pub(super) files: Vec<WorkspacePath>,
}

/// What a program wrote, and how it ended.
#[derive(Debug, Default)]
pub(super) struct ToolOutput {
    /// The exit code; `None` if a signal ended it.
    pub(super) code: Option<i32>,
    pub(super) signal: Option<i32>,
    pub(super) stdout: Vec<u8>,
    /// The last lines.
    pub(super) stderr: String,
}

impl ToolOutput {
    /// How the program ended, as text.
    pub(super) fn end(&self) -> String {
        match (self.code, self.signal) {
            (Some(code), _) => format!("exit code {code}"),
            (None, signal) => format!("signal {}", signal.unwrap_or_default()),
        }
    }
}

/// Runs a command in a folder.
pub(super) async fn run(
    kind: AnalyzerKind,
    command: &ToolCommand,
    folder: &AbsPath,
    settings: &Settings,
    deadline: Instant,
) -> Result<ToolOutput, Failure> {
    let left = deadline.saturating_duration_since(Instant::now());
    match tokio::time::timeout(left.max(Duration::from_millis(1)), run_to_end(command, folder, settings))
        .await
    {
        Ok(Ok(output)) => Ok(output),
        Ok(Err(error)) => {
            let message = format!("{kind} cannot be run: {error}");
            let error = ErrorBody::new(ErrorSymbol::LsCrash, message);
            Err(Failure::reported(error.hint("`lanser doctor` shows which programs are used")))
        }
        Err(_) => {
            let message = format!("{kind} did not finish within {} s", settings.timeout.as_secs_f64());
            let error = ErrorBody::new(ErrorSymbol::LsTimeout, message);
            Err(Failure::reported(error.hint("increase the limit with --timeout SECONDS")))
        }
    }
}

async fn run_to_end(command: &ToolCommand, folder: &AbsPath, settings: &Settings) -> io::Result<ToolOutput> {
    let guard = settings.guard.as_ref().map(AbsPath::as_path);
    let mut process = Command::from(guarded(guard, command.program.as_path()));
    process
        .args(&command.arguments)
        .env_clear()
        // Nothing of the user's environment may change a finding: no user configuration, no user site-packages.
        .envs([("LC_ALL", "C.UTF-8"), ("HOME", "/nonexistent"), ("PYTHONDONTWRITEBYTECODE", "1")])
        .env("TMPDIR", settings.temp.as_path())
        .current_dir(folder.as_path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = CommandWrap::from(process).wrap(KillOnDrop).wrap(ProcessGroup::leader()).spawn()?;
    let (Some(mut stdin), Some(stdout), Some(stderr)) =
        (child.stdin().take(), child.stdout().take(), child.stderr().take())
    else {
        return Err(io::Error::other("it has no standard streams"));
    };
    let feed = async {
        // A program that ends early does not read its whole input.
        let _ = stdin.write_all(&command.input).await;
        drop(stdin);
    };
    let read = async {
        let mut output = Vec::new();
        let mut stdout = stdout.take(MAX_OUTPUT_BYTES + 1);
        stdout.read_to_end(&mut output).await?;
        if output.len() as u64 > MAX_OUTPUT_BYTES {
            return Err(io::Error::other("its output is too long"));
        }
        Ok(output)
    };
    let ((), stdout, stderr) = tokio::join!(feed, read, tail(stderr));
    let stdout = stdout?;
    let status = child.wait().await?;
    Ok(ToolOutput { code: status.code(), signal: status.signal(), stdout, stderr })
}

/// The last lines of a stream.
async fn tail(mut stream: impl AsyncRead + Unpin) -> String {
    let mut chunk = [0; 4096];
    let mut tail: Vec<u8> = Vec::new();
    while let Ok(count @ 1..) = stream.read(&mut chunk).await {
        tail.extend_from_slice(&chunk[..count]);
        let excess = tail.len().saturating_sub(STDERR_BYTES);
        tail.drain(..excess);
    }
    let text = String::from_utf8_lossy(&tail);
    let lines: Vec<&str> = text.trim_end().lines().collect();
    lines[lines.len().saturating_sub(STDERR_LINES)..].join("\n")
}
