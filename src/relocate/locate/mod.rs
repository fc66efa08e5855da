//! Locates selectors of every kind, with and without a version, and reports the evidence and its certainty.
//!
//! A selector with a version whose content is available is resolved in the old state ([`past`]), and its target is
//! relocated. Without a version the selector itself is the only evidence: a name ([`named`]), an AST path, a snippet
//! ([`snippet`]), a structure. A line and a column are no evidence; they are taken as they are.

mod history;
mod last_seen;
mod named;
mod past;
mod plain_name;
mod snippet;

use std::sync::Arc;

use super::definitions::Definitions;
use super::lazy_index::LazyIndex;
use super::score::{MARGIN, THRESHOLD};
use super::trail::TrailStep;
use super::{MatchFeatures, TargetChange};
use crate::path::{AbsPath, is_python};
use crate::python::ast::{AstPathError, follow};
use crate::python::modules::ImportRoots;
use crate::python::not_found::{NotFound, NotFoundReason};
use crate::python::outline::{DefinitionKind, Outline, Span};
use crate::python::symbol::{self, ResolveOutcome, ResolvedTarget};
use crate::python::{line, position};
use crate::selector::{AstSpec, Construct, ModuleName, PositionSpec, Role};
use crate::tape::{IoKind, Tape};
use crate::text::ColumnUnit;
use crate::workspace::content_store::ContentStore;
use crate::workspace::disk_cache::DiskCache;
use crate::workspace::files::{Document, Files, ReadError, canonical};
use crate::workspace::snapshot::Snapshot;
use crate::workspace::transaction::Transactions;

/// The most candidates of an ambiguous outcome.
pub const MAX_CANDIDATES: usize = 5;

/// The highest score of a doubtful match: below the threshold of an accepted one (τ).
const DOUBTFUL_SCORE: f64 = 0.74;

/// The least product of the scores of a target that was followed through several states.
const MIN_TRAIL_CONFIDENCE: f64 = 0.5;

/// Everything that a selector is resolved against.
pub struct ResolveContext<'w> {
    /// The current files.
    pub files: &'w dyn Files,
    /// The import roots.
    pub roots: &'w ImportRoots,
    /// Computes the import roots of another state of the files.
    pub roots_of: &'w (dyn Fn(&dyn Files) -> ImportRoots + Sync),
    /// The workspace's files.
    pub snapshot: &'w Snapshot,
    /// The workspace's definitions, as far as they were needed.
    pub index: &'w LazyIndex,
    /// The contents of earlier bundles.
    pub contents: Option<&'w ContentStore>,
    /// The transactions of the workspace.
    pub transactions: Option<&'w Transactions>,
    /// The cached walks through the history.
    pub trails: Option<&'w DiskCache>,
    /// What cached walks are kept apart by.
    pub cache_scope: &'w str,
    /// The most threads that read files.
    pub threads: usize,
    /// Records or replays the I/O.
    pub tape: &'w Tape,
}

impl ResolveContext<'_> {
    /// The workspace's definitions.
    #[must_use]
    pub const fn definitions(&self) -> Definitions<'_> {
        Definitions { index: self.index, snapshot: self.snapshot, threads: self.threads, tape: self.tape }
    }

    /// The path of a file relative to the workspace.
    fn relative(&self, path: &AbsPath) -> Option<crate::path::WorkspacePath> {
        path.strip_prefix(self.snapshot.root()).and_then(crate::path::WorkspacePath::new)
    }

    /// The file of the workspace to which a path of the workspace leads through its symbolic links; `None` without any. For the
    /// link, a server returns only the uses in it.
    fn through_link(&self, path: &AbsPath) -> Option<AbsPath> {
        let inside = self.relative(path)?;
        let live = || {
            let ends = inside.as_str().match_indices('/').map(|(end, _)| end);
            let mut parts = ends.chain([inside.as_str().len()]).map(|end| &inside.as_str()[..end]);
            parts.any(|part| self.snapshot.is_link(part)).then(|| self.relative(&canonical(path)))?
        };
        let real = self.tape.query_rare(IoKind::File, &("real path", path), live)?;
        Some(self.snapshot.absolute(&real)).filter(|real| real != path)
    }

    /// The file itself where a path leads to a file of the workspace through symbolic links.
    fn real(&self, path: &AbsPath) -> AbsPath {
        Some(self.files.canonical(path))
            .filter(|real| self.relative(real).is_some())
            .unwrap_or_else(|| path.clone())
    }
}

