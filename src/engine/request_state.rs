//! A request with its selector resolved for one set of inputs: every part of an answer that needs no server.

use std::sync::{Arc, OnceLock};

use super::failure::Failure;
use super::inputs::Inputs;
use super::opinion::Opinion;
use super::settings::Settings;
use crate::bundle::portable::PathMap;
use crate::digest::Digest;
use crate::model::environment::{Environment, OtherTool, Tool};
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::model::request::{Command, Request, Scope, is_module_path};
use crate::path::{AbsPath, WorkspacePath};
use crate::python::module_imports::imports_where;
use crate::python::modules::ImportRoots;
use crate::python::not_found::{NotFound, NotFoundReason, near_files};
use crate::python::outline::DefinitionKind;
use crate::python::roles::statement_of;
use crate::python::step::ResolutionStep;
use crate::python::symbol::StubLocation;
use crate::relocate::definitions::Definitions;
use crate::relocate::locate::{
    self, Ambiguous, LocatedTarget, MAX_CANDIDATES, ResolutionEvidence, ResolveContext, locate,
};
use crate::selector::PositionSpec;
use crate::tape::{IoKind, Tape};
use crate::text::{ColumnUnit, Range, shell_argument, shell_quote};
use crate::workspace::content_store::ContentStore;
use crate::workspace::disk_cache::DiskCache;
use crate::workspace::files::{DiskFiles, Document, FileKind, Files, ReadError, canonical};
use crate::workspace::parallel::parallel_map;
use crate::workspace::scripts::is_python_script;

/// Of more symbolic links to one file, it is not looked up whether something is imported through them.
const MAX_LINKS: usize = 256;

/// The size limit of the cached walks through the history, in bytes.
const MAX_TRAIL_BYTES: u64 = 32 << 20;

/// A request's selector, resolved for one set of inputs.
pub(super) struct RequestState {
    pub(super) inputs: Arc<Inputs>,
    pub(super) files: DiskFiles,
    pub(super) resolved: Option<SelectorOutcome>,
    /// The environment with the server that works on the request, once there is one.
    environment: OnceLock<Environment>,
    /// The identity of the other server that was asked, and the digest of its inputs.
    other: OnceLock<(Option<OtherTool>, Option<Digest>)>,
    pub(super) threads: usize,
    /// Records or replays all I/O.
    pub(super) tape: Tape,
}

/// At most this many file contents of one answer are cached.
const MAX_CACHED_CONTENTS: usize = 64;

/// The result of resolving the selector.
pub(super) enum SelectorOutcome {
    Found(RequestTarget),
    Ambiguous(Ambiguous),
    Failed(ErrorBody),
}

/// What a selector resolved to.
pub(super) struct RequestTarget {
    /// The file.
    pub(super) document: Arc<Document>,
    /// The position for requests to the server: a byte offset.
    pub(super) offset: usize,
    /// The selected span, in bytes.
    pub(super) span: std::ops::Range<usize>,
    /// The identifier at `offset`, in bytes.
    pub(super) name_span: Option<std::ops::Range<usize>>,
    /// Whether it is a module, or a part of one as such.
    is_module: bool,
    /// Qualified name and kind, if the target is a definition.
    pub(super) definition: Option<(String, &'static str)>,
    /// The same definition in the stub that the server reads instead of the source.
    stub: Option<StubLocation>,
    /// The dotted module name of the file.
    pub(super) module: Option<String>,
    /// The evidence for the target.
    pub(super) evidence: ResolutionEvidence,
    /// The resolution steps that led to it.
    pub(super) steps: Vec<ResolutionStep>,
}

impl RequestTarget {
    /// The file and the byte offset for reference requests. For a source that has a stub next to it, Pyright returns
    /// only the uses in that file; for the stub, all.
    pub(super) fn reference_position(&self) -> (&Arc<Document>, usize) {
        match &self.stub {
            Some(stub) => (&stub.document, stub.name_span.start),
            None => (&self.document, self.offset),
        }
    }

