//! What the server says.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::edits::Transaction;
use super::request::{Direction, Scope, Severity};
use crate::path::DocUri;
use crate::selector::SymbolId;
use crate::text::Range;

/// The facts of a bundle. One of the lists is there, which one the request says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Facts {
    /// Where the name is defined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definitions: Option<Vec<Location>>,
    /// Where the name is declared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declarations: Option<Vec<Location>>,
    /// Where its type is defined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub type_definitions: Option<Vec<Location>>,
    /// What implements it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub implementations: Option<Vec<Location>>,
    /// Every use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub references: Option<Vec<Location>>,
    /// Signature and documentation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hover: Option<Hover>,
    /// Outline or search result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub symbols: Option<Vec<Symbol>>,
    /// Calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<Vec<Call>>,
    /// What is wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diagnostics: Option<Diagnostics>,
    /// What can be renamed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renamable: Option<Renamable>,
    /// What the server proposes to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actions: Option<Vec<Action>>,
    /// What was written before, the latest first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transactions: Option<Vec<Transaction>>,
    /// `check`: what `--fail-on` asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// Who says so.
    pub provenance: Provenance,
    /// Definitions of the same member in other classes of the family; with `references` and `implementations`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overrides: Vec<Override>,
    /// Whether it is all; absent where the answer depends on one file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completeness: Option<Completeness>,
}

impl Facts {
    /// No facts yet, of the given provenance.
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
    /// The name that is there.
    pub name: String,
    /// Where it stands.
    pub location: Location,
}

/// What the server proposes to do at a place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Action {
    /// Its number for `--run`, beginning with 1.
    pub number: u32,
    /// What it is called.
    pub title: String,
    /// `quickfix`, `source.organizeImports`, ….
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Whether the server would choose it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub preferred: bool,
    /// Why it cannot be run now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled: Option<String>,
}

/// Who says what the facts say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Provenance {
    /// The language server.
    Lsp,
    /// Lanser's own reading of the syntax.
    Syntax,
    /// Lanser's index of the workspace, and the language server where the syntax does not tell.
    #[serde(rename = "index+lsp")]
    IndexLsp,
}

/// How a reference is known that the server does not claim by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UseProvenance {
    /// Asked about this place alone, the server leads to the symbol.
    Definition,
    /// The scopes and imports of the files lead to the symbol; the server does not check the code here.
    Scope,
    /// A use of a name under which an import binds the symbol; `via` is where.
    ImportAlias,
    /// A use of a name to which the symbol is assigned; `via` is where.
    Alias,
    /// The server claims it for the declaration in a stub, or for the source behind one.
    Stub,
    /// It calls the member of a base class or of an interface, named by `via`; the object may be of a class in which the
    /// symbol takes its place.
    Dispatch,
    /// An entry of `__all__`.
    Exported,
    /// A keyword argument of `dataclasses.replace`, `_replace` or `attrs.evolve`.
    Replace,
    /// A keyword in the head of a class whose base takes it.
    ClassKeyword,
    /// The key of a `TypedDict` or the name of an `Enum` member in brackets.
    Subscript,
    /// The receiver comes from a fixture that pytest passes.
    PytestFixture,
    /// The receiver is a parameter whose type the function's decorator declares.
    Decorator,
    /// Pytest passes the fixture by this name.
    FixtureRequest,
}

/// A place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Location {
    /// The file.
    pub uri: DocUri,
    /// The place in it.
    pub range: Range,
    /// A selector for the place.
    pub at: String,
    /// The identity of the definition whose name this is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub symbol_id: Option<SymbolId>,
    /// How it is known that this is a reference, where the server does not claim it by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provenance: Option<UseProvenance>,
    /// The alias, or the member of a class of the family, through which the symbol is reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// The line of source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
}

/// The definition of the same member in another class.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Override {
    /// The file.
    pub uri: DocUri,
    /// The name token.
    pub range: Range,
    /// A selector for it.
    pub at: String,
    /// The qualified name of the class in its module.
    pub class: String,
    /// How the class is related to the class of the symbol.
    pub relation: FamilyRelation,
    /// The line of source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
}

/// How a class is related to another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FamilyRelation {
    /// A base class, direct or not.
    Base,
    /// A derived class, direct or not.
    Derived,
    /// Another base of a derived class.
    Sibling,
}

/// Signature and documentation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Hover {
    /// Markdown; paths in it are replaced as in `uri`.
    pub markdown: String,
    /// What it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<Range>,
}

/// A named thing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Symbol {
    /// Its name.
    pub name: String,
    /// The names around it, outermost first, joined by dots.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// The LSP kind, in lower camel case.
    pub symbol_kind: String,
    /// The file.
    pub uri: DocUri,
    /// All of it.
    pub range: Range,
    /// Its name token, where the server says which.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selection_range: Option<Range>,
    /// A selector for its name.
    pub at: String,
    /// Its identity, for a definition of the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub symbol_id: Option<SymbolId>,
    /// The line of source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
}

