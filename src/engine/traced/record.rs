//! Writes operations to the trace.

use super::recorded_inputs;
use crate::engine::context::AnswerOrigin;
use crate::engine::settings::Settings;
use crate::model::bundle::Bundle;
use crate::model::request::Request;
use crate::tape::Tape;
use crate::trace::operation::FinishedOperation;
use crate::trace::path_redactor::PathRedactor;

/// Appends an operation to the trace, if the settings have one. Returns its number there.
pub(in crate::engine) fn record(
    settings: &Settings,
    request: Option<Request>,
    origin: AnswerOrigin,
    tape: &Tape,
    bundle: &Bundle,
) -> Option<u64> {
    let trace = settings.trace.as_ref()?;
    let redactor = origin.inputs.as_ref().map_or_else(
        || PathRedactor::new([(&settings.root, "workspace")]),
        |inputs| recorded_inputs::redactor(inputs),
    );
    let workspace =
        origin.inputs.as_ref().and_then(|inputs| recorded_inputs::workspace_event(inputs, &redactor));
    let resolved = origin.state.is_some();
    let operation = FinishedOperation {
        request,
        server: Some(settings.server),
        workspace,
        recorded: tape.take_recording(),
        fault: origin.fault.map(|error| (error, resolved)),
        bundle: bundle.clone(),
        redactor,
    };
    let written = trace.append(operation);
    written
        .inspect_err(|error| settings.progress.notify(&format!("the trace could not be written: {error}")))
        .ok()
}
