//! Background sessions: one for all callers, with the same answers as without; well-behaved daemons that leave nothing behind,
//! however they end.

/// Killed processes.
mod killed;
/// Who gets a session, and limits.
mod policy;

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::{
    Behavior, FakeServer, LANSER, Project, Running, TestEnv, is_alive, portable, wait_until,
};

/// Limit for the disappearance of everything that belongs to an ended session.
const CLEANUP_TIMEOUT: Duration = Duration::from_secs(20);

fn project() -> Project {
    Project::parse("//- /m.py\ndef $0f(): ...\nf()\n")
}

fn env() -> TestEnv {
    TestEnv::with(&project()).with_sessions()
}

/// The arguments of a request that the fake server answers.
fn hover<'a>(server: &'a FakeServer, more: &[&'a str]) -> Vec<&'a str> {
    let mut words = vec!["hover", "m.py:1:5", "--json", "--server-command", server.command()];
    words.extend(more);
    words
}

/// Sends a request, and returns the process id of the session that answered.
#[track_caller]
fn ask(env: &TestEnv, server: &FakeServer, more: &[&str]) -> u32 {
    let answer = env.lanser(hover(server, more)).answer();
    assert_eq!(answer["facts"]["hover"]["markdown"], "said by the fake server", "{answer}");
    pid(&answer["meta"]["volatile"])
}

fn pid(value: &Value) -> u32 {
    value["pid"].as_u64().unwrap().try_into().unwrap()
}

/// The output of `session status --all`.
fn status(env: &TestEnv) -> Vec<Value> {
    let output = env.lanser(["session", "status", "--all", "--json"]);
    assert_eq!(output.code, Some(0), "{output}");
    serde_json::from_str(&output.stdout).unwrap()
}

/// The process ids of the only session and its supervisor.
#[track_caller]
fn only(env: &TestEnv) -> (u32, u32) {
    let status = status(env);
    assert_eq!(status.len(), 1, "{status:?}");
    (pid(&status[0]), status[0]["supervisor"].as_u64().unwrap().try_into().unwrap())
}

fn signal(pid: u32, signal: Signal) {
    // The process may have ended just now.
    let _ = kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), signal);
}

/// The files in the runtime folder.
fn files(env: &TestEnv) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(env.path("run/lanser")).into_iter().flatten();
    entries.map(|entry| entry.unwrap().path()).collect()
}

/// The session processes in this environment.
fn processes(env: &TestEnv) -> Vec<String> {
    let listed = Command::new("ps").args(["-axo", "stat=,pid=,args="]).output().unwrap();
    let (run, text) = (env.path("run"), String::from_utf8_lossy(&listed.stdout).into_owned());
    let ours = |line: &&str| line.contains("__session") && line.contains(run.to_str().unwrap());
    text.lines().filter(ours).filter(|line| !line.starts_with('Z')).map(str::to_owned).collect()
}

/// Waits until no process, server or file of any session remains.
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
        assert!(began.elapsed() < CLEANUP_TIMEOUT, "left: {left:#?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn received_times(server: &FakeServer, method: &str, times: usize) -> bool {
    server.received().iter().filter(|received| *received == method).count() >= times
}

/// A process that writes does so itself, but a running session makes the plan, with its warm server.
#[test]
fn a_session_plans_what_another_process_writes() {
    let env = TestEnv::pyright(&project()).with_sessions();
    env.lanser(["refs", "py://m#f", "--json"]).answer();
    let made = env.lanser(["rename", "py://m#f", "g", "--apply", "--json"]).answer();
    assert_eq!(made["meta"]["volatile"]["served_from"], "memo", "{made}");
    assert!(made["edits"]["transaction"]["id"].is_string(), "{made}");
    assert_eq!(std::fs::read_to_string(env.file("m.py")).unwrap(), "def g(): ...\ng()\n");
}