/// How a target was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResolvedVia {
    /// By the coordinates in the selector.
    Coordinates,
    /// By the name.
    Name,
    /// By the AST path.
    Path,
    /// By the snippet.
    Snippet,
    /// By the structure in a symbol id.
    Structure,
    /// By relocation: how the target changed since the selector was made.
    Since(TargetChange),
}

/// The evidence for a target.
#[derive(Debug, Clone)]
pub struct ResolutionEvidence {
    /// How the target was found.
    pub via: ResolvedVia,
    /// From 0 to 1.
    pub score: f64,
    /// The distance to the score of the next candidate.
    pub margin: f64,
    /// Whether the target follows without a guess.
    pub certified: bool,
    /// Whether no other definition can have taken its place between the two states; see [`super::RelocationMatch::close`].
    pub close: bool,
    /// The components of the score, if the target was scored.
    pub features: Option<MatchFeatures>,
    /// The evidence in one line.
    pub reason: String,
    /// Whether the target was followed through the commits between the two states.
    pub followed_history: bool,
    /// The commits that decided.
    pub trail: Vec<TrailStep>,
}

impl ResolutionEvidence {
    /// ResolutionEvidence that needs no score.
    #[must_use]
    pub fn certain(via: ResolvedVia, reason: &str) -> Self {
        Self {
            via,
            score: 1.0,
            margin: 1.0,
            certified: true,
            close: true,
            features: None,
            reason: reason.to_owned(),
            followed_history: false,
            trail: Vec::new(),
        }
    }

    /// Lowers the evidence below the threshold, because another target is as likely.
    fn with_doubt(mut self, reason: impl Into<String>) -> Self {
        self.certified = false;
        self.score = self.score.min(DOUBTFUL_SCORE);
        self.reason = reason.into();
        self
    }

    fn scored(via: ResolvedVia, features: MatchFeatures, reason: impl Into<String>) -> Self {
        let score = features.score().min(0.99);
        Self {
            via,
            score,
            margin: 1.0,
            certified: false,
            close: false,
            features: Some(features),
            reason: reason.into(),
            followed_history: false,
            trail: Vec::new(),
        }
    }
}

/// A target with its evidence.
#[derive(Debug, Clone)]
pub struct LocatedTarget {
    /// The target.
    pub target: ResolvedTarget,
    /// Its evidence.
    pub evidence: ResolutionEvidence,
}

/// The targets that an ambiguous selector could mean.
#[derive(Debug, Clone)]
pub struct Ambiguous {
    /// The ones that are reported, best first.
    pub places: Vec<LocatedTarget>,
    /// The number of all of them.
    pub total: usize,
}

impl FromIterator<LocatedTarget> for Ambiguous {
    fn from_iter<I: IntoIterator<Item = LocatedTarget>>(places: I) -> Self {
        Vec::from_iter(places).into()
    }
}

impl From<Vec<LocatedTarget>> for Ambiguous {
    fn from(places: Vec<LocatedTarget>) -> Self {
        let total = places.len();
        Self { places, total }
    }
}

/// The outcome of locating a selector.
#[derive(Debug, Clone)]
pub enum LocateOutcome {
    /// One target.
    Found(Box<LocatedTarget>),
    /// One of these targets.
    Ambiguous(Ambiguous),
    /// No target: the reason and suggestions.
    NotFound(NotFound),
    /// The version is not available, and the selector has no other evidence.
    Skew(String),
}

