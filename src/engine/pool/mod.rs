//! The running servers of a workspace, and access to them.
//!
//! A [`Worker`] is synced to one set of inputs ([`Inputs`]). A request acquires a [`WorkerGuard`], for which the
//! worker is synced to the request's inputs: by announcing changed contents, or by a restart where announcing them
//! would not give the answers of a fresh server (see [`Inputs::sync_action_to`]).
//!
//! What Pyright infers can depend on earlier requests. So a request whose answer depends on inferred types has a
//! worker exclusively and with no inferred types ([`Isolation::Reset`]). The definition of a name that depends on
//! none (see [`crate::python::meaning`]) runs concurrently with others, on whatever is inferred
//! ([`Isolation::Shared`]). A worker is reset when an exclusive request ends, so that the next one need not wait for
//! it.
//!
//! Responses to exclusive requests are cached as long as the inputs are the same (see [`kept`]).
//!
//! Each reset costs the shared requests the types that they made the server infer. So exclusive requests wait for a
//! while until no shared request is left, and then run one after the other (see [`turns`]). Where there are many,
//! they get a second worker (see [`second_worker`]).

mod guard;
mod kept;
mod second_worker;
mod turns;
mod worker;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};
use tokio::task::JoinHandle;

pub(super) use guard::WorkerGuard;
use guard::WorkerLock;
pub(super) use kept::Held;
use kept::{Kept, is_kept};
use second_worker::SecondWorker;
use turns::Turns;
use worker::{Worker, WorkerUsage};

use super::Settings;
use super::failure::Failure;
use super::inputs::{Inputs, Tools};
use super::report::RunningServers;
use super::server::Server;
use crate::digest::Digest;
use crate::lsp::{Memory, Profile};
use crate::model::request::{Command, Request, Scope};
use crate::model::server::ServerKind;
use crate::path::AbsPath;
use crate::tape::Tape;
use crate::workspace::files::DiskFiles;

/// How many workers are kept for later requests.
const MAX_IDLE_WORKERS: usize = 2;

/// What a worker is for. Workers of different kinds are different processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct WorkerKind {
    /// Whether it pulls diagnostics: some servers can do that only when cancellation by files is off (see
    /// [`crate::lsp::Profile::pulls_when_cancellable`]).
    pub(super) pulls: bool,
    /// Whether it is shown only the files that the server's configuration includes: if it was shown more, it would
    /// find uses in them.
    configured: bool,
    /// Whether it is the second worker of an otherwise equal kind.
    second: bool,
}

impl WorkerKind {
    /// The kind that most requests need.
    pub(super) const fn usual() -> Self {
        Self { pulls: false, configured: false, second: false }
    }

    /// The kind that a request needs.
    pub(super) fn of(request: &Request, server: ServerKind) -> Self {
        Self {
            pulls: (request.cmd == Command::Diagnostics || request.cmd.edits())
                && !Profile::of(server).pulls_when_cancellable,
            configured: request.options.scope == Scope::Configured,
            second: false,
        }
    }
}

/// What a request needs from a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Isolation {
    /// Run concurrently with other requests, on the types that they made the server infer.
    Shared,
    /// Run exclusively, with no inferred types.
    Reset,
    /// Run exclusively, with no inferred types, on a worker that was started with these inputs and never synced to
    /// others. Pyright 1.1.414, after an announcement of changed files and then shown edited ones, gave answers about
    /// a file that were true before the change.
    NeverSynced,
    /// Run exclusively, on a worker that has served no request.
    Fresh,
}

/// The workers of one workspace, at most one of each kind.
pub(super) struct Pool {
    settings: Arc<Settings>,
    slots: Mutex<BTreeMap<WorkerKind, Arc<WorkerSlot>>>,
    /// Counts requests of all kinds.
    clock: AtomicU64,
    /// Whether workers are kept for later requests.
    keep_workers: bool,
    /// Whether many requests run at a time.
    is_batch: bool,
    second: SecondWorker,
    kept: Kept,
}

type WorkerCell = RwLock<Option<Worker>>;

