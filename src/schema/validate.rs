//! Judging a document: strict JSON, then the schema, then the type, then what its parts say of one another.

use std::sync::LazyLock;

use jsonschema::Validator;
use serde_json::Value;

use super::problem::{Collector, Problems};
use super::{Kind, content, explain::explain, export};
use crate::digest::strict_json;
use crate::model::batch::BatchLine;
use crate::model::bundle::Bundle;
use crate::model::request::Request;
use crate::model::trace::Event;
use crate::selector::PositionSpec;

/// Judges a document of one kind.
///
/// # Errors
/// With what is wrong. A document that is no strict JSON, or that the type refuses (a path that leaves the
/// workspace, say), is reported with its first fault; one that does not fit the schema with all of them.
pub fn validate(kind: Kind, bytes: &[u8]) -> Result<(), Problems> {
    let document: Value = strict_json::from_slice(bytes)?;
    let text = std::str::from_utf8(bytes).expect("strict JSON is UTF-8");
    let mut problems = Collector::new(text);
    for error in validator(kind).iter_errors(&document) {
        for (place, message) in explain(&error) {
            problems.add(&place, message);
        }
    }
    if problems.is_empty() {
        match kind {
            Kind::Bundle => {
                content::check(&strict_json::from_slice::<Bundle>(bytes)?, &document, &mut problems);
            }
            Kind::Selector => drop(strict_json::from_slice::<PositionSpec>(bytes)?),
            Kind::Request => drop(strict_json::from_slice::<Request>(bytes)?),
            Kind::Trace => drop(strict_json::from_slice::<Event>(bytes)?),
            Kind::Batch => drop(strict_json::from_slice::<BatchLine>(bytes)?),
        }
    }
    problems.finish()
}

/// The compiled schema of a kind.
pub(super) fn validator(kind: Kind) -> &'static Validator {
    static BUNDLE: LazyLock<Validator> = LazyLock::new(|| compile(Kind::Bundle));
    static SELECTOR: LazyLock<Validator> = LazyLock::new(|| compile(Kind::Selector));
    static REQUEST: LazyLock<Validator> = LazyLock::new(|| compile(Kind::Request));
    static TRACE: LazyLock<Validator> = LazyLock::new(|| compile(Kind::Trace));
    static BATCH: LazyLock<Validator> = LazyLock::new(|| compile(Kind::Batch));
    match kind {
        Kind::Bundle => &BUNDLE,
        Kind::Selector => &SELECTOR,
        Kind::Request => &REQUEST,
        Kind::Trace => &TRACE,
        Kind::Batch => &BATCH,
    }
}

fn compile(kind: Kind) -> Validator {
    let schema: Value = serde_json::from_str(export(kind)).expect("a test reads every embedded schema");
    jsonschema::draft202012::new(&schema).expect("a test compiles every embedded schema")
}
