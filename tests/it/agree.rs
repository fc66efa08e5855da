//! A second opinion with `--agree`: two real servers, and a fake one where they must contradict each other.

use serde_json::{Value, json};

use crate::support::{Behavior, FakeServer, Project, TestEnv, install, portable};

/// Only Pyright infers what `make` returns, and only ty is configured to look at code for another platform.
const POINTS: &str = "\
//- /ty.toml
[environment]
python-platform = \"all\"
//- /point.py
class Point:
    def __init__(self, only: int) -> None:
        self.only = only
def make():
    return Point(1)
class Other:
    only: int = 2
//- /use.py
import sys
from point import make, Point, Other
def near(p): return p.only
def far(): return make().only
if sys.platform == \"win32\":
    def first(p: Point): return p.only
    def second(p: Other): return p.only
def typed(p: Point): return p.only
";

fn both(project: &str) -> TestEnv {
    install("ty");
    TestEnv::pyright(&Project::parse(project))
}

/// Each item with one of its members.
fn with<'b>(list: &'b Value, member: &str) -> Vec<(&'b str, &'b str)> {
    let items = list.as_array().unwrap().iter();
    items.map(|one| (one["at"].as_str().unwrap(), one[member].as_str().unwrap_or_default())).collect()
}

fn counts(bundle: &Value) -> Value {
    bundle["facts"]["completeness"]["agreement"].clone()
}

#[test]
fn each_server_resolves_what_the_other_leaves_open() {
    let env = both(POINTS);
    let ask = |more: &[&str]| {
        env.lanser(["refs", "py://point#Point.only", "--json"].iter().chain(more.iter())).answer()
    };
    let (pyright, ty) = (ask(&[]), ask(&["--server", "ty"]));
    let unresolved = |bundle: &Value| -> Vec<String> {
        let items = &bundle["facts"]["completeness"]["unresolved"]["items"];
        with(items, "kind").into_iter().map(|(at, _)| at.to_owned()).collect()
    };
    let places = |bundle: &Value| -> Vec<String> {
        with(&bundle["facts"]["references"], "kind").into_iter().map(|(at, _)| at.to_owned()).collect()
    };
    assert!(unresolved(&pyright).contains(&"use.py@L6:C35".to_owned()), "{pyright}");
    assert!(places(&pyright).contains(&"use.py@L4:C26".to_owned()), "{pyright}");
    assert!(unresolved(&ty).contains(&"use.py@L4:C26".to_owned()), "{ty}");
    assert!(places(&ty).contains(&"use.py@L6:C35".to_owned()), "{ty}");
    for (more, main) in
        [(vec!["--agree", "ty"], "pyright"), (vec!["--server", "ty", "--agree", "pyright"], "ty")]
    {
        let bundle = ask(&more);
        let expected = [
            ("point.py@L3:C14", "both"),
            ("use.py@L4:C26", "pyright"),
            ("use.py@L6:C35", "ty"),
            ("use.py@L8:C31", "both"),
        ];
        assert_eq!(with(&bundle["facts"]["references"], "agreement"), expected, "{bundle}");
        let rules = with(&bundle["facts"]["references"], "provenance");
        let by_other = if main == "pyright" { "use.py@L6:C35" } else { "use.py@L4:C26" };
        assert!(rules.iter().any(|(at, rule)| *at == by_other && !rule.is_empty()), "{rules:?}");
        // What no server knows stays unresolved; the attribute of the other class is explained.
        assert_eq!(unresolved(&bundle), ["use.py@L3:C23"], "{bundle}");
        assert_eq!(counts(&bundle)["both"], 2, "{bundle}");
        assert_eq!(counts(&bundle)["contradictions"], 0, "{bundle}");
        assert_eq!(bundle["environment"]["tool"]["name"], main);
        assert_eq!(bundle["environment"]["otherTool"]["name"], if main == "ty" { "pyright" } else { "ty" });
    }
    let text = env.lanser(["refs", "py://point#Point.only", "--agree", "ty"]).stdout;
    assert!(text.contains("[only ty]") && text.contains("[only pyright]"), "{text}");
}

