//! Locates selectors with a version: resolves them in the old state, then relocates the targets to the current one.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use super::snippet::has_context;
use super::{
    Ambiguous, LocateOutcome, LocatedTarget, Part, ResolutionEvidence, ResolveContext, ResolvedVia, history,
    locate_current, other_branch_reason, part, plain_name,
};
use crate::digest::Digest;
use crate::path::{AbsPath, WorkspacePath, is_python};
use crate::python::ast::{AstMatch, AstPathError, follow};
use crate::python::not_found::{NotFound, NotFoundReason};
use crate::python::outline::Span;
use crate::python::symbol::{self, ResolveOutcome};
use crate::python::{line, position};
use crate::relocate::anchor::{exact, same_tokens};
use crate::relocate::definitions::Definitions;
use crate::relocate::index::{entries, other_file};
use crate::relocate::{OldContent, RelocationMatch, RelocationOutcome, TargetChange, relocate};
use crate::selector::{
    AnchorSpec, AstStep, Construct, ContextHash, DocVersion, NameSpec, PositionSpec, Role, SymbolId,
    SymidSpec,
};
use crate::tape::IoKind;
use crate::text::ColumnUnit;
use crate::workspace::files::{Document, FileKind, Files, ReadError, check_limits};
use crate::workspace::history::RevisionFiles;

/// An old state of the files: all files at a revision, or one file with another content.
struct OldFiles<'w> {
    root: &'w AbsPath,
    now: &'w dyn Files,
    past: Option<&'w Mutex<RevisionFiles>>,
    one: Option<Arc<Document>>,
}

impl OldFiles<'_> {
    fn relative(&self, path: &AbsPath) -> Option<String> {
        path.strip_prefix(self.root).map(str::to_owned)
    }

    fn in_past<R>(&self, path: &AbsPath, ask: impl FnOnce(&RevisionFiles, &str) -> R) -> Option<R> {
        let relative = self.relative(path)?;
        Some(ask(&self.past?.lock().unwrap_or_else(PoisonError::into_inner), &relative))
    }
}

impl Files for OldFiles<'_> {
    fn read(&self, path: &AbsPath) -> Result<Arc<Document>, ReadError> {
        if let Some(one) = self.one.as_ref().filter(|one| one.path == *path) {
            return Ok(one.clone());
        }
        let missing = || ReadError::Missing { path: path.clone() };
        match self
            .in_past(path, |past, relative| WorkspacePath::new(relative).and_then(|path| past.read(&path)))
        {
            Some(bytes) => {
                let bytes = bytes.ok_or_else(missing)?;
                check_limits(path, &bytes)?;
                Ok(Arc::new(Document::new(path.clone(), bytes)))
            }
            None => self.now.read(path),
        }
    }

    fn kind(&self, path: &AbsPath) -> FileKind {
        if let Some(one) = &self.one {
            if one.path == *path {
                return FileKind::File;
            }
            if one.path.strip_prefix(path).is_some() {
                return FileKind::Folder;
            }
        }
        match self.in_past(path, RevisionFiles::is_folder) {
            Some(Some(true)) => FileKind::Folder,
            Some(Some(false)) => FileKind::File,
            Some(None) => FileKind::Missing,
            None => self.now.kind(path),
        }
    }

    fn list(&self, folder: &AbsPath) -> Vec<String> {
        self.in_past(folder, RevisionFiles::list).unwrap_or_else(|| self.now.list(folder))
    }

    fn canonical(&self, path: &AbsPath) -> AbsPath {
        if self.past.is_some() && self.relative(path).is_some() {
            path.clone()
        } else {
            self.now.canonical(path)
        }
    }
}

/// A target in the old state.
pub(super) struct VersionedTarget {
    pub(super) document: Arc<Document>,
    pub(super) span: Span,
    /// The requested part of the definition whose name is at `span`; `None` for the span itself.
    pub(super) part: Option<Part>,
    /// Why the target in the old state is uncertain.
    pub(super) doubt: Option<String>,
}

