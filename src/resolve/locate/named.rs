//! Names and structures that are not where they were, when no old text says more.

use super::{Answer, Evidence, Located, Several, TOP, Way, World, decide};
use crate::path::WorkspacePath;
use crate::resolve::ast::follow;
use crate::resolve::definitions::Definition;
use crate::resolve::index::Entry;
use crate::resolve::near::{Near, Reason};
use crate::resolve::place;
use crate::resolve::relocate::side::is_compound;
use crate::resolve::relocate::{Features, Happened, module_likeness};
use crate::selector::{AstSpec, AstStep, Construct, Role, SymbolId, SymbolSpec};

/// A shorter name is borne by many things.
const TELLING_NAME: usize = 5;
/// A body with fewer tokens says nothing about a symbol of another name.
const TELLING_BODY: u32 = 12;

/// Of several alike bodies the most alike one is meant when the next is so much less alike.
const CLEAR: f64 = 0.25;

/// A qualified name that its module does not have: the same names in another module.
pub(super) fn elsewhere(world: &World<'_>, spec: &SymbolSpec, near: Near) -> Answer {
    let lost = matches!(near.reason, Reason::Module { .. } | Reason::Name { .. } | Reason::Local { .. });
    if !lost || spec.overload.is_some() {
        return Answer::NotFound(near);
    }
    let module = spec.qualname.module.as_str();
    match moved(world, module, spec.qualname.names(), spec.role) {
        Answer::NotFound(_) => Answer::NotFound(near),
        answer => answer,
    }
}

fn moved(world: &World<'_>, module: &str, names: &[String], role: Role) -> Answer {
    let chain = names.join(".");
    let from = format!("{}.py", module.replace('.', "/"));
    let last = names.last().map(String::as_str).unwrap_or_default();
    // A file that no import reaches has no module that a name could have moved to.
    let reached = |path: &WorkspacePath| world.roots.name_of(&world.snapshot.absolute(path)).is_some();
    let mut named = world.definitions().named(last);
    named.retain(|(path, entry)| is_compound(entry.kind) && reached(path));
    let same: Vec<_> = named.iter().filter(|(_, entry)| entry.chain == chain).collect();
    // A method is no rival of a function: what is moved stays in a class or outside of all.
    let is_member = |chain: &str| chain.contains('.');
    let rivals = named.iter().filter(|(_, entry)| is_member(&entry.chain) == is_member(&chain)).count();
    let mut candidates = Vec::new();
    for (path, entry) in &same {
        // Of its body nothing is known. That nothing else bears the name speaks for it, but not by itself: the module has
        // to be somewhat alike, too.
        let features = Features {
            ast: 1.0,
            module: module_likeness(&from, path.as_str()),
            token_jaccard: 0.5,
            proximity: if rivals == 1 { 0.7 } else { 0.0 },
        };
        candidates.extend(located(world, path, entry, role, features, "the same names in another module"));
    }
    if same.is_empty()
        && let [(path, entry)] = named.as_slice()
        && last.len() >= TELLING_NAME
        && !last.starts_with("__")
        && !is_local(world, path, entry)
    {
        let features = Features {
            ast: 0.9,
            module: module_likeness(&from, path.as_str()),
            token_jaccard: 0.5,
            proximity: 0.5,
        };
        candidates.extend(located(world, path, entry, role, features, "the only definition of the name"));
    }
    let none = || Near::because(Reason::Gone { reason: format!("nothing is called {chain}") });
    decide(candidates, none)
}

/// Whether a definition is inside of a function: its name is the function's own business.
fn is_local(world: &World<'_>, path: &WorkspacePath, entry: &Entry) -> bool {
    let Some((scope, _)) = entry.chain.rsplit_once('.') else { return false };
    world.definitions().in_file(path, scope).iter().any(|other| other.kind.is_function())
}

fn located(
    world: &World<'_>,
    path: &WorkspacePath,
    entry: &Entry,
    role: Role,
    features: Features,
    reason: &str,
) -> Option<Located> {
    let way = Way::Since(Happened::Moved);
    placed(world, path, entry, role, Evidence::weighed(way, features, reason))
}

fn placed(
    world: &World<'_>,
    path: &WorkspacePath,
    entry: &Entry,
    role: Role,
    evidence: Evidence,
) -> Option<Located> {
    let document = world.files.read(&world.snapshot.absolute(path)).ok()?;
    let start = entry.offset as usize;
    let name = start..start + entry.name().len();
    let span = super::part(&document, &name, role)?;
    let target = place::stretch(world.files, world.roots, &document, span, Some(name));
    Some(Located { target, evidence })
}

