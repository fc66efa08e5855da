//! The package managers npm and pip, with the options that make them fetch exactly one package into exactly one folder
//! without running any of its code.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use crate::model::server::ServerKind;
use crate::path::AbsPath;

use super::child::{ChildCommand, run};
use super::error::SearchAttempt;
use super::follow::is_executable;
use super::pins::Pin;
use super::request::ToolchainRequest;
use super::server_kinds::{in_site_packages, package_name};

/// How long an installer may run.
const INSTALL_TIMEOUT: Duration = Duration::from_secs(10 * 60);
/// How long `pip --version` may take.
const PROBE_TIMEOUT: Duration = Duration::from_secs(60);

/// Part of the title of every attempt that ran an installer.
pub(super) const INSTALL: &str = " install ";

/// A package manager on this machine.
pub(super) enum Installer {
    /// npm.
    Npm(PathBuf),
    /// pip: the program, and its first arguments (`-m pip`).
    Pip(PathBuf, &'static [&'static str]),
}

impl Installer {
    /// The npm on PATH. It is not run before the install.
    pub(super) fn npm(request: &ToolchainRequest) -> Result<Self, SearchAttempt> {
        on_path(request, "npm").map(Self::Npm).ok_or_else(|| SearchAttempt::new("npm", "is not on PATH"))
    }

    /// The first pip on PATH that runs; not every python3 has one.
    pub(super) fn pip(request: &ToolchainRequest) -> Result<Self, SearchAttempt> {
        const MODULE: &[&str] = &["-m", "pip"];
        let commands = [("python3", MODULE), ("python", MODULE), ("pip3", &[]), ("pip", &[])];
        let mut why = "there is no python3 and no pip on PATH".to_owned();
        for (name, arguments) in commands {
            let Some(program) = on_path(request, name) else { continue };
            let pip = Self::Pip(program, arguments);
            match pip.start(request, Path::new("/"), &["--version"], PROBE_TIMEOUT) {
                Ok(()) => return Ok(pip),
                Err(error) => why = format!("{} does not run: {error}", pip.title()),
            }
        }
        Err(SearchAttempt::new("pip", why))
    }

