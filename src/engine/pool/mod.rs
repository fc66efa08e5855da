//! The running servers of a workspace, and access to them.
//!
//! A [`Worker`] is synced to one set of inputs ([`Inputs`]). A request acquires a [`WorkerGuard`], for which the
//! worker is synced to the request's inputs: by announcing changed contents, or by a restart where announcing them
//! would not give the answers of a fresh server (see [`Inputs::sync_action_to`]).
//!
//! What Pyright infers can depend on earlier requests. So a request whose answer depends on inferred types has a
//! worker exclusively and with no inferred types ([`Isolation::Reset`]); others run concurrently, on whatever is
//! inferred ([`Isolation::Shared`], see [`super::order_dependence`]). A worker is reset when an exclusive request
//! ends, so that the next one need not wait for it.
//!
//! Workers of a kind are equal ([`slots`]). In a batch, a second one is started when many requests had to wait.

mod guard;
mod slots;
mod worker;

use std::num::NonZeroUsize;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::task::JoinHandle;

pub(super) use guard::WorkerGuard;
use slots::{IdleSlot, TakenSlot, WorkerSlots, WorkerState};
use worker::Worker;

use super::failure::Failure;
use super::inputs::{Inputs, Tools};
use super::report::RunningServers;
use super::server::Server;
use super::settings::Settings;
use crate::lsp::Profile;
use crate::model::request::{Command, Request, Scope};
use crate::model::server::ServerKind;
use crate::workspace::files::DiskFiles;

/// How many workers are kept for later requests, besides additional ones of the same kind.
const MAX_WORKERS: usize = 2;

/// The most workers of one kind in a batch. Each takes hundreds of megabytes.
const MAX_WORKERS_OF_A_KIND: usize = 2;

/// How many requests have to wait for a worker before another one is started. A start takes some seconds of processor
/// time, and a request some 20 ms, so that it only pays if more requests are likely.
const START_THRESHOLD: usize = 24;

/// What a worker is for. Workers of different kinds are different processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct WorkerKind {
    /// Whether it pulls diagnostics: some servers can do that only when cancellation by files is off (see
    /// [`crate::lsp::Profile::pulls_when_cancellable`]).
    pub(super) pulls: bool,
    /// Whether it is shown only the files that the server's configuration includes: if it was shown more, it would
    /// find uses in them.
    configured: bool,
}

impl WorkerKind {
    /// The kind that most requests need.
    pub(super) const fn usual() -> Self {
        Self { pulls: false, configured: false }
    }

    /// The kind that a request needs.
    pub(super) fn of(request: &Request, server: ServerKind) -> Self {
        Self {
            pulls: (request.cmd == Command::Diagnostics || request.cmd.edits())
                && !Profile::of(server).pulls_when_cancellable,
            configured: request.options.scope == Scope::Configured,
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

/// The workers of one workspace.
pub(super) struct Pool {
    workers: Arc<Workers>,
    /// The tasks that start workers.
    starts: Mutex<Vec<JoinHandle<()>>>,
    /// How many requests had to wait for a worker.
    waits: AtomicUsize,
    /// The most workers of one kind.
    limit: usize,
}

/// The workers, shared with the guards that give them back.
struct Workers {
    settings: Arc<Settings>,
    slots: Mutex<WorkerSlots<Worker>>,
    /// Notified when a waiting request may have its turn.
    changed: Notify,
    /// Whether workers are kept for later requests.
    keep_workers: bool,
}

impl Workers {
    fn slots(&self) -> MutexGuard<'_, WorkerSlots<Worker>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The worker in a taken slot is ready for its user.
    fn ready(&self, id: u64, worker: &Arc<Worker>, state: WorkerState, is_exclusive: bool) {
        self.slots().ready(id, worker, state, is_exclusive);
        if !is_exclusive {
            self.changed.notify_waiters();
        }
    }

    /// Gives a slot back. Returns it if it is idle now.
    fn release(&self, id: u64) -> Option<IdleSlot> {
        let (idle, dead) = self.slots().release(id);
        self.changed.notify_waiters();
        stop(dead);
        idle
    }

    /// Removes the idle worker of a slot if the condition holds.
    fn remove_if(&self, id: u64, condition: impl Fn(&Worker) -> bool) -> Option<Arc<Worker>> {
        let removed = self.slots().remove_if(id, condition);
        self.changed.notify_waiters();
        removed
    }

    async fn start(
        &self,
        kind: WorkerKind,
        tools: &Tools,
        inputs: Option<&Arc<Inputs>>,
    ) -> Result<Arc<Worker>, Failure> {
        Ok(Arc::new(Worker::start(&self.settings, kind, tools, inputs).await?))
    }
}

/// Stops unused workers in the background.
fn stop(workers: impl IntoIterator<Item = Arc<Worker>>) {
    let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
    for worker in workers.into_iter().filter_map(Arc::into_inner) {
        runtime.spawn(worker.server.stop());
    }
}

/// A slot that was taken and is given back on drop.
struct Reservation {
    workers: Arc<Workers>,
    id: u64,
    is_released: bool,
}

impl Reservation {
    fn new(workers: &Arc<Workers>, id: u64) -> Self {
        Self { workers: workers.clone(), id, is_released: false }
    }

    /// Gives the slot back. Returns it if it is idle now.
    fn release(mut self) -> Option<IdleSlot> {
        self.is_released = true;
        self.workers.release(self.id)
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if !self.is_released {
            self.workers.release(self.id);
        }
    }
}

/// A request that may have to wait, until it is dropped.
struct Ticket<'p> {
    workers: &'p Workers,
    kind: WorkerKind,
    number: u64,
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        if self.workers.slots().stop_waiting(self.kind, self.number) {
            self.workers.changed.notify_waiters();
        }
    }
}

impl Pool {
    /// An empty pool. `keep_workers`: workers are kept for later requests; `is_batch`: many requests will run at a
    /// time.
    pub(super) fn new(settings: Arc<Settings>, keep_workers: bool, is_batch: bool) -> Self {
        // Counting processors reads system files, so do it only if necessary.
        let processors = || std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let limit = if is_batch { processors().min(MAX_WORKERS_OF_A_KIND) } else { 1 };
        let slots = Mutex::default();
        let workers = Arc::new(Workers { settings, slots, changed: Notify::new(), keep_workers });
        Self { workers, starts: Mutex::default(), waits: AtomicUsize::new(0), limit }
    }

