//! The answers of the raw server and of lanser, converted to a common form for comparison.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::raw::percent_decoded;

/// An answer. Items are sets, because lanser orders its lists and removes exact duplicates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reply {
    /// The items, one line each.
    Items(BTreeSet<String>),
    /// `null`, an empty list, `E/NOT_FOUND`.
    Nothing,
    /// The request failed, with the reason.
    Failed(String),
}

/// The local folders for which bundles have portable names.
#[derive(Debug, Clone)]
pub(crate) struct LocalFolders {
    /// The workspace.
    pub(crate) root: PathBuf,
    /// `sys.prefix`.
    pub(crate) prefix: PathBuf,
    /// `sys.base_prefix`.
    pub(crate) base_prefix: PathBuf,
    /// The folder of the server package.
    pub(crate) package: PathBuf,
}

/// The nearest folder above a script that contains a `package.json`.
pub(crate) fn package_of(script: &Path) -> PathBuf {
    let found = script.ancestors().skip(1).find(|folder| folder.join("package.json").is_file());
    found.unwrap_or(script).to_owned()
}

impl LocalFolders {
    /// The path of a bundle's URI.
    fn file(&self, uri: &str) -> PathBuf {
        let joined = |root: &Path, rest: &str| real(&root.join(percent_decoded(rest)));
        if let Some(rest) = uri.strip_prefix("env://~base/") {
            joined(&self.base_prefix, rest)
        } else if let Some(rest) = uri.strip_prefix("env://") {
            joined(&self.prefix, rest)
        } else if let Some(rest) = uri.strip_prefix("server://") {
            joined(&self.package, rest)
        } else if let Some(rest) = uri.strip_prefix("file://") {
            joined(Path::new("/"), rest)
        } else {
            joined(&self.root, uri)
        }
    }

    /// The server's text with local folders renamed as in bundles.
    fn portable(&self, text: &str) -> String {
        let names = [
            (&self.root, ""),
            (&self.package, "server://"),
            (&self.prefix, "env://"),
            (&self.base_prefix, "env://~base/"),
        ];
        names.iter().fold(text.to_owned(), |text, (folder, name)| {
            text.replace(&format!("{}/", folder.display()), name)
        })
    }

    /// The reply of the raw server.
    pub(crate) fn of_raw(&self, command: &str, result: Result<Value, String>) -> Reply {
        let value = match result {
            Ok(value) => value,
            Err(error) => return Reply::Failed(error),
        };
        match command {
            "hover" => {
                let markdown = value["contents"]["value"].as_str().unwrap_or_default();
                if markdown.trim().is_empty() {
                    return Reply::Nothing;
                }
                one(hover(&range(&value["range"]), &self.portable(markdown)))
            }
            "symbols" => {
                let mut found = BTreeSet::new();
                for symbol in value.as_array().into_iter().flatten() {
                    flatten(symbol, "", &mut found);
                }
                Reply::Items(found)
            }
            _ => {
                let places = match value {
                    Value::Array(places) => places,
                    Value::Null => Vec::new(),
                    place => vec![place],
                };
                let place = |place: &Value| {
                    let path = percent_decoded(place["uri"].as_str().unwrap_or_default());
                    let path = real(Path::new(path.trim_start_matches("file://")));
                    format!("{} {}", path.display(), range(&place["range"]))
                };
                places_or_nothing(places.iter().map(place).collect())
            }
        }
    }

    /// The reply in a bundle.
    pub(crate) fn of_bundle(&self, command: &str, bundle: &Value, code: Option<i32>) -> Reply {
        let error = &bundle["error"];
        if error.is_object() {
            let symbol = error["symbol"].as_str().unwrap_or_default();
            if symbol == "E/NOT_FOUND" && code == Some(3) {
                return Reply::Nothing;
            }
            return Reply::Failed(format!("exit {code:?}, {symbol}: {}", error["message"]));
        }
        if code != Some(0) {
            return Reply::Failed(format!("exit {code:?} without an error"));
        }
        let facts = &bundle["facts"];
        let list = |name: &str| facts[name].as_array().cloned();
        match command {
            "hover" => {
                let markdown = facts["hover"]["markdown"].as_str().unwrap_or_default();
                one(hover(&flat(&facts["hover"]["range"]), markdown))
            }
            "symbols" => {
                let Some(symbols) = list("symbols") else {
                    return Reply::Failed("the bundle has no symbols".to_owned());
                };
                let symbol = |symbol: &Value| {
                    let word = |name: &str| symbol[name].as_str().unwrap_or_default().to_owned();
                    let (all, name) = (flat(&symbol["range"]), flat(&symbol["selectionRange"]));
                    entry(&word("container"), &word("name"), &word("symbol_kind"), &all, &name)
                };
                Reply::Items(symbols.iter().map(symbol).collect())
            }
            _ => {
                let name = if command == "refs" { "references" } else { "definitions" };
                let Some(places) = list(name) else {
                    return Reply::Failed(format!("the bundle has no {name}"));
                };
                let place = |place: &Value| {
                    let path = self.file(place["uri"].as_str().unwrap_or_default());
                    format!("{} {}", path.display(), flat(&place["range"]))
                };
                places_or_nothing(places.iter().map(place).collect())
            }
        }
    }
}

fn places_or_nothing(places: BTreeSet<String>) -> Reply {
    if places.is_empty() { Reply::Nothing } else { Reply::Items(places) }
}

fn one(item: String) -> Reply {
    Reply::Items(BTreeSet::from([item]))
}

fn hover(range: &str, markdown: &str) -> String {
    format!("{range}\n{markdown}")
}

fn flatten(symbol: &Value, container: &str, found: &mut BTreeSet<String>) {
    const KINDS: [&str; 27] = [
        "none",
        "file",
        "module",
        "namespace",
        "package",
        "class",
        "method",
        "property",
        "field",
        "constructor",
        "enum",
        "interface",
        "function",
        "variable",
        "constant",
        "string",
        "number",
        "boolean",
        "array",
        "object",
        "key",
        "null",
        "enumMember",
        "struct",
        "event",
        "operator",
        "typeParameter",
    ];
    let name = symbol["name"].as_str().unwrap_or_default();
    let kind = symbol["kind"].as_u64().and_then(|kind| KINDS.get(usize::try_from(kind).ok()?));
    let (all, own) = (range(&symbol["range"]), range(&symbol["selectionRange"]));
    found.insert(entry(container, name, kind.unwrap_or(&"unknown"), &all, &own));
    let inner = if container.is_empty() { name.to_owned() } else { format!("{container}.{name}") };
    for child in symbol["children"].as_array().into_iter().flatten() {
        flatten(child, &inner, found);
    }
}

fn entry(container: &str, name: &str, kind: &str, all: &str, own: &str) -> String {
    format!("{kind} {name:?} in {container:?} {all}, its name {own}")
}

/// An LSP range.
fn range(value: &Value) -> String {
    let number = |end: &str, axis: &str| value[end][axis].as_u64().unwrap_or(u64::MAX);
    shown(
        [("start", "line"), ("start", "character"), ("end", "line"), ("end", "character")]
            .map(|(end, axis)| number(end, axis)),
    )
}

/// A range in a bundle.
fn flat(value: &Value) -> String {
    shown([0, 1, 2, 3].map(|index| value[index].as_u64().unwrap_or(u64::MAX)))
}

fn shown([sl, sc, el, ec]: [u64; 4]) -> String {
    format!("[{sl},{sc},{el},{ec}]")
}

/// The canonical path, so that different spellings of one file are equal.
fn real(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}
