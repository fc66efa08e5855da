//! The schema commands. `support::Output::bundle` checks that every bundle of every test is valid; here the program checks
//! its own output.

use serde_json::Value;

use crate::support::{Project, TestEnv};

#[test]
fn printed_bundles_validate() {
    let env = TestEnv::pyright(&Project::fixture("shop"));
    let mut lines = String::new();
    let questions: [&[&str]; 9] = [
        &["def", "src/shop/till.py:9:21", "-v"],
        &["refs", "py://shop#price_of", "--limit", "2", "--index-io", "utf-8"],
        &["hover", "py://shop#Book"],
        &["calls", "py://shop#price_of", "--incoming"],
        &["types", "py://shop#Book", "--supertypes"],
        &["diag"],
        &["locate", "py://shop#Book.label:sig"],
        &["locate", "py://shop#Buck"],
        &["locate", "py://"],
    ];
    for question in questions {
        let output = env.lanser(question.iter().chain([&"--json"]));
        let checked = env.lanser_with_input(["schema", "validate", "-"], &output.stdout);
        assert_eq!(checked.text(), "1 of 1 valid\n", "{question:?}");
        lines.push_str(&output.stdout);
    }
    let checked = env.lanser_with_input(["schema", "validate-batch", "-"], &lines);
    assert_eq!(checked.text(), "9 of 9 valid\n");
    // The same line by line from a file, with one damaged line.
    env.write("bundles.jsonl", lines.replacen("\"status\":\"ok\"", "\"status\":\"fine\"", 1));
    let checked = env.lanser(["schema", "validate", "bundles.jsonl"]);
    assert_eq!(checked.code, Some(1));
    assert!(checked.stdout.ends_with("8 of 9 valid\n"), "{checked}");
    assert!(checked.stdout.lines().next().unwrap().contains("bundles.jsonl:1: "), "{checked}");
}

#[test]
fn validating_a_folder_with_a_broken_file_exits_1() {
    let env = TestEnv::new();
    let good = env.lanser(["locate", "x.py:1:1", "--json"]).stdout;
    env.write("kept/good.json", &good);
    env.write("kept/inner/too.json", &good);
    env.write("kept/note.txt", "no JSON");
    assert_eq!(env.lanser(["schema", "validate", "kept"]).text(), "2 of 2 valid\n");
    env.write("kept/inner/broken.json", &good[..good.len() / 2]);
    let output = env.lanser(["schema", "validate", "kept"]);
    assert_eq!((output.code, output.stderr.as_str()), (Some(1), ""));
    assert!(output.stdout.contains("broken.json: ") && output.stdout.ends_with("2 of 3 valid\n"), "{output}");
    let json = env.lanser(["schema", "validate", "kept", "--json"]);
    let verdicts: Value = serde_json::from_str(&json.stdout).unwrap();
    let valid: Vec<_> =
        verdicts.as_array().unwrap().iter().map(|one| one["valid"].as_bool().unwrap()).collect();
    assert_eq!((json.code, valid), (Some(1), vec![true, false, true]));
    assert!(env.lanser(["schema", "validate", "nowhere"]).failure(3).contains("nowhere"));
    std::fs::create_dir(env.file("empty")).unwrap();
    let _ = env.lanser(["schema", "validate", "empty"]).failure(3);
}

#[test]
fn a_named_pipe_in_a_validated_folder_is_skipped() {
    let env = TestEnv::new();
    env.write("kept/good.json", &env.lanser(["locate", "x.py:1:1", "--json"]).stdout);
    assert!(std::process::Command::new("mkfifo").arg(env.file("kept/pipe.json")).status().unwrap().success());
    let expected = "1 of 1 valid; 1 file skipped: not documents of lanser\n";
    for kind in [&[][..], &["--kind", "bundle"]] {
        let args = ["schema", "validate", "kept"].iter().chain(kind);
        assert_eq!(env.lanser(args).text(), expected);
    }
}

/// The papers' `schema validate-batch fixtures/`, on the fixtures of this repository: bundles, selectors, requests, lines of
/// batches and traces, among files that are none of these.
#[test]
fn the_fixtures_of_the_repository_validate() {
    let env = TestEnv::new();
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/");
    let batch = env.lanser(["schema", "validate-batch", fixtures]);
    let counts = batch.text().lines().last().unwrap();
    for kind in
        ["batch 4", "bundle 16", "request 2", "selector 10", "trace ", "skipped: not documents of lanser"]
    {
        assert!(counts.contains(kind), "{kind}: {counts}");
    }
    assert_eq!(env.lanser(["schema", "validate", fixtures]).text(), batch.text());
    let json: Value =
        serde_json::from_str(env.lanser(["schema", "validate", fixtures, "--json"]).text()).unwrap();
    let skipped = json.as_array().unwrap().iter().filter(|one| one["valid"].is_null());
    assert!(skipped.clone().count() > 3 && skipped.clone().all(|one| one["kind"].is_null()));
    // With a kind, every file is taken for one.
    let all = env.lanser(["schema", "validate", fixtures, "--kind", "selector"]);
    assert_eq!(all.code, Some(1), "{all}");
    env.write("other/a.json", "{\"name\":1}");
    assert!(env.lanser(["schema", "validate", "other"]).failure(3).contains("it contains no bundle"));
}

