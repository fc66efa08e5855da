//! `file:` URIs in messages of a language server.
//!
//! Servers encode them differently (Pyright like vscode-uri: `+` is `%2B`, `(` is `%28`), so URIs are not compared as
//! strings: they are decoded to paths on input and encoded again on output.

use std::fmt;

use super::{AbsPath, percent};

/// A `file:` URI in vscode-uri's spelling.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileUri(String);

/// Why a URI is not a local file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FileUriError {
    /// Another scheme, or none.
    #[error("{0:?} is not a file: URI")]
    Scheme(String),
    /// A host other than this one.
    #[error("{0:?} names another host")]
    Host(String),
    /// Broken percent-encoding, a NUL, or a path that is not UTF-8.
    #[error("{0:?} does not decode to a path")]
    Encoding(String),
}

impl FileUri {
    /// The URI of a path.
    #[must_use]
    pub fn from_path(path: &AbsPath) -> Self {
        Self(format!("file://{}", percent::encode_uri_path(path.as_str())))
    }

    /// The text of the URI.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Decodes any spelling of a `file:` URI to its path, with `..` resolved.
    ///
    /// # Errors
    /// See [`FileUriError`].
    pub fn parse_path(uri: &str) -> Result<AbsPath, FileUriError> {
        let rest = uri
            .get(..5)
            .filter(|scheme| scheme.eq_ignore_ascii_case("file:"))
            .map(|_| &uri[5..])
            .ok_or_else(|| FileUriError::Scheme(uri.to_owned()))?;
        let path = match rest.strip_prefix("//") {
            Some(authority) => {
                let slash = authority.find('/').ok_or_else(|| FileUriError::Host(uri.to_owned()))?;
                let host = &authority[..slash];
                if !host.is_empty() && !host.eq_ignore_ascii_case("localhost") {
                    return Err(FileUriError::Host(uri.to_owned()));
                }
                &authority[slash..]
            }
            None => rest,
        };
        let broken = || FileUriError::Encoding(uri.to_owned());
        let decoded = percent::decode(path).filter(|text| !text.contains('\0')).ok_or_else(broken)?;
        AbsPath::new(decoded).map_err(|_| broken())
    }
}

impl fmt::Display for FileUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_encoded_like_vscode_uri() {
        let path = AbsPath::new("/w/a b+(c)@,;=!'$&*[x]:^|#?%/ü.py").unwrap();
        let uri = FileUri::from_path(&path);
        assert_eq!(
            uri.as_str(),
            "file:///w/a%20b%2B%28c%29%40%2C%3B%3D%21%27%24%26%2A%5Bx%5D%3A%5E%7C%23%3F%25/%C3%BC.py"
        );
        assert_eq!(FileUri::parse_path(uri.as_str()), Ok(path));
    }

    #[test]
    fn any_spelling_is_decoded() {
        let expected = AbsPath::new("/w/ü (1).py").unwrap();
        for uri in ["file:///w/ü (1).py", "FILE://localhost/w/%c3%bc%20%281%29.py", "file:/w/x/../ü%20(1).py"]
        {
            assert_eq!(FileUri::parse_path(uri).as_ref(), Ok(&expected), "{uri}");
        }
    }

    #[test]
    fn uris_of_other_files_are_rejected() {
        for uri in ["http://x/y", "file://host/y", "file:///%zz", "file:///a%00b", "untitled:1", "é"] {
            assert!(FileUri::parse_path(uri).is_err(), "{uri}");
        }
    }
}
