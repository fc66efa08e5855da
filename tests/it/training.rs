//! What training and evaluation read: reward files, pages, parts of a batch, rewards of a stream.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::score::git;
use crate::support::{LANSER, Project, TestEnv};

const SHOP: &str = "\
//- /m.py
def half(x: int) -> float:
    return x / 2

value = half('a')
other = half('b')
";

const FIX: &str =
    "--- a/m.py\n+++ b/m.py\n@@ -3,3 +3,3 @@\n \n-value = half('a')\n+value = half(1)\n other = half('b')\n";

fn shop() -> TestEnv {
    let env = TestEnv::pyright(&Project::parse(SHOP));
    git(&env, &["init", "-q"]);
    git(&env, &["add", "."]);
    git(&env, &["commit", "-qm", "one"]);
    std::fs::write(env.path("fix.diff"), FIX).unwrap();
    env
}

fn named(env: &TestEnv, name: &str) -> String {
    env.path(name).to_str().unwrap().to_owned()
}

#[test]
fn a_rewards_file_has_finite_numbers_or_does_not_exist() {
    let env = shop();
    let (fix, file) = (named(&env, "fix.diff"), named(&env, "reward.json"));
    let score = |args: &[&str]| {
        let output = env.lanser(["score", "--json", "--rewards-json", &file].iter().chain(args).copied());
        let episode: Value =
            output.stdout.lines().next().map_or(Value::Null, |line| serde_json::from_str(line).unwrap());
        let written = std::fs::read_to_string(&file).ok();
        (output.code, episode, written.map(|text| serde_json::from_str::<Value>(&text).unwrap()))
    };
    let (code, episode, written) = score(&["--head", &fix]);
    let written = written.unwrap();
    let numbers = written.as_object().unwrap();
    assert_eq!((code, &written["reward"]), (Some(0), &json!(0.5)));
    assert!(numbers.values().all(|number| number.as_f64().is_some_and(f64::is_finite)), "{numbers:?}");
    let parts = ["diag", "safety", "confidence", "tool_error", "integrity"];
    let sum: f64 = parts.iter().map(|part| numbers[*part].as_f64().unwrap()).sum();
    assert!((sum - 0.5).abs() < 1e-9 && episode["reward"] == written["reward"], "{episode}");
    // An edit that does not apply is its author's error.
    std::fs::write(env.path("wrong.diff"), FIX.replace("half('a')", "half('c')")).unwrap();
    let (code, _, written) = score(&["--head", &named(&env, "wrong.diff")]);
    assert_eq!((code, written.unwrap()["tool_error"].as_f64()), (Some(0), Some(-0.5)));
    // Without a reward, that of the run before is gone, too.
    let (code, episode, written) = score(&["--head", "rev:nonexistent"]);
    assert_eq!((code, &episode["scored"], written), (Some(3), &json!(false), None));
    std::fs::write(&file, "{\"reward\":1}").unwrap();
    let config = "--- /dev/null\n+++ b/pyrightconfig.json\n@@ -0,0 +1 @@\n+{\"typeCheckingMode\": \"off\"}\n";
    std::fs::write(env.path("config.diff"), config).unwrap();
    let (code, episode, written) = score(&["--head", &named(&env, "config.diff")]);
    assert_eq!((code, &episode["scored"], written), (Some(10), &json!(false), None), "{episode}");
    std::fs::write(&file, "{\"reward\":1}").unwrap();
    let (code, _, written) = score(&["--head", &fix, "--head", "HEAD"]);
    assert_eq!((code, written), (Some(2), None));
    let (code, _, written) = score(&["--head", &fix, "--rewards-json", &named(&env, "no/reward.json")]);
    assert_eq!((code, written), (Some(2), None), "the option is given once");
}

