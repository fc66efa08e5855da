//! The command lines of the papers on lanser, as they are printed there, in a workspace laid out like theirs.

use std::path::Path;

use serde_json::Value;

use crate::edits::Repository;
use crate::support::{LANSER, Project, TestEnv, install};

/// `pkg/mod.py` and `src/app.py`, which the papers name; `src/app.py` has a call in line 42, column 7.
fn project() -> Project {
    let filler: String = (5..41).map(|line| format!("LINE_{line} = {line}\n")).collect();
    Project::default()
        .and("pkg/__init__.py", "")
        .and(
            "pkg/mod.py",
            "class Class:\n    def method(self, path: str) -> list[str]:\n        \"\"\"The lines of a file.\"\"\"\n        \
             return load_data(path)\n\n\ndef function_name(path: str) -> str:\n    return path.strip()\n\n\n\
             def load_data(path: str) -> list[str]:\n    with open(function_name(path)) as file:\n        \
             return file.read().splitlines()\n",
        )
        .and(
            "src/app.py",
            format!(
                "from pkg.mod import Class\n\ndef load_data(path: str) -> int:\n    return len(Class().method(path))\n\
                 {filler}\nprint(load_data(\"names.txt\"))\n"
            ),
        )
        .and(
            "requests.jsonl",
            "{\"id\":1,\"cmd\":\"def\",\"selector\":\"py://pkg.mod#Class.method:sig\"}\n\
             {\"id\":2,\"cmd\":\"refs\",\"selector\":\"py://pkg.mod#load_data:def\"}\n\
             {\"id\":3,\"cmd\":\"diag\"}\n",
        )
        .and("fixtures/notes.json", "{\"name\":\"not a document of lanser\"}\n")
        .and("fixtures/selector.json", "{\"kind\":\"symbol\",\"qualname\":\"pkg.mod:load_data\",\"role\":\"def\"}\n")
}

/// A workspace in which `lanser` is a command.
fn repository() -> Repository {
    install("pyright");
    let mut env = TestEnv::with(&project());
    let folders = std::iter::once(Path::new(LANSER).parent().unwrap().to_owned());
    env.set("PATH", std::env::join_paths(folders.chain(crate::support::search_path())).unwrap());
    let repository = Repository::of(env);
    let exclude = repository.env.file(".git/info/exclude");
    // What the commands themselves write must not make the worktree dirty.
    std::fs::write(exclude, "__pycache__\n*.jsonl\n*.schema.json\nbundle.json\nschemas\n").unwrap();
    repository
}

