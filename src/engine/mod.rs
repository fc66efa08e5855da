//! The engine: turns a request into a sealed bundle. Only this module knows the order of the steps.
//!
//! A request is answered in *attempts*. An attempt works on one set of [`inputs`], everything that the answer depends
//! on besides the request: it looks the request up in the [`memo`], resolves the selector ([`request_state`]),
//! acquires a server that is synced to the inputs ([`pool`]) and queries it ([`navigation`], [`outline`],
//! [`call_hierarchy`], [`diagnose`]). Afterwards the inputs are scanned again. If they are unchanged, the answer is
//! returned; if not, the attempt is repeated on the new inputs. An engine that has answered before therefore
//! starts at once with the inputs that it knows: the one scan after the answer proves that it is fresh.
//!
//! The documents that matter to a request are open, and no document is open that a fresh server would not know. The
//! server always enumerates its files first, because the types that Pyright infers depend on the order in which it
//! learns of files.

mod absolute_paths;
mod analyze;
mod answer;
mod ask;
mod bundle_store;
mod call_hierarchy;
mod completeness;
mod diagnose;
mod failure;
mod implementations;
mod inputs;
mod library;
mod locations;
mod memo;
mod navigation;
mod occurrences;
mod order_dependence;
mod outline;
mod pool;
mod python_env;
mod refactor;
mod references;
mod report;
pub(crate) mod request_input;
mod request_state;
mod resolution;
mod reward;
mod scan_throttle;
mod server;
mod single_flight;
mod stub_sources;
pub mod traced;
mod unresolved_imports;

use std::collections::BTreeMap;
use std::future::Future;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::bundle::portable::PathMap;
use crate::bundle::seal::{BundleDraft, seal};
use crate::edit::EditPlan;
use crate::model::bundle::{Bundle, DualCoordinates, ServedFrom, Volatile};
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::model::request::{Command, Request};
use crate::model::server::ServerKind;
use crate::path::AbsPath;
use crate::python::raise_parse_cache_limit;
use crate::reward::{MeasuredDiagnostics, measured_digest, of_bundle};
use crate::tape::Tape;
use crate::trace::writer::TraceWriter;
use crate::workspace::snapshot::ChangeDetection;
pub use absolute_paths::AbsolutePaths;
pub use analyze::{AnalyzerReport, analyzer_report, find_analyzer, install_analyzer};
use answer::{ComputedAnswer, FinalAnswer};
pub use bundle_store::stored_bundle;
use failure::Failure;
use inputs::{InputScanner, Inputs, Tools};
pub use library::{OpenError, Workspace, WorkspaceOptions};
pub(crate) use library::{cache_folder, processors, search_path, state_folder};
use memo::Memo;
pub use memo::verify_memo;
use pool::{Held, Pool, WorkerKind};
pub use python_env::{ConfigurationReport, PythonReport, configuration_report, python_report};
pub use report::{RunningServers, ServerReport};
pub use request_input::{read_selector, unknown_unit_error, validate_request};
pub use reward::{ScoreHead, StateSource, is_revision, score, supplement};
pub use scan_throttle::PendingGuard;
use server::Server;
pub use server::{tell_progress, toolchain_request};
use single_flight::SingleFlight;
use traced::record::{AnswerOrigin, record};
pub use traced::{Replay, ReplayedOperation};

/// Receives progress of long-running work.
pub trait Progress: Send + Sync {
    /// The current activity; replaces the previous one.
    fn step(&self, text: &str);
    /// A notice that should stay visible.
    fn notify(&self, text: &str);
    /// The request waits for exclusive use of a server, until the requests that share it are answered.
    fn waiting_for_exclusive(&self) {}
    /// The answer is complete; only the check that the inputs are unchanged is left.
    fn verifying(&self) {}
    /// The work has ended.
    fn done(&self);
}

