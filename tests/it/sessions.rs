//! Background sessions: one for all callers, the same answers as without, daemons in every respect, and nothing left of
//! them however they end.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::{
    Behaviour, FakeServer, LANSER, Project, Running, TestEnv, is_alive, portable, wait_until,
};

/// How long anything of a session may stay after its end.
const SOON: Duration = Duration::from_secs(20);

fn project() -> Project {
    Project::parse("//- /m.py\ndef $0f(): ...\nf()\n")
}

fn env() -> TestEnv {
    TestEnv::with(&project()).with_sessions()
}

/// The words of a question that the fake server answers.
fn hover<'a>(server: &'a FakeServer, more: &[&'a str]) -> Vec<&'a str> {
    let mut words = vec!["hover", "m.py:1:5", "--json", "--server-command", server.command()];
    words.extend(more);
    words
}

/// Asks, and gives the process that answered.
#[track_caller]
fn ask(env: &TestEnv, server: &FakeServer, more: &[&str]) -> u32 {
    let answer = env.lanser(hover(server, more)).answer();
    assert_eq!(answer["facts"]["hover"]["markdown"], "said by the fake server", "{answer}");
    pid(&answer["meta"]["volatile"])
}

fn pid(value: &Value) -> u32 {
    value["pid"].as_u64().unwrap().try_into().unwrap()
}

/// What `session status --all` says.
fn status(env: &TestEnv) -> Vec<Value> {
    let output = env.lanser(["session", "status", "--all", "--json"]);
    assert_eq!(output.code, Some(0), "{output}");
    serde_json::from_str(&output.stdout).unwrap()
}

/// The only session, and its supervisor.
#[track_caller]
fn only(env: &TestEnv) -> (u32, u32) {
    let status = status(env);
    assert_eq!(status.len(), 1, "{status:?}");
    (pid(&status[0]), status[0]["supervisor"].as_u64().unwrap().try_into().unwrap())
}

fn signal(pid: u32, signal: Signal) {
    // It may just have ended.
    let _ = kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), signal);
}

/// The files in the runtime folder.
fn files(env: &TestEnv) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(env.path("run/lanser")).into_iter().flatten();
    entries.map(|entry| entry.unwrap().path()).collect()
}

/// The processes of sessions in these surroundings.
fn processes(env: &TestEnv) -> Vec<String> {
    let listed = Command::new("ps").args(["-axo", "stat=,pid=,args="]).output().unwrap();
    let (run, text) = (env.path("run"), String::from_utf8_lossy(&listed.stdout).into_owned());
    let ours = |line: &&str| line.contains("__session") && line.contains(run.to_str().unwrap());
    text.lines().filter(ours).filter(|line| !line.starts_with('Z')).map(str::to_owned).collect()
}

