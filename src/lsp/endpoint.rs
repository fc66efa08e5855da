//! The client's end of the connection: pairs responses with requests, answers the server's requests, and watches its
//! log.
//!
//! Notifications other than `window/logMessage` are ignored. Pushed diagnostics stop once the server may register for
//! pulls, and progress is only reported on tokens, which the client never sends.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lsp_types::error_codes::{CONTENT_MODIFIED, REQUEST_CANCELLED, SERVER_CANCELLED};
use lsp_types::notification::{Cancel, LogMessage, Notification as _};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

use super::cancellation::CancellationFolder;
use super::codec::CodecError;
use super::connection::Received;
use super::error::{INTERNAL_ERROR, LspError};
use super::jsonrpc::{Message, Notification, Params, RawResult, ResponseError, RpcId, RpcRequest};
use super::pending::{PendingRequests, RequestOutcome, ResponseMatch};
use super::process::ProcessWatch;
use super::profile::{LogEvent, Profile};
use super::server_requests::{METHOD_NOT_FOUND, ServerRequestHandler};
use crate::model::server::ServerKind;

/// The delay before the first retry of a request that the server abandoned; it doubles with each further one, up to the longest.
const FIRST_RETRY_DELAY: Duration = Duration::from_millis(20);
const LONGEST_RETRY_DELAY: Duration = Duration::from_millis(320);

/// How long the process may take to exit after the end of the stream before the server counts as alive.
const EXIT_TIMEOUT: Duration = Duration::from_millis(500);

/// The longest timeout; longer ones would overflow the clock.
const MAX_TIMEOUT: Duration = Duration::from_secs(365 * 24 * 3600);

/// What the server has logged, and the state of its connection.
#[derive(Debug, Clone, Default)]
pub(super) struct ServerState {
    /// How often the server finished enumerating source files.
    pub(super) enumerations: u64,
    /// How many files it found the last time.
    pub(super) files: u32,
    /// The server and its version, from the first log line.
    pub(super) identity: Option<(ServerKind, String)>,
    /// The log lines with the identity and with the last enumeration.
    pub(super) log_lines: [Option<String>; 2],
    /// How many cancelled requests the server has not answered.
    pub(super) unanswered_cancelled: usize,
    /// Whether the stream has ended.
    pub(super) ended: bool,
}

/// What is sent to the server.
#[derive(Debug)]
struct SendQueue {
    /// `None` once the connection is closed.
    sender: Option<mpsc::UnboundedSender<Received>>,
    /// How many notifications were queued that can change what the server knows.
    changes: u64,
}

/// The client's end of the connection.
#[derive(Debug)]
pub(super) struct Endpoint {
    outgoing: Mutex<SendQueue>,
    pending: Mutex<PendingRequests>,
    handler: ServerRequestHandler,
    cancellation: Option<Arc<CancellationFolder>>,
    state: watch::Sender<ServerState>,
}

impl Endpoint {
    pub(super) fn new(
        sender: mpsc::UnboundedSender<Received>,
        handler: ServerRequestHandler,
        cancellation: Option<Arc<CancellationFolder>>,
    ) -> Self {
        Self {
            outgoing: Mutex::new(SendQueue { sender: Some(sender), changes: 0 }),
            pending: Mutex::default(),
            handler,
            cancellation,
            state: watch::Sender::new(ServerState::default()),
        }
    }

    /// Handles the server's messages until the stream ends, then fails all waiting requests.
    pub(super) async fn run(
        self: Arc<Self>,
        mut receiver: mpsc::UnboundedReceiver<Received>,
        process: Option<ProcessWatch>,
    ) {
        let (stream_error, ended) = loop {
            match receiver.recv().await {
                Some(Ok(message)) => self.receive(message),
                Some(Err(error)) => {
                    let ended = matches!(error, CodecError::Io(_) | CodecError::Truncated(_));
                    break (LspError::Protocol(error.to_string()), ended);
                }
                None => break (LspError::EndOfStream, true),
            }
        };
        // A process that exits closes its stream first, and its exit status says more. After a protocol error the
        // process is not waited for: it would exit only because nothing reads its output any more.
        let exit = match &process {
            Some(process) if ended => process.exit(EXIT_TIMEOUT).await.zip(Some(process)),
            _ => None,
        };
        let error = match exit {
            Some((exit, process)) => LspError::Crashed { exit, stderr: process.stderr_tail().await },
            None => stream_error,
        };
        self.close(&error);
    }

