//! Text and coordinates: positions, ranges, column units, line starts, source decoding.
//!
//! Everything here is pure. Three column units are in use (UTF-8 bytes, UTF-16 code units, Unicode scalar values) and two
//! bases (servers count from 0, people from 1). Only [`LineIndex`] converts between them.

pub mod bounded_lines;
pub mod decode;
pub mod line_index;
pub mod names;
pub mod notes;
mod plural;
pub mod position;
pub mod shell;
pub mod words;

pub use bounded_lines::BoundedLines;
pub use decode::{Decoded, SourceEncoding, decode_source};
pub use line_index::LineIndex;
pub use notes::lines_without_notes;
pub use plural::plural;
pub use position::{ColumnUnit, Position, Range};
pub use shell::{shell_argument, shell_quote};