    /// The identifier at the target.
    pub(super) fn name(&self) -> Option<&str> {
        self.name_span.clone().map(|span| &self.document.text[span])
    }
}

impl RequestState {
    /// Resolves the request's selector. Blocking.
    pub(super) fn new(settings: &Settings, request: &Request, inputs: Arc<Inputs>, tape: Tape) -> Self {
        let files = DiskFiles::on(tape.clone());
        let contents = settings.keep.then(|| ContentStore::new(&settings.cache));
        let trails = settings.keep.then(|| DiskCache::new(settings.cache.join("trails"), MAX_TRAIL_BYTES));
        let (transactions, cache_scope) = (settings.transactions(), settings.cache_scope());
        let resolved = request.selector.as_ref().map(|selector| {
            let roots_of = |files: &dyn Files| inputs.roots_of(files);
            let world = ResolveContext {
                files: &files,
                roots: &inputs.roots,
                roots_of: &roots_of,
                snapshot: &inputs.snapshot,
                index: &inputs.index,
                contents: contents.as_ref(),
                transactions: Some(&transactions),
                trails: trails.as_ref(),
                cache_scope: &cache_scope,
                threads: settings.threads,
                tape: &tape,
            };
            resolve(&world, &files, &inputs.paths, selector, request)
        });
        if let Some(SelectorOutcome::Found(target)) = &resolved
            && matches!(request.cmd, Command::References | Command::Implementation | Command::Rename)
            && let Some(name) = target.name()
        {
            // The server may still be starting, so the files that will be opened are read now. Read errors are
            // reported later.
            let snapshot = &inputs.snapshot;
            let files_with_name: Vec<AbsPath> = snapshot
                .files_with_word(name, settings.threads, &tape)
                .iter()
                .map(|path| snapshot.absolute(path))
                .collect();
            parallel_map(&files_with_name, settings.threads, |path| drop(files.read(path)));
            snapshot.save_index();
        }
        let threads = settings.threads;
        Self { inputs, files, resolved, environment: OnceLock::new(), other: OnceLock::new(), threads, tape }
    }

    /// The environment of the answer: with the server, if one works on the request.
    pub(super) fn environment(&self) -> Environment {
        let environment = self.environment.get().unwrap_or(&self.inputs.environment).clone();
        let other_tool = self.other.get().and_then(|(tool, _)| tool.clone());
        Environment { other_tool, ..environment }
    }

    /// Notes the other server whose opinion was asked.
    pub(super) fn compared_with(&self, opinion: &Opinion) {
        let _ = self.other.set((opinion.tool.clone(), opinion.inputs));
    }

    /// The digest of what the other server's opinion depends on, if one was asked.
    pub(super) fn other_inputs(&self) -> Option<Digest> {
        self.other.get().and_then(|(_, inputs)| *inputs)
    }

    /// Notes the server that works on the request.
    pub(super) fn served_by(&self, tool: Tool, unit: ColumnUnit) {
        let mut environment = self.inputs.environment.clone();
        environment.tool = Some(tool);
        environment.position_encoding = unit.as_lsp().to_owned();
        // A second attempt of the same request uses the same server.
        let _ = self.environment.set(environment);
    }

    /// The error if the selector does not resolve to a single target; `None` if it does, or if the request has no
    /// selector.
    pub(super) fn target_error(&self) -> Option<ErrorBody> {
        match self.resolved.as_ref()? {
            SelectorOutcome::Found(_) => None,
            SelectorOutcome::Failed(error) => Some(error.clone()),
            SelectorOutcome::Ambiguous(targets) => {
                let message = match (targets.total, targets.places.len().min(MAX_CANDIDATES)) {
                    (1, _) => "one location matches the selector, with too little evidence".to_owned(),
                    (few, shown) if few <= shown => format!("the selector matches {few} locations"),
                    (many, shown) => {
                        format!("the selector matches {many} locations, of which {shown} are shown")
                    }
                };
                let hint = match targets.total {
                    1 => {
                        "if the location below is right, repeat the request with it; a selector with `?v=` can be matched with more certainty"
                    }
                    _ => "repeat the request with one of the locations below",
                };
                Some(ErrorBody::new(ErrorSymbol::Ambiguous, message).hint(hint))
            }
        }
    }

