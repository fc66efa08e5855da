//! The language server protocol: a server for agents and editors that answers as the commands do.
//!
//! Every answer is complete or says that it is not, and is about the text that the client sees: where an open document has unsaved
//! text, a copy of the workspace with that text is asked. Nothing is written; renames and code actions are edits that the client
//! applies, and a rename that the command refuses is refused with its reason and hint.

mod capabilities;
mod convert;
mod documents;
mod hierarchies;
mod requests;

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lsp_types as lsp;
use rustix::process::Pid;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot, watch};

use crate::engine::{Engine, ONE_BASED, UnsavedWorkspace};
use crate::lsp::Connection;
use crate::lsp::codec::CodecError;
use crate::lsp::connection::Received;
use crate::lsp::jsonrpc::{Message, Notification, ResponseError, RpcId, RpcRequest};
use crate::model::error::ErrorBody;
use crate::model::request::{Guards, Scope};
use crate::path::{AbsPath, FileUri, is_python};
use crate::serve::session::control::is_running;
use capabilities::ClientSupport;
use documents::{ClientDocument, ClientPaths, OpenDocuments};

/// Error codes of JSON-RPC and of the protocol.
mod codes {
    pub(super) const PARSE_ERROR: i64 = -32700;
    pub(super) const INVALID_REQUEST: i64 = -32600;
    pub(super) const METHOD_NOT_FOUND: i64 = -32601;
    pub(super) const INVALID_PARAMS: i64 = -32602;
    pub(super) const NOT_INITIALIZED: i64 = -32002;
    pub(super) const REQUEST_CANCELLED: i64 = -32800;
    pub(super) const CONTENT_MODIFIED: i64 = -32801;
    pub(super) const REQUEST_FAILED: i64 = -32803;
}

/// How long the text of a document has to stay unchanged before its diagnostics are sent to a client that does not request them.
const PUBLISH_DELAY: Duration = Duration::from_millis(200);

/// How often to look whether the client's process exists.
const LIVENESS_INTERVAL: Duration = Duration::from_secs(2);

/// How long the client may take to read the last answers.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// What the server answers about, and how.
pub struct LspWorkspace {
    /// Answers requests about the files on the disk.
    pub engine: Engine,
    /// What edits may touch.
    pub guards: Guards,
    /// The files that are searched.
    pub scope: Scope,
    /// Whether a method is renamed in all related classes.
    pub family: bool,
    /// Whether the text of open documents is ignored: answers are about the disk.
    pub from_disk: bool,
}

/// How serving ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Served {
    /// The client asked for it, or closed the connection.
    Ended,
    /// The client sent `exit` without asking for a shutdown first.
    NotShutDown,
    /// The client sent what is not the protocol.
    Failed {
        /// What the client did.
        reason: String,
    },
}

/// Serves a client on standard input and output. `open` opens the workspace, at the folder that the client names.
pub async fn run(
    open: impl Fn(Option<AbsPath>) -> Result<LspWorkspace, ErrorBody>,
    interrupted: impl Future<Output = ()>,
) -> Served {
    let (Connection { sender, mut receiver }, writing) =
        Connection::to_client(tokio::io::stdin(), tokio::io::stdout());
    let mut interrupted = pin!(interrupted);
    let mut session = LspSession {
        open,
        sender,
        server: None,
        client: None,
        running: BTreeMap::new(),
        asked: 0,
        is_shut_down: false,
    };
    let mut liveness = tokio::time::interval(LIVENESS_INTERVAL);
    let (done, mut finished) = mpsc::unbounded_channel();
    let served = loop {
        tokio::select! {
            biased;
            () = &mut interrupted => break Served::Ended,
            Some(id) = finished.recv() => drop(session.running.remove(&id)),
            received = receiver.recv() => match received {
                None => break Served::Ended,
                Some(Err(error @ CodecError::Body { is_json, .. })) => {
                    let code = if is_json { codes::INVALID_REQUEST } else { codes::PARSE_ERROR };
                    let error = failed(code, &error.to_string());
                    session.send(Message::unreadable(error));
                }
                Some(Err(error)) => {
                    session.log(lsp::MessageType::ERROR, &format!("the connection ends: {error}"));
                    break Served::Failed { reason: format!("the client's messages cannot be read: {error}") };
                }
                Some(Ok(Message::Notification(note))) if note.method == "exit" => {
                    break if session.is_shut_down { Served::Ended } else { Served::NotShutDown };
                }
                Some(Ok(Message::Notification(note))) => session.notified(&note),
                Some(Ok(Message::Request(request))) => session.requested(request, &done),
                Some(Ok(Message::Response(_))) => {}
            },
            // Something else may hold its end of the pipe.
            _ = liveness.tick(), if session.client.is_some() => {
                if session.client.is_some_and(|client| !is_running(client)) {
                    break Served::Ended;
                }
            }
        }
    };
    // Cancels what is running.
    session.running.clear();
    if let Some(server) = session.server.take() {
        server.workspace.engine.close().await;
        server.copy.close().await;
    }
    // What was answered last is still on its way.
    drop(session);
    let _ = tokio::time::timeout(FLUSH_TIMEOUT, writing).await;
    served
}

