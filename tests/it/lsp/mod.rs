//! `lanser lsp`, by raw messages and by a client for tests of language servers.

use std::time::Duration;

use serde_json::{Value, json};

mod documents;

use crate::support::{
    Behavior, FakeServer, Framing, LANSER, Project, RpcClient, TestEnv, is_alive, venv, wait_until,
};

const PROJECT: &str = "\
//- /shapes.py
class Shape:
    def area(self) -> float:
        return 0.0


class Square(Shape):
    def area(self) -> float:
        return 4.0


def total(shapes: list[Shape]) -> float:
    return sum(shape.area() for shape in shapes)
//- /use.py
from shapes import Square, total

print(total([Square()]))
";

fn uri(env: &TestEnv, name: &str) -> String {
    format!("file://{}", env.file(name).display())
}

/// The position of a word of a file, 0-based, in UTF-16 code units.
fn at(env: &TestEnv, name: &str, word: &str) -> Value {
    let text = std::fs::read_to_string(env.file(name)).unwrap();
    position(&text, word)
}

fn position(text: &str, word: &str) -> Value {
    let offset = text.find(word).unwrap();
    let line = text[..offset].matches('\n').count();
    let before = text[..offset].rsplit('\n').next().unwrap();
    json!({"line": line, "character": before.encode_utf16().count()})
}

fn place(env: &TestEnv, name: &str, word: &str) -> Value {
    json!({"textDocument": {"uri": uri(env, name)}, "position": at(env, name, word)})
}

fn with(mut params: Value, more: Value) -> Value {
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    params
}

/// A client after the handshake, in the workspace of the environment.
fn connect(env: &TestEnv, args: &[&str], capabilities: Value) -> RpcClient {
    let mut client = RpcClient::start(env, &[&["lsp"], args].concat(), Framing::Headers);
    let root = format!("file://{}", env.cwd.display());
    let params = json!({"processId": null, "rootUri": root, "capabilities": capabilities});
    let answer = client.request("initialize", params);
    assert_eq!(answer["result"]["serverInfo"]["name"], "lanser", "{answer}");
    client.notify("initialized", json!({}));
    client
}

/// The capabilities of a client that supports everything that is tested.
fn everything() -> Value {
    json!({
        "general": {"positionEncodings": ["utf-16"]},
        "textDocument": {
            "documentSymbol": {"hierarchicalDocumentSymbolSupport": true},
            "codeAction": {"resolveSupport": {"properties": ["edit"]}},
            "diagnostic": {},
        },
        "workspace": {"workspaceEdit": {"documentChanges": true, "resourceOperations": ["create", "rename", "delete"]}},
    })
}

#[track_caller]
fn result(client: &mut RpcClient, method: &str, params: Value) -> Value {
    let answer = client.request(method, params);
    assert!(answer.get("error").is_none(), "{method}: {answer}");
    answer["result"].clone()
}

/// Places as `file:line:column`, 1-based.
fn places(found: &Value) -> Vec<String> {
    let found = found.as_array().unwrap_or_else(|| panic!("{found}"));
    let one = |place: &Value| {
        let start = &place["range"]["start"];
        let name = place["uri"].as_str().unwrap().rsplit('/').next().unwrap();
        format!("{name}:{}:{}", start["line"].as_u64().unwrap() + 1, start["character"].as_u64().unwrap() + 1)
    };
    found.iter().map(one).collect()
}

fn open(client: &mut RpcClient, env: &TestEnv, name: &str, text: &str) {
    let document = json!({"uri": uri(env, name), "languageId": "python", "version": 1, "text": text});
    client.notify("textDocument/didOpen", json!({"textDocument": document}));
}

