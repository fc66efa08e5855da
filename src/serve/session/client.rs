//! The client's side: finds or starts the session, sends requests to it, and detects early that it cannot answer.
//!
//! Every failure is a [`SessionError`], and the caller then answers in its own process. Only one failure is retried: a
//! session that ended before it answered is replaced.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::BytesMut;
use tokio::net::UnixStream;
use tokio::net::unix::OwnedWriteHalf;
use tokio::time::timeout;

use super::control;
use super::daemon::DaemonArgs;
use super::key::{SessionKey, SessionOptions};
use super::runtime_dir::{RuntimeDir, is_no_listener, is_same_user};
use super::wire::{
    FrameReader, Hello, Intent, MAX_RESPONSE_BYTES, PROTOCOL, SessionMessage, SessionRequest, WireSettings,
    send_all,
};
use super::{MAX_SESSIONS, REPLY_TIMEOUT};
use crate::engine::Settings;
use crate::model::error::ErrorSymbol;
use crate::model::request::Request;
use crate::path::AbsPath;

/// How long the runtime folder may be locked by others.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);

/// How long a session that is starting, or that has many clients, may send nothing.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(10);

/// How often to reconnect to a session that closed the connection before its welcome, and the delay per attempt so far.
const MAX_RECONNECTS: u32 = 5;
const RECONNECT_DELAY: Duration = Duration::from_millis(4);

/// A session's response to a request.
#[derive(Debug)]
pub struct SessionResponse {
    /// The bundle as printed with `--json`, including the line end.
    pub bundle: BytesMut,
    /// The exit code in the bundle.
    pub exit_code: u8,
    /// The symbol of the bundle's error.
    pub symbol: Option<ErrorSymbol>,
}

/// Why a session gave no response.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// No session is running, and the client may not start one.
    #[error("no session is running")]
    None,
    /// The runtime folder, or a file in it, cannot be used.
    #[error("cannot reach or start a session: {0}")]
    RuntimeDir(String),
    /// The user has as many sessions as allowed, and all are busy.
    #[error("all {MAX_SESSIONS} sessions are busy")]
    Full,
    /// The connection ended before the response.
    #[error("the session ended before it answered")]
    Gone {
        /// Whether the session had sent its welcome.
        greeted: bool,
    },
    /// The session is stopped, or so busy that it sends nothing.
    #[error("the session does not respond")]
    Unresponsive,
    /// The session sent a refusal.
    #[error("the session refused the request: {0}")]
    Refused(String),
}

/// Sends requests to the session for some settings.
pub struct SessionClient {
    runtime_dir: RuntimeDir,
    settings: Settings,
    session_options: SessionOptions,
    executable: AbsPath,
    key: SessionKey,
    /// Whether to start a session if none is running.
    start: bool,
    open: Option<OpenConnection>,
}

/// A connection after the hello.
struct OpenConnection {
    frames: FrameReader,
    write: OwnedWriteHalf,
    /// The session's process id, from [`SessionMessage::Welcome`].
    pid: Option<u32>,
}

impl SessionClient {
    /// A client of the session for `settings`. `start`: starts the session if none is running.
    ///
    /// # Errors
    /// When the path of this program is unknown.
    pub fn new(
        runtime_dir: RuntimeDir,
        settings: Settings,
        session_options: SessionOptions,
        start: bool,
    ) -> Result<Self, SessionError> {
        let executable = settings.guard.clone().ok_or_else(|| {
            SessionError::RuntimeDir("the path of the lanser executable is unknown".to_owned())
        })?;
        let key = SessionKey::of(&settings, session_options, &executable).map_err(runtime_dir_error)?;
        Ok(Self { runtime_dir, settings, session_options, executable, key, start, open: None })
    }

    /// Sends a request and waits for the response. The connection stays open for the next request. Dropping the
    /// returned future closes the connection, which makes the session cancel the request.
    ///
    /// # Errors
    /// See [`SessionError`].
    pub async fn send(&mut self, request: &Request) -> Result<SessionResponse, SessionError> {
        let request = SessionRequest {
            request: request.clone(),
            timeout: self.settings.timeout,
            verbose: self.settings.verbose,
        };
        let request =
            serde_json::to_vec(&request).map_err(|error| SessionError::Refused(error.to_string()))?;
        let result = self.exchange(Some(&request)).await;
        if result.is_err() {
            self.settings.progress.done();
        }
        result?.ok_or(SessionError::Gone { greeted: true })
    }

