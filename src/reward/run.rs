//! A run of bundles, one after the other: the reward of each step, and of the whole, without keeping more than two of them.

use serde::Serialize;

use super::state::{Terms, is_fault, recomputed};
use crate::digest::{Digest, Score};
use crate::model::bundle::Bundle;
use crate::model::reward::{Components, Preset, ProcessReward, Weights};

/// One step of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Step {
    /// Its number, beginning with 0.
    pub t: u64,
    /// The reward; `null` where nothing honest can be said.
    pub r: Option<Score>,
    /// Why `r` is `null`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The bundle that it starts from.
    pub prev: Option<Digest>,
    /// The bundle that it leads to.
    pub cur: Digest,
    /// What `r` is made of.
    pub components: Components,
    /// Whether the checker had anything to see.
    pub visible: bool,
    /// What the edit does besides.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub integrity_flags: Vec<&'static str>,
}

/// What a whole run is worth.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Total {
    /// The form of this object.
    pub schema: &'static str,
    /// The formula.
    pub preset: Preset,
    /// Its weights.
    pub weights: Weights,
    /// The sum over the steps that have a reward.
    pub reward: Score,
    /// How many steps there are.
    pub steps: u64,
    /// How many of them have no reward.
    pub unscored: u64,
    /// How many lines were no bundles.
    pub malformed: u64,
}

/// A run as it is read.
#[derive(Debug)]
pub struct Run {
    terms: Terms,
    previous: Option<Bundle>,
    steps: u64,
    unscored: u64,
    malformed: u64,
    /// In millionths, so that the order of a million sums does not matter.
    sum: i128,
}

impl Run {
    /// A run that has no step yet.
    #[must_use]
    pub const fn new(terms: Terms) -> Self {
        Self { terms, previous: None, steps: 0, unscored: 0, malformed: 0, sum: 0 }
    }

    /// The next bundle's step.
    pub fn next(&mut self, bundle: Bundle) -> Step {
        let reward = recomputed(&bundle, self.previous.as_ref(), &self.terms);
        let step = step(self.steps, &bundle, reward);
        self.steps += 1;
        match step.r {
            Some(r) => self.sum += millionths(r),
            None => self.unscored += 1,
        }
        // What was not the caller's doing is no step to go on from.
        if !is_fault(&bundle) {
            self.previous = Some(bundle);
        }
        step
    }

    /// A line that is no bundle. The next step starts from the last bundle.
    pub const fn skip(&mut self) {
        self.malformed += 1;
    }

    /// The whole.
    #[must_use]
    pub fn total(&self) -> Total {
        #[expect(clippy::cast_precision_loss, reason = "a sum of rewards is far below 2^53 millionths")]
        let sum = self.sum as f64 / 1e6;
        Total {
            schema: "lanser.run.v1",
            preset: self.terms.preset,
            weights: self.terms.weights,
            reward: Score::new(sum).unwrap_or_default(),
            steps: self.steps,
            unscored: self.unscored,
            malformed: self.malformed,
        }
    }
}

fn millionths(score: Score) -> i128 {
    #[expect(clippy::cast_possible_truncation, reason = "a score is below 9e9")]
    let whole = (score.get() * 1e6).round() as i128;
    whole
}

/// A step as it is told.
#[must_use]
pub fn step(t: u64, bundle: &Bundle, reward: ProcessReward) -> Step {
    Step {
        t,
        r: reward.r,
        reason: reward.reason,
        prev: reward.previous_bundle_id,
        cur: bundle.bundle_id,
        components: reward.components,
        visible: reward.visible,
        integrity_flags: reward.integrity.flags().into_iter().map(|(name, _)| name).collect(),
    }
}
