//! The selector language, in two equivalent forms.
//!
//! [`PositionSpec`] is the JSON form, a tagged union on `kind`; [`parse()`] and `Display` are the string form.
//! `parse(&spec.to_string()) == spec` for every spec, and printing a parsed selector gives its one canonical spelling.
//! No file is read here: `resolve` locates selectors.
//!
//! Lines and columns are 1-based in both forms and an end is exclusive; columns count in the spec's `indexing` unit.

pub mod anchor;
pub mod ast;
pub mod doc_version;
pub mod name;
pub mod parse;
mod print;
pub mod symbol_id;
#[cfg(test)]
pub(crate) mod tests;

use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use crate::path::DocUri;
use crate::text::ColumnUnit;

pub use anchor::{AnchorSpec, ContextHash};
pub use ast::{AstSpec, AstStep, Construct};
pub use doc_version::DocVersion;
pub use name::{DottedName, Identifier, ModuleName, QualName};
pub use parse::{SyntaxError, parse};
pub use symbol_id::{Sketch, SymbolId, SymidSpec};

/// A selector.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum PositionSpec {
    /// A position in a file: `src/app.py@L42:C7`.
    Cursor(CursorSpec),
    /// A range of a file: `src/app.py@R(42,7->44,1)`.
    Range(RangeSpec),
    /// A line of a file: `src/app.py@L42`.
    Line(LineSpec),
    /// A definition by its name: `py://pkg.mod#Class.method:sig`.
    Symbol(SymbolSpec),
    /// A definition by a name without a module, or with its file: `Class.method`, `tests/test_x.py::TestC::test_m`.
    Name(NameSpec),
    /// A construct by its path in the syntax tree: `ast://[module=pkg.mod]/[class=C]/[def=m]`.
    Ast(AstSpec),
    /// A snippet of a file: `anchor://src/app.py#"return%20view"`.
    Anchor(AnchorSpec),
    /// A definition by its structure: `sym://method:C.m:p:…`.
    Symid(SymidSpec),
}

/// A position in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CursorSpec {
    /// The file.
    pub uri: DocUri,
    /// 1-based line.
    #[serde(deserialize_with = "from_one")]
    #[schemars(range(min = 1))]
    pub line: u32,
    /// 1-based column in `indexing` units.
    #[serde(deserialize_with = "from_one")]
    #[schemars(range(min = 1))]
    pub col: u32,
    /// The unit of columns.
    #[serde(default)]
    pub indexing: ColumnUnit,
    /// The version that the selector was made from.
    #[serde(rename = "docVersion", default, skip_serializing_if = "Option::is_none")]
    pub doc_version: Option<DocVersion>,
}

/// Reads a line or a column.
fn from_one<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let value = u32::deserialize(deserializer)?;
    let wrong = || D::Error::custom("lines and columns are counted from 1");
    (value > 0).then_some(value).ok_or_else(wrong)
}

/// Reads a line and a column.
fn both_from_one<'de, D: Deserializer<'de>>(deserializer: D) -> Result<[u32; 2], D::Error> {
    let pair = <[u32; 2]>::deserialize(deserializer)?;
    let wrong = || D::Error::custom("lines and columns are counted from 1");
    pair.iter().all(|value| *value > 0).then_some(pair).ok_or_else(wrong)
}

/// A range of a file. Reading it from JSON fails if the end is before the start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RangeSpec {
    /// The file.
    pub uri: DocUri,
    /// 1-based line and column of the first character.
    pub start: [u32; 2],
    /// 1-based line and column after the last character.
    pub end: [u32; 2],
    /// The unit of columns.
    #[serde(default)]
    pub indexing: ColumnUnit,
    /// The version that the selector was made from.
    #[serde(rename = "docVersion", default, skip_serializing_if = "Option::is_none")]
    pub doc_version: Option<DocVersion>,
}

impl<'de> Deserialize<'de> for RangeSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct RangeFields {
            uri: DocUri,
            #[serde(deserialize_with = "both_from_one")]
            start: [u32; 2],
            #[serde(deserialize_with = "both_from_one")]
            end: [u32; 2],
            #[serde(default)]
            indexing: ColumnUnit,
            #[serde(rename = "docVersion", default)]
            doc_version: Option<DocVersion>,
        }
        let RangeFields { uri, start, end, indexing, doc_version } = RangeFields::deserialize(deserializer)?;
        if end < start {
            return Err(D::Error::custom("the end is before the start"));
        }
        Ok(Self { uri, start, end, indexing, doc_version })
    }
}

/// A line of a file: the name that it defines, or else the code on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LineSpec {
    /// The file.
    pub uri: DocUri,
    /// 1-based line.
    #[serde(deserialize_with = "from_one")]
    #[schemars(range(min = 1))]
    pub line: u32,
    /// The version that the selector was made from.
    #[serde(rename = "docVersion", default, skip_serializing_if = "Option::is_none")]
    pub doc_version: Option<DocVersion>,
}

