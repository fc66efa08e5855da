//! Earlier versions of the formats that lanser writes: bundles and traces.
//!
//! `schemas/history/` keeps the schema of each published version, without descriptions, for comparison. The types of earlier
//! versions are gone, so of a document of a published version the checksum is verified; of one of an unknown version, the
//! version is reported and nothing else.

use serde_json::{Map, Value};

use super::SchemaKind;
use super::problem::{Collector, Problems};
use super::validate::VersionedPart;
use crate::digest::{CanonicalError, Digest, JsonPath, canonical_digest, strict_json};
use crate::model::trace;

/// The schema of one version of a format.
struct PublishedSchema {
    kind: SchemaKind,
    version: &'static str,
    text: &'static str,
}

macro_rules! published {
    ($kind:ident, $version:literal, $file:literal) => {
        PublishedSchema {
            kind: SchemaKind::$kind,
            version: $version,
            text: include_str!(concat!("../../schemas/history/", $file)),
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

fn published(kind: SchemaKind, version: &str) -> Option<&'static PublishedSchema> {
    PUBLISHED.iter().find(|schema| schema.kind == kind && schema.version == version)
}

/// The versions of a format that documents can have, the current one first.
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

/// What reads the documents of a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum VersionReader {
    /// The types of this version of lanser.
    Types,
    /// The code that verifies checksums: the types are gone.
    Checksum,
    /// Nothing: the version was never published, or is later than this version of lanser.
    None,
}

/// What reads the documents of a version. Traces of one major version have the same types.
pub(super) fn reader_of(kind: SchemaKind, version: &str) -> VersionReader {
    fn major(version: &str) -> Option<&str> {
        version.split('.').next()
    }
    let is_current = version == kind.version();
    let is_published = published(kind, version).is_some();
    if is_current || is_published && kind == SchemaKind::Trace && major(version) == major(kind.version()) {
        VersionReader::Types
    } else if is_published {
        VersionReader::Checksum
    } else {
        VersionReader::None
    }
}

/// Checks a document of an earlier version: `bundleId` of a bundle, `sum` of a line of a trace.
pub(super) fn check(part: &VersionedPart<'_>, line: &[u8], problems: &mut Collector<'_>) {
    if part.kind == SchemaKind::Trace {
        return check_sum(part.content, line, problems);
    }
    let message = match bundle_id(part.content) {
        Ok(digest) if part.content["bundleId"] == digest.to_string() => return,
        Ok(digest) => format!("the digest of the content is {digest}"),
        Err(error) => error.to_string(),
    };
    problems.add(&part.path.key("bundleId"), message);
}

/// Checks a line of a trace of an earlier version.
pub(super) fn check_line(line: &[u8]) -> Result<(), Problems> {
    let event: Value = strict_json::from_slice(line)?;
    let mut problems = Collector::new(std::str::from_utf8(line).expect("strict JSON is UTF-8"));
    check_sum(&event, line, &mut problems);
    problems.finish()
}

fn check_sum(event: &Value, line: &[u8], problems: &mut Collector<'_>) {
    let sum = event["sum"].as_str().unwrap_or_default();
    let found = trace::checksum(line.trim_ascii_end(), event["time"].as_u64(), sum);
    if found.as_deref() != Some(sum) {
        let message = match found {
            Some(found) => format!("the checksum of the line is {found}"),
            None => "the line does not end with `time` and `sum` in the form that lanser writes".to_owned(),
        };
        problems.add(&JsonPath::keys(&["sum"]), message);
    }
}

/// What is said of a document of an unknown version.
pub(super) fn unknown_version(kind: SchemaKind, version: &str) -> String {
    let (latest, earlier) = (kind.version(), &versions(kind)[1..]);
    let also = if earlier.is_empty() {
        String::new()
    } else {
        format!(", and verifies checksums of {}", earlier.join(", "))
    };
    format!("this is a {kind} of format {version:?}; this lanser reads {latest}{also}")
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
        }
    }

    /// The documents of earlier versions, which only their checksums are checked of when lanser runs, fit their schemas.
    #[test]
    fn documents_of_published_versions_fit_their_schemas() {
        for schema in &PUBLISHED {
            let validator =
                jsonschema::draft202012::new(&serde_json::from_str(schema.text).unwrap()).unwrap();
            let name = if schema.kind == SchemaKind::Trace { "trace" } else { "bundles" };
            let folder = format!("fixtures/history/{}-{}", schema.kind, schema.version);
            let path = format!("{}/{folder}/{name}.jsonl", env!("CARGO_MANIFEST_DIR"));
            for line in std::fs::read_to_string(path).unwrap().lines() {
                let document: Value = strict_json::from_slice(line.as_bytes()).unwrap();
                assert!(validator.is_valid(&document), "{folder}: {line}");
            }
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
            format!("$: this is a bundle of format \"1.2\"; this lanser reads {latest}, and verifies");
        assert!(problems.to_string().starts_with(&message), "{problems}");
        assert_eq!(problems.listed.len(), 1);
    }
}
