//! Requests and their options.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::analyzer::AnalyzerKind;
use super::edits::CheckName;
use super::object::{object, optional_object};
use super::server::ServerKind;
use crate::path::{DocUri, WorkspacePath};
use crate::selector::{ModuleName, PositionSpec};
use crate::text::ColumnUnit;

/// A request, as it is sent and as the bundle repeats it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// The command.
    pub cmd: Command,
    /// The selector; absent when the command is not about one place.
    #[serde(default, deserialize_with = "optional_object", skip_serializing_if = "Option::is_none")]
    pub selector: Option<PositionSpec>,
    /// The selector as it was given, where that is not its canonical string; `resolution.original` repeats it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original: Option<String>,
    /// `rename`: the new name; absent for other commands.
    #[serde(default, rename = "newName", skip_serializing_if = "Option::is_none")]
    pub new_name: Option<String>,
    /// Options that change the answer. Members that have their default value are absent.
    #[serde(default, deserialize_with = "object")]
    pub options: Options,
}

impl Request {
    /// Creates a request.
    #[must_use]
    pub fn new(
        cmd: Command,
        selector: Option<GivenSelector>,
        new_name: Option<String>,
        options: Options,
    ) -> Self {
        let (selector, original) =
            selector.map_or((None, None), |GivenSelector { spec, original }| (Some(spec), original));
        Self { cmd, selector, original, new_name, options }
    }

    /// Creates a request about a selector, with default options.
    #[must_use]
    pub fn about(cmd: Command, selector: PositionSpec) -> Self {
        Self::new(cmd, Some(selector.into()), None, Options::default())
    }

    /// The selector as it was given; empty without one.
    #[must_use]
    pub fn original(&self) -> String {
        let canonical = || self.selector.as_ref().map(ToString::to_string).unwrap_or_default();
        self.original.clone().unwrap_or_else(canonical)
    }

    /// Changes the URI of the selector. A selector that changes is no longer the one that was given.
    pub fn map_uri(&mut self, map: impl FnMut(&DocUri) -> DocUri) {
        let Some(selector) = &mut self.selector else { return };
        let given = selector.clone();
        selector.map_uri(map);
        if *selector != given {
            self.original = None;
        }
    }

    /// Whether the request writes to the workspace.
    #[must_use]
    pub fn writes(&self) -> bool {
        match self.cmd {
            Command::Rename | Command::Actions | Command::Apply => self.options.apply,
            Command::Undo => !self.options.list,
            _ => false,
        }
    }
}

/// A selector, and how it was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenSelector {
    /// The selector.
    pub spec: PositionSpec,
    /// The text that it was parsed from; `None` if that is its canonical string, or no string at all.
    pub original: Option<String>,
}

impl GivenSelector {
    /// A selector that was parsed from a text, in string or JSON form.
    #[must_use]
    pub fn parsed(spec: PositionSpec, text: &str) -> Self {
        let is_other = !text.starts_with('{') && spec.to_string() != text;
        Self { spec, original: is_other.then(|| text.to_owned()) }
    }
}

impl From<PositionSpec> for GivenSelector {
    fn from(spec: PositionSpec) -> Self {
        Self { spec, original: None }
    }
}

/// The commands, by their long names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Command {
    /// Where a symbol is defined.
    Definition,
    /// Where a symbol is declared; stubs come before sources.
    Declaration,
    /// Where the type of an expression is defined.
    TypeDefinition,
    /// What implements a symbol.
    Implementation,
    /// Every reference to a symbol.
    References,
    /// Signature and documentation.
    Hover,
    /// The outline of files, or a search in the workspace.
    Symbols,
    /// The callers or callees of a function.
    Calls,
    /// The base classes or subclasses of a class.
    TypeHierarchy,
    /// The diagnostics of files.
    Diagnostics,
    /// What a selector resolves to.
    Locate,
    /// Whether a symbol can be renamed.
    PrepareRename,
    /// Renames a symbol in the whole workspace.
    Rename,
    /// Lists or runs code actions.
    Actions,
    /// Applies an edit.
    Apply,
    /// How an edit changes the diagnostics.
    Check,
    /// Undoes a transaction, or lists transactions.
    Undo,
}

impl Command {
    /// Every command.
    pub const ALL: [Self; 17] = [
        Self::Definition,
        Self::Declaration,
        Self::TypeDefinition,
        Self::Implementation,
        Self::References,
        Self::Hover,
        Self::Symbols,
        Self::Calls,
        Self::TypeHierarchy,
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
            Self::TypeHierarchy => "typeHierarchy",
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

    /// The verbs of the command line that mean the command, where they differ from its long name.
    #[must_use]
    pub const fn verbs(self) -> &'static [&'static str] {
        match self {
            Self::Definition => &["def"],
            Self::Declaration => &["decl"],
            Self::TypeDefinition => &["typedef", "type-definition"],
            Self::Implementation => &["impl"],
            Self::References => &["refs"],
            Self::TypeHierarchy => &["types", "type-hierarchy"],
            Self::Diagnostics => &["diag"],
            Self::PrepareRename => &["prepare-rename"],
            Self::Rename => &["move"],
            Self::Hover | Self::Symbols | Self::Calls | Self::Locate => &[],
            Self::Actions | Self::Apply | Self::Check | Self::Undo => &[],
        }
    }

