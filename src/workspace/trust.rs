//! The repositories that the user trusts: what they bring may be run.
//!
//! A list in the user's state folder, as `git`'s `safe.directory` and `direnv allow` keep one. A repository is known by its
//! path and by who owned its folder then, so that somebody else's at the same place is another one.

use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use serde::{Deserialize, Serialize};

use crate::path::{AbsPath, private};

/// Counted up when a list can no longer be read as the last one.
const FORMAT: u32 = 1;

/// The list, and where it is kept.
#[derive(Debug, Clone)]
pub struct TrustList {
    file: AbsPath,
    repositories: Vec<Repository>,
}

/// A repository that is trusted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Repository {
    /// Its folder, links resolved.
    pub path: String,
    /// The user id of the folder's owner.
    pub owner: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    format: u32,
    repositories: Vec<Repository>,
}

impl TrustList {
    /// The list in the user's state folder. One that cannot be read, or that others can write to, is empty.
    #[must_use]
    pub fn read(state: &AbsPath) -> Self {
        let file = state.join("trusted.json");
        let repositories = Self::stored(&file).unwrap_or_default();
        Self { file, repositories }
    }

    fn stored(file: &AbsPath) -> Option<Vec<Repository>> {
        let own = rustix::process::geteuid().as_raw();
        for path in [file.clone(), file.parent()] {
            let metadata = path.as_path().symlink_metadata().ok()?;
            if metadata.uid() != own || metadata.mode() & 0o022 != 0 {
                return None;
            }
        }
        let stored: Stored = serde_json::from_slice(&std::fs::read(file.as_path()).ok()?).ok()?;
        (stored.format == FORMAT).then_some(stored.repositories)
    }

    /// The repositories, by path.
    #[must_use]
    pub fn repositories(&self) -> &[Repository] {
        &self.repositories
    }

    /// Whether a repository is trusted, given its folder with links resolved.
    #[must_use]
    pub fn trusts(&self, checkout: &AbsPath) -> bool {
        owner(checkout).is_ok_and(|owner| {
            self.repositories.iter().any(|one| one.path == checkout.as_str() && one.owner == owner)
        })
    }

    /// Adds a repository; whether it was not there before.
    ///
    /// # Errors
    /// When there is no such folder, or the list cannot be written.
    pub fn add(&mut self, checkout: &AbsPath) -> io::Result<bool> {
        let added = Repository { path: checkout.to_string(), owner: owner(checkout)? };
        if self.repositories.contains(&added) {
            return Ok(false);
        }
        self.repositories.retain(|one| one.path != added.path);
        self.repositories.push(added);
        self.repositories.sort();
        self.write().map(|()| true)
    }

    /// Removes a repository; whether it was there.
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
        private::make(folder.as_path())?;
        // Made by an older version, perhaps.
        std::fs::set_permissions(folder.as_path(), std::fs::Permissions::from_mode(0o700))?;
        let stored = Stored { format: FORMAT, repositories: self.repositories.clone() };
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
    fn trust_is_given_taken_and_kept() {
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
        // Somebody else's folder at the same place is another one.
        let other = Repository { owner: list.repositories[0].owner + 1, ..list.repositories[0].clone() };
        assert!(!TrustList { repositories: vec![other], ..list }.trusts(&at("repository")));
        // A list that others can write to is nobody's word.
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
