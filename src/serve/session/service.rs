//! The service: accepts clients, answers their requests, and decides when to exit.
//!
//! Everything runs on one thread, because servers die with the thread that started them. A client that does not read
//! blocks no other: its messages go through a channel to a separate task. A client that disconnects cancels only its
//! own request.

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

use super::daemon::{DaemonArgs, clean_up};
use super::key::{FileIdentity, SessionKey, SessionOptions};
use super::runtime_dir::{PidFile, SessionLock, is_same_user};
use super::wire::{
    FrameReader, Hello, Intent, MAX_REQUEST_BYTES, MAX_RESPONSE_BYTES, PROTOCOL, ResponseHeader,
    SessionMessage, SessionRequest, SessionStatus, send,
};
use crate::engine::{Engine, Progress, Settings, abandoned_work_goes_on};
use crate::model::bundle::Bundle;
use crate::path::AbsPath;
use crate::serve::watchdog::Watchdog;

/// How long a client may take to send its hello.
const HELLO_TIMEOUT: Duration = Duration::from_secs(10);

/// How long the thread may block in one step, during which no client is served.
const STALL_TIMEOUT: Duration = Duration::from_secs(60);

/// How long a client may take to read a message.
const WRITE_TIMEOUT: Duration = Duration::from_secs(60);

/// The interval of messages to a waiting client that the session is alive.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(1);

/// The interval of checks whether workspace, program and socket are still the same.
const CHECK_INTERVAL: Duration = Duration::from_secs(10);

/// How long active requests may take to finish when a client or a signal stops the session.
const REQUESTED_DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// How long active requests may take to finish when the session exits on its own.
const OWN_DRAIN_TIMEOUT: Duration = Duration::from_secs(120);

/// How long work may go on after its request has ended without it.
const ABANDONED_WORK_GRACE: Duration = Duration::from_secs(5);

/// How long the servers may take to exit, and how long to wait for the lock of the runtime folder.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// The time to send refusals to the clients whose requests are abandoned.
const REFUSAL_FLUSH_TIME: Duration = Duration::from_millis(50);

/// The idle timeout until the first client brings its own.
const UNCONFIGURED_IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// How many requests of one client are read ahead.
const MAX_QUEUED_REQUESTS: usize = 64;

/// How many messages may wait for a client to read them; further progress messages are dropped.
const MAX_UNREAD_MESSAGES: usize = 64;

/// The phases of shutting down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    /// Accepts clients.
    Serving,
    /// A client asked the session to stop.
    StopRequested,
    /// The socket is gone; active requests are finished.
    Draining,
    /// Requests that are not finished are abandoned.
    Closing,
}

/// The state that all connections share.
struct Session {
    args: DaemonArgs,
    /// Identifies the program file that this session runs.
    executable: FileIdentity,
    socket: FileIdentity,
    served: RefCell<Option<ServedWorkspace>>,
    phase: watch::Sender<Phase>,
    active_requests: Cell<u64>,
    answered: Cell<u64>,
    started_at: Instant,
    /// The time of the last response.
    last_response: Cell<Instant>,
    /// Signals that the time of the next check has changed.
    recheck: Notify,
    lock: RefCell<SessionLock>,
}

/// The workspace that the session serves, set by its first client.
#[derive(Clone)]
struct ServedWorkspace {
    engine: Engine,
    root: AbsPath,
    /// Identifies the workspace folder.
    folder: FileIdentity,
    session_options: SessionOptions,
    /// The options as typed on the command line.
    options: Vec<String>,
}

/// Counts a request as active until dropped.
struct ActiveRequest(Rc<Session>);

/// A message to a client.
enum Outgoing {
    Message(SessionMessage),
    /// The sender signals that the response was written.
    Response(ResponseHeader, Vec<u8>, oneshot::Sender<()>),
}

