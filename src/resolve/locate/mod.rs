//! Every kind of selector, with and without a version: where it is, by what knowledge, and how sure that is.
//!
//! With a version whose content can be had the selector is resolved in the old state ([`past`]) and its target is
//! relocated. Without one, what the selector itself says is the only evidence: a name ([`named`]), a path, a snippet
//! ([`snippet`]), a structure. A line and a column are no evidence at all; they are taken as they are.

mod named;
mod past;
mod snippet;

use std::sync::{Arc, OnceLock};

use super::ast::{Broken, follow};
use super::definitions::Definitions;
use super::index::Index;
use super::modules::ImportRoots;
use super::near::{Near, Reason};
use super::outline::{DefinitionKind, Outline, Span};
use super::place;
use super::relocate::score::{MARGIN, THRESHOLD};
use super::relocate::{Features, Happened};
use super::symbol::{self, Outcome, Target};
use crate::path::AbsPath;
use crate::selector::{AstSpec, Construct, PositionSpec, Role};
use crate::tape::Tape;
use crate::workspace::contents::Contents;
use crate::workspace::files::{Document, Files, ReadError};
use crate::workspace::snapshot::Snapshot;

/// How many candidates are told.
pub const TOP: usize = 5;

/// The most that what may as well be another place scores: less than an answer has to (τ).
const DOUBTFUL: f64 = 0.74;

/// Everything that a selector is resolved in.
pub struct World<'w> {
    /// The present files.
    pub files: &'w dyn Files,
    /// The import roots.
    pub roots: &'w ImportRoots,
    /// Makes the import roots of another state.
    pub roots_of: &'w (dyn Fn(&dyn Files) -> ImportRoots + Sync),
    /// The workspace's files.
    pub snapshot: &'w Snapshot,
    /// The workspace's definitions, made when they are asked for.
    pub index: &'w OnceLock<Index>,
    /// The contents of earlier bundles.
    pub contents: Option<&'w Contents>,
    /// How many threads may read.
    pub threads: usize,
    /// What the questions to all of this pass through.
    pub tape: &'w Tape,
}

impl World<'_> {
    /// The workspace's definitions.
    #[must_use]
    pub const fn definitions(&self) -> Definitions<'_> {
        Definitions { index: self.index, snapshot: self.snapshot, threads: self.threads, tape: self.tape }
    }

    /// The path of a file relative to the workspace.
    fn relative(&self, path: &AbsPath) -> Option<crate::path::WorkspacePath> {
        path.strip_prefix(self.snapshot.root()).and_then(crate::path::WorkspacePath::new)
    }
}

/// By what knowledge a place was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// The coordinates that the selector gives.
    Coordinates,
    /// The name.
    Name,
    /// The AST path.
    Path,
    /// The snippet.
    Snippet,
    /// The structure of a symbol id.
    Structure,
    /// What happened to it since.
    Since(Happened),
}

/// What speaks for a place.
#[derive(Debug, Clone)]
pub struct Evidence {
    /// By what knowledge.
    pub way: Way,
    /// From 0 to 1.
    pub score: f64,
    /// How much better it is than the next candidate.
    pub margin: f64,
    /// Whether it follows without a guess.
    pub certified: bool,
    /// What the score is made of, where something was weighed.
    pub features: Option<Features>,
    /// In a line.
    pub reason: String,
}

impl Evidence {
    /// Nothing had to be weighed.
    #[must_use]
    pub fn certain(way: Way, reason: &str) -> Self {
        Self { way, score: 1.0, margin: 1.0, certified: true, features: None, reason: reason.to_owned() }
    }

    /// A place that is as likely another one: too little for an answer.
    fn doubted(mut self, reason: impl Into<String>) -> Self {
        self.certified = false;
        self.score = self.score.min(DOUBTFUL);
        self.reason = reason.into();
        self
    }

    fn weighed(way: Way, features: Features, reason: impl Into<String>) -> Self {
        let score = features.score().min(0.99);
        Self { way, score, margin: 1.0, certified: false, features: Some(features), reason: reason.into() }
    }
}

/// A place and what speaks for it.
#[derive(Debug, Clone)]
pub struct Located {
    /// The place.
    pub target: Target,
    /// What speaks for it.
    pub evidence: Evidence,
}