#[derive(Debug)]
struct WorkerSlot {
    worker: Arc<WorkerCell>,
    /// Counts requests, to notice when there was none for a while.
    requests: AtomicU64,
    /// The pool's clock at the last request.
    last_use: AtomicU64,
    /// Lets shared requests run before exclusive ones.
    turns: Arc<Turns>,
}

impl WorkerSlot {
    fn new(is_batch: bool) -> Self {
        let (requests, last_use) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { worker: Arc::default(), requests, last_use, turns: Arc::new(Turns::new(is_batch)) }
    }
}

impl Pool {
    /// An empty pool. `keep_workers`: workers are kept for later requests; `is_batch`: many requests will run at a
    /// time.
    pub(super) fn new(settings: Arc<Settings>, keep_workers: bool, is_batch: bool) -> Self {
        let (slots, clock, second) = (Mutex::default(), AtomicU64::new(0), SecondWorker::new(is_batch));
        Self { settings, slots, clock, keep_workers, is_batch, second, kept: Kept::default() }
    }

    fn slot(&self, kind: WorkerKind) -> Arc<WorkerSlot> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots.entry(kind).or_insert_with(|| Arc::new(WorkerSlot::new(self.is_batch))).clone()
    }

    /// Starts a worker of this kind, unless one is running. The start runs in the background; dropping the result
    /// stops it.
    pub(super) fn start(&self, kind: WorkerKind, tools: &Tools) -> StartingWorker {
        let (slot, settings, tools) = (self.slot(kind), self.settings.clone(), tools.clone());
        let task = tokio::spawn(async move {
            let mut entry = slot.worker.write().await;
            if entry.as_ref().is_none_or(|worker| !worker.server.client.is_alive()) {
                *entry = Some(Worker::start(&settings, kind, &tools).await?);
            }
            Ok(())
        });
        StartingWorker { task, slot: self.slot(kind), keep: false }
    }

    /// Starts a worker of this kind that is synced to `inputs`, unless one is running.
    pub(super) async fn warm_up(&self, kind: WorkerKind, inputs: &Arc<Inputs>) -> Result<(), Failure> {
        let slot = self.slot(kind);
        // A locked worker is in use, so it is running.
        let Ok(mut entry) = slot.worker.try_write() else { return Ok(()) };
        if entry.as_ref().is_none_or(|worker| !worker.is_usable(&self.settings)) {
            self.evict_idle_workers(kind);
            *entry = Some(Worker::start_with(&self.settings, kind, inputs).await?);
        }
        Ok(())
    }

    /// Adopts a running server that is synced to `inputs`.
    pub(super) async fn adopt(&self, kind: WorkerKind, server: Server, inputs: &Arc<Inputs>) {
        let worker = Worker::new(server, Some(inputs.clone()));
        *self.slot(kind).worker.write().await = Some(worker);
    }

    /// Stops workers of other kinds when there are too many, the least recently used first; those in use stay.
    fn evict_idle_workers(&self, kind: WorkerKind) {
        let slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let mut others: Vec<_> = slots.iter().filter(|(other, _)| **other != kind).collect();
        others.sort_by_key(|(_, slot)| slot.last_use.load(Ordering::Relaxed));
        // A locked worker is in use.
        let runs = |slot: &WorkerSlot| slot.worker.try_read().map_or(true, |worker| worker.is_some());
        let mut running = others.iter().filter(|(_, slot)| runs(slot)).count();
        for (_, slot) in others {
            if running >= MAX_IDLE_WORKERS + self.second.extra_workers()
                && let Ok(mut entry) = slot.worker.try_write()
                && let Some(worker) = entry.take()
            {
                tokio::spawn(worker.server.stop());
                running -= 1;
            }
        }
    }

    /// A guard that gives the cached responses to the same request under the same inputs, and the files outside the
    /// workspace with which the answer was made; `None` when there are none.
    pub(super) async fn recall(
        &self,
        kind: WorkerKind,
        request: &Request,
        inputs: &Arc<Inputs>,
    ) -> Option<(WorkerGuard, Arc<BTreeMap<AbsPath, Option<Digest>>>)> {
        let held = is_kept(request).then(|| self.kept.get(kind, request, inputs)).flatten()?;
        let slot = self.slot(held.kind);
        let entry = slot.worker.clone().read_owned().await;
        let is_current = |worker: &&Worker| {
            let is_same = worker.identity == held.server && worker.is_synced_to(inputs);
            is_same && worker.is_usable(&self.settings) && worker.server.client.is_ready()
        };
        let worker =
            OwnedRwLockReadGuard::try_map(entry, |worker| worker.as_ref().filter(is_current)).ok()?;
        slot.last_use.store(self.clock.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        let memory = Memory::Saying(held.conversation);
        Some((self.new_guard(slot, held.kind, WorkerLock::Cached(worker), memory, held.pristine), held.read))
    }

    /// Caches the responses to a request.
    pub(super) fn keep(&self, kind: WorkerKind, request: &Request, inputs: &Arc<Inputs>, held: Held) {
        self.kept.put(kind, request, inputs, held);
    }

    /// Removes the cached responses to a request.
    pub(super) fn forget(&self, kind: WorkerKind, request: &Request) {
        self.kept.forget(kind, request);
    }

    /// Acquires a worker that is synced to `inputs`, for one request.
    pub(super) async fn acquire(
        &self,
        kind: WorkerKind,
        isolation: Isolation,
        inputs: &Arc<Inputs>,
        files: &DiskFiles,
    ) -> Result<WorkerGuard, Failure> {
        match isolation {
            Isolation::Shared => self.acquire_shared(kind, inputs, files).await,
            Isolation::Reset | Isolation::NeverSynced | Isolation::Fresh => {
                self.acquire_exclusive(kind, isolation, inputs, files).await
            }
        }
    }

    async fn acquire_shared(
        &self,
        kind: WorkerKind,
        inputs: &Arc<Inputs>,
        files: &DiskFiles,
    ) -> Result<WorkerGuard, Failure> {
        let slot = self.record_request(kind);
        let shares = slot.turns.share();
        loop {
            let entry = slot.worker.clone().read_owned().await;
            let synced = OwnedRwLockReadGuard::try_map(entry, |worker| {
                worker
                    .as_ref()
                    .filter(|worker| worker.is_usable(&self.settings) && worker.is_synced_to(inputs))
            });
            match synced {
                Ok(worker) => {
                    return Ok(self.guard(slot, kind, WorkerLock::Shared { worker, _shares: shares }));
                }
                // The write lock is needed to sync the worker.
                Err(entry) => drop(entry),
            }
            let mut entry = slot.worker.clone().write_owned().await;
            self.ensure_synced(&mut entry, kind, Isolation::Shared, inputs, files).await?;
        }
    }

    async fn acquire_exclusive(
        &self,
        kind: WorkerKind,
        isolation: Isolation,
        inputs: &Arc<Inputs>,
        files: &DiskFiles,
    ) -> Result<WorkerGuard, Failure> {
        let kind = self.choose_kind(kind, isolation, inputs);
        let slot = self.record_request(kind);
        slot.turns.nobody_shares().await;
        let mut entry = slot.worker.clone().write_owned().await;
        self.ensure_synced(&mut entry, kind, isolation, inputs, files).await?;
        let worker = OwnedRwLockWriteGuard::map(entry, |worker| {
            worker.as_mut().expect("ensure_synced has filled the slot")
        });
        let reset = worker.usage().since_reset;
        if reset {
            worker.server.client.reset_inferred_types()?;
        }
        Ok(self.guard(slot, kind, WorkerLock::Exclusive(worker)))
    }

    /// Counts a request in its slot.
    fn record_request(&self, kind: WorkerKind) -> Arc<WorkerSlot> {
        let slot = self.slot(kind);
        slot.requests.fetch_add(1, Ordering::Relaxed);
        slot.last_use.store(self.clock.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        slot
    }

    /// Makes sure that the slot has a worker that is synced to `inputs`; restarts it if necessary.
    async fn ensure_synced(
        &self,
        entry: &mut Option<Worker>,
        kind: WorkerKind,
        isolation: Isolation,
        inputs: &Arc<Inputs>,
        files: &DiskFiles,
    ) -> Result<(), Failure> {
        let can_stay = match entry.as_mut() {
            Some(worker) if isolation == Isolation::Fresh && worker.usage().any => false,
            Some(worker)
                if isolation == Isolation::NeverSynced && worker.started_with_other_inputs(inputs) =>
            {
                false
            }
            Some(worker) => worker.is_usable(&self.settings) && worker.sync_to(inputs, files)?,
            None => false,
        };
        if !can_stay {
            let old = entry.take();
            let successor_identity =
                old.as_ref().filter(|old| old.is_synced_to(inputs) && old.is_responsive());
            let successor_identity = successor_identity.map(|old| old.identity.clone());
            if let Some(old) = old {
                tokio::spawn(old.server.stop());
            }
            self.evict_idle_workers(kind);
            let worker = Worker::start_with(&self.settings, kind, inputs).await?;
            *entry = Some(match successor_identity {
                Some(identity) => Worker { identity, ..worker },
                None => worker,
            });
        }
        Ok(())
    }

    fn guard(&self, slot: Arc<WorkerSlot>, kind: WorkerKind, lock: WorkerLock) -> WorkerGuard {
        let used = WorkerUsage { any: true, since_reset: true };
        let before = std::mem::replace(&mut *lock.worker().usage(), used);
        self.new_guard(slot, kind, lock, Memory::Off, !before.any)
    }

    fn new_guard(
        &self,
        slot: Arc<WorkerSlot>,
        kind: WorkerKind,
        lock: WorkerLock,
        memory: Memory,
        fresh: bool,
    ) -> WorkerGuard {
        WorkerGuard {
            kind,
            lock: Some(lock),
            slot,
            used: Mutex::default(),
            keep_workers: self.keep_workers,
            fresh,
            is_finished: AtomicBool::new(false),
            settings: self.settings.clone(),
            tape: Tape::off(),
            memory,
        }
    }

    /// The running workers, except those that are in exclusive use.
    pub(super) fn report(&self) -> RunningServers {
        let slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let report = |slot: &Arc<WorkerSlot>| {
            let entry = slot.worker.try_read().ok()?;
            entry.as_ref().filter(|worker| worker.server.client.is_alive()).map(Worker::report)
        };
        RunningServers { servers: slots.values().filter_map(report).collect() }
    }

    /// Stops the workers. Requests that still use one get no answer.
    pub(super) async fn close(&self) {
        self.kept.clear();
        self.second.abort_start().await;
        let slots = std::mem::take(&mut *self.slots.lock().unwrap_or_else(PoisonError::into_inner));
        for slot in slots.into_values() {
            // One in use stops when its guard is dropped.
            if let Ok(mut entry) = slot.worker.try_write()
                && let Some(worker) = entry.take()
            {
                worker.server.stop().await;
            }
        }
    }
}

/// A worker that is being started.
#[derive(Debug)]
pub(super) struct StartingWorker {
    task: JoinHandle<Result<(), Failure>>,
    slot: Arc<WorkerSlot>,
    /// Whether the worker stays when this is dropped.
    keep: bool,
}

impl StartingWorker {
    /// Waits until the worker has started.
    pub(super) async fn wait(&mut self) -> Result<(), Failure> {
        // A failed task has panicked: then no worker is running, and the next request starts one.
        (&mut self.task).await.unwrap_or(Ok(()))
    }

    /// Keeps the worker.
    pub(super) fn keep(mut self) {
        self.keep = true;
    }
}

impl Drop for StartingWorker {
    fn drop(&mut self) {
        if self.keep {
            return;
        }
        self.task.abort();
        // A worker that has started may have enumerated files that are out of date by the next request.
        let slot = self.slot.clone();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                let mut entry = slot.worker.write().await;
                entry.take_if(|worker| worker.inputs.is_none());
            });
        }
    }
}
