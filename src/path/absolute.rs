//! Absolute paths.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An absolute path in UTF-8, lexically normal: no `.`, no `..`, no doubled or trailing separator.
///
/// Symbolic links are not resolved: two of these can name one file. Clones share the text, because an answer can have ten
/// thousand locations in the same files.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AbsPath {
    /// Invariant: starts with `/`, components are normal.
    text: Arc<str>,
}

/// Why a path cannot be an [`AbsPath`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AbsPathError {
    /// The path is relative.
    #[error("{0:?} is not an absolute path")]
    Relative(PathBuf),
    /// The path is not UTF-8, so it cannot be written to a JSON bundle.
    #[error("the path {0:?} is not UTF-8")]
    NotUtf8(PathBuf),
}

impl Serialize for AbsPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for AbsPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

impl AbsPath {
    /// Normalizes an absolute path lexically.
    ///
    /// # Errors
    /// If the path is relative or not UTF-8.
    pub fn new(path: impl AsRef<Path>) -> Result<Self, AbsPathError> {
        let path = path.as_ref();
        let text = path.to_str().ok_or_else(|| AbsPathError::NotUtf8(path.to_owned()))?;
        if !text.starts_with('/') {
            return Err(AbsPathError::Relative(path.to_owned()));
        }
        Ok(Self { text: normalize(text) })
    }

    /// `self` followed by a relative path, which may contain `..`.
    #[must_use]
    pub fn join(&self, relative: &str) -> Self {
        if relative.starts_with('/') {
            return Self { text: normalize(relative) };
        }
        Self { text: normalize(&format!("{}/{relative}", self.text)) }
    }

    /// The folder above; the root is its own parent.
    #[must_use]
    pub fn parent(&self) -> Self {
        self.join("..")
    }

    /// The last component, empty for the root.
    #[must_use]
    pub fn file_name(&self) -> &str {
        self.text.rsplit('/').next().unwrap_or_default()
    }

    /// The path of `self` relative to `root`; empty if they are equal, `None` if `self` is not inside `root`.
    #[must_use]
    pub fn strip_prefix(&self, root: &Self) -> Option<&str> {
        let rest = self.text.strip_prefix(root.text.trim_end_matches('/'))?;
        if rest.is_empty() { Some("") } else { rest.strip_prefix('/') }
    }

    /// The text of the path.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The path for calls into the standard library.
    #[must_use]
    pub fn as_path(&self) -> &Path {
        Path::new(&*self.text)
    }
}

impl fmt::Display for AbsPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn normalize(text: &str) -> Arc<str> {
    let mut parts: Vec<&str> = Vec::new();
    for part in text.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            name => parts.push(name),
        }
    }
    format!("/{}", parts.join("/")).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normal_form() {
        let path = AbsPath::new("/a//b/./c/../d/").unwrap();
        assert_eq!(path.as_str(), "/a/b/d");
        assert_eq!(path.join("../x").as_str(), "/a/b/x");
        assert_eq!(AbsPath::new("/../..").unwrap().as_str(), "/");
        assert!(AbsPath::new("a").is_err());
    }

    #[test]
    fn prefixes_end_at_components() {
        let at = |text: &str| AbsPath::new(text).unwrap();
        assert_eq!(at("/a/b/c").strip_prefix(&at("/a")), Some("b/c"));
        assert_eq!(at("/ab").strip_prefix(&at("/a")), None);
        assert_eq!(at("/a").strip_prefix(&at("/a")), Some(""));
        assert_eq!(at("/a").strip_prefix(&at("/")), Some("a"));
    }
}
