//! Rewards of a sequence of bundles: of each step, and in total. Keeps only the previous bundle in memory.

use serde::Serialize;

use super::saturation::MAX_STEP_CHANGE;
use super::state::{RewardFormula, is_fault, recomputed};
use crate::digest::{Digest, Score};
use crate::model::bundle::Bundle;
use crate::model::reward::{Components, FormulaWeights, Preset, ProcessReward};

/// One step of a run, as printed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunStep {
    /// Its number, from 0.
    pub t: u64,
    /// The reward; `null` where it cannot be determined.
    pub r: Option<Score>,
    /// Why `r` is `null`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The bundle before the step.
    pub prev: Option<Digest>,
    /// The bundle after the step.
    pub cur: Digest,
    /// The components of `r`.
    pub components: Components,
    /// Whether the checker could see any difference.
    pub visible: bool,
    /// The integrity flags of the edit.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub integrity_flags: Vec<&'static str>,
    /// The number of diagnostics before and after, where they were counted over the same files. Not printed.
    #[serde(skip)]
    pub diagnostics: (Option<Score>, Option<Score>),
}

/// The total of a run, as printed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunTotal {
    /// The schema of this object.
    pub schema: &'static str,
    /// The formula.
    pub preset: Preset,
    /// Its weights.
    pub weights: FormulaWeights,
    /// The sum over the steps with a reward.
    pub reward: Score,
    /// The number of steps.
    pub steps: u64,
    /// The number of steps without a reward.
    pub unscored: u64,
    /// The number of input lines that were not bundles.
    pub malformed: u64,
}

/// Computes the rewards of a run, bundle by bundle.
#[derive(Debug)]
pub struct RewardRun {
    formula: RewardFormula,
    previous: Option<Bundle>,
    steps: u64,
    unscored: u64,
    malformed: u64,
    /// In millionths, so that the sum does not depend on the order of additions.
    sum: i128,
}

impl RewardRun {
    /// A run without steps.
    #[must_use]
    pub const fn new(formula: RewardFormula) -> Self {
        Self { formula, previous: None, steps: 0, unscored: 0, malformed: 0, sum: 0 }
    }

    /// The step to the next bundle.
    pub fn next(&mut self, mut bundle: Bundle) -> RunStep {
        let reward = recomputed(&bundle, self.previous.as_ref(), &self.formula);
        let step = step(self.steps, &bundle, reward.clone());
        // The next step starts from the state that this one leads to.
        bundle.process_reward = Some(reward);
        self.steps += 1;
        match step.r {
            Some(r) => self.sum += millionths(r),
            None => self.unscored += 1,
        }
        // A fault that is not the caller's is skipped as a starting point.
        if !is_fault(&bundle) {
            self.previous = Some(bundle);
        }
        step
    }

    /// Skips a line that is not a bundle. The next step starts from the last bundle.
    pub const fn skip_malformed(&mut self) {
        self.malformed += 1;
    }

    /// The total so far.
    #[must_use]
    pub fn total(&self) -> RunTotal {
        #[expect(clippy::cast_precision_loss, reason = "a sum of rewards is far below 2^53 millionths")]
        let sum = self.sum as f64 / 1e6;
        RunTotal {
            schema: "lanser.run.v1",
            preset: self.formula.preset,
            weights: FormulaWeights::of(self.formula.preset, &self.formula.weights),
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

/// A step as it is printed.
#[must_use]
pub fn step(t: u64, bundle: &Bundle, reward: ProcessReward) -> RunStep {
    let after = reward.state.diagnostics;
    // A clipped change does not tell the number before.
    let change = reward.components.diag_delta().filter(|change| {
        reward.supplement.is_none()
            && (reward.version != Preset::Guarded || change.get().abs() < MAX_STEP_CHANGE)
    });
    let before = after.zip(change).and_then(|(after, change)| Score::new(after.get() + change.get()));
    RunStep {
        diagnostics: (before, after),
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
