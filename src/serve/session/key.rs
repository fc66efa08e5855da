//! The key of a session: clients with equal keys share a session.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use super::wire::WireSettings;
use crate::digest::Digest;
use crate::engine::Settings;
use crate::path::AbsPath;

/// The variables that can affect an interpreter or a server. All others have the values of the first client.
const VARIABLES: [&str; 5] = ["HOME", "VIRTUAL_ENV", "CONDA_PREFIX", "PYENV_ROOT", "PYENV_VERSION"];

/// Options of a session, besides the settings of its engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionOptions {
    /// How long the session stays without requests.
    pub idle_timeout: Duration,
}

impl SessionOptions {
    /// The idle timeout without configuration.
    pub const DEFAULT_IDLE_TIMEOUT: Duration = Duration::from_secs(600);
}

/// The digest of everything that distinguishes sessions. Its text is part of file names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SessionKey(String);

/// Identifies a file or folder, to detect that the one at a path was replaced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct FileIdentity {
    device: u64,
    inode: u64,
    /// Zero for a folder, whose size and times change with its entries.
    size: u64,
    seconds: i64,
    nanoseconds: i64,
}

#[derive(Serialize)]
struct KeyInputs<'a> {
    version: &'static str,
    executable: (&'a str, &'a FileIdentity),
    settings: WireSettings,
    environment: Vec<(&'a str, Option<&'a str>)>,
}

impl SessionKey {
    /// The key of sessions for `settings`, served by this program at `executable`.
    ///
    /// # Errors
    /// When the executable no longer exists.
    pub(super) fn of(
        settings: &Settings,
        session_options: SessionOptions,
        executable: &AbsPath,
    ) -> io::Result<Self> {
        let identity = FileIdentity::of(executable.as_path())?;
        let mut shared = WireSettings::new(settings, session_options);
        shared.remove_client_settings();
        let value = |name| settings.environment.get(name).map(String::as_str);
        let inputs = KeyInputs {
            version: env!("CARGO_PKG_VERSION"),
            executable: (executable.as_str(), &identity),
            settings: shared,
            environment: VARIABLES.into_iter().map(|name| (name, value(name))).collect(),
        };
        // 20 digits: together with the folder, the path of a socket must stay below 104 bytes.
        Ok(Self(Digest::of(&serde_json::to_vec(&inputs)?).to_hex()[..20].to_owned()))
    }

    /// Parses the text of a key.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let fits = text.len() == 20 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        fits.then(|| Self(text.to_owned()))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

impl FileIdentity {
    /// Identifies the file at `path`; links are not followed.
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        let metadata = path.symlink_metadata()?;
        let (size, seconds, nanoseconds) = match metadata.is_dir() {
            true => (0, 0, 0),
            false if metadata.is_file() => (metadata.size(), metadata.mtime(), metadata.mtime_nsec()),
            // The next socket may get the same inode at once; the change time distinguishes them.
            false => (0, metadata.ctime(), metadata.ctime_nsec()),
        };
        Ok(Self { device: metadata.dev(), inode: metadata.ino(), size, seconds, nanoseconds })
    }

    /// Whether the same file is still at `path`.
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
        let (of_file, of_folder) = (FileIdentity::of(&file).unwrap(), FileIdentity::of(&inner).unwrap());
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
        assert!(SessionKey::parse("0123456789abcdef0123").is_some());
        for bad in ["", "0123456789abcdef012", "0123456789ABCDEF0123", "../456789abcdef01234"] {
            assert!(SessionKey::parse(bad).is_none(), "{bad}");
        }
    }
}
