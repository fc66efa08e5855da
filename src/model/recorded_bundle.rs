//! The bundle in a trace, which may be of an earlier format than the bundles that this version of lanser writes.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::BUNDLE_VERSION;
use super::bundle::{Bundle, Status};
use crate::digest::Digest;

/// The bundle of a recorded operation.
#[derive(Debug, Clone, PartialEq)]
pub enum RecordedBundle {
    /// A bundle of the format that this version of lanser writes.
    Current(Box<Bundle>),
    /// A bundle of another format, as it was recorded.
    Other {
        /// The version of its format.
        version: String,
        /// The document.
        document: Value,
    },
}

impl RecordedBundle {
    /// The version of the format, if it is another than [`BUNDLE_VERSION`].
    #[must_use]
    pub fn other_version(&self) -> Option<&str> {
        match self {
            Self::Current(_) => None,
            Self::Other { version, .. } => Some(version),
        }
    }

    /// The bundle, if it has the current format.
    #[must_use]
    pub fn current(&self) -> Option<&Bundle> {
        match self {
            Self::Current(bundle) => Some(bundle),
            Self::Other { .. } => None,
        }
    }

    /// The status; `None` if the other format has none, or another kind of status.
    #[must_use]
    pub fn status(&self) -> Option<Status> {
        match self {
            Self::Current(bundle) => Some(bundle.status),
            Self::Other { document, .. } => serde_json::from_value(document["status"].clone()).ok(),
        }
    }

    /// The exit code; `None` if the other format has none.
    #[must_use]
    pub fn exit_code(&self) -> Option<u8> {
        match self {
            Self::Current(bundle) => Some(bundle.meta.exit_code),
            Self::Other { document, .. } => document["meta"]["exit_code"].as_u64()?.try_into().ok(),
        }
    }

    /// The ID; `None` if the other format has none.
    #[must_use]
    pub fn bundle_id(&self) -> Option<Digest> {
        match self {
            Self::Current(bundle) => Some(bundle.bundle_id),
            Self::Other { document, .. } => Digest::parse(document["bundleId"].as_str()?),
        }
    }
}

impl Serialize for RecordedBundle {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Current(bundle) => bundle.serialize(serializer),
            Self::Other { document, .. } => document.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for RecordedBundle {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let document = Value::deserialize(deserializer)?;
        match document["version"].as_str() {
            Some(version) if version != BUNDLE_VERSION => {
                Ok(Self::Other { version: version.to_owned(), document })
            }
            _ => serde_json::from_value(document).map(Self::Current).map_err(D::Error::custom),
        }
    }
}

/// The schema of traces describes the bundles that are written today.
impl JsonSchema for RecordedBundle {
    fn inline_schema() -> bool {
        Bundle::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        Bundle::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        Bundle::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Bundle::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn another_format_is_kept_as_it_is() {
        let id = Digest::of(b"");
        let document = json!({
            "version": "0.9", "bundleId": id, "status": "ok", "replaced": [1.5], "meta": {"exit_code": 3},
        });
        let recorded: RecordedBundle = serde_json::from_value(document.clone()).unwrap();
        assert_eq!(recorded.other_version(), Some("0.9"));
        assert_eq!((recorded.status(), recorded.exit_code()), (Some(Status::Ok), Some(3)));
        assert_eq!((recorded.bundle_id(), recorded.current()), (Some(id), None));
        assert_eq!(serde_json::to_value(&recorded).unwrap(), document);
        let bare: RecordedBundle = serde_json::from_value(json!({"version": "9"})).unwrap();
        assert_eq!((bare.status(), bare.exit_code(), bare.bundle_id()), (None, None, None));
        // The current format is read strictly.
        let error = serde_json::from_value::<RecordedBundle>(json!({"version": BUNDLE_VERSION}));
        assert!(error.unwrap_err().to_string().contains("bundleId"));
    }
}
