//! The caller's side: finding the session or starting it, asking it, and seeing early when it is of no use.
//!
//! Whatever goes wrong is a [`Trouble`], never an answer; whoever gets one answers by itself. One thing is tried again: a
//! session that went away before it answered is replaced.

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
use super::daemon::Orders;
use super::key::{Key, Terms};
use super::place::{Place, is_nobody, is_own};
use super::wire::{Ask, Hello, Inbox, MAX_ANSWER, PROTOCOL, Told, Wants, WireSettings, send_all};
use super::{HELLO, MAX_SESSIONS};
use crate::model::error::ErrorSymbol;
use crate::model::request::Request;
use crate::orchestrator::Settings;
use crate::path::AbsPath;

/// How long the runtime folder may be locked by others.
const LOCKED: Duration = Duration::from_secs(2);

/// How long a session that is just being born, or busy with many callers, may be silent.
const SILENCE: Duration = Duration::from_secs(10);

/// How often a session is looked for again that was gone before it greeted, and after how long times how often.
const MISSES: u32 = 5;
const PAUSE: Duration = Duration::from_millis(4);

/// An answer of a session.
#[derive(Debug)]
pub struct Reply {
    /// The bundle as it is printed with `--json`, the line's end included.
    pub bundle: BytesMut,
    /// The exit code that it names.
    pub exit_code: u8,
    /// Its error.
    pub symbol: Option<ErrorSymbol>,
}

/// Why there is no answer of a session.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// There is none, and none was to be started.
    #[error("there is no session")]
    None,
    /// The runtime folder cannot be used, or what is in it.
    #[error("no session can be had here: {0}")]
    Place(String),
    /// All sessions that one user may have are busy.
    #[error("all {MAX_SESSIONS} sessions are busy")]
    Full,
    /// It went away, perhaps after it had greeted the caller.
    #[error("the session went away")]
    Gone {
        /// Whether it had.
        greeted: bool,
    },
    /// It is stopped, or so busy that it says nothing.
    #[error("the session does not answer")]
    Silent,
    /// It says why.
    #[error("the session refuses: {0}")]
    Refused(String),
}

/// Asks the session for some settings.
pub struct Caller {
    place: Place,
    settings: Settings,
    terms: Terms,
    executable: AbsPath,
    key: Key,
    /// Whether a session is started when there is none.
    start: bool,
    open: Option<Open>,
}

/// A connection on which the session was greeted.
struct Open {
    inbox: Inbox,
    write: OwnedWriteHalf,
    /// Whether [`Told::Welcome`] came.
    pid: Option<u32>,
}

impl Caller {
    /// Somebody who asks the session for `settings`, and starts it when `start` says so.
    ///
    /// # Errors
    /// When this program cannot be called again.
    pub fn new(place: Place, settings: Settings, terms: Terms, start: bool) -> Result<Self, Trouble> {
        let executable = settings
            .guard
            .clone()
            .ok_or_else(|| Trouble::Place("this program cannot be found".to_owned()))?;
        let key = Key::of(&settings, terms, &executable).map_err(of_place)?;
        Ok(Self { place, settings, terms, executable, key, start, open: None })
    }

    /// Asks. The connection stays open for the next question. When the returned future is dropped the session is told by
    /// the connection's end and gives the question up.
    ///
    /// # Errors
    /// See [`Trouble`].
    pub async fn ask(&mut self, request: &Request) -> Result<Reply, Trouble> {
        let ask =
            Ask { request: request.clone(), timeout: self.settings.timeout, verbose: self.settings.verbose };
        let ask = serde_json::to_vec(&ask).map_err(|error| Trouble::Refused(error.to_string()))?;
        let done = self.exchange(Some(&ask)).await;
        if done.is_err() {
            self.settings.progress.done();
        }
        done?.ok_or(Trouble::Gone { greeted: true })
    }

    /// Takes away what the session told of long work, for a caller that no longer waits.
    pub fn done(&self) {
        self.settings.progress.done();
    }

    /// Makes sure that there is a session, and gives its process id.
    ///
    /// # Errors
    /// See [`Trouble`].
    pub async fn greet(&mut self) -> Result<u32, Trouble> {
        self.exchange(None).await?;
        self.open.as_ref().and_then(|open| open.pid).ok_or(Trouble::Gone { greeted: false })
    }

    /// Tries until there is an answer or no hope. A session that dies over the question is replaced once; one that is gone
    /// before it said a word has cost nothing, and may only just be dying: the kernel closes its connections first.
    async fn exchange(&mut self, ask: Option<&[u8]>) -> Result<Option<Reply>, Trouble> {
        let (mut deaths, mut misses) = (0, 0);
        loop {
            match self.try_once(ask).await {
                Err(Trouble::Gone { greeted: true }) if deaths == 0 => deaths += 1,
                Err(Trouble::Gone { greeted: false }) if misses < MISSES => misses += 1,
                done => return done,
            }
            tokio::time::sleep(PAUSE * misses).await;
        }
    }

