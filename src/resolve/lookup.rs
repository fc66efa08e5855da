//! Looking names up: in a scope, in a module, in a class and its bases, through imports and aliases.
//!
//! A name may be bound in several places. What a server treats as one symbol is one result here: overloads, a
//! property's accessors, the assignments to one variable. What remains (a function defined in two branches, an import
//! with a fallback) is returned as several results, and the caller decides.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::bases::ClassRef;
use super::hop::{Hop, HopKind};
use super::modules::{ImportRoots, Module};
use super::outline::{Definition, DefinitionKind, Import, Imported, Outline, Span};
use crate::path::AbsPath;
use crate::workspace::files::{Document, Files, ReadError};

/// How many imports, bases and aliases are followed one after the other.
const MAX_DEPTH: usize = 64;
/// How many lookups one question may take altogether.
const MAX_STEPS: usize = 20_000;

/// The same where every class of many files is looked at.
const PATIENT_STEPS: usize = 2_000_000;

/// A file that was read for its definitions.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) module: Module,
    pub(super) document: Arc<Document>,
    pub(super) outline: Outline,
}

/// What a name leads to.
#[derive(Debug, Clone)]
pub(super) enum Found {
    /// A definition: the one to show, and all that are one symbol with it in source order.
    Definition { source: Arc<Source>, index: usize, group: Vec<usize> },
    /// An import that binds a module, or that cannot be followed.
    Import { source: Arc<Source>, span: Span, module: Option<Module> },
    /// A module itself.
    Module(Module),
}

/// A result, with the steps that led to it.
#[derive(Debug, Clone)]
pub(super) struct Reached {
    pub(super) found: Found,
    pub(super) via: Vec<Hop>,
}

impl Reached {
    pub(super) fn after(mut self, hop: Hop) -> Self {
        self.via.insert(0, hop);
        self
    }

    /// What makes two results the same.
    fn identity(&self) -> (Option<AbsPath>, usize) {
        match &self.found {
            Found::Definition { source, index, .. } => {
                (Some(source.document.path.clone()), source.outline.definitions[*index].name_span.start)
            }
            Found::Import { module: Some(module), .. } | Found::Module(module) => {
                (module.file().or(module.folder.as_ref()).cloned(), usize::MAX)
            }
            Found::Import { source, span, module: None } => (Some(source.document.path.clone()), span.start),
        }
    }
}

/// The names that are being looked up, so that a circle ends.
#[derive(Debug, Clone, Default)]
pub(super) struct Trail(Vec<(AbsPath, Option<usize>, String)>);

type Parsed = Result<Arc<Source>, ReadError>;

/// Looks names up in files, each read and parsed once.
pub(super) struct Lookup<'f> {
    pub(super) files: &'f dyn Files,
    pub(super) roots: &'f ImportRoots,
    parsed: Mutex<BTreeMap<AbsPath, Parsed>>,
    pub(super) linearised: Mutex<BTreeMap<(AbsPath, usize), Vec<ClassRef>>>,
    steps: AtomicUsize,
    /// How many there may be.
    most: usize,
}

impl<'f> Lookup<'f> {
    pub(super) fn new(files: &'f dyn Files, roots: &'f ImportRoots) -> Self {
        let (parsed, linearised) = (Mutex::default(), Mutex::default());
        Self { files, roots, parsed, linearised, steps: AtomicUsize::new(0), most: MAX_STEPS }
    }

    /// The same for a question about all classes of a workspace.
    pub(super) fn patient(files: &'f dyn Files, roots: &'f ImportRoots) -> Self {
        Self { most: PATIENT_STEPS, ..Self::new(files, roots) }
    }

    /// Whether the search was given up: there may be more than was found, or something else.
    pub(super) fn is_exhausted(&self) -> bool {
        self.steps.load(Ordering::Relaxed) >= self.most
    }

    /// Goes one step further, unless that would be a circle, too deep or too long.
    pub(super) fn enter(
        &self,
        trail: &Trail,
        source: &Source,
        parent: Option<usize>,
        name: &str,
    ) -> Option<Trail> {
        let step = (source.document.path.clone(), parent, name.to_owned());
        if trail.0.contains(&step) || self.steps.fetch_add(1, Ordering::Relaxed) >= self.most {
            return None;
        }
        if trail.0.len() >= MAX_DEPTH {
            self.steps.store(self.most, Ordering::Relaxed);
            return None;
        }
        let mut trail = trail.clone();
        trail.0.push(step);
        Some(trail)
    }

