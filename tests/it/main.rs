//! The integration tests: run the `lanser` binary as users do, with the real Pyright and basedpyright, and with fake servers that
//! misbehave on demand. One test binary, so that it links only once. `support` is the only module without tests.

#![expect(clippy::unwrap_used, reason = "everything here is test code")]

/// Environments, projects and servers for the tests.
mod support;

/// A second opinion of another server.
mod agree;
/// Analyzers besides the server: compile, ruff, mypy.
mod analyzers;
/// `lanser batch`: many requests over one stream.
mod batch;
/// Members of bundles that hold for every command.
mod bundles;
/// What one checkout cannot do to the answers about another, and code that links hide.
mod checkouts;
/// The same content gives the same bundle, wherever and however it is requested.
mod determinism;
/// README and docs: their commands, run, and their output, compared.
mod docs;
/// Renames and other edits: plan, check, write, undo.
mod edits;
/// Every documented exit code that a command can return, as text and as JSON.
mod exit_codes;
/// Objects whose classes depend on the platform and the like.
mod static_branches;

/// The same questions through every front end.
mod front_ends;
/// The help of every command.
mod help;
/// Unusual files: encodings, links, sizes, permissions.
mod ty;
mod unusual_files;

mod hostile;
/// Real installs with npm and pip.
mod install;
/// Imports between the modules of `src` only point to lower layers.
mod layering;
/// The library API.
mod library;
/// `lanser lsp`, by raw messages and by a client for tests of language servers.
mod lsp;
/// `lanser mcp`: the tools of the Model Context Protocol, by raw lines and by the reference client.
mod mcp;
/// Every command and every selector form, with the real servers.
mod navigate;
/// References and calls that servers leave out, and how they are reported.
mod occurrences;
/// Text output, its limits and continuation, parts of the JSON, colors, pipes.
mod output;
/// The Python package, the npm packages, and the server of lanser's own environment.
mod packages;
/// No process and no file remains after a run.
mod processes;
/// Reports for CI: SARIF, annotations, call graphs, and what is new since a revision.
mod reports;
mod reward;
/// The schemas, and the command line described as data.
mod schemas;
mod score;
/// The command lines of the papers on lanser.
mod seeds;
/// Selectors with a revision, followed through commits and transactions.
mod selector_history;
/// Every selector form, before and after the code changes.
mod selectors;
/// Every supported version of every server.
mod server_versions;
/// Background sessions: one for all callers, with the same answers, and no remains.
mod sessions;
/// The skill for agents, and the hook of Claude Code.
mod skill;
/// Traces: recording, replay, damage.
mod traces;
/// What training and evaluation read: reward files, pages, parts of a batch, rewards of a stream.
mod training;
/// A warm session gives the same answers as a cold process, whatever changed.
mod warm;
/// The words of the glossary.
mod words;

/// A test file without a `mod` line here is not compiled, so its tests would never run.
#[test]
fn every_test_file_is_compiled() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it");
    let main = std::fs::read_to_string(folder.join("main.rs")).unwrap();
    let mut seen = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let module = name.strip_suffix(".rs").unwrap_or(&name);
        // Files that begin with a dot are pending snapshots of insta.
        if module != "main" && !name.starts_with('.') {
            assert!(main.lines().any(|line| line == format!("mod {module};")), "{name} is not in main.rs");
            seen += 1;
        }
    }
    let declared = main.lines().filter(|line| line.starts_with("mod ")).count();
    assert_eq!(seen, declared);
}
