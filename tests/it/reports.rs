//! Reports for CI and for drawings: SARIF, annotations of GitHub, call graphs; and what is new since a revision.

use std::path::Path;

use serde_json::{Value, json};

use crate::score::git;
use crate::support::{Project, TestEnv, portable};

const SHOP: &str = "\
//- /src/m.py
def half(x: int) -> float:
    return x / 2


def wide() -> None:
    names = ['𝔘𝔫𝔦', half('a')]
    print(names)
//- /src/n.py
import m

third = m.half('c')
";

/// A git repository whose workspace is its subfolder `app`.
fn shop() -> TestEnv {
    let env = TestEnv::pyright(&Project::parse(SHOP));
    commit(&env, "one");
    env
}

fn commit(env: &TestEnv, name: &str) {
    git(env, &["init", "-q"]);
    git(env, &["add", "-A"]);
    git(env, &["commit", "-qm", name]);
}

/// A log, which has to be valid SARIF without a path of the machine.
#[track_caller]
fn sarif(env: &TestEnv, code: i32, args: &[&str]) -> Value {
    let output = env.lanser(args.iter().copied().chain(["--format", "sarif"]));
    assert_eq!(output.code, Some(code), "{output}");
    for word in env.machine_paths() {
        assert!(!output.stdout.contains(&word), "the log tells {word}");
    }
    let log = serde_json::from_str(&output.stdout).unwrap();
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/sarif/sarif-schema-2.1.0.json");
    let schema = std::fs::read_to_string(schema).unwrap();
    // A pattern of the schema has a bracket that ECMA 262 requires to be escaped.
    let schema: Value =
        serde_json::from_str(&schema.replace("[a-zA-Z]{2}]?$", "[a-zA-Z]{2}\\\\]?$")).unwrap();
    let validator = jsonschema::draft7::new(&schema).unwrap();
    let errors: Vec<String> =
        validator.iter_errors(&log).map(|error| format!("{} {error}", error.instance_path())).collect();
    assert!(errors.is_empty(), "{errors:#?}");
    log
}

#[test]
fn sarif_of_the_real_server() {
    let env = shop();
    let log = sarif(&env, 1, &["diag", "--fail-on", "error", "--severity", "hint"]);
    let run = &log["runs"][0];
    let driver = &run["tool"]["driver"];
    assert_eq!(driver["name"], "pyright");
    assert!(driver["version"].as_str().unwrap().starts_with("1.1."), "{driver}");
    assert_eq!(
        (&run["columnKind"], &run["invocations"][0]["exitCode"]),
        (&json!("utf16CodeUnits"), &json!(1))
    );
    let results = run["results"].as_array().unwrap();
    let wide = results
        .iter()
        .find(|result| result["locations"][0]["logicalLocations"][0]["fullyQualifiedName"] == "wide")
        .unwrap();
    // `'a'` begins in column 26 of code points; each of the three letters before it takes two UTF-16 code units.
    let line = "    names = ['𝔘𝔫𝔦', half('a')]";
    let start = line.split("'a'").next().unwrap().encode_utf16().count() + 1;
    let place = &wide["locations"][0]["physicalLocation"];
    assert_eq!(
        place["region"],
        json!({"startLine": 6, "startColumn": start, "endLine": 6, "endColumn": start + 3})
    );
    assert_eq!(place["artifactLocation"], json!({"uri": "src/m.py", "uriBaseId": "%SRCROOT%"}));
    let rule = &driver["rules"][usize::try_from(wide["ruleIndex"].as_u64().unwrap()).unwrap()];
    assert_eq!(rule["id"], wide["ruleId"]);
    assert!(rule["helpUri"].as_str().unwrap().ends_with("#reportArgumentType"), "{rule}");
    // Equal bytes from another process, without the memo.
    let bytes = |more: &[&str]| env.lanser(["diag", "--format", "sarif"].iter().chain(more).copied()).stdout;
    assert_eq!(bytes(&[]), bytes(&["--no-cache"]));
    // Lines above a finding do not change its fingerprint.
    let prints = |log: &Value| {
        let results = log["runs"][0]["results"].as_array().unwrap().clone();
        results.iter().map(|result| result["partialFingerprints"].clone()).collect::<Vec<_>>()
    };
    let before = prints(&sarif(&env, 0, &["diag"]));
    let text = std::fs::read_to_string(env.file("src/m.py")).unwrap();
    env.write("src/m.py", format!("'''Doc.'''\n\n\n{text}"));
    assert_eq!(before, prints(&sarif(&env, 0, &["diag"])));
    assert_eq!(before.len(), 2);
}

