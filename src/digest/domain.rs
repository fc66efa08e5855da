//! The values that have one canonical form and lose nothing in it: a serializer that writes nothing and only judges.
//!
//! It runs before `serde_jcs`, because what that crate cannot see is decided above it: `serde_json`'s serializers of
//! lists, maps and structs write `null` for a number that is not finite before the formatter hears of it. The other
//! refusals each close a way for two values to get one hash, or for one value to get two.
//!
//! A value is read here and when it is written, then in part more than once, so its `Serialize` must say the same every time.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

use serde::ser::{self, Serialize, Serializer};
use serde_json::Value;

use super::canonical::{CanonicalError, CanonicalFault};
use super::json_path::{Step, Trail};

/// The largest integer that a double tells from its neighbours: 2^53 - 1 (RFC 7493, section 2.2).
pub const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;

/// How many arrays and objects may stand inside one another: as many as `serde_json` reads back.
pub const MAX_DEPTH: usize = 127;

type Verdict = Result<(), CanonicalError>;

/// Judges a value and everything in it.
pub(super) fn check<T: Serialize + ?Sized>(value: &T) -> Verdict {
    check_at(value, &Trail::ROOT)
}

fn check_at<T: Serialize + ?Sized>(value: &T, at: &Trail<'_>) -> Verdict {
    value.serialize(Domain(at)).map_err(|error| error.located(at))
}

/// The judge of the value at one path.
#[derive(Clone, Copy)]
struct Domain<'p>(&'p Trail<'p>);

impl<'p> Domain<'p> {
    fn integer<N: Copy + fmt::Display + TryInto<i64>>(n: N) -> Verdict {
        match n.try_into() {
            Ok(n) if n.unsigned_abs() <= MAX_SAFE_INTEGER => Ok(()),
            _ => Err(CanonicalFault::IntegerOutOfRange(n.to_string()).into()),
        }
    }

    fn items(at: Trail<'p>) -> Result<Items<'p>, CanonicalError> {
        not_too_deep(&at).map(|()| Items { at, next: 0 })
    }

    fn members(at: Trail<'p>) -> Result<Members<'p>, CanonicalError> {
        not_too_deep(&at).map(|()| Members { at, seen: BTreeSet::new(), key: String::new() })
    }

    fn variant(self, name: &'static str) -> Result<Trail<'p>, CanonicalError> {
        not_too_deep(self.0).map(|()| self.0.then(Step::Key(name)))
    }
}

fn not_too_deep(at: &Trail<'_>) -> Verdict {
    if at.depth() < MAX_DEPTH { Ok(()) } else { Err(CanonicalFault::TooDeep.into()) }
}

macro_rules! accept {
    ($($method:ident: $type:ty),* $(,)?) => {
        $(fn $method(self, _: $type) -> Verdict { Ok(()) })*
    };
}

macro_rules! integers {
    ($($method:ident: $type:ty),* $(,)?) => {
        $(fn $method(self, n: $type) -> Verdict { Self::integer(n) })*
    };
}

impl<'p> Serializer for Domain<'p> {
    type Ok = ();
    type Error = CanonicalError;
    type SerializeSeq = Items<'p>;
    type SerializeTuple = Items<'p>;
    type SerializeTupleStruct = Items<'p>;
    type SerializeTupleVariant = Items<'p>;
    type SerializeMap = Members<'p>;
    type SerializeStruct = Members<'p>;
    type SerializeStructVariant = Members<'p>;

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

    fn serialize_f32(self, _: f32) -> Verdict {
        Err(CanonicalFault::SinglePrecision.into())
    }

    fn serialize_f64(self, number: f64) -> Verdict {
        if number.is_finite() { Ok(()) } else { Err(CanonicalFault::NotFinite(number).into()) }
    }

    fn collect_str<T: fmt::Display + ?Sized>(self, _: &T) -> Verdict {
        Ok(())
    }

    fn serialize_none(self) -> Verdict {
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Verdict {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Verdict {
        Ok(())
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, _: &'static str) -> Verdict {
        Ok(())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Verdict {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Verdict {
        check_at(value, &self.variant(variant)?)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Items<'p>, CanonicalError> {
        Self::items(*self.0)
    }

    fn serialize_tuple(self, _: usize) -> Result<Items<'p>, CanonicalError> {
        Self::items(*self.0)
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Items<'p>, CanonicalError> {
        Self::items(*self.0)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Items<'p>, CanonicalError> {
        Self::items(self.variant(variant)?)
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Members<'p>, CanonicalError> {
        Self::members(*self.0)
    }

    fn serialize_struct(self, name: &'static str, _: usize) -> Result<Members<'p>, CanonicalError> {
        // The names under which serde_json passes text of its own through: RawValue, and numbers of any precision.
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
    ) -> Result<Members<'p>, CanonicalError> {
        Self::members(self.variant(variant)?)
    }
}

/// An array, item by item.
struct Items<'p> {
    at: Trail<'p>,
    next: usize,
}

macro_rules! items {
    ($($trait:ident::$method:ident),* $(,)?) => {$(
        impl ser::$trait for Items<'_> {
            type Ok = ();
            type Error = CanonicalError;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Verdict {
                let index = self.next;
                self.next += 1;
                check_at(value, &self.at.then(Step::Index(index)))
            }

            fn end(self) -> Verdict {
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

/// An object, member by member.
struct Members<'p> {
    at: Trail<'p>,
    seen: BTreeSet<Cow<'static, str>>,
    /// The key whose value comes next, when the two come one after the other.
    key: String,
}

impl Members<'_> {
    fn member<T: Serialize + ?Sized>(&mut self, key: Cow<'static, str>, value: &T) -> Verdict {
        if self.seen.contains(&key) {
            return Err(CanonicalFault::DuplicateKey(key.into_owned()).into());
        }
        check_at(value, &self.at.then(Step::Key(&key)))?;
        self.seen.insert(key);
        Ok(())
    }
}

impl ser::SerializeMap for Members<'_> {
    type Ok = ();
    type Error = CanonicalError;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Verdict {
        // A number would become text by way of a double; so would every other kind that is not text already.
        match serde_json::to_value(key) {
            Ok(Value::String(text)) => self.key = text,
            Ok(other) => return Err(CanonicalFault::KeyNotText(other.to_string()).into()),
            Err(error) => return Err(ser::Error::custom(error)),
        }
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Verdict {
        let key = std::mem::take(&mut self.key);
        self.member(key.into(), value)
    }

    fn end(self) -> Verdict {
        Ok(())
    }
}

macro_rules! members {
    ($($trait:ident),* $(,)?) => {$(
        impl ser::$trait for Members<'_> {
            type Ok = ();
            type Error = CanonicalError;

            fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Verdict {
                self.member(key.into(), value)
            }

            fn end(self) -> Verdict {
                Ok(())
            }
        }
    )*};
}

members! { SerializeStruct, SerializeStructVariant }
