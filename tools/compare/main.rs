//! Compares lanser with the raw server: the same requests at seeded identifier positions, each answered by a cold `lanser` process
//! and by a minimal client of a server that has all files open.
//!
//! `cargo build --release && cargo run --release --features tools --example compare -- --server-command langserver.index.js FOLDER…`
//!
//! One raw server process per folder answers all requests. Since earlier requests can change its answers, a difference only counts
//! if a fresh server, asked just this request after startup, confirms it.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the report is what this program is for")]

mod reply;
mod report;
#[path = "../support/mod.rs"]
mod support;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use reply::{LocalFolders, Reply};
use report::Row;
use support::positions::{Place, Source};
use support::program::Lanser;
use support::raw::{Raw, RawOptions};

/// How many differences per folder and command are printed in full.
const MAX_SHOWN_DIFFERENCES: usize = 5;

const USAGE: &str = "usage: compare [--positions N] [--commands def,refs,hover,symbols] [--jobs K]
               [--server-command SCRIPT] [--python EXE] FOLDER…";

/// The command-line arguments.
struct Args {
    positions: usize,
    commands: Vec<String>,
    jobs: usize,
    script: Option<PathBuf>,
    python: String,
    folders: Vec<PathBuf>,
}

/// One request.
struct Question<'a> {
    command: &'a str,
    place: &'a Place,
}

/// The settings for all requests about one folder.
struct Folder<'a> {
    root: &'a Path,
    sources: &'a [Source],
    machine: &'a LocalFolders,
    raw: &'a RawOptions,
    lanser: &'a Lanser,
    jobs: usize,
}

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

/// Returns whether all answers were equal.
fn run() -> Result<bool, String> {
    let args = args()?;
    let (program, scratch) = support::program::beside_example()?;
    let script = match &args.script {
        Some(script) => absolute(script)?,
        None => support::program::found_script(&program, "pyright")?,
    };
    let [python, prefix, base_prefix] = support::program::interpreter(&args.python)?;
    let package = reply::package_of(&script);
    let raw = RawOptions {
        script: script.clone(),
        python: python.clone(),
        scratch: scratch.join("tmp"),
        pulls: false,
    };
    let lanser =
        Lanser { program, cache: scratch.join("cache"), python, script, server: "pyright".to_owned() };
    let mut rows = Vec::new();
    for root in &args.folders {
        let root = absolute(root)?;
        let sources = support::positions::sources(&root);
        let places = support::positions::chosen(&sources, args.positions);
        println!(
            "{}: {} positions of {} files, seed {:#x}",
            root.display(),
            places.len(),
            sources.len(),
            support::positions::SEED
        );
        let machine = LocalFolders {
            root: root.clone(),
            prefix: prefix.clone(),
            base_prefix: base_prefix.clone(),
            package: package.clone(),
        };
        let folder = Folder {
            root: &root,
            sources: &sources,
            machine: &machine,
            raw: &raw,
            lanser: &lanser,
            jobs: args.jobs,
        };
        for command in &args.commands {
            rows.push(folder.compare(command, &places)?);
            println!("{}", report::table(&rows[rows.len() - 1..]));
        }
    }
    let _ = fs::remove_dir_all(scratch.join("tmp"));
    println!("{}", report::table(&rows));
    Ok(rows.iter().all(|row| row.different + row.stub + row.errors == 0))
}

