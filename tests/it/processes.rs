//! No server process outlives lanser, however either of them ends.

use std::time::Duration;

use rustix::process::Signal;

use crate::support::{Behavior, FakeServer, Project, TestEnv, is_alive, wait_until};

fn project() -> Project {
    Project::parse("//- /m.py\ndef $0f(): ...\nf()\n")
}

#[test]
fn a_killed_lanser_takes_its_server_with_it() {
    let project = project();
    let at = project.at(0);
    // A server that only waits, and one that ignores even the end of its input.
    for behavior in [Behavior::good(), Behavior::good().ignores_shutdown()] {
        let env = TestEnv::with(&project);
        let server = FakeServer::new(&env, &behavior.hangs_on("textDocument/hover"));
        let running = env.start(["hover", &at, "--server-command", server.command()]);
        wait_until("the server is asked", Duration::from_secs(20), || {
            server.received().iter().any(|method| method == "textDocument/hover")
        });
        let pids = server.pids();
        assert!(pids.iter().all(|pid| is_alive(*pid)));
        running.signal(Signal::KILL);
        assert_eq!(running.finish().code, None, "this signal cannot be caught");
        let gone = || pids.iter().all(|pid| !is_alive(*pid));
        if cfg!(target_os = "linux") {
            wait_until("the server is gone", Duration::from_secs(5), gone);
        } else {
            println!("only Linux ends a child with its parent; elsewhere the server has to notice by itself");
            pids.iter().filter_map(|pid| rustix::process::Pid::from_raw(pid.cast_signed())).for_each(|pid| {
                let _ = rustix::process::kill_process(pid, Signal::KILL);
            });
        }
        assert_eq!(server.pids().len(), 1, "it is not started again");
    }
}

#[test]
fn the_folder_of_a_killed_lanser_is_removed_by_the_next_run() {
    let project = project();
    let at = project.at(0);
    let env = TestEnv::with(&project);
    let server = FakeServer::new(&env, &Behavior::good().hangs_on("textDocument/hover"));
    let running = env.start(["hover", &at, "--server-command", server.command()]);
    wait_until("the server is asked", Duration::from_secs(20), || {
        server.received().iter().any(|method| method == "textDocument/hover")
    });
    running.signal(Signal::KILL);
    assert_eq!(running.finish().code, None);
    let server = FakeServer::new(&env, &Behavior::good());
    let _ = env.lanser(["hover", &at, "--server-command", server.command()]).text();
    assert_eq!(env.left_behind(), Vec::<String>::new());
}

#[test]
fn a_server_that_ignores_shutdown_is_killed_without_delaying_the_answer() {
    let project = project();
    let at = project.at(0);
    let env = TestEnv::with(&project);
    let server = FakeServer::new(&env, &Behavior::good().ignores_shutdown());
    let output = env.lanser(["hover", &at, "--server-command", server.command()]);
    assert_eq!(output.text(), "said by the fake server\n");
    assert!(output.elapsed < Duration::from_secs(8), "{output}");
    assert!(server.received().contains(&"shutdown".to_owned()), "it was asked kindly first");
    assert!(server.pids().into_iter().all(|pid| !is_alive(pid)));
}

#[test]
fn a_normal_server_is_shut_down_and_leaves_nothing() {
    let project = project();
    let at = project.at(0);
    let env = TestEnv::with(&project);
    let server = FakeServer::new(&env, &Behavior::good());
    for verb in ["def", "refs", "hover"] {
        env.lanser([verb, &at, "--json", "--server-command", server.command()]).answer();
    }
    let received = server.received();
    assert_eq!(received.iter().filter(|method| *method == "exit").count(), 3, "{received:?}");
    assert!(server.pids().into_iter().all(|pid| !is_alive(pid)));
    assert_eq!(env.left_behind(), Vec::<String>::new());
}

#[test]
fn pyright_leaves_nothing() {
    let env = TestEnv::pyright(&project());
    let before = std::fs::read_dir(&env.cwd).unwrap().count();
    for args in [&["refs", "m.py:1:5"][..], &["diag"], &["hover", "m.py:1:5", "--server", "basedpyright"]] {
        if args.contains(&"basedpyright") {
            crate::support::install("basedpyright");
        }
        env.lanser(args.iter().chain([&"--json"])).answer();
        assert_eq!(env.left_behind(), Vec::<String>::new(), "{args:?}");
    }
    assert_eq!(std::fs::read_dir(&env.cwd).unwrap().count(), before, "the workspace is only read");
    assert_eq!(std::fs::read_dir(env.path("home")).unwrap().count(), 0, "so is the home");
}