    /// Sends a request, and retries for as long as it has time when the server abandons it. The request is queued when this
    /// returns.
    ///
    /// ty 0.0.105 abandons what it works on whenever a document is opened, changed or closed, also for another request: in a
    /// batch of some hundred requests, three retries did not suffice for one that takes long. Where it searches all files
    /// (`workspace/symbol`), it abandons with an internal error; one that comes after a change says nothing about the content.
    pub(super) fn request(
        self: &Arc<Self>,
        name: &'static str,
        params: Value,
        within: Duration,
    ) -> impl Future<Output = Result<RawResult, LspError>> + Send + use<> {
        let endpoint = self.clone();
        let within = within.min(MAX_TIMEOUT);
        let until = Instant::now() + within;
        let mut in_flight = self.start(name, params.clone());
        async move {
            let timeout = || LspError::Timeout { method: name.to_owned(), after: within };
            let mut attempts = 1;
            let mut delay = FIRST_RETRY_DELAY;
            loop {
                let outcome =
                    tokio::time::timeout_at(until, in_flight.outcome()).await.map_err(|_| timeout())??;
                match outcome {
                    Ok(reply) => return Ok(reply),
                    Err(error) if !is_retryable(&error) && !in_flight.is_abandoned(&error) => {
                        return Err(response_error(name, error));
                    }
                    Err(_) if Instant::now() + delay >= until => {
                        return Err(LspError::ContentModified { method: name.to_owned(), attempts });
                    }
                    Err(_) => {
                        tokio::time::sleep(delay).await;
                        delay = (delay * 2).min(LONGEST_RETRY_DELAY);
                        attempts += 1;
                        in_flight = endpoint.start(name, params.clone());
                    }
                }
            }
        }
    }

    /// Sends a notification.
    pub(super) fn notify(&self, name: &str, params: Option<Params>) -> Result<(), LspError> {
        self.send(Message::Notification(Notification { method: name.to_owned(), params }))
            .map(|_| ())
            .ok_or_else(|| self.pending().close_reason().cloned().unwrap_or(LspError::Closed))
    }

    /// Waits until the server's state meets a condition.
    pub(super) async fn wait_for(
        &self,
        what: &str,
        within: Duration,
        mut condition: impl FnMut(&ServerState) -> bool,
    ) -> Result<ServerState, LspError> {
        let within = within.min(MAX_TIMEOUT);
        let mut state = self.state.subscribe();
        let reached = tokio::time::timeout(within, state.wait_for(|now| now.ended || condition(now))).await;
        let timeout = || LspError::Timeout { method: what.to_owned(), after: within };
        let now = reached.map_err(|_| timeout())?.map_err(|_| LspError::Closed)?.clone();
        if condition(&now) {
            return Ok(now);
        }
        Err(self.pending().close_reason().cloned().unwrap_or(LspError::Closed))
    }

    /// The current state.
    pub(super) fn state(&self) -> ServerState {
        self.state.borrow().clone()
    }

    /// Whether the server registered the method after initialization.
    pub(super) fn is_registered(&self, name: &str) -> bool {
        self.handler.is_registered(name)
    }

    /// The methods that the server registered after initialization.
    pub(super) fn registered(&self) -> Vec<String> {
        self.handler.registered()
    }

    /// The parameters of the server's requests for settings before it enumerated the source files, each once.
    pub(super) fn settings_requests(&self) -> Vec<Value> {
        self.handler.settings_requests()
    }

    /// The edits that the server asked to apply, without removing them.
    pub(super) fn edits(&self) -> Vec<Value> {
        self.handler.edits()
    }

    /// Removes and returns the edits that the server asked to apply.
    pub(super) fn take_edits(&self) -> Vec<Value> {
        self.handler.take_edits()
    }

    /// Closes the connection and fails all waiting requests, with `error` unless it failed for another reason before.
    pub(super) fn close(&self, error: &LspError) {
        self.close_input();
        self.pending().close(error);
        self.state.send_modify(|state| {
            state.ended = true;
            state.unanswered_cancelled = 0;
        });
    }

    /// Closes only the sending side: the server sees the end of its input.
    pub(super) fn close_input(&self) {
        self.outgoing().sender.take();
    }

    fn start(self: &Arc<Self>, name: &'static str, params: Value) -> InFlightRequest {
        let (id, receiver) = self.pending().register();
        let params = Some(params).filter(|params| !params.is_null());
        // When sending fails, the stream has ended or is about to, and closing it fails the request.
        let changes = self.send(Message::request(RpcId::Number(id), name, params)).unwrap_or_else(|| {
            self.pending().close(&LspError::Closed);
            0
        });
        InFlightRequest { endpoint: self.clone(), id, changes, receiver }
    }

