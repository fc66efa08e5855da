//! A session caches the responses of its server while the workspace is unchanged.

use rustix::process::Signal;
use serde_json::{Value, json};

use super::{CLEANUP_TIMEOUT, env, hover, signal, status};
use crate::support::{Behavior, FakeServer, Project, TestEnv, portable, wait_until};

/// How often the server received a method.
fn times(server: &FakeServer, method: &str) -> usize {
    server.received().iter().filter(|received| *received == method).count()
}

/// Sends a request with `--no-cache` to the session. Returns the answer and the number of hovers that the server received so far,
/// without those for lanser's own document, of which at most one follows each request.
#[track_caller]
fn ask(env: &TestEnv, server: &FakeServer) -> (Value, usize) {
    let answer = env.lanser(hover(server, &["--no-cache"])).answer();
    assert_eq!(answer["facts"]["hover"]["markdown"], "said by the fake server");
    (answer, times(server, "textDocument/declaration"))
}

#[test]
fn an_unchanged_request_reaches_the_server_once() {
    let env = env();
    let server = FakeServer::new(&env, &Behavior::good());
    let (first, hovers) = ask(&env, &server);
    assert_eq!(hovers, 1);
    for _ in 0..3 {
        let (again, hovers) = ask(&env, &server);
        assert_eq!(portable(&again), portable(&first));
        assert_eq!((hovers, again["meta"]["volatile"]["served_from"].as_str()), (1, Some("warm_server")));
    }
    let verbose = env.lanser(hover(&server, &["--no-cache", "-v"])).answer();
    assert_eq!(verbose["facts"], first["facts"]);
    assert_eq!(times(&server, "textDocument/declaration"), 1, "who looks more closely hears the same words");

    env.write("n.py", "g = 1\n");
    assert_eq!(ask(&env, &server).1, 2, "another file is another ground");
    std::fs::remove_file(env.file("n.py")).unwrap();
    assert_eq!(ask(&env, &server).1, 3, "and so is one less");
    assert_eq!(ask(&env, &server).1, 3);

    // The file of the request changed, which is noticed before the server is asked in vain.
    env.write("m.py", "def f(): ...\nf()\n# more\n");
    assert_eq!(ask(&env, &server).1, 4);
    assert_eq!(ask(&env, &server).1, 4);
}

#[test]
fn responses_of_an_ended_server_are_dropped() {
    let env = env();
    let server = FakeServer::new(&env, &Behavior::good());
    let (first, _) = ask(&env, &server);
    signal(*server.pids().last().unwrap(), Signal::KILL);
    // Until the session notices the server's end, it uses the cached responses.
    wait_until("the end is heard of", CLEANUP_TIMEOUT, || status(&env)[0]["status"]["servers"] == json!([]));
    // Another request starts another server, which has not answered this one yet.
    let words = ["hover", "m.py:2:1", "--json", "--no-cache", "--server-command", server.command()];
    assert_eq!(env.lanser(words).code, Some(0));
    let (second, hovers) = ask(&env, &server);
    assert_eq!((portable(&second), hovers), (portable(&first), 3));
    assert_eq!(ask(&env, &server).1, 3);
}

#[test]
fn failed_requests_are_not_cached() {
    let env = env();
    let nothing = Behavior::good().answers("textDocument/references", json!([]));
    let server = FakeServer::new(&env, &nothing);
    for turn in 1..=2 {
        let words = ["refs", "m.py:1:5", "--json", "--no-cache", "--server-command", server.command()];
        assert_eq!(env.lanser(words).code, Some(3));
        assert_eq!(times(&server, "textDocument/references"), turn);
    }
}

#[test]
fn a_selector_that_resolves_elsewhere_is_not_answered_from_the_cache() {
    let env = TestEnv::with(&Project::parse("//- /m.py\n\ndef f(): ...\nf()\n")).with_sessions();
    let git = |words: &[&str]| {
        let who = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"];
        let output = env.run("git", who.iter().chain(words));
        assert_eq!(output.code, Some(0), "{output}");
    };
    let whole = std::fs::read_to_string(env.file("m.py")).unwrap();
    git(&["init", "-q"]);
    git(&["add", "."]);
    git(&["commit", "-qm", "with a line before"]);
    env.write("m.py", whole.trim_start());
    git(&["commit", "-qam", "without"]);
    env.write("m.py", &whole);
    let server = FakeServer::new(&env, &Behavior::good());
    // `HEAD` has the definition in line 1, and the commit before it in line 2.
    let words = ["def", "m.py:2:1?v=git:HEAD", "--json", "--no-cache", "--server-command", server.command()];
    let at_head = env.lanser(words).answer();
    assert_eq!(portable(&env.lanser(words).answer()), portable(&at_head));
    git(&["reset", "-q", "--soft", "HEAD~1"]);
    let before = env.lanser(words);
    let own = env.lanser(words.iter().copied().chain(["--no-session"]));
    assert_eq!((before.code, portable(&before.bundle())), (own.code, portable(&own.bundle())));
    assert_ne!(portable(&before.bundle()), portable(&at_head));
}