#[test]
fn a_page_shows_the_diffs_of_heads_and_of_steps() {
    let env = shop();
    let hostile = "<script>alert(1)</script>";
    std::fs::write(env.path("hostile.diff"), FIX.replace("half(1)", &format!("half(1)  # {hostile}")))
        .unwrap();
    let (fix, bad, page) = (named(&env, "fix.diff"), named(&env, "hostile.diff"), named(&env, "page.html"));
    let output = env.lanser(["score", "--head", &fix, "--head", &bad, "--head", "HEAD", "--html", &page]);
    assert_eq!(output.code, Some(0), "{output}");
    let html = std::fs::read_to_string(&page).unwrap();
    assert_eq!(html.matches("<ins>+value = half(1)").count(), 2, "{html}");
    assert!(!html.contains(hostile) && html.contains("&lt;script&gt;"), "{html}");
    assert_eq!(html.matches("<details ").count(), 3);

    let checked = env.lanser(["check", &fix, "--json"]);
    let read = env.lanser(["diag", "--json"]);
    std::fs::write(env.path("run.jsonl"), format!("{}not a bundle\n{}", read.stdout, checked.stdout))
        .unwrap();
    let run = named(&env, "run.jsonl");
    let plain = env.lanser(["reward", "--run", &run]);
    let output = env.lanser(["reward", "--run", &run, "--html", &page]);
    assert_eq!((output.code, &output.stdout), (Some(2), &plain.stdout), "the page changes nothing else");
    let html = std::fs::read_to_string(&page).unwrap();
    assert_eq!(html.matches("<details ").count(), 2);
    assert!(html.contains("<dt>malformed lines</dt><dd>1</dd>"), "{html}");
    assert!(html.contains("<span class=\"count\">2 → 1</span>"), "{html}");
    assert!(html.contains("<ins>+value = half(1)</ins>"), "{html}");
    let refused = env.lanser(["reward", "--run", &run, "--html", &named(&env, "no/page.html")]);
    assert_eq!(refused.code, Some(3), "{refused}");
}

/// A trainer asks for the reward of a step before it makes the next one.
#[test]
fn a_run_on_standard_input_is_answered_line_by_line() {
    let env = shop();
    let bundle = env.lanser(["diag", "--json"]).stdout;
    let mut child = Command::new(LANSER)
        .args(["reward", "--run", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut stdin = child.stdin.take().unwrap();
    for t in 0..3 {
        stdin.write_all(bundle.as_bytes()).unwrap();
        let step: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        assert_eq!(step["t"], json!(t));
    }
    drop(stdin);
    let total: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!(total["steps"], json!(3));
    assert!(child.wait().unwrap().success());
}

#[test]
fn shards_are_merged_by_sort() {
    let env = shop();
    let requests: String = (0..12)
        .map(|number| match number % 4 {
            0 => json!({"id": number, "cmd": "hover", "selector": "py://m#half"}),
            1 => json!({"id": number, "cmd": "diagnostics"}),
            2 => json!({"id": number, "cmd": "refs", "selector": "py://m#half"}),
            _ => json!({"id": number, "cmd": "hover", "selector": "py://m#third"}),
        })
        .map(|line| format!("{line}\n"))
        .collect();
    std::fs::write(env.path("in.jsonl"), format!("{requests}nonsense\n")).unwrap();
    let input = named(&env, "in.jsonl");
    let batch = |args: &[&str]| {
        let output = env.lanser(["batch", "--in", &input, "--no-volatile"].iter().chain(args).copied());
        assert_eq!(output.code, Some(0), "{output}");
        let mut lines: Vec<String> = output.stdout.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let whole = batch(&[]);
    assert_eq!(whole.len(), 13);
    for line in &whole {
        let bundle: Value = serde_json::from_str(line).unwrap();
        let volatile = bundle["meta"]["volatile"].as_object().unwrap();
        assert!(volatile.keys().all(|name| name == "id"), "{volatile:?}");
    }
    let shards: Vec<Vec<String>> = (0..3).map(|shard| batch(&["--shard", &format!("{shard}/3")])).collect();
    assert!(shards.iter().filter(|shard| !shard.is_empty()).count() > 1);
    // One of them ran twice, the second time without anything from the cache.
    let again = batch(&["--shard", "1/3", "--no-cache"]);
    assert_eq!(again, shards[1]);
    let mut merged: Vec<String> = shards.into_iter().flatten().chain(again).collect();
    merged.sort();
    merged.dedup();
    assert_eq!(merged, whole);
}

#[test]
fn a_shard_refuses_what_needs_the_other_lines() {
    let env = shop();
    let write = json!({"cmd": "apply", "options": {"edit": {"text": FIX}, "apply": true}});
    std::fs::write(env.path("in.jsonl"), format!("{write}\n")).unwrap();
    let output = env.lanser(["batch", "--in", &named(&env, "in.jsonl"), "--shard", "0/1"]);
    let bundle: Value = serde_json::from_str(output.stdout.trim()).unwrap();
    assert_eq!(bundle["error"]["symbol"], json!("E/USAGE"), "{bundle}");
    assert!(std::fs::read_to_string(env.file("m.py")).unwrap().contains("half('a')"));
    let output = env.lanser(["batch", "--in", &named(&env, "in.jsonl"), "--shard", "0/2", "--prev", "last"]);
    assert_eq!(output.code, Some(2), "{output}");
}
