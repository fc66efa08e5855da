//! Classes that take the place of a class without deriving from it: they define every method that the class leaves to others. Python
//! calls them through the same interface, and no server relates them.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::collision::class_of;
use super::decisions::is_included;
use super::family::{DefinitionSite, family};
use crate::engine::context::RequestContext;
use crate::engine::failure::Failure;
use crate::path::AbsPath;
use crate::python::outline::{DefinitionKind, Outline};
use crate::workspace::files::{Document, Files as _};

/// How many methods a class must leave to others, so that their names are hardly the same by chance.
const MIN_METHODS: usize = 2;

/// The definitions of a method in classes that stand in for one of the classes of its definitions.
#[derive(Debug, Default)]
pub(super) struct StandIns {
    /// All of them.
    pub(super) all: Vec<DefinitionSite>,
    /// Those that the caller wants to be renamed, with what is related to them.
    pub(super) included: Vec<DefinitionSite>,
}

impl StandIns {
    pub(super) fn find(
        cx: &RequestContext<'_>,
        definition: &DefinitionSite,
        related: &[DefinitionSite],
        old: &str,
    ) -> Result<Self, Failure> {
        let sites = || std::iter::once(definition).chain(related);
        let required: Vec<BTreeSet<String>> =
            sites().filter_map(|(document, offset)| required(document, *offset, old)).collect();
        let mut found = Self::default();
        if required.is_empty() {
            return Ok(found);
        }
        let mut known: BTreeSet<(AbsPath, usize)> = BTreeSet::new();
        for site in sites() {
            known.insert((site.0.path.clone(), site.1));
            known.extend(family(cx, site, old).into_iter().map(|(document, at)| (document.path.clone(), at)));
        }
        for path in cx.state.files_with_word(old) {
            let Ok(document) = cx.state.files.read(&cx.state.inputs.snapshot.absolute(&path)) else {
                continue;
            };
            for offset in implementing(&document, &required, old) {
                let site = (document.clone(), offset);
                if !known.insert((document.path.clone(), offset)) {
                    continue;
                }
                if is_included(cx, &cx.locations.span(&document, offset..offset + old.len()).2)? {
                    found.included.push(site.clone());
                    found.included.extend(family(cx, &site, old));
                }
                found.all.push(site);
            }
        }
        found.included.sort_by(|a, b| (&a.0.path, a.1).cmp(&(&b.0.path, b.1)));
        found.included.dedup_by(|a, b| (&a.0.path, a.1) == (&b.0.path, b.1));
        Ok(found)
    }
}

/// The methods that the class of a method leaves to others, if it is one of them and there are enough.
fn required(document: &Document, offset: usize, old: &str) -> Option<BTreeSet<String>> {
    let outline = Outline::parse(&document.text);
    let (_, class) = class_of(&outline, offset)?;
    let class = outline.definitions.iter().position(|found| found.name_span.start == class)?;
    let methods = outline.definitions.iter().filter(|found| {
        found.parent == Some(class)
            && found.kind == DefinitionKind::Method
            && (found.is_decorated("abstractmethod")
                || document.text[found.span.clone()].contains("raise NotImplementedError"))
    });
    let names: BTreeSet<String> = methods.map(|found| found.name.clone()).collect();
    (names.contains(old) && names.len() >= MIN_METHODS).then_some(names)
}

/// Where classes define a method together with all that are required.
fn implementing(document: &Arc<Document>, required: &[BTreeSet<String>], old: &str) -> Vec<usize> {
    let outline = Outline::parse(&document.text);
    let mut found = Vec::new();
    for (index, class) in outline.definitions.iter().enumerate() {
        if class.kind != DefinitionKind::Class {
            continue;
        }
        let members: Vec<_> =
            outline.definitions.iter().filter(|found| found.parent == Some(index)).collect();
        let has_all = |names: &BTreeSet<String>| {
            names.iter().all(|name| members.iter().any(|member| member.name == *name))
        };
        if required.iter().any(has_all) {
            let own = members.iter().filter(|member| member.name == old && member.kind.is_function());
            found.extend(own.map(|member| member.name_span.start));
        }
    }
    found
}
