//! Killing any process of a session at any time: callers get their answers, and nothing remains.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use super::{
    CLEANUP_TIMEOUT, ask, env, files, hover, nothing_left, only, pid, processes, received_times, signal,
    status,
};
use crate::support::{Behavior, FakeServer, Running, is_alive, portable, wait_until};

#[test]
fn remains_of_two_killed_processes_are_replaced() {
    let env = env();
    let server = FakeServer::new(&env, &Behavior::good());
    let first = ask(&env, &server, &[]);
    let (session, supervisor) = only(&env);
    assert_eq!(first, session);
    // The supervisor is stopped first, so that neither can clean up.
    signal(session, Signal::STOP);
    signal(supervisor, Signal::KILL);
    signal(session, Signal::KILL);
    wait_until("both are gone", CLEANUP_TIMEOUT, || processes(&env).is_empty());
    assert_eq!(files(&env).len(), 2, "the socket and the folder stay");
    let second = ask(&env, &server, &[]);
    assert_ne!(first, second);
    assert_eq!(files(&env).len(), 2, "of the new one: {:?}", files(&env));
    assert_eq!(only(&env).0, second);
}

/// No later process cleans up here.
#[test]
fn either_process_cleans_up_after_the_other() {
    for session_first in [true, false] {
        let env = env();
        let server = FakeServer::new(&env, &Behavior::good());
        let _ = ask(&env, &server, &[]);
        let (session, supervisor) = only(&env);
        signal(if session_first { session } else { supervisor }, Signal::KILL);
        nothing_left(&env, &[&server]);
    }
    // And orderly after a signal.
    let env = env();
    let server = FakeServer::new(&env, &Behavior::good());
    let _ = ask(&env, &server, &[]);
    signal(only(&env).0, Signal::TERM);
    nothing_left(&env, &[&server]);
}

#[test]
fn a_session_that_is_killed_is_replaced_without_its_callers_noticing() {
    for whom in ["session", "supervisor"] {
        let env = env();
        let server = FakeServer::new(&env, &Behavior::good().waits_before("textDocument/hover"));
        let running = env.start(hover(&server, &[]));
        wait_until("the server is asked", CLEANUP_TIMEOUT, || received_times(&server, "waiting", 1));
        let (session, supervisor) = only(&env);
        signal(if whom == "session" { session } else { supervisor }, Signal::KILL);
        if whom == "session" {
            wait_until("another server is asked", CLEANUP_TIMEOUT, || received_times(&server, "waiting", 2));
        }
        server.trigger();
        let answer = running.finish().answer();
        assert_eq!(answer["facts"]["hover"]["markdown"], "said by the fake server");
        let answered = pid(&answer["meta"]["volatile"]);
        // Without its supervisor, the session finishes current requests and ends.
        assert_eq!(answered == session, whom == "supervisor");
        if whom == "session" {
            assert_eq!(only(&env).0, answered);
            let _ = env.lanser(["session", "stop"]).text();
        }
        nothing_left(&env, &[&server]);
    }
}

#[test]
fn a_disconnected_caller_cancels_its_request() {
    let env = env();
    let server = FakeServer::new(&env, &Behavior::good().hangs_on("textDocument/hover"));
    for end in [Signal::KILL, Signal::INT] {
        let running = env.start(hover(&server, &[]));
        wait_until("the question is there", CLEANUP_TIMEOUT, || {
            status(&env).first().is_some_and(|session| session["status"]["asking"] == 1)
        });
        let began = Instant::now();
        running.signal(end);
        let output = running.finish();
        assert!(began.elapsed() < Duration::from_secs(2), "{output}");
        if end == Signal::INT {
            output.error(73, "E/REQUEST_CANCELLED");
            let own = {
                let before = server.received().len();
                let running = env.start(hover(&server, &["--no-session"]));
                wait_until("the server is asked", CLEANUP_TIMEOUT, || {
                    server.received()[before..].contains(&"textDocument/hover".to_owned())
                });
                running.signal(end);
                running.finish()
            };
            assert_eq!(portable(&output.bundle()), portable(&own.bundle()));
        }
        wait_until("the session knows", CLEANUP_TIMEOUT, || status(&env)[0]["status"]["asking"] == 0);
    }
    let _ = env.lanser(["session", "stop"]).text();
    nothing_left(&env, &[&server]);
}

/// Kills processes of the session again and again during requests.
#[test]
fn nothing_remains_whichever_process_is_killed() {
    let env = env();
    let server = FakeServer::new(&env, &Behavior::good());
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = |below: u64| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed % below
    };
    for round in 0..30 {
        let callers: Vec<Running> = (0..3).map(|_| env.start(hover(&server, &[]))).collect();
        std::thread::sleep(Duration::from_millis(random(250)));
        let victim = random(4);
        match victim {
            0 => callers[0].signal(Signal::KILL),
            1 => {
                if let Some(pid) = server.pids().last() {
                    signal(*pid, Signal::KILL);
                }
            }
            _ => {
                for line in processes(&env) {
                    if line.contains("proper") == (victim == 2) {
                        signal(line.split_whitespace().nth(1).unwrap().parse().unwrap(), Signal::KILL);
                    }
                }
            }
        }
        for (number, caller) in callers.into_iter().enumerate() {
            let output = caller.finish();
            if victim == 0 && number == 0 && output.code.is_none() {
                continue;
            }
            let bundle = output.bundle();
            let right = bundle["facts"]["hover"]["markdown"] == "said by the fake server";
            assert!(right, "round {round}, victim {victim}: {output}");
        }
    }
    let _ = env.lanser(["session", "stop"]).text();
    nothing_left(&env, &[&server]);
}

#[test]
fn a_stopped_session_is_bypassed_and_can_be_ended() {
    let env = env();
    let server = FakeServer::new(&env, &Behavior::good());
    let session = ask(&env, &server, &[]);
    signal(session, Signal::STOP);
    let began = Instant::now();
    assert_ne!(ask(&env, &server, &[]), session, "this process answers");
    assert!(began.elapsed() < Duration::from_secs(if cfg!(target_os = "linux") { 6 } else { 15 }));
    let told = status(&env);
    assert_eq!((pid(&told[0]), &told[0]["status"]), (session, &Value::Null));
    let _ = env.lanser(["session", "stop"]).text();
    assert!(!is_alive(session));
    nothing_left(&env, &[&server]);
}

#[test]
fn an_ended_session_finishes_current_requests() {
    let env = env();
    let server = FakeServer::new(&env, &Behavior::good().waits_before("textDocument/hover"));
    // In time, and too late: then the caller answers by itself.
    for in_time in [true, false] {
        let before = server.received().iter().filter(|word| *word == "waiting").count();
        let running = env.start(hover(&server, &["--no-cache"]));
        wait_until("the server is asked", CLEANUP_TIMEOUT, || received_times(&server, "waiting", before + 1));
        let (session, _) = only(&env);
        let stopping = env.start(["session", "stop"]);
        wait_until("it is not found any more", CLEANUP_TIMEOUT, || {
            files(&env).iter().all(|path| path.extension().is_none())
        });
        if !in_time {
            wait_until("this process asks", CLEANUP_TIMEOUT, || {
                received_times(&server, "waiting", before + 2)
            });
        }
        server.trigger();
        let answer = running.finish().answer();
        assert_eq!(pid(&answer["meta"]["volatile"]) == session, in_time);
        let _ = stopping.finish().text();
        nothing_left(&env, &[&server]);
        server.untrigger();
    }
}
