//! The arguments of a tool: their JSON Schema, made from the options of a verb, and the words of the command line for them.

use clap::builder::StyledStr;
use clap::{Arg, ArgAction, ArgGroup, Command};
use serde_json::{Map, Value, json};

use crate::model::error::{ErrorBody, ErrorSymbol};

/// The common options that are arguments of every tool that lists something.
const COMMON: [&str; 2] = ["limit", "cursor"];

/// Options that only affect what is printed, and the one that would let a model write outside of the workspace: that is for the
/// user to allow, in the environment or the configuration of the server.
const NOT_ARGUMENTS: [&str; 4] = ["format", "help", "dry-run", "workspace-jail"];

/// The positional argument whose value is a text where the command line has the name of a file.
pub(super) const EDIT: &str = "edit";

/// The words of a command line.
pub(super) struct ToolArguments {
    /// The verb, its options and its arguments.
    pub(super) words: Vec<String>,
    /// What stands for standard input.
    pub(super) input: Option<Vec<u8>>,
}

/// The description of a verb for a model.
pub(super) fn description(verb: &Command) -> String {
    let about = verb.get_long_about().or_else(|| verb.get_about()).map(plain);
    let details = verb.get_after_long_help().map(plain);
    let parts = [about, details].into_iter().flatten().filter(|part| !part.is_empty());
    with_names_of_arguments(verb, parts.collect::<Vec<_>>().join("\n\n"))
}

/// A text about a verb with the names of a tool's arguments in place of options.
fn with_names_of_arguments(verb: &Command, mut text: String) -> String {
    let mut options: Vec<(String, String)> = offered(verb)
        .filter_map(|arg| Some((format!("`--{}", arg.get_long()?), format!("`{}", name(arg)))))
        .collect();
    // `--allow` is the beginning of others.
    options.sort_by_key(|(option, _)| std::cmp::Reverse(option.len()));
    for (option, name) in options {
        text = text.replace(&option, &name);
    }
    text
}

/// The JSON Schema of a verb's arguments. Options that only `--help` shows are accepted, too.
pub(super) fn schema(verb: &Command) -> Map<String, Value> {
    let choices = choices(verb);
    let is_choice = |arg: &Arg| choices.iter().any(|choice| choice.flags.contains(&name(arg)));
    let shown = offered(verb).filter(|arg| !arg.is_hide_short_help_set() || is_common(arg));
    let mut properties = Map::new();
    let mut required = Vec::new();
    for choice in &choices {
        let help = verb.get_arguments().filter(|arg| choice.flags.contains(&name(arg)));
        let help =
            help.map(|arg| format!("{}: {}", name(arg), arg.get_help().map(plain).unwrap_or_default()));
        let help = help.collect::<Vec<_>>().join("; ");
        let property = json!({"type": "string", "enum": choice.flags, "description": help});
        properties.insert(choice.name.clone(), property);
    }
    for arg in shown.filter(|arg| !is_choice(arg)) {
        if arg.is_required_set() {
            required.push(Value::from(name(arg)));
        }
        properties.insert(name(arg), property(arg));
    }
    let mut schema = Map::new();
    schema.insert("type".to_owned(), "object".into());
    schema.insert("properties".to_owned(), properties.into());
    schema.insert("required".to_owned(), required.into());
    schema
}

/// Flags of which one can be given: one argument with their names as values. The flags themselves are accepted, too.
pub(super) struct Choice {
    pub(super) name: String,
    pub(super) flags: Vec<String>,
}

pub(super) fn choices(verb: &Command) -> Vec<Choice> {
    let flags = |group: &ArgGroup| -> Option<Vec<String>> {
        let args = group.get_args().map(|id| verb.get_arguments().find(|arg| arg.get_id() == id));
        let flags = args.map(|arg| arg.filter(|arg| !takes_values(arg)).map(name));
        flags.collect::<Option<Vec<String>>>().filter(|flags| flags.len() > 1)
    };
    // The groups of structs allow several arguments.
    let exclusive = verb.get_groups().filter(|group| !(*group).clone().is_multiple());
    let found =
        exclusive.filter_map(|group| Some(Choice { name: group.get_id().to_string(), flags: flags(group)? }));
    found.collect()
}

/// The arguments of a verb that a tool has.
pub(super) fn offered(verb: &Command) -> impl Iterator<Item = &Arg> {
    let is_about_lists = !matches!(verb.get_name(), "rename" | "apply" | "check" | "hover" | "locate");
    verb.get_arguments().filter(move |arg| match is_common(arg) {
        true => is_about_lists,
        false => {
            let is_own = !arg.is_global_set() && !arg.is_hide_set();
            is_own && !NOT_ARGUMENTS.contains(&arg.get_long().unwrap_or_default())
        }
    })
}

