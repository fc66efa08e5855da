//! Whole documents: order of keys, strings, and the property that a value has one form or is refused.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::canonical;
use crate::digest::{MAX_SAFE_INTEGER, strict_json, to_canonical};

fn from_hex_dump(dump: &str) -> Vec<u8> {
    dump.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).expect("a byte in hexadecimal")).collect()
}

#[test]
fn samples_of_the_rfc() {
    let samples = [
        // Sections 3.2.2 and 3.2.4.
        (
            include_str!("../../../fixtures/jcs/sample.input.json"),
            include_str!("../../../fixtures/jcs/sample.output.hex"),
        ),
        // Section 3.2.3.
        (
            include_str!("../../../fixtures/jcs/sorting.input.json"),
            include_str!("../../../fixtures/jcs/sorting.output.hex"),
        ),
    ];
    for (input, output) in samples {
        let document: Value = strict_json::from_slice(input.as_bytes()).expect("the sample is strict JSON");
        assert_eq!(to_canonical(&document), Ok(from_hex_dump(output)), "{input}");
    }
}

#[test]
fn keys_are_ordered_by_utf16_units() {
    // U+1F600 is D83D DE00 in UTF-16: before U+E000, though its code point and its UTF-8 come after U+FFFF.
    // The quote and the line break are sorted by their unescaped form.
    let ordered = [
        "",
        "\0",
        "\u{1}",
        "\n",
        "\u{1f}",
        " ",
        "!",
        "\"",
        "#",
        "1",
        "10",
        "2",
        "A",
        "\\",
        "a",
        "aa",
        "a\u{301}",
        "\u{7f}",
        "\u{80}",
        "\u{e9}",
        "\u{2028}",
        "\u{d7ff}",
        "\u{10000}",
        "\u{1f600}",
        "\u{1f600}a",
        "\u{1f601}",
        "\u{10ffff}",
        "\u{e000}",
        "\u{fb33}",
        "\u{fffd}",
        "\u{fffe}",
        "\u{ffff}",
        "\u{ffff}\u{1f600}",
    ];
    let object: Map<String, Value> = ordered.iter().map(|key| ((*key).to_owned(), Value::Null)).collect();
    assert_eq!(object.len(), ordered.len());
    let form = canonical(&object);
    let members =
        form.trim_start_matches('{').trim_end_matches('}').split(":null").filter(|rest| !rest.is_empty());
    let keys = members.map(|key| serde_json::from_str(key.trim_start_matches(',')).expect("a key"));
    assert_eq!(keys.collect::<Vec<String>>(), ordered);
}

#[test]
fn only_required_characters_are_escaped() {
    let form =
        canonical(&json!("\u{0}\u{8}\t\n\u{b}\u{c}\r\u{1f}\"\\/\u{7f}\u{80}\u{2028}é\u{fffd}\u{ffff}😀"));
    let expected = "\"\\u0000\\b\\t\\n\\u000b\\f\\r\\u001f\\\"\\\\/\u{7f}\u{80}\u{2028}é\u{fffd}\u{ffff}😀\"";
    assert_eq!(form, expected);
}

/// JSON, with numbers that exist in Rust and not in JSON.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
enum TestDocument {
    Null,
    Flag(bool),
    Integer(i64),
    Float(f64),
    Text(String),
    List(Vec<Self>),
    Object(BTreeMap<String, Self>),
}

impl TestDocument {
    /// Whether every number satisfies the test of its type.
    fn all(&self, integer: fn(i64) -> bool, float: fn(f64) -> bool) -> bool {
        match self {
            Self::Integer(n) => integer(*n),
            Self::Float(n) => float(*n),
            Self::List(items) => items.iter().all(|item| item.all(integer, float)),
            Self::Object(members) => members.values().all(|member| member.all(integer, float)),
            Self::Null | Self::Flag(_) | Self::Text(_) => true,
        }
    }
}

fn is_safe(n: i64) -> bool {
    n.unsigned_abs() <= MAX_SAFE_INTEGER
}

/// Documents, of which many have a canonical form.
fn documents() -> impl Strategy<Value = TestDocument> {
    let limit = 1_i64 << 53;
    let text = prop_oneof![
        any::<String>(),
        "[\u{0}-\u{7f}\u{d7f0}-\u{d7ff}\u{e000}-\u{ffff}\u{10000}-\u{10ffff}]{0,3}"
    ];
    let leaf = prop_oneof![
        6 => Just(TestDocument::Null),
        6 => any::<bool>().prop_map(TestDocument::Flag),
        12 => (-limit + 1..limit).prop_map(TestDocument::Integer),
        1 => (limit - 2..limit + 2).prop_map(TestDocument::Integer),
        1 => any::<i64>().prop_map(TestDocument::Integer),
        12 => proptest::num::f64::NORMAL.prop_map(TestDocument::Float),
        12 => (-1_000_000..1_000_000).prop_map(|n| TestDocument::Float(f64::from(n) / 1e6)),
        1 => proptest::num::f64::ANY.prop_map(TestDocument::Float),
        12 => text.clone().prop_map(TestDocument::Text),
    ];
    leaf.prop_recursive(4, 24, 5, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(TestDocument::List),
            proptest::collection::btree_map(text.clone(), inner, 0..5).prop_map(TestDocument::Object),
        ]
    })
}

proptest! {
    #[test]
    fn a_value_has_its_form_or_is_refused(document in documents()) {
        let form = to_canonical(&document);
        prop_assert_eq!(form.is_ok(), document.all(is_safe, f64::is_finite));
        if let Ok(form) = form {
            let other = serde_json_canonicalizer::to_vec(&document).expect("the other implementation has a form");
            prop_assert_eq!(String::from_utf8(form), String::from_utf8(other));
        }
    }

    #[test]
    fn reading_the_form_changes_nothing(document in documents()) {
        // A float that prints as an integer past 2^53 is refused by the reader, which sees an integer.
        if !document.all(is_safe, |n| n.is_finite() && (n.abs() < 9e15 || n.abs() >= 1e21)) {
            return Ok(());
        }
        let form = to_canonical(&document).expect("the document is in the domain");
        let read: Value = strict_json::from_slice(&form).expect("a canonical form is strict JSON");
        prop_assert_eq!(to_canonical(&read), Ok(form));
        // Ordinary JSON in between does not change it either.
        let pretty = serde_json::to_vec_pretty(&document).expect("the document is JSON");
        let read: Value = strict_json::from_slice(&pretty).expect("what is printed is strict JSON");
        prop_assert_eq!(to_canonical(&read), to_canonical(&document));
    }
}
