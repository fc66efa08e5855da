use serde_json::{Value, json};

use super::{Talk, bundles, id, outcome, shop};
use crate::support::{Behavior, FakeServer, Project, TestEnv};

#[test]
fn an_answer_comes_before_the_next_request() {
    let env = TestEnv::pyright(&shop());
    let mut talk = Talk::start(&env, &[]);
    let defined = talk.ask(r#"{"id":1,"cmd":"definition","selector":"src/shop/till.py:9:21"}"#);
    assert_eq!((outcome(&defined), id(&defined)), ("ok", &json!(1)));
    assert_eq!(defined["facts"]["definitions"][0]["uri"], "src/shop/prices.py");
    let hovered =
        talk.ask(r#"{"id":"two","cmd":"hover","selector":{"kind":"symbol","qualname":"shop:Book"}}"#);
    assert_eq!((outcome(&hovered), id(&hovered)), ("ok", &json!("two")));
    assert_eq!(hovered["meta"]["volatile"]["served_from"], "warm_server");
    // Without an id, and about a changed workspace.
    env.write("src/shop/new.py", "from shop import Book\nBook\n");
    let used = talk.ask(r#"{"cmd":"references","selector":"py://shop#Book"}"#);
    assert!(used.to_string().contains("src/shop/new.py"), "{used}");
    assert_eq!((id(&used), &used["meta"]["volatile"]["line"]), (&Value::Null, &json!(3)));
    assert_eq!(talk.servers().len(), 1);
    assert_eq!(talk.end(), (Vec::new(), Some(0)));
}

#[test]
fn an_unreadable_line_gets_an_error_and_stops_nothing() {
    let env = TestEnv::pyright(&shop());
    let input = [
        r#"{"id":1,"cmd":"hover","selector":"py://shop#Book"}"#,
        "nonsense",
        "",
        r#"{"id":2,"cmd":"hoover","selector":"py://shop#Book"}"#,
        r#"{"id":3,"id":4,"cmd":"hover","selector":"py://shop#Book"}"#,
        r#"{"id":5,"cmd":"hover","selector":"py://"}"#,
        r#"{"id":6,"cmd":"hover"}"#,
        r#"{"id":7,"cmd":"locate","selector":"py://shop#Buck"}"#,
        r#"{"id":8,"cmd":"locate","selector":"py://shop#Book"}"#,
    ];
    // The last line has no newline.
    let output = env.lanser_with_input(["batch", "--ordered"], input.join("\n"));
    let told: Vec<_> = bundles(&output)
        .iter()
        .map(|bundle| {
            let line = bundle["meta"]["volatile"]["line"].as_u64().unwrap();
            (line, id(bundle).as_u64(), outcome(bundle).to_owned())
        })
        .collect();
    let expected = [
        (1, Some(1), "ok"),
        (2, None, "E/USAGE"),
        (4, Some(2), "E/USAGE"),
        (5, None, "E/USAGE"),
        (6, Some(5), "E/BAD_SELECTOR_SYNTAX"),
        (7, Some(6), "E/USAGE"),
        (8, Some(7), "E/NOT_FOUND"),
        (9, Some(8), "ok"),
    ];
    assert_eq!(told, expected.map(|(line, id, outcome)| (line, id, outcome.to_owned())));
    assert!(
        output.stdout.contains("line 4 is not a valid request: $.cmd: unknown variant `hoover`"),
        "{output}"
    );
    assert!(output.stdout.contains("the key \\\"id\\\" occurs twice"), "{output}");
    let checked = env.lanser_with_input(["schema", "validate-batch", "-"], input.join("\n"));
    assert_eq!(checked.code, Some(1), "{checked}");
    assert!(
        checked.stdout.ends_with("5 of 8 valid\n"),
        "a text is no selector only for its reader: {checked}"
    );
    let checked = env.lanser_with_input(["schema", "validate-batch", "-"], &output.stdout);
    assert_eq!(checked.text(), "8 of 8 valid\n");
}

#[test]
fn order_files_and_fields() {
    let env = TestEnv::pyright(&shop());
    let line =
        |number: u32, cmd: &str| format!(r#"{{"id":{number},"cmd":"{cmd}","selector":"py://shop#Book"}}"#);
    let lines: Vec<String> = (0..12)
        .map(|number| line(number, ["references", "locate", "definition"][number as usize % 3]))
        .collect();
    env.write("requests.jsonl", lines.join("\n"));
    let ids = |text: &str| -> Vec<u64> {
        text.lines().map(|line| id(&serde_json::from_str(line).unwrap()).as_u64().unwrap()).collect()
    };
    let ordered = env.lanser(["batch", "--in", "requests.jsonl", "--out", "out.jsonl", "--ordered"]);
    assert_eq!(ordered.text(), "");
    let written = std::fs::read_to_string(env.file("out.jsonl")).unwrap();
    assert_eq!(ids(&written), (0..12).collect::<Vec<_>>());
    let as_ready = env.lanser(["batch", "--in", "requests.jsonl", "--fields", "meta.volatile.id,status"]);
    let mut unordered = ids(as_ready.text());
    assert_ne!(unordered, (0..12).collect::<Vec<_>>(), "what needs no server does not wait for it");
    unordered.sort_unstable();
    assert_eq!(unordered, (0..12).collect::<Vec<_>>());
    assert!(as_ready.stdout.lines().all(|line| !line.contains("bundleId")), "{as_ready}");
    let same = env.lanser(["batch", "--in", "requests.jsonl", "--out", "requests.jsonl"]);
    assert!(same.failure(2).contains("--in and --out are the same file"));
    assert!(env.lanser(["batch", "--in", "nowhere.jsonl"]).failure(3).contains("nowhere.jsonl"));
    let nowhere = env.lanser(["batch", "--in", "requests.jsonl", "--out", "nowhere/out.jsonl"]);
    let said = nowhere.failure(3);
    assert!(said.contains("nowhere/out.jsonl: no such folder: "), "{said}");
    assert!(env.lanser(["batch", "--in", "requests.jsonl", "--out", "src"]).failure(71).contains("src"));
    assert_eq!(env.lanser_with_input(["batch"], "").text(), "", "nothing is asked, nothing is answered");
}

#[test]
fn requests_are_canceled_while_running_and_while_waiting() {
    let project = Project::parse("//- /m.py\ndef $0f(): ...\nf()\n");
    let env = TestEnv::with(&project);
    let server = FakeServer::new(&env, &Behavior::good().hangs_on("textDocument/hover"));
    let mut talk = Talk::start(&env, &["--concurrency", "1", "--server-command", server.command()]);
    let at = project.at(0);
    let ask = |id: u32, cmd: &str| format!(r#"{{"id":{id},"cmd":"{cmd}","selector":"{at}"}}"#);
    talk.send(&ask(1, "hover"));
    talk.send(&ask(2, "locate"));
    talk.send(&ask(3, "locate"));
    crate::support::wait_until("it is asked", std::time::Duration::from_secs(20), || {
        server.received().iter().any(|method| method == "textDocument/hover")
    });
    talk.send(r#"{"cancel":2}"#);
    let second = talk.receive();
    assert_eq!((outcome(&second), id(&second)), ("E/REQUEST_CANCELLED", &json!(2)));
    talk.send(r#"{"cancel":1}"#);
    let first = talk.receive();
    assert_eq!((outcome(&first), id(&first)), ("E/REQUEST_CANCELLED", &json!(1)));
    assert_eq!(first["request"]["selector"]["uri"], "m.py");
    let third = talk.receive();
    assert_eq!((outcome(&third), id(&third)), ("ok", &json!(3)));
    // Answered and unknown requests cannot be canceled; no message is sent.
    talk.send(r#"{"cancel":1}"#);
    talk.send(r#"{"cancel":"unknown"}"#);
    let fourth = talk.ask(&ask(4, "locate"));
    assert_eq!(id(&fourth), 4);
    assert_eq!(talk.end(), (Vec::new(), Some(0)));
}

/// With ordered answers, all wait for the first, which can be canceled nevertheless.
#[test]
fn a_request_that_blocks_others_can_be_canceled() {
    let project = Project::parse("//- /m.py\ndef $0f(): ...\nf()\n");
    let env = TestEnv::with(&project);
    let server = FakeServer::new(&env, &Behavior::good().hangs_on("textDocument/hover"));
    let mut talk =
        Talk::start(&env, &["--ordered", "--concurrency", "4", "--server-command", server.command()]);
    let at = project.at(0);
    talk.send(&format!(r#"{{"id":0,"timeout":600,"cmd":"hover","selector":"{at}"}}"#));
    for id in 1..2000 {
        talk.send(&format!(r#"{{"id":{id},"cmd":"locate","selector":"{at}"}}"#));
    }
    talk.send(r#"{"cancel":0}"#);
    for id in 0..2000 {
        let answer = talk.receive();
        let expected = if id == 0 { "E/REQUEST_CANCELLED" } else { "ok" };
        assert_eq!((super::id(&answer), outcome(&answer)), (&json!(id), expected));
    }
    assert_eq!(talk.end(), (Vec::new(), Some(0)));
}

#[test]
fn a_request_has_its_own_timeout() {
    let project = Project::parse("//- /m.py\ndef $0f(): ...\nf()\n");
    let env = TestEnv::with(&project);
    let server = FakeServer::new(&env, &Behavior::good().hangs_on("textDocument/hover"));
    let mut talk = Talk::start(&env, &["--server-command", server.command()]);
    let at = project.at(0);
    let began = std::time::Instant::now();
    let late = talk.ask(&format!(r#"{{"id":1,"timeout":1,"cmd":"hover","selector":"{at}"}}"#));
    assert_eq!(outcome(&late), "E/LS_TIMEOUT");
    assert!(began.elapsed() < std::time::Duration::from_secs(10));
    assert_eq!(late["request"]["cmd"], "hover");
    // Other requests are answered, by this server or the next.
    let other = talk.ask(&format!(r#"{{"id":2,"cmd":"definition","selector":"{at}"}}"#));
    assert_eq!(outcome(&other), "ok");
    assert_eq!(talk.end(), (Vec::new(), Some(0)));
}

#[test]
fn on_its_own_timeout_a_request_is_answered_with_what_is_known() {
    let env = TestEnv::with(&Project::parse("//- /m.py\ndef f(): ...\nf()\n# f\n"));
    let server = FakeServer::new(&env, &Behavior::good().hangs_on("textDocument/references"));
    let mut talk = Talk::start(&env, &["--server-command", server.command()]);
    let late = talk.ask(r#"{"id":1,"timeout":8,"cmd":"references","selector":"m.py:1:5"}"#);
    assert_eq!((&late["status"], &late["error"]["symbol"]), (&json!("partial"), &json!("E/LS_TIMEOUT")));
    assert_eq!(late["facts"]["completeness"]["unresolved"]["count"], 2, "{late}");
    assert_eq!(talk.end(), (Vec::new(), Some(0)));
}

#[test]
fn writes_run_in_order() {
    let env = TestEnv::pyright(&Project::parse(
        "//- /pkg/__init__.py\n//- /pkg/a.py\ndef old(): ...\n//- /pkg/b.py\nfrom pkg.a import old\nold()\n",
    ));
    let lines = [
        r#"{"id":"before","cmd":"references","selector":"py://pkg.a#old"}"#,
        r#"{"id":"new before","cmd":"locate","selector":"py://pkg.a#new"}"#,
        r#"{"id":"rename","cmd":"rename","selector":"py://pkg.a#old","newName":"new","options":{"apply":true}}"#,
        r#"{"id":"after","cmd":"references","selector":"py://pkg.a#new"}"#,
        r#"{"id":"again","cmd":"rename","selector":"py://pkg.a#new","newName":"newest","options":{"apply":true}}"#,
        r#"{"id":"old after","cmd":"definition","selector":"py://pkg.a#newest"}"#,
        r#"{"id":"undo","cmd":"undo"}"#,
        r#"{"id":"undone","cmd":"hover","selector":"py://pkg.a#new"}"#,
    ];
    let answers = bundles(&env.lanser_with_input(["batch"], lines.join("\n")));
    let told = |name: &str| answers.iter().find(|answer| id(answer) == name).unwrap();
    for name in ["before", "rename", "after", "again", "old after", "undo", "undone"] {
        assert_eq!(outcome(told(name)), "ok", "{name}: {}", told(name));
    }
    assert_eq!(outcome(told("new before")), "E/NOT_FOUND");
    let uses = |name: &str| told(name)["facts"]["references"].as_array().unwrap().len();
    assert_eq!((uses("before"), uses("after")), (3, 3));
    assert_eq!(told("rename")["edits"]["transaction"]["state"], "applied");
    let order: Vec<&str> = answers.iter().map(|answer| id(answer).as_str().unwrap()).collect();
    let at = |name: &str| order.iter().position(|other| *other == name).unwrap();
    assert!(at("before") < at("rename") && at("new before") < at("rename"), "{order:?}");
    assert!(at("rename") < at("after") && at("after") < at("again") && at("again") < at("undo"), "{order:?}");
    assert_eq!(std::fs::read_to_string(env.file("pkg/b.py")).unwrap(), "from pkg.a import new\nnew()\n");
}

/// A run of rewarded steps: each begins where the one before ended, and stored bundles give the same.
#[test]
fn each_step_begins_where_the_one_before_ended() {
    let env = TestEnv::pyright(&shop());
    let input = [
        r#"{"id":1,"cmd":"diagnostics"}"#,
        r#"{"id":2,"cmd":"definition","selector":"src/shop/till.py:9:21"}"#,
        r#"{"id":3,"cmd":"locate","selector":"py://shop#nothing"}"#,
        r#"{"id":4,"cmd":"diagnostics"}"#,
    ];
    let told =
        bundles(&env.lanser_with_input(["batch", "--prev", "last", "--concurrency", "4"], input.join("\n")));
    assert_eq!(told.iter().map(|bundle| id(bundle).as_u64().unwrap()).collect::<Vec<_>>(), [1, 2, 3, 4]);
    assert_eq!(told[0]["processReward"]["previousBundleId"], Value::Null);
    for pair in told.windows(2) {
        assert_eq!(pair[1]["processReward"]["previousBundleId"], pair[0]["bundleId"]);
    }
    let run = env.path("run.jsonl");
    let lines: Vec<String> = told.iter().map(ToString::to_string).collect();
    std::fs::write(&run, lines.join("\n") + "\n").unwrap();
    let again = env.lanser(["reward", "--run", run.to_str().unwrap(), "--json"]);
    let rewards: Vec<Value> = again
        .text()
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|step| step.get("prev").is_some_and(|prev| !prev.is_null()))
        .map(|step| step["r"].clone())
        .collect();
    let live: Vec<Value> = told[1..].iter().map(|bundle| bundle["processReward"]["r"].clone()).collect();
    assert_eq!(rewards, live, "{}", again.text());
}
