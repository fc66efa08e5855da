//! The Python environment: which interpreter, and where it and its packages are.
//!
//! The interpreter is run once to describe itself. The description is cached on disk under a key of everything that
//! could change it, so that the next process needs only a few `stat` calls. The interpreter runs in isolated mode
//! (`-I`), so neither `PYTHONPATH` nor the user's site folder is part of the environment: both differ between machines
//! that are otherwise equal.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::distributions::RecordDigests;
use super::files::{FileKind, Files, read_bytes};
use super::virtual_env;
use crate::digest::Digest;
use crate::path::AbsPath;
use crate::process;

/// The time limit for an interpreter to describe itself.
const PROBE_TIMEOUT: Duration = Duration::from_secs(30);
/// How much of its output is read.
const PROBE_LIMIT_BYTES: usize = 1 << 20;
/// The version of the cached description's format. Another version is ignored.
const FORMAT: u32 = 2;
/// `.pth` files of this size or larger are not read. This is Pyright's limit.
const MAX_PTH_BYTES: usize = 64 * 1024;

/// The name of the folder in which version managers (pyenv, asdf, mise) put their stand-ins for interpreters.
const SHIMS: &str = "shims";
/// Where they keep the selected version: variables, and files in the home folder.
const VERSION_VARIABLES: [&str; 3] = ["PYENV_VERSION", "ASDF_PYTHON_VERSION", "MISE_PYTHON_VERSION"];
const VERSION_FILES: [&str; 2] = [".tool-versions", ".config/mise/config.toml"];

const PROBE: &str = r#"
import json, os, site, sys, sysconfig
found = [p for p in sys.path if os.path.basename(p) in ("site-packages", "dist-packages")]
found += getattr(site, "getsitepackages", list)() + [sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
folders = []
for p in found:
    if p and p not in folders and os.path.isdir(p):
        folders.append(p)
print(json.dumps({
    "version": "%d.%d.%d" % sys.version_info[:3],
    "implementation": sys.implementation.name,
    "prefix": sys.prefix,
    "base_prefix": sys.base_prefix,
    "stdlib": sysconfig.get_path("stdlib"),
    "site_packages": folders,
    "search_path": [p for p in sys.path if p and os.path.isdir(p)],
}))
"#;

/// A Python environment: an interpreter, its version and its folders.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct PythonEnvironment {
    /// The path of the interpreter. Symbolic links are not resolved, because a virtual environment is recognized by its
    /// link.
    pub interpreter: AbsPath,
    /// Such as `3.11.7`.
    pub version: String,
    /// Such as `cpython`.
    pub implementation: String,
    /// `sys.prefix`.
    pub prefix: AbsPath,
    /// `sys.base_prefix`: another folder than `prefix` in a virtual environment.
    pub base_prefix: AbsPath,
    /// The folder of the standard library.
    pub stdlib: AbsPath,
    /// The existing folders of installed packages, in the interpreter's order.
    pub site_packages: Vec<AbsPath>,
    /// The existing folders of `sys.path`, in order, without the current folder.
    #[serde(default)]
    pub search_path: Vec<AbsPath>,
}

/// Why an interpreter could not be probed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum PythonError {
    /// It cannot be run.
    #[error("cannot run {interpreter}: {reason}")]
    Start {
        /// The interpreter.
        interpreter: AbsPath,
        /// The system's error message.
        reason: String,
    },
    /// It did not finish in time.
    #[error("{interpreter} did not describe itself within {} s", PROBE_TIMEOUT.as_secs())]
    Deadline {
        /// The interpreter.
        interpreter: AbsPath,
    },
    /// Its output is not a description.
    #[error("{interpreter} did not print a description of itself: {reason}")]
    Answer {
        /// The interpreter.
        interpreter: AbsPath,
        /// What was wrong, with what it printed.
        reason: String,
    },
    /// The system could not run it at this moment, or ended it.
    #[error("{interpreter} could not be run now: {reason}")]
    Busy {
        /// The interpreter.
        interpreter: AbsPath,
        /// The system's error message, or how it ended.
        reason: String,
    },
}

