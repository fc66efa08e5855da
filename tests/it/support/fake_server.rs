//! A fake language server that misbehaves on demand: a node script in a folder that looks like the pinned Pyright.
//!
//! It answers every request normally except where its [`Behavior`] says otherwise; `fake_server.js` implements each option.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::TestEnv;

/// The package of a fake server.
pub(crate) struct FakeServer {
    folder: PathBuf,
}

/// Deviations of a fake server from normal behavior. Methods are those of LSP; `start` is the moment before the first message.
#[derive(Debug, Clone, Default)]
pub(crate) struct Behavior(Vec<(String, Value)>);

impl Behavior {
    /// A normal server.
    pub(crate) fn good() -> Self {
        Self::default()
    }

    /// Never answers the method.
    pub(crate) fn hangs_on(self, method: &str) -> Self {
        self.with(&format!("hang {method}"), json!(true))
    }

    /// Writes invalid data to its standard output.
    pub(crate) fn prints_garbage_on(self, method: &str) -> Self {
        self.with(&format!("garbage {method}"), json!(true))
    }

    /// Exits with a code after a message on standard error.
    pub(crate) fn dies_on(self, method: &str, code: i32, stderr: &str) -> Self {
        self.with(&format!("die {method}"), json!({"code": code, "stderr": stderr}))
    }

    /// Closes its standard output and keeps running.
    pub(crate) fn goes_silent_on(self, method: &str) -> Self {
        self.with(&format!("silent {method}"), json!(true))
    }

    /// Does not end on `exit`, on signals, or when its input ends.
    pub(crate) fn ignores_shutdown(self) -> Self {
        self.with("ignores shutdown", json!(true))
    }

    /// Fails the method this many times with ContentModified (-32801) before it answers.
    pub(crate) fn fails_as_modified(self, method: &str, times: u32) -> Self {
        self.with(&format!("fail as modified {method}"), json!(times))
    }

    /// Fails the method with this code of JSON-RPC.
    pub(crate) fn fails_on(self, method: &str, code: i64) -> Self {
        self.with(&format!("fail {method}"), json!(code))
    }

    /// Uses this position encoding.
    pub(crate) fn position_encoding(self, encoding: &str) -> Self {
        self.with("encoding", json!(encoding))
    }

    /// Does not have the capability, such as `hoverProvider`.
    pub(crate) fn lacks(self, capability: &str) -> Self {
        self.with(&format!("lack {capability}"), json!(true))
    }

    /// Answers the method only after the file `trigger` appears in the folder of its package.
    pub(crate) fn waits_before(self, method: &str) -> Self {
        self.with(&format!("wait {method}"), json!(true))
    }

    /// Answers the method with this result.
    pub(crate) fn answers(self, method: &str, result: Value) -> Self {
        self.with(&format!("answer {method}"), result)
    }

    /// Has the capability with this value.
    pub(crate) fn offers(self, capability: &str, value: Value) -> Self {
        self.with(&format!("offer {capability}"), value)
    }

    /// Requests these edits, one after the other, before it answers the method.
    pub(crate) fn edits_on(self, method: &str, edits: Value) -> Self {
        self.with(&format!("edits on {method}"), edits)
    }

    fn with(mut self, what: &str, value: Value) -> Self {
        self.0.push((what.to_owned(), value));
        self
    }
}

impl FakeServer {
    /// Creates the package next to the workspace.
    pub(crate) fn new(env: &TestEnv, behavior: &Behavior) -> Self {
        Self::of_version(env, "1.1.414", behavior)
    }

    /// Creates a package with this version number.
    pub(crate) fn of_version(env: &TestEnv, version: &str, behavior: &Behavior) -> Self {
        let folder = tempfile::Builder::new().prefix("server-").tempdir_in(env.path("")).unwrap().keep();
        let write = |name: &str, text: &str| {
            let path = folder.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("package.json", &json!({"name": "pyright", "version": version}).to_string());
        write("langserver.index.js", include_str!("fake_server.js"));
        write("dist/pyright-langserver.js", "");
        write("dist/typeshed-fallback/stdlib/builtins.pyi", "class int: ...\n");
        let behavior: serde_json::Map<String, Value> = behavior.0.iter().cloned().collect();
        write("behavior.json", &Value::Object(behavior).to_string());
        Self { folder }
    }

    /// The value for `--server-command`.
    pub(crate) fn command(&self) -> &str {
        self.folder.to_str().unwrap()
    }

    /// The process ids of all servers started from this package.
    pub(crate) fn pids(&self) -> Vec<u32> {
        let text = std::fs::read_to_string(self.folder.join("pids")).unwrap_or_default();
        text.lines().map(|line| line.parse().unwrap()).collect()
    }

    /// The methods received by all servers of this package, in order.
    pub(crate) fn received(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.folder.join("received")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Lets a waiting server continue.
    pub(crate) fn trigger(&self) {
        std::fs::write(self.folder.join("trigger"), "").unwrap();
    }

    /// Makes later requests wait again.
    pub(crate) fn untrigger(&self) {
        std::fs::remove_file(self.folder.join("trigger")).unwrap();
    }
}
