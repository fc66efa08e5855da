//! Test support: an isolated environment ([`TestEnv`]), projects written as one string ([`Project`]), and a fake language server
//! with configurable behavior ([`FakeServer`]).
//!
//! lanser itself installs the pinned servers, once per `target` folder; see [`TestEnv::cache`].

mod fake_server;
mod output;
mod project;
mod rpc;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

pub(crate) use fake_server::{Behavior, FakeServer};
pub(crate) use output::{Output, portable};
pub(crate) use project::Project;
pub(crate) use rpc::{Framing, RpcClient};

/// The binary under test.
pub(crate) const LANSER: &str = env!("CARGO_BIN_EXE_lanser");

/// Limit for every run of lanser, so that a hang fails its test.
const RUN_TIMEOUT: Duration = Duration::from_secs(240);

/// An isolated environment for lanser: a folder with a home, a folder for temporary files and a workspace, and environment
/// variables of which only PATH comes from the machine.
pub(crate) struct TestEnv {
    /// Deleted at the end of the test.
    _folder: tempfile::TempDir,
    root: PathBuf,
    vars: BTreeMap<OsString, OsString>,
    /// The working directory of lanser, by default the workspace.
    pub(crate) cwd: PathBuf,
}

impl TestEnv {
    /// An environment with an empty workspace.
    pub(crate) fn new() -> Self {
        Self::named("work")
    }

    /// An environment whose workspace folder has this name.
    pub(crate) fn named(workspace: &str) -> Self {
        let folder = tempfile::Builder::new().prefix("lanser-it-").tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in ["home", "tmp", "run"] {
            std::fs::create_dir(root.join(name)).unwrap();
        }
        let cwd = root.join(workspace);
        std::fs::create_dir_all(&cwd).unwrap();
        let mut env = Self { _folder: folder, root, vars: BTreeMap::new(), cwd };
        env.set("PATH", machine("PATH").unwrap_or_default());
        env.set("HOME", env.root.join("home"));
        env.set("TMPDIR", env.root.join("tmp"));
        env.set("XDG_RUNTIME_DIR", env.root.join("run"));
        env.set("LANSER_SESSION", "off");
        env.set("TZ", "UTC");
        env.set("LC_ALL", "C.UTF-8");
        // The installed servers, and the index of the machine's packages, are shared by all tests; the other caches belong to this test.
        for shared in ["servers", "installed"] {
            std::fs::create_dir_all(Self::cache().join(shared)).unwrap();
        }
        std::fs::create_dir(env.path("test-cache")).unwrap();
        for name in ["servers", "installed", "node-versions.json"] {
            std::os::unix::fs::symlink(Self::cache().join(name), env.path("test-cache").join(name)).unwrap();
        }
        env.set("LANSER_CACHE_DIR", env.path("test-cache"));
        env
    }

    /// An environment with a project in the workspace.
    pub(crate) fn with(project: &Project) -> Self {
        let env = Self::new();
        project.write_to(&env.cwd);
        env
    }

    /// The same with background sessions, which are stopped at the end of the test.
    pub(crate) fn with_sessions(mut self) -> Self {
        self.set("LANSER_SESSION", "on");
        self
    }

    /// An environment with a project and the pinned Pyright.
    pub(crate) fn pyright(project: &Project) -> Self {
        install("pyright");
        Self::with(project)
    }

    /// The same with a session, for tests that ask several questions about one project: only the first one starts a server.
    pub(crate) fn pyright_session(project: &Project) -> Self {
        Self::pyright(project).with_sessions()
    }

    /// An environment with a project and the pinned basedpyright.
    pub(crate) fn basedpyright(project: &Project) -> Self {
        install("basedpyright");
        Self::with(project)
    }

    /// An environment with a project and the pinned ty, as the default server.
    pub(crate) fn ty(project: &Project) -> Self {
        install("ty");
        let mut env = Self::with(project);
        env.set("LANSER_SERVER", "ty");
        env
    }

    /// The cache that all tests share: installed servers and known Node.js versions.
    pub(crate) fn cache() -> PathBuf {
        Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache")
    }

    /// Sets an environment variable.
    pub(crate) fn set(&mut self, name: &str, value: impl Into<OsString>) -> &mut Self {
        self.vars.insert(name.into(), value.into());
        self
    }

