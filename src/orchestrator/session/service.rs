//! The session proper: takes callers, gives each its answers, and knows when to go.
//!
//! Everything happens on one thread, because servers die with the thread that started them. A caller that does not read
//! holds nobody up: what it is told goes through a channel to a task of its own. A caller that goes away cancels its
//! question and nobody else's.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener as StdListener;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::getpgrp;
use tokio::net::unix::pipe;
use tokio::net::{UnixListener, UnixStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::task::LocalSet;
use tokio::time::{Instant, timeout};

use super::daemon::{Orders, clean_up};
use super::key::{Identity, Key, Terms};
use super::place::{Card, LifeLock, is_own};
use super::wire::{Ask, Head, Hello, Inbox, MAX_ANSWER, MAX_REQUEST, PROTOCOL, Status, Told, Wants, send};
use crate::model::bundle::Bundle;
use crate::orchestrator::stall::Heart;
use crate::orchestrator::{Orchestrator, Progress, Settings};
use crate::path::AbsPath;

/// How long a caller may take to say what it wants.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long one step of its work may take, during which it hears nobody.
const MOST_STEP: Duration = Duration::from_secs(60);

/// How long a caller may take to read a message.
const READING: Duration = Duration::from_secs(60);

/// How often a caller that waits is told that somebody is there.
const PULSE: Duration = Duration::from_secs(1);

/// How often it is looked whether workspace, program and socket are still the same.
const LOOK: Duration = Duration::from_secs(10);

/// How long questions that are being answered may take when somebody wants the session to leave.
const GRACE: Duration = Duration::from_secs(5);

/// How long they may take when it leaves by itself.
const LEISURE: Duration = Duration::from_secs(120);

/// How long the servers may take to end, and the runtime folder to be unlocked.
const ENDING: Duration = Duration::from_secs(5);

/// How long it takes at most to tell a caller that it is given up.
const FAREWELL: Duration = Duration::from_millis(50);

/// How long a session stays to which nobody has said how long.
const UNASKED: Duration = Duration::from_secs(60);

/// Questions of one caller that are read before they are answered.
const QUEUE: usize = 64;

/// Messages that wait for a caller to read them; more of them are not worth telling.
const UNREAD: usize = 64;

/// How far the session is on its way out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    /// It takes callers.
    Serving,
    /// It should go.
    Asked,
    /// Nobody finds it any more; what was begun is finished.
    Leaving,
    /// What is not finished is given up.
    Over,
}

/// What all connections share.
struct Session {
    orders: Orders,
    /// What this program was when the session began.
    executable: Identity,
    socket: Identity,
    served: RefCell<Option<Served>>,
    phase: watch::Sender<Phase>,
    asking: Cell<u64>,
    answered: Cell<u64>,
    began: Instant,
    /// When the last answer was given.
    last: Cell<Instant>,
    /// When there is another time at which the session may have become superfluous.
    changed: Notify,
    card: RefCell<LifeLock>,
}

/// What the first caller asked the session to be.
#[derive(Clone)]
struct Served {
    orchestrator: Orchestrator,
    root: AbsPath,
    /// The folder that the workspace was.
    folder: Identity,
    terms: Terms,
    /// As they are typed.
    options: Vec<String>,
}

/// Counts a question as long as it is being answered.
struct Asking(Rc<Session>);

/// What goes to a caller.
enum Out {
    Told(Told),
    /// With whom to tell that it was written.
    Answer(Head, Vec<u8>, oneshot::Sender<()>),
}

/// Runs the session until its end.
pub(super) fn run(orders: &Orders, listener: StdListener, supervisor: OwnedFd) -> io::Result<()> {
    // Standard error is nowhere; a defect ends one connection, and its caller answers by itself.
    std::panic::set_hook(Box::new(|_| {}));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let heart = Heart::default();
    // Whoever waits for it has answered by himself long since; what runs on would only be in the way.
    heart.guard(MOST_STEP, std::future::pending::<()>, |_| 1);
    let done = LocalSet::new().block_on(&runtime, async {
        heart.beat();
        serve(orders, listener, supervisor).await
    });
    heart.end();
    // What still runs in the background must not hold the end up.
    runtime.shutdown_background();
    done
}

