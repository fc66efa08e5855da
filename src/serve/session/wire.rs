//! The protocol between clients and sessions: frames with a length of four bytes (big-endian) and a JSON message. The
//! header of a response is followed by one more frame: the bundle as printed, with its line end, so that it can be
//! passed on without being parsed.
//!
//! Both ends are the same program, because the program is part of the key. Only [`Hello`], the status and the request
//! to stop may reach another version; the protocol version tells them apart.

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

use super::key::SessionOptions;
use crate::engine::{Progress, RunningServers, Settings};
use crate::model::error::ErrorSymbol;
use crate::model::request::Request;
use crate::model::server::ServerKind;
use crate::path::AbsPath;
use crate::workspace::snapshot::ChangeDetection;

/// The version of this protocol.
pub(super) const PROTOCOL: u32 = 1;

/// The longest message to a session.
pub(super) const MAX_REQUEST_BYTES: usize = 16 << 20;

/// The longest message from a session.
pub(super) const MAX_RESPONSE_BYTES: usize = 1 << 30;

/// The least number of bytes to make room for before each read.
const MIN_READ_BYTES: usize = 16 << 10;

/// The first message of a client.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Hello {
    pub(super) protocol: u32,
    #[serde(rename = "wants")]
    pub(super) intent: Intent,
}

/// What a client wants from the connection.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Intent {
    /// Send requests under these settings.
    #[serde(rename = "answers")]
    SendRequests(Box<WireSettings>),
    /// Get the session's status.
    Status,
    /// Stop the session; `if_idle`: only if it has no active requests.
    #[serde(rename = "end")]
    Stop { if_idle: bool },
}

/// A request, after the hello.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SessionRequest {
    pub(super) request: Request,
    pub(super) timeout: Duration,
    pub(super) verbose: bool,
}

/// A message from a session.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum SessionMessage {
    /// The session accepts the client's requests.
    Welcome { pid: u32 },
    /// The session refuses to answer; `again`: the client can connect to another session at once.
    Refused { why: String, again: bool },
    /// [`Progress::step`].
    Step(String),
    /// [`Progress::notify`].
    Notify(String),
    /// [`Progress::done`].
    Done,
    /// Heartbeat while a request is being answered.
    Alive,
    /// The bundle follows in the next frame.
    #[serde(rename = "answer")]
    Response(ResponseHeader),
    /// Replies to [`Intent::Status`] and [`Intent::Stop`].
    Status(Box<SessionStatus>),
}

/// The parts of a response that are needed without parsing the bundle.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct ResponseHeader {
    pub(super) exit_code: u8,
    pub(super) symbol: Option<ErrorSymbol>,
}

/// The status of a session.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SessionStatus {
    /// Its workspace; empty before the first client.
    pub workspace: String,
    /// The process of the service.
    pub pid: u32,
    /// The process of the supervisor, which cleans up after the service.
    pub supervisor: Option<u32>,
    /// Its version of lanser.
    pub lanser: String,
    /// Seconds since it started.
    pub age: u64,
    /// Seconds since the last answer; 0 while it answers.
    pub idle: u64,
    /// How many requests it is answering.
    #[serde(rename = "asking")]
    pub active_requests: u64,
    /// How many requests it has answered.
    pub answered: u64,
    /// The options in which it differs from a session without options, as typed on the command line.
    #[serde(default)]
    pub options: Vec<String>,
    /// The servers that it runs.
    #[serde(flatten)]
    pub report: RunningServers,
}

