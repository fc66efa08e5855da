//! How to answer requests about one workspace, and where progress is reported.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::model::server::ServerKind;
use crate::path::AbsPath;
use crate::trace::writer::TraceWriter;
use crate::workspace::snapshot::ChangeDetection;
use crate::workspace::transaction::Transactions;

/// Receives progress of long-running work.
pub trait Progress: Send + Sync {
    /// The current activity; replaces the previous one.
    fn step(&self, text: &str);
    /// A notice that should stay visible.
    fn notify(&self, text: &str);
    /// The request waits for exclusive use of a server, until the requests that share it are answered.
    fn waiting_for_exclusive(&self) {}
    /// The answer is complete; only the check that the inputs are unchanged is left.
    fn verifying(&self) {}
    /// The work has ended.
    fn done(&self);
}

/// How to answer: the workspace, the server, and where to cache.
#[derive(Clone)]
pub struct Settings {
    /// The workspace, with symbolic links resolved.
    pub root: AbsPath,
    /// The checkout of the original workspace, if this one is a copy.
    pub copy_of: Option<AbsPath>,
    /// The workspace whose virtual environment is used, if that is another one: of a copy, the original.
    pub environment_of: Option<AbsPath>,
    /// The kind of server.
    pub server: ServerKind,
    /// The server's version; `None` means the pinned one.
    pub server_version: Option<String>,
    /// The server given by the user.
    pub server_command: Option<AbsPath>,
    /// The interpreter given by the user.
    pub python: Option<AbsPath>,
    /// The time limit for each response of the server.
    pub timeout: Duration,
    /// Whether installing anything is forbidden.
    pub offline: bool,
    /// Whether programs from the checkout may be run: interpreters, servers, git filters.
    pub trust_workspace: bool,
    /// How changed files are detected.
    pub trust: ChangeDetection,
    /// Lanser's cache folder.
    pub cache: AbsPath,
    /// Whether results about the workspace are read from and written to the cache folder.
    pub keep: bool,
    /// The folder for temporary files.
    pub temp: AbsPath,
    /// This program, if it can be called again to guard a server (see [`crate::lsp::process`]).
    pub guard: Option<AbsPath>,
    /// The folders of PATH.
    pub search_path: Vec<PathBuf>,
    /// The environment variables.
    pub environment: BTreeMap<String, String>,
    /// Whether bundles contain both coordinate systems.
    pub verbose: bool,
    /// How many threads may scan and parse.
    pub threads: usize,
    /// The memory above which a session restarts a server, in bytes.
    pub session_memory: u64,
    /// Receives progress.
    pub progress: Arc<dyn Progress>,
    /// Where every operation is recorded, if anywhere. A recorded request is always computed: it neither uses the
    /// memo nor shares another request's answer.
    pub trace: Option<Arc<TraceWriter>>,
}

impl Settings {
    /// The default of [`Self::session_memory`]: 4 GiB.
    pub const SERVER_MEMORY: u64 = 4 << 30;

    /// The checkout that contains the workspace (see [`crate::workspace::root::checkout`]).
    #[must_use]
    pub fn checkout(&self) -> AbsPath {
        if let Some(checkout) = &self.copy_of {
            return checkout.clone();
        }
        let home = self.environment.get("HOME").and_then(|home| AbsPath::new(home).ok());
        crate::workspace::root::checkout(&self.root, home.as_ref())
    }
}

impl Settings {
    /// What cached answers are kept apart by: the checkout, or nothing if that is trusted. A checkout may bring what decides an answer
    /// and is not among its inputs, such as forged records of packages or a git repository without some objects.
    pub(super) fn cache_scope(&self) -> String {
        if self.trust_workspace { String::new() } else { self.checkout().to_string() }
    }

    /// The transactions of the workspace.
    pub(super) fn transactions(&self) -> Transactions {
        Transactions::new(&self.root, &state_folder(&self.environment, &self.cache))
    }
}

/// The user's folder for lanser's state: journals, and the list of trusted repositories (XDG Base Directory
/// Specification, "state").
pub(crate) fn state_folder(environment: &BTreeMap<String, String>, cache: &AbsPath) -> AbsPath {
    let of = |name: &str| environment.get(name).and_then(|path| AbsPath::new(path).ok());
    let home = || of("HOME").map(|home| home.join(".local/state"));
    of("XDG_STATE_HOME").or_else(home).map_or_else(|| cache.join("state"), |folder| folder.join("lanser"))
}
