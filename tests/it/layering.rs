//! Checks the layers of `src` by searching its text, since Cargo cannot check layers inside one crate.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The modules and their layers. An import must point to a lower layer; modules of one layer never import each other.
const LAYERS: &[(&str, u8)] = &[
    ("cli", 9),
    ("serve", 8),
    ("engine", 7),
    ("schema", 6),
    ("trace", 6),
    ("relocate", 5),
    ("lsp", 5),
    ("toolchain", 5),
    ("edit", 5),
    ("bundle", 5),
    ("reward", 5),
    ("python", 4),
    ("workspace", 3),
    ("model", 2),
    ("selector", 1),
    ("tape", 1),
    ("text", 0),
    ("path", 0),
    ("digest", 0),
];

/// Names that only some modules or files may use.
const CONFINED: &[(&str, &[&str])] = &[
    ("lsp_types", &["lsp/"]),
    (
        "serde_json::Value",
        &[
            "lsp/",
            "digest/",
            "schema/",
            "trace/",
            "model/trace.rs",
            "model/recorded_bundle.rs",
            "cli/",
            // Finds the URIs of a bundle, wherever they are in it.
            "engine/absolute_paths.rs",
            "workspace/server_config.rs",
        ],
    ),
    ("tokio::", &["lsp/", "engine/", "serve/", "cli/"]),
    ("clap::", &["cli/", "schema/"]),
    ("std::env::vars", &["cli/environment.rs", "engine/library.rs"]),
    ("std::env::args", &["cli/environment.rs"]),
    // The thread that could return from `main` is the one that hangs.
    ("process::exit", &["serve/watchdog.rs"]),
];

/// The code of every source file below `src` by path, without comments.
fn sources() -> BTreeMap<String, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut sources = BTreeMap::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
                let text = std::fs::read_to_string(&path).unwrap();
                let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
                sources.insert(name, code.map(|line| format!("{line}\n")).collect());
            }
        }
    }
    sources
}

fn layer(module: &str) -> Option<u8> {
    LAYERS.iter().find(|(name, _)| *name == module).map(|(_, layer)| *layer)
}

/// The names that follow `crate::` in a text.
fn imports(code: &str) -> BTreeSet<&str> {
    let mut found = BTreeSet::new();
    for (at, word) in code.match_indices("crate::") {
        // Not `$crate::` or `some_crate::`.
        if code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_') {
            continue;
        }
        let rest = &code[at + word.len()..];
        found.insert(&rest[..rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())]);
    }
    found
}

/// The forbidden imports of a file.
fn forbidden_imports(file: &str, code: &str) -> Vec<String> {
    let Some((module, _)) = file.split_once('/') else { return Vec::new() };
    let own = layer(module);
    let allowed = |name: &&str| *name != module && (layer(name) >= own || layer(name).is_none());
    imports(code).into_iter().filter(allowed).map(|name| format!("{file} imports crate::{name}")).collect()
}

#[test]
fn every_module_has_a_layer() {
    let sources = sources();
    let declared: BTreeSet<&str> = sources["lib.rs"]
        .lines()
        .filter_map(|line| line.trim_start_matches("pub ").strip_prefix("mod ")?.strip_suffix(';'))
        .collect();
    assert_eq!(declared, LAYERS.iter().map(|(name, _)| *name).collect());
    let folders: BTreeSet<&str> = sources.keys().filter_map(|file| Some(file.split_once('/')?.0)).collect();
    assert_eq!(folders, declared, "a folder of src that is no module, or the other way round");
}

#[test]
fn imports_only_point_down() {
    let wrong: Vec<String> =
        sources().iter().flat_map(|(file, code)| forbidden_imports(file, code)).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// `super::super::…` could leave a module without naming `crate`.
#[test]
fn super_imports_stay_in_their_module() {
    for (file, code) in sources() {
        let parts = file.trim_end_matches(".rs").split('/').filter(|part| *part != "mod").count();
        for line in code.lines() {
            let climbs = line.matches("super::").count();
            // An indented line is in an inner module, one level deeper.
            let depth = parts + usize::from(line.starts_with(' '));
            let longest = if line.contains("super::super::") { climbs } else { climbs.min(1) };
            assert!(longest == 0 || longest < depth, "{file}: {line}");
        }
    }
}

#[test]
fn confined_names_are_used_only_where_allowed() {
    for (word, places) in CONFINED {
        let mut unused: BTreeSet<&str> = places.iter().copied().collect();
        for (file, code) in sources() {
            // Tests may use the wire types.
            let code = code.split("#[cfg(test)]\nmod tests {").next().unwrap();
            if file.contains("/tests/") || file.ends_with("/tests.rs") || file.contains("/conformance/") {
                continue;
            }
            let names = match *word {
                "serde_json::Value" => names_value(code),
                word => code.contains(word),
            };
            if names {
                let place = places.iter().find(|place| file.starts_with(**place));
                assert!(place.is_some(), "{file} names {word}");
                unused.remove(place.unwrap());
            }
        }
        assert!(
            unused.is_empty(),
            "no file in {unused:?} contains {word} any more: remove it from the table"
        );
    }
}

/// Whether a file imports or uses serde_json's `Value`.
fn names_value(code: &str) -> bool {
    code.contains("serde_json::Value")
        || code.split("serde_json::{").skip(1).any(|rest| {
            let list = rest.split('}').next().unwrap_or_default();
            list.split(',').any(|name| name.trim() == "Value")
        })
}

#[test]
fn the_check_finds_violations() {
    assert_eq!(
        forbidden_imports("lsp/x.rs", "use crate::text::Range;\nuse crate::lsp::y;"),
        Vec::<String>::new()
    );
    for (file, code) in [
        ("lsp/x.rs", "use crate::toolchain::find;"),
        ("lsp/x.rs", "fn f() { crate::cli::main(); }"),
        ("text/x.rs", "use crate::path::AbsPath;"),
        ("lsp/x.rs", "use crate::{text, path};"),
        ("new/x.rs", "use crate::text::Range;"),
    ] {
        assert_eq!(forbidden_imports(file, code).len(), 1, "{file} {code}");
    }
    assert!(names_value("use serde_json::{Map, Value};") && !names_value("use serde_json::json;"));
}
