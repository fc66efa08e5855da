//! Compares two JSON schemas: which documents a change allows or forbids.
//!
//! A change *narrows* a schema if a document that was valid may no longer be, and *widens* it if a document that was not
//! valid may be. Keywords that are not understood count as both. Annotations are ignored. A part that several places refer
//! to is compared once, and is named by its definition.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Serialize;
use serde_json::{Map, Value};

/// Keywords that describe a schema and restrict nothing.
const ANNOTATIONS: [&str; 10] = [
    "$comment",
    "$defs",
    "$id",
    "$schema",
    "default",
    "deprecated",
    "description",
    "examples",
    "format",
    "title",
];

/// Keywords with a lower bound, and with an upper bound.
const LOWER_BOUNDS: [&str; 5] = ["exclusiveMinimum", "minItems", "minLength", "minProperties", "minimum"];
const UPPER_BOUNDS: [&str; 5] = ["exclusiveMaximum", "maxItems", "maxLength", "maxProperties", "maximum"];

/// Which way two schemas have to be compatible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Compatibility {
    /// Documents of the old schema are valid under the new one.
    Backward,
    /// Documents of the new schema are valid under the old one.
    Forward,
    /// Both.
    Full,
}

/// A change between two schemas.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct SchemaChange {
    /// The place: `$` or the name of a definition, then members, with `[]` for the items of an array.
    pub path: String,
    /// What changed.
    pub change: String,
    /// Whether documents of the old schema may be invalid under the new one.
    pub narrows: bool,
    /// Whether documents of the new schema may be invalid under the old one.
    pub widens: bool,
}

impl SchemaChange {
    /// Whether the change breaks a kind of compatibility.
    #[must_use]
    pub const fn breaks(&self, compatibility: Compatibility) -> bool {
        match compatibility {
            Compatibility::Backward => self.narrows,
            Compatibility::Forward => self.widens,
            Compatibility::Full => self.narrows || self.widens,
        }
    }
}

impl fmt::Display for SchemaChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.change)
    }
}

/// All changes from an old schema to a new one, sorted by place.
#[must_use]
pub fn diff(old: &Value, new: &Value) -> Vec<SchemaChange> {
    let mut comparison = SchemaComparison { old, new, seen: BTreeSet::new(), changes: BTreeSet::new() };
    comparison.schemas("$", old, new);
    comparison.changes.into_iter().collect()
}

struct SchemaComparison<'s> {
    old: &'s Value,
    new: &'s Value,
    /// The pairs of definitions that were compared.
    seen: BTreeSet<(String, String)>,
    changes: BTreeSet<SchemaChange>,
}

/// The direction of a change.
#[derive(Clone, Copy)]
enum ChangeDirection {
    Narrower,
    Wider,
    Other,
}

impl<'s> SchemaComparison<'s> {
    fn add(&mut self, path: &str, change: impl Into<String>, direction: ChangeDirection) {
        let (narrows, widens) = match direction {
            ChangeDirection::Narrower => (true, false),
            ChangeDirection::Wider => (false, true),
            ChangeDirection::Other => (true, true),
        };
        self.changes.insert(SchemaChange { path: path.to_owned(), change: change.into(), narrows, widens });
    }

    fn schemas(&mut self, path: &str, old: &'s Value, new: &'s Value) {
        let ((old, old_name), (new, new_name)) = (resolve(self.old, old), resolve(self.new, new));
        let mut path = path;
        if let (Some(old_name), Some(new_name)) = (old_name, new_name) {
            if !self.seen.insert((old_name.to_owned(), new_name.to_owned())) {
                return;
            }
            path = new_name;
        }
        match (as_bool(old), as_bool(new)) {
            (Some(old), Some(new)) if old == new => return,
            (_, Some(true)) => return self.add(path, "every value is allowed", ChangeDirection::Wider),
            (_, Some(false)) => return self.add(path, "no value is allowed", ChangeDirection::Narrower),
            (Some(true), _) => {
                return self.add(path, "not every value is allowed", ChangeDirection::Narrower);
            }
            (Some(false), _) => return self.add(path, "values are allowed", ChangeDirection::Wider),
            (None, None) => {}
        }
        match (values(old), values(new)) {
            (Some(old), Some(new)) => return self.values(path, &old, &new),
            (None, Some(_)) if values_apply(old) => {
                self.add(path, "only certain values are allowed", ChangeDirection::Narrower);
            }
            (Some(_), None) if values_apply(new) => {
                self.add(path, "not only certain values are allowed", ChangeDirection::Wider);
            }
            _ => {}
        }
        match (alternatives(old), alternatives(new)) {
            (None, None) => {}
            (Some(old), Some(new)) => self.forms(path, &old, &new),
            // A schema without alternatives is one form.
            (Some(old), None) => return self.forms(path, &old, &[new]),
            (None, Some(new)) => return self.forms(path, &[old], &new),
        }
        self.types(path, old, new);
        self.members(path, old, new);
        self.items(path, old, new);
        self.references(path, old, new);
        self.other_keywords(path, old, new);
    }

