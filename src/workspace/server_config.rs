//! Reads the server's configuration files, as far as they affect where modules are found.
//!
//! Follows Pyright 1.1.414 when it is started by an editor: `pyrightconfig.json` in the workspace root; otherwise the
//! section of `pyproject.toml` there; otherwise, if that file has no such section, the nearest configuration above it.
//! Then the files that it `extends` are read. Paths are relative to the folder of their file, and nearer files win key
//! by key. Like the server, this module skips a file that cannot be read or has the wrong structure, and reports it in
//! [`ServerConfig::problems`]. Settings that change only diagnostics are not interpreted: the digests of the files
//! cover them.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::files::{FileKind, Files, ReadError};
use super::ty_config;
use crate::digest::Digest;
use crate::model::server::ServerKind;
use crate::path::AbsPath;

const CONFIG_FILE: &str = "pyrightconfig.json";
const PROJECT_FILE: &str = "pyproject.toml";
/// The file of known diagnostics, which basedpyright does not report.
const BASELINE_FILE: &str = ".basedpyright/baseline.json";
/// The limit for a chain of `extends`.
const MAX_EXTENDS: usize = 32;
/// The limit of folders that a wildcard in `extraPaths` enters.
const MAX_EXPANDED_FOLDERS: usize = 4096;

/// An entry of `executionEnvironments`.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ExecutionEnvironment {
    /// The folder whose files it applies to.
    pub root: AbsPath,
    /// Its `extraPaths`; `None` means those of the configuration.
    pub extra_paths: Option<Vec<AbsPath>>,
}

/// The server's configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ServerConfig {
    /// Every file that was read, by its path relative to the workspace root (`../pyrightconfig.json` when it is above),
    /// with the digest of its content.
    pub files: BTreeMap<String, Digest>,
    /// `extraPaths`, wildcards expanded. `None` when not given, in which case the server adds `src`.
    pub extra_paths: Option<Vec<AbsPath>>,
    /// `executionEnvironments`, in order.
    pub execution_environments: Vec<ExecutionEnvironment>,
    /// `stubPath`; `typings` in the workspace root when not given.
    pub stub_path: Option<AbsPath>,
    /// `typeshedPath`; the server's own stubs when not given.
    pub typeshed_path: Option<AbsPath>,
    /// `venvPath`.
    pub venv_path: Option<AbsPath>,
    /// `venv`, the name of a folder in `venvPath`.
    pub venv: Option<String>,
    /// `include`, as written.
    pub include: Vec<String>,
    /// `exclude`, as written.
    pub exclude: Vec<String>,
    /// Messages about what could not be read.
    pub problems: Vec<String>,
}

impl ServerConfig {
    /// Reads the configuration of a workspace.
    #[must_use]
    pub fn read(files: &dyn Files, root: &AbsPath, server: ServerKind) -> Self {
        if server == ServerKind::Ty {
            return ty_config::read(files, root);
        }
        let mut reader = ConfigReader { files, root, server, config: Self::default() };
        // The nearest file comes first, so it is applied last.
        let mut baselines = vec![root.join(BASELINE_FILE)];
        for (section, folder) in reader.chain().into_iter().rev() {
            reader.apply(&section, &folder);
            baselines.push(folder.join(BASELINE_FILE));
            baselines
                .extend(section.get("baselineFile").and_then(Value::as_str).map(|path| folder.join(path)));
        }
        if server == ServerKind::Basedpyright {
            for path in &baselines {
                if let Ok(document) = files.read(path) {
                    reader.config.files.insert(relative(path, root), document.digest);
                }
            }
        }
        reader.config
    }

    /// The text of a configuration file, whose digest is recorded; `None` if it cannot be read, which is reported.
    pub(super) fn read_file(&mut self, files: &dyn Files, path: &AbsPath, root: &AbsPath) -> Option<String> {
        match files.read(path) {
            Ok(document) => {
                self.files.insert(relative(path, root), document.digest);
                Some(document.text.trim_start_matches('\u{feff}').to_owned())
            }
            // The error message contains the absolute path, which differs between machines.
            Err(ReadError::Missing { .. }) => {
                self.problem(path, root, "the file does not exist");
                None
            }
            Err(_) => {
                self.problem(path, root, "the file cannot be read");
                None
            }
        }
    }

    /// The text of a file as TOML; `None` if it is not valid, which is reported.
    pub(super) fn parse_toml(&mut self, text: &str, path: &AbsPath, root: &AbsPath) -> Option<toml::Table> {
        let table = text.parse().ok();
        if table.is_none() {
            self.problem(path, root, "it is not valid TOML");
        }
        table
    }

    fn problem(&mut self, path: &AbsPath, root: &AbsPath, what: &str) {
        self.problems.push(format!("{}: {what}", relative(path, root)));
    }

