//! The order of steps: from a request to a sealed bundle. The only module that knows it.
//!
//! One answer is one *attempt* on one [`ground`]: the memo is looked into ([`memo`]), the selector is resolved ([`state`]),
//! a server is brought to the ground ([`pool`]) and asked ([`query`], [`outline`], [`hierarchy`], [`diagnose`]). Then the
//! ground is surveyed. When it is still the same, the answer is told; when it is another one, the attempt is made again on
//! that. So an orchestrator that has answered before begins at once on what it knows, and one survey, the one after the
//! answer, proves that the answer is fresh.
//!
//! The documents that matter to a question are open, and of those that a fresh server would not know no other is; the server
//! always enumerates first, because Pyright's inferred types depend on the order in which it learned its files.

mod answer;
mod ask;
pub mod batch;
mod completeness;
mod declared;
mod diagnose;
mod failure;
mod flights;
mod ground;
mod hierarchy;
mod implementations;
mod imports;
mod library;
mod located;
mod memo;
mod occurrences;
mod outline;
mod places;
mod pool;
mod python;
mod query;
mod refactor;
mod report;
mod reward;
mod server;
pub mod session;
pub mod stall;
mod state;
mod store;
mod stubs;
mod thrift;
pub mod traced;
mod uses;
mod written;

use std::collections::BTreeMap;
use std::future::Future;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::bundle::portable::PathMap;
use crate::bundle::seal::{Draft, seal};
use crate::edit::Plan;
use crate::model::bundle::{Bundle, DualCoordinates, Road, Volatile};
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::model::request::{Command, Request};
use crate::model::server::ServerKind;
use crate::path::AbsPath;
use crate::resolve::remember_readings;
use crate::reward::{Measured, of_bundle};
use crate::tape::Tape;
use crate::trace::writer::Writer;
use crate::workspace::snapshot::Trust;
use answer::{Made, Told};
use failure::Failure;
use flights::Flights;
use ground::{Ground, Surveyor, Tools};
pub use library::{OpenError, Workspace, WorkspaceOptions};
pub(crate) use library::{cache_folder, processors, search_path, state_folder};
use memo::Memo;
pub use memo::verify_memo;
use pool::{Held, Kind, Pool};
pub use python::{ConfigurationReport, PythonReport, configuration_report, python_report};
pub use report::{Report, ServerReport};
pub use reward::{Scored, Source, is_revision, score, supplement};
use server::Server;
pub use server::{tell_progress, toolchain_request};
pub use store::stored_bundle;
pub use thrift::MoreToCome;
use traced::record::{Origin, record};
pub use traced::{Again, Replay};
pub use written::{checked, read_selector};

/// Who is told of long work.
pub trait Progress: Send + Sync {
    /// What is being done right now.
    fn step(&self, text: &str);
    /// Something that is worth knowing also later.
    fn say(&self, text: &str);
    /// The question waits for those that are asked beside each other, and has the server for itself then.
    fn aside(&self) {}
    /// The answer is there but for the proof that it is fresh.
    fn proving(&self) {}
    /// Nothing is being done any more.
    fn done(&self);
}

/// Everything that an answer depends on besides the request, and where it may be kept.
#[derive(Clone)]
pub struct Settings {
    /// The workspace, links resolved.
    pub root: AbsPath,
    /// The checkout of the workspace that this one is a copy of, if it is one.
    pub copy_of: Option<AbsPath>,
    /// Which server.
    pub server: ServerKind,
    /// Which version of it; `None` is the pinned one.
    pub server_version: Option<String>,
    /// A server that the user named.
    pub server_command: Option<AbsPath>,
    /// An interpreter that the user named.
    pub python: Option<AbsPath>,
    /// The time for each answer of the server.
    pub timeout: Duration,
    /// Whether nothing may be installed.
    pub offline: bool,
    /// Whether programs that the checkout brings may be run: interpreters, servers, git's filters.
    pub trust_workspace: bool,
    /// What proves that a file is unchanged.
    pub trust: Trust,
    /// Lanser's cache folder.
    pub cache: AbsPath,
    /// Whether what was learned of the workspace is read from there and kept there.
    pub keep: bool,
    /// The folder for temporary files.
    pub temp: AbsPath,
    /// This program, when it can be called again to guard a server (see [`crate::lsp::process`]).
    pub guard: Option<AbsPath>,
    /// The folders of PATH.
    pub search_path: Vec<PathBuf>,
    /// The environment variables.
    pub environment: BTreeMap<String, String>,
    /// Whether both coordinate systems are told.
    pub verbose: bool,
    /// How many threads may scan and parse.
    pub threads: usize,
    /// The bytes of memory above which a session restarts a server.
    pub session_memory: u64,
    /// Who is told of long work.
    pub progress: Arc<dyn Progress>,
    /// Where every operation is recorded, if anywhere. What is recorded is worked out: neither remembered nor shared.
    pub trace: Option<Arc<Writer>>,
}

