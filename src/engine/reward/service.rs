//! Scores heads of several bases, many at a time, on servers that are kept for later heads.
//!
//! A base is loaded once and written to one temporary folder. Its servers are equal, and each scores one head at a time. A head
//! that crashes a server, or is not scored within its time, costs only its own score: the server is replaced.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use super::bundle_states::BundleStates;
use super::measure::DiagnosticsByFile;
use super::scorer::{ScoreBase, ScoreHead, Scorer};
use super::scratch_workspace::ScratchTree;
use super::source::{SourceContext, SourceError, StateSource};
use crate::bundle::portable::PathMap;
use crate::engine::blocking::{blocking, blocking_within};
use crate::engine::failure::Failure;
use crate::engine::inputs::InputScanner;
use crate::engine::python_env;
use crate::engine::settings::Settings;
use crate::model::analyzer::AnalyzerKind;
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::reward::RewardFormula;
use crate::reward::episode::Episode;
use crate::workspace::file_tree::FileTree;
use crate::workspace::history::commit_id;

/// How many bases are kept for later heads. Each has its files in memory and on disk.
const MAX_BASES: usize = 4;

/// How long a base is used without looking whether its environment changed.
const ENVIRONMENT_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The memory that a server is assumed to take before one was measured, in bytes.
const EXPECTED_WORKER_BYTES: u64 = 600 << 20;

/// What the servers of a service may use.
#[derive(Debug, Clone, Copy)]
pub struct ScoreLimits {
    /// The most servers at a time.
    pub workers: usize,
    /// The memory that they may use together, in bytes. One server is always allowed.
    pub memory: u64,
}

impl ScoreLimits {
    /// One server.
    #[must_use]
    pub const fn one_worker() -> Self {
        Self { workers: 1, memory: 0 }
    }
}

/// Why a base cannot be opened.
#[derive(Debug, Clone)]
pub enum BaseError {
    /// Its code is not known any more, which is not the caller's error.
    NotKnown(ErrorBody),
    /// Any other reason.
    Failed(ErrorBody),
}

impl BaseError {
    /// The error.
    #[must_use]
    pub fn into_body(self) -> ErrorBody {
        match self {
            Self::NotKnown(error) | Self::Failed(error) => error,
        }
    }
}

/// An open base.
pub struct BaseHandle {
    base: Arc<ScoreBase>,
    /// The state that the caller named.
    source: StateSource,
}

/// Scores heads, many at a time. Clones share the servers.
#[derive(Clone)]
pub struct ScoreService {
    settings: Arc<Settings>,
    limits: ScoreLimits,
    /// The bases, the most recently used last. Locked while one is loaded, so that it is loaded once.
    bases: Arc<tokio::sync::Mutex<VecDeque<OpenBase>>>,
    workers: Arc<ScoreWorkers>,
    /// Scans the workspace for the code of bundles.
    scanner: Arc<InputScanner>,
}

/// A base that is kept for later heads.
struct OpenBase {
    /// The commit, if the base is a revision.
    commit: Option<String>,
    base: Arc<ScoreBase>,
    /// When its environment was known to be unchanged.
    checked: Instant,
}

/// The servers of all bases.
#[derive(Default)]
struct ScoreWorkers {
    state: Mutex<ScoreWorkersState>,
    /// Notified when a server or its place is free.
    changed: Notify,
}

#[derive(Default)]
struct ScoreWorkersState {
    idle: Vec<Scorer>,
    busy: usize,
    /// The most memory that a server used, in bytes; 0 before one was measured.
    largest: u64,
    is_closed: bool,
}

impl ScoreService {
    /// A service without servers. [`Self::close`] stops those that it starts.
    #[must_use]
    pub fn new(settings: Settings, limits: ScoreLimits) -> Self {
        let settings = Arc::new(settings);
        let scanner = Arc::new(InputScanner::new(&settings, false));
        Self { settings, limits, bases: Arc::default(), workers: Arc::default(), scanner }
    }

    /// Loads a base, unless it is open.
    ///
    /// # Errors
    /// If it does not exist or cannot be read.
    pub async fn open(&self, base: &StateSource, with: &[AnalyzerKind]) -> Result<BaseHandle, BaseError> {
        let failed = |failure: Failure| {
            BaseError::Failed(failure.into_body(&PathMap::new().workspace(self.settings.root.clone())))
        };
        let handle = |opened: Arc<ScoreBase>| BaseHandle { base: opened, source: base.clone() };
        let mut bases = self.bases.lock().await;
        let commit = match base {
            StateSource::Revision(name) => {
                let (root, name) = (self.settings.root.clone(), name.clone());
                let found = blocking_within(self.settings.timeout, move || commit_id(&root, &name));
                // An error is reported by the attempt to load it.
                found.await.map_err(failed)?.ok()
            }
            _ => None,
        };
        let is_same =
            |open: &OpenBase| open.commit.is_some() && open.commit == commit && open.base.with == with;
        if let Some(at) = bases.iter().position(is_same)
            && let Some(open) = bases.remove(at)
        {
            return self.reopen(&mut bases, open).await.map(handle).map_err(failed);
        }
        let tree = self.load(base).await?;
        let is_same = |open: &OpenBase| open.base.with == with && *open.base.tree == tree;
        if let Some(at) = bases.iter().position(is_same)
            && let Some(open) = bases.remove(at)
        {
            return self.reopen(&mut bases, OpenBase { commit, ..open }).await.map(handle).map_err(failed);
        }
        self.add(&mut bases, commit, Arc::new(tree), with.to_vec()).await.map(handle).map_err(failed)
    }

