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

/// Why one of the paths names nothing that a document of this schema could have; `None` when all of them do.
pub(crate) fn unknown(schema: &Value, paths: &[String]) -> Option<String> {
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
                return Some(no_such(path, &before, names));
            }
            before.push(part);
            at = next;
        }
        None
    })
}

/// Why a path names nothing, when `names` are what stands where it breaks off.
pub(crate) fn no_such(path: &str, before: &[&str], mut names: Vec<&str>) -> String {
    names.sort_unstable();
    names.dedup();
    let place = if before.is_empty() { "the answer".to_owned() } else { format!("`{}`", before.join(".")) };
    if names.is_empty() {
        return format!("--fields {path}: {place} has no parts");
    }
    format!("--fields {path}: {place} has {}", names.join(", "))
}

/// How many references of a schema are followed to one member.
const MAX_STEPS: usize = 16;

/// Every member of a schema's objects, of those in its lists and of its alternatives too; without a name where any is allowed.
fn members<'s>(root: &'s Value, node: &'s Value, visit: &mut dyn FnMut(Option<&'s str>, &'s Value)) {
    walk(root, node, MAX_STEPS, visit);
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
    fn a_name_that_no_bundle_has() {
        let schema = serde_json::from_str(crate::schema::export(crate::schema::Kind::Bundle)).unwrap();
        let check = |path: &str| unknown(&schema, &[path.to_owned()]);
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
                .starts_with("--fields facts.refs: `facts` has actions, calls, completeness,")
        );
        assert!(check("references").unwrap().contains("the answer has bundleId, capabilities,"));
        assert_eq!(check("status.x").unwrap(), "--fields status.x: `status` has no parts");
    }

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
