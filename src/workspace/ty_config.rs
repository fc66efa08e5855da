//! Reads ty's configuration files, as far as they affect where modules are found.
//!
//! Follows ty 0.0.105: the project is the nearest folder, from the workspace's root upwards, with a `ty.toml` or with a
//! `pyproject.toml` that has a `[tool.ty]` table; if there is none, the nearest folder with any `pyproject.toml`. The user's own
//! `ty.toml` is not read: the server gets no folder to look for it.

use toml::Table;

use super::files::{FileKind, Files};
use super::server_config::ServerConfig;
use crate::path::AbsPath;

/// Reads the configuration of a workspace.
pub(super) fn read(files: &dyn Files, root: &AbsPath) -> ServerConfig {
    let mut config = ServerConfig::default();
    let mut folder = root.clone();
    loop {
        for name in ["ty.toml", "pyproject.toml"] {
            let path = folder.join(name);
            if files.kind(&path) != FileKind::File {
                continue;
            }
            let text = config.read_file(files, &path, root);
            let Some(table) = text.and_then(|text| config.parse_toml(&text, &path, root)) else { continue };
            let section = match name {
                "ty.toml" => Some(&table),
                _ => table.get("tool").and_then(|tool| tool.get("ty")?.as_table()),
            };
            if let Some(section) = section {
                apply(&mut config, section, &folder);
                return config;
            }
        }
        let above = folder.parent();
        if above == folder {
            return config;
        }
        folder = above;
    }
}

/// Applies the `environment` table; its paths are relative to the project.
fn apply(config: &mut ServerConfig, section: &Table, project: &AbsPath) {
    let Some(environment) = section.get("environment").and_then(toml::Value::as_table) else { return };
    let list = |key: &str| {
        let items = environment.get(key)?.as_array()?;
        Some(items.iter().filter_map(toml::Value::as_str).map(|path| project.join(path)).collect::<Vec<_>>())
    };
    // `root` replaces the roots that ty detects, among them `src`.
    let roots = list("root");
    if let Some(extra) = list("extra-paths") {
        config.extra_paths = Some(extra.into_iter().chain(roots.unwrap_or_default()).collect());
    } else {
        config.extra_paths = roots;
    }
    let typeshed = environment.get("typeshed").and_then(toml::Value::as_str);
    config.typeshed_path = typeshed.map(|path| project.join(path));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::files::MemoryFiles;

    fn at(path: &str) -> AbsPath {
        AbsPath::new(path).unwrap()
    }

    fn read_of(files: &[(&str, &str)]) -> ServerConfig {
        read(&MemoryFiles::new(files.iter().copied()), &at("/a/w"))
    }

    #[test]
    fn the_nearest_section_wins_and_all_files_on_the_way_are_inputs() {
        let config = read_of(&[
            ("/a/w/pyproject.toml", "[project]\nname = 'w'\n"),
            ("/a/ty.toml", "[environment]\nextra-paths = ['lib', '/x']\nroot = ['./py']\n"),
            ("/a/pyproject.toml", "[tool.ty.environment]\nextra-paths = ['no']\n"),
        ]);
        assert_eq!(config.files.keys().collect::<Vec<_>>(), ["../ty.toml", "pyproject.toml"]);
        assert_eq!(config.extra_paths, Some(vec![at("/a/lib"), at("/x"), at("/a/py")]));
        let own = read_of(&[("/a/w/pyproject.toml", "[tool.ty.environment]\ntypeshed = 't'\n")]);
        assert_eq!((own.typeshed_path, own.extra_paths), (Some(at("/a/w/t")), None));
    }

    #[test]
    fn damaged_files_are_reported() {
        let config = read_of(&[("/a/w/ty.toml", "[[")]);
        assert_eq!(config.problems, ["ty.toml: it is not valid TOML"]);
        assert!(config.files.contains_key("ty.toml"));
    }
}
