//! Exclusive or shared access to a worker for one request, and what happens to the worker afterwards.

use std::collections::BTreeSet;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedRwLockMappedWriteGuard, OwnedRwLockReadGuard};

use super::super::Settings;
use super::super::failure::Failure;
use super::super::request_state::RequestState;
use super::super::server::Server;
use super::WorkerSlot;
use super::kept::{Held, is_kept};
use super::turns::Shares;
use super::worker::{OpenDocument, Worker};
use super::{Isolation, WorkerKind};
use crate::lsp::recording::record_did_open;
use crate::lsp::{LspRequests, Memory};
use crate::model::request::Request;
use crate::path::AbsPath;
use crate::tape::Tape;
use crate::workspace::files::Document;

/// How long a worker must be idle before it may be stopped for its memory.
const IDLE_DELAY: Duration = Duration::from_millis(40);

/// How long a worker may take after a reset to infer the types of the builtins, which nearly every request needs.
const PRELOAD_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a server may take to answer cancelled requests.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);

/// How many unused documents stay open for later requests.
const MAX_OPEN_DOCUMENTS: usize = 512;

/// Access to a worker for one request. Dropping it gives the worker back.
pub(in crate::engine) struct WorkerGuard {
    /// `None` only during drop.
    pub(super) lock: Option<WorkerLock>,
    pub(super) slot: Arc<WorkerSlot>,
    pub(super) kind: WorkerKind,
    /// The documents that this request needs open.
    pub(super) used: Mutex<BTreeSet<AbsPath>>,
    pub(super) keep_workers: bool,
    /// Whether the worker had served no request before.
    pub(super) fresh: bool,
    /// Whether the request ran to its end, so that the server has no work left from it.
    pub(super) is_finished: AtomicBool,
    pub(super) settings: Arc<Settings>,
    /// Records which documents are shown to the server.
    pub(super) tape: Tape,
    /// Records the server's responses, or gives cached ones in its place.
    pub(super) memory: Memory,
}

#[derive(Debug)]
pub(super) enum WorkerLock {
    Shared {
        worker: OwnedRwLockReadGuard<Option<Worker>, Worker>,
        _shares: Shares,
    },
    Exclusive(OwnedRwLockMappedWriteGuard<Option<Worker>, Worker>),
    /// Gives cached responses; the server is sent nothing.
    Cached(OwnedRwLockReadGuard<Option<Worker>, Worker>),
}

impl WorkerLock {
    pub(super) fn worker(&self) -> &Worker {
        match self {
            Self::Shared { worker, .. } | Self::Cached(worker) => worker,
            Self::Exclusive(worker) => worker,
        }
    }
}

impl WorkerGuard {
    /// The same guard, recorded on a tape.
    pub(in crate::engine) fn recording(mut self, tape: &Tape) -> Self {
        self.tape = tape.clone();
        self
    }

    /// The same guard, with the responses recorded for the cache where that pays: shared requests cost next to nothing.
    pub(in crate::engine) fn with_response_cache(mut self, request: &Request, isolation: Isolation) -> Self {
        if self.keep_workers && matches!(isolation, Isolation::Reset | Isolation::Fresh) && is_kept(request) {
            self.memory = Memory::Noting(Arc::default());
        }
        self
    }

    /// How long to wait for a response: a worker that has answered before has read the workspace, and gets half the
    /// time.
    pub(in crate::engine) fn answer_timeout(&self, settings: &Settings) -> Duration {
        if self.fresh { settings.timeout } else { settings.timeout / 2 }
    }

    /// Whether the worker had served no request before.
    pub(in crate::engine) const fn is_fresh(&self) -> bool {
        self.fresh
    }

    /// Whether other requests may be using the worker concurrently.
    pub(in crate::engine) const fn is_shared(&self) -> bool {
        matches!(self.lock, Some(WorkerLock::Shared { .. }))
    }

