//! The same questions through every front end: command line, batch, MCP, LSP and Python package. All answer with the same facts.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::support::{Framing, LANSER, Project, RpcClient, TestEnv};

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


def main(any_shape) -> None:
    print(total([Square()]), any_shape.area())
    x: int = ''
";

/// The number is no text.
const BREAKS: &str = "\
--- a/shapes.py
+++ b/shapes.py
@@ -3 +3 @@
-        return 0.0
+        return '0'
";

const FITS: &str = "\
--- a/shapes.py
+++ b/shapes.py
@@ -3 +3 @@
-        return 0.0
+        return 1.0
";

/// A question about a place, or without one.
struct Question {
    /// The verb of the command line, which is the name of the MCP tool, too.
    verb: &'static str,
    /// The command of a batch line, and of the Python package.
    command: &'static str,
    selector: Option<&'static str>,
    new_name: Option<&'static str>,
    /// The options: on the command line, and as data.
    words: &'static [&'static str],
    options: Value,
    /// The edit, which the command line reads from its standard input.
    edit: Option<&'static str>,
}

fn question(verb: &'static str, command: &'static str, selector: Option<&'static str>) -> Question {
    Question { verb, command, selector, new_name: None, words: &[], options: json!({}), edit: None }
}

fn questions() -> Vec<Question> {
    let calls = |selector| question("calls", "calls", Some(selector));
    let types = |selector| question("types", "typeHierarchy", Some(selector));
    let symbols = question("symbols", "symbols", None);
    let rename = |selector| question("rename", "rename", Some(selector));
    vec![
        question("def", "definition", Some("use.py:5:11")),
        question("refs", "references", Some("shapes.py:11:5")),
        // One use is not resolved.
        question("refs", "references", Some("shapes.py:2:9")),
        question("refs", "references", Some("shapes.py:2:8")),
        question("hover", "hover", Some("use.py:5:11")),
        question("locate", "locate", Some("shapes.py:6:7")),
        Question { words: &["--query", "Square"], options: json!({"query": "Square"}), ..symbols },
        Question {
            words: &["--incoming"],
            options: json!({"direction": "incoming"}),
            ..calls("shapes.py:11:5")
        },
        Question { words: &["--outgoing"], options: json!({"direction": "outgoing"}), ..calls("use.py:4:5") },
        Question { words: &["--subtypes"], options: json!({"types": "subtypes"}), ..types("shapes.py:1:7") },
        Question {
            words: &["--supertypes"],
            options: json!({"types": "supertypes"}),
            ..types("shapes.py:6:7")
        },
        question("impl", "implementation", Some("shapes.py:2:9")),
        question("typedef", "typeDefinition", Some("use.py:6:5")),
        question("decl", "declaration", Some("use.py:5:11")),
        question("prepare-rename", "prepareRename", Some("use.py:5:11")),
        // The first page.
        Question {
            words: &["--limit", "1"],
            options: json!({"limit": 1}),
            ..question("refs", "references", Some("shapes.py:11:5"))
        },
        Question {
            words: &["shapes.py"],
            options: json!({"paths": ["shapes.py"]}),
            ..question("symbols", "symbols", None)
        },
        question("diag", "diagnostics", None),
        Question { new_name: Some("summed"), ..rename("shapes.py:11:5") },
        // Refused: another class overrides it.
        Question { new_name: Some("surface"), ..rename("shapes.py:2:9") },
        Question {
            new_name: Some("surface"),
            words: &["--family", "--exclude", "unresolved"],
            options: json!({"family": true, "exclude": ["unresolved"]}),
            ..rename("shapes.py:2:9")
        },
        Question { edit: Some(BREAKS), ..question("check", "check", None) },
        Question { edit: Some(BREAKS), ..question("apply", "apply", None) },
        Question { edit: Some(FITS), ..question("apply", "apply", None) },
    ]
}

fn by_command_line(env: &TestEnv, question: &Question) -> Value {
    let mut args = vec![question.verb];
    args.extend(question.selector);
    args.extend(question.new_name);
    args.extend(question.words);
    args.extend(question.edit.map(|_| "-"));
    args.push("--json");
    env.lanser_with_input(args, question.edit.unwrap_or_default()).bundle()
}

