//! Replaces the machine's paths with portable URIs, in paths and in texts.

use serde::{Deserialize, Serialize};

use crate::path::{AbsPath, DocUri, WorkspacePath, is_environment_folder};

/// The kind of a folder that has a portable name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum RootKind {
    Workspace,
    Env,
    EnvBase,
    Server,
}

/// Maps folders of the machine to portable names.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct PathMap {
    /// Invariant: longest path first, so that the first match is the innermost folder.
    roots: Vec<(AbsPath, RootKind)>,
}

impl PathMap {
    /// An empty map: every file is `file://`.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the root of the workspace.
    #[must_use]
    pub fn workspace(self, root: AbsPath) -> Self {
        self.with(root, RootKind::Workspace)
    }

    /// Adds the prefix of the Python environment.
    #[must_use]
    pub fn env(self, prefix: AbsPath) -> Self {
        self.with(prefix, RootKind::Env)
    }

    /// Adds the prefix of the interpreter below a virtual environment.
    #[must_use]
    pub fn env_base(self, prefix: AbsPath) -> Self {
        self.with(prefix, RootKind::EnvBase)
    }

    /// Adds the folder of the server's package.
    #[must_use]
    pub fn server(self, package: AbsPath) -> Self {
        self.with(package, RootKind::Server)
    }

    fn with(mut self, root: AbsPath, kind: RootKind) -> Self {
        if !self.roots.iter().any(|(known, _)| *known == root) {
            self.roots.push((root, kind));
            self.roots
                .sort_by(|(a, _), (b, _)| b.as_str().len().cmp(&a.as_str().len()).then_with(|| a.cmp(b)));
        }
        self
    }

    /// The folders, each with the name of its kind.
    pub fn folders(&self) -> impl Iterator<Item = (&AbsPath, &'static str)> + '_ {
        self.roots.iter().map(|(root, kind)| {
            let name = match kind {
                RootKind::Workspace => "workspace",
                RootKind::Env => "env",
                RootKind::EnvBase => "base",
                RootKind::Server => "server",
            };
            (root, name)
        })
    }

    /// The portable URI of a file.
    #[must_use]
    pub fn uri(&self, path: &AbsPath) -> DocUri {
        for (root, kind) in &self.roots {
            let Some(rest) = path.strip_prefix(root).filter(|rest| !rest.is_empty()) else { continue };
            let is_own = matches!(kind, RootKind::Env | RootKind::EnvBase) && self.is_own_code(root, rest);
            if is_own {
                continue;
            }
            return match kind {
                RootKind::Workspace => match WorkspacePath::new(rest) {
                    Some(path) => DocUri::Workspace(path),
                    None => continue,
                },
                RootKind::Env => DocUri::Env(rest.to_owned()),
                RootKind::EnvBase => DocUri::Env(format!("{BASE}{rest}")),
                RootKind::Server => DocUri::Server(rest.to_owned()),
            };
        }
        DocUri::File(path.clone())
    }

    /// Whether a file of an environment is code of the workspace around it: no tool put it there. A hidden environment has none.
    fn is_own_code(&self, environment: &AbsPath, inside: &str) -> bool {
        let is_around = |(root, kind): &(AbsPath, RootKind)| {
            *kind == RootKind::Workspace
                && environment.strip_prefix(root).is_some_and(|inside| !format!("/{inside}").contains("/."))
        };
        let folder = inside.split_once('/').map_or("", |(folder, _)| folder);
        self.roots.iter().any(is_around) && !is_environment_folder(folder)
    }

    /// The file of a portable URI on this machine; `None` if its folder is not in the map.
    #[must_use]
    pub fn absolute(&self, uri: &DocUri) -> Option<AbsPath> {
        let root = |wanted| self.roots.iter().find(|(_, kind)| *kind == wanted).map(|(root, _)| root);
        match uri {
            DocUri::Workspace(path) => root(RootKind::Workspace).map(|root| root.join(path.as_str())),
            DocUri::Env(path) => match path.strip_prefix(BASE) {
                Some(rest) => root(RootKind::EnvBase).map(|root| root.join(rest)),
                None => root(RootKind::Env).map(|root| root.join(path)),
            },
            DocUri::Server(path) => root(RootKind::Server).map(|root| root.join(path)),
            DocUri::File(path) => Some(path.clone()),
        }
    }

    /// `text` with every known folder replaced by its portable name.
    #[must_use]
    pub fn text(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        'scan: while let Some(c) = rest.chars().next() {
            if c == '/' || rest.starts_with("file:///") {
                let path = rest.strip_prefix("file://").unwrap_or(rest);
                let inside = out
                    .chars()
                    .next_back()
                    .is_some_and(|before| before.is_alphanumeric() || "_-./".contains(before));
                for (root, kind) in self.roots.iter().filter(|_| !inside) {
                    let Some(after) = path.strip_prefix(root.as_str()) else { continue };
                    // `/work` is not a folder of `/workshop`.
                    if after.starts_with(|next: char| next.is_alphanumeric() || "_-.".contains(next)) {
                        continue;
                    }
                    out.push_str(match kind {
                        RootKind::Workspace => "",
                        RootKind::Env => "env://",
                        RootKind::EnvBase => "env://~base/",
                        RootKind::Server => "server://",
                    });
                    rest = after.strip_prefix('/').unwrap_or(after);
                    if out.is_empty() && rest.is_empty() {
                        out.push('.');
                    }
                    continue 'scan;
                }
            }
            out.push(c);
            rest = &rest[c.len_utf8()..];
        }
        out
    }
}