#[test]
fn definitions_of_both() {
    let env = both(POINTS);
    let definitions = |at: &str, more: &[&str]| {
        env.lanser(["def", at, "--json"].iter().chain(more.iter())).answer()["facts"]["definitions"].clone()
    };
    let typed = definitions("use.py:8:31", &["--agree", "ty"]);
    assert_eq!(with(&typed, "agreement"), [("point.py@L3:C14", "both")]);
    let far = definitions("use.py:4:26", &["--agree", "ty"]);
    assert_eq!(with(&far, "agreement"), [("point.py@L3:C14", "pyright")]);
    let first = definitions("use.py:6:35", &["--agree", "ty"]);
    assert_eq!(with(&first, "agreement"), [("point.py@L3:C14", "ty")]);
    assert_eq!(with(&first, "provenance"), [("point.py@L3:C14", "other-server")]);
    // Each server has its own stubs of the standard library.
    let library = definitions("use.py:5:8", &["--agree", "ty"]);
    assert!(with(&library, "agreement").iter().all(|(_, of)| *of == "both"), "{library}");
    let alone = definitions("use.py:8:31", &[]);
    assert_eq!(alone[0].get("agreement"), None);
    let nowhere = env.lanser(["def", "use.py:3:23", "--json", "--agree", "ty"]).error(3, "E/NOT_FOUND");
    assert!(nowhere["message"].as_str().unwrap().contains("no definition"), "{nowhere}");
}

#[test]
fn a_rename_asks_for_agreement() {
    let env = both(POINTS);
    let rename = |more: &[&str]| {
        let question = ["rename", "py://point#Point.only", "single", "--json", "--exclude", "use.py:3:23"];
        env.lanser(question.iter().chain(more.iter())).plan()
    };
    let alone = rename(&["--exclude", "use.py:6:35", "--exclude", "use.py:7:36"]);
    assert!(alone["edits"]["safety"].as_array().unwrap().iter().all(|check| check["name"] != "agreement"));
    let agreed = rename(&["--agree", "ty"]);
    assert_eq!(agreed["error"], Value::Null, "{agreed}");
    let diff = agreed["edits"]["diff"].as_str().unwrap();
    assert!(diff.contains("+    def first(p: Point): return p.single"), "{diff}");
    assert!(diff.contains("+def far(): return make().single"), "{diff}");
    assert!(!diff.contains("+    def second"), "{diff}");
    let check = check(&agreed, "agreement");
    assert_eq!((&check["passed"], check.get("locations")), (&json!(true), None), "{check}");
    let detail = check["detail"].as_str().unwrap();
    assert_eq!(detail, "2 references for pyright and ty, 1 that only pyright knows, 1 that only ty knows");
}

/// That the other server contradicts nothing is no agreement.
#[test]
fn a_server_that_knows_nothing_does_not_agree() {
    let env = both(
        "//- /point.py\nclass Point:\n    def __init__(self, only: int) -> None:\n        self.only = only\n\
         def make():\n    return Point(1)\n\
         //- /use.py\nfrom point import make\ndef far(): return make().only\n",
    );
    let question = ["rename", "py://point#Point.only", "single", "--json", "--agree", "ty"];
    let refused = env.lanser(question).plan();
    assert_eq!(refused["error"]["symbol"], "E/UNSAFE_EDIT", "{refused}");
    let failed = check(&refused, "agreement");
    assert_eq!(failed["passed"], false, "{failed}");
    assert!(failed["detail"].as_str().unwrap().starts_with("ty knows none of the references"), "{failed}");
}

/// Two import roots may have modules of the same name.
#[test]
fn equal_names_in_two_roots_are_two_definitions() {
    let env = both(
        "//- /pyrightconfig.json\n{\"extraPaths\": [\"one\"]}\n\
         //- /ty.toml\n[environment]\nextra-paths = [\"two\"]\n\
         //- /one/shared.py\ndef go() -> int: ...\n//- /two/shared.py\ndef go() -> int: ...\n\
         //- /use.py\nfrom shared import go\ngo()\n",
    );
    let bundle = env.lanser(["def", "use.py:2:1", "--json", "--agree", "ty"]).answer();
    let found = with(&bundle["facts"]["definitions"], "agreement");
    assert_eq!(found, [("one/shared.py@L1:C5", "pyright"), ("two/shared.py@L1:C5", "ty")], "{bundle}");
}

fn check(bundle: &Value, name: &str) -> Value {
    let checks = bundle["edits"]["safety"].as_array().unwrap();
    checks.iter().find(|check| check["name"] == name).unwrap_or_else(|| panic!("{bundle}")).clone()
}

