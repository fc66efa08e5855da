//! Configuration files: `lanser.toml` or `[tool.lanser]` of `pyproject.toml` in the workspace, and the file of the user.
//!
//! The files of a workspace come from the author of the analyzed code, so they must not name a program to run:
//! `server-command` and `python` are only allowed in the user's file. Time and memory that they may ask for is limited.

use serde::Deserialize;

use crate::path::AbsPath;
use crate::workspace::files::{ReadError, canonical, read_bytes};

/// The settings of a configuration file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct FileConfig {
    /// `pyright`, `basedpyright` or `ty`, optionally with `@VERSION`.
    pub(crate) server: Option<String>,
    /// User's file only: the server's script, package folder or executable.
    pub(crate) server_command: Option<String>,
    /// User's file only: the interpreter whose environment is used for the analysis.
    pub(crate) python: Option<String>,
    /// `utf-8`, `utf-16`, `codepoint` or `utf-32`.
    pub(crate) index_io: Option<String>,
    /// Whether absolute paths are printed.
    pub(crate) absolute: Option<bool>,
    /// Seconds.
    pub(crate) timeout: Option<u64>,
    /// `workspace` or `configured`.
    pub(crate) scope: Option<String>,
    /// Analyzers whose diagnostics are added: `compile`, `ruff`, `mypy`.
    pub(crate) with: Option<Vec<String>>,
    /// Another server that is asked the same: `pyright`, `basedpyright`, `ty`.
    pub(crate) agree: Option<String>,
    /// Seconds without requests after which a background session exits.
    pub(crate) session_idle: Option<u64>,
    /// MiB above which a background session restarts its language server.
    pub(crate) session_memory: Option<u64>,
    /// User's file only: never install anything.
    pub(crate) offline: Option<bool>,
    /// Globs of the files that may be edited. Those of a workspace further restrict those of the user.
    pub(crate) allow: Vec<String>,
    /// Globs of files that may not be edited.
    pub(crate) deny: Vec<String>,
    /// `none`, `elsewhere` or `all`. The value of a workspace is an upper limit for the user's.
    pub(crate) allow_dirty: Option<String>,
    /// Whether to refuse to write when the target of a selector is uncertain. A workspace can only enable it.
    pub(crate) deny_apply_on_ambiguous: Option<bool>,
    /// Whether to refuse to write outside of the workspace. A workspace can only enable it.
    pub(crate) workspace_jail: Option<bool>,
}

/// Why a configuration file cannot be used.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum ConfigError {
    /// It is not TOML, or has an unknown key.
    #[error("{path}: {reason}")]
    Syntax {
        /// The file.
        path: AbsPath,
        /// The message of the parser.
        reason: String,
    },
    /// It exists and cannot be read. Going on without it would lose its guards, such as `deny`.
    #[error(transparent)]
    Unreadable(#[from] ReadError),
    /// The file of a workspace sets what only the user may set.
    #[error("{path}: a workspace must not set {key:?}")]
    Forbidden {
        /// The file.
        path: AbsPath,
        /// The key.
        key: &'static str,
    },
    /// The file of a workspace lets requests or sessions take more than a workspace may ask for.
    #[error("{path}: {key} is {value}, and a workspace may set at most {limit}")]
    TooMuch {
        /// The file.
        path: AbsPath,
        /// The key.
        key: &'static str,
        /// Its value.
        value: u64,
        /// The largest value.
        limit: u64,
    },
}

/// The largest values that a workspace's file may set. Seconds, seconds, MiB.
const WORKSPACE_LIMITS: [(&str, u64); 3] =
    [("timeout", 600), ("session-idle", 3_600), ("session-memory", 8_192)];

#[derive(Debug, Default, Deserialize)]
struct Pyproject {
    #[serde(default)]
    tool: ToolTables,
}

#[derive(Debug, Default, Deserialize)]
struct ToolTables {
    lanser: Option<FileConfig>,
}

/// The workspace's configuration and its file. `lanser.toml` takes precedence over `pyproject.toml`.
///
/// # Errors
/// See [`ConfigError`]. If the file is a link to outside of the workspace, no line of it is quoted.
pub(crate) fn of_workspace(root: &AbsPath) -> Result<Option<(AbsPath, FileConfig)>, ConfigError> {
    let own = root.join("lanser.toml");
    let pyproject = root.join("pyproject.toml");
    let parse_error = |path: &AbsPath, error: &toml::de::Error| {
        let reason = if canonical(path).strip_prefix(&canonical(root)).is_some() {
            error.to_string()
        } else {
            "no valid configuration; the file is a link to outside of the workspace, so its text is not shown"
                .to_owned()
        };
        ConfigError::Syntax { path: path.clone(), reason }
    };
    let found = if let Some(text) = read_text(&own)? {
        let config = toml::from_str(&text).map_err(|error| parse_error(&own, &error))?;
        Some((own, config))
    } else if let Some(text) = read_text(&pyproject)?.filter(|text| text.contains("lanser")) {
        let file: Pyproject = toml::from_str(&text).map_err(|error| parse_error(&pyproject, &error))?;
        file.tool.lanser.map(|config| (pyproject, config))
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
        let values = [config.timeout, config.session_idle, config.session_memory];
        for ((key, limit), value) in WORKSPACE_LIMITS.into_iter().zip(values) {
            if let Some(value) = value.filter(|value| *value > limit) {
                return Err(ConfigError::TooMuch { path: path.clone(), key, value, limit });
            }
        }
    }
    Ok(found)
}

