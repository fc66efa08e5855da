//! What can be asked.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::path::WorkspacePath;
use crate::selector::PositionSpec;
use crate::text::ColumnUnit;

/// A request: the same data that a bundle echoes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// The question.
    pub cmd: Command,
    /// What it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<PositionSpec>,
    /// What changes the answer, where it is not the default.
    #[serde(default)]
    pub options: Options,
}

impl Request {
    /// A question about a selector, with default options.
    #[must_use]
    pub fn about(cmd: Command, selector: PositionSpec) -> Self {
        Self { cmd, selector: Some(selector), options: Options::default() }
    }
}

/// The questions, by their long names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Command {
    /// Where a name is defined.
    Definition,
    /// Where a name is declared (stubs before sources).
    Declaration,
    /// Where the type of an expression is defined.
    TypeDefinition,
    /// What implements it.
    Implementation,
    /// Every use of a symbol.
    References,
    /// Signature and documentation.
    Hover,
    /// The outline of a document, or a search over the workspace.
    Symbols,
    /// Who calls it, or what it calls.
    Calls,
    /// What the server finds wrong.
    Diagnostics,
    /// Where a selector is now.
    Locate,
}

impl Command {
    /// The long name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Definition => "definition",
            Self::Declaration => "declaration",
            Self::TypeDefinition => "typeDefinition",
            Self::Implementation => "implementation",
            Self::References => "references",
            Self::Hover => "hover",
            Self::Symbols => "symbols",
            Self::Calls => "calls",
            Self::Diagnostics => "diagnostics",
            Self::Locate => "locate",
        }
    }
}

/// What changes an answer. Every field is absent where it has its default.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Options {
    /// The unit of columns in `at` (default `codepoint`).
    #[serde(skip_serializing_if = "is_default")]
    pub index_io: ColumnUnit,
    /// Which files may be made known to the server.
    #[serde(skip_serializing_if = "is_default")]
    pub scope: Scope,
    /// `references`: leave the declaration out.
    #[serde(skip_serializing_if = "is_default")]
    pub exclude_declaration: bool,
    /// `symbols`: the name to search for over the workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// `symbols`, `diagnostics`: files or folders, relative to the workspace, sorted; empty means the whole workspace.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<String>")]
    pub paths: Vec<WorkspacePath>,
    /// `calls`: which way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub direction: Option<Direction>,
    /// `calls`: how many steps (default 1).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth: Option<u32>,
    /// `diagnostics`: the least severity that is listed (default `information`); all are counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub severity: Option<Severity>,
    /// `diagnostics`: the least severity that makes the verdict `fail`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fail_on: Option<Severity>,
    /// `locate`: how many lines of source to tell (default 1).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preview: Option<u32>,
    /// `locate`: the form of selector that `at` takes.
    #[serde(rename = "as", skip_serializing_if = "Option::is_none")]
    pub form: Option<Form>,
    /// The most items in the list of facts (default and maximum 100,000).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Where an earlier, cut answer continues.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Which files may be made known to the server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Every file of the workspace that can matter, whatever the server's configuration includes.
    #[default]
    Workspace,
    /// What the server's own configuration includes.
    Configured,
}

/// A form of selector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// A line and a column.
    Cursor,
    /// A qualified name.
    Py,
    /// An AST path.
    Ast,
    /// A snippet with its context hash.
    Anchor,
    /// A symbol id.
    Sym,
}

/// Which way a call hierarchy goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Who calls it.
    Incoming,
    /// What it calls.
    Outgoing,
}

/// How bad a diagnostic is; ordered from harmless to bad.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Greyed-out code and the like.
    Hint,
    /// Worth knowing.
    Information,
    /// Probably wrong.
    Warning,
    /// Wrong.
    Error,
}

impl Severity {
    /// The name of the severity.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hint => "hint",
            Self::Information => "information",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}
