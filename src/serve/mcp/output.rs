//! What a tool returns as `structuredContent`: the parts of a bundle that are about the code, with long lists cut; and the JSON
//! Schema of it, a part of the published schema of bundles.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::bundle::page::continue_after;
use crate::model::bundle::{Bundle, Status};
use crate::model::request::Command;
use crate::schema::{SchemaKind, export};

/// How many items of each list are returned. Models read all of them; the whole bundle is a resource.
const MAX_ITEMS: usize = 200;

/// The members of a bundle that are returned; `resolution` where it is the answer or may explain an error.
const MEMBERS: [&str; 7] = ["bundleId", "status", "resolution", "facts", "edits", "error", "warnings"];

/// The returned parts of a bundle, and whether a list was cut.
pub(super) fn facts(bundle: &Bundle) -> (Value, bool) {
    let Ok(Value::Object(mut whole)) = serde_json::to_value(bundle) else {
        unreachable!("a bundle is a JSON object")
    };
    let mut limits = whole.get_mut("meta").map(|meta| meta["limits"].take()).unwrap_or_default();
    whole.retain(|name, value| MEMBERS.contains(&name.as_str()) && !value.is_null());
    let is_located = bundle.request.as_ref().is_some_and(|request| request.cmd == Command::Locate);
    if !is_located && bundle.error.is_none() {
        whole.remove("resolution");
    }
    if let Some(cursor) = whole.get("facts").and_then(|facts| cursor_after_cut(bundle, facts)) {
        limits["truncated"] = true.into();
        limits["cap"] = MAX_ITEMS.into();
        if bundle.status == Status::Ok {
            // As where a limit was given.
            whole.insert("status".to_owned(), json!(Status::Partial));
        }
        limits["cursor"] = cursor.into();
    }
    let mut omitted = Map::new();
    if let Some(Value::Object(edits)) = whole.get_mut("edits") {
        // It repeats the files, their diffs and the checks in a form that only editors apply.
        edits.remove("workspaceEdit");
    }
    for part in ["edits", "facts", "warnings"] {
        if let Some(value) = whole.get_mut(part) {
            cut(if part == "warnings" { part } else { "" }, value, &mut omitted);
        }
    }
    if !limits.is_null() {
        whole.insert("limits".to_owned(), limits);
    }
    let is_cut = !omitted.is_empty();
    if is_cut {
        whole.insert("omitted".to_owned(), Value::Object(omitted));
    }
    (Value::Object(whole), is_cut)
}

/// The cursor of what follows the returned items, if fewer are returned than the page of the bundle has. Items of the lists after
/// the first that is cut are on the next page again.
fn cursor_after_cut(bundle: &Bundle, facts: &Value) -> Option<String> {
    let request = bundle.request.as_ref()?;
    let limits = bundle.meta.limits.as_ref()?;
    let pointers: &[&str] = match request.cmd {
        Command::Definition => &["/definitions"],
        Command::Declaration => &["/declarations"],
        Command::TypeDefinition => &["/type_definitions"],
        Command::Implementation => &["/implementations"],
        Command::References => &["/references", "/overrides", "/completeness/unresolved/items"],
        Command::Calls => &["/calls", "/overrides", "/completeness/unresolved/items"],
        Command::Symbols => &["/symbols"],
        Command::TypeHierarchy => &["/types"],
        Command::Diagnostics => &["/diagnostics/items"],
        _ => &[],
    };
    let lists = pointers.iter().filter_map(|pointer| facts.pointer(pointer)?.as_array());
    let lists: Vec<_> = lists.collect();
    let cut = lists.iter().position(|list| list.len() > MAX_ITEMS)?;
    let before: usize = lists[..cut].iter().map(|list| list.len()).sum();
    let items: Vec<&Value> = lists.into_iter().flatten().collect();
    Some(continue_after(&items, limits, request.options.cursor.as_deref(), before + MAX_ITEMS))
}

