//! The results of requests in plain types: paths instead of URIs, ranges in the negotiated unit, nothing of the wire.
//!
//! Order and texts are the server's: hovers and messages may contain U+00A0 and absolute paths.

use serde_json::Value;

use crate::model::edits::WorkspaceEdit;
use crate::model::server::ServerKind;
use crate::path::{AbsPath, FileUri};
use crate::text::Range;

/// A list in a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing<T> {
    /// The items that could be read.
    pub items: Vec<T>,
    /// How many items were left out because they are not in a local file or have no range in it.
    pub skipped: u32,
}

/// A range in a file (LSP's `Location`).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LspLocation {
    /// The file.
    pub path: AbsPath,
    /// The range in it. For a definition, the range of its name.
    pub range: Range,
}

/// The hover of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HoverText {
    /// Markdown. The parts of a result in the old form (`MarkedString[]`) are joined by empty lines, with code in
    /// fences.
    pub markdown: String,
    /// The range that the hover is about, if the server reports one.
    pub range: Option<Range>,
}

/// The kind of a symbol, as LSP numbers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SymbolKind(pub u32);

impl SymbolKind {
    /// LSP's name of the kind, in camel case; `unknown` for a number that LSP 3.17 does not define.
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
pub struct LspSymbol {
    /// The name.
    pub name: String,
    /// For example a signature.
    pub detail: Option<String>,
    /// The kind.
    pub kind: SymbolKind,
    /// The range of the whole symbol.
    pub range: Range,
    /// The range of its name.
    pub selection_range: Range,
    /// Whether it is marked as deprecated.
    pub deprecated: bool,
    /// The name of the containing symbol, from servers that respond with a flat list.
    pub container: Option<String>,
    /// The symbols in it; empty from servers that respond with a flat list.
    pub children: Vec<Self>,
}

/// A symbol of the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceSymbol {
    /// The name.
    pub name: String,
    /// The kind.
    pub kind: SymbolKind,
    /// The name of the containing symbol.
    pub container: Option<String>,
    /// The location.
    pub place: LspLocation,
    /// Whether it is marked as deprecated.
    pub deprecated: bool,
}

/// One end of a call: a function, method, class or module.
#[derive(Debug, Clone, PartialEq)]
pub struct LspCallItem {
    /// The name.
    pub name: String,
    /// For example a signature or a module.
    pub detail: Option<String>,
    /// The kind.
    pub kind: SymbolKind,
    /// The file.
    pub path: AbsPath,
    /// The range of the whole item.
    pub range: Range,
    /// The range of its name.
    pub selection_range: Range,
    /// The item as received, because follow-up requests must send it back with the server's own data.
    pub(super) wire: Value,
}

impl LspCallItem {
    /// The module of a file: the caller of calls outside of functions.
    #[must_use]
    pub fn module(path: AbsPath) -> Self {
        const MODULE: SymbolKind = SymbolKind(2);
        let (name, range) = (module_name(&path), Range::default());
        Self { name, detail: None, kind: MODULE, path, range, selection_range: range, wire: Value::Null }
    }

    /// Whether it is a module, for which no further calls can be requested.
    #[must_use]
    pub fn is_module(&self) -> bool {
        self.selection_range == Range::default()
    }
}

/// The name of a module that calls something, for each server as Pyright has it.
pub(super) fn module_name(path: &AbsPath) -> String {
    format!("(module) {}", path.file_name())
}

/// A caller or callee, with the calls.
#[derive(Debug, Clone, PartialEq)]
pub struct LspCall {
    /// The caller or callee.
    pub item: LspCallItem,
    /// The ranges of the calls, in the caller's file in both directions.
    pub ranges: Vec<Range>,
}

/// The severity of a diagnostic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LspSeverity {
    /// LSP's 1; also used for a diagnostic without severity.
    Error,
    /// LSP's 2.
    Warning,
    /// LSP's 3.
    Information,
    /// LSP's 4.
    Hint,
}

/// A tag of a diagnostic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DiagnosticTag {
    /// Unused or unreachable code.
    Unnecessary,
    /// Deprecated code.
    Deprecated,
}

/// Another location that belongs to a diagnostic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelatedLocation {
    /// The location.
    pub place: LspLocation,
    /// The message about it.
    pub message: String,
}

/// A diagnostic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LspDiagnostic {
    /// Its range.
    pub range: Range,
    /// Its severity.
    pub severity: LspSeverity,
    /// The rule; numbers are in decimal.
    pub code: Option<String>,
    /// The URL of the rule's documentation.
    pub code_description: Option<String>,
    /// The tool that reports it.
    pub source: Option<String>,
    /// The message.
    pub message: String,
    /// The tags that LSP 3.17 defines.
    pub tags: Vec<DiagnosticTag>,
    /// Related locations.
    pub related: Vec<RelatedLocation>,
}

/// The answer of `prepareRename`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenameTarget {
    /// The range of the name, if the server reports it.
    pub range: Option<Range>,
    /// The text to offer for editing, if the server reports it.
    pub placeholder: Option<String>,
}

/// A code action.
#[derive(Debug, Clone, PartialEq)]
pub struct CodeAction {
    /// Its title.
    pub title: String,
    /// Its kind.
    pub kind: Option<String>,
    /// Whether the server marks it as preferred.
    pub preferred: bool,
    /// Why it cannot be applied.
    pub disabled: Option<String>,
    /// Its edit, if known already.
    pub edit: Option<WorkspaceEdit>,
    /// A command to execute for it.
    pub command: Option<LspCommand>,
    /// The action as received, because `codeAction/resolve` must send it back.
    pub(super) wire: Value,
}

impl CodeAction {
    /// Whether the server may have left out the edit. A bare command is not an action and cannot be resolved.
    #[must_use]
    pub fn may_be_resolved(&self) -> bool {
        self.edit.is_none() && !self.wire["command"].is_string()
    }
}

/// A command that the server executes on request; what it would write arrives as edits.
#[derive(Debug, Clone, PartialEq)]
pub struct LspCommand {
    /// The name.
    pub name: String,
    pub(super) arguments: Vec<Value>,
}

impl LspCommand {
    /// The command that organizes the imports of a file, with the names that Pyright and its forks use.
    #[must_use]
    pub fn organize_imports(server: ServerKind, path: &AbsPath) -> Self {
        let arguments = vec![FileUri::from_path(path).as_str().into()];
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
