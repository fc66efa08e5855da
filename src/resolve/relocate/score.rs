//! How well a definition fits an old one: four features, their weights, and the thresholds of an answer.

use super::super::outline::DefinitionKind;
use super::shape::{Shape, dice, jaccard, name_likeness};
use super::side::{Def, Side, is_compound};

/// A candidate is certain enough from this score on (τ).
pub const THRESHOLD: f64 = 0.75;
/// And only when the next candidate is this much worse (δ).
pub const MARGIN: f64 = 0.05;
/// What scores less is no candidate at all: the target is gone, and this merely looks like it.
pub const FLOOR: f64 = 0.6;
/// How many tokens make a gram of an anchor's fingerprint (k).
pub const GRAM: u32 = 7;
/// Of how many consecutive grams the least is kept (w).
pub const WINDOW: u32 = 4;
/// What is done to a text before it is compared.
pub const NORMALISATION: &str =
    "tokens without comments and white space; the definition's own name is one token";

/// The weights of [`Features`], in their order.
pub const WEIGHTS: [f64; 4] = [0.5, 0.2, 0.2, 0.1];

/// Bodies with fewer tokens prove nothing when the name is another one.
pub(super) const TELLING: usize = 12;

/// What a score is made of, each from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Features {
    /// Structure: 1 for the same chain of names or the same body, else what grams, parameters and name have in common.
    pub ast: f64,
    /// How much of the module's path is the same.
    pub module: f64,
    /// Jaccard's index of the tokens of both bodies.
    pub token_jaccard: f64,
    /// Whether what stands around it is the same.
    pub proximity: f64,
}

impl Features {
    /// Everything as it was.
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

/// A definition with its comparable forms.
#[derive(Clone, Copy)]
pub(super) struct Compared<'s> {
    pub(super) side: &'s Side<'s>,
    pub(super) index: u32,
    pub(super) shape: &'s Shape,
}

impl Compared<'_> {
    pub(super) fn def(&self) -> &Def {
        &self.side.defs[self.index as usize]
    }

    fn name(&self) -> &str {
        self.side.name(self.def())
    }
}

/// Whether two definitions can be the same one: functions of all kinds, classes, variables of all kinds.
pub(super) fn is_same_sort(a: DefinitionKind, b: DefinitionKind) -> bool {
    (a.is_function() && b.is_function()) || (is_compound(a) == is_compound(b) && (a == b || !is_compound(a)))
}

/// The features of a pair, `module` and `proximity` being known to the caller.
pub(super) fn features(old: Compared<'_>, new: Compared<'_>, module: f64, proximity: f64) -> Features {
    let (a, b) = (old.shape, new.shape);
    let token_jaccard = jaccard(&a.tokens, &b.tokens);
    let same_chain = old.side.chain(old.index) == new.side.chain(new.index);
    let same_name = old.name() == new.name();
    let name = name_likeness(old.name(), new.name());
    let telling = a.tokens.len().min(b.tokens.len()) >= TELLING;
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
    Features { ast, module, token_jaccard, proximity }
}