/// An AST path that breaks off: by the classes and functions that it names, then on from there.
pub(super) fn moved_path(world: &World<'_>, spec: &AstSpec, reason: String) -> Answer {
    let is_named_scope = |step: &&AstStep| {
        matches!(step.construct, Construct::Class | Construct::Def) && step.name().is_some()
    };
    let module = spec.path.first().and_then(AstStep::name).unwrap_or_default();
    let names: Vec<String> =
        spec.path.iter().filter(is_named_scope).filter_map(|step| step.name().map(str::to_owned)).collect();
    let last = spec.path.iter().rposition(|step| is_named_scope(&step));
    let not_found = || Answer::NotFound(Near::because(Reason::Gone { reason: reason.clone() }));
    let Some(last) = last else { return not_found() };
    // The same names without the constructs between them, in the same module or in another one.
    let module = module.trim_end_matches(".pyi").trim_end_matches(".py").replace('/', ".");
    let rest = &spec.path[last + 1..];
    let module =
        world.roots.find(world.files, &module).first().and_then(|found| found.file().cloned()).map_or_else(
            || Err(module.clone()),
            |file| names_in(world, &file, &names).ok_or_else(|| module.clone()),
        );
    let answer = match module {
        Ok(located) => Answer::Found(Box::new(located)),
        Err(module) => moved(world, &module, &names, Role::Def),
    };
    match answer {
        Answer::Found(located) => match onward(world, *located, rest) {
            Some(located) => Answer::Found(Box::new(located)),
            None => not_found(),
        },
        Answer::Ambiguous(several) => {
            let candidates = several.places.into_iter();
            let places: Vec<Located> =
                candidates.filter_map(|located| onward(world, located, rest)).collect();
            // A scope without these steps is not the one that is meant; that does not say which of the others is.
            if places.is_empty() { not_found() } else { Answer::Ambiguous(places.into()) }
        }
        _ => not_found(),
    }
}

/// From a definition on by the rest of an AST path.
fn onward(world: &World<'_>, mut found: Located, rest: &[AstStep]) -> Option<Located> {
    let document = found.target.document.clone();
    let mut steps = crate::resolve::ast::path_of(&document.text, &found.target.name_span)?;
    // The path of a name ends with a step for the name itself.
    steps.pop();
    steps.extend(rest.iter().cloned());
    let target = follow(&document.text, &steps).ok()?;
    found.target = place::stretch(world.files, world.roots, &document, target.span, Some(target.name_span));
    if let Some(step) = rest.iter().find(|step| step.ordinal().is_some()) {
        let reason = format!("{}, and `{step}` counts what stands there now", found.evidence.reason);
        found.evidence = found.evidence.doubted(reason);
    }
    Some(found)
}

/// A definition by its chain of names in one file, if there is one.
fn names_in(world: &World<'_>, file: &crate::path::AbsPath, names: &[String]) -> Option<Located> {
    let path = world.relative(file)?;
    let chain = names.join(".");
    let mut all = world.definitions().in_file(&path, &chain);
    all.retain(|entry| is_compound(entry.kind));
    let [entry] = all.as_slice() else { return None };
    let features = Features { proximity: 0.5, ..Features::SAME };
    let evidence =
        Evidence::weighed(Way::Since(Happened::Moved), features, "the same names under other steps");
    placed(world, &path, entry, Role::Def, evidence)
}

