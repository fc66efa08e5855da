//! Which files the server's configuration includes: Pyright's `include` and `exclude`.
//!
//! A pattern matches a file, or a folder with everything below it. `**` matches any number of folders; `*` and `?`
//! match within a name. Source: Pyright's documentation, "Configuration". The walk already skips what Pyright excludes
//! by default.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use super::server_config::ServerConfig;
use crate::path::WorkspacePath;

/// The include and exclude patterns of a server configuration.
#[derive(Debug)]
pub struct IncludeFilter {
    /// `None` includes every file.
    include: Option<GlobSet>,
    exclude: GlobSet,
}

impl IncludeFilter {
    /// Compiles the patterns. An invalid pattern matches nothing, as in the server.
    #[must_use]
    pub fn new(config: &ServerConfig) -> Self {
        let includes_all = config.include.is_empty();
        Self {
            include: (!includes_all).then(|| glob_set(&config.include)),
            exclude: glob_set(&config.exclude),
        }
    }

    /// Whether a file is included.
    #[must_use]
    pub fn includes(&self, path: &WorkspacePath) -> bool {
        let included = self.include.as_ref().is_none_or(|include| include.is_match(path.as_str()));
        included && !self.exclude.is_match(path.as_str())
    }
}

fn glob_set(patterns: &[String]) -> GlobSet {
    let mut builder = GlobSetBuilder::new();
    for pattern in patterns {
        let pattern = pattern.trim_start_matches("./").trim_end_matches('/');
        // The server treats brackets and braces as ordinary characters.
        let pattern: String = match pattern {
            "" | "." => "**".to_owned(),
            pattern => pattern
                .chars()
                .map(|c| if "[]{}".contains(c) { format!("[{c}]") } else { c.to_string() })
                .collect(),
        };
        for form in [pattern.clone(), format!("{pattern}/**")] {
            if let Ok(glob) = GlobBuilder::new(&form).literal_separator(true).backslash_escape(false).build()
            {
                builder.add(glob);
            }
        }
    }
    builder.build().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(include: &[&str], exclude: &[&str], path: &str) -> bool {
        let list = |patterns: &[&str]| patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
        let config =
            ServerConfig { include: list(include), exclude: list(exclude), ..ServerConfig::default() };
        IncludeFilter::new(&config).includes(&WorkspacePath::new(path).unwrap())
    }

    #[test]
    fn patterns_match_as_in_pyright() {
        assert!(check(&[], &[], "a/b.py"));
        assert!(check(&["src"], &[], "src/a/b.py"));
        assert!(check(&["./src/"], &[], "src/a.py"));
        assert!(check(&["."], &[], "src/a.py"));
        assert!(check(&["src/a.py"], &[], "src/a.py"));
        assert!(!check(&["src"], &[], "srcs/a.py"));
        assert!(check(&["**/tests"], &[], "x/tests/a.py"));
        assert!(check(&["**/tests"], &[], "tests/a.py"));
        assert!(!check(&["*"], &["**/test_*.py"], "x/test_a.py"));
        assert!(!check(&[], &["build"], "build/lib/a.py"));
        assert!(check(&["src/*"], &[], "src/a/b.py"));
    }
}