    /// The interpreter that `venvPath` and `venv` name.
    #[must_use]
    pub fn venv_folder(&self) -> Option<AbsPath> {
        Some(self.venv_path.as_ref()?.join(self.venv.as_ref()?))
    }
}

struct ConfigReader<'f> {
    files: &'f dyn Files,
    root: &'f AbsPath,
    server: ServerKind,
    config: ServerConfig,
}

type Section = Map<String, Value>;

impl ConfigReader<'_> {
    /// The configuration sections that apply, nearest first, each with the folder that its paths are relative to.
    fn chain(&mut self) -> Vec<(Section, AbsPath)> {
        let own = [CONFIG_FILE, PROJECT_FILE].map(|name| self.root.join(name));
        let Some(start) = own.into_iter().find(|path| self.files.kind(path) == FileKind::File) else {
            return Vec::new();
        };
        let chain = self.extended(start.clone());
        if !chain.is_empty() || start.file_name() == CONFIG_FILE {
            return chain;
        }
        let mut above = vec![self.root.parent()];
        while let Some(last) = above.last().filter(|last| last.parent() != **last) {
            above.push(last.parent());
        }
        // A `pyrightconfig.json` in any folder above wins over every `pyproject.toml` above, even a nearer one.
        for name in [CONFIG_FILE, PROJECT_FILE] {
            for path in above.iter().map(|folder| folder.join(name)) {
                if self.files.kind(&path) == FileKind::File {
                    let chain = self.extended(path);
                    if !chain.is_empty() || name == CONFIG_FILE {
                        return chain;
                    }
                }
            }
        }
        Vec::new()
    }

    fn extended(&mut self, start: AbsPath) -> Vec<(Section, AbsPath)> {
        let mut chain = Vec::new();
        let mut seen = vec![start.clone()];
        let mut at = Some(start);
        while let Some(path) = at.take() {
            let Some(section) = self.section(&path) else { break };
            let folder = path.parent();
            match section.get("extends") {
                Some(Value::String(next)) => {
                    let next = folder.join(next);
                    if seen.contains(&next) || seen.len() >= MAX_EXTENDS {
                        self.problem(&path, "its chain of \"extends\" is circular or too long");
                    } else {
                        seen.push(next.clone());
                        at = Some(next);
                    }
                }
                Some(_) => self.problem(&path, "\"extends\" is not a string"),
                None => {}
            }
            chain.push((section, folder));
        }
        chain
    }

    fn problem(&mut self, path: &AbsPath, what: &str) {
        self.config.problem(path, self.root, what);
    }

    /// The section in one file; `None` when the file has none or cannot be read.
    fn section(&mut self, path: &AbsPath) -> Option<Section> {
        let text = self.config.read_file(self.files, path, self.root)?;
        if path.file_name().ends_with(".toml") {
            let table = self.config.parse_toml(&text, path, self.root)?;
            let tool = table.get("tool")?.as_table()?;
            let (pyright, based) = (tool.get("pyright"), tool.get("basedpyright"));
            let section = match self.server {
                ServerKind::Pyright => pyright,
                ServerKind::Basedpyright if pyright.is_some() && based.is_some() => {
                    self.problem(path, "it has both [tool.pyright] and [tool.basedpyright]");
                    return None;
                }
                ServerKind::Basedpyright => based.or(pyright),
                ServerKind::Ty => None,
            };
            return match serde_json::to_value(section?).ok()? {
                Value::Object(section) => Some(section),
                _ => None,
            };
        }
        match serde_json::from_str(&plain_json(&text)) {
            Ok(Value::Object(section)) => Some(section),
            Ok(_) => {
                self.problem(path, "it is not a JSON object");
                None
            }
            Err(error) => {
                self.problem(path, &format!("it is not valid JSON: line {}", error.line()));
                None
            }
        }
    }

    fn apply(&mut self, section: &Section, folder: &AbsPath) {
        let text = |key: &str| section.get(key).and_then(Value::as_str);
        let list = |key: &str| section.get(key).and_then(Value::as_array).map(|items| strings(items));
        if let Some(paths) = list("extraPaths") {
            self.config.extra_paths = Some(self.expanded(&paths, folder));
        }
        if let Some(path) = text("stubPath") {
            self.config.stub_path = Some(folder.join(path));
        }
        if let Some(path) = text("typeshedPath") {
            self.config.typeshed_path = Some(folder.join(path));
        }
        if let Some(path) = text("venvPath") {
            self.config.venv_path = Some(folder.join(path));
        }
        if let Some(name) = text("venv") {
            self.config.venv = Some(name.to_owned());
        }
        if let Some(include) = list("include") {
            self.config.include = include;
        }
        if let Some(exclude) = list("exclude") {
            self.config.exclude = exclude;
        }
        if let Some(Value::Array(environments)) = section.get("executionEnvironments") {
            let environments = environments.iter().map(|environment| {
                let root = environment
                    .get("root")
                    .and_then(Value::as_str)
                    .map_or(folder.clone(), |r| folder.join(r));
                let paths = environment.get("extraPaths").and_then(Value::as_array);
                let extra_paths = paths.map(|paths| self.expanded(&strings(paths), folder));
                ExecutionEnvironment { root, extra_paths }
            });
            self.config.execution_environments = environments.collect();
        }
    }

    fn expanded(&self, paths: &[String], folder: &AbsPath) -> Vec<AbsPath> {
        let mut all = Vec::new();
        for path in paths.iter().filter(|path| !path.trim().is_empty()) {
            let found = if path.contains(['*', '?']) {
                self.matching_folders(path, folder)
            } else {
                vec![folder.join(path)]
            };
            for path in found {
                if !all.contains(&path) {
                    all.push(path);
                }
            }
        }
        all
    }

    /// The folders that match a path with wildcards, sorted.
    fn matching_folders(&self, pattern: &str, folder: &AbsPath) -> Vec<AbsPath> {
        let start = if pattern.starts_with('/') { folder.join("/") } else { folder.clone() };
        let segments: Vec<&str> =
            pattern.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
        let mut found = Vec::new();
        let mut stack = vec![(start, 0)];
        for _ in 0..MAX_EXPANDED_FOLDERS {
            let Some((folder, depth)) = stack.pop() else { break };
            let Some(&segment) = segments.get(depth) else {
                found.push(folder);
                continue;
            };
            if !segment.contains(['*', '?']) {
                let next = folder.join(segment);
                if self.files.kind(&next) == FileKind::Folder {
                    stack.push((next, depth + 1));
                }
                continue;
            }
            if segment == "**" {
                stack.push((folder.clone(), depth + 1));
            }
            for name in self.files.list(&folder) {
                let next = folder.join(&name);
                let enters = if segment == "**" { !name.starts_with('.') } else { matches(segment, &name) };
                if enters && self.files.kind(&next) == FileKind::Folder {
                    stack.push((next, if segment == "**" { depth } else { depth + 1 }));
                }
            }
        }
        found.sort();
        found.dedup();
        found
    }
}

