//! From a request to what is told: attempts until one stands.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::ask::Due;
use super::declared::may_be_shared;
use super::failure::Failure;
use super::flights::{Boarded, Leader};
use super::ground::{Ground, Tools};
use super::memo::Key;
use super::pool::{Access, Kind, Starting};
use super::state::State;
use super::traced::record::Origin;
use super::{Attempt, Orchestrator, ask, blocking, blocking_within, flights, needs_server, query};
use crate::bundle::portable::PathMap;
use crate::bundle::seal::Draft;
use crate::lsp::LspError;
use crate::model::bundle::{Bundle, Road};
use crate::model::request::Request;

/// How long is waited before a crashed server is started again, the first and the second time.
const BACKOFF: [Duration; 2] = [Duration::from_millis(100), Duration::from_millis(500)];

/// How long after the end of the caller's time the attempt itself may say what was not answered.
const GRACE: Duration = Duration::from_millis(300);

/// How much of the caller's time must be left for another attempt to be worth it.
const WORTHWHILE: Duration = Duration::from_secs(1);

/// How long a question is asked on a ground that is only presumed before the workspace is looked at meanwhile. What takes
/// longer would be a pity to ask in vain.
const EARLY: Duration = Duration::from_millis(100);

/// Where an attempt is made.
struct Basis {
    ground: Arc<Ground>,
    /// Whether it was surveyed after the request had come. If not, it is presumed to be the ground still.
    fresh: bool,
    /// A server that is being started meanwhile.
    starting: Option<Starting>,
}

/// What happened before an attempt that could not stand.
#[derive(Default)]
struct Setbacks {
    crashes: usize,
    hangs: usize,
    changes: usize,
    /// How it has to be asked, where that turned out to be another way than it seemed.
    access: Option<Access>,
    /// When the caller's time ends: it begins when there is something to ask, and not while a server is installed.
    due: Option<Due>,
}

/// An answer that is ready to be told.
pub(super) enum Told {
    /// Worked out.
    Made(Box<Made>),
    /// Worked out for somebody who asked the same.
    Shared(Arc<Bundle>),
    /// Kept from before.
    Kept(Box<Bundle>),
}

/// An answer that was worked out.
pub(super) struct Made {
    pub(super) attempt: Attempt,
    pub(super) road: Road,
    /// By what it is to be kept.
    pub(super) key: Option<Key>,
    /// Who waits for it too.
    pub(super) leader: Option<Leader>,
    /// What it came of.
    pub(super) origin: Origin,
}

impl Told {
    /// What was worked out, or failed, for one caller only.
    pub(super) fn alone(attempt: Attempt, origin: Origin) -> Self {
        Self::Made(Box::new(Made { attempt, road: Road::Cold, key: None, leader: None, origin }))
    }
}

