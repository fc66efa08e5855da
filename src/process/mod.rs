//! Runs a child process to its end, with a deadline.
//!
//! `std` has no deadline for a child, and tokio's is for the async modules. `wait-timeout` installs a handler for SIGCHLD beside
//! tokio's, and leaves the pipes, which a grandchild may hold open, to its caller.

use std::io::{self, Read, Write as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How long to wait for the pipes of a child that has ended: a grandchild may hold them open.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

/// The first and the longest interval between two looks at the child.
const POLL_INTERVALS: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(20)];

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

/// Runs a child with `input` on its standard input, and kills it after `timeout`. Of each output stream, the last `limit` bytes
/// are kept, or a little more.
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
    let mut child = command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // Fails when the child does not read all of it.
        thread::spawn(move || drop(stdin.write_all(&input)));
    }
    let stdout = StreamReader::start(child.stdout.take(), limit);
    let stderr = StreamReader::start(child.stderr.take(), limit);
    let status = wait(&mut child, deadline)?;
    let drained = Instant::now() + DRAIN_TIMEOUT;
    let is_complete = poll(drained, || stdout.is_finished() && stderr.is_finished());
    Ok(ProcessOutput { status, stdout: stdout.take(), stderr: stderr.take(), is_complete })
}

fn wait(child: &mut Child, deadline: Instant) -> io::Result<Option<ExitStatus>> {
    let mut ended = None;
    poll(deadline, || {
        ended = child.try_wait().transpose();
        ended.is_some()
    });
    if ended.is_none() {
        // Both fail only if it has just ended.
        let _ = child.kill();
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
    fn a_hanging_child_is_killed_and_its_grandchild_is_not_waited_for() {
        let started = Instant::now();
        let found = sh("echo begun; sleep 30 & wait", b"", Duration::from_millis(300));
        assert_eq!((found.status, found.stdout.as_slice()), (None, b"begun\n".as_slice()));
        assert!(!found.is_complete && started.elapsed() < Duration::from_secs(20));
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
