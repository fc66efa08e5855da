//! Making a server forget what it inferred.
//!
//! Pyright keeps every type that it inferred, and what it infers can depend on what it was asked before: two functions that
//! call each other get other types when the second is asked about first. The definition of `Relational.as_poly` at a call
//! in sympy's tests was two places after other questions and one on a fresh server. A changed document makes it throw all
//! inferred types away (not the parsed files), whatever the document is; so there is one of our own that no import can
//! reach and nothing on disk stands for. After 210 and 60 questions on flask and sympy a server that was renewed before
//! each one said what a fresh one says, but for uses of library names (see [`super::client::Client`]'s callers).
//!
//! The first question after that pays for the types of the builtins; so the document mentions the usual ones, and a hover
//! on it makes the server infer them when nobody waits. It takes 3 ms and saves as many. One that led the server through
//! `typing`, `dataclasses` and `enum` too took 15 ms and saved no more, and of two questions in a row the second waits for it.

use crate::path::AbsPath;

/// The document's place below the workspace's root. Folders whose name begins with a dot are never searched.
const PLACE: &str = ".lanser/renewal.py";

/// Literals and annotations.
const TEXT: &str = "\
a = [str(1)]
b = {'k': (1.0, None)}
def f(*c: int, **d: object) -> bytes: return b''
";

/// Where in the document a hover makes the server infer: 0-based line and UTF-16 column of `b`.
pub(super) const PROBED: (u32, u32) = (1, 0);

/// The document's path in a workspace.
pub(super) fn place(root: &AbsPath) -> AbsPath {
    root.join(PLACE)
}

/// The document's text, another one for each number.
pub(super) fn text(number: u64) -> String {
    format!("{TEXT}# {number}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hover_is_on_a_name() {
        let line = TEXT.lines().nth(PROBED.0 as usize).unwrap();
        assert!(line[PROBED.1 as usize..].starts_with("b = "));
        assert_ne!(text(1), text(2));
    }
}
