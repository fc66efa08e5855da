//! `calls`: the call hierarchy.

use clap::Args;

use crate::cli::context::CliContext;
use crate::cli::settings::CliSettings;
use crate::model::error::ErrorBody;
use crate::model::request::{Command, Direction, Request};

/// Arguments of `calls`.
#[derive(Debug, Clone, Args)]
#[command(group(clap::ArgGroup::new("direction").args(["incoming", "outgoing"])))]
pub(crate) struct CallsArgs {
    /// Function: `Class.method`, `pkg.mod.name`, `path:LINE[:COL]`, `py://pkg.mod#name`, …
    ///
    /// All forms: `lanser help locate`.
    pub(crate) selector: String,

    /// Show callers; the default
    #[arg(long)]
    pub(crate) incoming: bool,

    /// Show callees
    #[arg(long)]
    pub(crate) outgoing: bool,

    /// Number of levels to follow
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=8))]
    pub(crate) depth: u32,

    /// Output format; all but `text` list everything
    #[arg(long, value_name = "FORMAT", value_parser = ["text", "json", "mermaid", "dot"])]
    pub(crate) format: Option<String>,
}

impl CallsArgs {
    pub(crate) fn request(&self, context: &CliContext, settings: &CliSettings) -> Result<Request, ErrorBody> {
        context.request_for(Command::Calls, &self.selector, settings, |options| {
            options.direction = Some(if self.outgoing { Direction::Outgoing } else { Direction::default() });
            options.depth = (self.depth != 1).then_some(self.depth);
        })
    }
}
