//! Locates names and structures that are not where the selector says, without an old text.

use super::{
    Ambiguous, LocateOutcome, LocatedTarget, MAX_CANDIDATES, ResolutionEvidence, ResolveContext, ResolvedVia,
    decide,
};
use crate::path::WorkspacePath;
use crate::python::ast::follow;
use crate::python::not_found::{NotFound, NotFoundReason};
use crate::python::position;
use crate::python::symbol;
use crate::relocate::definitions::IndexedDefinition;
use crate::relocate::index::IndexEntry;
use crate::relocate::structure::is_compound;
use crate::relocate::{MatchFeatures, TargetChange, module_similarity};
use crate::selector::{AstSpec, AstStep, Construct, Role, SymbolId, SymbolSpec};

/// The least length of a name that is evidence: many definitions share a shorter one.
const MIN_NAME_LENGTH: usize = 5;
/// A body with fewer tokens is no evidence for a symbol with another name.
const MIN_BODY_TOKENS: u32 = 12;

/// The most similar of several bodies is accepted if its similarity exceeds the next by this much.
const CLEAR_MARGIN: f64 = 0.25;

/// Locates a qualified name that its module does not define: the same names in another module.
pub(super) fn in_other_modules(cx: &ResolveContext<'_>, spec: &SymbolSpec, near: NotFound) -> LocateOutcome {
    let lost = matches!(
        near.reason,
        NotFoundReason::Module { .. } | NotFoundReason::Name { .. } | NotFoundReason::Local { .. }
    );
    if !lost || spec.overload.is_some() {
        return LocateOutcome::NotFound(near);
    }
    let module = spec.qualname.module.as_str();
    let role = if spec.param.is_some() { Role::Def } else { spec.role };
    let parameter = |mut located: LocatedTarget| match &spec.param {
        None => Some(located),
        Some(name) => {
            located.target = symbol::parameter(&located.target, name, spec.role).ok()?;
            Some(located)
        }
    };
    match moved(cx, module, spec.qualname.names(), role) {
        LocateOutcome::NotFound(_) => LocateOutcome::NotFound(near),
        LocateOutcome::Found(located) => match parameter(*located) {
            Some(located) => LocateOutcome::Found(Box::new(located)),
            None => LocateOutcome::NotFound(near),
        },
        LocateOutcome::Ambiguous(several) if spec.param.is_some() => {
            let places: Vec<LocatedTarget> = several.places.into_iter().filter_map(parameter).collect();
            if places.is_empty() {
                LocateOutcome::NotFound(near)
            } else {
                LocateOutcome::Ambiguous(places.into())
            }
        }
        answer => answer,
    }
}

fn moved(cx: &ResolveContext<'_>, module: &str, names: &[String], role: Role) -> LocateOutcome {
    let chain = names.join(".");
    let from = format!("{}.py", module.replace('.', "/"));
    let last = names.last().map(String::as_str).unwrap_or_default();
    // A file that cannot be imported is no module that a name could have moved to.
    let reached = |path: &WorkspacePath| cx.roots.name_of(&cx.snapshot.absolute(path)).is_some();
    let mut named = cx.definitions().named(last);
    named.retain(|(path, entry)| is_compound(entry.kind) && reached(path));
    let same: Vec<_> = named.iter().filter(|(_, entry)| entry.chain == chain).collect();
    // A method does not compete with a function: a moved definition stays inside or outside of classes.
    let is_member = |chain: &str| chain.contains('.');
    let rivals = named.iter().filter(|(_, entry)| is_member(&entry.chain) == is_member(&chain)).count();
    let mut candidates = Vec::new();
    let module_file = cx.roots.find(cx.files, module).first().and_then(|found| found.file().cloned());
    let module_file = module_file.and_then(|file| cx.relative(&file));
    for (path, entry) in &same {
        // The old body is unknown. A unique name is evidence but not sufficient alone: the module path has to be similar too.
        let features = MatchFeatures {
            ast: 1.0,
            module: module_similarity(&from, path.as_str()),
            token_jaccard: 0.5,
            proximity: if rivals == 1 { 0.7 } else { 0.0 },
        };
        let located = locate_moved_entry(cx, path, entry, role, features, "the same names in another module");
        let is_copy = module_file.as_ref().is_some_and(|file| is_inner_copy(file, path));
        candidates.extend(located.map(|mut located| {
            if is_copy {
                let doubt = "the module is still there, and this one looks like an older copy of it";
                located.evidence = located.evidence.with_doubt(doubt);
            }
            located
        }));
    }
    if same.is_empty()
        && let [(path, entry)] = named.as_slice()
        && last.len() >= MIN_NAME_LENGTH
        && !last.starts_with("__")
        && !is_local(cx, path, entry)
    {
        let features = MatchFeatures {
            ast: 0.9,
            module: module_similarity(&from, path.as_str()),
            token_jaccard: 0.5,
            proximity: 0.5,
        };
        candidates.extend(locate_moved_entry(
            cx,
            path,
            entry,
            role,
            features,
            "the only definition of the name",
        ));
    }
    let none = || NotFound::new(NotFoundReason::Other { reason: format!("no definition is named {chain}") });
    decide(candidates, none)
}

