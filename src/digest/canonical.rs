//! Canonical JSON (RFC 8785, JCS): the bytes that are hashed.
//!
//! `serde_jcs` 0.2 writes them. It accepts three kinds of values that it should refuse:
//! - A number that is not finite, below the top level, becomes `null`: `serde_json` writes that before the formatter sees the
//!   number. The types exclude it: the only floats in hashed documents are [`Score`](super::Score)s, which are finite.
//! - An integer that a double cannot represent is rounded, so that two values would share one hash. The text is checked for
//!   these, and for nesting that `serde_json` could not read back.
//! - Of two members with one name, the last is written. Only `#[serde(flatten)]` into a map makes these; no hashed type has one.

use serde::Serialize;

use super::strict_json::{self, JsonFault};
use super::{Digest, JsonPath};

/// Why a value has no canonical form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CanonicalError {
    /// The value's own `Serialize` failed with this message.
    #[error("no canonical JSON form: {0}")]
    Refused(String),
    /// A part of the value would be read differently by other parsers.
    #[error("no canonical JSON form: {path}: {fault}")]
    NotPortable {
        /// The path of the part.
        path: JsonPath,
        /// What is wrong with it.
        fault: JsonFault,
    },
}

/// Returns the RFC 8785 form of a value.
///
/// # Errors
/// See [`CanonicalError`].
pub fn to_canonical<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, CanonicalError> {
    let text = serde_jcs::to_string(value).map_err(|error| CanonicalError::Refused(error.to_string()))?;
    strict_json::audit(&text)
        .map_err(|found| CanonicalError::NotPortable { path: found.path, fault: found.fault })?;
    Ok(text.into_bytes())
}

/// Returns the digest of [`to_canonical`].
///
/// # Errors
/// As [`to_canonical`].
pub fn canonical_digest<T: Serialize + ?Sized>(value: &T) -> Result<Digest, CanonicalError> {
    to_canonical(value).map(|bytes| Digest::of(&bytes))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::digest::{MAX_DEPTH, MAX_SAFE_INTEGER, Score};

    fn fault<T: Serialize + ?Sized>(value: &T) -> (String, JsonFault) {
        match to_canonical(value) {
            Err(CanonicalError::NotPortable { path, fault }) => (path.to_string(), fault),
            other => panic!("{other:?}"),
        }
    }

    fn canonical<T: Serialize + ?Sized>(value: &T) -> String {
        String::from_utf8(to_canonical(value).unwrap()).unwrap()
    }

    /// The gap of `serde_jcs` that only the types cover.
    #[test]
    fn a_number_that_is_not_finite_is_null_unless_its_type_excludes_it() {
        #[derive(Serialize)]
        struct Lax {
            weights: Vec<Option<f64>>,
        }
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(canonical(&Lax { weights: vec![Some(bad)] }), r#"{"weights":[null]}"#);
            assert_eq!(Score::new(bad), None);
        }
        assert_eq!(canonical(&[Score::new(-0.0), Score::new(0.5)]), "[0,0.5]");
    }

    /// The gap of `serde_jcs` that the check of the text covers.
    #[test]
    fn integers_beyond_the_range_of_doubles_are_refused() {
        let (max, past) = (MAX_SAFE_INTEGER, MAX_SAFE_INTEGER + 1);
        let signed = i64::try_from(max).unwrap();
        assert_eq!(serde_jcs::to_string(&[past + 1]).unwrap(), "[9007199254740992]");
        assert_eq!(canonical(&(max, -signed)), "[9007199254740991,-9007199254740991]");
        let out_of_range = |n: &str| JsonFault::IntegerOutOfRange(n.to_owned());
        assert_eq!(fault(&[past]), ("$[0]".to_owned(), out_of_range("9007199254740992")));
        assert_eq!(fault(&[past + 1]).1, out_of_range("9007199254740992"));
        assert_eq!(fault(&[-signed - 1]).1, out_of_range("-9007199254740992"));
        assert_eq!(fault(&[i64::MIN]).1, out_of_range("-9223372036854776000"));
        assert_eq!(fault(&[u64::MAX]).1, out_of_range("18446744073709552000"));
        assert_eq!(fault(&json!({"a": {"b c": [0, past]}})).0, r#"$.a["b c"][1]"#);
    }

    #[test]
    fn the_deepest_form_can_be_read_back() {
        let nested = |depth| (1..depth).fold(json!([]), |inner, _| json!([inner]));
        let deepest = nested(MAX_DEPTH);
        assert_eq!(serde_json::from_str::<serde_json::Value>(&canonical(&deepest)).unwrap(), deepest);
        let (path, fault) = fault(&nested(MAX_DEPTH + 1));
        assert_eq!((path, fault), ("$".to_owned() + &"[0]".repeat(MAX_DEPTH), JsonFault::TooDeep));
    }

    #[test]
    fn an_error_of_serialize_is_returned() {
        struct Locked;
        impl Serialize for Locked {
            fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
                Err(serde::ser::Error::custom("locked"))
            }
        }
        assert_eq!(to_canonical(&[(0, Locked)]).unwrap_err().to_string(), "no canonical JSON form: locked");
    }
}
