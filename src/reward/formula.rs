//! The reward formulas: from two states to a number.
//!
//! `rl-csf-v1` is a difference of potentials, γΦ' − Φ − wE·E with Φ = −wD·D + wS·S + wA·A. With γ = 1 the rewards of a run add
//! up to the difference between its last and first potential, minus its errors. For γ < 1 the sign is not guaranteed: doing
//! nothing in a broken workspace then pays (γ − 1)Φ > 0.

use crate::digest::Score;
use crate::model::reward::{Components, CsfComponents, PrComponents, Preset, Weights};

/// A state as numbers; `None` where a number is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct StateValues {
    /// The weighted or plain number of diagnostics.
    pub diagnostics: Option<f64>,
    /// The share of safety checks that passed.
    pub safety: f64,
    /// The confidence of the resolved target.
    pub confidence: f64,
    /// 1 if the caller made an error, 0 if not; `None` when the fault is not the caller's.
    pub error: Option<f64>,
}

/// The reward of one step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StepReward {
    /// The reward; `None` when a component with nonzero weight is unknown.
    pub r: Option<Score>,
    /// Its components.
    pub components: Components,
}

/// The default weights of a formula.
#[must_use]
pub fn default_weights(preset: Preset) -> Weights {
    let score = |value: f64| Score::new(value).unwrap_or_default();
    Weights {
        diagnostics: score(0.5),
        safety: score(0.4),
        confidence: score(0.1),
        error: score(if preset == Preset::Pr { 0.0 } else { 0.5 }),
        gamma: Score::ONE,
    }
}

/// The reward of the step from one state to another.
#[must_use]
pub fn step(preset: Preset, weights: &Weights, previous: &StateValues, next: &StateValues) -> StepReward {
    let diagnostics = previous.diagnostics.zip(next.diagnostics).map(|(before, after)| before - after);
    match preset {
        Preset::RlCsf | Preset::Guarded => potential_difference(weights, previous, next, diagnostics),
        Preset::Pr => pr_formula(weights, next, diagnostics),
    }
}

fn potential_difference(
    weights: &Weights,
    previous: &StateValues,
    next: &StateValues,
    diagnostics: Option<f64>,
) -> StepReward {
    let [diag, safe, sure, error, gamma] = numbers(weights);
    let potential =
        |state: &StateValues, count: f64| safe.mul_add(state.safety, sure * state.confidence) - diag * count;
    // An unknown number does not matter if its weight is 0.
    let counts = match previous.diagnostics.zip(next.diagnostics) {
        None if diag == 0.0 => Some((0.0, 0.0)),
        counts => counts,
    };
    let r = counts.zip(next.error).map(|((before, after), failed)| {
        let (old, new) = (potential(previous, before), potential(next, after));
        gamma.mul_add(new, -old) - error * failed
    });
    let components = CsfComponents {
        diag_delta: diagnostics.and_then(Score::new),
        safety_delta: Score::new(next.safety - previous.safety),
        confidence_delta: Score::new(next.confidence - previous.confidence),
        tool_error: next.error.and_then(Score::new),
        gone: None,
    };
    StepReward { r: r.and_then(Score::new), components: Components::Csf(components) }
}

/// The formula of the first paper: safety is all or nothing, and remaining ambiguity costs the same whatever it was before.
fn pr_formula(weights: &Weights, next: &StateValues, diagnostics: Option<f64>) -> StepReward {
    let [diag, safe, sure, ..] = numbers(weights);
    let safety = if next.safety >= 1.0 { 1.0 } else { 0.0 };
    let ambiguity = 1.0 - next.confidence;
    let fixed = if diag == 0.0 { diagnostics.or(Some(0.0)) } else { diagnostics };
    let r = fixed.zip(next.error).map(|(fixed, _)| diag * fixed + safe * safety - sure * ambiguity);
    let components = PrComponents {
        diag_delta: diagnostics.and_then(Score::new),
        safety: Score::new(safety),
        ambiguity_penalty: Score::new(ambiguity),
    };
    StepReward { r: r.and_then(Score::new), components: Components::Pr(components) }
}

