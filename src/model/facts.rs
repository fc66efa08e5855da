//! The facts of a bundle: what the server, the syntax or the index says about the code.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::analyzer::{DiagnosticSource, SourceReport};
use super::edits::Transaction;
use super::request::{Direction, Scope, Severity, TypeDirection};
use super::server::ServerKind;
use crate::path::DocUri;
use crate::selector::SymbolId;
use crate::text::Range;

/// The facts of a bundle. The members from `definitions` to `verdict` hold the answer; only those that the command asks
/// for are present.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Facts {
    /// `definition`: where the symbol is defined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definitions: Option<Vec<Location>>,
    /// `declaration`: where the symbol is declared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declarations: Option<Vec<Location>>,
    /// `typeDefinition`: where the type of the expression is defined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub type_definitions: Option<Vec<Location>>,
    /// `implementation`: what implements the symbol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub implementations: Option<Vec<Location>>,
    /// `references`: every reference to the symbol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub references: Option<Vec<Location>>,
    /// `hover`: signature and documentation. `definition`: the signature of the first definition, as it is written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hover: Option<Hover>,
    /// `symbols`: the outline of files, or the result of a search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub symbols: Option<Vec<Symbol>>,
    /// `calls`: edges of the call hierarchy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<Vec<Call>>,
    /// `typeHierarchy`: edges of the type hierarchy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub types: Option<Vec<TypeEdge>>,
    /// `diagnostics`: the diagnostics of a set of files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diagnostics: Option<Diagnostics>,
    /// `prepareRename`: what can be renamed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renamable: Option<Renamable>,
    /// `actions`: the code actions that the server offers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actions: Option<Vec<Action>>,
    /// `undo` with `list`: the transactions, latest first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transactions: Option<Vec<Transaction>>,
    /// `check`: whether the edit passes `--fail-on`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// Where the facts come from.
    pub provenance: Provenance,
    /// Definitions of the same member in related classes; only with `references` and `implementations`. Absent when
    /// empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overrides: Vec<Override>,
    /// Whether the answer covers the whole workspace; absent when the answer depends on one file only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completeness: Option<Completeness>,
}

impl Facts {
    /// Creates facts without any answer.
    #[must_use]
    pub const fn new(provenance: Provenance) -> Self {
        Self {
            definitions: None,
            declarations: None,
            type_definitions: None,
            implementations: None,
            references: None,
            hover: None,
            symbols: None,
            calls: None,
            types: None,
            diagnostics: None,
            renamable: None,
            actions: None,
            transactions: None,
            verdict: None,
            provenance,
            overrides: Vec::new(),
            completeness: None,
        }
    }
}

/// What can be renamed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Renamable {
    /// The current name.
    pub name: String,
    /// The location of the name.
    pub location: Location,
}

/// A code action that the server offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Action {
    /// The number of the action for `--run`, counted from 1.
    pub number: u32,
    /// The title.
    pub title: String,
    /// The LSP kind, as in `quickfix` or `source.organizeImports`; absent if the server gives none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Whether the server prefers this action. Absent when false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub preferred: bool,
    /// Why the action cannot be run; absent when it can be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled: Option<String>,
}

/// Where facts come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Provenance {
    /// The language server.
    Lsp,
    /// The syntax of the files, as parsed by lanser.
    Syntax,
    /// Lanser's index of the workspace, and the language server where the syntax does not suffice.
    #[serde(rename = "index+lsp")]
    IndexLsp,
    /// The language server and the analyzers of `--with`.
    #[serde(rename = "compiler+lsp")]
    CompilerLsp,
}

