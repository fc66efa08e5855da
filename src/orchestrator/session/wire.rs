//! What callers and sessions say to each other: frames of four bytes of length (big-endian) and a JSON message. An answer's
//! head is followed by one more frame, the bundle as it is printed with the line's end, so that nobody has to read it to pass it on.
//!
//! Both ends are the same program, because the program is part of the key; only [`Hello`], the status and the order to
//! leave may meet another version, which is told by the number of the protocol.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio_util::codec::{Decoder as _, LengthDelimitedCodec};

use super::key::Terms;
use crate::model::error::ErrorSymbol;
use crate::model::request::Request;
use crate::model::server::ServerKind;
use crate::orchestrator::{Progress, Report, Settings};
use crate::path::AbsPath;
use crate::workspace::snapshot::Trust;

/// The version of what is said here.
pub(super) const PROTOCOL: u32 = 1;

/// The longest message to a session, in bytes.
pub(super) const MAX_REQUEST: usize = 16 << 20;

/// The longest message from a session, in bytes.
pub(super) const MAX_ANSWER: usize = 1 << 30;

/// How many bytes are read at once, at least.
const READ: usize = 16 << 10;

/// The first message of a caller.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Hello {
    pub(super) protocol: u32,
    pub(super) wants: Wants,
}

/// What a caller came for.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Wants {
    /// Answers under these settings.
    Answers(Box<WireSettings>),
    /// To know how the session is.
    Status,
    /// The session's end; `if_idle`: only when nobody is waiting for an answer.
    End { if_idle: bool },
}

/// A question, after the hello.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Ask {
    pub(super) request: Request,
    pub(super) timeout: Duration,
    pub(super) verbose: bool,
}

/// A message of a session.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Told {
    /// The caller is heard.
    Welcome { pid: u32 },
    /// The caller has to do without; `again`: another session can be had at once.
    Refused { why: String, again: bool },
    /// [`Progress::step`].
    Step(String),
    /// [`Progress::say`].
    Say(String),
    /// [`Progress::done`].
    Done,
    /// Nothing new, but somebody is there.
    Alive,
    /// The answer is in the next frame.
    Answer(Head),
    /// How the session is.
    Status(Box<Status>),
}

/// What is to be known of an answer without reading it.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Head {
    pub(super) exit_code: u8,
    pub(super) symbol: Option<ErrorSymbol>,
}

/// How a session is.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Status {
    /// Its workspace; empty when nobody has asked anything yet.
    pub workspace: String,
    /// The process that answers.
    pub pid: u32,
    /// The process that cleans up after it.
    pub supervisor: Option<u32>,
    /// The version of lanser that it is.
    pub lanser: String,
    /// Seconds since it began.
    pub age: u64,
    /// Seconds since the last answer.
    pub idle: u64,
    /// Questions that are being answered now.
    pub asking: u64,
    /// Questions answered so far.
    pub answered: u64,
    /// The options that make it another session than that of a caller without options.
    #[serde(default)]
    pub options: Vec<String>,
    /// What its orchestrator has running.
    #[serde(flatten)]
    pub report: Report,
}

/// [`Settings`] as data, with the time after which an idle session leaves.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct WireSettings {
    root: String,
    server: ServerKind,
    server_version: Option<String>,
    server_command: Option<String>,
    python: Option<String>,
    timeout: Duration,
    offline: bool,
    trust_workspace: bool,
    trust_content: bool,
    cache: String,
    keep: bool,
    search_path: Vec<PathBuf>,
    environment: BTreeMap<String, String>,
    verbose: bool,
    threads: usize,
    session_memory: u64,
    idle: Duration,
}

impl WireSettings {
    pub(super) fn new(settings: &Settings, terms: Terms) -> Self {
        let text = |path: &Option<AbsPath>| path.as_ref().map(ToString::to_string);
        Self {
            root: settings.root.to_string(),
            server: settings.server,
            server_version: settings.server_version.clone(),
            server_command: text(&settings.server_command),
            python: text(&settings.python),
            timeout: settings.timeout,
            offline: settings.offline,
            trust_workspace: settings.trust_workspace,
            trust_content: settings.trust == Trust::Content,
            cache: settings.cache.to_string(),
            keep: settings.keep,
            search_path: settings.search_path.clone(),
            environment: settings.environment.clone(),
            verbose: settings.verbose,
            threads: settings.threads,
            session_memory: settings.session_memory,
            idle: terms.idle,
        }
    }

    /// Leaves what may differ between callers of one session, and the environment.
    pub(super) fn forget_caller(&mut self) {
        self.timeout = Duration::ZERO;
        self.verbose = false;
        self.threads = 0;
        // A folder that comes again changes nothing. All others count, also those in which there is nothing now.
        let mut seen = BTreeSet::new();
        self.search_path.retain(|folder| seen.insert(folder.clone()));
        self.environment.clear();
    }

