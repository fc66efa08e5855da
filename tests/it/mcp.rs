//! `lanser mcp`, by raw lines and by the reference client.

use std::time::Duration;

use serde_json::{Value, json};

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
";

/// The last revision of the protocol with a handshake.
const WITH_HANDSHAKE: &str = "2025-11-25";

/// The first revision without one: each request names its client.
const WITHOUT_HANDSHAKE: &str = "2026-07-28";

/// A client after the handshake.
fn connect(env: &TestEnv, args: &[&str]) -> RpcClient {
    let mut client = RpcClient::start(env, &[&["mcp"], args].concat(), Framing::Lines);
    let params = json!({"protocolVersion": WITH_HANDSHAKE, "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"}});
    let answer = client.request("initialize", params);
    assert_eq!(answer["result"]["protocolVersion"], WITH_HANDSHAKE, "{answer}");
    assert_eq!(answer["result"]["serverInfo"]["name"], "lanser");
    client.notify("notifications/initialized", json!({}));
    client
}

/// Calls a tool and returns its result.
#[track_caller]
fn call(client: &mut RpcClient, tool: &str, arguments: Value) -> Value {
    let answer = client.request("tools/call", json!({"name": tool, "arguments": arguments}));
    assert!(answer["result"].is_object(), "{answer}");
    answer["result"].clone()
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap()
}

fn with_git(env: &TestEnv) {
    let identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"];
    for args in [&["init", "-q"][..], &["add", "-A"], &[&identity[..], &["commit", "-qm", "x"]].concat()] {
        let output = env.run("git", args);
        assert_eq!(output.code, Some(0), "{output}");
    }
}

#[test]
fn tools_answer_with_facts_that_match_their_schemas() {
    let env = TestEnv::pyright(&Project::parse(PROJECT));
    with_git(&env);
    let mut client = connect(&env, &[]);
    let tools = client.request("tools/list", json!({}))["result"]["tools"].clone();
    let tools = tools.as_array().unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    let expected = [
        "def", "refs", "hover", "symbols", "calls", "types", "diag", "locate", "rename", "check", "apply",
        "undo",
    ];
    assert_eq!(names, expected);
    let patch = "--- a/shapes.py\n+++ b/shapes.py\n@@ -3 +3 @@\n-        return 0.0\n+        return '0'\n";
    let calls = [
        ("def", json!({"selector": "shapes.py:12:22"})),
        ("refs", json!({"selector": "Shape.area"})),
        ("refs", json!({"selector": "Shape.missing"})),
        ("hover", json!({"selector": "shapes.total"})),
        ("symbols", json!({"query": "Square"})),
        ("symbols", json!({"target": "shapes.py"})),
        ("calls", json!({"selector": "shapes.total", "outgoing": true})),
        ("types", json!({"selector": "shapes.Square", "direction": "supertypes"})),
        ("types", json!({"selector": "shapes.Square", "supertypes": true})),
        ("diag", json!({})),
        ("locate", json!({"selector": "Square.area"})),
        ("rename", json!({"selector": "Shape.area", "new_name": "surface"})),
        ("check", json!({"edit": patch})),
        ("apply", json!({"edit": patch})),
        ("undo", json!({"list": true})),
    ];
    for (name, arguments) in calls {
        let tool = tools.iter().find(|tool| tool["name"] == name).unwrap();
        let validator = jsonschema::validator_for(&tool["inputSchema"]).unwrap();
        assert!(validator.is_valid(&arguments), "{name}: {arguments}");
        let result = call(&mut client, name, arguments.clone());
        let facts = &result["structuredContent"];
        let validator = jsonschema::validator_for(&tool["outputSchema"]).unwrap();
        let problems: Vec<String> = validator.iter_errors(facts).map(|error| error.to_string()).collect();
        assert!(problems.is_empty(), "{name} {arguments}: {problems:?}\n{facts}");
        assert!(!text(&result).is_empty() && text(&result).len() <= 4096, "{name} {arguments}: {result}");
        assert_eq!(result["isError"], !facts["error"].is_null(), "{result}");
        let writes = matches!(name, "rename" | "apply" | "undo");
        assert_eq!(tool["annotations"]["readOnlyHint"], !writes, "{name}");
        assert_eq!(tool["annotations"]["destructiveHint"].as_bool().unwrap_or_default(), writes, "{name}");
    }
    assert_eq!(client.finish().0, Some(0));
    assert_eq!(env.left_behind(), Vec::<String>::new());
}

