//! Follows a target through the commits after the revision of its selector.
//!
//! Two states that are far apart may have little in common, although every commit between them changed little. So the
//! contents that the target's file had are compared one after the other, each pair as two states are compared anywhere
//! ([`relocate`]). Contents between which the target is certified are skipped. A commit in which the target left its
//! file is searched in the files that this commit changed, since nothing else can have received it.

use std::cell::Cell;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{
    MissingDefinition, OldContent, OldTarget, OtherFile, OtherFiles, RelocationMatch, RelocationOutcome,
    TargetChange, relocate,
};
use crate::digest::Digest;
use crate::path::{AbsPath, WorkspacePath};
use crate::python::outline::Span;
use crate::workspace::files::Document;
use crate::workspace::history::{MIN_SIMILARITY, similarity};
use crate::workspace::states::{ChangedFile, ContentId, States};

/// The most bytes of contents that are compared for one target. It limits the time, and the result does not depend on
/// the speed of the machine.
const MAX_COMPARED_BYTES: usize = 24 << 20;
/// The most files that one target moves through.
const MAX_FILES: usize = 24;
/// The most files of one commit that are searched for a target that left its file.
const MAX_SEARCHED_FILES: usize = 40;

/// A commit or transaction in which the place of the target did not follow with certainty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrailStep {
    /// The ID of the commit or transaction.
    pub by: String,
    /// How the target changed.
    pub change: TargetChange,
    /// The score of the match, in millionths.
    pub score: u32,
    /// The evidence, in one line.
    pub reason: String,
}

impl TrailStep {
    /// The score of the match, from 0 to 1.
    #[must_use]
    pub fn score(&self) -> f64 {
        f64::from(self.score) / 1e6
    }
}

/// Where a target ended up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum TrailEnd {
    /// In the last state, at this span.
    At {
        /// The file.
        path: WorkspacePath,
        /// The bytes of the target in it.
        span: Span,
        /// The digest of its content.
        digest: Digest,
    },
    /// A commit or transaction removed it.
    Gone {
        /// Its ID.
        by: String,
        /// Why, in one line.
        reason: String,
    },
    /// A commit or transaction left it unclear, or the limits were reached there.
    Unclear {
        /// Its ID.
        by: String,
    },
}

/// The way of a target through the commits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HistoryTrail {
    /// The steps without certainty, the oldest first.
    pub steps: Vec<TrailStep>,
    /// Where it ends.
    pub end: TrailEnd,
}

impl HistoryTrail {
    /// The product of the steps' scores.
    #[must_use]
    pub fn confidence(&self) -> f64 {
        self.steps.iter().map(TrailStep::score).product()
    }
}

/// Follows a target from one of the states to the last. `root` is the workspace's folder.
#[must_use]
pub fn follow(states: &dyn States, root: &AbsPath, start: TrailState, cache: &dyn StepCache) -> HistoryTrail {
    let mut follower = Follower { states, root, cache, budget: MAX_COMPARED_BYTES, steps: Vec::new() };
    let end = follower.follow(start);
    HistoryTrail { steps: follower.steps, end }
}

/// Keeps the results of comparing two contents of one file.
pub trait StepCache {
    /// The result of a key.
    fn get(&self, key: &Digest) -> Option<Vec<u8>>;
    /// Stores the result of a key.
    fn put(&self, key: &Digest, bytes: &[u8]);
}

/// The target in one state.
#[derive(Debug, Clone)]
pub struct TrailState {
    /// The number of the state.
    pub at: usize,
    /// Its file.
    pub path: WorkspacePath,
    /// The content of the file.
    pub document: Arc<Document>,
    /// The bytes of the target in it.
    pub span: Span,
}

struct Follower<'f> {
    states: &'f dyn States,
    root: &'f AbsPath,
    cache: &'f dyn StepCache,
    /// The bytes that may still be compared.
    budget: usize,
    steps: Vec<TrailStep>,
}

/// What became of a target in a row of contents of its file.
enum StepProgress {
    /// It is in the last of them.
    Reached(TrailState),
    /// It moved to another file.
    Left(TrailState),
    Ended(TrailEnd),
}