/// Waits until nothing of any session is left: no process, no server, no file.
#[track_caller]
fn nothing_left(env: &TestEnv, servers: &[&FakeServer]) {
    let began = Instant::now();
    loop {
        let servers: Vec<u32> =
            servers.iter().flat_map(|server| server.pids()).filter(|pid| is_alive(*pid)).collect();
        let left = (processes(env), files(env), env.left_behind(), servers);
        if left.0.is_empty() && left.1.is_empty() && left.2.is_empty() && left.3.is_empty() {
            return;
        }
        assert!(began.elapsed() < SOON, "left: {left:#?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn asked(server: &FakeServer, method: &str, times: usize) -> bool {
    server.received().iter().filter(|received| *received == method).count() >= times
}

#[test]
fn a_session_says_what_the_process_itself_would() {
    let env = env();
    let places: Vec<Value> = (0..5000)
        .map(|at| {
            let place = json!({"line": 1, "character": at % 2});
            json!({"uri": format!("file://{}", env.file("m.py").display()), "range": {"start": place, "end": place}})
        })
        .collect();
    let server =
        FakeServer::new(&env, &Behaviour::good().answers("textDocument/references", Value::Array(places)));
    let cases: [&[&str]; 9] = [
        &["hover", "m.py:1:5"],
        &["refs", "m.py:1:5", "--json", "-v"],
        &["refs", "m.py:1:5"],
        &["refs", "m.py:1:5", "--fields", "facts.references.at,status"],
        &["hover", "m.py:9:9", "--json"],
        &["hover", "m.py:9:9"],
        &["def", "py://m#g", "--json"],
        &["diag", "--json", "--fail-on", "error"],
        &["locate", "m.py:1:5", "--json"],
    ];
    let _ = ask(&env, &server, &[]);
    let (session, _) = only(&env);
    for case in cases {
        let words = || case.iter().copied().chain(["--server-command", server.command()]);
        let theirs = env.lanser(words());
        let own = env.lanser(words().chain(["--no-session"]));
        assert_eq!((theirs.code, &theirs.stderr), (own.code, &own.stderr), "{theirs}\n{own}");
        if case.contains(&"--json") {
            let (theirs, own) = (theirs.bundle(), own.bundle());
            assert_eq!(pid(&theirs["meta"]["volatile"]), session);
            assert_ne!(pid(&own["meta"]["volatile"]), session);
            assert_eq!(portable(&theirs), portable(&own));
        } else {
            assert_eq!(theirs.stdout, own.stdout);
        }
    }
}

#[test]
fn fifty_callers_at_once_have_one_session() {
    let env = env();
    let server = FakeServer::new(&env, &Behaviour::good());
    let running: Vec<Running> = (0..50).map(|_| env.start(hover(&server, &[]))).collect();
    let pids: BTreeSet<u32> = running
        .into_iter()
        .map(|running| {
            let answer = running.finish().answer();
            assert_eq!(answer["facts"]["hover"]["markdown"], "said by the fake server");
            pid(&answer["meta"]["volatile"])
        })
        .collect();
    let (session, _) = only(&env);
    assert_eq!(pids, BTreeSet::from([session]));
    assert_eq!(status(&env)[0]["status"]["answered"], 50);
    let _ = env.lanser(["session", "stop"]).text();
    nothing_left(&env, &[&server]);
}

#[test]
fn other_settings_have_another_session() {
    let mut env = env();
    let [one, two] = [(); 2].map(|()| FakeServer::new(&env, &Behaviour::good()));
    let mut seen = BTreeSet::new();
    seen.insert(ask(&env, &one, &[]));
    seen.insert(ask(&env, &two, &[]));
    seen.insert(ask(&env, &one, &["--freshness", "content"]));
    seen.insert(ask(&env, &one, &["--session-memory", "512"]));
    env.set("VIRTUAL_ENV", "/nowhere");
    seen.insert(ask(&env, &one, &[]));
    assert_eq!(seen.len(), 5);
    // What is each caller's own.
    env.set("SOMETHING", "else");
    assert!(seen.contains(&ask(&env, &one, &["--timeout", "7", "-v"])));
    assert_eq!(status(&env).len(), 5);
}

#[test]
fn what_is_left_of_two_killed_processes_is_replaced() {
    let env = env();
    let server = FakeServer::new(&env, &Behaviour::good());
    let first = ask(&env, &server, &[]);
    let (session, supervisor) = only(&env);
    assert_eq!(first, session);
    // The supervisor first, and stopped, so that neither can clean up.
    signal(session, Signal::STOP);
    signal(supervisor, Signal::KILL);
    signal(session, Signal::KILL);
    wait_until("both are gone", SOON, || processes(&env).is_empty());
    assert_eq!(files(&env).len(), 2, "the socket and the folder stay");
    let second = ask(&env, &server, &[]);
    assert_ne!(first, second);
    assert_eq!(files(&env).len(), 2, "of the new one: {:?}", files(&env));
    assert_eq!(only(&env).0, second);
}

#[test]
fn a_session_that_is_killed_is_replaced_without_its_callers_noticing() {
    for whom in ["session", "supervisor"] {
        let env = env();
        let server = FakeServer::new(&env, &Behaviour::good().waits_before("textDocument/hover"));
        let running = env.start(hover(&server, &[]));
        wait_until("the server is asked", SOON, || asked(&server, "waiting", 1));
        let (session, supervisor) = only(&env);
        signal(if whom == "session" { session } else { supervisor }, Signal::KILL);
        if whom == "session" {
            wait_until("another server is asked", SOON, || asked(&server, "waiting", 2));
        }
        server.trigger();
        let answer = running.finish().answer();
        assert_eq!(answer["facts"]["hover"]["markdown"], "said by the fake server");
        let answered = pid(&answer["meta"]["volatile"]);
        // Without its supervisor the session finishes what it has begun, and leaves.
        assert_eq!(answered == session, whom == "supervisor");
        if whom == "session" {
            assert_eq!(only(&env).0, answered);
            let _ = env.lanser(["session", "stop"]).text();
        }
        nothing_left(&env, &[&server]);
    }
}

#[test]
fn a_caller_that_goes_away_takes_its_question_along() {
    let env = env();
    let server = FakeServer::new(&env, &Behaviour::good().hangs_on("textDocument/hover"));
    for end in [Signal::KILL, Signal::INT] {
        let running = env.start(hover(&server, &[]));
        wait_until("the question is there", SOON, || {
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
                wait_until("the server is asked", SOON, || {
                    server.received()[before..].contains(&"textDocument/hover".to_owned())
                });
                running.signal(end);
                running.finish()
            };
            assert_eq!(portable(&output.bundle()), portable(&own.bundle()));
        }
        wait_until("the session knows", SOON, || status(&env)[0]["status"]["asking"] == 0);
    }
    let _ = env.lanser(["session", "stop"]).text();
    nothing_left(&env, &[&server]);
}

/// Kills whatever is there, again and again, in the middle of work.
#[test]
fn nothing_is_left_of_whoever_is_killed_when() {
    let env = env();
    let server = FakeServer::new(&env, &Behaviour::good());
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
fn a_session_is_a_daemon() {
    let env = env();
    let server = FakeServer::new(&env, &Behaviour::good());
    // Descriptors that a shell has and does not close: the session must not hold them.
    std::fs::write(env.path("inherited"), "").unwrap();
    let script = "exec 7>>../inherited 8<. 9>&1; output=$(\"$0\" \"$@\"); printf %s \"$output\" | wc -c";
    let words = ["-c", script, LANSER].into_iter().chain(hover(&server, &[]));
    let output = env.run("/bin/sh", words);
    assert!(output.text().trim().parse::<usize>().unwrap() > 100, "{output}");
    let (session, supervisor) = only(&env);
    if !cfg!(target_os = "linux") {
        return println!("the rest is read from /proc, which only Linux has");
    }
    for process in [session, supervisor] {
        let link = |name: &str| std::fs::read_link(format!("/proc/{process}/{name}")).unwrap();
        assert_eq!(link("cwd"), PathBuf::from("/"));
        for stream in 0..3 {
            assert_eq!(link(&format!("fd/{stream}")), PathBuf::from("/dev/null"), "{stream} of {process}");
        }
        let open: Vec<PathBuf> = std::fs::read_dir(format!("/proc/{process}/fd"))
            .unwrap()
            .filter_map(|entry| std::fs::read_link(entry.unwrap().path()).ok())
            .collect();
        let lock = |path: &PathBuf| path.starts_with(env.path("run")) && path.ends_with("lock");
        assert!(
            open.iter().all(|path| !path.starts_with(env.path("")) || lock(path)),
            "what the caller had: {open:?}"
        );
        if process == supervisor {
            assert_eq!(open.len(), 4, "the streams, and one end of a pipe: {open:?}");
        }
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
        let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        let (group, sid, tty) = (fields[2], fields[3], fields[4]);
        assert_eq!((group, sid, tty), (&*supervisor.to_string(), &*supervisor.to_string(), "0"));
        let environ = std::fs::read(format!("/proc/{process}/environ")).unwrap();
        assert!(environ.is_empty(), "a caller's environment is told, not inherited");
    }
    let own = |path: &PathBuf| path.symlink_metadata().unwrap().permissions().mode() & 0o777;
    for path in files(&env) {
        let socket = path.extension().is_some_and(|extension| extension == "sock");
        assert_eq!(own(&path), if socket { 0o600 } else { 0o700 }, "{}", path.display());
    }
    assert_eq!(own(&env.path("run/lanser")), 0o700);
}

#[test]
fn an_idle_session_leaves_and_uses_no_cpu_before() {
    let env = env();
    let server = FakeServer::new(&env, &Behaviour::good());
    let session = ask(&env, &server, &["--session-idle", "3"]);
    let (_, supervisor) = only(&env);
    let used = |pid: u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let fields: Vec<u64> =
            stat.rsplit_once(')')?.1.split_whitespace().filter_map(|field| field.parse().ok()).collect();
        Some((fields[10], fields[11]))
    };
    let before = (used(session), used(supervisor));
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!((used(session), used(supervisor)), before);
    assert!(is_alive(session));
    nothing_left(&env, &[&server]);
}

#[test]
fn a_session_leaves_with_its_workspace_and_with_its_program() {
    let mut env = env();
    let server = FakeServer::new(&env, &Behaviour::good());
    let first = ask(&env, &server, &[]);
    // The same name is not the same folder.
    std::fs::rename(&env.cwd, env.path("away")).unwrap();
    project().write_to(&env.cwd);
    let second = ask(&env, &server, &[]);
    assert_ne!(first, second);
    std::fs::remove_dir_all(&env.cwd).unwrap();
    nothing_left(&env, &[&server]);

    project().write_to(&env.cwd);
    let program = env.path("lanser");
    std::fs::copy(LANSER, &program).unwrap();
    let words: Vec<String> = hover(&server, &[]).into_iter().map(str::to_owned).collect();
    env.set("LANSER_SESSION", "on");
    let ask = || pid(&env.run(program.to_str().unwrap(), &words).answer()["meta"]["volatile"]);
    let first = ask();
    std::fs::copy(LANSER, env.path("new")).unwrap();
    std::fs::rename(env.path("new"), &program).unwrap();
    assert_ne!(ask(), first);
    wait_until("the old one leaves", SOON, || !is_alive(first));
}

#[test]
fn start_status_and_stop() {
    let env = env();
    let work = env.cwd.to_str().unwrap();
    assert_eq!(env.lanser(["session", "status"]).text(), format!("no session for {work}\n"));
    assert_eq!(env.lanser(["session", "stop"]).text(), format!("no session for {work}\n"));
    assert_eq!(env.lanser(["session", "stop", "--all"]).text(), "no sessions\n");
    assert_eq!(env.lanser(["session", "stop", "--json"]).text(), "[]\n");
    let started: Value = serde_json::from_str(env.lanser(["session", "start", "--json"]).text()).unwrap();
    assert_eq!(started["workspace"], work);
    let again = env.lanser(["session", "start"]);
    assert_eq!(again.text(), format!("session {} for {work}\n", started["pid"]));
    let text = env.lanser(["session", "status"]);
    assert!(text.text().starts_with(&format!("{work} pid {}, up for ", started["pid"])), "{text}");
    let elsewhere = ["-C", env.path("home").to_str().unwrap(), "session", "status"].map(str::to_owned);
    assert!(env.lanser(elsewhere).text().starts_with("no session for "));
    let told = status(&env);
    assert_eq!(told[0]["status"]["answered"], 0);
    assert_eq!(told[0]["status"]["servers"], json!([]));
    let (session, supervisor) = only(&env);
    let stopped = env.lanser(["session", "stop"]);
    assert_eq!(stopped.text(), format!("stopped session {session} for {work}\n"));
    assert!(!is_alive(session) && !is_alive(supervisor), "stop waits");
    assert!(files(&env).is_empty() && processes(&env).is_empty());
}

#[test]
fn a_stopped_session_is_passed_by_and_can_be_ended() {
    let env = env();
    let server = FakeServer::new(&env, &Behaviour::good());
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
fn where_sessions_are_off_there_are_none() {
    let mut env = TestEnv::with(&project());
    let server = FakeServer::new(&env, &Behaviour::good());
    let none = |env: &TestEnv, more: &[&str]| {
        let _ = ask(env, &server, more);
        assert!(files(env).is_empty() && processes(env).is_empty(), "{more:?}");
    };
    for off in ["off", "0", "no", "false"] {
        none(env.set("LANSER_SESSION", off), &[]);
    }
    assert!(env.lanser(["session", "start"]).failure(2).contains("sessions are off"));
    none(env.set("LANSER_SESSION", "on"), &["--no-session"]);
    env.set("LANSER_SESSION", "sometimes");
    let _ = env.lanser(hover(&server, &[])).error(2, "E/USAGE");
    none(env.set("LANSER_SESSION", "").set("CI", "true"), &[]);
    // A question without a server is not worth a session.
    let locate = |env: &TestEnv| {
        let words = ["locate", "m.py:1:5", "--json", "--server-command", server.command()];
        pid(&env.lanser(words).answer()["meta"]["volatile"])
    };
    locate(env.set("LANSER_SESSION", "on"));
    assert!(files(&env).is_empty() && processes(&env).is_empty());
    // It says so although CI is set.
    let session = ask(&env, &server, &[]);
    assert_eq!(only(&env).0, session);
    assert_eq!(locate(&env), session, "but one that is there is asked");
}

#[test]
fn a_runtime_folder_that_others_may_enter_is_not_used() {
    let env = env();
    let server = FakeServer::new(&env, &Behaviour::good());
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
fn without_a_runtime_folder_of_the_system_there_is_one_beside_temporary_files() {
    let mut env = env();
    let server = FakeServer::new(&env, &Behaviour::good());
    env.set("XDG_RUNTIME_DIR", "");
    let session = ask(&env, &server, &[]);
    let name = format!("lanser-{}", rustix::process::geteuid().as_raw());
    assert_eq!(env.left_behind(), [name]);
    // One without a session sweeps up beside it.
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
    let server = FakeServer::new(&env, &Behaviour::good());
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
    assert!(env.lanser(["session", "status"]).failure(71).contains("belongs to this user"));
    assert_eq!(ask_raw(&socket), "", "not a word to another user");
    // Nor does the caller believe another user's folder: it answers by itself.
    let _ = ask(&env, &server, &[]);
    let stop = words.into_iter().chain(["session", "stop", "--all"]);
    assert_eq!(env.run("setpriv", stop).code, Some(0));
    std::fs::remove_dir_all(env.path("run/lanser")).unwrap();
}

/// What a session says to somebody who asks for its status by hand.
fn ask_raw(socket: &std::path::Path) -> String {
    use std::io::{Read as _, Write as _};
    let mut stream = std::os::unix::net::UnixStream::connect(socket).unwrap();
    let hello = br#"{"protocol":1,"wants":"status"}"#;
    // Refused before it is read, perhaps.
    let _ = stream.write_all(&u32::try_from(hello.len()).unwrap().to_be_bytes());
    let _ = stream.write_all(hello);
    let mut said = Vec::new();
    let _ = stream.read_to_end(&mut said);
    String::from_utf8_lossy(&said).into_owned()
}

#[test]
fn nonsense_ends_a_connection_and_not_the_session() {
    use std::io::{Read as _, Write as _};
    let env = env();
    let server = FakeServer::new(&env, &Behaviour::good());
    let session = ask(&env, &server, &[]);
    let socket =
        files(&env).into_iter().find(|path| path.extension().is_some_and(|end| end == "sock")).unwrap();
    assert!(ask_raw(&socket).contains("answered"), "a well-formed one is answered");
    for bytes in [&b"GET / HTTP/1.0\r\n\r\n"[..], &[0xff; 8], &[0, 0, 0, 2, b'{', b'}'], &[0, 0, 0, 9, b'{']]
    {
        let mut stream = std::os::unix::net::UnixStream::connect(&socket).unwrap();
        stream.write_all(bytes).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut said = Vec::new();
        let _ = stream.read_to_end(&mut said);
        assert!(said.is_empty(), "{said:?}");
    }
    assert_eq!(ask(&env, &server, &[]), session);
}

#[test]
fn one_session_too_many_sends_away_the_longest_idle() {
    let env = env();
    let server = FakeServer::new(&env, &Behaviour::good().hangs_on("textDocument/definition"));
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
    wait_until("the longest idle leaves", SOON, || !is_alive(first));
    assert!(is_alive(ninth) && others.iter().all(|pid| is_alive(*pid)));
    // When all are busy, the process answers itself.
    let busy: Vec<Running> = places[1..]
        .iter()
        .map(|place| env.start(["def", "m.py:1:5", "-C", place, "--server-command", server.command()]))
        .collect();
    wait_until("all are asked", SOON, || {
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
fn the_limits_can_stand_in_a_file() {
    let env = env();
    env.write("lanser.toml", "session-idle = 7\nsession-memory = 100\n");
    let doctor = env.lanser(["doctor", "--json"]);
    let report: Value = serde_json::from_str(&doctor.stdout).unwrap();
    assert_eq!(report["settings"]["session-idle"]["value"], "7");
    assert_eq!(report["settings"]["session-memory"]["value"], "100");
    assert_eq!(report["settings"]["session"], json!({"value": "on", "origin": "environment"}));
}

/// The hidden subcommand is no way in.
#[test]
fn only_lanser_starts_sessions() {
    let env = env();
    for words in [&["__session"][..], &["__session", "/tmp", "0123456789abcdef0123", "x"]] {
        let mut command = env.command(words);
        let output = Running::start(command.stdin(Stdio::null())).finish();
        assert!(output.failure(2).contains("for lanser's own use"));
    }
}
