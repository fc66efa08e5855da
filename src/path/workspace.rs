//! Paths inside the workspace.

use std::fmt;
use std::sync::Arc;

/// A file or folder inside the workspace: relative, `/` as separator, UTF-8, no `.`, no `..`, not empty.
///
/// Ordered by its text, which is the order of every list in a bundle. Clones share the text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkspacePath(Arc<str>);

impl WorkspacePath {
    /// A relative path; `None` if it is not in the form above.
    #[must_use]
    pub fn new(path: &str) -> Option<Self> {
        let normal = path.split('/').all(|part| !matches!(part, "" | "." | ".."));
        (normal && !path.contains('\0')).then(|| Self(path.into()))
    }

    /// The text of the path.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this is a Python source or stub file.
    #[must_use]
    pub fn is_python(&self) -> bool {
        super::is_python(&self.0)
    }
}

impl fmt::Display for WorkspacePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl serde::Serialize for WorkspacePath {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> serde::Deserialize<'de> for WorkspacePath {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <String as serde::Deserialize>::deserialize(deserializer)?;
        Self::new(&text)
            .ok_or_else(|| serde::de::Error::custom(format!("{text:?} is not a path inside the workspace")))
    }
}
