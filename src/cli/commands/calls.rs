//! `calls`: the call hierarchy.

use clap::Args;

use crate::cli::context::Context;
use crate::cli::exit::Exit;
use crate::model::request::{Command, Direction};

/// Arguments of `calls`.
#[derive(Debug, Clone, Args)]
#[command(group(clap::ArgGroup::new("direction").required(true).args(["incoming", "outgoing"])))]
pub(crate) struct CallsArgs {
    /// The function: `py://pkg.mod#Class.method`, `path:LINE:COL`, or another form of a selector
    pub(crate) selector: String,

    /// Who calls it
    #[arg(long)]
    pub(crate) incoming: bool,

    /// What it calls
    #[arg(long)]
    pub(crate) outgoing: bool,

    /// How many steps
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=8))]
    pub(crate) depth: u32,
}

/// Asks for calls.
pub(crate) fn run(args: &CallsArgs, context: &mut Context) -> Exit {
    context.ask_about(Command::Calls, &args.selector, |options| {
        options.direction = Some(if args.incoming { Direction::Incoming } else { Direction::Outgoing });
        options.depth = (args.depth != 1).then_some(args.depth);
    })
}
