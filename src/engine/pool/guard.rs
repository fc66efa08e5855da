//! Exclusive or shared access to a worker for one request, and what happens to the worker afterwards.

use std::collections::BTreeSet;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::super::failure::Failure;
use super::super::server::Server;
use super::super::settings::Settings;
use super::slots::{IdleSlot, WorkerState};
use super::worker::{OpenDocument, Worker};
use super::{Reservation, Workers};
use crate::lsp::LspRequests;
use crate::lsp::recording::record_did_open;
use crate::path::AbsPath;
use crate::tape::Tape;
use crate::workspace::files::Document;

/// How long a shared worker must be idle before it may be stopped for its memory.
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
    held: Option<Held>,
    /// Whether other requests may be using the worker concurrently.
    is_shared: bool,
    /// The number of this request among those of the worker, from zero.
    number: u64,
    /// The documents that this request needs open.
    used: Mutex<BTreeSet<AbsPath>>,
    /// Whether the request ran to its end, so that the server has no work left from it.
    is_finished: AtomicBool,
    /// Records which documents are shown to the server.
    tape: Tape,
}

/// A worker in a slot that this request has taken.
struct Held {
    // Dropped first: a slot that was given back has the only reference to its worker.
    worker: Arc<Worker>,
    reservation: Reservation,
}

impl WorkerGuard {
    pub(super) fn new(reservation: Reservation, worker: Arc<Worker>, is_shared: bool) -> Self {
        Self {
            number: worker.requests.fetch_add(1, Ordering::Relaxed),
            held: Some(Held { worker, reservation }),
            is_shared,
            used: Mutex::default(),
            is_finished: AtomicBool::new(false),
            tape: Tape::off(),
        }
    }

    /// The same guard, recorded on a tape.
    pub(in crate::engine) fn recording(mut self, tape: &Tape) -> Self {
        self.tape = tape.clone();
        self
    }

    /// How long to wait for a response: a worker that has answered before has read the workspace, and gets half the
    /// time.
    pub(in crate::engine) fn answer_timeout(&self, settings: &Settings) -> Duration {
        if self.is_fresh() { settings.timeout } else { settings.timeout / 2 }
    }

    /// Whether the worker had served no request before.
    pub(in crate::engine) const fn is_fresh(&self) -> bool {
        self.number == 0
    }

    /// Whether other requests may be using the worker concurrently.
    pub(in crate::engine) const fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// Keeps other requests off the worker until [`Self::admit_others`]: for showing it texts that only this request is to see.
    /// Returns false, and does nothing, if there are others already.
    pub(in crate::engine) fn exclude_others(&self) -> bool {
        let reservation = &self.held().reservation;
        !self.is_shared || reservation.workers.slots().exclude_others(reservation.id)
    }

    /// Undoes [`Self::exclude_others`].
    pub(in crate::engine) fn admit_others(&self) {
        let reservation = &self.held().reservation;
        if self.is_shared {
            reservation.workers.slots().admit_others(reservation.id);
            reservation.workers.changed.notify_waiters();
        }
    }

    /// Sends requests to the server, each to be answered within this time.
    pub(in crate::engine) fn requests(&self, within: Duration) -> LspRequests {
        self.worker().server.client.requests(within)
    }

    fn held(&self) -> &Held {
        self.held.as_ref().expect("it is only taken on drop")
    }

    fn worker(&self) -> &Worker {
        &self.held().worker
    }

    /// The server is shown edits that are not on disk: it cannot be synced to other inputs any more.
    pub(in crate::engine) fn mark_speculative(&self) {
        self.worker().speculated.store(true, Ordering::Relaxed);
    }

    /// The worker must not be used again: its server did not answer in time, or was shown something that a reset does
    /// not undo.
    pub(in crate::engine) fn retire(&self) {
        let reservation = &self.held().reservation;
        reservation.workers.slots().kill(reservation.id);
    }

