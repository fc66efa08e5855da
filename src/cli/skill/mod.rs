//! The skill: a text that tells an agent when to use which command, in the format of Agent Skills (agentskills.io), and the hook
//! that reminds Claude Code of it.

pub(crate) mod claude_settings;
pub(crate) mod grep_hook;
mod shell_words;

use std::fmt::Write as _;

use crate::digest::Digest;
use crate::model::error::ErrorSymbol;
use crate::schema::{CommandDescription, CommandLine};

/// The text, with placeholders for what the command table has: `{about:VERB}`, `{code:SYMBOL}`, `{meaning:SYMBOL}`.
const TEMPLATE: &str = include_str!("template.md");

/// The path of the skill in a folder of skills.
pub(crate) const SKILL_FILE: &str = "lanser/SKILL.md";

/// How many hexadecimal digits of the checksum are written.
const CHECKSUM_DIGITS: usize = 16;

/// The words of a command line; `None` if it is more than one command.
pub(crate) fn text_words(line: &str) -> Option<Vec<String>> {
    shell_words::words(line).into_iter().map(shell_words::Word::into_text).collect()
}

/// The content of `SKILL.md`, made from a description of the command line.
pub(crate) fn render(line: &CommandLine) -> String {
    let mut text = String::with_capacity(TEMPLATE.len());
    let mut rest = TEMPLATE;
    while let Some((before, after)) = rest.split_once('{') {
        let (name, after) = after.split_once('}').unwrap_or((after, ""));
        text.push_str(before);
        text.push_str(&value(name, line));
        rest = after;
    }
    text.push_str(rest);
    sealed(&text, line.version.as_deref().unwrap_or_default())
}

/// The value of a placeholder.
fn value(name: &str, line: &CommandLine) -> String {
    let about = |verb: &str| command(&line.command, verb).and_then(|found| found.about.clone());
    let code = |symbol: &str| line.exit_codes.iter().find(|code| code.symbol == Some(symbol));
    let value = match name.split_once(':') {
        Some(("about", verb)) => about(verb).map(|text| lower(&text)),
        Some(("code", "ok")) => line.exit_codes.first().map(|code| code.code.to_string()),
        Some(("code", symbol)) => code(symbol).map(|found| found.code.to_string()),
        Some(("meaning", symbol)) => code(symbol).map(|found| lower(found.meaning.trim_end_matches('.'))),
        _ => None,
    };
    value.unwrap_or_else(|| unreachable!("the template has a placeholder without a value: {name}"))
}

fn command<'c>(command: &'c CommandDescription, verb: &str) -> Option<&'c CommandDescription> {
    command.commands.iter().find(|one| one.name == verb)
}

/// A sentence inside of another one.
fn lower(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_lowercase().chain(chars).collect()).unwrap_or_default()
}

/// The text with the version of lanser and the checksum of everything else in its metadata.
fn sealed(text: &str, version: &str) -> String {
    let (head, body) = text.split_once("\n---\n").unwrap_or((text, ""));
    let mut metadata = String::new();
    let _ = write!(metadata, "metadata:\n  generator: lanser {version}");
    let unsealed = format!("{head}\n{metadata}\n---\n{body}");
    format!("{head}\n{metadata}\n  checksum: {}\n---\n{body}", checksum(&unsealed))
}

fn checksum(text: &str) -> String {
    Digest::of(text.as_bytes()).to_hex()[..CHECKSUM_DIGITS].to_owned()
}

/// Whether a text is a skill that lanser wrote, of this or another version, and that was not changed since.
pub(crate) fn is_own(text: &str) -> bool {
    let Some((before, rest)) = text.split_once("\n  checksum: ") else { return false };
    let Some((written, after)) = rest.split_once('\n') else { return false };
    before.contains("\nname: lanser\n") && written == checksum(&format!("{before}\n{after}"))
}

/// The exit code of an existing file that lanser did not write.
pub(crate) const FOREIGN: ErrorSymbol = ErrorSymbol::ApplyConflict;

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::cli::Cli;
    use crate::schema::commands;

    fn rendered() -> String {
        render(&commands(&Cli::command()))
    }

    /// The command lines in the text: code that begins with `lanser `, without those that stand for another command.
    fn command_lines(text: &str) -> Vec<String> {
        let code = text.split('`').skip(1).step_by(2).map(str::to_owned);
        code.filter(|code| code.starts_with("lanser ") && !code.contains('…')).collect()
    }

    #[test]
    fn it_is_short_and_has_the_keys_of_a_skill() {
        let text = rendered();
        assert!(text.lines().count() <= 120, "{}", text.lines().count());
        let head = text.split("---\n").nth(1).unwrap();
        let keys: Vec<&str> = head.lines().filter(|line| !line.starts_with(' ')).collect();
        let keys: Vec<&str> = keys.iter().filter_map(|line| Some(line.split_once(':')?.0)).collect();
        assert_eq!(keys, ["name", "description", "license", "metadata"]);
        let description = head.lines().find_map(|line| line.strip_prefix("description: ")).unwrap();
        assert!(description.len() <= 1024 && !description.contains(": "), "{description}");
    }

    #[test]
    fn every_command_line_is_valid() {
        let text = rendered();
        let lines = command_lines(&text);
        assert!(lines.len() >= 18, "{lines:?}");
        for line in lines {
            let words = shell_words::words(&line).into_iter().filter_map(shell_words::Word::into_text);
            let parsed = Cli::command().try_get_matches_from(words);
            // `--help` is reported as an error, which is not one.
            assert!(parsed.as_ref().err().is_none_or(|error| !error.use_stderr()), "{line}: {parsed:?}");
        }
    }

    #[test]
    fn options_that_are_mentioned_exist() {
        let text = rendered();
        let mut command = Cli::command();
        command.build();
        let verbs = command.get_subcommands().chain([&command]);
        let known: Vec<&str> =
            verbs.flat_map(clap::Command::get_opts).filter_map(clap::Arg::get_long).collect();
        let flags = command.get_subcommands().flat_map(clap::Command::get_arguments);
        let known: Vec<&str> = known.into_iter().chain(flags.filter_map(clap::Arg::get_long)).collect();
        let code = text.split('`').skip(1).step_by(2).flat_map(str::split_whitespace);
        let options: Vec<&str> = code.filter_map(|word| word.strip_prefix("--")).collect();
        assert!(options.len() > 10, "{options:?}");
        for option in options {
            let name = option.split('=').next().unwrap();
            assert!(known.contains(&name) || matches!(name, "help" | "version"), "--{name}");
        }
    }

    #[test]
    fn exit_codes_are_those_of_the_table() {
        let (text, line) = (rendered(), commands(&Cli::command()));
        let rows: Vec<(u8, &str)> = text
            .lines()
            .filter_map(|row| {
                let mut cells = row.strip_prefix("| ")?.split(" | ");
                Some((cells.next()?.parse().ok()?, cells.next()?))
            })
            .collect();
        assert_eq!(rows.len(), 5, "{rows:?}");
        for (code, meaning) in rows {
            let known = line.exit_codes.iter().find(|known| known.code == code).unwrap();
            assert_eq!(format!("{meaning}."), lower(&known.meaning), "{code}");
        }
    }

    #[test]
    fn an_unchanged_skill_is_recognized() {
        let text = rendered();
        assert!(is_own(&text));
        assert!(is_own(&sealed(TEMPLATE, "9.9.9")), "of another version");
        assert!(!is_own(&text.replace("grep", "rg")));
        assert!(!is_own("---\nname: lanser\ndescription: mine\n---\n"));
        assert!(!is_own(""));
    }
}
