//! Runs a request on a server: dispatches to the handler of its command and assembles the draft. [`RequestContext`]
//! is what all handlers receive.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::failure::Failure;
use super::locations::LocationBuilder;
use super::order_dependence::may_be_shared;
use super::pool::{Isolation, WorkerGuard, WorkerKind};
use super::refactor::{self, CheckedEdit};
use super::request_state::RequestState;
use super::{
    Attempt, Settings, call_hierarchy, diagnose, navigation, outline, resolution, unresolved_imports,
};
use crate::bundle::seal::BundleDraft;
use crate::lsp::LspRequests;
use crate::lsp::error::LspError;
use crate::model::bundle::Limits;
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::model::facts::{CompletenessStatus, Facts};
use crate::model::request::{Command, Request};
use crate::model::server::ServerKind;
use crate::path::AbsPath;
use crate::reward::MeasuredDiagnostics;
use crate::text::SourceEncoding;
use crate::workspace::files::Files as _;

/// The output of a handler.
pub(super) struct HandlerOutput {
    pub(super) facts: Facts,
    pub(super) limits: Option<Limits>,
    /// The server capabilities that the answer depends on.
    pub(super) capabilities: BTreeMap<String, bool>,
    /// The edits to write, if the request plans any.
    pub(super) refactored: Option<CheckedEdit>,
    /// Why the answer is incomplete: the time limit.
    pub(super) error: Option<ErrorBody>,
}

/// When an answer is due.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadline {
    /// The end of the caller's time.
    pub(super) at: Instant,
    /// The time that is reserved for building an answer from what is known.
    pub(super) reserve: Duration,
    /// Whether no other attempt follows if the server does not respond in time.
    pub(super) is_last: bool,
}

impl Deadline {
    /// The deadline of a request that starts now. Only requests whose partial results are an answer have one; for all
    /// others each response of the server has the whole timeout.
    pub(super) fn of(request: &Request, settings: &Settings) -> Self {
        if !matches!(request.cmd, Command::References | Command::Calls) {
            return Self::never();
        }
        let reserve = (settings.timeout / 10).min(MAX_RESERVE);
        Self { at: Instant::now() + settings.timeout, reserve, is_last: false }
    }

    /// No deadline: each response of the server has its own timeout.
    pub(super) fn never() -> Self {
        const FAR_FUTURE: Duration = Duration::from_secs(24 * 60 * 60);
        Self { at: Instant::now() + FAR_FUTURE, reserve: Duration::ZERO, is_last: true }
    }

    /// The time that is left for the server, after the reserve.
    fn remaining(self) -> Duration {
        self.at.saturating_duration_since(Instant::now() + self.reserve)
    }
}

/// The upper limit of the reserved time (see [`Deadline::reserve`]).
const MAX_RESERVE: Duration = Duration::from_secs(2);

/// What a handler works with.
pub(super) struct RequestContext<'a> {
    pub(super) request: &'a Request,
    pub(super) state: &'a RequestState,
    pub(super) server: &'a WorkerGuard,
    pub(super) settings: &'a Settings,
    /// The time limit for each response of the server.
    pub(super) response_timeout: Duration,
    /// When the answer is due, and whether no other attempt follows.
    pub(super) deadline: Deadline,
    pub(super) locations: &'a LocationBuilder<'a>,
    /// The number of files that the server's own configuration includes.
    pub(super) enumerated: u32,
    /// The diagnostics that were measured for the reward.
    pub(super) measured: Mutex<Option<MeasuredDiagnostics>>,
}

/// The isolation that a request needs: an answer that depends on inferred types must not depend on those that other
/// requests made the server infer.
pub(super) fn isolation(request: &Request, state: &RequestState) -> Isolation {
    match request.cmd {
        // Scans do not cover what such a file imports from its own folder.
        _ if !state.is_target_covered() => Isolation::Fresh,
        _ if may_be_shared(request) && state.is_declared() => Isolation::Shared,
        Command::Symbols | Command::Locate => Isolation::Shared,
        cmd if cmd.edits() => Isolation::NeverSynced,
        _ => Isolation::Reset,
    }
}

