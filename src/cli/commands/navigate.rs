//! `def`, `decl`, `typedef`, `impl`, `hover` and `refs`: requests about the symbol at a selector.

use clap::Args;

use crate::cli::context::CliContext;
use crate::cli::exit::ProgramExit;
use crate::model::request::Command;

/// Arguments of the requests that only need a selector.
#[derive(Debug, Clone, Args)]
pub(crate) struct NavigateArgs {
    /// Symbol: `Class.method`, `pkg.mod.name`, `path:LINE[:COL]`, `py://mod#f(param)`, …
    ///
    /// All forms: `lanser help locate`. `-` reads the selector from standard input.
    pub(crate) selector: String,
}

/// Arguments of `refs`.
#[derive(Debug, Clone, Args)]
pub(crate) struct RefsArgs {
    /// Symbol: `Class.method`, `pkg.mod.name`, `path:LINE[:COL]`, `py://mod#f(param)`, …
    ///
    /// All forms: `lanser help locate`. `-` reads the selector from standard input.
    pub(crate) selector: String,

    /// Omit the declaration itself
    #[arg(long)]
    pub(crate) exclude_declaration: bool,
}

/// Requests `cmd` for the selector.
pub(crate) fn run(cmd: Command, args: &NavigateArgs, context: &mut CliContext) -> ProgramExit {
    context.run_request_for(cmd, &args.selector, |_| {})
}

/// Requests references.
pub(crate) fn run_refs(args: &RefsArgs, context: &mut CliContext) -> ProgramExit {
    context.run_request_for(Command::References, &args.selector, |options| {
        options.exclude_declaration = args.exclude_declaration;
    })
}
