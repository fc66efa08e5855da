//! An operation answered again, from its record alone.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

pub use super::surroundings::Grounds;
use crate::bundle::seal::Draft;
use crate::lsp::client::{Client, InitializeOptions};
use crate::lsp::profile::{Profile, ServerSettings};
use crate::lsp::tape::replay as recorded_server;
use crate::model::bundle::{Bundle, Road};
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::model::request::{Command, Request};
use crate::model::server::ServerKind;
use crate::orchestrator::answer::failure_of;
use crate::orchestrator::ask::Due;
use crate::orchestrator::failure::Failure;
use crate::orchestrator::ground::Ground;
use crate::orchestrator::pool::Access;
use crate::orchestrator::server::Server;
use crate::orchestrator::state::State;
use crate::orchestrator::{
    Attempt, Orchestrator, Progress, Settings, needs_server, refactor, rewarded, sealed,
};
use crate::path::AbsPath;
use crate::resolve::remember_trees;
use crate::reward::Measured;
use crate::tape::{Lost, Source, Tape};
use crate::trace::operation::Operation;
use crate::trace::reader::Store;
use crate::workspace::snapshot::Trust;

/// How long a recorded server is waited for. It answers at once, or ends.
const PATIENCE: Duration = Duration::from_secs(60);

/// How much text stays parsed from operation to operation, in bytes: most of a replay is parsing.
const PARSED: usize = 8 << 20;

/// What came of a replay.
#[derive(Debug)]
pub struct Replayed {
    /// The bundle, without what differs from run to run.
    pub bundle: Bundle,
    /// The first question that was not recorded: then the bundle means nothing.
    pub lost: Option<Lost>,
}

/// Nobody listens to a replay.
struct Silent;

impl Progress for Silent {
    fn step(&self, _: &str) {}
    fn say(&self, _: &str) {}
    fn done(&self) {}
}

/// Makes the bundle of an operation again.
pub async fn replay(operation: Operation, store: &Arc<Store>, grounds: &mut Grounds) -> Replayed {
    let Operation { request, resolved, workspace, server, answers, calls, introduction, fault, .. } =
        operation;
    remember_trees(PARSED);
    // A server that never introduced itself cannot be asked again either.
    let was_there = calls.keys().any(|(method, _)| method == "initialize");
    let tape = Tape::replaying(Source { answers, blobs: store.clone(), calls });
    let unrecorded =
        || ErrorBody::new(ErrorSymbol::ReplayMismatch, "the trace does not tell why this failed");
    let ground = workspace.and_then(|id| grounds.get(id, || store.workspace(&id)));
    let (Some(request), Some(server)) = (request.clone(), server) else {
        let error = fault.map_or_else(unrecorded, |(error, _)| error);
        return told(sealed(Draft::failed(request, error)), None, &tape);
    };
    let settings = settings(server, ground.as_deref());
    if request.cmd == Command::Undo {
        return told(sealed(refactor::undo(&settings, &request, &tape)), None, &tape);
    }
    let Some(ground) = ground else {
        let error = fault.map_or_else(unrecorded, |(error, _)| error);
        return told(sealed(Draft::failed(Some(request), error)), None, &tape);
    };
    let fault = match fault {
        Some((error, false)) => {
            let made = failure_of(&request, Failure::told(error), Some(&ground), None, Road::Cold);
            return told(sealed(made.attempt.draft), None, &tape);
        }
        fault => fault.map(|(error, _)| error),
    };
    let asked = resolved.as_ref().unwrap_or(&request);
    let state = Arc::new(State::take(&settings, asked, ground.clone(), tape.clone()));
    let orchestrator = Orchestrator::for_one(settings);
    let outcome = match fault {
        Some(error) => {
            if was_there {
                let _ = attempt(&orchestrator, asked, &state, server, introduction).await;
            }
            Err(Failure::told(error))
        }
        None => attempt(&orchestrator, asked, &state, server, introduction).await,
    };
    let mut attempt = match outcome {
        Ok(attempt) => attempt,
        Err(failure) => failure_of(&request, failure, Some(&ground), Some(&state), Road::Cold).attempt,
    };
    // The bundle echoes what was asked, in its own words.
    attempt.draft.request = Some(request.clone());
    if let Some(resolution) = &mut attempt.draft.resolution {
        resolution.original = request.selector.as_ref().map(ToString::to_string).unwrap_or_default();
    }
    orchestrator.write(&request, &mut attempt, &tape).await;
    orchestrator.close().await;
    told(sealed(attempt.draft), attempt.measured, &tape)
}

fn told(bundle: Bundle, measured: Option<Measured>, tape: &Tape) -> Replayed {
    Replayed { bundle: rewarded(bundle, measured), lost: tape.first_lost() }
}

/// The attempt on a server that says what was recorded.
async fn attempt(
    orchestrator: &Orchestrator,
    request: &Request,
    state: &Arc<State>,
    server: ServerKind,
    introduction: Vec<String>,
) -> Result<Attempt, Failure> {
    if needs_server(request)
        && state.target_error().is_none()
        && let Ok(found) = state.ground.tools.found.clone()
    {
        let options = InitializeOptions {
            root: state.ground.snapshot.root().clone(),
            settings: ServerSettings::default(),
            process_id: None,
            within: PATIENCE,
        };
        let connection = recorded_server(state.tape.clone(), introduction);
        let client = Client::initialize(connection, None, Profile::of(server), options).await?;
        orchestrator.seat(request, Server { client, found }, &state.ground).await;
    }
    let mut road = Road::Cold;
    // The recorded server was never asked anything, so what the question hangs on need not be found out.
    orchestrator.attempt(request, state, None, Some(Access::Pristine), Due::never(), &mut road).await
}

/// Settings that lead nowhere: whatever is not on the tape is not there.
fn settings(server: ServerKind, ground: Option<&Ground>) -> Settings {
    let nowhere = AbsPath::new("/lanser/nowhere").expect("it is absolute");
    Settings {
        root: ground.map_or_else(|| nowhere.clone(), |ground| ground.snapshot.root().clone()),
        copy_of: None,
        server,
        server_version: None,
        server_command: None,
        python: None,
        timeout: PATIENCE,
        offline: true,
        trust_workspace: false,
        trust: Trust::Stat,
        cache: nowhere.clone(),
        keep: false,
        temp: nowhere,
        guard: None,
        search_path: Vec::new(),
        environment: BTreeMap::new(),
        verbose: false,
        threads: 1,
        session_memory: u64::MAX,
        progress: Arc::new(Silent),
        trace: None,
    }
}
