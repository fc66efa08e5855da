//! Clients against scripted servers: over a connection in memory, and as real processes.

mod in_memory;
mod processes;

use std::time::Duration;

use serde_json::{Value, json};

use super::client::{Client, InitializeOptions};
use super::connection::Connection;
use super::error::LspError;
use super::jsonrpc::{Message, Notification, ResponseError, RpcId, RpcRequest};
use super::profile::{Profile, ServerSettings};
use crate::model::server::ServerKind;
use crate::path::AbsPath;

/// Long enough for slow machines, short enough for a hanging test.
const TEST_TIMEOUT: Duration = Duration::from_secs(20);

fn at(path: &str) -> AbsPath {
    AbsPath::new(path).unwrap()
}

fn options(within: Duration) -> InitializeOptions {
    let settings = ServerSettings { python: Some(at("/venv/bin/python")) };
    InitializeOptions { root: at("/w"), settings, process_id: Some(7), within }
}

/// The server's end of a connection, controlled by the test.
struct Peer {
    connection: Connection,
}

impl Peer {
    async fn next(&mut self) -> Message {
        let received = tokio::time::timeout(TEST_TIMEOUT, self.connection.receiver.recv()).await;
        received.expect("a message in time").expect("a message").expect("no garbage")
    }

    async fn request(&mut self, method: &str) -> RpcRequest {
        match self.next().await {
            Message::Request(request) if request.method == method => request,
            other => panic!("expected the request {method}, got {other:?}"),
        }
    }

    async fn notification(&mut self, method: &str) -> Value {
        match self.next().await {
            Message::Notification(Notification { method: found, params }) if found == method => {
                params.map(|params| params.value().into_owned()).unwrap_or_default()
            }
            other => panic!("expected the notification {method}, got {other:?}"),
        }
    }

    /// Sends a request to the client and returns its response.
    async fn request_client(&mut self, method: &str, params: Value) -> Result<Value, ResponseError> {
        let id = RpcId::Text("mine".to_owned());
        self.send(Message::request(id.clone(), method, Some(params)));
        match self.next().await {
            Message::Response(response) if response.id == Some(id) => {
                response.outcome.map(|reply| reply.read().unwrap())
            }
            other => panic!("expected the answer to {method}, got {other:?}"),
        }
    }

    fn send(&self, message: Message) {
        self.connection.sender.send(Ok(message)).unwrap();
    }

    fn reply(&self, request: &RpcRequest, result: Value) {
        self.send(Message::response(request.id.clone(), Ok(result)));
    }

    fn refuse(&self, request: &RpcRequest, code: i64, data: Option<Value>) {
        let error = ResponseError { code, message: "no".to_owned(), data };
        self.send(Message::response(request.id.clone(), Err(error)));
    }

    fn log(&self, line: &str) {
        self.send(Message::notification("window/logMessage", Some(json!({"type": 3, "message": line}))));
    }
}

/// Responds to `initialize` with this result; returns both sides.
async fn initialized(answer: Value) -> (Result<Client, LspError>, Peer) {
    let (ours, theirs) = Connection::pair();
    let mut peer = Peer { connection: theirs };
    let serve = async {
        let request = peer.request("initialize").await;
        peer.reply(&request, answer);
    };
    let profile = Profile::of(ServerKind::Pyright);
    let (client, ()) = tokio::join!(Client::initialize(ours, None, profile, options(TEST_TIMEOUT)), serve);
    (client, peer)
}

/// A client of a server with Pyright's capabilities.
async fn connected() -> (Client, Peer) {
    let offered = json!({
        "definitionProvider": {"workDoneProgress": true}, "referencesProvider": true, "hoverProvider": true,
        "documentSymbolProvider": true, "workspaceSymbolProvider": true, "callHierarchyProvider": true,
    });
    let (client, mut peer) = initialized(json!({"capabilities": offered})).await;
    peer.notification("initialized").await;
    // The version of the server is unknown.
    peer.notification("workspace/didChangeConfiguration").await;
    (client.unwrap(), peer)
}