/// How to answer: the workspace, the server, and where to cache.
#[derive(Clone)]
pub struct Settings {
    /// The workspace, with symbolic links resolved.
    pub root: AbsPath,
    /// The checkout of the original workspace, if this one is a copy.
    pub copy_of: Option<AbsPath>,
    /// The workspace whose virtual environment is used, if that is another one: of a copy, the original.
    pub environment_of: Option<AbsPath>,
    /// The kind of server.
    pub server: ServerKind,
    /// The server's version; `None` means the pinned one.
    pub server_version: Option<String>,
    /// The server given by the user.
    pub server_command: Option<AbsPath>,
    /// The interpreter given by the user.
    pub python: Option<AbsPath>,
    /// The time limit for each response of the server.
    pub timeout: Duration,
    /// Whether installing anything is forbidden.
    pub offline: bool,
    /// Whether programs from the checkout may be run: interpreters, servers, git filters.
    pub trust_workspace: bool,
    /// How changed files are detected.
    pub trust: ChangeDetection,
    /// Lanser's cache folder.
    pub cache: AbsPath,
    /// Whether results about the workspace are read from and written to the cache folder.
    pub keep: bool,
    /// The folder for temporary files.
    pub temp: AbsPath,
    /// This program, if it can be called again to guard a server (see [`crate::lsp::process`]).
    pub guard: Option<AbsPath>,
    /// The folders of PATH.
    pub search_path: Vec<PathBuf>,
    /// The environment variables.
    pub environment: BTreeMap<String, String>,
    /// Whether bundles contain both coordinate systems.
    pub verbose: bool,
    /// How many threads may scan and parse.
    pub threads: usize,
    /// The memory above which a session restarts a server, in bytes.
    pub session_memory: u64,
    /// Receives progress.
    pub progress: Arc<dyn Progress>,
    /// Where every operation is recorded, if anywhere. A recorded request is always computed: it neither uses the
    /// memo nor shares another request's answer.
    pub trace: Option<Arc<TraceWriter>>,
}

impl Settings {
    /// The default of [`Self::session_memory`]: 4 GiB.
    pub const SERVER_MEMORY: u64 = 4 << 30;

    /// The checkout that contains the workspace (see [`crate::workspace::root::checkout`]).
    #[must_use]
    pub fn checkout(&self) -> AbsPath {
        if let Some(checkout) = &self.copy_of {
            return checkout.clone();
        }
        let home = self.environment.get("HOME").and_then(|home| AbsPath::new(home).ok());
        crate::workspace::root::checkout(&self.root, home.as_ref())
    }
}

/// Answers requests about one workspace. Keeps servers and scans for later requests. Clones share them.
#[derive(Clone)]
pub struct Engine {
    pub(crate) settings: Arc<Settings>,
    shared: Arc<Shared>,
}

/// What all clones of an engine share.
struct Shared {
    scanner: InputScanner,
    pool: Pool,
    memo: Option<Memo>,
    single_flight: SingleFlight,
    /// Whether more than one request is expected.
    resident: bool,
    /// Whether many concurrent requests are expected.
    concurrent: bool,
}

/// The result of an attempt.
struct Attempt {
    draft: BundleDraft,
    dual: Vec<DualCoordinates>,
    /// The edits to write, if the request plans any.
    plan: Option<EditPlan>,
    /// The diagnostics from which the reward is computed.
    measured: Option<MeasuredDiagnostics>,
    /// The server's responses, to be cached if the answer turns out to be valid.
    held: Option<Held>,
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
        /// Bytes of parsed file facts to cache: many requests about many files come back to the same ones.
        const PARSED_FACTS_BYTES: usize = 64 << 20;
        raise_parse_cache_limit(PARSED_FACTS_BYTES);
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
            concurrent,
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

    /// Stops the servers.
    pub async fn close(&self) {
        self.shared.pool.close().await;
    }

    /// Adopts a running server for requests of this kind.
    async fn adopt_server(&self, request: &Request, server: Server, inputs: &Arc<Inputs>) {
        self.shared.pool.adopt(WorkerKind::of(request, self.settings.server), server, inputs).await;
    }

    fn tape(&self) -> Tape {
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
        self.shared.pool.report()
    }

    /// Answers a request. Failures are bundles, too. If `interrupted` completes first, the server is told to cancel,
    /// and the bundle has the error `E/REQUEST_CANCELLED`.
    pub async fn run(&self, request: Request, interrupted: impl Future<Output = ()>) -> Bundle {
        self.run_until(request, async {
            interrupted.await;
            cancelled()
        })
        .await
    }

