//! Paths of values in a JSON text, and their line and column.

use std::fmt;

use jsonschema::paths::{Location, LocationSegment};

/// One step from a container to a value in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum JsonPathStep {
    /// A member of an object.
    Key(String),
    /// An item of an array, counted from 0.
    Index(usize),
}

/// The path of a value, formatted as in `digest`: `$.facts.references[2]`, `$["a b"]`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct JsonPath(Vec<JsonPathStep>);

impl JsonPath {
    /// Converts the path of a validator.
    pub(super) fn of(location: &Location) -> Self {
        Self(
            location
                .segments()
                .map(|segment| match segment {
                    LocationSegment::Property(key) => JsonPathStep::Key(key.into_owned()),
                    LocationSegment::Index(index) => JsonPathStep::Index(index),
                })
                .collect(),
        )
    }

    /// A path of keys from the root.
    pub(super) fn keys(keys: &[&str]) -> Self {
        Self(keys.iter().map(|&key| JsonPathStep::Key(key.to_owned())).collect())
    }

    /// Appends a step to a member.
    pub(super) fn key(&self, key: &str) -> Self {
        self.then(JsonPathStep::Key(key.to_owned()))
    }

    /// Appends a step to an item.
    pub(super) fn index(&self, index: usize) -> Self {
        self.then(JsonPathStep::Index(index))
    }

    fn then(&self, step: JsonPathStep) -> Self {
        let mut steps = self.0.clone();
        steps.push(step);
        Self(steps)
    }

    /// The line and the column (in bytes) of the first byte of the value, both counted from 1; `None` if the path does
    /// not exist. `json` must be JSON.
    pub(super) fn find(&self, json: &str) -> Option<(usize, usize)> {
        let mut scanner = JsonScanner { bytes: json.as_bytes(), at: 0 };
        scanner.skip_space();
        for step in &self.0 {
            scanner.enter(step)?;
        }
        let before = &json.as_bytes()[..scanner.at];
        let line_start = before.iter().rposition(|&byte| byte == b'\n').map_or(0, |newline| newline + 1);
        let line = 1 + before.iter().filter(|&&byte| byte == b'\n').count();
        Some((line, scanner.at - line_start + 1))
    }
}

impl fmt::Display for JsonPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("$")?;
        for step in &self.0 {
            match step {
                JsonPathStep::Key(key) if is_plain(key) => write!(f, ".{key}")?,
                JsonPathStep::Key(key) => write!(f, "[{}]", serde_json::Value::from(key.as_str()))?,
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

/// Scans a text that is known to be JSON.
struct JsonScanner<'t> {
    bytes: &'t [u8],
    at: usize,
}

impl JsonScanner<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// Moves from the first byte of a container to the first byte of the value one step inside.
    fn enter(&mut self, step: &JsonPathStep) -> Option<()> {
        let container = self.peek()?;
        self.at += 1;
        let mut index = 0;
        loop {
            self.skip_space();
            let found = match (container, step) {
                (b'[', JsonPathStep::Index(wanted)) => index == *wanted,
                (b'{', JsonPathStep::Key(wanted)) => {
                    let start = self.at;
                    self.skip_string()?;
                    let key: String = serde_json::from_slice(&self.bytes[start..self.at]).ok()?;
                    self.skip_space();
                    self.at += 1;
                    self.skip_space();
                    key == *wanted
                }
                _ => return None,
            };
            if matches!(self.peek()?, b']' | b'}') {
                return None;
            }
            if found {
                return Some(());
            }
            self.skip_value()?;
            self.skip_space();
            if self.peek()? != b',' {
                return None;
            }
            self.at += 1;
            index += 1;
        }
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// Skips a value.
    fn skip_value(&mut self) -> Option<()> {
        let mut depth = 0_usize;
        loop {
            match self.peek()? {
                b'"' => self.skip_string()?,
                b'[' | b'{' => {
                    depth += 1;
                    self.at += 1;
                }
                b']' | b'}' => {
                    depth -= 1;
                    self.at += 1;
                }
                // Separators between the values of a container; at depth 0 the value has ended before them.
                b',' | b':' | b' ' | b'\t' | b'\n' | b'\r' => self.at += 1,
                _ => {
                    while self.peek().is_some_and(|byte| !b",:]} \t\n\r".contains(&byte)) {
                        self.at += 1;
                    }
                }
            }
            if depth == 0 {
                return Some(());
            }
        }
    }

    /// Skips a string with its quotes.
    fn skip_string(&mut self) -> Option<()> {
        if self.peek()? != b'"' {
            return None;
        }
        self.at += 1;
        loop {
            match self.peek()? {
                b'"' => {
                    self.at += 1;
                    return Some(());
                }
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    #[test]
    fn notation() {
        let path = JsonPath::keys(&["meta", "a \"b\"", "1"]).index(2);
        assert_eq!(path.to_string(), r#"$.meta["a \"b\""]["1"][2]"#);
        assert_eq!(JsonPath::default().to_string(), "$");
    }

    #[test]
    fn lines_and_columns() {
        let json = "{\n  \"a\\u0062\": [ true, {\"}\": \"],\"} ],\n \"\": -1e3 }";
        assert_eq!(JsonPath::keys(&["ab"]).find(json), Some((2, 14)));
        assert_eq!(JsonPath::keys(&["ab"]).index(1).find(json), Some((2, 22)));
        assert_eq!(JsonPath::keys(&["ab"]).index(1).key("}").find(json), Some((2, 28)));
        assert_eq!(JsonPath::keys(&[""]).find(json), Some((3, 6)));
        for missing in
            [JsonPath::keys(&["c"]), JsonPath::keys(&["ab", "c"]), JsonPath::keys(&["ab"]).index(2)]
        {
            assert_eq!(missing.find(json), None, "{missing}");
        }
        assert_eq!(JsonPath::keys(&["a"]).find("{}"), None);
        assert_eq!(JsonPath::default().index(0).find("[ ]"), None);
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
                let (line, column) = path.find(&text).expect("the path is in the document");
                let start: usize = text.split_inclusive('\n').take(line - 1).map(str::len).sum();
                let mut rest = serde_json::Deserializer::from_str(&text[start + column - 1..]).into_iter::<Value>();
                if rest.next().and_then(Result::ok).as_ref() != Some(value) {
                    wrong.push(path.to_string());
                }
            });
            prop_assert!(wrong.is_empty(), "{wrong:?} in {text}");
        }
    }
}