/// Locates a selector. `path` is the file that the selector names, if any.
#[must_use]
pub fn locate(cx: &ResolveContext<'_>, selector: &PositionSpec, path: Option<&AbsPath>) -> LocateOutcome {
    let answer = match selector.doc_version() {
        Some(version) => past::locate(cx, selector, path, version),
        None => {
            let path = path.map(|path| cx.real(path));
            let now = locate_current(cx, selector, path.as_ref());
            last_seen::by_last_commit(cx, selector, path.as_ref(), now)
        }
    };
    match in_real_files(cx, answer) {
        // A single target below the threshold is reported as ambiguous: the caller has to confirm it. Where the history was
        // followed, each step was accepted by that threshold, and the score is a product.
        LocateOutcome::Found(located)
            if !located.evidence.certified
                && located.evidence.score
                    < if located.evidence.followed_history { MIN_TRAIL_CONFIDENCE } else { THRESHOLD } =>
        {
            LocateOutcome::Ambiguous(vec![*located].into())
        }
        answer => answer,
    }
}

/// The same targets in the files themselves, where symbolic links led to them.
fn in_real_files(cx: &ResolveContext<'_>, answer: LocateOutcome) -> LocateOutcome {
    let in_file = |mut located: LocatedTarget| {
        let target = &mut located.target;
        if let Some(path) = cx.through_link(&target.document.path)
            && let Ok(document) = cx.files.read(&path)
        {
            let module = cx.roots.name_of(&path).and_then(|name| ModuleName::new(&name));
            if let (Some(name), Some(module)) = (&mut target.qualname, module) {
                name.module = module;
            }
            target.document = document;
        }
        located
    };
    match answer {
        LocateOutcome::Found(located) => LocateOutcome::Found(Box::new(in_file(*located))),
        LocateOutcome::Ambiguous(several) => {
            let places = several.places.into_iter().map(in_file).collect();
            LocateOutcome::Ambiguous(Ambiguous { places, ..several })
        }
        answer => answer,
    }
}

/// Locates a selector in the current state, by the selector alone.
fn locate_current(cx: &ResolveContext<'_>, selector: &PositionSpec, path: Option<&AbsPath>) -> LocateOutcome {
    let (files, roots) = (cx.files, cx.roots);
    let document = |path: Option<&AbsPath>| -> Result<Arc<Document>, LocateOutcome> {
        let missing = || {
            LocateOutcome::NotFound(NotFound::new(NotFoundReason::Other {
                reason: "the selector names no file".to_owned(),
            }))
        };
        files.read(path.ok_or_else(missing)?).map_err(unreadable)
    };
    let outcome = match selector {
        PositionSpec::Cursor(spec) => match document(path) {
            Ok(document) => position::resolve_cursor(files, roots, &document, spec),
            Err(answer) => return answer,
        },
        PositionSpec::Range(spec) => match document(path) {
            Ok(document) => position::resolve_range(files, roots, &document, spec),
            Err(answer) => return answer,
        },
        PositionSpec::Line(spec) => match document(path) {
            Ok(document) => line::resolve_line(files, roots, &document, spec.line),
            Err(answer) => return answer,
        },
        PositionSpec::Name(spec) => plain_name::by_name(cx, spec, path),
        PositionSpec::Symbol(spec) => match symbol::resolve_symbol(files, roots, spec) {
            ResolveOutcome::NotFound(near) => return named::in_other_modules(cx, spec, near),
            found => found,
        },
        PositionSpec::Ast(spec) => return ast(cx, spec),
        PositionSpec::Anchor(spec) => return snippet::anchor(cx, spec, path),
        PositionSpec::Symid(spec) => return named::by_structure(cx, &spec.id),
    };
    let via = if matches!(selector, PositionSpec::Symbol(_) | PositionSpec::Name(_)) {
        ResolvedVia::Name
    } else {
        ResolvedVia::Coordinates
    };
    let located =
        |target| LocatedTarget { target, evidence: ResolutionEvidence::certain(via, "as the selector says") };
    match outcome {
        ResolveOutcome::Found(target) => {
            let mut located = located(*target);
            let doubt =
                || reassigned_reason(&located.target).or_else(|| other_branch_reason(&located.target));
            if via == ResolvedVia::Name
                && let Some(doubt) = doubt()
            {
                located.evidence.certified = false;
                located.evidence.score = 0.9;
                located.evidence.reason = doubt;
            }
            LocateOutcome::Found(Box::new(located))
        }
        ResolveOutcome::Ambiguous(targets) => {
            let all: Vec<LocatedTarget> =
                targets.into_iter().map(|target| one_of_several(target, via)).collect();
            LocateOutcome::Ambiguous(all.into())
        }
        ResolveOutcome::NotFound(near) => LocateOutcome::NotFound(near),
    }
}