#[test]
fn a_session_answers_like_the_process_itself() {
    let env = env();
    let places: Vec<Value> = (0..5000)
        .map(|at| {
            let place = json!({"line": 1, "character": at % 2});
            json!({"uri": format!("file://{}", env.file("m.py").display()), "range": {"start": place, "end": place}})
        })
        .collect();
    let server =
        FakeServer::new(&env, &Behavior::good().answers("textDocument/references", Value::Array(places)));
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
    let server = FakeServer::new(&env, &Behavior::good());
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
    assert_eq!(server.pids().len(), 1, "and one server, that received {:?}", server.received());
    let _ = env.lanser(["session", "stop"]).text();
    nothing_left(&env, &[&server]);
}

#[test]
fn a_session_is_a_daemon() {
    let env = env();
    let server = FakeServer::new(&env, &Behavior::good());
    // Descriptors that a shell leaves open: the session must not inherit them.
    std::fs::write(env.path("inherited"), "").unwrap();
    let script = "exec 7>>../inherited 8<. 9>&1; output=$(\"$0\" \"$@\"); printf %s \"$output\" | wc -c";
    // A session that inherited them would keep this pipe open as long as it lives.
    let words = ["-c", script, LANSER].into_iter().chain(hover(&server, &["--session-idle", "30"]));
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
        let text = String::from_utf8(environ).unwrap();
        let words: Vec<&str> = text.split_terminator('\0').collect();
        let own = ["MALLOC_ARENA_MAX=1", "MALLOC_MMAP_THRESHOLD_=16384", "MALLOC_TRIM_THRESHOLD_=1048576"];
        assert_eq!(words, own, "a caller's environment is told, not inherited");
    }
    let own = |path: &PathBuf| path.symlink_metadata().unwrap().permissions().mode() & 0o777;
    for path in files(&env) {
        let socket = path.extension().is_some_and(|extension| extension == "sock");
        assert_eq!(own(&path), if socket { 0o600 } else { 0o700 }, "{}", path.display());
    }
    assert_eq!(own(&env.path("run/lanser")), 0o700);
}

#[test]
fn an_idle_session_uses_no_cpu_and_ends() {
    let env = env();
    let server = FakeServer::new(&env, &Behavior::good());
    let session = ask(&env, &server, &["--session-idle", "3"]);
    let (_, supervisor) = only(&env);
    let used = |pid: u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let fields: Vec<u64> =
            stat.rsplit_once(')')?.1.split_whitespace().filter_map(|field| field.parse().ok()).collect();
        Some(fields[10] + fields[11])
    };
    let before = (used(session).unwrap(), used(supervisor).unwrap());
    std::thread::sleep(Duration::from_secs(1));
    // In ticks of 10 ms, of which the kernel may account one for what was done before.
    let after = (used(session).unwrap(), used(supervisor).unwrap());
    assert!(after.0 - before.0 <= 1 && after.1 - before.1 <= 1, "{before:?} {after:?}");
    assert!(is_alive(session));
    nothing_left(&env, &[&server]);
}