/// [`Settings`] as data, with the session's idle timeout.
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
    pub(super) fn new(settings: &Settings, session_options: SessionOptions) -> Self {
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
            trust_content: settings.trust == ChangeDetection::Content,
            cache: settings.cache.to_string(),
            keep: settings.keep,
            search_path: settings.search_path.clone(),
            environment: settings.environment.clone(),
            verbose: settings.verbose,
            threads: settings.threads,
            session_memory: settings.session_memory,
            idle: session_options.idle_timeout,
        }
    }

    /// Clears the settings that may differ between clients of one session, and the environment.
    pub(super) fn remove_client_settings(&mut self) {
        self.timeout = Duration::ZERO;
        self.verbose = false;
        self.threads = 0;
        // A repeated folder has no effect. All others count, even those that are empty now.
        let mut seen = BTreeSet::new();
        self.search_path.retain(|folder| seen.insert(folder.clone()));
        self.environment.clear();
    }

    /// The options that differ from the defaults, as typed on the command line.
    pub(super) fn options(&self) -> Vec<String> {
        let named =
            |name: &str, value: &Option<String>| value.as_ref().map(|value| format!("{name} {value}"));
        let flag = |name: &str, is_set: bool| is_set.then(|| name.to_owned());
        let number = |name: &str, value: u64, usual: u64| (value != usual).then(|| format!("{name} {value}"));
        let all = [
            self.server.option(self.server_version.as_deref()),
            named("--server-command", &self.server_command),
            named("--python", &self.python),
            flag("--offline", self.offline),
            flag("--trust-workspace", self.trust_workspace),
            flag("--freshness content", self.trust_content),
            flag("--no-cache", !self.keep),
            number("--session-idle", self.idle.as_secs(), SessionOptions::DEFAULT_IDLE_TIMEOUT.as_secs()),
            number("--session-memory", self.session_memory >> 20, Settings::SERVER_MEMORY >> 20),
        ];
        all.into_iter().flatten().collect()
    }

    /// The settings, completed with the values of the process that uses them. `None` when a path is not absolute.
    pub(super) fn into_settings(
        self,
        temp: AbsPath,
        guard: Option<AbsPath>,
        progress: Arc<dyn Progress>,
    ) -> Option<(Settings, SessionOptions)> {
        let path = |text: String| AbsPath::new(text).ok();
        let optional = |text: Option<String>| text.map_or(Some(None), |text| path(text).map(Some));
        let session_options = SessionOptions { idle_timeout: self.idle };
        let settings = Settings {
            trace: None,
            root: path(self.root)?,
            copy_of: None,
            environment_of: None,
            server: self.server,
            server_version: self.server_version,
            server_command: optional(self.server_command)?,
            python: optional(self.python)?,
            timeout: self.timeout,
            offline: self.offline,
            trust_workspace: self.trust_workspace,
            trust: if self.trust_content { ChangeDetection::Content } else { ChangeDetection::Stat },
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
        Some((settings, session_options))
    }
}

/// Reads frames from a connection.
#[derive(Debug)]
pub(super) struct FrameReader {
    stream: OwnedReadHalf,
    buffer: BytesMut,
    codec: LengthDelimitedCodec,
}

impl FrameReader {
    /// Accepts frames of at most `limit` bytes.
    pub(super) fn new(stream: OwnedReadHalf, limit: usize) -> Self {
        let codec = LengthDelimitedCodec::builder().max_frame_length(limit).new_codec();
        Self { stream, buffer: BytesMut::new(), codec }
    }

    /// The next frame; `None` at the end. Cancel-safe: dropping the future loses no data.
    pub(super) async fn frame(&mut self) -> io::Result<Option<BytesMut>> {
        loop {
            if let Some(frame) = self.codec.decode(&mut self.buffer)? {
                return Ok(Some(frame));
            }
            // Enough for a short response in one read; for a long one the decoder has reserved space already.
            self.buffer.reserve(MIN_READ_BYTES);
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                let is_complete = self.buffer.is_empty();
                return if is_complete { Ok(None) } else { Err(io::ErrorKind::UnexpectedEof.into()) };
            }
        }
    }

    /// The next message; `None` at the end of the stream.
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

/// Writes several frames with one write.
pub(super) async fn send_all(stream: &mut OwnedWriteHalf, bodies: &[Vec<u8>]) -> io::Result<()> {
    let mut bytes = Vec::new();
    for body in bodies {
        bytes.extend_from_slice(&head(body)?);
        bytes.extend_from_slice(body);
    }
    stream.write_all(&bytes).await
}

fn head(body: &[u8]) -> io::Result<[u8; 4]> {
    let length = u32::try_from(body.len()).ok().filter(|_| body.len() <= MAX_RESPONSE_BYTES);
    length.map(u32::to_be_bytes).ok_or_else(|| io::ErrorKind::InvalidInput.into())
}
