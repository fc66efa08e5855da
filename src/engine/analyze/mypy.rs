//! mypy. Its plugins are code of the project: they are loaded only if the workspace is trusted and has its own mypy. The
//! pinned mypy runs in an interpreter of this machine, and gets the packages of the environment as data, so that no
//! interpreter of a checkout is run.

use serde::{Deserialize, Serialize};

use super::finding::{Finding, Place, SpanUnit};
use super::process::{ToolCommand, ToolOutput};
use super::{Analyzer, ParsedOutput, ToolIdentity, config, interpreter};
use crate::digest::Digest;
use crate::engine::failure::Failure;
use crate::engine::server::{tell_progress, toolchain_request};
use crate::engine::settings::Settings;
use crate::model::analyzer::{AnalysisScope, AnalyzerKind};
use crate::model::request::Severity;
use crate::path::{AbsPath, WorkspacePath};
use crate::toolchain::{InstallableAnalyzer, ensure_analyzer, find_analyzer};
use crate::workspace::python::PythonEnvironment;

const SCRIPT: &str = include_str!("run_mypy.py");

/// The oldest minor version of Python 3 that runs the pinned mypy.
pub(super) const OLDEST_MINOR: u32 = 10;

/// The configuration files, in mypy's order, and what those must contain that other programs use, too.
const CONFIGURATION_FILES: [(&str, &str); 4] =
    [("mypy.ini", ""), (".mypy.ini", ""), ("pyproject.toml", "[tool.mypy"), ("setup.cfg", "[mypy")];

/// mypy.
pub(super) struct Mypy {
    interpreter: AbsPath,
    setup: MypySetup,
    identity: ToolIdentity,
}

/// What the script is told about the run.
#[derive(Debug, Clone, Serialize)]
struct MypySetup {
    /// Whether nothing of the project may be executed.
    guarded: bool,
    /// Whether the configuration may lead out of the workspace.
    trusted: bool,
    /// The folder of the pinned mypy; `None` if the interpreter has one.
    package: Option<String>,
    /// The configuration file; empty without one.
    config: String,
    search_path: Vec<String>,
    site_packages: Vec<String>,
    python_version: Option<[u32; 2]>,
}

#[derive(Serialize)]
struct MypyRequest<'r> {
    #[serde(flatten)]
    setup: &'r MypySetup,
    whole: bool,
    files: &'r [WorkspacePath],
}

/// A diagnostic in mypy's JSON. Lines are counted from 1, columns from 0 in bytes, or, with the native parser, in
/// [`SpanUnit::MypyNative`] (measured on 2.4.1).
#[derive(Deserialize)]
struct MypyDiagnostic {
    file: String,
    line: i64,
    column: i64,
    #[serde(default)]
    end_line: Option<i64>,
    #[serde(default)]
    end_column: Option<i64>,
    message: String,
    hint: Option<String>,
    code: Option<String>,
    severity: String,
}

/// The last line of the script's output.
#[derive(Deserialize)]
struct MypyReport {
    report: MypyRun,
}

#[derive(Deserialize)]
struct MypyRun {
    scope: AnalysisScope,
    /// The plugins that were not loaded.
    plugins: Vec<String>,
    /// Whether an error kept mypy from checking anything.
    blocked: bool,
    /// Whether its native parser read the files.
    native: bool,
    /// The options that lead out of the workspace.
    outside: Vec<String>,
    /// Files that it read and that are no inputs of the answer.
    unrecorded: Vec<String>,
    /// What it said about the configuration before it went on without that part.
    rejected: Vec<String>,
    failure: String,
}