fn is_common(arg: &Arg) -> bool {
    arg.is_global_set() && arg.get_long().is_some_and(|long| COMMON.contains(&long))
}

/// The name of an argument: that of the option, with underscores.
pub(super) fn name(arg: &Arg) -> String {
    arg.get_long().unwrap_or(arg.get_id().as_str()).replace('-', "_")
}

fn property(arg: &Arg) -> Value {
    let accepted: Vec<String> = match takes_values(arg) {
        true => arg.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect(),
        false => Vec::new(),
    };
    let one = match takes_values(arg) {
        false => json!({"type": "boolean"}),
        true if is_number(arg) => json!({"type": "integer", "minimum": 1}),
        true if !accepted.is_empty() => json!({"type": "string", "enum": accepted}),
        true => json!({"type": "string"}),
    };
    let mut property = match is_list(arg) {
        true => json!({"type": "array", "items": one}),
        false => one,
    };
    if name(arg) == EDIT {
        property["description"] = "The edit itself: a unified diff, a WorkspaceEdit or a bundle".into();
    } else if let Some(help) = arg.get_help() {
        property["description"] = plain(help).into();
    }
    property
}

pub(super) fn takes_values(arg: &Arg) -> bool {
    arg.get_action().takes_values()
}

fn has_optional_value(arg: &Arg) -> bool {
    arg.get_num_args().is_some_and(|count| count.min_values() == 0)
}

pub(super) fn is_number(arg: &Arg) -> bool {
    arg.get_value_names().into_iter().flatten().any(|name| name == "N")
}

pub(super) fn is_list(arg: &Arg) -> bool {
    let is_repeated = matches!(arg.get_action(), ArgAction::Append);
    is_repeated && takes_values(arg)
}

fn plain(text: &StyledStr) -> String {
    text.to_string().trim().to_owned()
}

impl ToolArguments {
    /// Turns the arguments of a call into words.
    ///
    /// # Errors
    /// If there is no such argument, or a value has the wrong type.
    pub(super) fn read(verb: &Command, given: &Map<String, Value>) -> Result<Self, ErrorBody> {
        let mut words = vec![verb.get_name().to_owned()];
        let (mut positional, mut input) = (Vec::new(), None);
        let choices = choices(verb);
        for (key, value) in given {
            let chosen = choices.iter().find(|choice| choice.name == *key);
            if let (Some(choice), Some(flag)) = (chosen, value.as_str()) {
                if !choice.flags.iter().any(|known| known == flag) {
                    let message = format!("the argument {key:?} has a wrong value: {flag}");
                    let hint = format!("its values are {}", choice.flags.join(", "));
                    return Err(ErrorBody::new(ErrorSymbol::Usage, message).hint(hint));
                }
                words.push(format!("--{}", flag.replace('_', "-")));
                continue;
            }
            let Some(arg) = offered(verb).find(|arg| name(arg) == key.replace('-', "_")) else {
                let known: Vec<String> = offered(verb).map(name).collect();
                let message = format!("{} has no argument {key:?}", verb.get_name());
                return Err(ErrorBody::new(ErrorSymbol::Usage, message)
                    .hint(format!("its arguments are {}", known.join(", "))));
            };
            let values = texts(arg, value).ok_or_else(|| {
                let message = format!("the argument {key:?} has a wrong value: {value}");
                ErrorBody::new(ErrorSymbol::Usage, message).hint(format!("its schema is {}", property(arg)))
            })?;
            match arg.get_long() {
                Some(long) => words.extend(options(long, arg, &values)),
                None if name(arg) == EDIT => {
                    input = Some(values.concat().into_bytes());
                    positional.push((arg.get_index(), "-".to_owned()));
                }
                None => positional.extend(values.into_iter().map(|value| (arg.get_index(), value))),
            }
        }
        positional.sort_by_key(|(index, _)| *index);
        if positional.iter().any(|(_, value)| value.starts_with('-') && value != "-") {
            // What follows is never an option.
            words.push("--".to_owned());
        }
        words.extend(positional.into_iter().map(|(_, value)| value));
        Ok(Self { words, input })
    }
}

/// The words of an option.
fn options(long: &str, arg: &Arg, values: &[String]) -> Vec<String> {
    let word = |value: &String| match value.as_str() {
        "true" if !takes_values(arg) || has_optional_value(arg) => Some(format!("--{long}")),
        "false" if !takes_values(arg) || has_optional_value(arg) => None,
        // An error of the command line.
        value => Some(format!("--{long}={value}")),
    };
    values.iter().filter_map(word).collect()
}

