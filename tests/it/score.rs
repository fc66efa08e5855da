//! `score` with the real Pyright: forms of bases and heads, and the effect of one bad head on the others.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Behavior, FakeServer, Project, TestEnv, wait_until};

const SHOP: &str = "\
//- /m.py
def half(x: int) -> float:
    return x / 2

value = half('a')
other = half('b')
//- /n.py
from m import half

third = half('c')
";

pub(crate) const FIX: &str = "--- a/m.py\n+++ b/m.py\n@@ -2,4 +2,4 @@\n     return x / 2\n \n-value = half('a')\n+value = half(1)\n other = half('b')\n";

pub(crate) fn git(env: &TestEnv, args: &[&str]) {
    let who = ["-c", "user.name=a", "-c", "user.email=a@b"];
    let output = env.run("git", [&who[..], args].concat());
    assert_eq!(output.code, Some(0), "{}", output.stderr);
}

/// A git workspace, with a diff next to it.
pub(crate) fn shop() -> (TestEnv, String) {
    let env = TestEnv::pyright(&Project::parse(SHOP));
    git(&env, &["init", "-q"]);
    git(&env, &["add", "."]);
    git(&env, &["commit", "-qm", "one"]);
    std::fs::write(env.path("fix.diff"), FIX).unwrap();
    let fix = env.path("fix.diff").to_str().unwrap().to_owned();
    (env, fix)
}

fn score(env: &TestEnv, args: &[&str]) -> (Option<i32>, Vec<Value>) {
    let output = env.lanser(["score", "--json"].iter().chain(args).copied());
    let lines = output.stdout.lines().map(|line| serde_json::from_str(line).unwrap());
    (output.code, lines.collect())
}

fn bundle(env: &TestEnv, args: &[&str]) -> Value {
    serde_json::from_str(&env.lanser(args.iter().copied().chain(["--json"])).stdout).unwrap()
}

fn saved(env: &TestEnv, name: &str, bundle: &Value) -> String {
    std::fs::write(env.path(name), bundle.to_string()).unwrap();
    env.path(name).to_str().unwrap().to_owned()
}

/// A script without a suffix is code: what an edit of it breaks counts, and revisions have it.
#[test]
fn scripts_count() {
    let (env, _) = shop();
    env.write("bin/tool", "#!/usr/bin/env python3\nfrom m import half\nhalf(1)\n");
    git(&env, &["add", "."]);
    git(&env, &["commit", "-qm", "two"]);
    let base = bundle(&env, &["diag", "m.py"])["bundleId"].as_str().unwrap().to_owned();
    env.write("bin/tool", "#!/usr/bin/env python3\nfrom m import halves\nhalf(1)\n");
    for args in [&[][..], &["--base", &base]] {
        let (code, told) = score(&env, args);
        assert_eq!((code, told[0]["reward"].as_f64()), (Some(0), Some(-1.0)), "{told:?}");
        assert_eq!(told[0]["integrity"], serde_json::json!({}), "{told:?}");
    }
    let new = bundle(&env, &["diag", "--new"]);
    let found = new["facts"]["diagnostics"]["items"].as_array().unwrap();
    assert!(!found.is_empty() && found.iter().all(|one| one["uri"] == "bin/tool"), "{new}");
}

