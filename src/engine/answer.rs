//! Answers one request. Retries when the workspace changes underneath, and when the server fails.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::blocking::{blocking, blocking_within, in_background, read_within};
use super::context::{AnswerOrigin, Attempt, Deadline, needs_server};
use super::dispatch::dispatch;
use super::failure::Failure;
use super::inputs::{Inputs, Tools};
use super::instance::Engine;
use super::memo::MemoKey;
use super::opinion::Opinions;
use super::pool::{Isolation, StartingWorker, WorkerKind};
use super::request_state::RequestState;
use super::single_flight::{FlightLeader, FlightRole};
use super::{analyze, navigation, order_dependence, refactor, resolution, single_flight};
use crate::bundle::portable::PathMap;
use crate::bundle::seal::BundleDraft;
use crate::lsp::LspError;
use crate::model::bundle::{Bundle, ServedFrom};
use crate::model::request::Request;

/// The delays before a crashed server is restarted: the first and the second time.
const RESTART_BACKOFF: [Duration; 2] = [Duration::from_millis(100), Duration::from_millis(500)];

/// How long after the deadline an attempt may still report by itself what timed out.
const TIMEOUT_GRACE: Duration = Duration::from_millis(300);

/// The time that must be left before the deadline for another attempt to be worthwhile.
const MIN_RETRY_TIME: Duration = Duration::from_secs(1);

/// How long an attempt on presumed inputs runs before they are scanned concurrently. A longer attempt is expensive to
/// discard.
const EARLY_SCAN_DELAY: Duration = Duration::from_millis(100);

/// The same for the attempt of a process that has no running server: a short one ends before.
const EARLY_SCAN_DELAY_COLD: Duration = Duration::from_millis(400);

/// The inputs of an attempt.
pub(super) struct AttemptInputs {
    pub(super) inputs: Arc<Inputs>,
    /// Whether they were scanned after the request arrived. If not, they are only presumed to be unchanged.
    pub(super) fresh: bool,
    /// A server that is being started concurrently.
    pub(super) starting: Option<StartingWorker>,
}

/// What an attempt needs besides the request.
pub(super) struct AttemptConditions {
    /// The isolation, if the default does not suffice.
    pub(super) isolation: Option<Isolation>,
    /// When the answer is due.
    pub(super) deadline: Deadline,
}

impl AttemptInputs {
    pub(super) const fn fresh(inputs: Arc<Inputs>) -> Self {
        Self { inputs, fresh: true, starting: None }
    }
}

/// What earlier attempts imply for the next.
#[derive(Default)]
pub(super) struct RetryState {
    crashes: usize,
    hangs: usize,
    changes: usize,
    /// Whether the memo's plan of the edit cannot be used.
    is_plan_unusable: bool,
    /// The isolation that the request needs, where an attempt has shown that the default does not suffice.
    isolation: Option<Isolation>,
    /// The caller's deadline. Its time starts when the request can be sent, not while a server is being installed.
    deadline: Option<Deadline>,
}

/// How an attempt ended.
enum AttemptEnd {
    Answered(FinalAnswer),
    /// Another one has to be made.
    Repeat(AttemptInputs),
}

/// An answer that is ready to be returned.
pub(super) enum FinalAnswer {
    /// Computed for this request.
    Computed(Box<ComputedAnswer>),
    /// Computed for an identical concurrent request.
    Shared(Arc<Bundle>),
    /// From the memo.
    Cached(Box<Bundle>),
}

/// An answer that was computed for this request.
pub(super) struct ComputedAnswer {
    pub(super) attempt: Attempt,
    pub(super) served_from: ServedFrom,
    /// Its key in the memo.
    pub(super) key: Option<MemoKey>,
    /// Delivers it to the identical requests that wait for it.
    pub(super) leader: Option<FlightLeader>,
    /// What it was computed from, for the trace.
    pub(super) origin: AnswerOrigin,
}

impl FinalAnswer {
    /// A result, or an error, that is shared with no other request.
    pub(super) fn unshared(attempt: Attempt, origin: AnswerOrigin) -> Self {
        Self::Computed(Box::new(ComputedAnswer {
            attempt,
            served_from: ServedFrom::Server,
            key: None,
            leader: None,
            origin,
        }))
    }
}

