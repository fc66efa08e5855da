//! `--with compile,ruff,mypy` with the real programs, installed as a user would.

use std::sync::OnceLock;

use serde_json::Value;

use crate::score::git;
use crate::support::{Project, TestEnv, portable};

const SHOP: &str = "\
//- /m.py
import os


def half(x: int) -> float:
    return x / 2


label = 'é😀'; wrong: int = 'a'
//- /broken.py
label = 'é😀'; x = = 1
//- /pyproject.toml
[tool.ruff.lint]
select = [\"F401\"]

[tool.mypy]
files = [\"m.py\"]
pretty = true
";

/// A workspace with all analyzers installed.
fn shop(text: &str) -> TestEnv {
    static INSTALLED: OnceLock<()> = OnceLock::new();
    INSTALLED.get_or_init(|| {
        for name in ["ruff", "mypy"] {
            let output = TestEnv::new().with_network().lanser(["server", "install", name]);
            assert_eq!(output.code, Some(0), "{name} cannot be installed:\n{}", output.stderr);
        }
    });
    TestEnv::pyright(&Project::parse(text))
}

const ALL: &str = "compile,ruff,mypy";

fn found<'b>(bundle: &'b Value, source: &str) -> Vec<&'b Value> {
    let items = bundle["facts"]["diagnostics"]["items"].as_array().unwrap();
    items.iter().filter(|item| item["source"] == source).collect()
}

#[test]
fn each_source_reports_its_diagnostics_in_the_columns_of_the_bundle() {
    let env = shop(SHOP);
    let bundle = env.lanser(["diag", "--with", ALL, "--json", "--offline"]).bundle();
    let place = |item: &Value| (item["uri"].clone(), item["range"].clone(), item["rule"].clone());
    let only = |source: &str, uri: &str| -> Value {
        let items = found(&bundle, source);
        let items: Vec<_> = items.into_iter().filter(|item| item["uri"] == uri).collect();
        assert_eq!(items.len(), 1, "{items:?}");
        items[0].clone()
    };
    // The astral character counts twice in UTF-16.
    let mypy = only("mypy", "m.py");
    assert_eq!(place(&mypy), ("m.py".into(), serde_json::json!([7, 28, 7, 31]), "assignment".into()));
    assert_eq!(mypy["at"], "m.py@L8:C28");
    let ruff = only("ruff", "m.py");
    assert_eq!(place(&ruff), ("m.py".into(), serde_json::json!([0, 7, 0, 9]), "F401".into()));
    let compile = only("compile", "broken.py");
    assert_eq!((&compile["at"], &compile["rule"]), (&"broken.py@L1:C19".into(), &"SyntaxError".into()));
    assert!(!found(&bundle, "lsp").is_empty());
    let sources = bundle["facts"]["diagnostics"]["sources"].as_array().unwrap();
    let summary: Vec<_> =
        sources.iter().map(|one| (one["source"].clone(), one["complete"].clone())).collect();
    assert_eq!(summary, ["lsp", "compile", "ruff", "mypy"].map(|name| (name.into(), true.into())));
    assert_eq!(sources[3]["version"], "2.4.1");
    assert_eq!(bundle["facts"]["provenance"], "compiler+lsp");
    assert_eq!(bundle["processReward"]["source"], "compiler+lsp");
    let parts = bundle["processReward"]["state"]["sources"].as_array().unwrap();
    assert_eq!(parts[3], serde_json::json!({"source": "mypy", "weight": 1.0, "D": 1.0}));
    // Nothing changes without analyzers.
    let plain = env.lanser(["diag", "--json"]).bundle();
    assert_eq!(plain["processReward"]["source"], "lsp");
    assert!(plain["facts"]["diagnostics"].get("sources").is_none());
}