impl Follower<'_> {
    fn document(&self, path: &WorkspacePath, bytes: Vec<u8>) -> Arc<Document> {
        Arc::new(Document::new(self.root.join(path.as_str()), bytes))
    }

    fn read(&self, path: &WorkspacePath, blob: ContentId) -> Option<Arc<Document>> {
        self.states.content(blob).map(|bytes| self.document(path, bytes))
    }

    fn unclear(&self, at: usize) -> TrailEnd {
        TrailEnd::Unclear { by: self.states.id(at) }
    }

    fn follow(&mut self, mut state: TrailState) -> TrailEnd {
        for _ in 0..MAX_FILES {
            let versions = self.states.versions(&state.path, state.at);
            let removal = versions.last().filter(|(_, blob)| blob.is_none()).map(|(at, _)| *at);
            let contents: Vec<(usize, ContentId)> =
                versions.into_iter().filter_map(|(at, blob)| Some((at, blob?))).collect();
            state = match (self.along(state, &contents), removal) {
                (StepProgress::Ended(end), _) => return end,
                (StepProgress::Left(state), _) => state,
                (StepProgress::Reached(state), None) => {
                    return TrailEnd::At {
                        digest: state.document.digest,
                        path: state.path,
                        span: state.span,
                    };
                }
                (StepProgress::Reached(state), Some(at)) => match self.removed_file(&state, at) {
                    StepProgress::Ended(end) => return end,
                    StepProgress::Left(state) | StepProgress::Reached(state) => state,
                },
            };
        }
        self.unclear(state.at)
    }

    /// Follows a target through contents of its file.
    fn along(&mut self, state: TrailState, contents: &[(usize, ContentId)]) -> StepProgress {
        let Some(&(at, id)) = contents.last() else { return StepProgress::Reached(state) };
        let Some(document) = self.read(&state.path, id) else { return StepProgress::Ended(self.unclear(at)) };
        if contents.len() == 1 {
            return self.step(&state, at, Some(&document));
        }
        match self.in_file(&state, &document) {
            Err(OutOfBudget) => return StepProgress::Ended(self.unclear(at)),
            Ok(Some(found)) if found.certified => {
                return StepProgress::Reached(TrailState {
                    at,
                    path: state.path,
                    document,
                    span: found.span,
                });
            }
            Ok(_) => {}
        }
        let (first, rest) = contents.split_at(contents.len() / 2);
        match self.along(state, first) {
            StepProgress::Reached(state) => self.along(state, rest),
            other => other,
        }
    }

    /// Compares the target's file with another content of it. `None` if other files may have received the target.
    fn in_file(
        &mut self,
        state: &TrailState,
        document: &Arc<Document>,
    ) -> Result<Option<InFile>, OutOfBudget> {
        // The budget does not depend on what is cached, and so the result does not either.
        let bytes = state.document.text.len() + document.text.len();
        self.budget = self.budget.checked_sub(bytes).ok_or(OutOfBudget)?;
        let span = format!("{} {}..{}", state.path, state.span.start, state.span.end);
        let (old, new) = (state.document.digest, document.digest);
        let key = Digest::of_fields([&old.as_bytes()[..], &new.as_bytes()[..], span.as_bytes()]);
        if let Some(cached) = self.cache.get(&key).and_then(|bytes| serde_json::from_slice(&bytes).ok()) {
            return Ok(cached);
        }
        let none = NoFiles { were_requested: Cell::new(false) };
        let found = match relocate(&old_target(state), Some(document), &none) {
            RelocationOutcome::Found(place) if !none.were_requested.get() => Some(InFile::of(*place)),
            _ => None,
        };
        if let Ok(bytes) = serde_json::to_vec(&found) {
            self.cache.put(&key, &bytes);
        }
        Ok(found)
    }

    /// The file was removed by a commit: its content or the target may be in other files.
    fn removed_file(&mut self, state: &TrailState, at: usize) -> StepProgress {
        let renamed = self.states.changes(at).and_then(|changes| self.renamed(state, &changes));
        self.step(state, at, renamed.as_ref())
    }

    /// Follows a target through one step. `document` is its file after the step, under its new name.
    fn step(&mut self, state: &TrailState, at: usize, document: Option<&Arc<Document>>) -> StepProgress {
        if let Some(document) = document.filter(|document| document.path == state.document.path) {
            match self.in_file(state, document) {
                Err(OutOfBudget) => return StepProgress::Ended(self.unclear(at)),
                Ok(Some(found)) => {
                    let (path, document) = (state.path.clone(), document.clone());
                    let span = found.span.clone();
                    self.note(at, found, false);
                    return StepProgress::Reached(TrailState { at, path, document, span });
                }
                Ok(None) => {}
            }
        }
        let Some(changes) = self.states.changes(at) else { return StepProgress::Ended(self.unclear(at)) };
        let own = document.and_then(|document| self.relative(document));
        let others = ChangedInStep { follower: self, changes: &changes, own: own.as_ref() };
        let outcome = relocate(&old_target(state), document, &others);
        match outcome {
            RelocationOutcome::Found(place) => {
                let Some(path) = self.relative(&place.document) else {
                    return StepProgress::Ended(self.unclear(at));
                };
                let stays = path == state.path;
                let document = place.document.clone();
                let found = InFile::of(*place);
                let state = TrailState { at, path, document, span: found.span.clone() };
                self.note(at, found, !stays);
                if stays { StepProgress::Reached(state) } else { StepProgress::Left(state) }
            }
            RelocationOutcome::Ambiguous(_) => StepProgress::Ended(self.unclear(at)),
            RelocationOutcome::Gone { reason, .. } => {
                StepProgress::Ended(TrailEnd::Gone { by: self.states.id(at), reason })
            }
        }
    }

    /// Notes a step that was not certain.
    fn note(&mut self, at: usize, found: InFile, moved: bool) {
        if found.certified && !moved {
            return;
        }
        let change = match found.change {
            TargetChange::Renamed => TargetChange::Renamed,
            _ if moved => TargetChange::Moved,
            change => change,
        };
        let InFile { score, reason, .. } = found;
        self.steps.push(TrailStep { by: self.states.id(at), change, score, reason });
    }

    fn relative(&self, document: &Document) -> Option<WorkspacePath> {
        document.path.strip_prefix(self.root).and_then(WorkspacePath::new)
    }

    /// The file that a commit renamed the target's file to, as git detects renames.
    fn renamed(&self, state: &TrailState, changes: &[ChangedFile]) -> Option<Arc<Document>> {
        let bytes = |blob: Option<ContentId>| self.states.content(blob?);
        let own = changes.iter().find(|file| file.path == state.path && file.after.is_none())?;
        let own_bytes = bytes(own.before)?;
        let name = |path: &WorkspacePath| path.as_str().rsplit('/').next().map(str::to_owned);
        let added = changes.iter().filter(|file| file.before.is_none());
        let mut candidates: Vec<(u64, bool, &WorkspacePath, Vec<u8>)> = added
            .filter_map(|file| {
                let content = bytes(file.after)?;
                let alike = similarity(&own_bytes, &content);
                (alike >= MIN_SIMILARITY)
                    .then(|| (alike, name(&file.path) == name(&state.path), &file.path, content))
            })
            .collect();
        candidates.sort_by(|a, b| (b.0, b.1).cmp(&(a.0, a.1)).then_with(|| a.2.cmp(b.2)));
        let removed: Vec<Vec<u8>> = changes
            .iter()
            .filter(|file| file.after.is_none() && file.path != state.path)
            .filter_map(|file| bytes(file.before))
            .collect();
        let (_, _, path, content) = candidates.into_iter().find(|(alike, _, _, content)| {
            removed.iter().all(|other| similarity(other, content) <= *alike)
        })?;
        Some(self.document(path, content))
    }
}

