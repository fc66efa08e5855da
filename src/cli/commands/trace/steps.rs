//! The recorded steps of a trace: recomputes their rewards in the order in which they were printed.

use std::collections::BTreeMap;
use std::io;

use crate::model::bundle::Bundle;
use crate::model::reward::{FormulaWeights, ProcessReward};
use crate::model::trace::{RecordedStep, StepOrigin};
use crate::path::AbsPath;
use crate::reward::{RewardFormula, default_weights, recomputed, supplemented, unmeasured};
use crate::trace::reader::{StepLink, step_links};

/// The steps of a trace, and the replayed bundles that they are about.
#[derive(Default)]
pub(super) struct Steps {
    /// By operation, the last step that needs its bundle.
    last_use: BTreeMap<u64, u64>,
    /// By operation, the step that leads to its bundle.
    step_of: BTreeMap<u64, u64>,
    held: BTreeMap<u64, Bundle>,
}

/// A bundle with the reward of a step.
pub(super) struct ReplayedStep {
    /// The bundle; its reward is the one of the step.
    pub(super) bundle: Bundle,
    /// The bundle that the step starts from.
    previous: Option<Bundle>,
}

impl Steps {
    /// Finds the steps of a trace.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub(super) fn of(path: &AbsPath) -> io::Result<Self> {
        let mut steps = Self::default();
        for StepLink { step, bundle, previous } in step_links(path)? {
            steps.step_of.insert(bundle, step);
            steps.last_use.insert(bundle, step);
            steps.last_use.extend(previous.map(|previous| (previous, step)));
        }
        Ok(steps)
    }

    /// Whether the bundle of an operation is printed when its step is reached.
    pub(super) fn is_stepped(&self, op: u64) -> bool {
        self.step_of.contains_key(&op)
    }

    /// Whether a step needs the bundle of an operation.
    pub(super) fn needs(&self, op: u64) -> bool {
        self.last_use.contains_key(&op)
    }

    /// Keeps a bundle for the steps that need it.
    pub(super) fn hold(&mut self, op: u64, bundle: Bundle) {
        self.held.insert(op, bundle);
    }

    /// Recomputes a step; `None` if its bundle is not held.
    pub(super) fn take(&mut self, op: u64, recorded: &RecordedStep) -> Option<ReplayedStep> {
        let previous = match &recorded.previous {
            Some(StepOrigin::Op(op)) => Some(self.held.get(op)?.clone()),
            Some(StepOrigin::Bundle(bundle)) => Some((**bundle).clone()),
            None => None,
        };
        let bundle = self.held.get_mut(&recorded.bundle)?;
        bundle.process_reward =
            Some(made(bundle, previous.as_ref(), recorded, &formula_of(&recorded.reward)));
        let bundle = bundle.clone();
        let last_use = &self.last_use;
        self.held.retain(|held, _| last_use.get(held).is_some_and(|last| *last > op));
        Some(ReplayedStep { bundle, previous })
    }
}

impl ReplayedStep {
    /// Sets the reward by another formula.
    pub(super) fn reward_by(&mut self, recorded: &RecordedStep, formula: &RewardFormula) {
        let reward = made(&self.bundle, self.previous.as_ref(), recorded, formula);
        self.bundle.process_reward = Some(reward);
    }
}

/// The reward of a step, with what was measured for it when it was recorded.
fn made(
    bundle: &Bundle,
    previous: Option<&Bundle>,
    recorded: &RecordedStep,
    formula: &RewardFormula,
) -> ProcessReward {
    match (previous, &recorded.reward.supplement, &recorded.unmeasured) {
        (Some(previous), Some(more), _) => supplemented(bundle, previous, more, formula),
        (Some(previous), None, Some(why)) => unmeasured(bundle, previous, why, formula),
        (previous, _, _) => recomputed(bundle, previous, formula),
    }
}

/// The formula that a reward was computed by.
fn formula_of(reward: &ProcessReward) -> RewardFormula {
    let preset = reward.version;
    let weights = match reward.weights {
        FormulaWeights::Csf(weights) => weights,
        FormulaWeights::Pr(weights) => crate::model::reward::Weights {
            diagnostics: weights.alpha,
            safety: weights.beta,
            confidence: weights.gamma,
            ..default_weights(preset)
        },
    };
    RewardFormula { preset, weights }
}
