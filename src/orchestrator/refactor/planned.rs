//! Making an edit to the contents of the ground, and what the bundle says of the result.

use super::base::{self, Disk};
use super::checks::{Checks, Reason};
use super::filters::Filters;
use crate::edit::preview::preview;
use crate::edit::target::{self, TargetError};
use crate::edit::{Base, FileChange, Plan, PlanError, Planner};
use crate::model::edits::{ChangeKind, CheckName, EditedFile, Edits, WorkspaceEdit};
use crate::model::error::{ConflictHunk, ErrorData, ErrorSymbol};
use crate::orchestrator::ask::Asking;
use crate::orchestrator::failure::Failure;
use crate::path::DocUri;
use crate::text::ColumnUnit;

/// What makes an edit.
pub(super) type Make<'m> = &'m dyn Fn(&mut Planner<'_>) -> Result<(), PlanError>;

/// Plans an edit, and records the checks that are about its files. `None` when it cannot be made at all: then a check says
/// why.
pub(super) fn plan(
    asking: &Asking<'_>,
    checks: &mut Checks<'_>,
    unit: ColumnUnit,
    make: Make<'_>,
) -> Result<Option<Plan>, Failure> {
    let disk = Disk::new(asking.state, asking.request.options.guards.outside);
    plan_on(asking, checks, &disk, unit, make)
}

/// The same for other contents than those of the ground.
pub(super) fn plan_on(
    asking: &Asking<'_>,
    checks: &mut Checks<'_>,
    base: &dyn Base,
    unit: ColumnUnit,
    make: Make<'_>,
) -> Result<Option<Plan>, Failure> {
    let mut planner = Planner::new(asking.state.ground.snapshot.root(), base, unit);
    let plan = match make(&mut planner).and_then(|()| planner.plan()) {
        Ok(plan) => plan,
        Err(error) => {
            refused(asking, checks, &error);
            return Ok(None);
        }
    };
    jail(asking, checks, &plan);
    checks.pass(CheckName::Overlap, "no two edits overlap");
    checks.pass(CheckName::Content, "the edit fits what the files hold");
    filters(asking, checks, &plan)?;
    Ok(Some(plan))
}

/// Records whether every file lies in the workspace. A plan that has others is one for which the jail was given up.
fn jail(asking: &Asking<'_>, checks: &mut Checks<'_>, plan: &Plan) {
    let outside = plan.paths().filter(|path| !base::leads_inside(asking.state, path));
    let outside: Vec<String> = outside.map(|path| DocUri::Workspace(path.clone()).to_string()).collect();
    if outside.is_empty() {
        checks.pass(CheckName::Jail, format!("{} in the workspace", files(plan.changes().len())));
    } else {
        let detail = format!(
            "{} lead out of the workspace, as --workspace-jail=false lets them",
            files(outside.len())
        );
        checks.give_up(CheckName::Jail, detail, outside);
    }
}

pub(super) fn files(count: usize) -> String {
    if count == 1 { "1 file".to_owned() } else { format!("{count} files") }
}

/// Records why an edit cannot be planned.
fn refused(asking: &Asking<'_>, checks: &mut Checks<'_>, error: &PlanError) {
    let told = asking.places.paths.text(&error.to_string());
    let at = |path: &crate::path::WorkspacePath, range: &crate::text::Range| {
        let path = asking.state.ground.snapshot.absolute(path);
        asking.places.describe(&path, *range).1
    };
    match error {
        PlanError::Target(TargetError::NotLocal(_) | TargetError::Encoding(_) | TargetError::Climbs(_))
        | PlanError::Target(TargetError::Outside(_) | TargetError::Git(_)) => {
            checks.fail(CheckName::Jail, told, Vec::new());
        }
        PlanError::Link { path, .. } => {
            checks.fail(CheckName::Jail, told, vec![DocUri::Workspace(path.clone()).to_string()]);
            let hint = "only links within the workspace are followed, unless there is --workspace-jail=false";
            checks.because(CheckName::Jail, Reason::default().hint(hint));
        }
        PlanError::Overlap { path, first, second } => {
            checks.fail(CheckName::Overlap, told, vec![at(path, first), at(path, second)]);
        }
        PlanError::NoSuchRange { path, range } => {
            checks.fail(CheckName::Content, told, vec![at(path, range)]);
        }
        PlanError::Missing(path)
        | PlanError::Exists(path)
        | PlanError::Unreadable { path, .. }
        | PlanError::Unwritable { path, .. } => {
            checks.fail(CheckName::Content, told, vec![DocUri::Workspace(path.clone()).to_string()]);
        }
        PlanError::OnlyMode { path, executable } => {
            checks.fail(CheckName::Content, told, vec![DocUri::Workspace(path.clone()).to_string()]);
            let sign = if *executable { '+' } else { '-' };
            let hint = format!("do that by itself, `chmod {sign}x {path}`, and take it out of the diff");
            checks.because(CheckName::Content, Reason::default().hint(hint));
        }
        PlanError::Folder(path) => {
            checks.fail(CheckName::Content, told, vec![DocUri::Workspace(path.clone()).to_string()]);
            let hint = "name each of its files in the edit (folders come and go with them), or move it with `git mv` and \
                        bring an edit of the imports";
            checks.because(CheckName::Content, Reason::default().hint(hint));
        }
        PlanError::Conflict { path, conflicts } => {
            let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
            let hunks = conflicts.iter().map(|conflict| ConflictHunk {
                path: path.to_string(),
                line: number(conflict.at),
                ours: conflict.found.clone(),
                theirs: conflict.wanted.clone(),
                base: conflict.expected.clone(),
            });
            let data = ErrorData::Conflicts { hunks: hunks.collect() };
            let places = conflicts
                .iter()
                .map(|conflict| format!("{}@L{}:C1", DocUri::Workspace(path.clone()), conflict.at));
            checks.fail(CheckName::Content, told, places.collect());
            checks.because(CheckName::Content, Reason::of(ErrorSymbol::ApplyConflict).data(data));
        }
    }
}

fn filters(asking: &Asking<'_>, checks: &mut Checks<'_>, plan: &Plan) -> Result<(), Failure> {
    let filters = Filters::new(&asking.request.options.guards).map_err(Failure::told)?;
    if filters.are_none() {
        return Ok(());
    }
    let stopped = plan.paths().filter(|path| !filters.pass(path));
    let stopped: Vec<String> = stopped.map(|path| DocUri::Workspace(path.clone()).to_string()).collect();
    checks.because(CheckName::Filters, Reason::files(stopped.clone()));
    checks.none_of(
        CheckName::Filters,
        stopped,
        "--allow and --deny let every file pass",
        "--allow or --deny stops files",
    );
    Ok(())
}

/// What the bundle says of a plan.
pub(super) fn told(asking: &Asking<'_>, edit: Option<WorkspaceEdit>, plan: &Plan) -> Edits {
    let mut diff = String::new();
    let mut edited = Vec::new();
    for change in plan.changes() {
        let shown = preview(change);
        edited.push(edited_file(change, shown.insertions, shown.deletions));
        diff.push_str(&shown.diff);
    }
    let root = asking.state.ground.snapshot.root();
    let portable = |uri: &str| match target::of_uri(root, uri) {
        Ok(path) => DocUri::Workspace(path).to_string(),
        Err(_) => asking.places.paths.text(uri),
    };
    Edits {
        workspace_edit: edit.map(|edit| edit.with_uris(portable)),
        diff,
        files: edited,
        ..Edits::default()
    }
}

fn edited_file(change: &FileChange, insertions: u32, deletions: u32) -> EditedFile {
    let digest = |bytes: &[u8]| crate::digest::Digest::of(bytes);
    let before = change.before.as_ref().map(|original| digest(&original.bytes));
    let after = change.after.as_deref().map(digest);
    EditedFile {
        uri: DocUri::Workspace(change.path.clone()),
        change: match (&change.from, before, after) {
            (Some(_), ..) => ChangeKind::Rename,
            (None, None, _) => ChangeKind::Create,
            (None, _, None) => ChangeKind::Delete,
            (None, Some(_), Some(_)) => ChangeKind::Modify,
        },
        from: change.from.clone().map(DocUri::Workspace),
        insertions,
        deletions,
        before,
        after,
    }
}
