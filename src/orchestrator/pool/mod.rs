//! The servers that are alive, and who may ask them.
//!
//! A server stands on one [`Ground`]. Whoever asks takes a [`Lease`], for which the server is brought to the asker's
//! ground: by announcing changed contents, or by starting it anew where that would not give the answers of a fresh server
//! (see [`Ground::step_to`]).
//!
//! What Pyright infers can depend on what it was asked before. So a question whose answer rests on inferred types has the
//! server for itself, and finds nothing inferred but by itself ([`Access::Alone`]). The definition of a name that rests on
//! none (see [`crate::resolve::meaning`]) is asked beside others on what there is ([`Access::Shared`]). A server is renewed when a question that had it
//! for itself is over, so that the next one need not wait for that.
//!
//! What a server said to a question that had it for itself is said again, as long as the ground is the same, without asking
//! it (see [`kept`]).
//!
//! What is asked beside others loses with each renewal what the others made the server infer. So those that want it for
//! themselves wait for a while until none of the others is left, and then go one after the other (see [`turns`]); and where
//! there are many, they get a server of their own (see [`second`]).

mod kept;
mod lease;
mod live;
mod second;
mod turns;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};
use tokio::task::JoinHandle;

pub(super) use kept::Held;
use kept::{Kept, is_kept};
use lease::Hold;
pub(super) use lease::Lease;
use live::{Asked, Live};
use second::Second;
use turns::Turns;

use super::Settings;
use super::failure::Failure;
use super::ground::{Ground, Tools};
use super::report::Report;
use super::server::Server;
use crate::digest::Digest;
use crate::lsp::{Memory, Profile};
use crate::model::request::{Command, Request, Scope};
use crate::model::server::ServerKind;
use crate::path::AbsPath;
use crate::tape::Tape;
use crate::workspace::files::DiskFiles;

/// How many servers stay for questions to come.
const MOST_SERVERS: usize = 2;

/// What a server is for. Servers of different kinds are different processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Kind {
    /// Whether it pulls diagnostics: some servers can do that only when they do not hear of cancellations
    /// (see [`crate::lsp::Profile::pulls_when_cancellable`]).
    pub(super) pulls: bool,
    /// Which files it is shown: one that was shown more would find uses in them.
    configured: bool,
    /// Whether it is beside another one that is else the same.
    second: bool,
}

impl Kind {
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

/// How a question may be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// Beside others, on what they made the server infer.
    Shared,
    /// Alone, with nothing inferred.
    Alone,
    /// Alone, with nothing inferred, on a server that was started on this ground and never brought to another. One that was
    /// told of changed files and then shown edited ones said of a file what was true before the change (Pyright 1.1.414).
    Unmoved,
    /// Alone, on a server that was never asked anything.
    Pristine,
}

/// The servers of one workspace, at most one of each kind.
pub(super) struct Pool {
    settings: Arc<Settings>,
    slots: Mutex<BTreeMap<Kind, Arc<Slot>>>,
    /// How many questions began, of all kinds.
    turn: AtomicU64,
    /// Whether servers are kept for questions to come.
    resident: bool,
    /// Whether there are many questions at a time.
    many: bool,
    second: Second,
    kept: Kept,
}

type Place = RwLock<Option<Live>>;

#[derive(Debug)]
struct Slot {
    place: Arc<Place>,
    /// How many questions began: to notice that nobody asked for a while.
    asked: AtomicU64,
    /// The pool's turn of the last one.
    turn: AtomicU64,
    /// Who asks beside others.
    turns: Arc<Turns>,
}

impl Slot {
    fn new(many: bool) -> Self {
        let (asked, turn) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { place: Arc::default(), asked, turn, turns: Arc::new(Turns::new(many)) }
    }
}

impl Pool {
    /// No servers. `resident`: they are kept for questions to come; `many`: there will be many at a time.
    pub(super) fn new(settings: Arc<Settings>, resident: bool, many: bool) -> Self {
        let (slots, turn, second) = (Mutex::default(), AtomicU64::new(0), Second::new(many));
        Self { settings, slots, turn, resident, many, second, kept: Kept::default() }
    }

