//! `schema validate` and `schema validate-batch`: documents in files, folders and on standard input.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _};

use serde::Serialize;

use super::ValidateArgs;
use crate::cli::context::CliContext;
use crate::cli::exit::ProgramExit;
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::path::AbsPath;
use crate::schema::{self, SchemaKind, Validity};
use crate::text::plural;

/// The JSON output for one document, or for a file that was skipped.
#[derive(Debug, Serialize)]
struct ValidationResult {
    file: String,
    /// The line of a document in JSON Lines.
    line: Option<usize>,
    /// The kind of document; `null` for a file that is not a document of lanser.
    kind: Option<&'static str>,
    /// `null` for a file that is not a document of lanser.
    valid: Option<bool>,
    /// Whether the document has an earlier format, of which only the checksum is verified.
    checksum_only: bool,
    problems: Vec<String>,
}

/// Validates all documents. Exit code 1 if one is not valid. With `batch`, files other than .json are JSON Lines.
pub(super) fn run(args: &ValidateArgs, batch: bool, context: &mut CliContext) -> ProgramExit {
    let mut validation = Validation { kind: args.kind, batch, results: Vec::new() };
    for path in &args.paths {
        let checked = if path == "-" {
            validation.stream(path, BufReader::new(io::stdin()), batch)
        } else {
            validation.path(&context.env.absolute(path))
        };
        if let Err(error) = checked {
            let body = ErrorBody::new(ErrorSymbol::NotFound, format!("cannot read {path}: {error}"));
            return context.fail(body.hint("give JSON files, or folders that contain some"));
        }
    }
    let results = &validation.results;
    let (documents, skipped): (Vec<_>, Vec<_>) = results.iter().partition(|result| result.valid.is_some());
    let valid = documents.iter().filter(|result| result.valid == Some(true)).count();
    let printed = if context.json() {
        context.printer.json_payload(results)
    } else {
        context.printer.payload(&text(&documents, valid, skipped.len()))
    };
    match printed {
        ProgramExit::Ok if valid < documents.len() => ProgramExit::CheckFailed,
        exit => exit,
    }
}

fn text(documents: &[&ValidationResult], valid: usize, skipped: usize) -> String {
    let mut text = String::new();
    for result in documents.iter().filter(|result| result.valid == Some(false)) {
        let line = result.line.map(|line| format!(":{line}")).unwrap_or_default();
        for problem in &result.problems {
            let _ = writeln!(text, "{}{line}: {problem}", result.file);
        }
    }
    let _ = write!(text, "{valid} of {} valid", documents.len());
    let earlier = documents.iter().filter(|result| result.checksum_only).count();
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for kind in documents.iter().filter_map(|result| result.kind) {
        *kinds.entry(kind).or_default() += 1;
    }
    if kinds.len() > 1 {
        let counts: Vec<String> = kinds.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
        let _ = write!(text, " ({})", counts.join(", "));
    }
    if earlier > 0 {
        let _ = write!(text, "; {earlier} of an earlier format: only the checksum was verified");
    }
    if skipped > 0 {
        let _ = write!(text, "; {} skipped: not documents of lanser", plural(skipped, "file"));
    }
    text.push('\n');
    text
}

struct Validation {
    /// The kind of all documents; `None` to recognize it.
    kind: Option<SchemaKind>,
    batch: bool,
    results: Vec<ValidationResult>,
}

impl Validation {
    /// Validates a file, or the files of a folder.
    fn path(&mut self, path: &AbsPath) -> io::Result<()> {
        if !path.as_path().is_dir() {
            return self.file(path.as_str());
        }
        let before = self.results.len();
        for file in files_of(path)? {
            // What is found must not be waited for: a named pipe without a writer never ends.
            let is_regular = std::fs::metadata(&file)?.is_file();
            if is_regular && (self.kind.is_some() || is_document(&file)?) {
                self.file(&file)?;
            } else {
                self.results.push(ValidationResult {
                    file,
                    line: None,
                    kind: None,
                    valid: None,
                    checksum_only: false,
                    problems: Vec::new(),
                });
            }
        }
        if self.results[before..].iter().all(|result| result.valid.is_none()) {
            let message = "it contains no bundle, selector, request, batch or trace";
            return Err(io::Error::other(message));
        }
        Ok(())
    }

    fn file(&mut self, file: &str) -> io::Result<()> {
        let mut reader = BufReader::new(File::open(file)?);
        if file.ends_with(".jsonl") {
            return self.stream(file, reader, true);
        }
        if !self.batch {
            return self.stream(file, reader, false);
        }
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes)?;
        let as_lines = !file.ends_with(".json") || is_json_lines(&bytes);
        self.stream(file, bytes.as_slice(), as_lines)
    }

    fn stream(&mut self, file: &str, mut reader: impl BufRead, lines: bool) -> io::Result<()> {
        if lines {
            for line in schema::validate_lines(self.kind, reader) {
                let line = line?;
                self.add(file, Some(line.number), line.kind, line.verdict);
            }
        } else {
            let mut bytes = Vec::new();
            reader.read_to_end(&mut bytes)?;
            let kind = self.kind.or_else(|| schema::recognize(&bytes)).unwrap_or(SchemaKind::Bundle);
            self.add(file, None, kind, schema::validate(kind, &bytes));
        }
        Ok(())
    }

    fn add(
        &mut self,
        file: &str,
        line: Option<usize>,
        kind: SchemaKind,
        verdict: Result<Validity, schema::Problems>,
    ) {
        let found = verdict.as_ref().err().map(|found| found.listed.as_slice()).unwrap_or_default();
        let problems = found.iter().map(ToString::to_string).collect();
        self.results.push(ValidationResult {
            file: file.to_owned(),
            line,
            kind: Some(kind.name()),
            valid: Some(verdict.is_ok()),
            checksum_only: verdict == Ok(Validity::Checksum),
            problems,
        });
    }
}

/// Whether a file of a folder is a document of lanser, or JSON Lines that begin with one.
fn is_document(file: &str) -> io::Result<bool> {
    let mut reader = BufReader::new(File::open(file)?);
    let mut bytes = Vec::new();
    if file.ends_with(".jsonl") {
        while bytes.trim_ascii().is_empty() && reader.read_until(b'\n', &mut bytes)? > 0 {}
    } else {
        reader.read_to_end(&mut bytes)?;
    }
    let first_line = || bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    Ok(schema::recognize(&bytes).or_else(|| schema::recognize(first_line())).is_some())
}

/// Whether the first of several lines is a whole JSON document.
fn is_json_lines(bytes: &[u8]) -> bool {
    let mut lines = bytes.trim_ascii().splitn(2, |byte| *byte == b'\n');
    let is_json = |line: &[u8]| serde_json::from_slice::<serde::de::IgnoredAny>(line).is_ok();
    lines.next().is_some_and(is_json) && lines.next().is_some()
}

/// The JSON files below a folder, sorted.
fn files_of(path: &AbsPath) -> io::Result<Vec<String>> {
    let mut files = Vec::new();
    let mut folders = vec![path.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder.as_path())? {
            let entry = entry?;
            let Some(name) = entry.file_name().to_str().map(str::to_owned) else { continue };
            let path = folder.join(&name);
            if entry.file_type()?.is_dir() {
                folders.push(path);
            } else if name.ends_with(".json") || name.ends_with(".jsonl") {
                files.push(path.to_string());
            }
        }
    }
    files.sort();
    if files.is_empty() {
        return Err(io::Error::other("it contains no .json or .jsonl file"));
    }
    Ok(files)
}
