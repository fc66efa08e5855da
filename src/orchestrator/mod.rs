//! The order of steps: from a request to a sealed bundle. The only module that knows it.
//!
//! One answer is one *attempt*: the state of the workspace is taken and the selector resolved ([`state`]) while a server
//! starts ([`server`]); then the server's files are enumerated, the documents that matter are opened in one order, the
//! question is asked ([`query`], [`outline`], [`hierarchy`], [`diagnose`]), and at last the state is taken again: when it
//! is another one, the attempt is repeated once. Nothing of an attempt outlives it.
//!
//! Which documents are open is a function of snapshot and request, never of what was asked before; the server always
//! enumerates first, because Pyright's inferred types depend on the order in which it learned its files.

mod ask;
mod completeness;
mod diagnose;
mod failure;
mod hierarchy;
mod identity;
mod located;
mod outline;
mod places;
mod python;
mod query;
mod server;
mod state;

use std::collections::BTreeMap;
use std::future::Future;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::bundle::portable::PathMap;
use crate::bundle::seal::{Draft, seal};
use crate::model::bundle::{Bundle, DualCoordinates, Road, Volatile};
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::model::request::{Command, Request};
use crate::model::server::ServerKind;
use crate::path::AbsPath;
use crate::workspace::snapshot::Trust;
use failure::Failure;
pub use python::{ConfigurationReport, PythonReport, configuration_report, python_report};
use server::Server;
pub use server::{tell_progress, toolchain_request};
use state::State;

/// How long is waited before a crashed server is started again, the first and the second time.
const BACKOFF: [Duration; 2] = [Duration::from_millis(100), Duration::from_millis(500)];

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
    /// Who is told of long work.
    pub progress: Arc<dyn Progress>,
}

/// Answers requests about one workspace.
#[derive(Clone)]
pub struct Orchestrator {
    settings: Arc<Settings>,
}

/// What an attempt gives.
struct Attempt {
    draft: Draft,
    dual: Vec<DualCoordinates>,
}

impl Orchestrator {
    /// An orchestrator that has done nothing yet.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self { settings: Arc::new(settings) }
    }

    /// Answers a request, or tells why there is no answer; both are bundles. When `interrupted` ends first, the server is
    /// told, nothing is left running, and the bundle says `E/REQUEST_CANCELLED`.
    pub async fn run(&self, mut request: Request, interrupted: impl Future<Output = ()>) -> Bundle {
        if let Some(selector) = &mut request.selector {
            let paths = PathMap::new().workspace(self.settings.root.clone());
            selector.map_uri(|uri| paths.absolute(uri).map_or_else(|| uri.clone(), |path| paths.uri(&path)));
        }
        let began = Instant::now();
        let road = if request.cmd == Command::Locate { Road::Syntax } else { Road::Cold };
        let mut interrupted = pin!(interrupted);
        let attempt = tokio::select! {
            biased;
            attempt = self.answer(&request) => attempt,
            () = &mut interrupted => {
                let error = ErrorBody::new(ErrorSymbol::RequestCancelled, "the request was cancelled")
                    .hint("ask again");
                Attempt { draft: Draft::failed(Some(request), error), dual: Vec::new() }
            }
        };
        self.settings.progress.done();
        let request = attempt.draft.request.clone();
        let mut bundle = seal(attempt.draft).unwrap_or_else(|error| {
            let body = ErrorBody::new(ErrorSymbol::Internal, error.to_string());
            seal(Draft::failed(request, body)).expect("an error is made of texts and small integers")
        });
        bundle.meta.volatile = Volatile {
            elapsed_ms: Some(u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX)),
            road: Some(road),
            root: Some(self.settings.root.to_string()),
            pid: Some(std::process::id()),
            coordinates: attempt.dual,
        };
        bundle
    }

    /// Attempts until one stands: again after a crash, with a pause, and once more after a change of the workspace.
    async fn answer(&self, request: &Request) -> Attempt {
        let (mut crashes, mut changes) = (0, 0);
        loop {
            let (failure, state) = match self.attempt(request).await {
                Ok(attempt) => return attempt,
                Err(failed) => failed,
            };
            match failure {
                failure if failure.is_crash() && crashes < BACKOFF.len() => {
                    tokio::time::sleep(BACKOFF[crashes]).await;
                    crashes += 1;
                }
                Failure::Changed(_) if changes == 0 => changes += 1,
                failure => return failed(request, failure, state.as_deref()),
            }
        }
    }

    /// One attempt. A selector that leads nowhere is told without waiting for the server, and in the same words
    /// whether there is one or not.
    async fn attempt(&self, request: &Request) -> Result<Attempt, (Failure, Option<Arc<State>>)> {
        let settings = &self.settings;
        let needs_server = request.cmd != Command::Locate;
        let tools = {
            let settings = settings.clone();
            blocking(move || (python::find(&settings), server::find(&settings, needs_server)))
        };
        let (python, found) = tools.await.map_err(|failure| (failure, None))?;
        let (python, _) = python.map_err(|error| (Failure::told(error), None))?;
        let interpreter = python.as_ref().map(|python| python.interpreter.clone());
        let package = found.as_ref().ok().map(|found| found.package.clone());
        let taking = {
            let (settings, request) = (settings.clone(), request.clone());
            blocking(move || State::take(&settings, &request, python.as_ref(), package))
        };
        let mut taking = pin!(taking);
        let mut starting =
            pin!(async { Server::start(settings.clone(), found?, interpreter, request.cmd).await });
        let mut started = None;
        let taken = loop {
            tokio::select! {
                biased;
                taken = &mut taking => break taken,
                result = &mut starting, if needs_server && started.is_none() => started = Some(result),
            }
        };
        let state = Arc::new(taken.map_err(|failure| (failure, None))?);
        if let Some(error) = state.target_error() {
            return Err((Failure::told(error), Some(state)));
        }
        if !needs_server {
            return Ok(query::located(request, &state, settings));
        }
        let server = match started {
            Some(result) => result,
            None => starting.await,
        };
        let server = server.map_err(|failure| (failure, Some(state.clone())))?;
        let answered = ask::ask(request, &state, &server, settings).await;
        // The server says goodbye while the state is taken again.
        let (unchanged, ()) = tokio::join!(state.verify_unchanged(settings), server.stop());
        let answered = answered.and_then(|attempt| unchanged.map(|()| attempt));
        answered.map_err(|failure| (failure, Some(state)))
    }
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

/// An attempt that failed, as a bundle with what is known all the same.
fn failed(request: &Request, failure: Failure, state: Option<&State>) -> Attempt {
    let Some(state) = state else {
        let draft = Draft::failed(Some(request.clone()), failure.into_body(&PathMap::new()));
        return Attempt { draft, dual: Vec::new() };
    };
    let mut draft = Draft::failed(Some(request.clone()), failure.into_body(&state.paths));
    draft.resolution = state.resolution(request);
    draft.relocation = located::rules_of(draft.resolution.as_ref());
    draft.environment = Some(state.environment.clone());
    Attempt { draft, dual: Vec::new() }
}
