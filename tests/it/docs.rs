//! README.md and docs/: the commands in them are run, and their output is compared.
//!
//! A fenced block marked `console` holds commands (`$ COMMAND`, continued on lines that begin with `> `), each followed by
//! its output. The commands of a page run one after the other in one copy of `fixtures/inventory`, which is a git repository
//! with one commit. `/bin/sh` runs them, standard error goes to standard output, and `$?` is the exit code of the command
//! before. One session answers all of them.
//!
//! - A line `...` of the expected output stands for any number of lines.
//! - Empty lines at the end of an output do not count.
//! - [`portable`] replaces folders of the machine, [`normalized`] ids, durations, sizes and process ids.
//!
//! `LANSER_UPDATE=1 cargo test --test it docs::` writes the outputs into the pages instead of comparing them.

use std::ops::Range;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::edits::Repository;
use crate::support::{LANSER, Project, TestEnv, install, machine};

/// The most lines of a page.
const PAGE_LIMIT: usize = 150;

/// What follows a number that differs between two runs.
const UNITS: &[&str] = &[" s", " ms", " per second", " MiB", " bytes", " frames", " events"];

/// What stands before one.
const NAMES: &[&str] = &["pid ", "\"pid\":", "session ", "\"elapsed_ms\":"];

/// One test for each page.
macro_rules! pages {
    ($($test:ident: $page:literal,)*) => {
        const PAGES: &[&str] = &[$($page),*];
        $(#[test]
        fn $test() {
            check($page);
        })*
    };
}

pages! {
    readme: "README.md",
    agents: "docs/agents.md",
    analyzers: "docs/analyzers.md",
    architecture: "docs/architecture.md",
    batch: "docs/batch.md",
    benchmarks_relocation: "docs/benchmarks-relocation.md",
    benchmarks_rewards: "docs/benchmarks-rewards.md",
    benchmarks: "docs/benchmarks.md",
    bundle: "docs/bundle.md",
    ci: "docs/ci.md",
    completeness: "docs/completeness.md",
    configuration: "docs/configuration.md",
    conformance: "docs/conformance.md",
    contributing: "docs/contributing.md",
    dependencies: "docs/dependencies.md",
    edits: "docs/edits.md",
    exit_codes: "docs/exit-codes.md",
    glossary: "docs/glossary.md",
    installing: "docs/install.md",
    integrations: "docs/integrations.md",
    python_package: "docs/python.md",
    renames: "docs/renames.md",
    rewards: "docs/rewards.md",
    selectors: "docs/selectors.md",
    servers: "docs/servers.md",
    sessions: "docs/sessions.md",
    traces: "docs/traces.md",
    training: "docs/training.md",
}

/// A command of a page.
#[derive(Debug)]
struct Step {
    command: String,
    /// The lines of its output in the page, counted from 0.
    output: Range<usize>,
}

/// Runs the commands of a page and compares their output, or writes it into the page.
#[track_caller]
fn check(page: &str) {
    let text = std::fs::read_to_string(root().join(page)).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let steps = steps(&lines);
    if steps.is_empty() {
        return;
    }
    let env = repository().env;
    let mut last = 0;
    let mut outputs = Vec::new();
    for step in &steps {
        let (output, code) = run(&env, &step.command, last);
        outputs.push(output);
        last = code;
    }
    let differs = |(step, output): &(&Step, &Vec<String>)| !matches(&lines[step.output.clone()], output);
    let Some((step, output)) = steps.iter().zip(&outputs).find(differs) else { return };
    if machine("LANSER_UPDATE").is_some_and(|value| value == "1") {
        std::fs::write(root().join(page), updated(&lines, &steps, &outputs)).unwrap();
        return;
    }
    panic!(
        "{page}:{}: the output of `{}` differs; LANSER_UPDATE=1 writes it into the page\n-- page --\n{}\n-- now --\n{}",
        step.output.start,
        step.command,
        lines[step.output.clone()].join("\n"),
        output.join("\n"),
    );
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

/// The project that the pages are about, with a session.
fn repository() -> Repository {
    install("pyright");
    let mut env = TestEnv::named("inventory").with_sessions();
    Project::fixture("../inventory").write_to(&env.cwd);
    let folders = std::iter::once(Path::new(LANSER).parent().unwrap().to_owned());
    env.set("PATH", std::env::join_paths(folders.chain(crate::support::search_path())).unwrap());
    // For pages that commit.
    for name in ["GIT_AUTHOR", "GIT_COMMITTER"] {
        env.set(&format!("{name}_NAME"), "me").set(&format!("{name}_EMAIL"), "me@example.org");
    }
    Repository::of(env)
}

/// The output of a command and its exit code.
fn run(env: &TestEnv, command: &str, last: i32) -> (Vec<String>, i32) {
    let script = format!("exec 2>&1\n(exit {last})\n{command}");
    let output = env.run("/bin/sh", ["-c", script.as_str()]);
    let mut lines: Vec<String> = output.stdout.lines().map(|line| portable(env, line)).collect();
    lines.truncate(lines.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1));
    (lines, output.code.unwrap_or(128))
}

