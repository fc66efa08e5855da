//! The live part of a client: it pairs answers with calls, answers the server, and hears what it says by itself.
//!
//! Notifications other than `window/logMessage` are not read. Pushed diagnostics stop once the server may register
//! for pulls, and progress is only ever reported on tokens that we do not hand out.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

use super::callbacks::Callbacks;
use super::cancellation::CancellationFolder;
use super::codec::CodecError;
use super::connection::Received;
use super::error::LspError;
use super::jsonrpc::{Id, Message, Notification, Params, Reply, Request, ResponseError};
use super::pending::{Answered, Outcome, Pending};
use super::process::ProcessWatch;
use super::profile::{Profile, Sign};
use crate::model::server::ServerKind;

/// How often a call that the server took back is asked again.
const RETRIES: u32 = 3;

/// How long the first of them waits; the next ones twice and four times as long.
const RETRY_PAUSE: Duration = Duration::from_millis(20);

/// How long after the stream's end the process may take to end too, before the server counts as alive.
const EXIT_GRACE: Duration = Duration::from_millis(500);

/// The longest time that is waited for anything; longer ones would overflow the clock.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

/// The errors of LSP 3.17 that are more than a sentence.
pub(super) const METHOD_NOT_FOUND: i64 = -32601;
pub(super) const REQUEST_CANCELLED: i64 = -32800;
const CONTENT_MODIFIED: i64 = -32801;
const SERVER_CANCELLED: i64 = -32802;

/// What the server has said by itself.
#[derive(Debug, Clone, Default)]
pub(super) struct Heard {
    /// How often it said that the source files are enumerated.
    pub(super) enumerations: u64,
    /// How many files it found the last time.
    pub(super) files: u32,
    /// The server and version of the first log line.
    pub(super) greeting: Option<(ServerKind, String)>,
    /// The log lines that said so, the last of each sort.
    pub(super) lines: [Option<String>; 2],
    /// How many calls were given up that it has not answered.
    pub(super) owed: usize,
    /// Whether the stream is over.
    pub(super) ended: bool,
}

/// A client's side of the connection.
#[derive(Debug)]
pub(super) struct Link {
    /// Gone once the connection is closed.
    sender: Mutex<Option<mpsc::UnboundedSender<Received>>>,
    pending: Mutex<Pending>,
    callbacks: Callbacks,
    cancellation: Option<Arc<CancellationFolder>>,
    heard: watch::Sender<Heard>,
}

impl Link {
    pub(super) fn new(
        sender: mpsc::UnboundedSender<Received>,
        callbacks: Callbacks,
        cancellation: Option<Arc<CancellationFolder>>,
    ) -> Self {
        Self {
            sender: Mutex::new(Some(sender)),
            pending: Mutex::default(),
            callbacks,
            cancellation,
            heard: watch::Sender::new(Heard::default()),
        }
    }

    /// Reads what the server says until it says no more, then ends all that waits.
    pub(super) async fn listen(
        self: Arc<Self>,
        mut receiver: mpsc::UnboundedReceiver<Received>,
        process: Option<ProcessWatch>,
    ) {
        let (cut, ended) = loop {
            match receiver.recv().await {
                Some(Ok(message)) => self.receive(message),
                Some(Err(error)) => {
                    let ended = matches!(error, CodecError::Io(_) | CodecError::Truncated(_));
                    break (LspError::Protocol(error.to_string()), ended);
                }
                None => break (LspError::EndOfStream, true),
            }
        };
        // A process that ends closes its stream first, and how it ended says more than that. One that broke the
        // protocol is not waited for: its end would only be the consequence of nobody listening any more.
        let exit = match &process {
            Some(process) if ended => process.exit(EXIT_GRACE).await.zip(Some(process)),
            _ => None,
        };
        let error = match exit {
            Some((exit, process)) => LspError::Crashed { exit, stderr: process.last_words().await },
            None => cut,
        };
        self.end(&error);
    }

    /// Asks, and asks again when the server takes the call back. The request is in the queue when this returns.
    pub(super) fn ask(
        self: &Arc<Self>,
        name: &'static str,
        params: Value,
        within: Duration,
    ) -> impl Future<Output = Result<Reply, LspError>> + Send + use<> {
        let link = self.clone();
        let within = within.min(LONGEST);
        let until = Instant::now() + within;
        let mut call = self.call(name, params.clone());
        async move {
            let timeout = || LspError::Timeout { method: name.to_owned(), after: within };
            let mut attempts = 1;
            loop {
                let outcome =
                    tokio::time::timeout_at(until, call.outcome()).await.map_err(|_| timeout())??;
                match outcome {
                    Ok(reply) => return Ok(reply),
                    Err(error) if !is_taken_back(&error) => return Err(refusal(name, error)),
                    Err(_) if attempts > RETRIES => {
                        return Err(LspError::ContentModified { method: name.to_owned(), attempts });
                    }
                    Err(_) => {
                        let pause = tokio::time::sleep(RETRY_PAUSE * (1 << (attempts - 1)));
                        tokio::time::timeout_at(until, pause).await.map_err(|_| timeout())?;
                        attempts += 1;
                        call = link.call(name, params.clone());
                    }
                }
            }
        }
    }

    /// Says something.
    pub(super) fn tell(&self, name: &str, params: Option<Params>) -> Result<(), LspError> {
        if self.send(Message::Notification(Notification { method: name.to_owned(), params })) {
            Ok(())
        } else {
            Err(self.pending().ended().cloned().unwrap_or(LspError::Closed))
        }
    }

