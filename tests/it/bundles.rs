//! Members of bundles that hold for every command, with the real Pyright.

use serde_json::{Value, json};

use crate::support::{Project, TestEnv};

const PROJECT: &str = "\
//- /pkg/__init__.py
//- /pkg/mod.py
import os


class Class:
    size: int = 3

    @property
    def method(self) -> int:
        return self.nothing

    def other(self) -> str:
        def inner() -> None: ...
        return 1


def load_data(path: str,
              mode: str = 'r') -> bytes:
    return path
";

fn bundle(env: &TestEnv, args: &[&str]) -> Value {
    let output = env.lanser(args.iter().chain(&["--json"]));
    serde_json::from_str(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output}"))
}

#[test]
fn a_definition_has_its_signature() {
    let env = TestEnv::pyright(&Project::parse(PROJECT));
    for (selector, signature) in [
        ("py://pkg.mod#load_data:def", "def load_data(path: str,\n              mode: str = 'r') -> bytes"),
        ("py://pkg.mod#Class.method:sig", "def method(self) -> int"),
        ("py://pkg.mod#Class", "class Class"),
        ("py://pkg.mod#Class.size", "size: int = 3"),
    ] {
        let found = bundle(&env, &["def", selector]);
        let expected = json!({"markdown": format!("```python\n{signature}\n```"), "provenance": "syntax"});
        assert_eq!(found["facts"]["hover"], expected, "{selector}");
        assert_eq!(found["resolution"]["original"], selector);
    }
    let module = bundle(&env, &["def", "pkg/mod.py:1:8"]);
    assert_eq!(module["status"], "ok", "{module}");
}

/// The selector as it was given, in the hash; the same request in another spelling has the same facts.
#[test]
fn the_original_selector_is_repeated_as_given() {
    let env = TestEnv::pyright(&Project::parse(PROJECT));
    let given = "anchor://pkg/mod.py#\"def load_data(\"?ctx=24";
    let found = bundle(&env, &["def", given]);
    assert_eq!(found["resolution"]["original"], given);
    assert_eq!(found["resolution"]["resolved"]["at"], "pkg/mod.py@R(16,1->16,15)", "{found}");
    let (plain, with_role) = ("py://pkg.mod#load_data", "py://pkg.mod#load_data:def");
    let [short, long] = [plain, with_role].map(|selector| bundle(&env, &["refs", selector]));
    assert_eq!(
        (&short["facts"], &short["request"]["selector"]),
        (&long["facts"], &long["request"]["selector"])
    );
    assert_eq!([&short["resolution"]["original"], &long["resolution"]["original"]], [plain, with_role]);
    assert_ne!(short["bundleId"], long["bundleId"]);
    // The same from the memo, and from a batch.
    assert_eq!(bundle(&env, &["refs", with_role])["bundleId"], long["bundleId"]);
    let line = json!({"cmd": "references", "selector": with_role}).to_string();
    let batch = env.lanser_with_input(["batch"], line);
    let batch: Value = serde_json::from_str(batch.text()).unwrap();
    assert_eq!(batch["bundleId"], long["bundleId"]);
    // A path of this machine is no part of a bundle.
    let absolute = format!("{}@L16:C5", env.file("pkg/mod.py").display());
    let found = bundle(&env, &["def", &absolute]);
    assert_eq!(found["resolution"]["original"], "pkg/mod.py@L16:C5", "{found}");
}

#[test]
fn every_answer_of_a_server_names_the_protocol_and_the_order() {
    let env = TestEnv::pyright(&Project::parse(PROJECT));
    let found = bundle(&env, &["refs", "py://pkg.mod#load_data"]);
    assert_eq!(
        found["capabilities"],
        json!({"references": true, "partialResult": false, "cancellable": true})
    );
    let keys = json!(["uri", "range[0]", "range[1]", "range[2]", "range[3]"]);
    assert_eq!(found["meta"]["sorting_keys"], keys);
    // Pyright does not answer pulls for diagnostics when it is started with cancellation.
    assert_eq!(bundle(&env, &["diag"])["capabilities"]["cancellable"], false);
}

/// A failure of a server that is known names it.
#[test]
fn errors_name_the_server_once_it_is_known() {
    let env = TestEnv::pyright(&Project::parse(PROJECT));
    let missing = bundle(&env, &["def", "pkg/mod.py:9:21"]);
    assert_eq!(
        (&missing["status"], &missing["meta"]["exit_code"]),
        (&"error".into(), &3.into()),
        "{missing}"
    );
    assert_eq!(missing["environment"]["tool"]["name"], "pyright");
    let unresolved = bundle(&env, &["def", "py://pkg.mod#nothing"]);
    assert!(unresolved["environment"]["tool"].is_null(), "no server was asked: {unresolved}");
}

/// A selector narrows the outline and the diagnostics of its file to what it names.
#[test]
fn a_selector_narrows_symbols_and_diagnostics() {
    let env = TestEnv::pyright(&Project::parse(PROJECT));
    let names = |selector: &str| -> Vec<String> {
        let found = bundle(&env, &["symbols", selector]);
        let symbols = found["facts"]["symbols"].as_array().unwrap();
        symbols.iter().map(|symbol| symbol["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names("py://pkg.mod#Class.other"), ["other", "inner"]);
    assert_eq!(names("py://pkg.mod#load_data"), ["load_data", "path", "mode"]);
    assert_eq!(names("pkg/mod.py@L13:C9"), ["other"]);
    assert!(names("py://pkg.mod#Class").len() > 4);
    let lines = |selector: &str| -> Vec<u64> {
        let found = bundle(&env, &["diag", selector]);
        let list = &found["facts"]["diagnostics"];
        assert_eq!(list["counts"]["error"], list["items"].as_array().unwrap().len());
        list["items"].as_array().unwrap().iter().map(|item| item["range"][0].as_u64().unwrap() + 1).collect()
    };
    assert_eq!(lines("pkg/mod.py"), [9, 13, 18]);
    assert_eq!(lines("py://pkg.mod#Class"), [9, 13]);
    assert_eq!(lines("py://pkg.mod#load_data:body"), [18]);
    assert_eq!(lines("pkg/mod.py@L13:C9"), [13]);
    assert_eq!(lines("pkg/mod.py@R(1,1->12,1)"), [9]);
    assert!(lines("py://pkg.mod#Class.size").is_empty());
    // The reward is about whole files, so that steps can be compared.
    let narrowed = bundle(&env, &["diag", "py://pkg.mod#Class.size"]);
    assert_eq!(narrowed["processReward"]["state"]["D"], 3.0);
}