impl Orchestrator {
    /// Attempts until one stands: on another ground when the workspace changed, on another server when that failed.
    pub(super) async fn answer(&self, request: &Request, arrived: Instant) -> Told {
        let mut setbacks = Setbacks::default();
        let mut basis = self.presumed(request);
        loop {
            let Basis { ground, fresh, starting } = match basis.take() {
                Some(basis) => basis,
                None => match self.look(request).await {
                    Ok(basis) => basis,
                    Err(failure) => return failed(request, failure, None, None, Road::Cold),
                },
            };
            let key = self.key(request, &ground);
            if let Some(bundle) = self.remembered(key).await {
                self.settings.progress.proving();
                if fresh {
                    return Told::Kept(bundle);
                }
                self.shared.surveyor.thrift.turn().await;
                match self.survey(arrived).await {
                    Ok(now) if Arc::ptr_eq(&now, &ground) => return Told::Kept(bundle),
                    Ok(now) => basis = Some(Basis { ground: now, fresh: true, starting: None }),
                    Err(failure) => return failed(request, failure, None, None, Road::Memo),
                }
                continue;
            }
            let (state, is_past) = match self.resolve(request, &ground, fresh).await {
                Ok(resolved) => resolved,
                Err(failure) => return failed(request, failure, Some(&ground), None, Road::Cold),
            };
            if is_past {
                basis = match self.survey(arrived).await {
                    Ok(now) => Some(Basis { ground: now, fresh: true, starting: None }),
                    Err(failure) => return failed(request, failure, Some(&ground), Some(&state), Road::Cold),
                };
                continue;
            }
            let leader = match self.shared.flights.board(request, &ground, &self.settings) {
                Boarded::Leader(leader) => leader,
                Boarded::Follower(answer) => {
                    self.settings.progress.proving();
                    match flights::wait(answer).await {
                        Some(bundle) => return Told::Shared(bundle),
                        None => {
                            basis = Some(Basis { ground, fresh, starting });
                            continue;
                        }
                    }
                }
            };
            let asking = self.more_to_come();
            let mut road = Road::Syntax;
            let due = *setbacks.due.get_or_insert_with(|| Due::of(request, &self.settings));
            let (at, due) = (due.at, Due { is_last: due.is_last || setbacks.hangs > 0, ..due });
            let attempted = self.attempt(request, &state, starting, setbacks.access, due, &mut road);
            let attempted = async {
                let late = || LspError::Timeout {
                    method: request.cmd.as_str().to_owned(),
                    after: self.settings.timeout,
                };
                let outcome = tokio::time::timeout_at((at + GRACE).into(), attempted).await;
                outcome
                    .unwrap_or_else(|_| Err(late().into()))
                    .map_err(|failure| failure.within(self.settings.timeout))
            };
            let outcome = if fresh {
                attempted.await
            } else {
                let overtaken = async {
                    tokio::time::sleep(EARLY).await;
                    self.shared.surveyor.thrift.turn().await;
                    match self.survey(arrived).await {
                        Ok(now) if !Arc::ptr_eq(&now, &ground) => now,
                        _ => std::future::pending().await,
                    }
                };
                tokio::select! {
                    biased;
                    outcome = attempted => outcome,
                    now = overtaken => {
                        basis = Some(Basis { ground: now, fresh: true, starting: None });
                        continue;
                    }
                }
            };
            if let Err(failure) = &outcome
                && self.recover(request, failure, &mut setbacks, road).await
            {
                basis = Some(Basis { ground, fresh, starting: None });
                continue;
            }
            leader.close();
            drop(asking);
            self.settings.progress.proving();
            match self.check(request, &state, fresh).await {
                Err(failure) => return failed(request, failure, Some(&ground), Some(&state), road),
                Ok(None) => {
                    let told = match outcome {
                        Ok(mut attempt) => {
                            if let Some(held) = attempt.held.take().filter(|_| state.rests_on_ground()) {
                                let kind = Kind::of(request, self.settings.server);
                                self.shared.pool.keep(kind, request, &ground, held);
                            }
                            let (ground, state) = (Some(ground.clone()), Some(state.clone()));
                            Made {
                                attempt,
                                road,
                                key,
                                leader: None,
                                origin: Origin { ground, state, fault: None },
                            }
                        }
                        Err(failure) => failure_of(request, failure, Some(&ground), Some(&state), road),
                    };
                    return Told::Made(Box::new(Made { leader: Some(leader), ..told }));
                }
                // What was only presumed had changed before.
                Ok(Some((_, what))) if fresh && setbacks.changes > 0 => {
                    return failed(request, Failure::Changed(what), Some(&ground), Some(&state), road);
                }
                Ok(Some((now, _))) => {
                    setbacks.changes += usize::from(fresh);
                    basis = Some(Basis { ground: now, fresh: true, starting: None });
                }
            }
        }
    }

    /// The ground that was there when it was last looked at, if a request can be asked on it.
    fn presumed(&self, request: &Request) -> Option<Basis> {
        let ground = self.shared.surveyor.last()?;
        let usable = ground.tools.found.is_ok() || !needs_server(request);
        usable.then_some(Basis { ground, fresh: false, starting: None })
    }

    /// Looks at the workspace for the first time, while the server is started that will probably be asked.
    async fn look(&self, request: &Request) -> Result<Basis, Failure> {
        let (needed, began) = (needs_server(request), Instant::now());
        let (settings, memory) = (self.settings.clone(), self.shared.surveyor.memory.clone());
        let tools = blocking(move || Tools::find(&settings, &memory, needed)).await??;
        // When the same was asked before, there may be an answer without a server.
        let known = self.shared.memo.as_ref().is_some_and(|memo| memo.may_know(request));
        let starting = (needed && !known && tools.found.is_ok())
            .then(|| self.shared.pool.start(Kind::of(request, self.settings.server), &tools));
        let ground = self.shared.surveyor.since(began, &self.settings, Some(tools)).await?;
        Ok(Basis { ground, fresh: true, starting })
    }

