//! Ruff's linter. It executes nothing of the project; what its configuration could make it write is switched off.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::config::{self, in_folder};
use super::finding::{Finding, Place, SpanUnit};
use super::process::{ToolCommand, ToolOutput};
use super::{Analyzer, ParsedOutput, ToolIdentity, interpreter};
use crate::digest::Digest;
use crate::engine::failure::Failure;
use crate::engine::server::{tell_progress, toolchain_request};
use crate::engine::settings::Settings;
use crate::model::analyzer::AnalysisScope;
use crate::model::request::Severity;
use crate::path::{AbsPath, WorkspacePath};
use crate::toolchain::{InstallableAnalyzer, ensure_analyzer, find_analyzer};
use crate::workspace::files::canonical;
use crate::workspace::python::PythonEnvironment;

/// The options of every call: nothing is written, and the exit code tells failures from findings. The last one is followed
/// by files.
const OPTIONS: [&str; 8] = [
    "check",
    "--output-format=json",
    "--no-cache",
    "--no-fix",
    "--no-fix-only",
    "--force-exclude",
    "--exit-zero",
    "--quiet",
];

/// The configuration files of a folder. The first one with a configuration counts.
const CONFIGURATION_FILES: [&str; 3] = [".ruff.toml", "ruff.toml", "pyproject.toml"];

/// How many bytes of paths are passed to one call; the system limits the arguments of a program.
const MAX_ARGUMENT_BYTES: usize = 64 << 10;

/// How many files a configuration can extend, one after the other.
const MAX_EXTENDED: usize = 16;

/// The contents of configuration files by path.
type ConfigurationFiles = BTreeMap<String, Vec<u8>>;

/// Ruff.
pub(super) struct Ruff {
    program: AbsPath,
    root: AbsPath,
    identity: ToolIdentity,
    /// The folders with a configuration.
    configured: BTreeSet<String>,
}

/// A diagnostic in Ruff's JSON. Rows and columns are counted from 1, columns in characters (measured on 0.17.6).
#[derive(Deserialize)]
struct RuffDiagnostic {
    filename: String,
    code: Option<String>,
    message: String,
    severity: Option<String>,
    location: RuffLocation,
    end_location: RuffLocation,
}

#[derive(Deserialize)]
struct RuffLocation {
    row: i64,
    column: i64,
}

impl Ruff {
    /// Finds Ruff: the project's own if the workspace is trusted, otherwise the pinned one.
    pub(super) fn find(
        settings: &Settings,
        python: Option<&PythonEnvironment>,
        root: &AbsPath,
        files: &[WorkspacePath],
        install: bool,
    ) -> Result<Self, Failure> {
        let own = python.filter(|_| settings.trust_workspace).and_then(|python| {
            let program = python.prefix.join("bin/ruff");
            let version = interpreter::installed_version(python, "ruff")?;
            program.as_path().is_file().then_some((program, version))
        });
        let (program, version, is_pinned) = match own {
            Some((program, version)) => (program, version, false),
            None => {
                let request = toolchain_request(settings);
                let found = if install {
                    let mut progress = |event| tell_progress(&*settings.progress, &event);
                    ensure_analyzer(&request, InstallableAnalyzer::Ruff, "", &mut progress)
                } else {
                    find_analyzer(&request, InstallableAnalyzer::Ruff, "")
                };
                (found?.path, InstallableAnalyzer::Ruff.version().to_owned(), true)
            }
        };
        let (configured, configuration) = configurations(root, files, settings.trust_workspace)?;
        let mut fields: Vec<Vec<u8>> = OPTIONS.iter().map(|option| option.as_bytes().to_vec()).collect();
        if !configured.is_empty() && !names_version(&configuration) {
            // Ruff then looks for a `requires-python` above the workspace, too, and no option keeps it from that.
            fields.extend(requires_python_above(root).map(String::into_bytes));
        }
        for (path, bytes) in configuration {
            fields.push(path.into_bytes());
            fields.push(bytes);
        }
        let config_digest = Digest::of_fields(fields.iter().map(Vec::as_slice));
        let place = program.clone();
        let identity =
            ToolIdentity { name: "ruff", version, config_digest, place, is_reproducible: is_pinned };
        Ok(Self { program, root: canonical(root), identity, configured })
    }