/// The commands of a page.
fn steps(lines: &[&str]) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut fence = None;
    for (number, &line) in lines.iter().enumerate() {
        let Some(end) = fence else {
            // More backticks than usual, where the output holds a fenced block.
            fence = line.strip_suffix("console").filter(|fence| fence.starts_with("```"));
            if fence.is_some() {
                assert!(lines[number + 1].starts_with("$ "), "line {}: a block begins with `$ `", number + 2);
            }
            continue;
        };
        if line == end {
            fence = None;
        } else if let Some(command) = line.strip_prefix("$ ") {
            steps.push(Step { command: command.to_owned(), output: number + 1..number + 1 });
        } else {
            let step = steps.last_mut().unwrap();
            match line.strip_prefix("> ") {
                Some(more) if step.output.is_empty() => {
                    step.command.push('\n');
                    step.command.push_str(more);
                    step.output = number + 1..number + 1;
                }
                _ if line.is_empty() => {}
                _ => step.output.end = number + 1,
            }
        }
    }
    assert!(fence.is_none(), "a block without an end");
    steps
}

/// Whether an output is what a page says.
fn matches(page: &[&str], output: &[String]) -> bool {
    match page.split_first() {
        None => output.is_empty(),
        Some((&"...", rest)) => (0..=output.len()).any(|skipped| matches(rest, &output[skipped..])),
        Some((line, rest)) => {
            let same = |now: &String| normalized(now) == normalized(line);
            output.first().is_some_and(same) && matches(rest, &output[1..])
        }
    }
}

/// The page with the outputs of one run.
fn updated(lines: &[&str], steps: &[Step], outputs: &[Vec<String>]) -> String {
    let mut page: Vec<String> = Vec::new();
    let mut done = 0;
    for (step, output) in steps.iter().zip(outputs) {
        page.extend(lines[done..step.output.start].iter().map(|&line| line.to_owned()));
        page.extend(shortened(&lines[step.output.clone()], output));
        done = step.output.end;
    }
    page.extend(lines[done..].iter().map(|&line| line.to_owned()));
    page.join("\n") + "\n"
}

/// An output, cut as the page cuts it: with as many lines before the first `...` and after the last.
fn shortened(page: &[&str], output: &[String]) -> Vec<String> {
    let is_gap = |line: &&str| *line == "...";
    let (Some(first), Some(last)) = (page.iter().position(is_gap), page.iter().rposition(is_gap)) else {
        return output.to_vec();
    };
    if matches(page, output) {
        return page.iter().map(|&line| line.to_owned()).collect();
    }
    let after = page.len() - last - 1;
    if first + after >= output.len() {
        return output.to_vec();
    }
    let gap = ["...".to_owned()];
    [&output[..first], &gap, &output[output.len() - after..]].concat()
}

/// A line without the folders of the test: the user is `me`, who has the project in the home folder.
fn portable(env: &TestEnv, line: &str) -> String {
    let folders = [
        (env.cwd.clone(), "/home/me/inventory"),
        (env.path("memory"), "/home/me/.cache/lanser"),
        (TestEnv::cache(), "/home/me/.cache/lanser"),
        (env.path("home"), "/home/me"),
        (env.path("run"), "/run/user/1000"),
        (env.path("tmp"), "/tmp"),
        (Path::new(LANSER).parent().unwrap().to_owned(), "/home/me/.cargo/bin"),
    ];
    let line =
        folders.iter().fold(line.to_owned(), |line, (from, to)| line.replace(from.to_str().unwrap(), to));
    line.trim_end().to_owned()
}

