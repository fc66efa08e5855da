//! Conformance with RFC 8785: its test vectors, and comparison with other implementations. `fixtures/jcs/README.md` lists the sources.

mod documents;
mod features;
mod numbers;

use serde::Serialize;

use super::to_canonical;

fn canonical<T: Serialize + ?Sized>(value: &T) -> String {
    String::from_utf8(to_canonical(value).expect("the value has a canonical form")).expect("JSON is UTF-8")
}
