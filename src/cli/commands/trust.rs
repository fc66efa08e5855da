//! `trust add|list|remove`: the repositories whose programs may be run.

use clap::{Args, Subcommand};
use serde::Serialize;

use crate::cli::context::CliContext;
use crate::cli::exit::ProgramExit;
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::path::AbsPath;
use crate::workspace::files::canonical;
use crate::workspace::root;
use crate::workspace::trust::TrustedRepository;

/// The verbs of `trust`.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum TrustSubcommand {
    /// Allow running the programs of a repository
    Add(RepositoryArgs),
    /// List the trusted repositories
    List,
    /// Stop trusting a repository
    Remove(RepositoryArgs),
}

/// Arguments of `trust add` and `trust remove`.
#[derive(Debug, Clone, Args)]
pub(crate) struct RepositoryArgs {
    /// Folder in the repository [default: the workspace]
    #[arg(value_name = "PATH")]
    path: Option<String>,
}

/// The JSON output of `trust add` and `trust remove`.
#[derive(Debug, Serialize)]
struct TrustChange<'c> {
    repository: &'c str,
    trusted: bool,
    /// Whether the command changed `trusted`.
    changed: bool,
}

/// The JSON output of `trust list`.
#[derive(Debug, Serialize)]
struct TrustedRepositories<'l> {
    repositories: &'l [TrustedRepository],
}

/// Runs a verb of `trust`.
pub(crate) fn run(command: &TrustSubcommand, context: &mut CliContext) -> ProgramExit {
    let done = match command {
        TrustSubcommand::Add(args) => change(context, args, true),
        TrustSubcommand::Remove(args) => change(context, args, false),
        TrustSubcommand::List => Ok(list(context)),
    };
    done.unwrap_or_else(|error| context.fail(error))
}

fn change(context: &CliContext, args: &RepositoryArgs, trusted: bool) -> Result<ProgramExit, ErrorBody> {
    let repository = repository(context, args);
    let mut list = context.env.trust_list();
    let changed = if trusted { list.add(&repository) } else { list.remove(&repository) };
    let changed = changed.map_err(|error| {
        let symbol = match error.kind() {
            std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => ErrorSymbol::NotFound,
            _ => ErrorSymbol::FsPermissions,
        };
        let action = if trusted { "trust" } else { "stop trusting" };
        ErrorBody::new(symbol, format!("cannot {action} {repository}: {error}"))
            .hint("give a folder of the repository; the list is in the user's state folder")
    })?;
    let change = TrustChange { repository: repository.as_str(), trusted, changed };
    Ok(match context.json() {
        true => context.printer.json_payload(&change),
        false => {
            let what = match (trusted, changed) {
                (true, true) => "is now trusted: its programs may be run",
                (true, false) => "is already trusted",
                (false, true) => "is no longer trusted",
                (false, false) => "was not trusted",
            };
            context.printer.payload(&format!("{repository} {what}\n"))
        }
    })
}

/// The repository around the given folder, or around the workspace.
fn repository(context: &CliContext, args: &RepositoryArgs) -> AbsPath {
    let named = args.path.as_ref().or(context.global.workspace.as_ref());
    let folder = match named {
        Some(path) => canonical(&context.env.absolute(path)),
        None => root::discover(&context.env.cwd),
    };
    // The folder need not exist, so that a deleted repository can be removed from the list.
    context.env.checkout(&folder)
}

fn list(context: &CliContext) -> ProgramExit {
    let list = context.env.trust_list();
    if context.json() {
        return context.printer.json_payload(&TrustedRepositories { repositories: list.repositories() });
    }
    if list.repositories().is_empty() {
        return context.printer.payload("no repository is trusted\n");
    }
    let lines = list.repositories().iter().map(|one| format!("{}\n", one.path));
    context.printer.payload(&lines.collect::<String>())
}
