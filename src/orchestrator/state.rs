//! The state of the workspace at one moment, and the selector resolved in it: everything that needs no server.

use std::sync::Arc;

use super::failure::Failure;
use super::places::{Places, preview};
use super::{Settings, blocking};
use crate::bundle::portable::PathMap;
use crate::digest::{Digest, Score};
use crate::lsp::profile::{Profile, ServerSettings};
use crate::model::environment::{Environment, Lanser, Python, WorkspaceState};
use crate::model::error::{ErrorBody, ErrorData, ErrorSymbol};
use crate::model::request::{Command, Request, Scope};
use crate::model::resolution::{self, Candidate, Resolution, Resolved, Via};
use crate::path::{AbsPath, DocUri};
use crate::resolve::hop::Hop;
use crate::resolve::modules::ImportRoots;
use crate::resolve::near::Near;
use crate::resolve::place;
use crate::resolve::symbol::{self, Outcome, StubPlace, Target};
use crate::selector::PositionSpec;
use crate::text::ColumnUnit;
use crate::workspace::configured::Configured;
use crate::workspace::files::{DiskFiles, Document, FileKind, Files, ReadError, canonical};
use crate::workspace::parallel::parallel_map;
use crate::workspace::python::PythonEnvironment;
use crate::workspace::server_config::ServerConfig;
use crate::workspace::snapshot::Snapshot;

/// The state of the workspace, and what the request's selector means in it.
pub(super) struct State {
    pub(super) snapshot: Snapshot,
    pub(super) files: DiskFiles,
    pub(super) paths: PathMap,
    /// Without what only a server knows.
    pub(super) environment: Environment,
    pub(super) config: ServerConfig,
    resolved: Option<Outcomes>,
}

/// How many candidates of an ambiguous selector are told.
const TOP: usize = 5;

/// What became of the selector.
enum Outcomes {
    Found(Subject),
    Ambiguous(Vec<Target>),
    Failed(ErrorBody),
}

/// What a question is about.
pub(super) struct Subject {
    /// The file.
    pub(super) document: Arc<Document>,
    /// Where in it the server is asked: a byte offset.
    pub(super) offset: usize,
    /// The part that the selector asks for, in bytes.
    span: std::ops::Range<usize>,
    /// The identifier at `offset`, in bytes.
    name_span: Option<std::ops::Range<usize>>,
    /// Qualified name and kind, where the place is a definition.
    definition: Option<(String, &'static str)>,
    /// The same definition in the stub that the server reads in place of the source.
    stub: Option<StubPlace>,
    via: Via,
    evidence: Vec<Hop>,
}

impl Subject {
    /// The file and the byte offset where the server is asked about uses. Asked at a source that has a stub beside it,
    /// Pyright tells the uses in that file only; asked at the stub, all.
    pub(super) fn asked_for_uses(&self) -> (&Arc<Document>, usize) {
        match &self.stub {
            Some(stub) => (&stub.document, stub.name_span.start),
            None => (&self.document, self.offset),
        }
    }

    /// The identifier that the question is about.
    pub(super) fn name(&self) -> Option<&str> {
        self.name_span.clone().map(|span| &self.document.text[span])
    }
}

impl State {
    /// Takes the state. Blocking.
    pub(super) fn take(
        settings: &Settings,
        request: &Request,
        python: Option<&PythonEnvironment>,
        server: Option<AbsPath>,
    ) -> Self {
        let cache = settings.keep.then_some(&settings.cache);
        let snapshot = Snapshot::take(&settings.root, cache, settings.trust, settings.threads);
        let files = DiskFiles::new();
        let config = ServerConfig::read(&files, &settings.root, settings.server);
        let mut paths = PathMap::new().workspace(settings.root.clone());
        if let Some(python) = python {
            for prefix in [&python.prefix, &canonical(&python.prefix)] {
                paths = paths.env(prefix.clone());
            }
            for prefix in [&python.base_prefix, &canonical(&python.base_prefix)] {
                paths = paths.env_base(prefix.clone());
            }
        }
        if let Some(server) = &server {
            paths = paths.server(server.clone());
        }
        let environment = environment(settings, &snapshot, &files, &config, python, &paths);
        let resolved = request.selector.as_ref().map(|selector| {
            let typeshed = server.as_ref().map(|package| package.join("dist/typeshed-fallback"));
            let roots = ImportRoots::new(&files, &settings.root, &config, python, typeshed);
            resolve(&files, &paths, &roots, selector)
        });
        if let Some(Outcomes::Found(subject)) = &resolved
            && matches!(request.cmd, Command::References | Command::Implementation)
            && let Some(name) = subject.name()
        {
            // The server is starting: what will be opened is read meanwhile. What cannot be read is told later.
            let holding: Vec<AbsPath> = snapshot
                .files_with_word(name, settings.threads)
                .iter()
                .map(|path| snapshot.absolute(path))
                .collect();
            parallel_map(&holding, settings.threads, |path| drop(files.read(path)));
        }
        snapshot.keep_index();
        Self { snapshot, files, paths, environment, config, resolved }
    }

