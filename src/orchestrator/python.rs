//! Which Python environment the code is looked at in.

use serde::Serialize;

use super::Settings;
use crate::path::AbsPath;
use crate::workspace::files::{DiskFiles, FileKind, Files as _};
use crate::workspace::python::{Candidates, PythonEnvironment, choose};
use crate::workspace::server_config::ServerConfig;

/// The environment, as its interpreter describes it. An interpreter that cannot be asked counts as none: the server has
/// the same trouble with it. Blocking.
pub(super) fn find(settings: &Settings) -> Option<PythonEnvironment> {
    let variable = |name: &str| {
        settings
            .environment
            .get(name)
            .filter(|value| !value.is_empty())
            .and_then(|value| AbsPath::new(value).ok())
    };
    let candidates = Candidates {
        explicit: settings.python.clone(),
        virtual_env: variable("VIRTUAL_ENV"),
        conda_prefix: variable("CONDA_PREFIX"),
        search_path: &settings.search_path,
    };
    let files = DiskFiles::new();
    let interpreter = choose(&candidates, &files, &settings.root)?;
    let passed: Vec<(String, String)> =
        settings.environment.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    let cache = settings.keep.then_some(&settings.cache);
    let mut python = PythonEnvironment::probe(&interpreter, cache, &passed).ok()?;
    // A version manager's shim is outside of the environment that it leads to: the server asks the interpreter itself,
    // which is quicker, and the bundle names a file of the environment.
    let inside =
        [&python.prefix, &python.base_prefix].iter().any(|prefix| interpreter.strip_prefix(prefix).is_some());
    if !inside {
        let own = ["bin/python3", "bin/python"].map(|name| python.prefix.join(name));
        if let Some(own) = own.into_iter().find(|path| files.kind(path) == FileKind::File) {
            python.interpreter = own;
        }
    }
    Some(python)
}

/// What `doctor` says about the Python environment.
#[derive(Debug, Serialize)]
pub struct PythonReport {
    /// The interpreter.
    pub exe: String,
    /// Its version.
    pub version: String,
    /// `sys.prefix`.
    pub prefix: String,
    /// Where installed packages are.
    pub site_packages: Vec<String>,
}

/// What `doctor` says about the Python environment.
#[must_use]
pub fn python_report(settings: &Settings) -> Option<PythonReport> {
    let python = find(settings)?;
    Some(PythonReport {
        exe: python.interpreter.to_string(),
        version: python.version,
        prefix: python.prefix.to_string(),
        site_packages: python.site_packages.iter().map(AbsPath::to_string).collect(),
    })
}

/// What `doctor` says about the server's configuration in the workspace.
#[derive(Debug, Serialize)]
pub struct ConfigurationReport {
    /// The files that were read.
    pub files: Vec<String>,
    /// What is wrong with them.
    pub problems: Vec<String>,
}

/// What `doctor` says about the server's configuration in the workspace.
#[must_use]
pub fn configuration_report(settings: &Settings) -> ConfigurationReport {
    let config = ServerConfig::read(&DiskFiles::new(), &settings.root, settings.server);
    ConfigurationReport { files: config.files.keys().cloned().collect(), problems: config.problems }
}