fn batch_line(question: &Question, id: usize) -> Value {
    let mut line = json!({"id": id, "cmd": question.command, "options": question.options});
    for (name, value) in [("selector", question.selector), ("newName", question.new_name)] {
        if let Some(value) = value {
            line[name] = value.into();
        }
    }
    if let Some(edit) = question.edit {
        line["options"]["edit"] = json!({"text": edit});
    }
    line
}

fn by_batch(env: &TestEnv, questions: &[Question]) -> Vec<Value> {
    let lines = questions.iter().enumerate().map(|(id, question)| format!("{}\n", batch_line(question, id)));
    let output = env.lanser_with_input(["batch", "--ordered"], lines.collect::<String>());
    output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// `None` if there is no such tool.
fn by_mcp(client: &mut RpcClient, question: &Question) -> Option<Value> {
    if matches!(question.verb, "impl" | "typedef" | "decl" | "prepare-rename") {
        return None;
    }
    let mut arguments = match question.command {
        "calls" => json!({question.options["direction"].as_str()?: true}),
        "typeHierarchy" => json!({question.options["types"].as_str()?: true}),
        "symbols" if question.options["paths"].is_array() => json!({"target": question.options["paths"][0]}),
        _ => question.options.clone(),
    };
    let named = [("selector", question.selector), ("new_name", question.new_name), ("edit", question.edit)];
    for (name, value) in named {
        if let Some(value) = value {
            arguments[name] = value.into();
        }
    }
    let answer = client.request("tools/call", json!({"name": question.verb, "arguments": arguments}));
    Some(answer["result"]["structuredContent"].clone())
}

/// The id of each bundle, or of the bundle of the exception.
fn by_python(env: &TestEnv, questions: &[Question]) -> Vec<String> {
    let script = "\
import json, os, sys, lanser
with lanser.Workspace('.', program=os.environ['LANSER_TEST_PROGRAM']) as workspace:
    for line in json.loads(sys.argv[1]):
        try:
            given = {'options': line['options']}
            if 'newName' in line: given['new_name'] = line['newName']
            print(workspace.request(line['cmd'], line.get('selector'), **given).bundle_id)
        except lanser.RequestError as error:
            print(error.bundle.bundle_id)
";
    let lines: Vec<Value> =
        questions.iter().enumerate().map(|(id, question)| batch_line(question, id)).collect();
    let output = env.run("python3", ["-c", script, &json!(lines).to_string()]);
    assert_eq!(output.code, Some(0), "{output}");
    output.stdout.lines().map(str::to_owned).collect()
}

/// The ranges of the places of a bundle, or of LSP, by file.
fn ranges<'v>(places: impl IntoIterator<Item = &'v Value>) -> BTreeMap<(String, String), usize> {
    let mut found = BTreeMap::new();
    for place in places {
        let uri = place["uri"].as_str().unwrap_or_else(|| panic!("{place}")).rsplit('/').next().unwrap();
        let range = &place["range"];
        let range = match range.as_array() {
            Some(_) => range.to_string(),
            None => {
                let (start, end) = (&range["start"], &range["end"]);
                json!([start["line"], start["character"], end["line"], end["character"]]).to_string()
            }
        };
        *found.entry((uri.to_owned(), range)).or_default() += 1;
    }
    found
}

