//! The features of `serde_json` that the canonical form depends on: Cargo unifies features, so any dependency could change them.

use serde_json::Value;

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
    let mut random = super::numbers::SplitMix(7);
    for number in
        std::iter::repeat_with(|| f64::from_bits(random.next())).filter(|n| n.is_finite()).take(1000)
    {
        assert_eq!(parse(&format!("{number:e}")).as_f64(), Some(number), "serde_json/float_roundtrip is off");
    }
}