    /// The request was answered, or the server answered that it has no result.
    pub(in crate::engine) fn mark_finished(&self) {
        self.is_finished.store(true, Ordering::Relaxed);
    }

    /// Opens a document on the server for as long as this request lasts.
    pub(in crate::engine) fn open(&self, document: &Arc<Document>) -> Result<(), Failure> {
        let first = self.used().insert(document.path.clone());
        let worker = self.worker();
        let mut documents = worker.documents();
        if documents.get(&document.path).is_none_or(|known| known.digest != document.digest) {
            record_did_open(&self.tape, &document.path, &document.digest);
        }
        match documents.get_mut(&document.path) {
            Some(known) => {
                known.users += usize::from(first);
                known.last_use = self.number;
                if known.digest != document.digest {
                    worker.server.client.change(&document.path, document.clone())?;
                    known.digest = document.digest;
                }
            }
            None => {
                worker.server.client.open(&document.path, document.clone())?;
                documents.insert(
                    document.path.clone(),
                    OpenDocument { digest: document.digest, users: 1, last_use: self.number },
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
        let Held { worker, reservation } = self.held();
        let inputs = worker.inputs();
        let mut documents = worker.documents();
        for path in paths {
            let Some(document) = documents.get_mut(path) else { continue };
            document.users = document.users.saturating_sub(1);
            // A document stays if a fresh server would read the same text from disk on its own.
            let can_stay = inputs.as_ref().is_some_and(|inputs| {
                let uri = inputs.paths.uri(path);
                let included = uri.workspace_path().is_some_and(|path| inputs.included.includes(path));
                included && inputs.holds(path, Some(document.digest)) == Some(true)
            });
            if document.users == 0 && !(can_stay && reservation.workers.keep_workers) {
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
        let runtime = tokio::runtime::Handle::try_current().ok();
        let Some(runtime) = runtime.filter(|_| self.held().reservation.workers.keep_workers) else { return };
        let used = std::mem::take(&mut *self.used());
        // If this fails, the connection has ended, and the next request restarts the worker.
        let _ = self.give_back(&used);
        let Some(held) = self.held.take() else { return };
        let (workers, is_shared) = (held.reservation.workers.clone(), self.is_shared);
        if self.is_finished.load(Ordering::Relaxed) {
            if let Some(idle) = held.release() {
                runtime.spawn(async move { tend(&workers, idle, is_shared).await });
            }
            return;
        }
        runtime.spawn(async move {
            // The slot is held until the server has no work left from this request.
            let client = &held.worker.server.client;
            if client.wait_for_cancelled(CANCEL_TIMEOUT).await.is_err() {
                workers.slots().kill(held.reservation.id);
            }
            if let Some(idle) = held.release() {
                tend(&workers, idle, is_shared).await;
            }
        });
    }
}

impl Held {
    /// Gives the slot back. Returns it if it is idle now.
    fn release(self) -> Option<IdleSlot> {
        drop(self.worker);
        self.reservation.release()
    }
}

/// Prepares an idle worker for the next request: stops it if it uses too much memory, and resets it if its last request
/// was exclusive. The types that shared requests made it infer serve the next ones.
async fn tend(workers: &Arc<Workers>, idle: IdleSlot, was_shared: bool) {
    if was_shared {
        tokio::time::sleep(IDLE_DELAY).await;
    }
    let Some(worker) = workers.slots().take_idle(idle) else { return };
    let held = Held { worker, reservation: Reservation::new(workers, idle.id) };
    if held.worker.exceeds_memory_limit(&workers.settings) {
        workers.slots().kill(idle.id);
        return;
    }
    let client = &held.worker.server.client;
    if was_shared {
        workers.ready(idle.id, &held.worker, WorkerState::Dirty, true);
    } else if client.reset_inferred_types().is_ok() {
        let preload = client.preload_builtins(PRELOAD_TIMEOUT);
        workers.ready(idle.id, &held.worker, WorkerState::Clean, true);
        held.release();
        preload.await;
    }
}
