//! Writes a canonical form in parts, for values whose form is too long to be held in memory just to be hashed.
//!
//! Structs are written member by member and lists item by item; each item, and each value of another shape, is a part
//! that `serde_jcs` writes. RFC 8785 sorts the members of an object by name, in UTF-16 code units: a struct is
//! serialized once to collect its names, then once for each member.

use serde::Serialize;
use serde::ser::{self, Impossible, Serializer};

use super::canonical::{CanonicalError, CanonicalFault, canonical_part};

/// Where the pieces go.
pub(super) type Sink<'s> = dyn FnMut(&[u8]) + 's;

/// Writes the canonical form of a checked value to a sink.
pub(super) fn write<T: Serialize + ?Sized>(value: &T, sink: &mut Sink<'_>) -> Result<(), CanonicalError> {
    let mut names = Vec::new();
    match value.serialize(PartExtractor::Names(&mut names)) {
        Ok(()) => {
            names.sort_by_cached_key(|name| name.encode_utf16().collect::<Vec<u16>>());
            let mut before: &[u8] = b"{";
            for name in &names {
                sink(before);
                before = b",";
                sink(&canonical_part(name)?);
                sink(b":");
                let mut is_present = false;
                value
                    .serialize(PartExtractor::Member(name, sink, &mut is_present))
                    .and_then(|()| is_present.then_some(()).ok_or(ExtractionEnd::Whole))
                    .map_err(ExtractionEnd::into_error)?;
            }
            sink(if names.is_empty() { b"{}" } else { b"}" });
            Ok(())
        }
        Err(ExtractionEnd::List) => {
            value.serialize(PartExtractor::Items(sink)).map_err(ExtractionEnd::into_error)
        }
        Err(ExtractionEnd::Whole) => {
            sink(&canonical_part(value)?);
            Ok(())
        }
        Err(ExtractionEnd::Failed(error)) => Err(error),
    }
}

/// What one serialization of a value extracts.
enum PartExtractor<'w> {
    /// The names of a struct's members.
    Names(&'w mut Vec<&'static str>),
    /// The member with this name, and whether it exists.
    Member(&'static str, &'w mut Sink<'w>, &'w mut bool),
    /// The items of a list.
    Items(&'w mut Sink<'w>),
}

/// Why a serialization ended early.
#[derive(Debug, thiserror::Error)]
enum ExtractionEnd {
    /// The value is a list.
    #[error("a list")]
    List,
    /// The value is written as a whole.
    #[error("neither a list nor a struct")]
    Whole,
    /// A value has no canonical form.
    #[error(transparent)]
    Failed(#[from] CanonicalError),
}

impl ExtractionEnd {
    fn into_error(self) -> CanonicalError {
        match self {
            Self::Failed(error) => error,
            Self::List | Self::Whole => {
                CanonicalFault::Refused("the value serializes differently each time".to_owned()).into()
            }
        }
    }
}

impl ser::Error for ExtractionEnd {
    fn custom<T: std::fmt::Display>(message: T) -> Self {
        Self::Failed(ser::Error::custom(message))
    }
}

macro_rules! whole_values {
    ($($method:ident: $type:ty),* $(,)?) => {
        $(fn $method(self, _: $type) -> Result<(), ExtractionEnd> { Err(ExtractionEnd::Whole) })*
    };
}

impl<'w> Serializer for PartExtractor<'w> {
    type Ok = ();
    type Error = ExtractionEnd;
    type SerializeSeq = Items<'w>;
    type SerializeTuple = Impossible<(), ExtractionEnd>;
    type SerializeTupleStruct = Impossible<(), ExtractionEnd>;
    type SerializeTupleVariant = Impossible<(), ExtractionEnd>;
    type SerializeMap = Impossible<(), ExtractionEnd>;
    type SerializeStruct = Self;
    type SerializeStructVariant = Impossible<(), ExtractionEnd>;