/// Whether `copy` has the path of `file` with one more folder, as `pydantic/v1/main.py` has that of `pydantic/main.py`: a
/// copy that was kept beside it, to which nothing moved.
fn is_inner_copy(file: &WorkspacePath, copy: &WorkspacePath) -> bool {
    let (file, copy): (Vec<&str>, Vec<&str>) =
        (file.as_str().split('/').collect(), copy.as_str().split('/').collect());
    copy.len() == file.len() + 1
        && file.len() > 1
        && (1..file.len()).any(|at| copy[..at] == file[..at] && copy[at + 1..] == file[at..])
}

/// Whether a definition is inside a function, so that its name is local.
fn is_local(cx: &ResolveContext<'_>, path: &WorkspacePath, entry: &IndexEntry) -> bool {
    let Some((scope, _)) = entry.chain.rsplit_once('.') else { return false };
    cx.definitions().in_file(path, scope).iter().any(|other| other.kind.is_function())
}

fn locate_moved_entry(
    cx: &ResolveContext<'_>,
    path: &WorkspacePath,
    entry: &IndexEntry,
    role: Role,
    features: MatchFeatures,
    reason: &str,
) -> Option<LocatedTarget> {
    let via = ResolvedVia::Since(TargetChange::Moved);
    locate_entry(cx, path, entry, role, ResolutionEvidence::scored(via, features, reason))
}

fn locate_entry(
    cx: &ResolveContext<'_>,
    path: &WorkspacePath,
    entry: &IndexEntry,
    role: Role,
    evidence: ResolutionEvidence,
) -> Option<LocatedTarget> {
    let document = cx.files.read(&cx.snapshot.absolute(path)).ok()?;
    let start = entry.offset as usize;
    let name = start..start + entry.name().len();
    let span = super::part(&document, &name, super::Part::Role(role))?;
    let target = position::resolve_span(cx.files, cx.roots, &document, span, Some(name));
    Some(LocatedTarget { target, evidence })
}

/// The name of the class or function that a step names.
fn scope_name(step: &AstStep) -> Option<&str> {
    step.name().filter(|_| matches!(step.construct, Construct::Class | Construct::Def))
}

/// The names of the classes and functions that an AST path names.
pub(super) fn scope_names(spec: &AstSpec) -> Vec<String> {
    spec.path.iter().filter_map(scope_name).map(str::to_owned).collect()
}

/// Locates an AST path with a missing step: by the classes and functions that it names, then by the remaining steps.
pub(super) fn moved_path(cx: &ResolveContext<'_>, spec: &AstSpec, reason: String) -> LocateOutcome {
    let module = spec.path.first().and_then(AstStep::name).unwrap_or_default();
    let names = scope_names(spec);
    let last = spec.path.iter().rposition(|step| scope_name(step).is_some());
    let not_found =
        || LocateOutcome::NotFound(NotFound::new(NotFoundReason::Other { reason: reason.clone() }));
    let Some(last) = last else { return not_found() };
    // The same names without the constructs between them, in the same module or in another one.
    let module = module.trim_end_matches(".pyi").trim_end_matches(".py").replace('/', ".");
    let rest = &spec.path[last + 1..];
    let module =
        cx.roots.find(cx.files, &module).first().and_then(|found| found.file().cloned()).map_or_else(
            || Err(module.clone()),
            |file| definition_in_file(cx, &file, &names).ok_or_else(|| module.clone()),
        );
    let answer = match module {
        Ok(located) => LocateOutcome::Found(Box::new(located)),
        Err(module) => moved(cx, &module, &names, Role::Def),
    };
    match answer {
        LocateOutcome::Found(located) => match follow_rest(cx, *located, rest) {
            Some(located) => LocateOutcome::Found(Box::new(located)),
            None => not_found(),
        },
        LocateOutcome::Ambiguous(several) => {
            let candidates = several.places.into_iter();
            let places: Vec<LocatedTarget> =
                candidates.filter_map(|located| follow_rest(cx, located, rest)).collect();
            // Scopes without the remaining steps are ruled out, which does not make the others less ambiguous.
            if places.is_empty() { not_found() } else { LocateOutcome::Ambiguous(places.into()) }
        }
        _ => not_found(),
    }
}

