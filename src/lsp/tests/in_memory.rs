//! The client against a scripted peer, message by message.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Peer, TEST_TIMEOUT, at, connected, initialized, options};
use crate::lsp::client::{Client, Readiness, ServerIdentity};
use crate::lsp::codec::CodecError;
use crate::lsp::connection::Connection;
use crate::lsp::documents::{ChangeKind, FileChange};
use crate::lsp::error::LspError;
use crate::lsp::jsonrpc::{Message, RpcId};
use crate::lsp::profile::Profile;
use crate::model::server::ServerKind;
use crate::text::{ColumnUnit, Position, Range};

const SHORT: Duration = Duration::from_millis(50);
const ORIGIN: Position = Position::new(0, 0);

fn location(line: u32) -> Value {
    let range = json!({"start": {"line": line, "character": 0}, "end": {"line": line, "character": 1}});
    json!({"uri": "file:///w/a.py", "range": range})
}

fn lines(listing: &crate::lsp::Listing<crate::lsp::LspLocation>) -> Vec<u32> {
    listing.items.iter().map(|place| place.range.start.line).collect()
}

#[tokio::test]
async fn initialize_sends_the_root_in_every_form() {
    let (ours, theirs) = Connection::pair();
    let mut peer = Peer { connection: theirs };
    let profile = Profile::of(ServerKind::Pyright);
    let client = tokio::spawn(Client::initialize(ours, None, profile, options(TEST_TIMEOUT)));
    let request = peer.request("initialize").await;
    let params = request.params.clone().unwrap();
    assert_eq!(params["rootUri"], "file:///w");
    assert_eq!(params["rootPath"], "/w");
    assert_eq!(params["workspaceFolders"][0]["uri"], "file:///w");
    assert_eq!(params["processId"], 7);
    assert_eq!(params["locale"], "en");
    // A server may send requests before it answers.
    let requested = peer
        .request_client("workspace/configuration", json!({"items": [{"section": "python"}, {}]}))
        .await
        .unwrap();
    assert_eq!(requested[0]["pythonPath"], "/venv/bin/python");
    assert_eq!(requested.as_array().unwrap().len(), 2);
    assert_eq!(peer.request_client("no/such", json!({})).await.unwrap_err().code, -32601);
    peer.reply(&request, json!({"capabilities": {"positionEncoding": "utf-8"}}));
    peer.notification("initialized").await;
    assert_eq!(client.await.unwrap().unwrap().encoding(), ColumnUnit::Utf8);
}

/// Pyright 1.1.406 waits for the notification, 1.1.414 would read its settings twice.
#[tokio::test]
async fn a_server_is_told_to_request_its_settings_if_it_waits_for_that() {
    for (version, told) in [("1.1.407", true), ("1.1.414", false)] {
        let (ours, theirs) = Connection::pair();
        let mut peer = Peer { connection: theirs };
        let profile = Profile::of(ServerKind::Pyright);
        let client = tokio::spawn(Client::initialize(ours, None, profile, options(TEST_TIMEOUT)));
        let request = peer.request("initialize").await;
        peer.log(&format!("Pyright language server {version} starting"));
        peer.reply(&request, json!({"capabilities": {}}));
        peer.notification("initialized").await;
        let client = client.await.unwrap().unwrap();
        if told {
            let params = peer.notification("workspace/didChangeConfiguration").await;
            assert_eq!(params, json!({"settings": null}));
        }
        client.open(&at("/w/a.py"), Arc::new("")).unwrap();
        peer.notification("textDocument/didOpen").await;
    }
}

#[tokio::test]
async fn the_identity_of_the_server() {
    let named = |name: &str| json!({"capabilities": {}, "serverInfo": {"name": name, "version": "1.2"}});
    let (client, _peer) = initialized(named("pyright")).await;
    let expected = ServerIdentity { name: "pyright".to_owned(), version: Some("1.2".to_owned()) };
    assert_eq!(client.unwrap().identity(), expected);
    let (client, _peer) = initialized(named("basedpyright")).await;
    assert!(matches!(client, Err(LspError::OtherServer { .. })), "{client:?}");

    let (client, peer) = connected().await;
    assert_eq!(client.identity().version, None);
    peer.log("Pyright language server 1.1.414 starting");
    peer.log("Found 1 source file");
    client.ready(TEST_TIMEOUT).await.unwrap();
    assert_eq!(client.identity().version.as_deref(), Some("1.1.414"));
}

