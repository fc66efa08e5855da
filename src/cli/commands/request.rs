//! The verbs that make one request about a workspace. The command line and the tools of `mcp` are made from them.

use clap::Subcommand;

use super::{actions, apply, calls, diag, locate, navigate, rename, symbols, types, undo};
use crate::cli::context::CliContext;
use crate::cli::settings::CliSettings;
use crate::model::error::ErrorBody;
use crate::model::request::{Command, Request};

/// The verbs that make one request.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum RequestVerb {
    /// Show the definition of a symbol
    #[command(visible_alias = "definition")]
    Def(navigate::DefArgs),
    /// Show the declaration of a symbol
    ///
    /// Prefers stubs to sources.
    #[command(visible_alias = "declaration")]
    Decl(navigate::NavigateArgs),
    /// Show the definition of the type
    #[command(visible_alias = "type-definition")]
    Typedef(navigate::NavigateArgs),
    /// Show the implementations of a symbol
    #[command(visible_alias = "implementation")]
    Impl(navigate::NavigateArgs),
    /// Show all references to a symbol
    #[command(visible_alias = "references")]
    Refs(navigate::RefsArgs),
    /// Show the signature and documentation of a symbol
    Hover(navigate::NavigateArgs),
    /// Show the outline of files, or search symbols in the workspace
    Symbols(symbols::SymbolsArgs),
    /// Show the callers or callees of a function
    Calls(calls::CallsArgs),
    /// Show the base classes or subclasses of a class
    ///
    /// `object`, `Generic` and `Protocol` are left out.
    #[command(visible_alias = "type-hierarchy")]
    Types(types::TypesArgs),
    /// Show diagnostics
    #[command(visible_alias = "diagnostics")]
    Diag(diag::DiagArgs),
    /// Resolve a selector, without a server
    Locate(locate::LocateArgs),
    /// Check whether a symbol can be renamed
    PrepareRename(rename::PrepareRenameArgs),
    /// Rename a symbol or module, with safety checks
    #[command(visible_alias = "move")]
    Rename(rename::RenameArgs),
    /// List, preview or apply the code actions at a location
    Actions(actions::ActionsArgs),
    /// Apply a WorkspaceEdit or a unified diff, with safety checks
    Apply(apply::ApplyArgs),
    /// Show the diagnostics that an edit introduces and resolves
    ///
    /// Writes nothing.
    Check(apply::CheckArgs),
    /// Undo an applied edit, or list applied edits
    Undo(undo::UndoArgs),
}

impl RequestVerb {
    /// The request.
    ///
    /// # Errors
    /// If an argument is invalid.
    pub(crate) fn request(&self, context: &CliContext, settings: &CliSettings) -> Result<Request, ErrorBody> {
        match self {
            Self::Def(args) => args.request(context, settings),
            Self::Decl(args) => args.request(Command::Declaration, context, settings),
            Self::Typedef(args) => args.request(Command::TypeDefinition, context, settings),
            Self::Impl(args) => args.request(Command::Implementation, context, settings),
            Self::Refs(args) => args.request(context, settings),
            Self::Hover(args) => args.request(Command::Hover, context, settings),
            Self::Symbols(args) => args.request(context, settings),
            Self::Calls(args) => args.request(context, settings),
            Self::Types(args) => args.request(context, settings),
            Self::Diag(args) => args.request(context, settings),
            Self::Locate(args) => args.request(context, settings),
            Self::PrepareRename(args) => args.request(context, settings),
            Self::Rename(args) => args.request(context, settings),
            Self::Actions(args) => args.request(context, settings),
            Self::Apply(args) => args.request(context, settings),
            Self::Check(args) => args.request(context, settings),
            Self::Undo(args) => args.request(context, settings),
        }
    }

    /// The value of `--format`.
    pub(crate) fn format(&self) -> Option<&str> {
        match self {
            Self::Diag(args) => args.format.as_deref(),
            Self::Calls(args) => args.format.as_deref(),
            _ => None,
        }
    }
}
