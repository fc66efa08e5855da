//! The commands as tools of a model. A tool is a verb of the command line: its arguments are turned into words, which are parsed as
//! if they were typed. So a tool accepts what the verb accepts, and a hint that names an option names an argument.

mod arguments;
mod hints;

use std::sync::Arc;

use clap::{CommandFactory as _, Parser as _};
use rmcp::model::JsonObject;
use tokio::sync::RwLock;

use super::commands::{RequestVerb, Verb};
use super::context::{CliContext, error_bundle};
use super::output::Printer;
use super::settings::CliSettings;
use super::{Cli, usage_error};
use crate::digest::Digest;
use crate::engine::{Engine, Progress, cancelled, stored_bundle};
use crate::model::bundle::Bundle;
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::model::request::{Command, Request};
use crate::path::{AbsPath, DocUri};
use crate::selector::PositionSpec;
use crate::serve::mcp::{Answering, ToolAnswer, ToolDescription, ToolSource};
use crate::workspace::files::canonical;
use arguments::ToolArguments;

/// The verbs that are tools, with the command that each runs and whether it can write.
const TOOLS: [(&str, Command, bool); 12] = [
    ("def", Command::Definition, false),
    ("refs", Command::References, false),
    ("hover", Command::Hover, false),
    ("symbols", Command::Symbols, false),
    ("calls", Command::Calls, false),
    ("types", Command::TypeHierarchy, false),
    ("diag", Command::Diagnostics, false),
    ("locate", Command::Locate, false),
    ("rename", Command::Rename, true),
    ("check", Command::Check, false),
    ("apply", Command::Apply, true),
    ("undo", Command::Undo, true),
];

/// What a model is told about all tools.
const INSTRUCTIONS: &str = include_str!("instructions.md");

/// The commands as tools, for one workspace.
pub(crate) struct CommandTools {
    context: CliContext,
    /// Answers what no session answers.
    engine: Engine,
    tools: Vec<ToolDescription>,
    /// A request that writes runs alone.
    writing: RwLock<()>,
}

impl CommandTools {
    /// The tools of a workspace.
    ///
    /// # Errors
    /// If an option or a configuration file is invalid.
    pub(crate) fn new(context: CliContext) -> Result<Self, ErrorBody> {
        let engine = Engine::new(context.engine_settings(&context.settings()?));
        let mut command = Cli::command();
        command.build();
        let tools = TOOLS.map(|(name, cmd, writes)| {
            let verb = command.find_subcommand(name).unwrap_or_else(|| unreachable!("{name} is a verb"));
            ToolDescription {
                name,
                description: arguments::description(verb),
                input: arguments::schema(verb),
                command: cmd,
                writes,
            }
        });
        Ok(Self { context, engine, tools: tools.into(), writing: RwLock::new(()) })
    }

    /// The engine, to be closed at the end.
    pub(crate) fn engine(&self) -> Engine {
        self.engine.clone()
    }

    /// Reads a call: the request, and how its answer is printed.
    fn read(
        &self,
        name: &str,
        arguments: &JsonObject,
        progress: Arc<dyn Progress>,
    ) -> Result<ToolCall, ToolCallError> {
        let mut context = CliContext { progress: Some(progress), ..self.context.clone() };
        let refused = |context: &CliContext, error: ErrorBody| ToolCallError {
            printer: Box::new(context.printer.clone()),
            error: Box::new(error),
        };
        let mut command = Cli::command();
        command.build();
        let verb = command.find_subcommand(name).unwrap_or_else(|| unreachable!("{name} is a verb"));
        let ToolArguments { words, input } =
            ToolArguments::read(verb, arguments).map_err(|error| refused(&context, error))?;
        context.input = Some(input.unwrap_or_default());
        context.printer.typed = words.clone();
        context.printer.command_form = hints::as_tool_calls;
        context.printer.whole_is_in = Some("structuredContent");
        let parsed = Cli::try_parse_from(std::iter::once("lanser".to_owned()).chain(words));
        let cli = parsed.map_err(|error| {
            let hint = format!("`inputSchema` of the tool `{name}` has its arguments");
            refused(&context, usage_error(&error.render().to_string()).hint(hint))
        })?;
        // The text stays within its budget, whatever the limit: `structuredContent` has all items.
        context.global.limit = cli.global.limit;
        context.global.cursor = cli.global.cursor;
        let Verb::Request(verb) = cli.verb else { unreachable!("every tool makes a request") };
        let made = self.request(&context, &verb).map_err(|error| refused(&context, error))?;
        context.printer.within = context.within(&made.0);
        Ok(ToolCall { context, settings: made.0, request: made.1 })
    }