    /// References that stand beside other keywords.
    fn references(&mut self, path: &str, old: &'s Value, new: &'s Value) {
        match (old["$ref"].as_str(), new["$ref"].as_str()) {
            (Some(before), Some(after)) => {
                let target =
                    |root: &'s Value, reference: &str| root.pointer(reference.trim_start_matches('#'));
                if let (Some(old), Some(new)) = (target(self.old, before), target(self.new, after))
                    && self.seen.insert((before.to_owned(), after.to_owned()))
                {
                    self.schemas(path, old, new);
                }
            }
            (None, None) => {}
            _ => self.add(path, "`$ref` differs", ChangeDirection::Other),
        }
    }

    fn values(&mut self, path: &str, old: &BTreeSet<String>, new: &BTreeSet<String>) {
        for value in old.difference(new) {
            self.add(path, format!("the value {value} is removed"), ChangeDirection::Narrower);
        }
        for value in new.difference(old) {
            self.add(path, format!("the value {value} is new"), ChangeDirection::Wider);
        }
    }

    /// Compares alternatives. Those with the same label are the same form.
    fn forms(&mut self, path: &str, old: &[&'s Value], new: &[&'s Value]) {
        let label_of = |root: &'s Value, forms: &[&'s Value]| -> BTreeMap<String, &'s Value> {
            forms.iter().map(|form| (label(root, form), *form)).collect()
        };
        let (old_forms, new_forms) = (label_of(self.old, old), label_of(self.new, new));
        for (label, old_form) in &old_forms {
            match new_forms.get(label) {
                Some(new_form) => self.schemas(path, old_form, new_form),
                None => self.add(path, format!("the form {label} is removed"), ChangeDirection::Narrower),
            }
        }
        for label in new_forms.keys().filter(|label| !old_forms.contains_key(*label)) {
            self.add(path, format!("the form {label} is new"), ChangeDirection::Wider);
        }
    }

    fn types(&mut self, path: &str, old: &Value, new: &Value) {
        match (types(old), types(new)) {
            (Some(old), Some(new)) => {
                let covers = |types: &BTreeSet<&str>, name: &str| {
                    types.contains(name) || name == "integer" && types.contains("number")
                };
                for name in old.iter().filter(|name| !covers(&new, name)) {
                    self.add(path, format!("the type {name} is removed"), ChangeDirection::Narrower);
                }
                for name in new.iter().filter(|name| !covers(&old, name)) {
                    self.add(path, format!("the type {name} is new"), ChangeDirection::Wider);
                }
            }
            (None, Some(_)) if alternatives(old).is_none() && values(old).is_none() => {
                self.add(path, "the type is restricted", ChangeDirection::Narrower);
            }
            (Some(_), None) if alternatives(new).is_none() && values(new).is_none() => {
                self.add(path, "the type is no longer restricted", ChangeDirection::Wider);
            }
            _ => {}
        }
    }

    fn members(&mut self, path: &str, old: &'s Value, new: &'s Value) {
        let none = Map::new();
        let members = |schema: &'s Value| schema["properties"].as_object();
        let (old_members, new_members) = (members(old), members(new));
        let (old_required, new_required) = (required(old), required(new));
        let (old_open, new_open) = (is_open(old), is_open(new));
        let names: BTreeSet<&String> =
            old_members.unwrap_or(&none).keys().chain(new_members.unwrap_or(&none).keys()).collect();
        for name in names {
            let inner = format!("{path}.{name}");
            let find =
                |members: Option<&'s Map<String, Value>>| members.and_then(|members| members.get(name));
            match (find(old_members), find(new_members)) {
                (Some(old), Some(new)) => self.schemas(&inner, old, new),
                (Some(_), None) if new_open => {
                    self.add(&inner, "the member is not described", ChangeDirection::Wider);
                }
                (Some(_), None) => self.add(&inner, "the member is removed", ChangeDirection::Narrower),
                (None, Some(_)) if old_open => {
                    self.add(&inner, "the member is restricted", ChangeDirection::Narrower);
                }
                (None, Some(_)) => self.add(&inner, "the member is new", ChangeDirection::Wider),
                (None, None) => {}
            }
        }
        for name in new_required.difference(&old_required) {
            self.add(&format!("{path}.{name}"), "the member is now required", ChangeDirection::Narrower);
        }
        for name in old_required.difference(&new_required) {
            let is_removed = !new_open && new_members.is_none_or(|members| !members.contains_key(*name));
            if !is_removed {
                self.add(
                    &format!("{path}.{name}"),
                    "the member is no longer required",
                    ChangeDirection::Wider,
                );
            }
        }
        let rest = |schema: &'s Value| schema.get("additionalProperties");
        match (rest(old), rest(new)) {
            (Some(old), Some(new)) if old.is_object() && new.is_object() => {
                self.schemas(&format!("{path}.*"), old, new);
            }
            (old, new) if old == new => {}
            _ if old_open && !new_open => {
                self.add(path, "other members are no longer allowed", ChangeDirection::Narrower);
            }
            _ if new_open && !old_open => self.add(path, "other members are allowed", ChangeDirection::Wider),
            _ => {}
        }
    }

    fn items(&mut self, path: &str, old: &'s Value, new: &'s Value) {
        let inner = format!("{path}[]");
        match (old.get("items"), new.get("items")) {
            (Some(old), Some(new)) => self.schemas(&inner, old, new),
            (None, Some(_)) => self.add(&inner, "the items are restricted", ChangeDirection::Narrower),
            (Some(_), None) => self.add(&inner, "the items are no longer restricted", ChangeDirection::Wider),
            (None, None) => {}
        }
        let prefix = |schema: &'s Value| schema["prefixItems"].as_array();
        match (prefix(old), prefix(new)) {
            (Some(old), Some(new)) if old.len() == new.len() => {
                for (index, (old, new)) in old.iter().zip(new).enumerate() {
                    self.schemas(&format!("{path}[{index}]"), old, new);
                }
            }
            (None, None) => {}
            _ => self.add(path, "`prefixItems` differs", ChangeDirection::Other),
        }
    }

    /// Bounds, and keywords that are compared only for equality.
    fn other_keywords(&mut self, path: &str, old: &'s Value, new: &'s Value) {
        const HANDLED: [&str; 11] = [
            "$ref",
            "additionalProperties",
            "anyOf",
            "const",
            "enum",
            "items",
            "oneOf",
            "prefixItems",
            "properties",
            "required",
            "type",
        ];
        let keywords: BTreeSet<&String> =
            [old, new].into_iter().filter_map(Value::as_object).flat_map(Map::keys).collect();
        for keyword in keywords {
            if HANDLED.contains(&keyword.as_str()) || ANNOTATIONS.contains(&keyword.as_str()) {
                continue;
            }
            let (before, after) = (old.get(keyword), new.get(keyword));
            if before == after {
                continue;
            }
            if keyword == "allOf"
                && let (Some(old), Some(new)) = (old[keyword].as_array(), new[keyword].as_array())
                && old.len() == new.len()
            {
                for (old, new) in old.iter().zip(new) {
                    self.schemas(path, old, new);
                }
                continue;
            }
            let shown = |value: Option<&Value>| value.map_or("nothing".to_owned(), ToString::to_string);
            let change = match keyword.as_str() {
                "allOf" | "if" | "then" | "else" | "not" => format!("`{keyword}` differs"),
                _ => format!("`{keyword}` was {}, is {}", shown(before), shown(after)),
            };
            self.add(path, change, direction(keyword, before, after));
        }
    }
}