impl Engine {
    /// Makes attempts until one is valid: on new inputs when the workspace changed, with another server when one
    /// failed.
    pub(super) async fn answer(&self, request: &Request, arrived: Instant) -> FinalAnswer {
        let mut retry = RetryState::default();
        let mut basis = match self.presumed_inputs(request) {
            Some(presumed) => presumed,
            None => match self.first_scan(request, !self.shared.resident).await {
                Ok(scanned) => scanned,
                Err(failure) => return failed(request, failure, None, None, ServedFrom::Server),
            },
        };
        loop {
            match self.try_answer(request, basis, arrived, &mut retry).await {
                Ok(AttemptEnd::Repeat(next)) => basis = next,
                Ok(AttemptEnd::Answered(answer)) | Err(answer) => return answer,
            }
        }
    }

    /// Makes one attempt: inputs, memo, selector, worker, answer, and the proof that the inputs are unchanged.
    ///
    /// # Errors
    /// The answer that reports why there is none.
    async fn try_answer(
        &self,
        request: &Request,
        basis: AttemptInputs,
        arrived: Instant,
        retry: &mut RetryState,
    ) -> Result<AttemptEnd, FinalAnswer> {
        let inputs = basis.inputs.clone();
        let key = self.memo_key(request, &inputs).await;
        if let Some(bundle) = self.memo_get(key.filter(|_| !retry.is_plan_unusable)).await {
            return self.recall(request, basis, arrived, *bundle, retry).await;
        }
        let (state, is_stale) = self
            .resolve(request, &inputs, basis.fresh)
            .await
            .map_err(|failure| failed(request, failure, Some(&inputs), None, ServedFrom::Server))?;
        let failed_from =
            |failure, served_from| failed(request, failure, Some(&inputs), Some(&state), served_from);
        if is_stale {
            let now = self.scan_since(arrived).await;
            let now = now.map_err(|failure| failed_from(failure, ServedFrom::Server))?;
            // A server that is being started has read nothing yet.
            let starting = basis.starting;
            return Ok(AttemptEnd::Repeat(AttemptInputs { starting, ..AttemptInputs::fresh(now) }));
        }
        let leader = match self.shared.single_flight.join(request, &inputs, &self.settings) {
            FlightRole::Leader(leader) => leader,
            FlightRole::Follower(answer) => {
                self.settings.progress.verifying();
                return Ok(match single_flight::wait(answer).await {
                    Some(bundle) => AttemptEnd::Answered(FinalAnswer::Shared(bundle)),
                    None => AttemptEnd::Repeat(basis),
                });
            }
        };
        let pending = self.pending_guard();
        let (fresh, mut served_from) = (basis.fresh, ServedFrom::Syntax);
        let other = self.other_server(request);
        let other = other.map_err(|failure| failed_from(failure, ServedFrom::Syntax))?;
        let opinions = other.as_deref().map_or(Opinions::Single, Opinions::Main);
        let attempted = Box::pin(self.attempt_in_time(
            request,
            &state,
            basis.starting,
            retry,
            &mut served_from,
            opinions,
        ));
        let outcome = tokio::select! {
            biased;
            outcome = attempted => outcome,
            now = self.inputs_changed(&inputs, arrived), if !fresh => {
                return Ok(AttemptEnd::Repeat(AttemptInputs::fresh(now)));
            }
        };
        if let Err(failure) = &outcome
            && self.should_retry(failure, retry, served_from).await
        {
            return Ok(AttemptEnd::Repeat(AttemptInputs { inputs, fresh, starting: None }));
        }
        leader.close();
        drop(pending);
        self.settings.progress.verifying();
        let changes = self.changes_since(request, &state, fresh).await;
        if let Some((now, what)) = changes.map_err(|failure| failed_from(failure, served_from))? {
            // A change of presumed inputs does not count: it may have happened before the request.
            if fresh && retry.changes > 0 {
                return Err(failed_from(Failure::Changed(what), served_from));
            }
            retry.changes += usize::from(fresh);
            return Ok(AttemptEnd::Repeat(AttemptInputs::fresh(now)));
        }
        let mut computed = match outcome {
            Ok(attempt) => {
                let origin =
                    AnswerOrigin { inputs: Some(inputs.clone()), state: Some(state.clone()), fault: None };
                // Between the key and the answer the other server's inputs may have changed.
                let key = key.filter(|key| key.other == state.other_inputs());
                ComputedAnswer { attempt, served_from, key, leader: None, origin }
            }
            Err(failure) => failure_of(request, failure, Some(&inputs), Some(&state), served_from),
        };
        computed.leader = Some(leader);
        Ok(AttemptEnd::Answered(FinalAnswer::Computed(Box::new(computed))))
    }

