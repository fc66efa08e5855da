//! A server's process: how it is started, how it ends, and how it is kept from outliving lanser.
//!
//! It leads its own process group, so that its child processes can be killed with it, and dropping the handle kills
//! the group. When lanser itself is killed, no destructor runs. The *guard* covers that case: the child is first
//! lanser again, which asks the kernel to kill it with its parent ([`crate::process::guard`]) and then becomes the server.
//! Only Linux supports this; elsewhere the server notices the end of its input, or that the process whose id it was
//! given has exited.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use process_wrap::tokio::{CommandWrap, KillOnDrop, ProcessGroup};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;
use tokio::sync::watch;

use super::cancellation::CancellationFolder;
use super::connection::Connection;
use super::error::LspError;
use super::profile::{Profile, PythonSource};
use super::python_shim::PythonShim;
use crate::model::server::ServerKind;
use crate::path::AbsPath;
use crate::process::guard::guarded;

/// How much of standard error to keep, in lines and bytes.
const STDERR_LINES: usize = 64;
const STDERR_BYTES: usize = 8 << 10;

/// How long to wait for the end of standard error after a server has exited.
const STDERR_TIMEOUT: Duration = Duration::from_millis(200);

/// How to start a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    /// The kind of server.
    pub kind: ServerKind,
    /// The program: the server, or node for Pyright and its forks.
    pub program: AbsPath,
    /// The first arguments: for node the server's script. The profile adds its flags.
    pub args: Vec<String>,
    /// The whole environment; nothing is inherited. `TMPDIR` is set to [`Self::temp_dir`] or a folder in it.
    pub env: BTreeMap<String, String>,
    /// The working directory.
    pub cwd: AbsPath,
    /// lanser's own executable, if the server must die with this process even when it is killed.
    pub guard: Option<AbsPath>,
    /// The folder for temporary files; this user must be able to write to it.
    pub temp_dir: AbsPath,
    /// Whether the server notices cancellations while it is busy; see [`Profile::pulls_when_cancellable`].
    pub cancellable: bool,
    /// What the server is to know about Python.
    pub python: PythonShim,
    /// A folder of this user for programs, for when [`Self::temp_dir`] is on a `noexec` file system.
    pub programs: AbsPath,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessExit {
    /// It exited with this code.
    Code(i32),
    /// A signal killed it.
    Signal(i32),
}

impl std::fmt::Display for ProcessExit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(signal) => write!(f, "signal {signal}"),
        }
    }
}

/// A running server. Dropping it kills the process group and removes its folder for temporary files.
#[derive(Debug)]
pub struct ServerProcess {
    pid: Pid,
    watch: ProcessWatch,
    folder: Arc<CancellationFolder>,
    cancellable: bool,
    python: AbsPath,
}

/// Observes the end of a process.
#[derive(Debug, Clone)]
pub(super) struct ProcessWatch {
    exit: watch::Receiver<Option<ProcessExit>>,
    /// Closed when standard error is.
    stderr: watch::Receiver<()>,
    tail: Arc<Mutex<Vec<u8>>>,
}

