//! The definitions that share a name because Python finds them through each other: a method and those that override it, are
//! overridden by it, or stand beside it in the method resolution order of a derived class; and a parameter of theirs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::collision::{around, class_of};
use crate::engine::context::RequestContext;
use crate::path::AbsPath;
use crate::python::hierarchy::Hierarchy;
use crate::python::outline::Outline;
use crate::python::roles::{keywords_of, parameter_at};
use crate::text::names::{is_dunder, is_private};
use crate::workspace::files::Document;

/// Methods that are called through the name of their class, so that their parameters are not those of a base.
pub(super) const CONSTRUCTORS: [&str; 4] = ["__init__", "__new__", "__post_init__", "__init_subclass__"];

/// A definition: a file and the byte offset of the name.
pub(super) type DefinitionSite = (Arc<Document>, usize);

/// The method that a keyword parameter belongs to: its name and its site; `None` for any other place.
pub(super) fn method_of(document: &Arc<Document>, offset: usize) -> Option<(String, DefinitionSite)> {
    let parameter = parameter_at(&document.text, offset).filter(|parameter| parameter.is_keyword)?;
    let function = parameter.function.filter(|_| !CONSTRUCTORS.contains(&parameter.name.as_str()))?;
    class_of(&Outline::parse(&document.text), function.start)?;
    let is_own = is_private(&parameter.name);
    (!is_own).then(|| (parameter.name, (document.clone(), function.start)))
}

/// The other definitions in the workspace that have to be renamed with a definition, sorted by file and place.
pub(super) fn family(cx: &RequestContext<'_>, definition: &DefinitionSite, old: &str) -> Vec<DefinitionSite> {
    let (document, offset) = definition;
    let mut found: BTreeMap<(AbsPath, usize), Arc<Document>> = BTreeMap::new();
    if let Some((method, site)) = method_of(document, *offset) {
        for (document, at) in std::iter::once(site.clone()).chain(related(cx, &site, &method)) {
            let keywords = keywords_of(&document.text, at).unwrap_or_default();
            for (_, span) in keywords.into_iter().filter(|(name, _)| name == old) {
                found.insert((document.path.clone(), span.start), document.clone());
            }
        }
    } else if !is_private(old) && !is_dunder(old) {
        for (document, at) in related(cx, definition, old) {
            found.insert((document.path.clone(), at), document);
        }
    }
    found.remove(&(document.path.clone(), *offset));
    found.into_iter().map(|((_, at), document)| (document, at)).collect()
}

/// The members of a name in classes of the workspace that are related to that of a member, directly or through each other.
fn related(cx: &RequestContext<'_>, member: &DefinitionSite, name: &str) -> Vec<DefinitionSite> {
    let mut seen: BTreeSet<(AbsPath, usize)> = BTreeSet::from([(member.0.path.clone(), member.1)]);
    let mut queue = vec![member.clone()];
    let mut found = Vec::new();
    while let Some((document, offset)) = queue.pop() {
        let Some(class) = class_of(&Outline::parse(&document.text), offset) else { continue };
        let mut around = around(cx, &document, class, &[name]);
        for member in around.members.remove(name).unwrap_or_default() {
            let site = (member.document.path.clone(), member.name_span.start);
            if cx.state.is_in_workspace(&site.0) && seen.insert(site) {
                let site = (member.document.clone(), member.name_span.start);
                queue.push(site.clone());
                found.push(site);
            }
        }
    }
    found
}

/// The hierarchies around the classes of some members, as one.
pub(super) fn around_all<'d>(
    cx: &RequestContext<'_>,
    definitions: impl Iterator<Item = &'d DefinitionSite>,
    names: &[&str],
) -> Hierarchy {
    let mut all = Hierarchy::default();
    for (document, offset) in definitions {
        let Some(class) = class_of(&Outline::parse(&document.text), *offset) else { continue };
        let one = around(cx, document, class, names);
        for (name, members) in one.members {
            let known = all.members.entry(name).or_default();
            for member in members {
                let is_same = |other: &crate::python::hierarchy::Member| {
                    other.document.path == member.document.path && other.name_span == member.name_span
                };
                if !known.iter().any(is_same) {
                    known.push(member);
                }
            }
        }
        all.below.extend(one.below);
        all.unknown.extend(one.unknown);
        all.is_cut |= one.is_cut;
    }
    all
}
