//! Where a selector is now, and why.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::digest::{Digest, Score};
use crate::path::DocUri;
use crate::selector::SymbolId;
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
    /// How many places it could be, those that are not told included; absent where it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidates: Option<u32>,
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
    /// The identity of the definition, where the place is the name of one of the workspace's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub symbol_id: Option<SymbolId>,
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
    /// What was weighed; absent where nothing had to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relocation: Option<Relocation>,
    /// The line of source.
    pub preview: String,
}

/// By which knowledge a place was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Via {
    /// The coordinates that the selector gives.
    Coordinates,
    /// The name that the selector gives.
    Name,
    /// The AST path.
    Ast,
    /// The snippet, where it stands letter by letter.
    Anchor,
    /// The structure that a symbol id tells.
    Structure,
    /// From the version that the selector was made from: nothing happened to it.
    Unchanged,
    /// What stands before it grew or shrank.
    Shifted,
    /// It was edited in its place.
    Edited,
    /// Its parameters, result or bases are other ones.
    SignatureChanged,
    /// It stands elsewhere, in its file or in another.
    Moved,
    /// It, or what it is inside of, has another name.
    Renamed,
    /// A part of it stands in another definition.
    Split,
    /// Another definition took it in.
    Merged,
}

/// What was weighed to find a place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Relocation {
    /// What the score is made of; absent where there was no other candidate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub features: Option<Features>,
    /// The weighted sum, or 1 for a certified place.
    pub score: Score,
    /// How much better it is than the next candidate.
    pub margin: Score,
    /// What speaks for the place, in a line.
    pub reason: String,
}

/// What a score is made of, each from 0 to 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Features {
    /// Structure: 1 for the same chain of names or the same body.
    pub ast: Score,
    /// How much of the module's path is the same.
    pub module: Score,
    /// Jaccard's index of the tokens.
    pub token_jaccard: Score,
    /// Whether what stands around it is the same.
    pub proximity: Score,
}

/// By what numbers places were weighed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RelocationRules {
    /// The weights of the features.
    pub weights: Features,
    /// The least score of an answer (τ).
    pub tau: Score,
    /// The least distance to the next candidate (δ).
    pub delta: Score,
    /// The least score of a candidate.
    pub floor: Score,
    /// How many tokens make a gram of an anchor.
    pub k: u32,
    /// Of how many consecutive grams one is kept.
    pub w: u32,
    /// What is done to a text before it is compared.
    pub normalisation: String,
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
    /// What the score is made of, where something was weighed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub features: Option<Features>,
    /// Why it is a candidate, in a line.
    pub reason: String,
    /// The line of source.
    pub preview: String,
}