/// The direction of a changed keyword.
fn direction(keyword: &str, old: Option<&Value>, new: Option<&Value>) -> ChangeDirection {
    let is_lower = LOWER_BOUNDS.contains(&keyword);
    let is_bound = is_lower || UPPER_BOUNDS.contains(&keyword);
    let restricts = is_bound || matches!(keyword, "pattern" | "uniqueItems" | "multipleOf" | "not");
    match (old, new) {
        (None, Some(_)) if restricts => ChangeDirection::Narrower,
        (Some(_), None) if restricts => ChangeDirection::Wider,
        (Some(old), Some(new)) if is_bound => match (old.as_f64(), new.as_f64()) {
            (Some(old), Some(new)) if (new > old) == is_lower => ChangeDirection::Narrower,
            (Some(_), Some(_)) => ChangeDirection::Wider,
            _ => ChangeDirection::Other,
        },
        _ => ChangeDirection::Other,
    }
}

/// The schema that a `$ref` without other restrictions refers to, with its name.
fn resolve<'s>(root: &'s Value, mut schema: &'s Value) -> (&'s Value, Option<&'s str>) {
    let mut name = None;
    // A chain of references that is longer is a circle.
    for _ in 0..32 {
        let Some(reference) = schema["$ref"].as_str() else { break };
        let restrictions = schema.as_object().into_iter().flat_map(Map::keys);
        if restrictions.filter(|key| !ANNOTATIONS.contains(&key.as_str())).count() > 1 {
            break;
        }
        let Some(found) = root.pointer(reference.trim_start_matches('#')) else { break };
        name = Some(reference.rsplit('/').next().unwrap_or(reference));
        schema = found;
    }
    (schema, name)
}

