//! Many requests over one stream: read as they come, asked beside each other, answered as each is ready.
//!
//! At most so many are *asked* at a time as the caller says; besides, answers that wait for the proof that they are
//! fresh, because one look at the workspace proves many, and some questions that want the server for themselves, because
//! what the others made it infer is gone when they have it. What writes runs alone and in its turn: whatever
//! came before is finished first, whatever comes after begins when it is done. A line that says nothing readable is answered
//! too. Nothing that was read is forgotten: at the end of the stream everything that came is answered.

mod input;
mod turns;

use std::io::{self, Read};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use super::{Orchestrator, Progress};
use crate::model::bundle::Bundle;
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::model::request::Request;
use input::{Asked, Incoming, Says};
use turns::{Mark, Turns};

pub use input::Completing;

/// How long a reader of the answers may take for what is left when everything is given up.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// How a batch is worked off.
#[derive(Debug, Clone, Copy)]
pub struct Terms {
    /// How many requests are asked at a time.
    pub concurrency: usize,
    /// Whether answers come in the order of the lines.
    pub ordered: bool,
}

/// Where the requests come from.
pub struct Source {
    /// The lines.
    pub stream: Box<dyn Read + Send>,
    /// What they have in common.
    pub completing: Completing,
}

/// How a batch ended.
#[derive(Debug)]
pub enum Ended {
    /// At the end of the stream, with everything answered.
    Whole,
    /// By an interruption; what was not answered was given up.
    Interrupted,
    /// Because nobody takes the answers any more.
    Unheard,
    /// Because the stream cannot be read any further; what came before was answered.
    Broken(io::Error),
}

/// Answers the requests of `source`, and gives the answers to `answers`. When `interrupted` ends first, whatever is
/// not answered is given up.
///
/// # Errors
/// When the operating system gives no thread to read on.
pub async fn run(
    orchestrator: &Orchestrator,
    terms: Terms,
    source: Source,
    answers: mpsc::Sender<Bundle>,
    interrupted: impl Future<Output = ()>,
) -> io::Result<Ended> {
    let input = input::start(source.stream, source.completing)?;
    let (heard, hearing) = mpsc::unbounded_channel();
    let mut work = Work {
        orchestrator,
        turns: Turns::new(terms),
        tasks: JoinSet::new(),
        heard,
        more: None,
        input: Some(input),
        ended: Ended::Whole,
    };
    Ok(work.run(hearing, answers, interrupted).await)
}

/// A batch that is being worked off.
struct Work<'o> {
    orchestrator: &'o Orchestrator,
    turns: Turns,
    tasks: JoinSet<Bundle>,
    /// Whom the requests tell how far they are.
    heard: mpsc::UnboundedSender<Heard>,
    /// Held while there are requests that have not begun.
    more: Option<super::MoreToCome>,
    /// `None` after its end.
    input: Option<mpsc::Receiver<io::Result<Incoming>>>,
    ended: Ended,
}

