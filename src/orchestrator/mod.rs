//! The order of steps: from a request to a sealed bundle. The only module that knows it.
//!
//! One answer is one *attempt* on one [`ground`]: the memo is looked into ([`memo`]), the selector is resolved ([`state`]),
//! a server is brought to the ground ([`pool`]) and asked ([`query`], [`outline`], [`hierarchy`], [`diagnose`]). Then the
//! ground is surveyed. When it is still the same, the answer is told; when it is another one, the attempt is made again on
//! that. So an orchestrator that has answered before begins at once on what it knows, and one survey, the one after the
//! answer, proves that the answer is fresh.
//!
//! Which documents a question finds open is a function of ground and request, never of what was asked before; the server
//! always enumerates first, because Pyright's inferred types depend on the order in which it learned its files.

mod ask;
mod completeness;
mod diagnose;
mod failure;
mod ground;
mod hierarchy;
mod memo;
mod outline;
mod places;
mod pool;
mod python;
mod query;
mod server;
mod state;

use std::collections::BTreeMap;
use std::future::Future;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::bundle::portable::PathMap;
use crate::bundle::seal::{Draft, seal};
use crate::lsp::LspError;
use crate::model::bundle::{Bundle, DualCoordinates, Road, Volatile};
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::model::request::{Command, Request};
use crate::model::server::ServerKind;
use crate::path::AbsPath;
use crate::workspace::snapshot::Trust;
use failure::Failure;
use ground::{Ground, Surveyor, Tools};
pub use memo::verify_memo;
use memo::{Key, Memo};
use pool::{Access, Kind, Pool, Starting};
pub use python::{ConfigurationReport, PythonReport, configuration_report, python_report};
pub use server::{tell_progress, toolchain_request};
use state::State;

/// How long is waited before a crashed server is started again, the first and the second time.
const BACKOFF: [Duration; 2] = [Duration::from_millis(100), Duration::from_millis(500)];

/// How long a question is asked on a ground that is only presumed before the workspace is looked at meanwhile. What takes
/// longer would be a pity to ask in vain.
const EARLY: Duration = Duration::from_millis(50);

/// Who is told of long work.
pub trait Progress: Send + Sync {
    /// What is being done right now.
    fn step(&self, text: &str);
    /// Something that is worth knowing also later.
    fn say(&self, text: &str);
    /// Nothing is being done any more.
    fn done(&self);
}

/// Everything that an answer depends on besides the request, and where it may be kept.
#[derive(Clone)]
pub struct Settings {
    /// The workspace, links resolved.
    pub root: AbsPath,
    /// Which server.
    pub server: ServerKind,
    /// Which version of it; `None` is the pinned one.
    pub server_version: Option<String>,
    /// A server that the user named.
    pub server_command: Option<AbsPath>,
    /// An interpreter that the user named.
    pub python: Option<AbsPath>,
    /// The time for each answer of the server.
    pub timeout: Duration,
    /// Whether nothing may be installed.
    pub offline: bool,
    /// Whether programs inside the workspace may be run as servers.
    pub trust_workspace: bool,
    /// What proves that a file is unchanged.
    pub trust: Trust,
    /// Lanser's cache folder.
    pub cache: AbsPath,
    /// Whether what was learned of the workspace is read from there and kept there.
    pub keep: bool,
    /// The folder for temporary files.
    pub temp: AbsPath,
    /// This program, when it can be called again to guard a server (see [`crate::lsp::process`]).
    pub guard: Option<AbsPath>,
    /// The folders of PATH.
    pub search_path: Vec<PathBuf>,
    /// The environment variables.
    pub environment: BTreeMap<String, String>,
    /// Whether both coordinate systems are told.
    pub verbose: bool,
    /// How many threads may scan and parse.
    pub threads: usize,
    /// Who is told of long work.
    pub progress: Arc<dyn Progress>,
}

/// Answers requests about one workspace, and keeps what it learns for the next: servers, and what was seen of the workspace.
#[derive(Clone)]
pub struct Orchestrator {
    settings: Arc<Settings>,
    shared: Arc<Shared>,
}

/// What the requests share.
struct Shared {
    surveyor: Surveyor,
    pool: Pool,
    memo: Option<Memo>,
    /// Whether there will be more requests than one.
    resident: bool,
}

