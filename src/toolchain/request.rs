//! The wanted server and where to search for it, and the server that was found.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use crate::model::server::ServerKind;
use crate::path::AbsPath;
use crate::workspace::search_path;

use super::pins::Pin;
use super::server_kinds::default_version;

/// The wanted server, and where to search for it.
#[derive(Debug, Clone)]
pub struct ToolchainRequest {
    /// The kind of server.
    pub kind: ServerKind,
    /// The requested version (`--server pyright@1.1.406`); `None` for the default version.
    pub version: Option<String>,
    /// The server from the user's flag, environment or configuration file: an absolute path (or a name on PATH) of a
    /// `langserver.index.js`, of a package's folder or of an executable, after an optional `node`. If set, only this one
    /// is considered, and it may be of any version. Never taken from the files of a workspace.
    pub command: Option<Vec<String>>,
    /// The root of the workspace, links resolved.
    pub workspace: AbsPath,
    /// The repository of the workspace, or the workspace itself.
    pub checkout: AbsPath,
    /// Whether programs inside the checkout may be run.
    pub trust_workspace: bool,
    /// The path of this program, if it is known. A server in the same Python environment is used.
    pub program: Option<AbsPath>,
    /// The folders of PATH, in order.
    pub search_path: Vec<PathBuf>,
    /// The environment of installers, before some variables are removed.
    pub environment: BTreeMap<String, String>,
    /// lanser's cache folder of this user. Need not exist.
    pub cache: AbsPath,
    /// Whether installing is disabled.
    pub offline: bool,
    /// The pinned versions. Versions without a pin are not verified.
    pub pins: &'static [Pin],
}

impl ToolchainRequest {
    /// The version that is searched for if there is no command.
    #[must_use]
    pub fn wanted_version(&self) -> &str {
        self.version.as_deref().unwrap_or_else(|| default_version(self.kind))
    }

    /// The wanted server as a value of `--server`: `pyright@1.1.406`, or `pyright` for the default version.
    pub(super) fn spec(&self) -> String {
        self.kind.spec(self.version.as_deref())
    }

    /// The folders of PATH from which programs may be run: not relative folders, which depend on the current folder, and not
    /// folders inside of an untrusted repository.
    pub(super) fn usable_search_path(&self) -> impl Iterator<Item = &Path> {
        self.search_path.iter().map(PathBuf::as_path).filter(|folder| self.may_run(folder))
    }

    /// Whether the program at this path may be run; also checks the target of links.
    #[must_use]
    pub fn may_run(&self, path: &Path) -> bool {
        search_path::may_run(path, &self.checkout, self.trust_workspace)
    }

    /// The environment for installers and version queries, with PATH reduced to the usable folders.
    ///
    /// Version managers put `node` and `python3` behind shims that need variables that cannot be listed completely, so all
    /// variables pass except those that would change what these programs do.
    pub(super) fn child_environment(&self) -> Vec<(OsString, OsString)> {
        let redirects = |name: &str| {
            let upper = name.to_ascii_uppercase();
            upper.starts_with("PYRIGHT_PYTHON_")
                || upper.starts_with("NPM_LIFECYCLE_")
                || upper.starts_with("NPM_PACKAGE_")
                || REDIRECTING.contains(&upper.as_str())
        };
        let path = std::env::join_paths(self.usable_search_path()).unwrap_or_default();
        self.environment
            .iter()
            .filter(|(name, _)| !redirects(name))
            .map(|(name, value)| (name.into(), value.into()))
            .chain([("PATH".into(), path)])
            .collect()
    }
}

/// Variables that change which code node, npm, Python and pip run, or where a package is installed. In upper case; npm accepts
/// its variables in any case.
const REDIRECTING: &[&str] = &[
    "PATH",
    "NODE_OPTIONS",
    "NODE_PATH",
    "NODE_REPL_EXTERNAL_MODULE",
    "NPM_CONFIG_DRY_RUN",
    "NPM_CONFIG_GLOBAL",
    "NPM_CONFIG_LOCAL_PREFIX",
    "NPM_CONFIG_LOCATION",
    "NPM_CONFIG_PACKAGE_LOCK_ONLY",
    "NPM_CONFIG_PREFIX",
    "NPM_CONFIG_WORKSPACE",
    "NPM_CONFIG_WORKSPACES",
    "PIP_DRY_RUN",
    "PIP_NO_BINARY",
    "PIP_PLATFORM",
    "PIP_PREFIX",
    "PIP_REPORT",
    "PIP_REQUIRE_VIRTUALENV",
    "PIP_REQUIREMENT",
    "PIP_ROOT",
    "PIP_TARGET",
    "PIP_UPGRADE",
    "PIP_USER",
    "PYTHONHOME",
    "PYTHONPATH",
    "PYTHONSTARTUP",
];

/// Where a server was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ServerSource {
    /// The user's flag, environment or configuration file.
    Command,
    /// The workspace's `.venv` or `node_modules`.
    Workspace,
    /// The Python environment that lanser is installed in.
    Environment,
    /// An executable on PATH.
    Path,
    /// lanser's own cache.
    Cache,
}

impl ServerSource {
    /// The name in reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::Workspace => "workspace",
            Self::Environment => "environment",
            Self::Path => "PATH",
            Self::Cache => "cache",
        }
    }
}

impl fmt::Display for ServerSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How a server is launched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerProgram {
    /// The server is this program.
    Native(AbsPath),
    /// The server is a script that node runs.
    Script {
        /// The node to run it with: the actual program, not a version manager's shim.
        node: AbsPath,
        /// The version of that node, such as `20.20.2`.
        node_version: String,
        /// The `langserver.index.js` to run.
        script: AbsPath,
    },
}

impl ServerProgram {
    /// The file of the server's package that is run.
    #[must_use]
    pub const fn main_file(&self) -> &AbsPath {
        match self {
            Self::Native(program) => program,
            Self::Script { script, .. } => script,
        }
    }

    /// The node that runs it, with its version.
    #[must_use]
    pub fn node(&self) -> Option<(&AbsPath, &str)> {
        match self {
            Self::Native(_) => None,
            Self::Script { node, node_version, .. } => Some((node, node_version)),
        }
    }
}

/// A server that can be launched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundServer {
    /// The kind of server, from its package.
    pub kind: ServerKind,
    /// Its version, from its package.
    pub version: String,
    /// How it is launched.
    pub program: ServerProgram,
    /// The root of its package, links resolved.
    pub package: AbsPath,
    /// The folder of the stubs that it brings, which `server://` URIs are relative to: the package, or where a server that holds
    /// them in its program writes them.
    pub stubs: AbsPath,
    /// The folder of its stubs of the standard library and of packages; `None` if they are in its program and cannot be read.
    pub typeshed: Option<AbsPath>,
    /// How it was found.
    pub source: ServerSource,
}
