//! The client capabilities that are declared to a server, and the capabilities that the server reports.
//!
//! The declaration is one constant tree, because it changes answers: with `declaration` Pyright's definition prefers
//! sources over stubs, without `tagSupport` there are no unused-code hints, and with a dynamic registration of
//! `textDocument.diagnostic` it stops pushing diagnostics, which also makes its first answers faster (measured on
//! 1.1.414). The server's capabilities are read leniently, member by member: an unknown one must not lose the others.

use std::sync::LazyLock;

use lsp_types::request::{
    CallHierarchyIncomingCalls, CallHierarchyOutgoingCalls, CallHierarchyPrepare, CodeActionRequest,
    CodeActionResolveRequest, DocumentDiagnosticRequest, DocumentHighlightRequest, DocumentSymbolRequest,
    ExecuteCommand, GotoDeclaration, GotoDefinition, GotoImplementation, GotoTypeDefinition, HoverRequest,
    PrepareRenameRequest, References, Rename, Request as _, WorkspaceSymbolRequest,
};
use lsp_types::{
    ChangeAnnotationWorkspaceEditClientCapabilities, ClientCapabilities, CodeActionCapabilityResolveSupport,
    CodeActionClientCapabilities, CodeActionKind, CodeActionKindLiteralSupport, CodeActionLiteralSupport,
    DiagnosticClientCapabilities, DiagnosticTag, DiagnosticWorkspaceClientCapabilities,
    DidChangeWatchedFilesClientCapabilities, DocumentSymbolClientCapabilities,
    DynamicRegistrationClientCapabilities, FailureHandlingKind, GeneralClientCapabilities, GotoCapability,
    HoverClientCapabilities, MarkupKind, PositionEncodingKind, PublishDiagnosticsClientCapabilities,
    RenameClientCapabilities, ResourceOperationKind, StaleRequestSupportClientCapabilities, SymbolKind,
    SymbolKindCapability, SymbolTag, TagSupport, TextDocumentClientCapabilities,
    TextDocumentSyncClientCapabilities, WindowClientCapabilities, WorkspaceClientCapabilities,
    WorkspaceEditClientCapabilities, WorkspaceSymbolClientCapabilities,
};
use serde::Serialize;
use serde_json::Value;

use super::error::LspError;
use super::profile::Profile;
use super::wire;
use crate::text::ColumnUnit;

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
    /// `textDocument/documentHighlight`
    pub document_highlight: bool,
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
            document_highlight: has("documentHighlightProvider"),
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
            GotoDefinition::METHOD => self.definition,
            GotoDeclaration::METHOD => self.declaration,
            GotoTypeDefinition::METHOD => self.type_definition,
            GotoImplementation::METHOD => self.implementation,
            References::METHOD => self.references,
            DocumentHighlightRequest::METHOD => self.document_highlight,
            HoverRequest::METHOD => self.hover,
            DocumentSymbolRequest::METHOD => self.document_symbol,
            WorkspaceSymbolRequest::METHOD => self.workspace_symbol,
            CallHierarchyPrepare::METHOD
            | CallHierarchyIncomingCalls::METHOD
            | CallHierarchyOutgoingCalls::METHOD => self.call_hierarchy,
            DocumentDiagnosticRequest::METHOD => self.diagnostic,
            Rename::METHOD => self.rename,
            PrepareRenameRequest::METHOD => self.prepare_rename,
            CodeActionRequest::METHOD => self.code_action,
            CodeActionResolveRequest::METHOD => self.resolve_action,
            ExecuteCommand::METHOD => self.execute_command,
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

/// The client `capabilities`, the same for every server but for what its profile says.
pub(super) fn declared(profile: &Profile) -> Value {
    static DECLARED: LazyLock<Value> = LazyLock::new(|| {
        let mut declared = wire::value(declaration());
        // LSP 3.18 has these three; `lsp_types` stops at 3.17. With them a pulled report has the content of a pushed
        // one.
        let pulled = &mut declared["textDocument"]["diagnostic"];
        pulled["codeDescriptionSupport"] = true.into();
        pulled["relatedInformation"] = true.into();
        pulled["tagSupport"] = wire::value(diagnostic_tags());
        declared
    });
    let mut declared = DECLARED.clone();
    if !profile.registers_watchers {
        declared["workspace"]["didChangeWatchedFiles"]["dynamicRegistration"] = false.into();
    }
    declared
}

