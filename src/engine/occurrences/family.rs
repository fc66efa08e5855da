//! The classes around the class of a member, and how a call that names one of them can reach it.

use std::collections::{BTreeMap, BTreeSet};

use super::super::context::RequestContext;
use super::files_with;
use super::symbol::{Reach, SearchedSymbol};
use crate::lsp::Profile;
use crate::path::AbsPath;
use crate::python::classes::{Class, ClassId, Classes, DefinitionInfo};
use crate::python::hierarchy::Relation;
use crate::python::outline::Outline;
use crate::python::stdlib::is_stdlib;
use crate::workspace::files::Files as _;

/// Modules whose classes are often written as bases under another module's name: `typing.Mapping` is
/// `collections.abc.Mapping`.
const ABSTRACT_MODULES: [&str; 4] = ["typing", "typing_extensions", "collections.abc", "_collections_abc"];

/// Classes of `typing` with which files are annotated, whatever class they are of.
const FILES: [&str; 3] = ["IO", "TextIO", "BinaryIO"];

/// Members of a file, of which a class that replaces one has at least [`FILE_MEMBERS`].
const OF_FILES: [&str; 9] =
    ["read", "write", "close", "flush", "readline", "readlines", "seek", "writelines", "fileno"];
const FILE_MEMBERS: usize = 2;

/// Bases that bring no member that calls go through.
const WITHOUT_MEMBERS: [&str; 6] = ["object", "Generic", "Protocol", "ABC", "NamedTuple", "TypedDict"];

/// Classes from which none can be derived, or from which a class would be written with that base.
const PLAIN_TYPES: [&str; 5] = ["bool", "NoneType", "ModuleType", "FunctionType", "MethodType"];

/// What is derived from what, around the class of a member.
pub(super) struct Family {
    /// The class itself, and its declaration in a stub.
    pub(super) own: BTreeSet<ClassId>,
    above: BTreeSet<ClassId>,
    below: BTreeSet<ClassId>,
    /// Other classes from which one below is derived too.
    beside: BTreeSet<ClassId>,
    /// The members that the class has, inherited ones included; for a name of a module, the names of that.
    members: BTreeSet<String>,
    /// The last names of the bases as they are written, in the class and above.
    bases: BTreeSet<String>,
    /// Whether the stubs of the standard library cannot be searched and a base is of them or unknown, so that it is not known
    /// which classes of the standard library are above.
    has_hidden_base: bool,
    /// Whether a base class cannot be found: an object of another package may be one of the class.
    pub(super) has_unknown_base: bool,
    /// Whether there are more subclasses than were looked at.
    pub(super) is_cut: bool,
    /// Whether a class of the family names a metaclass, whose methods may assign members of it.
    pub(super) has_metaclass: bool,
    /// Whether the objects of the class are classes, whose members its methods may assign.
    pub(super) is_of_metaclass: bool,
    /// The names of classes with which one of the family is registered as a virtual subclass.
    registrars: BTreeSet<String>,
    /// The class of the member.
    class: Option<Class>,
    /// The names of it and of its subclasses.
    names: BTreeSet<String>,
}

