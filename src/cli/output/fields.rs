//! `--fields a,b.c`: parts of a JSON document.

use serde_json::{Map, Value};

/// The parts of `value` that the dotted paths select, in the shape of the whole. A path continues into every element of
/// an array. Paths that select nothing are ignored.
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

/// An error message for the first path that no document of this schema can have; `None` if all paths are possible.
pub(crate) fn find_unknown(schema: &Value, paths: &[String]) -> Option<String> {
    paths.iter().find_map(|path| {
        let mut at = vec![schema];
        let mut before = Vec::new();
        for part in path.split('.').filter(|part| !part.is_empty()) {
            let mut names = Vec::new();
            let mut next = Vec::new();
            let mut is_open = false;
            for node in at {
                members(schema, node, &mut |name, inner| {
                    is_open |= name.is_none();
                    names.extend(name);
                    if name.is_none_or(|name| name == part) {
                        next.push(inner);
                    }
                });
            }
            if next.is_empty() && !is_open {
                return Some(unknown_field(path, &before, names));
            }
            before.push(part);
            at = next;
        }
        None
    })
}

/// The error message for an unknown path: `before` is its part that exists, `names` the fields there.
pub(crate) fn unknown_field(path: &str, before: &[&str], mut names: Vec<&str>) -> String {
    names.sort_unstable();
    names.dedup();
    let parent = if before.is_empty() { "the answer".to_owned() } else { format!("`{}`", before.join(".")) };
    if names.is_empty() {
        return format!("--fields {path}: {parent} has no fields");
    }
    format!("--fields {path}: no such field; {parent} has {}", names.join(", "))
}

/// The longest chain of nested schemas and `$ref`s that is followed.
const MAX_DEPTH: usize = 16;

/// Visits every member of a schema's objects, including those in its arrays and alternatives. The name is `None` where any
/// name is allowed.
fn members<'s>(root: &'s Value, node: &'s Value, visit: &mut dyn FnMut(Option<&'s str>, &'s Value)) {
    walk(root, node, MAX_DEPTH, visit);
}

fn walk<'s>(
    root: &'s Value,
    node: &'s Value,
    left: usize,
    visit: &mut dyn FnMut(Option<&'s str>, &'s Value),
) {
    let Some(left) = left.checked_sub(1) else { return };
    if let Some(found) = node["$ref"].as_str().and_then(|path| root.pointer(path.trim_start_matches('#'))) {
        walk(root, found, left, visit);
    }
    for key in ["anyOf", "oneOf", "allOf", "prefixItems"] {
        for inner in node[key].as_array().into_iter().flatten() {
            walk(root, inner, left, visit);
        }
    }
    if node["items"].is_object() {
        walk(root, &node["items"], left, visit);
    }
    for (name, inner) in node["properties"].as_object().into_iter().flatten() {
        visit(Some(name), inner);
    }
    if let inner @ (Value::Object(_) | Value::Bool(true)) = &node["additionalProperties"] {
        visit(None, inner);
    }
}

fn project(value: &Value, path: &[&str]) -> Option<Value> {
    let Some((first, rest)) = path.split_first() else { return Some(value.clone()) };
    match value {
        Value::Object(map) => {
            let inner = project(map.get(*first)?, rest)?;
            Some(Value::Object(Map::from_iter([((*first).to_owned(), inner)])))
        }
        // An element without the part becomes an empty object, so that two selections of one list can be merged.
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
    fn unknown_fields_are_reported_with_the_known_ones() {
        let schema = serde_json::from_str(crate::schema::export(crate::schema::SchemaKind::Bundle)).unwrap();
        let check = |path: &str| find_unknown(&schema, &[path.to_owned()]);
        for path in [
            "status",
            "facts.references.at",
            "facts.calls.sites.at",
            "meta.volatile.served_from",
            "request.selector.uri",
            "",
        ] {
            assert_eq!(check(path), None, "{path}");
        }
        assert!(
            check("facts.refs")
                .unwrap()
                .starts_with("--fields facts.refs: no such field; `facts` has actions, calls, completeness,")
        );
        assert!(check("references").unwrap().contains("the answer has bundleId, capabilities,"));
        assert_eq!(check("status.x").unwrap(), "--fields status.x: `status` has no fields");
    }

    #[test]
    fn select_keeps_the_shape_of_the_document() {
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
