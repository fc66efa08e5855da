//! The command line. Only this module reads arguments and the environment, prints, and sets the exit code.
//!
//! [`commands`] has one file per verb, [`settings`] combines options, environment and configuration files, and [`output`]
//! prints.

mod commands;
mod config;
mod context;
mod environment;
mod exit;
mod global;
mod globs;
mod guards;
mod output;
mod output_file;
mod report;
mod rewards;
mod settings;
mod signals;
mod skill;
mod tools;

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;

use clap::error::{ContextKind, ErrorKind};
use clap::parser::ValueSource;
use clap::{CommandFactory as _, FromArgMatches as _, Parser};

use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::process::guard::{GUARD_COMMAND, exec_guarded};
use crate::serve;
use crate::serve::session::SESSION_COMMAND;
use commands::Verb;
use context::CliContext;
use environment::ProcessEnvironment;
use exit::ProgramExit;
use global::GlobalArgs;
use output::{Format, Printer};
use settings::OptionsFromEnv;

/// Definitions, references, types and diagnostics of Python code
///
/// For agents and CI: every answer is one deterministic JSON bundle (--json), or text made from it.
#[derive(Debug, Parser)]
#[command(name = "lanser", version, max_term_width = 100, disable_help_flag = true, disable_version_flag = true, after_long_help = EXAMPLES_AND_EXIT_CODES)]
pub(crate) struct Cli {
    /// Print help (see more with '--help')
    #[arg(short, long, global = true, action = clap::ArgAction::Help, hide_short_help = true)]
    help: Option<bool>,

    /// Print version
    #[arg(short = 'V', long, action = clap::ArgAction::Version, hide_short_help = true)]
    version: Option<bool>,

    #[command(flatten)]
    global: GlobalArgs,
    #[command(subcommand)]
    verb: Verb,
}

/// The last line of every `-h`, which omits the common options.
const COMMON_OPTIONS_HINT: &str = "common options: `lanser help options`";

const EXAMPLES_AND_EXIT_CODES: &str = "\
Examples:
  lanser def py://flask#Flask.route      its definition, through re-exports
  lanser refs src/app.py:42:7            all references to the symbol there
  lanser hover Flask.route               by name, if there is only one
  lanser diag src --fail-on error        for CI
  lanser symbols --query Session --json  one JSON bundle on standard output

Exit codes, which `lanser schema commands` prints as JSON:
    0  success
    1  the condition of --fail-on holds, a file is not valid, or a schema change is breaking

    2  invalid request
    3  not found
    4  ambiguous
   10  revision of the selector is not available
   64  timeout
   65  server crashed
   66  server not found
   70  edit does not apply
   71  not permitted
   72  not supported by the server
   73  canceled
   74  workspace changed
   75  unsupported column unit
   76  replay does not match the trace
   77  uncommitted changes
   78  unsafe edit
  101  internal error";

/// Runs the program.
#[must_use]
pub fn main() -> ExitCode {
    let env = match ProcessEnvironment::of_process() {
        Ok(env) => env,
        Err(error) => {
            let printer = Printer::new(Format::Human, false);
            printer.complain(&format!("error: {error}"));
            return ProgramExit::Failed(ErrorSymbol::Usage).into();
        }
    };
    if env.args.get(1).is_some_and(|arg| arg == GUARD_COMMAND) {
        return guard(&env);
    }
    if env.args.get(1).is_some_and(|arg| arg == SESSION_COMMAND) {
        return session(&env);
    }
    let format = wanted_format(&env);
    // A panic is reported like any other error: one line or a JSON bundle, with its documented exit code.
    std::panic::set_hook(Box::new(|_| {}));
    let exit = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(env))).unwrap_or_else(|panic| {
        let payload =
            panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        let message = payload.unwrap_or("no message").lines().collect::<Vec<_>>().join(" ");
        let body = ErrorBody::new(ErrorSymbol::Internal, format!("internal error: {message}"))
            .hint("please report this bug with the command line that caused it");
        Printer::new(format, false).bundle(&context::error_bundle(None, body))
    });
    crate::process::kill_all();
    exit.into()
}

