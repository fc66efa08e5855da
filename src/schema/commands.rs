//! A description of the command line as data: every command, option and exit code, for tool definitions.
//!
//! The command line is an argument, because it belongs to a higher layer. Hidden items are omitted, and so is what clap
//! adds to every command (`--help`, `--version`, the command `help`).

use std::collections::BTreeMap;
use std::ffi::OsStr;

use clap::builder::StyledStr;
use clap::{Arg, ArgAction, Command};
use schemars::{JsonSchema as _, SchemaGenerator};
use serde::Serialize;
use serde_json::Value;

use crate::model::error::{ErrorSymbol, Retryable};

/// A command line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CommandLine {
    /// The program's version; `null` if it has none.
    pub version: Option<String>,
    /// The program itself, with its subcommands.
    pub command: CommandDescription,
    /// Every exit code.
    pub exit_codes: Vec<ExitCode>,
}

/// A command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CommandDescription {
    /// The words that invoke it, as in `lanser schema export`.
    pub call: String,
    /// The last word of `call`.
    pub name: String,
    /// Other names.
    pub aliases: Vec<String>,
    /// A one-line summary; `null` if there is none.
    pub about: Option<String>,
    /// The long description; absent if there is only the summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<String>,
    /// The positional arguments, in order.
    pub arguments: Vec<ArgumentDescription>,
    /// The options. A global option is listed only at the command that defines it, and is valid for all of its
    /// subcommands.
    pub options: Vec<ArgumentDescription>,
    /// The subcommands.
    pub commands: Vec<Self>,
}

/// An argument or option.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ArgumentDescription {
    /// An identifier, unique in its command.
    pub name: String,
    /// The letter after `-`; `null` if there is none.
    pub short: Option<char>,
    /// The name after `--`; `null` if there is none.
    pub long: Option<String>,
    /// Other names after `--`.
    pub aliases: Vec<String>,
    /// The environment variable that also sets it; `null` if there is none.
    pub env: Option<String>,
    /// The placeholders of its values in the help; empty for a flag.
    pub value_names: Vec<String>,
    /// The minimum number of values of one use.
    pub min_values: usize,
    /// The maximum number of values of one use; `null` if there is no limit.
    pub max_values: Option<usize>,
    /// The values that it accepts; empty if it accepts others.
    pub possible_values: Vec<PossibleValue>,
    /// The default values.
    pub default: Vec<String>,
    /// The help text; `null` if there is none.
    pub help: Option<String>,
    /// Whether it is required.
    pub required: bool,
    /// Whether it is also valid for subcommands.
    pub global: bool,
    /// Whether it can be used more than once.
    pub repeatable: bool,
}

/// A value that an argument accepts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PossibleValue {
    /// The value.
    pub value: String,
    /// Its help text; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

/// An exit code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExitCode {
    /// The code.
    pub code: u8,
    /// The symbol of the error; `null` on success.
    pub symbol: Option<&'static str>,
    /// Whether a retry can succeed; `null` on success.
    pub retryable: Option<Retryable>,
    /// What the code means.
    pub meaning: String,
}

/// Describes a command line.
#[must_use]
pub fn commands(command: &Command) -> CommandLine {
    let mut command = command.clone();
    // Computes the number of values, and adds global options to the subcommands.
    command.build();
    CommandLine {
        version: command.get_version().map(str::to_owned),
        command: describe(&command, "", &[]),
        exit_codes: exit_codes(),
    }
}

fn describe(command: &Command, outer: &str, inherited: &[&str]) -> CommandDescription {
    let call = format!("{outer}{}", command.get_name());
    let shown = |arg: &&Arg| {
        let automatic = matches!(
            arg.get_action(),
            ArgAction::Help | ArgAction::HelpShort | ArgAction::HelpLong | ArgAction::Version
        );
        !automatic && !arg.is_hide_set() && !inherited.contains(&arg.get_id().as_str())
    };
    let global = command.get_arguments().filter(|arg| arg.is_global_set()).map(|arg| arg.get_id().as_str());
    let global: Vec<&str> = inherited.iter().copied().chain(global).collect();
    let about = command.get_about().map(plain);
    CommandDescription {
        name: command.get_name().to_owned(),
        aliases: command.get_visible_aliases().map(str::to_owned).collect(),
        details: command.get_long_about().map(plain).filter(|details| Some(details) != about.as_ref()),
        about,
        arguments: command.get_positionals().filter(shown).map(argument).collect(),
        options: command.get_opts().chain(switches(command)).filter(shown).map(argument).collect(),
        commands: command
            .get_subcommands()
            .filter(|inner| !inner.is_hide_set() && inner.get_name() != "help")
            .map(|inner| describe(inner, &format!("{call} "), &global))
            .collect(),
        call,
    }
}

