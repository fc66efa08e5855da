//! The score of an episode as one flat object of finite numbers: the shape that reward files and trainers take.

use std::collections::BTreeMap;

use super::episode::Episode;
use crate::digest::Score;

/// The numbers of a scored head, by name; `None` if it is not scored. `reward` is the sum of `diag`, `safety`, `confidence`,
/// `tool_error` and `integrity`; the others describe it. A number that is not known is absent, never NaN.
///
/// The Python package has the same names (`lanser.rl.numbers`).
#[must_use]
pub fn numbers(episode: &Episode) -> Option<BTreeMap<&'static str, Score>> {
    let reward = episode.reward.filter(|_| episode.scored)?;
    let parts = &episode.reward_components;
    let mut numbers = BTreeMap::from([("reward", reward)]);
    let mut add = |name, value: Option<Score>| {
        if let Some(value) = value {
            numbers.insert(name, value);
        }
    };
    add("diag", parts.diag);
    add("safety", parts.safety);
    add("confidence", parts.confidence);
    add("tool_error", parts.tool_error);
    add("integrity", parts.integrity);
    if let Some(step) = episode.steps.first() {
        add("diagnostics_before", step.prev);
        add("diagnostics_after", step.cur);
        add("diagnostics_new", count(step.new));
        add("diagnostics_gone", count(step.fixed));
    }
    let gone = episode.gone.unwrap_or_default();
    add("gone_in_place", count(gone.in_place));
    add("gone_replaced", count(gone.replaced));
    add("gone_removed", count(gone.removed));
    add("gone_declared", count(gone.declared));
    add("flags", Score::new(episode.integrity_flags.len() as f64));
    add("visible", count(u32::from(episode.visible)));
    Some(numbers)
}

fn count(count: u32) -> Option<Score> {
    Score::new(count.into())
}
