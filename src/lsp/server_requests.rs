//! Responses to the requests that a server sends. Every request gets a response, unknown ones too.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};

use super::jsonrpc::{ResponseError, RpcRequest};

/// JSON-RPC's error code for an unknown method.
const METHOD_NOT_FOUND: i64 = -32601;

/// How many edits to keep for the request that caused them.
const MAX_EDITS: usize = 64;

/// The name of the only workspace folder; servers put it into their logs.
pub(super) const FOLDER_NAME: &str = "workspace";

/// Answers the server's requests.
#[derive(Debug)]
pub(super) struct ServerRequestHandler {
    /// The tree of settings; section `a.b` is member `b` of member `a`.
    settings: Value,
    root_uri: String,
    /// The methods that the server registered, by registration id.
    registered: Mutex<BTreeMap<String, String>>,
    /// The edits that the server asked to apply and that were not taken yet.
    edits: Mutex<Vec<Value>>,
}

impl ServerRequestHandler {
    pub(super) fn new(settings: Value, root_uri: String) -> Self {
        Self { settings, root_uri, registered: Mutex::new(BTreeMap::new()), edits: Mutex::default() }
    }

    /// The response to one request.
    pub(super) fn respond(&self, request: &RpcRequest) -> Result<Value, ResponseError> {
        let params = request.params.as_ref().unwrap_or(&Value::Null);
        match request.method.as_str() {
            "workspace/configuration" => Ok(self.configuration(params)),
            "workspace/workspaceFolders" => Ok(self.folders()),
            "client/registerCapability" => {
                for (id, method) in registrations(params, "registrations") {
                    self.lock().insert(id, method);
                }
                Ok(Value::Null)
            }
            "client/unregisterCapability" => {
                // The misspelling is LSP's.
                for (id, _) in registrations(params, "unregisterations") {
                    self.lock().remove(&id);
                }
                Ok(Value::Null)
            }
            // An edit is never applied here: it is passed to the request whose command caused it.
            "workspace/applyEdit" => {
                let mut edits = self.edits.lock().unwrap_or_else(PoisonError::into_inner);
                if edits.len() < MAX_EDITS {
                    edits.push(params["edit"].clone());
                }
                Ok(json!({"applied": false, "failureReason": "this client does not apply edits"}))
            }
            "window/workDoneProgress/create"
            | "window/showMessageRequest"
            | "workspace/diagnostic/refresh" => Ok(Value::Null),
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

    /// The only workspace folder.
    pub(super) fn folders(&self) -> Value {
        json!([{"uri": self.root_uri, "name": FOLDER_NAME}])
    }

    /// One value for each requested item, `null` for settings that are not set.
    fn configuration(&self, params: &Value) -> Value {
        let items = params["items"].as_array().map(Vec::as_slice).unwrap_or_default();
        let value = |item: &Value| match item["section"].as_str() {
            Some(section) => section
                .split('.')
                .fold(&self.settings, |tree, name| tree.get(name).unwrap_or(&Value::Null))
                .clone(),
            None => Value::Null,
        };
        items.iter().map(value).collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, String>> {
        self.registered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn registrations(params: &Value, member: &str) -> Vec<(String, String)> {
    let list = params[member].as_array().map(Vec::as_slice).unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    list.iter().map(|one| (text(&one["id"]), text(&one["method"]))).collect()
}

#[cfg(test)]
mod tests {
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
            "file:///w".to_owned(),
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