/// Why a selector has no target in the old state.
pub(super) enum OldStateError {
    /// The version is not available.
    Skew(String),
    /// The old state does not contain the target.
    Other(LocateOutcome),
}

/// Locates a selector with a version.
pub(super) fn locate(
    cx: &ResolveContext<'_>,
    selector: &PositionSpec,
    path: Option<&AbsPath>,
    version: &DocVersion,
) -> LocateOutcome {
    let past = match version {
        DocVersion::Git(revision) => {
            match RevisionFiles::at(cx.snapshot.root(), revision.as_str(), cx.tape) {
                Ok(past) => Some(Mutex::new(past)),
                Err(error) => return locate_without_version(cx, selector, path, &error.to_string()),
            }
        }
        // The other files of that state are known if a git revision has this content.
        DocVersion::Content(digest) => likely_file(cx, selector, path)
            .filter(|path| cx.files.read(path).ok().is_none_or(|now| now.digest != *digest))
            .and_then(|path| {
                RevisionFiles::containing(cx.snapshot.root(), &cx.relative(&path)?, digest, cx.tape)
            })
            .map(Mutex::new),
    };
    // A file may have been where a link is now, or the other way around.
    let real = path.map(|path| cx.real(path));
    let had = |past: &Mutex<RevisionFiles>| {
        let past = past.lock().unwrap_or_else(PoisonError::into_inner);
        path.and_then(|path| cx.relative(path)).is_some_and(|path| past.read(&path).is_some())
    };
    let path = if past.as_ref().is_some_and(had) { path } else { real.as_ref() };
    match old_targets(cx, selector, path, version, past.as_ref()) {
        Ok(olds) => {
            let mut answers: Vec<LocateOutcome> =
                olds.iter().map(|old| relocate_to_current(cx, old, past.as_ref(), selector)).collect();
            if answers.len() == 1 {
                return answers.swap_remove(0);
            }
            let (mut all, mut total) = (Vec::new(), 0);
            for answer in answers {
                match answer {
                    LocateOutcome::Found(mut located) => {
                        located.evidence.certified = false;
                        located.evidence.margin = 0.0;
                        all.push(*located);
                        total += 1;
                    }
                    LocateOutcome::Ambiguous(several) => {
                        total += several.total;
                        all.extend(several.places);
                    }
                    LocateOutcome::NotFound(_) | LocateOutcome::Skew(_) => {}
                }
            }
            match all.len() {
                0 => gone("none of its targets in that version exists now".to_owned()),
                // The selector was ambiguous in the old state; it still is if only one target is left.
                _ => LocateOutcome::Ambiguous(Ambiguous { places: all, total }),
            }
        }
        Err(OldStateError::Skew(reason)) => locate_without_version(cx, selector, path, &reason),
        Err(OldStateError::Other(answer)) => answer,
    }
}

pub(super) fn gone(reason: String) -> LocateOutcome {
    LocateOutcome::NotFound(NotFound::new(NotFoundReason::Other { reason }))
}

/// The file that a selector names, directly or by its module or its names.
fn likely_file(cx: &ResolveContext<'_>, selector: &PositionSpec, path: Option<&AbsPath>) -> Option<AbsPath> {
    match selector {
        PositionSpec::Cursor(_)
        | PositionSpec::Range(_)
        | PositionSpec::Line(_)
        | PositionSpec::Anchor(_) => path.cloned(),
        PositionSpec::Name(spec) => path.cloned().or_else(|| plain_name::likely_file(cx, spec)),
        PositionSpec::Symbol(spec) => Some(module_path(cx, spec.qualname.module.as_str())),
        PositionSpec::Ast(spec) => {
            let name = spec.path.first()?.name()?;
            Some(if is_python(name) { cx.snapshot.root().join(name) } else { module_path(cx, name) })
        }
        PositionSpec::Symid(spec) => {
            let chain = spec.id.names.join(".");
            let found = cx.definitions().with_chain(&chain);
            Some(cx.snapshot.absolute(&found.first()?.0))
        }
    }
}