/// Places that a selector could mean.
#[derive(Debug, Clone)]
pub struct Several {
    /// The best of them, best first; those that are told.
    pub places: Vec<Located>,
    /// How many there are.
    pub total: usize,
}

impl FromIterator<Located> for Several {
    fn from_iter<I: IntoIterator<Item = Located>>(places: I) -> Self {
        Vec::from_iter(places).into()
    }
}

impl From<Vec<Located>> for Several {
    fn from(places: Vec<Located>) -> Self {
        let total = places.len();
        Self { places, total }
    }
}

/// Where a selector is.
#[derive(Debug, Clone)]
pub enum Answer {
    /// There.
    Found(Box<Located>),
    /// At one of these.
    Ambiguous(Several),
    /// Nowhere: why, and what may have been meant.
    NotFound(Near),
    /// The version cannot be had, and nothing else speaks for a place.
    Skew(String),
}

/// Locates a selector. `path` is the file that it names, if it names one.
#[must_use]
pub fn locate(world: &World<'_>, selector: &PositionSpec, path: Option<&AbsPath>) -> Answer {
    let answer = match selector.doc_version() {
        Some(version) => past::locate(world, selector, path, version),
        None => present(world, selector, path),
    };
    match answer {
        // One place is too few to choose from, and still the caller has to.
        Answer::Found(located) if !located.evidence.certified && located.evidence.score < THRESHOLD => {
            Answer::Ambiguous(vec![*located].into())
        }
        answer => answer,
    }
}

/// Locates a selector by what it says itself.
fn present(world: &World<'_>, selector: &PositionSpec, path: Option<&AbsPath>) -> Answer {
    let (files, roots) = (world.files, world.roots);
    let document = |path: Option<&AbsPath>| -> Result<Arc<Document>, Answer> {
        let missing =
            || Answer::NotFound(Near::because(Reason::Gone { reason: "no file is named".to_owned() }));
        files.read(path.ok_or_else(missing)?).map_err(unreadable)
    };
    let outcome = match selector {
        PositionSpec::Cursor(spec) => match document(path) {
            Ok(document) => place::cursor(files, roots, &document, spec),
            Err(answer) => return answer,
        },
        PositionSpec::Range(spec) => match document(path) {
            Ok(document) => place::range(files, roots, &document, spec),
            Err(answer) => return answer,
        },
        PositionSpec::Symbol(spec) => match symbol::symbol(files, roots, spec) {
            Outcome::NotFound(near) => return named::elsewhere(world, spec, near),
            found => found,
        },
        PositionSpec::Ast(spec) => return ast(world, spec),
        PositionSpec::Anchor(spec) => return snippet::anchor(world, spec, path),
        PositionSpec::Symid(spec) => return named::structure(world, &spec.id),
    };
    let way = if matches!(selector, PositionSpec::Symbol(_)) { Way::Name } else { Way::Coordinates };
    let located = |target| Located { target, evidence: Evidence::certain(way, "as the selector says") };
    match outcome {
        Outcome::Found(target) => {
            let mut located = located(*target);
            if let Some(doubt) = rebound(&located.target).filter(|_| way == Way::Name) {
                located.evidence.certified = false;
                located.evidence.score = 0.9;
                located.evidence.reason = doubt;
            }
            Answer::Found(Box::new(located))
        }
        Outcome::Ambiguous(targets) => {
            let all: Vec<Located> = targets.into_iter().map(|target| several(target, way)).collect();
            Answer::Ambiguous(all.into())
        }
        Outcome::NotFound(near) => Answer::NotFound(near),
    }
}

/// Why the first of several assignments to a variable may not be the one that is meant. They are one symbol to every server,
/// so that it is an answer.
fn rebound(target: &Target) -> Option<String> {
    let is_variable = matches!(target.kind, Some(DefinitionKind::Variable | DefinitionKind::Field));
    let count = target.declarations.len() + 1;
    (is_variable && count > 1).then(|| format!("it is assigned in {count} places, and this is the first"))
}

/// One of several definitions that the words of a selector fit equally well.
fn several(target: Target, way: Way) -> Located {
    let reason = match target.conditions.as_slice() {
        [] => "one of several definitions of the name".to_owned(),
        conditions => format!("defined under `{}`", conditions.join("`, `")),
    };
    let evidence = Evidence { way, score: 1.0, margin: 0.0, certified: false, features: None, reason };
    Located { target, evidence }
}

