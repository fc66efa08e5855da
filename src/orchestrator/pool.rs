//! The servers that are alive, and who may ask them.
//!
//! A server stands on one [`Ground`]. Whoever asks takes a [`Lease`], for which the server is brought to the asker's
//! ground: by announcing changed contents, or by starting it anew where that would not give the answers of a fresh server
//! (see [`Ground::step_to`]).
//!
//! What Pyright infers can depend on what it was asked before. So a question whose answer rests on inferred types has the
//! server for itself, and finds nothing inferred but by itself ([`Access::Alone`]). The definition of a plain name rests on
//! none and is asked beside others on what there is ([`Access::Shared`]). A server is renewed when a question that had it
//! for itself is over, and when nobody asks for a moment, so that the next question need not wait for that.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedRwLockMappedWriteGuard, OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};
use tokio::task::JoinHandle;

use super::Settings;
use super::failure::Failure;
use super::ground::{Ground, Step, Tools};
use super::report::{Report, ServerReport};
use super::server::Server;
use crate::digest::Digest;
use crate::lsp::tape::shown;
use crate::lsp::{ChangeKind, FileChange, Profile};
use crate::model::request::{Command, Request, Scope};
use crate::model::server::ServerKind;
use crate::path::AbsPath;
use crate::tape::Tape;
use crate::workspace::files::{DiskFiles, Document, Files as _};

/// How long nobody asks before a server is renewed.
const QUIET: Duration = Duration::from_millis(40);

/// How long a renewed server may take to infer what nearly every question needs.
const PREPARING: Duration = Duration::from_secs(5);

/// How long a server may still work on a question that nobody waits for any more.
const SETTLING: Duration = Duration::from_secs(5);

/// How many servers stay for questions to come.
const MOST_SERVERS: usize = 2;

/// How many documents stay open for questions to come.
const MOST_OPEN: usize = 512;

/// What a server is for. Servers of different kinds are different processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Kind {
    /// Whether it pulls diagnostics: some servers can do that only when they do not hear of cancellations
    /// (see [`crate::lsp::Profile::pulls_when_cancellable`]).
    pub(super) pulls: bool,
    /// Which files it is shown: one that was shown more would find uses in them.
    configured: bool,
}

impl Kind {
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
}

type Place = RwLock<Option<Live>>;

#[derive(Debug, Default)]
struct Slot {
    place: Arc<Place>,
    /// How many questions began: to notice that nobody asked for a while.
    asked: AtomicU64,
    /// The pool's turn of the last one.
    turn: AtomicU64,
}

/// A running server and what it believes.
#[derive(Debug)]
struct Live {
    server: Server,
    /// `None` until it is asked for the first time.
    ground: Option<Arc<Ground>>,
    /// The ground on which it was asked for the first time.
    born: Option<Arc<Ground>>,
    opened: Mutex<BTreeMap<AbsPath, Opened>>,
    /// Whether anything was asked since it was started, and since it was renewed.
    asked: Mutex<Asked>,
    /// Whether it did not answer in time.
    hung: AtomicBool,
    /// Whether it was shown documents as they might become.
    speculated: AtomicBool,
}

#[derive(Debug, Clone, Copy, Default)]
struct Asked {
    ever: bool,
    since_renewal: bool,
}

/// A document that is open on the server.
#[derive(Debug)]
struct Opened {
    /// Of the content that the server was told.
    digest: Digest,
    /// How many leases need it.
    users: usize,
    /// Of its last use; the least goes first.
    turn: u64,
}

impl Pool {
    pub(super) fn new(settings: Arc<Settings>, resident: bool) -> Self {
        Self { settings, slots: Mutex::default(), turn: AtomicU64::new(0), resident }
    }

