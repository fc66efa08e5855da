//! The analyzers that lanser installs from PyPI: pinned by the hashes of their wheels, in the same cache as the servers.

use std::fs;

use crate::digest::Digest;
use crate::model::analyzer::AnalyzerKind;
use crate::path::AbsPath;

use super::error::{SearchAttempt, Unavailable};
use super::event::{InstallEvent, OnInstallEvent};
use super::follow::is_executable;
use super::install::{Failed, broken, forbidden, scratch};
use super::installer::{INSTALL, Installer};
use super::pins::Pin;
use super::request::ToolchainRequest;
use super::store::{InstallSlot, InstallStore, PACKAGE};

/// An analyzer that is a package of PyPI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstallableAnalyzer {
    /// Ruff, one executable.
    Ruff,
    /// mypy, compiled for one version of Python.
    Mypy,
}

impl InstallableAnalyzer {
    /// Every analyzer, in the order of `lanser server list`.
    pub const ALL: [Self; 2] = [Self::Ruff, Self::Mypy];

    /// The kind of analyzer.
    #[must_use]
    pub const fn kind(self) -> AnalyzerKind {
        match self {
            Self::Ruff => AnalyzerKind::Ruff,
            Self::Mypy => AnalyzerKind::Mypy,
        }
    }

    /// The analyzer with this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|analyzer| analyzer.name() == name)
    }

    /// The name of the package.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.kind().as_str()
    }

    /// The version that is installed.
    #[must_use]
    pub const fn version(self) -> &'static str {
        match self {
            Self::Ruff => "0.17.6",
            Self::Mypy => "2.4.1",
        }
    }

    /// The packages to install with their versions, for a version of Python such as `3.11`. The package of the analyzer is
    /// the first.
    pub(super) fn packages(self, python: &str) -> impl Iterator<Item = (&'static str, &'static str)> + use<> {
        const MYPY_NEEDS: [(&str, &str); 6] = [
            ("mypy_extensions", "1.2.0"),
            ("pathspec", "1.1.1"),
            ("typing_extensions", "4.16.0"),
            ("librt", "0.16.0"),
            ("ast_serialize", "0.13.1"),
            ("tomli", "2.5.0"),
        ];
        // The standard library has a TOML parser since 3.11.
        let needed = match self {
            Self::Ruff => 0,
            Self::Mypy if python == "3.10" => MYPY_NEEDS.len(),
            Self::Mypy => MYPY_NEEDS.len() - 1,
        };
        std::iter::once((self.name(), self.version())).chain(MYPY_NEEDS.into_iter().take(needed))
    }

    /// The file that shows that it is there, relative to the folder of the install.
    const fn main_file(self) -> &'static str {
        match self {
            Self::Ruff => "bin/ruff",
            Self::Mypy => "package/mypy/__init__.py",
        }
    }

    fn slot(self, request: &ToolchainRequest, python: &str) -> InstallSlot {
        let python = match self {
            Self::Ruff => None,
            Self::Mypy => Some(python),
        };
        InstallStore::new(&request.cache).analyzer(self.name(), self.version(), python)
    }
}

/// An analyzer in lanser's cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledAnalyzer {
    /// Which analyzer.
    pub analyzer: InstallableAnalyzer,
    /// Of Ruff the executable, of mypy the folder of its modules.
    pub path: AbsPath,
}

/// Finds an analyzer in lanser's cache. `python` is the version of the interpreter that is to run it, such as `3.11`.
///
/// # Errors
/// If it is not installed; see [`Unavailable`].
pub fn find_analyzer(
    request: &ToolchainRequest,
    analyzer: InstallableAnalyzer,
    python: &str,
) -> Result<InstalledAnalyzer, Unavailable> {
    let slot = analyzer.slot(request, python);
    found(analyzer, &slot).map_err(|why| Unavailable {
        what: format!("no {} {} was found", analyzer.name(), analyzer.version()),
        tried: vec![SearchAttempt::new(slot.folder().to_string(), why)],
        hint: format!("run `lanser server install {}`", analyzer.name()),
    })
}

/// Finds an analyzer, or installs it into lanser's cache. Blocks while pip runs.
///
/// # Errors
/// If there is none and it cannot be installed; see [`Unavailable`].
pub fn ensure_analyzer(
    request: &ToolchainRequest,
    analyzer: InstallableAnalyzer,
    python: &str,
    progress: &mut dyn FnMut(InstallEvent),
) -> Result<InstalledAnalyzer, Unavailable> {
    find_analyzer(request, analyzer, python)
        .or_else(|_| install_analyzer(request, analyzer, python, progress))
}

