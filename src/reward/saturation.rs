//! Rule 7: severities have different weights, and the change of one step is clipped.

use crate::model::request::Severity;
use crate::model::reward::{OutstandingReason, RewardScope};

/// The largest change of the guarded count in one step.
pub const MAX_STEP_CHANGE: f64 = 5.0;

/// The weight of a diagnostic in tenths, so that sums are exact.
#[must_use]
pub const fn tenths(severity: Severity) -> u32 {
    match severity {
        Severity::Error => 10,
        Severity::Warning => 2,
        Severity::Information | Severity::Hint => 0,
    }
}

/// The guarded count of a scope: its diagnostics plus the outstanding ones. A diagnostic whose expression was replaced counts
/// by half.
#[must_use]
pub fn weight(scope: &RewardScope) -> f64 {
    let there = scope
        .files
        .iter()
        .flat_map(|file| &file.fingerprints)
        .map(|print| tenths(print.severity) * print.count);
    let outstanding = scope.outstanding.iter().map(|one| match one.why {
        OutstandingReason::Replaced => tenths(one.severity) / 2,
        _ => tenths(one.severity),
    });
    f64::from(there.chain(outstanding).sum::<u32>()) / 10.0
}

/// A change of the guarded count, clipped.
#[must_use]
pub const fn clipped(change: f64) -> f64 {
    change.clamp(-MAX_STEP_CHANGE, MAX_STEP_CHANGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_change_is_clipped_to_the_limit() {
        assert_eq!(clipped(40.0), 5.0);
        assert_eq!(clipped(-40.0), -5.0);
        assert_eq!(clipped(1.2), 1.2);
    }
}
