//! Recorded requests are replayed from the trace alone: in another place, without the workspace and without a server.

mod damage;
mod history;
mod steps;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::support::{Behavior, FakeServer, Project, TestEnv};

/// Records a request, and returns the bundle without what differs from run to run.
fn record(env: &TestEnv, trace: &Path, question: &[&str]) -> Value {
    let trace = trace.to_str().unwrap();
    let mut bundle = env.lanser(question.iter().copied().chain(["--json", "--trace-file", trace])).bundle();
    bundle["meta"]["volatile"] = serde_json::json!({});
    bundle
}

/// An environment that shares nothing with the recording one.
fn elsewhere() -> TestEnv {
    let mut env = TestEnv::new();
    let nothing = env.path("nothing");
    env.set("PATH", "").set("LANSER_CACHE_DIR", nothing);
    env
}

/// The bundles of a trace, replayed without workspace and server.
fn replay(trace: &Path) -> Vec<Value> {
    let out = elsewhere().lanser(["trace", "replay", trace.to_str().unwrap()]);
    assert_eq!(out.code, Some(0), "{}", out.stderr);
    out.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn verify(trace: &Path) -> String {
    elsewhere().lanser(["trace", "replay", "--verify", trace.to_str().unwrap()]).text().to_owned()
}

/// Records requests and deletes the workspace; returns the bundles and the trace.
fn recorded(env: &TestEnv, questions: &[&[&str]]) -> (Vec<Value>, PathBuf) {
    let trace = env.path("trace.jsonl");
    let told = questions.iter().map(|question| record(env, &trace, question)).collect();
    std::fs::remove_dir_all(&env.cwd).unwrap();
    (told, trace)
}

#[track_caller]
fn same(env: &TestEnv, questions: &[&[&str]]) {
    let (told, trace) = recorded(env, questions);
    for (number, (live, again)) in told.iter().zip(replay(&trace)).enumerate() {
        assert_eq!(*live, again, "{:?}", questions[number]);
    }
    assert!(verify(&trace).contains(&format!("{} operations replayed", questions.len())));
    let text = std::fs::read_to_string(&trace).unwrap();
    for word in env.machine_paths() {
        let leaks = text.lines().find(|line| line.contains(&word));
        assert!(leaks.is_none(), "the trace tells {word}: {leaks:?}");
    }
}

#[test]
fn read_only_requests() {
    let env = TestEnv::pyright(&Project::fixture("shop"));
    same(
        &env,
        &[
            &["def", "src/shop/till.py:9:21"],
            &["decl", "src/shop/till.py:9:12"],
            &["typedef", "src/shop/till.py:8:11"],
            &["refs", "py://shop#price_of"],
            &["hover", "py://shop.items#Item.gross"],
            &["symbols", "src/shop"],
            &["symbols", "--query", "price"],
            &["calls", "py://shop.till#pay", "--outgoing"],
            &["calls", "py://shop#price_of", "--incoming", "--depth", "2"],
            &["types", "py://shop.items#Item", "--subtypes", "--depth", "2"],
            &["types", "py://shop#Book", "--supertypes", "--depth", "2"],
            &["diag", "--severity", "hint"],
            &["def", "src/shop/till.py:8:5"],
            &["locate", "py://shop#Book.label:body"],
            &["locate", "py://shop#price_off"],
            &["locate", "src/shop/items.py:999:1"],
            &["refs", "price_of"],
            &["locate", "Bok"],
            &["def", "src/shop/till.py:9"],
            &["hover", "price_of(item)"],
            &["locate", "src/shop/items.py::Book"],
            &["impl", "py://shop.items#Item"],
            &["refs", "not a selector"],
        ],
    );
}

#[test]
fn edits() {
    let env = TestEnv::pyright(&Project::fixture("shop"));
    let git = |args: &[&str]| {
        let status =
            Command::new("git").args(args).current_dir(&env.cwd).env("HOME", "/nonexistent").status();
        assert!(status.unwrap().success());
    };
    git(&["init", "-q"]);
    git(&["add", "-A"]);
    git(&["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "one"]);
    same(
        &env,
        &[
            &["prepare-rename", "py://shop#price_of"],
            &["rename", "py://shop#price_of", "cost_of"],
            &["rename", "py://shop#price_of", "class"],
            &["rename", "py://shop#Book.label", "title_of", "--family", "--include", "unresolved"],
            &["rename", "py://shop.items", "shop.goods"],
            &["rename", "py://shop#price_of", "cost_of", "--apply"],
            &["refs", "py://shop#cost_of"],
            &["rename", "py://shop#cost_of", "price", "--apply"],
            &["undo", "--list"],
            &["undo"],
            &["undo"],
            &["actions", "src/shop/till.py:1:1"],
            &["locate", "py://shop#price_of?v=git:HEAD"],
            &["diag", "--new"],
            &["diag", "src/shop/till.py", "--base", "HEAD"],
            &["diag", "--base", "nothing"],
        ],
    );
}

/// Edits provided by a caller: one that suppresses a diagnostic, which is also checked without the suppression, and one that
/// names files the way language clients do.
#[test]
fn provided_edits() {
    let project = Project::parse("//- /a.py\nx: int = \"\"\ny = 1\n//- /b.py\nimport a\nprint(a.y)\n");
    let env = TestEnv::pyright(&project);
    let diff = "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x: int = \"\"\n+x: int = \"\"  # type: ignore\n";
    let range = serde_json::json!({"start": {"line": 1, "character": 4}, "end": {"line": 1, "character": 5}});
    let uri = format!("file://{}", env.file("a.py").canonicalize().unwrap().display());
    let edit = serde_json::json!({"changes": {uri: [{"range": range, "newText": "2"}]}});
    let (hiding, naming) = (env.path("hide.diff"), env.path("edit.json"));
    std::fs::write(&hiding, diff).unwrap();
    std::fs::write(&naming, edit.to_string()).unwrap();
    let (hiding, naming) = (hiding.to_str().unwrap(), naming.to_str().unwrap());
    let trace = env.path("trace.jsonl");
    let told: Vec<Value> = [["check", hiding], ["check", naming], ["apply", naming]]
        .iter()
        .map(|question| record(&env, &trace, question))
        .collect();
    for bundle in &told {
        assert_eq!(bundle["status"], "ok", "{bundle}");
    }
    assert!(told[1]["edits"]["diff"].as_str().unwrap().contains("+y = 2"), "{}", told[1]);
    std::fs::remove_dir_all(&env.cwd).unwrap();
    assert_eq!(told, replay(&trace));
}

/// Failures of the server are recorded too.
#[test]
fn failures() {
    let env = TestEnv::with(&Project::fixture("shop"));
    let trace = env.path("trace.jsonl");
    let mut told = Vec::new();
    for behavior in [
        Behavior::good().dies_on("textDocument/hover", 3, "lost in $HERE/dist"),
        Behavior::good().hangs_on("textDocument/hover"),
        Behavior::good().lacks("hoverProvider"),
        Behavior::good().goes_silent_on("initialize"),
    ] {
        let server = FakeServer::new(&env, &behavior);
        let question =
            ["hover", "src/shop/till.py:9:21", "--timeout", "1", "--server-command", server.command()];
        told.push(record(&env, &trace, &question));
    }
    std::fs::remove_dir_all(&env.cwd).unwrap();
    assert_eq!(told, replay(&trace));
    let codes: Vec<_> = told.iter().map(|bundle| bundle["meta"]["exit_code"].clone()).collect();
    assert_eq!(codes, [65, 64, 72, 65]);
}

#[test]
fn list_and_show() {
    let env = TestEnv::pyright(&Project::fixture("shop"));
    let (told, trace) = recorded(
        &env,
        &[
            &["def", "src/shop/till.py:9:21"],
            &["locate", "py://shop#price_of"],
            &["locate", "py://shop#nothing"],
        ],
    );
    let trace = trace.to_str().unwrap();
    let list = |more: &[&str]| -> Vec<Value> {
        let out = elsewhere().lanser(["trace", "list", trace, "--json"].iter().chain(more));
        assert_eq!(out.code, Some(0), "{out}");
        out.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let all = list(&[]);
    assert_eq!(all.len(), 3);
    for (summary, bundle) in all.iter().zip(&told) {
        assert_eq!(summary["bundleId"], bundle["bundleId"]);
    }
    let ops = |more: &[&str]| list(more).iter().map(|one| one["op"].as_u64().unwrap()).collect::<Vec<_>>();
    assert_eq!(ops(&["--cmd", "locate"]), [2, 3]);
    assert_eq!(ops(&["--status", "error"]), [3]);
    assert_eq!(ops(&["--exit-code", "0"]), [1, 2]);
    assert_eq!(ops(&["--selector", "till"]), [1]);
    assert_eq!(ops(&["--op", "2"]), [2]);
    assert_eq!(ops(&["--cmd", "def"]), [1], "the verb means the command too");
    assert_eq!(ops(&["--limit", "2"]), [1, 2]);
    assert_eq!(ops(&["--limit", "1", "--cmd", "locate"]), [2]);
    for (limit, cut) in [("2", true), ("3", false)] {
        let listed = elsewhere().lanser(["trace", "list", trace, "--limit", limit]);
        assert_eq!(listed.stderr.contains("more than 2 operations"), cut, "{listed}");
        let shown = elsewhere().lanser(["trace", "show", trace, "--kind", "request", "--limit", limit]);
        assert_eq!(shown.stdout.lines().count().to_string(), limit);
    }
    // An empty list is fine, but an operation to show must exist.
    let none = elsewhere().lanser(["trace", "list", trace, "--cmd", "hover"]);
    assert_eq!((none.code, none.stdout.as_str()), (Some(0), ""));
    assert!(none.stderr.contains("none of its 3 operations matches the filter"), "{none}");
    for verb in ["show", "replay"] {
        let none = elsewhere().lanser(["trace", verb, trace, "--op", "4", "--json"]).error(3, "E/NOT_FOUND");
        assert!(none["hint"].as_str().unwrap().contains("3 operations"), "{none}");
    }
    for (option, wrong) in [("--cmd", "hoover"), ("--status", "good"), ("--kind", "frames")] {
        let out = elsewhere().lanser(["trace", "show", trace, option, wrong]);
        let said = out.failure(2);
        assert!(said.contains("possible values"), "{said}");
    }
    let frames = elsewhere().lanser(["trace", "show", trace, "--op", "1", "--kind", "frame"]);
    assert!(frames.text().contains("textDocument/definition"), "{}", frames.text());
    assert!(frames.text().lines().all(|line| line.contains(" frame ")));
    let shown = elsewhere().lanser(["trace", "show", trace, "--json"]);
    assert_eq!(shown.text(), std::fs::read_to_string(trace).unwrap());
    let validated = elsewhere().lanser(["schema", "validate-batch", "--kind", "trace", trace]);
    assert!(validated.text().contains("valid"), "{}", validated.text());
}

/// Requests of one batch that a warm server answered concurrently; each is replayed alone.
#[test]
fn a_batch() {
    let env = TestEnv::pyright(&Project::fixture("shop"));
    let lines = [
        r#"{"id":1,"cmd":"definition","selector":"src/shop/till.py:9:21"}"#,
        r#"{"id":2,"cmd":"references","selector":"py://shop#price_of"}"#,
        r#"{"id":3,"cmd":"hover","selector":"py://shop.items#Item.gross"}"#,
        r#"{"id":4,"cmd":"definition","selector":"src/shop/till.py:8:5"}"#,
        r#"{"id":5,"cmd":"references","selector":"py://shop#Book"}"#,
        r#"{"id":6,"cmd":"symbols","options":{"paths":["src/shop/items.py"]}}"#,
        r#"{"id":7,"cmd":"diagnostics"}"#,
        r#"{"id":8,"cmd":"rename","selector":"py://shop#price_of","newName":"cost_of"}"#,
        r#"{"id":9,"cmd":"definition","selector":"src/shop/till.py:9:21"}"#,
        r#"{"id":10,"cmd":"locate","selector":"py://shop#nothing"}"#,
        r#"{"id":11,"cmd":"nonsense"}"#,
        "no JSON",
    ];
    let (requests, trace) = (env.path("requests.jsonl"), env.path("trace.jsonl"));
    std::fs::write(&requests, lines.join("\n")).unwrap();
    let ids = |bundles: &[Value]| {
        let mut ids: Vec<String> =
            bundles.iter().map(|one| one["bundleId"].as_str().unwrap().to_owned()).collect();
        ids.sort();
        ids
    };
    let mut all = Vec::new();
    for concurrency in ["1", "16"] {
        let _ = std::fs::remove_file(&trace);
        let args = ["batch", "--in", requests.to_str().unwrap(), "--concurrency", concurrency];
        let out = env.lanser(args.iter().chain(&["--trace-file", trace.to_str().unwrap()]));
        let told: Vec<Value> = out.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(told.len(), lines.len());
        assert_eq!(ids(&told), ids(&replay(&trace)), "concurrency {concurrency}");
        assert!(verify(&trace).contains("12 operations replayed"));
        all.push(ids(&told));
    }
    assert_eq!(all[0], all[1]);
}

/// One trace written by many processes at once: every operation is complete.
#[test]
fn many_recorders() {
    let env = TestEnv::with(&Project::fixture("shop"));
    let trace = env.path("trace.jsonl");
    let running: Vec<_> = (0..8)
        .map(|_| {
            env.start(["locate", "py://shop#price_of", "--json", "--trace-file", trace.to_str().unwrap()])
        })
        .collect();
    for one in running {
        assert_eq!(one.finish().bundle()["status"], "ok");
    }
    assert!(verify(&trace).contains("8 operations replayed"));
    // The workspace and its files are written once.
    let text = std::fs::read_to_string(&trace).unwrap();
    assert_eq!(text.matches("\"kind\":\"workspace\"").count(), 1);
}

/// What cannot be recorded is refused or reported, never ignored.
#[test]
fn unrecordable_requests_are_reported() {
    let mut env = TestEnv::with(&Project::fixture("shop"));
    let trace = env.path("trace.jsonl");
    let file = trace.to_str().unwrap().to_owned();
    let commands: [&[&str]; 9] = [
        &["score"],
        &["reward", "--run", "run.jsonl"],
        &["show", "bundle.json"],
        &["doctor"],
        &["server", "list"],
        &["session", "status"],
        &["schema", "commands"],
        &["trace", "list", "other.jsonl"],
        &["completions", "bash"],
    ];
    for command in commands {
        let out = env.lanser(command.iter().chain(&["--trace-file", &file]));
        let said = out.failure(2);
        assert!(said.contains(&format!("--trace-file does not apply to `{}`", command[0])), "{said}");
        assert!(!trace.exists(), "{command:?}");
    }
    env.set("LANSER_TRACE_FILE", &file);
    let bundle = env.lanser(["locate", "py://shop#Book", "--json"]).stdout;
    assert!(verify(&trace).contains("1 operation replayed"));
    env.write("bundle.json", &bundle);
    let shown = env.lanser(["show", "bundle.json", "--json"]);
    assert_eq!(shown.stdout, bundle);
    assert!(shown.stderr.contains("`show` is not recorded in LANSER_TRACE_FILE"), "{}", shown.stderr);
    assert_eq!(env.lanser(["schema", "commands"]).stderr, "");
    assert!(verify(&trace).contains("1 operation replayed"));
}

#[test]
fn against_a_folder() {
    let env = TestEnv::with(&Project::fixture("shop"));
    env.write("pyrightconfig.json", "{}");
    let trace = env.path("trace.jsonl");
    record(&env, &trace, &["locate", "py://shop#price_of"]);
    let (trace, folder) = (trace.to_str().unwrap(), env.cwd.to_str().unwrap().to_owned());
    let args = ["trace", "replay", trace, "--verify", "--against", &folder];
    let same = || assert!(env.lanser(args).text().contains("1 operation replayed"));
    let other = |field: &str, words: &[&str]| {
        let error = env.lanser(args.iter().chain(&["--json"])).error(76, "E/REPLAY_MISMATCH");
        assert_eq!(error["data"]["field"], field, "{error}");
        for word in words {
            assert!(error["message"].as_str().unwrap().contains(word), "{error}");
        }
    };
    same();
    env.write("README.md", "no part of it\n");
    same();
    let till = std::fs::read_to_string(env.file("src/shop/till.py")).unwrap();
    env.write("src/shop/till.py", "x = 1\n");
    env.write("src/shop/more.py", "x = 1\n");
    env.write("pyrightconfig.json", "{\"strict\": [\"src\"]}");
    other(
        "$.files[\"src/shop/more.py\"]",
        &[
            "src/shop/more.py was not recorded; the content of src/shop/till.py differs",
            "the content of pyrightconfig.json differs",
        ],
    );
    env.write("src/shop/till.py", &till);
    std::fs::remove_file(env.file("src/shop/more.py")).unwrap();
    other(
        "$.configuration.config.files[\"pyrightconfig.json\"]",
        &["the content of pyrightconfig.json differs"],
    );
    std::fs::remove_file(env.file("pyrightconfig.json")).unwrap();
    // The next file is read now.
    other(
        "$.configuration.config.files[\"pyproject.toml\"]",
        &["pyproject.toml was not recorded; pyrightconfig.json does not exist"],
    );
    env.write("pyrightconfig.json", "{}");
    same();
    // The other environment has no interpreter, on which answers depend too.
    let error = elsewhere().lanser(args.iter().chain(&["--json"])).error(76, "E/REPLAY_MISMATCH");
    assert_eq!(error["data"]["field"], "$.environment.python", "{error}");
    let gone = ["trace", "replay", trace, "--against", "nowhere"];
    assert!(env.lanser(gone).failure(2).contains("--against: nowhere is not a folder"));
}
