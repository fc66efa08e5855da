//! `apply` and `check`: an edit provided by the caller.

use std::io::Read as _;

use clap::Args;

use super::diag::{Level, WithArgs};
use crate::cli::context::CliContext;
use crate::cli::exit::ProgramExit;
use crate::cli::guards::{GuardArgs, RenameGuardArgs, WriteArgs};
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::model::request::{Command, EditInput, Request, Severity};
use crate::workspace::files::{MAX_FILE_BYTES, read_bytes};

/// Arguments of `apply`.
#[derive(Debug, Clone, Args)]
pub(crate) struct ApplyArgs {
    /// File with a unified diff, WorkspaceEdit or bundle; `-` for stdin
    pub(crate) edit: String,

    #[command(flatten)]
    pub(crate) write: WriteArgs,

    #[command(flatten)]
    pub(crate) guards: GuardArgs,

    #[command(flatten)]
    pub(crate) renaming: RenameGuardArgs,
}

/// Arguments of `check`.
#[derive(Debug, Clone, Args)]
pub(crate) struct CheckArgs {
    /// File with a unified diff, WorkspaceEdit or bundle; `-` for stdin
    pub(crate) edit: String,

    /// Exit with code 1 if the edit introduces a diagnostic of this severity or worse
    #[arg(long, value_name = "LEVEL")]
    pub(crate) fail_on: Option<FailOn>,

    #[command(flatten)]
    pub(crate) with: WithArgs,
}

/// The value of `check --fail-on`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum FailOn {
    /// Information and worse
    Information,
    /// Warnings and errors
    Warning,
    /// Errors only
    Error,
    /// The same as `error`
    NewError,
}

impl From<FailOn> for Severity {
    fn from(level: FailOn) -> Self {
        match level {
            FailOn::Information => Level::Information.into(),
            FailOn::Warning => Level::Warning.into(),
            FailOn::Error | FailOn::NewError => Level::Error.into(),
        }
    }
}

/// Applies an edit, or shows what it would write.
pub(crate) fn run(args: &ApplyArgs, context: &mut CliContext) -> ProgramExit {
    context.run_request(|context, settings| {
        let mut options = context.options(settings);
        options.apply = args.write.apply;
        options.guards = args.guards.guards(&args.renaming, &settings.policies, &settings.root)?;
        options.edit = Some(read(&args.edit, context)?);
        Ok(Request::new(Command::Apply, None, None, options))
    })
}

/// Compares the diagnostics before and after an edit.
pub(crate) fn check(args: &CheckArgs, context: &mut CliContext) -> ProgramExit {
    context.run_request(|context, settings| {
        let mut options = context.options(settings);
        options.fail_on = args.fail_on.map(Severity::from);
        options.with = args.with.analyzers(settings)?;
        options.edit = Some(read(&args.edit, context)?);
        Ok(Request::new(Command::Check, None, None, options))
    })
}

fn read(edit: &str, context: &CliContext) -> Result<EditInput, ErrorBody> {
    let mut content = Vec::new();
    if edit == "-" {
        std::io::stdin().take(MAX_FILE_BYTES).read_to_end(&mut content).map_err(|error| {
            ErrorBody::new(ErrorSymbol::Usage, format!("cannot read standard input: {error}"))
        })?;
    } else {
        content = read_bytes(&context.env.absolute(edit)).map_err(|error| {
            ErrorBody::new(ErrorSymbol::Usage, format!("cannot read the edit: {error}"))
                .hint("give the path of a file, or `-` for standard input")
        })?;
    }
    Ok(EditInput::new(content))
}
