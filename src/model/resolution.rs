//! Where a selector is now, and why.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::digest::{Digest, Score};
use crate::path::DocUri;
use crate::text::Range;

/// Where a selector is now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Resolution {
    /// The selector in its canonical spelling.
    pub original: String,
    /// The place; `null` when there is none, or none that can be chosen.
    pub resolved: Option<Resolved>,
    /// What it could also have been, best first.
    pub disambiguation: Vec<Candidate>,
    /// Whether the caller has to choose.
    pub ambiguous: bool,
}

/// The place of a selector.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Resolved {
    /// The file.
    pub uri: DocUri,
    /// The part that the selector asks for.
    pub range: Range,
    /// A selector for the place.
    pub at: String,
    /// The qualified name, where the place is a definition's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qualname: Option<String>,
    /// What kind of definition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub symbol_kind: Option<String>,
    /// The digest of the file's content.
    pub doc_version: Digest,
    /// By which knowledge the place was found.
    pub via: Via,
    /// The steps from the selector to the place: re-exports, bases.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Hop>,
    /// How sure, 1 being certain.
    pub confidence: Score,
    /// Whether the place follows from the selector without a guess.
    pub certified: bool,
    /// The line of source.
    pub preview: String,
}

/// By which knowledge a place was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Via {
    /// The coordinates that the selector gives.
    Coordinates,
    /// The name that the selector gives.
    Name,
}

/// A step from a selector to its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Hop {
    /// What kind of step: `import`, `starImport`, `inherited`, `alias`, `submodule`, `unresolvedImport`.
    pub step: String,
    /// Where it is written.
    pub at: String,
    /// The module or definition that it leads to.
    pub to: String,
}

/// One of several places that a selector could mean.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Candidate {
    /// The file.
    pub uri: DocUri,
    /// The name token.
    pub range: Range,
    /// A selector for the place.
    pub at: String,
    /// The qualified name.
    pub qualname: String,
    /// What kind of definition.
    pub symbol_kind: String,
    /// How well it fits.
    pub score: Score,
    /// Why it is a candidate, in a line.
    pub reason: String,
    /// The line of source.
    pub preview: String,
}
