//! Locates definitions by names without a module: `pkg.mod.Class.method`, `Class.method`, `name`, and by file and names:
//! `tests/test_x.py::TestC::test_m`.

use std::collections::BTreeSet;

use super::ResolveContext;
use crate::path::{AbsPath, DocUri, WorkspacePath, is_python};
use crate::python::modules::{ImportRoots, Module, ModuleOrigin};
use crate::python::not_found::{MAX_SUGGESTIONS, NotFound, NotFoundReason};
use crate::python::symbol::{ResolveOutcome, ResolvedTarget, resolve_in, resolve_module, resolve_symbol};
use crate::relocate::index::IndexEntry;
use crate::selector::{DottedName, ModuleName, NameSpec, PositionSpec, QualName, SymbolSpec, parse};
use crate::text::ColumnUnit;
use crate::workspace::files::Files;

/// The module that a file is which cannot be imported, such as a script, when it runs.
const MAIN: &str = "__main__";

/// The most definitions of a name that are resolved.
const MAX_NAMESAKES: usize = 64;

/// Locates a name: in its file if the selector names one, else as a module with a name in it, else among the definitions of
/// the workspace. A name of the workspace competes with one of a module outside of it.
pub(super) fn by_name(cx: &ResolveContext<'_>, spec: &NameSpec, path: Option<&AbsPath>) -> ResolveOutcome {
    if let Some(file) = path {
        return match (in_file(cx.files, cx.roots, spec, file, spec.name.names()), &spec.uri) {
            (ResolveOutcome::NotFound(near), Some(uri)) => ResolveOutcome::NotFound(by_file(near, uri)),
            (outcome, _) => outcome,
        };
    }
    let is_inside = |target: &ResolvedTarget| cx.relative(&target.document.path).is_some();
    let (mut targets, near) = match in_module(cx.files, cx.roots, spec) {
        ResolveOutcome::Found(target) if is_inside(&target) => return ResolveOutcome::Found(target),
        ResolveOutcome::Found(target) => (vec![*target], None),
        ResolveOutcome::Ambiguous(targets) => (targets, None),
        ResolveOutcome::NotFound(near) => (Vec::new(), Some(near)),
    };
    let (namesakes, member) = in_workspace(cx, spec);
    targets.extend(namesakes);
    let mut seen = BTreeSet::new();
    targets.retain(|target| seen.insert((target.document.path.clone(), target.span.start)));
    targets.sort_by(|a, b| (&a.document.path, a.span.start).cmp(&(&b.document.path, b.span.start)));
    match targets.len() {
        0 => module_alone(cx, spec)
            .unwrap_or_else(|| ResolveOutcome::NotFound(not_found(cx, spec, near.into_iter().chain(member)))),
        1 => ResolveOutcome::Found(Box::new(targets.remove(0))),
        _ => ResolveOutcome::Ambiguous(targets),
    }
}

/// Resolves a name in an old state of the files. `likely` is the file that probably defines it.
pub(super) fn in_old_state(
    files: &dyn Files,
    roots: &ImportRoots,
    spec: &NameSpec,
    likely: Option<&AbsPath>,
) -> ResolveOutcome {
    let in_likely = |names: &[String]| likely.map(|file| in_file(files, roots, spec, file, names));
    let by_module = if spec.uri.is_none() { Some(in_module(files, roots, spec)) } else { None };
    match by_module {
        Some(ResolveOutcome::NotFound(near)) => {
            in_likely(spec.name.names()).unwrap_or(ResolveOutcome::NotFound(near))
        }
        Some(found) => found,
        None => in_likely(spec.name.names())
            .unwrap_or_else(|| ResolveOutcome::NotFound(NotFound::new(NotFoundReason::Unqualified))),
    }
}

/// The file that defines a name now.
pub(super) fn likely_file(cx: &ResolveContext<'_>, spec: &NameSpec) -> Option<AbsPath> {
    if let ResolveOutcome::Found(target) = in_module(cx.files, cx.roots, spec) {
        return Some(target.document.path.clone());
    }
    let found = cx.definitions().with_chain(&spec.name.to_string());
    Some(cx.snapshot.absolute(&found.first()?.0))
}

