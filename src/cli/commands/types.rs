//! `types`: the type hierarchy.

use clap::Args;

use crate::cli::context::CliContext;
use crate::cli::settings::CliSettings;
use crate::model::error::ErrorBody;
use crate::model::request::{Command, Request, TypeDirection};

/// Arguments of `types`.
#[derive(Debug, Clone, Args)]
#[command(group(clap::ArgGroup::new("direction").args(["supertypes", "subtypes"])))]
pub(crate) struct TypesArgs {
    /// Class: `Class`, `pkg.mod.Class`, `path:LINE[:COL]`, `py://pkg.mod#Class`, …
    ///
    /// All forms: `lanser help locate`.
    pub(crate) selector: String,

    /// Show base classes
    #[arg(long)]
    pub(crate) supertypes: bool,

    /// Show subclasses; the default
    #[arg(long)]
    pub(crate) subtypes: bool,

    /// Number of levels to follow
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=8))]
    pub(crate) depth: u32,
}

impl TypesArgs {
    pub(crate) fn request(&self, context: &CliContext, settings: &CliSettings) -> Result<Request, ErrorBody> {
        context.request_for(Command::TypeHierarchy, &self.selector, settings, |options| {
            options.types =
                Some(if self.supertypes { TypeDirection::Supertypes } else { TypeDirection::default() });
            options.depth = (self.depth != 1).then_some(self.depth);
        })
    }
}
