//! What git and the disk say of the files that an edit would write.

use super::checks::{Checks, Reason};
use super::commit;
use crate::edit::Plan;
use crate::model::edits::CheckName;
use crate::model::error::ErrorSymbol;
use crate::model::request::Dirt;
use crate::orchestrator::ask::Asking;
use crate::orchestrator::blocking_within;
use crate::orchestrator::failure::Failure;
use crate::path::{DocUri, WorkspacePath};
use crate::tape::Door;
use crate::workspace::git::program::GitProgram;
use crate::workspace::git::state::{FileState, GitState, state};

/// Records whether the files are committed, as far as the caller wants them to be, and whether the disk would let them be
/// written.
pub(super) async fn files(asking: &Asking<'_>, checks: &mut Checks<'_>, plan: &Plan) -> Result<(), Failure> {
    let settings = asking.settings;
    let paths: Vec<WorkspacePath> = plan.paths().cloned().collect();
    let (root, checkout, trusted) = (settings.root.clone(), settings.checkout(), settings.trust_workspace);
    let (search_path, environment) = (settings.search_path.clone(), settings.environment.clone());
    let transactions = commit::transactions(settings);
    let (changes, policy) = (commit::changes(plan), commit::policy(asking.request));
    let tape = asking.state.tape.clone();
    let said = blocking_within(settings.timeout, "git and the disk", move || {
        let look = || {
            let program = GitProgram::find(&search_path, &environment, &checkout, trusted);
            let refused = transactions.plan(changes, policy).map(drop).err();
            let refused = refused.map(|error| {
                let hint = commit::hint(&error).map(str::to_owned);
                (commit::symbol(&error), error.to_string(), hint)
            });
            (state(&root, &paths, program.as_ref()), refused)
        };
        let lost = || (GitState::Unknown("it was not recorded".to_owned()), None);
        tape.ask(Door::Guard, &("files", &paths), look, lost)
    });
    let (git, refused) = said.await?;
    self::git(checks, asking.request.options.guards.dirty, git);
    if let Some((symbol, error, hint)) = refused {
        let name = if symbol == ErrorSymbol::Jail { CheckName::Jail } else { CheckName::Content };
        let reason = Reason { symbol: Some(symbol), data: None, hint };
        checks.replace(name, asking.places.paths.text(&error), Vec::new(), reason);
    }
    Ok(())
}

fn git(checks: &mut Checks<'_>, dirt: Dirt, said: GitState) {
    let report = match said {
        GitState::NoRepository => {
            checks.pass(CheckName::Git, "the files are in no git repository");
            return;
        }
        GitState::Unknown(reason) => {
            checks.fail(
                CheckName::Git,
                format!("git cannot tell whether the files are committed: {reason}"),
                Vec::new(),
            );
            return;
        }
        GitState::Known(report) => report,
    };
    let name = |state: FileState| match state {
        FileState::Modified => "has uncommitted changes",
        FileState::Conflicted => "is in the middle of a merge",
        FileState::Untracked => "is not known to git",
        FileState::Ignored => "is ignored by git",
        FileState::Outside => "is outside of git",
        FileState::Unwatched => "is marked so that git does not look at it (assume-unchanged, skip-worktree)",
        FileState::Clean | FileState::Absent => "is clean",
    };
    let dirty: Vec<_> = report.files.iter().filter(|(_, state)| !state.is_clean()).collect();
    if let Some((path, state)) = dirty.first() {
        let more = match dirty.len() - 1 {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        let paths: Vec<String> =
            dirty.iter().map(|(path, _)| DocUri::Workspace((*path).clone()).to_string()).collect();
        let filters = match report.has_filters {
            true => {
                "; git's filters that the repository itself names were not run: `lanser trust add` has them run"
            }
            false => "",
        };
        checks.fail(CheckName::Git, format!("{path} {}{more}{filters}", name(**state)), paths.clone());
        checks.because(CheckName::Git, Reason::files(paths));
        return;
    }
    if let Some(path) = report.elsewhere.keys().next().filter(|_| dirt == Dirt::None) {
        let count = report.elsewhere.len();
        let what = format!("the files are clean, and elsewhere is not: {path}");
        let more = if count > 1 { format!("{what}, and {} more", count - 1) } else { what };
        let paths: Vec<String> = report.elsewhere.keys().cloned().collect();
        checks.fail(CheckName::Git, more, Vec::new());
        checks.because(CheckName::Git, Reason::files(paths));
        return;
    }
    checks.pass(CheckName::Git, "the files have no uncommitted changes");
}
