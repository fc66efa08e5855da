//! The checks of git and the file system on the files that an edit would write.

use super::checks::{CheckFailure, Checks};
use super::commit;
use crate::edit::EditPlan;
use crate::engine::blocking::blocking_within;
use crate::engine::failure::Failure;
use crate::engine::request_state::RequestState;
use crate::engine::settings::Settings;
use crate::model::edits::CheckName;
use crate::model::error::ErrorSymbol;
use crate::model::request::{Command, DirtyPolicy, Request};
use crate::path::{DocUri, WorkspacePath};
use crate::tape::IoKind;
use crate::workspace::git::program::GitProgram;
use crate::workspace::git::state::{GitFileState, GitState, state as git_state};

/// Records whether the files are committed, as far as the request demands it, and whether the file system allows
/// writing them. An empty plan stands for one that is not known yet.
pub(super) async fn check_files(
    settings: &Settings,
    state: &RequestState,
    request: &Request,
    checks: &mut Checks<'_>,
    plan: &EditPlan,
) -> Result<(), Failure> {
    let paths: Vec<WorkspacePath> = plan.paths().cloned().collect();
    let (root, checkout, trusted) = (settings.root.clone(), settings.checkout(), settings.trust_workspace);
    let (search_path, environment) = (settings.search_path.clone(), settings.environment.clone());
    let (transactions, guard) = (settings.transactions(), settings.guard.clone());
    let (changes, policy) = (commit::changes(plan), commit::policy(request));
    let tape = state.tape.clone();
    let outcome = blocking_within(settings.timeout, move || {
        let inspect = || {
            let program = GitProgram::find(&search_path, &environment, &checkout, trusted);
            let program = program.map(|program| program.guarded(guard.clone()));
            let refused = (!changes.is_empty()).then(|| transactions.plan(changes, policy).map(drop).err());
            let refused = refused.flatten();
            let refused = refused.map(|error| {
                let hint = commit::hint(&error).map(str::to_owned);
                (commit::symbol(&error), error.to_string(), hint)
            });
            (git_state(&root, &paths, program.as_ref()), refused)
        };
        let unrecorded = || (GitState::Unknown("it was not recorded".to_owned()), None);
        tape.query(IoKind::Guard, &("files", &paths), inspect, unrecorded)
    });
    let (git, refused) = outcome.await?;
    check_git(checks, request, plan.changes().is_empty(), git);
    if let Some((symbol, error, hint)) = refused {
        let name = if symbol == ErrorSymbol::Jail { CheckName::Jail } else { CheckName::Content };
        let reason = CheckFailure { symbol: Some(symbol), data: None, hint };
        checks.replace(name, state.inputs.paths.text(&error), Vec::new(), reason);
    }
    Ok(())
}

/// Records what git reports. Whatever does not depend on the plan stops `--apply` before the server is asked.
fn check_git(checks: &mut Checks<'_>, request: &Request, is_unplanned: bool, outcome: GitState) {
    let dirt = request.options.guards.dirty;
    let is_early = dirt == DirtyPolicy::None && matches!(request.cmd, Command::Rename | Command::Actions);
    let report = match outcome {
        GitState::NoRepository => {
            checks.pass(CheckName::Git, "the files are not in a git repository");
            return;
        }
        GitState::Unknown(reason) => {
            checks.fail(
                CheckName::Git,
                format!("cannot determine whether the files are committed: {reason}"),
                Vec::new(),
            );
            if is_early {
                checks.stops_early(CheckName::Git);
            }
            return;
        }
        GitState::Known(report) => report,
    };
    let name = |state: GitFileState| match state {
        GitFileState::Modified => "has uncommitted changes",
        GitFileState::Conflicted => "has unresolved merge conflicts",
        GitFileState::Untracked => "is not tracked by git",
        GitFileState::Ignored => "is ignored by git",
        GitFileState::Outside => "is outside of git",
        GitFileState::Unwatched => "is marked assume-unchanged or skip-worktree, so that git ignores changes",
        GitFileState::Clean | GitFileState::Absent => "is clean",
    };
    let dirty: Vec<_> = report.files.iter().filter(|(_, state)| !state.is_clean()).collect();
    let is_changed = |state: &GitFileState| {
        matches!(state, GitFileState::Modified | GitFileState::Conflicted | GitFileState::Untracked)
    };
    if report.files.values().chain(report.elsewhere.values()).any(is_changed) {
        checks.offer_commit();
        if is_early {
            checks.stops_early(CheckName::Git);
        }
    }
    if let Some((path, state)) = dirty.first() {
        let more = match dirty.len() - 1 {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        let paths: Vec<String> =
            dirty.iter().map(|(path, _)| DocUri::Workspace((*path).clone()).to_string()).collect();
        let filters = match report.has_filters {
            true => "; filters configured in the repository were not run: `lanser trust add` allows them",
            false => "",
        };
        checks.fail(CheckName::Git, format!("{path} {}{more}{filters}", name(**state)), paths.clone());
        checks.set_failure(CheckName::Git, CheckFailure::files(paths));
        return;
    }
    if let Some((path, state)) = report.elsewhere.iter().next().filter(|_| dirt == DirtyPolicy::None) {
        let state = name(*state);
        let (more, them) = match report.elsewhere.len() - 1 {
            0 => (String::new(), "it"),
            more => (format!(", and {more} more"), "them"),
        };
        // Before there is a plan, the weaker option may be enough.
        checks.offer_elsewhere();
        let note = match is_unplanned {
            true => String::new(),
            false => format!(" (this edit does not change {them})"),
        };
        let what = format!("{path} {state}{more}{note}");
        let paths: Vec<String> = report.elsewhere.keys().cloned().collect();
        checks.fail(CheckName::Git, what, Vec::new());
        checks.set_failure(CheckName::Git, CheckFailure::files(paths));
        return;
    }
    checks.pass(CheckName::Git, "the files have no uncommitted changes");
}