/// Options without a value, which clap does not return as options.
fn switches(command: &Command) -> impl Iterator<Item = &Arg> {
    command.get_arguments().filter(|arg| !arg.is_positional() && !arg.get_action().takes_values())
}

fn argument(arg: &Arg) -> ArgumentDescription {
    let takes_values = arg.get_action().takes_values();
    let text = |text: &OsStr| text.to_string_lossy().into_owned();
    let (min_values, max_values) = match arg.get_num_args() {
        Some(range) if takes_values => {
            (range.min_values(), Some(range.max_values()).filter(|&most| most != usize::MAX))
        }
        _ => (0, Some(0)),
    };
    ArgumentDescription {
        name: arg.get_id().to_string(),
        short: arg.get_short(),
        long: arg.get_long().map(str::to_owned),
        aliases: arg.get_visible_aliases().unwrap_or_default().into_iter().map(str::to_owned).collect(),
        env: arg.get_env().map(text),
        value_names: match arg.get_value_names() {
            Some(names) if takes_values => names.iter().map(ToString::to_string).collect(),
            _ => Vec::new(),
        },
        min_values,
        max_values,
        // clap gives a flag the possible values `true` and `false` and the default `false`, which cannot be passed.
        possible_values: arg
            .get_possible_values()
            .into_iter()
            .filter(|value| takes_values && !value.is_hide_set())
            .map(|value| PossibleValue {
                value: value.get_name().to_owned(),
                help: value.get_help().map(plain),
            })
            .collect(),
        default: arg
            .get_default_values()
            .iter()
            .filter(|_| takes_values)
            .map(|value| text(value.as_os_str()))
            .collect(),
        help: arg.get_long_help().or_else(|| arg.get_help()).map(plain),
        required: arg.is_required_set(),
        global: arg.is_global_set(),
        repeatable: matches!(arg.get_action(), ArgAction::Append | ArgAction::Count)
            || arg.is_positional() && max_values != Some(1),
    }
}

fn plain(text: &StyledStr) -> String {
    text.to_string().trim().to_owned()
}

fn exit_codes() -> Vec<ExitCode> {
    let without_error =
        |code, meaning: &str| ExitCode { code, symbol: None, retryable: None, meaning: meaning.to_owned() };
    let meanings = meanings();
    let errors = ErrorSymbol::ALL.into_iter().map(|symbol| ExitCode {
        code: symbol.code(),
        symbol: Some(symbol.as_str()),
        retryable: Some(symbol.retryable()),
        meaning: meanings.get(symbol.as_str()).cloned().unwrap_or_default(),
    });
    let mut codes = vec![
        without_error(0, "Success."),
        without_error(
            1,
            "Success, and the verdict of `--fail-on` is `fail`, a validated file is not valid, or a change of a schema is breaking.",
        ),
    ];
    codes.extend(errors);
    codes
}

