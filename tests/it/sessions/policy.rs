//! Which settings, users and folders get a session, and the limits on their number.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use super::{
    CLEANUP_TIMEOUT, ask, ask_raw, env, files, hover, nothing_left, only, pid, processes, project, status,
};
use crate::support::{Behavior, FakeServer, LANSER, Running, TestEnv, is_alive, wait_until};

#[test]
fn other_settings_have_another_session() {
    let mut env = env();
    let [one, two] = [(); 2].map(|()| FakeServer::new(&env, &Behavior::good()));
    let mut seen = BTreeSet::new();
    seen.insert(ask(&env, &one, &[]));
    seen.insert(ask(&env, &two, &[]));
    seen.insert(ask(&env, &one, &["--freshness", "content"]));
    seen.insert(ask(&env, &one, &["--session-memory", "512"]));
    env.set("VIRTUAL_ENV", "/nowhere");
    seen.insert(ask(&env, &one, &[]));
    assert_eq!(seen.len(), 5);
    // Settings of a single caller do not matter; a folder listed twice in PATH finds no other program.
    env.set("SOMETHING", "else");
    let path = crate::support::machine("PATH").unwrap().into_string().unwrap();
    env.set("PATH", format!("{path}:{path}"));
    assert!(seen.contains(&ask(&env, &one, &["--timeout", "7", "-v"])));
    let status = status(&env);
    assert_eq!(status.len(), 5);
    for option in ["--freshness content", "--session-memory 512"] {
        let has =
            |session: &&Value| session["status"]["options"].as_array().unwrap().contains(&json!(option));
        assert_eq!(status.iter().filter(has).count(), 1, "{status:?}");
    }
    let told = env.lanser(["session", "status", "--all"]);
    let text = told.text();
    assert!(text.contains("--freshness content)"), "{text}");
}

#[test]
fn a_started_session_has_its_server_ready() {
    let env = env();
    let server = FakeServer::new(&env, &Behavior::good());
    let words = ["session", "start", "--server-command", server.command()];
    let _ = env.lanser(words).text();
    wait_until("its server is up", CLEANUP_TIMEOUT, || {
        status(&env).first().is_some_and(|session| {
            session["status"]["servers"].as_array().is_some_and(|servers| servers.len() == 1)
        })
    });
    let (session, started) = (only(&env).0, server.pids());
    assert_eq!(ask(&env, &server, &[]), session);
    assert_eq!(server.pids(), started, "the server that was ready answered");
    let _ = env.lanser(words).text();
    assert_eq!(server.pids(), started, "one that is there is left alone");
}

/// Every kind of request that needs a separate server: at most two servers stay.
#[test]
fn a_session_keeps_two_servers() {
    let env = env();
    let server = FakeServer::new(&env, &Behavior::good());
    let diag = |more: &[&str]| {
        let words = ["diag", "--json", "--server-command", server.command()];
        let _ = env.lanser(words.iter().chain(more)).bundle();
    };
    let _ = ask(&env, &server, &[]);
    diag(&[]);
    let _ = ask(&env, &server, &["--scope", "configured"]);
    diag(&["--scope", "configured"]);
    assert_eq!(server.pids().len(), 4);
    wait_until("two are left", CLEANUP_TIMEOUT, || {
        server.pids().into_iter().filter(|pid| is_alive(*pid)).count() == 2
    });
    assert_eq!(status(&env)[0]["status"]["servers"].as_array().unwrap().len(), 2);
}

#[test]
fn disabled_sessions_are_not_started() {
    let mut env = TestEnv::with(&project());
    let server = FakeServer::new(&env, &Behavior::good());
    let none = |env: &TestEnv, more: &[&str]| {
        let _ = ask(env, &server, more);
        assert!(files(env).is_empty() && processes(env).is_empty(), "{more:?}");
    };
    for off in ["off", "0", "no", "false"] {
        none(env.set("LANSER_SESSION", off), &[]);
    }
    assert!(env.lanser(["session", "start"]).failure(2).contains("sessions are disabled"));
    none(env.set("LANSER_SESSION", "on"), &["--no-session"]);
    env.set("LANSER_SESSION", "sometimes");
    let _ = env.lanser(hover(&server, &[])).error(2, "E/USAGE");
    none(env.set("LANSER_SESSION", "").set("CI", "true"), &[]);
    // A request that needs no server starts no session.
    let locate = |env: &TestEnv| {
        let words = ["locate", "m.py:1:5", "--json", "--server-command", server.command()];
        pid(&env.lanser(words).answer()["meta"]["volatile"])
    };
    locate(env.set("LANSER_SESSION", "on"));
    assert!(files(&env).is_empty() && processes(&env).is_empty());
    // The setting counts even if CI is set.
    let session = ask(&env, &server, &[]);
    assert_eq!(only(&env).0, session);
    assert_eq!(locate(&env), session, "but one that is there is asked");
}

#[test]
fn a_runtime_folder_open_to_others_is_not_used() {
    let env = env();
    let server = FakeServer::new(&env, &Behavior::good());
    let folder = env.path("run/lanser");
    std::fs::create_dir(&folder).unwrap();
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o750)).unwrap();
    let _ = ask(&env, &server, &[]);
    assert!(files(&env).is_empty() && processes(&env).is_empty());
    for verb in ["start", "status", "stop"] {
        assert!(env.lanser(["session", verb]).failure(71).contains("closed to all others"), "{verb}");
    }
    std::fs::remove_dir(&folder).unwrap();
    std::os::unix::fs::symlink(env.path("home"), &folder).unwrap();
    let _ = ask(&env, &server, &[]);
    assert!(processes(&env).is_empty());
    std::fs::remove_file(&folder).unwrap();
    // A path that is too long for a socket.
    let mut env = env;
    let long = env.path(&"x".repeat(100));
    std::fs::create_dir(&long).unwrap();
    let _ = ask(env.set("XDG_RUNTIME_DIR", &long), &server, &[]);
    assert!(processes(&env).is_empty());
    env.set("XDG_RUNTIME_DIR", env.path("run"));
}

