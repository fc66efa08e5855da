//! Records the requests and responses of one operation on its tape, and replays a server from a tape.

use serde_json::{Value, json};

use super::connection::Connection;
use super::error::LspError;
use super::jsonrpc::{Message, RawResult, ResponseError, RpcId};
use crate::digest::{Digest, to_canonical};
use crate::path::{AbsPath, FileUri};
use crate::tape::{MessageSender, Tape};

/// Records a request; returns its number on the tape.
pub(super) fn record_request(tape: &Tape, method: &str, params: &Value) -> Option<u64> {
    tape.record_call(|id| json!({"id": id, "method": method, "params": params}).to_string())
}

/// Records the response to a request, and the edits that the server asked to apply meanwhile.
pub(super) fn record_response(tape: &Tape, id: u64, edits: &[Value], response: &Result<RawResult, LspError>) {
    for edit in edits {
        tape.record_message(MessageSender::Server, || {
            json!({"method": "workspace/applyEdit", "params": {"edit": edit}}).to_string()
        });
    }
    let outcome = match response {
        Ok(reply) => match reply.read::<Value>() {
            Ok(result) => json!({"id": id, "result": result}),
            // The response is not valid and cannot be replayed.
            Err(_) => return,
        },
        Err(error) => match error.response() {
            Some((code, message)) => json!({"id": id, "error": {"code": code, "message": message}}),
            // There was no response.
            None => return,
        },
    };
    tape.record_message(MessageSender::Server, || outcome.to_string());
}

/// Records that a document was opened or changed on the server, with the digest of its text.
pub fn record_did_open(tape: &Tape, path: &AbsPath, digest: &Digest) {
    let document = || json!({"uri": FileUri::from_path(path).as_str(), "digest": digest});
    let message = || json!({"method": "textDocument/didOpen", "params": {"textDocument": document()}});
    tape.record_message(MessageSender::Client, || message().to_string());
}

/// Records the server's initialization: the result of `initialize`, registered methods and log lines.
pub(super) fn record_initialize(tape: &Tape, response: &Value, registered: &[String], lines: &[String]) {
    if let Some(id) = record_request(tape, "initialize", &json!({})) {
        tape.record_message(MessageSender::Server, || json!({"id": id, "result": response}).to_string());
    }
    for method in registered {
        let registrations = json!([{"id": method, "method": method}]);
        let message =
            json!({"method": "client/registerCapability", "params": {"registrations": registrations}});
        tape.record_message(MessageSender::Server, || message.to_string());
    }
    for line in lines {
        let params = json!({"type": 3, "message": line});
        tape.record_message(MessageSender::Server, || {
            json!({"method": "window/logMessage", "params": params}).to_string()
        });
    }
}

/// Replays the server on a tape: answers every request as recorded, in any order. A request without a recorded
/// response ends the connection. `after_initialize` are the messages that the server sends once it is initialized.
#[must_use]
pub fn replay(tape: Tape, after_initialize: Vec<String>) -> Connection {
    let (here, mut there) = Connection::pair();
    tokio::spawn(async move {
        while let Some(Ok(message)) = there.receiver.recv().await {
            let Message::Request(request) = message else {
                if matches!(&message, Message::Notification(note) if note.method == "exit") {
                    return;
                }
                continue;
            };
            if request.method == "shutdown" {
                let _ = there.sender.send(Ok(Message::response(request.id, Ok(Value::Null))));
                continue;
            }
            let params = match request.method.as_str() {
                // The client's identity and process do not affect the result.
                "initialize" => json!({}),
                _ => request.params.clone().unwrap_or(Value::Null),
            };
            let Some(exchange) = tape.replay_call(&request.method, &canonical(&params)) else { return };
            for (number, text) in exchange.meanwhile.iter().enumerate() {
                if let Some(message) = server_message(text, number) {
                    let _ = there.sender.send(Ok(message));
                }
            }
            let Some(outcome) = exchange.outcome.as_deref().and_then(parse_outcome) else {
                return;
            };
            if there.sender.send(Ok(Message::response(request.id, outcome))).is_err() {
                return;
            }
            if request.method == "initialize" {
                for message in after_initialize
                    .iter()
                    .enumerate()
                    .filter_map(|(number, text)| server_message(text, number))
                {
                    let _ = there.sender.send(Ok(message));
                }
            }
        }
    });
    here
}

/// A message that the server sends without a request.
fn server_message(text: &str, number: usize) -> Option<Message> {
    let message: Value = serde_json::from_str(text).ok()?;
    let method = message["method"].as_str()?;
    let params = Some(message["params"].clone());
    Some(match method {
        "window/logMessage" => Message::notification(method, params),
        _ => Message::request(RpcId::Number(i64::try_from(number).ok()?), method, params),
    })
}

fn parse_outcome(text: &str) -> Option<Result<Value, ResponseError>> {
    let mut message: Value = serde_json::from_str(text).ok()?;
    if let Some(error) = message.get("error") {
        let code = error["code"].as_i64()?;
        let message = error["message"].as_str()?.to_owned();
        return Some(Err(ResponseError { code, message, data: None }));
    }
    Some(Ok(message.get_mut("result")?.take()))
}

/// The canonical form of parameters, by which requests are matched.
fn canonical(params: &Value) -> String {
    to_canonical(params)
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .unwrap_or_else(|| params.to_string())
}
