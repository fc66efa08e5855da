//! The one order of every list of places: (uri, sL, sC, eL, eC), then the canonical form of the item. Exact duplicates go.

use std::sync::Arc;

use serde::Serialize;

use crate::digest::to_canonical;
use crate::model::facts::{Call, Diagnostic, Location, Override, Symbol, UnresolvedUse};
use crate::path::DocUri;
use crate::text::Range;

/// Something with a place.
pub trait Placed: Serialize {
    /// The file and the range in it.
    fn place(&self) -> (&DocUri, Range);
}

impl Placed for Location {
    fn place(&self) -> (&DocUri, Range) {
        (&self.uri, self.range)
    }
}

impl Placed for Override {
    fn place(&self) -> (&DocUri, Range) {
        (&self.uri, self.range)
    }
}

impl Placed for UnresolvedUse {
    fn place(&self) -> (&DocUri, Range) {
        (&self.uri, self.range)
    }
}

impl Placed for Symbol {
    fn place(&self) -> (&DocUri, Range) {
        (&self.uri, self.range)
    }
}

impl Placed for Diagnostic {
    fn place(&self) -> (&DocUri, Range) {
        (&self.uri, self.range)
    }
}

impl Placed for Call {
    fn place(&self) -> (&DocUri, Range) {
        let far = match self.direction {
            crate::model::request::Direction::Incoming => &self.caller,
            crate::model::request::Direction::Outgoing => &self.callee,
        };
        (&far.uri, far.range)
    }
}

/// Puts a list in its order and drops exact duplicates.
pub fn sort<T: Placed>(items: &mut Vec<T>) {
    let mut last: Option<Arc<str>> = None;
    items.sort_by_cached_key(|item| {
        let (uri, range) = item.place();
        let uri = uri.to_string();
        let uri = last.take().filter(|last| **last == *uri).unwrap_or_else(|| uri.into());
        last = Some(uri.clone());
        (uri, range)
    });
    // Few items share a place with another one, and canonical forms are long. An item without one has an empty one here; sealing
    // reports it.
    let form = |item: &T| to_canonical(item).unwrap_or_default();
    let mut shared = false;
    for twins in items.chunk_by_mut(|one, other| one.place() == other.place()).filter(|twins| twins.len() > 1)
    {
        twins.sort_by_cached_key(form);
        shared = true;
    }
    if shared {
        items.dedup_by(|one, other| one.place() == other.place() && form(one) == form(other));
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