    /// Greets the session, unless that was done, asks, and waits for the answer; without a question for the welcome.
    async fn try_once(&mut self, ask: Option<&[u8]>) -> Result<Option<Reply>, Trouble> {
        let mut messages = Vec::new();
        // It is put back only when it can be used again.
        let mut open = match self.open.take() {
            Some(open) => open,
            None => {
                let wants = Wants::Answers(Box::new(WireSettings::new(&self.settings, self.terms)));
                let hello = serde_json::to_vec(&Hello { protocol: PROTOCOL, wants });
                messages.push(hello.map_err(|error| Trouble::Refused(error.to_string()))?);
                let stream = self.connect().await?;
                if !is_own(&stream) {
                    return Err(Trouble::Place("the session is another user's".to_owned()));
                }
                let (read, write) = stream.into_split();
                Open { inbox: Inbox::new(read, MAX_ANSWER), write, pid: None }
            }
        };
        messages.extend(ask.map(<[u8]>::to_vec));
        // A stopped session reads nothing, and what is said may be longer than what the kernel keeps for it.
        let sent = timeout(SILENCE, send_all(&mut open.write, &messages)).await;
        let reply = match sent {
            // What it said before it went away is still there to be read.
            Ok(_) => self.listen(&mut open, ask.is_some()).await?,
            Err(_) => return Err(Trouble::Silent),
        };
        self.open = Some(open);
        Ok(reply)
    }

    /// Reads until the answer is there, or the welcome when that is all that is waited for.
    async fn listen(&self, open: &mut Open, answer: bool) -> Result<Option<Reply>, Trouble> {
        loop {
            if !answer && open.pid.is_some() {
                return Ok(None);
            }
            match self.told(open).await? {
                Told::Welcome { pid } => open.pid = Some(pid),
                Told::Refused { again: true, .. } => return Err(Trouble::Gone { greeted: false }),
                Told::Refused { why, .. } => return Err(Trouble::Refused(why)),
                Told::Step(text) => self.settings.progress.step(&text),
                Told::Say(text) => self.settings.progress.say(&text),
                Told::Done => self.settings.progress.done(),
                Told::Alive | Told::Status(_) => {}
                Told::Answer(head) => {
                    let bundle = match timeout(SILENCE, open.inbox.frame()).await {
                        Ok(Ok(Some(bundle))) => bundle,
                        Ok(_) => return Err(Trouble::Gone { greeted: true }),
                        Err(_) => return Err(Trouble::Silent),
                    };
                    return Ok(Some(Reply { bundle, exit_code: head.exit_code, symbol: head.symbol }));
                }
            }
        }
    }

    /// The next message. One that does not come within a second is waited for when the session is alive: it may be young,
    /// or have many callers at once.
    async fn told(&self, open: &mut Open) -> Result<Told, Trouble> {
        let mut waited = Duration::ZERO;
        loop {
            match timeout(HELLO, open.inbox.message()).await {
                Ok(Ok(Some(told))) => return Ok(told),
                Ok(Ok(None) | Err(_)) => return Err(Trouble::Gone { greeted: open.pid.is_some() }),
                Err(_) => waited += HELLO,
            }
            let pid = open.pid.or_else(|| {
                let live = self.place.live();
                live.into_iter().find(|live| live.key == self.key).and_then(|live| live.pid)
            });
            if waited >= SILENCE || pid.is_some_and(control::is_stopped) {
                return Err(Trouble::Silent);
            }
        }
    }

    /// Connects to the session; starts one when there is none and there should be.
    async fn connect(&self) -> Result<UnixStream, Trouble> {
        match self.place.check(self.start) {
            Ok(()) => {}
            Err(_) if !self.start => return Err(Trouble::None),
            Err(error) => return Err(Trouble::Place(error.to_string())),
        }
        let socket = self.place.socket(&self.key);
        match UnixStream::connect(socket.as_path()).await {
            Ok(stream) => return Ok(stream),
            Err(error) if !is_nobody(&error) => return Err(of_place(error)),
            Err(_) if !self.start => return Err(Trouble::None),
            Err(_) => {}
        }
        // Each round another session is asked to leave; somebody else may take its place.
        for _ in 0..3 {
            let lock = self.place.lock(LOCKED).await;
            let lock = lock.ok_or_else(|| Trouble::Place("its folder is locked".to_owned()))?;
            match UnixStream::connect(socket.as_path()).await {
                Ok(stream) => return Ok(stream),
                Err(error) if !is_nobody(&error) => return Err(of_place(error)),
                Err(_) => {}
            }
            if self.place.sweep(&lock).await.len() < MAX_SESSIONS {
                self.spawn().map_err(of_place)?;
                drop(lock);
                return UnixStream::connect(socket.as_path())
                    .await
                    .map_err(|_| Trouble::Gone { greeted: false });
            }
            drop(lock);
            if !control::make_room(&self.place).await {
                break;
            }
        }
        Err(Trouble::Full)
    }

    /// Listens on the socket, and starts a session that inherits it. To be called under the folder's lock.
    fn spawn(&self) -> io::Result<()> {
        let path = self.place.socket(&self.key);
        let listener = UnixListener::bind(path.as_path())?;
        let orders = Orders {
            executable: self.executable.clone(),
            place: self.place.clone(),
            key: self.key.clone(),
            nonce: nonce(),
        };
        let spawned = std::fs::set_permissions(path.as_path(), std::fs::Permissions::from_mode(0o600))
            .and_then(|()| {
                // The runtime reaps the supervisor if it should end before this process.
                tokio::process::Command::from(orders.command(false))
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

/// A word that no two sessions of one key share.
fn nonce() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
    format!("{:x}x{nanos:x}x{:x}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

#[expect(clippy::needless_pass_by_value, reason = "it is a step of map_err")]
fn of_place(error: io::Error) -> Trouble {
    Trouble::Place(error.to_string())
}

impl std::fmt::Debug for Caller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Caller").field("place", &self.place).field("key", &self.key).finish_non_exhaustive()
    }
}
