//! Classes above and below one another: who inherits a member, and who has one of the same name.
//!
//! Above are the bases as Python linearises them. Below is every class of the given files of which a base, found by its
//! name and followed through imports, is the class or one below it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::lookup::{Lookup, Source, Trail};
use super::modules::{ImportRoots, Module, Origin};
use super::outline::{DefinitionKind, Imported, Span};
use crate::path::AbsPath;
use crate::workspace::files::{Document, Files};

/// A member of a class near another one.
#[derive(Debug, Clone)]
pub struct Member {
    /// The file.
    pub document: Arc<Document>,
    /// The name token.
    pub name_span: Span,
    /// The class that has it.
    pub class: String,
    /// Whether the class is below the one that was asked about.
    pub is_below: bool,
}

/// What stands above and below a class.
#[derive(Debug, Clone, Default)]
pub struct Hierarchy {
    /// The members that were asked for, by name.
    pub members: BTreeMap<String, Vec<Member>>,
    /// The names of the classes below.
    pub below: BTreeSet<String>,
}

/// Members of these names in the classes above and below the class whose name begins at `class` in a file. `below` are the
/// files in which classes below are looked for.
#[must_use]
pub fn members(
    files: &dyn Files,
    roots: &ImportRoots,
    file: &AbsPath,
    class: usize,
    below: &[AbsPath],
    names: &[&str],
) -> Hierarchy {
    let lookup = Lookup::new(files, roots);
    let mut found: BTreeMap<String, Vec<Member>> = BTreeMap::new();
    let mut names_below = BTreeSet::new();
    let Some(source) = source(&lookup, roots, file) else { return Hierarchy::default() };
    let Some(index) = class_at(&source, class) else { return Hierarchy::default() };
    let mut collect = |source: &Arc<Source>, index: usize, is_below: bool| {
        for (_, member) in source.outline.children(Some(index)) {
            if names.contains(&member.name.as_str()) {
                found.entry(member.name.clone()).or_default().push(Member {
                    document: source.document.clone(),
                    name_span: member.name_span.clone(),
                    class: source.outline.names(index).join("."),
                    is_below,
                });
            }
        }
    };
    for (base, index) in lookup.linearise(&source, index, &Trail::default()).into_iter().skip(1) {
        collect(&base, index, false);
    }
    for path in below {
        let Some(other) = self::source(&lookup, roots, path) else { continue };
        for (at, definition) in other.outline.definitions.iter().enumerate() {
            if definition.kind != DefinitionKind::Class || definition.bases.is_empty() {
                continue;
            }
            let order = lookup.linearise(&other, at, &Trail::default());
            let inherits = order.iter().skip(1).any(|(base, of)| *of == index && base.document.path == *file);
            if inherits {
                names_below.insert(definition.name.clone());
                collect(&other, at, true);
            }
        }
    }
    Hierarchy { members: found, below: names_below }
}

/// Whether one of the modules that a file imports, in whatever way, is one of `modules`.
#[must_use]
pub fn imports_any(files: &dyn Files, roots: &ImportRoots, file: &AbsPath, modules: &[AbsPath]) -> bool {
    let lookup = Lookup::new(files, roots);
    let Some(source) = source(&lookup, roots, file) else { return false };
    let leads = |module: &Module| {
        [&module.source, &module.stub].into_iter().flatten().any(|path| modules.contains(path))
    };
    source.outline.imports.iter().any(|import| {
        let module = if import.level > 0 {
            roots.relative(files, import.level, &import.module, file)
        } else {
            roots.import(files, &import.module, file)
        };
        let Some(module) = module else { return false };
        let named = match &import.what {
            Imported::Name(name) => roots.submodule(files, &module, name),
            _ => None,
        };
        leads(&module) || named.is_some_and(|module| leads(&module))
    })
}

fn source(lookup: &Lookup<'_>, roots: &ImportRoots, file: &AbsPath) -> Option<Arc<Source>> {
    let name = roots.name_of(file).unwrap_or_default();
    let module = roots.find(lookup.files, &name).into_iter().find(|module| module.file() == Some(file));
    let module = module.unwrap_or_else(|| Module {
        name,
        source: Some(file.clone()),
        stub: None,
        folder: None,
        origin: Origin::Workspace,
    });
    lookup.source(&module, file).ok()
}

fn class_at(source: &Source, offset: usize) -> Option<usize> {
    source.outline.definitions.iter().position(|definition| {
        definition.kind == DefinitionKind::Class && definition.name_span.start == offset
    })
}
