//! The right to ask a server, and what becomes of the server afterwards.

use std::collections::BTreeSet;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedRwLockMappedWriteGuard, OwnedRwLockReadGuard};

use super::super::Settings;
use super::super::failure::Failure;
use super::super::server::Server;
use super::super::state::State;
use super::Slot;
use super::kept::{Held, is_kept};
use super::live::{Live, Opened};
use super::turns::Shares;
use super::{Access, Kind};
use crate::lsp::tape::shown;
use crate::lsp::{Memory, Questions};
use crate::model::request::Request;
use crate::path::AbsPath;
use crate::tape::Tape;
use crate::workspace::files::Document;

/// How long nobody asks before a server may be ended for the memory that it takes.
const QUIET: Duration = Duration::from_millis(40);

/// How long a renewed server may take to infer what nearly every question needs.
const PREPARING: Duration = Duration::from_secs(5);

/// How long a server may still work on a question that nobody waits for any more.
const SETTLING: Duration = Duration::from_secs(5);

/// How many documents stay open for questions to come.
const MOST_OPEN: usize = 512;

/// The right to ask a server.
pub(in crate::orchestrator) struct Lease {
    /// Only gone while it is dropped.
    pub(super) hold: Option<Hold>,
    pub(super) slot: Arc<Slot>,
    pub(super) kind: Kind,
    /// The documents that this question needs open.
    pub(super) used: Mutex<BTreeSet<AbsPath>>,
    pub(super) resident: bool,
    /// Whether nobody asked the server before.
    pub(super) pristine: bool,
    /// Whether the question came to its end, so that the server works on nothing of it any more.
    pub(super) ended: AtomicBool,
    pub(super) settings: Arc<Settings>,
    /// What notes which documents the server is shown.
    pub(super) tape: Tape,
    /// What keeps the server's words, or says them in its place.
    pub(super) memory: Memory,
}

#[derive(Debug)]
pub(super) enum Hold {
    Shared {
        live: OwnedRwLockReadGuard<Option<Live>, Live>,
        _shares: Shares,
    },
    Alone(OwnedRwLockMappedWriteGuard<Option<Live>, Live>),
    /// Beside whoever else; it is asked nothing.
    Saying(OwnedRwLockReadGuard<Option<Live>, Live>),
}

impl Hold {
    pub(super) fn live(&self) -> &Live {
        match self {
            Self::Shared { live, .. } | Self::Saying(live) => live,
            Self::Alone(live) => live,
        }
    }
}

impl Lease {
    /// The same lease, noted on a tape.
    pub(in crate::orchestrator) fn on(mut self, tape: &Tape) -> Self {
        self.tape = tape.clone();
        self
    }

    /// The same lease, with what the server says kept, if it is worth it: what is asked beside others costs next to nothing.
    pub(in crate::orchestrator) fn noting(mut self, request: &Request, access: Access) -> Self {
        if self.resident && matches!(access, Access::Alone | Access::Pristine) && is_kept(request) {
            self.memory = Memory::Noting(Arc::default());
        }
        self
    }

    /// How long an answer is waited for: a server that has answered before has read the workspace, and gets half the time.
    pub(in crate::orchestrator) fn patience(&self, settings: &Settings) -> Duration {
        if self.pristine { settings.timeout } else { settings.timeout / 2 }
    }

    /// Whether nobody asked the server before.
    pub(in crate::orchestrator) const fn is_pristine(&self) -> bool {
        self.pristine
    }

    /// Whether others may be asking it, too.
    pub(in crate::orchestrator) const fn is_shared(&self) -> bool {
        matches!(self.hold, Some(Hold::Shared { .. }))
    }

    /// Whether what it said before is said in its place.
    pub(in crate::orchestrator) const fn is_recalled(&self) -> bool {
        matches!(self.hold, Some(Hold::Saying(_)))
    }

    /// What it can be asked, each to be answered within this time.
    pub(in crate::orchestrator) fn questions(&self, within: Duration) -> Questions {
        self.live().server.client.within(within).with(&self.memory)
    }

    /// What it said so far, when that is to be kept.
    pub(in crate::orchestrator) fn held(&self, state: &State) -> Option<Held> {
        let Memory::Noting(notes) = &self.memory else { return None };
        let conversation = Arc::new(notes.take()?);
        let (server, pristine) = (self.live().identity.clone(), self.pristine);
        Some(Held { conversation, server, pristine, kind: self.kind, read: Arc::new(state.read_outside()) })
    }

    fn live(&self) -> &Live {
        self.hold.as_ref().expect("it is there until the lease is dropped").live()
    }

    /// The server did not answer in time: nobody is to ask it again.
    pub(in crate::orchestrator) fn hung(&self) {
        self.live().hung.store(true, Ordering::Relaxed);
    }

    /// The server is shown documents as they might become: it stays on this ground.
    pub(in crate::orchestrator) fn speculates(&self) {
        self.live().speculated.store(true, Ordering::Relaxed);
    }

    /// The server was shown what it cannot forget: nobody is to ask it again.
    pub(in crate::orchestrator) fn retire(&self) {
        self.live().hung.store(true, Ordering::Relaxed);
    }

    /// The question was answered, or the server said that it has no answer.
    pub(in crate::orchestrator) fn ended(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }

    /// Makes a document known to the server for as long as this question lasts.
    pub(in crate::orchestrator) fn open(&self, document: &Arc<Document>) -> Result<(), Failure> {
        self.memory.show(&document.path, &document.digest)?;
        let first = self.used().insert(document.path.clone());
        if self.is_recalled() {
            return Ok(());
        }
        let live = self.live();
        let mut opened = live.opened();
        let turn = self.slot.asked.load(Ordering::Relaxed);
        if opened.get(&document.path).is_none_or(|known| known.digest != document.digest) {
            shown(&self.tape, &document.path, &document.digest);
        }
        match opened.get_mut(&document.path) {
            Some(known) => {
                known.users += usize::from(first);
                known.turn = turn;
                if known.digest != document.digest {
                    live.server.client.change(&document.path, document.clone())?;
                    known.digest = document.digest;
                }
            }
            None => {
                live.server.client.open(&document.path, document.clone())?;
                opened.insert(document.path.clone(), Opened { digest: document.digest, users: 1, turn });
            }
        }
        Ok(())
    }

    /// The document is not needed any more.
    pub(in crate::orchestrator) fn release(&self, path: &AbsPath) -> Result<(), Failure> {
        if self.used().remove(path) {
            self.give_back(&BTreeSet::from([path.clone()]))?;
        }
        Ok(())
    }

    /// The documents that this question needs open.
    pub(in crate::orchestrator) fn used(&self) -> MutexGuard<'_, BTreeSet<AbsPath>> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a use less of each document. What no fresh server would know, and what is too much, is closed.
    fn give_back(&self, paths: &BTreeSet<AbsPath>) -> Result<(), Failure> {
        if self.is_recalled() {
            return Ok(());
        }
        let live = self.live();
        let mut opened = live.opened();
        for path in paths {
            let Some(document) = opened.get_mut(path) else { continue };
            document.users = document.users.saturating_sub(1);
            // What no fresh server would know by itself, and what is not what the ground says, goes.
            let stays = live.ground.as_ref().is_some_and(|ground| {
                let uri = ground.paths.uri(path);
                let included = uri.workspace_path().is_some_and(|path| ground.included.includes(path));
                included && ground.holds(path, Some(document.digest)) == Some(true)
            });
            if document.users == 0 && !(stays && self.resident) {
                opened.remove(path);
                live.server.client.close(path)?;
            }
        }
        let idle = opened.iter().filter(|(_, document)| document.users == 0);
        if idle.clone().count() > MOST_OPEN {
            let mut idle: Vec<_> = idle.map(|(path, document)| (document.turn, path.clone())).collect();
            idle.sort();
            for (_, path) in &idle[..idle.len() - MOST_OPEN] {
                opened.remove(path);
                live.server.client.close(path)?;
            }
        }
        Ok(())
    }
}

impl Deref for Lease {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.live().server
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if !self.resident || self.is_recalled() {
            return;
        }
        let used = std::mem::take(&mut *self.used());
        // A server that cannot be told any more is replaced by the next lease.
        let _ = self.give_back(&used);
        let server = self.live().server.client.process_id();
        let alone = matches!(self.hold, Some(Hold::Alone(_)));
        self.hold = None;
        let (slot, settings) = (self.slot.clone(), self.settings.clone());
        let turn = slot.asked.load(Ordering::Relaxed);
        let ended = self.ended.load(Ordering::Relaxed);
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            if !ended {
                discard_if_stuck(&slot, server).await;
            }
            if alone && slot.asked.load(Ordering::Relaxed) == turn {
                renew(&slot, &settings).await;
            } else if !alone {
                tokio::time::sleep(QUIET).await;
                if slot.asked.load(Ordering::Relaxed) == turn {
                    end_if_exhausted(&slot, &settings).await;
                }
            }
        });
    }
}

/// Gives a server time to end what nobody waits for any more; one that does not is killed, if it still is that one.
async fn discard_if_stuck(slot: &Slot, server: Option<u32>) {
    let is_it = |live: &Live| live.server.client.process_id() == server;
    let settled = {
        let place = slot.place.read().await;
        match place.as_ref().filter(|live| is_it(live)) {
            Some(live) if live.hung.load(Ordering::Relaxed) => false,
            Some(live) => {
                let settled = live.server.client.settled(SETTLING).await.is_ok();
                live.hung.store(!settled, Ordering::Relaxed);
                settled
            }
            None => true,
        }
    };
    if !settled {
        drop(slot.place.write().await.take_if(|live| is_it(live)));
    }
}

/// Ends a server that nobody asks and that takes too much memory; tells whether it did.
async fn end_if_exhausted(slot: &Slot, settings: &Settings) -> bool {
    let Ok(mut place) = slot.place.try_write() else { return false };
    let ended = place.take_if(|live| live.is_exhausted(settings));
    drop(place);
    match ended {
        Some(ended) => {
            ended.server.stop().await;
            true
        }
        None => false,
    }
}

/// Renews a server that nobody asks; one that takes too much memory is ended.
async fn renew(slot: &Slot, settings: &Settings) {
    if end_if_exhausted(slot, settings).await {
        return;
    }
    let Ok(place) = slot.place.try_write() else { return };
    let Some(live) = place.as_ref() else { return };
    let used = std::mem::take(&mut live.asked().since_renewal);
    if used && live.server.client.renew().is_ok() {
        let prepared = live.server.client.prepare(PREPARING);
        drop(place);
        prepared.await;
    }
}
