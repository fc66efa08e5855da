//! `trust add|list|remove`: the repositories whose programs may be run.

use clap::{Args, Subcommand};
use serde::Serialize;

use crate::cli::context::Context;
use crate::cli::exit::Exit;
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::path::AbsPath;
use crate::workspace::files::canonical;
use crate::workspace::root;
use crate::workspace::trust::Repository;

/// The verbs of `trust`.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum TrustCommand {
    /// Trust the workspace's repository: what it brings may be run from now on
    Add(WhichArgs),
    /// List the repositories that are trusted
    List,
    /// Trust a repository no longer
    Remove(WhichArgs),
}

/// Arguments of `trust add` and `trust remove`.
#[derive(Debug, Clone, Args)]
pub(crate) struct WhichArgs {
    /// A folder of the repository [default: the workspace]
    #[arg(value_name = "PATH")]
    path: Option<String>,
}

/// What `trust add` and `trust remove` say.
#[derive(Debug, Serialize)]
struct Changed<'c> {
    repository: &'c str,
    trusted: bool,
    /// Whether it was otherwise before.
    changed: bool,
}

/// What `trust list` says.
#[derive(Debug, Serialize)]
struct Listed<'l> {
    repositories: &'l [Repository],
}

/// Runs a verb of `trust`.
pub(crate) fn run(command: &TrustCommand, context: &mut Context) -> Exit {
    let done = match command {
        TrustCommand::Add(args) => change(context, args, true),
        TrustCommand::Remove(args) => change(context, args, false),
        TrustCommand::List => Ok(list(context)),
    };
    done.unwrap_or_else(|error| context.fail(error))
}

fn change(context: &Context, args: &WhichArgs, trusted: bool) -> Result<Exit, ErrorBody> {
    let repository = repository(context, args);
    let mut list = context.env.trust_list();
    let changed = if trusted { list.add(&repository) } else { list.remove(&repository) };
    let changed = changed.map_err(|error| {
        let symbol = match error.kind() {
            std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => ErrorSymbol::NotFound,
            _ => ErrorSymbol::FsPermissions,
        };
        let doing = if trusted { "trust" } else { "forget" };
        ErrorBody::new(symbol, format!("cannot {doing} {repository}: {error}"))
            .hint("name a folder of the repository; the list is in the user's state folder")
    })?;
    let told = Changed { repository: repository.as_str(), trusted, changed };
    Ok(match context.json() {
        true => context.printer.json_payload(&told),
        false => {
            let what = match (trusted, changed) {
                (true, true) => "is trusted now: what it brings may be run",
                (true, false) => "was trusted already",
                (false, true) => "is trusted no longer",
                (false, false) => "was not trusted",
            };
            context.printer.payload(&format!("{repository} {what}\n"))
        }
    })
}

/// The checkout around the folder that is named, or around the workspace.
fn repository(context: &Context, args: &WhichArgs) -> AbsPath {
    let named = args.path.as_ref().or(context.global.workspace.as_ref());
    let folder = match named {
        Some(path) => canonical(&context.env.absolute(path)),
        None => root::discover(&context.env.cwd),
    };
    // One that is gone can still be taken off the list.
    context.env.checkout(&folder)
}

fn list(context: &Context) -> Exit {
    let list = context.env.trust_list();
    if context.json() {
        return context.printer.json_payload(&Listed { repositories: list.repositories() });
    }
    let lines = list.repositories().iter().map(|one| format!("{}\n", one.path));
    context.printer.payload(&lines.collect::<String>())
}
