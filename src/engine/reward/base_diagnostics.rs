//! The diagnostics at a base revision, for `diag --new`.
//!
//! The files of the revision are written to a temporary folder, together with those that git does not have, and the same
//! request is answered there: whatever the base's answer is, it is that of a full run at the base. The memo keeps it.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::editable_installs::reads_live;
use super::scratch_folder::ScratchFolder;
use crate::engine::blocking::{blocking, blocking_within};
use crate::engine::context::RequestContext;
use crate::engine::failure::Failure;
use crate::engine::instance::Engine;
use crate::engine::memo::{Memo, MemoKey};
use crate::engine::request_input::DEFAULT_BASE;
use crate::engine::settings::Settings;
use crate::model::bundle::Bundle;
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::model::request::{Command, Options, Request};
use crate::path::{AbsPath, DocUri, WorkspacePath};
use crate::reward::code::Code;
use crate::reward::fingerprint::{self, FileFingerprint};
use crate::reward::scope_pin::renamed_files;
use crate::tape::IoKind;
use crate::text::decode_source;
use crate::workspace::file_tree::FileTree;
use crate::workspace::files::read_text;
use crate::workspace::history::{HistoryError, commit_id};
use crate::workspace::scripts::may_be_code;

/// The diagnostics at a base revision.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(in crate::engine) struct BaseDiagnostics {
    /// The commit ID of the revision.
    pub(in crate::engine) commit: String,
    /// The diagnostics except hints. Files that were renamed since have their current name.
    pub(in crate::engine) entries: Vec<FileFingerprint>,
    /// Why they may not be exact.
    pub(in crate::engine) caveat: Option<String>,
}

/// The diagnostics at the base of a request for the diagnostics of `files`.
pub(in crate::engine) async fn base_diagnostics(
    cx: &RequestContext<'_>,
    files: &[AbsPath],
) -> Result<BaseDiagnostics, Failure> {
    let options = &cx.request.options;
    let revision = options.base.as_deref().unwrap_or(DEFAULT_BASE);
    let now = CurrentFiles::of(cx, files);
    let tape = &cx.state.tape;
    let measured = match tape.is_replaying() {
        true => Err(unrecorded()),
        false => measure(cx, revision, &now)
            .await
            .map_err(|failure| failure.within(cx.settings.timeout).into_body(cx.locations.paths)),
    };
    let query = ("diagnostics", revision, &options.paths, &now.requested);
    let found = tape.query(IoKind::History, &query, || measured, || Err(unrecorded()));
    found.map_err(Failure::reported)
}

fn unrecorded() -> ErrorBody {
    ErrorBody::new(ErrorSymbol::ReplayMismatch, "the diagnostics at the base are not in the trace")
}

/// The files of the workspace as they are now.
struct CurrentFiles {
    /// The requested files.
    requested: Vec<WorkspacePath>,
    /// All Python files.
    all: Vec<WorkspacePath>,
    /// Whether the request is about the whole workspace.
    is_whole: bool,
}

impl CurrentFiles {
    fn of(cx: &RequestContext<'_>, files: &[AbsPath]) -> Self {
        let root = cx.state.inputs.snapshot.root();
        let is_whole = cx.request.selector.is_none() && cx.request.options.paths.is_empty();
        let relative = files.iter().filter_map(|path| path.strip_prefix(root).and_then(WorkspacePath::new));
        Self {
            requested: if is_whole { Vec::new() } else { relative.collect() },
            all: cx.state.inputs.snapshot.files().keys().cloned().collect(),
            is_whole,
        }
    }
}

/// The files of the base.
struct BaseTree {
    commit: String,
    files: FileTree,
    /// The URIs of files that were renamed since: from the old one to the current.
    renamed: BTreeMap<String, String>,
}

async fn measure(
    cx: &RequestContext<'_>,
    revision: &str,
    now: &CurrentFiles,
) -> Result<BaseDiagnostics, Failure> {
    cx.settings.progress.step(&format!("the revision {revision} is checked"));
    let root = cx.settings.root.clone();
    let (revision, all) = (revision.to_owned(), now.all.clone());
    let tree = blocking_within(cx.settings.timeout, move || BaseTree::read(&root, &revision, &all));
    let tree = tree.await?.map_err(Failure::reported)?;
    let commit = tree.commit.clone();
    let Some(request) = base_request(cx.request, &tree, now) else {
        return Ok(BaseDiagnostics { commit, ..BaseDiagnostics::default() });
    };
    let files = Arc::new(tree.files);
    let (bundle, caveat) = answer(cx.settings, &files, request).await?;
    if let Some(error) = bundle.error {
        return Err(Failure::reported(ErrorBody {
            message: format!("at the base: {}", error.message),
            ..error
        }));
    }
    if bundle.meta.limits.is_some_and(|limits| limits.truncated) {
        let message = "the base has too many diagnostics to compare with";
        return Err(Failure::reported(
            ErrorBody::new(ErrorSymbol::Usage, message).hint("name some of the folders"),
        ));
    }
    let found = bundle.facts.iter().filter_map(|facts| facts.diagnostics.as_ref());
    let entries = found.flat_map(|found| &found.items).map(fingerprint::of_diagnostic);
    let current = |(file, print): FileFingerprint| (tree.renamed.get(&file).cloned().unwrap_or(file), print);
    Ok(BaseDiagnostics { commit, entries: entries.map(current).collect(), caveat })
}

