//! The score of a candidate: four features, their weights, and the thresholds.

use super::shape::{DefinitionShape, dice, jaccard, name_similarity};
use super::structure::{Def, TextStructure, is_compound};
use crate::python::outline::DefinitionKind;

/// The least score of an accepted candidate (τ).
pub const THRESHOLD: f64 = 0.75;
/// The least distance to the score of the next candidate (δ).
pub const MARGIN: f64 = 0.05;
/// The least score of a candidate. A definition below it is only similar, and the target is gone.
pub const MIN_CANDIDATE_SCORE: f64 = 0.6;
/// The number of tokens in a gram of an anchor's fingerprint (k).
pub const GRAM_TOKENS: u32 = 7;
/// The number of consecutive grams of which winnowing keeps the least (w).
pub const WINDOW_GRAMS: u32 = 4;
/// How a text is normalized before it is compared. Part of every bundle with a relocation.
pub const NORMALIZATION: &str =
    "tokens without comments and white space; the definition's own name is one token";

/// The structure feature of a pair whose text clearly continues.
pub(super) const CONTINUED: f64 = 0.95;

/// The weights of [`MatchFeatures`], in their order.
pub const WEIGHTS: [f64; 4] = [0.5, 0.2, 0.2, 0.1];

/// A body with fewer tokens is no evidence if the name differs.
pub(super) const MIN_INFORMATIVE_TOKENS: usize = 12;

/// The components of a score, each from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct MatchFeatures {
    /// Structure: 1 for the same qualified name or the same body, nearly 1 for a text that clearly continues, else the
    /// similarity of grams, parameters and name.
    pub ast: f64,
    /// The similarity of the module paths.
    pub module: f64,
    /// The Jaccard index of the tokens of both bodies.
    pub token_jaccard: f64,
    /// Whether its neighbors are the same.
    pub proximity: f64,
}

impl MatchFeatures {
    /// All components equal.
    pub const SAME: Self = Self { ast: 1.0, module: 1.0, token_jaccard: 1.0, proximity: 1.0 };

    /// The weighted sum.
    #[must_use]
    pub fn score(&self) -> f64 {
        let [ast, module, token_jaccard, proximity] = WEIGHTS;
        ast * self.ast
            + module * self.module
            + token_jaccard * self.token_jaccard
            + proximity * self.proximity
    }
}

/// A definition with its shape, ready to be compared.
#[derive(Clone, Copy)]
pub(super) struct ComparedDefinition<'s> {
    pub(super) structure: &'s TextStructure<'s>,
    pub(super) index: u32,
    pub(super) shape: &'s DefinitionShape,
}

impl ComparedDefinition<'_> {
    pub(super) fn def(&self) -> &Def {
        &self.structure.defs[self.index as usize]
    }

    fn name(&self) -> &str {
        self.structure.name(self.def())
    }
}

/// Whether one definition can have become the other: functions of all kinds match, so do classes, and variables of all kinds.
pub(super) fn is_same_sort(a: DefinitionKind, b: DefinitionKind) -> bool {
    (a.is_function() && b.is_function()) || (is_compound(a) == is_compound(b) && (a == b || !is_compound(a)))
}

/// The features of a pair. The caller supplies `module` and `proximity`.
pub(super) fn features(
    old: ComparedDefinition<'_>,
    new: ComparedDefinition<'_>,
    module: f64,
    proximity: f64,
) -> MatchFeatures {
    let (a, b) = (old.shape, new.shape);
    let token_jaccard = jaccard(&a.tokens, &b.tokens);
    let same_chain = old.structure.chain(old.index) == new.structure.chain(new.index);
    let same_name = old.name() == new.name();
    let name = name_similarity(old.name(), new.name());
    let telling = a.tokens.len().min(b.tokens.len()) >= MIN_INFORMATIVE_TOKENS;
    let grams = dice(&a.triples, &b.triples);
    let parameters = dice(&a.parameters, &b.parameters);
    let same_doc = a.doc != 0 && a.doc == b.doc;
    let mut ast = if !is_same_sort(old.def().kind, new.def().kind) {
        0.0
    } else if same_chain || (a.is_same_body(b) && (telling || same_doc)) {
        1.0
    } else if same_name {
        0.6 + 0.3 * grams + 0.1 * parameters
    } else if telling || same_doc {
        let most = grams.max(if same_doc { 0.5 + 0.5 * grams } else { 0.0 });
        0.7 * most + 0.1 * parameters + 0.2 * name
    } else {
        0.35 * grams + 0.15 * parameters + 0.5 * name
    };
    if same_doc && same_name {
        ast = 1.0;
    }
    MatchFeatures { ast, module, token_jaccard, proximity }
}
