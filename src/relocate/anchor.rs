//! Finds a snippet without its old text: the same text, the same tokens, or the most similar windows.
//!
//! Windows of a text that share a winnowed gram with the snippet are compared with it in full. Of each `w` consecutive grams
//! winnowing keeps the one with the least hash, so that a run of `w + k - 1` tokens that two texts share is always
//! detected. Source: Schleimer, Wilkerson, Aiken, "Winnowing: Local Algorithms for Document Fingerprinting" (2003).

use std::collections::BTreeSet;

use super::lex::{TokenKind, lex, mix};
use super::score::{GRAM_TOKENS, MatchFeatures, WINDOW_GRAMS};
use super::shape::{dice, jaccard};
use super::structure::{TextStructure, is_compound};
use crate::python::outline::{DefinitionKind, Span};

/// The most windows that are returned.
const MAX_WINDOWS: usize = 5;

/// Every exact occurrence of a snippet in a text.
#[must_use]
pub fn exact(text: &str, snippet: &str) -> Vec<Span> {
    if snippet.is_empty() {
        return Vec::new();
    }
    text.match_indices(snippet).map(|(at, found)| at..at + found.len()).collect()
}

/// Every occurrence of the same tokens, ignoring white space and comments between them.
#[must_use]
pub fn same_tokens(text: &str, snippet: &str) -> Vec<Span> {
    let wanted: Vec<u64> = code(snippet).into_iter().map(|(hash, _)| hash).collect();
    let all = code(text);
    let Some(first) = wanted.first() else { return Vec::new() };
    let starts = (0..(all.len() + 1).saturating_sub(wanted.len())).filter(|&at| all[at].0 == *first);
    let same = starts.filter(|&at| all[at..at + wanted.len()].iter().map(|(hash, _)| hash).eq(&wanted));
    same.take(100).map(|at| all[at].1.start..all[at + wanted.len() - 1].1.end).collect()
}

/// The hashes and spans of the tokens that are not comments.
fn code(text: &str) -> Vec<(u64, Span)> {
    let lexed = lex(text);
    let code = lexed.tokens.iter().filter(|token| token.kind != TokenKind::Comment);
    code.map(|token| (token.hash, token.start as usize..token.end as usize)).collect()
}

/// The name of the definition whose header is in a snippet, and whether it is a class.
#[must_use]
pub fn header_of(snippet: &str) -> Option<(String, bool)> {
    let structure = TextStructure::new(snippet);
    let def = structure.defs.iter().find(|def| is_compound(def.kind))?;
    Some((structure.name(def).to_owned(), def.kind == DefinitionKind::Class))
}

/// The definitions of a name in a text, each with the span that starts at its header and is as long as the snippet, and with
/// the features of the match.
#[must_use]
pub fn matching_headers(text: &str, snippet: &str, name: &str, is_class: bool) -> Vec<(Span, MatchFeatures)> {
    let structure = TextStructure::new(text);
    let small = TextStructure::new(snippet);
    let Some(wanted) = small.defs.iter().find(|def| is_compound(def.kind)) else { return Vec::new() };
    let head = small.header_span(wanted);
    let fingerprint = SnippetFingerprint::new(snippet);
    let mut found = Vec::new();
    for def in &structure.defs {
        let same_sort = is_compound(def.kind) && (def.kind == DefinitionKind::Class) == is_class;
        if !same_sort || structure.name(def) != name {
            continue;
        }
        let header = structure.header_span(def);
        // Only the header, or as many lines as the snippet has.
        let more = small.lines.len().saturating_sub(1);
        let last = (def.header as usize + more).min(def.lines.end as usize - 1);
        let end = if head.end + 1 >= snippet.trim_end().len() {
            header.end
        } else {
            structure.tokens[structure.lines[last].end as usize - 1].end as usize
        };
        let mut features = fingerprint.features(&text[header.start..end.max(header.end)]);
        features.ast = 1.0;
        found.push((header.start..end.max(header.end), features));
    }
    found
}

/// The hashes by which a snippet is compared.
struct SnippetFingerprint {
    tokens: Vec<u64>,
    triples: Vec<u64>,
}

