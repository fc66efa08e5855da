//! The engine of one workspace: what all requests share. [`super::run`] answers them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::blocking::blocking;
use super::inputs::{InputScanner, Inputs, Tools};
use super::memo::Memo;
use super::pool::{Pool, WorkerKind};
use super::report::RunningServers;
use super::scan_throttle::PendingGuard;
use super::server::Server;
use super::settings::{Progress, Settings};
use super::single_flight::SingleFlight;
use crate::model::request::Request;
use crate::model::server::ServerKind;
use crate::tape::Tape;

/// Answers requests about one workspace. Keeps servers and scans for later requests. Clones share them.
#[derive(Clone)]
pub struct Engine {
    pub(crate) settings: Arc<Settings>,
    pub(super) shared: Arc<Shared>,
}

/// What all clones of an engine share.
pub(super) struct Shared {
    pub(super) scanner: InputScanner,
    pub(super) pool: Pool,
    pub(super) memo: Option<Memo>,
    pub(super) single_flight: SingleFlight,
    /// Whether more than one request is expected.
    pub(super) resident: bool,
    /// Whether many requests run at a time.
    is_concurrent: bool,
    /// Engines for other kinds of servers, whose opinion was asked.
    others: Mutex<BTreeMap<ServerKind, Engine>>,
}

impl Engine {
    /// An engine for many requests. [`Self::close`] stops the servers that they started.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self::with(settings, true, false)
    }

    /// An engine for many concurrent requests, tuned for throughput instead of the latency of each.
    #[must_use]
    pub fn for_many(settings: Settings) -> Self {
        Self::with(settings, true, true)
    }

    /// An engine for one request: its server shuts down while the workspace is scanned for the last time.
    #[must_use]
    pub fn for_one(settings: Settings) -> Self {
        Self::with(settings, false, false)
    }

    fn with(settings: Settings, resident: bool, concurrent: bool) -> Self {
        let settings = Arc::new(settings);
        let shared = Shared {
            scanner: InputScanner::new(&settings, concurrent),
            pool: Pool::new(settings.clone(), resident, concurrent),
            memo: Memo::of(&settings),
            single_flight: SingleFlight::default(),
            resident,
            is_concurrent: concurrent,
            others: Mutex::default(),
        };
        Self { settings, shared: Arc::new(shared) }
    }

    /// The same engine for another caller, with its own timeout, verbosity and progress sink.
    #[must_use]
    pub fn for_caller(&self, timeout: Duration, verbose: bool, progress: Arc<dyn Progress>) -> Self {
        let settings = Settings { timeout, verbose, progress, ..(*self.settings).clone() };
        Self { settings: Arc::new(settings), shared: self.shared.clone() }
    }

    /// Scans the workspace and starts the server that a first request most likely needs, unless one is running.
    /// Errors are not reported here but by the first request, and a server that has to be installed is installed by
    /// the first request.
    pub async fn warm_up(&self) {
        let (settings, environment_cache, began) =
            (self.settings.clone(), self.shared.scanner.environment_cache.clone(), Instant::now());
        let Ok(Ok(tools)) = blocking(move || Tools::find(&settings, &environment_cache, false)).await else {
            return;
        };
        if let Ok(inputs) = self.shared.scanner.scan_since(began, &self.settings, Some(tools)).await {
            let _ = self.shared.pool.warm_up(WorkerKind::usual(), &inputs).await;
        }
    }

    /// The engine for another kind of server: of its default version, for the same workspace.
    pub(super) fn other_engine(&self, kind: ServerKind) -> Self {
        let mut others = self.shared.others.lock().unwrap_or_else(PoisonError::into_inner);
        let start = || {
            let settings = Settings {
                server: kind,
                server_version: None,
                server_command: None,
                // Its answers are recorded as such.
                trace: None,
                ..(*self.settings).clone()
            };
            Self::with(settings, self.shared.resident, self.shared.is_concurrent)
        };
        others.entry(kind).or_insert_with(start).clone()
    }

    fn others(&self) -> Vec<Self> {
        self.shared.others.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// The inputs of the last scan.
    pub(super) fn last_inputs(&self) -> Option<Arc<Inputs>> {
        self.shared.scanner.last()
    }

    /// Stops the servers.
    pub async fn close(&self) {
        for other in self.others() {
            other.shared.pool.close().await;
        }
        self.shared.pool.close().await;
    }

    /// Adopts a running server for requests of this kind.
    pub(super) fn adopt_server(&self, request: &Request, server: Server, inputs: &Arc<Inputs>) {
        self.shared.pool.adopt(WorkerKind::of(request, self.settings.server), server, inputs);
    }

    pub(super) fn tape(&self) -> Tape {
        if self.settings.trace.is_some() { Tape::recording() } else { Tape::off() }
    }

    /// Announces that more requests are coming, until the returned guard is dropped.
    #[must_use]
    pub fn pending_guard(&self) -> PendingGuard {
        self.shared.scanner.throttle.pending_guard()
    }

    /// The running servers.
    #[must_use]
    pub fn report(&self) -> RunningServers {
        let mut running = self.shared.pool.report();
        running.servers.extend(self.others().iter().flat_map(|other| other.shared.pool.report().servers));
        running
    }
}
