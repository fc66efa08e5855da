//! Resolves the URI or path of an edit to a file of the workspace.
//!
//! Edits are untrusted input: from a server, a model, a file. A name is decoded once and then checked by its parts. A `..`
//! (also percent-encoded), a NUL or a `.git` folder is rejected, even if the path would lead back into the workspace.
//! Symbolic links are checked on the disk, not here.

use crate::path::{AbsPath, WorkspacePath, decode_percent, touches_git};

/// Why a name is not the name of a workspace file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// The scheme is not `file:`, or the host is not this machine.
    #[error("{0:?} is not a file on this machine")]
    NotLocal(String),
    /// The name does not decode to a path.
    #[error("{0:?} does not decode to a path")]
    Encoding(String),
    /// The path has a part `..`.
    #[error("{0:?} contains `..`")]
    Climbs(String),
    /// The path is outside the workspace.
    #[error("{0:?} is outside the workspace")]
    Outside(String),
    /// The path is in a `.git` folder.
    #[error("{0:?} is in a `.git` folder")]
    Git(String),
}

/// Resolves a URI of an edit to a file of the workspace at `root`: a `file:` URI, or a percent-encoded path relative to the
/// workspace, as in bundles.
///
/// # Errors
/// See [`TargetError`].
pub fn of_uri(root: &AbsPath, uri: &str) -> Result<WorkspacePath, TargetError> {
    let scheme = uri.split_once(':').map(|(scheme, _)| scheme).filter(|scheme| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    });
    let rest = match scheme {
        None => uri,
        Some(scheme) if scheme.eq_ignore_ascii_case("file") => {
            let rest = &uri[5..];
            match rest.strip_prefix("//") {
                None => rest,
                Some(rest) => {
                    let at = rest.find('/').ok_or_else(|| TargetError::NotLocal(uri.to_owned()))?;
                    let host = &rest[..at];
                    if !host.is_empty() && !host.eq_ignore_ascii_case("localhost") {
                        return Err(TargetError::NotLocal(uri.to_owned()));
                    }
                    &rest[at..]
                }
            }
        }
        Some(_) => return Err(TargetError::NotLocal(uri.to_owned())),
    };
    let decoded = decode_percent(rest).ok_or_else(|| TargetError::Encoding(uri.to_owned()))?;
    of_path(root, &decoded).map_err(|error| error.about(uri))
}

/// Resolves a path that is not encoded, absolute or relative to the workspace, to a file of the workspace.
///
/// # Errors
/// See [`TargetError`].
pub fn of_path(root: &AbsPath, path: &str) -> Result<WorkspacePath, TargetError> {
    if path.contains('\0') {
        return Err(TargetError::Encoding(path.to_owned()));
    }
    if path.split(['/', '\\']).any(|part| part == "..") {
        return Err(TargetError::Climbs(path.to_owned()));
    }
    let outside = || TargetError::Outside(path.to_owned());
    let normal = root.join(path);
    let inside = normal.strip_prefix(root).and_then(WorkspacePath::new).ok_or_else(outside)?;
    if touches_git(inside.as_str()) {
        return Err(TargetError::Git(path.to_owned()));
    }
    Ok(inside)
}

impl TargetError {
    /// The same error with the URI as it was given.
    fn about(self, uri: &str) -> Self {
        let uri = uri.to_owned();
        match self {
            Self::NotLocal(_) => Self::NotLocal(uri),
            Self::Encoding(_) => Self::Encoding(uri),
            Self::Climbs(_) => Self::Climbs(uri),
            Self::Outside(_) => Self::Outside(uri),
            Self::Git(_) => Self::Git(uri),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(uri: &str) -> Result<String, TargetError> {
        of_uri(&AbsPath::new("/w/x").unwrap(), uri).map(|path| path.to_string())
    }

    #[test]
    fn names_of_files_of_the_workspace() {
        for uri in
            ["a/b.py", "./a/b.py", "file:///w/x/a/b.py", "FILE://localhost/w/x/a%2Fb.py", "/w/x/a/b.py"]
        {
            assert_eq!(of(uri).as_deref(), Ok("a/b.py"), "{uri}");
        }
        assert_eq!(of("file:///w/x/%C3%BC%20(1).py").as_deref(), Ok("ü (1).py"));
        assert_eq!(of("a/..b.py").as_deref(), Ok("a/..b.py"));
    }

    #[test]
    fn names_outside_the_workspace_are_rejected() {
        for uri in ["../a", "a/../b", "a%2F..%2F..%2Fb", "file:///w/x/../x/a", "a/%2e%2e/b", "a\\..\\b"] {
            assert!(matches!(of(uri), Err(TargetError::Climbs(_))), "{uri}");
        }
        for uri in ["/etc/passwd", "file:///etc/passwd", "file:///w/xy", "file:///w/x", "", "."] {
            assert!(matches!(of(uri), Err(TargetError::Outside(_))), "{uri}");
        }
        for uri in
            [".git/config", "a/.GIT/hooks/x", "file:///w/x/.git/HEAD", ".git\\hooks\\x", "a/GIT~1/config"]
        {
            assert!(matches!(of(uri), Err(TargetError::Git(_))), "{uri}");
        }
        for uri in ["a%00b", "%zz", "file:///w/x/a%00"] {
            assert!(matches!(of(uri), Err(TargetError::Encoding(_))), "{uri}");
        }
        for uri in ["http://h/a", "untitled:1", "file://host/w/x/a", "file://"] {
            assert!(matches!(of(uri), Err(TargetError::NotLocal(_))), "{uri}");
        }
    }
}