    /// A base that was used before, loaded again if its environment changed.
    async fn reopen(
        &self,
        bases: &mut VecDeque<OpenBase>,
        mut open: OpenBase,
    ) -> Result<Arc<ScoreBase>, Failure> {
        if open.checked.elapsed() > ENVIRONMENT_CHECK_INTERVAL {
            let settings = with_interpreter(&self.settings).await?;
            if settings.python != open.base.settings.python || !open.base.scratch.is_current().await? {
                let OpenBase { commit, base, .. } = open;
                self.retire(&base).await;
                return self.add(bases, commit, base.tree.clone(), base.with.clone()).await;
            }
            open.checked = Instant::now();
        }
        let base = open.base.clone();
        bases.push_back(open);
        Ok(base)
    }

    async fn add(
        &self,
        bases: &mut VecDeque<OpenBase>,
        commit: Option<String>,
        tree: Arc<FileTree>,
        with: Vec<AnalyzerKind>,
    ) -> Result<Arc<ScoreBase>, Failure> {
        let settings = with_interpreter(&self.settings).await?;
        let scratch = Arc::new(ScratchTree::write(&settings, &tree).await?);
        let known = Mutex::new(DiagnosticsByFile::new());
        let is_retired = AtomicBool::new(false);
        let base = Arc::new(ScoreBase { settings, tree, scratch, known, with, is_retired });
        while bases.len() >= MAX_BASES
            && let Some(oldest) = bases.pop_front()
        {
            self.retire(&oldest.base).await;
        }
        bases.push_back(OpenBase { commit, base: base.clone(), checked: Instant::now() });
        Ok(base)
    }

    /// Stops the idle servers of a base. Those in use are stopped when their heads are scored.
    async fn retire(&self, base: &Arc<ScoreBase>) {
        base.is_retired.store(true, Ordering::Relaxed);
        self.workers.discard(|worker| Arc::ptr_eq(&worker.base, base)).await;
    }

    /// The files of a base.
    async fn load(&self, base: &StateSource) -> Result<FileTree, BaseError> {
        let failed = |failure: Failure| {
            BaseError::Failed(failure.into_body(&PathMap::new().workspace(self.settings.root.clone())))
        };
        let context = self.source_context(base).await.map_err(failed)?;
        let source = base.clone();
        let loaded = blocking_within(self.settings.timeout, move || source.tree(&context, None));
        match loaded.await.map_err(failed)? {
            Ok(tree) => Ok(tree),
            Err(SourceError::NotLoaded(error)) if matches!(base, StateSource::Bundle(_)) => {
                Err(BaseError::NotKnown(error))
            }
            Err(SourceError::NotLoaded(error)) => Err(BaseError::Failed(error)),
            Err(SourceError::DoesNotApply(why)) => {
                Err(BaseError::Failed(ErrorBody::new(ErrorSymbol::Usage, why)))
            }
        }
    }

    /// Where a state is searched.
    async fn source_context(&self, source: &StateSource) -> Result<SourceContext, Failure> {
        let bundle_states = match source {
            StateSource::Bundle(_) => {
                let inputs = self.scanner.scan_since(Instant::now(), &self.settings, None).await?;
                Some(BundleStates::new(&self.settings, inputs))
            }
            _ => None,
        };
        Ok(SourceContext { root: self.settings.root.clone(), bundle_states })
    }

    /// Starts a server for a base, unless one is running.
    ///
    /// # Errors
    /// If no server is available.
    pub async fn warm_up(&self, base: &BaseHandle) -> Result<(), ErrorBody> {
        let into_body =
            |failure: Failure| failure.into_body(&PathMap::new().workspace(self.settings.root.clone()));
        let mut worker = self.acquire(base).await.map_err(into_body)?;
        worker.scorer().scratch.ready().await.map_err(into_body)?;
        worker.is_finished = true;
        Ok(())
    }

    /// Scores one head, within `timeout` from when it has a server.
    pub async fn score(
        &self,
        base: &BaseHandle,
        head: &ScoreHead,
        terms: &RewardFormula,
        timeout: Option<Duration>,
    ) -> Episode {
        let failed = |error: ErrorBody| Episode::failed(&head.name, error, None, terms);
        let into_body =
            |failure: Failure| failure.into_body(&PathMap::new().workspace(self.settings.root.clone()));
        let mut worker = match self.acquire(base).await {
            Ok(worker) => worker,
            Err(failure) => return failed(into_body(failure)),
        };
        let scoring = async {
            let context = self.source_context(&head.source).await.map_err(into_body)?;
            let scorer = worker.scorer();
            for source in [&base.source, &head.source] {
                scorer.check_environment(source).await?;
            }
            scorer.episode(head, &context, terms).await
        };
        let scored = match timeout {
            None => scoring.await,
            Some(limit) => match tokio::time::timeout(limit, scoring).await {
                Ok(scored) => scored,
                // The server is in the middle of this head; the guard replaces it.
                Err(_) => return failed(too_slow(limit)),
            },
        };
        worker.is_finished = true;
        scored.unwrap_or_else(failed)
    }