    /// Whether a folder above a file has a configuration.
    fn is_configured(&self, file: &WorkspacePath) -> bool {
        let mut path = file.as_str();
        while let Some((folder, _)) = path.rsplit_once('/') {
            if self.configured.contains(folder) {
                return true;
            }
            path = folder;
        }
        self.configured.contains("")
    }
}

impl Analyzer for Ruff {
    fn identity(&self) -> &ToolIdentity {
        &self.identity
    }

    fn commands(&self, files: &[WorkspacePath], _: bool) -> Vec<ToolCommand> {
        let (configured, others): (Vec<_>, Vec<_>) =
            files.iter().cloned().partition(|file| self.is_configured(file));
        let mut commands = Vec::new();
        // Without a configuration in the workspace, Ruff would read one above it, or the user's.
        for (files, isolated) in [(configured, false), (others, true)] {
            for files in in_batches(files) {
                let mut arguments: Vec<String> = OPTIONS.map(str::to_owned).to_vec();
                arguments.extend(isolated.then(|| "--isolated".to_owned()));
                arguments.push("--".to_owned());
                // Ruff takes an argument that begins with `@` for a file of arguments.
                arguments.extend(files.iter().map(|file| format!("./{file}")));
                let program = self.program.clone();
                commands.push(ToolCommand { program, arguments, input: Vec::new(), files });
            }
        }
        commands
    }

    fn parse(&self, _: &ToolCommand, output: &ToolOutput) -> Result<ParsedOutput, String> {
        if output.code != Some(0) {
            return Err(format!("it ended with {}", output.end()));
        }
        let found: Vec<RuffDiagnostic> = serde_json::from_slice(&output.stdout)
            .map_err(|error| format!("its output is not valid: {error}"))?;
        let findings = found.into_iter().filter_map(|found| {
            let file = AbsPath::new(&found.filename).ok()?;
            let path = WorkspacePath::new(file.strip_prefix(&self.root)?)?;
            let at = |place: &RuffLocation| [place.row, place.column];
            let place = Place::Span(at(&found.location), at(&found.end_location), SpanUnit::Character);
            let severity = match found.severity.as_deref() {
                Some("warning") => Severity::Warning,
                Some("info") => Severity::Information,
                _ => Severity::Error,
            };
            Some(Finding { path, place, severity, code: found.code, message: found.message })
        });
        Ok(ParsedOutput {
            findings: findings.collect(),
            scope: Some(AnalysisScope::Requested),
            ..ParsedOutput::default()
        })
    }
}

/// The files in groups whose paths are short enough for one call.
fn in_batches(files: Vec<WorkspacePath>) -> Vec<Vec<WorkspacePath>> {
    let mut batches: Vec<Vec<WorkspacePath>> = Vec::new();
    let mut bytes = usize::MAX;
    for file in files {
        let length = file.as_str().len() + 8;
        if bytes.saturating_add(length) > MAX_ARGUMENT_BYTES {
            batches.push(Vec::new());
            bytes = 0;
        }
        bytes += length;
        if let Some(batch) = batches.last_mut() {
            batch.push(file);
        }
    }
    batches
}

