//! `rename` and `prepare-rename`.

use clap::Args;

use crate::cli::context::CliContext;
use crate::cli::exit::ProgramExit;
use crate::cli::guards::{GuardArgs, RenameGuardArgs, WriteArgs};
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::model::request::{Command, Request};
use crate::selector::ModuleName;

/// Arguments of `rename`.
#[derive(Debug, Clone, Args)]
#[command(after_long_help = "\
Without --apply nothing is written: the diff is printed, with the safety checks that failed. With --apply, nothing is \
written if a check fails, and the exit code is that of the check: 70 the edit does not apply, 71 outside of the workspace, 77 \
uncommitted changes, 78 any other check. `lanser undo` undoes an applied rename.

Mentions of the old name in strings, comments and documentation are listed, but not edited.")]
pub(crate) struct RenameArgs {
    /// Symbol to rename: `py://pkg.mod#Class.method`, `path:LINE:COL`, …
    ///
    /// All forms: `lanser help locate`.
    pub(crate) selector: String,

    /// New name
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
    /// Symbol: `py://pkg.mod#Class.method`, `path:LINE:COL`, …
    ///
    /// All forms: `lanser help locate`.
    pub(crate) selector: String,
}

/// Renames.
pub(crate) fn run(args: &RenameArgs, context: &mut CliContext) -> ProgramExit {
    context.run_request(|context, settings| {
        refuse_modules(&args.selector)?;
        let mut options = context.options(settings);
        options.apply = args.write.apply;
        options.guards = args.guards.guards(&args.renaming, &settings.policies, &settings.root)?;
        let selector = Some(context.selector(&args.selector, settings)?);
        Ok(Request { cmd: Command::Rename, selector, new_name: Some(args.new_name.clone()), options })
    })
}

/// Refuses to rename a module, with a hint how to do it by hand.
fn refuse_modules(selector: &str) -> Result<(), ErrorBody> {
    let module = selector.strip_prefix("py://").filter(|module| ModuleName::new(module).is_some());
    module.map_or(Ok(()), |module| {
        let message = format!("renaming modules is not supported, and `{module}` is a module");
        Err(ErrorBody::new(ErrorSymbol::UnsupportedCap, message).hint(format!(
            "move the file with `git mv` and update its imports, which `lanser refs` finds; a symbol in the module is \
             py://{module}#NAME"
        )))
    })
}

/// Requests whether the symbol can be renamed.
pub(crate) fn prepare(args: &PrepareRenameArgs, context: &mut CliContext) -> ProgramExit {
    context.run_request_for(Command::PrepareRename, &args.selector, |_| {})
}
