//! The command line: the only place that reads arguments and the environment, prints, and decides how the program ends.
//!
//! [`commands`] holds one file for each verb; [`settings`] turns what was typed into what is needed; [`output`] prints.

mod commands;
mod config;
mod context;
mod environment;
mod exit;
mod global;
mod globs;
mod guards;
mod output;
mod rewards;
mod settings;
mod signals;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::parser::ValueSource;
use clap::{CommandFactory as _, FromArgMatches as _, Parser};

use crate::lsp::process::{GUARD_COMMAND, exec_guarded};
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::orchestrator::{self, session::SESSION_COMMAND};
use commands::Command;
use context::Context;
use environment::Environment;
use exit::Exit;
use global::GlobalArgs;
use output::{Format, Printer};
use settings::FromEnvironment;

/// Facts about code for agents and CI: definitions, references, types, diagnostics, each answer one deterministic bundle
#[derive(Debug, Parser)]
#[command(name = "lanser", version, about, max_term_width = 110, after_help = AFTER_HELP)]
pub(crate) struct Cli {
    #[command(flatten)]
    global: GlobalArgs,
    #[command(subcommand)]
    command: Command,
}

const AFTER_HELP: &str = "\
Examples:
  lanser def py://flask#Flask.route          where it is defined, through re-exports and bases
  lanser refs src/app.py:42:7                every use of the name at line 42, column 7
  lanser diag src --fail-on error            for CI
  lanser symbols --query Session --json      one JSON bundle on standard output

Exit codes: 0 answer, 1 --fail-on, 2 cannot read the request, 3 not found, 4 ambiguous, 10 the selector's version
cannot be had, 64 timeout, 65 server crashed, 66 no server, 70 edit does not fit, 71 not permitted, 72 not supported by
the server, 73 cancelled, 74 workspace changed, 75 column unit, 77 uncommitted changes, 78 unsafe edit, 101 defect;
`lanser schema commands` tells them as data.";

/// Runs the program.
#[must_use]
pub fn main() -> ExitCode {
    let env = match Environment::of_process() {
        Ok(env) => env,
        Err(error) => {
            let printer = Printer::new(Format::Human, false);
            printer.complain(&format!("error: {error}"));
            return Exit::Failed(ErrorSymbol::Usage).into();
        }
    };
    if env.args.get(1).is_some_and(|word| word == GUARD_COMMAND) {
        return guard(&env);
    }
    if env.args.get(1).is_some_and(|word| word == SESSION_COMMAND) {
        return session(&env);
    }
    let json = wants_json(&env);
    // A panic is a defect of lanser's own: told in one line, in the form that was asked for, with its documented code.
    std::panic::set_hook(Box::new(|_| {}));
    let exit = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(env))).unwrap_or_else(|panic| {
        let words =
            panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        let message = words.unwrap_or("no words").lines().collect::<Vec<_>>().join(" ");
        let body = ErrorBody::new(ErrorSymbol::Internal, format!("a defect of lanser's own: {message}"))
            .hint("please report it with the command line that led to it");
        Printer::new(if json { Format::Json } else { Format::Human }, false)
            .bundle(&context::error_bundle(None, body))
    });
    exit.into()
}

/// Whoever asked for JSON gets JSON also when the rest of the command line cannot be read.
fn wants_json(env: &Environment) -> bool {
    let asked =
        env.args.iter().any(|word| word == "--json" || word.to_string_lossy().starts_with("--fields"));
    asked
        || env.var("LANSER_FIELDS").is_some()
        || env.var("LANSER_JSON").is_some_and(|value| !matches!(value, "0" | "false" | "no" | "off"))
}

/// Becomes a language server that dies with its parent: `lanser __guard PARENT PROGRAM ARGS…`.
fn guard(env: &Environment) -> ExitCode {
    let mut words = env.args.iter().skip(2).cloned();
    let parent = words.next().and_then(|word| word.to_str().and_then(|word| word.parse().ok()));
    let error = match (parent, words.next()) {
        (Some(parent), Some(program)) => {
            exec_guarded(parent, program, words.collect::<Vec<OsString>>()).to_string()
        }
        _ => format!("{GUARD_COMMAND} is for lanser's own use"),
    };
    Printer::new(Format::Human, false).complain(&format!("error: {error}"));
    Exit::Failed(ErrorSymbol::Usage).into()
}

/// Becomes a background session: `lanser __session …`, started by a caller that hands its socket on.
fn session(env: &Environment) -> ExitCode {
    match orchestrator::session::run(&env.args[2..], env.exe.clone()) {
        Ok(()) => Exit::Ok.into(),
        Err(error) => {
            Printer::new(Format::Human, false).complain(&format!("error: {error}"));
            Exit::Failed(ErrorSymbol::Usage).into()
        }
    }
}

fn run(env: Environment) -> Exit {
    let parsed = Cli::command().try_get_matches_from(&env.args).and_then(|matches| {
        let cli = Cli::from_arg_matches(&matches)?;
        Ok((cli, from_environment(&matches)))
    });
    let (cli, from_env) = match parsed {
        Ok(parsed) => parsed,
        Err(error) if error.use_stderr() && wants_json(&env) => {
            let printer = Printer::new(Format::Json, env.stderr_is_terminal);
            let text = error.render().to_string();
            let message = text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
            let body = ErrorBody::new(ErrorSymbol::Usage, message)
                .hint("`lanser help` shows the commands and options");
            return printer.bundle(&context::error_bundle(None, body));
        }
        Err(error) => {
            let failed = error.use_stderr();
            let _ = error.print();
            return if failed { Exit::Failed(ErrorSymbol::Usage) } else { Exit::Ok };
        }
    };
    let json = cli.global.json || !cli.global.fields.is_empty();
    let mut printer = Printer::new(if json { Format::Json } else { Format::Human }, env.stderr_is_terminal);
    printer.fields.clone_from(&cli.global.fields);
    printer.limit = cli.global.limit;
    printer.verbose = cli.global.verbose;
    printer.typed = env.args.iter().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    if cli.command.answers_with_a_bundle()
        && let Some(message) = unknown_field(&printer.fields)
    {
        let body = ErrorBody::new(ErrorSymbol::Usage, message)
            .hint("`lanser schema bundle` prints what a bundle has");
        // What was asked to be left out cannot be told apart from what is not there.
        printer.fields.clear();
        return printer.bundle(&context::error_bundle(None, body));
    }
    let mut context = Context { env, global: cli.global, from_env, printer, trace: None };
    let exit = commands::run(cli.command, &mut context);
    // Whoever asked for a record relies on it.
    let is_recorded = context.trace.is_none_or(|trace| !trace.has_failed());
    if is_recorded || matches!(exit, Exit::Failed(_)) {
        exit
    } else {
        Exit::Failed(ErrorSymbol::FsPermissions)
    }
}

/// Why one of the parts that `--fields` names is none of a bundle.
fn unknown_field(fields: &[String]) -> Option<String> {
    if fields.is_empty() {
        return None;
    }
    let schema = serde_json::from_str(crate::schema::export(crate::schema::Kind::Bundle));
    output::unknown(&schema.expect("the library's own schema is JSON"), fields)
}

/// The names of the global options whose value came from the environment, for `doctor`.
fn from_environment(matches: &clap::ArgMatches) -> FromEnvironment {
    let mut names = FromEnvironment::new();
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
}