#[test]
fn the_same_content_gives_the_same_bundle_alone_in_a_batch_from_the_memo_and_in_a_replay() {
    let env = shop(SHOP);
    let args = ["diag", "--with", ALL, "--json"];
    let first = env.lanser(args).bundle();
    let again = env.lanser(args).bundle();
    assert_eq!(again["meta"]["volatile"]["served_from"], "memo");
    let line = r#"{"cmd":"diagnostics","options":{"with":["mypy","compile","ruff"]}}"#;
    let batch = env.lanser_with_input(["batch", "--no-cache"], line).bundle();
    let other = shop(SHOP);
    let trace = other.path("trace.jsonl");
    let recorded =
        other.lanser(args.iter().copied().chain(["--trace-file", trace.to_str().unwrap()])).bundle();
    for bundle in [&again, &batch, &recorded] {
        assert_eq!(portable(bundle), portable(&first));
    }
    let replayed = TestEnv::new().lanser(["trace", "replay", "--verify", trace.to_str().unwrap()]);
    assert!(replayed.text().starts_with("1 operation replayed"), "{replayed}");
    // A changed configuration is not answered from the memo.
    env.write("pyproject.toml", "[tool.ruff.lint]\nselect = [\"F811\"]\n");
    let changed = env.lanser(["diag", "--with", "ruff", "--json"]).bundle();
    assert!(found(&changed, "ruff").iter().all(|item| item["rule"] != "F401"));
}

#[test]
fn nothing_of_the_workspace_is_executed_or_written() {
    let env = shop(
        "\
//- /m.py
x: int = 1
//- /evil.py
open('executed', 'w').close()
//- /plugin.py
open('executed', 'w').close()
def plugin(version): raise SystemExit(1)
//- /mypy.ini
[mypy]
plugins = plugin.py
python_executable = ./evil
junit_xml = report.xml
txt_report = reports
cache_dir = cache
",
    );
    let script = format!("#!/bin/sh\ntouch {}\n", env.file("executed").display());
    env.write("evil", script);
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(env.file("evil"), mode).unwrap();
    let output = env.lanser(["diag", "m.py", "--with", ALL, "--json", "--fail-on", "error"]);
    assert_eq!(output.code, Some(1), "{output}");
    let bundle: Value = serde_json::from_str(&output.stdout).unwrap();
    let mypy = &bundle["facts"]["diagnostics"]["sources"][3];
    assert_eq!(mypy["complete"], false);
    assert!(mypy["reason"].as_str().unwrap().contains("plugin.py"), "{mypy}");
    for name in ["executed", "report.xml", "reports", "cache", ".mypy_cache", ".ruff_cache", "__pycache__"] {
        assert!(!env.file(name).exists(), "{name}");
    }
    assert_eq!(env.left_behind(), Vec::<String>::new());
}

#[test]
fn a_configuration_outside_of_the_workspace_is_not_read() {
    let env = shop("//- /m.py\nx = 1\n//- /ruff.toml\nextend = \"../secret.toml\"\n");
    std::fs::write(env.path("secret.toml"), "secret").unwrap();
    let error = env.lanser(["diag", "--with", "ruff"]);
    assert!(error.failure(2).contains("ruff.toml extends a file outside of the workspace"), "{error}");
}

#[test]
fn a_missing_analyzer_is_reported_with_the_command_that_installs_it() {
    let mut env = TestEnv::pyright(&Project::parse("//- /m.py\nx = 1\n"));
    // The server is found elsewhere.
    let which = env.lanser(["server", "which", "--json"]);
    let which: Value = serde_json::from_str(which.text()).unwrap();
    env.set("LANSER_SERVER_COMMAND", which["script"].as_str().unwrap());
    env.set("LANSER_CACHE_DIR", env.path("empty"));
    let error = env.lanser(["diag", "--with", "ruff", "--offline"]);
    assert!(error.failure(66).contains("lanser server install ruff"), "{error}");
}