impl SnippetFingerprint {
    fn new(text: &str) -> Self {
        let mut tokens: Vec<u64> = code(text).into_iter().map(|(hash, _)| hash).collect();
        let mut triples: Vec<u64> = grams(&tokens, 3).collect();
        tokens.sort_unstable();
        triples.sort_unstable();
        Self { tokens, triples }
    }

    fn features(&self, window: &str) -> MatchFeatures {
        let other = Self::new(window);
        MatchFeatures {
            ast: dice(&self.triples, &other.triples),
            module: 1.0,
            token_jaccard: jaccard(&self.tokens, &other.tokens),
            proximity: 0.5,
        }
    }
}

fn grams(tokens: &[u64], size: usize) -> impl Iterator<Item = u64> {
    tokens.windows(size).map(|gram| gram.iter().fold(11, |hash, &token| mix(hash, token)))
}

/// The winnowed grams of some tokens with the index of the token where each starts.
fn winnowed(tokens: &[u64]) -> BTreeSet<(u64, usize)> {
    let (gram, window) = (GRAM_TOKENS as usize, WINDOW_GRAMS as usize);
    let all: Vec<(u64, usize)> = grams(tokens, gram.min(tokens.len().max(1))).zip(0..).collect();
    // Of equal hashes the last is kept, as in the paper.
    let least =
        |window: &[(u64, usize)]| window.iter().copied().min_by_key(|&(hash, at)| (hash, usize::MAX - at));
    if all.len() < window {
        least(&all).into_iter().collect()
    } else {
        all.windows(window).filter_map(least).collect()
    }
}

/// The spans of a text that are most similar to a snippet, best first; they do not overlap.
#[must_use]
pub fn windows(text: &str, snippet: &str) -> Vec<(Span, MatchFeatures)> {
    let wanted = code(snippet);
    let hashes: Vec<u64> = wanted.iter().map(|(hash, _)| *hash).collect();
    let structure = TextStructure::new(text);
    if wanted.is_empty() || structure.lines.is_empty() {
        return Vec::new();
    }
    let small = lex(snippet);
    let height = small
        .lines
        .iter()
        .filter(|line| small.tokens[line.first as usize].kind != TokenKind::Comment)
        .count();
    let height = height.max(1);
    let marks: BTreeSet<u64> = winnowed(&hashes).into_iter().map(|(hash, _)| hash).collect();
    let known: BTreeSet<u64> = hashes.iter().copied().collect();
    let lines: Vec<(usize, Vec<u64>)> = structure
        .lines
        .iter()
        .enumerate()
        .filter(|(_, line)| structure.tokens[line.first as usize].kind != TokenKind::Comment)
        .map(|(at, line)| {
            let tokens = &structure.tokens[line.first as usize..line.end as usize];
            let code = tokens.iter().filter(|token| token.kind != TokenKind::Comment);
            (at, code.map(|token| token.hash).collect())
        })
        .collect();
    let all: Vec<u64> = lines.iter().flat_map(|(_, tokens)| tokens.iter().copied()).collect();
    let fingerprints = winnowed(&all);
    let begins: Vec<usize> = lines
        .iter()
        .scan(0, |sum, (_, tokens)| {
            let begin = *sum;
            *sum += tokens.len();
            Some(begin)
        })
        .collect();
    // Lines that contain a gram of the snippet, and those before them; for a short snippet lines that share half of it.
    let mut likely: BTreeSet<usize> = BTreeSet::new();
    for (_, at) in fingerprints.iter().filter(|(hash, _)| marks.contains(hash)) {
        let line = begins.partition_point(|begin| begin <= at) - 1;
        likely.extend(line.saturating_sub(height)..=line);
    }
    if hashes.len() < (GRAM_TOKENS + WINDOW_GRAMS) as usize * 2 {
        for (line, (_, tokens)) in lines.iter().enumerate() {
            let shared = tokens.iter().filter(|token| known.contains(token)).count();
            if shared * 2 >= hashes.len().min(tokens.len()) && shared >= 2 {
                likely.extend(line.saturating_sub(height - 1)..=line);
            }
        }
    }
    let fingerprint = SnippetFingerprint::new(snippet);
    let mut scored: Vec<(Span, MatchFeatures)> = likely
        .into_iter()
        .take(4000)
        .map(|line| {
            let last = (line + height).min(lines.len()) - 1;
            let (from, to) = (structure.lines[lines[line].0], structure.lines[lines[last].0]);
            let span = structure.tokens[from.first as usize].start as usize
                ..structure.tokens[to.end as usize - 1].end as usize;
            let features = fingerprint.features(&text[span.clone()]);
            (span, features)
        })
        .collect();
    scored.sort_by(|a, b| b.1.score().total_cmp(&a.1.score()).then(a.0.start.cmp(&b.0.start)));
    let mut best: Vec<(Span, MatchFeatures)> = Vec::new();
    for (span, features) in scored {
        if best.len() < MAX_WINDOWS
            && best.iter().all(|(other, _)| other.end <= span.start || span.end <= other.start)
        {
            best.push((span, features));
        }
    }
    best
}

