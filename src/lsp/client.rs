//! A client from `initialize` to `shutdown`: open documents, readiness of the server, reset of inferred types.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lsp_types::notification::{DidChangeConfiguration, Exit, Initialized, Notification as _};
use lsp_types::request::{Initialize, Request as _, Shutdown};
use lsp_types::{
    ClientCapabilities, ClientInfo, DidChangeConfigurationParams, InitializeParams, InitializedParams,
    TraceValue,
};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::capabilities::{self, Capabilities};
use super::connection::Connection;
use super::documents::{self, Documents, FileChange, OutgoingNotification, SharedText};
use super::endpoint::Endpoint;
use super::error::LspError;
use super::process::ServerProcess;
use super::profile::{Profile, ReadySignal, ServerSettings};
use super::recording::{self, Handshake};
use super::requests::LspRequests;
use super::server_requests::{self, ServerRequestHandler};
use super::{reset, wire};
use crate::model::server::ServerKind;
use crate::path::AbsPath;
use crate::tape::Tape;
use crate::text::{ColumnUnit, Position};

/// What [`Client::ready`] waits for, as named in errors.
const ENUMERATION: &str = "the enumeration of source files";

/// The interpreter in recorded settings: the real one is in a temporary folder.
const RECORDED_PYTHON: &str = "/lanser/python";

/// How long a killed process may take to exit.
const KILL_TIMEOUT: Duration = Duration::from_secs(2);

/// The parameters for initializing a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InitializeOptions {
    /// The root of the workspace, its only folder.
    pub root: AbsPath,
    /// The settings that `workspace/configuration` is answered from.
    pub settings: ServerSettings,
    /// The process whose end the server should notice; `None` if there is no such process, as in a replay.
    pub process_id: Option<u32>,
    /// How long to wait for the result of `initialize`.
    pub within: Duration,
}

/// The name and version of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerIdentity {
    /// The name.
    pub name: String,
    /// The version, if known.
    pub version: Option<String>,
}

/// The state of a server that has enumerated the workspace's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Readiness {
    /// How many source files the server found; the largest number if it does not count them.
    pub files: u32,
}

/// A connected and initialized server. Dropping it kills the server and fails every request with
/// [`LspError::Closed`]; the orderly end is [`Self::shutdown`].
#[derive(Debug)]
pub struct Client {
    endpoint: Arc<Endpoint>,
    reader: JoinHandle<()>,
    process: Option<ServerProcess>,
    kind: ServerKind,
    /// The messages of the initialization, for recording.
    handshake: Handshake,
    /// From the result of `initialize`; Pyright sends none.
    server_info: Option<ServerIdentity>,
    capabilities: Capabilities,
    encoding: ColumnUnit,
    documents: Mutex<Documents>,
    /// The number of finished enumerations when the last one became necessary.
    stale_enumerations: Mutex<u64>,
    /// The document whose change resets inferred types, and how often it was changed.
    reset_document: (AbsPath, Mutex<u64>),
}