    async fn survey(&self, moment: Instant) -> Result<Arc<Ground>, Failure> {
        self.shared.surveyor.since(moment, &self.settings, None).await
    }

    /// Resolves the selector. And whether a ground that was only presumed is past: the selector was resolved in other contents
    /// than it has, which is known without looking at the whole workspace.
    async fn resolve(
        &self,
        request: &Request,
        ground: &Arc<Ground>,
        fresh: bool,
    ) -> Result<(Arc<State>, bool), Failure> {
        let (settings, request, ground) = (self.settings.clone(), request.clone(), ground.clone());
        let (limit, tape) = (settings.timeout, self.tape());
        blocking_within(limit, "the disk or git's folder", move || {
            let state = Arc::new(State::take(&settings, &request, ground, tape));
            let is_past = !fresh && state.first_misread().is_some();
            (state, is_past)
        })
        .await
    }

    /// One attempt. A selector that leads nowhere is told without waiting for the server, and in the same words whether
    /// there is one or not.
    pub(super) async fn attempt(
        &self,
        request: &Request,
        state: &Arc<State>,
        starting: Option<Starting>,
        access: Option<Access>,
        due: Due,
        road: &mut Road,
    ) -> Result<Attempt, Failure> {
        if let Some(error) = state.target_error() {
            return Err(Failure::told(error));
        }
        if !needs_server(request) {
            return Ok(query::located(request, state, &self.settings));
        }
        let kind = Kind::of(request, self.settings.server);
        if let Some((server, read)) = self.shared.pool.recall(kind, request, &state.ground).await {
            *road = Road::Warm;
            let said = ask::ask(request, state, &server.on(&state.tape), &self.settings, due).await;
            let now = state.read_outside();
            if now.iter().any(|(path, digest)| read.get(path) != Some(digest)) {
                // A server that has read them does not look at them again.
                self.shared.pool.forget(kind, request);
                return Err(Failure::Unclean);
            }
            let forgotten = || LspError::Forgotten { method: request.cmd.as_str().to_owned() };
            return said.map_err(|failure| match failure {
                // What cannot be made of the words is asked of the server.
                Failure::Server(_) | Failure::Unclean | Failure::Company => forgotten().into(),
                failure => failure,
            });
        }
        *road = Road::Cold;
        let mut starting = starting;
        if let Some(starting) = &mut starting {
            starting.started().await?;
        }
        let access = match access {
            Some(access) => access,
            None => {
                // Among many questions it pays to know which can be asked beside others.
                if self.shared.many && may_be_shared(request) {
                    let state = state.clone();
                    blocking(move || state.look_far()).await?;
                }
                ask::access(request, state)
            }
        };
        if access != Access::Shared {
            self.settings.progress.aside();
        }
        let server = self
            .shared
            .pool
            .lease(kind, access, &state.ground, &state.files)
            .await?
            .on(&state.tape)
            .noting(request, access);
        if let Some(starting) = starting {
            starting.leased();
        }
        if !server.is_pristine() {
            *road = Road::Warm;
        }
        let due = Due { is_last: due.is_last || server.is_pristine(), ..due };
        let answered = ask::ask(request, state, &server, &self.settings, due).await;
        if answered.as_ref().is_err_and(Failure::is_hang) {
            server.hung();
        } else {
            server.ended();
        }
        answered
    }

    /// Whether it is worth another attempt on the same ground.
    async fn recover(
        &self,
        request: &Request,
        failure: &Failure,
        setbacks: &mut Setbacks,
        road: Road,
    ) -> bool {
        match failure {
            // What is asked hangs on more than the ground, such as on what a revision is.
            Failure::Server(LspError::Forgotten { .. }) => {
                self.shared.pool.forget(Kind::of(request, self.settings.server), request);
                true
            }
            failure if failure.is_crash() && setbacks.crashes < BACKOFF.len() => {
                tokio::time::sleep(BACKOFF[setbacks.crashes]).await;
                setbacks.crashes += 1;
                true
            }
            failure if failure.is_hang() => {
                // One that was asked before may only be tired, and any may have had bad luck once.
                setbacks.hangs += 1;
                setbacks.hangs == 1 && setbacks.due.is_none_or(|due| Instant::now() + WORTHWHILE < due.at)
            }
            // A server that trips over what it has learned may do better when it has learned nothing.
            Failure::Unclean | Failure::Server(LspError::Server { .. })
                if setbacks.access != Some(Access::Pristine) && road == Road::Warm =>
            {
                setbacks.access = Some(Access::Pristine);
                true
            }
            Failure::Company if setbacks.access.is_none() => {
                setbacks.access = Some(Access::Alone);
                true
            }
            _ => false,
        }
    }