/// How specific a snippet is: the number of its tokens that are names or literals.
#[must_use]
pub fn specificity(snippet: &str) -> usize {
    lex(snippet)
        .tokens
        .iter()
        .filter(|token| matches!(token.kind, TokenKind::Name | TokenKind::Number | TokenKind::String))
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "import os\n\ndef one(a, b):\n    # c\n    value = compute(a, b, mode='x')\n    return finish(value, a)\n\nclass C:\n    def one(self): return 1\n";

    #[test]
    fn the_same_text_and_the_same_tokens() {
        assert_eq!(exact(TEXT, "value").len(), 2);
        assert!(exact(TEXT, "").is_empty());
        let found = same_tokens(TEXT, "value=compute( a,b, mode='x' )");
        assert_eq!(found.len(), 1);
        assert_eq!(&TEXT[found[0].clone()], "value = compute(a, b, mode='x')");
    }

    #[test]
    fn headers_of_definitions() {
        assert_eq!(header_of("def one(a):"), Some(("one".to_owned(), false)));
        assert_eq!(header_of("one(a)"), None);
        let found = matching_headers(TEXT, "def one(a):", "one", false);
        let shown: Vec<_> = found.iter().map(|(span, _)| &TEXT[span.clone()]).collect();
        assert_eq!(shown, ["def one(a, b):", "def one(self):"]);
        assert!(found[0].1.score() > found[1].1.score());
    }

    #[test]
    fn the_most_similar_window_is_first() {
        let found = windows(TEXT, "value = compute(a, b)\n    return finish(value)");
        assert!(TEXT[found[0].0.clone()].starts_with("value = compute(a, b, mode"), "{found:?}");
        assert!(windows(TEXT, "nothing.like(this).at_all").is_empty());
    }

    proptest::proptest! {
        #[test]
        fn a_shared_run_of_tokens_is_always_detected(tokens in proptest::collection::vec(0_u64..50, 0..40), before in 0_usize..20) {
            let shared: Vec<u64> = (1000..1000 + u64::from(GRAM_TOKENS + WINDOW_GRAMS - 1)).collect();
            let mut text = tokens.clone();
            text.splice(before.min(tokens.len())..before.min(tokens.len()), shared.iter().copied());
            let marks: BTreeSet<u64> = winnowed(&shared).into_iter().map(|(hash, _)| hash).collect();
            proptest::prop_assert!(winnowed(&text).iter().any(|(hash, _)| marks.contains(hash)));
        }

        #[test]
        fn spans_are_valid_for_any_text_and_snippet(text in "[ab(): \n'#é]{0,80}", snippet in "[ab(): \n'#é]{0,30}") {
            for (span, features) in windows(&text, &snippet) {
                proptest::prop_assert!(text.get(span).is_some() && features.score() <= 1.0);
            }
            for span in same_tokens(&text, &snippet) {
                proptest::prop_assert!(text.get(span).is_some());
            }
            if let Some((name, is_class)) = header_of(&snippet) {
                let found = matching_headers(&text, &snippet, &name, is_class);
                proptest::prop_assert!(found.iter().all(|(span, _)| text.get(span.clone()).is_some()));
            }
        }
    }
}
