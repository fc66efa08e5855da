//! What a session's server said is said again for as long as the workspace stays as it is, and no longer.

use rustix::process::Signal;
use serde_json::{Value, json};

use super::{SOON, env, hover, signal, status};
use crate::support::{Behaviour, FakeServer, Project, TestEnv, portable, wait_until};

/// How often the server was asked this.
fn times(server: &FakeServer, method: &str) -> usize {
    server.received().iter().filter(|received| *received == method).count()
}

/// Asks the session with `--no-cache`. Gives the answer and how often the server was asked for hovers so far; those of our own
/// document, which nobody waits for, come one at most after each.
#[track_caller]
fn ask(env: &TestEnv, server: &FakeServer) -> (Value, usize) {
    let answer = env.lanser(hover(server, &["--no-cache"])).answer();
    assert_eq!(answer["facts"]["hover"]["markdown"], "said by the fake server");
    (answer, times(server, "textDocument/declaration"))
}

#[test]
fn a_server_is_asked_once_for_what_does_not_change() {
    let env = env();
    let server = FakeServer::new(&env, &Behaviour::good());
    let (first, asked) = ask(&env, &server);
    assert_eq!(asked, 1);
    for _ in 0..3 {
        let (again, asked) = ask(&env, &server);
        assert_eq!(portable(&again), portable(&first));
        assert_eq!((asked, again["meta"]["volatile"]["served_from"].as_str()), (1, Some("warm_server")));
    }
    let verbose = env.lanser(hover(&server, &["--no-cache", "-v"])).answer();
    assert_eq!(verbose["facts"], first["facts"]);
    assert_eq!(times(&server, "textDocument/declaration"), 1, "who looks more closely hears the same words");

    env.write("n.py", "g = 1\n");
    assert_eq!(ask(&env, &server).1, 2, "another file is another ground");
    std::fs::remove_file(env.file("n.py")).unwrap();
    assert_eq!(ask(&env, &server).1, 3, "and so is one less");
    assert_eq!(ask(&env, &server).1, 3);

    // The file that is asked about is another one, which shows before the server is asked in vain.
    env.write("m.py", "def f(): ...\nf()\n# more\n");
    assert_eq!(ask(&env, &server).1, 4);
    assert_eq!(ask(&env, &server).1, 4);
}

#[test]
fn a_server_that_ended_says_nothing_any_more() {
    let env = env();
    let server = FakeServer::new(&env, &Behaviour::good());
    let (first, _) = ask(&env, &server);
    signal(*server.pids().last().unwrap(), Signal::KILL);
    // Until the session hears of its end, it has the words.
    wait_until("the end is heard of", SOON, || status(&env)[0]["status"]["servers"] == json!([]));
    // Another question starts another server, which has said nothing of this one yet.
    let words = ["hover", "m.py:2:1", "--json", "--no-cache", "--server-command", server.command()];
    assert_eq!(env.lanser(words).code, Some(0));
    let (second, asked) = ask(&env, &server);
    assert_eq!((portable(&second), asked), (portable(&first), 3));
    assert_eq!(ask(&env, &server).1, 3);
}

#[test]
fn what_was_refused_is_asked_again() {
    let env = env();
    let nothing = Behaviour::good().answers("textDocument/references", json!([]));
    let server = FakeServer::new(&env, &nothing);
    for turn in 1..=2 {
        let words = ["refs", "m.py:1:5", "--json", "--no-cache", "--server-command", server.command()];
        assert_eq!(env.lanser(words).code, Some(3));
        assert_eq!(times(&server, "textDocument/references"), turn);
    }
}

#[test]
fn a_place_that_moves_without_the_workspace_is_asked_about_anew() {
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
    let server = FakeServer::new(&env, &Behaviour::good());
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