/// A bundle as base: its code is found in the working tree or in git, or the score fails.
#[test]
fn a_bundle_can_be_the_base() {
    let (env, fix) = shop();
    let looked = bundle(&env, &["diag", "m.py"]);
    let id = looked["bundleId"].as_str().unwrap();
    let reward = |args: &[&str]| {
        let (code, told) = score(&env, args);
        (code, told[0]["reward"].as_f64(), told[0]["reason"].as_str().unwrap_or_default().to_owned())
    };
    let paid = |r: f64| (Some(0), Some(r), String::new());
    assert_eq!(reward(&["--base", id, "--head", &fix]), paid(0.5));
    // Its code is only in git now.
    let text = std::fs::read_to_string(env.file("m.py")).unwrap();
    env.write("m.py", text.replace("half('a')", "half(1)").replace("half('b')", "half(2)"));
    assert_eq!(reward(&["--base", id]), paid(1.0));
    let file = saved(&env, "looked.json", &looked);
    assert_eq!(reward(&["--base", &file, "--head", id]), paid(0.0));
    // The bundle of an edit stands for the edited state, also after it was written, if nothing else changed.
    env.write("m.py", text.clone());
    let checked = bundle(&env, &["check", &fix]);
    let checked = checked["bundleId"].as_str().unwrap();
    assert_eq!(reward(&["--base", checked]), paid(-0.5));
    assert_eq!(reward(&["--base", "WORKTREE", "--head", checked]), paid(0.5));
    let written = bundle(&env, &["apply", &fix, "--apply"]);
    let written = written["bundleId"].as_str().unwrap();
    assert_eq!(reward(&["--base", written]), paid(0.0));
    assert_eq!(reward(&["--base", written, "--head", id]), paid(-0.5));
    // Code that was never committed and is gone cannot be scored.
    env.write("n.py", "fourth = 4\n");
    let lost = bundle(&env, &["diag", "n.py"]);
    env.write("n.py", "fifth = 5\n");
    let (code, r, reason) = reward(&["--base", lost["bundleId"].as_str().unwrap()]);
    assert_eq!((code, r), (Some(10), None));
    assert!(reason.starts_with("E/VERSION_SKEW: the state of the bundle"), "{reason}");
    // The code is known, but was analyzed with another configuration.
    env.write("pyrightconfig.json", "{\"typeCheckingMode\": \"off\"}");
    let (code, r, reason) = reward(&["--base", id, "--head", "WORKTREE"]);
    assert_eq!((code, r), (Some(0), None), "{reason}");
    git(&env, &["checkout", "-q", "."]);
    std::fs::remove_file(env.file("pyrightconfig.json")).unwrap();
    let mut other = looked.clone();
    other["environment"]["tool"]["version"] = "1.1.1".into();
    let file = saved(&env, "changed.json", &other);
    let refused = env.lanser(["score", "--base", &file]);
    assert!(refused.failure(2).contains("its content does not match its bundleId"), "{refused}");
    let mut other: lanser::Bundle = serde_json::from_value(other).unwrap();
    other.bundle_id = lanser::internal::bundle::seal::bundle_id(&other).unwrap();
    other.process_reward = Some(lanser::internal::reward::recomputed(&other, None, &Default::default()));
    let resealed = serde_json::to_value(&other).unwrap();
    let (code, r, reason) = reward(&["--base", &saved(&env, "other.json", &resealed)]);
    assert_eq!((code, r), (Some(10), None), "{reason}");
    assert!(reason.contains("the server differs from that of the bundle"), "{reason}");
    assert_eq!(env.lanser(["score", "--base", &format!("sha256:{}", "0".repeat(64))]).code, Some(3));
    assert!(env.left_behind().is_empty(), "{:?}", env.left_behind());
}

/// One invalid head does not stop the others, is reported with its error, and sets the exit code.
#[test]
fn an_invalid_head_is_reported_and_does_not_stop_the_others() {
    let (env, fix) = shop();
    std::fs::create_dir(env.file("topic")).unwrap();
    git(&env, &["branch", "topic"]);
    git(&env, &["branch", "unique"]);
    let bad = ["--head", "misspelled", "--head", &fix, "--head", "./missing.diff", "--head", "topic"];
    let more = ["--head", "rev:topic", "--head", "./topic", "--head", "unique"];
    let (code, told) = score(&env, &[&bad[..], &more[..]].concat());
    assert_eq!(code, Some(3));
    let rewards: Vec<Option<f64>> = told.iter().map(|episode| episode["reward"].as_f64()).collect();
    assert_eq!(rewards, [None, Some(0.5), None, None, Some(0.0), Some(0.0), Some(0.0)], "{told:#?}");
    let failed = |at: usize| (&told[at]["scored"], told[at]["error"]["code"].as_u64());
    assert_eq!(failed(0), (&false.into(), Some(3)));
    assert_eq!(failed(2), (&false.into(), Some(3)));
    assert_eq!(failed(3), (&false.into(), Some(4)));
    assert_eq!(told[3]["error"]["hint"], "write rev:topic for the revision or ./topic for the folder");
    assert_eq!(told[1]["error"], Value::Null);
    // The same for the head alone, also as text; and the base is not guessed either.
    let (code, alone) = score(&env, &["--head", "misspelled"]);
    assert_eq!((code, &alone[0]), (Some(3), &told[0]));
    let words = env.lanser(["score", "--head", "topic"]);
    assert_eq!(words.code, Some(4));
    assert!(
        words
            .stdout
            .starts_with("topic cannot be scored: E/AMBIGUOUS: topic is both a folder and a revision"),
        "{}",
        words.stdout
    );
    let base = env.lanser(["score", "--base", "topic"]);
    assert_eq!(base.code, Some(4));
    assert!(base.stderr.contains("rev:topic"), "{}", base.stderr);
}

