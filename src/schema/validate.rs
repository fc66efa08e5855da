//! Validates a document: strict JSON, then the schema, then the type, then the consistency of its parts.

use std::sync::LazyLock;

use jsonschema::Validator;
use serde_json::Value;

use super::problem::{Collector, Problems};
use super::{SchemaKind, consistency, explain::explain, export, history};
use crate::digest::strict_json;
use crate::model::batch::BatchLine;
use crate::model::bundle::Bundle;
use crate::model::request::Request;
use crate::model::trace::{Event, TRACE_FORMAT};
use crate::selector::PositionSpec;

/// Validates a document of one kind.
///
/// # Errors
/// The problems. A document that is not strict JSON, or that the type rejects (such as a path outside of the
/// workspace), is reported with its first problem; one that does not fit the schema, with all of them.
pub fn validate(kind: SchemaKind, bytes: &[u8]) -> Result<(), Problems> {
    let document: Value = strict_json::from_slice(bytes)?;
    let text = std::str::from_utf8(bytes).expect("strict JSON is UTF-8");
    if let Some((kind, version, document)) = other_version(kind, &document) {
        return history::validate(kind, version, document, text);
    }
    let mut problems = Collector::new(text);
    for error in validator(kind).iter_errors(&document) {
        for (path, message) in explain(&error) {
            problems.add(&path, message);
        }
    }
    if problems.is_empty() {
        match kind {
            SchemaKind::Bundle => {
                consistency::check(&strict_json::from_slice::<Bundle>(bytes)?, &document, &mut problems);
            }
            SchemaKind::Selector => drop(strict_json::from_slice::<PositionSpec>(bytes)?),
            SchemaKind::Request => drop(strict_json::from_slice::<Request>(bytes)?),
            SchemaKind::Trace => drop(strict_json::from_slice::<Event>(bytes)?),
            SchemaKind::Batch => drop(strict_json::from_slice::<BatchLine>(bytes)?),
        }
    }
    problems.finish()
}

/// The version of a document, and of the bundle in an event of a trace, if it is another than the current one; with the part
/// that has the version.
fn other_version(kind: SchemaKind, document: &Value) -> Option<(SchemaKind, &str, &Value)> {
    let (kind, part) = match kind {
        SchemaKind::Bundle => (kind, document),
        SchemaKind::Trace if document["format"] == TRACE_FORMAT => (kind, document),
        SchemaKind::Trace if document["kind"] == "bundle" => (SchemaKind::Bundle, &document["bundle"]),
        _ => return None,
    };
    let version = part["version"].as_str().filter(|version| *version != kind.version())?;
    let is_known = kind == SchemaKind::Trace || part.get("bundleId").is_some();
    is_known.then_some((kind, version, part))
}

/// Validates a line of a trace whose header has another version than the current one.
pub(super) fn validate_event_of(version: &str, bytes: &[u8]) -> Result<(), Problems> {
    let document: Value = strict_json::from_slice(bytes)?;
    let text = std::str::from_utf8(bytes).expect("strict JSON is UTF-8");
    history::validate(SchemaKind::Trace, version, &document, text)
}

/// The compiled schema of a kind.
pub(super) fn validator(kind: SchemaKind) -> &'static Validator {
    static BUNDLE: LazyLock<Validator> = LazyLock::new(|| compile(SchemaKind::Bundle));
    static SELECTOR: LazyLock<Validator> = LazyLock::new(|| compile(SchemaKind::Selector));
    static REQUEST: LazyLock<Validator> = LazyLock::new(|| compile(SchemaKind::Request));
    static TRACE: LazyLock<Validator> = LazyLock::new(|| compile(SchemaKind::Trace));
    static BATCH: LazyLock<Validator> = LazyLock::new(|| compile(SchemaKind::Batch));
    match kind {
        SchemaKind::Bundle => &BUNDLE,
        SchemaKind::Selector => &SELECTOR,
        SchemaKind::Request => &REQUEST,
        SchemaKind::Trace => &TRACE,
        SchemaKind::Batch => &BATCH,
    }
}

fn compile(kind: SchemaKind) -> Validator {
    let schema: Value = serde_json::from_str(export(kind)).expect("a test reads every embedded schema");
    jsonschema::draft202012::new(&schema).expect("a test compiles every embedded schema")
}
