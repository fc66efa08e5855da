//! Lists and stops sessions from outside, including those that do not respond.

use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use tokio::net::UnixStream;
use tokio::time::{Instant, timeout};

use super::REPLY_TIMEOUT;
use super::key::SessionKey;
use super::runtime_dir::{LiveSession, RuntimeDir, RuntimeDirError, is_same_user};
use super::wire::{
    FrameReader, Hello, Intent, MAX_REQUEST_BYTES, PROTOCOL, SessionMessage, SessionStatus, send,
};
use crate::path::AbsPath;

/// How long a session may take to create its lock after its socket exists.
const STARTUP_TIMEOUT: Duration = Duration::from_secs(2);

/// How long a session may take to exit after it accepted the request to stop.
const STOP_TIMEOUT: Duration = Duration::from_secs(12);

/// How long a session may take to exit after `SIGTERM`.
const SIGTERM_TIMEOUT: Duration = Duration::from_secs(11);

/// How long the supervisor may take to exit after the service.
const CLEANUP_TIMEOUT: Duration = Duration::from_secs(5);

/// How long an idle session may take to remove its socket when it is stopped in favor of a new one.
const EVICTION_TIMEOUT: Duration = Duration::from_secs(3);

/// A session as seen from outside.
#[derive(Debug, Clone)]
pub struct SessionInfo {
    /// Its workspace; empty when unknown.
    pub workspace: String,
    /// The process of the service; `None` when it runs in another container.
    pub pid: Option<u32>,
    /// The process of the supervisor, which cleans up after the service.
    pub supervisor: Option<u32>,
    /// The status that it reports; `None` when it does not respond.
    pub status: Option<SessionStatus>,
    key: SessionKey,
}

/// The user's sessions, or only those of one workspace.
///
/// # Errors
/// When the runtime folder is not safe to use. A missing folder means that there are no sessions.
pub async fn list(
    runtime_dir: &RuntimeDir,
    workspace: Option<&AbsPath>,
) -> Result<Vec<SessionInfo>, RuntimeDirError> {
    match runtime_dir.check(false) {
        Err(RuntimeDirError::Io { error, .. }) if error.kind() == std::io::ErrorKind::NotFound => {
            return Ok(Vec::new());
        }
        checked => checked?,
    }
    // Without the lock the folder cannot be swept, but its sessions can be listed.
    let listening = match runtime_dir.lock(REPLY_TIMEOUT).await {
        Some(lock) => runtime_dir.sweep(&lock).await,
        None => Vec::new(),
    };
    let mut info = Vec::new();
    for live in wait_for_locks(runtime_dir, &listening).await {
        let status = match live.pid.is_some_and(is_stopped) {
            true => None,
            false => status(runtime_dir, &live.key, Intent::Status).await,
        };
        info.push(SessionInfo::new(live, status));
    }
    info.retain(|info| workspace.is_none_or(|workspace| info.workspace == workspace.as_str()));
    info.sort_by(|a, b| (&a.workspace, a.pid).cmp(&(&b.workspace, b.pid)));
    Ok(info)
}