/// Whether a selector has evidence other than a position. An ordinal is a position.
fn has_other_evidence(selector: &PositionSpec) -> bool {
    match selector {
        PositionSpec::Cursor(_) | PositionSpec::Range(_) | PositionSpec::Line(_) => false,
        PositionSpec::Ast(spec) => spec.counted_step().is_none(),
        PositionSpec::Symid(spec) => spec.id.ordinal.is_none(),
        PositionSpec::Symbol(_) | PositionSpec::Name(_) | PositionSpec::Anchor(_) => true,
    }
}

/// Locates a selector whose version is not available, by the selector alone.
fn locate_without_version(
    cx: &ResolveContext<'_>,
    selector: &PositionSpec,
    path: Option<&AbsPath>,
    reason: &str,
) -> LocateOutcome {
    if !has_other_evidence(selector) {
        return LocateOutcome::Skew(reason.to_owned());
    }
    match locate_current(cx, selector, path) {
        LocateOutcome::Found(mut located) => {
            let evidence = &mut located.evidence;
            evidence.certified = false;
            evidence.score = evidence.score.min(0.95);
            evidence.reason = format!("{}; by the selector alone, because {reason}", evidence.reason);
            LocateOutcome::Found(located)
        }
        LocateOutcome::NotFound(_) => LocateOutcome::Skew(reason.to_owned()),
        other => other,
    }
}

