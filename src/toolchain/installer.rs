//! The package managers that can fetch a server: npm and pip, and how they are told to fetch exactly one thing into
//! exactly one folder and to run none of its code.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use crate::model::server::ServerKind;
use crate::path::AbsPath;

use super::child::{Run, run};
use super::error::Attempt;
use super::follow::is_executable;
use super::pins::Pin;
use super::profile::{in_site_packages, package_name};
use super::request::Request;

/// How long an installer may take.
const DEADLINE: Duration = Duration::from_secs(10 * 60);
/// How long pip may take to say that it is there.
const PROBE_DEADLINE: Duration = Duration::from_secs(60);

/// What the title of every attempt has in it in which an installer was run.
pub(super) const INSTALL: &str = " install ";

/// A package manager on this machine.
pub(super) enum Installer {
    /// npm.
    Npm(PathBuf),
    /// pip: the program, and the arguments that make it pip.
    Pip(PathBuf, &'static [&'static str]),
}

impl Installer {
    /// The npm on PATH. That it runs is seen when it installs.
    pub(super) fn npm(request: &Request) -> Result<Self, Attempt> {
        on_path(request, "npm").map(Self::Npm).ok_or_else(|| Attempt::new("npm", "is not on PATH"))
    }

    /// The first pip on PATH that runs: a python3 may be without one.
    pub(super) fn pip(request: &Request) -> Result<Self, Attempt> {
        const MODULE: &[&str] = &["-m", "pip"];
        let ways = [("python3", MODULE), ("python", MODULE), ("pip3", &[]), ("pip", &[])];
        let mut why = "there is no python3 and no pip on PATH".to_owned();
        for (name, arguments) in ways {
            let Some(program) = on_path(request, name) else { continue };
            let pip = Self::Pip(program, arguments);
            match pip.start(request, Path::new("/"), &["--version"], PROBE_DEADLINE) {
                Ok(()) => return Ok(pip),
                Err(error) => why = format!("{} is not there: {error}", pip.title()),
            }
        }
        Err(Attempt::new("pip", why))
    }

    /// Its name.
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Npm(_) => "npm",
            Self::Pip(..) => "pip",
        }
    }

    /// Where it puts a server's package, relative to the folder that it installs into.
    pub(super) fn package_folder(&self, kind: ServerKind) -> String {
        match self {
            Self::Npm(_) => format!("node_modules/{}", package_name(kind)),
            Self::Pip(..) => in_site_packages(kind).to_owned(),
        }
    }

    /// Installs one version of one package, without its dependencies' scripts, into an empty folder.
    pub(super) fn fetch(
        &self,
        request: &Request,
        package: &str,
        version: &str,
        folder: &AbsPath,
    ) -> Result<(), Attempt> {
        let (exact, arguments) = match self {
            // The optional dependencies are file watchers; lanser tells its servers what changed.
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
            // The dependencies are those of the wrapper script.
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
        let failed = |error: String| Attempt::new(format!("{}{INSTALL}{exact}", self.title()), error);
        let pin = Pin::of(request.pins, package, version);
        let requirements = folder.join("requirements.txt");
        let what: Vec<&str> = match (self, pin) {
            (Self::Pip(..), Some(pin)) => {
                std::fs::write(requirements.as_path(), pin.requirement())
                    .map_err(|error| failed(format!("{requirements} cannot be written: {error}")))?;
                vec!["--require-hashes", "--requirement", requirements.as_str()]
            }
            _ => vec![exact.as_str()],
        };
        let arguments: Vec<&str> = arguments.into_iter().chain(what).collect();
        self.start(request, folder.as_path(), &arguments, DEADLINE).map_err(failed)?;
        match (self, pin) {
            (Self::Npm(_), Some(pin)) => match integrity(folder, package) {
                Some(integrity) if pin.is_tarball(&integrity) => Ok(()),
                came => {
                    let came = came.unwrap_or_else(|| "something that npm does not tell".to_owned());
                    Err(failed(format!("the registry sent another content than the pinned one: {came}")))
                }
            },
            _ => Ok(()),
        }
    }

    /// The command as a person would type it.
    fn title(&self) -> String {
        match self {
            Self::Npm(program) => program.display().to_string(),
            Self::Pip(program, arguments) => {
                arguments.iter().fold(program.display().to_string(), |title, word| format!("{title} {word}"))
            }
        }
    }

    /// Runs it in a folder: not the workspace, whose `.npmrc` could name another registry.
    fn start(
        &self,
        request: &Request,
        folder: &Path,
        arguments: &[&str],
        deadline: Duration,
    ) -> Result<(), String> {
        let (program, first): (_, &[&str]) = match self {
            Self::Npm(program) => (program, &[]),
            Self::Pip(program, first) => (program, first),
        };
        let mut environment = request.child_environment();
        // Stronger than the user's pip.conf, where both are sensible but would stop an install into a folder.
        environment.extend([
            ("PIP_USER".into(), "0".into()),
            ("PIP_REQUIRE_VIRTUALENV".into(), "0".into()),
            ("PIP_ROOT_USER_ACTION".into(), "ignore".into()),
        ]);
        let arguments: Vec<&str> = first.iter().chain(arguments).copied().collect();
        run(&Run { program, arguments: &arguments, folder, environment: &environment, deadline })
            .map(drop)
            .map_err(|error| error.to_string())
    }
}

/// The `integrity` of a package's tarball, which npm checked when it came, as npm notes it beside what it installed.
fn integrity(folder: &AbsPath, package: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Lock {
        packages: BTreeMap<String, Entry>,
    }
    #[derive(Deserialize)]
    struct Entry {
        integrity: Option<String>,
    }
    let lock = std::fs::read(folder.join("node_modules/.package-lock.json").as_path()).ok()?;
    let mut lock: Lock = serde_json::from_slice(&lock).ok()?;
    lock.packages.remove(&format!("node_modules/{package}"))?.integrity
}

/// A program on the part of PATH that may be run from.
fn on_path(request: &Request, name: &str) -> Option<PathBuf> {
    let mut programs = request.usable_search_path().map(|folder| folder.join(name));
    programs.find(|path| is_executable(path) && request.may_run(path))
}
