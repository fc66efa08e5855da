//! Checks that a value has one canonical form and loses nothing in it: a serializer that writes nothing.
//!
//! It runs before `serde_jcs` because that crate cannot see everything: `serde_json`'s serializers of lists, maps and
//! structs write `null` for a number that is not finite before the formatter sees it. Each of the other checks prevents
//! two values from sharing one hash, or one value from having two.
//!
//! A value is serialized here and again when it is written, in part more than once, so its `Serialize` must be
//! deterministic.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

use serde::ser::{self, Serialize, Serializer};
use serde_json::Value;

use super::canonical::{CanonicalError, CanonicalFault};
use super::json_path::{PathStep, PathTrail};

/// The largest integer that a double distinguishes from its neighbors: 2^53 - 1 (RFC 7493, section 2.2).
pub const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;

/// The maximum nesting depth of arrays and objects: what `serde_json` can read back.
pub const MAX_DEPTH: usize = 127;

type CheckResult = Result<(), CanonicalError>;

/// Checks a value and everything in it.
pub(super) fn check<T: Serialize + ?Sized>(value: &T) -> CheckResult {
    check_at(value, &PathTrail::ROOT)
}

fn check_at<T: Serialize + ?Sized>(value: &T, at: &PathTrail<'_>) -> CheckResult {
    value.serialize(DomainSerializer(at)).map_err(|error| error.located(at))
}

/// The serializer of the value at one path.
#[derive(Clone, Copy)]
struct DomainSerializer<'p>(&'p PathTrail<'p>);

impl<'p> DomainSerializer<'p> {
    fn integer<N: Copy + fmt::Display + TryInto<i64>>(n: N) -> CheckResult {
        match n.try_into() {
            Ok(n) if n.unsigned_abs() <= MAX_SAFE_INTEGER => Ok(()),
            _ => Err(CanonicalFault::IntegerOutOfRange(n.to_string()).into()),
        }
    }

