//! Answers many requests from one stream: they are read as they arrive, run concurrently, and answered as each
//! completes.
//!
//! At most `concurrency` requests are *active* at a time. Two kinds do not count: answers that wait for the proof
//! that they are fresh, because one scan of the workspace proves many; and some requests that wait for exclusive use
//! of a server, because the types that other requests made it infer are reset before they run. A request that writes
//! runs alone and in order: everything before it finishes first, everything after it starts when it is done. Invalid
//! lines are answered, too. Nothing that was read is dropped: at the end of the stream every line has been answered.

mod answer;
mod input;
mod scheduler;

use std::io::{self, Read};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use super::watchdog::GRACE_PERIOD;
use crate::engine::{Engine, Progress, ScoreLimits, ScoreService};
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::model::request::Request;
use crate::reward::episode::Episode;
use input::{InputLine, Job, LineContent, ParsedRequest, ParsedScore};
use scheduler::{LineLabel, Scheduler};

pub use answer::{BatchAnswer, ScoredHead};
pub use input::LineDefaults;

/// How long the reader of the answers may take for the rest when the batch is canceled.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

/// How to run a batch.
#[derive(Debug, Clone, Copy)]
pub struct BatchOptions {
    /// The number of requests that are active at a time.
    pub concurrency: usize,
    /// Whether answers are returned in the order of the lines.
    pub ordered: bool,
    /// What the servers that score heads may use.
    pub scoring: ScoreLimits,
}

/// The input of a batch.
pub struct BatchInput {
    /// The lines.
    pub stream: Box<dyn Read + Send>,
    /// What applies to all of them.
    pub defaults: Box<dyn LineDefaults>,
}

/// How a batch ended.
#[derive(Debug)]
pub enum BatchEnd {
    /// At the end of the stream, with every line answered.
    Complete,
    /// By an interruption; requests without an answer were canceled.
    Interrupted,
    /// Because the receiver of the answers was dropped.
    OutputClosed,
    /// Because the stream could not be read further; every line before was answered.
    InputFailed(io::Error),
}

/// Answers the requests of `source` and sends the bundles to `answers`. If `interrupted` completes first, the rest is
/// canceled.
///
/// # Errors
/// If the operating system cannot create the reader thread.
pub async fn run(
    engine: &Engine,
    options: BatchOptions,
    source: BatchInput,
    answers: mpsc::Sender<BatchAnswer>,
    interrupted: impl Future<Output = ()>,
) -> io::Result<BatchEnd> {
    let input = input::start(source.stream, source.defaults)?;
    let (events, event_receiver) = mpsc::unbounded_channel();
    let mut batch = BatchRun {
        engine,
        scoring: ScoreService::new((*engine.settings).clone(), options.scoring),
        scheduler: Scheduler::new(options),
        tasks: JoinSet::new(),
        events,
        pending: None,
        input: Some(input),
        end: BatchEnd::Complete,
    };
    let end = batch.run(event_receiver, answers, interrupted).await;
    batch.scoring.close().await;
    Ok(end)
}

/// A running batch.
struct BatchRun<'o> {
    engine: &'o Engine,
    scoring: ScoreService,
    scheduler: Scheduler,
    tasks: JoinSet<BatchAnswer>,
    /// Receives the progress of the requests.
    events: mpsc::UnboundedSender<ProgressEvent>,
    /// Held while there are requests that have not started.
    pending: Option<crate::engine::PendingGuard>,
    /// `None` after its end.
    input: Option<mpsc::Receiver<io::Result<InputLine>>>,
    end: BatchEnd,
}

