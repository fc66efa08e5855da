//! Which Python environment the code is looked at in.

use serde::Serialize;

use super::Settings;
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::path::AbsPath;
use crate::workspace::files::{DiskFiles, FileKind, Files as _};
use crate::workspace::python::{Candidates, Memory, PythonEnvironment, interpreters};
use crate::workspace::server_config::ServerConfig;

/// The environment, as its interpreter describes it, and what is wrong with interpreters that were tried before. Blocking.
///
/// # Errors
/// When the interpreter that the user named cannot be asked.
pub(super) fn find(
    settings: &Settings,
    memory: &Memory,
) -> Result<(Option<PythonEnvironment>, Vec<String>), ErrorBody> {
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
    let passed: Vec<(String, String)> =
        settings.environment.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    let mut problems = Vec::new();
    for interpreter in interpreters(&candidates, &files, &settings.root, settings.trust_workspace) {
        match PythonEnvironment::probe(&interpreter, memory, &passed) {
            Ok(python) => return Ok((Some(real_interpreter(python, &files)), problems)),
            Err(error) if settings.python.is_some() => {
                let hint = "name an interpreter or a virtual environment with --python";
                return Err(ErrorBody::new(ErrorSymbol::Usage, error.to_string()).hint(hint));
            }
            Err(error) => problems.push(error.to_string()),
        }
    }
    Ok((None, problems))
}

/// The virtual environments in the workspace's root that are not used because lanser runs no program of a workspace.
pub(super) fn passed_over(
    settings: &Settings,
    files: &DiskFiles,
    used: Option<&PythonEnvironment>,
) -> Vec<String> {
    let is_named = |name: &str| settings.environment.get(name).is_some_and(|value| !value.is_empty());
    if settings.python.is_some() || is_named("VIRTUAL_ENV") || is_named("CONDA_PREFIX") {
        return Vec::new();
    }
    let is_unused = |name: &str| {
        let folder = settings.root.join(name);
        files.kind(&folder.join("pyvenv.cfg")) == FileKind::File
            && used.is_none_or(|python| python.prefix != folder)
    };
    let instead = used.map_or_else(
        || "no interpreter is used".to_owned(),
        |python| format!("Python {} outside the workspace is used", python.version),
    );
    let passed = [".venv", "venv"].into_iter().filter(|name| is_unused(name));
    passed
        .map(|name| {
            format!(
                "the virtual environment {name} is not used, since its interpreter is no link out of the workspace: \
                 {instead}; `--python {name}` uses it"
            )
        })
        .collect()
}

/// What this process learns of interpreters and packages, and where it is kept.
pub(super) fn memory(settings: &Settings) -> Memory {
    Memory::new(settings.keep.then(|| settings.cache.clone()))
}

/// A version manager's shim is outside of the environment that it leads to: the server asks the interpreter itself, which
/// is quicker, and the bundle names a file of the environment.
fn real_interpreter(mut python: PythonEnvironment, files: &DiskFiles) -> PythonEnvironment {
    let inside = [&python.prefix, &python.base_prefix]
        .iter()
        .any(|prefix| python.interpreter.strip_prefix(prefix).is_some());
    if !inside {
        let own = ["bin/python3", "bin/python"].map(|name| python.prefix.join(name));
        if let Some(own) = own.into_iter().find(|path| files.kind(path) == FileKind::File) {
            python.interpreter = own;
        }
    }
    python
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

/// What `doctor` says about the Python environment, and what is wrong with it.
#[must_use]
pub fn python_report(settings: &Settings) -> (Option<PythonReport>, Vec<String>) {
    let (python, mut problems) =
        find(settings, &memory(settings)).unwrap_or_else(|error| (None, vec![error.message]));
    if python.is_none() && problems.is_empty() {
        problems.push(
            "no Python interpreter was found, so imports of installed packages stay unresolved".to_owned(),
        );
    }
    let report = python.map(|python| PythonReport {
        exe: python.interpreter.to_string(),
        version: python.version,
        prefix: python.prefix.to_string(),
        site_packages: python.site_packages.iter().map(AbsPath::to_string).collect(),
    });
    (report, problems)
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