#[test]
fn a_report_names_paths_in_the_repository() {
    let env = TestEnv::pyright(&Project::parse("//- /sub/pyproject.toml\n//- /sub/a, b.py\nx: int = 'é%'\n"));
    commit(&env, "one");
    let log = sarif(&env, 0, &["diag", "-C", "sub"]);
    let place = &log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"];
    assert_eq!(place["uri"], "sub/a%2C%20b.py");
    let told = env.lanser(["diag", "-C", "sub", "--format", "github"]).text().to_owned();
    let start =
        "::error title=reportAssignmentType,file=sub/a%2C b.py,line=1,endLine=1,col=10,endColumn=14::Type ";
    assert!(told.starts_with(start), "{told}");
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(lines.len(), 2, "{told}");
    assert!(lines[0].contains("%0A") && lines[1] == "1 error, 0 warnings in 1 file checked", "{told}");
}

#[test]
fn errors_are_reported_in_the_format() {
    let env = shop();
    for (code, symbol, args) in [
        (3, "E/NOT_FOUND", &["diag", "nowhere"][..]),
        (2, "E/USAGE", &["diag", "--bogus"]),
        (3, "E/NOT_FOUND", &["diag", "--base", "nothing"]),
        (2, "E/USAGE", &["diag", "--new", "--fail-on", "hint"]),
    ] {
        let log = sarif(&env, code, args);
        let invocation = &log["runs"][0]["invocations"][0];
        assert_eq!(invocation["executionSuccessful"], false, "{args:?}");
        assert_eq!(invocation["toolExecutionNotifications"][0]["descriptor"]["id"], symbol, "{args:?}");
        assert!(log["runs"][0].get("results").is_none());
        let told = env.lanser(args.iter().copied().chain(["--format=github"]));
        assert_eq!(told.code, Some(code));
        assert!(told.stdout.starts_with(&format!("::error title=lanser%3A {symbol}::")), "{told}");
    }
}

#[test]
fn reports_are_whole_unless_limited() {
    let many: String = (0..120).map(|number| format!("v{number}: int = ''\n")).collect();
    let env = TestEnv::pyright(&Project::parse("//- /a.py\n").and("a.py", many));
    let told = env.lanser(["diag", "--format", "github"]).text().to_owned();
    assert_eq!(told.lines().filter(|line| line.starts_with("::error")).count(), 120);
    let told = env.lanser(["diag", "--format", "github", "--limit", "7"]).text().to_owned();
    assert!(told.contains("::warning title=lanser%3A incomplete::only 7 of 120"), "{told}");
    let log = sarif(&env, 0, &["diag", "--limit", "7"]);
    assert_eq!(log["runs"][0]["results"].as_array().unwrap().len(), 7);
    let notes = &log["runs"][0]["invocations"][0]["toolExecutionNotifications"];
    assert_eq!(notes[0]["descriptor"]["id"], "truncated");
}

#[test]
fn call_graphs() {
    let env = shop();
    let calls = |more: &[&str]| {
        let args = ["calls", "py://m#half", "--incoming", "--depth", "2", "--format"];
        env.lanser(args.iter().chain(more).copied()).text().to_owned()
    };
    let told = calls(&["mermaid"]);
    assert!(told.starts_with("flowchart LR\n"), "{told}");
    for line in
        ["n0[\"half<br/>src/m.py:1\"]:::target", "n1[\"wide<br/>src/m.py:5\"]", "n1 --> n0", "n2 --> n0"]
    {
        assert!(told.lines().any(|told| told.trim() == line), "{line}\n{told}");
    }
    let told = calls(&["dot"]);
    assert!(told.starts_with("digraph calls {") && told.contains("  n1 -> n0;\n"), "{told}");
    let told = env.lanser(["calls", "py://m#wide", "--outgoing", "--format", "dot"]).text().to_owned();
    assert!(told.contains("style=dashed") && told.contains("wide\\nsrc/m.py:5\", penwidth=3"), "{told}");
    env.lanser(["calls", "py://m#nothing", "--incoming", "--format", "dot"]).failure(3);
}

fn base(bundle: &Value) -> (u64, u64, u64) {
    let found = &bundle["facts"]["diagnostics"];
    let errors = |counts: &Value| counts["error"].as_u64().unwrap();
    (errors(&found["counts"]), errors(&found["base"]["fixed"]), errors(&found["base"]["kept"]))
}

