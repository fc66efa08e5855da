//! Applies an edit in memory to the contents of the files, and describes the result in the bundle.

use super::base::{self, Disk};
use super::checks::{CheckFailure, Checks};
use super::filters::Filters;
use crate::edit::preview::preview;
use crate::edit::target::{self, TargetError};
use crate::edit::{Base, EditPlan, PlanError, PlannedChange, Planner};
use crate::engine::context::RequestContext;
use crate::engine::failure::Failure;
use crate::model::edits::{CheckName, EditedFile, Edits, FileChangeKind, WorkspaceEdit};
use crate::model::error::{EditConflict, ErrorData, ErrorSymbol};
use crate::path::DocUri;
use crate::text::ColumnUnit;

/// How much of a line a message quotes, in characters.
const MAX_QUOTED_LENGTH: usize = 100;

/// A function that adds an edit to a planner.
pub(super) type AddEdit<'m> = &'m dyn Fn(&mut Planner<'_>) -> Result<(), PlanError>;

/// Plans an edit, and records the checks on its files. `None` when it cannot be applied; a failed check then has the
/// reason.
pub(super) fn plan(
    cx: &RequestContext<'_>,
    checks: &mut Checks<'_>,
    unit: ColumnUnit,
    add_edit: AddEdit<'_>,
) -> Result<Option<EditPlan>, Failure> {
    let disk = Disk::new(cx.state, cx.request.options.guards.outside);
    plan_against(cx, checks, &disk, unit, add_edit)
}

/// Plans an edit against other contents than those on disk.
pub(super) fn plan_against(
    cx: &RequestContext<'_>,
    checks: &mut Checks<'_>,
    base: &dyn Base,
    unit: ColumnUnit,
    add_edit: AddEdit<'_>,
) -> Result<Option<EditPlan>, Failure> {
    let mut planner = Planner::new(cx.state.inputs.snapshot.root(), base, unit);
    let plan = match add_edit(&mut planner).and_then(|()| planner.plan()) {
        Ok(plan) => plan,
        Err(error) => {
            record_plan_error(cx, checks, &error);
            return Ok(None);
        }
    };
    check_jail(cx, checks, &plan);
    checks.pass(CheckName::Overlap, "no two edits overlap");
    checks.pass(CheckName::Content, "the edit fits what the files hold");
    check_filters(cx, checks, &plan)?;
    Ok(Some(plan))
}

/// Records whether every file is in the workspace. A plan with files outside exists only if the jail check is
/// overridden.
fn check_jail(cx: &RequestContext<'_>, checks: &mut Checks<'_>, plan: &EditPlan) {
    let outside = plan.paths().filter(|path| !base::resolves_inside(cx.state, path));
    let outside: Vec<String> = outside.map(|path| DocUri::Workspace(path.clone()).to_string()).collect();
    if outside.is_empty() {
        checks.pass(CheckName::Jail, format!("{} in the workspace", files(plan.changes().len())));
    } else {
        let detail =
            format!("{} outside of the workspace, which --workspace-jail=false allows", files(outside.len()));
        checks.fail_overridden(CheckName::Jail, detail, outside);
    }
}

pub(super) fn files(count: usize) -> String {
    crate::text::plural(count, "file")
}

/// Records why an edit cannot be planned.
fn record_plan_error(cx: &RequestContext<'_>, checks: &mut Checks<'_>, error: &PlanError) {
    let message = cx.locations.paths.text(&error.to_string());
    let at = |path: &crate::path::WorkspacePath, range: &crate::text::Range| {
        let path = cx.state.inputs.snapshot.absolute(path);
        cx.locations.describe(&path, *range).1
    };
    match error {
        PlanError::Target(TargetError::NotLocal(_) | TargetError::Encoding(_) | TargetError::Climbs(_))
        | PlanError::Target(TargetError::Outside(_) | TargetError::Git(_)) => {
            checks.fail(CheckName::Jail, message, Vec::new());
        }
        PlanError::Link { path, .. } => {
            checks.fail(CheckName::Jail, message, vec![DocUri::Workspace(path.clone()).to_string()]);
            let hint = "links out of the workspace are followed only with --workspace-jail=false";
            checks.set_failure(CheckName::Jail, CheckFailure::default().hint(hint));
        }
        PlanError::Overlap { path, first, second } => {
            checks.fail(CheckName::Overlap, message, vec![at(path, first), at(path, second)]);
        }
        PlanError::NoSuchRange { path, range } => {
            checks.fail(CheckName::Content, message, vec![at(path, range)]);
        }
        PlanError::Missing(path)
        | PlanError::Exists(path)
        | PlanError::Unreadable { path, .. }
        | PlanError::Unwritable { path, .. } => {
            checks.fail(CheckName::Content, message, vec![DocUri::Workspace(path.clone()).to_string()]);
        }
        PlanError::CaseOnly { from, .. } => {
            checks.fail(CheckName::Content, message, vec![DocUri::Workspace(from.clone()).to_string()]);
            let hint = "rename it in two steps, through a third name";
            checks.set_failure(CheckName::Content, CheckFailure::of(ErrorSymbol::FsPermissions).hint(hint));
        }
        PlanError::OnlyMode { path, executable } => {
            checks.fail(CheckName::Content, message, vec![DocUri::Workspace(path.clone()).to_string()]);
            let sign = if *executable { '+' } else { '-' };
            let hint =
                format!("run `chmod {sign}x {path}` instead, and remove the change of mode from the diff");
            checks.set_failure(CheckName::Content, CheckFailure::default().hint(hint));
        }
        PlanError::Folder(path) => {
            checks.fail(CheckName::Content, message, vec![DocUri::Workspace(path.clone()).to_string()]);
            let hint = "name each of its files in the edit (folders are created and removed with them), or move it with `git mv` and \
                        apply an edit of the imports";
            checks.set_failure(CheckName::Content, CheckFailure::default().hint(hint));
        }
        PlanError::Conflict { path, conflicts } => {
            let first = conflicts.iter().find_map(|conflict| conflict.difference.as_ref());
            let message = match first {
                Some(difference) => format!(
                    "{message}: line {} is `{}`, not `{}`",
                    difference.at,
                    shortened(&difference.found),
                    shortened(&difference.expected)
                ),
                None => message,
            };
            let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
            let hunks = conflicts.iter().map(|conflict| EditConflict {
                path: path.to_string(),
                line: number(conflict.at),
                ours: conflict.found.clone(),
                theirs: conflict.wanted.clone(),
                base: conflict.expected.clone(),
                at: conflict.difference.as_ref().map(|difference| number(difference.at)),
                expected: conflict.difference.as_ref().map(|difference| difference.expected.clone()),
                found: conflict.difference.as_ref().map(|difference| difference.found.clone()),
            });
            let data = ErrorData::Conflicts { hunks: hunks.collect() };
            let places = conflicts
                .iter()
                .map(|conflict| format!("{}@L{}:C1", DocUri::Workspace(path.clone()), conflict.at));
            checks.fail(CheckName::Content, message, places.collect());
            checks.set_failure(CheckName::Content, CheckFailure::of(ErrorSymbol::ApplyConflict).data(data));
        }
    }
}

/// A line as a message quotes it.
fn shortened(line: &str) -> String {
    let line = line.trim_end();
    match line.char_indices().nth(MAX_QUOTED_LENGTH) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

fn check_filters(cx: &RequestContext<'_>, checks: &mut Checks<'_>, plan: &EditPlan) -> Result<(), Failure> {
    let filters = Filters::new(&cx.request.options.guards).map_err(Failure::reported)?;
    if filters.is_empty() {
        return Ok(());
    }
    let excluded = plan.paths().filter(|path| !filters.allows(path));
    let excluded: Vec<String> = excluded.map(|path| DocUri::Workspace(path.clone()).to_string()).collect();
    checks.set_failure(CheckName::Filters, CheckFailure::files(excluded.clone()));
    checks.fail_if_any(
        CheckName::Filters,
        excluded,
        "--allow and --deny permit every file",
        "--allow or --deny excludes files",
    );
    Ok(())
}

/// What the bundle reports about a plan.
pub(super) fn describe(cx: &RequestContext<'_>, edit: Option<WorkspaceEdit>, plan: &EditPlan) -> Edits {
    let mut diff = String::new();
    let mut edited = Vec::new();
    for change in plan.changes() {
        let shown = preview(change);
        edited.push(edited_file(change, shown.insertions, shown.deletions));
        diff.push_str(&shown.diff);
    }
    let root = cx.state.inputs.snapshot.root();
    let portable = |uri: &str| match target::of_uri(root, uri) {
        Ok(path) => DocUri::Workspace(path).to_string(),
        Err(_) => cx.locations.paths.text(uri),
    };
    Edits {
        workspace_edit: edit.map(|edit| edit.with_uris(portable).merged()),
        diff,
        notes: plan.notes.clone(),
        files: edited,
        ..Edits::default()
    }
}

fn edited_file(change: &PlannedChange, insertions: u32, deletions: u32) -> EditedFile {
    let digest = |bytes: &[u8]| crate::digest::Digest::of(bytes);
    let before = change.before.as_ref().map(|original| digest(&original.bytes));
    let after = change.after.as_deref().map(digest);
    EditedFile {
        uri: DocUri::Workspace(change.path.clone()),
        change: match (&change.from, before, after) {
            (Some(_), ..) => FileChangeKind::Rename,
            (None, None, _) => FileChangeKind::Create,
            (None, _, None) => FileChangeKind::Delete,
            (None, Some(_), Some(_)) => FileChangeKind::Modify,
        },
        from: change.from.clone().map(DocUri::Workspace),
        insertions,
        deletions,
        before,
        after,
    }
}
