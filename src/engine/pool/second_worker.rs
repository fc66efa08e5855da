//! A second worker for batches: it takes the exclusive requests, and the first one keeps the types that it inferred
//! for the shared ones.
//!
//! A worker costs some seconds of processor time to start and hundreds of megabytes to keep. An exclusive request
//! costs some 20 ms, and as much again for the shared requests after it, which find no inferred types. So the second
//! worker is only started after so many requests that more are likely, and in the background.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::task::JoinHandle;

use super::super::inputs::Inputs;
use super::worker::Worker;
use super::{Isolation, Pool, WorkerKind};

/// How many exclusive requests to see before the second worker is started.
const START_THRESHOLD: usize = 24;

/// The state of the second worker.
#[derive(Debug)]
pub(super) struct SecondWorker {
    /// Whether a second worker may be started.
    allowed: bool,
    /// How many exclusive requests came while shared ones were running.
    exclusive_requests: AtomicUsize,
    /// Whether its start has begun.
    is_started: AtomicBool,
    /// Whether it has read the workspace.
    is_ready: Arc<AtomicBool>,
    /// The task of the latest start.
    start: Mutex<Option<JoinHandle<()>>>,
}

impl SecondWorker {
    /// `is_batch`: a second worker may be started if there is a second processor to run it.
    pub(super) fn new(is_batch: bool) -> Self {
        // Counting processors reads system files, so do it only if necessary.
        let processors = || std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        Self {
            allowed: is_batch && processors() > 1,
            exclusive_requests: AtomicUsize::new(0),
            is_started: AtomicBool::new(false),
            is_ready: Arc::default(),
            start: Mutex::default(),
        }
    }

    /// How many workers to allow in addition, for the second one.
    pub(super) fn extra_workers(&self) -> usize {
        usize::from(self.is_started.load(Ordering::Acquire))
    }

    /// Aborts a start that is under way.
    pub(super) async fn abort_start(&self) {
        let start = self.start.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(start) = start {
            start.abort();
            // Waits until the process of the aborted start is gone.
            let _ = start.await;
        }
    }
}

impl Pool {
    /// The kind of worker for a request: the second one if it is ready and the request needs exclusive access.
    pub(super) fn choose_kind(
        &self,
        kind: WorkerKind,
        isolation: Isolation,
        inputs: &Arc<Inputs>,
    ) -> WorkerKind {
        let second = &self.second;
        if !second.allowed
            || !matches!(isolation, Isolation::Reset | Isolation::Fresh)
            || kind != WorkerKind::usual()
        {
            return kind;
        }
        let second_kind = WorkerKind { second: true, ..kind };
        if second.is_ready.load(Ordering::Acquire) {
            // A locked worker is in use, so it is running.
            if self
                .slot(second_kind)
                .worker
                .try_read()
                .map_or(true, |worker| worker.as_ref().is_some_and(|worker| worker.is_usable(&self.settings)))
            {
                return second_kind;
            }
            // It has ended. Another one is started under the same conditions.
            second.is_ready.store(false, Ordering::Release);
            second.exclusive_requests.store(0, Ordering::Relaxed);
            second.is_started.store(false, Ordering::Release);
        }
        let others = self.slot(kind).turns.anybody_shares();
        let exclusive_requests = second.exclusive_requests.fetch_add(usize::from(others), Ordering::Relaxed);
        if exclusive_requests >= START_THRESHOLD && !second.is_started.swap(true, Ordering::AcqRel) {
            self.start_second(second_kind, inputs);
        }
        kind
    }

    /// Starts the second worker in the background.
    fn start_second(&self, kind: WorkerKind, inputs: &Arc<Inputs>) {
        self.evict_idle_workers(kind);
        let (slot, settings, inputs) = (self.slot(kind), self.settings.clone(), inputs.clone());
        let is_ready = self.second.is_ready.clone();
        let start = tokio::spawn(async move {
            let mut entry = slot.worker.write().await;
            // The error is reported by the next request that needs the first worker.
            let Ok(worker) = Worker::start_with(&settings, kind, &inputs).await else { return };
            if worker.server.client.ready(settings.timeout).await.is_ok() {
                *entry = Some(worker);
                is_ready.store(true, Ordering::Release);
            }
        });
        *self.second.start.lock().unwrap_or_else(PoisonError::into_inner) = Some(start);
    }
}