/// Where a target is in another content of its file.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct InFile {
    span: Span,
    change: TargetChange,
    certified: bool,
    /// The score in millionths.
    score: u32,
    reason: String,
}

impl InFile {
    fn of(place: RelocationMatch) -> Self {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a score is from 0 to 1")]
        let score = (place.score.clamp(0.0, 1.0) * 1e6).round() as u32;
        let RelocationMatch { span, change, certified, reason, .. } = place;
        Self { span, change, certified, score, reason }
    }
}

/// The limit of compared bytes was reached.
struct OutOfBudget;

fn old_target(state: &TrailState) -> OldTarget<'_> {
    OldTarget { path: state.path.as_str(), text: &state.document.text, span: state.span.clone() }
}

/// No other files, and whether there would have been a use for them.
struct NoFiles {
    were_requested: Cell<bool>,
}

impl OtherFiles for NoFiles {
    fn files(&self, _: &[MissingDefinition]) -> Vec<OtherFile> {
        self.were_requested.set(true);
        Vec::new()
    }
}

/// The other files that differ before and after a step.
struct ChangedInStep<'c> {
    follower: &'c Follower<'c>,
    changes: &'c [ChangedFile],
    own: Option<&'c WorkspacePath>,
}

impl OtherFiles for ChangedInStep<'_> {
    fn files(&self, wanted: &[MissingDefinition]) -> Vec<OtherFile> {
        let mut found: Vec<(bool, OtherFile)> = Vec::new();
        for file in self.changes.iter().filter(|file| Some(&file.path) != self.own) {
            let Some(document) = file.after.and_then(|blob| self.follower.read(&file.path, blob)) else {
                continue;
            };
            let before = match file.before {
                None => OldContent::Absent,
                Some(blob) => match self.follower.states.content(blob) {
                    Some(bytes) => OldContent::Text(crate::text::decode_source(bytes).text.into()),
                    None => continue,
                },
            };
            let has_name = wanted.iter().any(|wanted| document.text.contains(&wanted.name));
            found.push((!has_name, OtherFile { path: file.path.as_str().to_owned(), document, before }));
        }
        // Files with the name first; the changes are sorted by path.
        found.sort_by_key(|(lacks_name, _)| *lacks_name);
        found.into_iter().map(|(_, file)| file).take(MAX_SEARCHED_FILES).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

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
}
