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
mod completeness;
mod diagnose;
mod failure;
mod flights;
mod ground;
mod hierarchy;
mod located;
mod memo;
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
mod state;
mod store;

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
use crate::reward::{Measured, of_bundle};
use crate::workspace::snapshot::Trust;
use answer::{Made, Told};
use failure::Failure;
use flights::Flights;
use ground::{Surveyor, Tools};
use memo::Memo;
pub use memo::verify_memo;
use pool::{Kind, Pool};
pub use python::{ConfigurationReport, PythonReport, configuration_report, python_report};
pub use report::{Report, ServerReport};
pub use reward::{Scored, Source, score};
pub use server::{tell_progress, toolchain_request};
pub use store::stored_bundle;

/// Who is told of long work.
pub trait Progress: Send + Sync {
    /// What is being done right now.
    fn step(&self, text: &str);
    /// Something that is worth knowing also later.
    fn say(&self, text: &str);
    /// Nothing is being done any more.
    fn done(&self);
}

/// Everything that an answer depends on besides the request, and where it may be kept.
#[derive(Clone)]
pub struct Settings {
    /// The workspace, links resolved.
    pub root: AbsPath,
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
    /// Whether programs inside the workspace may be run as servers.
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
}

/// What an attempt gives.
struct Attempt {
    draft: Draft,
    dual: Vec<DualCoordinates>,
    /// What it would write.
    plan: Option<Plan>,
    /// The diagnostics that its reward is made of.
    measured: Option<Measured>,
}

impl Orchestrator {
    /// An orchestrator for many requests. [`Self::close`] ends what they started.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self::with(settings, true)
    }

    /// An orchestrator for one request: the server says goodbye while the workspace is looked at for the last time.
    #[must_use]
    pub fn for_one(settings: Settings) -> Self {
        Self::with(settings, false)
    }

    fn with(settings: Settings, resident: bool) -> Self {
        let settings = Arc::new(settings);
        let shared = Shared {
            surveyor: Surveyor::new(&settings),
            pool: Pool::new(settings.clone(), resident),
            memo: Memo::of(&settings),
            flights: Flights::default(),
            resident,
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

    /// What is running.
    #[must_use]
    pub fn report(&self) -> Report {
        self.shared.pool.report()
    }

    /// Answers a request, or tells why there is no answer; both are bundles. When `interrupted` ends first, the server is
    /// told, and the bundle says `E/REQUEST_CANCELLED`.
    pub async fn run(&self, request: Request, interrupted: impl Future<Output = ()>) -> Bundle {
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

    async fn told(&self, mut request: Request, interrupted: impl Future<Output = ()>) -> Bundle {
        if let Some(selector) = &mut request.selector {
            let paths = PathMap::new().workspace(self.settings.root.clone());
            selector.map_uri(|uri| paths.absolute(uri).map_or_else(|| uri.clone(), |path| paths.uri(&path)));
        }
        let began = Instant::now();
        let mut interrupted = pin!(interrupted);
        // What an earlier lanser left half done is no state to answer about.
        let settings = self.settings.clone();
        let _ = blocking(move || refactor::recover(&settings)).await;
        if request.cmd == Command::Undo {
            let settings = self.settings.clone();
            let (asked, undoing) = (request.clone(), request);
            let draft = blocking(move || refactor::undo(&settings, &undoing))
                .await
                .unwrap_or_else(|failure| Draft::failed(Some(asked), failure.into_body(&PathMap::new())));
            return self.finished(rewarded(sealed(draft), None), Vec::new(), Road::Syntax, began);
        }
        let told = tokio::select! {
            biased;
            told = self.answer(&request, began) => told,
            () = &mut interrupted => {
                let error = ErrorBody::new(ErrorSymbol::RequestCancelled, "the request was cancelled")
                    .hint("ask again");
                let draft = Draft::failed(Some(request.clone()), error);
                Told::alone(Attempt { draft, dual: Vec::new(), plan: None, measured: None }, Road::Cold)
            }
        };
        self.settings.progress.done();
        match told {
            Told::Kept(bundle) => self.finished(*bundle, Vec::new(), Road::Memo, began),
            Told::Shared(bundle) => (*bundle).clone(),
            Told::Made(made) => {
                let Made { mut attempt, road, key, leader } = *made;
                self.write(&request, &mut attempt).await;
                let bundle = rewarded(sealed(attempt.draft), attempt.measured);
                self.keep(key, &bundle).await;
                let bundle = self.finished(bundle, attempt.dual, road, began);
                if let Some(leader) = leader {
                    leader.deliver(&bundle);
                }
                bundle
            }
        }
    }

    /// Writes what an attempt has planned, if that was asked for and nothing speaks against it. From here on the caller's
    /// interruption is not heard: it is done whole, or not at all.
    async fn write(&self, request: &Request, attempt: &mut Attempt) {
        let Some(plan) = attempt.plan.take().filter(|_| request.writes()) else { return };
        if attempt.draft.error.is_some() || plan.changes().is_empty() {
            return;
        }
        self.settings.progress.step("the files are written");
        let (settings, asked) = (self.settings.clone(), request.clone());
        let written = blocking(move || refactor::commit(&settings, &asked, &plan)).await;
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
