//! Checks of a bundle that its types cannot express: that its parts are consistent.

use serde::Serialize;
use serde_json::Value;

use super::problem::Collector;
use crate::bundle::order::{self, HasLocation};
use crate::bundle::seal::{HASHING, bundle_id, exit_code};
use crate::digest::JsonPath;
use crate::model::bundle::{Bundle, Status};
use crate::reward::verify;

/// The most bytes of a string that are repeated in a message.
const MAX_SHOWN: usize = 80;

/// Checks a bundle; `document` is the JSON that it was parsed from.
pub(super) fn check(bundle: &Bundle, document: &Value, problems: &mut Collector<'_>) {
    as_written(bundle, document, problems);
    outcome(bundle, problems);
    lists(bundle, problems);

    if bundle.meta.hashing.algo != HASHING {
        let message = format!("{:?} is not {HASHING:?}", bundle.meta.hashing.algo);
        problems.add(&JsonPath::keys(&["meta", "hashing", "algo"]), message);
    }
    match bundle_id(bundle) {
        Ok(digest) if digest == bundle.bundle_id => {
            if let Err(what) = verify(bundle) {
                problems.add(&JsonPath::keys(&["processReward"]), what.to_owned());
            }
        }
        Ok(digest) => {
            problems.add(&JsonPath::keys(&["bundleId"]), format!("the digest of the content is {digest}"));
        }
        Err(error) => problems.add(&JsonPath::default(), error.to_string()),
    }
}

/// Checks that a document is exactly what lanser writes. `bundleId` is a hash of it, and so is the checksum of an event: an
/// explicit default value, or another form of a path, makes another document with another hash.
pub(super) fn as_written(value: &impl Serialize, document: &Value, problems: &mut Collector<'_>) {
    let written = match serde_json::to_value(value) {
        Ok(written) => written,
        Err(error) => return problems.add(&JsonPath::default(), error.to_string()),
    };
    if let Some((path, message)) = first_difference(document, &written, &JsonPath::default()) {
        problems.add(&path, message);
    }
}

fn first_difference(found: &Value, written: &Value, path: &JsonPath) -> Option<(JsonPath, String)> {
    match (found, written) {
        (Value::Object(found), Value::Object(written)) => {
            for (key, member) in found {
                let path = path.key(key);
                let difference = match written.get(key) {
                    Some(written) => first_difference(member, written, &path),
                    None => Some((path, "lanser omits this member here".to_owned())),
                };
                if difference.is_some() {
                    return difference;
                }
            }
            let missing = written.keys().find(|key| !found.contains_key(*key))?;
            Some((path.clone(), format!("the member {missing:?} is missing")))
        }
        (Value::Array(found), Value::Array(written)) if found.len() == written.len() => (0..)
            .zip(found.iter().zip(written))
            .find_map(|(index, (found, written))| first_difference(found, written, &path.index(index))),
        // `1` and `1.0` are one number, with one hash.
        (Value::Number(a), Value::Number(b)) if a.as_f64() == b.as_f64() => None,
        _ if found == written => None,
        _ => Some((path.clone(), format!("lanser writes {} here, not {}", shown(written), shown(found)))),
    }
}

/// A value as it is written, or what kind of value it is when that is long.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::Array(items) if !items.is_empty() => "the array".to_owned(),
        Value::Object(members) if !members.is_empty() => "the object".to_owned(),
        Value::String(text) if text.len() > MAX_SHOWN => "the string".to_owned(),
        _ => value.to_string(),
    }
}

/// Checks that status, error and exit code agree.
fn outcome(bundle: &Bundle, problems: &mut Collector<'_>) {
    if (bundle.status == Status::Error) != bundle.error.is_some() {
        let message = "the status is \"error\" if and only if there is an error";
        problems.add(&JsonPath::keys(&["status"]), message);
    }
    let expected = exit_code(bundle.error.as_ref(), bundle.facts.as_deref());
    if bundle.meta.exit_code != expected {
        let message = format!(
            "{} is not {expected}, the exit code that follows from error and verdict",
            bundle.meta.exit_code
        );
        problems.add(&JsonPath::keys(&["meta", "exit_code"]), message);
    }
    let Some(error) = &bundle.error else { return };
    let symbol = error.symbol;
    if error.code != symbol.code() {
        let message = format!("{} is not {}, the code of {}", error.code, symbol.code(), symbol.as_str());
        problems.add(&JsonPath::keys(&["error", "code"]), message);
    }
    if error.retryable != symbol.retryable() {
        let message = format!("not the value for {}", symbol.as_str());
        problems.add(&JsonPath::keys(&["error", "retryable"]), message);
    }
}

/// Checks that every list of locations is sorted and without duplicates.
fn lists(bundle: &Bundle, problems: &mut Collector<'_>) {
    let Some(facts) = &bundle.facts else { return };
    for (name, list) in [
        ("definitions", &facts.definitions),
        ("declarations", &facts.declarations),
        ("type_definitions", &facts.type_definitions),
        ("implementations", &facts.implementations),
        ("references", &facts.references),
    ] {
        ordered(list.as_deref(), &JsonPath::keys(&["facts", name]), problems);
    }
    ordered(facts.symbols.as_deref(), &JsonPath::keys(&["facts", "symbols"]), problems);
    let calls = JsonPath::keys(&["facts", "calls"]);
    ordered(facts.calls.as_deref(), &calls, problems);
    ordered(facts.types.as_deref(), &JsonPath::keys(&["facts", "types"]), problems);
    for (index, call) in facts.calls.iter().flatten().enumerate() {
        ordered(Some(&call.sites), &calls.index(index).key("sites"), problems);
    }
    let diagnostics = facts.diagnostics.as_ref().map(|diagnostics| diagnostics.items.as_slice());
    ordered(diagnostics, &JsonPath::keys(&["facts", "diagnostics", "items"]), problems);
}

fn ordered<T: HasLocation + Serialize + Clone + PartialEq>(
    list: Option<&[T]>,
    path: &JsonPath,
    problems: &mut Collector<'_>,
) {
    let Some(list) = list else { return };
    let mut sorted = list.to_vec();
    order::sort(&mut sorted);
    if let Some(index) = (0..list.len()).find(|&index| sorted.get(index) != Some(&list[index])) {
        let message = "from here on, the list is not sorted by uri and range, or contains duplicates";
        problems.add(&path.index(index), message);
    }
}
