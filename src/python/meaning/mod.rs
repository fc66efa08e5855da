//! Whether what a name means hangs on the type of something else, and whether that type has to be inferred.
//!
//! What Pyright infers can depend on what it was asked before; what is declared does not. So whoever asks many questions
//! wants to know which of them find the same answer beside any others. Three steps tell it: [`facts`] are what a file tells of
//! its names by itself ([`reader`]), among them *claims*: what must be declared elsewhere for a name to be. [`judge`] follows
//! those through imports and bases.
//!
//! Whatever is not known to be declared counts as inferred: a variable, what a call returns, what a decorator makes, what an
//! import leads to that is not found, a name that two places bind or one in a branch, a name that stands in a condition
//! (Pyright infers which functions never return, and with that which branches count). What a class or its instances have is
//! known where one place in all that it inherits from binds it ([`members`]).
//!
//! Two things are left out. Whether what a function gives that is called as a decorator is `staticmethod` itself; nobody
//! writes that. And asked for a name of a stub that has a source beside it, Pyright looks for it in the source, and where the
//! source makes it by a call, infers what that gives.

mod classes;
mod facts;
mod judge;
mod members;
mod narrowing;
mod reader;

use std::cell::RefCell;
use std::sync::Arc;

use facts::{Facts, INFERRED};
pub use judge::Found;
use judge::Judge;

use super::modules::ImportRoots;
use super::outline::Span;
use crate::path::AbsPath;
use crate::workspace::files::{Document, Files};

/// What the meaning of a name hangs on.
#[derive(Debug, Clone)]
pub enum Meaning {
    /// The scopes around it: it stands alone.
    Scoped,
    /// A type that the source declares: of a module, a class, a function, an instance of the class around a method, a
    /// parameter. No function's result and no variable's value has to be inferred for it.
    Declared,
    /// The same, if what the file refers to is declared.
    Claimed(Claims),
    /// A type that is inferred from what functions return and variables are given.
    Inferred,
}

/// What has to be declared elsewhere.
#[derive(Debug, Clone)]
pub struct Claims {
    file: AbsPath,
    facts: Arc<Facts>,
    number: u32,
}

/// What the meaning of a name token hangs on: of an attribute on the type of its object, of a keyword argument on that of what
/// is called.
#[must_use]
pub fn meaning(document: &Document, name: &Span) -> Meaning {
    if stands_alone(&document.text, name) {
        return Meaning::Scoped;
    }
    let facts = Facts::of(document);
    let Some(hanging) = &facts.hanging else { return Meaning::Inferred };
    match hanging.binary_search_by_key(&name.start, |(start, _)| *start as usize).map(|at| hanging[at].1) {
        // In a string or a comment.
        Err(_) if document.text[..name.start].trim_end().ends_with('.') => Meaning::Inferred,
        Err(_) => Meaning::Scoped,
        Ok(0) => Meaning::Declared,
        Ok(INFERRED) => Meaning::Inferred,
        Ok(number) => Meaning::Claimed(Claims { file: document.path.clone(), facts, number }),
    }
}

/// What it hangs on what decorators make of the function whose name begins at an offset; of anything else it hangs on nothing.
///
/// Asked for the definition of a function Pyright tells all overloads of what became of it.
#[must_use]
pub fn decoration(document: &Document, offset: usize) -> Meaning {
    let mut above = document.text[..offset].rsplit('\n').skip(1).map(str::trim);
    let last = above.find(|line| !line.is_empty() && !line.starts_with('#')).unwrap_or_default();
    // A decorator's line, or the last one of its arguments.
    if !last.starts_with('@') && !last.ends_with([')', ']', '}', ',']) {
        return Meaning::Declared;
    }
    let facts = Facts::of(document);
    let decorated = facts.decorated.binary_search_by_key(&offset, |(start, _)| *start as usize);
    match decorated.map(|at| facts.decorated[at].1) {
        Err(_) if facts.hanging.is_some() => Meaning::Declared,
        Err(_) | Ok(INFERRED) => Meaning::Inferred,
        Ok(number) => Meaning::Claimed(Claims { file: document.path.clone(), facts, number }),
    }
}

impl Claims {
    /// Whether all of it is declared. What was `found` in other files must have been found in the same state of them.
    #[must_use]
    pub fn hold(&self, files: &dyn Files, roots: &ImportRoots, found: &Found) -> bool {
        Judge { files, roots, found, seen: RefCell::default() }
            .hold(&self.file, &self.facts.claims[self.number as usize])
    }
}

/// Whether the line alone tells that a name is no attribute and no keyword argument.
fn stands_alone(text: &str, name: &Span) -> bool {
    let before = text[..name.start].rsplit('\n').next().unwrap_or_default().trim_end();
    let after = text[name.end..].split('\n').next().unwrap_or_default().trim_start();
    // What stands first or last in a line may go on in another.
    let no_attribute = !before.is_empty() && !before.ends_with(['.', '\\']);
    let no_keyword = !after.is_empty() && (after.starts_with("==") || !after.starts_with(['=', '#', '\\']));
    no_attribute && no_keyword
}

#[cfg(test)]
mod tests;
