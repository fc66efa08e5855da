//! Inherited members of classes, in the method resolution order of Python.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::{Arc, PoisonError};

use super::lookup::{Lookup, LookupResult, NameTarget, SourceFile, Trail};
use super::outline::{DefinitionKind, Import, Imported, Span};
use super::scopes::Scopes;
use super::step::ResolutionStepKind;
use crate::digest::Digest;
use crate::text::names::names_of;
use crate::workspace::files::Document;

/// The most classes in a method resolution order.
const MAX_MRO: usize = 256;

/// A class: its file, and its index in the file's outline.
pub(super) type ClassRef = (Arc<SourceFile>, usize);

impl Lookup<'_> {
    /// Looks up a name in a class: bound in its body, set on its instances, or inherited.
    pub(super) fn in_class(
        &self,
        source: &Arc<SourceFile>,
        class: usize,
        name: &str,
        trail: &Trail,
    ) -> Vec<LookupResult> {
        let Some(trail) = self.enter(trail, source, Some(class), name) else { return Vec::new() };
        let own = self.in_scope(source, Some(class), name, &trail);
        if !own.is_empty() {
            return own;
        }
        let step_span = &source.outline.definitions[class].name_span;
        let order = self.linearize(source, class, &trail);
        let mut above: Vec<ClassRef> = order.iter().skip(1).cloned().collect();
        // The metaclass comes last. The nearest class that names one decides.
        let metaclass = order.iter().find_map(|(source, class)| {
            let definition = &source.outline.definitions[*class];
            let found = self.dotted(source, definition.parent, definition.metaclass.as_ref()?, &trail);
            found.iter().find_map(|reached| self.as_class(reached, &trail))
        });
        if let Some((source, class)) = metaclass {
            above.extend(self.linearize(&source, class, &trail));
        }
        for (base_source, base) in above {
            let found = self.in_scope(&base_source, Some(base), name, &trail);
            if !found.is_empty() {
                let to = format!("{}:{}", base_source.module.name, base_source.outline.names(base).join("."));
                let step = self.step(ResolutionStepKind::Inherited, source, step_span, to);
                return found.into_iter().map(|reached| reached.after(step.clone())).collect();
            }
        }
        Vec::new()
    }

    /// The names that can follow a result after a dot, for suggestions.
    pub(super) fn member_names(&self, of: &LookupResult) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        match &of.found {
            NameTarget::Definition { source, index, .. } => {
                for (source, class) in self.linearize(source, *index, &Trail::default()) {
                    names.extend(source.outline.children(Some(class)).map(|(_, member)| member.name.clone()));
                }
            }
            NameTarget::Module(module) | NameTarget::Import { module: Some(module), .. } => {
                if let Some(Ok(source)) = module.file().map(|file| self.source(module, file)) {
                    names.extend(source.outline.children(None).map(|(_, member)| member.name.clone()));
                }
            }
            NameTarget::Import { module: None, .. } => {}
        }
        names
    }

    /// The method resolution order of a class, itself first (C3, as Python's `mro`). Bases that cannot be found are left out;
    /// where C3 has no solution, bases are taken in the order they are found.
    pub(super) fn linearize(&self, source: &Arc<SourceFile>, class: usize, trail: &Trail) -> Vec<ClassRef> {
        let itself = (source.clone(), class);
        let key = (source.document.path.clone(), class);
        if let Some(order) = self.linearized.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return order.clone();
        }
        let Some(trail) = self.enter(trail, source, Some(class), "") else { return vec![itself] };
        let direct = self.direct_bases(source, class, &trail);
        let mut lists: Vec<Vec<ClassRef>> =
            direct.iter().map(|base| self.linearize(&base.0, base.1, &trail)).collect();
        lists.push(direct);
        let mut order = vec![itself];
        while order.len() < MAX_MRO {
            lists.retain(|list| !list.is_empty());
            let later = |class: &ClassRef| {
                lists.iter().any(|list| list.iter().skip(1).any(|other| same_class(other, class)))
            };
            let heads = lists.iter().map(|list| &list[0]);
            let Some(next) = heads.clone().find(|class| !later(class)).or(lists.first().map(|list| &list[0]))
            else {
                break;
            };
            let next = next.clone();
            for list in &mut lists {
                list.retain(|class| !same_class(class, &next));
            }
            order.push(next);
        }
        let mut known = self.linearized.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(key, order.clone());
        order
    }

    /// The bases that a class names and that can be found, in their order: all of them where a name is bound in several places.
    pub(super) fn direct_bases(
        &self,
        source: &Arc<SourceFile>,
        class: usize,
        trail: &Trail,
    ) -> Vec<ClassRef> {
        let itself = (source.clone(), class);
        let bases = &source.outline.definitions[class].bases;
        let found = bases.iter().flat_map(|base| self.base_targets(source, class, base, trail).classes);
        let mut direct: Vec<ClassRef> = Vec::new();
        for base in found {
            if !same_class(&base, &itself) && !direct.iter().any(|known| same_class(known, &base)) {
                direct.push(base);
            }
        }
        direct
    }

    /// What a base can be that a class names.
    pub(super) fn base_targets(
        &self,
        source: &Arc<SourceFile>,
        class: usize,
        base: &str,
        trail: &Trail,
    ) -> BaseTargets {
        let mut targets = BaseTargets::default();
        if let Some(span) = local_binding(source, class, base) {
            targets.computed = Some((source.clone(), span));
            return targets;
        }
        let scope = source.outline.definitions[class].parent;
        for reached in self.dotted(source, scope, base, trail) {
            self.add_targets(&reached, trail, &mut targets);
        }
        if targets.is_empty() {
            // `x.Base` of an object `x`.
            let first = base.split('.').next().unwrap_or_default();
            for reached in self.dotted(source, scope, first, trail).iter().filter(|_| first != base) {
                let NameTarget::Definition { source, group, .. } = &reached.found else { continue };
                let value = |index: &usize| source.outline.definitions[*index].value.computed.clone();
                targets.computed = group.iter().find_map(value).map(|span| (source.clone(), span));
            }
        }
        targets
    }

    /// `builtins.object`, which every class inherits from.
    pub(super) fn object(&self) -> Option<ClassRef> {
        let builtins = self.roots.find(self.files, "builtins").into_iter().next()?;
        let found = self.in_module(&builtins, "object", &Trail::default());
        found.into_iter().find_map(|reached| match reached.found {
            NameTarget::Definition { source, index, .. } => Some((source, index)),
            _ => None,
        })
    }

    /// The bases of a class that may be something else than the classes that are found for them, as they are written: their members
    /// are unknown.
    pub(super) fn unknown_bases(&self, source: &Arc<SourceFile>, class: usize) -> Vec<String> {
        let bases = source.outline.definitions[class].bases.iter();
        let is_unknown =
            |base: &&String| self.base_targets(source, class, base, &Trail::default()).is_unknown();
        bases.filter(is_unknown).cloned().collect()
    }

    /// The names of the special forms of `typing`, such as `Protocol`, among the bases of a class.
    pub(super) fn typing_forms(&self, source: &Arc<SourceFile>, class: usize) -> Vec<String> {
        let bases = source.outline.definitions[class].bases.iter();
        bases.flat_map(|base| self.base_targets(source, class, base, &Trail::default()).forms).collect()
    }

    /// The first class of a lookup result, with aliases resolved.
    fn as_class(&self, reached: &LookupResult, trail: &Trail) -> Option<ClassRef> {
        let mut targets = BaseTargets::default();
        self.add_targets(reached, trail, &mut targets);
        targets.classes.into_iter().next()
    }

    /// Adds the classes that a lookup result can be, with aliases resolved.
    fn add_targets(&self, reached: &LookupResult, trail: &Trail, targets: &mut BaseTargets) {
        let (source, group) = match &reached.found {
            NameTarget::Definition { source, group, .. } => (source, group),
            // The stubs of `typing` may be hidden.
            NameTarget::Import { source, span, module: None } => {
                let import = source.outline.imports.iter().find(|import| import.bound_span == *span);
                targets.forms.extend(import.and_then(imported_form));
                return;
            }
            NameTarget::Import { .. } | NameTarget::Module(_) => return,
        };
        for &index in group {
            let definition = &source.outline.definitions[index];
            if definition.kind == DefinitionKind::Class {
                if is_typing_form(source, index) {
                    targets.forms.push(definition.name.clone());
                }
                targets.classes.push((source.clone(), index));
                continue;
            }
            if is_typing(source) {
                targets.forms.push(definition.name.clone());
                continue;
            }
            if definition.kind.is_function() {
                continue;
            }
            if let Some(span) = &definition.value.computed {
                targets.computed = Some((source.clone(), span.clone()));
            }
            for name in &definition.value.names {
                // In a class body, `Base = Base` takes the outer one; it leads back here and is left out.
                let step = format!("{}={name}", definition.name);
                let Some(trail) = self.enter(trail, source, definition.parent, &step) else { continue };
                let found = self.dotted(source, definition.parent, name, &trail);
                // The attribute of an object of the program.
                let first = name.split('.').next().filter(|first| found.is_empty() && first != name);
                let first = first.map(|first| self.dotted(source, definition.parent, first, &trail));
                for one in first.iter().flatten() {
                    match &one.found {
                        NameTarget::Definition { .. } => {
                            targets.computed = Some((source.clone(), definition.name_span.clone()));
                        }
                        NameTarget::Import { source, span, module: None }
                            if is_typing_import(source, span) =>
                        {
                            let last = name.rsplit('.').next().unwrap_or_default();
                            targets.forms.extend(TYPING_FORMS.contains(&last).then(|| last.to_owned()));
                        }
                        _ => {}
                    }
                }
                for reached in found {
                    self.add_targets(&reached, &trail, targets);
                }
            }
        }
    }
}

