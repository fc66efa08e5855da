//! Finds the first difference between two JSON documents, and the recorded call that is most similar to an unrecorded one.

use serde_json::Value;

use crate::tape::MessageSender;

/// The JSONPath (RFC 9535) of the first difference between two documents, in the order of member names.
#[must_use]
pub fn difference(a: &Value, b: &Value) -> Option<String> {
    at("$".to_owned(), a, b)
}

/// The members of a bundle that are compared across formats: what `bundleId` covers, and the status.
const COMPARED: [&str; 9] =
    ["status", "request", "resolution", "facts", "edits", "environment", "capabilities", "error", "warnings"];

/// The JSONPath of the first difference between a bundle of an earlier format and a replayed one. Only what was recorded is
/// compared: later formats have more members.
#[must_use]
pub fn recorded_difference(recorded: &Value, replayed: &Value) -> Option<String> {
    let mut members: Vec<(&str, &Value, &Value)> = COMPARED
        .into_iter()
        .filter(|name| recorded.get(name).is_some())
        .map(|name| (name, &recorded[name], &replayed[name]))
        .collect();
    members.extend(["exit_code", "limits", "relocation"].into_iter().filter_map(|name| {
        recorded["meta"].get(name).map(|recorded| (name, recorded, &replayed["meta"][name]))
    }));
    members.into_iter().find_map(|(name, recorded, replayed)| {
        let path = if COMPARED.contains(&name) { format!("$.{name}") } else { format!("$.meta.{name}") };
        at(path, recorded, &restricted(replayed, recorded))
    })
}

/// A document without the members that another one lacks.
fn restricted(document: &Value, to: &Value) -> Value {
    match (document, to) {
        (Value::Object(members), Value::Object(to)) => Value::Object(
            members
                .iter()
                .filter_map(|(name, member)| Some((name.clone(), restricted(member, to.get(name)?))))
                .collect(),
        ),
        (Value::Array(items), Value::Array(to)) if items.len() == to.len() => {
            Value::Array(items.iter().zip(to).map(|(item, to)| restricted(item, to)).collect())
        }
        _ => document.clone(),
    }
}

fn at(path: String, a: &Value, b: &Value) -> Option<String> {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            let mut keys: Vec<&String> = a.keys().chain(b.keys()).collect();
            keys.sort();
            keys.dedup();
            keys.into_iter().find_map(|key| {
                let here = step(&path, key);
                match (a.get(key), b.get(key)) {
                    (Some(a), Some(b)) => at(here, a, b),
                    _ => Some(here),
                }
            })
        }
        (Value::Array(a), Value::Array(b)) => {
            let inner =
                a.iter().zip(b).enumerate().find_map(|(index, (a, b))| at(format!("{path}[{index}]"), a, b));
            inner.or_else(|| (a.len() != b.len()).then(|| format!("{path}[{}]", a.len().min(b.len()))))
        }
        (a, b) => (a != b).then_some(path),
    }
}

fn step(path: &str, key: &str) -> String {
    let is_plain = !key.starts_with(|c: char| c.is_ascii_digit())
        && !key.is_empty()
        && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if is_plain { format!("{path}.{key}") } else { format!("{path}[{}]", Value::from(key)) }
}

/// The recorded call most similar to one that was not recorded: its event number, and the path of the first parameter that
/// differs.
#[must_use]
pub fn nearest_frame(
    frames: &[(u64, MessageSender, Value)],
    method: &str,
    params: &str,
) -> Option<(u64, String)> {
    let params: Value = serde_json::from_str(params).ok()?;
    frames
        .iter()
        .filter(|(_, from, message)| *from == MessageSender::Client && message["method"] == method)
        .filter_map(|(event, _, message)| Some((*event, difference(&message["params"], &params)?)))
        // A longer path to the first difference means that more is equal.
        .max_by_key(|(_, field)| field.len())
        .map(|(event, field)| (event, field.replacen('$', "$.params", 1)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_difference() {
        let a = json!({"a": [1, {"b c": 2}], "z": 1});
        assert_eq!(difference(&a, &a), None);
        assert_eq!(difference(&a, &json!({"a": [1, {"b c": 3}], "z": 2})).unwrap(), "$.a[1][\"b c\"]");
        assert_eq!(difference(&a, &json!({"a": [1], "z": 1})).unwrap(), "$.a[1]");
        assert_eq!(difference(&a, &json!({"a": [1, {"b c": 2}]})).unwrap(), "$.z");
    }

    #[test]
    fn only_what_was_recorded_is_compared_across_formats() {
        let recorded = json!({
            "version": "1.0", "bundleId": "a", "facts": {"definitions": [{"uri": "a"}]},
            "meta": {"exit_code": 0, "hashing": 1},
        });
        let mut replayed = json!({
            "version": "1.1", "bundleId": "b", "facts": {"definitions": [{"uri": "a", "new": 1}], "hover": 2},
            "error": null, "meta": {"exit_code": 0, "hashing": 2, "limits": null},
        });
        assert_eq!(recorded_difference(&recorded, &replayed), None);
        replayed["meta"]["exit_code"] = json!(3);
        assert_eq!(recorded_difference(&recorded, &replayed).unwrap(), "$.meta.exit_code");
        replayed["facts"]["definitions"] = json!([{"new": 1}]);
        assert_eq!(recorded_difference(&recorded, &replayed).unwrap(), "$.facts.definitions[0].uri");
        replayed["facts"]["definitions"] = json!([]);
        assert_eq!(recorded_difference(&recorded, &replayed).unwrap(), "$.facts.definitions[0]");
    }

    #[test]
    fn the_nearest_call() {
        let call =
            |line: u32| json!({"id": 1, "method": "m", "params": {"position": {"line": line}, "uri": "u"}});
        let frames = [(3, MessageSender::Client, call(1)), (4, MessageSender::Server, json!({"id": 1}))];
        let params = r#"{"position":{"line":2},"uri":"u"}"#;
        assert_eq!(nearest_frame(&frames, "m", params), Some((3, "$.params.position.line".to_owned())));
        assert_eq!(nearest_frame(&frames, "n", params), None);
    }
}
