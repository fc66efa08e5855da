//! `schema`: prints the JSON schemas, validates files against them, and compares two schemas.

mod compare;
mod validate;

use clap::{Args, CommandFactory as _, Subcommand};

use crate::cli::Cli;
use crate::cli::context::CliContext;
use crate::cli::exit::ProgramExit;
use crate::cli::output_file::{OutputFile, write_file};
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::schema::{self, SchemaKind};

/// The verbs of `schema`.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum SchemaSubcommand {
    /// Print a schema, or write all of them into a folder
    Export(ExportArgs),
    /// Print the schema of bundles, or write it into a file
    Bundle(OneSchemaArgs),
    /// Print the schema of selectors, or write it into a file
    Selector(OneSchemaArgs),
    /// Print all commands, options and exit codes as JSON, for tool definitions
    Commands,
    /// Validate JSON files, or all .json and .jsonl files of folders
    Validate(ValidateArgs),
    /// Validate JSON Lines, such as the input or output of `lanser batch`, or folders
    ValidateBatch(ValidateArgs),
    /// Compare two schemas, and say whether the change is compatible
    Diff(compare::DiffArgs),
}

/// Arguments of `schema export`.
#[derive(Debug, Clone, Args)]
pub(crate) struct ExportArgs {
    /// Only this one: `bundle`, `selector`, `request`, `batch` or `trace`
    #[arg(long, value_name = "KIND", value_parser = parse_kind)]
    pub(crate) only: Option<SchemaKind>,

    /// Write the files into this folder instead of printing
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<String>,
}

/// Arguments of `schema bundle` and `schema selector`.
#[derive(Debug, Clone, Args)]
pub(crate) struct OneSchemaArgs {
    /// Write the schema into this file instead of printing
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<String>,
}

/// Arguments of `schema validate` and `schema validate-batch`.
#[derive(Debug, Clone, Args)]
pub(crate) struct ValidateArgs {
    /// Files or folders, or `-` for standard input
    #[arg(required = true)]
    pub(crate) paths: Vec<String>,

    /// Schema: `bundle`, `selector`, `request`, `batch` or `trace` [default: by content]
    ///
    /// By default, the kind of each document is recognized by its content. Files of a folder that are not documents of lanser
    /// are skipped and counted.
    #[arg(long, value_name = "KIND", value_parser = parse_kind)]
    pub(crate) kind: Option<SchemaKind>,
}

fn parse_kind(name: &str) -> Result<SchemaKind, String> {
    SchemaKind::parse(name).ok_or_else(|| "expected bundle, selector, request, batch or trace".to_owned())
}

/// Runs a verb of `schema`.
pub(crate) fn run(command: SchemaSubcommand, context: &mut CliContext) -> ProgramExit {
    match command {
        SchemaSubcommand::Export(args) => export(&args, context),
        SchemaSubcommand::Bundle(args) => one(SchemaKind::Bundle, &args, context),
        SchemaSubcommand::Selector(args) => one(SchemaKind::Selector, &args, context),
        SchemaSubcommand::Commands => {
            let mut command = Cli::command();
            command.build();
            context.printer.json_payload(&schema::commands(&command))
        }
        SchemaSubcommand::Validate(args) => validate::run(&args, false, context),
        SchemaSubcommand::ValidateBatch(args) => validate::run(&args, true, context),
        SchemaSubcommand::Diff(args) => {
            compare::run(&args, context).unwrap_or_else(|error| context.fail(error))
        }
    }
}

/// Prints a schema or writes it into a file.
fn one(kind: SchemaKind, args: &OneSchemaArgs, context: &mut CliContext) -> ProgramExit {
    let Some(out) = &args.out else { return context.printer.payload(schema::export(kind)) };
    match OutputFile::new("--out", out, context).write(schema::export(kind)) {
        Ok(()) => ProgramExit::Ok,
        Err(error) => context.fail(error),
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
            write_file(&folder.join(kind.file_name()), schema::export(kind))?;
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
