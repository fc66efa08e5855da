//! The list of repositories that the user trusts. Programs that a trusted repository contains may be run.
//!
//! The list is a file in the user's state folder, like git's `safe.directory` and `direnv allow`. An entry has the
//! repository's path and the owner of its folder, so that another user's repository at the same path is not trusted.

use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use serde::{Deserialize, Serialize};

use crate::path::{AbsPath, private};

/// The version of the file format. A file with another version is ignored.
const FORMAT: u32 = 1;

/// The list of trusted repositories, and the file that stores it.
#[derive(Debug, Clone)]
pub struct TrustList {
    file: AbsPath,
    repositories: Vec<TrustedRepository>,
}

/// A trusted repository.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrustedRepository {
    /// Its folder, with symbolic links resolved.
    pub path: String,
    /// The user id of the folder's owner.
    pub owner: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredTrustList {
    format: u32,
    repositories: Vec<TrustedRepository>,
}

impl TrustList {
    /// Reads the list from the user's state folder. A list that cannot be read, or that other users can write to,
    /// counts as empty.
    #[must_use]
    pub fn read(state: &AbsPath) -> Self {
        let file = state.join("trusted.json");
        let repositories = Self::read_file(&file).unwrap_or_default();
        Self { file, repositories }
    }

    fn read_file(file: &AbsPath) -> Option<Vec<TrustedRepository>> {
        let own = rustix::process::geteuid().as_raw();
        for path in [file.clone(), file.parent()] {
            let metadata = path.as_path().symlink_metadata().ok()?;
            if metadata.uid() != own || metadata.mode() & 0o022 != 0 {
                return None;
            }
        }
        let stored: StoredTrustList = serde_json::from_slice(&std::fs::read(file.as_path()).ok()?).ok()?;
        (stored.format == FORMAT).then_some(stored.repositories)
    }

    /// The repositories, sorted by path.
    #[must_use]
    pub fn repositories(&self) -> &[TrustedRepository] {
        &self.repositories
    }

    /// Whether the repository in this folder is trusted. Symbolic links in the path must be resolved.
    #[must_use]
    pub fn trusts(&self, checkout: &AbsPath) -> bool {
        owner(checkout).is_ok_and(|owner| {
            self.repositories.iter().any(|one| one.path == checkout.as_str() && one.owner == owner)
        })
    }

    /// Adds a repository. Returns whether it is new in the list.
    ///
    /// # Errors
    /// When the folder does not exist, or the list cannot be written.
    pub fn add(&mut self, checkout: &AbsPath) -> io::Result<bool> {
        let added = TrustedRepository { path: checkout.to_string(), owner: owner(checkout)? };
        if self.repositories.contains(&added) {
            return Ok(false);
        }
        self.repositories.retain(|one| one.path != added.path);
        self.repositories.push(added);
        self.repositories.sort();
        self.write().map(|()| true)
    }

    /// Removes a repository. Returns whether it was in the list.
    ///
    /// # Errors
    /// When the list cannot be written.
    pub fn remove(&mut self, checkout: &AbsPath) -> io::Result<bool> {
        let before = self.repositories.len();
        self.repositories.retain(|one| one.path != checkout.as_str());
        if self.repositories.len() == before {
            return Ok(false);
        }
        self.write().map(|()| true)
    }

    fn write(&self) -> io::Result<()> {
        let folder = self.file.parent();
        private::create(folder.as_path())?;
        // An older version may have created it with other permissions.
        std::fs::set_permissions(folder.as_path(), std::fs::Permissions::from_mode(0o700))?;
        let stored = StoredTrustList { format: FORMAT, repositories: self.repositories.clone() };
        let text = serde_json::to_vec_pretty(&stored).map_err(io::Error::other)?;
        super::python::write_atomically(&self.file, &text)
    }
}

fn owner(folder: &AbsPath) -> io::Result<u32> {
    let metadata = std::fs::metadata(folder.as_path())?;
    if !metadata.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    Ok(metadata.uid())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trust_is_added_removed_and_stored() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| AbsPath::new(folder.path().join(name)).unwrap();
        std::fs::create_dir(at("repository").as_path()).unwrap();
        let state = at("state");
        assert!(!TrustList::read(&state).trusts(&at("repository")));
        assert!(TrustList::read(&state).add(&at("gone")).is_err());
        assert!(TrustList::read(&state).add(&at("repository")).unwrap());
        assert!(!TrustList::read(&state).add(&at("repository")).unwrap());
        let list = TrustList::read(&state);
        assert!(list.trusts(&at("repository")) && !list.trusts(&at("state")));
        // A folder of another user at the same path is not trusted.
        let other =
            TrustedRepository { owner: list.repositories[0].owner + 1, ..list.repositories[0].clone() };
        assert!(!TrustList { repositories: vec![other], ..list }.trusts(&at("repository")));
        // A list that other users can write to is ignored.
        let file = state.join("trusted.json");
        let set =
            |mode| std::fs::set_permissions(file.as_path(), std::fs::Permissions::from_mode(mode)).unwrap();
        set(0o666);
        assert_eq!(TrustList::read(&state).repositories(), []);
        set(0o600);
        assert!(TrustList::read(&state).remove(&at("repository")).unwrap());
        assert!(!TrustList::read(&state).remove(&at("repository")).unwrap());
        assert!(!TrustList::read(&state).trusts(&at("repository")));
    }
}