/// Starts a server. Its standard input and output are the connection; the end of its standard error is kept for errors.
///
/// The calling thread must live as long as the server: the guard's request to the kernel is about the thread that
/// created the child, not about the process (`prctl(2)`, `PR_SET_PDEATHSIG`).
///
/// # Errors
/// [`LspError::Spawn`].
pub fn spawn(launch: &Launch) -> Result<(Connection, ServerProcess), LspError> {
    let failed =
        |error: io::Error| LspError::Spawn { program: launch.program.to_string(), reason: error.to_string() };
    let folder = CancellationFolder::create(&launch.temp_dir).map_err(|error| {
        // The reason must not read as a failure of the server's program.
        let reason = format!("cannot create a folder in {}: {error}", launch.temp_dir);
        failed(io::Error::new(error.kind(), reason))
    })?;
    let profile = Profile::of(launch.kind);
    let python = match profile.python {
        PythonSource::Interpreter => launch.python.write(folder.temp_dir(), launch.programs.as_path()),
        PythonSource::Prefix => launch.python.prefix_or_empty(folder.temp_dir()),
    };
    let python = python.map_err(|error| {
        let reason = format!("cannot create an executable file in {}: {error}", launch.temp_dir);
        failed(io::Error::new(error.kind(), reason))
    })?;
    let name = launch.cancellable.then(|| folder.name());
    let arguments = profile.arguments(&launch.args, name);
    let mut command =
        Command::from(guarded(launch.guard.as_ref().map(AbsPath::as_path), launch.program.as_path()));
    command
        .args(arguments)
        .env_clear()
        .envs(&launch.env)
        .env("TMPDIR", folder.temp_dir())
        .current_dir(launch.cwd.as_path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child =
        CommandWrap::from(command).wrap(KillOnDrop).wrap(ProcessGroup::leader()).spawn().map_err(failed)?;
    let pid = child
        .id()
        .and_then(|id| Pid::from_raw(id.cast_signed()))
        .ok_or_else(|| failed(io::Error::other("it has no process id")))?;
    let (Some(stdin), Some(stdout), Some(stderr)) =
        (child.stdin().take(), child.stdout().take(), child.stderr().take())
    else {
        return Err(failed(io::Error::other("it has no standard streams")));
    };
    let tail = Arc::new(Mutex::new(Vec::new()));
    let (stderr_open, stderr_watch) = watch::channel(());
    let (exit_sender, exit) = watch::channel(None);
    let keep = tail.clone();
    tokio::spawn(async move {
        keep_tail(stderr, &keep).await;
        drop(stderr_open);
    });
    tokio::spawn(async move {
        let status = child.wait().await;
        // Child processes that the server left running are killed, too.
        let _ = kill_process_group(pid, Signal::KILL);
        exit_sender.send_replace(Some(status.map_or(ProcessExit::Code(-1), |status| {
            status
                .code()
                .map_or_else(|| ProcessExit::Signal(status.signal().unwrap_or_default()), ProcessExit::Code)
        })));
    });
    let watch = ProcessWatch { exit, stderr: stderr_watch, tail };
    Ok((
        Connection::over(stdout, stdin),
        ServerProcess { pid, watch, folder: Arc::new(folder), cancellable: launch.cancellable, python },
    ))
}

impl ServerProcess {
    /// The process id, which is also the id of the process group.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.pid.as_raw_nonzero().get().cast_unsigned()
    }

    /// The resident memory in bytes, on Linux (`VmRSS` of `proc_pid_status(5)`).
    #[must_use]
    pub fn memory(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        Some(kibibytes << 10)
    }

    /// Kills the process and all of its group.
    pub fn kill(&self) {
        if self.watch.exit.borrow().is_none() {
            let _ = kill_process_group(self.pid, Signal::KILL);
        }
    }

    /// Waits for the end of the process; `None` after the time limit.
    pub async fn wait(&self, within: Duration) -> Option<ProcessExit> {
        self.watch.exit(within).await
    }

    pub(super) fn watch(&self) -> ProcessWatch {
        self.watch.clone()
    }

    /// What to give to the server as Python (see [`PythonShim`]): an interpreter, or the folder of an environment.
    #[must_use]
    pub const fn python(&self) -> &AbsPath {
        &self.python
    }

    pub(super) fn cancellation(&self) -> Option<Arc<CancellationFolder>> {
        self.cancellable.then(|| self.folder.clone())
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        self.kill();
        // Requests that still exist somewhere share the folder; remove it regardless.
        self.folder.remove();
    }
}

impl ProcessWatch {
    /// Waits for the end of the process; `None` after the time limit.
    pub(super) async fn exit(&self, within: Duration) -> Option<ProcessExit> {
        let mut exit = self.exit.clone();
        let ended = tokio::time::timeout(within, exit.wait_for(Option::is_some)).await;
        ended.ok()?.ok().and_then(|exit| *exit)
    }

    /// The last lines of standard error of a process that has ended.
    pub(super) async fn stderr_tail(&self) -> String {
        let mut stderr = self.stderr.clone();
        let _ = tokio::time::timeout(STDERR_TIMEOUT, stderr.changed()).await;
        let tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&tail).into_owned();
        let lines: Vec<&str> = text.trim_end().lines().collect();
        lines[lines.len().saturating_sub(STDERR_LINES)..].join("\n")
    }
}

async fn keep_tail(mut stderr: impl AsyncRead + Unpin, tail: &Mutex<Vec<u8>>) {
    let mut chunk = [0; 4096];
    while let Ok(count @ 1..) = stderr.read(&mut chunk).await {
        let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
        tail.extend_from_slice(&chunk[..count]);
        let excess = tail.len().saturating_sub(STDERR_BYTES);
        tail.drain(..excess);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_tail_is_bounded() {
        let text: String = (0..5000).map(|line| format!("line {line}\n")).collect();
        let tail = Arc::new(Mutex::new(Vec::new()));
        keep_tail(text.as_bytes(), &tail).await;
        assert_eq!(tail.lock().unwrap().len(), STDERR_BYTES);
        let (_, exit) = watch::channel(None);
        let (_, stderr) = watch::channel(());
        let tail_text = ProcessWatch { exit, stderr, tail }.stderr_tail().await;
        assert_eq!(tail_text.lines().count(), STDERR_LINES);
        assert_eq!(tail_text.lines().last(), Some("line 4999"));
    }
}
