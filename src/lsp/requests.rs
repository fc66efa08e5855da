//! The requests of the client, one method each. A request is queued when the method returns; the future is the
//! response, and dropping it cancels the request. So any number can be in flight, in a known order.
//!
//! Files need not be open. Positions are 0-based and count columns in [`Client::encoding`].
//!
//! [`Client::encoding`]: super::client::Client::encoding

use std::sync::Arc;
use std::time::Duration;

use lsp_types::request::{
    ApplyWorkspaceEdit, CallHierarchyIncomingCalls, CallHierarchyOutgoingCalls, CallHierarchyPrepare,
    CodeActionRequest, CodeActionResolveRequest, DocumentDiagnosticRequest, DocumentHighlightRequest,
    DocumentSymbolRequest, ExecuteCommand, GotoDeclaration, GotoDefinition, GotoImplementation,
    GotoTypeDefinition, HoverRequest, PrepareRenameRequest, References, Rename, Request as LspRequest,
    WorkspaceSymbolRequest,
};
use lsp_types::{
    CallHierarchyPrepareParams, CodeActionContext, CodeActionParams, CodeActionTriggerKind,
    DocumentDiagnosticParams, DocumentHighlightParams, DocumentSymbolParams, ExecuteCommandParams,
    GotoDefinitionParams, HoverParams, PartialResultParams, ReferenceContext, ReferenceParams, RenameParams,
    WorkDoneProgressParams, WorkspaceSymbolParams,
};
use serde_json::{Value, json};

use super::capabilities::Capabilities;
use super::endpoint::Endpoint;
use super::error::LspError;
use super::jsonrpc::RawResult;
use super::results::{
    CodeAction, HoverText, Listing, LspCall, LspCallItem, LspCommand, LspDiagnostic, LspLocation, LspSymbol,
    RenameTarget, WorkspaceSymbol,
};
use super::{convert, recording, wire};
use crate::model::edits::WorkspaceEdit;
use crate::path::AbsPath;
use crate::tape::Tape;
use crate::text::{Position, Range};

/// No progress is reported on a request.
const NO_PROGRESS: WorkDoneProgressParams = WorkDoneProgressParams { work_done_token: None };

/// A result comes in one response.
const WHOLE_RESULT: PartialResultParams = PartialResultParams { partial_result_token: None };

/// Sends requests, each with the same timeout.
///
/// Every request can fail with any [`LspError`]; a method that the server does not support fails with
/// [`LspError::Unsupported`] without being sent.
#[derive(Debug, Clone)]
pub struct LspRequests {
    endpoint: Arc<Endpoint>,
    capabilities: Capabilities,
    timeout: Duration,
    /// The document that resets inferred types; its locations are removed from results.
    reset_document: AbsPath,
    /// Records requests and responses.
    tape: Tape,
}

/// The return type of requests: a future response.
macro_rules! response {
    ($item:ty) => { impl Future<Output = Result<$item, LspError>> + Send + use<> };
}

impl LspRequests {
    pub(super) fn new(
        endpoint: Arc<Endpoint>,
        capabilities: Capabilities,
        timeout: Duration,
        reset_document: AbsPath,
    ) -> Self {
        Self { endpoint, capabilities, timeout, reset_document, tape: Tape::off() }
    }

    /// The same requests, recorded on a tape.
    #[must_use]
    pub fn recording(mut self, tape: &Tape) -> Self {
        self.tape = tape.clone();
        self
    }

    /// The definitions of the name at a position.
    pub fn definition(&self, path: &AbsPath, position: Position) -> response!(Listing<LspLocation>) {
        self.ask::<GotoDefinition, _>(goto(path, position), convert::locations)
    }

    /// The declarations of the name at a position.
    pub fn declaration(&self, path: &AbsPath, position: Position) -> response!(Listing<LspLocation>) {
        self.ask::<GotoDeclaration, _>(goto(path, position), convert::locations)
    }

    /// The definitions of the type of the expression at a position.
    pub fn type_definition(&self, path: &AbsPath, position: Position) -> response!(Listing<LspLocation>) {
        self.ask::<GotoTypeDefinition, _>(goto(path, position), convert::locations)
    }

    /// The implementations of the method or class at a position.
    pub fn implementation(&self, path: &AbsPath, position: Position) -> response!(Listing<LspLocation>) {
        self.ask::<GotoImplementation, _>(goto(path, position), convert::locations)
    }

    /// The references to the name at a position. Complete only after [`Client::ready`].
    ///
    /// [`Client::ready`]: super::client::Client::ready
    pub fn references(
        &self,
        path: &AbsPath,
        position: Position,
        include_declaration: bool,
    ) -> response!(Listing<LspLocation>) {
        let params = ReferenceParams {
            text_document_position: wire::document_position(path, position),
            work_done_progress_params: NO_PROGRESS,
            partial_result_params: WHOLE_RESULT,
            context: ReferenceContext { include_declaration },
        };
        let references = self.ask::<References, _>(params, convert::locations);
        self.without_reset_document(references, |place| &place.path)
    }