impl Settings {
    /// The bytes of memory above which a session restarts a server when nothing else is said.
    pub const SERVER_MEMORY: u64 = 4 << 30;

    /// The folder that came with the workspace (see [`crate::workspace::root::checkout`]).
    #[must_use]
    pub fn checkout(&self) -> AbsPath {
        if let Some(checkout) = &self.copy_of {
            return checkout.clone();
        }
        let home = self.environment.get("HOME").and_then(|home| AbsPath::new(home).ok());
        crate::workspace::root::checkout(&self.root, home.as_ref())
    }
}

/// Answers requests about one workspace, and keeps what it learns for the next: servers, and what was seen of the workspace.
#[derive(Clone)]
pub struct Orchestrator {
    settings: Arc<Settings>,
    shared: Arc<Shared>,
}

/// What the requests share.
struct Shared {
    surveyor: Surveyor,
    pool: Pool,
    memo: Option<Memo>,
    flights: Flights,
    /// Whether there will be more requests than one.
    resident: bool,
    /// Whether many of them come at a time.
    many: bool,
}

/// What an attempt gives.
struct Attempt {
    draft: Draft,
    dual: Vec<DualCoordinates>,
    /// What it would write.
    plan: Option<Plan>,
    /// The diagnostics that its reward is made of.
    measured: Option<Measured>,
    /// What the server said, to be kept if the answer stands.
    held: Option<Held>,
}