#[test]
fn score_sees_a_repair_that_only_mypy_sees() {
    let text = "\
//- /m.py
from typing import Any


def show(value: Any) -> str:
    return value


def name(x: int) -> str:
    return show(x)
//- /pyproject.toml
[tool.mypy]
strict = true
";
    let env = shop(text);
    git(&env, &["init", "-q"]);
    git(&env, &["add", "."]);
    git(&env, &["commit", "-qm", "one"]);
    env.write(
        "m.py",
        text.split("//- ")
            .nth(1)
            .unwrap()
            .split_once('\n')
            .unwrap()
            .1
            .replace("return value", "return str(value)"),
    );
    let score = |args: &[&str]| -> Value {
        let all = ["score", "--json", "--preset", "rl-csf-v1"].iter().chain(args);
        serde_json::from_str(env.lanser(all).text()).unwrap()
    };
    let plain = score(&[]);
    assert_eq!(plain["steps"][0]["fixed"], 0);
    assert!(plain.get("sources").is_none() && plain.get("source").is_none());
    let with = score(&["--with", "ruff,mypy"]);
    assert_eq!((&with["steps"][0]["fixed"], &with["source"]), (&1.into(), &"compiler+lsp".into()));
    assert_eq!(with["reward"], 0.5);
    assert_eq!(
        with["sources"][2],
        serde_json::json!({"source": "mypy", "weight": 1.0, "prev": 1.0, "cur": 0.0})
    );
}

#[test]
fn check_reports_what_an_edit_introduces_for_an_analyzer() {
    let env = shop("//- /m.py\nx = 1\n//- /ruff.toml\nlint.select = [\"F401\"]\n");
    let patch = "--- a/m.py\n+++ b/m.py\n@@ -1 +1,2 @@\n+import os\n x = 1\n";
    std::fs::write(env.path("a.diff"), patch).unwrap();
    let diff = env.path("a.diff").to_str().unwrap().to_owned();
    let output = env.lanser(["check", &diff, "--with", "ruff", "--fail-on", "error", "--json"]);
    assert_eq!(output.code, Some(1), "{output}");
    let bundle: Value = serde_json::from_str(&output.stdout).unwrap();
    let delta = &bundle["edits"]["diagnostics"];
    let introduced: Vec<_> =
        delta["introduced"].as_array().unwrap().iter().map(|item| &item["rule"]).collect();
    assert!(introduced.contains(&&Value::from("F401")), "{delta}");
    assert_eq!(delta["sources"][0]["source"], "ruff");
    assert_eq!(env.lanser(["check", &diff, "--fail-on", "error"]).code, Some(0));
}

/// mypy's own parser reads code that is newer than the interpreter that runs mypy, and counts columns in its own way.
#[test]
fn mypy_reads_newer_code_and_its_columns_are_corrected() {
    let text = "//- /m.py\ntype Name = int\n\n\ndef first[T](x: T) -> T:\n    return x\n\n\nx: int = 'é😀'; y: str = 1\n";
    let env = shop(&format!("{text}//- /mypy.ini\n[mypy]\npython_version = 3.13\n"));
    let bundle = env.lanser(["diag", "--with", "mypy", "--json", "--offline"]).bundle();
    let places: Vec<_> = found(&bundle, "mypy").iter().map(|item| (&item["rule"], &item["at"])).collect();
    assert_eq!(
        places,
        [(&"assignment".into(), &"m.py@L8:C10".into()), (&"assignment".into(), &"m.py@L8:C25".into())]
    );
}

#[test]
fn what_mypy_reads_elsewhere_is_refused_or_incomplete_and_not_from_the_memo() {
    let text = "//- /m.py\nimport outer\n\nouter.secret('s')\n//- /.stubs/outer.py\ndef secret(x: int) -> None: ...\n//- /mypy.ini\n[mypy]\nmypy_path = .stubs\nunknown_option = 1\n";
    let env = shop(text);
    let ask = || env.lanser(["diag", "--with", "mypy", "--json", "--offline"]);
    let bundle = ask().bundle();
    assert_eq!(found(&bundle, "mypy").len(), 1);
    let source = &bundle["facts"]["diagnostics"]["sources"][1];
    assert_eq!(source["complete"], false);
    let reason = source["reason"].as_str().unwrap();
    assert!(
        reason.contains("no input of the answer: .stubs/outer.py") && reason.contains("unknown_option"),
        "{reason}"
    );
    env.write(".stubs/outer.py", "def secret(x: str) -> None: ...\n");
    assert!(found(&ask().bundle(), "mypy").is_empty());
    env.write("mypy.ini", "[mypy]\nmypy_path = ../elsewhere\n");
    let error = ask().error(2, "E/USAGE");
    assert!(error["message"].as_str().unwrap().contains("mypy_path"), "{error}");
}