/// Resolves a chain of names in a file.
fn in_file(
    files: &dyn Files,
    roots: &ImportRoots,
    spec: &NameSpec,
    file: &AbsPath,
    names: &[String],
) -> ResolveOutcome {
    let name = roots.name_of(file).unwrap_or_default();
    let known = roots.find(files, &name).into_iter().find(|module| module.file() == Some(file));
    let module = ModuleName::new(&name).or_else(|| ModuleName::new(MAIN));
    let is_stub = file.as_str().ends_with(".pyi");
    let unknown = || Module {
        name: module.as_ref().map_or_else(String::new, ToString::to_string),
        source: (!is_stub).then(|| file.clone()),
        stub: is_stub.then(|| file.clone()),
        folder: None,
        origin: ModuleOrigin::Workspace,
    };
    let qualname = module.clone().and_then(|module| QualName::new(module, names.to_vec()));
    let Some(qualname) = qualname else {
        return ResolveOutcome::NotFound(NotFound::new(NotFoundReason::Unqualified));
    };
    resolve_in(files, roots, &[known.unwrap_or_else(unknown)], &spec.qualified(qualname))
}

/// The ways to read dotted names as a module with a name in it, the longest module first.
pub(super) fn qualnames(spec: &NameSpec) -> impl Iterator<Item = QualName> {
    let names = spec.name.names();
    (1..names.len()).rev().filter_map(|split| {
        QualName::new(ModuleName::new(&names[..split].join("."))?, names[split..].to_vec())
    })
}

/// Resolves a name as a module with a name in it. The longest module that has the name is taken; the reason for a failure is
/// that of the longest module.
fn in_module(files: &dyn Files, roots: &ImportRoots, spec: &NameSpec) -> ResolveOutcome {
    let mut near = None;
    for qualname in qualnames(spec).filter(|name| !roots.find(files, name.module.as_str()).is_empty()) {
        match resolve_symbol(files, roots, &spec.qualified(qualname)) {
            ResolveOutcome::NotFound(reason) => near = near.or(Some(reason)),
            found => return found,
        }
    }
    ResolveOutcome::NotFound(near.unwrap_or_else(|| NotFound::new(NotFoundReason::Unqualified)))
}

/// The definitions of the workspace with a name: of modules and classes, not the local ones of functions. The reason is that of
/// a class that has the first of the names, but not the others.
fn in_workspace(cx: &ResolveContext<'_>, spec: &NameSpec) -> (Vec<ResolvedTarget>, Option<NotFound>) {
    let (first, rest) = spec.name.names().split_first().expect("a name has at least one part");
    let found = cx.definitions().named(first).into_iter();
    let places: BTreeSet<(WorkspacePath, String)> = found
        .filter(|(path, entry)| !is_local(cx, path, entry))
        .map(|(path, entry)| (path, entry.chain))
        .collect();
    let has_source = |path: &WorkspacePath, chain: &String| {
        let source =
            path.as_str().strip_suffix(".pyi").and_then(|stem| WorkspacePath::new(&format!("{stem}.py")));
        source.is_some_and(|source| places.contains(&(source, chain.clone())))
    };
    let (mut targets, mut near) = (Vec::new(), None);
    // A link to a file is that file.
    let is_elsewhere = |path: &WorkspacePath, chain: &String| {
        let real = cx.through_link(&cx.snapshot.absolute(path)).and_then(|real| cx.relative(&real));
        real.is_some_and(|real| places.contains(&(real, chain.clone())))
    };
    let places = places.iter().filter(|(path, chain)| !has_source(path, chain) && !is_elsewhere(path, chain));
    for (path, chain) in places.take(MAX_NAMESAKES) {
        let names: Vec<String> = chain.split('.').map(str::to_owned).chain(rest.iter().cloned()).collect();
        match in_file(cx.files, cx.roots, spec, &cx.snapshot.absolute(path), &names) {
            ResolveOutcome::Found(target) => targets.push(*target),
            ResolveOutcome::Ambiguous(several) => targets.extend(several),
            ResolveOutcome::NotFound(reason) => {
                near = near.or_else(|| Some(by_file(reason, &DocUri::Workspace(path.clone()))));
            }
        }
    }
    (targets, near)
}