    /// Whether the responses come from the cache.
    pub(in crate::engine) const fn is_cached(&self) -> bool {
        matches!(self.lock, Some(WorkerLock::Cached(_)))
    }

    /// Sends requests to the server, each to be answered within this time.
    pub(in crate::engine) fn requests(&self, within: Duration) -> LspRequests {
        self.worker().server.client.requests(within).with_memory(&self.memory)
    }

    /// The responses recorded so far, if they are to be cached.
    pub(in crate::engine) fn held(&self, state: &RequestState) -> Option<Held> {
        let Memory::Noting(notes) = &self.memory else { return None };
        let conversation = Arc::new(notes.take()?);
        let (server, fresh) = (self.worker().identity.clone(), self.fresh);
        Some(Held {
            conversation,
            server,
            pristine: fresh,
            kind: self.kind,
            read: Arc::new(state.read_outside()),
        })
    }

    fn worker(&self) -> &Worker {
        self.lock.as_ref().expect("the lock is only taken on drop").worker()
    }

    /// The server did not answer in time: the worker must not be used again.
    pub(in crate::engine) fn mark_hung(&self) {
        self.worker().hung.store(true, Ordering::Relaxed);
    }

    /// The server is shown edits that are not on disk: it cannot be synced to other inputs any more.
    pub(in crate::engine) fn mark_speculative(&self) {
        self.worker().speculated.store(true, Ordering::Relaxed);
    }

    /// The server was shown something that a reset does not undo: the worker must not be used again.
    pub(in crate::engine) fn retire(&self) {
        self.worker().hung.store(true, Ordering::Relaxed);
    }

    /// The request was answered, or the server answered that it has no result.
    pub(in crate::engine) fn mark_finished(&self) {
        self.is_finished.store(true, Ordering::Relaxed);
    }

    /// Opens a document on the server for as long as this request lasts.
    pub(in crate::engine) fn open(&self, document: &Arc<Document>) -> Result<(), Failure> {
        self.memory.show(&document.path, &document.digest)?;
        let first = self.used().insert(document.path.clone());
        if self.is_cached() {
            return Ok(());
        }
        let worker = self.worker();
        let mut documents = worker.documents();
        let now = self.slot.requests.load(Ordering::Relaxed);
        if documents.get(&document.path).is_none_or(|known| known.digest != document.digest) {
            record_did_open(&self.tape, &document.path, &document.digest);
        }
        match documents.get_mut(&document.path) {
            Some(known) => {
                known.users += usize::from(first);
                known.last_use = now;
                if known.digest != document.digest {
                    worker.server.client.change(&document.path, document.clone())?;
                    known.digest = document.digest;
                }
            }
            None => {
                worker.server.client.open(&document.path, document.clone())?;
                documents.insert(
                    document.path.clone(),
                    OpenDocument { digest: document.digest, users: 1, last_use: now },
                );
            }
        }
        Ok(())
    }

    /// Gives back a document that the request does not need any more.
    pub(in crate::engine) fn release(&self, path: &AbsPath) -> Result<(), Failure> {
        if self.used().remove(path) {
            self.give_back(&BTreeSet::from([path.clone()]))?;
        }
        Ok(())
    }