impl BatchRun<'_> {
    async fn run(
        &mut self,
        mut event_receiver: mpsc::UnboundedReceiver<ProgressEvent>,
        answers: mpsc::Sender<BatchAnswer>,
        interrupted: impl Future<Output = ()>,
    ) -> BatchEnd {
        let mut interrupted = std::pin::pin!(interrupted);
        while self.input.is_some() || !self.scheduler.is_empty() {
            self.start_requests();
            let is_canceled = !matches!(self.end, BatchEnd::Complete | BatchEnd::InputFailed(_));
            let is_draining = is_canceled && self.tasks.is_empty();
            tokio::select! {
                biased;
                () = &mut interrupted, if !is_canceled => self.cancel_all(BatchEnd::Interrupted),
                () = answers.closed(), if !is_canceled => self.cancel_all(BatchEnd::OutputClosed),
                permit = answers.reserve(), if self.scheduler.has_answer() && !answers.is_closed() => {
                    if let (Ok(permit), Some(answer)) = (permit, self.scheduler.take_answer()) {
                        permit.send(answer);
                    }
                }
                Some(event) = event_receiver.recv() => match event {
                    ProgressEvent::WaitingForExclusive(number) => self.scheduler.waiting_for_exclusive(number),
                    ProgressEvent::Verifying(number) => self.scheduler.verifying(number),
                },
                Some(done) = self.tasks.join_next_with_id() => self.handle_finished(done),
                incoming = next(&mut self.input), if self.scheduler.has_room() => self.handle_line(incoming),
                () = tokio::time::sleep(DRAIN_TIMEOUT), if is_draining => return self.take_end(),
                else => return self.take_end(),
            }
            if matches!(self.end, BatchEnd::OutputClosed) && self.tasks.is_empty() {
                break;
            }
        }
        self.take_end()
    }

    fn take_end(&mut self) -> BatchEnd {
        std::mem::replace(&mut self.end, BatchEnd::Complete)
    }

    /// Starts the requests that may start.
    fn start_requests(&mut self) {
        while let Some((number, job)) = self.scheduler.next_to_start() {
            let (cancel, cancelled) = oneshot::channel();
            let progress = Arc::new(RequestProgress {
                number,
                events: self.events.clone(),
                shared: self.engine.settings.progress.clone(),
            });
            let task = match job.clone() {
                Job::Request(parsed) => {
                    let ParsedRequest { timeout, request } = *parsed;
                    let settings = &self.engine.settings;
                    // A request may have more time than others.
                    let within =
                        timeout.map_or(settings.timeout, |seconds| Duration::from_secs(seconds.into()));
                    let engine = self.engine.for_caller(within, settings.verbose, progress);
                    self.tasks.spawn(answer(engine, request, timeout, cancelled))
                }
                Job::Score(parsed) => {
                    self.tasks.spawn(score(self.scoring.clone(), *parsed, progress, cancelled))
                }
            };
            self.scheduler.started(number, task.id(), job, cancel);
        }
        self.pending = self.scheduler.is_waiting().then(|| match self.pending.take() {
            Some(pending) => pending,
            None => self.engine.pending_guard(),
        });
    }

    /// Handles a line of the input, or its end.
    fn handle_line(&mut self, incoming: Option<io::Result<InputLine>>) {
        let InputLine { line, bytes, content } = match incoming {
            Some(Ok(incoming)) => incoming,
            Some(Err(error)) => {
                self.input = None;
                self.end = BatchEnd::InputFailed(error);
                return;
            }
            None => {
                self.input = None;
                return;
            }
        };
        match content {
            LineContent::Job(id, job) => self.scheduler.enqueue(LineLabel { id, line }, bytes, job),
            LineContent::Invalid(id, error) => {
                let bundle = self.engine.unparsable(*error);
                self.scheduler.add_answered(LineLabel { id, line }, bundle.into());
            }
            LineContent::Cancel(id) => {
                for (number, job) in self.scheduler.cancel(&id) {
                    self.scheduler.add_answer(number, job.refused(self.engine, crate::engine::cancelled()));
                }
            }
        }
    }

    /// Handles the end of a task.
    fn handle_finished(&mut self, done: Result<(tokio::task::Id, BatchAnswer), tokio::task::JoinError>) {
        let (task, answer) = match done {
            Ok((task, answer)) => (task, Some(answer)),
            Err(error) => (error.id(), None),
        };
        let Some((number, job)) = self.scheduler.finish(task) else { return };
        let answer = answer.unwrap_or_else(|| {
            let error = ErrorBody::new(ErrorSymbol::Internal, "internal error in lanser: a task failed");
            job.refused(self.engine, error.hint("please report this, with the request"))
        });
        self.scheduler.add_answer(number, answer);
    }

    /// Starts nothing more and cancels everything without an answer.
    fn cancel_all(&mut self, reason: BatchEnd) {
        self.end = reason;
        self.input = None;
        for (number, job) in self.scheduler.cancel_all() {
            self.scheduler.add_answer(number, job.refused(self.engine, crate::engine::cancelled()));
        }
    }
}

