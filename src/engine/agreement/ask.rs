//! Asks the other server.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use super::opinion::{Opinion, Question};
use super::{OpinionRequest, Opinions};
use crate::digest::Digest;
use crate::engine::answer::{AttemptInputs, RetryState};
use crate::engine::blocking::blocking;
use crate::engine::concurrent::BoxedFuture;
use crate::engine::context::RequestContext;
use crate::engine::failure::Failure;
use crate::engine::inputs::Inputs;
use crate::engine::instance::Engine;
use crate::engine::memo::inputs_digest;
use crate::engine::settings::Progress;
use crate::model::bundle::ServedFrom;
use crate::model::environment::OtherTool;
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::model::request::{Command, Options, Request};
use crate::model::server::ServerKind;
use crate::tape::IoKind;
use crate::workspace::files::Document;

/// How often the other server is asked again because something changed meanwhile.
const MAX_CHANGES: u32 = 2;

/// Another server for the same workspace.
pub(in crate::engine) struct OtherServer {
    kind: ServerKind,
    engine: Engine,
}

/// The progress of the other server: only what should stay visible.
struct NoticesOnly(Arc<dyn Progress>);

impl Progress for NoticesOnly {
    fn step(&self, _: &str) {}

    fn notify(&self, text: &str) {
        self.0.notify(text);
    }

    fn done(&self) {}
}

/// The request that the other server is asked: the same, about the whole answer and without the options of an edit.
pub(in crate::engine) fn question(request: &Request) -> Request {
    let Options { index_io, scope, exclude_declaration, .. } = request.options;
    let options = Options { index_io, scope, exclude_declaration, ..Options::default() };
    let cmd = if request.cmd == Command::Definition { Command::Definition } else { Command::References };
    Request { cmd, selector: request.selector.clone(), original: None, new_name: None, options }
}

impl Engine {
    /// The other server that a request wants.
    ///
    /// # Errors
    /// If it is the server itself, or the request cannot be put to another one.
    pub(in crate::engine) fn other_server(&self, request: &Request) -> Result<Option<OtherServer>, Failure> {
        let Some(kind) = request.options.agree else { return Ok(None) };
        let usage = |message: String, hint: &str| {
            Failure::reported(ErrorBody::new(ErrorSymbol::Usage, message).hint(hint))
        };
        if kind == self.settings.server {
            let message = format!("{kind} is the server itself");
            return Err(usage(message, "name another server with --agree, or with --server"));
        }
        if !request.cmd.takes_second_opinion() || request.options.module.is_some() {
            let message = "another server is asked only for definitions, references, and renames of symbols";
            return Err(usage(message.to_owned(), "repeat the request without --agree"));
        }
        let progress = Arc::new(NoticesOnly(self.settings.progress.clone()));
        let engine = self.other_engine(kind).for_caller(self.settings.timeout, false, progress);
        Ok(Some(OtherServer { kind, engine }))
    }

    /// The digest of the other server's inputs for a request; `None` if there is no such server yet.
    pub(in crate::engine) async fn other_inputs_digest(&self, request: &Request) -> Option<Digest> {
        let other = self.other_server(request).ok()??;
        let inputs = other.engine.scan_since(Instant::now()).await.ok()?;
        inputs_digest(&question(request), &inputs)
    }
}