/// The folders with a configuration, and the contents of all configuration files by path.
fn configurations(
    root: &AbsPath,
    files: &[WorkspacePath],
    trusted: bool,
) -> Result<(BTreeSet<String>, ConfigurationFiles), Failure> {
    let (mut configured, mut contents) = (BTreeSet::new(), BTreeMap::new());
    for folder in config::folders(files) {
        for name in CONFIGURATION_FILES {
            let path = in_folder(&folder, name);
            let Some(bytes) = config::read(root, &path, trusted)? else { continue };
            let extended = settings_of(&path, &bytes).filter(|_| !configured.contains(&folder));
            let Some(extended) = extended else {
                // Its `requires-python` may count.
                contents.insert(path, bytes);
                continue;
            };
            configured.insert(folder.clone());
            contents.insert(path.clone(), bytes);
            follow(root, path, extended, trusted, &mut contents)?;
        }
    }
    Ok((configured, contents))
}

/// Whether the configuration says for which version of Python the code is.
fn names_version(files: &ConfigurationFiles) -> bool {
    files.iter().any(|(path, bytes)| {
        let text = String::from_utf8_lossy(bytes);
        text.contains("target-version")
            || path.ends_with("pyproject.toml") && requires_python(&text).is_some()
    })
}

fn requires_python(text: &str) -> Option<String> {
    let table = text.parse::<toml::Table>().ok()?;
    Some(table.get("project")?.get("requires-python")?.as_str()?.to_owned())
}

/// The `requires-python` of the nearest folder above the workspace that has one.
fn requires_python_above(root: &AbsPath) -> Option<String> {
    let mut folders = root.as_path().ancestors().skip(1);
    folders.find_map(|folder| requires_python(&std::fs::read_to_string(folder.join("pyproject.toml")).ok()?))
}

/// Reads the files that a configuration extends.
fn follow(
    root: &AbsPath,
    mut path: String,
    mut extended: Option<String>,
    trusted: bool,
    contents: &mut ConfigurationFiles,
) -> Result<(), Failure> {
    for _ in 0..MAX_EXTENDED {
        let Some(name) = extended.take() else { break };
        if name.starts_with('~') || name.contains('$') {
            return if trusted { Ok(()) } else { Err(config::outside(&path, "extends")) };
        }
        let target = root.join(&path).parent().join(&name);
        let Some(inside) = target.strip_prefix(root).map(str::to_owned) else {
            return if trusted { Ok(()) } else { Err(config::outside(&path, "extends")) };
        };
        let Some(bytes) = config::read(root, &inside, trusted)? else { break };
        extended = settings_of(&inside, &bytes).flatten();
        contents.insert(inside.clone(), bytes);
        path = inside;
    }
    match extended {
        Some(_) if !trusted => Err(config::outside(&path, "extends more files than are followed, possibly")),
        _ => Ok(()),
    }
}

