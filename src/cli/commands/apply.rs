//! `apply` and `check`: an edit provided by the caller.

use clap::Args;

use super::diag::{FailOn, WithArgs};
use crate::cli::context::CliContext;
use crate::cli::guards::{GuardArgs, RenameGuardArgs, WriteArgs};
use crate::cli::settings::CliSettings;
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

impl ApplyArgs {
    pub(crate) fn request(&self, context: &CliContext, settings: &CliSettings) -> Result<Request, ErrorBody> {
        let mut options = context.options(settings);
        options.apply = self.write.apply;
        options.guards = self.guards.guards(&self.renaming, &settings.policies, &settings.root)?;
        options.edit = Some(read(&self.edit, context)?);
        Ok(Request::new(Command::Apply, None, None, options))
    }
}

impl CheckArgs {
    pub(crate) fn request(&self, context: &CliContext, settings: &CliSettings) -> Result<Request, ErrorBody> {
        let mut options = context.options(settings);
        options.fail_on = self.fail_on.map(Severity::from);
        options.with = self.with.analyzers(settings)?;
        options.edit = Some(read(&self.edit, context)?);
        Ok(Request::new(Command::Check, None, None, options))
    }
}

fn read(edit: &str, context: &CliContext) -> Result<EditInput, ErrorBody> {
    let content = match edit {
        "-" => context.read_input(MAX_FILE_BYTES)?,
        file => read_bytes(&context.env.absolute(file)).map_err(|error| {
            ErrorBody::new(ErrorSymbol::Usage, format!("cannot read the edit: {error}"))
                .hint("give the path of a file, or `-` for standard input")
        })?,
    };
    Ok(EditInput::new(content))
}
