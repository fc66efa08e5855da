//! Writing an operation down.

use std::sync::Arc;

use super::surroundings;
use crate::model::bundle::Bundle;
use crate::model::error::ErrorBody;
use crate::model::request::Request;
use crate::orchestrator::Settings;
use crate::orchestrator::ground::Ground;
use crate::orchestrator::state::State;
use crate::tape::Tape;
use crate::trace::machine::Machine;
use crate::trace::operation::Finished;

/// What an outcome came of.
#[derive(Default)]
pub(in crate::orchestrator) struct Origin {
    pub(in crate::orchestrator) ground: Option<Arc<Ground>>,
    pub(in crate::orchestrator) state: Option<Arc<State>>,
    /// What failed outside.
    pub(in crate::orchestrator) fault: Option<ErrorBody>,
}

/// Appends an operation to the trace, if there is one.
pub(in crate::orchestrator) fn record(
    settings: &Settings,
    request: Option<Request>,
    origin: Origin,
    tape: &Tape,
    bundle: &Bundle,
) {
    let Some(trace) = &settings.trace else { return };
    let machine = origin.ground.as_ref().map_or_else(
        || Machine::new([(&settings.root, "workspace")]),
        |ground| surroundings::machine(ground),
    );
    let workspace = origin.ground.as_ref().and_then(|ground| surroundings::told(ground, &machine));
    let resolved = origin.state.is_some();
    let operation = Finished {
        request,
        server: Some(settings.server),
        workspace,
        recorded: tape.take(),
        fault: origin.fault.map(|error| (error, resolved)),
        bundle: bundle.clone(),
        machine,
    };
    if let Err(error) = trace.append(operation) {
        settings.progress.say(&format!("the trace could not be written: {error}"));
    }
}