/// The user's configuration.
///
/// # Errors
/// See [`ConfigError`].
pub(crate) fn of_user(path: Option<&AbsPath>) -> Result<Option<FileConfig>, ConfigError> {
    let Some(path) = path else { return Ok(None) };
    let Some(text) = read_text(path)? else { return Ok(None) };
    toml::from_str(&text)
        .map(Some)
        .map_err(|error| ConfigError::Syntax { path: path.clone(), reason: error.to_string() })
}

/// The text of a file; `None` if there is none.
fn read_text(path: &AbsPath) -> Result<Option<String>, ConfigError> {
    let bytes = match read_bytes(path) {
        Ok(bytes) => bytes,
        Err(ReadError::Missing { .. }) => return Ok(None),
        // A folder above is closed, such as HOME of another user. Git takes that for no file, too.
        Err(_) if std::fs::symlink_metadata(path.as_path()).is_err() => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    String::from_utf8(bytes)
        .map(Some)
        .map_err(|_| ConfigError::Syntax { path: path.clone(), reason: "not UTF-8".to_owned() })
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
    fn lanser_toml_takes_precedence_over_pyproject_toml() {
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
    fn a_workspace_must_not_name_a_program() {
        for text in ["server-command = 'evil.js'", "python = 'evil'", "offline = false"] {
            let (_keep, root) = workspace(&[("lanser.toml", text)]);
            assert!(matches!(of_workspace(&root), Err(ConfigError::Forbidden { .. })), "{text}");
        }
        let (_keep, root) = workspace(&[("lanser.toml", "timeuot = 3")]);
        assert!(matches!(of_workspace(&root), Err(ConfigError::Syntax { .. })));
    }

    #[test]
    fn a_workspace_must_not_ask_for_more_than_its_limits() {
        for (text, fits) in [
            ("timeout = 600", true),
            ("timeout = 601", false),
            ("session-idle = 3600", true),
            ("session-idle = 99999999", false),
            ("session-memory = 8192", true),
            ("session-memory = 9000", false),
        ] {
            let (_keep, root) = workspace(&[("lanser.toml", text)]);
            let found = of_workspace(&root);
            assert_eq!(found.is_ok(), fits, "{text}");
            assert_eq!(matches!(found, Err(ConfigError::TooMuch { .. })), !fits, "{text}");
            assert!(of_user(Some(&root.join("lanser.toml"))).is_ok(), "{text}");
        }
    }

    #[test]
    fn a_file_that_cannot_be_read_is_an_error() {
        let (_keep, root) = workspace(&[]);
        std::fs::create_dir(root.join("lanser.toml").as_path()).unwrap();
        assert!(matches!(of_workspace(&root), Err(ConfigError::Unreadable(_))));
        assert!(matches!(of_user(Some(&root.join("lanser.toml"))), Err(ConfigError::Unreadable(_))));
        assert!(of_user(Some(&root.join("absent/config.toml"))).unwrap().is_none());
    }

    #[cfg(unix)]
    #[test]
    fn a_link_to_outside_of_the_workspace_shows_nothing_of_its_target() {
        let (_keep, elsewhere) =
            workspace(&[("secret", "lanser hunter2\n"), ("shared.toml", "timeout = 7\n")]);
        for name in ["lanser.toml", "pyproject.toml"] {
            let (_keep, root) = workspace(&[]);
            std::os::unix::fs::symlink(elsewhere.join("secret").as_path(), root.join(name).as_path())
                .unwrap();
            let error = of_workspace(&root).unwrap_err();
            assert!(matches!(error, ConfigError::Syntax { .. }));
            assert!(!error.to_string().contains("hunter2"), "{error}");
        }
        let (_keep, root) = workspace(&[]);
        let shared = elsewhere.join("shared.toml");
        std::os::unix::fs::symlink(shared.as_path(), root.join("lanser.toml").as_path()).unwrap();
        assert_eq!(of_workspace(&root).unwrap().unwrap().1.timeout, Some(7));
    }
}
