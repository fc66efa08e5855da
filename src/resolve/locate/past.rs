//! Selectors with a version: resolved in the old state, then relocated into the present one.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use super::{Answer, Evidence, Located, Several, Way, World, part, present};
use crate::digest::Digest;
use crate::path::{AbsPath, WorkspacePath};
use crate::resolve::ast::{Broken, follow};
use crate::resolve::definitions::Definitions;
use crate::resolve::index::{entries, other_file};
use crate::resolve::near::{Near, Reason};
use crate::resolve::outline::Span;
use crate::resolve::place;
use crate::resolve::relocate::anchor::{exact, same_tokens};
use crate::resolve::relocate::{Before, Happened, Place, Verdict, relocate};
use crate::resolve::symbol::{self, Outcome};
use crate::selector::{
    AnchorSpec, Construct, ContextHash, DocVersion, PositionSpec, Role, SymbolId, SymidSpec,
};
use crate::tape::Door;
use crate::workspace::files::{Document, FileKind, Files, ReadError};
use crate::workspace::history::Past;

/// An old state of the files: everything at a revision, or one file with another content.
struct OldFiles<'w> {
    root: &'w AbsPath,
    now: &'w dyn Files,
    past: Option<&'w Mutex<Past>>,
    one: Option<Arc<Document>>,
}