#[test]
fn requests_about_code_are_answered() {
    let env = TestEnv::pyright(&Project::parse(PROJECT));
    let mut client = connect(&env, &[], everything());
    let found = result(&mut client, "textDocument/definition", place(&env, "use.py", "total([Square"));
    assert_eq!(places(&found), ["shapes.py:11:5"]);
    for method in ["textDocument/declaration", "textDocument/definition"] {
        let found = result(&mut client, method, place(&env, "use.py", "Square()"));
        assert_eq!(places(&found), ["shapes.py:6:7"], "{method}");
    }
    let found = result(&mut client, "textDocument/typeDefinition", place(&env, "shapes.py", "shape.area"));
    assert_eq!(places(&found), ["shapes.py:1:7"]);
    let found = result(&mut client, "textDocument/implementation", place(&env, "shapes.py", "area"));
    assert!(places(&found).contains(&"shapes.py:7:9".to_owned()), "{found}");
    let hover = result(&mut client, "textDocument/hover", place(&env, "use.py", "total([Square"));
    assert!(hover["contents"]["value"].as_str().unwrap().contains("-> float"), "{hover}");
    let params = with(place(&env, "shapes.py", "area"), json!({"context": {"includeDeclaration": true}}));
    let found = result(&mut client, "textDocument/references", params.clone());
    assert_eq!(places(&found), ["shapes.py:2:9", "shapes.py:12:22"]);
    let without = with(params, json!({"context": {"includeDeclaration": false}}));
    let found = result(&mut client, "textDocument/references", without);
    assert_eq!(places(&found), ["shapes.py:12:22"]);
    let outline = json!({"textDocument": {"uri": uri(&env, "shapes.py")}});
    let tree = result(&mut client, "textDocument/documentSymbol", outline.clone());
    let names = |list: &Value| -> Vec<String> {
        list.as_array().unwrap().iter().map(|symbol| symbol["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&tree), ["Shape", "Square", "total"]);
    assert!(names(&tree[0]["children"]).contains(&"area".to_owned()), "{tree}");
    let found = result(&mut client, "workspace/symbol", json!({"query": "Square"}));
    assert!(names(&found).contains(&"Square".to_owned()), "{found}");
    let found = result(&mut client, "workspace/symbol", json!({"query": "no_such_name"}));
    assert_eq!(found, json!([]));
    let items = result(&mut client, "textDocument/prepareCallHierarchy", place(&env, "shapes.py", "total"));
    assert_eq!(items[0]["name"], "total", "{items}");
    let callers = result(&mut client, "callHierarchy/incomingCalls", json!({"item": items[0]}));
    assert!(callers[0]["from"]["uri"].as_str().unwrap().ends_with("use.py"), "{callers}");
    assert_eq!(callers[0]["fromRanges"][0]["start"], json!({"line": 2, "character": 6}));
    let module = json!({"item": callers[0]["from"]});
    assert_eq!(result(&mut client, "callHierarchy/incomingCalls", module.clone()), json!([]));
    let refused = client.request("callHierarchy/outgoingCalls", module);
    assert!(refused["error"]["message"].as_str().unwrap().contains("not listed"), "{refused}");
    let callees = result(&mut client, "callHierarchy/outgoingCalls", json!({"item": items[0]}));
    assert!(callees.to_string().contains("\"area\""), "{callees}");
    let items = result(&mut client, "textDocument/prepareTypeHierarchy", place(&env, "shapes.py", "Square"));
    assert_eq!((&items[0]["name"], &items[0]["kind"]), (&json!("Square"), &json!(5)), "{items}");
    let above = result(&mut client, "typeHierarchy/supertypes", json!({"item": items[0]}));
    assert_eq!(names(&above), ["Shape"]);
    let below = result(&mut client, "typeHierarchy/subtypes", json!({"item": above[0]}));
    assert_eq!(names(&below), ["Square"]);
    let function = place(&env, "shapes.py", "total");
    assert_eq!(result(&mut client, "textDocument/prepareTypeHierarchy", function), Value::Null);
    let blank =
        json!({"textDocument": {"uri": uri(&env, "use.py")}, "position": {"line": 1, "character": 0}});
    let nothing = result(&mut client, "textDocument/hover", blank);
    assert_eq!(nothing, Value::Null);
    let unknown = client.request("textDocument/inlayHint", json!({}));
    assert_eq!(unknown["error"]["code"], -32601, "{unknown}");
    let invalid = client.request("textDocument/hover", json!({"textDocument": 3}));
    assert_eq!(invalid["error"]["code"], -32602, "{invalid}");
    result(&mut client, "shutdown", Value::Null);
    let late = client.request("textDocument/hover", json!({}));
    assert_eq!(late["error"]["code"], -32600, "{late}");
    client.notify("exit", Value::Null);
    let (code, elapsed) = client.finish();
    assert_eq!(code, Some(0));
    assert!(elapsed < Duration::from_secs(10), "{elapsed:?}");
    assert_eq!(env.left_behind(), Vec::<String>::new());
}

#[test]
fn answers_follow_the_disk_without_notifications() {
    let env = TestEnv::pyright(&Project::parse(PROJECT));
    let mut client = connect(&env, &[], everything());
    let references =
        with(place(&env, "shapes.py", "total"), json!({"context": {"includeDeclaration": true}}));
    let found = result(&mut client, "textDocument/references", references.clone());
    assert_eq!(found.as_array().unwrap().len(), 3);
    env.write("new.py", "import shapes\nshapes.total([])\n");
    let found = result(&mut client, "textDocument/references", references.clone());
    assert_eq!(places(&found), ["new.py:2:8", "shapes.py:11:5", "use.py:1:28", "use.py:3:7"]);
    env.write("use.py", "x = 1\n");
    std::fs::remove_file(env.file("new.py")).unwrap();
    let found = result(&mut client, "textDocument/references", references);
    assert_eq!(places(&found), ["shapes.py:11:5"]);
    // An item of a hierarchy is not taken for what is in its place now.
    let items = result(&mut client, "textDocument/prepareCallHierarchy", place(&env, "shapes.py", "total"));
    let text = std::fs::read_to_string(env.file("shapes.py")).unwrap();
    env.write("shapes.py", text.replace("total", "other"));
    let answer = client.request("callHierarchy/incomingCalls", json!({"item": items[0]}));
    assert_eq!(answer["error"]["code"], -32801, "{answer}");
}

#[test]
fn open_documents_with_unsaved_text_are_what_answers_are_about() {
    let env = TestEnv::pyright(&Project::parse(PROJECT));
    env.write("empty/notes.txt", "");
    let saved = std::fs::read_to_string(env.file("use.py")).unwrap();
    let mut client = connect(&env, &[], everything());
    open(&mut client, &env, "use.py", &saved);
    let references =
        with(place(&env, "shapes.py", "total"), json!({"context": {"includeDeclaration": true}}));
    assert_eq!(
        result(&mut client, "textDocument/references", references.clone()).as_array().unwrap().len(),
        3
    );
    // Two lines more, and another call.
    let unsaved = format!("# ü𝒳\n\n{saved}total([]); ü𝒳 = total([])\n");
    let change = json!({"textDocument": {"uri": uri(&env, "use.py"), "version": 2},
        "contentChanges": [{"text": unsaved}]});
    client.notify("textDocument/didChange", change);
    let found = result(&mut client, "textDocument/references", references.clone());
    assert_eq!(places(&found), ["shapes.py:11:5", "use.py:3:28", "use.py:5:7", "use.py:6:1", "use.py:6:18"]);
    let here =
        json!({"textDocument": {"uri": uri(&env, "use.py")}, "position": {"line": 5, "character": 17}});
    let found = result(&mut client, "textDocument/definition", here.clone());
    assert_eq!(places(&found), ["shapes.py:11:5"]);
    assert!(found[0]["uri"].as_str().unwrap().starts_with(&format!("file://{}/", env.cwd.display())));
    // A command would read the text on the disk, so that none is proposed.
    let taken = client.request("textDocument/rename", with(here.clone(), json!({"newName": "Shape"})));
    let message = taken["error"]["message"].as_str().unwrap();
    assert!(message.contains("save the changed documents") && message.contains("\nat: "), "{message}");
    assert!(!message.contains("lanser rename"), "{message}");
    // The rename is one of the text that the client has, and the version says so.
    let edit = result(&mut client, "textDocument/rename", with(here, json!({"newName": "summed"})));
    let change = edit["documentChanges"]
        .as_array()
        .unwrap()
        .iter()
        .find(|change| change["textDocument"]["uri"].as_str().unwrap().ends_with("use.py"));
    let change = change.unwrap_or_else(|| panic!("{edit}"));
    assert_eq!(change["textDocument"]["version"], 2, "{edit}");
    assert_eq!(change["edits"].as_array().unwrap().len(), 4, "{edit}");
    // A shell changes another file meanwhile.
    env.write("third.py", "from shapes import total\n");
    let found = result(&mut client, "textDocument/references", references.clone());
    assert_eq!(found.as_array().unwrap().len(), 6, "{found}");
    // Saved, the text is that of the disk.
    env.write("use.py", &unsaved);
    client.notify("textDocument/didSave", json!({"textDocument": {"uri": uri(&env, "use.py")}}));
    let found = result(&mut client, "textDocument/references", references.clone());
    assert_eq!(found.as_array().unwrap().len(), 6, "{found}");
    // A new file that was never saved.
    open(&mut client, &env, "draft.py", "from shapes import total\ntotal()\n");
    let found = result(&mut client, "textDocument/references", references.clone());
    assert_eq!(found.as_array().unwrap().len(), 8, "{found}");
    let params = json!({"textDocument": {"uri": uri(&env, "draft.py")}});
    let report = result(&mut client, "textDocument/diagnostic", params);
    assert!(report["items"].to_string().contains("reportCallIssue"), "{report}");
    assert!(!env.file("draft.py").exists());
    client.notify("textDocument/didClose", json!({"textDocument": {"uri": uri(&env, "draft.py")}}));
    let found = result(&mut client, "textDocument/references", references);
    assert_eq!(found.as_array().unwrap().len(), 6, "{found}");
    assert_eq!(client.finish().0, Some(0));
    assert_eq!(env.left_behind(), Vec::<String>::new());
}

#[test]
fn text_that_cannot_be_shown_to_the_server_is_an_error() {
    let env = TestEnv::pyright(&Project::parse(PROJECT));
    std::os::unix::fs::symlink("shapes.py", env.file("link.py")).unwrap();
    let mut client = connect(&env, &[], everything());
    let params = place(&env, "shapes.py", "total");
    open(&mut client, &env, "use.py", "x = 1\n");
    for _ in 0..2 {
        let refused = client.request("textDocument/definition", params.clone());
        assert_eq!(refused["error"]["code"], -32803, "{refused}");
        assert!(refused["error"]["message"].as_str().unwrap().contains("hint: save"), "{refused}");
    }
    // A client of an agent has no text of its own.
    let mut client = connect(&env, &["--from-disk"], everything());
    open(&mut client, &env, "use.py", "x = 1\n");
    let found = result(&mut client, "textDocument/definition", place(&env, "use.py", "total([Square"));
    assert!(!found.as_array().unwrap().is_empty(), "{found}");
}

#[test]
fn a_rename_is_refused_where_the_command_refuses_it() {
    let env = TestEnv::pyright(&Project::parse(PROJECT));
    let before = std::fs::read_to_string(env.file("shapes.py")).unwrap();
    let rename = with(place(&env, "shapes.py", "area"), json!({"newName": "surface"}));
    let mut client = connect(&env, &[], everything());
    let offered = result(&mut client, "textDocument/prepareRename", place(&env, "shapes.py", "area"));
    assert_eq!(offered["placeholder"], "area", "{offered}");
    assert_eq!(offered["range"]["start"], json!({"line": 1, "character": 8}));
    let refused = client.request("textDocument/rename", rename.clone());
    assert_eq!(refused["error"]["code"], -32803, "{refused}");
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains("Square") && message.contains("hint:"), "{refused}");
    assert!(message.ends_with("`lanser lsp --rename-family` renames related methods, too"), "{refused}");
    assert!(refused["error"]["data"]["symbol"].is_string(), "{refused}");
    let keyword = with(place(&env, "shapes.py", "total"), json!({"newName": "class"}));
    assert_eq!(client.request("textDocument/rename", keyword)["error"]["code"], -32803);
    let mut client = connect(&env, &["--rename-family"], json!({}));
    let edit = result(&mut client, "textDocument/rename", rename);
    let edits = &edit["changes"][uri(&env, "shapes.py")];
    assert_eq!(edits.as_array().unwrap().len(), 3, "{edit}");
    // The client applies it.
    assert_eq!(std::fs::read_to_string(env.file("shapes.py")).unwrap(), before);
}

/// Clients apply a second list of edits of a document to what the first has left.
#[test]
fn a_rename_edits_each_document_once() {
    let env = TestEnv::pyright(&Project::parse(
        "//- /foo.py\nx = 1\n//- /m.py\nfoo = 3\nprint(foo)\nimport foo\nprint(foo)\n",
    ));
    let mut client = connect(&env, &[], everything());
    let rename = with(place(&env, "m.py", "foo = 3"), json!({"newName": "number"}));
    let edit = result(&mut client, "textDocument/rename", rename);
    let changes = edit["documentChanges"].as_array().unwrap();
    let documents: Vec<&Value> = changes.iter().map(|change| &change["textDocument"]["uri"]).collect();
    assert_eq!(documents, [&json!(uri(&env, "m.py"))], "{edit}");
    assert!(edit.to_string().contains("foo as number"), "{edit}");
}

#[test]
fn an_incomplete_answer_is_visible() {
    let env = TestEnv::pyright(&Project::parse(
        "//- /m.py\nclass A:\n    def go(self): ...\n    def unused(self): ...\n\ndef f(a, b: A):\n    a.go()\n    b.go()\n    a.unused()\n",
    ));
    let mut client = connect(&env, &[], everything());
    let references =
        |word: &str| with(place(&env, "m.py", word), json!({"context": {"includeDeclaration": false}}));
    let found = result(&mut client, "textDocument/references", references("go"));
    assert_eq!(places(&found), ["m.py:7:7"]);
    let notes = std::mem::take(&mut client.notes);
    let note = |method: &str| notes.iter().find(|note| note["method"] == method).unwrap()["params"].clone();
    let shown = note("window/showMessage");
    assert!(shown["message"].as_str().unwrap().contains("m.py@L6:C7"), "{shown}");
    let completeness = note("$/lanser/completeness");
    assert_eq!(completeness["status"], "partial", "{completeness}");
    assert_eq!(places(&completeness["unresolved"]), ["m.py:6:7"]);
    // Nothing that is known to be a use, and something that may be one: an empty list would be wrong.
    let refused = client.request("textDocument/references", references("unused"));
    assert_eq!(refused["error"]["code"], -32803, "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().contains("m.py@L8:C7"), "{refused}");
}

#[test]
fn columns_are_in_the_unit_of_the_client() {
    let text = "//- /m.py\nname = 1\ns = '𝒳ü'; name; t = name\n";
    let columns = |server: &str, encodings: &[&str]| {
        let project = Project::parse(text);
        let env = if server == "ty" { TestEnv::ty(&project) } else { TestEnv::pyright(&project) };
        let mut client = connect(&env, &[], json!({"general": {"positionEncodings": encodings}}));
        let params = with(place(&env, "m.py", "name"), json!({"context": {"includeDeclaration": false}}));
        let found = result(&mut client, "textDocument/references", params);
        let starts =
            found.as_array().unwrap().iter().map(|place| place["range"]["start"]["character"].as_u64());
        starts.map(Option::unwrap).collect::<Vec<_>>()
    };
    for server in ["pyright", "ty"] {
        assert_eq!(columns(server, &[]), [11, 21], "{server}");
        assert_eq!(columns(server, &["utf-8", "utf-16"]), [14, 24], "{server}");
        assert_eq!(columns(server, &["utf-32"]), [10, 20], "{server}");
    }
}

#[test]
fn diagnostics_are_pushed_to_clients_that_do_not_request_them() {
    let env = TestEnv::pyright(&Project::parse("//- /m.py\nx: int = ''\n"));
    let mut client = connect(&env, &[], json!({}));
    open(&mut client, &env, "m.py", "x: int = ''\n");
    let pushed = client.message().unwrap();
    assert_eq!(pushed["method"], "textDocument/publishDiagnostics", "{pushed}");
    assert_eq!(pushed["params"]["version"], 1);
    let found = &pushed["params"]["diagnostics"];
    assert_eq!(found[0]["code"], "reportAssignmentType", "{pushed}");
    assert_eq!(found[0]["severity"], 1);
    let change = json!({"textDocument": {"uri": uri(&env, "m.py"), "version": 2}, "contentChanges": [{"text": "x: int = 1\n"}]});
    client.notify("textDocument/didChange", change);
    let pushed = client.message().unwrap();
    assert_eq!(
        (&pushed["params"]["version"], &pushed["params"]["diagnostics"]),
        (&json!(2), &json!([])),
        "{pushed}"
    );
}

#[test]
fn code_actions_are_resolved_to_edits() {
    let env = TestEnv::basedpyright(&Project::parse("//- /m.py\nimport sys\nimport os\n\nprint(os, sys)\n"));
    let range = json!({"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}});
    let params = json!({"textDocument": {"uri": uri(&env, "m.py")}, "range": range,
        "context": {"diagnostics": [], "only": ["source.organizeImports"]}});
    let mut client = connect(&env, &["--server", "basedpyright"], everything());
    let offered = result(&mut client, "textDocument/codeAction", params.clone());
    let action = &offered[0];
    assert_eq!(action["kind"], "source.organizeImports", "{offered}");
    assert!(action.get("edit").is_none(), "{offered}");
    let resolved = result(&mut client, "codeAction/resolve", action.clone());
    let edits = &resolved["edit"]["documentChanges"][0]["edits"];
    assert_eq!(edits[0]["newText"], "import os\nimport sys", "{resolved}");
    let mut client = connect(&env, &["--server", "basedpyright"], json!({}));
    let whole = result(&mut client, "textDocument/codeAction", params);
    assert!(whole[0]["edit"]["changes"][uri(&env, "m.py")].is_array(), "{whole}");
}

#[test]
fn a_canceled_request_and_a_lost_client_stop_the_server() {
    let project = Project::parse("//- /m.py\ndef f(): ...\nf()\n");
    let env = TestEnv::with(&project);
    let server = FakeServer::new(&env, &Behavior::good().hangs_on("textDocument/hover"));
    let mut client = connect(&env, &["--server-command", server.command()], everything());
    let hovers = || server.received().iter().filter(|method| *method == "textDocument/hover").count();
    let id = client.begin("textDocument/hover", place(&env, "m.py", "f()"));
    wait_until("the server is asked", Duration::from_secs(20), || hovers() == 1);
    client.notify("$/cancelRequest", json!({"id": id}));
    assert_eq!(client.response(id)["error"]["code"], -32800);
    let id = client.begin("textDocument/hover", place(&env, "m.py", "f()"));
    wait_until("the server is asked again", Duration::from_secs(20), || hovers() == 2);
    // Its text changes while the request runs.
    open(&mut client, &env, "m.py", "def f(): ...\nf()\n");
    client.notify("$/cancelRequest", json!({"id": id}));
    client.response(id);
    client.begin("textDocument/hover", place(&env, "m.py", "f()"));
    wait_until("the server is asked once more", Duration::from_secs(20), || hovers() == 3);
    let pids = server.pids();
    let (code, elapsed) = client.finish();
    assert_eq!(code, Some(0));
    assert!(elapsed < Duration::from_secs(10), "{elapsed:?}");
    wait_until("no server is left", Duration::from_secs(5), || pids.iter().all(|pid| !is_alive(*pid)));
    assert_eq!(env.left_behind(), Vec::<String>::new());
}

#[test]
fn a_garbage_client_hurts_nothing() {
    let env = TestEnv::with(&Project::parse(PROJECT));
    let mut client = RpcClient::start(&env, &["lsp"], Framing::Headers);
    let early = client.request("textDocument/hover", json!({}));
    assert_eq!(early["error"]["code"], -32002, "{early}");
    client.notify("textDocument/didOpen", json!([1, 2]));
    let wrong = client.request("initialize", json!({"capabilities": 3}));
    assert_eq!(wrong["error"]["code"], -32602, "{wrong}");
    // Another folder may be right.
    for (folder, is_right) in
        [("file:///no/such/folder".to_owned(), false), (format!("file://{}", env.cwd.display()), true)]
    {
        let answer = client.request("initialize", json!({"rootUri": folder, "capabilities": {}}));
        assert_eq!(answer.get("error").is_none(), is_right, "{answer}");
    }
    let mut client = connect(&env, &[], json!({}));
    client.notify("textDocument/didOpen", json!({"textDocument": 3}));
    client.notify(
        "textDocument/didChange",
        json!({"textDocument": {"uri": "untitled:1", "version": 1},
        "contentChanges": [{"text": ""}]}),
    );
    client.notify("$/cancelRequest", json!({"id": 99}));
    client.notify("no/such", json!(null));
    client.send(&json!({"jsonrpc": "2.0", "id": 5000, "result": null}));
    let unknown = client.request("no/such", json!({}));
    assert_eq!(unknown["error"]["code"], -32601, "{unknown}");
    let scheme = client.request(
        "textDocument/hover",
        json!({"textDocument": {"uri": "untitled:1"}, "position": {"line": 0, "character": 0}}),
    );
    assert_eq!(scheme["error"]["code"], -32602, "{scheme}");
    let huge = json!({"textDocument": {"uri": uri(&env, "shapes.py")},
        "position": {"line": u32::MAX, "character": u32::MAX}});
    let answer = client.request("textDocument/prepareRename", huge);
    assert!(answer["error"].is_object() || answer["result"].is_null(), "{answer}");
    client.notify("exit", Value::Null);
    assert_eq!(client.finish().0, Some(1), "there was no shutdown");
    for garbage in [&b"garbage\r\n\r\n"[..], b"Content-Length: 99999999999\r\n\r\n"] {
        let output = env.lanser_with_input(["lsp"], garbage);
        assert_eq!(output.code, Some(2), "{output:?}");
        assert!(output.stderr.contains("the client's messages cannot be read"), "{output:?}");
    }
}

/// The client's end of the pipe may be held by another process.
#[test]
fn the_server_ends_with_its_client() {
    let env = TestEnv::with(&Project::parse(PROJECT));
    let mut parent = std::process::Command::new("sleep").arg("600").spawn().unwrap();
    let mut client = RpcClient::start(&env, &["lsp"], Framing::Headers);
    client.request("initialize", json!({"processId": parent.id(), "capabilities": {}}));
    parent.kill().unwrap();
    parent.wait().unwrap();
    assert!(client.message().is_none(), "the server ends the stream");
}

/// A frame whose body is no message is answered, and so is what comes after it, also if the client leaves at once.
#[test]
fn each_frame_is_answered_before_the_end() {
    let env = TestEnv::with(&Project::parse(PROJECT));
    let frames = [
        "{abc}",
        "[]",
        "",
        r#"{"id":1.5,"method":"shutdown"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{}}}"#,
        r#"{"jsonrpc":"2.0","id":2,"method":"shutdown"}"#,
        r#"{"jsonrpc":"2.0","method":"exit"}"#,
    ]
    .map(|body| format!("Content-Length: {}\r\n\r\n{body}", body.len()));
    let output = env.lanser_with_input(["lsp"], frames.concat().as_bytes());
    assert_eq!(output.code, Some(0), "{output:?}");
    assert_eq!(output.stdout.matches("-32700").count(), 2, "{output:?}");
    assert_eq!(output.stdout.matches("-32600").count(), 2, "{output:?}");
    assert!(output.stdout.contains(r#""id":1,"result":{"capabilities""#), "{output:?}");
    assert!(output.stdout.ends_with(r#""id":2,"result":null}"#), "{output:?}");
}

#[test]
fn a_client_for_tests_of_language_servers_understands_everything() {
    let env = TestEnv::pyright(&Project::parse(PROJECT)).with_network();
    let python = venv(&env, &["pytest-lsp==1.0.1"]);
    let script = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/test_lsp_client.py");
    let mut env = env;
    env.set("LANSER_TEST_PROGRAM", LANSER);
    let args =
        ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "asyncio_mode=auto", script.to_str().unwrap()];
    let output = env.run(python.to_str().unwrap(), args);
    assert_eq!(output.code, Some(0), "{output}");
    assert!(output.stdout.contains(" passed") && !output.stdout.contains("skipped"), "{output}");
}
