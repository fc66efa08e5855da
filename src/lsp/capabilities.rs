//! The client capabilities that are declared to a server, and the capabilities that the server reports.
//!
//! The declaration is one constant tree, because it changes answers: with `declaration` Pyright's definition prefers
//! sources over stubs, without `tagSupport` there are no unused-code hints, and with a dynamic registration of
//! `textDocument.diagnostic` it stops pushing diagnostics, which also makes its first answers faster (measured on
//! 1.1.414). The server's capabilities are read leniently, member by member: an unknown one must not lose the others.

use std::sync::LazyLock;

use serde::Serialize;
use serde_json::{Value, json};

use super::error::LspError;
use super::profile::Profile;
use crate::text::ColumnUnit;

/// The methods, as LSP 3.17 spells them.
pub(super) mod method {
    pub(in crate::lsp) const DEFINITION: &str = "textDocument/definition";
    pub(in crate::lsp) const DECLARATION: &str = "textDocument/declaration";
    pub(in crate::lsp) const TYPE_DEFINITION: &str = "textDocument/typeDefinition";
    pub(in crate::lsp) const IMPLEMENTATION: &str = "textDocument/implementation";
    pub(in crate::lsp) const REFERENCES: &str = "textDocument/references";
    pub(in crate::lsp) const HOVER: &str = "textDocument/hover";
    pub(in crate::lsp) const DOCUMENT_SYMBOL: &str = "textDocument/documentSymbol";
    pub(in crate::lsp) const WORKSPACE_SYMBOL: &str = "workspace/symbol";
    pub(in crate::lsp) const PREPARE_CALLS: &str = "textDocument/prepareCallHierarchy";
    pub(in crate::lsp) const INCOMING_CALLS: &str = "callHierarchy/incomingCalls";
    pub(in crate::lsp) const OUTGOING_CALLS: &str = "callHierarchy/outgoingCalls";
    pub(in crate::lsp) const DIAGNOSTIC: &str = "textDocument/diagnostic";
    pub(in crate::lsp) const RENAME: &str = "textDocument/rename";
    pub(in crate::lsp) const PREPARE_RENAME: &str = "textDocument/prepareRename";
    pub(in crate::lsp) const CODE_ACTION: &str = "textDocument/codeAction";
    pub(in crate::lsp) const RESOLVE_ACTION: &str = "codeAction/resolve";
    pub(in crate::lsp) const EXECUTE_COMMAND: &str = "workspace/executeCommand";
}

/// The methods that a server supports, from the result of `initialize` and its [`Profile`]; the same in every run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Capabilities {
    /// `textDocument/definition`
    pub definition: bool,
    /// `textDocument/declaration`
    pub declaration: bool,
    /// `textDocument/typeDefinition`
    pub type_definition: bool,
    /// `textDocument/implementation`
    pub implementation: bool,
    /// `textDocument/references`
    pub references: bool,
    /// `textDocument/hover`
    pub hover: bool,
    /// `textDocument/documentSymbol`
    pub document_symbol: bool,
    /// `workspace/symbol`
    pub workspace_symbol: bool,
    /// `textDocument/prepareCallHierarchy` and what follows it
    pub call_hierarchy: bool,
    /// `textDocument/diagnostic`
    pub diagnostic: bool,
    /// `textDocument/rename`
    pub rename: bool,
    /// `textDocument/prepareRename`
    pub prepare_rename: bool,
    /// `textDocument/codeAction`
    pub code_action: bool,
    /// `codeAction/resolve`
    pub resolve_action: bool,
    /// `workspace/executeCommand`
    pub execute_command: bool,
}

impl Capabilities {
    /// Reads the `capabilities` in the result of `initialize`.
    pub(super) fn read(offered: &Value, profile: &Profile) -> Self {
        let has =
            |member: &str| !matches!(offered.get(member), None | Some(Value::Null | Value::Bool(false)));
        Self {
            definition: has("definitionProvider"),
            declaration: has("declarationProvider"),
            type_definition: has("typeDefinitionProvider"),
            implementation: has("implementationProvider"),
            references: has("referencesProvider"),
            hover: has("hoverProvider"),
            document_symbol: has("documentSymbolProvider"),
            workspace_symbol: has("workspaceSymbolProvider"),
            call_hierarchy: has("callHierarchyProvider"),
            diagnostic: has("diagnosticProvider") || profile.pulls_without_capability,
            rename: has("renameProvider"),
            prepare_rename: offered["renameProvider"]["prepareProvider"] == true,
            code_action: has("codeActionProvider"),
            resolve_action: offered["codeActionProvider"]["resolveProvider"] == true,
            execute_command: has("executeCommandProvider"),
        }
    }

