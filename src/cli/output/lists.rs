//! The items that `refs` and `calls` print: references or calls, overrides of a member, unresolved occurrences.

use serde::Serialize;

use super::text::{Links, line, location};
use crate::model::facts::{
    Agreement, Facts, FamilyRelation, Location, Override, UnresolvedOccurrence, UseProvenance,
};
use crate::text::plural;

/// One item of `refs` or `calls`. One cursor pages through all of them in this order.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum ListItem<'i, T> {
    /// What was asked for: a reference or a call.
    Found(&'i T),
    Override(&'i Override),
    Unresolved(&'i UnresolvedOccurrence),
}

/// Everything that `refs` or `calls` lists.
pub(super) fn items<'i, T>(facts: &'i Facts, found: &'i [T]) -> Vec<ListItem<'i, T>> {
    let unresolved = facts.completeness.iter().flat_map(|verdict| &verdict.unresolved.items);
    let all = found.iter().map(ListItem::Found);
    all.chain(facts.overrides.iter().map(ListItem::Override))
        .chain(unresolved.map(ListItem::Unresolved))
        .collect()
}

impl<'i, T> ListItem<'i, T> {
    /// Its line; `found` gives that of what was asked for. `last_reason` is that of the unresolved occurrence before, which is not
    /// repeated.
    pub(super) fn text(
        &self,
        links: Links<'_>,
        last_reason: &mut Option<&'i str>,
        found: impl Fn(Links<'_>, &T) -> String,
    ) -> String {
        match self {
            Self::Found(item) => found(links, item),
            Self::Override(item) => override_line(links, item),
            Self::Unresolved(item) => {
                let is_same = last_reason.replace(&item.reason) == Some(&item.reason);
                unresolved(links, item, if is_same { "same" } else { &item.reason })
            }
        }
    }
}

/// How much a summary says is listed, without the unresolved occurrences. Of the `related` members the `listed` ones tell how they
/// are related.
pub(super) fn counts(found: usize, noun: &str, related: usize, listed: &[Override]) -> Vec<String> {
    let are = |relation| !listed.is_empty() && listed.iter().all(|item| item.relation == relation);
    let kind = if are(FamilyRelation::Base) {
        "base method"
    } else if listed.is_empty() || are(FamilyRelation::Derived) {
        "override"
    } else {
        "related method"
    };
    let related = (related > 0).then(|| plural(related, kind));
    std::iter::once(plural(found, noun)).chain(related).collect()
}

/// The line of a reference.
pub(super) fn reference(links: Links<'_>, item: &Location) -> String {
    let text = location(links, item, "");
    match note(item) {
        Some(note) => format!("{text}  [{note}]"),
        None => text,
    }
}

/// The line of the same member in a related class.
pub(super) fn override_line(links: Links<'_>, item: &Override) -> String {
    let relation = match item.relation {
        FamilyRelation::Base => "base",
        FamilyRelation::Derived => "override",
        FamilyRelation::Sibling => "sibling",
    };
    let preview = item.preview.as_deref().unwrap_or_default().trim();
    format!("{}  [{relation} in {}]", line(links, &item.at, preview), item.class)
}

/// The line of an unresolved occurrence.
fn unresolved(links: Links<'_>, item: &UnresolvedOccurrence, reason: &str) -> String {
    let preview = item.preview.as_deref().unwrap_or_default().trim();
    format!("{}  [unresolved: {reason}]", line(links, &item.at, preview))
}

/// The line of a definition.
pub(super) fn definition(links: Links<'_>, item: &Location) -> String {
    let text = location(links, item, "");
    match only(item) {
        Some(only) => format!("{text}  [{only}]"),
        None => text,
    }
}

/// The one of two servers that knows a location.
fn only(item: &Location) -> Option<&'static str> {
    match item.agreement? {
        Agreement::Both => None,
        Agreement::Pyright => Some("only pyright"),
        Agreement::Basedpyright => Some("only basedpyright"),
        Agreement::Ty => Some("only ty"),
    }
}

/// How a reference was found, if the server did not report it, and which of two servers knows it.
pub(super) fn note(item: &Location) -> Option<String> {
    let notes: Vec<String> = rule(item).into_iter().chain(only(item).map(str::to_owned)).collect();
    (!notes.is_empty()).then(|| notes.join(", "))
}

fn rule(item: &Location) -> Option<String> {
    let via = item.via.as_deref();
    Some(match item.provenance? {
        UseProvenance::Definition
        | UseProvenance::Stub
        | UseProvenance::Scope
        | UseProvenance::Exported
        | UseProvenance::OtherServer => return None,
        UseProvenance::ImportAlias | UseProvenance::Alias => "alias".to_owned(),
        UseProvenance::Dispatch => format!("via {}", via.unwrap_or_default()),
        UseProvenance::Replace => "by keyword".to_owned(),
        UseProvenance::ClassKeyword => "class keyword".to_owned(),
        UseProvenance::Subscript => "by string".to_owned(),
        UseProvenance::Decorator => "type from the decorator".to_owned(),
        UseProvenance::PytestFixture | UseProvenance::FixtureRequest => "pytest fixture".to_owned(),
    })
}
