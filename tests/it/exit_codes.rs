//! The table of exit codes, row by row: as text, and as a bundle with the same code. Every failure has a time limit.

use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Behavior, FakeServer, Project, TestEnv, is_alive, search_path, wait_until};

/// Time limit for a failure that needs no server.
const NO_SERVER_TIMEOUT: Duration = Duration::from_secs(10);

fn project() -> Project {
    Project::parse(
        "
//- /pkg/__init__.py
//- /pkg/mod.py
def $0handle(item):
    return item


handle(1)
//- /pkg/twice.py
from pkg.mod import handle


class Order:
    if handle(1):
        def total(self): ...
    else:
        def total(self, tax): ...
",
    )
}

/// Runs a command as text and with `--json`, asserts that both fail in the same way and in time, and returns both outputs.
#[track_caller]
fn fails(env: &TestEnv, args: &[&str], code: i32, symbol: &str, within: Duration) -> (String, Value) {
    let text = env.lanser(args);
    let said = text.failure(code).to_owned();
    assert!(said.starts_with(&format!("error: {symbol}: ")), "{said}");
    let json = env.lanser(args.iter().chain([&"--json"]));
    let error = json.error(code, symbol);
    assert!(said.contains(error["message"].as_str().unwrap()), "{said}\n{error}");
    for output in [&text, &json] {
        assert!(output.elapsed < within, "{output}");
    }
    (said, error)
}

/// A server treats any text as Python, and would report no errors in a file that has none.
#[test]
fn other_files_than_python_are_refused() {
    let env = TestEnv::pyright(
        &project().and("notes.txt", "total = 1\n").and("tool", "#!/usr/bin/env python3\ntotal = 1\n"),
    );
    for verb in ["refs", "def", "hover"] {
        let (said, _) = fails(&env, &[verb, "notes.txt:1:1"], 2, "E/USAGE", Duration::from_secs(60));
        assert!(said.contains("notes.txt is not a Python file"), "{said}");
    }
    assert!(env.lanser(["hover", "tool:2:1"]).text().contains("total"));
    let empty = TestEnv::pyright(&Project::parse("//- /notes.txt\nnothing\n"));
    let args = ["diag", "--fail-on", "error"];
    let (said, _) = fails(&empty, &args, 3, "E/NOT_FOUND", Duration::from_secs(60));
    assert!(said.contains("the workspace contains no Python files"), "{said}");
}

#[test]
fn code_0_and_1() {
    let broken = project().and("pkg/broken.py", "x: int = 'text'\nimport nowhere_to_be_found\n");
    let env = TestEnv::pyright(&broken);
    let codes = |args: &[&str]| {
        let output = env.lanser(args);
        let json = env.lanser(args.iter().chain([&"--json"]));
        let bundle = json.answer();
        assert_eq!(
            (output.code, &bundle["status"]),
            (json.code, &Value::from("ok")),
            "a verdict is no error"
        );
        assert!(output.stderr.is_empty() && !output.stdout.is_empty());
        (output.code, bundle["facts"]["diagnostics"]["verdict"].clone())
    };
    assert_eq!(codes(&["diag"]), (Some(0), Value::Null), "diagnostics that were found are no failure");
    assert_eq!(codes(&["diag", "--fail-on", "error"]), (Some(1), "fail".into()));
    assert_eq!(codes(&["diag", "pkg/mod.py", "--fail-on", "error"]), (Some(0), "pass".into()));
}

#[test]
fn code_2_a_selector_with_a_syntax_error_has_a_caret() {
    let env = TestEnv::with(&project());
    let (said, error) =
        fails(&env, &["def", "pkg/mod.py@L1:Cx"], 2, "E/BAD_SELECTOR_SYNTAX", NO_SERVER_TIMEOUT);
    let lines: Vec<&str> = said.lines().collect();
    let at = lines.iter().position(|line| line.trim() == "pkg/mod.py@L1:Cx").unwrap();
    assert_eq!(lines[at + 1].find('^'), lines[at].find("x"), "{said}");
    assert_eq!(error["data"]["kind"], "syntax");
    assert_eq!(error["data"]["text"], "pkg/mod.py@L1:Cx");
    for selector in
        ["", "py://", "py://m", "py://m#", "pkg/mod.py:0:1", "{\"kind\":\"cursor\"}", "{", "sym://x"]
    {
        fails(&env, &["locate", selector], 2, "E/BAD_SELECTOR_SYNTAX", NO_SERVER_TIMEOUT);
    }
}