impl Folder<'_> {
    fn compare(&self, command: &str, places: &[Place]) -> Result<Row, String> {
        let mut files = BTreeSet::new();
        // `symbols` does not depend on the position in the file.
        let asked = places.iter().filter(|place| command != "symbols" || files.insert(place.file));
        let questions: Vec<_> = asked.map(|place| Question { command, place }).collect();
        let name = self.root.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let mut row =
            Row { folder: name, command: command.to_owned(), asked: questions.len(), ..Row::default() };
        let mut server = self.server()?;
        let raw: Vec<Reply> = questions.iter().map(|question| self.ask_raw(&mut server, question)).collect();
        drop(server);
        eprintln!("{} {command}: the raw server has answered {} questions", row.folder, raw.len());
        let lanser = self.ask_lanser(&questions);
        for ((question, mut raw), lanser) in questions.iter().zip(raw).zip(lanser) {
            if raw != lanser && !matches!(lanser, Reply::Failed(_)) {
                raw = self.ask_raw(&mut self.server()?, question);
                if raw == lanser {
                    row.fresh += 1;
                    let at = self.selector(question.place);
                    println!("{} {command} {at}: equal to a fresh raw server only", row.folder);
                }
            }
            if matches!((&raw, &lanser), (Reply::Failed(_), Reply::Failed(_))) {
                row.equal += 1;
                row.failing += 1;
                continue;
            }
            if raw == lanser {
                row.equal += 1;
                row.nothing += usize::from(raw == Reply::Nothing);
                continue;
            }
            let stub = self.sources[question.place.file].path.with_extension("pyi");
            let at_stub = command == "refs" && stub.is_file();
            let count = match &lanser {
                Reply::Failed(_) => &mut row.errors,
                _ if at_stub => &mut row.stub,
                _ => &mut row.different,
            };
            *count += 1;
            if *count <= MAX_SHOWN_DIFFERENCES {
                let title = format!(
                    "{} {command} {} `{}`{}",
                    row.folder,
                    self.selector(question.place),
                    question.place.word,
                    if at_stub { " (a stub is beside it)" } else { "" }
                );
                println!("{}", report::difference(&title, &raw, &lanser));
            }
        }
        Ok(row)
    }

    /// Starts a raw server and waits until it has enumerated its source files.
    fn server(&self) -> Result<Raw, String> {
        let mut server = Raw::spawn(self.raw, self.root)?;
        server.barrier()?;
        Ok(server)
    }

    fn ask_raw(&self, server: &mut Raw, question: &Question<'_>) -> Reply {
        let source = &self.sources[question.place.file];
        let needed: Vec<&Source> = match question.command {
            "refs" => support::positions::with_word(self.sources, &question.place.word),
            _ => vec![source],
        };
        let mut ask = || {
            for source in &needed {
                server.open(&source.path, &source.text)?;
            }
            let at = [question.place.line, question.place.utf16];
            let result = match question.command {
                "symbols" => server.symbols(&source.path),
                "hover" => server.ask("textDocument/hover", &source.path, at),
                "refs" => server.ask("textDocument/references", &source.path, at),
                _ => server.ask("textDocument/definition", &source.path, at),
            };
            for source in &needed {
                server.close(&source.path)?;
            }
            result
        };
        self.machine.of_raw(question.command, ask())
    }

    /// Runs lanser for each request, several at a time; the answers are in the order of the requests.
    fn ask_lanser(&self, questions: &[Question<'_>]) -> Vec<Reply> {
        let next = AtomicUsize::new(0);
        let answers = Mutex::new(vec![Reply::Failed("not asked".to_owned()); questions.len()]);
        std::thread::scope(|scope| {
            for _ in 0..self.jobs {
                scope.spawn(|| {
                    loop {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        let Some(question) = questions.get(index) else { break };
                        let said = self.ask_lanser_once(question);
                        answers.lock().unwrap_or_else(std::sync::PoisonError::into_inner)[index] = said;
                    }
                });
            }
        });
        answers.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn ask_lanser_once(&self, question: &Question<'_>) -> Reply {
        let target = match question.command {
            // `symbols` takes a path relative to the current folder.
            "symbols" => self.sources[question.place.file].path.to_string_lossy().into_owned(),
            _ => self.selector(question.place),
        };
        match self.lanser.bundle(self.root, &[question.command, &target]) {
            Ok((bundle, code)) => self.machine.of_bundle(question.command, &bundle, code),
            Err(error) => Reply::Failed(error),
        }
    }

    fn selector(&self, place: &Place) -> String {
        support::program::selector(&self.sources[place.file].relative, place.line, place.scalar)
    }
}

fn args() -> Result<Args, String> {
    let mut args = Args {
        positions: 200,
        commands: ["def", "refs", "hover", "symbols"].map(str::to_owned).to_vec(),
        jobs: 1,
        script: None,
        python: "python3".to_owned(),
        folders: Vec::new(),
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} needs a value\n{USAGE}"));
        let number = |text: String| text.parse().map_err(|_| format!("{text:?} is no number"));
        match word.as_str() {
            "--positions" => args.positions = number(value()?)?,
            "--jobs" => args.jobs = number(value()?)?,
            "--commands" => args.commands = value()?.split(',').map(str::to_owned).collect(),
            "--server-command" => args.script = Some(value()?.into()),
            "--python" => args.python = value()?,
            option if option.starts_with('-') => return Err(format!("{option} is unknown\n{USAGE}")),
            folder => args.folders.push(folder.into()),
        }
    }
    let known = ["def", "refs", "hover", "symbols"];
    if let Some(other) = args.commands.iter().find(|command| !known.contains(&command.as_str())) {
        return Err(format!("{other:?} is not compared\n{USAGE}"));
    }
    if args.folders.is_empty() || args.jobs == 0 {
        return Err(USAGE.to_owned());
    }
    Ok(args)
}

fn absolute(path: &Path) -> Result<PathBuf, String> {
    fs::canonicalize(path).map_err(|error| format!("{}: {error}", path.display()))
}
