//! Making a server forget what it inferred.
//!
//! Pyright keeps every type that it inferred, and what it infers can depend on what it was asked before: two functions that
//! call each other get other types when the second is asked about first. The definition of `Relational.as_poly` at a call
//! in sympy's tests was two places after other questions and one on a fresh server. A changed document makes it throw all
//! inferred types away (not the parsed files), whatever the document is; so there is one of our own that no import can
//! reach and nothing on disk stands for. After 210 and 60 questions on flask and sympy a server that was renewed before
//! each one said what a fresh one says, but for uses of library names (see [`super::client::Client`]'s callers).
//!
//! The first question after that pays for the types of the builtins, 5–25 ms; so the document mentions the usual ones, and
//! a hover on it makes the server infer them when nobody waits.

use crate::path::AbsPath;

/// The document's place below the workspace's root. Folders whose name begins with a dot are never searched.
const PLACE: &str = ".lanser/renewal.py";

/// Literals and a few classes, which lead the server through `builtins`, `typing`, `types` and `dataclasses`.
const TEXT: &str = "\
import dataclasses, enum, functools, typing
@dataclasses.dataclass
class A:
    a: dict[str, list[int]] = dataclasses.field(default_factory=dict)
    @property
    def b(self) -> tuple[float, ...]: return (1.0,)
    @functools.lru_cache
    def c(self, *d: object, **e: typing.Any) -> typing.Iterator[bytes]: yield b''
    @staticmethod
    def f() -> set[str] | None: return {str(i) for i in range(3) if i}
class B(A, metaclass=type): pass
class C(enum.Enum): D = 1
try: g = [f'{k}' for k, v in B().a.items()], lambda h: not h, B().b[0] + 1, next(B().c()), C.D.value
except (ValueError, KeyError) as error: raise error
";

/// Where in the document a hover makes the server infer: 0-based line and UTF-16 column of `g`.
pub(super) const PROBED: (u32, u32) = (12, 5);

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
        assert!(line[PROBED.1 as usize..].starts_with("g = "));
        assert_ne!(text(1), text(2));
    }
}