    /// The definitions of a file.
    pub(super) fn source(&self, module: &Module, file: &AbsPath) -> Parsed {
        if let Some(parsed) = self.parsed.lock().unwrap_or_else(PoisonError::into_inner).get(file) {
            return parsed.clone();
        }
        let parsed = self.files.read(file).map(|document| {
            let outline = Outline::parse(&document.text);
            Arc::new(Source { module: module.clone(), document, outline })
        });
        let mut all = self.parsed.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(file.clone()).or_insert(parsed).clone()
    }

    fn main_source(&self, module: &Module) -> Option<Arc<Source>> {
        self.source(module, module.file()?).ok()
    }

    /// What a name of a module is: bound there, imported with `*`, or a submodule.
    pub(super) fn in_module(&self, module: &Module, name: &str, trail: &Trail) -> Vec<Reached> {
        let mut found = self.in_module_file(module, module.file(), name, trail);
        if found.is_empty() && module.source.is_some() {
            // Compiled or generated: only the stub says that it exists.
            found = self.in_module_file(module, module.stub.as_ref(), name, trail);
        }
        if found.is_empty()
            && module.folder.is_some()
            && let Some(submodule) = self.roots.submodule(self.files, module, name)
        {
            let hop = module.file().or(module.folder.as_ref()).map(|file| Hop {
                kind: HopKind::Submodule,
                file: file.clone(),
                span: 0..0,
                to: submodule.name.clone(),
            });
            found.push(Reached { found: Found::Module(submodule), via: hop.into_iter().collect() });
        }
        found
    }

    fn in_module_file(
        &self,
        module: &Module,
        file: Option<&AbsPath>,
        name: &str,
        trail: &Trail,
    ) -> Vec<Reached> {
        let Some(Ok(source)) = file.map(|file| self.source(module, file)) else { return Vec::new() };
        let Some(trail) = self.enter(trail, &source, None, name) else { return Vec::new() };
        let found = self.in_scope(&source, None, name, &trail);
        if found.is_empty() { self.starred(source, name, &trail) } else { found }
    }

    /// What a name is bound to by the `import *` of a file, and by those of the files that they import.
    fn starred(&self, source: Arc<Source>, name: &str, trail: &Trail) -> Vec<Reached> {
        let mut visited = BTreeSet::from([source.document.path.clone()]);
        let mut stack = vec![(source, Vec::new())];
        while let Some((source, via)) = stack.pop() {
            // The stack turns the order round: a later `import *` overrides an earlier one.
            for import in source.outline.imports_of(None).filter(|import| import.what == Imported::Star) {
                let Some(module) = self.imported_module(&source, import) else { continue };
                let Some(from) = self.main_source(&module) else { continue };
                if !visited.insert(from.document.path.clone()) || !self.exports(&module, name, trail) {
                    continue;
                }
                let mut via: Vec<Hop> = via.clone();
                via.push(self.hop(HopKind::StarImport, &source, &import.bound_span, module.name.clone()));
                stack.push((from, via));
            }
            if via.is_empty() {
                continue;
            }
            let mut found = self.in_scope(&source, None, name, trail);
            if found.is_empty()
                && source.outline.exports.as_ref().is_some_and(|all| all.names.iter().any(|e| e.name == name))
                && let Some(submodule) = self.roots.submodule(self.files, &source.module, name)
            {
                found.push(Reached { found: Found::Module(submodule), via: Vec::new() });
            }
            if !found.is_empty() {
                let reached = found.into_iter().map(|mut reached| {
                    reached.via.splice(0..0, via.iter().cloned());
                    reached
                });
                return reached.collect();
            }
        }
        Vec::new()
    }

    /// Whether `from module import *` takes a name.
    fn exports(&self, module: &Module, name: &str, trail: &Trail) -> bool {
        let Some(source) = self.main_source(module) else { return !name.starts_with('_') };
        let Some(exports) = &source.outline.exports else { return !name.starts_with('_') };
        if exports.names.iter().any(|entry| entry.name == name) {
            return true;
        }
        // `__all__` made by a program may hold anything.
        let Some(trail) = self.enter(trail, &source, None, "__all__") else { return false };
        !exports.is_static
            || exports.from.iter().any(|from| {
                self.dotted(&source, None, from, &trail).iter().any(|reached| match &reached.found {
                    Found::Import { module: Some(module), .. } | Found::Module(module) => {
                        self.exports(module, name, &trail)
                    }
                    _ => false,
                })
            })
    }

