//! What a rename cannot reach and may have to: occurrences that nobody can explain, names as Python mangles them, what pytest
//! passes by name.

use super::collision::Renaming;
use super::{fixtures, private};
use crate::model::facts::{Completeness, CompletenessStatus, UseProvenance};
use crate::orchestrator::ask::Asking;
use crate::orchestrator::completeness::{self, Searched};
use crate::orchestrator::occurrences::{Explained, offset_of};
use crate::workspace::files::Files as _;

/// How complete the references of a rename are, and the places, as selectors, that keep it from being complete.
pub(super) fn verdict(
    asking: &Asking<'_>,
    renaming: &Renaming<'_>,
    searched: &Searched,
    mut explained: Explained,
) -> (Completeness, Vec<String>) {
    let old = renaming.old;
    // Uses of an alias keep their name.
    explained.unresolved.retain(|one| one.token.text() == old);
    let mut verdict = completeness::verdict(asking, searched, &explained);
    let unresolved = explained.unresolved.iter();
    let mut places: Vec<String> =
        unresolved.map(|one| asking.places.span(&one.token.document, one.token.span.clone()).2).collect();
    let mut reasons = Vec::new();
    if !places.is_empty() {
        reasons.push(format!("what `{old}` means is unknown in {}", counted(places.len())));
    }
    let mut add = |found: Vec<String>, why: &str| {
        if !found.is_empty() {
            reasons.push(format!("{why} in {}", counted(found.len())));
            places.extend(found);
        }
    };
    add(private::spelled_out(asking, renaming), "it is written as Python mangles it");
    add(mixins(asking, renaming, &explained), "a class without the member uses that of a derived class");
    add(interfaces(asking, &explained), "it is used through an interface that keeps its name");
    let mocked = explained.mocked.iter().filter(|token| token.text() == old);
    let mocked = mocked.map(|token| asking.places.span(&token.document, token.span.clone()).2);
    add(mocked.collect(), "a mock stands in for it under that name");
    let mut by_pytest = requested(asking, renaming, &explained);
    by_pytest.extend(fixtures::own_parameter(asking, renaming));
    add(by_pytest, "pytest passes it by its name");
    if !reasons.is_empty()
        && matches!(verdict.status, CompletenessStatus::Complete | CompletenessStatus::Partial)
    {
        verdict.status = CompletenessStatus::Partial;
        verdict.reason = Some(reasons.join("; "));
    }
    (verdict, places)
}

/// Uses in classes that do not have the member themselves: no definition there says that it keeps its name.
fn mixins(asking: &Asking<'_>, renaming: &Renaming<'_>, explained: &Explained) -> Vec<String> {
    let member = format!(".{}", renaming.old);
    let used = explained.references.iter().filter(|(_, evidence)| {
        evidence.provenance == Some(UseProvenance::Dispatch)
            && !evidence.is_structural
            && evidence.via.as_ref().is_some_and(|via| !via.ends_with(&member))
    });
    used.map(|(place, _)| asking.places.describe(&place.path, place.range).1).collect()
}

/// Uses through a protocol or an abstract class from which the symbol's class does not inherit: the rename does not reach its
/// member, and objects may get there through `Any`, where no type checker sees that they fit no longer.
fn interfaces(asking: &Asking<'_>, explained: &Explained) -> Vec<String> {
    let used = explained.references.iter().filter(|(_, evidence)| evidence.is_structural);
    used.map(|(place, _)| asking.places.describe(&place.path, place.range).1).collect()
}

/// Where pytest passes the fixture by the old name.
fn requested(asking: &Asking<'_>, renaming: &Renaming<'_>, explained: &Explained) -> Vec<String> {
    let by_pytest = explained
        .references
        .iter()
        .filter(|(_, evidence)| evidence.provenance == Some(UseProvenance::FixtureRequest));
    let mut found = Vec::new();
    for (place, _) in by_pytest {
        let Some((document, offset)) = offset_of(asking, place) else { continue };
        let is_edited = renaming.is_edited(&document.path, offset);
        if !is_edited && asking.state.files.read(&place.path).is_ok() {
            found.push(asking.places.span(&document, offset..offset + renaming.old.len()).2);
        }
    }
    found
}

fn counted(places: usize) -> String {
    if places == 1 { "1 place".to_owned() } else { format!("{places} places") }
}
