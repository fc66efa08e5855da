//! `symbols`: the outline of files, or a search in the workspace.

use clap::Args;

use super::diag::{is_selector, workspace_paths};
use crate::cli::context::CliContext;
use crate::cli::settings::CliSettings;
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::model::request::{Command, Request};

/// Arguments of `symbols`.
#[derive(Debug, Clone, Args)]
pub(crate) struct SymbolsArgs {
    /// File or folder, or a selector for a part of it: `pkg.mod`, `Class`, … [default: the whole workspace]
    #[arg(conflicts_with = "query")]
    pub(crate) target: Option<String>,

    /// Search the symbols of the workspace by name
    #[arg(long, short, value_name = "NAME")]
    pub(crate) query: Option<String>,
}

impl SymbolsArgs {
    pub(crate) fn request(&self, context: &CliContext, settings: &CliSettings) -> Result<Request, ErrorBody> {
        let mut options = context.options(settings);
        let mut selector = None;
        match (&self.query, &self.target) {
            (Some(query), _) if query.trim().is_empty() => {
                return Err(ErrorBody::new(ErrorSymbol::Usage, "the query is empty")
                    .hint("use a name, or a part of one"));
            }
            (Some(query), _) => options.query = Some(query.clone()),
            (None, Some(target)) => match workspace_paths(std::slice::from_ref(target), context, settings) {
                Ok(paths) => options.paths = paths,
                Err(error) if !is_selector(target) => return Err(error),
                Err(_) => selector = Some(context.selector(target, settings)?),
            },
            (None, None) => {}
        }
        Ok(Request::new(Command::Symbols, selector, None, options))
    }
}
