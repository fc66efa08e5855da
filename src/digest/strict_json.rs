//! Strict parsing of JSON input: I-JSON (RFC 7493), or an error with its position.
//!
//! `serde_json` keeps the last of two members with one key, rounds integers that a double cannot represent, and in
//! members that a type ignores it accepts lone surrogates and numbers outside of the range of a double. Two parsers
//! could then read two different documents from one text. A first pass over the text, independent of types, rejects
//! these; `serde_json` then checks the grammar and the types.
//!
//! Not supported, by intent: comments, trailing commas, a byte order mark, and streams (a line of a trace or of a batch
//! is a slice).

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::error::Category;

use super::json_path::{JsonPath, JsonPathStep, line_and_column};

/// The largest integer that a double distinguishes from its neighbors: 2^53 - 1 (RFC 7493, section 2.2).
pub const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;

/// The maximum nesting depth of arrays and objects: what `serde_json` can read back.
pub const MAX_DEPTH: usize = 127;

/// The longest message about one part of a document.
const MAX_MESSAGE_BYTES: usize = 480;

/// Why a text was rejected, and where in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path} (line {line}, column {column}): {fault}")]
pub struct StrictJsonError {
    /// The path of the invalid value, as in `$.meta.weights[2]`.
    pub path: JsonPath,
    /// The line, counted from 1.
    pub line: usize,
    /// The column in bytes, counted from 1.
    pub column: usize,
    /// What is wrong there.
    pub fault: JsonFault,
}

/// Why a text was rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JsonFault {
    /// A byte order mark, which RFC 8259 forbids.
    #[error("the text begins with a byte order mark")]
    ByteOrderMark,
    /// Bytes that are not UTF-8.
    #[error("not UTF-8")]
    NotUtf8,
    /// A key that occurs twice in one object, after unescaping.
    #[error("the key {0:?} occurs twice")]
    DuplicateKey(String),
    /// An integer that a double cannot represent exactly.
    #[error("the integer {0} is outside of ±(2^53 - 1)")]
    IntegerOutOfRange(String),
    /// A number outside of the range of a double.
    #[error("the number {0} is outside of the range of a double")]
    NumberOutOfRange(String),
    /// Arrays and objects nested more than [`MAX_DEPTH`] levels deep.
    #[error("arrays and objects are nested more than {MAX_DEPTH} levels deep")]
    TooDeep,
    /// Not JSON; the parser's message.
    #[error("{0}")]
    Syntax(String),
    /// JSON, but not of the expected type; the type's message.
    #[error("{0}")]
    Shape(String),
}

/// Parses all of `bytes` as a [`serde_json::Value`] or another type.
///
/// # Errors
/// See [`JsonFault`].
pub fn from_slice<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, StrictJsonError> {
    if bytes.starts_with(b"\xef\xbb\xbf") {
        return Err(StrictJsonError::at(bytes, 0, JsonPath::default(), JsonFault::ByteOrderMark));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        StrictJsonError::at(bytes, error.valid_up_to(), JsonPath::default(), JsonFault::NotUtf8)
    })?;
    audit(text)?;

    let mut json = serde_json::Deserializer::from_str(text);
    let value = serde_path_to_error::deserialize(&mut json)
        .map_err(|error| StrictJsonError::of_serde(error.path().into(), error.inner()))?;
    json.end().map_err(|error| StrictJsonError::of_serde(JsonPath::default(), &error))?;
    Ok(value)
}

/// Reads a value, which [`from_slice`] returned, as another type.
///
/// # Errors
/// The path of the part that the type rejects, and the type's message.
pub fn from_value<T: DeserializeOwned>(value: &Value) -> Result<T, (JsonPath, String)> {
    serde_path_to_error::deserialize(value).map_err(|error| (error.path().into(), message(error.inner())))
}

/// A container that the audit is inside of.
enum OpenContainer<'t> {
    /// With the index of the current item.
    Array(usize),
    /// With the keys so far and, unless a key comes next, the current one.
    Object(BTreeSet<Cow<'t, str>>, Option<Cow<'t, str>>),
}