    whole_values! {
        serialize_bool: bool,
        serialize_i8: i8,
        serialize_i16: i16,
        serialize_i32: i32,
        serialize_i64: i64,
        serialize_i128: i128,
        serialize_u8: u8,
        serialize_u16: u16,
        serialize_u32: u32,
        serialize_u64: u64,
        serialize_u128: u128,
        serialize_f32: f32,
        serialize_f64: f64,
        serialize_char: char,
        serialize_str: &str,
        serialize_bytes: &[u8],
        serialize_unit_struct: &'static str,
    }

    fn collect_str<T: std::fmt::Display + ?Sized>(self, _: &T) -> Result<(), ExtractionEnd> {
        Err(ExtractionEnd::Whole)
    }

    fn serialize_none(self) -> Result<(), ExtractionEnd> {
        Err(ExtractionEnd::Whole)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), ExtractionEnd> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), ExtractionEnd> {
        Err(ExtractionEnd::Whole)
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, _: &'static str) -> Result<(), ExtractionEnd> {
        Err(ExtractionEnd::Whole)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), ExtractionEnd> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<(), ExtractionEnd> {
        Err(ExtractionEnd::Whole)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Items<'w>, ExtractionEnd> {
        match self {
            Self::Items(sink) => Ok(Items { sink, before: b"[" }),
            Self::Names(_) | Self::Member(..) => Err(ExtractionEnd::List),
        }
    }

    fn serialize_tuple(self, _: usize) -> Result<Self::SerializeTuple, ExtractionEnd> {
        Err(ExtractionEnd::Whole)
    }

    fn serialize_tuple_struct(
        self,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleStruct, ExtractionEnd> {
        Err(ExtractionEnd::Whole)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, ExtractionEnd> {
        Err(ExtractionEnd::Whole)
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self::SerializeMap, ExtractionEnd> {
        Err(ExtractionEnd::Whole)
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self, ExtractionEnd> {
        match self {
            Self::Names(_) | Self::Member(..) => Ok(self),
            Self::Items(_) => Err(ExtractionEnd::Whole),
        }
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant, ExtractionEnd> {
        Err(ExtractionEnd::Whole)
    }
}

impl ser::SerializeStruct for PartExtractor<'_> {
    type Ok = ();
    type Error = ExtractionEnd;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), ExtractionEnd> {
        match self {
            Self::Names(names) => names.push(name),
            Self::Member(wanted, sink, is_present) if *wanted == name => {
                **is_present = true;
                write(value, *sink)?;
            }
            Self::Member(..) | Self::Items(_) => {}
        }
        Ok(())
    }

    fn end(self) -> Result<(), ExtractionEnd> {
        Ok(())
    }
}

/// The items of a list.
struct Items<'w> {
    sink: &'w mut Sink<'w>,
    /// The text before the next item.
    before: &'static [u8],
}

impl ser::SerializeSeq for Items<'_> {
    type Ok = ();
    type Error = ExtractionEnd;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, item: &T) -> Result<(), ExtractionEnd> {
        (self.sink)(std::mem::replace(&mut self.before, b","));
        (self.sink)(&canonical_part(item)?);
        Ok(())
    }