/// One edge of a call hierarchy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// Which way the edge was found.
    pub direction: Direction,
    /// How many steps from the target, beginning with 1.
    pub depth: u32,
    /// Who calls.
    pub caller: Symbol,
    /// What is called.
    pub callee: Symbol,
    /// The places of the calls, all in the caller's file.
    pub sites: Vec<Location>,
}

/// What is wrong in a set of files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Diagnostics {
    /// Those of the asked severity and above.
    pub items: Vec<Diagnostic>,
    /// All of them, whatever is listed.
    pub counts: Counts,
    /// What `--fail-on` asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// How many files were checked.
    pub files_checked: u32,
    /// The counts of every file that has any.
    pub files: Vec<FileCounts>,
    /// Files that were asked for and could not be checked, each with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_checked: Vec<NotChecked>,
}

/// Whether diagnostics are as good as the caller wants them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Every file was checked, and no diagnostic has the given severity or a worse one.
    Pass,
    /// Some diagnostic has it, or a file was not checked; the program ends with exit code 1.
    Fail,
}

/// Numbers of diagnostics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Counts {
    /// Errors.
    pub error: u32,
    /// Warnings.
    pub warning: u32,
    /// Information.
    pub information: u32,
    /// Hints: unreachable and unused code.
    pub hint: u32,
}

impl Counts {
    /// Whether there is one of this severity or worse.
    #[must_use]
    pub const fn any_from(&self, severity: Severity) -> bool {
        match severity {
            Severity::Error => self.error > 0,
            Severity::Warning => self.error + self.warning > 0,
            Severity::Information => self.error + self.warning + self.information > 0,
            Severity::Hint => self.error + self.warning + self.information + self.hint > 0,
        }
    }

    /// Counts one more.
    pub const fn add(&mut self, severity: Severity) {
        match severity {
            Severity::Error => self.error += 1,
            Severity::Warning => self.warning += 1,
            Severity::Information => self.information += 1,
            Severity::Hint => self.hint += 1,
        }
    }
}

/// The counts of one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileCounts {
    /// The file.
    pub uri: DocUri,
    /// Its numbers.
    pub counts: Counts,
}

/// A file that could not be checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NotChecked {
    /// The file.
    pub uri: DocUri,
    /// Why.
    pub reason: String,
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Diagnostic {
    /// The file.
    pub uri: DocUri,
    /// The place in it.
    pub range: Range,
    /// A selector for the place.
    pub at: String,
    /// How bad.
    pub severity: Severity,
    /// The server's name of the rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The server's words; paths in them are replaced as in `uri`.
    pub message: String,
    /// `unnecessary`, `deprecated`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Other places that it is about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub related: Vec<Related>,
    /// The line of source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
}

/// Another place that a diagnostic is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Related {
    /// The place.
    pub location: Location,
    /// What of it.
    pub message: String,
}

/// Whether an answer over the workspace is all there is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Completeness {
    /// The verdict.
    pub status: CompletenessStatus,
    /// Why it is not `complete`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Which files could be made known to the server.
    pub scope: Scope,
    /// How many files of the workspace have the name, or an alias of it, as a word.
    pub files_with_name: u32,
    /// How many of them the server was shown.
    pub files_searched: u32,
    /// How many occurrences of the name and its aliases are known to be what; absent where occurrences play no part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explained: Option<ExplainedCounts>,
    /// Occurrences that may be uses, and cannot be proven to be.
    pub unresolved: Unresolved,
}

/// The verdict on completeness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CompletenessStatus {
    /// Every file with the name was searched, and every occurrence of it is explained.
    Complete,
    /// Some occurrences are not explained.
    Partial,
    /// Something was not looked at.
    Unknown,
}

/// How many occurrences of a name are what.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExplainedCounts {
    /// Uses of the symbol, all that are listed on any page.
    pub reference: u32,
    /// Definitions of the same member in other classes of the family.
    #[serde(rename = "override")]
    pub overriding: u32,
    /// Other symbols of the same name.
    pub other: u32,
    /// Words in comments and strings.
    pub text: u32,
}

/// Occurrences that may be uses, and cannot be proven to be.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Unresolved {
    /// How many, on all pages.
    pub count: u32,
    /// Those of this page, in the order of files and places.
    pub items: Vec<UnresolvedUse>,
}

/// An occurrence that may be a use, and cannot be proven to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UnresolvedUse {
    /// The file.
    pub uri: DocUri,
    /// The name.
    pub range: Range,
    /// A selector for it.
    pub at: String,
    /// What it is in the syntax: `identifier`, `attribute`, `keyword`, `string`.
    pub kind: String,
    /// What is before the dot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receiver: Option<String>,
    /// Why it cannot be proven.
    pub reason: String,
    /// The line of source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
}

/// Where the old name of a rename is still written afterwards.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Residue {
    /// How many occurrences.
    pub count: u32,
    /// How many of each kind: `identifier`, `attribute`, `string`, `comment`, ….
    pub kinds: BTreeMap<String, u32>,
    /// Some of them in order of place: identifiers and attributes before strings and comments.
    pub items: Vec<Occurrence>,
}

/// A textual occurrence of a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Occurrence {
    /// A selector for the place.
    pub at: String,
    /// What it is in the syntax.
    pub kind: String,
}