/// What an attempt gives.
struct Attempt {
    draft: Draft,
    dual: Vec<DualCoordinates>,
}

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
    /// Whether only a server that was never asked anything can answer.
    pristine: bool,
}

/// An answer that is ready to be told.
enum Told {
    /// Worked out, and by what it is to be kept.
    Made(Box<Attempt>, Road, Option<Key>),
    /// Kept from before.
    Kept(Box<Bundle>),
}

impl Orchestrator {
    /// An orchestrator for many requests. [`Self::close`] ends what they started.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self::with(settings, true)
    }

    /// An orchestrator for one request: the server says goodbye while the workspace is looked at for the last time.
    #[must_use]
    pub fn for_one(settings: Settings) -> Self {
        Self::with(settings, false)
    }

    fn with(settings: Settings, resident: bool) -> Self {
        let settings = Arc::new(settings);
        let shared = Shared {
            surveyor: Surveyor::new(&settings),
            pool: Pool::new(settings.clone(), resident),
            memo: Memo::of(&settings),
            resident,
        };
        Self { settings, shared: Arc::new(shared) }
    }

    /// The same orchestrator for another caller: with a time limit, a verbosity and an ear of its own.
    #[must_use]
    pub fn for_caller(&self, timeout: Duration, verbose: bool, progress: Arc<dyn Progress>) -> Self {
        let settings = Settings { timeout, verbose, progress, ..(*self.settings).clone() };
        Self { settings: Arc::new(settings), shared: self.shared.clone() }
    }

    /// Ends the servers.
    pub async fn close(&self) {
        self.shared.pool.close().await;
    }

    /// Answers a request, or tells why there is no answer; both are bundles. When `interrupted` ends first, the server is
    /// told, and the bundle says `E/REQUEST_CANCELLED`.
    pub async fn run(&self, mut request: Request, interrupted: impl Future<Output = ()>) -> Bundle {
        if let Some(selector) = &mut request.selector {
            let paths = PathMap::new().workspace(self.settings.root.clone());
            selector.map_uri(|uri| paths.absolute(uri).map_or_else(|| uri.clone(), |path| paths.uri(&path)));
        }
        let began = Instant::now();
        let mut interrupted = pin!(interrupted);
        let told = tokio::select! {
            biased;
            told = self.answer(&request, began) => told,
            () = &mut interrupted => {
                let error = ErrorBody::new(ErrorSymbol::RequestCancelled, "the request was cancelled")
                    .hint("ask again");
                let attempt = Attempt { draft: Draft::failed(Some(request), error), dual: Vec::new() };
                Told::Made(Box::new(attempt), Road::Cold, None)
            }
        };
        self.settings.progress.done();
        let (mut bundle, dual, road) = match told {
            Told::Kept(bundle) => (*bundle, Vec::new(), Road::Memo),
            Told::Made(attempt, road, key) => {
                let bundle = sealed(attempt.draft);
                self.keep(key, &bundle).await;
                (bundle, attempt.dual, road)
            }
        };
        bundle.meta.volatile = Volatile {
            elapsed_ms: Some(u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX)),
            road: Some(road),
            root: Some(self.settings.root.to_string()),
            pid: Some(std::process::id()),
            coordinates: dual,
        };
        bundle
    }

    /// Attempts until one stands: on another ground when the workspace changed, on another server when that failed.
    async fn answer(&self, request: &Request, arrived: Instant) -> Told {
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
                if fresh {
                    return Told::Kept(bundle);
                }
                match self.survey(arrived).await {
                    Ok(now) if Arc::ptr_eq(&now, &ground) => return Told::Kept(bundle),
                    Ok(now) => basis = Some(Basis { ground: now, fresh: true, starting: None }),
                    Err(failure) => return failed(request, failure, None, None, Road::Memo),
                }
                continue;
            }
            let state = match self.resolve(request, &ground).await {
                Ok(state) => state,
                Err(failure) => return failed(request, failure, Some(&ground), None, Road::Cold),
            };
            let mut road = Road::Syntax;
            let attempted = self.attempt(request, &state, starting, setbacks.pristine, &mut road);
            let outcome = if fresh {
                attempted.await
            } else {
                let overtaken = async {
                    tokio::time::sleep(EARLY).await;
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
            match self.check(request, &state, fresh).await {
                Err(failure) => return failed(request, failure, Some(&ground), Some(&state), road),
                Ok(None) => {
                    return match outcome {
                        Ok(attempt) => Told::Made(Box::new(attempt), road, key),
                        Err(failure) => failed(request, failure, Some(&ground), Some(&state), road),
                    };
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

    async fn resolve(&self, request: &Request, ground: &Arc<Ground>) -> Result<Arc<State>, Failure> {
        let (settings, request, ground) = (self.settings.clone(), request.clone(), ground.clone());
        blocking(move || Arc::new(State::take(&settings, &request, ground))).await
    }

    /// One attempt. A selector that leads nowhere is told without waiting for the server, and in the same words whether
    /// there is one or not.
    async fn attempt(
        &self,
        request: &Request,
        state: &State,
        starting: Option<Starting>,
        pristine: bool,
        road: &mut Road,
    ) -> Result<Attempt, Failure> {
        if let Some(error) = state.target_error() {
            return Err(Failure::told(error));
        }
        if !needs_server(request) {
            return Ok(query::located(request, state, &self.settings));
        }
        *road = Road::Cold;
        if let Some(starting) = starting {
            starting.started().await?;
        }
        let access = if pristine { Access::Pristine } else { ask::access(request, state) };
        let kind = Kind::of(request, self.settings.server);
        let server = self.shared.pool.lease(kind, access, &state.ground, &state.files).await?;
        if !server.is_pristine() {
            *road = Road::Warm;
        }
        ask::ask(request, state, &server, &self.settings).await
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
            failure if failure.is_crash() && setbacks.crashes < BACKOFF.len() => {
                tokio::time::sleep(BACKOFF[setbacks.crashes]).await;
                setbacks.crashes += 1;
                true
            }
            failure if failure.is_hang() => {
                // It would keep the next one waiting too. One that was asked before may only be tired.
                self.shared.pool.discard(Kind::of(request, self.settings.server)).await;
                setbacks.hangs += 1;
                road == Road::Warm && setbacks.hangs == 1
            }
            // A server that trips over what it has learned may do better when it has learned nothing.
            Failure::Unclean | Failure::Server(LspError::Server { .. })
                if !setbacks.pristine && road == Road::Warm =>
            {
                setbacks.pristine = true;
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
        let kept = self.shared.memo.is_some() && needs_server(request) && !self.settings.verbose;
        kept.then(|| Key::of(request, ground)).flatten()
    }

    async fn remembered(&self, key: Option<Key>) -> Option<Box<Bundle>> {
        let (key, shared) = (key?, self.shared.clone());
        let found = blocking(move || shared.memo.as_ref().and_then(|memo| memo.get(&key)).map(Box::new));
        found.await.ok().flatten()
    }

    async fn keep(&self, key: Option<Key>, bundle: &Bundle) {
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

/// Whether a language server has to be asked.
fn needs_server(request: &Request) -> bool {
    request.cmd != Command::Locate
}

fn sealed(draft: Draft) -> Bundle {
    let request = draft.request.clone();
    seal(draft).unwrap_or_else(|error| {
        let body = ErrorBody::new(ErrorSymbol::Internal, error.to_string());
        seal(Draft::failed(request, body)).expect("an error is made of texts and small integers")
    })
}

/// Does work that waits for the disk or takes long on a thread of its own.
///
/// The work begins now, not when the result is waited for.
fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> impl Future<Output = Result<T, Failure>> {
    let working = tokio::task::spawn_blocking(work);
    async move {
        // The words of a panic are not repeated: they name a task, and a bundle is the same in every run.
        let failed = |_| Failure::told(ErrorBody::new(ErrorSymbol::Internal, "a part of the work failed"));
        working.await.map_err(failed)
    }
}

/// An attempt that failed, as a bundle with what is known all the same.
fn failed(
    request: &Request,
    failure: Failure,
    ground: Option<&Ground>,
    state: Option<&State>,
    road: Road,
) -> Told {
    let nothing = PathMap::new();
    let paths = ground.map_or(&nothing, |ground| &ground.paths);
    let mut draft = Draft::failed(Some(request.clone()), failure.into_body(paths));
    draft.resolution = state.and_then(|state| state.resolution(request));
    draft.environment = ground.map(|ground| ground.environment.clone());
    Told::Made(Box::new(Attempt { draft, dual: Vec::new() }), road, None)
}