fn declaration() -> ClientCapabilities {
    ClientCapabilities {
        general: Some(general()),
        text_document: Some(text_document()),
        window: Some(WindowClientCapabilities {
            work_done_progress: Some(true),
            ..WindowClientCapabilities::default()
        }),
        workspace: Some(workspace()),
        ..ClientCapabilities::default()
    }
}

fn general() -> GeneralClientCapabilities {
    // In the order of preference: UTF-16 is what every server has, and what bundles are counted in by default.
    let encodings = [ColumnUnit::Utf16, ColumnUnit::Utf8, ColumnUnit::Codepoint];
    let retried = [
        GotoDefinition::METHOD,
        GotoDeclaration::METHOD,
        GotoTypeDefinition::METHOD,
        GotoImplementation::METHOD,
        References::METHOD,
        DocumentHighlightRequest::METHOD,
        HoverRequest::METHOD,
        DocumentSymbolRequest::METHOD,
        WorkspaceSymbolRequest::METHOD,
        CallHierarchyPrepare::METHOD,
        CallHierarchyIncomingCalls::METHOD,
        CallHierarchyOutgoingCalls::METHOD,
        DocumentDiagnosticRequest::METHOD,
    ];
    GeneralClientCapabilities {
        position_encodings: Some(encodings.map(|unit| PositionEncodingKind::new(unit.as_lsp())).into()),
        stale_request_support: Some(StaleRequestSupportClientCapabilities {
            cancel: true,
            retry_on_content_modified: retried.map(str::to_owned).into(),
        }),
        ..GeneralClientCapabilities::default()
    }
}

fn text_document() -> TextDocumentClientCapabilities {
    let goto = GotoCapability { dynamic_registration: Some(false), link_support: Some(false) };
    TextDocumentClientCapabilities {
        call_hierarchy: Some(not_registered()),
        code_action: Some(code_action()),
        declaration: Some(goto),
        definition: Some(goto),
        diagnostic: Some(DiagnosticClientCapabilities {
            dynamic_registration: Some(true),
            related_document_support: Some(false),
        }),
        document_symbol: Some(DocumentSymbolClientCapabilities {
            dynamic_registration: Some(false),
            hierarchical_document_symbol_support: Some(true),
            symbol_kind: Some(symbol_kinds()),
            tag_support: Some(symbol_tags()),
        }),
        hover: Some(HoverClientCapabilities {
            content_format: Some(vec![MarkupKind::Markdown, MarkupKind::PlainText]),
            dynamic_registration: Some(false),
        }),
        implementation: Some(goto),
        publish_diagnostics: Some(PublishDiagnosticsClientCapabilities {
            code_description_support: Some(true),
            data_support: Some(false),
            related_information: Some(true),
            tag_support: Some(diagnostic_tags()),
            version_support: Some(true),
        }),
        references: Some(not_registered()),
        rename: Some(RenameClientCapabilities {
            dynamic_registration: Some(false),
            honors_change_annotations: Some(true),
            prepare_support: Some(true),
            ..RenameClientCapabilities::default()
        }),
        synchronization: Some(TextDocumentSyncClientCapabilities {
            did_save: Some(false),
            dynamic_registration: Some(false),
            will_save: Some(false),
            will_save_wait_until: Some(false),
        }),
        type_definition: Some(goto),
        ..TextDocumentClientCapabilities::default()
    }
}

fn code_action() -> CodeActionClientCapabilities {
    let kinds = [CodeActionKind::QUICKFIX, CodeActionKind::SOURCE, CodeActionKind::SOURCE_ORGANIZE_IMPORTS];
    CodeActionClientCapabilities {
        code_action_literal_support: Some(CodeActionLiteralSupport {
            code_action_kind: CodeActionKindLiteralSupport {
                value_set: kinds.map(|kind| kind.as_str().to_owned()).into(),
            },
        }),
        data_support: Some(true),
        disabled_support: Some(true),
        dynamic_registration: Some(false),
        honors_change_annotations: Some(true),
        is_preferred_support: Some(true),
        resolve_support: Some(CodeActionCapabilityResolveSupport {
            properties: ["edit", "command"].map(str::to_owned).into(),
        }),
    }
}

