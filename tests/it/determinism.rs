//! The same content gives the same bytes: in another folder, with files created in another order, in another locale and time
//! zone, under another umask, when repeated, without lanser's cache, and with every file read again.

use std::os::unix::fs::PermissionsExt as _;

use crate::support::{Behavior, FakeServer, Project, TestEnv, portable};

/// Two checkouts with the same content that differ in everything else.
fn checkouts() -> [TestEnv; 2] {
    checkouts_with(TestEnv::pyright)
}

fn checkouts_with(first: fn(&Project) -> TestEnv) -> [TestEnv; 2] {
    let project = Project::fixture("shop").and("src/shop/größe.py", "def größe(): ...\n");
    let one = first(&project);
    let mut two = TestEnv::named("another/folder with a much longer name");
    project.write_backwards_to(&two.cwd);
    for path in ["src", "src/shop/items.py", "src/shop/till.py", "pyproject.toml"] {
        let private = if path == "src" { 0o700 } else { 0o600 };
        std::fs::set_permissions(two.file(path), std::fs::Permissions::from_mode(private)).unwrap();
    }
    two.set("TZ", "Pacific/Chatham").set("LC_ALL", "tr_TR.UTF-8").set("LANG", "de_DE.ISO-8859-1");
    two.set("COLUMNS", "20").set("NO_COLOR", "1").set("TERM", "dumb").set("PYTHONHASHSEED", "7");
    [one, two]
}

/// Compares the answers of both checkouts, and of the first one without caches.
#[track_caller]
fn same(envs: &[TestEnv; 2], questions: &[&[&str]]) {
    let [one, two] = envs;
    for (number, question) in questions.iter().enumerate() {
        let args = || question.iter().chain([&"--json"]);
        let first = portable(&one.lanser(args()).bundle());
        for env in envs {
            for word in env.machine_paths() {
                assert!(!first.contains(&word), "{question:?} tells {word}\n{first}");
            }
        }
        let elsewhere = portable(&two.lanser_with_umask("0077", args()).bundle());
        assert_eq!(first, elsewhere, "{question:?} in another checkout");
        let again = match number % 3 {
            0 => one.lanser(args().chain([&"--no-cache"])),
            1 => one.lanser(args().chain([&"--freshness", &"content"])),
            _ => one.lanser(args()),
        };
        assert_eq!(first, portable(&again.bundle()), "{question:?} asked again");
    }
}

#[test]
fn locations() {
    same(
        &checkouts(),
        &[
            &["def", "src/shop/till.py:9:21"],
            &["decl", "src/shop/till.py:9:12"],
            &["typedef", "src/shop/till.py:8:11"],
            &["refs", "py://shop#price_of"],
            // Into the server's own stubs.
            &["def", "src/shop/till.py:8:5"],
        ],
    );
}

#[test]
fn answers_of_ty() {
    let mut envs = checkouts_with(TestEnv::ty);
    envs[1].set("LANSER_SERVER", "ty");
    same(
        &envs,
        &[
            &["def", "src/shop/till.py:9:21"],
            &["typedef", "src/shop/till.py:8:11"],
            &["refs", "py://shop#price_of"],
            &["def", "src/shop/till.py:8:5"],
            &["hover", "py://shop.items#Item.gross"],
            &["hover", "src/shop/till.py:1:8"],
            &["impl", "py://shop.items#Item"],
            &["symbols", "src/shop"],
            &["symbols", "--query", "price"],
            &["calls", "py://shop.till#pay", "--outgoing"],
            &["calls", "py://shop#price_of", "--incoming", "--depth", "2"],
            &["types", "py://shop.items#Item", "--subtypes", "--depth", "2"],
            &["types", "py://shop#Book", "--supertypes", "--depth", "2"],
            &["diag", "--severity", "hint"],
            &["rename", "py://shop.prices#price_of", "cost_of"],
        ],
    );
}

#[test]
fn text_answers() {
    same(
        &checkouts(),
        &[
            &["hover", "py://shop.items#Item.gross"],
            &["symbols", "src/shop"],
            &["symbols", "--query", "price"],
            // A hover over a module may contain its path.
            &["hover", "src/shop/till.py:1:8"],
        ],
    );
}

#[test]
fn calls_and_diagnostics() {
    same(
        &checkouts(),
        &[
            &["calls", "py://shop.till#pay", "--outgoing"],
            &["calls", "py://shop#price_of", "--incoming", "--depth", "2"],
            &["diag", "--severity", "hint"],
        ],
    );
}

#[test]
fn commands_without_a_server() {
    same(
        &checkouts(),
        &[
            &["locate", "py://shop#Book.label:body"],
            &["locate", "py://shop.größe#größe"],
            &["locate", "src/shop/glyphs.py:5:20", "--index-io", "utf-16"],
            &["locate", "py://shop#Buch"],
            &["locate", "py://shop#price_off"],
            &["locate", "src/shop/item.py:1:1"],
            &["locate", "src/shop/items.py:999:1"],
            &["locate", "src/shop/items.py@L1"],
            &["locate", "py://json#dumps"],
            &["refs", "py://nowhere#x"],
            &["diag", "nowhere"],
            &["locate"],
        ],
    );
}

/// The last output of a dying server may contain the path of its folder.
#[test]
fn failures_of_the_server() {
    let envs = checkouts();
    for behavior in [
        Behavior::good().dies_on("textDocument/hover", 3, "lost in $HERE/dist"),
        Behavior::good().prints_garbage_on("textDocument/hover"),
        Behavior::good().lacks("hoverProvider"),
        Behavior::good().hangs_on("textDocument/hover"),
    ] {
        let told = envs.each_ref().map(|env| {
            let server = FakeServer::new(env, &behavior);
            let args = ["hover", "src/shop/till.py:9:21", "--timeout", "1", "--json"];
            let bundle = env.lanser(args.into_iter().chain(["--server-command", server.command()])).bundle();
            let told = portable(&bundle);
            assert!(!told.contains(server.command()), "{told}");
            told
        });
        assert_eq!(told[0], told[1], "{behavior:?}");
        assert!(told[0].contains("\"status\": \"error\""), "{}", told[0]);
    }
}

/// The list of attempts to find a server is about this machine, but is in the hash domain.
#[test]
fn a_missing_server_is_reported_without_paths_of_the_machine() {
    let mut env = TestEnv::with(&Project::fixture("shop"));
    env.set("LANSER_CACHE_DIR", env.path("cache"));
    env.set("PATH", env.path_of(&["env"]));
    let told = portable(&env.lanser(["def", "py://shop#Book", "--offline", "--json"]).bundle());
    for word in env.machine_paths() {
        assert!(!told.contains(&word), "{told}");
    }
}

/// Earlier requests and the names of files do not change the answer for one content.
#[test]
fn different_content_gives_a_different_bundle() {
    let [one, _] = checkouts();
    let ask = |env: &TestEnv| env.lanser(["locate", "py://shop#Book", "--json"]).answer();
    let before = ask(&one);
    one.write("src/shop/new.py", "");
    let after = ask(&one);
    assert_ne!(before["bundleId"], after["bundleId"], "the workspace is part of the answer");
    assert_ne!(before["environment"]["workspace"], after["environment"]["workspace"]);
    one.write("pyproject.toml", "[tool.pyright]\ninclude = [\"src\"]\nstrict = [\"src\"]\n");
    assert_ne!(ask(&one)["environment"]["configDigest"], after["environment"]["configDigest"]);
}
