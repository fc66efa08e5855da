//! `def`, `decl`, `typedef`, `impl`, `hover`, `refs`: questions about the name at a selector.

use clap::Args;

use crate::cli::context::Context;
use crate::cli::exit::Exit;
use crate::model::request::Command;

/// Arguments of the questions that only need a selector.
#[derive(Debug, Clone, Args)]
pub(crate) struct NavigateArgs {
    /// What to ask about: `py://pkg.mod#Class.method`, `path:LINE:COL`, `path@L1:C2`, `path@R(1,2->3,4)`, its JSON form, or `-`
    pub(crate) selector: String,
}

/// Arguments of `refs`.
#[derive(Debug, Clone, Args)]
pub(crate) struct RefsArgs {
    /// What to ask about: `py://pkg.mod#Class.method`, `path:LINE:COL`, `path@L1:C2`, `path@R(1,2->3,4)`, its JSON form, or `-`
    pub(crate) selector: String,

    /// Leave the declaration itself out
    #[arg(long)]
    pub(crate) exclude_declaration: bool,
}

/// Asks `cmd` about the selector.
pub(crate) fn run(cmd: Command, args: &NavigateArgs, context: &mut Context) -> Exit {
    context.ask_about(cmd, &args.selector, |_| {})
}

/// Asks for references.
pub(crate) fn run_refs(args: &RefsArgs, context: &mut Context) -> Exit {
    context.ask_about(Command::References, &args.selector, |options| {
        options.exclude_declaration = args.exclude_declaration;
    })
}