    /// Waits until the server has said something that `is_it`.
    pub(super) async fn hear(
        &self,
        what: &str,
        within: Duration,
        mut is_it: impl FnMut(&Heard) -> bool,
    ) -> Result<Heard, LspError> {
        let within = within.min(LONGEST);
        let mut heard = self.heard.subscribe();
        let news = tokio::time::timeout(within, heard.wait_for(|now| now.ended || is_it(now))).await;
        let timeout = || LspError::Timeout { method: what.to_owned(), after: within };
        let now = news.map_err(|_| timeout())?.map_err(|_| LspError::Closed)?.clone();
        if is_it(&now) {
            return Ok(now);
        }
        Err(self.pending().ended().cloned().unwrap_or(LspError::Closed))
    }

    /// What the server has said so far.
    pub(super) fn heard(&self) -> Heard {
        self.heard.borrow().clone()
    }

    /// Whether the server registered the method after it was initialized.
    pub(super) fn is_registered(&self, name: &str) -> bool {
        self.callbacks.is_registered(name)
    }

    /// The methods that the server registered after it was initialized.
    pub(super) fn registered(&self) -> Vec<String> {
        self.callbacks.registered()
    }

    /// The edits that the server wanted made and nobody has taken.
    pub(super) fn edits(&self) -> Vec<Value> {
        self.callbacks.edits()
    }

    /// The edits that the server wanted made since they were last taken.
    pub(super) fn take_edits(&self) -> Vec<Value> {
        self.callbacks.take_edits()
    }

    /// Closes our side and ends all that waits, with the reason `error` unless there was an earlier one.
    pub(super) fn end(&self, error: &LspError) {
        self.sender().take();
        self.pending().end(error);
        self.heard.send_modify(|heard| {
            heard.ended = true;
            heard.owed = 0;
        });
    }

    /// Closes our side only: the server sees the end of its input.
    pub(super) fn hang_up(&self) {
        self.sender().take();
    }

    fn call(self: &Arc<Self>, name: &'static str, params: Value) -> Call {
        let (id, receiver) = self.pending().begin();
        let params = Some(params).filter(|params| !params.is_null());
        // When this fails the stream has ended or is about to, and the end finds the call in the table.
        if !self.send(Message::request(Id::Number(id), name, params)) {
            self.pending().end(&LspError::Closed);
        }
        Call { link: self.clone(), id, receiver }
    }

    fn give_up(&self, id: i64) {
        let working = self.pending().give_up(id);
        if !working {
            return;
        }
        self.count_owed();
        if let Some(folder) = &self.cancellation {
            folder.cancel(id);
        }
        self.send(Message::notification("$/cancelRequest", Some(json!({"id": id}))));
    }

    fn receive(&self, message: Message) {
        match message {
            Message::Request(request) => self.answer(request),
            Message::Notification(notification) => self.note(&notification),
            Message::Response(response) => {
                let Some(Id::Number(id)) = response.id else { return };
                let answered = self.pending().answer(id, response.outcome);
                if answered == Answered::GivenUp {
                    if let Some(folder) = &self.cancellation {
                        folder.answered(id);
                    }
                    self.count_owed();
                }
            }
        }
    }

    fn answer(&self, request: Request) {
        let outcome = self.callbacks.answer(&request);
        self.send(Message::response(request.id, outcome));
    }

    fn note(&self, notification: &Notification) {
        if notification.method != "window/logMessage" {
            return;
        }
        let params = notification.params.as_ref().map(Params::value);
        let line = params.as_ref().and_then(|params| params["message"].as_str());
        match line.and_then(Profile::hear) {
            Some(Sign::Enumerated(files)) => self.heard.send_modify(|heard| {
                heard.enumerations += 1;
                heard.files = files;
                heard.lines[1] = line.map(str::to_owned);
            }),
            Some(Sign::Greeting { kind, version }) => self.heard.send_modify(|heard| {
                heard.greeting = Some((kind, version));
                heard.lines[0] = line.map(str::to_owned);
            }),
            None => {}
        }
    }

    fn count_owed(&self) {
        let owed = self.pending().owed();
        self.heard.send_modify(|heard| heard.owed = owed);
    }

    /// Puts a message into the queue; whether there still is one.
    fn send(&self, message: Message) -> bool {
        self.sender().as_ref().is_some_and(|sender| sender.send(Ok(message)).is_ok())
    }

    fn sender(&self) -> MutexGuard<'_, Option<mpsc::UnboundedSender<Received>>> {
        self.sender.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request on its way. Dropped before its answer came, it tells the server to stop.
#[derive(Debug)]
struct Call {
    link: Arc<Link>,
    id: i64,
    receiver: oneshot::Receiver<Outcome>,
}

impl Call {
    async fn outcome(&mut self) -> Outcome {
        (&mut self.receiver).await.unwrap_or(Err(LspError::Closed))
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.link.give_up(self.id);
    }
}

/// Whether the server invites to ask again (LSP 3.17, `ContentModified` and `ServerCancelled`).
fn is_taken_back(error: &ResponseError) -> bool {
    match error.code {
        CONTENT_MODIFIED => true,
        // Without data the default of `DiagnosticServerCancellationData` is to ask again.
        SERVER_CANCELLED => error.data.as_ref().is_none_or(|data| data["retriggerRequest"] == true),
        _ => false,
    }
}

fn refusal(name: &str, error: ResponseError) -> LspError {
    match error.code {
        METHOD_NOT_FOUND => LspError::Unsupported { method: name.to_owned() },
        REQUEST_CANCELLED => LspError::Cancelled,
        code => LspError::Server { code, message: error.message },
    }
}
