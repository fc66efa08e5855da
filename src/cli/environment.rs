//! What comes in from outside: arguments, environment variables, the current folder, whether there is a terminal.
//!
//! This is the only place that asks; everything below `cli` gets it as values.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, IsTerminal as _};
use std::path::PathBuf;

use crate::orchestrator::session::Place;
use crate::orchestrator::{cache_folder, search_path, state_folder};
use crate::path::{AbsPath, absolute::AbsPathError};
use crate::workspace::root::checkout;
use crate::workspace::trust::TrustList;

/// Why nothing can be done in these surroundings.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EnvironmentError {
    /// It was removed, or may not be entered.
    #[error("the current folder cannot be found ({0}); change into one that is there")]
    CurrentFolder(io::Error),
    /// A folder has no name in UTF-8.
    #[error(transparent)]
    Path(#[from] AbsPathError),
}

/// The process's surroundings.
#[derive(Debug, Clone)]
pub(crate) struct Environment {
    /// The arguments, the program's name first.
    pub(crate) args: Vec<OsString>,
    /// The environment variables whose names and values are UTF-8.
    pub(crate) vars: BTreeMap<String, String>,
    /// The current folder.
    pub(crate) cwd: AbsPath,
    /// Where temporary files go.
    pub(crate) temp: AbsPath,
    /// This program.
    pub(crate) exe: Option<AbsPath>,
    /// Whether a person reads standard error.
    pub(crate) stderr_is_terminal: bool,
}

impl Environment {
    /// The surroundings of this process.
    ///
    /// # Errors
    /// When the current folder is gone or its name is not UTF-8.
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the one place through which the surroundings enter"
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

    /// A variable that is set to something.
    pub(crate) fn var(&self, name: &str) -> Option<&str> {
        self.vars.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Where the user's sessions are found.
    pub(crate) fn sessions(&self) -> Place {
        // A relative one is to be ignored, says the specification of base directories.
        let runtime = self.var("XDG_RUNTIME_DIR").and_then(|folder| AbsPath::new(folder).ok());
        Place::new(runtime.as_ref(), &self.temp)
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

    /// The repositories that the user trusts.
    pub(crate) fn trust_list(&self) -> TrustList {
        TrustList::read(&state_folder(&self.vars, &self.cache()))
    }

    /// The folder that came with the workspace at `root`.
    pub(crate) fn checkout(&self, root: &AbsPath) -> AbsPath {
        let home = self.var("HOME").and_then(|home| AbsPath::new(home).ok());
        checkout(root, home.as_ref())
    }

    /// The user's own configuration file.
    pub(crate) fn user_config(&self) -> Option<AbsPath> {
        let folder = match (self.var("XDG_CONFIG_HOME"), self.var("HOME")) {
            (Some(config), _) => self.absolute(config),
            (None, Some(home)) => self.absolute(home).join(".config"),
            (None, None) => return None,
        };
        Some(folder.join("lanser/config.toml"))
    }
}
