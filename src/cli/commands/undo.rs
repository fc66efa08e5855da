//! `undo`: taking back what was written, and listing it.

use clap::Args;

use crate::cli::context::Context;
use crate::cli::exit::Exit;
use crate::cli::guards::ReachArgs;
use crate::model::request::{Command, Request};

/// Arguments of `undo`.
#[derive(Debug, Clone, Args)]
pub(crate) struct UndoArgs {
    /// The transaction to take back [default: the last]
    pub(crate) transaction: Option<String>,

    /// List the transactions instead, the latest first
    #[arg(long, conflicts_with = "transaction")]
    pub(crate) list: bool,

    #[command(flatten)]
    pub(crate) reach: ReachArgs,
}

/// Takes a transaction back.
pub(crate) fn run(args: &UndoArgs, context: &mut Context) -> Exit {
    context.ask(|context, settings| {
        let mut options = context.options(settings);
        options.transaction.clone_from(&args.transaction);
        options.list = args.list;
        if !args.list {
            options.guards = args.reach.guards(&settings.policies, &settings.root)?;
        }
        Ok(Request { cmd: Command::Undo, selector: None, new_name: None, options })
    })
}