/// Installs an analyzer into lanser's cache, and replaces a damaged one.
///
/// # Errors
/// If it cannot be installed; see [`Unavailable`].
pub fn install_analyzer(
    request: &ToolchainRequest,
    analyzer: InstallableAnalyzer,
    python: &str,
    progress: &mut dyn FnMut(InstallEvent),
) -> Result<InstalledAnalyzer, Unavailable> {
    let slot = analyzer.slot(request, python);
    let is_intact = |slot: &InstallSlot| {
        found(analyzer, slot).is_ok() && slot.recorded_code().is_some_and(|code| code_of(slot) == Some(code))
    };
    let command = format!("lanser server install {}", analyzer.name());
    let unavailable = |tried: Vec<SearchAttempt>, hint: String| Unavailable {
        what: format!("no {} {} was found, and none could be installed", analyzer.name(), analyzer.version()),
        tried,
        hint,
    };
    if request.offline {
        if is_intact(&slot) {
            return found(analyzer, &slot).map_err(|why| {
                unavailable(vec![SearchAttempt::new(slot.folder().to_string(), why)], String::new())
            });
        }
        let why = found(analyzer, &slot).err().unwrap_or_else(|| "is damaged".to_owned());
        let tried = vec![SearchAttempt::new(slot.folder().to_string(), why), forbidden()];
        return Err(unavailable(tried, format!("run `{command}` without --offline")));
    }
    let filled = slot.fill(is_intact, progress, |content, report| {
        build(request, analyzer, python, &slot, content, report)
    });
    let done = filled.map_err(|Failed(tried)| tried).and_then(|()| {
        found(analyzer, &slot).map_err(|why| vec![SearchAttempt::new(slot.folder().to_string(), why)])
    });
    done.map_err(|tried| {
        let has_pip = tried.iter().any(|attempt| attempt.what.contains(INSTALL));
        let hint = if has_pip {
            format!("fix the installer's error, then run `{command}`")
        } else {
            format!("install Python 3 with pip, then run `{command}`")
        };
        unavailable(tried, hint)
    })
}

fn found(analyzer: InstallableAnalyzer, slot: &InstallSlot) -> Result<InstalledAnalyzer, String> {
    slot.check_marker()?;
    let main = slot.folder().join(analyzer.main_file());
    let (is_there, path) = match analyzer {
        InstallableAnalyzer::Ruff => (is_executable(main.as_path()), main.clone()),
        InstallableAnalyzer::Mypy => (main.as_path().is_file(), slot.package_folder()),
    };
    if is_there {
        Ok(InstalledAnalyzer { analyzer, path })
    } else {
        Err(format!("is an incomplete install: it has no {}", analyzer.main_file()))
    }
}

/// Creates the content of an analyzer's folder.
fn build(
    request: &ToolchainRequest,
    analyzer: InstallableAnalyzer,
    python: &str,
    slot: &InstallSlot,
    content: &AbsPath,
    report: OnInstallEvent<'_>,
) -> Result<(), Failed> {
    let pip = Installer::pip(request)?;
    report(InstallEvent::Installing { what: slot.title(), with: pip.name().to_owned() });
    let staging = scratch(content, pip.name())?;
    let pins: Vec<(&str, &str, Option<&Pin>)> = analyzer
        .packages(python)
        .map(|(package, version)| (package, version, Pin::of(request.pins, package, version)))
        .collect();
    let python = (analyzer == InstallableAnalyzer::Mypy).then_some(python);
    pip.fetch_wheels(request, &pins, python, &staging)?;
    let moved = match analyzer {
        InstallableAnalyzer::Ruff => {
            let program = content.join(analyzer.main_file());
            fs::create_dir_all(program.parent().as_path())
                .and_then(|()| fs::rename(staging.join("bin/ruff").as_path(), program.as_path()))
        }
        InstallableAnalyzer::Mypy => fs::rename(staging.as_path(), content.join(PACKAGE).as_path()),
    };
    moved.map_err(|error| broken(content, &error))?;
    let code = tree_digest(content).map_err(|error| broken(content, &error))?;
    Ok(slot.finish(content, pip.name(), Some(code))?)
}

fn code_of(slot: &InstallSlot) -> Option<Digest> {
    tree_digest(&slot.folder()).ok()
}

/// The digest of the names and contents of all files in the subfolders of a folder.
fn tree_digest(folder: &AbsPath) -> std::io::Result<Digest> {
    let mut files = Vec::new();
    let mut folders: Vec<AbsPath> = Vec::new();
    for entry in fs::read_dir(folder.as_path())? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            folders.push(folder.join(&entry.file_name().to_string_lossy()));
        }
    }
    while let Some(inside) = folders.pop() {
        for entry in fs::read_dir(inside.as_path())? {
            let entry = entry?;
            let path = inside.join(&entry.file_name().to_string_lossy());
            if entry.file_type()?.is_dir() {
                folders.push(path);
            } else {
                files.push(path);
            }
        }
    }
    files.sort();
    let mut fields = Vec::new();
    for path in files {
        fields.push(path.strip_prefix(folder).unwrap_or_default().as_bytes().to_vec());
        fields.push(Digest::of(&fs::read(path.as_path())?).as_bytes().to_vec());
    }
    Ok(Digest::of_fields(fields.iter().map(Vec::as_slice)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_python_3_10_needs_a_toml_parser() {
        let has_tomli = |python| InstallableAnalyzer::Mypy.packages(python).any(|(name, _)| name == "tomli");
        assert!(has_tomli("3.10") && !has_tomli("3.11"));
        assert_eq!(InstallableAnalyzer::Ruff.packages("3.10").count(), 1);
    }

    #[test]
    fn a_damaged_file_changes_the_digest_and_the_marker_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let root = AbsPath::new(folder.path()).unwrap();
        fs::create_dir(root.join("bin").as_path()).unwrap();
        fs::write(root.join("bin/ruff").as_path(), "a").unwrap();
        let before = tree_digest(&root).unwrap();
        fs::write(root.join("installed.json").as_path(), "{}").unwrap();
        assert_eq!(tree_digest(&root).unwrap(), before);
        fs::write(root.join("bin/ruff").as_path(), "b").unwrap();
        assert_ne!(tree_digest(&root).unwrap(), before);
    }
}
