//! Answers a request: from its arrival to its sealed bundle.

use std::collections::BTreeMap;
use std::pin::pin;
use std::time::Instant;

use super::answer::{ComputedAnswer, FinalAnswer};
use super::blocking::{blocking, in_background};
use super::bundle_store;
use super::context::{AnswerOrigin, Attempt};
use super::failure::cancelled;
use super::instance::Engine;
use super::memo::is_of_inputs;
use super::refactor;
use super::sealing::rewarded;
use super::traced::record::record;
use crate::bundle::portable::PathMap;
use crate::bundle::seal::BundleDraft;
use crate::model::bundle::{Bundle, DualCoordinates, ServedFrom, Volatile};
use crate::model::error::ErrorBody;
use crate::model::request::{Command, Request};
use crate::tape::Tape;

impl Engine {
    /// Answers a request. Failures are bundles, too. If `interrupted` completes first, the server is told to cancel,
    /// and the bundle has the error `E/REQUEST_CANCELLED`.
    pub async fn run(&self, request: Request, interrupted: impl Future<Output = ()>) -> Bundle {
        self.run_until(request, async {
            interrupted.await;
            cancelled()
        })
        .await
    }

    /// Like [`Self::run`]; if `interrupted` completes first, the bundle has the error that it returns.
    pub(crate) async fn run_until(
        &self,
        request: Request,
        interrupted: impl Future<Output = ErrorBody>,
    ) -> Bundle {
        // The future is large, and callers hold several of them.
        let bundle = Box::pin(self.respond(request, interrupted)).await;
        self.store(&bundle).await;
        bundle
    }

    /// Stores a bundle so that it can be found by its id.
    pub(super) async fn store(&self, bundle: &Bundle) {
        if !self.settings.keep {
            return;
        }
        let (cache, bundle) = (self.settings.cache.clone(), bundle.clone());
        let storing = in_background(move || bundle_store::store(&cache, &bundle));
        if !self.shared.resident {
            // A process that ends must have written.
            let _ = storing.await;
        }
    }

    pub(super) async fn respond(
        &self,
        mut request: Request,
        interrupted: impl Future<Output = ErrorBody>,
    ) -> Bundle {
        self.make_uri_portable(&mut request);
        let began = Instant::now();
        let mut interrupted = pin!(interrupted);
        // A transaction that an earlier process left unfinished is recovered first.
        let settings = self.settings.clone();
        let _ = blocking(move || refactor::recover(&settings)).await;
        let tape = self.tape();
        if request.cmd == Command::Undo {
            let (settings, undo_request, recording) = (self.settings.clone(), request.clone(), tape.clone());
            let draft =
                blocking(move || refactor::undo(&settings, &undo_request, &recording)).await.unwrap_or_else(
                    |failure| BundleDraft::failed(Some(request.clone()), failure.into_body(&PathMap::new())),
                );
            let bundle = rewarded(draft, None);
            let op = record(&self.settings, Some(request), AnswerOrigin::default(), &tape, &bundle);
            return self.with_volatile(bundle, Vec::new(), ServedFrom::Syntax, began, op);
        }
        let answer = tokio::select! {
            biased;
            answer = Box::pin(self.answer(&request, began)) => answer,
            error = &mut interrupted => {
                let origin = AnswerOrigin { fault: Some(error.clone()), ..AnswerOrigin::default() };
                let draft = BundleDraft::failed(Some(request.clone()), error);
                FinalAnswer::unshared(Attempt { draft, dual: Vec::new(), plan: None, measured: None }, origin)
            }
        };
        self.settings.progress.done();
        match answer {
            FinalAnswer::Cached(bundle) => {
                self.with_volatile(*bundle, Vec::new(), ServedFrom::Memo, began, None)
            }
            FinalAnswer::Shared(bundle) => (*bundle).clone(),
            FinalAnswer::Computed(computed) => {
                let ComputedAnswer { mut attempt, served_from, key, leader, origin } = *computed;
                let tape = origin.state.as_ref().map_or(tape, |state| state.tape.clone());
                let key = key.filter(|_| {
                    let (facts, edits) = (attempt.draft.facts.as_ref(), attempt.draft.edits.as_ref());
                    origin.state.as_ref().is_none_or(|state| is_of_inputs(facts, edits, &state.inputs))
                });
                // Frees the texts of the files, which are needed from here on only to record the operation.
                let origin = if self.settings.trace.is_some() {
                    origin
                } else {
                    drop(origin);
                    AnswerOrigin::default()
                };
                self.write(&request, &mut attempt, &tape).await;
                let bundle = rewarded(attempt.draft, attempt.measured);
                let op = record(&self.settings, Some(request), origin, &tape, &bundle);
                self.memo_put(key, &bundle).await;
                let bundle = self.with_volatile(bundle, attempt.dual, served_from, began, op);
                if let Some(leader) = leader {
                    leader.deliver(&bundle);
                }
                bundle
            }
        }
    }

