//! Which file of the workspace a URI or a path of an edit names, and why it names none.
//!
//! An edit comes from outside: from a server, a model, a file. So a name is decoded once and then taken apart; whatever
//! would climb (`..`, also percent-encoded), end a string (NUL) or reach into git's own folder is refused, even where the
//! way would come back in. Links are not looked at here but on the disk.

use crate::path::{AbsPath, WorkspacePath, decode_percent};

/// Why a name is none of a file of the workspace.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// It is another scheme than `file:`, or another host.
    #[error("{0:?} is no file of this machine")]
    NotLocal(String),
    /// It does not decode to a path.
    #[error("{0:?} does not decode to a path")]
    Encoding(String),
    /// It has a part `..`.
    #[error("{0:?} climbs out with `..`")]
    Climbs(String),
    /// It is outside of the workspace.
    #[error("{0:?} is outside of the workspace")]
    Outside(String),
    /// It is in git's own folder.
    #[error("{0:?} is in a `.git` folder")]
    Git(String),
}

/// The file of the workspace at `root` that a URI of an edit names: a `file:` URI, or a path relative to the workspace,
/// percent-encoded, as bundles have it.
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

/// The file of the workspace that a path names, absolute or relative to the workspace, as it is.
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
    if inside.as_str().split('/').any(|part| part.eq_ignore_ascii_case(".git")) {
        return Err(TargetError::Git(path.to_owned()));
    }
    Ok(inside)
}

impl TargetError {
    /// The same about the spelling that came in.
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
    fn names_that_leave_it() {
        for uri in ["../a", "a/../b", "a%2F..%2F..%2Fb", "file:///w/x/../x/a", "a/%2e%2e/b", "a\\..\\b"] {
            assert!(matches!(of(uri), Err(TargetError::Climbs(_))), "{uri}");
        }
        for uri in ["/etc/passwd", "file:///etc/passwd", "file:///w/xy", "file:///w/x", "", "."] {
            assert!(matches!(of(uri), Err(TargetError::Outside(_))), "{uri}");
        }
        for uri in [".git/config", "a/.GIT/hooks/x", "file:///w/x/.git/HEAD"] {
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
