//! The occurrences that a rename does not change and that may have to change: unresolved ones, mangled names, uses through
//! interfaces, parameters that pytest passes by name.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::collision::Renaming;
use super::decisions::OpenPlace;
use super::family::DefinitionSite;
use super::{built_names, computed, mangling, own_name, spelled};
use crate::engine::context::RequestContext;
use crate::engine::occurrences::{Explained, MANGLED, Token, offset_of};
use crate::model::facts::UseProvenance;
use crate::python::local_variable::uses_of_all_variables;
use crate::python::outline::Span;
use crate::workspace::files::Document;

/// Why a string that the name is put into is an open place.
const BUILT_AROUND: &str = "a name that contains the old one is built from it, and exists";

/// Why places are open that no rename changes.
const ONLY_LEFT: [&str; 3] = [BUILT_AROUND, computed::COMPUTED, computed::REGISTERED];

/// The places of a rename that cannot be decided, in the order of their reasons.
pub(super) fn open_places(
    cx: &RequestContext<'_>,
    renaming: &Renaming<'_>,
    explained: &Explained,
    stand_ins: &[DefinitionSite],
) -> Vec<OpenPlace> {
    let old = renaming.old;
    let mut places: Vec<OpenPlace> = Vec::new();
    let mut add = |found: Vec<(Arc<Document>, Span)>, why: &'static str| {
        places.extend(found.into_iter().map(|(document, span)| {
            let at = cx.locations.span(&document, span.clone()).2;
            let text = &document.text[span.clone()];
            let is_prefix = text.ends_with('_') && text.len() < old.len() && old.starts_with(text);
            let is_part = is_prefix || ONLY_LEFT.contains(&why);
            // A part of a name cannot be renamed.
            let bare = |name: &str| name.trim_start_matches('_').to_owned();
            let new_text = match text.strip_prefix(&format!("_{}__", bare(old))) {
                Some(rest) => Some(format!("_{}__{rest}", bare(renaming.new))),
                None => is_part.then(|| text.to_owned()),
            };
            OpenPlace { document, span, at, why, new_text }
        }));
    };
    // References through an alias keep their name.
    let is_old = |token: &&Token| token.text() == old;
    let of = |token: &Token| (token.document.clone(), token.span.clone());
    let unresolved = explained.unresolved.iter().map(|one| &one.token).filter(is_old);
    add(unresolved.map(of).collect(), "the name is unresolved");
    add(mangling::mangled_occurrences(cx, renaming), MANGLED);
    add(
        mixin_uses(cx, renaming, explained),
        "a class that does not define the member uses that of a derived class",
    );
    add(interface_uses(cx, renaming, explained), "it is used through an interface that keeps its name");
    let mocked = explained.mocked.iter().filter(is_old);
    add(mocked.map(of).collect(), "a mock has an attribute of that name");
    if explained.is_member || explained.is_by_name {
        add(
            built_names::prefixes(cx, renaming, explained.is_member),
            "a name is built that may be the old one",
        );
        add(built_names::around(cx, old), BUILT_AROUND);
    }
    add(mangling::mangled_with_class(cx, renaming), "the name of the class is a part of it");
    // Only an example in its own file names a parameter.
    let is_anywhere = explained.is_member || explained.is_by_name;
    let written = match is_anywhere {
        true => spelled::files_with_occurrences(cx, old),
        false => spelled::own_occurrences(renaming, old),
    };
    let mut strings = spelled::strings(cx, renaming, explained, &written);
    if is_anywhere {
        strings.extend(computed::computed(cx, renaming, explained, &written));
    } else {
        strings.retain(|(.., why)| *why == spelled::EXAMPLE);
    }
    for (document, span, why) in strings {
        add(vec![(document, span)], why);
    }
    let mut seen = std::collections::BTreeSet::new();
    places.retain(|place| {
        !renaming.is_edited(&place.document.path, place.span.start) && seen.insert(place.at.clone())
    });
    // The definition itself is renamed; what uses its name does not change with it.
    places.extend(own_name::own_name(cx, renaming).map(|(document, span, why)| {
        let at = cx.locations.span(&document, span.clone()).2;
        OpenPlace { document, span, at, why, new_text: None }
    }));
    // One that the caller includes is renamed already, with its references.
    places.extend(stand_ins.iter().map(|(document, offset)| {
        let span = *offset..*offset + old.len();
        let at = cx.locations.span(document, span.clone()).2;
        let why = "a class without a common base defines all that the class leaves to others";
        OpenPlace { document: document.clone(), span, at, why, new_text: None }
    }));
    places
}