impl Mypy {
    /// Finds mypy: the project's own if the workspace is trusted, otherwise the pinned one.
    pub(super) fn find(
        settings: &Settings,
        python: Option<&PythonEnvironment>,
        root: &AbsPath,
        install: bool,
    ) -> Result<Self, Failure> {
        let (config, content) = configuration(root, settings.trust_workspace)?;
        let own = python.filter(|_| settings.trust_workspace).and_then(|python| {
            Some((python.interpreter.clone(), interpreter::installed_version(python, "mypy")?))
        });
        let is_pinned = own.is_none();
        let (interpreter, version, package) = match own {
            Some((interpreter, version)) => (interpreter, version, None),
            None => {
                let runner = interpreter::trusted(settings, python, AnalyzerKind::Mypy, OLDEST_MINOR)?;
                let minor = interpreter::minor(&runner).unwrap_or(OLDEST_MINOR);
                let (request, runs_on) = (toolchain_request(settings), format!("3.{minor}"));
                let found = if install {
                    let mut progress = |event| tell_progress(&*settings.progress, &event);
                    ensure_analyzer(&request, InstallableAnalyzer::Mypy, &runs_on, &mut progress)
                } else {
                    find_analyzer(&request, InstallableAnalyzer::Mypy, &runs_on)
                };
                let version = InstallableAnalyzer::Mypy.version().to_owned();
                (runner.interpreter, version, Some(found?.path.to_string()))
            }
        };
        let python_version = python.and_then(interpreter::minor).map(|minor| [3, minor]);
        let version_text = format!("{python_version:?} {is_pinned}");
        let fields = [SCRIPT.as_bytes(), config.as_bytes(), &content, version_text.as_bytes()];
        let place = match &package {
            Some(package) => AbsPath::new(package).unwrap_or_else(|_| interpreter.clone()),
            None => interpreter.clone(),
        };
        let config_digest = Digest::of_fields(fields);
        // These make it read files whose contents are in no digest.
        let text = String::from_utf8_lossy(&content);
        let leads_elsewhere = ["mypy_path", "custom_typeshed_dir"].iter().any(|option| text.contains(option));
        let is_reproducible = is_pinned && !leads_elsewhere;
        let identity = ToolIdentity { name: "mypy", version, config_digest, place, is_reproducible };
        let setup = MypySetup {
            guarded: is_pinned,
            trusted: settings.trust_workspace,
            package,
            config,
            search_path: python.map(search_path).unwrap_or_default(),
            site_packages: python.map(|python| texts(&python.site_packages)).unwrap_or_default(),
            python_version,
        };
        Ok(Self { interpreter, setup, identity })
    }
}

fn texts(paths: &[AbsPath]) -> Vec<String> {
    paths.iter().map(ToString::to_string).collect()
}

/// The folders of packages, without those of the standard library: mypy has its own stubs for that.
fn search_path(python: &PythonEnvironment) -> Vec<String> {
    let dynamic = python.stdlib.join("lib-dynload");
    let is_library = |path: &AbsPath| *path == python.stdlib || *path == dynamic;
    let folders = python.search_path.iter().filter(|path| !is_library(path));
    folders.map(ToString::to_string).collect()
}

/// The configuration file that mypy would use in the workspace, and its content. Both are empty without one: mypy would then use
/// one above the workspace, or the user's.
fn configuration(root: &AbsPath, trusted: bool) -> Result<(String, Vec<u8>), Failure> {
    for (name, section) in CONFIGURATION_FILES {
        let Some(bytes) = config::read(root, name, trusted)? else { continue };
        if String::from_utf8_lossy(&bytes).contains(section) {
            return Ok((name.to_owned(), bytes));
        }
    }
    Ok((String::new(), Vec::new()))
}

impl Analyzer for Mypy {
    fn identity(&self) -> &ToolIdentity {
        &self.identity
    }

    fn commands(&self, files: &[WorkspacePath], whole: bool) -> Vec<ToolCommand> {
        let request = MypyRequest { setup: &self.setup, whole, files };
        // The pinned mypy needs no package of the interpreter, and the interpreter must not run its `.pth` files.
        let flags: &[&str] = if self.setup.guarded { &["-I", "-S", "-B"] } else { &["-I", "-B"] };
        let arguments = flags.iter().chain(&["-c", SCRIPT]).map(|argument| (*argument).to_owned());
        vec![ToolCommand {
            program: self.interpreter.clone(),
            arguments: arguments.collect(),
            input: serde_json::to_vec(&request).unwrap_or_default(),
            files: files.to_vec(),
        }]
    }