/// A definition by module and name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SymbolSpec {
    /// The module and the name inside it, `pkg.mod:Class.method`.
    pub qualname: QualName,
    /// The parameter, if a parameter of the function is selected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub param: Option<Identifier>,
    /// The part of the definition.
    #[serde(default)]
    pub role: Role,
    /// The index of an overload, 0-based in source order; the implementation is last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overload: Option<u32>,
    /// The version that the selector was made from.
    #[serde(rename = "docVersion", default, skip_serializing_if = "Option::is_none")]
    pub doc_version: Option<DocVersion>,
}

/// A definition by its names alone, or by its file and names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NameSpec {
    /// The Python file that defines it. Without it the name is a module with a name inside it, `pkg.mod.Class`, or else the
    /// name of a definition of the workspace.
    #[serde(default, deserialize_with = "python_file", skip_serializing_if = "Option::is_none")]
    pub uri: Option<DocUri>,
    /// The name.
    pub name: DottedName,
    /// The parameter, if a parameter of the function is selected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub param: Option<Identifier>,
    /// The part of the definition.
    #[serde(default)]
    pub role: Role,
    /// The index of an overload, 0-based in source order; the implementation is last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overload: Option<u32>,
    /// The version that the selector was made from.
    #[serde(rename = "docVersion", default, skip_serializing_if = "Option::is_none")]
    pub doc_version: Option<DocVersion>,
}

impl NameSpec {
    /// A name without a file, a parameter, a role and a version.
    #[must_use]
    pub const fn new(name: DottedName) -> Self {
        Self { uri: None, name, param: None, role: Role::Def, overload: None, doc_version: None }
    }

    /// The same selection of the definition with this qualified name.
    #[must_use]
    pub fn qualified(&self, qualname: QualName) -> SymbolSpec {
        let Self { param, role, overload, .. } = self.clone();
        SymbolSpec { qualname, param, role, overload, doc_version: None }
    }
}

/// The path of a file whose definitions [`NameSpec`] selects: a suffix of Python ends it in the text form.
fn python_file<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<DocUri>, D::Error> {
    let uri = Option::<DocUri>::deserialize(deserializer)?;
    match uri {
        Some(uri) if !crate::path::is_python(&uri.to_string()) => {
            Err(D::Error::custom(format!("{uri} is not a .py, .pyi or .pyw file")))
        }
        uri => Ok(uri),
    }
}

/// A part of a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The name token.
    #[default]
    Def,
    /// From `def`, `class` or `async` to the colon, without decorators.
    Sig,
    /// The block.
    Body,
    /// The docstring literal.
    Doc,
}

impl Role {
    const ALL: [Self; 4] = [Self::Def, Self::Sig, Self::Body, Self::Doc];

    /// The name of the role in a selector.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Def => "def",
            Self::Sig => "sig",
            Self::Body => "body",
            Self::Doc => "doc",
        }
    }

    fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == name)
    }
}

impl PositionSpec {
    /// Replaces the URI of the file that the selector names.
    pub fn map_uri(&mut self, map: impl FnOnce(&DocUri) -> DocUri) {
        match self {
            Self::Cursor(cursor) => cursor.uri = map(&cursor.uri),
            Self::Range(range) => range.uri = map(&range.uri),
            Self::Anchor(anchor) => anchor.uri = map(&anchor.uri),
            Self::Line(line) => line.uri = map(&line.uri),
            Self::Name(name) => name.uri = name.uri.as_ref().map(map),
            Self::Symbol(_) | Self::Ast(_) | Self::Symid(_) => {}
        }
    }

    /// The file that the selector names; `None` if resolving the selector finds the file.
    #[must_use]
    pub const fn uri(&self) -> Option<&DocUri> {
        match self {
            Self::Cursor(cursor) => Some(&cursor.uri),
            Self::Range(range) => Some(&range.uri),
            Self::Anchor(anchor) => Some(&anchor.uri),
            Self::Line(line) => Some(&line.uri),
            Self::Name(name) => name.uri.as_ref(),
            Self::Symbol(_) | Self::Ast(_) | Self::Symid(_) => None,
        }
    }

    /// The version that the selector was made from.
    #[must_use]
    pub const fn doc_version(&self) -> Option<&DocVersion> {
        match self {
            Self::Cursor(spec) => spec.doc_version.as_ref(),
            Self::Range(spec) => spec.doc_version.as_ref(),
            Self::Line(spec) => spec.doc_version.as_ref(),
            Self::Symbol(spec) => spec.doc_version.as_ref(),
            Self::Name(spec) => spec.doc_version.as_ref(),
            Self::Ast(spec) => spec.doc_version.as_ref(),
            Self::Anchor(spec) => spec.doc_version.as_ref(),
            Self::Symid(spec) => spec.doc_version.as_ref(),
        }
    }

    /// Sets the version that the selector was made from.
    pub fn set_doc_version(&mut self, version: Option<DocVersion>) {
        match self {
            Self::Cursor(spec) => spec.doc_version = version,
            Self::Range(spec) => spec.doc_version = version,
            Self::Line(spec) => spec.doc_version = version,
            Self::Symbol(spec) => spec.doc_version = version,
            Self::Name(spec) => spec.doc_version = version,
            Self::Ast(spec) => spec.doc_version = version,
            Self::Anchor(spec) => spec.doc_version = version,
            Self::Symid(spec) => spec.doc_version = version,
        }
    }
}