fn unreadable(error: ReadError) -> Answer {
    Answer::NotFound(Near::because(Reason::Unreadable(error)))
}

/// The best of some candidates, if it is good enough and far enough from the next.
fn decide(mut candidates: Vec<Located>, otherwise: impl FnOnce() -> Near) -> Answer {
    candidates.sort_by(|a, b| {
        let at = |located: &Located| (located.target.document.path.clone(), located.target.span.start);
        b.evidence.score.total_cmp(&a.evidence.score).then_with(|| at(a).cmp(&at(b)))
    });
    candidates
        .dedup_by(|a, b| a.target.document.path == b.target.document.path && a.target.span == b.target.span);
    let Some(first) = candidates.first() else { return Answer::NotFound(otherwise()) };
    let margin = candidates.get(1).map_or(1.0, |next| first.evidence.score - next.evidence.score);
    if first.evidence.score < THRESHOLD - MARGIN {
        return Answer::NotFound(otherwise());
    }
    if first.evidence.score < THRESHOLD || margin < MARGIN {
        candidates.retain(|located| located.evidence.score >= THRESHOLD - 4.0 * MARGIN);
        let total = candidates.len();
        candidates.truncate(TOP);
        return Answer::Ambiguous(Several { places: candidates, total });
    }
    let mut best = candidates.swap_remove(0);
    best.evidence.margin = margin;
    Answer::Found(Box::new(best))
}

/// An AST path: by its steps, or else by the names among them.
fn ast(world: &World<'_>, spec: &AstSpec) -> Answer {
    let gone = |reason: String| Answer::NotFound(Near::because(Reason::Gone { reason }));
    let Some(module) = spec.path.first().filter(|step| step.construct == Construct::Module) else {
        return gone("an AST path begins with [module=<name>]".to_owned());
    };
    let Some(name) = module.name() else {
        return gone("the first step names no module: [module=<name>]".to_owned());
    };
    let Some(document) = module_document(world, name) else {
        return named::moved_path(world, spec, format!("there is no module {name}"));
    };
    match follow(&document.text, &spec.path[1..]) {
        Ok(found) => {
            let target =
                place::stretch(world.files, world.roots, &document, found.span, Some(found.name_span));
            let mut evidence = Evidence::certain(Way::Path, "every step leads to one construct");
            // A number among constructs is a position, as a line is; but unlike a line it is kept by agents.
            if let Some(step) = spec.path.iter().find(|step| step.ordinal().is_some()) {
                evidence = evidence
                    .doubted(format!("`{step}` counts what stands there now; `v=` tells what it counted"));
                evidence.margin = 0.0;
            }
            Answer::Found(Box::new(Located { target, evidence }))
        }
        Err(Broken::Several(all)) => {
            let targets = all.into_iter().map(|found| {
                place::stretch(world.files, world.roots, &document, found.span, Some(found.name_span))
            });
            let several = targets.map(|target| Located {
                target,
                evidence: Evidence {
                    way: Way::Path,
                    score: 1.0,
                    margin: 0.0,
                    certified: false,
                    features: None,
                    reason: "the step has no ordinal".to_owned(),
                },
            });
            Answer::Ambiguous(several.collect::<Vec<_>>().into())
        }
        Err(Broken::Missing(step)) => {
            let missing = spec.path.get(step + 1).map(ToString::to_string).unwrap_or_default();
            named::moved_path(world, spec, format!("there is no {missing} in the step before it"))
        }
    }
}

/// The file of a module: by its dotted name, or by its path.
fn module_document(world: &World<'_>, name: &str) -> Option<Arc<Document>> {
    if name.ends_with(".py") || name.ends_with(".pyi") {
        return world.files.read(&world.snapshot.root().join(name)).ok();
    }
    let modules = world.roots.find(world.files, name);
    world.files.read(modules.first()?.file()?).ok()
}

/// The part of a definition that a role asks for, when `name_span` is its name.
fn part(document: &Document, name_span: &Span, role: Role) -> Option<Span> {
    if role == Role::Def {
        return Some(name_span.clone());
    }
    let outline = Outline::parse(&document.text);
    let definition = outline.definitions.into_iter().find(|definition| definition.name_span == *name_span)?;
    match role {
        Role::Def => Some(definition.name_span),
        Role::Sig => definition.signature,
        Role::Body => definition.body,
        Role::Doc => definition.doc,
    }
}
