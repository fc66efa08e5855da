//! Canonical JSON (RFC 8785, JCS): the bytes that are hashed.
//!
//! `serde_jcs` writes the bytes. Before that, `domain` rejects values that RFC 8785 has no form for, or that could
//! share a hash with another value. `stream` hashes long values while they are written. Not supported, by intent: a
//! lenient mode, and any repair of a value.

use std::fmt;

use serde::Serialize;
use sha2::{Digest as _, Sha256};

use super::{Digest, domain, stream};

/// Why a value has no canonical form, and where in it.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("no canonical JSON form: {path}: {fault}")]
pub struct CanonicalError {
    /// The path of the invalid value, as in `$.meta.weights[2]`.
    pub path: String,
    /// What is wrong with it.
    pub fault: CanonicalFault,
}

/// Why a value has no single canonical form.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum CanonicalFault {
    /// JSON has no NaN and no infinities.
    #[error("{0} is not a finite number")]
    NotFinite(f64),
    /// JCS writes numbers as doubles, which cannot distinguish all integers beyond 2^53 - 1.
    #[error("the integer {0} is outside of ±(2^53 - 1)")]
    IntegerOutOfRange(String),
    /// An `f32`. Its printed form and its canonical form differ (`0.1` and `0.10000000149011612`), so writing and
    /// reading it would change the hash.
    #[error("a single-precision number has different printed and hashed forms")]
    SinglePrecision,
    /// A key that occurs twice in one object, which a map with its own order or `#[serde(flatten)]` can produce.
    #[error("the key {0:?} occurs twice")]
    DuplicateKey(String),
    /// A map key that is not a string.
    #[error("the key {0} is not a string")]
    KeyNotText(String),
    /// JSON text that is passed through unchecked (`RawValue`).
    #[error("raw JSON text cannot be hashed")]
    RawJson,
    /// Arrays and objects nested more than [`MAX_DEPTH`](super::MAX_DEPTH) levels deep.
    #[error("arrays and objects are nested more than {} levels deep", domain::MAX_DEPTH)]
    TooDeep,
    /// The value's own `Serialize` failed with this message.
    #[error("{0}")]
    Refused(String),
}

/// Returns the RFC 8785 form of a value.
///
/// # Errors
/// See [`CanonicalFault`]; nothing is silently rounded, dropped or replaced.
pub fn to_canonical<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, CanonicalError> {
    domain::check(value)?;
    canonical_part(value)
}

/// Returns the digest of [`to_canonical`], without holding a long form in memory as a whole.
///
/// # Errors
/// As [`to_canonical`].
pub fn canonical_digest<T: Serialize + ?Sized>(value: &T) -> Result<Digest, CanonicalError> {
    domain::check(value)?;
    let mut hasher = Sha256::new();
    stream::write(value, &mut |part| hasher.update(part))?;
    Ok(Digest(hasher.finalize().into()))
}

/// Returns the form of a value that [`domain`] has checked.
pub(super) fn canonical_part<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, CanonicalError> {
    /// Wraps the value because the outermost serializer of `serde_jcs` does not support 128-bit integers.
    #[derive(Serialize)]
    struct Root<'v, T: ?Sized>(&'v T);

    serde_jcs::to_vec(&Root(value)).map_err(<CanonicalError as serde::ser::Error>::custom)
}

impl CanonicalError {
    /// Sets the path, unless an inner value has already set it.
    pub(super) fn located(mut self, at: &impl fmt::Display) -> Self {
        if self.path.is_empty() {
            self.path = at.to_string();
        }
        self
    }
}

impl From<CanonicalFault> for CanonicalError {
    fn from(fault: CanonicalFault) -> Self {
        Self { path: String::new(), fault }
    }
}

