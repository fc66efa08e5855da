//! Looks names up in a scope, in a module, in a class and its bases, through imports and aliases.
//!
//! A name may be bound several times. Bindings that a server treats as one symbol are one result: overloads, a property's
//! accessors, the assignments to one variable. Others (a function defined in two branches, an import with a fallback) are
//! separate results, and the caller decides.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::bases::ClassRef;
use super::modules::{ImportRoots, Module};
use super::outline::{Definition, DefinitionKind, Import, Imported, Outline, Span, VariableValue};
use super::step::{ResolutionStep, ResolutionStepKind};
use crate::path::AbsPath;
use crate::workspace::files::{Document, Files, ReadError};

/// The longest chain of imports, bases and aliases that is followed.
const MAX_DEPTH: usize = 64;
/// The most lookups of one [`Lookup`].
const MAX_LOOKUPS: usize = 20_000;
/// The most lookups where every class of many files is examined.
const MAX_LOOKUPS_FOR_ALL_CLASSES: usize = 2_000_000;

/// A parsed file, source or stub, with its module.
#[derive(Debug)]
pub(super) struct SourceFile {
    pub(super) module: Module,
    pub(super) document: Arc<Document>,
    pub(super) outline: Arc<Outline>,
}

/// The definition, import or module that a name resolves to.
#[derive(Debug, Clone)]
pub(super) enum NameTarget {
    /// A definition: the one that represents the symbol, and all definitions of the symbol in source order.
    Definition { source: Arc<SourceFile>, index: usize, group: Vec<usize> },
    /// An import that binds a module, or that cannot be followed.
    Import { source: Arc<SourceFile>, span: Span, module: Option<Module> },
    /// A module itself.
    Module(Module),
}

/// A result of a lookup, with the steps that led to it.
#[derive(Debug, Clone)]
pub(super) struct LookupResult {
    pub(super) found: NameTarget,
    pub(super) via: Vec<ResolutionStep>,
}

impl LookupResult {
    /// The same result with a step before the others.
    pub(super) fn after(mut self, step: ResolutionStep) -> Self {
        self.via.insert(0, step);
        self
    }

    /// Equal for results that are the same definition or module.
    fn identity(&self) -> (Option<AbsPath>, usize) {
        match &self.found {
            NameTarget::Definition { source, index, .. } => {
                (Some(source.document.path.clone()), source.outline.definitions[*index].name_span.start)
            }
            NameTarget::Import { module: Some(module), .. } | NameTarget::Module(module) => {
                (module.file().or(module.folder.as_ref()).cloned(), usize::MAX)
            }
            NameTarget::Import { source, span, module: None } => {
                (Some(source.document.path.clone()), span.start)
            }
        }
    }
}

/// The lookups in progress, each in a file, a parent and a name: to detect cycles.
#[derive(Debug, Clone, Default)]
pub(super) struct Trail(Vec<(AbsPath, Option<usize>, String)>);

type ParseResult = Result<Arc<SourceFile>, ReadError>;

/// Looks names up in files, each read and parsed once.
pub(super) struct Lookup<'f> {
    pub(super) files: &'f dyn Files,
    pub(super) roots: &'f ImportRoots,
    parsed: Mutex<BTreeMap<AbsPath, ParseResult>>,
    pub(super) linearized: Mutex<BTreeMap<(AbsPath, usize), Vec<ClassRef>>>,
    lookups: AtomicUsize,
    /// The limit of `lookups`.
    max_lookups: usize,
    /// Whether a variable is found beside a class, a function or an import of its name, which hide it otherwise.
    finds_all_bindings: bool,
}

impl<'f> Lookup<'f> {
    pub(super) fn new(files: &'f dyn Files, roots: &'f ImportRoots) -> Self {
        let (parsed, linearized) = (Mutex::default(), Mutex::default());
        let (lookups, max_lookups) = (AtomicUsize::new(0), MAX_LOOKUPS);
        Self { files, roots, parsed, linearized, lookups, max_lookups, finds_all_bindings: false }
    }

    /// With the higher limit for operations on all classes of a workspace, and with every binding of a name, since a class
    /// may inherit from any of them.
    pub(super) fn for_all_classes(files: &'f dyn Files, roots: &'f ImportRoots) -> Self {
        Self { max_lookups: MAX_LOOKUPS_FOR_ALL_CLASSES, finds_all_bindings: true, ..Self::new(files, roots) }
    }

    /// Whether a limit was reached, so that results may be missing or wrong.
    pub(super) fn is_exhausted(&self) -> bool {
        self.lookups.load(Ordering::Relaxed) >= self.max_lookups
    }

