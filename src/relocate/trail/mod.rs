//! Follows a target through the commits after the revision of its selector.
//!
//! Two states that are far apart may have little in common, although every commit between them changed little. So the
//! contents that the target's file had are compared one after the other, each pair as two states are compared anywhere
//! ([`super::relocate`]). Contents between which the target is certified, and its definition kept nearly all of its
//! text, are skipped. A commit in which the target left its
//! file is searched in the files that this commit changed, since nothing else can have received it.

mod follower;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::TargetChange;
use crate::digest::Digest;
use crate::path::{AbsPath, WorkspacePath};
use crate::python::outline::Span;
use crate::workspace::files::Document;
use crate::workspace::states::States;
use follower::Follower;

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
    Follower::new(states, root, cache).trail(start)
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
