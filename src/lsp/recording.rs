//! Records the requests and responses of one operation on its tape, and replays a server from a tape.

use lsp_types::notification::{
    DidChangeConfiguration, DidOpenTextDocument, Exit, Initialized, LogMessage, Notification,
};
use lsp_types::request::{
    ApplyWorkspaceEdit, Initialize, RegisterCapability, Request as _, Shutdown, WorkspaceConfiguration,
};
use lsp_types::{
    DidChangeConfigurationParams, InitializedParams, LogMessageParams, MessageType, Registration,
    RegistrationParams,
};
use serde_json::{Value, json};

use super::connection::Connection;
use super::error::LspError;
use super::jsonrpc::{Message, RawResult, ResponseError, RpcId};
use super::{server_requests, wire};
use crate::digest::Digest;
use crate::path::{AbsPath, FileUri};
use crate::tape::{MessageSender, Tape, call_key};

/// The messages of a server's initialization.
#[derive(Debug)]
pub(super) struct Handshake {
    /// The parameters of `initialize`, without the process id.
    params: Value,
    /// The result of `initialize`.
    pub(super) result: Value,
    /// Whether the server was told to request its settings.
    pub(super) settings_announced: bool,
}

impl Handshake {
    /// A handshake that has begun with these parameters.
    pub(super) const fn new(params: Value) -> Self {
        Self { params, result: Value::Null, settings_announced: false }
    }
}

/// Records a request; returns its number on the tape.
pub(super) fn record_request(tape: &Tape, method: &str, params: &Value) -> Option<u64> {
    tape.record_call(|id| json!({"id": id, "method": method, "params": params}).to_string())
}

/// Records the response to a request, and the edits that the server asked to apply meanwhile.
pub(super) fn record_response(tape: &Tape, id: u64, edits: &[Value], response: &Result<RawResult, LspError>) {
    for (number, edit) in edits.iter().enumerate() {
        let answer = wire::value(server_requests::edit_not_applied());
        let id = format!("{id}-{number}");
        record_server_request(tape, &id, ApplyWorkspaceEdit::METHOD, &json!({"edit": edit}), &answer);
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
    let message = || json!({"method": DidOpenTextDocument::METHOD, "params": {"textDocument": document()}});
    tape.record_message(MessageSender::Client, || message().to_string());
}

/// Records the server's initialization: its messages, the methods that the server has registered, its requests for
/// settings with their answers, and its log lines.
///
/// A warm server sent them long ago, so what is recorded is their content in a fixed order.
pub(super) fn record_initialize(
    tape: &Tape,
    handshake: &Handshake,
    registered: &[String],
    settings: &[(Value, Vec<Value>)],
    lines: &[String],
) {
    if let Some(id) = record_request(tape, Initialize::METHOD, &handshake.params) {
        let response = || json!({"id": id, "result": handshake.result}).to_string();
        tape.record_message(MessageSender::Server, response);
    }
    record_notification::<Initialized>(tape, MessageSender::Client, InitializedParams {});
    if handshake.settings_announced {
        let params = DidChangeConfigurationParams { settings: Value::Null };
        record_notification::<DidChangeConfiguration>(tape, MessageSender::Client, params);
    }
    for method in registered {
        let one = Registration { id: method.clone(), method: method.clone(), register_options: None };
        let params = wire::value(RegistrationParams { registrations: vec![one] });
        record_server_request(tape, method, RegisterCapability::METHOD, &params, &Value::Null);
    }
    for (number, (params, answer)) in settings.iter().enumerate() {
        let id = format!("settings-{number}");
        record_server_request(tape, &id, WorkspaceConfiguration::METHOD, params, &wire::value(answer));
    }
    for line in lines {
        let params = LogMessageParams { typ: MessageType::INFO, message: line.clone() };
        record_notification::<LogMessage>(tape, MessageSender::Server, params);
    }
}

fn record_notification<N: Notification>(tape: &Tape, from: MessageSender, params: N::Params) {
    tape.record_message(from, || json!({"method": N::METHOD, "params": wire::value(params)}).to_string());
}

/// Records a request of the server and the client's response.
fn record_server_request(tape: &Tape, id: &str, method: &str, params: &Value, answer: &Value) {
    let request = || json!({"id": id, "method": method, "params": params}).to_string();
    tape.record_message(MessageSender::Server, request);
    tape.record_message(MessageSender::Client, || json!({"id": id, "result": answer}).to_string());
}

/// Replays the server on a tape: answers every request as recorded, in any order. A request without a recorded
/// response ends the connection. `after_initialize` are the messages that the server sends once it is initialized.
#[must_use]
pub fn replay(tape: Tape, after_initialize: Vec<String>) -> Connection {
    let (here, mut there) = Connection::pair();
    tokio::spawn(async move {
        while let Some(Ok(message)) = there.receiver.recv().await {
            let Message::Request(request) = message else {
                if matches!(&message, Message::Notification(note) if note.method == Exit::METHOD) {
                    return;
                }
                continue;
            };
            if request.method == Shutdown::METHOD {
                let _ = there.sender.send(Ok(Message::response(request.id, Ok(Value::Null))));
                continue;
            }
            let params = request.params.clone().unwrap_or(Value::Null);
            let Some(exchange) = tape.replay_call(&call_key(&request.method, &params)) else { return };
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
            if request.method == Initialize::METHOD {
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
        LogMessage::METHOD => Message::notification(method, params),
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