/// Runs the request on a server.
pub(super) async fn ask(
    request: &Request,
    state: &RequestState,
    server: &WorkerGuard,
    settings: &Settings,
    deadline: Deadline,
) -> Result<Attempt, Failure> {
    let client = &server.client;
    settings.progress.step("the server reads the workspace");
    let enumerated = client.ready(settings.timeout.min(deadline.remaining())).await?.files;
    client.record_initialize(&state.tape);
    state.served_by(server.tool(settings.server), client.encoding());
    let locations = LocationBuilder {
        state,
        files: &state.files,
        paths: &state.inputs.paths,
        server_unit: client.encoding(),
        io_unit: request.options.index_io,
        dual: settings.verbose.then(|| Mutex::new(BTreeSet::new())),
    };
    let response_timeout = server.answer_timeout(settings);
    let cx = RequestContext {
        request,
        state,
        server,
        settings,
        response_timeout,
        deadline,
        locations: &locations,
        enumerated,
        measured: Mutex::default(),
    };
    settings.progress.step(&format!("{} works on it", settings.server));
    // First of all, so that the server has the right text of every file, whatever the request is about.
    cx.open(state.inputs.snapshot.not_utf8().iter().map(|path| state.inputs.snapshot.absolute(path)))?;
    let output = match request.cmd {
        Command::Definition
        | Command::Declaration
        | Command::TypeDefinition
        | Command::Implementation
        | Command::References => Box::pin(navigation::locations(&cx)).await?,
        Command::Hover => Box::pin(navigation::hover(&cx)).await?,
        Command::Symbols => Box::pin(outline::symbols(&cx)).await?,
        Command::Calls => Box::pin(call_hierarchy::calls(&cx)).await?,
        Command::Diagnostics => Box::pin(diagnose::diagnostics(&cx)).await?,
        Command::Locate => HandlerOutput {
            facts: Facts::new(crate::model::facts::Provenance::Syntax),
            limits: None,
            capabilities: BTreeMap::new(),
            refactored: None,
            error: None,
        },
        Command::PrepareRename => refactor::prepare(&cx).await?,
        Command::Rename => Box::pin(refactor::rename(&cx)).await?,
        Command::Actions => Box::pin(refactor::actions(&cx)).await?,
        Command::Apply | Command::Check => Box::pin(refactor::apply(&cx)).await?,
        Command::Undo => {
            let error = ErrorBody::new(ErrorSymbol::Usage, "undo does not use a server");
            return Err(Failure::reported(error));
        }
    };
    let measured = cx.measured.into_inner().unwrap_or_else(PoisonError::into_inner);
    state.cache_contents(settings);
    let resolution = state.resolution_in(request, &locations);
    let incomplete = output
        .facts
        .completeness
        .as_ref()
        .is_some_and(|verdict| verdict.status != CompletenessStatus::Complete);
    let cut = output.limits.as_ref().is_some_and(|limits| limits.truncated);
    let unchecked = output.facts.diagnostics.as_ref().is_some_and(|found| {
        !found.not_checked.is_empty() || found.sources.iter().any(|source| !source.complete)
    });
    let (edits, error, plan) = match output.refactored {
        Some(CheckedEdit { edits, error, plan }) => (Some(edits), error, Some(plan)),
        None => (None, output.error, None),
    };
    let mut warnings = state.inputs.warnings.clone();
    warnings.extend(unresolved_imports::warning(state, &output.facts));
    let draft = BundleDraft {
        request: Some(request.clone()),
        relocation: resolution::rules_of(resolution.as_ref()),
        resolution,
        facts: Some(output.facts),
        edits,
        environment: Some(state.environment()),
        capabilities: with_protocol(output.capabilities, request, settings.server),
        error,
        warnings,
        limits: output.limits,
        measured: None,
        partial: incomplete || cut || unchecked,
    };
    Ok(Attempt { draft, dual: locations.into_dual(), plan, measured, held: server.held(state) })
}

/// The capabilities with those of the protocol itself: whether the server sends results in parts, and whether it notices a
/// cancellation while it works on a request.
fn with_protocol(
    mut capabilities: BTreeMap<String, bool>,
    request: &Request,
    server: ServerKind,
) -> BTreeMap<String, bool> {
    if !capabilities.is_empty() {
        // Lanser asks for whole results: a part of a list cannot be sorted.
        capabilities.insert("partialResult".to_owned(), false);
        capabilities.insert("cancellable".to_owned(), !WorkerKind::of(request, server).pulls);
    }
    capabilities
}

