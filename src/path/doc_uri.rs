//! The portable URIs of bundles and selectors.

use std::fmt;

use super::{AbsPath, WorkspacePath, encode_portable, percent};

/// A URI of a file that does not depend on the machine.
///
/// In the printed form `#`, `?`, `%`, `"` and white space are percent-encoded, so that a selector can follow it.
/// Ordered by the printed form.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum DocUri {
    /// A file of the workspace: its relative path.
    Workspace(WorkspacePath),
    /// A file of the Python environment, relative to its prefix: `env://lib/python3.13/site-packages/…`. Files of
    /// the interpreter below a virtual environment are `env://~base/…`.
    Env(String),
    /// A file of the server's package, such as a typeshed stub: `server://dist/typeshed-fallback/stdlib/…`.
    Server(String),
    /// Any other file: `file:///…`.
    File(AbsPath),
}

impl DocUri {
    /// Parses the printed form. Relative paths may start with `./`; `None` if the text is not a document URI.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let decode = |rest: &str| percent::decode(rest).filter(|path| !path.contains('\0'));
        if let Some(rest) = text.strip_prefix("env://") {
            return decode(rest).filter(|path| WorkspacePath::new(path).is_some()).map(Self::Env);
        }
        if let Some(rest) = text.strip_prefix("server://") {
            return decode(rest).filter(|path| WorkspacePath::new(path).is_some()).map(Self::Server);
        }
        if text.starts_with("file:") {
            return super::FileUri::parse_path(text).ok().and_then(upper_case_drive).map(Self::File);
        }
        if text.contains("://") {
            return None;
        }
        let path = decode(text)?;
        if path.starts_with('/') {
            return AbsPath::new(&path).ok().and_then(upper_case_drive).map(Self::File);
        }
        let mut path = path.as_str();
        while let Some(rest) = path.strip_prefix("./") {
            path = rest;
        }
        WorkspacePath::new(path).map(Self::Workspace)
    }

    /// The path of a workspace file; `None` for other files.
    #[must_use]
    pub fn workspace_path(&self) -> Option<&WorkspacePath> {
        match self {
            Self::Workspace(path) => Some(path),
            Self::Env(_) | Self::Server(_) | Self::File(_) => None,
        }
    }
}

/// `/c:/x.py` as `/C:/x.py`: the drive of a Windows path has one spelling.
fn upper_case_drive(path: AbsPath) -> Option<AbsPath> {
    match *path.as_str().as_bytes() {
        [b'/', drive, b':', b'/', ..] if drive.is_ascii_lowercase() => {
            let rest = &path.as_str()[2..];
            AbsPath::new(format!("/{}{rest}", char::from(drive.to_ascii_uppercase()))).ok()
        }
        _ => Some(path),
    }
}

impl fmt::Display for DocUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Workspace(path) => f.write_str(&encode_portable(path.as_str())),
            Self::Env(path) => write!(f, "env://{}", encode_portable(path)),
            Self::Server(path) => write!(f, "server://{}", encode_portable(path)),
            Self::File(path) => write!(f, "file://{}", encode_portable(path.as_str())),
        }
    }
}

impl Ord for DocUri {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.to_string().cmp(&other.to_string())
    }
}

impl PartialOrd for DocUri {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl serde::Serialize for DocUri {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for DocUri {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <String as serde::Deserialize>::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom(format!("{text:?} is not a document URI")))
    }
}

impl schemars::JsonSchema for DocUri {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "DocUri".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "description": "path relative to the workspace, or env://… (Python environment), server://… (shipped with the server), file://…; '#', '?', '%', '\"' and white space percent-encoded"
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_is_the_inverse_of_print() {
        for text in [
            "a/b.py",
            "a%20b/%23c.py",
            "env://lib/python3.13/os.py",
            "server://dist/x.pyi",
            "file:///etc/x.py",
            "ü.py",
        ] {
            assert_eq!(DocUri::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn paths_that_leave_the_workspace_are_rejected() {
        for text in ["../a.py", "a/../../b.py", "", "a//b.py", "env://../x", "http://x/y.py", "a%00.py"] {
            assert_eq!(DocUri::parse(text), None, "{text}");
        }
        assert!(matches!(DocUri::parse("/etc/x.py"), Some(DocUri::File(_))));
        assert_eq!(DocUri::parse("./a.py").unwrap().to_string(), "a.py");
    }

    #[test]
    fn a_drive_has_one_spelling() {
        for text in ["file:///c:/x.py", "file:///C:/x.py", "file:///c%3A/x.py", "/c:/x.py"] {
            assert_eq!(DocUri::parse(text).unwrap().to_string(), "file:///C:/x.py", "{text}");
        }
        assert_eq!(DocUri::parse("/cc:/x.py").unwrap().to_string(), "file:///cc:/x.py");
    }
}
