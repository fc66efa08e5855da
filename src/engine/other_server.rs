//! The other server whose opinion a request wants: that of another engine for the same workspace.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use super::answer::{AttemptInputs, RetryState};
use super::blocking::blocking;
use super::concurrent::BoxedFuture;
use super::failure::Failure;
use super::inputs::Inputs;
use super::instance::Engine;
use super::memo::inputs_digest;
use super::opinion::{Opinion, OpinionRequest, Opinions, OtherServer, Question, question};
use super::settings::Progress;
use crate::digest::Digest;
use crate::model::bundle::ServedFrom;
use crate::model::environment::OtherTool;
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::model::request::Request;
use crate::model::server::ServerKind;

/// How often the other server is asked again because something changed meanwhile.
const MAX_CHANGES: u32 = 2;

/// Another engine for the same workspace.
struct OtherEngine {
    kind: ServerKind,
    engine: Engine,
}

impl OtherServer for OtherEngine {
    fn kind(&self) -> ServerKind {
        self.kind
    }

    // Not an `async` function, because it is part of the answer to a request and consists of one.
    fn opinion(&self, question: Question, snapshot: Digest) -> BoxedFuture<'_, Result<Opinion, Failure>> {
        Box::pin(self.engine.give_opinion(question, snapshot))
    }
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

impl Engine {
    /// The other server that a request wants.
    ///
    /// # Errors
    /// If it is the server itself, or the request cannot be put to another one.
    pub(super) fn other_server(&self, request: &Request) -> Result<Option<Box<dyn OtherServer>>, Failure> {
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
        Ok(Some(Box::new(OtherEngine { kind, engine })))
    }

    /// The digest of the other server's inputs for a request; `None` if there is no such server yet.
    pub(super) async fn other_inputs_digest(&self, request: &Request) -> Option<Digest> {
        let inputs = self.other_engine(request.options.agree?).scan_since(Instant::now()).await.ok()?;
        inputs_digest(&question(request), &inputs, &self.settings)
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
            opinion.inputs = inputs_digest(&question.request, &inputs, &self.settings);
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
        self.first_scan(request, false).await
    }
}