    /// Clears the progress line, for a caller that stopped waiting.
    pub fn clear_progress(&self) {
        self.settings.progress.done();
    }

    /// Makes sure that the session is running; returns its process id.
    ///
    /// # Errors
    /// See [`SessionError`].
    pub async fn connect_session(&mut self) -> Result<u32, SessionError> {
        self.exchange(None).await?;
        self.open.as_ref().and_then(|open| open.pid).ok_or(SessionError::Gone { greeted: false })
    }

    /// Retries until there is a response or no hope. A session that ends during the request is replaced once. One
    /// that closes the connection before its welcome has cost nothing and is probably exiting: the kernel closes its
    /// connections first.
    async fn exchange(&mut self, request: Option<&[u8]>) -> Result<Option<SessionResponse>, SessionError> {
        let (mut replaced, mut reconnects) = (0, 0);
        loop {
            match self.exchange_once(request).await {
                Err(SessionError::Gone { greeted: true }) if replaced == 0 => replaced += 1,
                Err(SessionError::Gone { greeted: false }) if reconnects < MAX_RECONNECTS => reconnects += 1,
                result => return result,
            }
            tokio::time::sleep(RECONNECT_DELAY * reconnects).await;
        }
    }

    /// Connects if necessary, sends the request, and waits for the response; without a request, for the welcome.
    async fn exchange_once(
        &mut self,
        request: Option<&[u8]>,
    ) -> Result<Option<SessionResponse>, SessionError> {
        let mut messages = Vec::new();
        // Put back only when the connection can be used again.
        let mut open = match self.open.take() {
            Some(open) => open,
            None => {
                let intent =
                    Intent::SendRequests(Box::new(WireSettings::new(&self.settings, self.session_options)));
                let hello = serde_json::to_vec(&Hello { protocol: PROTOCOL, intent });
                messages.push(hello.map_err(|error| SessionError::Refused(error.to_string()))?);
                let stream = self.connect().await?;
                if !is_same_user(&stream) {
                    return Err(SessionError::RuntimeDir("the session belongs to another user".to_owned()));
                }
                let (read, write) = stream.into_split();
                OpenConnection { frames: FrameReader::new(read, MAX_RESPONSE_BYTES), write, pid: None }
            }
        };
        messages.extend(request.map(<[u8]>::to_vec));
        // A stopped session reads nothing, and the messages may exceed the kernel's buffer.
        let sent = timeout(SILENCE_TIMEOUT, send_all(&mut open.write, &messages)).await;
        let reply = match sent {
            // Even if sending failed, what the session sent before it ended can still be read.
            Ok(_) => self.receive(&mut open, request.is_some()).await?,
            Err(_) => return Err(SessionError::Unresponsive),
        };
        self.open = Some(open);
        Ok(reply)
    }

    /// Reads until the response, or until the welcome if no response is expected.
    async fn receive(
        &self,
        open: &mut OpenConnection,
        expect_response: bool,
    ) -> Result<Option<SessionResponse>, SessionError> {
        loop {
            if !expect_response && open.pid.is_some() {
                return Ok(None);
            }
            match self.next_message(open).await? {
                SessionMessage::Welcome { pid } => open.pid = Some(pid),
                SessionMessage::Refused { again: true, .. } => {
                    return Err(SessionError::Gone { greeted: false });
                }
                SessionMessage::Refused { why, .. } => return Err(SessionError::Refused(why)),
                SessionMessage::Step(text) => self.settings.progress.step(&text),
                SessionMessage::Notify(text) => self.settings.progress.notify(&text),
                SessionMessage::Done => self.settings.progress.done(),
                SessionMessage::Alive | SessionMessage::Status(_) => {}
                SessionMessage::Response(head) => {
                    let bundle = match timeout(SILENCE_TIMEOUT, open.frames.frame()).await {
                        Ok(Ok(Some(bundle))) => bundle,
                        Ok(_) => return Err(SessionError::Gone { greeted: true }),
                        Err(_) => return Err(SessionError::Unresponsive),
                    };
                    return Ok(Some(SessionResponse {
                        bundle,
                        exit_code: head.exit_code,
                        symbol: head.symbol,
                    }));
                }
            }
        }
    }