    /// The target.
    pub(super) fn target(&self) -> Result<&RequestTarget, Failure> {
        match &self.resolved {
            Some(SelectorOutcome::Found(target)) if is_python(&target.document) => Ok(target),
            // A server would parse any text as Python and find names in it.
            Some(SelectorOutcome::Found(target)) => {
                let uri = self.inputs.paths.uri(&target.document.path);
                let error = ErrorBody::new(ErrorSymbol::Usage, format!("{uri} is not a Python file"));
                Err(Failure::reported(error.hint(
                    "name a .py, .pyi or .pyw file, or a script whose first line starts with `#!` and names python",
                )))
            }
            _ => {
                let error = ErrorBody::new(ErrorSymbol::Usage, "this request needs a selector");
                Err(Failure::reported(error.hint("`lanser help locate` shows the forms of a selector")))
            }
        }
    }

    /// Whether the inputs cover the target's file.
    pub(super) fn is_target_covered(&self) -> bool {
        let Some(SelectorOutcome::Found(target)) = &self.resolved else { return true };
        self.inputs.covers(&self.inputs.paths.uri(&target.document.path))
    }

    /// The workspace's definitions.
    pub(super) fn definitions(&self) -> Definitions<'_> {
        let Inputs { index, snapshot, .. } = &*self.inputs;
        Definitions { index, snapshot, threads: self.threads, tape: &self.tape }
    }

    /// The readable files of the workspace that contain a word.
    pub(super) fn files_with_word(&self, word: &str) -> Vec<WorkspacePath> {
        self.inputs.snapshot.files_with_word(word, self.threads, &self.tape)
    }

    /// Why uses of what a file defines may be missed: a file imports a module through a symbolic link that leads to it, which is
    /// another module, as a server sees it.
    pub(super) fn linked(&self, path: &AbsPath) -> Option<String> {
        let live = || {
            let snapshot = &self.inputs.snapshot;
            snapshot.links().next()?;
            let real = canonical(path);
            let leads_there = |link: &&str| {
                let other = name_through(&snapshot.root().join(link), &real);
                other.is_some_and(|other| other != *path)
            };
            let links: Vec<&str> = snapshot.links().filter(leads_there).collect();
            let mut imported = links.iter().filter(|link| self.is_imported_through(link));
            let found = if links.len() > MAX_LINKS { links.first() } else { imported.next() };
            found.map(|link| (*link).to_owned())
        };
        let link = self.tape.query_rare(IoKind::File, &("imported through", path), live)?;
        Some(format!("{link} is a symbolic link, and uses of what is imported through it are not searched"))
    }

    /// The other names that a file has in the workspace, by symbolic links.
    pub(super) fn other_names(&self, path: &AbsPath) -> Vec<AbsPath> {
        let snapshot = &self.inputs.snapshot;
        let live = || {
            snapshot.links().next()?;
            let real = canonical(path);
            let name = |link: &str| {
                let other = name_through(&snapshot.root().join(link), &real)?;
                let inside = other.strip_prefix(snapshot.root()).and_then(WorkspacePath::new)?;
                (other != *path && snapshot.files().contains_key(&inside)).then_some(inside)
            };
            let names: Vec<WorkspacePath> = snapshot.links().filter_map(name).collect();
            (!names.is_empty()).then_some(names)
        };
        let names = self.tape.query_rare(IoKind::File, &("other names", path), live).unwrap_or_default();
        names.iter().map(|name| snapshot.absolute(name)).collect()
    }

    /// Whether a file imports a module through a symbolic link.
    fn is_imported_through(&self, link: &str) -> bool {
        let Inputs { snapshot, roots, .. } = &*self.inputs;
        let link = snapshot.root().join(link);
        let is_below = |path: &AbsPath| *path == link || path.strip_prefix(&link).is_some();
        let files = DiskFiles::new();
        let is_root = roots.all_roots().any(is_below);
        let stem = link.file_name().split('.').next().unwrap_or_default();
        let candidates: Vec<WorkspacePath> = match is_root {
            // Imports do not spell a folder in which modules are searched.
            true => snapshot.files().keys().cloned().collect(),
            false => snapshot.files_with_word(stem, self.threads, &Tape::off()),
        };
        let imports = parallel_map(&candidates, self.threads, |file| {
            imports_where(&files, roots, &snapshot.absolute(file), is_below).any
        });
        imports.contains(&true)
    }

