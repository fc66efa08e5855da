//! The shape of a definition for comparisons: its tokens, their triples, a sketch of them, its parameters.

use super::lex::{TokenKind, hash_of, mix};
use super::structure::{Def, TextStructure};
use crate::python::outline::DefinitionKind;
use crate::selector::Sketch;

/// The most tokens of a body that are compared; of a longer body the beginning is compared.
const MAX_BODY_TOKENS: usize = 20_000;
/// The most tokens of the value of a variable: one statement may bind very many.
const MAX_VALUE_TOKENS: usize = 1_000;
/// Replaces the hash of the definition's own name, so that a rename does not change the body.
const OWN_NAME_HASH: u64 = 0x006f_776e_6e61_6d65;

/// The hashes by which one definition is compared.
#[derive(Debug, Default)]
pub(super) struct DefinitionShape {
    /// A hash of the whole body in order.
    pub(super) exact: u64,
    /// The tokens of the body, sorted.
    pub(super) tokens: Vec<u64>,
    /// The hashes of three consecutive tokens, sorted.
    pub(super) triples: Vec<u64>,
    /// The names of the parameters, or of the bases of a class, sorted.
    pub(super) parameters: Vec<u64>,
    /// A hash of the docstring; 0 if there is no docstring.
    pub(super) doc: u64,
}

impl DefinitionShape {
    /// Computes the shape of a definition.
    pub(super) fn new(structure: &TextStructure<'_>, def: &Def) -> Self {
        let (body, doc) = body(structure, def);
        let exact = body.iter().fold(3, |hash, &token| mix(hash, token));
        let mut triples: Vec<u64> = triples(&body).collect();
        let mut tokens = body;
        tokens.sort_unstable();
        triples.sort_unstable();
        let mut parameters: Vec<u64> = match def.kind {
            DefinitionKind::Class => (def.name + 1..def.body)
                .filter(|&at| structure.tokens[at as usize].kind == TokenKind::Name)
                .map(|at| structure.tokens[at as usize].hash)
                .collect(),
            _ => structure.parameters(def).iter().map(|(name, _)| hash_of(name.as_bytes())).collect(),
        };
        parameters.sort_unstable();
        Self { exact, tokens, triples, parameters, doc }
    }

    /// Whether two bodies are the same apart from the definition's own name.
    pub(super) fn is_same_body(&self, other: &Self) -> bool {
        self.exact == other.exact && self.tokens.len() == other.tokens.len()
    }
}

/// The hashes of the tokens of a body in order, without comments and docstring, and the hash of the docstring.
fn body(structure: &TextStructure<'_>, def: &Def) -> (Vec<u64>, u64) {
    let own = structure.tokens[def.name as usize].hash;
    let end = structure.token_range(def).end;
    let from = def.body as usize;
    let mut doc = 0;
    let mut first = true;
    let mut body = Vec::new();
    let limit = if super::structure::is_compound(def.kind) { MAX_BODY_TOKENS } else { MAX_VALUE_TOKENS };
    for token in structure.tokens[from.min(end)..end].iter().take(limit) {
        if token.kind == TokenKind::Comment {
            continue;
        }
        if std::mem::take(&mut first)
            && token.kind == TokenKind::String
            && super::structure::is_compound(def.kind)
        {
            doc = token.hash;
            continue;
        }
        body.push(if token.hash == own { OWN_NAME_HASH } else { token.hash });
    }
    (body, doc)
}

fn triples(body: &[u64]) -> impl Iterator<Item = u64> {
    body.windows(3).map(|three| three.iter().fold(7, |hash, &token| mix(hash, token)))
}

