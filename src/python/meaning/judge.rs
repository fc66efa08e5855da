//! Whether what a file refers to is declared where other files define it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::facts::{Bound, Claim, Class, Constructor, Facts, Given, Origin, Reference, Role, is_stub};
use crate::path::AbsPath;
use crate::python::modules::{ImportRoots, Module};
use crate::workspace::files::Files;

/// How many imports are followed one after the other.
const MAX_DEPTH: usize = 64;

/// A class as its file and its index in the file's facts.
pub(super) type ClassRef = (AbsPath, u32);

/// What a reference leads to.
#[derive(Debug, Clone)]
pub(super) enum Target {
    Module(Module),
    Class(ClassRef),
    /// An instance of a class.
    Instance(ClassRef),
    Function,
    /// A function or a variable of a stub that the server ships, or a display.
    Declared,
}

/// What a file binds a name to.
#[derive(Debug, Clone)]
enum Named {
    Nothing,
    Unknown,
    All(Vec<Target>),
}

/// A class and everything that it inherits from, each with whether it is that by a metaclass; `None` where that is not known.
pub(super) type Line = Option<Arc<Vec<(ClassRef, bool)>>>;

/// What was found out, for as long as no file is another one.
#[derive(Debug, Default)]
pub struct Found(Mutex<Memory>);

#[derive(Debug, Default)]
struct Memory {
    origins: BTreeMap<(AbsPath, Origin), Option<Vec<Target>>>,
    named: BTreeMap<Step, Named>,
    lines: BTreeMap<ClassRef, Line>,
    members: BTreeMap<(ClassRef, String), Option<Vec<Target>>>,
}

impl Found {
    /// Forgets everything: it was found in another state of the files.
    pub fn forget(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Memory::default();
    }
}

/// A name of a file that is being followed, or a class.
pub(super) type Step = (AbsPath, String);

/// What is being followed, so that a circle ends. What is cut off for that is not known to be declared.
pub(super) type Trail = Vec<Step>;

/// Follows references through the files of a workspace.
pub(super) struct Judge<'a> {
    pub(super) files: &'a dyn Files,
    pub(super) roots: &'a ImportRoots,
    pub(super) found: &'a Found,
    /// The facts of the files that were looked at.
    pub(super) seen: RefCell<BTreeMap<AbsPath, Option<Arc<Facts>>>>,
}