    fn parse(&self, _: &ToolCommand, output: &ToolOutput) -> Result<ParsedOutput, String> {
        if output.code != Some(0) {
            return Err(format!("it ended with {}", output.end()));
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let mut lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        let invalid = |error: serde_json::Error| format!("its output is not valid: {error}");
        let last = lines.pop().ok_or("it wrote nothing")?;
        let MypyReport { report } = serde_json::from_str(last).map_err(invalid)?;
        if !report.failure.is_empty() {
            return Err(report.failure.trim().to_owned());
        }
        let unit = if report.native { SpanUnit::MypyNative } else { SpanUnit::Byte };
        let mut parsed =
            ParsedOutput { scope: Some(report.scope), outside: report.outside, ..ParsedOutput::default() };
        for line in lines {
            let found: MypyDiagnostic = serde_json::from_str(line).map_err(invalid)?;
            parsed.findings.extend(found.finding(unit));
        }
        let plugins = (!report.plugins.is_empty()).then(|| {
            format!(
                "plugins are code of the project and were not loaded: {}; --trust-workspace allows them, with the project's own mypy",
                report.plugins.join(", ")
            )
        });
        let blocked = report.blocked.then(|| "an error kept mypy from checking the other files".to_owned());
        let unrecorded = (!report.unrecorded.is_empty())
            .then(|| format!("mypy read what is no input of the answer: {}", report.unrecorded.join(", ")));
        let rejected = (!report.rejected.is_empty())
            .then(|| format!("mypy ignored a part of its configuration: {}", report.rejected.join("; ")));
        let reasons: Vec<String> =
            plugins.into_iter().chain(blocked).chain(unrecorded).chain(rejected).collect();
        parsed.reason = (!reasons.is_empty()).then(|| reasons.join("; "));
        Ok(parsed)
    }
}

impl MypyDiagnostic {
    /// `None` for a file outside of the workspace.
    fn finding(self, unit: SpanUnit) -> Option<Finding> {
        let path = WorkspacePath::new(&self.file)?;
        let start = [self.line, self.column + 1];
        let end = [self.end_line.unwrap_or(self.line), self.end_column.unwrap_or(self.column) + 1];
        let message = match &self.hint {
            Some(hint) => format!("{}\n{hint}", self.message),
            None => self.message,
        };
        let severity = if self.severity == "note" { Severity::Information } else { Severity::Error };
        Some(Finding { path, place: Place::Span(start, end, unit), severity, code: self.code, message })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(stdout: &str) -> Result<ParsedOutput, String> {
        let setup = MypySetup {
            guarded: true,
            trusted: false,
            package: None,
            config: String::new(),
            search_path: Vec::new(),
            site_packages: Vec::new(),
            python_version: None,
        };
        let identity = ToolIdentity {
            name: "mypy",
            version: String::new(),
            config_digest: Digest::of(b""),
            place: AbsPath::new("/python").unwrap(),
            is_reproducible: true,
        };
        let mypy = Mypy { interpreter: AbsPath::new("/python").unwrap(), setup, identity };
        let command = mypy.commands(&[], false).remove(0);
        let output =
            ToolOutput { code: Some(0), stdout: stdout.as_bytes().to_vec(), ..ToolOutput::default() };
        mypy.parse(&command, &output)
    }

    const ERROR: &str = r#"{"file":"a.py","line":2,"column":9,"end_line":2,"end_column":11,"message":"m","hint":"h","code":"c","severity":"error"}"#;

    fn report(members: &str) -> String {
        let others = r#""native":false,"outside":[],"unrecorded":[],"rejected":[]"#;
        format!(r#"{{"report":{{{members},{others}}}}}"#)
    }

    #[test]
    fn a_hint_belongs_to_the_message() {
        let report = report(r#""scope":"requested","plugins":[],"blocked":false,"failure":"""#);
        let parsed = parse(&format!("{ERROR}\n\n{report}\n")).unwrap();
        let found = &parsed.findings[0];
        assert_eq!((found.message.as_str(), found.severity), ("m\nh", Severity::Error));
        assert_eq!(found.place, Place::Span([2, 10], [2, 12], SpanUnit::Byte));
        assert_eq!(parsed.reason, None);
    }

    #[test]
    fn plugins_that_were_not_loaded_and_blocking_errors_are_incomplete() {
        let report = report(r#""scope":"configured","plugins":["p.py"],"blocked":true,"failure":"""#);
        let reason = parse(&format!("{ERROR}\n{report}\n")).unwrap().reason.unwrap();
        assert!(reason.contains("p.py") && reason.contains("kept mypy from checking"), "{reason}");
    }

    #[test]
    fn a_failure_without_a_finding_is_an_error() {
        let report =
            report(r#""scope":"requested","plugins":[],"blocked":true,"failure":"mypy: no such file\n""#);
        assert_eq!(parse(&report).unwrap_err(), "mypy: no such file");
        assert!(parse("Traceback").is_err() && parse("").is_err());
    }
}