    /// Like [`Self::run`]; if `interrupted` completes first, the bundle has the error that it returns.
    pub(crate) async fn run_until(
        &self,
        request: Request,
        interrupted: impl Future<Output = ErrorBody>,
    ) -> Bundle {
        // The future is large, and callers hold several of them.
        let bundle = Box::pin(self.respond(request, interrupted)).await;
        self.store(&bundle).await;
        bundle
    }

    /// Stores a bundle so that it can be found by its id.
    async fn store(&self, bundle: &Bundle) {
        if !self.settings.keep {
            return;
        }
        let (cache, bundle) = (self.settings.cache.clone(), bundle.clone());
        let storing = blocking(move || bundle_store::store(&cache, &bundle));
        if !self.shared.resident {
            // A process that ends must have written.
            let _ = storing.await;
        }
    }

    async fn respond(&self, mut request: Request, interrupted: impl Future<Output = ErrorBody>) -> Bundle {
        self.make_uri_portable(&mut request);
        let began = Instant::now();
        let mut interrupted = pin!(interrupted);
        // A transaction that an earlier process left unfinished is recovered first.
        let settings = self.settings.clone();
        let _ = blocking(move || refactor::recover(&settings)).await;
        let tape = self.tape();
        if request.cmd == Command::Undo {
            let (settings, undo_request, recording) = (self.settings.clone(), request.clone(), tape.clone());
            let draft =
                blocking(move || refactor::undo(&settings, &undo_request, &recording)).await.unwrap_or_else(
                    |failure| BundleDraft::failed(Some(request.clone()), failure.into_body(&PathMap::new())),
                );
            let bundle = rewarded(draft, None);
            let op = record(&self.settings, Some(request), AnswerOrigin::default(), &tape, &bundle);
            return self.with_volatile(bundle, Vec::new(), ServedFrom::Syntax, began, op);
        }
        let answer = tokio::select! {
            biased;
            answer = Box::pin(self.answer(&request, began)) => answer,
            error = &mut interrupted => {
                let origin = AnswerOrigin { fault: Some(error.clone()), ..AnswerOrigin::default() };
                let draft = BundleDraft::failed(Some(request.clone()), error);
                FinalAnswer::unshared(Attempt { draft, dual: Vec::new(), plan: None, measured: None, held: None }, origin)
            }
        };
        self.settings.progress.done();
        match answer {
            FinalAnswer::Cached(bundle) => {
                self.with_volatile(*bundle, Vec::new(), ServedFrom::Memo, began, None)
            }
            FinalAnswer::Shared(bundle) => (*bundle).clone(),
            FinalAnswer::Computed(computed) => {
                let ComputedAnswer { mut attempt, served_from, key, leader, origin } = *computed;
                let tape = origin.state.as_ref().map_or(tape, |state| state.tape.clone());
                // Frees the texts of the files, which are needed from here on only to record the operation.
                let origin = if self.settings.trace.is_some() {
                    origin
                } else {
                    drop(origin);
                    AnswerOrigin::default()
                };
                self.write(&request, &mut attempt, &tape).await;
                let bundle = rewarded(attempt.draft, attempt.measured);
                let op = record(&self.settings, Some(request), origin, &tape, &bundle);
                self.memo_put(key, &bundle).await;
                let bundle = self.with_volatile(bundle, attempt.dual, served_from, began, op);
                if let Some(leader) = leader {
                    leader.deliver(&bundle);
                }
                bundle
            }
        }
    }

    /// The bundle for a request that was not run.
    pub(crate) fn refused(&self, mut request: Request, error: ErrorBody) -> Bundle {
        self.make_uri_portable(&mut request);
        let bundle = rewarded(BundleDraft::failed(Some(request.clone()), error.clone()), None);
        let origin = AnswerOrigin { fault: Some(error), ..AnswerOrigin::default() };
        let op = record(&self.settings, Some(request), origin, &Tape::off(), &bundle);
        self.with_volatile(bundle, Vec::new(), ServedFrom::Syntax, Instant::now(), op)
    }

    /// The bundle for a request that could not be parsed.
    pub(crate) fn unparsable(&self, error: ErrorBody) -> Bundle {
        let mut bundle = rewarded(BundleDraft::failed(None, error.clone()), None);
        let origin = AnswerOrigin { fault: Some(error), ..AnswerOrigin::default() };
        bundle.meta.volatile.trace_op = record(&self.settings, None, origin, &Tape::off(), &bundle);
        bundle
    }