    /// Passes on what the package managers need to reach their registries from this machine: their own variables, proxy and
    /// certificate settings, and the user's npm configuration.
    pub(crate) fn with_network(mut self) -> Self {
        let passes = |name: &str| {
            let name = name.to_ascii_uppercase();
            ["NPM_CONFIG_", "PIP_", "SSL_CERT", "NODE_EXTRA_CA", "REQUESTS_CA", "PYENV_"]
                .iter()
                .any(|prefix| name.starts_with(prefix))
                || name.ends_with("_PROXY")
        };
        for (name, value) in machine_all() {
            if name.to_str().is_some_and(passes) {
                self.vars.insert(name, value);
            }
        }
        if let Some(home) = machine("HOME").map(PathBuf::from) {
            let npmrc = home.join(".npmrc");
            if npmrc.is_file() && !self.vars.contains_key(OsStr::new("NPM_CONFIG_USERCONFIG")) {
                self.set("NPM_CONFIG_USERCONFIG", npmrc);
            }
        }
        // Packages are downloaded once for all tests that install them.
        self.set("NPM_CONFIG_CACHE", Path::new(env!("CARGO_TARGET_TMPDIR")).join("npm"));
        self.set("PIP_CACHE_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("pip"));
        self
    }

    /// A path in the root folder of the environment.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// A path in the workspace.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.cwd.join(name)
    }

    /// Writes a file of the workspace.
    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.file(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    /// A folder with links to only these programs of the machine, for use as PATH.
    pub(crate) fn path_of(&self, programs: &[&str]) -> PathBuf {
        let folder = tempfile::Builder::new().prefix("bin-").tempdir_in(&self.root).unwrap().keep();
        for program in programs {
            let found = if *program == "python3" { python() } else { which(program) };
            let found = found.unwrap_or_else(|| panic!("{program} is not on PATH"));
            std::os::unix::fs::symlink(found, folder.join(program)).unwrap();
        }
        folder
    }

    /// The names of the files left in the folder for temporary files.
    pub(crate) fn left_behind(&self) -> Vec<String> {
        let names = std::fs::read_dir(self.path("tmp")).unwrap();
        names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    /// Paths of this machine, which must not be in the hash domain of any bundle.
    pub(crate) fn machine_paths(&self) -> Vec<String> {
        let mut paths: Vec<String> =
            [&self.root, &Self::cache()].map(|path| path.to_str().unwrap().to_owned()).into();
        paths.extend(machine("HOME").and_then(|home| home.into_string().ok()).filter(|home| home.len() > 1));
        paths
    }

    /// A lanser command, ready to be started.
    pub(crate) fn command<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Command {
        let mut command = Command::new(LANSER);
        command.args(args).env_clear().envs(&self.vars).current_dir(&self.cwd);
        command
    }

    /// Runs lanser and waits for its end.
    pub(crate) fn lanser<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Output {
        self.start(args).finish()
    }

    /// Runs lanser under another umask, given in shell notation.
    pub(crate) fn lanser_with_umask<A: AsRef<OsStr>>(
        &self,
        umask: &str,
        args: impl IntoIterator<Item = A>,
    ) -> Output {
        let script = format!("umask {umask}; exec \"$0\" \"$@\"");
        let shell_args = ["-c", &script, LANSER].map(OsString::from).into_iter();
        self.run("/bin/sh", shell_args.chain(args.into_iter().map(|arg| arg.as_ref().to_owned())))
    }

    /// Runs another program in this environment.
    pub(crate) fn run<A: AsRef<OsStr>>(&self, program: &str, args: impl IntoIterator<Item = A>) -> Output {
        let mut command = Command::new(program);
        command.args(args).env_clear().envs(&self.vars).current_dir(&self.cwd).stdin(Stdio::null());
        Running::start(&mut command).finish()
    }

    /// Runs lanser with `input` on its standard input.
    pub(crate) fn lanser_with_input<A: AsRef<OsStr>>(
        &self,
        args: impl IntoIterator<Item = A>,
        input: impl AsRef<[u8]>,
    ) -> Output {
        let mut command = self.command(args);
        let mut running = Running::start(command.stdin(Stdio::piped()));
        // A command that does not read its input may have ended already.
        let _ = running.child.stdin.take().unwrap().write_all(input.as_ref());
        running.finish()
    }

    /// Starts lanser without waiting for its end.
    pub(crate) fn start<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Running {
        Running::start(self.command(args).stdin(Stdio::null()))
    }
}

impl Drop for TestEnv {
    fn drop(&mut self) {
        if self.vars.get(OsStr::new("LANSER_SESSION")).is_some_and(|value| value == "on") {
            // The test may have deleted the workspace.
            let mut stop = self.command(["session", "stop", "--all"]);
            let _ = Running::start(stop.current_dir(&self.root).stdin(Stdio::null())).finish();
        }
    }
}

/// A running lanser process. Dropping it kills the process.
pub(crate) struct Running {
    child: Child,
    readers: Vec<std::thread::JoinHandle<Vec<u8>>>,
    line: String,
    began: Instant,
}

impl Running {
    /// Starts a command and collects its output.
    pub(crate) fn start(command: &mut Command) -> Self {
        let line = format!("{:?}", command.get_args().collect::<Vec<_>>());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        // A freshly written program counts as busy while the child of another test, forked in that moment, has it open.
        let mut child = loop {
            match command.spawn() {
                Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy => {
                    std::thread::sleep(Duration::from_millis(20));
                }
                spawned => break spawned.unwrap(),
            }
        };
        let (mut stdout, mut stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        let out = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            stdout.read_to_end(&mut bytes).unwrap();
            bytes
        });
        let err = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            stderr.read_to_end(&mut bytes).unwrap();
            bytes
        });
        Self { child, readers: vec![out, err], line, began: Instant::now() }
    }

    /// Its process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(self.id().cast_signed()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Waits for its end.
    pub(crate) fn finish(mut self) -> Output {
        let mut pause = Duration::from_millis(1);
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(self.began.elapsed() < RUN_TIMEOUT, "lanser {} did not end", self.line);
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(20));
        };
        let elapsed = self.began.elapsed();
        let mut texts =
            self.readers.drain(..).map(|reader| String::from_utf8(reader.join().unwrap()).unwrap());
        let (stdout, stderr) = (texts.next().unwrap(), texts.next().unwrap());
        drop(texts);
        Output { code: status.code(), stdout, stderr, elapsed, line: self.line.clone() }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until a condition holds.