/// Compares the answer of the language server with a bundle.
fn check_lsp(env: &TestEnv, client: &mut RpcClient, question: &Question, bundle: &Value) {
    let uri = |name: &str| format!("file://{}", env.file(name).display());
    let at = question.selector.map(|selector| {
        let parts: Vec<&str> = selector.split(':').collect();
        let number = |at: usize| parts[at].parse::<u32>().unwrap() - 1;
        json!({"textDocument": {"uri": uri(parts[0])}, "position": {"line": number(1), "character": number(2)}})
    });
    // The protocol has neither pages nor families. An outline is a tree.
    if ["limit", "family", "paths"].iter().any(|option| !question.options[option].is_null()) {
        return;
    }
    let mut params = at.unwrap_or_else(|| json!({}));
    let method = match question.command {
        "definition" => "textDocument/definition",
        "references" => "textDocument/references",
        "hover" => "textDocument/hover",
        "symbols" => "workspace/symbol",
        "implementation" => "textDocument/implementation",
        "typeDefinition" => "textDocument/typeDefinition",
        "declaration" => "textDocument/declaration",
        "prepareRename" => "textDocument/prepareRename",
        "calls" if question.options["direction"] == "outgoing" => "callHierarchy/outgoingCalls",
        "calls" => "callHierarchy/incomingCalls",
        "typeHierarchy" if question.options["types"] == "supertypes" => "typeHierarchy/supertypes",
        "typeHierarchy" => "typeHierarchy/subtypes",
        "diagnostics" => "textDocument/diagnostic",
        "rename" => "textDocument/rename",
        // The protocol has no such request.
        _ => return,
    };
    match question.command {
        "references" => params["context"] = json!({"includeDeclaration": true}),
        "symbols" => params = question.options.clone(),
        "diagnostics" => params = json!({"textDocument": {"uri": uri("use.py")}}),
        "rename" => params["newName"] = question.new_name.into(),
        "calls" => {
            let items = client.request("textDocument/prepareCallHierarchy", params);
            params = json!({"item": items["result"][0]});
        }
        "typeHierarchy" => {
            let items = client.request("textDocument/prepareTypeHierarchy", params);
            params = json!({"item": items["result"][0]});
        }
        _ => {}
    }
    client.notes.clear();
    let answer = client.request(method, params);
    let facts = &bundle["facts"];
    if !bundle["error"].is_null() {
        let error = &answer["error"]["data"];
        assert_eq!(error["symbol"], bundle["error"]["symbol"], "{method}: {answer}");
        // The selector is in the unit of the client.
        let message = error["message"].as_str().unwrap().replace("?indexing=utf-16", "");
        assert_eq!(message, bundle["error"]["message"], "{method}: {answer}");
        return;
    }
    let result = &answer["result"];
    let list = |value: &Value| value.as_array().unwrap_or_else(|| panic!("{method}: {answer}")).clone();
    match question.command {
        "definition" => assert_eq!(ranges(&list(result)), ranges(&list(&facts["definitions"]))),
        "typeDefinition" => assert_eq!(ranges(&list(result)), ranges(&list(&facts["type_definitions"]))),
        "declaration" => assert_eq!(ranges(&list(result)), ranges(&list(&facts["declarations"]))),
        "prepareRename" => {
            assert_eq!(result["placeholder"], facts["renamable"]["name"], "{answer}");
            let found = json!({"uri": "use.py", "range": result["range"]});
            assert_eq!(ranges([&found]), ranges([&facts["renamable"]["location"]]));
        }
        "implementation" => {
            let places = list(&facts["implementations"]);
            assert_eq!(ranges(&list(result)), ranges(&places));
            assert!(!places.is_empty());
        }
        "references" => {
            assert_eq!(ranges(&list(result)), ranges(&list(&facts["references"])));
            let note = client.notes.iter().find(|note| note["method"] == "$/lanser/completeness");
            let unresolved = &facts["completeness"]["unresolved"]["items"];
            match note {
                Some(note) => {
                    assert_eq!(ranges(&list(&note["params"]["unresolved"])), ranges(&list(unresolved)));
                }
                None => assert_eq!(facts["completeness"]["status"], "complete", "{bundle}"),
            }
        }
        "hover" => assert_eq!(result["contents"]["value"], facts["hover"]["markdown"]),
        "symbols" => {
            let of = |symbol: &Value| {
                (symbol["name"].to_string(), symbol["containerName"].as_str().map(str::to_owned))
            };
            let names: Vec<_> = list(result).iter().map(of).collect();
            let expected: Vec<_> = list(&facts["symbols"])
                .iter()
                .map(|symbol| (symbol["name"].to_string(), symbol["container"].as_str().map(str::to_owned)))
                .collect();
            assert_eq!(names, expected);
        }
        "calls" => {
            let sites: usize = list(result).iter().map(|call| list(&call["fromRanges"]).len()).sum();
            let expected: usize = list(&facts["calls"]).iter().map(|call| list(&call["sites"]).len()).sum();
            assert_eq!(sites, expected, "{answer}");
            assert!(sites > 0);
        }
        "typeHierarchy" => {
            let end = question.options["types"].as_str().unwrap().trim_end_matches('s');
            let edges = list(&facts["types"]);
            assert_eq!(ranges(&list(result)), ranges(edges.iter().map(|edge| &edge[end])));
            assert!(!edges.is_empty());
        }
        "diagnostics" => {
            let of = |item: &Value| (item["message"].to_string(), item["code"].to_string());
            let severe = |item: &&Value| item["severity"] != 4;
            let found: Vec<_> = list(&result["items"]).iter().filter(severe).map(of).collect();
            let expected: Vec<_> = list(&facts["diagnostics"]["items"])
                .iter()
                .map(|item| (item["message"].to_string(), item["rule"].to_string()))
                .collect();
            assert_eq!(found, expected);
        }
        _ => {
            let edits = |edit: &Value| -> Vec<Value> {
                let changes = edit["changes"]
                    .as_object()
                    .into_iter()
                    .flatten()
                    .map(|(uri, edits)| (uri.clone(), edits.clone()));
                let documents = edit["documentChanges"].as_array().into_iter().flatten();
                let documents = documents.map(|change| {
                    (change["textDocument"]["uri"].as_str().unwrap().to_owned(), change["edits"].clone())
                });
                let mut all: Vec<Value> = changes
                    .chain(documents)
                    .map(|(uri, edits)| json!([uri.rsplit('/').next().unwrap(), edits]))
                    .collect();
                all.sort_by_key(Value::to_string);
                all
            };
            assert_eq!(edits(result), edits(&bundle["edits"]["workspaceEdit"]), "{answer}");
            assert!(!edits(result).is_empty());
        }
    }
}

