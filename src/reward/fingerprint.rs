//! Rule 1: fingerprints, not counts. Identifies a diagnostic independent of its position, and pairs two sets of them.

use std::collections::BTreeMap;

use crate::digest::Digest;
use crate::model::analyzer::DiagnosticSource;
use crate::model::facts::{Counts, Diagnostic};
use crate::model::request::Severity;
use crate::model::reward::{
    DiagnosticFingerprint, FileDiagnostics, GoneDiagnostics, OutstandingReason, RewardScope,
};
use crate::path::DocUri;
use crate::text::names::replace_word;

/// How many hexadecimal digits of a message's digest are recorded.
const MESSAGE_DIGITS: usize = 16;

/// A message with every run of digits replaced by one `0`, so that it does not depend on line numbers.
#[must_use]
pub fn normalized(message: &str) -> String {
    let mut out = String::with_capacity(message.len());
    for c in message.chars() {
        if !c.is_ascii_digit() {
            out.push(c);
        } else if !out.ends_with('0') {
            out.push('0');
        }
    }
    out
}

/// The fingerprint of a diagnostic in the definition `symbol`.
#[must_use]
pub fn of(found: &Diagnostic, symbol: &str) -> DiagnosticFingerprint {
    DiagnosticFingerprint {
        source: found.source.filter(|source| *source != DiagnosticSource::Lsp),
        rule: found.rule.clone(),
        message: message_digest(&found.message),
        symbol: symbol.to_owned(),
        severity: found.severity,
        count: 1,
    }
}

fn message_digest(message: &str) -> String {
    let mut digest = Digest::of(normalized(message).as_bytes()).to_hex();
    digest.truncate(MESSAGE_DIGITS);
    digest
}

/// The file and the fingerprint of a diagnostic that has its symbol.
#[must_use]
pub fn of_diagnostic(found: &Diagnostic) -> FileFingerprint {
    (found.uri.to_string(), of(found, found.symbol.as_deref().unwrap_or_default()))
}

/// The scope that is recorded for files and their diagnostics, each with the definition that contains it.
#[must_use]
pub fn scope<'d>(files: impl IntoIterator<Item = (DocUri, Vec<(&'d Diagnostic, String)>)>) -> RewardScope {
    let mut scope = RewardScope::default();
    for (uri, found) in files {
        let mut counts = Counts::default();
        let mut fingerprints: BTreeMap<DiagnosticFingerprint, u32> = BTreeMap::new();
        for (item, symbol) in found {
            counts.add(item.severity);
            if item.severity > Severity::Hint {
                *fingerprints.entry(of(item, &symbol)).or_default() += 1;
            }
        }
        if fingerprints.is_empty() && counts == Counts::default() {
            scope.clean.push(uri);
        } else {
            let fingerprints = fingerprints
                .into_iter()
                .map(|(print, count)| DiagnosticFingerprint { count, ..print })
                .collect();
            scope.files.push(FileDiagnostics { uri, counts, fingerprints });
        }
    }
    let by_path = |uri: &DocUri| uri.to_string();
    scope.files.sort_by_key(|file| by_path(&file.uri));
    scope.clean.sort_by_key(by_path);
    scope
}

/// How the diagnostics of two scopes compare, in numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ScopeComparison {
    /// Only in the first.
    pub fixed: u32,
    /// Only in the second.
    pub new: u32,
    /// Unchanged.
    pub unchanged: u32,
    /// In both, but in another file or definition, or with another message.
    pub moved: u32,
}

/// What became of the diagnostics of one scope that another does not have, as its outstanding diagnostics tell.
#[must_use]
pub fn gone(before: &RewardScope, after: &RewardScope) -> GoneDiagnostics {
    let count = |wanted: &dyn Fn(OutstandingReason) -> bool| {
        let found = after.outstanding.iter().filter(|one| wanted(one.why)).count();
        u32::try_from(found).unwrap_or(u32::MAX)
    };
    let not_in_place = count(&|_| true);
    let hidden = count(&|why| why == OutstandingReason::Suppressed);
    let (replaced, declared) =
        (count(&|why| why == OutstandingReason::Replaced), count(&|why| why == OutstandingReason::Declared));
    GoneDiagnostics {
        in_place: compare(before, after).fixed.saturating_sub(not_in_place),
        replaced,
        declared,
        removed: not_in_place.saturating_sub(hidden + replaced + declared),
    }
}

/// A file and the fingerprint of one of its diagnostics.
pub type FileFingerprint = (String, DiagnosticFingerprint);