#[track_caller]
pub(crate) fn wait_until(what: &str, within: Duration, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < within, "not within {within:?}: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Whether a process is alive; a zombie is not.
pub(crate) fn is_alive(pid: u32) -> bool {
    let state = Command::new("ps").args(["-o", "stat=", "-p", &pid.to_string()]).output().unwrap();
    let state = String::from_utf8(state.stdout).unwrap();
    !state.trim().is_empty() && !state.trim().starts_with('Z')
}

/// Installs a supported server into the cache of the run, once. The name may end in `@VERSION`.
pub(crate) fn install(name: &str) {
    static INSTALLED: Mutex<BTreeMap<String, Arc<OnceLock<()>>>> = Mutex::new(BTreeMap::new());
    let once = INSTALLED.lock().unwrap().entry(name.to_owned()).or_default().clone();
    once.get_or_init(|| {
        let env = TestEnv::new().with_network();
        let output = env.lanser(["server", "install", name]);
        assert_eq!(output.code, Some(0), "{name} cannot be installed:\n{}", output.stderr);
        // What was found out about the Node.js of this machine is shared, too.
        let _ = env.lanser(["server", "which"]);
        let (found, shared) = ("test-cache/node-versions.json", TestEnv::cache().join("node-versions.json"));
        if env.path(found).is_file() && !shared.exists() {
            let copy = shared.with_extension(std::process::id().to_string());
            std::fs::copy(env.path(found), &copy).unwrap();
            std::fs::rename(copy, shared).unwrap();
        }
    });
}

/// A virtual environment with these packages from PyPI, made once for each list.
pub(crate) fn venv(env: &TestEnv, packages: &[&str]) -> PathBuf {
    let name = format!("venv-{}", packages.join("-").replace(['=', '.'], "_"));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let python = folder.join("bin/python");
    let done = folder.join("installed");
    if !done.exists() {
        let made = env.run("python3", ["-m", "venv", "--clear", folder.to_str().unwrap()]);
        assert_eq!(made.code, Some(0), "{made}");
        let pip = ["-m", "pip", "install", "-q", "--disable-pip-version-check"];
        let installed = env.run(python.to_str().unwrap(), pip.iter().chain(packages));
        assert_eq!(installed.code, Some(0), "{packages:?} cannot be installed: {installed}");
        std::fs::write(done, "").unwrap();
    }
    python
}

/// The folders of the machine's PATH.
pub(crate) fn search_path() -> Vec<PathBuf> {
    std::env::split_paths(&machine("PATH").unwrap_or_default()).collect()
}

/// A program on PATH, links followed.
pub(crate) fn which(program: &str) -> Option<PathBuf> {
    let path = machine("PATH")?;
    let found =
        std::env::split_paths(&path).map(|folder| folder.join(program)).find(|path| path.is_file())?;
    found.canonicalize().ok()
}

/// The real interpreter of `python3` on PATH, which may be a script of a version manager.
pub(crate) fn python() -> Option<PathBuf> {
    let output = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output().ok()?;
    Some(PathBuf::from(String::from_utf8(output.stdout).ok()?.trim()))
}

#[expect(
    clippy::disallowed_methods,
    reason = "the environment of the test process is read here and through `machine_all` only"
)]
pub(crate) fn machine(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

fn machine_all() -> impl Iterator<Item = (OsString, OsString)> {
    std::env::vars_os()
}