impl serde::ser::Error for CanonicalError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        CanonicalFault::Refused(message.to_string()).into()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Serializer;
    use serde::ser::{SerializeMap as _, SerializeStruct as _};
    use serde_json::json;

    use super::*;
    use crate::digest::{MAX_DEPTH, MAX_SAFE_INTEGER};

    fn fault<T: Serialize + ?Sized>(value: &T) -> (String, CanonicalFault) {
        let error = to_canonical(value).expect_err("the value is outside the domain");
        (error.path, error.fault)
    }

    fn canonical<T: Serialize + ?Sized>(value: &T) -> String {
        String::from_utf8(to_canonical(value).unwrap()).unwrap()
    }

    #[derive(Serialize)]
    enum Shape {
        Unit,
        Newtype(f64),
        Tuple(u8, f64),
        Struct { weights: Vec<Option<f64>> },
    }

    #[test]
    fn a_number_that_is_not_finite_is_found_at_any_depth() {
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let path = |value: Shape| {
                let (path, fault) = fault(&BTreeMap::from([("meta", value)]));
                assert!(matches!(fault, CanonicalFault::NotFinite(n) if n.to_bits() == bad.to_bits()));
                path
            };
            assert_eq!(path(Shape::Newtype(bad)), "$.meta.Newtype");
            assert_eq!(path(Shape::Tuple(1, bad)), "$.meta.Tuple[1]");
            let weights = vec![Some(1.0), None, Some(bad)];
            assert_eq!(path(Shape::Struct { weights }), "$.meta.Struct.weights[2]");
            assert_eq!(fault(&bad).0, "$");
            assert_eq!(fault(&(1, "a", Some([bad]))).0, "$[2][0]");
        }
        assert_eq!(canonical(&(Shape::Unit, Shape::Newtype(-0.0))), r#"["Unit",{"Newtype":0}]"#);
    }

    #[test]
    fn integers_beyond_the_range_of_doubles_are_refused() {
        let (max, past) = (MAX_SAFE_INTEGER, MAX_SAFE_INTEGER + 1);
        let signed = i64::try_from(max).unwrap();
        assert_eq!(canonical(&(max, -signed)), "[9007199254740991,-9007199254740991]");
        assert_eq!(canonical(&i128::from(-signed)), "-9007199254740991");
        assert_eq!(canonical(&[u128::from(max)]), "[9007199254740991]");
        let out_of_range = |n: &str| CanonicalFault::IntegerOutOfRange(n.to_owned());
        assert_eq!(fault(&[past]), ("$[0]".to_owned(), out_of_range("9007199254740992")));
        assert_eq!(fault(&[-signed - 1]).1, out_of_range("-9007199254740992"));
        assert_eq!(fault(&i64::MIN).1, out_of_range(&i64::MIN.to_string()));
        assert_eq!(fault(&[u128::MAX]).1, out_of_range(&u128::MAX.to_string()));
        assert_eq!(fault(&i128::MIN).1, out_of_range(&i128::MIN.to_string()));
        assert_eq!(fault(&json!({"a": {"b c": [0, past]}})).0, r#"$.a["b c"][1]"#);
    }

    #[test]
    fn single_precision_is_refused() {
        assert_eq!(fault(&[0.1_f32]), ("$[0]".to_owned(), CanonicalFault::SinglePrecision));
        // Printed and read back, it would hash as another number.
        assert_ne!(serde_json::to_string(&0.1_f32).unwrap(), canonical(&f64::from(0.1_f32)));
    }

    #[test]
    fn a_key_may_not_occur_twice() {
        #[derive(Serialize)]
        struct Flattened {
            id: u8,
            #[serde(flatten)]
            rest: BTreeMap<String, u8>,
        }
        let with = |key: &str| [Flattened { id: 1, rest: BTreeMap::from([(key.to_owned(), 2)]) }];
        assert_eq!(canonical(&with("ie")), r#"[{"id":1,"ie":2}]"#);
        assert_eq!(fault(&with("id")), ("$[0]".to_owned(), CanonicalFault::DuplicateKey("id".to_owned())));

        struct Pairs(Vec<(char, u8)>);
        impl Serialize for Pairs {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut map = serializer.serialize_map(None)?;
                for (key, value) in &self.0 {
                    map.serialize_key(key)?;
                    map.serialize_value(value)?;
                }
                map.end()
            }
        }
        assert_eq!(canonical(&Pairs(vec![('b', 1), ('a', 2)])), r#"{"a":2,"b":1}"#);
        assert_eq!(fault(&Pairs(vec![('b', 1), ('b', 1)])).1, CanonicalFault::DuplicateKey("b".to_owned()));
    }

    #[test]
    fn keys_are_text() {
        #[derive(Serialize, PartialEq, Eq, PartialOrd, Ord)]
        enum Name {
            One,
        }
        assert_eq!(canonical(&BTreeMap::from([(Name::One, 1)])), r#"{"One":1}"#);
        let not_text = |key: &str| ("$".to_owned(), CanonicalFault::KeyNotText(key.to_owned()));
        assert_eq!(fault(&BTreeMap::from([(u64::MAX, 1)])), not_text("18446744073709551615"));
        assert_eq!(fault(&BTreeMap::from([(true, 1)])), not_text("true"));
        assert_eq!(fault(&BTreeMap::from([(None::<char>, 1)])), not_text("null"));
    }

    #[test]
    fn raw_text_is_refused() {
        struct Raw;
        impl Serialize for Raw {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut raw = serializer.serialize_struct("$serde_json::private::RawValue", 1)?;
                raw.serialize_field("$serde_json::private::RawValue", "[1e999]")?;
                raw.end()
            }
        }
        assert_eq!(fault(&[Raw]), ("$[0]".to_owned(), CanonicalFault::RawJson));
    }

    #[test]
    fn the_deepest_form_can_be_read_back() {
        let nested = |depth| (1..depth).fold(json!([]), |inner, _| json!([inner]));
        let deepest = nested(MAX_DEPTH);
        assert_eq!(serde_json::from_str::<serde_json::Value>(&canonical(&deepest)).unwrap(), deepest);
        let (path, fault) = fault(&nested(MAX_DEPTH + 1));
        assert_eq!((path, fault), ("$".to_owned() + &"[0]".repeat(MAX_DEPTH), CanonicalFault::TooDeep));
    }

    #[test]
    fn an_error_of_serialize_has_a_path() {
        struct Locked;
        impl Serialize for Locked {
            fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
                Err(serde::ser::Error::custom("locked"))
            }
        }
        assert_eq!(
            to_canonical(&[(0, Locked)]).unwrap_err().to_string(),
            "no canonical JSON form: $[0][1]: locked"
        );
    }
}