/// Resolves a selector in the old state.
fn old_targets(
    cx: &ResolveContext<'_>,
    selector: &PositionSpec,
    path: Option<&AbsPath>,
    version: &DocVersion,
    past: Option<&Mutex<RevisionFiles>>,
) -> Result<Vec<VersionedTarget>, OldStateError> {
    let root = cx.snapshot.root();
    let state = |one: Option<Arc<Document>>| OldFiles { root, now: cx.files, past, one };
    // The file with the requested content, under a path that it may have had.
    let one = |path: &AbsPath| -> Result<Option<Arc<Document>>, OldStateError> {
        let DocVersion::Content(digest) = version else { return Ok(None) };
        if let Ok(document) = cx.files.read(path)
            && document.digest == *digest
        {
            return Ok(Some(document));
        }
        let bytes = content(cx, digest, past, Some(path))?;
        Ok(Some(Arc::new(Document::new(path.clone(), bytes))))
    };
    let document = || -> Result<Arc<Document>, OldStateError> {
        let path = path.ok_or_else(|| OldStateError::Skew("the selector names no file".to_owned()))?;
        state(one(path)?).read(path).map_err(|_| {
            OldStateError::Skew(format!("the version {version} has no file {}", display_path(cx, path)))
        })
    };
    let whole =
        |document: Arc<Document>, span: Span| VersionedTarget { document, span, part: None, doubt: None };
    // A whole definition is found again by its name, whatever its text is now.
    let construct = |document: Arc<Document>, found: AstMatch, last: Option<&AstStep>| {
        let is_definition =
            last.is_some_and(|step| matches!(step.construct, Construct::Class | Construct::Def));
        match is_definition {
            true => VersionedTarget { part: Some(Part::Whole), ..whole(document, found.name_span) },
            false => whole(document, found.span),
        }
    };
    match selector {
        PositionSpec::Cursor(spec) => {
            let document = document()?;
            versioned_targets(position::resolve_cursor(cx.files, cx.roots, &document, spec))
        }
        PositionSpec::Range(spec) => {
            let document = document()?;
            versioned_targets(position::resolve_range(cx.files, cx.roots, &document, spec))
        }
        PositionSpec::Line(spec) => {
            let document = document()?;
            versioned_targets(line::resolve_line(cx.files, cx.roots, &document, spec.line))
        }
        PositionSpec::Anchor(spec) => {
            let document = document()?;
            let spans = snippet_spans(&document.text, spec);
            if spans.is_empty() {
                return Err(OldStateError::Skew(format!("the snippet is not in the version {version}")));
            }
            let fits = |span: &Span| {
                let hash = ContextHash::of(&document.text, span.clone(), spec.ctx);
                spec.hash.is_none() || spec.hash == hash
            };
            let old = |span: Span| {
                let doubt = (!fits(&span)).then(|| "the hash matches nowhere in that version".to_owned());
                VersionedTarget { doubt, ..whole(document.clone(), span) }
            };
            Ok(spans.into_iter().map(old).collect())
        }
        PositionSpec::Symbol(spec) => {
            let module = spec.qualname.module.as_str();
            let files = state(one(&module_path(cx, module))?);
            let roots = (cx.roots_of)(&files);
            let name_only = crate::selector::SymbolSpec { role: Role::Def, ..spec.clone() };
            with_roles(symbol::resolve_symbol(&files, &roots, &name_only), spec.role)
        }
        PositionSpec::Name(spec) => {
            let likely = likely_file(cx, selector, path);
            let files = state(likely.as_ref().map_or(Ok(None), one)?);
            let roots = (cx.roots_of)(&files);
            let name_only = NameSpec { role: Role::Def, ..spec.clone() };
            with_roles(plain_name::in_old_state(&files, &roots, &name_only, likely.as_ref()), spec.role)
        }
        PositionSpec::Ast(spec) => {
            let first = spec.path.first().filter(|step| step.construct == Construct::Module);
            let name = first.and_then(|step| step.name());
            let name =
                name.ok_or_else(|| OldStateError::Skew("the first step has no module name".to_owned()))?;
            let is_path = is_python(name);
            let likely = if is_path { root.join(name) } else { module_path(cx, name) };
            let files = state(one(&likely)?);
            let roots = (cx.roots_of)(&files);
            let found =
                if is_path { None } else { roots.find(&files, name).first().and_then(|m| m.file().cloned()) };
            let document = files
                .read(&found.unwrap_or(likely))
                .map_err(|error| OldStateError::Skew(error.to_string()))?;
            let last = spec.path.last();
            match follow(&document.text, &spec.path[1..]) {
                Ok(found) => Ok(vec![construct(document, found, last)]),
                Err(AstPathError::Ambiguous(all)) => {
                    Ok(all.into_iter().map(|found| construct(document.clone(), found, last)).collect())
                }
                Err(AstPathError::Missing(_)) => {
                    Err(OldStateError::Skew(format!("the AST path matches nothing in the version {version}")))
                }
            }
        }
        PositionSpec::Symid(spec) => by_structure(cx, &spec.id, version, past),
    }
}

fn display_path(cx: &ResolveContext<'_>, path: &AbsPath) -> String {
    cx.relative(path).map_or_else(|| path.to_string(), |path| path.to_string())
}

/// The names of symbols in the old state, with the requested part of each.
fn with_roles(outcome: ResolveOutcome, role: Role) -> Result<Vec<VersionedTarget>, OldStateError> {
    let with_role = |target: symbol::ResolvedTarget| VersionedTarget {
        doubt: other_branch_reason(&target).map(|reason| format!("in that version, {reason}")),
        document: target.document,
        span: target.name_span,
        part: Some(Part::Role(role)),
    };
    match outcome {
        ResolveOutcome::Found(target) => Ok(vec![with_role(*target)]),
        ResolveOutcome::Ambiguous(targets) => Ok(targets.into_iter().map(with_role).collect()),
        ResolveOutcome::NotFound(near) => Err(OldStateError::Skew(near.reason.to_string())),
    }
}