impl PythonError {
    /// Whether a later attempt may succeed, because the error says nothing about the interpreter itself.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        matches!(self, Self::Deadline { .. } | Self::Busy { .. })
    }
}

/// Where the user may have named an interpreter.
#[derive(Debug, Clone, Default)]
pub struct InterpreterHints<'c> {
    /// The interpreter or environment that the user configured.
    pub explicit: Option<AbsPath>,
    /// The active virtual environment.
    pub virtual_env: Option<AbsPath>,
    /// The active conda environment.
    pub conda_prefix: Option<AbsPath>,
    /// The folders of `PATH`.
    pub search_path: &'c [PathBuf],
}

/// An environment to be tried, and how its description is obtained.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EnvironmentCandidate {
    /// By running this interpreter.
    Run(AbsPath),
    /// By reading the files of this folder ([`super::virtual_env`]), without running anything.
    Read(AbsPath),
}

/// The environments to try for a workspace, in order of preference: the configured one (and then no other), the active
/// ones, the virtual environments in the workspace's root (`.venv`, `venv`, then any folder with a `pyvenv.cfg`), and
/// those of the interpreters on the search path. Empty when the configured one must not be run.
///
/// Unless the checkout is `trusted`, no program in it is run: virtual environments are read from their files, and so is
/// any environment whose path or interpreter is in the checkout, also through symbolic links. A configured program that is
/// not in an environment is run.
#[must_use]
pub fn candidates(
    hints: &InterpreterHints<'_>,
    files: &dyn Files,
    root: &AbsPath,
    checkout: &AbsPath,
    trusted: bool,
) -> Vec<EnvironmentCandidate> {
    let python = |prefix: &AbsPath| {
        let names = ["bin/python", "bin/python3"];
        names.into_iter().map(|name| prefix.join(name)).find(|path| files.kind(path) == FileKind::File)
    };
    let is_inside = |path: &AbsPath| {
        path.strip_prefix(checkout).is_some() || files.canonical(path).strip_prefix(checkout).is_some()
    };
    let is_read = |prefix: &AbsPath, program: Option<&AbsPath>| {
        let is_in_checkout = || is_inside(prefix) || program.is_some_and(is_inside);
        !trusted
            && (virtual_env::is_virtual(files, prefix)
                || virtual_env::is_environment(files, prefix) && is_in_checkout())
    };
    let of_prefix = |prefix: &AbsPath| {
        let program = python(prefix);
        match program {
            program if is_read(prefix, program.as_ref()) => Some(EnvironmentCandidate::Read(prefix.clone())),
            Some(program) => (trusted || !is_inside(&program)).then_some(EnvironmentCandidate::Run(program)),
            None => None,
        }
    };
    let of_program = |program: &AbsPath| {
        let prefix = program.parent().parent();
        let is_read = is_read(&prefix, Some(program));
        if is_read { EnvironmentCandidate::Read(prefix) } else { EnvironmentCandidate::Run(program.clone()) }
    };
    if let Some(explicit) = &hints.explicit {
        return match of_prefix(explicit) {
            Some(folder) => vec![folder],
            // An environment whose interpreter is a link into the checkout.
            None if python(explicit).is_some() => Vec::new(),
            None => vec![of_program(explicit)],
        };
    }
    let active = [&hints.virtual_env, &hints.conda_prefix].into_iter().flatten();
    let mut found: Vec<EnvironmentCandidate> = active.filter_map(of_prefix).collect();
    let preferred = [".venv", "venv"].map(str::to_owned);
    let in_workspace = preferred.into_iter().chain(files.list(root)).map(|name| root.join(&name));
    found.extend(
        in_workspace
            .filter(|folder| virtual_env::is_virtual(files, folder))
            .filter_map(|folder| of_prefix(&folder)),
    );
    let folders = hints.search_path.iter().filter_map(|folder| AbsPath::new(folder).ok());
    let programs = folders
        .flat_map(|folder| ["python3", "python"].map(|name| folder.join(name)))
        .filter(|path| files.kind(path) == FileKind::File);
    let on_path = programs.map(|program| of_program(&program));
    found.extend(on_path.filter(|found| match found {
        EnvironmentCandidate::Run(program) => trusted || !is_inside(program),
        EnvironmentCandidate::Read(_) => true,
    }));
    let mut distinct = Vec::new();
    for candidate in found {
        if !distinct.contains(&candidate) {
            distinct.push(candidate);
        }
    }
    distinct
}