const BASE: &str = "~base/";

#[cfg(test)]
mod tests {
    use super::*;

    fn at(path: &str) -> AbsPath {
        AbsPath::new(path).unwrap()
    }

    fn map() -> PathMap {
        PathMap::new()
            .workspace(at("/home/u/w"))
            .env(at("/home/u/w/.venv"))
            .env_base(at("/usr"))
            .server(at("/c/pyright"))
    }

    #[test]
    fn the_innermost_folder_names_a_file() {
        for (path, uri) in [
            ("/home/u/w/a b.py", "a%20b.py"),
            ("/home/u/w/.venv/lib/x.py", "env://lib/x.py"),
            ("/home/u/w/.venv/own/x.py", "env://own/x.py"),
            ("/usr/lib/python3/os.py", "env://~base/lib/python3/os.py"),
            ("/c/pyright/dist/x.pyi", "server://dist/x.pyi"),
            ("/etc/x.py", "file:///etc/x.py"),
            ("/home/u/wide/x.py", "file:///home/u/wide/x.py"),
        ] {
            let made = map().uri(&at(path));
            assert_eq!(made.to_string(), uri);
            assert_eq!(map().absolute(&made), Some(at(path)));
        }
    }

    #[test]
    fn code_beside_the_folders_of_an_environment_is_the_workspaces() {
        let map = PathMap::new().workspace(at("/w")).env(at("/w/env"));
        for (path, uri) in [
            ("/w/env/own/x.py", "env/own/x.py"),
            ("/w/env/x.py", "env/x.py"),
            ("/w/env/lib/x.py", "env://lib/x.py"),
            ("/w/env/src/p/x.py", "env://src/p/x.py"),
        ] {
            assert_eq!(map.uri(&at(path)).to_string(), uri);
        }
    }

    #[test]
    fn paths_in_texts_become_portable() {
        for (text, expected) in [
            ("in \"/home/u/w/a.py\"", "in \"a.py\""),
            ("see file:///home/u/w/a.py#L1", "see a.py#L1"),
            ("/usr/lib/x and /usrx/lib", "env://~base/lib/x and /usrx/lib"),
            ("x/usr/lib", "x/usr/lib"),
            ("a / b // c", "a / b // c"),
        ] {
            assert_eq!(map().text(text), expected);
        }
    }
}