fn versioned_targets(outcome: ResolveOutcome) -> Result<Vec<VersionedTarget>, OldStateError> {
    match outcome {
        ResolveOutcome::Found(target) => Ok(vec![VersionedTarget {
            document: target.document,
            span: target.span,
            part: None,
            doubt: None,
        }]),
        ResolveOutcome::Ambiguous(_) => {
            Err(OldStateError::Skew("the selector is ambiguous in that version".to_owned()))
        }
        ResolveOutcome::NotFound(near) => Err(OldStateError::Other(LocateOutcome::NotFound(near))),
    }
}

/// Reads a content by its digest: from the store, from a current file, or from git.
pub(super) fn content(
    cx: &ResolveContext<'_>,
    digest: &Digest,
    past: Option<&Mutex<RevisionFiles>>,
    path: Option<&AbsPath>,
) -> Result<Vec<u8>, OldStateError> {
    let in_git = || {
        let path = cx.relative(path?)?;
        let bytes = past?.lock().unwrap_or_else(PoisonError::into_inner).read(&path)?;
        (Digest::of(&bytes) == *digest).then_some(bytes)
    };
    let stored = || cx.contents.and_then(|contents| contents.get(digest));
    let kept = cx.tape.query_bytes(IoKind::Contents, digest, stored);
    let bytes = kept.or_else(|| same_content(cx, digest)).or_else(in_git);
    bytes.ok_or_else(|| {
        OldStateError::Skew(format!("the content {digest} is neither in the store nor in git"))
    })
}

/// The bytes of a current file with this content, under any name.
pub(super) fn same_content(cx: &ResolveContext<'_>, digest: &Digest) -> Option<Vec<u8>> {
    let path = cx.snapshot.files().iter().find(|(_, other)| other.as_ref() == Some(digest))?.0;
    let path = cx.snapshot.absolute(path);
    cx.tape.query_bytes(IoKind::File, &("bytes", &path), || crate::workspace::files::read_bytes(&path).ok())
}

/// The file of a module, or the file that it would have.
fn module_path(cx: &ResolveContext<'_>, module: &str) -> AbsPath {
    let found = cx.roots.find(cx.files, module).into_iter().next();
    let file = found.and_then(|module| module.file().cloned());
    file.unwrap_or_else(|| cx.snapshot.root().join(&format!("{}.py", module.replace('.', "/"))))
}

/// The occurrences of a snippet in a text; only those with the context hash if there are any.
pub(super) fn snippet_spans(text: &str, spec: &AnchorSpec) -> Vec<Span> {
    let mut found = exact(text, &spec.snippet);
    if found.is_empty() {
        found = same_tokens(text, &spec.snippet);
    }
    let fits: Vec<Span> = found.iter().filter(|span| has_context(text, span, spec)).cloned().collect();
    if fits.is_empty() { found } else { fits }
}

/// The paths that a content may have had: those of the files that have it now, or else of the file that defines the same
/// names and shares the most lines.
fn likely_paths(cx: &ResolveContext<'_>, digest: &Digest, bytes: &[u8], chain: &str) -> Vec<AbsPath> {
    let files = cx.snapshot.files().iter();
    let same: Vec<AbsPath> = files
        .filter(|(_, other)| other.as_ref() == Some(digest))
        .map(|(path, _)| cx.snapshot.absolute(path))
        .collect();
    if !same.is_empty() {
        return same;
    }
    let mut paths: Vec<WorkspacePath> =
        cx.definitions().with_chain(chain).into_iter().map(|(path, _)| path).collect();
    paths.dedup();
    let old = crate::text::decode_source(bytes.to_vec()).text;
    let lines: BTreeSet<&str> = old.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let shared = |path: &AbsPath| {
        let document = cx.files.read(path).ok();
        let now: BTreeSet<&str> =
            document.iter().flat_map(|document| document.text.lines()).map(str::trim).collect();
        lines.intersection(&now).count()
    };
    let mut found: Vec<(usize, AbsPath)> = paths
        .into_iter()
        .take(MAX_COMPARED_FILES)
        .map(|path| cx.snapshot.absolute(&path))
        .map(|path| (shared(&path), path))
        .collect();
    let most = found.iter().map(|(shared, _)| *shared).max().unwrap_or_default();
    found.retain(|(shared, _)| *shared == most);
    match found.is_empty() {
        // A path that no file has, so that its definitions are searched in all files.
        true => vec![cx.snapshot.root().join("~")],
        false => found.into_iter().map(|(_, path)| path).collect(),
    }
}

