//! What a selector resolved to, and how.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::digest::{Digest, Score};
use crate::path::DocUri;
use crate::selector::SymbolId;
use crate::text::Range;

/// What a selector resolved to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Resolution {
    /// The selector in canonical form.
    pub original: String,
    /// The target; `null` when none was found, or when the candidates are ambiguous.
    pub resolved: Option<Resolved>,
    /// Other candidates, best first.
    pub disambiguation: Vec<Candidate>,
    /// The number of all candidates, including those not in `disambiguation`; absent when there is only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidates: Option<u32>,
    /// Whether the caller has to choose a candidate.
    pub ambiguous: bool,
}

/// The target of a selector.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Resolved {
    /// The file.
    pub uri: DocUri,
    /// The range of the part that the selector refers to.
    pub range: Range,
    /// A selector of the target.
    pub at: String,
    /// The qualified name, as `module:Class.method`; absent when the target is not the name of a definition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qualname: Option<String>,
    /// The kind of definition; absent when the target is not the name of a definition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub symbol_kind: Option<String>,
    /// The stable ID of the definition; absent when the target is not the name of a workspace definition.
    #[serde(default, rename = "symbolId", skip_serializing_if = "Option::is_none")]
    pub symbol_id: Option<SymbolId>,
    /// The digest of the file's content.
    #[serde(rename = "docVersion")]
    pub doc_version: Digest,
    /// How the target was found.
    pub via: Via,
    /// The steps from the selector to the target, such as re-exports and base classes. Absent when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<EvidenceStep>,
    /// The confidence, from 0 to 1; 1 is certain.
    pub confidence: Score,
    /// Whether the target follows from the selector with certainty.
    pub certified: bool,
    /// The scores behind the choice; absent when no candidates were scored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relocation: Option<Relocation>,
    /// The source line.
    pub preview: String,
}

/// How a target was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Via {
    /// By the line and column of the selector.
    Coordinates,
    /// By the name of the selector.
    Name,
    /// By the path in the syntax tree.
    Ast,
    /// By the snippet, which occurs literally.
    Anchor,
    /// By the structure that a symbol ID describes.
    Structure,
    /// From an earlier revision: the target is unchanged.
    Unchanged,
    /// From an earlier revision: text before the target was added or removed.
    Shifted,
    /// From an earlier revision: the target was edited in place.
    Edited,
    /// From an earlier revision: parameters, return type or base classes changed.
    SignatureChanged,
    /// From an earlier revision: the target moved within its file or to another.
    Moved,
    /// From an earlier revision: the target or an enclosing definition was renamed.
    Renamed,
    /// From an earlier revision: a part of the target moved to another definition.
    Split,
    /// From an earlier revision: the target was merged into another definition.
    Merged,
}

impl Via {
    /// Whether the target may not be just where the selector says: where it is was searched for.
    #[must_use]
    pub const fn is_searched(self) -> bool {
        !matches!(self, Self::Coordinates | Self::Name | Self::Ast | Self::Structure)
    }
}

/// The scores behind the choice of a target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Relocation {
    /// The features of the score; absent when there was no other candidate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub features: Option<Features>,
    /// The weighted sum of the features, or 1 for a certified target.
    pub score: Score,
    /// The distance to the score of the next candidate.
    pub margin: Score,
    /// The reason for the choice, in one line.
    pub reason: String,
    /// What the choice is based on besides the two states; absent when they alone decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<RelocationVia>,
    /// The commits in which the location did not follow with certainty, the oldest first. The confidence is the product of
    /// their scores, unless the two states alone support the same location better. Absent when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commits: Vec<DecidingCommit>,
}

/// What a relocation is based on besides the old and the new state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum RelocationVia {
    /// The target was followed through the commits between them.
    History,
}

/// A commit in which the location of a target did not follow with certainty.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DecidingCommit {
    /// The ID of the commit, or of the transaction in lanser's operation log.
    pub commit: String,
    /// How the target changed in it.
    pub via: Via,
    /// The score of the match, from 0 to 1.
    pub score: Score,
    /// The reason for the choice, in one line.
    pub reason: String,
}

/// The features of a score, each from 0 to 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Features {
    /// Structure: 1 for the same chain of names or the same body.
    pub ast: Score,
    /// The similarity of the module paths.
    pub module: Score,
    /// The Jaccard index of the tokens.
    #[serde(rename = "tokenJaccard")]
    pub token_jaccard: Score,
    /// The similarity of the surrounding code.
    pub proximity: Score,
}

/// Weights and thresholds of relocation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RelocationRules {
    /// The weight of each feature.
    pub weights: Features,
    /// The minimum score of an answer (τ).
    pub tau: Score,
    /// The minimum distance to the score of the next candidate (δ).
    pub delta: Score,
    /// The minimum score of a candidate.
    pub floor: Score,
    /// The number of tokens in a k-gram of an anchor.
    pub k: u32,
    /// The winnowing window: one of `w` consecutive k-grams is kept.
    pub w: u32,
    /// How a text is normalized before it is compared.
    pub normalization: String,
}

/// A step from a selector to its target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EvidenceStep {
    /// The kind of step: `import`, `starImport`, `inherited`, `alias`, `submodule` or `unresolvedImport`.
    pub step: String,
    /// A selector of the code that makes the step.
    pub at: String,
    /// The module or definition that the step leads to.
    pub to: String,
}

/// A candidate for the target of a selector.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Candidate {
    /// The file.
    pub uri: DocUri,
    /// The range of the name.
    pub range: Range,
    /// A selector of the candidate.
    pub at: String,
    /// The qualified name, as `module:Class.method`; absent when the candidate is not the name of a definition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qualname: Option<String>,
    /// The kind of definition; absent when the candidate is not the name of a definition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub symbol_kind: Option<String>,
    /// The score, from 0 to 1.
    pub score: Score,
    /// The features of the score; absent when the candidate was not scored by features.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub features: Option<Features>,
    /// Why it is a candidate, in one line.
    pub reason: String,
    /// The source line.
    pub preview: String,
}
