//! `actions`: what the server proposes to do at a place, and doing it.

use clap::Args;

use crate::cli::context::Context;
use crate::cli::exit::Exit;
use crate::cli::guards::{GuardArgs, RenameGuardArgs, WriteArgs};
use crate::model::request::{Command, Request};

/// Arguments of `actions`.
#[derive(Debug, Clone, Args)]
pub(crate) struct ActionsArgs {
    /// The place, in any form of a selector; for what is done to a whole file any place in it
    pub(crate) selector: String,

    /// Only actions of this kind or below it: `quickfix`, `source.organizeImports`, …
    #[arg(long, value_name = "KIND")]
    pub(crate) kind: Option<String>,

    /// Show what this action would write, by its number or title; with --apply, write it
    #[arg(long, value_name = "ACTION")]
    pub(crate) run: Option<String>,

    #[command(flatten)]
    pub(crate) write: WriteArgs,

    #[command(flatten)]
    pub(crate) guards: GuardArgs,
}

/// Lists actions, or runs one.
pub(crate) fn run(args: &ActionsArgs, context: &mut Context) -> Exit {
    context.ask(|context, settings| {
        let mut options = context.options(settings);
        options.action_kind.clone_from(&args.kind);
        options.run.clone_from(&args.run);
        if options.run.is_some() {
            options.apply = args.write.apply;
            options.guards =
                args.guards.guards(&RenameGuardArgs::default(), &settings.policies, &settings.root)?;
        }
        let selector = Some(context.selector(&args.selector, settings)?);
        Ok(Request { cmd: Command::Actions, selector, new_name: None, options })
    })
}
