//! Code actions of real servers, and of a fake server that does what those do not: fills in an edit later, edits several files,
//! requests several edits.

use serde_json::{Value, json};

use super::{Repository, failed};
use crate::support::{Behavior, FakeServer, Project, TestEnv};

const MODULES: &str = "\
//- /m.py
def helper(x: int) -> int:
    return x
//- /use.py
import sys
import os

def twice(x: int) -> int:
    return helper(x) + helper(x)

print(os.path, sys.argv)
";

#[test]
fn the_quick_fixes_of_basedpyright() {
    let repository = Repository::of(TestEnv::basedpyright(&Project::parse(MODULES)));
    let ask = |args: &[&str]| {
        repository
            .env
            .lanser([&["actions", "use.py:5:12", "--server", "basedpyright", "--json"], args].concat())
    };
    let listed = ask(&[]).answer();
    let titles: Vec<&str> = listed["facts"]["actions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|action| action["title"].as_str().unwrap())
        .collect();
    let import = titles.iter().position(|title| *title == "from m import helper").unwrap() + 1;
    assert!(titles.contains(&"Organize imports"), "{titles:?}");
    let ignore = titles.iter().find(|title| title.contains("ignore[reportUndefinedVariable]")).unwrap();
    let kinds = |kind: &str| {
        let listed = ask(&["--kind", kind]).answer();
        let actions = listed["facts"]["actions"].as_array().unwrap().clone();
        actions.iter().map(|action| action["kind"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert!(kinds("quickfix").iter().all(|kind| kind == "quickfix"));
    assert_eq!(kinds("source"), ["source.organizeImports"]);
    let before = repository.tree();
    for (run, part) in [
        (import.to_string().as_str(), "from m import helper\n"),
        ("from m import helper", "from m import helper\n"),
        (ignore, "return helper(x) + helper(x)  # pyright: ignore[reportUndefinedVariable]"),
        ("Organize imports", "import os\nimport sys\n"),
    ] {
        let dry = ask(&["--run", run]).answer();
        assert_eq!(repository.tree(), before, "{run}");
        assert_eq!(failed(&dry), [""; 0], "{dry}");
        repository.applies(dry["edits"]["diff"].as_str().unwrap());
        let made = ask(&["--run", run, "--apply"]).answer();
        assert_eq!(made["edits"]["diff"], dry["edits"]["diff"]);
        let text = std::fs::read_to_string(repository.env.file("use.py")).unwrap();
        assert!(text.contains(part), "{run}: {text}");
        repository.env.lanser(["undo"]).text();
        assert_eq!(repository.tree(), before, "{run}");
    }
}

/// An edit that inserts a line at the top of each of these files.
fn lines(env: &TestEnv, files: &[&str]) -> Value {
    let zero = json!({"line": 0, "character": 0});
    let changes = files.iter().map(|file| {
        let uri = format!("file://{}", env.file(file).to_str().unwrap());
        let edit = json!({"range": {"start": zero, "end": zero}, "newText": format!("# {file}\n")});
        (uri, json!([edit]))
    });
    json!({"changes": changes.collect::<serde_json::Map<_, _>>()})
}

/// A repository, and a server that proposes one action with this behavior.
fn with(behave: impl FnOnce(&TestEnv, Behavior) -> Behavior) -> (Repository, FakeServer) {
    let repository = Repository::of(TestEnv::with(&Project::parse(MODULES)));
    let good = Behavior::good()
        .offers("codeActionProvider", json!({"resolveProvider": true}))
        .offers("executeCommandProvider", json!({"commands": ["do"]}));
    let server = FakeServer::new(&repository.env, &behave(&repository.env, good));
    (repository, server)
}

fn run(repository: &Repository, server: &FakeServer, more: &[&str]) -> crate::support::Output {
    let args = ["actions", "use.py:1:1", "--run", "do it", "--server-command", server.command(), "--json"];
    repository.env.lanser([&args, more].concat())
}

fn first_lines(repository: &Repository) -> Vec<String> {
    ["m.py", "use.py"]
        .map(|file| std::fs::read_to_string(repository.env.file(file)).unwrap())
        .map(|text| text.lines().next().unwrap().to_owned())
        .into()
}

#[test]
fn a_resolved_edit_of_several_files() {
    let (repository, server) = with(|env, good| {
        let action = json!({"title": "do it", "kind": "refactor", "data": {"n": 1}});
        let mut resolved = action.clone();
        resolved["edit"] = lines(env, &["m.py", "use.py"]);
        good.answers("textDocument/codeAction", json!([action])).answers("codeAction/resolve", resolved)
    });
    let dry = run(&repository, &server, &[]).answer();
    assert_eq!(dry["capabilities"]["resolveAction"], true);
    assert_eq!(dry["edits"]["files"].as_array().unwrap().len(), 2, "{dry}");
    repository.applies(dry["edits"]["diff"].as_str().unwrap());
    assert_eq!(server.received().iter().filter(|method| *method == "codeAction/resolve").count(), 1);
    run(&repository, &server, &["--apply"]).answer();
    assert_eq!(first_lines(&repository), ["# m.py", "# use.py"]);
}

#[test]
fn an_action_with_an_edit_is_not_resolved() {
    let (repository, server) = with(|env, good| {
        let action = json!({"title": "do it", "edit": lines(env, &["m.py"])});
        good.answers("textDocument/codeAction", json!([action]))
    });
    run(&repository, &server, &["--apply"]).answer();
    assert_eq!(first_lines(&repository), ["# m.py", "import sys"]);
    assert!(!server.received().contains(&"codeAction/resolve".to_owned()));
}

#[test]
fn an_edit_with_a_command_that_requests_more_edits() {
    let (repository, server) = with(|env, good| {
        let action = json!({"title": "do it", "edit": lines(env, &["m.py"]), "command": {"title": "t", "command": "do"}});
        good.answers("textDocument/codeAction", json!([action]))
            .edits_on("workspace/executeCommand", json!([lines(env, &["use.py"])]))
    });
    let dry = run(&repository, &server, &[]).answer();
    let told = dry["edits"]["workspaceEdit"]["documentChanges"].as_array().unwrap();
    assert_eq!(told.len(), 2, "{dry}");
    run(&repository, &server, &["--apply"]).answer();
    assert_eq!(first_lines(&repository), ["# m.py", "# use.py"]);
    // All of it is one transaction.
    repository.env.lanser(["undo"]).text();
    assert_eq!(first_lines(&repository), ["def helper(x: int) -> int:", "import sys"]);
}

#[test]
fn several_edits_of_one_file_are_refused() {
    let (repository, server) = with(|env, good| {
        let action = json!({"title": "do it", "command": "do"});
        let edits = json!([lines(env, &["m.py", "use.py"]), lines(env, &["use.py"])]);
        good.answers("textDocument/codeAction", json!([action])).edits_on("workspace/executeCommand", edits)
    });
    let error = run(&repository, &server, &["--apply"]).error(72, "E/UNSUPPORTED_CAP");
    assert!(error["message"].as_str().unwrap().contains("use.py"), "{error}");
    assert!(error["hint"].is_string(), "{error}");
    assert_eq!(first_lines(&repository), ["def helper(x: int) -> int:", "import sys"]);
}

#[test]
fn an_action_without_edits_or_outside_the_workspace() {
    let (repository, server) =
        with(|_, good| good.answers("textDocument/codeAction", json!([{"title": "do it", "command": "do"}])));
    let error = run(&repository, &server, &["--apply"]).error(3, "E/NOT_FOUND");
    assert!(error["message"].as_str().unwrap().contains("edits nothing"), "{error}");
    let (repository, server) = with(|_, good| {
        let zero = json!({"line": 0, "character": 0});
        let edit = json!({"range": {"start": zero, "end": zero}, "newText": "evil"});
        let action = json!({"title": "do it", "edit": {"changes": {"file:///etc/passwd": [edit]}}});
        good.answers("textDocument/codeAction", json!([action]))
    });
    run(&repository, &server, &["--apply"]).error(71, "E/JAIL");
}