/// A value as texts; `None` if it is of another type than the argument. An object is a selector in JSON. Numbers and flags in quotes are
/// taken: what they mean is certain, and models write them.
fn texts(arg: &Arg, value: &Value) -> Option<Vec<String>> {
    let is_text = takes_values(arg) && !is_number(arg);
    match value {
        Value::Null => Some(Vec::new()),
        Value::Number(_) if is_text => None,
        Value::Bool(_) if takes_values(arg) && !has_optional_value(arg) => None,
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => Some(vec![value.to_string()]),
        Value::String(text) => Some(vec![text.clone()]),
        Value::Array(_) if !is_list(arg) => None,
        Value::Array(items) => {
            items.iter().map(|item| texts(arg, item)).collect::<Option<Vec<_>>>().map(|all| all.concat())
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::cli::Cli;

    fn verb(name: &str) -> Command {
        let mut command = Cli::command();
        command.build();
        command.find_subcommand(name).unwrap().clone()
    }

    fn words(name: &str, given: Value) -> Result<Vec<String>, String> {
        let given = given.as_object().unwrap().clone();
        ToolArguments::read(&verb(name), &given).map(|read| read.words).map_err(|error| error.message)
    }

    #[test]
    fn arguments_become_words() {
        let all = json!({"selector": "a.b", "new_name": "c", "include": ["x.py:1:1", "unresolved"], "family": true,
            "apply": false, "allow_dirty": "elsewhere"});
        let expected = [
            "rename",
            "--allow-dirty=elsewhere",
            "--family",
            "--include=unresolved",
            "--include=x.py:1:1",
            "a.b",
            "c",
        ];
        let mut found = words("rename", all).unwrap();
        found[1..5].sort();
        assert_eq!(found, expected);
        assert_eq!(words("rename", json!({"allow_dirty": true})).unwrap(), ["rename", "--allow-dirty"]);
        assert_eq!(
            words("calls", json!({"incoming": true, "depth": 2, "selector": "--limit"})).unwrap(),
            ["calls", "--depth=2", "--incoming", "--", "--limit"]
        );
        assert_eq!(words("refs", json!({"limit": 3, "cursor": null})).unwrap(), ["refs", "--limit=3"]);
        let types = json!({"selector": "C", "direction": "supertypes"});
        assert_eq!(words("types", types).unwrap(), ["types", "--supertypes", "C"]);
        let refused = words("types", json!({"selector": "C", "direction": "up"})).unwrap_err();
        assert!(refused.contains("wrong value"), "{refused}");
        assert_eq!(
            words("refs", json!({"selector": "f", "limit": "2"})).unwrap(),
            ["refs", "--limit=2", "f"]
        );
        for given in [
            json!({"selector": 5}),
            json!({"selector": true}),
            json!({"limit": true}),
            json!({"selector": ["a", "b"]}),
            json!({"limit": [1, 2]}),
        ] {
            let refused = words("refs", given).unwrap_err();
            assert!(refused.contains("wrong value"), "{refused}");
        }
    }

    #[test]
    fn the_text_of_an_edit_stands_for_standard_input() {
        let given = json!({"edit": "--- a\n+++ b\n"});
        let read = ToolArguments::read(&verb("check"), given.as_object().unwrap()).unwrap();
        assert_eq!(read.words, ["check", "-"]);
        assert_eq!(read.input.as_deref(), Some("--- a\n+++ b\n".as_bytes()));
    }

    #[test]
    fn options_of_the_program_are_no_arguments() {
        for (name, given) in [
            ("refs", json!({"server_command": "/bin/sh"})),
            ("refs", json!({"workspace": "/"})),
            ("refs", json!({"trust_workspace": true})),
            ("diag", json!({"format": "sarif"})),
            ("rename", json!({"help": true})),
            ("apply", json!({"workspace_jail": false})),
        ] {
            let refused = words(name, given).unwrap_err();
            assert!(refused.contains("has no argument"), "{refused}");
        }
    }

    #[test]
    fn schemas_name_the_arguments_that_help_shows() {
        let names =
            |name: &str| schema(&verb(name))["properties"].as_object().unwrap().keys().cloned().collect();
        let refs: Vec<String> = names("refs");
        assert_eq!(refs, ["cursor", "exclude_declaration", "limit", "selector"]);
        let rename: Vec<String> = names("rename");
        assert!(rename.contains(&"family".to_owned()) && !rename.contains(&"allow_incomplete".to_owned()));
        assert_eq!(schema(&verb("rename"))["required"], json!(["selector", "new_name"]));
        let property = &schema(&verb("diag"))["properties"]["severity"];
        assert_eq!(property["enum"], json!(["hint", "information", "warning", "error"]));
        assert_eq!(schema(&verb("diag"))["properties"]["targets"]["type"], "array");
        let types = &schema(&verb("types"))["properties"];
        assert_eq!(types["direction"]["enum"], json!(["supertypes", "subtypes"]));
        assert_eq!(types.get("subtypes"), None);
        let calls: Vec<String> = names("calls");
        assert_eq!(calls, ["cursor", "depth", "direction", "limit", "selector"]);
    }
}