#[test]
fn only_new_diagnostics() {
    let env = shop();
    let new = |more: &[&str]| env.lanser(["diag", "--new", "--json"].iter().chain(more).copied()).bundle();
    assert_eq!(base(&new(&[])), (0, 0, 2));
    // A line that moves is not new, nor is a file that is renamed; a file that imports a changed one can have new errors.
    let text = std::fs::read_to_string(env.file("src/m.py")).unwrap();
    env.write("src/m.py", format!("import os\n\n\n{text}\nprint(os.sep)\n"));
    std::fs::rename(env.file("src/n.py"), env.file("src/o.py")).unwrap();
    let bundle = new(&[]);
    assert_eq!(base(&bundle), (0, 0, 2));
    env.write(
        "src/m.py",
        text.replace("half('a')", "half(1)").replace("def half(x: int)", "def half(x: int, y: int)"),
    );
    let told = env.lanser(["diag", "--new", "--fail-on", "error"]);
    assert_eq!(told.code, Some(1), "{told}");
    let summary = told.stdout.lines().last().unwrap();
    // Both calls lack an argument now, which is another message than before.
    assert!(
        summary.starts_with("new errors: 2, fixed: 2, already there: 0 (2 files checked; base "),
        "{told}"
    );
    let log = sarif(&env, 0, &["diag", "--new"]);
    let states: Vec<&str> = log["runs"][0]["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["baselineState"].as_str().unwrap())
        .collect();
    assert_eq!(states, ["new", "new"]);
    // Only the requested files.
    assert_eq!(base(&new(&["src/o.py"])), (1, 1, 0));
    commit(&env, "two");
    assert_eq!(base(&new(&[])), (0, 0, 2));
    assert_eq!(env.lanser(["diag", "--fail-on", "new-error"]).code, Some(0));
    let bundle = new(&["--base", "HEAD~1"]);
    assert_eq!(base(&bundle), (2, 2, 0));
    let commit = bundle["facts"]["diagnostics"]["base"]["commit"].as_str().unwrap().to_owned();
    let head = env.run("git", ["rev-parse", "HEAD~1"]);
    assert_eq!(head.stdout.trim(), commit);
}

/// What git ignores is the same on both sides.
#[test]
fn generated_files_are_part_of_the_base() {
    let project =
        "//- /.gitignore\nmade.py\n//- /made.py\ndef f(x: int): ...\n//- /a.py\nimport made\n\nmade.f('')\n";
    let env = TestEnv::pyright(&Project::parse(project));
    commit(&env, "one");
    assert_eq!(base(&env.lanser(["diag", "--new", "--json"]).bundle()), (0, 0, 1));
}

/// The same answer from a process, the memo, a batch, a session, and a replay.
#[test]
fn new_diagnostics_are_the_same_everywhere() {
    let env = shop();
    let text = std::fs::read_to_string(env.file("src/n.py")).unwrap();
    env.write("src/n.py", format!("{text}fourth = m.half('d')\n"));
    let head = env.run("git", ["rev-parse", "HEAD"]).stdout.trim().to_owned();
    let args = ["diag", "--base", &head, "--json"];
    let cold = env.lanser(args.iter().copied().chain(["--no-cache"])).bundle();
    assert_eq!(base(&cold), (1, 0, 2));
    for _ in 0..2 {
        assert_eq!(portable(&cold), portable(&env.lanser(args).bundle()));
    }
    let line = json!({"cmd": "diagnostics", "options": {"base": head}}).to_string();
    let batch = env.lanser_with_input(["batch"], format!("{line}\n{line}\n").as_bytes());
    for line in batch.text().lines() {
        let bundle: Value = serde_json::from_str(line).unwrap();
        assert_eq!(bundle["bundleId"], cold["bundleId"], "{bundle}");
    }
    let trace = env.path("trace.jsonl");
    let recorded = env.lanser(args.iter().copied().chain(["--trace-file", trace.to_str().unwrap()])).bundle();
    assert_eq!(recorded["bundleId"], cold["bundleId"]);
    let env = env.with_sessions();
    for _ in 0..2 {
        assert_eq!(env.lanser(args).bundle()["bundleId"], cold["bundleId"]);
    }
    assert_eq!(env.lanser(["session", "stop"]).code, Some(0));
}
