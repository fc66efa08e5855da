//! The answers to what a server asks of us. Every request gets one, also those that we do not know.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};

use super::jsonrpc::{Request, ResponseError};

/// JSON-RPC's number for a method that does not exist here.
const METHOD_NOT_FOUND: i64 = -32601;

/// How many edits are kept for whoever asked for them.
const MOST_EDITS: usize = 64;

/// The name of the one workspace folder, which servers put into their logs.
pub(super) const FOLDER_NAME: &str = "workspace";

/// What the answers are made from.
#[derive(Debug)]
pub(super) struct Callbacks {
    /// The tree of settings; `a.b` is member `b` of member `a`.
    settings: Value,
    root_uri: String,
    /// Which methods the server registered, by the registration's id.
    registered: Mutex<BTreeMap<String, String>>,
    /// The edits that the server wanted made and nobody has taken.
    edits: Mutex<Vec<Value>>,
}

impl Callbacks {
    pub(super) fn new(settings: Value, root_uri: String) -> Self {
        Self { settings, root_uri, registered: Mutex::new(BTreeMap::new()), edits: Mutex::default() }
    }

    /// The answer to one request.
    pub(super) fn answer(&self, request: &Request) -> Result<Value, ResponseError> {
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
                // The misspelling is the standard's.
                for (id, _) in registrations(params, "unregisterations") {
                    self.lock().remove(&id);
                }
                Ok(Value::Null)
            }
            // No edit is ever made behind the caller's back: it is handed to whoever let the server run a command.
            "workspace/applyEdit" => {
                let mut edits = self.edits.lock().unwrap_or_else(PoisonError::into_inner);
                if edits.len() < MOST_EDITS {
                    edits.push(params["edit"].clone());
                }
                Ok(json!({"applied": false, "failureReason": "edits are not applied here"}))
            }
            "window/workDoneProgress/create"
            | "window/showMessageRequest"
            | "workspace/diagnostic/refresh" => Ok(Value::Null),
            other => Err(ResponseError {
                code: METHOD_NOT_FOUND,
                message: format!("{other} is not known here"),
                data: None,
            }),
        }
    }

    /// Whether the server registered the method after it was initialized.
    pub(super) fn is_registered(&self, method: &str) -> bool {
        self.lock().values().any(|registered| registered == method)
    }

    /// The edits that the server wanted made since they were last taken.
    pub(super) fn take_edits(&self) -> Vec<Value> {
        std::mem::take(&mut *self.edits.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The same, left where they are.
    pub(super) fn edits(&self) -> Vec<Value> {
        self.edits.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The methods that the server registered, each once.
    pub(super) fn registered(&self) -> Vec<String> {
        let methods: std::collections::BTreeSet<String> = self.lock().values().cloned().collect();
        methods.into_iter().collect()
    }

    /// The one workspace folder.
    pub(super) fn folders(&self) -> Value {
        json!([{"uri": self.root_uri, "name": FOLDER_NAME}])
    }

    /// One value for each item that is asked for, `null` for what is not set.
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
    use crate::lsp::jsonrpc::Id;

    fn ask(callbacks: &Callbacks, method: &str, params: Value) -> Result<Value, ResponseError> {
        let params = Some(params).filter(|value| !value.is_null());
        callbacks.answer(&Request { id: Id::Number(1), method: method.to_owned(), params })
    }

    fn callbacks() -> Callbacks {
        Callbacks::new(json!({"python": {"analysis": {"logLevel": "Information"}}}), "file:///w".to_owned())
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
        assert_eq!(ask(&callbacks(), "workspace/configuration", items), Ok(expected));
        assert_eq!(ask(&callbacks(), "workspace/configuration", Value::Null), Ok(json!([])));
    }

    #[test]
    fn registrations_are_remembered_until_they_are_withdrawn() {
        let callbacks = callbacks();
        let one = |id: &str| json!({"id": id, "method": "textDocument/diagnostic"});
        let register =
            |id: &str| ask(&callbacks, "client/registerCapability", json!({"registrations": [one(id)]}));
        // Pyright announces the method twice and then withdraws the first.
        assert_eq!((register("a"), register("b")), (Ok(Value::Null), Ok(Value::Null)));
        let withdraw =
            |id: &str| ask(&callbacks, "client/unregisterCapability", json!({"unregisterations": [one(id)]}));
        assert_eq!(withdraw("a"), Ok(Value::Null));
        assert!(callbacks.is_registered("textDocument/diagnostic"));
        assert_eq!(withdraw("b"), Ok(Value::Null));
        assert!(!callbacks.is_registered("textDocument/diagnostic"));
    }

    #[test]
    fn everything_is_answered() {
        let callbacks = callbacks();
        for method in
            ["window/workDoneProgress/create", "window/showMessageRequest", "workspace/diagnostic/refresh"]
        {
            assert_eq!(ask(&callbacks, method, json!({})), Ok(Value::Null), "{method}");
        }
        assert_eq!(ask(&callbacks, "workspace/applyEdit", json!({})).unwrap()["applied"], false);
        let folders = json!([{"uri": "file:///w", "name": "workspace"}]);
        assert_eq!(ask(&callbacks, "workspace/workspaceFolders", Value::Null), Ok(folders));
        assert_eq!(ask(&callbacks, "$/unknown", json!({})).unwrap_err().code, -32601);
    }
}