    /// Looks at what the outcome rests on once more: `None` when it is as it was, else what it is now, and what changed.
    async fn check(
        &self,
        request: &Request,
        state: &Arc<State>,
        fresh: bool,
    ) -> Result<Option<(Arc<Ground>, String)>, Failure> {
        let asked = Instant::now();
        let now = if self.shared.resident {
            self.shared.surveyor.thrift.turn().await;
            self.survey(asked).await?
        } else if needs_server(request) || !fresh {
            let (now, ()) = tokio::join!(self.survey(asked), self.shared.pool.close());
            now?
        } else {
            state.ground.clone()
        };
        if !Arc::ptr_eq(&now, &state.ground) {
            let what = state.ground.first_difference(&now);
            return Ok(Some((now, what)));
        }
        let state = state.clone();
        let misread = blocking(move || state.first_misread()).await?;
        Ok(misread.map(|what| (now, what)))
    }

    /// By what the answer is kept; `None` when it is not.
    fn key(&self, request: &Request, ground: &Ground) -> Option<Key> {
        // With both coordinate systems an answer has more than what is kept.
        // What git says of the files is no part of the ground.
        let kept = self.shared.memo.is_some()
            && self.settings.trace.is_none()
            && needs_server(request)
            && !request.cmd.edits()
            && !self.settings.verbose;
        kept.then(|| Key::of(request, ground)).flatten()
    }

    async fn remembered(&self, key: Option<Key>) -> Option<Box<Bundle>> {
        let (key, shared) = (key?, self.shared.clone());
        let found = blocking(move || shared.memo.as_ref().and_then(|memo| memo.get(&key)).map(Box::new));
        found.await.ok().flatten()
    }

    pub(super) async fn keep(&self, key: Option<Key>, bundle: &Bundle) {
        let Some(key) = key.filter(|_| bundle.error.is_none()) else { return };
        let (shared, bundle) = (self.shared.clone(), bundle.clone());
        let keeping = blocking(move || {
            if let Some(memo) = &shared.memo {
                memo.put(&key, &bundle);
            }
        });
        if !self.shared.resident {
            // A process that ends must have written.
            let _ = keeping.await;
        }
    }
}

/// An attempt that failed, for one caller.
fn failed(
    request: &Request,
    failure: Failure,
    ground: Option<&Arc<Ground>>,
    state: Option<&Arc<State>>,
    road: Road,
) -> Told {
    Told::Made(Box::new(failure_of(request, failure, ground, state, road)))
}

/// An attempt that failed, as a bundle with what is known all the same.
pub(super) fn failure_of(
    request: &Request,
    failure: Failure,
    ground: Option<&Arc<Ground>>,
    state: Option<&Arc<State>>,
    road: Road,
) -> Made {
    let nothing = PathMap::new();
    let paths = ground.map_or(&nothing, |ground| &ground.paths);
    let is_outside = failure.is_outside();
    let mut draft = Draft::failed(Some(request.clone()), failure.into_body(paths));
    draft.resolution = state.and_then(|state| state.resolution(request));
    draft.relocation = super::located::rules_of(draft.resolution.as_ref());
    draft.environment = ground.map(|ground| ground.environment.clone());
    draft.warnings = ground.map(|ground| ground.warnings.clone()).unwrap_or_default();
    let fault = draft.error.clone().filter(|_| is_outside);
    let origin = Origin { ground: ground.cloned(), state: state.cloned(), fault };
    let attempt = Attempt { draft, dual: Vec::new(), plan: None, measured: None, held: None };
    Made { attempt, road, key: None, leader: None, origin }
}
