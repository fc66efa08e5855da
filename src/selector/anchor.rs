//! Content anchors: a snippet of a file, and a hash of the snippet with its context.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha1::{Digest as _, Sha1};

use super::DocVersion;
use crate::path::DocUri;

/// The default number of characters of context on each side that are hashed.
pub const DEFAULT_CONTEXT: u32 = 24;

/// A snippet of a file: `anchor://src/app.py#"def%20route(self,"?hash=sha1:…`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AnchorSpec {
    /// The file that contained it.
    pub uri: DocUri,
    /// The exact text; not empty.
    #[serde(deserialize_with = "not_empty")]
    #[schemars(length(min = 1))]
    pub snippet: String,
    /// The number of characters before and after it that `hash` covers.
    #[serde(default = "default_context")]
    pub ctx: u32,
    /// The hash of the snippet with its context, see [`ContextHash::of`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<ContextHash>,
    /// The version that the snippet was taken from.
    #[serde(rename = "docVersion", default, skip_serializing_if = "Option::is_none")]
    pub doc_version: Option<DocVersion>,
}

const fn default_context() -> u32 {
    DEFAULT_CONTEXT
}

fn not_empty<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    if text.is_empty() { Err(serde::de::Error::custom("a snippet must not be empty")) } else { Ok(text) }
}

/// The SHA-1 of a snippet with its context, printed `sha1:` and 40 hexadecimal digits. A checksum, not a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ContextHash([u8; 20]);

impl ContextHash {
    /// The hash of `text[span]` together with up to `ctx` characters (Unicode scalar values) before it and after it:
    /// SHA-1 over the UTF-8 of that part of the text. `None` if the span is not valid in the text.
    #[must_use]
    pub fn of(text: &str, span: std::ops::Range<usize>, ctx: u32) -> Option<Self> {
        let (before, after) = (text.get(..span.start)?, text.get(span.end..)?);
        let ctx = usize::try_from(ctx).unwrap_or(usize::MAX);
        let width =
            |chars: &mut dyn Iterator<Item = char>| chars.take(ctx).map(char::len_utf8).sum::<usize>();
        let start = span.start - width(&mut before.chars().rev());
        let end = span.end + width(&mut after.chars());
        Some(Self(Sha1::digest(text.get(start..end)?).into()))
    }

    /// Reads the printed form.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let hex = text.strip_prefix("sha1:").filter(|hex| hex.len() == 40 && hex.is_ascii())?;
        let mut bytes = [0; 20];
        for (byte, pair) in bytes.iter_mut().zip(hex.as_bytes().chunks(2)) {
            let digit = |c: u8| char::from(c).to_digit(16).filter(|_| !c.is_ascii_uppercase());
            *byte = u8::try_from(digit(pair[0])? * 16 + digit(pair[1])?).ok()?;
        }
        Some(Self(bytes))
    }
}

impl fmt::Display for ContextHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha1:")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl Serialize for ContextHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ContextHash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom(format!("{text:?} is not a sha1: hash")))
    }
}

impl JsonSchema for ContextHash {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ContextHash".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": "^sha1:[0-9a-f]{40}$" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_covers_the_snippet_and_its_context() {
        let text = "aé😀 snip é😀b";
        let at = text.find("snip").unwrap();
        let whole = ContextHash::of(text, at..at + 4, 99).unwrap();
        assert_eq!(whole.to_string(), "sha1:f64ee003e6f8431d59d5c5c4abc860255cb8d82a");
        let near = ContextHash::of(text, at..at + 4, 2).unwrap();
        assert_eq!(near.to_string(), "sha1:60ef4c88ec38ac44b250eca2ba7eb763ab903efe");
        assert_eq!(ContextHash::parse(&near.to_string()), Some(near));
        assert_eq!(ContextHash::of(text, 2..4, 2), None);
        assert_eq!(ContextHash::parse("sha1:00"), None);
    }
}
