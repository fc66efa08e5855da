//! Rule 7: severities weigh differently, and the change of one step is clipped.

use crate::model::request::Severity;
use crate::model::reward::RewardScope;

/// The most by which a step may change the guarded count.
pub const MOST: f64 = 5.0;

/// What a diagnostic weighs, in tenths, so that sums are exact.
#[must_use]
pub const fn tenths(severity: Severity) -> u32 {
    match severity {
        Severity::Error => 10,
        Severity::Warning => 2,
        Severity::Information | Severity::Hint => 0,
    }
}

/// The guarded count of a scope: what is there and what is owed.
#[must_use]
pub fn weight(scope: &RewardScope) -> f64 {
    let there =
        scope.files.iter().flat_map(|file| &file.prints).map(|print| tenths(print.severity) * print.count);
    let owed = scope.owed.iter().map(|owed| tenths(owed.severity));
    f64::from(there.chain(owed).sum::<u32>()) / 10.0
}

/// A change of the guarded count, clipped.
#[must_use]
pub const fn clipped(change: f64) -> f64 {
    change.clamp(-MOST, MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_worth_no_more_than_the_limit() {
        assert_eq!(clipped(40.0), 5.0);
        assert_eq!(clipped(-40.0), -5.0);
        assert_eq!(clipped(1.2), 1.2);
    }
}