impl Judge<'_> {
    /// Whether all claims that a file makes hold.
    pub(super) fn hold(&self, file: &AbsPath, claims: &[Claim]) -> bool {
        claims.iter().all(|(reference, role)| {
            let targets = self.targets(file, reference, &mut Trail::new());
            targets.is_some_and(|targets| targets.iter().all(|target| self.plays(target, *role)))
        })
    }

    fn plays(&self, target: &Target, role: Role) -> bool {
        let (class, worst) = match (target, role) {
            (Target::Declared, Role::Decorator) => return true,
            // An instance of it.
            (Target::Class(class), Role::Decorator) => (class, Some(Constructor::Typed)),
            (_, Role::Decorator) => return false,
            (Target::Module(_) | Target::Function | Target::Declared, _) => return true,
            (Target::Class(class) | Target::Instance(class), Role::Object) => (class, None),
            (Target::Class(class), Role::Called) => (class, Some(Constructor::New)),
            (Target::Instance(_), Role::Called) => return false,
        };
        let line = self.line(class, &mut Trail::new());
        line.is_some_and(|line| worst.is_none_or(|worst| self.make(&line, worst)))
    }

    /// Whether classes are no worse at making instances of the first of them. What a metaclass makes are classes; only when those
    /// are called plays it a part.
    fn make(&self, line: &[(ClassRef, bool)], worst: Constructor) -> bool {
        line.iter().all(|(class, is_meta)| self.makes(class, if *is_meta { Constructor::New } else { worst }))
    }

    /// Whether a class is no worse at making its instances.
    fn makes(&self, class: &ClassRef, worst: Constructor) -> bool {
        self.stated(class, |class| class.constructor <= worst).unwrap_or_default()
    }

    /// What the statement of a class says.
    pub(super) fn stated<T>(&self, class: &ClassRef, look: impl FnOnce(&Class) -> T) -> Option<T> {
        let facts = self.facts(&class.0)?;
        facts.classes.get(class.1 as usize).map(look)
    }

    /// Whether a method that is decorated by this is surely called on an object or a class.
    fn binds(&self, file: &AbsPath, decorator: &Reference, trail: &mut Trail) -> bool {
        // One of the builtins is `staticmethod`, by whatever name.
        let is_builtins = |file: &AbsPath| self.roots.is_shipped(file) && file.file_name() == "builtins.pyi";
        let targets = self.targets(file, decorator, trail);
        targets.is_some_and(|targets| {
            targets.iter().all(|target| match target {
                Target::Class((file, _)) => !is_builtins(file),
                Target::Instance(_) | Target::Function | Target::Declared => true,
                Target::Module(_) => false,
            })
        })
    }

    /// Everything that a reference may lead to; `None` where that is not known.
    pub(super) fn targets(
        &self,
        file: &AbsPath,
        reference: &Reference,
        trail: &mut Trail,
    ) -> Option<Vec<Target>> {
        match reference {
            Reference::Class(number) => self.named_class((file.clone(), *number), trail),
            Reference::Around(number, binders) => {
                let bind = binders.iter().all(|binder| self.binds(file, binder, trail));
                bind.then(|| vec![Target::Class((file.clone(), *number))])
            }
            Reference::Function => Some(vec![Target::Function]),
            Reference::Made(class, given) => self.instances(file, class, *given, trail),
            Reference::Display => Some(vec![Target::Declared]),
            Reference::Builtin => Some(Vec::new()),
            Reference::Path(start, names) => {
                let start = self.targets(file, start, trail)?;
                names.iter().try_fold(start, |at, name| self.have(&at, name, trail))
            }
            Reference::Import(origin) => self.origin(file, origin, trail),
            Reference::Star(name) => {
                let facts = self.facts(file)?;
                match self.starred(file, &facts, name, trail) {
                    Named::Nothing => Some(Vec::new()),
                    Named::Unknown => None,
                    Named::All(targets) => Some(targets),
                }
            }
        }
    }

    /// What calling a class makes.
    fn instances(
        &self,
        file: &AbsPath,
        class: &Reference,
        given: Given,
        trail: &mut Trail,
    ) -> Option<Vec<Target>> {
        let classes = self.targets(file, class, trail).filter(|classes| !classes.is_empty())?;
        let instance = |class| match class {
            Target::Class(class) if self.makes_instances(&class, given, trail) => {
                Some(Target::Instance(class))
            }
            _ => None,
        };
        classes.into_iter().map(instance).collect()
    }

    /// Whether calling a class surely makes an instance of it.
    fn makes_instances(&self, class: &ClassRef, given: Given, trail: &mut Trail) -> bool {
        let Some(line) = self.line(class, trail) else { return false };
        match given {
            Given::Nothing => self.make(&line, Constructor::Typed),
            Given::Something => {
                let mut own = line.iter().filter(|(_, is_meta)| !is_meta);
                self.make(&line, Constructor::Plain)
                    && own.all(|(class, _)| self.is_made_by_itself(class, trail))
            }
        }
    }

    /// Whether nothing but the class statement itself says what a class is made of: a decorator or a special form may make a
    /// constructor of its fields and their types.
    pub(super) fn is_made_by_itself(&self, class: &ClassRef, trail: &mut Trail) -> bool {
        let is_shipped = self.roots.is_shipped(&class.0);
        let is_undecorated =
            |class: &Class| is_shipped || class.decorators.as_ref().is_some_and(Vec::is_empty);
        self.stated(class, is_undecorated).unwrap_or_default() && self.has_class_bases(class, trail)
    }

    /// Whether all bases of a class are classes: a special form may give it anything.
    pub(super) fn has_class_bases(&self, class: &ClassRef, trail: &mut Trail) -> bool {
        let Some(bases) = self.stated(class, |stated| stated.bases.clone()).flatten() else { return false };
        bases.iter().all(|base| {
            let targets = self.targets(&class.0, base, trail);
            targets.is_some_and(|targets| !targets.iter().any(|target| matches!(target, Target::Declared)))
        })
    }

    /// What the name of a class means: it, unless one of its decorators is not declared to give it back.
    fn named_class(&self, class: ClassRef, trail: &mut Trail) -> Option<Vec<Target>> {
        if self.roots.is_shipped(&class.0) {
            return Some(vec![Target::Class(class)]);
        }
        let decorators = self.stated(&class, |stated| stated.decorators.clone())??;
        let made = self.further((class.0.clone(), format!("@{}", class.1)), trail, |trail| {
            let mut made = decorators.iter().map(|decorator| self.targets(&class.0, decorator, trail));
            made.all(|made| made.is_some_and(|made| made.iter().all(|one| matches!(one, Target::Declared))))
        });
        made?.then(|| vec![Target::Class(class)])
    }

    /// Goes one step further, unless that would be a circle or too deep.
    fn further<T>(&self, step: Step, trail: &mut Trail, go: impl FnOnce(&mut Trail) -> T) -> Option<T> {
        if trail.contains(&step) || trail.len() >= MAX_DEPTH {
            return None;
        }
        trail.push(step);
        let reached = go(trail);
        trail.pop();
        Some(reached)
    }

    /// What an import of a file leads to.
    fn origin(&self, importer: &AbsPath, origin: &Origin, trail: &mut Trail) -> Option<Vec<Target>> {
        let key = (importer.clone(), origin.clone());
        if let Some(known) = self.memory(|memory| memory.origins.get(&key).cloned()) {
            return known;
        }
        let found = self.follow(importer, origin, trail);
        self.memory(|memory| memory.origins.insert(key, found.clone()));
        found
    }

    fn follow(&self, importer: &AbsPath, origin: &Origin, trail: &mut Trail) -> Option<Vec<Target>> {
        let Some(module) = self.module(importer, origin) else {
            // What `import` gives is a module, or nothing that anybody knows of.
            return origin.names.is_empty().then(Vec::new);
        };
        let mut names = origin.names.iter();
        let mut at = vec![Target::Module(module.clone())];
        if module.source.as_ref().or(module.stub.as_ref()) == Some(importer) {
            // `from . import sub` in the package itself means the submodule.
            at = match names.next() {
                Some(name) => vec![Target::Module(self.roots.submodule(self.files, &module, name)?)],
                None => at,
            };
        }
        names.try_fold(at, |at, name| self.have(&at, name, trail))
    }

    /// What all of some things have under a name.
    fn have(&self, all: &[Target], name: &str, trail: &mut Trail) -> Option<Vec<Target>> {
        let mut found = Vec::new();
        for target in all {
            match target {
                Target::Module(module) => found.extend(self.of_module(module, name, trail)?),
                // Of what a class does not have nobody knows anything, whatever was inferred.
                Target::Class(class) if self.lacks(class, name, trail) => {}
                Target::Class(class) | Target::Instance(class) => {
                    found.extend(self.known_member(class, name, trail)?);
                }
                Target::Function | Target::Declared => return None,
            }
        }
        Some(found)
    }

    fn module(&self, importer: &AbsPath, origin: &Origin) -> Option<Module> {
        match origin.level {
            0 => self.roots.import(self.files, &origin.module, importer),
            level => self.roots.relative(self.files, level, &origin.module, importer),
        }
    }

    /// What a name of a module is: bound in the file that the server reads for it, or a submodule.
    fn of_module(&self, module: &Module, name: &str, trail: &mut Trail) -> Option<Vec<Target>> {
        let bound = match module.stub.as_ref().or(module.source.as_ref()) {
            Some(file) => self.of_file(file, name, trail),
            None => Named::Nothing,
        };
        match bound {
            Named::All(targets) => Some(targets),
            Named::Unknown => None,
            Named::Nothing => {
                module.folder.as_ref()?;
                Some(vec![Target::Module(self.roots.submodule(self.files, module, name)?)])
            }
        }
    }

    /// What a file binds a name to, its `import *` included.
    fn of_file(&self, file: &AbsPath, name: &str, trail: &mut Trail) -> Named {
        let key = (file.clone(), name.to_owned());
        if let Some(known) = self.memory(|memory| memory.named.get(&key).cloned()) {
            return known;
        }
        let named = self.further(key.clone(), trail, |trail| self.bound_in(file, name, trail));
        let Some(named) = named else { return Named::Unknown };
        self.memory(|memory| memory.named.insert(key, named.clone()));
        named
    }

    fn bound_in(&self, file: &AbsPath, name: &str, trail: &mut Trail) -> Named {
        let Some(facts) = self.facts(file) else { return Named::Unknown };
        let starred = match self.starred(file, &facts, name, trail) {
            Named::Unknown => return Named::Unknown,
            Named::Nothing => None,
            Named::All(targets) => Some(targets),
        };
        let Some(bounds) = facts.top.get(name) else {
            return starred.map_or(Named::Nothing, Named::All);
        };
        let mut all = starred.unwrap_or_default();
        for bound in bounds {
            match self.what(file, bound, trail) {
                Some(targets) => all.extend(targets),
                None => return Named::Unknown,
            }
        }
        Named::All(all)
    }

    fn known_member(&self, class: &ClassRef, name: &str, trail: &mut Trail) -> Option<Vec<Target>> {
        let key = (class.clone(), name.to_owned());
        if let Some(known) = self.memory(|memory| memory.members.get(&key).cloned()) {
            return known;
        }
        let step = (class.0.clone(), format!("class {}.{name}", class.1));
        let member = self.further(step, trail, |trail| self.member(class, name, trail))?;
        self.memory(|memory| memory.members.insert(key, member.clone()));
        member
    }

    /// What something is that a name of a file is bound to.
    pub(super) fn what(&self, file: &AbsPath, bound: &Bound, trail: &mut Trail) -> Option<Vec<Target>> {
        match bound {
            Bound::Class(number) => self.named_class((file.clone(), *number), trail),
            Bound::Function if !is_stub(file) => Some(vec![Target::Function]),
            Bound::Display => Some(vec![Target::Declared]),
            // Another one may declare it to be of a class that has to be inferred.
            Bound::Function | Bound::Typed => self.roots.is_shipped(file).then(|| vec![Target::Declared]),
            Bound::Import(origin) => self.origin(file, origin, trail),
            Bound::Made(class, given) => self.instances(file, class, *given, trail),
            Bound::Alias(reference) => self.targets(file, reference, trail),
            Bound::Unknown => None,
        }
    }

    /// What the `import *` of a file may give under a name.
    fn starred(&self, file: &AbsPath, facts: &Facts, name: &str, trail: &mut Trail) -> Named {
        let mut all = Vec::new();
        for star in &facts.stars {
            let Some(module) = self.module(file, star) else { return Named::Unknown };
            let Some(from) = module.stub.as_ref().or(module.source.as_ref()) else { continue };
            match self.of_file(from, name, trail) {
                Named::Nothing => {}
                Named::Unknown => return Named::Unknown,
                Named::All(targets) => all.extend(targets),
            }
        }
        if all.is_empty() { Named::Nothing } else { Named::All(all) }
    }

    /// A class and everything that it inherits from, its metaclass included; `None` where one of them is not known.
    pub(super) fn line(&self, class: &ClassRef, trail: &mut Trail) -> Line {
        if let Some(known) = self.memory(|memory| memory.lines.get(class).cloned()) {
            return known;
        }
        let step = (class.0.clone(), format!("class {}", class.1));
        let line = self.further(step, trail, |trail| self.inherited(class, trail))?.map(Arc::new);
        self.memory(|memory| memory.lines.insert(class.clone(), line.clone()));
        line
    }

    fn inherited(&self, class: &ClassRef, trail: &mut Trail) -> Option<Vec<(ClassRef, bool)>> {
        let mut line = vec![(class.clone(), false)];
        let (bases, metaclass) =
            self.stated(class, |stated| stated.bases.clone().zip(stated.metaclass.clone()))??;
        let above =
            bases.into_iter().map(|base| (base, false)).chain(metaclass.into_iter().map(|meta| (meta, true)));
        for (reference, is_meta) in above {
            for target in self.targets(&class.0, &reference, trail)? {
                match target {
                    Target::Module(_) | Target::Function | Target::Instance(_) => return None,
                    Target::Declared => {}
                    Target::Class(base) => {
                        for (above, is_metas) in self.line(&base, trail)?.iter() {
                            let above = (above.clone(), is_meta || *is_metas);
                            if !line.contains(&above) {
                                line.push(above);
                            }
                        }
                    }
                }
            }
        }
        Some(line)
    }

    /// What a file tells of its names; `None` where it cannot be read or its syntax is broken.
    pub(super) fn facts(&self, file: &AbsPath) -> Option<Arc<Facts>> {
        if let Some(known) = self.seen.borrow().get(file) {
            return known.clone();
        }
        let facts = self.files.read(file).ok().map(|document| Facts::of(&document));
        let facts = facts.filter(|facts| facts.hanging.is_some());
        self.seen.borrow_mut().insert(file.clone(), facts.clone());
        facts
    }

    fn memory<T>(&self, look: impl FnOnce(&mut Memory) -> T) -> T {
        look(&mut self.found.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
