//! Conformance with RFC 8785: its test vectors, another implementation as a witness, and the features of `serde_json` that
//! the canonical form depends on. `fixtures/jcs/README.md` lists the sources.

use std::collections::BTreeMap;
use std::io::Write as _;

use proptest::prelude::*;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{Digest, MAX_SAFE_INTEGER, strict_json, to_canonical};

fn canonical<T: Serialize + ?Sized>(value: &T) -> String {
    String::from_utf8(to_canonical(value).expect("the value has a canonical form")).expect("JSON is UTF-8")
}

/// The form of any number, including those that hashed documents must not have.
fn form_of<T: Serialize + ?Sized>(value: &T) -> String {
    serde_jcs::to_string(value).expect("the value has a canonical form")
}

fn from_hex(hex: &str) -> f64 {
    f64::from_bits(u64::from_str_radix(hex, 16).expect("a double in hexadecimal"))
}

#[test]
fn appendix_b() {
    let rows = include_str!("../../fixtures/jcs/rfc8785_appendix_b.csv").lines().skip(1);
    assert_eq!(rows.clone().count(), 26);
    for (hex, expected) in rows.map(|row| row.split_once(',').expect("two columns")) {
        let number = from_hex(hex);
        if expected == "ERROR" {
            // Below the top level, the serializer has no error for it: see `canonical`.
            assert!(to_canonical(&number).is_err(), "{hex}");
        } else {
            assert_eq!(form_of(&number), expected, "{hex}");
            assert_eq!(form_of(&[[number]]), format!("[[{expected}]]"), "{hex}");
        }
    }
}

/// The number sequence of the ES6 test file (see `fixtures/jcs/README.md`): edge cases, then the 2,000 doubles from the
/// smallest normal one on, then the doubles of a chain of SHA-256 digests without zeros, infinities and NaN.
fn es6_sequence() -> impl Iterator<Item = f64> {
    let edges = include_str!("../../fixtures/jcs/es6_edge_cases.csv").lines();
    let edges = edges.map(|line| from_hex(line.split_once(',').expect("two columns").0));
    let serial = (0..2000).map(|n| f64::from_bits(0x0010_0000_0000_0000 + n));
    let digests = std::iter::successors(Some([0; 32]), |block| Some(*Digest::of(block).as_bytes())).skip(1);
    let chained = digests.flat_map(|block| {
        let (doubles, _) = block.as_chunks();
        doubles.iter().copied().map(f64::from_le_bytes).collect::<Vec<_>>()
    });
    edges.chain(serial).chain(chained.filter(|n| *n != 0.0 && n.is_finite()))
}

#[test]
fn es6_test_file() {
    // The published SHA-256 of the first N lines.
    const PREFIXES: [(usize, &str); 3] = [
        (1_000, "be18b62b6f69cdab33a7e0dae0d9cfa869fda80ddc712221570f9f40a5878687"),
        (10_000, "b9f7a8e75ef22a835685a52ccba7f7d6bdc99e34b010992cbc5864cd12be6892"),
        (100_000, "22776e6d4b49fa294a0d0f349268e5c28808fe7e0cb2bcbe28f63894e494d4c7"),
    ];
    let mut file = Vec::new();
    let mut numbers = es6_sequence();
    let mut lines = 0;
    for (prefix, digest) in PREFIXES {
        for number in numbers.by_ref().take(prefix - lines) {
            let form = form_of(&number);
            assert_eq!(form.parse(), Ok(number), "the form of {number:e} is another number");
            writeln!(file, "{:x},{form}", number.to_bits()).expect("memory takes every write");
        }
        lines = prefix;
        assert_eq!(Digest::of(&file).to_hex(), digest, "the first {prefix} lines");
    }
}

/// Cargo unifies features, so any dependency could change them.
fn parse(text: &str) -> Value {
    serde_json::from_str(text).expect("the text is JSON")
}

#[test]
fn numbers_are_doubles_and_integers_not_text() {
    assert_eq!(parse("1.10").to_string(), "1.1", "serde_json/arbitrary_precision is on");
}

#[test]
fn objects_are_sorted() {
    assert_eq!(parse(r#"{"b":1,"a":2}"#).to_string(), r#"{"a":2,"b":1}"#, "serde_json/preserve_order is on");
}

#[test]
fn doubles_are_read_as_they_were_written() {
    for number in es6_sequence().skip(3000).take(1000) {
        assert_eq!(parse(&format!("{number:e}")).as_f64(), Some(number), "serde_json/float_roundtrip is off");
    }
}

fn from_hex_dump(dump: &str) -> Vec<u8> {
    dump.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).expect("a byte in hexadecimal")).collect()
}

#[test]
fn samples_of_the_rfc() {
    let samples = [
        // Sections 3.2.2 and 3.2.4.
        (
            include_str!("../../fixtures/jcs/sample.input.json"),
            include_str!("../../fixtures/jcs/sample.output.hex"),
        ),
        // Section 3.2.3.
        (
            include_str!("../../fixtures/jcs/sorting.input.json"),
            include_str!("../../fixtures/jcs/sorting.output.hex"),
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

/// JSON, with integers that a double cannot represent.
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
    /// Whether every number that is written as an integer is one that a double distinguishes from its neighbors.
    fn is_portable(&self) -> bool {
        match self {
            Self::Integer(n) => n.unsigned_abs() <= MAX_SAFE_INTEGER,
            // From 1e21 on, numbers are written with an exponent.
            Self::Float(n) => !(9_007_199_254_740_992.0..1e21).contains(&n.abs()),
            Self::List(items) => items.iter().all(Self::is_portable),
            Self::Object(members) => members.values().all(Self::is_portable),
            Self::Null | Self::Flag(_) | Self::Text(_) => true,
        }
    }
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
        prop_assert_eq!(form.is_ok(), document.is_portable());
        if let Ok(form) = form {
            let other = serde_json_canonicalizer::to_vec(&document).expect("the other implementation has a form");
            prop_assert_eq!(String::from_utf8(form), String::from_utf8(other));
        }
    }

    #[test]
    fn reading_the_form_changes_nothing(document in documents()) {
        let Ok(form) = to_canonical(&document) else { return Ok(()) };
        let read: Value = strict_json::from_slice(&form).expect("a canonical form is strict JSON");
        prop_assert_eq!(to_canonical(&read), Ok(form));
        // Ordinary JSON in between does not change it either.
        let pretty = serde_json::to_vec_pretty(&document).expect("the document is JSON");
        let read: Value = strict_json::from_slice(&pretty).expect("what is printed is strict JSON");
        prop_assert_eq!(to_canonical(&read), to_canonical(&document));
    }
}
