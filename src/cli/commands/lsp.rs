//! `lsp`: a language server that answers as the commands do.

use clap::Args;

use crate::cli::context::{CliContext, runtime};
use crate::cli::exit::ProgramExit;
use crate::cli::guards::{GuardArgs, RenameGuardArgs};
use crate::cli::signals::interrupted;
use crate::engine::Engine;
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::path::AbsPath;
use crate::serve::lsp::{self, LspWorkspace, Served};

/// Arguments of `lsp`.
#[derive(Debug, Clone, Args)]
#[command(after_long_help = "\
The server speaks the language server protocol on standard input and output. The workspace is that of --workspace, or else the \
client's. Answers are complete, or the client is told what may be missing. Text that is not saved is analyzed in a temporary copy of \
the workspace. Nothing is written: the client applies edits. The exit code is 1 if the client sends `exit` without `shutdown`.

Example, .lsp.json of a plugin for Claude Code:
  {\"python\": {\"command\": \"lanser\", \"args\": [\"lsp\", \"--from-disk\"], \"extensionToLanguage\": {\".py\": \"python\"}}}")]
pub(crate) struct LspArgs {
    /// Answer about the files on disk, also where the client has another text
    ///
    /// For clients of agents, whose files are always saved and may be changed by other programs without the client's knowledge.
    #[arg(long)]
    from_disk: bool,

    /// Rename a method in all related classes
    #[arg(long)]
    rename_family: bool,
}

/// Serves until the client leaves.
pub(crate) fn run(args: &LspArgs, context: &mut CliContext) -> ProgramExit {
    let runtime = match runtime() {
        Ok(runtime) => runtime,
        Err(error) => return context.fail(error),
    };
    let own = context.clone();
    let served = runtime.block_on(lsp::run(move |root| open(own.clone(), args, root), interrupted()));
    // A pending read of standard input must not delay the exit.
    runtime.shutdown_background();
    match served {
        Served::Ended => ProgramExit::Ok,
        Served::NotShutDown => {
            context.printer.complain("the client sent `exit` without `shutdown`");
            ProgramExit::CheckFailed
        }
        Served::Failed { reason } => {
            // Standard output belongs to the protocol.
            context.printer.complain(&reason);
            ProgramExit::Failed(ErrorSymbol::Usage)
        }
    }
}

/// Opens the workspace of the command line, or else that of the client.
fn open(mut context: CliContext, args: &LspArgs, root: Option<AbsPath>) -> Result<LspWorkspace, ErrorBody> {
    if let (None, Some(root)) = (&context.global.workspace, root) {
        context.global.workspace = Some(root.to_string());
    }
    let settings = context.settings()?;
    let guards =
        GuardArgs::default().guards(&RenameGuardArgs::default(), &settings.policies, &settings.root)?;
    Ok(LspWorkspace {
        engine: Engine::new(context.engine_settings(&settings)),
        guards,
        scope: settings.scope,
        family: args.rename_family,
        from_disk: args.from_disk,
    })
}
