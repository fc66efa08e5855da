//! The conversation of one operation on its tape, and a server that says again what is on one.

use serde_json::{Value, json};

use super::connection::Connection;
use super::error::LspError;
use super::jsonrpc::{Id, Message, Reply, ResponseError};
use crate::digest::{Digest, to_canonical};
use crate::path::{AbsPath, FileUri};
use crate::tape::{Side, Tape};

/// Notes a call that goes out; its number on the tape.
pub(super) fn call(tape: &Tape, method: &str, params: &Value) -> Option<u64> {
    tape.call(|id| json!({"id": id, "method": method, "params": params}).to_string())
}

/// Notes what came of a call, and the edits that the server wanted made meanwhile.
pub(super) fn answered(tape: &Tape, id: u64, edits: &[Value], answer: &Result<Reply, LspError>) {
    for edit in edits {
        tape.note(Side::Server, || {
            json!({"method": "workspace/applyEdit", "params": {"edit": edit}}).to_string()
        });
    }
    let outcome = match answer {
        Ok(reply) => match reply.read::<Value>() {
            Ok(result) => json!({"id": id, "result": result}),
            // It answered nothing that could be said again.
            Err(_) => return,
        },
        Err(error) => match error.response() {
            Some((code, message)) => json!({"id": id, "error": {"code": code, "message": message}}),
            // It never answered.
            None => return,
        },
    };
    tape.note(Side::Server, || outcome.to_string());
}

/// Notes that the server was shown a document. Its text is told by its digest.
pub fn shown(tape: &Tape, path: &AbsPath, digest: &Digest) {
    let document = || json!({"uri": FileUri::from_path(path).as_str(), "digest": digest});
    let message = || json!({"method": "textDocument/didOpen", "params": {"textDocument": document()}});
    tape.note(Side::Client, || message().to_string());
}

/// Notes how the server introduced itself: its answer to `initialize`, and what it said in its log.
pub(super) fn introduced(tape: &Tape, answer: &Value, registered: &[String], lines: &[String]) {
    if let Some(id) = call(tape, "initialize", &json!({})) {
        tape.note(Side::Server, || json!({"id": id, "result": answer}).to_string());
    }
    for method in registered {
        let registrations = json!([{"id": method, "method": method}]);
        let message =
            json!({"method": "client/registerCapability", "params": {"registrations": registrations}});
        tape.note(Side::Server, || message.to_string());
    }
    for line in lines {
        let params = json!({"type": 3, "message": line});
        tape.note(Side::Server, || json!({"method": "window/logMessage", "params": params}).to_string());
    }
}

/// A server that says what is on a tape: it answers every call as it was answered, whatever the order. A call that was never
/// answered, or never made, ends the connection. `introduction` is what it says by itself once it is initialized.
#[must_use]
pub fn replay(tape: Tape, introduction: Vec<String>) -> Connection {
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
                // Who asks, and from which process, is no part of the question.
                "initialize" => json!({}),
                _ => request.params.clone().unwrap_or(Value::Null),
            };
            let Some(exchange) = tape.exchange(&request.method, &canonical(&params)) else { return };
            for (number, text) in exchange.meanwhile.iter().enumerate() {
                if let Some(message) = said(text, number) {
                    let _ = there.sender.send(Ok(message));
                }
            }
            let Some(outcome) = exchange.outcome.as_deref().and_then(read_outcome) else {
                return;
            };
            if there.sender.send(Ok(Message::response(request.id, outcome))).is_err() {
                return;
            }
            if request.method == "initialize" {
                for message in introduction.iter().enumerate().filter_map(|(number, text)| said(text, number))
                {
                    let _ = there.sender.send(Ok(message));
                }
            }
        }
    });
    here
}

/// A message of the server's own.
fn said(text: &str, number: usize) -> Option<Message> {
    let message: Value = serde_json::from_str(text).ok()?;
    let method = message["method"].as_str()?;
    let params = Some(message["params"].clone());
    Some(match method {
        "window/logMessage" => Message::notification(method, params),
        _ => Message::request(Id::Number(i64::try_from(number).ok()?), method, params),
    })
}

fn read_outcome(text: &str) -> Option<Result<Value, ResponseError>> {
    let mut message: Value = serde_json::from_str(text).ok()?;
    if let Some(error) = message.get("error") {
        let code = error["code"].as_i64()?;
        let message = error["message"].as_str()?.to_owned();
        return Some(Err(ResponseError { code, message, data: None }));
    }
    Some(Ok(message.get_mut("result")?.take()))
}

/// Parameters in the one form by which calls are matched.
fn canonical(params: &Value) -> String {
    to_canonical(params)
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .unwrap_or_else(|| params.to_string())
}
