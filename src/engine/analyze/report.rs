//! What `doctor` and `server` report about analyzers, and their installation.

use serde::Serialize;

use super::{find, interpreter};
use crate::bundle::portable::PathMap;
use crate::engine::python_env;
use crate::engine::server::{tell_progress, toolchain_request};
use crate::engine::settings::Settings;
use crate::model::analyzer::AnalyzerKind;
use crate::model::error::ErrorBody;
use crate::toolchain::{self, InstallableAnalyzer, InstalledAnalyzer};

/// The minor version of Python 3 that mypy is installed for if no interpreter is found.
const USUAL_MINOR: u32 = 13;

/// `doctor`'s report on an analyzer.
#[derive(Debug, Serialize)]
pub struct AnalyzerReport {
    /// The name for `--with`.
    pub name: &'static str,
    /// The version and the program, or why there is none.
    pub found: String,
}

/// `doctor`'s report on the analyzers.
#[must_use]
pub fn analyzer_report(settings: &Settings) -> Vec<AnalyzerReport> {
    let python =
        python_env::find(settings, &python_env::environment_cache(settings)).ok().and_then(|it| it.0);
    let reports = AnalyzerKind::ALL.into_iter().map(|kind| {
        let found = match find(kind, settings, python.as_ref(), &settings.root, &[], false) {
            Ok(analyzer) => format!("{} ({})", analyzer.identity().version, analyzer.identity().place),
            Err(failure) => {
                let body = failure.into_body(&PathMap::new());
                format!("{}; {}", body.message, body.hint.unwrap_or_default())
            }
        };
        AnalyzerReport { name: kind.as_str(), found }
    });
    reports.collect()
}

/// Finds an installed analyzer.
///
/// # Errors
/// If it is not installed.
pub fn find_analyzer(
    settings: &Settings,
    analyzer: InstallableAnalyzer,
) -> Result<InstalledAnalyzer, toolchain::Unavailable> {
    toolchain::find_analyzer(&toolchain_request(settings), analyzer, &runner(settings))
}

/// Installs an analyzer.
///
/// # Errors
/// If it cannot be installed.
pub fn install_analyzer(
    settings: &Settings,
    analyzer: InstallableAnalyzer,
) -> Result<InstalledAnalyzer, ErrorBody> {
    let mut progress = |event| tell_progress(&*settings.progress, &event);
    let request = toolchain_request(settings);
    let installed = toolchain::install_analyzer(&request, analyzer, &runner(settings), &mut progress);
    installed.map_err(|error| super::Failure::from(error).into_body(&PathMap::new()))
}

/// The version of the interpreter that runs analyzers, such as `3.11`.
fn runner(settings: &Settings) -> String {
    let python =
        python_env::find(settings, &python_env::environment_cache(settings)).ok().and_then(|it| it.0);
    let found =
        interpreter::trusted(settings, python.as_ref(), AnalyzerKind::Mypy, super::mypy::OLDEST_MINOR);
    let minor = found.ok().as_ref().and_then(interpreter::minor).unwrap_or(USUAL_MINOR);
    format!("3.{minor}")
}