    /// Caches the contents from which the answer was computed, so that its locations can be relocated after edits.
    pub(super) fn cache_contents(&self, settings: &Settings) {
        if !settings.keep {
            return;
        }
        let contents = ContentStore::new(&settings.cache);
        let own = self.files.used().into_iter().filter(|(path, _)| self.is_in_workspace(path));
        for (path, digest) in own.take(MAX_CACHED_CONTENTS) {
            if let Some(digest) = digest {
                contents.store_file(&digest, &path);
            }
        }
    }

    /// The part of its file that a request about files is limited to, in columns of `unit`: the definition that the selector
    /// names, or else the lines of what it selects. `None` for whole files.
    pub(super) fn selected_part(&self, unit: ColumnUnit) -> Option<Range> {
        let Some(SelectorOutcome::Found(target)) = &self.resolved else { return None };
        let (document, span) = (&target.document, &target.span);
        if target.is_module && span.is_empty() {
            return None;
        }
        let definition = target.name_span.as_ref().and_then(|name| statement_of(&document.text, name.start));
        let span = definition.unwrap_or_else(|| {
            let text = &document.text;
            let start = text[..span.start].rfind(['\n', '\r']).map_or(0, |at| at + 1);
            let end = text[span.end..].find(['\n', '\r']).map_or(text.len(), |at| span.end + at);
            start..end
        });
        Some(document.lines.range(&document.text, span, unit))
    }

    /// The files of a request about files, in order.
    pub(super) fn request_files(&self, request: &Request) -> Result<Vec<AbsPath>, Failure> {
        if request.selector.is_some() {
            return Ok(vec![self.target()?.document.path.clone()]);
        }
        let all = self.inputs.snapshot.files().keys();
        let included = &self.inputs.included;
        let configured = |path: &&_| request.options.scope == Scope::Workspace || included.includes(path);
        if request.options.paths.is_empty() {
            let found: Vec<_> =
                all.filter(configured).map(|path| self.inputs.snapshot.absolute(path)).collect();
            if found.is_empty() {
                // An empty result would look like a success.
                let message = "the workspace contains no Python files";
                return Err(Failure::not_found(message, "name another folder with `-C DIR`"));
            }
            return Ok(found);
        }
        let mut found = std::collections::BTreeSet::new();
        for path_option in &request.options.paths {
            let path = self.inputs.snapshot.absolute(path_option);
            let kind = self.files.kind(&path);
            if kind == FileKind::Missing {
                let near = near_files(&path, &self.files, true);
                let near =
                    near.iter().map(|name| self.inputs.paths.uri(&path.parent().join(name)).to_string());
                let message = format!("no such file or folder: {:?}", path_option.as_str());
                let error = ErrorBody::new(ErrorSymbol::NotFound, message)
                    .hint("paths are relative to the workspace")
                    .suggestions(near.collect());
                return Err(Failure::reported(error));
            }
            if kind == FileKind::File {
                if !path_option.is_python() && !self.inputs.snapshot.files().contains_key(path_option) {
                    let error =
                        ErrorBody::new(ErrorSymbol::Usage, format!("{path_option} is not a Python file"));
                    return Err(Failure::reported(error.hint(
                        "name .py, .pyi or .pyw files, scripts of Python, or folders that contain some",
                    )));
                }
                found.insert(path);
                continue;
            }
            let below = format!("{path_option}/");
            let inside = self.inputs.snapshot.files().keys().filter(|path| path.as_str().starts_with(&below));
            let inside: Vec<AbsPath> =
                inside.filter(configured).map(|path| self.inputs.snapshot.absolute(path)).collect();
            let empty = inside.is_empty();
            found.extend(inside);
            if empty {
                let message = format!("{path_option} contains no Python files");
                return Err(Failure::not_found(message, "name a Python file or a folder that contains some"));
            }
        }
        Ok(found.into_iter().collect())
    }

    /// Whether a file belongs to the workspace.
    pub(super) fn is_in_workspace(&self, path: &AbsPath) -> bool {
        self.inputs.paths.uri(path).workspace_path().is_some()
    }