impl Client {
    /// Performs the `initialize` handshake. `process` is the server behind the connection, if lanser started it; it
    /// lives as long as the client.
    ///
    /// # Errors
    /// When the server does not respond in time or correctly, is not the profile's server, or chooses an unknown position encoding. The process is killed then.
    pub async fn initialize(
        connection: Connection,
        process: Option<ServerProcess>,
        profile: &'static Profile,
        options: InitializeOptions,
    ) -> Result<Self, LspError> {
        let handler =
            ServerRequestHandler::new(profile.configuration(&options.settings), options.root.clone());
        let params = initialize_params(&options, profile);
        let recorded = initialize_params(&InitializeOptions { process_id: None, ..options.clone() }, profile);
        let cancellation = process.as_ref().and_then(ServerProcess::cancellation);
        let endpoint = Arc::new(Endpoint::new(connection.sender, handler, cancellation));
        let watch = process.as_ref().map(ServerProcess::watch);
        let reader = tokio::spawn(endpoint.clone().run(connection.receiver, watch));
        let mut client = Self {
            endpoint,
            reader,
            process,
            kind: profile.kind,
            handshake: Handshake::new(recorded),
            server_info: None,
            capabilities: Capabilities::default(),
            encoding: ColumnUnit::Utf16,
            documents: Mutex::default(),
            stale_enumerations: Mutex::default(),
            reset_document: (reset::path(&options.root), Mutex::default()),
        };
        let answer = client.endpoint.request(Initialize::METHOD, params, options.within).await?;
        let malformed =
            |reason: String| LspError::Malformed { method: Initialize::METHOD.to_owned(), reason };
        let answer: Value = answer.read().map_err(|error| malformed(error.to_string()))?;
        let offered =
            answer.get("capabilities").ok_or_else(|| malformed("it has no `capabilities`".to_owned()))?;
        client.encoding = capabilities::encoding(offered)?;
        client.capabilities = Capabilities::read(offered, profile);
        client.server_info = answer["serverInfo"]["name"].as_str().map(|name| ServerIdentity {
            name: name.to_owned(),
            version: answer["serverInfo"]["version"].as_str().map(str::to_owned),
        });
        client.handshake.result = answer;
        client.check_identity(profile.kind)?;
        client.notify(wire::notification::<Initialized>(InitializedParams {}))?;
        // A server logs its version before it responds.
        if profile.waits_for_settings(client.identity().version.as_deref()) {
            // Without settings, because the server requests the sections that it needs.
            let params = DidChangeConfigurationParams { settings: Value::Null };
            client.notify(wire::notification::<DidChangeConfiguration>(params))?;
            client.handshake.settings_announced = true;
        }
        Ok(client)
    }

    /// Records the server's initialization on a tape.
    pub fn record_initialize(&self, tape: &Tape) {
        if tape.is_recording() {
            let lines: Vec<String> = self.endpoint.state().log_lines.into_iter().flatten().collect();
            let python = AbsPath::new(RECORDED_PYTHON).ok();
            let settings = Profile::of(self.kind).configuration(&ServerSettings { python });
            let answered = |params: Value| {
                let answer = server_requests::configuration(&settings, &params);
                (params, answer)
            };
            let requested: Vec<_> = self.endpoint.settings_requests().into_iter().map(answered).collect();
            let registered = self.endpoint.registered();
            recording::record_initialize(tape, &self.handshake, &registered, &requested, &lines);
        }
    }

    /// The server's identity: from `serverInfo`, else from its log, else the profile's name without a version.
    #[must_use]
    pub fn identity(&self) -> ServerIdentity {
        let from_log = || {
            let (kind, version) = self.endpoint.state().identity?;
            Some(ServerIdentity { name: kind.as_str().to_owned(), version: Some(version) })
        };
        let unknown = || ServerIdentity { name: self.kind.as_str().to_owned(), version: None };
        self.server_info.clone().or_else(from_log).unwrap_or_else(unknown)
    }

    /// The server's process id, if lanser started it.
    #[must_use]
    pub fn process_id(&self) -> Option<u32> {
        self.process.as_ref().map(ServerProcess::id)
    }

    /// The memory of the server's process in bytes, if the operating system reports it.
    #[must_use]
    pub fn memory(&self) -> Option<u64> {
        self.process.as_ref().and_then(ServerProcess::memory)
    }

