//! One walk of a target through the states.

use std::cell::Cell;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{HistoryTrail, StepCache, TrailEnd, TrailState, TrailStep};
use crate::digest::Digest;
use crate::path::{AbsPath, WorkspacePath};
use crate::python::outline::Span;
use crate::relocate::{
    MissingDefinition, OldContent, OldTarget, OtherFile, OtherFiles, RelocationMatch, RelocationOutcome,
    TargetChange, relocate,
};
use crate::workspace::files::Document;
use crate::workspace::history::rename_candidates;
use crate::workspace::states::{ChangedFile, ContentId, States};

/// The most bytes of contents that are compared for one target. It limits the time, and the result does not depend on
/// the speed of the machine.
const MAX_COMPARED_BYTES: usize = 24 << 20;
/// The most files that one target moves through.
const MAX_FILES: usize = 24;
/// The most files of one commit that are searched for a target that left its file.
const MAX_SEARCHED_FILES: usize = 40;

/// A walk that is under way.
pub(super) struct Follower<'f> {
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

impl<'f> Follower<'f> {
    pub(super) const fn new(states: &'f dyn States, root: &'f AbsPath, cache: &'f dyn StepCache) -> Self {
        Self { states, root, cache, budget: MAX_COMPARED_BYTES, steps: Vec::new() }
    }

    pub(super) fn trail(mut self, start: TrailState) -> HistoryTrail {
        let end = self.follow(start);
        HistoryTrail { steps: self.steps, end }
    }

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
            Ok(Some(found)) if found.certified && found.close => {
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

    /// The file that a commit renamed the target's file to, as git detects renames. Of several that are as similar, the one that keeps
    /// the most of the path, with its folder; else none.
    fn renamed(&self, state: &TrailState, changes: &[ChangedFile]) -> Option<Arc<Document>> {
        let bytes = |blob: Option<ContentId>| self.states.content(blob?);
        let own = changes.iter().find(|file| file.path == state.path && file.after.is_none())?;
        let own = bytes(own.before)?;
        let added = changes.iter().filter(|file| file.before.is_none());
        let added = added.filter_map(|file| Some((&file.path, bytes(file.after)?)));
        let removed = changes.iter().filter(|file| file.after.is_none() && file.path != state.path);
        let removed: Vec<Vec<u8>> = removed.filter_map(|file| bytes(file.before)).collect();
        let removed: Vec<&[u8]> = removed.iter().map(Vec::as_slice).collect();
        let candidates = rename_candidates(&state.path, &own, added, &removed);
        let is_one_of_several = match candidates.as_slice() {
            [first, second, ..] => {
                let keeps_more = first.kept_names > second.kept_names.max(1);
                first.similarity == second.similarity && !keeps_more
            }
            _ => false,
        };
        let renamed = candidates.into_iter().next().filter(|_| !is_one_of_several)?;
        Some(self.document(renamed.path, renamed.content))
    }
}

/// Where a target is in another content of its file.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct InFile {
    span: Span,
    change: TargetChange,
    certified: bool,
    /// Whether no other definition can have taken its place in between.
    close: bool,
    /// The score in millionths.
    score: u32,
    reason: String,
}

impl InFile {
    fn of(place: RelocationMatch) -> Self {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a score is from 0 to 1")]
        let score = (place.score.clamp(0.0, 1.0) * 1e6).round() as u32;
        let RelocationMatch { span, change, certified, close, reason, .. } = place;
        Self { span, change, certified, close, score, reason }
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