async fn serve(orders: &Orders, listener: StdListener, supervisor: OwnedFd) -> io::Result<()> {
    let executable = Identity::of(orders.executable.as_path())?;
    let socket = Identity::of(orders.place.socket(&orders.key).as_path())?;
    listener.set_nonblocking(true)?;
    let listener = UnixListener::from_std(listener)?;
    let supervisor = pipe::Receiver::from_owned_fd(supervisor)?;
    let home = orders.place.home(&orders.key, &orders.nonce);
    let card = {
        let lock = orders.place.lock(ENDING).await.ok_or(io::ErrorKind::TimedOut)?;
        LifeLock::create(&home, &lock)?
    };
    let session = Rc::new(Session {
        orders: orders.clone(),
        executable,
        socket,
        served: RefCell::new(None),
        phase: watch::channel(Phase::Serving).0,
        asking: Cell::new(0),
        answered: Cell::new(0),
        began: Instant::now(),
        last: Cell::new(Instant::now()),
        changed: Notify::new(),
        card: RefCell::new(card),
    });
    let grace = session.take_callers(listener, supervisor).await?;
    session.leave(grace).await
}

impl Session {
    /// Takes callers until something says that the session should go, and how long it may take for that.
    async fn take_callers(
        self: &Rc<Self>,
        listener: UnixListener,
        supervisor: pipe::Receiver,
    ) -> io::Result<Duration> {
        let (mut terminated, mut interrupted, mut hung_up) = (
            signal(SignalKind::terminate())?,
            signal(SignalKind::interrupt())?,
            signal(SignalKind::hangup())?,
        );
        let mut phase = self.phase.subscribe();
        // Also under callers that never cease.
        let mut look_at = Instant::now() + LOOK;
        loop {
            let next_look = look_at.saturating_duration_since(Instant::now()).min(self.until_next_look());
            tokio::select! {
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => drop(tokio::task::spawn_local(self.clone().hear(stream))),
                    // Out of descriptors, most likely: the next may be luckier.
                    Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
                },
                _ = terminated.recv() => return Ok(GRACE),
                _ = interrupted.recv() => return Ok(GRACE),
                _ = hung_up.recv() => return Ok(GRACE),
                // Nothing is ever written there.
                _ = supervisor.readable() => return Ok(LEISURE),
                _ = phase.wait_for(|phase| *phase > Phase::Serving) => return Ok(GRACE),
                () = self.changed.notified() => {}
                () = tokio::time::sleep(next_look) => {
                    look_at = Instant::now() + LOOK;
                    if self.is_superfluous() {
                        return Ok(LEISURE);
                    }
                }
            }
        }
    }

    /// The time until the session may have become superfluous.
    fn until_next_look(&self) -> Duration {
        match self.asking.get() {
            0 => LOOK.min(self.idle_limit().saturating_sub(self.last.get().elapsed())),
            _ => LOOK,
        }
    }

    fn idle_limit(&self) -> Duration {
        self.served.borrow().as_ref().map_or(UNASKED, |served| served.terms.idle)
    }

    /// Whether nobody has any use for the session, now or later.
    fn is_superfluous(&self) -> bool {
        let idle = self.asking.get() == 0 && self.last.get().elapsed() >= self.idle_limit();
        idle || !self.is_itself()
            || !self.executable.is_at(self.orders.executable.as_path())
            || !self.socket.is_at(self.orders.place.socket(&self.orders.key).as_path())
    }

    /// Whether the workspace is the folder that it was.
    fn is_itself(&self) -> bool {
        let served = self.served.borrow();
        served.as_ref().is_none_or(|served| served.folder.is_at(served.root.as_path()))
    }

    /// Says that the session should go, and waits until no new caller finds it.
    async fn go(&self) {
        self.phase.send_if_modified(|phase| {
            let serving = *phase == Phase::Serving;
            if serving {
                *phase = Phase::Asked;
            }
            serving
        });
        self.reached(Phase::Leaving).await;
    }

    async fn reached(&self, phase: Phase) {
        // The sender is in `self`.
        let _ = self.phase.subscribe().wait_for(|now| *now >= phase).await;
    }

    /// Takes the socket away, finishes what was begun, ends the servers and removes what is left. The listener is closed
    /// already: who was still in its backlog starts another session.
    async fn leave(&self, grace: Duration) -> io::Result<()> {
        let socket = self.orders.place.socket(&self.orders.key);
        if let Some(_lock) = self.orders.place.lock(ENDING).await
            && self.socket.is_at(socket.as_path())
        {
            let _ = std::fs::remove_file(socket.as_path());
        }
        self.phase.send_replace(Phase::Leaving);
        let finished = async {
            while self.asking.get() > 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        // Who is in a hurry can still say so.
        let mut terminated = signal(SignalKind::terminate())?;
        let finished = tokio::select! {
            () = finished => true,
            () = tokio::time::sleep(grace) => false,
            _ = terminated.recv() => false,
        };
        self.phase.send_replace(Phase::Over);
        if !finished {
            // Those that are given up are told so.
            tokio::time::sleep(FAREWELL).await;
        }
        let served = self.served.borrow_mut().take();
        if let Some(served) = served {
            let _ = timeout(ENDING, served.orchestrator.close()).await;
        }
        clean_up(&self.orders, &self.socket)
    }

    /// One connection.
    async fn hear(self: Rc<Self>, stream: UnixStream) {
        if !is_own(&stream) {
            return;
        }
        let (read, mut write) = stream.into_split();
        let mut inbox = Inbox::new(read, MAX_REQUEST);
        let Ok(Ok(Some(hello))) = timeout(PATIENCE, inbox.message::<Hello>()).await else { return };
        let (sender, mut receiver) = mpsc::channel(UNREAD);
        tokio::task::spawn_local(async move {
            while let Some(out) = receiver.recv().await {
                let wrote = async {
                    match out {
                        Out::Told(told) => send(&mut write, &serde_json::to_vec(&told)?).await,
                        Out::Answer(head, bundle, written) => {
                            send(&mut write, &serde_json::to_vec(&Told::Answer(head))?).await?;
                            send(&mut write, &bundle).await?;
                            // Nobody waits for it any more when the session is over.
                            let _ = written.send(());
                            Ok(())
                        }
                    }
                };
                if !timeout(READING, wrote).await.is_ok_and(|wrote| wrote.is_ok()) {
                    return;
                }
            }
        });
        let tell = async |told| drop(sender.send(Out::Told(told)).await);
        let refused = |why: &str, again| Told::Refused { why: why.to_owned(), again };
        if hello.protocol != PROTOCOL {
            return tell(refused("it speaks another version", false)).await;
        }
        match hello.wants {
            Wants::Status => tell(Told::Status(Box::new(self.status()))).await,
            Wants::End { if_idle } if if_idle && self.asking.get() > 0 => {
                tell(refused("it is busy", false)).await;
            }
            Wants::End { .. } => {
                tell(Told::Status(Box::new(self.status()))).await;
                self.go().await;
            }
            Wants::Answers(settings) => {
                let temp = self.orders.place.home(&self.orders.key, &self.orders.nonce).join("temp");
                let guard = Some(self.orders.executable.clone());
                let options = settings.options();
                let settings = settings.into_settings(temp, guard, Arc::new(Nobody));
                match settings.and_then(|(settings, terms)| self.served(settings, terms, options)) {
                    Some(orchestrator) => {
                        tell(Told::Welcome { pid: std::process::id() }).await;
                        if !self.answer(&orchestrator, &mut inbox, &sender).await {
                            self.warm_up(&orchestrator).await;
                        }
                    }
                    None => tell(refused("it is for other settings", false)).await,
                }
            }
        }
    }

    /// The orchestrator, made when this is the first caller. `None` when the settings are not those of this session.
    fn served(&self, settings: Settings, terms: Terms, options: Vec<String>) -> Option<Orchestrator> {
        if Key::of(&settings, terms, &self.orders.executable).ok()? != self.orders.key {
            return None;
        }
        if let Some(served) = &*self.served.borrow() {
            return Some(served.orchestrator.clone());
        }
        let root = settings.root.clone();
        let folder = Identity::of(root.as_path()).ok()?;
        let card = Card { workspace: root.to_string(), supervisor: supervisor() };
        // Without its card the session is only less well known.
        let _ = self.card.borrow_mut().tell(&card);
        let orchestrator = Orchestrator::new(settings);
        self.changed.notify_one();
        let served = Served { orchestrator: orchestrator.clone(), root, folder, terms, options };
        *self.served.borrow_mut() = Some(served);
        Some(orchestrator)
    }

    /// For a caller who asked nothing, and so came to have the session ready.
    async fn warm_up(&self, orchestrator: &Orchestrator) {
        tokio::select! {
            () = orchestrator.warm_up() => {}
            () = self.reached(Phase::Leaving) => {}
        }
    }

    /// Answers a caller's questions one after the other. Tells whether there was one.
    async fn answer(
        self: &Rc<Self>,
        orchestrator: &Orchestrator,
        inbox: &mut Inbox,
        sender: &mpsc::Sender<Out>,
    ) -> bool {
        let mut queue = VecDeque::new();
        let mut asked = false;
        loop {
            let frame = match queue.pop_front() {
                Some(frame) => frame,
                None => tokio::select! {
                    frame = inbox.frame() => match frame {
                        Ok(Some(frame)) => frame,
                        _ => return asked,
                    },
                    () = self.reached(Phase::Leaving) => return true,
                },
            };
            asked = true;
            let refuse = async |why: &str, again| {
                drop(sender.send(Out::Told(Told::Refused { why: why.to_owned(), again })).await);
            };
            let Ok(ask) = serde_json::from_slice::<Ask>(&frame) else { return asked };
            if !self.is_itself() {
                self.go().await;
                refuse("its workspace is another folder now", true).await;
                return asked;
            }
            let asking = Asking::new(self);
            let progress = Arc::new(Relay(sender.clone()));
            let orchestrator = orchestrator.for_caller(ask.timeout, ask.verbose, progress);
            let (cancel, cancelled) = oneshot::channel::<()>();
            let mut cancel = Some(cancel);
            let mut answering = pin!(orchestrator.run(ask.request, async {
                // Dropping the sender cancels as well as sending.
                let _ = cancelled.await;
            }));
            let mut pulse = tokio::time::interval_at(Instant::now() + PULSE, PULSE);
            let bundle = loop {
                tokio::select! {
                    bundle = &mut answering => break bundle,
                    frame = inbox.frame(), if cancel.is_some() && queue.len() < QUEUE => match frame {
                        Ok(Some(frame)) => queue.push_back(frame),
                        _ => drop(cancel.take()),
                    },
                    () = sender.closed(), if cancel.is_some() => drop(cancel.take()),
                    _ = pulse.tick() => drop(sender.try_send(Out::Told(Told::Alive))),
                    () = self.reached(Phase::Over) => {
                        refuse("it leaves", false).await;
                        return asked;
                    }
                }
            };
            if cancel.is_none() {
                return asked;
            }
            let bytes = match serde_json::to_vec(&bundle) {
                Ok(mut bytes) if bytes.len() < MAX_ANSWER => {
                    bytes.push(b'\n');
                    bytes
                }
                _ => {
                    refuse("the answer is too long", false).await;
                    return asked;
                }
            };
            self.answered.set(self.answered.get() + 1);
            let head = head(&bundle);
            drop(bundle);
            let (written, is_written) = oneshot::channel();
            if sender.send(Out::Answer(head, bytes, written)).await.is_err() {
                return asked;
            }
            // As long as it is not written the session stays.
            if is_written.await.is_err() {
                return asked;
            }
            drop(asking);
        }
    }

    fn status(&self) -> Status {
        let served = self.served.borrow();
        let asking = self.asking.get();
        Status {
            workspace: served.as_ref().map_or_else(String::new, |served| served.root.to_string()),
            pid: std::process::id(),
            supervisor: supervisor(),
            lanser: env!("CARGO_PKG_VERSION").to_owned(),
            age: self.began.elapsed().as_secs(),
            idle: if asking == 0 { self.last.get().elapsed().as_secs() } else { 0 },
            asking,
            answered: self.answered.get(),
            options: served.as_ref().map(|served| served.options.clone()).unwrap_or_default(),
            report: served.as_ref().map(|served| served.orchestrator.report()).unwrap_or_default(),
        }
    }
}