/// A symbol by its structure.
pub(super) fn structure(world: &World<'_>, id: &SymbolId) -> Answer {
    let namesakes = world.definitions().with_chain(&id.names.join("."));
    let same_kind = |entry: &Entry| entry.kind.as_str() == id.kind;
    let exact: Vec<&Definition> = namesakes
        .iter()
        .filter(|(_, entry)| same_kind(entry) && entry.shape == id.shape && entry.sketch == id.sketch)
        .collect();
    let (which, count) = id.ordinal.unwrap_or((1, 1));
    if usize::try_from(count).is_ok_and(|count| count == exact.len())
        && let Some((path, entry)) = usize::try_from(which - 1).ok().and_then(|at| exact.get(at))
    {
        let mut evidence = Evidence::certain(Way::Structure, "the same structure");
        if entry.size < TELLING_BODY {
            // Any two of them are alike.
            evidence.certified = false;
            evidence.score = 0.95;
        }
        if count > 1 {
            return twins(world, &exact, which);
        }
        if let Some(located) = placed(world, path, entry, Role::Def, evidence) {
            return Answer::Found(Box::new(located));
        }
    }
    let mut candidates = Vec::new();
    let named: Vec<_> = namesakes.iter().filter(|(_, entry)| is_same_sort(entry, id)).collect();
    let is_clear = stands_out(named.iter().map(|(_, entry)| entry.sketch.similarity(id.sketch)));
    for (path, entry) in &named {
        let alike = entry.sketch.similarity(id.sketch);
        let features = Features {
            ast: 1.0,
            module: if named.len() == 1 { 1.0 } else { 0.5 },
            token_jaccard: alike,
            proximity: if entry.shape == id.shape { 1.0 } else { 0.5 },
        };
        let way = if entry.shape == id.shape { Happened::Edited } else { Happened::SignatureChanged };
        let mut evidence = Evidence::weighed(Way::Since(way), features, "the same names");
        if id.ordinal.is_some() {
            // Which of them it was cannot be told any more: their number is another one.
            evidence = evidence.doubted(format!("the same names, one of {count} that were alike"));
        } else if !is_clear {
            evidence =
                evidence.doubted("several have the same names, and none a body that is much more alike");
        }
        candidates.extend(placed(world, path, entry, Role::Def, evidence));
    }
    if named.is_empty() {
        candidates = of_another_name(world, id);
    }
    decide(candidates, || {
        let reason = "no definition has these names, and none a body that is alike".to_owned();
        Near::because(Reason::Gone { reason })
    })
}

/// Definitions of one structure, that of the number first. Nothing but their order tells them apart, and nobody knows
/// whether that is still the same.
fn twins(world: &World<'_>, all: &[&Definition], which: u32) -> Answer {
    let twin = |number: usize, (path, entry): &Definition| {
        let count = all.len();
        let reason =
            format!("{count} definitions have this structure; this is number {} of them now", number + 1);
        let mut evidence = Evidence::certain(Way::Structure, "").doubted(reason);
        evidence.margin = 0.0;
        placed(world, path, entry, Role::Def, evidence)
    };
    let first = usize::try_from(which).unwrap_or(1).saturating_sub(1);
    let numbers = std::iter::once(first).chain((0..all.len()).filter(|number| *number != first));
    let places = numbers.take(TOP).filter_map(|number| twin(number, all.get(number)?)).collect();
    Answer::Ambiguous(Several { places, total: all.len() })
}

/// Definitions of other names whose bodies are alike.
fn of_another_name(world: &World<'_>, id: &SymbolId) -> Vec<Located> {
    let alike = world.definitions().alike(id, 60, TELLING_BODY);
    let alike: Vec<(f64, &WorkspacePath, &Entry)> = alike
        .iter()
        .filter(|(_, entry)| is_same_sort(entry, id))
        .map(|(path, entry)| (entry.sketch.similarity(id.sketch), path, entry))
        .collect();
    let is_clear = stands_out(alike.iter().map(|(alike, ..)| *alike));
    let mut candidates = Vec::new();
    for (alike, path, entry) in alike {
        let names: Vec<&str> = entry.chain.split('.').collect();
        let same_name = names.last().copied() == id.names.last().map(String::as_str);
        let same_scope = names[..names.len() - 1] == id.names[..id.names.len() - 1];
        let shape = if entry.shape == id.shape { 0.2 } else { 0.0 };
        let features = Features {
            ast: 0.7 * alike + shape + if same_name { 0.1 } else { 0.0 },
            module: 0.5,
            token_jaccard: alike,
            proximity: if same_scope { 1.0 } else { 0.0 },
        };
        let happened = if same_name { Happened::Moved } else { Happened::Renamed };
        let mut evidence =
            Evidence::weighed(Way::Since(happened), features, "a body that is alike under another name");
        if !is_clear {
            evidence = evidence.doubted("several bodies under other names are alike");
        }
        candidates.extend(placed(world, path, entry, Role::Def, evidence));
    }
    candidates
}

/// Whether the greatest likeness is far from the next.
fn stands_out(likenesses: impl Iterator<Item = f64>) -> bool {
    let mut all: Vec<f64> = likenesses.collect();
    all.sort_by(|a, b| b.total_cmp(a));
    all.len() < 2 || all[0] - all[1] >= CLEAR
}

fn is_same_sort(entry: &Entry, id: &SymbolId) -> bool {
    let is_function = |kind: &str| matches!(kind, "function" | "method" | "property");
    (is_function(entry.kind.as_str()) && is_function(&id.kind)) || entry.kind.as_str() == id.kind
}
