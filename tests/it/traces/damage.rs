//! Traces that are truncated or changed, and files that are not traces.

use super::{elsewhere, recorded, replay, verify};
use crate::support::{Project, TestEnv};

/// A killed recorder leaves an unfinished operation; the operations before it are intact, and the next recorder continues there.
#[test]
fn a_killed_recorder_leaves_complete_operations() {
    let env = TestEnv::with(&Project::fixture("shop"));
    let trace = env.path("trace.jsonl");
    let locate = |name: &str| super::record(&env, &trace, &["locate", &format!("py://shop#{name}")]);
    let first = locate("price_of");
    let whole = std::fs::read(&trace).unwrap();
    locate("Book");
    let both = std::fs::read(&trace).unwrap();
    for cut in [whole.len() + 1, whole.len() + 40, both.len() - 1, both.len() - 200] {
        std::fs::write(&trace, &both[..cut]).unwrap();
        assert_eq!(replay(&trace), std::slice::from_ref(&first), "cut at {cut}");
        let out = elsewhere().lanser(["trace", "list", trace.to_str().unwrap()]);
        assert!(out.stderr.contains("is truncated at line"), "{}", out.stderr);
        // The complete operations replay, but the truncation is reported.
        let args = ["trace", "replay", "--verify", trace.to_str().unwrap()];
        let out = elsewhere().lanser(args);
        assert_eq!(out.code, Some(76), "{out}");
        assert!(out.stderr.contains("is truncated at line"), "{}", out.stderr);
        assert!(out.stdout.starts_with("1 operation replayed"), "{out}");
        let told: serde_json::Value =
            serde_json::from_str(&elsewhere().lanser(args.iter().chain(&["--json"])).stdout).unwrap();
        assert_eq!(told, serde_json::json!({"operations": 1, "verified": 1, "steps": 0, "truncated": true}));
        assert_eq!(elsewhere().lanser(args.iter().chain(&["--op", "1"])).code, Some(0), "the first is whole");
    }
    let second = locate("Book");
    assert_eq!(replay(&trace), [first, second]);
}

#[test]
fn a_changed_byte_is_detected_and_located() {
    let env = TestEnv::pyright(&Project::fixture("shop"));
    let (_, trace) = recorded(&env, &[&["def", "src/shop/till.py:9:21"], &["hover", "py://shop#price_of"]]);
    let text = std::fs::read_to_string(&trace).unwrap();
    assert!(verify(&trace).contains("2 operations replayed"));
    for (old, new) in [
        ("\"textDocument/definition\"", "\"textDocument/definitiom\""),
        ("\"status\":\"ok\"", "\"status\":\"error\""),
        ("def price_of", "def price_or"),
        ("\"response\":\"File\"", "\"response\":\"Folder\""),
    ] {
        let changed = text.lines().find(|line| line.contains(old)).unwrap();
        let (op, event) = (number(changed, "\"op\":"), number(changed, "\"seq\":"));
        std::fs::write(&trace, text.replacen(old, new, 1)).unwrap();
        let error = elsewhere()
            .lanser(["trace", "replay", "--verify", "--json", trace.to_str().unwrap()])
            .error(76, "E/REPLAY_MISMATCH");
        assert_eq!(error["data"]["op"], op, "{error}");
        assert_eq!(error["data"]["event"], event, "{error}");
    }
}

/// The first number after a word in a line.
fn number(line: &str, word: &str) -> u64 {
    let rest = line.split(word).nth(1).unwrap();
    rest[..rest.find(|c: char| !c.is_ascii_digit()).unwrap()].parse().unwrap()
}

/// A change with recomputed checksums is detected by the replay itself, which names the member.
#[test]
fn a_forged_response_is_detected_by_the_replay() {
    let env = TestEnv::pyright(&Project::fixture("shop"));
    let (_, trace) = recorded(&env, &[&["def", "src/shop/till.py:9:21"]]);
    let text = std::fs::read_to_string(&trace).unwrap();
    let forged = |old: &str, new: &str| {
        assert!(text.contains(old), "{old}");
        std::fs::write(&trace, sealed(text.replacen(old, new, 1).lines().map(resummed).collect())).unwrap();
        elsewhere()
            .lanser(["trace", "replay", "--verify", "--json", trace.to_str().unwrap()])
            .error(76, "E/REPLAY_MISMATCH")
    };
    let question =
        "\"method\":\"textDocument/definition\",\"params\":{\"position\":{\"character\":20,\"line\":8}";
    let error = forged(question, &question.replace("\"line\":8", "\"line\":7"));
    assert_eq!(error["data"]["field"], "$.params.position.line", "{error}");
    let error = forged("\"status\":\"ok\"", "\"status\":\"partial\"");
    assert_eq!(error["data"]["field"], "$.status", "{error}");
}

