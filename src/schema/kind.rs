//! The kinds of documents that have a schema, and the text of each schema.

use std::fmt;

use crate::model::BUNDLE_VERSION;
use crate::model::trace::TRACE_VERSION;

/// A kind of document that has a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SchemaKind {
    /// An Analysis Bundle ([`crate::model::bundle::Bundle`]), as lanser writes it.
    Bundle,
    /// A selector as JSON ([`crate::selector::PositionSpec`]), as lanser accepts it.
    Selector,
    /// A request ([`crate::model::request::Request`]), as lanser accepts it.
    Request,
    /// A line of a trace ([`crate::model::trace::Event`]), as lanser writes it.
    Trace,
    /// A line of a batch ([`crate::model::batch::BatchLine`]), as lanser accepts it.
    Batch,
}

impl SchemaKind {
    /// Every kind.
    pub const ALL: [Self; 5] = [Self::Bundle, Self::Selector, Self::Request, Self::Batch, Self::Trace];

    /// The name on the command line, as in `bundle`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bundle => "bundle",
            Self::Selector => "selector",
            Self::Request => "request",
            Self::Trace => "trace",
            Self::Batch => "batch",
        }
    }

    /// The name of the schema file, as in `bundle.schema.json`.
    #[must_use]
    pub const fn file_name(self) -> &'static str {
        match self {
            Self::Bundle => "bundle.schema.json",
            Self::Selector => "selector.schema.json",
            Self::Request => "request.schema.json",
            Self::Batch => "batch.schema.json",
            Self::Trace => "trace.schema.json",
        }
    }

    /// The version of the format.
    #[must_use]
    pub const fn version(self) -> &'static str {
        match self {
            Self::Trace => TRACE_VERSION,
            _ => BUNDLE_VERSION,
        }
    }

    /// Parses the name, or the name of the schema file.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| name == kind.name() || name == kind.file_name())
    }
}

impl fmt::Display for SchemaKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The JSON Schema (draft 2020-12) of a kind, byte for byte as in `schemas/`.
#[must_use]
pub const fn export(kind: SchemaKind) -> &'static str {
    match kind {
        SchemaKind::Bundle => include_str!("../../schemas/bundle.schema.json"),
        SchemaKind::Selector => include_str!("../../schemas/selector.schema.json"),
        SchemaKind::Request => include_str!("../../schemas/request.schema.json"),
        SchemaKind::Trace => include_str!("../../schemas/trace.schema.json"),
        SchemaKind::Batch => include_str!("../../schemas/batch.schema.json"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::generate::generate;

    /// With `LANSER_UPDATE=1` this test writes the files instead.
    #[test]
    fn the_files_are_generated_from_the_types() {
        #[expect(clippy::disallowed_methods, reason = "a test's own switch, not a setting of the program")]
        let update = std::env::var_os("LANSER_UPDATE").is_some_and(|value| value == "1");
        for kind in SchemaKind::ALL {
            let generated = generate(kind);
            if update {
                let path = format!("{}/schemas/{}", env!("CARGO_MANIFEST_DIR"), kind.file_name());
                std::fs::write(path, generated).unwrap();
            } else {
                assert!(
                    generated == export(kind),
                    "{} differs from the types; run the test with LANSER_UPDATE=1",
                    kind.file_name()
                );
            }
        }
    }

    #[test]
    fn the_files_are_valid_schemas() {
        for kind in SchemaKind::ALL {
            let schema: serde_json::Value = serde_json::from_str(export(kind)).unwrap();
            assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
            assert_eq!(schema["$id"], format!("urn:lanser:schema:{kind}:{}", kind.version()));
            if let Err(error) = jsonschema::meta::validate(&schema) {
                panic!("{kind}: {error}");
            }
        }
    }

    #[test]
    fn names_are_parsed() {
        for kind in SchemaKind::ALL {
            assert_eq!(SchemaKind::parse(kind.name()), Some(kind));
            assert_eq!(SchemaKind::parse(kind.file_name()), Some(kind));
        }
        assert_eq!(SchemaKind::parse("Bundle"), None);
    }
}