/// The rule that establishes a reference that the server does not report itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UseProvenance {
    /// `textDocument/definition` at this occurrence leads to the symbol.
    Definition,
    /// The scopes and imports of the files lead to the symbol, in code that the server does not analyze.
    Scope,
    /// The occurrence uses a name that an import binds to the symbol; `via` is that import.
    ImportAlias,
    /// The occurrence uses a name that the symbol is assigned to; `via` is that assignment.
    Alias,
    /// The server reports it as a reference to the declaration in a stub, or to the source of a stub.
    Stub,
    /// It calls the member of a base class or protocol, given in `via`, on an object that may be of a class where the
    /// symbol overrides that member.
    Dispatch,
    /// An entry of `__all__`.
    Exported,
    /// A keyword argument of `dataclasses.replace`, `_replace` or `attrs.evolve`.
    Replace,
    /// A keyword argument in a class header, accepted by a base class.
    ClassKeyword,
    /// A string that is the key of a `TypedDict`, the name of an `Enum` member, or the attribute of a `setattr`.
    Subscript,
    /// The receiver comes from a fixture that pytest injects.
    PytestFixture,
    /// The receiver is a parameter whose type the function's decorator declares.
    Decorator,
    /// The parameter name by which pytest injects the fixture.
    FixtureRequest,
    /// Only the other server of `agree` reports it.
    OtherServer,
}

/// A range in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Location {
    /// The file.
    pub uri: DocUri,
    /// The range.
    pub range: Range,
    /// A selector of the location.
    pub at: String,
    /// The stable ID of the definition whose name this is; absent when the location is not the name of a workspace
    /// definition.
    #[serde(default, rename = "symbolId", skip_serializing_if = "Option::is_none")]
    pub symbol_id: Option<SymbolId>,
    /// The rule that establishes the reference; absent when the server reports it itself, and outside of `references`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provenance: Option<UseProvenance>,
    /// With `agree`: the servers by whose answers the location is known; absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agreement: Option<Agreement>,
    /// The alias, or the member of a related class, through which the symbol is reached; absent when it is reached
    /// directly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// The source line; absent when the file cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
}

/// The servers by whose answers a location is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Agreement {
    /// Both.
    Both,
    /// Only Pyright.
    Pyright,
    /// Only basedpyright.
    Basedpyright,
    /// Only ty.
    Ty,
}

impl From<ServerKind> for Agreement {
    fn from(server: ServerKind) -> Self {
        match server {
            ServerKind::Pyright => Self::Pyright,
            ServerKind::Basedpyright => Self::Basedpyright,
            ServerKind::Ty => Self::Ty,
        }
    }
}

/// The definition of the same member in a related class.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Override {
    /// The file.
    pub uri: DocUri,
    /// The range of the name.
    pub range: Range,
    /// A selector of the name.
    pub at: String,
    /// The qualified name of the class in its module.
    pub class: String,
    /// How the class is related to the class of the symbol.
    pub relation: FamilyRelation,
    /// The source line; absent when the file cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
}

/// How a class is related to the class of the symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FamilyRelation {
    /// A direct or indirect base class.
    Base,
    /// A direct or indirect subclass.
    Derived,
    /// Another base class of a subclass.
    Sibling,
}

/// Signature and documentation; with `definitions` the signature alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Hover {
    /// The text as Markdown; paths in it are replaced as in `uri`.
    pub markdown: String,
    /// The range that the text is about; absent if the server gives none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<Range>,
    /// `syntax` for the signature as it is written in the source; absent for the server's text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provenance: Option<Provenance>,
}

/// A symbol: a class, function, variable or other definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Symbol {
    /// The name.
    pub name: String,
    /// The names of the enclosing definitions, outermost first, joined by dots; absent at the top level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// The LSP symbol kind in lower camel case, as in `enumMember`.
    pub symbol_kind: String,
    /// The file.
    pub uri: DocUri,
    /// The range of the whole definition.
    pub range: Range,
    /// The range of the name; absent if the server gives none.
    #[serde(default, rename = "selectionRange", skip_serializing_if = "Option::is_none")]
    pub selection_range: Option<Range>,
    /// A selector of the name.
    pub at: String,
    /// The stable ID of the symbol; absent for a symbol outside of the workspace.
    #[serde(default, rename = "symbolId", skip_serializing_if = "Option::is_none")]
    pub symbol_id: Option<SymbolId>,
    /// The source line; absent when the file cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
}