    fn slot(&self, kind: Kind) -> Arc<Slot> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots.entry(kind).or_insert_with(|| Arc::new(Slot::new(self.many))).clone()
    }

    /// Starts a server of this kind, unless there is one. It goes on by itself; dropping what is returned stops it.
    pub(super) fn start(&self, kind: Kind, tools: &Tools) -> Starting {
        let (slot, settings, tools) = (self.slot(kind), self.settings.clone(), tools.clone());
        let task = tokio::spawn(async move {
            let mut place = slot.place.write().await;
            if place.as_ref().is_none_or(|live| !live.server.client.is_alive()) {
                *place = Some(Live::start(&settings, kind, &tools).await?);
            }
            Ok(())
        });
        Starting { task, slot: self.slot(kind), wanted: false }
    }

    /// Starts a server of this kind that stands on `ground`, unless there is one.
    pub(super) async fn warm_up(&self, kind: Kind, ground: &Arc<Ground>) -> Result<(), Failure> {
        let slot = self.slot(kind);
        // One that is being asked is there.
        let Ok(mut place) = slot.place.try_write() else { return Ok(()) };
        if place.as_ref().is_none_or(|live| !live.is_fit(&self.settings)) {
            self.make_room(kind);
            *place = Some(Live::on(&self.settings, kind, ground).await?);
        }
        Ok(())
    }

    /// Puts a server that runs already in its place; it stands on `ground`.
    pub(super) async fn seat(&self, kind: Kind, server: Server, ground: &Arc<Ground>) {
        let live = Live::of(server, Some(ground.clone()));
        *self.slot(kind).place.write().await = Some(live);
    }

    /// Ends servers of other kinds when there are too many: those that were asked longest ago, and nobody asks now.
    fn make_room(&self, kind: Kind) {
        let slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let mut others: Vec<_> = slots.iter().filter(|(other, _)| **other != kind).collect();
        others.sort_by_key(|(_, slot)| slot.turn.load(Ordering::Relaxed));
        // One that is locked is being asked.
        let runs = |slot: &Slot| slot.place.try_read().map_or(true, |live| live.is_some());
        let mut running = others.iter().filter(|(_, slot)| runs(slot)).count();
        for (_, slot) in others {
            if running >= MOST_SERVERS + self.second.servers()
                && let Ok(mut place) = slot.place.try_write()
                && let Some(live) = place.take()
            {
                tokio::spawn(live.server.stop());
                running -= 1;
            }
        }
    }

    /// What a server said about the same request on the same ground, in place of that server, and the files outside the
    /// workspace with which the answer was made; `None` when none was asked.
    pub(super) async fn recall(
        &self,
        kind: Kind,
        request: &Request,
        ground: &Arc<Ground>,
    ) -> Option<(Lease, Arc<BTreeMap<AbsPath, Option<Digest>>>)> {
        let held = is_kept(request).then(|| self.kept.get(kind, request, ground)).flatten()?;
        let slot = self.slot(held.kind);
        let place = slot.place.clone().read_owned().await;
        let is_there = |live: &&Live| {
            let is_it = live.identity == held.server && live.stands_on(ground);
            is_it && live.is_fit(&self.settings) && live.server.client.is_ready()
        };
        let live = OwnedRwLockReadGuard::try_map(place, |live| live.as_ref().filter(is_there)).ok()?;
        slot.turn.store(self.turn.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        let memory = Memory::Saying(held.conversation);
        Some((self.lease_of(slot, held.kind, Hold::Saying(live), memory, held.pristine), held.read))
    }

    /// Keeps what a server said about a request.
    pub(super) fn keep(&self, kind: Kind, request: &Request, ground: &Arc<Ground>, held: Held) {
        self.kept.put(kind, request, ground, held);
    }

    /// Forgets what a server said about a request.
    pub(super) fn forget(&self, kind: Kind, request: &Request) {
        self.kept.forget(kind, request);
    }

    /// A server that stands on `ground`, for one question.
    pub(super) async fn lease(
        &self,
        kind: Kind,
        access: Access,
        ground: &Arc<Ground>,
        files: &DiskFiles,
    ) -> Result<Lease, Failure> {
        match access {
            Access::Shared => self.lease_beside_others(kind, ground, files).await,
            Access::Alone | Access::Unmoved | Access::Pristine => {
                self.lease_alone(kind, access, ground, files).await
            }
        }
    }

    async fn lease_beside_others(
        &self,
        kind: Kind,
        ground: &Arc<Ground>,
        files: &DiskFiles,
    ) -> Result<Lease, Failure> {
        let slot = self.asked(kind);
        let shares = slot.turns.share();
        loop {
            let place = slot.place.clone().read_owned().await;
            let here = OwnedRwLockReadGuard::try_map(place, |live| {
                live.as_ref().filter(|live| live.is_fit(&self.settings) && live.stands_on(ground))
            });
            match here {
                Ok(live) => {
                    return Ok(self.lent(slot, kind, Hold::Shared { live, _shares: shares }));
                }
                // Nobody can change a place that is being read.
                Err(place) => drop(place),
            }
            let mut place = slot.place.clone().write_owned().await;
            self.furnish(&mut place, kind, Access::Shared, ground, files).await?;
        }
    }

    async fn lease_alone(
        &self,
        kind: Kind,
        access: Access,
        ground: &Arc<Ground>,
        files: &DiskFiles,
    ) -> Result<Lease, Failure> {
        let kind = self.placed(kind, access, ground);
        let slot = self.asked(kind);
        slot.turns.nobody_shares().await;
        let mut place = slot.place.clone().write_owned().await;
        self.furnish(&mut place, kind, access, ground, files).await?;
        let live = OwnedRwLockWriteGuard::map(place, |live| {
            live.as_mut().expect("because the place was just furnished with a server")
        });
        let renew = live.asked().since_renewal;
        if renew {
            live.server.client.renew()?;
        }
        Ok(self.lent(slot, kind, Hold::Alone(live)))
    }

    /// Notes a question in the place that it is asked in.
    fn asked(&self, kind: Kind) -> Arc<Slot> {
        let slot = self.slot(kind);
        slot.asked.fetch_add(1, Ordering::Relaxed);
        slot.turn.store(self.turn.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        slot
    }

    /// Puts a server that stands on `ground` into a place, unless there is one that can be brought to it.
    async fn furnish(
        &self,
        place: &mut Option<Live>,
        kind: Kind,
        access: Access,
        ground: &Arc<Ground>,
        files: &DiskFiles,
    ) -> Result<(), Failure> {
        let stays = match place.as_mut() {
            Some(live) if access == Access::Pristine && live.asked().ever => false,
            Some(live) if access == Access::Unmoved && live.is_moved(ground) => false,
            Some(live) => live.is_fit(&self.settings) && live.bring_to(ground, files)?,
            None => false,
        };
        if !stays {
            let old = place.take();
            let heir = old.as_ref().filter(|old| old.stands_on(ground) && old.has_words());
            let heir = heir.map(|old| old.identity.clone());
            if let Some(old) = old {
                tokio::spawn(old.server.stop());
            }
            self.make_room(kind);
            let live = Live::on(&self.settings, kind, ground).await?;
            *place = Some(match heir {
                Some(identity) => Live { identity, ..live },
                None => live,
            });
        }
        Ok(())
    }

    fn lent(&self, slot: Arc<Slot>, kind: Kind, hold: Hold) -> Lease {
        let asked = Asked { ever: true, since_renewal: true };
        let before = std::mem::replace(&mut *hold.live().asked(), asked);
        self.lease_of(slot, kind, hold, Memory::Off, !before.ever)
    }

    fn lease_of(&self, slot: Arc<Slot>, kind: Kind, hold: Hold, memory: Memory, pristine: bool) -> Lease {
        Lease {
            kind,
            hold: Some(hold),
            slot,
            used: Mutex::default(),
            resident: self.resident,
            pristine,
            ended: AtomicBool::new(false),
            settings: self.settings.clone(),
            tape: Tape::off(),
            memory,
        }
    }

    /// What is running. A server that is being asked alone is busy and tells only what does not change.
    pub(super) fn report(&self) -> Report {
        let slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let report = |slot: &Arc<Slot>| {
            let place = slot.place.try_read().ok()?;
            place.as_ref().filter(|live| live.server.client.is_alive()).map(Live::report)
        };
        Report { servers: slots.values().filter_map(report).collect() }
    }

    /// Ends the servers; whoever still asks one gets no answer.
    pub(super) async fn close(&self) {
        self.kept.clear();
        self.second.give_up().await;
        let slots = std::mem::take(&mut *self.slots.lock().unwrap_or_else(PoisonError::into_inner));
        for slot in slots.into_values() {
            // One that is being asked ends with the asker's lease.
            if let Ok(mut place) = slot.place.try_write()
                && let Some(live) = place.take()
            {
                live.server.stop().await;
            }
        }
    }
}

/// A server that is being started.
#[derive(Debug)]
pub(super) struct Starting {
    task: JoinHandle<Result<(), Failure>>,
    slot: Arc<Slot>,
    /// Whether somebody leased it.
    wanted: bool,
}

impl Starting {
    /// Waits for its start.
    pub(super) async fn started(&mut self) -> Result<(), Failure> {
        // An error of the task itself is a panic: then there is no server, and whoever asks for one starts it.
        (&mut self.task).await.unwrap_or(Ok(()))
    }

    /// Somebody leased it: it stays.
    pub(super) fn leased(mut self) {
        self.wanted = true;
    }
}

impl Drop for Starting {
    fn drop(&mut self) {
        if self.wanted {
            return;
        }
        self.task.abort();
        // One that has started enumerates what is there now, and nobody looks at what that is.
        let slot = self.slot.clone();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                let mut place = slot.place.write().await;
                place.take_if(|live| live.ground.is_none());
            });
        }
    }
}