/// Whether a schema is `true` (or empty) or `false`.
fn as_bool(schema: &Value) -> Option<bool> {
    match schema {
        Value::Bool(all) => Some(*all),
        Value::Object(keywords) => {
            keywords.keys().all(|key| ANNOTATIONS.contains(&key.as_str())).then_some(true)
        }
        _ => None,
    }
}

/// The values of an enumeration, also of one that is written as alternatives with a constant each.
fn values(schema: &Value) -> Option<BTreeSet<String>> {
    if let Some(value) = schema.get("const") {
        return Some(BTreeSet::from([value.to_string()]));
    }
    if let Some(values) = schema["enum"].as_array() {
        return Some(values.iter().map(ToString::to_string).collect());
    }
    let forms = alternatives(schema)?;
    forms.into_iter().map(values).collect::<Option<Vec<_>>>().map(|sets| sets.into_iter().flatten().collect())
}

/// Whether a schema restricts values only by their type, so that an enumeration is a restriction or a relaxation of it.
fn values_apply(schema: &Value) -> bool {
    types(schema).is_some() && alternatives(schema).is_none()
}

fn alternatives(schema: &Value) -> Option<Vec<&Value>> {
    ["anyOf", "oneOf"].into_iter().find_map(|key| schema[key].as_array()).map(|forms| forms.iter().collect())
}

/// A name by which an alternative is found again: its definition, the constant of its tag, or its type.
fn label(root: &Value, form: &Value) -> String {
    let (schema, name) = resolve(root, form);
    let tag = schema["properties"].as_object().into_iter().flatten().find_map(|(key, member)| {
        let constant = resolve(root, member).0.get("const")?;
        Some(format!("{key} {constant}"))
    });
    let kinds = || types(schema).map(|types| types.into_iter().collect::<Vec<_>>().join(" or "));
    tag.or_else(|| name.map(str::to_owned))
        .or_else(|| values(schema).map(|values| values.into_iter().collect::<Vec<_>>().join(", ")))
        .or_else(kinds)
        .unwrap_or_else(|| schema.to_string())
}

fn types(schema: &Value) -> Option<BTreeSet<&str>> {
    match &schema["type"] {
        Value::String(name) => Some(BTreeSet::from([name.as_str()])),
        Value::Array(names) => Some(names.iter().filter_map(Value::as_str).collect()),
        _ => None,
    }
}

