//! Runs a child process to its end, with a deadline.
//!
//! `std` has no deadline for a child, and tokio's is for the async modules. `wait-timeout` installs a handler for SIGCHLD beside
//! tokio's, and leaves the pipes, which a grandchild may hold open, to its caller.

pub(crate) mod guard;

use std::io::{self, Read, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

/// How long to wait for the pipes of a child that has ended: a grandchild may hold them open.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

/// The first and the longest interval between two looks at the child.
const POLL_INTERVALS: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(20)];

/// The process groups of the running children. A thread that waits for one may be abandoned at the end of the program.
static RUNNING: Mutex<Vec<Pid>> = Mutex::new(Vec::new());

/// Kills the running children, with what they started. Call it before the program ends.
pub(crate) fn kill_all() {
    let groups = std::mem::take(&mut *RUNNING.lock().unwrap_or_else(PoisonError::into_inner));
    for group in groups {
        // It may just have ended.
        let _ = kill_process_group(group, Signal::KILL);
    }
}

/// The process group of a running child, until it is dropped.
struct ProcessGroup(Option<Pid>);

impl ProcessGroup {
    fn of(child: &Child) -> Self {
        let id = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        RUNNING.lock().unwrap_or_else(PoisonError::into_inner).extend(id);
        Self(id)
    }

    fn kill(&self) {
        // It may just have ended.
        let _ = self.0.map(|id| kill_process_group(id, Signal::KILL));
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        RUNNING.lock().unwrap_or_else(PoisonError::into_inner).retain(|id| Some(*id) != self.0);
    }
}

/// What a child did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProcessOutput {
    /// How it ended; `None` if it was killed because of the deadline.
    pub(crate) status: Option<ExitStatus>,
    /// The end of its standard output.
    pub(crate) stdout: Vec<u8>,
    /// The end of its standard error.
    pub(crate) stderr: Vec<u8>,
    /// Whether both streams were read to their end. They are not while a grandchild holds them open.
    pub(crate) is_complete: bool,
}

/// Runs a child with `input` on its standard input, and kills it after `timeout`, with what it started. What a child that ended
/// left behind is killed if it holds an output stream open. Of each output stream, the last `limit` bytes are kept, or a little
/// more.
///
/// # Errors
/// When the child cannot be started.
pub(crate) fn output(
    command: &mut Command,
    input: Vec<u8>,
    timeout: Duration,
    limit: usize,
) -> io::Result<ProcessOutput> {
    let deadline = Instant::now() + timeout;
    let stdin = if input.is_empty() { Stdio::null() } else { Stdio::piped() };
    let command = command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.process_group(0).spawn()?;
    let group = ProcessGroup::of(&child);
    if let Some(mut stdin) = child.stdin.take() {
        // Fails when the child does not read all of it.
        thread::spawn(move || drop(stdin.write_all(&input)));
    }
    let stdout = StreamReader::start(child.stdout.take(), limit);
    let stderr = StreamReader::start(child.stderr.take(), limit);
    let status = wait(&mut child, &group, deadline)?;
    let drained = Instant::now() + DRAIN_TIMEOUT;
    let is_complete = poll(drained, || stdout.is_finished() && stderr.is_finished());
    if !is_complete {
        group.kill();
    }
    Ok(ProcessOutput { status, stdout: stdout.take(), stderr: stderr.take(), is_complete })
}

fn wait(child: &mut Child, group: &ProcessGroup, deadline: Instant) -> io::Result<Option<ExitStatus>> {
    let mut ended = None;
    poll(deadline, || {
        ended = child.try_wait().transpose();
        ended.is_some()
    });
    if ended.is_none() {
        group.kill();
        // Fails only if it has just ended.
        let _ = child.wait();
    }
    ended.transpose()
}