fn workspace() -> WorkspaceClientCapabilities {
    WorkspaceClientCapabilities {
        apply_edit: Some(true),
        configuration: Some(true),
        diagnostic: Some(DiagnosticWorkspaceClientCapabilities { refresh_support: Some(true) }),
        did_change_watched_files: Some(DidChangeWatchedFilesClientCapabilities {
            dynamic_registration: Some(true),
            relative_pattern_support: Some(false),
        }),
        execute_command: Some(not_registered()),
        symbol: Some(WorkspaceSymbolClientCapabilities {
            dynamic_registration: Some(false),
            symbol_kind: Some(symbol_kinds()),
            tag_support: Some(symbol_tags()),
            ..WorkspaceSymbolClientCapabilities::default()
        }),
        workspace_edit: Some(WorkspaceEditClientCapabilities {
            change_annotation_support: Some(ChangeAnnotationWorkspaceEditClientCapabilities {
                groups_on_label: Some(false),
            }),
            document_changes: Some(true),
            failure_handling: Some(FailureHandlingKind::Abort),
            resource_operations: Some(vec![
                ResourceOperationKind::Create,
                ResourceOperationKind::Rename,
                ResourceOperationKind::Delete,
            ]),
            ..WorkspaceEditClientCapabilities::default()
        }),
        workspace_folders: Some(true),
        ..WorkspaceClientCapabilities::default()
    }
}

/// A feature that the server must not register after initialization.
fn not_registered() -> DynamicRegistrationClientCapabilities {
    DynamicRegistrationClientCapabilities { dynamic_registration: Some(false) }
}

fn diagnostic_tags() -> TagSupport<DiagnosticTag> {
    TagSupport { value_set: vec![DiagnosticTag::UNNECESSARY, DiagnosticTag::DEPRECATED] }
}

fn symbol_tags() -> TagSupport<SymbolTag> {
    TagSupport { value_set: vec![SymbolTag::DEPRECATED] }
}

/// Every kind of LSP 3.17.
fn symbol_kinds() -> SymbolKindCapability {
    let kinds = [
        SymbolKind::FILE,
        SymbolKind::MODULE,
        SymbolKind::NAMESPACE,
        SymbolKind::PACKAGE,
        SymbolKind::CLASS,
        SymbolKind::METHOD,
        SymbolKind::PROPERTY,
        SymbolKind::FIELD,
        SymbolKind::CONSTRUCTOR,
        SymbolKind::ENUM,
        SymbolKind::INTERFACE,
        SymbolKind::FUNCTION,
        SymbolKind::VARIABLE,
        SymbolKind::CONSTANT,
        SymbolKind::STRING,
        SymbolKind::NUMBER,
        SymbolKind::BOOLEAN,
        SymbolKind::ARRAY,
        SymbolKind::OBJECT,
        SymbolKind::KEY,
        SymbolKind::NULL,
        SymbolKind::ENUM_MEMBER,
        SymbolKind::STRUCT,
        SymbolKind::EVENT,
        SymbolKind::OPERATOR,
        SymbolKind::TYPE_PARAMETER,
    ];
    SymbolKindCapability { value_set: Some(kinds.into()) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::server::ServerKind;

    #[test]
    fn what_is_declared() {
        let declared = declared(Profile::of(ServerKind::Pyright));
        assert_eq!(declared["general"]["positionEncodings"], json!(["utf-16", "utf-8", "utf-32"]));
        assert_eq!(declared["textDocument"]["definition"]["linkSupport"], false);
        let kinds: Vec<u32> = (1..=26).collect();
        assert_eq!(declared["workspace"]["symbol"]["symbolKind"]["valueSet"], json!(kinds));
        let pulled = json!({
            "codeDescriptionSupport": true, "dynamicRegistration": true, "relatedDocumentSupport": false,
            "relatedInformation": true, "tagSupport": {"valueSet": [1, 2]},
        });
        assert_eq!(declared["textDocument"]["diagnostic"], pulled);
        assert_eq!(declared["workspace"]["didChangeWatchedFiles"]["dynamicRegistration"], true);
        let for_ty = super::declared(Profile::of(ServerKind::Ty));
        assert_eq!(for_ty["workspace"]["didChangeWatchedFiles"]["dynamicRegistration"], false);
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
        assert!(expected.offers(HoverRequest::METHOD) && expected.offers("shutdown"));
        assert!(!expected.offers(References::METHOD) && !expected.offers(CallHierarchyIncomingCalls::METHOD));
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