/// The meaning of every error symbol: its doc comment, which its schema contains.
fn meanings() -> BTreeMap<String, String> {
    let schema = ErrorSymbol::json_schema(&mut SchemaGenerator::default());
    let variants = schema.get("oneOf").and_then(Value::as_array);
    variants
        .into_iter()
        .flatten()
        .filter_map(|variant| {
            let text = |key: &str| variant.get(key).and_then(Value::as_str);
            Some((text("const")?.to_owned(), text("description")?.replace('\n', " ")))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use clap::builder::PossibleValue as Possible;
    use serde_json::json;

    use super::*;

    fn sample() -> Command {
        Command::new("tool")
            .version("1.2")
            .arg(
                Arg::new("verbose")
                    .short('v')
                    .action(ArgAction::Count)
                    .global(true)
                    .help("Says\u{1b}[1m more"),
            )
            .subcommand(
                Command::new("definition")
                    .visible_alias("def")
                    .alias("secret")
                    .about("Finds.")
                    .long_about("Finds.\n\nReally.")
                    .arg(Arg::new("selector").required(true).value_name("SELECTOR").help("What."))
                    .arg(Arg::new("paths").num_args(0..).value_name("PATH"))
                    .arg(
                        Arg::new("unit")
                            .long("unit")
                            .visible_alias("index")
                            .env("TOOL_UNIT")
                            .value_name("UNIT")
                            .value_parser([
                                Possible::new("a").help("the first"),
                                Possible::new("b"),
                                Possible::new("c").hide(true),
                            ])
                            .default_value("a"),
                    )
                    .arg(Arg::new("dirty").long("dirty").num_args(0..=1).value_name("WHERE"))
                    .arg(Arg::new("json").long("json").action(ArgAction::SetTrue))
                    .arg(Arg::new("allow").long("allow").action(ArgAction::Append))
                    .arg(Arg::new("debug").long("debug").hide(true)),
            )
            .subcommand(Command::new("internal").hide(true))
    }

    #[test]
    fn a_command_line_as_data() {
        let described = serde_json::to_value(commands(&sample())).unwrap();
        assert_eq!(described["version"], "1.2");
        let root = &described["command"];
        assert_eq!(root["call"], "tool");
        assert_eq!(root["commands"].as_array().map(Vec::len), Some(1), "neither the hidden one nor `help`");
        assert_eq!(
            root["options"],
            json!([{
                "name": "verbose", "short": "v", "long": null, "aliases": [], "env": null, "value_names": [],
                "min_values": 0, "max_values": 0, "possible_values": [], "default": [], "help": "Says more",
                "required": false, "global": true, "repeatable": true,
            }])
        );

        let command = &root["commands"][0];
        assert_eq!(command["call"], "tool definition");
        assert_eq!(command["aliases"], json!(["def"]));
        assert_eq!((&command["about"], &command["details"]), (&json!("Finds."), &json!("Finds.\n\nReally.")));
        let names = |list: &Value| -> Vec<String> {
            let items = list.as_array().unwrap().iter();
            items.map(|item| item["name"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(names(&command["arguments"]), ["selector", "paths"]);
        assert_eq!(
            names(&command["options"]),
            ["unit", "dirty", "allow", "json"],
            "neither the hidden nor the global one"
        );

        let [selector, paths] = [0, 1].map(|index| &command["arguments"][index]);
        assert_eq!(
            (&selector["required"], &selector["value_names"], &selector["repeatable"]),
            (&json!(true), &json!(["SELECTOR"]), &json!(false))
        );
        assert_eq!(
            (&paths["min_values"], &paths["max_values"], &paths["repeatable"]),
            (&json!(0), &json!(null), &json!(true))
        );

        let [unit, dirty, allow, json] = [0, 1, 2, 3].map(|index| &command["options"][index]);
        assert_eq!(
            *unit,
            json!({
                "name": "unit", "short": null, "long": "unit", "aliases": ["index"], "env": "TOOL_UNIT",
                "value_names": ["UNIT"], "min_values": 1, "max_values": 1,
                "possible_values": [{"value": "a", "help": "the first"}, {"value": "b"}], "default": ["a"],
                "help": null, "required": false, "global": false, "repeatable": false,
            })
        );
        assert_eq!((&dirty["min_values"], &dirty["max_values"]), (&json!(0), &json!(1)));
        assert_eq!(allow["repeatable"], true);
        assert_eq!(
            (&json["max_values"], &json["possible_values"], &json["default"]),
            (&json!(0), &json!([]), &json!([]))
        );
    }

    #[test]
    fn every_exit_code_has_a_meaning() {
        let codes = exit_codes();
        assert_eq!(codes.len(), 2 + ErrorSymbol::ALL.len());
        assert!(codes.is_sorted_by_key(|exit| exit.code));
        for exit in &codes {
            assert!(!exit.meaning.is_empty(), "{exit:?}");
            assert_eq!(exit.symbol.is_some(), exit.code > 1);
        }
        let timeout = codes.iter().find(|exit| exit.code == 64).unwrap();
        assert_eq!(
            serde_json::to_value(timeout).unwrap(),
            json!({"code": 64, "symbol": "E/LS_TIMEOUT", "retryable": "yes", "meaning": "The server did not answer in time."})
        );
    }
}