/// Why the first of several assignments to a variable may not be the intended one. Servers treat them as one symbol, so the
/// first is accepted with a reason.
fn reassigned_reason(target: &ResolvedTarget) -> Option<String> {
    let is_variable = matches!(target.kind, Some(DefinitionKind::Variable | DefinitionKind::Field));
    let count = target.declarations.len() + 1;
    (is_variable && count > 1).then(|| format!("it is assigned in {count} places, and this is the first"))
}

/// Why a definition under `if TYPE_CHECKING` may not be the intended one: another branch, which runs, defines its name, or that of
/// a class or function around it, too.
fn other_branch_reason(target: &ResolvedTarget) -> Option<String> {
    let document = &target.document;
    let outline = Outline::parse(&document.text);
    let unreachable: Vec<usize> = (0..outline.definitions.len())
        .filter(|index| outline.is_unreachable(outline.definitions[*index].branch))
        .collect();
    if unreachable.is_empty() {
        return None;
    }
    let named = outline.definitions.iter().position(|it| it.name_span == target.name_span);
    // A parameter is in its function.
    let own = named.or_else(|| outline.enclosing(target.name_span.start))?;
    let around = std::iter::successors(Some(own), |index| outline.definitions[*index].parent);
    let (of, other) = around.into_iter().find_map(|index| {
        let names = outline.names(index);
        let is_other = |other: &&usize| **other != index && outline.names(**other) == names;
        Some((index, *unreachable.iter().find(is_other)?))
    })?;
    let offset = outline.definitions[other].name_span.start;
    let (line, _) = document.lines.display(&document.text, offset, ColumnUnit::default());
    let one = if named == Some(of) { "one" } else { &outline.definitions[of].name };
    Some(format!("type checkers see this definition, and line {line} defines the {one} that runs"))
}

/// One of several definitions that match a selector equally well.
fn one_of_several(target: ResolvedTarget, via: ResolvedVia) -> LocatedTarget {
    let reason = match target.conditions.as_slice() {
        [] => "one of several definitions of the name".to_owned(),
        conditions => format!("defined under `{}`", conditions.join("`, `")),
    };
    let evidence = ResolutionEvidence {
        score: 1.0,
        margin: 0.0,
        certified: false,
        ..ResolutionEvidence::certain(via, &reason)
    };
    LocatedTarget { target, evidence }
}

/// The names on the line of a target without a name of its own, each as a candidate.
#[must_use]
pub fn names_on_line(cx: &ResolveContext<'_>, target: &ResolvedTarget) -> Ambiguous {
    let document = &target.document;
    let (number, _) = document.lines.display(&document.text, target.span.start, ColumnUnit::default());
    let candidate = |name: Span| {
        let reason = format!("`{}`, one of several names on the line", &document.text[name.clone()]);
        let target = position::resolve_span(cx.files, cx.roots, document, name.clone(), Some(name));
        let mut evidence = ResolutionEvidence::certain(ResolvedVia::Coordinates, "");
        (evidence.certified, evidence.margin, evidence.reason) = (false, 0.0, reason);
        LocatedTarget { target, evidence }
    };
    line::names_on(document, number).into_iter().map(candidate).collect()
}

fn unreadable(error: ReadError) -> LocateOutcome {
    LocateOutcome::NotFound(NotFound::new(NotFoundReason::Unreadable(error)))
}

/// Accepts the best candidate if its score and its margin are sufficient.
fn decide(mut candidates: Vec<LocatedTarget>, otherwise: impl FnOnce() -> NotFound) -> LocateOutcome {
    candidates.sort_by(|a, b| {
        let at = |located: &LocatedTarget| (located.target.document.path.clone(), located.target.span.start);
        b.evidence.score.total_cmp(&a.evidence.score).then_with(|| at(a).cmp(&at(b)))
    });
    candidates
        .dedup_by(|a, b| a.target.document.path == b.target.document.path && a.target.span == b.target.span);
    let Some(first) = candidates.first() else { return LocateOutcome::NotFound(otherwise()) };
    let margin = candidates.get(1).map_or(1.0, |next| first.evidence.score - next.evidence.score);
    if first.evidence.score < THRESHOLD - MARGIN {
        return LocateOutcome::NotFound(otherwise());
    }
    if first.evidence.score < THRESHOLD || margin < MARGIN {
        candidates.retain(|located| located.evidence.score >= THRESHOLD - 4.0 * MARGIN);
        let total = candidates.len();
        candidates.truncate(MAX_CANDIDATES);
        return LocateOutcome::Ambiguous(Ambiguous { places: candidates, total });
    }
    let mut best = candidates.swap_remove(0);
    best.evidence.margin = margin;
    LocateOutcome::Found(Box::new(best))
}

