//! Progress events of an install.

use crate::path::AbsPath;

/// An event of an install.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InstallEvent {
    /// Waiting for another process that installs the same thing.
    Waiting {
        /// What is installed, such as `pyright 1.1.414`.
        what: String,
    },
    /// An installer has been started.
    Installing {
        /// What is installed.
        what: String,
        /// The installer: `npm` or `pip`.
        with: String,
    },
    /// The install is finished.
    Installed {
        /// What was installed.
        what: String,
        /// Its folder.
        at: AbsPath,
    },
}

/// Receives the events.
pub(super) type OnInstallEvent<'r> = &'r mut dyn FnMut(InstallEvent);