/// Commands in their order, each with its exit code and a text of its output.
const COMMANDS: &[(&str, i32, &str)] = &[
    // Navigation.
    ("lanser def py://pkg.mod#Class.method:sig --json", 0, r#""at":"pkg/mod.py@L2:C9""#),
    (r#"lanser refs anchor://src/app.py#"def load_data("?ctx=24 --json"#, 0, r#""at":"src/app.py@L42:C7""#),
    (
        r#"lanser references anchor://src/app.py#"def load_data("?ctx=24 --json"#,
        0,
        r#""at":"src/app.py@L42:C7""#,
    ),
    ("lanser hover src/app.py@L42:C7 --json", 0, "(path: str) -> int"),
    ("lanser symbols --json", 0, r#""name":"function_name""#),
    ("lanser diag --json", 0, r#""files_checked":3"#),
    ("lanser diagnostics --json", 0, r#""files_checked":3"#),
    // The other forms of a selector that are printed.
    ("lanser locate 'src/app.py@R(42,7->42,16)' --json", 0, r#""range":[41,6,41,15]"#),
    ("lanser locate py://pkg.mod#Class.method:body --json", 0, r#""range":[2,8,3,30]"#),
    ("lanser locate py://pkg.mod#function_name:sig --json", 0, r#""qualname":"pkg.mod:function_name""#),
    // Edits.
    ("lanser prepare-rename py://pkg.mod#load_data:def --json", 0, r#""renamable":{"name":"load_data""#),
    ("lanser rename py://pkg.mod#load_data:def new_name --dry-run", 0, "+def new_name(path: str)"),
    ("lanser rename py://pkg.mod#load_data:def read_data --dry-run", 0, "+def read_data(path: str)"),
    ("lanser rename py://pkg.mod#load_data:def read_data --apply", 0, "transaction"),
    ("git diff --quiet", 1, ""),
    ("lanser undo && git diff --quiet", 0, ""),
    // Batch and replay.
    ("lanser batch --in requests.jsonl --out bundles.jsonl --trace-file trace.jsonl", 0, ""),
    ("cat bundles.jsonl", 0, r#""cmd":"references""#),
    (
        "lanser trace replay --trace-file trace.jsonl --verify",
        0,
        "3 operations replayed, every bundle as recorded",
    ),
    ("lanser trace replay --verify trace.jsonl", 0, "3 operations replayed, every bundle as recorded"),
    // Schemas.
    ("lanser schema selector --out selector.schema.json", 0, ""),
    ("lanser schema bundle   --out bundle.schema.json", 0, ""),
    ("lanser schema bundle | cmp - bundle.schema.json", 0, ""),
    ("lanser schema export --out schemas/", 0, ""),
    ("cmp schemas/selector.schema.json selector.schema.json", 0, ""),
    ("lanser def py://pkg.mod#load_data --json > bundle.json", 0, ""),
    ("lanser schema validate bundle.json", 0, "1 of 1 valid"),
    ("cp bundle.json bundles.jsonl requests.jsonl trace.jsonl fixtures", 0, ""),
    ("lanser schema validate-batch fixtures/", 0, " valid (batch 3, bundle 4, selector 1, trace "),
    ("lanser schema validate-batch fixtures/", 0, "; 1 file skipped: not documents of lanser"),
    // Options that the papers name.
    ("lanser hover src/app.py@L42:C7 --index-io=utf-8", 0, "load_data"),
    ("lanser hover src/app.py@L42:C7 --index-io=utf-16", 0, "load_data"),
    ("lanser hover src/app.py@L42:C7 --index-io=codepoint", 0, "load_data"),
    (
        "lanser rename py://pkg.mod#load_data read_data --deny-apply-on-ambiguous --workspace-jail --allow-dirty --3way",
        0,
        "+def read_data",
    ),
];

#[test]
fn the_commands_of_the_papers_work_as_printed() {
    let repository = repository();
    for (command, code, text) in COMMANDS {
        let output = repository.env.run("/bin/sh", ["-c", command]);
        assert_eq!(output.code, Some(*code), "{command}\n{output}");
        assert_eq!(output.stderr, "", "{command}\n{output}");
        assert!(output.stdout.contains(text), "{command}: {text} is not in\n{output}");
        if command.ends_with(" --json") {
            let problems = lanser::internal::schema::validate(
                lanser::internal::schema::SchemaKind::Bundle,
                output.stdout.as_bytes(),
            );
            assert!(problems.is_ok(), "{command}: {problems:?}");
        }
    }
}

/// A batch accepts the verbs of the command line, and its bundles have the long names.
#[test]
fn requests_have_one_name_in_bundles() {
    let env = TestEnv::pyright(&project());
    let lines = [("refs", "references"), ("references", "references"), ("type-definition", "typeDefinition")];
    let input: Vec<String> =
        lines.iter().map(|(cmd, _)| format!(r#"{{"cmd":"{cmd}","selector":"src/app.py:42:7"}}"#)).collect();
    let output = env.lanser_with_input(["batch", "--ordered"], input.join("\n"));
    let names: Vec<Value> = output
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["request"]["cmd"].clone())
        .collect();
    assert_eq!(names, lines.map(|(_, name)| Value::from(name)), "{output}");
}

/// The outline of the whole workspace is a list like others: ordered, and cut with a cursor that continues it.
#[test]
fn the_outline_of_the_workspace_is_paged() {
    let env = TestEnv::pyright(&project());
    let all = env.lanser(["symbols", "--json"]).answer();
    let all = all["facts"]["symbols"].as_array().unwrap().clone();
    let places: Vec<(String, i64)> = all
        .iter()
        .map(|one| (one["uri"].as_str().unwrap().to_owned(), one["range"][0].as_i64().unwrap()))
        .collect();
    assert!(places.is_sorted() && places.len() > 40, "{places:?}");
    assert!(places[0].0 == "pkg/mod.py" && places.last().unwrap().0 == "src/app.py", "{places:?}");
    let (mut pages, mut cursor) = (Vec::new(), None::<String>);
    loop {
        let mut args = vec!["symbols".to_owned(), "--json".to_owned(), "--limit".to_owned(), "20".to_owned()];
        args.extend(cursor.iter().flat_map(|cursor| ["--cursor".to_owned(), cursor.clone()]));
        let page = env.lanser(args).answer();
        pages.extend(page["facts"]["symbols"].as_array().unwrap().iter().cloned());
        cursor = page["meta"]["limits"]["cursor"].as_str().map(str::to_owned);
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(pages, all);
    let text = env.lanser(["symbols"]);
    assert!(text.text().contains("load_data") && text.text().lines().count() <= 45, "{text}");
}

/// Different mistakes are different errors, and `--fields` selects from them too.
#[test]
fn usage_errors_say_which_argument() {
    let env = TestEnv::new();
    let missing = env.lanser(["def", "--json"]);
    let error = missing.error(2, "E/USAGE");
    assert_eq!(error["message"], "the following required arguments were not provided: <SELECTOR>");
    let unknown = env.lanser(["def", "py://a#b", "--depths", "2", "--json"]);
    let error = unknown.error(2, "E/USAGE");
    assert_eq!(error["message"], "unexpected argument '--depths' found");
    assert_ne!(missing.bundle()["bundleId"], unknown.bundle()["bundleId"]);
    for fields in
        [vec!["--fields", "error.message,status"], vec!["--fields=error.message", "--fields=status"]]
    {
        let selected = env.lanser(["def"].iter().chain(&fields));
        assert_eq!(selected.code, Some(2));
        let message = "the following required arguments were not provided: <SELECTOR>";
        let expected = serde_json::json!({"error": {"message": message}, "status": "error"});
        assert_eq!(serde_json::from_str::<Value>(&selected.stdout).unwrap(), expected);
    }
    env.lanser(["trace", "replay", "--json"]).error(2, "E/USAGE");
    let error = env.lanser(["schema", "bundle", "--out", "no/such/file", "--json"]).error(3, "E/NOT_FOUND");
    assert!(error["message"].as_str().unwrap().contains("no such folder: "), "{error}");
    env.lanser(["schema", "selector", "--out", ".", "--json"]).error(71, "E/FS_PERMISSIONS");
}