/// Asks everything through every front end.
fn check(env: &TestEnv) {
    let questions = questions();
    let by_batch = by_batch(env, &questions);
    let by_python = by_python(env, &questions);
    let mut mcp = start_mcp(env);
    let mut lsp = RpcClient::start(env, &["lsp"], Framing::Headers);
    let root = format!("file://{}", env.cwd.display());
    let capabilities = json!({"textDocument": {"diagnostic": {}}, "workspace": {"workspaceEdit": {"documentChanges": true}}});
    lsp.request("initialize", json!({"rootUri": root, "processId": null, "capabilities": capabilities}));
    for (number, question) in questions.iter().enumerate() {
        let bundle = by_command_line(env, question);
        let name = format!("{} {:?}", question.verb, question.selector);
        let id = bundle["bundleId"].as_str().unwrap();
        assert_eq!(by_batch[number]["bundleId"], id, "{name}: {}\n{bundle}", by_batch[number]);
        assert_eq!(by_python[number], id, "{name}");
        check_lsp(env, &mut lsp, question, &bundle);
        let Some(found) = by_mcp(&mut mcp, question) else { continue };
        assert_eq!(found["bundleId"], id, "{name}: {found}\n{bundle}");
        assert_eq!(found["facts"], bundle["facts"], "{name}");
        assert_eq!(without_hint(&found["error"]), without_hint(&bundle["error"]), "{name}");
        assert_eq!(found["status"], bundle["status"], "{name}");
    }
}

/// An error without what to do next, which MCP says in terms of its tools.
fn without_hint(error: &Value) -> Value {
    let mut error = error.clone();
    error.as_object_mut().map(|error| error.remove("hint"));
    error
}

/// What is told about an edit, without the transaction, which has the time and a random id, and without the edit as LSP has it,
/// which the tools of MCP leave out.
fn told(bundle: &Value) -> Value {
    assert_eq!(bundle["status"], "ok", "{bundle}");
    let mut told = bundle["edits"].as_object().unwrap_or_else(|| panic!("{bundle}")).clone();
    assert!(told.remove("transaction").is_some_and(|made| made.is_object()), "{bundle}");
    told.remove("workspaceEdit");
    told.into()
}