/// What an interpreter printed about itself, with the paths as printed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct InterpreterInfo {
    version: String,
    implementation: String,
    prefix: String,
    base_prefix: String,
    stdlib: String,
    site_packages: Vec<String>,
    search_path: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct CachedInterpreterInfo {
    format: u32,
    key: String,
    answer: InterpreterInfo,
}

/// What an interpreter says about itself, once it was run.
type Description = OnceLock<Result<InterpreterInfo, PythonError>>;

/// A cache of what was read about interpreters and installed packages, in memory and, if there is a cache folder, on
/// disk. Each entry's key includes everything that could change it.
#[derive(Debug, Default)]
pub struct EnvironmentCache {
    /// The cache folder on disk.
    pub(super) folder: Option<AbsPath>,
    /// Each is described once, however many requests need it.
    interpreters: Mutex<BTreeMap<Digest, Arc<Description>>>,
    /// By site-packages folder.
    pub(super) records: Mutex<BTreeMap<AbsPath, RecordDigests>>,
}

impl EnvironmentCache {
    /// A cache that reads and writes `folder`, if there is one.
    #[must_use]
    pub fn new(folder: Option<AbsPath>) -> Self {
        Self { folder, ..Self::default() }
    }
}

impl PythonEnvironment {
    /// Runs an interpreter to describe itself, unless `cache` has its description. `environment` is passed to the
    /// process (`PATH` and `HOME` are enough).
    ///
    /// # Errors
    /// See [`PythonError`]. Errors of the cache files are ignored.
    pub fn probe(
        interpreter: &AbsPath,
        cache: &EnvironmentCache,
        environment: &[(String, String)],
    ) -> Result<Self, PythonError> {
        let key = key_of(interpreter, environment);
        let interpreters = || cache.interpreters.lock().unwrap_or_else(PoisonError::into_inner);
        let forget = |entry: &Arc<Description>| {
            let mut interpreters = interpreters();
            if interpreters.get(&key).is_some_and(|current| Arc::ptr_eq(current, entry)) {
                interpreters.remove(&key);
            }
        };
        let known = interpreters().get(&key).cloned();
        if let Some(known) = known
            && let Some(Ok(info)) = known.get()
            && !Path::new(&info.stdlib).is_dir()
        {
            forget(&known);
        }
        let entry = interpreters().entry(key).or_default().clone();
        let described =
            entry.get_or_init(|| Self::describe(interpreter, &key, cache.folder.as_ref(), environment));
        let found = described.clone().and_then(|info| Self::from_info(interpreter, &info));
        if found.is_err() {
            // Those who waited for it fail, too; a later request tries again.
            forget(&entry);
        }
        found
    }

    /// Reads the description of an interpreter from the cache folder, or runs the interpreter.
    fn describe(
        interpreter: &AbsPath,
        key: &Digest,
        cache_folder: Option<&AbsPath>,
        environment: &[(String, String)],
    ) -> Result<InterpreterInfo, PythonError> {
        let file = cache_folder.map(|folder| folder.join(&format!("python/{}.json", &key.to_hex()[..32])));
        if let Some(info) = file.as_ref().and_then(|file| read_cached(file, key))
            && Self::from_info(interpreter, &info).is_ok_and(|found| found.stdlib.as_path().is_dir())
        {
            return Ok(info);
        }
        let info = run_probe(interpreter, environment)?;
        Self::from_info(interpreter, &info)?;
        if let Some(file) = file {
            let cached = CachedInterpreterInfo { format: FORMAT, key: key.to_string(), answer: info.clone() };
            if let Ok(text) = serde_json::to_vec(&cached) {
                // Errors are ignored: the next process runs the interpreter again.
                let _ = write_atomically(&file, &text);
            }
        }
        Ok(info)
    }

