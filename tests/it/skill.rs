//! `lanser skill`: files are written only where they belong, nothing of the user's is lost, and the hook is harmless.

use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::{Project, TestEnv};

const SKILL: &str = ".agents/skills/lanser/SKILL.md";
const CLAUDE_SKILL: &str = ".claude/skills/lanser/SKILL.md";
const SETTINGS: &str = ".claude/settings.json";

fn project() -> TestEnv {
    TestEnv::with(&Project::parse("//- /m.py\ndef get_adapter(): ...\n//- /pyproject.toml\n"))
}

fn read(env: &TestEnv, path: &str) -> String {
    std::fs::read_to_string(env.file(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn hook(env: &TestEnv, input: &Value) -> String {
    let output = env.lanser_with_input(["skill", "hook"], input.to_string());
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""), "{output}");
    output.stdout.clone()
}

/// Undoes the latest transaction that is not undone, by its id.
fn undo_latest(env: &TestEnv) {
    let log = env.lanser(["undo", "--list", "--json"]).answer();
    let all = log["facts"]["transactions"].as_array().unwrap();
    let latest =
        all.iter().find(|one| one["state"] == "applied" && one["summary"] == "skill install").unwrap();
    env.lanser(["undo", latest["id"].as_str().unwrap()]).text();
}

#[test]
fn install_writes_what_print_prints_and_undo_removes_it() {
    let env = project();
    let printed = env.lanser(["skill", "print"]);
    let installed = env.lanser(["skill", "install"]);
    assert!(installed.text().starts_with(&format!("A {SKILL}\nwrote 1 file in ")), "{installed}");
    assert_eq!(read(&env, SKILL), printed.text());
    assert!(!env.file(".claude").exists() && !env.file(".github").exists());
    assert_eq!(env.lanser(["skill", "install"]).text(), format!("= {SKILL}\nup to date\n"));
    let more = env.lanser(["skill", "install", "--agents", "--claude", "--copilot", "--json"]);
    let more: Value = serde_json::from_str(more.text()).unwrap();
    let files: Vec<_> =
        more["files"].as_array().unwrap().iter().map(|file| (&file["path"], &file["change"])).collect();
    let expected = [
        (SKILL, "unchanged"),
        (CLAUDE_SKILL, "created"),
        (".github/skills/lanser/SKILL.md", "created"),
        (SETTINGS, "created"),
    ];
    assert_eq!(files.len(), expected.len(), "{more}");
    for ((path, change), expected) in files.iter().zip(expected) {
        assert_eq!((path.as_str(), change.as_str()), (Some(expected.0), Some(expected.1)));
    }
    assert_eq!(read(&env, CLAUDE_SKILL), printed.text());
    assert_eq!(read(&env, SETTINGS), env.lanser(["skill", "print", "--hook"]).text());
    // Each install is one transaction. Without its id, it is not taken for an edit of the code.
    let nothing = env.lanser(["undo", "--json"]).error(3, "E/NOT_FOUND");
    assert!(nothing["message"].as_str().unwrap().contains("no transaction"), "{nothing}");
    undo_latest(&env);
    assert!(!env.file(".claude").exists() && env.file(SKILL).exists());
    undo_latest(&env);
    assert!(!env.file(".agents").exists());
}

#[test]
fn the_home_folder_is_written_only_with_user() {
    let env = project();
    let output = env.lanser(["skill", "install", "--user", "--claude", "--copilot"]);
    assert_eq!(output.code, Some(0), "{output}");
    let home = env.path("home");
    for path in [CLAUDE_SKILL, SETTINGS, ".copilot/skills/lanser/SKILL.md"] {
        assert!(home.join(path).is_file(), "{path}");
    }
    assert!(!env.file(".claude").exists() && !home.join(".agents").exists());
    // The command that it prints undoes it, from anywhere.
    let undo = output.stdout.lines().last().unwrap().strip_prefix("to undo: lanser ").unwrap().to_owned();
    env.lanser(undo.split(' ')).text();
    assert!(!home.join(".claude").exists());
}

#[test]
fn what_lanser_did_not_write_is_kept() {
    let env = project();
    for foreign in ["mine\n".to_owned(), {
        env.lanser(["skill", "install"]).text();
        read(&env, SKILL).replace("# lanser", "# lanser, and what we do here")
    }] {
        env.write(SKILL, &foreign);
        let refused = env.lanser(["skill", "install", "--agents", "--claude", "--json"]);
        refused.error(70, "E/APPLY_CONFLICT");
        assert_eq!(read(&env, SKILL), foreign);
        assert!(!env.file(".claude").exists(), "nothing is written at all");
    }
    env.lanser(["skill", "install", "--force"]).text();
    assert_eq!(read(&env, SKILL), env.lanser(["skill", "print"]).text());
    // An unchanged skill of another version is replaced without being asked.
    let settings = "{\n    \"model\": \"x\",\n    \"hooks\": {\"Stop\": []}\n}\n";
    env.write(SETTINGS, settings);
    env.lanser(["skill", "install", "--claude"]).text();
    let merged = read(&env, SETTINGS);
    assert!(merged.starts_with("{\n    \"model\": \"x\",\n    \"hooks\": {\"Stop\": [],\n"), "{merged}");
    undo_latest(&env);
    assert_eq!(read(&env, SETTINGS), settings);
    for broken in ["{\"hooks\": []}", "// {}", "\u{0}"] {
        env.write(SETTINGS, broken);
        let refused = env.lanser(["skill", "install", "--claude", "--force"]);
        let error = refused.failure(70);
        assert!(error.contains("lanser skill print --hook"), "{refused}");
        assert_eq!(read(&env, SETTINGS), broken);
    }
}

/// Every path of the outside folder must stay as it is.
#[test]
fn links_of_a_checkout_lead_nowhere() {
    for (link, target) in [
        (".claude", ""),
        (".claude/skills", ""),
        (".claude/skills/lanser", ""),
        (CLAUDE_SKILL, "file"),
        (CLAUDE_SKILL, "missing"),
        (SETTINGS, "settings.json"),
        (SETTINGS, "missing"),
    ] {
        for force in [&[][..], &["--force"]] {
            let env = project();
            let outside = env.path("outside");
            std::fs::create_dir(&outside).unwrap();
            for name in ["file", "settings.json"] {
                std::fs::write(outside.join(name), "{}").unwrap();
            }
            let at = env.file(link);
            std::fs::create_dir_all(at.parent().unwrap()).unwrap();
            symlink(outside.join(target), &at).unwrap();
            let refused = env.lanser(["skill", "install", "--claude", "--json"].iter().chain(force));
            refused.error(71, "E/JAIL");
            let mut names: Vec<_> =
                std::fs::read_dir(&outside).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            assert_eq!(names, ["file", "settings.json"], "{link} -> {target}");
            for name in names {
                assert_eq!(std::fs::read(outside.join(name)).unwrap(), b"{}", "{link} -> {target}");
            }
        }
    }
}

#[test]
fn links_into_git_are_refused_and_links_in_the_workspace_are_followed() {
    let env = project();
    std::fs::create_dir_all(env.file(".git/hooks")).unwrap();
    symlink(".git/hooks", env.file(".claude")).unwrap();
    env.lanser(["skill", "install", "--claude", "--json"]).error(71, "E/JAIL");
    assert_eq!(std::fs::read_dir(env.file(".git/hooks")).unwrap().count(), 0);
    // As some projects share their skills between agents.
    std::fs::remove_file(env.file(".claude")).unwrap();
    std::fs::create_dir_all(env.file(".agents/skills")).unwrap();
    std::fs::create_dir(env.file(".claude")).unwrap();
    symlink("../.agents/skills", env.file(".claude/skills")).unwrap();
    env.lanser(["skill", "install", "--claude"]).text();
    assert_eq!(read(&env, SKILL), read(&env, CLAUDE_SKILL));
}

#[test]
fn the_hook_answers_searches_for_symbols_and_nothing_else() {
    let env = project();
    let call = |tool: &str, input: Value| json!({"tool_name": tool, "cwd": env.cwd, "tool_input": input});
    let output = hook(&env, &call("Grep", json!({"pattern": "get_adapter"})));
    let output: Value = serde_json::from_str(&output).unwrap();
    let advice = output["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
    // The commands in the advice work as they are written.
    let commands: Vec<&str> =
        advice.split('`').skip(1).step_by(2).filter_map(|code| code.strip_prefix("lanser ")).collect();
    assert_eq!(commands.len(), 3, "{advice}");
    let located = commands[0].replace("refs", "locate");
    env.lanser(located.split(' ')).text();
    assert_eq!(hook(&env, &call("Bash", json!({"command": "ls"}))), "");
    assert_eq!(hook(&env, &call("Grep", json!({"pattern": "some words"}))), "");
}

/// It runs before every search and every command of an agent.
#[test]
fn the_hook_runs_nothing_and_never_fails() {
    let mut env = project();
    // A configuration that no other command accepts, and no program to run.
    env.write("lanser.toml", "python = \"evil\"\nnonsense = [");
    env.set("PATH", "");
    let input = json!({"tool_name": "Grep", "cwd": env.cwd, "tool_input": {"pattern": "get_adapter"}});
    assert!(hook(&env, &input).contains("lanser refs get_adapter"));
    for broken in
        [json!(null), json!([]), json!({}), json!({"tool_name": "Grep", "tool_input": 1}), json!("\u{0}")]
    {
        assert_eq!(hook(&env, &broken), "");
    }
    let cut = env.lanser_with_input(["skill", "hook"], vec![b'['; 3 << 20]);
    assert_eq!((cut.code, cut.stdout.as_str()), (Some(0), ""), "{cut}");
    let made = |path: &Path| std::fs::read_dir(path).unwrap().count();
    assert_eq!((made(&env.path("tmp")), made(&env.path("run"))), (0, 0), "no session, no server");
}
