//! Follows a target through the commits after the revision of its selector.
//!
//! Two states that are far apart may have little in common, although every commit between them changed little. So the
//! contents that the target's file had are compared one after the other, each pair as two states are compared anywhere
//! ([`relocate`]). Contents between which the target is certified are skipped. A commit in which the target left its
//! file is searched in the files that this commit changed, since nothing else can have received it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{
    MissingDefinition, OldContent, OldTarget, OtherFile, OtherFiles, RelocationMatch, RelocationOutcome,
    TargetChange, relocate,
};
use crate::path::{AbsPath, WorkspacePath};
use crate::python::outline::Span;
use crate::workspace::commits::{BlobId, ChangedFile, CommitPath};
use crate::workspace::files::Document;
use crate::workspace::history::{MIN_SIMILARITY, similarity};

/// The most bytes of contents that are compared for one target. It limits the time, and the result does not depend on
/// the speed of the machine.
const MAX_COMPARED_BYTES: usize = 24 << 20;
/// The most files that one target moves through.
const MAX_FILES: usize = 24;
/// The most files of one commit that are searched for a target that left its file.
const MAX_SEARCHED_FILES: usize = 40;

/// A commit in which the place of the target did not follow with certainty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrailStep {
    /// The ID of the commit.
    pub commit: String,
    /// How the target changed.
    pub change: TargetChange,
    /// The score of the match, in millionths.
    pub score: u32,
    /// The evidence, in one line.
    pub reason: String,
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
    },
    /// A commit removed it.
    Gone {
        /// The ID of the commit.
        commit: String,
        /// Why, in one line.
        reason: String,
    },
    /// A commit left it unclear, or the limits were reached.
    Unclear {
        /// The ID of the commit.
        commit: String,
    },
}

/// The way of a target through the commits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trail {
    /// The steps without certainty, the oldest first.
    pub steps: Vec<TrailStep>,
    /// Where it ends.
    pub end: TrailEnd,
}

impl Trail {
    /// The product of the steps' scores.
    #[must_use]
    pub fn confidence(&self) -> f64 {
        self.steps.iter().map(|step| f64::from(step.score) / 1e6).product()
    }
}

/// Follows a target from the first state of `commits` to the last. `root` is the workspace's folder.
#[must_use]
pub fn follow(
    commits: &CommitPath<'_>,
    root: &AbsPath,
    path: &WorkspacePath,
    document: Arc<Document>,
    span: Span,
) -> Trail {
    let mut follower = Follower { commits, root, budget: MAX_COMPARED_BYTES, steps: Vec::new() };
    let end = follower.follow(State { at: 0, path: path.clone(), document, span });
    Trail { steps: follower.steps, end }
}

/// The target in one state.
#[derive(Clone)]
struct State {
    at: usize,
    path: WorkspacePath,
    document: Arc<Document>,
    span: Span,
}

struct Follower<'f> {
    commits: &'f CommitPath<'f>,
    root: &'f AbsPath,
    /// The bytes that may still be compared.
    budget: usize,
    steps: Vec<TrailStep>,
}

/// What became of a target in a row of contents of its file.
enum Progress {
    /// It is in the last of them.
    Reached(State),
    /// It moved to another file.
    Left(State),
    Ended(TrailEnd),
}