/// A connection from its first message to its last.
struct LspSession<O> {
    open: O,
    sender: mpsc::UnboundedSender<Received>,
    /// `None` before `initialize`.
    server: Option<Arc<LspServer>>,
    /// The process that started this one, if it told its id and can be seen from here.
    client: Option<Pid>,
    /// The requests that are being answered. Dropping the value cancels the request.
    running: BTreeMap<RpcId, oneshot::Sender<()>>,
    /// How many requests the client got.
    asked: i64,
    is_shut_down: bool,
}

/// What the requests of a client share.
struct LspServer {
    workspace: LspWorkspace,
    paths: ClientPaths,
    /// The folders of the client that are not served.
    others: Vec<AbsPath>,
    /// Answers about text that is not saved.
    copy: UnsavedWorkspace,
    client: ClientSupport,
    documents: Mutex<OpenDocuments>,
    /// Counts the changes of the open documents.
    changes: watch::Sender<u64>,
    sender: mpsc::UnboundedSender<Received>,
}

impl<O: Fn(Option<AbsPath>) -> Result<LspWorkspace, ErrorBody>> LspSession<O> {
    fn send(&self, message: Message) {
        // A client that is gone needs no answer.
        let _ = self.sender.send(Ok(message));
    }

    /// Sends a request, whose response is not needed.
    fn ask(&mut self, method: &str, params: Option<Value>) {
        self.asked += 1;
        self.send(Message::request(RpcId::Number(self.asked), method, params));
    }

    fn log(&self, kind: lsp::MessageType, message: &str) {
        let params = json!(lsp::LogMessageParams { typ: kind, message: message.to_owned() });
        self.send(Message::notification("window/logMessage", Some(params)));
    }

    fn requested(&mut self, request: RpcRequest, done: &mpsc::UnboundedSender<RpcId>) {
        let RpcRequest { id, method, params } = request;
        let params = params.unwrap_or(Value::Null);
        let outcome = match (method.as_str(), &self.server) {
            _ if self.is_shut_down => Err(failed(codes::INVALID_REQUEST, "the server is shut down")),
            ("initialize", None) => self.initialize(params),
            ("initialize", Some(_)) => {
                Err(failed(codes::INVALID_REQUEST, "the server is initialized already"))
            }
            (_, None) => Err(failed(codes::NOT_INITIALIZED, "the first request has to be `initialize`")),
            ("shutdown", Some(_)) => {
                self.is_shut_down = true;
                self.running.clear();
                Ok(Value::Null)
            }
            (_, Some(server)) => {
                let (server, sender, done) = (server.clone(), self.sender.clone(), done.clone());
                let (cancel, canceled) = oneshot::channel();
                self.running.insert(id.clone(), cancel);
                let open = server.documents().clone();
                tokio::spawn(async move {
                    let canceled = async {
                        // Completes also when the sender is dropped.
                        let _ = canceled.await;
                    };
                    let outcome = server.answer(&method, params, open, pin!(canceled)).await;
                    let _ = sender.send(Ok(Message::response(id.clone(), outcome)));
                    let _ = done.send(id);
                });
                return;
            }
        };
        self.send(Message::response(id, outcome));
    }

    fn notified(&mut self, note: &Notification) {
        let params = note.params.as_ref().map(|params| params.value().into_owned()).unwrap_or_default();
        if note.method == "$/cancelRequest" {
            if let Ok(CancelParams { id }) = serde_json::from_value(params) {
                self.running.remove(&id);
            }
            return;
        }
        let Some(server) = self.server.clone() else { return };
        if note.method == "initialized" && server.client.watches {
            self.ask("client/registerCapability", Some(watched_files()));
        }
        match server.notified(&note.method, params) {
            Ok(ClientChange::None) => {}
            Ok(ClientChange::Disk) if server.client.pulls && server.client.refreshes => {
                self.ask("workspace/diagnostic/refresh", None);
            }
            Ok(_) if server.client.pulls => {}
            Ok(change) => {
                let (open, changes) = (server.documents().clone(), server.changes.subscribe());
                tokio::spawn(async move { server.publish(change, open, changes).await });
            }
            Err(message) => self.log(lsp::MessageType::ERROR, &format!("{}: {message}", note.method)),
        }
    }