    /// The bundle for a request that was not run.
    pub(crate) fn refused(&self, mut request: Request, error: ErrorBody) -> Bundle {
        self.make_uri_portable(&mut request);
        let bundle = rewarded(BundleDraft::failed(Some(request.clone()), error.clone()), None);
        let origin = AnswerOrigin { fault: Some(error), ..AnswerOrigin::default() };
        let op = record(&self.settings, Some(request), origin, &Tape::off(), &bundle);
        self.with_volatile(bundle, Vec::new(), ServedFrom::Syntax, Instant::now(), op)
    }

    /// The bundle for a request that could not be parsed.
    pub(crate) fn unparsable(&self, error: ErrorBody) -> Bundle {
        let mut bundle = rewarded(BundleDraft::failed(None, error.clone()), None);
        let origin = AnswerOrigin { fault: Some(error), ..AnswerOrigin::default() };
        bundle.meta.volatile.trace_op = record(&self.settings, None, origin, &Tape::off(), &bundle);
        bundle
    }

    /// Makes the URI of the request's selector portable, as in bundles.
    pub(super) fn make_uri_portable(&self, request: &mut Request) {
        let paths = PathMap::new().workspace(self.settings.root.clone());
        request.map_uri(|uri| paths.absolute(uri).map_or_else(|| uri.clone(), |path| paths.uri(&path)));
    }

    /// Writes the edits that an attempt has planned, if the request asks for it and no check failed. From here on
    /// interruptions are ignored: the edit is written completely or not at all.
    pub(super) async fn write(&self, request: &Request, attempt: &mut Attempt, tape: &Tape) {
        let Some(plan) = attempt.plan.take().filter(|_| request.writes()) else { return };
        if attempt.draft.error.is_some() || plan.changes().is_empty() {
            return;
        }
        self.settings.progress.step("the files are written");
        let (settings, owned_request, recording) = (self.settings.clone(), request.clone(), tape.clone());
        let written = blocking(move || refactor::commit(&settings, &owned_request, &plan, &recording)).await;
        match written.unwrap_or_else(|failure| Err(failure.into_body(&PathMap::new()))) {
            Ok(transaction) => {
                if let Some(edits) = &mut attempt.draft.edits {
                    edits.transaction = Some(transaction);
                }
            }
            Err(error) => attempt.draft.error = Some(error),
        }
    }

    /// Adds the volatile metadata, which is not part of the hash.
    fn with_volatile(
        &self,
        mut bundle: Bundle,
        coordinates: Vec<DualCoordinates>,
        served_from: ServedFrom,
        began: Instant,
        trace_op: Option<u64>,
    ) -> Bundle {
        bundle.meta.volatile = Volatile {
            id: None,
            line: None,
            elapsed_ms: Some(u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX)),
            served_from: Some(served_from),
            root: Some(self.settings.root.to_string()),
            pid: Some(std::process::id()),
            trace_op,
            absolute: BTreeMap::new(),
            coordinates,
        };
        bundle
    }
}