/// What a base can be.
#[derive(Debug, Default)]
pub(super) struct BaseTargets {
    /// The classes, in the order of their bindings.
    pub(super) classes: Vec<ClassRef>,
    /// The names of the forms of `typing`.
    pub(super) forms: Vec<String>,
    /// Where another value is computed that may be a class.
    pub(super) computed: Option<(Arc<SourceFile>, Span)>,
}

impl BaseTargets {
    fn is_empty(&self) -> bool {
        self.classes.is_empty() && self.forms.is_empty() && self.computed.is_none()
    }

    /// Whether it may be something else than the classes.
    pub(super) fn is_unknown(&self) -> bool {
        self.computed.is_some() || self.classes.is_empty() && self.forms.is_empty()
    }
}

/// The scopes of a file with the uses of a name, kept for the next class: many in one file have the same base.
fn scopes_of(document: &Document, name: &str) -> Rc<Scopes> {
    thread_local! {
        static LAST: RefCell<Option<(Digest, String, Rc<Scopes>)>> = const { RefCell::new(None) };
    }
    LAST.with_borrow_mut(|last| match last {
        Some((digest, known, scopes)) if *digest == document.digest && known == name => scopes.clone(),
        _ => {
            let scopes = Rc::new(Scopes::of(&document.text, &[name]));
            *last = Some((document.digest, name.to_owned(), scopes.clone()));
            scopes
        }
    })
}

