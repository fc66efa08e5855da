//! Responses to the requests that a server sends. Every request gets a response, unknown ones too.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use lsp_types::request::{
    ApplyWorkspaceEdit, RegisterCapability, Request as _, ShowMessageRequest, UnregisterCapability,
    WorkDoneProgressCreate, WorkspaceConfiguration, WorkspaceDiagnosticRefresh, WorkspaceFoldersRequest,
};
use lsp_types::{ApplyWorkspaceEditResponse, WorkspaceFolder};
use serde_json::Value;

use super::jsonrpc::{ResponseError, RpcRequest};
use super::wire;
use crate::path::AbsPath;

/// JSON-RPC's error code for an unknown method.
pub(super) const METHOD_NOT_FOUND: i64 = -32601;

/// How many edits to keep for the request that caused them.
const MAX_EDITS: usize = 64;

/// The name of the only workspace folder; servers put it into their logs.
const FOLDER_NAME: &str = "workspace";

/// How many different requests for settings to keep for recording.
const MAX_SETTINGS_REQUESTS: usize = 64;

/// Answers the server's requests.
#[derive(Debug)]
pub(super) struct ServerRequestHandler {
    /// The tree of settings; section `a.b` is member `b` of member `a`.
    settings: Value,
    root: AbsPath,
    /// The methods that the server registered, by registration id.
    registered: Mutex<BTreeMap<String, String>>,
    /// The edits that the server asked to apply and that were not taken yet.
    edits: Mutex<Vec<Value>>,
    /// The parameters of the requests for settings, each once, in the order of their arrival.
    settings_requests: Mutex<Vec<Value>>,
}

impl ServerRequestHandler {
    pub(super) fn new(settings: Value, root: AbsPath) -> Self {
        Self {
            settings,
            root,
            registered: Mutex::default(),
            edits: Mutex::default(),
            settings_requests: Mutex::default(),
        }
    }

    /// The response to one request.
    pub(super) fn respond(&self, request: &RpcRequest) -> Result<Value, ResponseError> {
        let params = request.params.as_ref().unwrap_or(&Value::Null);
        match request.method.as_str() {
            WorkspaceConfiguration::METHOD => Ok(wire::value(configuration(&self.settings, params))),
            WorkspaceFoldersRequest::METHOD => Ok(wire::value(folders(&self.root))),
            RegisterCapability::METHOD => {
                for (id, method) in registrations(params, "registrations") {
                    self.lock().insert(id, method);
                }
                Ok(Value::Null)
            }
            UnregisterCapability::METHOD => {
                // The misspelling is LSP's.
                for (id, _) in registrations(params, "unregisterations") {
                    self.lock().remove(&id);
                }
                Ok(Value::Null)
            }
            // An edit is never applied here: it is passed to the request whose command caused it.
            ApplyWorkspaceEdit::METHOD => {
                let mut edits = self.edits.lock().unwrap_or_else(PoisonError::into_inner);
                if edits.len() < MAX_EDITS {
                    edits.push(params["edit"].clone());
                }
                Ok(wire::value(edit_not_applied()))
            }
            WorkDoneProgressCreate::METHOD
            | ShowMessageRequest::METHOD
            | WorkspaceDiagnosticRefresh::METHOD => Ok(Value::Null),
            other => Err(ResponseError {
                code: METHOD_NOT_FOUND,
                message: format!("unknown method {other}"),
                data: None,
            }),
        }
    }

    /// Whether the server registered the method after initialization.
    pub(super) fn is_registered(&self, method: &str) -> bool {
        self.lock().values().any(|registered| registered == method)
    }