impl Orchestrator {
    /// An orchestrator for many requests. [`Self::close`] ends what they started.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self::with(settings, true, false)
    }

    /// An orchestrator for many requests at a time, whose answers are worth more together than each of them at once.
    #[must_use]
    pub fn for_many(settings: Settings) -> Self {
        /// Of what was read of files, in bytes: many questions are about many files, and they come back to them.
        const READ: usize = 64 << 20;
        remember_readings(READ);
        Self::with(settings, true, true)
    }

    /// An orchestrator for one request: the server says goodbye while the workspace is looked at for the last time.
    #[must_use]
    pub fn for_one(settings: Settings) -> Self {
        Self::with(settings, false, false)
    }

    fn with(settings: Settings, resident: bool, many: bool) -> Self {
        let settings = Arc::new(settings);
        let shared = Shared {
            surveyor: Surveyor::new(&settings, many),
            pool: Pool::new(settings.clone(), resident, many),
            memo: Memo::of(&settings),
            flights: Flights::default(),
            resident,
            many,
        };
        Self { settings, shared: Arc::new(shared) }
    }

    /// The same orchestrator for another caller: with a time limit, a verbosity and an ear of its own.
    #[must_use]
    pub fn for_caller(&self, timeout: Duration, verbose: bool, progress: Arc<dyn Progress>) -> Self {
        let settings = Settings { timeout, verbose, progress, ..(*self.settings).clone() };
        Self { settings: Arc::new(settings), shared: self.shared.clone() }
    }

    /// Looks at the workspace and starts the server that a first question would most likely be asked of, if there is none.
    /// What stands in the way is told to whoever asks, and a server that has to be installed is installed for whoever asks.
    pub async fn warm_up(&self) {
        let (settings, memory, began) =
            (self.settings.clone(), self.shared.surveyor.memory.clone(), Instant::now());
        let Ok(Ok(tools)) = blocking(move || Tools::find(&settings, &memory, false)).await else { return };
        if let Ok(ground) = self.shared.surveyor.since(began, &self.settings, Some(tools)).await {
            let _ = self.shared.pool.warm_up(Kind::usual(), &ground).await;
        }
    }

    /// Ends the servers.
    pub async fn close(&self) {
        self.shared.pool.close().await;
    }

    /// Has a request of this kind asked of a server that runs already.
    async fn seat(&self, request: &Request, server: Server, ground: &Arc<Ground>) {
        self.shared.pool.seat(Kind::of(request, self.settings.server), server, ground).await;
    }

    /// A tape for an attempt.
    fn tape(&self) -> Tape {
        if self.settings.trace.is_some() { Tape::recording() } else { Tape::off() }
    }

    /// Until what is returned is dropped there are more requests to come.
    #[must_use]
    pub fn more_to_come(&self) -> MoreToCome {
        self.shared.surveyor.thrift.more_to_come()
    }

    /// What is running.
    #[must_use]
    pub fn report(&self) -> Report {
        self.shared.pool.report()
    }

    /// Answers a request, or tells why there is no answer; both are bundles. When `interrupted` ends first, the server is
    /// told, and the bundle says `E/REQUEST_CANCELLED`.
    pub async fn run(&self, request: Request, interrupted: impl Future<Output = ()>) -> Bundle {
        self.run_until(request, async {
            interrupted.await;
            cancelled()
        })
        .await
    }

    /// The same; when `interrupted` ends first, the bundle says its error.
    async fn run_until(&self, request: Request, interrupted: impl Future<Output = ErrorBody>) -> Bundle {
        let bundle = self.told(request, interrupted).await;
        self.store(&bundle).await;
        bundle
    }

    /// Keeps what was answered where it can be found by its id.
    async fn store(&self, bundle: &Bundle) {
        if !self.settings.keep {
            return;
        }
        let (cache, bundle) = (self.settings.cache.clone(), bundle.clone());
        let storing = blocking(move || store::store(&cache, &bundle));
        if !self.shared.resident {
            // A process that ends must have written.
            let _ = storing.await;
        }
    }

    async fn told(&self, mut request: Request, interrupted: impl Future<Output = ErrorBody>) -> Bundle {
        self.name_portably(&mut request);
        let began = Instant::now();
        let mut interrupted = pin!(interrupted);
        // What an earlier lanser left half done is no state to answer about.
        let settings = self.settings.clone();
        let _ = blocking(move || refactor::recover(&settings)).await;
        let tape = self.tape();
        if request.cmd == Command::Undo {
            let (settings, undoing, noted) = (self.settings.clone(), request.clone(), tape.clone());
            let draft = blocking(move || refactor::undo(&settings, &undoing, &noted)).await.unwrap_or_else(
                |failure| Draft::failed(Some(request.clone()), failure.into_body(&PathMap::new())),
            );
            let bundle = rewarded(sealed(draft), None);
            record(&self.settings, Some(request), Origin::default(), &tape, &bundle);
            return self.finished(bundle, Vec::new(), Road::Syntax, began);
        }
        let told = tokio::select! {
            biased;
            told = self.answer(&request, began) => told,
            error = &mut interrupted => {
                let origin = Origin { fault: Some(error.clone()), ..Origin::default() };
                let draft = Draft::failed(Some(request.clone()), error);
                Told::alone(Attempt { draft, dual: Vec::new(), plan: None, measured: None, held: None }, origin)
            }
        };
        self.settings.progress.done();
        match told {
            Told::Kept(bundle) => self.finished(*bundle, Vec::new(), Road::Memo, began),
            Told::Shared(bundle) => (*bundle).clone(),
            Told::Made(made) => {
                let Made { mut attempt, road, key, leader, origin } = *made;
                let tape = origin.state.as_ref().map_or(tape, |state| state.tape.clone());
                // The texts of a long answer's files are not needed any more, unless it is recorded what it came of.
                let origin = if self.settings.trace.is_some() {
                    origin
                } else {
                    drop(origin);
                    Origin::default()
                };
                self.write(&request, &mut attempt, &tape).await;
                let bundle = rewarded(sealed(attempt.draft), attempt.measured);
                record(&self.settings, Some(request), origin, &tape, &bundle);
                self.keep(key, &bundle).await;
                let bundle = self.finished(bundle, attempt.dual, road, began);
                if let Some(leader) = leader {
                    leader.deliver(&bundle);
                }
                bundle
            }
        }
    }

    /// What is told of a request that was not asked.
    pub(crate) fn refused(&self, mut request: Request, error: ErrorBody) -> Bundle {
        self.name_portably(&mut request);
        let bundle = rewarded(sealed(Draft::failed(Some(request.clone()), error.clone())), None);
        let origin = Origin { fault: Some(error), ..Origin::default() };
        record(&self.settings, Some(request), origin, &Tape::off(), &bundle);
        self.finished(bundle, Vec::new(), Road::Syntax, Instant::now())
    }

    /// What is told of a request that could not be read.
    fn unread(&self, error: ErrorBody) -> Bundle {
        let bundle = rewarded(sealed(Draft::failed(None, error.clone())), None);
        let origin = Origin { fault: Some(error), ..Origin::default() };
        record(&self.settings, None, origin, &Tape::off(), &bundle);
        bundle
    }

    /// Names the file of a request's selector as bundles do.
    fn name_portably(&self, request: &mut Request) {
        if let Some(selector) = &mut request.selector {
            let paths = PathMap::new().workspace(self.settings.root.clone());
            selector.map_uri(|uri| paths.absolute(uri).map_or_else(|| uri.clone(), |path| paths.uri(&path)));
        }
    }

    /// Writes what an attempt has planned, if that was asked for and nothing speaks against it. From here on the caller's
    /// interruption is not heard: it is done whole, or not at all.
    async fn write(&self, request: &Request, attempt: &mut Attempt, tape: &Tape) {
        let Some(plan) = attempt.plan.take().filter(|_| request.writes()) else { return };
        if attempt.draft.error.is_some() || plan.changes().is_empty() {
            return;
        }
        self.settings.progress.step("the files are written");
        let (settings, asked, noted) = (self.settings.clone(), request.clone(), tape.clone());
        let written = blocking(move || refactor::commit(&settings, &asked, &plan, &noted)).await;
        match written.unwrap_or_else(|failure| Err(failure.into_body(&PathMap::new()))) {
            Ok(transaction) => {
                if let Some(edits) = &mut attempt.draft.edits {
                    edits.transaction = Some(transaction);
                }
            }
            Err(error) => attempt.draft.error = Some(error),
        }
    }

    /// A bundle with what is outside its hash.
    fn finished(
        &self,
        mut bundle: Bundle,
        coordinates: Vec<DualCoordinates>,
        road: Road,
        began: Instant,
    ) -> Bundle {
        bundle.meta.volatile = Volatile {
            id: None,
            line: None,
            elapsed_ms: Some(u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX)),
            road: Some(road),
            root: Some(self.settings.root.to_string()),
            pid: Some(std::process::id()),
            coordinates,
        };
        bundle
    }
}

