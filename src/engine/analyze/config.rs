//! The configuration files of analyzers, in the workspace only: what is outside of it must not change an answer, and must
//! not be read on behalf of the workspace.

use crate::engine::failure::Failure;
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::path::{AbsPath, WorkspacePath};
use crate::workspace::files::{ReadError, canonical, read_bytes};

const HINT: &str = "keep the configuration inside of the workspace, or trust it with --trust-workspace";

/// Reads a configuration file of the workspace; `None` if it does not exist.
///
/// # Errors
/// If it is a link out of the workspace, or cannot be read, and the workspace is not `trusted`.
pub(super) fn read(root: &AbsPath, path: &str, trusted: bool) -> Result<Option<Vec<u8>>, Failure> {
    let file = root.join(path);
    let bytes = match read_bytes(&file) {
        Ok(bytes) => bytes,
        // The analyzer might read it all the same, and what it leads to is not known.
        Err(error) if !trusted && !matches!(error, ReadError::Missing { .. }) && !file.as_path().is_dir() => {
            let message = format!("{path} cannot be read: {error}");
            return Err(Failure::reported(ErrorBody::new(ErrorSymbol::Usage, message).hint(HINT)));
        }
        Err(_) => return Ok(None),
    };
    if !trusted && canonical(&file).strip_prefix(&canonical(root)).is_none() {
        return Err(outside(path, "is a link to"));
    }
    Ok(Some(bytes))
}

/// The error for a configuration that refers to a file outside of the workspace.
pub(super) fn outside(path: &str, what: &str) -> Failure {
    let message = format!("{path} {what} a file outside of the workspace");
    Failure::reported(ErrorBody::new(ErrorSymbol::Usage, message).hint(HINT))
}

/// The folders that contain one of the files directly or indirectly, outermost first; the root is the empty name.
pub(super) fn folders(files: &[WorkspacePath]) -> Vec<String> {
    let mut all = std::collections::BTreeSet::from([String::new()]);
    for file in files {
        let mut path = file.as_str();
        while let Some((folder, _)) = path.rsplit_once('/') {
            if !all.insert(folder.to_owned()) {
                break;
            }
            path = folder;
        }
    }
    all.into_iter().collect()
}

/// The path of a file in a folder of the workspace.
pub(super) fn in_folder(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_folder_above_a_file_is_named_once() {
        let files = ["a/b/c.py", "a/d.py", "e.py"].map(|path| WorkspacePath::new(path).unwrap());
        assert_eq!(folders(&files), ["", "a", "a/b"]);
        assert_eq!([in_folder("", "x"), in_folder("a", "x")], ["x", "a/x"]);
    }

    #[test]
    fn a_link_out_of_the_workspace_is_refused() {
        let (inside, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::write(other.path().join("secret"), "x").unwrap();
        std::os::unix::fs::symlink(other.path().join("secret"), inside.path().join("ruff.toml")).unwrap();
        let root = AbsPath::new(inside.path()).unwrap();
        assert!(read(&root, "ruff.toml", false).is_err());
        assert_eq!(read(&root, "ruff.toml", true).unwrap(), Some(b"x".to_vec()));
        assert_eq!(read(&root, "mypy.ini", false).unwrap(), None);
    }
}