/// Asks the other server about the target of a request, or replays its answer; `None` if the request wants no other server.
/// `family` are further definitions that count as the same symbol.
pub(in crate::engine) async fn ask(
    cx: &RequestContext<'_>,
    family: &[(Arc<Document>, usize)],
) -> Result<Option<Opinion>, Failure> {
    let Opinions::Main(other) = &cx.opinions else { return Ok(None) };
    let uri = |document: &Document| cx.locations.paths.uri(&document.path);
    let question = Question {
        request: question(cx.request),
        family: family.iter().map(|(document, offset)| (uri(document), *offset)).collect(),
        unit: cx.locations.server_unit,
    };
    let query = ("agree", other.kind, &question);
    let unrecorded = || {
        Err(ErrorBody::new(
            ErrorSymbol::ReplayMismatch,
            "the trace does not have the answer of the other server",
        ))
    };
    let tape = &cx.state.tape;
    let outcome: Result<Opinion, ErrorBody> = if tape.is_replaying() {
        tape.query(IoKind::Analyzer, &query, unrecorded, unrecorded)
    } else {
        let outcome = other.opinion(question.clone(), cx.state.inputs.snapshot.digest()).await;
        let outcome = outcome.map_err(|failure| {
            let mut error = failure.into_body(cx.locations.paths);
            error.message = format!("{}: {}", other.kind, error.message);
            error
        });
        tape.query(IoKind::Analyzer, &query, || outcome.clone(), unrecorded)
    };
    let opinion = outcome.map_err(Failure::reported)?;
    cx.state.compared_with(&opinion);
    Ok(Some(opinion))
}

impl OtherServer {
    /// Its answer about the workspace with this digest. Not an `async` function, because it is part of the answer to a request
    /// and consists of one.
    fn opinion(&self, question: Question, snapshot: Digest) -> BoxedFuture<'_, Result<Opinion, Failure>> {
        Box::pin(self.engine.give_opinion(question, snapshot))
    }
}

impl Engine {
    /// Answers a question for another server's request.
    async fn give_opinion(&self, question: Question, snapshot: Digest) -> Result<Opinion, Failure> {
        let mut retry = RetryState::default();
        let mut changes = 0;
        let mut basis = self.basis(&question.request).await?;
        loop {
            let AttemptInputs { inputs, starting, .. } = basis;
            if inputs.snapshot.digest() != snapshot {
                return Err(Failure::Changed("the workspace".to_owned()));
            }
            let (state, _) = self.resolve(&question.request, &inputs, true).await?;
            let request = OpinionRequest { question: question.clone(), opinion: Mutex::new(None) };
            let mut served_from = ServedFrom::Server;
            let attempted = self.attempt_in_time(
                &question.request,
                &state,
                starting,
                &mut retry,
                &mut served_from,
                Opinions::Other(&request),
            );
            let outcome = attempted.await;
            if let Err(failure) = &outcome
                && self.should_retry(failure, &mut retry, served_from).await
            {
                basis = AttemptInputs::fresh(inputs);
                continue;
            }
            let now = self.scan_since(Instant::now()).await?;
            let checked = state.clone();
            let changed = blocking(move || checked.first_changed_file()).await?;
            if changed.is_some() || !Arc::ptr_eq(&now, &inputs) {
                changes += 1;
                if changes > MAX_CHANGES {
                    let what = changed.unwrap_or_else(|| inputs.first_difference(&now));
                    return Err(Failure::Changed(what));
                }
                basis = AttemptInputs::fresh(now);
                continue;
            }
            let opinion = request.opinion.into_inner().unwrap_or_else(PoisonError::into_inner);
            let mut opinion = match outcome {
                Ok(_) => opinion.unwrap_or_default(),
                // The server knows nothing of the name, which is an answer, too.
                Err(Failure::Reported(error)) if error.symbol == ErrorSymbol::NotFound => Opinion::default(),
                Err(failure) => return Err(failure),
            };
            let environment = state.environment();
            opinion.tool = environment.tool.map(|tool| OtherTool {
                name: tool.name,
                version: tool.version,
                config_digest: environment.config_digest,
            });
            opinion.inputs = inputs_digest(&question.request, &inputs);
            return Ok(opinion);
        }
    }

    /// The inputs as they are now. If there is no server yet, one is installed and started.
    async fn basis(&self, request: &Request) -> Result<AttemptInputs, Failure> {
        let is_usable = |inputs: &Arc<Inputs>| inputs.tools.found.is_ok();
        if self.last_inputs().as_ref().is_some_and(is_usable) {
            let inputs = self.scan_since(Instant::now()).await?;
            if is_usable(&inputs) {
                return Ok(AttemptInputs::fresh(inputs));
            }
        }
        self.first_scan(request).await
    }
}
