use std::io::Write as _;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::{Talk, bundles, id, outcome, shop};
use crate::support::{Behavior, FakeServer, Project, TestEnv, is_alive, wait_until};

fn kill(pid: u32, signal: Signal) {
    // The process may have ended already.
    let _ = kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), signal);
}

#[test]
fn a_killed_server_loses_no_answer() {
    let env = TestEnv::pyright(&shop());
    let mut talk = Talk::start(&env, &["--no-cache"]);
    let line = |number: u32| {
        let cmd = ["references", "hover", "definition", "typeDefinition"][number as usize % 4];
        let place = ["py://shop#price_of", "src/shop/till.py:9:21", "py://shop#Book"][number as usize % 3];
        format!(r#"{{"id":{number},"cmd":"{cmd}","selector":"{place}"}}"#)
    };
    let first = talk.ask(&line(0));
    assert_eq!(outcome(&first), "ok");
    let servers = talk.servers();
    assert_eq!(servers.len(), 1, "{servers:?}");
    for number in 1..60 {
        talk.send(&line(number));
        if number == 30 {
            kill(servers[0], Signal::KILL);
        }
    }
    let (mut rest, code) = talk.end();
    assert_eq!(code, Some(0));
    rest.push(first);
    let mut ids: Vec<u64> = rest.iter().map(|answer| id(answer).as_u64().unwrap()).collect();
    ids.sort_unstable();
    assert_eq!(ids, (0..60).collect::<Vec<_>>(), "each is answered once");
    let by_question = |number: u64| {
        let same = rest.iter().filter(|answer| id(answer).as_u64().unwrap() % 12 == number);
        let ids: Vec<_> =
            same.map(|answer| (outcome(answer), answer["bundleId"].as_str().unwrap())).collect();
        assert!(ids.windows(2).all(|pair| pair[0] == pair[1]), "{number}: {ids:?}");
        ids[0].0
    };
    let outcomes: Vec<&str> = (0..12).map(by_question).collect();
    assert!(!outcomes.iter().any(|outcome| outcome.contains("CRASH")), "{outcomes:?}");
    assert!(!is_alive(servers[0]));
}

#[test]
fn an_interrupt_cancels_open_requests() {
    let project = Project::parse("//- /m.py\ndef $0f(): ...\nf()\n");
    for signal in [Signal::INT, Signal::TERM] {
        let env = TestEnv::with(&project);
        // The two hovers are the same request, so another request starts together with one of them.
        let behavior =
            Behavior::good().hangs_on("textDocument/hover").hangs_on("textDocument/typeDefinition");
        let server = FakeServer::new(&env, &behavior);
        let mut talk = Talk::start(&env, &["--concurrency", "2", "--server-command", server.command()]);
        for number in 0..6 {
            let cmd = if number < 2 { "hover" } else { "typeDefinition" };
            talk.send(&format!(
                r#"{{"id":{number},"cmd":"{cmd}","selector":"{}","timeout":100}}"#,
                project.at(0)
            ));
        }
        wait_until("it is asked", Duration::from_secs(20), || {
            let asked = ["textDocument/hover", "textDocument/typeDefinition"];
            server.received().iter().any(|method| asked.contains(&method.as_str()))
        });
        kill(talk.child.id(), signal);
        let answers = talk.rest();
        assert_eq!(answers.len(), 6);
        assert!(answers.iter().all(|answer| outcome(answer) == "E/REQUEST_CANCELLED"), "{answers:?}");
        // The input is still open.
        assert_eq!(talk.child.wait().unwrap().code(), Some(73));
        wait_until("the server is gone", Duration::from_secs(5), || {
            server.pids().iter().all(|pid| !is_alive(*pid))
        });
    }
}

#[test]
fn a_closed_output_ends_the_batch() {
    let env = TestEnv::pyright(&shop());
    let mut command = env.command(["batch"]);
    let mut child = command
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"{\"cmd\":\"hover\",\"selector\":\"py://shop#Book\"}\n").unwrap();
    // The input stays open, so writing an answer is what fails.
    wait_until("it ends", Duration::from_secs(60), || child.try_wait().unwrap().is_some());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
}

#[test]
fn a_line_above_the_limit_is_skipped() {
    let env = TestEnv::with(&Project::parse("//- /m.py\ndef f(): ...\n"));
    let mut input = vec![b'x'; (64 << 20) + 1];
    input.extend_from_slice(b"\n{\"id\":2,\"cmd\":\"locate\",\"selector\":\"py://m#f\"}\n");
    let answers = bundles(&env.lanser_with_input(["batch", "--ordered"], input));
    let told: Vec<_> = answers.iter().map(outcome).collect();
    assert_eq!(told, ["E/USAGE", "ok"]);
    assert!(
        answers[0]["error"]["message"].as_str().unwrap().contains("line 1 is longer than 67108864 bytes")
    );
}
