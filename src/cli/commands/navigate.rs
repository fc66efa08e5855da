//! `def`, `decl`, `typedef`, `impl`, `hover` and `refs`: requests about the symbol at a selector.

use clap::Args;

use crate::cli::context::CliContext;
use crate::cli::settings::CliSettings;
use crate::model::error::ErrorBody;
use crate::model::request::{Command, Request};

/// Arguments of the requests that only need a selector.
#[derive(Debug, Clone, Args)]
pub(crate) struct NavigateArgs {
    /// Symbol: `Class.method`, `pkg.mod.name`, `path:LINE[:COL]`, `py://mod#f(param)`, …
    ///
    /// All forms: `lanser help locate`. `-` reads the selector from standard input.
    pub(crate) selector: String,
}

/// Arguments of `refs`.
#[derive(Debug, Clone, Args)]
pub(crate) struct RefsArgs {
    /// Symbol: `Class.method`, `pkg.mod.name`, `path:LINE[:COL]`, `py://mod#f(param)`, …
    ///
    /// All forms: `lanser help locate`. `-` reads the selector from standard input.
    pub(crate) selector: String,

    /// Omit the declaration itself
    #[arg(long)]
    pub(crate) exclude_declaration: bool,
}

impl NavigateArgs {
    /// The request of `cmd`.
    pub(crate) fn request(
        &self,
        cmd: Command,
        context: &CliContext,
        settings: &CliSettings,
    ) -> Result<Request, ErrorBody> {
        context.request_for(cmd, &self.selector, settings, |_| {})
    }
}

impl RefsArgs {
    pub(crate) fn request(&self, context: &CliContext, settings: &CliSettings) -> Result<Request, ErrorBody> {
        context.request_for(Command::References, &self.selector, settings, |options| {
            options.exclude_declaration = self.exclude_declaration;
        })
    }
}
