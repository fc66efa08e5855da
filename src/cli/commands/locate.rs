//! `locate`: where a selector is now.

use clap::Args;

use crate::cli::context::Context;
use crate::cli::exit::Exit;
use crate::model::request::Command;

/// Arguments of `locate`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Forms of a selector:
  py://pkg.mod#Class.method[:def|sig|body|doc][?overload=N]   a definition by its name
  path:LINE:COL  or  path@LLINE:CCOL                          a place; 1-based
  path@R(LINE,COL->LINE,COL)                                  a stretch, end exclusive
  {\"kind\":\"symbol\",\"qualname\":\"pkg.mod:Class.method\"}       the JSON form of any of them
Paths are relative to the workspace; `#`, `?`, `%`, `\"` and spaces in them are percent-encoded.")]
pub(crate) struct LocateArgs {
    /// What to look for, in any form of a selector, or `-` to read it from standard input
    pub(crate) selector: String,

    /// Print this many lines of source from the place on
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) preview: u32,
}

/// Resolves the selector.
pub(crate) fn run(args: &LocateArgs, context: &mut Context) -> Exit {
    context.ask_about(Command::Locate, &args.selector, |options| {
        options.preview = (args.preview != 1).then_some(args.preview);
    })
}
