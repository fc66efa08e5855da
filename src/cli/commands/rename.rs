//! `rename` and `prepare-rename`.

use clap::{Args, ValueEnum};

use super::navigate::AgreeArgs;
use crate::cli::context::CliContext;
use crate::cli::guards::{GuardArgs, RenameGuardArgs, WriteArgs};
use crate::cli::settings::CliSettings;
use crate::model::error::ErrorBody;
use crate::model::request::{CheckScope, Command, Request, is_module_path, module_of_selector};

/// Arguments of `rename`.
#[derive(Debug, Clone, Args)]
#[command(after_long_help = "\
Without --apply nothing is written: the diff is printed, with the safety checks that failed. Nothing is written if a check \
fails, and the exit code is that of the check, also without `--apply`: 70 the edit does not apply, 71 outside of the workspace, 77 \
uncommitted changes, 78 any other check. `lanser undo` undoes an applied rename.

Mentions of the old name in strings, comments and documentation are listed, but not edited.")]
pub(crate) struct RenameArgs {
    /// Symbol to rename: `Class.method`, `pkg.mod.name`, `path:LINE[:COL]`, `py://mod#f(param)`, …
    ///
    /// A module or package: `py://pkg.mod`, or a path without a position. All forms: `lanser help locate`.
    pub(crate) selector: String,

    /// New name
    ///
    /// Of a module the whole name, `pkg.new`, or a path.
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
    pub(crate) agree: AgreeArgs,

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
    /// Symbol: `Class.method`, `pkg.mod.name`, `path:LINE[:COL]`, `py://mod#f(param)`, …
    ///
    /// All forms: `lanser help locate`.
    pub(crate) selector: String,
}

impl RenameArgs {
    pub(crate) fn request(&self, context: &CliContext, settings: &CliSettings) -> Result<Request, ErrorBody> {
        let mut options = context.options(settings);
        options.apply = self.write.apply;
        options.guards = self.guards.guards(&self.renaming, &settings.policies, &settings.root)?;
        options.family = self.family;
        options.include = places(&self.include, context, settings)?;
        options.exclude = places(&self.exclude, context, settings)?;
        options.check = match self.check {
            Some(CheckArg::Importers) => CheckScope::Importers,
            Some(CheckArg::Affected) | None => CheckScope::Affected,
        };
        let Some(module) = module_of_selector(&self.selector) else {
            options.agree = self.agree.server(settings)?;
            let selector = Some(context.selector(&self.selector, settings)?);
            let new_name = Some(self.new_name.clone());
            return Ok(Request::new(Command::Rename, selector, new_name, options));
        };
        options.agree = self.agree.given()?;
        options.module = Some(module_or_path(module, context, settings));
        let new_name = Some(module_or_path(&self.new_name, context, settings));
        Ok(Request::new(Command::Rename, None, new_name, options))
    }
}

/// A module as a dotted name, or as a path relative to the workspace.
fn module_or_path(text: &str, context: &CliContext, settings: &CliSettings) -> String {
    if let Some(name) = text.strip_prefix("py://") {
        return name.to_owned();
    }
    if is_module_path(text) { context.path_in_workspace(text, settings) } else { text.to_owned() }
}

/// Places as selectors, sorted; the word `unresolved` stays as it is.
fn places(given: &[String], context: &CliContext, settings: &CliSettings) -> Result<Vec<String>, ErrorBody> {
    let place = |text: &String| match text.as_str() {
        "unresolved" => Ok(text.clone()),
        text => context.selector(text, settings).map(|selector| selector.spec.to_string()),
    };
    let mut places = given.iter().map(place).collect::<Result<Vec<_>, _>>()?;
    places.sort();
    places.dedup();
    Ok(places)
}

impl PrepareRenameArgs {
    pub(crate) fn request(&self, context: &CliContext, settings: &CliSettings) -> Result<Request, ErrorBody> {
        context.request_for(Command::PrepareRename, &self.selector, settings, |_| {})
    }
}