    fn end(self) -> Result<(), ExtractionEnd> {
        (self.sink)(if self.before == b"[" { b"[]" } else { b"]" });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::super::{Digest, canonical_digest, to_canonical};
    use super::*;

    /// A value of every shape.
    #[derive(Debug, Clone, Serialize)]
    struct Shapes {
        zeta: Option<Box<Self>>,
        #[serde(rename = "a")]
        one: Vec<Value>,
        #[serde(rename = "\u{1f600}", skip_serializing_if = "Option::is_none")]
        beyond: Option<u32>,
        #[serde(rename = "\u{ffff}")]
        last_of_plane: (u8, Wrapped),
        map: BTreeMap<String, Vec<u32>>,
        nothing: Empty,
        both: Vec<Either>,
        big: i128,
        letter: char,
    }

    #[derive(Debug, Clone, Serialize)]
    struct Wrapped(Vec<String>);

    #[derive(Debug, Clone, Serialize)]
    struct Empty {}

    #[derive(Debug, Clone, Serialize)]
    enum Either {
        Neither,
        This(Wrapped),
        That { b: f64, a: Option<u8> },
        Those(u8, ()),
    }

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(json!(null)),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "[a-c\"\n\u{1f600}\u{ffff}é]{0,4}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 12, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-c\u{1f600}\u{ffff}]{0,2}", inner, 0..4)
                    .prop_map(|members| json!(members)),
            ]
        })
    }

    fn shapes() -> impl Strategy<Value = Shapes> {
        let either = prop_oneof![
            Just(Either::Neither),
            prop::collection::vec("[ab]{0,2}", 0..3).prop_map(|texts| Either::This(Wrapped(texts))),
            (-9.0..9.0, any::<Option<u8>>()).prop_map(|(b, a)| Either::That { b, a }),
            any::<u8>().prop_map(|one| Either::Those(one, ())),
        ];
        let one = (
            prop::collection::vec(json(), 0..4),
            any::<Option<u32>>(),
            prop::collection::vec("[ab]{0,2}", 0..3),
            prop::collection::btree_map("[ab]{0,2}", prop::collection::vec(any::<u32>(), 0..3), 0..3),
            prop::collection::vec(either, 0..3),
            any::<char>(),
        );
        let one = one.prop_map(|(one, beyond, texts, map, both, letter)| Shapes {
            zeta: None,
            one,
            beyond,
            last_of_plane: (1, Wrapped(texts)),
            map,
            nothing: Empty {},
            both,
            big: -5,
            letter,
        });
        prop::collection::vec(one, 1..3).prop_map(|all| {
            let inside =
                |inner: Option<Box<Shapes>>, outer: Shapes| Some(Box::new(Shapes { zeta: inner, ..outer }));
            *all.into_iter().fold(None, inside).expect("there is at least one")
        })
    }

    proptest! {
        #[test]
        fn the_parts_make_up_the_canonical_form(value in json(), shapes in shapes()) {
            let form = to_canonical(&shapes).unwrap();
            let mut parts = Vec::new();
            write(&shapes, &mut |part| parts.extend_from_slice(part)).unwrap();
            prop_assert_eq!(String::from_utf8(parts), String::from_utf8(form.clone()));
            prop_assert_eq!(canonical_digest(&shapes).unwrap(), Digest::of(&form));
            prop_assert_eq!(canonical_digest(&[&shapes]).unwrap(), Digest::of(&to_canonical(&[&shapes]).unwrap()));
            prop_assert_eq!(canonical_digest(&value).unwrap(), Digest::of(&to_canonical(&value).unwrap()));
        }
    }

    #[test]
    fn a_value_without_a_canonical_form_has_no_digest() {
        #[derive(Serialize)]
        struct Outer {
            list: Vec<f64>,
        }
        let error = canonical_digest(&Outer { list: vec![1.0, f64::NAN] }).unwrap_err();
        assert_eq!(error.path, "$.list[1]");
    }

    /// Serializes differently each time.
    struct Fickle(std::cell::RefCell<Vec<Says>>);

    #[derive(Clone, Copy)]
    enum Says {
        Number,
        List,
        Member(&'static str),
    }

    impl Serialize for Fickle {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            match self.0.borrow_mut().remove(0) {
                Says::Number => serializer.serialize_u8(1),
                Says::List => ser::SerializeSeq::end(serializer.serialize_seq(None)?),
                Says::Member(name) => {
                    let mut members = serializer.serialize_struct("", 1)?;
                    ser::SerializeStruct::serialize_field(&mut members, name, &1)?;
                    ser::SerializeStruct::end(members)
                }
            }
        }
    }

    #[test]
    fn a_value_that_serializes_differently_each_time_is_refused() {
        use Says::{List, Member, Number};
        for (first, then) in [
            (List, Number),
            (List, Member("a")),
            (Member("a"), List),
            (Member("a"), Number),
            (Member("a"), Member("b")),
        ] {
            // `domain` serializes the value first.
            let fickle = Fickle(vec![first, first, then].into());
            let error = canonical_digest(&fickle).unwrap_err();
            assert!(matches!(error.fault, CanonicalFault::Refused(_)), "{error}");
        }
        let steady = Fickle(vec![Member("a"); 3].into());
        assert_eq!(canonical_digest(&steady), Ok(Digest::of(b"{\"a\":1}")));
    }
}
