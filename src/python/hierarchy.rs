//! The bases, derived classes and siblings of a class, and their members of given names.
//!
//! Bases come in Python's method resolution order, `object` last. Derived classes are the classes of the given files with a
//! base that, followed through imports, is the class or derived from it. Siblings are the other classes that derived
//! classes inherit from: `super()` finds their members too, and they may take precedence.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::bases::ClassRef;
use super::lookup::{Lookup, SourceFile, Trail};
use super::modules::{ImportRoots, Module, ModuleOrigin};
use super::outline::{DefinitionKind, Span};
use crate::path::AbsPath;
use crate::text::names::whole_names;
use crate::workspace::files::{Document, Files};

/// The relation of a class to the requested class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Relation {
    /// The class inherits from it.
    Base,
    /// It inherits from the class.
    Derived,
    /// A derived class inherits from both.
    Sibling,
}

/// A member of a base, derived class or sibling.
#[derive(Debug, Clone)]
pub struct Member {
    /// The file.
    pub document: Arc<Document>,
    /// The name token.
    pub name_span: Span,
    /// The class that has it.
    pub class: String,
    /// The relation of that class to the requested class.
    pub relation: Relation,
}

/// A base that cannot be found, so that its members are unknown.
#[derive(Debug, Clone)]
pub struct UnknownBase {
    /// The file of the class that names it.
    pub document: Arc<Document>,
    /// The name token of that class.
    pub class_span: Span,
    /// The base as it is written.
    pub base: String,
}

/// The classes related to a class.
#[derive(Debug, Clone, Default)]
pub struct Hierarchy {
    /// The requested members, by name, without duplicates.
    pub members: BTreeMap<String, Vec<Member>>,
    /// The names of the derived classes.
    pub below: BTreeSet<String>,
    /// Bases of the class and of related classes that cannot be found.
    pub unknown: Vec<UnknownBase>,
    /// Whether a limit was reached, so that classes may be missing.
    pub is_cut: bool,
}

/// Finds the members of these names in the classes related to the class whose name begins at `class` in a file. Derived classes
/// are searched in the files `below`.
#[must_use]
pub fn members(
    files: &dyn Files,
    roots: &ImportRoots,
    file: &AbsPath,
    class: usize,
    below: &[AbsPath],
    names: &[&str],
) -> Hierarchy {
    let lookup = Lookup::for_all_classes(files, roots);
    let Some(source) = source(&lookup, roots, file) else { return Hierarchy::default() };
    let Some(index) = class_at(&source, class) else { return Hierarchy::default() };
    let mut collection =
        HierarchyBuilder { lookup: &lookup, names, seen: BTreeSet::new(), found: Hierarchy::default() };
    let above = lookup.linearize(&source, index, &Trail::default());
    for (at, of) in above.iter().enumerate() {
        // Of the class itself only its bases matter.
        collection.add(of, (at > 0).then_some(Relation::Base));
    }
    if let Some(object) = lookup.object() {
        collection.add(&object, Some(Relation::Base));
    }
    let is_it = |(base, of): &ClassRef| *of == index && base.document.path == *file;
    for path in below {
        let Some(other) = self::source(&lookup, roots, path) else { continue };
        for (at, definition) in other.outline.definitions.iter().enumerate() {
            if definition.kind != DefinitionKind::Class || definition.bases.is_empty() {
                continue;
            }
            let order = lookup.linearize(&other, at, &Trail::default());
            if !order.iter().skip(1).any(is_it) {
                continue;
            }
            collection.found.below.insert(definition.name.clone());
            for class in &order {
                let inherits = lookup.linearize(&class.0, class.1, &Trail::default()).iter().any(is_it);
                collection.add(class, Some(if inherits { Relation::Derived } else { Relation::Sibling }));
            }
        }
    }
    let mut found = collection.found;
    found.is_cut = lookup.is_exhausted();
    found
}

/// Collects members and unknown bases.
struct HierarchyBuilder<'c> {
    lookup: &'c Lookup<'c>,
    names: &'c [&'c str],
    /// The visited classes, by file and index.
    seen: BTreeSet<(AbsPath, usize)>,
    found: Hierarchy,
}

impl HierarchyBuilder<'_> {
    /// Adds the members of a class if a relation is given, and its bases that cannot be found.
    fn add(&mut self, (source, index): &ClassRef, relation: Option<Relation>) {
        if !self.seen.insert((source.document.path.clone(), *index)) {
            return;
        }
        let class = source.outline.names(*index).join(".");
        let mut push = |name: &str, name_span: Span, class: String, relation| {
            self.found.members.entry(name.to_owned()).or_default().push(Member {
                document: source.document.clone(),
                name_span,
                class,
                relation,
            });
        };
        if let Some(relation) = relation {
            for (_, member) in source.outline.children(Some(*index)) {
                if self.names.contains(&member.name.as_str()) {
                    push(&member.name, member.name_span.clone(), class.clone(), relation);
                }
            }
        }
        let definition = &source.outline.definitions[*index];
        let mut unknown = Vec::new();
        for base in &definition.other_bases {
            let text = source.document.text.get(base.clone()).unwrap_or_default();
            if !makes_a_tuple(text) {
                unknown.push(text.lines().next().unwrap_or_default().to_owned());
                continue;
            }
            // `namedtuple('Pair', 'left right')`: the fields are words in strings.
            for name in self.names {
                for span in whole_names(text, name) {
                    let at = base.start + span.start..base.start + span.end;
                    push(name, at, class.clone(), relation.unwrap_or(Relation::Base));
                }
            }
        }
        // UnknownBase bases in the standard library and in stubs are ignored: the user cannot change them.
        if source.module.origin != ModuleOrigin::Stdlib && source.module.origin != ModuleOrigin::Stubs {
            unknown.extend(self.lookup.unknown_bases(source, *index));
        }
        let class_span = &definition.name_span;
        let document = &source.document;
        self.found.unknown.extend(unknown.into_iter().map(|base| UnknownBase {
            document: document.clone(),
            class_span: class_span.clone(),
            base,
        }));
    }
}

/// Whether an expression creates a named tuple class, which has no members but its fields.
fn makes_a_tuple(expression: &str) -> bool {
    let function = expression.split('(').next().unwrap_or_default().trim();
    matches!(function.rsplit('.').next(), Some("namedtuple" | "NamedTuple"))
}

fn source(lookup: &Lookup<'_>, roots: &ImportRoots, file: &AbsPath) -> Option<Arc<SourceFile>> {
    let name = roots.name_of(file).unwrap_or_default();
    let module = roots.find(lookup.files, &name).into_iter().find(|module| module.file() == Some(file));
    let module = module.unwrap_or_else(|| Module {
        name,
        source: Some(file.clone()),
        stub: None,
        folder: None,
        origin: ModuleOrigin::Workspace,
    });
    lookup.source(&module, file).ok()
}

fn class_at(source: &SourceFile, offset: usize) -> Option<usize> {
    source.outline.definitions.iter().position(|definition| {
        definition.kind == DefinitionKind::Class && definition.name_span.start == offset
    })
}
