//! `types`: the base classes or subclasses of a class, breadth first. Both come from the index of classes that `impl` uses, with
//! every server; the server resolves the definition.

use std::collections::{BTreeMap, BTreeSet};

use super::completeness;
use super::context::{HandlerOutput, RequestContext};
use super::failure::Failure;
use super::implementations::SubclassLimits;
use super::occurrences::{files_with, offset_of};
use super::positions::{by_name, no_result, position};
use crate::bundle::order::sort;
use crate::bundle::page::page;
use crate::model::facts::{Completeness, CompletenessStatus, Facts, Provenance, Symbol, TypeEdge};
use crate::model::request::TypeDirection;
use crate::path::AbsPath;
use crate::python::classes::{Class, ClassId, Classes, UnfoundBase};

/// Answers `types`.
pub(super) async fn types(cx: &RequestContext<'_>) -> Result<HandlerOutput, Failure> {
    let capabilities: BTreeMap<String, bool> =
        cx.require("definition", cx.server.client.capabilities().definition)?;
    let target = cx.state.target()?;
    cx.open([target.document.path.clone()])?;
    let found = by_name(cx, cx.requests().definition(&target.document.path, position(cx, target)).await?);
    let classes = Classes::new(&cx.state.files, &cx.state.inputs.roots);
    let roots: Vec<Class> = found
        .items
        .iter()
        .filter_map(|place| {
            let (document, offset) = offset_of(cx, place)?;
            classes.class_at(&document.path, offset)
        })
        .collect();
    if roots.is_empty() {
        return Err(match found.items.is_empty() {
            true => no_result(cx, target),
            false => Failure::not_found(
                format!("`{}` is not a class", target.name().unwrap_or_default()),
                "name a class; `lanser impl` lists the overrides of a method, `lanser typedef` shows the class of a value",
            ),
        });
    }
    let options = &cx.request.options;
    let (direction, depth) = (options.types.unwrap_or_default(), options.depth.unwrap_or(1));
    let search = TypeSearch { cx, classes: &classes, depth };
    let (mut edges, verdict) = match direction {
        TypeDirection::Supertypes => search.supertypes(&roots).await?,
        TypeDirection::Subtypes => search.subtypes(&roots),
    };
    sort(&mut edges);
    let (edges, limits) = page(edges, options.limit, options.cursor.as_deref())?;
    let mut facts = Facts::new(Provenance::IndexLsp);
    facts.types = Some(edges);
    facts.completeness = Some(verdict);
    Ok(HandlerOutput { facts, limits: Some(limits), capabilities, refactored: None, error: None })
}

/// Follows classes up or down.
struct TypeSearch<'s> {
    cx: &'s RequestContext<'s>,
    classes: &'s Classes<'s>,
    depth: u32,
}

impl TypeSearch<'_> {
    async fn supertypes(&self, roots: &[Class]) -> Result<(Vec<TypeEdge>, Completeness), Failure> {
        let (mut edges, mut unknown) = (Vec::new(), None);
        let mut files: BTreeSet<AbsPath> = BTreeSet::new();
        let mut level = roots.to_vec();
        let mut seen: BTreeSet<_> = level.iter().map(key).collect();
        for depth in 1..=self.depth {
            let mut following = Vec::new();
            for class in &level {
                files.insert(class.document().path.clone());
                let bases = self.classes.direct_bases(class);
                let mut above = bases.classes;
                for base in &bases.unknown {
                    let found = self.server_classes(class, base).await?;
                    if found.is_empty() {
                        let base = &base.text;
                        unknown.get_or_insert_with(|| {
                            format!("the base `{base}` of `{}` cannot be found", class.id().name)
                        });
                    }
                    above.extend(found);
                }
                edges.extend(
                    above.iter().map(|base| self.edge(TypeDirection::Supertypes, depth, class, base)),
                );
                following.extend(above);
            }
            level = following.into_iter().filter(|class| seen.insert(key(class))).collect();
        }
        let mut verdict = completeness::of_documents(self.cx, files.len(), &[]);
        if unknown.is_some() && verdict.status == CompletenessStatus::Complete {
            (verdict.status, verdict.reason) = (CompletenessStatus::Unknown, unknown);
        }
        Ok((edges, verdict))
    }

    /// The classes that the server knows for a base: it may have stubs that cannot be searched. Empty if it knows none, or another
    /// definition, too.
    async fn server_classes(&self, class: &Class, base: &UnfoundBase) -> Result<Vec<Class>, Failure> {
        let Some(offset) = base.name else { return Ok(Vec::new()) };
        let document = class.document();
        self.cx.open([document.path.clone()])?;
        let at = document.lines.position(&document.text, offset, self.cx.locations.server_unit);
        let found = by_name(self.cx, self.cx.requests().definition(&document.path, at).await?);
        let classes: Option<Vec<Class>> = found
            .items
            .iter()
            .map(|place| {
                let (document, offset) = offset_of(self.cx, place)?;
                self.classes.class_at(&document.path, offset)
            })
            .collect();
        Ok(classes.filter(|_| found.skipped == 0).unwrap_or_default())
    }

    fn subtypes(&self, roots: &[Class]) -> (Vec<TypeEdge>, Completeness) {
        let mut limits = SubclassLimits::default();
        let mut below: BTreeMap<ClassId, Vec<Class>> = BTreeMap::new();
        let mut seen = BTreeSet::new();
        for root in roots {
            let found = self.classes.subclasses(root, &|name| files_with(self.cx, name));
            limits.add(self.cx, self.classes, root, &found, None);
            for class in found.classes.iter().filter(|class| seen.insert(key(class))) {
                for base in self.classes.direct_bases(class).classes {
                    below.entry(base.id()).or_default().push(class.clone());
                }
            }
        }
        let mut edges = Vec::new();
        let mut level = roots.to_vec();
        let mut seen: BTreeSet<_> = level.iter().map(key).collect();
        for depth in 1..=self.depth {
            let mut following = Vec::new();
            for class in &level {
                let derived = below.get(&class.id()).into_iter().flatten();
                edges.extend(
                    derived.clone().map(|derived| self.edge(TypeDirection::Subtypes, depth, derived, class)),
                );
                following.extend(derived.cloned());
            }
            level = following.into_iter().filter(|class| seen.insert(key(class))).collect();
        }
        (edges, limits.verdict(self.cx))
    }

    fn edge(&self, direction: TypeDirection, depth: u32, subtype: &Class, supertype: &Class) -> TypeEdge {
        TypeEdge { direction, depth, subtype: self.symbol(subtype), supertype: self.symbol(supertype) }
    }

    fn symbol(&self, class: &Class) -> Symbol {
        let (document, locations) = (class.document(), self.cx.locations);
        let whole = document.lines.range(&document.text, class.span().clone(), locations.server_unit);
        let name = document.lines.range(&document.text, class.name_span().clone(), locations.server_unit);
        let (uri, at, preview) = locations.describe(&document.path, name);
        Symbol {
            name: class.name().to_owned(),
            container: None,
            symbol_kind: "class".to_owned(),
            uri,
            range: whole,
            selection_range: Some(name),
            at,
            symbol_id: locations.symbol_id(&document.path, name),
            preview,
        }
    }
}

fn key(class: &Class) -> (AbsPath, usize) {
    (class.document().path.clone(), class.name_span().start)
}