/// Whether a language server has to be asked.
fn needs_server(request: &Request) -> bool {
    !matches!(request.cmd, Command::Locate | Command::Undo)
}

fn cancelled() -> ErrorBody {
    ErrorBody::new(ErrorSymbol::RequestCancelled, "the request was cancelled").hint("ask again")
}

fn sealed(draft: Draft) -> Bundle {
    let request = draft.request.clone();
    seal(draft).unwrap_or_else(|error| {
        let body = ErrorBody::new(ErrorSymbol::Internal, error.to_string());
        seal(Draft::failed(request, body)).expect("an error is made of texts and small integers")
    })
}

/// A sealed bundle with its reward, which is no part of what was hashed.
fn rewarded(mut bundle: Bundle, measured: Option<Measured>) -> Bundle {
    bundle.process_reward = Some(of_bundle(&bundle, measured));
    bundle
}

/// Does work that waits for the disk or takes long on a thread of its own.
///
/// The work begins now, not when the result is waited for.
fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> impl Future<Output = Result<T, Failure>> {
    let working = tokio::task::spawn_blocking(work);
    async move {
        // The words of a panic are not repeated: they name a task, and a bundle is the same in every run.
        let failed = |_| Failure::told(ErrorBody::new(ErrorSymbol::Internal, "a part of the work failed"));
        working.await.map_err(failed)
    }
}

/// The same for work that reads what a repository brings, such as its git folder: a pipe in the place of a file makes whoever
/// reads it wait for ever, so it is waited for as long as an answer may take.
async fn blocking_within<T: Send + 'static>(
    limit: Duration,
    what: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    let Ok(done) = tokio::time::timeout(limit, blocking(work)).await else {
        let message = format!("{what} did not answer within {} s", limit.as_secs());
        let hint = "`git status` shows what is wrong; --timeout gives more time";
        return Err(Failure::told(ErrorBody::new(ErrorSymbol::LsTimeout, message).hint(hint)));
    };
    done
}
