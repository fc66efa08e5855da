//! The identity of a symbol, derived from its structure alone: `method:Session.get_adapter:ppd:0f3a…`.
//!
//! The parts are readable, so that an id can be resolved without other information: the kind, the chain of names, the shape
//! of the parameters, and a sketch of the body by which two bodies can be compared. If several definitions of a workspace
//! have the same structure, `:2of3` selects one.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::DocVersion;
use super::name::is_identifier;

/// A symbol by its id: `sym://…`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SymidSpec {
    /// The id.
    pub id: SymbolId,
    /// The version that the id was made from.
    #[serde(rename = "docVersion", default, skip_serializing_if = "Option::is_none")]
    pub doc_version: Option<DocVersion>,
}

/// The identity of a symbol.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SymbolId {
    /// The kind of definition, as in bundles: `method`. Invariant: ASCII letters.
    pub kind: String,
    /// The names from the module down. Invariant: identifiers, at least one.
    pub names: Vec<String>,
    /// One letter per parameter: `p` required, `d` with a default, `a` `*args`, `n` and `m` the same as `p` and `d` but
    /// keyword-only, `k` `**kwargs`.
    pub shape: String,
    /// The sketch of the body.
    pub sketch: Sketch,
    /// The 1-based number of the definition among those with the same structure, and their count.
    pub ordinal: Option<(u32, u32)>,
}

/// A similarity sketch (MinHash): 32 slots of four bits each. The share of equal slots of two sketches estimates the
/// similarity of the two bodies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Sketch(pub u128);

impl Serialize for Sketch {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format!("{:032x}", self.0))
    }
}

impl<'de> Deserialize<'de> for Sketch {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        u128::from_str_radix(&text, 16).map(Self).map_err(serde::de::Error::custom)
    }
}

impl Sketch {
    /// The number of slots.
    pub const SLOTS: u32 = 32;

    /// The estimated similarity of two bodies, from 0 to 1, corrected for chance agreement.
    #[must_use]
    pub fn similarity(self, other: Self) -> f64 {
        let differing = self.0 ^ other.0;
        let equal = (0..Self::SLOTS).filter(|slot| (differing >> (slot * 4)) & 0xf == 0).count();
        let share = f64::from(u32::try_from(equal).unwrap_or(0)) / f64::from(Self::SLOTS);
        ((share - 1.0 / 16.0) / (15.0 / 16.0)).max(0.0)
    }
}

impl SymbolId {
    /// Reads the printed form.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(':');
        let kind = parts.next().filter(|kind| is_word(kind))?.to_owned();
        let names: Vec<String> = parts.next()?.split('.').map(str::to_owned).collect();
        let shape = parts.next().filter(|shape| shape.bytes().all(|c| b"pdanmk".contains(&c)))?.to_owned();
        let sketch = parts.next().filter(|hex| hex.len() == 32 && hex.bytes().all(is_hex))?;
        let sketch = Sketch(u128::from_str_radix(sketch, 16).ok()?);
        let ordinal = match parts.next() {
            None => None,
            Some(text) => {
                let (which, count) = text.split_once("of")?;
                let number = |text: &str| text.parse::<u32>().ok().filter(|n| n.to_string() == text);
                Some((number(which)?, number(count)?))
            }
        };
        let valid = names.iter().all(|name| is_identifier(name)) && parts.next().is_none();
        let ordered = ordinal.is_none_or(|(which, count)| 1 <= which && which <= count && count >= 2);
        (valid && ordered).then_some(Self { kind, names, shape, sketch, ordinal })
    }
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|c| c.is_ascii_alphabetic())
}

const fn is_hex(c: u8) -> bool {
    c.is_ascii_digit() || matches!(c, b'a'..=b'f')
}

impl fmt::Display for SymbolId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}:{:032x}", self.kind, self.names.join("."), self.shape, self.sketch.0)?;
        self.ordinal.map_or(Ok(()), |(which, count)| write!(f, ":{which}of{count}"))
    }
}

impl Serialize for SymbolId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for SymbolId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| {
            serde::de::Error::custom(format!("{text:?} is not a symbol id as printed in bundles"))
        })
    }
}

impl JsonSchema for SymbolId {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "SymbolId".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "description": "kind, names, parameter shape and body sketch: method:Session.get_adapter:ppd:<32 digits>, and the number among several with the same structure: :2of3",
            "pattern": "^[A-Za-z]+:[^:]+:[pdanmk]*:[0-9a-f]{32}(:[1-9][0-9]*of([2-9]|[1-9][0-9]+))?$"
        })
    }
}
