//! `actions`: the code actions at a location.

use clap::Args;

use crate::cli::context::CliContext;
use crate::cli::guards::{GuardArgs, RenameGuardArgs, WriteArgs};
use crate::cli::settings::CliSettings;
use crate::model::error::ErrorBody;
use crate::model::request::{Command, Request};

/// Arguments of `actions`.
#[derive(Debug, Clone, Args)]
pub(crate) struct ActionsArgs {
    /// Location: `path:LINE[:COL]`, `path@R(…)`, `Class.method`, `py://pkg.mod#name`, …
    ///
    /// For actions on a whole file, any location in it. All forms: `lanser help locate`.
    pub(crate) selector: String,

    /// List only this kind of action, such as `quickfix`
    ///
    /// Includes its subkinds: `source` includes `source.organizeImports`.
    #[arg(long, value_name = "KIND")]
    pub(crate) kind: Option<String>,

    /// Preview the action with this number or title
    ///
    /// With --apply, apply it.
    #[arg(long, value_name = "ACTION")]
    pub(crate) run: Option<String>,

    #[command(flatten)]
    pub(crate) write: WriteArgs,

    #[command(flatten)]
    pub(crate) guards: GuardArgs,
}

impl ActionsArgs {
    pub(crate) fn request(&self, context: &CliContext, settings: &CliSettings) -> Result<Request, ErrorBody> {
        let mut options = context.options(settings);
        options.action_kind.clone_from(&self.kind);
        options.run.clone_from(&self.run);
        if options.run.is_some() {
            options.apply = self.write.apply;
            options.guards =
                self.guards.guards(&RenameGuardArgs::default(), &settings.policies, &settings.root)?;
        }
        let selector = Some(context.selector(&self.selector, settings)?);
        Ok(Request::new(Command::Actions, selector, None, options))
    }
}
