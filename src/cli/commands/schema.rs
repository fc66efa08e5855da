//! `schema`: prints the JSON schemas and validates files against them.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufRead, BufReader};

use clap::{Args, CommandFactory as _, Subcommand};
use serde::Serialize;

use crate::cli::Cli;
use crate::cli::context::CliContext;
use crate::cli::exit::ProgramExit;
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::schema::{self, SchemaKind};

/// The verbs of `schema`.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum SchemaSubcommand {
    /// Print a schema, or write all of them into a folder
    Export(ExportArgs),
    /// Print the schema of bundles
    Bundle,
    /// Print the schema of selectors
    Selector,
    /// Print all commands, options and exit codes as JSON, for tool definitions
    Commands,
    /// Validate JSON files, or all .json and .jsonl files of folders
    Validate(ValidateArgs),
    /// Validate the JSON Lines input or output of `lanser batch`
    ValidateBatch(ValidateBatchArgs),
}

/// Arguments of `schema export`.
#[derive(Debug, Clone, Args)]
pub(crate) struct ExportArgs {
    /// Only this one: `bundle`, `selector`, `request` or `batch`
    #[arg(long, value_name = "KIND", value_parser = parse_kind)]
    pub(crate) only: Option<SchemaKind>,

    /// Write the files into this folder instead of printing
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<String>,
}

/// Arguments of `schema validate`.
#[derive(Debug, Clone, Args)]
pub(crate) struct ValidateArgs {
    /// Files or folders, or `-` for standard input
    #[arg(required = true)]
    pub(crate) paths: Vec<String>,

    /// Schema of the files: `bundle`, `selector`, `request` or `batch`
    #[arg(long, value_name = "KIND", default_value = "bundle", value_parser = parse_kind)]
    pub(crate) kind: SchemaKind,
}

/// Arguments of `schema validate-batch`.
#[derive(Debug, Clone, Args)]
pub(crate) struct ValidateBatchArgs {
    /// Files or folders, or `-` for standard input
    #[arg(required = true)]
    pub(crate) paths: Vec<String>,

    /// Schema of the lines: `bundle`, `selector`, `request` or `batch`
    ///
    /// By default, lines with a `bundleId` are bundles, and others are batch requests.
    #[arg(long, value_name = "KIND", value_parser = parse_kind)]
    pub(crate) kind: Option<SchemaKind>,
}

/// The files to validate.
struct ValidationJob<'a> {
    paths: &'a [String],
    kind: Option<SchemaKind>,
    /// Whether every file is JSON Lines, whatever its name.
    lines: bool,
}

fn parse_kind(name: &str) -> Result<SchemaKind, String> {
    SchemaKind::parse(name).ok_or_else(|| "expected bundle, selector, request or batch".to_owned())
}

/// Runs a verb of `schema`.
pub(crate) fn run(command: SchemaSubcommand, context: &mut CliContext) -> ProgramExit {
    match command {
        SchemaSubcommand::Export(args) => export(&args, context),
        SchemaSubcommand::Bundle => context.printer.payload(schema::export(SchemaKind::Bundle)),
        SchemaSubcommand::Selector => context.printer.payload(schema::export(SchemaKind::Selector)),
        SchemaSubcommand::Commands => {
            let mut command = Cli::command();
            command.build();
            context.printer.json_payload(&schema::commands(&command))
        }
        SchemaSubcommand::Validate(args) => {
            let checks = ValidationJob { paths: &args.paths, kind: Some(args.kind), lines: false };
            validate(&checks, context)
        }
        SchemaSubcommand::ValidateBatch(args) => {
            validate(&ValidationJob { paths: &args.paths, kind: args.kind, lines: true }, context)
        }
    }
}

fn export(args: &ExportArgs, context: &mut CliContext) -> ProgramExit {
    let kinds = args.only.map_or_else(|| SchemaKind::ALL.to_vec(), |kind| vec![kind]);
    let Some(folder) = &args.out else {
        let text: String = kinds.into_iter().map(schema::export).collect();
        return context.printer.payload(&text);
    };
    let folder = context.env.absolute(folder);
    let write = || -> std::io::Result<()> {
        std::fs::create_dir_all(folder.as_path())?;
        for kind in kinds {
            std::fs::write(folder.join(kind.file_name()).as_path(), schema::export(kind))?;
        }
        Ok(())
    };
    match write() {
        Ok(()) => ProgramExit::Ok,
        Err(error) => {
            let message = format!("cannot write the schemas into {folder}: {error}");
            context.fail(ErrorBody::new(ErrorSymbol::FsPermissions, message))
        }
    }
}

/// The JSON output of `schema validate` for one document.
#[derive(Debug, Serialize)]
struct ValidationResult {
    file: String,
    line: Option<usize>,
    valid: bool,
    problems: Vec<String>,
}

/// Validates all documents. Exit code 1 if one is not valid.
fn validate(checks: &ValidationJob<'_>, context: &mut CliContext) -> ProgramExit {
    let ValidationJob { paths, kind, lines } = *checks;
    let mut results = Vec::new();
    for path in paths {
        let checked = if path == "-" {
            check(path, BufReader::new(std::io::stdin()), kind, lines, &mut results)
        } else {
            files_of(&context.env.absolute(path)).and_then(|files| {
                files.into_iter().try_for_each(|file| {
                    let as_lines = lines || file.ends_with(".jsonl");
                    check(&file, BufReader::new(File::open(&file)?), kind, as_lines, &mut results)
                })
            })
        };
        if let Err(error) = checked {
            let body = ErrorBody::new(ErrorSymbol::NotFound, format!("cannot read {path}: {error}"));
            return context.fail(body.hint("give JSON files, or folders that contain some"));
        }
    }
    let valid = results.iter().filter(|result| result.valid).count();
    let printed = if context.json() {
        context.printer.json_payload(&results)
    } else {
        let mut text = String::new();
        for result in results.iter().filter(|result| !result.valid) {
            let line = result.line.map(|line| format!(":{line}")).unwrap_or_default();
            for problem in &result.problems {
                let _ = writeln!(text, "{}{line}: {problem}", result.file);
            }
        }
        let _ = writeln!(text, "{valid} of {} valid", results.len());
        context.printer.payload(&text)
    };
    match printed {
        ProgramExit::Ok if valid < results.len() => ProgramExit::CheckFailed,
        exit => exit,
    }
}

fn check(
    file: &str,
    mut reader: impl BufRead,
    kind: Option<SchemaKind>,
    lines: bool,
    results: &mut Vec<ValidationResult>,
) -> std::io::Result<()> {
    let mut add = |line, result: Result<(), schema::Problems>| {
        let mut problems = Vec::new();
        if let Err(found) = &result {
            problems.extend(found.listed.iter().map(ToString::to_string));
            if found.more > 0 {
                problems.push(format!("and {} more", found.more));
            }
        }
        results.push(ValidationResult { file: file.to_owned(), line, valid: result.is_ok(), problems });
    };
    if lines {
        for line in schema::validate_lines(kind, reader) {
            let line = line?;
            add(Some(line.number), line.verdict);
        }
    } else {
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes)?;
        add(None, schema::validate(kind.unwrap_or(SchemaKind::Bundle), &bytes));
    }
    Ok(())
}

/// The file itself, or the JSON files below the folder, sorted.
fn files_of(path: &crate::path::AbsPath) -> std::io::Result<Vec<String>> {
    if !path.as_path().is_dir() {
        return Ok(vec![path.to_string()]);
    }
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
        return Err(std::io::Error::other("it contains no .json or .jsonl file"));
    }
    Ok(files)
}