/// Finds what `serde_json` accepts. It is not a parser: it may return nothing for a text that is not JSON.
pub(super) fn audit(text: &str) -> Result<(), StrictJsonError> {
    let bytes = text.as_bytes();
    let mut open: Vec<OpenContainer<'_>> = Vec::new();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let start = at;
        let found = match byte {
            b'"' => {
                let Some(end) = string_end(bytes, start) else { return Ok(()) };
                at = end;
                string(&text[start..end], &mut open)
            }
            b'-' | b'0'..=b'9' => {
                at = number_end(bytes, start);
                number(&text[start..at])
            }
            _ => {
                at += 1;
                structure(byte, &mut open)
            }
        };
        found.map_err(|fault| {
            let steps = open.iter().filter_map(|container| match container {
                OpenContainer::Array(index) => Some(JsonPathStep::Index(*index)),
                OpenContainer::Object(_, key) => Some(JsonPathStep::Key(key.as_deref()?.to_owned())),
            });
            StrictJsonError::at(bytes, start, steps.collect(), fault)
        })?;
    }
    Ok(())
}

fn structure(byte: u8, open: &mut Vec<OpenContainer<'_>>) -> Result<(), JsonFault> {
    match byte {
        b'[' | b'{' if open.len() == MAX_DEPTH => return Err(JsonFault::TooDeep),
        b'[' => open.push(OpenContainer::Array(0)),
        b'{' => open.push(OpenContainer::Object(BTreeSet::new(), None)),
        b']' | b'}' => drop(open.pop()),
        b',' => match open.last_mut() {
            Some(OpenContainer::Array(index)) => *index += 1,
            Some(OpenContainer::Object(_, key)) => *key = None,
            None => (),
        },
        _ => (),
    }
    Ok(())
}

/// Checks a string with its quotes, which is a key if the container expects one.
fn string<'t>(literal: &'t str, open: &mut [OpenContainer<'t>]) -> Result<(), JsonFault> {
    let content = if literal.contains('\\') {
        // A lone surrogate is an error here, even in a string that the type ignores.
        Cow::Owned(serde_json::from_str(literal).map_err(|error| JsonFault::Syntax(message(&error)))?)
    } else {
        Cow::Borrowed(&literal[1..literal.len() - 1])
    };
    if let Some(OpenContainer::Object(seen, key @ None)) = open.last_mut() {
        if !seen.insert(content.clone()) {
            return Err(JsonFault::DuplicateKey(content.into_owned()));
        }
        *key = Some(content);
    }
    Ok(())
}

fn number(literal: &str) -> Result<(), JsonFault> {
    let digits = literal.strip_prefix('-').unwrap_or(literal);
    if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        match digits.parse::<u64>() {
            Ok(n) if n <= MAX_SAFE_INTEGER => Ok(()),
            _ => Err(JsonFault::IntegerOutOfRange(literal.to_owned())),
        }
    } else {
        match literal.parse::<f64>() {
            Ok(n) if n.is_infinite() => Err(JsonFault::NumberOutOfRange(literal.to_owned())),
            _ => Ok(()),
        }
    }
}