#[test]
fn schemas_are_compared() {
    let env = TestEnv::new();
    let same = env.lanser(["schema", "diff", "bundle", "bundle"]);
    assert_eq!(same.text(), "0 changes, 0 breaking\n");
    let old = env.lanser(["schema", "diff", "bundle@1.4", "bundle", "--json"]);
    let report: Value = serde_json::from_str(&old.stdout).unwrap();
    assert_eq!(
        (old.code, &report["compatible"], &report["mode"]),
        (Some(1), &false.into(), &"backward".into())
    );
    let changes = report["changes"].as_array().unwrap();
    assert!(
        changes.iter().any(|change| change["path"] == "$.version" && change["breaking"] == true),
        "{report}"
    );
    env.write(
        "a.json",
        r#"{"type":"object","properties":{"x":{"type":"string"}},"additionalProperties":false}"#,
    );
    env.write("b.json", r#"{"type":"object","properties":{"x":{},"y":{}},"additionalProperties":false}"#);
    let wider = env.lanser(["schema", "diff", "a.json", "b.json"]);
    let text = "compatible: $.x: every value is allowed\ncompatible: $.y: the member is new\n2 changes, 0 breaking\n";
    assert_eq!(wider.text(), text);
    let narrower = env.lanser(["schema", "diff", "b.json", "a.json"]);
    assert_eq!(
        (narrower.code, narrower.stdout.ends_with("2 changes, 2 breaking\n")),
        (Some(1), true),
        "{narrower}"
    );
    assert_eq!(env.lanser(["schema", "diff", "a.json", "b.json", "--mode", "forward"]).code, Some(1));
    env.lanser(["schema", "diff", "bundle@0.1", "bundle", "--json"]).error(3, "E/NOT_FOUND");
    env.write("c.json", "[]");
    env.lanser(["schema", "diff", "c.json", "bundle", "--json"]).error(2, "E/USAGE");
}

#[test]
fn other_kinds() {
    let env = TestEnv::new();
    let check = |kind: &str, text: &str| {
        let output = env.lanser_with_input(["schema", "validate", "-", "--kind", kind], text);
        output.code
    };
    assert_eq!(check("selector", r#"{"kind":"symbol","qualname":"a.b:c"}"#), Some(0));
    assert_eq!(check("selector", r#"{"kind":"symbol","qualname":"a.b"}"#), Some(1));
    assert_eq!(check("request", r#"{"cmd":"hover","selector":{"kind":"symbol","qualname":"a:b"}}"#), Some(0));
    assert_eq!(check("request", r#"{"cmd":"hoover"}"#), Some(1));
    assert_eq!(check("bundle", "{}"), Some(1));
}

#[test]
fn exports_match_the_files_in_the_repository() {
    let env = TestEnv::new();
    assert_eq!(env.lanser(["schema", "export", "--out", "out/deep"]).text(), "");
    let own = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas");
    let mut seen = 0;
    for entry in std::fs::read_dir(own).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            continue;
        }
        let name = path.file_name().unwrap().to_str().unwrap();
        let exported = std::fs::read_to_string(env.file("out/deep").join(name)).unwrap();
        assert_eq!(exported, std::fs::read_to_string(&path).unwrap(), "{name}");
        let kind = name.split('.').next().unwrap();
        assert_eq!(env.lanser(["schema", "export", "--only", kind]).text(), exported);
        seen += 1;
    }
    assert_eq!((seen, std::fs::read_dir(env.file("out/deep")).unwrap().count()), (5, 5));
}

#[test]
fn the_command_line_as_data_has_every_command_and_code() {
    let env = TestEnv::new();
    let data: Value = serde_json::from_str(env.lanser(["schema", "commands"]).text()).unwrap();
    let names = |of: &Value| -> Vec<String> {
        of["commands"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["name"].as_str().unwrap().to_owned())
            .collect()
    };
    let known = names(&data["command"]);
    // Exactly what `lanser help` lists.
    let help = env.lanser(["help"]);
    let listed = help.text().split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let listed: Vec<&str> = listed
        .lines()
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .map(|line| line.split_whitespace().next().unwrap())
        .filter(|name| *name != "help")
        .collect();
    assert!(listed.len() >= 14, "{listed:?}");
    assert_eq!(known, listed);
    for name in &known {
        let help = env.lanser(["help", name]);
        assert!(help.text().contains(&format!("Usage: lanser {name}")), "{help}");
    }
    let server = data["command"]["commands"].as_array().unwrap().iter().find(|one| one["name"] == "server");
    assert_eq!(names(server.unwrap()), ["list", "which", "install"]);
    let codes: Vec<i64> =
        data["exit_codes"].as_array().unwrap().iter().map(|one| one["code"].as_i64().unwrap()).collect();
    for code in [0, 1, 2, 3, 4, 64, 65, 66, 71, 72, 73, 74, 75, 101] {
        assert!(codes.contains(&code), "{code} is not in {codes:?}");
    }
}
