//! Rule 9: a reward of 0 is not a training signal where the checker saw no diagnostic before and none is new.

use super::fingerprint::ScopeComparison;
use super::saturation::weight;
use crate::model::reward::RewardScope;

/// Whether the checker could see any difference between two states.
#[must_use]
pub fn is_visible(before: &RewardScope, after: &RewardScope, compared: &ScopeComparison) -> bool {
    weight(before) > 0.0 || compared.new > 0 || !after.outstanding.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_without_diagnostics_is_invisible() {
        let nothing = RewardScope::default();
        assert!(!is_visible(&nothing, &nothing, &ScopeComparison::default()));
        assert!(is_visible(&nothing, &nothing, &ScopeComparison { new: 1, ..ScopeComparison::default() }));
    }
}
