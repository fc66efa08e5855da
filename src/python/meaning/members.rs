//! What classes and their instances have under a name.

use super::facts::{Bound, Member, hash_of, is_stub};
use super::judge::{ClassRef, Judge, Target, Trail};

impl Judge<'_> {
    /// Whether a class surely has no attribute of this name.
    pub(super) fn lacks(&self, class: &ClassRef, name: &str, trail: &mut Trail) -> bool {
        /// What gives a class attributes that it does not have.
        const MAKERS: [&str; 3] = ["__getattr__", "__getattribute__", "__slots__"];
        // What every class has, every metaclass, and every exception.
        let is_everybodys =
            name.starts_with("__") || matches!(name, "mro" | "args" | "with_traceback" | "add_note");
        let Some(line) = self.line(class, trail).filter(|_| !is_everybodys) else { return false };
        line.iter().all(|(class, _)| {
            self.has_none(class, &MAKERS)
                && self.has_none(class, &[name])
                && self.is_made_by_itself(class, trail)
        })
    }

    /// What the instances of a class have under a name, or it: where one place alone binds it, whatever that is, or where all
    /// places do it by functions.
    pub(super) fn member(&self, class: &ClassRef, name: &str, trail: &mut Trail) -> Option<Vec<Target>> {
        let places = self.places_of(class, name, trail)?;
        let are_functions = places.iter().all(|(_, bound)| *bound == Bound::Function);
        (places.len() == 1 || are_functions).then_some(())?;
        let mut all = Vec::new();
        for (class, bound) in places {
            let is_alias = matches!(bound, Bound::Alias(_));
            for target in self.what(&class.0, &bound, trail)? {
                match &target {
                    Target::Class(class) => self.is_no_descriptor(class, trail),
                    Target::Instance(class) => !is_alias && self.is_no_descriptor(class, trail),
                    Target::Function | Target::Declared => !is_alias,
                    Target::Module(_) => false,
                }
                .then_some(())?;
                all.push(target);
            }
        }
        (!all.is_empty()).then_some(all)
    }

    /// The classes along a class's line that bind a name for their instances, and what to; `None` where others may.
    fn places_of(&self, class: &ClassRef, name: &str, trail: &mut Trail) -> Option<Vec<(ClassRef, Bound)>> {
        let line = self.line(class, trail)?;
        let hash = hash_of(name);
        // A metaclass may make something else of what the body of a class says, as that of an enumeration does.
        let is_as_said = !line.iter().any(|(_, is_meta)| *is_meta);
        let (mut places, mut is_generic) = (Vec::new(), false);
        for (class, is_meta) in line.iter() {
            self.has_class_bases(class, trail).then_some(())?;
            if *is_meta {
                self.has_none(class, &[name]).then_some(())?;
                continue;
            }
            let facts = self.facts(&class.0)?;
            let stated = facts.classes.get(class.1 as usize)?;
            is_generic |= stated.is_generic && !self.roots.is_shipped(&class.0);
            facts.elsewhere.binary_search(&hash).is_err().then_some(())?;
            let members = stated.members.as_ref()?;
            if let Ok(at) = members.binary_search_by_key(&hash, |(name, _)| *name) {
                let bound = match &members[at].1 {
                    Member::Function if is_as_said || !is_stub(&class.0) => &Bound::Function,
                    Member::Bound(bound) if is_as_said => &**bound,
                    _ => return None,
                };
                places.push((class.clone(), bound.clone()));
            }
            match facts.set.get(&hash) {
                Some(None) => return None,
                Some(Some(set)) if set.class == class.1 => places.push((class.clone(), set.bound.clone())),
                _ => {}
            }
        }
        // What a stub says of it may be in terms of what stands in the brackets.
        (!is_generic || !places.iter().any(|(class, _)| is_stub(&class.0))).then_some(places)
    }

    /// Whether neither the instances of a class nor the class say by themselves what they are as an attribute.
    fn is_no_descriptor(&self, class: &ClassRef, trail: &mut Trail) -> bool {
        const SAYERS: [&str; 2] = ["__get__", "__set__"];
        self.line(class, trail)
            .is_some_and(|line| line.iter().all(|(class, _)| self.has_none(class, &SAYERS)))
    }

    /// Whether a class by itself surely has none of these names.
    fn has_none(&self, class: &ClassRef, names: &[&str]) -> bool {
        let Some(facts) = self.facts(&class.0) else { return false };
        let members = facts.classes.get(class.1 as usize).and_then(|stated| stated.members.as_ref());
        members.is_some_and(|members| {
            names.iter().map(|name| hash_of(name)).all(|sought| {
                members.binary_search_by_key(&sought, |(name, _)| *name).is_err()
                    && facts.elsewhere.binary_search(&sought).is_err()
                    && !facts.set.contains_key(&sought)
            })
        })
    }
}