impl Follower<'_> {
    fn document(&self, path: &WorkspacePath, bytes: Vec<u8>) -> Arc<Document> {
        Arc::new(Document::new(self.root.join(path.as_str()), bytes))
    }

    fn read(&self, path: &WorkspacePath, blob: BlobId) -> Option<Arc<Document>> {
        self.commits.content(blob).map(|bytes| self.document(path, bytes))
    }

    fn unclear(&self, at: usize) -> TrailEnd {
        TrailEnd::Unclear { commit: self.commits.id(at) }
    }

    fn follow(&mut self, mut state: State) -> TrailEnd {
        for _ in 0..MAX_FILES {
            let versions = self.commits.versions(&state.path, state.at);
            let removal = versions.last().filter(|(_, blob)| blob.is_none()).map(|(at, _)| *at);
            let contents: Vec<(usize, BlobId)> =
                versions.into_iter().filter_map(|(at, blob)| Some((at, blob?))).collect();
            state = match (self.along(state, &contents), removal) {
                (Progress::Ended(end), _) => return end,
                (Progress::Left(state), _) => state,
                (Progress::Reached(state), None) => {
                    return TrailEnd::At { path: state.path, span: state.span };
                }
                (Progress::Reached(state), Some(at)) => match self.removed_file(&state, at) {
                    Progress::Ended(end) => return end,
                    Progress::Left(state) | Progress::Reached(state) => state,
                },
            };
        }
        self.unclear(state.at)
    }

    /// Follows a target through contents of its file.
    fn along(&mut self, state: State, contents: &[(usize, BlobId)]) -> Progress {
        let Some(&(at, blob)) = contents.last() else { return Progress::Reached(state) };
        let Some(document) = self.read(&state.path, blob) else { return Progress::Ended(self.unclear(at)) };
        if contents.len() == 1 {
            return self.step(&state, at, Some(&document));
        }
        match self.compare(&state, Some(&document), &NoFiles) {
            None => return Progress::Ended(self.unclear(at)),
            Some(RelocationOutcome::Found(place)) if place.certified => {
                return Progress::Reached(State { at, path: state.path, document, span: place.span });
            }
            Some(_) => {}
        }
        let (first, rest) = contents.split_at(contents.len() / 2);
        match self.along(state, first) {
            Progress::Reached(state) => self.along(state, rest),
            other => other,
        }
    }

    /// Compares a target with another state; `None` when the limit is reached.
    fn compare(
        &mut self,
        state: &State,
        document: Option<&Arc<Document>>,
        others: &dyn OtherFiles,
    ) -> Option<RelocationOutcome> {
        let bytes = state.document.text.len() + document.map_or(0, |document| document.text.len());
        self.budget = self.budget.checked_sub(bytes)?;
        let target =
            OldTarget { path: state.path.as_str(), text: &state.document.text, span: state.span.clone() };
        Some(relocate(&target, document, others))
    }

    /// The file was removed by a commit: its content or the target may be in other files.
    fn removed_file(&mut self, state: &State, at: usize) -> Progress {
        let renamed = self.commits.changes(at).and_then(|changes| self.renamed(state, &changes));
        self.step(state, at, renamed.as_ref())
    }

    /// Follows a target through one commit. `document` is its file after the commit, under its new name.
    fn step(&mut self, state: &State, at: usize, document: Option<&Arc<Document>>) -> Progress {
        let Some(changes) = self.commits.changes(at) else { return Progress::Ended(self.unclear(at)) };
        let own = document.and_then(|document| self.relative(document));
        let others = ChangedByCommit { follower: self, changes: &changes, own: own.as_ref() };
        let outcome = {
            let target =
                OldTarget { path: state.path.as_str(), text: &state.document.text, span: state.span.clone() };
            relocate(&target, document, &others)
        };
        let bytes = state.document.text.len() + document.map_or(0, |document| document.text.len());
        self.budget = self.budget.saturating_sub(bytes);
        if self.budget == 0 {
            return Progress::Ended(self.unclear(at));
        }
        match outcome {
            RelocationOutcome::Found(place) => {
                let Some(path) = self.relative(&place.document) else {
                    return Progress::Ended(self.unclear(at));
                };
                self.note(at, &place, path != state.path);
                let stays = path == state.path;
                let state = State { at, path, document: place.document, span: place.span };
                if stays { Progress::Reached(state) } else { Progress::Left(state) }
            }
            RelocationOutcome::Ambiguous(_) => Progress::Ended(self.unclear(at)),
            RelocationOutcome::Gone { reason, .. } => {
                Progress::Ended(TrailEnd::Gone { commit: self.commits.id(at), reason })
            }
        }
    }

    fn note(&mut self, at: usize, place: &RelocationMatch, moved: bool) {
        if place.certified && !moved {
            return;
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a score is from 0 to 1")]
        let score = (place.score.clamp(0.0, 1.0) * 1e6).round() as u32;
        let change = match place.change {
            TargetChange::Renamed => TargetChange::Renamed,
            _ if moved => TargetChange::Moved,
            change => change,
        };
        self.steps.push(TrailStep {
            commit: self.commits.id(at),
            change,
            score,
            reason: place.reason.clone(),
        });
    }

    fn relative(&self, document: &Document) -> Option<WorkspacePath> {
        document.path.strip_prefix(self.root).and_then(WorkspacePath::new)
    }

    /// The file that a commit renamed the target's file to, as git detects renames.
    fn renamed(&self, state: &State, changes: &[ChangedFile]) -> Option<Arc<Document>> {
        let bytes = |blob: Option<BlobId>| self.commits.content(blob?);
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

/// No other files: only the target's own file is compared.
struct NoFiles;

impl OtherFiles for NoFiles {
    fn files(&self, _: &[MissingDefinition]) -> Vec<OtherFile> {
        Vec::new()
    }
}

/// The other files that a commit changed or added.
struct ChangedByCommit<'c> {
    follower: &'c Follower<'c>,
    changes: &'c [ChangedFile],
    own: Option<&'c WorkspacePath>,
}

impl OtherFiles for ChangedByCommit<'_> {
    fn files(&self, wanted: &[MissingDefinition]) -> Vec<OtherFile> {
        let mut found: Vec<(bool, OtherFile)> = Vec::new();
        for file in self.changes.iter().filter(|file| Some(&file.path) != self.own) {
            let Some(document) = file.after.and_then(|blob| self.follower.read(&file.path, blob)) else {
                continue;
            };
            let before = match file.before {
                None => OldContent::Absent,
                Some(blob) => match self.follower.commits.content(blob) {
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
