//! A selector resolved on a ground: everything of an answer that needs no server.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use super::Settings;
use super::failure::Failure;
use super::ground::Ground;
use super::located;
use super::places::Places;
use crate::bundle::portable::PathMap;
use crate::digest::Digest;
use crate::model::error::{ErrorBody, ErrorData, ErrorSymbol};
use crate::model::request::{Command, Request, Scope};
use crate::model::resolution::Resolution;
use crate::path::{AbsPath, WorkspacePath};
use crate::resolve::definitions::Definitions;
use crate::resolve::hop::Hop;
use crate::resolve::locate::{self, Evidence, Located, Several, TOP, World, locate};
use crate::resolve::meaning::Meaning;
use crate::resolve::modules::ImportRoots;
use crate::resolve::near::{Near, Reason};
use crate::resolve::symbol::StubPlace;
use crate::selector::PositionSpec;
use crate::tape::Tape;
use crate::text::ColumnUnit;
use crate::workspace::contents::Contents;
use crate::workspace::files::{DiskFiles, Document, FileKind, Files, ReadError};
use crate::workspace::parallel::parallel_map;

/// A request's selector, resolved on one ground.
pub(super) struct State {
    pub(super) ground: Arc<Ground>,
    pub(super) files: DiskFiles,
    pub(super) resolved: Option<Outcomes>,
    /// What the meaning of its place hangs on, once somebody wants to know.
    pub(super) meaning: OnceLock<Meaning>,
    /// Whether what the answer hangs on is declared elsewhere, once somebody has looked.
    pub(super) is_told: OnceLock<bool>,
    pub(super) threads: usize,
    /// What every question to the outside passes through.
    pub(super) tape: Tape,
}

/// How many contents of one answer are kept.
const MAX_KEPT: usize = 64;

/// What became of the selector.
pub(super) enum Outcomes {
    Found(Subject),
    Ambiguous(Several),
    Failed(ErrorBody),
}