    /// The answer from the memo, once the inputs are proved to be unchanged.
    async fn recall(
        &self,
        request: &Request,
        basis: AttemptInputs,
        arrived: Instant,
        bundle: Bundle,
        retry: &mut RetryState,
    ) -> Result<AttemptEnd, FinalAnswer> {
        self.settings.progress.verifying();
        if !basis.fresh {
            self.shared.scanner.throttle.wait().await;
            let now = self.scan_since(arrived).await;
            let now = now.map_err(|failure| failed(request, failure, None, None, ServedFrom::Memo))?;
            if !Arc::ptr_eq(&now, &basis.inputs) {
                return Ok(AttemptEnd::Repeat(AttemptInputs::fresh(now)));
            }
        }
        if !request.cmd.edits() {
            return Ok(AttemptEnd::Answered(FinalAnswer::Cached(Box::new(bundle))));
        }
        let recalled = self.recall_plan(request, &basis.inputs, bundle).await;
        let recalled = recalled
            .map_err(|failure| failed(request, failure, Some(&basis.inputs), None, ServedFrom::Memo))?;
        Ok(match recalled {
            Some(answer) => AttemptEnd::Answered(answer),
            None => {
                retry.is_plan_unusable = true;
                AttemptEnd::Repeat(AttemptInputs { fresh: true, ..basis })
            }
        })
    }

    /// Runs [`Self::attempt`] until the deadline.
    pub(super) async fn attempt_in_time(
        &self,
        request: &Request,
        state: &Arc<RequestState>,
        starting: Option<StartingWorker>,
        retry: &mut RetryState,
        served_from: &mut ServedFrom,
        opinions: Opinions<'_>,
    ) -> Result<Attempt, Failure> {
        let deadline = *retry.deadline.get_or_insert_with(|| Deadline::of(request, &self.settings));
        let at = deadline.at;
        let deadline = Deadline { is_last: deadline.is_last || retry.hangs > 0, ..deadline };
        let conditions = AttemptConditions { isolation: retry.isolation, deadline };
        let attempted = self.attempt(request, state, starting, conditions, served_from, opinions);
        let outcome = tokio::time::timeout_at((at + TIMEOUT_GRACE).into(), attempted).await;
        let timed_out =
            || LspError::Timeout { method: request.cmd.as_str().to_owned(), after: self.settings.timeout };
        outcome
            .unwrap_or_else(|_| Err(timed_out().into()))
            .map_err(|failure| failure.within(self.settings.timeout))
    }

    /// The new inputs, once a scan after the request's arrival finds that they are not the presumed ones.
    async fn inputs_changed(&self, presumed: &Arc<Inputs>, arrived: Instant) -> Arc<Inputs> {
        let delay = if self.shared.resident { EARLY_SCAN_DELAY } else { EARLY_SCAN_DELAY_COLD };
        tokio::time::sleep(delay).await;
        self.shared.scanner.throttle.wait().await;
        match self.scan_since(arrived).await {
            Ok(now) if !Arc::ptr_eq(&now, presumed) => now,
            _ => std::future::pending().await,
        }
    }

    /// The answer from a plan that was made for the same inputs; `None` if it cannot be used.
    async fn recall_plan(
        &self,
        request: &Request,
        inputs: &Arc<Inputs>,
        bundle: Bundle,
    ) -> Result<Option<FinalAnswer>, Failure> {
        let (state, _) = self.resolve(request, inputs, true).await?;
        let attempt = refactor::recall(request, &state, &self.settings, bundle).await?;
        Ok(attempt.map(|attempt| {
            FinalAnswer::Computed(Box::new(ComputedAnswer {
                attempt,
                served_from: ServedFrom::Memo,
                key: None,
                leader: None,
                origin: AnswerOrigin { inputs: Some(inputs.clone()), state: Some(state), fault: None },
            }))
        }))
    }

