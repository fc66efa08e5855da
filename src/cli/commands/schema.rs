//! `schema`: the JSON schemas, and checking files against them.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufRead, BufReader};

use clap::{Args, CommandFactory as _, Subcommand};
use serde::Serialize;

use crate::cli::Cli;
use crate::cli::context::Context;
use crate::cli::exit::Exit;
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::schema::{self, Kind};

/// The verbs of `schema`.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum SchemaCommand {
    /// Print a schema, or write all of them into a folder
    Export(ExportArgs),
    /// Print the schema of bundles
    Bundle,
    /// Print the schema of selectors
    Selector,
    /// Describe every command, option and exit code as JSON, for tool definitions
    Commands,
    /// Check JSON files, or every .json and .jsonl file of folders
    Validate(ValidateArgs),
    /// Check JSON Lines files, one document a line: requests for `lanser batch`, or its answers
    ValidateBatch(ValidateBatchArgs),
}

/// Arguments of `schema export`.
#[derive(Debug, Clone, Args)]
pub(crate) struct ExportArgs {
    /// Only this one: `bundle`, `selector`, `request` or `batch`
    #[arg(long, value_name = "KIND", value_parser = parse_kind)]
    pub(crate) only: Option<Kind>,

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

    /// What the documents are: `bundle`, `selector`, `request` or `batch`
    #[arg(long, value_name = "KIND", default_value = "bundle", value_parser = parse_kind)]
    pub(crate) kind: Kind,
}

/// Arguments of `schema validate-batch`.
#[derive(Debug, Clone, Args)]
pub(crate) struct ValidateBatchArgs {
    /// Files or folders, or `-` for standard input
    #[arg(required = true)]
    pub(crate) paths: Vec<String>,

    /// What the lines are: `bundle`, `selector`, `request` or `batch` [default: bundle where it has a bundleId, else batch]
    #[arg(long, value_name = "KIND", value_parser = parse_kind)]
    pub(crate) kind: Option<Kind>,
}

/// What is to be checked.
struct Checks<'a> {
    paths: &'a [String],
    kind: Option<Kind>,
    /// Whether every file is JSON Lines, whatever its name.
    lines: bool,
}

fn parse_kind(name: &str) -> Result<Kind, String> {
    Kind::parse(name).ok_or_else(|| "expected bundle, selector, request or batch".to_owned())
}

/// Runs a verb of `schema`.
pub(crate) fn run(command: SchemaCommand, context: &mut Context) -> Exit {
    match command {
        SchemaCommand::Export(args) => export(&args, context),
        SchemaCommand::Bundle => context.printer.payload(schema::export(Kind::Bundle)),
        SchemaCommand::Selector => context.printer.payload(schema::export(Kind::Selector)),
        SchemaCommand::Commands => {
            let mut command = Cli::command();
            command.build();
            context.printer.json_payload(&schema::commands(&command))
        }
        SchemaCommand::Validate(args) => {
            let checks = Checks { paths: &args.paths, kind: Some(args.kind), lines: false };
            validate(&checks, context)
        }
        SchemaCommand::ValidateBatch(args) => {
            validate(&Checks { paths: &args.paths, kind: args.kind, lines: true }, context)
        }
    }
}

fn export(args: &ExportArgs, context: &mut Context) -> Exit {
    let kinds = args.only.map_or_else(|| Kind::ALL.to_vec(), |kind| vec![kind]);
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
        Ok(()) => Exit::Ok,
        Err(error) => {
            let message = format!("cannot write the schemas into {folder}: {error}");
            context.fail(ErrorBody::new(ErrorSymbol::FsPermissions, message))
        }
    }
}

/// What `validate` says of one document.
#[derive(Debug, Serialize)]
struct Verdict {
    file: String,
    line: Option<usize>,
    valid: bool,
    problems: Vec<String>,
}

/// Checks every document. Exit code 1 when one is not valid: the verdict that was asked for.
fn validate(checks: &Checks<'_>, context: &mut Context) -> Exit {
    let Checks { paths, kind, lines } = *checks;
    let mut verdicts = Vec::new();
    for path in paths {
        let checked = if path == "-" {
            check(path, BufReader::new(std::io::stdin()), kind, lines, &mut verdicts)
        } else {
            files_of(&context.env.absolute(path)).and_then(|files| {
                files.into_iter().try_for_each(|file| {
                    let as_lines = lines || file.ends_with(".jsonl");
                    check(&file, BufReader::new(File::open(&file)?), kind, as_lines, &mut verdicts)
                })
            })
        };
        if let Err(error) = checked {
            let body = ErrorBody::new(ErrorSymbol::NotFound, format!("cannot read {path}: {error}"));
            return context.fail(body.hint("name JSON files or folders that hold some"));
        }
    }
    let valid = verdicts.iter().filter(|verdict| verdict.valid).count();
    let printed = if context.json() {
        context.printer.json_payload(&verdicts)
    } else {
        let mut text = String::new();
        for verdict in verdicts.iter().filter(|verdict| !verdict.valid) {
            let line = verdict.line.map(|line| format!(":{line}")).unwrap_or_default();
            for problem in &verdict.problems {
                let _ = writeln!(text, "{}{line}: {problem}", verdict.file);
            }
        }
        let _ = writeln!(text, "{valid} of {} valid", verdicts.len());
        context.printer.payload(&text)
    };
    match printed {
        Exit::Ok if valid < verdicts.len() => Exit::Verdict,
        exit => exit,
    }
}

fn check(
    file: &str,
    mut reader: impl BufRead,
    kind: Option<Kind>,
    lines: bool,
    verdicts: &mut Vec<Verdict>,
) -> std::io::Result<()> {
    let mut add = |line, result: Result<(), schema::Problems>| {
        let mut problems = Vec::new();
        if let Err(found) = &result {
            problems.extend(found.listed.iter().map(ToString::to_string));
            if found.more > 0 {
                problems.push(format!("and {} more", found.more));
            }
        }
        verdicts.push(Verdict { file: file.to_owned(), line, valid: result.is_ok(), problems });
    };
    if lines {
        for line in schema::validate_lines(kind, reader) {
            let line = line?;
            add(Some(line.number), line.verdict);
        }
    } else {
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes)?;
        add(None, schema::validate(kind.unwrap_or(Kind::Bundle), &bytes));
    }
    Ok(())
}

/// A file itself, or the JSON files below a folder, in order.
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
        return Err(std::io::Error::other("there is no .json or .jsonl file in it"));
    }
    Ok(files)
}