/// The next line; pending forever after the end.
async fn next(input: &mut Option<mpsc::Receiver<io::Result<InputLine>>>) -> Option<io::Result<InputLine>> {
    match input {
        Some(input) => input.recv().await,
        None => std::future::pending().await,
    }
}

/// Answers one request within its time limit.
async fn answer(
    engine: Engine,
    request: Request,
    timeout: Option<u32>,
    cancelled: oneshot::Receiver<()>,
) -> BatchAnswer {
    let interrupted = async {
        let limit = async {
            match timeout {
                Some(seconds) => {
                    tokio::time::sleep(Duration::from_secs(seconds.into()) + GRACE_PERIOD).await;
                    seconds
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            // The sender lives as long as this request.
            _ = cancelled => crate::engine::cancelled(),
            seconds = limit => {
                let message = format!("there was no answer within {seconds} s");
                ErrorBody::new(ErrorSymbol::LsTimeout, message).hint("increase the limit with \"timeout\": SECONDS")
            }
        }
    };
    engine.run_until(request, interrupted).await.into()
}

/// Scores one head within its time limit.
async fn score(
    scoring: ScoreService,
    parsed: ParsedScore,
    progress: Arc<RequestProgress>,
    cancelled: oneshot::Receiver<()>,
) -> BatchAnswer {
    let ParsedScore { timeout, base, head, formula, with } = parsed;
    let failed = |error: ErrorBody| Episode::failed(&head.name, error, None, &formula);
    // The servers for scoring are not those of requests.
    progress.waiting_for_exclusive();
    let scored = async {
        match scoring.open(&base, &with).await {
            Ok(base) => {
                let timeout = timeout.map(|seconds| Duration::from_secs(seconds.into()));
                scoring.score(&base, &head, &formula, timeout).await
            }
            Err(error) => failed(error.into_body()),
        }
    };
    let episode = tokio::select! {
        episode = scored => episode,
        // The sender lives as long as this request.
        _ = cancelled => failed(crate::engine::cancelled()),
    };
    episode.into()
}

/// A step that a request has reached.
#[derive(Debug, Clone, Copy)]
enum ProgressEvent {
    /// It waits for exclusive use of a server.
    WaitingForExclusive(u64),
    /// It is answered except for the proof that the answer is fresh.
    Verifying(u64),
}

/// The progress sink of one request.
struct RequestProgress {
    number: u64,
    events: mpsc::UnboundedSender<ProgressEvent>,
    shared: Arc<dyn Progress>,
}

impl Progress for RequestProgress {
    /// The current activity of one among many requests is not reported.
    fn step(&self, _text: &str) {}

    fn notify(&self, text: &str) {
        self.shared.notify(text);
    }

    fn waiting_for_exclusive(&self) {
        // The receiver is gone when the batch is over.
        let _ = self.events.send(ProgressEvent::WaitingForExclusive(self.number));
    }

    fn verifying(&self) {
        let _ = self.events.send(ProgressEvent::Verifying(self.number));
    }

    fn done(&self) {}
}
