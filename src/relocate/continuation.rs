//! Definitions whose text clearly continues in one other definition, whatever name and scope it has.
//!
//! A score adds up what two definitions have in common. It cannot tell a body with two thirds of its words left, which
//! nothing else resembles, from one of several that share a pattern. So all pairs without a partner are compared by their
//! words, and the pairs that stand out are known before any is accepted.

use std::collections::BTreeSet;

use super::lex::{TokenKind, hash_of, mix};
use super::pairs::AnalyzedText;
use super::score::is_same_sort;
use super::shape::dice;
use super::structure::{Def, TextStructure};

/// The least similarity of the words of two definitions that are the same one.
const MIN_SIMILARITY: f64 = 0.6;
/// The least distance to the similarity of any other pair with one of the two.
const MIN_DISTANCE: f64 = 0.15;
/// A definition with fewer pairs of words is no evidence.
const MIN_WORD_PAIRS: usize = 15;
/// The most pairs of words of one definition that are compared.
const MAX_WORD_PAIRS: usize = 20_000;

/// The pairs of an old and a new definition, of those given, that clearly continue.
pub(super) fn clear_continuations(
    old: &AnalyzedText<'_>,
    new: &AnalyzedText<'_>,
    olds: &[u32],
    news: &[u32],
) -> BTreeSet<(u32, u32)> {
    let mut all: Vec<(f64, u32, u32)> = Vec::new();
    for &a in olds {
        for &b in news {
            let same_sort =
                is_same_sort(old.structure.defs[a as usize].kind, new.structure.defs[b as usize].kind);
            let (x, y) = (old.word_pairs(a), new.word_pairs(b));
            // What one is longer by cannot be in the other.
            let is_possible = 4 * x.len().min(y.len()) >= x.len() + y.len();
            if same_sort && is_possible && x.len().min(y.len()) >= MIN_WORD_PAIRS {
                all.push((dice(x, y), a, b));
            }
        }
    }
    // A definition resembles those around it and inside of it, which are not its rivals unless they are more similar.
    let is_rival = |(similarity, a, b): (f64, u32, u32), (other, c, d): (f64, u32, u32)| {
        let competes = (a == c && b != d && (other > similarity || !are_nested(&new.structure, b, d)))
            || (b == d && a != c && (other > similarity || !are_nested(&old.structure, a, c)));
        competes && other > similarity - MIN_DISTANCE
    };
    let similar = all.iter().filter(|(similarity, ..)| *similarity >= MIN_SIMILARITY);
    let clear = similar.filter(|pair| !all.iter().any(|other| is_rival(**pair, *other)));
    clear.map(|&(_, a, b)| (a, b)).collect()
}

/// Whether one of two definitions is inside the other.
fn are_nested(structure: &TextStructure<'_>, a: u32, b: u32) -> bool {
    let is_inside = |inner: u32, outer: u32| {
        let parent = |at: &u32| structure.defs[*at as usize].parent;
        std::iter::successors(Some(inner), parent).any(|at| at == outer)
    };
    is_inside(a, b) || is_inside(b, a)
}

/// The hashes of consecutive words of a definition from its parameters on, sorted. The words of strings and of the
/// docstring count too; comments do not, and the definition's own name is one word.
pub(super) fn word_pairs(structure: &TextStructure<'_>, def: &Def) -> Vec<u64> {
    let own = structure.tokens[def.name as usize].hash;
    let range = def.name as usize + 1..structure.token_range(def).end;
    let mut words: Vec<u64> = Vec::new();
    for token in structure.tokens.get(range).unwrap_or_default() {
        match token.kind {
            TokenKind::Comment => {}
            TokenKind::String => {
                let text = structure.text.get(token.start as usize..token.end as usize).unwrap_or_default();
                let parts = text.split(|c: char| !c.is_alphanumeric() && c != '_');
                words.extend(parts.filter(|word| !word.is_empty()).map(|word| hash_of(word.as_bytes())));
            }
            _ if token.hash == own => words.push(0),
            _ => words.push(token.hash),
        }
        if words.len() > MAX_WORD_PAIRS {
            break;
        }
    }
    let mut pairs: Vec<u64> = words.windows(2).map(|two| mix(two[0], two[1])).collect();
    pairs.sort_unstable();
    pairs
}
