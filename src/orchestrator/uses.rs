//! `refs`: every use of a symbol, the family of a member, and what could not be proven.

use std::collections::BTreeMap;

use serde::Serialize;

use super::ask::{Answer, Asking};
use super::completeness;
use super::failure::Failure;
use super::occurrences::{Explained, Named, explain, unexplained};
use super::query::nothing_there;
use super::state::Subject;
use crate::bundle::order::sort;
use crate::bundle::page::page;
use crate::lsp::{Listing, Place};
use crate::model::bundle::Limits;
use crate::model::facts::{Facts, FamilyRelation, Location, Override, Provenance, UnresolvedUse};
use crate::path::AbsPath;
use crate::resolve::hierarchy::Relation;

/// One item of the answer. References come first, then the family, then what is unresolved; one cursor goes through all.
#[derive(Serialize)]
#[serde(untagged)]
enum Item {
    Reference(Location),
    Override(Override),
    Unresolved(UnresolvedUse),
}

/// Answers `refs`.
pub(super) async fn references(
    asking: &Asking<'_>,
    subject: &Subject,
    name: &str,
    capabilities: BTreeMap<String, bool>,
) -> Result<Answer, Failure> {
    let targets = [&subject.document.path, &subject.asked_for_uses().0.path];
    let mut searched = completeness::make_known(asking, &[name], &targets)?;
    let explained = explained(asking, subject, &mut searched).await?;
    let is_late = explained.is_late;
    let mut completeness = completeness::verdict(asking, &searched, &explained);
    let mut unresolved = std::mem::take(&mut completeness.unresolved.items);
    sort(&mut unresolved);
    let (found, overrides) = (locations(asking, &explained), overrides(asking, &explained));
    let options = &asking.request.options;
    let (found, overrides, unresolved, limits) =
        paged(found, overrides, unresolved, options.limit, options.cursor.as_deref())?;
    completeness.unresolved.items = unresolved;
    let mut facts = Facts::new(Provenance::Lsp);
    facts.references = Some(found);
    facts.overrides = overrides;
    facts.completeness = Some(completeness);
    let error = is_late.then(|| asking.late());
    Ok(Answer { facts, limits: Some(limits), capabilities, refactored: None, error })
}

/// What the server claims, and every other occurrence of the name explained.
pub(super) async fn explained(
    asking: &Asking<'_>,
    subject: &Subject,
    searched: &mut completeness::Searched,
) -> Result<Explained, Failure> {
    let mut listing = match claimed(asking, subject).await {
        Err(failure) if asking.due.is_last && asking.is_over(&failure) => {
            return unexplained(asking, subject.name().unwrap_or_default(), searched).await;
        }
        claimed => claimed?,
    };
    if asking.open_encoded(listing.items.iter().map(|place| &place.path))? {
        listing = claimed(asking, subject).await?;
    }
    if listing.items.is_empty() {
        return Err(nothing_there(asking, subject));
    }
    // Before anything is cached of what a server says that was asked before.
    asking.require_clean(listing.items.iter().map(|place| &place.path))?;
    let Some(named) = Named::of(subject) else { return Err(nothing_there(asking, subject)) };
    let explained = Box::pin(explain(asking, named, searched, listing)).await?;
    asking.require_clean(paths(&explained))?;
    Ok(explained)
}

fn paths(explained: &Explained) -> impl Iterator<Item = &AbsPath> {
    explained.references.keys().map(|place| &place.path)
}

async fn claimed(asking: &Asking<'_>, subject: &Subject) -> Result<Listing<Place>, Failure> {
    let (document, offset) = subject.asked_for_uses();
    let at = document.lines.position(&document.text, offset, asking.places.server_unit);
    Ok(asking.questions().references(&document.path, at, true).await?)
}

/// The references as locations, without declarations where those are not wanted.
pub(super) fn locations(asking: &Asking<'_>, explained: &Explained) -> Vec<Location> {
    let wanted = explained.references.iter().filter(|(place, _)| !explained.declarations.contains(*place));
    let mut found: Vec<Location> = wanted
        .map(|(place, evidence)| Location {
            provenance: evidence.provenance,
            via: evidence.via.clone(),
            ..asking.places.location(place)
        })
        .collect();
    sort(&mut found);
    found
}

/// The family as a bundle has it.
pub(super) fn overrides(asking: &Asking<'_>, explained: &Explained) -> Vec<Override> {
    let mut found: Vec<Override> = explained
        .overrides
        .iter()
        .map(|one| {
            let (uri, range, at) = asking.places.span(&one.token.document, one.token.span.clone());
            Override {
                uri,
                range,
                at,
                class: one.class.clone(),
                relation: match one.relation {
                    Relation::Above => FamilyRelation::Base,
                    Relation::Below => FamilyRelation::Derived,
                    Relation::Beside => FamilyRelation::Sibling,
                },
                preview: super::places::preview(&one.token.document, range.start.line),
            }
        })
        .collect();
    sort(&mut found);
    found
}

type Paged = (Vec<Location>, Vec<Override>, Vec<UnresolvedUse>, Limits);

fn paged(
    references: Vec<Location>,
    overrides: Vec<Override>,
    unresolved: Vec<UnresolvedUse>,
    limit: Option<u32>,
    cursor: Option<&str>,
) -> Result<Paged, Failure> {
    let all = references.into_iter().map(Item::Reference);
    let all = all.chain(overrides.into_iter().map(Item::Override));
    let all: Vec<Item> = all.chain(unresolved.into_iter().map(Item::Unresolved)).collect();
    let (part, limits) = page(all, limit, cursor)?;
    let (mut references, mut overrides, mut unresolved) = (Vec::new(), Vec::new(), Vec::new());
    for item in part {
        match item {
            Item::Reference(item) => references.push(item),
            Item::Override(item) => overrides.push(item),
            Item::Unresolved(item) => unresolved.push(item),
        }
    }
    Ok((references, overrides, unresolved, limits))
}