/// The MinHash sketch of a body and its number of tokens. Each slot has four bits of the least hash of the contents, with a
/// different hash function per slot.
pub(crate) fn sketch(structure: &TextStructure<'_>, def: &Def) -> (Sketch, u32) {
    let (body, _) = body(structure, def);
    let mut contents: Vec<u64> = if body.len() < 3 { body.clone() } else { triples(&body).collect() };
    contents.sort_unstable();
    contents.dedup();
    let mut least = [u64::MAX; Sketch::SLOTS as usize];
    for &content in &contents {
        let (mut a, step) = (mix(content, 0x51), mix(content, 0x97) | 1);
        for slot in &mut least {
            a = a.wrapping_add(step);
            let value = (a ^ (a >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
            *slot = (*slot).min(value);
        }
    }
    let mut sketch = 0;
    for (slot, value) in least.iter().enumerate() {
        // The high bits of a minimum are all zero; the low ones are as good as random.
        sketch |= u128::from(value & 0xf) << (slot * 4);
    }
    (Sketch(if contents.is_empty() { 0 } else { sketch }), u32::try_from(body.len()).unwrap_or(u32::MAX))
}

/// The number of items that two sorted lists share, as multisets.
pub(super) fn shared(a: &[u64], b: &[u64]) -> usize {
    let (mut i, mut j, mut count) = (0, 0, 0);
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        match x.cmp(y) {
            std::cmp::Ordering::Less => i += 1,
            std::cmp::Ordering::Greater => j += 1,
            std::cmp::Ordering::Equal => {
                (i, j, count) = (i + 1, j + 1, count + 1);
            }
        }
    }
    count
}

/// The Dice coefficient of two sorted lists; 1 for two empty lists.
pub(super) fn dice(a: &[u64], b: &[u64]) -> f64 {
    if a.is_empty() && b.is_empty() { 1.0 } else { ratio(2 * shared(a, b), a.len() + b.len()) }
}

/// The Jaccard index of two sorted lists; 1 for two empty lists.
pub(super) fn jaccard(a: &[u64], b: &[u64]) -> f64 {
    let both = shared(a, b);
    if a.is_empty() && b.is_empty() { 1.0 } else { ratio(both, a.len() + b.len() - both) }
}

/// The share of the shorter list that is in the other.
pub(super) fn contained(a: &[u64], b: &[u64]) -> f64 {
    let least = a.len().min(b.len());
    if least == 0 { 0.0 } else { ratio(shared(a, b), least) }
}

/// A quotient of two counts.
#[expect(clippy::cast_precision_loss, reason = "counts of tokens are far below 2^52")]
pub(super) fn ratio(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// The similarity of two names: by the words that they consist of, or by their common prefix and suffix.
pub(super) fn name_similarity(a: &str, b: &str) -> f64 {
    if a == b {
        return 1.0;
    }
    let words = |name: &str| {
        let mut words: Vec<u64> = Vec::new();
        let mut word = String::new();
        let mut lower_before = false;
        for c in name.chars() {
            if c == '_' || (c.is_uppercase() && lower_before) {
                words.extend((!word.is_empty()).then(|| hash_of(word.as_bytes())));
                word.clear();
            }
            lower_before = c.is_lowercase() || c.is_ascii_digit();
            if c != '_' {
                word.extend(c.to_lowercase());
            }
        }
        words.extend((!word.is_empty()).then(|| hash_of(word.as_bytes())));
        words.sort_unstable();
        words
    };
    let of_words = dice(&words(a), &words(b));
    let (x, y) = (a.trim_matches('_').as_bytes(), b.trim_matches('_').as_bytes());
    let prefix = x.iter().zip(y).take_while(|(x, y)| x == y).count();
    let suffix = x.iter().rev().zip(y.iter().rev()).take_while(|(x, y)| x == y).count();
    let edges = ratio((prefix + suffix).min(x.len().min(y.len())), x.len().max(y.len()));
    of_words.max(edges * 0.9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        assert!(name_similarity("get_adapter", "_get_adapter") > 0.99);
        assert!(name_similarity("getAdapter", "get_adapter") > 0.99);
        assert!(name_similarity("make_response", "make_reply") > 0.45);
        assert!(name_similarity("run", "stop") < 0.3);
    }

    #[test]
    fn a_rename_changes_no_body_and_an_edit_changes_it_a_little() {
        let text = |name: &str, more: &str| {
            format!(
                "def {name}(a, b):\n    '''d'''\n    if a:\n        return {name}(b, a - 1)\n    x = a + b\n    y = x * a\n    for i in range(x):\n        y += i * b\n{more}    return y + x\n"
            )
        };
        let (old, new, edited) = (text("f", ""), text("g", ""), text("f", "    y -= 1\n"));
        let sides = [&old, &new, &edited].map(|text| TextStructure::new(text));
        let shapes = [&sides[0], &sides[1], &sides[2]]
            .map(|structure| DefinitionShape::new(structure, &structure.defs[0]));
        assert!(shapes[0].is_same_body(&shapes[1]) && !shapes[0].is_same_body(&shapes[2]));
        assert!(dice(&shapes[0].triples, &shapes[2].triples) > 0.8);
        let sketches =
            [&sides[0], &sides[1], &sides[2]].map(|structure| sketch(structure, &structure.defs[0]).0);
        assert_eq!(sketches[0], sketches[1]);
        assert!(sketches[0].similarity(sketches[2]) > 0.6, "{}", sketches[0].similarity(sketches[2]));
    }
}
