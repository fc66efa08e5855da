//! What can be asked.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::edits::CheckName;
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
    /// `rename`: the new name.
    #[serde(default, rename = "newName", skip_serializing_if = "Option::is_none")]
    pub new_name: Option<String>,
    /// What changes the answer, where it is not the default.
    #[serde(default)]
    pub options: Options,
}

impl Request {
    /// A question about a selector, with default options.
    #[must_use]
    pub fn about(cmd: Command, selector: PositionSpec) -> Self {
        Self { cmd, selector: Some(selector), new_name: None, options: Options::default() }
    }

    /// Whether it is to write into the workspace.
    #[must_use]
    pub fn writes(&self) -> bool {
        match self.cmd {
            Command::Rename | Command::Actions | Command::Apply => self.options.apply,
            Command::Undo => !self.options.list,
            _ => false,
        }
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
    /// Whether a name can be renamed.
    PrepareRename,
    /// Another name for a symbol, everywhere.
    Rename,
    /// What the server proposes to do at a place.
    Actions,
    /// Any edit.
    Apply,
    /// What an edit does to the diagnostics.
    Check,
    /// Take a transaction back, or list them.
    Undo,
}

impl Command {
    /// All of them.
    pub const ALL: [Self; 16] = [
        Self::Definition,
        Self::Declaration,
        Self::TypeDefinition,
        Self::Implementation,
        Self::References,
        Self::Hover,
        Self::Symbols,
        Self::Calls,
        Self::Diagnostics,
        Self::Locate,
        Self::PrepareRename,
        Self::Rename,
        Self::Actions,
        Self::Apply,
        Self::Check,
        Self::Undo,
    ];

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
            Self::PrepareRename => "prepareRename",
            Self::Rename => "rename",
            Self::Actions => "actions",
            Self::Apply => "apply",
            Self::Check => "check",
            Self::Undo => "undo",
        }
    }

    /// Whether it plans an edit.
    #[must_use]
    pub const fn edits(self) -> bool {
        matches!(self, Self::Rename | Self::Actions | Self::Apply | Self::Check)
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
    /// `diagnostics`: the least severity that makes the verdict `fail`; `check`: the least of an introduced one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fail_on: Option<Severity>,
    /// `locate`: how many lines of source to tell (default 1).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preview: Option<u32>,
    /// `locate`: the form of selector that `at` takes.
    #[serde(rename = "as", skip_serializing_if = "Option::is_none")]
    pub form: Option<Form>,
    /// `rename`, `actions`, `apply`: write, when every check passes.
    #[serde(skip_serializing_if = "is_default")]
    pub apply: bool,
    /// `apply`, `check`: the edit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edit: Option<EditInput>,
    /// `actions`: only of this kind, or of one below it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action_kind: Option<String>,
    /// `actions`: which to run, by title or by number, beginning with 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// `undo`: which transaction; by default the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transaction: Option<String>,
    /// `undo`: tell the transactions instead.
    #[serde(skip_serializing_if = "is_default")]
    pub list: bool,
    /// What keeps an edit from being made.
    #[serde(skip_serializing_if = "is_default")]
    pub guards: Guards,
    /// The most items in the list of facts (default and maximum 100,000).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Where an earlier, cut answer continues.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// An edit as it came.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EditInput {
    /// A `WorkspaceEdit` as JSON, or a unified diff.
    pub text: String,
    /// Whether each character of `text` stands for the byte of the same number, because the edit is not UTF-8.
    #[serde(default, skip_serializing_if = "is_default")]
    pub bytes: bool,
}

impl EditInput {
    /// An edit as it was read.
    #[must_use]
    pub fn new(content: Vec<u8>) -> Self {
        match String::from_utf8(content) {
            Ok(text) => Self { text, bytes: false },
            Err(error) => {
                Self { text: error.as_bytes().iter().map(|&byte| char::from(byte)).collect(), bytes: true }
            }
        }
    }

    /// The bytes that were read; `None` when `text` holds what stands for none.
    #[must_use]
    pub fn content(&self) -> Option<Vec<u8>> {
        if self.bytes {
            self.text.chars().map(|c| u8::try_from(c).ok()).collect()
        } else {
            Some(self.text.as_bytes().to_vec())
        }
    }
}

/// What keeps an edit from being made. Every field is absent where it has its default, the strictest value.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Guards {
    /// Only files that one of these globs names may be edited; empty means all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    /// Only files that one of these globs of the workspace's own configuration names, too; empty means all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub within: Vec<String>,
    /// Files that one of these globs names may not be edited.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<String>,
    /// Which uncommitted changes may be there.
    #[serde(skip_serializing_if = "is_default")]
    pub dirty: Dirt,
    /// Whether files outside of the workspace may be edited, through links.
    #[serde(skip_serializing_if = "is_default")]
    pub outside: bool,
    /// Whether a file may be replaced that has other names, which keep the old content.
    #[serde(skip_serializing_if = "is_default")]
    pub hard_links: bool,
    /// Checks that the caller gives up, sorted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub given_up: Vec<CheckName>,
    /// How an edit is made to files that changed since it was planned.
    #[serde(skip_serializing_if = "is_default")]
    pub strategy: Strategy,
}

/// Which uncommitted changes may be there when an edit is made, strictest first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Dirt {
    /// None in the whole worktree.
    #[default]
    None,
    /// Any, but not in the files that are edited.
    Elsewhere,
    /// Any.
    All,
}

/// How an edit is made to files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Strategy {
    /// The files are replaced; they have to be what the edit was planned for.
    #[default]
    #[serde(rename = "rename")]
    Rename,
    /// What changed meanwhile and the edit are merged, as git merges.
    #[serde(rename = "3way")]
    ThreeWay,
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
