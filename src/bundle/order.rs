//! Sorts every list of locations by (uri, sL, sC, eL, eC), then by the canonical form of the item. Exact duplicates are
//! removed.

use std::sync::Arc;

use serde::Serialize;

use crate::digest::to_canonical;
use crate::model::facts::{Call, Diagnostic, Location, Override, Symbol, TypeEdge, UnresolvedOccurrence};
use crate::model::request::{Direction, TypeDirection};
use crate::path::DocUri;
use crate::text::Range;

/// An item with a location.
pub trait HasLocation: Serialize {
    /// The file and the range in it.
    fn location(&self) -> (&DocUri, Range);
}

impl HasLocation for Location {
    fn location(&self) -> (&DocUri, Range) {
        (&self.uri, self.range)
    }
}

impl HasLocation for Override {
    fn location(&self) -> (&DocUri, Range) {
        (&self.uri, self.range)
    }
}

impl HasLocation for UnresolvedOccurrence {
    fn location(&self) -> (&DocUri, Range) {
        (&self.uri, self.range)
    }
}

impl HasLocation for Symbol {
    fn location(&self) -> (&DocUri, Range) {
        (&self.uri, self.range)
    }
}

impl HasLocation for Diagnostic {
    fn location(&self) -> (&DocUri, Range) {
        (&self.uri, self.range)
    }
}

impl HasLocation for Call {
    fn location(&self) -> (&DocUri, Range) {
        let far = match self.direction {
            Direction::Incoming => &self.caller,
            Direction::Outgoing => &self.callee,
        };
        (&far.uri, far.range)
    }
}

impl HasLocation for TypeEdge {
    fn location(&self) -> (&DocUri, Range) {
        let far = match self.direction {
            TypeDirection::Supertypes => &self.supertype,
            TypeDirection::Subtypes => &self.subtype,
        };
        (&far.uri, far.range)
    }
}

/// Sorts a list and removes exact duplicates.
pub fn sort<T: HasLocation>(items: &mut Vec<T>) {
    let mut last: Option<Arc<str>> = None;
    items.sort_by_cached_key(|item| {
        let (uri, range) = item.location();
        let uri = uri.to_string();
        let uri = last.take().filter(|last| **last == *uri).unwrap_or_else(|| uri.into());
        last = Some(uri.clone());
        (uri, range)
    });
    // Canonical forms are long and few items share a location, so only those are serialized. An item without a canonical form
    // has an empty one here; sealing reports it.
    let form = |item: &T| to_canonical(item).unwrap_or_default();
    let mut shared = false;
    for twins in
        items.chunk_by_mut(|one, other| one.location() == other.location()).filter(|twins| twins.len() > 1)
    {
        twins.sort_by_cached_key(form);
        shared = true;
    }
    if shared {
        items.dedup_by(|one, other| one.location() == other.location() && form(one) == form(other));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::text::Position;

    fn location() -> impl Strategy<Value = Location> {
        ("[ab]{1,2}", 0..3_u32, 0..3_u32, prop::option::of("[xy]")).prop_map(
            |(path, line, column, preview)| Location {
                uri: DocUri::parse(&path).unwrap(),
                range: Range::new(Position::new(line, column), Position::new(line, column + 1)),
                at: String::new(),
                symbol_id: None,
                provenance: None,
                agreement: None,
                via: None,
                preview,
            },
        )
    }

    proptest! {
        #[test]
        fn order_does_not_depend_on_the_order_of_arrival(
            (items, shuffled) in prop::collection::vec(location(), 0..12)
                .prop_flat_map(|items| (Just(items.clone()), Just(items).prop_shuffle()))
        ) {
            let (mut a, mut b) = (items, shuffled);
            sort(&mut a);
            sort(&mut b);
            prop_assert_eq!(&a, &b);
            let once = a.clone();
            sort(&mut a);
            prop_assert_eq!(&a, &once);
            prop_assert!(a.windows(2).all(|pair| pair[0] != pair[1]));
        }
    }
}
