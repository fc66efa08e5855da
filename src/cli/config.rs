//! Configuration files: `lanser.toml` or `[tool.lanser]` of `pyproject.toml` in the workspace, and the user's own.
//!
//! A workspace's files are written by whoever wrote the code that is looked at, so they may never name a program to run:
//! `server-command` and `python` are read from the user's own file only, and refused in a workspace's.

use serde::Deserialize;

use crate::path::AbsPath;
use crate::workspace::files::read_bytes;

/// What a configuration file may set.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct FileConfig {
    /// `pyright`, `basedpyright`, each also with `@VERSION`.
    pub(crate) server: Option<String>,
    /// User's file only: the server's script, package folder or executable.
    pub(crate) server_command: Option<String>,
    /// User's file only: the interpreter whose environment the code is looked at in.
    pub(crate) python: Option<String>,
    /// `utf-8`, `utf-16` or `codepoint`.
    pub(crate) index_io: Option<String>,
    /// Seconds.
    pub(crate) timeout: Option<u64>,
    /// `workspace` or `configured`.
    pub(crate) scope: Option<String>,
    /// Seconds after which a background session without questions leaves.
    pub(crate) session_idle: Option<u64>,
    /// MiB above which a background session restarts its language server.
    pub(crate) session_memory: Option<u64>,
    /// User's file only: never install anything.
    pub(crate) offline: Option<bool>,
    /// Globs of the files that may be edited. A workspace's narrow what its user allows.
    pub(crate) allow: Vec<String>,
    /// Globs of files that may not be edited.
    pub(crate) deny: Vec<String>,
    /// `none`, `elsewhere` or `all`. A workspace's is the most that its user may allow.
    pub(crate) allow_dirty: Option<String>,
    /// Whether nothing is written when a selector is not certain. A workspace can only switch it on.
    pub(crate) deny_apply_on_ambiguous: Option<bool>,
    /// Whether nothing is written outside of the workspace. A workspace can only switch it on.
    pub(crate) workspace_jail: Option<bool>,
}

/// Why a configuration file cannot be used.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum ConfigError {
    /// It is no TOML, or has a key that lanser does not know.
    #[error("{path}: {reason}")]
    Syntax {
        /// The file.
        path: AbsPath,
        /// The parser's words.
        reason: String,
    },
    /// A workspace's file sets what only its user may.
    #[error("{path}: a workspace may not set {key:?}")]
    Forbidden {
        /// The file.
        path: AbsPath,
        /// The key.
        key: &'static str,
    },
}

#[derive(Debug, Default, Deserialize)]
struct Pyproject {
    #[serde(default)]
    tool: Tools,
}

#[derive(Debug, Default, Deserialize)]
struct Tools {
    lanser: Option<FileConfig>,
}

/// The workspace's configuration and the file it stands in. `lanser.toml` goes before `pyproject.toml`.
///
/// # Errors
/// See [`ConfigError`].
pub(crate) fn of_workspace(root: &AbsPath) -> Result<Option<(AbsPath, FileConfig)>, ConfigError> {
    let own = root.join("lanser.toml");
    let pyproject = root.join("pyproject.toml");
    let found = if let Some(config) = read::<FileConfig>(&own)? {
        Some((own, config))
    } else if read_text(&pyproject).is_some_and(|text| text.contains("lanser")) {
        read::<Pyproject>(&pyproject)?.and_then(|file| file.tool.lanser).map(|config| (pyproject, config))
    } else {
        None
    };
    if let Some((path, config)) = &found {
        let forbidden = [
            ("server-command", config.server_command.is_some()),
            ("python", config.python.is_some()),
            ("offline", config.offline.is_some()),
        ];
        if let Some((key, _)) = forbidden.into_iter().find(|(_, set)| *set) {
            return Err(ConfigError::Forbidden { path: path.clone(), key });
        }
    }
    Ok(found)
}

/// The user's configuration.
///
/// # Errors
/// When it cannot be read as configuration.
pub(crate) fn of_user(path: Option<&AbsPath>) -> Result<Option<FileConfig>, ConfigError> {
    path.map_or(Ok(None), read)
}

fn read_text(path: &AbsPath) -> Option<String> {
    read_bytes(path).ok().and_then(|bytes| String::from_utf8(bytes).ok())
}

fn read<T: for<'de> Deserialize<'de>>(path: &AbsPath) -> Result<Option<T>, ConfigError> {
    let Some(text) = read_text(path) else { return Ok(None) };
    toml::from_str(&text)
        .map(Some)
        .map_err(|error| ConfigError::Syntax { path: path.clone(), reason: error.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workspace(files: &[(&str, &str)]) -> (tempfile::TempDir, AbsPath) {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let root = AbsPath::new(folder.path()).unwrap();
        (folder, root)
    }

    #[test]
    fn either_file_and_its_own_first() {
        let (_keep, root) = workspace(&[("pyproject.toml", "[tool.lanser]\ntimeout = 5\n")]);
        assert_eq!(of_workspace(&root).unwrap().unwrap().1.timeout, Some(5));
        let (_keep, root) = workspace(&[
            ("pyproject.toml", "[tool.lanser]\ntimeout = 5\n"),
            ("lanser.toml", "timeout = 6\nserver = \"basedpyright\"\n"),
        ]);
        assert_eq!(of_workspace(&root).unwrap().unwrap().1.timeout, Some(6));
        let (_keep, root) = workspace(&[("pyproject.toml", "[project]\nname = 'x'\n")]);
        assert!(of_workspace(&root).unwrap().is_none());
    }

    #[test]
    fn a_workspace_names_no_program() {
        for text in ["server-command = 'evil.js'", "python = 'evil'", "offline = false"] {
            let (_keep, root) = workspace(&[("lanser.toml", text)]);
            assert!(matches!(of_workspace(&root), Err(ConfigError::Forbidden { .. })), "{text}");
        }
        let (_keep, root) = workspace(&[("lanser.toml", "timeuot = 3")]);
        assert!(matches!(of_workspace(&root), Err(ConfigError::Syntax { .. })));
    }
}