    /// Starts a worker of this kind, unless one is running. The start runs in the background; dropping the result
    /// stops it, and the worker if no request has used it.
    pub(super) fn start(&self, kind: WorkerKind, tools: &Tools) -> StartingWorker {
        let mut slots = self.workers.slots();
        let reservation = (slots.count(kind) == 0).then(|| Reservation::new(&self.workers, slots.add(kind)));
        drop(slots);
        let (tools, id) = (tools.clone(), reservation.as_ref().map(|reservation| reservation.id));
        let task = tokio::spawn(async move {
            let Some(reservation) = reservation else { return Ok(()) };
            let workers = &reservation.workers;
            let worker = workers.start(kind, &tools, None).await?;
            workers.ready(reservation.id, &worker, WorkerState::Clean, true);
            Ok(())
        });
        StartingWorker { task, workers: self.workers.clone(), id }
    }

    /// Starts a worker of this kind that is synced to `inputs`, unless one is running.
    pub(super) async fn warm_up(&self, kind: WorkerKind, inputs: &Arc<Inputs>) -> Result<(), Failure> {
        let reservation = {
            let mut slots = self.workers.slots();
            if slots.count(kind) > 0 {
                return Ok(());
            }
            Reservation::new(&self.workers, slots.add(kind))
        };
        let worker = self.start_synced(kind, inputs).await?;
        self.workers.ready(reservation.id, &worker, WorkerState::Clean, true);
        Ok(())
    }

    async fn start_synced(&self, kind: WorkerKind, inputs: &Arc<Inputs>) -> Result<Arc<Worker>, Failure> {
        self.evict(kind);
        self.workers.start(kind, &inputs.tools, Some(inputs)).await
    }

    /// Adopts a running server that is synced to `inputs`.
    pub(super) fn adopt(&self, kind: WorkerKind, server: Server, inputs: &Arc<Inputs>) {
        let id = self.workers.slots().add(kind);
        let worker = Arc::new(Worker::new(server, Some(inputs.clone())));
        self.workers.ready(id, &worker, WorkerState::Clean, true);
        drop(worker);
        self.workers.release(id);
    }

    /// Stops idle workers of other kinds when there are too many, the least recently used first.
    fn evict(&self, kind: WorkerKind) {
        // The slot of the worker that is about to start counts.
        let evicted = self.workers.slots().evict(kind, MAX_WORKERS + self.limit);
        stop(evicted);
    }

