//! Paths of values in a JSON document: `$.meta.weights[2]`, in the notation of RFC 9535 (JSONPath).
//!
//! Keys that are not plain names are written as JSON strings: `$["a b"]`.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;
use serde_json::value::RawValue;
use serde_path_to_error::Segment;

/// One step from a container to a value in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum JsonPathStep {
    /// A member of an object.
    Key(String),
    /// An item of an array, counted from 0.
    Index(usize),
}

/// The path of a value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JsonPath(Vec<JsonPathStep>);

impl JsonPath {
    /// A path of keys from the root.
    #[must_use]
    pub fn keys(keys: &[&str]) -> Self {
        keys.iter().map(|&key| JsonPathStep::Key(key.to_owned())).collect()
    }

    /// Appends a step to a member.
    #[must_use]
    pub fn key(&self, key: &str) -> Self {
        self.then(JsonPathStep::Key(key.to_owned()))
    }

    /// Appends a step to an item.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        self.then(JsonPathStep::Index(index))
    }

    /// Appends the steps of a path from this value on.
    #[must_use]
    pub fn join(&self, inner: &Self) -> Self {
        self.0.iter().chain(&inner.0).cloned().collect()
    }

    fn then(&self, step: JsonPathStep) -> Self {
        self.0.iter().cloned().chain([step]).collect()
    }

    /// The value at this path.
    #[must_use]
    pub fn value_in<'v>(&self, document: &'v Value) -> Option<&'v Value> {
        self.0.iter().try_fold(document, |value, step| match step {
            JsonPathStep::Key(key) => value.get(key),
            JsonPathStep::Index(index) => value.get(index),
        })
    }

    /// The line and the column (in bytes) of the first byte of the value in a JSON text, both counted from 1; `None` if the
    /// path does not exist.
    #[must_use]
    pub fn position_in(&self, json: &str) -> Option<(usize, usize)> {
        let document: &RawValue = serde_json::from_str(json).ok()?;
        let value = self.0.iter().try_fold(document, |value, step| match step {
            JsonPathStep::Key(key) => {
                serde_json::from_str::<BTreeMap<String, &RawValue>>(value.get()).ok()?.get(key).copied()
            }
            JsonPathStep::Index(index) => {
                serde_json::from_str::<Vec<&RawValue>>(value.get()).ok()?.get(*index).copied()
            }
        })?;
        Some(line_and_column(json.as_bytes(), value.get().as_ptr().addr() - json.as_ptr().addr()))
    }
}

/// The line and the column of an offset, in bytes, both counted from 1.
pub(super) fn line_and_column(bytes: &[u8], offset: usize) -> (usize, usize) {
    let before = &bytes[..offset];
    let line_start = before.iter().rposition(|&byte| byte == b'\n').map_or(0, |newline| newline + 1);
    (1 + before.iter().filter(|&&byte| byte == b'\n').count(), offset - line_start + 1)
}

impl FromIterator<JsonPathStep> for JsonPath {
    fn from_iter<I: IntoIterator<Item = JsonPathStep>>(steps: I) -> Self {
        Self(steps.into_iter().collect())
    }
}

impl From<&serde_path_to_error::Path> for JsonPath {
    fn from(path: &serde_path_to_error::Path) -> Self {
        let steps = path.iter().filter_map(|segment| match segment {
            Segment::Seq { index } => Some(JsonPathStep::Index(*index)),
            Segment::Map { key } | Segment::Enum { variant: key } => Some(JsonPathStep::Key(key.clone())),
            Segment::Unknown => None,
        });
        steps.collect()
    }
}

impl fmt::Display for JsonPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("$")?;
        for step in &self.0 {
            match step {
                JsonPathStep::Key(key) if is_plain(key) => write!(f, ".{key}")?,
                JsonPathStep::Key(key) => write!(f, "[{}]", Value::from(key.as_str()))?,
                JsonPathStep::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

fn is_plain(key: &str) -> bool {
    !key.starts_with(|c: char| c.is_ascii_digit())
        && !key.is_empty()
        && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn notation() {
        let path = JsonPath::keys(&["meta", "a \"b\"", "1", ""]).index(2);
        assert_eq!(path.to_string(), r#"$.meta["a \"b\""]["1"][""][2]"#);
        assert_eq!(JsonPath::default().to_string(), "$");
    }

    #[test]
    fn lines_and_columns() {
        let json = "{\n  \"a\\u0062\": [ true, {\"}\": \"],\"} ],\n \"\": -1e3 }";
        assert_eq!(JsonPath::keys(&["ab"]).position_in(json), Some((2, 14)));
        assert_eq!(JsonPath::keys(&["ab"]).index(1).position_in(json), Some((2, 22)));
        assert_eq!(JsonPath::keys(&["ab"]).index(1).key("}").position_in(json), Some((2, 28)));
        assert_eq!(JsonPath::keys(&[""]).position_in(json), Some((3, 6)));
        for missing in
            [JsonPath::keys(&["c"]), JsonPath::keys(&["ab", "c"]), JsonPath::keys(&["ab"]).index(2)]
        {
            assert_eq!(missing.position_in(json), None, "{missing}");
        }
        assert_eq!(JsonPath::keys(&["a"]).position_in("{}"), None);
        assert_eq!(JsonPath::default().index(0).position_in("[ ]"), None);
    }

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "[\\\\\"{}\\[\\],:a é\n]{0,4}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 20, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[\\\\\"{},:a é]{0,3}", inner, 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    /// Every value in a document, with its path.
    fn walk(value: &Value, path: &JsonPath, visit: &mut impl FnMut(&JsonPath, &Value)) {
        visit(path, value);
        match value {
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    walk(item, &path.index(index), visit);
                }
            }
            Value::Object(members) => {
                for (key, member) in members {
                    walk(member, &path.key(key), visit);
                }
            }
            _ => {}
        }
    }

    proptest! {
        #[test]
        fn what_is_found_at_a_path_is_the_value(document in json(), pretty: bool) {
            let text = if pretty { serde_json::to_string_pretty(&document) } else { serde_json::to_string(&document) }
                .unwrap();
            let mut wrong = Vec::new();
            walk(&document, &JsonPath::default(), &mut |path, value| {
                let (line, column) = path.position_in(&text).expect("the path is in the document");
                let start: usize = text.split_inclusive('\n').take(line - 1).map(str::len).sum();
                let mut rest = serde_json::Deserializer::from_str(&text[start + column - 1..]).into_iter::<Value>();
                let found = rest.next().and_then(Result::ok);
                if found.as_ref() != Some(value) || path.value_in(&document) != Some(value) {
                    wrong.push(path.to_string());
                }
            });
            prop_assert!(wrong.is_empty(), "{wrong:?} in {text}");
        }
    }
}
