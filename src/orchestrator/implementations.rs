//! `impl` for servers that do not offer it: the classes that derive from a class, and the members that take the place of one.

use std::collections::BTreeMap;

use super::ask::{Answer, Asking};
use super::completeness;
use super::failure::Failure;
use super::occurrences::{files_with, offset_of};
use super::query::{nothing_there, position};
use super::state::Subject;
use crate::bundle::order::sort;
use crate::bundle::page::page;
use crate::lsp::Place;
use crate::model::facts::{Completeness, CompletenessStatus, Facts, Provenance};
use crate::resolve::classes::{Class, Classes};
use crate::workspace::files::Document;

/// Answers `impl` from the index of the workspace's classes; the server says only which definition is meant.
pub(super) async fn by_index(asking: &Asking<'_>, subject: &Subject) -> Result<Answer, Failure> {
    let mut capabilities: BTreeMap<String, bool> =
        asking.require("definition", asking.server.client.capabilities().definition)?;
    capabilities.insert("implementation".to_owned(), false);
    asking.open([subject.document.path.clone()])?;
    let questions = asking.questions();
    let found = questions.definition(&subject.document.path, position(asking, subject)).await?;
    let classes = Classes::new(&asking.state.files, &asking.state.ground.roots);
    let mut places = Vec::new();
    let (mut is_cut, mut is_protocol) = (false, false);
    for place in &found.items {
        let Some((document, offset)) = offset_of(asking, place) else { continue };
        let (class, member) = match classes.class_at(&document.path, offset) {
            Some(class) => (class, None),
            None => {
                let Some(defined) = classes.defined_at(&document.path, offset) else { continue };
                let is_abstract = defined.decorators.iter().any(|one| one.ends_with("abstractmethod"));
                let Some(class) = defined.class else { continue };
                if !is_abstract && !class.is_derived_from("Protocol") {
                    places.push(place.clone());
                }
                (class, Some(defined.name))
            }
        };
        is_protocol |= class.is_derived_from("Protocol");
        let below = classes.subclasses(&class, &|name| files_with(asking, name));
        is_cut |= below.is_cut;
        for derived in below.classes {
            places.extend(tokens(asking, &derived, member.as_deref()));
        }
    }
    if places.is_empty() {
        return Err(nothing_there(asking, subject));
    }
    let mut facts = Facts::new(Provenance::IndexLsp);
    facts.completeness = Some(verdict(asking, is_cut, is_protocol));
    let mut locations: Vec<_> = places.iter().map(|place| asking.places.location(place)).collect();
    sort(&mut locations);
    let options = &asking.request.options;
    let (locations, limits) = page(locations, options.limit, options.cursor.as_deref())?;
    facts.implementations = Some(locations);
    Ok(Answer { facts, limits: Some(limits), capabilities, refactored: None, error: None })
}

/// The name tokens of a class, or of its own members of a name.
fn tokens(asking: &Asking<'_>, class: &Class, member: Option<&str>) -> Vec<Place> {
    let document: &Document = class.document();
    let place = |span: &std::ops::Range<usize>| Place {
        path: document.path.clone(),
        range: document.lines.range(&document.text, span.clone(), asking.places.server_unit),
    };
    match member {
        Some(name) => class.members(name).map(place).collect(),
        None => vec![place(class.name_span())],
    }
}

fn verdict(asking: &Asking<'_>, is_cut: bool, is_protocol: bool) -> Completeness {
    let files = asking.state.ground.snapshot.files().len();
    let mut verdict = completeness::of_documents(asking, files, &completeness::unreadable(asking));
    let reason = if is_cut {
        Some("there are more subclasses than are looked at")
    } else if is_protocol {
        Some("classes that have the members of a protocol without inheriting from it are not listed")
    } else {
        None
    };
    if let Some(reason) = reason.filter(|_| verdict.status == CompletenessStatus::Complete) {
        (verdict.status, verdict.reason) = (CompletenessStatus::Unknown, Some(reason.to_owned()));
    }
    verdict
}