    /// Whether a method is supported; a method without a capability always is.
    pub(super) fn offers(&self, name: &str) -> bool {
        match name {
            method::DEFINITION => self.definition,
            method::DECLARATION => self.declaration,
            method::TYPE_DEFINITION => self.type_definition,
            method::IMPLEMENTATION => self.implementation,
            method::REFERENCES => self.references,
            method::HOVER => self.hover,
            method::DOCUMENT_SYMBOL => self.document_symbol,
            method::WORKSPACE_SYMBOL => self.workspace_symbol,
            method::PREPARE_CALLS | method::INCOMING_CALLS | method::OUTGOING_CALLS => self.call_hierarchy,
            method::DIAGNOSTIC => self.diagnostic,
            method::RENAME => self.rename,
            method::PREPARE_RENAME => self.prepare_rename,
            method::CODE_ACTION => self.code_action,
            method::RESOLVE_ACTION => self.resolve_action,
            method::EXECUTE_COMMAND => self.execute_command,
            _ => true,
        }
    }
}

/// The position encoding that the server chose; UTF-16 if it reports none.
pub(super) fn encoding(offered: &Value) -> Result<ColumnUnit, LspError> {
    match offered.get("positionEncoding") {
        None | Some(Value::Null) => Ok(ColumnUnit::Utf16),
        Some(Value::String(name)) => [ColumnUnit::Utf8, ColumnUnit::Utf16, ColumnUnit::Codepoint]
            .into_iter()
            .find(|unit| unit.as_lsp() == name)
            .ok_or_else(|| LspError::Encoding(name.clone())),
        Some(other) => Err(LspError::Encoding(other.to_string())),
    }
}

/// The client `capabilities`, the same for every server.
pub(super) fn declared() -> Value {
    static DECLARED: LazyLock<Value> = LazyLock::new(declaration);
    DECLARED.clone()
}