#[test]
fn a_rename_is_previewed_applied_and_undone() {
    let env = TestEnv::pyright(&Project::parse(PROJECT));
    with_git(&env);
    let before = std::fs::read_to_string(env.file("shapes.py")).unwrap();
    let mut client = connect(&env, &[]);
    let rename = |more: Value| {
        let mut arguments = json!({"selector": "Shape.area", "new_name": "surface"});
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        arguments
    };
    // Another class overrides it, and no argument says what to do about that.
    let refused = call(&mut client, "rename", rename(json!({"apply": true})));
    assert_eq!(refused["isError"], true, "{refused}");
    let error = &refused["structuredContent"]["error"];
    let hint = error["hint"].as_str().unwrap();
    assert!(
        error["code"].is_number() && hint.contains("rename {") && hint.contains("\"family\":true"),
        "{refused}"
    );
    assert!(text(&refused).contains("\"family\":true"), "{refused}");
    assert_eq!(std::fs::read_to_string(env.file("shapes.py")).unwrap(), before);
    let preview = call(&mut client, "rename", rename(json!({"family": true})));
    assert_eq!(preview["isError"], false, "{preview}");
    assert_eq!(std::fs::read_to_string(env.file("shapes.py")).unwrap(), before);
    let applied = call(&mut client, "rename", rename(json!({"family": true, "apply": true})));
    assert_eq!(applied["isError"], false, "{applied}");
    assert_eq!(
        std::fs::read_to_string(env.file("shapes.py")).unwrap(),
        before.replace("area", "surface"),
        "{applied}"
    );
    // A module is moved by the tool `rename`.
    let module = call(&mut client, "refs", json!({"selector": "shapes"}));
    let hint = module["structuredContent"]["error"]["hint"].as_str().unwrap_or_default();
    assert!(hint.contains("rename {") && hint.contains("py://shapes"), "{module}");
    // The next answer is about the new text.
    let found = call(&mut client, "refs", json!({"selector": "Shape.surface"}));
    assert_eq!(found["structuredContent"]["facts"]["completeness"]["status"], "complete", "{found}");
    call(&mut client, "undo", json!({}));
    assert_eq!(std::fs::read_to_string(env.file("shapes.py")).unwrap(), before);
}

