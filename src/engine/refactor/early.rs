//! What can refuse an edit before a server is asked for it: the new name by itself, and uncommitted changes.

use super::checks::Checks;
use super::{guards, names};
use crate::bundle::seal::BundleDraft;
use crate::edit::EditPlan;
use crate::engine::context::Attempt;
use crate::engine::failure::Failure;
use crate::engine::request_state::RequestState;
use crate::engine::resolution;
use crate::engine::settings::Settings;
use crate::model::edits::Edits;
use crate::model::request::{Command, DirtyPolicy, Request, is_module_path};

/// The refusal of a request for an edit which only the server knows; `None` if nothing refuses it so far. No preview is made of an
/// edit with an invalid name; one in a dirty work tree is made, and its error is the same.
pub(in crate::engine) async fn refusal(
    request: &Request,
    state: &RequestState,
    settings: &Settings,
) -> Result<Option<Attempt>, Failure> {
    let is_rename = request.cmd == Command::Rename;
    if !(is_rename || request.cmd == Command::Actions) {
        return Ok(None);
    }
    let mut checks = Checks::new(request, settings);
    if let Some(new) = request.new_name.as_deref().filter(|new| is_rename && !new.is_empty()) {
        match &request.options.module {
            None => names::check_identifier(&mut checks, new),
            Some(_) if is_module_path(new) => {}
            Some(_) => names::check_identifiers(&mut checks, new),
        }
    }
    if request.writes() && request.options.guards.dirty == DirtyPolicy::None {
        guards::check_files(settings, state, request, &mut checks, &EditPlan::default()).await?;
    }
    let Some(error) = checks.error() else { return Ok(None) };
    let mut draft = BundleDraft::failed(Some(request.clone()), error);
    draft.resolution = state.resolution(request);
    draft.relocation = resolution::rules_of(draft.resolution.as_ref());
    draft.environment = Some(state.inputs.environment.clone());
    draft.warnings.clone_from(&state.inputs.warnings);
    draft.edits = Some(Edits { safety: checks.into_sorted(), ..Edits::default() });
    Ok(Some(Attempt { draft, dual: Vec::new(), plan: None, measured: None }))
}
