//! The version that a selector refers to: a content by its digest, or a git revision.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::digest::Digest;

/// The version of a file that a selector was made from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum DocVersion {
    /// The content with this digest: `sha256:…`.
    Content(Digest),
    /// The blob of the file's path at a revision: `git:HEAD~3`. Not checked to exist.
    Git(Revision),
}

/// A git revision, as in `git rev-parse`. Invariant: not empty, no control character, no white space, no leading `-`, and no
/// `:`, which would name a file of the revision.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Revision(String);

impl Revision {
    /// A revision; `None` if the text violates the invariant.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let plain = !text.is_empty()
            && !text.starts_with('-')
            && !text.chars().any(|c| c == ':' || c.is_control() || c.is_whitespace());
        plain.then(|| Self(text.to_owned()))
    }

    /// The text of the revision.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl DocVersion {
    /// Reads the printed form.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text.strip_prefix("git:") {
            Some(revision) => Revision::new(revision).map(Self::Git),
            None => Digest::parse(text).map(Self::Content),
        }
    }
}

impl fmt::Display for DocVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Content(digest) => digest.fmt(f),
            Self::Git(revision) => write!(f, "git:{}", revision.0),
        }
    }
}

impl Serialize for DocVersion {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for DocVersion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| {
            serde::de::Error::custom(format!("{text:?} is neither sha256:<64 digits> nor git:<revision>"))
        })
    }
}

impl JsonSchema for DocVersion {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "DocVersion".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "description": "the version that the selector was made from: sha256:<digest of the content> or git:<revision>",
            "pattern": "^(sha256:[0-9a-f]{64}|git:[^-:\\s][^:\\s]*)$"
        })
    }
}