/// The most files that are compared with a content to find out which of them had it.
const MAX_COMPARED_FILES: usize = 32;

/// Resolves a symbol id in an old state.
fn by_structure(
    cx: &ResolveContext<'_>,
    id: &SymbolId,
    version: &DocVersion,
    past: Option<&Mutex<RevisionFiles>>,
) -> Result<Vec<VersionedTarget>, OldStateError> {
    let name = id.names.last().map(String::as_str).unwrap_or_default();
    let mut documents: Vec<Arc<Document>> = Vec::new();
    match (version, past) {
        (DocVersion::Content(digest), _) => {
            let selector = PositionSpec::Symid(SymidSpec { id: id.clone(), doc_version: None });
            let bytes = content(cx, digest, past, likely_file(cx, &selector, None).as_ref())?;
            let paths = likely_paths(cx, digest, &bytes, &id.names.join("."));
            documents.extend(paths.into_iter().map(|path| Arc::new(Document::new(path, bytes.clone()))));
        }
        (DocVersion::Git(_), Some(past)) => {
            let past = past.lock().unwrap_or_else(PoisonError::into_inner);
            for path in past.python_files() {
                let bytes = past.read(&path).unwrap_or_default();
                if bytes.windows(name.len().max(1)).any(|window| window == name.as_bytes()) {
                    documents.push(Arc::new(Document::new(cx.snapshot.absolute(&path), bytes)));
                }
            }
        }
        (DocVersion::Git(_), None) => {}
    }
    let mut found = Vec::new();
    for document in documents {
        for entry in entries(&document.text) {
            let same = entry.kind.as_str() == id.kind
                && entry.chain == id.names.join(".")
                && entry.shape == id.shape;
            if same && entry.sketch == id.sketch {
                let start = entry.offset as usize;
                let span = start..start + entry.name().len();
                found.push(VersionedTarget {
                    document: document.clone(),
                    span,
                    part: Some(Part::Role(Role::Def)),
                    doubt: None,
                });
            }
        }
    }
    if let Some((which, count)) = id.ordinal
        && usize::try_from(count).is_ok_and(|count| count == found.len())
    {
        let at = usize::try_from(which).unwrap_or(1) - 1;
        return Ok(vec![found.swap_remove(at)]);
    }
    if found.is_empty() {
        return Err(OldStateError::Skew(format!("no definition of the version {version} has this id")));
    }
    Ok(found)
}

/// Relocates a target to the current state.
fn relocate_to_current(
    cx: &ResolveContext<'_>,
    old: &VersionedTarget,
    past: Option<&Mutex<RevisionFiles>>,
    selector: &PositionSpec,
) -> LocateOutcome {
    let then = match old.part {
        None => old.span.clone(),
        Some(wanted) => match part(&old.document, &old.span, wanted) {
            Some(span) => span,
            None => return gone(format!("the definition had no {} in that version", wanted.as_str())),
        },
    };
    let then = &old.document.text[then];
    let direct = relocate_from(cx, old, past, selector, then);
    history::by_states_between(cx, old, past, selector, then, direct)
}