/// Runs the service until the session ends.
pub(super) fn run(args: &DaemonArgs, listener: StdListener, supervisor: OwnedFd) -> io::Result<()> {
    // Standard error is `/dev/null`. A panic ends one connection, and its client answers in its own process.
    std::panic::set_hook(Box::new(|_| {}));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let watchdog = Watchdog::default();
    // After so long the client has answered in its own process; blocked work would only delay others.
    watchdog.exit_on_stall(STALL_TIMEOUT, std::future::pending::<()>, |_| 1);
    let done = LocalSet::new().block_on(&runtime, async {
        watchdog.start_heartbeat();
        serve(args, listener, supervisor).await
    });
    watchdog.disarm();
    // Background work must not delay the exit.
    runtime.shutdown_background();
    done
}

async fn serve(args: &DaemonArgs, listener: StdListener, supervisor: OwnedFd) -> io::Result<()> {
    let executable = FileIdentity::of(args.executable.as_path())?;
    let socket = FileIdentity::of(args.runtime_dir.socket(&args.key).as_path())?;
    listener.set_nonblocking(true)?;
    let listener = UnixListener::from_std(listener)?;
    let supervisor = pipe::Receiver::from_owned_fd(supervisor)?;
    let session_dir = args.runtime_dir.session_dir(&args.key, &args.nonce);
    let lock = {
        let lock = args.runtime_dir.lock(CLOSE_TIMEOUT).await.ok_or(io::ErrorKind::TimedOut)?;
        SessionLock::create(&session_dir, &lock)?
    };
    let session = Rc::new(Session {
        args: args.clone(),
        executable,
        socket,
        served: RefCell::new(None),
        phase: watch::channel(Phase::Serving).0,
        active_requests: Cell::new(0),
        answered: Cell::new(0),
        started_at: Instant::now(),
        last_response: Cell::new(Instant::now()),
        recheck: Notify::new(),
        lock: RefCell::new(lock),
    });
    let grace = session.accept_connections(listener, supervisor).await?;
    session.shut_down(grace).await
}

