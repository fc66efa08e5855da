//! The glossary (`docs/glossary.md`), checked on the text of the project: replaced words do not come back, and a type name
//! means one type.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Where replaced words are looked for, relative to the root.
const SEARCHED: [&str; 11] = [
    "src",
    "tests",
    "examples",
    "tools",
    "python",
    "npm",
    "docs",
    "schemas",
    "README.md",
    "SECURITY.md",
    "CHANGELOG.md",
];

/// Schemas of earlier formats, and the files that quote the replaced words on purpose.
const EXEMPT: [&str; 3] = ["schemas/history", "tests/it/words.rs", "CHANGELOG.md"];

/// Identifiers and JSON members that were replaced, with what to write. Only whole identifiers count, in their letter case.
const IDENTIFIERS: [(&str, &str); 20] = [
    ("Asked", "…Request"),
    ("Asking", "RequestContext"),
    ("FAREWELL", "…_TIMEOUT"),
    ("Flights", "SingleFlight"),
    ("Furnish", "ensure"),
    ("Heir", "successor"),
    ("LEISURE", "…_INTERVAL"),
    ("Lease", "WorkerGuard"),
    ("PATIENCE", "…_TIMEOUT"),
    ("Shelf", "…Cache"),
    ("Surveyor", "InputScanner"),
    ("Thrift", "ScanThrottle"),
    ("Told", "Outcome"),
    ("Trouble", "…Error"),
    ("World", "ResolveContext"),
    ("givenUp", "overrides"),
    ("given_up", "overridden"),
    ("made_up", "declared"),
    ("owed", "outstanding"),
    ("road", "served_from"),
];

/// Phrases that were replaced, with what to write. They count between word boundaries, in any letter case.
const PHRASES: [(&str, &str); 15] = [
    ("bound for nobody", "a dead store"),
    ("given up", "overridden"),
    ("hangs on", "depends on"),
    ("in thought", "in memory"),
    ("last words", "stderr tail"),
    ("nobody", "the passive voice, or who it is"),
    ("of its own accord", "by itself"),
    ("plays a part", "affects"),
    ("rests on", "depends on"),
    ("said again", "a cached response"),
    ("somebody", "the passive voice, or who it is"),
    ("spelled otherwise", "mangled"),
    ("stands on", "is synced to"),
    ("who asks", "the caller"),
    ("whoever", "the caller, or who it is"),
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The text files below a path, in order.
fn files(path: PathBuf) -> Vec<PathBuf> {
    if !path.is_dir() {
        return vec![path];
    }
    let entries = std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<PathBuf> =
        entries.filter(|path| !path.ends_with("__pycache__")).flat_map(files).collect();
    found.sort();
    found
}

/// The line numbers, from 1, of the lines in which a word is written between word boundaries.
fn lines_with(text: &str, word: &str) -> Vec<usize> {
    let continues = |c: char| c == '_' || c.is_alphanumeric();
    let is_whole = |line: &str, at: usize| {
        !line[..at].chars().next_back().is_some_and(continues)
            && !line[at + word.len()..].chars().next().is_some_and(continues)
    };
    let lines = text.lines().enumerate();
    let found = lines.filter(|(_, line)| line.match_indices(word).any(|(at, _)| is_whole(line, at)));
    found.map(|(number, _)| number + 1).collect()
}

#[test]
fn replaced_words_are_not_used() {
    let mut wrong = Vec::new();
    for path in SEARCHED.iter().flat_map(|name| files(root().join(name))) {
        let name = path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
        if EXEMPT.iter().any(|exempt| name.contains(exempt)) {
            continue;
        }
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        for (word, instead) in IDENTIFIERS {
            let lines = lines_with(&text, word).into_iter();
            wrong.extend(lines.map(|line| format!("{name}:{line}: `{word}`: write {instead}")));
        }
        let lower = text.to_lowercase();
        for (phrase, instead) in PHRASES {
            let lines = lines_with(&lower, phrase).into_iter();
            wrong.extend(lines.map(|line| format!("{name}:{line}: \"{phrase}\": write {instead}")));
        }
    }
    assert!(wrong.is_empty(), "{} replaced words:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn words_are_found_between_boundaries() {
    assert_eq!(lines_with("a road\nroads\nbroad, road.", "road"), [1, 3]);
    assert_eq!(lines_with("is_owed\nowed_by\n(owed)", "owed"), [3]);
}

#[test]
fn a_type_name_means_one_type() {
    let mut types: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in files(root().join("src")) {
        let name = path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
        if EXEMPT.iter().any(|exempt| name.contains(exempt)) {
            continue;
        }
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        // Types of tests and of functions are indented.
        for line in text.lines() {
            let line = ["pub ", "pub(crate) ", "pub(super) "]
                .iter()
                .fold(line, |line, word| line.trim_start_matches(word));
            let line = match line.strip_prefix("pub(in ").and_then(|rest| rest.split_once(") ")) {
                Some((_, rest)) => rest,
                None => line,
            };
            let declared = ["struct ", "enum ", "trait ", "union ", "type "]
                .iter()
                .find_map(|word| line.strip_prefix(word));
            let Some(declared) = declared else { continue };
            let declared =
                declared.split(|c: char| c != '_' && !c.is_alphanumeric()).next().unwrap_or_default();
            types.entry(declared.to_owned()).or_default().push(name.clone());
        }
    }
    let twice: Vec<_> = types.iter().filter(|(_, files)| files.len() > 1).collect();
    assert!(types.len() > 500 && twice.is_empty(), "of {} types, declared twice: {twice:#?}", types.len());
}
