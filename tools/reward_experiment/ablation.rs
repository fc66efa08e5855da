//! The scores of one edit with more and more of the guards, taken from its episodes.

use serde_json::Value;

/// The scores of one edit.
#[derive(Clone, Copy)]
pub(crate) struct Scores {
    /// The raw formula.
    pub(crate) raw: f64,
    /// The nine rules of the guarded formula alone.
    rules: f64,
    /// With what became of the failing expressions.
    fates: f64,
    /// With the revealed types too.
    guarded: f64,
}

/// What became of an expression, as a reason for which its diagnostic is outstanding. The other reasons are of the nine rules.
const FATES: [&str; 3] = ["code_gone", "declared", "replaced"];

impl Scores {
    pub(crate) const NAMES: [&str; 4] = ["raw", "rules", "+ fates", "+ types"];

    pub(crate) fn all(&self) -> [f64; 4] {
        [self.raw, self.rules, self.fates, self.guarded]
    }

    /// The scores of an edit by its raw and its guarded episode. A missing reward counts as 0.
    pub(crate) fn of(raw: &Value, guarded: &Value) -> Self {
        let number = |value: &Value| value.as_f64().unwrap_or(0.0);
        let is_scored = guarded["scored"] == true && guarded["error"].is_null();
        let is_capped = guarded["integrity"]
            .as_object()
            .is_some_and(|flags| flags.keys().any(|flag| flag != "tests_touched" && flag != "types_erased"));
        let capped = |score: f64| match (is_scored, is_capped) {
            (false, _) => number(&guarded["reward"]),
            (true, true) => score.min(0.0),
            (true, false) => score,
        };
        let outstanding = guarded["outstanding"].as_array().map_or(&[][..], Vec::as_slice);
        let by_fate: f64 = outstanding
            .iter()
            .filter(|one| FATES.contains(&one["reason"].as_str().unwrap_or_default()))
            .map(|one| {
                let weight = if one["severity"] == "error" { 1.0 } else { 0.2 };
                if one["reason"] == "replaced" { weight / 2.0 } else { weight }
            })
            .sum();
        let step = &guarded["steps"][0];
        let change = number(&step["prev"]) - number(&step["cur"]) + by_fate;
        let weight = number(&guarded["weights"]["wD"]);
        Self {
            raw: number(&raw["reward"]),
            rules: capped(weight * change.clamp(-5.0, 5.0)),
            fates: capped(number(&guarded["reward_components"]["diag"])),
            guarded: number(&guarded["reward"]),
        }
    }
}
