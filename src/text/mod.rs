//! Text and the coordinates in it: positions, ranges, column encodings, line starts, source decoding.
//!
//! Everything here is pure. Three column units exist in the outside world (UTF-8 bytes, UTF-16 code units,
//! Unicode scalar values) and two bases (servers count from 0, people from 1). [`LineIndex`] is the only
//! place that converts between them.

pub mod bounded_lines;
pub mod decode;
pub mod line_index;
pub mod position;
pub mod words;

pub use bounded_lines::BoundedLines;
pub use decode::{Decoded, SourceEncoding, decode_source};
pub use line_index::LineIndex;
pub use position::{ColumnUnit, Position, Range};