fn strings(items: &[Value]) -> Vec<String> {
    items.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Whether a name matches one segment of a pattern with `*` and `?`.
fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    let (mut p, mut n) = (0, 0);
    // Where to continue after the last `*` consumes one more character.
    let mut retry: Option<(usize, usize)> = None;
    while n < name.len() {
        if pattern.get(p) == Some(&'*') {
            p += 1;
            retry = Some((p, n));
        } else if pattern.get(p).is_some_and(|&c| c == '?' || c == name[n]) {
            (p, n) = (p + 1, n + 1);
        } else if let Some((after, taken)) = retry {
            (p, n) = (after, taken + 1);
            retry = Some((p, n));
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|&c| c == '*')
}

/// A path relative to the workspace root, with `../` for each level above it.
fn relative(path: &AbsPath, root: &AbsPath) -> String {
    let mut up = String::new();
    let mut folder = root.clone();
    loop {
        if let Some(rest) = path.strip_prefix(&folder) {
            return format!("{up}{rest}");
        }
        up.push_str("../");
        folder = folder.parent();
    }
}

/// Removes comments and trailing commas from JSON. Line ends are kept, so that an error has the right line number.
fn plain_json(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    // The position in `out` of the last comma, if only white space and comments follow it.
    let mut comma: Option<usize> = None;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, chars.peek()) {
            ('"', _) => {
                comma = None;
                out.push(c);
                while let Some(inner) = chars.next() {
                    out.push(inner);
                    match inner {
                        '\\' => out.extend(chars.next()),
                        '"' => break,
                        _ => {}
                    }
                }
            }
            ('/', Some('/')) => while chars.next_if(|&inner| inner != '\n').is_some() {},
            ('/', Some('*')) => {
                chars.next();
                let mut before = ' ';
                for inner in chars.by_ref() {
                    if inner == '\n' {
                        out.push(inner);
                    }
                    if before == '*' && inner == '/' {
                        break;
                    }
                    before = inner;
                }
            }
            (',', _) => {
                comma = Some(out.len());
                out.push(c);
            }
            ('}' | ']', _) => {
                if let Some(at) = comma.take() {
                    out.replace_range(at..=at, " ");
                }
                out.push(c);
            }
            _ => {
                if !c.is_whitespace() {
                    comma = None;
                }
                out.push(c);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::files::MemoryFiles;
    use super::*;

    fn at(path: &str) -> AbsPath {
        AbsPath::new(path).unwrap()
    }

    fn read(files: &[(&str, &str)]) -> ServerConfig {
        ServerConfig::read(&MemoryFiles::new(files.iter().copied()), &at("/w"), ServerKind::Pyright)
    }

    #[test]
    fn json_with_comments_wins_over_pyproject() {
        let config = read(&[
            ("/w/pyproject.toml", "[tool.pyright]\nextraPaths = ['x']\n"),
            (
                "/w/pyrightconfig.json",
                "{ // a comment, with \"quotes\"\n \"extraPaths\": [\"lib\", \"a//b\",], /* , */\n \"stubPath\": \"stubs\",\n}",
            ),
        ]);
        assert_eq!(config.problems, Vec::<String>::new());
        assert_eq!(config.extra_paths, Some(vec![at("/w/lib"), at("/w/a/b")]));
        assert_eq!(config.stub_path, Some(at("/w/stubs")));
        assert_eq!(config.files.keys().collect::<Vec<_>>(), ["pyrightconfig.json"]);
    }

    #[test]
    fn paths_in_extended_files_are_relative_to_them_and_nearer_files_win() {
        let config = read(&[
            ("/w/pyrightconfig.json", r#"{"extends": "conf/base.json", "venv": "mine"}"#),
            ("/w/conf/base.json", r#"{"extends": "../../up.toml", "venv": "theirs", "venvPath": "envs"}"#),
            ("/up.toml", "[tool.pyright]\nextraPaths = ['w/one']\nvenv = 'top'\n"),
        ]);
        assert_eq!(config.problems, Vec::<String>::new());
        assert_eq!(config.extra_paths, Some(vec![at("/w/one")]));
        assert_eq!(config.venv_folder(), Some(at("/w/conf/envs/mine")));
        assert_eq!(
            config.files.keys().collect::<Vec<_>>(),
            ["../up.toml", "conf/base.json", "pyrightconfig.json"]
        );
    }

    #[test]
    fn a_cycle_of_extends_ends() {
        let config =
            read(&[("/w/pyrightconfig.json", r#"{"extends": "./pyrightconfig.json", "venv": "v"}"#)]);
        assert_eq!(config.venv.as_deref(), Some("v"));
        assert_eq!(config.problems, ["pyrightconfig.json: its chain of \"extends\" is circular or too long"]);
    }

    #[test]
    fn invalid_files_are_reported_as_problems() {
        let config = read(&[("/w/pyrightconfig.json", "{\n\"extraPaths\": [\n}"), ("/w/pyproject.toml", "")]);
        assert_eq!(config.problems, ["pyrightconfig.json: it is not valid JSON: line 3"]);
        assert_eq!(config.files.len(), 1);
        assert_eq!(config.extra_paths, None);
        let config = read(&[("/w/pyproject.toml", "[tool.pyright\n")]);
        assert_eq!(config.problems, ["pyproject.toml: it is not valid TOML"]);
    }

    #[test]
    fn the_search_goes_up_from_a_project_file_without_the_section() {
        let config = read(&[
            ("/w/pyproject.toml", "[project]\nname = 'x'\n"),
            ("/pyrightconfig.json", r#"{"extraPaths": ["lib"]}"#),
        ]);
        assert_eq!(config.extra_paths, Some(vec![at("/lib")]));
        assert_eq!(config.files.keys().collect::<Vec<_>>(), ["../pyrightconfig.json", "pyproject.toml"]);
        // Without a configuration file in its root, the workspace has no configuration.
        assert_eq!(read(&[("/pyrightconfig.json", "{}")]), ServerConfig::default());
    }

    #[test]
    fn basedpyright_reads_its_own_section() {
        let files = MemoryFiles::new([("/w/pyproject.toml", "[tool.basedpyright]\nvenv = 'b'\n")]);
        let venv = |server| ServerConfig::read(&files, &at("/w"), server).venv;
        assert_eq!(venv(ServerKind::Basedpyright).as_deref(), Some("b"));
        assert_eq!(venv(ServerKind::Pyright), None);
    }

    #[test]
    fn execution_environments_and_wildcards() {
        let config = read(&[
            (
                "/w/pyrightconfig.json",
                r#"{"executionEnvironments": [{"root": "a"}, {"root": "b", "extraPaths": ["libs/*/src"]}]}"#,
            ),
            ("/w/libs/two/src/x.py", ""),
            ("/w/libs/one/src/x.py", ""),
            ("/w/libs/three/x.py", ""),
        ]);
        assert_eq!(
            config.execution_environments,
            [
                ExecutionEnvironment { root: at("/w/a"), extra_paths: None },
                ExecutionEnvironment {
                    root: at("/w/b"),
                    extra_paths: Some(vec![at("/w/libs/one/src"), at("/w/libs/two/src")])
                },
            ]
        );
    }
}
