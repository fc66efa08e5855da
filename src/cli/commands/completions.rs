//! `completions`: shell completions and man pages.

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use crate::cli::Cli;
use crate::cli::context::CliContext;
use crate::cli::exit::ProgramExit;
use crate::model::error::{ErrorBody, ErrorSymbol};

/// Arguments of `completions`.
#[derive(Debug, Clone, Args)]
pub(crate) struct CompletionsArgs {
    /// Shell to print completions for
    #[arg(required_unless_present = "man")]
    pub(crate) shell: Option<Shell>,

    /// Write man pages into this folder instead
    #[arg(long, value_name = "DIR", conflicts_with = "shell")]
    pub(crate) man: Option<String>,
}

/// Prints completions or writes man pages.
pub(crate) fn run(args: &CompletionsArgs, context: &mut CliContext) -> ProgramExit {
    let mut command = Cli::command();
    if let Some(shell) = args.shell {
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut command, "lanser", &mut script);
        return context.printer.payload(&String::from_utf8_lossy(&script));
    }
    let folder = context.env.absolute(args.man.as_deref().unwrap_or("."));
    let written = std::fs::create_dir_all(folder.as_path())
        .and_then(|()| clap_mangen::generate_to(command, folder.as_path()));
    match written {
        Ok(()) => ProgramExit::Ok,
        Err(error) => {
            let message = format!("cannot write man pages into {folder}: {error}");
            context.fail(ErrorBody::new(ErrorSymbol::FsPermissions, message))
        }
    }
}
