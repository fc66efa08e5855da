//! Selects the Python environment in which the code is analyzed.

use serde::Serialize;

use super::settings::Settings;
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::path::AbsPath;
use crate::workspace::files::{DiskFiles, FileKind, Files as _};
use crate::workspace::python::{
    EnvironmentCache, EnvironmentCandidate, InterpreterHints, PythonEnvironment, PythonError, candidates,
};
use crate::workspace::search_path::with_usable_path;
use crate::workspace::server_config::ServerConfig;
use crate::workspace::virtual_env;

/// The environment, as its interpreter or its files describe it, and the problems of candidates that were tried
/// before. Blocking.
///
/// # Errors
/// If the interpreter given by the user cannot be run, or one that is preferred to others does not answer in time.
pub(super) fn find(
    settings: &Settings,
    memory: &EnvironmentCache,
) -> Result<(Option<PythonEnvironment>, Vec<String>), ErrorBody> {
    let variable = |name: &str| {
        settings
            .environment
            .get(name)
            .filter(|value| !value.is_empty())
            .and_then(|value| AbsPath::new(value).ok())
    };
    let sources = InterpreterHints {
        explicit: settings.python.clone(),
        virtual_env: variable("VIRTUAL_ENV"),
        conda_prefix: variable("CONDA_PREFIX"),
        search_path: &settings.search_path,
    };
    let files = DiskFiles::new();
    let variables = probe_variables(settings);
    let mut problems = Vec::new();
    let root = settings.environment_of.as_ref().unwrap_or(&settings.root);
    let checkout = settings.checkout();
    for candidate in candidates(&sources, &files, root, &checkout, settings.trust_workspace) {
        let found = match &candidate {
            EnvironmentCandidate::Run(interpreter) => {
                match PythonEnvironment::probe(interpreter, memory, &variables) {
                    Ok(python) => Ok(real_interpreter(python, &files)),
                    Err(error) if error.is_transient() => return Err(not_in_time(&error)),
                    Err(error) => Err(error.to_string()),
                }
            }
            EnvironmentCandidate::Read(folder) => virtual_env::read(&files, folder),
        };
        match found {
            Ok(python) => return Ok((Some(python), problems)),
            Err(error) if settings.python.is_some() => {
                let hint = "name an interpreter or a virtual environment with --python";
                return Err(ErrorBody::new(ErrorSymbol::Usage, error).hint(hint));
            }
            Err(error) => problems.push(error),
        }
    }
    if let Some(named) = &settings.python {
        let message = format!("the interpreter of {named} belongs to this checkout, which is not trusted");
        let hint = "trust the checkout with `lanser trust add`, or pass --trust-workspace for one command";
        return Err(ErrorBody::new(ErrorSymbol::Usage, message).hint(hint));
    }
    Ok((None, problems))
}

/// The error for an interpreter that may answer later. With the next one, a slow moment of the machine would give another answer.
pub(super) fn not_in_time(error: &PythonError) -> ErrorBody {
    let hint = "try again, or name another interpreter with --python";
    ErrorBody::new(ErrorSymbol::LsTimeout, error.to_string()).hint(hint)
}

/// The environment variables of an interpreter that describes itself.
pub(super) fn probe_variables(settings: &Settings) -> Vec<(String, String)> {
    let checkout = settings.checkout();
    with_usable_path(&settings.environment, &checkout, settings.trust_workspace).into_iter().collect()
}

/// Warnings about virtual environments in the workspace's root that are not used although the user selected no other. `problems`
/// are those of the candidates that were tried.
pub(super) fn unused_environments(
    settings: &Settings,
    files: &DiskFiles,
    used: Option<&PythonEnvironment>,
    problems: &[String],
) -> Vec<String> {
    let is_named = |name: &str| settings.environment.get(name).is_some_and(|value| !value.is_empty());
    if settings.python.is_some() || is_named("VIRTUAL_ENV") || is_named("CONDA_PREFIX") {
        return Vec::new();
    }
    let environments = [".venv", "venv"].map(|name| settings.root.join(name));
    let mut warnings = Vec::new();
    for folder in environments.iter().filter(|folder| virtual_env::is_virtual(files, folder)) {
        if used.is_some_and(|python| python.prefix == *folder) {
            break;
        }
        let name = folder.file_name();
        let of_folder = || problems.iter().find(|problem| problem.contains(folder.as_str())).cloned();
        let reason = virtual_env::read(files, folder).err().or_else(of_folder);
        let reason =
            reason.map_or_else(String::new, |reason| format!(": {}", reason.replace(folder.as_str(), name)));
        warnings.push(format!("the virtual environment {name} is not used{reason}"));
    }
    warnings
}

/// The cache of what is known about interpreters and packages.
pub(super) fn environment_cache(settings: &Settings) -> EnvironmentCache {
    EnvironmentCache::new(settings.keep.then(|| settings.cache.clone()))
}

/// Replaces a version manager's shim, which is outside of the environment, by the environment's own interpreter: the
/// server runs it directly, which is faster, and the bundle names a file of the environment.
pub(super) fn real_interpreter(mut python: PythonEnvironment, files: &DiskFiles) -> PythonEnvironment {
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

/// `doctor`'s report on the Python environment.
#[derive(Debug, Serialize)]
pub struct PythonReport {
    /// The interpreter.
    pub exe: String,
    /// Its version.
    pub version: String,
    /// `sys.prefix`.
    pub prefix: String,
    /// The folders of installed packages.
    pub site_packages: Vec<String>,
}

/// `doctor`'s report on the Python environment, and its problems.
#[must_use]
pub fn python_report(settings: &Settings) -> (Option<PythonReport>, Vec<String>) {
    let (python, mut problems) =
        find(settings, &environment_cache(settings)).unwrap_or_else(|error| (None, vec![error.message]));
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

/// `doctor`'s report on the server's configuration in the workspace.
#[derive(Debug, Serialize)]
pub struct ConfigurationReport {
    /// The files that were read.
    pub files: Vec<String>,
    /// Their problems.
    pub problems: Vec<String>,
}

/// `doctor`'s report on the server's configuration in the workspace.
#[must_use]
pub fn configuration_report(settings: &Settings) -> ConfigurationReport {
    let config = ServerConfig::read(&DiskFiles::new(), &settings.root, settings.server);
    ConfigurationReport { files: config.files.keys().cloned().collect(), problems: config.problems }
}