    /// The request of a verb, about the workspace that the engine was made for.
    fn request(&self, context: &CliContext, verb: &RequestVerb) -> Result<(CliSettings, Request), ErrorBody> {
        let settings = context.settings()?;
        if settings.root != self.engine.settings.root {
            let message = format!("the workspace is now {}, another one than at the start", settings.root);
            return Err(ErrorBody::new(ErrorSymbol::ContentModified, message).hint("start the server again"));
        }
        if !settings.root.as_path().is_dir() {
            let message = format!("the workspace {} is gone", settings.root);
            return Err(ErrorBody::new(ErrorSymbol::ContentModified, message).hint("start the server again"));
        }
        let request = verb.request(context, &settings)?;
        check_reach(&request, &settings.root)?;
        Ok((settings, request))
    }

    async fn answer(&self, call: &ToolCall, canceled: Answering<'_, ()>) -> Bundle {
        let ToolCall { context, settings, request } = call;
        let (mut canceled, writes) = (canceled, request.writes());
        // Writes run alone. A write that waits makes later reads wait, so it must not wait on after it was canceled.
        let _turn = tokio::select! {
            biased;
            () = canceled.as_mut() => return self.engine.refused(request.clone(), cancelled()),
            alone = self.writing.write(), if writes => (Some(alone), None),
            shared = self.writing.read(), if !writes => (None, Some(shared)),
        };
        let from_session = match writes {
            true => None,
            false => context.bundle_from_session(settings, request, canceled.as_mut()).await,
        };
        match from_session {
            Some(bundle) => bundle,
            None => self.for_call(context, settings).run(request.clone(), canceled).await,
        }
    }

    fn for_call(&self, context: &CliContext, settings: &CliSettings) -> Engine {
        let own = context.engine_settings(settings);
        self.engine.for_caller(own.timeout, own.verbose, own.progress)
    }
}

/// Refuses a selector in a file that is neither in the workspace nor installed: answers quote the code, and a model that was
/// talked into it could read any file of the user through a tool that is allowed as one that reads code.
fn check_reach(request: &Request, root: &AbsPath) -> Result<(), ErrorBody> {
    match request.selector.as_ref().and_then(PositionSpec::uri) {
        Some(DocUri::File(path)) if canonical(path).strip_prefix(root).is_none() => {
            let message = format!(
                "{path} is outside of the workspace, and tools read only the workspace and installed packages"
            );
            Err(ErrorBody::new(ErrorSymbol::NotFound, message)
                .hint("use a path inside the workspace, or the command line for other files"))
        }
        _ => Ok(()),
    }
}

/// A call that was read.
struct ToolCall {
    context: CliContext,
    settings: CliSettings,
    request: Request,
}

/// A call that cannot be run.
struct ToolCallError {
    printer: Box<Printer>,
    error: Box<ErrorBody>,
}

impl ToolSource for CommandTools {
    fn instructions(&self) -> String {
        INSTRUCTIONS.to_owned()
    }

    fn tools(&self) -> &[ToolDescription] {
        &self.tools
    }

    fn call<'a>(
        &'a self,
        name: &'a str,
        arguments: JsonObject,
        progress: Arc<dyn Progress>,
        canceled: Answering<'a, ()>,
    ) -> Answering<'a, Option<ToolAnswer>> {
        // As on the command line.
        let name = if name == "move" { "rename" } else { name };
        Box::pin(async move {
            if !self.tools.iter().any(|tool| tool.name == name) {
                return None;
            }
            let (bundle, printer) = match self.read(name, &arguments, progress) {
                Ok(call) => (self.answer(&call, canceled).await, call.context.printer),
                Err(ToolCallError { printer, error }) => (error_bundle(None, *error), *printer),
            };
            // The facts are those of every front end; what to do next is said in terms of tools.
            let mut told = bundle;
            if let Some(hint) = told.error.as_mut().and_then(|error| error.hint.as_mut()) {
                *hint = hints::for_tools(hint);
            }
            let text = printer.text(&told);
            Some(ToolAnswer { bundle: told, text })
        })
    }

    fn bundle(&self, id: Digest) -> Answering<'_, Option<Bundle>> {
        let cache = self.engine.settings.cache.clone();
        Box::pin(async move { tokio::task::spawn_blocking(move || stored_bundle(&cache, &id)).await.ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_verbs_that_say_whether_they_write() {
        let mut command = Cli::command();
        command.build();
        for (name, cmd, writes) in TOOLS {
            assert_eq!(Command::parse(name), Some(cmd));
            let verb = command.find_subcommand(name).unwrap();
            let can_apply = verb.get_arguments().any(|arg| arg.get_id() == "apply");
            assert_eq!(writes, can_apply || cmd == Command::Undo, "{name}");
        }
    }
}
