//! The diagnostics of analyzers before and after an edit. They read files on disk, so the state after the edit is written to a
//! temporary folder for them.

use std::ops::Range;
use std::sync::Arc;

use super::measure::{DiagnosticsByFile, without_spans};
use super::scratch_folder::ScratchFolder;
use crate::engine::analyze::{self, AnalysisTarget};
use crate::engine::context::RequestContext;
use crate::engine::failure::Failure;
use crate::engine::locations::LocationBuilder;
use crate::model::analyzer::{AnalyzerKind, SourceReport};
use crate::path::{AbsPath, WorkspacePath};
use crate::workspace::file_tree::FileTree;
use crate::workspace::files::Document;

/// Adds the findings of analyzers in files of the request's workspace, as they are on disk.
pub(in crate::engine) async fn add_on_disk(
    cx: &RequestContext<'_>,
    with: &[AnalyzerKind],
    files: &[AbsPath],
    found: &mut DiagnosticsByFile,
) -> Result<Vec<SourceReport>, Failure> {
    let target = AnalysisTarget::of(cx, inside(cx, files), false);
    add(cx, with, &target, "before", cx.locations, found).await
}

/// Adds the findings of analyzers in files of another state of the request's workspace, which a replay does not need.
pub(in crate::engine) async fn add_in_tree(
    cx: &RequestContext<'_>,
    with: &[AnalyzerKind],
    tree: &Arc<FileTree>,
    files: &[AbsPath],
    (query, locations): (&str, &LocationBuilder<'_>),
    found: &mut DiagnosticsByFile,
) -> Result<Vec<SourceReport>, Failure> {
    let mut target = AnalysisTarget::of(cx, inside(cx, files), false);
    if with.is_empty() || target.files.is_empty() || cx.state.tape.is_replaying() {
        return add(cx, with, &target, query, locations, found).await;
    }
    let (folder, root) = ScratchFolder::with_copy(cx.settings, tree, "the workspace").await?;
    target.root = root;
    let reports = add(cx, with, &target, query, locations, found).await;
    drop(folder);
    reports
}

/// Adds the findings of analyzers in the files with new suppressions, after removing those.
pub(in crate::engine) async fn add_without_suppressions(
    cx: &RequestContext<'_>,
    with: &[AnalyzerKind],
    tree: &Arc<FileTree>,
    hidden: &[(Arc<Document>, Vec<Range<usize>>)],
    locations: &LocationBuilder<'_>,
    bare: &mut DiagnosticsByFile,
) -> Result<(), Failure> {
    let root = cx.state.inputs.snapshot.root();
    let files: Vec<AbsPath> = hidden.iter().map(|(document, _)| document.path.clone()).collect();
    let mut tree = FileTree::clone(tree);
    for (document, spans) in hidden {
        let path = document.path.strip_prefix(root).and_then(WorkspacePath::new);
        let text = without_spans(document, spans).text;
        tree.files.extend(path.map(|path| (path, Arc::new(text.into_bytes()))));
    }
    add_in_tree(cx, with, &Arc::new(tree), &files, ("bare", locations), bare).await.map(drop)
}

fn inside(cx: &RequestContext<'_>, files: &[AbsPath]) -> Vec<WorkspacePath> {
    let root = cx.state.inputs.snapshot.root();
    let paths = files.iter().filter_map(|path| path.strip_prefix(root).and_then(WorkspacePath::new));
    let mut paths: Vec<WorkspacePath> = paths.filter(WorkspacePath::is_python).collect();
    paths.sort();
    paths.dedup();
    paths
}

async fn add(
    cx: &RequestContext<'_>,
    with: &[AnalyzerKind],
    target: &AnalysisTarget,
    query: &str,
    locations: &LocationBuilder<'_>,
    found: &mut DiagnosticsByFile,
) -> Result<Vec<SourceReport>, Failure> {
    let root = cx.state.inputs.snapshot.root();
    if with.is_empty() || target.files.is_empty() {
        return Ok(Vec::new());
    }
    let mut reports = Vec::new();
    for analysis in analyze::run(with, target, &cx.state.tape, query).await? {
        for finding in &analysis.findings {
            let path = root.join(finding.path.as_str());
            let item = analyze::diagnostic(locations, &path, analysis.report.source, finding);
            found.entry(path).or_default().extend(item);
        }
        reports.push(analysis.report);
    }
    Ok(reports)
}
