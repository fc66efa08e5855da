//! Servers that are processes, and how they fail: each is a small Python script in place of node.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::{TEST_TIMEOUT, at, options};
use crate::lsp::client::Client;
use crate::lsp::error::LspError;
use crate::lsp::process::{Launch, ProcessExit, ServerProcess, spawn};
use crate::lsp::profile::Profile;
use crate::model::server::ServerKind;
use crate::path::AbsPath;
use crate::text::Position;

const SHORT: Duration = Duration::from_millis(300);

/// The program that takes the place of node.
const NODE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/lsp/tests/fake_node.py");

/// A folder with a server's script.
struct ScriptedServer {
    folder: TempDir,
    launch: Launch,
}

impl ScriptedServer {
    fn new(script: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = AbsPath::new(folder.path()).unwrap();
        let path = root.join("server.js");
        fs::write(path.as_path(), script).unwrap();
        let env: BTreeMap<String, String> = std::env::vars().collect();
        let (program, args) = (at(NODE), vec![path.to_string()]);
        let (programs, python) = (root.clone(), crate::lsp::PythonShim::default());
        let (cwd, temp_dir) = (root.clone(), root);
        let kind = ServerKind::Basedpyright;
        Self {
            folder,
            launch: Launch {
                kind,
                program,
                args,
                env,
                cwd,
                guard: None,
                temp_dir,
                cancellable: true,
                python,
                programs,
            },
        }
    }

    fn start(&self) -> (crate::lsp::Connection, ServerProcess) {
        spawn(&self.launch).unwrap()
    }

    async fn client(&self, within: Duration) -> (Result<Client, LspError>, u32) {
        let (connection, process) = self.start();
        let id = process.id();
        let profile = Profile::of(ServerKind::Basedpyright);
        (Client::initialize(connection, Some(process), profile, options(within)).await, id)
    }

    fn cancellation_folders(&self) -> usize {
        let entries = fs::read_dir(self.folder.path()).unwrap().flatten();
        entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("lanser-")).count()
    }
}

