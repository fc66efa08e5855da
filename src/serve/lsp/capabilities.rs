//! What a client supports, and what the server offers it.

use lsp_types as lsp;
use serde_json::Value;

use super::convert::{ClientDiagnostics, ClientEdits};
use crate::text::ColumnUnit;

/// What a client supports.
#[derive(Debug, Clone, Copy)]
pub(super) struct ClientSupport {
    pub(super) unit: ColumnUnit,
    pub(super) edits: ClientEdits,
    /// Whether it takes the symbols of a document as a tree.
    pub(super) trees: bool,
    /// Whether it requests diagnostics.
    pub(super) pulls: bool,
    /// Whether it requests the edit of a code action when it is needed.
    pub(super) resolves: bool,
    /// Whether it can be asked to request diagnostics again.
    pub(super) refreshes: bool,
    pub(super) diagnostics: ClientDiagnostics,
    /// Whether it can be asked to tell of changed files.
    pub(super) watches: bool,
}

impl ClientSupport {
    /// From the client's own words. See [`Self::refreshes`].
    pub(super) fn new(capabilities: &lsp::ClientCapabilities, refreshes: bool) -> Self {
        let document = capabilities.text_document.as_ref();
        let workspace = capabilities.workspace.as_ref();
        let edits = workspace.and_then(|workspace| workspace.workspace_edit.as_ref());
        let encodings = capabilities.general.as_ref().and_then(|general| general.position_encodings.clone());
        let unit = encodings.unwrap_or_default().iter().find_map(|encoding| match encoding.as_str() {
            "utf-8" | "utf-16" | "utf-32" => ColumnUnit::parse(encoding.as_str()),
            _ => None,
        });
        let published = document.and_then(|document| document.publish_diagnostics.as_ref());
        let operations = [
            lsp::ResourceOperationKind::Create,
            lsp::ResourceOperationKind::Rename,
            lsp::ResourceOperationKind::Delete,
        ];
        let resolves = document
            .and_then(|document| document.code_action.as_ref()?.resolve_support.as_ref())
            .is_some_and(|resolve| resolve.properties.iter().any(|property| property == "edit"));
        Self {
            unit: unit.unwrap_or(ColumnUnit::Utf16),
            edits: ClientEdits {
                document_changes: edits.and_then(|edits| edits.document_changes).unwrap_or_default(),
                operations: edits
                    .and_then(|edits| edits.resource_operations.as_ref())
                    .is_some_and(|offered| operations.iter().all(|kind| offered.contains(kind))),
            },
            trees: document
                .and_then(|document| document.document_symbol.as_ref()?.hierarchical_document_symbol_support)
                .unwrap_or_default(),
            pulls: document.is_some_and(|document| document.diagnostic.is_some()),
            resolves,
            refreshes,
            diagnostics: ClientDiagnostics {
                related: published.and_then(|published| published.related_information).unwrap_or_default(),
                tags: published.is_some_and(|published| published.tag_support.is_some()),
            },
            watches: workspace
                .and_then(|workspace| workspace.did_change_watched_files?.dynamic_registration)
                .unwrap_or_default(),
        }
    }

    /// Whether the parameters of `initialize` offer it. `lsp-types` 0.97 spells the member `diagnostic`.
    pub(super) fn refreshes(params: &Value) -> bool {
        params.pointer("/capabilities/workspace/diagnostics/refreshSupport") == Some(&Value::Bool(true))
    }

    /// What the server offers such a client.
    pub(super) fn offered(self) -> lsp::ServerCapabilities {
        lsp::ServerCapabilities {
            position_encoding: Some(lsp::PositionEncodingKind::from(self.unit.as_lsp().to_owned())),
            text_document_sync: Some(lsp::TextDocumentSyncCapability::Options(
                lsp::TextDocumentSyncOptions {
                    open_close: Some(true),
                    change: Some(lsp::TextDocumentSyncKind::FULL),
                    save: Some(lsp::TextDocumentSyncSaveOptions::Supported(true)),
                    ..lsp::TextDocumentSyncOptions::default()
                },
            )),
            definition_provider: Some(lsp::OneOf::Left(true)),
            declaration_provider: Some(lsp::DeclarationCapability::Simple(true)),
            type_definition_provider: Some(lsp::TypeDefinitionProviderCapability::Simple(true)),
            implementation_provider: Some(lsp::ImplementationProviderCapability::Simple(true)),
            references_provider: Some(lsp::OneOf::Left(true)),
            hover_provider: Some(lsp::HoverProviderCapability::Simple(true)),
            document_symbol_provider: Some(lsp::OneOf::Left(true)),
            workspace_symbol_provider: Some(lsp::OneOf::Left(true)),
            call_hierarchy_provider: Some(lsp::CallHierarchyServerCapability::Simple(true)),
            rename_provider: Some(lsp::OneOf::Right(lsp::RenameOptions {
                prepare_provider: Some(true),
                work_done_progress_options: lsp::WorkDoneProgressOptions::default(),
            })),
            code_action_provider: Some(lsp::CodeActionProviderCapability::Options(lsp::CodeActionOptions {
                resolve_provider: Some(true),
                ..lsp::CodeActionOptions::default()
            })),
            diagnostic_provider: Some(lsp::DiagnosticServerCapabilities::Options(lsp::DiagnosticOptions {
                inter_file_dependencies: true,
                ..lsp::DiagnosticOptions::default()
            })),
            ..lsp::ServerCapabilities::default()
        }
    }
}
