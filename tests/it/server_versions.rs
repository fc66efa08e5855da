//! Every supported version of every server, as `lanser server install` installs it, answers the same requests.

use lanser::internal::toolchain::supported_versions;
use lanser::model::server::ServerKind;
use serde_json::Value;

use crate::support::{Project, TestEnv, install};

/// `main.py` uses the method of `pkg/stock.py` once and has one error.
fn project() -> Project {
    Project::parse(
        "//- /pkg/__init__.py\n\
         //- /pkg/stock.py\nclass Stock:\n    def scarce(self) -> list[str]:\n        return [\"\"]\n\
         //- /main.py\nfrom pkg.stock import Stock\n\ndef report(stock: Stock) -> list[str]:\n    \
         return stock.scarce()\n\ntotal: int = report(Stock())\n",
    )
}

/// What the servers say in their own words about the method and about the error.
fn own_words(name: &str) -> (&'static str, &'static str, &'static str) {
    match name {
        "ty" => ("bound method Stock.scarce() -> list[str]", "invalid-assignment", "utf-8"),
        _ => ("(method) def scarce() -> list[str]", "reportAssignmentType", "utf-16"),
    }
}

/// Runs a check for each supported version, with the server's name and version and its specification for `--server`.
fn for_each_version(check: impl Fn(&str, &str, &str)) {
    for kind in ServerKind::ALL {
        for version in supported_versions(kind) {
            let spec = format!("{kind}@{version}");
            install(&spec);
            check(kind.as_str(), version, &spec);
        }
    }
}

/// The `at` of each location in a list.
fn places(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|location| location["at"].as_str().unwrap()).collect()
}

/// `.ci/run` starts it early: it waits for registries, while other tests need processors.
#[test]
fn every_supported_version_is_installed() {
    for_each_version(|name, version, _| {
        let folders = std::fs::read_dir(TestEnv::cache().join("servers")).unwrap();
        let mut names = folders.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        // Those with programs of their own end in the platform.
        assert!(names.any(|found| found.starts_with(&format!("{name}-{version}"))), "{name} {version}");
    });
}

#[test]
fn every_supported_version_answers() {
    for_each_version(|name, version, spec| {
        let env = TestEnv::with(&project());
        let (signature, rule, encoding) = own_words(name);
        let ask = |args: &[&str]| {
            let bundle = env.lanser(args.iter().copied().chain(["--server", spec, "--json"])).answer();
            let tool = serde_json::json!({"name": name, "version": version});
            assert_eq!(bundle["environment"]["tool"], tool, "{args:?}");
            assert_eq!(bundle["environment"]["positionEncoding"], encoding, "{spec}");
            bundle
        };
        let definition = ask(&["def", "main.py:4:18"]);
        assert_eq!(places(&definition["facts"]["definitions"]), ["pkg/stock.py@L2:C9"], "{spec}");
        let found = ask(&["refs", "py://pkg.stock#Stock.scarce"]);
        let both = ["main.py@L4:C18", "pkg/stock.py@L2:C9"];
        assert_eq!(places(&found["facts"]["references"]), both, "{spec}");
        assert_eq!(found["facts"]["completeness"]["status"], "complete", "{spec}");
        let hover = ask(&["hover", "main.py:4:18"]);
        let markdown = hover["facts"]["hover"]["markdown"].as_str().unwrap();
        assert_eq!(markdown.trim(), format!("```python\n{signature}\n```"), "{spec}");
        let diagnostics = &ask(&["diag"])["facts"]["diagnostics"];
        assert_eq!(diagnostics["counts"]["error"], 1, "{spec}: {diagnostics}");
        assert_eq!(diagnostics["files_checked"], 3, "{spec}");
        let error = diagnostics["items"].as_array().unwrap().iter().find(|one| one["severity"] == "error");
        assert_eq!(error.unwrap()["rule"], rule, "{spec}");
        assert_eq!(error.unwrap()["at"], "main.py@L6:C14", "{spec}");
        let renamed = ask(&["rename", "py://pkg.stock#Stock.scarce", "rare"]);
        let diff = renamed["edits"]["diff"].as_str().unwrap();
        let files: Vec<&str> = diff.lines().filter_map(|line| line.strip_prefix("+++ b/")).collect();
        assert_eq!(files, ["main.py", "pkg/stock.py"], "{spec}");
        assert!(diff.contains("+    return stock.rare()"), "{spec}");
    });
}

/// A warm server of every version notices files that are created, changed and deleted.
#[test]
fn every_supported_version_follows_changes() {
    for_each_version(|_, _, spec| {
        let env = TestEnv::with(&project()).with_sessions();
        let references = || {
            let args = ["refs", "py://pkg.stock#Stock.scarce", "--server", spec, "--json"];
            let bundle = env.lanser(args).answer();
            assert_eq!(bundle["facts"]["completeness"]["status"], "complete", "{spec}");
            bundle["facts"]["references"].as_array().unwrap().len()
        };
        assert_eq!(references(), 2, "{spec}");
        env.write("other.py", "from pkg.stock import Stock\nStock().scarce()\n");
        assert_eq!(references(), 3, "{spec}");
        env.write("other.py", "from pkg.stock import Stock\nStock().scarce()\nStock().scarce()\n");
        assert_eq!(references(), 4, "{spec}");
        std::fs::remove_file(env.file("other.py")).unwrap();
        assert_eq!(references(), 2, "{spec}");
    });
}

#[test]
fn a_trace_of_every_supported_version_is_replayed() {
    for_each_version(|_, _, spec| {
        let env = TestEnv::with(&project());
        let trace = env.path("trace.jsonl");
        let trace = trace.to_str().unwrap();
        for args in [&["refs", "main.py:4:18"][..], &["diag"]] {
            let args = args.iter().copied().chain(["--server", spec, "--trace-file", trace, "--json"]);
            env.lanser(args).answer();
        }
        std::fs::remove_dir_all(&env.cwd).unwrap();
        std::fs::create_dir(&env.cwd).unwrap();
        let replayed = env.lanser(["trace", "replay", "--verify", trace]);
        assert!(replayed.text().starts_with("2 operations replayed"), "{spec}: {replayed}");
    });
}
