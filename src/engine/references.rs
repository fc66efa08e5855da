//! `refs`: the references of a symbol, the overrides of a member, and the unresolved occurrences.

use std::collections::BTreeMap;

use serde::Serialize;

use super::agreement;
use super::completeness::{self, UsedIn};
use super::context::{HandlerOutput, RequestContext};
use super::failure::Failure;
use super::occurrences::{Explained, Named, explain, unexplained};
use super::opinion::Opinions;
use super::positions::no_result;
use super::request_state::RequestTarget;
use crate::bundle::order::sort;
use crate::bundle::page::page;
use crate::lsp::{Listing, LspLocation};
use crate::model::bundle::Limits;
use crate::model::facts::{Facts, FamilyRelation, Location, Override, Provenance, UnresolvedOccurrence};
use crate::path::AbsPath;
use crate::python::hierarchy::Relation;

/// One item of the answer: references first, then overrides, then unresolved occurrences. One cursor covers all.
#[derive(Serialize)]
#[serde(untagged)]
enum ReferencesItem {
    Reference(Location),
    Override(Override),
    Unresolved(UnresolvedOccurrence),
}

/// Answers `refs`.
pub(super) async fn references(
    cx: &RequestContext<'_>,
    target: &RequestTarget,
    name: &str,
    capabilities: BTreeMap<String, bool>,
) -> Result<HandlerOutput, Failure> {
    let targets = [&target.document.path, &target.reference_position().0.path];
    let mut searched = completeness::open_files_with_names(cx, &[name], &targets, UsedIn::of(target))?;
    let explaining = Box::pin(explained(cx, target, &mut searched));
    let (mut explained, opinion) = tokio::try_join!(explaining, agreement::ask(cx, &[]))?;
    let is_late = explained.is_late;
    if let Opinions::Other(request) = &cx.opinions {
        if is_late {
            return Err(Failure::reported(cx.timeout_error()));
        }
        return Ok(agreement::give(request, agreement::opinion_on_occurrences(cx, &explained)));
    }
    if let Some(opinion) = opinion.filter(|_| !is_late) {
        agreement::merge(cx, &mut explained, &opinion);
    }
    let mut completeness = completeness::verdict(cx, &searched, &explained);
    let mut unresolved = std::mem::take(&mut completeness.unresolved.items);
    sort(&mut unresolved);
    let (found, overrides) = (locations(cx, &explained), overrides(cx, &explained));
    let options = &cx.request.options;
    let (found, overrides, unresolved, limits) =
        paginate(found, overrides, unresolved, options.limit, options.cursor.as_deref())?;
    completeness.unresolved.items = unresolved;
    let mut facts = Facts::new(Provenance::Lsp);
    facts.references = Some(found);
    facts.overrides = overrides;
    facts.completeness = Some(completeness);
    let error = is_late.then(|| cx.timeout_error());
    Ok(HandlerOutput { facts, limits: Some(limits), capabilities, refactored: None, error })
}

/// The references that the server returns, and every other occurrence of the name, explained.
pub(super) async fn explained(
    cx: &RequestContext<'_>,
    target: &RequestTarget,
    searched: &mut completeness::SearchedFiles,
) -> Result<Explained, Failure> {
    let used_in = searched.used_in;
    let mut listing = match claimed(cx, target, used_in).await {
        Err(failure) if cx.deadline.is_last && cx.is_past_deadline(&failure) => {
            return unexplained(cx, target.name().unwrap_or_default(), searched).await;
        }
        claimed => claimed?,
    };
    if cx.open_encoded(listing.items.iter().map(|place| &place.path))? {
        listing = claimed(cx, target, used_in).await?;
    }
    if listing.items.is_empty() {
        return Err(no_result(cx, target));
    }
    // Checked before anything from a server that has answered other requests is cached.
    cx.require_fresh_outside_workspace(listing.items.iter().map(|place| &place.path))?;
    let Some(named) = Named::of(target) else { return Err(no_result(cx, target)) };
    let family = agreement::family(cx);
    let named = Named { family: &family, ..named };
    let explained = Box::pin(explain(cx, named, searched, listing)).await?;
    cx.require_fresh_outside_workspace(paths(&explained))?;
    Ok(explained)
}

fn paths(explained: &Explained) -> impl Iterator<Item = &AbsPath> {
    explained.references.keys().map(|place| &place.path)
}

/// The references that the server returns, declarations included.
pub(super) async fn claimed(
    cx: &RequestContext<'_>,
    target: &RequestTarget,
    used_in: UsedIn,
) -> Result<Listing<LspLocation>, Failure> {
    let (document, offset) = target.reference_position();
    let at = document.lines.position(&document.text, offset, cx.locations.server_unit);
    Ok(match used_in.is_asked_for_highlights(cx) {
        true => cx.requests().highlights(&document.path, at).await?,
        false => cx.requests().references(&document.path, at, true).await?,
    })
}

/// The references as locations, without the declarations that are not wanted.
pub(super) fn locations(cx: &RequestContext<'_>, explained: &Explained) -> Vec<Location> {
    let wanted = explained.references.iter().filter(|(place, _)| !explained.declarations.contains(*place));
    let mut found: Vec<Location> = wanted
        .map(|(place, evidence)| Location {
            provenance: evidence.provenance,
            agreement: explained.agreement.get(place).copied(),
            via: evidence.via.clone(),
            ..cx.locations.location(place)
        })
        .collect();
    sort(&mut found);
    found
}

/// The overrides, as the bundle lists them.
pub(super) fn overrides(cx: &RequestContext<'_>, explained: &Explained) -> Vec<Override> {
    let mut found: Vec<Override> = explained
        .overrides
        .iter()
        .map(|one| {
            let (uri, range, at) = cx.locations.span(&one.token.document, one.token.span.clone());
            Override {
                uri,
                range,
                at,
                class: one.class.clone(),
                relation: match one.relation {
                    Relation::Base => FamilyRelation::Base,
                    Relation::Derived => FamilyRelation::Derived,
                    Relation::Sibling => FamilyRelation::Sibling,
                },
                preview: super::locations::preview(&one.token.document, range.start.line),
            }
        })
        .collect();
    sort(&mut found);
    found
}

type ReferencesPage = (Vec<Location>, Vec<Override>, Vec<UnresolvedOccurrence>, Limits);

fn paginate(
    references: Vec<Location>,
    overrides: Vec<Override>,
    unresolved: Vec<UnresolvedOccurrence>,
    limit: Option<u32>,
    cursor: Option<&str>,
) -> Result<ReferencesPage, Failure> {
    let all = references.into_iter().map(ReferencesItem::Reference);
    let all = all.chain(overrides.into_iter().map(ReferencesItem::Override));
    let all: Vec<ReferencesItem> =
        all.chain(unresolved.into_iter().map(ReferencesItem::Unresolved)).collect();
    let (part, limits) = page(all, limit, cursor)?;
    let (mut references, mut overrides, mut unresolved) = (Vec::new(), Vec::new(), Vec::new());
    for item in part {
        match item {
            ReferencesItem::Reference(item) => references.push(item),
            ReferencesItem::Override(item) => overrides.push(item),
            ReferencesItem::Unresolved(item) => unresolved.push(item),
        }
    }
    Ok((references, overrides, unresolved, limits))
}