#[test]
fn code_2_usage() {
    let env = TestEnv::with(&project());
    for args in [
        &["calls", "pkg/mod.py:1:5", "--incoming", "--depth", "9"][..],
        &["-C", "nowhere", "locate", "pkg/mod.py:1:5"],
        &["locate", "pkg/mod.py:1:5", "--server", "tsserver"],
        &["locate", "pkg/mod.py:1:5", "--scope", "everything"],
        &["locate", "pkg/mod.py:1:5", "--freshness", "maybe"],
        &["locate", "pkg/mod.py:1:5", "--timeout", "0"],
        &["symbols", "--query", " "],
        &["def"],
        &["no-such-verb"],
    ] {
        let text = env.lanser(args);
        assert!(text.failure(2).starts_with("error: "), "{text}");
        let error = env.lanser(args.iter().chain([&"--json"])).error(2, "E/USAGE");
        assert!(!error["message"].as_str().unwrap().is_empty() && error["hint"].is_string(), "{error}");
    }
    env.write("lanser.toml", "server-command = 'evil.js'\n");
    let (said, _) = fails(&env, &["locate", "pkg/mod.py:1:5"], 2, "E/USAGE", NO_SERVER_TIMEOUT);
    assert!(said.contains("a workspace must not set \"server-command\""), "{said}");
}

#[test]
fn code_3_has_suggestions() {
    let env = TestEnv::with(&project());
    let (said, error) = fails(&env, &["locate", "py://pkg.mod#handel"], 3, "E/NOT_FOUND", NO_SERVER_TIMEOUT);
    assert!(said.contains("did you mean:\n  py://pkg.mod#handle\n"), "{said}");
    assert_eq!(error["data"]["selectors"][0], "py://pkg.mod#handle");
    for selector in
        ["py://nowhere#f", "pkg/none.py:1:1", "pkg/mod.py:99:1", "pkg/mod.py:1:99", "env://lib/x.py:1:1"]
    {
        fails(&env, &["locate", selector], 3, "E/NOT_FOUND", NO_SERVER_TIMEOUT);
    }
    fails(&env, &["diag", "nowhere"], 3, "E/NOT_FOUND", NO_SERVER_TIMEOUT);
    fails(&env, &["symbols", "nowhere.py"], 3, "E/NOT_FOUND", NO_SERVER_TIMEOUT);
}

#[test]
fn code_3_when_the_server_has_no_answer() {
    let project = project();
    let env = TestEnv::pyright(&project);
    let (said, _) = fails(&env, &["def", "pkg/mod.py:3:1"], 3, "E/NOT_FOUND", Duration::from_secs(30));
    assert!(said.contains("pkg/mod.py@L3:C1"), "{said}");
}

#[test]
fn code_4_lists_the_candidates() {
    let env = TestEnv::with(&project());
    let (said, _) =
        fails(&env, &["locate", "py://pkg.twice#Order.total"], 4, "E/AMBIGUOUS", NO_SERVER_TIMEOUT);
    assert!(said.contains("  pkg/twice.py:6:13  method pkg.twice:Order.total"), "{said}");
    assert!(said.contains("  pkg/twice.py:8:13  method pkg.twice:Order.total"), "{said}");
    let bundle = env.lanser(["locate", "py://pkg.twice#Order.total", "--json"]).bundle();
    assert_eq!(bundle["resolution"]["ambiguous"], true);
    let listed = bundle["resolution"]["disambiguation"].as_array().unwrap();
    assert_eq!(listed.len(), 2);
    // Each candidate is an unambiguous selector.
    for candidate in listed {
        let at = candidate["at"].as_str().unwrap();
        assert_eq!(env.lanser(["locate", at, "--json"]).answer()["resolution"]["resolved"]["at"], at);
    }
}