    /// The inputs of the last scan, if they allow to answer the request.
    fn presumed_inputs(&self, request: &Request) -> Option<AttemptInputs> {
        let inputs = self.shared.scanner.last()?;
        let usable = inputs.tools.found.is_ok() || !needs_server(request);
        usable.then_some(AttemptInputs { inputs, fresh: false, starting: None })
    }

    /// Scans the workspace for the first time, and starts the server that is probably needed concurrently. With `may_presume`, a
    /// request for the server presumes the last scan of another process: the scan after the answer tells whether it was right.
    pub(super) async fn first_scan(
        &self,
        request: &Request,
        may_presume: bool,
    ) -> Result<AttemptInputs, Failure> {
        let (needs_server, began) = (needs_server(request), Instant::now());
        let tools = self.tools(needs_server).await?;
        // For a request that was answered before, the memo may have an answer, so that no server is needed.
        let may_be_cached = self.shared.memo.as_ref().is_some_and(|memo| {
            memo.has_request(refactor::planning_request(request).as_ref().unwrap_or(request))
        });
        let starting = (needs_server && !may_be_cached && tools.found.is_ok())
            .then(|| self.shared.pool.start(WorkerKind::of(request, self.settings.server), &tools));
        if needs_server && may_presume {
            self.parse_ahead(request);
            let presumed = self.shared.scanner.presume(&self.settings, tools.clone());
            if let Some(inputs) = read_within(self.settings.timeout, presumed).await? {
                return Ok(AttemptInputs { inputs, fresh: false, starting });
            }
        }
        let inputs = self.shared.scanner.scan_since(began, &self.settings, Some(tools)).await?;
        Ok(AttemptInputs { inputs, fresh: true, starting })
    }

    /// Starts to parse the file that the selector probably means, so that it is in the cache when the selector is resolved.
    fn parse_ahead(&self, request: &Request) {
        let Some(selector) = request.selector.clone() else { return };
        let root = self.settings.root.clone();
        // It is not waited for. Whatever fails here is reported when the selector is resolved.
        drop(in_background(move || resolution::parse_ahead(&selector, &root)));
    }

    async fn tools(&self, needs_server: bool) -> Result<Tools, Failure> {
        let (settings, environment_cache) =
            (self.settings.clone(), self.shared.scanner.environment_cache.clone());
        blocking(move || Tools::find(&settings, &environment_cache, needs_server)).await?
    }

    /// The request to which another process may find the answer for a request that writes: the plan is then in the memo. `None` if
    /// it is there already, if plans are not kept, or if the request is refused without one.
    pub async fn planning_request(&self, request: &Request) -> Option<Request> {
        self.shared.memo.as_ref().filter(|_| request.writes())?;
        let planning = refactor::planning_request(request)?;
        let mut request = request.clone();
        self.make_uri_portable(&mut request);
        let began = Instant::now();
        let tools = self.tools(true).await.ok()?;
        let inputs = self.shared.scanner.scan_since(began, &self.settings, Some(tools)).await.ok()?;
        let key = self.memo_key(&request, &inputs).await;
        if self.memo_get(key).await.is_some() {
            return None;
        }
        let (state, _) = self.resolve(&request, &inputs, true).await.ok()?;
        let is_refused = state.target_error().is_some()
            || refactor::refusal(&request, &state, &self.settings).await.ok()?.is_some();
        (!is_refused).then_some(planning)
    }

    pub(super) async fn scan_since(&self, moment: Instant) -> Result<Arc<Inputs>, Failure> {
        self.shared.scanner.scan_since(moment, &self.settings, None).await
    }

    /// Resolves the selector. The flag says that presumed inputs are stale: the selector was resolved in file
    /// contents that differ from theirs, which is known without a scan of the whole workspace.
    pub(super) async fn resolve(
        &self,
        request: &Request,
        inputs: &Arc<Inputs>,
        fresh: bool,
    ) -> Result<(Arc<RequestState>, bool), Failure> {
        let (settings, request, inputs) = (self.settings.clone(), request.clone(), inputs.clone());
        let (limit, tape) = (settings.timeout, self.tape());
        blocking_within(limit, move || {
            let state = Arc::new(RequestState::new(&settings, &request, inputs, tape));
            let is_stale = !fresh && state.first_changed_file().is_some();
            (state, is_stale)
        })
        .await
    }