    /// The options that differ from what is so without any, as they are typed.
    pub(super) fn options(&self) -> Vec<String> {
        let named =
            |name: &str, value: &Option<String>| value.as_ref().map(|value| format!("{name} {value}"));
        let server = match &self.server_version {
            Some(version) => Some(format!("--server {}@{version}", self.server)),
            None => (self.server != ServerKind::Pyright).then(|| format!("--server {}", self.server)),
        };
        let flag = |name: &str, is_set: bool| is_set.then(|| name.to_owned());
        let number = |name: &str, value: u64, usual: u64| (value != usual).then(|| format!("{name} {value}"));
        let all = [
            server,
            named("--server-command", &self.server_command),
            named("--python", &self.python),
            flag("--offline", self.offline),
            flag("--trust-workspace", self.trust_workspace),
            flag("--freshness content", self.trust_content),
            flag("--no-cache", !self.keep),
            number("--session-idle", self.idle.as_secs(), Terms::IDLE.as_secs()),
            number("--session-memory", self.session_memory >> 20, Settings::SERVER_MEMORY >> 20),
        ];
        all.into_iter().flatten().collect()
    }

    /// The settings again, with what only the process that uses them knows. `None` when a path is none.
    pub(super) fn into_settings(
        self,
        temp: AbsPath,
        guard: Option<AbsPath>,
        progress: Arc<dyn Progress>,
    ) -> Option<(Settings, Terms)> {
        let path = |text: String| AbsPath::new(text).ok();
        let optional = |text: Option<String>| text.map_or(Some(None), |text| path(text).map(Some));
        let terms = Terms { idle: self.idle };
        let settings = Settings {
            trace: None,
            root: path(self.root)?,
            copy_of: None,
            server: self.server,
            server_version: self.server_version,
            server_command: optional(self.server_command)?,
            python: optional(self.python)?,
            timeout: self.timeout,
            offline: self.offline,
            trust_workspace: self.trust_workspace,
            trust: if self.trust_content { Trust::Content } else { Trust::Stat },
            cache: path(self.cache)?,
            keep: self.keep,
            temp,
            guard,
            search_path: self.search_path,
            environment: self.environment,
            verbose: self.verbose,
            threads: self.threads,
            session_memory: self.session_memory,
            progress,
        };
        Some((settings, terms))
    }
}

/// The receiving half of a connection.
#[derive(Debug)]
pub(super) struct Inbox {
    stream: OwnedReadHalf,
    buffer: BytesMut,
    codec: LengthDelimitedCodec,
}

impl Inbox {
    /// Reads frames of at most `limit` bytes.
    pub(super) fn new(stream: OwnedReadHalf, limit: usize) -> Self {
        let codec = LengthDelimitedCodec::builder().max_frame_length(limit).new_codec();
        Self { stream, buffer: BytesMut::new(), codec }
    }

    /// The next frame; `None` at the end. Nothing is lost when the wait is given up.
    pub(super) async fn frame(&mut self) -> io::Result<Option<BytesMut>> {
        loop {
            if let Some(frame) = self.codec.decode(&mut self.buffer)? {
                return Ok(Some(frame));
            }
            // At least a short answer at once; a long one has its room by now.
            self.buffer.reserve(READ);
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                let whole = self.buffer.is_empty();
                return if whole { Ok(None) } else { Err(io::ErrorKind::UnexpectedEof.into()) };
            }
        }
    }

    /// The next message; `None` at the end.
    pub(super) async fn message<M: DeserializeOwned>(&mut self) -> io::Result<Option<M>> {
        match self.frame().await? {
            Some(frame) => Ok(Some(serde_json::from_slice(&frame)?)),
            None => Ok(None),
        }
    }
}

/// Writes one frame.
pub(super) async fn send(stream: &mut OwnedWriteHalf, body: &[u8]) -> io::Result<()> {
    stream.write_all(&head(body)?).await?;
    stream.write_all(body).await
}

/// Writes messages as frames, all at once.
pub(super) async fn send_all(stream: &mut OwnedWriteHalf, bodies: &[Vec<u8>]) -> io::Result<()> {
    let mut bytes = Vec::new();
    for body in bodies {
        bytes.extend_from_slice(&head(body)?);
        bytes.extend_from_slice(body);
    }
    stream.write_all(&bytes).await
}

fn head(body: &[u8]) -> io::Result<[u8; 4]> {
    let length = u32::try_from(body.len()).ok().filter(|_| body.len() <= MAX_ANSWER);
    length.map(u32::to_be_bytes).ok_or_else(|| io::ErrorKind::InvalidInput.into())
}