    /// Its name.
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Npm(_) => "npm",
            Self::Pip(..) => "pip",
        }
    }

    /// The path of an installed package, relative to the target folder.
    pub(super) fn package_folder(&self, kind: ServerKind) -> String {
        match self {
            Self::Npm(_) => format!("node_modules/{}", package_name(kind)),
            // `--target` has the programs of a wheel in `bin`.
            Self::Pip(..) => in_site_packages(kind).unwrap_or("bin").to_owned(),
        }
    }

    /// Installs one version of one package into an empty folder, without running scripts.
    pub(super) fn fetch(
        &self,
        request: &ToolchainRequest,
        package: &str,
        version: &str,
        folder: &AbsPath,
    ) -> Result<(), SearchAttempt> {
        let (exact, arguments) = match self {
            // The optional dependencies are file watchers; lanser notifies its servers of changes.
            Self::Npm(_) => (
                format!("{package}@{version}"),
                vec![
                    "install",
                    "--prefix",
                    folder.as_str(),
                    "--ignore-scripts",
                    "--omit=optional",
                    "--no-save",
                    "--no-package-lock",
                    "--no-audit",
                    "--no-fund",
                    "--no-update-notifier",
                    "--no-progress",
                ],
            ),
            // The dependencies are only for the wrapper script.
            Self::Pip(..) => (
                format!("{package}=={version}"),
                vec![
                    "install",
                    "--target",
                    folder.as_str(),
                    "--no-deps",
                    "--only-binary=:all:",
                    "--no-compile",
                    "--no-input",
                    "--no-warn-script-location",
                    "--disable-pip-version-check",
                    "--progress-bar=off",
                ],
            ),
        };
        let failed = |error: String| SearchAttempt::new(format!("{}{INSTALL}{exact}", self.title()), error);
        let pin = Pin::of(request.pins, package, version);
        let requirements = folder.join("requirements.txt");
        let what: Vec<&str> = match (self, pin) {
            (Self::Pip(..), Some(pin)) => {
                std::fs::write(requirements.as_path(), pin.requirement())
                    .map_err(|error| failed(format!("cannot write {requirements}: {error}")))?;
                vec!["--require-hashes", "--requirement", requirements.as_str()]
            }
            _ => vec![exact.as_str()],
        };
        let arguments: Vec<&str> = arguments.into_iter().chain(what).collect();
        self.start(request, folder.as_path(), &arguments, INSTALL_TIMEOUT).map_err(failed)?;
        match (self, pin) {
            (Self::Npm(_), Some(pin)) => match integrity(folder, package) {
                Some(integrity) if pin.is_tarball(&integrity) => Ok(()),
                integrity => {
                    let actual = integrity
                        .map_or("npm recorded no integrity".to_owned(), |value| format!("integrity {value}"));
                    Err(failed(format!(
                        "the package from the registry differs from the pinned one: {actual}"
                    )))
                }
            },
            _ => Ok(()),
        }
    }

    /// Installs wheels of exact versions into an empty folder with pip, for a version of Python such as `3.11`, without running
    /// any of their code. A package with a pin must have one of the pinned hashes.
    pub(super) fn fetch_wheels(
        &self,
        request: &ToolchainRequest,
        packages: &[(&str, &str, Option<&Pin>)],
        python: Option<&str>,
        folder: &AbsPath,
    ) -> Result<(), SearchAttempt> {
        let lines = packages.iter().map(|(package, version, pin)| {
            pin.map_or_else(|| format!("{package}=={version}\n"), Pin::requirement)
        });
        let what = packages.first().map(|(package, version, _)| format!("{package}=={version}"));
        let failed = |error: String| {
            let what = what.clone().unwrap_or_default();
            SearchAttempt::new(format!("{}{INSTALL}{what}", self.title()), error)
        };
        let requirements = folder.join("../requirements.txt");
        std::fs::write(requirements.as_path(), lines.collect::<String>())
            .map_err(|error| failed(format!("cannot write {requirements}: {error}")))?;
        let mut arguments = vec![
            "install",
            "--target",
            folder.as_str(),
            "--no-deps",
            "--only-binary=:all:",
            "--no-compile",
            "--no-input",
            "--no-warn-script-location",
            "--disable-pip-version-check",
            "--progress-bar=off",
        ];
        if let Some(python) = python {
            arguments.extend(["--implementation", "cp", "--python-version", python]);
        }
        if packages.iter().all(|(_, _, pin)| pin.is_some()) {
            arguments.push("--require-hashes");
        }
        arguments.extend(["--requirement", requirements.as_str()]);
        self.start(request, folder.as_path(), &arguments, INSTALL_TIMEOUT).map_err(failed)
    }

    /// The command as typed in a shell.
    fn title(&self) -> String {
        match self {
            Self::Npm(program) => program.display().to_string(),
            Self::Pip(program, arguments) => {
                arguments.iter().fold(program.display().to_string(), |title, word| format!("{title} {word}"))
            }
        }
    }

    /// Runs it in `folder`, which must not be the workspace: its `.npmrc` could name another registry.
    fn start(
        &self,
        request: &ToolchainRequest,
        folder: &Path,
        arguments: &[&str],
        timeout: Duration,
    ) -> Result<(), String> {
        let (program, first): (_, &[&str]) = match self {
            Self::Npm(program) => (program, &[]),
            Self::Pip(program, first) => (program, first),
        };
        let mut environment = request.child_environment();
        // Overrides the user's pip.conf, where the first two are sensible but prevent an install into a folder.
        environment.extend([
            ("PIP_USER".into(), "0".into()),
            ("PIP_REQUIRE_VIRTUALENV".into(), "0".into()),
            ("PIP_ROOT_USER_ACTION".into(), "ignore".into()),
        ]);
        let arguments: Vec<&str> = first.iter().chain(arguments).copied().collect();
        run(&ChildCommand { program, arguments: &arguments, folder, environment: &environment, timeout })
            .map(drop)
            .map_err(|error| error.to_string())
    }
}

/// The `integrity` of a package's tarball, which npm verified and recorded in its hidden lock file.
fn integrity(folder: &AbsPath, package: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct PackageLock {
        packages: BTreeMap<String, LockedPackage>,
    }
    #[derive(Deserialize)]
    struct LockedPackage {
        integrity: Option<String>,
    }
    let lock = std::fs::read(folder.join("node_modules/.package-lock.json").as_path()).ok()?;
    let mut lock: PackageLock = serde_json::from_slice(&lock).ok()?;
    lock.packages.remove(&format!("node_modules/{package}"))?.integrity
}

/// A program on the usable part of PATH.
fn on_path(request: &ToolchainRequest, name: &str) -> Option<PathBuf> {
    let mut programs = request.usable_search_path().map(|folder| folder.join(name));
    programs.find(|path| is_executable(path) && request.may_run(path))
}