    /// Makes one attempt. A selector that resolves to nothing is reported without waiting for the server, with the
    /// same message whether there is a server or not.
    pub(super) async fn attempt(
        &self,
        request: &Request,
        state: &Arc<RequestState>,
        starting: Option<StartingWorker>,
        conditions: AttemptConditions,
        served_from: &mut ServedFrom,
        opinions: Opinions<'_>,
    ) -> Result<Attempt, Failure> {
        if let Some(error) = state.target_error() {
            return Err(Failure::reported(error));
        }
        if !needs_server(request) {
            return Ok(navigation::locate(request, state, &self.settings));
        }
        if let Some(refused) = refactor::refusal(request, state, &self.settings).await? {
            return Ok(refused);
        }
        let kind = WorkerKind::of(request, self.settings.server);
        *served_from = ServedFrom::Server;
        let mut starting = starting;
        if let Some(starting) = &mut starting {
            // What the ids of definitions in the answer are found with can be read while the server starts.
            let state = state.clone();
            drop(in_background(move || state.definitions().prepare()));
            starting.wait().await?;
        }
        let AttemptConditions { isolation, deadline } = conditions;
        let isolation =
            isolation.unwrap_or_else(|| order_dependence::isolation(request, state, self.settings.server));
        if isolation != Isolation::Shared {
            self.settings.progress.waiting_for_exclusive();
        }
        let server = self
            .shared
            .pool
            .acquire(kind, isolation, &state.inputs, &state.files)
            .await?
            .recording(&state.tape);
        // The worker has inputs now, so that it stays.
        drop(starting);
        if !server.is_fresh() {
            *served_from = ServedFrom::WarmServer;
        }
        let deadline = Deadline { is_last: deadline.is_last || server.is_fresh(), ..deadline };
        let answered = dispatch(request, state, &server, &self.settings, deadline, opinions).await;
        if answered.as_ref().is_err_and(Failure::is_hang) {
            server.retire();
        } else {
            server.mark_finished();
        }
        answered
    }

    /// Whether to make another attempt on the same inputs.
    pub(super) async fn should_retry(
        &self,
        failure: &Failure,
        retry: &mut RetryState,
        served_from: ServedFrom,
    ) -> bool {
        match failure {
            failure if failure.is_crash() && retry.crashes < RESTART_BACKOFF.len() => {
                tokio::time::sleep(RESTART_BACKOFF[retry.crashes]).await;
                retry.crashes += 1;
                true
            }
            failure if failure.is_hang() => {
                // A server that has answered other requests may be slow because of them, and any may time out once by
                // chance.
                retry.hangs += 1;
                retry.hangs == 1
                    && retry.deadline.is_none_or(|deadline| Instant::now() + MIN_RETRY_TIME < deadline.at)
            }
            // A server may fail because of its accumulated state; a fresh one has none.
            Failure::NeedsFreshServer | Failure::Server(LspError::Server { .. })
                if retry.isolation != Some(Isolation::Fresh) && served_from == ServedFrom::WarmServer =>
            {
                retry.isolation = Some(Isolation::Fresh);
                true
            }
            Failure::NeedsExclusiveServer if retry.isolation.is_none() => {
                retry.isolation = Some(Isolation::Reset);
                true
            }
            _ => false,
        }
    }

    /// Scans the inputs again. `None` if they are unchanged, else the new inputs and what changed.
    async fn changes_since(
        &self,
        request: &Request,
        state: &Arc<RequestState>,
        fresh: bool,
    ) -> Result<Option<(Arc<Inputs>, String)>, Failure> {
        let started = Instant::now();
        let now = if self.shared.resident {
            self.shared.scanner.throttle.wait().await;
            self.scan_since(started).await?
        } else if needs_server(request) || !fresh {
            let (now, ()) = tokio::join!(self.scan_since(started), self.close());
            now?
        } else {
            state.inputs.clone()
        };
        if !Arc::ptr_eq(&now, &state.inputs) {
            let what = state.inputs.first_difference(&now);
            return Ok(Some((now, what)));
        }
        let state = state.clone();
        let changed = blocking(move || state.first_changed_file()).await?;
        Ok(changed.map(|what| (now, what)))
    }