/// The parameter or local variable that a base of a class in a function names, if it names one: only the program knows its value.
fn local_binding(source: &SourceFile, class: usize, base: &str) -> Option<Span> {
    let definitions = &source.outline.definitions;
    let parents = std::iter::successors(definitions[class].parent, |&parent| definitions[parent].parent);
    let function = parents.filter(|&parent| definitions[parent].kind.is_function()).last()?;
    let (text, class) = (&source.document.text, &definitions[class]);
    let first = base.split('.').next().unwrap_or_default();
    // Most classes in functions have a base of the module.
    let before = text.get(definitions[function].span.start..class.span.start)?;
    if !names_of(before).any(|word| word == first) {
        return None;
    }
    let head = text.get(class.name_span.end..class.signature.as_ref()?.end)?;
    let word = names_of(head).find(|word| *word == first)?;
    let at = class.name_span.end + (word.as_ptr() as usize - head.as_ptr() as usize);
    let bound = scopes_of(&source.document, first).bound_by(at)?;
    let is_known = |span: &Span| {
        definitions.iter().any(|one| one.name_span.start == span.start)
            || source.outline.imports.iter().any(|import| import.bound_span.start == span.start)
    };
    bound.into_iter().find(|span| !is_known(span))
}

/// Whether an import binds the module `typing`.
fn is_typing_import(source: &SourceFile, span: &Span) -> bool {
    let import = source.outline.imports.iter().find(|import| import.bound_span == *span);
    import.is_some_and(|import| {
        let is_module = matches!(import.what, Imported::Module | Imported::Top);
        is_module && import.level == 0 && TYPING_MODULES.contains(&import.module.as_str())
    })
}

/// The form of `typing` that an import binds.
fn imported_form(import: &Import) -> Option<String> {
    let Imported::Name(name) = &import.what else { return None };
    let is_form = TYPING_MODULES.contains(&import.module.as_str()) && import.level == 0;
    (is_form && TYPING_FORMS.contains(&name.as_str())).then(|| name.clone())
}

const TYPING_MODULES: [&str; 2] = ["typing", "typing_extensions"];

/// The forms of `typing` that make other classes generic or structural.
const TYPING_FORMS: [&str; 4] = ["Generic", "Protocol", "TypedDict", "NamedTuple"];

fn is_typing(source: &SourceFile) -> bool {
    TYPING_MODULES.contains(&source.module.name.as_str())
}

/// Whether a definition is a form of `typing` that makes other classes generic or structural. The sources of `typing` define some
/// as classes, its stubs as special forms.
pub(super) fn is_typing_form(source: &SourceFile, index: usize) -> bool {
    let name = source.outline.definitions[index].name.as_str();
    is_typing(source) && TYPING_FORMS.contains(&name)
}

fn same_class(a: &ClassRef, b: &ClassRef) -> bool {
    a.1 == b.1 && a.0.document.path == b.0.document.path
}
