//! What a server answers, in plain types: paths instead of URIs, ranges in the negotiated unit, nothing of the wire.
//!
//! Order is the server's. Texts are the server's too: hovers and messages may hold U+00A0 and absolute paths.

use serde_json::Value;

use crate::model::edits::WorkspaceEdit;
use crate::model::server::ServerKind;
use crate::path::{AbsPath, FileUri};
use crate::text::Range;

/// A list out of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing<T> {
    /// What could be read.
    pub items: Vec<T>,
    /// How many more there were that do not lie in a local file, or nowhere in it.
    pub skipped: u32,
}

/// A stretch of a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Which file.
    pub path: AbsPath,
    /// Where in it. For a definition that is its name.
    pub range: Range,
}

/// What a server shows about a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HoverText {
    /// Markdown. Parts of an answer in the old form are joined by empty lines, code among them is fenced.
    pub markdown: String,
    /// The stretch that it is about, when the server says so.
    pub range: Option<Range>,
}

/// LSP's kind of a symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SymbolKind(pub u32);

impl SymbolKind {
    /// LSP's name of the kind, in camel case; `unknown` for a number that LSP 3.17 does not have.
    #[must_use]
    pub fn name(self) -> &'static str {
        const NAMES: [&str; 26] = [
            "file",
            "module",
            "namespace",
            "package",
            "class",
            "method",
            "property",
            "field",
            "constructor",
            "enum",
            "interface",
            "function",
            "variable",
            "constant",
            "string",
            "number",
            "boolean",
            "array",
            "object",
            "key",
            "null",
            "enumMember",
            "struct",
            "event",
            "operator",
            "typeParameter",
        ];
        let index = usize::try_from(self.0).ok().and_then(|number| number.checked_sub(1));
        index.and_then(|index| NAMES.get(index)).copied().unwrap_or("unknown")
    }
}

/// A symbol of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symbol {
    /// Its name.
    pub name: String,
    /// A signature or the like.
    pub detail: Option<String>,
    /// What it is.
    pub kind: SymbolKind,
    /// All of it.
    pub range: Range,
    /// Its name.
    pub selection_range: Range,
    /// Whether it is marked as deprecated.
    pub deprecated: bool,
    /// The name of what it is in, from servers that answer with a flat list.
    pub container: Option<String>,
    /// What is in it; empty from servers that answer with a flat list.
    pub children: Vec<Self>,
}

/// A symbol of the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceSymbol {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: SymbolKind,
    /// The name of what it is in.
    pub container: Option<String>,
    /// Where it is.
    pub place: Place,
    /// Whether it is marked as deprecated.
    pub deprecated: bool,
}

/// A function or the like, as one end of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct CallItem {
    /// Its name.
    pub name: String,
    /// A signature, a module or the like.
    pub detail: Option<String>,
    /// What it is.
    pub kind: SymbolKind,
    /// The file that it is in.
    pub path: AbsPath,
    /// All of it.
    pub range: Range,
    /// Its name.
    pub selection_range: Range,
    /// As it came, because the server wants it back with data of its own in it.
    pub(super) wire: Value,
}

impl CallItem {
    /// The module of a file, as Pyright names the caller of a call outside of functions.
    #[must_use]
    pub fn module(path: AbsPath) -> Self {
        const MODULE: SymbolKind = SymbolKind(2);
        let (name, range) = (format!("(module) {}", path.file_name()), Range::default());
        Self { name, detail: None, kind: MODULE, path, range, selection_range: range, wire: Value::Null }
    }

    /// Whether it is a module, of which no more can be asked.
    #[must_use]
    pub fn is_module(&self) -> bool {
        self.selection_range == Range::default()
    }
}

/// A caller, or a callee, with the calls.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The other end.
    pub item: CallItem,
    /// Where the calls are: in the caller's file, whichever end that is.
    pub ranges: Vec<Range>,
}

/// How bad a diagnostic is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// LSP's 1; also what a diagnostic without one counts as.
    Error,
    /// LSP's 2.
    Warning,
    /// LSP's 3.
    Information,
    /// LSP's 4.
    Hint,
}

/// What a diagnostic says besides its message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DiagnosticTag {
    /// Unused or unreachable code.
    Unnecessary,
    /// Deprecated code.
    Deprecated,
}

/// Another place that a diagnostic is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Related {
    /// Where.
    pub place: Place,
    /// What about it.
    pub message: String,
}

/// What a server finds wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Where.
    pub range: Range,
    /// How bad.
    pub severity: Severity,
    /// The rule; numbers are in decimal.
    pub code: Option<String>,
    /// Where the rule is explained.
    pub code_description: Option<String>,
    /// Which tool.
    pub source: Option<String>,
    /// The message.
    pub message: String,
    /// Tags that LSP 3.17 knows.
    pub tags: Vec<DiagnosticTag>,
    /// Other places.
    pub related: Vec<Related>,
}

/// What can be renamed at a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Renamable {
    /// Where the name stands, when the server says so.
    pub range: Option<Range>,
    /// The text to begin with, when the server says so.
    pub placeholder: Option<String>,
}

/// What a server proposes to do.
#[derive(Debug, Clone, PartialEq)]
pub struct CodeAction {
    /// What it is called.
    pub title: String,
    /// Its kind.
    pub kind: Option<String>,
    /// Whether the server would choose it.
    pub preferred: bool,
    /// Why it cannot be run.
    pub disabled: Option<String>,
    /// What it edits, when that is known already.
    pub edit: Option<WorkspaceEdit>,
    /// What else the server does for it.
    pub command: Option<ServerCommand>,
    /// As it came, because a server that fills it in later wants it back.
    pub(super) wire: Value,
}

impl CodeAction {
    /// Whether the server may have left something out. A bare command is no action, and is not asked about.
    #[must_use]
    pub fn may_be_resolved(&self) -> bool {
        self.edit.is_none() && !self.wire["command"].is_string()
    }
}

/// Something that the server does when it is told to; what it would write comes as edits.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerCommand {
    /// Its name.
    pub name: String,
    pub(super) arguments: Value,
}

impl ServerCommand {
    /// The command that puts the imports of a file in order, with the names that Pyright and its forks know.
    #[must_use]
    pub fn organize_imports(server: ServerKind, path: &AbsPath) -> Self {
        let arguments = serde_json::json!([FileUri::from_path(path).as_str()]);
        Self { name: format!("{}.organizeimports", server.as_str()), arguments }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_the_names_of_the_standard() {
        for kind in 1..=26 {
            let theirs: lsp_types::SymbolKind = serde_json::from_value(kind.into()).unwrap();
            let theirs = format!("{theirs:?}");
            assert!(theirs.eq_ignore_ascii_case(SymbolKind(kind).name()), "{kind}: {theirs}");
        }
        assert_eq!((SymbolKind(0).name(), SymbolKind(27).name()), ("unknown", "unknown"));
    }
}