fn declaration() -> Value {
    let plain = json!({"dynamicRegistration": false});
    let goto = json!({"dynamicRegistration": false, "linkSupport": false});
    let symbol_kinds = json!({"valueSet": (1..=26).collect::<Vec<u32>>()});
    json!({
        "general": {
            "positionEncodings": [
                ColumnUnit::Utf8.as_lsp(), ColumnUnit::Utf16.as_lsp(), ColumnUnit::Codepoint.as_lsp(),
            ],
            "staleRequestSupport": {
                "cancel": true,
                "retryOnContentModified": [
                    method::DEFINITION, method::DECLARATION, method::TYPE_DEFINITION, method::IMPLEMENTATION,
                    method::REFERENCES, method::HOVER, method::DOCUMENT_SYMBOL, method::WORKSPACE_SYMBOL,
                    method::PREPARE_CALLS, method::INCOMING_CALLS, method::OUTGOING_CALLS, method::DIAGNOSTIC,
                ],
            },
        },
        "textDocument": {
            "callHierarchy": plain,
            "codeAction": {
                "codeActionLiteralSupport": {
                    "codeActionKind": {"valueSet": ["quickfix", "source", "source.organizeImports"]},
                },
                "dataSupport": true,
                "disabledSupport": true,
                "dynamicRegistration": false,
                "honorsChangeAnnotations": true,
                "isPreferredSupport": true,
                "resolveSupport": {"properties": ["edit", "command"]},
            },
            "declaration": goto,
            "definition": goto,
            // The members of 3.18 besides the registration: with them a pulled report has the content of a pushed one.
            "diagnostic": {
                "codeDescriptionSupport": true,
                "dynamicRegistration": true,
                "relatedDocumentSupport": false,
                "relatedInformation": true,
                "tagSupport": {"valueSet": [1, 2]},
            },
            "documentSymbol": {
                "dynamicRegistration": false,
                "hierarchicalDocumentSymbolSupport": true,
                "symbolKind": symbol_kinds,
                "tagSupport": {"valueSet": [1]},
            },
            "hover": {"contentFormat": ["markdown", "plaintext"], "dynamicRegistration": false},
            "implementation": goto,
            "publishDiagnostics": {
                "codeDescriptionSupport": true,
                "dataSupport": false,
                "relatedInformation": true,
                "tagSupport": {"valueSet": [1, 2]},
                "versionSupport": true,
            },
            "references": plain,
            "rename": {"dynamicRegistration": false, "honorsChangeAnnotations": true, "prepareSupport": true},
            "synchronization": {
                "didSave": false, "dynamicRegistration": false, "willSave": false, "willSaveWaitUntil": false,
            },
            "typeDefinition": goto,
        },
        "window": {"workDoneProgress": true},
        "workspace": {
            "applyEdit": true,
            "configuration": true,
            "diagnostic": {"refreshSupport": true},
            "didChangeWatchedFiles": {"dynamicRegistration": true, "relativePatternSupport": false},
            "executeCommand": plain,
            "symbol": {"dynamicRegistration": false, "symbolKind": symbol_kinds, "tagSupport": {"valueSet": [1]}},
            "workspaceEdit": {
                "changeAnnotationSupport": {"groupsOnLabel": false},
                "documentChanges": true,
                "failureHandling": "abort",
                "resourceOperations": ["create", "rename", "delete"],
            },
            "workspaceFolders": true,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::server::ServerKind;

    /// Decoding into the standard's types drops misspelled members.
    #[test]
    fn every_declared_member_is_one_of_the_standard() {
        let mut ours = declared();
        let decoded: lsp_types::ClientCapabilities = serde_json::from_value(ours.clone()).unwrap();
        // LSP 3.18 has these three; lsp_types stops at 3.17.
        let diagnostic = ours["textDocument"]["diagnostic"].as_object_mut().unwrap();
        for member in ["codeDescriptionSupport", "relatedInformation", "tagSupport"] {
            diagnostic.remove(member).unwrap();
        }
        assert_eq!(serde_json::to_value(decoded).unwrap(), ours);
    }

    #[test]
    fn methods_are_spelled_as_the_standard_does() {
        use lsp_types::request::{self as r, Request as _};
        for (ours, theirs) in [
            (method::DEFINITION, r::GotoDefinition::METHOD),
            (method::DECLARATION, r::GotoDeclaration::METHOD),
            (method::TYPE_DEFINITION, r::GotoTypeDefinition::METHOD),
            (method::IMPLEMENTATION, r::GotoImplementation::METHOD),
            (method::REFERENCES, r::References::METHOD),
            (method::HOVER, r::HoverRequest::METHOD),
            (method::DOCUMENT_SYMBOL, r::DocumentSymbolRequest::METHOD),
            (method::WORKSPACE_SYMBOL, r::WorkspaceSymbolRequest::METHOD),
            (method::PREPARE_CALLS, r::CallHierarchyPrepare::METHOD),
            (method::INCOMING_CALLS, r::CallHierarchyIncomingCalls::METHOD),
            (method::OUTGOING_CALLS, r::CallHierarchyOutgoingCalls::METHOD),
            (method::DIAGNOSTIC, r::DocumentDiagnosticRequest::METHOD),
            (method::RENAME, r::Rename::METHOD),
            (method::PREPARE_RENAME, r::PrepareRenameRequest::METHOD),
            (method::CODE_ACTION, r::CodeActionRequest::METHOD),
            (method::RESOLVE_ACTION, r::CodeActionResolveRequest::METHOD),
            (method::EXECUTE_COMMAND, r::ExecuteCommand::METHOD),
        ] {
            assert_eq!(ours, theirs);
        }
    }

    #[test]
    fn server_capabilities_are_read_member_by_member() {
        let profile = Profile::of(ServerKind::Pyright);
        let offered = json!({
            "definitionProvider": {"workDoneProgress": true}, "hoverProvider": true, "referencesProvider": false,
            "renameProvider": {"prepareProvider": true}, "declarationProvider": null, "someNewProvider": [[]],
        });
        let expected = Capabilities {
            definition: true,
            hover: true,
            rename: true,
            prepare_rename: true,
            diagnostic: true,
            ..Capabilities::default()
        };
        assert_eq!(Capabilities::read(&offered, profile), expected);
        assert!(expected.offers(method::HOVER) && expected.offers("shutdown"));
        assert!(!expected.offers(method::REFERENCES) && !expected.offers(method::INCOMING_CALLS));
    }

    #[test]
    fn position_encodings() {
        let read = |value: Value| encoding(&json!({"positionEncoding": value}));
        assert_eq!(encoding(&json!({})), Ok(ColumnUnit::Utf16));
        assert_eq!(read(Value::Null), Ok(ColumnUnit::Utf16));
        assert_eq!(read("utf-8".into()), Ok(ColumnUnit::Utf8));
        assert_eq!(read("utf-16".into()), Ok(ColumnUnit::Utf16));
        assert_eq!(read("utf-32".into()), Ok(ColumnUnit::Codepoint));
        assert_eq!(read("utf-7".into()), Err(LspError::Encoding("utf-7".to_owned())));
        assert!(read(json!(1)).is_err());
    }
}
