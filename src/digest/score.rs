//! The only floating-point type in bundles.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A finite score, weight or reward, rounded to six decimals on construction so that the hash covers what is printed.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct Score(f64);

impl Score {
    /// One.
    pub const ONE: Self = Self(1.0);

    /// Rounds `value` to six decimals; `None` for NaN, infinities and values too large to be exact.
    #[must_use]
    pub fn new(value: f64) -> Option<Self> {
        let rounded = (value * 1e6).round() / 1e6;
        // RFC 8785 prints negative zero as 0, so it is normalized here.
        (rounded.is_finite() && rounded.abs() < 9e9).then_some(Self(rounded + 0.0))
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl Serialize for Score {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.0)
    }
}

impl<'de> Deserialize<'de> for Score {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = f64::deserialize(deserializer)?;
        Self::new(value).ok_or_else(|| serde::de::Error::custom(format!("{value} is out of a score's range")))
    }
}

impl JsonSchema for Score {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Score".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "number", "description": "rounded to 6 decimals" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_finite_numbers_and_six_decimals() {
        assert_eq!(Score::new(f64::NAN), None);
        assert_eq!(Score::new(f64::INFINITY), None);
        assert_eq!(Score::new(1.0 / 3.0).map(Score::get), Some(0.333_333));
        assert!(Score::new(-1e-9).is_some_and(|score| score.get().is_sign_positive()));
    }
}