/// The pairing of two sets: indices without a partner, and the numbers of pairs.
#[derive(Debug, Default)]
pub struct Pairing {
    /// Indices in the first set without a partner.
    pub gone: Vec<usize>,
    /// Indices in the second set without a partner.
    pub new: Vec<usize>,
    /// Pairs that agree in everything.
    pub unchanged: u32,
    /// Other pairs.
    pub moved: u32,
}

/// What two diagnostics must have in common in one pass.
type MatchKey<'e> = (
    Option<&'e str>,
    Option<&'e str>,
    Option<&'e str>,
    Option<&'e str>,
    (Severity, Option<DiagnosticSource>),
);

/// The passes. First the same file, message and definition; then whatever moved or was renamed; last the same rule and file,
/// because a message contains names, which an edit may change.
const PASSES: [fn(&FileFingerprint) -> MatchKey<'_>; 6] = [
    |(file, print)| (Some(file), rule(print), Some(&print.message), Some(&print.symbol), kind(print)),
    |(_, print)| (None, rule(print), Some(&print.message), Some(&print.symbol), kind(print)),
    |(file, print)| (Some(file), rule(print), Some(&print.message), None, kind(print)),
    |(_, print)| (None, rule(print), Some(&print.message), None, kind(print)),
    |(file, print)| (Some(file), rule(print), None, Some(&print.symbol), kind(print)),
    |(file, print)| (Some(file), rule(print), None, None, kind(print)),
];

/// How many of the passes require the same message, and the same file or the same definition.
const STRICT_PASSES: usize = 3;

/// Pairs two sets in six passes, from equality in every respect down to the same rule in the same file.
#[must_use]
pub fn pair(before: &[FileFingerprint], after: &[FileFingerprint]) -> Pairing {
    pair_in(&PASSES, before, after)
}

/// Like [`pair`], but pairs only what has the same message and is in the same file or in a definition of the same name. A
/// diagnostic whose message changed counts as new: a report of what is new must not hide one error behind the repair of another.
#[must_use]
pub fn pair_strictly(before: &[FileFingerprint], after: &[FileFingerprint]) -> Pairing {
    pair_in(&PASSES[..STRICT_PASSES], before, after)
}

fn pair_in(
    passes: &[fn(&FileFingerprint) -> MatchKey<'_>],
    before: &[FileFingerprint],
    after: &[FileFingerprint],
) -> Pairing {
    let mut pairing = Pairing {
        gone: (0..before.len()).collect(),
        new: (0..after.len()).collect(),
        unchanged: 0,
        moved: 0,
    };
    for (level, key) in passes.iter().enumerate() {
        let mut waiting: BTreeMap<MatchKey<'_>, Vec<usize>> = BTreeMap::new();
        for &at in pairing.new.iter().rev() {
            waiting.entry(key(&after[at])).or_default().push(at);
        }
        let mut taken = std::collections::BTreeSet::new();
        pairing.gone.retain(|&at| match waiting.get_mut(&key(&before[at])).and_then(Vec::pop) {
            Some(partner) => {
                taken.insert(partner);
                false
            }
            None => true,
        });
        let count = u32::try_from(taken.len()).unwrap_or(u32::MAX);
        *(if level == 0 { &mut pairing.unchanged } else { &mut pairing.moved }) += count;
        pairing.new.retain(|at| !taken.contains(at));
    }
    pairing
}

/// Pairs also what is about a definition that has another name now, and quotes it: the same rule in the same file, where one name
/// in the path of the definition differs and the messages are equal but for that name. `messages` are those of `after`.
pub fn pair_renamed(
    pairing: &mut Pairing,
    before: &[FileFingerprint],
    after: &[FileFingerprint],
    messages: &[&str],
) {
    let Pairing { gone, new, moved, .. } = pairing;
    new.retain(|&at| {
        let (file, print) = &after[at];
        let partner = gone.iter().position(|&at_before| {
            let (file_before, before) = &before[at_before];
            (file_before, rule(before), kind(before)) == (file, rule(print), kind(print))
                && renamed_part(&before.symbol, &print.symbol).is_some_and(|(old, new)| {
                    message_digest(&replace_word(messages[at], new, old)) == before.message
                })
        });
        let Some(partner) = partner else { return true };
        gone.remove(partner);
        *moved += 1;
        false
    });
}

/// The one name in which two paths of definitions differ, in both.
fn renamed_part<'s>(before: &'s str, after: &'s str) -> Option<(&'s str, &'s str)> {
    let (before, after): (Vec<_>, Vec<_>) = (before.split('.').collect(), after.split('.').collect());
    if before.len() != after.len() {
        return None;
    }
    let mut different = before.into_iter().zip(after).filter(|(before, after)| before != after);
    different.next().filter(|_| different.next().is_none())
}