/// With `--prev`, files that only one of the two bundles measured are measured for the other; if that is impossible, there is no
/// reward. Stored bundles give the same.
#[test]
fn missing_measurements_are_supplemented() {
    let (env, _) = shop();
    let looked = bundle(&env, &["diag", "m.py"]);
    assert_eq!(looked["processReward"]["visible"], true);
    assert_eq!(bundle(&env, &["def", "py://m#half"])["processReward"]["visible"], false);
    let previous = saved(&env, "looked.json", &looked);
    let text = std::fs::read_to_string(env.file("m.py")).unwrap();
    env.write("m.py", text.replace("half('a')", "half(1)"));
    env.write("n.py", "from m import half\n\nthird = half('c')\nfourth = half('d')\nfifth = half('e')\n");
    let next = bundle(&env, &["diag", "n.py", "--prev", &previous]);
    let reward = &next["processReward"];
    // m.py has one diagnostic less, n.py two more.
    assert_eq!(
        (&reward["components"]["diag_delta"], &reward["r"]),
        (&(-1.0).into(), &(-0.5).into()),
        "{reward}"
    );
    assert_eq!(reward["state"]["D"], 3.0, "the bundle's own files");
    assert_eq!(next["bundleId"], bundle(&env, &["diag", "n.py"])["bundleId"]);
    let stored = saved(&env, "next.json", &next);
    let again = bundle(&env, &["reward", "--prev", &previous, "--next", &stored]);
    assert_eq!(&again, reward);
    let alone = bundle(&env, &["reward", "--next", &stored]);
    assert_eq!((&alone["r"], &alone["supplement"]), (&0.0.into(), &Value::Null));
    // A read-only request measures nothing; it is supplemented too.
    let asked = bundle(&env, &["def", "py://m#half", "--prev", &previous]);
    assert_eq!(asked["processReward"]["components"]["diag_delta"], 1.0, "{}", asked["processReward"]);
    // From a state that is gone and was never committed.
    env.write("m.py", text.replace("half('a')", "half(3)"));
    let next = bundle(&env, &["diag", "m.py", "--prev", &stored]);
    let reward = &next["processReward"];
    assert_eq!((&reward["r"], &reward["components"]["diag_delta"]), (&Value::Null, &Value::Null), "{reward}");
    let reason = reward["reason"].as_str().unwrap();
    assert!(
        reason.starts_with(
            "the previous bundle did not measure m.py, and the missing files cannot be measured: its code"
        ),
        "{reason}"
    );
    assert!(env.left_behind().is_empty(), "{:?}", env.left_behind());
}

/// Temporary copies of a killed run are removed by the next run, those of a live run are not.
#[test]
fn temporary_copies_of_a_killed_run_are_removed_by_the_next() {
    let env = TestEnv::with(&Project::parse(SHOP));
    let server = FakeServer::new(&env, &Behavior::good().hangs_on("initialize"));
    let copies = || env.left_behind().into_iter().filter(|name| name.contains("lanser-score-")).count();
    let start = || {
        let before = server.pids().len();
        let running = env.start(["score", "--base", "WORKTREE", "--server-command", server.command()]);
        wait_until("its server is there", Duration::from_secs(20), || server.pids().len() > before);
        running
    };
    let killed = start();
    assert_eq!(copies(), 1);
    killed.signal(Signal::KILL);
    assert_eq!(killed.finish().code, None);
    assert_eq!(copies(), 1, "nothing was removed");
    let living = start();
    assert_eq!(copies(), 1, "its own");
    let other = start();
    assert_eq!(copies(), 2, "of both that live");
    for running in [living, other] {
        running.signal(Signal::INT);
        assert_eq!(running.finish().code, Some(73));
    }
    assert_eq!(env.left_behind(), Vec::<String>::new());
}