const fn numbers(weights: &Weights) -> [f64; 5] {
    let Weights { diagnostics, safety, confidence, error, gamma } = weights;
    [diagnostics.get(), safety.get(), confidence.get(), error.get(), gamma.get()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn state(diagnostics: f64, safety: f64, confidence: f64, error: f64) -> StateValues {
        StateValues { diagnostics: Some(diagnostics), safety, confidence, error: Some(error) }
    }

    fn r(preset: Preset, previous: &StateValues, next: &StateValues) -> f64 {
        step(preset, &default_weights(preset), previous, next).r.unwrap().get()
    }

    #[derive(serde::Deserialize)]
    struct WorkedExample {
        name: String,
        preset: String,
        previous: [f64; 4],
        next: [f64; 4],
        r: f64,
    }

    /// The worked examples from the papers.
    #[test]
    fn worked_examples() {
        let text = include_str!("../../fixtures/reward/worked.json");
        let all: Vec<WorkedExample> = serde_json::from_str(text).unwrap();
        assert_eq!(all.len(), 4);
        for example in all {
            let of = |[d, s, a, e]: [f64; 4]| state(d, s, a, e);
            let preset = Preset::parse(&example.preset).unwrap();
            let actual = r(preset, &of(example.previous), &of(example.next));
            assert!((actual - example.r).abs() < 1e-12, "{}: {actual}", example.name);
        }
    }

    #[test]
    fn an_unknown_number_matters_only_with_a_weight() {
        let unknown = StateValues { diagnostics: None, ..state(0.0, 0.0, 0.5, 0.0) };
        let weights = default_weights(Preset::RlCsf);
        assert_eq!(step(Preset::RlCsf, &weights, &unknown, &state(1.0, 0.0, 0.5, 0.0)).r, None);
        let free = Weights { diagnostics: Score::default(), ..weights };
        assert_eq!(step(Preset::RlCsf, &free, &unknown, &state(1.0, 0.0, 0.5, 0.0)).r, Score::new(0.0));
        let fault = StateValues { error: None, ..state(1.0, 0.0, 0.0, 0.0) };
        assert_eq!(step(Preset::RlCsf, &free, &unknown, &fault).r, None);
    }

    #[test]
    fn with_a_discount_doing_nothing_in_a_broken_workspace_pays() {
        let weights = Weights { gamma: Score::new(0.9).unwrap(), ..default_weights(Preset::RlCsf) };
        let broken = state(10.0, 0.0, 0.0, 0.0);
        assert_eq!(step(Preset::RlCsf, &weights, &broken, &broken).r, Score::new(0.5));
    }

    fn any_state() -> impl Strategy<Value = StateValues> {
        (0_u16..5000, 0_u8..=20, 0_u32..=1_000_000).prop_map(|(count, safe, sure)| {
            state(f64::from(count) / 5.0, f64::from(safe) / 20.0, f64::from(sure) / 1e6, 0.0)
        })
    }

    fn any_weights() -> impl Strategy<Value = Weights> {
        [0_u16..3000, 0..3000, 0..3000, 0..3000].prop_map(|[diagnostics, safety, confidence, error]| {
            let score = |weight: u16| Score::new(f64::from(weight) / 1000.0).unwrap();
            Weights {
                diagnostics: score(diagnostics),
                safety: score(safety),
                confidence: score(confidence),
                error: score(error),
                gamma: Score::ONE,
            }
        })
    }

    proptest! {
        #[test]
        fn a_run_telescopes(states in prop::collection::vec(any_state(), 2..30), weights in any_weights()) {
            let one = |a: &StateValues, b: &StateValues| step(Preset::RlCsf, &weights, a, b).r.unwrap().get();
            let sum: f64 = states.windows(2).map(|pair| one(&pair[0], &pair[1])).sum();
            let whole = one(&states[0], states.last().unwrap());
            prop_assert!((sum - whole).abs() < 1e-5, "{sum} {whole}");
            // Returning to the first state makes the total 0.
            let back = one(states.last().unwrap(), &states[0]);
            prop_assert!((sum + back).abs() < 1e-5);
        }

        #[test]
        fn improving_every_component_is_never_punished(a in any_state(), b in any_state(), weights in any_weights()) {
            let pick = |f: fn(f64, f64) -> f64, g: fn(f64, f64) -> f64| {
                let [x, y] = [a, b].map(|state| state.diagnostics.unwrap_or_default());
                state(f(x, y), g(a.safety, b.safety), g(a.confidence, b.confidence), 0.0)
            };
            let (worse, better) = (pick(f64::max, f64::min), pick(f64::min, f64::max));
            prop_assert!(step(Preset::RlCsf, &weights, &worse, &better).r.unwrap().get() >= 0.0);
            prop_assert!(step(Preset::RlCsf, &weights, &better, &worse).r.unwrap().get() <= 0.0);
        }

        #[test]
        fn an_error_costs_its_weight(a in any_state(), weights in any_weights()) {
            let failed = StateValues { error: Some(1.0), ..a };
            let r = step(Preset::RlCsf, &weights, &a, &failed).r.unwrap().get();
            prop_assert!((r + weights.error.get()).abs() < 1e-6);
        }
    }
}