    /// What a name is bound to in one scope: the module (`None`), a class or a function.
    pub(super) fn in_scope(
        &self,
        source: &Arc<Source>,
        parent: Option<usize>,
        name: &str,
        trail: &Trail,
    ) -> Vec<Reached> {
        let outline = &source.outline;
        let definitions: Vec<_> = outline.children(parent).filter(|(_, d)| d.name == name).collect();
        let imports: Vec<_> = outline.imports_of(parent).filter(|import| import.bound == name).collect();
        let runs = |branch: Option<usize>| !outline.is_unreachable(branch);
        let any_runs = definitions.iter().any(|(_, d)| runs(d.branch))
            || imports.iter().any(|import| runs(import.branch));
        let kept = |branch: Option<usize>| !any_runs || runs(branch);

        let mut groups: Vec<Vec<usize>> = Vec::new();
        let mut variables: Vec<usize> = Vec::new();
        for (index, definition) in definitions.into_iter().filter(|(_, d)| kept(d.branch)) {
            if definition.signature.is_none() {
                variables.push(index);
                continue;
            }
            match groups.last_mut() {
                Some(group) if belongs(outline, group, definition) => group.push(index),
                _ => groups.push(vec![index]),
            }
        }
        let mut reached: Vec<Reached> = groups
            .into_iter()
            .map(|group| Reached {
                found: Found::Definition { source: source.clone(), index: shown(outline, &group), group },
                via: Vec::new(),
            })
            .collect();
        let mut dangling = Vec::new();
        for import in imports.into_iter().filter(|import| kept(import.branch)) {
            let followed = self.follow(source, import, trail);
            if followed.is_empty() {
                dangling.push(import);
            }
            reached.extend(followed);
        }
        if reached.is_empty() && !variables.is_empty() {
            variables.sort_by_key(|&index| (declaration_rank(outline, index), index));
            let found = Found::Definition { source: source.clone(), index: variables[0], group: variables };
            reached.push(Reached { found, via: Vec::new() });
        }
        if reached.is_empty()
            && let Some(import) = dangling.first()
        {
            let hop = self.hop(HopKind::UnresolvedImport, source, &import.bound_span, import_text(import));
            let found =
                Found::Import { source: source.clone(), span: import.bound_span.clone(), module: None };
            reached.push(Reached { found, via: vec![hop] });
        }
        distinct(reached)
    }

    /// What an import statement binds; nothing when its module cannot be found.
    fn follow(&self, source: &Arc<Source>, import: &Import, trail: &Trail) -> Vec<Reached> {
        let Some(module) = self.imported_module(source, import) else { return Vec::new() };
        let hop = self.hop(HopKind::Import, source, &import.bound_span, module.name.clone());
        match &import.what {
            Imported::Name(name) => {
                // `from . import sub` in the package itself means the submodule.
                let itself = module.file().is_some() && module.file() == source.module.file();
                let mut found = if itself { Vec::new() } else { self.in_module(&module, name, trail) };
                if itself && let Some(submodule) = self.roots.submodule(self.files, &module, name) {
                    found.push(Reached { found: Found::Module(submodule), via: Vec::new() });
                }
                let bind = |reached: Reached| {
                    // A module has no name token of its own: the import's is the place to ask.
                    let found = match reached.found {
                        Found::Module(module) => Found::Import {
                            source: source.clone(),
                            span: import.bound_span.clone(),
                            module: Some(module),
                        },
                        found => found,
                    };
                    Reached { found, via: reached.via }.after(hop.clone())
                };
                found.into_iter().map(bind).collect()
            }
            Imported::Module | Imported::Top => {
                let found = Found::Import {
                    source: source.clone(),
                    span: import.bound_span.clone(),
                    module: Some(module),
                };
                vec![Reached { found, via: vec![hop] }]
            }
            Imported::Star => Vec::new(),
        }
    }

    fn imported_module(&self, source: &Source, import: &Import) -> Option<Module> {
        let file = &source.document.path;
        if import.level > 0 {
            return self.roots.relative(self.files, import.level, &import.module, file);
        }
        let name = match import.what {
            Imported::Top => import.module.split('.').next()?,
            _ => &import.module,
        };
        self.roots.import(self.files, name, file)
    }

