//! The interpreter that runs an analyzer: never one that a checkout brings along, unless the checkout is trusted.

use crate::engine::failure::Failure;
use crate::engine::python_env;
use crate::engine::server::toolchain_request;
use crate::engine::settings::Settings;
use crate::model::analyzer::AnalyzerKind;
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::path::AbsPath;
use crate::workspace::files::{DiskFiles, Files as _};
use crate::workspace::python::PythonEnvironment;

/// The minor version of Python 3 of an environment.
pub(super) fn minor(python: &PythonEnvironment) -> Option<u32> {
    let rest = python.version.strip_prefix("3.")?;
    rest.split('.').next()?.parse().ok()
}

/// The interpreter of the environment if it may be run, otherwise one on PATH, preferably of the same version, with at least
/// this minor version. Blocking.
pub(super) fn trusted(
    settings: &Settings,
    environment: Option<&PythonEnvironment>,
    kind: AnalyzerKind,
    oldest_minor: u32,
) -> Result<PythonEnvironment, Failure> {
    let request = toolchain_request(settings);
    let is_new_enough = |python: &PythonEnvironment| minor(python).is_some_and(|minor| minor >= oldest_minor);
    let may_run = |path: &AbsPath| path.as_path().is_file() && request.may_run(path.as_path());
    if let Some(python) = environment.filter(|python| may_run(&python.interpreter) && is_new_enough(python)) {
        return Ok(python.clone());
    }
    let same = environment.and_then(minor).map(|minor| format!("python3.{minor}"));
    let names = same.into_iter().chain(["python3".to_owned(), "python".to_owned()]);
    let variables = python_env::probe_variables(settings);
    let cache = python_env::environment_cache(settings);
    for name in names {
        let folders = settings.search_path.iter().map(|folder| folder.join(&name));
        for path in folders.filter_map(|path| AbsPath::new(path).ok()) {
            if !may_run(&path) {
                continue;
            }
            let found = match PythonEnvironment::probe(&path, &cache, &variables) {
                Ok(found) => found,
                Err(error) if error.is_transient() => {
                    return Err(Failure::reported(python_env::not_in_time(&error)));
                }
                Err(_) => continue,
            };
            let found = python_env::real_interpreter(found, &DiskFiles::new());
            if is_new_enough(&found) && may_run(&found.interpreter) {
                return Ok(found);
            }
        }
    }
    let message = format!("no Python interpreter 3.{oldest_minor} or newer was found that may run {kind}");
    let hint = "put a python3 on PATH, name one with --python, or trust the workspace with --trust-workspace";
    Err(Failure::reported(ErrorBody::new(ErrorSymbol::LsUnavailable, message).hint(hint)))
}

/// The version of a distribution that is installed in an environment, from the name of its metadata folder.
pub(super) fn installed_version(python: &PythonEnvironment, name: &str) -> Option<String> {
    let prefix = format!("{name}-");
    python.site_packages.iter().find_map(|folder| {
        let names = DiskFiles::new().list(folder);
        let mut versions = names
            .iter()
            .filter_map(|name| Some(name.strip_prefix(&prefix)?.strip_suffix(".dist-info")?.to_owned()));
        versions.next()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_of_a_distribution_is_in_the_name_of_its_metadata() {
        let folder = tempfile::tempdir().unwrap();
        let root = AbsPath::new(folder.path()).unwrap();
        std::fs::create_dir(root.join("mypy_extensions-1.2.0.dist-info").as_path()).unwrap();
        std::fs::create_dir(root.join("mypy-2.4.1.dist-info").as_path()).unwrap();
        let python = PythonEnvironment {
            interpreter: root.join("bin/python"),
            version: "3.12.1".to_owned(),
            implementation: "cpython".to_owned(),
            prefix: root.clone(),
            base_prefix: root.clone(),
            stdlib: root.clone(),
            site_packages: vec![root],
            search_path: Vec::new(),
        };
        assert_eq!(minor(&python), Some(12));
        assert_eq!(installed_version(&python, "mypy").unwrap(), "2.4.1");
        assert_eq!(installed_version(&python, "ruff"), None);
    }
}