    /// Why the selector means no one place; `None` when it does, or there is none.
    pub(super) fn target_error(&self) -> Option<ErrorBody> {
        match self.resolved.as_ref()? {
            Outcomes::Found(_) => None,
            Outcomes::Failed(error) => Some(error.clone()),
            Outcomes::Ambiguous(targets) => {
                let message = match targets.len() {
                    few @ ..=TOP => format!("the selector means {few} definitions"),
                    many => format!("the selector means {many} definitions, of which {TOP} are shown"),
                };
                Some(
                    ErrorBody::new(ErrorSymbol::Ambiguous, message)
                        .hint("ask again with one of the places below"),
                )
            }
        }
    }

    /// What the question is about.
    pub(super) fn subject(&self) -> Result<&Subject, Failure> {
        match &self.resolved {
            Some(Outcomes::Found(subject)) => Ok(subject),
            _ => {
                let error = ErrorBody::new(ErrorSymbol::Usage, "this question needs a selector");
                Err(Failure::told(error.hint("`lanser help locate` shows the forms of a selector")))
            }
        }
    }

    /// The resolution as the bundle tells it when no server was asked.
    pub(super) fn resolution(&self, request: &Request) -> Option<Resolution> {
        let places = Places {
            files: &self.files,
            paths: &self.paths,
            server_unit: ColumnUnit::Utf16,
            io_unit: request.options.index_io,
            dual: None,
        };
        self.resolution_in(request, &places)
    }

    /// The resolution as the bundle tells it, in the coordinates of `places`.
    pub(super) fn resolution_in(&self, request: &Request, places: &Places<'_>) -> Option<Resolution> {
        let original = request.selector.as_ref()?.to_string();
        let mut resolution =
            Resolution { original, resolved: None, disambiguation: Vec::new(), ambiguous: false };
        match self.resolved.as_ref()? {
            Outcomes::Found(subject) => {
                resolution.resolved = Some(resolved(subject, places, request.options.preview.unwrap_or(1)));
            }
            Outcomes::Ambiguous(targets) => {
                resolution.ambiguous = true;
                resolution.disambiguation =
                    targets.iter().take(TOP).map(|target| candidate(target, places)).collect();
            }
            Outcomes::Failed(_) => {}
        }
        Some(resolution)
    }

    /// The files that a request about files means, in order.
    pub(super) fn request_files(&self, request: &Request) -> Result<Vec<AbsPath>, Failure> {
        if request.selector.is_some() {
            return Ok(vec![self.subject()?.document.path.clone()]);
        }
        let all = self.snapshot.files().keys();
        let included = Configured::new(&self.config);
        let configured = |path: &&_| request.options.scope == Scope::Workspace || included.includes(path);
        if request.options.paths.is_empty() {
            return Ok(all.filter(configured).map(|path| self.snapshot.absolute(path)).collect());
        }
        let mut found = std::collections::BTreeSet::new();
        for wanted in &request.options.paths {
            let path = self.snapshot.absolute(wanted);
            if self.files.kind(&path) == FileKind::File {
                if !wanted.is_python() {
                    let error = ErrorBody::new(ErrorSymbol::Usage, format!("{wanted} is no Python file"));
                    return Err(Failure::told(
                        error.hint("name .py or .pyi files, or folders that hold some"),
                    ));
                }
                found.insert(path);
                continue;
            }
            let below = format!("{wanted}/");
            let inside = self.snapshot.files().keys().filter(|path| path.as_str().starts_with(&below));
            let inside: Vec<AbsPath> =
                inside.filter(configured).map(|path| self.snapshot.absolute(path)).collect();
            let empty = inside.is_empty();
            found.extend(inside);
            if empty {
                let message = format!("there is no Python file in {wanted}");
                return Err(Failure::not_found(message, "name a Python file or a folder that holds some"));
            }
        }
        Ok(found.into_iter().collect())
    }

    /// Whether a file is one of the workspace's own.
    pub(super) fn is_in_workspace(&self, path: &AbsPath) -> bool {
        self.paths.uri(path).workspace_path().is_some()
    }

