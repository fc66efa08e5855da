//! `--strategy 3way`: applies an edit to files that changed since it was made. The edit is planned for the contents
//! at that time, and git's merge combines the result with the current contents.
//!
//! For the edit in a bundle, those contents are known by digest, and taken from lanser's cache or the last commit. A
//! diff is applied to the current contents if it fits, else to the last commit. A `WorkspaceEdit` without digests is
//! applied to the current contents: its positions fit any text. Files that are created, deleted or moved must be
//! unchanged.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::base::Disk;
use super::checks::{CheckFailure, Checks};
use super::planning::{self, AddEdit};
use crate::digest::Digest;
use crate::edit::{Base, EditPlan, Original, PlanError, Planner};
use crate::engine::context::RequestContext;
use crate::engine::failure::Failure;
use crate::model::edits::CheckName;
use crate::model::error::{EditConflict, ErrorData, ErrorSymbol};
use crate::path::{DocUri, WorkspacePath};
use crate::tape::IoKind;
use crate::text::ColumnUnit;
use crate::workspace::content_store::ContentStore;
use crate::workspace::git::merge::{HunkSide, Merged, merge};
use crate::workspace::history::RevisionFiles;

/// The files as they were when the edit was made.
struct OriginalFiles<'t> {
    disk: &'t Disk<'t>,
    known: &'t BTreeMap<DocUri, Option<Digest>>,
    past: Option<RevisionFiles>,
    /// The files in which a diff fits only the content of the last commit.
    committed: BTreeSet<WorkspacePath>,
    contents: Option<ContentStore>,
}

impl Base for OriginalFiles<'_> {
    fn is_folder(&self, path: &WorkspacePath) -> bool {
        self.disk.is_folder(path)
    }

    fn resolve(&self, path: &WorkspacePath) -> Result<WorkspacePath, String> {
        self.disk.resolve(path)
    }

    fn file(&self, path: &WorkspacePath) -> Result<Option<Arc<Original>>, String> {
        let now = self.disk.file(path)?;
        let committed = || self.past.as_ref().and_then(|past| past.read(path));
        let executable = now.as_ref().is_some_and(|original| original.executable);
        let with_current_mode = |bytes: Vec<u8>| Some(Arc::new(Original { bytes, executable }));
        match self.known.get(&DocUri::Workspace(path.clone())) {
            Some(None) => Ok(None),
            Some(Some(then)) if now.as_ref().is_some_and(|now| Digest::of(&now.bytes) == *then) => Ok(now),
            Some(Some(then)) => {
                let stored = || self.contents.as_ref().and_then(|contents| contents.get(then));
                let cached = self.disk.tape().query_bytes(IoKind::Contents, then, stored);
                let found = cached.or_else(|| committed().filter(|bytes| Digest::of(bytes) == *then));
                found
                    .map(with_current_mode)
                    .ok_or_else(|| "its content when the edit was made is not available".to_owned())
            }
            None if self.committed.contains(path) => Ok(committed().map_or(now, with_current_mode)),
            None => Ok(now),
        }
    }
}

/// Plans an edit, and merges it into files that changed since it was made.
pub(super) fn plan(
    cx: &RequestContext<'_>,
    checks: &mut Checks<'_>,
    unit: ColumnUnit,
    known: &BTreeMap<DocUri, Option<Digest>>,
    add_edit: AddEdit<'_>,
) -> Result<Option<EditPlan>, Failure> {
    let disk = Disk::new(cx.state, cx.request.options.guards.outside);
    let mut original = OriginalFiles {
        disk: &disk,
        known,
        past: RevisionFiles::at(&cx.settings.root, "HEAD", &cx.state.tape).ok(),
        committed: BTreeSet::new(),
        contents: cx.settings.keep.then(|| ContentStore::new(&cx.settings.cache)),
    };
    let root = cx.state.inputs.snapshot.root();
    loop {
        let mut planner = Planner::new(root, &original, unit);
        match add_edit(&mut planner) {
            Err(PlanError::Conflict { path, .. }) if original.committed.insert(path.clone()) => {}
            _ => break,
        }
    }
    let Some(plan) = planning::plan_against(cx, checks, &original, unit, add_edit)? else {
        return Ok(None);
    };
    let mut changes = Vec::new();
    let mut conflicts = Vec::new();
    let mut merged = 0;
    for change in plan.changes() {
        let old = change.from.as_ref().unwrap_or(&change.path);
        let now = match disk.file(old) {
            Ok(now) => now,
            Err(reason) => {
                let what = format!("{old} cannot be read: {reason}");
                checks.replace(CheckName::Content, what, Vec::new(), CheckFailure::default());
                return Ok(None);
            }
        };
        let bytes =
            |original: &Option<Arc<Original>>| original.as_ref().map(|original| original.bytes.clone());
        if bytes(&now) == bytes(&change.before) {
            changes.push(change.clone());
            continue;
        }
        match (&change.from, &change.before, &now, &change.after) {
            (None, Some(base), Some(ours), Some(theirs)) => match merge(&base.bytes, &ours.bytes, theirs) {
                Ok(Merged::Clean(bytes)) => {
                    merged += 1;
                    if bytes != ours.bytes {
                        changes.push(change.between(ours.clone(), bytes));
                    }
                }
                Ok(Merged::Conflicts(hunks)) => conflicts.extend(hunks.iter().map(|hunk| {
                    let text = |side: &HunkSide| String::from_utf8_lossy(&side.text).into_owned();
                    EditConflict {
                        path: change.path.to_string(),
                        line: u32::try_from(hunk.ours.first).unwrap_or(u32::MAX),
                        ours: text(&hunk.ours),
                        theirs: text(&hunk.theirs),
                        base: text(&hunk.base),
                        at: None,
                        expected: None,
                        found: None,
                    }
                })),
                Err(reason) => {
                    checks.replace(
                        CheckName::Content,
                        format!("{old} cannot be merged: {reason}"),
                        Vec::new(),
                        CheckFailure::default(),
                    );
                    return Ok(None);
                }
            },
            _ => {
                let what = format!(
                    "{old} changed since the edit was made, and the edit creates, deletes or moves it"
                );
                let places = vec![DocUri::Workspace(old.clone()).to_string()];
                checks.replace(
                    CheckName::Content,
                    what,
                    places,
                    CheckFailure::of(ErrorSymbol::ContentModified),
                );
                return Ok(None);
            }
        }
    }
    if !conflicts.is_empty() {
        let places = conflicts.iter().map(|hunk| format!("{}@L{}:C1", hunk.path, hunk.line.max(1))).collect();
        let count = conflicts.len();
        let what =
            format!("{count} {} of lines changed on both sides", if count == 1 { "range" } else { "ranges" });
        let reason = CheckFailure::of(ErrorSymbol::ApplyConflict)
            .data(ErrorData::Conflicts { hunks: conflicts })
            .hint("resolve the conflicts by hand, or plan the edit again for the current files");
        checks.replace(CheckName::Content, what, places, reason);
        return Ok(None);
    }
    checks.append_detail(CheckName::Content, &format!("; merged in {}", planning::files(merged)));
    Ok(Some(EditPlan::of(changes)))
}
