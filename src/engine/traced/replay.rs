//! Replays an operation from its record alone.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

pub use super::recorded_inputs::RecordedInputsCache;
use crate::bundle::seal::BundleDraft;
use crate::engine::answer::{AttemptConditions, failure_of};
use crate::engine::context::Deadline;
use crate::engine::context::{Attempt, needs_server};
use crate::engine::failure::Failure;
use crate::engine::inputs::Inputs;
use crate::engine::instance::Engine;
use crate::engine::opinion::Opinions;
use crate::engine::pool::Isolation;
use crate::engine::refactor;
use crate::engine::request_state::RequestState;
use crate::engine::sealing::rewarded;
use crate::engine::server::Server;
use crate::engine::settings::{Progress, Settings};
use crate::lsp::client::{Client, InitializeOptions};
use crate::lsp::profile::{Profile, ServerSettings};
use crate::lsp::recording::replay as recorded_server;
use crate::model::bundle::{Bundle, ServedFrom};
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::model::request::{Command, Request};
use crate::model::server::ServerKind;
use crate::path::AbsPath;
use crate::python::raise_tree_cache_limit;
use crate::reward::MeasuredDiagnostics;
use crate::tape::{ReplaySource, Tape, UnrecordedQuery};
use crate::trace::operation::TracedOperation;
use crate::trace::reader::TraceBlobs;
use crate::workspace::snapshot::ChangeDetection;

/// The time limit for responses of the recorded server, which responds at once or ends.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);

/// The size of the cache of parsed files across operations, in bytes of text: most of a replay is parsing.
const TREE_CACHE_BYTES: usize = 8 << 20;

/// The result of a replay.
#[derive(Debug)]
pub struct ReplayResult {
    /// The bundle, without volatile metadata.
    pub bundle: Bundle,
    /// The first I/O call that was not recorded. If there is one, the bundle is meaningless.
    pub unrecorded: Option<UnrecordedQuery>,
}

/// Ignores the progress of a replay.
struct ReplayProgress;

impl Progress for ReplayProgress {
    fn step(&self, _: &str) {}
    fn notify(&self, _: &str) {}
    fn done(&self) {}
}

/// Replays an operation.
pub async fn replay(
    operation: TracedOperation,
    store: &Arc<TraceBlobs>,
    inputs_cache: &mut RecordedInputsCache,
) -> ReplayResult {
    let TracedOperation { request, resolved, workspace, server, answers, calls, introduction, fault, .. } =
        operation;
    raise_tree_cache_limit(TREE_CACHE_BYTES);
    // A server whose `initialize` was not recorded cannot be replayed.
    let was_initialized = calls.keys().any(|(method, _)| method == "initialize");
    let tape = Tape::replaying(ReplaySource { answers, blobs: store.clone(), calls });
    let unknown_cause =
        || ErrorBody::new(ErrorSymbol::ReplayMismatch, "the trace does not record why this operation failed");
    let inputs = workspace.and_then(|id| inputs_cache.get(id, || store.workspace(&id)));
    let (Some(request), Some(server)) = (request.clone(), server) else {
        let error = fault.map_or_else(unknown_cause, |(error, _)| error);
        return result(BundleDraft::failed(request, error), None, &tape);
    };
    let settings = settings(server, inputs.as_deref());
    if request.cmd == Command::Undo {
        return result(refactor::undo(&settings, &request, &tape), None, &tape);
    }
    let Some(inputs) = inputs else {
        let error = fault.map_or_else(unknown_cause, |(error, _)| error);
        return result(BundleDraft::failed(Some(request), error), None, &tape);
    };
    let fault = match fault {
        Some((error, false)) => {
            let computed =
                failure_of(&request, Failure::reported(error), Some(&inputs), None, ServedFrom::Server);
            return result(computed.attempt.draft, None, &tape);
        }
        fault => fault.map(|(error, _)| error),
    };
    let resolved_request = resolved.as_ref().unwrap_or(&request);
    let state = Arc::new(RequestState::new(&settings, resolved_request, inputs.clone(), tape.clone()));
    let engine = Engine::for_one(settings);
    let outcome = match fault {
        Some(error) => {
            if was_initialized {
                let _ = attempt(&engine, resolved_request, &state, server, introduction).await;
            }
            Err(Failure::reported(error))
        }
        None => attempt(&engine, resolved_request, &state, server, introduction).await,
    };
    let mut attempt = match outcome {
        Ok(attempt) => attempt,
        Err(failure) => {
            failure_of(&request, failure, Some(&inputs), Some(&state), ServedFrom::Server).attempt
        }
    };
    // The bundle echoes the request as it was written.
    attempt.draft.request = Some(request.clone());
    if let Some(resolution) = &mut attempt.draft.resolution {
        resolution.original = request.original();
    }
    engine.write(&request, &mut attempt, &tape).await;
    engine.close().await;
    result(attempt.draft, attempt.measured, &tape)
}

fn result(draft: BundleDraft, measured: Option<MeasuredDiagnostics>, tape: &Tape) -> ReplayResult {
    ReplayResult { bundle: rewarded(draft, measured), unrecorded: tape.first_unrecorded() }
}

/// Makes the attempt with a server that returns the recorded responses.
async fn attempt(
    engine: &Engine,
    request: &Request,
    state: &Arc<RequestState>,
    server: ServerKind,
    introduction: Vec<String>,
) -> Result<Attempt, Failure> {
    // An edit that is refused without a server has no server in its trace.
    if let Some(refused) = refactor::refusal(request, state, &engine.settings).await?
        && state.target_error().is_none()
    {
        return Ok(refused);
    }
    if needs_server(request)
        && state.target_error().is_none()
        && let Ok(found) = state.inputs.tools.found.clone()
    {
        let options = InitializeOptions {
            root: state.inputs.snapshot.root().clone(),
            settings: ServerSettings::default(),
            process_id: None,
            within: RESPONSE_TIMEOUT,
        };
        let connection = recorded_server(state.tape.clone(), introduction);
        let client = Client::initialize(connection, None, Profile::of(server), options).await?;
        engine.adopt_server(request, Server { client, found }, &state.inputs);
    }
    let mut served_from = ServedFrom::Server;
    // The recorded server is fresh, so the order dependence of the request does not matter.
    let conditions = AttemptConditions { isolation: Some(Isolation::Fresh), deadline: Deadline::never() };
    let other = engine.other_server(request)?;
    let opinions = other.as_deref().map_or(Opinions::Single, Opinions::Main);
    engine.attempt(request, state, None, conditions, &mut served_from, opinions).await
}

/// Settings whose paths do not exist: everything has to come from the tape.
fn settings(server: ServerKind, inputs: Option<&Inputs>) -> Settings {
    let missing = AbsPath::new("/lanser/nowhere").expect("it is absolute");
    Settings {
        root: inputs.map_or_else(|| missing.clone(), |inputs| inputs.snapshot.root().clone()),
        copy_of: None,
        environment_of: None,
        server,
        server_version: None,
        server_command: None,
        python: None,
        timeout: RESPONSE_TIMEOUT,
        offline: true,
        trust_workspace: false,
        trust: ChangeDetection::Stat,
        cache: missing.clone(),
        keep: false,
        temp: missing,
        guard: None,
        search_path: Vec::new(),
        environment: BTreeMap::new(),
        verbose: false,
        threads: 1,
        session_memory: u64::MAX,
        progress: Arc::new(ReplayProgress),
        trace: None,
    }
}
