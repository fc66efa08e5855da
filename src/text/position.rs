//! Positions and ranges of the language server protocol, and the units of columns.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The unit of columns.
///
/// The names are those of LSP 3.17 (`general.positionEncodings`), except that UTF-32 code units are called `codepoint`.
/// Source: LSP 3.17, "Position".
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize)]
pub enum ColumnUnit {
    /// Bytes of the UTF-8 form.
    #[serde(rename = "utf-8")]
    Utf8,
    /// Code units of the UTF-16 form; the default of LSP.
    #[serde(rename = "utf-16")]
    Utf16,
    /// Unicode scalar values; lanser's default in input and output.
    #[default]
    #[serde(rename = "codepoint")]
    Codepoint,
}

impl ColumnUnit {
    /// The spellings, for messages.
    pub const EXPECTED: &str = "utf-8, utf-16, codepoint, or utf-32, which is the same as codepoint";

    /// The number of units that `c` takes.
    #[must_use]
    pub const fn width(self, c: char) -> u32 {
        match self {
            Self::Utf8 => c.len_utf8() as u32,
            Self::Utf16 => c.len_utf16() as u32,
            Self::Codepoint => 1,
        }
    }

    /// The spelling in selectors and in `--index-io`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Utf8 => "utf-8",
            Self::Utf16 => "utf-16",
            Self::Codepoint => "codepoint",
        }
    }

    /// The spelling of LSP's `positionEncoding`, where scalar values are called `utf-32`.
    #[must_use]
    pub const fn as_lsp(self) -> &'static str {
        match self {
            Self::Utf8 => "utf-8",
            Self::Utf16 => "utf-16",
            Self::Codepoint => "utf-32",
        }
    }

    /// Parses either spelling, that of selectors or that of LSP.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "utf-8" => Some(Self::Utf8),
            "utf-16" => Some(Self::Utf16),
            "codepoint" | "utf-32" => Some(Self::Codepoint),
            _ => None,
        }
    }
}

impl<'de> Deserialize<'de> for ColumnUnit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let wrong =
            || serde::de::Error::custom(format!("unknown column unit {name:?}: expected {}", Self::EXPECTED));
        Self::parse(&name).ok_or_else(wrong)
    }
}

impl JsonSchema for ColumnUnit {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ColumnUnit".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let mut names = vec!["utf-8", "utf-16", "codepoint"];
        if generator.contract().is_deserialize() {
            names.push("utf-32");
        }
        schemars::json_schema!({
            "description": "The unit of columns: bytes of UTF-8, code units of UTF-16 (the default of LSP), or Unicode scalar values (the default of lanser), which LSP calls utf-32.",
            "type": "string",
            "enum": names,
        })
    }
}

impl fmt::Display for ColumnUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A position in a document: 0-based line and column, the column in the unit that was negotiated with the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Position {
    /// 0-based line.
    pub line: u32,
    /// 0-based column.
    pub column: u32,
}

impl Position {
    /// A position from its two numbers.
    #[must_use]
    pub const fn new(line: u32, column: u32) -> Self {
        Self { line, column }
    }
}

/// A range of a document, end exclusive. In JSON it is the flat array `[sL, sC, eL, eC]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Range {
    /// The first position.
    pub start: Position,
    /// The position after the last.
    pub end: Position,
}

impl Range {
    /// A range from its two ends.
    #[must_use]
    pub const fn new(start: Position, end: Position) -> Self {
        Self { start, end }
    }

    /// Whether `position` is inside, including both ends (a cursor after the last character still touches the range).
    #[must_use]
    pub fn touches(&self, position: Position) -> bool {
        self.start <= position && position <= self.end
    }

    /// Whether two ranges have a place in common; an empty range is in a range that contains or ends at it.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        let is_empty = self.start == self.end || other.start == other.end;
        let (start, end) = (self.start.max(other.start), self.end.min(other.end));
        start < end || is_empty && start == end
    }
}

impl Serialize for Range {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        [self.start.line, self.start.column, self.end.line, self.end.column].serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Range {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let [sl, sc, el, ec] = <[u32; 4]>::deserialize(deserializer)?;
        Ok(Self::new(Position::new(sl, sc), Position::new(el, ec)))
    }
}

impl JsonSchema for Range {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Range".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let mut schema = <[u32; 4]>::json_schema(generator);
        schema.insert(
            "description".into(),
            "[startLine, startColumn, endLine, endColumn], 0-based, end exclusive, columns in environment.positionEncoding"
                .into(),
        );
        schema
    }
}