    fn initialize(&mut self, params: Value) -> Result<Value, ResponseError> {
        let refreshes = ClientSupport::refreshes(&params);
        let params: lsp::InitializeParams = read(params)?;
        #[expect(deprecated, reason = "clients without workspace folders set only this")]
        let root = params.root_uri.as_ref();
        let folders = params.workspace_folders.unwrap_or_default();
        let root = folders.first().map(|folder| &folder.uri).or(root);
        let root = match root.map(|root| FileUri::parse_path(root.as_str())) {
            Some(Ok(path)) => Some(path),
            Some(Err(error)) => return Err(failed(codes::INVALID_PARAMS, &error.to_string())),
            None => None,
        };
        let workspace = (self.open)(root.clone()).map_err(|error| of_body(&error))?;
        let others = folders.iter().skip(1);
        let others: Vec<AbsPath> =
            others.filter_map(|folder| FileUri::parse_path(folder.uri.as_str()).ok()).collect();
        if let Some(ignored) = folders.get(1) {
            self.log(
                lsp::MessageType::WARNING,
                &format!("only the first folder is served, not {}", ignored.name),
            );
        }
        let client = params.process_id.and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        // In a container the client's id may be of no process.
        self.client = client.filter(|client| is_running(*client));
        let client = ClientSupport::new(&params.capabilities, refreshes);
        self.server = Some(Arc::new(LspServer {
            copy: UnsavedWorkspace::new(workspace.engine.settings.clone()),
            paths: ClientPaths::new(&workspace.engine.settings.root, root),
            others,
            workspace,
            client,
            documents: Mutex::default(),
            changes: watch::Sender::new(0),
            sender: self.sender.clone(),
        }));
        let mut initialized = json!(lsp::InitializeResult {
            capabilities: client.offered(),
            server_info: Some(lsp::ServerInfo {
                name: "lanser".to_owned(),
                version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            }),
        });
        // `lsp-types` 0.97 has no member for it.
        initialized["capabilities"]["typeHierarchyProvider"] = json!(true);
        Ok(initialized)
    }
}

#[derive(Deserialize)]
struct CancelParams {
    id: RpcId,
}

impl LspServer {
    fn documents(&self) -> MutexGuard<'_, OpenDocuments> {
        self.documents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Follows the open documents. Returns what may have changed diagnostics.
    fn notified(&self, method: &str, params: Value) -> Result<ClientChange, String> {
        fn read<T: DeserializeOwned>(params: Value) -> Result<T, String> {
            serde_json::from_value(params).map_err(|error| error.to_string())
        }
        // Documents without a path, such as new ones that have no name yet, are in no workspace.
        let path = |uri: &lsp::Uri| self.path_of(uri).ok();
        let change = match method {
            "textDocument/didOpen" => {
                let opened: lsp::DidOpenTextDocumentParams = read(params)?;
                let lsp::TextDocumentItem { uri, version, text, .. } = opened.text_document;
                let Some(path) = path(&uri) else { return Ok(ClientChange::None) };
                self.documents().set(path.clone(), ClientDocument { uri, version, text: text.into() });
                ClientChange::Text(path)
            }
            "textDocument/didChange" => {
                let changed: lsp::DidChangeTextDocumentParams = read(params)?;
                let lsp::VersionedTextDocumentIdentifier { uri, version } = changed.text_document;
                let Some(path) = path(&uri) else { return Ok(ClientChange::None) };
                let Some(first) = changed.content_changes.first() else { return Ok(ClientChange::None) };
                let mut documents = self.documents();
                let mut document = match documents.as_spelled(&uri) {
                    Some(open) => open.clone(),
                    None if first.range.is_some() => {
                        return Err(format!("{path}: a part is changed of a document that is not open"));
                    }
                    None => ClientDocument { uri, version, text: "".into() },
                };
                document.version = version;
                for change in changed.content_changes {
                    document.change(change, self.client.unit);
                }
                documents.set(path.clone(), document);
                ClientChange::Text(path)
            }
            "textDocument/didSave" => {
                let saved: lsp::DidSaveTextDocumentParams = read(params)?;
                path(&saved.text_document.uri).map_or(ClientChange::None, ClientChange::Text)
            }
            "textDocument/didClose" => {
                let closed: lsp::DidCloseTextDocumentParams = read(params)?;
                self.documents().close(&closed.text_document.uri);
                // The text that others see is that on the disk again.
                ClientChange::Closed(closed.text_document.uri)
            }
            "workspace/didChangeWatchedFiles" => ClientChange::Disk,
            _ => return Ok(ClientChange::None),
        };
        self.changes.send_modify(|changes| *changes += 1);
        Ok(change)
    }

    fn notify(&self, method: &str, params: Value) {
        let _ = self.sender.send(Ok(Message::notification(method, Some(params))));
    }