/// Waits until the process is gone; a zombie counts as gone.
async fn assert_gone(id: u32) {
    let begun = Instant::now();
    loop {
        let state = std::process::Command::new("ps").args(["-o", "stat=", "-p", &id.to_string()]).output();
        let state = String::from_utf8(state.unwrap().stdout).unwrap();
        if state.trim().is_empty() || state.starts_with('Z') {
            return;
        }
        assert!(begun.elapsed() < TEST_TIMEOUT, "process {id} is still there: {state}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn shutdown_ends_the_server_and_its_child_process() {
    let server = ScriptedServer::new(
        r#"
helper = subprocess.Popen(["sleep", "1000"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
open("helper", "w").write(str(helper.pid))
open("arguments", "w").write(json.dumps([sys.argv[1:], os.environ.get("TMPDIR"), os.getcwd()]))
initialize()
write(id=read()["id"], result=None)
assert read()["method"] == "exit"
"#,
    );
    let (client, id) = server.client(TEST_TIMEOUT).await;
    assert_eq!(server.cancellation_folders(), 1);
    assert_eq!(client.as_ref().unwrap().process_id(), Some(id));
    assert_eq!(client.unwrap().shutdown(TEST_TIMEOUT).await, Ok(()));
    assert_eq!(server.cancellation_folders(), 0);
    assert_gone(id).await;
    let helper = fs::read_to_string(server.folder.path().join("helper")).unwrap();
    assert_gone(helper.parse().unwrap()).await;
    let arguments = fs::read_to_string(server.folder.path().join("arguments")).unwrap();
    let arguments: (Vec<String>, String, String) = serde_json::from_str(&arguments).unwrap();
    assert_eq!(arguments.0[..3], ["--max-old-space-size=4096", &server.launch.args[0], "--stdio"]);
    assert!(arguments.0[3].starts_with("--cancellationReceive=file:lanser-"));
    assert!(arguments.1.starts_with(&format!("{}/lanser-", server.launch.temp_dir)), "{}", arguments.1);
}

#[tokio::test]
async fn a_server_that_never_answers_is_killed() {
    let server = ScriptedServer::new("time.sleep(1000)");
    let (client, id) = server.client(SHORT).await;
    let timeout = LspError::Timeout { method: "initialize".to_owned(), after: SHORT };
    assert_eq!(client.unwrap_err(), timeout);
    assert_gone(id).await;
    assert_eq!(server.cancellation_folders(), 0);
}

#[tokio::test]
async fn a_server_that_violates_the_protocol_is_killed() {
    let server = ScriptedServer::new("print('bad option', flush=True); time.sleep(1000)");
    let (client, id) = server.client(TEST_TIMEOUT).await;
    assert!(matches!(&client, Err(LspError::Protocol(what)) if what.contains("bad option")), "{client:?}");
    assert_gone(id).await;
}

#[tokio::test]
async fn a_crash_is_reported_with_its_standard_error() {
    let server = ScriptedServer::new(
        r#"
initialize()
read()
sys.stdout.buffer.write(b"Content-Length: 100\r\n\r\n{\"id\"")
sys.stdout.buffer.flush()
for line in range(100): print("noise", line, file=sys.stderr)
print("FATAL ERROR: heap out of memory", file=sys.stderr)
sys.exit(134)
"#,
    );
    let (client, _) = server.client(TEST_TIMEOUT).await;
    let client = client.unwrap();
    let error = client.requests(TEST_TIMEOUT).hover(&at("/w/a.py"), Position::new(0, 0)).await.unwrap_err();
    let LspError::Crashed { exit, stderr } = &error else { panic!("{error:?}") };
    assert_eq!(*exit, ProcessExit::Code(134));
    assert!(stderr.ends_with("FATAL ERROR: heap out of memory"), "{stderr}");
    assert_eq!(stderr.lines().count(), 64);
    assert_eq!(client.ready(TEST_TIMEOUT).await.unwrap_err(), error);
    assert_eq!(client.shutdown(TEST_TIMEOUT).await.unwrap_err(), error);
}

#[tokio::test]
async fn a_killed_server_is_reported_with_its_signal() {
    let server = ScriptedServer::new("initialize(); time.sleep(1000)");
    let (client, id) = server.client(TEST_TIMEOUT).await;
    let client = client.unwrap();
    let waiting = client.requests(TEST_TIMEOUT).hover(&at("/w/a.py"), Position::new(0, 0));
    let pid = rustix::process::Pid::from_raw(id.cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    assert!(matches!(waiting.await, Err(LspError::Crashed { exit: ProcessExit::Signal(9), .. })));
}

#[tokio::test]
async fn a_server_that_closes_its_output_and_lives_on_has_ended_the_stream() {
    let server = ScriptedServer::new("initialize(); os.close(1); time.sleep(1000)");
    let (client, id) = server.client(TEST_TIMEOUT).await;
    let client = client.unwrap();
    let answer = client.requests(TEST_TIMEOUT).hover(&at("/w/a.py"), Position::new(0, 0)).await;
    assert_eq!(answer, Err(LspError::EndOfStream));
    drop(client);
    assert_gone(id).await;
}

#[tokio::test]
async fn a_server_that_ignores_shutdown_is_killed() {
    let server = ScriptedServer::new("initialize()\nwhile True: time.sleep(1000)");
    let (client, id) = server.client(TEST_TIMEOUT).await;
    let begun = Instant::now();
    let error = client.unwrap().shutdown(SHORT).await.unwrap_err();
    assert_eq!(error, LspError::Timeout { method: "shutdown".to_owned(), after: SHORT });
    assert!(begun.elapsed() < Duration::from_secs(5));
    assert_gone(id).await;
    assert_eq!(server.cancellation_folders(), 0);
}

#[tokio::test]
async fn a_server_that_ignores_exit_is_killed() {
    let server = ScriptedServer::new("initialize(); write(id=read()['id'], result=None); time.sleep(1000)");
    let (client, id) = server.client(TEST_TIMEOUT).await;
    let error = client.unwrap().shutdown(SHORT).await.unwrap_err();
    assert_eq!(error, LspError::Timeout { method: "exit".to_owned(), after: SHORT });
    assert_gone(id).await;
}

#[tokio::test]
async fn a_busy_server_is_cancelled_by_a_file() {
    let server = ScriptedServer::new(
        r#"
initialize()
name = [a for a in sys.argv if a.startswith("--cancellationReceive=file:")][0].split(":", 1)[1]
folder = os.path.join(os.environ["TMPDIR"], "python-languageserver-cancellation", name)
request = read()
# Busy: reads nothing, looks for the file only.
while not os.path.exists(os.path.join(folder, "cancellation-%d.tmp" % request["id"])): time.sleep(0.01)
write(id=request["id"], error={"code": -32800, "message": "cancelled"})
assert read()["method"] == "$/cancelRequest"
request = read()
write(id=request["id"], result={"contents": str(len(os.listdir(folder)))})
read()
"#,
    );
    let (client, _) = server.client(TEST_TIMEOUT).await;
    let client = client.unwrap();
    let position = Position::new(0, 0);
    let answer = client.requests(SHORT).hover(&at("/w/a.py"), position).await;
    assert!(matches!(answer, Err(LspError::Timeout { .. })), "{answer:?}");
    client.wait_for_cancelled(TEST_TIMEOUT).await.unwrap();
    let left = client.requests(TEST_TIMEOUT).hover(&at("/w/a.py"), position).await.unwrap().unwrap();
    assert_eq!(left.markdown, "0", "the file is removed once the call is answered");
}

#[tokio::test]
async fn a_file_that_is_not_a_program_cannot_be_started() {
    let mut server = ScriptedServer::new("");
    server.launch.program = at("/no/such/program");
    let error = spawn(&server.launch).unwrap_err();
    assert!(matches!(&error, LspError::Spawn { program, .. } if program == "/no/such/program"), "{error:?}");
    assert_eq!(server.cancellation_folders(), 0);
}