    /// Adds a lookup to the trail; `None` if that makes a cycle or exceeds a limit.
    pub(super) fn enter(
        &self,
        trail: &Trail,
        source: &SourceFile,
        parent: Option<usize>,
        name: &str,
    ) -> Option<Trail> {
        let entry = (source.document.path.clone(), parent, name.to_owned());
        if trail.0.contains(&entry) || self.lookups.fetch_add(1, Ordering::Relaxed) >= self.max_lookups {
            return None;
        }
        if trail.0.len() >= MAX_DEPTH {
            self.lookups.store(self.max_lookups, Ordering::Relaxed);
            return None;
        }
        let mut trail = trail.clone();
        trail.0.push(entry);
        Some(trail)
    }

    /// Parses a file, once.
    pub(super) fn source(&self, module: &Module, file: &AbsPath) -> ParseResult {
        if let Some(parsed) = self.parsed.lock().unwrap_or_else(PoisonError::into_inner).get(file) {
            return parsed.clone();
        }
        let parsed = self.files.read(file).map(|document| {
            let outline = Outline::parse(&document.text);
            Arc::new(SourceFile { module: module.clone(), document, outline })
        });
        let mut all = self.parsed.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(file.clone()).or_insert(parsed).clone()
    }

    fn main_source(&self, module: &Module) -> Option<Arc<SourceFile>> {
        self.source(module, module.file()?).ok()
    }

    /// Looks up a name of a module: bound there, imported with `*`, or a submodule.
    pub(super) fn in_module(&self, module: &Module, name: &str, trail: &Trail) -> Vec<LookupResult> {
        let mut found = self.in_module_file(module, module.file(), name, trail);
        if found.is_empty() && module.source.is_some() {
            // Compiled or generated modules: only the stub declares the name.
            found = self.in_module_file(module, module.stub.as_ref(), name, trail);
        }
        if found.is_empty()
            && module.folder.is_some()
            && let Some(submodule) = self.roots.submodule(self.files, module, name)
        {
            let step = module.file().or(module.folder.as_ref()).map(|file| ResolutionStep {
                kind: ResolutionStepKind::Submodule,
                file: file.clone(),
                span: 0..0,
                to: submodule.name.clone(),
            });
            found
                .push(LookupResult { found: NameTarget::Module(submodule), via: step.into_iter().collect() });
        }
        found
    }

    fn in_module_file(
        &self,
        module: &Module,
        file: Option<&AbsPath>,
        name: &str,
        trail: &Trail,
    ) -> Vec<LookupResult> {
        let Some(Ok(source)) = file.map(|file| self.source(module, file)) else { return Vec::new() };
        let Some(trail) = self.enter(trail, &source, None, name) else { return Vec::new() };
        let found = self.in_scope(&source, None, name, &trail);
        if found.is_empty() { self.starred(source, name, &trail) } else { found }
    }

