//! What is asked for, and what was found.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use crate::model::server::ServerKind;
use crate::path::AbsPath;

use super::pins::Pin;
use super::profile::default_version;

/// Which server is wanted, and where one may be looked for.
#[derive(Debug, Clone)]
pub struct Request {
    /// The kind of server.
    pub kind: ServerKind,
    /// The version asked for (`--server pyright@1.1.406`); `None` is the pinned one.
    pub version: Option<String>,
    /// The server that the user named by flag, environment or user configuration: an absolute path (or a name on
    /// PATH) of a `langserver.index.js`, of a package's folder or of an executable, after an optional `node`. Only
    /// this one is considered then, and it may be of any version. Never taken from a workspace's own files.
    pub command: Option<Vec<String>>,
    /// The root of the workspace, links resolved.
    pub workspace: AbsPath,
    /// The folder that came with the workspace, or the workspace itself.
    pub checkout: AbsPath,
    /// Whether programs inside the checkout may be run.
    pub trust_workspace: bool,
    /// The folders of PATH, in order.
    pub search_path: Vec<PathBuf>,
    /// The environment that installers are started with, after some variables are taken out.
    pub environment: BTreeMap<String, String>,
    /// lanser's cache folder of this user. Need not exist.
    pub cache: AbsPath,
    /// Whether installing is forbidden.
    pub offline: bool,
    /// What the versions are by content. What is not in here is taken for what it says.
    pub pins: &'static [Pin],
}

impl Request {
    /// The version that is looked for when no command is given.
    #[must_use]
    pub fn wanted_version(&self) -> &str {
        self.version.as_deref().unwrap_or_else(|| default_version(self.kind))
    }

    /// The wanted server as the user would name it: `pyright@1.1.406`, or `pyright` for the pinned version.
    pub(super) fn spec(&self) -> String {
        match &self.version {
            Some(version) => format!("{}@{version}", self.kind),
            None => self.kind.to_string(),
        }
    }

    /// The folders of PATH from which programs may be run: a relative folder depends on where lanser was called, and
    /// one inside an untrusted checkout would let the checkout name the program.
    pub(super) fn usable_search_path(&self) -> impl Iterator<Item = &Path> {
        self.search_path.iter().map(PathBuf::as_path).filter(|folder| self.may_run(folder))
    }

    /// Whether a program at this path may be run, wherever its links lead.
    pub(super) fn may_run(&self, path: &Path) -> bool {
        let inside = |path: &Path| path.starts_with(self.checkout.as_path());
        path.is_absolute()
            && (self.trust_workspace || !inside(path) && !path.canonicalize().is_ok_and(|path| inside(&path)))
    }

    /// The environment for installers and for asking programs their version, with PATH reduced to what may be run.
    ///
    /// Version managers hide `node` and `python3` behind shims that need variables no list can name, so everything
    /// passes but what would make these programs do something else than they are asked.
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

/// Variables that change which code node, npm, Python and pip run, or where a package lands. Names in upper case;
/// npm reads its own in any.
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

/// How a server came to be considered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// The user named it: flag, environment or user configuration.
    Command,
    /// The workspace's `.venv` or `node_modules`.
    Workspace,
    /// An executable on PATH.
    Path,
    /// lanser's own cache.
    Cache,
}

impl Source {
    /// The name in reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::Workspace => "workspace",
            Self::Path => "PATH",
            Self::Cache => "cache",
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A server that can be launched: `node script …`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The kind of server, as its package says.
    pub kind: ServerKind,
    /// Its version, as its package says.
    pub version: String,
    /// The node to run it with: the real program, no version manager's shim.
    pub node: AbsPath,
    /// That node's version, such as `20.20.2`.
    pub node_version: String,
    /// The `langserver.index.js` to run.
    pub script: AbsPath,
    /// The root of its package, links resolved: what `server://` URIs are relative to.
    pub package: AbsPath,
    /// How it was found.
    pub source: Source,
}
