//! Renames in real code: the names that most files of a folder mention are renamed, one after the other, in a copy that is a git
//! repository.
//!
//! `cargo run --release --features tools --example refactors -- [--names N] [--up-to FILES] [--server-command SCRIPT] [--tests COMMAND] FOLDER…`
//!
//! Each rename is planned, written and undone. For a rename that lanser makes: git must accept the preview, the files afterwards must
//! be those of the preview byte for byte, `python -m compileall` must pass, the folder must have no new diagnostic, and undo must
//! restore the exact files. With `--tests`, the shell command must print the same before and after, in the copy: let it print the
//! outcome of each of the project's tests. One session answers everything. For a rename that lanser refuses, the failed checks are
//! printed, and nothing may have changed. Exit code 1 otherwise.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the report is what this program is for")]

mod targets;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output};
use std::time::Instant;

use lanser::internal::path::AbsPath;
use serde_json::Value;
use targets::{Target, targets};

const USAGE: &str =
    "usage: refactors [--names N] [--up-to FILES] [--server-command SCRIPT] [--tests COMMAND] FOLDER…";

/// The copy of a folder.
struct Copy {
    root: PathBuf,
    /// A folder outside of the copy: caches, patches.
    beside: PathBuf,
    lanser: PathBuf,
    script: Option<PathBuf>,
    /// The command that runs the project's tests.
    tests: Option<String>,
    _folder: tempfile::TempDir,
}

impl Drop for Copy {
    fn drop(&mut self) {
        self.run(&self.lanser, &["session", "stop", "--all"]);
    }
}

/// The state of the copy before any rename.
struct Before {
    /// The number of diagnostics by file, rule and message.
    diagnostics: BTreeMap<(String, String, String), usize>,
    tests: Option<String>,
}

/// The outcome of one rename.
enum Outcome {
    Made {
        files: usize,
        lines: usize,
    },
    Refused(Vec<String>),
    /// The server has no answer, or the selector is uncertain.
    Unanswered(String),
    Wrong(String),
}

/// The command-line options.
#[derive(Default)]
struct Options {
    /// How many names of each folder are renamed.
    names: usize,
    /// The largest number of files that may mention a name.
    up_to: usize,
    script: Option<PathBuf>,
    tests: Option<String>,
    folders: Vec<PathBuf>,
}

impl Options {
    fn read() -> Self {
        let mut options = Self { names: 30, up_to: usize::MAX, ..Self::default() };
        let mut words = std::env::args_os().skip(1);
        while let Some(word) = words.next() {
            let mut number = |default| words.next().and_then(|n| n.to_str()?.parse().ok()).unwrap_or(default);
            match word.to_str() {
                Some("--names") => options.names = number(options.names),
                Some("--up-to") => options.up_to = number(options.up_to),
                Some("--tests") => {
                    options.tests = words.next().and_then(|command| command.into_string().ok());
                }
                Some("--server-command") => options.script = words.next().map(PathBuf::from),
                _ => options.folders.push(PathBuf::from(word)),
            }
        }
        options
    }
}