    /// The first file that was read with another content than the inputs have, or that has changed since.
    ///
    /// A file may have changed between the scan and the time when it was read, and been changed back since.
    pub(super) fn first_changed_file(&self) -> Option<String> {
        let used = self.files.used();
        let changed = used.into_iter().find(|(path, digest)| {
            !self.inputs.holds(path, *digest).unwrap_or_else(|| self.files.is_unchanged(path))
        });
        changed.map(|(path, _)| self.inputs.paths.uri(&path).to_string())
    }
}

/// Whether a file is Python code, by its name or its first line.
fn is_python(document: &Document) -> bool {
    crate::path::is_python(document.path.file_name()) || is_python_script(document.text.as_bytes())
}

fn resolve(
    world: &ResolveContext<'_>,
    files: &DiskFiles,
    paths: &PathMap,
    selector: &PositionSpec,
    request: &Request,
) -> SelectorOutcome {
    let cmd = request.cmd;
    let path = match selector.uri().map(|uri| (uri, paths.absolute(uri))) {
        None => None,
        Some((uri, None)) => {
            let message = format!("the base folder of \"{uri}\" is unknown on this machine");
            let hint = "name a file of the workspace, or use the `at` of a location from this machine";
            return SelectorOutcome::Failed(ErrorBody::new(ErrorSymbol::NotFound, message).hint(hint));
        }
        Some((_, path)) => path,
    };
    match locate(world, selector, path.as_ref()) {
        locate::LocateOutcome::Found(located)
            if matches!(selector, PositionSpec::Line(_))
                && is_about_a_name(cmd)
                && is_python(&located.target.document)
                && located.target.name_span.is_empty() =>
        {
            let names = locate::names_on_line(world, &located.target);
            if names.places.is_empty() {
                let message = format!("{selector}: there is no name on the line");
                let hint = "name another line, or a column: PATH:LINE:COL";
                return SelectorOutcome::Failed(ErrorBody::new(ErrorSymbol::NotFound, message).hint(hint));
            }
            SelectorOutcome::Ambiguous(names)
        }
        locate::LocateOutcome::Found(located)
            if matches!(selector, PositionSpec::Name(_))
                && is_about_a_name(cmd)
                && located.target.kind == Some(DefinitionKind::Module) =>
        {
            let message = format!("{selector} is a module, and this request is about a name");
            let name = selector.to_string();
            let beside = name.rsplit_once('.').map_or_else(String::new, |(package, _)| format!("{package}."));
            let new = match request.new_name.as_deref() {
                Some(new) if is_module_path(new) => shell_quote(new),
                Some(new) if new.starts_with("py://") => shell_quote(new),
                Some(new) if new.contains('.') => shell_quote(&format!("py://{new}")),
                Some(new) => shell_quote(&format!("py://{beside}{new}")),
                None => format!("py://{beside}NEW"),
            };
            let hint = format!(
                "`lanser symbols {}` lists its names; `lanser move {} {new}` renames it",
                shell_argument(&name),
                shell_quote(&format!("py://{name}"))
            );
            SelectorOutcome::Failed(ErrorBody::new(ErrorSymbol::NotFound, message).hint(hint))
        }
        // An edit that was made already is not made again under the new name.
        locate::LocateOutcome::Found(located)
            if cmd.edits() && selector.doc_version().is_none() && located.evidence.followed_history =>
        {
            let message = format!("{selector}: {}", located.evidence.reason);
            let selector = shell_argument(&selector.to_string());
            let hint = format!("`lanser locate {selector}` shows where it is now: name it as it is there");
            SelectorOutcome::Failed(ErrorBody::new(ErrorSymbol::NotFound, message).hint(hint))
        }
        locate::LocateOutcome::Found(located) => {
            SelectorOutcome::Found(request_target(*located, world.roots))
        }
        locate::LocateOutcome::Ambiguous(all) => SelectorOutcome::Ambiguous(all),
        locate::LocateOutcome::NotFound(NotFound { reason: NotFoundReason::Unreadable(error), .. })
            if path.is_some() =>
        {
            let path = path.unwrap_or_else(|| world.snapshot.root().clone());
            SelectorOutcome::Failed(unreadable(files, paths, (selector, &path), &error))
        }
        locate::LocateOutcome::NotFound(near) => SelectorOutcome::Failed(not_found(selector, paths, &near)),
        locate::LocateOutcome::Skew(reason) => {
            let message = format!("{selector}: {}", paths.text(&reason));
            let hint = "give an existing revision, or a selector that names or quotes the target";
            SelectorOutcome::Failed(ErrorBody::new(ErrorSymbol::VersionSkew, message).hint(hint))
        }
    }
}