    /// The documents that this request needs open.
    pub(in crate::engine) fn used(&self) -> MutexGuard<'_, BTreeSet<AbsPath>> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Decrements the users of each document. Closes documents that a fresh server would not know, and those beyond
    /// the limit.
    fn give_back(&self, paths: &BTreeSet<AbsPath>) -> Result<(), Failure> {
        if self.is_cached() {
            return Ok(());
        }
        let worker = self.worker();
        let mut documents = worker.documents();
        for path in paths {
            let Some(document) = documents.get_mut(path) else { continue };
            document.users = document.users.saturating_sub(1);
            // A document stays if a fresh server would read the same text from disk on its own.
            let can_stay = worker.inputs.as_ref().is_some_and(|inputs| {
                let uri = inputs.paths.uri(path);
                let included = uri.workspace_path().is_some_and(|path| inputs.included.includes(path));
                included && inputs.holds(path, Some(document.digest)) == Some(true)
            });
            if document.users == 0 && !(can_stay && self.keep_workers) {
                documents.remove(path);
                worker.server.client.close(path)?;
            }
        }
        let idle = documents.iter().filter(|(_, document)| document.users == 0);
        if idle.clone().count() > MAX_OPEN_DOCUMENTS {
            let mut idle: Vec<_> = idle.map(|(path, document)| (document.last_use, path.clone())).collect();
            idle.sort();
            for (_, path) in &idle[..idle.len() - MAX_OPEN_DOCUMENTS] {
                documents.remove(path);
                worker.server.client.close(path)?;
            }
        }
        Ok(())
    }
}

impl Deref for WorkerGuard {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.worker().server
    }
}

impl Drop for WorkerGuard {
    fn drop(&mut self) {
        if !self.keep_workers || self.is_cached() {
            return;
        }
        let used = std::mem::take(&mut *self.used());
        // If this fails, the connection has ended, and the next request restarts the worker.
        let _ = self.give_back(&used);
        let server = self.worker().server.client.process_id();
        let exclusive = matches!(self.lock, Some(WorkerLock::Exclusive(_)));
        self.lock = None;
        let (slot, settings) = (self.slot.clone(), self.settings.clone());
        let requests_before = slot.requests.load(Ordering::Relaxed);
        let is_finished = self.is_finished.load(Ordering::Relaxed);
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            if !is_finished {
                discard_if_hung(&slot, server).await;
            }
            if exclusive && slot.requests.load(Ordering::Relaxed) == requests_before {
                reset_when_idle(&slot, &settings).await;
            } else if !exclusive {
                tokio::time::sleep(IDLE_DELAY).await;
                if slot.requests.load(Ordering::Relaxed) == requests_before {
                    stop_if_over_memory_limit(&slot, &settings).await;
                }
            }
        });
    }
}

/// Gives the server time to answer cancelled requests; removes the worker, if it is still the same one, when it does
/// not.
async fn discard_if_hung(slot: &WorkerSlot, server: Option<u32>) {
    let is_same = |worker: &Worker| worker.server.client.process_id() == server;
    let settled = {
        let entry = slot.worker.read().await;
        match entry.as_ref().filter(|worker| is_same(worker)) {
            Some(worker) if worker.hung.load(Ordering::Relaxed) => false,
            Some(worker) => {
                let settled = worker.server.client.wait_for_cancelled(CANCEL_TIMEOUT).await.is_ok();
                worker.hung.store(!settled, Ordering::Relaxed);
                settled
            }
            None => true,
        }
    };
    if !settled {
        drop(slot.worker.write().await.take_if(|worker| is_same(worker)));
    }
}

/// Stops an idle worker that uses too much memory; returns whether it did.
async fn stop_if_over_memory_limit(slot: &WorkerSlot, settings: &Settings) -> bool {
    let Ok(mut entry) = slot.worker.try_write() else { return false };
    let ended = entry.take_if(|worker| worker.exceeds_memory_limit(settings));
    drop(entry);
    match ended {
        Some(ended) => {
            ended.server.stop().await;
            true
        }
        None => false,
    }
}

/// Resets an idle worker, or stops it if it uses too much memory.
async fn reset_when_idle(slot: &WorkerSlot, settings: &Settings) {
    if stop_if_over_memory_limit(slot, settings).await {
        return;
    }
    let Ok(entry) = slot.worker.try_write() else { return };
    let Some(worker) = entry.as_ref() else { return };
    let used = std::mem::take(&mut worker.usage().since_reset);
    if used && worker.server.client.reset_inferred_types().is_ok() {
        let prepared = worker.server.client.preload_builtins(PRELOAD_TIMEOUT);
        drop(entry);
        prepared.await;
    }
}
