//! The public documents as JSON Schemas, whether a document is one of them, and the command line as data.
//!
//! [`export`] gives the text of `schemas/`, which is generated from the types of `model` and `selector`; a test holds the
//! two together. [`validate()`] goes further than a schema can: after the schema it reads the document as the type, and of a bundle it
//! checks that the parts fit together (the digest, the exit code, the order of lists). [`validate_lines`] does the same for
//! JSON Lines. [`commands()`] describes a command line for tool definitions.
//!
//! Deliberately absent: reading files, printing, other drafts than 2020-12, and schemas that are fetched from anywhere.

mod commands;
mod content;
mod explain;
#[cfg(test)]
mod generate;
mod kind;
mod lines;
mod place;
mod problem;
#[cfg(test)]
mod tests;
mod validate;

pub use commands::{ArgumentDescription, CommandDescription, CommandLine, ExitCode, PossibleValue, commands};
pub use kind::{Kind, export};
pub use lines::{Line, Lines, validate_lines};
pub use problem::{MAX_PROBLEMS, Problem, Problems};
pub use validate::validate;