    /// The references to the name at a position in its own document, declarations included. Pyright 1.1.414 searches all files for the
    /// references of a local variable (16 s in django), and only the document for these.
    pub fn highlights(&self, path: &AbsPath, position: Position) -> response!(Listing<LspLocation>) {
        let params = DocumentHighlightParams {
            text_document_position_params: wire::document_position(path, position),
            work_done_progress_params: NO_PROGRESS,
            partial_result_params: WHOLE_RESULT,
        };
        let highlights = self.ask::<DocumentHighlightRequest, _>(params, convert::highlights);
        let path = path.clone();
        async move {
            let ranges = highlights.await?.into_iter();
            let items = ranges.map(|range| LspLocation { path: path.clone(), range }).collect();
            Ok(Listing { items, skipped: 0 })
        }
    }

    /// The hover at a position; `None` if the server has none.
    pub fn hover(&self, path: &AbsPath, position: Position) -> response!(Option<HoverText>) {
        let params = HoverParams {
            text_document_position_params: wire::document_position(path, position),
            work_done_progress_params: NO_PROGRESS,
        };
        self.ask::<HoverRequest, _>(params, convert::hover)
    }

    /// The symbols of a document.
    pub fn document_symbols(&self, path: &AbsPath) -> response!(Vec<LspSymbol>) {
        let params = DocumentSymbolParams {
            text_document: wire::document(path),
            work_done_progress_params: NO_PROGRESS,
            partial_result_params: WHOLE_RESULT,
        };
        self.ask::<DocumentSymbolRequest, _>(params, convert::symbols)
    }

    /// The symbols of the workspace whose names match by the server's rules. Complete only after [`Client::ready`].
    ///
    /// [`Client::ready`]: super::client::Client::ready
    pub fn workspace_symbols(&self, query: &str) -> response!(Listing<WorkspaceSymbol>) {
        let params = WorkspaceSymbolParams {
            partial_result_params: WHOLE_RESULT,
            work_done_progress_params: NO_PROGRESS,
            query: query.to_owned(),
        };
        let symbols = self.ask::<WorkspaceSymbolRequest, _>(params, convert::workspace_symbols);
        self.without_reset_document(symbols, |symbol| &symbol.place.path)
    }

    /// The functions at a position, for [`Self::incoming_calls`] and [`Self::outgoing_calls`].
    pub fn prepare_call_hierarchy(
        &self,
        path: &AbsPath,
        position: Position,
    ) -> response!(Listing<LspCallItem>) {
        let params = CallHierarchyPrepareParams {
            text_document_position_params: wire::document_position(path, position),
            work_done_progress_params: NO_PROGRESS,
        };
        self.ask::<CallHierarchyPrepare, _>(params, convert::call_items)
    }

    /// The calls to an item.
    pub fn incoming_calls(&self, item: &LspCallItem) -> response!(Listing<LspCall>) {
        let params = json!({"item": item.wire});
        let calls = self.request(CallHierarchyIncomingCalls::METHOD, params, convert::calls);
        self.without_reset_document(calls, |call| &call.item.path)
    }

    /// The calls from an item.
    pub fn outgoing_calls(&self, item: &LspCallItem) -> response!(Listing<LspCall>) {
        let params = json!({"item": item.wire});
        self.request(CallHierarchyOutgoingCalls::METHOD, params, convert::calls)
    }

    /// The diagnostics of a document. [`Listing::skipped`] counts related locations.
    ///
    /// Pyright and its forks check only open documents: for others the list is empty.
    pub fn diagnostics(&self, path: &AbsPath) -> response!(Listing<LspDiagnostic>) {
        let mut params = wire::value(DocumentDiagnosticParams {
            text_document: wire::document(path),
            identifier: None,
            previous_result_id: None,
            work_done_progress_params: NO_PROGRESS,
            partial_result_params: WHOLE_RESULT,
        });
        // `lsp_types` writes `null` for the two unset members, which LSP wants absent.
        if let Value::Object(members) = &mut params {
            members.retain(|_, member| !member.is_null());
        }
        self.request(DocumentDiagnosticRequest::METHOD, params, convert::diagnostics)
    }

    /// Whether the name at a position can be renamed.
    pub fn prepare_rename(&self, path: &AbsPath, position: Position) -> response!(Option<RenameTarget>) {
        self.ask::<PrepareRenameRequest, _>(wire::document_position(path, position), convert::renamable)
    }