/// Whether a condition comes true before the deadline.
fn poll(deadline: Instant, mut is_met: impl FnMut() -> bool) -> bool {
    let [mut interval, longest] = POLL_INTERVALS;
    loop {
        if is_met() {
            return true;
        }
        if Instant::now() >= deadline {
            return false;
        }
        thread::sleep(interval);
        interval = (interval * 3 / 2).min(longest);
    }
}

/// Reads a stream on a thread, so that the child never blocks on it, and the caller never blocks on a grandchild.
struct StreamReader {
    bytes: Arc<Mutex<Vec<u8>>>,
    thread: Option<JoinHandle<()>>,
}

impl StreamReader {
    fn start(stream: Option<impl Read + Send + 'static>, limit: usize) -> Self {
        let bytes: Arc<Mutex<Vec<u8>>> = Arc::default();
        let kept = Arc::clone(&bytes);
        let thread = stream.map(|mut stream| {
            thread::spawn(move || {
                let mut chunk = vec![0; 64 << 10];
                while let Ok(count @ 1..) = stream.read(&mut chunk) {
                    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                    kept.extend_from_slice(&chunk[..count]);
                    if kept.len() / 2 > limit {
                        let excess = kept.len() - limit;
                        kept.drain(..excess);
                    }
                }
            })
        });
        Self { bytes, thread }
    }

    fn is_finished(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    fn take(self) -> Vec<u8> {
        std::mem::take(&mut *self.bytes.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str, input: &[u8], timeout: Duration) -> ProcessOutput {
        output(Command::new("/bin/sh").args(["-c", script]), input.to_vec(), timeout, 1 << 20).unwrap()
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn input_and_output_longer_than_a_pipe() {
        let input = vec![b'x'; 300_000];
        let found = sh("cat; echo why >&2; exit 3", &input, LONG);
        assert_eq!(found.status.and_then(|status| status.code()), Some(3));
        assert_eq!((found.stdout.len(), found.stderr.as_slice()), (input.len(), b"why\n".as_slice()));
        assert!(found.is_complete);
        // A child that does not read its input does not hold anything up.
        assert!(sh("exit 0", &input, LONG).status.is_some_and(|status| status.success()));
    }

    #[test]
    fn a_hanging_child_is_killed_with_its_grandchild() {
        let found = sh("sleep 30 & echo $!; wait", b"", Duration::from_millis(300));
        assert_eq!((found.status, found.is_complete), (None, true));
        assert_ends(&found.stdout);
    }

    #[test]
    fn a_grandchild_that_holds_the_output_is_not_waited_for() {
        let started = Instant::now();
        let found = sh("sleep 30 & echo $!", b"", LONG);
        assert!(found.status.is_some_and(|status| status.success()));
        assert!(!found.is_complete && started.elapsed() < Duration::from_secs(20));
        assert_ends(&found.stdout);
    }

    /// Waits until the process whose id was printed is gone, or only waits to be reaped.
    #[track_caller]
    fn assert_ends(printed: &[u8]) {
        let id: i32 = String::from_utf8_lossy(printed).trim().parse().unwrap();
        let state = || std::fs::read_to_string(format!("/proc/{id}/stat"));
        let is_gone = || state().map_or(true, |stat| stat.contains(") Z "));
        assert!(poll(Instant::now() + Duration::from_secs(5), is_gone), "{id} is still running");
    }

    #[test]
    fn the_end_of_a_long_output_is_kept() {
        let script = "i=0; while [ $i -lt 9000 ]; do echo line $i; i=$((i+1)); done";
        let found = output(Command::new("/bin/sh").args(["-c", script]), Vec::new(), LONG, 1000).unwrap();
        assert!(
            found.stdout.ends_with(b"line 8999\n") && found.stdout.len() <= 2001,
            "{}",
            found.stdout.len()
        );
    }

    #[test]
    fn a_missing_program_cannot_be_started() {
        assert!(output(&mut Command::new("/nowhere/at/all"), Vec::new(), LONG, 0).is_err());
    }
}