impl Asking {
    fn new(session: &Rc<Session>) -> Self {
        session.asking.set(session.asking.get() + 1);
        Self(session.clone())
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        self.0.asking.set(self.0.asking.get() - 1);
        self.0.last.set(Instant::now());
        self.0.changed.notify_one();
    }
}

/// The supervisor leads the process group, which this process has joined.
fn supervisor() -> Option<u32> {
    let leader = getpgrp().as_raw_nonzero().get().cast_unsigned();
    (leader != std::process::id()).then_some(leader)
}

const fn head(bundle: &Bundle) -> Head {
    let symbol = match &bundle.error {
        Some(error) => Some(error.symbol),
        None => None,
    };
    Head { exit_code: bundle.meta.exit_code, symbol }
}

/// Tells a caller of long work, unless it does not listen.
struct Relay(mpsc::Sender<Out>);

impl Progress for Relay {
    fn step(&self, text: &str) {
        let _ = self.0.try_send(Out::Told(Told::Step(text.to_owned())));
    }

    fn say(&self, text: &str) {
        let _ = self.0.try_send(Out::Told(Told::Say(text.to_owned())));
    }

    fn done(&self) {
        let _ = self.0.try_send(Out::Told(Told::Done));
    }
}

/// Whom a session tells of work that no caller asked for.
struct Nobody;

impl Progress for Nobody {
    fn step(&self, _text: &str) {}

    fn say(&self, _text: &str) {}

    fn done(&self) {}
}