    /// The edit that renames the symbol at a position. Complete only after [`Client::ready`].
    ///
    /// [`Client::ready`]: super::client::Client::ready
    pub fn rename(
        &self,
        path: &AbsPath,
        position: Position,
        new_name: &str,
    ) -> response!(Option<WorkspaceEdit>) {
        let params = RenameParams {
            text_document_position: wire::document_position(path, position),
            new_name: new_name.to_owned(),
            work_done_progress_params: NO_PROGRESS,
        };
        self.ask::<Rename, _>(params, convert::edit)
    }

    /// The code actions for a range with these diagnostics; `only`: of these kinds.
    pub fn code_actions(
        &self,
        path: &AbsPath,
        range: Range,
        diagnostics: &[LspDiagnostic],
        only: &[String],
    ) -> response!(Vec<CodeAction>) {
        let params = CodeActionParams {
            text_document: wire::document(path),
            range: wire::range(range),
            context: CodeActionContext {
                diagnostics: diagnostics.iter().map(wire::diagnostic).collect(),
                only: (!only.is_empty()).then(|| only.iter().cloned().map(Into::into).collect()),
                trigger_kind: Some(CodeActionTriggerKind::INVOKED),
            },
            work_done_progress_params: NO_PROGRESS,
            partial_result_params: WHOLE_RESULT,
        };
        self.ask::<CodeActionRequest, _>(params, convert::actions)
    }

    /// An action, completed with the members that the server had left out.
    pub fn resolve_action(&self, action: &CodeAction) -> response!(CodeAction) {
        self.request(CodeActionResolveRequest::METHOD, action.wire.clone(), convert::action)
    }

    /// Executes a command on the server. Returns the edits that the server asks to apply meanwhile.
    pub fn execute(&self, command: &LspCommand) -> response!(Vec<WorkspaceEdit>) {
        let params = ExecuteCommandParams {
            command: command.name.clone(),
            arguments: command.arguments.clone(),
            work_done_progress_params: NO_PROGRESS,
        };
        self.endpoint.take_edits();
        let response = self.ask::<ExecuteCommand, _>(params, convert::ignore_result);
        let endpoint = self.endpoint.clone();
        async move {
            response.await?;
            endpoint.take_edits().into_iter().map(parse_edit).collect()
        }
    }

    /// Removes items in the reset document from a list.
    fn without_reset_document<T, F>(
        &self,
        response: F,
        path: fn(&T) -> &AbsPath,
    ) -> impl Future<Output = Result<Listing<T>, LspError>> + Send + use<T, F>
    where
        T: Send,
        F: Future<Output = Result<Listing<T>, LspError>> + Send,
    {
        let reset_document = self.reset_document.clone();
        async move {
            let mut listing = response.await?;
            listing.items.retain(|item| *path(item) != reset_document);
            Ok(listing)
        }
    }

    /// A request whose parameters are lanser's own.
    fn ask<R: LspRequest, T: Send>(
        &self,
        params: R::Params,
        parse: fn(&RawResult) -> Result<T, serde_json::Error>,
    ) -> impl Future<Output = Result<T, LspError>> + Send + use<R, T> {
        self.request(R::METHOD, wire::value(params), parse)
    }

    fn request<T: Send>(
        &self,
        name: &'static str,
        params: Value,
        parse: fn(&RawResult) -> Result<T, serde_json::Error>,
    ) -> impl Future<Output = Result<T, LspError>> + Send + use<T> {
        let supported = self.capabilities.offers(name) || self.endpoint.is_registered(name);
        let recorded = supported
            .then(|| recording::record_request(&self.tape, name, &params))
            .flatten()
            .map(|id| (id, self.tape.clone(), self.endpoint.clone()));
        let response = supported.then(|| self.endpoint.request(name, params, self.timeout));
        async move {
            let Some(response) = response else {
                return Err(LspError::Unsupported { method: name.to_owned() });
            };
            let response = response.await;
            if let Some((id, tape, endpoint)) = recorded {
                let edits = if name == ExecuteCommand::METHOD { endpoint.edits() } else { Vec::new() };
                recording::record_response(&tape, id, &edits, &response);
            }
            let malformed = |error: serde_json::Error| LspError::Malformed {
                method: name.to_owned(),
                reason: error.to_string(),
            };
            parse(&response?).map_err(malformed)
        }
    }
}

fn parse_edit(wire: Value) -> Result<WorkspaceEdit, LspError> {
    serde_json::from_value(wire).map_err(|error| LspError::Malformed {
        method: ApplyWorkspaceEdit::METHOD.to_owned(),
        reason: error.to_string(),
    })
}

fn goto(path: &AbsPath, position: Position) -> GotoDefinitionParams {
    GotoDefinitionParams {
        text_document_position_params: wire::document_position(path, position),
        work_done_progress_params: NO_PROGRESS,
        partial_result_params: WHOLE_RESULT,
    }
}
