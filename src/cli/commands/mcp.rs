//! `mcp`: the commands as tools of a Model Context Protocol server.

use clap::Args;

use crate::cli::context::{CliContext, runtime};
use crate::cli::exit::ProgramExit;
use crate::cli::signals::interrupted;
use crate::cli::tools::CommandTools;
use crate::model::error::ErrorSymbol;
use crate::serve::mcp;

/// Arguments of `mcp`.
#[derive(Debug, Clone, Args)]
#[command(after_long_help = "\
The server speaks on standard input and output until the client closes them. Its tools are the verbs def, refs, hover, symbols, \
calls, types, diag, locate, rename, check, apply and undo, with the options as arguments; bundles are resources. Requests are answered by the \
background session, as those of the command line.

Example, for Claude Code:
  claude mcp add lanser -- lanser mcp")]
pub(crate) struct McpArgs {}

/// Serves until the client leaves.
pub(crate) fn run(context: &mut CliContext) -> ProgramExit {
    let tools = match CommandTools::new(context.clone()) {
        Ok(tools) => tools,
        Err(error) => return context.fail(error),
    };
    let runtime = match runtime() {
        Ok(runtime) => runtime,
        Err(error) => return context.fail(error),
    };
    let engine = tools.engine();
    let served = runtime.block_on(async {
        let served = mcp::run(tools, interrupted()).await;
        engine.close().await;
        served
    });
    // A pending read of standard input must not delay the exit.
    runtime.shutdown_background();
    match served {
        Ok(()) => ProgramExit::Ok,
        Err(error) => {
            context.printer.complain(&format!("error: the connection failed: {error}"));
            ProgramExit::Failed(ErrorSymbol::FsPermissions)
        }
    }
}
