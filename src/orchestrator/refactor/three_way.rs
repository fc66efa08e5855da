//! `--strategy 3way`: an edit to files that changed since it was made. It is planned for what the files held then, and git's merge
//! puts together what became of them and what the edit wants.
//!
//! What the files held then is known by digest for a bundle's edit, and taken from lanser's cache or from the last commit. A
//! diff is made to what is there if it fits, and else to the last commit. A `WorkspaceEdit` that says nothing of the kind is
//! about what is there: its positions fit any text. Files that come, go or move have to be what they were.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::base::Disk;
use super::checks::{Checks, Reason};
use super::planned::{self, Make};
use crate::digest::Digest;
use crate::edit::{Base, Original, Plan, PlanError, Planner};
use crate::model::edits::CheckName;
use crate::model::error::{ConflictHunk, ErrorData, ErrorSymbol};
use crate::orchestrator::ask::Asking;
use crate::orchestrator::failure::Failure;
use crate::path::{DocUri, WorkspacePath};
use crate::tape::Door;
use crate::text::ColumnUnit;
use crate::workspace::contents::Contents;
use crate::workspace::git::merge::{HunkSide, Merged, merge};
use crate::workspace::history::Past;

/// The files as they were when the edit was made.
struct Then<'t> {
    disk: &'t Disk<'t>,
    known: &'t BTreeMap<DocUri, Option<Digest>>,
    past: Option<Past>,
    /// The files for which a diff was made when they were as in the last commit.
    committed: BTreeSet<WorkspacePath>,
    contents: Option<Contents>,
}

impl Base for Then<'_> {
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
        let as_it_was = |bytes: Vec<u8>| Some(Arc::new(Original { bytes, executable }));
        match self.known.get(&DocUri::Workspace(path.clone())) {
            Some(None) => Ok(None),
            Some(Some(then)) if now.as_ref().is_some_and(|now| Digest::of(&now.bytes) == *then) => Ok(now),
            Some(Some(then)) => {
                let stored = || self.contents.as_ref().and_then(|contents| contents.get(then));
                let kept = self.disk.tape().bytes(Door::Contents, then, stored);
                let found = kept.or_else(|| committed().filter(|bytes| Digest::of(bytes) == *then));
                found
                    .map(as_it_was)
                    .ok_or_else(|| "what it held when the edit was made cannot be had".to_owned())
            }
            None if self.committed.contains(path) => Ok(committed().map_or(now, as_it_was)),
            None => Ok(now),
        }
    }
}

/// Plans an edit, and merges where files changed since it was made.
pub(super) fn plan(
    asking: &Asking<'_>,
    checks: &mut Checks<'_>,
    unit: ColumnUnit,
    known: &BTreeMap<DocUri, Option<Digest>>,
    make: Make<'_>,
) -> Result<Option<Plan>, Failure> {
    let disk = Disk::new(asking.state, asking.request.options.guards.outside);
    let mut then = Then {
        disk: &disk,
        known,
        past: Past::at(&asking.settings.root, "HEAD", &asking.state.tape).ok(),
        committed: BTreeSet::new(),
        contents: asking.settings.keep.then(|| Contents::new(&asking.settings.cache)),
    };
    let root = asking.state.ground.snapshot.root();
    loop {
        let mut planner = Planner::new(root, &then, unit);
        match make(&mut planner) {
            Err(PlanError::Conflict { path, .. }) if then.committed.insert(path.clone()) => {}
            _ => break,
        }
    }
    let Some(plan) = planned::plan_on(asking, checks, &then, unit, make)? else { return Ok(None) };
    let mut changes = Vec::new();
    let mut conflicts = Vec::new();
    let mut merged = 0;
    for change in plan.changes() {
        let old = change.from.as_ref().unwrap_or(&change.path);
        let now = match disk.file(old) {
            Ok(now) => now,
            Err(reason) => {
                let what = format!("{old} cannot be read: {reason}");
                checks.replace(CheckName::Content, what, Vec::new(), Reason::default());
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
                    ConflictHunk {
                        path: change.path.to_string(),
                        line: u32::try_from(hunk.ours.first).unwrap_or(u32::MAX),
                        ours: text(&hunk.ours),
                        theirs: text(&hunk.theirs),
                        base: text(&hunk.base),
                    }
                })),
                Err(reason) => {
                    checks.replace(
                        CheckName::Content,
                        format!("{old} cannot be merged: {reason}"),
                        Vec::new(),
                        Reason::default(),
                    );
                    return Ok(None);
                }
            },
            _ => {
                let what = format!("{old} changed since the edit was made, and is not only edited");
                let places = vec![DocUri::Workspace(old.clone()).to_string()];
                checks.replace(CheckName::Content, what, places, Reason::of(ErrorSymbol::ContentModified));
                return Ok(None);
            }
        }
    }
    if !conflicts.is_empty() {
        let places = conflicts.iter().map(|hunk| format!("{}@L{}:C1", hunk.path, hunk.line.max(1))).collect();
        let count = conflicts.len();
        let what = format!(
            "{count} {} of lines changed in two ways",
            if count == 1 { "stretch" } else { "stretches" }
        );
        let reason = Reason::of(ErrorSymbol::ApplyConflict)
            .data(ErrorData::Conflicts { hunks: conflicts })
            .hint("make these changes by hand, or plan the edit again for what the files hold now");
        checks.replace(CheckName::Content, what, places, reason);
        return Ok(None);
    }
    checks.note(CheckName::Content, &format!("; merged in {}", planned::files(merged)));
    Ok(Some(Plan::of(changes)))
}