/// A line in which `#` stands for what differs between two runs: ids and digests (12, 40 or 64 hexadecimal digits), numbers
/// that are durations, rates or sizes, and process ids.
fn normalized(line: &str) -> String {
    let mut shown = String::new();
    let mut rest = line;
    while let Some(start) = rest.find(|c: char| c.is_ascii_alphanumeric()) {
        shown.push_str(&rest[..start]);
        let word = &rest[start..];
        let end = word.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(word.len());
        let (word, after) = word.split_at(end);
        let is_id = matches!(word.len(), 12 | 40 | 64) && word.bytes().all(|byte| byte.is_ascii_hexdigit());
        let is_number = word.bytes().all(|byte| byte.is_ascii_digit());
        let ends_a_word = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric());
        let measured = UNITS.iter().any(|unit| after.strip_prefix(unit).is_some_and(ends_a_word));
        let named = NAMES.iter().any(|name| shown.ends_with(name));
        shown.push_str(if is_id || is_number && (measured || named) { "#" } else { word });
        rest = after;
    }
    shown + rest
}

#[test]
fn a_difference_is_noticed() {
    let page = "text\n```console\n$ one\na 12 s\n...\nz\n\n$ two\n> more\n```\n";
    let lines: Vec<&str> = page.lines().collect();
    let steps = steps(&lines);
    assert_eq!(steps.iter().map(|step| step.command.as_str()).collect::<Vec<_>>(), ["one", "two\nmore"]);
    let first = &lines[steps[0].output.clone()];
    let owned = |lines: &[&str]| lines.iter().map(|&line| line.to_owned()).collect::<Vec<String>>();
    assert!(matches(first, &owned(&["a 7 s", "b", "c", "z"])));
    assert!(matches(first, &owned(&["a 7 s", "z"])));
    assert!(!matches(first, &owned(&["a 7 files", "z"])));
    assert!(!matches(first, &owned(&["a 7 s", "b"])));
    assert!(!matches(&lines[steps[1].output.clone()], &owned(&["an output"])));
    let outputs = [owned(&["A", "b", "c", "Z"]), owned(&["new"])];
    let expected = "text\n```console\n$ one\nA\n...\nZ\n\n$ two\n> more\nnew\n```\n";
    assert_eq!(updated(&lines, &steps, &outputs), expected);
}

#[test]
fn every_page_is_checked() {
    let mut found = vec!["README.md".to_owned()];
    for entry in std::fs::read_dir(root().join("docs")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        found.extend(name.ends_with(".md").then(|| format!("docs/{name}")));
    }
    found.sort();
    assert_eq!(found, PAGES);
    for page in PAGES {
        let text = std::fs::read_to_string(root().join(page)).unwrap();
        assert!(text.lines().count() <= PAGE_LIMIT, "{page} has more than {PAGE_LIMIT} lines");
        for link in links(&text) {
            let target = root().join(page).parent().unwrap().join(link);
            assert!(target.exists(), "{page}: {link} does not exist");
        }
    }
    // `.ci/run` runs this line.
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    assert_eq!(readme.lines().filter(|line| line.starts_with("    cargo run --quiet ")).count(), 1);
}

#[test]
fn every_exit_code_is_documented() {
    let described = TestEnv::new().lanser(["schema", "commands"]);
    let described: Value = serde_json::from_str(described.text()).unwrap();
    let page = std::fs::read_to_string(root().join("docs/exit-codes.md")).unwrap();
    for entry in described["exit_codes"].as_array().unwrap() {
        let begin = format!("| {} |", entry["code"]);
        let row = page.lines().find(|line| line.starts_with(&begin));
        let row = row.unwrap_or_else(|| panic!("docs/exit-codes.md has no row {begin}"));
        assert!(
            entry["symbol"].as_str().is_none_or(|symbol| row.contains(symbol)),
            "{entry} is not in {row}"
        );
    }
}

/// The files that a page links to.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(link, _)| link);
    targets
        .filter(|link| !link.contains("://") && !link.starts_with('#'))
        .map(|link| link.split_once('#').map_or(link, |(file, _)| file))
}
