//! A language server that misbehaves on demand: a node script in a folder that looks like the pinned Pyright.
//!
//! It answers every question, until its [`Behaviour`] says otherwise; `fake_server.js` tells what each word does.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::TestEnv;

/// The package of a fake server.
pub(crate) struct FakeServer {
    folder: PathBuf,
}

/// What a fake server does wrong. Methods are LSP's names, and `start` is the moment before the first message.
#[derive(Debug, Clone, Default)]
pub(crate) struct Behaviour(Vec<(String, Value)>);

impl Behaviour {
    /// A server that does nothing wrong.
    pub(crate) fn good() -> Self {
        Self::default()
    }

    /// Never answers the method.
    pub(crate) fn hangs_on(self, method: &str) -> Self {
        self.with(&format!("hang {method}"), json!(true))
    }

    /// Writes something that is not the protocol to its standard output.
    pub(crate) fn prints_garbage_on(self, method: &str) -> Self {
        self.with(&format!("garbage {method}"), json!(true))
    }

    /// Ends with a code after some words on its standard error.
    pub(crate) fn dies_on(self, method: &str, code: i32, words: &str) -> Self {
        self.with(&format!("die {method}"), json!({"code": code, "words": words}))
    }

    /// Closes its standard output and lives on.
    pub(crate) fn goes_silent_on(self, method: &str) -> Self {
        self.with(&format!("silent {method}"), json!(true))
    }

    /// Does not end when it is told to, nor when its input ends.
    pub(crate) fn ignores_shutdown(self) -> Self {
        self.with("deathless", json!(true))
    }

    /// Takes the method back so many times (-32801) before it answers.
    pub(crate) fn takes_back(self, method: &str, times: u32) -> Self {
        self.with(&format!("take back {method}"), json!(times))
    }

    /// Counts columns in this unit.
    pub(crate) fn counts_in(self, encoding: &str) -> Self {
        self.with("encoding", json!(encoding))
    }

    /// Does not offer the capability, `hoverProvider` and the like.
    pub(crate) fn lacks(self, capability: &str) -> Self {
        self.with(&format!("lack {capability}"), json!(true))
    }

    /// Answers the method only when the file `trigger` appears in its package's folder.
    pub(crate) fn waits_before(self, method: &str) -> Self {
        self.with(&format!("wait {method}"), json!(true))
    }

    /// Says this when asked for the method.
    pub(crate) fn answers(self, method: &str, result: Value) -> Self {
        self.with(&format!("answer {method}"), result)
    }

    /// Offers the capability in this form.
    pub(crate) fn offers(self, capability: &str, value: Value) -> Self {
        self.with(&format!("offer {capability}"), value)
    }

    /// Wants these edits made, one after the other, before it answers the method.
    pub(crate) fn edits_on(self, method: &str, edits: Value) -> Self {
        self.with(&format!("edits on {method}"), edits)
    }

    fn with(mut self, what: &str, value: Value) -> Self {
        self.0.push((what.to_owned(), value));
        self
    }
}

impl FakeServer {
    /// Makes the package beside the workspace.
    pub(crate) fn new(env: &TestEnv, behaviour: &Behaviour) -> Self {
        Self::of_version(env, "1.1.414", behaviour)
    }

    /// Makes a package that says to be of this version.
    pub(crate) fn of_version(env: &TestEnv, version: &str, behaviour: &Behaviour) -> Self {
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
        let behaviour: serde_json::Map<String, Value> = behaviour.0.iter().cloned().collect();
        write("behaviour.json", &Value::Object(behaviour).to_string());
        Self { folder }
    }

    /// The value for `--server-command`.
    pub(crate) fn command(&self) -> &str {
        self.folder.to_str().unwrap()
    }

    /// The process ids of all servers that were started from this package.
    pub(crate) fn pids(&self) -> Vec<u32> {
        let text = std::fs::read_to_string(self.folder.join("pids")).unwrap_or_default();
        text.lines().map(|line| line.parse().unwrap()).collect()
    }

    /// The methods that were received, by all servers of this package in order.
    pub(crate) fn received(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.folder.join("received")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Lets a server go on that waits.
    pub(crate) fn trigger(&self) {
        std::fs::write(self.folder.join("trigger"), "").unwrap();
    }

    /// Lets the next one wait again.
    pub(crate) fn untrigger(&self) {
        std::fs::remove_file(self.folder.join("trigger")).unwrap();
    }
}