/// Follows the remaining steps of an AST path from a definition.
fn follow_rest(cx: &ResolveContext<'_>, mut found: LocatedTarget, rest: &[AstStep]) -> Option<LocatedTarget> {
    let document = found.target.document.clone();
    let mut steps = crate::python::ast::path_of(&document.text, &found.target.name_span)?;
    // The path of a name ends with a step for the name itself.
    steps.pop();
    steps.extend(rest.iter().cloned());
    let target = follow(&document.text, &steps).ok()?;
    found.target = position::resolve_span(cx.files, cx.roots, &document, target.span, Some(target.name_span));
    // The step of the definition itself tells which children there is only one of.
    let around = AstStep::new(Construct::Def, None, None).into_iter().chain(rest.iter().cloned());
    if let Some(step) = (AstSpec { path: around.collect(), doc_version: None }).counted_step() {
        let reason =
            format!("{}, and `{step}` counts the constructs of the current text", found.evidence.reason);
        found.evidence = found.evidence.with_doubt(reason);
    }
    Some(found)
}

/// The definition with a chain of names in one file, if it is unique.
fn definition_in_file(
    cx: &ResolveContext<'_>,
    file: &crate::path::AbsPath,
    names: &[String],
) -> Option<LocatedTarget> {
    let path = cx.relative(file)?;
    let chain = names.join(".");
    let mut all = cx.definitions().in_file(&path, &chain);
    all.retain(|entry| is_compound(entry.kind));
    let [entry] = all.as_slice() else { return None };
    let features = MatchFeatures { proximity: 0.5, ..MatchFeatures::SAME };
    let evidence = ResolutionEvidence::scored(
        ResolvedVia::Since(TargetChange::Moved),
        features,
        "the same names under other steps",
    );
    locate_entry(cx, &path, entry, Role::Def, evidence)
}

/// Locates a symbol by its structure.
pub(super) fn by_structure(cx: &ResolveContext<'_>, id: &SymbolId) -> LocateOutcome {
    let namesakes = cx.definitions().with_chain(&id.names.join("."));
    let same_kind = |entry: &IndexEntry| entry.kind.as_str() == id.kind;
    let exact: Vec<&IndexedDefinition> = namesakes
        .iter()
        .filter(|(_, entry)| same_kind(entry) && entry.shape == id.shape && entry.sketch == id.sketch)
        .collect();
    let (which, count) = id.ordinal.unwrap_or((1, 1));
    if usize::try_from(count).is_ok_and(|count| count == exact.len())
        && let Some((path, entry)) = usize::try_from(which - 1).ok().and_then(|at| exact.get(at))
    {
        let mut evidence = ResolutionEvidence::certain(ResolvedVia::Structure, "the same structure");
        if entry.size < MIN_BODY_TOKENS {
            // Small bodies are equal by chance.
            evidence.certified = false;
            evidence.score = 0.95;
        }
        if count > 1 {
            return same_structure(cx, &exact, which);
        }
        if let Some(located) = locate_entry(cx, path, entry, Role::Def, evidence) {
            return LocateOutcome::Found(Box::new(located));
        }
    }
    let mut candidates = Vec::new();
    let named: Vec<_> = namesakes.iter().filter(|(_, entry)| is_same_sort(entry, id)).collect();
    let is_clear = is_best_clear(named.iter().map(|(_, entry)| entry.sketch.similarity(id.sketch)));
    for (path, entry) in &named {
        let alike = entry.sketch.similarity(id.sketch);
        let features = MatchFeatures {
            ast: 1.0,
            module: if named.len() == 1 { 1.0 } else { 0.5 },
            token_jaccard: alike,
            proximity: if entry.shape == id.shape { 1.0 } else { 0.5 },
        };
        let via = if entry.shape == id.shape { TargetChange::Edited } else { TargetChange::SignatureChanged };
        let mut evidence = ResolutionEvidence::scored(ResolvedVia::Since(via), features, "the same names");
        if id.ordinal.is_some() {
            // The number of definitions changed, so the ordinal no longer identifies one.
            evidence =
                evidence.with_doubt(format!("the same names, one of {count} with the same structure before"));
        } else if !is_clear {
            evidence = evidence
                .with_doubt("several definitions have the same names, and no body is clearly more similar");
        }
        candidates.extend(locate_entry(cx, path, entry, Role::Def, evidence));
    }
    if named.is_empty() {
        candidates = of_another_name(cx, id);
    }
    decide(candidates, || {
        let reason = "no definition has these names or a similar body".to_owned();
        NotFound::new(NotFoundReason::Other { reason })
    })
}