impl Session {
    /// Accepts clients until the session should exit; returns how long active requests may take to finish.
    async fn accept_connections(
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
        let mut abandoned = pin!(abandoned_work_goes_on(ABANDONED_WORK_GRACE));
        // A fixed time, so that the check also happens when clients never pause.
        let mut check_at = Instant::now() + CHECK_INTERVAL;
        loop {
            let next_check = check_at.saturating_duration_since(Instant::now()).min(self.until_next_check());
            tokio::select! {
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => drop(tokio::task::spawn_local(self.clone().handle_connection(stream))),
                    // Most likely out of descriptors: retry a little later.
                    Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
                },
                _ = terminated.recv() => return Ok(REQUESTED_DRAIN_TIMEOUT),
                _ = interrupted.recv() => return Ok(REQUESTED_DRAIN_TIMEOUT),
                _ = hung_up.recv() => return Ok(REQUESTED_DRAIN_TIMEOUT),
                // The supervisor writes nothing: readable means closed.
                _ = supervisor.readable() => return Ok(OWN_DRAIN_TIMEOUT),
                _ = phase.wait_for(|phase| *phase > Phase::Serving) => return Ok(REQUESTED_DRAIN_TIMEOUT),
                () = &mut abandoned => return Ok(OWN_DRAIN_TIMEOUT),
                () = self.recheck.notified() => {}
                () = tokio::time::sleep(next_check) => {
                    check_at = Instant::now() + CHECK_INTERVAL;
                    if self.should_exit() {
                        return Ok(OWN_DRAIN_TIMEOUT);
                    }
                }
            }
        }
    }

    /// The time until the next check of [`Self::should_exit`].
    fn until_next_check(&self) -> Duration {
        match self.active_requests.get() {
            0 => CHECK_INTERVAL.min(self.idle_limit().saturating_sub(self.last_response.get().elapsed())),
            _ => CHECK_INTERVAL,
        }
    }

    fn idle_limit(&self) -> Duration {
        self.served
            .borrow()
            .as_ref()
            .map_or(UNCONFIGURED_IDLE_TIMEOUT, |served| served.session_options.idle_timeout)
    }

    /// Whether the session is idle for too long, or its workspace, program or socket was replaced.
    fn should_exit(&self) -> bool {
        let idle = self.active_requests.get() == 0 && self.last_response.get().elapsed() >= self.idle_limit();
        idle || !self.is_workspace_unchanged()
            || !self.executable.is_at(self.args.executable.as_path())
            || !self.socket.is_at(self.args.runtime_dir.socket(&self.args.key).as_path())
    }

    /// Whether the workspace is still the same folder.
    fn is_workspace_unchanged(&self) -> bool {
        let served = self.served.borrow();
        served.as_ref().is_none_or(|served| served.folder.is_at(served.root.as_path()))
    }

    /// Requests the stop of the session, and waits until new clients cannot find it.
    async fn request_stop(&self) {
        self.phase.send_if_modified(|phase| {
            let serving = *phase == Phase::Serving;
            if serving {
                *phase = Phase::StopRequested;
            }
            serving
        });
        self.wait_for_phase(Phase::Draining).await;
    }

    async fn wait_for_phase(&self, phase: Phase) {
        // The sender is in `self`, so this cannot fail.
        let _ = self.phase.subscribe().wait_for(|now| *now >= phase).await;
    }

    /// Removes the socket, finishes active requests, stops the servers and removes the session's files. The listener
    /// is closed already: clients in its backlog start another session.
    async fn shut_down(&self, grace: Duration) -> io::Result<()> {
        let socket = self.args.runtime_dir.socket(&self.args.key);
        if let Some(_lock) = self.args.runtime_dir.lock(CLOSE_TIMEOUT).await
            && self.socket.is_at(socket.as_path())
        {
            let _ = std::fs::remove_file(socket.as_path());
        }
        self.phase.send_replace(Phase::Draining);
        let finished = async {
            while self.active_requests.get() > 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        // A second signal ends the wait.
        let mut terminated = signal(SignalKind::terminate())?;
        let finished = tokio::select! {
            () = finished => true,
            () = tokio::time::sleep(grace) => false,
            _ = terminated.recv() => false,
        };
        self.phase.send_replace(Phase::Closing);
        if !finished {
            // Lets the refusals of abandoned requests be sent.
            tokio::time::sleep(REFUSAL_FLUSH_TIME).await;
        }
        let served = self.served.borrow_mut().take();
        if let Some(served) = served {
            let _ = timeout(CLOSE_TIMEOUT, served.engine.close()).await;
        }
        clean_up(&self.args, &self.socket)
    }

    /// Serves one connection.
    async fn handle_connection(self: Rc<Self>, stream: UnixStream) {
        if !is_same_user(&stream) {
            return;
        }
        let (read, mut write) = stream.into_split();
        let mut frames = FrameReader::new(read, MAX_REQUEST_BYTES);
        let Ok(Ok(Some(hello))) = timeout(HELLO_TIMEOUT, frames.message::<Hello>()).await else { return };
        let (sender, mut receiver) = mpsc::channel(MAX_UNREAD_MESSAGES);
        tokio::task::spawn_local(async move {
            while let Some(outgoing) = receiver.recv().await {
                let wrote = async {
                    match outgoing {
                        Outgoing::Message(message) => send(&mut write, &serde_json::to_vec(&message)?).await,
                        Outgoing::Response(head, bundle, written) => {
                            send(&mut write, &serde_json::to_vec(&SessionMessage::Response(head))?).await?;
                            send(&mut write, &bundle).await?;
                            // Fails when the session stopped waiting for it, which is fine.
                            let _ = written.send(());
                            Ok(())
                        }
                    }
                };
                if !timeout(WRITE_TIMEOUT, wrote).await.is_ok_and(|wrote| wrote.is_ok()) {
                    return;
                }
            }
        });
        let send_message = async |message| drop(sender.send(Outgoing::Message(message)).await);
        let refused = |why: &str, again| SessionMessage::Refused { why: why.to_owned(), again };
        if hello.protocol != PROTOCOL {
            return send_message(refused("it has another protocol version", false)).await;
        }
        match hello.intent {
            Intent::Status => send_message(SessionMessage::Status(Box::new(self.status()))).await,
            Intent::Stop { if_idle } if if_idle && self.active_requests.get() > 0 => {
                send_message(refused("it is busy", false)).await;
            }
            Intent::Stop { .. } => {
                send_message(SessionMessage::Status(Box::new(self.status()))).await;
                self.request_stop().await;
            }
            Intent::SendRequests(settings) => {
                let temp = self.args.runtime_dir.session_dir(&self.args.key, &self.args.nonce).join("temp");
                let guard = Some(self.args.executable.clone());
                let options = settings.options();
                let settings = settings.into_settings(temp, guard, Arc::new(NoProgress));
                match settings.and_then(|(settings, session_options)| {
                    self.engine_for(settings, session_options, options)
                }) {
                    Some(engine) => {
                        send_message(SessionMessage::Welcome { pid: std::process::id() }).await;
                        if !self.answer_requests(&engine, &mut frames, &sender).await {
                            self.warm_up(&engine).await;
                        }
                    }
                    None => send_message(refused("it is for other settings", false)).await,
                }
            }
        }
    }

    /// The engine, created for the first client. `None` when the settings are not those of this session.
    fn engine_for(
        &self,
        settings: Settings,
        session_options: SessionOptions,
        options: Vec<String>,
    ) -> Option<Engine> {
        if SessionKey::of(&settings, session_options, &self.args.executable).ok()? != self.args.key {
            return None;
        }
        if let Some(served) = &*self.served.borrow() {
            return Some(served.engine.clone());
        }
        let root = settings.root.clone();
        let folder = FileIdentity::of(root.as_path()).ok()?;
        let pid_file = PidFile { workspace: root.to_string(), supervisor: supervisor() };
        // If this fails, listings show less about the session.
        let _ = self.lock.borrow_mut().write_pid_file(&pid_file);
        let engine = Engine::new(settings);
        self.recheck.notify_one();
        let served = ServedWorkspace { engine: engine.clone(), root, folder, session_options, options };
        *self.served.borrow_mut() = Some(served);
        Some(engine)
    }

    /// Starts a server for a client that sent no request.
    async fn warm_up(&self, engine: &Engine) {
        tokio::select! {
            () = engine.warm_up() => {}
            () = self.wait_for_phase(Phase::Draining) => {}
        }
    }

    /// Answers a client's requests one after the other. Returns whether there was one.
    async fn answer_requests(
        self: &Rc<Self>,
        engine: &Engine,
        frames: &mut FrameReader,
        sender: &mpsc::Sender<Outgoing>,
    ) -> bool {
        let mut queue = VecDeque::new();
        let mut had_request = false;
        loop {
            let frame = match queue.pop_front() {
                Some(frame) => frame,
                None => tokio::select! {
                    frame = frames.frame() => match frame {
                        Ok(Some(frame)) => frame,
                        _ => return had_request,
                    },
                    () = self.wait_for_phase(Phase::Draining) => return true,
                },
            };
            had_request = true;
            let refuse = async |why: &str, again| {
                drop(
                    sender
                        .send(Outgoing::Message(SessionMessage::Refused { why: why.to_owned(), again }))
                        .await,
                );
            };
            let Ok(request) = serde_json::from_slice::<SessionRequest>(&frame) else { return had_request };
            if !self.is_workspace_unchanged() {
                self.request_stop().await;
                refuse("its workspace is another folder now", true).await;
                return had_request;
            }
            let active = ActiveRequest::new(self);
            let progress = Arc::new(ProgressRelay(sender.clone()));
            let engine = engine.for_caller(request.timeout, request.verbose, progress);
            let (cancel, cancelled) = oneshot::channel::<()>();
            let mut cancel = Some(cancel);
            let mut answering = pin!(engine.run(request.request, async {
                // Dropping the sender cancels as well as sending.
                let _ = cancelled.await;
            }));
            let mut heartbeat =
                tokio::time::interval_at(Instant::now() + HEARTBEAT_INTERVAL, HEARTBEAT_INTERVAL);
            let bundle = loop {
                tokio::select! {
                    bundle = &mut answering => break bundle,
                    frame = frames.frame(), if cancel.is_some() && queue.len() < MAX_QUEUED_REQUESTS => match frame {
                        Ok(Some(frame)) => queue.push_back(frame),
                        _ => drop(cancel.take()),
                    },
                    () = sender.closed(), if cancel.is_some() => drop(cancel.take()),
                    _ = heartbeat.tick() => drop(sender.try_send(Outgoing::Message(SessionMessage::Alive))),
                    () = self.wait_for_phase(Phase::Closing) => {
                        refuse("it is shutting down", false).await;
                        return had_request;
                    }
                }
            };
            if cancel.is_none() {
                return had_request;
            }
            let bytes = match serde_json::to_vec(&bundle) {
                Ok(mut bytes) if bytes.len() < MAX_RESPONSE_BYTES => {
                    bytes.push(b'\n');
                    bytes
                }
                _ => {
                    refuse("the answer is too long", false).await;
                    return had_request;
                }
            };
            self.answered.set(self.answered.get() + 1);
            let head = head(&bundle);
            drop(bundle);
            let (written, is_written) = oneshot::channel();
            if sender.send(Outgoing::Response(head, bytes, written)).await.is_err() {
                return had_request;
            }
            // Keeps the session from exiting before the response is written.
            if is_written.await.is_err() {
                return had_request;
            }
            drop(active);
        }
    }

    fn status(&self) -> SessionStatus {
        let served = self.served.borrow();
        let active_requests = self.active_requests.get();
        SessionStatus {
            workspace: served.as_ref().map_or_else(String::new, |served| served.root.to_string()),
            pid: std::process::id(),
            supervisor: supervisor(),
            lanser: env!("CARGO_PKG_VERSION").to_owned(),
            age: self.started_at.elapsed().as_secs(),
            idle: if active_requests == 0 { self.last_response.get().elapsed().as_secs() } else { 0 },
            active_requests,
            answered: self.answered.get(),
            options: served.as_ref().map(|served| served.options.clone()).unwrap_or_default(),
            report: served.as_ref().map(|served| served.engine.report()).unwrap_or_default(),
        }
    }
}

