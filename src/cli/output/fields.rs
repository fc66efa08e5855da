//! `--fields a,b.c`: parts of a JSON document.

use serde_json::{Map, Value};

/// The parts of `value` that the dotted paths name, in the shape of the whole. A path goes through arrays into every
/// element; one that leads nowhere is left out.
pub(crate) fn select(value: &Value, paths: &[String]) -> Value {
    let mut out = Value::Object(Map::new());
    for path in paths {
        let parts: Vec<&str> = path.split('.').filter(|part| !part.is_empty()).collect();
        if let Some(found) = project(value, &parts) {
            merge(&mut out, found);
        }
    }
    out
}

fn project(value: &Value, path: &[&str]) -> Option<Value> {
    let Some((first, rest)) = path.split_first() else { return Some(value.clone()) };
    match value {
        Value::Object(map) => {
            let inner = project(map.get(*first)?, rest)?;
            Some(Value::Object(Map::from_iter([((*first).to_owned(), inner)])))
        }
        // An element without the part keeps its place, so that two selections of one list fit together.
        Value::Array(items) => Some(Value::Array(
            items
                .iter()
                .map(|item| project(item, path).unwrap_or_else(|| Value::Object(Map::new())))
                .collect(),
        )),
        _ => None,
    }
}

fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                match into.get_mut(&key) {
                    Some(known) => merge(known, value),
                    None => {
                        into.insert(key, value);
                    }
                }
            }
        }
        (Value::Array(into), Value::Array(from)) if into.len() == from.len() => {
            into.iter_mut().zip(from).for_each(|(into, from)| merge(into, from));
        }
        (into, from) => *into = from,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parts_of_a_document() {
        let document = json!({"a": 1, "b": {"c": [{"d": 1, "e": 2}, {"d": 3, "f": 4}], "g": null}});
        let check = |paths: &[&str], expected: Value| {
            let paths: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
            assert_eq!(select(&document, &paths), expected);
        };
        check(&["a"], json!({"a": 1}));
        check(&["b.c.d", "a"], json!({"a": 1, "b": {"c": [{"d": 1}, {"d": 3}]}}));
        check(&["b.c.d", "b.c.f"], json!({"b": {"c": [{"d": 1}, {"d": 3, "f": 4}]}}));
        check(&["x.y", "a.b", "b.g"], json!({"b": {"g": null}}));
    }
}