/// The workspace's own package is installed in editable mode: files that a copy lacks are read from the working tree, which is
/// reported.
#[test]
fn an_editable_install_of_the_workspace_is_reported() {
    let project = "//- /src/shop/__init__.py\n//- /src/shop/price.py\nprice: int = 3\n//- /tests/use.py\nfrom shop.price import price\n\nprice.real\n";
    let mut env = TestEnv::pyright(&Project::parse(project));
    let venv = env.path("venv");
    let made = env.run("python3", ["-m", "venv", "--without-pip", venv.to_str().unwrap()]);
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    let lib = std::fs::read_dir(venv.join("lib")).unwrap().next().unwrap().unwrap().path();
    let sources = env.file("src");
    std::fs::write(lib.join("site-packages/shop.pth"), format!("{}\n", sources.display())).unwrap();
    env.set("VIRTUAL_ENV", &venv);
    let edit = env.path("edit.diff");
    std::fs::write(
        &edit,
        "--- a/src/shop/price.py\n+++ b/src/shop/price.py\n@@ -1 +1 @@\n-price: int = 3\n+price: int = ''\n",
    )
    .unwrap();
    let gone = env.path("gone.diff");
    std::fs::write(&gone, "--- a/src/shop/price.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-price: int = 3\n")
        .unwrap();
    let (edit, gone) = (edit.to_str().unwrap().to_owned(), gone.to_str().unwrap().to_owned());
    let (code, told) = score(&env, &["--base", "WORKTREE", "--head", &edit, "--head", &gone]);
    assert_eq!(code, Some(0), "{told:#?}");
    assert_eq!((&told[0]["reward"], &told[0]["warnings"]), (&(-0.5).into(), &Value::Null));
    let warning = told[1]["warnings"][0].as_str().unwrap();
    assert!(
        warning.ends_with(
            "in the live tree, which has a file that is not in the scored state: src/shop/price.py"
        ),
        "{warning}"
    );
}

/// Errors of a bundle or a run name it and what to do, with the documented exit code.
#[test]
fn bundle_errors_are_explained() {
    let env = TestEnv::new();
    env.write("notes.json", "{\"notes\": 1}");
    let unknown = format!("sha256:{}", "0".repeat(64));
    let cases: [(&[&str], i32, &str, &str); 9] = [
        (
            &["reward", "--next", "gone.json"],
            3,
            "cannot read the bundle gone.json",
            "give a file, or the bundleId",
        ),
        (&["reward", "--next", "notes.json"], 2, "notes.json is not a bundle: ", "schema validate FILE"),
        (&["reward", "--next", "sha256:12ab"], 3, "unknown bundle id sha256:12ab", "64 hexadecimal digits"),
        (
            &["reward", "--next", &unknown],
            3,
            "unknown bundle id sha256:0000",
            "save bundles that you need in files",
        ),
        (&["reward", "--run", "gone.jsonl"], 3, "cannot read the run gone.jsonl", "one bundle per line"),
        (&["show", "gone.json"], 3, "cannot read the bundle gone.json", "give a file"),
        (&["def", "m.py:1:1", "--prev", "last"], 3, "cannot read the bundle last", "`lanser batch`"),
        (
            &["score", "--base", "./gone"],
            3,
            "./gone does not exist",
            "give a git revision, a folder, a bundle",
        ),
        (&["score", "--preset", "rl-csf-v2"], 2, "unknown reward formula \"rl-csf-v2\"", "rl-csf-guarded-v1"),
    ];
    for (args, code, message, hint) in cases {
        let output = env.lanser(args);
        assert_eq!(output.code, Some(code), "{args:?}: {output}");
        assert!(output.stderr.contains(message) && output.stderr.contains(hint), "{args:?}: {output}");
        assert_eq!(output.stdout, "", "{args:?}");
    }
}
