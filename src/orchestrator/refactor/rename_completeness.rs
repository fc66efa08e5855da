//! The occurrences that a rename does not change and that may have to change: unresolved ones, mangled names, names
//! that pytest passes as arguments.

use super::collision::Renaming;
use super::{fixtures, mangling};
use crate::model::facts::{Completeness, CompletenessStatus, UseProvenance};
use crate::orchestrator::ask::RequestContext;
use crate::orchestrator::completeness::{self, SearchedFiles};
use crate::orchestrator::occurrences::{Explained, offset_of};
use crate::workspace::files::Files as _;

/// The completeness of a rename, and the places, as selectors, that keep it from being complete.
pub(super) fn verdict(
    cx: &RequestContext<'_>,
    renaming: &Renaming<'_>,
    searched: &SearchedFiles,
    mut explained: Explained,
) -> (Completeness, Vec<String>) {
    let old = renaming.old;
    // References through an alias keep their name.
    explained.unresolved.retain(|one| one.token.text() == old);
    let mut verdict = completeness::verdict(cx, searched, &explained);
    let unresolved = explained.unresolved.iter();
    let mut places: Vec<String> =
        unresolved.map(|one| cx.locations.span(&one.token.document, one.token.span.clone()).2).collect();
    let mut reasons = Vec::new();
    if !places.is_empty() {
        reasons.push(format!("`{old}` is unresolved in {}", count_places(places.len())));
    }
    let mut add = |found: Vec<String>, why: &str| {
        if !found.is_empty() {
            reasons.push(format!("{why} in {}", count_places(found.len())));
            places.extend(found);
        }
    };
    add(mangling::mangled_occurrences(cx, renaming), "it is written in its mangled form");
    add(
        mixin_uses(cx, renaming, &explained),
        "a class that does not define the member uses that of a derived class",
    );
    add(interface_uses(cx, &explained), "it is used through an interface that keeps its name");
    let mocked = explained.mocked.iter().filter(|token| token.text() == old);
    let mocked = mocked.map(|token| cx.locations.span(&token.document, token.span.clone()).2);
    add(mocked.collect(), "a mock has an attribute of that name");
    let mut by_pytest = fixture_requests(cx, renaming, &explained);
    by_pytest.extend(fixtures::own_parameter(cx, renaming));
    add(by_pytest, "pytest passes it by name");
    if !reasons.is_empty()
        && matches!(verdict.status, CompletenessStatus::Complete | CompletenessStatus::Partial)
    {
        verdict.status = CompletenessStatus::Partial;
        verdict.reason = Some(reasons.join("; "));
    }
    (verdict, places)
}

/// References in mixin classes that do not define the member themselves, so that no definition there keeps the name.
fn mixin_uses(cx: &RequestContext<'_>, renaming: &Renaming<'_>, explained: &Explained) -> Vec<String> {
    let member = format!(".{}", renaming.old);
    let used = explained.references.iter().filter(|(_, evidence)| {
        evidence.provenance == Some(UseProvenance::Dispatch)
            && !evidence.is_structural
            && evidence.via.as_ref().is_some_and(|via| !via.ends_with(&member))
    });
    used.map(|(place, _)| cx.locations.describe(&place.path, place.range).1).collect()
}

/// References through a protocol or an abstract class from which the symbol's class does not inherit: the rename does
/// not reach the interface's member, and objects may get there through `Any`, where no type checker notices that they
/// do not fit any more.
fn interface_uses(cx: &RequestContext<'_>, explained: &Explained) -> Vec<String> {
    let used = explained.references.iter().filter(|(_, evidence)| evidence.is_structural);
    used.map(|(place, _)| cx.locations.describe(&place.path, place.range).1).collect()
}

/// The places where pytest passes the fixture by its old name.
fn fixture_requests(cx: &RequestContext<'_>, renaming: &Renaming<'_>, explained: &Explained) -> Vec<String> {
    let by_pytest = explained
        .references
        .iter()
        .filter(|(_, evidence)| evidence.provenance == Some(UseProvenance::FixtureRequest));
    let mut found = Vec::new();
    for (place, _) in by_pytest {
        let Some((document, offset)) = offset_of(cx, place) else { continue };
        let is_edited = renaming.is_edited(&document.path, offset);
        if !is_edited && cx.state.files.read(&place.path).is_ok() {
            found.push(cx.locations.span(&document, offset..offset + renaming.old.len()).2);
        }
    }
    found
}

fn count_places(places: usize) -> String {
    crate::text::plural(places, "place")
}