#[tokio::test]
async fn another_server_is_recognized_by_its_first_log_line() {
    let (ours, theirs) = Connection::pair();
    let mut peer = Peer { connection: theirs };
    let profile = Profile::of(ServerKind::Pyright);
    let client = tokio::spawn(Client::initialize(ours, None, profile, options(TEST_TIMEOUT)));
    let request = peer.request("initialize").await;
    peer.log("basedpyright language server 1.40.1 starting");
    peer.reply(&request, json!({"capabilities": {}}));
    assert!(matches!(client.await.unwrap(), Err(LspError::OtherServer { .. })));
}

#[tokio::test]
async fn failing_initializations() {
    let (client, _peer) = initialized(json!({"capabilities": {"positionEncoding": "utf-7"}})).await;
    assert!(matches!(client, Err(LspError::Encoding(_))), "{client:?}");
    let (client, _peer) = initialized(json!({})).await;
    assert!(matches!(client, Err(LspError::Malformed { .. })), "{client:?}");

    let (ours, _silent) = Connection::pair();
    let profile = Profile::of(ServerKind::Pyright);
    let client = Client::initialize(ours, None, profile, options(SHORT)).await;
    let timeout = LspError::Timeout { method: "initialize".to_owned(), after: SHORT };
    assert_eq!(client.unwrap_err(), timeout);

    let (ours, theirs) = Connection::pair();
    theirs.sender.send(Err(CodecError::Header("Traceback".to_owned()))).unwrap();
    let client = Client::initialize(ours, None, profile, options(TEST_TIMEOUT)).await;
    assert!(matches!(&client, Err(LspError::Protocol(what)) if what.contains("Traceback")), "{client:?}");
}

#[tokio::test]
async fn requests_are_sent_before_they_are_awaited_and_answered_in_any_order() {
    let (client, mut peer) = connected().await;
    let requests = client.requests(TEST_TIMEOUT);
    let first = requests.definition(&at("/w/a.py"), Position::new(3, 5));
    let second = requests.references(&at("/w/a.py"), ORIGIN, true);
    let definition = peer.request("textDocument/definition").await;
    assert_eq!(
        definition.params.clone().unwrap(),
        json!({"textDocument": {"uri": "file:///w/a.py"}, "position": {"line": 3, "character": 5}})
    );
    let references = peer.request("textDocument/references").await;
    assert_eq!(references.params.clone().unwrap()["context"], json!({"includeDeclaration": true}));
    peer.reply(&references, json!([location(2), location(1)]));
    assert_eq!(lines(&second.await.unwrap()), [2, 1]);
    peer.reply(&definition, location(3));
    assert_eq!(lines(&first.await.unwrap()), [3]);
}

#[tokio::test]
async fn a_timeout_cancels_the_request() {
    let (client, mut peer) = connected().await;
    let answer = client.requests(SHORT).hover(&at("/w/a.py"), ORIGIN).await;
    assert_eq!(answer, Err(LspError::Timeout { method: "textDocument/hover".to_owned(), after: SHORT }));
    let hover = peer.request("textDocument/hover").await;
    let RpcId::Number(id) = hover.id else { panic!("a number") };
    assert_eq!(peer.notification("$/cancelRequest").await, json!({"id": id}));
    // The late response must not be taken for that of another request.
    assert!(matches!(client.wait_for_cancelled(SHORT).await, Err(LspError::Timeout { .. })));
    let next = client.requests(TEST_TIMEOUT).hover(&at("/w/a.py"), ORIGIN);
    peer.refuse(&hover, -32800, None);
    client.wait_for_cancelled(TEST_TIMEOUT).await.unwrap();
    let hover = peer.request("textDocument/hover").await;
    peer.reply(&hover, json!({"contents": "x"}));
    assert_eq!(next.await.unwrap().unwrap().markdown, "x");
}

#[tokio::test]
async fn dropping_an_unanswered_request_cancels_it() {
    let (client, mut peer) = connected().await;
    let requests = client.requests(TEST_TIMEOUT);
    drop(requests.hover(&at("/w/a.py"), ORIGIN));
    peer.request("textDocument/hover").await;
    peer.notification("$/cancelRequest").await;
    let answer = requests.hover(&at("/w/a.py"), ORIGIN);
    let hover = peer.request("textDocument/hover").await;
    peer.reply(&hover, Value::Null);
    assert_eq!(answer.await, Ok(None));
    client.open(&at("/w/a.py"), Arc::new("")).unwrap();
    peer.notification("textDocument/didOpen").await;
}