/// Whether a command asks about the name at its target, so that a line with several names does not suffice.
const fn is_about_a_name(cmd: Command) -> bool {
    !matches!(cmd, Command::Locate | Command::Symbols | Command::Diagnostics | Command::Actions)
}

fn request_target(located: LocatedTarget, roots: &ImportRoots) -> RequestTarget {
    let LocatedTarget { target, evidence } = located;
    let definition = target.qualname.as_ref().zip(target.kind);
    RequestTarget {
        definition: definition.map(|(name, kind)| (name.to_string(), kind.as_str())),
        offset: target.name_span.start,
        name_span: Some(target.name_span).filter(|span| !span.is_empty()),
        is_module: target.kind == Some(DefinitionKind::Module),
        span: target.span,
        module: roots.name_of(&target.document.path),
        document: target.document,
        stub: target.stub,
        evidence,
        steps: target.via,
    }
}

fn unreadable(
    files: &DiskFiles,
    paths: &PathMap,
    (selector, path): (&PositionSpec, &AbsPath),
    error: &ReadError,
) -> ErrorBody {
    let hint = match error {
        ReadError::Missing { .. } => "paths in selectors are relative to the workspace",
        ReadError::Refused { .. } => "name a readable regular file",
        ReadError::TooLarge { .. } | ReadError::LongLine { .. } | ReadError::ManyDefinitions { .. } => {
            "name a hand-written source file"
        }
    };
    let body = ErrorBody::new(read_error_symbol(error), paths.text(&error.to_string())).hint(hint);
    let near = near_files(path, files, false);
    let near = near.iter().map(|name| {
        let mut selector = selector.clone();
        selector.map_uri(|_| paths.uri(&path.parent().join(name)));
        selector.to_string()
    });
    body.suggestions(near.collect())
}

const fn read_error_symbol(error: &ReadError) -> ErrorSymbol {
    match error {
        ReadError::Missing { .. } => ErrorSymbol::NotFound,
        ReadError::Refused { .. }
        | ReadError::TooLarge { .. }
        | ReadError::LongLine { .. }
        | ReadError::ManyDefinitions { .. } => ErrorSymbol::FsPermissions,
    }
}

/// The hint for numbers that a file does not have.
pub(crate) const ONE_BASED: &str = "lines and columns are 1-based";

fn not_found(selector: &PositionSpec, paths: &PathMap, near: &NotFound) -> ErrorBody {
    let message = format!("{selector}: {}", paths.text(&near.reason.to_string()));
    let error = ErrorBody::new(ErrorSymbol::NotFound, message);
    if near.suggestions.is_empty() {
        return error.hint(match selector {
            PositionSpec::Symbol(spec) if spec.qualname.names().len() > 1 => {
                "`lanser symbols --query NAME` searches the workspace; the parts of a definition are :def, :sig, :body and :doc"
            }
            PositionSpec::Symbol(_) => "`lanser symbols --query NAME` searches the workspace",
            PositionSpec::Line(_) if matches!(near.reason, NotFoundReason::NoCode { .. }) => {
                "it is blank or a comment; name the line of a statement"
            }
            PositionSpec::Name(_) => "`lanser symbols --query NAME` searches the workspace",
            PositionSpec::Cursor(_) | PositionSpec::Range(_) | PositionSpec::Line(_) if selector.doc_version().is_none() => {
                ONE_BASED
            }
            PositionSpec::Anchor(_) => "quote a longer span, or name the definition: py://module#name",
            _ => "`lanser symbols PATH` lists what a file defines",
        });
    }
    error
        .hint("use one of these, or search with `lanser symbols --query NAME`")
        .suggestions(near.suggestions.clone())
}

/// The name that a file has through a symbolic link, if that leads to it or to a folder around it.
fn name_through(link: &AbsPath, real: &AbsPath) -> Option<AbsPath> {
    let target = canonical(link);
    if target == *real { Some(link.clone()) } else { Some(link.join(real.strip_prefix(&target)?)) }
}
