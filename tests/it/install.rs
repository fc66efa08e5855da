//! Real installs of the real servers, each into an empty cache. Slow, but this is the first thing that happens on a new user's
//! machine. Downloads are shared by all tests, see `TestEnv::with_network`.

use crate::support::{Project, TestEnv, portable, which};

fn new_user(programs: &[&str]) -> TestEnv {
    let mut env = TestEnv::with(&Project::parse("//- /m.py\ndef f(): ...\nf()\n")).with_network();
    env.set("LANSER_CACHE_DIR", env.path("cache"));
    if !programs.is_empty() {
        env.set("PATH", env.path_of(programs));
    }
    env
}

#[test]
fn the_first_request_installs_the_server_with_npm() {
    let env = new_user(&["node", "npm", "python3"]);
    let output = env.lanser(["refs", "py://m#f"]);
    assert_eq!(output.code, Some(0), "{output}");
    assert_eq!(output.stdout, "m.py:1:5  def f(): ...\nm.py:2:1  f()\n2 references, complete\n");
    // Network access is never silent.
    let told: Vec<&str> = output.stderr.lines().collect();
    let (first, rest) = told.split_first().unwrap();
    assert_eq!(*first, "installing pyright 1.1.414 with npm (once)");
    // A registry may fail for a moment; then pip is tried, which is reported too.
    let (last, between) = rest.split_last().unwrap();
    assert!(last.starts_with("installed pyright 1.1.414 into "), "{output}");
    assert!(between.iter().all(|line| *line == "installing pyright 1.1.414 with pip (once)"), "{output}");
    // The second run installs and reports nothing.
    let again = env.lanser(["refs", "py://m#f", "--offline"]);
    assert_eq!(again.text(), output.stdout);
    assert_eq!(env.left_behind(), Vec::<String>::new());
    let list = env.lanser(["server", "list"]);
    assert!(list.text().contains("pyright 1.1.414 (default)  cache: "), "{list}");
    // An incomplete install is not used, and is repaired.
    let which = env.lanser(["server", "which", "--json"]);
    let which: serde_json::Value = serde_json::from_str(which.text()).unwrap();
    let script = std::path::Path::new(which["script"].as_str().unwrap());
    let package = script.with_file_name("dist").join("pyright-langserver.js");
    std::fs::remove_file(&package).unwrap();
    assert!(env.lanser(["server", "which", "--offline"]).failure(66).contains("tried "));
    let mended = env.lanser(["server", "install"]);
    assert_eq!(mended.code, Some(0), "{mended}");
    assert!(package.is_file());
}

#[test]
fn pip_installs_the_server_and_node_without_npm_and_node() {
    let env = new_user(&["python3"]);
    let output = env.lanser(["server", "install"]);
    assert_eq!(output.code, Some(0), "{output}");
    assert!(output.stderr.contains("installing pyright 1.1.414 with pip (once)"), "{output}");
    assert!(output.stdout.contains(env.path("cache").to_str().unwrap()), "its own node: {output}");
    // Pyright from npm and from pip are the same, so their answers are too.
    let from_pip = env.lanser(["refs", "py://m#f", "--json"]).answer();
    assert_eq!(from_pip["facts"]["references"].as_array().unwrap().len(), 2);
    crate::support::install("pyright");
    let mut with_npm = TestEnv::with(&Project::parse("//- /m.py\ndef f(): ...\nf()\n"));
    with_npm.set("PATH", with_npm.path_of(&["node", "python3"]));
    let from_npm = with_npm.lanser(["refs", "py://m#f", "--json"]).answer();
    assert_eq!(portable(&from_pip), portable(&from_npm));
}

#[test]
fn concurrent_installs_do_not_break_each_other() {
    let env = new_user(&[]);
    let both = [env.start(["server", "install"]), env.start(["server", "install"])];
    for running in both {
        let output = running.finish();
        assert_eq!(output.code, Some(0), "{output}");
        assert!(output.stdout.starts_with("pyright 1.1.414 (cache)\n"), "{output}");
    }
    let left: Vec<_> = std::fs::read_dir(env.path("cache/servers"))
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.file_type().unwrap().is_dir())
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    assert_eq!(left, ["pyright-1.1.414"], "one server, and no half of one");
    env.lanser(["hover", "py://m#f", "--offline", "--json"]).answer();
}

#[test]
fn offline_forbids_an_install_and_names_the_command() {
    let env = new_user(&["node", "npm"]);
    for args in [&["def", "py://m#f", "--offline"][..], &["server", "install", "--offline"]] {
        let output = env.lanser(args);
        let said = output.failure(66);
        assert!(said.starts_with("error: E/LS_UNAVAILABLE: "), "{said}");
        assert!(said.contains("is disabled by --offline"), "{said}");
        assert!(said.ends_with("hint: run `lanser server install pyright` without --offline\n"), "{said}");
    }
    assert!(!env.path("cache/servers/pyright-1.1.414").exists());
    let mut env = env;
    env.set("LANSER_OFFLINE", "1");
    let _ = env.lanser(["hover", "py://m#f"]).failure(66);
    assert!(which("npm").is_some(), "or else nothing was forbidden");
}