#[test]
fn a_session_ends_when_its_workspace_or_program_is_deleted() {
    let mut env = env();
    let server = FakeServer::new(&env, &Behavior::good());
    let first = ask(&env, &server, &[]);
    // A new folder of the same name is another workspace.
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
    wait_until("the old one leaves", CLEANUP_TIMEOUT, || !is_alive(first));
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

/// The raw reply of a session to a hand-written request.
fn ask_raw(socket: &std::path::Path) -> String {
    use std::io::{Read as _, Write as _};
    let mut stream = std::os::unix::net::UnixStream::connect(socket).unwrap();
    let hello = br#"{"protocol":1,"wants":"status"}"#;
    // It may be refused before it is read.
    let _ = stream.write_all(&u32::try_from(hello.len()).unwrap().to_be_bytes());
    let _ = stream.write_all(hello);
    let mut said = Vec::new();
    let _ = stream.read_to_end(&mut said);
    String::from_utf8_lossy(&said).into_owned()
}

#[test]
fn an_invalid_request_ends_only_its_connection() {
    use std::io::{Read as _, Write as _};
    let env = env();
    let server = FakeServer::new(&env, &Behavior::good());
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

/// Ignores all progress messages.
struct SilentProgress;

impl lanser::internal::engine::Progress for SilentProgress {
    fn step(&self, _text: &str) {}

    fn notify(&self, _text: &str) {}

    fn done(&self) {}
}

#[test]
fn one_connection_serves_many_requests() {
    use lanser::internal::engine::Settings;
    use lanser::internal::path::AbsPath;
    use lanser::internal::serve::session::{RuntimeDir, SessionClient, SessionOptions};
    use lanser::model::request::{Command as Question, Request};

    let env = env();
    let server = FakeServer::new(&env, &Behavior::good());
    let at = |path: PathBuf| AbsPath::new(path).unwrap();
    let settings = Settings {
        trace: None,
        root: at(env.cwd.clone()),
        copy_of: None,
        environment_of: None,
        server: lanser::model::server::ServerKind::Pyright,
        server_version: None,
        server_command: Some(at(server.command().into())),
        python: None,
        timeout: Duration::from_secs(20),
        offline: true,
        trust_workspace: false,
        trust: lanser::internal::workspace::snapshot::ChangeDetection::Stat,
        cache: at(TestEnv::cache()),
        keep: true,
        temp: at(env.path("tmp")),
        guard: Some(at(LANSER.into())),
        search_path: crate::support::search_path(),
        environment: std::collections::BTreeMap::new(),
        verbose: false,
        threads: 2,
        session_memory: 1 << 32,
        progress: std::sync::Arc::new(SilentProgress),
    };
    let terms = SessionOptions { idle_timeout: Duration::from_secs(30) };
    let place = RuntimeDir::new(Some(&at(env.path("run"))), &at(env.path("tmp")));
    let selector =
        lanser::selector::parse("m.py:1:5", lanser::internal::text::ColumnUnit::default()).unwrap();
    let request = Request::about(Question::Hover, selector);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut caller = SessionClient::new(place.clone(), settings.clone(), terms, true).unwrap();
        let mut ask = async || {
            let reply = caller.send(&request).await.unwrap();
            assert_eq!((reply.exit_code, reply.symbol), (0, None));
            let bundle: Value = serde_json::from_slice(&reply.bundle).unwrap();
            assert_eq!(bundle["facts"]["hover"]["markdown"], "said by the fake server");
            pid(&bundle["meta"]["volatile"])
        };
        let first = ask().await;
        for _ in 0..4 {
            assert_eq!(ask().await, first);
        }
        assert_eq!(status(&env)[0]["status"]["answered"], 5);
        // An open connection to an ended session does not prevent the use of the next one.
        signal(first, Signal::KILL);
        let second = ask().await;
        assert_ne!(first, second);
        assert_eq!(ask().await, second);
        let other = SessionOptions { idle_timeout: Duration::from_secs(31) };
        let none =
            SessionClient::new(place, settings, other, false).unwrap().send(&request).await.unwrap_err();
        assert_eq!(none.to_string(), "no session is running");
    });
}

#[test]
fn a_selector_that_resolves_elsewhere_is_not_answered_from_the_memo() {
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
    let words = ["def", "m.py:2:1?v=git:HEAD", "--json", "--server-command", server.command()];
    let at_head = env.lanser(words).answer();
    assert_eq!(portable(&env.lanser(words).answer()), portable(&at_head));
    git(&["reset", "-q", "--soft", "HEAD~1"]);
    let before = env.lanser(words);
    let own = env.lanser(words.iter().copied().chain(["--no-session", "--no-cache"]));
    assert_eq!((before.code, portable(&before.bundle())), (own.code, portable(&own.bundle())));
    assert_ne!(portable(&before.bundle()), portable(&at_head));
}