    /// # Errors
    /// If one of its folders is not an absolute path.
    fn from_info(interpreter: &AbsPath, info: &InterpreterInfo) -> Result<Self, PythonError> {
        let path = |text: &String| AbsPath::new(text).ok();
        let found = || {
            Some(Self {
                interpreter: interpreter.clone(),
                version: info.version.clone(),
                implementation: info.implementation.clone(),
                prefix: path(&info.prefix)?,
                base_prefix: path(&info.base_prefix)?,
                stdlib: path(&info.stdlib)?,
                site_packages: info.site_packages.iter().filter_map(path).collect(),
                search_path: info.search_path.iter().filter_map(path).collect(),
            })
        };
        found().ok_or_else(|| PythonError::Answer {
            interpreter: interpreter.clone(),
            reason: "a folder in it is not an absolute path in UTF-8".to_owned(),
        })
    }

    /// The folders that the `.pth` files of the site-packages folders list, in the order of the files' names.
    #[must_use]
    pub fn pth_roots(&self, files: &dyn Files) -> Vec<AbsPath> {
        let mut roots = Vec::new();
        for root in self.site_packages.iter().flat_map(|folder| pth_folders(files, folder)) {
            if !roots.contains(&root) {
                roots.push(root);
            }
        }
        roots
    }

    /// A digest of the environment that does not depend on its folder. It covers the interpreter's version and
    /// implementation, the installed distributions with the file hashes in their RECORDs, and the `.pth` files. It is
    /// equal on two machines that have the same packages. The digests of RECORDs are cached by size and modification
    /// time.
    #[must_use]
    pub fn identity(&self, files: &dyn Files, workspace: &AbsPath, cache: &EnvironmentCache) -> Digest {
        let mut fields: Vec<String> = vec![self.implementation.clone(), self.version.clone()];
        let mut folders: Vec<(String, &AbsPath)> =
            self.site_packages.iter().map(|folder| (self.portable(folder, workspace), folder)).collect();
        folders.sort();
        for (name, folder) in folders {
            fields.push(format!("site-packages {name}"));
            fields.extend(super::distributions::identities(files, folder, cache));
            for (file, lines) in pth_files(files, folder) {
                fields.push(format!("pth {file}"));
                fields.extend(lines.iter().map(|line| {
                    if is_code(line) { line.clone() } else { self.portable(&folder.join(line), workspace) }
                }));
            }
        }
        Digest::of_fields(fields.iter().map(String::as_bytes))
    }

    /// A machine-independent name of a folder: relative to the workspace or the environment, otherwise its last
    /// component.
    fn portable(&self, folder: &AbsPath, workspace: &AbsPath) -> String {
        let roots = [("env", &self.prefix), ("base", &self.base_prefix), ("workspace", workspace)];
        let inside = roots.into_iter().filter_map(|(name, root)| Some((name, folder.strip_prefix(root)?)));
        // The nearest root: an environment may be inside the workspace, or the workspace inside the environment.
        match inside.min_by_key(|(_, rest)| rest.len()) {
            Some((name, rest)) => format!("{name}:{rest}"),
            None => format!("outside:{}", folder.file_name()),
        }
    }
}

/// The existing folders that the `.pth` files of a folder list, in the order of the files' names.
pub(super) fn pth_folders(files: &dyn Files, folder: &AbsPath) -> Vec<AbsPath> {
    let mut found = Vec::new();
    for (_, lines) in pth_files(files, folder) {
        let paths = lines.iter().filter(|line| !is_code(line)).map(|line| folder.join(line));
        found.extend(paths.filter(|path| files.kind(path) == FileKind::Folder));
    }
    found
}

/// The lines of each `.pth` file of a folder, without comments and empty lines.
fn pth_files(files: &dyn Files, folder: &AbsPath) -> Vec<(String, Vec<String>)> {
    let names = files.list(folder).into_iter().filter(|name| name.ends_with(".pth"));
    let read = names.filter_map(|name| {
        let document = files.read(&folder.join(&name)).ok()?;
        if document.text.len() >= MAX_PTH_BYTES {
            return None;
        }
        let lines = document.text.lines().map(str::trim);
        let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#')).map(str::to_owned);
        Some((name, lines.collect()))
    });
    read.collect()
}

