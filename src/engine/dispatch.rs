//! Runs a request on a server: dispatches to the handler of its command and assembles the draft.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use super::context::{Attempt, CheckedEdit, Deadline, HandlerOutput, RequestContext};
use super::failure::Failure;
use super::locations::LocationBuilder;
use super::opinion::Opinions;
use super::pool::{WorkerGuard, WorkerKind};
use super::request_state::RequestState;
use super::settings::Settings;
use super::{
    call_hierarchy, diagnose, navigation, outline, refactor, resolution, type_hierarchy, unresolved_imports,
};
use crate::bundle::seal::BundleDraft;
use crate::edit::EditPlan;
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::model::facts::{CompletenessStatus, Facts, Provenance};
use crate::model::request::{Command, Request};
use crate::model::server::ServerKind;

/// Runs the request on a server.
pub(super) async fn dispatch(
    request: &Request,
    state: &RequestState,
    server: &WorkerGuard,
    settings: &Settings,
    deadline: Deadline,
    opinions: Opinions<'_>,
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
        opinions,
    };
    settings.progress.step(&format!("{} works on it", settings.server));
    // First of all, so that the server has the right text of every file, whatever the request is about.
    cx.open(state.inputs.snapshot.not_utf8().iter().map(|path| state.inputs.snapshot.absolute(path)))?;
    let output = handle(&cx).await?;
    let measured = cx.measured.into_inner().unwrap_or_else(PoisonError::into_inner);
    state.cache_contents(settings);
    let (draft, plan) = assemble(request, state, settings, output, &locations);
    Ok(Attempt { draft, dual: locations.into_dual(), plan, measured })
}

/// Calls the handler of the request's command.
async fn handle(cx: &RequestContext<'_>) -> Result<HandlerOutput, Failure> {
    match cx.request.cmd {
        Command::Definition
        | Command::Declaration
        | Command::TypeDefinition
        | Command::Implementation
        | Command::References => Box::pin(navigation::locations(cx)).await,
        Command::Hover => Box::pin(navigation::hover(cx)).await,
        Command::Symbols => Box::pin(outline::symbols(cx)).await,
        Command::Calls => Box::pin(call_hierarchy::calls(cx)).await,
        Command::TypeHierarchy => type_hierarchy::types(cx).await,
        Command::Diagnostics => Box::pin(diagnose::diagnostics(cx)).await,
        Command::Locate => Ok(HandlerOutput {
            facts: Facts::new(Provenance::Syntax),
            limits: None,
            capabilities: BTreeMap::new(),
            refactored: None,
            error: None,
        }),
        Command::PrepareRename => refactor::prepare(cx).await,
        Command::Rename => Box::pin(refactor::rename(cx)).await,
        Command::Actions => Box::pin(refactor::actions(cx)).await,
        Command::Apply | Command::Check => Box::pin(refactor::apply(cx)).await,
        Command::Undo => {
            Err(Failure::reported(ErrorBody::new(ErrorSymbol::Usage, "undo does not use a server")))
        }
    }
}

/// The draft of the bundle, and the plan of an edit.
fn assemble(
    request: &Request,
    state: &RequestState,
    settings: &Settings,
    output: HandlerOutput,
    locations: &LocationBuilder<'_>,
) -> (BundleDraft, Option<EditPlan>) {
    let resolution = state.resolution_in(request, locations);
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
    (draft, plan)
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