    /// Whether it can still answer requests.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        !self.endpoint.state().ended
    }

    /// The unit of all columns to and from this server.
    #[must_use]
    pub fn encoding(&self) -> ColumnUnit {
        self.encoding
    }

    /// The methods that the server supports.
    #[must_use]
    pub fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    /// Requests that each fail after `timeout`. Retries count towards it.
    #[must_use]
    pub fn requests(&self, timeout: Duration) -> LspRequests {
        LspRequests::new(self.endpoint.clone(), self.capabilities, timeout, self.reset_document.0.clone())
    }

    /// Makes the server drop its inferred types, so that earlier requests cannot affect the answers of later ones.
    /// Takes effect for all requests sent from now on.
    ///
    /// # Errors
    /// How the connection ended.
    pub fn reset_inferred_types(&self) -> Result<(), LspError> {
        if Profile::of(self.kind).is_order_independent {
            return Ok(());
        }
        let (path, count) = &self.reset_document;
        let mut count = count.lock().unwrap_or_else(PoisonError::into_inner);
        let mut documents = self.documents();
        if *count == 0 {
            // Opening a document drops nothing, only changing it does.
            let notification = documents.open(path, Arc::new(reset::text(0)));
            self.notify(notification)?;
        }
        *count += 1;
        let notification = documents.open(path, Arc::new(reset::text(*count)));
        self.notify(notification)
    }

    /// Makes the server infer the types that nearly every request needs. The future ends when it has.
    pub fn preload_builtins(&self, within: Duration) -> impl Future<Output = ()> + Send + use<> {
        let (line, column) = reset::HOVER_POSITION;
        let is_useful = !Profile::of(self.kind).is_order_independent;
        let hover =
            is_useful.then(|| self.requests(within).hover(&self.reset_document.0, Position { line, column }));
        async move {
            if let Some(hover) = hover {
                // The result does not matter, nor whether there is one.
                drop(hover.await);
            }
        }
    }

    /// Waits until the server has enumerated the source files: since its start, or since a file was last announced as
    /// created or deleted. Before that, requests about the whole workspace are answered from the open documents.
    ///
    /// After the announcement of a new file that the workspace's configuration excludes, the server enumerates
    /// nothing and logs nothing, so a timeout can mean that too. If the log line comes, it comes within the time that
    /// the first one took.
    ///
    /// # Errors
    /// [`LspError::Timeout`], or how the connection ended.
    pub async fn ready(&self, within: Duration) -> Result<Readiness, LspError> {
        if Profile::of(self.kind).ready == ReadySignal::Blocking {
            return Ok(Readiness { files: u32::MAX });
        }
        let stale = *self.stale();
        let state = self.endpoint.wait_for(ENUMERATION, within, |state| state.enumerations > stale).await?;
        Ok(Readiness { files: state.files })
    }

    /// Waits until the server has answered every cancelled request, so that it works on none of them.
    ///
    /// # Errors
    /// [`LspError::Timeout`], or how the connection ended.
    pub async fn wait_for_cancelled(&self, within: Duration) -> Result<(), LspError> {
        self.endpoint
            .wait_for("cancelled requests", within, |state| state.unanswered_cancelled == 0 && !state.ended)
            .await
            .map(drop)
    }

    /// Sets the text of a document on the server; opens the document if necessary.
    ///
    /// # Errors
    /// How the connection ended.
    pub fn open(&self, path: &AbsPath, text: SharedText) -> Result<(), LspError> {
        let mut documents = self.documents();
        let notification = documents.open(path, text);
        self.notify(notification)
    }

    /// Changes the text of an open document.
    ///
    /// # Errors
    /// [`LspError::NotOpen`], or how the connection ended.
    pub fn change(&self, path: &AbsPath, text: SharedText) -> Result<(), LspError> {
        let mut documents = self.documents();
        let notification = documents.change(path, text).ok_or_else(|| LspError::NotOpen(path.clone()))?;
        self.notify(notification)
    }

    /// Closes a document: the server reads it from disk again. Does nothing if it is not open.
    ///
    /// # Errors
    /// How the connection ended.
    pub fn close(&self, path: &AbsPath) -> Result<(), LspError> {
        let mut documents = self.documents();
        documents.close(path).map_or(Ok(()), |notification| self.notify(notification))
    }

    /// The open documents, sorted by path.
    #[must_use]
    pub fn open_documents(&self) -> Vec<AbsPath> {
        let mut paths = self.documents().paths();
        paths.retain(|path| *path != self.reset_document.0);
        paths
    }

    /// Announces changes on disk. When a Python file is created or deleted, [`Self::ready`] waits for the next
    /// enumeration. Wait for a running enumeration before announcing more: their log lines look the same.
    ///
    /// # Errors
    /// How the connection ended.
    pub fn did_change_watched_files(&self, changes: &[FileChange]) -> Result<(), LspError> {
        if changes.iter().any(FileChange::affects_enumeration) {
            *self.stale() = self.endpoint.state().enumerations;
        }
        self.notify(documents::watched_files_changed(changes))
    }

    /// Shuts the server down in order: `shutdown`, `exit`, end of its input. Kills it when it does not exit in time, or at once where
    /// the profile says so. When this returns, the process and its cancellation folder are gone.
    ///
    /// # Errors
    /// When it had to be killed: [`LspError::Timeout`]. When it had ended before: the reason.
    pub async fn shutdown(mut self, within: Duration) -> Result<(), LspError> {
        let is_idle = self.endpoint.state().unanswered_cancelled == 0;
        if Profile::of(self.kind).ends_by_kill
            && is_idle
            && let Some(process) = self.process.take()
        {
            process.kill();
            process.wait(KILL_TIMEOUT).await;
            return Ok(());
        }
        let started_at = Instant::now();
        let answer = self.endpoint.request(Shutdown::METHOD, Value::Null, within).await;
        let _ = self.endpoint.notify(Exit::METHOD, None);
        self.endpoint.close_input();
        if let Some(process) = self.process.take() {
            let left = within.saturating_sub(started_at.elapsed());
            if process.wait(left).await.is_none() {
                process.kill();
                process.wait(KILL_TIMEOUT).await;
                answer?;
                return Err(LspError::Timeout { method: Exit::METHOD.to_owned(), after: within });
            }
        }
        answer.map(drop)
    }

    /// Checks that the server is the expected one, as far as it has identified itself.
    fn check_identity(&self, kind: ServerKind) -> Result<(), LspError> {
        let found = self.identity().name;
        // Two servers come with a `pyright-langserver`. Only other known servers are refused by name, because an
        // unknown name may be a new spelling.
        let other = ServerKind::ALL.into_iter().any(|known| known != kind && known.as_str() == found);
        if other {
            return Err(LspError::OtherServer { expected: kind.as_str().to_owned(), found });
        }
        Ok(())
    }

    fn notify(&self, (method, params): OutgoingNotification) -> Result<(), LspError> {
        self.endpoint.notify(method, Some(params))
    }

    fn documents(&self) -> MutexGuard<'_, Documents> {
        self.documents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stale(&self) -> MutexGuard<'_, u64> {
        self.stale_enumerations.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.endpoint.close(&LspError::Closed);
        self.reader.abort();
    }
}

/// The parameters of `initialize`. The root is given in all three ways because servers differ in which they read, and
/// the locale because messages are otherwise in the language of the environment.
#[expect(deprecated, reason = "older servers read only `rootUri` or `rootPath`")]
fn initialize_params(options: &InitializeOptions, profile: &Profile) -> Value {
    let mut params = wire::value(InitializeParams {
        process_id: options.process_id,
        root_path: Some(options.root.to_string()),
        root_uri: Some(wire::uri(&options.root)),
        initialization_options: Some(json!({})),
        // Replaced by those with the members of LSP 3.18.
        capabilities: ClientCapabilities::default(),
        trace: Some(TraceValue::Off),
        workspace_folders: Some(server_requests::folders(&options.root)),
        client_info: Some(ClientInfo {
            name: "lanser".to_owned(),
            version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        }),
        locale: Some("en".to_owned()),
        ..InitializeParams::default()
    });
    params["capabilities"] = capabilities::declared(profile);
    params
}