/// A server claims the attribute of an object of another class; for ty the object's class is certain.
fn contradicted() -> (TestEnv, String) {
    install("ty");
    let env = TestEnv::with(&Project::parse(
        "//- /a.py\nclass A:\n    def run(self) -> None: ...\nclass B:\n    def run(self) -> None: ...\n\
         def use(b: B, a: A):\n    b.run()\n    a.run()\n",
    ));
    let uri = format!("file://{}", env.file("a.py").to_str().unwrap());
    let place = |line: u32, column: u32| {
        json!({"uri": uri, "range": {"start": {"line": line, "character": column},
            "end": {"line": line, "character": column + 3}}})
    };
    let target = json!([place(1, 8), place(5, 6), place(6, 6)]);
    let edits = |of: &Value| -> Value {
        let edit = |place: &Value| json!({"range": place["range"], "newText": "start"});
        of.as_array().unwrap().iter().map(edit).collect()
    };
    let fake = FakeServer::new(
        &env,
        &Behavior::good()
            .answers("textDocument/references", target.clone())
            .answers("textDocument/definition", json!([place(1, 8)]))
            .answers(
                "textDocument/prepareRename",
                json!({"range": place(1, 8)["range"], "placeholder": "run"}),
            )
            .answers("textDocument/rename", json!({"changes": {uri.clone(): edits(&target)}})),
    );
    let command = fake.command().to_owned();
    (env, command)
}

#[test]
fn contradictions_are_unresolved() {
    let (env, server) = contradicted();
    let ask = |more: &[&str]| {
        let question = ["refs", "py://a#A.run", "--json", "--server-command", &server];
        env.lanser(question.iter().copied().chain(more.iter().copied())).answer()
    };
    let alone = ask(&[]);
    assert_eq!(alone["facts"]["completeness"]["status"], "complete", "{alone}");
    let bundle = ask(&["--agree", "ty"]);
    let facts = &bundle["facts"];
    assert_eq!(with(&facts["references"], "agreement"), [("a.py@L2:C9", "both"), ("a.py@L7:C7", "both")]);
    let completeness = &facts["completeness"];
    assert_eq!(completeness["status"], "partial", "{completeness}");
    assert_eq!(
        with(&completeness["unresolved"]["items"], "reason"),
        [("a.py@L6:C7", "it is the symbol for pyright, and a.B.run for ty")]
    );
    assert_eq!(counts(&bundle)["contradictions"], 1);
    let question =
        ["rename", "py://a#A.run", "start", "--json", "--server-command", &server, "--agree", "ty"];
    let refused = env.lanser(question).plan();
    assert_eq!(refused["error"]["symbol"], "E/UNSAFE_EDIT", "{refused}");
    let failed = check(&refused, "agreement");
    assert_eq!(
        (&failed["passed"], &failed["locations"]),
        (&json!(false), &json!(["a.py@L6:C7"])),
        "{failed}"
    );
    let overridden = env.lanser(question.iter().chain(["--allow-disagreement"].iter())).plan();
    assert_eq!(check(&overridden, "agreement")["overridden"], true, "{overridden}");
}

/// A receiver of which a part is unknown may be the symbol, even if the other part has an attribute of that name.
#[test]
fn a_half_known_receiver_proves_nothing() {
    let env = both(
        "//- /ty.toml\n[environment]\npython-platform = \"all\"\n\
         //- /a.py\nclass A:\n    def run(self) -> None: ...\nclass B:\n    def run(self) -> None: ...\n\
         //- /b.py\nimport sys\nfrom a import B\nfrom nowhere import thing\nif sys.platform == \"win32\":\n    \
         def use(c: bool):\n        x = B() if c else thing()\n        x.run()\n        y = B()\n        y.run()\n",
    );
    let bundle = env.lanser(["refs", "py://a#A.run", "--json", "--agree", "ty"]).answer();
    let items = &bundle["facts"]["completeness"]["unresolved"]["items"];
    assert_eq!(with(items, "receiver"), [("b.py@L7:C11", "x")], "{bundle}");
    assert_eq!(counts(&bundle)["otherSymbols"], 1, "{bundle}");
}

