//! `undo`: undoes applied edits, and lists them.

use clap::Args;

use crate::cli::context::CliContext;
use crate::cli::guards::ReachArgs;
use crate::cli::settings::CliSettings;
use crate::model::error::ErrorBody;
use crate::model::request::{Command, Request};

/// Arguments of `undo`.
#[derive(Debug, Clone, Args)]
pub(crate) struct UndoArgs {
    /// Transaction to undo [default: the latest]
    pub(crate) transaction: Option<String>,

    /// List the transactions, latest first
    #[arg(long, conflicts_with = "transaction")]
    pub(crate) list: bool,

    #[command(flatten)]
    pub(crate) reach: ReachArgs,
}

impl UndoArgs {
    pub(crate) fn request(&self, context: &CliContext, settings: &CliSettings) -> Result<Request, ErrorBody> {
        let mut options = context.options(settings);
        options.transaction.clone_from(&self.transaction);
        options.list = self.list;
        if !self.list {
            options.guards = self.reach.guards(&settings.policies, &settings.root)?;
        }
        Ok(Request::new(Command::Undo, None, None, options))
    }
}