#[test]
fn code_64_a_server_that_hangs() {
    let project = project();
    for method in ["initialize", "textDocument/hover"] {
        let env = TestEnv::with(&project);
        let server = FakeServer::new(&env, &Behavior::good().hangs_on(method));
        let at = project.at(0);
        let args = ["hover", &at, "--timeout", "1", "--server-command", server.command()];
        let (said, _) = fails(&env, &args, 64, "E/LS_TIMEOUT", NO_SERVER_TIMEOUT);
        assert!(said.contains(method) && said.contains("within 1 s"), "{said}");
        assert!(!server.pids().is_empty());
        assert!(server.pids().into_iter().all(|pid| !is_alive(pid)), "a server that hangs is killed");
    }
}

/// With the next interpreter on PATH, the same question would have another answer at a slow moment of the machine.
#[test]
fn code_64_an_interpreter_that_is_ended_is_not_replaced_by_another_one() {
    let project = project();
    let mut env = TestEnv::with(&project);
    let server = FakeServer::new(&env, &Behavior::good());
    let others = env.path("others");
    std::fs::create_dir(&others).unwrap();
    let python = others.join("python3");
    std::fs::write(&python, "#!/bin/sh\nkill -9 $$\n").unwrap();
    std::fs::set_permissions(&python, std::fs::Permissions::from_mode(0o755)).unwrap();
    let folders = std::iter::once(others).chain(search_path());
    env.set("PATH", std::env::join_paths(folders).unwrap());
    let at = project.at(0);
    let args = ["hover", &at, "--server-command", server.command()];
    let (said, _) = fails(&env, &args, 64, "E/LS_TIMEOUT", NO_SERVER_TIMEOUT);
    assert!(said.contains("signal 9 ended it") && said.contains("--python"), "{said}");
}

#[test]
fn code_65_a_dying_server_is_restarted_and_its_stderr_is_reported() {
    let project = project();
    for method in ["initialize", "textDocument/hover"] {
        let env = TestEnv::with(&project);
        let server = FakeServer::new(&env, &Behavior::good().dies_on(method, 7, "out of cheese"));
        let at = project.at(0);
        let args = ["hover", &at, "--server-command", server.command()];
        let (said, error) = fails(&env, &args, 65, "E/LS_CRASH", Duration::from_secs(15));
        assert!(said.contains("exit code 7") && said.contains("out of cheese"), "{said}");
        assert_eq!(error["data"]["kind"], "stderr");
        assert_eq!(error["data"]["lines"].as_array().unwrap().last().unwrap(), "out of cheese");
        assert_eq!(server.pids().len(), 6, "two runs, each with two restarts");
    }
}

/// That a server failed says nothing about the code; that it refuses a request does.
#[test]
fn code_65_a_failing_request() {
    let project = project();
    let at = project.at(0);
    for (code, exit, symbol) in [(-32603, 65, "E/LS_CRASH"), (-32602, 3, "E/NOT_FOUND")] {
        let env = TestEnv::with(&project);
        let server = FakeServer::new(&env, &Behavior::good().fails_on("textDocument/hover", code));
        let args = ["hover", &at, "--server-command", server.command()];
        let (said, _) = fails(&env, &args, exit, symbol, Duration::from_secs(15));
        assert!(said.contains("out of cheese") && said.contains("hint: "), "{said}");
    }
}

#[test]
fn code_65_garbage_and_a_closed_pipe() {
    let project = project();
    let at = project.at(0);
    for behavior in [
        Behavior::good().prints_garbage_on("initialize"),
        Behavior::good().prints_garbage_on("textDocument/hover"),
        Behavior::good().goes_silent_on("initialize"),
        Behavior::good().goes_silent_on("textDocument/hover"),
    ] {
        let env = TestEnv::with(&project);
        let server = FakeServer::new(&env, &behavior);
        let args = ["hover", &at, "--server-command", server.command()];
        let (said, _) = fails(&env, &args, 65, "E/LS_CRASH", Duration::from_secs(15));
        assert!(said.contains("hint: `lanser doctor`"), "{said}");
        assert!(server.pids().into_iter().all(|pid| !is_alive(pid)), "{behavior:?}");
    }
}