#[test]
fn the_same_answer_from_everywhere() {
    let env = both(POINTS).with_sessions();
    let questions: [&[&str]; 4] = [
        &["refs", "py://point#Point.only", "--agree", "ty"],
        &["refs", "py://point#Point.only", "--agree", "ty", "--limit", "2"],
        &["def", "use.py:6:35", "--agree", "ty"],
        &["rename", "py://point#Point.only", "single", "--agree", "ty", "--exclude", "use.py:3:23"],
    ];
    let trace = env.path("trace.jsonl");
    let mut cold = Vec::new();
    for question in questions {
        let ask =
            |more: &[&str]| env.lanser(question.iter().chain(["--json"].iter()).chain(more.iter())).bundle();
        let alone = ask(&["--no-session", "--no-cache"]);
        for (what, more) in [
            ("warm", &["--no-cache"][..]),
            ("warm again", &["--no-cache"]),
            ("not in the memo", &[]),
            ("the memo", &[]),
            ("the memo without a session", &["--no-session"]),
            ("recorded", &["--trace-file", trace.to_str().unwrap()]),
        ] {
            let other = ask(more);
            assert_eq!(portable(&alone), portable(&other), "{what}: {question:?}");
            if what.starts_with("the memo") {
                assert_eq!(other["meta"]["volatile"]["served_from"], "memo", "{what}: {question:?}");
            }
        }
        cold.push(alone);
    }
    let lines = questions.iter().zip(&cold).enumerate().map(|(id, (question, alone))| {
        let request = &alone["request"];
        let mut line =
            json!({"id": id, "cmd": request["cmd"], "selector": question[1], "options": request["options"]});
        if let Some(name) = request.get("newName") {
            line["newName"] = name.clone();
        }
        line.to_string()
    });
    let batch = env.lanser_with_input(["batch", "--no-cache"], lines.collect::<Vec<_>>().join("\n"));
    for line in batch.stdout.lines() {
        let one: Value = serde_json::from_str(line).unwrap();
        let id = one["meta"]["volatile"]["id"].as_u64().unwrap();
        assert_eq!(portable(&one), portable(&cold[usize::try_from(id).unwrap()]));
    }
    assert_eq!(batch.stdout.lines().count(), cold.len());
    // A change of the other server's configuration is a change of the inputs.
    let ask = || env.lanser(questions[0].iter().chain(["--json"].iter())).bundle();
    env.write("ty.toml", "[environment]\npython-platform = \"linux\"\n");
    let changed = ask();
    assert_ne!(changed["meta"]["volatile"]["served_from"], "memo");
    let digest = |bundle: &Value| bundle["environment"]["otherTool"]["configDigest"].clone();
    assert_ne!(digest(&changed), digest(&cold[0]));
    std::fs::remove_dir_all(&env.cwd).unwrap();
    let mut elsewhere = TestEnv::new();
    let nothing = elsewhere.path("nothing");
    elsewhere.set("PATH", "").set("LANSER_CACHE_DIR", nothing);
    let replayed = elsewhere.lanser(["trace", "replay", trace.to_str().unwrap()]);
    assert_eq!(replayed.code, Some(0), "{replayed}");
    for (line, alone) in replayed.stdout.lines().zip(&cold) {
        let again: Value = serde_json::from_str(line).unwrap();
        assert_eq!(again["bundleId"], alone["bundleId"]);
    }
    assert_eq!(replayed.stdout.lines().count(), cold.len());
    let text = std::fs::read_to_string(&trace).unwrap();
    for word in env.machine_paths() {
        assert!(!text.contains(&word), "the trace has {word}");
    }
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let mut env = both(POINTS);
    let refused = |env: &TestEnv, question: &[&str]| {
        let error = env.lanser(question.iter().chain(["--json"].iter())).error(2, "E/USAGE");
        error["message"].as_str().unwrap().to_owned()
    };
    assert_eq!(
        refused(&env, &["refs", "py://point#Point", "--agree", "pyright"]),
        "pyright is the server itself"
    );
    assert!(refused(&env, &["refs", "py://point#Point", "--agree", "mypy"]).contains("invalid value"));
    let module = refused(&env, &["move", "py://point", "py://dot", "--agree", "ty"]);
    assert!(module.contains("renames of symbols"), "{module}");
    let line = r#"{"cmd": "hover", "selector": "use.py:8:31", "options": {"agree": "ty"}}"#;
    let batch = env.lanser_with_input(["batch"], line).stdout;
    assert!(batch.contains("`hover` does not ask another server"), "{batch}");
    // The setting is for all requests that can use it, and is no error where the server is the same.
    env.set("LANSER_AGREE", "ty");
    let bundle = env.lanser(["refs", "py://point#Point.only", "--json"]).answer();
    assert_eq!(bundle["request"]["options"]["agree"], "ty");
    for question in [
        &["refs", "py://point#Point.only", "--agree", "none"][..],
        &["refs", "py://point#Point.only", "--server", "ty"],
        &["hover", "use.py:8:31"],
    ] {
        let bundle = env.lanser(question.iter().chain(["--json"].iter())).answer();
        assert_eq!(bundle["environment"].get("otherTool"), None, "{question:?}");
    }
}
