//! Asking a running server: what every question has in common.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::declared::may_be_shared;
use super::failure::Failure;
use super::places::Places;
use super::pool::{Access, Lease};
use super::refactor::{self, Refactored};
use super::state::State;
use super::{Attempt, Settings, diagnose, hierarchy, imports, located, outline, query};
use crate::bundle::seal::Draft;
use crate::lsp::Questions;
use crate::lsp::error::LspError;
use crate::model::bundle::Limits;
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::model::facts::{CompletenessStatus, Facts};
use crate::model::request::{Command, Request};
use crate::path::AbsPath;
use crate::reward::Measured;
use crate::text::SourceEncoding;
use crate::workspace::files::Files as _;

/// What a question gives.
pub(super) struct Answer {
    pub(super) facts: Facts,
    pub(super) limits: Option<Limits>,
    /// What the answer depends on of what the server offers.
    pub(super) capabilities: BTreeMap<String, bool>,
    /// What it would write.
    pub(super) refactored: Option<Refactored>,
    /// Why it is not all: the time limit.
    pub(super) error: Option<ErrorBody>,
}

/// When an answer is due.
#[derive(Debug, Clone, Copy)]
pub(super) struct Due {
    /// The end of the caller's time.
    pub(super) at: Instant,
    /// How much of the time is kept to make an answer of what is known.
    pub(super) reserve: Duration,
    /// Whether there will be no other attempt when the server does not answer in time.
    pub(super) is_last: bool,
}

impl Due {
    /// When a request that begins now is due: where what is known by then is an answer. Else each answer of the server has the
    /// time for itself.
    pub(super) fn of(request: &Request, settings: &Settings) -> Self {
        if !matches!(request.cmd, Command::References | Command::Calls) {
            return Self::never();
        }
        let reserve = (settings.timeout / 10).min(RESERVE);
        Self { at: Instant::now() + settings.timeout, reserve, is_last: false }
    }

    /// An answer that is waited for as long as it takes, each question of it for its own time.
    pub(super) fn never() -> Self {
        const LONG: Duration = Duration::from_secs(24 * 60 * 60);
        Self { at: Instant::now() + LONG, reserve: Duration::ZERO, is_last: true }
    }

    /// What is left for a question to the server, so that something is left to make an answer of it.
    fn left(self) -> Duration {
        self.at.saturating_duration_since(Instant::now() + self.reserve)
    }
}

/// How much of a caller's time is kept to make an answer of what is known, at most.
const RESERVE: Duration = Duration::from_secs(2);

/// What a question is asked with.
pub(super) struct Asking<'a> {
    pub(super) request: &'a Request,
    pub(super) state: &'a State,
    pub(super) server: &'a Lease,
    pub(super) settings: &'a Settings,
    /// How long each answer of the server is waited for.
    pub(super) time: Duration,
    /// When the answer is due, and whether there will be no other attempt.
    pub(super) due: Due,
    pub(super) places: &'a Places<'a>,
    /// How many files the server's own configuration includes.
    pub(super) enumerated: u32,
    /// The diagnostics that were measured for the reward.
    pub(super) measured: Mutex<Option<Measured>>,
}

/// How the request's question may be asked: what rests on inferred types must not find any that others made the server
/// infer.
pub(super) fn access(request: &Request, state: &State) -> Access {
    match request.cmd {
        // What such a file imports from its own folder, no survey sees.
        _ if !state.is_covered() => Access::Pristine,
        _ if may_be_shared(request) && state.is_declared() => Access::Shared,
        Command::Symbols | Command::Locate => Access::Shared,
        cmd if cmd.edits() => Access::Unmoved,
        _ => Access::Alone,
    }
}

