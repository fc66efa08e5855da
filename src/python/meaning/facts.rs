//! What one file tells of its names, by itself.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::reader;
use crate::digest::Digest;
use crate::path::AbsPath;
use crate::python::digest_cache::{DigestCache, MemorySize};
use crate::workspace::files::Document;

/// Something that a file refers to by a name or a dotted name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reference {
    /// A class of the file, as an index into [`Facts::classes`].
    Class(u32),
    /// The class around a method, whatever decorators make of it; with the decorators of the method, of which none may be one
    /// that takes the object away from it.
    Around(u32, Vec<Self>),
    /// A function of the file that no decorator makes something else of.
    Function,
    /// What calling a class makes.
    Made(Box<Self>, Given),
    /// A constant, or a list, a dictionary or a set of constants.
    Display,
    /// What something has under the first name, what that has under the second, and so on.
    Path(Box<Self>, Vec<String>),
    /// A name that the file binds nowhere.
    Builtin,
    /// What an import names.
    Import(Origin),
    /// What the `import *` of the file may give under this name, if anything.
    Star(String),
}

/// What an import names, and what is taken of that.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Origin {
    /// The number of leading dots.
    pub(super) level: usize,
    /// The module after the dots, possibly empty.
    pub(super) module: String,
    /// The names from there on; none for the module itself.
    pub(super) names: Vec<String>,
}

/// What a class is called with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Given {
    Nothing,
    Something,
}

/// What is asked of something that is referred to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Role {
    /// Its attributes.
    Object,
    /// Its parameters.
    Called,
    /// What it makes of a function.
    Decorator,
}

/// Something that has to be declared for another thing to be.
pub(super) type Claim = (Reference, Role);

/// What a name of a module is bound to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Bound {
    Class(u32),
    Function,
    Import(Origin),
    /// What calling a class makes.
    Made(Reference, Given),
    /// A constant, or a list, a dictionary or a set of constants.
    Display,
    /// Another name of what something refers to.
    Alias(Reference),
    /// A variable whose type is written beside it.
    Typed,
    /// Anything else.
    Unknown,
}

/// How a class makes its instances, from what is surely known to what is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Constructor {
    /// Of anything.
    Plain,
    /// The types of what it is given are looked at: where they are wrong, nothing is known of what it makes.
    Typed,
    /// It makes what it says itself.
    New,
    /// By something that may be anything.
    Changed,
}

/// A class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Class {
    /// Its bases; `None` where one is no dotted name.
    pub(super) bases: Option<Vec<Reference>>,
    /// The metaclass that it names, in the same way.
    pub(super) metaclass: Option<Vec<Reference>>,
    /// Its decorators; `None` where one is no dotted name, nor a call of one.
    pub(super) decorators: Option<Vec<Reference>>,
    pub(super) constructor: Constructor,
    /// Whether a base or a type parameter stands in brackets: what it inherits may be of any types.
    pub(super) is_generic: bool,
    /// The names that its body binds, each as [`hash_of`] says, in order, and what to; `None` where one of the bases is a builtin
    /// that has names of its own.
    pub(super) members: Option<Vec<(u64, Member)>>,
}

/// What the body of a class binds a name to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Member {
    /// A function that no decorator makes something else of; in a stub, anything that is declared.
    Function,
    Unknown,
    Bound(Box<Bound>),
}

/// The only place of a file where something is assigned to an attribute of some name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Set {
    /// The class in one of whose methods it is, on the method's first parameter.
    pub(super) class: u32,
    pub(super) bound: Bound,
}

/// What is kept of a name where all that counts is whether it is there.
pub(super) fn hash_of(name: &str) -> u64 {
    let digest = Digest::of(name.as_bytes());
    digest.as_bytes().iter().take(8).fold(0, |hash, byte| hash << 8 | u64::from(*byte))
}

/// How the claims of a name are called for which there are none to make: it is inferred.
pub(super) const INFERRED: u32 = u32::MAX;

/// What one file tells of its names.
#[derive(Debug, Default, Clone)]
pub(super) struct Facts {
    /// Where attributes and keyword arguments begin, in order, each with an index into `claims` or [`INFERRED`]; the parts of
    /// dotted names too. `None` where the syntax is broken: then what a name is, and what binds a name, may be hidden.
    pub(super) hanging: Option<Vec<(u32, u32)>>,
    /// Where the names of functions begin that are decorated by anything but builtins, in order, and what has to be declared for
    /// what becomes of them to be.
    pub(super) decorated: Vec<(u32, u32)>,
    /// Sets of claims; the first is empty.
    pub(super) claims: Vec<Vec<Claim>>,
    /// In source order.
    pub(super) classes: Vec<Class>,
    /// The attributes that something is assigned to, of whatever it is, as [`hash_of`] says, and what to; `None` where that is
    /// not known.
    pub(super) set: BTreeMap<u64, Option<Box<Set>>>,
    /// The names of which a scope of the file says that they belong elsewhere, as [`hash_of`] says, in order.
    pub(super) elsewhere: Vec<u64>,
    /// What the names of the module are bound to, all places together.
    pub(super) top: BTreeMap<String, Vec<Bound>>,
    /// The modules of its `import *`.
    pub(super) stars: Vec<Origin>,
}

/// What was read last of sources.
static SOURCES: DigestCache<Facts> = DigestCache::new();

/// What was read last of stubs.
static STUBS: DigestCache<Facts> = DigestCache::new();

impl Facts {
    /// Reads a document, or remembers it.
    pub(super) fn of(document: &Document) -> Arc<Self> {
        let is_stub = is_stub(&document.path);
        let known = if is_stub { &STUBS } else { &SOURCES };
        known.get(document.digest, || reader::read(&document.text, is_stub))
    }
}

/// Whether a file is read as a stub: then what it says is declared.
pub(super) fn is_stub(file: &AbsPath) -> bool {
    file.as_str().ends_with(".pyi")
}

impl MemorySize for Facts {
    fn memory_bytes(&self) -> usize {
        /// What the texts of a claim, a class or a name take.
        const TEXTS: usize = 96;
        /// What a member takes, some of them with what they are bound to.
        const MEMBER: usize = size_of::<(u64, Member)>() + 8;
        let claims: usize =
            self.claims.iter().map(|claims| claims.len() * (size_of::<Claim>() + TEXTS)).sum();
        let classes = self.classes.iter().map(|class| {
            let bases = class.bases.iter().chain(&class.metaclass).map(Vec::len).sum::<usize>();
            let decorators = class.decorators.as_ref().map_or(0, Vec::len);
            let members = class.members.as_ref().map_or(0, Vec::len) * MEMBER;
            size_of::<Class>() + (bases + decorators) * TEXTS + members
        });
        let hanging = self.hanging.as_ref().map_or(0, |hanging| hanging.len() * size_of::<(u32, u32)>());
        let bounds: usize =
            self.top.values().map(|bounds| TEXTS + bounds.len() * (size_of::<Bound>() + TEXTS)).sum();
        let decorated = self.decorated.len() * size_of::<(u32, u32)>();
        size_of::<Self>()
            + hanging
            + decorated
            + claims
            + classes.sum::<usize>()
            + bounds
            + self.stars.len() * TEXTS
            + self.set.len() * MEMBER
    }
}