/// An edge of a call hierarchy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// The direction in which the edge was followed.
    pub direction: Direction,
    /// The distance from the target in calls, beginning with 1.
    pub depth: u32,
    /// The symbol that calls.
    pub caller: Symbol,
    /// The symbol that is called.
    pub callee: Symbol,
    /// The locations of the calls, all in the caller's file.
    pub sites: Vec<Location>,
}

/// An edge of a type hierarchy: a class and one of its direct bases.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TypeEdge {
    /// The direction in which the edge was followed.
    pub direction: TypeDirection,
    /// The distance from the target, beginning with 1.
    pub depth: u32,
    /// The class that inherits.
    pub subtype: Symbol,
    /// The base class.
    pub supertype: Symbol,
}

/// The diagnostics of a set of files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Diagnostics {
    /// The diagnostics of the requested severity or worse.
    pub items: Vec<Diagnostic>,
    /// The number of all diagnostics by severity, listed or not. With `--new`, like `files` and `verdict`, only of new ones.
    pub counts: Counts,
    /// With `--new`: how the diagnostics compare with those at the base; absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<BaseComparison>,
    /// Whether the files pass `--fail-on`; absent without `--fail-on`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// The number of files checked.
    pub files_checked: u32,
    /// The counts of every file that has diagnostics.
    pub files: Vec<FileCounts>,
    /// Requested files that could not be checked. Absent when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_checked: Vec<NotChecked>,
    /// The sources of the diagnostics; absent when the language server is the only one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<SourceReport>,
}

/// How the diagnostics of the workspace compare with those of a git revision. Hints are not compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BaseComparison {
    /// The commit ID of the revision.
    pub commit: String,
    /// The number of diagnostics that are only at the base.
    pub fixed: Counts,
    /// The number of diagnostics that are in both.
    pub kept: Counts,
    /// Why the diagnostics at the base may not be exact; absent when nothing is known against them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caveat: Option<String>,
}

/// The result of `--fail-on`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Every file was checked by every source, and no diagnostic has the given severity or a worse one.
    Pass,
    /// A diagnostic has the given severity or a worse one, or a file was not checked by a source; the exit code is 1.
    Fail,
}

/// The number of diagnostics by severity.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Counts {
    /// The number of errors.
    pub error: u32,
    /// The number of warnings.
    pub warning: u32,
    /// The number of informational diagnostics.
    pub information: u32,
    /// The number of hints, such as unreachable and unused code.
    pub hint: u32,
}

impl Counts {
    /// Whether there is a diagnostic of this severity or worse.
    #[must_use]
    pub const fn any_from(&self, severity: Severity) -> bool {
        match severity {
            Severity::Error => self.error > 0,
            Severity::Warning => self.error + self.warning > 0,
            Severity::Information => self.error + self.warning + self.information > 0,
            Severity::Hint => self.error + self.warning + self.information + self.hint > 0,
        }
    }

    /// Counts one more diagnostic.
    pub const fn add(&mut self, severity: Severity) {
        match severity {
            Severity::Error => self.error += 1,
            Severity::Warning => self.warning += 1,
            Severity::Information => self.information += 1,
            Severity::Hint => self.hint += 1,
        }
    }
}

/// The number of diagnostics in one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileCounts {
    /// The file.
    pub uri: DocUri,
    /// The number of diagnostics by severity.
    pub counts: Counts,
}

/// A file that could not be checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NotChecked {
    /// The file.
    pub uri: DocUri,
    /// Why it could not be checked.
    pub reason: String,
}

