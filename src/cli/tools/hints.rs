//! Hints name commands of the command line. For a model without a shell they name the tool and its arguments.

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, CommandFactory as _};
use serde_json::{Map, Value};

use super::TOOLS;
use super::arguments::{EDIT, choices, is_list, is_number, name, offered, takes_values};
use crate::cli::Cli;
use crate::cli::skill::text_words;

/// What a command begins with.
const PROGRAM: &str = "lanser ";

/// What an option begins with.
const DASHES: &str = "--";

/// What stands for the help of a verb; the name of the tool follows.
const DESCRIPTION: &str = "the description of ";

/// A text in which commands are calls of tools: `refs {"selector": "C.f", "limit": 3}`. A command that is no tool stays.
pub(super) fn as_tool_calls(text: &str) -> String {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(PROGRAM) {
        let (before, command) = rest.split_at(at);
        let is_word = before.chars().next_back().is_some_and(|c| c.is_alphanumeric() || "_-/.".contains(c));
        // A command in a sentence is quoted; any other goes to the end of its line.
        let end = if before.ends_with('`') { command.find('`') } else { command.find('\n') };
        let end = end.unwrap_or(command.len());
        match tool_call(&command[..end]).filter(|_| !is_word) {
            // Not a call, and so not quoted.
            Some(description) if description.starts_with(DESCRIPTION) && before.ends_with('`') => {
                parts.push(format!("{}{description}", before.trim_end_matches('`')));
                rest = command[end..].trim_start_matches('`');
            }
            Some(call) => {
                parts.push(before.to_owned());
                parts.push(call);
                rest = &command[end..];
            }
            None => {
                parts.push(format!("{before}{PROGRAM}"));
                rest = &command[PROGRAM.len()..];
            }
        }
    }
    parts.push(rest.to_owned());
    parts.concat()
}

/// A hint in which commands are calls of tools, without the parts about commands that are no tools, if others remain. Options that
/// are no arguments of tools are those of the server.
pub(super) fn for_tools(hint: &str) -> String {
    let told = as_arguments(&as_tool_calls(hint));
    let parts: Vec<&str> = told.split("; ").filter(|part| !part.contains(&format!("`{PROGRAM}"))).collect();
    if parts.is_empty() {
        return told;
    }
    let of_server = |part: &str| match options(part).any(|option| !is_argument(option)) {
        true => format!("{part} where `lanser mcp` is started"),
        false => part.to_owned(),
    };
    parts.into_iter().map(of_server).collect::<Vec<_>>().join("; ")
}

/// A text in which the options that are arguments of tools have their names.
fn as_arguments(text: &str) -> String {
    let (mut told, mut from) = (String::new(), 0);
    for (at, option) in option_spans(text).filter(|(_, option)| is_argument(option)) {
        told += &text[from..at];
        told += &option.replace('-', "_");
        from = at + DASHES.len() + option.len();
    }
    told + &text[from..]
}

/// The options in a text, without their dashes.
fn options(text: &str) -> impl Iterator<Item = &str> {
    option_spans(text).map(|(_, option)| option)
}

/// The same, each with the offset of its dashes.
fn option_spans(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let end = |rest: &str| rest.find(|c: char| !c.is_ascii_lowercase() && c != '-').unwrap_or(rest.len());
    let starts = text.match_indices(DASHES).filter(|(at, _)| *at == 0 || text[..*at].ends_with([' ', '`']));
    starts.map(move |(at, dashes)| {
        let rest = &text[at + dashes.len()..];
        (at, &rest[..end(rest)])
    })
}

/// Whether a tool has an option as an argument.
fn is_argument(option: &str) -> bool {
    let mut command = Cli::command();
    command.build();
    TOOLS
        .iter()
        .filter_map(|(tool, ..)| command.find_subcommand(tool))
        .any(|verb| offered(verb).any(|arg| arg.get_long() == Some(option)))
}