/// Diagnostics of different severities or sources are never paired.
const fn kind(print: &DiagnosticFingerprint) -> (Severity, Option<DiagnosticSource>) {
    (print.severity, print.source)
}

fn rule(print: &DiagnosticFingerprint) -> Option<&str> {
    print.rule.as_deref()
}

/// The diagnostics of a scope, each listed as often as it occurs.
#[must_use]
pub fn entries(scope: &RewardScope) -> Vec<FileFingerprint> {
    let mut all = Vec::new();
    for file in &scope.files {
        let uri = file.uri.to_string();
        for print in &file.fingerprints {
            let one = DiagnosticFingerprint { count: 1, ..print.clone() };
            all.extend(std::iter::repeat_n((uri.clone(), one), print.count as usize));
        }
    }
    all
}

/// Compares two scopes.
#[must_use]
pub fn compare(before: &RewardScope, after: &RewardScope) -> ScopeComparison {
    let pairing = pair(&entries(before), &entries(after));
    let count = |list: &[usize]| u32::try_from(list.len()).unwrap_or(u32::MAX);
    ScopeComparison {
        fixed: count(&pairing.gone),
        new: count(&pairing.new),
        unchanged: pairing.unchanged,
        moved: pairing.moved,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(file: &str, rule: &str, message: &str, symbol: &str) -> FileFingerprint {
        let print = DiagnosticFingerprint {
            source: None,
            rule: Some(rule.to_owned()),
            message: message.to_owned(),
            symbol: symbol.to_owned(),
            severity: Severity::Error,
            count: 1,
        };
        (file.to_owned(), print)
    }

    #[test]
    fn numbers_in_messages_are_ignored() {
        assert_eq!(normalized("line 12, 3 of 40"), "line 0, 0 of 0");
        assert_eq!(normalized("int64"), normalized("int8"));
    }

    #[test]
    fn a_moved_diagnostic_is_neither_fixed_nor_new() {
        let before = [entry("a", "r", "m", "f"), entry("a", "r", "m", "f"), entry("a", "q", "n", "g")];
        let pairing =
            pair(&before, &[entry("a", "r", "m", "f"), entry("b", "r", "m", "f"), entry("a", "q", "o", "h")]);
        assert!(pairing.gone.is_empty() && pairing.new.is_empty());
        assert_eq!((pairing.unchanged, pairing.moved), (1, 2));
    }

    #[test]
    fn a_strict_pairing_follows_moves_but_not_other_messages() {
        let before = [entry("a", "r", "m", "f"), entry("a", "r", "n", "f"), entry("a", "r", "o", "")];
        let after = [entry("b", "r", "m", "f"), entry("a", "r", "other", "f"), entry("a", "r", "o", "g")];
        let pairing = pair_strictly(&before, &after);
        assert_eq!((pairing.gone, pairing.new, pairing.moved), (vec![1], vec![1], 2));
        assert!(pair(&before, &after).new.is_empty());
    }

    #[test]
    fn a_diagnostic_about_a_renamed_definition_is_not_new() {
        let entry = |message: &str, symbol: &str| entry("a", "r", &message_digest(message), symbol);
        let is_paired = |before: (&str, &str), after: (&str, &str)| {
            let sets = ([entry(before.0, before.1)], [entry(after.0, after.1)]);
            let mut pairing = pair_strictly(&sets.0, &sets.1);
            pair_renamed(&mut pairing, &sets.0, &sets.1, &[after.0]);
            pairing.new.is_empty() && pairing.gone.is_empty()
        };
        assert!(is_paired(("`run` of B, run", "C.run"), ("`go` of B, go", "C.go")));
        assert!(is_paired(("in Old.f", "Old.f"), ("in New.f", "New.f")));
        assert!(!is_paired(("`run` of B", "C.run"), ("`go` of D", "C.go")));
        assert!(!is_paired(("no `run`", "C.f"), ("no `go`", "C.f")));
        assert!(!is_paired(("`run`", "C.run"), ("`go`", "D.go")));
    }

    #[test]
    fn diagnostics_of_different_rules_are_never_paired() {
        let pairing = pair(&[entry("a", "r", "m", "f")], &[entry("a", "q", "m", "f")]);
        assert_eq!((pairing.gone, pairing.new), (vec![0], vec![0]));
    }
}
