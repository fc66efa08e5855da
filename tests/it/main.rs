//! The integration suite: the `lanser` binary as its users meet it, with the real Pyright and basedpyright, and with servers
//! that misbehave on demand. One binary, so that it links once; `support` is the only module without tests.

#![expect(clippy::unwrap_used, reason = "everything here is a test, also what helps tests")]

/// Environments, projects and servers for the tests.
mod support;

/// Many requests over one stream.
mod batch;
/// One answer for one content, wherever and however it is asked.
mod determinism;
/// Renames and other edits: planned, checked, written, taken back.
mod edits;
/// Every row of the table of exit codes that a command can reach, as text and as JSON.
mod exit_codes;
/// Files with which naive tools go wrong.
mod files_that_bite;

mod hostile;
/// Real installs with npm and pip.
mod install;
/// Imports between the modules of `src` only point down.
mod layering;
/// The crate as other programs use it.
mod library;
/// Every verb and every form of a selector, with the real servers.
mod navigate;
/// What servers leave out of references and calls, and what is said of it.
mod occurrences;
/// Text, its bounds and how it goes on, JSON's parts, colours, pipes.
mod output;
/// No process and no file outlives a run.
mod processes;
mod reward;
/// The schemas and the command line as data.
mod schemas;
mod score;
/// Every form of selector, and what becomes of it when the code changes.
mod selectors;
/// Background sessions: one for all, the same answers, and nothing left of them.
mod sessions;
/// Traces: recorded, replayed, damaged.
mod traces;
/// Warm answers are cold answers, whatever changed.
mod warm;

/// A file that no `mod` line names is not compiled, and its tests pass by never running.
#[test]
fn no_file_is_forgotten() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it");
    let main = std::fs::read_to_string(folder.join("main.rs")).unwrap();
    let mut seen = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let module = name.strip_suffix(".rs").unwrap_or(&name);
        // What begins with a dot is insta's, from a run whose snapshots differed.
        if module != "main" && !name.starts_with('.') {
            assert!(main.lines().any(|line| line == format!("mod {module};")), "{name} is not in main.rs");
            seen += 1;
        }
    }
    let declared = main.lines().filter(|line| line.starts_with("mod ")).count();
    assert_eq!(seen, declared);
}