    /// Removes and returns the edits that the server asked to apply.
    pub(super) fn take_edits(&self) -> Vec<Value> {
        std::mem::take(&mut *self.edits.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The edits that the server asked to apply, without removing them.
    pub(super) fn edits(&self) -> Vec<Value> {
        self.edits.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The methods that the server registered, without duplicates.
    pub(super) fn registered(&self) -> Vec<String> {
        let methods: std::collections::BTreeSet<String> = self.lock().values().cloned().collect();
        methods.into_iter().collect()
    }

    /// Remembers a request for settings, for recording.
    pub(super) fn remember_settings_request(&self, request: &RpcRequest) {
        let Some(params) = &request.params else { return };
        if request.method == WorkspaceConfiguration::METHOD {
            let mut requests = self.settings_requests.lock().unwrap_or_else(PoisonError::into_inner);
            if requests.len() < MAX_SETTINGS_REQUESTS && !requests.contains(params) {
                requests.push(params.clone());
            }
        }
    }

    /// The parameters of the remembered requests for settings.
    pub(super) fn settings_requests(&self) -> Vec<Value> {
        self.settings_requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, String>> {
        self.registered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The only workspace folder.
pub(super) fn folders(root: &AbsPath) -> Vec<WorkspaceFolder> {
    vec![WorkspaceFolder { uri: wire::uri(root), name: FOLDER_NAME.to_owned() }]
}

/// The response to an edit that the server asks to apply.
pub(super) fn edit_not_applied() -> ApplyWorkspaceEditResponse {
    let reason = "this client does not apply edits".to_owned();
    ApplyWorkspaceEditResponse { applied: false, failure_reason: Some(reason), failed_change: None }
}

/// One value for each item of a request for settings, `null` for settings that are not set.
pub(super) fn configuration(settings: &Value, params: &Value) -> Vec<Value> {
    let items = params["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    let value = |item: &Value| match item["section"].as_str() {
        Some(section) => {
            section.split('.').fold(settings, |tree, name| tree.get(name).unwrap_or(&Value::Null)).clone()
        }
        None => Value::Null,
    };
    items.iter().map(value).collect()
}

fn registrations(params: &Value, member: &str) -> Vec<(String, String)> {
    let list = params[member].as_array().map(Vec::as_slice).unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    list.iter().map(|one| (text(&one["id"]), text(&one["method"]))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::lsp::jsonrpc::RpcId;

    fn request(
        callbacks: &ServerRequestHandler,
        method: &str,
        params: Value,
    ) -> Result<Value, ResponseError> {
        let params = Some(params).filter(|value| !value.is_null());
        callbacks.respond(&RpcRequest { id: RpcId::Number(1), method: method.to_owned(), params })
    }

    fn callbacks() -> ServerRequestHandler {
        ServerRequestHandler::new(
            json!({"python": {"analysis": {"logLevel": "Information"}}}),
            AbsPath::new("/w").unwrap(),
        )
    }

    #[test]
    fn settings_are_answered_item_by_item() {
        let items = json!({"items": [
            {"scopeUri": "file:///w", "section": "python"}, {"section": "python.analysis"},
            {"section": "python.analysis.logLevel"}, {"section": "editor"}, {},
        ]});
        let expected = json!([
            {"analysis": {"logLevel": "Information"}}, {"logLevel": "Information"}, "Information", null, null,
        ]);
        assert_eq!(request(&callbacks(), "workspace/configuration", items), Ok(expected));
        assert_eq!(request(&callbacks(), "workspace/configuration", Value::Null), Ok(json!([])));
    }

    #[test]
    fn registrations_are_kept_until_they_are_withdrawn() {
        let callbacks = callbacks();
        let one = |id: &str| json!({"id": id, "method": "textDocument/diagnostic"});
        let register =
            |id: &str| request(&callbacks, "client/registerCapability", json!({"registrations": [one(id)]}));
        // Pyright registers the method twice and then unregisters the first.
        assert_eq!((register("a"), register("b")), (Ok(Value::Null), Ok(Value::Null)));
        let withdraw = |id: &str| {
            request(&callbacks, "client/unregisterCapability", json!({"unregisterations": [one(id)]}))
        };
        assert_eq!(withdraw("a"), Ok(Value::Null));
        assert!(callbacks.is_registered("textDocument/diagnostic"));
        assert_eq!(withdraw("b"), Ok(Value::Null));
        assert!(!callbacks.is_registered("textDocument/diagnostic"));
    }

    #[test]
    fn every_request_gets_a_response() {
        let callbacks = callbacks();
        for method in
            ["window/workDoneProgress/create", "window/showMessageRequest", "workspace/diagnostic/refresh"]
        {
            assert_eq!(request(&callbacks, method, json!({})), Ok(Value::Null), "{method}");
        }
        assert_eq!(request(&callbacks, "workspace/applyEdit", json!({})).unwrap()["applied"], false);
        let folders = json!([{"uri": "file:///w", "name": "workspace"}]);
        assert_eq!(request(&callbacks, "workspace/workspaceFolders", Value::Null), Ok(folders));
        assert_eq!(request(&callbacks, "$/unknown", json!({})).unwrap_err().code, -32601);
    }
}