#[test]
fn without_xdg_runtime_dir_a_folder_in_the_temporary_folder_is_used() {
    let mut env = env();
    let server = FakeServer::new(&env, &Behavior::good());
    env.set("XDG_RUNTIME_DIR", "");
    let session = ask(&env, &server, &[]);
    let name = format!("lanser-{}", rustix::process::geteuid().as_raw());
    assert_eq!(env.left_behind(), [name]);
    // A run without a session cleans up there.
    assert_ne!(ask(&env, &server, &["--no-session"]), session);
    assert_eq!(ask(&env, &server, &[]), session);
}

/// Root can reach every socket, so only the session itself can refuse.
#[test]
fn another_user_is_refused() {
    if !rustix::process::geteuid().is_root() || !cfg!(target_os = "linux") {
        return println!("not checked: only root can be two users");
    }
    let mut env = env();
    let server = FakeServer::new(&env, &Behavior::good());
    let other = "12345";
    let chown = Command::new("chown").args(["-R", other]).arg(env.path("")).status().unwrap();
    let program = env.path("lanser");
    std::fs::copy(LANSER, &program).unwrap();
    env.set("LANSER_CACHE_DIR", env.path("home/cache"));
    let words = ["--reuid", other, "--clear-groups", program.to_str().unwrap()];
    let started = env.run("setpriv", words.into_iter().chain(["session", "start"]));
    if !chown.success() || started.code != Some(0) {
        return println!("not checked: this machine does not let a process be another user: {started}");
    }
    let socket =
        files(&env).into_iter().find(|path| path.extension().is_some_and(|end| end == "sock")).unwrap();
    assert_eq!(ask_raw(&socket), "", "not a word to another user");
    // A caller does not use another user's folder, whatever the environment variables are.
    assert_eq!(env.lanser(["session", "status", "--all"]).text(), "no sessions\n");
    let own = ask(&env, &server, &[]);
    assert_eq!((only(&env).0, files(&env).len()), (own, 2));
    // Not even as the folder for temporary files.
    let _ = env.lanser(["session", "stop"]).text();
    let beside = env.path("tmp/lanser-0");
    assert!(Command::new("chown").arg(other).arg(&beside).status().unwrap().success());
    assert!(env.lanser(["session", "status"]).failure(71).contains("belongs to this user"));
    let _ = ask(&env, &server, &[]);
    assert_eq!(std::fs::read_dir(&beside).unwrap().count(), 0);
    std::fs::remove_dir(&beside).unwrap();
    let stop = words.into_iter().chain(["session", "stop", "--all"]);
    assert_eq!(env.run("setpriv", stop).code, Some(0));
    std::fs::remove_dir_all(env.path("run/lanser")).unwrap();
}

#[test]
fn above_the_limit_the_longest_idle_session_ends() {
    let env = env();
    let server = FakeServer::new(&env, &Behavior::good().hangs_on("textDocument/definition"));
    let place = |number: usize| {
        let folder = env.path(&format!("p{number}"));
        project().write_to(&folder);
        folder.to_str().unwrap().to_owned()
    };
    let places: Vec<String> = (0..9).map(place).collect();
    let ask = |place: &str| pid(&env.lanser(hover(&server, &["-C", place])).answer()["meta"]["volatile"]);
    let first = ask(&places[0]);
    std::thread::sleep(Duration::from_millis(1100));
    let others: Vec<u32> = places[1..8].iter().map(|place| ask(place)).collect();
    assert!(is_alive(first) && others.iter().all(|pid| is_alive(*pid)));
    let ninth = ask(&places[8]);
    wait_until("the longest idle leaves", CLEANUP_TIMEOUT, || !is_alive(first));
    assert!(is_alive(ninth) && others.iter().all(|pid| is_alive(*pid)));
    // When all sessions are busy, the process answers by itself.
    let busy: Vec<Running> = places[1..]
        .iter()
        .map(|place| env.start(["def", "m.py:1:5", "-C", place, "--server-command", server.command()]))
        .collect();
    wait_until("all are asked", CLEANUP_TIMEOUT, || {
        status(&env).iter().filter(|session| session["status"]["asking"] == 1).count() == 8
    });
    ask(&places[0]);
    assert_eq!(status(&env).len(), 8);
    assert!(status(&env).iter().all(|session| session["workspace"] != *places[0]));
    drop(busy);
    let _ = env.lanser(["session", "stop", "--all"]).text();
    nothing_left(&env, &[&server]);
}

#[test]
fn the_limits_can_be_configured_in_a_file() {
    let env = env();
    env.write("lanser.toml", "session-idle = 7\nsession-memory = 100\n");
    let doctor = env.lanser(["doctor", "--json"]);
    let report: Value = serde_json::from_str(&doctor.stdout).unwrap();
    assert_eq!(report["settings"]["session-idle"]["value"], "7");
    assert_eq!(report["settings"]["session-memory"]["value"], "100");
    assert_eq!(report["settings"]["session"], json!({"value": "on", "origin": "environment"}));
}

/// The hidden subcommand cannot be used directly.
#[test]
fn only_lanser_starts_sessions() {
    let env = env();
    for words in [&["__session"][..], &["__session", "/tmp", "0123456789abcdef0123", "x"]] {
        let mut command = env.command(words);
        let output = Running::start(command.stdin(Stdio::null())).finish();
        assert!(output.failure(2).contains("for lanser's own use"));
    }
}