/// The places of the rename of a local variable that cannot be decided: unresolved occurrences, and calls in its code that take all
/// variables by their names. Nothing else can look it up.
pub(super) fn open_places_of_local(
    cx: &RequestContext<'_>,
    renaming: &Renaming<'_>,
    explained: &Explained,
    code: &Span,
) -> Vec<OpenPlace> {
    let document = &renaming.definition.0;
    let unresolved = explained.unresolved.iter().map(|one| &one.token);
    let unresolved =
        unresolved.map(|token| (token.document.clone(), token.span.clone(), "the name is unresolved", None));
    let calls = uses_of_all_variables(&document.text, code).into_iter();
    let calls = calls.map(|span| {
        let text = document.text[span.clone()].to_owned();
        (document.clone(), span, "all variables are looked up by their names", Some(text))
    });
    let open = unresolved.chain(calls).map(|(document, span, why, new_text)| {
        let at = cx.locations.span(&document, span.clone()).2;
        OpenPlace { document, span, at, why, new_text }
    });
    open.filter(|place| !renaming.is_edited(&place.document.path, place.span.start)).collect()
}

/// Why places are open: each reason with the number of places.
pub(super) fn reasons(places: &[OpenPlace]) -> String {
    let mut order: Vec<&str> = Vec::new();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for place in places {
        if !order.contains(&place.why) {
            order.push(place.why);
        }
        *counts.entry(place.why).or_default() += 1;
    }
    let count = |why: &&str| format!("{why} in {}", crate::text::plural(counts[why], "place"));
    order.iter().map(count).collect::<Vec<_>>().join("; ")
}

/// References in mixin classes that do not define the member themselves, so that no definition there keeps the name.
fn mixin_uses(
    cx: &RequestContext<'_>,
    renaming: &Renaming<'_>,
    explained: &Explained,
) -> Vec<(Arc<Document>, Span)> {
    if !explained.is_member {
        return Vec::new();
    }
    let member = format!(".{}", renaming.old);
    let used = explained.references.iter().filter(|(_, evidence)| {
        evidence.provenance == Some(UseProvenance::Dispatch)
            && !evidence.is_structural
            && evidence.via.as_ref().is_some_and(|via| !via.ends_with(&member))
    });
    used.filter_map(|(place, _)| spot(cx, renaming, place)).collect()
}

/// References through a protocol or an abstract class from which the symbol's class does not inherit: the rename does
/// not reach the interface's member, and objects may get there through `Any`, where no type checker notices that they
/// do not fit any more.
fn interface_uses(
    cx: &RequestContext<'_>,
    renaming: &Renaming<'_>,
    explained: &Explained,
) -> Vec<(Arc<Document>, Span)> {
    let used = explained.references.iter().filter(|(_, evidence)| evidence.is_structural);
    used.filter_map(|(place, _)| spot(cx, renaming, place)).collect()
}

fn spot(
    cx: &RequestContext<'_>,
    renaming: &Renaming<'_>,
    place: &crate::lsp::LspLocation,
) -> Option<(Arc<Document>, Span)> {
    let (document, offset) = offset_of(cx, place)?;
    Some((document, offset..offset + renaming.old.len()))
}
