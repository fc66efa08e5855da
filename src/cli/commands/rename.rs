//! `rename` and `prepare-rename`.

use clap::Args;

use crate::cli::context::Context;
use crate::cli::exit::Exit;
use crate::cli::guards::{GuardArgs, RenameGuardArgs, WriteArgs};
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::model::request::{Command, Request};
use crate::selector::ModuleName;

/// Arguments of `rename`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Without --apply nothing is written: the diff is printed with what is wrong with it, if anything is.
With it, a check that fails writes nothing and ends with its exit code: 70 the edit does not fit, 71 outside of the
workspace, 77 uncommitted changes, 78 anything else. `lanser undo` takes back what was written.
Where the old name also stands in strings, comments and documents is told, and not edited.")]
pub(crate) struct RenameArgs {
    /// What to rename: `py://pkg.mod#Class.method`, `path:LINE:COL`, or another form of a selector
    pub(crate) selector: String,

    /// The new name
    pub(crate) new_name: String,

    #[command(flatten)]
    pub(crate) write: WriteArgs,

    #[command(flatten)]
    pub(crate) guards: GuardArgs,

    #[command(flatten)]
    pub(crate) renaming: RenameGuardArgs,
}

/// Arguments of `prepare-rename`.
#[derive(Debug, Clone, Args)]
pub(crate) struct PrepareRenameArgs {
    /// What would be renamed, in any form of a selector
    pub(crate) selector: String,
}

/// Renames.
pub(crate) fn run(args: &RenameArgs, context: &mut Context) -> Exit {
    context.ask(|context, settings| {
        refuse_modules(&args.selector)?;
        let mut options = context.options(settings);
        options.apply = args.write.apply;
        options.guards = args.guards.guards(&args.renaming, &settings.policies, &settings.root)?;
        let selector = Some(context.selector(&args.selector, settings)?);
        Ok(Request { cmd: Command::Rename, selector, new_name: Some(args.new_name.clone()), options })
    })
}

/// A module is a file, and no selector: whoever asks for its rename is to learn more than that.
fn refuse_modules(selector: &str) -> Result<(), ErrorBody> {
    let module = selector.strip_prefix("py://").filter(|module| ModuleName::new(module).is_some());
    module.map_or(Ok(()), |module| {
        let message = format!("modules are not renamed, and {module} is one");
        Err(ErrorBody::new(ErrorSymbol::UnsupportedCap, message).hint(format!(
            "move the file with `git mv` and mend its imports: `lanser refs` and `lanser check` help; to rename a name in it: \
             py://{module}#NAME"
        )))
    })
}

/// Asks whether a rename is possible.
pub(crate) fn prepare(args: &PrepareRenameArgs, context: &mut Context) -> Exit {
    context.ask_about(Command::PrepareRename, &args.selector, |_| {})
}