#[test]
fn code_66_reports_what_was_tried_and_the_fix() {
    let project = project();
    let at = project.at(0);
    let mut env = TestEnv::with(&project);
    env.set("LANSER_CACHE_DIR", env.path("cache"));
    env.set("PATH", env.path_of(&["env"]));
    let (said, error) = fails(&env, &["def", &at, "--offline"], 66, "E/LS_UNAVAILABLE", NO_SERVER_TIMEOUT);
    assert!(said.contains("  tried PATH: ") && said.contains("lanser server install pyright"), "{said}");
    assert_eq!(error["data"]["kind"], "tried");
    // A server is installed, but no Node.js to run it.
    let server = FakeServer::new(&env, &Behavior::good());
    let args = ["def", &at, "--offline", "--server-command", server.command()];
    let (said, _) = fails(&env, &args, 66, "E/LS_UNAVAILABLE", NO_SERVER_TIMEOUT);
    assert!(said.contains("Node.js"), "{said}");
}

#[test]
fn code_66_another_version_and_another_server() {
    let project = project();
    let at = project.at(0);
    let env = TestEnv::with(&project);
    let old = FakeServer::of_version(&env, "1.1.300", &Behavior::good());
    let args = ["def", &at, "--server", "pyright@1.1.414", "--server-command", old.command()];
    let (said, _) = fails(&env, &args, 66, "E/LS_UNAVAILABLE", NO_SERVER_TIMEOUT);
    assert!(said.contains("is pyright 1.1.300, and 1.1.414 is wanted"), "{said}");
    let args = ["def", &at, "--server", "basedpyright", "--server-command", old.command()];
    let (said, _) = fails(&env, &args, 66, "E/LS_UNAVAILABLE", NO_SERVER_TIMEOUT);
    assert!(said.contains("is pyright 1.1.300, not basedpyright"), "{said}");
    let args = ["def", &at, "--server", "pyright@1.1.1"];
    let (said, _) = fails(&env, &args, 66, "E/LS_UNAVAILABLE", NO_SERVER_TIMEOUT);
    assert!(said.contains("1.1.406, 1.1.407, 1.1.414"), "{said}");
}

#[test]
fn code_71_missing_permissions() {
    let env = TestEnv::with(&project());
    // Permissions do not restrict root; a device instead of a folder restricts everybody.
    fails(&env, &["completions", "--man", "/dev/null/man"], 71, "E/FS_PERMISSIONS", NO_SERVER_TIMEOUT);
    fails(
        &env,
        &["schema", "export", "--out", "/dev/null/schemas"],
        71,
        "E/FS_PERMISSIONS",
        NO_SERVER_TIMEOUT,
    );
    std::fs::create_dir(env.file("folder.py")).unwrap();
    let (said, _) = fails(&env, &["locate", "folder.py:1:1"], 71, "E/FS_PERMISSIONS", NO_SERVER_TIMEOUT);
    assert!(said.contains("folder.py"), "{said}");
}

#[test]
fn code_72_missing_server_capabilities() {
    let project = project();
    let at = project.at(0);
    let env = TestEnv::with(&project);
    let server = FakeServer::new(&env, &Behavior::good().lacks("hoverProvider"));
    let args = ["hover", &at, "--server-command", server.command()];
    let (said, _) = fails(&env, &args, 72, "E/UNSUPPORTED_CAP", NO_SERVER_TIMEOUT);
    assert!(said.contains("hover"), "{said}");
}