fn required(schema: &Value) -> BTreeSet<&str> {
    schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Whether members that are not described are allowed.
fn is_open(schema: &Value) -> bool {
    schema.get("additionalProperties") != Some(&Value::Bool(false))
        && schema.get("unevaluatedProperties") != Some(&Value::Bool(false))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn changes(old: &Value, new: &Value, expected: &[(&str, &str, bool, bool)]) {
        let found = diff(old, new);
        let found: Vec<_> = found
            .iter()
            .map(|one| (one.path.as_str(), one.change.as_str(), one.narrows, one.widens))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn members() {
        let closed = |properties: Value, required: Value| json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false});
        let old = closed(json!({"a": {"type": "string"}, "b": {}, "c": {}}), json!(["a", "c"]));
        changes(&old, &old, &[]);
        changes(
            &old,
            &closed(json!({"a": {"type": ["string", "null"]}, "c": {}, "d": {}, "e": {}}), json!(["a", "e"])),
            &[
                ("$.a", "the type null is new", false, true),
                ("$.b", "the member is removed", true, false),
                ("$.c", "the member is no longer required", false, true),
                ("$.d", "the member is new", false, true),
                ("$.e", "the member is new", false, true),
                ("$.e", "the member is now required", true, false),
            ],
        );
        let open = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]});
        let alone = closed(json!({"a": {"type": "string"}}), json!(["a"]));
        changes(&alone, &open, &[("$", "other members are allowed", false, true)]);
        changes(&open, &alone, &[("$", "other members are no longer allowed", true, false)]);
    }

    #[test]
    fn types_values_and_bounds() {
        changes(
            &json!({"type": "integer"}),
            &json!({"type": "number"}),
            &[("$", "the type number is new", false, true)],
        );
        changes(
            &json!({"type": "string", "enum": ["a", "b"]}),
            &json!({"oneOf": [{"const": "b", "description": "B"}, {"const": "c"}]}),
            &[("$", "the value \"a\" is removed", true, false), ("$", "the value \"c\" is new", false, true)],
        );
        changes(
            &json!({"type": "string"}),
            &json!({"type": "string", "enum": ["a"]}),
            &[("$", "only certain values are allowed", true, false)],
        );
        changes(
            &json!({"type": "integer", "minimum": 1, "maximum": 9, "description": "old"}),
            &json!({"type": "integer", "minimum": 0, "maximum": 8, "description": "new"}),
            &[("$", "`maximum` was 9, is 8", true, false), ("$", "`minimum` was 1, is 0", false, true)],
        );
        changes(
            &json!({"type": "string", "pattern": "a"}),
            &json!({"type": "string", "pattern": "b"}),
            &[("$", "`pattern` was \"a\", is \"b\"", true, true)],
        );
        changes(&json!({"type": "string"}), &json!(true), &[("$", "every value is allowed", false, true)]);
    }

    #[test]
    fn definitions_forms_and_items() {
        let schema = |inner: Value, forms: Value| {
            json!({
                "type": "array",
                "items": {"$ref": "#/$defs/Node"},
                "$defs": {
                    "Node": {"type": "object", "properties": {
                        "next": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]},
                        "value": inner,
                        "form": {"oneOf": forms},
                    }},
                },
            })
        };
        let form = |tag: &str, member: Value| json!({"type": "object", "properties": {"kind": {"const": tag}, "x": member}});
        let old = schema(
            json!({"type": "string"}),
            json!([form("a", json!({"type": "string"})), form("b", json!(true))]),
        );
        changes(&old, &old, &[]);
        let new = schema(
            json!({"type": "integer"}),
            json!([form("c", json!(true)), form("a", json!({"type": "null"}))]),
        );
        changes(
            &old,
            &new,
            &[
                ("Node.form", "the form kind \"b\" is removed", true, false),
                ("Node.form", "the form kind \"c\" is new", false, true),
                ("Node.form.x", "the type null is new", false, true),
                ("Node.form.x", "the type string is removed", true, false),
                ("Node.value", "the type integer is new", false, true),
                ("Node.value", "the type string is removed", true, false),
            ],
        );
        assert!(diff(&old, &new)[0].breaks(Compatibility::Backward));
        assert!(!diff(&old, &new)[1].breaks(Compatibility::Backward));
        assert!(diff(&old, &new)[1].breaks(Compatibility::Forward));
        assert!(diff(&old, &new).iter().all(|change| change.breaks(Compatibility::Full)));
    }
}
