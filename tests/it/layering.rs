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
    ("process", 0),
];

/// Names that only some modules or files may use.
const CONFINED: &[(&str, &[&str])] = &[
    ("lsp_types", &["lsp/", "serve/lsp/"]),
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
            // Arguments and results of tools are JSON that a protocol defines.
            "serve/lsp/",
            "serve/mcp/",
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

/// The parts of a module: its files and folders, which import each other without circles.
const ROOM: &str = "engine";

/// The circles that are left, each with its parts.
const KNOWN_CIRCLES: &[&[&str]] = &[&["completeness", "occurrences"], &["diagnose", "refactor", "reward"]];

/// The parts of the room that a file of it imports.
fn imported_parts(file: &str, code: &str) -> BTreeSet<String> {
    let mut module: Vec<&str> =
        file.trim_end_matches(".rs").split('/').filter(|part| *part != "mod").collect();
    module.remove(0);
    let from_crate = format!("crate::{ROOM}::");
    let from_room = "super::".repeat(module.len());
    let code = code.split("#[cfg(test)]\nmod tests {").next().unwrap();
    let mut found = BTreeSet::new();
    for prefix in [from_crate.as_str(), from_room.as_str()] {
        for (at, _) in code.match_indices(prefix) {
            let before = &code[..at];
            if before.ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':') {
                continue;
            }
            let rest = &code[at + prefix.len()..];
            if rest.starts_with("super::") {
                continue;
            }
            found.extend(first_names(rest));
        }
    }
    found.remove(module[0]);
    found
}

/// The first name of a path, or of each path of a list in braces.
fn first_names(path: &str) -> Vec<String> {
    let name = |path: &str| -> String {
        path.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
    };
    let Some(list) = path.strip_prefix('{') else { return vec![name(path)] };
    let (mut depth, mut start, mut names) = (0, 0, Vec::new());
    for (at, c) in list.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                names.push(name(&list[start..at]));
                start = at + 1;
                if c == '}' {
                    break;
                }
            }
            _ => {}
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

/// Everything that a part reaches.
fn reached<'g>(graph: &'g BTreeMap<String, BTreeSet<String>>, from: &str) -> BTreeSet<&'g str> {
    let mut reached = BTreeSet::new();
    let mut next: Vec<&str> = graph.get(from).into_iter().flatten().map(String::as_str).collect();
    while let Some(part) = next.pop() {
        if reached.insert(part) {
            next.extend(graph.get(part).into_iter().flatten().map(String::as_str));
        }
    }
    reached
}

#[test]
fn the_parts_of_the_engine_form_no_new_circle() {
    let mut graph: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let prefix = format!("{ROOM}/");
    for (file, code) in sources() {
        let Some(inside) = file.strip_prefix(&prefix).filter(|inside| *inside != "mod.rs") else { continue };
        let part = inside.split('/').next().unwrap().trim_end_matches(".rs").to_owned();
        graph.entry(part).or_default().extend(imported_parts(&file, &code));
    }
    for (part, imported) in &graph {
        let unknown: Vec<&String> = imported.iter().filter(|name| !graph.contains_key(*name)).collect();
        assert!(
            unknown.is_empty(),
            "{part} imports {unknown:?} from {ROOM}/mod.rs, which imports everything"
        );
    }
    let mut circles: BTreeSet<Vec<&str>> = BTreeSet::new();
    for part in graph.keys() {
        let circle: Vec<&str> = reached(&graph, part)
            .into_iter()
            .filter(|other| reached(&graph, other).contains(part.as_str()))
            .collect();
        if !circle.is_empty() {
            circles.insert(circle);
        }
    }
    let known: BTreeSet<Vec<&str>> = KNOWN_CIRCLES.iter().map(|circle| circle.to_vec()).collect();
    assert_eq!(circles, known);
}

#[test]
fn the_imported_parts_of_a_file() {
    let parts = |file: &str, code: &str| imported_parts(file, code).into_iter().collect::<Vec<_>>().join(" ");
    assert_eq!(parts("engine/a.rs", "use super::b::C;\nuse super::{d, e::{F, g}};"), "b d e");
    assert_eq!(parts("engine/p/a.rs", "use super::b;\nuse super::super::c;"), "c");
    assert_eq!(parts("engine/p/mod.rs", "use super::c::D; fn f() { crate::engine::e::f() }"), "c e");
    assert_eq!(parts("engine/a.rs", "#[cfg(test)]\nmod tests {\n    use super::b::C;"), "");
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