/// What a configuration file extends; `None` if it has no settings of Ruff. An invalid file counts as a configuration, because
/// Ruff fails on it.
#[expect(
    clippy::option_option,
    reason = "no settings, settings that extend nothing, settings that extend a file"
)]
fn settings_of(path: &str, bytes: &[u8]) -> Option<Option<String>> {
    let text = String::from_utf8_lossy(bytes);
    let Ok(table) = text.parse::<toml::Table>() else { return Some(None) };
    let own = match path.rsplit('/').next() {
        Some("pyproject.toml") => table.get("tool")?.get("ruff")?.as_table()?,
        _ => &table,
    };
    Some(own.get("extend").and_then(toml::Value::as_str).map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workspace(files: &[(&str, &str)]) -> (tempfile::TempDir, AbsPath) {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let root = AbsPath::new(folder.path()).unwrap();
        (folder, root)
    }

    fn paths(names: &[&str]) -> Vec<WorkspacePath> {
        names.iter().map(|name| WorkspacePath::new(name).unwrap()).collect()
    }

    /// Ruff would read them, and show their lines in its error message.
    #[test]
    fn configurations_that_lead_out_of_the_workspace_are_refused() {
        let chain: Vec<(String, String)> = (0..=MAX_EXTENDED)
            .map(|n| (format!("c{n}.toml"), format!("extend = 'c{}.toml'", n + 1)))
            .collect();
        let mut chain: Vec<(&str, &str)> = chain.iter().map(|(name, text)| (&**name, &**text)).collect();
        chain.push(("ruff.toml", "extend = 'c0.toml'"));
        let by_name =
            [("ruff.toml", "extend = 'x-pyproject.toml'"), ("x-pyproject.toml", "extend = '/etc/passwd'")];
        for files in [&chain[..], &by_name, &[("ruff.toml", "extend = '../secret'")]] {
            let (_folder, root) = workspace(files);
            assert!(configurations(&root, &paths(&["a.py"]), false).is_err(), "{files:?}");
        }
    }

    #[test]
    fn files_without_a_configuration_above_them_are_isolated() {
        let (_folder, root) =
            workspace(&[("docs/ruff.toml", "line-length = 9"), ("pyproject.toml", "[project]")]);
        let files = paths(&["a.py", "docs/conf.py", "docs/x/y.py"]);
        let (configured, contents) = configurations(&root, &files, false).unwrap();
        assert_eq!(configured, BTreeSet::from(["docs".to_owned()]));
        assert_eq!(contents.keys().collect::<Vec<_>>(), ["docs/ruff.toml", "pyproject.toml"]);
        let identity = ToolIdentity {
            name: "ruff",
            version: String::new(),
            config_digest: Digest::of(b""),
            place: root.clone(),
            is_reproducible: true,
        };
        let ruff = Ruff { program: root.join("ruff"), root: root.clone(), identity, configured };
        let commands = ruff.commands(&files, true);
        let isolated: Vec<(bool, usize)> = commands
            .iter()
            .map(|command| (command.arguments.contains(&"--isolated".to_owned()), command.files.len()))
            .collect();
        assert_eq!(isolated, [(false, 2), (true, 1)]);
    }

    #[test]
    fn a_configuration_outside_of_the_workspace_is_refused_unless_trusted() {
        for name in ["../other.toml", "/etc/passwd", "~/ruff.toml", "$HOME/ruff.toml"] {
            let text = format!("[tool.ruff]\nextend = \"{name}\"\n");
            let (_folder, root) = workspace(&[("pyproject.toml", &text)]);
            let read = |trusted| configurations(&root, &paths(&["a.py"]), trusted);
            assert!(read(false).is_err() && read(true).is_ok(), "{name}");
        }
        let (_folder, root) =
            workspace(&[("ruff.toml", "extend = \"conf/base.toml\""), ("conf/base.toml", "line-length = 9")]);
        let (_, contents) = configurations(&root, &paths(&["a.py"]), false).unwrap();
        assert!(contents.contains_key("conf/base.toml"));
    }

    #[test]
    fn the_version_of_python_above_the_workspace_counts_if_there_is_none_in_it() {
        let (_folder, root) = workspace(&[
            ("pyproject.toml", "[project]\nrequires-python = '>=3.8'"),
            ("a/ruff.toml", "line-length = 9"),
            ("b/ruff.toml", "target-version = 'py39'"),
            ("c/ruff.toml", "line-length = 9"),
            ("c/pyproject.toml", "[project]\nrequires-python = '>=3.9'"),
        ]);
        assert_eq!(requires_python_above(&root.join("a/ruff")), Some(">=3.8".to_owned()));
        let names = |folder: &str| {
            names_version(&configurations(&root.join(folder), &paths(&["m.py"]), false).unwrap().1)
        };
        assert_eq!([names("a"), names("b"), names("c")], [false, true, true]);
    }

    #[test]
    fn long_lists_are_split() {
        let files: Vec<WorkspacePath> =
            (0..5000).map(|number| WorkspacePath::new(&format!("folder/file{number}.py")).unwrap()).collect();
        let batches = in_batches(files.clone());
        assert!(batches.len() > 1);
        assert_eq!(batches.concat(), files);
        assert!(in_batches(Vec::new()).is_empty());
    }
}