/// What was not found in a file that has no module of its own, by the file: no selector leads to `__main__`.
fn by_file(mut near: NotFound, uri: &DocUri) -> NotFound {
    if let NotFoundReason::Name { module, .. } = &mut near.reason
        && module == MAIN
    {
        *module = uri.to_string();
    }
    for suggestion in &mut near.suggestions {
        if let Ok(PositionSpec::Symbol(spec)) = parse(suggestion, ColumnUnit::default())
            && spec.qualname.module.as_str() == MAIN
            && let Some(name) = DottedName::parse(&spec.qualname.names().join("."))
        {
            let SymbolSpec { param, role, overload, .. } = spec;
            *suggestion = in_file_of(uri, NameSpec { param, role, overload, ..NameSpec::new(name) });
        }
    }
    near
}

/// A selector of a name in a file; of the name alone where the file's has no suffix, which that form needs.
fn in_file_of(uri: &DocUri, spec: NameSpec) -> String {
    let uri = Some(uri.clone()).filter(|uri| is_python(&uri.to_string()));
    PositionSpec::Name(NameSpec { uri, ..spec }).to_string()
}

/// Whether a definition is inside a function.
fn is_local(cx: &ResolveContext<'_>, path: &WorkspacePath, entry: &IndexEntry) -> bool {
    let scopes = entry.chain.match_indices('.').map(|(at, _)| &entry.chain[..at]);
    scopes
        .into_iter()
        .any(|scope| cx.definitions().in_file(path, scope).iter().any(|outer| outer.kind.is_function()))
}

/// A module by its own name.
fn module_alone(cx: &ResolveContext<'_>, spec: &NameSpec) -> Option<ResolveOutcome> {
    let name = spec.name.to_string();
    let modules = cx.roots.find(cx.files, &name);
    let last = spec.name.names().last()?.clone();
    let qualname = QualName::new(ModuleName::new(&name)?, vec![last])?;
    match modules.as_slice() {
        [module] if spec.param.is_none() => {
            Some(resolve_module(cx.files, cx.roots, module, &spec.qualified(qualname)))
        }
        _ => None,
    }
}

/// The reason for a failure: that of a module or class that has a part of the name, else similar names of the workspace.
fn not_found(cx: &ResolveContext<'_>, spec: &NameSpec, nearer: impl Iterator<Item = NotFound>) -> NotFound {
    let is_specific = |near: &NotFound| !matches!(near.reason, NotFoundReason::Unqualified);
    if let Some(near) = nearer.into_iter().find(is_specific) {
        return near;
    }
    let alike = cx.definitions().like(&spec.name.to_string(), MAX_NAMESAKES);
    let alike = alike.into_iter().filter(|(path, entry)| !is_local(cx, path, entry));
    let suggestions = alike.filter_map(|(path, entry)| selector_of(cx, path, &entry)).take(MAX_SUGGESTIONS);
    NotFound { suggestions: suggestions.collect(), reason: NotFoundReason::Unqualified }
}

/// A selector of a definition: by its module, else by its file.
fn selector_of(cx: &ResolveContext<'_>, path: WorkspacePath, entry: &IndexEntry) -> Option<String> {
    let module = cx.roots.name_of(&cx.snapshot.absolute(&path)).and_then(|name| ModuleName::new(&name));
    if let Some(module) = module {
        return Some(format!("py://{module}#{}", entry.chain));
    }
    let name = NameSpec::new(DottedName::parse(&entry.chain)?);
    Some(in_file_of(&DocUri::Workspace(path), name))
}
