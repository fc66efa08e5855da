//! `def`, `decl`, `typedef`, `impl`, `hover` and `refs`: requests about the symbol at a selector.

use clap::Args;

use crate::cli::context::CliContext;
use crate::cli::settings::{CliSettings, parse_agree};
use crate::model::error::ErrorBody;
use crate::model::request::{Command, Request};
use crate::model::server::ServerKind;

/// Arguments of the requests that only need a selector.
#[derive(Debug, Clone, Args)]
pub(crate) struct NavigateArgs {
    /// Symbol: `Class.method`, `pkg.mod.name`, `path:LINE[:COL]`, `py://mod#f(param)`, …
    ///
    /// All forms: `lanser help locate`. `-` reads the selector from standard input.
    pub(crate) selector: String,
}

/// Arguments of `def`.
#[derive(Debug, Clone, Args)]
pub(crate) struct DefArgs {
    #[command(flatten)]
    pub(crate) navigate: NavigateArgs,

    #[command(flatten)]
    pub(crate) agree: AgreeArgs,
}

/// The other server of a request.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct AgreeArgs {
    /// Ask another server, too: `pyright`, `basedpyright`, `ty`, or `none`
    ///
    /// Each location says which server reports it. What one server leaves open, the other may resolve; where they contradict each
    /// other, the place is unresolved. The other server has its default version, and may be installed.
    #[arg(long, value_name = "SERVER", hide_short_help = true)]
    pub(crate) agree: Option<String>,
}

impl AgreeArgs {
    /// The other server of the option alone.
    ///
    /// # Errors
    /// If the name is unknown.
    pub(crate) fn given(&self) -> Result<Option<ServerKind>, ErrorBody> {
        self.agree.as_deref().map_or(Ok(None), |name| parse_agree("--agree", name))
    }

    /// The other server: that of the option, otherwise that of the settings.
    ///
    /// # Errors
    /// If the name is unknown.
    pub(crate) fn server(&self, settings: &CliSettings) -> Result<Option<ServerKind>, ErrorBody> {
        if self.agree.is_some() { self.given() } else { Ok(settings.agree) }
    }
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

    #[command(flatten)]
    pub(crate) agree: AgreeArgs,
}

impl DefArgs {
    pub(crate) fn request(&self, context: &CliContext, settings: &CliSettings) -> Result<Request, ErrorBody> {
        let agree = self.agree.server(settings)?;
        context.request_for(Command::Definition, &self.navigate.selector, settings, |options| {
            options.agree = agree;
        })
    }
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
        let agree = self.agree.server(settings)?;
        context.request_for(Command::References, &self.selector, settings, |options| {
            options.agree = agree;
            options.exclude_declaration = self.exclude_declaration;
        })
    }
}