    /// The next message. After each [`REPLY_TIMEOUT`] without one, waits on if the session is not stopped: it may be
    /// starting or have many clients.
    async fn next_message(&self, open: &mut OpenConnection) -> Result<SessionMessage, SessionError> {
        let mut waited = Duration::ZERO;
        loop {
            match timeout(REPLY_TIMEOUT, open.frames.message()).await {
                Ok(Ok(Some(message))) => return Ok(message),
                Ok(Ok(None) | Err(_)) => return Err(SessionError::Gone { greeted: open.pid.is_some() }),
                Err(_) => waited += REPLY_TIMEOUT,
            }
            let pid = open.pid.or_else(|| {
                let live = self.runtime_dir.live();
                live.into_iter().find(|live| live.key == self.key).and_then(|live| live.pid)
            });
            if waited >= SILENCE_TIMEOUT || pid.is_some_and(control::is_stopped) {
                return Err(SessionError::Unresponsive);
            }
        }
    }

    /// Connects to the session, starting it if necessary and allowed.
    async fn connect(&self) -> Result<UnixStream, SessionError> {
        match self.runtime_dir.check(self.start) {
            Ok(()) => {}
            Err(_) if !self.start => return Err(SessionError::None),
            Err(error) => return Err(SessionError::RuntimeDir(error.to_string())),
        }
        let socket = self.runtime_dir.socket(&self.key);
        match UnixStream::connect(socket.as_path()).await {
            Ok(stream) => return Ok(stream),
            Err(error) if !is_no_listener(&error) => return Err(runtime_dir_error(error)),
            Err(_) if !self.start => return Err(SessionError::None),
            Err(_) => {}
        }
        // Each round stops an idle session; another client may then start one first.
        for _ in 0..3 {
            let lock = self.runtime_dir.lock(LOCK_TIMEOUT).await;
            let lock = lock.ok_or_else(|| {
                SessionError::RuntimeDir("the session folder is locked by another process".to_owned())
            })?;
            match UnixStream::connect(socket.as_path()).await {
                Ok(stream) => return Ok(stream),
                Err(error) if !is_no_listener(&error) => return Err(runtime_dir_error(error)),
                Err(_) => {}
            }
            if self.runtime_dir.sweep(&lock).await.len() < MAX_SESSIONS {
                self.spawn().map_err(runtime_dir_error)?;
                drop(lock);
                return UnixStream::connect(socket.as_path())
                    .await
                    .map_err(|_| SessionError::Gone { greeted: false });
            }
            drop(lock);
            if !control::evict_idle(&self.runtime_dir).await {
                break;
            }
        }
        Err(SessionError::Full)
    }

    /// Binds the socket and starts a session that inherits it. Call it with the runtime folder locked.
    fn spawn(&self) -> io::Result<()> {
        let path = self.runtime_dir.socket(&self.key);
        let listener = UnixListener::bind(path.as_path())?;
        let args = DaemonArgs {
            executable: self.executable.clone(),
            runtime_dir: self.runtime_dir.clone(),
            key: self.key.clone(),
            nonce: nonce(),
        };
        let spawned = std::fs::set_permissions(path.as_path(), std::fs::Permissions::from_mode(0o600))
            .and_then(|()| {
                // The async runtime reaps the supervisor if it ends before this process.
                tokio::process::Command::from(args.command(false))
                    .stdin(Stdio::from(OwnedFd::from(listener)))
                    .stdout(Stdio::null())
                    .stderr(Stdio::null())
                    .spawn()
            });
        if spawned.is_err() {
            let _ = std::fs::remove_file(path.as_path());
        }
        spawned.map(drop)
    }
}

/// Distinguishes two sessions with the same key.
fn nonce() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
    format!("{:x}x{nanos:x}x{:x}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

#[expect(clippy::needless_pass_by_value, reason = "it is a step of map_err")]
fn runtime_dir_error(error: io::Error) -> SessionError {
    SessionError::RuntimeDir(error.to_string())
}

impl std::fmt::Debug for SessionClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionClient")
            .field("runtime_dir", &self.runtime_dir)
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}
