//! Rule 1: fingerprints, not counts. What a diagnostic is, wherever it stands, and how two sets of them compare.

use std::collections::BTreeMap;

use crate::digest::Digest;
use crate::model::facts::{Counts, Diagnostic};
use crate::model::request::Severity;
use crate::model::reward::{FileState, Fingerprint, RewardScope};
use crate::path::DocUri;

/// How many hexadecimal digits of a message's digest are told.
const DIGITS: usize = 16;

/// A message without what changes when its place does: every run of digits is one `0`.
#[must_use]
pub fn normalised(message: &str) -> String {
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

/// The fingerprint of a diagnostic that stands in the definition `symbol`.
#[must_use]
pub fn of(found: &Diagnostic, symbol: &str) -> Fingerprint {
    let mut message = Digest::of(normalised(&found.message).as_bytes()).to_hex();
    message.truncate(DIGITS);
    Fingerprint {
        rule: found.rule.clone(),
        message,
        symbol: symbol.to_owned(),
        severity: found.severity,
        count: 1,
    }
}

/// What is recorded of files and their diagnostics, each with the definition that it stands in.
#[must_use]
pub fn scope<'d>(files: impl IntoIterator<Item = (DocUri, Vec<(&'d Diagnostic, String)>)>) -> RewardScope {
    let mut scope = RewardScope::default();
    for (uri, found) in files {
        let mut counts = Counts::default();
        let mut prints: BTreeMap<Fingerprint, u32> = BTreeMap::new();
        for (item, symbol) in found {
            counts.add(item.severity);
            if item.severity > Severity::Hint {
                *prints.entry(of(item, &symbol)).or_default() += 1;
            }
        }
        if prints.is_empty() && counts == Counts::default() {
            scope.clean.push(uri);
        } else {
            let prints = prints.into_iter().map(|(print, count)| Fingerprint { count, ..print }).collect();
            scope.files.push(FileState { uri, counts, prints });
        }
    }
    let by_path = |uri: &DocUri| uri.to_string();
    scope.files.sort_by_key(|file| by_path(&file.uri));
    scope.clean.sort_by_key(by_path);
    scope
}

/// What became of diagnostics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Compared {
    /// How many went.
    pub fixed: u32,
    /// How many came.
    pub new: u32,
    /// How many are where they were.
    pub kept: u32,
    /// How many are elsewhere, or say the same of another definition.
    pub moved: u32,
}

/// One diagnostic of one side: file, and what it is.
pub type Entry = (String, Fingerprint);

/// How two sets pair up: the entries of the first and of the second that have no partner, and how many pairs stayed and moved.
#[derive(Debug, Default)]
pub struct Paired {
    /// Of the first set.
    pub gone: Vec<usize>,
    /// Of the second.
    pub new: Vec<usize>,
    /// Pairs of one place.
    pub kept: u32,
    /// Pairs of different places.
    pub moved: u32,
}

/// Pairs two sets, from what is the same in every respect to what only is of one rule.
#[must_use]
pub fn pair(before: &[Entry], after: &[Entry]) -> Paired {
    type Key<'e> = (Option<&'e str>, Option<&'e str>, Option<&'e str>, Option<&'e str>, Severity);
    // Of one file, message and definition; then whatever moved or was renamed; at last what is of one rule and file: a message
    // tells names, which an edit may change.
    let levels: [fn(&Entry) -> Key<'_>; 6] = [
        |(file, print)| (Some(file), rule(print), Some(&print.message), Some(&print.symbol), print.severity),
        |(_, print)| (None, rule(print), Some(&print.message), Some(&print.symbol), print.severity),
        |(file, print)| (Some(file), rule(print), Some(&print.message), None, print.severity),
        |(_, print)| (None, rule(print), Some(&print.message), None, print.severity),
        |(file, print)| (Some(file), rule(print), None, Some(&print.symbol), print.severity),
        |(file, print)| (Some(file), rule(print), None, None, print.severity),
    ];
    let mut paired =
        Paired { gone: (0..before.len()).collect(), new: (0..after.len()).collect(), kept: 0, moved: 0 };
    for (level, key) in levels.into_iter().enumerate() {
        let mut waiting: BTreeMap<Key<'_>, Vec<usize>> = BTreeMap::new();
        for &at in paired.new.iter().rev() {
            waiting.entry(key(&after[at])).or_default().push(at);
        }
        let mut taken = std::collections::BTreeSet::new();
        paired.gone.retain(|&at| match waiting.get_mut(&key(&before[at])).and_then(Vec::pop) {
            Some(partner) => {
                taken.insert(partner);
                false
            }
            None => true,
        });
        let count = u32::try_from(taken.len()).unwrap_or(u32::MAX);
        *(if level == 0 { &mut paired.kept } else { &mut paired.moved }) += count;
        paired.new.retain(|at| !taken.contains(at));
    }
    paired
}

fn rule(print: &Fingerprint) -> Option<&str> {
    print.rule.as_deref()
}

/// The diagnostics of a scope, one by one.
#[must_use]
pub fn entries(scope: &RewardScope) -> Vec<Entry> {
    let mut all = Vec::new();
    for file in &scope.files {
        let uri = file.uri.to_string();
        for print in &file.prints {
            let one = Fingerprint { count: 1, ..print.clone() };
            all.extend(std::iter::repeat_n((uri.clone(), one), print.count as usize));
        }
    }
    all
}

/// Compares two scopes.
#[must_use]
pub fn compare(before: &RewardScope, after: &RewardScope) -> Compared {
    let paired = pair(&entries(before), &entries(after));
    let count = |list: &[usize]| u32::try_from(list.len()).unwrap_or(u32::MAX);
    Compared { fixed: count(&paired.gone), new: count(&paired.new), kept: paired.kept, moved: paired.moved }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(file: &str, rule: &str, message: &str, symbol: &str) -> Entry {
        let print = Fingerprint {
            rule: Some(rule.to_owned()),
            message: message.to_owned(),
            symbol: symbol.to_owned(),
            severity: Severity::Error,
            count: 1,
        };
        (file.to_owned(), print)
    }

    #[test]
    fn numbers_do_not_matter() {
        assert_eq!(normalised("line 12, 3 of 40"), "line 0, 0 of 0");
        assert_eq!(normalised("int64"), normalised("int8"));
    }

    #[test]
    fn what_moved_is_neither_fixed_nor_new() {
        let before = [entry("a", "r", "m", "f"), entry("a", "r", "m", "f"), entry("a", "q", "n", "g")];
        let paired =
            pair(&before, &[entry("a", "r", "m", "f"), entry("b", "r", "m", "f"), entry("a", "q", "o", "h")]);
        assert!(paired.gone.is_empty() && paired.new.is_empty());
        assert_eq!((paired.kept, paired.moved), (1, 2));
    }

    #[test]
    fn one_that_came_does_not_make_up_for_another_kind() {
        let paired = pair(&[entry("a", "r", "m", "f")], &[entry("a", "q", "m", "f")]);
        assert_eq!((paired.gone, paired.new), (vec![0], vec![0]));
    }
}