    fn items(at: PathTrail<'p>) -> Result<CheckedItems<'p>, CanonicalError> {
        check_depth(&at).map(|()| CheckedItems { at, next: 0 })
    }

    fn members(at: PathTrail<'p>) -> Result<CheckedMembers<'p>, CanonicalError> {
        check_depth(&at).map(|()| CheckedMembers { at, seen: BTreeSet::new(), key: String::new() })
    }

    fn variant(self, name: &'static str) -> Result<PathTrail<'p>, CanonicalError> {
        check_depth(self.0).map(|()| self.0.then(PathStep::Key(name)))
    }
}

fn check_depth(at: &PathTrail<'_>) -> CheckResult {
    if at.depth() < MAX_DEPTH { Ok(()) } else { Err(CanonicalFault::TooDeep.into()) }
}

macro_rules! accept {
    ($($method:ident: $type:ty),* $(,)?) => {
        $(fn $method(self, _: $type) -> CheckResult { Ok(()) })*
    };
}

macro_rules! integers {
    ($($method:ident: $type:ty),* $(,)?) => {
        $(fn $method(self, n: $type) -> CheckResult { Self::integer(n) })*
    };
}

impl<'p> Serializer for DomainSerializer<'p> {
    type Ok = ();
    type Error = CanonicalError;
    type SerializeSeq = CheckedItems<'p>;
    type SerializeTuple = CheckedItems<'p>;
    type SerializeTupleStruct = CheckedItems<'p>;
    type SerializeTupleVariant = CheckedItems<'p>;
    type SerializeMap = CheckedMembers<'p>;
    type SerializeStruct = CheckedMembers<'p>;
    type SerializeStructVariant = CheckedMembers<'p>;

    accept! {
        serialize_bool: bool,
        serialize_i8: i8,
        serialize_i16: i16,
        serialize_i32: i32,
        serialize_u8: u8,
        serialize_u16: u16,
        serialize_u32: u32,
        serialize_char: char,
        serialize_str: &str,
        serialize_bytes: &[u8],
        serialize_unit_struct: &'static str,
    }

    integers! {
        serialize_i64: i64,
        serialize_u64: u64,
        serialize_i128: i128,
        serialize_u128: u128,
    }

    fn serialize_f32(self, _: f32) -> CheckResult {
        Err(CanonicalFault::SinglePrecision.into())
    }

    fn serialize_f64(self, number: f64) -> CheckResult {
        if number.is_finite() { Ok(()) } else { Err(CanonicalFault::NotFinite(number).into()) }
    }

    fn collect_str<T: fmt::Display + ?Sized>(self, _: &T) -> CheckResult {
        Ok(())
    }

    fn serialize_none(self) -> CheckResult {
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> CheckResult {
        value.serialize(self)
    }

    fn serialize_unit(self) -> CheckResult {
        Ok(())
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, _: &'static str) -> CheckResult {
        Ok(())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> CheckResult {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> CheckResult {
        check_at(value, &self.variant(variant)?)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<CheckedItems<'p>, CanonicalError> {
        Self::items(*self.0)
    }

    fn serialize_tuple(self, _: usize) -> Result<CheckedItems<'p>, CanonicalError> {
        Self::items(*self.0)
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<CheckedItems<'p>, CanonicalError> {
        Self::items(*self.0)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<CheckedItems<'p>, CanonicalError> {
        Self::items(self.variant(variant)?)
    }

    fn serialize_map(self, _: Option<usize>) -> Result<CheckedMembers<'p>, CanonicalError> {
        Self::members(*self.0)
    }

    fn serialize_struct(self, name: &'static str, _: usize) -> Result<CheckedMembers<'p>, CanonicalError> {
        // The names by which serde_json marks text that it passes through: RawValue, and numbers of arbitrary precision.
        if name.starts_with("$serde_json::private::") {
            return Err(CanonicalFault::RawJson.into());
        }
        Self::members(*self.0)
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<CheckedMembers<'p>, CanonicalError> {
        Self::members(self.variant(variant)?)
    }
}

/// The items of an array.
struct CheckedItems<'p> {
    at: PathTrail<'p>,
    next: usize,
}

macro_rules! items {
    ($($trait:ident::$method:ident),* $(,)?) => {$(
        impl ser::$trait for CheckedItems<'_> {
            type Ok = ();
            type Error = CanonicalError;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> CheckResult {
                let index = self.next;
                self.next += 1;
                check_at(value, &self.at.then(PathStep::Index(index)))
            }

            fn end(self) -> CheckResult {
                Ok(())
            }
        }
    )*};
}

items! {
    SerializeSeq::serialize_element,
    SerializeTuple::serialize_element,
    SerializeTupleStruct::serialize_field,
    SerializeTupleVariant::serialize_field,
}

/// The members of an object.
struct CheckedMembers<'p> {
    at: PathTrail<'p>,
    seen: BTreeSet<Cow<'static, str>>,
    /// The key of the next value, when key and value are serialized separately.
    key: String,
}

impl CheckedMembers<'_> {
    fn member<T: Serialize + ?Sized>(&mut self, key: Cow<'static, str>, value: &T) -> CheckResult {
        if self.seen.contains(&key) {
            return Err(CanonicalFault::DuplicateKey(key.into_owned()).into());
        }
        check_at(value, &self.at.then(PathStep::Key(&key)))?;
        self.seen.insert(key);
        Ok(())
    }
}

impl ser::SerializeMap for CheckedMembers<'_> {
    type Ok = ();
    type Error = CanonicalError;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> CheckResult {
        // A number would be converted to a string by way of a double, and other types have no defined conversion.
        match serde_json::to_value(key) {
            Ok(Value::String(text)) => self.key = text,
            Ok(other) => return Err(CanonicalFault::KeyNotText(other.to_string()).into()),
            Err(error) => return Err(ser::Error::custom(error)),
        }
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> CheckResult {
        let key = std::mem::take(&mut self.key);
        self.member(key.into(), value)
    }

    fn end(self) -> CheckResult {
        Ok(())
    }
}

macro_rules! members {
    ($($trait:ident),* $(,)?) => {$(
        impl ser::$trait for CheckedMembers<'_> {
            type Ok = ();
            type Error = CanonicalError;

            fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> CheckResult {
                self.member(key.into(), value)
            }

            fn end(self) -> CheckResult {
                Ok(())
            }
        }
    )*};
}

members! { SerializeStruct, SerializeStructVariant }