impl BaseTree {
    /// Reads a revision. Blocking.
    fn read(root: &AbsPath, revision: &str, now: &[WorkspacePath]) -> Result<Self, ErrorBody> {
        let missing = |error: HistoryError| {
            let hint = match error {
                HistoryError::NoRepository(_) => {
                    "diagnostics are new compared with a revision: run this in a git repository"
                }
                HistoryError::NoRevision { .. } => {
                    "name a revision that this repository has; a shallow clone has only the latest: `git fetch --unshallow`"
                }
            };
            ErrorBody::new(ErrorSymbol::NotFound, error.to_string()).hint(hint)
        };
        let commit = commit_id(root, revision).map_err(missing)?;
        let mut files = FileTree::of_revision(root, &commit).map_err(missing)?;
        files.add_ignored(root);
        let gone =
            files.files.iter().filter(|(path, _)| may_be_code(path) && now.binary_search(path).is_err());
        let gone: Vec<(String, Code)> =
            gone.map(|(path, bytes)| (uri(path), Code::parse(&decode_source(bytes.to_vec()).text))).collect();
        let added: Vec<(String, Code)> = match gone.is_empty() {
            true => Vec::new(),
            false => now
                .iter()
                .filter(|path| !files.files.contains_key(*path))
                .filter_map(|path| Some((uri(path), Code::parse(&read_text(&root.join(path.as_str()))?))))
                .collect(),
        };
        let renamed = renamed_files(&named(&gone), &named(&added));
        Ok(Self { commit, files, renamed })
    }
}

fn uri(path: &WorkspacePath) -> String {
    DocUri::Workspace(path.clone()).to_string()
}

fn named(files: &[(String, Code)]) -> Vec<(&str, &Code)> {
    files.iter().map(|(name, code)| (name.as_str(), code)).collect()
}

/// The same request at the base; `None` if the base has none of its files.
fn base_request(request: &Request, tree: &BaseTree, now: &CurrentFiles) -> Option<Request> {
    let python: Vec<&WorkspacePath> = tree.files.files.keys().filter(|path| may_be_code(path)).collect();
    let mut paths = Vec::new();
    if !now.is_whole {
        let exists = |wanted: &&WorkspacePath| {
            let below = format!("{wanted}/");
            python.iter().any(|path| path == wanted || path.as_str().starts_with(&below))
        };
        let named = if request.selector.is_some() { &now.requested } else { &request.options.paths };
        paths.extend(named.iter().filter(exists).cloned());
        let is_requested = |name: &String| now.requested.iter().any(|path| uri(path) == *name);
        let sources = tree.renamed.iter().filter(|(_, to)| is_requested(to));
        paths.extend(sources.filter_map(|(from, _)| DocUri::parse(from)?.workspace_path().cloned()));
        paths.sort();
        paths.dedup();
    }
    if python.is_empty() || !now.is_whole && paths.is_empty() {
        return None;
    }
    let options = Options {
        paths,
        new: false,
        base: None,
        severity: None,
        fail_on: None,
        limit: None,
        cursor: None,
        ..request.options.clone()
    };
    Some(Request::new(Command::Diagnostics, None, None, options))
}

/// The answer to a request in a copy of the base, and why it may not be exact.
async fn answer(
    settings: &Settings,
    tree: &Arc<FileTree>,
    request: Request,
) -> Result<(Bundle, Option<String>), Failure> {
    let (_folder, root) = ScratchFolder::with_copy(settings, tree, "the base").await?;
    // Scans of a temporary folder are not worth caching; its answer is.
    let scratch_settings = Settings {
        root,
        copy_of: Some(settings.checkout()),
        environment_of: Some(settings.root.clone()),
        keep: false,
        verbose: false,
        trace: None,
        ..settings.clone()
    };
    let engine = Engine::for_one(scratch_settings);
    let scanner = &engine.shared.scanner;
    let inputs = scanner.scan_since(Instant::now(), &engine.settings, None).await?;
    let caveat = reads_live(&inputs, &settings.root, tree);
    let memo = Memo::of(settings);
    let key = MemoKey::of(&request, &inputs, settings);
    let cached = match (memo, key) {
        (Some(memo), Some(key)) => {
            let found = blocking(move || (memo.get(&key), memo)).await?;
            match found {
                (Some(bundle), _) => return Ok((bundle, caveat)),
                (None, memo) => Some((memo, key)),
            }
        }
        _ => None,
    };
    let bundle = run(engine.clone(), request).await;
    engine.close().await;
    if let (Some((memo, key)), None) = (cached, &bundle.error) {
        let kept = bundle.clone();
        blocking(move || memo.put(&key, &kept)).await?;
    }
    Ok((bundle, caveat))
}

/// Answers a request. Boxed, because answering the request that needs the base is what calls this.
fn run(engine: Engine, request: Request) -> Pin<Box<dyn Future<Output = Bundle> + Send>> {
    Box::pin(async move { engine.run(request, std::future::pending()).await })
}
