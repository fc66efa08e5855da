//! Stores the diagnostics before an edit as their difference from those after it, and restores them.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::reward::{EarlierDiagnostics, FileDiagnostics, RewardScope};
use crate::path::DocUri;

/// A file of a scope: its diagnostics, or `None` if it has none.
type ScopeEntry<'s> = Option<&'s FileDiagnostics>;

fn entries(scope: &RewardScope) -> BTreeMap<&DocUri, ScopeEntry<'_>> {
    let found = scope.files.iter().map(|file| (&file.uri, Some(file)));
    found.chain(scope.clean.iter().map(|uri| (uri, None))).collect()
}

/// The part of `before` that differs from `after`.
#[must_use]
pub fn delta(before: &RewardScope, after: &RewardScope) -> EarlierDiagnostics {
    let (then, now) = (entries(before), entries(after));
    let mut earlier =
        EarlierDiagnostics { outstanding: before.outstanding.clone(), ..EarlierDiagnostics::default() };
    for (uri, entry) in &then {
        match entry {
            entry if now.get(uri) == Some(entry) => {}
            Some(file) => earlier.files.push((*file).clone()),
            None => earlier.clean.push((*uri).clone()),
        }
    }
    earlier.absent = now.keys().filter(|uri| !then.contains_key(*uri)).map(|uri| (*uri).clone()).collect();
    earlier
}

/// The complete scope before the edit.
#[must_use]
pub fn restored(earlier: &EarlierDiagnostics, after: &RewardScope) -> RewardScope {
    let other: BTreeSet<&DocUri> =
        earlier.files.iter().map(|file| &file.uri).chain(&earlier.clean).chain(&earlier.absent).collect();
    let same = |uri: &DocUri| !other.contains(uri);
    let mut before = RewardScope {
        files: earlier.files.clone(),
        clean: earlier.clean.clone(),
        outstanding: earlier.outstanding.clone(),
    };
    before.files.extend(after.files.iter().filter(|file| same(&file.uri)).cloned());
    before.clean.extend(after.clean.iter().filter(|uri| same(uri)).cloned());
    before.files.sort_by(|a, b| a.uri.cmp(&b.uri));
    before.clean.sort();
    before
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::facts::Counts;
    use proptest::prelude::*;

    /// Up to six files, each absent, clean, or with some diagnostics.
    fn any_scope() -> impl Strategy<Value = RewardScope> {
        prop::collection::vec(0_u32..4, 6).prop_map(|states| {
            let mut scope = RewardScope::default();
            for (name, state) in ["a.py", "b c.py", "b.py", "d/e.py", "d.py", "é.py"].iter().zip(states) {
                let uri = DocUri::Workspace(crate::path::WorkspacePath::new(name).unwrap());
                match state {
                    0 => {}
                    1 => scope.clean.push(uri),
                    error => {
                        let counts = Counts { error, ..Counts::default() };
                        scope.files.push(FileDiagnostics { uri, counts, fingerprints: Vec::new() });
                    }
                }
            }
            scope.files.sort_by(|a, b| a.uri.cmp(&b.uri));
            scope.clean.sort();
            scope
        })
    }

    proptest! {
        #[test]
        fn a_delta_restores_the_scope(before in any_scope(), after in any_scope()) {
            let earlier = delta(&before, &after);
            prop_assert_eq!(restored(&earlier, &after), before);
            prop_assert_eq!(delta(&after, &after), EarlierDiagnostics::default());
        }
    }
}
