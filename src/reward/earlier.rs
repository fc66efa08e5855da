//! The diagnostics before an edit as they are recorded: only what differs from those after it, from which the rest is had again.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::reward::{Earlier, FileState, RewardScope};
use crate::path::DocUri;

/// A file of a scope: its diagnostics, or none.
type Entry<'s> = Option<&'s FileState>;

fn entries(scope: &RewardScope) -> BTreeMap<&DocUri, Entry<'_>> {
    let found = scope.files.iter().map(|file| (&file.uri, Some(file)));
    found.chain(scope.clean.iter().map(|uri| (uri, None))).collect()
}

/// What differs before.
#[must_use]
pub fn shortened(before: &RewardScope, after: &RewardScope) -> Earlier {
    let (then, now) = (entries(before), entries(after));
    let mut earlier = Earlier { owed: before.owed.clone(), ..Earlier::default() };
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

/// The whole again.
#[must_use]
pub fn whole(earlier: &Earlier, after: &RewardScope) -> RewardScope {
    let other: BTreeSet<&DocUri> =
        earlier.files.iter().map(|file| &file.uri).chain(&earlier.clean).chain(&earlier.absent).collect();
    let same = |uri: &DocUri| !other.contains(uri);
    let mut before = RewardScope {
        files: earlier.files.clone(),
        clean: earlier.clean.clone(),
        owed: earlier.owed.clone(),
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
                        scope.files.push(FileState { uri, counts, prints: Vec::new() });
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
        fn nothing_is_lost(before in any_scope(), after in any_scope()) {
            let earlier = shortened(&before, &after);
            prop_assert_eq!(whole(&earlier, &after), before);
            prop_assert_eq!(shortened(&after, &after), Earlier::default());
        }
    }
}