/// Asks the request's question.
pub(super) async fn ask(
    request: &Request,
    state: &State,
    server: &Lease,
    settings: &Settings,
    due: Due,
) -> Result<Attempt, Failure> {
    let client = &server.client;
    settings.progress.step("the server reads the workspace");
    let enumerated = client.ready(settings.timeout.min(due.left())).await?.files;
    client.introduce(&state.tape);
    let places = Places {
        state,
        files: &state.files,
        paths: &state.ground.paths,
        server_unit: client.encoding(),
        io_unit: request.options.index_io,
        dual: settings.verbose.then(|| Mutex::new(BTreeSet::new())),
    };
    let time = server.patience(settings);
    let asking = Asking {
        request,
        state,
        server,
        settings,
        time,
        due,
        places: &places,
        enumerated,
        measured: Mutex::default(),
    };
    settings.progress.step(&format!("{} works on it", settings.server));
    // Before anything else, so that every question finds them read rightly, whatever it is about.
    asking.open(state.ground.snapshot.encoded().iter().map(|path| state.ground.snapshot.absolute(path)))?;
    let answer = match request.cmd {
        Command::Definition
        | Command::Declaration
        | Command::TypeDefinition
        | Command::Implementation
        | Command::References => Box::pin(query::locations(&asking)).await?,
        Command::Hover => query::hover(&asking).await?,
        Command::Symbols => outline::symbols(&asking).await?,
        Command::Calls => Box::pin(hierarchy::calls(&asking)).await?,
        Command::Diagnostics => diagnose::diagnostics(&asking).await?,
        Command::Locate => Answer {
            facts: Facts::new(crate::model::facts::Provenance::Syntax),
            limits: None,
            capabilities: BTreeMap::new(),
            refactored: None,
            error: None,
        },
        Command::PrepareRename => refactor::prepare(&asking).await?,
        Command::Rename => Box::pin(refactor::rename(&asking)).await?,
        Command::Actions => Box::pin(refactor::actions(&asking)).await?,
        Command::Apply | Command::Check => Box::pin(refactor::apply(&asking)).await?,
        Command::Undo => {
            let error = ErrorBody::new(ErrorSymbol::Usage, "undo is not asked of a server");
            return Err(Failure::told(error));
        }
    };
    let measured = asking.measured.into_inner().unwrap_or_else(PoisonError::into_inner);
    state.keep_contents(settings);
    let resolution = state.resolution_in(request, &places);
    let mut environment = state.ground.environment.clone();
    environment.tool = Some(server.tool(settings.server));
    environment.position_encoding = client.encoding().as_lsp().to_owned();
    let incomplete = answer
        .facts
        .completeness
        .as_ref()
        .is_some_and(|verdict| verdict.status != CompletenessStatus::Complete);
    let cut = answer.limits.as_ref().is_some_and(|limits| limits.truncated);
    let unchecked = answer.facts.diagnostics.as_ref().is_some_and(|found| !found.not_checked.is_empty());
    let (edits, error, plan) = match answer.refactored {
        Some(Refactored { edits, error, plan }) => (Some(edits), error, Some(plan)),
        None => (None, answer.error, None),
    };
    let mut warnings = state.ground.warnings.clone();
    warnings.extend(imports::unresolved(state, &answer.facts));
    let draft = Draft {
        request: Some(request.clone()),
        relocation: located::rules_of(resolution.as_ref()),
        resolution,
        facts: Some(answer.facts),
        edits,
        environment: Some(environment),
        capabilities: answer.capabilities,
        error,
        warnings,
        limits: answer.limits,
        partial: incomplete || cut || unchecked,
    };
    Ok(Attempt { draft, dual: places.into_dual(), plan, measured, held: server.held(state) })
}

impl Asking<'_> {
    /// What the server can be asked, each to be answered in time.
    pub(super) fn questions(&self) -> Questions {
        self.server.questions(self.time.min(self.due.left())).on(&self.state.tape)
    }

    /// What the server can be asked until the answer is due: for questions after the first one, which another attempt would not
    /// answer sooner.
    pub(super) fn last_questions(&self) -> Questions {
        let left = self.due.left();
        // An answer without a limit of its own gives each question the same time.
        let within = if left > self.settings.timeout { self.time } else { left };
        self.server.questions(within).on(&self.state.tape)
    }

    /// Whether a failure is the end of the caller's time, so that what is known is the answer. What is recorded is recorded
    /// whole or as the failure that it is.
    pub(super) fn is_over(&self, failure: &Failure) -> bool {
        failure.is_hang() && self.state.tape.is_off()
    }

    /// The error of an answer that the time did not suffice for.
    pub(super) fn late(&self) -> ErrorBody {
        let message = format!(
            "the time limit of {} s ended before everything was looked at",
            self.settings.timeout.as_secs_f64()
        );
        ErrorBody::new(ErrorSymbol::LsTimeout, message).hint("give it longer with --timeout SECONDS")
    }

    /// Records what the reward is made of.
    pub(super) fn measured(&self, measured: Measured) {
        *self.measured.lock().unwrap_or_else(PoisonError::into_inner) = Some(measured);
    }

    /// Makes documents known to the server, in the order of their paths. Those that cannot be read are returned.
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

    /// Whether a document is open for the whole question.
    pub(super) fn is_open(&self, path: &AbsPath) -> bool {
        self.server.used().contains(path)
    }

    /// Opens those of an answer's files outside the workspace whose encoding the server does not read by itself: its columns in them are
    /// wrong until it was given their text. Tells whether there were any, and so whether to ask again.
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

    /// Makes sure that an answer does not depend on what the server was asked before, where renewing it does not help: for
    /// places outside the workspace. Of a library's name it tells also the uses in those files of libraries that it happens
    /// to have read; and which file a library's submodule comes from (`os.path`: one of three) hangs on who imported it.
    pub(super) fn require_clean<'p>(
        &self,
        paths: impl IntoIterator<Item = &'p AbsPath>,
    ) -> Result<(), Failure> {
        if paths.into_iter().all(|path| self.state.is_in_workspace(path)) {
            Ok(())
        } else {
            self.require_pristine()
        }
    }

    /// Makes sure that the server was never asked anything.
    pub(super) fn require_pristine(&self) -> Result<(), Failure> {
        if self.server.is_pristine() { Ok(()) } else { Err(Failure::Unclean) }
    }

    /// The capability that a question depends on, as the bundle tells it.
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