    /// Parses the long name or a verb.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|command| command.as_str() == name || command.verbs().contains(&name))
    }

    /// Whether another server can be asked the same.
    #[must_use]
    pub const fn takes_second_opinion(self) -> bool {
        matches!(self, Self::Definition | Self::References | Self::Rename)
    }

    /// Whether the command plans an edit.
    #[must_use]
    pub const fn edits(self) -> bool {
        matches!(self, Self::Rename | Self::Actions | Self::Apply | Self::Check)
    }
}

/// Options that change the answer. Every member is absent when it has its default value.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// The unit of columns in selectors, such as `at`. Default: `codepoint`.
    #[serde(skip_serializing_if = "is_default")]
    pub index_io: ColumnUnit,
    /// The files that may be opened in the server. Default: `workspace`.
    #[serde(skip_serializing_if = "is_default")]
    pub scope: Scope,
    /// `references`: leave out the declaration. Default: false.
    #[serde(skip_serializing_if = "is_default")]
    pub exclude_declaration: bool,
    /// `definition`, `references`, `rename`: another server that is asked the same. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agree: Option<ServerKind>,
    /// `symbols`: the name to search for in the workspace. Default: no search.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// `symbols`, `diagnostics`: files or folders relative to the workspace, sorted. Default: the whole workspace.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<String>")]
    pub paths: Vec<WorkspacePath>,
    /// `calls`: callers or callees.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub direction: Option<Direction>,
    /// `typeHierarchy`: base classes or subclasses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub types: Option<TypeDirection>,
    /// `calls`, `typeHierarchy`: the maximum distance from the target. Default: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth: Option<u32>,
    /// `diagnostics`: the lowest severity to list; all are counted. Default: `information`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub severity: Option<Severity>,
    /// `diagnostics`: the lowest severity that makes the verdict `fail`; `check`: the same for introduced diagnostics.
    /// Default: no verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fail_on: Option<Severity>,
    /// `diagnostics`: report only those that are new since `base`. Default: false.
    #[serde(skip_serializing_if = "is_default")]
    pub new: bool,
    /// `diagnostics` with `new`: the git revision to compare with. Default: `HEAD`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// `diagnostics`, `check`: analyzers whose diagnostics are added to those of the language server, sorted. Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub with: Vec<AnalyzerKind>,
    /// `locate`: the number of source lines in `preview`. Default: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preview: Option<u32>,
    /// `locate`: the form of the selector in `at`. Default: a cursor.
    #[serde(rename = "as", skip_serializing_if = "Option::is_none")]
    pub form: Option<SelectorForm>,
    /// `rename`: the module to rename, as a dotted name or a path relative to the workspace; then there is no selector, and the
    /// new name has the same form. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
    /// `rename`: rename a method, or a parameter of one, in all related classes. Default: false.
    #[serde(skip_serializing_if = "is_default")]
    pub family: bool,
    /// `rename`: places that are renamed although they are unresolved, as selectors, or `unresolved` for all of them. Sorted.
    /// Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub include: Vec<String>,
    /// `rename`: unresolved places that are something else, in the same form. Sorted. Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<String>,
    /// `rename`: the files whose diagnostics are compared. Default: `affected`.
    #[serde(skip_serializing_if = "is_default")]
    pub check: CheckScope,
    /// `rename`, `actions`, `apply`: write the edit if no check prevents it. Default: false.
    #[serde(skip_serializing_if = "is_default")]
    pub apply: bool,
    /// `apply`, `check`: the edit.
    #[serde(deserialize_with = "optional_object", skip_serializing_if = "Option::is_none")]
    pub edit: Option<EditInput>,
    /// `actions`: only actions of this LSP kind or a sub-kind. Default: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action_kind: Option<String>,
    /// `actions`: the action to run, by title or by number counted from 1. Default: list the actions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// `undo`: the transaction. Default: the latest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transaction: Option<String>,
    /// `undo`: list the transactions instead. Default: false.
    #[serde(skip_serializing_if = "is_default")]
    pub list: bool,
    /// What an edit may touch, and which checks are overridden.
    #[serde(deserialize_with = "object", skip_serializing_if = "is_default")]
    pub guards: Guards,
    /// The maximum number of items in the list of facts. Default and maximum: 100,000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// The cursor of the previous page, from `meta.limits.cursor`. Default: the first page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// An edit as it was given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EditInput {
    /// A `WorkspaceEdit` as JSON, a bundle with edits, or a unified diff.
    pub text: String,
    /// Whether `text` holds the bytes of the edit decoded as Latin-1, because they are not UTF-8. Absent when false.
    #[serde(default, skip_serializing_if = "is_default")]
    pub latin1: bool,
}

