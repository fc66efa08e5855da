//! The diagnostics after an edit that creates, moves or deletes Python files: a server resolves imports on the disk, so they are
//! requested in a copy of the workspace in which the edit is made.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::speculate::{Comparison, EditedDiagnostics, diagnostics_without};
use crate::edit::EditPlan;
use crate::engine::blocking::blocking;
use crate::engine::context::RequestContext;
use crate::engine::failure::Failure;
use crate::engine::reward::{self, DiagnosticsByFile, ScratchWorkspace};
use crate::engine::settings::Settings;
use crate::model::facts::Diagnostic;
use crate::path::{AbsPath, WorkspacePath};
use crate::tape::IoKind;
use crate::workspace::file_tree::{FileTree, is_server_input};
use crate::workspace::files::Files as _;

/// Diagnostics by file, as a trace records them.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct RecordedDiagnostics {
    found: BTreeMap<WorkspacePath, Vec<Diagnostic>>,
    bare: BTreeMap<WorkspacePath, Vec<Diagnostic>>,
}

/// Whether the disk has to be as after the edit for the server to see what it changes.
pub(super) fn moves_files(plan: &EditPlan) -> bool {
    plan.changes().iter().any(|change| {
        let is_python = change.path.is_python() || change.from.as_ref().is_some_and(WorkspacePath::is_python);
        is_python && (change.from.is_some() || change.before.is_none() || change.after.is_none())
    })
}

/// The diagnostics of the affected files in a copy of the workspace with the edit.
pub(super) async fn diagnostics(
    cx: &RequestContext<'_>,
    comparison: &Comparison<'_>,
) -> Result<EditedDiagnostics, Failure> {
    let files: Vec<&AbsPath> = comparison.affected.files.iter().collect();
    let asked = async |copy: &mut ScratchWorkspace, paths: &[WorkspacePath]| {
        in_copy(cx, comparison, copy, paths).await
    };
    let recorded = request(cx, comparison, "copy", &files, asked).await?;
    let root = cx.state.inputs.snapshot.root();
    Ok(EditedDiagnostics { found: by_file(root, recorded.found), bare: by_file(root, recorded.bare) })
}

/// The diagnostics of each of these files in such a copy, without types that were inferred for others before.
pub(super) async fn diagnostics_alone(
    cx: &RequestContext<'_>,
    comparison: &Comparison<'_>,
    files: &[&AbsPath],
) -> Result<DiagnosticsByFile, Failure> {
    let asked = async |copy: &mut ScratchWorkspace, paths: &[WorkspacePath]| {
        let mut found = DiagnosticsByFile::new();
        for path in paths {
            copy.with_context(async |cx| Ok(cx.server.client.reset_inferred_types()?)).await?;
            found.extend(copy.diagnostics(&[copy.at(path)]).await?);
        }
        Ok(RecordedDiagnostics { found: portable(&copy.root, found), bare: BTreeMap::new() })
    };
    let recorded = request(cx, comparison, "copy, one by one", files, asked).await?;
    Ok(by_file(cx.state.inputs.snapshot.root(), recorded.found))
}

/// Asks in a copy, or takes the answer from a trace.
async fn request(
    cx: &RequestContext<'_>,
    comparison: &Comparison<'_>,
    kind: &str,
    files: &[&AbsPath],
    ask: impl AsyncFnOnce(&mut ScratchWorkspace, &[WorkspacePath]) -> Result<RecordedDiagnostics, Failure>,
) -> Result<RecordedDiagnostics, Failure> {
    let root = cx.state.inputs.snapshot.root();
    let inside = |path: &&AbsPath| path.strip_prefix(root).and_then(WorkspacePath::new);
    let paths: Vec<WorkspacePath> = files.iter().filter_map(inside).collect();
    let (tape, query) = (&cx.state.tape, (kind, &paths));
    let found = match tape.is_replaying() {
        true => RecordedDiagnostics::default(),
        false => ask_in_copy(cx, comparison, &paths, ask).await?,
    };
    Ok(tape.query(IoKind::Guard, &query, || found.clone(), RecordedDiagnostics::default))
}

async fn ask_in_copy(
    cx: &RequestContext<'_>,
    comparison: &Comparison<'_>,
    paths: &[WorkspacePath],
    ask: impl AsyncFnOnce(&mut ScratchWorkspace, &[WorkspacePath]) -> Result<RecordedDiagnostics, Failure>,
) -> Result<RecordedDiagnostics, Failure> {
    cx.settings.progress.step("a copy of the workspace is checked");
    let tree = tree_after(cx, comparison.plan).await?;
    // The rest is as in the workspace, also what git ignores.
    let settings = Settings { environment_of: Some(cx.settings.root.clone()), ..cx.settings.clone() };
    let mut copy = ScratchWorkspace::new(&settings, &tree).await?;
    let found = ask(&mut copy, paths).await;
    copy.close().await;
    found
}

fn by_file(root: &AbsPath, found: BTreeMap<WorkspacePath, Vec<Diagnostic>>) -> DiagnosticsByFile {
    found.into_iter().map(|(path, list)| (root.join(path.as_str()), list)).collect()
}

fn portable(root: &AbsPath, found: DiagnosticsByFile) -> BTreeMap<WorkspacePath, Vec<Diagnostic>> {
    let path = |path: &AbsPath| path.strip_prefix(root).and_then(WorkspacePath::new);
    found.into_iter().filter_map(|(at, list)| Some((path(&at)?, list))).collect()
}

/// The files of the workspace after the edit.
pub(super) async fn tree_after(cx: &RequestContext<'_>, plan: &EditPlan) -> Result<Arc<FileTree>, Failure> {
    let root = cx.state.inputs.snapshot.root().clone();
    let changes: Vec<_> = plan
        .changes()
        .iter()
        .map(|change| (change.path.clone(), change.from.clone(), change.after.clone()))
        .collect();
    blocking(move || {
        let mut tree = FileTree::of_checkout(&root);
        for from in changes.iter().filter_map(|(_, from, _)| from.as_ref()) {
            tree.files.remove(from);
        }
        for (path, _, after) in changes {
            match after.filter(|bytes| is_server_input(&path, bytes)) {
                Some(bytes) => drop(tree.files.insert(path, Arc::new(bytes))),
                None => drop(tree.files.remove(&path)),
            }
        }
        Arc::new(tree)
    })
    .await
}

async fn in_copy(
    cx: &RequestContext<'_>,
    comparison: &Comparison<'_>,
    copy: &mut ScratchWorkspace,
    paths: &[WorkspacePath],
) -> Result<RecordedDiagnostics, Failure> {
    let there: Vec<AbsPath> = paths.iter().map(|path| copy.at(path)).collect();
    let found = copy.diagnostics(&there).await?;
    let before = comparison.plan.changes().iter().filter_map(|change| {
        let path = change.from.as_ref().unwrap_or(&change.path);
        cx.state.files.read(&cx.state.inputs.snapshot.absolute(path)).ok()
    });
    let written = comparison.plan.changes().iter().map(|change| copy.at(&change.path));
    let after: Vec<_> = written.filter_map(|path| copy.state.files.read(&path).ok()).collect();
    let hidden = reward::added_suppressions(before, after.iter());
    let bare = copy.with_context(async |cx| diagnostics_without(cx, cx.locations, &hidden).await).await?;
    Ok(RecordedDiagnostics { found: portable(&copy.root, found), bare: portable(&copy.root, bare) })
}