    fn slot(&self, kind: Kind) -> Arc<Slot> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner).entry(kind).or_default().clone()
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
            let mut live = Live::start(&self.settings, kind, &ground.tools).await?;
            live.ground = Some(ground.clone());
            live.born = Some(ground.clone());
            *place = Some(live);
        }
        Ok(())
    }

    /// Puts a server that runs already in its place; it stands on `ground`.
    pub(super) async fn seat(&self, kind: Kind, server: Server, ground: &Arc<Ground>) {
        let (hung, speculated) = (AtomicBool::new(false), AtomicBool::new(false));
        let (opened, asked) = (Mutex::default(), Mutex::default());
        let (ground, born) = (Some(ground.clone()), Some(ground.clone()));
        let live = Live { server, ground, born, opened, asked, hung, speculated };
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
            if running >= MOST_SERVERS
                && let Ok(mut place) = slot.place.try_write()
                && let Some(live) = place.take()
            {
                tokio::spawn(live.server.stop());
                running -= 1;
            }
        }
    }

    /// A server that stands on `ground`, for one question.
    pub(super) async fn lease(
        &self,
        kind: Kind,
        access: Access,
        ground: &Arc<Ground>,
        files: &DiskFiles,
    ) -> Result<Lease, Failure> {
        let slot = self.slot(kind);
        slot.asked.fetch_add(1, Ordering::Relaxed);
        slot.turn.store(self.turn.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        loop {
            if access == Access::Shared {
                let place = slot.place.clone().read_owned().await;
                let here = OwnedRwLockReadGuard::try_map(place, |live| {
                    live.as_ref().filter(|live| live.is_fit(&self.settings) && live.stands_on(ground))
                });
                if let Ok(live) = here {
                    return Ok(self.lent(slot, Hold::Shared(live)));
                }
            }
            let mut place = slot.place.clone().write_owned().await;
            let stays = match place.as_mut() {
                Some(live) if access == Access::Pristine && live.asked().ever => false,
                Some(live) if access == Access::Unmoved && live.is_moved(ground) => false,
                Some(live) => live.is_fit(&self.settings) && live.bring_to(ground, files)?,
                None => false,
            };
            if !stays {
                if let Some(old) = place.take() {
                    tokio::spawn(old.server.stop());
                }
                self.make_room(kind);
                let mut live = Live::start(&self.settings, kind, &ground.tools).await?;
                live.ground = Some(ground.clone());
                live.born = Some(ground.clone());
                *place = Some(live);
            }
            if access == Access::Shared {
                continue;
            }
            let Ok(live) = OwnedRwLockWriteGuard::try_map(place, Option::as_mut) else { continue };
            let renew = live.asked().since_renewal;
            if renew {
                live.server.client.renew()?;
            }
            return Ok(self.lent(slot, Hold::Alone(live)));
        }
    }

    fn lent(&self, slot: Arc<Slot>, hold: Hold) -> Lease {
        let asked = Asked { ever: true, since_renewal: true };
        let before = std::mem::replace(&mut *hold.live().asked(), asked);
        let (resident, pristine) = (self.resident, !before.ever);
        let settings = self.settings.clone();
        let ended = AtomicBool::new(false);
        Lease {
            hold: Some(hold),
            slot,
            used: Mutex::default(),
            resident,
            pristine,
            ended,
            settings,
            tape: Tape::off(),
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

impl Live {
    async fn start(settings: &Arc<Settings>, kind: Kind, tools: &Tools) -> Result<Self, Failure> {
        let interpreter = tools.python.as_ref().map(|python| python.interpreter.clone());
        let server = Server::start(settings.clone(), tools.found.clone()?, interpreter, !kind.pulls).await?;
        let (hung, speculated) = (AtomicBool::new(false), AtomicBool::new(false));
        let (opened, asked) = (Mutex::default(), Mutex::default());
        Ok(Self { server, ground: None, born: None, opened, asked, hung, speculated })
    }

    /// Whether it can be asked.
    fn is_fit(&self, settings: &Settings) -> bool {
        let answers = self.server.client.is_alive() && !self.hung.load(Ordering::Relaxed);
        answers && !self.is_exhausted(settings)
    }

    /// Whether it takes more memory than it may.
    fn is_exhausted(&self, settings: &Settings) -> bool {
        self.server.client.memory().is_some_and(|bytes| bytes > settings.session_memory)
    }

    fn report(&self) -> ServerReport {
        let client = &self.server.client;
        let identity = client.identity();
        ServerReport {
            name: identity.name,
            version: identity.version.unwrap_or_else(|| self.server.found.version.clone()),
            pid: client.process_id().unwrap_or_default(),
            memory_bytes: client.memory(),
            documents: self.opened().len(),
        }
    }

    fn stands_on(&self, ground: &Arc<Ground>) -> bool {
        self.ground.as_ref().is_some_and(|mine| Arc::ptr_eq(mine, ground))
    }

    /// Whether it was asked on another ground before.
    fn is_moved(&self, ground: &Arc<Ground>) -> bool {
        self.born.as_ref().is_some_and(|born| !Arc::ptr_eq(born, ground))
    }

    /// Makes the server believe what `ground` says; `false` when only a new one will.
    fn bring_to(&mut self, ground: &Arc<Ground>, files: &DiskFiles) -> Result<bool, Failure> {
        let step = match &self.ground {
            // It was started a moment ago and has read no source yet.
            None => Step::Contents(Vec::new()),
            Some(mine) if Arc::ptr_eq(mine, ground) => return Ok(true),
            // What it makes of a change on top of what it was only shown, nobody has to find out.
            Some(_) if self.speculated.load(Ordering::Relaxed) => return Ok(false),
            Some(mine) => mine.step_to(ground),
        };
        let Step::Contents(changed) = step else { return Ok(false) };
        let client = &self.server.client;
        let mut opened = self.opened();
        for (path, document) in opened.iter_mut() {
            if ground.holds(path, Some(document.digest)) == Some(true) {
                continue;
            }
            let Ok(now) = files.read(path) else { return Ok(false) };
            // Another one than the ground says: it is being written right now.
            if ground.holds(path, Some(now.digest)) == Some(false) {
                return Ok(false);
            }
            if now.digest != document.digest {
                client.change(path, &now.text)?;
                document.digest = now.digest;
            }
        }
        let unopened = changed.into_iter().filter(|path| !opened.contains_key(path));
        let changes: Vec<_> = unopened.map(|path| FileChange { path, kind: ChangeKind::Changed }).collect();
        if !changes.is_empty() {
            client.did_change_watched_files(&changes)?;
        }
        drop(opened);
        // Whether a changed file makes the server forget what it inferred depends on whether it had read it.
        self.asked().since_renewal = true;
        self.ground = Some(ground.clone());
        self.born.get_or_insert_with(|| ground.clone());
        Ok(true)
    }

    fn opened(&self) -> MutexGuard<'_, BTreeMap<AbsPath, Opened>> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn asked(&self) -> MutexGuard<'_, Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
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

/// The right to ask a server.
pub(super) struct Lease {
    /// Only gone while it is dropped.
    hold: Option<Hold>,
    slot: Arc<Slot>,
    /// The documents that this question needs open.
    used: Mutex<BTreeSet<AbsPath>>,
    resident: bool,
    /// Whether nobody asked the server before.
    pristine: bool,
    /// Whether the question came to its end, so that the server works on nothing of it any more.
    ended: AtomicBool,
    settings: Arc<Settings>,
    /// What notes which documents the server is shown.
    tape: Tape,
}

#[derive(Debug)]
enum Hold {
    Shared(OwnedRwLockReadGuard<Option<Live>, Live>),
    Alone(OwnedRwLockMappedWriteGuard<Option<Live>, Live>),
}

impl Hold {
    fn live(&self) -> &Live {
        match self {
            Self::Shared(live) => live,
            Self::Alone(live) => live,
        }
    }
}

impl Lease {
    /// The same lease, noted on a tape.
    pub(super) fn on(mut self, tape: &Tape) -> Self {
        self.tape = tape.clone();
        self
    }

    /// How long an answer is waited for: a server that has answered before has read the workspace, and gets half the time.
    pub(super) fn patience(&self, settings: &Settings) -> Duration {
        if self.pristine { settings.timeout } else { settings.timeout / 2 }
    }

    /// Whether nobody asked the server before.
    pub(super) const fn is_pristine(&self) -> bool {
        self.pristine
    }

    fn live(&self) -> &Live {
        self.hold.as_ref().expect("it is there until the lease is dropped").live()
    }

    /// The server did not answer in time: nobody is to ask it again.
    pub(super) fn hung(&self) {
        self.live().hung.store(true, Ordering::Relaxed);
    }

    /// The server is shown documents as they might become: it stays on this ground.
    pub(super) fn speculates(&self) {
        self.live().speculated.store(true, Ordering::Relaxed);
    }

    /// The server was shown what it cannot forget: nobody is to ask it again.
    pub(super) fn retire(&self) {
        self.live().hung.store(true, Ordering::Relaxed);
    }

    /// The question was answered, or the server said that it has no answer.
    pub(super) fn ended(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }

    /// Makes a document known to the server for as long as this question lasts.
    pub(super) fn open(&self, document: &Document) -> Result<(), Failure> {
        let live = self.live();
        let mut opened = live.opened();
        let turn = self.slot.asked.load(Ordering::Relaxed);
        let first = self.used().insert(document.path.clone());
        if opened.get(&document.path).is_none_or(|known| known.digest != document.digest) {
            shown(&self.tape, &document.path, &document.digest);
        }
        match opened.get_mut(&document.path) {
            Some(known) => {
                known.users += usize::from(first);
                known.turn = turn;
                if known.digest != document.digest {
                    live.server.client.change(&document.path, &document.text)?;
                    known.digest = document.digest;
                }
            }
            None => {
                live.server.client.open(&document.path, &document.text)?;
                opened.insert(document.path.clone(), Opened { digest: document.digest, users: 1, turn });
            }
        }
        Ok(())
    }

    /// The document is not needed any more.
    pub(super) fn release(&self, path: &AbsPath) -> Result<(), Failure> {
        if self.used().remove(path) {
            self.give_back(&BTreeSet::from([path.clone()]))?;
        }
        Ok(())
    }

    /// The documents that this question needs open.
    pub(super) fn used(&self) -> MutexGuard<'_, BTreeSet<AbsPath>> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a use less of each document. What no fresh server would know, and what is too much, is closed.
    fn give_back(&self, paths: &BTreeSet<AbsPath>) -> Result<(), Failure> {
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
        if !self.resident {
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
            if !alone {
                tokio::time::sleep(QUIET).await;
            }
            if slot.asked.load(Ordering::Relaxed) == turn {
                renew(&slot, &settings).await;
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

/// Renews a server that nobody asks; one that takes too much memory is ended.
async fn renew(slot: &Slot, settings: &Settings) {
    let Ok(mut place) = slot.place.try_write() else { return };
    let Some(live) = place.as_mut() else { return };
    if live.is_exhausted(settings) {
        let ended = place.take();
        drop(place);
        if let Some(ended) = ended {
            ended.server.stop().await;
        }
        return;
    }
    let used = std::mem::take(&mut live.asked().since_renewal);
    if used && live.server.client.renew().is_ok() {
        let prepared = live.server.client.prepare(PREPARING);
        drop(place);
        prepared.await;
    }
}
