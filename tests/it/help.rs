//! `-h` fits one screen, `--help` and `lanser help` have everything, and no line is too long.

use serde_json::Value;

use crate::support::TestEnv;

const COMMON_OPTIONS_HINT: &str = "common options: `lanser help options`";

/// The arguments that call each command, such as `["server", "install"]`.
fn commands(env: &TestEnv) -> Vec<Vec<String>> {
    fn collect(command: &Value, calls: &mut Vec<Vec<String>>) {
        for inner in command["commands"].as_array().unwrap() {
            let call = inner["call"].as_str().unwrap();
            calls.push(call.split(' ').skip(1).map(str::to_owned).collect());
            collect(inner, calls);
        }
    }
    let data: Value = serde_json::from_str(env.lanser(["schema", "commands"]).text()).unwrap();
    let mut calls = Vec::new();
    collect(&data["command"], &mut calls);
    assert!(calls.len() > 40, "{calls:?}");
    calls
}

fn longest_line(text: &str) -> usize {
    text.lines().map(|line| line.chars().count()).max().unwrap_or_default()
}

#[test]
fn short_help_fits_one_screen() {
    let mut env = TestEnv::new();
    let commands = commands(&env);
    for columns in ["80", "100"] {
        env.set("COLUMNS", columns);
        for command in &commands {
            let help = env.lanser(command.iter().map(String::as_str).chain(["-h"]));
            let text = help.text();
            assert!(text.lines().count() <= 25, "{columns} columns: {help}");
            assert_eq!(text.lines().last(), Some(COMMON_OPTIONS_HINT), "{help}");
            assert!(longest_line(text) <= columns.parse().unwrap(), "{columns} columns: {help}");
            // No option has its description on a line of its own.
            let is_bare =
                |line: &str| line.trim_start().starts_with("--") && !line.trim_start().contains("  ");
            assert!(!text.lines().any(is_bare), "{columns} columns: {help}");
        }
        let help = env.lanser(["-h"]);
        assert!(help.text().lines().count() <= 40, "{columns} columns: {help}");
        assert_eq!(help.text().lines().last(), Some(COMMON_OPTIONS_HINT), "{help}");
    }
}

#[test]
fn long_help_has_everything_in_lines_that_fit() {
    let mut env = TestEnv::new();
    let mut commands = commands(&env);
    commands.push(Vec::new());
    for columns in [None, Some(80)] {
        if let Some(columns) = columns {
            env.set("COLUMNS", columns.to_string());
        }
        for command in &commands {
            let help = env.lanser(command.iter().map(String::as_str).chain(["--help"]));
            let text = help.text();
            assert!(longest_line(text) <= columns.unwrap_or(100), "{columns:?}: {help}");
            for option in ["--workspace <DIR>", "--session-idle <SECONDS>", "--prev <BUNDLE>"] {
                assert!(text.contains(option), "{option}: {help}");
            }
        }
    }
}

#[test]
fn common_options_are_a_topic_of_help() {
    let env = TestEnv::new();
    let help = env.lanser(["help", "options"]);
    assert!(help.text().starts_with("Common options:\n  -C, --workspace <DIR>\n"), "{help}");
    assert!(help.text().contains("\nReward options:\n"), "{help}");
    assert!(longest_line(help.text()) <= 100, "{help}");
    assert_eq!(env.lanser(["options"]).text(), help.text());
    assert!(!env.lanser(["-h"]).text().contains("\n  options"));
}
