//! `rename` and `prepare-rename`.

use clap::{Args, ValueEnum};

use crate::cli::context::CliContext;
use crate::cli::exit::ProgramExit;
use crate::cli::guards::{GuardArgs, RenameGuardArgs, WriteArgs};
use crate::cli::settings::CliSettings;
use crate::model::error::ErrorBody;
use crate::model::request::{CheckScope, Command, Request};
use crate::selector::ModuleName;

/// Arguments of `rename`.
#[derive(Debug, Clone, Args)]
#[command(after_long_help = "\
Without --apply nothing is written: the diff is printed, with the safety checks that failed. Nothing is written if a check \
fails, and the exit code is that of the check, also without --apply: 70 the edit does not apply, 71 outside of the workspace, 77 \
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

    /// Rename a method in all related classes
    ///
    /// The methods that it overrides, that override it, and that stand beside it in the method resolution order of a derived class.
    /// With a parameter, the same parameter of all of them.
    #[arg(long)]
    pub(crate) family: bool,

    /// Rename this unresolved place, too
    ///
    /// `PATH:LINE:COL`, or `unresolved` for all of them.
    #[arg(long, value_name = "PLACE")]
    pub(crate) include: Vec<String>,

    /// Leave this unresolved place: it is something else
    ///
    /// `PATH:LINE:COL`, or `unresolved` for all of them.
    #[arg(long, value_name = "PLACE")]
    pub(crate) exclude: Vec<String>,

    /// Compare the diagnostics of all importing files with `importers`
    ///
    /// By default, files that the rename cannot affect are left out, and the bundle says which.
    #[arg(long, value_name = "FILES", hide_short_help = true, hide_possible_values = true)]
    pub(crate) check: Option<CheckArg>,

    #[command(flatten)]
    pub(crate) guards: GuardArgs,

    #[command(flatten)]
    pub(crate) renaming: RenameGuardArgs,
}

/// The value of `--check`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CheckArg {
    /// Only files that the rename can affect
    Affected,
    /// Every file that imports an edited module
    Importers,
}

/// Arguments of `prepare-rename`.
#[derive(Debug, Clone, Args)]
pub(crate) struct PrepareRenameArgs {
    /// Symbol: `py://pkg.mod#Class.method`, `path:LINE:COL`, …
    ///
    /// All forms: `lanser help locate`.
    pub(crate) selector: String,
}

/// Arguments of `move`.
#[derive(Debug, Clone, Args)]
pub(crate) struct MoveArgs {
    /// Module or package: `py://pkg.old` or `src/pkg/old.py`
    pub(crate) from: String,

    /// Where it goes: `py://pkg.new` or `src/pkg/new.py`
    pub(crate) to: String,

    #[command(flatten)]
    pub(crate) write: WriteArgs,

    /// Rename this unresolved place, too
    ///
    /// `PATH:LINE:COL`, or `unresolved` for all of them: strings that may name the module.
    #[arg(long, value_name = "PLACE")]
    pub(crate) include: Vec<String>,

    /// Leave this unresolved place: it is something else
    ///
    /// `PATH:LINE:COL`, or `unresolved` for all of them.
    #[arg(long, value_name = "PLACE")]
    pub(crate) exclude: Vec<String>,

    #[command(flatten)]
    pub(crate) guards: GuardArgs,

    /// Apply even if some uses may be missing
    #[arg(long, hide_short_help = true, help_heading = "Overrides of failed checks")]
    pub(crate) allow_incomplete: bool,
}

/// Renames.
pub(crate) fn run(args: &RenameArgs, context: &mut CliContext) -> ProgramExit {
    context.run_request(|context, settings| {
        let mut options = context.options(settings);
        options.apply = args.write.apply;
        options.guards = args.guards.guards(&args.renaming, &settings.policies, &settings.root)?;
        options.family = args.family;
        options.include = places(&args.include, context, settings)?;
        options.exclude = places(&args.exclude, context, settings)?;
        options.check = match args.check {
            Some(CheckArg::Importers) => CheckScope::Importers,
            Some(CheckArg::Affected) | None => CheckScope::Affected,
        };
        let module = args.selector.strip_prefix("py://").filter(|name| ModuleName::new(name).is_some());
        options.module = module.map(str::to_owned);
        let selector = match module {
            Some(_) => None,
            None => Some(context.selector(&args.selector, settings)?),
        };
        let new_name = args.new_name.strip_prefix("py://").filter(|_| module.is_some());
        let new_name = new_name.unwrap_or(&args.new_name).to_owned();
        Ok(Request { cmd: Command::Rename, selector, new_name: Some(new_name), options })
    })
}

/// Moves a module or a package.
pub(crate) fn run_move(args: &MoveArgs, context: &mut CliContext) -> ProgramExit {
    context.run_request(|context, settings| {
        let mut options = context.options(settings);
        options.apply = args.write.apply;
        let renaming =
            RenameGuardArgs { allow_incomplete: args.allow_incomplete, ..RenameGuardArgs::default() };
        options.guards = args.guards.guards(&renaming, &settings.policies, &settings.root)?;
        options.include = places(&args.include, context, settings)?;
        options.exclude = places(&args.exclude, context, settings)?;
        options.module = Some(module_or_path(&args.from, context, settings));
        let new_name = Some(module_or_path(&args.to, context, settings));
        Ok(Request { cmd: Command::Rename, selector: None, new_name, options })
    })
}

/// A module as a dotted name, or as a path relative to the workspace.
fn module_or_path(text: &str, context: &CliContext, settings: &CliSettings) -> String {
    if let Some(name) = text.strip_prefix("py://") {
        return name.to_owned();
    }
    if ModuleName::new(text).is_some() && !text.ends_with(".py") && !text.ends_with(".pyi") {
        return text.to_owned();
    }
    context.path_in_workspace(text, settings)
}

/// Places as selectors, sorted; the word `unresolved` stays as it is.
fn places(given: &[String], context: &CliContext, settings: &CliSettings) -> Result<Vec<String>, ErrorBody> {
    let place = |text: &String| match text.as_str() {
        "unresolved" => Ok(text.clone()),
        text => context.selector(text, settings).map(|selector| selector.to_string()),
    };
    let mut places = given.iter().map(place).collect::<Result<Vec<_>, _>>()?;
    places.sort();
    places.dedup();
    Ok(places)
}

/// Requests whether the symbol can be renamed.
pub(crate) fn prepare(args: &PrepareRenameArgs, context: &mut CliContext) -> ProgramExit {
    context.run_request_for(Command::PrepareRename, &args.selector, |_| {})
}