impl Work<'_> {
    async fn run(
        &mut self,
        mut hearing: mpsc::UnboundedReceiver<Heard>,
        answers: mpsc::Sender<Bundle>,
        interrupted: impl Future<Output = ()>,
    ) -> Ended {
        let mut interrupted = std::pin::pin!(interrupted);
        while self.input.is_some() || !self.turns.is_empty() {
            self.begin();
            let given_up = !matches!(self.ended, Ended::Whole | Ended::Broken(_));
            let last_words = given_up && self.tasks.is_empty();
            tokio::select! {
                biased;
                () = &mut interrupted, if !given_up => self.give_up(Ended::Interrupted),
                () = answers.closed(), if !given_up => self.give_up(Ended::Unheard),
                permit = answers.reserve(), if self.turns.has_answer() && !answers.is_closed() => {
                    if let (Ok(permit), Some(answer)) = (permit, self.turns.take_answer()) {
                        permit.send(answer);
                    }
                }
                Some(heard) = hearing.recv() => match heard {
                    Heard::Aside(number) => self.turns.aside(number),
                    Heard::Proving(number) => self.turns.proving(number),
                },
                Some(done) = self.tasks.join_next_with_id() => self.done(done),
                incoming = next(&mut self.input), if self.turns.has_room() => self.take(incoming),
                () = tokio::time::sleep(LAST_WORDS), if last_words => return self.end(),
                else => return self.end(),
            }
            if matches!(self.ended, Ended::Unheard) && self.tasks.is_empty() {
                break;
            }
        }
        self.end()
    }

    fn end(&mut self) -> Ended {
        std::mem::replace(&mut self.ended, Ended::Whole)
    }

    /// Begins what may begin.
    fn begin(&mut self) {
        while let Some((number, asked)) = self.turns.next() {
            let Asked { timeout, request, .. } = *asked;
            let (cancel, cancelled) = oneshot::channel();
            let ear = Arc::new(Ear {
                number,
                heard: self.heard.clone(),
                rest: self.orchestrator.settings.progress.clone(),
            });
            let settings = &self.orchestrator.settings;
            let orchestrator = self.orchestrator.for_caller(settings.timeout, settings.verbose, ear);
            let task = self.tasks.spawn(answer(orchestrator, request.clone(), timeout, cancelled));
            self.turns.begun(number, task.id(), request, cancel);
        }
        self.more = self.turns.is_waiting().then(|| match self.more.take() {
            Some(more) => more,
            None => self.orchestrator.more_to_come(),
        });
    }

    /// What the input gives.
    fn take(&mut self, incoming: Option<io::Result<Incoming>>) {
        let Incoming { line, bytes, says } = match incoming {
            Some(Ok(incoming)) => incoming,
            Some(Err(error)) => {
                self.input = None;
                self.ended = Ended::Broken(error);
                return;
            }
            None => {
                self.input = None;
                return;
            }
        };
        match says {
            Says::Ask(asked) => self.turns.wait(Mark { id: asked.id.clone(), line }, bytes, asked),
            Says::Wrong(id, error) => {
                let bundle = self.orchestrator.unread(*error);
                self.turns.answered_at_once(Mark { id, line }, bundle);
            }
            Says::Cancel(id) => {
                for (number, asked) in self.turns.cancel(&id) {
                    self.turns.answered(number, self.cancelled(asked.request));
                }
            }
        }
    }

    /// A task ended.
    fn done(&mut self, done: Result<(tokio::task::Id, Bundle), tokio::task::JoinError>) {
        let (task, bundle) = match done {
            Ok((task, bundle)) => (task, Some(bundle)),
            Err(error) => (error.id(), None),
        };
        let Some((number, request)) = self.turns.ended(task) else { return };
        let bundle = bundle.unwrap_or_else(|| {
            let error =
                ErrorBody::new(ErrorSymbol::Internal, "a defect of lanser's own: a part of the work failed");
            self.orchestrator.refused(request, error.hint("please report it with the request that led to it"))
        });
        self.turns.answered(number, bundle);
    }

    /// Begins nothing more and gives up what has begun.
    fn give_up(&mut self, why: Ended) {
        self.ended = why;
        self.input = None;
        for (number, asked) in self.turns.cancel_all() {
            self.turns.answered(number, self.cancelled(asked.request));
        }
    }

    fn cancelled(&self, request: Request) -> Bundle {
        self.orchestrator.refused(request, super::cancelled())
    }
}

/// The next line; never, after the end.
async fn next(input: &mut Option<mpsc::Receiver<io::Result<Incoming>>>) -> Option<io::Result<Incoming>> {
    match input {
        Some(input) => input.recv().await,
        None => std::future::pending().await,
    }
}

/// Answers one request in its time.
async fn answer(
    orchestrator: Orchestrator,
    request: Request,
    timeout: Option<u32>,
    cancelled: oneshot::Receiver<()>,
) -> Bundle {
    let given_up = async {
        let limit = async {
            match timeout {
                Some(seconds) => {
                    tokio::time::sleep(Duration::from_secs(seconds.into())).await;
                    seconds
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            // Whoever could cancel it lives as long as it does.
            _ = cancelled => super::cancelled(),
            seconds = limit => {
                let message = format!("there was no answer within {seconds} s");
                ErrorBody::new(ErrorSymbol::LsTimeout, message).hint("give it longer with \"timeout\": SECONDS")
            }
        }
    };
    orchestrator.run_until(request, given_up).await
}

/// What a request tells of itself.
#[derive(Debug, Clone, Copy)]
enum Heard {
    /// It waits for the others.
    Aside(u64),
    /// It is answered but for the proof.
    Proving(u64),
}

/// Who hears of one request.
struct Ear {
    number: u64,
    heard: mpsc::UnboundedSender<Heard>,
    rest: Arc<dyn Progress>,
}

impl Progress for Ear {
    /// What one of many does is not worth a word.
    fn step(&self, _text: &str) {}

    fn say(&self, text: &str) {
        self.rest.say(text);
    }

    fn aside(&self) {
        // Nobody counts any more when the batch is over.
        let _ = self.heard.send(Heard::Aside(self.number));
    }

    fn proving(&self) {
        let _ = self.heard.send(Heard::Proving(self.number));
    }

    fn done(&self) {}
}