    /// A server for a base, as soon as one is free or another one may be started.
    async fn acquire(&self, base: &BaseHandle) -> Result<ScorerGuard, Failure> {
        let discarded = loop {
            let mut changed = pin!(self.workers.changed.notified());
            // A change between here and the wait is noticed.
            changed.as_mut().enable();
            {
                let mut state = self.workers.state();
                let suits = |worker: &Scorer| Arc::ptr_eq(&worker.base, &base.base);
                if let Some(at) = state.idle.iter().position(suits) {
                    let scorer = state.idle.swap_remove(at);
                    state.busy += 1;
                    return Ok(ScorerGuard::new(&self.workers, Some(scorer)));
                }
                let allowed = self.allowed(state.largest);
                if state.busy < allowed {
                    // Idle servers of other bases make room.
                    let excess = (state.busy + state.idle.len() + 1).saturating_sub(allowed);
                    let discarded: Vec<Scorer> = state.idle.drain(..excess).collect();
                    state.busy += 1;
                    break discarded;
                }
            }
            changed.await;
        };
        let mut guard = ScorerGuard::new(&self.workers, None);
        for scorer in discarded {
            scorer.scratch.close().await;
        }
        guard.scorer = Some(Scorer::new(base.base.clone()).await?);
        Ok(guard)
    }

    /// How many servers may run, given what the largest one used.
    fn allowed(&self, largest: u64) -> usize {
        let each = if largest == 0 { EXPECTED_WORKER_BYTES } else { largest };
        let fitting = usize::try_from(self.limits.memory / each).unwrap_or(usize::MAX);
        self.limits.workers.min(fitting).max(1)
    }

    /// Stops the servers. Heads that still use one get no score.
    pub async fn close(&self) {
        self.workers.state().is_closed = true;
        self.workers.discard(|_| true).await;
        self.bases.lock().await.clear();
    }
}

impl ScoreWorkers {
    fn state(&self) -> MutexGuard<'_, ScoreWorkersState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stops the idle servers for which a condition holds.
    async fn discard(&self, condition: impl Fn(&Scorer) -> bool) {
        let discarded: Vec<Scorer> = {
            let mut state = self.state();
            let (discarded, kept) = std::mem::take(&mut state.idle).into_iter().partition(condition);
            state.idle = kept;
            discarded
        };
        for scorer in discarded {
            scorer.scratch.close().await;
        }
    }
}

/// Use of a server, which is given back on drop.
struct ScorerGuard {
    workers: Arc<ScoreWorkers>,
    scorer: Option<Scorer>,
    /// Whether nothing is left of the last head on the server.
    is_finished: bool,
}

impl ScorerGuard {
    fn new(workers: &Arc<ScoreWorkers>, scorer: Option<Scorer>) -> Self {
        Self { workers: workers.clone(), scorer, is_finished: false }
    }

    fn scorer(&mut self) -> &mut Scorer {
        self.scorer.as_mut().expect("it is only taken on drop")
    }
}

impl Drop for ScorerGuard {
    fn drop(&mut self) {
        let memory = self.scorer.as_ref().and_then(|scorer| scorer.scratch.memory());
        let is_retired =
            self.scorer.as_ref().is_some_and(|scorer| scorer.base.is_retired.load(Ordering::Relaxed));
        if let Some(scorer) = &mut self.scorer
            && (is_retired || !self.is_finished || scorer.scratch.exceeds_memory_limit())
        {
            scorer.scratch.discard_server();
        }
        let mut state = self.workers.state();
        state.busy -= 1;
        state.largest = state.largest.max(memory.unwrap_or_default());
        if !state.is_closed && !is_retired {
            state.idle.extend(self.scorer.take());
        }
        drop(state);
        self.workers.changed.notify_waiters();
    }
}

fn too_slow(limit: Duration) -> ErrorBody {
    let message = format!("the head was not scored within {} s", limit.as_secs());
    ErrorBody::new(ErrorSymbol::LsTimeout, message).hint("increase the limit with \"timeout\": SECONDS")
}

/// The settings with the interpreter of the workspace's own environment: in a copy elsewhere the search would find
/// another one.
pub(super) async fn with_interpreter(settings: &Settings) -> Result<Settings, Failure> {
    let own = settings.clone();
    let found = blocking(move || python_env::find(&own, &python_env::environment_cache(&own)))
        .await?
        .map_err(Failure::reported)?;
    let interpreter = found.0.map(|python| python.interpreter);
    Ok(Settings { python: interpreter.or_else(|| settings.python.clone()), ..settings.clone() })
}