impl Family {
    /// The family of the class whose member the symbol is; one without classes for any other symbol.
    pub(super) fn of(cx: &RequestContext<'_>, classes: &Classes<'_>, symbol: &SearchedSymbol) -> Self {
        let mut family = Self {
            own: BTreeSet::new(),
            above: BTreeSet::new(),
            below: BTreeSet::new(),
            beside: BTreeSet::new(),
            members: BTreeSet::new(),
            bases: BTreeSet::new(),
            has_hidden_base: false,
            has_unknown_base: false,
            is_cut: false,
            has_metaclass: false,
            is_of_metaclass: false,
            registrars: BTreeSet::new(),
            class: None,
            names: BTreeSet::new(),
        };
        let mut own: BTreeMap<ClassId, Class> = BTreeMap::new();
        for (path, offset) in &symbol.definitions {
            if let Some(class) = classes.defined_at(path, *offset).and_then(|defined| defined.class) {
                own.entry(class.id()).or_insert(class);
            }
        }
        if matches!(symbol.reach, Reach::Global) {
            let of_module = |(path, _): &(AbsPath, usize)| cx.state.files.read(path).ok();
            for document in symbol.definitions.iter().filter_map(of_module) {
                let names = &Outline::parse(&document.text).definitions;
                family
                    .members
                    .extend(names.iter().filter(|one| one.parent.is_none()).map(|one| one.name.clone()));
            }
        }
        for class in own.values() {
            family.has_unknown_base |= classes.has_unknown_base(class);
            family.has_metaclass |= classes.has_metaclass(class);
            family.is_of_metaclass |= classes.is_metaclass(class);
            for above in classes.with_ancestors(class) {
                family.members.extend(above.member_names().into_iter().map(str::to_owned));
                let last = |base: &String| base.rsplit('.').next().unwrap_or_default().to_owned();
                family.bases.extend(above.bases().iter().map(last));
                if above.id() != class.id() {
                    family.above.insert(above.id());
                }
            }
            let below = classes.subclasses(class, &|name| files_with(cx, name));
            family.is_cut |= below.is_cut;
            family.names.extend(below.names);
            family.registrars.extend(below.registrars);
            family.class = Some(class.clone());
            for derived in below.classes {
                // An object that is declared as a protocol, or as a base that is not installed, may be of a derived class.
                family.members.extend(derived.member_names().into_iter().map(str::to_owned));
                family.has_unknown_base |= classes.has_unknown_base(&derived);
                family.has_metaclass |= classes.has_metaclass(&derived);
                family.beside.extend(classes.ancestors(&derived).iter().map(Class::id));
                family.registrars.extend(derived.registrars().map(str::to_owned));
                family.below.insert(derived.id());
            }
            family.registrars.extend(class.registrars().map(str::to_owned));
        }
        if Profile::of(cx.settings.server).hides_stubs {
            let ours = own.values().cloned().chain(own.values().flat_map(|class| classes.ancestors(class)));
            let ours: BTreeSet<String> = ours
                .filter(|class| cx.state.is_in_workspace(&class.document().path))
                .map(|class| class.name().to_owned())
                .collect();
            let is_hidden = |base: &String| !ours.contains(base) && !WITHOUT_MEMBERS.contains(&base.as_str());
            family.has_hidden_base = family.bases.iter().any(is_hidden);
        }
        family.own = own.into_keys().collect();
        let other = |id: &ClassId| {
            !family.own.contains(id) && !family.above.contains(id) && !family.below.contains(id)
        };
        family.beside = family.beside.iter().filter(|id| other(id)).cloned().collect();
        family
    }

    /// How a class is related to the class of the member; `None` when it is not in the family.
    pub(super) fn relation(&self, class: &ClassId) -> Option<Relation> {
        if self.above.contains(class) {
            Some(Relation::Base)
        } else if self.below.contains(class) {
            Some(Relation::Derived)
        } else if self.beside.contains(class) {
            Some(Relation::Sibling)
        } else {
            None
        }
    }

    /// Whether a class outside of the family may be a subclass, because a base of it is computed.
    pub(super) fn may_be_below(&self, classes: &Classes<'_>, class: &Class) -> bool {
        let is_known = self.is_own(&class.id()) || self.relation(&class.id()).is_some();
        !is_known && self.class.as_ref().is_some_and(|of| classes.may_be_subclass(class, of, &self.names))
    }

    /// Whether a class that the search for subclasses did not find may inherit from the member's class: a base of it is computed, or
    /// is written with another name.
    pub(super) fn may_inherit(&self, classes: &Classes<'_>, class: &Class) -> bool {
        let is_known = self.is_own(&class.id()) || self.relation(&class.id()).is_some();
        let inherits = || self.class.as_ref().is_some_and(|own| classes.inherits(class, &own.id()));
        !is_known && (inherits() || self.may_be_below(classes, class))
    }

