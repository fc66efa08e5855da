//! What makes two callers want the same session.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use super::wire::WireSettings;
use crate::digest::Digest;
use crate::orchestrator::Settings;
use crate::path::AbsPath;

/// The variables on which an interpreter or a server can depend. All others are the first caller's.
const VARIABLES: [&str; 5] = ["HOME", "VIRTUAL_ENV", "CONDA_PREFIX", "PYENV_ROOT", "PYENV_VERSION"];

/// What a session is asked to be, besides the settings of its orchestrator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// How long it stays without a request.
    pub idle: Duration,
}

impl Terms {
    /// How long a session stays when nothing else is said.
    pub const IDLE: Duration = Duration::from_secs(600);
}

/// The digest of everything that one session is for. Its text is a part of file names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Key(String);

/// A file or folder at one moment: the same path, and nothing put in its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Identity {
    device: u64,
    inode: u64,
    /// Zero for a folder, whose size and times change with what is in it.
    size: u64,
    seconds: i64,
    nanoseconds: i64,
}

#[derive(Serialize)]
struct Parts<'a> {
    version: &'static str,
    executable: (&'a str, &'a Identity),
    settings: WireSettings,
    environment: Vec<(&'a str, Option<&'a str>)>,
}

impl Key {
    /// The key for `settings`, when this program at `executable` serves them.
    ///
    /// # Errors
    /// When the executable is gone.
    pub(super) fn of(settings: &Settings, terms: Terms, executable: &AbsPath) -> io::Result<Self> {
        let identity = Identity::of(executable.as_path())?;
        let mut shared = WireSettings::new(settings, terms);
        shared.forget_caller();
        let value = |name| settings.environment.get(name).map(String::as_str);
        let parts = Parts {
            version: env!("CARGO_PKG_VERSION"),
            executable: (executable.as_str(), &identity),
            settings: shared,
            environment: VARIABLES.into_iter().map(|name| (name, value(name))).collect(),
        };
        // Twenty digits: with the folder's name before them, the path of a socket must stay below 104 bytes.
        Ok(Self(Digest::of(&serde_json::to_vec(&parts)?).to_hex()[..20].to_owned()))
    }

    /// Reads a key's text.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let fits = text.len() == 20 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        fits.then(|| Self(text.to_owned()))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

impl Identity {
    /// What is at `path` now; links are not followed.
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        let metadata = path.symlink_metadata()?;
        let (size, seconds, nanoseconds) = match metadata.is_dir() {
            true => (0, 0, 0),
            false if metadata.is_file() => (metadata.size(), metadata.mtime(), metadata.mtime_nsec()),
            // A socket's inode is used again at once for the next; its time of change tells them apart.
            false => (0, metadata.ctime(), metadata.ctime_nsec()),
        };
        Ok(Self { device: metadata.dev(), inode: metadata.ino(), size, seconds, nanoseconds })
    }

    /// Whether the same thing is still at `path`.
    pub(super) fn is_at(&self, path: &Path) -> bool {
        Self::of(path).is_ok_and(|now| now == *self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities() {
        let folder = tempfile::tempdir().unwrap();
        let (file, inner) = (folder.path().join("f"), folder.path().join("d"));
        std::fs::write(&file, "a").unwrap();
        std::fs::create_dir(&inner).unwrap();
        let (of_file, of_folder) = (Identity::of(&file).unwrap(), Identity::of(&inner).unwrap());
        std::fs::write(inner.join("new"), "").unwrap();
        assert!(of_file.is_at(&file) && of_folder.is_at(&inner) && !of_file.is_at(&inner));
        std::fs::write(folder.path().join("g"), "b").unwrap();
        std::fs::rename(folder.path().join("g"), &file).unwrap();
        assert!(!of_file.is_at(&file), "another file of the same size");
        std::fs::remove_dir_all(&inner).unwrap();
        assert!(!of_folder.is_at(&inner));
    }

    #[test]
    fn the_text_of_a_key() {
        assert!(Key::parse("0123456789abcdef0123").is_some());
        for bad in ["", "0123456789abcdef012", "0123456789ABCDEF0123", "../456789abcdef01234"] {
            assert!(Key::parse(bad).is_none(), "{bad}");
        }
    }
}