impl EditInput {
    /// Creates an edit from the bytes that were read.
    #[must_use]
    pub fn new(content: Vec<u8>) -> Self {
        match String::from_utf8(content) {
            Ok(text) => Self { text, latin1: false },
            Err(error) => {
                Self { text: error.as_bytes().iter().map(|&byte| char::from(byte)).collect(), latin1: true }
            }
        }
    }

    /// The bytes that were read; `None` if `latin1` is set and a character of `text` is not Latin-1.
    #[must_use]
    pub fn content(&self) -> Option<Vec<u8>> {
        if self.latin1 {
            self.text.chars().map(|c| u8::try_from(c).ok()).collect()
        } else {
            Some(self.text.as_bytes().to_vec())
        }
    }
}

/// What an edit may touch, and which checks are overridden. Every member is absent when it has its default, the
/// strictest value.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Guards {
    /// Globs of the only files that may be edited. Default: all files.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    /// Globs of the only files that the configuration of the workspace permits to be edited, in addition to `allow`.
    /// Default: all files.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub workspace_allow: Vec<String>,
    /// Globs of files that may not be edited. Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<String>,
    /// Which uncommitted changes are accepted. Default: `none`.
    #[serde(skip_serializing_if = "is_default")]
    pub dirty: DirtyPolicy,
    /// Whether files outside of the workspace may be edited, through links. Default: false.
    #[serde(skip_serializing_if = "is_default")]
    pub outside: bool,
    /// Whether a file with several hard links may be replaced; the other names keep the old content. Default: false.
    #[serde(skip_serializing_if = "is_default")]
    pub hard_links: bool,
    /// Names of checks that the caller overrides: the edit is applied even if they fail. Sorted. Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub overrides: Vec<CheckName>,
    /// How an edit is applied to files that changed since it was planned. Default: `rename`.
    #[serde(skip_serializing_if = "is_default")]
    pub strategy: Strategy,
}

/// Which uncommitted changes are accepted when an edit is applied, strictest first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DirtyPolicy {
    /// None in the whole worktree.
    #[default]
    None,
    /// Changes in files that are not edited.
    Elsewhere,
    /// Any changes.
    All,
}

/// How an edit is applied to files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Strategy {
    /// Write new files and rename them into place; the files must have the content that the edit was planned for.
    #[default]
    #[serde(rename = "rename")]
    Rename,
    /// Merge the edit with the changes made since, as git does.
    #[serde(rename = "3way")]
    ThreeWay,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The files that may be opened in the server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Every relevant file of the workspace, whatever the server's configuration includes.
    #[default]
    Workspace,
    /// The files that the server's configuration includes.
    Configured,
}

/// Whether the module of a rename is given as a path, not as a dotted name.
#[must_use]
pub fn is_module_path(text: &str) -> bool {
    text.contains('/') || crate::path::is_python(text)
}

/// The module that the selector of a rename is by itself: `py://pkg.mod`, or a path without a position. As in
/// [`Options::module`].
#[must_use]
pub fn module_of_selector(text: &str) -> Option<&str> {
    match text.strip_prefix("py://") {
        Some(name) => ModuleName::new(name).is_some().then_some(name),
        None => (!text.contains(['@', '#', ':', '?']) && is_module_path(text)).then_some(text),
    }
}

/// The files whose diagnostics a rename compares.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CheckScope {
    /// The files that the rename can affect. Files that import an edited module are left out where the renamed symbol cannot
    /// matter to them: see `edits.diagnostics.unaffected`.
    #[default]
    Affected,
    /// Also every file that imports an edited module.
    Importers,
}

/// A form of selector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SelectorForm {
    /// A line and a column.
    Cursor,
    /// A qualified name.
    Py,
    /// A path in the syntax tree.
    Ast,
    /// A snippet with the hash of its context.
    Anchor,
    /// A symbol ID.
    Sym,
}

/// The direction of a call hierarchy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Callers.
    #[default]
    Incoming,
    /// Callees.
    Outgoing,
}

/// The direction of a type hierarchy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TypeDirection {
    /// Base classes.
    Supertypes,
    /// Subclasses.
    #[default]
    Subtypes,
}

/// The severity of a diagnostic, in ascending order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// A hint, such as unused code.
    Hint,
    /// Information.
    Information,
    /// A warning.
    Warning,
    /// An error.
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
