//! Validates a document: strict JSON, then its version, then its type, then the consistency of its parts.

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::history::{self, VersionReader};
use super::problem::{Collector, Problems};
use super::{SchemaKind, consistency};
use crate::digest::{JsonPath, strict_json};
use crate::model::batch::BatchLine;
use crate::model::bundle::Bundle;
use crate::model::environment::Environment;
use crate::model::error::ErrorBody;
use crate::model::request::Request;
use crate::model::trace::{Event, TRACE_FORMAT};
use crate::selector::{
    AnchorSpec, AstSpec, CursorSpec, LineSpec, NameSpec, PositionSpec, RangeSpec, SymbolSpec, SymidSpec,
};

/// How far a valid document was checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Validity {
    /// Its type accepts it, and its parts are consistent.
    Whole,
    /// It has an earlier format, whose types this version of lanser does not have: its checksum is that of its content.
    Checksum,
}

/// The path of a part that is wrong, and what is wrong with it.
type Fault = (JsonPath, String);

/// Validates a document of one kind.
///
/// # Errors
/// The problems. A document that is not strict JSON, or that the type rejects (such as a path outside of the
/// workspace), is reported with its first problem; one whose parts are not consistent, with all of them.
pub fn validate(kind: SchemaKind, bytes: &[u8]) -> Result<Validity, Problems> {
    let document: Value = strict_json::from_slice(bytes)?;
    let mut problems = Collector::new(std::str::from_utf8(bytes).expect("strict JSON is UTF-8"));
    if let Some(part) = versioned_part(kind, &document) {
        match history::reader_of(part.kind, part.version) {
            VersionReader::Types => {}
            VersionReader::Checksum => {
                history::check(&part, bytes, &mut problems);
                return problems.finish().map(|()| Validity::Checksum);
            }
            VersionReader::None => {
                return Err(Problems::whole(history::unknown_version(part.kind, part.version)));
            }
        }
    }
    let read = match kind {
        SchemaKind::Bundle => {
            read::<Bundle>(&document).map(|bundle| consistency::check(&bundle, &document, &mut problems))
        }
        SchemaKind::Selector => read::<PositionSpec>(&document).map(drop),
        SchemaKind::Request => read::<Request>(&document).map(drop),
        SchemaKind::Trace => {
            read::<Event>(&document).map(|event| consistency::as_written(&event, &document, &mut problems))
        }
        SchemaKind::Batch => read::<BatchLine>(&document).map(drop),
    };
    if let Err((path, message)) = read {
        problems.add(&path, message);
    }
    problems.finish().map(|()| Validity::Whole)
}

/// A part of a document that has a version.
pub(super) struct VersionedPart<'d> {
    pub(super) kind: SchemaKind,
    pub(super) version: &'d str,
    pub(super) content: &'d Value,
    pub(super) path: JsonPath,
}

/// The part of a document that has a version: the document, or the bundle in an event of a trace.
fn versioned_part(kind: SchemaKind, document: &Value) -> Option<VersionedPart<'_>> {
    let (kind, path) = match kind {
        SchemaKind::Bundle if document.get("bundleId").is_some() => (kind, JsonPath::default()),
        SchemaKind::Trace if document["format"] == TRACE_FORMAT => (kind, JsonPath::default()),
        SchemaKind::Trace if document["kind"] == "bundle" => {
            (SchemaKind::Bundle, JsonPath::keys(&["bundle"]))
        }
        _ => return None,
    };
    let content = path.value_in(document)?;
    Some(VersionedPart { kind, version: content["version"].as_str()?, content, path })
}

/// Reads a document as its type.
///
/// serde reads the rest of an object as a whole once its tag (`kind`) has chosen the type, so that the path of a fault in it is
/// unknown. Such a part is then read again as the type that its tag chooses.
fn read<T: DeserializeOwned>(document: &Value) -> Result<T, Fault> {
    if !document.is_object() {
        return Err((JsonPath::default(), format!("{} is not an object", consistency::shown(document))));
    }
    strict_json::from_value(document).map_err(|(path, message)| {
        let inner =
            path.value_in(document).and_then(|part| fault_in_selector(part).or_else(|| fault_in_event(part)));
        inner.map_or((path.clone(), message), |(inner, message)| (path.join(&inner), message))
    })
}

fn fault_in_selector(part: &Value) -> Option<Fault> {
    let mut members = part.as_object()?.clone();
    let tag = members.remove("kind")?;
    let rest = Value::Object(members);
    match tag.as_str()? {
        "cursor" => strict_json::from_value::<CursorSpec>(&rest).err(),
        "range" => strict_json::from_value::<RangeSpec>(&rest).err(),
        "line" => strict_json::from_value::<LineSpec>(&rest).err(),
        "symbol" => strict_json::from_value::<SymbolSpec>(&rest).err(),
        "name" => strict_json::from_value::<NameSpec>(&rest).err(),
        "ast" => strict_json::from_value::<AstSpec>(&rest).err(),
        "anchor" => strict_json::from_value::<AnchorSpec>(&rest).err(),
        "symid" => strict_json::from_value::<SymidSpec>(&rest).err(),
        _ => None,
    }
}

fn fault_in_event(part: &Value) -> Option<Fault> {
    let fault_in = |name: &str| {
        let value = part.get(name).filter(|value| !value.is_null())?;
        let (path, message) = match name {
            "environment" => read::<Environment>(value).err(),
            "request" | "portable" => read::<Request>(value).err(),
            "bundle" => read::<Bundle>(value).err(),
            "error" => read::<ErrorBody>(value).err(),
            _ => None,
        }?;
        Some((JsonPath::keys(&[name]).join(&path), message))
    };
    match part["kind"].as_str()? {
        "header" | "workspace" => fault_in("environment"),
        "request" => fault_in("request").or_else(|| fault_in("portable")),
        "bundle" => fault_in("bundle"),
        "fault" => fault_in("error"),
        _ => None,
    }
}
