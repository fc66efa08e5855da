//! The meaning of selectors: where what they name is now, by syntax alone and with no server.
//!
//! [`symbol`](symbol::symbol) takes a module and a chain of names through the import roots ([`modules`]), the definitions
//! of files ([`outline`]), imports, bases and aliases; [`place`] takes a line and a column. Both end in a
//! [`Target`](symbol::Target), in several, or in a reason with near names ([`near`]). [`occurrences`] finds where a name
//! stands in a text, against which a server's answer is held.
//!
//! Everything is synchronous and reads through `workspace::files::Files` only. Types are deliberately not inferred: what
//! an instance's attribute is depends on them, so such a selector is answered with a hint and not with a guess. Where
//! Python would decide at run time (branches, rebinding) every candidate is returned.

mod ast;
mod bases;
pub mod behind;
pub mod classes;
pub mod decorated;
pub mod definitions;
pub mod form;
pub mod hierarchy;
pub mod hop;
pub mod index;
pub mod locate;
mod lookup;
pub mod meaning;
pub mod modules;
pub mod near;
pub mod occurrences;
pub mod origin;
pub mod outline;
pub mod place;
pub mod pytest;
mod reading;
mod recover;
pub mod relocate;
mod remembered;
pub mod roles;
pub mod scopes;
mod stub;
pub mod symbol;
mod syntax;
#[cfg(test)]
mod tests;
pub mod usage;
mod walk;

/// Has the syntax trees of so many bytes of text remembered, if it were fewer: some ten times as much memory.
pub fn remember_trees(bytes: usize) {
    syntax::remember(bytes);
}

/// Drops the oldest of the remembered syntax trees, until those left are of no more than so many bytes of text.
pub fn forget_trees(beyond: usize) {
    syntax::forget(beyond);
}

/// Has so many bytes of what was read of files remembered, if it were fewer: about as much as the files are long.
pub fn remember_readings(bytes: usize) {
    remembered::remember(bytes);
}