/// Relocates a target of one state to the current one, by these two states alone. `then` is the text of the requested part
/// in the state of the selector.
pub(super) fn relocate_from(
    cx: &ResolveContext<'_>,
    old: &VersionedTarget,
    past: Option<&Mutex<RevisionFiles>>,
    selector: &PositionSpec,
    then: &str,
) -> LocateOutcome {
    let own = cx.relative(&old.document.path);
    let mut current = cx.files.read(&old.document.path).ok();
    let mut own_now = own.clone();
    if current.is_none()
        && let (Some(past), Some(own)) = (past, &own)
    {
        own_now = past.lock().unwrap_or_else(PoisonError::into_inner).renamed(own, cx.snapshot);
        current = own_now.as_ref().and_then(|path| cx.files.read(&cx.snapshot.absolute(path)).ok());
    }
    let name = own.as_ref().map_or_else(|| old.document.path.to_string(), ToString::to_string);
    let target = crate::relocate::OldTarget { path: &name, text: &old.document.text, span: old.span.clone() };
    let others = ChangedFiles {
        definitions: cx.definitions(),
        own: own_now.as_ref(),
        read: &|path| cx.files.read(&cx.snapshot.absolute(path)).ok(),
        before: &|path| old_content(cx, past, path),
    };
    // Git reports a rename if two files share half of their text, which is a guess unless they are identical.
    let guessed = own_now
        .as_ref()
        .filter(|now| own.as_ref() != Some(*now))
        .filter(|_| current.as_ref().is_none_or(|current| current.digest != old.document.digest));
    let to_located = |mut place: RelocationMatch| {
        if own_now != own
            && let Some(now) = &own_now
            && cx.relative(&place.document.path).as_ref() == Some(now)
        {
            if place.change != TargetChange::Renamed {
                place.change = TargetChange::Moved;
            }
            place.certified &= guessed.is_none();
            place.reason = format!("git reports that its file was renamed to {now}; {}", place.reason);
        }
        if let Some(doubt) = &old.doubt {
            place.certified = false;
            place.score = place.score.min(0.9);
            place.reason = format!("{}; {doubt}", place.reason);
        }
        located(cx, place, old.part, then, selector)
    };
    match relocate(&target, current.as_ref(), &others) {
        RelocationOutcome::Found(place) if own_now != own => {
            let digest = place.document.digest;
            let copies = cx.snapshot.files().iter().filter(|(_, other)| **other == Some(digest));
            let copies: Vec<_> = copies.map(|(path, _)| cx.snapshot.absolute(path)).collect();
            if copies.len() < 2 {
                return LocateOutcome::Found(Box::new(to_located(*place)));
            }
            // The file is gone and several files have its content: it may have moved to any of them.
            let documents =
                copies.iter().take(super::MAX_CANDIDATES).filter_map(|path| cx.files.read(path).ok());
            let places = documents
                .map(|document| {
                    let (certified, margin) = (false, 0.0);
                    to_located(RelocationMatch { document, certified, margin, ..(*place).clone() })
                })
                .collect();
            LocateOutcome::Ambiguous(Ambiguous { places, total: copies.len() })
        }
        RelocationOutcome::Found(place) => LocateOutcome::Found(Box::new(to_located(*place))),
        RelocationOutcome::Ambiguous(places) => {
            LocateOutcome::Ambiguous(places.into_iter().map(to_located).collect())
        }
        RelocationOutcome::Gone { reason, closest } => {
            let suggestions = closest.into_iter().map(|place| {
                let document = &place.document;
                let (line, col) =
                    document.lines.display(&document.text, place.span.start, Default::default());
                let path =
                    cx.relative(&document.path).map_or_else(|| document.path.to_string(), |p| p.to_string());
                format!("{}@L{line}:C{col}", crate::path::encode_portable(&path))
            });
            LocateOutcome::NotFound(NotFound {
                suggestions: suggestions.collect(),
                reason: NotFoundReason::Other { reason },
            })
        }
    }
}