    fn cancel(&self, id: i64) {
        let working = self.pending().cancel(id);
        if !working {
            return;
        }
        self.update_unanswered();
        if let Some(folder) = &self.cancellation {
            folder.cancel(id);
        }
        self.send(Message::notification(Cancel::METHOD, Some(json!({"id": id}))));
    }

    fn receive(&self, message: Message) {
        match message {
            Message::Request(request) => self.respond(request),
            Message::Notification(notification) => self.on_notification(&notification),
            Message::Response(response) => {
                let Some(RpcId::Number(id)) = response.id else { return };
                let answered = self.pending().complete(id, response.outcome);
                if answered == ResponseMatch::Cancelled {
                    if let Some(folder) = &self.cancellation {
                        folder.remove_request(id);
                    }
                    self.update_unanswered();
                }
            }
        }
    }

    fn respond(&self, request: RpcRequest) {
        // Whether the server asks again later may depend on what it was asked in the meantime.
        if self.state.borrow().enumerations == 0 {
            self.handler.remember_settings_request(&request);
        }
        let outcome = self.handler.respond(&request);
        self.send(Message::response(request.id, outcome));
    }

    fn on_notification(&self, notification: &Notification) {
        if notification.method != LogMessage::METHOD {
            return;
        }
        let params = notification.params.as_ref().map(Params::value);
        let line = params.as_ref().and_then(|params| params["message"].as_str());
        match line.and_then(Profile::parse_log_line) {
            Some(LogEvent::Enumerated(files)) => self.state.send_modify(|state| {
                state.enumerations += 1;
                state.files = files;
                state.log_lines[1] = line.map(str::to_owned);
            }),
            Some(LogEvent::Started { kind, version }) => self.state.send_modify(|state| {
                state.identity = Some((kind, version));
                state.log_lines[0] = line.map(str::to_owned);
            }),
            None => {}
        }
    }

    fn update_unanswered(&self) {
        let unanswered_cancelled = self.pending().unanswered_cancelled();
        self.state.send_modify(|state| state.unanswered_cancelled = unanswered_cancelled);
    }

    /// Queues a message; returns the number of changes queued so far, `None` when the connection is closed.
    fn send(&self, message: Message) -> Option<u64> {
        let mut outgoing = self.outgoing();
        if matches!(&message, Message::Notification(sent) if sent.method != Cancel::METHOD) {
            outgoing.changes += 1;
        }
        outgoing.sender.as_ref()?.send(Ok(message)).ok()?;
        Some(outgoing.changes)
    }

    fn outgoing(&self) -> MutexGuard<'_, SendQueue> {
        self.outgoing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pending(&self) -> MutexGuard<'_, PendingRequests> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request without a response so far. Dropping it cancels the request.
#[derive(Debug)]
struct InFlightRequest {
    endpoint: Arc<Endpoint>,
    id: i64,
    /// How many changes were queued before the request.
    changes: u64,
    receiver: oneshot::Receiver<RequestOutcome>,
}

impl InFlightRequest {
    async fn outcome(&mut self) -> RequestOutcome {
        (&mut self.receiver).await.unwrap_or(Err(LspError::Closed))
    }

    /// Whether the server failed while something changed, so that the change may be the reason.
    fn is_abandoned(&self, error: &ResponseError) -> bool {
        error.code == INTERNAL_ERROR && self.endpoint.outgoing().changes != self.changes
    }
}

impl Drop for InFlightRequest {
    fn drop(&mut self) {
        self.endpoint.cancel(self.id);
    }
}

/// Whether LSP 3.17 invites the client to retry (`ContentModified` and `ServerCancelled`).
fn is_retryable(error: &ResponseError) -> bool {
    match error.code {
        CONTENT_MODIFIED => true,
        // Without data, the default of `DiagnosticServerCancellationData` is to retry.
        SERVER_CANCELLED => error.data.as_ref().is_none_or(|data| data["retriggerRequest"] == true),
        _ => false,
    }
}

fn response_error(name: &str, error: ResponseError) -> LspError {
    match error.code {
        METHOD_NOT_FOUND => LspError::Unsupported { method: name.to_owned() },
        REQUEST_CANCELLED => LspError::Cancelled,
        code => LspError::Server { code, message: error.message },
    }
}