#[test]
fn code_73_ctrl_c_ends_in_one_bundle_and_leaves_nothing() {
    let project = project();
    let at = project.at(0);
    for signal in [Signal::INT, Signal::TERM] {
        let env = TestEnv::with(&project);
        let server = FakeServer::new(&env, &Behavior::good().hangs_on("textDocument/hover"));
        let args = ["hover", &at, "--server-command", server.command()];
        for json in [false, true] {
            let asked = || server.received().iter().filter(|method| *method == "textDocument/hover").count();
            let before = asked();
            let running = env.start(args.iter().chain(json.then_some(&"--json")));
            wait_until("the server is asked", Duration::from_secs(20), || asked() > before);
            let sent = std::time::Instant::now();
            running.signal(signal);
            let output = running.finish();
            assert!(sent.elapsed() < Duration::from_secs(3), "{output}");
            if json {
                output.error(73, "E/REQUEST_CANCELLED");
            } else {
                assert!(output.failure(73).starts_with("error: E/REQUEST_CANCELLED"), "{output}");
            }
        }
        assert_eq!(server.pids().len(), 2);
        assert!(server.pids().into_iter().all(|pid| !is_alive(pid)), "no child is left");
        assert_eq!(env.left_behind(), Vec::<String>::new());
    }
}

#[test]
fn code_74_the_workspace_changes_while_the_request_runs() {
    let project = project();
    let at = project.at(0);
    for json in [false, true] {
        let env = TestEnv::with(&project);
        let server = FakeServer::new(&env, &Behavior::good().waits_before("textDocument/hover"));
        let args = ["hover", &at, "--server-command", server.command()];
        let running = env.start(args.iter().chain(json.then_some(&"--json")));
        let waits = || server.received().iter().filter(|word| *word == "waiting").count();
        for round in 1..=2 {
            wait_until("the server is asked", Duration::from_secs(20), || waits() == round);
            env.write("pkg/new.py", format!("round = {round}\n"));
            server.trigger();
            if round == 1 {
                // The second attempt waits again.
                wait_until("a second attempt", Duration::from_secs(20), || server.pids().len() == 2);
                server.untrigger();
            }
        }
        let output = running.finish();
        if json {
            let error = output.error(74, "E/CONTENT_MODIFIED");
            assert_eq!(error["data"]["path"], "pkg/new.py");
        } else {
            assert!(output.failure(74).contains("pkg/new.py changed while the request ran"), "{output}");
        }
    }
}

#[test]
fn one_change_during_a_request_is_retried() {
    let project = project();
    let at = project.at(0);
    let env = TestEnv::with(&project);
    let server = FakeServer::new(&env, &Behavior::good().waits_before("textDocument/hover"));
    let running = env.start(["hover", &at, "--json", "--server-command", server.command()]);
    wait_until("the server is asked", Duration::from_secs(20), || {
        server.received().iter().any(|word| word == "waiting")
    });
    env.write("pkg/new.py", "x = 1\n");
    server.trigger();
    running.finish().answer();
    assert_eq!(server.pids().len(), 2, "asked twice");
}

#[test]
fn content_modified_responses_are_retried() {
    let project = project();
    let at = project.at(0);
    let env = TestEnv::with(&project);
    let server = FakeServer::new(&env, &Behavior::good().fails_as_modified("textDocument/hover", 3));
    let args = ["hover", &at, "--server-command", server.command()];
    assert_eq!(env.lanser(args).text(), "said by the fake server\n");
    assert_eq!(server.received().iter().filter(|word| *word == "textDocument/hover").count(), 4);
    let server = FakeServer::new(&env, &Behavior::good().fails_as_modified("textDocument/hover", 99));
    let args = ["hover", &at, "--timeout", "2", "--server-command", server.command()];
    fails(&env, &args, 74, "E/CONTENT_MODIFIED", NO_SERVER_TIMEOUT);
}

