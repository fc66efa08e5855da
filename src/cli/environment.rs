//! The environment of the process: arguments, environment variables, the current folder, whether stderr is a terminal.
//!
//! Only this module reads them; everything below `cli` gets them as values.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, IsTerminal as _};
use std::path::PathBuf;

use crate::engine::{cache_folder, search_path, state_folder};
use crate::path::{AbsPath, absolute::AbsPathError};
use crate::serve::session::RuntimeDir;
use crate::workspace::root::checkout;
use crate::workspace::trust::TrustList;

/// Why the environment cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EnvironmentError {
    /// The current folder was deleted or is not accessible.
    #[error("cannot find the current folder ({0}); change to an existing folder")]
    CurrentFolder(io::Error),
    /// The path of a folder is not UTF-8.
    #[error(transparent)]
    Path(#[from] AbsPathError),
}

/// The environment of this process.
#[derive(Debug, Clone)]
pub(crate) struct ProcessEnvironment {
    /// The arguments, starting with the program name.
    pub(crate) args: Vec<OsString>,
    /// The environment variables whose names and values are UTF-8.
    pub(crate) vars: BTreeMap<String, String>,
    /// The current folder.
    pub(crate) cwd: AbsPath,
    /// The folder for temporary files.
    pub(crate) temp: AbsPath,
    /// The path of this executable.
    pub(crate) exe: Option<AbsPath>,
    /// Whether standard error is a terminal.
    pub(crate) stderr_is_terminal: bool,
}

impl ProcessEnvironment {
    /// Reads the environment of this process.
    ///
    /// # Errors
    /// If the current folder does not exist or its path is not UTF-8.
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the only place that reads the environment of the process"
    )]
    pub(crate) fn of_process() -> Result<Self, EnvironmentError> {
        let cwd = std::env::current_dir().map_err(EnvironmentError::CurrentFolder)?;
        let vars = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        Ok(Self {
            args: std::env::args_os().collect(),
            vars: vars.collect(),
            cwd: AbsPath::new(cwd)?,
            temp: AbsPath::new(std::env::temp_dir())?,
            exe: std::env::current_exe().ok().and_then(|exe| AbsPath::new(exe).ok()),
            stderr_is_terminal: io::stderr().is_terminal(),
        })
    }

    /// The value of a variable, if it is set and not empty.
    pub(crate) fn var(&self, name: &str) -> Option<&str> {
        self.vars.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// The folder of the user's session sockets.
    pub(crate) fn sessions(&self) -> RuntimeDir {
        // A relative path is to be ignored (XDG Base Directory Specification).
        let runtime = self.var("XDG_RUNTIME_DIR").and_then(|folder| AbsPath::new(folder).ok());
        RuntimeDir::new(runtime.as_ref(), &self.temp)
    }

    /// The folders of `PATH`.
    pub(crate) fn search_path(&self) -> Vec<PathBuf> {
        search_path(&self.vars)
    }

    /// A path as the user wrote it, made absolute.
    pub(crate) fn absolute(&self, path: &str) -> AbsPath {
        match path.strip_prefix("~/").zip(self.var("HOME")) {
            Some((rest, home)) => self.cwd.join(home).join(rest),
            None => self.cwd.join(path),
        }
    }

    /// Lanser's cache folder.
    pub(crate) fn cache(&self) -> AbsPath {
        cache_folder(&self.vars, &self.temp, |path| self.absolute(path))
    }

    /// The repositories trusted by the user.
    pub(crate) fn trust_list(&self) -> TrustList {
        TrustList::read(&state_folder(&self.vars, &self.cache()))
    }

    /// The repository that contains the workspace at `root`.
    pub(crate) fn checkout(&self, root: &AbsPath) -> AbsPath {
        let home = self.var("HOME").and_then(|home| AbsPath::new(home).ok());
        checkout(root, home.as_ref())
    }

    /// The configuration file of the user.
    pub(crate) fn user_config(&self) -> Option<AbsPath> {
        let folder = match (self.var("XDG_CONFIG_HOME"), self.var("HOME")) {
            (Some(config), _) => self.absolute(config),
            (None, Some(home)) => self.absolute(home).join(".config"),
            (None, None) => return None,
        };
        Some(folder.join("lanser/config.toml"))
    }
}
