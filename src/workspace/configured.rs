//! Which files a server's own configuration includes: Pyright's `include` and `exclude`.
//!
//! A pattern names a file or a folder with all that is below it; `**` is any number of folders, `*` and `?` stay within a
//! name. Source: Pyright's documentation, "Configuration". What is left out by default, the walk leaves out already.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use super::server_config::ServerConfig;
use crate::path::WorkspacePath;

/// The files that a configuration includes.
#[derive(Debug)]
pub struct Configured {
    /// `None` where everything is.
    include: Option<GlobSet>,
    exclude: GlobSet,
}

impl Configured {
    /// Reads the patterns. One that cannot be read matches nothing, as in the server.
    #[must_use]
    pub fn new(config: &ServerConfig) -> Self {
        let everything = config.include.is_empty();
        Self { include: (!everything).then(|| set(&config.include)), exclude: set(&config.exclude) }
    }

    /// Whether a file is included.
    #[must_use]
    pub fn includes(&self, path: &WorkspacePath) -> bool {
        let included = self.include.as_ref().is_none_or(|include| include.is_match(path.as_str()));
        included && !self.exclude.is_match(path.as_str())
    }
}

fn set(patterns: &[String]) -> GlobSet {
    let mut builder = GlobSetBuilder::new();
    for pattern in patterns {
        let pattern = pattern.trim_start_matches("./").trim_end_matches('/');
        // Brackets and braces are ordinary characters to the server.
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
        Configured::new(&config).includes(&WorkspacePath::new(path).unwrap())
    }

    #[test]
    fn patterns_of_pyright() {
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