/// A diagnostic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Diagnostic {
    /// The file.
    pub uri: DocUri,
    /// The range.
    pub range: Range,
    /// A selector of the location.
    pub at: String,
    /// What reports it; absent when only the language server was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<DiagnosticSource>,
    /// The severity.
    pub severity: Severity,
    /// The source's name of the rule; absent if it gives none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The source's message; paths in it are replaced as in `uri`.
    pub message: String,
    /// `diagnostics`: the dotted name of the definition that contains it, without the module; absent outside of definitions, and for
    /// hints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub symbol: Option<String>,
    /// LSP tags: `unnecessary`, `deprecated`. Absent when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Related locations. Absent when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub related: Vec<Related>,
    /// The source line; absent when the file cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
}

/// A location related to a diagnostic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Related {
    /// The location.
    pub location: Location,
    /// How it is related.
    pub message: String,
}

/// Whether every occurrence of a name in the workspace is accounted for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Completeness {
    /// The verdict.
    pub status: CompletenessStatus,
    /// Why the status is not `complete`; absent when it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The files that could be opened in the server.
    pub scope: Scope,
    /// The number of workspace files that contain the name, or an alias of it, as an identifier.
    pub files_with_name: u32,
    /// The number of these files that were opened in the server.
    pub files_searched: u32,
    /// The number of occurrences of the name and its aliases by explanation; absent when occurrences were not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explained: Option<ExplainedCounts>,
    /// With `agree`: how the answers of the two servers compare; absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agreement: Option<AgreementCounts>,
    /// Occurrences that are neither confirmed as references nor explained otherwise.
    pub unresolved: Unresolved,
}

/// How the answers of two servers compare. `main` is the server of `environment.tool`, `other` that of `environment.otherTool`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgreementCounts {
    /// References by the answers of both.
    pub both: u32,
    /// References by the answers of the main server only.
    pub main: u32,
    /// References by the answers of the other server only.
    pub other: u32,
    /// Occurrences that only the other server resolves, to another symbol; they are among `explained.other`.
    #[serde(rename = "otherSymbols")]
    pub other_symbols: u32,
    /// Occurrences that are the symbol for one server and another symbol for the other; they are unresolved.
    pub contradictions: u32,
}

/// The verdict on completeness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CompletenessStatus {
    /// Every file with the name was searched, and every occurrence of the name is explained.
    Complete,
    /// Some occurrences are unresolved.
    Partial,
    /// Some files or occurrences were not examined.
    Unknown,
}

/// The number of occurrences of a name by explanation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExplainedCounts {
    /// References to the symbol, on all pages.
    pub reference: u32,
    /// Definitions of the same member in related classes.
    #[serde(rename = "override")]
    pub overriding: u32,
    /// Occurrences that resolve to another symbol of the same name.
    pub other: u32,
    /// Words in comments and strings.
    pub text: u32,
}

/// Occurrences that are neither confirmed as references nor explained otherwise.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Unresolved {
    /// The number of unresolved occurrences, on all pages.
    pub count: u32,
    /// The unresolved occurrences of this page, sorted by location.
    pub items: Vec<UnresolvedOccurrence>,
}

/// An unresolved occurrence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UnresolvedOccurrence {
    /// The file.
    pub uri: DocUri,
    /// The range of the name.
    pub range: Range,
    /// A selector of the name.
    pub at: String,
    /// The kind of syntax: `identifier`, `attribute`, `keyword` or `string`.
    pub kind: String,
    /// The source text before the dot; absent when it is not an attribute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receiver: Option<String>,
    /// Why the occurrence is unresolved.
    pub reason: String,
    /// The source line; absent when the file cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
}

/// Occurrences of the old name that a rename leaves.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Residue {
    /// The number of occurrences.
    pub count: u32,
    /// The number of occurrences by kind: `identifier`, `attribute`, `string`, `comment` and others.
    pub kinds: BTreeMap<String, u32>,
    /// Some of the occurrences: identifiers and attributes before strings and comments, then sorted by location.
    pub items: Vec<Occurrence>,
}

/// An occurrence of a name in a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Occurrence {
    /// A selector of the location.
    pub at: String,
    /// The kind of syntax.
    pub kind: String,
    /// The source line; absent when it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
}
