//! Walks through states in memory.

use std::cell::RefCell;
use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::workspace::states::{ChangedFile, ContentId};

/// States in memory, each with all files.
struct MemoryStates(Vec<BTreeMap<WorkspacePath, String>>);

impl MemoryStates {
    fn new(states: &[&[(&str, &str)]]) -> Self {
        let path = |path: &str| WorkspacePath::new(path).unwrap();
        let files = |files: &&[(&str, &str)]| {
            files.iter().map(|(name, text)| (path(name), (*text).to_owned())).collect()
        };
        Self(states.iter().map(files).collect())
    }

    fn id_of(text: &str) -> ContentId {
        ContentId::Digest(Digest::of(text.as_bytes()))
    }

    /// The target that a word of a state is, by its first occurrence.
    fn target(&self, at: usize, path: &str, word: &str) -> TrailState {
        let path = WorkspacePath::new(path).unwrap();
        let text = &self.0[at][&path];
        let start = text.find(word).unwrap();
        let document = Document::new(root().join(path.as_str()), text.clone().into_bytes());
        TrailState { at, path, document: Arc::new(document), span: start..start + word.len() }
    }

    fn follow(&self, start: TrailState) -> HistoryTrail {
        follow(self, &root(), start, &NoCache)
    }
}

fn root() -> AbsPath {
    AbsPath::new("/w").unwrap()
}

impl States for MemoryStates {
    fn id(&self, at: usize) -> String {
        at.to_string()
    }

    fn versions(&self, path: &WorkspacePath, from: usize) -> Vec<(usize, Option<ContentId>)> {
        let mut found = Vec::new();
        for at in from + 1..self.0.len() {
            let (old, new) = (self.0[at - 1].get(path), self.0[at].get(path));
            if old != new {
                found.push((at, new.map(|text| Self::id_of(text))));
            }
            if new.is_none() {
                break;
            }
        }
        found
    }

    fn content(&self, id: ContentId) -> Option<Vec<u8>> {
        let texts = self.0.iter().flat_map(BTreeMap::values);
        texts.into_iter().find(|text| Self::id_of(text) == id).map(|text| text.clone().into_bytes())
    }

    fn changes(&self, at: usize) -> Option<Vec<ChangedFile>> {
        let (old, new) = (&self.0[at - 1], &self.0[at]);
        let mut paths: Vec<_> = old.keys().chain(new.keys()).cloned().collect();
        paths.sort();
        paths.dedup();
        let id = |files: &BTreeMap<WorkspacePath, String>, path: &WorkspacePath| {
            files.get(path).map(|text| Self::id_of(text))
        };
        let change =
            |path: WorkspacePath| ChangedFile { before: id(old, &path), after: id(new, &path), path };
        Some(paths.into_iter().map(change).filter(|file| file.before != file.after).collect())
    }
}

struct NoCache;

impl StepCache for NoCache {
    fn get(&self, _: &Digest) -> Option<Vec<u8>> {
        None
    }
    fn put(&self, _: &Digest, _: &[u8]) {}
}

#[derive(Default)]
struct MemoryCache(RefCell<BTreeMap<Digest, Vec<u8>>>);

impl StepCache for MemoryCache {
    fn get(&self, key: &Digest) -> Option<Vec<u8>> {
        self.0.borrow().get(key).cloned()
    }
    fn put(&self, key: &Digest, bytes: &[u8]) {
        self.0.borrow_mut().insert(*key, bytes.to_vec());
    }
}

const BODY: &str = "(order, rate):\n    total = 0\n    for item in order.items:\n        total += item.price * rate\n    return total\n";
const OTHER: &str = "(path):\n    with open(path) as file:\n        lines = file.readlines()\n    return [line.strip() for line in lines]\n";