#[tokio::test]
async fn retryable_errors_are_retried_for_as_long_as_there_is_time() {
    let (client, mut peer) = connected().await;
    let requests = client.requests(TEST_TIMEOUT);
    let answer = tokio::spawn(requests.hover(&at("/w/a.py"), ORIGIN));
    for data in [None, Some(json!({"retriggerRequest": true})), None, None, None] {
        let hover = peer.request("textDocument/hover").await;
        peer.refuse(&hover, if data.is_some() { -32802 } else { -32801 }, data);
    }
    let hover = peer.request("textDocument/hover").await;
    peer.reply(&hover, json!({"contents": "x"}));
    assert!(answer.await.unwrap().unwrap().is_some());

    // The delays are 20, 40, 80 ms: the fourth one would end too late.
    let requests = client.requests(Duration::from_millis(250));
    let answer = tokio::spawn(requests.hover(&at("/w/a.py"), ORIGIN));
    let refuse = async {
        loop {
            let hover = peer.request("textDocument/hover").await;
            peer.refuse(&hover, -32801, None);
        }
    };
    let answer = tokio::select! {
        () = refuse => unreachable!("it never ends"),
        answer = answer => answer.unwrap(),
    };
    assert!(matches!(answer, Err(LspError::ContentModified { attempts: 1..=4, .. })), "{answer:?}");
}

/// ty 0.0.105 answers `workspace/symbol` so, if a document is opened meanwhile.
#[tokio::test]
async fn an_internal_error_is_retried_if_something_changed_meanwhile() {
    let (client, mut peer) = connected().await;
    let requests = client.requests(TEST_TIMEOUT);
    let answer = tokio::spawn(requests.hover(&at("/w/a.py"), ORIGIN));
    let hover = peer.request("textDocument/hover").await;
    client.open(&at("/w/b.py"), Arc::new("")).unwrap();
    peer.notification("textDocument/didOpen").await;
    peer.refuse(&hover, -32603, None);
    let hover = peer.request("textDocument/hover").await;
    // A request of another caller that is canceled changes nothing.
    drop(requests.hover(&at("/w/b.py"), ORIGIN));
    peer.request("textDocument/hover").await;
    peer.notification("$/cancelRequest").await;
    peer.refuse(&hover, -32603, None);
    let expected = LspError::Server { code: -32603, message: "no".to_owned() };
    assert_eq!(answer.await.unwrap(), Err(expected));
}

#[tokio::test]
async fn error_responses_map_to_distinct_errors() {
    let (client, mut peer) = connected().await;
    let name = || "textDocument/hover".to_owned();
    for (code, data, expected) in [
        (-32601, None, LspError::Unsupported { method: name() }),
        (-32800, None, LspError::Cancelled),
        (-32603, None, LspError::Server { code: -32603, message: "no".to_owned() }),
        (
            -32802,
            Some(json!({"retriggerRequest": false})),
            LspError::Server { code: -32802, message: "no".to_owned() },
        ),
    ] {
        let answer = client.requests(TEST_TIMEOUT).hover(&at("/w/a.py"), ORIGIN);
        let hover = peer.request("textDocument/hover").await;
        peer.refuse(&hover, code, data);
        assert_eq!(answer.await, Err(expected));
    }
    let answer = client.requests(TEST_TIMEOUT).hover(&at("/w/a.py"), ORIGIN);
    let hover = peer.request("textDocument/hover").await;
    peer.reply(&hover, json!([1]));
    assert!(matches!(answer.await, Err(LspError::Malformed { .. })));
}

#[tokio::test]
async fn an_unsupported_method_is_not_sent_until_it_is_registered() {
    let (client, mut peer) = connected().await;
    let requests = client.requests(TEST_TIMEOUT);
    let answer = requests.implementation(&at("/w/a.py"), ORIGIN).await;
    assert_eq!(answer, Err(LspError::Unsupported { method: "textDocument/implementation".to_owned() }));
    let registration = json!({"registrations": [{"id": "1", "method": "textDocument/implementation"}]});
    peer.request_client("client/registerCapability", registration).await.unwrap();
    let answer = requests.implementation(&at("/w/a.py"), ORIGIN);
    let request = peer.request("textDocument/implementation").await;
    peer.reply(&request, Value::Null);
    assert!(answer.await.unwrap().items.is_empty());
}

#[tokio::test]
async fn the_end_of_the_stream_fails_all_waiting_requests() {
    let (client, mut peer) = connected().await;
    let requests = client.requests(TEST_TIMEOUT);
    let waiting = requests.hover(&at("/w/a.py"), ORIGIN);
    peer.request("textDocument/hover").await;
    drop(peer);
    assert_eq!(waiting.await, Err(LspError::EndOfStream));
    assert_eq!(client.ready(TEST_TIMEOUT).await, Err(LspError::EndOfStream));
    assert_eq!(client.wait_for_cancelled(TEST_TIMEOUT).await, Err(LspError::EndOfStream));
    assert_eq!(client.open(&at("/w/a.py"), Arc::new("")), Err(LspError::EndOfStream));
    assert_eq!(requests.hover(&at("/w/a.py"), ORIGIN).await, Err(LspError::EndOfStream));
    assert_eq!(client.shutdown(TEST_TIMEOUT).await, Err(LspError::EndOfStream));
}