impl ActiveRequest {
    fn new(session: &Rc<Session>) -> Self {
        session.active_requests.set(session.active_requests.get() + 1);
        Self(session.clone())
    }
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        self.0.active_requests.set(self.0.active_requests.get() - 1);
        self.0.last_response.set(Instant::now());
        self.0.recheck.notify_one();
    }
}

/// The supervisor leads the process group of this process.
fn supervisor() -> Option<u32> {
    let leader = getpgrp().as_raw_nonzero().get().cast_unsigned();
    (leader != std::process::id()).then_some(leader)
}

const fn head(bundle: &Bundle) -> ResponseHeader {
    let symbol = match &bundle.error {
        Some(error) => Some(error.symbol),
        None => None,
    };
    ResponseHeader { exit_code: bundle.meta.exit_code, symbol }
}

/// Sends progress to a client; drops messages that the client does not read in time.
struct ProgressRelay(mpsc::Sender<Outgoing>);

impl Progress for ProgressRelay {
    fn step(&self, text: &str) {
        let _ = self.0.try_send(Outgoing::Message(SessionMessage::Step(text.to_owned())));
    }

    fn notify(&self, text: &str) {
        let _ = self.0.try_send(Outgoing::Message(SessionMessage::Notify(text.to_owned())));
    }

    fn done(&self) {
        let _ = self.0.try_send(Outgoing::Message(SessionMessage::Done));
    }
}

/// The progress sink for work without a client.
struct NoProgress;

impl Progress for NoProgress {
    fn step(&self, _text: &str) {}

    fn notify(&self, _text: &str) {}

    fn done(&self) {}
}