    /// Looks up a name through the `import *` of a file, transitively.
    fn starred(&self, source: Arc<SourceFile>, name: &str, trail: &Trail) -> Vec<LookupResult> {
        let mut visited = BTreeSet::from([source.document.path.clone()]);
        let mut stack = vec![(source, Vec::new())];
        while let Some((source, via)) = stack.pop() {
            // The stack reverses the order: a later `import *` overrides an earlier one.
            for import in source.outline.imports_of(None).filter(|import| import.what == Imported::Star) {
                let Some(module) = self.imported_module(&source, import) else { continue };
                let Some(from) = self.main_source(&module) else { continue };
                if !visited.insert(from.document.path.clone()) || !self.exports(&module, name, trail) {
                    continue;
                }
                let mut via: Vec<ResolutionStep> = via.clone();
                via.push(self.step(
                    ResolutionStepKind::StarImport,
                    &source,
                    &import.bound_span,
                    module.name.clone(),
                ));
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
                found.push(LookupResult { found: NameTarget::Module(submodule), via: Vec::new() });
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

    /// Whether `from module import *` binds a name.
    fn exports(&self, module: &Module, name: &str, trail: &Trail) -> bool {
        let Some(source) = self.main_source(module) else { return !name.starts_with('_') };
        let Some(exports) = &source.outline.exports else { return !name.starts_with('_') };
        if exports.names.iter().any(|entry| entry.name == name) {
            return true;
        }
        // An `__all__` that is computed may contain any name.
        let Some(trail) = self.enter(trail, &source, None, "__all__") else { return false };
        !exports.is_static
            || exports.from.iter().any(|from| {
                self.dotted(&source, None, from, &trail).iter().any(|reached| match &reached.found {
                    NameTarget::Import { module: Some(module), .. } | NameTarget::Module(module) => {
                        self.exports(module, name, &trail)
                    }
                    _ => false,
                })
            })
    }

    /// Looks up a name in one scope: the module (`None`), a class or a function.
    pub(super) fn in_scope(
        &self,
        source: &Arc<SourceFile>,
        parent: Option<usize>,
        name: &str,
        trail: &Trail,
    ) -> Vec<LookupResult> {
        let outline = &source.outline;
        let definitions: Vec<_> = outline.children(parent).filter(|(_, d)| d.name == name).collect();
        let imports: Vec<_> = outline.imports_of(parent).filter(|import| import.bound == name).collect();
        let runs = |branch: Option<usize>| !outline.is_unreachable(branch);
        let any_runs = definitions.iter().any(|(_, d)| runs(d.branch))
            || imports.iter().any(|import| runs(import.branch));
        // What the server takes as unreachable is what runs: the `else` of `if TYPE_CHECKING`.
        let counts = |branch: Option<usize>| self.finds_all_bindings || !any_runs || runs(branch);

        let mut groups: Vec<Vec<usize>> = Vec::new();
        let mut variables: Vec<usize> = Vec::new();
        for (index, definition) in definitions.into_iter().filter(|(_, d)| counts(d.branch)) {
            if definition.signature.is_none() {
                variables.push(index);
                continue;
            }
            match groups.last_mut() {
                Some(group) if is_same_symbol(outline, group, definition) => group.push(index),
                _ => groups.push(vec![index]),
            }
        }
        let mut reached: Vec<LookupResult> = groups
            .into_iter()
            .map(|group| LookupResult {
                found: NameTarget::Definition {
                    source: source.clone(),
                    index: representative(outline, &group),
                    group,
                },
                via: Vec::new(),
            })
            .collect();
        let mut unresolved = Vec::new();
        for import in imports.into_iter().filter(|import| counts(import.branch)) {
            let followed = self.follow(source, import, trail);
            if followed.is_empty() {
                unresolved.push(import);
            }
            reached.extend(followed);
        }
        if self.finds_all_bindings && !reached.is_empty() {
            let can_be_class = |index: &usize| outline.definitions[*index].value != VariableValue::default();
            variables.retain(can_be_class);
        }
        if (reached.is_empty() || self.finds_all_bindings) && !variables.is_empty() {
            variables.sort_by_key(|&index| (declaration_rank(outline, index), index));
            let found =
                NameTarget::Definition { source: source.clone(), index: variables[0], group: variables };
            reached.push(LookupResult { found, via: Vec::new() });
        }
        if reached.is_empty()
            && let Some(import) = unresolved.first()
        {
            let step = self.step(
                ResolutionStepKind::UnresolvedImport,
                source,
                &import.bound_span,
                import_text(import),
            );
            let found =
                NameTarget::Import { source: source.clone(), span: import.bound_span.clone(), module: None };
            reached.push(LookupResult { found, via: vec![step] });
        }
        distinct(reached)
    }

    /// Resolves what an import statement binds; empty when its module cannot be found.
    fn follow(&self, source: &Arc<SourceFile>, import: &Import, trail: &Trail) -> Vec<LookupResult> {
        let Some(module) = self.imported_module(source, import) else { return Vec::new() };
        let step = self.step(ResolutionStepKind::Import, source, &import.bound_span, module.name.clone());
        match &import.what {
            Imported::Name(name) => {
                // `from . import sub` in the package itself means the submodule.
                let is_own_package = module.file().is_some() && module.file() == source.module.file();
                let mut found =
                    if is_own_package { Vec::new() } else { self.in_module(&module, name, trail) };
                if is_own_package && let Some(submodule) = self.roots.submodule(self.files, &module, name) {
                    found.push(LookupResult { found: NameTarget::Module(submodule), via: Vec::new() });
                }
                let bind = |reached: LookupResult| {
                    // A module has no name token, so requests to the server use the import's.
                    let found = match reached.found {
                        NameTarget::Module(module) => NameTarget::Import {
                            source: source.clone(),
                            span: import.bound_span.clone(),
                            module: Some(module),
                        },
                        found => found,
                    };
                    LookupResult { found, via: reached.via }.after(step.clone())
                };
                found.into_iter().map(bind).collect()
            }
            Imported::Module | Imported::Top => {
                let found = NameTarget::Import {
                    source: source.clone(),
                    span: import.bound_span.clone(),
                    module: Some(module),
                };
                vec![LookupResult { found, via: vec![step] }]
            }
            Imported::Star => Vec::new(),
        }
    }

    pub(super) fn imported_module(&self, source: &SourceFile, import: &Import) -> Option<Module> {
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

    /// Looks up an attribute of a lookup result.
    pub(super) fn member(&self, of: &LookupResult, name: &str, trail: &Trail) -> Vec<LookupResult> {
        let found = match &of.found {
            NameTarget::Module(module) | NameTarget::Import { module: Some(module), .. } => {
                self.in_module(module, name, trail)
            }
            NameTarget::Import { module: None, .. } => Vec::new(),
            NameTarget::Definition { source, index, .. } => {
                let definition = &source.outline.definitions[*index];
                match definition.kind {
                    DefinitionKind::Class => self.in_class(source, *index, name, trail),
                    kind if kind.is_function() => self.in_scope(source, Some(*index), name, trail),
                    _ => self.in_alias(source, definition, name, trail),
                }
            }
        };
        let via = |reached: LookupResult| LookupResult {
            via: of.via.iter().cloned().chain(reached.via).collect(),
            found: reached.found,
        };
        found.into_iter().map(via).collect()
    }

    fn in_alias(
        &self,
        source: &Arc<SourceFile>,
        alias: &Definition,
        name: &str,
        trail: &Trail,
    ) -> Vec<LookupResult> {
        let Some(target) = alias.value.alias() else { return Vec::new() };
        let Some(trail) = self.enter(trail, source, alias.parent, &format!("{}=", alias.name)) else {
            return Vec::new();
        };
        let step = self.step(ResolutionStepKind::Alias, source, &alias.name_span, target.to_owned());
        let mut found = Vec::new();
        for reached in self.dotted(source, alias.parent, target, &trail) {
            // An alias of an instance gives no results: its class is unknown.
            found.extend(
                self.member(&reached, name, &trail).into_iter().map(|reached| reached.after(step.clone())),
            );
        }
        distinct(found)
    }

    /// Resolves a dotted name that is written in `scope`: from there outwards to the module, then in the builtins.
    pub(super) fn dotted(
        &self,
        source: &Arc<SourceFile>,
        scope: Option<usize>,
        dotted: &str,
        trail: &Trail,
    ) -> Vec<LookupResult> {
        let mut parts = dotted.split('.');
        let first = parts.next().unwrap_or_default();
        let mut at = scope;
        let mut found = Vec::new();
        while let Some(parent) = at
            && found.is_empty()
        {
            // The names of a class are not visible in its functions.
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

    pub(super) fn step(
        &self,
        kind: ResolutionStepKind,
        source: &SourceFile,
        span: &Span,
        to: String,
    ) -> ResolutionStep {
        ResolutionStep { kind, file: source.document.path.clone(), span: span.clone(), to }
    }
}

/// Whether a `def` or `class` is the same symbol as the group before it: an overload or an accessor.
fn is_same_symbol(outline: &Outline, group: &[usize], definition: &Definition) -> bool {
    let last = group.last().map(|&index| &outline.definitions[index]);
    let follows_overload =
        last.is_some_and(|last| last.is_decorated("overload")) && definition.kind.is_function();
    follows_overload || definition.is_accessor()
}

/// The definition that represents a group: a property's getter, the implementation of overloads, else the first.
fn representative(outline: &Outline, group: &[usize]) -> usize {
    let is_overload = |index: &usize| outline.definitions[*index].is_decorated("overload");
    let first = group.first().copied().unwrap_or_default();
    if !is_overload(&first) {
        return first;
    }
    group.iter().copied().find(|index| !is_overload(index)).unwrap_or(first)
}

/// Ranks the assignments to one variable: the one in the class body comes first, then the one in `__init__`.
fn declaration_rank(outline: &Outline, index: usize) -> u8 {
    let definition = &outline.definitions[index];
    if definition.kind != DefinitionKind::Attribute {
        return 0;
    }
    let within = outline.enclosing(definition.name_span.start).map(|method| &outline.definitions[method]);
    if within.is_some_and(|method| method.name == "__init__") { 1 } else { 2 }
}

fn distinct(reached: Vec<LookupResult>) -> Vec<LookupResult> {
    let mut seen = Vec::new();
    let mut unique = Vec::new();
    for one in reached {
        let identity = one.identity();
        if !seen.contains(&identity) {
            seen.push(identity);
            unique.push(one);
        }
    }
    unique
}

fn import_text(import: &Import) -> String {
    let module = format!("{}{}", ".".repeat(import.level), import.module);
    match &import.what {
        Imported::Name(name) => format!("{module}:{name}"),
        _ => module,
    }
}
