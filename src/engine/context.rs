//! What handlers receive and return. Imports no handler.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::failure::Failure;
use super::inputs::Inputs;
use super::locations::LocationBuilder;
use super::opinion::Opinions;
use super::pool::WorkerGuard;
use super::request_state::RequestState;
use super::settings::Settings;
use crate::bundle::seal::BundleDraft;
use crate::edit::EditPlan;
use crate::lsp::error::LspError;
use crate::lsp::{LspRequests, Profile};
use crate::model::bundle::{DualCoordinates, Limits};
use crate::model::edits::Edits;
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::model::facts::Facts;
use crate::model::request::{Command, Request};
use crate::path::AbsPath;
use crate::reward::MeasuredDiagnostics;
use crate::text::SourceEncoding;
use crate::workspace::files::{Document, Files as _};

/// The result of an attempt.
pub(super) struct Attempt {
    pub(super) draft: BundleDraft,
    pub(super) dual: Vec<DualCoordinates>,
    /// The edits to write, if the request plans any.
    pub(super) plan: Option<EditPlan>,
    /// The diagnostics from which the reward is computed.
    pub(super) measured: Option<MeasuredDiagnostics>,
}

/// What an answer was computed from.
#[derive(Default)]
pub(super) struct AnswerOrigin {
    pub(super) inputs: Option<Arc<Inputs>>,
    pub(super) state: Option<Arc<RequestState>>,
    /// The external error, if one caused the failure.
    pub(super) fault: Option<ErrorBody>,
}

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

/// An edit that was planned and checked.
pub(super) struct CheckedEdit {
    /// What the bundle reports about it.
    pub(super) edits: Edits,
    /// Why it must not be written.
    pub(super) error: Option<ErrorBody>,
    /// The content of every file after the edit.
    pub(super) plan: EditPlan,
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
    pub(super) fn remaining(self) -> Duration {
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
    /// Whether the answer is compared with that of another server.
    pub(super) opinions: Opinions<'a>,
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

    /// Whether requests about single places may run concurrently: their answers do not depend on their order, and no trace records
    /// it.
    pub(super) fn is_order_free(&self) -> bool {
        Profile::of(self.settings.server).is_order_independent && self.state.tape.is_off()
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

    /// Whether the server reads the same text of a file when the file is not opened, which would interrupt concurrent requests.
    /// Only for requests about the file itself: a server may search an open file that it would leave out otherwise.
    fn reads_by_itself(&self, document: &Document) -> bool {
        matches!(
            self.request.cmd,
            Command::Definition | Command::Declaration | Command::TypeDefinition | Command::Hover
        ) && Profile::of(self.settings.server).finds_files
            && document.encoding == SourceEncoding::Utf8
            && !document.text.starts_with('\u{feff}')
            && [".py", ".pyi"].iter().any(|suffix| document.path.as_str().ends_with(suffix))
            && self.state.inputs.holds(&document.path, Some(document.digest)) == Some(true)
    }

    /// Opens documents in the server, in the order of their paths. Returns those that cannot be read.
    pub(super) fn open(&self, paths: impl IntoIterator<Item = AbsPath>) -> Result<Vec<AbsPath>, Failure> {
        let mut unreadable = Vec::new();
        let wanted: BTreeSet<AbsPath> = paths.into_iter().filter(|path| !self.is_open(path)).collect();
        for path in wanted {
            match self.state.files.read(&path) {
                Ok(document) if self.reads_by_itself(&document) => {}
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
        // Installed files may change between requests without a sign in the inputs, whatever the server.
        if self.server.is_fresh() || paths.into_iter().all(|path| self.state.is_in_workspace(path)) {
            Ok(())
        } else {
            Err(Failure::NeedsFreshServer)
        }
    }

    /// Requires a server that has not answered any request.
    pub(super) fn require_fresh(&self) -> Result<(), Failure> {
        let is_history_irrelevant = Profile::of(self.settings.server).is_order_independent;
        if self.server.is_fresh() || is_history_irrelevant { Ok(()) } else { Err(Failure::NeedsFreshServer) }
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

/// Whether a request needs a language server.
pub(super) fn needs_server(request: &Request) -> bool {
    !matches!(request.cmd, Command::Locate | Command::Undo)
}