/// Locates an AST path by its steps, or else by the names in them.
fn ast(cx: &ResolveContext<'_>, spec: &AstSpec) -> LocateOutcome {
    let gone = |reason: String| LocateOutcome::NotFound(NotFound::new(NotFoundReason::Other { reason }));
    let Some(module) = spec.path.first().filter(|step| step.construct == Construct::Module) else {
        return gone("an AST path has to start with [module=<name>]".to_owned());
    };
    let Some(name) = module.name() else {
        return gone("the first step has no module name: expected [module=<name>]".to_owned());
    };
    let Some(document) = module_document(cx, name) else {
        return named::moved_path(cx, spec, format!("module {name} was not found"));
    };
    match follow(&document.text, &spec.path[1..]) {
        Ok(found) => {
            let target =
                position::resolve_span(cx.files, cx.roots, &document, found.span, Some(found.name_span));
            let mut evidence =
                ResolutionEvidence::certain(ResolvedVia::Path, "every step leads to one construct");
            // An ordinal among constructs is a position, like a line number, but agents store it for longer than a line number.
            if let Some(step) = spec.counted_step() {
                evidence = evidence.with_doubt(format!(
                    "`{step}` counts the constructs of the current text; add `v=` to count those of a version"
                ));
                evidence.margin = 0.0;
            }
            LocateOutcome::Found(Box::new(LocatedTarget { target, evidence }))
        }
        Err(AstPathError::Ambiguous(all)) => {
            let targets = all.into_iter().map(|found| {
                position::resolve_span(cx.files, cx.roots, &document, found.span, Some(found.name_span))
            });
            let several = targets.map(|target| LocatedTarget {
                target,
                evidence: ResolutionEvidence {
                    margin: 0.0,
                    certified: false,
                    ..ResolutionEvidence::certain(
                        ResolvedVia::Path,
                        "the step matches several constructs and has no ordinal",
                    )
                },
            });
            LocateOutcome::Ambiguous(several.collect::<Vec<_>>().into())
        }
        Err(AstPathError::Missing(step)) => {
            let missing = spec.path.get(step + 1).map(ToString::to_string).unwrap_or_default();
            named::moved_path(cx, spec, format!("the step before {missing} contains no such construct"))
        }
    }
}

/// The file of a module: by its dotted name, or by its path.
fn module_document(cx: &ResolveContext<'_>, name: &str) -> Option<Arc<Document>> {
    if is_python(name) {
        return cx.files.read(&cx.snapshot.root().join(name)).ok();
    }
    let modules = cx.roots.find(cx.files, name);
    cx.files.read(modules.first()?.file()?).ok()
}

/// The part of a definition that a target is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// The name, the signature, the body or the docstring.
    Role(Role),
    /// All of it, without decorators.
    Whole,
}

impl Part {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Role(role) => role.as_str(),
            Self::Whole => "text",
        }
    }
}

/// A part of the definition whose name is at `name_span`.
fn part(document: &Document, name_span: &Span, part: Part) -> Option<Span> {
    if part == Part::Role(Role::Def) {
        return Some(name_span.clone());
    }
    let outline = Outline::parse(&document.text);
    let definition = outline.definitions.iter().find(|definition| definition.name_span == *name_span)?;
    match part {
        Part::Whole => Some(definition.span.clone()),
        Part::Role(Role::Def) => Some(definition.name_span.clone()),
        Part::Role(Role::Sig) => definition.signature.clone(),
        Part::Role(Role::Body) => definition.body.clone(),
        Part::Role(Role::Doc) => definition.doc.clone(),
    }
}