impl RequestContext<'_> {
    /// The server's requests, each limited by its own timeout and by the deadline.
    pub(super) fn requests(&self) -> LspRequests {
        self.server.requests(self.response_timeout.min(self.deadline.remaining())).recording(&self.state.tape)
    }

    /// The server's requests, limited by the deadline alone: for requests after the first one, which another attempt
    /// would not answer sooner.
    pub(super) fn requests_until_deadline(&self) -> LspRequests {
        let remaining = self.deadline.remaining();
        // Without a deadline each request has the usual timeout.
        let within = if remaining > self.settings.timeout { self.response_timeout } else { remaining };
        self.server.requests(within).recording(&self.state.tape)
    }

    /// Whether a failure means that the deadline has passed, so that the partial result is the answer. While
    /// recording, an operation is recorded completely or as the failure that it is.
    pub(super) fn is_past_deadline(&self, failure: &Failure) -> bool {
        failure.is_hang() && self.state.tape.is_off()
    }

    /// The error of an answer that is incomplete because of the deadline.
    pub(super) fn timeout_error(&self) -> ErrorBody {
        let message = format!(
            "the time limit of {} s passed before the search was complete",
            self.settings.timeout.as_secs_f64()
        );
        ErrorBody::new(ErrorSymbol::LsTimeout, message).hint("increase the limit with --timeout SECONDS")
    }

    /// Records the diagnostics from which the reward is computed.
    pub(super) fn measured(&self, measured: MeasuredDiagnostics) {
        *self.measured.lock().unwrap_or_else(PoisonError::into_inner) = Some(measured);
    }

    /// Opens documents in the server, in the order of their paths. Returns those that cannot be read.
    pub(super) fn open(&self, paths: impl IntoIterator<Item = AbsPath>) -> Result<Vec<AbsPath>, Failure> {
        let mut unreadable = Vec::new();
        let wanted: BTreeSet<AbsPath> = paths.into_iter().filter(|path| !self.is_open(path)).collect();
        for path in wanted {
            match self.state.files.read(&path) {
                Ok(document) => self.server.open(&document)?,
                Err(_) => unreadable.push(path),
            }
        }
        Ok(unreadable)
    }

    /// Whether a document stays open for the whole request.
    pub(super) fn is_open(&self, path: &AbsPath) -> bool {
        self.server.used().contains(path)
    }

    /// Opens those of the given files, outside the workspace, whose encoding the server does not detect: its columns
    /// in them are wrong until it receives their text. Returns whether there were any, that is, whether to repeat the
    /// request.
    pub(super) fn open_encoded<'p>(
        &self,
        paths: impl IntoIterator<Item = &'p AbsPath>,
    ) -> Result<bool, Failure> {
        let distinct: BTreeSet<&AbsPath> = paths.into_iter().collect();
        let encoded = distinct.into_iter().filter(|path| {
            let known = self.is_open(path);
            let other = |encoding| matches!(encoding, SourceEncoding::Latin1 | SourceEncoding::Declared(_));
            !known && self.state.files.read(path).is_ok_and(|document| other(document.encoding))
        });
        let encoded: Vec<AbsPath> = encoded.cloned().collect();
        if encoded.is_empty() {
            return Ok(false);
        }
        self.open(encoded)?;
        Ok(true)
    }

    /// Requires a fresh server for locations outside the workspace, where a reset does not suffice. For a name of a
    /// library, Pyright also returns the uses in those library files that it happens to have read; and the file from
    /// which a library's submodule comes (`os.path` has three candidates) depends on who imported it.
    pub(super) fn require_fresh_outside_workspace<'p>(
        &self,
        paths: impl IntoIterator<Item = &'p AbsPath>,
    ) -> Result<(), Failure> {
        if paths.into_iter().all(|path| self.state.is_in_workspace(path)) {
            Ok(())
        } else {
            self.require_fresh()
        }
    }

    /// Requires a server that has not answered any request.
    pub(super) fn require_fresh(&self) -> Result<(), Failure> {
        if self.server.is_fresh() { Ok(()) } else { Err(Failure::NeedsFreshServer) }
    }

    /// The capability that a request depends on, as the bundle records it.
    ///
    /// # Errors
    /// `E/UNSUPPORTED_CAP` when the server lacks it.
    pub(super) fn require(&self, name: &str, offered: bool) -> Result<BTreeMap<String, bool>, Failure> {
        if offered {
            return Ok(BTreeMap::from([(name.to_owned(), true)]));
        }
        Err(Failure::Server(LspError::Unsupported { method: name.to_owned() }))
    }
}