/// What a question is about.
pub(super) struct Subject {
    /// The file.
    pub(super) document: Arc<Document>,
    /// Where in it the server is asked: a byte offset.
    pub(super) offset: usize,
    /// The part that the selector asks for, in bytes.
    pub(super) span: std::ops::Range<usize>,
    /// The identifier at `offset`, in bytes.
    pub(super) name_span: Option<std::ops::Range<usize>>,
    /// Qualified name and kind, where the place is a definition.
    pub(super) definition: Option<(String, &'static str)>,
    /// The same definition in the stub that the server reads in place of the source.
    stub: Option<StubPlace>,
    /// The dotted name of the file.
    pub(super) module: Option<String>,
    /// What speaks for the place.
    pub(super) evidence: Evidence,
    /// The steps that led to it.
    pub(super) hops: Vec<Hop>,
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
    /// Resolves the request's selector. Blocking.
    pub(super) fn take(settings: &Settings, request: &Request, ground: Arc<Ground>, tape: Tape) -> Self {
        let files = DiskFiles::on(tape.clone());
        let contents = settings.keep.then(|| Contents::new(&settings.cache));
        let resolved = request.selector.as_ref().map(|selector| {
            let roots_of = |files: &dyn Files| ground.roots_of(files);
            let world = World {
                files: &files,
                roots: &ground.roots,
                roots_of: &roots_of,
                snapshot: &ground.snapshot,
                index: &ground.index,
                contents: contents.as_ref(),
                threads: settings.threads,
                tape: &tape,
            };
            resolve(&world, &files, &ground.paths, selector)
        });
        if let Some(Outcomes::Found(subject)) = &resolved
            && matches!(request.cmd, Command::References | Command::Implementation | Command::Rename)
            && let Some(name) = subject.name()
        {
            // The server may be starting: what will be opened is read meanwhile. What cannot be read is told later.
            let snapshot = &ground.snapshot;
            let holding: Vec<AbsPath> = snapshot
                .files_with_word(name, settings.threads, &tape)
                .iter()
                .map(|path| snapshot.absolute(path))
                .collect();
            parallel_map(&holding, settings.threads, |path| drop(files.read(path)));
            snapshot.keep_index();
        }
        let threads = settings.threads;
        Self { ground, files, resolved, meaning: OnceLock::new(), is_told: OnceLock::new(), threads, tape }
    }

    /// Why the selector means no one place; `None` when it does, or there is none.
    pub(super) fn target_error(&self) -> Option<ErrorBody> {
        match self.resolved.as_ref()? {
            Outcomes::Found(_) => None,
            Outcomes::Failed(error) => Some(error.clone()),
            Outcomes::Ambiguous(targets) => {
                let message = match (targets.total, targets.places.len().min(TOP)) {
                    (1, _) => "one place fits the selector, and too little speaks for it".to_owned(),
                    (few, shown) if few <= shown => format!("the selector may mean any of {few} places"),
                    (many, shown) => {
                        format!("the selector may mean any of {many} places, of which {shown} are shown")
                    }
                };
                let hint = match targets.total {
                    1 => {
                        "if it is the place below, ask again with that; a selector with `?v=` is found with more certainty"
                    }
                    _ => "ask again with one of the places below",
                };
                Some(ErrorBody::new(ErrorSymbol::Ambiguous, message).hint(hint))
            }
        }
    }

    /// What the question is about.
    pub(super) fn subject(&self) -> Result<&Subject, Failure> {
        match &self.resolved {
            Some(Outcomes::Found(subject)) if is_python(&subject.document) => Ok(subject),
            // A server takes any text for Python, and finds names in it.
            Some(Outcomes::Found(subject)) => {
                let uri = self.ground.paths.uri(&subject.document.path);
                let error = ErrorBody::new(ErrorSymbol::Usage, format!("{uri} is no Python file"));
                Err(Failure::told(
                    error.hint("ask about a .py or .pyi file, or a script that begins with `#!` and python"),
                ))
            }
            _ => {
                let error = ErrorBody::new(ErrorSymbol::Usage, "this question needs a selector");
                Err(Failure::told(error.hint("`lanser help locate` shows the forms of a selector")))
            }
        }
    }

    /// Whether the file that the question is about is part of the ground.
    pub(super) fn is_covered(&self) -> bool {
        let Some(Outcomes::Found(subject)) = &self.resolved else { return true };
        self.ground.covers(&self.ground.paths.uri(&subject.document.path))
    }

    /// The files outside the workspace that were read so far, with the digests of what they hold.
    pub(super) fn read_outside(&self) -> BTreeMap<AbsPath, Option<Digest>> {
        let mut used = self.files.used();
        used.retain(|path, _| !self.is_in_workspace(path));
        used
    }

    /// Whether every file that the answer was made of is one that the ground tells of, or an installed one.
    pub(super) fn rests_on_ground(&self) -> bool {
        // What is not there is told of by its absence.
        let told = |path: &AbsPath| self.ground.covers(&self.ground.paths.uri(path));
        self.is_covered() && self.files.used().iter().all(|(path, digest)| digest.is_none() || told(path))
    }

    /// The resolution as the bundle tells it when no server was asked.
    pub(super) fn resolution(&self, request: &Request) -> Option<Resolution> {
        let places = Places {
            state: self,
            files: &self.files,
            paths: &self.ground.paths,
            server_unit: ColumnUnit::Utf16,
            io_unit: request.options.index_io,
            dual: None,
        };
        self.resolution_in(request, &places)
    }

    /// The resolution as the bundle tells it, in the coordinates of `places`.
    pub(super) fn resolution_in(&self, request: &Request, places: &Places<'_>) -> Option<Resolution> {
        let original = request.selector.as_ref()?.to_string();
        let mut resolution = Resolution {
            original,
            resolved: None,
            disambiguation: Vec::new(),
            candidates: None,
            ambiguous: false,
        };
        match self.resolved.as_ref()? {
            Outcomes::Found(subject) => {
                resolution.resolved = Some(located::resolved(self, subject, places, &request.options));
            }
            Outcomes::Ambiguous(targets) => {
                resolution.ambiguous = true;
                resolution.candidates = Some(u32::try_from(targets.total).unwrap_or(u32::MAX));
                resolution.disambiguation =
                    targets.places.iter().take(TOP).map(|one| located::candidate(one, places)).collect();
            }
            Outcomes::Failed(_) => {}
        }
        Some(resolution)
    }

    /// The workspace's definitions.
    pub(super) fn definitions(&self) -> Definitions<'_> {
        let Ground { index, snapshot, .. } = &*self.ground;
        Definitions { index, snapshot, threads: self.threads, tape: &self.tape }
    }

    /// The readable files of the workspace in which a word stands.
    pub(super) fn files_with_word(&self, word: &str) -> Vec<WorkspacePath> {
        self.ground.snapshot.files_with_word(word, self.threads, &self.tape)
    }

    /// Keeps the contents that the answer was made from, so that its places can be mapped when they have changed.
    pub(super) fn keep_contents(&self, settings: &Settings) {
        if !settings.keep {
            return;
        }
        let contents = Contents::new(&settings.cache);
        let own = self.files.used().into_iter().filter(|(path, _)| self.is_in_workspace(path));
        for (path, digest) in own.take(MAX_KEPT) {
            if let Some(digest) = digest {
                contents.keep_file(&digest, &path);
            }
        }
    }

