//! What a schema cannot say about a bundle: that its parts fit together.

use serde::Serialize;
use serde_json::Value;

use super::explain::shown;
use super::place::Place;
use super::problem::Collector;
use crate::bundle::order::{self, Placed};
use crate::bundle::seal::{HASHING, bundle_id, exit_code};
use crate::model::bundle::{Bundle, Status};

/// Judges a bundle that has the right shape; `document` is what it was read from.
pub(super) fn check(bundle: &Bundle, document: &Value, problems: &mut Collector<'_>) {
    as_written(bundle, document, problems);
    outcome(bundle, problems);
    lists(bundle, problems);

    if bundle.meta.hashing.algo != HASHING {
        let message = format!("{:?} is not {HASHING:?}", bundle.meta.hashing.algo);
        problems.add(&Place::keys(&["meta", "hashing", "algo"]), message);
    }
    match bundle_id(bundle) {
        Ok(digest) if digest == bundle.bundle_id => {}
        Ok(digest) => problems.add(&Place::keys(&["bundleId"]), format!("the content's digest is {digest}")),
        Err(error) => problems.add(&Place::default(), error.to_string()),
    }
}

/// `bundleId` is a hash of the document, so a document has to say everything in the one way that lanser writes it:
/// a default that is spelled out, or a path in another spelling, is another document with another hash.
fn as_written(bundle: &Bundle, document: &Value, problems: &mut Collector<'_>) {
    let written = match serde_json::to_value(bundle) {
        Ok(written) => written,
        Err(error) => return problems.add(&Place::default(), error.to_string()),
    };
    if let Some((place, message)) = first_difference(document, &written, &Place::default()) {
        problems.add(&place, message);
    }
}

fn first_difference(found: &Value, written: &Value, place: &Place) -> Option<(Place, String)> {
    match (found, written) {
        (Value::Object(found), Value::Object(written)) => {
            for (key, member) in found {
                let place = place.key(key);
                let difference = match written.get(key) {
                    Some(written) => first_difference(member, written, &place),
                    None => Some((place, "a bundle leaves this out".to_owned())),
                };
                if difference.is_some() {
                    return difference;
                }
            }
            let missing = written.keys().find(|key| !found.contains_key(*key))?;
            Some((place.clone(), format!("the member {missing:?} is missing")))
        }
        (Value::Array(found), Value::Array(written)) if found.len() == written.len() => (0..)
            .zip(found.iter().zip(written))
            .find_map(|(index, (found, written))| first_difference(found, written, &place.index(index))),
        // One number, two spellings: `1` and `1.0` hash alike.
        (Value::Number(a), Value::Number(b)) if a.as_f64() == b.as_f64() => None,
        _ if found == written => None,
        _ => Some((place.clone(), format!("a bundle has {} here, not {}", shown(written), shown(found)))),
    }
}

/// Status, error and exit code say one thing.
fn outcome(bundle: &Bundle, problems: &mut Collector<'_>) {
    if (bundle.status == Status::Error) != bundle.error.is_some() {
        let message = "the status is \"error\" if and only if there is an error";
        problems.add(&Place::keys(&["status"]), message);
    }
    let expected = exit_code(bundle.error.as_ref(), bundle.facts.as_deref());
    if bundle.meta.exit_code != expected {
        let message =
            format!("{} is not {expected}, the code that error and verdict ask for", bundle.meta.exit_code);
        problems.add(&Place::keys(&["meta", "exit_code"]), message);
    }
    let Some(error) = &bundle.error else { return };
    let symbol = error.symbol;
    if error.code != symbol.code() {
        let message = format!("{} is not {}, the code of {}", error.code, symbol.code(), symbol.as_str());
        problems.add(&Place::keys(&["error", "code"]), message);
    }
    if error.retryable != symbol.retryable() {
        let message = format!("this is not what {} is", symbol.as_str());
        problems.add(&Place::keys(&["error", "retryable"]), message);
    }
}

/// Every list of places is in its order, without duplicates.
fn lists(bundle: &Bundle, problems: &mut Collector<'_>) {
    let Some(facts) = &bundle.facts else { return };
    for (name, list) in [
        ("definitions", &facts.definitions),
        ("declarations", &facts.declarations),
        ("type_definitions", &facts.type_definitions),
        ("implementations", &facts.implementations),
        ("references", &facts.references),
    ] {
        ordered(list.as_deref(), &Place::keys(&["facts", name]), problems);
    }
    ordered(facts.symbols.as_deref(), &Place::keys(&["facts", "symbols"]), problems);
    let calls = Place::keys(&["facts", "calls"]);
    ordered(facts.calls.as_deref(), &calls, problems);
    for (index, call) in facts.calls.iter().flatten().enumerate() {
        ordered(Some(&call.sites), &calls.index(index).key("sites"), problems);
    }
    let diagnostics = facts.diagnostics.as_ref().map(|diagnostics| diagnostics.items.as_slice());
    ordered(diagnostics, &Place::keys(&["facts", "diagnostics", "items"]), problems);
}

fn ordered<T: Placed + Serialize + Clone + PartialEq>(
    list: Option<&[T]>,
    place: &Place,
    problems: &mut Collector<'_>,
) {
    let Some(list) = list else { return };
    let mut sorted = list.to_vec();
    order::sort(&mut sorted);
    if let Some(index) = (0..list.len()).find(|&index| sorted.get(index) != Some(&list[index])) {
        let message = "the list is not in order of uri and range, or holds an item twice, from here on";
        problems.add(&place.index(index), message);
    }
}
