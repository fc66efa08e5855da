//! Earlier versions of the formats that lanser writes: bundles and traces.
//!
//! `schemas/history/` keeps the schema of each published version, without descriptions. A document of another version is
//! validated against the schema of its version, or reported with its version only.

use std::sync::LazyLock;

use jsonschema::Validator;
use serde_json::{Map, Value};

use super::SchemaKind;
use super::explain::explain;
use super::json_path::JsonPath;
use super::problem::{Collector, Problems};
use crate::digest::{CanonicalError, Digest, canonical_digest};

/// The schema of one version of a format.
struct PublishedSchema {
    kind: SchemaKind,
    version: &'static str,
    text: &'static str,
    validator: LazyLock<Validator>,
}

macro_rules! published {
    ($kind:ident, $version:literal, $file:literal) => {
        PublishedSchema {
            kind: SchemaKind::$kind,
            version: $version,
            text: include_str!(concat!("../../schemas/history/", $file)),
            validator: LazyLock::new(|| compile(include_str!(concat!("../../schemas/history/", $file)))),
        }
    };
}

/// Every published version, latest first.
static PUBLISHED: [PublishedSchema; 4] = [
    published!(Bundle, "1.5", "bundle-1.5.schema.json"),
    published!(Bundle, "1.4", "bundle-1.4.schema.json"),
    published!(Trace, "3.0", "trace-3.0.schema.json"),
    published!(Trace, "2.0", "trace-2.0.schema.json"),
];

fn compile(text: &str) -> Validator {
    let schema: Value = serde_json::from_str(text).expect("a test reads every embedded schema");
    jsonschema::draft202012::new(&schema).expect("a test compiles every embedded schema")
}

fn published(kind: SchemaKind, version: &str) -> Option<&'static PublishedSchema> {
    PUBLISHED.iter().find(|schema| schema.kind == kind && schema.version == version)
}

/// The versions of a format that documents can be validated against, the current one first.
#[must_use]
pub fn versions(kind: SchemaKind) -> Vec<&'static str> {
    let earlier = PUBLISHED.iter().filter(|schema| schema.kind == kind && schema.version != kind.version());
    std::iter::once(kind.version()).chain(earlier.map(|schema| schema.version)).collect()
}

/// The schema of an earlier version, as JSON without descriptions; `None` for the current and for unknown versions.
#[must_use]
pub fn earlier(kind: SchemaKind, version: &str) -> Option<&'static str> {
    published(kind, version).filter(|_| version != kind.version()).map(|schema| schema.text)
}

/// Validates a document of another version than the current one. The only problem of a document whose version is unknown is
/// that version.
pub(super) fn validate(
    kind: SchemaKind,
    version: &str,
    document: &Value,
    text: &str,
) -> Result<(), Problems> {
    let Some(schema) = published(kind, version) else {
        return Err(Problems::whole(unknown_version(kind, version)));
    };
    let mut problems = Collector::new(text);
    for error in schema.validator.iter_errors(document) {
        for (path, message) in explain(&error) {
            problems.add(&path, message);
        }
    }
    if problems.is_empty() && kind == SchemaKind::Bundle {
        check_id(document, &mut problems);
    }
    problems.finish()
}

/// What is said of a document of an unknown version.
pub(super) fn unknown_version(kind: SchemaKind, version: &str) -> String {
    let (latest, earlier) = (kind.version(), &versions(kind)[1..]);
    let also = if earlier.is_empty() {
        String::new()
    } else {
        format!(", and checks documents of {}", earlier.join(", "))
    };
    format!("this is a {kind} of format {version:?}; this lanser reads {latest}{also}")
}

fn check_id(document: &Value, problems: &mut Collector<'_>) {
    match bundle_id(document) {
        Ok(digest) if document["bundleId"] == digest.to_string() => {}
        Ok(digest) => {
            problems.add(&JsonPath::keys(&["bundleId"]), format!("the digest of the content is {digest}"));
        }
        Err(error) => problems.add(&JsonPath::default(), error.to_string()),
    }
}

/// The digest of a bundle of any format from 1.4 on: all of them hash the same members.
fn bundle_id(document: &Value) -> Result<Digest, CanonicalError> {
    const HASHED: [&str; 8] =
        ["request", "resolution", "facts", "edits", "environment", "capabilities", "error", "warnings"];
    let mut hashed: Map<String, Value> =
        HASHED.iter().filter_map(|name| Some(((*name).to_owned(), document.get(name)?.clone()))).collect();
    let mut meta = document["meta"].clone();
    if let Some(meta) = meta.as_object_mut() {
        meta.remove("volatile");
    }
    hashed.insert("meta".to_owned(), meta);
    canonical_digest(&Value::Object(hashed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::diff::{Compatibility, diff};
    use crate::schema::{export, validate as validate_document};

    #[test]
    fn the_schemas_are_those_of_their_versions() {
        for schema in &PUBLISHED {
            let json: Value = serde_json::from_str(schema.text).unwrap();
            assert_eq!(json["$id"], format!("urn:lanser:schema:{}:{}", schema.kind, schema.version));
            assert!(!schema.validator.is_valid(&Value::Null));
        }
    }

    /// A document of a published version stays valid: a change that prevents it needs another version.
    #[test]
    fn the_current_schemas_accept_the_documents_of_their_published_version() {
        for kind in [SchemaKind::Bundle, SchemaKind::Trace] {
            // A version without a published schema is not published yet.
            let Some(published) = published(kind, kind.version()) else { continue };
            let [old, new] = [published.text, export(kind)].map(|text| serde_json::from_str(text).unwrap());
            let breaking: Vec<String> = diff(&old, &new)
                .iter()
                .filter(|change| change.breaks(Compatibility::Backward))
                .map(ToString::to_string)
                .collect();
            assert!(breaking.is_empty(), "raise the version of {kind} {}: {breaking:#?}", kind.version());
        }
    }

    #[test]
    fn a_document_of_an_unknown_version_has_one_problem() {
        let seeds = r#"{"version":"1.2","bundleId":"sha256:…","status":"ok","edits":{"diff":null}}"#;
        let problems = validate_document(SchemaKind::Bundle, seeds.as_bytes()).unwrap_err();
        let latest = SchemaKind::Bundle.version();
        let message =
            format!("$: this is a bundle of format \"1.2\"; this lanser reads {latest}, and checks");
        assert!(problems.to_string().starts_with(&message), "{problems}");
        assert_eq!((problems.listed.len(), problems.more), (1, 0));
    }
}