#[test]
fn a_target_is_followed_through_a_rename_a_rewrite_and_a_move() {
    let rewritten = "(order, rate):\n    return sum(item.price * rate for item in order.items if item)\n";
    let a = [format!("def price{BODY}"), format!("def cost{BODY}"), format!("def cost{rewritten}")];
    let moved = format!("import os\n\n\ndef cost{rewritten}");
    let states = MemoryStates::new(&[
        &[("a.py", &a[0])],
        &[("a.py", &a[1])],
        &[("a.py", &a[2])],
        &[("a.py", "import os\n"), ("b.py", &moved)],
    ]);
    let trail = states.follow(states.target(0, "a.py", "price"));
    let changes: Vec<(&str, TargetChange)> =
        trail.steps.iter().map(|step| (step.by.as_str(), step.change)).collect();
    assert_eq!(changes, [("1", TargetChange::Renamed), ("3", TargetChange::Moved)], "{trail:?}");
    let start = moved.find("cost").unwrap();
    assert!(
        matches!(&trail.end, TrailEnd::At { path, span, .. } if path.as_str() == "b.py" && span.start == start),
        "{trail:?}"
    );
    assert!(trail.confidence() < 1.0 && trail.confidence() > 0.5, "{trail:?}");
    // The two ends alone have nothing in common.
    let squashed = MemoryStates(vec![states.0[0].clone(), states.0[3].clone()]);
    let trail = squashed.follow(squashed.target(0, "a.py", "price"));
    assert!(matches!(trail.end, TrailEnd::Gone { .. }), "{trail:?}");
}

#[test]
fn a_renamed_file_and_a_deletion() {
    let text = format!("def price{BODY}\n\ndef read{OTHER}");
    let without = format!("def read{OTHER}");
    let states = MemoryStates::new(&[&[("a.py", &text)], &[("b.py", &text)], &[("b.py", &without)]]);
    let trail = states.follow(states.target(0, "a.py", "read"));
    assert!(matches!(&trail.end, TrailEnd::At { path, .. } if path.as_str() == "b.py"), "{trail:?}");
    let trail = states.follow(states.target(0, "a.py", "price"));
    assert!(matches!(&trail.end, TrailEnd::Gone { by, .. } if by == "2"), "{trail:?}");
}

/// A history of one file by a list of edits; the name of the target at the end.
fn history(edits: &[u8]) -> (MemoryStates, String) {
    let (mut name, mut head, mut twist) = ("target".to_owned(), String::new(), 0);
    let mut states = Vec::new();
    for (at, edit) in std::iter::once(&0).chain(edits).enumerate() {
        match edit % 4 {
            1 => head = format!("{head}LINE_{at} = {at}\n"),
            2 => name = format!("renamed_{at}"),
            3 => twist += 1,
            _ => {}
        }
        let body = BODY.replace("total = 0", &format!("total = {twist}"));
        let text = format!("{head}def {name}{body}\n\ndef read{OTHER}");
        states.push(BTreeMap::from([(WorkspacePath::new("a.py").unwrap(), text)]));
    }
    (MemoryStates(states), name)
}

proptest! {
    #[test]
    fn the_same_states_change_nothing(count in 1_usize..8) {
        let (states, name) = history(&vec![0; count]);
        let start = states.target(0, "a.py", &name);
        let trail = states.follow(start.clone());
        prop_assert!(trail.steps.is_empty());
        prop_assert_eq!(
            trail.end,
            TrailEnd::At { path: start.path, span: start.span, digest: start.document.digest }
        );
    }

    #[test]
    fn following_in_two_parts_ends_at_the_same_place(edits in prop::collection::vec(0_u8..4, 1..8), cut: usize) {
        let (states, name) = history(&edits);
        let whole = states.follow(states.target(0, "a.py", "target"));
        let expected = states.target(edits.len(), "a.py", &name).span;
        prop_assert!(matches!(&whole.end, TrailEnd::At { span, .. } if *span == expected), "{:?}", whole);
        let cut = cut % edits.len();
        let first = MemoryStates(states.0[..=cut].to_vec());
        let first = first.follow(first.target(0, "a.py", "target"));
        let TrailEnd::At { path, span, .. } = first.end else { panic!("{first:?}") };
        let document = states.target(cut, "a.py", "def").document;
        let rest = states.follow(TrailState { at: cut, path, document, span });
        prop_assert_eq!(&rest.end, &whole.end);
        let renamed = |trail: &HistoryTrail| {
            trail.steps.iter().filter(|step| step.change == TargetChange::Renamed).count()
        };
        let expected = edits.iter().filter(|edit| **edit == 2).count();
        prop_assert!(renamed(&whole) <= expected);
    }

    #[test]
    fn the_cache_does_not_change_the_result(edits in prop::collection::vec(0_u8..4, 1..8)) {
        let (states, _) = history(&edits);
        let cache = MemoryCache::default();
        let start = states.target(0, "a.py", "target");
        let cold = follow(&states, &root(), start.clone(), &cache);
        let warm = follow(&states, &root(), start.clone(), &cache);
        prop_assert_eq!(&cold, &warm);
        prop_assert_eq!(cold, states.follow(start));
    }
}