#[test]
fn code_75_for_an_unknown_unit_wherever_it_is_given() {
    let project = project();
    let at = project.at(0);
    let env = TestEnv::with(&project);
    for unit in ["bytes", "utf8", "UTF-16"] {
        let query = format!("{at}?indexing={unit}");
        let json = format!(r#"{{"kind":"cursor","uri":"pkg/mod.py","line":1,"col":1,"indexing":"{unit}"}}"#);
        for selector in [&query, &json] {
            fails(&env, &["locate", selector], 75, "E/INDEXING_UNSUPPORTED", NO_SERVER_TIMEOUT);
        }
        let requests = [
            format!(r#"{{"cmd":"locate","selector":"{query}"}}"#),
            format!(r#"{{"cmd":"locate","selector":{json}}}"#),
            format!(r#"{{"cmd":"locate","selector":"{at}","options":{{"index_io":"{unit}"}}}}"#),
        ];
        env.write("requests.jsonl", requests.join("\n"));
        let answers =
            env.lanser(["batch", "--ordered", "--in", env.file("requests.jsonl").to_str().unwrap()]);
        let symbols: Vec<Value> = answers
            .text()
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap()["error"]["symbol"].clone())
            .collect();
        assert_eq!(symbols, ["E/INDEXING_UNSUPPORTED"; 3], "{unit}");
        env.write("lanser.toml", format!("index-io = '{unit}'\n"));
        fails(&env, &["locate", &at], 75, "E/INDEXING_UNSUPPORTED", NO_SERVER_TIMEOUT);
        std::fs::remove_file(env.file("lanser.toml")).unwrap();
    }
    // LSP's name of code points.
    let request = |args: &[&str]| env.lanser(args).answer()["request"]["selector"].clone();
    let plain = request(&["locate", &at, "--json"]);
    assert_eq!(request(&["locate", &at, "--index-io", "utf-32", "--json"]), plain);
    assert_eq!(request(&["locate", &format!("{at}?indexing=utf-32"), "--json"]), plain);
}

#[test]
fn code_75_units_of_columns() {
    let project = project();
    let at = project.at(0);
    let env = TestEnv::with(&project);
    let (said, _) =
        fails(&env, &["locate", &at, "--index-io", "utf-7"], 75, "E/INDEXING_UNSUPPORTED", NO_SERVER_TIMEOUT);
    assert!(said.contains("utf-8, utf-16, codepoint"), "{said}");
    let server = FakeServer::new(&env, &Behavior::good().position_encoding("utf-7"));
    let args = ["hover", &at, "--server-command", server.command()];
    let (said, _) = fails(&env, &args, 75, "E/INDEXING_MISMATCH", NO_SERVER_TIMEOUT);
    assert!(said.contains("utf-7"), "{said}");
    // Every offered unit is supported.
    for unit in ["utf-8", "utf-16", "utf-32"] {
        let server = FakeServer::new(&env, &Behavior::good().position_encoding(unit));
        let bundle = env.lanser(["def", &at, "--json", "--server-command", server.command()]).answer();
        assert_eq!(bundle["environment"]["positionEncoding"], unit);
        assert_eq!(bundle["facts"]["definitions"][0]["at"], "pkg/mod.py@L1:C5");
    }
}

/// As continuous integration passes on what was not given.
#[test]
fn an_empty_variable_is_not_set() {
    let mut env = TestEnv::ty(&project());
    let asked: [&[&str]; 3] =
        [&["locate", "pkg.mod.handle"], &["refs", "pkg.mod.handle"], &["rename", "pkg.mod.handle", "serve"]];
    let answers = |env: &TestEnv| asked.map(|args| env.lanser(args).stdout);
    let expected = answers(&env);
    let help = ["refs", "rename"].map(|verb| env.lanser(["help", verb]).stdout).concat();
    let names: std::collections::BTreeSet<String> = help
        .split("[env: ")
        .skip(1)
        .map(|rest| rest.split([']', '=']).next().unwrap().to_owned())
        .chain(["LANSER_AGREE".to_owned()])
        .filter(|name| name != "LANSER_SERVER")
        .collect();
    assert!(names.len() > 20, "{names:?}");
    for name in &names {
        env.set(name, "");
    }
    assert_eq!(answers(&env), expected);
    env.set("LANSER_SERVER", "");
    let found = env.lanser(["locate", "pkg.mod.handle", "--json"]);
    assert_eq!(found.code, Some(0), "{found}");
}