/// Applies an edit and undoes it through every front end that writes; the others see the new text meanwhile.
fn check_writes(env: &TestEnv) {
    let before = std::fs::read_to_string(env.file("shapes.py")).unwrap();
    let after = before.replace("0.0", "1.0");
    let now = || std::fs::read_to_string(env.file("shapes.py")).unwrap();
    let about = question("hover", "hover", Some("shapes.py:2:9"));
    let original = by_command_line(env, &about)["bundleId"].clone();
    let applied = env.lanser_with_input(["apply", "-", "--apply", "--json"], FITS).bundle();
    assert_eq!(now(), after);
    let changed = by_command_line(env, &about)["bundleId"].clone();
    assert_ne!(changed, original);
    let undone = env.lanser(["undo", "--json"]).bundle();
    assert_eq!(now(), before);
    let (applied, undone) = (told(&applied), told(&undone));

    let mut mcp = start_mcp(env);
    let mut call = |name: &str, arguments: Value| {
        mcp.request("tools/call", json!({"name": name, "arguments": arguments}))["result"]["structuredContent"].clone()
    };
    assert_eq!(told(&call("apply", json!({"edit": FITS, "apply": true}))), applied);
    assert_eq!(now(), after);
    assert_eq!(call("hover", json!({"selector": about.selector}))["bundleId"], changed);
    assert_eq!(told(&call("undo", json!({}))), undone);
    assert_eq!(now(), before);
    assert_eq!(call("hover", json!({"selector": about.selector}))["bundleId"], original);

    let apply = json!({"id": 0, "cmd": "apply", "options": {"edit": {"text": FITS}, "apply": true}});
    let hover = batch_line(&about, 1);
    let undo = json!({"id": 2, "cmd": "undo"});
    let lines = [&apply, &hover, &undo, &hover].map(|line| format!("{line}\n")).concat();
    let output = env.lanser_with_input(["batch", "--ordered"], lines);
    let answers: Vec<Value> = output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(told(&answers[0]), applied);
    assert_eq!(answers[1]["bundleId"], changed);
    assert_eq!(told(&answers[2]), undone);
    assert_eq!(answers[3]["bundleId"], original);
    assert_eq!(now(), before);

    let script = "\
import json, os, sys, lanser
with lanser.Workspace('.', program=os.environ['LANSER_TEST_PROGRAM']) as workspace:
    for ask in (
        lambda: workspace.apply(sys.argv[1], apply=True),
        lambda: workspace.hover(sys.argv[2]),
        lambda: workspace.undo(),
        lambda: workspace.hover(sys.argv[2]),
    ):
        print(json.dumps(ask().json))
        print(json.dumps(open('shapes.py').read()))
";
    let output = env.run("python3", ["-c", script, FITS, about.selector.unwrap()]);
    assert_eq!(output.code, Some(0), "{output}");
    let printed: Vec<Value> = output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((told(&printed[0]), &printed[1]), (applied, &json!(after)));
    assert_eq!(printed[2]["bundleId"], changed);
    assert_eq!((told(&printed[4]), &printed[5]), (undone, &json!(before)));
    assert_eq!(printed[6]["bundleId"], original);
    assert_eq!(now(), before);
}

fn start_mcp(env: &TestEnv) -> RpcClient {
    let mut mcp = RpcClient::start(env, &["mcp"], Framing::Lines);
    let client = json!({"name": "test", "version": "1"});
    mcp.request(
        "initialize",
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}),
    );
    mcp.notify("notifications/initialized", json!({}));
    mcp
}

fn environment(mut env: TestEnv) -> TestEnv {
    let python = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("python");
    env.set("PYTHONPATH", python).set("PYTHONDONTWRITEBYTECODE", "1").set("LANSER_TEST_PROGRAM", LANSER);
    env
}

#[test]
fn every_front_end_has_the_same_facts() {
    check(&environment(TestEnv::pyright(&Project::parse(PROJECT))));
}

#[test]
fn every_front_end_has_the_same_facts_with_ty() {
    check(&environment(TestEnv::ty(&Project::parse(PROJECT))));
}

#[test]
fn every_front_end_writes_and_undoes_the_same() {
    check_writes(&environment(TestEnv::pyright(&Project::parse(PROJECT))));
    check_writes(&environment(TestEnv::ty(&Project::parse(PROJECT))));
}