/// The definitions with one structure, the one with the ordinal `which` first. Only their order distinguishes them, and it
/// may have changed.
fn same_structure(cx: &ResolveContext<'_>, all: &[&IndexedDefinition], which: u32) -> LocateOutcome {
    let twin = |number: usize, (path, entry): &IndexedDefinition| {
        let count = all.len();
        let reason = format!(
            "{count} definitions have this structure; this is number {} of them in the current order",
            number + 1
        );
        let mut evidence = ResolutionEvidence::certain(ResolvedVia::Structure, "").with_doubt(reason);
        evidence.margin = 0.0;
        locate_entry(cx, path, entry, Role::Def, evidence)
    };
    let first = usize::try_from(which).unwrap_or(1).saturating_sub(1);
    let numbers = std::iter::once(first).chain((0..all.len()).filter(|number| *number != first));
    let places = numbers.take(MAX_CANDIDATES).filter_map(|number| twin(number, all.get(number)?)).collect();
    LocateOutcome::Ambiguous(Ambiguous { places, total: all.len() })
}

/// Definitions with other names and similar bodies.
fn of_another_name(cx: &ResolveContext<'_>, id: &SymbolId) -> Vec<LocatedTarget> {
    let alike = cx.definitions().similar(id, 60, MIN_BODY_TOKENS);
    let alike: Vec<(f64, &WorkspacePath, &IndexEntry)> = alike
        .iter()
        .filter(|(_, entry)| is_same_sort(entry, id))
        .map(|(path, entry)| (entry.sketch.similarity(id.sketch), path, entry))
        .collect();
    let is_clear = is_best_clear(alike.iter().map(|(alike, ..)| *alike));
    let mut candidates = Vec::new();
    for (alike, path, entry) in alike {
        let names: Vec<&str> = entry.chain.split('.').collect();
        let same_name = names.last().copied() == id.names.last().map(String::as_str);
        let same_scope = names[..names.len() - 1] == id.names[..id.names.len() - 1];
        let shape = if entry.shape == id.shape { 0.2 } else { 0.0 };
        let features = MatchFeatures {
            ast: 0.7 * alike + shape + if same_name { 0.1 } else { 0.0 },
            module: 0.5,
            token_jaccard: alike,
            proximity: if same_scope { 1.0 } else { 0.0 },
        };
        let change = if same_name { TargetChange::Moved } else { TargetChange::Renamed };
        let mut evidence = ResolutionEvidence::scored(
            ResolvedVia::Since(change),
            features,
            "a similar body under another name",
        );
        if !is_clear {
            evidence = evidence.with_doubt("several bodies under other names are similar");
        }
        candidates.extend(locate_entry(cx, path, entry, Role::Def, evidence));
    }
    candidates
}

/// Whether the greatest similarity exceeds the next by [`CLEAR_MARGIN`].
fn is_best_clear(similarities: impl Iterator<Item = f64>) -> bool {
    let mut all: Vec<f64> = similarities.collect();
    all.sort_by(|a, b| b.total_cmp(a));
    all.len() < 2 || all[0] - all[1] >= CLEAR_MARGIN
}

fn is_same_sort(entry: &IndexEntry, id: &SymbolId) -> bool {
    let is_function = |kind: &str| matches!(kind, "function" | "method" | "property");
    (is_function(entry.kind.as_str()) && is_function(&id.kind)) || entry.kind.as_str() == id.kind
}