/// The index after the closing quote of the string that opens at `start`.
fn string_end(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        match bytes.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

fn number_end(bytes: &[u8], start: usize) -> usize {
    let inside = |byte: &u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
    start + bytes[start..].iter().take_while(|byte| inside(byte)).count()
}

impl StrictJsonError {
    fn at(bytes: &[u8], offset: usize, path: JsonPath, fault: JsonFault) -> Self {
        let (line, column) = line_and_column(bytes, offset);
        Self { path, line, column, fault }
    }

    fn of_serde(path: JsonPath, error: &serde_json::Error) -> Self {
        let fault = match error.classify() {
            Category::Data => JsonFault::Shape(message(error)),
            Category::Io | Category::Syntax | Category::Eof => JsonFault::Syntax(message(error)),
        };
        // An error about the whole document is found after reading it, and has no position (0, 0).
        Self { path, line: error.line().max(1), column: error.column().max(1), fault }
    }
}

/// The message of a `serde_json` error, without the position that it appends.
fn message(error: &serde_json::Error) -> String {
    let mut message = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    if message.ends_with(&position) {
        message.truncate(message.len() - position.len());
    }
    // A text that begins with the first letter of `null`, `true` or `false` and is none of them.
    if message == "expected ident" {
        "expected `null`, `true`, `false`, a number or a string".clone_into(&mut message);
    }
    // The numbers in requests are counts, and callers do not know what a `u32` is.
    for name in ["u8", "u16", "u32", "u64", "usize"] {
        if let Some(before) = message.strip_suffix(&format!("expected {name}")) {
            message = format!("{before}expected an integer from 0");
            break;
        }
    }
    if let Some(before) = message.strip_suffix("expected string or map") {
        message = format!("{before}expected a string");
    }
    // Neither do they know the names of the types in this program.
    if let Some((before, name)) = message.rsplit_once("expected ")
        && (name.starts_with("struct ") || name.starts_with("internally tagged enum "))
        && !name.contains(" with ")
    {
        message = format!("{before}expected an object");
    }
    if message.len() > MAX_MESSAGE_BYTES {
        // What was found comes first, and what is expected last.
        let head = message.floor_char_boundary(MAX_MESSAGE_BYTES / 4);
        let tail = message.ceil_char_boundary(message.len() - MAX_MESSAGE_BYTES / 2);
        message = format!("{} … {}", &message[..head], &message[tail..]);
    }
    message
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn refused(text: impl AsRef<[u8]>) -> StrictJsonError {
        from_slice::<Value>(text.as_ref()).expect_err("the text is not strict JSON")
    }

    fn place(text: &str) -> (String, usize, usize) {
        let error = refused(text);
        (error.path.to_string(), error.line, error.column)
    }

    #[test]
    fn duplicate_keys_are_found_after_unescaping() {
        let text = "{\"a\": [0,\n  {\"b c\": {\"k\": 1, \"\\u006b\": 1}}]}";
        assert_eq!(refused(text).fault, JsonFault::DuplicateKey("k".to_owned()));
        assert_eq!(place(text), (r#"$.a[1]["b c"]"#.to_owned(), 2, 20));
        assert!(from_slice::<Value>(br#"[{"a":{"a":"a"}},{"a":["a","a"]}]"#).is_ok());
    }

    #[test]
    fn integers_stay_exact() {
        for good in ["9007199254740991", "-9007199254740991", "-0", "9007199254740993.0", "1E30", "1e-400"] {
            assert!(from_slice::<Value>(good.as_bytes()).is_ok(), "{good}");
        }
        for bad in ["9007199254740992", "-9007199254740992", "18446744073709551616", &"9".repeat(400)] {
            let error = refused(format!("[1, {{\"n\": {bad}}}]"));
            assert_eq!(error.fault, JsonFault::IntegerOutOfRange(bad.to_owned()));
            assert_eq!((error.path.to_string().as_str(), error.line, error.column), ("$[1].n", 1, 11));
        }
        assert_eq!(refused("[-1e400]").fault, JsonFault::NumberOutOfRange("-1e400".to_owned()));
    }

    #[test]
    fn ignored_members_are_checked_too() {
        #[derive(Debug, serde::Deserialize)]
        struct Empty {}
        assert!(from_slice::<Empty>(br#"{"x": [1, "\ud83d\ude00"]}"#).is_ok());
        for bad in [r#"{"x": 1e400}"#, r#"{"x": "\ud83d"}"#, r#"{"x": {"y": 1, "y": 1}}"#, r#"{"x": 1e}"#] {
            assert!(from_slice::<Empty>(bad.as_bytes()).is_err(), "{bad}");
        }
    }

    #[test]
    fn depth_is_bounded() {
        let nested = |depth| "[".repeat(depth) + &"]".repeat(depth);
        assert!(from_slice::<Value>(nested(MAX_DEPTH).as_bytes()).is_ok());
        let error = refused(nested(MAX_DEPTH + 1));
        assert_eq!((error.fault, error.column), (JsonFault::TooDeep, MAX_DEPTH + 1));
        assert_eq!(error.path.to_string(), "$".to_owned() + &"[0]".repeat(MAX_DEPTH));
        assert_eq!(refused("{\"a\":".repeat(1_000_000)).fault, JsonFault::TooDeep);
    }

    #[test]
    fn the_json_is_the_whole_text() {
        assert_eq!(refused(b"\xef\xbb\xbf{}").fault, JsonFault::ByteOrderMark);
        let error = refused(b"[\n\"a\xff\"]");
        assert_eq!((error.fault, error.line, error.column), (JsonFault::NotUtf8, 2, 3));
        let expected = "expected `null`, `true`, `false`, a number or a string";
        assert_eq!(refused("[nope]").fault, JsonFault::Syntax(expected.to_owned()));
        assert_eq!(refused("{} {}").fault, JsonFault::Syntax("trailing characters".to_owned()));
        assert!(matches!(refused("").fault, JsonFault::Syntax(_)));
    }

    #[test]
    fn shape_errors_differ_from_syntax_errors() {
        let read = |text: &str| from_slice::<BTreeMap<String, Vec<u8>>>(text.as_bytes()).unwrap_err();
        let shape = read("{\"a\": [1],\n \"b\": [2, \"x\"]}");
        assert_eq!(
            shape.to_string(),
            "$.b[1] (line 2, column 13): invalid type: string \"x\", expected an integer from 0"
        );
        assert!(matches!(shape.fault, JsonFault::Shape(_)));
        let syntax = read("{\"a\": [1,]}");
        assert_eq!(syntax.fault, JsonFault::Syntax("trailing comma".to_owned()));
    }

    /// Text with `hole` in it, some way down, and the path of the hole.
    fn around(hole: &'static str) -> impl Strategy<Value = (String, JsonPath)> {
        let step = prop_oneof![
            any::<String>().prop_map(|key| (Some(key), 0)),
            (0_usize..4).prop_map(|index| (None, index)),
        ];
        proptest::collection::vec(step, 0..20).prop_map(move |steps| {
            let path = steps.iter().map(|(key, index)| match key {
                Some(key) => JsonPathStep::Key(key.clone()),
                None => JsonPathStep::Index(*index),
            });
            let path = path.collect();
            let text = steps.iter().rev().fold(hole.to_owned(), |inner, step| match step {
                (Some(key), _) => format!("{{{}:{inner}}}", Value::from(key.as_str())),
                (None, index) => format!("[{}{inner} , {{\"a\":0}}]", "{\"a\":[0,\",\"]}, ".repeat(*index)),
            });
            (text, path)
        })
    }

    proptest! {
        #[test]
        fn garbage_is_an_error_and_does_not_panic(bytes: Vec<u8>) {
            let strict = from_slice::<Value>(&bytes).ok();
            prop_assert!(strict.is_none() || strict == serde_json::from_slice(&bytes).ok());
        }

        #[test]
        fn it_accepts_a_subset_of_what_serde_json_accepts(text in r#"[\[\]{}:,"\\u0019dea.+\- é\n]{0,40}"#) {
            let strict = from_slice::<Value>(text.as_bytes()).ok();
            prop_assert!(strict.is_none() || strict == serde_json::from_str(&text).ok());
        }

        #[test]
        fn a_fault_is_found_wherever_it_is(
            (integer, integer_at) in around("-9007199254740992"),
            (twice, twice_at) in around(r#"{"a":{},"b":0,"a":{}}"#),
            (surrogate, surrogate_at) in around(r#""\udc00""#),
            (sound, _) in around(r#"{"a":9007199254740991,"b":[1e21,"😀"]}"#),
        ) {
            prop_assert_eq!(refused(integer).path, integer_at);
            prop_assert_eq!(refused(twice).path, twice_at);
            prop_assert_eq!(refused(surrogate).path, surrogate_at);
            prop_assert_eq!(from_slice::<Value>(sound.as_bytes()).ok(), serde_json::from_str(&sound).ok());
        }
    }
}