/// Cuts the lists in a value, and notes how many items each loses; `at` is the path of the value's members, such as
/// `completeness.unresolved.items`.
fn cut(at: &str, value: &mut Value, omitted: &mut Map<String, Value>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                let at = if at.is_empty() { name.clone() } else { format!("{at}.{name}") };
                cut(&at, value, omitted);
            }
        }
        Value::Array(items) => {
            if let Some(beyond) = items.len().checked_sub(MAX_ITEMS).filter(|beyond| *beyond > 0) {
                let before = omitted.get(at).and_then(Value::as_u64).unwrap_or_default();
                omitted.insert(at.to_owned(), (before + beyond as u64).into());
                items.truncate(MAX_ITEMS);
            }
            items.iter_mut().for_each(|item| cut(at, item, omitted));
        }
        _ => {}
    }
}

/// The schema of [`facts`] for the answers of a command.
pub(super) fn schema(command: Command) -> Map<String, Value> {
    let bundle: Value =
        serde_json::from_str(export(SchemaKind::Bundle)).expect("the library's own schema is JSON");
    let mut properties = Map::new();
    for name in MEMBERS {
        let property = match name {
            // Large, and read by few.
            "resolution" | "edits" => json!({"type": "object"}),
            _ => without_null(bundle["properties"][name].clone()),
        };
        properties.insert(name.to_owned(), property);
    }
    properties.insert("limits".to_owned(), json!({"$ref": "#/$defs/Limits"}));
    properties.insert(
        "omitted".to_owned(),
        json!({
            "type": "object",
            "description": "How many items each list has beyond those returned: `limits.cursor` continues the answer's own list, and the resource of the bundle has all.",
            "additionalProperties": {"type": "integer"},
        }),
    );
    if !command.edits() && command != Command::Undo {
        properties.remove("edits");
    }
    let mut definitions = bundle["$defs"].as_object().cloned().unwrap_or_default();
    if let Some(Value::Object(facts)) = definitions.get_mut("Facts").map(|facts| &mut facts["properties"]) {
        let own = own_facts(command);
        facts.retain(|name, _| own.contains(&name.as_str()));
    }
    if let Some(Value::Object(location)) =
        definitions.get_mut("Location").map(|location| &mut location["properties"])
        && !command.takes_second_opinion()
    {
        location.remove("agreement");
        if matches!(command, Command::Diagnostics | Command::Check) {
            // A related location is not found by a rule.
            location.retain(|name, _| !matches!(name.as_str(), "provenance" | "via"));
        }
    }
    if let Some(error) = definitions.get_mut("ErrorBody").map(|error| &mut error["properties"]) {
        // The schema of bundles lists all symbols and forms of the data, which take more than everything else.
        error["symbol"] = json!({"type": "string"});
        error["data"] = json!({"type": ["object", "null"]});
    }
    let mut schema = Map::new();
    schema.insert("type".to_owned(), "object".into());
    schema.insert("required".to_owned(), json!(["bundleId", "status"]));
    schema.insert("properties".to_owned(), Value::Object(properties));
    let mut reached = BTreeSet::new();
    let mut pending = references(&Value::Object(schema.clone()));
    while let Some(name) = pending.pop() {
        if reached.insert(name.clone()) {
            pending.extend(references(&definitions[&name]));
        }
    }
    definitions.retain(|name, _| reached.contains(name));
    schema.insert("$defs".to_owned(), Value::Object(definitions));
    let mut schema = Value::Object(schema);
    without_descriptions(&mut schema);
    match schema {
        Value::Object(schema) => schema,
        _ => Map::new(),
    }
}

/// The members of `facts` that a command's answers have.
fn own_facts(command: Command) -> Vec<&'static str> {
    let own: &[&str] = match command {
        Command::Definition => &["definitions", "hover"],
        Command::Declaration => &["declarations"],
        Command::TypeDefinition => &["type_definitions"],
        Command::Implementation => &["implementations", "overrides"],
        Command::References => &["references", "overrides"],
        Command::Hover => &["hover"],
        Command::Symbols => &["symbols"],
        Command::Calls => &["calls", "overrides"],
        Command::TypeHierarchy => &["types"],
        Command::Diagnostics => &["diagnostics"],
        Command::Locate => &[],
        Command::PrepareRename => &["renamable"],
        Command::Actions => &["actions"],
        Command::Check => &["verdict"],
        Command::Undo => &["transactions"],
        Command::Rename | Command::Apply => &[],
    };
    own.iter().copied().chain(["provenance", "completeness"]).collect()
}