/// The requested output format, even if the rest of the command line is invalid.
fn wanted_format(env: &ProcessEnvironment) -> Format {
    let words: Vec<_> = env.args.iter().map(|arg| arg.to_string_lossy()).collect();
    let next = words.iter().skip(1).map(Some).chain([None]);
    let given = words.iter().zip(next).filter_map(|(word, next)| match word.strip_prefix("--format") {
        Some("") => next.map(AsRef::as_ref),
        Some(rest) => rest.strip_prefix('='),
        None => None,
    });
    given.filter_map(Format::parse).last().unwrap_or(match wants_json(env) {
        true => Format::Json,
        false => Format::Human,
    })
}

/// Whether `--json` or an option that implies it is given.
fn wants_json(env: &ProcessEnvironment) -> bool {
    let by_option =
        env.args.iter().any(|arg| arg == "--json" || arg.to_string_lossy().starts_with("--fields"));
    by_option
        || env.var("LANSER_FIELDS").is_some()
        || env.var("LANSER_JSON").is_some_and(|value| !matches!(value, "0" | "false" | "no" | "off"))
}

/// The value of `--fields` of a command line that is invalid otherwise. A selection that no bundle has is ignored: with it,
/// the error could not be printed.
fn requested_fields(env: &ProcessEnvironment) -> Vec<String> {
    let mut values: Vec<String> = Vec::new();
    let mut args = env.args.iter().map(|arg| arg.to_string_lossy());
    while let Some(arg) = args.next() {
        if arg == "--fields" {
            values.extend(args.next().map(std::borrow::Cow::into_owned));
        } else if let Some(value) = arg.strip_prefix("--fields=") {
            values.push(value.to_owned());
        }
    }
    if values.is_empty() {
        values.extend(env.var("LANSER_FIELDS").map(str::to_owned));
    }
    let fields: Vec<String> = values.iter().flat_map(|value| value.split(',')).map(str::to_owned).collect();
    if unknown_field(&fields).is_some() { Vec::new() } else { fields }
}

/// The error of an invalid command line, from the text that clap prints for it: a message, which may continue on indented
/// lines, then tips and the usage.
fn usage_error(text: &str) -> ErrorBody {
    let paragraphs: Vec<String> = text
        .split("\n\n")
        .map(|paragraph| paragraph.split_whitespace().collect::<Vec<_>>().join(" "))
        .filter(|paragraph| !paragraph.is_empty())
        .collect();
    let message = paragraphs.first().map_or("", |first| first.trim_start_matches("error: "));
    let tips = paragraphs.iter().filter_map(|paragraph| paragraph.strip_prefix("tip: "));
    let usage = paragraphs.iter().filter_map(|paragraph| paragraph.strip_prefix("Usage: "));
    let hints: Vec<String> = tips
        .map(str::to_owned)
        .chain(usage.map(|usage| format!("usage: {usage}")))
        .chain(["`lanser help` lists the commands and options".to_owned()])
        .collect();
    ErrorBody::new(ErrorSymbol::Usage, message).hint(hints.join("; "))
}

/// Replaces this process by a program that dies with its parent: `lanser __guard PARENT PROGRAM ARGS…`.
fn guard(env: &ProcessEnvironment) -> ExitCode {
    let mut args = env.args.iter().skip(2).cloned();
    let parent = args.next().and_then(|arg| arg.to_str().and_then(|arg| arg.parse().ok()));
    let error = match (parent, args.next()) {
        (Some(parent), Some(program)) => {
            exec_guarded(parent, program, args.collect::<Vec<OsString>>()).to_string()
        }
        _ => format!("{GUARD_COMMAND} is an internal command"),
    };
    Printer::new(Format::Human, false).complain(&format!("error: {error}"));
    ProgramExit::Failed(ErrorSymbol::Usage).into()
}