    /// Makes sure that what the answer rests on is still so.
    pub(super) async fn verify_unchanged(&self, settings: &Settings) -> Result<(), Failure> {
        let (root, trust, threads) = (settings.root.clone(), settings.trust, settings.threads);
        let cache = settings.keep.then(|| settings.cache.clone());
        let now = blocking(move || Snapshot::take(&root, cache.as_ref(), trust, threads)).await?;
        if let Some(path) = self.snapshot.first_difference(&now) {
            return Err(Failure::changed(&path));
        }
        // A file may have changed between the scan and the moment when it was read, and back again since.
        for (path, digest) in self.files.used() {
            let uri = self.paths.uri(&path);
            let known = uri.workspace_path().and_then(|path| self.snapshot.files().get(path));
            let same = match known {
                Some(known) => *known == digest,
                None => self.files.is_unchanged(&path),
            };
            if !same {
                return Err(Failure::Changed(uri.to_string()));
            }
        }
        Ok(())
    }
}

fn environment(
    settings: &Settings,
    snapshot: &Snapshot,
    files: &dyn Files,
    config: &ServerConfig,
    python: Option<&PythonEnvironment>,
    paths: &PathMap,
) -> Environment {
    let cache = settings.keep.then_some(&settings.cache);
    let identity = python.map(|python| python.identity(files, &settings.root, cache));
    let sent = Profile::of(settings.server).digestable(&ServerSettings { python: None });
    let mut configuration = vec![sent.into_bytes()];
    for (path, digest) in &config.files {
        configuration.push(path.as_bytes().to_vec());
        configuration.push(digest.as_bytes().to_vec());
    }
    let identity = identity.unwrap_or_else(|| Digest::of(b"no python"));
    Environment {
        tool: None,
        lanser: Lanser { version: env!("CARGO_PKG_VERSION").to_owned() },
        position_encoding: ColumnUnit::Utf16.as_lsp().to_owned(),
        python: python.map(|python| Python {
            version: python.version.clone(),
            exe: paths.uri(&python.interpreter).to_string(),
            venv: python.prefix != python.base_prefix,
        }),
        config_digest: Digest::of_fields(configuration.iter().map(Vec::as_slice)),
        platform: format!("{}-{}", std::env::consts::OS, std::env::consts::ARCH),
        workspace: WorkspaceState {
            digest: Digest::of_fields([&snapshot.digest().as_bytes()[..], &identity.as_bytes()[..]]),
        },
    }
}

fn resolve(files: &DiskFiles, paths: &PathMap, roots: &ImportRoots, selector: &PositionSpec) -> Outcomes {
    let document = |uri: &DocUri| {
        let Some(path) = paths.absolute(uri) else {
            let message = format!("the folder that \"{uri}\" is relative to is not known here");
            let hint = "name a file of the workspace, or use the `at` of a location of this machine";
            return Err(ErrorBody::new(ErrorSymbol::NotFound, message).hint(hint));
        };
        // A link to a file of the workspace is another spelling of that file: asked about the link, a server tells its uses
        // only.
        let real = files.canonical(&path);
        let path = if paths.uri(&real).workspace_path().is_some() { real } else { path };
        files.read(&path).map_err(|error| unreadable(files, paths, &path, &error))
    };
    let (outcome, via) = match selector {
        PositionSpec::Symbol(spec) => (Ok(symbol::symbol(files, roots, spec)), Via::Name),
        PositionSpec::Cursor(spec) => (
            document(&spec.uri).map(|document| place::cursor(files, roots, &document, spec)),
            Via::Coordinates,
        ),
        PositionSpec::Range(spec) => (
            document(&spec.uri).map(|document| place::range(files, roots, &document, spec)),
            Via::Coordinates,
        ),
        PositionSpec::Ast(_) | PositionSpec::Anchor(_) | PositionSpec::Symid(_) => {
            let message = format!("{selector}: this form of selector is not resolved yet");
            return Outcomes::Failed(ErrorBody::new(ErrorSymbol::UnsupportedCap, message));
        }
    };
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(error) => return Outcomes::Failed(error),
    };
    match outcome {
        Outcome::Found(target) => Outcomes::Found(subject(*target, via)),
        Outcome::Ambiguous(targets) => Outcomes::Ambiguous(targets),
        Outcome::NotFound(near) => Outcomes::Failed(not_found(selector, paths, &near)),
    }
}

