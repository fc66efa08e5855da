//! Resolves selectors to their targets by syntax alone, without a language server.
//!
//! [`symbol`] resolves a module and a chain of names through the import roots ([`modules`]), the definitions of files
//! ([`outline`]), imports, base classes and aliases; [`position`] resolves a line and a column. Both return one
//! [`ResolvedTarget`](symbol::ResolvedTarget), several, or the reason for the failure with suggestions ([`not_found`]).
//! [`occurrences`] finds every occurrence of a name in a text, to check a server's references for completeness.
//!
//! Everything is synchronous and reads files through `workspace::files::Files` only. Types are deliberately not inferred:
//! the attributes of an instance depend on its type, so a selector of one fails with a hint instead of a guess. Where
//! Python decides at run time (branches, rebinding), every candidate is returned.

pub(crate) mod ast;
mod bases;
pub(crate) mod call_forms;
mod class_heads;
pub mod classes;
pub mod computed_bases;
pub mod decorated;
pub(crate) mod digest_cache;
pub mod entry_points;
pub mod foreign;
pub mod hierarchy;
mod lexical;
pub mod line;
pub mod local_variable;
mod lookup;
mod makers;
pub mod module_imports;
pub mod module_move;
pub mod modules;
pub mod not_found;
pub mod occurrences;
pub mod outline;
pub mod parsed_file;
pub mod passed_on;
pub mod position;
mod properties;
pub mod pytest;
mod recover;
mod registered;
mod replaceable;
pub mod roles;
pub mod scopes;
pub mod static_branches;
pub mod static_conditions;
pub(crate) mod stdlib;
pub mod step;
mod stub_location;
pub mod stub_source;
pub mod symbol;
pub(crate) mod syntax;
#[cfg(test)]
mod tests;
pub mod type_strings;
pub mod unpacked;
pub mod usage;
pub mod value_use;
mod walk;

/// Raises the limit of the cache of syntax trees to `bytes` of text, if it is lower. A tree takes some ten times the memory of
/// its text.
pub fn raise_tree_cache_limit(bytes: usize) {
    syntax::raise_cache_limit(bytes);
}

/// Drops the oldest cached syntax trees until the texts of the remaining ones have at most `bytes` together.
pub fn shrink_tree_cache(bytes: usize) {
    syntax::shrink_cache(bytes);
}
