//! The lines of `refs`: references, the family of a member, what is unresolved.

use serde::Serialize;

use super::human::{Links, line, location};
use crate::model::facts::{Call, Facts, FamilyRelation, Location, Override, UnresolvedUse, UseProvenance};

/// One item of the answer, in the order in which one cursor goes through all of them.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Item<'i> {
    Reference(&'i Location),
    Override(&'i Override),
    Unresolved(&'i UnresolvedUse),
}

/// Everything that an answer lists.
pub(super) fn items<'i>(facts: &'i Facts, references: &'i [Location]) -> Vec<Item<'i>> {
    let unresolved = facts.completeness.iter().flat_map(|verdict| &verdict.unresolved.items);
    let all = references.iter().map(Item::Reference);
    all.chain(facts.overrides.iter().map(Item::Override)).chain(unresolved.map(Item::Unresolved)).collect()
}

impl Item<'_> {
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
pub(super) fn unresolved(links: Links<'_>, item: &UnresolvedUse) -> String {
    let preview = item.preview.as_deref().unwrap_or_default().trim();
    format!("{}  [unresolved: {}]", line(links, &item.at, preview), item.reason)
}

/// One item of `calls`, in the order in which one cursor goes through all of them.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum CallItem<'i> {
    Call(&'i Call),
    Unresolved(&'i UnresolvedUse),
}

/// Everything that `calls` lists.
pub(super) fn call_items<'i>(facts: &'i Facts, calls: &'i [Call]) -> Vec<CallItem<'i>> {
    let unresolved = facts.completeness.iter().flat_map(|verdict| &verdict.unresolved.items);
    calls.iter().map(CallItem::Call).chain(unresolved.map(CallItem::Unresolved)).collect()
}

/// How a reference is known, where the server does not claim it.
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
        UseProvenance::Decorator => "passed by the decorator".to_owned(),
        UseProvenance::PytestFixture | UseProvenance::FixtureRequest => "pytest fixture".to_owned(),
    })
}
