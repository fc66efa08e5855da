//! Generates the text of `schemas/` from the types.
//!
//! Only tests call this: the library embeds the text, so exporting a schema needs no generator. The schemas of bundles
//! and traces describe what lanser writes (members that are always written are required); those of selectors, requests
//! and batch lines describe what lanser accepts (members with a default may be absent).

use std::collections::BTreeMap;

use schemars::generate::SchemaSettings;
use schemars::transform::{Transform, transform_subschemas};
use schemars::{JsonSchema, Schema};
use serde_json::Value;

use super::SchemaKind;
use crate::digest::MAX_SAFE_INTEGER;
use crate::model::BUNDLE_VERSION;
use crate::model::batch::BatchLine;
use crate::model::bundle::Bundle;
use crate::model::request::Request;
use crate::model::trace::Event;
use crate::selector::PositionSpec;

/// The text of a schema: sorted keys, indented by two spaces, with a final newline.
pub(super) fn generate(kind: SchemaKind) -> String {
    let settings = SchemaSettings::draft2020_12();
    let mut schema = match kind {
        SchemaKind::Bundle => {
            let mut schema = root::<Bundle>(settings.for_serialize());
            AsWritten.transform(&mut schema);
            schema
        }
        SchemaKind::Selector => root::<PositionSpec>(settings.for_deserialize()),
        SchemaKind::Request => root::<Request>(settings.for_deserialize()),
        SchemaKind::Trace => root::<Event>(settings.for_serialize()),
        SchemaKind::Batch => root::<BatchLine>(settings.for_deserialize()),
    };
    schema.insert("$id".to_owned(), format!("urn:lanser:schema:{}:{}", kind.name(), kind.version()).into());
    if kind == SchemaKind::Bundle
        && let Some(version) = schema.pointer_mut("/properties/version").and_then(Value::as_object_mut)
    {
        // The schema is valid for one version only.
        version.insert("const".to_owned(), BUNDLE_VERSION.into());
    }
    let sorted = sorted(schema.to_value());
    let mut text = serde_json::to_string_pretty(&sorted).expect("a JSON value has a text");
    text.push('\n');
    text
}

fn root<T: JsonSchema>(settings: SchemaSettings) -> Schema {
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    StandardKeywords.transform(&mut schema);
    schema
}

/// Replaces the generator's extensions by standard JSON Schema.
///
/// The generator marks integers with formats (`uint32`) that JSON Schema does not define. Strict validators reject
/// these and others ignore them, so that 2^32 would be accepted. They become `minimum` and `maximum`.
struct StandardKeywords;

impl Transform for StandardKeywords {
    fn transform(&mut self, schema: &mut Schema) {
        let most = match schema.get("format").and_then(Value::as_str) {
            Some("uint8") => Some(u64::from(u8::MAX)),
            Some("uint32") => Some(u64::from(u32::MAX)),
            Some("uint64") => Some(MAX_SAFE_INTEGER),
            Some("int64") | None => None,
            Some(other) => panic!("no bounds are known for the format {other:?}"),
        };
        if schema.get("format").and_then(Value::as_str) == Some("int64") {
            schema.remove("format");
            schema.insert("minimum".to_owned(), (-MAX_SAFE_INTEGER.cast_signed()).into());
            schema.insert("maximum".to_owned(), MAX_SAFE_INTEGER.into());
        }
        if let Some(most) = most {
            schema.remove("format");
            // A bound set on the type itself is tighter.
            if schema.get("maximum").is_none() {
                schema.insert("maximum".to_owned(), most.into());
            }
        }
        // Removes the line breaks of doc comments.
        if let Some(Value::String(text)) = schema.get_mut("description") {
            *text = text.split("\n\n").map(|part| part.replace('\n', " ")).collect::<Vec<_>>().join("\n\n");
        }
        transform_subschemas(self, schema);
    }
}

/// Narrows a schema to what the serializer writes: no unknown members, and no `null` for a member that may be absent,
/// because such a member is omitted instead.
struct AsWritten;

impl Transform for AsWritten {
    fn transform(&mut self, schema: &mut Schema) {
        let required: Vec<Value> =
            schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
        if let Some(Value::Object(properties)) = schema.get_mut("properties") {
            for (name, property) in properties {
                if !required.iter().any(|known| known == name) {
                    drop_null(property);
                }
            }
            schema.insert("additionalProperties".to_owned(), false.into());
        }
        transform_subschemas(self, schema);
    }
}

/// Removes `null` from `"type": ["string", "null"]` and from `"anyOf": [{"$ref": …}, {"type": "null"}]`.
fn drop_null(property: &mut Value) {
    let Some(property) = property.as_object_mut() else { return };
    if let Some(Value::Array(types)) = property.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            property.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(forms)) = property.get_mut("anyOf") {
        forms.retain(|form| form["type"] != "null");
        if let [Value::Object(only)] = forms.as_slice() {
            let only = only.clone();
            property.remove("anyOf");
            property.extend(only);
        }
    }
}

fn sorted(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let members: BTreeMap<String, Value> = members.into_iter().collect();
            members.into_iter().map(|(key, value)| (key, sorted(value))).collect()
        }
        Value::Array(items) => items.into_iter().map(sorted).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
}
