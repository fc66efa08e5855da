//! Classes and their bases: inherited members, in the order that Python looks for them.

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError};

use super::hop::HopKind;
use super::lookup::{Found, Lookup, Reached, Source, Trail};
use super::outline::DefinitionKind;

/// How many classes a linearisation may have.
const MAX_BASES: usize = 256;

/// A class as the file it is in and its index in that file's outline.
pub(super) type ClassRef = (Arc<Source>, usize);

impl Lookup<'_> {
    /// What a name is in a class: bound in its body, set on its instances, or inherited.
    pub(super) fn in_class(
        &self,
        source: &Arc<Source>,
        class: usize,
        name: &str,
        trail: &Trail,
    ) -> Vec<Reached> {
        let Some(trail) = self.enter(trail, source, Some(class), name) else { return Vec::new() };
        let own = self.in_scope(source, Some(class), name, &trail);
        if !own.is_empty() {
            return own;
        }
        let hop_span = &source.outline.definitions[class].name_span;
        let order = self.linearise(source, class, &trail);
        let mut above: Vec<ClassRef> = order.iter().skip(1).cloned().collect();
        // What the class itself does not have, its metaclass may: the nearest that is named counts.
        let metaclass = order.iter().find_map(|(source, class)| {
            let definition = &source.outline.definitions[*class];
            let found = self.dotted(source, definition.parent, definition.metaclass.as_ref()?, &trail);
            found.iter().find_map(|reached| self.as_class(reached, &trail))
        });
        if let Some((source, class)) = metaclass {
            above.extend(self.linearise(&source, class, &trail));
        }
        for (base_source, base) in above {
            let found = self.in_scope(&base_source, Some(base), name, &trail);
            if !found.is_empty() {
                let to = format!("{}:{}", base_source.module.name, base_source.outline.names(base).join("."));
                let hop = self.hop(HopKind::Inherited, source, hop_span, to);
                return found.into_iter().map(|reached| reached.after(hop.clone())).collect();
            }
        }
        Vec::new()
    }

    /// The names that can follow a result after a dot, for suggestions.
    pub(super) fn member_names(&self, of: &Reached) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        match &of.found {
            Found::Definition { source, index, .. } => {
                for (source, class) in self.linearise(source, *index, &Trail::default()) {
                    names.extend(source.outline.children(Some(class)).map(|(_, member)| member.name.clone()));
                }
            }
            Found::Module(module) | Found::Import { module: Some(module), .. } => {
                if let Some(Ok(source)) = module.file().map(|file| self.source(module, file)) {
                    names.extend(source.outline.children(None).map(|(_, member)| member.name.clone()));
                }
            }
            Found::Import { module: None, .. } => {}
        }
        names
    }

    /// A class and its bases in the order in which attributes are looked for (C3, as Python's `mro`). Bases that
    /// cannot be found are left out; where no order is right, the first found order stands.
    pub(super) fn linearise(&self, source: &Arc<Source>, class: usize, trail: &Trail) -> Vec<ClassRef> {
        let itself = (source.clone(), class);
        let key = (source.document.path.clone(), class);
        if let Some(order) = self.linearised.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return order.clone();
        }
        let Some(trail) = self.enter(trail, source, Some(class), "") else { return vec![itself] };
        let definition = &source.outline.definitions[class];
        let mut lists: Vec<Vec<ClassRef>> = Vec::new();
        let mut direct = Vec::new();
        for base in &definition.bases {
            let found = self.dotted(source, definition.parent, base, &trail);
            let classes = found.iter().filter_map(|reached| self.as_class(reached, &trail));
            let Some(base) = classes.into_iter().next() else { continue };
            if same_class(&base, &itself) {
                continue;
            }
            lists.push(self.linearise(&base.0, base.1, &trail));
            direct.push(base);
        }
        lists.push(direct);
        let mut order = vec![itself];
        while order.len() < MAX_BASES {
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
        let mut known = self.linearised.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(key, order.clone());
        order
    }

    /// The bases of a class that lead to no class, as they are written: what those have, nobody knows.
    pub(super) fn unknown_bases(&self, source: &Arc<Source>, class: usize) -> Vec<String> {
        let definition = &source.outline.definitions[class];
        let trail = Trail::default();
        let is_unknown = |base: &&String| {
            let found = self.dotted(source, definition.parent, base, &trail);
            !found.iter().any(|reached| self.as_class(reached, &trail).is_some() || is_special(reached))
        };
        definition.bases.iter().filter(is_unknown).cloned().collect()
    }

    /// The class that a result is, aliases followed.
    fn as_class(&self, reached: &Reached, trail: &Trail) -> Option<ClassRef> {
        let Found::Definition { source, group, .. } = &reached.found else { return None };
        // A name may be bound in several branches, and only in one of them to a class that can be found.
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

/// Whether it is one of the special forms that can stand for a base, such as `Protocol`: they have no members.
fn is_special(reached: &Reached) -> bool {
    let Found::Definition { source, .. } = &reached.found else { return false };
    matches!(source.module.name.as_str(), "typing" | "typing_extensions")
}

fn same_class(a: &ClassRef, b: &ClassRef) -> bool {
    a.1 == b.1 && a.0.document.path == b.0.document.path
}
