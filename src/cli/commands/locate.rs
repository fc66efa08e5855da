//! `locate`: the current location of a selector.

use clap::Args;

use crate::cli::context::CliContext;
use crate::cli::settings::CliSettings;
use crate::model::error::ErrorBody;
use crate::model::request::{Command, Request, SelectorForm};

/// Arguments of `locate`.
#[derive(Debug, Clone, Args)]
#[command(after_long_help = "\
Forms of a selector:
  py://pkg.mod#Class.method[:def|sig|body|doc][?overload=N]
                                 a definition by its qualified name
  py://pkg.mod#function(parameter)
                                 a parameter
  pkg.mod.Class.method, pkg.mod:Class.method
                                 the same; the longest module that has the name
  Class.method, name             a definition of the workspace, if there is only one
  tests/test_x.py::TestC::test_m[1]
                                 a definition in a file; parameters are ignored
  path:LINE, path@LLINE          the name that a line defines, or else the line
  path:LINE:COL, path@LLINE:CCOL
                                 a position, counted from 1
  path@R(LINE,COL->LINE,COL)     a range, its end exclusive
  ast://[module=pkg.mod]/[class=C]/[def=m]/call[2]
                                 a syntax node by its path in the tree
  anchor://path#\"text\"[?ctx=N&hash=sha1:…]
                                 a snippet, with a hash of its context
  sym://method:C.m:p:…           a symbol id from a bundle
  {\"kind\":\"symbol\",\"qualname\":\"pkg.mod:Class.method\"}
                                 the JSON form, which every form has

Paths are relative to the workspace. `#`, `?`, `%`, `\"` and spaces in them are percent-encoded.

With ?v=git:REVISION or ?v=sha256:DIGEST a selector refers to that revision and is mapped to the \
current code.")]
pub(crate) struct LocateArgs {
    /// Selector, in any form (see --help); `-` for standard input
    pub(crate) selector: String,

    /// Number of source lines to print
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) preview: u32,

    /// Print the location as another form of selector
    #[arg(long = "as", value_name = "FORM", value_parser = ["cursor", "py", "ast", "anchor", "sym"])]
    pub(crate) form: Option<String>,
}

fn form(name: &str) -> Option<SelectorForm> {
    match name {
        "cursor" => Some(SelectorForm::Cursor),
        "py" => Some(SelectorForm::Py),
        "ast" => Some(SelectorForm::Ast),
        "anchor" => Some(SelectorForm::Anchor),
        "sym" => Some(SelectorForm::Sym),
        _ => None,
    }
}

impl LocateArgs {
    pub(crate) fn request(&self, context: &CliContext, settings: &CliSettings) -> Result<Request, ErrorBody> {
        context.request_for(Command::Locate, &self.selector, settings, |options| {
            options.form = self.form.as_deref().and_then(form);
            options.preview = (self.preview != 1).then_some(self.preview);
        })
    }
}