/// The sessions that are alive, after waiting for those in `listening` to create their locks.
async fn wait_for_locks(runtime_dir: &RuntimeDir, listening: &[SessionKey]) -> Vec<LiveSession> {
    let began = Instant::now();
    loop {
        let live = runtime_dir.live();
        let all = listening.iter().all(|key| live.iter().any(|live| live.key == *key));
        if all || began.elapsed() > STARTUP_TIMEOUT {
            return live;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Stops a session, and waits until it and its servers have exited. `false` when it does not exit.
pub async fn stop(runtime_dir: &RuntimeDir, info: &SessionInfo) -> bool {
    let accepted = status(runtime_dir, &info.key, Intent::Stop { if_idle: false }).await.is_some();
    let Some(pid) = info.pid.and_then(|pid| Pid::from_raw(pid.cast_signed())) else { return accepted };
    if !(accepted && wait_for_exit(pid, STOP_TIMEOUT).await) {
        // A session of another version reacts to SIGTERM; one that hangs does not.
        let _ = kill_process(pid, Signal::TERM);
        let term_timeout = if is_stopped(pid.as_raw_nonzero().get().cast_unsigned()) {
            Duration::ZERO
        } else {
            SIGTERM_TIMEOUT
        };
        if !wait_for_exit(pid, term_timeout).await {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
    let supervisor = info.supervisor.and_then(|pid| Pid::from_raw(pid.cast_signed()));
    wait_for_exit(pid, CLEANUP_TIMEOUT).await
        && match supervisor {
            Some(supervisor) => wait_for_exit(supervisor, CLEANUP_TIMEOUT).await,
            None => true,
        }
}

/// Stops the session that has been idle for longest. `false` when all are busy, or when it does not exit.
pub(super) async fn evict_idle(runtime_dir: &RuntimeDir) -> bool {
    let mut idle = Vec::new();
    for live in runtime_dir.live() {
        if !live.pid.is_some_and(is_stopped)
            && let Some(status) = status(runtime_dir, &live.key, Intent::Status).await
            && status.active_requests == 0
        {
            idle.push((status.idle, status.pid, live.key));
        }
    }
    let Some((_, pid, key)) = idle.into_iter().max_by_key(|(idle, ..)| *idle) else { return false };
    let socket = runtime_dir.socket(&key);
    if status(runtime_dir, &key, Intent::Stop { if_idle: true }).await.is_none() {
        return false;
    }
    // The socket is what counts towards the limit; the session's servers may take longer to exit.
    let began = Instant::now();
    while socket.as_path().exists() && Pid::from_raw(pid.cast_signed()).is_some_and(is_running) {
        if began.elapsed() > EVICTION_TIMEOUT {
            return false;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    true
}

impl SessionInfo {
    fn new(live: LiveSession, status: Option<SessionStatus>) -> Self {
        let reported = status.as_ref().map(|status| status.workspace.clone());
        Self {
            workspace: reported.unwrap_or(live.pid_file.workspace),
            pid: live.pid,
            supervisor: status.as_ref().map_or(live.pid_file.supervisor, |status| status.supervisor),
            status,
            key: live.key,
        }
    }
}

/// Sends a hello that is answered with the session's status.
async fn status(runtime_dir: &RuntimeDir, key: &SessionKey, intent: Intent) -> Option<SessionStatus> {
    let socket = runtime_dir.socket(key);
    let exchange = async {
        let stream = UnixStream::connect(socket.as_path()).await.ok().filter(is_same_user)?;
        let (read, mut write) = stream.into_split();
        let hello = serde_json::to_vec(&Hello { protocol: PROTOCOL, intent }).ok()?;
        send(&mut write, &hello).await.ok()?;
        match FrameReader::new(read, MAX_REQUEST_BYTES).message().await.ok()?? {
            SessionMessage::Status(status) => Some(*status),
            _ => None,
        }
    };
    timeout(REPLY_TIMEOUT, exchange).await.ok()?
}

/// Waits for the end of a process that is not a child of this one.
async fn wait_for_exit(pid: Pid, within: Duration) -> bool {
    let began = Instant::now();
    while is_running(pid) {
        if began.elapsed() >= within {
            return false;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    true
}

/// Whether a process exists and still runs: one that has ended exists until its parent waits for it.
pub(in crate::serve) fn is_running(pid: Pid) -> bool {
    test_kill_process(pid) != Err(Errno::SRCH) && state(pid) != Some('Z')
}

/// Whether a process is stopped (`SIGSTOP`); `false` where `/proc` is missing.
pub(super) fn is_stopped(pid: u32) -> bool {
    Pid::from_raw(pid.cast_signed()).and_then(state).is_some_and(|state| matches!(state, 'T' | 't'))
}

/// The state letter of a process, on Linux.
fn state(pid: Pid) -> Option<char> {
    let text = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    // The process name before it is in parentheses and may contain any character.
    text.rsplit_once(')')?.1.trim_start().chars().next()
}
