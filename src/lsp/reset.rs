//! Makes a server drop its inferred types.
//!
//! Pyright keeps every type that it inferred, and what it infers can depend on earlier requests: two functions that
//! call each other get other types when the second is asked about first. The definition of `Relational.as_poly` at a
//! call in sympy's tests had two locations after other requests and one on a fresh server. Any change of a document
//! makes Pyright drop all inferred types (not the parsed files), so the client changes a document that no import can
//! reach and that does not exist on disk. After 210 and 60 requests on flask and sympy, a server that was reset
//! before each one answered like a fresh one, except for uses of library names (see the callers of
//! [`super::client::Client`]).
//!
//! The first request after a reset pays for the types of the builtins. So the document mentions the usual ones, and a
//! hover on it makes the server infer them while no request waits. This takes 3 ms and saves as many. A document that
//! led the server through `typing`, `dataclasses` and `enum` too took 15 ms and saved no more, and delays the second
//! of two requests in a row.

use crate::path::AbsPath;

/// The path of the document below the workspace's root. Folders whose name begins with a dot are never searched.
const RELATIVE_PATH: &str = ".lanser/renewal.py";

/// Uses the builtin types in literals and annotations.
const TEXT: &str = "\
a = [str(1)]
b = {'k': (1.0, None)}
def f(*c: int, **d: object) -> bytes: return b''
";

/// Where a hover makes the server infer the types: 0-based line and UTF-16 column of `b`.
pub(super) const HOVER_POSITION: (u32, u32) = (1, 0);

/// The path of the document in a workspace.
pub(super) fn path(root: &AbsPath) -> AbsPath {
    root.join(RELATIVE_PATH)
}

/// The text of the document, different for each number.
pub(super) fn text(number: u64) -> String {
    format!("{TEXT}# {number}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hover_position_is_a_name() {
        let line = TEXT.lines().nth(HOVER_POSITION.0 as usize).unwrap();
        assert!(line[HOVER_POSITION.1 as usize..].starts_with("b = "));
        assert_ne!(text(1), text(2));
    }
}
