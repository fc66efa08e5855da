//! `undo`: undoes applied edits, and lists them.

use clap::Args;

use crate::cli::context::CliContext;
use crate::cli::exit::ProgramExit;
use crate::cli::guards::ReachArgs;
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

/// Undoes a transaction, or lists the transactions.
pub(crate) fn run(args: &UndoArgs, context: &mut CliContext) -> ProgramExit {
    context.run_request(|context, settings| {
        let mut options = context.options(settings);
        options.transaction.clone_from(&args.transaction);
        options.list = args.list;
        if !args.list {
            options.guards = args.reach.guards(&settings.policies, &settings.root)?;
        }
        Ok(Request::new(Command::Undo, None, None, options))
    })
}
