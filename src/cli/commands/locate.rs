//! `locate`: where a selector is now.

use clap::Args;

use crate::cli::context::Context;
use crate::cli::exit::Exit;
use crate::model::request::{Command, Form};

/// Arguments of `locate`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Forms of a selector:
  py://pkg.mod#Class.method[:def|sig|body|doc][?overload=N]   a definition by its name
  path:LINE:COL  or  path@LLINE:CCOL                          a place; 1-based
  path@R(LINE,COL->LINE,COL)                                  a stretch, end exclusive
  ast://[module=pkg.mod]/[class=C]/[def=m]/call[2]            a construct by the way down to it
  anchor://path#\"text\"[?ctx=N&hash=sha1:…]                  a snippet, with a hash of its context
  sym://method:C.m:p:…                                        a symbol id out of a bundle
  {\"kind\":\"symbol\",\"qualname\":\"pkg.mod:Class.method\"}       the JSON form of any of them
Paths are relative to the workspace; `#`, `?`, `%`, `\"` and spaces in them are percent-encoded.
All take ?v=git:REVISION or ?v=sha256:DIGEST: what the selector was made from. It is then mapped to the present.")]
pub(crate) struct LocateArgs {
    /// What to look for, in any form of a selector, or `-` to read it from standard input
    pub(crate) selector: String,

    /// Print this many lines of source from the place on
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) preview: u32,

    /// Tell the place as another form of selector, to keep the one that will last
    #[arg(long = "as", value_name = "FORM", value_parser = ["cursor", "py", "ast", "anchor", "sym"])]
    pub(crate) form: Option<String>,
}

fn form(name: &str) -> Option<Form> {
    match name {
        "cursor" => Some(Form::Cursor),
        "py" => Some(Form::Py),
        "ast" => Some(Form::Ast),
        "anchor" => Some(Form::Anchor),
        "sym" => Some(Form::Sym),
        _ => None,
    }
}

/// Resolves the selector.
pub(crate) fn run(args: &LocateArgs, context: &mut Context) -> Exit {
    context.ask_about(Command::Locate, &args.selector, |options| {
        options.form = args.form.as_deref().and_then(form);
        options.preview = (args.preview != 1).then_some(args.preview);
    })
}