/// The definitions that a schema refers to.
fn references(schema: &Value) -> Vec<String> {
    match schema {
        Value::Object(members) => members
            .iter()
            .flat_map(|(name, value)| match (name.as_str(), value) {
                ("$ref", Value::String(to)) => {
                    to.strip_prefix("#/$defs/").map(str::to_owned).into_iter().collect()
                }
                _ => references(value),
            })
            .collect(),
        Value::Array(items) => items.iter().flat_map(references).collect(),
        _ => Vec::new(),
    }
}

/// A schema without the alternative `null`: such members are left out.
fn without_null(mut schema: Value) -> Value {
    if let Some(Value::Array(forms)) = schema.get_mut("anyOf") {
        forms.retain(|form| form["type"] != "null");
        if let [only] = forms.as_slice() {
            return only.clone();
        }
    }
    schema
}

/// Removes the descriptions, which are as long as everything else together; `lanser schema export` has them.
fn without_descriptions(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            // A property may have that name, too.
            if members.get("description").is_some_and(Value::is_string) {
                members.remove("description");
            }
            members.values_mut().for_each(without_descriptions);
        }
        Value::Array(items) => items.iter_mut().for_each(without_descriptions),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundle::seal::{BundleDraft, seal};
    use crate::model::error::{ErrorBody, ErrorData, ErrorSymbol};

    #[test]
    fn every_schema_is_closed_and_small() {
        for command in Command::ALL {
            let schema = Value::Object(schema(command));
            for name in references(&schema) {
                assert!(schema["$defs"][&name].is_object(), "{command:?}: {name}");
            }
            let bytes = schema.to_string().len();
            assert!(bytes < 8 << 10, "{command:?}: {bytes} bytes");
        }
    }

    #[test]
    fn long_lists_are_cut() {
        let many = || json!(vec![1; MAX_ITEMS + 3]);
        let mut facts = json!({
            "many": many(),
            "few": vec![1; MAX_ITEMS],
            "completeness": {"unresolved": {"items": many()}},
            "calls": [{"ranges": many()}, {"ranges": [1]}, {"ranges": many()}],
        });
        let mut omitted = Map::new();
        cut("", &mut facts, &mut omitted);
        let expected = json!({"many": 3, "completeness.unresolved.items": 3, "calls.ranges": 6});
        assert_eq!(Value::Object(omitted), expected);
        let length = |at: &str| facts.pointer(at).and_then(Value::as_array).map(Vec::len);
        for at in ["/many", "/few", "/completeness/unresolved/items", "/calls/0/ranges", "/calls/2/ranges"] {
            assert_eq!(length(at), Some(MAX_ITEMS), "{at}");
        }
        assert_eq!(length("/calls/1/ranges"), Some(1));
    }

    /// Clients refuse what does not fit the schema, errors included.
    #[test]
    fn every_error_fits_the_schema() {
        for command in Command::ALL {
            let validator = jsonschema::validator_for(&Value::Object(schema(command))).unwrap();
            for symbol in ErrorSymbol::ALL {
                let plain = ErrorBody::new(symbol, "what failed");
                let data = ErrorData::Files { paths: vec!["a.py".to_owned()] };
                let with_data = plain.clone().hint("what next").data(data);
                for error in [plain, with_data] {
                    let (answer, _) = facts(&seal(BundleDraft::failed(None, error)).unwrap());
                    assert_eq!(answer["error"]["symbol"], symbol.as_str());
                    let found: Vec<_> =
                        validator.iter_errors(&answer).map(|found| found.to_string()).collect();
                    assert_eq!(found, Vec::<String>::new(), "{command:?} {symbol:?}");
                }
            }
        }
    }
}