    /// Sends diagnostics to a client that does not request them: those of the document that changed, and then those of the other
    /// open ones, which depend on it.
    async fn publish(&self, change: ClientChange, open: OpenDocuments, mut changes: watch::Receiver<u64>) {
        let first = match change {
            ClientChange::Text(path) => Some(path),
            ClientChange::Closed(uri) => {
                let nothing = lsp::PublishDiagnosticsParams::new(uri, Vec::new(), None);
                self.notify("textDocument/publishDiagnostics", json!(nothing));
                None
            }
            ClientChange::Disk | ClientChange::None => None,
        };
        // While a user types, only the last text is checked.
        tokio::time::sleep(PUBLISH_DELAY).await;
        if let Some(first) = &first {
            self.publish_one(first, &open, pin!(self.newer_text(first, &open, changes.clone()))).await;
        }
        let root = &self.workspace.engine.settings.root;
        for (path, _) in open.iter() {
            // Newer text is followed by its own diagnostics.
            if changes.has_changed().unwrap_or(true) {
                return;
            }
            if Some(path) != first.as_ref() && path.strip_prefix(root).is_some() && is_python(path.as_str()) {
                let newer = async {
                    let _ = changes.changed().await;
                };
                self.publish_one(path, &open, pin!(newer)).await;
            }
        }
    }

    /// Waits until a document has another text.
    async fn newer_text(&self, path: &AbsPath, open: &OpenDocuments, mut changes: watch::Receiver<u64>) {
        while self.documents().of(path).eq(open.of(path)) && changes.changed().await.is_ok() {}
    }

    /// Sends the diagnostics of a document, if it still has the same text then.
    async fn publish_one(&self, path: &AbsPath, open: &OpenDocuments, canceled: requests::Canceled<'_>) {
        let is_outdated = || !self.documents().of(path).eq(open.of(path));
        if is_outdated() {
            return;
        }
        let found = self.diagnostics_of(path, open, canceled).await;
        if is_outdated() {
            return;
        }
        match found {
            Ok(items) => {
                for ClientDocument { uri, version, .. } in open.of(path) {
                    let params =
                        lsp::PublishDiagnosticsParams::new(uri.clone(), items.clone(), Some(*version));
                    self.notify("textDocument/publishDiagnostics", json!(params));
                }
            }
            Err(error) if error.code == codes::REQUEST_CANCELLED => {}
            Err(error) => {
                let message = format!("no diagnostics for {path}: {}", error.message);
                let params = lsp::LogMessageParams { typ: lsp::MessageType::ERROR, message };
                self.notify("window/logMessage", json!(params));
            }
        }
    }
}

/// What a notification changed.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ClientChange {
    None,
    /// The text of a document, or that it is saved.
    Text(AbsPath),
    /// A document is not open any more.
    Closed(lsp::Uri),
    /// Files that the client watches.
    Disk,
}

/// Asks a client to tell of changes to what diagnostics depend on.
fn watched_files() -> Value {
    let watchers =
        ["**/*.{py,pyi,pyw}", "**/{pyproject.toml,lanser.toml,pyrightconfig.json,ty.toml}"].map(|glob| {
            lsp::FileSystemWatcher { glob_pattern: lsp::GlobPattern::String(glob.to_owned()), kind: None }
        });
    let options = lsp::DidChangeWatchedFilesRegistrationOptions { watchers: watchers.into() };
    let registration = lsp::Registration {
        id: "watched-files".to_owned(),
        method: "workspace/didChangeWatchedFiles".to_owned(),
        register_options: Some(json!(options)),
    };
    json!(lsp::RegistrationParams { registrations: vec![registration] })
}

fn failed(code: i64, message: &str) -> ResponseError {
    ResponseError { code, message: message.to_owned(), data: None }
}

/// The error of a bundle as an error of the protocol. The error of the bundle is its data.
fn of_body(error: &ErrorBody) -> ResponseError {
    use crate::model::error::ErrorSymbol;
    let code = match error.symbol {
        ErrorSymbol::RequestCancelled => codes::REQUEST_CANCELLED,
        ErrorSymbol::ContentModified => codes::CONTENT_MODIFIED,
        _ => codes::REQUEST_FAILED,
    };
    let hint = match error.hint.as_deref() {
        // The client's positions are not.
        Some(ONE_BASED) => "\nhint: this message counts lines and columns from 1".to_owned(),
        Some(hint) => format!("\nhint: {hint}"),
        None => String::new(),
    };
    let message = format!("{}: {}{hint}", error.symbol.as_str(), error.message);
    ResponseError { code, message, data: Some(json!(error)) }
}

fn read<T: DeserializeOwned>(params: Value) -> Result<T, ResponseError> {
    serde_json::from_value(params).map_err(|error| failed(codes::INVALID_PARAMS, &error.to_string()))
}