#[tokio::test]
async fn dropping_the_client_fails_all_waiting_requests() {
    let (client, _peer) = connected().await;
    let requests = client.requests(TEST_TIMEOUT);
    let waiting = requests.hover(&at("/w/a.py"), ORIGIN);
    drop(client);
    assert_eq!(waiting.await, Err(LspError::Closed));
    assert_eq!(requests.hover(&at("/w/a.py"), ORIGIN).await, Err(LspError::Closed));
}

#[tokio::test]
async fn readiness_needs_an_enumeration_after_the_last_created_or_deleted_file() {
    let (client, peer) = connected().await;
    assert!(matches!(client.ready(SHORT).await, Err(LspError::Timeout { .. })));
    peer.log("Found 3 source files");
    assert_eq!(client.ready(TEST_TIMEOUT).await, Ok(Readiness { files: 3 }));
    assert_eq!(client.ready(TEST_TIMEOUT).await, Ok(Readiness { files: 3 }));
    let announce =
        |kind| client.did_change_watched_files(&[FileChange { path: at("/w/b.py"), kind }]).unwrap();
    announce(ChangeKind::Changed);
    assert_eq!(client.ready(TEST_TIMEOUT).await, Ok(Readiness { files: 3 }));
    announce(ChangeKind::Created);
    assert!(matches!(client.ready(SHORT).await, Err(LspError::Timeout { .. })));
    peer.log("Found 4 source files");
    assert_eq!(client.ready(TEST_TIMEOUT).await, Ok(Readiness { files: 4 }));
}

#[tokio::test]
async fn document_notifications_are_sent_in_order() {
    let (client, mut peer) = connected().await;
    let path = at("/w/a.py");
    assert_eq!(client.change(&path, Arc::new("x")), Err(LspError::NotOpen(path.clone())));
    client.open(&path, Arc::new("x")).unwrap();
    client.change(&path, Arc::new("y")).unwrap();
    assert_eq!(client.open_documents(), vec![path.clone()]);
    client.close(&path).unwrap();
    client.close(&path).unwrap();
    assert_eq!(peer.notification("textDocument/didOpen").await["textDocument"]["text"], "x");
    let change = peer.notification("textDocument/didChange").await;
    assert_eq!(
        (&change["textDocument"]["version"], &change["contentChanges"]),
        (&2.into(), &json!([{"text": "y"}]))
    );
    peer.notification("textDocument/didClose").await;
    assert_eq!(client.shutdown(SHORT).await.unwrap_err().to_string(), "no response to shutdown within 50ms");
    peer.request("shutdown").await;
}

/// Pyright drops inferred types when a document is changed, and not when one is opened (1.1.414).
#[tokio::test]
async fn each_reset_changes_a_document() {
    let (client, mut peer) = connected().await;
    client.reset_inferred_types().unwrap();
    let opened = peer.notification("textDocument/didOpen").await;
    let mut known = opened["textDocument"]["text"].clone();
    for round in 0..2 {
        let changed = peer.notification("textDocument/didChange").await["contentChanges"][0]["text"].clone();
        assert_ne!(changed, known, "in round {round}");
        known = changed;
        client.reset_inferred_types().unwrap();
    }
}

#[tokio::test]
async fn an_orderly_shutdown() {
    let (client, mut peer) = connected().await;
    let end = tokio::spawn(client.shutdown(TEST_TIMEOUT));
    let request = peer.request("shutdown").await;
    assert_eq!(request.params, None);
    peer.reply(&request, Value::Null);
    peer.notification("exit").await;
    assert_eq!(end.await.unwrap(), Ok(()));
    assert!(peer.connection.receiver.recv().await.is_none());
}

#[tokio::test]
async fn unknown_responses_and_notifications_are_ignored() {
    let (client, mut peer) = connected().await;
    peer.send(Message::response(RpcId::Number(999), Ok(Value::Null)));
    peer.send(Message::response(RpcId::Text("x".to_owned()), Ok(Value::Null)));
    peer.send(Message::notification("$/progress", Some(json!({"token": 1, "value": {"kind": "odd"}}))));
    peer.send(Message::notification("window/logMessage", None));
    let answer = client.requests(TEST_TIMEOUT).document_symbols(&at("/w/a.py"));
    let request = peer.request("textDocument/documentSymbol").await;
    let range = json!({"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 1}});
    peer.reply(&request, json!([{"name": "f", "kind": 12, "range": range, "selectionRange": range}]));
    let symbols = answer.await.unwrap();
    assert_eq!(
        (symbols[0].kind.name(), symbols[0].range),
        ("function", Range::new(ORIGIN, Position::new(0, 1)))
    );
}
