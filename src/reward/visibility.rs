//! Rule 9: where the checker had nothing to see and nothing new appeared, a reward of 0 says nothing: no zero to learn from.

use super::fingerprint::Compared;
use super::saturation::weight;
use crate::model::reward::RewardScope;

/// Whether the checker could see anything of a step.
#[must_use]
pub fn is_visible(before: &RewardScope, after: &RewardScope, compared: &Compared) -> bool {
    weight(before) > 0.0 || compared.new > 0 || !after.owed.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_to_see() {
        let nothing = RewardScope::default();
        assert!(!is_visible(&nothing, &nothing, &Compared::default()));
        assert!(is_visible(&nothing, &nothing, &Compared { new: 1, ..Compared::default() }));
    }
}