/// Whether the interpreter executes this line of a `.pth` file.
fn is_code(line: &str) -> bool {
    line.strip_prefix("import").is_some_and(|rest| rest.starts_with([' ', '\t']))
}

/// A digest of everything that could change the interpreter's description.
fn key_of(interpreter: &AbsPath, environment: &[(String, String)]) -> Digest {
    let mut fields = vec![PROBE.to_owned(), interpreter.as_str().to_owned()];
    fields.push(super::files::canonical(interpreter).as_str().to_owned());
    fields.push(stamp_of(interpreter));
    let mut add = |file: &AbsPath| {
        let text = read_bytes(file).unwrap_or_default();
        fields.push(Digest::of(&text).to_string());
    };
    for config in ["../pyvenv.cfg", "pyvenv.cfg"] {
        add(&interpreter.parent().join(config));
    }
    if interpreter.parent().file_name() == SHIMS {
        // A version manager's program of this name runs the interpreter that is selected elsewhere.
        add(&interpreter.parent().join("../version"));
        let variable = |name: &str| environment.iter().find(|(key, _)| key == name).map(|(_, value)| value);
        if let Some(home) = variable("HOME").and_then(|home| AbsPath::new(home).ok()) {
            VERSION_FILES.iter().for_each(|file| add(&home.join(file)));
        }
        fields.extend(VERSION_VARIABLES.map(|name| variable(name).cloned().unwrap_or_default()));
    }
    Digest::of_fields(fields.iter().map(String::as_bytes))
}

/// The size and modification time of a file; empty when the file does not exist.
pub(super) fn stamp_of(path: &AbsPath) -> String {
    let Ok(metadata) = std::fs::metadata(path.as_path()) else { return String::new() };
    let modified = metadata.modified().ok().and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
    format!("{} {}", metadata.len(), modified.unwrap_or_default().as_nanos())
}

fn read_cached(file: &AbsPath, key: &Digest) -> Option<InterpreterInfo> {
    let cached: CachedInterpreterInfo = serde_json::from_slice(&read_bytes(file).ok()?).ok()?;
    (cached.format == FORMAT && cached.key == key.to_string()).then_some(cached.answer)
}

/// Writes a temporary file and renames it into place, so that readers never see a half-written file.
pub(super) fn write_atomically(file: &AbsPath, bytes: &[u8]) -> std::io::Result<()> {
    use std::io::Write as _;
    let folder = file.parent();
    crate::path::private::create(folder.as_path())?;
    let mut temporary = tempfile::NamedTempFile::new_in(folder.as_path())?;
    temporary.write_all(bytes)?;
    temporary.persist(file.as_path()).map_err(|error| error.error)?;
    Ok(())
}

