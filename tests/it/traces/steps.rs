//! Recorded steps: a replay recovers the rewards that were printed, in the order of the lines, and computes others.

use serde_json::Value;

use super::elsewhere;
use crate::support::{Project, TestEnv};

const PROJECT: &str = "\
//- /m.py
def half(x: int) -> float:
    return x / 2

value = half('a')
other = half('b')
//- /n.py
import m
m.half('c')
";

const FIX: &str =
    "--- a/m.py\n+++ b/m.py\n@@ -4,2 +4,2 @@\n-value = half('a')\n+value = half(1)\n other = half('b')\n";

fn lines(text: &str) -> Vec<Value> {
    let mut lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for line in &mut lines {
        if line["meta"].is_object() {
            line["meta"]["volatile"] = serde_json::json!({});
        }
    }
    lines
}

fn rewards(bundles: &[Value]) -> Vec<Value> {
    bundles.iter().map(|bundle| bundle["processReward"]["r"].clone()).collect()
}

#[test]
fn a_replay_recovers_the_steps_of_a_batch() {
    let env = TestEnv::pyright(&Project::parse(PROJECT));
    let check = serde_json::json!({"cmd": "check", "options": {"edit": {"text": FIX}}});
    let requests = format!(
        "{}\n{}\n{check}\n{}\nno request\n{}\n",
        r#"{"cmd":"diagnostics","options":{"paths":["m.py"]}}"#,
        r#"{"cmd":"definition","selector":"py://m#half"}"#,
        r#"{"cmd":"definition","selector":"py://m#nothing"}"#,
        r#"{"cmd":"diagnostics","options":{"paths":["m.py"]}}"#,
    );
    let trace = env.path("trace.jsonl");
    let trace = trace.to_str().unwrap();
    let live = env.lanser_with_input(["batch", "--prev", "last", "--trace-file", trace], requests);
    let live = lines(live.text());
    let first = serde_json::json!(rewards(&live)[..4]);
    assert_eq!(first, serde_json::json!([0.0, 0.1, 0.9, -1.1]), "{live:?}");
    std::fs::remove_dir_all(&env.cwd).unwrap();

    let replayed = elsewhere().lanser(["trace", "replay", trace]);
    assert_eq!(lines(replayed.text()), live);
    let verified = elsewhere().lanser(["trace", "replay", "--verify", trace]);
    assert!(verified.text().contains("every bundle and the rewards of 6 steps as recorded"), "{verified}");

    // Another formula over the same steps: as `reward` computes it from the bundles.
    let run: String = live.iter().map(|bundle| format!("{bundle}\n")).collect();
    for formula in [&["--reward", "pr-v1"][..], &["--weights", "1,0,0"]] {
        let from_trace = elsewhere().lanser(["trace", "replay", trace].iter().chain(formula));
        let from_trace = rewards(&lines(from_trace.text()));
        let from_run =
            elsewhere().lanser_with_input(["reward", "--run", "-"].iter().chain(formula), run.clone());
        let mut from_run = lines(from_run.text());
        from_run.pop();
        assert_eq!(from_trace, from_run.iter().map(|step| step["r"].clone()).collect::<Vec<_>>());
        assert_ne!(from_trace, rewards(&live));
        let refused = elsewhere().lanser(["trace", "replay", "--verify", trace].iter().chain(formula));
        assert!(refused.failure(2).contains("--verify compares"), "{refused}");
    }

    // One line, with the reward of its step.
    let op = operation_of(trace, &live[1]);
    let one = elsewhere().lanser(["trace", "replay", "--op", &op, trace]);
    assert_eq!(lines(one.text()), live[1..2]);
}

/// The number of the operation whose bundle is given.
fn operation_of(trace: &str, bundle: &Value) -> String {
    let list = elsewhere().lanser(["trace", "list", "--json", trace]);
    let found = list.text().lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut found = found.filter(|operation| operation["bundleId"] == bundle["bundleId"]);
    found.next().unwrap()["op"].to_string()
}

/// The bundle that a step starts from, and what was measured for it, are in the trace.
#[test]
fn a_replay_recovers_a_step_from_a_given_bundle() {
    let env = TestEnv::pyright(&Project::parse(PROJECT));
    let before = env.lanser(["diag", "m.py", "--json"]).bundle();
    let previous = env.path("before.json");
    std::fs::write(&previous, before.to_string()).unwrap();
    let (previous, trace) = (previous.to_str().unwrap(), env.path("trace.jsonl"));
    let trace = trace.to_str().unwrap();
    env.write("m.py", "def half(x: int) -> float:\n    return x / 2\n\nother = half('b')\n");
    let args = ["diag", "m.py", "n.py", "--json", "--prev", previous, "--trace-file", trace];
    let mut live = env.lanser(args).bundle();
    live["meta"]["volatile"] = serde_json::json!({});
    std::fs::remove_dir_all(&env.cwd).unwrap();
    let replayed = elsewhere().lanser(["trace", "replay", trace]);
    assert_eq!(lines(replayed.text()), [live.clone()]);
    assert_eq!(live["processReward"]["previousBundleId"], before["bundleId"]);
    let verified = elsewhere().lanser(["trace", "replay", "--verify", "--json", trace]);
    let verified: Value = serde_json::from_str(verified.text()).unwrap();
    assert_eq!((&verified["operations"], &verified["steps"]), (&1.into(), &1.into()), "{verified}");
}