#[test]
fn long_answers_are_cut_and_the_bundle_is_a_resource() {
    let uses = "f()\n".repeat(300);
    let env = TestEnv::pyright(&Project::parse("//- /m.py\n").and("m.py", format!("def f(): ...\n{uses}")));
    let mut client = connect(&env, &[]);
    let result = call(&mut client, "refs", json!({"selector": "m.f"}));
    let facts = &result["structuredContent"];
    assert_eq!(facts["facts"]["references"].as_array().unwrap().len(), 200, "{facts}");
    assert_eq!(facts["omitted"], json!({"references": 101}));
    assert!(text(&result).len() <= 4096);
    // What is not returned is on the next page.
    assert_eq!((&facts["status"], &facts["limits"]["truncated"]), (&json!("partial"), &json!(true)));
    let next = call(&mut client, "refs", json!({"selector": "m.f", "cursor": facts["limits"]["cursor"]}));
    assert_eq!(next["structuredContent"]["facts"]["references"][0]["at"], "m.py@L201:C1", "{next}");
    assert_eq!(next["structuredContent"]["facts"]["references"].as_array().unwrap().len(), 101);
    // A limit does not cut the last lines of the text.
    for limit in [150, 300] {
        let limited = call(&mut client, "refs", json!({"selector": "m.f", "limit": limit}));
        let mut last = text(&limited).lines().rev();
        assert_eq!(last.next(), Some("301 references, complete"), "{}", text(&limited));
        assert!(last.next().unwrap().contains("more: refs {\"cursor\":"), "{}", text(&limited));
        let facts = &limited["structuredContent"];
        let next = call(&mut client, "refs", json!({"selector": "m.f", "cursor": facts["limits"]["cursor"]}));
        let first = format!("m.py@L{}:C1", limit.min(200) + 1);
        assert_eq!(next["structuredContent"]["facts"]["references"][0]["at"], *first, "{next}");
    }
    let link = &result["content"][1];
    assert_eq!(link["type"], "resource_link", "{result}");
    let read = client.request("resources/read", json!({"uri": link["uri"]}));
    let bundle: Value =
        serde_json::from_str(read["result"]["contents"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(bundle["bundleId"], facts["bundleId"]);
    assert_eq!(bundle["facts"]["references"].as_array().unwrap().len(), 301);
    let limited = call(&mut client, "refs", json!({"selector": "m.f", "limit": 2}));
    assert_eq!(limited["structuredContent"]["facts"]["references"].as_array().unwrap().len(), 2);
    let cursor = &limited["structuredContent"]["limits"]["cursor"];
    let next = call(&mut client, "refs", json!({"selector": "m.f", "limit": 2, "cursor": cursor}));
    assert_eq!(next["structuredContent"]["facts"]["references"][0]["at"], "m.py@L3:C1", "{next}");
    // Lists in lists, and what the schema says about errors.
    let unknown = "def g(x): x.run()\n".repeat(250);
    env.write("n.py", format!("class C:\n    def run(self): ...\n{unknown}"));
    let result = call(&mut client, "refs", json!({"selector": "n.C.run"}));
    assert_eq!(
        result["structuredContent"]["omitted"],
        json!({"completeness.unresolved.items": 50}),
        "{result}"
    );
    let cursor = &result["structuredContent"]["limits"]["cursor"];
    let next = call(&mut client, "refs", json!({"selector": "n.C.run", "cursor": cursor}));
    let left = &next["structuredContent"]["facts"]["completeness"]["unresolved"]["items"];
    assert_eq!(left.as_array().map(Vec::len), Some(50), "{next}");
    for uri in ["lanser://bundles/sha256:00", "lanser://bundles/../../etc/passwd", "file:///etc/passwd"] {
        let refused = client.request("resources/read", json!({"uri": uri}));
        assert!(refused["error"]["code"].is_number(), "{uri}: {refused}");
    }
}

#[test]
fn the_revision_without_a_handshake_is_spoken() {
    let env = TestEnv::with(&Project::parse(PROJECT));
    let mut client = RpcClient::start(&env, &["mcp"], Framing::Lines);
    let meta = json!({"io.modelcontextprotocol/protocolVersion": WITHOUT_HANDSHAKE,
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {}});
    let found = client.request("server/discover", json!({"_meta": meta}));
    let versions = found["result"]["supportedVersions"].as_array().unwrap();
    assert!(
        versions.contains(&WITHOUT_HANDSHAKE.into()) && versions.contains(&WITH_HANDSHAKE.into()),
        "{found}"
    );
    let params = json!({"name": "locate", "arguments": {"selector": "Square.area"}, "_meta": meta});
    let answer = client.request("tools/call", params);
    assert_eq!(
        answer["result"]["structuredContent"]["resolution"]["resolved"]["at"], "shapes.py@L7:C9",
        "{answer}"
    );
    assert_eq!(client.finish().0, Some(0));
}

#[test]
fn a_garbage_client_hurts_nothing() {
    let env = TestEnv::with(&Project::parse(PROJECT));
    let mut client = connect(&env, &[]);
    let garbage: [&[u8]; 7] = [
        b"garbage\n",
        b"\n\n[]\n{\"a\":1}\n",
        b"\x00\xff\xfe\n",
        b"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"tools/call\"}\n",
        b"{\"jsonrpc\":\"2.0\",\"id\":900,\"method\":\"tools/call\",\"params\":3}\n",
        b"{\"jsonrpc\":\"2.0\",\"id\":901,\"method\":\"no/such\",\"params\":{}}\n",
        b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":77}}\n",
    ];
    for bytes in garbage {
        client.send_raw(bytes);
        let deep = format!("{}{}\n", "[".repeat(5000), "]".repeat(5000));
        client.send_raw(deep.as_bytes());
        let found = call(&mut client, "locate", json!({"selector": "Shape.area"}));
        assert_eq!(found["isError"], false, "{bytes:?}: {found}");
    }
    // As JSON-RPC says. The reference client refuses an error without an `id`.
    let errors: Vec<(Value, Value)> =
        client.notes.iter().map(|note| (note["id"].clone(), note["error"]["code"].clone())).collect();
    for expected in [(Value::Null, json!(-32700)), (Value::Null, json!(-32600)), (json!(900), json!(-32600))]
    {
        assert!(errors.contains(&expected), "{expected:?}: {errors:?}");
    }
    let mut errors = client.notes.iter().filter(|note| note.get("error").is_some());
    assert!(errors.all(|note| note.as_object().unwrap().contains_key("id")), "{:?}", client.notes);
    let unknown = client.request("tools/call", json!({"name": "batch", "arguments": {}}));
    assert!(unknown["error"]["code"].is_number(), "{unknown}");
    for (method, params) in [
        ("tools/call", json!({"name": "locate", "arguments": []})),
        ("tools/call", json!({"name": "locate", "arguments": "Shape.area"})),
        ("tools/call", json!({})),
        ("resources/read", json!({"uri": 1})),
        ("tools/list", json!([])),
        ("initialize", json!({})),
    ] {
        let refused = client.request(method, params.clone());
        assert_eq!(refused["error"]["code"], -32602, "{params}: {refused}");
        assert!(refused["error"]["message"].as_str().unwrap().contains(method), "{params}: {refused}");
    }
    // No list has a second page.
    for method in ["tools/list", "resources/list", "resources/templates/list"] {
        let refused = client.request(method, json!({"cursor": "2"}));
        assert_eq!(refused["error"]["code"], -32602, "{method}: {refused}");
        assert!(client.request(method, json!({}))["result"].is_object(), "{method}");
    }
    for (arguments, message) in [
        (json!({"selector": "Shape.area", "server_command": "/bin/sh"}), "has no argument"),
        (json!({"selector": ["Shape.area", "--apply"]}), "E/USAGE"),
        (json!({}), "E/USAGE"),
        (json!({"selector": "--version"}), "E/"),
        (json!({"selector": {"uri": 3}}), "E/"),
        (json!({"selector": 5}), "wrong value"),
    ] {
        let refused = call(&mut client, "locate", arguments.clone());
        assert_eq!(refused["isError"], true, "{arguments}: {refused}");
        assert!(text(&refused).contains(message), "{arguments}: {refused}");
        assert!(refused["structuredContent"]["error"]["hint"].is_string(), "{arguments}: {refused}");
    }
    assert_eq!(client.finish().0, Some(0));
    // A client that sends nothing, or only garbage, is no error either.
    for bytes in [&b""[..], b"garbage\n"] {
        let mut client = RpcClient::start(&env, &["mcp"], Framing::Lines);
        client.send_raw(bytes);
        assert_eq!(client.finish().0, Some(0), "{bytes:?}");
    }
}

#[test]
fn tools_reach_only_the_workspace() {
    let env = TestEnv::with(&Project::parse(PROJECT));
    with_git(&env);
    std::fs::write(env.path("secret.py"), "token = 'hunter2'\n").unwrap();
    let outside = format!("file://{}", env.path("secret.py").display());
    std::os::unix::fs::symlink(env.path("secret.py"), env.path("run/link.py")).unwrap();
    let linked = format!("file://{}", env.path("run/link.py").display());
    let mut client = connect(&env, &[]);
    for selector in [
        json!(format!("{outside}:1:1")),
        json!(format!("{linked}:1:1")),
        json!({"uri": outside, "position": {"line": 0, "character": 0}}),
        json!("../secret.py:1:1"),
        json!("file:///etc/passwd:1:1"),
    ] {
        let refused = call(&mut client, "locate", json!({"selector": selector}));
        assert_eq!(refused["isError"], true, "{selector}: {refused}");
        assert!(
            !refused.to_string().contains("hunter2") && !refused.to_string().contains("root:"),
            "{refused}"
        );
    }
    let inside = format!("file://{}:1:7", env.file("shapes.py").display());
    assert_eq!(call(&mut client, "locate", json!({"selector": inside}))["isError"], false);
    for tool in ["symbols", "diag"] {
        let argument = if tool == "symbols" { "target" } else { "targets" };
        let refused = call(&mut client, tool, json!({argument: ["../secret.py"]}));
        assert_eq!(refused["isError"], true, "{refused}");
    }
    let patch = "--- a/../secret.py\n+++ b/../secret.py\n@@ -1 +1 @@\n-token = 'hunter2'\n+token = 1\n";
    let mut arguments = json!({"edit": patch, "apply": true, "allow_dirty": "all"});
    assert_eq!(call(&mut client, "apply", arguments.clone())["isError"], true);
    arguments["workspace_jail"] = json!(false);
    let refused = call(&mut client, "apply", arguments);
    assert!(text(&refused).contains("has no argument"), "{refused}");
    assert_eq!(std::fs::read_to_string(env.path("secret.py")).unwrap(), "token = 'hunter2'\n");
}

#[test]
fn a_canceled_call_and_a_closed_input_stop_the_server() {
    let project = Project::parse("//- /m.py\ndef $0f(): ...\nf()\n");
    let env = TestEnv::with(&project);
    let server = FakeServer::new(&env, &Behavior::good().hangs_on("textDocument/hover"));
    let mut client = connect(&env, &["--server-command", server.command()]);
    let hovers = || server.received().iter().filter(|method| *method == "textDocument/hover").count();
    let params = json!({"name": "hover", "arguments": {"selector": project.at(0)},
        "_meta": {"progressToken": "steps"}});
    let id = client.begin("tools/call", params.clone());
    wait_until("the server is asked", Duration::from_secs(20), || hovers() == 1);
    client.notify("notifications/cancelled", json!({"requestId": id}));
    wait_until("the server is told", Duration::from_secs(20), || {
        server.received().iter().any(|method| method == "$/cancelRequest")
    });
    // Other calls are answered.
    let found = call(&mut client, "locate", json!({"selector": "m.f"}));
    assert_eq!(found["isError"], false, "{found}");
    let told = |note: &Value| {
        note["method"] == "notifications/progress" && note["params"]["progressToken"] == "steps"
    };
    assert!(client.notes.iter().any(told), "{:?}", client.notes);
    client.begin("tools/call", params);
    wait_until("the server is asked again", Duration::from_secs(20), || hovers() == 2);
    // A write waits for its turn; once it is canceled, nothing waits for it.
    let rename = json!({"selector": "m.f", "new_name": "g", "apply": true});
    let waiting = client.begin("tools/call", json!({"name": "rename", "arguments": rename}));
    std::thread::sleep(Duration::from_millis(500));
    client.notify("notifications/cancelled", json!({"requestId": waiting}));
    assert_eq!(call(&mut client, "locate", json!({"selector": "m.f"}))["isError"], false);
    let pids = server.pids();
    let (code, elapsed) = client.finish();
    assert_eq!(code, Some(0));
    assert!(elapsed < Duration::from_secs(10), "{elapsed:?}");
    wait_until("no server is left", Duration::from_secs(5), || pids.iter().all(|pid| !is_alive(*pid)));
    assert_eq!(env.left_behind(), Vec::<String>::new());
}

#[test]
fn the_reference_client_understands_everything() {
    let env = TestEnv::pyright(&Project::parse(PROJECT)).with_network();
    with_git(&env);
    let python = venv(&env, &["mcp==2.3.0"]);
    let script = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/mcp_client.py");
    let output = env.run(python.to_str().unwrap(), [script.to_str().unwrap(), LANSER]);
    assert_eq!(output.code, Some(0), "{output}");
    assert!(output.stdout.ends_with("ok\n"), "{output}");
}