fn main() -> ExitCode {
    let options = Options::read();
    if options.folders.is_empty() {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    }
    let wrong: usize = options.folders.iter().map(|folder| refactor(folder, &options)).sum();
    if wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Renames in a copy of one folder; returns the number of failed renames.
fn refactor(folder: &Path, options: &Options) -> usize {
    let copy = Copy::of(folder, options);
    let root = AbsPath::new(&copy.root).expect("a temporary folder has an absolute path in UTF-8");
    let before = Before { diagnostics: copy.diagnostics(), tests: copy.tested() };
    if let Some(tests) = &before.tests {
        println!("{} lines of tests\n", tests.lines().count());
    }
    println!("## {}\n", folder.display());
    println!("| name | kind | mentioned in | outcome | seconds |\n|---|---|---|---|---|");
    let (mut wrong, mut made, mut refused) = (0, 0, 0);
    for target in targets(&root, options.names, options.up_to) {
        let began = Instant::now();
        let outcome = copy.rename(&target, &before);
        let told = match outcome {
            Outcome::Made { files, lines } => {
                made += 1;
                format!("{lines} lines in {files} files")
            }
            Outcome::Refused(checks) => {
                refused += 1;
                format!("refused: {}", checks.join(", "))
            }
            Outcome::Unanswered(why) => {
                refused += 1;
                format!("no answer: {why}")
            }
            Outcome::Wrong(what) => {
                wrong += 1;
                format!("**WRONG**: {what}")
            }
        };
        let Target { name, kind, files, .. } = &target;
        println!("| {name} | {kind} | {files} files | {told} | {:.1} |", began.elapsed().as_secs_f64());
        if copy.git(&["status", "--porcelain"]).is_none_or(|status| !status.is_empty()) {
            println!("\nthe copy is not clean any more: {}", copy.root.display());
            return wrong + 1;
        }
    }
    println!("\n{made} made, {refused} refused, {wrong} wrong\n");
    wrong
}

impl Copy {
    fn of(folder: &Path, options: &Options) -> Self {
        let temp = tempfile::tempdir().expect("there is room for a copy");
        let (root, beside) = (temp.path().join("copy"), temp.path().join("beside"));
        std::fs::create_dir(&beside).expect("there is room for a folder");
        let copied = Command::new("cp").arg("-r").args([folder, root.as_path()]).status();
        assert!(copied.is_ok_and(|status| status.success()), "{} cannot be copied", folder.display());
        let own = std::env::current_exe().expect("this program has a path");
        let lanser = own.ancestors().nth(2).expect("examples are built beside lanser").join("lanser");
        let root = root.canonicalize().expect("it was just made");
        let beside = beside.canonicalize().expect("it was just made");
        let copy = Self {
            root,
            beside,
            lanser,
            script: options.script.clone(),
            tests: options.tests.clone(),
            _folder: temp,
        };
        let _ = std::fs::remove_dir_all(copy.root.join(".git"));
        for args in [&["init", "-q"][..], &["add", "-A"], &["commit", "-q", "-m", "all"]] {
            assert!(copy.git(args).is_some(), "git {args:?}");
        }
        copy
    }

    fn run(&self, program: &Path, args: &[&str]) -> Output {
        Command::new(program)
            .args(args)
            .current_dir(&self.root)
            .env("LANSER_SESSION", "on")
            .env("XDG_RUNTIME_DIR", &self.beside)
            .env("LANSER_CACHE_DIR", self.beside.join("cache"))
            .env("PYTHONPYCACHEPREFIX", self.beside.join("pycache"))
            .output()
            .unwrap_or_else(|error| panic!("{}: {error}", program.display()))
    }

    /// The output of git, if it succeeds.
    fn git(&self, args: &[&str]) -> Option<String> {
        let fixed = ["-c", "user.name=x", "-c", "user.email=x@x", "-c", "core.autocrlf=false"];
        let output = self.run(Path::new("git"), &[&fixed[..], args].concat());
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn lanser(&self, args: &[&str]) -> Value {
        let mut all = args.to_vec();
        all.push("--json");
        if let Some(script) = &self.script {
            all.extend(["--server-command", script.to_str().unwrap_or_default()]);
        }
        let output = self.run(&self.lanser, &all);
        serde_json::from_slice(&output.stdout).unwrap_or_default()
    }

    /// The number of diagnostics of the folder by file, rule and message.
    fn diagnostics(&self) -> BTreeMap<(String, String, String), usize> {
        let bundle = self.lanser(&["diag"]);
        let mut found = BTreeMap::new();
        for item in bundle["facts"]["diagnostics"]["items"].as_array().into_iter().flatten() {
            let text = |name: &str| item[name].as_str().unwrap_or_default().to_owned();
            *found.entry((text("uri"), text("rule"), text("message"))).or_default() += 1;
        }
        found
    }

    /// The output of the project's tests.
    fn tested(&self) -> Option<String> {
        let output = self.run(Path::new("sh"), &["-c", self.tests.as_ref()?]);
        Some(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn rename(&self, target: &Target, before: &Before) -> Outcome {
        let new = format!("{}_renamed", target.name);
        let args = ["rename", target.selector.as_str(), new.as_str()];
        let plan = self.lanser(&args);
        if self.git(&["status", "--porcelain"]).is_none_or(|status| !status.is_empty()) {
            return Outcome::Wrong("planning left traces".to_owned());
        }
        if let Some(error) = plan["error"]["message"].as_str() {
            return Outcome::Unanswered(error.to_owned());
        }
        let failed: Vec<String> = plan["edits"]["safety"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|check| check["passed"] == false)
            .map(|check| {
                format!(
                    "{} ({})",
                    check["name"].as_str().unwrap_or_default(),
                    check["detail"].as_str().unwrap_or_default()
                )
            })
            .collect();
        let diff = plan["edits"]["diff"].as_str().unwrap_or_default();
        let patch = self.beside.join("the.patch");
        std::fs::write(&patch, diff).expect("there is room for a patch");
        let patch = patch.to_str().unwrap_or_default();
        if !diff.is_empty() && self.git(&["apply", "--check", patch]).is_none() {
            return Outcome::Wrong("git refuses the preview".to_owned());
        }
        let made = self.lanser(&[&args[..], &["--apply"]].concat());
        if !failed.is_empty() {
            let stopped = made["error"]["code"] == 78;
            return if stopped {
                Outcome::Refused(failed)
            } else {
                Outcome::Wrong("a failed check stopped nothing".to_owned())
            };
        }
        let outcome = self.judged(&made, patch, target, &new, before);
        let undone = self.lanser(&["undo"]);
        if undone["error"] != Value::Null || self.git(&["diff", "--quiet", "HEAD"]).is_none() {
            return Outcome::Wrong(format!("undo: {}", undone["error"]["message"]));
        }
        outcome
    }

    /// Checks the written files.
    fn judged(&self, made: &Value, patch: &str, target: &Target, new: &str, before: &Before) -> Outcome {
        if let Some(error) = made["error"]["message"].as_str() {
            return Outcome::Wrong(format!("planned and not written: {error}"));
        }
        // The preview applied to the index must equal the worktree, byte for byte.
        let same =
            self.git(&["apply", "--cached", patch]).is_some() && self.git(&["diff", "--quiet"]).is_some();
        self.git(&["reset", "-q"]);
        if !same {
            return Outcome::Wrong("what was written is not what the preview says".to_owned());
        }
        let compiled = self.run(Path::new("python3"), &["-m", "compileall", "-q", "."]);
        if !compiled.status.success() {
            return Outcome::Wrong(format!("compileall: {}", String::from_utf8_lossy(&compiled.stdout)));
        }
        // Messages contain the new name where they contained the old one.
        let renamed = |(uri, rule, message): &(String, String, String)| {
            (uri.clone(), rule.clone(), message.replace(new, &target.name))
        };
        let mut left = before.diagnostics.clone();
        for (key, count) in &self.diagnostics() {
            let known = left.entry(renamed(key)).or_default();
            if *known < *count {
                return Outcome::Wrong(format!("a new diagnostic: {}: {}", key.0, key.2));
            }
            *known -= count;
        }
        // Names of tests contain the new name where they contained the old one, and are then in another order.
        let sorted = |text: &str| {
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            lines.sort();
            lines
        };
        if let Some((was, now)) = before.tests.as_ref().zip(self.tested()) {
            let (was, now) = (sorted(was), sorted(&now.replace(new, &target.name)));
            if was != now {
                let first = now.iter().zip(&was).find(|(now, was)| now != was);
                return Outcome::Wrong(format!(
                    "the tests: {}",
                    first.map_or("fewer or more", |(now, _)| now)
                ));
            }
        }
        let files = made["edits"]["files"].as_array().map_or(&[][..], Vec::as_slice);
        let lines = files.iter().filter_map(|file| file["insertions"].as_u64()).sum::<u64>();
        Outcome::Made { files: files.len(), lines: usize::try_from(lines).unwrap_or(usize::MAX) }
    }
}