/// The target of a line selector whose code is now at `span`.
fn line_target(cx: &ResolveContext<'_>, document: &Arc<Document>, span: Span) -> symbol::ResolvedTarget {
    let (number, _) = document.lines.display(&document.text, span.start, ColumnUnit::default());
    match line::resolve_line(cx.files, cx.roots, document, number) {
        ResolveOutcome::Found(target) => *target,
        ResolveOutcome::Ambiguous(_) | ResolveOutcome::NotFound(_) => {
            position::resolve_span(cx.files, cx.roots, document, span, None)
        }
    }
}

/// The old content of a file; `None` if it is unchanged.
fn old_content(
    cx: &ResolveContext<'_>,
    past: Option<&Mutex<RevisionFiles>>,
    path: &WorkspacePath,
) -> Option<OldContent> {
    let Some(past) = past else { return Some(OldContent::Unknown) };
    let Some(bytes) = past.lock().unwrap_or_else(PoisonError::into_inner).read(path) else {
        return Some(OldContent::Absent);
    };
    let now = cx.snapshot.files().get(path).copied().flatten();
    if now == Some(Digest::of(&bytes)) {
        return None;
    }
    Some(OldContent::Text(crate::text::decode_source(bytes).text.into()))
}

/// The other files of the workspace that changed since the old state.
struct ChangedFiles<'l> {
    definitions: Definitions<'l>,
    own: Option<&'l WorkspacePath>,
    read: &'l dyn Fn(&WorkspacePath) -> Option<Arc<Document>>,
    before: &'l dyn Fn(&WorkspacePath) -> Option<OldContent>,
}

impl crate::relocate::OtherFiles for ChangedFiles<'_> {
    fn files(&self, wanted: &[crate::relocate::MissingDefinition]) -> Vec<crate::relocate::OtherFile> {
        let others = self.definitions.likely_files(wanted).into_iter().filter(|path| Some(path) != self.own);
        others.filter_map(|path| other_file(&path, self.read, self.before)).collect()
    }
}

/// The match, or the requested part of the definition there. `then` is the text of that part in the old state.
fn located(
    cx: &ResolveContext<'_>,
    place: RelocationMatch,
    wanted: Option<Part>,
    then: &str,
    selector: &PositionSpec,
) -> LocatedTarget {
    let name = wanted.map(|_| place.span.clone());
    let span = wanted.and_then(|wanted| part(&place.document, &place.span, wanted));
    let has_part = span.is_some() || wanted.is_none();
    let what = wanted.map_or("text", Part::as_str);
    let span = span.unwrap_or_else(|| place.span.clone());
    // An unchanged name does not mean that the requested part is unchanged.
    let named = Part::Role(Role::Def);
    let edited = wanted.is_some_and(|wanted| wanted != named) && place.document.text[span.clone()] != *then;
    let change = match place.change {
        TargetChange::Unchanged | TargetChange::Shifted
            if edited && wanted == Some(Part::Role(Role::Sig)) =>
        {
            TargetChange::SignatureChanged
        }
        TargetChange::Unchanged | TargetChange::Shifted if edited => TargetChange::Edited,
        change => change,
    };
    let target = match selector {
        PositionSpec::Line(_) => line_target(cx, &place.document, span),
        _ => position::resolve_span(cx.files, cx.roots, &place.document, span, name),
    };
    let reason = match has_part {
        true if edited => format!("{}; its {} was edited", place.reason, what),
        true => place.reason,
        false => format!("{}; it no longer has a {}, so this is its name", place.reason, what),
    };
    let evidence = ResolutionEvidence {
        via: ResolvedVia::Since(change),
        score: if edited { place.score.min(0.99) } else { place.score },
        margin: place.margin,
        certified: place.certified && has_part && !edited,
        close: place.close,
        features: Some(place.features),
        reason,
        followed_history: false,
        trail: Vec::new(),
    };
    LocatedTarget { target, evidence }
}
