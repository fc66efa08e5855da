//! Seeing and ending sessions from outside, also those that do not answer.

use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use tokio::net::UnixStream;
use tokio::time::{Instant, timeout};

use super::HELLO;
use super::key::Key;
use super::place::{Live, Place, PlaceError, is_own};
use super::wire::{Hello, Inbox, MAX_REQUEST, PROTOCOL, Status, Told, Wants, send};
use crate::path::AbsPath;

/// How long a session may take from its socket to its lock.
const BIRTH: Duration = Duration::from_secs(2);

/// How long a session may take to leave after it was asked.
const LEAVING: Duration = Duration::from_secs(12);

/// How long it may take after it was told by a signal.
const TOLD: Duration = Duration::from_secs(11);

/// How long the supervisor may take after the session proper.
const CLEANING: Duration = Duration::from_secs(5);

/// How long a session that is to make room may take.
const ROOM: Duration = Duration::from_secs(3);

/// A session as it is seen from outside.
#[derive(Debug, Clone)]
pub struct Seen {
    /// Its workspace; empty when it is not known yet.
    pub workspace: String,
    /// The session proper; `None` in another container.
    pub pid: Option<u32>,
    /// The process that cleans up after it.
    pub supervisor: Option<u32>,
    /// What it says itself; `None` when it does not answer.
    pub status: Option<Status>,
    key: Key,
}

/// The user's sessions, or only those of one workspace.
///
/// # Errors
/// When the runtime folder is not to be trusted. One that is not there holds no sessions.
pub async fn list(place: &Place, workspace: Option<&AbsPath>) -> Result<Vec<Seen>, PlaceError> {
    match place.check(false) {
        Err(PlaceError::Io { error, .. }) if error.kind() == std::io::ErrorKind::NotFound => {
            return Ok(Vec::new());
        }
        checked => checked?,
    }
    // What cannot be locked cannot be swept; it can be listed all the same.
    let listening = match place.lock(HELLO).await {
        Some(lock) => place.sweep(&lock).await,
        None => Vec::new(),
    };
    let mut seen = Vec::new();
    for live in born(place, &listening).await {
        let status = match live.pid.is_some_and(is_stopped) {
            true => None,
            false => status(place, &live.key, Wants::Status).await,
        };
        seen.push(Seen::new(live, status));
    }
    seen.retain(|seen| workspace.is_none_or(|workspace| seen.workspace == workspace.as_str()));
    seen.sort_by(|a, b| (&a.workspace, a.pid).cmp(&(&b.workspace, b.pid)));
    Ok(seen)
}

/// The sessions that live, after those have made themselves known whose sockets are there already.
async fn born(place: &Place, listening: &[Key]) -> Vec<Live> {
    let began = Instant::now();
    loop {
        let live = place.live();
        let all = listening.iter().all(|key| live.iter().any(|live| live.key == *key));
        if all || began.elapsed() > BIRTH {
            return live;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Ends a session, and waits until it is gone with its servers. `false` when it does not go.
pub async fn stop(place: &Place, seen: &Seen) -> bool {
    let asked = status(place, &seen.key, Wants::End { if_idle: false }).await.is_some();
    let Some(pid) = seen.pid.and_then(|pid| Pid::from_raw(pid.cast_signed())) else { return asked };
    if !(asked && gone(pid, LEAVING).await) {
        // One of another version, or one that hangs: the first listens to the signal, the second does not.
        let _ = kill_process(pid, Signal::TERM);
        let patience =
            if is_stopped(pid.as_raw_nonzero().get().cast_unsigned()) { Duration::ZERO } else { TOLD };
        if !gone(pid, patience).await {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
    let supervisor = seen.supervisor.and_then(|pid| Pid::from_raw(pid.cast_signed()));
    gone(pid, CLEANING).await
        && match supervisor {
            Some(supervisor) => gone(supervisor, CLEANING).await,
            None => true,
        }
}

/// Has the session leave that has been idle for longest. `false` when all are busy, or it does not go.
pub(super) async fn make_room(place: &Place) -> bool {
    let mut idle = Vec::new();
    for live in place.live() {
        if !live.pid.is_some_and(is_stopped)
            && let Some(status) = status(place, &live.key, Wants::Status).await
            && status.asking == 0
        {
            idle.push((status.idle, status.pid, live.key));
        }
    }
    let Some((_, pid, key)) = idle.into_iter().max_by_key(|(idle, ..)| *idle) else { return false };
    let socket = place.socket(&key);
    if status(place, &key, Wants::End { if_idle: true }).await.is_none() {
        return false;
    }
    // Only its socket counts; its servers may take longer.
    let began = Instant::now();
    while socket.as_path().exists() && Pid::from_raw(pid.cast_signed()).is_some_and(lives) {
        if began.elapsed() > ROOM {
            return false;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    true
}

impl Seen {
    fn new(live: Live, status: Option<Status>) -> Self {
        let told = status.as_ref().map(|status| status.workspace.clone());
        Self {
            workspace: told.unwrap_or(live.card.workspace),
            pid: live.pid,
            supervisor: status.as_ref().map_or(live.card.supervisor, |status| status.supervisor),
            status,
            key: live.key,
        }
    }
}

/// Tells a session something to which it answers with its status.
async fn status(place: &Place, key: &Key, wants: Wants) -> Option<Status> {
    let socket = place.socket(key);
    let asking = async {
        let stream = UnixStream::connect(socket.as_path()).await.ok().filter(is_own)?;
        let (read, mut write) = stream.into_split();
        let hello = serde_json::to_vec(&Hello { protocol: PROTOCOL, wants }).ok()?;
        send(&mut write, &hello).await.ok()?;
        match Inbox::new(read, MAX_REQUEST).message().await.ok()?? {
            Told::Status(status) => Some(*status),
            _ => None,
        }
    };
    timeout(HELLO, asking).await.ok()?
}

/// Waits for the end of a process that is not ours to wait for.
async fn gone(pid: Pid, within: Duration) -> bool {
    let began = Instant::now();
    while lives(pid) {
        if began.elapsed() >= within {
            return false;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    true
}

fn lives(pid: Pid) -> bool {
    test_kill_process(pid) != Err(Errno::SRCH) && state(pid) != Some('Z')
}

/// Whether a process is stopped, where the operating system tells.
pub(super) fn is_stopped(pid: u32) -> bool {
    Pid::from_raw(pid.cast_signed()).and_then(state).is_some_and(|state| matches!(state, 'T' | 't'))
}

/// The letter of a process's state, on Linux.
fn state(pid: Pid) -> Option<char> {
    let text = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    // The name before it is in parentheses and may hold any.
    text.rsplit_once(')')?.1.trim_start().chars().next()
}