    /// Acquires a worker that is synced to `inputs`, for one request.
    pub(super) async fn acquire(
        &self,
        kind: WorkerKind,
        isolation: Isolation,
        inputs: &Arc<Inputs>,
        files: &DiskFiles,
    ) -> Result<WorkerGuard, Failure> {
        let number = self.workers.slots().ticket();
        let ticket = Ticket { workers: &self.workers, kind, number };
        let suits = |worker: &Worker| {
            worker.is_usable(&self.workers.settings)
                && worker.is_synced_to(inputs)
                && worker.allows(isolation, inputs)
        };
        let taken = loop {
            let mut changed = pin!(self.workers.changed.notified());
            // A change between here and the wait is noticed.
            changed.as_mut().enable();
            let is_new = {
                let mut slots = self.workers.slots();
                if let Some(taken) = slots.take(kind, isolation, number, suits) {
                    break taken;
                }
                slots.wait(kind, number)
            };
            // Those who share are served by one worker.
            if is_new && isolation != Isolation::Shared {
                self.start_another_if_worthwhile(kind, inputs);
            }
            changed.await;
        };
        drop(ticket);
        let reservation = Reservation::new(&self.workers, taken.id);
        let is_shared = isolation == Isolation::Shared;
        let existing = self.workers.slots().worker(taken.id);
        let worker = match existing {
            Some(worker) if taken.is_joined => worker,
            existing => {
                let kept = match existing {
                    Some(worker) => self.sync(worker, isolation, taken, inputs, files)?,
                    None => None,
                };
                let worker = match kept {
                    Some(worker) => worker,
                    None => self.start_synced(kind, inputs).await?,
                };
                self.workers.ready(taken.id, &worker, WorkerState::Dirty, !is_shared);
                worker
            }
        };
        Ok(WorkerGuard::new(reservation, worker, is_shared))
    }

    /// Syncs the worker of a taken slot, and resets it if the request needs that; stops it and returns `None` if it
    /// must be restarted instead.
    fn sync(
        &self,
        worker: Arc<Worker>,
        isolation: Isolation,
        taken: TakenSlot,
        inputs: &Arc<Inputs>,
        files: &DiskFiles,
    ) -> Result<Option<Arc<Worker>>, Failure> {
        let was_synced = worker.is_synced_to(inputs);
        if worker.allows(isolation, inputs)
            && worker.is_usable(&self.workers.settings)
            && worker.sync_to(inputs, files)?
        {
            // Whether a changed file makes the server drop its inferred types depends on whether it had read the file.
            if isolation != Isolation::Shared && (taken.is_dirty || !was_synced) {
                worker.server.client.reset_inferred_types()?;
            }
            return Ok(Some(worker));
        }
        drop(self.workers.slots().remove_worker(taken.id));
        stop([worker]);
        Ok(None)
    }

    /// Starts another worker of this kind in the background, if so many requests had to wait that more are likely.
    fn start_another_if_worthwhile(&self, kind: WorkerKind, inputs: &Arc<Inputs>) {
        if self.waits.fetch_add(1, Ordering::Relaxed) < START_THRESHOLD {
            return;
        }
        let mut slots = self.workers.slots();
        if slots.count(kind) >= self.limit {
            return;
        }
        self.waits.store(0, Ordering::Relaxed);
        let reservation = Reservation::new(&self.workers, slots.add(kind));
        drop(slots);
        self.evict(kind);
        let inputs = inputs.clone();
        let start = tokio::spawn(async move {
            let workers = &reservation.workers;
            // An error is reported by the next request that starts a worker.
            let Ok(worker) = workers.start(kind, &inputs.tools, Some(&inputs)).await else { return };
            if worker.server.client.ready(workers.settings.timeout).await.is_ok() {
                workers.ready(reservation.id, &worker, WorkerState::Clean, true);
            }
        });
        let mut starts = self.starts.lock().unwrap_or_else(PoisonError::into_inner);
        starts.retain(|start| !start.is_finished());
        starts.push(start);
    }

    /// The running workers.
    pub(super) fn report(&self) -> RunningServers {
        let slots = self.workers.slots();
        let running = slots.workers().filter(|worker| worker.server.client.is_alive());
        RunningServers { servers: running.map(|worker| worker.report()).collect() }
    }

    /// Stops the workers. Requests that still use one get no answer.
    pub(super) async fn close(&self) {
        let starts = std::mem::take(&mut *self.starts.lock().unwrap_or_else(PoisonError::into_inner));
        for start in starts {
            start.abort();
            // Waits until the process of the aborted start is gone.
            let _ = start.await;
        }
        let workers = self.workers.slots().clear();
        // One in use stops when its guard is dropped.
        for worker in workers.into_iter().filter_map(Arc::into_inner) {
            worker.server.stop().await;
        }
    }
}

/// A worker that is being started.
pub(super) struct StartingWorker {
    task: JoinHandle<Result<(), Failure>>,
    workers: Arc<Workers>,
    /// Its slot, unless a worker was running.
    id: Option<u64>,
}

impl StartingWorker {
    /// Waits until the worker has started.
    pub(super) async fn wait(&mut self) -> Result<(), Failure> {
        // A failed task has panicked: then no worker is running, and the next request starts one.
        (&mut self.task).await.unwrap_or(Ok(()))
    }
}

impl Drop for StartingWorker {
    fn drop(&mut self) {
        self.task.abort();
        // A worker that has started may have enumerated files that are out of date by the next request.
        if let Some(id) = self.id {
            stop(self.workers.remove_if(id, Worker::was_never_synced));
        }
    }
}