/// Runs a background session: `lanser __session …`, started by a client that passes its socket on.
fn session(env: &ProcessEnvironment) -> ExitCode {
    let ended = serve::session::run(&env.args[2..], env.exe.clone());
    crate::process::kill_all();
    match ended {
        Ok(()) => ProgramExit::Ok.into(),
        Err(error) => {
            Printer::new(Format::Human, false).complain(&format!("error: {error}"));
            ProgramExit::Failed(ErrorSymbol::Usage).into()
        }
    }
}

fn run(env: ProcessEnvironment) -> ProgramExit {
    let is_empty = |name: &str| env.vars.contains_key(name) && env.var(name).is_none();
    let command = without_variables(with_hint(Cli::command()), &is_empty);
    let parsed = command.try_get_matches_from(&env.args).map_err(|error| without_environment(error, &env));
    let parsed = parsed.and_then(|matches| {
        let cli = Cli::from_arg_matches(&matches)?;
        Ok((cli, from_environment(&matches)))
    });
    let (cli, from_env) = match parsed {
        Ok(parsed) => parsed,
        Err(error) if error.use_stderr() && wanted_format(&env).is_for_programs() => {
            let mut printer = Printer::new(wanted_format(&env), env.stderr_is_terminal);
            printer.fields = requested_fields(&env);
            let body = usage_error(&error.render().to_string());
            return printer.bundle(&context::error_bundle(None, body));
        }
        Err(error) => {
            let failed = error.use_stderr();
            let _ = match failed && error.kind() != ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
                true => writeln!(anstream::stderr(), "{}", with_hint_for(&error, &env)),
                false => error.print(),
            };
            return if failed { ProgramExit::Failed(ErrorSymbol::Usage) } else { ProgramExit::Ok };
        }
    };
    let json = cli.global.json || !cli.global.fields.is_empty();
    let format = cli.verb.format().and_then(Format::parse).unwrap_or(match json {
        true => Format::Json,
        false => Format::Human,
    });
    let mut printer = Printer::new(format, env.stderr_is_terminal);
    printer.fields.clone_from(&cli.global.fields);
    printer.limit = cli.global.limit;
    printer.verbose = cli.global.verbose;
    printer.typed = env.args.iter().skip(1).map(|arg| arg.to_string_lossy().into_owned()).collect();
    if cli.verb.answers_with_a_bundle()
        && let Some(message) = unknown_field(&printer.fields)
    {
        let body = ErrorBody::new(ErrorSymbol::Usage, message)
            .hint("`lanser schema bundle` prints the schema of bundles");
        // With the invalid selection of fields nothing could be printed, not even this error.
        printer.fields = vec!["status".to_owned(), "error".to_owned()];
        return printer.bundle(&context::error_bundle(None, body));
    }
    let mut context =
        CliContext { env, global: cli.global, from_env, printer, trace: None, input: None, progress: None };
    let exit = commands::run(cli.verb, &mut context);
    // A trace that could not be written must not look like success.
    let is_recorded = context.trace.is_none_or(|trace| !trace.has_failed());
    if is_recorded || matches!(exit, ProgramExit::Failed(_)) {
        exit
    } else {
        ProgramExit::Failed(ErrorSymbol::FsPermissions)
    }
}

/// The command with [`COMMON_OPTIONS_HINT`] after each `-h`, its subcommands' too. `--help` lists the options themselves.
fn with_hint(command: clap::Command) -> clap::Command {
    let after_long_help = command.get_after_long_help().cloned().unwrap_or_default();
    command.after_help(COMMON_OPTIONS_HINT).after_long_help(after_long_help).mut_subcommands(with_hint)
}

/// The command without some of the environment variables that it reads. An empty variable is one that is not set: so continuous
/// integration passes on what was not given.
fn without_variables(command: clap::Command, is_left_out: &dyn Fn(&str) -> bool) -> clap::Command {
    command
        .mut_args(|arg| match arg.get_env().and_then(|name| name.to_str()).is_some_and(is_left_out) {
            true => arg.env(clap::builder::Resettable::Reset),
            false => arg,
        })
        .mut_subcommands(|verb| without_variables(verb, is_left_out))
}

