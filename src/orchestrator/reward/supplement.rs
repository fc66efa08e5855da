//! What a step from one bundle to another still needs: files that only one of them looked at are measured in the state of the other,
//! laid out anew.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::bench::Bench;
use super::editable::reads_live;
use super::folder::sweep;
use super::measure::listed;
use super::origin::Origins;
use super::score::with_interpreter;
use crate::bundle::portable::PathMap;
use crate::model::bundle::Bundle;
use crate::model::reward::{RewardScope, Supplement};
use crate::orchestrator::failure::Failure;
use crate::orchestrator::{Settings, blocking};
use crate::path::{DocUri, WorkspacePath};
use crate::reward::{Terms, environment_pin, scope_pin, unmeasured};
use crate::workspace::files::{FileKind, Files as _};

/// More files are not measured for a single step.
const MOST: usize = 400;

/// Measures what a step needs to have a reward; nothing when it needs nothing.
///
/// # Errors
/// Why it cannot be measured.
pub async fn supplement(
    settings: &Settings,
    previous: &Bundle,
    bundle: &Bundle,
    terms: &Terms,
) -> Result<Option<Supplement>, String> {
    let Some(missing) = unmeasured(bundle, previous, terms) else { return Ok(None) };
    let (count, told) = (missing.previous.len() + missing.own.len(), |failure: Failure| {
        failure.into_body(&PathMap::new().workspace(settings.root.clone())).message
    });
    if count > MOST {
        return Err(format!("{count} files are too many to measure for one step, the most is {MOST}"));
    }
    let temp = settings.temp.clone();
    blocking(move || sweep(&temp)).await.map_err(told)?;
    let settings = with_interpreter(settings).await.map_err(told)?;
    let origins = Origins::new(&settings).await.map_err(told)?;
    let of_state = async |bundle: &Bundle, files: &BTreeSet<DocUri>| match files.is_empty() {
        true => Ok(RewardScope::default()),
        false => measured(&settings, &origins, bundle, files).await,
    };
    let then = of_state(previous, &missing.previous).await;
    let then = then.map_err(|why| format!("nor can that be made up for: {why}"))?;
    let own = of_state(bundle, &missing.own).await;
    let own = own.map_err(|why| format!("nor can that be made up for: {why}"))?;
    Ok(Some(Supplement { previous: then, own }))
}

/// What a server finds in files of the state that a bundle leads to.
async fn measured(
    settings: &Settings,
    origins: &Origins,
    bundle: &Bundle,
    files: &BTreeSet<DocUri>,
) -> Result<RewardScope, String> {
    let paths: Option<Vec<WorkspacePath>> = files.iter().map(|uri| uri.workspace_path().cloned()).collect();
    let paths = paths.ok_or("some of the files are outside of the workspace")?;
    let (finder, owned) = (origins.clone(), bundle.clone());
    let tree = blocking(move || finder.tree(&owned, true)).await.map_err(|failure| failure.to_string())??;
    let told = |failure: Failure| failure.into_body(&PathMap::new().workspace(settings.root.clone())).message;
    let tree = Arc::new(tree);
    let mut bench = Bench::new(settings, &tree).await.map_err(told)?;
    let scope = async {
        if let Some(why) = reads_live(&bench.state.ground, &settings.root, &tree) {
            return Err(why);
        }
        bench.ready().await.map_err(told)?;
        let environments = bundle.environment.as_ref().zip(bench.environment());
        if let Some(what) = environments.and_then(|(then, now)| environment_pin::difference(then, &now)) {
            return Err(format!("{what} is another one now"));
        }
        let is_there = |path: &&WorkspacePath| {
            bench.state.files.kind(&bench.at(path)) == FileKind::File
                && scope_pin::is_checked_name(path.as_str())
        };
        // What is not there has nothing wrong with it.
        let (there, absent): (Vec<&WorkspacePath>, Vec<&WorkspacePath>) = paths.iter().partition(is_there);
        let there: Vec<_> = there.into_iter().map(|path| bench.at(path)).collect();
        let found = bench.diagnostics(&there).await.map_err(told)?;
        let listed = bench.asking(async |asking| Ok(listed(asking, &found))).await;
        let mut scope = listed.map_err(told)?;
        scope.clean.extend(absent.into_iter().cloned().map(DocUri::Workspace));
        scope.clean.sort();
        Ok(scope)
    }
    .await;
    bench.close().await;
    scope
}