impl OldFiles<'_> {
    fn relative(&self, path: &AbsPath) -> Option<String> {
        path.strip_prefix(self.root).map(str::to_owned)
    }

    fn in_past<R>(&self, path: &AbsPath, ask: impl FnOnce(&Past, &str) -> R) -> Option<R> {
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
            Some(bytes) => Ok(Arc::new(Document::new(path.clone(), bytes.ok_or_else(missing)?))),
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
        match self.in_past(path, Past::is_folder) {
            Some(Some(true)) => FileKind::Folder,
            Some(Some(false)) => FileKind::File,
            Some(None) => FileKind::Missing,
            None => self.now.kind(path),
        }
    }

    fn list(&self, folder: &AbsPath) -> Vec<String> {
        self.in_past(folder, Past::list).unwrap_or_else(|| self.now.list(folder))
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
struct Old {
    document: Arc<Document>,
    span: Span,
    /// The part of the definition whose name `span` is.
    role: Role,
    /// Why the place in the old state is none that was told for certain.
    doubt: Option<&'static str>,
}

/// Why there is none.
enum Trouble {
    /// The version cannot be had.
    Skew(String),
    /// The old state has no such place.
    Answer(Answer),
}

/// Locates a selector with a version.
pub(super) fn locate(
    world: &World<'_>,
    selector: &PositionSpec,
    path: Option<&AbsPath>,
    version: &DocVersion,
) -> Answer {
    let past = match version {
        DocVersion::Git(revision) => match Past::at(world.snapshot.root(), revision.as_str(), world.tape) {
            Ok(past) => Some(Mutex::new(past)),
            Err(error) => return without(world, selector, path, &error.to_string()),
        },
        // What the other files were is known when git knows a revision with this content.
        DocVersion::Content(digest) => likely_file(world, selector, path)
            .filter(|path| world.files.read(path).ok().is_none_or(|now| now.digest != *digest))
            .and_then(|path| {
                Past::holding(world.snapshot.root(), &world.relative(&path)?, digest, world.tape)
            })
            .map(Mutex::new),
    };
    match old_targets(world, selector, path, version, past.as_ref()) {
        Ok(olds) => {
            let mut answers: Vec<Answer> =
                olds.iter().map(|old| now(world, old, past.as_ref(), selector)).collect();
            if answers.len() == 1 {
                return answers.swap_remove(0);
            }
            let (mut all, mut total) = (Vec::new(), 0);
            for answer in answers {
                match answer {
                    Answer::Found(mut located) => {
                        located.evidence.certified = false;
                        located.evidence.margin = 0.0;
                        all.push(*located);
                        total += 1;
                    }
                    Answer::Ambiguous(several) => {
                        total += several.total;
                        all.extend(several.places);
                    }
                    Answer::NotFound(_) | Answer::Skew(_) => {}
                }
            }
            match all.len() {
                0 => gone("none of the places that it meant then is there now".to_owned()),
                // Which of them was meant, nobody knows, also when the others are gone.
                _ => Answer::Ambiguous(Several { places: all, total }),
            }
        }
        Err(Trouble::Skew(reason)) => without(world, selector, path, &reason),
        Err(Trouble::Answer(answer)) => answer,
    }
}

fn gone(reason: String) -> Answer {
    Answer::NotFound(Near::because(Reason::Gone { reason }))
}

/// The file that a selector names, or that it is about by its module or its names.
fn likely_file(world: &World<'_>, selector: &PositionSpec, path: Option<&AbsPath>) -> Option<AbsPath> {
    match selector {
        PositionSpec::Cursor(_) | PositionSpec::Range(_) | PositionSpec::Anchor(_) => path.cloned(),
        PositionSpec::Symbol(spec) => Some(module_path(world, spec.qualname.module.as_str())),
        PositionSpec::Ast(spec) => {
            let name = spec.path.first()?.name()?;
            Some(if is_path(name) { world.snapshot.root().join(name) } else { module_path(world, name) })
        }
        PositionSpec::Symid(spec) => {
            let chain = spec.id.names.join(".");
            let found = world.definitions().with_chain(&chain);
            Some(world.snapshot.absolute(&found.first()?.0))
        }
    }
}

/// Whether the module of an AST path is told by its file.
fn is_path(module: &str) -> bool {
    module.ends_with(".py") || module.ends_with(".pyi")
}

/// Whether a selector says more than where something stood. What a number counts has a place and nothing else.
fn says_more_than_a_place(selector: &PositionSpec) -> bool {
    match selector {
        PositionSpec::Cursor(_) | PositionSpec::Range(_) => false,
        PositionSpec::Ast(spec) => spec.path.iter().all(|step| step.ordinal().is_none()),
        PositionSpec::Symid(spec) => spec.id.ordinal.is_none(),
        PositionSpec::Symbol(_) | PositionSpec::Anchor(_) => true,
    }
}

/// The version cannot be had: what the selector says besides has to do.
fn without(world: &World<'_>, selector: &PositionSpec, path: Option<&AbsPath>, reason: &str) -> Answer {
    if !says_more_than_a_place(selector) {
        return Answer::Skew(reason.to_owned());
    }
    match present(world, selector, path) {
        Answer::Found(mut located) => {
            let evidence = &mut located.evidence;
            evidence.certified = false;
            evidence.score = evidence.score.min(0.95);
            evidence.reason = format!("{}; by the selector alone, for {reason}", evidence.reason);
            Answer::Found(located)
        }
        Answer::NotFound(_) => Answer::Skew(reason.to_owned()),
        other => other,
    }
}

/// What a selector meant in the old state.
fn old_targets(
    world: &World<'_>,
    selector: &PositionSpec,
    path: Option<&AbsPath>,
    version: &DocVersion,
    past: Option<&Mutex<Past>>,
) -> Result<Vec<Old>, Trouble> {
    let root = world.snapshot.root();
    let state = |one: Option<Arc<Document>>| OldFiles { root, now: world.files, past, one };
    // The file with the content that is asked for, under a path that it may have had.
    let one = |path: &AbsPath| -> Result<Option<Arc<Document>>, Trouble> {
        let DocVersion::Content(digest) = version else { return Ok(None) };
        if let Ok(document) = world.files.read(path)
            && document.digest == *digest
        {
            return Ok(Some(document));
        }
        let bytes = content(world, digest, past, Some(path))?;
        Ok(Some(Arc::new(Document::new(path.clone(), bytes))))
    };
    let document = || -> Result<Arc<Document>, Trouble> {
        let path = path.ok_or_else(|| Trouble::Skew("the selector names no file".to_owned()))?;
        state(one(path)?)
            .read(path)
            .map_err(|_| Trouble::Skew(format!("the version {version} has no file {}", shown(world, path))))
    };
    let whole = |document: Arc<Document>, span: Span| Old { document, span, role: Role::Def, doubt: None };
    match selector {
        PositionSpec::Cursor(spec) => {
            let document = document()?;
            placed(place::cursor(world.files, world.roots, &document, spec))
        }
        PositionSpec::Range(spec) => {
            let document = document()?;
            placed(place::range(world.files, world.roots, &document, spec))
        }
        PositionSpec::Anchor(spec) => {
            let document = document()?;
            let spans = snippets(&document.text, spec);
            if spans.is_empty() {
                return Err(Trouble::Skew(format!("the snippet does not stand in the version {version}")));
            }
            let fits = |span: &Span| {
                let hash = ContextHash::of(&document.text, span.clone(), spec.ctx);
                spec.hash.is_none() || spec.hash == hash
            };
            let old = |span: Span| {
                let doubt = (!fits(&span)).then_some("the hash fits nowhere in that version");
                Old { doubt, ..whole(document.clone(), span) }
            };
            Ok(spans.into_iter().map(old).collect())
        }
        PositionSpec::Symbol(spec) => {
            let module = spec.qualname.module.as_str();
            let files = state(one(&module_path(world, module))?);
            let roots = (world.roots_of)(&files);
            let name_only = crate::selector::SymbolSpec { role: Role::Def, ..spec.clone() };
            let with_role = |target: symbol::Target| Old {
                document: target.document,
                span: target.name_span,
                role: spec.role,
                doubt: None,
            };
            match symbol::symbol(&files, &roots, &name_only) {
                Outcome::Found(target) => Ok(vec![with_role(*target)]),
                Outcome::Ambiguous(targets) => Ok(targets.into_iter().map(with_role).collect()),
                Outcome::NotFound(near) => Err(Trouble::Skew(near.reason.to_string())),
            }
        }
        PositionSpec::Ast(spec) => {
            let first = spec.path.first().filter(|step| step.construct == Construct::Module);
            let name = first.and_then(|step| step.name());
            let name = name.ok_or_else(|| Trouble::Skew("the first step names no module".to_owned()))?;
            let is_path = is_path(name);
            let likely = if is_path { root.join(name) } else { module_path(world, name) };
            let files = state(one(&likely)?);
            let roots = (world.roots_of)(&files);
            let found =
                if is_path { None } else { roots.find(&files, name).first().and_then(|m| m.file().cloned()) };
            let document =
                files.read(&found.unwrap_or(likely)).map_err(|error| Trouble::Skew(error.to_string()))?;
            match follow(&document.text, &spec.path[1..]) {
                Ok(found) => Ok(vec![whole(document, found.span)]),
                Err(Broken::Several(all)) => {
                    Ok(all.into_iter().map(|found| whole(document.clone(), found.span)).collect())
                }
                Err(Broken::Missing(_)) => {
                    Err(Trouble::Skew(format!("the path leads nowhere in the version {version}")))
                }
            }
        }
        PositionSpec::Symid(spec) => by_structure(world, &spec.id, version, past),
    }
}

fn shown(world: &World<'_>, path: &AbsPath) -> String {
    world.relative(path).map_or_else(|| path.to_string(), |path| path.to_string())
}

fn placed(outcome: Outcome) -> Result<Vec<Old>, Trouble> {
    match outcome {
        Outcome::Found(target) => {
            Ok(vec![Old { document: target.document, span: target.span, role: Role::Def, doubt: None }])
        }
        Outcome::Ambiguous(_) => Err(Trouble::Skew("the place is none".to_owned())),
        Outcome::NotFound(near) => Err(Trouble::Answer(Answer::NotFound(near))),
    }
}

/// A content: out of the store, of a present file, or out of git.
fn content(
    world: &World<'_>,
    digest: &Digest,
    past: Option<&Mutex<Past>>,
    path: Option<&AbsPath>,
) -> Result<Vec<u8>, Trouble> {
    let in_git = || {
        let path = world.relative(path?)?;
        let bytes = past?.lock().unwrap_or_else(PoisonError::into_inner).read(&path)?;
        (Digest::of(&bytes) == *digest).then_some(bytes)
    };
    let stored = || world.contents.and_then(|contents| contents.get(digest));
    let kept = world.tape.bytes(Door::Contents, digest, stored);
    let bytes = kept.or_else(|| same_content(world, digest)).or_else(in_git);
    bytes.ok_or_else(|| Trouble::Skew(format!("the content {digest} is neither in the store nor in git")))
}

/// A present file of any name with this content.
fn same_content(world: &World<'_>, digest: &Digest) -> Option<Vec<u8>> {
    let path = world.snapshot.files().iter().find(|(_, other)| other.as_ref() == Some(digest))?.0;
    let path = world.snapshot.absolute(path);
    world.tape.bytes(Door::File, &("bytes", &path), || crate::workspace::files::read_bytes(&path).ok())
}

/// Where a module is, or would be.
fn module_path(world: &World<'_>, module: &str) -> AbsPath {
    let found = world.roots.find(world.files, module).into_iter().next();
    let file = found.and_then(|module| module.file().cloned());
    file.unwrap_or_else(|| world.snapshot.root().join(&format!("{}.py", module.replace('.', "/"))))
}

/// The places of a snippet in a text, by its hash where several are the same.
pub(super) fn snippets(text: &str, spec: &AnchorSpec) -> Vec<Span> {
    let mut found = exact(text, &spec.snippet);
    if found.is_empty() {
        found = same_tokens(text, &spec.snippet);
    }
    if let Some(hash) = &spec.hash {
        let fits: Vec<Span> = found
            .iter()
            .filter(|span| ContextHash::of(text, (*span).clone(), spec.ctx).as_ref() == Some(hash))
            .cloned()
            .collect();
        if !fits.is_empty() {
            return fits;
        }
    }
    found
}

/// The paths that a content may have had: of the files that have it now, or else of the file that defines the same names
/// and has most of its lines.
fn homes(world: &World<'_>, digest: &Digest, bytes: &[u8], chain: &str) -> Vec<AbsPath> {
    let files = world.snapshot.files().iter();
    let same: Vec<AbsPath> = files
        .filter(|(_, other)| other.as_ref() == Some(digest))
        .map(|(path, _)| world.snapshot.absolute(path))
        .collect();
    if !same.is_empty() {
        return same;
    }
    let mut paths: Vec<WorkspacePath> =
        world.definitions().with_chain(chain).into_iter().map(|(path, _)| path).collect();
    paths.dedup();
    let old = crate::text::decode_source(bytes.to_vec()).text;
    let lines: BTreeSet<&str> = old.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let shared = |path: &AbsPath| {
        let document = world.files.read(path).ok();
        let now: BTreeSet<&str> =
            document.iter().flat_map(|document| document.text.lines()).map(str::trim).collect();
        lines.intersection(&now).count()
    };
    let mut found: Vec<(usize, AbsPath)> = paths
        .into_iter()
        .take(MAX_HOMES)
        .map(|path| world.snapshot.absolute(&path))
        .map(|path| (shared(&path), path))
        .collect();
    let most = found.iter().map(|(shared, _)| *shared).max().unwrap_or_default();
    found.retain(|(shared, _)| *shared == most);
    match found.is_empty() {
        // No file of the workspace: what it defined is looked for in all of them.
        true => vec![world.snapshot.root().join("~")],
        false => found.into_iter().map(|(_, path)| path).collect(),
    }
}

/// How many files are compared with a content to find out which of them had it.
const MAX_HOMES: usize = 32;

/// The definition of an id in an old state.
fn by_structure(
    world: &World<'_>,
    id: &SymbolId,
    version: &DocVersion,
    past: Option<&Mutex<Past>>,
) -> Result<Vec<Old>, Trouble> {
    let name = id.names.last().map(String::as_str).unwrap_or_default();
    let mut documents: Vec<Arc<Document>> = Vec::new();
    match (version, past) {
        (DocVersion::Content(digest), _) => {
            let selector = PositionSpec::Symid(SymidSpec { id: id.clone(), doc_version: None });
            let bytes = content(world, digest, past, likely_file(world, &selector, None).as_ref())?;
            let paths = homes(world, digest, &bytes, &id.names.join("."));
            documents.extend(paths.into_iter().map(|path| Arc::new(Document::new(path, bytes.clone()))));
        }
        (DocVersion::Git(_), Some(past)) => {
            let past = past.lock().unwrap_or_else(PoisonError::into_inner);
            for path in past.python_files() {
                let bytes = past.read(&path).unwrap_or_default();
                if bytes.windows(name.len().max(1)).any(|window| window == name.as_bytes()) {
                    documents.push(Arc::new(Document::new(world.snapshot.absolute(&path), bytes)));
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
                found.push(Old { document: document.clone(), span, role: Role::Def, doubt: None });
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
        return Err(Trouble::Skew(format!("no definition of the version {version} has this id")));
    }
    Ok(found)
}

/// Relocates a target into the present state.
fn now(world: &World<'_>, old: &Old, past: Option<&Mutex<Past>>, selector: &PositionSpec) -> Answer {
    let own = world.relative(&old.document.path);
    let mut current = world.files.read(&old.document.path).ok();
    let mut own_now = own.clone();
    if current.is_none()
        && let (Some(past), Some(own)) = (past, &own)
    {
        own_now = past.lock().unwrap_or_else(PoisonError::into_inner).renamed(own, world.snapshot);
        current = own_now.as_ref().and_then(|path| world.files.read(&world.snapshot.absolute(path)).ok());
    }
    let name = own.as_ref().map_or_else(|| old.document.path.to_string(), ToString::to_string);
    let target =
        crate::resolve::relocate::Target { path: &name, text: &old.document.text, span: old.span.clone() };
    let others = Elsewhere {
        definitions: world.definitions(),
        own: own_now.as_ref(),
        read: &|path| world.files.read(&world.snapshot.absolute(path)).ok(),
        before: &|path| before(world, past, path),
    };
    let Some(then) = part(&old.document, &old.span, old.role) else {
        return gone(format!("it had no {} in that version", old.role.as_str()));
    };
    let then = &old.document.text[then];
    // Git calls two files one that have half of their text in common: a guess, unless it is all of it.
    let guessed = own_now
        .as_ref()
        .filter(|now| own.as_ref() != Some(*now))
        .filter(|_| current.as_ref().is_none_or(|current| current.digest != old.document.digest));
    let told = |mut place: Place| {
        if own_now != own
            && let Some(now) = &own_now
            && world.relative(&place.document.path).as_ref() == Some(now)
        {
            if place.happened != Happened::Renamed {
                place.happened = Happened::Moved;
            }
            place.certified &= guessed.is_none();
            place.reason = format!("its file is {now} now, as git sees it; {}", place.reason);
        }
        if let Some(doubt) = old.doubt {
            place.certified = false;
            place.score = place.score.min(0.9);
            place.reason = format!("{}; {doubt}", place.reason);
        }
        located(world, place, old.role, then, selector)
    };
    match relocate(&target, current.as_ref(), &others) {
        Verdict::At(place) if own_now != own => {
            let digest = place.document.digest;
            let copies = world.snapshot.files().iter().filter(|(_, other)| **other == Some(digest));
            let copies: Vec<_> = copies.map(|(path, _)| world.snapshot.absolute(path)).collect();
            if copies.len() < 2 {
                return Answer::Found(Box::new(told(*place)));
            }
            // The file is gone and there are several with its content: it went to any of them.
            let documents = copies.iter().take(super::TOP).filter_map(|path| world.files.read(path).ok());
            let places = documents
                .map(|document| {
                    let (certified, margin) = (false, 0.0);
                    told(Place { document, certified, margin, ..(*place).clone() })
                })
                .collect();
            Answer::Ambiguous(Several { places, total: copies.len() })
        }
        Verdict::At(place) => Answer::Found(Box::new(told(*place))),
        Verdict::Ambiguous(places) => Answer::Ambiguous(places.into_iter().map(told).collect()),
        Verdict::Gone { reason, near } => {
            let suggestions = near.into_iter().map(|place| {
                let document = &place.document;
                let (line, col) =
                    document.lines.display(&document.text, place.span.start, Default::default());
                let path = world
                    .relative(&document.path)
                    .map_or_else(|| document.path.to_string(), |p| p.to_string());
                format!("{}@L{line}:C{col}", crate::path::encode_portable(&path))
            });
            Answer::NotFound(Near { suggestions: suggestions.collect(), reason: Reason::Gone { reason } })
        }
    }
}

/// What a file was; `None` when it is the same now.
fn before(world: &World<'_>, past: Option<&Mutex<Past>>, path: &WorkspacePath) -> Option<Before> {
    let Some(past) = past else { return Some(Before::Unknown) };
    let Some(bytes) = past.lock().unwrap_or_else(PoisonError::into_inner).read(path) else {
        return Some(Before::Absent);
    };
    let now = world.snapshot.files().get(path).copied().flatten();
    if now == Some(Digest::of(&bytes)) {
        return None;
    }
    Some(Before::Text(crate::text::decode_source(bytes).text.into()))
}

/// The other files of the workspace as relocation asks for them.
struct Elsewhere<'l> {
    definitions: Definitions<'l>,
    own: Option<&'l WorkspacePath>,
    read: &'l dyn Fn(&WorkspacePath) -> Option<Arc<Document>>,
    before: &'l dyn Fn(&WorkspacePath) -> Option<Before>,
}

impl crate::resolve::relocate::Elsewhere for Elsewhere<'_> {
    fn files(&self, wanted: &[crate::resolve::relocate::Wanted]) -> Vec<crate::resolve::relocate::OtherFile> {
        let others = self.definitions.likely(wanted).into_iter().filter(|path| Some(path) != self.own);
        others.filter_map(|path| other_file(&path, self.read, self.before)).collect()
    }
}

/// The place, or that part of the definition there that the selector asks for. `then` is what the part said in the old state.
fn located(world: &World<'_>, place: Place, role: Role, then: &str, selector: &PositionSpec) -> Located {
    let is_symbol = matches!(selector, PositionSpec::Symbol(_) | PositionSpec::Symid(_));
    let name = Some(place.span.clone()).filter(|_| is_symbol);
    let span = if is_symbol { part(&place.document, &place.span, role) } else { None };
    let has_part = span.is_some() || !is_symbol;
    let span = span.unwrap_or_else(|| place.span.clone());
    // That the name stands there still says nothing of what belongs to it.
    let edited = role != Role::Def && place.document.text[span.clone()] != *then;
    let happened = match place.happened {
        Happened::Unchanged | Happened::Shifted if edited && role == Role::Sig => Happened::SignatureChanged,
        Happened::Unchanged | Happened::Shifted if edited => Happened::Edited,
        happened => happened,
    };
    let target = place::stretch(world.files, world.roots, &place.document, span, name);
    let reason = match has_part {
        true if edited => format!("{}; its {} was edited", place.reason, role.as_str()),
        true => place.reason,
        false => format!("{}; it has no {} any more, this is its name", place.reason, role.as_str()),
    };
    let evidence = Evidence {
        way: Way::Since(happened),
        score: if edited { place.score.min(0.99) } else { place.score },
        margin: place.margin,
        certified: place.certified && has_part && !edited,
        features: Some(place.features),
        reason,
    };
    Located { target, evidence }
}