/// The same error, whose usage line does not show the options that environment variables set as if they were required.
fn without_environment(error: clap::Error, env: &ProcessEnvironment) -> clap::Error {
    let typed = without_variables(with_hint(Cli::command()), &|_| true).try_get_matches_from(&env.args);
    let mut error =
        typed.err().filter(|typed| error.use_stderr() && typed.kind() == error.kind()).unwrap_or(error);
    // "to pass '--x' as a value, use '-- --x'": a misspelled option is likelier.
    if error.kind() == ErrorKind::UnknownArgument {
        error.remove(ContextKind::Suggested);
    }
    error
}

/// The text of an error about the command line, with the hint that every error has.
fn with_hint_for(error: &clap::Error, env: &ProcessEnvironment) -> String {
    let text = error.render().ansi().to_string();
    let text = text.split("\nFor more information").next().unwrap_or_default();
    let verb = env.args.get(1).and_then(|verb| verb.to_str());
    let verb = verb.filter(|verb| Cli::command().find_subcommand(verb).is_some());
    let help = verb.map_or_else(|| "lanser help".to_owned(), |verb| format!("lanser help {verb}"));
    format!("{text}{} `{help}` describes the arguments", output::Style::Hint.paint("hint:"))
}

/// The error message for a path of `--fields` that no bundle has.
fn unknown_field(fields: &[String]) -> Option<String> {
    if fields.is_empty() {
        return None;
    }
    let schema = serde_json::from_str(crate::schema::export(crate::schema::SchemaKind::Bundle));
    output::find_unknown(&schema.expect("the library's own schema is JSON"), fields)
}

/// The names of the global options whose value came from the environment, for `doctor`.
fn from_environment(matches: &clap::ArgMatches) -> OptionsFromEnv {
    let mut names = OptionsFromEnv::new();
    let mut at = Some(matches);
    while let Some(matches) = at {
        for id in matches.ids() {
            if matches.value_source(id.as_str()) == Some(ValueSource::EnvVariable) {
                names.insert(id.as_str().replace('_', "-"));
            }
        }
        at = matches.subcommand().map(|(_, inner)| inner);
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn usage_errors_name_the_argument() {
        let error = |args: &[&str]| {
            let parsed = Cli::command().try_get_matches_from(args);
            usage_error(&parsed.unwrap_err().render().to_string())
        };
        let missing = error(&["lanser", "def"]);
        assert_eq!(missing.message, "the following required arguments were not provided: <SELECTOR>");
        assert!(missing.hint.unwrap().starts_with("usage: lanser def <SELECTOR>; "));
        let unknown = error(&["lanser", "symbols", "--quer", "x"]);
        assert_eq!(unknown.message, "unexpected argument '--quer' found");
        assert!(unknown.hint.unwrap().starts_with("a similar argument exists: '--query'; usage: "));
        let value = error(&["lanser", "diag", "--severity", "bad"]);
        assert!(
            value
                .message
                .starts_with("invalid value 'bad' for '--severity <LEVEL>' [possible values: hint, ")
        );
    }

    /// A verb of the command line is accepted as `cmd` of a batch line too.
    #[test]
    fn verbs_are_names_of_commands() {
        use crate::model::request::Command;
        let command_line = Cli::command();
        let verbs: std::collections::BTreeSet<&str> = command_line
            .get_subcommands()
            .flat_map(|verb| std::iter::once(verb.get_name()).chain(verb.get_visible_aliases()))
            .collect();
        for command in Command::ALL {
            for verb in command.verbs() {
                assert!(verbs.contains(verb), "{verb} is a verb");
            }
            let has_verb = verbs.contains(command.as_str()) || !command.verbs().is_empty();
            assert!(has_verb, "{} has a verb", command.as_str());
        }
        for verb in command_line.get_subcommands() {
            let names = || std::iter::once(verb.get_name()).chain(verb.get_visible_aliases());
            let found: std::collections::BTreeSet<_> = names().map(Command::parse).collect();
            assert_eq!(found.len(), 1, "all names of {} mean one command, or none", verb.get_name());
        }
    }
}
