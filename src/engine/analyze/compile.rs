//! `compile`: the interpreter's own parser and compiler. Nothing of the files is executed.

use serde::Deserialize;

use super::finding::{Finding, Place, SpanUnit};
use super::process::{ToolCommand, ToolOutput};
use super::{Analyzer, ParsedOutput, ToolIdentity, interpreter};
use crate::digest::Digest;
use crate::engine::failure::Failure;
use crate::engine::settings::Settings;
use crate::model::analyzer::AnalyzerKind;
use crate::model::request::Severity;
use crate::path::{AbsPath, WorkspacePath};
use crate::workspace::python::PythonEnvironment;

const SCRIPT: &str = include_str!("compile_files.py");

/// The oldest supported minor version of Python 3.
const OLDEST_MINOR: u32 = 6;

/// The interpreter's compiler.
pub(super) struct Compile {
    interpreter: AbsPath,
    identity: ToolIdentity,
}

/// A line of the script's output.
#[derive(Deserialize)]
struct CompiledFile {
    path: WorkspacePath,
    findings: Vec<CompilerMessage>,
    unreadable: Option<String>,
}

#[derive(Deserialize)]
struct CompilerMessage {
    code: String,
    severity: Severity,
    message: String,
    line: Option<i64>,
    start: Option<[i64; 2]>,
    end: Option<[i64; 2]>,
    unit: Option<SpanUnit>,
}

impl Compile {
    /// Finds an interpreter.
    pub(super) fn find(settings: &Settings, python: Option<&PythonEnvironment>) -> Result<Self, Failure> {
        let python = interpreter::trusted(settings, python, AnalyzerKind::Compile, OLDEST_MINOR)?;
        let name = if python.implementation == "cpython" { "cpython" } else { "python" };
        let config_digest = Digest::of_fields([SCRIPT.as_bytes(), python.implementation.as_bytes()]);
        let place = python.interpreter.clone();
        let identity =
            ToolIdentity { name, version: python.version, config_digest, place, is_reproducible: true };
        Ok(Self { interpreter: python.interpreter, identity })
    }
}

impl Analyzer for Compile {
    fn identity(&self) -> &ToolIdentity {
        &self.identity
    }

    fn commands(&self, files: &[WorkspacePath], _: bool) -> Vec<ToolCommand> {
        let mut input = Vec::new();
        for file in files {
            input.extend(serde_json::to_vec(file).unwrap_or_default());
            input.push(b'\n');
        }
        vec![ToolCommand {
            program: self.interpreter.clone(),
            arguments: ["-I", "-S", "-B", "-c", SCRIPT].map(str::to_owned).to_vec(),
            input,
            files: files.to_vec(),
        }]
    }

    fn parse(&self, command: &ToolCommand, output: &ToolOutput) -> Result<ParsedOutput, String> {
        let mut parsed = ParsedOutput::default();
        let mut reasons = Vec::new();
        let mut done = 0;
        let mut lines: Vec<&[u8]> = output.stdout.split(|byte| *byte == b'\n').collect();
        // What follows the last line end is empty, or was cut.
        lines.pop();
        for line in lines {
            let file: CompiledFile =
                serde_json::from_slice(line).map_err(|error| format!("its output is not valid: {error}"))?;
            done += 1;
            reasons.extend(file.unreadable.map(|why| format!("{}: {why}", file.path)));
            parsed.findings.extend(file.findings.into_iter().map(|found| found.finding(&file.path)));
        }
        if done < command.files.len() {
            // An error of the script itself would come again.
            if output.code.is_some() {
                return Err(format!("it ended with {}", output.end()));
            }
            reasons.push(format!("{}: the compiler ended with {}", command.files[done], output.end()));
            parsed.rest = command.files[done + 1..].to_vec();
        }
        parsed.reason = (!reasons.is_empty()).then(|| reasons.join("; "));
        Ok(parsed)
    }
}

impl CompilerMessage {
    fn finding(self, path: &WorkspacePath) -> Finding {
        let place = match (self.line, self.start) {
            (None, Some(start)) => {
                Place::Span(start, self.end.unwrap_or(start), self.unit.unwrap_or(SpanUnit::Character))
            }
            (line, _) => Place::Line(line.unwrap_or(1)),
        };
        Finding {
            path: path.clone(),
            place,
            severity: self.severity,
            code: Some(self.code),
            message: self.message,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(stdout: &str, code: Option<i32>) -> Result<ParsedOutput, String> {
        let identity = ToolIdentity {
            name: "cpython",
            version: String::new(),
            config_digest: Digest::of(b""),
            place: AbsPath::new("/python").unwrap(),
            is_reproducible: true,
        };
        let compile = Compile { interpreter: AbsPath::new("/python").unwrap(), identity };
        let files = ["a.py", "b.py", "c.py"].map(|path| WorkspacePath::new(path).unwrap());
        let command = compile.commands(&files, false).remove(0);
        let signal = code.is_none().then_some(11);
        let output = ToolOutput { code, signal, stdout: stdout.as_bytes().to_vec(), stderr: String::new() };
        compile.parse(&command, &output)
    }

    #[test]
    fn a_file_that_kills_the_compiler_is_left_out_and_the_rest_follows() {
        let parsed = parse("{\"path\":\"a.py\",\"findings\":[]}\n", None).unwrap();
        assert_eq!(parsed.reason.unwrap(), "b.py: the compiler ended with signal 11");
        assert_eq!(parsed.rest, [WorkspacePath::new("c.py").unwrap()]);
        assert!(parse("{\"path\":\"a.py\",\"findings\":[]}\n", Some(1)).is_err());
    }

    #[test]
    fn errors_have_a_span_and_warnings_a_line() {
        let parsed = parse(
            concat!(
                r#"{"path":"a.py","findings":[{"code":"SyntaxError","severity":"error","unit":"utf-8","message":"m","start":[1,2],"end":[1,3]}]}"#,
                "\n",
                r#"{"path":"b.py","findings":[{"code":"SyntaxWarning","severity":"warning","message":"w","line":3}]}"#,
                "\n",
                r#"{"path":"c.py","findings":[],"unreadable":"Permission denied"}"#,
                "\n"
            ),
            Some(0),
        )
        .unwrap();
        let places: Vec<Place> = parsed.findings.iter().map(|found| found.place).collect();
        assert_eq!(places, [Place::Span([1, 2], [1, 3], SpanUnit::Byte), Place::Line(3)]);
        assert_eq!(parsed.reason.unwrap(), "c.py: Permission denied");
    }
}