    /// The answer's key in the memo; `None` if it is not cached.
    async fn memo_key(&self, request: &Request, inputs: &Arc<Inputs>) -> Option<MemoKey> {
        // With both coordinate systems an answer contains more than the memo stores.
        let is_cacheable = self.shared.memo.is_some()
            && self.settings.trace.is_none()
            && needs_server(request)
            && !self.settings.verbose;
        if !is_cacheable {
            return None;
        }
        // What git reports about files is not part of the inputs, so of an edit only its plan is cached.
        let key = match refactor::planning_request(request) {
            Some(planning) => MemoKey::of(&planning, inputs, &self.settings),
            None if request.cmd.edits() => None,
            None => MemoKey::of(request, inputs, &self.settings),
        }?;
        let key = match request.options.agree {
            Some(_) => key.with_other(self.other_inputs_digest(request).await?),
            None => key,
        };
        if request.options.with.is_empty() {
            return Some(key);
        }
        let (settings, request, inputs) = (self.settings.clone(), request.clone(), inputs.clone());
        let analyzers = blocking(move || analyze::digest(&settings, &request, &inputs)).await;
        analyzers.ok().flatten().map(|analyzers| key.with(analyzers))
    }

    async fn memo_get(&self, key: Option<MemoKey>) -> Option<Box<Bundle>> {
        let (key, shared) = (key?, self.shared.clone());
        let found = blocking(move || shared.memo.as_ref().and_then(|memo| memo.get(&key)).map(Box::new));
        found.await.ok().flatten()
    }

    pub(super) async fn memo_put(&self, key: Option<MemoKey>, bundle: &Bundle) {
        let is_edit = bundle.request.as_ref().is_some_and(|request| request.cmd.edits());
        let is_answer = if is_edit { refactor::has_plan(bundle) } else { bundle.error.is_none() };
        // What became of a name may follow from commits, which are not among the inputs.
        let resolved = bundle.resolution.as_ref().and_then(|resolution| resolution.resolved.as_ref());
        let is_followed = resolved.is_some_and(|target| !target.certified && target.via.is_searched());
        let Some(key) = key.filter(|_| is_answer && !is_followed) else { return };
        let (shared, bundle) = (self.shared.clone(), bundle.clone());
        let keeping = in_background(move || {
            if let Some(memo) = &shared.memo {
                memo.put(&key, &bundle);
            }
        });
        // A process that is about to exit must finish writing. Another process looks for a plan as soon as it has this answer.
        if is_edit || !self.shared.resident {
            let _ = keeping.await;
        }
    }
}

/// A failed attempt, as an answer for this caller only.
fn failed(
    request: &Request,
    failure: Failure,
    inputs: Option<&Arc<Inputs>>,
    state: Option<&Arc<RequestState>>,
    served_from: ServedFrom,
) -> FinalAnswer {
    FinalAnswer::Computed(Box::new(failure_of(request, failure, inputs, state, served_from)))
}

/// A failed attempt as a draft of a bundle, with everything that is known nonetheless.
pub(super) fn failure_of(
    request: &Request,
    failure: Failure,
    inputs: Option<&Arc<Inputs>>,
    state: Option<&Arc<RequestState>>,
    served_from: ServedFrom,
) -> ComputedAnswer {
    let nothing = PathMap::new();
    let paths = inputs.map_or(&nothing, |inputs| &inputs.paths);
    let is_outside = failure.is_outside();
    let mut draft = BundleDraft::failed(Some(request.clone()), failure.into_body(paths));
    draft.resolution = state.and_then(|state| state.resolution(request));
    draft.relocation = resolution::rules_of(draft.resolution.as_ref());
    let environment = || inputs.map(|inputs| inputs.environment.clone());
    draft.environment = state.map(|state| state.environment()).or_else(environment);
    draft.warnings = inputs.map(|inputs| inputs.warnings.clone()).unwrap_or_default();
    let fault = draft.error.clone().filter(|_| is_outside);
    let origin = AnswerOrigin { inputs: inputs.cloned(), state: state.cloned(), fault };
    let attempt = Attempt { draft, dual: Vec::new(), plan: None, measured: None };
    ComputedAnswer { attempt, served_from, key: None, leader: None, origin }
}