    /// The attribute of something.
    pub(super) fn member(&self, of: &Reached, name: &str, trail: &Trail) -> Vec<Reached> {
        let found = match &of.found {
            Found::Module(module) | Found::Import { module: Some(module), .. } => {
                self.in_module(module, name, trail)
            }
            Found::Import { module: None, .. } => Vec::new(),
            Found::Definition { source, index, .. } => {
                let definition = &source.outline.definitions[*index];
                match definition.kind {
                    DefinitionKind::Class => self.in_class(source, *index, name, trail),
                    kind if kind.is_function() => self.in_scope(source, Some(*index), name, trail),
                    _ => self.in_alias(source, definition, name, trail),
                }
            }
        };
        let via = |reached: Reached| Reached {
            via: of.via.iter().cloned().chain(reached.via).collect(),
            found: reached.found,
        };
        found.into_iter().map(via).collect()
    }

    fn in_alias(&self, source: &Arc<Source>, alias: &Definition, name: &str, trail: &Trail) -> Vec<Reached> {
        let Some(target) = &alias.alias_of else { return Vec::new() };
        let Some(trail) = self.enter(trail, source, alias.parent, &format!("{}=", alias.name)) else {
            return Vec::new();
        };
        let hop = self.hop(HopKind::Alias, source, &alias.name_span, target.clone());
        let mut found = Vec::new();
        for reached in self.dotted(source, alias.parent, target, &trail) {
            // An alias of an instance says nothing about its class.
            found.extend(
                self.member(&reached, name, &trail).into_iter().map(|reached| reached.after(hop.clone())),
            );
        }
        distinct(found)
    }

    /// What a dotted name means where it is written: inside of `scope`, outwards to the module, then the builtins.
    pub(super) fn dotted(
        &self,
        source: &Arc<Source>,
        scope: Option<usize>,
        dotted: &str,
        trail: &Trail,
    ) -> Vec<Reached> {
        let mut parts = dotted.split('.');
        let first = parts.next().unwrap_or_default();
        let mut at = scope;
        let mut found = Vec::new();
        while let Some(parent) = at
            && found.is_empty()
        {
            // A class is not a scope for what is inside of its functions.
            let is_class = source.outline.definitions[parent].kind == DefinitionKind::Class;
            if !is_class || Some(parent) == scope {
                found = self.in_scope(source, at, first, trail);
            }
            at = source.outline.definitions[parent].parent;
        }
        if found.is_empty() {
            found = self.in_module_file(&source.module, Some(&source.document.path), first, trail);
        }
        if found.is_empty()
            && let Some(builtins) = self.roots.find(self.files, "builtins").first()
        {
            found = self.in_module(builtins, first, trail);
        }
        for part in parts {
            found = found.iter().flat_map(|reached| self.member(reached, part, trail)).collect();
        }
        found
    }

    pub(super) fn hop(&self, kind: HopKind, source: &Source, span: &Span, to: String) -> Hop {
        Hop { kind, file: source.document.path.clone(), span: span.clone(), to }
    }
}

/// Whether a `def` or `class` is one symbol with the group before it: overloads and accessors are.
fn belongs(outline: &Outline, group: &[usize], definition: &Definition) -> bool {
    let last = group.last().map(|&index| &outline.definitions[index]);
    let follows_overload =
        last.is_some_and(|last| last.is_decorated("overload")) && definition.kind.is_function();
    follows_overload || definition.is_accessor()
}

/// The definition of a group that stands for it: a property's getter, the implementation of overloads, else the first.
fn shown(outline: &Outline, group: &[usize]) -> usize {
    let is_overload = |index: &usize| outline.definitions[*index].is_decorated("overload");
    let first = group.first().copied().unwrap_or_default();
    if !is_overload(&first) {
        return first;
    }
    group.iter().copied().find(|index| !is_overload(index)).unwrap_or(first)
}

/// Among the assignments to one variable, the one in the class body comes first, then the one in `__init__`.
fn declaration_rank(outline: &Outline, index: usize) -> u8 {
    let definition = &outline.definitions[index];
    if definition.kind != DefinitionKind::Attribute {
        return 0;
    }
    let within = outline.enclosing(definition.name_span.start).map(|method| &outline.definitions[method]);
    if within.is_some_and(|method| method.name == "__init__") { 1 } else { 2 }
}

fn distinct(reached: Vec<Reached>) -> Vec<Reached> {
    let mut seen = Vec::new();
    let mut kept = Vec::new();
    for one in reached {
        let identity = one.identity();
        if !seen.contains(&identity) {
            seen.push(identity);
            kept.push(one);
        }
    }
    kept
}

fn import_text(import: &Import) -> String {
    let module = format!("{}{}", ".".repeat(import.level), import.module);
    match &import.what {
        Imported::Name(name) => format!("{module}:{name}"),
        _ => module,
    }
}