/// The call of a tool that does the same as a command line.
fn tool_call(line: &str) -> Option<String> {
    let mut words = text_words(line)?;
    // The tool `rename` moves modules, too.
    if let Some(verb) = words.get_mut(1).filter(|verb| *verb == "move") {
        "rename".clone_into(verb);
    }
    let is_help = words.len() == 3 && words[1] == "help";
    let tool = words.get(if is_help { 2 } else { 1 })?;
    if !TOOLS.iter().any(|(name, ..)| name == tool) {
        return None;
    }
    if is_help {
        return Some(format!("{DESCRIPTION}{tool}"));
    }
    if words.len() == 2 {
        return Some(tool.clone());
    }
    let mut command = Cli::command();
    command.build();
    let parsed = command.clone().try_get_matches_from(&words).ok()?;
    let (_, given) = parsed.subcommand()?;
    let verb = command.find_subcommand(tool)?;
    let choices = choices(verb);
    let mut arguments = Map::new();
    for arg in offered(verb) {
        let id = arg.get_id().as_str();
        if given.value_source(id) != Some(ValueSource::CommandLine) {
            continue;
        }
        if name(arg) == EDIT {
            arguments.insert(EDIT.to_owned(), "(the same edit)".into());
            continue;
        }
        let chosen = choices.iter().find(|choice| choice.flags.contains(&name(arg)));
        match chosen {
            Some(choice) => drop(arguments.insert(choice.name.clone(), name(arg).into())),
            None => drop(arguments.insert(name(arg), value(arg, given, id))),
        }
    }
    Some(format!("{tool} {}", Value::Object(arguments)))
}

fn value(arg: &Arg, given: &ArgMatches, id: &str) -> Value {
    if !takes_values(arg) {
        return true.into();
    }
    let raw = given.get_raw(id).into_iter().flatten().map(|raw| raw.to_string_lossy().into_owned());
    let one = |text: String| match text.parse::<u64>() {
        Ok(number) if is_number(arg) => number.into(),
        _ => Value::from(text),
    };
    let mut all: Vec<Value> = raw.map(one).collect();
    match is_list(arg) {
        true => all.into(),
        // A flag with an optional value.
        false => all.pop().unwrap_or(Value::Bool(true)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_calls_of_tools() {
        for (text, expected) in [
            (
                "2 more: lanser refs --limit=1 Base.run --server ty --cursor 1-caf",
                r#"2 more: refs {"cursor":"1-caf","limit":1,"selector":"Base.run"}"#,
            ),
            (
                "to rename all of them: lanser rename 'py://m#C.f' g --family --include a.py:1:2 --apply",
                r#"to rename all of them: rename {"apply":true,"family":true,"include":["a.py:1:2"],"new_name":"g","selector":"py://m#C.f"}"#,
            ),
            (
                "`lanser types C --supertypes` shows",
                r#"`types {"direction":"supertypes","selector":"C"}` shows"#,
            ),
            (
                "add it: lanser apply EDIT --allow-dirty",
                r#"add it: apply {"allow_dirty":"all","edit":"(the same edit)"}"#,
            ),
            ("`lanser refs` lists the uses", "`refs` lists the uses"),
            ("`lanser impl` searches; lanser help impl", "`lanser impl` searches; lanser help impl"),
            ("`lanser help locate` has the forms", "the description of locate has the forms"),
            ("to undo: lanser undo 8b6b\n", "to undo: undo {\"transaction\":\"8b6b\"}\n"),
        ] {
            assert_eq!(as_tool_calls(text), expected);
        }
        assert_eq!(for_tools("name a class; `lanser impl` lists the overrides"), "name a class");
        assert_eq!(for_tools("`lanser doctor` shows the server"), "`lanser doctor` shows the server");
        // What is no argument is an option of the server.
        assert_eq!(for_tools("repeat it without --cursor; or wait"), "repeat it without cursor; or wait");
        assert_eq!(for_tools("with --include or --exclude PATH"), "with include or exclude PATH");
        assert_eq!(
            for_tools("pass --new-name, not --new"),
            "pass --new-name, not new where `lanser mcp` is started"
        );
        assert_eq!(
            for_tools("increase the limit with --timeout SECONDS"),
            "increase the limit with --timeout SECONDS where `lanser mcp` is started"
        );
    }
}
