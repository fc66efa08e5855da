//! Measures what a step from one bundle to another still needs: files that only one of them measured are measured in
//! the state of the other, written to a temporary folder.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::bundle_states::BundleStates;
use super::editable_installs::reads_live;
use super::measure::measured_scope;
use super::scratch_workspace::ScratchWorkspace;
use super::service::with_interpreter;
use crate::bundle::portable::PathMap;
use crate::engine::blocking::blocking_within;
use crate::engine::failure::Failure;
use crate::engine::settings::Settings;
use crate::model::bundle::Bundle;
use crate::model::reward::{RewardScope, Supplement};
use crate::path::{DocUri, WorkspacePath};
use crate::reward::{RewardFormula, environment_pin, scope_pin, unmeasured_files};
use crate::workspace::files::{FileKind, Files as _};

/// At most this many files are measured for one step.
const MAX_FILES: usize = 400;

/// Measures what a step needs for its reward; `None` if nothing is missing.
///
/// # Errors
/// The reason why it cannot be measured.
pub async fn supplement(
    settings: &Settings,
    previous: &Bundle,
    bundle: &Bundle,
    terms: &RewardFormula,
) -> Result<Option<Supplement>, String> {
    let Some(missing) = unmeasured_files(bundle, previous, terms) else { return Ok(None) };
    let (count, message) = (missing.previous.len() + missing.own.len(), |failure: Failure| {
        failure.into_body(&PathMap::new().workspace(settings.root.clone())).message
    });
    if count > MAX_FILES {
        return Err(format!("{count} files are too many to measure for one step; the limit is {MAX_FILES}"));
    }
    let settings = with_interpreter(settings).await.map_err(message)?;
    let bundle_states = BundleStates::scan(&settings).await.map_err(message)?;
    let of_state = async |bundle: &Bundle, files: &BTreeSet<DocUri>| match files.is_empty() {
        true => Ok(RewardScope::default()),
        false => measured(&settings, &bundle_states, bundle, files).await,
    };
    let previous_scope = of_state(previous, &missing.previous).await;
    let previous_scope =
        previous_scope.map_err(|why| format!("and the missing files cannot be measured: {why}"))?;
    let own_scope = of_state(bundle, &missing.own).await;
    let own_scope = own_scope.map_err(|why| format!("and the missing files cannot be measured: {why}"))?;
    Ok(Some(Supplement { previous: previous_scope, own: own_scope }))
}

/// The server's diagnostics in files of the state that a bundle leads to.
async fn measured(
    settings: &Settings,
    bundle_states: &BundleStates,
    bundle: &Bundle,
    files: &BTreeSet<DocUri>,
) -> Result<RewardScope, String> {
    let paths: Option<Vec<WorkspacePath>> = files.iter().map(|uri| uri.workspace_path().cloned()).collect();
    let paths = paths.ok_or("some of the files are outside of the workspace")?;
    let (finder, owned) = (bundle_states.clone(), bundle.clone());
    let tree = blocking_within(settings.timeout, move || finder.tree(&owned, true)).await;
    let tree = tree.map_err(|failure| failure.to_string())??;
    let message =
        |failure: Failure| failure.into_body(&PathMap::new().workspace(settings.root.clone())).message;
    let tree = Arc::new(tree);
    let mut scratch = ScratchWorkspace::new(settings, &tree).await.map_err(message)?;
    let scope = async {
        if let Some(why) = reads_live(&scratch.state.inputs, &settings.root, &tree) {
            return Err(why);
        }
        scratch.ready().await.map_err(message)?;
        let environments = bundle.environment.as_ref().zip(scratch.environment());
        if let Some(what) = environments.and_then(|(then, now)| environment_pin::difference(then, &now)) {
            return Err(format!("{what} has changed"));
        }
        let is_there = |path: &&WorkspacePath| {
            scratch.state.files.kind(&scratch.at(path)) == FileKind::File
                && scope_pin::is_checked_name(path.as_str())
        };
        // A missing file has no diagnostics.
        let (there, absent): (Vec<&WorkspacePath>, Vec<&WorkspacePath>) = paths.iter().partition(is_there);
        let there: Vec<_> = there.into_iter().map(|path| scratch.at(path)).collect();
        let found = scratch.diagnostics(&there).await.map_err(message)?;
        let outcome = scratch.with_context(async |cx| Ok(measured_scope(cx, found))).await;
        let mut scope = outcome.map_err(message)?;
        scope.clean.extend(absent.into_iter().cloned().map(DocUri::Workspace));
        scope.clean.sort();
        Ok(scope)
    }
    .await;
    scratch.close().await;
    scope
}
