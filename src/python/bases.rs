//! Inherited members of classes, in the method resolution order of Python.

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError};

use super::lookup::{Lookup, LookupResult, NameTarget, SourceFile, Trail};
use super::outline::DefinitionKind;
use super::step::ResolutionStepKind;

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

    /// The bases that a class names and that can be found, in their order.
    pub(super) fn direct_bases(
        &self,
        source: &Arc<SourceFile>,
        class: usize,
        trail: &Trail,
    ) -> Vec<ClassRef> {
        let itself = (source.clone(), class);
        let definition = &source.outline.definitions[class];
        let bases = definition.bases.iter().filter_map(|base| {
            let found = self.dotted(source, definition.parent, base, trail);
            found.iter().find_map(|reached| self.as_class(reached, trail))
        });
        bases.filter(|base| !same_class(base, &itself)).collect()
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

    /// The bases of a class that do not resolve to a class, as they are written: their members are unknown.
    pub(super) fn unknown_bases(&self, source: &Arc<SourceFile>, class: usize) -> Vec<String> {
        let definition = &source.outline.definitions[class];
        let trail = Trail::default();
        let is_unknown = |base: &&String| {
            let found = self.dotted(source, definition.parent, base, &trail);
            !found.iter().any(|reached| self.as_class(reached, &trail).is_some() || is_special(reached))
        };
        definition.bases.iter().filter(is_unknown).cloned().collect()
    }

    /// The names of the special forms of `typing`, such as `Protocol`, among the bases of a class.
    pub(super) fn typing_forms(&self, source: &Arc<SourceFile>, class: usize) -> Vec<String> {
        let definition = &source.outline.definitions[class];
        let trail = Trail::default();
        let reached =
            definition.bases.iter().flat_map(|base| self.dotted(source, definition.parent, base, &trail));
        let form = |reached: LookupResult| {
            // An alias of a form is the form.
            let (source, index) = match (self.as_class(&reached, &trail), reached.found) {
                (Some((source, index)), _) if is_typing_form(&source, index) => (source, index),
                (None, NameTarget::Definition { source, index, .. }) if is_typing(&source) => (source, index),
                _ => return None,
            };
            Some(source.outline.definitions[index].name.clone())
        };
        reached.filter_map(form).collect()
    }

    /// The class of a lookup result, with aliases resolved.
    fn as_class(&self, reached: &LookupResult, trail: &Trail) -> Option<ClassRef> {
        let NameTarget::Definition { source, group, .. } = &reached.found else { return None };
        // A name may be bound in several branches, and to a class that can be found in only one of them.
        group.iter().find_map(|&index| {
            let definition = &source.outline.definitions[index];
            if definition.kind == DefinitionKind::Class {
                return Some((source.clone(), index));
            }
            let target = definition.alias_of.as_ref()?;
            let trail = self.enter(trail, source, definition.parent, &format!("{}=", definition.name))?;
            let found = self.dotted(source, definition.parent, target, &trail);
            found.iter().find_map(|reached| self.as_class(reached, &trail))
        })
    }
}

/// Whether a base is a special form of `typing`, such as `Protocol`: these have no members.
fn is_special(reached: &LookupResult) -> bool {
    matches!(&reached.found, NameTarget::Definition { source, .. } if is_typing(source))
}

fn is_typing(source: &SourceFile) -> bool {
    matches!(source.module.name.as_str(), "typing" | "typing_extensions")
}

/// Whether a definition is a form of `typing` that makes other classes generic or structural. The sources of `typing` define some
/// as classes, its stubs as special forms.
pub(super) fn is_typing_form(source: &SourceFile, index: usize) -> bool {
    let name = source.outline.definitions[index].name.as_str();
    is_typing(source) && matches!(name, "Generic" | "Protocol" | "TypedDict" | "NamedTuple")
}

fn same_class(a: &ClassRef, b: &ClassRef) -> bool {
    a.1 == b.1 && a.0.document.path == b.0.document.path
}