    /// Makes the URI of the request's selector portable, as in bundles.
    fn make_uri_portable(&self, request: &mut Request) {
        let paths = PathMap::new().workspace(self.settings.root.clone());
        request.map_uri(|uri| paths.absolute(uri).map_or_else(|| uri.clone(), |path| paths.uri(&path)));
    }

    /// Writes the edits that an attempt has planned, if the request asks for it and no check failed. From here on
    /// interruptions are ignored: the edit is written completely or not at all.
    async fn write(&self, request: &Request, attempt: &mut Attempt, tape: &Tape) {
        let Some(plan) = attempt.plan.take().filter(|_| request.writes()) else { return };
        if attempt.draft.error.is_some() || plan.changes().is_empty() {
            return;
        }
        self.settings.progress.step("the files are written");
        let (settings, owned_request, recording) = (self.settings.clone(), request.clone(), tape.clone());
        let written = blocking(move || refactor::commit(&settings, &owned_request, &plan, &recording)).await;
        match written.unwrap_or_else(|failure| Err(failure.into_body(&PathMap::new()))) {
            Ok(transaction) => {
                if let Some(edits) = &mut attempt.draft.edits {
                    edits.transaction = Some(transaction);
                }
            }
            Err(error) => attempt.draft.error = Some(error),
        }
    }

    /// Adds the volatile metadata, which is not part of the hash.
    fn with_volatile(
        &self,
        mut bundle: Bundle,
        coordinates: Vec<DualCoordinates>,
        served_from: ServedFrom,
        began: Instant,
        trace_op: Option<u64>,
    ) -> Bundle {
        bundle.meta.volatile = Volatile {
            id: None,
            line: None,
            elapsed_ms: Some(u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX)),
            served_from: Some(served_from),
            root: Some(self.settings.root.to_string()),
            pid: Some(std::process::id()),
            trace_op,
            absolute: BTreeMap::new(),
            coordinates,
        };
        bundle
    }
}

/// Whether a request needs a language server.
fn needs_server(request: &Request) -> bool {
    !matches!(request.cmd, Command::Locate | Command::Undo)
}

pub(crate) fn cancelled() -> ErrorBody {
    ErrorBody::new(ErrorSymbol::RequestCancelled, "the request was cancelled").hint("repeat the request")
}

fn sealed(draft: BundleDraft) -> Bundle {
    let request = draft.request.clone();
    seal(draft).unwrap_or_else(|error| {
        let body = ErrorBody::new(ErrorSymbol::Internal, error.to_string());
        seal(BundleDraft::failed(request, body)).expect("an error is made of texts and small integers")
    })
}

/// Seals a draft and adds the reward, which is not part of the hash; the digest of its diagnostics is.
fn rewarded(mut draft: BundleDraft, measured: Option<MeasuredDiagnostics>) -> Bundle {
    draft.measured = measured.as_ref().map(measured_digest);
    let mut bundle = sealed(draft);
    bundle.process_reward = Some(of_bundle(&bundle, measured));
    bundle
}

/// Runs blocking or long work on a separate thread.
///
/// The work starts immediately, not when the result is awaited.
fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> impl Future<Output = Result<T, Failure>> {
    let working = tokio::task::spawn_blocking(work);
    async move {
        // The panic message is left out: it names a task, and a bundle is the same in every run.
        let failed =
            |_| Failure::reported(ErrorBody::new(ErrorSymbol::Internal, "a part of the work failed"));
        working.await.map_err(failed)
    }
}

/// Like [`blocking`], with a time limit, for work that reads untrusted files of a repository, such as its git folder:
/// reading a named pipe in place of a file would block forever.
async fn blocking_within<T: Send + 'static>(
    limit: Duration,
    what: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    let Ok(done) = tokio::time::timeout(limit, blocking(work)).await else {
        let message = format!("{what} did not answer within {} s", limit.as_secs());
        let hint = "`git status` shows what is wrong; --timeout gives more time";
        return Err(Failure::reported(ErrorBody::new(ErrorSymbol::LsTimeout, message).hint(hint)));
    };
    done
}