    /// Whether the member's class may be a subclass of another one, because a base of it is computed. `names` are those of the other
    /// class and its subclasses.
    pub(super) fn may_be_derived_from(
        &self,
        classes: &Classes<'_>,
        other: &Class,
        names: &BTreeSet<String>,
    ) -> bool {
        self.class.as_ref().is_some_and(|own| classes.may_be_subclass(own, other, names))
    }

    /// Whether it is the class of the member.
    pub(super) fn is_own(&self, class: &ClassId) -> bool {
        self.own.contains(class)
    }

    /// Whether what is declared as an object of a class may be one of the family: the class is of the family, or an interface.
    pub(super) fn may_be_declared_as(&self, classes: &Classes<'_>, class: &Class) -> bool {
        let id = class.id();
        self.is_own(&id)
            || self.relation(&id).is_some()
            || classes.is_protocol(class)
            || ABSTRACT_MODULES.contains(&id.module.as_str())
    }

    /// Whether a use of another definition can reach the member when the program runs: the object may be of a class that
    /// has the member in that place.
    pub(super) fn dispatches(&self, classes: &Classes<'_>, defined: &DefinitionInfo) -> Dispatch {
        let Some(class) = &defined.class else { return Dispatch::Never };
        if matches!(self.relation(&class.id()), Some(Relation::Base | Relation::Sibling)) {
            return Dispatch::Nominal;
        }
        let id = class.id();
        if self.relation(&id).is_some() {
            return Dispatch::Never;
        }
        if classes.is_protocol(class) {
            let mut missing = class.member_names();
            missing.retain(|name| !self.members.contains(*name) && !OF_ALL_CLASSES.contains(name));
            // A decorator may make them, or a base outside of the workspace have them.
            let are_special = missing.iter().all(|name| name.starts_with("__") && name.ends_with("__"));
            let is_of_class = !self.own.is_empty();
            return match missing.is_empty() {
                true if is_of_class => Dispatch::Structural,
                // A module can be passed on in its place.
                true => Dispatch::Unknown(id.name),
                false if is_of_class && are_special => Dispatch::Unknown(id.name),
                false => Dispatch::Never,
            };
        }
        if self.own.is_empty() {
            return Dispatch::Never;
        }
        if self.registrars.contains(class.name()) {
            return Dispatch::Unknown(id.name);
        }
        if ABSTRACT_MODULES.contains(&id.module.as_str()) && self.is_written_as(class.name()) {
            return Dispatch::Structural;
        }
        if self.has_hidden_base && is_stdlib(&id.module) && !PLAIN_TYPES.contains(&class.name()) {
            return Dispatch::Unknown(id.name);
        }
        let is_file = id.module == "typing" && FILES.contains(&class.name())
            || classes.ancestors(class).iter().any(|above| FILES.contains(&above.name()));
        let members = OF_FILES.iter().filter(|name| self.members.contains(**name)).count();
        let stands_in = members >= FILE_MEMBERS || self.members.contains("__getattr__");
        if is_file && stands_in { Dispatch::Unknown(id.name) } else { Dispatch::Never }
    }

    /// Whether a base is written with the name of an abstract class, or with that of one derived from it.
    fn is_written_as(&self, name: &str) -> bool {
        self.bases.contains(name)
            || self.bases.contains(&format!("Mutable{name}"))
            || (matches!(name, "Collection" | "Iterable" | "Container" | "Sized" | "Reversible")
                && ["Mapping", "MutableMapping", "Sequence", "MutableSequence", "Set", "MutableSet"]
                    .iter()
                    .any(|base| self.bases.contains(*base)))
    }
}

/// Members that every class has without defining them, and one that is none of a protocol.
const OF_ALL_CLASSES: [&str; 8] =
    ["__eq__", "__ne__", "__hash__", "__repr__", "__str__", "__init__", "__doc__", "__slots__"];

/// Whether a use of one definition can reach another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Dispatch {
    /// The object may be of the member's class, which inherits from the other definition's, or has a subclass in common with it.
    Nominal,
    /// The other definition's class describes an interface, which the member's class has without inheriting from it.
    Structural,
    /// The definition is of a class that describes an interface; its name.
    Unknown(String),
    Never,
}
