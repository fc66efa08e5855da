//! The items that `refs` and `calls` print: references or calls, overrides of a member, unresolved occurrences.

use serde::Serialize;

use super::text::{Links, line, location};
use crate::model::facts::{
    Call, Facts, FamilyRelation, Location, Override, UnresolvedOccurrence, UseProvenance,
};

/// One item of `refs`. One cursor pages through all of them in this order.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum ReferenceListItem<'i> {
    Reference(&'i Location),
    Override(&'i Override),
    Unresolved(&'i UnresolvedOccurrence),
}

/// Everything that `refs` lists.
pub(super) fn items<'i>(facts: &'i Facts, references: &'i [Location]) -> Vec<ReferenceListItem<'i>> {
    let unresolved = facts.completeness.iter().flat_map(|verdict| &verdict.unresolved.items);
    let all = references.iter().map(ReferenceListItem::Reference);
    all.chain(facts.overrides.iter().map(ReferenceListItem::Override))
        .chain(unresolved.map(ReferenceListItem::Unresolved))
        .collect()
}

impl ReferenceListItem<'_> {
    /// Its line.
    pub(super) fn text(&self, links: Links<'_>) -> String {
        match self {
            Self::Reference(item) => {
                let text = location(links, item, "");
                match note(item) {
                    Some(note) => format!("{text}  [{note}]"),
                    None => text,
                }
            }
            Self::Override(item) => {
                let relation = match item.relation {
                    FamilyRelation::Base => "base",
                    FamilyRelation::Derived => "override",
                    FamilyRelation::Sibling => "sibling",
                };
                let preview = item.preview.as_deref().unwrap_or_default().trim();
                format!("{}  [{relation} in {}]", line(links, &item.at, preview), item.class)
            }
            Self::Unresolved(item) => unresolved(links, item),
        }
    }
}

/// The line of an unresolved occurrence.
pub(super) fn unresolved(links: Links<'_>, item: &UnresolvedOccurrence) -> String {
    let preview = item.preview.as_deref().unwrap_or_default().trim();
    format!("{}  [unresolved: {}]", line(links, &item.at, preview), item.reason)
}

/// One item of `calls`. One cursor pages through all of them in this order.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum CallListItem<'i> {
    Call(&'i Call),
    Unresolved(&'i UnresolvedOccurrence),
}

/// Everything that `calls` lists.
pub(super) fn call_items<'i>(facts: &'i Facts, calls: &'i [Call]) -> Vec<CallListItem<'i>> {
    let unresolved = facts.completeness.iter().flat_map(|verdict| &verdict.unresolved.items);
    calls.iter().map(CallListItem::Call).chain(unresolved.map(CallListItem::Unresolved)).collect()
}

/// How a reference was found, if the server did not report it.
fn note(item: &Location) -> Option<String> {
    let via = item.via.as_deref();
    Some(match item.provenance? {
        UseProvenance::Definition | UseProvenance::Stub | UseProvenance::Scope | UseProvenance::Exported => {
            return None;
        }
        UseProvenance::ImportAlias | UseProvenance::Alias => "alias".to_owned(),
        UseProvenance::Dispatch => format!("via {}", via.unwrap_or_default()),
        UseProvenance::Replace => "by keyword".to_owned(),
        UseProvenance::ClassKeyword => "class keyword".to_owned(),
        UseProvenance::Subscript => "by string".to_owned(),
        UseProvenance::Decorator => "type from the decorator".to_owned(),
        UseProvenance::PytestFixture | UseProvenance::FixtureRequest => "pytest fixture".to_owned(),
    })
}