/// Runs the interpreter to describe itself.
fn run_probe(
    interpreter: &AbsPath,
    environment: &[(String, String)],
) -> Result<InterpreterInfo, PythonError> {
    let busy = |reason: String| PythonError::Busy { interpreter: interpreter.clone(), reason };
    let cannot_run = |error: std::io::Error| match error.kind() {
        ErrorKind::WouldBlock
        | ErrorKind::OutOfMemory
        | ErrorKind::ExecutableFileBusy
        | ErrorKind::Interrupted
        | ErrorKind::QuotaExceeded => busy(error.kind().to_string()),
        kind => PythonError::Start { interpreter: interpreter.clone(), reason: kind.to_string() },
    };
    let bad_output = |reason: String| PythonError::Answer { interpreter: interpreter.clone(), reason };
    let mut command = Command::new(interpreter.as_path());
    command.args(["-I", "-c", PROBE]).current_dir(Path::new("/")).env_clear();
    command.envs(environment.iter().map(|(name, value)| (name, value)));
    let found =
        process::output(&mut command, Vec::new(), PROBE_TIMEOUT, PROBE_LIMIT_BYTES).map_err(cannot_run)?;
    let (Some(status), true, bytes) = (found.status, found.is_complete, found.stdout) else {
        return Err(PythonError::Deadline { interpreter: interpreter.clone() });
    };
    // Any other signal may be a defect of the interpreter.
    if let Some(signal @ (9 | 15)) = status.signal() {
        return Err(busy(format!("signal {signal} ended it")));
    }
    if !status.success() {
        return Err(bad_output(format!("it ended with {status}")));
    }
    serde_json::from_slice(&bytes).map_err(|error| {
        let printed: String = String::from_utf8_lossy(&bytes).chars().take(200).collect();
        bad_output(format!("{error}; it printed {printed:?}"))
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::super::files::{DiskFiles, MemoryFiles};
    use super::*;

    fn at(path: &str) -> AbsPath {
        AbsPath::new(path).unwrap()
    }

    fn script(folder: &Path, text: &str) -> AbsPath {
        let (draft, path) = (folder.join("draft"), folder.join("python"));
        std::fs::write(&draft, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(&draft, std::fs::Permissions::from_mode(0o755)).unwrap();
        // Copied by another process: one that this process has open for writing while another test forks is "busy".
        assert!(Command::new("cp").args([&draft, &path]).status().unwrap().success());
        AbsPath::new(path).unwrap()
    }

    const ANSWER: &str = r#"{"version":"3.9.1","implementation":"cpython","prefix":"/","base_prefix":"/","stdlib":"/","site_packages":["/"],"search_path":["/"]}"#;

    #[test]
    fn the_order_of_preference() {
        let files = MemoryFiles::new([
            ("/act/bin/python", ""),
            ("/w/myenv/pyvenv.cfg", ""),
            ("/w/myenv/bin/python", ""),
            ("/w/venv/pyvenv.cfg", ""),
            ("/w/venv/bin/python3", ""),
            ("/w/bin/python3", ""),
            ("/usr/bin/python3", ""),
        ]);
        let path = ["relative", "/none", "/w/bin", "/w/myenv/bin", "/usr/bin"].map(PathBuf::from);
        let mut hints = InterpreterHints { search_path: &path, ..InterpreterHints::default() };
        let all = |hints: &InterpreterHints<'_>, root: &str, trusted| {
            candidates(hints, &files, &at(root), &at(root), trusted)
        };
        let (run, read) = (
            |path: &str| EnvironmentCandidate::Run(at(path)),
            |path: &str| EnvironmentCandidate::Read(at(path)),
        );
        // Environments in the checkout are read, and a program there that is not in an environment is ignored.
        assert_eq!(all(&hints, "/w", false), [read("/w/venv"), read("/w/myenv"), run("/usr/bin/python3")]);
        let trusted = ["/w/venv/bin/python3", "/w/myenv/bin/python", "/w/bin/python3", "/usr/bin/python3"];
        assert_eq!(all(&hints, "/w", true), trusted.map(run));
        assert_eq!(all(&hints, "/x", false)[0], run("/w/bin/python3"));
        hints.conda_prefix = Some(at("/gone"));
        assert_eq!(all(&hints, "/w", false)[0], read("/w/venv"));
        hints.virtual_env = Some(at("/w/myenv"));
        assert_eq!(all(&hints, "/w", false)[0], read("/w/myenv"));
        hints.virtual_env = Some(at("/act"));
        assert_eq!(all(&hints, "/w", false)[0], run("/act/bin/python"));
        for (explicit, expected) in [
            ("/nowhere/python", run("/nowhere/python")),
            ("/w/myenv", read("/w/myenv")),
            ("/w/myenv/bin/python", read("/w/myenv")),
            ("/act", run("/act/bin/python")),
        ] {
            hints.explicit = Some(at(explicit));
            assert_eq!(all(&hints, "/w", false), [expected]);
        }
        assert_eq!(all(&InterpreterHints::default(), "/x", true), []);
    }

    #[test]
    fn a_link_in_the_workspace_never_makes_a_program_run() {
        let folder = tempfile::tempdir().unwrap();
        let root = AbsPath::new(folder.path().canonicalize().unwrap()).unwrap();
        let (checkout, elsewhere) = (root.join("repository"), root.join("elsewhere"));
        let workspace = checkout.join("pkg");
        for folder in [workspace.join(".venv/bin"), elsewhere.join("bin")] {
            std::fs::create_dir_all(folder.as_path()).unwrap();
        }
        std::fs::write(checkout.join("evil").as_path(), "").unwrap();
        std::fs::write(elsewhere.join("bin/python").as_path(), "").unwrap();
        std::fs::write(elsewhere.join("pyvenv.cfg").as_path(), "").unwrap();
        std::fs::write(workspace.join(".venv/pyvenv.cfg").as_path(), "").unwrap();
        let link = |target: &str, path: &AbsPath| std::os::unix::fs::symlink(target, path.as_path()).unwrap();
        link("../../../evil", &workspace.join(".venv/bin/python"));
        link("../../elsewhere", &workspace.join("venv"));
        // A folder of the search path that leads into the checkout.
        link("repository/pkg", &root.join("link"));
        link("../evil", &workspace.join("python3"));
        let path = [root.join("link").as_path().to_owned()];
        let mut hints = InterpreterHints { search_path: &path, ..InterpreterHints::default() };
        let all =
            |hints: &InterpreterHints<'_>| candidates(hints, &DiskFiles::new(), &workspace, &checkout, false);
        let read = [".venv", "venv"].map(|name| EnvironmentCandidate::Read(workspace.join(name)));
        assert_eq!(all(&hints), read);
        // An environment outside of the checkout whose interpreter is a link into it.
        std::fs::remove_file(elsewhere.join("bin/python").as_path()).unwrap();
        link("../../repository/evil", &elsewhere.join("bin/python"));
        hints.virtual_env = Some(elsewhere.clone());
        assert_eq!(all(&hints)[0], EnvironmentCandidate::Read(elsewhere));
    }

    #[test]
    fn an_interpreter_runs_once_and_a_damaged_cache_is_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let calls = folder.path().join("calls");
        let python = script(folder.path(), &format!("echo x >> '{}'\necho '{ANSWER}'", calls.display()));
        let cache = AbsPath::new(folder.path().join("cache")).unwrap();
        let probe =
            || PythonEnvironment::probe(&python, &EnvironmentCache::new(Some(cache.clone())), &[]).unwrap();
        let calls = || std::fs::read_to_string(&calls).unwrap().lines().count();
        let first = probe();
        assert_eq!(first.version, "3.9.1");
        assert_eq!(probe(), first);
        assert_eq!(calls(), 1);
        for entry in std::fs::read_dir(cache.join("python").as_path()).unwrap() {
            std::fs::write(entry.unwrap().path(), "{\"format\":1").unwrap();
        }
        assert_eq!(probe(), first);
        assert_eq!(calls(), 2);
        std::fs::write(folder.path().join("pyvenv.cfg"), "home = /x\n").unwrap();
        assert_eq!(probe(), first);
        assert_eq!(calls(), 3);
        let in_memory = EnvironmentCache::default();
        for _ in 0..2 {
            assert_eq!(PythonEnvironment::probe(&python, &in_memory, &[]).unwrap(), first);
            assert_eq!(calls(), 4, "a process runs it once even without a cache folder");
        }
    }

    #[test]
    fn requests_at_one_time_run_an_interpreter_once() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let text = format!("echo >>{}; sleep 0.2; echo '{ANSWER}'", log.display());
        let (python, cache) = (script(folder.path(), &text), EnvironmentCache::default());
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| PythonEnvironment::probe(&python, &cache, &[]).unwrap());
            }
        });
        assert_eq!(std::fs::read_to_string(&log).unwrap().lines().count(), 1);
        let failing = script(folder.path(), &format!("echo >>{}; exit 1", log.display()));
        for _ in 0..2 {
            PythonEnvironment::probe(&failing, &cache, &[]).unwrap_err();
        }
        assert_eq!(std::fs::read_to_string(&log).unwrap().lines().count(), 3, "tried again");
    }

    #[test]
    fn the_version_that_a_version_manager_selects_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        let shims = folder.path().join("shims");
        std::fs::create_dir(&shims).unwrap();
        let select = |version: &str| std::fs::write(folder.path().join("version"), version).unwrap();
        let text = format!(
            "version=${{PYENV_VERSION:-$(cat {}/version)}}; echo '{ANSWER}' | sed s/3.9.1/$version/",
            folder.path().display()
        );
        let (python, cache) = (script(&shims, &text), EnvironmentCache::default());
        let variable = |name: &str| ("PYENV_VERSION".to_owned(), name.to_owned());
        let path = ("PATH".to_owned(), "/usr/bin:/bin".to_owned());
        let version = |more: &[(String, String)]| {
            let environment = [std::slice::from_ref(&path), more].concat();
            PythonEnvironment::probe(&python, &cache, &environment).unwrap().version
        };
        select("3.11.1");
        assert_eq!((version(&[]), version(&[variable("3.8.2")])), ("3.11.1".to_owned(), "3.8.2".to_owned()));
        select("3.12.3");
        assert_eq!(version(&[]), "3.12.3");
    }

    #[test]
    fn a_program_that_is_not_an_interpreter_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let probe = |python: &AbsPath| {
            PythonEnvironment::probe(python, &EnvironmentCache::default(), &[]).unwrap_err().to_string()
        };
        let missing = AbsPath::new(folder.path().join("none")).unwrap();
        assert_eq!(probe(&missing), format!("cannot run {missing}: entity not found"));
        let python = script(folder.path(), "echo hello");
        assert!(probe(&python).contains("it printed \"hello\\n\""));
        let python = script(folder.path(), "exit 3");
        assert!(probe(&python).contains("it ended with exit status: 3"));
        let python = script(folder.path(), "kill -9 $$");
        let killed = PythonEnvironment::probe(&python, &EnvironmentCache::default(), &[]).unwrap_err();
        assert!(killed.is_transient() && killed.to_string().ends_with("signal 9 ended it"), "{killed}");
    }

    fn environment(prefix: &AbsPath) -> PythonEnvironment {
        PythonEnvironment {
            interpreter: prefix.join("bin/python"),
            version: "3.11.7".to_owned(),
            implementation: "cpython".to_owned(),
            prefix: prefix.clone(),
            base_prefix: at("/usr"),
            stdlib: at("/usr/lib/python3.11"),
            site_packages: vec![prefix.join("lib/site-packages")],
            search_path: Vec::new(),
        }
    }

    #[test]
    fn pth_files_list_roots() {
        let files = MemoryFiles::new([
            ("/e/lib/site-packages/b.pth", "# comment\nimport os; os.x\n\n/w/src\n../../missing\n"),
            ("/e/lib/site-packages/a.pth", "vendored\n"),
            ("/e/lib/site-packages/vendored/x.py", ""),
            ("/w/src/y.py", ""),
        ]);
        let roots = environment(&at("/e")).pth_roots(&files);
        assert_eq!(roots, [at("/e/lib/site-packages/vendored"), at("/w/src")]);
    }

    #[test]
    fn identity_depends_on_the_content_and_not_on_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let install = |name: &str, hash: &str| {
            let root = AbsPath::new(folder.path().join(name)).unwrap();
            let packages = root.join("work/.venv/lib/site-packages");
            let info = packages.join("flask-3.0.dist-info");
            std::fs::create_dir_all(info.as_path()).unwrap();
            std::fs::create_dir_all(root.join("work/src").as_path()).unwrap();
            let record =
                format!("flask/app.py,sha256={hash},9\n../../bin/flask,sha256={name},1\nflask/x.pyc,,\n");
            std::fs::write(info.join("RECORD").as_path(), record).unwrap();
            std::fs::write(packages.join("e.pth").as_path(), format!("{}/work/src\n", root.as_str()))
                .unwrap();
            environment(&root.join("work/.venv")).identity(
                &DiskFiles::new(),
                &root.join("work"),
                &EnvironmentCache::default(),
            )
        };
        let first = install("one", "aa");
        assert_eq!(install("another", "aa"), first);
        assert_ne!(install("one", "bb"), first);
    }
}