/// A trace of one operation with the digest in its `end` event recomputed from the checksums of the other lines.
fn sealed(lines: Vec<String>) -> String {
    let (end, rest) = lines.split_last().unwrap();
    let sums: Vec<String> = rest.iter().map(|line| sum_of(line)).collect();
    let mut end: lanser::model::trace::Event = serde_json::from_str(end).unwrap();
    if let lanser::model::trace::EventBody::End { digest, .. } = &mut end.body {
        *digest = lanser::internal::digest::Digest::of_fields(sums.iter().map(String::as_bytes));
    }
    let end = lanser::internal::trace::event::event(end.op, end.seq, end.body, end.time);
    format!("{}\n{}\n", rest.join("\n"), lanser::internal::trace::event::line(&end))
}

/// The first operation of a trace with a changed bundle, and valid checksums.
pub(super) fn rewritten(text: &str, change: &dyn Fn(&mut serde_json::Value)) -> String {
    let operation = text.lines().take_while(|line| line.starts_with("{\"op\":1,"));
    let lines = operation.map(|line| {
        let mut event: serde_json::Value = serde_json::from_str(line).unwrap();
        if event["kind"] == "bundle" {
            change(&mut event["bundle"]);
            return resummed(&event.to_string());
        }
        line.to_owned()
    });
    sealed(lines.collect())
}

fn resummed(line: &str) -> String {
    let event: lanser::model::trace::Event = serde_json::from_str(line).unwrap();
    lanser::internal::trace::event::line(&lanser::internal::trace::event::event(
        event.op, event.seq, event.body, event.time,
    ))
}

fn sum_of(line: &str) -> String {
    serde_json::from_str::<lanser::model::trace::Event>(line).unwrap().sum
}

#[test]
fn other_files_are_refused() {
    let env = TestEnv::with(&Project::fixture("shop"));
    env.write("other.txt", "hello\n");
    let other = env.file("other.txt");
    let other = other.to_str().unwrap();
    env.lanser(["trace", "list", other, "--json"]).error(76, "E/REPLAY_MISMATCH");
    env.lanser(["trace", "list", "nowhere.jsonl", "--json"]).error(3, "E/NOT_FOUND");
    // A file that is not a trace is not written to.
    let error = env
        .lanser(["locate", "py://shop#Book", "--trace-file", other, "--json"])
        .error(71, "E/FS_PERMISSIONS");
    assert!(
        error["message"].as_str().unwrap().ends_with("other.txt: the file exists and is not a lanser trace"),
        "{error}"
    );
    assert_eq!(std::fs::read_to_string(other).unwrap(), "hello\n");
    env.lanser(["locate", "py://shop#Book", "--trace-file", "no/folder/t.jsonl", "--json"])
        .error(3, "E/NOT_FOUND");
    env.lanser(["locate", "py://shop#Book", "--trace-file", ".", "--json"]).error(71, "E/FS_PERMISSIONS");
    // A trace of another version is refused with both versions named, also an earlier one.
    let trace = env.path("trace.jsonl");
    super::record(&env, &trace, &["locate", "py://shop#Book"]);
    let text = std::fs::read_to_string(&trace).unwrap();
    // Nothing is appended to a damaged trace: the answer is printed, with a message that it was not recorded.
    std::fs::write(&trace, text.replace("\"kind\":\"end\"", "\"kind\":\"enb\"")).unwrap();
    let damaged = std::fs::read(&trace).unwrap();
    let out = env.lanser(["locate", "py://shop#Book", "--trace-file", trace.to_str().unwrap()]);
    assert_eq!(out.code, Some(71), "{}", out.stderr);
    assert!(out.stdout.contains("class Book"), "{}", out.stdout);
    assert_eq!(
        out.stderr,
        "the trace could not be written: the file is a damaged trace; inspect it with `lanser trace list`\n"
    );
    assert_eq!(std::fs::read(&trace).unwrap(), damaged);
    for version in ["2.0", "4.0"] {
        let other = text.replace("\"version\":\"3.1\"", &format!("\"version\":\"{version}\""));
        assert_ne!(other, text);
        std::fs::write(&trace, other).unwrap();
        let error =
            env.lanser(["trace", "list", trace.to_str().unwrap(), "--json"]).error(76, "E/REPLAY_MISMATCH");
        assert!(error["message"].as_str().unwrap().contains(version), "{error}");
    }
}
