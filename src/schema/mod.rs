//! JSON Schemas of the public documents, validation against them, and a description of the command line as data.
//!
//! [`export`] returns the text in `schemas/`, which is generated from the types in `model` and `selector`; a test
//! compares the two. [`validate()`] reads a document as its type, which is as strict as the schema and stricter, and checks
//! that the parts of a bundle are consistent (digest, exit code, order of lists); tests compare it with a validator of
//! schemas. [`validate_lines`] does the same for JSON Lines. [`recognize()`] tells the kind of a document by its content, and
//! [`diff`] compares two schemas, such as an earlier one in `schemas/history/`. [`commands()`] describes a command line for
//! tool definitions.
//!
//! Not included, by intent: reading files, printing, drafts other than 2020-12, and schemas fetched from elsewhere.

mod commands;
mod consistency;
pub mod diff;
#[cfg(test)]
mod generate;
mod history;
mod kind;
mod lines;
mod problem;
mod recognize;
#[cfg(test)]
mod tests;
mod validate;

pub use commands::{ArgumentDescription, CommandDescription, CommandLine, ExitCode, PossibleValue, commands};
pub use history::{earlier, versions};
pub use kind::{SchemaKind, export};
pub use lines::{LineResult, LineResults, validate_lines};
pub use problem::{MAX_PROBLEMS, Problem, Problems};
pub use recognize::recognize;
pub use validate::{Validity, validate};