fn subject(target: Target, via: Via) -> Subject {
    let definition = target.qualname.as_ref().zip(target.kind);
    Subject {
        definition: definition.map(|(name, kind)| (name.to_string(), kind.as_str())),
        offset: target.name_span.start,
        name_span: Some(target.name_span).filter(|span| !span.is_empty()),
        span: target.span,
        document: target.document,
        stub: target.stub,
        via,
        evidence: target.via,
    }
}

fn unreadable(files: &DiskFiles, paths: &PathMap, path: &AbsPath, error: &ReadError) -> ErrorBody {
    let hint = match error {
        ReadError::Missing { .. } => "paths in selectors are relative to the workspace",
        ReadError::Refused { .. } => "name a regular file that may be read",
        ReadError::TooLarge { .. } => "name a source file",
    };
    let body = ErrorBody::new(read_error_symbol(error), paths.text(&error.to_string())).hint(hint);
    let near = near_files(files, paths, path);
    if near.is_empty() { body } else { body.data(ErrorData::Near { selectors: near }) }
}

const fn read_error_symbol(error: &ReadError) -> ErrorSymbol {
    match error {
        ReadError::Missing { .. } => ErrorSymbol::NotFound,
        ReadError::Refused { .. } | ReadError::TooLarge { .. } => ErrorSymbol::FsPermissions,
    }
}

/// Files of the same folder with a similar name.
fn near_files(files: &DiskFiles, paths: &PathMap, path: &AbsPath) -> Vec<String> {
    let wanted = path.file_name().to_lowercase();
    let stem = wanted.split('.').next().unwrap_or_default().to_owned();
    let folder = path.parent();
    let similar = files.list(&folder).into_iter().filter(|name| {
        let name = name.to_lowercase();
        !stem.is_empty()
            && name.ends_with(".py")
            && (name.contains(&stem) || stem.contains(name.trim_end_matches(".py")))
    });
    similar.take(5).map(|name| paths.uri(&folder.join(&name)).to_string()).collect()
}

fn not_found(selector: &PositionSpec, paths: &PathMap, near: &Near) -> ErrorBody {
    let message = format!("{selector}: {}", paths.text(&near.reason.to_string()));
    let error = ErrorBody::new(ErrorSymbol::NotFound, message);
    if near.suggestions.is_empty() {
        return error.hint(match selector {
            PositionSpec::Symbol(_) => "`lanser symbols --query NAME` searches the workspace",
            _ => "lines and columns are 1-based",
        });
    }
    error
        .hint("use one of these, or search with `lanser symbols --query NAME`")
        .data(ErrorData::Near { selectors: near.suggestions.clone() })
}

fn resolved(subject: &Subject, places: &Places<'_>, lines: u32) -> Resolved {
    let document = &subject.document;
    let (uri, range, mut at) = places.span(document, subject.span.clone());
    let is_name = subject.name_span.as_ref() == Some(&subject.span);
    if !is_name && !subject.span.is_empty() {
        at = places.stretch(document, subject.span.clone());
    }
    Resolved {
        uri,
        range,
        at,
        qualname: subject.definition.as_ref().map(|(name, _)| name.clone()),
        symbol_kind: subject.definition.as_ref().map(|(_, kind)| (*kind).to_owned()),
        doc_version: document.digest,
        via: subject.via,
        evidence: subject.evidence.iter().map(|hop| evidence(hop, places)).collect(),
        confidence: Score::ONE,
        certified: true,
        preview: (range.start.line..range.start.line.saturating_add(lines))
            .map_while(|line| preview(document, line))
            .collect::<Vec<_>>()
            .join("\n"),
    }
}

fn evidence(hop: &Hop, places: &Places<'_>) -> resolution::Hop {
    // The file was read when the step was taken.
    let at = places.files.read(&hop.file).map(|document| places.span(&document, hop.span.clone()).2);
    resolution::Hop { step: hop.kind.as_str().to_owned(), at: at.unwrap_or_default(), to: hop.to.clone() }
}

fn candidate(target: &Target, places: &Places<'_>) -> Candidate {
    let (uri, range, at) = places.span(&target.document, target.name_span.clone());
    let reason = match target.conditions.as_slice() {
        [] => "one of several definitions of the name".to_owned(),
        conditions => format!("defined under `{}`", conditions.join("`, `")),
    };
    Candidate {
        uri,
        range,
        at,
        qualname: target.qualname.as_ref().map(ToString::to_string).unwrap_or_default(),
        symbol_kind: target.kind.map_or("unknown", |kind| kind.as_str()).to_owned(),
        score: Score::ONE,
        reason,
        preview: preview(&target.document, range.start.line).unwrap_or_default(),
    }
}