    /// The files that a request about files means, in order.
    pub(super) fn request_files(&self, request: &Request) -> Result<Vec<AbsPath>, Failure> {
        if request.selector.is_some() {
            return Ok(vec![self.subject()?.document.path.clone()]);
        }
        let all = self.ground.snapshot.files().keys();
        let included = &self.ground.included;
        let configured = |path: &&_| request.options.scope == Scope::Workspace || included.includes(path);
        if request.options.paths.is_empty() {
            let found: Vec<_> =
                all.filter(configured).map(|path| self.ground.snapshot.absolute(path)).collect();
            if found.is_empty() {
                // Nothing wrong in nothing would pass for an answer.
                let message = "there is no Python file in the workspace";
                return Err(Failure::not_found(message, "name another folder with `-C DIR`"));
            }
            return Ok(found);
        }
        let mut found = std::collections::BTreeSet::new();
        for wanted in &request.options.paths {
            let path = self.ground.snapshot.absolute(wanted);
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
            let inside = self.ground.snapshot.files().keys().filter(|path| path.as_str().starts_with(&below));
            let inside: Vec<AbsPath> =
                inside.filter(configured).map(|path| self.ground.snapshot.absolute(path)).collect();
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
        self.ground.paths.uri(path).workspace_path().is_some()
    }

    /// The first file that was read as another one than the ground has it, or that is another one now.
    ///
    /// A file may have changed between the survey and the moment when it was read, and back again since.
    pub(super) fn first_misread(&self) -> Option<String> {
        let used = self.files.used();
        let misread = used.into_iter().find(|(path, digest)| {
            !self.ground.holds(path, *digest).unwrap_or_else(|| self.files.is_unchanged(path))
        });
        misread.map(|(path, _)| self.ground.paths.uri(&path).to_string())
    }
}

/// Whether a file is meant for a Python interpreter: by its name, or by its first line.
fn is_python(document: &Document) -> bool {
    let name = document.path.file_name();
    let first = document.text.lines().next().unwrap_or_default();
    name.ends_with(".py") || name.ends_with(".pyi") || (first.starts_with("#!") && first.contains("python"))
}

fn resolve(world: &World<'_>, files: &DiskFiles, paths: &PathMap, selector: &PositionSpec) -> Outcomes {
    let path = match selector.uri().map(|uri| (uri, paths.absolute(uri))) {
        None => None,
        Some((uri, None)) => {
            let message = format!("the folder that \"{uri}\" is relative to is not known here");
            let hint = "name a file of the workspace, or use the `at` of a location of this machine";
            return Outcomes::Failed(ErrorBody::new(ErrorSymbol::NotFound, message).hint(hint));
        }
        Some((_, Some(path))) => {
            // A link to a file of the workspace is another spelling of that file: asked about the link, a server tells its
            // uses only.
            let real = files.canonical(&path);
            Some(if paths.uri(&real).workspace_path().is_some() { real } else { path })
        }
    };
    match locate(world, selector, path.as_ref()) {
        locate::Answer::Found(located) => Outcomes::Found(subject(*located, world.roots)),
        locate::Answer::Ambiguous(all) => Outcomes::Ambiguous(all),
        locate::Answer::NotFound(Near { reason: Reason::Unreadable(error), .. }) if path.is_some() => {
            let path = path.unwrap_or_else(|| world.snapshot.root().clone());
            Outcomes::Failed(unreadable(files, paths, &path, &error))
        }
        locate::Answer::NotFound(near) => Outcomes::Failed(not_found(selector, paths, &near)),
        locate::Answer::Skew(reason) => {
            let message = format!("{selector}: {}", paths.text(&reason));
            let hint =
                "ask with a version that can be had, or with a selector that names or quotes what is meant";
            Outcomes::Failed(ErrorBody::new(ErrorSymbol::VersionSkew, message).hint(hint))
        }
    }
}

fn subject(located: Located, roots: &ImportRoots) -> Subject {
    let Located { target, evidence } = located;
    let definition = target.qualname.as_ref().zip(target.kind);
    Subject {
        definition: definition.map(|(name, kind)| (name.to_string(), kind.as_str())),
        offset: target.name_span.start,
        name_span: Some(target.name_span).filter(|span| !span.is_empty()),
        span: target.span,
        module: roots.name_of(&target.document.path),
        document: target.document,
        stub: target.stub,
        evidence,
        hops: target.via,
    }
}

fn unreadable(files: &DiskFiles, paths: &PathMap, path: &AbsPath, error: &ReadError) -> ErrorBody {
    let hint = match error {
        ReadError::Missing { .. } => "paths in selectors are relative to the workspace",
        ReadError::Refused { .. } => "name a regular file that may be read",
        ReadError::TooLarge { .. } | ReadError::LongLine { .. } | ReadError::ManyDefinitions { .. } => {
            "name a file that people write"
        }
    };
    let body = ErrorBody::new(read_error_symbol(error), paths.text(&error.to_string())).hint(hint);
    let near = near_files(files, paths, path);
    if near.is_empty() { body } else { body.data(ErrorData::Near { selectors: near }) }
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
            PositionSpec::Symbol(spec) if spec.qualname.names().len() > 1 => {
                "`lanser symbols --query NAME` searches the workspace; the parts of a definition are :def, :sig, :body and :doc"
            }
            PositionSpec::Symbol(_) => "`lanser symbols --query NAME` searches the workspace",
            PositionSpec::Cursor(_) | PositionSpec::Range(_) if selector.doc_version().is_none() => {
                "lines and columns are 1-based"
            }
            PositionSpec::Anchor(_) => "quote a longer stretch, or name the definition: py://module#name",
            _ => "`lanser symbols PATH` lists what a file defines",
        });
    }
    error
        .hint("use one of these, or search with `lanser symbols --query NAME`")
        .data(ErrorData::Near { selectors: near.suggestions.clone() })
}
