use std::collections::BTreeMap;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::{Talk, id};
use crate::score::{FIX, git, shop};
use crate::support::{Behavior, FakeServer, Output, Project, TestEnv};

fn line(id: u32, head: &Value) -> String {
    json!({"id": id, "cmd": "score", "head": head}).to_string()
}

/// The episodes of a successful batch by id, without what names the line and the head.
fn episodes(output: &Output) -> BTreeMap<i64, Value> {
    let lines = output.text().lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.map(|line| (id(&line).as_i64().unwrap(), plain(line))).collect()
}

fn plain(mut episode: Value) -> Value {
    let members = episode.as_object_mut().unwrap();
    members.remove("meta");
    members.remove("head");
    episode
}

/// The episode that `score` alone prints.
fn alone(env: &TestEnv, args: &[&str]) -> Value {
    let output = env.lanser(["score", "--json"].iter().chain(args).copied());
    plain(serde_json::from_str(output.stdout.lines().next().unwrap()).unwrap())
}

/// Each head gets what `score` says of it alone: diffs, contents, states, added and deleted files, edits that do not apply,
/// states that do not exist; with one server and with two, in any order, with other requests in between.
#[test]
fn heads_are_scored_as_alone() {
    let (env, fix) = shop();
    let fixed = std::fs::read_to_string(env.file("m.py")).unwrap().replace("half('a')", "half(1)");
    let added = "--- /dev/null\n+++ b/new.py\n@@ -0,0 +1,2 @@\n+from m import half\n+half('d')\n";
    let conflict = FIX.replace("-value = half('a')", "-value = half('q')");
    for (name, text) in [("added.diff", added), ("conflict.diff", &conflict)] {
        std::fs::write(env.path(name), text).unwrap();
    }
    let file = |name: &str| env.path(name).to_str().unwrap().to_owned();
    env.write("n.py", "third = 1\n");
    let deleted = env.path("without");
    std::fs::create_dir(&deleted).unwrap();
    std::fs::copy(env.file("m.py"), deleted.join("m.py")).unwrap();
    let heads = [
        (json!({"diff": FIX}), fix),
        (json!({"files": {"m.py": fixed}}), file("fix.diff")),
        (json!({"diff": added}), file("added.diff")),
        (json!({"diff": conflict}), file("conflict.diff")),
        (json!({"files": {"n.py": null}}), deleted.to_str().unwrap().to_owned()),
        (json!({"state": "WORKTREE"}), "WORKTREE".to_owned()),
        (json!({"state": "HEAD"}), "HEAD".to_owned()),
        (json!({"state": "no-such-revision"}), "no-such-revision".to_owned()),
    ];
    let wanted: Vec<Value> = heads.iter().map(|(_, named)| alone(&env, &["--head", named])).collect();
    for options in [&["--concurrency", "1"][..], &["--workers", "2", "--memory", "8192"]] {
        let mut lines: Vec<String> = (0_u32..).zip(&heads).map(|(id, (head, _))| line(id, head)).collect();
        let mut again: Vec<String> = (100..).zip(&heads).map(|(id, (head, _))| line(id, head)).collect();
        again.reverse();
        lines.extend(again);
        lines.insert(3, r#"{"id":900,"cmd":"hover","selector":"py://m#half"}"#.to_owned());
        let input = lines.join("\n");
        let output = env.lanser_with_input(["batch"].iter().chain(options).copied(), &input);
        let mut found = episodes(&output);
        assert_eq!(found.remove(&900).unwrap()["status"], "ok");
        assert_eq!(found.len(), 2 * heads.len());
        for (number, episode) in found {
            let number = usize::try_from(number % 100).unwrap();
            assert_eq!(episode, wanted[number], "{options:?}: head {number}");
        }
        assert_eq!(env.left_behind(), Vec::<String>::new());
    }
    assert_eq!(wanted[0]["reward"], json!(0.5));
    assert_eq!(wanted[3]["error"]["symbol"], "E/APPLY_CONFLICT");
    assert_eq!(wanted[7]["scored"], json!(false));
}

/// A base is read again when it has changed: a branch that moved, a working tree that was edited.
#[test]
fn a_base_that_changed_is_another_base() {
    let (env, _) = shop();
    let mut talk = Talk::start(&env, &[]);
    let of = |base: &str| json!({"cmd": "score", "base": base, "head": {"diff": FIX}}).to_string();
    for base in ["HEAD", "WORKTREE"] {
        assert_eq!(talk.ask(&of(base))["reward"], json!(0.5), "{base}");
    }
    let repaired = std::fs::read_to_string(env.file("m.py")).unwrap().replace("half('a')", "half(2)");
    env.write("m.py", repaired);
    assert_eq!(talk.ask(&of("WORKTREE"))["error"]["symbol"], "E/APPLY_CONFLICT");
    assert_eq!(talk.ask(&of("HEAD"))["reward"], json!(0.5));
    git(&env, &["commit", "-qam", "two"]);
    assert_eq!(talk.ask(&of("HEAD"))["error"]["symbol"], "E/APPLY_CONFLICT");
    assert_eq!(talk.ask(&of("HEAD~"))["reward"], json!(0.5));
    let (rest, code) = talk.end();
    assert_eq!((rest, code), (Vec::new(), Some(0)));
    assert_eq!(env.left_behind(), Vec::<String>::new());
}

/// A base that cannot be loaded and a line that is not valid are answered, and cost no other head.
#[test]
fn invalid_bases_and_lines_are_answered() {
    let (env, _) = shop();
    let mut talk = Talk::start(&env, &[]);
    let answer = talk.ask(r#"{"id":1,"cmd":"score","base":"no-such","head":{"state":"HEAD"}}"#);
    assert_eq!((&answer["scored"], &answer["error"]["symbol"]), (&json!(false), &json!("E/NOT_FOUND")));
    let answer = talk.ask(r#"{"id":2,"cmd":"score"}"#);
    assert_eq!((id(&answer), &answer["error"]["symbol"]), (&json!(2), &json!("E/USAGE")));
    // What the author of a head names wrongly is the author's fault.
    let answer = talk.ask(&line(4, &json!({"files": {"../n.py": "x = 1\n"}})));
    assert_eq!((&answer["scored"], &answer["error"]["symbol"]), (&json!(true), &json!("E/APPLY_CONFLICT")));
    let answer = talk.ask(&line(3, &json!({"diff": FIX})));
    assert_eq!((id(&answer), &answer["reward"]), (&json!(3), &json!(0.5)));
}

/// A head that is not scored in time costs only itself, and so does one that is canceled.
#[test]
fn a_head_has_its_own_time_limit() {
    let env = TestEnv::with(&Project::parse("//- /a.py\nx = 1\n"));
    let server = FakeServer::new(&env, &Behavior::good().waits_before("textDocument/diagnostic"));
    let mut talk = Talk::start(&env, &["--server-command", server.command(), "--workers", "1"]);
    let of = |id: &str, timeout: u32| {
        let head = json!({"files": {"a.py": "x = 2\n"}});
        json!({"id": id, "timeout": timeout, "cmd": "score", "base": "WORKTREE", "head": head}).to_string()
    };
    let answer = talk.ask(&of("slow", 2));
    assert_eq!((id(&answer), &answer["error"]["symbol"]), (&json!("slow"), &json!("E/LS_TIMEOUT")));
    assert_eq!((&answer["scored"], &answer["reward"]), (&json!(false), &Value::Null));
    talk.send(&of("canceled", 60));
    talk.send(&of("next", 60));
    let answer = talk.ask(r#"{"cancel":"canceled"}"#);
    assert_eq!(
        (id(&answer), &answer["error"]["symbol"]),
        (&json!("canceled"), &json!("E/REQUEST_CANCELLED"))
    );
    server.trigger();
    let answer = talk.receive();
    assert_eq!((id(&answer), &answer["scored"]), (&json!("next"), &json!(true)));
    assert_eq!(talk.end().1, Some(0));
    assert_eq!(env.left_behind(), Vec::<String>::new());
}

/// A server that is killed in the middle loses nothing.
#[test]
fn a_killed_server_loses_no_head() {
    let (env, _) = shop();
    let mut talk = Talk::start(&env, &["--workers", "2", "--memory", "8192"]);
    let first = talk.ask(&line(0, &json!({"diff": FIX})));
    (1..=40).for_each(|number| talk.send(&line(number, &json!({"diff": FIX}))));
    let mut answers = Vec::new();
    for _ in 0..3 {
        answers.extend((0..10).map(|_| talk.receive()));
        let servers = talk.servers();
        let server = servers.first().and_then(|pid| Pid::from_raw(i32::try_from(*pid).unwrap()));
        kill_process(server.expect("a server is running"), Signal::KILL).unwrap();
    }
    let (rest, code) = talk.end();
    answers.extend(rest);
    assert_eq!((answers.len(), code), (40, Some(0)));
    let wanted = plain(first);
    assert_eq!(wanted["reward"], json!(0.5));
    for answer in answers {
        assert_eq!(plain(answer), wanted);
    }
    assert_eq!(env.left_behind(), Vec::<String>::new());
}
